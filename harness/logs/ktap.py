"""Parse KTAP and TAP, as the kernel, KUnit and kselftest print them, out of a log that holds other text too.

A block begins with a version line (or a plan, in a log that has none) and ends when its plan is fulfilled: an `ok 1` that a
test prints outside of one counts for nothing. Nesting is by indentation; the `# ` that kselftest puts before a subtest's
lines counts as such. Documentation/dev-tools/ktap.rst, testanything.org/tap-version-14-specification.html."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from msgspec import Struct

from harness.logs.lines import clean, without_printk_prefix
from harness.model import Outcome

_NEST = r"(?P<nest>(?:# | {2,}|\t)*)"
_VERSION = re.compile(_NEST + r"K?TAP version \d+\s*$")
_PLAN = re.compile(_NEST + r"1\.\.(?P<count>\d+)\s*(?:#\s*(?:SKIP\b)?\s*(?P<reason>.*))?$", re.IGNORECASE)
_RESULT = re.compile(_NEST + r"(?P<not>not )?ok\b(?: +(?P<number>\d+))?(?: +-)?(?: +(?P<rest>.*))?$")
_SUBTEST = re.compile(_NEST + r"# Subtest: (?P<name>.*)$")
_DIRECTIVE = re.compile(r"(?:^|\s)#\s*(?P<word>[A-Za-z]+)\b:?\s*(?P<reason>.*)$")
_TOTALS = re.compile(r"\s*# (?:Totals:|[\w.-]+: pass:\d+)")

_DIAGNOSTIC_LINES = 200

_DIRECTIVES = {
    "SKIP": Outcome.SKIP,
    "XFAIL": Outcome.XFAIL,
    "TODO": Outcome.XFAIL,
    "UNRESOLVED": Outcome.UNRESOLVED,
    "TIMEOUT": Outcome.TIMEOUT,
    "ERROR": Outcome.FAIL,
}


class KtapCase(Struct, frozen=True):
    """A result without subtests. `name` has those of its parents before it, joined with dots."""

    name: str
    outcome: Outcome
    diagnostic: str = ""


class _Node(Struct):
    depth: int
    name: str
    outcome: Outcome
    diagnostic: str
    children: list[_Node]


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
    def __init__(self) -> None:
        self._done: list[_Node] = []
        self._pending: list[_Node] = []
        self._plans: dict[int, int] = {}
        self._names: dict[int, str] = {}
        self._before: list[str] = []
        self._active = False
        self._seen_block = False
        self._loose: list[_Node] = []

    def feed(self, line: str) -> None:
        if match := _VERSION.match(line):
            depth = _depth(match)
            if depth == 0:
                self._close()
            self._active = self._seen_block = True
            self._before.clear()
        elif match := _SUBTEST.match(line):
            if self._active:
                self._names[_depth(match)] = match["name"].strip()
            self._before.clear()
        elif match := _PLAN.match(line):
            self._plan(_depth(match), int(match["count"]), (match["reason"] or "").strip())
        elif (match := _RESULT.match(line)) and _is_result(match):
            self._result(match)
        elif line.startswith("Bail out!") and self._active:
            self._pending.append(_Node(0, "bail-out", Outcome.FAIL, line[9:].strip(), []))
        elif line.strip() and not _TOTALS.match(line) and len(self._before) < _DIAGNOSTIC_LINES:
            self._before.append(line.rstrip())

    def finish(self) -> list[_Node]:
        self._close()
        return self._done if self._seen_block else self._loose

    def _plan(self, depth: int, count: int, reason: str) -> None:
        self._before.clear()
        if not self._active and not self._seen_block and depth == 0:
            self._active = self._seen_block = True
            self._pending, self._loose = self._loose, []
        if not self._active:
            return
        if count == 0:
            # 1..0 says that there is nothing to run: a parent's own line, if any, follows. At the top it is all there is.
            if depth == 0:
                self._pending.append(_Node(0, "nothing-to-run", Outcome.SKIP, reason, []))
                self._close()
            return
        # A second plan does not take back what the first one promised.
        self._plans[depth] = max(count, self._plans.get(depth, 0))
        if depth == 0 and sum(node.depth == 0 for node in self._pending) >= count:
            self._close()

    def _result(self, match: re.Match[str]) -> None:
        depth = _depth(match)
        children = [node for node in self._pending if node.depth > depth]
        rest = match["rest"] or ""
        outcome, reason = Outcome.FAIL if match["not"] else Outcome.PASS, ""
        if directive := _DIRECTIVE.search(rest):
            named = _DIRECTIVES.get(directive["word"].upper())
            if named is not None and not (directive["word"].upper() == "TODO" and outcome is Outcome.PASS):
                outcome = named
            rest, reason = rest[: directive.start()], directive["reason"].strip()
        if not outcome.green or not reason:
            shown = self._before if not outcome.green else []
            reason = "\n".join(filter(None, [reason, *shown]))
        self._before.clear()
        name = rest.strip().removeprefix("- ").strip() or f"#{match['number'] or len(self._pending) + 1}"
        if not self._active:
            if not self._seen_block:
                self._loose.append(_Node(depth, name, outcome, reason, []))
            return
        self._pending = [node for node in self._pending if node.depth <= depth]
        self._pending.append(_Node(depth, name, outcome, reason, self._with_missing(children, depth)))
        for inner in [d for d in self._names if d > depth]:
            del self._names[inner]
        top = self._plans.get(0)
        if depth == 0 and top is not None and sum(node.depth == 0 for node in self._pending) >= top:
            self._close()

    def _with_missing(self, children: list[_Node], depth: int) -> list[_Node]:
        """`children` of a node at `depth`, with a lost one for each that their plan promised and nobody reported. Deeper
        ones whose parent never reported get that parent, lost."""
        for inner in sorted({node.depth for node in children} | {d for d in self._plans if d > depth}, reverse=True):
            level = [node for node in children if node.depth == inner]
            planned = self._plans.pop(inner, 0)
            missing = [
                _Node(inner, f"#{number}", Outcome.LOST, "planned, but never reported", [])
                for number in range(len(level) + 1, planned + 1)
            ]
            if any(node.depth < inner for node in children) or not missing + level:
                parents = [node for node in children if node.depth < inner]
                if level + missing:
                    lost = _Node(parents[-1].depth, self._names.pop(inner, "unnamed"), Outcome.LOST, "no result", level + missing)
                    children = [*parents, lost]
            else:
                children = [*level, *missing]
        return children

    def _close(self) -> None:
        """End the block: what is pending at the top is done, what is pending deeper lost its parent."""
        if self._active:
            deep = [node for node in self._pending if node.depth > 0]
            top = [node for node in self._pending if node.depth == 0]
            planned = self._plans.pop(0, 0)
            if deep or self._plans:
                inner = min([node.depth for node in deep] + list(self._plans))
                name = self._names.get(inner, "unnamed")
                top.append(_Node(0, name, Outcome.LOST, "no result", self._with_missing(deep, 0)))
            for number in range(len(top) + 1, planned + 1):
                top.append(_Node(0, f"#{number}", Outcome.LOST, "planned, but never reported", []))
            self._done += top
        self._pending, self._active = [], False
        self._plans.clear()
        self._names.clear()


def _is_result(match: re.Match[str]) -> bool:
    """Without a number, `ok` at the start of prose is easily taken for a result; inside a diagnostic it always would be."""
    return match["number"] is not None or ("#" not in match["nest"] and (match["rest"] or "").startswith("- "))


def _depth(match: re.Match[str]) -> int:
    return len(match["nest"].expandtabs(4))


def _cases(node: _Node, prefix: str) -> list[KtapCase]:
    name = f"{prefix}.{node.name}" if prefix else node.name
    below = [case for child in node.children for case in _cases(child, name)]
    # A parent that is red for a reason of its own must not vanish behind green children.
    if below and (node.outcome.green or any(not case.outcome.green for case in below)):
        return below
    return [*below, KtapCase(name, node.outcome, node.diagnostic)]


def _unique(cases: Iterable[KtapCase]) -> list[KtapCase]:
    seen: Counter[str] = Counter()
    result = []
    for case in cases:
        seen[case.name] += 1
        name = case.name if seen[case.name] == 1 else f"{case.name}#{seen[case.name]}"
        result.append(KtapCase(name, case.outcome, case.diagnostic))
    return result
