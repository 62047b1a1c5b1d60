"""Where guests run. Whoever talks to one knows no difference: its lines are sockets, wherever QEMU is."""

from __future__ import annotations

import os
import select
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

from harness import process
from harness.arch import Arch
from harness.cache import Cache
from harness.errors import InfrastructureError
from harness.guest import host, qemu
from harness.guest.qemu import Accelerator, Boot, Qemu

_KVM_SECONDS = 20.0


class PlaceLost(InfrastructureError):
    """Nothing can be said of a guest, because the way to it broke."""


class Place(Protocol):
    @property
    def name(self) -> str:
        """Empty for this machine."""

    def key(self, arch: Arch) -> str:
        """Under which guests of `arch` there, since it was started, are recorded."""

    def version(self, arch: Arch) -> str:
        """As QEMU says it: `QEMU emulator version 7.2.22 (...)`."""

    def accelerator(self, arch: Arch, boot: Boot, cache: Cache, wanted: str) -> Accelerator:
        """The best that there is, or the one that is wanted: auto, kvm or tcg. Raises InfrastructureError."""

    def start(self, arch: Arch, accelerator: Accelerator, boot: Boot, log: Path) -> AbstractContextManager[Qemu]:
        """Run QEMU for the length of the block; what it prints itself goes to `log`. Raises PlaceLost."""


class Here:
    """This machine."""

    name = ""

    def key(self, arch: Arch) -> str:
        return host.key(arch)

    def version(self, arch: Arch) -> str:
        return process.run([arch.guest.program, "--version"]).stdout.splitlines()[0]

    def accelerator(self, arch: Arch, boot: Boot, cache: Cache, wanted: str) -> Accelerator:
        """KVM where guests of `arch` run natively, /dev/kvm opens, and a guest was seen to run on it, else TCG."""
        if wanted == Accelerator.TCG:
            return Accelerator.TCG
        usable = arch.native and _kvm_opens() and kvm_runs(self, arch, boot, cache)
        if wanted == Accelerator.KVM and not usable:
            raise InfrastructureError(f"no KVM for {arch.name} here", hint="--accel auto falls back to TCG")
        return Accelerator.KVM if usable else Accelerator.TCG

    def start(self, arch: Arch, accelerator: Accelerator, boot: Boot, log: Path) -> AbstractContextManager[Qemu]:
        return qemu.start(arch, accelerator, boot, log)


HERE = Here()


def kvm_runs(place: Place, arch: Arch, boot: Boot, cache: Cache) -> bool:
    """Some virtual machines offer a /dev/kvm on which no instruction is ever executed. So boot `boot` once and wait for its
    first character; the answer holds until the machine is started again."""
    key = place.key(arch)
    known = cache.read_record("kvm", key, bool)
    if known is None:
        with cache.scratch() as scratch, place.start(arch, Accelerator.KVM, boot, scratch / "qemu.log") as running:
            known = bool(select.select([running.console], [], [], _KVM_SECONDS)[0]) and running.console.recv(1) != b""
            running.check()
        process.check_stopped()  # a QEMU that Ctrl-C ended says nothing about KVM
        cache.write_record("kvm", key, known)
    return known


def _kvm_opens() -> bool:
    try:
        os.close(os.open("/dev/kvm", os.O_RDWR))
    except OSError:
        return False
    return True
