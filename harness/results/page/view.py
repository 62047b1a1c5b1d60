"""What the page shows of a run, ready for the template, which knows no logic."""

from __future__ import annotations

import datetime
import itertools
import shlex
from collections import Counter
from collections.abc import Iterable, Sequence

from msgspec import Struct

from harness.logs.lines import shortened
from harness.model import BASE, BUILT, LAST, CaseResult, Difference, Kind, Outcome
from harness.results import compare, effect, rundir
from harness.results.effect import Change, Effect
from harness.results.journal import JobReport, RunReport
from harness.results.page import configs, consoles
from harness.results.page.configs import Differences
from harness.results.reproduce import reproduce, resume

SYMBOLS = {
    Outcome.PASS: "✓",
    Outcome.FAIL: "✗",
    Outcome.SKIP: "-",
    Outcome.XFAIL: "⊖",
    Outcome.UNRESOLVED: "?",
    Outcome.CRASH: "✸",
    Outcome.TIMEOUT: "◷",
    Outcome.LOST: "∅",
    Outcome.ERROR: "!",
    Outcome.FLAKY: "≈",
}
"""Nobody has to tell colours apart."""

_WORST = (Outcome.CRASH, Outcome.ERROR, Outcome.TIMEOUT, Outcome.LOST, Outcome.FAIL, Outcome.UNRESOLVED, Outcome.FLAKY)

_CHUNK = 100
"""Rows that a browser lays out together: those that nobody looks at cost nothing."""
_CONSOLE_CHARACTERS = 600_000
_EVIDENCE_CHARACTERS = 400_000
_LEAST_EVIDENCE, _MOST_EVIDENCE = 1_500, 60_000
"""Characters of a red case's log, however many there are."""
_REASON = 200

_Anchors = dict[tuple[str, str, str], list[str]]
"""Where on the consoles a case is, by architecture, point and label; the empty label is the boot."""


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


class Count(Struct, frozen=True):
    """A suite of a job, in the matrix."""

    outcome: str
    """The worst."""
    symbol: str
    text: str
    href: str


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
    command: str
    console: tuple[str, ...]
    """Anchors."""
    tries: tuple[Try, ...]


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
    green: bool
    counts: dict[Outcome, int]
    suites: tuple[str, ...]
    jobs: tuple[Job, ...]
    since: str
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
    logs = {key: _logs(report, job) for key, job in report.jobs.items()}
    anchors = _anchors(report, logs)
    reds, places = _reds(report, anchors)
    red_anchors = {
        anchor
        for job in report.jobs.values()
        for result in job.results
        if not result.outcome.green
        for anchor in _where(job, result, anchors)
    }
    found = dict.fromkeys(result.suite for result in report.results)
    suites = tuple(sorted(found, key=lambda suite: suite not in BUILT))
    manifest = rundir.read_manifest(report.directory)
    compared, changes = report.compared, effect.changes(report)
    return Page(
        report=report,
        began=_when(report.started.time) if report.started else "",
        took=_span(report.finished.time - report.started.time) if report.started and report.finished else "",
        command=shlex.join(manifest.get("command", [])),
        again=resume(report),
        verdict=_verdict(report),
        green=bool(report.finished and report.finished.exit_code == 0),
        counts=report.count(),
        suites=suites,
        jobs=tuple(_job(report, job, suites, logs[key], places) for key, job in report.jobs.items()),
        since=", ".join(dict.fromkeys(compared.since.values())) if compared else "",
        news=tuple(_news(compared.differences, places)) if compared else (),
        outlived=tuple(_outlived(report)),
        reds=tuple(reds),
        effects=tuple(_effects(changes)),
        untested=effect.untested(report),
        changes=tuple(
            sorted(
                (change for change in changes if change.effect is not Effect.KEPT),
                key=lambda change: (list(Effect).index(change.effect), change.case),
            )
        ),
        measured=tuple(_measured(report)),
        cases=tuple(_suite(report, suite, places, anchors) for suite in suites),
        differences=tuple(_differences(report)),
        limits=consoles.limits([log for own in logs.values() for log in own], red_anchors, _CONSOLE_CHARACTERS),
        versions=manifest.get("versions", {}),
    )


def _verdict(report: RunReport) -> str:
    if report.finished is None:
        return "killed before it ended"
    if report.finished.error:
        return report.finished.error
    if report.bisected:
        return report.bisected.answer
    reds = sum(not result.outcome.green for result in report.results)
    return f"{reds} red" if reds else "all green" if report.results else "nothing was run"


def _name(job: JobReport) -> str:
    return f"{job.arch}/{job.point}"


def _logs(report: RunReport, job: JobReport) -> tuple[consoles.Log, ...]:
    paths = sorted((report.directory / job.arch / job.point).glob("console*.log"), key=lambda path: (len(path.name), path.name))
    return tuple(consoles.read(path, f"{job.arch}-{job.point}-{number}") for number, path in enumerate(paths))


def _anchors(report: RunReport, logs: dict[tuple[str, str], tuple[consoles.Log, ...]]) -> _Anchors:
    found: _Anchors = {}
    for (arch, point), job in report.jobs.items():
        # One that was not tested, because another one is the same, has its consoles there.
        leader = job.properties.get("results_of", point)
        for log in logs.get((arch, leader), ()):
            for label, anchor in log.anchors():
                found.setdefault((arch, point, label), []).append(anchor)
    return found


def _where(job: JobReport, result: CaseResult, anchors: _Anchors) -> list[str]:
    found = anchors.get((job.arch, job.point, consoles.label_of(result.id)))
    return found or (anchors.get((job.arch, job.point, ""), [])[:1] if result.suite in ("boot", "kunit") else [])


def _reds(report: RunReport, anchors: _Anchors) -> tuple[list[Red], dict[tuple[str, str, str], str]]:
    """The red cases, and their anchors by architecture, point and case. Those that are the same at several points are one."""
    alike: dict[tuple[str, ...], list[tuple[JobReport, CaseResult]]] = {}
    for job in report.jobs.values():
        for result in job.results:
            if not result.outcome.green:
                alike.setdefault((job.arch, result.id, result.outcome, result.diagnostic), []).append((job, result))
    room = min(_MOST_EVIDENCE, max(_LEAST_EVIDENCE, _EVIDENCE_CHARACTERS // (len(alike) or 1)))
    reds, places = [], {}
    for number, same in enumerate(alike.values(), 1):
        job, result = same[0]
        anchor = f"red-{number}"
        places.update({(one.arch, one.point, result.id): anchor for one, _ in same})
        tries = tuple(
            Try(one.outcome.value, SYMBOLS[one.outcome], one.diagnostic, shortened(one.log, room // len(result.tries)))
            for one in result.tries
        )
        reds.append(
            Red(
                anchor=anchor,
                outcome=result.outcome.value,
                symbol=SYMBOLS[result.outcome],
                case=result.id,
                jobs=tuple(_name(one) for one, _ in same),
                diagnostic=result.diagnostic,
                log="" if tries else shortened(result.log, room),
                command=reproduce(report, job, result),
                console=tuple(_where(job, result, anchors)),
                tries=tries,
            )
        )
    return reds, places


def _job(
    report: RunReport,
    job: JobReport,
    suites: Sequence[str],
    logs: tuple[consoles.Log, ...],
    places: dict[tuple[str, str, str], str],
) -> Job:
    directory = report.directory / job.arch / job.point
    files = sorted(path.name for path in directory.iterdir() if path.is_file()) if directory.is_dir() else []
    longest = max((stage.seconds for one in report.jobs.values() for stage in one.stages.values()), default=1.0) or 1.0
    stages = (
        Stage(stage.stage, stage.seconds, stage.cached, 100 * stage.seconds / longest)
        for stage in job.stages.values()
        if stage.seconds >= 0.05
    )
    return Job(
        name=_name(job),
        anchor=f"{job.arch}-{job.point}",
        counts=tuple(_count(job, suite, places) for suite in suites),
        properties=dict(sorted(job.properties.items())),
        stages=tuple(stages),
        files=tuple(f"{job.arch}/{job.point}/{name}" for name in files),
        logs=logs,
        patch=job.properties.get("patch", "") if job.point not in (BASE, LAST) else "",
    )


def _count(job: JobReport, suite: str, places: dict[tuple[str, str, str], str]) -> Count | None:
    results = [result for result in job.results if result.suite == suite]
    if not results:
        return None
    reds = [result for result in results if not result.outcome.green]
    if reds:
        worst = min(reds, key=lambda result: _WORST.index(result.outcome))
        place = places[job.arch, job.point, worst.id]
        return Count(worst.outcome.value, SYMBOLS[worst.outcome], f"{len(reds)} of {len(results)}", place)
    passed = sum(result.outcome is Outcome.PASS for result in results)
    outcome = Outcome.PASS if passed else Outcome.SKIP
    text = str(passed) if passed == len(results) else f"{passed}+{len(results) - passed}"
    return Count(outcome.value, SYMBOLS[outcome], text, f"suite-{suite}")


def _news(differences: Iterable[Difference], places: dict[tuple[str, str, str], str]) -> Iterable[News]:
    for one in differences:
        before, after = (compare.word(result, one.kind) for result in (one.before, one.after))
        place = places.get((one.arch, one.point, one.case), f"suite-{one.case.partition(':')[0]}")
        red = one.red or one.kind is Kind.FLAKY
        yield News(one.kind.value, f"{one.arch}/{one.point}", one.case, before, after, place, red)


def _outlived(report: RunReport) -> Iterable[tuple[str, str, str]]:
    found: dict[tuple[str, str], list[str]] = {}
    for job in report.jobs.values():
        for one in job.outlived.values():
            found.setdefault((one.case, one.reason), []).append(_name(job))
    return ((case, reason, ", ".join(jobs)) for (case, reason), jobs in found.items())


def _effects(changes: Sequence[Change]) -> Iterable[tuple[str, dict[Effect, int]]]:
    for arch in dict.fromkeys(change.arch for change in changes):
        counts = Counter(change.effect for change in changes if change.arch == arch)
        yield arch, {one: counts[one] for one in Effect}


def _measured(report: RunReport) -> Iterable[Measured]:
    values = {
        (result.id, job.arch, job.point): (result.value, result.unit)
        for job in report.jobs.values()
        for result in job.results
        if result.value is not None
    }
    for case, group in itertools.groupby(sorted(values), key=lambda key: key[0]):
        keys = list(group)
        longest = max(abs(values[key][0] or 0) for key in keys) or 1.0
        bars = []
        for key in keys:
            value, base = values[key][0] or 0.0, values.get((case, key[1], BASE))
            ratio = f"{value / base[0]:.2f}" if key[2] != BASE and base and base[0] else ""
            bars.append(Bar(f"{key[1]}/{key[2]}", value, 100 * abs(value) / longest, ratio))
        yield Measured(case, values[keys[0]][1], tuple(bars))


def _suite(report: RunReport, suite: str, places: dict[tuple[str, str, str], str], anchors: _Anchors) -> Suite:
    jobs = list(report.jobs.values())
    found = [{result.name: result for result in job.results if result.suite == suite} for job in jobs]
    names = list(dict.fromkeys(name for results in found for name in results))
    rows = []
    for name in names:
        results = [results.get(name) for results in found]
        cells = tuple(_cell(job, result, places, anchors) if result else None for job, result in zip(jobs, results, strict=True))
        rows.append(Row(name, _outcomes(filter(None, results)), cells, tuple(_notes(jobs, results))))
    counts = Counter(result.outcome for results in found for result in results.values())
    told = ", ".join(f"{counts[one]} {one.value}" for one in Outcome if counts[one])
    return Suite(suite, told, tuple(tuple(rows[start : start + _CHUNK]) for start in range(0, len(rows), _CHUNK)))


def _cell(job: JobReport, result: CaseResult, places: dict[tuple[str, str, str], str], anchors: _Anchors) -> Cell:
    where = _where(job, result, anchors)
    href = places.get((job.arch, job.point, result.id)) or (where[0] if where else "")
    took = f", {result.seconds:.1f} s" if result.seconds >= 0.05 else ""
    return Cell(result.outcome.value, SYMBOLS[result.outcome], f"{result.outcome.value}{took}", href)


def _outcomes(results: Iterable[CaseResult]) -> str:
    outcomes = dict.fromkeys(result.outcome for result in results)
    return " ".join([*outcomes, *(["red"] if not all(one.green for one in outcomes) else [])])


def _notes(jobs: Sequence[JobReport], results: Sequence[CaseResult | None]) -> Iterable[str]:
    """Why it did not pass, each reason once."""
    reasons: dict[tuple[Outcome, str], list[str]] = {}
    for job, result in zip(jobs, results, strict=True):
        if result and result.outcome is not Outcome.PASS:
            reasons.setdefault((result.outcome, result.diagnostic.partition("\n")[0][:_REASON]), []).append(_name(job))
    for (outcome, why), where in reasons.items():
        told = "everywhere" if len(where) == len([one for one in results if one]) > 1 else " ".join(where)
        yield f"{outcome.value} {told}{': ' if why else ''}{why}"


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
