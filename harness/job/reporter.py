"""What a job has to say, to the journal and to whoever watches."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from typing import TypeVar

from harness import kernel, process
from harness.arch import Arch
from harness.durations import Durations
from harness.errors import CommandFailed, InfrastructureError
from harness.job.context import Context
from harness.job.shared import Shared
from harness.model import BUILT, CaseResult, Outcome, Point, Position
from harness.results import journal
from harness.suites.known import Known, read_known
from harness.suites.policy import Policy

T = TypeVar("T")

_BUILD_SECONDS = 600.0
"""What a build is taken to last that nobody has seen: it comes first."""


class Failed(Exception):
    """A stage ended the job; the case that says so is in the journal."""


class Reporter:
    """Of one job; used from several threads."""

    def __init__(self, context: Context, arch: Arch, point: Point) -> None:
        self.name = f"{arch.name}/{point.name}"
        self.before = context.before.job(arch.name, point.name)
        """What was reported before the run was taken up again."""
        self.results = {result.id: result for result in self.before.results}
        self.broken = False
        """Something went wrong on our side: what is missing is not the kernel's fault, and the job may go better another time."""
        self.durations = Durations(context.cache, arch.name)
        series = context.request.series
        self.must_run, name = (series.must_run, series.name) if point.position is Position.WHOLE else ((), "")
        self._toolchain = kernel.choose(arch, context.request.toolchain)
        known = read_known()
        self.mended_by = name if any(name in entry.fixed_by for entry in known) else ""
        """Name of the series if a known failure lists it in `fixed-by`, else empty."""
        self.policy = Policy(arch.name, self._toolchain, known, self.must_run, context.tree.version, name)
        for result in self.before.results:
            self.policy.note(result)
        told = [result for result in self.before.results if result.suite not in BUILT]
        self.shared = Shared(point.name, told, self.before.finished)
        self._events = context.events
        self._progress = context.progress
        self._place = (arch.name, point.name)
        self._lock = threading.Lock()

    @property
    def expected(self) -> float:
        """Seconds that the job takes, as far as it was seen before."""
        return self.durations.expect("build", _BUILD_SECONDS) + self.durations.expect("test", 0.0)

    def begin(self) -> None:
        self._events.write(journal.JobStarted(journal.now(), *self._place))
        self.properties(toolchain=self._toolchain)

    def end(self) -> None:
        """All its cases are there."""
        self._events.write(journal.JobFinished(journal.now(), *self._place))
        self._progress.done(self.name)
        self.shared.end()

    def start_over(self, why: str) -> None:
        """What was reported so far does not count, but for failures of a test or of the kernel."""
        with self._lock:
            self.results = {name: result for name, result in self.results.items() if journal.stands(result)}
        self._events.write(journal.JobLost(journal.now(), *self._place, why))
        self.say(why)

    def idle(self) -> None:
        self._progress.done(self.name)

    def emit(self, result: CaseResult) -> None:
        """Judge what a suite or a stage said, and report it."""
        process.check_stopped()
        with self._lock:
            judged = self.policy.judge(result)
        self.take(judged)

    def take(self, judged: CaseResult) -> None:
        """Report what was judged already."""
        self.record(judged)
        self.step("build" if judged.suite in BUILT else "test", judged.id, f"{len(self.results)} cases")
        if judged.suite not in BUILT:
            self.shared.report(judged)

    def record(self, judged: CaseResult) -> None:
        with self._lock:
            if not journal.supersedes(judged, self.results.get(judged.id)):
                return
            self.results[judged.id] = judged
        self._events.write(journal.CaseFinished(journal.now(), *self._place, judged))
        if not judged.outcome.green:
            self.say(f"{judged.outcome.value}: {judged.id}: {judged.diagnostic.splitlines()[0] if judged.diagnostic else ''}")

    def stage(self, name: str, work: Callable[[], tuple[T, bool]]) -> T:
        """Run a stage; an infrastructure error becomes the job's `error` case."""
        self.step(name)
        start = time.monotonic()
        try:
            value, cached = work()
        except (InfrastructureError, CommandFailed) as failure:
            self.emit(CaseResult(name, name, Outcome.ERROR, diagnostic=failure.message, log=failure.hint))
            self.broken = True
            raise Failed from failure
        self.finished(name, time.monotonic() - start, cached)
        return value

    def finished(self, stage: str, seconds: float, cached: bool) -> None:
        self._events.write(journal.StageFinished(journal.now(), *self._place, stage, round(seconds, 3), cached))

    def outlived(self, entry: Known, passed: Iterable[str]) -> None:
        """Report an XPASS: a known failure that passed."""
        self._events.write(journal.KnownPassed(journal.now(), *self._place, entry.case, entry.why, tuple(passed)))
        self.say(f"XPASS: {entry.case}: a known failure passed")

    def properties(self, **properties: str) -> None:
        self._events.write(journal.JobProperties(journal.now(), *self._place, properties))

    def say(self, text: str) -> None:
        self._progress.say(f"{self.name}: {text}")

    def step(self, stage: str, text: str = "", count: str = "") -> None:
        red = sum(not result.outcome.green for result in list(self.results.values()))
        expected = self.durations.expect(stage, 0.0)
        self._progress.step(self.name, stage, text, count=count, red=red, expected=expected)

    def summary(self) -> str:
        red = sum(not result.outcome.green for result in self.results.values())
        return f"{len(self.results)} cases, {red} red"
