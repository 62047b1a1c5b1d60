"""Suite `boot`: the guest reached the agent, ftrace's startup selftests passed, and the console is free of splats."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from harness.guest import Guest
from harness.logs.lines import without_printk_prefix
from harness.logs.splat import scan
from harness.model import CaseResult, Outcome
from harness.suites import identity
from harness.suites.base import Selection, Suite, Target
from harness.suites.inflight import crashed

_TESTING = re.compile(r"(?:\w+: )?Testing (?P<name>[^:]+): ?(?P<rest>.*)")
_VERDICT = re.compile(r"(?i:.*\bnot ok)\s*|(?:.*\s)?(?P<passed>PASSED|OK|ok)\s*|.*FAILED!?\s*|NG: .*")
_LATE_VERDICT = re.compile(r"(?i:.*\bnot ok)\s*|(?:\(.*\) ?)?(?P<passed>PASSED|OK|ok)\s*|.*FAILED!?\s*|NG: .*")

WITHOUT_SELFTESTS = ("agent", "console", identity.NAME)
"""Cases that every boot answers."""

EXPECTED = {
    "FUNCTION_TRACER": ("tracer function",),
    "DYNAMIC_FTRACE": ("dynamic ftrace", "dynamic ftrace ops #1", "dynamic ftrace ops #2", "ftrace recursion"),
    "FUNCTION_GRAPH_TRACER": ("tracer function_graph",),
    "IRQSOFF_TRACER": ("tracer irqsoff",),
    "PREEMPT_TRACER": ("tracer preemptoff",),
    "SCHED_TRACER": ("tracer wakeup",),
    "KPROBE_EVENTS": ("kprobe tracing",),
}
"""Startup tests that a kernel with the symbol must report: kernel/trace/trace_selftest.c and the tracers' own."""


_LATENCY = re.compile(r"selftest/tracer (?:irqsoff|preemptoff|preemptirqsoff|wakeup\w*)")
"""Startup tests that measure a latency (kernel/trace/trace_selftest.c)."""


class BootSuite(Suite):
    name = "boot"
    # A tracer on the command line switches the startup selftests off (register_tracer in kernel/trace/trace.c).
    quiet = "ftrace=nop"

    def noisy(self, selection: Selection) -> bool:
        return not selection.globs or not set(selection.globs) <= set(WITHOUT_SELFTESTS)

    def needs_clock(self, result: CaseResult) -> bool:
        return _LATENCY.fullmatch(result.name) is not None

    def judge_boot(self, lines: Sequence[str], target: Target, guest: Guest) -> Iterator[CaseResult]:
        yield CaseResult(self.name, "agent", Outcome.PASS, seconds=guest.boot_seconds)
        yield CaseResult(self.name, "console", Outcome.PASS)
        results: dict[str, CaseResult] = {}
        for result in _startup_tests(lines):
            # A test may run twice, and what was red once stays red.
            if result.name not in results or results[result.name].outcome.green:
                results[result.name] = result
        if target.has("FTRACE_STARTUP_TEST"):
            wanted = [name for symbol, names in EXPECTED.items() if target.has(symbol) for name in names]
            for name in wanted:
                missing = CaseResult(self.name, f"selftest/{name}", Outcome.LOST, diagnostic="the kernel never reported it")
                results.setdefault(missing.name, missing)
        yield from results.values()


def _startup_tests(lines: Sequence[str]) -> Iterator[CaseResult]:
    """Each `Testing X: PASSED`. A verdict is written with pr_cont, so other lines may come between it and its test."""
    name: str | None = None
    start = 0
    messages = [without_printk_prefix(line) for line in lines]
    for number, message in enumerate([*messages, "Testing end: "]):
        match = _TESTING.match(message)
        if match:
            if name:
                log = "\n".join(lines[start:number])
                yield CaseResult("boot", f"selftest/{name}", Outcome.LOST, diagnostic="no verdict", log=log)
            name, start = match["name"].strip(), number
        verdict = _VERDICT.fullmatch(match["rest"]) if match else _LATE_VERDICT.fullmatch(message)
        if name and verdict:
            yield _judge(f"selftest/{name}", bool(verdict["passed"]), message, lines[start : number + 1])
            name = None


def _judge(name: str, passed: bool, message: str, lines: Sequence[str]) -> CaseResult:
    """`lines` are those from the test's first one to its verdict, which is `message`."""
    if not passed:
        return CaseResult("boot", name, Outcome.FAIL, diagnostic=message, log="\n".join(lines))
    if splats := scan(lines):
        return crashed("boot", name, splats)
    return CaseResult("boot", name, Outcome.PASS)
