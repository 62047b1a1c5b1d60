"""What a suite is, and which of its cases are wanted."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterator, Sequence

from msgspec import Struct

from harness.guest import Guest
from harness.model import CaseResult, Claim, Kernel, Measure, Position
from harness.tree import Store


class Target(Struct, frozen=True):
    """What a suite may know of the kernel that it is going to test."""

    arch: str
    kernel: Kernel
    config: dict[str, str]
    """Symbols of the kernel's .config, without CONFIG_."""
    commit: str
    """Of the tree that it is from."""
    store: Store
    tests: str = ""
    """Commit whose selftests are in the guest."""
    commands: tuple[str, ...] = ()
    """Shell commands of the user's."""
    position: Position = Position.WHOLE
    """In the series."""
    claims: tuple[Claim, ...] = ()
    """Of the series."""
    measures: tuple[Measure, ...] = ()
    """Of the series."""

    def has(self, symbol: str) -> bool:
        return self.config.get(symbol) in ("y", "m")


class Selection(Struct, frozen=True):
    """A suite, and the globs that its case names must match: all of them if there is none."""

    suite: str
    globs: tuple[str, ...] = ()

    def wants(self, name: str) -> bool:
        return not self.globs or any(fnmatch.fnmatchcase(name, glob) for glob in self.globs)


class Case(Struct, frozen=True):
    """Something a guest runs in one go. It reports `names`, nearly always just its own."""

    names: tuple[str, ...]
    seconds: float
    """Deadline, before the guest's patience."""

    @property
    def label(self) -> str:
        return self.names[0]


class Suite:
    """Judged from the boot log, or case by case in the guest, or both."""

    name: str
    cases: tuple[str, ...] | None = None
    """The names of its cases, if they are the same for every kernel; None if they depend on the kernel or the series."""
    in_order: bool = False
    """Its cases build upon each other: one guest runs them all, as they were planned."""
    counts: bool = False
    """It needs a guest whose clock counts instructions."""
    quiet: str = ""
    """Kernel parameter that keeps this suite's boot-time part from running when nobody wants it."""

    def noisy(self, selection: Selection) -> bool:
        """Whether these cases need the suite's boot-time part."""
        return True

    def judge_boot(self, lines: Sequence[str], target: Target, guest: Guest) -> Iterator[CaseResult]:
        """Results that the log up to the agent holds."""
        return iter(())

    def concerns(self, result: CaseResult, selection: Selection) -> bool:
        """True if a result of `judge_boot` belongs to the selected cases and is reported."""
        return selection.wants(result.name)

    def needs_clock(self, result: CaseResult) -> bool:
        """Whether a failed clock calibration makes this result of `judge_boot` red, whatever the kernel does."""
        return False

    def plan(self, target: Target) -> list[Case]:
        """What is to be run in the guest."""
        return []

    def run(self, case: Case, guest: Guest, target: Target) -> list[CaseResult]:
        """Run one planned case. Raises GuestGone if it takes the guest along."""
        raise NotImplementedError
