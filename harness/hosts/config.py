"""hosts.toml: which machines there are."""

from __future__ import annotations

import getpass
from pathlib import Path

import msgspec
from msgspec import Struct

from harness import arch
from harness.errors import UserError
from harness.guest import Accelerator


class Login(Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """The way to a machine."""

    name: str
    address: str
    """HOST or HOST:PORT."""
    user: str = ""
    """Ours, if it is empty."""
    key: str = ""
    """A private key's file; without, ssh-agent and the usual files are asked."""
    known_hosts: str = "~/.ssh/known_hosts"

    @property
    def hostname(self) -> str:
        return self.address.rpartition(":")[0] if ":" in self.address else self.address

    @property
    def port(self) -> str:
        return self.address.rpartition(":")[2] if ":" in self.address else "22"

    @property
    def login(self) -> str:
        return self.user or getpass.getuser()


class HostSpec(Login, frozen=True, forbid_unknown_fields=True, rename="kebab", kw_only=True):
    """A machine that guests of some architectures run on."""

    archs: tuple[str, ...]
    accel: Accelerator = Accelerator.KVM
    """tcg for a machine that only lends its cores."""
    folder: str = ".cache/fgraph-harness/files"
    """There, below the home folder if it does not begin with a slash: what was sent, by its digest."""
    slots: int = 1
    """Guests at a time."""

    def __post_init__(self) -> None:
        if unknown := [name for name in self.archs if name not in arch.names()]:
            raise ValueError(f"unknown architecture '{unknown[0]}'; known: {', '.join(arch.names())}")
        if not self.archs or self.slots < 1 or not self.port.isdecimal():
            raise ValueError(f"host '{self.name}' has at least one architecture and one slot, and a port that is a number")


class _HostsFile(Struct, frozen=True, forbid_unknown_fields=True):
    host: tuple[HostSpec, ...] = ()


def read_hosts(path: Path) -> tuple[HostSpec, ...]:
    """Raises UserError for a file that is not there, or is not what it should be."""
    try:
        hosts = msgspec.toml.decode(path.read_bytes(), type=_HostsFile).host
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}", hint="--hosts FILE, with a [[host]] for each machine") from None
    except msgspec.DecodeError as error:
        hint = "each [[host]] has name, address and archs, and if need be user, key, known-hosts, accel and slots"
        raise UserError(f"{path}: {error}", hint=hint) from None
    for one in hosts:
        if one.key and not Path(one.key).expanduser().is_file():
            raise UserError(f"{path}: host '{one.name}' has no key at {one.key}", hint="the file of a private key, or no `key`")
    names = [one.name for one in hosts]
    if twice := [name for name in names if names.count(name) > 1]:
        raise UserError(f"{path}: two hosts are called '{twice[0]}'", hint="a host is known by its name")
    return hosts
