"""One architecture at one point: configuration -> kernel -> initramfs -> guest -> cases, each reported to the journal as it
happens."""

from __future__ import annotations

import contextlib
import functools
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import msgspec
from msgspec import Struct

from harness import guest, kernel, process, series, suites
from harness.arch import Arch
from harness.cache import Cache
from harness.durations import Durations
from harness.errors import CommandFailed, InfrastructureError, UserError
from harness.guest import Boot, Host, qemu
from harness.kernel import Jobserver, kconfig
from harness.model import AppliedSeries, CaseResult, Kernel, Outcome, PatchState, Point, Tree
from harness.progress import Progress
from harness.request import Request
from harness.results import Journal, RunReport, journal
from harness.schedule import Kind, Task
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
    PatchState.UPSTREAM: (Outcome.SKIP, "its change is in the tree already"),
    PatchState.CONFLICT: (Outcome.FAIL, ""),
    PatchState.NOT_TRIED: (Outcome.LOST, "not tried: an earlier patch does not apply"),
}


class Failed(Exception):
    """A stage ended the job; the case that says so is in the journal."""


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


class Job:
    """Two tasks for the scheduler, one after the other: the kernel is built, then guests test it."""

    def __init__(self, context: Context, arch: Arch, point: Point) -> None:
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
        self._sessions = 0
        self._broken = False
        """Something went wrong on our side: what is missing is not the kernel's fault, and the job may go better another time."""
        self._durations = Durations(context.cache, arch.name)
        self._patched = point.name != "base"
        toolchain = kernel.choose(arch, self._request.toolchain)
        self._policy = Policy(arch.name, toolchain, read_known(), self._request.series.must_run if self._patched else ())
        for result in self._before.results:
            self._policy.judge(result)

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
                base=self._tree.commit, commit=self._point.commit, patch=self._point.patch or "none", tree=self._tree.source
            )
            if self._patched:
                self._report_patches()
            toolchain = kernel.detect(self._arch, self._request.toolchain)
            built = self._stage("build", lambda: self._build(toolchain))
            initramfs = self._stage(
                "initramfs",
                lambda: guest.build_initramfs(built, self._point.commit, self._arch, toolchain.compiler, self._cache),
            )
            if self._request.selections:
                return self._guest_tasks(built, initramfs.path)
            self._end()
            return []
        except Failed:
            if not self._broken:
                self._end()
            return []
        finally:
            self._progress.done(self._name)

    def _report_patches(self) -> None:
        for patch in self._applied.results:
            outcome, why = _PATCH_OUTCOMES[patch.state]
            self._emit(CaseResult("apply", patch.patch, outcome, diagnostic=patch.detail or why))
        if origin := self._request.series.written_after:
            wrong = series.unfounded(origin, Store(self._cache), self._tree.commit)
            self._emit(CaseResult("apply", "upstream", Outcome.FAIL if wrong else Outcome.PASS, diagnostic="\n".join(wrong)))
        if not self._applied.complete:
            raise Failed

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
                required=own if self._patched else (),
                unproved=() if self._patched else own,
                progress=lambda text: self._step(f"building: {text}"),
            )
        except kernel.ConfigNotProved as failure:
            self._emit(CaseResult("config", "config", Outcome.FAIL, diagnostic=failure.message))
            raise Failed from None
        except kernel.BuildFailed as failure:
            self._emit(CaseResult("config", "config", Outcome.PASS))
            self._emit(CaseResult("build", "build", Outcome.FAIL, diagnostic=failure.message, log=failure.hint))
            raise Failed from None
        if built.digest != self._before.properties.get("kernel", built.digest):
            raise UserError(
                f"{self._name}: the kernel is not the one that the finished cases ran on",
                hint="the compiler or the harness has changed since: start a new run",
            )
        self._emit(CaseResult("config", "config", Outcome.PASS))
        self._emit(CaseResult("build", "build", Outcome.PASS, seconds=built.seconds, log="\n".join(built.warnings)))
        self._properties(
            release=built.release,
            config=built.config_digest,
            compiler=built.compiler,
            kernel=built.digest,
            warnings=str(len(built.warnings)),
        )
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

    def _guest_tasks(self, built: Kernel, initramfs: Path) -> list[Task]:
        selected = [(suites.ALL[selection.suite], selection) for selection in self._request.selections]
        judged = {suite.quiet for suite, selection in selected if suite.noisy(selection) and not suite.counts}
        config = kconfig.read_config(built.config)
        boot = Boot(
            image=built.image,
            initramfs=initramfs,
            cmdline=tuple(word for word in suites.QUIET if word not in judged),
            slowness=kconfig.slowness(config),
        )
        counting = msgspec.structs.replace(boot, cmdline=suites.QUIET, counting=True, cpus=1)
        target = Target(
            arch=self._arch.name,
            kernel=built,
            config=config,
            commit=self._point.commit,
            store=Store(self._cache),
            commands=self._request.commands,
            patched=self._patched,
            claims=self._request.series.claims,
            measures=self._request.series.measures,
        )
        accelerator = self._stage(
            "accelerator", lambda: (qemu.accelerator_for(self._arch, boot, self._cache, self._request.accel), True)
        )
        self._properties(qemu=qemu.version(self._arch), accelerator=accelerator.value)
        touched = {file for patch in self._request.series.patches for file in patch.files} if self._patched else set()
        symbols = kernel.Symbols(built, kernel.detect(self._arch, self._request.toolchain).addr2line)
        explain = functools.partial(symbols.locate, ours=touched)
        tasks = []
        for name, first, means in (("", boot, accelerator), ("bench", counting, qemu.Accelerator.TCG)):
            own = [(suite, selection) for suite, selection in selected if suite.counts == bool(name)]
            host = None if name else Host(self._arch, self._cache)
            start = functools.partial(guest.started, self._arch, means, self._directory, host=host)
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
                tasks.append(self._guest_task(session))
        return list(filter(None, tasks))

    def _guest_task(self, session: suites.Session) -> Task | None:
        """One more guest for the session, if it is worth it."""
        number = session.join()
        if number is None:
            return None
        memory = self._arch.guest.memory + _QEMU_MEMORY

        def test() -> list[Task]:
            with contextlib.suppress(Failed):
                self._test(session, number)
            self._progress.done(self._name)
            return []

        name = f"{self._name} guest {number}"
        return Task(name, Kind.GUEST, memory, session.seconds, test, helper=lambda: self._guest_task(session))

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

    def _emit(self, result: CaseResult) -> None:
        process.check_stopped()
        with self._lock:
            judged = self._policy.judge(result)
            if not journal.supersedes(judged, self._before.cases.get(result.id)):
                return
            self._done += 1
            self._red += not judged.outcome.green
        self._events.write(journal.CaseFinished(journal.now(), self._arch.name, self._point.name, judged))
        if not judged.outcome.green:
            self._say(f"{judged.outcome.value}: {judged.id}: {judged.diagnostic.splitlines()[0] if judged.diagnostic else ''}")
        self._step(f"{self._done} cases, {self._red} red, {judged.id}")

    def _finished(self, stage: str, seconds: float, cached: bool) -> None:
        event = journal.StageFinished(journal.now(), self._arch.name, self._point.name, stage, round(seconds, 3), cached)
        self._events.write(event)

    def _properties(self, **properties: str) -> None:
        self._events.write(journal.JobProperties(journal.now(), self._arch.name, self._point.name, properties))

    def _say(self, text: str) -> None:
        self._progress.say(f"{self._name}: {text}")

    def _step(self, text: str) -> None:
        self._progress.step(self._name, text)
