"""Put the lines of a KTAP log together into a tree of results."""

from __future__ import annotations

import re

from harness.logs import tapline
from harness.logs.taplevel import Level, Node, adopt, answers, end_brace, nothing_reported
from harness.logs.tapline import Totals
from harness.logs.taptotals import Claims, disagreement, leaves
from harness.model import Outcome

_DIAGNOSTIC_LINES = 200


class Tree:
    """Reads line after line. The deepest level that is open is the last one of `_levels`; the first has depth 0.

    A result takes all deeper levels as its subtests. A block is what belongs to one version line or plan at depth 0; results
    in no block count if the log has no block at all, and if they are red."""

    def __init__(self) -> None:
        self._done: list[Node] = []
        self._outside: list[Node] = []
        self._levels = [Level(0)]
        self._opened = False
        """The current lines belong to a block."""
        self._seen_block = False
        self._announced: tuple[int, str] | None = None
        """Depth and name of a `# Subtest` whose results have not begun."""
        self._split_not = False
        """The last line held only `not`: VMS, and a console that wraps lines, print the `ok` on the next one."""
        self._before: list[str] = []
        self._yaml: list[str] | None = None
        self._yaml_depth = 0
        self._last: Node | None = None
        """The result on the line before, which a YAML block may follow."""
        self._claims = Claims()
        self._margin = ""
        """The space that the log's prefix leaves before every line; empty if it leaves none."""

    def feed(self, line: str) -> None:
        line = line[: tapline.WIDEST]
        if self._margin:
            line = line.removeprefix(self._margin)
        if self._yaml is not None and self._in_yaml(line):
            return
        # Most lines are results.
        if "ok" in line and (match := tapline.RESULT.match(line)) and self._result(match):
            return
        self._other(line)

    def finish(self) -> list[Node]:
        """All results at depth 0, when the log has ended."""
        if self._yaml is not None:
            self._replay()
        if not self._seen_block and (self._levels[0].used or self._levels[-1].used):
            self._opened = self._seen_block = True
        self._close()
        # Outside of blocks, an `ok` may be any program's output, but a `not ok` must not be lost.
        return [*self._done, *(node for node in self._outside if _red(node))]

    # Lines

    def _other(self, line: str) -> None:
        """A line that is no result."""
        self._last, last = None, self._last
        text = line.strip()
        if not text:
            return
        if "TAP version" in line and (match := tapline.VERSION.match(line)):
            self._version(match["nest"])
        elif "# Subtest: " in line and (match := tapline.SUBTEST.match(line)):
            self._subtest(tapline.depth(match["nest"]), match["name"].strip())
        elif "1.." in line and (match := tapline.PLAN.match(line)):
            skip = (match["reason"] or "").strip() if match["skip"] else None
            self._plan(tapline.depth(match["nest"]), int(match["count"]), skip)
        elif "pass:" in line and (match := tapline.TOTALS.match(line)):
            self._totals(tapline.depth(match["nest"]), tapline.totals(match))
        elif text == "}" and (match := tapline.CLOSING_BRACE.match(line)):
            self._closing_brace(tapline.depth(match["nest"]))
        elif text == "{" and last:
            self._opening_brace(line, last)
        elif text == "not":
            self._split_not = True
        elif text == "---" and last and line[0].isspace():
            self._yaml, self._yaml_depth, self._last = [line], len(line) - len(line.lstrip()), last
        elif text.lstrip("# \t")[:9].lower() == "bail out!":
            self._done.append(Node(0, "bail-out", Outcome.FAIL, text))
        elif len(self._before) < _DIAGNOSTIC_LINES:
            self._before.append(line.rstrip())

    def _result(self, match: re.Match[str]) -> bool:
        """Take a result; false if the line only looks like one."""
        nest = match["nest"]
        depth = tapline.depth(nest) if nest else 0
        if match["number"] is None and not self._counts(match, nest, depth):
            return False
        levels = self._levels
        below, children = self._below(depth) if levels[-1].depth > depth else (None, [])
        if levels[-1].depth < depth:
            self._open(depth)
        level = levels[-1]
        if level.brace:
            children = end_brace(level, children)
        node = self._node(match, level)
        if below and children and not answers(node, depth, below):
            level.lose(children, below.name)
            children = []
        if self._announced:
            children = self._answer(depth, node, children)
        if self._claims:
            children = [*children, *self._claims.check(depth, node, children)]
        if children:
            adopt(node, children)
        level.nodes.append(node)
        self._before.clear()
        self._last = node
        return True

    def _counts(self, match: re.Match[str], nest: str, depth: int) -> bool:
        """True if a line without a number is a result. Prose that starts with `ok` must not count as a planned result."""
        level = next((level for level in self._levels if level.depth == depth), None)
        expected = level is not None and (level.declared or level.used)
        if "#" in nest:
            return expected
        if match["not"] or match["dash"]:
            return True
        if level is None:
            return self._levels[-1].depth < depth and self._levels[-1].brace is not None
        return expected and self._opened and not (level.numbered or level.fulfilled)

    def _node(self, match: re.Match[str], level: Level) -> Node:
        passed = not match["not"]
        if self._split_not:
            self._split_not = passed = False
            self._before.append("`not` and `ok` stand on two lines")
        name, outcome, reason = tapline.verdict(match["rest"] or "", passed)
        brace = name == "{" or reason == "{" or name.endswith(" {") or reason.endswith(" {")
        if brace:
            name, reason = name.removesuffix("{").rstrip(), reason.removesuffix("{").rstrip()
        if match["number"]:
            number = int(match["number"])
        else:
            number = level.next_number()
            level.unnumbered += 1
        if self._before and not outcome.green:
            reason = "\n".join(filter(None, [reason, *self._before]))
        node = Node(number, name or f"#{number}", outcome, reason, outcome)
        if brace:
            level.brace = node
        return node

    def _version(self, nest: str) -> None:
        self._before.clear()
        if nest == " " and not self._margin and (not self._opened or self._levels[0].fulfilled):
            self._margin, nest = " ", ""
        depth = tapline.depth(nest)
        if depth == 0:
            if self._announced and self._announced[0] == 0 and not (self._levels[0].used or self._levels[0].declared):
                self._opened, self._announced = False, None
            self._close()
            self._split_not = False
            self._opened = self._seen_block = True
            self._levels[0].declared = True
            return
        self._begin()
        level = self._enter(depth)
        if level.nodes or level.plan is not None:
            level.restart()
        level.declared = True

    def _subtest(self, depth: int, name: str) -> None:
        self._before.clear()
        self._begin()
        level = self._enter(depth) if self._levels[-1].depth > depth else self._levels[-1]
        if level.depth == depth > 0 and level.declared and level.plan is None and not level.nodes:
            # KUnit prints the name after the version line.
            level.rename(name, depth)
            return
        if self._announced and self._announced[1] != name:
            outer = self._announced[0]
            if depth == 0:
                level.lose((), self._announced[1])
            else:
                self._enter(outer if level.depth < outer <= depth else depth)
        self._announced = depth, name

    def _plan(self, depth: int, count: int, skip: str | None) -> None:
        self._before.clear()
        top = self._levels[0]
        if depth == 0:
            if top.fulfilled or (self._seen_block and not self._opened):
                self._close()
            self._opened = self._seen_block = True
            self._levels[0].promise(count, skip)
            return
        level = self._enter(depth)
        if self._announced and self._announced[0] == depth:
            level.rename(self._announced[1], depth)
            self._announced = None
        elif level.fulfilled:
            level.restart()
        level.promise(count, skip)

    def _totals(self, depth: int, totals: Totals) -> None:
        if totals.kunit:
            self._claims.add(depth, totals)
            return
        level = next((level for level in self._levels if level.depth == depth), None)
        if level is None and self._opened and totals.failed:
            level = self._enter(depth)
        if level and (self._opened or level.used) and (why := disagreement(totals, level.nodes)):
            level.settled.append(Node(0, "totals", Outcome.LOST, why))

    def _opening_brace(self, line: str, last: Node) -> None:
        """`{` on a line of its own, after the YAML of a result."""
        level = self._levels[-1]
        if level.brace is None and len(line) - len(line.lstrip()) == level.depth and not last.children:
            level.brace = last

    def _closing_brace(self, depth: int) -> None:
        level = next((level for level in self._levels if level.depth == depth), None)
        if level and level.brace:
            children = self._below(depth)[1] if self._levels[-1].depth > depth else []
            node, level.brace = level.brace, None
            adopt(node, children or [nothing_reported()])

    # Levels

    def _open(self, depth: int) -> Level:
        name = ""
        announced = depth
        if self._announced and self._announced[0] <= depth:
            announced, name = self._announced
            self._announced = None
        level = Level(depth, name, announced)
        self._levels.append(level)
        return level

    def _enter(self, depth: int) -> Level:
        """Make the level of this depth the deepest one."""
        if self._levels[-1].depth > depth:
            below, children = self._below(depth)
            if self._levels[-1].depth < depth:
                self._open(depth)
            if below and children:
                self._levels[-1].lose(children, below.name)
        elif self._levels[-1].depth < depth:
            self._open(depth)
        return self._levels[-1]

    def _below(self, depth: int) -> tuple[Level | None, list[Node]]:
        """Close all levels deeper than this. Returns the shallowest of them with its results."""
        below: Level | None = None
        children: list[Node] = []
        while self._levels[-1].depth > depth:
            level = self._levels.pop()
            if below and children:
                level.lose(children, below.name)
            below, children = level, level.results()
        return below, children

    def _answer(self, depth: int, node: Node, children: list[Node]) -> list[Node]:
        """The subtests of a result that came while a subtest was announced which has reported nothing."""
        assert self._announced
        announced, name = self._announced
        self._announced = None
        if depth < announced:
            return [*children, Node(0, name, Outcome.LOST, "no result")] if children else [nothing_reported()]
        return [nothing_reported()] if name == node.name and not children else children

    # Blocks

    def _begin(self) -> None:
        """Begin a block, at an indented line or `# Subtest`, unless a block is open that still lacks results."""
        if self._opened and not self._levels[0].fulfilled:
            return
        if self._seen_block:
            self._close()
        self._opened = self._seen_block = True

    def _close(self) -> None:
        """End the block, if there is one."""
        top = self._levels[0]
        below, children = self._below(0)
        if below and children and (self._opened or any(one.stated for one in leaves(children))):
            top.lose(children, below.name)
        if self._opened:
            if self._announced:
                top.lose((), self._announced[1])
            results = top.results(must_plan=True)
            self._done += [*results, *self._claims.left(results)]
        else:
            self._outside += [*top.settled, *top.nodes]
        self._levels = [Level(0)]
        self._opened = False
        self._announced = None
        self._claims.clear()
        self._before.clear()

    # YAML, which may hold lines that look like results

    def _in_yaml(self, line: str) -> bool:
        """Take a line of a YAML block. One that is indented less ends it: then it was no YAML, and nothing is skipped."""
        assert self._yaml is not None
        text = line.strip()
        indentation = len(line) - len(line.lstrip())
        if text and indentation < self._yaml_depth:
            self._replay()
            return False
        self._yaml.append(line.rstrip())
        if text == "..." and indentation == self._yaml_depth:
            if self._last and not self._last.outcome.green:
                self._last.diagnostic = "\n".join(filter(None, [self._last.diagnostic, *self._yaml[1:-1]]))
            self._yaml = None
        return True

    def _replay(self) -> None:
        """Read lines again that looked like YAML but are not."""
        assert self._yaml is not None
        lines, self._yaml = self._yaml, None
        for line in lines:
            # Without a result before it, no line begins a YAML block: no line is read more than twice.
            self._last = None
            if not ("ok" in line and (match := tapline.RESULT.match(line)) and self._result(match)):
                self._last = None
                self._other(line)
        self._last = None


def _red(node: Node) -> bool:
    return not node.outcome.green or any(_red(child) for child in node.children)
