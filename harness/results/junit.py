"""junit.xml: a testsuite for each architecture, point and suite. tests/unit/test_junit_readers.py has what those who read it
need, and where they trip."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from xml.etree import ElementTree

import junit_xml

from harness.logs.lines import clean_text, shortened
from harness.model import CaseResult, Outcome
from harness.results import rundir
from harness.results.journal import JobReport, RunReport

ELEMENTS = {
    Outcome.PASS: "",
    Outcome.FAIL: "failure",
    Outcome.SKIP: "skipped",
    Outcome.XFAIL: "skipped",
    Outcome.UNRESOLVED: "failure",
    Outcome.CRASH: "failure",
    Outcome.TIMEOUT: "failure",
    Outcome.LOST: "failure",
    Outcome.ERROR: "error",
    Outcome.FLAKY: "failure",
}
"""What a testcase has in it."""

_LARGEST = 30_000_000
"""Bytes of the file: GitLab takes no more."""
_LOGS = (1_000_000, 50_000, 2_000, 200)
"""Characters of each log, the first that fits: libxml2 takes 10 MB of text in one place."""
_EVIDENCE = 16_000
"""Characters in a failure: GitHub takes 64 KiB, and refuses a report that has more anywhere."""
_MESSAGE = 4_000
_NAME = 200
"""Characters: GitHub takes 255 for the title that readers make of a name."""


def render(report: RunReport) -> str:
    return _fitting(lambda most: _suites(report, most))


def write(report: RunReport, path: Path) -> None:
    rundir.replace(path, render(report).encode())


def render_cases(name: str, results: Iterable[CaseResult]) -> str:
    """A report of cases that belong to no run."""
    known = list(results)
    return _fitting(lambda most: [junit_xml.TestSuite(name, _cases(name, known, most))])


def _fitting(suites: Callable[[int], Iterable[junit_xml.TestSuite]]) -> str:
    """XML, with as much of each log as leaves the whole small enough. It is ASCII, whatever encoding it is written in."""
    for most in _LOGS:
        xml = _xml(suites(most))
        if len(xml) < _LARGEST:
            break
    return xml


def _xml(suites: Iterable[junit_xml.TestSuite]) -> str:
    """What junit-xml makes, but for what some refuse: times in more than thousandths, or none, and the attribute `disabled`."""
    root = ElementTree.Element("testsuites")
    for suite in suites:
        root.append(suite.build_xml_doc())
    for case in root.iter("testcase"):
        case.set("time", f"{float(case.get('time', 0)):.3f}")
    for element in (*root, root):
        element.attrib.pop("disabled", None)
        element.set("time", f"{sum(float(case.attrib['time']) for case in element.iter('testcase')):.3f}")
    for count in ("tests", "failures", "errors"):
        root.set(count, str(sum(int(suite.attrib[count]) for suite in root)))
    return ElementTree.tostring(root).decode("ascii")


def _suites(report: RunReport, most: int) -> Iterable[junit_xml.TestSuite]:
    series = clean_text(report.series)
    for job in report.jobs.values():
        for suite in dict.fromkeys(result.suite for result in job.results):
            name = f"{series}.{job.point}.{job.arch}.{suite}"
            yield junit_xml.TestSuite(
                name,
                _cases(name, [result for result in job.results if result.suite == suite], most),
                timestamp=_time(job.started),
                properties=_properties(job),
                # The folder beside junit.xml that has the evidence. Without it, a reader looks for a source file called `suite`.
                file=f"{job.name}",
            )
    # A run that was cut short may have no red case, or no case at all: whoever reads only this file has to see it.
    why = report.cut_short or report.unproved
    if why:
        name = f"{series}.run"
        outcome = Outcome.ERROR if report.cut_short or not report.results else Outcome.FAIL
        run = CaseResult("run", "run", outcome, diagnostic=why)
        yield junit_xml.TestSuite(name, _cases(name, [run], most), file="journal.jsonl")


def _properties(job: JobReport) -> dict[str, str]:
    return {name: clean_text(value) for name, value in job.properties.items()}


def _time(seconds: float) -> str | None:
    """UTC. Who reads it knows of no zones, or takes what has none for this one."""
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) if seconds else None


def _cases(classname: str, results: Iterable[CaseResult], most: int) -> list[junit_xml.TestCase]:
    """Names that are the same when they can be read are numbered: of two with one name, readers believe the green one."""
    taken: set[str] = set()
    cases = []
    for result in results:
        readable = clean_text(result.name)[:_NAME]
        numbered = (f"{readable}#{number}" for number in itertools.count(2))
        name = next(name for name in itertools.chain([readable], numbered) if name not in taken)
        taken.add(name)
        cases.append(_case(classname, name, result, most))
    return cases


def _case(classname: str, name: str, result: CaseResult, most: int) -> junit_xml.TestCase:
    why, log = clean_text(result.diagnostic) or result.outcome.value, clean_text(result.log)
    if result.outcome is Outcome.XFAIL:
        why = f"xfail: {why}"
    message = shortened(why, min(most, _MESSAGE))
    # Some show only the message, some only what is in the element.
    evidence = shortened("\n\n".join(filter(None, [why, log])), min(most, _EVIDENCE))
    case = junit_xml.TestCase(name, classname=classname, elapsed_sec=result.seconds, stdout=shortened(log, most) or None)
    match ELEMENTS[result.outcome]:
        case "failure":
            case.add_failure_info(message, evidence, result.outcome.value)
        case "error":
            case.add_error_info(message, evidence, result.outcome.value)
        case "skipped":
            case.add_skipped_info(message, message)
    return case
