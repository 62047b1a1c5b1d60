"""Clean lines: what a guest printed, made safe to look at and to parse."""

from __future__ import annotations

import re
from collections.abc import Iterator

_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
# A log may have come through syslog or the journal, and dmesg -T makes dates of times.
_CLOCK = r"\d\d:\d\d:\d\d"
_SYSLOG = rf"<\d+>|(?:\w{{3}} [ \d]\d {_CLOCK}(?:\.\d{{1,9}})?|\d{{4}}-\d\d-\d\d[T ]{_CLOCK}\S{{0,20}}) \S{{1,255}} kernel: "
_TIME = r"\[ *\d+\.\d+\]|\[\w{3} \w{3} [ \d]\d \d\d:\d\d:\d\d \d{4}\]"
_CALLER = r"\[ *(?P<caller%s>[TC]\d+)\]"
_STAMP = rf"(?:{_SYSLOG})?(?:{_TIME})(?:{_CALLER % 1})?"
_PRINTK = re.compile(rf"(?:{_STAMP}|{_SYSLOG}|{_CALLER % 2}) ?")
_UNPREFIXED = ("ok ", "not ok", " ", "\t", "#")
"""How a line begins that has no prefix: a quick look at what most lines of KTAP are."""
_CUT_IN = re.compile(rf".*\[ *\d+\.\d{{6}}\](?:{_CALLER % 1})? ")


def clean(raw: bytes | str) -> str:
    """One line without its end, ANSI sequences and control characters; broken UTF-8 is marked. Tabs stay."""
    text = raw.decode("utf-8", errors="replace") if isinstance(raw, bytes) else raw
    text = text.rstrip("\r\n")
    return text if text.isascii() and text.isprintable() else _CONTROL.sub("", _ANSI.sub("", text))


def clean_text(text: str) -> str:
    """Lines, each clean: what a terminal, a log or XML can hold."""
    return "\n".join(clean(line) for line in text.split("\n"))


def shortened(text: str, most: int) -> str:
    """At most `most` characters, 100 or more: of a longer text its beginning and its end, and how long it is between them."""
    if len(text) <= most:
        return text
    said = f"\n[... {len(text)} characters in all ...]\n"
    half = (most - len(said)) // 2
    return text[:half] + said + text[-half:]


def without_printk_prefix(line: str) -> str:
    """The message of a line of the kernel's log. Timestamp and caller tag have no fixed width: both grow with what they
    count (kernel/printk/printk.c, print_time and print_caller)."""
    match = None if line.startswith(_UNPREFIXED) else _PRINTK.match(line)
    return line[match.end() :] if match else line


def kernel_messages(line: str) -> Iterator[tuple[str, str]]:
    """(caller, message): of the whole line, and of the last message in it, for the kernel prints wherever the line has got to,
    behind a prompt or half a word of a program. The caller is a task or a CPU, T123 or C0; empty without PRINTK_CALLER."""
    match = _PRINTK.match(line)
    yield (match["caller1"] or match["caller2"] or "", line[match.end() :].removeprefix(" ")) if match else ("", line)
    if "]" in line[14:] and (inner := _CUT_IN.match(line)) and not (match and match.end() >= inner.end()):
        yield inner["caller1"] or "", line[inner.end() :]
