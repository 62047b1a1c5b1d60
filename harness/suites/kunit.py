"""Suite `kunit`: KTAP that the kernel's own unit tests print while it boots."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from harness.guest import Guest
from harness.logs import ktap
from harness.logs.ktap import KtapCase
from harness.model import CaseResult, Outcome
from harness.suites.base import Suite, Target

EXPECTED = {"FPROBE_SANITY_TEST": "fprobe_test", "KPROBES_SANITY_TEST": "kprobes_test"}
"""KUnit suites that a kernel with the symbol built in must report."""


class KunitSuite(Suite):
    name = "kunit"
    quiet = "kunit.enable=0"

    def judge_boot(self, lines: Sequence[str], target: Target, guest: Guest) -> Iterator[CaseResult]:
        if target.config.get("KUNIT") != "y":
            yield CaseResult(self.name, "kunit", Outcome.SKIP, diagnostic="CONFIG_KUNIT is not built in")
            return
        cases = ktap.parse(lines)
        for case in cases:
            outcome, diagnostic = _judged(case)
            yield CaseResult(self.name, case.name, outcome, diagnostic=diagnostic)
        if not cases:
            yield self._lost(self.name, "CONFIG_KUNIT=y, but the boot log has no KTAP")
        for symbol, suite in EXPECTED.items():
            if target.config.get(symbol) == "y" and not any(case.name.startswith(f"{suite}.") for case in cases):
                yield self._lost(suite, f"CONFIG_{symbol}=y, but it never reported")

    def _lost(self, name: str, why: str) -> CaseResult:
        return CaseResult(self.name, name, Outcome.LOST, diagnostic=why)


def _judged(case: KtapCase) -> tuple[Outcome, str]:
    """The outcome of a case. A suite without cases prints SKIP (kunit_suite_has_succeeded() in lib/kunit/test.c), so that
    of one that passed without a case, the log has lost all of them."""
    if case.outcome is Outcome.PASS and "." not in case.name:
        return Outcome.LOST, "the suite passed, but the log has none of its cases"
    return case.outcome, case.diagnostic
