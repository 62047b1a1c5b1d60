"""Jobs that a worker of a cluster does: those of one architecture at some points in a row, for what is alike in their kernels is
built once only there. What it says goes into our journal as if it were said here."""

from __future__ import annotations

import math
import shutil
import tempfile
import threading
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import msgspec

from harness import cluster, series, tree
from harness.arch import Arch
from harness.cluster import Done, Errand, Heard
from harness.errors import HarnessError, InfrastructureError
from harness.job import build
from harness.job.context import Built, Context
from harness.job.reporter import Failed, Reporter
from harness.model import WARNINGS, CaseResult, Outcome, Point, Series, from_json
from harness.options import RUN, RunOptions, Use, compose
from harness.results import JobFacts, journal, read_facts
from harness.schedule import Kind, Task
from harness.suites import Selection

PLACE = "cluster"
_ROUNDS = 2
"""How often a worker is given something: the second time evens out how long the first one took."""
_SERIES, _CONFIG = "series", "config"


def tasks(context: Context, points: Sequence[Point]) -> list[Task]:
    """All that is left to do at these points, for as many workers as there are."""
    return [task for arch in context.request.archs for task in _tasks(context, arch, points)]


def _tasks(context: Context, arch: Arch, points: Sequence[Point]) -> Iterator[Task]:
    order = _Order(point.number for point in points)
    jobs = [_Job(context, arch, point, order) for point in points]
    left = [job for job in jobs if not job.over]
    assert context.cluster
    workers = context.cluster.slots(context.cluster.needs(arch, context.request.options.accel))
    size = math.ceil(len(left) * len(context.request.archs) / (_ROUNDS * max(1, workers)))
    while left:
        here = left[:size]
        # Two points with one kernel share what is told of it.
        while len(here) < len(left) and _alike(context, arch, here[-1].point, left[len(here)].point):
            here.append(left[len(here)])
        left = left[len(here) :]
        yield _Errand(context, arch, here).task()


def _alike(context: Context, arch: Arch, one: Point, other: Point) -> bool:
    contents = [context.store.content(point.commit, arch.kernel.folders) for point in (one, other)]
    return contents[0] == contents[1]


class _Order:
    """Of the points of one architecture. They may be built in any; warnings are new since the point before that was built."""

    def __init__(self, numbers: Iterable[int]) -> None:
        self.lock = threading.RLock()
        self._left = deque(sorted(numbers))
        self._built: dict[int, tuple[_Job, Built | None]] = {}
        self._before: Built | None = None

    def built(self, job: _Job, built: Built | None) -> None:
        """None if there is no kernel. Every job hears of what was built before it as soon as that is known."""
        self._built[job.point.number] = job, built
        while self._left and self._left[0] in self._built:
            following, now = self._built[self._left.popleft()]
            following.compare(self._before)
            self._before = now or self._before


class _Job:
    """What is said of one point."""

    def __init__(self, context: Context, arch: Arch, point: Point, order: _Order) -> None:
        self.point = point
        self.reporter = Reporter(context, arch, point)
        self.over = self.reporter.before.finished
        """Nothing is left to do."""
        self._context = context
        self._order = order
        self._built: Built | None = None
        self._facts = build.facts(context, point)
        self._before: Built | None = None
        self._judged = self._ended = False
        if self.over:
            build_case = next((one for one in self.reporter.before.results if one.id == _BUILD), None)
            with order.lock:
                order.built(self, self._with(build_case))

    def begin(self, why: str = "") -> None:
        """`why` it is begun once more, if it is: what was said of it does not count then."""
        if why or self.reporter.results:
            self.reporter.start_over(why or "the run was taken up again")
            self._built = None
        self.reporter.begin()
        self.reporter.add_facts(self._facts)
        try:
            build.report_patches(self._context, self.point, self.reporter)
        except Failed:
            self._end()

    def hear(self, event: journal.OfJob) -> None:
        match event:
            case journal.CaseFinished():
                self._hear_case(event.result)
            case journal.JobProperties():
                self._check(read_facts(event.properties))
                ours = self._facts.properties
                new = {name: text for name, text in event.properties.items() if name not in ours}
                self.reporter.add_facts(read_facts(new))
            case journal.StageFinished():
                self._note(event)
                self.reporter.finished(event.stage, event.seconds, event.cached)
            case journal.KnownPassed():
                self._context.events.write(event)
            case journal.JobFinished():
                self._end()

    def fail(self, why: str, log: str) -> None:
        """Nobody will say any more of it."""
        if not any(result.outcome is Outcome.ERROR for result in self.reporter.results.values()):
            self.reporter.emit(CaseResult("worker", "worker", Outcome.ERROR, diagnostic=why, log=log))
        with self._order.lock:
            if self._built is None and not self._judged:
                self._order.built(self, None)
        self.reporter.idle()

    def compare(self, before: Built | None) -> None:
        """Called by the order that it is in."""
        self._before, self._judged = before, True
        self._report_warnings()
        if self._ended:
            self.reporter.end()

    def _hear_case(self, result: CaseResult) -> None:
        # Which patches and which warnings are new, only we know: the worker has no point before.
        if result.suite == "apply" or result.id == WARNINGS:
            return
        self.reporter.take(result)
        if result.id == _BUILD:
            with self._order.lock:
                self._built = self._with(result)
                if self._judged:
                    self._report_warnings()
                else:
                    self._order.built(self, self._built)

    def _end(self) -> None:
        self.over = True
        with self._order.lock:
            self._ended = True
            if self._judged:
                self.reporter.end()
            elif self._built is None:
                self._order.built(self, None)

    def _note(self, stage: journal.StageFinished) -> None:
        """How long it takes there, so that the longest can go first."""
        if stage.stage == "build" and not stage.cached:
            self.reporter.durations.note("build", stage.seconds)
        elif stage.stage == "guest" and not any(selection.globs for selection in self._context.request.selections):
            self.reporter.durations.note("test", stage.seconds)
        else:
            return
        self.reporter.durations.save()

    def _report_warnings(self) -> None:
        if self._before and self._built:
            build.report_warnings(self._before, self._built, self.reporter)

    def _with(self, built: CaseResult | None) -> Built | None:
        return Built(self.point, tuple(built.log.splitlines())) if built and built.outcome is Outcome.PASS else None

    def _check(self, theirs: JobFacts) -> None:
        """Raises InfrastructureError if the worker has other commits: these are made of content
        alone, so they prove that its job is the one that was sent."""
        ours = self._facts
        commits = {
            "base": (theirs.base, ours.base),
            "commit": (theirs.commit, ours.commit),
            "selftests": (theirs.selftests, ours.selftests),
        }
        other = [name for name, (there, here) in commits.items() if there not in (None, here)]
        if other:
            tree = theirs.tree or "another"
            raise InfrastructureError(
                f"its worker tests something else than was sent: not the same {', '.join(other)}",
                hint=f"the tree there is {tree}: name one version of it, PACKAGE=VERSION",
            )


_BUILD = "build:build"


class _TheRest(Exception):
    """Some jobs of an errand are done: whoever takes it up does the others."""


class _Errand:
    """What one worker does in one go."""

    def __init__(self, context: Context, arch: Arch, jobs: Sequence[_Job]) -> None:
        self._context = context
        self._arch = arch
        self._jobs = {job.point.name: job for job in jobs}
        self._name = f"{arch.name}/{'+'.join(self._jobs)}"
        self._sent = 0
        """How many of them the worker has."""
        self._attempt = ""
        self._lost: set[str] = set()
        """Attempts that do not count."""
        self._heard = 0
        """Lines of the journal of this one."""
        self._delivered: set[str] = set()
        """Points whose files are there."""
        self._ended: journal.RunFinished | None = None

    def task(self) -> Task:
        return Task(self._name, Kind.BUILD, 0, self._seconds, self._work, place=PLACE)

    @property
    def _seconds(self) -> float:
        return sum(job.reporter.expected for job in self._jobs.values())

    def _work(self) -> list[Task]:
        for job in self._jobs.values():
            job.begin()
        while left := [job for job in self._jobs.values() if not job.over]:
            self._sent = len(left)
            for job in left:
                job.reporter.step("worker")
            assert self._context.cluster
            try:
                needs = self._context.cluster.needs(self._arch, self._context.request.options.accel)
                done = self._context.cluster.run(self._errand(left), needs, self._seconds, self._hear)
                self._hear(done.heard)
                self._deliver(done.heard, left)
                why, log = self._ending(done)
            except _TheRest:
                continue
            except HarnessError as failure:
                why, log = failure.message, failure.hint
            for job in left:
                if not job.over:
                    job.fail(why, log)
            break
        return []

    def _hear(self, heard: Heard) -> None:
        """Of an attempt that takes the place of another one, all counts anew. Raises _TheRest if it does more than is left."""
        if heard.attempt in self._lost:
            return
        if heard.attempt != self._attempt:
            self._change(heard)
        if heard.first > self._heard:
            return  # something got lost on the way; in the end, all of it comes
        for line in heard.lines[self._heard - heard.first :]:
            self._read(line)
            self._heard += 1
        if heard.files:
            self._deliver(heard, [job for job in self._jobs.values() if job.over])

    def _change(self, heard: Heard) -> None:
        left = [job for job in self._jobs.values() if not job.over]
        before, self._attempt, self._heard, self._ended = self._attempt, heard.attempt, 0, None
        if before:
            self._lost.add(before)
            for job in left:
                job.begin("its worker is gone, and another one does it")
            if len(left) < self._sent:
                self._lost.add(heard.attempt)
                self._attempt = ""
                raise _TheRest
        for job in left:
            job.reporter.add_facts(JobFacts(host=heard.host))

    def _deliver(self, heard: Heard, jobs: Iterable[_Job]) -> None:
        """The files of the attempt that is reported."""
        names = {job.point.name for job in jobs} - self._delivered
        if names:
            cluster.unpack(heard.files, self._context.before.directory, [f"{self._arch.name}/{name}/" for name in names])
        self._delivered |= names

    def _read(self, line: str) -> None:
        event: journal.Event = from_json(line, journal.Event)  # type: ignore[arg-type]
        if isinstance(event, journal.OfJob):
            if not (job := self._jobs[event.point]).over:
                job.hear(event)
        elif isinstance(event, journal.Used):
            self._context.events.write(event)
        elif isinstance(event, journal.RunFinished):
            self._ended = event

    def _ending(self, done: Done) -> tuple[str, str]:
        """Why jobs are left that did not end."""
        if self._ended and self._ended.error:
            return self._ended.error.removeprefix("error: "), ""
        return f"`harness run` ended with {done.status} on {done.heard.host}", done.output

    def _errand(self, jobs: Sequence[_Job]) -> Errand:
        request = self._context.request
        with tempfile.TemporaryDirectory(prefix="harness-") as name:
            folder = Path(name)
            if request.series.patches:
                # Whatever it came from: as a directory it is the same.
                there = folder / _SERIES / request.series.name
                series.export(request.series, there, mbox=False)
                series.preimages.write(request.series, self._context.applied, self._context.store, there)
                if _expected(series.load(str(there), self._context.cache)) != _expected(request.series):
                    raise InfrastructureError(f"{request.series.name} does not survive its export", hint="harness series export")
            for number, fragment in enumerate(request.fragments):
                (folder / _CONFIG / str(number)).mkdir(parents=True)
                shutil.copy2(fragment, folder / _CONFIG / str(number))
            files = cluster.pack(folder)
        words = compose(RUN, self._narrowed(jobs)).using(Use.WORKER).words
        return Errand(self._name, words, files, cluster.fingerprint())

    def _narrowed(self, jobs: Sequence[_Job]) -> RunOptions:
        """The options of the request, narrowed to these jobs, for another machine."""
        request, cache = self._context.request, self._context.cache
        options = request.options
        # The worker's names for them, in the folder that the batch is unpacked to.
        series_spec = f"{_SERIES}/{request.series.name}" if request.series.patches else "none"
        names = [fragment.name for fragment in request.fragments]
        fragments = [Path(_CONFIG, str(number), name) for number, name in enumerate(names)]
        return msgspec.structs.replace(
            options,
            series_spec=series_spec,
            tree_spec=tree.pinned(request.tree, cache),
            selftests=tree.pinned(options.selftests, cache) if options.selftests else "",
            archs=(self._arch.name,),
            points=",".join(job.point.name for job in jobs),
            suite_specs=tuple(_specs(request.selections)),
            fragments=tuple(fragments),
            shared_cache=request.shared,
        )


def _specs(selections: Iterable[Selection]) -> Iterator[str]:
    """What `--suite` takes to select the same. Commands are selected by `--cmd`."""
    for selection in selections:
        if selection.suite == "command":
            continue
        if not selection.globs:
            yield selection.suite
        yield from (f"{selection.suite}:{glob}" for glob in selection.globs)


def _expected(of: Series) -> tuple[object, ...]:
    """All that says what is green."""
    return of.digest, of.must_run, of.claims, of.measures, of.fragment and of.fragment.read_bytes()
