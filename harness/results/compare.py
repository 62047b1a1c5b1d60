"""Two runs, case by case: what is newly red, newly green, gone, and what changed although nothing that it depends on did."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from harness.model import CaseResult, Difference, Kind, Outcome
from harness.results import effect
from harness.results.effect import Effect
from harness.results.journal import RunReport

_SLOWER = 3.0
_SLOWER_SECONDS = 5.0
"""A case is slower if it takes so many times as long and so many seconds more: a machine is not always as busy."""

_KINDS = {Effect.BROKEN: Kind.NEWLY_RED, Effect.FIXED: Kind.NEWLY_GREEN, Effect.NEW: Kind.NEW, Effect.GONE: Kind.GONE}


def compare(before: RunReport, after: RunReport) -> list[Difference]:
    """By kind, the most telling first. Jobs that one of the runs does not have, or did not finish, are not compared."""
    found = [one for key in before.jobs if key in after.jobs for one in _job(before, after, key)]
    return sorted(found, key=lambda one: list(Kind).index(one.kind))


def uncompared(before: RunReport, after: RunReport) -> list[str]:
    """The jobs of either run that are not compared, `arch/point`."""
    keys = dict.fromkeys([*before.jobs, *after.jobs])
    return [f"{arch}/{point}" for arch, point in keys if not _both_finished(before, after, (arch, point))]


def worse(before: RunReport, after: RunReport) -> list[str]:
    """The reasons why the run `after` is worse than `before`, or cannot be proved to be as good; empty if it is as good. A case
    that was not run counts like a red one."""
    reasons = [one.case for one in compare(before, after) if one.red]
    for key, job in before.jobs.items():
        if job.finished and not _both_finished(before, after, key):
            reasons.append(f"{job.name} was complete in the first run, and is not in the second")
    for key, job in after.jobs.items():
        reds = sum(not result.outcome.green for result in job.results)
        if reds and not (key in before.jobs and before.jobs[key].finished):
            what = "was not complete in the first run" if key in before.jobs else "is new"
            reasons.append(f"{job.name} {what}, and {reds} of its cases {'is' if reds == 1 else 'are'} red")
    if not any(_both_finished(before, after, key) for key in before.jobs):
        reasons.append("no job is complete in both runs: nothing was compared")
    return reasons


def _both_finished(before: RunReport, after: RunReport, key: tuple[str, str]) -> bool:
    return all(key in run.jobs and run.jobs[key].finished for run in (before, after))


def _job(before: RunReport, after: RunReport, key: tuple[str, str]) -> Iterator[Difference]:
    if not _both_finished(before, after, key):
        return
    old, new = before.jobs[key], after.jobs[key]
    same = bool(old.facts.tested) and old.facts.tested == new.facts.tested
    results = [{result.id: result for result in job.results} for job in (old, new)]
    for case in dict.fromkeys([*results[0], *results[1]]):
        was, now = results[0].get(case), results[1].get(case)
        if kind := _kind(was, now, same):
            yield Difference(*key, case, kind, was, now)


def _kind(was: CaseResult | None, now: CaseResult | None, same: bool) -> Kind | None:
    """What changed, with the `same` kernel, guest and expectations or without; None if nothing did."""
    if now and now.outcome is Outcome.FLAKY:
        return None if was and was.outcome is Outcome.FLAKY else Kind.FLAKY
    if was and was.outcome is Outcome.FLAKY and now and not now.outcome.green:
        return Kind.NEWLY_RED
    changed = effect.of(was, now)
    if changed is not Effect.KEPT:
        return Kind.FLAKY if same and _contradict(was, now) else _KINDS[changed]
    return Kind.SLOWER if _slower(was, now) else None


def _contradict(was: CaseResult | None, now: CaseResult | None) -> bool:
    """Whether the case did something else. That a red is a known one, or is none any more, is not its doing."""
    did = {one.outcome for one in (was, now) if one}
    return len(did) > 1 and not (Outcome.XFAIL in did and any(not one.green for one in did))


def _slower(was: CaseResult | None, now: CaseResult | None) -> bool:
    if was is None or now is None or {was.outcome, now.outcome} != {Outcome.PASS}:
        return False
    return now.seconds > _SLOWER * was.seconds and now.seconds > _SLOWER_SECONDS + was.seconds


def table(differences: Sequence[Difference], left_out: Sequence[str] = ()) -> str:
    """For people."""
    lines: list[str] = []
    for kind in Kind:
        told = [one for one in differences if one.kind is kind]
        if told:
            lines += [*([""] if lines else []), f"{kind.value}:"]
        for one in told:
            was, now = (word(result, kind) for result in (one.before, one.after))
            why = one.after.diagnostic.splitlines()[:1] if one.after and not one.after.outcome.green else []
            lines += [f"  {one.arch}/{one.point} {one.case}: {was} -> {now}", *(f"    {line}" for line in why)]
    lines += ["no case changed"] if not differences else []
    if left_out:
        lines += ["", f"not compared, for it is not whole in both: {', '.join(left_out)}"]
    return "\n".join(lines)


def word(result: CaseResult | None, kind: Kind) -> str:
    if result is None:
        return "not there"
    return f"{result.seconds:.1f} s" if kind is Kind.SLOWER else result.outcome.value
