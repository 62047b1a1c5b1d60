"""What is known of a job: texts in a journal, values everywhere else."""

from __future__ import annotations

import ast
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import harness
from harness.errors import UserError
from harness.results import JobFacts, Journal, RunReport, asjson, journal, read_facts, read_run

PACKAGE = Path(harness.__file__).parent
NUMBERS = ("number", "warnings", "objects")
KNOWN = dict.fromkeys(JobFacts.__struct_fields__, st.text())
KNOWN.update(dict.fromkeys(NUMBERS, st.integers(min_value=0).map(str)))
PROPERTIES = st.fixed_dictionaries({}, optional=KNOWN)


@given(PROPERTIES)
def test_facts_have_the_properties_that_they_were_read_from(properties: dict[str, str]) -> None:
    assert read_facts(properties).properties == properties
    assert read_facts({**properties, "of-a-newer-version": "x"}).properties == properties


@given(st.lists(PROPERTIES, max_size=3))
def test_events_add_up(events: list[dict[str, str]]) -> None:
    job = journal.JobReport("arm64", "last")
    report = RunReport(Path())
    report.jobs[job.key] = job
    expected: dict[str, str] = {}
    for properties in events:
        report.add(journal.JobProperties(1.0, *job.key, properties))
        expected.update(properties)
    assert list(job.properties.items()) == list(expected.items())
    assert job.facts == read_facts(expected)


def test_values() -> None:
    facts = read_facts({"number": "3", "release": "6.12", "patchset": ""})
    assert (facts.number, facts.release, facts.patchset, facts.commit) == (3, "6.12", "", None)


def test_journal_of_another_version_has_the_same_properties_in_json(tmp_path: Path) -> None:
    properties = {"release": "6.12", "number": "3", "of-a-newer-version": "x"}
    with Journal(tmp_path) as events:
        for name, text in properties.items():
            events.write(journal.JobProperties(1.0, "arm64", "0003", {name: text}))
    report = read_run(tmp_path)
    (job,) = msgspec.json.decode(asjson.run_json(report))["jobs"]
    assert list(job["properties"].items()) == list(properties.items())
    assert report.job("arm64", "0003").number == 3


def test_job_that_was_lost_has_no_facts(tmp_path: Path) -> None:
    with Journal(tmp_path) as events:
        events.write(journal.JobProperties(1.0, "arm64", "last", {"release": "6.12"}))
        events.write(journal.JobLost(2.0, "arm64", "last", "its worker is gone"))
    job = read_run(tmp_path).job("arm64", "last")
    assert (job.facts, job.properties) == (JobFacts(), {})


def test_number_that_is_none_is_damage(tmp_path: Path) -> None:
    with Journal(tmp_path) as events:
        events.write(journal.JobStarted(1.0, "arm64", "last"))
        events.write(journal.JobProperties(1.0, "arm64", "last", {"number": "many"}))
        events.write(journal.JobFinished(1.0, "arm64", "last"))
    with pytest.raises(UserError, match=r"journal.jsonl:2: .*number"):
        read_run(tmp_path)


def test_facts_of_jobs_are_read_as_fields() -> None:
    wrong = [
        f"{path.relative_to(PACKAGE)}:{node.lineno}"
        for path in PACKAGE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if (isinstance(node, ast.Subscript) and _is_properties(node.value))
        or (isinstance(node, ast.Attribute) and node.attr == "get" and _is_properties(node.value))
    ]
    assert not wrong


def _is_properties(node: ast.expr) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == "properties"
