"""Frames on a line that the kernel prints on as well."""

from __future__ import annotations

import base64
import hashlib

from hypothesis import given
from hypothesis import strategies as st

from harness.guest import frames
from harness.guest.terminal import Keys

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


def test_keys_of_the_terminal() -> None:
    keys = Keys()
    assert list(keys.read(b"a\x01")) == [("send", b"a")]
    assert list(keys.read(b"a\x01b")) == [("send", b"\x01"), ("break", b"")]
    assert list(keys.read(b"\x01\x01\x01c")) == [("send", b"\x01"), ("send", b"\x01c")]
    assert list(keys.read(b"\x01x")) == [("end", b"")]
