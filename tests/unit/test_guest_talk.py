"""Every way in which a command's answer comes, or does not, through the real console and channel."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from harness.errors import InfrastructureError
from harness.guest import GuestLost, GuestTimeout
from harness.guest.channel import Broken, Line, Question
from tests.fake_guest import OOPS, WARNING, FakePlace, Script, Step, agent_dies, dies, exits, hangs, prints, raw, says, stays

LINES = ("x86_64", "arm")
"""A line for the console and one for commands, or one for both."""


@pytest.mark.parametrize("arch", LINES)
def test_answer(tmp_path: Path, arch: str) -> None:
    text = "one\ntwo" * 1000
    place = FakePlace(Script(commands={"a_*": (says(text), exits(7)), "b": (prints("kernel text"),)}))
    with place.guest(tmp_path, arch) as guest:
        guest.wait_for_agent()
        answer = guest.run("true", "a label", 10)
        assert (answer.status, answer.output) == (7, text)
        answer = guest.run("other", "b", 10)
        assert (answer.status, answer.output) == (0, "")
        assert any("kernel text" in line for line in guest.console.read(*answer.console))
    assert [question.script for question in place.asked()][-2:] == ["true", "other"]


@pytest.mark.parametrize("arch", LINES)
@pytest.mark.parametrize(
    ("steps", "error", "message", "titles"),
    [
        ((dies,), GuestLost, "the guest is gone", []),
        ((says("half a line"), dies), GuestLost, "the guest is gone", []),
        ((raw("half a line"), dies), GuestLost, "the guest is gone", []),
        ((prints(*OOPS), dies), GuestLost, "the guest is gone", [OOPS[0]]),
        ((prints(*OOPS[-1:]), stays), GuestLost, "the kernel panicked", [OOPS[-1]]),
        ((prints(*WARNING), hangs), GuestTimeout, "no answer before the deadline", [WARNING[1]]),
        ((hangs,), GuestTimeout, "no answer before the deadline", []),
        ((says("much of it"), hangs), GuestTimeout, "no answer before the deadline", []),
        ((agent_dies,), GuestLost, "the agent that ran the command died", []),
    ],
)
def test_no_answer(
    tmp_path: Path, arch: str, steps: tuple[Step, ...], error: type[Exception], message: str, titles: list[str]
) -> None:
    script = Script(commands={"case": steps}, sysrq=(prints("sysrq: Show backtrace of all active CPUs"),))
    with FakePlace(script).guest(tmp_path, arch, last_words=0.1 if stays in steps else 3) as guest:
        guest.wait_for_agent()
        with pytest.raises(error) as caught:
            guest.run("true", "case", 10)
    gone = caught.value
    assert isinstance(gone, (GuestLost, GuestTimeout))
    assert gone.message == message
    assert [splat.title for splat in gone.splats] == titles


def test_qemu_that_never_starts(tmp_path: Path) -> None:
    with (
        FakePlace(Script(qemu="no such machine")).guest(tmp_path) as guest,
        pytest.raises(InfrastructureError, match="no such machine"),
    ):
        guest.wait_for_agent()


def test_answer_without_its_beginning(tmp_path: Path) -> None:
    """The lost bytes may have been output, so the answer does not count, whatever its status."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        line = Line(ours.fileno())
        question = Question("0123456789ab", "cdef01234567", "label", "true")
        line.ask(question)
        theirs.sendall(f"half of it\n{question.marker} end 0\n".encode())
        with pytest.raises(Broken, match="beginning"):
            line.answer(60)


@pytest.mark.parametrize("label", ["boot-end", "end"])
def test_agent_that_cannot_run_anything(tmp_path: Path, label: str) -> None:
    """It says so with status 126, when its disk is full."""
    script = Script(commands={label: (says("the agent cannot write down its command"), exits(126))})
    with FakePlace(script).guest(tmp_path) as guest, pytest.raises(GuestLost, match="status 126"):
        guest.wait_for_agent()
        guest.ping("end")


def test_last_answer_is_taken_after_the_deadline(tmp_path: Path) -> None:
    """A machine that is busy may read it late: what came counts, however late it is read."""
    script = Script(commands={"case": (exits(3), lambda machine, question: machine.hang())})
    place = FakePlace(script)
    with place.guest(tmp_path) as guest:
        guest.wait_for_agent()
        assert guest.run("true", "case", 10).status == 3
