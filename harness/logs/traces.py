"""Read the call traces, the registers and the function names in a kernel report. The result has the same form for six
architectures, for old and new kernels, raw or after scripts/decode_stacktrace.sh. frames.py interprets it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from msgspec import Struct

# Functions of big-endian PowerPC begin with a dot; a C++ or Rust name may hold a dollar sign.
_NAME = r"\.?(?P<function>[A-Za-z_$][\w.$]*)"
_ADDRESS = r"(?:\[<[0-9a-f]+>\] *)"
_DECODED = r" \([^\s()]+:\d+[^()]*(?:\([^()]*\))?\)"
"""decode_stacktrace.sh replaces the offset by file and line, and sometimes a discriminator in brackets."""
_OFFSET = rf"(?:\+0x|{_DECODED})"


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
_REGISTERS = _patterns(
    rf"^(?:E?IP|RIP)(?:: | +| is at )(?:\w{{4}}:)?{_ADDRESS}*{_NAME}{_OFFSET}",
    rf"^(?:e?pc|era|PC is at)(?: *: *| +)(?:[0-9a-f]+ +)?{_ADDRESS}?{_NAME}{_OFFSET}",
    rf"^Krnl PSW : .*\({_NAME}{_OFFSET}",
    rf"^NIP \[[0-9a-f]+\] {_NAME}{_OFFSET}",
)
"""The program counter, if it was in the kernel. An address of user space has no name, so it does not match."""
_LINK = re.compile(rf"^LR (?:is at |\[[0-9a-f]+\] ){_NAME}{_OFFSET}")
_LOCK_SITE = re.compile(rf"\bat:? +{_ADDRESS}?{_NAME}{_OFFSET}")
_FRAME = re.compile(
    rf"^\s*(?:#\d+: *)?(?:<\w+> *)?(?:\(?\[<?[0-9a-f]+>?\] *){{0,2}}(?P<doubt>\? )?{_NAME}(?: \[\w+\])?"
    rf"(?:\+0x[0-9a-f]+/0x[0-9a-f]+|{_DECODED})"
)
_ARM_FRAME = re.compile(rf"^\s*{_ADDRESS}?\(?(?P<function>[A-Za-z_][\w.]*)\)? from {_ADDRESS}?\(?(?P<caller>[A-Za-z_][\w.]*)")
"""32-bit Arm's own form, old and new: a line names a function and its caller."""
_TITLE = re.compile(r"(?:[Cc]all [Tt]race|[Bb]acktrace|stack trace).*:\s*$|^Backtrace: |^\s*backtrace \(crc \w+\):")
_TITLE_ASIDE = re.compile(
    r"^\s*(?:Allocated by|Freed by|Last potentially|Second to last|Uninit was|Local variable|which lock already|-> #\d"
    r"|Preemption disabled at:|(?:\.\.\. )?which became )"
)
_NEXT_CPU = re.compile(r"NMI backtrace for cpu |Sending NMI ")
_INTERRUPT = re.compile(r"^\s*(?:</(?:IRQ|NMI)>|<EOI>|--- interrupt|--- Exception|Exception stack\()")
"""A mark between the frames of an interrupt and the frames that it interrupted."""


class Trace(Struct):
    """A call trace: names of functions without the suffixes of compilers, innermost first. The function that the registers name
    is a frame where it is printed."""

    frames: list[str]
    doubtful: list[str]
    """Functions that may be stale data on the stack: frames with a question mark, the link register."""
    titled: bool = False
    aside: bool = False
    """The trace shows an earlier event, such as the allocation of the memory."""
    from_registers: bool = False
    """The first frame is the program counter of the CPU's registers."""
    interrupted: int | None = None
    """Index of the first interrupted frame; None if the trace has no such mark."""


def traces(messages: Iterable[str]) -> Iterator[Trace]:
    """The traces in a report, in order."""
    trace, outermost = Trace([], []), ""
    for message in messages:
        aside = _TITLE_ASIDE.match(message) is not None
        titled = aside or _TITLE.search(message) is not None
        # Registers, and a frame or two, may stand before the title of their trace.
        ended = (titled and trace.titled) or _NEXT_CPU.match(message)
        if ended and trace.frames:
            yield _whole(trace, outermost)
            trace, outermost = Trace([], []), ""
        trace.titled |= titled
        trace.aside |= aside
        if trace.frames and _INTERRUPT.match(message):
            trace, outermost = _whole(trace, outermost), ""
            trace.interrupted = len(trace.frames) if trace.interrupted is None else trace.interrupted
        outermost = _add(trace, message) or outermost
    yield _whole(trace, outermost)


def _add(trace: Trace, message: str) -> str:
    """Adds the frame in `message`, if there is one. Gives the caller's name if the line has one."""
    register = next((match for pattern in _REGISTERS if (match := pattern.match(message))), None)
    if register:
        trace.from_registers |= not trace.frames
        trace.frames.append(bare(register["function"]))
    elif link := _LINK.match(message):
        trace.doubtful.append(bare(link["function"]))
    elif frame := _FRAME.match(message):
        (trace.doubtful if frame["doubt"] else trace.frames).append(bare(frame["function"]))
    elif frame := _ARM_FRAME.match(message):
        trace.frames.append(bare(frame["function"]))
        return bare(frame["caller"])
    return ""


def _whole(trace: Trace, outermost: str) -> Trace:
    """Add the last caller that 32-bit Arm printed. Every other caller is the function of the next line, which is more reliable:
    after a call that does not return, the return address belongs to the next function in memory."""
    if outermost:
        trace.frames.append(outermost)
    return trace


def subjects(messages: Iterable[str]) -> list[str]:
    """The function that the report's own text names; two for a data race, none if it names none."""
    for message in messages:
        for pattern in _SUBJECTS:
            if match := pattern.search(message):
                return [bare(name) for name in match.groups() if name]
    return []


def lock_sites(messages: Iterable[str]) -> Iterator[str]:
    """The functions that took the locks which lockdep lists; the lock that the report is about comes first."""
    announced = False
    for message in messages:
        match = _LOCK_SITE.search(message) or (_FRAME.match(message) if announced else None)
        if match:
            yield bare(match["function"])
        announced = message.endswith(" at:")


def bare(name: str) -> str:
    """The name without the suffixes of compilers, such as .isra.0 and .cold."""
    return name.partition(".")[0]
