"""Architectures, read from qemu/<arch>.toml. To add one, add that file and configs/arch/<arch>.config: no Python."""

from __future__ import annotations

import platform
from pathlib import Path

import msgspec
from msgspec import Struct

from harness import paths
from harness.errors import UserError


class Build(Struct, frozen=True, forbid_unknown_fields=True):
    arch: str
    target: str
    image: str
    tools: tuple[str, ...] = ()


class Toolchain(Struct, frozen=True, forbid_unknown_fields=True):
    gcc: str


class Machine(Struct, frozen=True, forbid_unknown_fields=True):
    """A QEMU machine. `arguments` may name two character devices: `console` and `channel`."""

    program: str
    machine: str
    memory: int
    cpus: int
    console: str
    channel: str
    arguments: tuple[str, ...]
    cpu: dict[str, str]
    cmdline: str = ""


class Packages(Struct, frozen=True, forbid_unknown_fields=True):
    """What a distribution calls the cross compiler, its static C library and the emulator."""

    gcc: str
    libc: str
    qemu: str


class Debian(Packages, frozen=True, forbid_unknown_fields=True, kw_only=True):
    arch: str
    """Whose busybox-static goes into the guest."""


class _Description(Struct, frozen=True, forbid_unknown_fields=True):
    host: str
    kernel: Build
    toolchain: Toolchain
    guest: Machine
    debian: Debian
    fedora: Packages


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
