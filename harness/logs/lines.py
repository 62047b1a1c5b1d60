"""Clean lines: what a guest printed, made safe to look at and to parse."""

from __future__ import annotations

import re

_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
# A log may have come through syslog or the journal, and dmesg -T makes dates of times.
_SYSLOG = r"<\d+>|(?:\w{3} [ \d]\d|\d{4}-)\S* ?\S* \S+ kernel: "
_TIME = r"\[ *\d+\.\d+\]|\[\w{3} \w{3} [ \d]\d \d\d:\d\d:\d\d \d{4}\]"
_CALLER = r"\[ *[TC]\d+\]"
_PRINTK = re.compile(rf"^(?:(?:{_SYSLOG})?(?:{_TIME})(?:{_CALLER})?|{_SYSLOG}|{_CALLER}) ?")


def clean(raw: bytes | str) -> str:
    """One line without its end, ANSI sequences and control characters; broken UTF-8 is marked. Tabs stay."""
    text = raw.decode("utf-8", errors="replace") if isinstance(raw, bytes) else raw
    return _CONTROL.sub("", _ANSI.sub("", text.rstrip("\r\n")))


def without_printk_prefix(line: str) -> str:
    """The message of a line of the kernel's log. Timestamp and caller tag have no fixed width: both grow with what they
    count (kernel/printk/printk.c, print_time and print_caller)."""
    return _PRINTK.sub("", line, count=1)
