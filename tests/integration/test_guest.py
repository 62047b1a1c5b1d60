"""The two serial lines of a real guest, and what becomes of a guest that dies."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from harness.guest import Boot, Guest, GuestLost, GuestTimeout, qemu
from harness.guest.console import Console
from harness.guest.guest import started
from harness.logs.lines import without_printk_prefix
from harness.suites import QUIET
from tests.integration.conftest import Machine


@pytest.fixture
def guest(machine: Machine, tmp_path: Path) -> Iterator[Guest]:
    with started(machine.arch, machine.accelerator, tmp_path, machine.boot) as found:
        found.wait_for_agent()
        yield found


def test_commands(guest: Guest) -> None:
    assert guest.run("echo out; echo err >&2; exit 7", "status", 10).status == 7
    assert guest.run("echo out; echo err >&2", "output", 10).output.split() == ["out", "err"]
    assert guest.run("kill -9 $$", "killed", 10).status == 137
    assert guest.run("seq 20000", "long", 30).output.split() == [str(number) for number in range(1, 20001)]
    odd = "printf 'no end of line'; printf '\\000\\001\\377' >&2"
    assert guest.run(odd, "odd", 10).output.startswith("no end of line")
    # What looks like the protocol is none: the marker is random.
    fake = guest.run("echo; echo 0123456789ab0123456789ab end 0; exit 3", "fake end", 10)
    assert (fake.status, "end 0" in fake.output) == (3, True)
    # A command cannot end the agent.
    assert guest.run("exit 0; exec sleep 100", "exit", 10).status == 0


def test_console_is_kept_apart_and_in_step(guest: Guest) -> None:
    done = guest.run("echo user text; echo kernel text >/dev/kmsg; exit 0", "two lines", 10)
    said = "\n".join(guest.console.read(*done.console))
    assert "kernel text" in said
    assert "user text" not in said
    assert "kernel text" not in done.output
    assert guest.console.path.read_bytes().count(b"kernel text") == 1


def test_answers_are_whole_while_the_kernel_prints(guest: Guest) -> None:
    """On one line it cuts into them."""
    noise = "(while :; do echo noise >/dev/kmsg; usleep 1000; done) & echo $!"
    number = guest.run(noise, "noise", 10).output.strip()
    for _ in range(3):
        assert guest.run("seq 2000; exit 3", "in the noise", 60).output.split() == [str(number) for number in range(1, 2001)]
    assert guest.run(f"kill {number}", "silence", 10).status == 0
    assert not guest.console.take_splats()
    lines = [line for line in guest.console.read(guest.booted_at) if "harness:" not in line]
    assert any("noise" in line for line in lines)
    assert all("seq" not in line and "@" not in line for line in lines)


def test_who_reads_late_misses_nothing(machine: Machine, tmp_path: Path) -> None:
    """A busy machine may keep us from reading for seconds."""
    with qemu.start(machine.arch, machine.accelerator, machine.boot, tmp_path / "qemu.log") as running:
        time.sleep(3)
        console = Console(running.console, tmp_path / "console.log")
        guest = Guest(running, console, machine.arch, machine.boot.patience(machine.accelerator), None)
        guest.wait_for_agent()
        told = guest.run("dmesg", "dmesg", 60).output.splitlines()
        running.kill()
        console.close()
    heard = "\n".join(console.read(0))
    messages = [without_printk_prefix(line).strip() for line in told]
    assert len(messages) > 50
    assert [line for line in messages if line not in heard] == []


def test_splat_is_seen_before_the_command_is_over(guest: Guest) -> None:
    report = "WARNING: CPU: 0 PID: 1 at kernel/trace/fgraph.c:1 made_up+0x1/0x2"
    assert not guest.console.take_splats()
    assert guest.run(f"echo '{report}' >/dev/kmsg", "splat", 10).status == 0
    (splat,) = guest.console.take_splats()
    assert (splat.kind, splat.function, splat.fatal) == ("warning", "made_up", False)
    assert guest.run("true", "after", 10).status == 0
    assert not guest.console.take_splats()


def test_panic(guest: Guest) -> None:
    with pytest.raises(GuestLost) as caught:
        guest.run("echo c >/proc/sysrq-trigger; sleep 100", "panic", 100)
    assert any(splat.fatal for splat in caught.value.splats)


def test_deadline_brings_backtraces(guest: Guest, machine: Machine) -> None:
    with pytest.raises(GuestTimeout) as caught:
        guest.run("while :; do :; done", "endless", 5 / guest.patience)
    assert "sysrq: Show backtrace of all active CPUs" in "\n".join(guest.console.read(0))
    assert caught.value.console.count(" is at 0x") == machine.arch.guest.cpus


def test_qemu_killed_from_outside(guest: Guest) -> None:
    children = psutil.Process().children(recursive=True)
    (qemu,) = [child for child in children if child.name().startswith("qemu-system")]
    os.kill(qemu.pid, signal.SIGKILL)
    with pytest.raises(GuestLost):
        guest.run("true", "gone", 10)


def test_guest_that_cannot_boot_is_known_at_once(machine: Machine, tmp_path: Path) -> None:
    boot = Boot(machine.boot.image, machine.boot.initramfs, (*QUIET, "rdinit=/no-such-init", "init=/no-such-init"))
    with started(machine.arch, machine.accelerator, tmp_path, boot) as guest:
        with pytest.raises(GuestLost) as caught:
            guest.wait_for_agent()
        assert any(splat.kind == "panic" for splat in caught.value.splats)


def test_nothing_is_left_behind(machine: Machine, tmp_path: Path) -> None:
    def guests() -> list[psutil.Process]:
        return [child for child in psutil.Process().children(recursive=True) if child.name().startswith("qemu-system")]

    with started(machine.arch, machine.accelerator, tmp_path, machine.boot):
        assert guests()
    assert not guests()
