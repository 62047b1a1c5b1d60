"""Remove from a cache what was not used for longest, and never what a process uses or makes."""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from collections.abc import Iterable

from msgspec import Struct

from harness.cache import STORE, Cache, contents, locks, sessions
from harness.cache.contents import SOURCE, Entry, Kind
from harness.errors import UserError

_MARKS = ("records", "used")
"""Folders that every run makes in its cache."""
_RECORDED = (Kind.KERNEL, Kind.INITRAMFS)
"""Kinds whose records have the same names below records/."""


class Pruned(Struct, frozen=True):
    """What came of it."""

    removed: tuple[Entry, ...]
    in_use: tuple[Entry, ...]
    """What would have been removed, but is in use."""
    size: int
    """Bytes of the cache before."""

    @property
    def freed(self) -> int:
        return sum(entry.size for entry in self.removed)


def prune(
    cache: Cache,
    keep_seconds: float | None,
    max_size: int | None,
    dry_run: bool = False,
) -> Pruned:
    """Remove what was not used for `keep_seconds`, then what was not used for longest until the
    cache has `max_size` bytes. With `dry_run`, only say what that would be.

    Raises UserError for a folder that is no cache: its `work` and `downloads` may be anything."""
    if cache.root.is_dir() and not any((cache.root / name).is_dir() for name in _MARKS):
        hint = "--cache DIR, or HARNESS_CACHE, names a folder that `harness run` has used"
        raise UserError(f"{cache.root} is no cache of the harness", hint=hint)
    if not dry_run and cache.root.is_dir() and not os.access(cache.root, os.W_OK):
        raise UserError(f"cannot write to the cache {cache.root}", hint="--cache DIR")
    started = time.time()
    found = contents.entries(cache)
    size = left = sum(entry.size for entry in found)
    oldest = started - keep_seconds if keep_seconds is not None else 0.0
    busy = contents.names_in_use(cache)
    removed: list[Entry] = []
    in_use: list[Entry] = []
    for entry in sorted((one for one in found if one.last_used is not None), key=_order):
        too_old = keep_seconds is not None and (entry.last_used or 0.0) < oldest
        too_much = max_size is not None and left > max_size
        if not (too_old or too_much):
            continue
        if entry.name in busy or _is_needed(entry, found, removed):
            in_use.append(entry)
        elif dry_run or _remove(entry, cache, started):
            removed.append(entry)
            left -= entry.size
        else:
            in_use.append(entry)
    return Pruned(tuple(removed), tuple(in_use), size)


def _order(entry: Entry) -> tuple[float, int]:
    return entry.order


def _is_needed(entry: Entry, found: Iterable[Entry], removed: Iterable[Entry]) -> bool:
    """True if something that was not removed is of no use without the entry: a build directory
    without its work tree, a work tree without the git store."""
    gone = {other.name for other in removed}
    if entry.name == STORE:
        needing = [other.name for other in found if other.name.endswith(f"/{SOURCE}")]
    elif entry.name.endswith(f"/{SOURCE}"):
        tree = entry.name.removesuffix(SOURCE)
        needing = [other.name for other in found if other.name.startswith(tree)]
    else:
        needing = []
    return any(name not in gone and name != entry.name for name in needing)


def _remove(entry: Entry, cache: Cache, looked: float) -> bool:
    """False if it is in use, or was since it was `looked` at."""
    with cache.scratch() as trash:
        with contextlib.ExitStack() as held:
            if not _reserve(entry, cache, held):
                return False
            if (sessions.last_used(cache.root, entry.name) or 0.0) > looked:
                return False
            if entry.kind in _RECORDED:
                (cache.root / "records" / entry.name).unlink(missing_ok=True)
            # That takes a moment. What takes longer is done when nothing is locked any more.
            for number, path in enumerate(entry.paths):
                with contextlib.suppress(FileNotFoundError):
                    path.rename(trash / str(number))
            sessions.forget(cache.root, entry.name)
        for path in trash.iterdir():
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink()
    return True


def _reserve(entry: Entry, cache: Cache, held: contextlib.ExitStack) -> bool:
    """Keep other processes from the entry until `held` ends. False if one uses it, or makes it."""
    if not entry.name.startswith("work/"):
        held.enter_context(cache.removing())
        if entry.name in sessions.used_now(cache.root):
            return False
        return _lock(entry.name, cache, held)
    held.enter_context(cache.looking())
    tree = entry.name.rpartition("/")[0]
    if entry.kind is Kind.BUILD:
        # Other kernels may be built from the work tree, but it must not be moved.
        return _lock(tree, cache, held, shared=True) and _lock(entry.name, cache, held)
    return _lock(tree, cache, held)


def _lock(name: str, cache: Cache, held: contextlib.ExitStack, *, shared: bool = False) -> bool:
    lock = locks.attempt(cache.lock_path(name), "harness cache prune", shared=shared)
    if lock:
        held.enter_context(lock)
    return lock is not None
