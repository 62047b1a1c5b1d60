"""What is in a cache: each thing that can be removed by itself, how big it is, and when it was used
last."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path

from msgspec import Struct

from harness.cache import STORE, Cache, locks, sessions
from harness.model import Kernel

SOURCE = "source"
"""The folder of a work tree's files, in work/<name>."""
_PARTIAL = ".part"
_BLOCK = 512
"""Bytes of what stat(2) counts as a block."""


class Kind(StrEnum):
    KERNEL = "kernels"
    INITRAMFS = "initramfs"
    BUILD = "build folders"
    SOURCES = "sources"
    DOWNLOAD = "downloads"
    RECORDS = "records"
    TEMPORARY = "temporary"
    OTHER = "other"


_KEPT = {
    Kind.RECORDS: ("records", "series", "b4", "used", "locks", "sessions", "builders"),
    Kind.TEMPORARY: ("scratch",),
}
"""Folders that are small, or that are removed by whoever made them."""


class Entry(Struct, frozen=True):
    """Something in the cache."""

    kind: Kind
    name: str
    """Its path, from the cache's folder."""
    size: int
    """Bytes on the disk."""
    last_used: float | None = None
    """In seconds since 1970; None for what is never pruned."""
    label: str = ""
    """What it is, if its name does not say so."""
    paths: tuple[Path, ...] = ()
    """All that belongs to it."""

    @property
    def order(self) -> tuple[float, int]:
        """What is pruned first. Builds need their sources, and sources need the git store."""
        last = self.kind is Kind.SOURCES
        return self.last_used or 0.0, last + (self.name == STORE)


def entries(cache: Cache) -> list[Entry]:
    """Everything in the cache."""
    if not cache.root.is_dir():
        return []
    found = [*_kernels(cache), *_initramfs(cache), *_downloads(cache)]
    trees = [entry for tree in _listed(cache.root / "work") for entry in _work_tree(cache, tree)]
    store = cache.root / STORE
    if store.is_dir():
        newest = max([entry.last_used or 0.0 for entry in trees], default=0.0)
        last_used = max(newest, _last_used(cache, STORE, store))
        paths = (store,)
        found.append(Entry(Kind.SOURCES, STORE, _size(paths), last_used, "all trees", paths))
    return [*found, *trees, *_rest(cache)]


def names_in_use(cache: Cache) -> set[str]:
    """The names of what running processes use or make. A cache that this process may not write, and
    so may not lock, has none."""
    if not os.access(cache.root, os.W_OK):
        return set()
    with cache.removing():
        used = sessions.used_now(cache.root)
    trees = [f"work/{path.name}" for path in _listed(cache.root / "work")]
    outputs = [str(path.relative_to(cache.root)) for path in (cache.root / "work").glob("*/*")]
    with cache.looking():
        held = {name for name in (*trees, *outputs) if locks.is_held(cache.lock_path(name))}
    return used | held | {f"{name}/{SOURCE}" for name in held}


def _kernels(cache: Cache) -> Iterator[Entry]:
    for path in _listed(cache.root / "kernels"):
        name = f"kernels/{path.name}"
        known = cache.read_record("kernels", path.name, Kernel)
        label = f"{known.arch} {known.release}" if known else ""
        last_used = _last_used(cache, name, path)
        yield Entry(Kind.KERNEL, name, _size((path,)), last_used, label, (path,))


def _initramfs(cache: Cache) -> Iterator[Entry]:
    for path in _listed(cache.root / "initramfs"):
        name = f"initramfs/{path.name}"
        last_used = _last_used(cache, name, path)
        yield Entry(Kind.INITRAMFS, name, _size((path,)), last_used, paths=(path,))


def _downloads(cache: Cache) -> Iterator[Entry]:
    parts: dict[str, list[Path]] = {}
    for path in _listed(cache.root / "downloads"):
        parts.setdefault(path.name.removesuffix(_PARTIAL), []).append(path)
    for name, paths in parts.items():
        used = _last_used(cache, f"downloads/{name}", paths[0])
        size = _size(paths)
        yield Entry(Kind.DOWNLOAD, f"downloads/{name}", size, used, paths=tuple(paths))


def _work_tree(cache: Cache, tree: Path) -> Iterator[Entry]:
    """The build directories beside a work tree, then the work tree with all else that is there."""
    content = _listed(tree)
    folders = [path for path in content if path.is_dir() and path.name != SOURCE]
    newest = 0.0
    for path in folders:
        if path.name.endswith("-modules"):
            continue
        own = [path, *(other for other in content if _belongs(other.name, path.name))]
        content = [other for other in content if other not in own]
        name = f"work/{tree.name}/{path.name}"
        last_used = _last_used(cache, name, path)
        newest = max(newest, last_used)
        yield Entry(Kind.BUILD, name, _size(own), last_used, paths=tuple(own))
    name = f"work/{tree.name}/{SOURCE}"
    last_used = max(newest, _last_used(cache, name, tree))
    yield Entry(Kind.SOURCES, name, _size(content), last_used, paths=(tree,))


def _belongs(name: str, output: str) -> bool:
    """True if the file or folder `name` is kept beside the build directory `output` for it."""
    return name.startswith(f"{output}.") or name == f"{output}-modules"


def _rest(cache: Cache) -> Iterator[Entry]:
    """What is not pruned."""
    known = {"kernels", "initramfs", "downloads", "work", STORE}
    for path in _listed(cache.root):
        if path.name not in known:
            kinds = (kind for kind, names in _KEPT.items() if path.name in names)
            yield Entry(next(kinds, Kind.OTHER), path.name, _size((path,)))


def _listed(folder: Path) -> list[Path]:
    return sorted(folder.iterdir()) if folder.is_dir() else []


def _last_used(cache: Cache, name: str, path: Path) -> float:
    """In seconds since 1970. An older harness noted no use: then it is when it was made."""
    noted = sessions.last_used(cache.root, name)
    if noted is None:
        with contextlib.suppress(FileNotFoundError):
            return path.stat(follow_symlinks=False).st_mtime
    return noted or 0.0


def _size(paths: tuple[Path, ...] | list[Path]) -> int:
    """The bytes on the disk of files, and of all that is below folders."""
    return sum(disk_size(path) for path in paths)


def disk_size(path: Path) -> int:
    """The bytes on the disk of a file, or of all that is below a folder. What vanishes meanwhile
    counts for nothing."""
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        own = path.stat(follow_symlinks=False)
        return own.st_blocks * _BLOCK + (_below(str(path)) if stat.S_ISDIR(own.st_mode) else 0)
    return 0


def _below(folder: str) -> int:
    total = 0
    with contextlib.suppress(FileNotFoundError), os.scandir(folder) as found:
        for entry in found:
            with contextlib.suppress(FileNotFoundError):
                total += entry.stat(follow_symlinks=False).st_blocks * _BLOCK
                if entry.is_dir(follow_symlinks=False):
                    total += _below(entry.path)
    return total


def shown(size: float) -> str:
    """A number of bytes, for people."""
    units = iter(("B", "KB", "MB", "GB", "TB"))
    unit = next(units)
    while size >= 1000 and unit != "TB":
        size, unit = size / 1024, next(units)
    return f"{size:.0f} {unit}" if unit == "B" or size >= 100 else f"{size:.1f} {unit}"
