"""Patches, and what a series says of itself."""

from __future__ import annotations

import re
from enum import StrEnum
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct


class PatchState(StrEnum):
    APPLIED = "applied"
    FUZZY = "fuzzy"
    """Applied by a 3-way merge: what is around the change is not what it was when the patch was made."""
    UPSTREAM = "upstream"
    """Its change is in the tree already."""
    CONFLICT = "conflict"
    FORBIDDEN = "forbidden"
    """It touches what is not in the tree."""
    NOT_TRIED = "not tried"
    """An earlier patch of the series did not apply."""

    @property
    def good(self) -> bool:
        return self in (PatchState.APPLIED, PatchState.FUZZY, PatchState.UPSTREAM)


class Patch(Struct, frozen=True):
    """One mail of a series: a file in `git am` form."""

    name: str
    path: Path
    subject: str
    files: tuple[str, ...]


class CasePattern(Struct, frozen=True, forbid_unknown_fields=True):
    """Cases by `suite:glob`, on some architectures (all if none is named), and why they are listed."""

    case: str
    reason: str
    arch: tuple[str, ...] = ()


class Claim(Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """Something that a series says it changes, or keeps: one value, seen in a guest, before and after."""

    case: str
    """A number and a short name."""
    says: str
    """The claim, in a line."""
    script: str
    """For the guest's shell. It prints one line `value: ...` and ends with status 0."""
    patched: str
    base: str = ""
    not_on_base: str = ""
    """Why it is not tried without the series, in place of `base`: what the base does could not be told from a failure."""
    base_on: dict[str, str] = {}
    """Architectures whose base shows another value than `base`."""
    patched_on: dict[str, str] = {}
    """Likewise for `patched`."""
    needs: tuple[str, ...] = ()
    """Symbols without which the value is ABSENT."""
    seconds: float = 60.0
    """The deadline of its script."""

    def on_base(self, arch: str) -> str:
        return self.base_on.get(arch, self.base)

    def on_patched(self, arch: str) -> str:
        return self.patched_on.get(arch, self.patched)


Setting = Literal["y", "m", "n"]
"""The value of a symbol in a configuration; `n` if it is not set."""


class Measure(Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """A cost of a series: one number, measured in a guest, with limits on both sides for each architecture."""

    case: str
    says: str
    """What is measured, in a line."""
    script: str
    """As a claim's; its value is a number."""
    unit: str = "instructions"
    at_least: dict[str, float] = {}
    """The lower limit for each architecture. With the series, a lower value is red: a probe that never fires is cheap."""
    at_most: dict[str, float] = {}
    """The upper limit for the same architectures. With the series, a higher value is red."""
    limits_for: dict[str, Setting] = {}
    """Symbols, and the setting of each that the limits were measured with. With another setting the limits do not hold."""
    limits_on: dict[str, dict[str, Setting]] = {}
    """Architectures whose limits were measured with other settings of these symbols."""
    may_be_zero: bool = False
    """Zero is a plausible value. Without this, zero is red; a negative value always is."""
    needs: tuple[str, ...] = ()
    """Symbols without which there is nothing to measure."""
    seconds: float = 60.0
    """The deadline of its script."""

    def settings(self, arch: str) -> dict[str, Setting]:
        """The settings that the limits of the architecture were measured with."""
        return self.limits_for | self.limits_on.get(arch, {})


class Condition(Struct, frozen=True):
    """A configuration symbol on which a claim or a measure depends, and the line that names it. If no Kconfig file defined
    the symbol, the condition would silently switch the case off."""

    symbol: str
    suite: str
    """The suite whose cases depend on it."""
    where: str
    """The file and the line, as `claims.toml:12`."""


ABSENT = "absent"
"""What a claim shows on a kernel that lacks what it needs."""


class Evidence(Struct, frozen=True, forbid_unknown_fields=True):
    """A piece of text that a file of the tree has, or lacks, if a change is in it already."""

    file: str
    has: str = ""
    lacks: str = ""

    def __post_init__(self) -> None:
        if bool(self.has) == bool(self.lacks):
            raise ValueError(f"evidence in {self.file} needs one of `has` and `lacks`")


class OriginalPatch(Struct, frozen=True, forbid_unknown_fields=True):
    """What became of a patch of the original: it is upstream, or patches of ours do the same, or `reason` says why neither."""

    title: str
    upstream: Evidence | None = None
    patches: tuple[str, ...] = ()
    """Their numbers: NNNN."""
    reason: str = ""

    def __post_init__(self) -> None:
        if self.upstream and self.patches:
            raise ValueError(f"'{self.title}' is either upstream or in this series")
        if not (self.upstream or self.patches or self.reason):
            raise ValueError(f"'{self.title}' is neither upstream nor in this series: give the reason")


class Origin(Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """The series that another was written after."""

    title: str
    message_id: str = ""
    base: str = ""
    patches: tuple[OriginalPatch, ...] = msgspec.field(name="patch", default=())


class Argued(Struct, frozen=True, forbid_unknown_fields=True):
    """Why checkpatch's remarks of a `type` stand, in the patches that a glob names."""

    type: str
    reason: str
    patch: str = "*"

    def __post_init__(self) -> None:
        if not self.reason.strip():
            raise ValueError(f"checkpatch's {self.type} is argued without a reason")


class Series(Struct, frozen=True):
    """Patches in order. `digest` covers their order and content, nothing else."""

    name: str
    origin: str
    digest: str
    patches: tuple[Patch, ...] = ()
    description: str = ""
    tested_on: tuple[str, ...] = ()
    fragment: Path | None = None
    """Symbols that the series must bring; merged at every point, so that kernels compare, and proved where the series is in."""
    must_run: tuple[CasePattern, ...] = ()
    claims: tuple[Claim, ...] = ()
    measures: tuple[Measure, ...] = ()
    conditions: tuple[Condition, ...] = ()
    """Symbols that claims and measures depend on: each must exist in the tree (harness/series/conditions.py)."""
    written_after: Origin | None = None
    base: str = ""
    """What it was written for, if it says so: a commit, or words."""
    home: Path | None = None
    """The directory that has what stands beside the patches, wherever those come from."""
    repository: str = ""
    """The git repository that it comes from, which may have the blobs that a 3-way merge wants."""
    notes: tuple[str, ...] = ()
    """How it was come by: what was left out, who signed it."""
    argued: tuple[Argued, ...] = ()
    """A series that argues with checkpatch has nothing to hide from it: what is not argued is an error."""

    @property
    def facts(self) -> list[str]:
        """What is to be known of where it comes from, for people."""
        return [*([f"base: {self.base}"] if self.base else []), *self.notes]

    @property
    def base_commit(self) -> str:
        """`base`, if it is a commit."""
        return self.base if re.fullmatch(r"[0-9a-f]{12,64}", self.base) else ""
