"""Where the project's data lies, and the cache."""

from __future__ import annotations

from pathlib import Path

import platformdirs

PACKAGE = Path(__file__).resolve().parent
_installed = PACKAGE / "data"

DATA = _installed if _installed.is_dir() else PACKAGE.parent
"""patches/, configs/ and qemu/: inside the package in an installed wheel, beside it in a checkout.
The wheel is looked at first: site-packages may have a folder `patches` of another package."""

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
