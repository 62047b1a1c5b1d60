"""Where the shared cache is."""

from __future__ import annotations

import urllib.parse
from pathlib import Path

from harness.errors import UserError

HINT = "a folder that is there, or sftp://[USER@]HOST[:PORT]/FOLDER"


def parse_spec(spec: str) -> str:
    """The same, with its whole path. Raises UserError for one that names nothing."""
    folder = folder_of(spec)
    if folder is None:
        split_url(spec)
        return spec
    if not folder.is_dir():
        raise UserError(f"no shared cache at {spec}", hint=HINT)
    if len(str(folder).split()) > 1:
        raise UserError(f"no shared cache at '{spec}'", hint="ccache takes a space for the end of a name")
    return str(folder)


def folder_of(spec: str) -> Path | None:
    return None if "://" in spec else Path(spec).expanduser().resolve()


def split_url(spec: str) -> urllib.parse.SplitResult:
    """Raises UserError."""
    url = urllib.parse.urlsplit(spec)
    try:
        good = url.scheme == "sftp" and bool(url.hostname) and bool(url.path.strip("/")) and (url.port or 22) > 0
    except ValueError:
        good = False
    if not good:
        raise UserError(f"no shared cache at {spec}", hint=HINT)
    return url
