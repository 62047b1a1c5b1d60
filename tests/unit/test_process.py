from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from harness import process, sandbox
from harness.cache import Cache
from harness.errors import CommandFailed, InfrastructureError
from harness.sandbox import Sandbox
from tests.conftest import default_signals


def test_run_gives_output_and_status() -> None:
    assert process.run(["sh", "-c", "echo out; echo err >&2"]).stdout == "out\nerr\n"
    assert process.run(["sh", "-c", "exit 3"], check=False).returncode == 3
    with pytest.raises(CommandFailed) as caught:
        process.run(["sh", "-c", "echo why; exit 3"])
    assert (caught.value.status, caught.value.output) == (3, "why\n")


def test_unknown_program() -> None:
    with pytest.raises(InfrastructureError, match="no such program"):
        process.run(["no-such-program"])


def test_command_line_can_be_pasted(tmp_path: Path) -> None:
    line = process.command_line(["sh", "-c", 'echo "$X" *'], cwd=tmp_path, env={"X": "a b"})
    assert subprocess.run(line, shell=True, capture_output=True, text=True, check=True).stdout.strip() == "a b *"


@pytest.fixture
def sleep(tmp_path: Path) -> str:
    """A `sleep` by a path that no other process of this machine has."""
    program = tmp_path / "sleep"
    program.symlink_to(shutil.which("sleep") or "")
    return str(program)


def test_timeout_ends_the_whole_group(sleep: str) -> None:
    with pytest.raises(CommandFailed, match="no end after"):
        process.run(["sh", "-c", f"{sleep} 61 & {sleep} 62; true"], timeout=2)
    _wait_until(lambda: not _running(sleep))


@pytest.mark.parametrize("confined", [False, True])
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_children_die_with_their_parent(number: signal.Signals, confined: bool, sleep: str, tmp_path: Path) -> None:
    """Those that went into a session of their own as well, in a sandbox."""
    if confined and sandbox.enter(Sandbox.AUTO, Cache(tmp_path)) != "bubblewrap":
        pytest.skip("no bubblewrap")
    sandbox.leave()
    script = f"{'setsid ' if confined else ''}{sleep} 1000 & {sleep} 1000"
    enter = f"sandbox.enter(sandbox.Sandbox.ON, cache.Cache(pathlib.Path({str(tmp_path)!r})))" if confined else "pass"
    program = f"import pathlib; from harness import cache, process, sandbox; {enter}; "
    program += f"process.run(['sh', '-c', {script!r}], confined={() if confined else None})"
    parent = subprocess.Popen([sys.executable, "-c", program], stderr=subprocess.DEVNULL, preexec_fn=default_signals)
    _wait_until(lambda: _running(sleep) == 2)
    os.kill(parent.pid, number)
    parent.wait()
    _wait_until(lambda: not _running(sleep))


def test_child_that_nobody_had_time_to_watch(sleep: str) -> None:
    """`kill -9` between its start and the moment at which the guard hears of it."""
    program = (
        f"from harness import process; process._guard.watch = lambda group: None; process.run(['sh', '-c', '{sleep} 1000; true'])"
    )
    parent = subprocess.Popen([sys.executable, "-c", program], stderr=subprocess.DEVNULL)
    _wait_until(lambda: _running(sleep))
    parent.kill()
    parent.wait()
    _wait_until(lambda: not _running(sleep))


def test_children_of_a_harness_that_a_harness_runs(sleep: str) -> None:
    inner = f"from harness import process; process.run(['sh', '-c', '{sleep} 1000; true'])"
    program = f"import sys; from harness import process; process.run([sys.executable, '-c', {inner!r}])"
    parent = subprocess.Popen([sys.executable, "-c", program], stderr=subprocess.DEVNULL)
    _wait_until(lambda: _running(sleep))
    parent.kill()
    parent.wait()
    _wait_until(lambda: not _running(sleep))


def _running(program: str) -> int:
    """The number of processes that run this program, whose path only this test uses."""
    return sum((found.info["cmdline"] or [""])[0] == program for found in psutil.process_iter(["cmdline"]))


def _wait_until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, "it never came to pass"
        time.sleep(0.05)
