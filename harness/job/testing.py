"""The guests that test a kernel, as many as are worth their boot, and the second chance of what is red."""

from __future__ import annotations

import contextlib
import functools
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from harness import guest, kernel, process, suites
from harness.arch import Arch
from harness.guest import HERE, Boot, Place
from harness.job.context import Context
from harness.job.reporter import Failed, Reporter
from harness.job.way import Way
from harness.kernel import kconfig
from harness.model import CaseResult, Kernel, Point
from harness.results import JobFacts
from harness.schedule import Kind, Task
from harness.suites import Selection, Suite, Target, retry

_QEMU_MEMORY = 256
"""MiB, beside the guest's own: QEMU itself and what it has translated."""

_Selected = Sequence[tuple[Suite, Selection]]


class _Machine(Struct, frozen=True):
    """A kind of guest, and the suites that want it."""

    name: str
    selected: _Selected
    counts: bool


class Testing:
    """Of one kernel."""

    def __init__(self, context: Context, arch: Arch, point: Point, reporter: Reporter, built: Kernel, initramfs: Path) -> None:
        self._request = context.request
        self._cache = context.cache
        self._arch = arch
        self._reporter = reporter
        self._initramfs = initramfs
        self._directory = context.before.directory / reporter.name
        self._lock = threading.Lock()
        self._running = 0
        """Sessions that have not ended."""
        self._config = kconfig.read_config(built.config)
        self._target = Target(
            arch=arch.name,
            kernel=built,
            config=self._config,
            commit=point.commit,
            tests=context.tests(point),
            store=context.store,
            commands=self._request.options.commands,
            position=point.position,
            claims=self._request.series.claims,
            measures=self._request.series.measures,
        )
        touched = {file for patch in self._request.series.patches[: point.number] for file in patch.files}
        toolchain = kernel.detect(arch, self._request.options.toolchain)
        symbols = kernel.Symbols(built, toolchain.addr2line)
        self._explain = functools.partial(symbols.locate, ours=touched)
        # Nobody looks at what nobody sees.
        self._heard = functools.partial(context.progress.heard, reporter.name) if context.progress.moving else lambda data: None
        self._selected: _Selected = [(suites.ALL[selection.suite], selection) for selection in self._request.selections]
        self._fleet = context.fleet
        self._machines = [
            _Machine(name, own, counts)
            for name, counts in (("", False), ("bench", True))
            if (own := [(suite, selection) for suite, selection in self._selected if suite.counts == counts])
        ]

    def way(self) -> Way:
        """To where the guests are to run. Raises InfrastructureError."""
        boot = self._boot(self._selected, counts=False)
        accel = self._request.options.accel
        self._way = Way(self._fleet, self._arch, boot, self._cache, accel, self._moved)
        return self._way

    def _moved(self, why: str) -> None:
        self._reporter.say(why)
        self._reporter.add_facts(JobFacts(moved=why))

    def tasks(self) -> list[Task]:
        """A first guest for each kind of machine; `way` was asked for before."""
        found = []
        for machine in self._machines:
            stage = f"judged {machine.name}".strip()
            note = functools.partial(self._reporter.finished, stage, 0.0, False)
            before = suites.Before(self._reporter.before.cases, stage in self._reporter.before.stages, note)
            session = self._session(machine, machine.selected, machine.name, self._reporter.emit, before)
            self._running += 1
            found.append(self._task(session, HERE if machine.counts else self._way.place))
        return list(filter(None, found))

    def _session(
        self,
        machine: _Machine,
        selected: _Selected,
        name: str,
        emit: Callable[[CaseResult], None],
        before: suites.Before,
        boots: _Selected = (),
    ) -> suites.Session:
        """`boots` is what the first boot runs, if it is more than what is `selected`."""
        return suites.Session(
            selected,
            self._target,
            self._boot(boots or selected, machine.counts),
            suites.QUIET,
            functools.partial(self._way.started, self._directory, machine.counts, self._heard),
            self._reporter.durations,
            emit,
            name,
            self._reporter.policy.hangs,
            before,
            self._explain,
            lambda result: self._reporter.policy.judge(result).outcome.green,
        )

    def _boot(self, selected: _Selected, counts: bool) -> Boot:
        """The first one, which is judged."""
        judged = {suite.quiet for suite, selection in selected if suite.noisy(selection) and not suite.counts}
        boot = Boot(
            image=self._target.kernel.image,
            initramfs=self._initramfs,
            cmdline=tuple(word for word in suites.QUIET if word not in judged),
            memory=guest.room_for(self._initramfs),
            slowness=kconfig.slowness(self._config),
        )
        return msgspec.structs.replace(boot, counting=True, cpus=1) if counts else boot

    def _task(self, session: suites.Session, place: Place) -> Task | None:
        """One more guest for the session, if it is worth it."""
        number = session.join()
        if number is None:
            return None

        def test() -> list[Task]:
            with contextlib.suppress(Failed):
                self._test(session, number)
            self._reporter.idle()
            return []

        name = f"{self._reporter.name} guest {number}"
        memory = self._arch.guest.memory + guest.room_for(self._initramfs) + _QEMU_MEMORY
        return Task(name, Kind.GUEST, memory, session.seconds, test, lambda: self._task(session, place), place.name)

    def _test(self, session: suites.Session, number: int) -> None:
        start = time.monotonic()
        last = self._reporter.stage("guest", lambda: (session.run(number), False))
        if number == 1 and not any(selection.globs for selection in self._request.selections):
            self._reporter.durations.note("test", time.monotonic() - start)
        with self._lock:
            self._running -= last
            last = last and not self._running
        if last and not self._reporter.broken:
            if self._request.options.retries:
                self._reporter.stage("retry", self._retry)
            for entry, passed in self._reporter.policy.outlived(self._request.selections):
                self._reporter.outlived(entry, passed)
            for missing in self._reporter.policy.missing(self._request.selections):
                self._reporter.emit(missing)
            self._reporter.say(self._reporter.summary())
            self._reporter.end()
        self._reporter.durations.save()

    def _retry(self) -> tuple[None, bool]:
        """Run what is red again, as often as was asked for, in guests of its own: what passes then is flaky."""
        reds = retry.Reds(self._reporter.results.values(), [selection.suite for selection in self._request.selections])
        for number in range(1, self._request.options.retries + 1):
            for machine in self._machines:
                if selected := reds.narrow(machine.selected):
                    self._reporter.say(f"trying {len(reds)} red cases again")
                    name = "-".join(filter(None, [machine.name, f"retry-{number}"]))
                    # What a boot shows depends on all that it runs: it is tried again as it was.
                    boots = machine.selected if any(suite.quiet for suite, _ in selected) else selected
                    session = self._session(machine, selected, name, self._hear(reds), suites.NOTHING, boots)
                    session.run(session.join() or 1)
        for settled in reds.settled():
            self._reporter.emit(settled)
        return None, False

    def _hear(self, reds: retry.Reds) -> Callable[[CaseResult], None]:
        def hear(result: CaseResult) -> None:
            process.check_stopped()
            judged = self._reporter.policy.judge(result)
            # What else is red there is nothing to pass over.
            if not reds.add(judged) and not judged.outcome.green:
                self._reporter.emit(result)
            self._reporter.step("retry", result.id)

        return hear
