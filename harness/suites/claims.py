"""Suite `claims`: what a series says that a guest shows, as its claims.toml has it. Each claim has one value; on the base kernel
it must be the base's, with the series the series'. A value that is not there is red, and so is one that nobody expected."""

from __future__ import annotations

import re

from harness.guest import Guest
from harness.model import ABSENT, CaseResult, Claim, Outcome
from harness.suites.base import Case, Suite, Target

_PREAMBLE = ". /harness/claims\n"
_VALUE = re.compile(r"^value: *(.*?) *\r?$", re.MULTILINE)


class ClaimsSuite(Suite):
    name = "claims"

    def plan(self, target: Target) -> list[Case]:
        return [Case((claim.case,), claim.seconds) for claim in target.claims]

    def run(self, case: Case, guest: Guest, target: Target) -> list[CaseResult]:
        claim = next(claim for claim in target.claims if claim.case == case.label)
        if lacking := [f"CONFIG_{symbol}" for symbol in claim.needs if not target.has(symbol)]:
            return [_judge(claim, target, ABSENT, f"{' and '.join(lacking)} not set")]
        if claim.not_on_base and not target.patched:
            return [CaseResult(self.name, claim.case, Outcome.SKIP, diagnostic=f"not tried on the base: {claim.not_on_base}")]
        answer = guest.run(_PREAMBLE + claim.script, label=f"{self.name}:{case.label}", seconds=case.seconds)
        values = _VALUE.findall(answer.output)
        if answer.status == 0 and len(values) == 1 and values[0]:
            return [_judge(claim, target, values[0], "", answer.output, answer.seconds)]
        said = answer.output.strip().splitlines()
        why = f"{len(values)} values, exit status {answer.status}: {said[-1] if said else 'no word'}"
        if target.kernel.modules_error:
            why += f"; the harness's modules do not build: {target.kernel.modules_error}"
        return [_judge(claim, target, "", why, answer.output, answer.seconds)]


def _judge(claim: Claim, target: Target, seen: str, why: str, log: str = "", seconds: float = 0.0) -> CaseResult:
    """`seen` is empty if there was no value; `why` says so, or why it is what it is."""
    base = claim.on_base(target.arch)
    outcome = Outcome.PASS if seen and seen == (claim.patched if target.patched else base) else Outcome.FAIL
    found = " ".join(filter(None, [f"'{seen}'" if seen else "nothing", f"({why})" if why else ""]))
    expected = f"base: {repr(base) if base else 'not tried'}, patched: '{claim.patched}'"
    told = f"seen {found} {'with' if target.patched else 'without'} the series; {expected}"
    return CaseResult(ClaimsSuite.name, claim.case, outcome, seconds, told, f"{claim.says}\n{told}\n{log}".strip())
