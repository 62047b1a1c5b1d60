"""What is missing on a machine behind SSH."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from msgspec import Struct

from harness import arch, packages
from harness.errors import InfrastructureError
from harness.guest import Accelerator
from harness.hosts.ssh import SshHost


class HostFinding(Struct, frozen=True):
    """`problem` is empty where all is well."""

    host: str
    name: str
    purpose: str
    problem: str = ""


def examine(host: SshHost) -> Iterator[HostFinding]:
    """One finding for each thing that guests there need; just one if there is no way to it."""

    def tried(name: str, purpose: str, command: str, wrong: str = "missing") -> HostFinding:
        return HostFinding(host.name, name, purpose, "" if host.succeeds(command) else wrong)

    try:
        host.ask("true")
        yield HostFinding(host.name, host.spec.address, "the way to it")
        yield tried("python3", "what keeps QEMU", "python3 --version")
        folder = shlex.quote(host.spec.folder)
        yield tried(host.spec.folder, "kernels that were sent", f"mkdir -p {folder} && test -w {folder}", "cannot be written")
        for name in host.spec.archs:
            target = arch.load(name)
            yield _qemu(host, target)
            if host.spec.accel is Accelerator.KVM:
                native = f'test "$(uname -m)" = {shlex.quote(target.host)}'
                yield tried(target.host, f"guests of {name} with KVM", native, "another machine")
        if host.spec.accel is Accelerator.KVM:
            yield tried("/dev/kvm", "KVM", 'python3 -c \'open("/dev/kvm", "r+b", 0)\'', "does not open")
    except InfrastructureError as error:
        yield HostFinding(host.name, host.spec.address, "the way to it", f"{error.message}; {error.hint}")


def _qemu(host: SshHost, target: arch.Arch) -> HostFinding:
    program, guests = target.guest.program, f"guests of {target.name}"
    if not host.succeeds(f"command -v {shlex.quote(program)}"):
        return HostFinding(host.name, program, guests, "missing")
    found = packages.number(host.version(target))
    if target.guest.qemu and found < packages.number(target.guest.qemu):
        told = ".".join(map(str, found))
        return HostFinding(host.name, program, guests, f"too old: {told}, at least {target.guest.qemu} is needed")
    return HostFinding(host.name, program, guests)
