"""What a worker is asked to do: a run of its own, narrower than ours, whose journal and files come back. It is a process of its
own, so that it ends when the worker does; what it needs it makes in the worker's cache, or finds there."""

from __future__ import annotations

import io
import json
import os
import secrets
import socket
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path

from msgspec import Struct

from harness import __version__, archive, paths, process
from harness.cache import digest_of
from harness.errors import InfrastructureError
from harness.options import RUN, RunOptions, compose

SAME = "install the very same fgraph-harness there: what it builds, and what it expects, is part of it"

_JOURNAL = "journal.jsonl"
_ENDED = '"event":"job-finished"'
_LOOK_SECONDS = 0.3
_TAIL = 4000
"""Bytes of what it printed."""
_OWN = RunOptions(out=Path("out"), history=Path("history.sqlite"), quiet=True, wait=True)
"""The options that a worker adds. The history is a new one, because the batch is not to be compared
with earlier runs on this machine; and another run may be building in the worker's cache."""
_FILES = ("HARNESS_CACHE", "HARNESS_SHARED_CACHE", "HARNESS_HOSTS")
"""Settings that name a file as seen from where the worker was started."""


class Errand(Struct, frozen=True):
    name: str
    arguments: tuple[str, ...]
    """`run` and its options. They name files as seen from the folder that `files` are put in."""
    files: bytes
    """As `pack` makes them."""
    harness: str
    """`fingerprint()` of who sends it."""


class Heard(Struct, frozen=True):
    """What is new of an errand."""

    attempt: str
    """Another worker's is another one."""
    host: str
    first: int
    """How many lines came before."""
    lines: tuple[str, ...]
    """Of its journal."""
    files: bytes = b""
    """Those of the jobs that ended with these lines, in its run directory, as `pack` makes them."""


class Done(Struct, frozen=True):
    heard: Heard
    """The whole journal, and all files."""
    status: int
    output: str
    """The end of what it printed."""


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
        made = folder / "out" / "latest"
        unpack(errand.files, folder)
        own = compose(RUN, _OWN).options
        argv = [sys.executable, "-P", "-m", "harness", *errand.arguments, *own]
        journal, told = _Tail(made / _JOURNAL), 0
        with (folder / "output").open("wb") as output, process.start(argv, cwd=folder, env=_settings(), stdout=output) as child:
            while child.poll() is None:
                if not wanted():
                    raise Unwanted
                if new := journal.grown():
                    # A scheduler keeps what it passes on: each job's files once, and no more.
                    ended = [
                        f"{event['arch']}/{event['point']}" for line in new if _ENDED in line for event in [json.loads(line)]
                    ]
                    tell(Heard(attempt, host, told, new, pack(made.resolve(), ended) if ended else b""))
                    told += len(new)
                time.sleep(_LOOK_SECONDS)
        said = (folder / "output").read_bytes()[-_TAIL:].decode(errors="replace")
        return Done(Heard(attempt, host, 0, _Tail(made / _JOURNAL).grown(), pack(made.resolve())), child.returncode, said)


def fingerprint() -> str:
    """Equal where the harness is: its code, and what its kernels and guests are made from. Read each time, for it may be another
    one since the worker was started."""
    code = [file for file in sorted(paths.PACKAGE.rglob("*")) if paths.PACKAGE / "data" not in file.parents]
    data = [file for folder in (paths.CONFIGS, paths.QEMU) for file in sorted(folder.rglob("*"))]
    files = [file for file in (*code, *data) if file.is_file() and "__pycache__" not in file.parts]
    return digest_of(*(part for file in files for part in (file.name, file.read_bytes())))


def pack(folder: Path, parts: Sequence[str] = ("",)) -> bytes:
    """What is below `parts` of it."""
    packed = io.BytesIO()
    archive.pack(folder, packed, parts)
    return packed.getvalue()


def unpack(packed: bytes, folder: Path, prefixes: Sequence[str] = ("",)) -> None:
    """What is below one of the `prefixes`. Raises InfrastructureError."""
    try:
        archive.unpack(io.BytesIO(packed), folder, prefixes)
    except zipfile.BadZipFile as error:
        raise InfrastructureError(f"files that arrived damaged: {error}") from error


class _Tail:
    """A file that grows by lines."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._read = 0

    def grown(self) -> tuple[str, ...]:
        """The lines that are whole since it was asked before."""
        if not self._path.exists():
            return ()
        with self._path.open("rb") as file:
            file.seek(self._read)
            new = file.read()
        whole = new[: new.rfind(b"\n") + 1]
        self._read += len(whole)
        return tuple(whole.decode(errors="replace").split("\n")[:-1])


def _settings() -> dict[str, str]:
    """The worker's, for a process that runs in another folder; and the harness that we are, wherever the worker found it."""
    named = {name: os.environ[name] for name in _FILES if os.environ.get(name) and "://" not in os.environ[name]}
    path = [str(paths.PACKAGE.parent), *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    whole = {name: str(Path(value).expanduser().absolute()) for name, value in named.items()}
    return {**whole, "PYTHONPATH": os.pathsep.join(str(Path(one).absolute()) for one in path)}
