"""Architectures, read from qemu/<arch>.toml. To add one, add that file and configs/arch/<arch>.config: no Python."""

from __future__ import annotations

import platform
import re
from collections.abc import Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from harness import paths
from harness.errors import UserError
from harness.logs import unrelated


class Build(Struct, frozen=True, forbid_unknown_fields=True):
    """What make is told, and where it leaves the image."""

    arch: str
    folders: tuple[str, ...]
    """Of arch/ in the source: no other one has anything to do with it."""
    target: str
    image: str
    tools: tuple[str, ...] = ()
    pahole: str = ""
    """The oldest that can encode this architecture's BTF."""


class Toolchain(Struct, frozen=True, forbid_unknown_fields=True):
    """`gcc` is the prefix of a cross compiler's programs, `llvm` the oldest LLVM that builds kernels for it
    (scripts/min-tool-version.sh), `no_llvm` why none does."""

    gcc: str
    llvm: int = 13
    no_llvm: str = ""

    @property
    def triple(self) -> str:
        return self.gcc.removesuffix("-")


class Follows(Struct, frozen=True, forbid_unknown_fields=True):
    """A kernel report that a failed clock calibration is known to cause. `title` is a glob, `reason`
    explains how the calibration causes it."""

    title: str
    reason: str

    def __post_init__(self) -> None:
        if not self.reason.strip():
            raise ValueError(f"`misboot_splats`: '{self.title}' is excused without a reason")
        if other := unrelated.matched(self.title):
            raise ValueError(f"`misboot_splats`: '{self.title}' would also excuse '{other}': name the function of the report")


class Machine(Struct, frozen=True, forbid_unknown_fields=True):
    """A QEMU machine. `arguments` name its character devices, `console` and `channel`; a machine with one serial line has no
    `channel`, and commands go over the console."""

    program: str
    machine: str
    memory: int
    cpus: int
    console: str
    arguments: tuple[str, ...]
    cpu: dict[str, str]
    channel: str = ""
    sysrq: str = ""
    """What introduces a SysRq key on the console, if a serial break does not."""
    cmdline: str = ""
    tcg: str = "thread=single"
    """Options of the software accelerator."""
    counting: str = "thread=single"
    """Those with which it can count instructions."""
    misboot: str = ""
    """What the kernel says when the emulated machine, and not the kernel, went wrong: the guest is started again."""
    misboot_splats: tuple[Follows, ...] = ()
    """Kernel reports that a failed calibration causes. Any other report of such a boot is red."""
    learn: str = ""
    """A regular expression for what the kernel says that it measured of the host."""
    tell: str = ""
    """The parameter by which a later boot on that host need not measure it: a format string, given the groups of `learn`."""
    qemu: str = ""
    """The oldest that boots it."""

    def __post_init__(self) -> None:
        try:
            groups = re.compile(self.learn).groups
        except re.error as error:
            raise ValueError(f"`learn` is no regular expression: {error}") from None
        if self.misboot_splats and not self.misboot:
            raise ValueError("`misboot_splats` excuses reports of a boot that `misboot` does not describe")
        if bool(self.learn) != bool(self.tell) or self.tell.count("{}") != groups:
            raise ValueError("what is learned is told: a {} in `tell` for each group of `learn`")


class Packages(Struct, frozen=True, forbid_unknown_fields=True):
    """What a distribution calls the cross compiler and the emulator. `a | b` is the first of the two that it has."""

    gcc: str
    qemu: str


class Debian(Packages, frozen=True, forbid_unknown_fields=True, kw_only=True):
    arch: str
    """Whose busybox-static goes into the guest."""
    suite: str = ""
    """That has it, if not every release does."""
    shell: str = ""
    """The package of a static shell, and its program, where busybox's own does not do."""


class _Description(Struct, frozen=True, forbid_unknown_fields=True):
    host: str
    kernel: Build
    toolchain: Toolchain
    guest: Machine
    debian: Debian
    fedora: Packages
    default: bool = True
    """Whether it is meant where no architecture is named."""


class Arch(_Description, frozen=True, kw_only=True):
    """One architecture: how its kernel is built, which machine boots it, which packages it needs."""

    name: str

    @property
    def native(self) -> bool:
        return platform.machine() == self.host

    @property
    def cross_compile(self) -> str:
        """make CROSS_COMPILE= for gcc: empty where the machine's own compiler serves."""
        return "" if self.native else self.toolchain.gcc


def names() -> list[str]:
    return sorted(path.stem for path in paths.QEMU.glob("*.toml"))


def chosen(wanted: Sequence[str]) -> list[Arch]:
    """Those named, each once; the default ones if none is. Raises UserError for a name that is none."""
    if wanted:
        return [load(name) for name in dict.fromkeys(wanted)]
    return [found for name in names() if (found := load(name)).default]


def load(name: str, directory: Path = paths.QEMU) -> Arch:
    """Read `<directory>/<name>.toml`. Raises UserError if there is none or it is not a description."""
    path = directory / f"{name}.toml"
    try:
        description = msgspec.toml.decode(path.read_bytes(), type=_Description)
    except FileNotFoundError:
        raise UserError(f"unknown architecture '{name}'", hint=f"known: {', '.join(names())}") from None
    except msgspec.DecodeError as error:
        raise UserError(f"{path.name}: {error}", hint="see qemu/x86_64.toml for what each key means") from None
    return Arch(name=name, **msgspec.structs.asdict(description))
