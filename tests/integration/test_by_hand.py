"""What people do by hand: a kernel, a shell in a guest, one command, a debugger."""

from __future__ import annotations

import errno
import re
import socket
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pexpect
import pytest

from harness.arch import load
from harness.cache import Cache
from harness.guest import HERE, Host
from harness.model import Kernel, Outcome
from harness.results import read_run
from tests import surroundings
from tests.integration.conftest import ARCHS, harness

SECONDS = 600

Shell = Callable[..., "pexpect.spawn[str]"]
"""Runs `harness shell` with these arguments in a terminal."""


@pytest.fixture(scope="module", autouse=True)
def built(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Build all kernels first: a build has no deadline, and what waits for a prompt has one."""
    archs = [word for arch in ARCHS for word in ("--arch", arch)]
    done = harness("build", *archs, cwd=tmp_path_factory.mktemp("build"))
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    begun: list[pexpect.spawn[str]] = []

    def begin(*arguments: str) -> pexpect.spawn[str]:
        words = ["-m", "harness", "shell", *arguments]
        size = (33, 101)
        child = pexpect.spawn(sys.executable, words, cwd=tmp_path, encoding="utf-8", timeout=SECONDS, dimensions=size)
        begun.append(child)
        return child

    yield begin
    # A guest that goes on after a failed test would keep the cache from the next one.
    for child in begun:
        child.close(force=True)


def test_build_says_where_the_kernel_is(tmp_path: Path) -> None:
    done = harness("build", "--arch", "x86_64", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    where = Path(done.stdout.rstrip().splitlines()[-1].removeprefix("x86_64/last: "))
    kernel = Cache(surroundings.cache_folder()).read_record("kernels", where.name, Kernel)
    assert kernel
    assert kernel.directory == where
    assert all(path.exists() for path in (kernel.image, kernel.vmlinux, kernel.modules / "lib/modules" / kernel.release))


@pytest.mark.parametrize("arch", ARCHS)
def test_shell(arch: str, shell: Shell) -> None:
    guest = shell("--arch", arch)
    guest.expect("Ctrl-A x ends the guest")
    guest.expect(r"# ")
    guest.sendline("uname -r; stty size")
    guest.expect(r"6\.12\.\d+\s+33 101\r\n")
    guest.sendline("modprobe trace-printk && echo loaded")
    guest.expect(r"\nloaded\r\n")
    guest.send("sleep 1000\r")
    guest.send("\x03")  # reaches the guest, not us
    guest.sendline("echo still $((1 + 1)) here")
    guest.expect("still 2 here")
    guest.send("\x01x")
    guest.expect(pexpect.EOF)
    guest.close()
    assert guest.exitstatus == 0


def test_shell_ends_by_exit_too(shell: Shell) -> None:
    guest = shell("--arch", "x86_64")
    guest.expect(r"# ")
    guest.sendline("exit")
    guest.expect(pexpect.EOF)
    guest.close()
    assert guest.exitstatus == 0


def test_one_command(tmp_path: Path) -> None:
    done = harness("shell", "--arch", "arm64", "--cmd", "uname -m; exit 7", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (7, "aarch64\n")


def test_what_one_guest_measured_another_is_told(tmp_path: Path) -> None:
    command = ("shell", "--arch", "x86_64", "--cmd", "cat /proc/cmdline")
    assert harness(*command, cwd=tmp_path).returncode == 0
    told = Host(
        load("x86_64"), Cache(surroundings.cache_folder()), HERE.key(load("x86_64"))
    ).parameters  # nothing, if its clock could not be measured
    assert set(told) <= set(harness(*command, cwd=tmp_path).stdout.split())


def test_commands_of_a_run_are_cases(tmp_path: Path) -> None:
    done = harness("run", "--arch", "x86_64", "--cmd", "uname -m", "--cmd", "cat /nowhere", cwd=tmp_path)
    assert done.returncode == 1
    report = read_run(tmp_path / "runs" / "latest")
    outcomes = {
        result.id: result
        for result in report.results
        # On a busy machine a guest may have measured its clock wrongly, and is booted again.
        if result.suite in ("boot", "command") and not result.name.startswith("misboot")
    }
    assert {name: result.outcome for name, result in outcomes.items()} == {
        "boot:agent": Outcome.PASS,
        "boot:console": Outcome.PASS,
        "boot:identity": Outcome.PASS,
        "command:uname -m": Outcome.PASS,
        "command:cat /nowhere": Outcome.FAIL,
    }
    assert outcomes["command:uname -m"].log == "x86_64\n"
    assert report.usage
    assert "s of CPU in" in done.stdout


def test_debugger(shell: Shell) -> None:
    guest = shell("--arch", "x86_64", "--gdb")
    guest.expect(r"gdb (\S+/vmlinux) -ex 'target remote (\S+)'")
    assert guest.match
    vmlinux, path = (guest.match[number] for number in (1, 2))
    assert Path(vmlinux).is_file()
    with socket.socket(socket.AF_UNIX) as stub:
        stub.settimeout(SECONDS)
        while stub.connect_ex(path) == errno.ENOENT:
            guest.expect([pexpect.TIMEOUT, "never"], timeout=0.1)  # raises EOF if the harness ends
        stub.sendall(b"$?#3f")
        answer = b""
        while b"#" not in answer:
            answer += stub.recv(100)
        assert re.match(rb"\+\$[ST]05", answer)  # stopped by a trap
        stub.sendall(b"+$D#44")
        guest.expect("Linux version 6.12")  # and runs when the debugger lets it
    guest.send("\x01x")
    guest.expect(pexpect.EOF)
