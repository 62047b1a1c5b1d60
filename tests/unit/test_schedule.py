"""Which task runs when, and what becomes of the rest when one fails or somebody presses Ctrl-C."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import psutil
import pytest

from harness import process
from harness.kernel import Jobserver
from harness.model import Usage
from harness.schedule import Kind, Scheduler, Task
from tests.conftest import default_signals, survivors

SECONDS = 60
"""After which what should come to pass has not."""


class Log:
    """Tasks that record which of them run at the same time."""

    def __init__(self) -> None:
        self.events: list[str] = []
        self.running: set[str] = set()
        self.most: list[frozenset[str]] = []
        self._lock = threading.Lock()

    def task(
        self,
        name: str,
        kind: Kind = Kind.BUILD,
        seconds: float = 0,
        memory: int = 1,
        then: tuple[Task, ...] = (),
        place: str = "",
        together: threading.Barrier | None = None,
    ) -> Task:
        """It ends only when as many run at the same time as `together` wants."""

        def work() -> tuple[Task, ...]:
            with self._lock:
                self.events.append(name)
                self.running.add(name)
                self.most.append(frozenset(self.running))
            if together:
                together.wait(SECONDS)
            time.sleep(0.02)  # in which one that should not run beside them is seen, if it is started
            with self._lock:
                self.running.discard(name)
            return then

        return Task(name, kind, memory, seconds, work, place=place)


def test_longest_first_and_followers_after_their_task() -> None:
    log = Log()
    after = log.task("after", Kind.GUEST)
    tasks = [log.task("short", seconds=1), log.task("unknown"), log.task("long", seconds=9, then=(after,))]
    Scheduler(1, memory=100).run(tasks)
    assert log.events[0] == "long"
    assert log.events.index("short") < log.events.index("unknown")
    assert log.events.index("after") > 0


def test_as_many_of_a_kind_as_there_are_cores() -> None:
    log = Log()
    pairs = {kind: threading.Barrier(2) for kind in Kind}
    tasks = [log.task(f"{kind}{number}", kind, together=pairs[kind]) for kind in Kind for number in range(6)]
    Scheduler(2, memory=100).run(tasks)
    assert len(log.events) == 12
    for kind in Kind:
        assert max(sum(name.startswith(kind.value) for name in together) for together in log.most) == 2


def test_memory_is_never_exceeded_but_one_task_always_runs() -> None:
    log = Log()
    pair = threading.Barrier(2)
    small = [log.task(f"small{number}", memory=5, together=pair) for number in range(4)]
    Scheduler(4, memory=10).run([log.task("big", memory=50), *small])
    assert len(log.events) == 5
    assert {"big"} in log.most
    for together in log.most:
        assert together == {"big"} or ("big" not in together and len(together) <= 2)


def test_idle_core_is_offered_to_a_running_task() -> None:
    log = Log()
    helpers = iter([log.task("helper", Kind.GUEST)])
    offered = threading.Event()

    def help_out() -> Task | None:
        offered.set()
        return next(helpers, None)

    def work() -> tuple[Task, ...]:
        assert offered.wait(SECONDS)
        return ()

    Scheduler(2, memory=100).run([Task("guest", Kind.GUEST, 1, 1, work, help_out)])
    assert log.events == ["helper"]


def test_failing_task_ends_the_others_children() -> None:
    started = threading.Event()

    def sleep() -> tuple[Task, ...]:
        with process.start(["sleep", "1000"]) as child:
            started.set()
            child.wait()
        process.check_stopped()
        return ()

    def fail() -> tuple[Task, ...]:
        assert started.wait(SECONDS)
        raise ValueError("as asked")

    with pytest.raises(ValueError, match="as asked"):
        Scheduler(2, memory=100).run([Task("sleep", Kind.BUILD, 1, 2, sleep), Task("fail", Kind.BUILD, 1, 1, fail)])
    assert process.run(["true"]).returncode == 0  # and afterwards children may start again


def test_nothing_starts_after_stop() -> None:
    process.stop()
    try:
        with pytest.raises(process.Stopped):
            process.run(["true"])
    finally:
        process.resume()


CTRL_C = r"""
import os
from harness import process
from harness.schedule import Kind, Scheduler, Task
def sleep():
    with process.start(["sh", "-c", "trap '' TERM; sleep 1000"]) as child:
        os.write(1, b"started\n")
        child.wait()
    return ()
try:
    Scheduler(2, memory=100).run([Task(str(number), Kind.BUILD, 1, 1, sleep) for number in range(4)])
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


def test_ctrl_c_ends_everything_even_what_does_not_listen(tmp_path: Path) -> None:
    words = [sys.executable, "-c", CTRL_C]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, cwd=tmp_path, preexec_fn=default_signals) as run:
        assert run.stdout
        assert [run.stdout.readline() for _ in range(2)] == ["started\n"] * 2
        children = psutil.Process(run.pid).children(recursive=True)
        os.kill(run.pid, signal.SIGINT)
        assert run.stdout.read() == "interrupted\n"
    assert not survivors(children)


def test_usage() -> None:
    assert Usage(wall=10, cpu=18, cores=2).share == 0.9
    assert Usage(wall=0, cpu=0, cores=2).share == 0


def test_several_makes_share_their_jobs(tmp_path: Path) -> None:
    """Four makes with four jobs each, and never more than three at a time."""
    (tmp_path / "Makefile").write_text(
        "all: 1 2 3 4\n1 2 3 4:\n\t@mkdir run/$(T)$@ && ls run | wc -l >>seen && sleep 0.1 && rmdir run/$(T)$@\n"
    )
    (tmp_path / "run").mkdir()
    jobserver = Jobserver(3)

    def make(name: str) -> None:
        with jobserver.slot() as slot:
            process.run(["make", "-C", tmp_path, f"T={name}"], env=slot.env, pass_fds=slot.fds)

    threads = [threading.Thread(target=make, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seen = [int(line) for line in (tmp_path / "seen").read_text().split()]
    assert len(seen) == 16
    assert max(seen) <= 3


def test_jobs_of_a_make_that_was_killed_come_back() -> None:
    jobserver = Jobserver(2)
    with jobserver.slot(), jobserver.slot():
        pass
    with jobserver.slot() as slot:
        os.read(slot.fds[0], 1)  # taken and never given back
    with jobserver.slot(), jobserver.slot():
        pass
    jobserver.close()


def test_second_ctrl_c_does_not_leave_threads_behind(tmp_path: Path) -> None:
    words = [sys.executable, "-c", CTRL_C]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, cwd=tmp_path, preexec_fn=default_signals) as run:
        assert run.stdout
        assert [run.stdout.readline() for _ in range(2)] == ["started\n"] * 2
        for _ in range(5):
            os.kill(run.pid, signal.SIGINT)
            time.sleep(0.05)
        assert run.stdout.read() == "interrupted\n"  # and nothing was started after that


def test_other_machines_have_slots_and_cost_nothing_here() -> None:
    log = Log()
    first, others = threading.Barrier(4), threading.Barrier(3)
    here = [log.task(f"here{number}", Kind.GUEST, memory=60, together=None if number else first) for number in range(4)]
    there = [
        log.task(f"there{number}", Kind.GUEST, memory=1000, place="far", together=others if number > 2 else first)
        for number in range(9)
    ]
    Scheduler(2, memory=100, slots={"far": 3}).run([*here, *there])
    assert len(log.events) == 13
    assert max(sum(name.startswith("there") for name in running) for running in log.most) == 3
    # Memory for one here, whatever runs there.
    assert max(sum(name.startswith("here") for name in running) for running in log.most) == 1
    assert any({name[0] for name in running} == {"h", "t"} for running in log.most)
