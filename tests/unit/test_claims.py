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
from harness.model import ABSENT, CaseResult, Claim, Condition, Kernel, Outcome, Position
from harness.series.claims import read_claims
from harness.suites import Target
from harness.suites.base import Case
from harness.suites.claims import ClaimsSuite

CLAIM = """\
[[claim]]
case = "01 colour"
says = "It turns red."
needs = ["PAINT"]
base = "blue"
base-on.s390x = "green"
patched = "red"
patched-on.arm64 = "pink"
script = "value red"
"""


def read(directory: Path, text: str) -> tuple[Claim, ...]:
    (directory / "claims.toml").write_text(text)
    return read_claims(directory / "claims.toml")[0]


def test_read(tmp_path: Path) -> None:
    assert read_claims(tmp_path / "claims.toml") == ((), ())
    (claim,) = read(tmp_path, f'absent.PAINT = ["arm64"]\n{CLAIM}')
    assert {name: claim.on_base(name) for name in ("x86_64", "s390x", "arm64", "riscv64")} == {
        "x86_64": "blue",
        "s390x": "green",
        "arm64": ABSENT,
        "riscv64": "blue",
    }
    assert (claim.on_patched("x86_64"), claim.on_patched("arm64")) == ("red", "pink")
    assert (claim.case, claim.says, claim.script, claim.needs) == ("01 colour", "It turns red.", "value red", ("PAINT",))


def test_what_absent_says_is_overridden_by_the_claim(tmp_path: Path) -> None:
    (claim,) = read(tmp_path, f'absent.PAINT = ["arm64", "s390x"]\n{CLAIM}')
    assert (claim.on_base("s390x"), claim.on_base("arm64")) == ("green", ABSENT)


def test_symbols_that_claims_depend_on(tmp_path: Path) -> None:
    (tmp_path / "claims.toml").write_text(CLAIM + CLAIM.replace("01", "02").replace('["PAINT"]', '[\n"WALL",\n"BRUSH"]'))
    file = tmp_path / "claims.toml"
    assert read_claims(file)[1] == (
        Condition("PAINT", "claims", f"{file}:4"),
        Condition("WALL", "claims", f"{file}:13"),
        Condition("BRUSH", "claims", f"{file}:13"),
    )


@pytest.mark.parametrize(
    ("before", "after", "line", "why"),
    [
        ("says =", "syas =", 3, "unknown field `syas`"),
        ('says = "It turns red."', 'says = ""', 3, "'01 colour': no says"),
        ('case = "01 colour"', 'case = " "', 2, "no case"),
        ('patched = "red"\n', "", 1, "patched"),
        ('patched = "red"', 'patched = " "', 7, "'01 colour': no patched"),
        ('patched = "red"', "patched = 7", 7, "Expected `str`, got `int`"),
        ('patched = "red"', 'patched = "red"\npatched = "red"', 8, "overwrite"),
        ('patched = "red"', "patched = red", 7, "Invalid value"),
        ('patched = "red"', f'patched = "{ABSENT}"', 7, "with the series"),
        ('patched-on.arm64 = "pink"', f'patched-on.arm64 = "{ABSENT}"', 8, "with the series"),
        ('patched-on.arm64 = "pink"', 'patched-on.arm64 = ""', 8, "no value"),
        ('base-on.s390x = "green"', 'base-on.s390x = " "', 6, "no value"),
        ('base = "blue"', "", 1, "one of base and not-on-base"),
        ('base = "blue"', 'base = " "', 5, "one of base and not-on-base"),
        ('base = "blue"', 'base = "blue"\nnot-on-base = "explodes"', 6, "one of base and not-on-base"),
        ('base = "blue"', 'not-on-base = "explodes"', 6, "base-on beside not-on-base"),
        ('script = "value red"', 'script = ""', 9, "no script"),
        ('script = "value red"', 'script = "value red"\nseconds = 0', 10, "a deadline of 0 seconds"),
        ('script = "value red"', 'script = "value red"\nseconds = inf', 10, "a deadline of inf seconds"),
        ("s390x", "vax", 6, "unknown architecture 'vax'"),
        ("arm64", "vax", 8, "unknown architecture 'vax'"),
        ("PAINT", "CONFIG_PAINT", 4, "'CONFIG_PAINT' is no configuration symbol"),
        ("PAINT", "PAI NT", 4, "'PAI NT' is no configuration symbol"),
        ('["PAINT"]', '"PAINT"', 4, "Expected `array`, got `str`"),
        (CLAIM, CLAIM + CLAIM, 11, "twice"),
        (CLAIM, f'absent.PAINT = ["vax"]\n{CLAIM}', 1, "unknown architecture 'vax'"),
        (CLAIM, f'\n[absent]\nPIANT = ["arm64"]\n{CLAIM}', 3, "no claim needs PIANT"),
        (CLAIM, "claim = []", 1, "no [[claim]]"),
        (CLAIM, "", 1, "missing required field `claim`"),
        (CLAIM, f"{CLAIM}\n\x00", 11, "Invalid"),
        (CLAIM, f"{CLAIM}[[claims]]\n", 10, "unknown field `claims`"),
    ],
)
def test_claim_that_could_never_be_wrong(tmp_path: Path, before: str, after: str, line: int, why: str) -> None:
    assert before in CLAIM
    with pytest.raises(UserError, match=re.escape(why)) as raised:
        read(tmp_path, CLAIM.replace(before, after, 1))
    assert raised.value.message.startswith(f"{tmp_path}/claims.toml:{line}: ")
    assert raised.value.hint
    assert raised.value.exit_code == 2


def test_file_that_is_no_text(tmp_path: Path) -> None:
    (tmp_path / "claims.toml").write_bytes(CLAIM.encode() + b"# \xff\n")
    with pytest.raises(UserError, match=r"claims\.toml:10: .*UTF-8"):
        read_claims(tmp_path / "claims.toml")


class Says:
    """A guest that answers a claim's script."""

    def __init__(self, output: str, status: int = 0) -> None:
        self._answer = CommandResult(status, output, 0.5, (0, 0))
        self.asked: list[tuple[str, str, float]] = []

    def run(self, script: str, label: str, seconds: float) -> CommandResult:
        self.asked.append((script, label, seconds))
        return self._answer


def judged(
    output: str, status: int = 0, *, position: Position = Position.WHOLE, paint: str = "y", name: str = "x86_64", **changes: Any
) -> CaseResult:
    values = {"base": "blue", "needs": ("PAINT",), "base_on": {"arm64": ABSENT}} | changes
    claim = Claim("01 colour", "It turns red.", "value red", patched="red", seconds=7, **values)
    kernel = cast(Kernel, type("Built", (), {"modules_error": "main.c:7: error" if "modprobe" in output else ""}))
    store = cast(Any, None)
    others = tuple(Claim(f"{number}", "no", "no", patched="no", base="no") for number in range(2))
    claims = (others[0], claim, others[1])
    target = Target(name, kernel, {"PAINT": paint} if paint else {}, "", store, position=position, claims=claims)
    suite = ClaimsSuite()
    cases = suite.plan(target)
    assert [case.label for case in cases] == ["0", "01 colour", "1"]
    assert cases[1] == Case(("01 colour",), 7.0)
    guest = Says(output, status)
    (result,) = suite.run(cases[1], cast(Any, guest), target)
    assert result.id == "claims:01 colour"
    if guest.asked:
        assert guest.asked == [(". /harness/claims\nvalue red", "claims:01 colour", 7.0)]
        assert result.seconds == 0.5
    assert result.log.startswith("It turns red.\nseen ") or result.outcome is Outcome.SKIP
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


@pytest.mark.parametrize(
    ("position", "where"),
    [
        (Position.BASE, "without the series"),
        (Position.WITHIN, "with a part of the series"),
        (Position.WHOLE, "with the series"),
    ],
)
def test_what_was_seen_is_reported(position: Position, where: str) -> None:
    result = judged("a line\nvalue: gray\n", position=position)
    text = f"seen 'gray' {where}; base: 'blue', patched: 'red'"
    assert (result.diagnostic, result.log) == (text, f"It turns red.\n{text}\na line\nvalue: gray")


@pytest.mark.parametrize(
    ("output", "status", "why"),
    [
        ("", 0, "0 values, exit status 0: nothing was printed"),
        ("red\n \n", 0, "0 values, exit status 0: red"),
        ("value: \n", 0, "1 values, exit status 0: value:"),
        ("value: red\nvalue: red\n", 0, "2 values, exit status 0: value: red"),
        ("value: red\n", 1, "1 values, exit status 1: value: red"),
        ("a value: red\n", 0, "0 values, exit status 0: a value: red"),
        ("value: red\n", 127, "1 values, exit status 127: value: red"),
    ],
)
def test_silence_is_never_a_pass(output: str, status: int, why: str) -> None:
    result = judged(output, status)
    assert result.outcome is Outcome.FAIL
    assert result.diagnostic.startswith(f"seen nothing ({why}") and "with the series" in result.diagnostic


def test_what_a_kernel_lacks() -> None:
    missing = judged("value: red\n", paint="")
    assert missing.outcome is Outcome.FAIL
    assert "seen 'absent' (CONFIG_PAINT not set)" in missing.diagnostic
    assert "(CONFIG_PAINT and CONFIG_WALL not set)" in judged("value: red\n", paint="", needs=("PAINT", "WALL")).diagnostic
    assert "(CONFIG_WALL not set)" in judged("value: red\n", needs=("PAINT", "WALL")).diagnostic
    assert judged("value: red\n", paint="n").outcome is Outcome.FAIL
    assert judged("value: red\n", paint="m").outcome is Outcome.PASS
    assert judged("value: red\n", paint="", position=Position.BASE).outcome is Outcome.FAIL
    assert judged("value: red\n", paint="", position=Position.BASE, name="arm64").outcome is Outcome.PASS
    # What was said to be absent and is there is a surprise as well.
    assert judged("value: blue\n", position=Position.BASE, name="arm64").outcome is Outcome.FAIL


def test_not_on_base() -> None:
    for position in (Position.BASE, Position.WITHIN):
        skipped = judged("value: red\n", position=position, base="", not_on_base="it explodes")
        assert (skipped.outcome, skipped.diagnostic) == (Outcome.SKIP, "not tried without the whole series: it explodes")
    assert judged("value: red\n", base="", not_on_base="it explodes").outcome is Outcome.PASS
    wrong = judged("value: blue\n", base="", not_on_base="it explodes")
    assert wrong.outcome is Outcome.FAIL
    assert "base: not tried, patched: 'red'" in wrong.diagnostic


def test_modules_that_do_not_build_are_named() -> None:
    result = judged("modprobe: no such module\n", 1)
    assert result.outcome is Outcome.FAIL
    assert "; the harness's modules are not there: main.c:7: error)" in result.diagnostic
    assert "harness's modules" not in judged("nothing\n", 1).diagnostic


NUMBERS = [f"{number:02}" for number in range(1, 24)]

SAME = {"01", "02", "08", "09", "11", "12", "13", "15", "17", "18", "19", "20"}
"""Claims of the bundled series that promise that something stays, or comes where it was not."""


def test_bundled_claims() -> None:
    """Each promise of the series is there, with a script that calls what exists, and with a value on both sides."""
    loaded = series.load("fprobe-on-fgraph")
    assert [claim.case[:2] for claim in loaded.claims] == NUMBERS
    source = "".join(path.read_text() for path in paths.MODULES.glob("*.c"))
    helpers = set(re.findall(r"^(\w+)\(\)", (paths.GUEST / "claims").read_text(), re.MULTILINE))
    for claim in loaded.claims:
        assert "FPROBE" in claim.needs or claim.needs == ("BPF_EVENTS",), claim.case
        tests = re.findall(r"\bmodule (\w+)", claim.script)
        assert all(f'{{ "{test}", ' in source for test in tests)
        assert tests or {"value"} & helpers & set(claim.script.replace("value_of", "value").split())
        for name in arch.names():
            assert claim.on_patched(name) and claim.on_patched(name) != ABSENT
            assert claim.on_base(name) or claim.not_on_base
            lacks = name in ("arm", "arm64", "riscv64") and "FPROBE" in claim.needs
            assert (claim.on_base(name) == ABSENT) == lacks, (claim.case, name)
        changes = claim.base != claim.patched
        assert changes or claim.case[:2] in SAME - {"02"}, claim.case
    symbols = {condition.symbol for condition in loaded.conditions if condition.suite == "claims"}
    assert symbols == {symbol for claim in loaded.claims for symbol in claim.needs}


def test_every_bundled_series_can_be_loaded() -> None:
    for name in series.bundled():
        loaded = series.load(name)
        assert loaded.claims or name != "fprobe-on-fgraph"


def test_struct_is_what_toml_says() -> None:
    """Fields with two words have dashes there."""
    assert "not-on-base" in msgspec.to_builtins(Claim("1", "it is", "value it", patched="it"))
