"""Fetch a file over HTTP: resumed after a break, and never used before its sum is known to be right."""

from __future__ import annotations

import hashlib
import shutil
import urllib.error
import urllib.request
from pathlib import Path

from harness.errors import InfrastructureError

_CHUNK = 1 << 20
_TIMEOUT = 60.0


def read(url: str) -> bytes:
    """A small file's content. Raises InfrastructureError."""
    try:
        with urllib.request.urlopen(url, timeout=_TIMEOUT) as answer:
            return bytes(answer.read())
    except (urllib.error.URLError, OSError) as error:
        raise _unreachable(url, error) from error


def download(url: str, path: Path, sha256: str | None) -> None:
    """Fetch `url` into `path`. What an earlier try left in `<path>.part` is continued. Raises InfrastructureError if the
    server cannot be reached or the content does not have the sum; then nothing is left behind."""
    part = path.with_name(path.name + ".part")
    done = part.stat().st_size if part.exists() else 0
    request = urllib.request.Request(url, headers={"Range": f"bytes={done}-"} if done else {})
    try:
        with urllib.request.urlopen(request, timeout=_TIMEOUT) as answer:
            resumed = done > 0 and answer.status == 206
            with part.open("ab" if resumed else "wb") as file:
                shutil.copyfileobj(answer, file, _CHUNK)
    except urllib.error.HTTPError as error:
        # 416: the part is the whole already (the sum below decides), or is longer than the file ever was.
        if error.code != 416:
            raise _unreachable(url, error) from error
    except (urllib.error.URLError, OSError) as error:
        raise _unreachable(url, error) from error
    with part.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if sha256 is not None and found != sha256:
        part.unlink()
        raise InfrastructureError(f"{url}: sha256 is {found}, not {sha256}", hint="run again to fetch it afresh")
    part.rename(path)


def _unreachable(url: str, error: Exception) -> InfrastructureError:
    return InfrastructureError(f"{url}: {error}", hint="without a network, use --tree tarball:PATH or --tree git:PATH#REF")
