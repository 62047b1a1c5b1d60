"""All cases: a row for each, a cell for each job."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from msgspec import Struct

from harness.model import CaseResult, Outcome
from harness.results.journal import JobReport
from harness.results.page.links import Links
from harness.results.page.symbols import SYMBOLS

_CHUNK = 100
"""Rows that a browser lays out together: those that nobody looks at cost nothing."""
_REASON = 200
"""Characters."""


class Cell(Struct, frozen=True):
    outcome: str
    symbol: str
    title: str
    href: str


class Row(Struct, frozen=True):
    """A case; a cell for each job, None where it was not run."""

    name: str
    outcomes: str
    """All of its, and `red` if one is, for the filter."""
    cells: tuple[Cell | None, ...]
    notes: tuple[str, ...]


class Suite(Struct, frozen=True):
    name: str
    counts: str
    chunks: tuple[tuple[Row, ...], ...]


def cases(jobs: Sequence[JobReport], suite: str, links: Links) -> Suite:
    """Of one suite."""
    found = [{result.name: result for result in job.results if result.suite == suite} for job in jobs]
    names = list(dict.fromkeys(name for results in found for name in results))
    rows = []
    for name in names:
        results = [results.get(name) for results in found]
        cells = tuple(_cell(job, result, links) if result else None for job, result in zip(jobs, results, strict=True))
        rows.append(Row(name, _outcomes(filter(None, results)), cells, tuple(_notes(jobs, results))))
    counts = Counter(result.outcome for results in found for result in results.values())
    told = ", ".join(f"{counts[one]} {one.value}" for one in Outcome if counts[one])
    return Suite(suite, told, tuple(tuple(rows[start : start + _CHUNK]) for start in range(0, len(rows), _CHUNK)))


def _cell(job: JobReport, result: CaseResult, links: Links) -> Cell:
    took = f", {result.seconds:.1f} s" if result.seconds >= 0.05 else ""
    return Cell(result.outcome.value, SYMBOLS[result.outcome], f"{result.outcome.value}{took}", links.best(job, result))


def _outcomes(results: Iterable[CaseResult]) -> str:
    outcomes = dict.fromkeys(result.outcome for result in results)
    return " ".join([*outcomes, *(["red"] if not all(one.green for one in outcomes) else [])])


def _notes(jobs: Sequence[JobReport], results: Sequence[CaseResult | None]) -> Iterable[str]:
    """Why it did not pass, each reason once."""
    reasons: dict[tuple[Outcome, str], list[str]] = {}
    for job, result in zip(jobs, results, strict=True):
        if result and result.outcome is not Outcome.PASS:
            reasons.setdefault((result.outcome, result.diagnostic.partition("\n")[0][:_REASON]), []).append(job.name)
    for (outcome, why), where in reasons.items():
        told = "everywhere" if len(where) == len([one for one in results if one]) > 1 else " ".join(where)
        yield f"{outcome.value} {told}{': ' if why else ''}{why}"
