"""Where it happened: the function that a report of the kernel's is about. It is rarely the one that printed the report, nor the
helper that tripped over what its caller did: those are listed in plumbing.txt, and are passed over.

The same bug shall have the same name from night to night, on every architecture: so the name is without the suffixes of compilers
and the prefixes of system call wrappers."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from msgspec import Struct

_NAME = r"\.?(?P<function>[A-Za-z_$][\w.$]*)"
_ADDRESS = r"(?:\[<[0-9a-f]+>\] *)"
# An offset, or what scripts/decode_stacktrace.sh makes of it
_OFFSET = r"(?:\+0x| \([^\s()]+:\d+[^()]*(?:\([^()]*\))?\))"


def _patterns(*patterns: str) -> list[re.Pattern[str]]:
    return [re.compile(pattern) for pattern in patterns]


_SUBJECTS = _patterns(
    rf"\bat \S+:\d+[,!]? {_NAME}{_OFFSET}",
    rf"\S+:\d+ at {_NAME}{_OFFSET}",
    rf"^WARNING: (?:CPU: \d+ PID: \d+ )?at {_NAME}{_OFFSET}",
    rf"^BUG: KCSAN: .* in {_NAME}(?: / (?P<other>[A-Za-z_]\w*))?",
    rf"^BUG: K\w+: .* in {_NAME}",
    rf"^caller is {_NAME}{_OFFSET}",
    rf"Kernel stack is corrupted in: {_NAME}\+0x",
    rf"^\s*last function: {_NAME}$",
)
"""What a report itself says that it is about."""
_REGISTERS = _patterns(
    rf"^(?:E?IP|RIP)(?:: | +| is at )(?:\w{{4}}:)?{_ADDRESS}*{_NAME}{_OFFSET}",
    rf"^(?:e?pc|epc|era|PC is at) *:? *(?:[0-9a-f]+ +)?{_ADDRESS}?{_NAME}{_OFFSET}",
    rf"^Krnl PSW : .*\({_NAME}{_OFFSET}",
    rf"^NIP \[[0-9a-f]+\] {_NAME}{_OFFSET}",
)
"""Where the CPU was. User space has no names here."""
_LINK = re.compile(rf"^LR (?:is at |\[[0-9a-f]+\] ){_NAME}{_OFFSET}")
_LOCK_SITE = re.compile(rf"\bat:? +{_ADDRESS}?{_NAME}{_OFFSET}")
"""Of a lock, in what lockdep prints."""
_FRAME = re.compile(
    rf"^\s*(?:#\d+: *)?(?:<\w+> *)?(?:\(?\[<?[0-9a-f]+>?\] *){{0,2}}(?P<doubt>\? )?{_NAME}(?: \[\w+\])?"
    rf"(?:\+0x[0-9a-f]+/0x[0-9a-f]+| \([^\s()]+:\d+[^()]*(?:\([^()]*\))?\))"
    # 32-bit Arm's own form, old and new
    rf"|^\s*{_ADDRESS}?\(?(?P<callee>[A-Za-z_][\w.]*)\)? from "
)
_TRACE = re.compile(r"(?:[Cc]all [Tt]race|[Bb]acktrace|stack trace).*:\s*$|^\s*backtrace \(crc \w+\):")
_OTHER_TRACE = re.compile(
    r"^(?:Allocated by|Freed by|Last potentially|Second to last|Uninit was|Local variable|which lock already|-> #\d)"
)
_INTERRUPT = re.compile(r"^\s*(?:</(?:IRQ|NMI)>|<EOI>|--- interrupt|--- Exception|Exception stack\()")
"""Between what an interrupt does and what it interrupted."""
_WRAPPER = re.compile(r"(?:__[a-z]+\d*\w*_|_+|k|compat_|C_)?(?:compat_)?(?:sys|SyS|SYSC)_(?=[a-z])")
"""Of a system call: each architecture has its own, and the compiler merges some of them."""


class _Trace(Struct):
    """A call trace: names of functions, innermost first. `interrupted` is where the part begins that was interrupted."""

    frames: list[str]
    doubtful: list[str]
    headed: bool = False
    registers: bool = False
    """It begins with where the CPU was, as the registers say."""
    interrupted: int | None = None


def _read_plumbing() -> dict[str, str]:
    text = (Path(__file__).parent / "plumbing.txt").read_text()
    sections = {}
    for section in re.split(r"^\[", text, flags=re.MULTILINE)[1:]:
        title, _, body = section.partition("\n")
        sections[title.partition("]")[0]] = body
    return sections


_SECTIONS = _read_plumbing()


def _globs(*sections: str) -> re.Pattern[str]:
    words = [word for section in sections for word in _SECTIONS[section].split()]
    return re.compile("|".join(fnmatch.translate(word) for word in words))


_FAMILIES = [
    (line.split()[0], re.compile("|".join(map(fnmatch.translate, line.split()))))
    for line in _SECTIONS["family"].splitlines()
    if line
]
_INTERRUPT_ENTRY = _globs("interrupt")
_DISPATCH = _globs("entry", "interrupt", "dispatch")
_HELPERS = ("report", "lock", "data", "reference", "memory", "print", "wait")
_PLUMBING = _globs(*_HELPERS)
_PLUMBING_OF = {
    "atomic-sleep": _globs(*_HELPERS, "schedule"),
    "hung-task": _globs(*_HELPERS, "schedule", "sleep"),
    "kmemleak": _globs(*_HELPERS, "allocate"),
    "odebug": _globs(*_HELPERS, "object"),
    "rcu": _globs(*_HELPERS, "rcu"),
}
"""Kinds of reports that pass over more than others."""
_REPORT = _globs("report")
_ASLEEP = _globs("schedule")
_STALLED = ("rcu-stall", "soft-lockup", "hard-lockup", "stack-overflow")


def culprit(kind: str, messages: Sequence[str]) -> str:
    """The function that a report is about; empty if it names none. `messages` are its lines without the prefix."""
    traces = list(_traces(messages))
    if kind in _STALLED:
        name = _stalled(traces)
    elif kind == "lockdep":
        name = _lock_site(messages, traces)
    elif kind == "panic":
        name = next(iter(_subjects(messages)), "")
    else:
        frames = next((trace.frames or trace.doubtful for trace in traces if trace.frames or trace.doubtful), [])
        if kind == "hung-task" and (family := next(filter(_family, frames), "")):
            frames = [family]
        name = _first_of([*_subjects(messages), *frames], _PLUMBING_OF.get(kind, _PLUMBING))
    return _family(name) or _plain(name)


def _plain(name: str) -> str:
    """The name without what an architecture puts before that of a system call."""
    wrapper = _WRAPPER.match(name)
    return f"sys_{name[wrapper.end() :]}" if wrapper else name


def _family(name: str) -> str:
    """The first of those that stand for one another; empty if `name` is none of them."""
    return next((first for first, members in _FAMILIES if members.match(name)), "")


def _subjects(messages: Iterable[str]) -> list[str]:
    """What the report itself names: one function, or two of a race."""
    for message in messages:
        for pattern in _SUBJECTS:
            if match := pattern.search(message):
                return [_bare(name) for name in match.groups() if name]
    return []


def _bare(name: str) -> str:
    """The name without the suffixes of compilers."""
    return name.partition(".")[0]


def _traces(messages: Iterable[str]) -> Iterator[_Trace]:
    """The traces in a report, in order; the registers count as a frame where they are printed."""
    trace = _Trace([], [])
    for message in messages:
        if _TRACE.search(message) or _OTHER_TRACE.match(message):
            if trace.frames and (trace.headed or not trace.registers):
                yield trace
                trace = _Trace([], [])
            trace.headed = True
        if _INTERRUPT.match(message) and trace.frames and trace.interrupted is None:
            trace.interrupted = len(trace.frames)
        register = next((match for pattern in _REGISTERS if (match := pattern.match(message))), None)
        if register:
            trace.registers |= not trace.frames
            trace.frames.append(_bare(register["function"]))
        elif link := _LINK.match(message):
            trace.doubtful.append(_bare(link["function"]))
        elif frame := _FRAME.match(message):
            name = frame["function"] or frame["callee"]
            (trace.doubtful if frame["doubt"] else trace.frames).append(_bare(name))
    yield trace


def _first_of(candidates: Sequence[str], plumbing: re.Pattern[str]) -> str:
    return next((name for name in candidates if not plumbing.match(name)), candidates[0] if candidates else "")


def _lock_site(messages: Sequence[str], traces: Sequence[_Trace]) -> str:
    """The function that took the lock, as lockdep says; if that is a lock's own, whoever called it."""
    sites = list(_lock_sites(messages))
    frames = next((trace.frames for trace in reversed(traces) if sites and sites[0] in trace.frames), None)
    if frames is None:
        frames = next((trace.frames for trace in traces if trace.frames), [])
    else:
        frames = frames[frames.index(sites[0]) :]
    return _first_of([*sites[:1], *frames], _PLUMBING)


def _lock_sites(messages: Iterable[str]) -> Iterator[str]:
    awaited = False
    for message in messages:
        match = _LOCK_SITE.search(message) or (_FRAME.match(message) if awaited else None)
        if match:
            yield _bare(match["function"])
        awaited = message.endswith(" at:")


def _stalled(traces: Sequence[_Trace]) -> str:
    """What the CPU was asked to do: where exactly it was is chance. That is the outermost function up to the first that only
    hands calls on to whom they are for."""
    frames = next(filter(None, map(_interrupted, traces)), None)
    if frames is None:
        shown = [trace.frames for trace in traces if trace.frames]
        frames = next((each for each in shown if not _ASLEEP.match(each[0])), shown[0] if shown else [])
    name = next((frame for frame in frames if not _REPORT.match(frame)), "")
    for frame in frames:
        if _family(frame):
            return frame
        if _DISPATCH.match(frame):
            break
        name = frame
    return name


def _interrupted(trace: _Trace) -> list[str]:
    """The part of a trace that an interrupt interrupted, or that begins with the registers; empty if it shows none."""
    frames = trace.frames
    if trace.registers:
        return frames
    entered = (at + 1 for at, name in enumerate(frames) if _INTERRUPT_ENTRY.match(name))
    starts = [start for start in (next(entered, None), trace.interrupted) if start is not None]
    if not starts:
        return []
    start = min(starts)
    while start < len(frames) and _INTERRUPT_ENTRY.match(frames[start]):
        start += 1
    return frames[start:]
