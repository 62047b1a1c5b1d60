"""Clean lines: what a guest printed, made safe to look at and to parse."""

from __future__ import annotations

import re
from collections.abc import Iterator

from harness.logs.prefix import prefix

_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*(?!\[ *\d+\.\d{6}\])[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
"""The kernel's log cuts into a program's sequence as it does into its words; a timestamp's bracket ends none."""
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
_SECTION = re.compile(r"section_(?:start|end):\d{1,20}:[\w.-]{1,200}(?:\[[^\]]{0,200}\])?\r")
"""The mark of a section in a GitLab log. It ends with a carriage return, so the text after it would join it."""
_NO_BREAK = str.maketrans("\xa0\u202f", "  ")
_UNPREFIXED = ("ok ", "not ok", "\t", "#")
"""How a line begins that has no prefix: a quick look at what most lines of KTAP are."""
_CUT_IN = re.compile(r".*\[ *\d+\.\d{6} ?\](?: ?\[ *(?P<caller>[TC]\d{1,10}) *\])? ")


def clean(raw: bytes | str) -> str:
    """One line without its end, ANSI sequences, control characters and the marks of GitLab's
    sections; broken UTF-8 is marked. A no-break space, which mail clients and browsers make of a
    space, is a space. Tabs stay."""
    text = raw.decode("utf-8", errors="replace") if isinstance(raw, bytes) else raw
    text = text.rstrip("\r\n")
    if text.isascii() and text.isprintable():
        return text
    if "section_" in text:
        text = _SECTION.sub("", text)
    return _CONTROL.sub("", _ANSI.sub("", text)).translate(_NO_BREAK)


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
    """The message of a line of the kernel's log, which may have come through dmesg, journalctl,
    syslog or a CI system."""
    if line.startswith(_UNPREFIXED) or (line.startswith(" ") and not line.lstrip(" ").startswith(("[", "<"))):
        return line
    return line[prefix(line).end :]


def kernel_messages(line: str) -> Iterator[tuple[str, str]]:
    """(caller, message) of the whole line, and of the last message inside of it: the kernel prints
    in the middle of a line too, after a prompt or part of a program's output. The caller is a task
    or a CPU, T123 or C0; empty without PRINTK_CALLER."""
    found = prefix(line)
    yield found.caller, line[found.end :].removeprefix(" ") if found.end else line
    if "]" in line[14:] and (inner := _CUT_IN.match(line)) and found.end < inner.end():
        yield inner["caller"] or "", line[inner.end() :]
