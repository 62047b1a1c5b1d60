"""journal.jsonl: one line for each event, appended and flushed as it happens, so that a killed run loses at most the case in
flight. Reading it back gives a RunReport, from which every other report is rendered."""

from __future__ import annotations

import errno
import fcntl
import os
import threading
import time
from enum import StrEnum
from pathlib import Path
from types import TracebackType
from typing import IO, get_args

import msgspec
from msgspec import Struct

from harness.errors import UserError
from harness.model import BUILT, JOB, WARNINGS, CaseResult, Difference, Outcome, Usage, from_json, to_json

_NAME = "journal.jsonl"


class RunStarted(Struct, frozen=True, tag_field="event", tag="run-started"):
    time: float
    series: str
    tree: str
    arguments: tuple[str, ...]
    """Those that repeat the run: `harness <arguments>`."""
    digest: str = ""
    """Of the series."""
    directory: str = ""
    """In which the arguments were said."""
    scope: str = ""
    """Equal for runs that were asked for the same, but for how much of the matrix and how: those are compared."""
    expected: str = ""
    """Digest of what decides which results are green: claims, limits, must-run cases, known failures, configuration. Empty in the
    journal of an older harness."""


class RunResumed(Struct, frozen=True, tag_field="event", tag="run-resumed"):
    """A run that was cut short goes on: all that counts so far is what was finished."""

    time: float


class JobPlanned(Struct, frozen=True, tag_field="event", tag="job-planned"):
    """A job that belongs to the run. A planned job that does not end is an error."""

    time: float
    arch: str
    point: str
    suites: tuple[str, ...] = ()
    """The suites that must report a case if the kernel was built."""


class JobStarted(Struct, frozen=True, tag_field="event", tag="job-started"):
    time: float
    arch: str
    point: str


class JobProperties(Struct, frozen=True, tag_field="event", tag="job-properties"):
    """What was found out about a job's kernel and guest; several of these add up."""

    time: float
    arch: str
    point: str
    properties: dict[str, str]


class StageFinished(Struct, frozen=True, tag_field="event", tag="stage-finished"):
    time: float
    arch: str
    point: str
    stage: str
    seconds: float
    cached: bool


class CaseFinished(Struct, frozen=True, tag_field="event", tag="case-finished"):
    time: float
    arch: str
    point: str
    result: CaseResult


class KnownPassed(Struct, frozen=True, tag_field="event", tag="known-passed"):
    """An entry of known.toml whose cases passed, all of them."""

    time: float
    arch: str
    point: str
    case: str
    """As the entry has it: a glob."""
    reason: str
    passed: tuple[str, ...]
    """The cases, by their ids."""


class JobFinished(Struct, frozen=True, tag_field="event", tag="job-finished"):
    """All its cases are there."""

    time: float
    arch: str
    point: str


class JobLost(Struct, frozen=True, tag_field="event", tag="job-lost"):
    """Its worker is gone, or the run was cut short, and another worker does all of the job. Of the results so far, only those
    count that `stands` names."""

    time: float
    arch: str
    point: str
    why: str


class Verdict(StrEnum):
    """Of a bisection."""

    FOUND = "found"
    GREEN = "green"
    """At the last point, too."""
    UNKNOWN = "unknown"


class Bisected(Struct, frozen=True, tag_field="event", tag="bisected"):
    """Which patch turns a case red, as far as can be told."""

    time: float
    arch: str
    case: str
    verdict: Verdict
    good: str
    """The newest point at which it is green; empty if there is none."""
    bad: str
    """The oldest at which it is red; empty if there is none."""
    suspects: tuple[str, ...] = ()
    """The patches between: one, or those that could not be told apart."""
    diffstat: str = ""
    skipped: dict[str, str] = {}
    """Points that could not be tested, and why."""
    kernels: int = 0
    """Points that were built and tested, or taken from the cache."""
    answer: str = ""
    """For people."""


class Compared(Struct, frozen=True, tag_field="event", tag="compared"):
    """With earlier runs that were asked for the same."""

    time: float
    since: dict[str, str]
    """For each job that ran before, arch/point: the directory of the newest run that has it whole."""
    differences: tuple[Difference, ...]
    """Without logs."""


class Used(Struct, frozen=True, tag_field="event", tag="used"):
    """What it took from the first task of a job to the last."""

    time: float
    usage: Usage


class RunFinished(Struct, frozen=True, tag_field="event", tag="run-finished"):
    time: float
    exit_code: int
    error: str = ""


OfJob = JobPlanned | JobStarted | JobProperties | StageFinished | CaseFinished | KnownPassed | JobFinished | JobLost
Event = RunStarted | RunResumed | OfJob | Bisected | Compared | Used | RunFinished

_TAGS = {str(event.__struct_config__.tag) for event in get_args(Event)}


class Journal:
    """Open for appending, as a context manager. Raises UserError if somebody else has it open."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / _NAME
        self._lock = threading.Lock()
        self._file: IO[bytes] | None = None

    def __enter__(self) -> Journal:
        self._file = self._path.open("a+b", buffering=0)
        try:
            # Ends with the process, however that ends.
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._file.close()
            raise UserError(f"the run in {self._path.parent} is still going on", hint="wait for it, or end it") from None
        # A line that a kill cut short would take the next one along.
        self._file.seek(0)
        self._file.truncate(self._file.read().rfind(b"\n") + 1)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        assert self._file is not None
        self._file.close()

    def write(self, event: Event) -> None:
        assert self._file is not None
        line = to_json(event) + b"\n"
        with self._lock:
            size = self._file.seek(0, os.SEEK_END)
            try:
                whole = self._file.write(line) == len(line)
            except OSError:
                self._file.truncate(size)
                raise
            if not whole:
                # Half a line would take the next one along.
                self._file.truncate(size)
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self._path))


class JobReport:
    """One architecture at one point."""

    def __init__(self, arch: str, point: str) -> None:
        self.arch = arch
        self.point = point
        self.planned: JobPlanned | None = None
        """None if the journal has no plan, for example that of a bisection."""
        self.started = 0.0
        """When it first began, in seconds since the epoch; 0 if that is not known."""
        self.properties: dict[str, str] = {}
        self.cases: dict[str, CaseFinished] = {}
        self.stages: dict[str, StageFinished] = {}
        """Those that finished."""
        self.outlived: dict[tuple[str, str], KnownPassed] = {}
        """XPASS: known failures that passed. The key is case and reason, because a case may have several entries."""
        self.finished = False

    def forget(self) -> None:
        self.cases = {name: event for name, event in self.cases.items() if stands(event.result)}
        for told in (self.properties, self.stages, self.outlived):
            told.clear()
        self.finished = False

    @property
    def results(self) -> list[CaseResult]:
        return [event.result for event in self.cases.values()]

    @property
    def incomplete(self) -> str:
        """The reason why the job is incomplete and counts as an error; empty if it is complete, or has an error already."""
        if any(result.outcome is Outcome.ERROR for result in self.results):
            return ""
        if not self.finished:
            return "it began, but it did not end" if self.started or self.cases else "it was planned, but it did not begin"
        if not self.cases:
            return "it ended, but no case was reported"
        suites = {result.suite for result in self.results}
        missing = [suite for suite in (self.planned.suites if self.planned else ()) if suite not in suites]
        built = all(result.outcome.green for result in self.results if result.suite in BUILT and result.id != WARNINGS)
        return f"{', '.join(missing)} was asked for, but it has no case" if missing and built else ""

    @property
    def key(self) -> tuple[str, str]:
        return self.arch, self.point

    @property
    def name(self) -> str:
        return f"{self.arch}/{self.point}"

    @property
    def number(self) -> int | None:
        """Patches up to its point, if it is known; not of one that was tried once more."""
        number = self.properties.get("number", "")
        return int(number) if number and "-" not in self.point else None


class RunReport:
    """A run as its journal tells it."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.started: RunStarted | None = None
        self.finished: RunFinished | None = None
        self.usage: Usage | None = None
        self.bisected: Bisected | None = None
        self.compared: Compared | None = None
        self.jobs: dict[tuple[str, str], JobReport] = {}

    @property
    def series(self) -> str:
        return self.started.series if self.started else "unknown"

    @property
    def exit_code(self) -> int | None:
        """The run's own exit code, but never 0 if its cases are not green: the journal of an older harness, or one that lost
        lines, may say so. None if the run was killed or goes on."""
        return self.finished.exit_code or self.judged if self.finished else None

    @property
    def judged(self) -> int:
        """The exit code that follows from the cases alone."""
        if self.bisected:
            return 0 if self.bisected.verdict is Verdict.GREEN else 1
        outcomes = self.count()
        if Outcome.ERROR in outcomes:
            return 3
        return 1 if self.unproved or any(not outcome.green for outcome in outcomes) else 0

    @property
    def cut_short(self) -> str:
        """Why it is not whole, or not whole yet; empty if it ended by itself."""
        if self.finished:
            return self.finished.error or self._lacks_reds
        return "it is still going on" if _locked(self.directory / _NAME) else "it was killed before it ended"

    @property
    def _lacks_reds(self) -> str:
        """A message if the run was red, and nothing in its journal shows why: lines of it were lost. Else empty."""
        code = self.finished.exit_code if self.finished else 0
        if not code or self.bisected or self.unproved or any(not result.outcome.green for result in self.results):
            return ""
        return f"it ended with exit code {code}, but its journal has no red case: some of it is missing"

    @property
    def uncompared(self) -> list[str]:
        """The jobs, `arch/point`, that were whole in an earlier run and are not in this one."""
        places = {job.name: job for job in self.jobs.values()}
        return [name for name in (self.compared.since if self.compared else ()) if not places[name].finished]

    @property
    def results(self) -> list[CaseResult]:
        return [result for job in self.jobs.values() for result in job.results]

    @property
    def unproved(self) -> str:
        """The reason why the run proves nothing although no case is red; empty if it proves something."""
        if not self.results:
            return "no case was reported"
        tested = [result for result in self.results if result.suite not in BUILT]
        if tested and all(result.outcome is Outcome.SKIP for result in tested):
            return "every case was skipped: nothing was tested"
        if self.bisected and self.bisected.verdict is Verdict.UNKNOWN and all(result.outcome.green for result in tested):
            return f"the bisection found no patch: {self.bisected.answer}"
        return ""

    @property
    def reds(self) -> list[tuple[CaseResult, list[JobReport]]]:
        """The red cases, each with the jobs of one architecture in which it is the same."""
        alike: dict[tuple[str, ...], tuple[CaseResult, list[JobReport]]] = {}
        for job in self.jobs.values():
            for result in job.results:
                if not result.outcome.green:
                    key = (job.arch, result.id, result.outcome, result.diagnostic)
                    alike.setdefault(key, (result, []))[1].append(job)
        return list(alike.values())

    @property
    def outlived(self) -> list[tuple[KnownPassed, list[JobReport]]]:
        """Entries of known.toml whose cases passed, and in which jobs."""
        alike: dict[tuple[str, str], tuple[KnownPassed, list[JobReport]]] = {}
        for job in self.jobs.values():
            for one in job.outlived.values():
                alike.setdefault((one.case, one.reason), (one, []))[1].append(job)
        return list(alike.values())

    def count(self) -> dict[Outcome, int]:
        """How many cases came out how, in the order of Outcome; outcomes that did not occur are left out."""
        outcomes = [result.outcome for result in self.results]
        return {outcome: outcomes.count(outcome) for outcome in Outcome if outcome in outcomes}

    def add(self, event: Event) -> None:
        match event:
            case RunStarted():
                self.started = event
            case RunFinished():
                self.finished = event
            case RunResumed():
                self.finished = self.bisected = self.compared = None
                for job in self.jobs.values():
                    # What went wrong on our side is tried again.
                    kept = {name: case for name, case in job.cases.items() if case.result.outcome is not Outcome.ERROR}
                    job.finished &= len(kept) == len(job.cases) and not job.incomplete
                    job.cases = kept
                    job.outlived = job.outlived if job.finished else {}
            case Used():
                self.usage = event.usage + self.usage if self.usage else event.usage
            case Compared():
                self.compared = event
            case Bisected():
                self.bisected = event
            case JobPlanned():
                self.job(event.arch, event.point).planned = event
            case JobStarted():
                job = self.job(event.arch, event.point)
                job.started = job.started or event.time
            case JobProperties():
                self.job(event.arch, event.point).properties.update(event.properties)
            case StageFinished():
                self.job(event.arch, event.point).stages[event.stage] = event
            case KnownPassed():
                self.job(event.arch, event.point).outlived[event.case, event.reason] = event
            case JobFinished():
                self.job(event.arch, event.point).finished = True
            case JobLost():
                self.job(event.arch, event.point).forget()
            case CaseFinished():
                cases = self.job(event.arch, event.point).cases
                earlier = cases.get(event.result.id)
                if supersedes(event.result, earlier.result if earlier else None):
                    cases[event.result.id] = event

    def close(self) -> None:
        """Add an error for each incomplete job. The errors are not written to the journal, because `--resume` may still complete
        the job."""
        for job in self.jobs.values():
            if why := job.incomplete:
                result = CaseResult(JOB, job.name, Outcome.ERROR, diagnostic=why)
                job.cases[result.id] = CaseFinished(job.started, job.arch, job.point, result)

    def job(self, arch: str, point: str) -> JobReport:
        return self.jobs.setdefault((arch, point), JobReport(arch, point))


def supersedes(result: CaseResult, earlier: CaseResult | None) -> bool:
    """What was red once stays red, whatever was reported under the same name later; unless that knows of it."""
    return earlier is None or bool(result.tries) or (earlier.outcome.green and not result.outcome.green)


def stands(result: CaseResult) -> bool:
    """True if the result counts even when another worker does the job again: a test or the kernel has failed, and no later pass
    takes that back. A guest that was lost or silent, and a build that failed, may have died with the worker."""
    failed = result.outcome in (Outcome.FAIL, Outcome.UNRESOLVED, Outcome.CRASH, Outcome.FLAKY)
    return failed and result.suite not in BUILT


def _locked(path: Path) -> bool:
    """Whether somebody writes it."""
    try:
        with path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        pass
    return False


def read_run(directory: Path) -> RunReport:
    """Raises UserError if `directory` holds no run. A last line that was cut short by a kill is left out."""
    path = directory / _NAME
    if not path.is_file():
        raise UserError(f"no run in {directory}", hint="a folder that `harness run` made, such as runs/latest")
    report = RunReport(directory)
    lines = path.read_bytes().split(b"\n")
    for number, line in enumerate(lines, 1):
        if not line:
            continue
        try:
            report.add(from_json(line, Event))  # type: ignore[arg-type]
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            if number == len(lines):
                break
            if not _of_another_version(line):
                raise UserError(f"{path}:{number}: {error}", hint="the journal is damaged") from None
    report.close()
    return report


class _AnyEvent(Struct):
    event: str


def _of_another_version(line: bytes) -> bool:
    """True if the line is an event that this version does not know, because a newer harness wrote it."""
    try:
        return msgspec.json.decode(line, type=_AnyEvent).event not in _TAGS
    except (msgspec.DecodeError, UnicodeDecodeError):
        return False


def now() -> float:
    """Seconds since the epoch."""
    return round(time.time(), 3)
