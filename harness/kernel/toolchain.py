"""Which compiler builds a kernel, and what it adds to make's command line."""

from __future__ import annotations

from msgspec import Struct

from harness import process
from harness.arch import Arch

KINDS = ("gcc",)


class Toolchain(Struct, frozen=True):
    """`version` is the compiler's first line about itself; a kernel's digest covers it."""

    version: str
    variables: tuple[str, ...]
    """For make's command line: ARCH=, CROSS_COMPILE=, CC=."""
    ccache: bool


def detect(arch: Arch) -> Toolchain:
    """The toolchain for `arch` on this machine. Raises InfrastructureError if the compiler is not there."""
    compiler = f"{arch.cross_compile}gcc"
    version = process.run([compiler, "--version"]).stdout.splitlines()[0]
    ccache = process.which("ccache") is not None
    return Toolchain(
        version=version,
        variables=(
            f"ARCH={arch.kernel.arch}",
            f"CROSS_COMPILE={arch.cross_compile}",
            f"CC=ccache {compiler}" if ccache else f"CC={compiler}",
        ),
        ccache=ccache,
    )
