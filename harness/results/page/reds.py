"""The red cases and their evidence."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from harness.logs.lines import shortened
from harness.results.journal import RunReport
from harness.results.page.links import Links
from harness.results.page.symbols import SYMBOLS
from harness.results.reproduce import reproduce

_EVIDENCE_CHARACTERS = 400_000
_LEAST_EVIDENCE, _MOST_EVIDENCE = 300, 60_000
"""Characters of a red case's log, however many there are."""


class Try(Struct, frozen=True):
    outcome: str
    symbol: str
    diagnostic: str
    log: str


class Red(Struct, frozen=True):
    anchor: str
    outcome: str
    symbol: str
    case: str
    jobs: tuple[str, ...]
    """Where it is the very same."""
    diagnostic: str
    log: str
    """Of the first job."""
    command: str
    consoles: tuple[tuple[str, str], ...]
    """Jobs, and anchors of its lines there."""
    tries: tuple[Try, ...]


def reds(report: RunReport, links: Links) -> Iterator[Red]:
    """Those that are the same at several points are one. `links` get to know of them."""
    found = report.reds
    room = min(_MOST_EVIDENCE, max(_LEAST_EVIDENCE, _EVIDENCE_CHARACTERS // (len(found) or 1)))
    for number, (result, jobs) in enumerate(found, 1):
        anchor = f"red-{number}"
        for one in jobs:
            links.note_red(one, result.id, anchor)
        tries = tuple(
            Try(one.outcome.value, SYMBOLS[one.outcome], one.diagnostic, shortened(one.log, room // len(result.tries)))
            for one in result.tries
        )
        yield Red(
            anchor=anchor,
            outcome=result.outcome.value,
            symbol=SYMBOLS[result.outcome],
            case=result.id,
            jobs=tuple(one.name for one in jobs),
            diagnostic=result.diagnostic,
            log="" if tries else shortened(result.log, room),
            command=reproduce(report, jobs[0], result, *jobs[1:]),
            consoles=tuple((one.name, place) for one in jobs for place in links.consoles(one, result)),
            tries=tries,
        )
