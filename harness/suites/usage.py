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
        messages = []
        if self.stale:
            messages.append(f"not seen for {self.runs_since} runs: remove it if the failure is fixed")
        if len(self.diagnostics) > 1:
            messages.append(f"covers {len(self.diagnostics)} diagnostics: are they one failure?")
        return messages


def usage(entry: Known, line: int, ran: Sequence[Ran], stale: int) -> Usage:
    """`ran` is what the history has of the entry's cases, the newest first. An entry is stale after `stale` runs without it."""
    meant = [past for past in ran if _meant(entry, past)]
    covered = [past for past in meant if _covered(entry, past)]
    last = covered[0] if covered else None
    later = [past for past in meant if past.outcome not in _UNTESTED and (last is None or past.started > last.started)]
    runs = len({(past.started, past.directory) for past in later})
    diagnostics = {_VARYING.sub("0", text): text for past in reversed(covered) if (text := _diagnostic(entry, past))}
    return Usage(entry, entry.key, line, last, runs, runs >= stale, tuple(reversed(diagnostics.values())))


def _meant(entry: Known, past: Ran) -> bool:
    """True if the entry applies to that result. The history of old runs has no toolchain, so an entry with one does not."""
    return (
        entry.applies_to(past.case)
        and (not entry.arch or past.arch in entry.arch)
        and entry.meant_for(past.release)
        and (entry.toolchain == "*" or fnmatch.fnmatchcase(past.toolchain, entry.toolchain))
        and not (past.series in entry.fixed_by and past.point == LAST)
    )


def _covered(entry: Known, past: Ran) -> bool:
    if entry.hangs:
        return past.outcome is Outcome.SKIP and past.diagnostic.startswith("not run, it hangs: ")
    old = not past.known and past.outcome is Outcome.XFAIL and past.diagnostic.startswith(f"known: {entry.why}")
    return past.known == entry.key or old


def _diagnostic(entry: Known, past: Ran) -> str:
    return past.covered or past.diagnostic.removeprefix(f"known: {entry.why}").removeprefix("; ")
