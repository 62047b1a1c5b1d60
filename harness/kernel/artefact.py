"""Kernels that are finished: ours, and those of others."""

from __future__ import annotations

import contextlib
from pathlib import Path

import msgspec

from harness.cache import Cache, file_digest
from harness.kernel import identity
from harness.model import Kernel, from_json, to_json

_KIND = "kernels"
_RECORD = "kernel.json"


def find(home: Path, cache: Cache) -> tuple[Kernel | None, str]:
    """The kernel in the folder `home`, whose name is the digest; if it is missing or rejected, the shared cache's copy. None if
    no kernel's image and modules can be proved to be those that were built, with the reason why the local one was rejected."""
    known = cache.read_record(_KIND, home.name, Kernel)
    why = ""
    if known is not None and known.directory == home:
        why = _unproved(known, home.name, cache)
        if not why:
            _share(known, cache)
            return known, ""
    fetched = _fetched(home, cache)
    if fetched is not None:
        cache.write_record(_KIND, home.name, fetched)
    return fetched, why


def keep(kernel: Kernel, cache: Cache) -> None:
    """For us, and for others, unless they have it."""
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
        (kernel.directory / _RECORD).write_bytes(to_json(kernel))
        cache.shared.store(_KIND, kernel.digest, kernel.directory)


class _NobodyHasIt(Exception):
    pass


def _fetched(home: Path, cache: Cache) -> Kernel | None:
    if cache.shared is None:
        return None
    with contextlib.suppress(_NobodyHasIt, FileNotFoundError, msgspec.DecodeError), cache.publish(home) as draft:
        if not cache.shared.fetch(_KIND, home.name, draft):
            raise _NobodyHasIt
        found = from_json((draft / _RECORD).read_bytes(), Kernel)
        # Its paths are those of the machine that built it.
        paths = {name: value for name, value in msgspec.structs.asdict(found).items() if isinstance(value, Path)}
        drafted = {name: draft / path.relative_to(found.directory) for name, path in paths.items()}
        if _unproved(msgspec.structs.replace(found, **drafted), home.name, cache):
            cache.shared.reject(_KIND, home.name)
            raise _NobodyHasIt
        moved = {name: home / path.relative_to(found.directory) for name, path in paths.items()}
        return msgspec.structs.replace(found, **moved)
    return None
