"""From a tree to a kernel that can be booted."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path

from msgspec import Struct

from harness.model.series import PatchState


class Tree(Struct, frozen=True):
    """A kernel source tree: a commit in the harness's git store, and where it came from."""

    store: Path
    commit: str
    spec: str
    version: str
    """As its Makefile says, 6.12.117."""
    source: str
    """The file, URL or repository it was imported from."""
    sha256: str = ""
    """Of the imported tarball, verified; empty for a git tree, which its commit identifies."""


class PatchResult(Struct, frozen=True):
    patch: str
    subject: str
    state: PatchState
    commit: str = ""
    """Tip after this patch."""
    detail: str = ""
    """What is wrong: for a conflict, the files and hunks."""


class AppliedSeries(Struct, frozen=True):
    """A series on a tree: one commit a patch, kept in the store."""

    base: str
    results: tuple[PatchResult, ...]

    @property
    def complete(self) -> bool:
        return all(result.state.good for result in self.results)

    @property
    def tip(self) -> str:
        commits = [result.commit for result in self.results if result.commit]
        return commits[-1] if commits else self.base


BASE, LAST = "base", "last"
"""The names of the points before the first patch and after all of them."""


class Position(StrEnum):
    """Where in its series a kernel is built, which says what may be expected of it."""

    BASE = "base"
    """Without it."""
    WITHIN = "within"
    """With some of its patches: what the series brings may be there already, or not yet."""
    WHOLE = "whole"


class Point(Struct, frozen=True):
    """A place in the series at which kernels are built."""

    name: str
    """`base` before the first patch, `last` after all of them, else how many there are: NNNN."""
    commit: str
    patch: str = ""
    """The newest patch in it."""
    position: Position = Position.BASE
    number: int = 0
    """Patches up to it."""
    attempt: int = 1
    """Of several at the same place, to see whether something is flaky."""


class SymbolRequest(Struct, frozen=True):
    """A line of a fragment that asks for a value, and where it stands."""

    symbol: str
    """Without CONFIG_."""
    value: str
    """y, m, n, a number, or a quoted string."""
    fragment: str
    line: int
    optional: str = ""
    """The reason why this architecture may go without, or empty."""


class KernelConfig(Struct, frozen=True):
    """A .config that holds all that was asked for."""

    path: Path
    digest: str


class Kernel(Struct, frozen=True):
    """A built kernel, kept under the digest of all that went into it."""

    arch: str
    digest: str
    directory: Path
    release: str
    image: Path
    vmlinux: Path
    modules: Path
    """A folder that holds lib/modules/<release>, with depmod's data."""
    headers: Path
    """Its user-space API and nolibc (tools/include/nolibc): what the guest's own programs are compiled against."""
    config: Path
    config_digest: str
    compiler: str
    objects: int
    seconds: float
    warnings: tuple[str, ...] = ()
    ccache: str = ""
    """Its hit rate in this build, as text; empty without ccache."""
    modules_error: str = ""
    """Why our own modules (qemu/guest/modules/) are not among its modules: what they need is there, but they do not build."""
    build_ids: tuple[str, ...] = ()
    """GNU build ids, in hexadecimal: that of `vmlinux`, or all that a prebuilt image holds, its own and those of the programs in
    it; empty if it cannot be unpacked."""
    module_ids: dict[str, str] = {}
    """The GNU build id of each module, by its path below lib/modules/<release>."""


class Initramfs(Struct, frozen=True):
    path: Path
    digest: str
