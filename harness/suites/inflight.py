"""Find the boot-time test that was running when the kernel reported a splat."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from harness.logs import ktap
from harness.logs.lines import without_printk_prefix
from harness.logs.splat import Splat, scan
from harness.model import CaseResult, Outcome
from harness.suites.titles import own_failure, titles

_BEGIN = re.compile(r"\s*(?:K?TAP version \d|# Subtest: )")
_RESULT = re.compile(r"(?P<nest>[\s#]*)(?:not )?ok (?P<number>\d+)(?P<name>[^#]*)")
_MARK = "the case in flight"
"""Replaces the name of one result in a copy of the log, so that the parser shows its full name."""


def crashed(suite: str, name: str, splats: Sequence[Splat], result: CaseResult | None = None) -> CaseResult:
    """The case in which the kernel reported `splats`. `result` is the test's own result; None if it
    reported none."""
    own = f"the test itself: {result.outcome}\n{result.diagnostic}".strip() if result else ""
    log = "\n".join(filter(None, [*(splat.text for splat in splats), own]))
    lines = [*titles(splats), *(own_failure(splats, result) if result else ())]
    return CaseResult(suite, name, Outcome.CRASH, diagnostic="\n".join(lines), log=log)


def kunit(suite: str, lines: Sequence[str]) -> Iterator[CaseResult]:
    """The cases of a KTAP log. A case is a crash if the kernel reported a splat after the previous case's
    result and before its own."""
    cases = [CaseResult(suite, case.name, case.outcome, diagnostic=case.diagnostic) for case in ktap.parse(lines)]
    found: dict[str, list[Splat]] = {}
    for splat in scan(lines):
        if name := _in_flight(lines, splat.line - 1):
            found.setdefault(name, []).append(splat)
    for case in cases:
        yield crashed(suite, case.name, found[case.name], case) if case.name in found else case
    names = {case.name for case in cases}
    yield from (crashed(suite, name, splats) for name, splats in found.items() if name not in names)


def _in_flight(lines: Sequence[str], index: int) -> str:
    """The name of the first case whose result comes after line `index`; empty if KTAP has not begun by then."""
    messages = [without_printk_prefix(line) for line in lines]
    if not any(_BEGIN.match(message) for message in messages[:index]):
        return ""
    results = ((number, match) for number in range(index, len(messages)) if (match := _RESULT.match(messages[number])))
    first = next(results, None)
    if first is None:
        return ""
    number, match = first
    # Only the parser knows the names of the parents, so it reads a copy of the log with a marked result.
    marked = [*lines]
    marked[number] = f"{match['nest']}not ok {match['number']} {_MARK}"
    name = match["name"].strip().removeprefix("- ") or f"#{int(match['number'])}"
    return next((case.name.replace(_MARK, name) for case in ktap.parse(marked) if case.name.endswith(_MARK)), "")
