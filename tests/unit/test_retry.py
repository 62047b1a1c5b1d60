"""Red cases that are tried again."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.model import CaseResult, Outcome
from harness.results import junit, text
from harness.results.journal import CaseFinished, JobStarted, RunReport
from harness.suites import ALL, Selection
from harness.suites.known import Known
from harness.suites.policy import Policy
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
    assert suite.name == selection.suite == "ftracetest"
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


def test_name_that_looks_like_a_guests_is_left_alone() -> None:
    """Only what a boot shows is reported under the name of its guest."""
    found = reds(case("command:echo of guest 2", Outcome.FAIL), case("command:echo", Outcome.FAIL))
    assert found.add(case("command:echo of guest 2", Outcome.PASS))
    assert len(found) == 1
    assert [one.name for one in found.settled()] == ["echo of guest 2"]


@pytest.mark.parametrize("lost", [Outcome.LOST, Outcome.TIMEOUT, Outcome.CRASH, Outcome.ERROR])
def test_case_whose_guest_was_lost_is_no_flaky_test(lost: Outcome) -> None:
    """A known flaky failure covers what the test reported itself, and nothing that became of its guest."""
    entry = Known(
        "ftracetest:a.tc",
        "it depends on the machine",
        outcome=(Outcome.FLAKY,),
        diagnostic=("no event",),
        any_version="it is a test",
    )
    policy = Policy("arm64", "gcc", [entry], ())
    for others, outcome in (([Outcome.PASS], Outcome.XFAIL), ([lost, Outcome.PASS], Outcome.FLAKY)):
        found = reds(case("ftracetest:a.tc", Outcome.FAIL, "no event"))
        for one in others:
            found.add(case("ftracetest:a.tc", one, "no event"))
        (settled,) = found.settled()
        assert policy.judge(settled).outcome is outcome


def test_tries_are_told_in_order() -> None:
    found = reds(case("ftracetest:a.tc", Outcome.FAIL, "no event"), case("ftracetest:b.tc", Outcome.FAIL))
    for outcome in (Outcome.TIMEOUT, Outcome.PASS):
        found.add(case("ftracetest:a.tc", outcome))
    found.add(case("ftracetest:b.tc", Outcome.FAIL))
    a, b = found.settled()
    assert a.diagnostic == "3 tries: fail, timeout, pass\nno event"
    assert b.diagnostic == "2 tries: fail, fail"
    assert (a.log, b.outcome) == ("fail log", Outcome.FAIL)


def test_suite_without_a_red_case_is_not_run_again() -> None:
    assert reds(case("ftracetest:a.tc", Outcome.PASS)).narrow(SELECTED) == []
    assert [suite.name for suite, _ in reds(case("boot:agent", Outcome.LOST)).narrow(SELECTED)] == ["boot"]
