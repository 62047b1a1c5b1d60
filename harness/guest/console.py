"""The kernel's console: every byte to a file as it came, every line to whoever listens."""

from __future__ import annotations

import re
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path

import pexpect
from pexpect import fdpexpect

from harness.guest.frames import Frame, take
from harness.guest.timing import TIMING
from harness.logs import lines
from harness.logs.splat import Scanner, Splat

_CHUNK = 1 << 16
_LONGEST_LINE = 1 << 14
"""Bytes after which a line without an end is taken as one, so that memory stays bounded whatever a guest sends."""
_LONGEST_READ = 1 << 24
"""Bytes of the log that are looked at in one go."""
_REMEMBERED_LINES = 60
_LONGEST_MESSAGE = 1 << 11
"""Bytes of a kernel message with its prefix: PRINTK_MESSAGE_MAX in kernel/printk/internal.h."""
_MESSAGE = re.compile(rb"\[ *\d+\.\d+\]|\[[ \d.]{0,20}$")
"""The timestamp with which a kernel message begins; at the end of the data, an incomplete one counts too."""

_DROPPED = re.compile(r"\*\* \d+ printk messages? dropped \*\*")
"""The kernel prints this before the next message when its log was overwritten before the console had
printed it (console_prepend_dropped in kernel/printk/printk.c). It has no timestamp.

Nothing can bring these messages back: the console is the slowest reader of the log, so what it has
missed is overwritten for /dev/kmsg as well. So the log is large (LOG_BUF_SHIFT in
configs/base.config), and what is dropped all the same is red."""


class Console:
    """Reads until the other end closes, in a thread of its own: QEMU never waits for us, the kernel never for QEMU."""

    def __init__(
        self,
        end: socket.socket,
        path: Path,
        tee: Callable[[bytes], None] = lambda data: None,
        settle: float = TIMING.settle,
    ) -> None:
        self.path = path
        self.closed = threading.Event()
        self.last_heard = time.monotonic()
        self._end = end
        self._tee = tee
        self._settle = settle
        self._file = path.open("ab")
        self._reader = fdpexpect.fdspawn(end.fileno(), maxread=_CHUNK)
        self._changed = threading.Condition()
        self._fences: set[str] = set()
        self._frames: list[Frame] = []
        self._scanner = Scanner()
        self._splats: list[Splat] = []
        self._gaps: list[str] = []
        self._tail: deque[str] = deque(maxlen=_REMEMBERED_LINES)
        self.begin = self._offset = self._file.tell()
        """Where this guest's part of the file begins."""
        self.spoke = False
        self._error: OSError | None = None
        self._thread = threading.Thread(target=self._pump, name="console", daemon=True)
        self._thread.start()

    @property
    def offset(self) -> int:
        """Bytes of the file that have been seen as whole lines."""
        return self._offset

    @property
    def fatal(self) -> bool:
        """The kernel said that it is not going to run on."""
        with self._changed:
            return self._scanner.fatal or any(splat.fatal for splat in self._splats)

    def take_splats(self) -> list[Splat]:
        """Those since the last call. One that is still being printed is waited for, for a moment; then it counts as ended, and
        what follows it is news."""
        with self._changed:
            self._changed.wait_for(lambda: self._scanner.idle or self.closed.is_set(), timeout=self._settle)
            taken, self._splats = [*self._splats, *self._scanner.finish()], []
            return taken

    def take_gaps(self) -> list[str]:
        """The reasons why kernel lines may have been missed since the last call, one or two for each
        gap. A missing line may have been part of a report."""
        with self._changed:
            taken, self._gaps = self._gaps, []
            return taken

    def check(self) -> None:
        """Raises the OSError, if there was one, that kept the log from being written: then the silence is ours."""
        if self._error:
            raise self._error

    def tail(self) -> str:
        """The last lines."""
        with self._changed:
            return "\n".join(self._tail)

    def wait_for_fence(self, fence: str, seconds: float) -> bool:
        """Wait until a line holds `fence`, a text that the agent wrote to the kernel's log. False if none came."""
        with self._changed:
            self._changed.wait_for(lambda: fence in self._fences or self.closed.is_set(), timeout=seconds)
            seen = fence in self._fences
            self._fences.discard(fence)
            return seen

    def saw(self, fence: str) -> bool:
        """Whether `wait_for_fence` would return at once."""
        with self._changed:
            return fence in self._fences

    def take_frames(self, seconds: float) -> list[Frame]:
        """Those that came since the last call; waits for one."""
        with self._changed:
            self._changed.wait_for(lambda: self._frames or self.closed.is_set(), timeout=seconds)
            taken, self._frames = self._frames, []
            return taken

    def read(self, start: int, end: int | None = None) -> Iterator[str]:
        """The file's lines between two offsets, cleaned; no more than _LONGEST_READ, so that a flood
        does not fill the memory. If the rest is cut off, that is a gap."""
        with self.path.open("rb") as file:
            file.seek(start)
            position, partial = start, b""
            for raw in iter(lambda: file.readline(_LONGEST_LINE), b""):
                position += len(raw)
                if end is not None and position > end:
                    break
                if position - start > _LONGEST_READ:
                    self._miss(f"the log has more than {_LONGEST_READ >> 20} MiB: the rest was not read")
                    break
                partial += raw
                if raw.endswith(b"\n"):
                    piece, partial = partial, b""
                elif len(partial) >= _LONGEST_LINE:
                    piece, partial = _cut(partial)
                else:
                    continue
                yield from _shown(piece)
            if partial:
                yield from _shown(partial)

    def _miss(self, why: str) -> None:
        with self._changed:
            self._gaps.append(why)

    def send(self, data: bytes) -> None:
        """As if typed at the console. Raises OSError if QEMU is gone."""
        self._end.sendall(data)

    def close(self) -> None:
        """Wait for the end of the stream. QEMU must be gone."""
        self._thread.join(timeout=10)
        if self._thread.is_alive():
            self._miss("the console was not read to its end")
        self._file.close()

    def _pump(self) -> None:
        partial = b""
        try:
            while True:
                try:
                    data = self._reader.read_nonblocking(_CHUNK, timeout=None)
                except (pexpect.EOF, OSError):
                    break
                self.spoke = True
                self._file.write(data)
                self._file.flush()
                self._tee(data)
                self.last_heard = time.monotonic()
                *whole, partial = (partial + data).split(b"\n")
                self._take([line + b"\n" for line in whole])
                if len(partial) > _LONGEST_LINE:
                    piece, partial = _cut(partial)
                    self._take([piece])
        except OSError as error:
            self._error = error
        finally:
            self._take([partial] if partial else [])
            with self._changed:
                self._splats += self._scanner.finish()
                self.closed.set()
                self._changed.notify_all()

    def _take(self, raw_lines: list[bytes]) -> None:
        with self._changed:
            for raw in raw_lines:
                self._offset += len(raw)
                frames, line = take(lines.clean(raw))
                if frames:
                    self._frames += frames
                    if not line:
                        continue
                self._tail.append(line)
                if "printk message" in line and (notice := _DROPPED.search(line)):
                    self._gaps.append(notice[0])
                self._splats += self._scanner.feed(line)
                if "harness: " in line:
                    self._fences.add(line[line.index("harness: ") :].rsplit(" ", 1)[0])
            self._changed.notify_all()


def _cut(line: bytes) -> tuple[bytes, bytes]:
    """Split a line that is too long. A kernel message at its end is not split: it becomes the second part."""
    start = max(1, len(line) - _LONGEST_MESSAGE)
    last = next(reversed([match.start() for match in _MESSAGE.finditer(line, start)]), len(line))
    return line[:last], line[last:]


def _shown(raw: bytes) -> Iterator[str]:
    """The line without the protocol's frames in it. A line that held only frames gives nothing."""
    frames, line = take(lines.clean(raw))
    if line or not frames:
        yield line
