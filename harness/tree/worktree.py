"""The work trees that kernels are built from.

A work tree lies in work/<name>/source, the build directories of its kernels beside it. Builds of
the same commit share one; a build of another commit at the same time takes another one, up to
`_MOST`. The lock of work/<name> is shared by all who build from it, and held alone by the one who
moves it to another commit; work/<name>/commit says to which."""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec import Struct

from harness import process
from harness.cache import STORE, Cache, locks, sessions
from harness.tree.store import IDENTITY, Store

_MOST = 4
"""Work trees for builds. Each takes about 1.7 GB, and 1 to 1.5 GB for each of its kernels."""
_NAMES = ("build", *(f"build-{number}" for number in range(2, _MOST + 1)))
_MOVING = "moving to "
_LOOK_SECONDS = 0.2


class _WorkTree(Struct, frozen=True):
    """A work tree for builds."""

    cache: Cache
    name: str

    @property
    def folder(self) -> Path:
        return self.cache.root / "work" / self.name

    @property
    def lock(self) -> Path:
        return self.cache.lock_path(f"work/{self.name}")

    @property
    def state(self) -> str:
        """The commit that it is at, or `_MOVING` and the commit; empty if that is not known."""
        with contextlib.suppress(FileNotFoundError):
            return (self.folder / "commit").read_text()
        return ""

    def note(self, state: str) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / "commit").write_text(state)


@contextlib.contextmanager
def sources(store: Store, commit: str) -> Iterator[Path]:
    """A work tree that builds share; it stays at `commit` until the block ends. They leave it as it
    is."""
    tree, held = _taken(store, commit)
    with held:
        sessions.stamp(store.cache.root, f"work/{tree.name}/source")
        yield tree.folder / "source"


def _taken(store: Store, commit: str) -> tuple[_WorkTree, locks.Held]:
    """A work tree at `commit`, and its lock, which is shared."""
    silent = True
    while True:
        process.check_stopped()
        with store.cache.looking():
            tree, held = _chosen(store.cache, commit)
        if tree and held:
            if tree.state == commit or _moved(store, tree, held, commit):
                return tree, held
            continue
        if tree is None and silent:
            silent = False
            store.cache.say(f"waiting for a work tree: {_MOST} are in use at other commits")
        time.sleep(_LOOK_SECONDS)


def _chosen(cache: Cache, commit: str) -> tuple[_WorkTree | None, locks.Held | None]:
    """A work tree and its lock: shared if it is in use at `commit`; alone if it is not in use, and
    then it is to be moved. Without the lock, another process is moving it to `commit`; without a
    work tree, all are in use at other commits."""
    trees = [_WorkTree(cache, name) for name in _NAMES]
    free: list[tuple[_WorkTree, locks.Held]] = []
    for tree in trees:
        if held := locks.attempt(tree.lock):
            free.append((tree, held))
        elif tree.state in (commit, _MOVING + commit):
            _release(free)
            # It cannot be shared before it has arrived.
            return tree, locks.attempt(tree.lock, shared=True)
    # One that is there already comes before one that would have to be made.
    free.sort(key=lambda one: (one[0].state != commit, not (one[0].folder / "source").exists()))
    if not free:
        return None, None
    _release(free[1:])
    free[0][0].note(_MOVING + commit)
    return free[0]


def _release(free: Sequence[tuple[_WorkTree, locks.Held]]) -> None:
    for _, held in free:
        held.release()


def _moved(store: Store, tree: _WorkTree, held: locks.Held, commit: str) -> bool:
    """Move the work tree to `commit` and share its lock. False if another process has it by now."""
    try:
        move(store, tree.name, commit)
        tree.note(commit)
    except BaseException:
        held.release()
        raise
    if held.share() and tree.state == commit:
        return True
    held.release()
    return False


def move(store: Store, name: str, commit: str) -> Path:
    """The work tree work/<name>/source at `commit`, as it was committed; its lock must be held.

    Only the files that differ are written. They get a newer time than any file in the build
    directories beside it, so that make compiles each of them again."""
    path = store.cache.root / "work" / name / "source"
    repository = _repository(path)
    if repository is None:
        return _make(store, path, commit)
    # What a git that was killed left behind: no other one works here.
    for lock in repository.glob("*.lock"):
        lock.unlink()
    process.run(["git", "-C", path, "am", "--abort"], env=IDENTITY, check=False)
    names = ("diff", "--name-only", "-z")
    changed = _listed(path, *names, "HEAD", commit) + _listed(path, *names)
    newest = _newest(path.parent) if changed else 0
    # Before it moves: whatever ends us then, nothing of it is left.
    _forget_hidden(path, changed, commit)
    _checkout(path, commit)
    stamp = time.time_ns()
    if newest >= stamp:
        # The clock was set back: new objects would be older than those in the build directories,
        # so make would be misled.
        _forget_builds(path.parent)
    # Set the times explicitly: the file system's clock has a resolution of milliseconds, and make
    # regards an object that is as old as its source as up to date.
    for changed_name in changed:
        with contextlib.suppress(FileNotFoundError):
            os.utime(path / changed_name, ns=(stamp, stamp), follow_symlinks=False)
    return path


def _repository(path: Path) -> Path | None:
    """Where git keeps the index of the work tree `path`. None if it is no work tree, or if its
    store is gone."""
    with contextlib.suppress(FileNotFoundError):
        found = Path((path / ".git").read_text().removeprefix("gitdir: ").strip())
        return found if found.is_dir() else None
    return None


def _make(store: Store, path: Path, commit: str) -> Path:
    """Make the work tree `path` anew. What is built beside it was built from another one."""
    if path.parent.is_dir():
        shutil.rmtree(path, ignore_errors=True)
        _forget_builds(path.parent)
    path.parent.mkdir(parents=True, exist_ok=True)
    # Git's list of work trees is one for all of them, so it is not held while files are written.
    with store.cache.making(f"{STORE}/worktrees", "making a work tree"):
        store.git("worktree", "prune")
        words = ("worktree", "add", "--quiet", "--force", "--detach", "--no-checkout")
        store.git(*words, path, commit)
    _checkout(path, commit)
    return path


def _checkout(path: Path, commit: str) -> None:
    words = ("checkout", "--quiet", "--force", "--detach", commit)
    process.run(["git", "-C", path, *words], env=IDENTITY)
    process.run(["git", "-C", path, "clean", "--quiet", "-ffdx"])


def _forget_builds(folder: Path) -> None:
    """Remove the build directories in `folder`, which lie beside its work tree."""
    for output in folder.iterdir():
        if output.name != "source" and output.is_dir():
            shutil.rmtree(output)


def _newest(folder: Path) -> int:
    """The newest time, in nanoseconds, of a file in the build directories of `folder`, which lie
    beside its work tree."""
    outputs = [path for path in folder.iterdir() if path.name != "source" and path.is_dir()]
    files = (file for output in outputs for file in _files(output))
    return max((file.stat(follow_symlinks=False).st_mtime_ns for file in files), default=0)


def _files(folder: Path) -> Iterator[os.DirEntry[str]]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                yield from _files(Path(entry.path))
            else:
                yield entry


def _listed(path: Path, *arguments: str) -> list[str]:
    output = process.run(["git", "-C", path, *arguments], env=IDENTITY).stdout
    return [name for name in output.split("\0") if name]


def _forget_hidden(path: Path, changed: Sequence[str], commit: str) -> None:
    """Remove the build directories beside the work tree `path` in which make would miss a change on
    the way to `commit`.

    It follows a symbolic link, to a file that is as old as ever. And a file that an earlier build
    made hides a source of its name, for a build directory comes first in kbuild's VPATH
    (scripts/remove-stale-files in the kernel knows a few of them)."""
    if not changed:
        return
    links = {*_links(path, "HEAD"), *_links(path, commit)}
    words = ("diff", "--name-only", "--no-renames", "--diff-filter=AT", "-z")
    added = _listed(path, *words, "HEAD", commit)
    for output in path.parent.iterdir():
        hidden = any(os.path.lexists(output / name) for name in added)
        if output != path and output.is_dir() and (hidden or links.intersection(changed)):
            shutil.rmtree(output)


def _links(path: Path, commit: str) -> list[str]:
    """The symbolic links of a commit, as paths."""
    entries = (entry.partition("\t") for entry in _listed(path, "ls-tree", "-r", "-z", commit))
    return [name for mode, _, name in entries if mode.startswith("120000 ")]
