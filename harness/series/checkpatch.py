"""What the tree's own scripts/checkpatch.pl has to say of a series, and what the series says to that in series.toml."""

from __future__ import annotations

import contextlib
import fnmatch
import re
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from msgspec import Struct

from harness import process
from harness.cache import Cache
from harness.errors import CommandFailed, InfrastructureError
from harness.model import Argued, Patch, Series
from harness.tree import Store

_SCRIPT = "scripts/checkpatch.pl"
_LISTS = ("scripts/spelling.txt", "scripts/const_structs.checkpatch")
_OPTIONS = ("--strict", "--show-types", "--terse", "--no-summary", "--no-tree", "--color=never")
_REMARK = re.compile(r"^.+?:(\d+): [A-Z]+:([A-Z0-9_]+): (.*)$", re.MULTILINE)


class Remark(Struct, frozen=True):
    patch: str
    line: int
    """Of the patch's file."""
    type: str
    text: str

    def __str__(self) -> str:
        return f"{self.patch}:{self.line}: {self.type}: {self.text}"


def remarks(series: Series, store: Store, commit: str, cache: Cache) -> list[Remark] | None:
    """In the order of the patches; None if the tree of `commit` has no checkpatch. Commits that a message names are not looked
    up.

    Raises InfrastructureError if it does not run."""
    with cache.scratch() as scratch:
        try:
            (scratch / "checkpatch.pl").write_text(store.read_file(commit, _SCRIPT))
        except CommandFailed:
            return None
        for path in _LISTS:
            with contextlib.suppress(CommandFailed):
                (scratch / path.rpartition("/")[2]).write_text(store.read_file(commit, path))

        def ask(patch: Patch) -> list[Remark]:
            # It obeys, and writes, files of the folder that it is called in and of the user's home.
            home = scratch / "of" / patch.name
            home.mkdir(parents=True)
            argv: list[str | Path] = ["perl", scratch / "checkpatch.pl", *_OPTIONS, patch.path]
            answer = process.run(argv, cwd=home, env={"HOME": str(home)}, check=False, confined=(home,))
            said = [Remark(patch.name, int(line), kind, text) for line, kind, text in _REMARK.findall(answer.stdout)]
            if bool(answer.returncode) != bool(said):
                why = answer.stdout.strip().splitlines()
                raise InfrastructureError(f"checkpatch failed on {patch.name}", hint=why[-1] if why else "it said nothing")
            return said

        with ThreadPoolExecutor() as pool:
            return [remark for found in pool.map(ask, series.patches) for remark in found]


def unargued(said: Iterable[Remark], argued: Iterable[Argued]) -> Iterator[str]:
    """The remarks that the series does not answer, and its answers to what nobody says."""
    said, argued = list(said), list(argued)

    def answers(entry: Argued, remark: Remark) -> bool:
        return entry.type == remark.type and fnmatch.fnmatchcase(remark.patch, entry.patch)

    for remark in said:
        if not any(answers(entry, remark) for entry in argued):
            yield str(remark)
    for entry in argued:
        if not any(answers(entry, remark) for remark in said):
            yield f"{entry.patch}: {entry.type} is argued in series.toml, but checkpatch does not say it"
