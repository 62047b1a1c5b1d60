"""Which compiler warnings stand in a build directory. make compiles only what changed, so those of the other objects have to be
remembered from when they were compiled."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import IO

from harness.model import from_json, to_json

_TARGET = re.compile(r"^  [A-Z][A-Z0-9_]*(?: \[M\])? +(?P<target>\S+)")
"""kbuild's short form of a command. With --output-sync its warnings follow it directly."""
_WARNING = re.compile(r"^\S+?:\d+(?::\d+)?: warning: |^WARNING: modpost: ")
_LINE = re.compile(r"^(\S+?):\d+(?::\d+)?: ")
_SOURCES = (".c", ".S")


class Standing:
    """Of one build directory, by target, in a file there: a line for each warning, and one for each target that had some and is
    made again. A context manager, for what `read` takes in."""

    def __init__(self, output: Path) -> None:
        self._path = output / ".warnings"
        self._target = ""
        self._of: dict[str, list[str]] = {}
        self._file: IO[bytes] | None = None
        if self.known:
            for line in self._path.read_bytes().splitlines():
                self._note(*from_json(line, tuple[str, str]))

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
        if match := _TARGET.match(line):
            self._target = match["target"]
            if self._target in self._of:
                self._write(self._target, "")
        elif _WARNING.match(line):
            self._write(self._target, line.strip())

    def _write(self, target: str, warning: str) -> None:
        # At once: what was compiled will not be compiled again, whatever ends us.
        assert self._file is not None
        self._file.write(to_json((target, warning)) + b"\n")
        self._note(target, warning)

    def _note(self, target: str, warning: str) -> None:
        if warning:
            self._of.setdefault(target, []).append(warning)
        else:
            self._of.pop(target, None)

    def list(self, source: Path) -> tuple[str, ...]:
        """Each once. What stands of objects that have no source any more does not count."""
        there = {
            target: said
            for target, said in self._of.items()
            if not target.endswith(".o") or any((source / target).with_suffix(suffix).exists() for suffix in _SOURCES)
        }
        return tuple(dict.fromkeys(warning for target in sorted(there) for warning in there[target]))


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
