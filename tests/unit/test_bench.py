from __future__ import annotations

import re
from pathlib import Path
from typing import Any, cast

import pytest

from harness import paths, series
from harness.errors import UserError
from harness.guest import CommandResult
from harness.model import CaseResult, Kernel, Measure, Outcome, Position
from harness.series.claims import read_measures
from harness.suites.base import Target
from harness.suites.bench import BenchSuite

MEASURE = '[[measure]]\ncase = "exit"\nsays = "It exits."\nscript = "value 1"\nat-most = { x86_64 = 460 }\n'


def read(directory: Path, text: str) -> tuple[Measure, ...]:
    (directory / "bench.toml").write_text(text)
    return read_measures(directory / "bench.toml")


def test_measures_are_read(tmp_path: Path) -> None:
    (measure,) = read(tmp_path, MEASURE)
    assert (measure.case, measure.unit, measure.at_most) == ("exit", "instructions", {"x86_64": 460})
    assert read_measures(tmp_path / "nowhere.toml") == ()


@pytest.mark.parametrize(
    ("before", "after", "why"),
    [
        ('says = "It exits."', 'says = ""', "no says"),
        ('script = "value 1"', 'script = " "', "no script"),
        ('case = "exit"', 'case = "exit"\nunit = ""', "no unit"),
        ("x86_64", "vax", "unknown architecture 'vax'"),
        ("at-most", "at-least", "at-least"),
        ("{ x86_64 = 460 }", "460", "object"),
        (MEASURE, MEASURE + MEASURE, "twice"),
    ],
)
def test_measure_that_could_never_be_wrong(tmp_path: Path, before: str, after: str, why: str) -> None:
    assert before in MEASURE
    with pytest.raises(UserError, match=why):
        read(tmp_path, MEASURE.replace(before, after))


class Says:
    def __init__(self, output: str, status: int) -> None:
        self._answer = CommandResult(status, output, 0.5, (0, 0))

    def run(self, script: str, label: str, seconds: float) -> CommandResult:
        return self._answer


def judged(
    output: str, status: int = 0, *, position: Position = Position.WHOLE, name: str = "x86_64", probe: str = "y", **changes: Any
) -> CaseResult:
    measure = Measure("exit", "It exits.", "value 1", at_most={"x86_64": 460}, needs=("PROBE",), **changes)
    kernel = cast(Kernel, type("Built", (), {"modules_error": ""}))
    config = {"PROBE": probe} if probe else {}
    target = Target(name, kernel, config, "", cast(Any, None), position=position, measures=(measure,))
    suite = BenchSuite()
    (case,) = suite.plan(target)
    (result,) = suite.run(case, cast(Any, Says(output, status)), target)
    assert result.id == "bench:exit"
    return result


def test_limit_holds_for_the_series_where_it_is_set() -> None:
    assert judged("value: 460.00\n").outcome is Outcome.PASS
    over = judged("value: 460.01\n")
    assert (over.outcome, over.value, over.unit) == (Outcome.FAIL, 460.01, "instructions")
    assert over.diagnostic == "460.01 instructions, at most 460"
    assert judged("value: 9999\n", position=Position.BASE).outcome is Outcome.PASS
    assert judged("value: 9999\n", name="arm64").outcome is Outcome.PASS


@pytest.mark.parametrize(
    ("output", "status"), [("", 0), ("value: \n", 0), ("value: many\n", 0), ("value: nan\n", 0), ("value: 1\n", 1)]
)
def test_silence_is_never_a_pass(output: str, status: int) -> None:
    result = judged(output, status)
    assert (result.outcome, result.value) == (Outcome.FAIL, None)
    assert result.diagnostic


def test_limits_are_for_the_configuration_that_they_name(tmp_path: Path) -> None:
    (measure,) = read(tmp_path, f'[limits-for]\nSIZE = "n"\n{MEASURE}')
    assert measure.limits_for == {"SIZE": "n"}
    assert judged("value: 9999\n", limits_for={"SIZE": "n"}).outcome is Outcome.FAIL
    elsewhere = judged("value: 9999\n", limits_for={"SIZE": "y"})
    assert elsewhere.outcome is Outcome.PASS
    assert elsewhere.diagnostic.endswith("if it were not for SIZE")


def test_what_a_kernel_lacks() -> None:
    assert judged("value: 1\n", probe="").outcome is Outcome.FAIL
    assert judged("value: 1\n", probe="", position=Position.BASE).outcome is Outcome.SKIP


def test_bundled_measures() -> None:
    source = (paths.MODULES / "bench.c").read_text()
    measured = [measure for name in series.bundled() for measure in series.load(name).measures]
    assert measured
    for measure in measured:
        assert all(f'{{ "{test}", ' in source for test in re.findall(r"\bbench (\w+)\)", measure.script))
