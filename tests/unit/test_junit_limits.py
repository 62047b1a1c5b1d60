"""The limits of logs, diagnostics and names in junit.xml, and reports of cases that belong to no run."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

from harness.model import CaseResult, Outcome
from harness.results import RunReport, journal, junit

LONG = "x" * 3_000_000


def only(xml: str, name: str) -> ElementTree.Element:
    (element,) = ElementTree.fromstring(xml).iter(name)
    return element


def kept(log: str, largest: int, monkeypatch: pytest.MonkeyPatch) -> int:
    """The number of characters of a log in a report of limited size."""
    monkeypatch.setattr(junit, "_LARGEST", largest)
    return len(only(junit.render_cases("s", [CaseResult("s", "a", Outcome.PASS, log=log)]), "system-out").text or "")


@pytest.mark.parametrize(
    ("largest", "characters"), [(10_000_000, 1_000_000), (200_000, 50_000), (10_000, 2_000), (1_000, 200), (10, 200)]
)
def test_log_is_as_long_as_the_report_allows(largest: int, characters: int, monkeypatch: pytest.MonkeyPatch) -> None:
    assert 0.8 * characters <= kept(LONG, largest, monkeypatch) <= characters


def test_report_that_is_exactly_too_large_is_made_smaller(monkeypatch: pytest.MonkeyPatch) -> None:
    log = "y" * 40_000
    whole = len(junit.render_cases("s", [CaseResult("s", "a", Outcome.PASS, log=log)]))
    assert kept(log, whole + 1, monkeypatch) == 40_000
    assert kept(log, whole, monkeypatch) <= 2_000


def test_failure_has_a_short_message_and_a_longer_text() -> None:
    failure = only(junit.render_cases("s", [CaseResult("s", "a", Outcome.FAIL, diagnostic=LONG)]), "failure")
    assert 3_000 < len(failure.attrib["message"]) <= 4_000
    assert 12_000 < len(failure.text or "") <= 16_000


def test_long_names_are_cut_and_stay_apart() -> None:
    names = ["n" * 500, "n" * 500 + "other"]
    xml = junit.render_cases("s", [CaseResult("s", name, Outcome.PASS) for name in names])
    assert [case.get("name") for case in ElementTree.fromstring(xml).iter("testcase")] == ["n" * 200, "n" * 200 + "#2"]


def test_cases_without_a_run_are_one_suite() -> None:
    results = [CaseResult("kunit", "a", Outcome.PASS), CaseResult("kunit", "b", Outcome.LOST, diagnostic="why")]
    xml = junit.render_cases("a log", results)
    suite = only(xml, "testsuite")
    assert (suite.get("name"), suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("a log", "2", "1", "0")
    assert [(case.get("classname"), case.get("name"), [child.tag for child in case]) for case in suite] == [
        ("a log", "a", []),
        ("a log", "b", ["failure"]),
    ]
    assert only(xml, "failure").get("type") == "lost"


def test_run_without_a_case_is_an_error_under_its_own_name() -> None:
    report = RunReport(Path("run"))
    report.add(journal.RunStarted(1e9, "fprobe", "debian:x", ("run",)))
    suite = only(junit.render(report), "testsuite")
    (case,) = suite.iter("testcase")
    assert (suite.get("name"), case.get("classname"), case.get("name")) == ("fprobe.run", "fprobe.run", "run")
    assert suite.get("file") == "journal.jsonl"
    assert only(junit.render(report), "error").get("type") == "error"


@pytest.mark.parametrize(("started", "stamp"), [(1e9, "2001-09-09T01:46:40"), (0.0, None)])
def test_job_of_which_no_start_is_known_has_no_time(started: float, stamp: str | None) -> None:
    report = RunReport(Path("run"))
    report.add(journal.RunStarted(1e9, "fprobe", "debian:x", ("run",)))
    report.add(journal.JobStarted(started, "x86_64", "last"))
    report.add(journal.CaseFinished(1e9, "x86_64", "last", CaseResult("kunit", "a", Outcome.PASS)))
    report.add(journal.JobFinished(1e9, "x86_64", "last"))
    report.add(journal.RunFinished(1e9, 0))
    assert only(junit.render(report), "testsuite").get("timestamp") == stamp


def test_skip_says_why_in_both_places() -> None:
    skipped = only(junit.render_cases("s", [CaseResult("s", "a", Outcome.SKIP, diagnostic="no fprobe")]), "skipped")
    assert (skipped.get("message"), skipped.text) == ("no fprobe", "no fprobe")
