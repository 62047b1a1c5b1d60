"""Which compiler warnings stand in a build directory. make compiles only what changed, so those of the other objects have to be
remembered from when they were compiled."""

from __future__ import annotations

import errno
import os
import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import IO

import msgspec

from harness import process
from harness.model import from_json, to_json

_COMMAND = re.compile(r"^  (?P<name>CC|AS|CALL|MODPOST)(?: \[M\])? +(?P<target>\S+)")
"""kbuild's short form of a command that is begun."""
_WARNING = re.compile(r"^(?P<file>\S+?):\d+(?::\d+)?: warning: |^WARNING: (?P<modpost>modpost): ")
_CHAIN = re.compile(
    r"^(?P<first>In file included from |    inlined from .* at )?(?:                 from )?(?P<file>\S+?):\d+\S*$"
)
"""By which file the one with the warning was included: gcc tells the innermost first, clang the outermost."""
_BETWEEN = re.compile(r"^(?:\S+: )?(?:In function|In member function|At top level)")
_LINE = re.compile(r"^(\S+?):\d+(?::\d+)?: ")
_MODPOST, _SCRIPTS = "modpost", "<stdin>"
_SOURCES = (".c", ".S")


class Standing:
    """Of one build directory, by unit: the file that was compiled. They stand until it is compiled again. A context manager, for
    what `read` takes in; what it knows is kept in a file there."""

    def __init__(self, source: Path, output: Path) -> None:
        self._source = source
        self._output = output
        self._path = output / ".warnings"
        self._of: dict[str, list[str]] = {}
        self._chain: list[str] = []
        self._units: dict[str, str] = {}
        """Of the files that are included."""
        self._file: IO[bytes] | None = None
        self.known = self._path.exists()
        """If not, nobody knows what was said of the objects that are there."""
        try:
            for line in self._path.read_bytes().splitlines() if self.known else ():
                self._note(*from_json(line, tuple[str, str]))
        except (msgspec.DecodeError, UnicodeDecodeError):  # a disk that was full, a power cut
            self.known = False

    def __enter__(self) -> Standing:
        self._file = self._path.open("ab", buffering=0)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        assert self._file is not None
        self._file.close()

    def read(self, line: str) -> None:
        """A line of make's output."""
        if match := _WARNING.match(line):
            unit = match["modpost"] or self._unit(self._named(match["file"]))
            self._write(unit, line.strip().replace(f"{self._source}/", ""))
        elif match := _COMMAND.match(line):
            stem = match["target"].removesuffix(".o")
            units = {"MODPOST": [_MODPOST], "CALL": [_SCRIPTS]}.get(match["name"], [stem + suffix for suffix in _SOURCES])
            for unit in units:
                if unit in self._of:
                    self._write(unit, "")
        elif match := _CHAIN.match(line):
            # gcc goes on with lines of its own, clang begins each as it began the first.
            self._chain.insert(len(self._chain) if match["first"] else 0, self._named(match["file"]))
            return
        elif _BETWEEN.match(line):
            return
        self._chain = []

    def list(self) -> tuple[str, ...]:
        members = self._members()
        return tuple(
            dict.fromkeys(text for unit, said in sorted(self._of.items()) if self._counts(unit, members) for text in said)
        )

    def _named(self, file: str) -> str:
        return file.removeprefix(f"{self._source}/").removeprefix("./")

    def _unit(self, file: str) -> str:
        """That was compiled when `file` was complained of: each file's chain is told once only."""
        including = next((one for one in self._chain if one.endswith(_SOURCES)), "")
        if including:
            self._units[file] = including
        return self._units.get(file, file)

    def _counts(self, unit: str, members: set[str]) -> bool:
        """Not if its source is gone, or if it is left over from another configuration."""
        if not unit.endswith(_SOURCES):
            return True
        built_in = (self._output / unit).with_name("built-in.a").exists()
        used = not (members and built_in) or str(Path(unit).with_suffix(".o")) in members
        return used and (self._source / unit).exists()

    def _members(self) -> set[str]:
        """The objects of vmlinux and of its modules; empty if there is no telling."""
        archive, order = self._output / "vmlinux.a", self._output / "modules.order"
        # ar names them as seen from where it is called.
        names = (
            process.run(["ar", "t", archive.name], cwd=self._output, check=False)
            if archive.exists() and process.which("ar")
            else None
        )
        listed = names.stdout.split() if names else []
        for module in order.read_text().split() if listed and order.exists() else ():
            parts = (self._output / module).with_suffix(".mod")
            listed += [module, *(parts.read_text().split() if parts.exists() else [])]
        return {os.path.normpath(member) for member in listed}

    def _write(self, unit: str, warning: str) -> None:
        # At once: what was compiled will not be compiled again, whatever ends us.
        assert self._file is not None
        line = to_json((unit, warning)) + b"\n"
        if self._file.write(line) != len(line):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self._path))
        self._note(unit, warning)

    def _note(self, unit: str, warning: str) -> None:
        if warning:
            self._of.setdefault(unit, []).append(warning)
        else:
            self._of.pop(unit, None)


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
