"""Decide the final outcome of a result: known failures become xfail, must-run cases that did not run become red."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from harness.model import BUILT, WARNINGS, CasePattern, CaseResult, Outcome
from harness.suites import identity
from harness.suites.base import Selection
from harness.suites.known import Known

_IDENTITY = f"boot:{identity.NAME}"

_PROVES_NOTHING = {
    Outcome.SKIP: "must run, but skipped",
    Outcome.XFAIL: "must run, but the test expects its own failure",
}
"""Green outcomes with which a must-run case would prove nothing."""


class Policy:
    """For one architecture and kind of toolchain, at a point that carries the whole of `series` or (without) does not. `version`
    is the kernel's; it may be set until the first guest reports."""

    def __init__(
        self,
        arch: str,
        toolchain: str,
        known: Iterable[Known],
        must_run: Iterable[CasePattern],
        version: str = "",
        series: str = "",
    ) -> None:
        self.version = version
        self._listed = [
            entry
            for entry in known
            if (not entry.arch or arch in entry.arch)
            and fnmatch.fnmatchcase(toolchain, entry.toolchain)
            and series not in entry.fixed_by
        ]
        self._must_run = [entry for entry in must_run if not entry.arch or arch in entry.arch]
        self._seen: dict[str, Outcome] = {}
        """The outcome of each case, by id. A red outcome stays, unless a result with all its tries replaces it."""

    @property
    def _known(self) -> list[Known]:
        return [entry for entry in self._listed if entry.meant_for(self.version)]

    def hangs(self, case: str) -> str:
        """Why a case, by its id, is better not run; empty if it is to be run."""
        return next((entry.reason for entry in self._known if entry.hangs and entry.applies_to(case)), "")

    def judge(self, result: CaseResult) -> CaseResult:
        """The result as it counts."""
        judged = self._judge(result)
        self.note(judged)
        return judged

    def note(self, judged: CaseResult) -> None:
        """Record the outcome of a result that `judge` has returned, now or before the run was resumed."""
        earlier = self._seen.get(judged.id)
        if earlier is None or judged.tries or (earlier.green and not judged.outcome.green):
            self._seen[judged.id] = judged.outcome

    def _judge(self, result: CaseResult) -> CaseResult:
        if (result.suite in BUILT and result.id != WARNINGS) or result.id.startswith(_IDENTITY):
            return result  # a failed build or a wrong kernel means that nothing was tested, so no known failure excuses it
        for pattern in self._must_run:
            if fnmatch.fnmatchcase(result.id, pattern.case):
                # The series depends on this case, so no known failure excuses it.
                why = _PROVES_NOTHING.get(result.outcome)
                return _changed(result, Outcome.FAIL, f"{why}: {pattern.reason}") if why else result
        for entry in self._known:
            if entry.covers(result):
                return _changed(result, Outcome.XFAIL, f"known: {entry.why}", entry.key)
        return result

    def outlived(self, selections: Sequence[Selection]) -> Iterator[tuple[Known, list[str]]]:
        """XPASS: known failures of which no case failed, and the cases that passed instead. A glob counts only if its whole suite
        ran."""
        whole = {selection.suite for selection in selections if not selection.globs}
        for entry in self._known:
            # What is flaky passes most of the time.
            if entry.hangs or entry.outcome == (Outcome.FLAKY,):
                continue
            if entry.case not in self._seen and entry.case.partition(":")[0] not in whole:
                continue
            seen = {case: outcome for case, outcome in self._seen.items() if entry.applies_to(case)}
            passed = [case for case, outcome in seen.items() if outcome is Outcome.PASS]
            if passed and set(seen.values()) <= {Outcome.PASS, Outcome.SKIP}:
                yield entry, passed

    def missing(self, selections: Sequence[Selection]) -> Iterator[CaseResult]:
        """A lost case for each suite or glob that was asked for and that no case answered to, and for each must-run pattern of
        the cases that were asked for, if no case matched it."""
        for selection in selections:
            for glob in selection.globs or ("*",):
                if not fnmatch.filter(self._seen, f"{selection.suite}:{glob}"):
                    why = "asked for, but no case reported"
                    yield CaseResult(selection.suite, glob, Outcome.LOST, diagnostic=why, ran=False)
        for entry in self._must_run:
            suite, _, name = entry.case.partition(":")
            wanted = any(selection.suite == suite and selection.wants(name) for selection in selections)
            if wanted and not fnmatch.filter(self._seen, entry.case):
                yield CaseResult(suite, name, Outcome.LOST, diagnostic=f"must run, but there is no such case: {entry.reason}")


def _changed(result: CaseResult, outcome: Outcome, why: str, known: str = "") -> CaseResult:
    diagnostic = "; ".join(filter(None, [why, result.diagnostic]))
    covered = result.diagnostic if known else ""
    return msgspec.structs.replace(
        result, outcome=outcome, diagnostic=diagnostic, known=known, was=result.outcome, covered=covered
    )
