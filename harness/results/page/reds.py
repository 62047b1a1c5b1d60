"""The red cases and their evidence."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from harness.logs.lines import shortened
from harness.model import CaseResult
from harness.results.journal import JobReport, RunReport
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
    alike: dict[tuple[str, ...], list[tuple[JobReport, CaseResult]]] = {}
    for job in report.jobs.values():
        for result in job.results:
            if not result.outcome.green:
                alike.setdefault((job.arch, result.id, result.outcome, result.diagnostic), []).append((job, result))
    room = min(_MOST_EVIDENCE, max(_LEAST_EVIDENCE, _EVIDENCE_CHARACTERS // (len(alike) or 1)))
    for number, same in enumerate(alike.values(), 1):
        job, result = same[0]
        anchor = f"red-{number}"
        for one, _ in same:
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
            jobs=tuple(one.name for one, _ in same),
            diagnostic=result.diagnostic,
            log="" if tries else shortened(result.log, room),
            command=reproduce(report, job, result, *(one for one, _ in same[1:])),
            consoles=tuple((one.name, place) for one, told in same for place in links.consoles(one, told)),
            tries=tries,
        )
