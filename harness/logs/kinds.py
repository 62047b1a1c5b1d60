"""Kinds of kernel reports: how each begins, what may follow as a part of it, and how it ends.

Tables only; splat.py reads them. Patterns hold from the start of the message, after the prefix: text that merely mentions a
report further in is none."""

from __future__ import annotations

import re

from msgspec import Struct

# The first row that matches names the report, so special forms stand before general ones.
FIRST_LINES = [
    (kind, re.compile(pattern))
    for kind, pattern in (
        ("stack-protector", r"(?:Kernel panic - not syncing: )?stack-protector: Kernel stack is corrupted"),
        ("stack-overflow", r"Kernel panic - not syncing: corrupted stack end|BUG: (?:\w+ )*stack guard page was hit"),
        ("panic", r"Kernel panic - not syncing"),
        ("kasan", r"BUG: KASAN: "),
        ("kfence", r"BUG: KFENCE: "),
        ("kmsan", r"BUG: KMSAN: "),
        ("kcsan", r"BUG: KCSAN: "),
        ("ubsan", r"UBSAN: "),
        ("soft-lockup", r"(?:(?:NMI )?watchdog: )?BUG: soft lockup|.*BUG: soft lockup - CPU#\d+ stuck for "),
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
        ("kmemleak", r"BUG: memory leak"),
        ("bug", r"kernel BUG at |Kernel BUG at |BUG: |BUG \S{1,64}(?: \([^)]*\))?: (?!kasan: )"),
        ("general-protection", r"(?:Oops: )?general protection fault|.*general protection fault: [0-9a-f]{4} \[#\d"),
        ("double-fault", r"(?:traps: )?PANIC: double fault|double fault: .*\[#?\d"),
        (
            "oops",
            # Up to 2.6.24, x86 counted without a number sign.
            r"Oops(?:: |\[| - | \[)|Internal error: |[\w ,/-]+(?:(?:: [0-9a-f]{4}(?: ilc:\d)?)? ?\[#|: [0-9a-f]{4} \[)\d+\]",
        ),
        ("stack-overflow", r"Kernel stack overflow|Insufficient stack space"),
        ("cfi", r"CFI failure at "),
        ("serror", r"SError Interrupt on CPU"),
        ("irq", r"irq \d+: nobody cared"),
        ("refcount", r"refcount_t: "),
        ("list", r"list_(?:add|del)(?: corruption|_valid)"),
        ("odebug", r"ODEBUG: (?!Out of memory)"),
        ("kmemleak", r"kmemleak: \d+ new suspected memory leaks|unreferenced object 0x[0-9a-f]+ \(size \d+\)"),
        ("slub", r"Slab corruption(?: \(|: )|INFO: (?:Freed|Allocated) in \S+ age="),
        ("reference", r"unregister_netdevice: waiting for \S+ to become free"),
        ("reference", r"VFS: (?:Busy inodes after unmount|Close: file count is )"),
        ("ftrace", r"ftrace failed to modify|Failed on adding breakpoints"),
        ("out-of-memory", r".{1,16} invoked oom-killer: |Out of memory: Kill(?:ed)? process |.{1,16}: page allocation failure: "),
        # Drivers and programs print the word too, before text of their own.
        ("warning", r"WARNING: (?:CPU: \d+ PID: \d+ |at \S+:\d+(?: |$)|at [\w.]+\+0x|(?:\[.*\] )?\S+:\d+ at )"),
        # Before 2.6.27 and its WARNING, and what has a trace without one
        ("warning", r"Badness (?:at|in) \S+|RTNL: assertion failed at |sysctl table check failed: "),
        (
            "warning",
            r"WARNING: (?:kernel stack|stack recursion|unrecognized unwind|can't (?:access|dereference)|\S+ leaked lock)",
        ),
    )
]

# Every first line contains one of these words. Most lines contain none, so they need no further check.
HINTS = (
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
    "Slab corruption",
    "Badness ",
    "RTNL: ",
    # Cut so that they begin like other hints: the search is faster with few different first letters.
    "l table check failed: ",
    "[1] ",
)
MAYBE = re.compile("|".join(map(re.escape, HINTS)))
# For a search over many lines at once. One pattern is fastest for words with a capital, which are rare; `in` is for the rest.
CAPITALS = re.compile("|".join(word for word in HINTS if word[0].isupper()).encode())
OTHERS = [word.encode() for word in HINTS if not word[0].isupper()]

FATAL = ("panic", "stack-protector")
"""The kernel stops after a report of these kinds, and after any other whose first line contains PANIC."""
PANIC = "Kernel panic - not syncing"
STOPPED = (*FATAL, "oops", "page-fault", "general-protection", "double-fault", "stack-overflow", "cfi", "serror")
"""The kernel's code could not go on where it was."""
BUG_AT = re.compile(r"[kK]ernel BUG at ")
"""The title of a BUG(), which stops the kernel's code. Other reports of the kind `bug` do not."""
DIE_COUNTER = re.compile(r"\[#(\d+)\]")
"""Counts oopses (kernel: die_counter): another number is another oops."""

# The lines of an oops come in several forms one after the other: what it is, the Oops line with the counter, the panic. Only
# kinds that lead to an oops have sequels; of any other kind, only the panic belongs to it, and whatever else follows is a report
# of its own.
_OOPS = (*FATAL, "oops", "general-protection")
SEQUELS = {
    "page-fault": (*_OOPS, "page-fault", "stack-overflow"),
    "general-protection": _OOPS,
    "double-fault": (*_OOPS, "double-fault"),
    "oops": (*_OOPS, "stack-overflow"),
    "stack-overflow": (*_OOPS, "double-fault"),
    "cfi": _OOPS,
    "serror": _OOPS,
    "list": _OOPS,
}
AFTER_BUG_AT = _OOPS
"""Sequels of BUG()."""


class Part(Struct, frozen=True):
    """A first line that belongs to an open report of one of `kinds`, and begins no report of its own. It counts if at most
    `within` lines of that report come before it."""

    kinds: tuple[str, ...]
    pattern: re.Pattern[str]
    within: int
    once: bool = False
    """A second such line is a report of its own."""


PARTS = (
    # The text of a WARN() is printed before its file and line; up to 3.11, after them.
    Part(("refcount", "odebug", "list", "ftrace"), re.compile("WARNING: "), 12, once=True),
    Part(("warning",), re.compile("refcount_t: |list_(?:add|del)|ODEBUG: "), 4),
    # CONFIG_BUG_ON_DATA_CORRUPTION makes a BUG() of it.
    Part(("list",), re.compile("[kK]ernel BUG at .*list_debug"), 12),
    # SLUB names the object, who allocated it, and who freed it.
    Part(("bug", "slub"), re.compile("INFO: (?:Freed|Allocated) in "), 60),
    # kmemleak's title, and the first of the objects
    Part(("kmemleak",), re.compile("unreferenced object "), 2),
    # From the task that needed memory to the one that was killed there is a table of all tasks.
    Part(("out-of-memory",), re.compile(r"Out of memory: Kill(?:ed)? process "), 5000),
)

# scripts/decode_stacktrace.sh underlines with 8 and with 43 characters.
END = re.compile(r"---\[ end (?:trace|Kernel panic)|^(?!={8}$|={43}$)=+$|(?i:out of memory): Kill(?:ed)? process ")
LONGEST = {
    "out-of-memory": 5000,
    **dict.fromkeys(("lockdep", "rcu-stall", "soft-lockup", "hung-task", "stack-overflow"), 500),
}
"""The number of lines after which a report without an end line counts as ended, if it is not DEFAULT_LONGEST."""
DEFAULT_LONGEST = 200
