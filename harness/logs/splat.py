"""Find the kernel's reports of trouble (splats) in a log: BUG, WARNING, oops, panic, KASAN, lockdep, stalls.

The first line of each kind is a row of a table. Patterns hold from the start of the message, after the printk prefix: text
that merely mentions one further in is no splat."""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec
from msgspec import Struct

from harness.logs.lines import clean, without_printk_prefix

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
_SEQUELS = ("oops", "panic", "page-fault", "bug")
"""What follows as part of a report that is being printed, such as the Oops line of a page fault and the panic after it."""

# The first row that matches names the report, so special forms stand before general ones.
_KINDS = [
    (kind, re.compile(pattern))
    for kind, pattern in (
        ("stack-protector", r"(?:Kernel panic - not syncing: )?stack-protector: Kernel stack is corrupted"),
        ("panic", r"Kernel panic - not syncing"),
        ("kasan", r"BUG: KASAN: "),
        ("kfence", r"BUG: KFENCE: "),
        ("kmsan", r"BUG: KMSAN: "),
        ("kcsan", r"BUG: KCSAN: "),
        ("ubsan", r"UBSAN: "),
        ("soft-lockup", r"watchdog: BUG: soft lockup"),
        ("hard-lockup", r"(?:NMI )?watchdog: .*hard LOCKUP"),
        ("workqueue-lockup", r"BUG: workqueue lockup"),
        ("atomic-sleep", r"BUG: (?:scheduling while atomic|sleeping function called from invalid context)"),
        ("page-fault", r"BUG: (?:[Uu]nable to handle|kernel NULL pointer)|Unable to handle (?:kernel|page)"),
        ("page-fault", r"kernel tried to execute NX-protected page"),
        ("lockdep", r"WARNING: (?:possible (?:circular locking|recursive locking|irq lock inversion))"),
        ("lockdep", r"WARNING: (?:inconsistent lock state|bad unlock balance|held lock freed|lock held when)"),
        ("lockdep", r"WARNING: .*lock order|INFO: trying to register non-static key"),
        ("rcu", r"WARNING: suspicious RCU usage"),
        ("rcu-stall", r"(?:rcu: )?INFO: rcu\w* .*(?:stall|detected)"),
        ("hung-task", r"INFO: task .* blocked (?:for|in I/O wait for) more than \d+ seconds"),
        ("bug", r"kernel BUG at |Kernel BUG at |BUG: |BUG \S+ \("),
        ("general-protection", r"(?:Oops: )?general protection fault"),
        ("double-fault", r"(?:traps: )?(?:PANIC: )?double fault"),
        ("oops", r"Oops(?:: |\[| - )|Internal error: |Insufficient stack space|[\w /-]+: [0-9a-f]{4}(?: ilc:\d)? \[#\d+\]"),
        ("refcount", r"refcount_t: "),
        ("list", r"list_(?:add|del)(?: corruption|_valid)"),
        ("odebug", r"ODEBUG: "),
        ("kmemleak", r"kmemleak: \d+ new suspected memory leaks"),
        ("ftrace", r"ftrace failed to modify|Failed on adding breakpoints"),
        ("out-of-memory", r"\S+ invoked oom-killer: |Out of memory: Killed process "),
        # QEMU's nvram is empty, and arch/powerpc/kernel/nvram_64.c says so in capitals.
        ("warning", r"WARNING: (?!nvram )"),
    )
]

# What a pattern may begin with costs one look at a line that is none of them, which most lines are.
_HINT = re.compile(
    r"BUG|WARNING|UBSAN|Oops|panic|LOCKUP|Unable|NX-prot|stack-prot|INFO|general prot|double fault|Internal err"
    r"|Insufficient|refcount_t|list_|ODEBUG|kmemleak|ftrace failed|Failed on|oom-killer|Out of memory|\[#\d"
)

_END = re.compile(r"---\[ end (?:trace|Kernel panic)|^=+$")

_WHERE = [
    re.compile(pattern)
    for pattern in (
        r"\bat \S+:\d+,? (?P<function>[\w.]+)\+0x",
        r"^BUG: K\w+: .* in (?P<function>[\w.]+)",
        r"^RIP: \w+:(?P<function>[\w.]+)\+0x",
        r"^(?:e?pc|epc|era) *: +(?:[0-9a-f]+ +)?(?P<function>[\w.]+)\+0x",
        r"^Krnl PSW : .*\((?P<function>[\w.]+)\+0x",
        r"^NIP \[[0-9a-f]+\] (?P<function>[\w.]+)\+0x",
    )
]
_FRAME = re.compile(r"^\s+(?:\[<?[0-9a-f]+>?\] *)?(?:\(\[<[0-9a-f]+>\] *)?(?P<function>[\w.]+)\+0x")
_REPORTERS = re.compile(
    r"^(?:dump_(?:stack|backtrace)|show_stack|print_|kasan_|__kasan|__asan|report_bug|__warn|lockdep_|panic|check_panic"
    r"|__might_|lock_release|lock_acquire|__lock_acquire|check_noncircular|mark_lock|rcu_|sched_show_task|__ubsan|ubsan)"
)


class Scanner:
    """Feed it lines one by one; it gives each report back when it has ended. `open` is the one being printed."""

    def __init__(self) -> None:
        self._number = 0
        self._current: Splat | None = None
        self._lines: list[str] = []
        self._ended_at = 0

    @property
    def open(self) -> list[Splat]:
        return [self._finished()] if self._current else []

    def feed(self, line: str) -> list[Splat]:
        self._number += 1
        message = without_printk_prefix(line)
        kind = _classify(message)
        done: list[Splat] = []
        if self._current is not None and self._is_over(kind):
            done = self.finish()
        if self._current is None:
            if kind:
                self._current = Splat(kind, message.strip(), "", self._number, fatal=kind in _FATAL)
                self._lines = [line]
                self._ended_at = 0
        else:
            self._lines.append(line)
            if kind in _FATAL:
                self._current = msgspec.structs.replace(self._current, fatal=True)
            if not self._ended_at and len(self._lines) > 3 and _END.search(message):
                self._ended_at = self._number
        return done

    def finish(self) -> list[Splat]:
        """The report that the end of the log cut short."""
        done = self.open
        self._current = None
        return done

    def _is_over(self, kind: str) -> bool:
        assert self._current is not None
        if self._ended_at:
            return kind not in ("", "panic") or self._number - self._ended_at > _AFTERMATH
        # The kernel goes on after a warning: what follows is a report of its own, and must have its own title.
        sequels = ("panic",) if self._current.kind == "warning" else _SEQUELS
        return (kind != "" and kind not in sequels) or len(self._lines) >= _LONGEST

    def _finished(self) -> Splat:
        assert self._current is not None
        text = "\n".join(self._lines)
        return msgspec.structs.replace(self._current, function=_function(self._lines), text=text)


def scan(text: Iterable[str | bytes]) -> list[Splat]:
    """All reports in a log."""
    scanner = Scanner()
    found = [splat for line in text for splat in scanner.feed(clean(line))]
    return found + scanner.finish()


def _classify(message: str) -> str:
    if not _HINT.search(message):
        return ""
    return next((kind for kind, pattern in _KINDS if pattern.match(message)), "")


def _function(report: list[str]) -> str:
    messages = [without_printk_prefix(line) for line in report]
    for message in messages:
        for pattern in _WHERE:
            if match := pattern.search(message):
                return match["function"]
    for message in messages:
        if (match := _FRAME.match(message)) and not _REPORTERS.match(match["function"]):
            return match["function"]
    return ""
