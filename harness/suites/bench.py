"""Suite `bench`: costs, measured by the scripts of the series' bench.toml, each of which prints one number. The guest has one
CPU and QEMU counts its instructions, one a nanosecond (-icount shift=0,sleep=off): exact, and the same on every machine.

Limits have two sides. A value below `at-least` most likely means that nothing was measured: a probe that never fires is cheap."""

from __future__ import annotations

from harness.guest import Guest
from harness.model import CaseResult, Measure, Outcome, Position
from harness.suites.base import Case, Suite, Target
from harness.suites.value import Value, ask, lacking, number


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
        value = number(answer.text)
        if value is None:
            why = answer.why or f"'{answer.text}' is no number"
            return [CaseResult(self.name, measure.case, Outcome.FAIL, answer.seconds, why, f"{measure.says}\n{answer.log}")]
        return [_judge(measure, target, value, answer)]


def _judge(measure: Measure, target: Target, value: float, answer: Value) -> CaseResult:
    problem, limits = _plausible(measure, value), ""
    if target.position is Position.WHOLE:
        broken, limits = _within(measure, target, value)
        problem = problem or broken
    text = f"{value:.12g} {measure.unit}{limits}" + (f": {problem}" if problem else "")
    outcome = Outcome.FAIL if problem else Outcome.PASS
    log = f"{measure.says}\n{text}\n{answer.log}".strip()
    return CaseResult(BenchSuite.name, measure.case, outcome, answer.seconds, text, log, value=value, unit=measure.unit)


def _plausible(measure: Measure, value: float) -> str:
    """The reason why the value cannot be a cost on any kernel; empty if it can."""
    if value < 0:
        return "a cost is not negative"
    return "" if value > 0 or measure.may_be_zero else "nothing was measured"


def _within(measure: Measure, target: Target, value: float) -> tuple[str, str]:
    """The reason why the value is red (empty if it is green), and the limits on this architecture, for a message."""
    low, high = measure.at_least.get(target.arch), measure.at_most.get(target.arch)
    sides = [f", at least {low:.12g}"] if low is not None else []
    sides += [f", at most {high:.12g}"] if high is not None else []
    if not sides:
        return "", f", no limits on {target.arch}"
    limits = "".join(sides)
    wanted = measure.settings(target.arch)
    other = [f"CONFIG_{symbol}={setting}" for symbol, setting in wanted.items() if _setting(target, symbol) != setting]
    if other:
        return "", f"{limits} with {' and '.join(other)}, which this kernel does not have"
    if low is not None and value < low:
        return "too little to be a real cost", limits
    return ("too much" if high is not None and value > high else ""), limits


def _setting(target: Target, symbol: str) -> str:
    return target.config.get(symbol, "n")
