"""What a job needs on this machine, what of it is missing, and what installs it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from msgspec import Struct

from harness import process
from harness.arch import Arch
from harness.errors import CommandFailed, InfrastructureError


class Need(Struct, frozen=True):
    """A program or a file, what it is for, and the packages that bring it."""

    name: str
    purpose: str
    debian: str
    fedora: str
    files: tuple[str, ...] = ()
    """Below /usr; any of these meets the need, instead of a program of that name."""
    optional: bool = False


class Finding(Struct, frozen=True):
    need: Need
    found: bool


_COMMON = (
    Need("git", "trees and series", "git", "git-core"),
    Need("tar", "selftests of the tree", "tar", "tar"),
    Need("make", "kbuild", "make", "make"),
    Need("gcc", "the kernel's host tools", "gcc", "gcc"),
    Need("libc headers", "the kernel's host tools", "libc6-dev", "glibc-devel", files=("include/stdio.h",)),
    Need("flex", "Kconfig", "flex", "flex"),
    Need("bison", "Kconfig", "bison", "bison"),
    Need("bc", "kbuild", "bc", "bc"),
    Need("perl", "kbuild", "perl", "perl-interpreter"),
    Need("python3", "kbuild", "python3", "python3"),
    Need("libelf headers", "objtool, resolve_btfids", "libelf-dev", "elfutils-libelf-devel", files=("include/gelf.h",)),
    Need("pahole", "BTF", "dwarves", "dwarves"),
    Need("depmod", "modules of the guest", "kmod", "kmod"),
    Need("nice", "builds give way to guests", "coreutils", "coreutils"),
    Need("ccache", "builds of what was built before", "ccache", "ccache", optional=True),
)


def needs(archs: Iterable[Arch]) -> list[Need]:
    """Everything that jobs for these architectures need, each once."""
    found = {need.name: need for need in _COMMON}
    for arch in archs:
        for tool in arch.kernel.tools:
            # Compressors, whose packages are called what they are.
            found[tool] = Need(tool, f"kernel image of {arch.name}", tool, tool)
        compiler = f"{arch.cross_compile}gcc"
        package = "gcc" if arch.native else arch.debian.gcc
        found.setdefault(compiler, Need(compiler, f"kernels of {arch.name}", package, arch.fedora.gcc))
        if not arch.native:
            triple = arch.toolchain.gcc.rstrip("-")
            files = (f"{triple}/lib/libc.a", f"{triple}/sys-root/usr/lib/libc.a")
            libc = Need(f"libc of {arch.name}", f"guests of {arch.name}", arch.debian.libc, arch.fedora.libc, files=files)
            found.setdefault(libc.name, libc)
        qemu = Need(arch.guest.program, f"guests of {arch.name}", arch.debian.qemu, arch.fedora.qemu)
        found.setdefault(qemu.name, qemu)
    return list(found.values())


def examine(archs: Iterable[Arch], root: Path = Path("/")) -> list[Finding]:
    return [Finding(need, _is_there(need, root)) for need in needs(archs)]


def missing(findings: Iterable[Finding]) -> list[Need]:
    """Those that a job cannot do without."""
    return [finding.need for finding in findings if not finding.found and not finding.need.optional]


def install_command(findings: Iterable[Finding]) -> str:
    """The line that installs all that is missing, optional things included; empty if nothing is."""
    lacking = [finding.need for finding in findings if not finding.found]
    if not lacking:
        return ""
    if process.which("apt-get") or not process.which("dnf"):
        return " ".join(_apt(sorted({need.debian for need in lacking}), sudo="sudo"))
    return f"sudo dnf install {' '.join(sorted({need.fedora for need in lacking}))}"


def install(findings: Sequence[Finding]) -> None:
    """Install with apt what is missing. Raises InfrastructureError where that cannot be done."""
    packages = sorted({finding.need.debian for finding in findings if not finding.found})
    if not packages:
        return
    if process.which("apt-get") is None:
        raise InfrastructureError("only apt can install for you", hint=install_command(findings))
    # A sudo that asks for a password would wait for it in the background, for ever.
    command = _apt(packages, sudo="sudo --non-interactive")
    environment = {"DEBIAN_FRONTEND": "noninteractive"}
    try:
        process.run([*command[: command.index("apt-get")], "apt-get", "update"], env=environment)
        process.run(command, env=environment)
    except CommandFailed as error:
        if missing(findings):
            advice = f"{error.hint}\nrun this yourself: {install_command(findings)}"
            raise InfrastructureError("apt-get could not install what is missing", hint=advice) from error


def check(archs: Iterable[Arch], install_missing: bool) -> None:
    """Raises InfrastructureError, with the command that helps, if something is missing."""
    archs = list(archs)
    findings = examine(archs)
    if install_missing and not all(finding.found for finding in findings):
        install(findings)
        findings = examine(archs)
    lacking = missing(findings)
    if lacking:
        names = ", ".join(f"{need.name} ({need.purpose})" for need in lacking)
        raise InfrastructureError(f"missing: {names}", hint=f"{install_command(findings)}\nor let the harness do it: --install")


def _apt(packages: Sequence[str], sudo: str) -> list[str]:
    become_root = [] if os.geteuid() == 0 else sudo.split()
    return [*become_root, "apt-get", "install", "--yes", "--no-install-recommends", *packages]


def _is_there(need: Need, root: Path) -> bool:
    if not need.files:
        return process.which(need.name) is not None
    return any((root / "usr" / file).exists() for file in need.files)
