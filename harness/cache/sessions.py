"""What the processes that are running use of a cache, and what was last used when.

    sessions/<process>        names of what a process uses, a line each; locked as long as it runs
    builders/<process>        locked as long as a process builds
    used/<name>               when that was used last, in seconds since 1970

`locks/gate` is shared while a name is added to a session, and held alone while prune removes
something: so nothing is removed that a process has begun to use."""

from __future__ import annotations

import contextlib
import os
import tempfile
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path

from harness import process
from harness.cache import locks

GATE = "locks/gate"
_TURN = "locks/turn"
"""The lock for looking whether other processes build."""
_SESSIONS, _BUILDERS, _USED = "sessions", "builders", "used"
_LOOK_SECONDS = 0.2


def ignore(text: str) -> None:
    """Waits for a lock that is held for milliseconds are not worth a message."""


class Session:
    """What this process uses of the cache in the folder `root`, until nothing refers to it."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._name = f"{os.getpid()}-{os.urandom(4).hex()}"
        self._lock = threading.Lock()
        self._used: set[str] = set()
        self._builds: locks.Held | None = None
        with locks.wait(root / GATE, "", ignore, shared=True):
            held = locks.attempt(root / _SESSIONS / self._name)
        assert held, "its name is its own"
        self._path = root / _SESSIONS / self._name
        self._end = weakref.finalize(self, held.release)

    def use(self, name: str) -> None:
        """Keep prune from what has this name, which may be made later, and note when it is used.

        Call it before you look whether it is there."""
        with self._lock:
            if name in self._used:
                return
            with locks.wait(self._root / GATE, "", ignore, shared=True):
                with self._path.open("a") as file:
                    file.write(f"{name}\n")
                stamp(self._root, name)
            self._used.add(name)

    def build(self, alone: bool, say: Callable[[str], None]) -> None:
        """Count as a process that builds, until `built`; if `alone`, once no other one does."""
        with self._lock:
            said = False
            while self._builds is None:
                with locks.wait(self._root / _TURN, "", ignore):
                    others = list(_held(self._root / _BUILDERS)) if alone else []
                    if not others:
                        owner = f"process {os.getpid()}"
                        self._builds = locks.attempt(self._root / _BUILDERS / self._name, owner)
                        return
                if not said:
                    said = True
                    say(locks.owner_of(others[0]))
                process.check_stopped()
                time.sleep(_LOOK_SECONDS)

    def built(self) -> None:
        """Nothing is left to build."""
        # Without the lock: another thread may still be waiting for its turn, in vain.
        if self._builds:
            self._builds.release()
            self._builds = None


def used_now(root: Path) -> set[str]:
    """The names of what running processes use. `locks/gate` must be held alone."""
    alive = [path.read_text().splitlines() for path in _held(root / _SESSIONS)]
    return {name for names in alive for name in names}


def sweep(root: Path) -> None:
    """Remove what processes left behind that were killed."""
    for lock, folder in ((GATE, _SESSIONS), (_TURN, _BUILDERS)):
        if held := locks.attempt(root / lock):
            with held:
                list(_held(root / folder))


def stamp(root: Path, name: str) -> None:
    """Note that `name` is used now."""
    path = root / _USED / name
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, draft = tempfile.mkstemp(prefix=".", dir=path.parent)
    with os.fdopen(descriptor, "w") as file:
        file.write(f"{time.time():.3f}\n")
    Path(draft).rename(path)


def last_used(root: Path, name: str) -> float | None:
    """In seconds since 1970; None if that is not known."""
    with contextlib.suppress(OSError, ValueError):
        return float((root / _USED / name).read_text())
    return None


def forget(root: Path, name: str) -> None:
    """Remove the note of when `name` was used."""
    (root / _USED / name).unlink(missing_ok=True)


def _held(folder: Path) -> Iterator[Path]:
    """The locks of the folder that are held; the files of the others are removed."""
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        if locks.is_held(path):
            yield path
