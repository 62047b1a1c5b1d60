"""Where it happened: the function that a report of the kernel's is about, which is rarely the one that printed it, nor the helper
in whose hands it went wrong."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

_NAME = r"(?P<function>[A-Za-z_][\w.]*)"

_WHERE = [
    re.compile(pattern)
    for pattern in (
        rf"\bat \S+:\d+[,!]? {_NAME}\+0x",
        rf"\S+:\d+ at {_NAME}\+0x",
        rf"^WARNING: (?:CPU: \d+ PID: \d+ )?at {_NAME}\+0x",
        rf"^BUG: K\w+: .* in {_NAME}",
        rf"^RIP: \w+:(?:\[<[0-9a-f]+>\] +(?:\[<[0-9a-f]+>\] )?)?{_NAME}\+0x",
        rf"^(?:E?IP|RIP)(?:: | is at )(?:\w+:)?(?:\[<[0-9a-f]+>\] )*{_NAME}\+0x",
        rf"^(?:e?pc|epc|era|PC is at) *:? *(?:[0-9a-f]+ +)?(?:\[<[0-9a-f]+>\] )?{_NAME}\+0x",
        rf"^Krnl PSW : .*\({_NAME}\+0x",
        rf"^NIP \[[0-9a-f]+\] {_NAME}\+0x",
        rf"^caller is {_NAME}\+0x",
        rf"^LR is at {_NAME}\+0x",
        rf"Kernel stack is corrupted in: {_NAME}\+0x",
        rf"^\s*last function: {_NAME}$",
    )
]
_WANTED = re.compile(rf"\bat:? +(?:\[<[0-9a-f]+>\] +)?{_NAME}\+0x")
"""Of a lock, in what lockdep prints."""
_FRAME = re.compile(
    rf"^\s*(?:#\d+: *)?(?:<\w+> *)?(?:\(?\[<?[0-9a-f]+>?\] *){{0,2}}(?P<doubt>\? )?{_NAME}(?: \[\w+\])?\+0x[0-9a-f]+/0x[0-9a-f]+"
    # 32-bit Arm's own form, old and new
    r"|^\s*(?:\[<[0-9a-f]+>\] )?\(?(?P<callee>[A-Za-z_][\w.]*)\)? from "
)
_TRACE = re.compile(r"(?:[Cc]all [Tt]race|[Bb]acktrace|stack trace).*:\s*$")
_OTHER_TRACE = re.compile(
    r"^(?:Allocated by|Freed by|Last potentially|Second to last|Uninit was|Local variable|which lock already|-> #\d)"
)


def _globs(*kinds: str) -> re.Pattern[str]:
    """Of plumbing.txt."""
    text = (Path(__file__).parent / "plumbing.txt").read_text()
    words: list[str] = []
    for section in re.split(r"^\[", text, flags=re.MULTILINE)[1:]:
        title, _, body = section.partition("\n")
        if title.partition("]")[0] in kinds:
            words += body.split()
    return re.compile("|".join(fnmatch.translate(word) for word in words))


_ENTRY = _globs("entry")
_DISPATCH = _globs("entry", "dispatch", "report")
_PLUMBING = _globs("entry", "report", "lock", "memory", "sleep", "wait")
_SLEEP = _globs("entry", "report", "sleep")


def culprit(kind: str, messages: Sequence[str]) -> str:
    """The function that a report is about; empty if it names none. `messages` are its lines without the printk prefix."""
    frames = list(_frames(messages))
    if kind in _STALLED:
        told = _outermost(frames) or _inner(_where(messages), frames)
    elif kind == "lockdep":
        told = _inner(_wanted(messages), frames)
    elif kind == "hung-task":
        told = next((one for one in frames if not _SLEEP.match(one)), "")
    else:
        told = _inner(_where(messages), frames)
    return told.partition(".")[0]


_STALLED = ("rcu-stall", "soft-lockup", "hard-lockup")


def _where(messages: Sequence[str]) -> str:
    for message in messages:
        for pattern in _WHERE:
            if match := pattern.search(message):
                return match["function"]
    return ""


def _wanted(messages: Sequence[str]) -> str:
    """The function that was taking the lock."""
    for message in messages:
        if match := _WANTED.search(message):
            return match["function"]
    return ""


def _frames(messages: Sequence[str]) -> Iterator[str]:
    """Of the first trace, innermost first. What was interrupted comes after what interrupted it."""
    begun = any_frame = False
    for message in messages:
        if _TRACE.search(message):
            if begun and any_frame:
                return
            begun = True
        elif begun and _OTHER_TRACE.match(message):
            return
        elif (match := _FRAME.match(message)) and not match["doubt"]:
            any_frame = begun
            yield match["function"] or match["callee"]


def _inner(first: str, frames: Sequence[str]) -> str:
    candidates = [first, *frames] if first else frames
    return next((one for one in candidates if not _PLUMBING.match(one)), candidates[0] if candidates else "")


def _outermost(frames: Sequence[str]) -> str:
    """What a task was asked to do, for where exactly it was is chance."""
    for one in reversed(frames):
        if not _DISPATCH.match(one):
            return one
    return ""
