"""The prefix of a line of a kernel's log: what the kernel, dmesg, journalctl, syslog and CI systems
write before a message.

A prefix is a row of pieces, which are taken off in turn: the stamp of a CI system, the date and
host of syslog, the level, the time, the caller. No piece has a fixed width: time and caller grow
with what they count (kernel/printk/printk.c, print_time and print_caller), and each program that
reads the log back pads them in its own way. A piece is a small pattern that is tried only where its
first character stands, and a prefix has at most _MOST_PIECES, so the work for a line is
proportional to its length."""

from __future__ import annotations

import re

from msgspec import Struct

_CLOCK = r"\d\d:\d\d:\d\d(?:[.,]\d{1,9})?"
_DAY = r"\d{4}-\d\d-\d\d"
_ISO = rf"{_DAY}[T ]{_CLOCK}(?:Z| ?[+-]\d\d:?\d\d| UTC)?"
# The names of days and months follow the user's locale.
_WEEKDAY = r"[^\W\d]{2,5}\.?"
_MONTH = r"[^\W\d]{3,5}\.?"
_SECONDS = r"\d{1,12}\.\d{1,9}"
_DELTA = rf"< *{_SECONDS} *>"
_FACILITY = r"(?:kern|user|mail|daemon|auth|syslog|lpr|news|uucp|cron|authpriv|ftp|local[0-7])"
_PRIORITY = r"(?:emerg|alert|crit|err|warn|notice|info|debug)"

_MOST_PIECES = 8
_LONGEST_INDENT = 64
"""Spaces that may stand before a time, as in a log that a mail quotes."""


def _any_of(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(patterns))


_TIME = _any_of(
    # printk; dmesg --show-delta; journalctl -o short-delta; grabserial writes a delta without angles
    rf"\[[ \t]*{_SECONDS} *(?:{_DELTA}|{_SECONDS})?\] ?",
    # dmesg --show-delta --notime; dmesg --human
    rf"\[{_DELTA}\] ?",
    rf"\[ *\+{_SECONDS}\] ?",
    rf"\[{_MONTH} ?\d{{1,2}} \d\d:\d\d\] ?",
    # dmesg --ctime
    rf"\[{_WEEKDAY} {_MONTH} [ \d]\d {_CLOCK} \d{{4}}(?: {_DELTA})?\] ?",
)
_CALLER = re.compile(r"\[ *(?P<caller>[TC]\d{1,10}) ?\] ?")
_VENDOR_CALLER = re.compile(r"(?: ?[A-Z]| )?\[ ?\d{1,3}: *[A-Za-z(][^\]]{0,40}: *(?P<pid>\d{1,10})\] ?")
"""CPU, name and number of the task, which the kernels of some phones put behind the time."""
_LEVEL = _any_of(
    # printk's own; syslog's, with the version of RFC 5424
    rf"<\d{{1,3}}>(?:1 (?={_DAY}))?",
    # dmesg --decode
    rf"{_FACILITY} *:{_PRIORITY} *: ?",
)
_STAMP = _any_of(
    # GitHub, LAVA, tuxrun, dmesg --time-format iso, journalctl -o short-iso; GitLab adds the stream,
    # and a plus where a line goes on
    rf"\ufeff?{_ISO}(?: [0-9a-f]{{2}}[OE][ +]| |$)",
    # Jenkins, minicom, tio
    rf"\[(?:{_ISO}|{_CLOCK})\] ?",
    rf"{_CLOCK} ",
    # journalctl -o short-unix
    r"\d{9,11}\.\d{3,9} ",
    # syslog and journalctl -o short, short-precise; journalctl -o short-full
    rf"{_MONTH} [ \d]\d {_CLOCK} ",
    rf"{_WEEKDAY} {_DAY} {_CLOCK} [A-Z+-][A-Z0-9:+-]{{1,8}} ",
    # `gh run view --log`: job and step
    rf"[^\t\n]{{1,100}}\t[^\t\n]{{1,100}}\t(?=\ufeff?{_DAY}T)",
    # Console multiplexers
    r"[\w-]{0,20}console[\w-]{0,20}: ",
    r"[\w./@-]{1,60}(?: *\||:) (?= *(?:<\d{1,3}>)?\[ *\d+\.\d)",
)
_HEAD = _any_of(
    # The host may be left out.
    r"(?:[^\s\[<]\S{0,254} )?(?:kernel|vmunix)(?:\[[^\]\s]{0,20}\])?: ",
    # RFC 5424
    r"\S{1,255} kernel \S{1,128} \S{1,32} (?:-|\[[^\]]{0,500}\]) ",
)
"""Host and program. They count only after a date or a time."""
_RECORD = re.compile(
    r"(?:\d{1,3}\.[\w.+~-]{1,80},)?\d{1,4},\d{1,20},\d{1,20}(?:,(?:caller=(?P<caller>[TC]\d{1,10})|[^;,]{0,100})){0,6};"
)
"""/dev/kmsg (Documentation/ABI/testing/dev-kmsg), and netconsole, which may put the release before it."""


_PRINTK = re.compile(r"\[ *\d{1,12}\.\d{1,9}\](?:\[ *(?P<caller>[TC]\d{1,10})\])? (?! {0,64}[\[<]|[A-Z]\[)")
"""The most frequent prefix, as the kernel itself prints it, where no other piece can follow."""


class Prefix(Struct, frozen=True, gc=False):
    """`end` is where the message begins. `caller` is the task or the CPU that printed it, T123 or
    C0; empty without PRINTK_CALLER."""

    end: int = 0
    caller: str = ""


def prefix(line: str) -> Prefix:
    """The prefix of a line that was cleaned; its `end` is 0 if it has none."""
    if (match := _PRINTK.match(line)) and (match["caller"] or "kernel" not in line):
        return Prefix(match.end(), match["caller"] or "")
    end = 0
    stamped = timed = False
    for _ in range(_MOST_PIECES):
        if timed and (match := _VENDOR_CALLER.match(line, end)):
            return Prefix(match.end(), f"T{match['pid']}")
        start = _past_indent(line, end)
        first = line[start : start + 1]
        if first == "[":
            if match := _TIME.match(line, start):
                timed = True
            elif match := _CALLER.match(line, start):
                return Prefix(match.end(), match["caller"])
            elif not timed:
                match = _STAMP.match(line, start)
        elif start != end and first != "<":
            break
        elif (stamped or timed) and (match := _HEAD.match(line, start)):
            pass
        elif not timed or first == "<":
            match = _LEVEL.match(line, start) or _STAMP.match(line, start)
            if not match and (record := _RECORD.match(line, start)):
                return Prefix(record.end(), record["caller"] or "")
        else:
            break
        if not match:
            break
        end, stamped = match.end(), True
    return Prefix(end)


def _past_indent(line: str, start: int) -> int:
    end = start
    while end - start < _LONGEST_INDENT and line[end : end + 1] == " ":
        end += 1
    return end
