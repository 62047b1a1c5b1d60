"""What came of a case, and of a run."""

from __future__ import annotations

import hashlib
import re
from enum import StrEnum

from msgspec import Struct


class Outcome(StrEnum):
    """What became of a case. The first five are what the test said, the rest is what became of the guest or of us."""

    PASS = "pass"
    FAIL = "fail"
    SKIP = "skip"
    XFAIL = "xfail"
    UNRESOLVED = "unresolved"
    CRASH = "crash"
    """The kernel oopsed, panicked or splatted during it."""
    TIMEOUT = "timeout"
    """Its deadline passed."""
    LOST = "lost"
    """The guest stopped answering, no exit status came back, or a planned case never reported."""
    ERROR = "error"
    """Infrastructure."""
    FLAKY = "flaky"
    """Red at first, it passed when it was tried again: with the same kernel, in the same run."""

    @property
    def green(self) -> bool:
        return self in (Outcome.PASS, Outcome.SKIP, Outcome.XFAIL)


def label_of(case: str) -> str:
    """What the agent's marks on the console call a case, by its id: one word. ftracetest runs both of a pair at once."""
    suite, _, name = case.partition(":")
    if suite == "command":
        return f"{suite}:{hashlib.sha256(name.encode(errors='replace')).hexdigest()[:8]}"
    return re.sub(r"\s", "_", f"{suite}:{name.removesuffix('@instance')}")


POINTED_OUT = "first in the series' own files: "
"""How the log of a case begins whose evidence leads to the series, with file:line."""


BUILT = ("apply", "config", "build")
"""What is reported like a suite before there is a guest."""

JOB = "job"
"""The suite of the error that reports an incomplete job. The error's name is that of the job."""

WARNINGS = "build:warnings"
"""The case, by its id, that is red at a point with compiler warnings that the one before has not."""


class CaseResult(Struct, frozen=True):
    """One case of one suite. `name` is unique within its suite and stable between runs."""

    suite: str
    name: str
    outcome: Outcome
    seconds: float = 0.0
    diagnostic: str = ""
    """Why, in a line or a few: the failure, the skip's reason, the splat's title."""
    log: str = ""
    """What the case printed, the splat, or the last console lines."""
    value: float | None = None
    """What it measured, in `unit`."""
    unit: str = ""
    ran: bool = True
    """Whether it came to that: no guest was there for it, or none knew of it, if not."""
    tries: tuple[CaseResult, ...] = ()
    """All of them, in order, if it was tried again."""
    known: str = ""
    """The key of the known failure that covers it; empty if none does."""
    was: Outcome | None = None
    """The outcome that was reported, if it was changed because the case is a known failure or must run."""
    covered: str = ""
    """The diagnostic that was reported, if a known failure covers it."""

    @property
    def id(self) -> str:
        return f"{self.suite}:{self.name}"


class Kind(StrEnum):
    """Of differences between two runs, the most telling first."""

    NEWLY_RED = "newly red"
    FLAKY = "flaky"
    """Another outcome with the same kernel, guest and expectations."""
    GONE = "gone"
    NEWLY_GREEN = "newly green"
    NEW = "new"
    SLOWER = "slower"


class Difference(Struct, frozen=True):
    """A case that is not what it was. A result is None in a run that has no such case."""

    arch: str
    point: str
    case: str
    kind: Kind
    before: CaseResult | None
    after: CaseResult | None

    @property
    def red(self) -> bool:
        """True if the case got worse. It did if it passed before and does not pass now, even if it is skipped or xfail now."""
        passed = [one is not None and one.outcome is Outcome.PASS for one in (self.before, self.after)]
        red = self.after is not None and not self.after.outcome.green
        return self.kind in (Kind.NEWLY_RED, Kind.GONE) or red or passed == [True, False]


class Usage(Struct, frozen=True):
    """What a run took: seconds on the clock, CPU seconds of the harness and all its children, and how many cores it had."""

    wall: float
    cpu: float
    cores: int

    def __add__(self, other: Usage) -> Usage:
        return Usage(self.wall + other.wall, self.cpu + other.cpu, self.cores)

    @property
    def share(self) -> float:
        """Of the cores' time."""
        return self.cpu / (self.wall * self.cores) if self.wall else 0.0
