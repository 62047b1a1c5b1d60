"""Suite `kunit`: KTAP that the kernel's own unit tests print while it boots."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterator, Sequence

import msgspec

from harness.guest import Guest
from harness.model import CaseResult, Outcome
from harness.suites import inflight
from harness.suites.base import Selection, Suite, Target

EXPECTED = {"FPROBE_SANITY_TEST": "fprobe_test", "KPROBES_SANITY_TEST": "kprobes_test"}
"""KUnit suites that a kernel with the symbol built in must report."""

_OF_THE_LOG = ("plan", "totals", "bail-out")
"""What harness.logs.ktap reports of the log itself, for a suite or for all of them."""


class KunitSuite(Suite):
    name = "kunit"
    quiet = "kunit.enable=0"

    def judge_boot(self, lines: Sequence[str], target: Target, guest: Guest) -> Iterator[CaseResult]:
        if target.config.get("KUNIT") != "y":
            yield CaseResult(self.name, "kunit", Outcome.SKIP, diagnostic="CONFIG_KUNIT is not built in")
            return
        cases = [_with_cases(result) for result in inflight.kunit(self.name, lines)]
        yield from cases
        if not cases:
            yield self._lost(self.name, "CONFIG_KUNIT=y, but the boot log has no KTAP")
        for symbol, suite in EXPECTED.items():
            if target.config.get(symbol) == "y" and not any(case.name.startswith(f"{suite}.") for case in cases):
                yield self._lost(suite, f"CONFIG_{symbol}=y, but it never reported")

    def concerns(self, result: CaseResult, selection: Selection) -> bool:
        """A lost result concerns every selection that the missing cases may belong to; a suite that is red as a whole concerns
        every selection of its cases."""
        if selection.wants(result.name):
            return True
        suite, dot, rest = result.name.partition(".")
        own = any(fnmatch.fnmatchcase(suite, glob.partition(".")[0]) for glob in selection.globs)
        of_the_log = (rest if dot else suite) in _OF_THE_LOG
        if result.outcome is Outcome.LOST or of_the_log:
            return own or not dot
        return own and not dot and not result.outcome.green

    def _lost(self, name: str, why: str) -> CaseResult:
        return CaseResult(self.name, name, Outcome.LOST, diagnostic=why)


def _with_cases(result: CaseResult) -> CaseResult:
    """The result, but `lost` if a suite passed without a case. A suite without cases prints SKIP (kunit_suite_has_succeeded() in
    lib/kunit/test.c), so the log has lost the cases of one that passed."""
    if result.outcome is Outcome.PASS and "." not in result.name:
        why = "the suite passed, but the log has none of its cases"
        return msgspec.structs.replace(result, outcome=Outcome.LOST, diagnostic=why)
    return result
