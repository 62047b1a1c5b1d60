"""Find the kernel's reports of trouble (splats) in a log: BUG, WARNING, oops, panic, KASAN, lockdep, stalls.

The first line of each kind is a row of a table. Patterns hold from the start of the message, after the printk prefix: text
that merely mentions one further in is no splat."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import IO

from msgspec import Struct

from harness.logs.frames import culprit
from harness.logs.lines import clean, kernel_messages

_WIDEST = 500
"""Characters of a message that are looked at: no pattern may take long over whatever a guest prints."""
_LONGEST = 200
"""Lines after which a report without an end marker is taken as over."""
_AFTERMATH = 40
"""Lines after an end marker within which a panic still belongs to the report: x86 shows the registers again first."""


class Splat(Struct, frozen=True):
    """`line` counts from 1. `function` is where it happened, as far as the report says; empty if it does not say."""

    kind: str
    title: str
    function: str
    line: int
    text: str = ""
    fatal: bool = False
    """The kernel is not going to run on."""


_FATAL = ("panic", "stack-protector")
_ANY_SEQUEL = ("oops", "panic", "page-fault", "bug")
"""What follows as part of a report that is being printed, such as the Oops line of a page fault and the panic after it."""
_SEQUELS = {
    # The kernel goes on after a warning: what follows is a report of its own, and must have its own title.
    "warning": ("panic",),
    # These give a WARN() its text, which comes before its place.
    **dict.fromkeys(("refcount", "odebug", "list"), (*_ANY_SEQUEL, "warning")),
}

# The first row that matches names the report, so special forms stand before general ones.
FIRST_LINES = [
    (kind, re.compile(pattern))
    for kind, pattern in (
        ("stack-protector", r"(?:Kernel panic - not syncing: )?stack-protector: Kernel stack is corrupted"),
        ("panic", r"Kernel panic - not syncing"),
        ("kasan", r"BUG: KASAN: "),
        ("kfence", r"BUG: KFENCE: "),
        ("kmsan", r"BUG: KMSAN: "),
        ("kcsan", r"BUG: KCSAN: "),
        ("ubsan", r"UBSAN: "),
        ("soft-lockup", r"(?:(?:NMI )?watchdog: )?BUG: soft lockup"),
        ("hard-lockup", r"(?:(?:NMI )?[Ww]atchdog:? )?.*hard LOCKUP|CPU \d+ self-detected hard LOCKUP"),
        ("workqueue-lockup", r"BUG: workqueue lockup"),
        ("atomic-sleep", r"BUG: (?:scheduling while atomic|sleeping function called from invalid context)"),
        ("page-fault", r"BUG: (?:[Uu]nable to handle|[Kk]ernel NULL pointer)|(?:CPU \d+ )?Unable to handle (?:kernel|page)"),
        ("page-fault", r"kernel tried to execute NX-protected page"),
        # lockdep's own reports, which had their title in brackets up to 4.12.
        ("lockdep", r"(?:WARNING: |\[ (?:INFO|BUG): )(?:possible (?:circular|recursive) locking|possible irq lock inversion)"),
        (
            "lockdep",
            r"(?:WARNING: |\[ (?:INFO|BUG): )(?:inconsistent lock|bad unlock|bad contention|held lock freed|lock held when)",
        ),
        ("lockdep", r"(?:WARNING: |\[ (?:INFO|BUG): )(?:.*lock order|Nested lock|.* still has locks held|Invalid wait context)"),
        ("lockdep", r"INFO: trying to register non-static key"),
        ("rcu", r"(?:WARNING: |\[ INFO: )suspicious RCU usage"),
        ("rcu-stall", r"(?:rcu: )?INFO: rcu\w* .*(?:stall|detected)"),
        # A task may have the end of a line in its name.
        ("hung-task", r"(?:INFO: task )?.*:\d+ (?:blocked (?:for|in I/O wait for)|can't die for) more than \d+ seconds"),
        ("bug", r"kernel BUG at |Kernel BUG at |BUG: |BUG (?!UNIX )\S+ \("),
        ("general-protection", r"(?:Oops: )?general protection fault"),
        ("double-fault", r"(?:traps: )?PANIC: double fault|double fault: .*\[#\d"),
        (
            "oops",
            r"Oops(?:: |\[| - | \[)|Internal error: |Insufficient stack space|[\w ,/-]+(?:: [0-9a-f]{4}(?: ilc:\d)?)? ?\[#\d+\]",
        ),
        ("stack-overflow", r"Kernel stack overflow"),
        ("cfi", r"CFI failure at "),
        ("serror", r"SError Interrupt on CPU"),
        ("irq", r"irq \d+: nobody cared"),
        ("refcount", r"refcount_t: "),
        ("list", r"list_(?:add|del)(?: corruption|_valid)"),
        ("odebug", r"ODEBUG: (?!Out of memory)"),
        ("kmemleak", r"kmemleak: \d+ new suspected memory leaks|unreferenced object 0x[0-9a-f]+ \(size \d+\)"),
        ("slub", r"INFO: (?:Freed|Allocated) in \S+ age="),
        ("reference", r"unregister_netdevice: waiting for \S+ to become free"),
        ("reference", r"VFS: (?:Busy inodes after unmount|Close: file count is )"),
        ("ftrace", r"ftrace failed to modify|Failed on adding breakpoints"),
        ("out-of-memory", r".{1,16} invoked oom-killer: |Out of memory: Killed process |.{1,16}: page allocation failure: "),
        # Drivers and programs print the word too, before text of their own.
        ("warning", r"WARNING: (?:CPU: \d+ PID: \d+ |at \S+:\d+ |(?:\[.*\] )?\S+:\d+ at )"),
        (
            "warning",
            r"WARNING: (?:kernel stack|stack recursion|unrecognized unwind|can't (?:access|dereference)|\S+ leaked lock)",
        ),
    )
]

# Words of which every first line has one: most lines have none, and are done with.
_HINTS = (
    "BUG",
    "WARNING",
    "UBSAN: ",
    "Oops",
    "LOCKUP",
    " for more than ",
    "Unable to handle",
    "NX-protected",
    "INFO",
    "Internal error",
    "Insufficient stack",
    "ODEBUG",
    "VFS: ",
    "Failed on",
    "Out of memory",
    "Kernel panic",
    "Kernel stack",
    "PANIC: ",
    "CFI failure",
    "SError Interrupt",
    "nobody cared",
    "page allocation",
    "refcount_t: ",
    "list_add",
    "list_del",
    "kmemleak: ",
    "unreferenced object",
    "unregister_netdevice",
    "ftrace failed",
    "oom-killer",
    "[#",
)
_MAYBE = re.compile("|".join(map(re.escape, _HINTS)))
# Over many lines at once: capitals are rare, and are found fastest by one pattern, the rest by words.
_CAPITALS = re.compile("|".join(word for word in _HINTS if word[0].isupper()).encode())
_OTHERS = [word.encode() for word in _HINTS if not word[0].isupper()]
_CONTROLS = bytes([*range(0x09), 0x0B, 0x0C, *range(0x0E, 0x20), 0x7F])
"""May stand in the middle of a word, and are taken out by `clean`."""
_BLOCK = 1 << 17

_END = re.compile(r"---\[ end (?:trace|Kernel panic)|^=+$")


class _Report(Struct):
    """One that is being printed. `own` are the messages of whoever prints it; `lines` has those of others as well, such as a CPU
    that was asked for its backtrace, unless they print a report of their own."""

    kind: str
    title: str
    line: int
    fatal: bool
    lines: list[str]
    own: list[str]
    ended_at: int = 0

    def finished(self) -> Splat:
        function = culprit(self.kind, self.own)
        return Splat(self.kind, self.title, function, self.line, "\n".join(self.lines), self.fatal)


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
        maybe = _MAYBE.search(line) is not None
        if not maybe and not self._open:
            return []
        told = [(caller, message[:_WIDEST]) for caller, message in kernel_messages(line)]
        found = [(_classify(message) if maybe else "", caller, message) for caller, message in told]
        kind, caller, message = next((one for one in found if one[0]), found[-1])
        done = [
            self._open.pop(key).finished()
            for key, report in [*self._open.items()]
            if self._is_over(report, kind if key == caller else "")
        ]
        report = self._open.get(caller)
        if report:
            report.own.append(message)
            report.fatal |= kind in _FATAL
            if not report.ended_at and len(report.own) > 3 and _END.search(message):
                report.ended_at = self._number
        elif kind:
            report = self._open[caller] = _Report(kind, message.strip(), self._number, kind in _FATAL, [], [message])
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

    def _is_over(self, report: _Report, kind: str) -> bool:
        """`kind` is that of the line that its caller prints next."""
        if report.ended_at:
            return kind not in ("", "panic") or self._number - report.ended_at > _AFTERMATH
        return (kind != "" and kind not in _SEQUELS.get(report.kind, _ANY_SEQUEL)) or len(report.lines) >= _LONGEST


def scan(lines: Iterable[str | bytes]) -> list[Splat]:
    """All reports in a log, in the order in which they begin."""
    scanner = Scanner()
    found = [splat for line in lines for splat in scanner.feed(clean(line))]
    return _ordered(found, scanner)


def scan_file(file: IO[bytes]) -> list[Splat]:
    """The same, and quick about the long stretches of a log that hold none."""
    scanner = Scanner()
    found: list[Splat] = []
    while block := file.read(_BLOCK) + file.readline():
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
    return not plain or bool(_CAPITALS.search(block)) or any(word in block for word in _OTHERS)


def _classify(message: str) -> str:
    return next((kind for kind, pattern in FIRST_LINES if pattern.match(message)), "")
