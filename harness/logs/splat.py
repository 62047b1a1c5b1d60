"""Find the kernel's reports of trouble (splats) in a log: BUG, WARNING, oops, panic, KASAN, lockdep, stalls.

kinds.py says how each kind begins, what belongs to it and how it ends."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import IO

from msgspec import Struct

from harness.logs import kinds
from harness.logs.frames import culprit
from harness.logs.lines import clean, kernel_messages

_WIDEST = 500
"""Characters of a message that are looked at: no pattern may take long over whatever a guest prints."""
_AFTERMATH = 40
"""Lines after an end marker within which a panic still belongs to the report: x86 shows the registers again first."""
_CONTROLS = bytes([*range(0x09), 0x0B, 0x0C, *range(0x0E, 0x20), 0x7F])
"""Control characters. `clean` removes them, because they may stand in the middle of a word."""
_BLOCK = 1 << 17


class Splat(Struct, frozen=True):
    """`line` counts from 1. `function` is where it happened, as far as the report says; empty if it does not say."""

    kind: str
    title: str
    function: str
    line: int
    text: str = ""
    fatal: bool = False
    """The kernel is not going to run on."""
    sequels: tuple[str, ...] = ()
    """Titles of the reports that this one led to and that are part of its text: the Oops line of a page fault, the panic after a
    warning. Each of them means that the kernel's code was stopped."""

    @property
    def stopped(self) -> bool:
        """The kernel's code could not go on where it was: an oops, a BUG() or a panic, as the report itself or as a sequel."""
        return bool(self.sequels) or _stops(self.kind, self.title)


class _Report(Struct):
    """One that is being printed. `own` are the messages of whoever prints it; `lines` has those of others as well, such as a CPU
    that was asked for its backtrace, unless they print a report of their own."""

    kind: str
    title: str
    line: int
    fatal: bool
    lines: list[str]
    own: list[str]
    sequels: list[str]
    indent: str = ""
    """The spaces before every line, as in a report that a mail quotes."""
    die_counter: str = ""
    ended_at: int = 0

    def finished(self) -> Splat:
        function = culprit(self.kind, self.own)
        text = "\n".join(self.lines)
        return Splat(self.kind, self.title, function, self.line, text, self.fatal, tuple(self.sequels))

    def add(self, kind: str, message: str) -> None:
        """Add a line to this report. `kind` is empty unless the line is a first line, so that it is a sequel or a part."""
        self.own.append(message.removeprefix(self.indent))
        self.fatal |= _is_fatal(kind, message)
        if kind and _stops(kind, message):
            self.sequels.append(message.strip())
        if counter := kinds.DIE_COUNTER.search(message) if kind else None:
            self.die_counter = counter[1]

    def goes_on_with(self, kind: str, message: str) -> bool:
        """True if a first line of `kind`, with this report's caller, is a sequel or a part of this report."""
        if _is_fatal(kind, message):
            return True
        counter = kinds.DIE_COUNTER.search(message)
        if self.ended_at or (counter and self.die_counter and counter[1] != self.die_counter):
            return False
        return kind in self._sequel_kinds or any(self._has_part(part, message) for part in kinds.PARTS)

    def _has_part(self, part: kinds.Part, message: str) -> bool:
        if self.kind not in part.kinds or len(self.own) > part.within or not part.pattern.match(message.lstrip(" \t")):
            return False
        return not (part.once and any(part.pattern.match(line.lstrip(" \t")) for line in self.own))

    @property
    def _sequel_kinds(self) -> tuple[str, ...]:
        if self.kind == "bug" and kinds.BUG_AT.match(self.title):
            return kinds.AFTER_BUG_AT
        return kinds.SEQUELS.get(self.kind, kinds.FATAL)

    def is_over(self, number: int) -> bool:
        """True if the report has ended before the line with that number, which is no first line."""
        if self.ended_at:
            return number - self.ended_at > _AFTERMATH
        return len(self.lines) >= kinds.LONGEST.get(self.kind, kinds.DEFAULT_LONGEST)


def _begin(kind: str, message: str, number: int) -> _Report:
    title = message.strip()
    counter = kinds.DIE_COUNTER.search(title)
    indent = message[: len(message) - len(message.lstrip(" \t"))]
    return _Report(
        kind, title, number, _is_fatal(kind, title), [], [message.lstrip(" \t")], [], indent, counter[1] if counter else ""
    )


class Scanner:
    """Feed it lines one by one; it gives each report back when it has ended. With PRINTK_CALLER, reports that are printed at the
    same time are told apart."""

    def __init__(self) -> None:
        self._number = 0
        self._open: dict[str, _Report] = {}
        """By caller; the newest last."""

    @property
    def idle(self) -> bool:
        """No report is being printed."""
        return not self._open

    @property
    def fatal(self) -> bool:
        """A report that is being printed says that the kernel is not going to run on."""
        return any(report.fatal for report in self._open.values())

    def skip(self, lines: int) -> None:
        """Count lines that begin no report, while `idle`."""
        self._number += lines

    def feed(self, line: str) -> list[Splat]:
        self._number += 1
        maybe = kinds.MAYBE.search(line) is not None
        if not maybe and not self._open:
            return []
        messages = [(caller, message[:_WIDEST]) for caller, message in kernel_messages(line)]
        classified = [(_classify(message.lstrip(" \t")) if maybe else "", caller, message) for caller, message in messages]
        kind, caller, message = next((entry for entry in classified if entry[0]), classified[-1])
        done = self._take_ended(kind, caller, message)
        report = self._open.get(caller)
        if report:
            report.add(kind, message)
            if not report.ended_at and len(report.own) > 3 and kinds.END.search(message):
                report.ended_at = self._number
        elif kind:
            report = self._open[caller] = _begin(kind, message, self._number)
        elif self._open:
            report = next(reversed(self._open.values()))
        if report:
            report.lines.append(line)
        return done

    def finish(self) -> list[Splat]:
        """The reports that the end of the log cut short."""
        done = [report.finished() for report in self._open.values()]
        self._open.clear()
        return done

    def _take_ended(self, kind: str, caller: str, message: str) -> list[Splat]:
        """Close and return the reports that ended before this line. `kind` is empty unless the line is a first line."""
        ended = [
            key
            for key, report in self._open.items()
            if report.is_over(self._number) or (kind and key == caller and not report.goes_on_with(kind, message))
        ]
        return [self._open.pop(key).finished() for key in ended]


def scan(lines: Iterable[str | bytes]) -> list[Splat]:
    """All reports in a log, in the order in which they begin."""
    scanner = Scanner()
    found = [splat for line in lines for splat in scanner.feed(clean(line))]
    return _ordered(found, scanner)


def scan_file(file: IO[bytes], seen: Callable[[bytes], object] = len) -> list[Splat]:
    """The same, and quick about the long stretches of a log that hold none. `seen` gets the whole log, in blocks of whole
    lines."""
    scanner = Scanner()
    found: list[Splat] = []
    while block := file.read(_BLOCK) + file.readline():
        seen(block)
        if scanner.idle and not _may_have_one(block):
            scanner.skip(block.count(b"\n"))
        else:
            lines = block.removesuffix(b"\n").split(b"\n")
            found += [splat for line in lines for splat in scanner.feed(clean(line))]
    return _ordered(found, scanner)


def _ordered(found: list[Splat], scanner: Scanner) -> list[Splat]:
    return sorted(found + scanner.finish(), key=lambda splat: splat.line)


def _may_have_one(block: bytes) -> bool:
    """Lines that `clean` would change are not told apart so quickly."""
    plain = block.isascii() and len(block.translate(None, _CONTROLS)) == len(block)
    return not plain or bool(kinds.CAPITALS.search(block)) or any(word in block for word in kinds.OTHERS)


def _classify(message: str) -> str:
    return next((kind for kind, pattern in kinds.FIRST_LINES if pattern.match(message)), "")


def _is_fatal(kind: str, message: str) -> bool:
    return kind in kinds.FATAL or (kind != "" and kinds.PANIC in message)


def _stops(kind: str, title: str) -> bool:
    return kind in kinds.STOPPED or (kind == "bug" and kinds.BUG_AT.match(title) is not None)
