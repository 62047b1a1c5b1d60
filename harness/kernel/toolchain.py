"""Which compiler builds a kernel, and what it adds to make's command line."""

from __future__ import annotations

import re
from pathlib import Path

from msgspec import Struct

from harness import packages, process
from harness.arch import Arch
from harness.errors import UserError

AUTO = "auto"
_KIND = re.compile(r"auto|gcc|llvm(?:-(?P<version>\d+))?")
_NEWEST = 99

LAUNCHER = Path(__file__).parent / "bin" / "harness-ccache"
"""The script that calls a compiler through ccache where that is safe."""


class Toolchain(Struct, frozen=True):
    """A compiler on this machine. A kernel's digest covers `version` (the first line of `--version`), `variables` and `tools`."""

    kind: str
    """gcc, or llvm-<major version>."""
    version: str
    variables: tuple[str, ...]
    """For make's command line: ARCH=, CROSS_COMPILE= or LLVM=, CC=."""
    tools: tuple[str, ...]
    """The first line of `--version` of the linker and of pahole, because both change the content of a kernel."""
    compiler: tuple[str, ...]
    """Compiles and links a program for the guest."""
    addr2line: str
    linker: str
    ccache: bool
    """True if ccache is installed."""

    @property
    def compile_variables(self) -> tuple[str, ...]:
        """`variables` for a build: compilers are called through bin/harness-ccache, which must be on the PATH."""
        cc = "CC="
        through = f"{cc}{LAUNCHER.name} " if self.ccache else cc
        return tuple(word.replace(cc, through, 1) if word.startswith(cc) else word for word in self.variables)


def choose(arch: Arch, wanted: str = AUTO) -> str:
    """`gcc` or `llvm-N` for `arch`, whether it is installed or not. Left to us, it is gcc where there is one, and else LLVM;
    without a number, the newest that is installed, or else that the distribution has.

    Raises UserError for what names no toolchain, and for an LLVM that is too old for `arch` or cannot build for it."""
    match = _KIND.fullmatch(wanted)
    if match is None:
        raise UserError(f"unknown toolchain '{wanted}'", hint="gcc, llvm, or llvm-N for one version of it")
    if wanted == AUTO:
        wanted = "gcc" if _has_gcc(arch) else "llvm"
    if wanted.startswith("llvm") and arch.toolchain.no_llvm:
        raise UserError(f"LLVM builds no kernels for {arch.name}: {arch.toolchain.no_llvm}", hint="--toolchain gcc")
    if match["version"] and int(match["version"]) < arch.toolchain.llvm:
        raise UserError(f"{wanted} builds no kernels for {arch.name}", hint=f"llvm-{arch.toolchain.llvm} is the oldest that does")
    return f"llvm-{_newest_llvm(arch.toolchain.llvm)}" if wanted == "llvm" else wanted


def programs(arch: Arch, kind: str) -> dict[str, str]:
    """What must be installed for `kind`, a result of `choose`, and Debian's package of each."""
    if kind == "gcc":
        return {f"{arch.cross_compile}gcc": "gcc" if arch.native else arch.debian.gcc}
    version = kind.removeprefix("llvm")
    return {f"clang{version}": f"clang{version}", f"ld.lld{version}": f"lld{version}", f"llvm-ar{version}": f"llvm{version}"}


def detect(arch: Arch, wanted: str = AUTO) -> Toolchain:
    """The toolchain for `arch` on this machine. Raises InfrastructureError if the compiler is not there."""
    kind = choose(arch, wanted)
    compiler = next(iter(programs(arch, kind)))
    if kind == "gcc":
        variables = [f"CROSS_COMPILE={arch.cross_compile}"]
        command = [compiler]
        addr2line = f"{arch.cross_compile}addr2line"
        linker = f"{arch.cross_compile}ld"
    else:
        suffix = kind.removeprefix("llvm")
        variables = [f"LLVM={suffix}"]
        command = [compiler, f"--target={arch.toolchain.triple}", f"--ld-path=ld.lld{suffix}"]
        addr2line = f"llvm-addr2line{suffix}"
        linker = f"ld.lld{suffix}"
    return Toolchain(
        kind=kind,
        version=_version(compiler),
        variables=(f"ARCH={arch.kernel.arch}", *variables, f"CC={compiler}"),
        tools=tuple(map(_version, filter(process.which, (linker, "pahole")))),
        compiler=tuple(command),
        addr2line=addr2line,
        linker=linker,
        ccache=process.which("ccache") is not None,
    )


def _version(program: str) -> str:
    return process.run([program, "--version"]).stdout.partition("\n")[0]


def _has_gcc(arch: Arch) -> bool:
    """Installed, or there to be installed. Where the distribution cannot be asked, it is taken to have one."""
    if process.which(f"{arch.cross_compile}gcc"):
        return True
    return not packages.apt_is_here() or bool(packages.known("|".join(map(re.escape, packages.alternatives(arch.debian.gcc)))))


def _newest_llvm(oldest: int) -> int:
    installed = [number for number in range(_NEWEST, oldest - 1, -1) if process.which(f"clang-{number}")]
    if installed:
        return installed[0]
    offered = [int(name.removeprefix("clang-")) for name in packages.known(r"clang-\d+")]
    return max((number for number in offered if number >= oldest), default=oldest)
