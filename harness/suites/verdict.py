"""Compute the result of a case from its suite's result, the kernel's reports, gaps in the console and the
end of its guest. No I/O, no state."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import msgspec
from msgspec import Struct

from harness.guest import GuestGone, GuestTimeout
from harness.logs.splat import Splat
from harness.model import CaseResult, Outcome
from harness.suites.titles import own_failure, titles

Explain = Callable[[str], str]
"""Adds source lines and symbols to a kernel report."""


class Complaints(Struct, frozen=True):
    """Problems on the console while something ran: kernel reports, and `gaps`, the reasons why lines may
    be missing."""

    splats: tuple[Splat, ...] = ()
    gaps: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.splats or self.gaps)

    @property
    def outcome(self) -> Outcome:
        """Missing lines may have held a report, so a gap proves nothing and counts as lost."""
        return Outcome.CRASH if self.splats else Outcome.LOST

    @property
    def titles(self) -> str:
        """The diagnostic: one line for each report and each gap."""
        return "\n".join([*titles(self.splats), *self.gaps])

    def log(self, explain: Explain) -> str:
        text = "\n".join(splat.text for splat in self.splats)
        return explain(text) if text else ""


def console(name: str, complaints: Complaints, explain: Explain) -> CaseResult:
    """The case of suite boot that reports problems outside of any other case."""
    return CaseResult("boot", name, complaints.outcome, diagnostic=complaints.titles, log=complaints.log(explain))


def gone(error: GuestGone, explain: Explain) -> tuple[Outcome, str, str]:
    """Outcome, diagnostic and log of the case that ran when the guest was lost.

    An oops or a panic explains the loss. A warning does not: then the loss is a line of the diagnostic, and so a known
    failure that names the warning alone does not cover it. Gaps are lines of the diagnostic, too: what is missing may have
    been an oops, so a known failure that names the loss alone does not cover it."""
    if not error.splats:
        outcome = Outcome.TIMEOUT if isinstance(error, GuestTimeout) else Outcome.LOST
        return outcome, "\n".join([error.message, *error.gaps]), explain(error.console)
    complaints = Complaints(tuple(error.splats), tuple(error.gaps))
    log = complaints.log(explain)
    if isinstance(error, GuestTimeout):
        log += f"\n{error.message}\n{explain(error.console)}"
    lost = "" if any(splat.stopped for splat in complaints.splats) else f"\n{error.message}"
    return complaints.outcome, complaints.titles + lost, log


def complete(
    suite: str,
    names: Sequence[str],
    results: Sequence[CaseResult],
    complaints: Complaints,
    distrust: str,
    explain: Explain,
) -> Iterator[CaseResult]:
    """A result for each planned name. A name that was not reported is lost. Complaints have
    precedence over the test's own result. `distrust` is the reason why a green result does not count; empty if it does."""
    reported = {result.name: result for result in results}
    for name in names:
        result = reported.get(name) or _lost(suite, name, results)
        if complaints:
            log = f"{complaints.log(explain)}\nthe test itself: {result.outcome}\n{result.log}".strip()
            own = [*own_failure(complaints.splats, result)]
            why = "\n".join([complaints.titles, *own, *(result.diagnostic.splitlines() if own else ())])
            result = msgspec.structs.replace(result, outcome=complaints.outcome, diagnostic=why, log=log)
        elif distrust and result.outcome.green:
            why = f"{result.outcome}, but {distrust}"
            result = msgspec.structs.replace(result, outcome=Outcome.LOST, diagnostic=why)
        yield result


def _lost(suite: str, name: str, results: Sequence[CaseResult]) -> CaseResult:
    why = "planned, but never reported"
    if not results:
        return CaseResult(suite, name, Outcome.LOST, diagnostic=why)
    first = results[0]
    return CaseResult(suite, name, Outcome.LOST, diagnostic=f"{why} ({first.diagnostic})", log=first.log)
