"""Suite `kunit`: KTAP that the kernel's own unit tests print while it boots."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from harness.guest import Guest
from harness.model import CaseResult, Outcome
from harness.suites import inflight
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
        cases = [*inflight.kunit(self.name, lines)]
        yield from cases
        for symbol, suite in EXPECTED.items():
            if target.config.get(symbol) == "y" and not any(case.name.startswith(f"{suite}.") for case in cases):
                yield CaseResult(self.name, suite, Outcome.LOST, diagnostic=f"CONFIG_{symbol}=y, but it never reported")
