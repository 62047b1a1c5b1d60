"""The results of the suite `kunit` for boot logs."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

from harness.logs.lines import clean
from harness.logs.splat import scan
from harness.model import CaseResult, Outcome
from harness.suites import inflight
from harness.suites.base import Selection, Target
from harness.suites.kunit import KunitSuite

DATA = Path(__file__).parent.parent / "data"
BOTH = {"KUNIT": "y", "FPROBE_SANITY_TEST": "y", "KPROBES_SANITY_TEST": "y"}


def judged(log: str, **config: str) -> list[CaseResult]:
    """The suite's results, from a file in tests/data or from a log itself."""
    text = (DATA / log).read_text() if log.endswith(".log") else log
    target = Target("x86_64", cast(Any, None), {"KUNIT": "y", **config}, "", cast(Any, None))
    return list(KunitSuite().judge_boot([clean(line) for line in text.splitlines()], target, cast(Any, None)))


def outcomes(log: str, **config: str) -> dict[str, str]:
    results = judged(log, **config)
    assert {result.suite for result in results} == {"kunit"}
    return {result.name: result.outcome.value for result in results}


def test_crash_in_the_middle_of_a_suite() -> None:
    assert outcomes("kunit-crash.log", **BOTH) == {
        "kprobes_test.test_kprobe": "pass",
        "kprobes_test.test_kprobes": "pass",
        "fprobe_test.test_fprobe": "pass",
        "fprobe_test.test_fprobe_syms": "crash",
        "fprobe_test.#3": "lost",
        "#3": "lost",
    }
    crashed = next(result for result in judged("kunit-crash.log") if result.outcome is Outcome.CRASH)
    assert "BUG: kernel NULL pointer dereference" in crashed.diagnostic
    assert "the test itself: fail" in crashed.log
    assert "try faulted: last line seen" in crashed.log


def test_totals_that_disagree_are_red_with_a_name() -> None:
    (red,) = [result for result in judged("kunit-totals.log", **BOTH) if not result.outcome.green and "." in result.name]
    assert (red.name, red.outcome) == ("fprobe_test.totals", Outcome.LOST)
    assert "fprobe_test: the test counted pass:5 fail:1 skip:0 total:6" in red.diagnostic


def test_suite_that_never_reports() -> None:
    assert outcomes("kunit-silent-suite.log") == {
        "kprobes_test.test_kprobe": "pass",
        "list-kunit-test.list_test_list_init": "skip",
        "#2": "lost",
    }


def test_expected_suite_that_never_reports() -> None:
    found = outcomes("kunit-silent-suite.log", **BOTH)
    assert found["fprobe_test"] == "lost"
    assert "kprobes_test" not in found
    (lost,) = [result for result in judged("kunit-silent-suite.log", **BOTH) if result.name == "fprobe_test"]
    assert "CONFIG_FPROBE_SANITY_TEST=y" in lost.diagnostic
    assert "fprobe_test" not in outcomes("kunit-silent-suite.log", FPROBE_SANITY_TEST="m")


def test_ktap_twice_in_one_log() -> None:
    assert outcomes("kunit-twice.log", **BOTH) == {
        "kprobes_test.test_kprobe": "pass",
        "fprobe_test.test_fprobe": "pass",
        "fprobe_test.test_fprobe_syms": "fail",
    }


def test_whole_boot_is_green() -> None:
    found = outcomes("boot-x86_64.log", KPROBES_SANITY_TEST="y")
    assert len(found) > 3
    assert set(found.values()) == {"pass"}


@pytest.mark.parametrize("log", ["", "[    0.1] Booting Linux\n[    0.2] kunit: disabled\n"])
def test_boot_without_ktap_is_red(log: str) -> None:
    (lost,) = judged(log)
    assert (lost.name, lost.outcome) == ("kunit", Outcome.LOST)
    assert "the boot log has no KTAP" in lost.diagnostic
    assert outcomes(log, **BOTH) == {"kunit": "lost", "fprobe_test": "lost", "kprobes_test": "lost"}


@pytest.mark.parametrize("built", ["m", "n", ""])
def test_kernel_without_kunit_is_a_skip(built: str) -> None:
    (skip,) = judged("kunit-totals.log", KUNIT=built)
    assert (skip.name, skip.outcome) == ("kunit", Outcome.SKIP)
    assert "not built in" in skip.diagnostic


def test_suite_that_passed_without_a_case_is_red() -> None:
    head = "KTAP version 1\n1..1\n"
    (lost,) = judged(f"{head}ok 1 fprobe_test\n")
    assert (lost.name, lost.outcome) == ("fprobe_test", Outcome.LOST)
    assert "none of its cases" in lost.diagnostic
    # A suite that could not begin fails without a case; one of which all is filtered away skips.
    assert outcomes(f"{head}not ok 1 fprobe_test\n") == {"fprobe_test": "fail"}
    assert outcomes(f"{head}ok 1 fprobe_test # SKIP\n") == {"fprobe_test": "skip"}


def test_kernel_with_nothing_to_run_is_red() -> None:
    assert outcomes("KTAP version 1\n1..0\n") == {"nothing-to-run": "lost"}


def test_boot_that_does_not_ask_for_kunit_switches_it_off() -> None:
    assert (KunitSuite.name, KunitSuite.quiet) == ("kunit", "kunit.enable=0")


@pytest.mark.parametrize(
    ("name", "outcome", "concerned"),
    [
        ("fprobe_test.test_fprobe", Outcome.FAIL, True),
        ("fprobe_test.#3", Outcome.LOST, True),
        ("fprobe_test", Outcome.LOST, True),
        ("plan", Outcome.LOST, True),
        ("kunit", Outcome.LOST, True),
        ("list_test.#3", Outcome.LOST, False),
        ("list_test.one", Outcome.FAIL, False),
    ],
)
def test_what_is_lost_concerns_every_selection_that_it_may_belong_to(name: str, outcome: Outcome, concerned: bool) -> None:
    selection = Selection("kunit", ("fprobe_test.test_*",))
    assert KunitSuite().concerns(CaseResult("kunit", name, outcome), selection) is concerned


REPORT = "BUG: scheduling while atomic: init/1/0x00000002"
"""A report of one line."""


@pytest.mark.parametrize(("result", "name"), [("ok 2 b", "b"), ("ok 2 - b", "b"), ("ok 02", "#2")])
def test_report_right_before_a_result(result: str, name: str) -> None:
    found = {one.name: one for one in judged(f"KTAP version 1\n1..2\nok 1 a\n{REPORT}\n{result}\n")}
    assert list(found) == ["a", name]
    assert (found["a"].outcome, found[name].outcome) == (Outcome.LOST, Outcome.CRASH)
    assert found[name].log == f"{REPORT}\n{result}\nthe test itself: pass"


def test_crash_without_a_result_has_the_reports_alone() -> None:
    assert inflight.crashed("kunit", "a", scan([REPORT])).log == REPORT


def test_report_between_the_last_case_and_a_suite_without_a_plan() -> None:
    """No case was in flight. The report makes boot:console red."""
    found = outcomes(f"KTAP version 1\n    not ok 2 b\n{REPORT}\nok 1 a\n")
    assert found == {"a.b": "fail", "a.#1": "lost", "plan": "lost"}
