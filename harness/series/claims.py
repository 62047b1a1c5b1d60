"""Read what a series says of itself: claims.toml, what a guest must show on the base kernel and with the series, and bench.toml,
what it costs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TypeVar

import msgspec
from msgspec import Struct

from harness import arch
from harness.errors import UserError
from harness.model import ABSENT, Claim, Measure

T = TypeVar("T")


class _Claims(Struct, frozen=True, forbid_unknown_fields=True):
    claim: tuple[Claim, ...]
    absent: dict[str, tuple[str, ...]] = {}
    """The architectures whose base lacks a symbol: there, claims that need it show ABSENT."""


class _Measures(Struct, frozen=True, forbid_unknown_fields=True):
    measure: tuple[Measure, ...]
    limits_for: dict[str, str] = msgspec.field(name="limits-for", default={})
    """For each measure."""


def read_claims(path: Path) -> tuple[Claim, ...]:
    """The claims of a series, in order; none if there is no such file. Raises UserError for a claim that claims nothing."""
    file = _read(path, _Claims)
    if file is None:
        return ()
    _check(path, file.claim, ("says", "script", "patched"))
    for entry in file.claim:
        if bool(entry.base) == bool(entry.not_on_base):
            raise UserError(f"{path}: '{entry.case}': one of base and not-on-base", hint="it is tried there or it is not")
        if ABSENT in (entry.patched, *entry.patched_on.values()):
            raise UserError(f"{path}: '{entry.case}': '{ABSENT}' with the series", hint="what it needs must be there")
        _check_archs(path, entry.base_on)
        _check_archs(path, entry.patched_on)
    for archs in file.absent.values():
        _check_archs(path, archs)
    return tuple(_with_absent(entry, file.absent) for entry in file.claim)


def read_measures(path: Path) -> tuple[Measure, ...]:
    """The measures of a series, in order; none if there is no such file. Raises UserError for one that measures nothing."""
    file = _read(path, _Measures)
    if file is None:
        return ()
    _check(path, file.measure, ("says", "script", "unit"))
    for entry in file.measure:
        _check_archs(path, entry.at_most)
    return tuple(msgspec.structs.replace(entry, limits_for=file.limits_for | entry.limits_for) for entry in file.measure)


def _read(path: Path, type: type[T]) -> T | None:
    try:
        return msgspec.toml.decode(path.read_bytes(), type=type)
    except FileNotFoundError:
        return None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: {error}", hint=f"see patches/fprobe-on-fgraph/{path.name}") from None


def _check(path: Path, entries: Sequence[Claim | Measure], needed: Sequence[str]) -> None:
    """Each has a name of its own, and what it needs."""
    names = [entry.case for entry in entries]
    for entry in entries:
        if empty := [key for key in ("case", *needed) if not getattr(entry, key).strip()]:
            raise UserError(f"{path}: '{entry.case}': no {empty[0]}", hint="without it, it can never be wrong")
        if names.count(entry.case) > 1:
            raise UserError(f"{path}: '{entry.case}' is there twice", hint="a case needs a name of its own")


def _check_archs(path: Path, names: Iterable[str]) -> None:
    for name in names:
        if name not in arch.names():
            raise UserError(f"{path}: unknown architecture '{name}'", hint=f"known: {', '.join(arch.names())}")


def _with_absent(entry: Claim, absent: dict[str, tuple[str, ...]]) -> Claim:
    """The entry with the architectures on whose base it shows ABSENT."""
    lacking = {name: ABSENT for symbol in entry.needs for name in absent.get(symbol, ())}
    return msgspec.structs.replace(entry, base_on=lacking | entry.base_on)
