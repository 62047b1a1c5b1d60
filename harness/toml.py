"""Read a TOML file into typed values, and name the line of whatever is wrong in it.

Decoders report a path (`$.claim[3].base`) or nothing at all; a user needs `claims.toml:42`. So the file is scanned once more, for
the lines on which its tables and keys begin."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

import msgspec

from harness.errors import UserError

T = TypeVar("T")
Key = str | int
"""The name of a key, or the index of an element of an array."""

_TOKEN = re.compile(
    r"(?P<string>'''.*?'''|\"\"\"(?:\\.|[^\\])*?\"\"\"|'[^'\n]*'|\"(?:\\.|[^\"\\\n])*\")"
    r"|(?P<comment>\#[^\n]*)|(?P<open>[\[{])|(?P<close>[\]}])|(?P<end>\n)|[^'\"\#\[\]{}\n]+|.",
    re.DOTALL,
)
_HEADER = re.compile(r"\s*(\[\[?)\s*([^\[\]]+?)\s*\]")
_PAIR = re.compile(r"\s*((?:[\w-]+|'[^']*'|\"[^\"]*\")(?:\s*\.\s*(?:[\w-]+|'[^']*'|\"[^\"]*\"))*)\s*=")
_NAME = re.compile(r"'([^']*)'|\"([^\"]*)\"|([\w-]+)")
_LINE = re.compile(r" \(at line (\d+), column \d+\)$| \(at end of document\)$")
_PATH = re.compile(r" - at `(?:key` in `)?\$([^`]*)`$")
_STEP = re.compile(r"\.([\w-]+)|\[(\d+)\]")
_UNKNOWN = re.compile(r"unknown field `([^`]+)`")


class Document:
    """A TOML file as text. `where()` answers with the file and the line of a key."""

    def __init__(self, path: Path, text: str) -> None:
        self.path = path
        self._last = max(1, len(text.splitlines()))
        self._lines: dict[tuple[Key, ...], int] = {}
        self._twice = 0
        self._scan(text)

    def line(self, *keys: Key) -> int:
        """The line on which this key begins; if it is not written down by itself, the line of the nearest table around it."""
        for length in range(len(keys), 0, -1):
            if found := self._lines.get(keys[:length]):
                return found
        return 1

    def where(self, *keys: Key) -> str:
        return f"{self.path}:{self.line(*keys)}"

    def _scan(self, text: str) -> None:
        arrays: dict[tuple[Key, ...], int] = {}
        table: tuple[Key, ...] = ()
        for number, statement in _statements(text):
            if header := _HEADER.match(statement):
                table = _resolved(_names(header[2]), arrays)
                if header[1] == "[[":
                    arrays[table] = arrays.get(table, -1) + 1
                    table = (*table, arrays[table])
                self._note(table, number)
            elif pair := _PAIR.match(statement):
                self._note((*table, *_names(pair[1])), number)

    def _note(self, keys: tuple[Key, ...], number: int) -> None:
        if keys in self._lines and not self._twice:
            self._twice = number
        for length in range(1, len(keys) + 1):
            self._lines.setdefault(keys[:length], number)

    def complain(self, error: Exception, hint: str) -> UserError:
        """What a decoder reports of this file, with the line in place of the decoder's own path."""
        text = str(error)
        if place := _LINE.search(text):
            number = int(place[1]) if place[1] else self._twice or self._last
            return UserError(f"{self.path}:{number}: {text[: place.start()]}", hint=hint)
        place = _PATH.search(text)
        inside = place[1] if place else ""
        keys: list[Key] = [name or int(index) for name, index in _STEP.findall(inside)]
        if unknown := _UNKNOWN.search(text):
            keys.append(unknown[1])
        named = f"`{inside.lstrip('.')}`: " if inside else ""
        return UserError(f"{self.where(*keys)}: {named}{text[: place.start()] if place else text}", hint=hint)


def read(path: Path, kind: type[T], hint: str) -> tuple[T, Document]:
    """The file as a value of `kind`. Raises FileNotFoundError, and UserError with file and line if it is not such a value."""
    data = path.read_bytes()
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        number = data[: error.start].count(b"\n") + 1
        raise UserError(f"{path}:{number}: this line is no UTF-8", hint="TOML files are written in UTF-8") from None
    document = Document(path, text)
    try:
        return msgspec.toml.decode(data, type=kind), document
    except msgspec.DecodeError as error:
        raise document.complain(error, hint) from None


def _statements(text: str) -> Iterator[tuple[int, str]]:
    """The headers and key/value pairs of the file with the line on which each begins. What a multi-line string or array holds is
    part of its statement, not a statement of its own."""
    parts: list[str] = []
    line = start = 1
    depth = 0
    for token in _TOKEN.finditer(text):
        depth = max(0, depth + bool(token["open"]) - bool(token["close"]))
        if token["end"] and depth == 0:
            yield start, "".join(parts)
            parts, start = [], line + 1
        elif not token["comment"]:
            parts.append(token[0])
        line += token[0].count("\n")
    yield start, "".join(parts)


def _names(dotted: str) -> list[str]:
    return [single or double or bare for single, double, bare in _NAME.findall(dotted)]


def _resolved(names: list[str], arrays: dict[tuple[Key, ...], int]) -> tuple[Key, ...]:
    """The path of a header: below an array of tables, it means the array's last element."""
    keys: tuple[Key, ...] = ()
    for position, name in enumerate(names):
        keys = (*keys, name)
        if keys in arrays and position < len(names) - 1:
            keys = (*keys, arrays[keys])
    return keys
