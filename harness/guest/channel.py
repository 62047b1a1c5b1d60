"""How commands reach a guest's agent, and answers come back: over a serial line of their own, or in frames on the console's.

Both speak to qemu/guest/agent. A command goes out as one line, `<left> <right> <label> <base64 of a script>`; its answer is
marked by the two halves together, which no echo of the question has."""

from __future__ import annotations

import base64
import re
import time
from collections.abc import Sequence
from typing import Protocol

import pexpect
from msgspec import Struct
from pexpect import fdpexpect

from harness.guest.console import Console

_CHUNK = 1 << 16
_READY = r"harness agent ready\r?\n"
_AGENT_DIED = "the agent that ran the command died"
_NO_BEGINNING = "the answer has no beginning: the command channel has lost a part of it"
_LONGEST_OUTPUT = 1 << 26
_TOO_LONG = f"the command printed more than {_LONGEST_OUTPUT >> 20} MiB"
_QUIET_SECONDS = 2.0
"""After this long without a frame, those of a command that is over are asked for again."""


class Question(Struct, frozen=True):
    """A script for the agent, and the two halves of the marker of its answer."""

    left: str
    right: str
    label: str
    script: str

    @property
    def marker(self) -> str:
        return self.left + self.right

    @property
    def line(self) -> str:
        return f"{self.left} {self.right} {self.label} {base64.b64encode(self.script.encode()).decode()}\n"


class Answer(Struct, frozen=True):
    status: int
    output: bytes


class Broken(Exception):
    """No answer will come any more, though the guest is there; or none that we could hold."""


class Channel(Protocol):
    """`ready` and `answer` wait for so many seconds at most. They raise EOFError if the guest is gone, `ask` an OSError. `answer`
    raises Broken."""

    def ready(self, seconds: float) -> bool: ...

    def ask(self, question: Question) -> None: ...

    def answer(self, seconds: float) -> Answer | None: ...


class Line:
    """A serial line of its own, on the file descriptor `end`."""

    def __init__(self, end: int) -> None:
        self._spawn = fdpexpect.fdspawn(end, maxread=_CHUNK)
        self._marker = ""

    def ready(self, seconds: float) -> bool:
        return self._expect([_READY], seconds) == 0

    def ask(self, question: Question) -> None:
        self._marker = question.marker
        self._spawn.send(question.line)

    def answer(self, seconds: float) -> Answer | None:
        found = self._expect([rf"\n{self._marker} end (\d+)\r?\n", rf"\n{_READY}"], seconds)
        said: bytes = self._spawn.before
        if found == 1:
            raise Broken(_AGENT_DIED)
        if found is None:
            if len(said) > _LONGEST_OUTPUT:
                raise Broken(_TOO_LONG)
            return None
        begin = re.search(rf"\n{self._marker} begin\r?\n".encode(), said)
        if not begin:
            raise Broken(_NO_BEGINNING)
        return Answer(int(self._spawn.match[1]), said[begin.end() :])

    def _expect(self, patterns: Sequence[str], seconds: float) -> int | None:
        """Which of them came first."""
        wanted = [pattern.encode() for pattern in patterns]
        try:
            # Twice what is read in one go: no marker is overlooked, and megabytes of output are not searched again and again.
            return int(self._spawn.expect(wanted, timeout=seconds, searchwindowsize=2 * _CHUNK))
        except pexpect.TIMEOUT:
            return None
        except pexpect.EOF:
            raise EOFError from None


class Frames:
    """The console's own line. The kernel may cut into any frame; one that does not carry its own checksum was never there, and
    what is missing is asked for until it comes whole."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._question: Question | None = None
        self._parts: dict[int, bytes] = {}
        self._end: tuple[int, int] | None = None
        self._last = 0.0

    def ready(self, seconds: float) -> bool:
        return self._console.wait_for_fence("harness: agent", seconds) or self._gone()

    def ask(self, question: Question) -> None:
        self._question, self._parts, self._end = question, {}, None
        self._last = time.monotonic()
        self._console.send(question.line.encode())

    def answer(self, seconds: float) -> Answer | None:
        assert self._question
        for frame in self._console.take_frames(seconds):
            if frame.marker == self._question.marker:
                self._last = time.monotonic()
                if frame.end:
                    self._end = frame.end
                else:
                    self._parts[frame.number] = frame.data
        if self._end:
            status, count = self._end
            if all(number in self._parts for number in range(count)):
                return Answer(status, b"".join(self._parts[number] for number in range(count)))
        if sum(map(len, self._parts.values())) > _LONGEST_OUTPUT:
            raise Broken(_TOO_LONG)
        if self._console.saw("harness: agent"):
            raise Broken(_AGENT_DIED)
        over = self._end or self._console.saw(f"harness: {self._question.left} end")
        if over and time.monotonic() - self._last > _QUIET_SECONDS:
            self._last = time.monotonic()
            self._console.send(f"again {self._question.marker}\n".encode())
        self._gone()
        return None

    def _gone(self) -> bool:
        if self._console.closed.is_set():
            raise EOFError
        return False
