"""What is shown while a run goes on, on a terminal and without one."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from harness.progress import Progress


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def shown(progress: Progress, width: int = 200) -> list[list[str]]:
    console = Console(file=io.StringIO(), width=width, record=True)
    console.print(progress.table())
    return [line.split() for line in console.export_text().splitlines() if line.strip()]


def plain(quiet: bool = False) -> tuple[Progress, Clock, io.StringIO]:
    file, clock = io.StringIO(), Clock()
    return Progress(Console(file=file, width=200), quiet, clock), clock, file


def test_a_row_for_each_job() -> None:
    progress, clock, _ = plain()
    progress.step("arm64/last", "build", "kernel/fork.c", count="12 objects", expected=100.0)
    clock.now = 40.0
    progress.step("x86_64/last", "test", "kunit:a.b", count="3 cases", red=1)
    progress.heard("x86_64/last", b"old\r\n[    1.0] \x1b[1m<script>[/red]\x07\r\n")
    progress.heard("nobody", b"no row")
    head, arm64, x86_64 = shown(progress)
    assert head == ["job", "stage", "elapsed", "left", "done", "red"]
    assert arm64 == ["arm64/last", "build", "0:40", "1:00", "12", "objects", "kernel/fork.c"]
    assert x86_64 == ["x86_64/last", "test", "0:00", "3", "cases", "1", "[", "1.0]", "<script>[/red]"]
    clock.now = 150.0
    progress.step("arm64/last", "test", expected=30.0)
    assert shown(progress)[1] == ["arm64/last", "test", "2:30", "0:30"]
    progress.done("x86_64/last")
    assert len(shown(progress)) == 2
    progress.done("arm64/last")
    assert not shown(progress)


def test_narrow_terminal_cuts_the_longest_text_alone() -> None:
    progress, _, _ = plain()
    progress.step(
        "x86_64/last", "apply", "0025-x86-ftrace-Do-not-unwind-the-last-steps-of-return_to_handler.patch", count="25 cases"
    )
    head, row = shown(progress, 60)
    assert head == ["job", "stage", "elapsed", "left", "done", "red"]
    assert row[:5] == ["x86_64/last", "apply", "0:00", "25", "cases"]
    assert row[5].startswith("0025-x86") and row[5].endswith("…")


def test_without_a_terminal_a_line_now_and_then() -> None:
    progress, clock, file = plain()
    with progress:
        for seconds in range(100):
            clock.now = float(seconds)
            progress.step("arm64/last", "build", "kernel/fork.c", count=f"{seconds} objects")
        progress.say("odd [red]\x1b[0m")
    lines = [line.partition(" ")[2] for line in file.getvalue().splitlines()]
    assert lines == [f"arm64/last: build: {seconds} objects, kernel/fork.c" for seconds in (30, 60, 90)] + ["odd [red]"]


def test_quiet() -> None:
    progress, clock, file = plain(quiet=True)
    with progress:
        progress.say("hello")
        clock.now = 100.0
        progress.step("arm64/last", "build")
    assert not file.getvalue()
    assert not progress.moving


def test_on_a_terminal_it_moves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    file = io.StringIO()
    with Progress(Console(file=file, force_terminal=True, width=100)) as progress:
        progress.step("arm64/last", "build", count="1 objects")
        progress.say("said")
    assert "arm64/last" in file.getvalue()
    assert "said" in file.getvalue()
