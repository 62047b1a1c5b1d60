"""Measures of a series: what the file may say, and which figures are red."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, cast

import pytest

from harness import arch, kernel, paths, series
from harness.errors import UserError
from harness.guest import CommandResult
from harness.kernel import kconfig
from harness.model import CaseResult, Condition, Kernel, Measure, Outcome, Position
from harness.series.claims import read_measures
from harness.suites.base import Case, Target
from harness.suites.bench import BenchSuite
from harness.suites.value import number

MEASURE = """\
[[measure]]
case = "exit"
says = "It exits."
script = "value 1"
at-least = { x86_64 = 230 }
at-most = { x86_64 = 460 }
"""


def read(directory: Path, text: str) -> tuple[Measure, ...]:
    (directory / "bench.toml").write_text(text)
    return read_measures(directory / "bench.toml")[0]


def test_measures_are_read(tmp_path: Path) -> None:
    (measure,) = read(tmp_path, MEASURE)
    assert (measure.case, measure.unit, measure.says, measure.script) == ("exit", "instructions", "It exits.", "value 1")
    assert (measure.at_least, measure.at_most) == ({"x86_64": 230}, {"x86_64": 460})
    assert (measure.may_be_zero, measure.needs, measure.limits_for, measure.seconds) == (False, (), {}, 60)
    assert read_measures(tmp_path / "nowhere.toml") == ((), ())
    (free,) = read(tmp_path, re.sub("at-.*\n", "", MEASURE))
    assert free.at_most == {}
    (zero,) = read(tmp_path, MEASURE.replace("230", "0") + "may-be-zero = true\n")
    assert zero.at_least == {"x86_64": 0}
    (exact,) = read(tmp_path, MEASURE.replace("230", "460"))
    assert exact.at_least == exact.at_most


def test_symbols_that_measures_depend_on(tmp_path: Path) -> None:
    file = tmp_path / "bench.toml"
    file.write_text(f'[limits-for]\nSIZE = "n"\n{MEASURE}needs = ["FPROBE"]\nlimits-for.FAST = "m"\nlimits-for.SIZE = "y"\n')
    (measure,), conditions = read_measures(file)
    assert measure.limits_for == {"SIZE": "y", "FAST": "m"}
    assert conditions == (
        Condition("SIZE", "bench", f"{file}:2"),
        Condition("FPROBE", "bench", f"{file}:9"),
        Condition("FAST", "bench", f"{file}:10"),
        Condition("SIZE", "bench", f"{file}:11"),
    )


def test_settings_of_an_architecture_are_for_all_measures(tmp_path: Path) -> None:
    file = tmp_path / "bench.toml"
    own = 'limits-on.arm64.SIZE = "y"\nlimits-on.x86_64.FAST = "m"\n'
    file.write_text(f'[limits-for]\nSIZE = "n"\n[limits-on.arm64]\nSIZE = "m"\nGCC = "n"\n{MEASURE}{own}')
    (measure,), conditions = read_measures(file)
    assert measure.settings("arm64") == {"SIZE": "y", "GCC": "n"}
    assert measure.settings("x86_64") == {"SIZE": "n", "FAST": "m"}
    assert measure.settings("s390x") == {"SIZE": "n"}
    lines = {"SIZE": (2, 4, 12), "GCC": (5,), "FAST": (13,)}
    assert {(one.symbol, one.where) for one in conditions} == {(name, f"{file}:{n}") for name, ns in lines.items() for n in ns}


@pytest.mark.parametrize(
    ("before", "after", "line", "why"),
    [
        ('script = "value 1"', 'script = "value 1"\nlimits-on.vax.KASAN = "y"', 5, "unknown architecture 'vax'"),
        ('script = "value 1"', 'script = "value 1"\nlimits-on.arm64.CONFIG_KASAN = "y"', 5, "is no configuration symbol"),
        ('script = "value 1"', 'script = "value 1"\nlimits-on.arm64.KASAN = "on"', 5, "Invalid enum value"),
        (MEASURE, '[limits-on.vax]\nKASAN = "n"\n' + MEASURE, 1, "unknown architecture 'vax'"),
        (re.search("at-.*", MEASURE, re.DOTALL)[0], 'limits-on.arm64.KASAN = "n"', 5, "limits-on without limits"),  # type: ignore[index]
        ('says = "It exits."', 'says = ""', 3, "no says"),
        ('script = "value 1"', 'script = " "', 4, "no script"),
        ('case = "exit"', 'case = "exit"\nunit = ""', 3, "no unit"),
        ('case = "exit"', 'case = ""', 2, "no case"),
        ("at-most = { x86_64", "at-most = { vax", 6, "unknown architecture 'vax'"),
        ("at-least = { x86_64", "at-least = { x86-64", 5, "unknown architecture 'x86-64'"),
        ("at-most", "at_most", 6, "unknown field `at_most`"),
        ("at-most = { x86_64 = 460 }", "at-most = 460", 6, "Expected `object`, got `int`"),
        ("460", '"460"', 6, "Expected `float`, got `str`"),
        ("460", "true", 6, "Expected `float`, got `bool`"),
        ("460", "nan", 6, "a limit of nan"),
        ("460", "inf", 6, "a limit of inf"),
        ("230", "-inf", 5, "a limit of -inf"),
        ("230", "-1", 5, "no value of x86_64 is within -1 and 460"),
        ("230", "461", 5, "no value of x86_64 is within 461 and 460"),
        ("230", "0", 5, "at-least of x86_64 is 0"),
        ("at-least = { x86_64 = 230 }\n", "", 5, "at-most for x86_64 without at-least"),
        ("at-most = { x86_64 = 460 }\n", "", 5, "at-least for x86_64 without at-most"),
        ("at-most = { x86_64 = 460 }", "at-most = { x86_64 = 460, arm64 = 460 }", 6, "at-most for arm64 without at-least"),
        ('script = "value 1"', 'script = "value 1"\nseconds = -1', 5, "a deadline of -1 seconds"),
        ('script = "value 1"', 'script = "value 1"\nseconds = nan', 5, "a deadline of nan seconds"),
        ('script = "value 1"', 'script = "value 1"\nlimits-for.KASAN = "on"', 5, "Invalid enum value"),
        ('script = "value 1"', 'script = "value 1"\nlimits-for.KASAN = false', 5, "got `bool`"),
        ('script = "value 1"', 'script = "value 1"\nlimits-for.CONFIG_KASAN = "n"', 5, "is no configuration symbol"),
        ('script = "value 1"', 'script = "value 1"\nneeds = ["CONFIG_KASAN"]', 5, "is no configuration symbol"),
        (MEASURE, '[limits-for]\n"" = "n"\n' + MEASURE, 2, "'' is no configuration symbol"),
        (MEASURE, MEASURE + MEASURE, 8, "twice"),
        (MEASURE, "measure = []", 1, "no [[measure]]"),
        (MEASURE, "[limits-fro]\n" + MEASURE, 1, "unknown field `limits-fro`"),
        (re.search("at-.*", MEASURE, re.DOTALL)[0], 'limits-for.KASAN = "n"', 5, "limits-for without limits"),  # type: ignore[index]
    ],
)
def test_measure_that_could_never_be_wrong(tmp_path: Path, before: str, after: str, line: int, why: str) -> None:
    assert before in MEASURE
    with pytest.raises(UserError, match=re.escape(why)) as raised:
        read(tmp_path, MEASURE.replace(before, after, 1))
    assert raised.value.message.startswith(f"{tmp_path}/bench.toml:{line}: ")
    assert raised.value.hint
    assert raised.value.exit_code == 2


class Says:
    def __init__(self, output: str, status: int) -> None:
        self._answer = CommandResult(status, output, 0.5, (0, 0))
        self.asked: list[tuple[str, str, float]] = []

    def run(self, script: str, label: str, seconds: float) -> CommandResult:
        self.asked.append((script, label, seconds))
        return self._answer


def judged(
    output: str, status: int = 0, *, position: Position = Position.WHOLE, name: str = "x86_64", probe: str = "y", **changes: Any
) -> CaseResult:
    limits = {"at_least": {"x86_64": 230.0}, "at_most": {"x86_64": 460.0}}
    measure = Measure("exit", "It exits.", "value 1", needs=("PROBE",), seconds=7, **(limits | changes))
    built = cast(Kernel, type("Built", (), {"modules_error": ""}))
    config = {"PROBE": probe, "FAST": "y"} if probe else {}
    others = tuple(Measure(f"{number}", "no", "no") for number in range(2))
    measures = (others[0], measure, others[1])
    target = Target(name, built, config, "", cast(Any, None), position=position, measures=measures)
    suite = BenchSuite()
    cases = suite.plan(target)
    assert [case.label for case in cases] == ["0", "exit", "1"]
    assert cases[1] == Case(("exit",), 7.0)
    guest = Says(output, status)
    (result,) = suite.run(cases[1], cast(Any, guest), target)
    assert result.id == "bench:exit"
    if guest.asked:
        assert guest.asked == [(". /harness/claims\nvalue 1", "bench:exit", 7.0)]
        assert result.seconds == 0.5
        assert result.log.startswith("It exits.\n")
    return result


@pytest.mark.parametrize(
    ("value", "outcome", "problem"),
    [
        ("460.00", Outcome.PASS, ""),
        ("230", Outcome.PASS, ""),
        ("460.01", Outcome.FAIL, ": too much"),
        ("229.99", Outcome.FAIL, ": too little to be a real cost"),
        ("460000", Outcome.FAIL, ": too much"),
        ("0", Outcome.FAIL, ": nothing was measured"),
        ("0.00", Outcome.FAIL, ": nothing was measured"),
        ("-5", Outcome.FAIL, ": a cost is not negative"),
        ("-300", Outcome.FAIL, ": a cost is not negative"),
    ],
)
def test_limits_hold_for_the_series_where_they_are_set(value: str, outcome: Outcome, problem: str) -> None:
    result = judged(f"one line\nvalue: {value}\n")
    assert (result.outcome, result.value, result.unit) == (outcome, float(value), "instructions")
    assert result.diagnostic == f"{float(value):g} instructions, at least 230, at most 460{problem}"
    assert result.log == f"It exits.\n{result.diagnostic}\none line\nvalue: {value}"


@pytest.mark.parametrize("elsewhere", [{"position": Position.BASE}, {"position": Position.WITHIN}, {"name": "arm64"}])
def test_without_limits_a_cost_is_a_cost(elsewhere: dict[str, Any]) -> None:
    assert judged("value: 9999\n", **elsewhere).outcome is Outcome.PASS
    assert judged("value: 1\n", **elsewhere).outcome is Outcome.PASS
    for nothing in ("0", "-5"):
        assert judged(f"value: {nothing}\n", **elsewhere).outcome is Outcome.FAIL
        zero = judged(f"value: {nothing}\n", may_be_zero=True, **elsewhere)
        assert zero.outcome is (Outcome.PASS if nothing == "0" else Outcome.FAIL)


def test_either_side_holds_alone() -> None:
    """bench.toml is refused with one side alone; a limit that got here all the same is not switched off."""
    assert judged("value: 461\n", at_least={}).diagnostic == "461 instructions, at most 460: too much"
    assert judged("value: 1\n", at_least={}).outcome is Outcome.PASS
    assert judged("value: 229\n", at_most={}).diagnostic == "229 instructions, at least 230: too little to be a real cost"
    assert judged("value: 9999\n", at_most={}).outcome is Outcome.PASS


def test_architecture_without_limits_is_named() -> None:
    assert judged("value: 9999\n", name="arm64").diagnostic == "9999 instructions, no limits on arm64"
    assert judged("value: 9999\n", position=Position.BASE).diagnostic == "9999 instructions"
    assert judged("value: 123456789.25\n", at_most={"x86_64": 2e9}).diagnostic.startswith(
        "123456789.25 instructions, at least 230"
    )


def test_zero_within_its_limits() -> None:
    limits: dict[str, Any] = {"at_least": {"x86_64": 0.0}, "may_be_zero": True}
    assert judged("value: 0\n", **limits).outcome is Outcome.PASS
    assert judged("value: -1\n", **limits).outcome is Outcome.FAIL
    assert judged("value: 0\n", may_be_zero=True).outcome is Outcome.FAIL


@pytest.mark.parametrize(
    ("output", "status", "why"),
    [
        ("", 0, "0 values, exit status 0: nothing was printed"),
        ("value: \n", 0, "1 values, exit status 0: value: "),
        ("value: many\n", 0, "'many' is no number"),
        ("value: nan\n", 0, "'nan' is no number"),
        ("value: 300\n", 1, "1 values, exit status 1: value: 300"),
        ("value: 300\nvalue: 300\n", 0, "2 values, exit status 0: value: 300"),
    ],
)
def test_silence_is_never_a_pass(output: str, status: int, why: str) -> None:
    for position in Position:
        result = judged(output, status, position=position)
        assert (result.outcome, result.value, result.diagnostic) == (Outcome.FAIL, None, why)
        assert result.log == f"It exits.\n{output}"


@pytest.mark.parametrize(("text", "value"), [("0", 0), ("460", 460), ("12.50", 12.5), ("-5", -5), ("007", 7)])
def test_numbers(text: str, value: float) -> None:
    assert number(text) == value


@pytest.mark.parametrize(
    "text",
    [
        "",
        " 1",
        "1 ",
        "nan",
        "inf",
        "-inf",
        "1e3",
        "1_000",
        "0x10",
        "1,5",
        "1.",
        ".5",
        "+5",
        "--5",
        "1.2.3",
        "\u0663",
        "12a",
        "1\n",
    ],
)
def test_garbage_is_no_number(text: str) -> None:
    assert number(text) is None


def test_numbers_too_long_to_be_exact_are_none() -> None:
    assert number("9" * 15) == 999999999999999
    assert number("9" * 16) is None


def test_limits_are_for_the_configuration_that_they_name() -> None:
    for same in ({"FAST": "y"}, {"SIZE": "n"}, {"FAST": "y", "SIZE": "n"}):
        assert judged("value: 9999\n", limits_for=same).outcome is Outcome.FAIL
        assert judged("value: 300\n", limits_for=same).outcome is Outcome.PASS
    for other, named in (
        ({"SIZE": "y"}, "CONFIG_SIZE=y"),
        ({"FAST": "n"}, "CONFIG_FAST=n"),
        ({"FAST": "n", "SIZE": "y"}, "CONFIG_FAST=n and CONFIG_SIZE=y"),
        ({"FAST": "y", "SIZE": "m"}, "CONFIG_SIZE=m"),
    ):
        elsewhere = judged("value: 9999\n", limits_for=other)
        assert elsewhere.outcome is Outcome.PASS
        assert (
            elsewhere.diagnostic == f"9999 instructions, at least 230, at most 460 with {named}, which this kernel does not have"
        )
        assert judged("value: 0\n", limits_for=other).outcome is Outcome.FAIL


def test_limits_are_for_other_settings_on_some_architectures() -> None:
    on = {"arm64": {"FAST": "n"}, "x86_64": {"SIZE": "y"}}
    assert judged("value: 9999\n", limits_for={"FAST": "y"}, limits_on=on).outcome is Outcome.PASS
    on = {"arm64": {"SIZE": "y"}, "x86_64": {"FAST": "y"}}
    assert judged("value: 9999\n", limits_for={"FAST": "n"}, limits_on=on).outcome is Outcome.FAIL
    assert judged("value: 9999\n", limits_for={"FAST": "y"}, limits_on=on).outcome is Outcome.FAIL


def test_what_a_kernel_lacks() -> None:
    for probe in ("", "n"):
        lacking = judged("value: 300\n", probe=probe)
        assert (lacking.outcome, lacking.diagnostic) == (Outcome.FAIL, "CONFIG_PROBE not set")
        assert judged("value: 300\n", probe=probe, position=Position.BASE).outcome is Outcome.SKIP
        assert judged("value: 300\n", probe=probe, position=Position.WITHIN).outcome is Outcome.SKIP


SIX = ("arm64", "loongarch64", "ppc64le", "riscv64", "s390x", "x86_64")

BUNDLED = {
    # case: the figures that a lower and an upper limit may have, and what was measured on x86_64
    "no probe": (1, 60, 9),
    "entry": (40, 220, 127),
    "exit": (150, 900, 454),
    "entry and exit": (150, 1600, 467),
    "entry and exit, 15 words": (120, 1600, 468),
    "8 entries": (70, 1000, 288),
    "8 entries and exits": (250, 2500, 936),
    "fprobe event": (200, 2600, 770),
    "fprobe return event": (300, 4000, 1210),
    "function_graph": (300, 4500, 1378),
    "function_graph and exit": (500, 6000, 1778),
    "kprobe.multi": (80, 900, 263),
    "kretprobe.multi": (180, 2000, 583),
    "memory, 1 function": (200, 2100, 976),
    "memory, 100 functions": (5000, 45000, 20160),
    "memory, 1000 functions": (40000, 400000, 178240),
    "memory, task": (1000, 140000, 4096),
}


def test_bundled_measures() -> None:
    """Every measure has limits on both sides on each of the six architectures: a figure far below or above is red there."""
    loaded = series.load("fprobe-on-fgraph")
    assert {arch.name for arch in arch.chosen(())} == set(SIX)
    assert [measure.case for measure in loaded.measures] == list(BUNDLED)
    source = (paths.MODULES / "bench.c").read_text()
    for measure in loaded.measures:
        assert all(f'{{ "{test}", ' in source for test in re.findall(r"\b(?:bench|recorded \d) (\w+)", measure.script))
        assert set(measure.at_least) == set(measure.at_most) == set(SIX), measure.case
        low, high, seen = BUNDLED[measure.case]
        for name in SIX:
            assert low < measure.at_least[name] < measure.at_most[name] < high, (measure.case, name)
            assert measure.at_most[name] < 4.2 * measure.at_least[name], (measure.case, name)
        assert seen / 2 - 1 <= measure.at_least["x86_64"] < seen <= measure.at_most["x86_64"] < 2.1 * seen, measure.case
        assert measure.may_be_zero == (measure.case == "memory, task")


def test_bundled_limits_hold_on_the_configuration_that_is_built() -> None:
    """The options that a run sets by itself do not switch the limits off."""
    loaded = series.load("fprobe-on-fgraph")
    for target in arch.chosen(()):
        asked = {
            request.symbol: request.value
            for path in kernel.fragments_for(target, [*filter(None, [loaded.fragment])])
            for request in kconfig.read_fragment(path, target.name)
        }
        for measure in loaded.measures:
            settings = measure.settings(target.name)
            # Debian 12 has no gcc for loongarch64.
            assert settings.pop("CC_IS_GCC") == ("n" if target.name == "loongarch64" else "y")
            assert set(settings) == {"CC_OPTIMIZE_FOR_PERFORMANCE", "PROVE_LOCKING", "KASAN"}
            for symbol, setting in settings.items():
                assert asked.get(symbol, setting) == setting
    symbols = {condition.symbol for condition in loaded.conditions if condition.suite == "bench"}
    assert {"FPROBE", "FPROBE_EVENTS", "BPF_EVENTS", "FUNCTION_GRAPH_TRACER", "KASAN", "CC_IS_GCC"} <= symbols


@pytest.mark.parametrize("case", ["fprobe event", "fprobe return event", "function_graph", "function_graph and exit"])
def test_bundled_trace_measures_prove_their_events(case: str) -> None:
    (measure,) = [one for one in series.load("fprobe-on-fgraph").measures if one.case == case]
    assert re.search(r"^value_of recorded [12] (call|exit)$", measure.script, re.MULTILINE)
