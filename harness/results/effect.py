"""What a series did: each case of a run's base and last point, before and after."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterator
from enum import StrEnum

from msgspec import Struct

from harness.model import WARNINGS, CaseResult, Outcome
from harness.results.journal import JobReport, RunReport

_FROM, _TO = "base", "last"
_NOT_OF_A_KERNEL = ("apply:*", WARNINGS)
"""Cases that only a patch can have."""


class Effect(StrEnum):
    KEPT = "kept"
    """Green before and after, or red, or not run."""
    FIXED = "fixed"
    BROKEN = "broken"
    NEW = "new"
    """It is run only with the series."""
    GONE = "gone"
    """It was run only without."""


class Change(Struct, frozen=True):
    """One case. A result is None at a point that has no such case."""

    arch: str
    case: str
    effect: Effect
    before: CaseResult | None
    after: CaseResult | None
    patch: str = ""
    """If the run has points between: the one that it is after, or one of those up to it that could not be tested."""


def changes(report: RunReport) -> list[Change]:
    """In the order of the architectures and cases; empty if the run has not both points."""
    return [
        change
        for arch in dict.fromkeys(arch for arch, _ in report.jobs)
        if (arch, _FROM) in report.jobs and (arch, _TO) in report.jobs
        for change in _of(report, arch)
    ]


def _of(report: RunReport, arch: str) -> Iterator[Change]:
    numbers = {_FROM: 0, _TO: len(report.jobs) * 10_000} | {point: int(point) for _, point in report.jobs if point.isdecimal()}
    jobs = [job for (name, _), job in report.jobs.items() if name == arch and job.point in numbers]
    between = sorted(jobs, key=lambda job: numbers[job.point])
    before, after = (_cases(report.jobs[arch, point]) for point in (_FROM, _TO))
    for case in dict.fromkeys([*before, *after]):
        old, new = before.get(case), after.get(case)
        effect = _effect(old, new)
        patch = _patch(case, effect, between) if effect is not Effect.KEPT else ""
        yield Change(arch, case, effect, old, new, patch)


def _cases(job: JobReport) -> dict[str, CaseResult]:
    return {
        result.id: result
        for result in job.results
        if not any(fnmatch.fnmatchcase(result.id, pattern) for pattern in _NOT_OF_A_KERNEL)
    }


def _effect(old: CaseResult | None, new: CaseResult | None) -> Effect:
    ran, runs = _ran(old), _ran(new)
    if ran != runs:
        return Effect.NEW if runs else Effect.GONE
    if not ran or old is None or new is None or _good(old) == _good(new):
        return Effect.KEPT
    return Effect.FIXED if _good(new) else Effect.BROKEN


def _ran(result: CaseResult | None) -> bool:
    return result is not None and result.outcome is not Outcome.SKIP


def _good(result: CaseResult) -> bool:
    """A known red that is none any more is a change."""
    return result.outcome is Outcome.PASS


def _patch(case: str, effect: Effect, jobs: list[JobReport]) -> str:
    """The newest patch of the first of the jobs, in the order of the series, from which on all show what the last one shows."""
    if len(jobs) < 3:
        return ""
    base, found = _cases(jobs[0]).get(case), ""
    for job in reversed(jobs[1:]):
        if _effect(base, _cases(job).get(case)) is not effect:
            break
        found = job.properties.get("patch", "")
    return found


def table(report: RunReport) -> str:
    """For a terminal and for a mail: a row of counts for each architecture, then what changed, 72 columns wide where it can."""
    found = changes(report)
    if not found:
        return ""
    archs = list(dict.fromkeys(change.arch for change in found))
    width = max(map(len, archs))
    lines = [" " * width + "".join(f"{effect.value:>8}" for effect in Effect)]
    for arch in archs:
        of_arch = [change.effect for change in found if change.arch == arch]
        lines.append(f"{arch:<{width}}" + "".join(f"{of_arch.count(effect):>8}" for effect in Effect))
    told: dict[tuple[Effect, str, str, str], list[str]] = {}
    for change in found:
        if change.effect is not Effect.KEPT:
            told.setdefault((change.effect, change.case, _words(change), change.patch), []).append(change.arch)
    order = (Effect.BROKEN, Effect.GONE, Effect.FIXED, Effect.NEW)
    for effect in order:
        rows = [(case, words, patch, on) for (one, case, words, patch), on in told.items() if one is effect]
        if rows:
            lines += ["", f"{effect.value}:"]
        for case, words, patch, on in rows:
            where = "everywhere" if on == archs and len(archs) > 1 else " ".join(on)
            lines.append(f"  {case} ({where}): {words}")
            if patch:
                lines.append(f"    by {patch}")
    return "\n".join(lines)


def _words(change: Change) -> str:
    old, new = (result.outcome.value if result else "not there" for result in (change.before, change.after))
    return f"{old} -> {new}"
