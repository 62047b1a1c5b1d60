"""The files that patches were made from. A 3-way merge wants them, and who has only the patches has not got them."""

from __future__ import annotations

import re
from pathlib import Path

from harness import process
from harness.errors import InfrastructureError
from harness.model import AppliedSeries, PatchState, Series
from harness.series import quilt
from harness.tree import Store

FOLDER = "preimages"
"""In a series' directory."""
_INDEX = re.compile(r"^index (?P<before>[0-9a-f]{7,})\.\.", re.MULTILINE)


def write(series: Series, applied: AppliedSeries, store: Store, directory: Path) -> None:
    """Those that were merged, into the series' `directory`."""
    merged = [result.patch for result in applied.results if result.state is PatchState.FUZZY]
    patches = [patch for patch in series.patches if patch.name in merged]
    blobs = {name for one in quilt.commits(patches) for name in _INDEX.findall(one.diff)}
    for blob in sorted(blobs):
        # Whoever has not got it finds out when it is wanted.
        if store.git("cat-file", "-e", blob, check=False).returncode == 0:
            (directory / FOLDER).mkdir(exist_ok=True)
            argv: list[str | Path] = ["git", "-C", store.path, "cat-file", "blob", blob]
            with (directory / FOLDER / blob).open("wb") as file, process.start(argv, stdout=file) as child:
                if child.wait():
                    raise InfrastructureError(f"git cannot read {blob} in {store.path}")


def read(directory: Path, store: Store) -> None:
    """Into the store."""
    if files := sorted((directory / FOLDER).glob("*")):
        store.git("hash-object", "-w", "--no-filters", *files)
