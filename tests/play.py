"""Run a session of suites against fake guests, from the first boot to the last result."""

from __future__ import annotations

import contextlib
import types
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from harness.cache import Cache
from harness.durations import Durations
from harness.errors import InfrastructureError
from harness.guest import Boot, Guest
from harness.model import CaseResult
from harness.suites import Selection, Session, Suite, Target
from tests.fake_guest import BUILD_ID, FakePlace, Script


class Played(Struct, frozen=True):
    """The results of a session on a fake host, and the host."""

    reported: list[CaseResult]
    place: FakePlace

    def __getitem__(self, case: str) -> CaseResult:
        (result,) = [one for one in self.reported if one.id == case]
        return result

    def outcomes(self, suite: str = "") -> dict[str, str]:
        """The outcomes by case id; with `suite`, those of that suite by case name."""
        chosen = [one for one in self.reported if suite in ("", one.suite)]
        names = [one.name if suite else one.id for one in chosen]
        assert len(set(names)) == len(names), f"reported twice: {names}"
        return {name: one.outcome.value for name, one in zip(names, chosen, strict=True)}

    @property
    def red(self) -> set[str]:
        return {one.id for one in self.reported if not one.outcome.green}


def play(
    directory: Path,
    suites: Sequence[Suite],
    *scripts: Script,
    target: Target | None = None,
    arch: str = "x86_64",
    globs: tuple[str, ...] = (),
    last_words: float = 3.0,
    quiet: tuple[str, ...] = (),
    guests: int = 1,
    **options: Any,
) -> Played:
    """Run `suites` to their end in one guest after another. `options` are the session's own. Of several
    `guests` the last one that joined goes first, and the first one goes on where the others stopped."""
    place, reported = FakePlace(*scripts), list[CaseResult]()

    def start(boot: Boot, name: str) -> contextlib.AbstractContextManager[Guest]:
        return place.guest(directory, arch, boot, name, last_words)

    session = Session(
        [(suite, Selection(suite.name, globs)) for suite in suites],
        target or a_target(arch),
        Boot(Path("image"), Path("initramfs")),
        quiet,
        start,
        Durations(Cache(directory), "none"),
        reported.append,
        **options,
    )
    numbers = [session.join() for _ in range(guests)]
    assert numbers == [*range(1, guests + 1)]
    with contextlib.suppress(InfrastructureError):
        for number in range(guests, 0, -1):
            assert session.run(number) == (number == 1)
    return Played(reported, place)


def a_target(arch: str = "x86_64", **changes: Any) -> Target:
    """A kernel with nothing switched on; `changes` are fields of Target."""
    fields = {
        "kernel": types.SimpleNamespace(modules_error="", build_ids=(BUILD_ID,), module_ids={}),
        "config": {},
        "commit": "c",
        "store": None,
        **changes,
    }
    return Target(arch=arch, **fields)
