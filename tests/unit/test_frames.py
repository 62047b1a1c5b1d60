"""Frames on a line that the kernel prints on as well."""

from __future__ import annotations

import base64
import hashlib
import threading
from typing import cast
from unittest import mock

from hypothesis import given
from hypothesis import strategies as st

from harness.guest import channel, frames
from harness.guest.console import Console
from harness.guest.terminal import Keys
from harness.logs.lines import kernel_messages

MARKER = "0123456789abcdef01234567"
KERNEL = "[   12.345678][    T1] WARNING: CPU: 0 PID: 1 at made/up.c:1 made_up+0x1/0x2"


def encode(number: str, data: bytes) -> str:
    said = f"{MARKER}@{number}@{base64.b64encode(data).decode()}"
    return f"@{said}@{hashlib.md5(said.encode()).hexdigest()}@"


@given(st.binary(), st.integers(0, 10**6))
def test_whole_frame(data: bytes, number: int) -> None:
    assert frames.take(encode(str(number), data)) == ([frames.Frame(MARKER, number, data)], "")


def test_end() -> None:
    assert frames.take(encode("end:127:3", b"")) == ([frames.Frame(MARKER, 0, b"", (127, 3))], "")


@given(st.binary(min_size=1, max_size=60), st.data())
def test_kernel_text_that_cuts_into_a_frame(data: bytes, draw: st.DataObject) -> None:
    """Wherever it cuts: the frame does not count, or is whole, and what the kernel said is seen as a line of its own."""
    frame = encode("1", data)
    where = draw.draw(st.integers(0, len(frame)))
    stream = f"{frame[:where]}{KERNEL}\n{frame[where:]}\n"
    found, said = [], []
    for line in stream.splitlines():
        whole, rest = frames.take(line)
        found += whole
        said.append(rest)
    assert found in ([], [frames.Frame(MARKER, 1, data)])
    assert found or 0 < where < len(frame)
    assert [line for line in said if line] == [KERNEL]


@given(st.binary(min_size=1, max_size=60), st.data())
def test_damaged_frame_does_not_count(data: bytes, draw: st.DataObject) -> None:
    frame = encode("1", data)
    where = draw.draw(st.integers(0, len(frame) - 1))
    damaged = (
        frame[:where] + draw.draw(st.characters(codec="ascii").filter(lambda char: char != frame[where])) + frame[where + 1 :]
    )
    assert frames.take(damaged)[0] == []


@given(st.text())
def test_any_line_that_is_none_is_left_alone(line: str) -> None:
    if "@" not in line:
        assert frames.take(line) == ([], line.strip("\n"))


def test_forged_frame_does_no_harm() -> None:
    """Anybody can make the checksum."""
    for number, data in (("1", "A"), ("9" * 5000, ""), ("1", "====")):
        said = f"{MARKER}@{number}@{data}"
        assert frames.take(f"@{said}@{hashlib.md5(said.encode()).hexdigest()}@")[0] == []


class Cut:
    """A line on which the agent answers and the kernel prints, at the bytes `where` of each try."""

    def __init__(self, answer: str, where: list[set[int]]) -> None:
        self.closed = threading.Event()
        self._answer = answer
        self._where = where
        self._lines: list[str] = []
        self.kernel: list[str] = []
        self.tries = 0

    def send(self, data: bytes) -> None:
        cuts = self._where.pop(0) if self._where else set()
        stream = "".join(f"{KERNEL}\n{char}" if at in cuts else char for at, char in enumerate(self._answer))
        self._lines += stream.splitlines()
        self.tries += 1

    def take_frames(self, seconds: float) -> list[frames.Frame]:
        lines, self._lines = self._lines, []
        taken = [frames.take(line) for line in lines]
        self.kernel += [rest for _, rest in taken if rest]
        return [frame for whole, _ in taken for frame in whole]

    def saw(self, fence: str) -> bool:
        return "end" in fence


@given(st.binary(min_size=1, max_size=80), st.lists(st.sets(st.integers(0, 2000), max_size=30), max_size=4), st.integers(0, 255))
def test_answer_survives_text_that_cuts_in_anywhere(said: bytes, cuts: list[set[int]], status: int) -> None:
    """However often it is cut to pieces, it is asked for until it is whole, and nothing that the kernel said is lost."""
    pieces = [said[start : start + 20] for start in range(0, len(said), 20)]
    told = [encode(str(number), piece) for number, piece in enumerate(pieces)] + [encode(f"end:{status}:{len(pieces)}", b"")]
    answer = "".join(f"\n{frame}\n" for frame in told)
    line = Cut(answer, [*cuts])
    expected = sum(len([at for at in each if at < len(answer)]) for each in cuts)
    protocol = channel.Frames(cast(Console, line))
    with mock.patch.object(channel, "_QUIET_SECONDS", 0):
        protocol.ask(channel.Question(MARKER[:12], MARKER[12:], "label", "true"))
        found = next(filter(None, (protocol.answer(0) for _ in range(20))))
    assert found == channel.Answer(status, said)
    # Between two cuts into one frame a piece of it may be left.
    assert all(list(kernel_messages(rest))[-1] == ("T1", KERNEL.partition("] ")[2]) for rest in line.kernel)
    if line.tries > len(cuts):
        assert len(line.kernel) == expected


def test_keys_of_the_terminal() -> None:
    keys = Keys()
    assert list(keys.read(b"a\x01")) == [("send", b"a")]
    assert list(keys.read(b"a\x01b")) == [("send", b"\x01"), ("break", b"")]
    assert list(keys.read(b"\x01\x01\x01c")) == [("send", b"\x01"), ("send", b"\x01c")]
    assert list(keys.read(b"\x01x")) == [("end", b"")]
