"""Where the project's data lies, and the cache."""

from __future__ import annotations

from pathlib import Path

import platformdirs

PACKAGE = Path(__file__).resolve().parent
_checkout = PACKAGE.parent

DATA = _checkout if (_checkout / "patches").is_dir() else PACKAGE / "data"
"""patches/, configs/ and qemu/: beside the package in a checkout, inside it in an installed wheel."""

PATCHES = DATA / "patches"
CONFIGS = DATA / "configs"
QEMU = DATA / "qemu"
GUEST = QEMU / "guest"
MODULES = GUEST / "modules"
"""Sources of our own kernel modules: built with each kernel, not part of the guest's root as they are."""


def default_history() -> Path:
    """In the user's data directory; `--history` and HARNESS_HISTORY take its place."""
    return Path(platformdirs.user_data_dir("fgraph-harness")) / "history.sqlite"


def default_cache() -> Path:
    """The user's cache directory; `--cache` and HARNESS_CACHE take its place."""
    return Path(platformdirs.user_cache_dir("fgraph-harness"))
