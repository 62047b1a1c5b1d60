"""Suite `command`: what the user gave with --cmd, each command a case that passes if its exit status is 0."""

from __future__ import annotations

from harness.guest import Guest
from harness.model import CaseResult, Outcome, label_of
from harness.suites.base import Case, Suite, Target

_SECONDS = 1200.0


class CommandSuite(Suite):
    name = "command"
    in_order = True

    def plan(self, target: Target) -> list[Case]:
        return [Case((command,), _SECONDS) for command in target.commands]

    def run(self, case: Case, guest: Guest, target: Target) -> list[CaseResult]:
        answer = guest.run(case.label, label=label_of(f"{self.name}:{case.label}"), seconds=case.seconds)
        outcome = Outcome.FAIL if answer.status else Outcome.PASS
        why = f"exit status {answer.status}" if answer.status else ""
        return [CaseResult(self.name, case.label, outcome, answer.seconds, why, answer.output)]
