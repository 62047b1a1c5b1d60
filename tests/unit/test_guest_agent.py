"""qemu/guest/agent itself, run by this machine's shell on a terminal, with the harness's own channel."""

from __future__ import annotations

import os
import pty
import select
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness import paths
from harness.guest import frames
from harness.guest.channel import Answer, Line, Question

_SECONDS = 60.0
"""A limit, far beyond what an answer takes."""


class Agent:
    def __init__(self, folder: Path, one_line: bool = False) -> None:
        """On a machine with `one_line` the answers come in frames."""
        self.log, self.once = folder / "kmsg", folder / "debug" / "clear_warn_once"
        self.once.parent.mkdir()
        self.once.touch()
        text = (paths.GUEST / "agent").read_text()
        for path, ours in {"/dev/kmsg": "kmsg", "/sys/kernel/debug": "debug", "/tmp/harness": "harness"}.items():
            assert path in text
            text = text.replace(path, str(folder / ours))
        # A file keeps what was written to it; the kernel's log is appended to.
        text = text.replace(f">{self.log}", f">>{self.log}").replace(">$once", ">>$once")
        self.ours, theirs = pty.openpty()
        if one_line:
            text = text.replace("/dev/console", os.ttyname(theirs))
        (folder / "agent").write_text(text)
        self._process = subprocess.Popen(["sh", folder / "agent", os.ttyname(theirs)], start_new_session=True)
        self.line = Line(self.ours)
        assert self.line.ready(_SECONDS)
        os.close(theirs)
        self._number = 0

    def run(self, script: str) -> Answer:
        self._number += 1
        self.line.ask(Question(f"{self._number:012x}", "0123456789ab", "label", script))
        answer = self.line.answer(_SECONDS)
        assert answer
        return answer

    def end(self) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self.ours)


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[Agent]:
    found = Agent(tmp_path)
    yield found
    found.end()


def test_status_and_output(agent: Agent) -> None:
    assert agent.run("echo out; echo err >&2; exit 7") == Answer(7, b"out\nerr\n")
    assert agent.run("true") == Answer(0, b"")
    assert agent.run("kill -9 $$").status == 137


def test_fences(agent: Agent) -> None:
    agent.run("true")
    assert agent.log.read_text().splitlines()[:2] == ["harness: agent ready", f"harness: {1:012x} begin label"]


def test_each_command_finds_the_warnings_armed(agent: Agent) -> None:
    """Before the command, and once for each."""
    for number in range(1, 4):
        assert agent.run(f"cat {agent.once}").output == b"1\n" * number


def test_kernel_without_debugfs(agent: Agent) -> None:
    agent.once.unlink()
    assert agent.run("echo alive") == Answer(0, b"alive\n")
    assert not agent.once.exists()


def framed(agent: Agent, script: str) -> Answer:
    """The answer of an agent whose line the kernel prints on as well."""
    question = Question("0123456789ab", "cdef01234567", "label", script)
    os.write(agent.ours, question.line.encode())
    text, pieces = "", dict[int, bytes]()
    while select.select([agent.ours], [], [], _SECONDS)[0]:
        text += os.read(agent.ours, 4096).decode()
        *lines, text = text.split("\n")
        for frame in (frame for line in lines for frame in frames.take(line.strip("\r"))[0]):
            assert frame.marker == question.marker
            if frame.end:
                assert frame.end[1] == len(pieces)
                return Answer(frame.end[0], b"".join(pieces[number] for number in sorted(pieces)))
            pieces[frame.number] = frame.data
    raise AssertionError(text)


def test_status_and_output_in_frames(tmp_path: Path) -> None:
    agent = Agent(tmp_path, one_line=True)
    try:
        assert framed(agent, "echo out; echo err >&2; exit 7") == Answer(7, b"out\nerr\n")
        assert framed(agent, "true") == Answer(0, b"")
        assert framed(agent, "seq 1000; false") == Answer(1, "".join(f"{number}\n" for number in range(1, 1001)).encode())
    finally:
        agent.end()


def test_command_that_cannot_be_written_down_is_no_success(agent: Agent) -> None:
    """The file still holds the command before, which succeeded: it is not run once more."""
    assert agent.run("true").status == 0
    agent.line.ask(Garbled("000000000001", "0123456789ab", "label", "exit 0"))
    answer = agent.line.answer(_SECONDS)
    assert answer == Answer(126, b"the agent cannot write down its command\n")


class Garbled(Question, frozen=True):
    """A question that came in damaged."""

    @property
    def line(self) -> str:
        return f"{self.left} {self.right} {self.label} !!!!\n"
