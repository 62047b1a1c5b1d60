"""Locks on files, between processes and between threads: flock(2). The system frees the locks of a
process that is gone, however it ended."""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
import weakref
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

from harness import process

_SHORTEST, _LONGEST = 0.01, 0.5
"""Seconds between two attempts."""


class Held:
    """A lock that is held until `release`, or until nothing refers to it any more."""

    def __init__(self, path: Path, descriptor: int, alone: bool) -> None:
        self._path = path
        self._descriptor = descriptor
        self._alone = alone
        self._close = weakref.finalize(self, os.close, descriptor)

    def __enter__(self) -> Held:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.release()

    def release(self) -> None:
        """Free the lock. Its file is removed if nothing else can have it locked."""
        if self._close.alive and self._alone:
            self._path.unlink(missing_ok=True)
        self._close()

    def share(self) -> bool:
        """Let others share the lock from now on. flock(2) does not convert a lock in one step:
        another process may have had it alone in between, or has it now, and then it is lost."""
        self._alone = False
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            self.release()
            return False
        return True


def attempt(path: Path, owner: str = "", *, shared: bool = False) -> Held | None:
    """The lock on the file `path`, or None if it is not free. `owner` says in the file who has it;
    only a lock that is not `shared` has an owner. Raises OSError if it cannot be created."""
    path.parent.mkdir(parents=True, exist_ok=True)
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return None
        if _is_file(descriptor, path):
            break
        # Its last owner has removed the file: a lock on that one would exclude no one.
        os.close(descriptor)
    held = Held(path, descriptor, alone=not shared)
    if not shared:
        with contextlib.suppress(OSError):  # a full disk: it is locked all the same
            os.truncate(descriptor, 0)
            os.write(descriptor, owner.encode())
    return held


def wait(path: Path, owner: str, say: Callable[[str], None], *, shared: bool = False) -> Held:
    """The lock on the file `path`, as soon as it is free. `say` is called once, with its owner, if
    it is not. Raises process.Stopped after `process.stop`."""
    held, pause, silent = attempt(path, owner, shared=shared), _SHORTEST, True
    while held is None:
        process.check_stopped()
        time.sleep(pause)
        pause = min(2 * pause, _LONGEST)
        held = attempt(path, owner, shared=shared)
        if held is None and silent and pause == _LONGEST:  # what takes no time is not worth a line
            silent = False
            say(owner_of(path))
    return held


def owner_of(path: Path) -> str:
    """What the owner of the lock wrote; empty if there is none."""
    with contextlib.suppress(FileNotFoundError):
        return path.read_text(errors="replace").strip()
    return ""


def is_held(path: Path) -> bool:
    """True if a process or a thread holds the lock. Otherwise its file is removed."""
    held = attempt(path, owner_of(path))
    if held is None:
        return True
    held.release()
    return False


def _is_file(descriptor: int, path: Path) -> bool:
    """True if the open file is still the one that `path` names."""
    with contextlib.suppress(FileNotFoundError):
        return os.path.samestat(os.fstat(descriptor), path.stat())
    return False
