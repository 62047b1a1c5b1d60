"""Read a series: a directory with a quilt `series` file, patches in `git am` form, and maybe `series.toml` and `claims.toml`."""

from __future__ import annotations

import email
import email.policy
from pathlib import Path, PurePosixPath

import msgspec
from msgspec import Struct
from unidiff.errors import UnidiffParseError
from unidiff.patch import PatchSet

from harness import paths
from harness.cache import digest_of
from harness.errors import UserError
from harness.model import Argued, CasePattern, Origin, Patch, Series
from harness.series.claims import read_claims, read_measures

NONE = Series(name="none", origin="", digest=digest_of("none"))
"""No patches: the tree as it is."""


class _Description(Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """series.toml."""

    description: str = ""
    tested_on: tuple[str, ...] = ()
    fragment: str = ""
    must_run: tuple[CasePattern, ...] = ()
    origin: Origin | None = None
    checkpatch: tuple[Argued, ...] = ()


def bundled() -> list[str]:
    """The names of the series that come with the harness."""
    return sorted(path.parent.name for path in paths.PATCHES.glob("*/series"))


def load(spec: str) -> Series:
    """The series that `spec` names: `none`, a bundled one, or a directory. Raises UserError if it is not whole."""
    if spec == "none":
        return NONE
    directory = paths.PATCHES / spec if spec in bundled() else Path(spec).resolve()
    if not directory.is_dir():
        raise UserError(f"unknown series '{spec}'", hint=f"a directory, none, or one of {', '.join(bundled())}")
    patches = tuple(_read_patch(directory, name) for name in _listed(directory))
    description = _describe(directory / "series.toml")
    fragment = directory / description.fragment if description.fragment else None
    if fragment is not None and not fragment.is_file():
        raise UserError(
            f"{directory.name}/series.toml names the fragment {fragment.name}, which is not there",
            hint="its path is relative to the series",
        )
    for original in description.origin.patches if description.origin else ():
        for number in original.patches:
            if not any(patch.name.startswith(f"{number}-") for patch in patches):
                raise UserError(
                    f"{directory.name}/series.toml: '{original.title}' is said to be in {number}, which is not there",
                    hint="patches = the numbers of this series' patches: NNNN",
                )
    return Series(
        name=directory.name,
        origin=str(directory),
        digest=digest_of(*(part for patch in patches for part in (patch.name, patch.path.read_bytes()))),
        patches=patches,
        description=description.description,
        tested_on=description.tested_on,
        fragment=fragment,
        must_run=description.must_run,
        claims=read_claims(directory / "claims.toml"),
        measures=read_measures(directory / "bench.toml"),
        written_after=description.origin,
        argued=description.checkpatch,
    )


def _listed(directory: Path) -> list[str]:
    """The names in a quilt series file, in order."""
    path = directory / "series"
    if not path.is_file():
        raise UserError(f"{directory} holds no series file", hint="one patch name a line, in the order to apply them")
    names: list[str] = []
    for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
        words = line.split("#", 1)[0].split()
        if not words:
            continue
        if words[1:] not in ([], ["-p1"]):
            raise UserError(f"{path}:{number}: '{' '.join(words[1:])}'", hint="only -p1 patches can be applied with git am")
        if words[0] in names:
            raise UserError(f"{path}:{number}: {words[0]} is listed twice", hint="a patch can be applied once only")
        names.append(words[0])
    if not names:
        raise UserError(f"{path} lists no patch", hint="use --series none to test the tree as it is")
    return names


def _read_patch(directory: Path, name: str) -> Patch:
    path = directory / name
    if not path.is_file():
        raise UserError(
            f"{directory.name}: the series lists {name}, which is not there", hint="add the file or take its line out"
        )
    data = path.read_bytes()
    message = email.message_from_bytes(data, policy=email.policy.default)
    subject = " ".join(str(message.get("Subject", "")).split())
    try:
        changes = PatchSet(data.decode("utf-8", errors="replace"))
    except UnidiffParseError as error:
        raise UserError(f"{directory.name}/{name} is damaged: {error}", hint="write it again with git format-patch") from None
    if not changes or not subject:
        raise UserError(
            f"{directory.name}/{name} is no patch in git am form",
            hint="a mail with a Subject and a diff, as git format-patch writes it",
        )
    for file in changes:
        if PurePosixPath(file.path).is_absolute() or ".." in PurePosixPath(file.path).parts:
            raise UserError(f"{directory.name}/{name} touches '{file.path}', outside the tree", hint="paths as a/... and b/...")
    return Patch(name=name, path=path, subject=subject, files=tuple(file.path for file in changes))


def _describe(path: Path) -> _Description:
    try:
        return msgspec.toml.decode(path.read_bytes(), type=_Description)
    except FileNotFoundError:
        return _Description()
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: {error}", hint="see patches/fprobe-on-fgraph/series.toml") from None
