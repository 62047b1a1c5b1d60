"""What a series did: each case of a run's base and last point, before and after."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from enum import StrEnum

from msgspec import Struct

from harness.model import BASE, BUILT, JOB, LAST, WARNINGS, CaseResult, Outcome
from harness.results.journal import JobReport, RunReport


class Effect(StrEnum):
    KEPT = "kept"
    """Green before and after, or red, or not run."""
    FIXED = "fixed"
    BROKEN = "broken"
    NEW = "new"
    """It is run only with the series, and green. If it is red, it is broken."""
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
    """By which, if the run has points between."""


def changes(report: RunReport) -> list[Change]:
    """In the order of the architectures and cases; empty if the run has not both points."""
    return [change for arch in _compared(report) for change in _of(report, arch)]


def untested(report: RunReport) -> dict[str, str]:
    """The architectures that cannot be compared although both points were asked for, and why."""
    both = [arch for arch, point in report.jobs if point == LAST and (arch, BASE) in report.jobs]
    return {arch: f"{job.point} was not tested to its end" for arch in both for job in _ends(report, arch) if not _tested(job)}


def _compared(report: RunReport) -> list[str]:
    left_out = untested(report)
    return [arch for arch, point in report.jobs if point == LAST and (arch, BASE) in report.jobs and arch not in left_out]


def _ends(report: RunReport, arch: str) -> list[JobReport]:
    return [report.jobs[arch, point] for point in (BASE, LAST)]


def _tested(job: JobReport) -> bool:
    """Not if it has no kernel, or if the run was cut short: what a case would have shown there is not known."""
    return job.finished and all(result.outcome.green for result in job.results if result.suite in BUILT and result.id != WARNINGS)


def _of(report: RunReport, arch: str) -> Iterator[Change]:
    jobs = [job for (name, _), job in report.jobs.items() if name == arch and job.number is not None and _tested(job)]
    between = sorted(jobs, key=lambda job: job.number or 0)
    before, after = map(_cases, _ends(report, arch))
    for case in dict.fromkeys([*before, *after]):
        old, new = before.get(case), after.get(case)
        effect = of(old, new)
        patch = _patch(case, effect, between) if effect is not Effect.KEPT else ""
        yield Change(arch, case, effect, old, new, patch)


def _cases(job: JobReport) -> dict[str, CaseResult]:
    return {result.id: result for result in job.results if result.suite not in ("apply", JOB) and result.id != WARNINGS}


def of(old: CaseResult | None, new: CaseResult | None) -> Effect:
    """What became of a case; None is one that is not there."""
    if not _ran(old):
        return Effect.KEPT if not _ran(new) else Effect.NEW if _good(new) else Effect.BROKEN
    if not _ran(new):
        return Effect.FIXED if old and _only_if_red(old) else Effect.GONE
    if _good(new):
        return Effect.KEPT if _good(old) else Effect.FIXED
    # If a known failure turns into another failure, such as a crash, that is worse.
    worse = _good(old) or (old and new and old.outcome.green and not new.outcome.green)
    return Effect.BROKEN if worse else Effect.KEPT


def _ran(result: CaseResult | None) -> bool:
    return result is not None and result.outcome is not Outcome.SKIP


def _only_if_red(result: CaseResult) -> bool:
    """What the runner reports of a boot beside the case of that name."""
    return not result.outcome.green and result.id.startswith(("boot:console ", "boot:agent "))


def _good(result: CaseResult | None) -> bool:
    return result is not None and result.outcome is Outcome.PASS


def _patch(case: str, effect: Effect, jobs: list[JobReport]) -> str:
    """The patches, of the series in whose order the jobs are, after which all show what the last one shows."""
    if len(jobs) < 3:
        return ""
    base, found = _cases(jobs[0]).get(case), ""
    for before, job in reversed(list(itertools.pairwise(jobs))):
        if of(base, _cases(job).get(case)) is not effect:
            break
        patch = job.facts.patch or ""
        first = (before.number or 0) + 1
        found = patch if first == job.number else f"one of patches {first} to {job.number}"
    return found


def table(report: RunReport) -> str:
    """For a terminal and for a mail: a row of counts for each architecture, then what changed, 72 columns wide where it can."""
    found = changes(report)
    left_out = [f"{arch}: {why}" for arch, why in untested(report).items()]
    if not found:
        return "\n".join(left_out)
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
    return "\n".join([*lines, *left_out])


def _words(change: Change) -> str:
    old, new = (result.outcome.value if result else "not there" for result in (change.before, change.after))
    return f"{old} -> {new}"
