"""Apply a series to a tree with `git am --3way`, one commit a patch."""

from __future__ import annotations

import re
from pathlib import Path

from harness import process
from harness.cache import Cache, digest_of
from harness.model import AppliedSeries, Patch, PatchResult, PatchState, Series, Tree
from harness.tree import Store
from harness.tree.store import IDENTITY

_FAILED_HUNK = re.compile(r"^error: patch failed: (?P<file>.+):(?P<line>\d+)$", re.MULTILINE)
_OTHER_REASON = re.compile(
    r"^(?:error: (?P<file>[^:\n]+): (?P<why>does not exist in index|already exists in index|does not match index)"
    r"|CONFLICT \((?P<kind>[^)]*)\): .*?(?P<path>\S+\.\S+|\S+)$)",
    re.MULTILINE,
)


def apply(series: Series, tree: Tree, cache: Cache) -> AppliedSeries:
    """Apply every patch up to the first conflict. The same series on the same tree is applied once; its commits stay in
    the store. A conflict is a result, not an error."""
    key = digest_of(tree.commit, series.digest)[:16]
    store = Store(cache)
    known = cache.read_record("applied", key, AppliedSeries)
    if known is not None and store.has(known.tip):
        return known
    results: list[PatchResult] = []
    if series.patches:
        source = store.work_tree("apply", tree.commit)
        tip = tree.commit
        for patch in series.patches:
            if results and results[-1].state in (PatchState.CONFLICT, PatchState.NOT_TRIED):
                results.append(PatchResult(patch.name, patch.subject, PatchState.NOT_TRIED))
                continue
            results.append(_apply_one(patch, source, tip, store.path))
            tip = results[-1].commit or tip
        store.git("update-ref", f"refs/harness/applied/{key}", tip)
    applied = AppliedSeries(base=tree.commit, results=tuple(results))
    cache.write_record("applied", key, applied)
    return applied


def _apply_one(patch: Patch, source: Path, tip: str, store: Path) -> PatchResult:
    git: list[str | Path] = ["git", "-C", source]
    answer = process.run(
        [*git, "am", "--3way", "--quiet", "--committer-date-is-author-date", patch.path],
        env=IDENTITY,
        check=False,
        confined=(source, store),
    )
    if answer.returncode == 0:
        head = process.run([*git, "rev-parse", "HEAD"]).stdout.strip()
        # git am succeeds without a commit when the 3-way merge finds every change in the tree already.
        state = PatchState.APPLIED if head != tip else PatchState.UPSTREAM
        return PatchResult(patch.name, patch.subject, state, commit=head)
    process.run([*git, "am", "--abort"], env=IDENTITY, check=False, confined=(source, store))
    process.run([*git, "reset", "--quiet", "--hard", tip], env=IDENTITY, confined=(source, store))
    reverse = process.run([*git, "apply", "--check", "--reverse", patch.path], check=False, confined=(source, store))
    if reverse.returncode == 0:
        return PatchResult(patch.name, patch.subject, PatchState.UPSTREAM, commit=tip)
    # git am with --3way names hunks only if it has the blobs that the patch was made from; a plain try always does.
    hunks = process.run([*git, "apply", "--check", patch.path], check=False, confined=(source, store)).stdout
    return PatchResult(patch.name, patch.subject, PatchState.CONFLICT, detail=_conflict(hunks + answer.stdout))


def _conflict(output: str) -> str:
    """The files and hunks that git am named."""
    lines = [f"{match['file']}: the hunk at line {match['line']} does not apply" for match in _FAILED_HUNK.finditer(output)]
    for match in _OTHER_REASON.finditer(output):
        lines.append(f"{match['file']}: {match['why']}" if match["file"] else f"{match['path']}: conflict ({match['kind']})")
    return "\n".join(dict.fromkeys(lines)) or output.strip()
