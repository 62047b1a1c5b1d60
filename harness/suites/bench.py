"""Suite `bench`: what things cost, as the series' bench.toml measures them, by scripts that print one number. The guest has one
CPU and QEMU counts its instructions, one a nanosecond (-icount shift=0,sleep=off): exact, and the same on every machine."""

from __future__ import annotations

import math

from harness.guest import Guest
from harness.model import CaseResult, Measure, Outcome, Position
from harness.suites.base import Case, Suite, Target
from harness.suites.value import ask, lacking


class BenchSuite(Suite):
    name = "bench"
    counts = True

    def plan(self, target: Target) -> list[Case]:
        return [Case((measure.case,), measure.seconds) for measure in target.measures]

    def run(self, case: Case, guest: Guest, target: Target) -> list[CaseResult]:
        measure = next(measure for measure in target.measures if measure.case == case.label)
        if missing := lacking(target, measure.needs):
            outcome = Outcome.FAIL if target.position is Position.WHOLE else Outcome.SKIP
            return [CaseResult(self.name, measure.case, outcome, diagnostic=f"{missing} not set")]
        answer = ask(guest, target, measure.script, f"{self.name}:{case.label}", case.seconds)
        value = _number(answer.text)
        if value is None:
            why = answer.why or f"'{answer.text}' is no number"
            return [CaseResult(self.name, measure.case, Outcome.FAIL, answer.seconds, why, f"{measure.says}\n{answer.log}")]
        return [_judge(measure, target, value, answer.seconds)]


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _judge(measure: Measure, target: Target, value: float, seconds: float) -> CaseResult:
    limit = measure.at_most.get(target.arch) if target.position is Position.WHOLE else None
    told = f"{value:g} {measure.unit}" + (f", at most {limit:g}" if limit is not None else "")
    other = [symbol for symbol, setting in measure.limits_for.items() if target.config.get(symbol, "n") != setting]
    if other and limit is not None:
        told += f", if it were not for {' and '.join(other)}"
        limit = None
    outcome = Outcome.FAIL if limit is not None and value > limit else Outcome.PASS
    log = f"{measure.says}\n{told}"
    return CaseResult(BenchSuite.name, measure.case, outcome, seconds, told, log, value=value, unit=measure.unit)
