"""Write a newc cpio archive: the format of an initramfs (Documentation/driver-api/early-userspace/buffer-format.rst).

Owner, times and inode numbers are ours, not the files', so equal content gives equal bytes and nobody needs to be root."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import IO


class Writer:
    """Appends members to `file`; `close` ends the archive. Parent folders must be written before what is in them."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._inode = 0
        self._seen: set[str] = set()

    def directory(self, name: str) -> None:
        """A folder and those above it, unless they are there."""
        for parent in [*reversed(Path(name).parents), Path(name)]:
            if str(parent) not in (".", "") and str(parent) not in self._seen:
                self._member(str(parent), stat.S_IFDIR | 0o755, b"")

    def add(self, name: str, data: bytes, executable: bool = False) -> None:
        self.directory(str(Path(name).parent))
        self._member(name, stat.S_IFREG | (0o755 if executable else 0o644), data)

    def symlink(self, name: str, target: str) -> None:
        self.directory(str(Path(name).parent))
        self._member(name, stat.S_IFLNK | 0o777, target.encode())

    def tree(self, source: Path, name: str) -> None:
        """Everything below `source`, in sorted order, below `name`."""
        self.directory(name)
        for path in sorted(source.rglob("*")):
            inside = f"{name}/{path.relative_to(source)}"
            if path.is_symlink():
                self.symlink(inside, str(path.readlink()))
            elif path.is_dir():
                self.directory(inside)
            else:
                self.add(inside, path.read_bytes(), executable=bool(path.stat().st_mode & stat.S_IXUSR))

    def close(self) -> None:
        self._member("TRAILER!!!", 0, b"")

    def _member(self, name: str, mode: int, data: bytes) -> None:
        self._seen.add(name)
        self._inode += 1
        path = name.encode() + b"\0"
        links = 2 if stat.S_ISDIR(mode) else 1
        fields = (self._inode, mode, 0, 0, links, 0, len(data), 0, 0, 0, 0, len(path), 0)
        self._pad(b"070701" + b"".join(b"%08X" % field for field in fields) + path)
        self._pad(data)

    def _pad(self, data: bytes) -> None:
        self._file.write(data + bytes(-len(data) % 4))
