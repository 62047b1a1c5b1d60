"""What a worker is asked to do: a run of its own, narrower than ours, whose journal and files come back. It is a process of its
own, so that it ends when the worker does; what it needs it makes in the worker's cache, or finds there."""

from __future__ import annotations

import functools
import io
import os
import secrets
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from msgspec import Struct

from harness import __version__, archive, paths, process
from harness.cache import digest_of
from harness.errors import InfrastructureError

SAME = "install the very same fgraph-harness there: what it builds, and what it expects, is part of it"

_JOURNAL = "out/latest/journal.jsonl"
_LOOK_SECONDS = 0.3
_TAIL = 4000
"""Bytes of what it printed."""


class Errand(Struct, frozen=True):
    name: str
    arguments: tuple[str, ...]
    """Those of `harness run`. They name files as seen from the folder that `files` are put in."""
    files: bytes
    """As `pack` makes them."""
    harness: str
    """`fingerprint()` of who sends it."""


class Heard(Struct, frozen=True):
    """Some lines of the journal of an errand."""

    attempt: str
    """Another worker's is another one."""
    host: str
    first: int
    """How many lines came before."""
    lines: tuple[str, ...]


class Done(Struct, frozen=True):
    heard: Heard
    """The whole journal."""
    status: int
    output: str
    """The end of what it printed."""
    files: bytes
    """Its run directory, as `pack` makes it."""


class Unwanted(Exception):
    """Nobody waits for the errand any more."""


def run(errand: Errand, tell: Callable[[Heard], None], wanted: Callable[[], bool]) -> Done:
    """To its end, on this machine. `tell` gets its journal as it grows. Raises Unwanted soon after it is not `wanted`, and
    InfrastructureError if this is not the harness that sends it."""
    attempt, host = secrets.token_hex(8), socket.gethostname()
    if errand.harness != fingerprint():
        raise InfrastructureError(f"the worker on {host} has another harness, of version {__version__}", hint=SAME)
    with tempfile.TemporaryDirectory(prefix="harness-") as name:
        folder = Path(name)
        unpack(errand.files, folder)
        # What was before on this machine is not compared with, and somebody else may be building in its cache.
        own = ("--out", "out", "--history", "history.sqlite", "--quiet", "--wait")
        argv = [sys.executable, "-P", "-m", "harness", "run", *errand.arguments, *own]
        # The one that we are, wherever the worker found it.
        env = {"PYTHONPATH": os.pathsep.join(filter(None, [str(paths.PACKAGE.parent), os.environ.get("PYTHONPATH", "")]))}
        lines: tuple[str, ...] = ()
        with (folder / "output").open("wb") as output, process.start(argv, cwd=folder, env=env, stdout=output) as child:
            while (status := child.poll()) is None:
                if not wanted():
                    raise Unwanted
                if new := _lines(folder / _JOURNAL)[len(lines) :]:
                    tell(Heard(attempt, host, len(lines), new))
                    lines += new
                time.sleep(_LOOK_SECONDS)
        whole = Heard(attempt, host, 0, _lines(folder / _JOURNAL))
        said = (folder / "output").read_bytes()[-_TAIL:].decode(errors="replace")
        return Done(whole, status, said, pack((folder / "out" / "latest").resolve()))


@functools.cache
def fingerprint() -> str:
    """Equal where the harness is: its code, and what its kernels and guests are made from."""
    code = [file for file in sorted(paths.PACKAGE.rglob("*")) if paths.PACKAGE / "data" not in file.parents]
    data = [file for folder in (paths.CONFIGS, paths.QEMU) for file in sorted(folder.rglob("*"))]
    files = [file for file in (*code, *data) if file.is_file() and "__pycache__" not in file.parts]
    return digest_of(*(part for file in files for part in (file.name, file.read_bytes())))


def pack(folder: Path) -> bytes:
    packed = io.BytesIO()
    archive.pack(folder, packed)
    return packed.getvalue()


def unpack(packed: bytes, folder: Path, prefixes: Sequence[str] = ("",)) -> None:
    """What is below one of the `prefixes`."""
    archive.unpack(io.BytesIO(packed), folder, prefixes)


def _lines(path: Path) -> tuple[str, ...]:
    """Those that are whole."""
    if not path.exists():
        return ()
    return tuple(path.read_bytes().decode(errors="replace").split("\n")[:-1])
