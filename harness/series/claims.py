"""Read claims.toml: what a series says that a guest must show, on the base kernel and with the series."""

from __future__ import annotations

from pathlib import Path

import msgspec
from msgspec import Struct

from harness import arch
from harness.errors import UserError
from harness.model import ABSENT, Claim


class _File(Struct, frozen=True, forbid_unknown_fields=True):
    claim: tuple[Claim, ...]
    absent: dict[str, tuple[str, ...]] = {}
    """The architectures whose base lacks a symbol: there, claims that need it show ABSENT."""


def read_claims(path: Path) -> tuple[Claim, ...]:
    """The claims of a series, in order; none if there is no such file. Raises UserError for a claim that claims nothing."""
    try:
        file = msgspec.toml.decode(path.read_bytes(), type=_File)
    except FileNotFoundError:
        return ()
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: {error}", hint="see patches/fprobe-on-fgraph/claims.toml") from None
    names = [entry.case for entry in file.claim]
    for entry in file.claim:
        given = {"base or not-on-base": entry.base or entry.not_on_base}
        given |= {key: getattr(entry, key) for key in ("case", "says", "script", "patched")}
        empty = [key for key, value in given.items() if not value.strip()]
        if empty:
            raise UserError(f"{path}: claim '{entry.case}': no {empty[0]}", hint="a claim without it can never be wrong")
        if entry.base and entry.not_on_base:
            raise UserError(f"{path}: claim '{entry.case}': both base and not-on-base", hint="it is tried there or it is not")
        if entry.patched == ABSENT:
            raise UserError(f"{path}: claim '{entry.case}': '{ABSENT}' with the series", hint="what it needs must be there")
        if names.count(entry.case) > 1:
            raise UserError(f"{path}: claim '{entry.case}' is there twice", hint="a case needs a name of its own")
        _check_archs(path, entry.base_on)
    for archs in file.absent.values():
        _check_archs(path, archs)
    return tuple(_with_absent(entry, file.absent) for entry in file.claim)


def _check_archs(path: Path, names: dict[str, str] | tuple[str, ...]) -> None:
    for name in names:
        if name not in arch.names():
            raise UserError(f"{path}: unknown architecture '{name}'", hint=f"known: {', '.join(arch.names())}")


def _with_absent(entry: Claim, absent: dict[str, tuple[str, ...]]) -> Claim:
    """The entry with the architectures on whose base it shows ABSENT."""
    lacking = {name: ABSENT for symbol in entry.needs for name in absent.get(symbol, ())}
    return msgspec.structs.replace(entry, base_on=lacking | entry.base_on)
