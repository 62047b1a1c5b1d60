"""Apply a series to a tree, one commit a patch."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

import msgspec

from harness import process
from harness.cache import Cache, digest_of, sessions
from harness.errors import CommandFailed, UserError
from harness.model import AppliedSeries, Patch, PatchResult, PatchState, Series, Tree
from harness.series import preimages, quick, quilt
from harness.series.commit import Commit
from harness.tree import Store, worktree
from harness.tree.store import IDENTITY

_RECIPE = "3"
"""Part of every key: raise it when a change here says something else of the same series."""

_FAILED_HUNK = re.compile(r"^error: patch failed: (?P<file>.+):(?P<line>\d+)$", re.MULTILINE)
_OTHER_REASON = re.compile(
    r"^(?:error: (?P<file>[^:\n]+): (?P<why>does not exist in index|already exists in index|does not match index)"
    r"|CONFLICT \((?P<kind>[^)]*)\): .*?(?P<path>\S+\.\S+|\S+)$)",
    re.MULTILINE,
)
_FORBIDDEN = re.compile(
    r"^error: (?:invalid path '(?P<path>.*)'|affected file '(?P<beyond>.*)' is beyond a symbolic link)$", re.MULTILINE
)


_UNWRITABLE = "error: unable to write file"


def apply(series: Series, tree: Tree, cache: Cache) -> AppliedSeries:
    """Apply every patch up to the first that does not. The same series on the same tree is applied once; its commits stay in
    the store. A conflict is a result, not an error."""
    key = digest_of(_RECIPE, tree.commit, series.digest)[:16]
    known = _known(key, cache) or _applied(series, tree, cache, key)
    # The same patches may have had other names.
    named = zip(known.results, series.patches, strict=True)
    return msgspec.structs.replace(known, results=tuple(msgspec.structs.replace(one, patch=own.name) for one, own in named))


def _known(key: str, cache: Cache) -> AppliedSeries | None:
    known = cache.read_record("applied", key, AppliedSeries)
    return known if known and Store(cache).has(known.tip) else None


def _applied(series: Series, tree: Tree, cache: Cache, key: str) -> AppliedSeries:
    if not series.patches:
        return AppliedSeries(base=tree.commit, results=())
    # There is one work tree for it, and one reference for each base (quick.py).
    with cache.making("work/apply", f"applying the series {series.name}"):
        if known := _known(key, cache):
            return known
        made = AppliedSeries(tree.commit, tuple(_apply(series, tree, Store(cache), key)))
        cache.write_record("applied", key, made)
        return made


def _apply(series: Series, tree: Tree, store: Store, key: str) -> list[PatchResult]:
    commits = quilt.commits(series.patches)
    done = quick.apply(commits, tree.commit, store)
    results = [
        PatchResult(patch.name, patch.subject, PatchState.APPLIED, commit=made)
        for patch, made in zip(series.patches, done, strict=False)
    ]
    tip = done[-1] if done else tree.commit
    rest = list(zip(series.patches, commits, strict=True))[len(done) :]
    if rest:
        _fetch_base(series, tree, store)
        source = worktree.move(store, "apply", tip)
        sessions.stamp(store.cache.root, "work/apply/source")
    for patch, one in rest:
        if failed := next((one for one in results if not one.state.good), None):
            why = f"{failed.patch} does not apply"
            results.append(PatchResult(patch.name, patch.subject, PatchState.NOT_TRIED, detail=why))
            continue
        results.append(_apply_one(patch, one, source, tip, store.path))
        tip = results[-1].commit or tip
    store.git("update-ref", f"refs/harness/applied/{key}", tip)
    return results


def _fetch_base(series: Series, tree: Tree, store: Store) -> None:
    """A 3-way merge wants the files that the patches were made from: they are in the commit that the series is based on."""
    if series.home:
        preimages.read(series.home, store)
    kind, _, rest = tree.spec.partition(":")
    repositories = [series.repository, rest.partition("#")[0] if kind == "git" else ""]
    if series.base_commit and not store.has(series.base_commit):
        for repository in filter(None, repositories):
            try:
                store.fetch(repository, series.base, f"bases/{series.base}")
                return
            except (UserError, CommandFailed):
                continue


def _apply_one(patch: Patch, one: Commit, source: Path, tip: str, store: Path) -> PatchResult:
    git: list[str | Path] = ["git", "-C", source, "apply", "--whitespace=nowarn"]
    said = ""
    with tempfile.TemporaryDirectory(prefix="harness-") as folder:
        diff = Path(folder) / "diff"
        diff.write_bytes(one.diff.encode("utf-8", "surrogateescape"))
        for state, how in ((PatchState.APPLIED, "--index"), (PatchState.FUZZY, "--3way")):
            answer = process.run([*git, how, diff], env=IDENTITY, check=False, confined=(source, store))
            if answer.returncode == 0:
                made = quick.write(source, IDENTITY, quick.message_of(one), one, tip)
                changed = process.run(["git", "-C", source, "diff", "--quiet", tip, made], env=IDENTITY, check=False).returncode
                if not changed:  # a 3-way merge finds every change in the tree already
                    return PatchResult(patch.name, patch.subject, PatchState.UPSTREAM, commit=tip)
                process.run(["git", "-C", source, "reset", "--quiet", "--hard", made], env=IDENTITY, confined=(source, store))
                return PatchResult(patch.name, patch.subject, state, commit=made)
            said += answer.stdout
            process.run(["git", "-C", source, "reset", "--quiet", "--hard", tip], env=IDENTITY, confined=(source, store))
        if match := _FORBIDDEN.search(said):
            path = match["path"] or match["beyond"]
            return PatchResult(patch.name, patch.subject, PatchState.FORBIDDEN, detail=f"'{path}' is outside of the tree")
        reverse = process.run([*git, "--check", "--reverse", diff], env=IDENTITY, check=False, confined=(source, store))
    # git would take a folder for a new file that is there already.
    if reverse.returncode == 0 and _UNWRITABLE not in said:
        return PatchResult(patch.name, patch.subject, PatchState.UPSTREAM, commit=tip)
    return PatchResult(patch.name, patch.subject, PatchState.CONFLICT, detail=_conflict(said))


def _conflict(output: str) -> str:
    """The files and hunks that git named."""
    lines = [f"{match['file']}: the hunk at line {match['line']} does not apply" for match in _FAILED_HUNK.finditer(output)]
    for match in _OTHER_REASON.finditer(output):
        lines.append(f"{match['file']}: {match['why']}" if match["file"] else f"{match['path']}: conflict ({match['kind']})")
    return "\n".join(dict.fromkeys(lines)) or output.strip()
