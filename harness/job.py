"""One architecture at one point: configuration -> kernel -> initramfs -> guest -> cases, each reported to the journal as it
happens."""

from __future__ import annotations

import contextlib
import functools
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

import msgspec
from msgspec import Struct

from harness import guest, kernel, process, series, suites
from harness.arch import Arch
from harness.cache import Cache, digest_of, file_digest
from harness.durations import Durations
from harness.errors import CommandFailed, InfrastructureError, UserError
from harness.guest import Boot, Host, qemu
from harness.kernel import Jobserver, kconfig
from harness.model import BUILT, WARNINGS, AppliedSeries, CaseResult, Kernel, Outcome, PatchState, Point, Position, Tree
from harness.progress import Progress
from harness.request import Request
from harness.results import Journal, RunReport, journal
from harness.schedule import Kind, Task
from harness.shared import Shared
from harness.suites import Target
from harness.suites.policy import Policy, read_known
from harness.tree import Store

T = TypeVar("T")

_BUILD_SECONDS = 600.0
"""What a build is taken to last that nobody has seen: it comes first."""
_BUILD_MEMORY = 2048
"""MiB: the link of vmlinux and the making of its BTF take the most."""
_QEMU_MEMORY = 256
"""MiB, beside the guest's own: QEMU itself and what it has translated."""

_PATCH_OUTCOMES = {
    PatchState.APPLIED: (Outcome.PASS, ""),
    PatchState.FUZZY: (Outcome.PASS, "fuzzy: it took a 3-way merge"),
    PatchState.UPSTREAM: (Outcome.SKIP, "its change is in the tree already"),
    PatchState.CONFLICT: (Outcome.FAIL, ""),
    PatchState.FORBIDDEN: (Outcome.FAIL, ""),
    PatchState.NOT_TRIED: (Outcome.LOST, "not tried"),
}


class Failed(Exception):
    """A stage ended the job; the case that says so is in the journal."""


class Built(Struct, frozen=True):
    point: Point
    kernel: Kernel


class Context(Struct, frozen=True):
    """What all jobs of a run share."""

    request: Request
    cache: Cache
    tree: Tree
    applied: AppliedSeries
    before: RunReport
    """What its journal holds already, if it is taken up again."""
    events: Journal
    progress: Progress
    jobserver: Jobserver
    selftests: Tree
    """Whose ftrace selftests run."""
    news: Mapping[int, slice]
    """For each point, the patches that it has and the run's point before it has not."""
    built: dict[str, Built] = {}
    """The newest kernel of each architecture."""
    tested: dict[str, Shared] = {}
    """What is told of kernels, by all that it depends on."""


class Job:
    """Two tasks for the scheduler, one after the other: the kernel is built, then guests test it."""

    def __init__(self, context: Context, arch: Arch, point: Point) -> None:
        self._context = context
        self._request = context.request
        self._cache = context.cache
        self._events = context.events
        self._progress = context.progress
        self._jobserver = context.jobserver
        self._tree = context.tree
        self._applied = context.applied
        self._arch = arch
        self._point = point
        self._name = f"{arch.name}/{point.name}"
        self._directory = context.before.directory / arch.name / point.name
        self._directory.mkdir(parents=True, exist_ok=True)
        self._before = context.before.job(arch.name, point.name)
        self._lock = threading.Lock()
        self._done = len(self._before.cases)
        self._red = sum(not result.outcome.green for result in self._before.results)
        # Those of the tree that the kernel is from change with the series.
        self._tests = context.selftests.commit if self._request.selftests else point.commit
        self._sessions = 0
        self._broken = False
        """Something went wrong on our side: what is missing is not the kernel's fault, and the job may go better another time."""
        self._durations = Durations(context.cache, arch.name)
        toolchain = kernel.choose(arch, self._request.toolchain)
        self._must_run = self._request.series.must_run if point.position is Position.WHOLE else ()
        self._policy = Policy(arch.name, toolchain, read_known(), self._must_run)
        for result in self._before.results:
            self._policy.judge(result)
        told = [result for result in self._before.results if result.suite not in BUILT]
        self._shared = Shared(point.name, told, self.finished)
        if self.finished:
            self._recall()

    @property
    def finished(self) -> bool:
        """Nothing is left to do: it was all done before."""
        return self._before.finished

    def task(self) -> Task:
        """The whole job: building it, with testing it to follow."""
        expected = self._durations.expect("build", _BUILD_SECONDS) + self._durations.expect("test", 0.0)
        return Task(self._name, Kind.BUILD, _BUILD_MEMORY, expected, self._prepare)

    def _prepare(self) -> list[Task]:
        self._events.write(journal.JobStarted(journal.now(), self._arch.name, self._point.name))
        try:
            self._properties(
                base=self._tree.commit,
                commit=self._point.commit,
                number=str(self._point.number),
                patch=self._point.patch or "none",
                tree=self._tree.source,
                selftests=self._tests,
            )
            self._report_patches()
            toolchain = kernel.detect(self._arch, self._request.toolchain)
            built = self._stage("build", lambda: self._adopt(toolchain) if self._request.given else self._build(toolchain))
            if not self._request.selections:
                self._end()
                return []
            initramfs = self._stage(
                "initramfs",
                lambda: guest.build_initramfs(built, self._tests, self._arch, toolchain.compiler, self._cache),
            )
            return self._guest_tasks(built, initramfs.path)
        except Failed:
            if not self._broken:
                self._end()
            return []
        finally:
            self._progress.done(self._name)

    def _report_patches(self) -> None:
        for patch in self._applied.results[self._context.news[self._point.number]]:
            outcome, why = _PATCH_OUTCOMES[patch.state]
            self._emit(CaseResult("apply", patch.patch, outcome, diagnostic=patch.detail or why))
        whole = self._point.position is Position.WHOLE and not self._request.given
        if whole and (origin := self._request.series.written_after):
            wrong = series.unfounded(origin, Store(self._cache), self._tree.commit)
            self._emit(CaseResult("apply", "upstream", Outcome.FAIL if wrong else Outcome.PASS, diagnostic="\n".join(wrong)))
        if not all(patch.state.good for patch in self._applied.results[: self._point.number]):
            raise Failed

    def _adopt(self, toolchain: kernel.Toolchain) -> tuple[Kernel, bool]:
        assert self._request.given
        given, cached = kernel.adopt(self._request.given, self._arch, toolchain, self._point.commit, self._cache)
        self._check_same(given)
        if own := self._request.series.fragment:
            sources = functools.partial(Store(self._cache).sources, self._point.commit)
            try:
                kconfig.prove(given.config, self._arch, [own], [own], (), sources, toolchain)
            except kernel.ConfigNotProved as failure:
                self._emit(CaseResult("config", "config", Outcome.FAIL, diagnostic=failure.message))
                raise Failed from None
            self._emit(CaseResult("config", "config", Outcome.PASS))
        self._properties(release=given.release, config=given.config_digest, compiler=given.compiler, kernel=given.digest)
        self._say(f"kernel {given.release}: {self._request.given.image}")
        return given, cached

    def _build(self, toolchain: kernel.Toolchain) -> tuple[Kernel, bool]:
        own = tuple(filter(None, [self._request.series.fragment]))
        fragments = kernel.fragments_for(self._arch, [*self._request.fragments, *own])
        try:
            built, cached = kernel.build(
                self._point,
                self._arch,
                fragments,
                toolchain,
                self._cache,
                self._directory,
                jobserver=self._jobserver,
                required=own if self._point.position is Position.WHOLE else (),
                unproved=() if self._point.position is Position.WHOLE else own,
                progress=lambda objects, file: self._step("build", file, f"{objects} objects"),
            )
        except kernel.ConfigNotProved as failure:
            self._emit(CaseResult("config", "config", Outcome.FAIL, diagnostic=failure.message))
            raise Failed from None
        except kernel.BuildFailed as failure:
            self._emit(CaseResult("config", "config", Outcome.PASS))
            self._emit(CaseResult("build", "build", Outcome.FAIL, diagnostic=failure.message, log=failure.hint))
            raise Failed from None
        self._check_same(built)
        self._emit(CaseResult("config", "config", Outcome.PASS))
        self._emit(CaseResult("build", "build", Outcome.PASS, seconds=built.seconds, log="\n".join(built.warnings)))
        self._properties(
            release=built.release,
            config=built.config_digest,
            compiler=built.compiler,
            kernel=built.digest,
            warnings=str(len(built.warnings)),
        )
        self._report_warnings(built)
        if not cached:
            self._durations.note("build", built.seconds)
            self._durations.save()
        made = "in the cache" if cached else f"{built.objects} objects in {built.seconds:.0f} s"
        if built.modules_error:
            self._say(f"the harness's own modules do not build: {built.modules_error}")
        ccache = f", ccache hit {built.ccache}" if built.ccache and not cached else ""
        warnings = f", {len(built.warnings)} warnings" if built.warnings else ""
        self._say(f"kernel {built.release}: {made}{ccache}{warnings}")
        return built, cached

    def _check_same(self, built: Kernel) -> None:
        """Raises UserError if what was finished before ran on another kernel."""
        if built.digest != self._before.properties.get("kernel", built.digest):
            raise UserError(
                f"{self._name}: the kernel is not the one that the finished cases ran on",
                hint="the compiler, the harness or the kernel has changed since: start a new run",
            )

    def _report_warnings(self, built: Kernel) -> None:
        """New ones are charged to the patches since the point before."""
        before = self._context.built.get(self._arch.name)
        self._context.built[self._arch.name] = Built(self._point, built)
        if before is None or before.point.number >= self._point.number:
            return
        found = kernel.new_warnings(built.warnings, before.kernel.warnings)
        why = f"{len(found)} new since {before.point.name}: {found[0]}" if found else ""
        outcome = Outcome.FAIL if found else Outcome.PASS
        suite, _, name = WARNINGS.partition(":")
        self._emit(CaseResult(suite, name, outcome, diagnostic=why, log="\n".join(found)))

    def _recall(self) -> None:
        """What jobs to come want to know of one that was done before."""
        digest = self._before.properties.get("kernel")
        if digest and (known := self._cache.read_record("kernels", digest, Kernel)):
            self._context.built[self._arch.name] = Built(self._point, known)
        if key := self._before.properties.get("tested"):
            self._context.tested.setdefault(key, self._shared)

    def _shares(self, built: Kernel, initramfs: Path, accelerator: str) -> bool:
        """Whether another job tests the very same, and nothing else is expected of it: then its results are ours."""
        expected = self._point.position if {"claims", "bench"} & {one.suite for one in self._request.selections} else ""
        key = digest_of(
            *(self._arch.name, file_digest(built.image), file_digest(initramfs), built.config_digest),
            *(accelerator, repr(self._must_run), expected, str(self._point.attempt)),
        )
        self._properties(tested=key)
        tested = self._context.tested.setdefault(key, self._shared)
        if tested is self._shared:
            return False
        self._properties(results_of=tested.point)
        self._say(f"the kernel and the guest are those of {tested.point}: so are the results")
        tested.join(self._record, self._end)
        return True

    def _guest_tasks(self, built: Kernel, initramfs: Path) -> list[Task]:
        selected = [(suites.ALL[selection.suite], selection) for selection in self._request.selections]
        judged = {suite.quiet for suite, selection in selected if suite.noisy(selection) and not suite.counts}
        config = kconfig.read_config(built.config)
        boot = Boot(
            image=built.image,
            initramfs=initramfs,
            cmdline=tuple(word for word in suites.QUIET if word not in judged),
            memory=guest.room_for(initramfs),
            slowness=kconfig.slowness(config),
        )
        counting = msgspec.structs.replace(boot, cmdline=suites.QUIET, counting=True, cpus=1)
        target = Target(
            arch=self._arch.name,
            kernel=built,
            config=config,
            commit=self._point.commit,
            tests=self._tests,
            store=Store(self._cache),
            commands=self._request.commands,
            position=self._point.position,
            claims=self._request.series.claims,
            measures=self._request.series.measures,
        )
        accelerator = self._stage(
            "accelerator", lambda: (qemu.accelerator_for(self._arch, boot, self._cache, self._request.accel), True)
        )
        self._properties(qemu=qemu.version(self._arch), accelerator=accelerator.value)
        if self._shares(built, initramfs, accelerator.value):
            return []
        touched = {file for patch in self._request.series.patches[: self._point.number] for file in patch.files}
        symbols = kernel.Symbols(built, kernel.detect(self._arch, self._request.toolchain).addr2line)
        explain = functools.partial(symbols.locate, ours=touched)
        # Nobody looks at what nobody sees.
        heard = functools.partial(self._progress.heard, self._name) if self._progress.moving else lambda data: None
        tasks = []
        for name, first, means in (("", boot, accelerator), ("bench", counting, qemu.Accelerator.TCG)):
            own = [(suite, selection) for suite, selection in selected if suite.counts == bool(name)]
            host = None if name else Host(self._arch, self._cache)
            start = functools.partial(guest.started, self._arch, means, self._directory, host=host, tee=heard)
            if own:
                stage = f"judged {name}".strip()
                note = functools.partial(self._finished, stage, 0.0, False)
                before = suites.Before(self._before.cases, stage in self._before.stages, note)
                session = suites.Session(
                    own,
                    target,
                    first,
                    suites.QUIET,
                    start,
                    self._durations,
                    self._emit,
                    name,
                    self._policy.hangs,
                    before,
                    explain,
                )
                self._sessions += 1
                tasks.append(self._guest_task(session, self._arch.guest.memory + first.memory + _QEMU_MEMORY))
        return list(filter(None, tasks))

    def _guest_task(self, session: suites.Session, memory: int) -> Task | None:
        """One more guest for the session, if it is worth it."""
        number = session.join()
        if number is None:
            return None

        def test() -> list[Task]:
            with contextlib.suppress(Failed):
                self._test(session, number)
            self._progress.done(self._name)
            return []

        name = f"{self._name} guest {number}"
        return Task(name, Kind.GUEST, memory, session.seconds, test, helper=lambda: self._guest_task(session, memory))

    def _test(self, session: suites.Session, number: int) -> None:
        start = time.monotonic()
        last = self._stage("guest", lambda: (session.run(number), False))
        if number == 1 and not any(selection.globs for selection in self._request.selections):
            self._durations.note("test", time.monotonic() - start)
        with self._lock:
            self._sessions -= last
            last = last and not self._sessions
        if last and not self._broken:
            for missing in self._policy.missing(self._request.selections):
                self._emit(missing)
            self._say(f"{self._done} cases, {self._red} red")
            self._end()
        self._durations.save()

    def _stage(self, name: str, work: Callable[[], tuple[T, bool]]) -> T:
        """Run a stage; an infrastructure error becomes the job's `error` case."""
        self._step(name)
        start = time.monotonic()
        try:
            value, cached = work()
        except (InfrastructureError, CommandFailed) as failure:
            self._emit(CaseResult(name, name, Outcome.ERROR, diagnostic=failure.message, log=failure.hint))
            self._broken = True
            raise Failed from failure
        self._finished(name, time.monotonic() - start, cached)
        return value

    def _end(self) -> None:
        self._events.write(journal.JobFinished(journal.now(), self._arch.name, self._point.name))
        self._progress.done(self._name)
        self._shared.end()

    def _emit(self, result: CaseResult) -> None:
        process.check_stopped()
        with self._lock:
            judged = self._policy.judge(result)
        self._record(judged)
        self._step("build" if judged.suite in BUILT else "test", judged.id, f"{self._done} cases")
        if judged.suite not in BUILT:
            self._shared.report(judged)

    def _record(self, judged: CaseResult) -> None:
        with self._lock:
            if not journal.supersedes(judged, self._before.cases.get(judged.id)):
                return
            self._done += 1
            self._red += not judged.outcome.green
        self._events.write(journal.CaseFinished(journal.now(), self._arch.name, self._point.name, judged))
        if not judged.outcome.green:
            self._say(f"{judged.outcome.value}: {judged.id}: {judged.diagnostic.splitlines()[0] if judged.diagnostic else ''}")

    def _finished(self, stage: str, seconds: float, cached: bool) -> None:
        event = journal.StageFinished(journal.now(), self._arch.name, self._point.name, stage, round(seconds, 3), cached)
        self._events.write(event)

    def _properties(self, **properties: str) -> None:
        self._events.write(journal.JobProperties(journal.now(), self._arch.name, self._point.name, properties))

    def _say(self, text: str) -> None:
        self._progress.say(f"{self._name}: {text}")

    def _step(self, stage: str, text: str = "", count: str = "") -> None:
        expected = self._durations.expect(stage, 0.0)
        self._progress.step(self._name, stage, text, count=count, red=self._red, expected=expected)
