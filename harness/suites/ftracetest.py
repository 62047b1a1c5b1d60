"""Suite `ftracetest`: every `.tc` file of the tree's ftrace selftests, each run on its own so that one hang costs one case.

A case is named after its file below test.d; files that are flagged for it run a second time in a tracing instance, which
counts as the case `<file>@instance`."""

from __future__ import annotations

import re
import shlex

import msgspec

from harness.guest import CommandResult, Guest, PlaceLost
from harness.guest.initramfs import SELFTESTS
from harness.logs import ktap
from harness.model import CaseResult, Outcome
from harness.suites.base import Case, Suite, Target

_SECONDS = 60.0
_SLOW_SECONDS = 240.0
_SLOW = (
    "direct/ftrace-direct.tc",
    "kprobe/multiple_kprobes.tc",
    "kprobe/kprobe_insn_boundary.tc",
    "dynevent/add_remove_btfarg.tc",
)
"""Slow by design: they probe hundreds of functions one by one, or patch text all the time."""

_LOGS = "/tmp/ftracetest"
_LOG_BYTES = 20_000
_PROFILER = "/sys/kernel/tracing/function_profile_enabled"
_LEFT_ON = f"status=$?; [ ! -f {_PROFILER} ] || echo 0 >{_PROFILER}; exit $status"
"""fgraph-profiler.tc of 6.12 leaves it on, and nothing but itself sets it back: every function would be traced from then on."""
_ENDS = re.compile(r"\++ (?:exit\b|exit_|kill )")
"""How a test that gives up leaves, in the words of `set -x`."""


class FtracetestSuite(Suite):
    name = "ftracetest"

    def plan(self, target: Target) -> list[Case]:
        folder = f"{SELFTESTS}/test.d"
        # Without -z, git quotes names with other characters than ASCII.
        listing = target.store.git("ls-tree", "-r", "-z", "--name-only", f"{target.tests}:{folder}").stdout.split("\0")
        # git grep prints <commit>:<path>.
        flagged = target.store.git(
            *("grep", "-z", "--files-with-matches", "^#[ \t]*flags:.*instance", target.tests, "--", folder), check=False
        ).stdout.split("\0")
        twice = {name.split(f"{folder}/", 1)[1] for name in filter(None, flagged)}
        return [
            Case(
                names=(file, f"{file}@instance") if file in twice else (file,),
                seconds=_SLOW_SECONDS if file in _SLOW else _SECONDS,
            )
            for file in sorted(listing)
            if file.endswith(".tc")
        ]

    def run(self, case: Case, guest: Guest, target: Target) -> list[CaseResult]:
        file = shlex.quote(f"test.d/{case.names[0]}")
        answer = guest.run(
            f"cd /{SELFTESTS} && rm -rf {_LOGS} && ./ftracetest --ktap --keep --logdir {_LOGS}/ {file}\n{_LEFT_ON}",
            label=f"{self.name}:{case.label}",
            seconds=case.seconds,
        )
        reported = ktap.parse(answer.output.splitlines())
        results = []
        for name, found in zip(case.names, reported, strict=False):
            result = CaseResult(self.name, name, found.outcome, answer.seconds / len(reported), found.diagnostic)
            results.append(result)
        if len(reported) != len(case.names) or (answer.status != 0 and all(result.outcome.green for result in results)):
            return [self._unaccounted(case.label, answer)]
        if any(result.outcome is not Outcome.PASS for result in results):
            results = [self._with_log(result, number, guest) for number, result in enumerate(results, 1)]
        return [_with_origin(result, case.label, target) for result in results]

    def _unaccounted(self, name: str, answer: CommandResult) -> CaseResult:
        """ftracetest's output and exit status do not add up: nothing that it said can be believed."""
        why = f"exit status {answer.status}, and its report is not the one that was planned"
        return CaseResult(self.name, name, Outcome.LOST, answer.seconds, why, answer.output)

    def _with_log(self, result: CaseResult, number: int, guest: Guest) -> CaseResult:
        """The result with its log; ftracetest numbers its logs as it numbers results. If the connection to the guest's host
        breaks meanwhile, the result stands without one: run again elsewhere, the test might pass."""
        if result.outcome is Outcome.PASS:
            return result
        script = f"tail -c {_LOG_BYTES} {_LOGS}/{number}-*-log.*"
        try:
            log = guest.run(script, label=f"{self.name}:log", seconds=30).output
        except PlaceLost as lost:
            return msgspec.structs.replace(result, log=f"no log: {lost.message}")
        return CaseResult(result.suite, result.name, result.outcome, result.seconds, result.diagnostic or _reason(log), log)


def _with_origin(result: CaseResult, file: str, target: Target) -> CaseResult:
    """A red test of another tree may ask for what this kernel never had."""
    if result.outcome.green or target.tests == target.commit:
        return result
    theirs, own = (
        target.store.git("ls-tree", commit, f"{SELFTESTS}/test.d/{file}").stdout for commit in (target.tests, target.commit)
    )
    if theirs == own:
        return result
    why = "the kernel's own tree has another version of this test" if own else "the kernel's own tree has no such test"
    return msgspec.structs.replace(result, diagnostic="; ".join(filter(None, [result.diagnostic, why])))


def _reason(log: str) -> str:
    """The last thing that the test said or tried: its shell runs with `set -x`."""
    said = [line for line in log.splitlines() if line.strip() and not _ENDS.match(line)]
    return said[-1].strip() if said else ""
