"""Compare the results at one depth of a KTAP log with the plan and the announcements at that depth."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from harness.model import Outcome

_LONGEST_GAP = 100
"""Up to this number, missing results are reported one by one; above it, only their number is."""

NOTHING = "nothing-to-run"


class Node(Struct, gc=False):
    """A result, with the results of its subtests.

    A log may have hundreds of thousands; they are never part of a cycle, so the garbage collector skips them."""

    number: int
    name: str
    outcome: Outcome
    diagnostic: str = ""
    stated: Outcome | None = None
    """Outcome on the result's own line; None if there is no such line, and the parser made this node."""
    children: Sequence[Node] = ()


class Level:
    """The lines that were read at one depth since the last result at a shallower one."""

    __slots__ = (
        *("announced", "brace", "declared", "depth", "lost", "name", "nodes"),
        *("plan", "plans", "settled", "skip", "unnumbered"),
    )

    def __init__(self, depth: int, name: str = "", announced: int = 0) -> None:
        self.depth = depth
        self.name = name
        """The name in the line `# Subtest: name`."""
        self.announced = announced
        """The depth of that line: this one in KUnit's logs, the parent's in those of Perl."""
        self.lost: list[Node] = []
        """Parents whose own result never came, with their results."""
        self.settled: list[Node] = []
        """Results of earlier runs at this depth: a script may run several TAP programs one after the other."""
        self._reset()
        self.declared = bool(name)

    def _reset(self) -> None:
        self.nodes: list[Node] = []
        self.unnumbered = 0
        """Nodes of this run without a number of their own."""
        self.brace: Node | None = None
        """A result whose name ends with `{`: its subtests follow it, up to a line `}`."""
        self.declared = False
        """A version line, a plan or `# Subtest` promised that results come."""
        self.plan: int | None = None
        self.plans = 0
        self.skip: str | None = None
        """The reason of `1..0 # SKIP reason`."""

    @property
    def used(self) -> bool:
        return bool(self.nodes or self.settled or self.lost)

    @property
    def fulfilled(self) -> bool:
        return self.plan is not None and len(self.nodes) >= self.plan

    @property
    def numbered(self) -> bool:
        return len(self.nodes) > self.unnumbered

    def next_number(self) -> int:
        return self.nodes[-1].number + 1 if self.nodes else 1

    def promise(self, count: int, skip: str | None) -> None:
        """Take a plan. A second one does not take back what the first one promised."""
        self.declared = True
        self.plans += 1
        self.plan = max(count, self.plan or 0)
        self.skip = skip if self.plans == 1 else None

    def restart(self) -> None:
        """End this run of results, and begin another one at the same depth for the same parent."""
        self.close_brace()
        self.settled += self._run()
        self._reset()

    def rename(self, name: str, announced: int) -> None:
        """Begin a subtest with another name. The results of the one before are put under a lost parent: its own result
        never came."""
        if self.nodes or self.plan is not None:
            self.restart()
        if self.name and (self.settled or self.name != name):
            self.lost.append(Node(0, self.name, Outcome.LOST, "no result", None, self.settled))
            self.settled = []
        self.name, self.announced = name, announced
        self.declared = True

    def lose(self, children: Sequence[Node], name: str) -> None:
        """Add a lost parent for results at a deeper level. It takes the place of one result of the plan."""
        if self.brace and children:
            self.close_brace(children)
            return
        self.nodes.append(Node(self.next_number(), name or "unnamed", Outcome.LOST, "no result", None, children))
        self.unnumbered += 1

    def results(self, must_plan: bool = False) -> list[Node]:
        """All results at this depth, with a red one for each promise that was not kept."""
        self.close_brace()
        if not (self.lost or self.settled):
            return self._run(must_plan)
        if not (self.nodes or self.declared):
            return self.lost + self.settled
        return self.lost + self.settled + self._run(must_plan)

    def close_brace(self, children: Sequence[Node] = ()) -> None:
        """End a subtest without its closing brace. Results after its last one may be missing, so a `lost` case is added."""
        if self.brace:
            why = "the brace that opened this subtest was never closed"
            self.brace.children = [*children, Node(0, "}", Outcome.LOST, why)]
            self.brace = None

    def _run(self, must_plan: bool = False) -> list[Node]:
        nodes, planned = self.nodes, self.plan
        if not nodes and not planned:
            return self._nothing(must_plan)
        if planned is None:
            if must_plan:
                return [*nodes, Node(0, "plan", Outcome.LOST, "the log has no plan: missing results would not be noticed")]
            # Without a plan, the numbers still show what is missing between results.
            planned = max(node.number for node in nodes)
            return nodes if planned == len(nodes) else nodes + _missing(nodes, planned)
        broken = self._broken(planned)
        return nodes + _missing(nodes, planned) + ([Node(0, "plan", Outcome.FAIL, broken)] if broken else [])

    def _nothing(self, must_plan: bool) -> list[Node]:
        if self.skip is not None:
            return [Node(0, NOTHING, Outcome.SKIP, self.skip)]
        if self.plan == 0:
            return [Node(0, NOTHING, Outcome.LOST, "nothing was run, and the plan gives no reason (`1..0 # SKIP reason`)")]
        if must_plan:
            return [Node(0, "plan", Outcome.LOST, "tests were announced, and neither a plan nor a result came")]
        if self.declared:
            return [nothing_reported()]
        return []

    def _broken(self, planned: int) -> str:
        """The reason why the results contradict the plan; empty if they do not. Missing results do not count here."""
        if self.plans > 1:
            return f"{self.plans} plans for the same results: the results of one of them are not known to be whole"
        if len(self.nodes) > planned:
            reported = sum(node.stated is not None for node in self.nodes)
            return f"{planned} planned, {reported} reported" if reported > planned else ""
        return ""


def nothing_reported() -> Node:
    return Node(0, NOTHING, Outcome.LOST, "a subtest was announced, and nothing of it was reported")


def _missing(nodes: Sequence[Node], planned: int) -> list[Node]:
    reported = {node.number for node in nodes}
    absent = planned - sum(1 <= number <= planned for number in reported)
    if not absent:
        return []
    if absent > _LONGEST_GAP:
        return [Node(0, "missing", Outcome.LOST, f"{planned} planned, {planned - absent} reported")]
    gaps = (number for number in range(1, planned + 1) if number not in reported)
    return [Node(number, f"#{number}", Outcome.LOST, "planned, but never reported") for number in gaps]


def adopt(node: Node, children: list[Node]) -> None:
    """Make `children` the subtests of a result."""
    if len(children) == 1 and children[0].name == NOTHING and children[0].stated is None:
        nothing = children[0]
        if node.outcome is Outcome.PASS or (node.outcome is Outcome.SKIP and not node.diagnostic):
            skipped = node.outcome is Outcome.SKIP and nothing.outcome is not Outcome.SKIP
            if not skipped:
                node.outcome, node.diagnostic = nothing.outcome, nothing.diagnostic
        return
    node.children = children


def end_brace(level: Level, children: list[Node]) -> list[Node]:
    """Called when a result follows one whose name ends with a brace. If no subtests came in between, the brace is a part of
    that name. Returns the subtests that are still without a parent: none."""
    if children:
        level.close_brace(children)
    elif level.brace:
        level.brace.name += " {"
        level.brace = None
    return []


def answers(node: Node, depth: int, below: Level) -> bool:
    """True if the result belongs to the subtest that `below` announced by name. A name may hold a `#`, so that the rest of
    it looks like a remark; Perl's Test2 puts `Subtest: ` before the name."""
    if not below.name or depth > below.announced or node.name == f"#{node.number}":
        return True
    name, announced = (" ".join(text.replace("\\", "").split()) for text in (node.name, below.name))
    return name.removeprefix("Subtest: ") == announced or announced.startswith(f"{name} #")
