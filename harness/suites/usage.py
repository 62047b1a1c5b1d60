"""Find out which known failures still apply: compare each entry of known.toml with the history of its cases."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Sequence

from msgspec import Struct

from harness.model import LAST, Outcome
from harness.results.history import Ran
from harness.suites.known import Known

_VARYING = re.compile(r"\b0x[0-9a-f]+|\b[0-9a-f]{8,}\b|\d+")
"""Parts that differ between two reports of the same failure: addresses, process ids, line numbers."""
_UNTESTED = (Outcome.SKIP, Outcome.ERROR)


class Usage(Struct, frozen=True):
    """An entry and the results that it covered."""

    entry: Known
    key: str
    line: int
    """The line of the entry in known.toml."""
    last: Ran | None
    """The newest result that it covered; None if there is none."""
    runs_since: int
    """Number of later runs that ran a case of the entry, on a kernel to which it applies, without a failure to cover."""
    stale: bool
    """`runs_since` has reached the limit that the user gave."""
    diagnostics: tuple[str, ...]
    """The diagnostics that it covered, the newest first. Of those that differ in numbers only, the newest is listed."""

    @property
    def remarks(self) -> list[str]:
        """Messages about entries that a person should check."""
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
    """True if the entry applies to that result. The history of old runs has no toolchain, so an entry with one does not."""
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
