"""Kernels that are finished: ours, and those of others."""

from __future__ import annotations

import contextlib
from contextlib import AbstractContextManager
from pathlib import Path

import msgspec

from harness.cache import Cache, Shared, file_digest
from harness.kernel import identity
from harness.model import Kernel, from_json, to_json

_KIND = "kernels"
_RECORD = "kernel.json"


def find(home: Path, cache: Cache) -> tuple[Kernel | None, str]:
    """The kernel in the folder `home`, whose name is the digest. None if it is not there, or if its
    image and modules cannot be proved to be those that were built, with the reason."""
    cache.session.use(f"{_KIND}/{home.name}")
    known = cache.read_record(_KIND, home.name, Kernel)
    if known is None or known.directory != home:
        return None, ""
    if why := _unproved(known, home.name, cache):
        return None, why
    _share(known, cache)
    return known, ""


def fetch(home: Path, cache: Cache) -> Kernel | None:
    """The kernel from the shared cache, if it has one that can be proved; it is in `home` then."""
    if cache.shared is None:
        return None
    with making(home.name, "fetching a kernel from the shared cache", cache):
        found, _ = find(home, cache)  # another process may have fetched it, or built it
        if found is None and (found := _fetched(home, cache, cache.shared)):
            cache.write_record(_KIND, home.name, found)
        return found


def making(digest: str, what: str, cache: Cache) -> AbstractContextManager[None]:
    """Be the only one who makes the kernel `digest`."""
    return cache.making(f"{_KIND}/{digest}", what)


def keep(kernel: Kernel, cache: Cache) -> None:
    """For us, and for others, unless they have it."""
    cache.session.use(f"{_KIND}/{kernel.digest}")
    cache.write_record(_KIND, kernel.digest, kernel)
    _share(kernel, cache)


def _unproved(kernel: Kernel, digest: str, cache: Cache) -> str:
    """The reason why the kernel is not proved to be the one that was built for `digest`; empty if it is proved."""
    # If a build read files that the digest leaves out, its kernel is kept under another digest, and is not found under this one.
    if kernel.digest != digest:
        return f"it was built for {kernel.digest}"
    try:
        if file_digest(kernel.config) != kernel.config_digest:
            return "its .config is not the one that it was built with"
        identity.check(kernel, cache)
    except identity.NotProved as error:
        return error.message
    except OSError as error:
        return str(error)
    return ""


def _share(kernel: Kernel, cache: Cache) -> None:
    if cache.shared is not None:
        with cache.scratch() as scratch:
            (scratch / _RECORD).write_bytes(to_json(kernel))
            # By renaming: other processes may be sharing it as well.
            (scratch / _RECORD).rename(kernel.directory / _RECORD)
        cache.shared.store(_KIND, kernel.digest, kernel.directory)


class _NobodyHasIt(Exception):
    pass


def _fetched(home: Path, cache: Cache, shared: Shared) -> Kernel | None:
    with contextlib.suppress(_NobodyHasIt, FileNotFoundError, msgspec.DecodeError), cache.publish(home) as draft:
        if not shared.fetch(_KIND, home.name, draft):
            raise _NobodyHasIt
        found = from_json((draft / _RECORD).read_bytes(), Kernel)
        # Its paths are those of the machine that built it.
        paths = {name: value for name, value in msgspec.structs.asdict(found).items() if isinstance(value, Path)}
        drafted = {name: draft / path.relative_to(found.directory) for name, path in paths.items()}
        if _unproved(msgspec.structs.replace(found, **drafted), home.name, cache):
            shared.reject(_KIND, home.name)
            raise _NobodyHasIt
        moved = {name: home / path.relative_to(found.directory) for name, path in paths.items()}
        return msgspec.structs.replace(found, **moved)
    return None
