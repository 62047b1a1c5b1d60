"""What the page shows of a run, ready for the template, which knows no logic."""

from __future__ import annotations

import datetime
import shlex
from collections import Counter
from collections.abc import Iterable, Sequence
from urllib.parse import quote

from msgspec import Struct

from harness.model import BASE, BUILT, LAST, Difference, Kind, Outcome
from harness.results import compare, effect, rundir
from harness.results.effect import Change, Effect
from harness.results.journal import JobReport, RunReport
from harness.results.page import configs, consoles
from harness.results.page.configs import Differences
from harness.results.page.grid import Suite, cases
from harness.results.page.links import Links
from harness.results.page.reds import Red, reds
from harness.results.page.symbols import SYMBOLS, WORST
from harness.results.reproduce import resume

_CONSOLE_CHARACTERS = 600_000


class Count(Struct, frozen=True):
    """A suite of a job, in the matrix."""

    outcome: str
    """The worst."""
    symbol: str
    text: str
    href: str


class Bar(Struct, frozen=True):
    job: str
    value: float
    percent: float
    """Of the longest."""
    ratio: str
    """To the base."""


class Measured(Struct, frozen=True):
    case: str
    unit: str
    bars: tuple[Bar, ...]


class Stage(Struct, frozen=True):
    name: str
    seconds: float
    cached: bool
    percent: float


class Job(Struct, frozen=True):
    name: str
    anchor: str
    counts: tuple[Count | None, ...]
    """By suite."""
    properties: dict[str, str]
    stages: tuple[Stage, ...]
    files: tuple[str, ...]
    """Beside the page."""
    logs: tuple[consoles.Log, ...]
    patch: str
    """The newest at a point between."""


class News(Struct, frozen=True):
    kind: str
    job: str
    case: str
    before: str
    after: str
    href: str
    red: bool


class Page(Struct, frozen=True):
    report: RunReport
    began: str
    took: str
    command: str
    again: str
    verdict: str
    """In a line."""
    error: str
    """What ended it, if it did not end by itself."""
    green: bool
    counts: dict[Outcome, int]
    suites: tuple[str, ...]
    jobs: tuple[Job, ...]
    since: str
    uncompared: tuple[str, ...]
    news: tuple[News, ...]
    outlived: tuple[tuple[str, str, str], ...]
    """Case, reason, jobs."""
    reds: tuple[Red, ...]
    effects: tuple[tuple[str, dict[Effect, int]], ...]
    untested: dict[str, str]
    changes: tuple[Change, ...]
    measured: tuple[Measured, ...]
    cases: tuple[Suite, ...]
    differences: tuple[tuple[str, Differences], ...]
    limits: dict[str, int]
    """Lines of each section of a console."""
    versions: dict[str, str]


def page(report: RunReport) -> Page:
    """Reads what the run's directory holds."""
    archs = list(dict.fromkeys(arch for arch, _ in report.jobs))
    jobs = sorted(report.jobs.values(), key=lambda job: (archs.index(job.arch), int(job.properties.get("number", "0"))))
    logs = {job.key: _logs(report, job) for job in jobs}
    links = Links(report, logs)
    found_red = tuple(reds(report, links))
    red_anchors = {anchor for red in found_red for _, anchor in red.consoles}
    found = dict.fromkeys(result.suite for result in report.results)
    with_reds = {result.suite for result in report.results if not result.outcome.green}
    # On a phone, what is last is not seen.
    suites = tuple(sorted(found, key=lambda one: (one not in with_reds, BUILT.index(one) if one in BUILT else len(BUILT))))
    manifest = rundir.read_manifest(report.directory)
    compared, changes = report.compared, effect.changes(report)
    return Page(
        report=report,
        began=_when(report.started.time) if report.started else "",
        took=_span(report.finished.time - report.started.time) if report.started and report.finished else "",
        command=shlex.join(manifest.get("command", [])),
        again=resume(report),
        verdict=_verdict(report),
        error=report.cut_short,
        green=report.exit_code == 0,
        counts=report.count(),
        suites=suites,
        jobs=tuple(_job(report, job, suites, logs[job.key], links) for job in jobs),
        since=", ".join(dict.fromkeys(compared.since.values())) if compared else "",
        uncompared=tuple(report.uncompared),
        news=tuple(_news(compared.differences, links)) if compared else (),
        outlived=tuple(_outlived(report)),
        reds=found_red,
        effects=tuple(_effects(changes)),
        untested=effect.untested(report),
        changes=tuple(
            sorted(
                (change for change in changes if change.effect is not Effect.KEPT),
                key=lambda change: (list(Effect).index(change.effect), change.case),
            )
        ),
        measured=tuple(_measured(jobs)),
        cases=tuple(cases(jobs, suite, links) for suite in suites),
        differences=tuple(_differences(report)),
        limits=consoles.limits([log for own in logs.values() for log in own], red_anchors, _CONSOLE_CHARACTERS),
        versions=manifest.get("versions", {}),
    )


def _verdict(report: RunReport) -> str:
    if report.cut_short:
        return report.cut_short.partition("\n")[0]
    if report.bisected:
        return report.bisected.answer
    reds = sum(not result.outcome.green for result in report.results)
    return f"{reds} red" if reds else report.unproved or "all green"


def _logs(report: RunReport, job: JobReport) -> tuple[consoles.Log, ...]:
    paths = sorted((report.directory / job.name).glob("console*.log"), key=lambda path: (len(path.name), path.name))
    return tuple(consoles.read(path, f"{job.arch}-{job.point}-{number}") for number, path in enumerate(paths))


def _job(
    report: RunReport,
    job: JobReport,
    suites: Sequence[str],
    logs: tuple[consoles.Log, ...],
    links: Links,
) -> Job:
    directory = report.directory / job.name
    files = sorted(path.name for path in directory.iterdir() if path.is_file()) if directory.is_dir() else []
    longest = max((stage.seconds for one in report.jobs.values() for stage in one.stages.values()), default=1.0) or 1.0
    stages = (
        Stage(stage.stage, stage.seconds, stage.cached, 100 * stage.seconds / longest)
        for stage in job.stages.values()
        if stage.seconds >= 0.05
    )
    return Job(
        name=job.name,
        anchor=f"{job.arch}-{job.point}",
        counts=tuple(_count(job, suite, links) for suite in suites),
        properties=dict(sorted(job.properties.items())),
        stages=tuple(stages),
        files=tuple(f"{job.name}/{quote(name)}" for name in files),
        logs=logs,
        patch=job.properties.get("patch", "") if job.point not in (BASE, LAST) else "",
    )


def _count(job: JobReport, suite: str, links: Links) -> Count | None:
    results = [result for result in job.results if result.suite == suite]
    if not results:
        return None
    reds = [result for result in results if not result.outcome.green]
    if reds:
        worst = min(reds, key=lambda result: WORST.index(result.outcome))
        place = links.red(job.key, worst.id)
        return Count(worst.outcome.value, SYMBOLS[worst.outcome], f"{len(reds)} of {len(results)}", place)
    passed = sum(result.outcome is Outcome.PASS for result in results)
    outcomes = {result.outcome for result in results}
    outcome = next(one for one in (Outcome.PASS, Outcome.XFAIL, Outcome.SKIP) if one in outcomes)
    text = str(passed) if passed == len(results) else f"{passed}+{len(results) - passed}"
    return Count(outcome.value, SYMBOLS[outcome], text, f"suite-{suite}")


def _news(differences: Iterable[Difference], links: Links) -> Iterable[News]:
    for one in differences:
        before, after = (compare.word(result, one.kind) for result in (one.before, one.after))
        place = links.red((one.arch, one.point), one.case) or f"suite-{one.case.partition(':')[0]}"
        red = one.red or one.kind is Kind.FLAKY
        yield News(one.kind.value, f"{one.arch}/{one.point}", one.case, before, after, place, red)


def _outlived(report: RunReport) -> Iterable[tuple[str, str, str]]:
    return ((one.case, one.reason, ", ".join(job.name for job in jobs)) for one, jobs in report.outlived)


def _effects(changes: Sequence[Change]) -> Iterable[tuple[str, dict[Effect, int]]]:
    for arch in dict.fromkeys(change.arch for change in changes):
        counts = Counter(change.effect for change in changes if change.arch == arch)
        yield arch, {one: counts[one] for one in Effect}


def _measured(jobs: Sequence[JobReport]) -> Iterable[Measured]:
    units = {result.id: result.unit for job in jobs for result in job.results if result.value is not None}
    values = {(result.id, job.key): result.value for job in jobs for result in job.results if result.value is not None}
    for case, unit in units.items():
        longest = max(abs(value) for (one, _), value in values.items() if one == case) or 1.0
        bars = []
        for job in jobs:
            if (value := values.get((case, job.key))) is not None:
                base = values.get((case, (job.arch, BASE))) if job.point != BASE else None
                bars.append(Bar(job.name, value, 100 * abs(value) / longest, f"{value / base:.2f}" if base else ""))
        yield Measured(case, unit, tuple(bars))


def _differences(report: RunReport) -> Iterable[tuple[str, Differences]]:
    archs = list(dict.fromkeys(arch for arch, _ in report.jobs))
    for arch in archs:
        points = [point for one, point in report.jobs if one == arch]
        if len(points) > 1:
            yield f"{arch}, between points", configs.between_points(report.directory, arch, points)
    if len(archs) > 1:
        point = LAST if any(point == LAST for _, point in report.jobs) else BASE
        yield f"between architectures, at {point}: what is about tracing", configs.between_archs(report.directory, archs, point)


def _when(seconds: float) -> str:
    return datetime.datetime.fromtimestamp(seconds).astimezone().strftime("%Y-%m-%d %H:%M %Z")


def _span(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"
