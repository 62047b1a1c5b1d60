"""The environment that tests run in: it holds none of the user's settings."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

import platformdirs

CACHE = "HARNESS_TEST_CACHE"
"""The one setting that tests take: where integration tests keep kernels. The user's own cache if it is not set."""

_OTHERS_PREFIXES = ("HARNESS_", "GIT_", "KBUILD_", "LC_", "PYTHON", "SSH_")
_OTHERS = frozenset(
    {
        *("ARCH", "CC", "CLICOLOR", "CLICOLOR_FORCE", "COLUMNS", "CROSS_COMPILE", "FORCE_COLOR", "LANG", "LANGUAGE", "LINES"),
        *("LLVM", "MAKEFLAGS", "MAKELEVEL", "NO_COLOR", "TERM", "TZ", "TTY_COMPATIBLE", "TTY_INTERACTIVE"),
    }
)
_KEPT = frozenset({"PYTHONPATH", "PYTHONDONTWRITEBYTECODE", "PYTHONHASHSEED", "PYTHONUNBUFFERED"})
"""The path of our own code, and variables that change no outcome."""


def neutral(environ: Mapping[str, str]) -> dict[str, str]:
    """The environment less the user's settings: those of the harness, of git, make, Python, the terminal, language and time
    zone."""
    kept = {name: value for name, value in environ.items() if name in _KEPT or not _is_a_setting(name)}
    return {**kept, "LC_ALL": "C.UTF-8", "TZ": "UTC", "TERM": "dumb"}


def _is_a_setting(name: str) -> bool:
    return name in _OTHERS or name.startswith(_OTHERS_PREFIXES)


def homeless(environ: Mapping[str, str], home: Path) -> dict[str, str]:
    """The environment of a user who has just been made: no git configuration, no caches, no keys."""
    kept = {name: value for name, value in environ.items() if not name.startswith(("XDG_", "CCACHE_", "HARNESS_CACHE"))}
    return {**kept, "HOME": str(home)}


def cache_folder() -> Path:
    """The folder in which integration tests keep trees and kernels. In a test, HARNESS_CACHE is set only if CACHE was set
    (tests/conftest.py)."""
    return Path(os.environ.get("HARNESS_CACHE") or platformdirs.user_cache_dir("fgraph-harness"))


def hostile(names: Iterable[str], home: Path) -> dict[str, str]:
    """Settings that make a test fail if it sees any of them. `names` are the variables that the harness reads."""
    home.mkdir(parents=True)
    wrong = home / "nowhere"
    (home / ".gitconfig").write_text(
        "[user]\n\tname =\n\temail =\n\tuseConfigOnly = true\n"
        "[commit]\n\tgpgsign = true\n[tag]\n\tgpgsign = true\n[gpg]\n\tprogram = false\n"
        "[init]\n\tdefaultBranch = elsewhere\n[core]\n\tautocrlf = true\n\thooksPath = /nowhere\n\tquotePath = false\n"
        "[am]\n\tthreeWay = true\n[format]\n\tsignature = theirs\n\tattach = true\n[diff]\n\tnoprefix = true\n"
        "[color]\n\tui = always\n"
    )
    (home / ".config" / "ccache").mkdir(parents=True)
    (home / ".config" / "ccache" / "ccache.conf").write_text("read_only = true\nmax_size = 1k\n")
    settings = {name: f"/nowhere/{name}" for name in names}
    return settings | {
        "HOME": str(home),
        "XDG_CACHE_HOME": str(wrong),
        "XDG_CONFIG_HOME": str(home / ".config"),
        "XDG_DATA_HOME": str(wrong),
        "GIT_AUTHOR_DATE": "1 Jan 1990 00:00 +0000",
        "GIT_DIR": str(wrong),
        "ARCH": "vax",
        "CROSS_COMPILE": "vax-linux-",
        "MAKEFLAGS": "--no-such-option",
        "KBUILD_OUTPUT": str(wrong),
        "CCACHE_DISABLE": "1",
        "COLUMNS": "7",
        "FORCE_COLOR": "1",
        "LC_ALL": "C",
        "LANGUAGE": "de",
        "PYTHONWARNINGS": "error",
        "TERM": "xterm-256color",
        "TZ": "Pacific/Chatham",
    }
