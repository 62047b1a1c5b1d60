"""Where it happened: the function that a report of the kernel's is about. It is rarely the one that printed the report, nor the
helper that tripped over what its caller did: those are listed in plumbing.txt, and are passed over.

The same bug shall have the same name from night to night, on every architecture: so system calls have one name, and functions
that stand for one another share one."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Sequence
from pathlib import Path

from harness.logs.traces import Trace, lock_sites, subjects, traces

_WRAPPER = re.compile(r"(?:__[a-z]+\d*\w*_|_+|k|compat_|C_)?(?:compat_)?(?:sys|SyS|SYSC)_(?=[a-z])")
"""Of a system call: each architecture has its own, and the compiler merges some of them."""


def _read_plumbing() -> dict[str, str]:
    text = (Path(__file__).parent / "plumbing.txt").read_text()
    sections = {}
    for section in re.split(r"^\[", text, flags=re.MULTILINE)[1:]:
        title, _, body = section.partition("\n")
        sections[title.partition("]")[0]] = body
    return sections


_SECTIONS = _read_plumbing()


def _any_of(words: Sequence[str]) -> re.Pattern[str]:
    return re.compile("|".join(fnmatch.translate(word) for word in words))


def _globs(*sections: str) -> re.Pattern[str]:
    return _any_of([word for section in sections for word in _SECTIONS[section].split()])


_FAMILIES = [(words[0], _any_of(words)) for line in _SECTIONS["family"].splitlines() if (words := line.split())]
_INTERRUPT_ENTRY = _globs("interrupt")
_RUNNERS = _globs("runner")
_ASLEEP = _globs("schedule")

_HELPERS = ("report", "lock", "data", "reference", "memory", "print", "wait")
_PLUMBING = _globs(*_HELPERS)
_PLUMBING_OF = {
    "atomic-sleep": _globs(*_HELPERS, "schedule"),
    "hung-task": _globs(*_HELPERS, "schedule", "sleep"),
    "kmemleak": _globs(*_HELPERS, "allocate"),
    "out-of-memory": _globs(*_HELPERS, "allocate"),
    "odebug": _globs(*_HELPERS, "object"),
    "rcu": _globs(*_HELPERS, "rcu"),
}
"""For kinds that pass over more than others."""

_DISPATCH_OF = {
    "rcu-stall": _globs("entry", "interrupt", "dispatch"),
    "soft-lockup": _globs("entry", "interrupt", "dispatch"),
    "hard-lockup": _globs("entry", "interrupt", "dispatch"),
    # An interrupt is at home on the stack that it overflows.
    "stack-overflow": _globs("entry", "dispatch"),
}
"""For kinds where it is chance in which function the CPU was caught."""


def culprit(kind: str, messages: Sequence[str]) -> str:
    """The function that a report is about; empty if it names none. `messages` are its lines without the prefix."""
    shown = list(traces(messages))
    if kind in _DISPATCH_OF:
        name = _asked_for(shown, _DISPATCH_OF[kind])
    elif kind == "lockdep":
        name = _lock_taker(messages, shown)
    elif kind == "panic":
        # Its text says what it is about; its trace is panic()'s caller's, who only gives up.
        name = next(iter(subjects(messages)), "")
    elif kind == "hung-task" and (family := next(filter(_family, _frames(shown)), "")):
        name = family
    else:
        # Who allocated a bad page is more than who found it.
        plumbing = _PLUMBING_OF.get("kmemleak" if messages[0].startswith("BUG: Bad page") else kind, _PLUMBING)
        name = _guilty([*subjects(messages), *_frames(shown)], plumbing)
    return _family(name) or _plain(name)


def _plain(name: str) -> str:
    """The name without what an architecture puts before that of a system call."""
    wrapper = _WRAPPER.match(name)
    return f"sys_{name[wrapper.end() :]}" if wrapper else name


def _family(name: str) -> str:
    """The first of those that stand for one another; empty if `name` is none of them."""
    return next((first for first, members in _FAMILIES if members.match(name)), "")


def _frames(shown: Sequence[Trace]) -> list[str]:
    """Those of the first trace that shows where it happened; what may be left over on the stack, if there is nothing else."""
    known = sorted((trace for trace in shown if trace.frames), key=lambda trace: trace.aside)
    return known[0].frames if known else next((trace.doubtful for trace in shown if trace.doubtful), [])


def _guilty(candidates: Sequence[str], plumbing: re.Pattern[str]) -> str:
    """The first that is no plumbing, or that was called by what runs tests and initcalls; else the first."""
    found = next((at for at, name in enumerate(candidates) if not plumbing.match(name)), None)
    if found is None:
        return candidates[0] if candidates else ""
    return candidates[found - 1 if found and _RUNNERS.match(candidates[found]) else found]


def _lock_taker(messages: Sequence[str], shown: Sequence[Trace]) -> str:
    """The function that took the lock, as lockdep says; if that is a lock's own function, its caller."""
    if "-safe -> " in messages[0]:
        # Whoever made the lock safe in interrupts relies on it; lockdep names him first, in a trace aside.
        safe = next((trace.frames for trace in shown if trace.aside and trace.frames), [])
        return _guilty(safe, _PLUMBING)
    site = next(lock_sites(messages), "")
    taken = next((trace.frames for trace in reversed(shown) if site in trace.frames), None)
    frames = _frames(shown) if taken is None else taken[taken.index(site) :]
    return _guilty([site, *frames] if site else frames, _PLUMBING)


def _asked_for(shown: Sequence[Trace], dispatch: re.Pattern[str]) -> str:
    """What the CPU was asked to do: the outermost function up to the first that hands calls on to whom they are for."""
    frames = next(filter(None, map(_interrupted, shown)), None)
    if frames is None:
        known = [trace.frames for trace in shown if trace.frames]
        awake = (each for each in known if not _ASLEEP.match(each[0]))
        frames = next(awake, known[0] if known else [])
    name = frames[0] if frames else ""
    for frame in frames:
        if _family(frame):
            return frame
        if dispatch.match(frame):
            break
        name = frame
    return name


def _interrupted(trace: Trace) -> list[str]:
    """The part of a trace that an interrupt interrupted, or all of one that begins with the registers; empty if it is neither."""
    if trace.from_registers:
        return trace.frames
    entries = (at + 1 for at, name in enumerate(trace.frames) if _INTERRUPT_ENTRY.match(name))
    starts = [start for start in (next(entries, None), trace.interrupted) if start is not None]
    if not starts:
        return []
    start = min(starts)
    while start < len(trace.frames) and _INTERRUPT_ENTRY.match(trace.frames[start]):
        start += 1
    return trace.frames[start:]
