"""Read series.toml: the description of a series, its fragment and the cases that must run with it."""

from __future__ import annotations

import fnmatch
import re
from pathlib import Path

import msgspec
from msgspec import Struct

from harness import datafile
from harness.datafile import Lines
from harness.errors import UserError
from harness.model import Argued, CasePattern, Origin, Series
from harness.series.claims import read_claims, read_measures

NAME = "series.toml"
_HINT = "patches/fprobe-on-fgraph/series.toml is an example with every key"
_VERSION = re.compile(r"\d+\.\d+(\.\d+)?(-rc\d+)?")


class Description(Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """The content of series.toml."""

    description: str = ""
    tested_on: tuple[str, ...] = ()
    fragment: str = ""
    must_run: tuple[CasePattern, ...] = ()
    origin: Origin | None = None
    checkpatch: tuple[Argued, ...] = ()


def described(directory: Path, series: Series) -> Series:
    """The series with the content of series.toml, claims.toml and bench.toml. Raises UserError for a name that does not exist."""
    path = directory / NAME
    description, lines = read(path)
    _check(path, description, lines, series)
    claims, needed_by_claims = read_claims(directory / "claims.toml")
    measures, needed_by_measures = read_measures(directory / "bench.toml")
    return msgspec.structs.replace(
        series,
        description=description.description or series.description,
        tested_on=description.tested_on,
        fragment=directory / description.fragment if description.fragment else None,
        must_run=description.must_run,
        claims=claims,
        measures=measures,
        conditions=(*needed_by_claims, *needed_by_measures),
        written_after=description.origin,
        argued=description.checkpatch,
        home=directory,
    )


def read(path: Path) -> tuple[Description, Lines]:
    """The description and its lines; empty if there is no such file. Raises UserError, with the line, for an invalid file."""
    if not path.exists():
        return Description(), Lines("")
    return datafile.read(path, Description, _HINT)


def wrong(series: Series, *keys: str | int, message: str, hint: str) -> UserError:
    """The error to raise for the value at `keys` in the series' series.toml."""
    path = (series.home or Path()) / NAME
    return datafile.bad(path, read(path)[1].of(*keys), message, hint)


def _check(path: Path, description: Description, lines: Lines, series: Series) -> None:
    for number, version in enumerate(description.tested_on):
        if not _VERSION.fullmatch(version):
            line = lines.of("tested-on", number)
            raise datafile.bad(path, line, f"'{version}' is no version of the kernel", "such as 6.12.117")
    if description.fragment and not (path.parent / description.fragment).is_file():
        hint = "its path is relative to the series"
        raise datafile.bad(path, lines.of("fragment"), f"there is no fragment {description.fragment}", hint)
    for number, entry in enumerate(description.must_run):
        if not entry.reason.strip():
            line = lines.of("must-run", number)
            raise datafile.bad(path, line, f"must-run '{entry.case}' has no reason", "say what its skip would hide")
    names = [patch.name for patch in series.patches]
    for number, original in enumerate(description.origin.patches if description.origin else ()):
        for index in original.patches:
            if not any(name.startswith(f"{index}-") for name in names):
                line = lines.of("origin", "patch", number, "patches")
                hint = "patches = the numbers of this series' patches: NNNN"
                raise datafile.bad(
                    path, line, f"'{original.title}' refers to patch {index}, which the series does not have", hint
                )
    for number, argued in enumerate(description.checkpatch):
        if not fnmatch.filter(names, argued.patch):
            line = lines.of("checkpatch", number, "patch")
            hint = "patch = a glob over the names of this series' patches"
            raise datafile.bad(path, line, f"no patch of the series matches '{argued.patch}'", hint)
