"""Parse KTAP and TAP, as the kernel, KUnit and kselftest print them, out of a log that holds other text too.

A block begins with a version line (or a plan, in a log that has none) and ends when its plan is fulfilled: an `ok 1` that a
test prints outside of one counts for nothing. Nesting is by indentation; the `# ` that kselftest puts before a subtest's
lines counts as such. Documentation/dev-tools/ktap.rst, testanything.org/tap-version-14-specification.html."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterable, Sequence

from msgspec import Struct

from harness.logs.lines import clean, without_printk_prefix
from harness.model import Outcome

_NEST = r"(?P<nest>(?:# |  |\t)*+ ?)"
_VERSION = re.compile(_NEST + r"K?TAP version \d+\s*$")
_PLAN = re.compile(_NEST + r"1\.\.(?P<count>\d{1,9})\s*(?:#\s*(?:SKIP\b)?\s*(?P<reason>.*))?$", re.IGNORECASE)
_RESULT = re.compile(_NEST + r"(?P<not>not )?ok\b(?: +(?P<number>\d{1,9}))?(?P<dash> +-)?(?: +(?P<rest>.*))?$")
_SUBTEST = re.compile(r"(?P<nest>(?:  |\t)*+(?:# (?=# ))*)# Subtest: (?P<name>.*)$")
_REMARK = re.compile(r"(?:^|\s)#\s*+(?P<text>(?P<word>\w*+)[^#]*+)$")
_TOTALS = re.compile(r"\s*# (?:Totals:|[\w.-]+: pass:\d+)")

_WIDEST = 4000
"""Characters of a line that are looked at."""
_DEEPEST = 128
"""Columns: what is nested deeper counts as that deep."""
_DIAGNOSTIC_LINES = 200
_LONGEST_GAP = 100
"""Missing results that are named one by one; of more, only the number is told."""

_DIRECTIVES = {
    "SKIP": Outcome.SKIP,
    "XFAIL": Outcome.XFAIL,
    "TODO": Outcome.XFAIL,
    "UNRESOLVED": Outcome.UNRESOLVED,
    "TIMEOUT": Outcome.TIMEOUT,
}


class KtapCase(Struct, frozen=True, gc=False):
    """A result without subtests. `name` has those of its parents before it, joined with dots."""

    name: str
    outcome: Outcome
    diagnostic: str = ""


class _Node(Struct, gc=False):
    """Never part of a cycle; there may be hundreds of thousands, which the collector need not look at again and again."""

    depth: int
    number: int | None
    name: str
    outcome: Outcome
    diagnostic: str = ""
    children: Sequence[_Node] = ()


def parse(text: Iterable[str | bytes]) -> list[KtapCase]:
    """All cases in a log, in order, with unique names. What a plan promised and nobody reported is `lost`; so is a parent
    whose own result never came."""
    parser = _Parser()
    for line in text:
        parser.feed(without_printk_prefix(clean(line)))
    return _unique(case for node in parser.finish() for case in _cases(node, ""))


def summary(cases: Iterable[KtapCase]) -> dict[str, int]:
    return dict(Counter(case.outcome.value for case in cases))


class _Parser:
    """`_pending` holds results in the order they came; one takes those before it that are deeper as its children."""

    def __init__(self) -> None:
        self._done: list[_Node] = []
        self._outside: list[_Node] = []
        self._pending: list[_Node] = []
        self._plans: dict[int, int] = {}
        self._names: dict[int, str] = {}
        self._before: list[str] = []
        self._at_top = 0
        self._active = False
        self._seen_block = False
        self._margin = ""
        """What stands before every line, where something puts a space there."""

    def feed(self, line: str) -> None:
        line = line[:_WIDEST].removeprefix(self._margin)
        # Results are what there is most of.
        if "ok" in line and (match := _RESULT.match(line)) and _is_result(match):
            self._result(match)
        elif match := _VERSION.match(line):
            if not self._active and match["nest"] == " ":
                self._margin = " "
            if match["nest"] in ("", self._margin):
                self._close()
            self._active = self._seen_block = True
            self._before.clear()
        elif match := _SUBTEST.match(line):
            self._names[_depth(match)] = match["name"].strip()
            self._before.clear()
        elif match := _PLAN.match(line):
            self._plan(_depth(match), int(match["count"]), (match["reason"] or "").strip())
        elif line.lstrip("# \t").startswith("Bail out!"):
            self._done.append(_Node(0, None, "bail-out", Outcome.FAIL, line.strip()))
        elif line.strip() and not _TOTALS.match(line) and len(self._before) < _DIAGNOSTIC_LINES:
            self._before.append(line.rstrip())

    def finish(self) -> list[_Node]:
        self._close()
        # Beside blocks, an `ok` may be anything that somebody printed; a `not ok` is not something to pass over.
        return [*self._done, *(node for node in self._outside if not self._seen_block or not node.outcome.green)]

    def _plan(self, depth: int, count: int, reason: str) -> None:
        self._before.clear()
        if not self._active and depth == 0:
            if not self._seen_block:
                self._pending, self._outside = self._outside, []
                self._at_top = sum(node.depth == 0 for node in self._pending)
            self._active = self._seen_block = True
        if not self._active:
            return
        # A second plan does not take back what the first one promised.
        self._plans[depth] = max(count, self._plans.get(depth, 0))
        if depth == 0 and count == 0:
            why = reason or "nothing was run, and nobody says why"
            self._pending.append(_Node(0, None, "nothing-to-run", Outcome.SKIP if reason else Outcome.LOST, why))
        if depth == 0 and self._at_top >= count:
            self._close()

    def _result(self, match: re.Match[str]) -> None:
        depth = _depth(match)
        number = int(match["number"]) if match["number"] else None
        outcome = Outcome.FAIL if match["not"] else Outcome.PASS
        name, reason = match["rest"] or "", ""
        if "#" in name and (remark := _REMARK.search(name)):
            name, reason = name[: remark.start()], remark["text"].strip()
            word = remark["word"].upper() if remark["word"] != "timeout" else ""
            if word in _DIRECTIVES and not (word == "TODO" and outcome is Outcome.PASS):
                outcome = _DIRECTIVES[word]
                reason = reason[len(word) :].lstrip(": ")
        if not outcome.green:
            reason = "\n".join(filter(None, [reason, *self._before]))
        self._before.clear()
        node = _Node(depth, number, name.strip() or f"#{number or len(self._pending) + 1}", outcome, reason)
        if not self._active:
            self._outside.append(node)
            return
        start = len(self._pending)
        while start and self._pending[start - 1].depth > depth:
            start -= 1
        if start < len(self._pending) or max(self._plans, default=0) > depth:
            node.children = self._adopt(self._pending[start:], depth)
        self._pending[start:] = [node]
        if self._names:
            if outcome is Outcome.PASS and not node.children and max(self._names) > depth:
                node.outcome, node.diagnostic = Outcome.LOST, "a subtest was announced, and nothing of it was reported"
            self._names = {inner: name for inner, name in self._names.items() if inner <= depth}
        self._at_top += depth == 0
        if depth == 0 and 0 in self._plans and self._at_top >= self._plans[0]:
            self._close()

    def _adopt(self, nodes: list[_Node], depth: int) -> list[_Node]:
        """The children of a result at `depth`: `nodes`, all deeper, with a lost one for each that a plan promised and nobody
        reported, and with a lost parent for those whose parent never reported."""
        planned = [inner for inner in self._plans if inner > depth]
        if not (nodes or planned):
            return []
        level = min([node.depth for node in nodes] + planned)
        children: list[_Node] = []
        orphans: list[_Node] = []
        for node in nodes:
            (children if node.depth == level else orphans).append(node)
        inner = [node.depth for node in orphans] + [plan for plan in planned if plan > level]
        if inner:
            name = self._names.get(min(inner), "unnamed")
            children.append(_Node(level, len(children) + 1, name, Outcome.LOST, "no result", self._adopt(orphans, level)))
        return [*children, *_missing(children, level, self._plans.pop(level, 0))]

    def _close(self) -> None:
        """End the block, if there is one."""
        if self._active:
            if 0 not in self._plans:
                self._pending.append(_Node(0, None, "plan", Outcome.LOST, "the log has no plan: nobody knows what is missing"))
            self._done += self._adopt(self._pending, -1)
        self._pending, self._active, self._at_top = [], False, 0
        self._plans.clear()
        self._names.clear()


def _missing(nodes: list[_Node], depth: int, planned: int) -> list[_Node]:
    numbers = {node.number for node in nodes}
    reported = set(range(1, len(nodes) + 1)) if None in numbers else numbers
    if planned - len(reported) > _LONGEST_GAP:
        return [_Node(depth, None, "missing", Outcome.LOST, f"{planned} planned, {len(reported)} reported")]
    gaps = (number for number in range(1, planned + 1) if number not in reported)
    return [_Node(depth, number, f"#{number}", Outcome.LOST, "planned, but never reported") for number in gaps]


def _is_result(match: re.Match[str]) -> bool:
    """Without a number, `ok` at the start of prose is easily taken for a result; inside a diagnostic it always would be."""
    return match["number"] is not None or ("#" not in match["nest"] and match["dash"] is not None)


def _depth(match: re.Match[str]) -> int:
    nest = match["nest"]
    return min(_DEEPEST, len(nest.expandtabs(4))) if nest else 0


def _cases(node: _Node, prefix: str) -> list[KtapCase]:
    name = f"{prefix}.{node.name}" if prefix else node.name
    below = [case for child in node.children for case in _cases(child, name)]
    # A parent that is red for a reason of its own must not vanish behind green children.
    if below and (node.outcome.green or any(not case.outcome.green for case in below)):
        return below
    return [*below, KtapCase(name, node.outcome, node.diagnostic)]


def _unique(cases: Iterable[KtapCase]) -> list[KtapCase]:
    seen: set[str] = set()
    result = []
    for case in cases:
        if case.name in seen:
            copies = (f"{case.name}#{copy}" for copy in itertools.count(2))
            case = KtapCase(next(name for name in copies if name not in seen), case.outcome, case.diagnostic)
        seen.add(case.name)
        result.append(case)
    return result
