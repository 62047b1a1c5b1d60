"""Which task runs when: builds and guests side by side, as many as cores and memory allow, those that take longest first.

Builds share one pool of make's jobs and give way to guests, and a guest that tests something holds about a core. So there are
as many builds and as many guests at a time as there are cores: what one leaves idle (a link, a test that sleeps) the others
use, and memory is what limits them."""

from __future__ import annotations

import resource
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from enum import StrEnum

import psutil
from msgspec import Struct

from harness import process
from harness.model import Usage

_SHARE_OF_MEMORY = 0.9
"""Of what is available at the start; the rest is for the harness and for whoever else works on the machine."""


class Kind(StrEnum):
    BUILD = "build"
    GUEST = "guest"


class Task(Struct, frozen=True, eq=False):
    """Something to be done in a thread. What `work` returns is done afterwards."""

    name: str
    kind: Kind
    memory: int
    """MiB."""
    seconds: float
    """What it and all that follows from it took before."""
    work: Callable[[], Iterable[Task]]
    helper: Callable[[], Task | None] = lambda: None
    """Asked while the task runs and a core is idle: a task of its kind and size that takes some of its work over, or None."""
    place: str = ""
    """The machine that does it, if not this one: then neither its cores nor its memory are used."""


class Scheduler:
    """Call `run` once."""

    def __init__(self, cores: int, memory: int | None = None, slots: Mapping[str, int] = {}) -> None:
        """`memory` in MiB, by default most of what is available. `slots` are tasks at a time on other machines, by name."""
        self._slots = slots
        self._cores = cores
        self._memory = memory or int(psutil.virtual_memory().available * _SHARE_OF_MEMORY) >> 20
        self._start = (time.monotonic(), _cpu_seconds())

    def run(self, tasks: Iterable[Task]) -> None:
        """Do everything. An exception of a task, or Ctrl-C, ends all children at once and is raised when the threads are gone."""
        waiting = list(tasks)
        running: dict[Future[Iterable[Task]], Task] = {}
        self._start = (time.monotonic(), _cpu_seconds())
        pool = ThreadPoolExecutor(max_workers=2 * self._cores + sum(self._slots.values()))
        try:
            while waiting or running:
                while task := self._next(waiting, running.values()):
                    running[pool.submit(task.work)] = task
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    del running[future]
                    waiting += future.result()
        except BaseException:
            _wind_down(pool)
            raise
        pool.shutdown()

    @property
    def usage(self) -> Usage:
        """Since `run` was called."""
        wall, cpu = self._start
        return Usage(round(time.monotonic() - wall, 1), round(_cpu_seconds() - cpu, 1), self._cores)

    def _next(self, waiting: list[Task], running: Collection[Task]) -> Task | None:
        """The longest waiting task for which there is room now, taken off the list; else a helper, if a core is idle."""
        for task in sorted(waiting, key=lambda task: task.seconds, reverse=True):
            if self._fits(task, running):
                waiting.remove(task)
                return task
        # A helper is like the task that it helps, and must be run once it was asked for.
        helped = (task for task in running if self._idle(task.place, waiting, running) and self._fits(task, running))
        return next((helper for task in helped if (helper := task.helper())), None)

    def _idle(self, place: str, waiting: Collection[Task], running: Collection[Task]) -> bool:
        """Whether there is a core or a slot that nobody waits for."""
        beside = [task for task in running if task.place == place]
        return len(beside) < self._slots.get(place, self._cores) and all(task.place != place for task in waiting)

    def _fits(self, task: Task, running: Collection[Task]) -> bool:
        """One task always does, lest a machine with little memory does nothing at all."""
        beside = [other for other in running if other.place == task.place]
        if task.place:
            return len(beside) < self._slots[task.place]
        alike = sum(other.kind is task.kind for other in beside)
        memory = sum(other.memory for other in beside)
        return not beside or (alike < self._cores and memory + task.memory <= self._memory)


def _wind_down(pool: ThreadPoolExecutor) -> None:
    """End all children and wait for the threads. Who presses Ctrl-C once more wants it sooner, not half done."""
    while True:
        try:
            process.stop()
            pool.shutdown()
            process.resume()
            return
        except KeyboardInterrupt:
            process.kill()


def _cpu_seconds() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in used)
