"""What is to be known of a series before anything is built: patch by patch, on one tree."""

from __future__ import annotations

from msgspec import Struct

from harness.cache import Cache
from harness.model import PatchState, Series, Tree
from harness.series.apply import apply
from harness.series.checkpatch import Remark, remarks, unargued
from harness.series.conditions import unmet
from harness.series.origin import unfounded
from harness.tree import Store

COMMON = "all"
"""In place of an architecture: what is below arch/ is for one, the rest for all of them."""


class Checked(Struct, frozen=True):
    """One patch."""

    patch: str
    subject: str
    state: PatchState
    commit: str
    detail: str
    files: tuple[str, ...]
    archs: tuple[str, ...]
    """Folders of arch/, or COMMON."""
    checkpatch: list[Remark] | None
    """None if the tree has no checkpatch."""


class Verdict(Struct, frozen=True):
    patches: tuple[Checked, ...]
    complaints: tuple[str, ...]
    """What is wrong with the series as a whole."""
    remarks: tuple[str, ...]
    """What is just worth knowing."""

    @property
    def good(self) -> bool:
        return not self.complaints and all(one.state.good for one in self.patches)


def check(series: Series, tree: Tree, cache: Cache) -> Verdict:
    store = Store(cache)
    said = remarks(series, store, tree.commit, cache)
    patches = tuple(
        Checked(
            patch=patch.name,
            subject=patch.subject,
            state=result.state,
            commit=result.commit,
            detail=result.detail,
            files=patch.files,
            archs=_archs(patch.files),
            checkpatch=None if said is None else [one for one in said if one.patch == patch.name],
        )
        for patch, result in zip(series.patches, apply(series, tree, cache).results, strict=True)
    )
    unanswered = ["the tree has none"] if said is None else list(unargued(said, series.argued))
    told = tuple(f"checkpatch: {one}" for one in unanswered)
    missing = unfounded(series.written_after, store, tree.commit) if series.written_after else []
    complaints = tuple(f"not upstream in this tree, as series.toml has it: {title}" for title in missing)
    if all(one.state.good for one in patches):
        wrong = unmet(series.conditions, store, tree.commit, series.patches)
        complaints += tuple(f"{one.where}: no Kconfig file of this tree or of the series defines {one.symbol}" for one in wrong)
    return Verdict(patches, complaints + told, ()) if series.argued else Verdict(patches, complaints, told)


def _archs(files: tuple[str, ...]) -> tuple[str, ...]:
    parts = [file.split("/") for file in files]
    return tuple(sorted({part[1] if part[0] == "arch" and len(part) > 2 else COMMON for part in parts}))
