"""Real kernels and real guests. The first run on a machine builds the kernel; later ones find it in the cache."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec
import pytest

from harness.arch import Arch, load
from harness.cache import Cache
from harness.guest import HERE, Accelerator, Boot, build_initramfs
from harness.kernel import detect
from harness.model import Kernel
from harness.results import read_run
from harness.suites import QUIET
from tests import skips, surroundings
from tests.sshd import SSHD, Sshd

ARCHS = ("x86_64", "arm64")


def harness(*arguments: str | Path, cwd: Path, env: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """`env` is added to our own environment."""
    words = [sys.executable, "-m", "harness", *map(str, arguments)]
    return subprocess.run(words, cwd=cwd, capture_output=True, text=True, env={**os.environ, **(env or {})})


@pytest.fixture
def sshd(tmp_path: Path) -> Iterator[Sshd]:
    if SSHD is None:
        pytest.skip("no sshd: apt install openssh-server")
    folder = tmp_path / "ssh"
    folder.mkdir()
    found = Sshd(folder)
    yield found
    found.stop()


@pytest.fixture(scope="session", autouse=True)
def no_more_kernels(request: pytest.FixtureRequest) -> Iterator[None]:
    """The tests that CI runs may build the bundled series' kernel for each of ARCHS and no other, because each kernel takes a
    cold machine minutes."""

    def kernels() -> set[str]:
        return {path.name for path in Cache(surroundings.cache_folder()).directory("kernels").iterdir()}

    before = kernels()
    yield
    if skips.in_ci() and request.config.option.markexpr == "not slow":
        built = kernels() - before
        assert len(built) <= len(ARCHS), f"{len(built)} kernels were built: mark the tests that need others than {ARCHS} slow"


class Machine:
    """An architecture with a kernel and an initramfs, ready to be booted."""

    def __init__(self, arch: Arch, boot: Boot, accelerator: Accelerator) -> None:
        self.arch = arch
        self.boot = boot
        self.accelerator = accelerator


MACHINES = [
    pytest.param((arch, lines), marks=[pytest.mark.slow] if (arch, lines) == ("arm64", "one line") else [], id=f"{arch}-{lines}")
    for arch in ARCHS
    for lines in ("two lines", "one line")
]
"""`one line`: commands share the console's serial line. That does not depend on the architecture, so CI tests it on one."""


@pytest.fixture(scope="session", params=MACHINES)
def machine(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Machine:
    """The kernel of the bundled series for an architecture, built as `harness build` builds it, in a machine with a serial line
    for the console and one for commands, or with one for both."""
    name, lines = request.param
    directory = tmp_path_factory.mktemp(f"build-{name}")
    done = harness("build", "--arch", name, "--out", directory, cwd=directory)
    assert done.returncode == 0, done.stdout + done.stderr
    (job,) = read_run(directory / "latest").jobs.values()
    cache = Cache(surroundings.cache_folder())
    kernel = cache.read_record("kernels", job.properties["kernel"], Kernel)
    assert kernel is not None
    arch = load(name)
    initramfs, _ = build_initramfs(kernel, job.properties["commit"], arch, detect(arch).compiler, cache)
    boot = Boot(kernel.image, initramfs.path, QUIET)
    accelerator = HERE.accelerator(arch, boot, cache, "auto")
    if lines == "one line":
        only = msgspec.structs.replace(arch.guest, channel="", arguments=("-serial", "chardev:console"))
        arch = msgspec.structs.replace(arch, guest=only)
    return Machine(arch, boot, accelerator)
