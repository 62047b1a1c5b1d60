"""The console loses no line, or says so."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.guest import console as module
from harness.guest.console import Console
from tests.fake_guest import FakePlace, Script, prints, raw

STAMP = "[    9.000001][   T50] "
WARNING = "WARNING: CPU: 0 PID: 1 at kernel/trace/made_up.c:1 made_up+0x1/0x2"


@contextlib.contextmanager
def fed(folder: Path, *pieces: bytes) -> Iterator[Console]:
    """A console that got these pieces, and then its end."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        console = Console(ours, folder / "console.log", settle=0.05)
        for piece in pieces:
            theirs.sendall(piece)
        theirs.close()
        console.close()
        yield console


@pytest.mark.parametrize(
    ("text", "gaps"),
    [
        ("** 12 printk messages dropped **\n", ["** 12 printk messages dropped **"]),
        ("half a prompt# ** 1 printk messages dropped **\r\n", ["** 1 printk messages dropped **"]),
        ("** 7 printk messages dropped ** " + STAMP + "hello\n", ["** 7 printk messages dropped **"]),
        (
            "** 2 printk messages dropped **\n** 3 printk messages dropped **",
            ["** 2 printk messages dropped **", "** 3 printk messages dropped **"],
        ),
        ("** replaying previous printk message **\n", []),
        (STAMP + "printk messages are not dropped\n", []),
    ],
)
def test_messages_that_the_kernel_dropped(tmp_path: Path, text: str, gaps: list[str]) -> None:
    with fed(tmp_path, text.encode()) as console:
        assert console.take_gaps() == gaps
        assert console.take_gaps() == []


@pytest.mark.parametrize("before", [0, 1, 16300, 16384, 16385, 20000, 16384 * 2, 16384 * 3 - 40])
@pytest.mark.parametrize("size", [1, 1000, 1 << 16])
def test_report_behind_a_line_without_end(tmp_path: Path, before: int, size: int) -> None:
    """However long the line is, and wherever it is cut, the report in it is seen once."""
    data = b"." * before + f"{STAMP}{WARNING}\n{STAMP}after\n".encode()
    pieces = [data[start : start + size] for start in range(0, len(data), size)]
    with fed(tmp_path, *pieces) as console:
        assert [splat.title for splat in console.take_splats()] == [WARNING]
        assert any(line.endswith(f"{STAMP}{WARNING}") for line in console.read(0))
        assert b"".join(line.encode() for line in console.read(0)) == data.replace(b"\n", b"")
        assert console.offset == len(data)


@given(st.binary(max_size=200).map(lambda data: data.replace(b"\n", b"") * 200))
def test_cut_line_is_whole(data: bytes) -> None:
    first, second = module._cut(data + b".")
    assert first + second == data + b"."
    assert first
    assert len(second) <= module._LONGEST_MESSAGE


def test_log_that_is_longer_than_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_LONGEST_READ", 1 << 20)
    data = b"0123456789abcde\n" * (1 << 16) + b"one more\n"
    with fed(tmp_path, data) as console:
        assert not console.take_gaps()
        assert len(list(console.read(0))) == 1 << 16
        assert console.take_gaps() == ["the log has more than 1 MiB: the rest was not read"]
        assert len(list(console.read(16))) == 1 << 16
        assert not console.take_gaps()
        assert list(console.read(0, 32)) == ["0123456789abcde"] * 2


def test_report_that_is_cut_short_by_the_end(tmp_path: Path) -> None:
    with fed(tmp_path, f"{STAMP}{WARNING}".encode()) as console:
        (splat,) = console.take_splats()
        assert splat.title == WARNING


def test_log_that_cannot_be_written(tmp_path: Path) -> None:
    """A console without output is then the fault of the disk, not of the guest."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        console = Console(ours, Path("/dev/full"))
        theirs.sendall(b"text\n")
        assert console.closed.wait(60)
        with pytest.raises(OSError, match="No space left"):
            console.check()


def test_boot_log_that_is_too_long_is_a_gap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_LONGEST_READ", 1 << 16)
    with FakePlace(Script(boot=(raw("text\n" * (1 << 14)), prints("Testing tracer x: FAILED!")))).guest(tmp_path) as guest:
        guest.wait_for_agent()
        assert guest.console.take_gaps() == ["the log has more than 0 MiB: the rest was not read"]
