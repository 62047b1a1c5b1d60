"""What the readers of junit.xml need. Each test is named after one, and says where that can be seen in its code."""

from __future__ import annotations

import datetime
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

import pytest
from hypothesis import given
from hypothesis import strategies as st
from junitparser import JUnitXml

from harness.model import CaseResult, Outcome
from harness.results import RunReport, journal, junit

BEGAN = 1_795_259_888.5
ONE_OF_EACH = [CaseResult("suite", f"a/{outcome.value}.tc", outcome, 1.5, "why", "the log") for outcome in Outcome]
HUGE = "first\n" + "ä\U0001f600" * 2_000_000 + "\nlast"
"""12 MB"""
ENDED = journal.RunFinished(3.0, 1)


def report(*results: CaseResult, finished: journal.RunFinished | None = ENDED) -> RunReport:
    found = RunReport(Path("runs/some"))
    found.add(journal.RunStarted(1.0, "some-series", "debian:x", ("run",)))
    for arch in ("arm64", "x86_64") if results else ():
        found.add(journal.JobStarted(BEGAN, arch, "last"))
        found.add(journal.JobProperties(BEGAN, arch, "last", {"release": "6.12.99"}))
        for result in results:
            found.add(journal.CaseFinished(BEGAN + 2, arch, "last", result))
    if finished:
        found.add(finished)
    return found


def read(*results: CaseResult) -> Element:
    return ElementTree.fromstring(junit.render(report(*results)))


def only(tree: Element, name: str) -> Element:
    """The first such element."""
    found = tree.find(f".//{name}")
    assert found is not None
    return found


def text(tree: Element, name: str) -> str:
    return only(tree, name).text or ""


# Any reader.


def test_any_reader_finds_what_was_meant(tmp_path: Path) -> None:
    junit.write(report(*ONE_OF_EACH), tmp_path / "junit.xml")
    suites = list(JUnitXml.fromfile(str(tmp_path / "junit.xml")))
    assert [suite.name for suite in suites] == ["some-series.last.arm64.suite", "some-series.last.x86_64.suite"]
    for suite in suites:
        properties = suite.properties()  # type: ignore[no-untyped-call]
        assert {one.name: one.value for one in properties} == {"release": "6.12.99"}
        kinds = {case.name: [(type(one).__name__, one.type) for one in case.result] for case in suite}
        assert kinds == {
            "a/pass.tc": [],
            "a/fail.tc": [("Failure", "fail")],
            "a/skip.tc": [("Skipped", "skipped")],
            "a/xfail.tc": [("Skipped", "skipped")],
            "a/unresolved.tc": [("Failure", "unresolved")],
            "a/crash.tc": [("Failure", "crash")],
            "a/timeout.tc": [("Failure", "timeout")],
            "a/lost.tc": [("Failure", "lost")],
            "a/error.tc": [("Error", "error")],
            "a/flaky.tc": [("Failure", "flaky")],
        }
        assert all(case.classname == suite.name and case.time == 1.5 and case.system_out == "the log" for case in suite)


def test_any_reader_sees_every_red_outcome() -> None:
    assert set(junit.ELEMENTS) == set(Outcome)
    assert {outcome for outcome in Outcome if junit.ELEMENTS[outcome] in ("failure", "error")} == {
        outcome for outcome in Outcome if not outcome.green
    }


@given(st.text(), st.text(), st.text())
def test_any_reader_can_read_what_a_guest_says(diagnostic: str, log: str, name: str) -> None:
    ElementTree.fromstring(junit.render_cases("x", [CaseResult("s", name, Outcome.FAIL, 0.0, diagnostic, log)]))


def test_any_reader_gets_markup_and_no_control_characters() -> None:
    nasty = "\x00\x1b[31mred\x1b[0m <script>&]]>\x08\ufffe"
    tree = read(CaseResult("s", nasty, Outcome.FAIL, 0.0, nasty, nasty))
    assert only(tree, "failure").get("message") == only(tree, "testcase").get("name") == "red <script>&]]>"
    assert text(tree, "failure") == "red <script>&]]>\n\nred <script>&]]>"
    assert junit.render(report(CaseResult("s", nasty, Outcome.FAIL))).isascii()


@pytest.mark.parametrize("finished", [journal.RunFinished(3.0, 3, "error: no network"), None])
@pytest.mark.parametrize("results", [[], [ONE_OF_EACH[0]]])
def test_any_reader_sees_that_a_run_was_cut_short(finished: journal.RunFinished | None, results: Sequence[CaseResult]) -> None:
    tree = ElementTree.fromstring(junit.render(report(*results, finished=finished)))
    assert [case.get("name") for case in tree.iter("testcase") if case.find("error") is not None] == ["run"]


def test_any_reader_sees_that_nothing_was_tested() -> None:
    """mikepenz and dorny call a report without cases a success, if they are not told otherwise."""
    assert only(read(), "error").get("message") == "no case was reported"


# Jenkins.


def test_jenkins_takes_a_time_without_a_zone_for_utc() -> None:
    """junit-plugin, SuiteResult.parseTime: it appends the Z."""
    found = report(*ONE_OF_EACH)
    # Taken up again, it is still the same job.
    found.add(journal.JobStarted(BEGAN + 9999, "arm64", "last"))
    stamp = only(ElementTree.fromstring(junit.render(found)), "testsuite").attrib["timestamp"]
    assert datetime.datetime.fromisoformat(stamp + "Z").timestamp() == int(BEGAN)


def test_jenkins_makes_packages_and_classes_of_class_names() -> None:
    """junit-plugin, CaseResult.getPackageName: up to the last dot."""
    name = only(read(*ONE_OF_EACH), "testcase").attrib["classname"]
    assert name.rpartition(".") == ("some-series.last.arm64", ".", "suite")


def test_jenkins_merges_suites_of_one_name() -> None:
    """junit-plugin, TestResult.add."""
    tree = read(*ONE_OF_EACH, CaseResult("other", "a", Outcome.PASS))
    assert max(Counter(suite.get("name") for suite in tree.iter("testsuite")).values()) == 1


def test_jenkins_xunit_refuses_what_its_schema_has_not() -> None:
    """xunit-plugin, junit-10.xsd, which it validates with before it reads."""
    allowed = {
        "testsuites": {"name", "time", "tests", "failures", "errors"},
        "testsuite": {"name", "tests", "failures", "errors", "skipped", "time", "timestamp", "file"},
        "testcase": {"name", "time", "classname"},
        "properties": set(),
        "property": {"name", "value"},
        **{name: {"type", "message"} for name in ("failure", "error", "skipped")},
        "system-out": set(),
    }
    tree = read(*ONE_OF_EACH, *(CaseResult("sum", str(number), Outcome.PASS, 0.1) for number in range(3)))
    for element in tree.iter():
        assert set(element.attrib) <= allowed[element.tag]
        assert re.fullmatch(r"\d+\.\d{3}", element.get("time", "0.000"))
    assert [suite.get("time") for suite in tree if "sum" in suite.attrib["name"]] == ["0.300"] * 2


# GitLab.


@pytest.mark.parametrize("outcome", [one for one in Outcome if one is not Outcome.PASS])
def test_gitlab_shows_content_and_no_messages(outcome: Outcome) -> None:
    """lib/gitlab/ci/parsers/test/junit.rb: what has both is its content; what has no content is a hash, printed as such."""
    for diagnostic in ("the reason", ""):
        tree = read(CaseResult("s", "a", outcome, diagnostic=diagnostic))
        assert text(tree, junit.ELEMENTS[outcome]).removeprefix("xfail: ") == (diagnostic or outcome.value)


def test_gitlab_takes_only_one_case_of_a_name() -> None:
    """lib/gitlab/ci/reports/test_case.rb: told apart by suite, class and name."""
    tree = read(*ONE_OF_EACH, *(CaseResult("s", name, Outcome.FAIL) for name in ("a", "a\x01", "a\x02", "a#2")))
    keys = [(case.get("classname"), case.get("name")) for case in tree.iter("testcase")]
    assert len(keys) == len(set(keys)) == 2 * (len(Outcome) + 4)


def test_gitlab_takes_files_below_30_mb() -> None:
    """doc/ci/testing/unit_test_reports.md."""
    many = [CaseResult("s", str(number), Outcome.FAIL, diagnostic="why", log="x" * 900_000) for number in range(20)]
    xml = junit.render(report(*many))
    assert len(xml.encode()) < 30_000_000
    # As much as fits.
    assert 49_900 < len(text(ElementTree.fromstring(xml), "system-out")) <= 50_000


def test_gitlab_and_enricomi_take_texts_below_10_mb() -> None:
    """libxml2's XML_MAX_TEXT_LENGTH, which neither lifts if it is not told to."""
    tree = read(CaseResult("s", "a", Outcome.FAIL, diagnostic=HUGE, log=HUGE))
    log = text(tree, "system-out")
    assert len(log.encode()) < 10_000_000
    assert log.startswith("first\n") and log.endswith("\nlast") and f"{len(HUGE)} characters in all" in log


# GitHub.


def test_github_refuses_annotations_above_64_kib() -> None:
    """Checks API: message and raw_details; mikepenz hands them on as they are, and all of the report is lost."""
    tree = read(CaseResult("s", "a", Outcome.FAIL, diagnostic=HUGE, log=HUGE))
    assert len(text(tree, "failure").encode()) <= 65_536
    assert len(only(tree, "failure").attrib["message"].encode()) <= 65_536
    # Some show the first lines, some the last.
    assert text(tree, "failure").startswith("first") and text(tree, "failure").endswith("last")


def test_github_refuses_titles_above_255_characters() -> None:
    """Checks API; mikepenz makes one of the suite's file and the name. Names that are cut are still told apart."""
    tree = read(*(CaseResult("s", "n" * 300 + end, Outcome.FAIL) for end in "ab"))
    suite = only(tree, "testsuite")
    names = {case.attrib["name"] for case in suite.iter("testcase")}
    assert len(names) == 2
    assert all(len(f"{suite.get('file')}.{name}") <= 255 for name in names)


def test_mikepenz_takes_the_last_word_of_a_class_for_a_source_file() -> None:
    """action-junit-report, testParser.ts, resolveFileAndLine: `boot` would be harness/suites/boot.py, if the suite named no file.
    What it names is also what its titles begin with."""
    assert [suite.get("file") for suite in read(*ONE_OF_EACH)] == ["arm64/last", "x86_64/last"]


def test_mikepenz_believes_the_green_one_of_two() -> None:
    """action-junit-report, testParser.ts, check_retries: of one name, class and file."""
    tree = read(CaseResult("s", "a", Outcome.FAIL), CaseResult("s", "a\x01", Outcome.PASS))
    assert [case.get("name") for case in only(tree, "testsuite").iter("testcase")] == ["a", "a#2"]


def test_dorny_adds_up_times_that_have_to_be_there() -> None:
    """test-reporter, java-junit-parser.ts: parseFloat of nothing is NaN."""
    tree = read(CaseResult("s", "a", Outcome.PASS), CaseResult("s", "b", Outcome.PASS, 0.0004))
    assert {element.get("time") for name in ("testsuites", "testsuite", "testcase") for element in tree.iter(name)} == {"0.000"}


def test_dorny_groups_by_classes_that_are_not_the_suite() -> None:
    """test-reporter, java-junit-parser.ts, getGroups."""
    for suite in read(*ONE_OF_EACH):
        assert {case.get("classname") for case in suite.iter("testcase")} == {suite.get("name")}


def test_dorny_and_mikepenz_show_failures_and_no_output() -> None:
    """java-junit-parser.ts, getTestCaseError; testParser.ts, createTestCaseAnnotation. So the log is in both."""
    assert text(read(CaseResult("s", "a", Outcome.CRASH, diagnostic="Oops", log="the splat")), "failure") == "Oops\n\nthe splat"


def test_enricomi_believes_the_counts() -> None:
    """publish-unit-test-result-action, junit.py: those of the suites, beside its own of the cases."""
    tree = read(*ONE_OF_EACH)
    for element in (tree, *tree):
        found = Counter(child.tag for case in element.iter("testcase") for child in case)
        assert element.get("tests") == str(len(list(element.iter("testcase"))))
        assert element.get("failures") == str(found["failure"])
        assert element.get("errors") == str(found["error"])
        assert element.get("skipped", str(found["skipped"])) == str(found["skipped"])


def test_enricomi_leaves_out_a_message_that_the_content_begins_with() -> None:
    """publish-unit-test-result-action, __init__.py, message_is_contained_in_content."""
    failure = only(read(*ONE_OF_EACH), "failure")
    assert (failure.text or "").startswith(failure.attrib["message"])


def test_any_reader_sees_why_a_case_was_skipped() -> None:
    """Some show the attribute, some the text."""
    for outcome, why in ((Outcome.SKIP, "no such tracer"), (Outcome.XFAIL, "xfail: no such tracer")):
        skipped = only(read(CaseResult("s", "a", outcome, diagnostic="no such tracer")), "skipped")
        assert (skipped.get("message"), skipped.text) == (why, why)


def test_any_reader_finds_the_class_of_what_stands_for_the_run() -> None:
    tree = ElementTree.fromstring(junit.render(report(ONE_OF_EACH[0], finished=None)))
    (run,) = [case for case in tree.iter("testcase") if case.get("name") == "run"]
    assert run.get("classname") == "some-series.run"
