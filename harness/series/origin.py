"""What became of the patches of the series that this one was written after: those said to be upstream are looked for in the
tree, not believed."""

from __future__ import annotations

from harness.errors import CommandFailed
from harness.model import Evidence, Origin
from harness.tree import Store


def unfounded(origin: Origin, store: Store, commit: str) -> list[str]:
    """Of the patches said to be upstream, those that `commit` does not bear out: the title and what was looked for."""
    upstream = [(patch.title, patch.upstream) for patch in origin.patches if patch.upstream]
    return [f"{title}: {wrong}" for title, evidence in upstream if (wrong := _contradicted(evidence, store, commit))]


def _contradicted(evidence: Evidence, store: Store, commit: str) -> str:
    try:
        text = store.read_file(commit, evidence.file)
    except CommandFailed:
        return f"the tree has no {evidence.file}"
    if evidence.has and evidence.has not in text:
        return f"{evidence.file} has no '{evidence.has}'"
    if evidence.lacks and evidence.lacks in text:
        return f"{evidence.file} has '{evidence.lacks}' still"
    return ""
