"""One pool of compiler jobs for several makes: GNU make's own jobserver, with us in the place of the topmost make.

Every byte in a pipe is the right to run one job. A make may run one as soon as it is there, so we take that byte for it."""

from __future__ import annotations

import contextlib
import os
import select
import threading
from collections.abc import Iterator

from msgspec import Struct

from harness import process


class Slot(Struct, frozen=True):
    """What a make must be given to take part."""

    env: dict[str, str]
    fds: tuple[int, ...]


class Jobserver:
    """`jobs` compilers at a time, over all makes."""

    def __init__(self, jobs: int) -> None:
        self.jobs = jobs
        self._lock = threading.Lock()
        self._makes = 0
        self._read, self._write = os.pipe()
        os.set_blocking(self._read, False)  # make does it as well, and it holds for all who share the pipe
        self._refill()

    @contextlib.contextmanager
    def slot(self) -> Iterator[Slot]:
        """For one make. Waits for a job to be free."""
        with self._lock:
            self._makes += 1
        taken = self._take()
        try:
            yield Slot({"MAKEFLAGS": f" -j{self.jobs} --jobserver-auth={self._read},{self._write}"}, (self._read, self._write))
        finally:
            os.write(self._write, taken)
            with self._lock:
                self._makes -= 1
                if not self._makes:
                    self._refill()

    def _take(self) -> bytes:
        while True:
            select.select([self._read], [], [], 1)
            process.check_stopped()
            with contextlib.suppress(BlockingIOError):  # another make was faster
                return os.read(self._read, 1)

    def _refill(self) -> None:
        """A make that was killed keeps what it had taken."""
        with contextlib.suppress(BlockingIOError):
            while True:
                os.read(self._read, self.jobs)
        os.write(self._write, b"+" * self.jobs)

    def close(self) -> None:
        os.close(self._read)
        os.close(self._write)
