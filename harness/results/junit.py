"""junit.xml: a testsuite for each architecture, point and suite."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import junit_xml

from harness.logs.lines import clean_text
from harness.model import CaseResult, Outcome
from harness.results.journal import JobReport, RunReport

_FAILURES = (Outcome.FAIL, Outcome.UNRESOLVED, Outcome.CRASH, Outcome.TIMEOUT, Outcome.LOST, Outcome.FLAKY)


def render(report: RunReport) -> str:
    return str(junit_xml.to_xml_report_string(list(_suites(report)), prettyprint=False))


def write(report: RunReport, path: Path) -> None:
    draft = path.with_suffix(".draft")
    draft.write_text(render(report), encoding="utf-8")
    draft.rename(path)


def render_cases(name: str, results: Iterable[CaseResult]) -> str:
    """A report of cases that belong to no run."""
    suite = junit_xml.TestSuite(name, [_case(name, result) for result in results])
    return str(junit_xml.to_xml_report_string([suite], prettyprint=False))


def _suites(report: RunReport) -> Iterable[junit_xml.TestSuite]:
    for job in report.jobs.values():
        for suite in dict.fromkeys(result.suite for result in job.results):
            name = f"{report.series}.{job.point}.{job.arch}.{suite}"
            cases = [_case(name, result) for result in job.results if result.suite == suite]
            yield junit_xml.TestSuite(name, cases, properties=_properties(job))
    # A run that was cut short may have no red case, or no case at all: whoever reads only this file has to see it.
    ended = report.finished.error if report.finished else "killed before it ended"
    if ended:
        run = CaseResult("run", "run", Outcome.ERROR, diagnostic=ended)
        yield junit_xml.TestSuite(f"{report.series}.run", [_case(f"{report.series}.run", run)])


def _properties(job: JobReport) -> dict[str, str]:
    return {name: clean_text(value) for name, value in job.properties.items()}


def _case(classname: str, result: CaseResult) -> junit_xml.TestCase:
    case = junit_xml.TestCase(
        clean_text(result.name), classname=classname, elapsed_sec=round(result.seconds, 3), stdout=clean_text(result.log) or None
    )
    message = clean_text(result.diagnostic) or result.outcome.value
    if result.outcome in _FAILURES:
        case.add_failure_info(message=message, output=clean_text(result.log), failure_type=result.outcome.value)
    elif result.outcome is Outcome.ERROR:
        case.add_error_info(message=message, output=clean_text(result.log), error_type=result.outcome.value)
    elif result.outcome in (Outcome.SKIP, Outcome.XFAIL):
        case.add_skipped_info(message=f"xfail: {message}" if result.outcome is Outcome.XFAIL else message)
    return case
