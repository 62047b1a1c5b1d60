"""Which known failures still apply: each entry of known.toml beside what the history of runs has of its cases."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Sequence

from msgspec import Struct

from harness.model import LAST, Outcome
from harness.results.history import Ran
from harness.suites.known import Known

_VARYING = re.compile(r"\b0x[0-9a-f]+|\b[0-9a-f]{8,}\b|\d+")
"""What differs from one report of a failure to the next: addresses, numbers of processes and lines."""
_UNTESTED = (Outcome.SKIP, Outcome.ERROR)


class Usage(Struct, frozen=True):
    """An entry, and where it applied."""

    entry: Known
    key: str
    line: int
    """In the file that lists it."""
    last: Ran | None
    """The newest result that it covered; None if there is none."""
    runs_since: int
    """Later runs that ran one of its cases where the entry is meant to apply, and in which it covered none."""
    stale: bool
    """It has not been seen for as many runs as were asked for."""
    diagnostics: tuple[str, ...]
    """Those that it covered, the newest of each kind first: alike are those that differ in numbers only."""

    @property
    def remarks(self) -> list[str]:
        """What somebody should look at."""
        found = []
        if self.stale:
            found.append(f"not seen for {self.runs_since} runs: remove it if the failure is fixed")
        if len(self.diagnostics) > 1:
            found.append(f"covers {len(self.diagnostics)} diagnostics: are they one failure?")
        return found


def usage(entry: Known, line: int, ran: Sequence[Ran], stale: int) -> Usage:
    """`ran` is what the history has of the entry's cases, the newest first. An entry is stale after `stale` runs without it."""
    meant = [one for one in ran if _meant(entry, one)]
    covered = [one for one in meant if _covered(entry, one)]
    last = covered[0] if covered else None
    later = [one for one in meant if one.outcome not in _UNTESTED and (last is None or one.started > last.started)]
    runs = len({(one.started, one.directory) for one in later})
    diagnostics = {_VARYING.sub("0", text): text for one in reversed(covered) if (text := _diagnostic(entry, one))}
    return Usage(entry, entry.key, line, last, runs, runs >= stale, tuple(reversed(diagnostics.values())))


def _meant(entry: Known, one: Ran) -> bool:
    """Whether the entry was to be looked at for that result. What its toolchain was is not known of an old run."""
    return (
        entry.applies_to(one.case)
        and (not entry.arch or one.arch in entry.arch)
        and entry.meant_for(one.release)
        and (entry.toolchain == "*" or fnmatch.fnmatchcase(one.toolchain, entry.toolchain))
        and not (one.series in entry.fixed_by and one.point == LAST)
    )


def _covered(entry: Known, one: Ran) -> bool:
    if entry.hangs:
        return one.outcome is Outcome.SKIP and one.diagnostic.startswith("not run, it hangs: ")
    old = not one.known and one.outcome is Outcome.XFAIL and one.diagnostic.startswith(f"known: {entry.why}")
    return one.known == entry.key or old


def _diagnostic(entry: Known, one: Ran) -> str:
    return one.covered or one.diagnostic.removeprefix(f"known: {entry.why}").removeprefix("; ")
