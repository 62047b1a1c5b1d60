"""Console logs, cut at the marks that the agent leaves at each case, and shortened to what a page can hold."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Collection, Iterator
from pathlib import Path

from msgspec import Struct

from harness.guest import frames
from harness.logs.lines import clean

_MARK = re.compile(r"harness: [0-9a-f]{12} (begin|end) (\S+)")
_BOOT = re.compile(r"\] Linux version \d")
"""The next guest on the same console."""
_MOST_SECTIONS = 10_000
"""Of a console: a guest can leave marks as well."""
_LONGEST_LINE = 400
"""Characters; what is longer is no kernel's message."""
_LONGEST_RAW = 1 << 14
_KEPT = 1500
"""Lines of a section that are held in memory, from its begin and from its end each."""
_LIMITS = (2 * _KEPT, 400, 200, 100, 30, 10, 4)
"""How much of a section may be shown, in lines: the most that fits."""
_MARKUP = 40
"""Characters around a section."""


class Section:
    """What the console said from the begin of a case to the next, or before the first: then its label, `suite:name` with blanks
    as underscores, is empty."""

    def __init__(self, label: str, anchor: str) -> None:
        self.label = label
        self.anchor = anchor
        self.lines = 0
        self.head: list[str] = []
        self.tail: deque[str] = deque(maxlen=_KEPT)

    def add(self, line: str) -> None:
        self.lines += 1
        (self.head if len(self.head) < _KEPT else self.tail).append(line)

    def shown(self, limit: int) -> Iterator[str]:
        """Its first and last lines, at most `limit` and one that says what is left out."""
        lines = [*self.head, *self.tail]
        if self.lines <= limit:
            yield from lines
            return
        last = limit // 3
        yield from lines[: limit - last]
        yield f"… {self.lines - limit} lines left out …"
        yield from lines[len(lines) - last :]


class Log(Struct, frozen=True):
    name: str
    """console.log, console-2.log..."""
    sections: tuple[Section, ...]

    def anchors(self) -> Iterator[tuple[str, str]]:
        """Of each label."""
        return ((section.label, section.anchor) for section in self.sections)


def read(path: Path, prefix: str) -> Log:
    """`prefix` is what its anchors begin with."""
    sections = [Section("", f"{prefix}-0")]
    try:
        file = path.open("rb")
    except OSError as error:
        sections[0].add(f"it cannot be read: {error.strerror}")
        return Log(path.name, tuple(sections))
    with file:
        for raw in iter(lambda: file.readline(_LONGEST_RAW), b""):
            _, line = frames.take(clean(raw))
            mark = _MARK.search(line)
            if mark and mark[1] == "end":
                # Where a case ends, the next one begins, or nothing of interest does.
                continue
            begins = mark or (sections[-1].label and _BOOT.search(line))
            if begins and len(sections) < _MOST_SECTIONS:
                sections.append(Section(mark[2] if mark else "", f"{prefix}-{len(sections)}"))
            sections[-1].add(line if len(line) <= _LONGEST_LINE else f"{line[:_LONGEST_LINE]} … {len(line)} characters")
    return Log(path.name, tuple(sections))


def limits(logs: Collection[Log], red: Collection[str], size: int) -> dict[str, int]:
    """How many lines of each section, by its anchor, can be shown if all of them are to take `size` characters or so, half of
    it those in `red`: they come first."""
    sections = [section for log in logs for section in log.sections]
    reds = [section for section in sections if section.anchor in red]
    of_red = _limit(reds, size // 2)
    limit = _limit([section for section in sections if section.anchor not in red], size - _size(reds, of_red))
    return {section.anchor: of_red if section.anchor in red else limit for section in sections}


def _limit(sections: Collection[Section], size: int) -> int:
    return next((limit for limit in _LIMITS if _size(sections, limit) <= size), _LIMITS[-1])


def _size(sections: Collection[Section], limit: int) -> int:
    return _MARKUP * len(sections) + sum(len(line) + 1 for section in sections for line in section.shown(limit))
