"""Fetch a file over HTTP: resumed after a break, and never used before its sum is known to be right."""

from __future__ import annotations

import hashlib
import http.client
import shutil
import urllib.error
import urllib.request
from pathlib import Path

from harness.errors import InfrastructureError

_CHUNK = 1 << 20
_TIMEOUT = 60.0
_TROUBLE = (urllib.error.URLError, http.client.HTTPException, OSError, ValueError)


def read(url: str) -> bytes:
    """A small file's content. Raises InfrastructureError."""
    try:
        with urllib.request.urlopen(url, timeout=_TIMEOUT) as answer:
            return bytes(answer.read())
    except _TROUBLE as error:
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
            expected = int(answer.headers.get("Content-Length") or -1)
            with part.open("ab" if resumed else "wb") as file:
                before = file.tell()
                shutil.copyfileobj(answer, file, _CHUNK)
                if 0 <= expected != file.tell() - before:
                    raise ConnectionError(f"it broke off after {file.tell()} bytes; run again to go on from there")
    except urllib.error.HTTPError as error:
        # 416: the part is the whole already (the sum below decides), or is longer than the file ever was.
        if error.code != 416 or sha256 is None:
            raise _unreachable(url, error) from error
    except _TROUBLE as error:
        raise _unreachable(url, error) from error
    with part.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if sha256 is not None and found != sha256:
        part.unlink()
        raise InfrastructureError(f"{url}: sha256 is {found}, not {sha256}", hint="run again to fetch it afresh")
    part.rename(path)


def _unreachable(url: str, error: Exception) -> InfrastructureError:
    return InfrastructureError(f"{url}: {error}", hint="without a network, use --tree tarball:PATH or --tree git:PATH#REF")
