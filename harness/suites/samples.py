"""Suite `samples`: the kernel's sample modules, loaded, exercised and removed, and judged by what they print."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from msgspec import Struct

from harness.guest import CommandResult, Guest
from harness.logs.lines import without_printk_prefix
from harness.model import CaseResult, Outcome
from harness.suites.base import Case, Suite, Target

_SECONDS = 30.0

Judge = Callable[[CommandResult, Sequence[str]], str]
"""Takes a command's result and the messages of the kernel's log meanwhile, and says what is wrong with them, or nothing."""


class _Sample(Struct, frozen=True):
    name: str
    symbol: str
    """What builds its module; without it the case skips."""
    script: str
    judge: Judge


_FORK_AND_READ = "for round in 1 2 3; do cat /proc/version | cat >/dev/null; done"

_HITS = re.compile(r"fprobe at .* unregistered\. (?P<hit>-?\d+) times hit, (?P<missed>\d+) times missed")


def _fprobe_hits(answer: CommandResult, log: Sequence[str]) -> str:
    """Hits above zero, none missed, and every entry has its return."""
    if answer.status != 0:
        return f"exit status {answer.status}: {answer.output.strip()}"
    counts = next((match for line in log if (match := _HITS.search(line))), None)
    if counts is None:
        return "the module never said how often it was hit"
    hit, missed = int(counts["hit"]), int(counts["missed"])
    if hit <= 0 or missed:
        return f"{hit} times hit, {missed} times missed"
    # With use_trace the lines are in the trace buffer, which the script prints.
    text = [*log, *answer.output.splitlines()]
    entered = sum("Enter <" in line for line in text)
    returned = sum("Return from <" in line for line in text)
    if entered != returned or entered + returned != hit:
        return f"{entered} entries and {returned} returns for {hit} hits"
    return ""


def _fprobe_stack(answer: CommandResult, log: Sequence[str]) -> str:
    frames = any(re.match(r"\s+\w[\w.]*\+0x", line) for line in log)
    return _fprobe_hits(answer, log) or ("" if frames else "no stack dump")


def _ftrace_ops(answer: CommandResult, log: Sequence[str]) -> str:
    """Its init fails on purpose once it has measured, to leave nothing behind."""
    if answer.status == 0 or "Invalid argument" not in answer.output:
        return f"insmod was to fail with -EINVAL, but ended with {answer.status}: {answer.output.strip()}"
    measured = any(re.search(r"Attempted \d+ calls to .* \(\d+ns / call\)", line) for line in log)
    counted = next((line for line in log if "Counter called" in line), "")
    return counted or ("" if measured else "it never said what a call takes")


def _prints(pattern: str) -> Judge:
    def judge(answer: CommandResult, log: Sequence[str]) -> str:
        if answer.status != 0:
            return f"exit status {answer.status}: {answer.output.strip()}"
        seen = any(re.search(pattern, line) for line in [*log, *answer.output.splitlines()])
        return "" if seen else f"nothing like '{pattern}' in the log"

    return judge


def _module(name: str, parameters: str = "", activity: str = _FORK_AND_READ) -> str:
    # No fork for rmmod: its parent might still be inside kernel_clone, entered but not returned, when the probe goes.
    return f"set -e\nmodprobe {name} {parameters}\n{activity}\nexec rmmod {name}\n"


_TRACE = "/sys/kernel/tracing/trace"
_AND_SHOW_TRACE = f'{_FORK_AND_READ}\nwhile read -r line; do echo "$line"; done <{_TRACE}'
"""By the shell alone: a cat would be one more fork, in the trace only half."""

_SAMPLES = (
    _Sample(
        "fprobe_example/one symbol", "SAMPLE_FPROBE", _module("fprobe_example", "symbol=kernel_clone stackdump=0"), _fprobe_hits
    ),
    _Sample(
        "fprobe_example/several symbols",
        "SAMPLE_FPROBE",
        _module("fprobe_example", "symbol=kernel_clone,do_sys_openat2 stackdump=0"),
        _fprobe_hits,
    ),
    _Sample(
        "fprobe_example/pattern", "SAMPLE_FPROBE", _module("fprobe_example", "symbol='kernel_clone*' stackdump=0"), _fprobe_hits
    ),
    _Sample(
        "fprobe_example/pattern and exception",
        "SAMPLE_FPROBE",
        _module("fprobe_example", "symbol='do_sys_open*' nosymbol=do_sys_open stackdump=0"),
        _fprobe_hits,
    ),
    _Sample("fprobe_example/stack dump", "SAMPLE_FPROBE", _module("fprobe_example", "symbol=kernel_clone"), _fprobe_stack),
    _Sample(
        "fprobe_example/trace buffer",
        "SAMPLE_FPROBE",
        f"echo >{_TRACE}\n{_module('fprobe_example', 'symbol=kernel_clone stackdump=0 use_trace=1', _AND_SHOW_TRACE)}",
        _fprobe_hits,
    ),
    _Sample("ftrace-ops/count", "SAMPLE_FTRACE_OPS", "modprobe ftrace-ops nr_function_calls=1000 check_count=1", _ftrace_ops),
    _Sample(
        "ftrace-ops/irrelevant",
        "SAMPLE_FTRACE_OPS",
        "modprobe ftrace-ops nr_function_calls=1000 nr_ops_irrelevant=2 check_count=1",
        _ftrace_ops,
    ),
    _Sample(
        "kprobe_example", "SAMPLE_KPROBES", _module("kprobe_example", "symbol=kernel_clone"), _prints(r"<kernel_clone> p->addr")
    ),
    _Sample(
        "kretprobe_example",
        "SAMPLE_KRETPROBES",
        _module("kretprobe_example", "func=kernel_clone"),
        _prints(r"kernel_clone returned \d+"),
    ),
    _Sample(
        "ftrace-direct",
        "SAMPLE_FTRACE_DIRECT",
        f"echo >{_TRACE}\n{_module('ftrace-direct', '', _AND_SHOW_TRACE)}",
        _prints(r"waking up \S+-\d+"),
    ),
    _Sample(
        "ftrace-direct-multi",
        "SAMPLE_FTRACE_DIRECT_MULTI",
        f"echo >{_TRACE}\n{_module('ftrace-direct-multi', '', _AND_SHOW_TRACE)}",
        _prints(r": ip [0-9a-f]{8}"),
    ),
)


class SamplesSuite(Suite):
    name = "samples"
    cases = tuple(sample.name for sample in _SAMPLES)

    def plan(self, target: Target) -> list[Case]:
        return [Case((sample.name,), _SECONDS) for sample in _SAMPLES]

    def run(self, case: Case, guest: Guest, target: Target) -> list[CaseResult]:
        sample = next(sample for sample in _SAMPLES if sample.name == case.label)
        if not target.has(sample.symbol):
            return [CaseResult(self.name, case.label, Outcome.SKIP, diagnostic=f"CONFIG_{sample.symbol} is not set")]
        answer = guest.run(sample.script, label=f"{self.name}:{case.label}", seconds=case.seconds)
        log = [without_printk_prefix(line) for line in guest.console.read(*answer.console)]
        wrong = sample.judge(answer, log)
        outcome = Outcome.FAIL if wrong else Outcome.PASS
        shown = "\n".join([answer.output, *log]) if wrong else ""
        return [CaseResult(self.name, case.label, outcome, answer.seconds, wrong, shown)]
