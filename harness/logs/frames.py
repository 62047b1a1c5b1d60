"""Find the function that a kernel report is about. It is rarely the function that printed the report, or a helper that failed
because of its caller's mistake: plumbing.txt lists those, and they are skipped.

The same bug must have the same name in every run and on every architecture. So a system call has one name, and functions that do
the same thing share the name of the first."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Sequence
from pathlib import Path

from harness.logs.traces import Trace, lock_sites, subjects, traces

_WRAPPER = re.compile(r"(?:__[a-z]+\d*\w*_|_+|k|compat_|C_)?(?:compat_)?(?:sys|SyS|SYSC)_(?=[a-z])")
"""The prefix of a system call's function: each architecture has its own, and the compiler merges some of them."""


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
"""The functions to skip for a kind, where they are not `_PLUMBING`."""

_DISPATCH_OF = {
    "rcu-stall": _globs("entry", "interrupt", "dispatch"),
    "soft-lockup": _globs("entry", "interrupt", "dispatch"),
    "hard-lockup": _globs("entry", "interrupt", "dispatch"),
    # An interrupt handler may overflow its own stack, so interrupt entries are not skipped.
    "stack-overflow": _globs("entry", "dispatch"),
}
"""For kinds that interrupt the CPU at a random place, so that the innermost function means nothing: the functions that only call
others."""


def culprit(kind: str, messages: Sequence[str]) -> str:
    """The function that a report is about; empty if it names none. `messages` are its lines without the prefix."""
    shown = list(traces(messages))
    if kind in _DISPATCH_OF:
        name = _asked_for(shown, _DISPATCH_OF[kind])
    elif kind == "lockdep":
        name = _lock_taker(messages, shown)
    elif kind == "panic":
        # The text names the function. The trace shows only the caller of panic(), which gave up.
        name = next(iter(subjects(messages)), "")
    elif kind == "hung-task" and (family := next(filter(_family, _frames(shown)), "")):
        name = family
    else:
        # For a bad page, the function that allocated it says more than the one that detected it.
        plumbing = _PLUMBING_OF.get("kmemleak" if messages[0].startswith("BUG: Bad page") else kind, _PLUMBING)
        name = _guilty([*subjects(messages), *_frames(shown)], plumbing)
    return _family(name) or _plain(name)


def _plain(name: str) -> str:
    """The name, with `sys_` in place of the architecture's prefix of a system call."""
    wrapper = _WRAPPER.match(name)
    return f"sys_{name[wrapper.end() :]}" if wrapper else name


def _family(name: str) -> str:
    """The first function of the family that `name` belongs to; empty if it belongs to none."""
    return next((first for first, members in _FAMILIES if members.match(name)), "")


def _frames(shown: Sequence[Trace]) -> list[str]:
    """The frames of the first trace, where traces of earlier events come last. If no trace has a reliable frame, the doubtful
    frames of the first one that has any."""
    known = sorted((trace for trace in shown if trace.frames), key=lambda trace: trace.aside)
    return known[0].frames if known else next((trace.doubtful for trace in shown if trace.doubtful), [])


def _guilty(candidates: Sequence[str], plumbing: re.Pattern[str]) -> str:
    """The first candidate that is no plumbing. If that is a function which runs tests and initcalls, the candidate before it; if
    all are plumbing, the first one."""
    found = next((at for at, name in enumerate(candidates) if not plumbing.match(name)), None)
    if found is None:
        return candidates[0] if candidates else ""
    return candidates[found - 1 if found and _RUNNERS.match(candidates[found]) else found]


def _lock_taker(messages: Sequence[str], shown: Sequence[Trace]) -> str:
    """The function that took the lock, as lockdep reports it; if that is a locking primitive, its caller."""
    if "-safe -> " in messages[0]:
        # The function that made the lock irq-safe relies on that. lockdep prints it first, in a trace of an earlier event.
        safe = next((trace.frames for trace in shown if trace.aside and trace.frames), [])
        return _guilty(safe, _PLUMBING)
    site = next(lock_sites(messages), "")
    taken = next((trace.frames for trace in reversed(shown) if site in trace.frames), None)
    frames = _frames(shown) if taken is None else taken[taken.index(site) :]
    return _guilty([site, *frames] if site else frames, _PLUMBING)


def _asked_for(shown: Sequence[Trace], dispatch: re.Pattern[str]) -> str:
    """The function in which the CPU was busy: the outermost one below the first dispatcher, such as a system call's entry."""
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
    """The frames that an interrupt interrupted. All frames if the trace begins with the registers; empty if there was no
    interrupt."""
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
