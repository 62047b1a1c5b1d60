"""Read the claims of a series (claims.toml: values that a guest must show without and with the series) and its measures
(bench.toml: costs, with their limits).

A mistake in these files must not switch a case or a limit off: an entry that makes no sense is a UserError with file and line."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TypeVar

import msgspec
from msgspec import Struct

from harness import arch, datafile
from harness.datafile import Lines
from harness.errors import UserError
from harness.model import ABSENT, Claim, Condition, Measure, Setting

T = TypeVar("T")

Entry = Claim | Measure

_SYMBOL = re.compile(r"(?!CONFIG_)[A-Za-z0-9_]+")


class _File(Struct, frozen=True):
    path: Path
    lines: Lines

    def where(self, *keys: str | int) -> str:
        """The file and the line of a key, or of the nearest table around it."""
        return f"{self.path}:{self.lines.of(*keys)}"


class _Place(Struct, frozen=True):
    """One entry in its file."""

    file: _File
    table: str
    number: int
    case: str

    def where(self, *keys: str) -> str:
        return self.file.where(self.table, self.number, *keys)

    def error(self, what: str, hint: str, *keys: str) -> UserError:
        return UserError(f"{self.where(*keys)}: '{self.case}': {what}", hint=hint)


class _Claims(Struct, frozen=True, forbid_unknown_fields=True):
    claim: tuple[Claim, ...]
    absent: dict[str, tuple[str, ...]] = {}
    """The architectures whose base lacks a symbol: there, claims that need it show ABSENT."""


class _Measures(Struct, frozen=True, forbid_unknown_fields=True):
    measure: tuple[Measure, ...]
    limits_for: dict[str, Setting] = msgspec.field(name="limits-for", default={})
    """For each measure."""
    limits_on: dict[str, dict[str, Setting]] = msgspec.field(name="limits-on", default={})


def read_claims(path: Path) -> tuple[tuple[Claim, ...], tuple[Condition, ...]]:
    """The claims of a series in order, and the symbols that they depend on; none if there is no such file.

    Raises UserError with file and line for a claim that could never be wrong or never be right."""
    found = _read(path, _Claims)
    if found is None:
        return (), ()
    file, document = found
    _check_entries(document, "claim", file.claim, ("says", "script", "patched"))
    for number, entry in enumerate(file.claim):
        _check_claim(entry, _Place(document, "claim", number, entry.case))
    needed = {symbol for entry in file.claim for symbol in entry.needs}
    for symbol, archs in file.absent.items():
        _check_archs(archs, document.where("absent", symbol))
        if symbol not in needed:
            raise UserError(
                f"{document.where('absent', symbol)}: no claim needs {symbol}",
                hint="[absent] lists symbols that claims name under `needs`: correct its name, or remove the line",
            )
    claims = tuple(_with_absent(entry, file.absent) for entry in file.claim)
    return claims, _conditions(document, "claims", "claim", file.claim)


def read_measures(path: Path) -> tuple[tuple[Measure, ...], tuple[Condition, ...]]:
    """The measures of a series in order, and the symbols that they and their limits depend on; none if there is no such file.

    Raises UserError with file and line for a measure or a limit that could never be wrong or never be right."""
    found = _read(path, _Measures)
    if found is None:
        return (), ()
    file, document = found
    _check_entries(document, "measure", file.measure, ("says", "script", "unit"))
    for number, entry in enumerate(file.measure):
        _check_limits(entry, _Place(document, "measure", number, entry.case))
    measures = tuple(_with_common(entry, file) for entry in file.measure)
    return measures, (*_settings(document, file, ()), *_conditions(document, "bench", "measure", file.measure))


def _read(path: Path, kind: type[T]) -> tuple[T, _File] | None:
    if not (path.exists() or path.is_symlink()):  # a link to nowhere is a mistake
        return None
    value, lines = datafile.read(path, kind, hint=f"see docs/adding.md and patches/fprobe-on-fgraph/{path.name}")
    return value, _File(path, lines)


def _check_entries(document: _File, table: str, entries: Sequence[Entry], needed: Sequence[str]) -> None:
    """Check that there is at least one entry, and that each has a unique name, the `needed` keys and a deadline."""
    if not entries:
        raise UserError(f"{document.where(table)}: no [[{table}]]", hint="a file without any must not be there")
    names: set[str] = set()
    for number, entry in enumerate(entries):
        place = _Place(document, table, number, entry.case)
        if empty := [key for key in ("case", *needed) if not getattr(entry, key).strip()]:
            raise place.error(f"no {empty[0]}", "without it, the case can never be wrong: write it down", empty[0])
        if entry.case in names:
            raise place.error("is listed twice", "a case needs a name of its own: rename one of them", "case")
        if not (math.isfinite(entry.seconds) and entry.seconds > 0):
            raise place.error(f"a deadline of {entry.seconds:g} seconds", "give a number of seconds above 0", "seconds")
        names.add(entry.case)


def _check_claim(entry: Claim, place: _Place) -> None:
    if bool(entry.base.strip()) == bool(entry.not_on_base.strip()):
        key = "not-on-base" if entry.not_on_base else "base"
        raise place.error(
            "one of base and not-on-base is needed",
            "write base, the value without the series, or not-on-base, the reason why it is not tried there",
            key,
        )
    if entry.not_on_base and entry.base_on:
        raise place.error("base-on beside not-on-base", "it is not tried without the series: remove one of them", "base-on")
    for key, values in (("base-on", entry.base_on), ("patched-on", entry.patched_on)):
        for name, value in values.items():
            _check_archs([name], place.where(key, name))
            if not value.strip():
                raise place.error("no value", "no guest can show an empty value: write the value down", key, name)
    patched = [(("patched",), entry.patched), *((("patched-on", name), value) for name, value in entry.patched_on.items())]
    for keys, value in patched:
        if value == ABSENT:
            raise place.error(
                f"'{ABSENT}' with the series", "only base may be that: write the value that a guest with the series shows", *keys
            )


def _check_limits(entry: Measure, place: _Place) -> None:
    for key, limits in (("at-least", entry.at_least), ("at-most", entry.at_most)):
        for name, limit in limits.items():
            _check_archs([name], place.where(key, name))
            if not math.isfinite(limit):
                raise place.error(f"a limit of {limit}", "every value would be within it: give a number", key, name)
    for name in sorted({*entry.at_least, *entry.at_most}):
        low, high = entry.at_least.get(name), entry.at_most.get(name)
        if low is None or high is None:
            given, other = ("at-most", "at-least") if low is None else ("at-least", "at-most")
            what = f"{given} for {name} without {other}"
            raise place.error(what, f"add {other} for {name}: a limit has two sides", given, name)
        if not 0 <= low <= high:
            what = f"no value of {name} is within {low:g} and {high:g}"
            raise place.error(what, "at-least is 0 or more, and at-most no less than that", "at-least", name)
        if low == 0 and not entry.may_be_zero:
            hint = "a value of 0 means that nothing was measured: raise the limit, or add may-be-zero = true"
            raise place.error(f"at-least of {name} is 0", hint, "at-least", name)
    for key, settings in (("limits-for", entry.limits_for), ("limits-on", entry.limits_on)):
        if settings and not entry.at_most:
            raise place.error(f"{key} without limits", "add at-least and at-most, or remove it", key)


def _with_common(entry: Measure, file: _Measures) -> Measure:
    """The entry with the settings of the whole file. Its own come first."""
    on = {name: file.limits_on.get(name, {}) | entry.limits_on.get(name, {}) for name in {*file.limits_on, *entry.limits_on}}
    return msgspec.structs.replace(entry, limits_for=file.limits_for | entry.limits_for, limits_on=on)


def _conditions(document: _File, suite: str, table: str, entries: Iterable[Entry]) -> tuple[Condition, ...]:
    found: list[Condition] = []
    for number, entry in enumerate(entries):
        where = document.where(table, number, "needs")
        found += [Condition(_symbol(symbol, where), suite, where) for symbol in entry.needs]
        if isinstance(entry, Measure):
            found += _settings(document, entry, (table, number))
    return tuple(found)


def _settings(document: _File, holder: Measure | _Measures, place: tuple[str | int, ...]) -> list[Condition]:
    """The symbols of limits-for and limits-on, which stand at `place` in the document."""
    for name in holder.limits_on:
        _check_archs([name], document.where(*place, "limits-on", name))
    named: list[tuple[str, ...]] = [("limits-for", symbol) for symbol in holder.limits_for]
    named += [("limits-on", name, symbol) for name, settings in holder.limits_on.items() for symbol in settings]
    places = [(keys[-1], document.where(*place, *keys)) for keys in named]
    return [Condition(_symbol(symbol, where), "bench", where) for symbol, where in places]


def _symbol(name: str, where: str) -> str:
    if not _SYMBOL.fullmatch(name):
        raise UserError(f"{where}: '{name}' is no configuration symbol", hint="write it as Kconfig does, without CONFIG_: FPROBE")
    return name


def _check_archs(names: Iterable[str], where: str) -> None:
    for name in names:
        if name not in arch.names():
            raise UserError(f"{where}: unknown architecture '{name}'", hint=f"one of {', '.join(arch.names())}")


def _with_absent(entry: Claim, absent: dict[str, tuple[str, ...]]) -> Claim:
    """The entry with the architectures on whose base it shows ABSENT."""
    lacking = {name: ABSENT for symbol in entry.needs for name in absent.get(symbol, ())}
    return msgspec.structs.replace(entry, base_on=lacking | entry.base_on)
