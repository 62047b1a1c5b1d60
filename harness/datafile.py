"""Read a TOML file that a person writes as a typed value. An error names the file, the line and what to do."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from harness.errors import UserError

T = TypeVar("T")

Keys = tuple[str | int, ...]
"""The path of a value in the document: names of keys, and an index after the name of a repeated table."""

_AT = re.compile(r" - at `\$(?P<path>.*)`$", re.DOTALL)
"""The end of a msgspec message, which gives the path of the wrong value unless that is the whole document."""
_STEP = re.compile(r"\.(?P<key>[^.\[]+)|\[(?P<index>\d+)\]")
_UNKNOWN = re.compile(r"unknown field `(?P<key>[^`]*)`")
_SYNTAX = re.compile(r" \(at (?:line (?P<line>\d+), column \d+|end of document)\)$")


class Lines:
    """The line of each key and table of a TOML document, counted from 1. The document must be valid."""

    def __init__(self, text: str) -> None:
        self._lines: dict[Keys, int] = {(): 1}
        self._counts: dict[Keys, int] = {}
        """Index of the last table of each repeated one."""
        table: Keys = ()
        for line, statement in _statements(text):
            keys = _keys(tomllib.loads(statement))
            header = statement.lstrip().startswith("[")
            repeated = statement.lstrip().startswith("[[")
            if header:
                table = self._resolved(keys, repeated)
                self._note(table, line)
            else:
                self._note(table + keys, line, table)

    def of(self, *keys: str | int) -> int:
        """The line of a value, or of the nearest one around it that has a line of its own."""
        return next(self._lines[keys[:end]] for end in range(len(keys), -1, -1) if keys[:end] in self._lines)

    def _resolved(self, keys: Keys, repeated: bool) -> Keys:
        resolved: Keys = ()
        for number, key in enumerate(keys):
            resolved += (key,)
            if repeated and number == len(keys) - 1:
                self._counts[resolved] = self._counts.get(resolved, -1) + 1
            if resolved in self._counts:
                resolved += (self._counts[resolved],)
        return resolved

    def _note(self, keys: Keys, line: int, start: Keys = ()) -> None:
        for end in range(len(start) + 1, len(keys) + 1):
            self._lines.setdefault(keys[:end], line)


def read(path: Path, type: type[T], hint: str) -> tuple[T, Lines]:
    """The file's value, and the lines of its keys. Raises UserError for a file that cannot be read or that has another shape."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}", hint=hint) from None
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise bad(path, data.count(b"\n", 0, error.start) + 1, "this is not UTF-8", hint) from None
    try:
        value = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        message = str(error)
        match = _SYNTAX.search(message)
        line = int(match["line"]) if match and match["line"] else text.rstrip("\n").count("\n") + 1
        raise bad(path, line, _SYNTAX.sub("", message), hint) from None
    try:
        return msgspec.convert(value, type), Lines(text)
    except msgspec.ValidationError as error:
        message = str(error)
        keys = _path(message)
        raise bad(path, Lines(text).of(*keys), _AT.sub("", message), hint) from None


def bad(path: Path, line: int, message: str, hint: str) -> UserError:
    """The error to raise for a mistake in one line of a file."""
    return UserError(f"{path}:{line}: {message}", hint=hint)


def _path(message: str) -> Keys:
    match = _AT.search(message)
    steps = _STEP.finditer(match["path"]) if match else ()
    keys: Keys = tuple(step["key"] if step["key"] is not None else int(step["index"]) for step in steps)
    unknown = _UNKNOWN.search(message)
    return (*keys, unknown["key"]) if unknown else keys


def _statements(text: str) -> Iterator[tuple[int, str]]:
    """Each header and each assignment with its first line. An assignment may have several lines: it ends as soon
    as the lines from its first one on are valid TOML."""
    start, parts = 0, list[str]()
    for number, line in enumerate(text.splitlines(keepends=True), 1):
        if not parts and (not line.strip() or line.lstrip().startswith("#")):
            continue
        start = start if parts else number
        parts.append(line)
        if _valid("".join(parts)):
            yield start, "".join(parts)
            parts = []


def _valid(statement: str) -> bool:
    try:
        tomllib.loads(statement)
    except tomllib.TOMLDecodeError:
        return False
    return True


def _keys(value: Any) -> Keys:
    """The names that a single statement sets, outermost first."""
    names: Keys = ()
    while isinstance(value, dict) and len(value) == 1:
        ((key, value),) = value.items()
        names += (key,)
        value = value[0] if isinstance(value, list) and value and isinstance(value[0], dict) else value
    return names
