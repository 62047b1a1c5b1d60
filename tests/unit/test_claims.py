"""Claims of a series: what the file may say, and what counts as seen."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest

from harness import arch, paths, series
from harness.errors import UserError
from harness.guest import CommandResult
from harness.model import ABSENT, CaseResult, Claim, Kernel, Outcome, Position
from harness.series.claims import read_claims
from harness.suites import Target
from harness.suites.base import Case
from harness.suites.claims import ClaimsSuite

CLAIM = """
[[claim]]
case = "01 colour"
says = "It turns red."
needs = ["PAINT"]
base = "blue"
base-on.s390x = "green"
patched = "red"
script = "value red"
"""


def read(directory: Path, text: str) -> tuple[Claim, ...]:
    (directory / "claims.toml").write_text(text)
    return read_claims(directory / "claims.toml")


def test_read(tmp_path: Path) -> None:
    assert read_claims(tmp_path / "claims.toml") == ()
    (claim,) = read(tmp_path, f'[absent]\nPAINT = ["arm64"]\nOTHER = ["riscv64"]\n{CLAIM}')
    assert {name: claim.on_base(name) for name in ("x86_64", "s390x", "arm64", "riscv64")} == {
        "x86_64": "blue",
        "s390x": "green",
        "arm64": ABSENT,
        "riscv64": "blue",
    }


@pytest.mark.parametrize(
    ("before", "after", "why"),
    [
        ("says =", "syas =", "syas"),
        ('patched = "red"\n', "", "patched"),
        ('patched = "red"', 'patched = " "', "no patched"),
        ('patched = "red"', f'patched = "{ABSENT}"', "with the series"),
        ('base = "blue"', "", "one of base and not-on-base"),
        ('base = "blue"', 'base = "blue"\nnot-on-base = "explodes"', "one of base and not-on-base"),
        ('script = "value red"', 'script = ""', "no script"),
        ("s390x", "vax", "unknown architecture 'vax'"),
        (CLAIM, CLAIM + CLAIM, "twice"),
        (CLAIM, f'absent.PAINT = ["vax"]\n{CLAIM}', "unknown architecture 'vax'"),
    ],
)
def test_claim_that_could_never_be_wrong(tmp_path: Path, before: str, after: str, why: str) -> None:
    assert before in CLAIM
    with pytest.raises(UserError, match=why):
        read(tmp_path, CLAIM.replace(before, after))


class Says:
    """A guest that answers a claim's script."""

    def __init__(self, output: str, status: int = 0) -> None:
        self._answer = CommandResult(status, output, 0.5, (0, 0))
        self.script = ""

    def run(self, script: str, label: str, seconds: float) -> CommandResult:
        self.script = script
        return self._answer


def judged(
    output: str, status: int = 0, *, position: Position = Position.WHOLE, paint: str = "y", name: str = "x86_64", **changes: Any
) -> CaseResult:
    values = {"base": "blue", "needs": ("PAINT",), "base_on": {"arm64": ABSENT}} | changes
    claim = Claim("01 colour", "It turns red.", "value red", patched="red", **values)
    kernel = cast(Kernel, type("Built", (), {"modules_error": "main.c:7: error" if "modprobe" in output else ""}))
    store = cast(Any, None)
    target = Target(name, kernel, {"PAINT": paint} if paint else {}, "", store, position=position, claims=(claim,))
    suite = ClaimsSuite()
    (case,) = suite.plan(target)
    assert case == Case(("01 colour",), 60.0)
    (result,) = suite.run(case, cast(Any, Says(output, status)), target)
    assert result.id == "claims:01 colour"
    return result


def test_each_kernel_has_its_own_value() -> None:
    assert judged("value: red\n").outcome is Outcome.PASS
    assert judged("said so\r\nvalue:  blue \r\n", position=Position.BASE).outcome is Outcome.PASS
    for wrong in (judged("value: blue\n"), judged("value: red\n", position=Position.BASE), judged("value: redder\n")):
        assert wrong.outcome is Outcome.FAIL
    for value, outcome in {"red": Outcome.PASS, "blue": Outcome.PASS, "redder": Outcome.FAIL}.items():
        assert judged(f"value: {value}\n", position=Position.WITHIN).outcome is outcome
    elsewhere = judged("value: pink\n", patched_on={"x86_64": "pink"})
    assert elsewhere.outcome is Outcome.PASS
    assert judged("value: pink\n", patched_on={"arm64": "pink"}).outcome is Outcome.FAIL
    for result in (judged("value: red\n"), wrong):
        for text in (result.diagnostic, result.log):
            assert "seen 'red" in text
            assert "base: 'blue', patched: 'red'" in text


@pytest.mark.parametrize(
    ("output", "status"), [("", 0), ("red\n", 0), ("value: \n", 0), ("value: red\nvalue: red\n", 0), ("value: red\n", 1)]
)
def test_silence_is_never_a_pass(output: str, status: int) -> None:
    result = judged(output, status)
    assert result.outcome is Outcome.FAIL
    assert "seen nothing" in result.diagnostic


def test_what_a_kernel_lacks() -> None:
    missing = judged("value: red\n", paint="")
    assert missing.outcome is Outcome.FAIL
    assert "seen 'absent' (CONFIG_PAINT not set)" in missing.diagnostic
    assert judged("value: red\n", paint="", position=Position.BASE).outcome is Outcome.FAIL
    assert judged("value: red\n", paint="", position=Position.BASE, name="arm64").outcome is Outcome.PASS
    # What was said to be absent and is there is a surprise as well.
    assert judged("value: blue\n", position=Position.BASE, name="arm64").outcome is Outcome.FAIL


def test_not_on_base() -> None:
    skipped = judged("value: red\n", position=Position.BASE, base="", not_on_base="it explodes")
    assert (skipped.outcome, skipped.diagnostic) == (Outcome.SKIP, "not tried without the whole series: it explodes")
    assert judged("value: red\n", base="", not_on_base="it explodes").outcome is Outcome.PASS
    assert judged("value: blue\n", base="", not_on_base="it explodes").outcome is Outcome.FAIL


def test_modules_that_do_not_build_are_named() -> None:
    result = judged("modprobe: no such module\n", 1)
    assert result.outcome is Outcome.FAIL
    assert "are not there: main.c:7: error" in result.diagnostic


def test_bundled_claims() -> None:
    for name in series.bundled():
        for claim in series.load(name).claims:
            assert all(claim.on_base(target) or claim.not_on_base for target in arch.names())
            # What a script calls is there.
            source = "".join(path.read_text() for path in paths.MODULES.glob("*.c"))
            assert all(f'{{ "{test}", ' in source for test in re.findall(r"\bmodule (\w+)", claim.script))


def test_struct_is_what_toml_says() -> None:
    """Fields with two words have dashes there."""
    assert "not-on-base" in msgspec.to_builtins(Claim("1", "it is", "value it", patched="it"))
