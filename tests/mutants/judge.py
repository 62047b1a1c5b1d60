"""Try one mutant: a process that is forked from this one imports the changed copy and runs the tests that can notice it."""

from __future__ import annotations

import os
import resource
import signal
import sys
import time
import traceback
from collections.abc import Sequence
from enum import Enum
from pathlib import Path

import msgspec
import psutil
import pytest
from msgspec import Struct

import harness.cli  # noqa: F401  the children import the harness anew, but what it imports is there already
from tests.mutants.generate import Mutant
from tests.mutants.tree import environment
from tests.mutants.watch import Chosen

_MEMORY = 6 << 30
_FILE = 1 << 30
"""Bytes. A mutant may never stop to allocate or to write."""

_LEAST_SECONDS = 20.0
_TIMES = 10.0
"""A test may take this much longer than without the mutant."""


class Verdict(Enum):
    KILLED = "killed"
    """A test failed."""
    TIMEOUT = "timeout"
    """A test that is quick without the mutant did not end. It counts as killed."""
    SURVIVED = "survived"
    UNTESTED = "untested"
    """The tests could not be run, so there is no verdict."""


class Tried(Struct, frozen=True):
    verdict: Verdict
    by: str = ""
    """The test that noticed it, or why it could not be tried."""
    seconds: float = 0.0


class Attempt:
    """One mutant in one copy of the project, while its tests run."""

    def __init__(self, mutant: Mutant | None, tests: Sequence[str], expected: dict[str, float], tree: Path) -> None:
        """Without a mutant the tests run in the copy as it is."""
        self.mutant = mutant
        self.tests = tests
        self.tree = tree
        self._expected = expected
        self._diary = tree.with_name(f"{tree.name}.diary")
        self._diary.write_bytes(b"")
        self._begun = time.monotonic()
        self._original = b""
        self._times = (0, 0)
        if mutant:
            self._change(tree / mutant.file, mutant)
        self._pid = _forked(tests, tree, self._diary)

    def _change(self, path: Path, mutant: Mutant) -> None:
        self._original = path.read_bytes()
        self._times = (path.stat().st_atime_ns, path.stat().st_mtime_ns)
        path.write_text(mutant.applied(self._original.decode("utf-8")), encoding="utf-8")
        # Python regards bytecode as valid if the source's time (in seconds) and size match; so each mutant gets another second.
        Attempt._second += 1
        os.utime(path, (Attempt._second, Attempt._second))

    _second = 1_000_000_000

    def poll(self) -> Tried | None:
        """The result; None while the tests run."""
        pid, status = os.waitpid(self._pid, os.WNOHANG)
        if pid:
            tried = self._verdict(os.waitstatus_to_exitcode(status))
        elif self._late():
            end_all(self._pid)
            os.waitpid(self._pid, 0)
            tried = Tried(Verdict.TIMEOUT, self._running())
        else:
            return None
        self.restore()
        return msgspec.structs.replace(tried, seconds=round(time.monotonic() - self._begun, 2))

    def stop(self) -> None:
        end_all(self._pid)
        os.waitpid(self._pid, 0)
        self.restore()

    def restore(self) -> None:
        if self.mutant:
            path = self.tree / self.mutant.file
            path.write_bytes(self._original)
            os.utime(path, ns=self._times)

    def _entries(self) -> list[list[str]]:
        lines = self._diary.read_bytes().splitlines()
        return [msgspec.json.decode(line, type=list[str]) for line in lines if line.endswith(b"]")]

    def _running(self) -> str:
        return next((words[1] for words in reversed(self._entries()) if words[0] == "begin"), "import")

    def _late(self) -> bool:
        """True if the current test takes too long."""
        expected = self._expected.get(self._running(), 0.0)
        since = time.time() - self._diary.stat().st_mtime
        return since > _LEAST_SECONDS + _TIMES * expected

    def _verdict(self, code: int) -> Tried:
        entries = self._entries()
        end = next((words for words in reversed(entries) if words[0] == "end"), None)
        if code < 0 or (end is None and entries and entries[-1][0] == "begin"):
            return Tried(Verdict.KILLED, self._running())  # it ended the whole process
        if end is None:
            return Tried(Verdict.UNTESTED, f"pytest ended with {code} before any test")
        _, status, failed, done = end
        if failed:
            return Tried(Verdict.KILLED, failed)
        if status == "2":
            return Tried(Verdict.KILLED, self._running())  # KeyboardInterrupt
        if status != "0" or int(done) != len(self.tests):
            return Tried(Verdict.UNTESTED, f"pytest ended with {status} after {done} of {len(self.tests)} tests")
        return Tried(Verdict.SURVIVED)


def end_all(pid: int) -> None:
    try:
        process = psutil.Process(pid)
        every = [*process.children(recursive=True), process]
    except psutil.NoSuchProcess:
        return
    for one in every:
        try:
            one.kill()
        except psutil.NoSuchProcess:
            continue


def _forked(tests: Sequence[str], tree: Path, diary: Path) -> int:
    if pid := os.fork():
        return pid
    status = 70
    try:
        os.setsid()
        status = _child(tests, tree, diary)
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)


def _child(tests: Sequence[str], tree: Path, diary: Path) -> int:
    log = os.open(tree.with_name(f"{tree.name}.log"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(log, 1)
    os.dup2(log, 2)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, resource.RLIM_INFINITY))
    resource.setrlimit(resource.RLIMIT_FSIZE, (_FILE, resource.RLIM_INFINITY))
    os.environ.clear()
    os.environ.update(environment(tree))
    sys.dont_write_bytecode = True
    os.chdir(tree)
    chosen = Chosen(tests, diary)
    for name in [*sys.modules]:
        if name.partition(".")[0] in ("harness", "tests"):
            del sys.modules[name]
    sys.path[:] = [str(tree), *(path for path in sys.path if path not in ("", str(Path.cwd())))]
    places = sorted({test.partition("::")[0] for test in tests})
    options = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", f"--basetemp={tree.with_name(tree.name + '.tmp')}"]
    return int(pytest.main([*options, *places], plugins=[chosen]))
