"""The cache: everything that can be made again, each thing under the digest of its inputs.

    linux.git/             every imported tree and applied series, as commits
    downloads/             verified tarballs and packages
    work/<name>/           git work trees, and the build directories beside them
    kernels/<digest>/      finished kernels
    initramfs/<digest>     finished initial root file systems
    records/<kind>/<key>   small JSON values: which commit a tree spec became, how a series applied
    locks/                 a lock for each thing that is being made, and for each build directory
    sessions/ builders/ used/   what is in use, and since when what is not (sessions.py)

A thing that is there is complete: it is made under another name and renamed. So whoever only reads
waits for no lock."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import logging
import os
import re
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol, TypeVar

import msgspec

from harness.cache import locks, sessions
from harness.errors import InfrastructureError, UserError
from harness.model import from_json, to_json

T = TypeVar("T")

log = logging.getLogger(__name__)

STORE = "linux.git"
"""The folder of the git store."""
_SCRATCH = "locks/scratch"


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
"""Characters that separate words or options in the makefiles of the kernel, or in its compilers'
options (-Wp,-MMD,PATH)."""


class Cache:
    def __init__(self, root: Path, wait: bool = False) -> None:
        """With `wait`, nothing is built while another process builds in the cache. Raises UserError
        if make cannot build below `root`."""
        self.root = root.resolve()
        if wrong := _NOT_FOR_MAKE.search(str(self.root)):
            raise UserError(
                f"no kernel can be built in {self.root}: make gives '{wrong[0]}' in a path another meaning",
                hint="name a folder whose path has letters, digits and ._+@=- only: --cache or HARNESS_CACHE",
            )
        self.shared: Shared | None = None
        self.say: Callable[[str], None] = log.warning
        """Called with what is waited for, if that takes more than a moment."""
        self._wait = wait
        self._lock = threading.Lock()
        self._session: sessions.Session | None = None

    def directory(self, name: str) -> Path:
        path = self.root / name
        path.mkdir(parents=True, exist_ok=True)
        return path

    @property
    def session(self) -> sessions.Session:
        """What this process uses, which prune leaves alone. Raises UserError if the cache cannot be
        written."""
        with self._lock:
            if self._session is None:
                try:
                    self._session = sessions.Session(self.root)
                except OSError as error:
                    full = error.errno in (errno.ENOSPC, errno.EDQUOT)
                    kind = InfrastructureError if full else UserError
                    message = f"cannot write to the cache {self.root}: {error.strerror}"
                    raise kind(message, hint="--cache DIR") from error
            return self._session

    @contextlib.contextmanager
    def opened(self) -> Iterator[Callable[[], None]]:
        """Use the cache for a run. What is yielded is to be called when nothing is left to build.
        Raises UserError if the cache cannot be written."""
        session = self.session
        sessions.sweep(self.root)
        self._sweep_scratch()
        try:
            yield session.built
        finally:
            session.built()

    def start_building(self) -> None:
        """Call it before anything is built. With `wait`, it returns once no other one builds."""
        self.session.build(self._wait, self._say_turn)

    def _say_turn(self, owner: str) -> None:
        self.say(f"waiting until {owner} has built its kernels (--wait)")

    def lock_path(self, name: str) -> Path:
        """The file of the lock of what has this name."""
        return self.root / "locks" / name.replace("/", "-")

    @contextlib.contextmanager
    def making(self, name: str, what: str) -> Iterator[None]:
        """Be the only one who makes `name`, for the length of the block. Whoever is waiting for it
        is told `what` goes on; so it may be there when the block begins."""
        owner = f"process {os.getpid()}: {what}"
        with locks.wait(self.lock_path(name), owner, self._say_waiting):
            yield

    @contextlib.contextmanager
    def looking(self) -> Iterator[None]:
        """Look which work trees are in use. No other process does so in the meantime."""
        with locks.wait(self.lock_path("work"), "", sessions.ignore):
            yield

    @contextlib.contextmanager
    def removing(self) -> Iterator[None]:
        """Look what is in use, and remove other things. No process begins to use one meanwhile."""
        with locks.wait(self.root / sessions.GATE, "", sessions.ignore):
            yield

    def _say_waiting(self, owner: str) -> None:
        self.say(f"waiting for {owner}")

    @contextlib.contextmanager
    def scratch(self) -> Iterator[Path]:
        """A folder on the cache's file system, gone after the block."""
        folder = self.directory("scratch")
        with locks.wait(self.root / _SCRATCH, "", sessions.ignore):
            path = Path(tempfile.mkdtemp(prefix=f"{os.getpid()}-", dir=folder))
            held = locks.attempt(path.with_name(f".{path.name}"))
        assert held, "its name is its own"
        try:
            with held:
                yield path
        finally:
            shutil.rmtree(path, ignore_errors=True)

    def _sweep_scratch(self) -> None:
        """Remove the scratch folders of processes that were killed."""
        with locks.wait(self.root / _SCRATCH, "", sessions.ignore):
            folders = [path for path in self.directory("scratch").iterdir() if path.is_dir()]
            dead = [path for path in folders if not locks.is_held(path.with_name(f".{path.name}"))]
        for path in dead:
            shutil.rmtree(path, ignore_errors=True)

    @contextlib.contextmanager
    def publish(self, path: Path) -> Iterator[Path]:
        """A folder to fill, which becomes `path` when the block ends well and vanishes when it does
        not."""
        with self.scratch() as parent:
            draft = parent / path.name
            draft.mkdir()
            yield draft
            path.parent.mkdir(parents=True, exist_ok=True)
            if path.exists():
                # Aside, and not removed in place: whoever reads it must not see a part of it.
                path.rename(parent / f"{path.name}.old")
            draft.rename(path)

    def read_record(self, kind: str, key: str, type: type[T]) -> T | None:
        """The value recorded under `key`. None if there is none, or if an older harness wrote it in
        another shape."""
        try:
            return from_json((self.root / "records" / kind / key).read_bytes(), type)
        except (FileNotFoundError, msgspec.DecodeError):
            return None

    def write_record(self, kind: str, key: str, value: object) -> None:
        path = self.directory(f"records/{kind}") / key
        draft = path.with_suffix(f".{os.getpid()}-{threading.get_ident()}")
        draft.write_bytes(to_json(value))
        draft.rename(path)
