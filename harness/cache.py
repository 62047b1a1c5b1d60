"""The cache: everything that can be made again, each thing under the digest of what it was made from.

    linux.git/             every imported tree and applied series, as commits
    downloads/             verified tarballs and packages
    work/<name>/           git work trees, and the build directories beside them
    kernels/<digest>/      finished kernels
    initramfs/<digest>     finished initial root file systems
    records/<kind>/<key>   small JSON values: which commit a tree spec became, how a series applied

A thing that is there is complete: it is made under another name and renamed."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol, TypeVar

import filelock
import msgspec
import psutil

from harness.errors import UserError
from harness.model import from_json, to_json

T = TypeVar("T")


class Shared(Protocol):
    """What other machines have built, and what they are given."""

    ccache: Path | None
    """A folder for what ccache shares."""

    def fetch(self, kind: str, digest: str, into: Path) -> bool:
        """Fill the folder `into`, if somebody has made it."""

    def store(self, kind: str, digest: str, folder: Path) -> None:
        """Give others what is in `folder`, unless they have it."""

    def reject(self, kind: str, digest: str) -> None:
        """Mark a fetched artefact as damaged, so that the next `store` replaces it."""


def digest_of(*parts: str | bytes) -> str:
    """sha256 over the parts, each with its length, so that no two lists of parts run together."""
    whole = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        whole.update(len(data).to_bytes(8, "big") + data)
    return whole.hexdigest()


def file_digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


_NOT_FOR_MAKE = re.compile(r"[^\w/.+@=-]")
"""Characters that separate words or options in the makefiles of the kernel, or in its compilers' options (-Wp,-MMD,PATH)."""


class Cache:
    def __init__(self, root: Path, wait: bool = False) -> None:
        """`wait` for the lock if another process has it. Raises UserError if make cannot build below `root`."""
        self.root = root.resolve()
        if wrong := _NOT_FOR_MAKE.search(str(self.root)):
            raise UserError(
                f"no kernel can be built in {self.root}: make gives '{wrong[0]}' in a path another meaning",
                hint="name a folder whose path has letters, digits and ._+@=- only: --cache or HARNESS_CACHE",
            )
        self.shared: Shared | None = None
        self._wait = wait

    def directory(self, name: str) -> Path:
        path = self.root / name
        path.mkdir(parents=True, exist_ok=True)
        return path

    @contextlib.contextmanager
    def lock(self) -> Iterator[Callable[[], None]]:
        """Be the only one who builds in the cache, for the length of the block or until what it yields is called: who only reads
        what is finished needs no lock. The system frees the lock of a process that is gone, however it went.

        Raises UserError if another process has it and we do not wait."""
        try:
            self.root.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UserError(f"no cache at {self.root}: {error.strerror}", hint="--cache DIR") from error
        owner = self.root / "owner"
        lock = filelock.FileLock(self.root / "lock", thread_local=False)
        try:
            lock.acquire(timeout=-1 if self._wait else 0)
        except filelock.Timeout:
            who = owner.read_text().strip() if owner.exists() else "unknown"
            raise UserError(
                f"another run (process {who}) is building in the cache {self.root}",
                hint="wait for it to be done with that (--wait), or give this run a cache of its own: --cache DIR",
            ) from None
        except OSError as error:
            raise UserError(f"cannot write to the cache {self.root}: {error.strerror}", hint="--cache DIR") from error
        try:
            owner.write_text(f"{os.getpid()}\n")
            for path in self.directory("scratch").iterdir():
                process = path.name.partition("-")[0]
                if not (process.isdecimal() and psutil.pid_exists(int(process))):  # of a run that was killed
                    shutil.rmtree(path, ignore_errors=True)
            yield lock.release
        finally:
            lock.release()

    @contextlib.contextmanager
    def scratch(self) -> Iterator[Path]:
        """A folder on the cache's file system, gone after the block."""
        path = Path(tempfile.mkdtemp(prefix=f"{os.getpid()}-", dir=self.directory("scratch")))
        try:
            yield path
        finally:
            shutil.rmtree(path, ignore_errors=True)

    @contextlib.contextmanager
    def publish(self, path: Path) -> Iterator[Path]:
        """A folder to fill, which becomes `path` when the block ends well and vanishes when it does not."""
        with self.scratch() as parent:
            draft = parent / path.name
            draft.mkdir()
            yield draft
            if path.exists():
                shutil.rmtree(path)
            path.parent.mkdir(parents=True, exist_ok=True)
            draft.rename(path)

    def read_record(self, kind: str, key: str, type: type[T]) -> T | None:
        """The value recorded under `key`, or None if there is none or an older harness wrote it in another shape."""
        try:
            return from_json((self.root / "records" / kind / key).read_bytes(), type)
        except (FileNotFoundError, msgspec.DecodeError):
            return None

    def write_record(self, kind: str, key: str, value: object) -> None:
        path = self.directory(f"records/{kind}") / key
        draft = path.with_suffix(f".{os.getpid()}-{threading.get_ident()}")
        draft.write_bytes(to_json(value))
        draft.rename(path)
