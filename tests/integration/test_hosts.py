"""Guests on another machine: a real sshd on this one."""

from __future__ import annotations

import hashlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import psutil
import pytest

from harness.arch import load
from harness.guest import Accelerator, Guest, PlaceLost
from harness.guest.guest import started
from harness.hosts import HostSpec
from harness.hosts.ssh import SshHost
from harness.model import Outcome
from harness.results import read_run
from tests.conftest import default_signals, survivors
from tests.integration.conftest import Machine, harness
from tests.sshd import Sshd, hosts_toml


@pytest.fixture
def guest(machine: Machine, sshd: Sshd, tmp_path: Path) -> Iterator[Guest]:
    with started(machine.arch, machine.accelerator, tmp_path, machine.boot, place=SshHost(sshd.spec())) as found:
        found.wait_for_agent()
        yield found


def test_commands(guest: Guest) -> None:
    assert guest.run("echo out; exit 7", "status", 10).status == 7
    assert guest.run("seq 20000", "long", 60).output.split() == [str(number) for number in range(1, 20001)]
    done = guest.run("echo kernel text >/dev/kmsg", "console", 10)
    assert "kernel text" in "\n".join(guest.console.read(*done.console))


def test_flood_arrives_byte_by_byte(guest: Guest) -> None:
    lines = 30_000
    # stty waits until all of it is out. What the kernel says meanwhile is not in it.
    done = guest.run(f"seq {lines} | tee /dev/console | md5sum; stty -F /dev/console raw", "flood", 600)
    begin, end = done.console
    said = re.sub(rb"\[ *\d+\.\d+\][^\n]*\n|\r", b"", guest.console.path.read_bytes()[begin:end])
    found = said[said.index(b"1\n2\n3\n") :][: sum(len(str(number)) + 1 for number in range(1, lines + 1))]
    assert hashlib.md5(found).hexdigest() == done.output.split()[0]


def qemus(folder: Path) -> list[psutil.Process]:
    """Those that run there."""
    found = []
    for one in psutil.process_iter():
        try:
            if one.name().startswith("qemu-system") and str(folder) in " ".join(one.cmdline()):
                found.append(one)
        except psutil.NoSuchProcess:
            continue
    return found


def emptied(folder: Path, seconds: float = 60) -> bool:
    deadline = time.monotonic() + seconds
    while list(folder.iterdir()) and time.monotonic() < deadline:
        time.sleep(0.05)
    return not list(folder.iterdir())


def test_broken_connection_is_not_the_guests_fault(machine: Machine, sshd: Sshd, tmp_path: Path) -> None:
    place = SshHost(sshd.spec())
    with started(machine.arch, machine.accelerator, tmp_path, machine.boot, place=place) as guest:
        guest.wait_for_agent()
        running = qemus(sshd.folder)
        assert running
        sshd.stop()
        with pytest.raises(PlaceLost, match="loopback"):
            guest.run("sleep 100", "broken", 200)
    assert survivors(running) == []
    assert emptied(sshd.folder / "run")


def test_nothing_is_left_there(machine: Machine, sshd: Sshd, tmp_path: Path) -> None:
    with started(machine.arch, machine.accelerator, tmp_path, machine.boot, place=SshHost(sshd.spec())) as guest:
        guest.wait_for_agent()
        running = qemus(sshd.folder)
        assert running
    assert survivors(running) == []
    assert len(list((sshd.folder / "files").iterdir())) == 2


def outcomes(directory: Path) -> dict[str, Outcome]:
    (job,) = read_run(directory).jobs.values()
    return {result.id: result.outcome for result in job.results}


def test_run_elsewhere_is_the_same(sshd: Sshd, tmp_path: Path) -> None:
    arguments = ("run", "--arch", "x86_64", "--suite", "kunit", "--suite", "samples", "--cmd", "uname -r")
    hosts = hosts_toml(tmp_path / "hosts.toml", sshd.spec())
    found = []
    for name, more in (("here", ()), ("there", ("--hosts", hosts))):
        done = harness(*arguments, *more, "--out", name, cwd=tmp_path)
        assert done.returncode == 0, done.stdout + done.stderr
        found.append(outcomes(tmp_path / name / "latest"))
    assert found[0] == found[1]
    here, there = (read_run(tmp_path / name / "latest").job("x86_64", "last").properties for name in ("here", "there"))
    assert "host" not in here
    assert there["host"] == "loopback"


def test_host_that_goes_away_costs_no_case(sshd: Sshd, tmp_path: Path) -> None:
    hosts = hosts_toml(tmp_path / "hosts.toml", sshd.spec())
    arguments = ["run", "--arch", "x86_64", "--suite", "kunit", "--suite", "samples", "--cmd", "sleep 5", "--hosts", str(hosts)]
    with subprocess.Popen(
        [sys.executable, "-m", "harness", *arguments], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as run:
        log = tmp_path / "runs" / "latest" / "x86_64" / "last" / "console.log"
        while not (log.exists() and b"begin samples" in log.read_bytes()):
            assert run.poll() is None
            time.sleep(0.05)
        sshd.stop()
        said, _ = run.communicate()
    assert run.returncode == 0, said
    assert "the connection to loopback broke; what is left runs elsewhere" in said
    assert set(outcomes(tmp_path / "runs" / "latest").values()) == {Outcome.PASS}
    assert emptied(sshd.folder / "run")


def test_ctrl_c_ends_what_runs_elsewhere(sshd: Sshd, tmp_path: Path) -> None:
    hosts = hosts_toml(tmp_path / "hosts.toml", sshd.spec())
    arguments = ["run", "--arch", "x86_64", "--cmd", "sleep 1000", "--hosts", str(hosts)]
    with subprocess.Popen([sys.executable, "-m", "harness", *arguments], cwd=tmp_path, preexec_fn=default_signals) as run:
        log = tmp_path / "runs" / "latest" / "x86_64" / "last" / "console.log"
        while not (log.exists() and b"begin command" in log.read_bytes()):
            assert run.poll() is None
            time.sleep(0.05)
        running = qemus(sshd.folder)
        assert running
        run.send_signal(signal.SIGINT)
        assert run.wait() == 130
    assert survivors(running) == []
    assert emptied(sshd.folder / "run")


def test_harness_that_is_killed_leaves_nothing_there(sshd: Sshd, tmp_path: Path) -> None:
    hosts = hosts_toml(tmp_path / "hosts.toml", sshd.spec())
    arguments = ["run", "--arch", "x86_64", "--cmd", "sleep 1000", "--hosts", str(hosts)]
    with subprocess.Popen([sys.executable, "-m", "harness", *arguments], cwd=tmp_path) as run:
        log = tmp_path / "runs" / "latest" / "x86_64" / "last" / "console.log"
        while not (log.exists() and b"begin command" in log.read_bytes()):
            assert run.poll() is None
            time.sleep(0.05)
        running = qemus(sshd.folder)
        run.kill()
    assert running
    assert survivors(running) == []
    assert emptied(sshd.folder / "run")


@pytest.mark.parametrize(
    ("wrong", "hint"),
    [
        ({"known_hosts": "/nowhere"}, "ssh-keyscan"),
        ({"key": "other"}, "can .* log in there"),
        ({"known_hosts": "imposter"}, "is it the machine that you think it is"),
    ],
)
def test_host_that_is_not_let_in_is_not_used(wrong: dict[str, str], hint: str, sshd: Sshd) -> None:
    (sshd.folder / "imposter").write_text(f"[127.0.0.1]:{sshd.port} {(sshd.folder / 'other.pub').read_text()}")
    paths = {name: str(sshd.folder / value) for name, value in wrong.items()}
    with pytest.raises(PlaceLost) as caught:
        SshHost(sshd.spec(**paths)).version(load("x86_64"))
    assert re.search(hint, caught.value.hint)


def test_host_without_python(machine: Machine, sshd: Sshd, tmp_path: Path) -> None:
    """What its shell says is what we say."""
    sshd.stop()
    config = sshd.folder / "config"
    config.write_text(config.read_text().replace("SetEnv ", "SetEnv PATH=/nowhere "))
    sshd.start()
    place = SshHost(sshd.spec())
    with pytest.raises(PlaceLost), started(machine.arch, machine.accelerator, tmp_path, machine.boot, place=place):
        pass


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a small disk")
def test_full_disk_there(machine: Machine, sshd: Sshd, tmp_path: Path) -> None:
    small = tmp_path / "small"
    small.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "none", small], check=True)
    try:
        place = SshHost(sshd.spec(folder=str(small / "files")))
        with (
            pytest.raises(PlaceLost, match="cannot be sent"),
            started(machine.arch, machine.accelerator, tmp_path, machine.boot, place=place),
        ):
            pass
        assert not list((small / "files").iterdir())
    finally:
        subprocess.run(["umount", small], check=True)


def test_doctor_looks_at_hosts(sshd: Sshd, tmp_path: Path) -> None:
    gone = msgspec.structs.replace(sshd.spec(), name="gone", address="127.0.0.1:1")
    kvm = msgspec.structs.replace(sshd.spec(accel=Accelerator.KVM), name="kvm", archs=("s390x",))
    arguments = ("doctor", "--arch", "x86_64", "--hosts", hosts_toml(tmp_path / "hosts.toml", sshd.spec(), gone, kvm), "--json")
    done = harness(*arguments, cwd=tmp_path)
    assert done.returncode == 3, done.stdout + done.stderr
    found = {(one["host"], one["name"]): one["problem"] for one in json.loads(done.stdout)["hosts"]}
    assert {name: problem for (host, name), problem in found.items() if host == "loopback" and problem} == {}
    assert ("loopback", "qemu-system-x86_64") in found
    assert "is it up" in found["gone", "127.0.0.1:1"]
    assert found["kvm", "s390x"] == "another machine"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('[[host]]\nname = "a"\naddress = "b"\narchs = ["vax"]', "unknown architecture 'vax'"),
        ('[[host]]\nname = "a"\naddress = "b"\narchs = []', "at least one"),
        ('[[host]]\nname = "a"\naddress = "b"\narchs = ["arm64"]\nslots = 0', "at least one"),
        ('[[host]]\nname = "a"\naddress = "b:c"\narchs = ["arm64"]', "port"),
        ('[[host]]\nname = "a"\naddress = "b"\narchs = ["arm64"]\n' * 2, "two hosts are called 'a'"),
        ('[[host]]\nnam = "a"', "nam"),
        ("[[host", "hosts.toml"),
    ],
)
def test_hosts_that_are_wrong_are_refused(text: str, why: str, tmp_path: Path) -> None:
    path = tmp_path / "hosts.toml"
    path.write_text(text)
    done = harness("run", "--arch", "x86_64", "--hosts", path, cwd=tmp_path)
    assert done.returncode == 2
    assert why in done.stderr
    assert not (tmp_path / "runs").exists()


def test_two_hosts_at_once(sshd: Sshd, tmp_path: Path) -> None:
    specs = [msgspec.structs.replace(sshd.spec(), name=arch, archs=(arch,)) for arch in ("x86_64", "arm64")]
    hosts = hosts_toml(tmp_path / "hosts.toml", *specs)
    done = harness("run", "--arch", "x86_64", "--arch", "arm64", "--suite", "kunit", "--hosts", hosts, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert [job.properties["host"] for job in read_run(tmp_path / "runs" / "latest").jobs.values()] == [
        job.arch for job in read_run(tmp_path / "runs" / "latest").jobs.values()
    ]


def test_host_that_is_not_there_is_said_and_done_without(tmp_path: Path) -> None:
    gone = HostSpec("gone", "127.0.0.1:1", archs=("x86_64",), accel=Accelerator.TCG)
    hosts = hosts_toml(tmp_path / "hosts.toml", gone)
    done = harness("run", "--arch", "x86_64", "--suite", "kunit", "--hosts", hosts, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "gone (127.0.0.1:1)" in done.stderr
    assert "host" not in read_run(tmp_path / "runs" / "latest").job("x86_64", "last").properties
