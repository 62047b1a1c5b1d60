"""Which compiler warnings stand in a build directory. make compiles only what changed, so those of the other objects have to be
remembered from when they were compiled."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import IO

from harness.cache import file_digest
from harness.model import from_json, to_json

_COMMAND = re.compile(r"^  (?:(?P<modpost>MODPOST)|(?:CC|AS)(?: \[M\])?) +(?P<target>\S+)")
"""kbuild's short form of a command that is begun."""
_WARNING = re.compile(r"^(?P<file>\S+?):\d+(?::\d+)?: warning: |^WARNING: (?P<modpost>modpost): ")
_LINE = re.compile(r"^(\S+?):\d+(?::\d+)?: ")
_MODPOST = "modpost"


class Standing:
    """Of one build directory, by the file of the source that they are in. They stand until that is compiled again, or another
    one. A context manager, for what `read` takes in; what it knows is kept in a file there."""

    def __init__(self, source: Path, output: Path) -> None:
        self._source = source
        self._path = output / ".warnings"
        self._of: dict[str, dict[str, str]] = {}
        """By file: the warnings, each with the file's digest."""
        self._file: IO[bytes] | None = None
        if self.known:
            for line in self._path.read_bytes().splitlines():
                self._note(*from_json(line, tuple[str, str, str]))

    def __enter__(self) -> Standing:
        self._file = self._path.open("ab", buffering=0)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        assert self._file is not None
        self._file.close()

    @property
    def known(self) -> bool:
        """If not, nobody knows what was said of the objects that are there."""
        return self._path.exists()

    def read(self, line: str) -> None:
        """A line of make's output."""
        if match := _WARNING.match(line):
            warning = line.strip().removeprefix(f"{self._source}/")
            self._write(match["modpost"] or match["file"].removeprefix(f"{self._source}/"), warning)
        elif match := _COMMAND.match(line):
            object = match["target"].removesuffix(".o")
            for file in [_MODPOST] if match["modpost"] else [f"{object}.c", f"{object}.S"]:
                if file in self._of:
                    self._write(file, "")

    def list(self) -> tuple[str, ...]:
        return tuple(
            warning for file, said in sorted(self._of.items()) for warning, digest in said.items() if digest == self._digest(file)
        )

    def _digest(self, file: str) -> str:
        path = self._source / file
        return file_digest(path) if path.is_file() else file if file == _MODPOST else ""

    def _write(self, file: str, warning: str) -> None:
        # At once: what was compiled will not be compiled again, whatever ends us.
        if digest := self._digest(file):
            assert self._file is not None
            self._file.write(to_json((file, digest, warning)) + b"\n")
            self._note(file, digest, warning)

    def _note(self, file: str, digest: str, warning: str) -> None:
        if warning:
            self._of.setdefault(file, {})[warning] = digest
        else:
            self._of.pop(file, None)


def new(warnings: Iterable[str], earlier: Iterable[str]) -> list[str]:
    """Those that were not there earlier, wherever in their files they were then."""
    known = Counter(_LINE.sub(r"\1: ", warning) for warning in earlier)
    found = []
    for warning in warnings:
        where = _LINE.sub(r"\1: ", warning)
        if not known[where]:
            found.append(warning)
        known[where] -= known[where] > 0
    return found
