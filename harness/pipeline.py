"""The order of the stages: series -> tree -> commits -> (configuration -> kernel -> initramfs -> guest -> cases) for every
architecture at every point, each reported to the journal as it happens."""

from __future__ import annotations

import contextlib
import errno
import platform
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from harness import __version__, arch, guest, kernel, series, suites, tree
from harness.arch import Arch
from harness.cache import Cache
from harness.errors import HarnessError, InfrastructureError, UserError
from harness.guest import Boot, qemu
from harness.kernel import kconfig
from harness.model import AppliedSeries, CaseResult, Kernel, Outcome, PatchState, Point, Series, Tree
from harness.progress import Progress
from harness.results import Journal, RunReport, journal, junit, read_run, rundir
from harness.suites import Selection, Target
from harness.suites.policy import Policy, read_known

POINTS = ("base", "last")
DEFAULT_ARCHS = ("x86_64", "arm64")

T = TypeVar("T")


class Request(Struct, frozen=True):
    """What `harness run` was asked for, already checked."""

    series: Series
    tree: str
    archs: tuple[Arch, ...]
    selections: tuple[Selection, ...]
    points: tuple[str, ...]
    fragments: tuple[Path, ...] = ()
    jobs: int | None = None
    accel: str = "auto"
    toolchain: str = "gcc"
    arguments: tuple[str, ...] = ()
    """Those of the command line that repeat it."""


def request(
    *,
    series_spec: str,
    tree_spec: str | None,
    archs: Sequence[str],
    points: str,
    selections: tuple[Selection, ...],
    fragments: Sequence[Path],
    jobs: int | None,
    accel: str,
    toolchain: str,
    arguments: tuple[str, ...],
) -> Request:
    """Check what the command line says. Raises UserError for anything that names nothing."""
    found = series.load(series_spec)
    wanted = tuple(dict.fromkeys(points.split(",")))
    for name in wanted:
        if name not in POINTS:
            raise UserError(f"unknown point '{name}'", hint=f"one of {', '.join(POINTS)}, or several with commas")
    if not found.patches:
        wanted = ("base",)
    targets = tuple(arch.load(name) for name in dict.fromkeys(archs or DEFAULT_ARCHS))
    for target in targets:
        kernel.fragments_for(target, fragments)
    if toolchain not in kernel.TOOLCHAINS:
        raise UserError(f"unknown toolchain '{toolchain}'", hint=f"one of {', '.join(kernel.TOOLCHAINS)}")
    spec = tree_spec or tree.default_spec(found.tested_on)
    tree.check_spec(spec)
    return Request(
        series=found,
        tree=spec,
        archs=targets,
        selections=selections,
        points=wanted,
        fragments=tuple(path.resolve() for path in fragments),
        jobs=jobs,
        accel=accel,
        toolchain=toolchain,
        arguments=arguments,
    )


class _Failed(Exception):
    """A stage ended its job; the case that says so is in the journal."""


def parse_suites(specs: Sequence[str]) -> tuple[Selection, ...]:
    """`NAME` or `NAME:GLOB`, several of one suite joined; all suites if there is none. Raises UserError."""
    globs: dict[str, list[str]] = {}
    for spec in specs:
        name, _, glob = spec.partition(":")
        if name not in suites.ALL:
            raise UserError(f"unknown suite '{name}'", hint=f"one of {', '.join(suites.ALL)}; NAME:GLOB for some of its cases")
        globs.setdefault(name, []).extend([glob] if glob else [])
    whole = {name for name in globs if any(spec == name for spec in specs)}
    return tuple(
        Selection(name, () if name in whole else tuple(globs.get(name, ()))) for name in suites.ALL if name in globs or not specs
    )


def run(request: Request, cache: Cache, out: Path, progress: Progress) -> RunReport:
    """Run everything that was asked for. The result is in the returned report and in a new directory below `out`.

    Raises UserError before anything was started; later errors are part of the report."""
    read_known()  # so that a damaged file is said before anything is started
    with cache.lock():
        directory = rundir.create(out, request.series.name)
        with Journal(directory) as events:
            events.write(journal.RunStarted(journal.now(), request.series.name, request.tree, request.arguments))
            code, error = 0, ""
            try:
                runner = _Runner(request, cache, directory, events, progress)
                runner.run()
            except KeyboardInterrupt:
                code, error = 130, "interrupted"
            except HarnessError as failure:
                code, error = failure.exit_code, "\n".join(filter(None, [failure.message, failure.hint]))
            except OSError as failure:
                if failure.errno not in (errno.ENOSPC, errno.EDQUOT):
                    raise
                code, error = 3, f"the disk is full: {failure}"
            report = _finish(directory, events, code, error)
    return report


def _finish(directory: Path, events: Journal, code: int, error: str) -> RunReport:
    """Whatever happened, what is known gets reported; a full disk may keep us from writing it down."""
    report = read_run(directory)
    if not code:
        outcomes = report.count()
        red = any(not outcome.green for outcome in outcomes)
        code = 3 if Outcome.ERROR in outcomes else 1 if red or not outcomes else 0
    report.finished = journal.RunFinished(journal.now(), code, error)
    with contextlib.suppress(OSError):
        events.write(report.finished)
        junit.write(report, directory / "junit.xml")
    return report


class _Runner:
    def __init__(self, request: Request, cache: Cache, directory: Path, events: Journal, progress: Progress) -> None:
        self._request = request
        self._cache = cache
        self._directory = directory
        self._events = events
        self._progress = progress
        self._store = tree.Store(cache)

    def run(self) -> None:
        request = self._request
        manifest = _manifest(request)
        rundir.write_manifest(self._directory, manifest)
        self._progress.step(f"importing {request.tree}")
        source = tree.resolve(request.tree, self._cache)
        manifest["tree"] = msgspec.structs.asdict(source)
        rundir.write_manifest(self._directory, manifest)
        self._progress.say(f"tree {source.version} from {source.source}")
        self._progress.step(f"applying {request.series.name}")
        applied = series.apply(request.series, source, self._cache)
        for point in self._points(applied):
            for target in request.archs:
                job = _Job(self, target, point, source, applied)
                with contextlib.suppress(_Failed):
                    job.run()

    def _points(self, applied: AppliedSeries) -> Iterator[Point]:
        for name in self._request.points:
            commit = applied.base if name == "base" else applied.tip
            patches = [result.patch for result in applied.results if result.commit] if name != "base" else []
            yield Point(name, commit, self._store.content(commit), patches[-1] if patches else "")


class _Job:
    """One architecture at one point."""

    def __init__(self, runner: _Runner, target: Arch, point: Point, source: Tree, applied: AppliedSeries) -> None:
        self._request = runner._request
        self._cache = runner._cache
        self._store = runner._store
        self._events = runner._events
        self._progress = runner._progress
        self._arch = target
        self._point = point
        self._tree = source
        self._applied = applied
        self._directory = runner._directory / target.name / point.name
        self._directory.mkdir(parents=True)
        patched = point.name != "base"
        self._policy = Policy(target.name, read_known(), self._request.series.must_run if patched else ())
        self._required = tuple(filter(None, [self._request.series.fragment])) if patched else ()

    def run(self) -> None:
        self._events.write(journal.JobStarted(journal.now(), self._arch.name, self._point.name))
        if self._point.name != "base":
            self._report_patches()
        self._properties(base=self._tree.commit, patch=self._point.patch or "none", tree=self._tree.source)
        built = self._stage("build", self._build)
        initramfs = self._stage("initramfs", lambda: guest.build_initramfs(built, self._point.commit, self._arch, self._cache))
        self._test(built, initramfs.path)

    def _report_patches(self) -> None:
        outcomes = {
            PatchState.APPLIED: Outcome.PASS,
            PatchState.UPSTREAM: Outcome.SKIP,
            PatchState.CONFLICT: Outcome.FAIL,
            PatchState.NOT_TRIED: Outcome.LOST,
        }
        whys = {
            PatchState.UPSTREAM: "its change is in the tree already",
            PatchState.NOT_TRIED: "not tried: an earlier patch does not apply",
        }
        for patch in self._applied.results:
            self._emit(
                CaseResult("apply", patch.patch, outcomes[patch.state], diagnostic=patch.detail or whys.get(patch.state, ""))
            )
        if not self._applied.complete:
            raise _Failed

    def _build(self) -> tuple[Kernel, bool]:
        toolchain = kernel.detect(self._arch)
        fragments = kernel.fragments_for(self._arch, [*self._request.fragments, *self._required])
        try:
            built, cached = kernel.build(
                self._point,
                self._arch,
                fragments,
                toolchain,
                self._cache,
                self._directory / "build.log",
                required=self._required,
                jobs=self._request.jobs,
                progress=lambda text: self._step(f"building: {text}"),
            )
        except kernel.ConfigNotProved as failure:
            self._emit(CaseResult("config", "config", Outcome.FAIL, diagnostic=failure.message))
            raise _Failed from None
        except kernel.BuildFailed as failure:
            self._emit(CaseResult("config", "config", Outcome.PASS))
            self._emit(CaseResult("build", "build", Outcome.FAIL, diagnostic=failure.message, log=failure.hint))
            raise _Failed from None
        (self._directory / ".config").write_bytes(built.config.read_bytes())
        self._emit(CaseResult("config", "config", Outcome.PASS))
        self._emit(CaseResult("build", "build", Outcome.PASS, seconds=built.seconds, log="\n".join(built.warnings)))
        self._properties(
            release=built.release,
            config=built.config_digest,
            compiler=built.compiler,
            kernel=built.digest,
            warnings=str(len(built.warnings)),
        )
        self._say(
            f"kernel {built.release}: "
            + (
                "in the cache"
                if cached
                else f"{built.objects} objects in {built.seconds:.0f} s"
                + (f", ccache hit {built.ccache}" if built.ccache else "")
            )
            + (f", {len(built.warnings)} warnings" if built.warnings else "")
        )
        return built, cached

    def _test(self, built: Kernel, initramfs: Path) -> None:
        selected = [(suites.ALL[selection.suite], selection) for selection in self._request.selections]
        if not selected:
            return
        noise = tuple(suite.quiet for suite in suites.ALL.values() if suite.quiet)
        unwanted = tuple(
            suite.quiet for suite in suites.ALL.values() if suite.quiet and suite.name not in {one.name for one, _ in selected}
        )
        boot = Boot(built.image, initramfs, unwanted)
        target = Target(self._arch.name, built, kconfig.read_config(built.config), self._point.commit, self._store)
        accelerator = self._stage(
            "accelerator", lambda: (qemu.accelerator_for(self._arch, boot, self._cache, self._request.accel), True)
        )
        self._properties(qemu=qemu.version(self._arch), accelerator=accelerator.value)
        self._step(f"booting under {accelerator.value}")
        start = time.monotonic()
        counts = {"done": 0, "red": 0}

        def emit(result: CaseResult) -> None:
            judged = self._emit(result)
            counts["done"] += 1
            counts["red"] += not judged.outcome.green
            self._step(f"{counts['done']} cases, {counts['red']} red, {judged.id}")

        suites.run_suites(selected, target, self._arch, accelerator, boot, self._directory, noise, emit)
        for missing in self._policy.missing(self._request.selections):
            self._emit(missing)
        self._finished("guest", time.monotonic() - start, cached=False)
        self._say(f"{counts['done']} cases, {counts['red']} red")

    def _stage(self, name: str, work: Callable[[], tuple[T, bool]]) -> T:
        """Run a stage; an infrastructure error becomes the job's `error` case."""
        self._step(name)
        start = time.monotonic()
        try:
            value, cached = work()
        except InfrastructureError as failure:
            self._emit(CaseResult(name, name, Outcome.ERROR, diagnostic=failure.message, log=failure.hint))
            raise _Failed from failure
        self._finished(name, time.monotonic() - start, cached)
        return value

    def _emit(self, result: CaseResult) -> CaseResult:
        judged = self._policy.judge(result)
        self._events.write(journal.CaseFinished(journal.now(), self._arch.name, self._point.name, judged))
        if not judged.outcome.green:
            self._say(f"{judged.outcome.value}: {judged.id}: {judged.diagnostic.splitlines()[0] if judged.diagnostic else ''}")
        return judged

    def _finished(self, stage: str, seconds: float, cached: bool) -> None:
        event = journal.StageFinished(journal.now(), self._arch.name, self._point.name, stage, round(seconds, 3), cached)
        self._events.write(event)

    def _properties(self, **properties: str) -> None:
        self._events.write(journal.JobProperties(journal.now(), self._arch.name, self._point.name, properties))

    def _say(self, text: str) -> None:
        self._progress.say(f"{self._arch.name}/{self._point.name}: {text}")

    def _step(self, text: str) -> None:
        self._progress.step(f"{self._arch.name}/{self._point.name}: {text}")


def _manifest(request: Request) -> dict[str, Any]:
    return {
        "command": ["harness", "run", *request.arguments],
        "series": {"name": request.series.name, "origin": request.series.origin, "digest": request.series.digest},
        "archs": [target.name for target in request.archs],
        "points": list(request.points),
        "suites": [msgspec.structs.asdict(selection) for selection in request.selections],
        "fragments": [str(path) for path in request.fragments],
        "versions": {"harness": __version__, "python": platform.python_version(), "system": platform.platform()},
    }
