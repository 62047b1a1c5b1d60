"""The run directory: `<out>/<stamp>-<series>/`, and `<out>/latest` pointing at the newest."""

from __future__ import annotations

import contextlib
import datetime
import os
from pathlib import Path
from typing import Any

import msgspec

from harness.errors import InfrastructureError


def create(out: Path, series: str) -> Path:
    """Make a new run directory and point `latest` at it. Raises InfrastructureError if the disk does not let us."""
    stamp = datetime.datetime.now().strftime("%Y%m%d-%H%M%S")
    try:
        out.mkdir(parents=True, exist_ok=True)
        names = (f"{stamp}-{series}" + (f"-{number}" if number > 1 else "") for number in range(1, 1000))
        directory = next(path for name in names if _make(path := out.resolve() / name))
        link = out / f".latest-{os.getpid()}"
        link.symlink_to(directory.name)
        link.rename(out / "latest")
    except OSError as error:
        raise InfrastructureError(f"cannot make a run directory in {out}: {error.strerror}", hint="--out DIR") from error
    return directory


def _make(path: Path) -> bool:
    try:
        path.mkdir()
    except FileExistsError:
        return False
    return True


def replace(path: Path, data: bytes) -> None:
    """Write it whole: it is never half a file."""
    draft = path.with_name(f".{path.name}")
    draft.write_bytes(data)
    draft.rename(path)


def write_manifest(directory: Path, manifest: dict[str, Any]) -> None:
    """run.toml: everything needed to repeat the run."""
    replace(directory / "run.toml", msgspec.toml.encode(manifest, enc_hook=str))


def read_manifest(directory: Path) -> dict[str, Any]:
    """Empty if there is none that can be read."""
    with contextlib.suppress(OSError, msgspec.DecodeError, UnicodeDecodeError):
        return msgspec.toml.decode((directory / "run.toml").read_bytes(), type=dict[str, Any])
    return {}
