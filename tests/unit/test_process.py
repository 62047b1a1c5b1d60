from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from harness import process, sandbox
from harness.cache import Cache
from harness.errors import CommandFailed, InfrastructureError
from harness.sandbox import Sandbox
from tests.conftest import heed_ctrl_c


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


def test_timeout_ends_the_whole_group() -> None:
    with pytest.raises(CommandFailed, match="no end after"):
        process.run(["sh", "-c", "sleep 61 & sleep 61"], timeout=0.2)
    _wait_until(lambda: not _running("sleep 61"))


@pytest.mark.parametrize("confined", [False, True])
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_children_die_with_their_parent(number: signal.Signals, confined: bool, tmp_path: Path) -> None:
    """Those that went into a session of their own as well, in a sandbox."""
    if confined and sandbox.enter(Sandbox.AUTO, Cache(tmp_path)) != "bubblewrap":
        pytest.skip("no bubblewrap")
    sandbox.leave()
    seconds = f"6{number.value}.{5 + confined}"
    script = f"{'setsid ' if confined else ''}sleep {seconds} & sleep {seconds}"
    enter = f"sandbox.enter(sandbox.Sandbox.ON, cache.Cache(pathlib.Path({str(tmp_path)!r})))" if confined else "pass"
    program = f"import pathlib; from harness import cache, process, sandbox; {enter}; "
    program += f"process.run(['sh', '-c', {script!r}], confined={() if confined else None})"
    parent = subprocess.Popen([sys.executable, "-c", program], stderr=subprocess.DEVNULL, preexec_fn=heed_ctrl_c)
    _wait_until(lambda: _running(f"sleep {seconds}") == 2)
    os.kill(parent.pid, number)
    parent.wait()
    _wait_until(lambda: not _running(f"sleep {seconds}"))


def test_child_that_nobody_had_time_to_watch() -> None:
    """`kill -9` between its start and the moment at which the guard hears of it."""
    program = (
        "from harness import process; process._guard.watch = lambda group: None; process.run(['sh', '-c', 'sleep 67.5; true'])"
    )
    parent = subprocess.Popen([sys.executable, "-c", program], stderr=subprocess.DEVNULL)
    _wait_until(lambda: _running("sleep 67.5"))
    parent.kill()
    parent.wait()
    _wait_until(lambda: not _running("sleep 67.5"))


def test_children_of_a_harness_that_a_harness_runs() -> None:
    inner = "from harness import process; process.run(['sh', '-c', 'sleep 68.5; true'])"
    program = f"import sys; from harness import process; process.run([sys.executable, '-c', {inner!r}])"
    parent = subprocess.Popen([sys.executable, "-c", program], stderr=subprocess.DEVNULL)
    _wait_until(lambda: _running("sleep 68.5"))
    parent.kill()
    parent.wait()
    _wait_until(lambda: not _running("sleep 68.5"))


def _running(command: str) -> int:
    return sum(" ".join(found.info["cmdline"] or ()) == command for found in psutil.process_iter(["cmdline"]))


def _wait_until(condition: object) -> None:
    assert callable(condition)
    for _ in range(600):
        if condition():
            return
        time.sleep(0.05)
    raise AssertionError("it never came to pass")
