"""Suite `claims`: values that a guest must show, as the series' claims.toml lists them.

The base kernel must show the base's value, a kernel with the whole series the patched one, a kernel in between one of the two. No
value is red, and so is any other."""

from __future__ import annotations

from harness.guest import Guest
from harness.model import ABSENT, CaseResult, Claim, Outcome, Position
from harness.suites.base import Case, Suite, Target
from harness.suites.value import ask, lacking


class ClaimsSuite(Suite):
    name = "claims"

    def plan(self, target: Target) -> list[Case]:
        return [Case((claim.case,), claim.seconds) for claim in target.claims]

    def run(self, case: Case, guest: Guest, target: Target) -> list[CaseResult]:
        claim = next(claim for claim in target.claims if claim.case == case.label)
        if missing := lacking(target, claim.needs):
            return [_judge(claim, target, ABSENT, f"{missing} not set")]
        if claim.not_on_base and target.position is not Position.WHOLE:
            why = f"not tried without the whole series: {claim.not_on_base}"
            return [CaseResult(self.name, claim.case, Outcome.SKIP, diagnostic=why)]
        answer = ask(guest, target, claim.script, f"{self.name}:{case.label}", case.seconds)
        return [_judge(claim, target, answer.text, answer.why, answer.log, answer.seconds)]


_WHERE = {
    Position.BASE: "without the series",
    Position.WITHIN: "with a part of the series",
    Position.WHOLE: "with the series",
}


def _judge(claim: Claim, target: Target, seen: str, why: str, log: str = "", seconds: float = 0.0) -> CaseResult:
    """The result of a claim that showed `seen`, which is empty if there was no value; `why` explains either."""
    base, patched = claim.on_base(target.arch), claim.on_patched(target.arch)
    right = {Position.BASE: (base,), Position.WITHIN: (base, patched), Position.WHOLE: (patched,)}[target.position]
    outcome = Outcome.PASS if seen and seen in right else Outcome.FAIL
    found = " ".join(filter(None, [f"'{seen}'" if seen else "nothing", f"({why})" if why else ""]))
    expected = f"base: {repr(base) if base else 'not tried'}, patched: '{patched}'"
    text = f"seen {found} {_WHERE[target.position]}; {expected}"
    return CaseResult(ClaimsSuite.name, claim.case, outcome, seconds, text, f"{claim.says}\n{text}\n{log}".strip())
