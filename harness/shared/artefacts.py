"""Artefacts by the digest of what they were made from. Each name says which file holds it, by the digest of that file's content:
so nothing that was damaged on its way, or where it lay, is taken for what it should be."""

from __future__ import annotations

import contextlib
import re
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol

from harness import archive
from harness.cache import Cache, file_digest
from harness.errors import InfrastructureError
from harness.shared.folder import Folder
from harness.shared.spec import folder_of

_FILES = "files"


class Depot(Protocol):
    """Files by name. Everything but `folder` raises OSError or InfrastructureError if it cannot be reached."""

    folder: Path | None
    """If it is one of this machine's."""

    def read(self, name: str) -> bytes | None:
        """A small file, or None if there is none of that name."""

    def get(self, name: str, into: Path) -> bool:
        """Whether it is there."""

    def put(self, source: Path, name: str) -> None:
        """Whole, or not at all."""


class Artefacts:
    """Nobody's work depends on it: what cannot be had is said, once, and made here."""

    def __init__(self, depot: Depot, cache: Cache, say: Callable[[str], None]) -> None:
        self._cache = cache
        self._depot: Depot | None = depot
        self._say = say
        self._lock = threading.Lock()
        self._damaged: set[str] = set()
        self.ccache = depot.folder / "ccache" if depot.folder else None
        """A folder for what ccache shares."""

    def fetch(self, kind: str, digest: str, into: Path) -> bool:
        """Fill the folder `into`, if somebody has made it."""
        with self._reached() as depot, self._cache.scratch() as scratch:
            if depot is None or not (named := depot.read(f"{kind}/{digest}")):
                return False
            content, packed = named.decode(errors="replace").strip(), scratch / "packed"
            good = re.fullmatch("[0-9a-f]{64}", content)
            if good and not depot.get(f"{_FILES}/{content}", packed):
                self._damaged.add(digest)  # tidied away
                return False
            if not good or file_digest(packed) != content:
                self.reject(kind, digest)
                return False
            archive.unpack(packed, into)
            return True
        return False

    def reject(self, kind: str, digest: str) -> None:
        """Mark a fetched artefact as damaged, so that the next `store` replaces it."""
        self._damaged.add(digest)
        self._say(f"shared cache: {kind}/{digest} is damaged, and made again")

    def store(self, kind: str, digest: str, folder: Path) -> None:
        """Give others what is in `folder`, unless they have it."""
        with self._reached() as depot, self._cache.scratch() as scratch:
            if depot is None or (digest not in self._damaged and depot.read(f"{kind}/{digest}")):
                return
            packed = scratch / "packed"
            archive.pack(folder, packed)
            content = file_digest(packed)
            depot.put(packed, f"{_FILES}/{content}")
            packed.write_text(f"{content}\n")
            depot.put(packed, f"{kind}/{digest}")

    @contextlib.contextmanager
    def _reached(self) -> Iterator[Depot | None]:
        """None once it could not be reached: nobody waits for it again and again."""
        with self._lock:
            try:
                yield self._depot
            except (OSError, InfrastructureError) as error:
                self._depot = None
                self._say(f"shared cache: {error}; going on without it")


@contextlib.contextmanager
def opened(spec: str, cache: Cache, say: Callable[[str], None]) -> Iterator[Artefacts | None]:
    """`spec` is a folder, or sftp://[USER@]HOST[:PORT]/FOLDER; None without one."""
    if not spec:
        yield None
    elif folder := folder_of(spec):
        yield Artefacts(Folder(folder), cache, say)
    else:
        # What it needs takes a while to import.
        from harness.shared.sftp import Sftp

        with contextlib.closing(Sftp(spec)) as depot:
            yield Artefacts(depot, cache, say)
