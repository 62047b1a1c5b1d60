"""A series is code that runs here: its Kconfig files, makefiles and build tools. With bubblewrap they run without network, see
no process but their own, and can write nowhere but in the folders that they are given, and in ccache's."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path

from harness import ccache, process
from harness.cache import Cache
from harness.errors import InfrastructureError


class Sandbox(StrEnum):
    """What `--sandbox` takes."""

    AUTO = "auto"
    ON = "on"
    OFF = "off"


_MACHINE = (
    "--ro-bind",
    "/",
    "/",
    "--dev",
    "/dev",
    "--proc",
    "/proc",
    "--tmpfs",
    "/run",
    "--ro-bind-try",
    "/run/media",
    "/run/media",
)
"""Read, not written; without /run, where other programs of the machine listen."""
_TEMPORARY = "/var/tmp"
"""A folder of its own for each command: what is in /tmp may be wanted."""
_ALONE = ("--unshare-pid", "--unshare-ipc", "--die-with-parent", "--as-pid-1")
# bwrap's own init would report how the command ended, but not what CPU time it took; and the command must not be init itself,
# which no signal ends.
_AS_INIT = ("sh", "-c", '"$@"; exit $?', "sh")


def enter(wanted: Sandbox, cache: Cache) -> str:
    """From now on, whatever is run `confined` is. Returns what came of it, for run.toml: `bubblewrap`, or `none` and why.

    Raises InfrastructureError if it is wanted and cannot be had."""
    leave()
    if wanted is Sandbox.OFF:
        return "none: --sandbox off"
    own = ccache.folder()
    others, network = ccache.storage(cache) if own else ([], False)
    for folder in others:
        folder.mkdir(parents=True, exist_ok=True)

    def prefix(writable: Sequence[Path]) -> list[str]:
        words = ["bwrap", *_MACHINE, "--tmpfs", _TEMPORARY]
        for listened in _sockets():
            words += ["--tmpfs", str(listened)]
        for folder in [*filter(None, [own]), *others, *writable]:
            words += ["--bind", str(folder), str(folder)]
        if own:
            # It holds outside as well.
            words += ["--ro-bind", str(own / ccache.CONFIG), str(own / ccache.CONFIG)]
        alone = _ALONE if network else (*_ALONE, "--unshare-net")
        return [*words, *alone, "--setenv", "TMPDIR", _TEMPORARY, "--", *_AS_INIT]

    why = _problem(prefix(()))
    if not why:
        process.confine(prefix)
        return "bubblewrap, with network for ccache's remote storage" if network else "bubblewrap"
    if wanted is Sandbox.ON:
        hint = "--sandbox auto does without; `harness doctor` tells what installs bwrap"
        raise InfrastructureError(f"no sandbox: {why}", hint=hint)
    return f"none: {why}"


def leave() -> None:
    """Run everything as it is again."""
    process.confine(None)


def _problem(prefix: list[str]) -> str:
    """Containers often forbid what it needs."""
    if process.which("bwrap") is None:
        return "bubblewrap is not installed"
    tried = process.run([*prefix, "true"], check=False)
    return "" if tried.returncode == 0 else tried.stdout.strip()


def _sockets() -> set[Path]:
    """Folders below /tmp in which somebody listens: an X server, tmux, an SSH agent."""
    found = set()
    with contextlib.suppress(OSError):
        for path in Path("/tmp").glob("*/*"):
            with contextlib.suppress(OSError):
                if path.is_socket():
                    found.add(path.parent)
    return found
