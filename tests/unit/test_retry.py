"""Red cases that are tried again."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.model import CaseResult, Outcome
from harness.results import junit, text
from harness.results.journal import CaseFinished, JobStarted, RunReport
from harness.suites import ALL, Selection
from harness.suites.retry import Reds

SELECTED = [(ALL[name], Selection(name)) for name in ("boot", "ftracetest", "command")]


def case(name: str, outcome: Outcome, why: str = "") -> CaseResult:
    suite, _, name = name.partition(":")
    return CaseResult(suite, name, outcome, diagnostic=why, log=f"{outcome.value} log")


def reds(*results: CaseResult) -> Reds:
    return Reds(results, [suite.name for suite, _ in SELECTED])


def test_only_what_is_red_is_run_again() -> None:
    found = reds(
        case("ftracetest:a[1].tc", Outcome.FAIL), case("ftracetest:b.tc", Outcome.PASS), case("build:build", Outcome.FAIL)
    )
    ((suite, selection),) = found.narrow(SELECTED)
    assert suite.name == "ftracetest"
    assert selection.wants("a[1].tc")
    assert not selection.wants("a1.tc")
    assert not selection.wants("b.tc")


def test_cases_that_build_upon_each_other_are_all_run_again() -> None:
    found = reds(case("command:mount /x", Outcome.PASS), case("command:ls /x", Outcome.FAIL))
    assert found.narrow(SELECTED) == [SELECTED[2]]


@pytest.mark.parametrize(
    ("then", "outcome", "left"),
    [
        ([Outcome.PASS], Outcome.FLAKY, 0),
        ([Outcome.FAIL, Outcome.PASS], Outcome.FLAKY, 0),
        ([Outcome.FAIL, Outcome.TIMEOUT], Outcome.CRASH, 1),
        # What a skip is worth nobody knows, and a known red is red.
        ([Outcome.SKIP], Outcome.CRASH, 1),
        ([Outcome.XFAIL], Outcome.CRASH, 1),
    ],
)
def test_pass_at_another_try_is_flaky(then: list[Outcome], outcome: Outcome, left: int) -> None:
    found = reds(case("boot:console", Outcome.CRASH, "BUG: it is"))
    for one in then:
        found.add(case("boot:console", one))
    found.add(case("boot:console of boot 2", Outcome.PASS))
    (settled,) = found.settled()
    assert settled.outcome is outcome
    assert not settled.outcome.green
    assert [one.outcome for one in settled.tries] == [Outcome.CRASH, *then]
    assert settled.diagnostic.endswith("\nBUG: it is")
    assert len(found) == left


def test_what_never_reported_again_is_left_as_it_was() -> None:
    assert list(reds(case("boot:console after the last case", Outcome.CRASH)).settled()) == []


def test_flaky_is_flaky_wherever_one_looks(tmp_path: Path) -> None:
    found = reds(case("ftracetest:a.tc", Outcome.FAIL, "no event"))
    found.add(case("ftracetest:a.tc", Outcome.PASS))
    (settled,) = found.settled()
    report = RunReport(tmp_path)
    report.add(JobStarted(1, "arm64", "last"))
    report.add(CaseFinished(1, "arm64", "last", case("ftracetest:a.tc", Outcome.FAIL, "no event")))
    report.add(CaseFinished(2, "arm64", "last", settled))
    assert [result.outcome for result in report.results] == [Outcome.FLAKY]
    assert text.closing_line(report) == "0 passed, 0 failed, 0 skipped, 1 flaky; the run was cut short"
    assert "2 tries: fail, pass" in junit.render(report)
    # It was tried; nothing is to be tried once more if the run goes on.
    assert not len(Reds(report.results, ["ftracetest"]))


def test_boot_that_is_red_again_under_its_guests_name_is_a_try() -> None:
    found = reds(case("boot:console", Outcome.CRASH))
    assert found.add(case("boot:console of guest retry-1", Outcome.CRASH))
    (settled,) = found.settled()
    assert [one.outcome for one in settled.tries] == [Outcome.CRASH, Outcome.CRASH]


def test_red_that_was_none_before_is_not_passed_over() -> None:
    assert not reds(case("ftracetest:a.tc", Outcome.FAIL)).add(case("boot:console after the last case", Outcome.CRASH))
