"""Folders as files that travel: zip, for what unpacks it puts nothing outside of its folder, whatever the names in it."""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import IO

_QUICK = 1
"""Of zlib's levels: kernels are large, and the network is no slower than the better ones."""


def pack(folder: Path, into: Path | IO[bytes], parts: Sequence[str] = ("",)) -> None:
    """All files below `parts` of `folder`; they need not exist."""
    with zipfile.ZipFile(into, "w", zipfile.ZIP_DEFLATED, compresslevel=_QUICK, strict_timestamps=False) as archive:
        for file in sorted(file for part in parts for file in (folder / part).rglob("*")):
            if file.is_file():
                archive.write(file, file.relative_to(folder))


def unpack(packed: Path | IO[bytes], folder: Path, prefixes: Sequence[str] = ("",)) -> None:
    """What is below one of the `prefixes`."""
    with zipfile.ZipFile(packed) as archive:
        archive.extractall(folder, [name for name in archive.namelist() if name.startswith(tuple(prefixes))])
