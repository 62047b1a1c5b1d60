"""Text that a guest may print on purpose: no line takes long, however it is made. Two lengths are compared in one run, so that
nothing depends on how fast the machine is."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

import pytest

from harness.guest import frames
from harness.kernel import symbols
from harness.logs import ktap, splat
from harness.logs.lines import clean, kernel_messages

LINES = (
    "@",
    "2024-01-01T",
    "Nov 20 20:41:32 ",
    "ok 1 a # x",
    "ok 1 a # # ",
    "# # # ",
    "a.",
    "PC.",
    "[    1.000000] ",
    "[[[[",
    "at x:1 ",
    "BUG: KASAN: x in ",
    "value: a  ",
    "\x1b]",
    "\x1b[1;",
    "Oops [#",
    "x",
    " ",
    "f+0x1/0x1 ",
    "0x",
)
LOG_LINES = (
    # prefixes
    "console: ",
    "kern  :warn  : ",
    "host kernel: ",
    "a\t",
    "6,1,1,",
    "a=b,",
    "[7:      a:    ",
    "section_start:1:",
    "2026-01-01T00:00:00Z 00O+",
    # first lines and frames
    "general protection fault: ",
    "0000 [",
    "BUG: KCSAN: a in b / ",
    "f (a.c:1 (",
    "f from ",
    "[<0>] ",
    "hard LOCKUP",
    "INFO: rcu_",
    " has bad ",
)


def look_at_log(line: str) -> None:
    line = clean(line)
    splat.scan(["BUG: odd", line, f"[    1.0] WARNING: at {line}", f"RIP: 0010:{line}", f"Call Trace:{line}"])
    ktap.parse(["TAP version 13", line])


def look(line: str) -> None:
    line = clean(line)
    frames.take(line)
    list(kernel_messages(line))
    splat.scan([line, f"BUG: {line}", line])
    ktap.parse(["TAP version 13", line, f"ok 1 {line}"])
    for pattern in (symbols._FRAME, symbols._BARE, symbols._EXACT):
        list(pattern.finditer(line))


@pytest.mark.parametrize("piece", LINES)
@pytest.mark.parametrize("end", ["", "!", "#", "]", "b"])
def test_time_grows_with_the_length_and_no_faster(piece: str, end: str) -> None:
    short, long = (piece * (length // len(piece)) + end for length in (1_000, 32_000))
    look(short)
    grows_no_faster(short, long)


@pytest.mark.parametrize("piece", LOG_LINES)
def test_so_it_does_for_lines_of_logs(piece: str) -> None:
    short, long = (piece * (length // len(piece)) + "!" for length in (1_000, 32_000))
    look_at_log(short)
    grows_no_faster(short, long, look_at_log)


def grows_no_faster(short: str, long: str, look: Callable[[str], None] = look) -> None:
    # As much text in all: what grows with the square of the length would take 32 times as long.
    assert best(look, [long]) < 8 * best(look, [short] * 32)


def best(work: Callable[[str], None], lines: Iterable[str]) -> float:
    lines = list(lines)
    seconds = []
    for _ in range(3):
        start = time.process_time()
        for line in lines:
            work(line)
        seconds.append(time.process_time() - start)
    return min(seconds)
