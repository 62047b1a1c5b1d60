"""A folder that machines share: on a network file system, or of several workers of one machine."""

from __future__ import annotations

import os
import secrets
import shutil
from pathlib import Path


class Folder:
    def __init__(self, folder: Path) -> None:
        self.folder: Path | None = folder
        self._root = folder

    def read(self, name: str) -> bytes | None:
        try:
            return (self._root / name).read_bytes()
        except FileNotFoundError:
            return None

    def get(self, name: str, into: Path) -> bool:
        try:
            shutil.copyfile(self._root / name, into)
        except FileNotFoundError:
            return False
        return True

    def put(self, source: Path, name: str) -> None:
        path = self._root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_name(f".{path.name}.{os.getpid()}-{secrets.token_hex(4)}")
        try:
            shutil.copyfile(source, draft)
            draft.rename(path)
        finally:
            draft.unlink(missing_ok=True)
