"""Where a kernel source tree comes from: a spec, resolved to a commit in the cache's git store."""

from harness.tree.resolve import check_spec, default_spec, pinned, resolve, spec_for
from harness.tree.store import Store
from harness.tree.worktree import move, sources

__all__ = [
    "Store",
    "check_spec",
    "default_spec",
    "move",
    "pinned",
    "resolve",
    "sources",
    "spec_for",
]
