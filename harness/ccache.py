"""What ccache is told by its own settings, and what it is told by us."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from harness import process
from harness.cache import Cache

CONFIG = "ccache.conf"
_REMOTE = "CCACHE_REMOTE_STORAGE"
_HONEST = {
    # A cache miss is not preprocessed a second time, because ccache uses the compiler's own list of headers. That saves a
    # cold build a third of its time. Sources that read files missing from that list never get here
    # (kernel/bin/harness-ccache).
    "CCACHE_DEPEND": "1",
    # These replace settings of the user's that would let ccache return the object of another source.
    "CCACHE_SLOPPINESS": "",
    "CCACHE_IGNOREHEADERS": "",
    "CCACHE_IGNOREOPTIONS": "",
    "CCACHE_COMPILERCHECK": "content",
    "CCACHE_HASHDIR": "1",
    # They may also name another compiler than the one of the digest, or let the build write into what is cached.
    **dict.fromkeys(("CCACHE_COMPILER", "CCACHE_PATH", "CCACHE_PREFIX", "CCACHE_PREFIX_CPP", "CCACHE_BASEDIR"), ""),
    "CCACHE_COMPILERTYPE": "auto",
    "CCACHE_NOHARDLINK": "1",
}

NONE = {"CCACHE_DISABLE": "1"}
"""The environment of a build without ccache: the compiler may be ccache under another name (/usr/lib/ccache in PATH)."""


def folder() -> Path | None:
    """Where it keeps what was compiled here, with its configuration. None without ccache."""
    if process.which("ccache") is None:
        return None
    found = Path(_setting("cache_dir") or Path.home() / ".cache" / "ccache")
    found.mkdir(parents=True, exist_ok=True)
    (found / CONFIG).touch()
    return found


class Usage(Struct, frozen=True):
    """What it keeps on this machine, for every build that goes through it."""

    folder: Path
    size: int
    """Bytes."""
    files: int
    limit: str
    """At which it removes what was not used for longest by itself, as its configuration has it."""
    last_used: float
    """In seconds since 1970."""


def usage() -> Usage | None:
    """None without ccache, or with one that does not say."""
    if process.which("ccache") is None:
        return None
    output = process.run(["ccache", "--print-stats"], check=False).stdout
    lines = (line.partition("\t") for line in output.splitlines())
    figures = {name: int(value) for name, _, value in lines if value.isdecimal()}
    if "cache_size_kibibyte" not in figures:
        return None
    return Usage(
        folder=Path(_setting("cache_dir")),
        size=figures["cache_size_kibibyte"] << 10,
        files=figures.get("files_in_cache", 0),
        limit=_setting("max_size"),
        last_used=figures.get("stats_updated_timestamp", 0),
    )


def settings(cache: Cache, statistics: Path, files: Sequence[Path]) -> dict[str, str]:
    """The environment of a build. `statistics` is the file that gets a line for each result, `files` are those that the assembler
    may read for any source and that no list of dependencies names."""
    return {**_HONEST, "CCACHE_STATSLOG": str(statistics), "CCACHE_EXTRAFILES": ":".join(map(str, files)), **environment(cache)}


def environment(cache: Cache) -> dict[str, str]:
    """The shared cache's settings for ccache, so that other machines' objects are used. The user's own remote storage has
    precedence."""
    shared = cache.shared.ccache if cache.shared else None
    return {_REMOTE: f"file:{shared}"} if shared and not _remote() else {}


def storage(cache: Cache) -> tuple[list[Path], bool]:
    """Folders beside its own that it reads and writes, and whether it needs the network."""
    urls = [url.partition("|")[0] for url in (environment(cache).get(_REMOTE) or _remote()).split()]
    folders = [Path(url.removeprefix("file:").removeprefix("//")) for url in urls if url.startswith("file:")]
    return folders, len(folders) < len(urls)


def _remote() -> str:
    return os.environ.get(_REMOTE) or _setting("remote_storage")


def _setting(name: str) -> str:
    told = process.run(["ccache", "--get-config", name], check=False)
    return told.stdout.strip() if told.returncode == 0 else ""
