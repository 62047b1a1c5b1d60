"""The order of the stages: series -> tree -> commits -> a job for every architecture at every point."""

from __future__ import annotations

import contextlib
import errno
import functools
import itertools
import os
import platform
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from harness import __version__, kernel, process, sandbox, series, shared, tree
from harness.cache import Cache, file_digest
from harness.errors import HarnessError, UserError
from harness.guest import HERE
from harness.guest.initramfs import SELFTESTS
from harness.hosts import Fleet
from harness.job import Context, Job, away, space
from harness.keys import key
from harness.model import AppliedSeries, Point
from harness.progress import Progress
from harness.request import Request
from harness.results import History, Journal, RunReport, journal, junit, page, read_run, rundir
from harness.sandbox import Sandbox
from harness.schedule import Scheduler, Task
from harness.suites.known import read_known

if TYPE_CHECKING:
    from harness.cluster.dask import Cluster


class Prepared(Struct, frozen=True):
    """A series that lies on its tree, ready to be built and tested at any of its points."""

    context: Context
    cores: int
    all_built: Callable[[], None]
    """Called when nothing is left to build: runs that wait for that (--wait) begin to build."""

    def test(self, points: Sequence[Point], built: Callable[[], None] = lambda: None) -> None:
        """Build and test all that was asked for at these points, less what was done before. What comes of it is in the journal.
        `built` is called when all of it is built."""
        context = self.context
        if context.cluster:
            built()
            errands = away.tasks(context, points)
            Scheduler(self.cores, slots={away.PLACE: len(errands)}).run(errands)
            return
        space.check(context, points)
        scheduler = Scheduler(self.cores, slots=context.fleet.slots)
        try:
            scheduler.run(_tasks(context, points, built))
        finally:
            context.events.write(journal.Used(journal.now(), scheduler.usage))


Plan = Callable[[Prepared], None]
"""What to test, and in which order."""


def everything(prepared: Prepared) -> None:
    """All points that were asked for."""
    request = prepared.context.request
    made = [series.points.make(number, request.series, prepared.context.applied) for number in request.points]
    _announce(prepared.context, made)
    prepared.test(made, prepared.all_built)


def _announce(context: Context, points: Sequence[Point]) -> None:
    """Write the planned jobs to the journal, so that a job without a result is reported as an error."""
    suites = tuple(selection.suite for selection in context.request.selections)
    for point in points:
        for target in context.request.archs:
            if context.before.job(target.name, point.name).planned is None:
                context.events.write(journal.JobPlanned(journal.now(), target.name, point.name, suites))


def run(
    request: Request, cache: Cache, out: Path, progress: Progress, plan: Plan = everything, history: History | None = None
) -> RunReport:
    """Run what was asked for. The result is in the returned report, in a new directory below `out`, and in the history.

    Raises UserError before anything was started; later errors are part of the report."""
    read_known()  # so that a damaged file is said before anything is started
    with _cluster(request) as cluster, cache.opened() as built:
        directory = rundir.create(out, request.series.name)
        said = journal.RunStarted(
            journal.now(),
            request.series.name,
            request.tree,
            request.arguments,
            request.series.digest,
            str(Path.cwd()),
            request.scope,
            _expected(request),
        )
        with Journal(directory) as events:
            rest = (events, progress, built)
            setting = _Setting(request, cache, cluster, RunReport(directory), *rest)
            return _perform(setting, said, plan, history)


def resume(
    request: Request, cache: Cache, directory: Path, progress: Progress, plan: Plan = everything, history: History | None = None
) -> RunReport:
    """Go on with a run that was cut short, after its last finished case. `request` is what it was started with.

    Raises UserError if the series, or what is expected of it, is another one by now."""
    expected = _expected(request)
    # Read only when nobody else can write it any more.
    with _cluster(request) as cluster, cache.opened() as built, Journal(directory) as events:
        before = read_run(directory)
        if before.started is None or before.started.digest != request.series.digest:
            raise UserError(f"{request.series.name} is not what it was when {directory} began", hint="start a new run")
        if before.started.expected not in ("", expected):
            hint = "claims, limits, must-run cases, known failures or a configuration fragment changed since: start a new run"
            raise UserError(f"what is expected of {request.series.name} is not what it was when {directory} began", hint=hint)
        said = journal.RunResumed(journal.now())
        before.add(said)
        setting = _Setting(request, cache, cluster, before, events, progress, built)
        return _perform(setting, said, plan, history)


def _expected(request: Request) -> str:
    """Digest of what decides, beside the patches, which results are green. Raises UserError for a damaged known.toml."""
    own = request.series
    return key(
        "expected",
        1,
        must_run=own.must_run,
        claims=own.claims,
        measures=own.measures,
        known=read_known(),
        fragments=[file_digest(path) for path in (own.fragment, *request.fragments) if path],
    )


def _cluster(request: Request) -> AbstractContextManager[Cluster | None]:
    """Raises UserError and InfrastructureError if there is none that does what was asked for."""
    if not request.scheduler:
        return contextlib.nullcontext()
    try:
        # What it needs takes a while to import.
        from harness.cluster import dask
    except ImportError as error:
        raise UserError(f"no Dask here: {error}", hint="pip install 'fgraph-harness[cluster]'") from None
    return dask.connected(request.scheduler, request.archs, request.options.accel)


class _Setting(Struct, frozen=True):
    request: Request
    cache: Cache
    cluster: Cluster | None
    before: RunReport
    events: Journal
    progress: Progress
    all_built: Callable[[], None]


def _perform(setting: _Setting, said: journal.Event, plan: Plan, history: History | None) -> RunReport:
    code, error = 0, ""
    try:
        setting.events.write(said)
        setting.cache.say = setting.progress.say
        artefacts = shared.opened(setting.request.shared, setting.cache, setting.progress.say)
        with artefacts as setting.cache.shared, _prepared(setting) as prepared:
            plan(prepared)
    except KeyboardInterrupt:
        code, error = 130, "interrupted"
    except HarnessError as failure:
        code, error = failure.exit_code, f"error: {failure.message}" + (f"\nhint: {failure.hint}" if failure.hint else "")
    except Exception as failure:
        if isinstance(failure, OSError) and failure.errno in (errno.ENOSPC, errno.EDQUOT):
            code, error = 3, f"error: the disk is full: {failure}\nhint: free some, or use --cache DIR and --out DIR"
        else:
            code, error = 3, f"error: unexpected {type(failure).__name__}: {failure}\n{traceback.format_exc()}"
    return _finish(setting.before.directory, setting.events, code, error, history)


@contextlib.contextmanager
def _prepared(setting: _Setting) -> Iterator[Prepared]:
    request, cache, before, progress = setting.request, setting.cache, setting.before, setting.progress
    earlier = rundir.read_manifest(before.directory)
    manifest = _manifest(request)
    if earlier:
        # What a run was resumed with may be newer than what it began with.
        manifest["earlier"] = [*earlier.pop("earlier", []), earlier]
    manifest["sandbox"] = sandbox.enter(Sandbox(request.options.sandbox), cache)
    progress.say(f"sandbox: {manifest['sandbox']}")
    if not earlier:
        rundir.write_manifest(before.directory, manifest)
    progress.step("tree", "import", request.tree)
    source = tree.resolve(request.tree, cache)
    progress.say(f"tree {source.version} from {source.source}")
    for job in before.jobs.values():
        if job.facts.base not in (None, source.commit):
            raise UserError(f"{request.tree} is another tree than when the run began", hint="start a new run")
    manifest["tree"] = msgspec.structs.asdict(source)
    rundir.write_manifest(before.directory, manifest)
    named = request.options.selftests
    selftests = tree.resolve(named, cache) if named else source
    if named:
        progress.say(f"selftests {selftests.version} from {selftests.source}")
        if not tree.Store(cache).has_folder(selftests.commit, SELFTESTS):
            raise UserError(f"{named} has no {SELFTESTS}", hint="--selftests takes a kernel tree")
        for job in before.jobs.values():
            if job.facts.selftests not in (None, selftests.commit):
                message = f"{named} is another tree than when the run began"
                raise UserError(message, hint="start a new run")
        manifest["selftests"] = msgspec.structs.asdict(selftests)
        rundir.write_manifest(before.directory, manifest)
    for fact in request.series.facts:
        progress.say(f"{request.series.name}: {fact}")
    progress.step("tree", "apply", request.series.name)
    applied = AppliedSeries(source.commit, ()) if request.given else series.apply(request.series, source, cache)
    suites = {selection.suite for selection in request.selections}
    if applied.complete:  # a series that does not apply is red already, and may be for another tree
        wanted = [one for one in request.series.conditions if one.suite in suites]
        series.conditions.check(wanted, tree.Store(cache), source.commit, request.series.patches, source.version)
    progress.done("tree")
    cores = request.options.jobs or len(os.sched_getaffinity(0))
    with contextlib.closing(kernel.Jobserver(cores)) as jobserver:
        news = series.points.news(request.points)
        fleet = Fleet(request.hosts)
        context = Context(
            request, cache, source, applied, before, setting.events, progress, jobserver, selftests, fleet, setting.cluster, news
        )
        yield Prepared(context, cores, setting.all_built)


def _tasks(context: Context, points: Sequence[Point], built: Callable[[], None]) -> list[Task]:
    """The jobs of the first point. They all build from one work tree, so those of the next one follow when the last of these
    is built; testing goes on meanwhile. `built` is called when there is nothing left to build."""
    if not points:
        built()
        return []
    jobs = [Job(context, arch, points[0]) for arch in context.request.archs]
    tasks = [job.task() for job in jobs if not job.finished]
    if not tasks:
        return _tasks(context, points[1:], built)
    unfinished = itertools.count(len(tasks) - 1, -1)

    def after(work: Callable[[], Iterable[Task]]) -> Iterable[Task]:
        following = list(work())
        # Whoever finishes last brings the next point; a step of a counter is atomic.
        return [*following, *_tasks(context, points[1:], built)] if next(unfinished) == 0 else following

    return [msgspec.structs.replace(task, work=functools.partial(after, task.work)) for task in tasks]


def _finish(directory: Path, events: Journal, code: int, error: str, history: History | None) -> RunReport:
    """Whatever happened, what is known gets reported; a full disk may keep us from writing it down."""
    report = read_run(directory)
    report.finished = finished = journal.RunFinished(journal.now(), code or exit_code(report), error)

    def remember() -> None:
        if history:
            if compared := history.compared(report):
                report.add(compared)
                events.write(compared)
            history.record(report)

    steps: dict[str, Callable[[], None]] = {
        "the history": remember,
        "junit.xml": lambda: junit.write(report, directory / "junit.xml"),
        "report.html": lambda: page.write(report, directory / "report.html"),
        # Last, for the journal is the truth.
        "journal.jsonl": lambda: events.write(finished),
    }
    for what, write in steps.items():
        try:
            write()
        except (Exception, KeyboardInterrupt) as failure:
            # None takes the others along, nor the run's own result.
            hint = f"\nhint: {failure.hint}" if isinstance(failure, HarnessError) and failure.hint else ""
            said = f"{finished.error}\nerror: {what}: {str(failure) or type(failure).__name__}{hint}".strip()
            worse = 130 if isinstance(failure, KeyboardInterrupt) else 3
            report.finished = finished = journal.RunFinished(finished.time, finished.exit_code or worse, said)
    return report


def exit_code(report: RunReport) -> int:
    """The exit code of a run that ended by itself."""
    return report.judged


def _manifest(request: Request) -> dict[str, Any]:
    return {
        "command": ["harness", *request.arguments],
        "series": {name: getattr(request.series, name) for name in ("name", "origin", "digest", "base", "notes")},
        "archs": [target.name for target in request.archs],
        "points": [series.points.name_of(number, request.series) for number in request.points],
        "suites": [msgspec.structs.asdict(selection) for selection in request.selections],
        "fragments": [str(path) for path in request.fragments],
        **({"kernel": str(request.given.image), "modules": str(request.given.modules or "")} if request.given else {}),
        "versions": {
            "harness": __version__,
            "python": platform.python_version(),
            "system": platform.platform(),
            "git": _version("git"),
            # What workers have is in the properties of their jobs.
            **({} if request.scheduler else _versions(request)),
        },
    }


def _versions(request: Request) -> dict[str, str]:
    """Of what builds and boots."""
    tools = {}
    for arch in request.archs:
        compiler = kernel.detect(arch, request.options.toolchain).version
        tools[arch.name] = f"{compiler}; {HERE.version(arch)}"
    return {"make": _version("make"), **tools}


def _version(tool: str) -> str:
    return process.run([tool, "--version"]).stdout.splitlines()[0]
