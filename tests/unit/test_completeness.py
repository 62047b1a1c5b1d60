"""A planned job that did not end is red, and so is a run that proves nothing: in exit code, JUnit, summary, page and JSON."""

from __future__ import annotations

import io
import json
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner
from rich.console import Console

from harness import bisect, pipeline
from harness.cli import cli
from harness.job import Job
from harness.model import CaseResult, Outcome
from harness.pipeline import Prepared
from harness.results import Journal, RunReport, asjson, journal, junit, kcidb, page, read_run, text
from harness.results.page import view
from harness.results.reproduce import reproduce
from tests.unit.test_pipeline import ARCH, Bench, bench, main

__all__ = ["bench"]

Write = Callable[[Journal], None]


def finished(report: RunReport) -> journal.RunFinished:
    assert report.finished
    return report.finished


def shown(report: RunReport) -> str:
    console = Console(no_color=True, width=300, record=True, file=io.StringIO())
    text.summary(report, console)
    return console.export_text() + text.closing_line(report)


def written(directory: Path, *events: journal.Event, end: bool = True, code: int = 0) -> RunReport:
    with Journal(directory) as events_file:
        events_file.write(journal.RunStarted(1.0, "s", "t", ("run",)))
        for event in events:
            events_file.write(event)
        if end:
            events_file.write(journal.RunFinished(9.0, code))
    return read_run(directory)


def errors(report: RunReport) -> dict[str, str]:
    """The cases with an <error> in the report's JUnit file: their names, and the messages."""
    tree = ElementTree.fromstring(junit.render(report))
    return {
        case.attrib["name"]: found.attrib["message"]
        for case in tree.iter("testcase")
        if (found := case.find("error")) is not None
    }


PLANNED = journal.JobPlanned(1.0, "arm64", "last", ("boot",))
STARTED = journal.JobStarted(1.0, "arm64", "last")
ENDED = journal.JobFinished(2.0, "arm64", "last")


def case(name: str = "build:build", outcome: Outcome = Outcome.PASS, arch: str = "arm64") -> journal.CaseFinished:
    suite, _, name = name.partition(":")
    return journal.CaseFinished(2.0, arch, "last", CaseResult(suite, name, outcome))


BOOTED = (case("boot:agent"), case())


# A job that did not end.


def test_job_that_began_and_did_not_end_is_red_everywhere(bench: Bench) -> None:
    """findings/trust.md, 9: it ended with 0, and junit.xml did not mention it."""

    def plan(prepared: Prepared) -> None:
        pipeline.everything(prepared)
        prepared.context.events.write(journal.JobStarted(journal.now(), "s390x", "last"))

    report = bench.run(bench.parse(bench.series(main("int one;"))), plan)
    assert finished(report).exit_code == 3
    xml = ElementTree.parse(report.directory / "junit.xml")
    (red,) = [one for one in xml.iter("testcase") if one.find("error") is not None]
    assert (red.attrib["classname"], red.attrib["name"]) == ("s.last.s390x.job", "s390x/last")
    assert "error s390x/last job:s390x/last\n    it began, but it did not end" in shown(report)
    assert "1 failed" in text.closing_line(report)
    html = (report.directory / "report.html").read_text()
    assert "job:s390x/last" in html
    assert "1 red" in html
    assert json.loads(asjson.run_json(report))["summary"]["error"] == 1


def test_job_that_was_planned_and_never_began_is_red(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Prepared, "test", lambda self, points, built=lambda: None: None)
    report = bench.run(bench.parse(bench.series(main("int one;")), points="base,last"))
    assert finished(report).exit_code == 3
    assert errors(report) == {f"{ARCH}/{point}": "it was planned, but it did not begin" for point in ("base", "last")}


def test_job_whose_task_forgets_to_end_it_is_red(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.job.reporter.Reporter.end", lambda self: None)
    report = bench.run(bench.parse(bench.series(main("int one;"))))
    assert finished(report).exit_code == 3
    assert errors(report) == {f"{ARCH}/last": "it began, but it did not end"}


def test_whole_run_is_green(bench: Bench) -> None:
    report = bench.run(bench.parse(bench.series(main("int one;")), points="base,last"))
    assert (finished(report).exit_code, errors(report)) == (0, {})
    planned = [line for line in (report.directory / "journal.jsonl").read_text().splitlines() if "job-planned" in line]
    assert len(planned) == 2
    assert not report.unproved


def test_run_that_goes_on_does_what_did_not_end(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = bench.parse(bench.series(main("int one;")), points="base,last")
    with monkeypatch.context() as patch:
        patch.setattr("harness.job.reporter.Reporter.end", lambda self: None)
        broken = bench.run(wanted)
    assert finished(broken).exit_code == 3
    report = bench.run(wanted, again=broken.directory)
    assert (finished(report).exit_code, errors(report)) == (0, {})
    assert {job.point for job in report.jobs.values() if job.finished} == {"base", "last"}
    again = bench.run(wanted, again=broken.directory)
    planned = [line for line in (again.directory / "journal.jsonl").read_text().splitlines() if "job-planned" in line]
    assert len(planned) == 2, "a plan is written once"


def test_interrupted_run_names_what_did_not_end(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[str] = []
    task = Job.task

    def interrupted(self: Job) -> Any:
        begun.append("")
        if len(begun) == 2:
            raise KeyboardInterrupt
        return task(self)

    monkeypatch.setattr(Job, "task", interrupted)
    report = bench.run(bench.parse(bench.series(main("int one;")), points="base,last"))
    assert (finished(report).exit_code, finished(report).error) == (130, "interrupted")
    assert errors(report) == {f"{ARCH}/last": "it was planned, but it did not begin", "run": "interrupted"}


def test_new_warnings_are_seen_although_the_cache_was_emptied(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    task = Job.task
    wanted = bench.parse(bench.series({"main.c": "WARN new\n"}), points="base,last")

    def interrupted(self: Job) -> Any:
        if "last" in (job := task(self)).name:
            raise KeyboardInterrupt
        return job

    with monkeypatch.context() as patch:
        patch.setattr(Job, "task", interrupted)
        report = bench.run(wanted)
    assert report.job(ARCH, "base").finished
    for folder in ("kernels", "records/kernels"):
        shutil.rmtree(bench.cache.root / folder)
    report = bench.run(wanted, again=report.directory)
    assert report.job(ARCH, "last").cases["build:warnings"].result.outcome is Outcome.FAIL
    assert finished(report).exit_code == 1


def test_bisection_stops_early_by_design(bench: Bench) -> None:
    directory = bench.series(*(main(f"int patch{number};", *(["ERROR"] if number >= 3 else [])) for number in range(1, 5)))
    wanted = bench.parse(directory, suite_specs=None, per_patch=True, arguments=("bisect",))
    report = bench.run(wanted, bisect.Bisection(wanted, "build:build", 1))
    assert report.bisected and report.bisected.suspects == ("0003-change-3.patch",)
    assert finished(report).exit_code == 1
    assert errors(report) == {}
    assert len(report.jobs) < 5


def test_error_of_a_job_is_not_repeated(tmp_path: Path) -> None:
    report = written(tmp_path, PLANNED, STARTED, case("guest:guest", Outcome.ERROR))
    assert list(errors(report)) == ["guest"]


def test_killed_run_names_what_did_not_end(tmp_path: Path) -> None:
    report = written(tmp_path, PLANNED, STARTED, case(), end=False)
    assert errors(report) == {"arm64/last": "it began, but it did not end", "run": "it was killed before it ended"}


def test_job_that_begins_again_elsewhere_did_not_end(tmp_path: Path) -> None:
    lost = journal.JobLost(2.0, "arm64", "last", "its worker is gone")
    assert list(errors(written(tmp_path, PLANNED, STARTED, *BOOTED, lost))) == ["arm64/last"]


# A job that ended with nothing.


def test_job_without_any_case_is_red(tmp_path: Path) -> None:
    report = written(tmp_path, PLANNED, STARTED, ENDED)
    assert errors(report) == {"arm64/last": "it ended, but no case was reported"}
    assert pipeline.exit_code(report) == 3


@pytest.mark.parametrize(
    ("results", "missing"),
    [
        (BOOTED, False),
        ((case(),), True),
        # Without a kernel there is no guest: what is red says so.
        ((case("build:build", Outcome.FAIL),), False),
        ((case(), case("boot:agent", Outcome.SKIP)), False),
    ],
)
def test_suite_that_was_asked_for_and_has_no_case_is_red(
    tmp_path: Path, results: tuple[journal.CaseFinished, ...], missing: bool
) -> None:
    report = written(tmp_path, PLANNED, STARTED, *results, ENDED)
    assert errors(report) == ({"arm64/last": "boot was asked for, but it has no case"} if missing else {})


def test_old_journal_without_a_plan_renders(tmp_path: Path) -> None:
    report = written(tmp_path, STARTED, *BOOTED, ENDED)
    assert (errors(report), pipeline.exit_code(report)) == ({}, 0)


def test_events_of_a_newer_harness_are_skipped(tmp_path: Path) -> None:
    written(tmp_path, STARTED, *BOOTED, ENDED, end=False)
    with (tmp_path / "journal.jsonl").open("a") as file:
        file.write('{"event":"moon-phase","time":1.0,"phase":"new"}\n')
        file.write('{"event":"run-finished","time":2.0,"exit_code":0,"moon":"full"}\n')
    assert finished(read_run(tmp_path)).exit_code == 0


@pytest.mark.parametrize(
    "line", ['{"event":7}', '{"time":1.0}', '["event"]', '{"event":"job-finished"}', '{"event":"moon-phase"']
)
def test_line_that_is_no_event_is_damage(tmp_path: Path, line: str) -> None:
    written(tmp_path, STARTED)
    path = tmp_path / "journal.jsonl"
    path.write_text(f"{line}\n{path.read_text()}")
    with pytest.raises(Exception, match=r"journal\.jsonl:1"):
        read_run(tmp_path)


# A run that proves nothing.


@pytest.mark.parametrize(
    ("results", "code", "why"),
    [
        ((case(), case("kunit:a", Outcome.SKIP), case("kunit:b", Outcome.SKIP)), 1, "every case was skipped"),
        ((case("kunit:a", Outcome.SKIP),), 1, "every case was skipped"),
        ((case("apply:a", Outcome.SKIP), case("kunit:a", Outcome.SKIP)), 1, "every case was skipped"),
        ((case(), case("kunit:a", Outcome.SKIP), case("kunit:b")), 0, ""),
        ((case(), case("kunit:a", Outcome.XFAIL)), 0, ""),
        # Nothing but a kernel was asked for.
        ((case(), case("apply:a", Outcome.SKIP)), 0, ""),
        ((case("boot:agent"), case("boot:console")), 0, ""),
    ],
)
def test_run_with_nothing_but_skips_is_red(
    tmp_path: Path, results: tuple[journal.CaseFinished, ...], code: int, why: str
) -> None:
    report = written(tmp_path, STARTED, *results, ENDED)
    assert pipeline.exit_code(report) == code
    assert report.unproved.startswith(why)
    assert bool(report.unproved) == bool(why)
    tree = ElementTree.fromstring(junit.render(report))
    messages = [one.attrib["message"] for one in tree.iter("failure")]
    assert messages == ([report.unproved] if why else [])
    assert why in shown(report)
    assert why in page.render(report)
    assert why in asjson.run_json(report)
    assert ("all green" in page.render(report)) == (not why)


def test_bisection_that_found_nothing_is_red_everywhere(tmp_path: Path) -> None:
    """It ends with 1 although no case is red: whoever reads only its JUnit file has to see it."""
    answer = "last cannot be tested (a:b: skip: no probe)."
    bisected = journal.Bisected(3.0, "arm64", "a:b", journal.Verdict.UNKNOWN, good="", bad="", answer=answer)
    report = written(tmp_path, STARTED, case("boot:agent"), case("a:b", Outcome.SKIP), ENDED, bisected)
    assert pipeline.exit_code(report) == 1
    tree = ElementTree.fromstring(junit.render(report))
    assert [one.attrib["message"] for one in tree.iter("failure")] == [f"the bisection found no patch: {answer}"]


def test_skips_at_base_are_expected(tmp_path: Path) -> None:
    """Tests of what the series brings skip without it."""
    base = [journal.CaseFinished(2.0, "arm64", "base", CaseResult("kunit", "a", Outcome.SKIP))]
    report = written(
        tmp_path,
        journal.JobStarted(1.0, "arm64", "base"),
        *base,
        journal.JobFinished(1.0, "arm64", "base"),
        STARTED,
        case("kunit:a"),
        ENDED,
    )
    assert pipeline.exit_code(report) == 0


def test_run_without_any_job_is_red(tmp_path: Path) -> None:
    report = written(tmp_path)
    assert (pipeline.exit_code(report), report.unproved) == (1, "no case was reported")
    assert errors(report) == {"run": "no case was reported"}


# Exit codes.


@pytest.mark.parametrize("outcome", list(Outcome))
def test_exit_code_of_every_outcome(tmp_path: Path, outcome: Outcome) -> None:
    code = pipeline.exit_code(written(tmp_path, STARTED, *BOOTED, case("kunit:a", outcome), ENDED))
    assert code == (0 if outcome.green else 3 if outcome is Outcome.ERROR else 1)


@pytest.mark.parametrize(("verdict", "code"), [("found", 1), ("green", 0), ("unknown", 1)])
def test_exit_code_of_a_bisection(tmp_path: Path, verdict: str, code: int) -> None:
    found = journal.Bisected(1.0, "arm64", "a:b", journal.Verdict(verdict), "", "")
    assert pipeline.exit_code(written(tmp_path, STARTED, case("build:build", Outcome.FAIL), ENDED, found)) == code


def test_lost_job_is_run_again_by_one_command(tmp_path: Path) -> None:
    report = written(tmp_path, PLANNED)
    (job,) = report.jobs.values()
    command, *words = shlex.split(reproduce(report, job, job.results[0]))[1:]
    parameters = cli.commands[command].make_context(command, words).params
    assert (parameters["archs"], parameters["points"], parameters["suite_specs"]) == (("arm64",), "last", ())


def test_kernelci_gets_a_miss_and_no_valid_checkout(tmp_path: Path) -> None:
    found = kcidb.convert(written(tmp_path, PLANNED))
    assert [test.status for test in found.tests] == ["MISS"]
    assert found.checkouts[0].valid is None


# What a glance shows.


@pytest.mark.parametrize(
    ("outcomes", "shown_as", "count"),
    [
        ([Outcome.PASS, Outcome.SKIP, Outcome.XFAIL], Outcome.PASS, "1+2"),
        ([Outcome.XFAIL, Outcome.SKIP], Outcome.XFAIL, "0+2"),
        ([Outcome.SKIP, Outcome.SKIP], Outcome.SKIP, "0+2"),
        ([Outcome.PASS, Outcome.FLAKY], Outcome.FLAKY, "1 of 2"),
        ([Outcome.LOST, Outcome.FAIL], Outcome.LOST, "2 of 2"),
        ([Outcome.PASS, Outcome.PASS], Outcome.PASS, "2"),
    ],
)
def test_cell_of_the_matrix(tmp_path: Path, outcomes: list[Outcome], shown_as: Outcome, count: str) -> None:
    """A case that did not pass is never shown like a pass."""
    results = [case(f"kunit:{number}", outcome) for number, outcome in enumerate(outcomes)]
    (cell,) = view.page(written(tmp_path, STARTED, *results, ENDED)).jobs[0].counts
    assert cell
    assert (cell.outcome, cell.text) == (shown_as.value, count)


def test_skips_at_many_points_are_no_passes(tmp_path: Path) -> None:
    events: list[journal.Event] = []
    for point, outcome in (("base", Outcome.SKIP), ("0001", Outcome.PASS), ("last", Outcome.FAIL)):
        events.append(journal.JobStarted(1.0, "arm64", point))
        for name in "ab":
            events.append(journal.CaseFinished(2.0, "arm64", point, CaseResult("kunit", name, outcome)))
        events.append(journal.JobFinished(3.0, "arm64", point))
    rows = shown(written(tmp_path, *events)).splitlines()
    assert [row.split() for row in rows[1:4]] == [
        ["arm64/base", "2", "skipped"],
        ["arm64/0001", "2"],
        ["arm64/last", "2", "of", "2", "red"],
    ]


def test_known_failures_are_counted_apart(tmp_path: Path) -> None:
    passed = journal.KnownPassed(2.0, "arm64", "last", "kunit:c", "reported", ("kunit:c",))
    results = [case("kunit:a", Outcome.XFAIL), case("kunit:b", Outcome.SKIP), case("kunit:c")]
    report = written(tmp_path, STARTED, *results, passed, ENDED)
    assert text.closing_line(report) == "1 passed, 0 failed, 1 skipped, 1 xfail, 1 XPASS"
    assert "XPASS, known failures (configs/known.toml) that passed:\n  kunit:c (arm64/last): reported" in shown(report)
    found = json.loads(asjson.run_json(report))
    assert (found["xpass"], found["unproved"], found["jobs"][0]["finished"]) == (1, "", True)
    assert pipeline.exit_code(report) == 0
    assert "XPASS" in page.render(report)


def test_two_entries_of_one_case_are_two(tmp_path: Path) -> None:
    events = [journal.KnownPassed(2.0, "arm64", "last", "kunit:c", why, ("kunit:c",)) for why in ("one", "other", "one")]
    report = written(tmp_path, STARTED, case("kunit:c"), *events, ENDED)
    assert [one.reason for one, _ in report.outlived] == ["one", "other"]
    assert text.closing_line(report).endswith("2 XPASS")


def test_job_that_is_lost_after_it_ended_is_to_be_done_again(tmp_path: Path) -> None:
    lost = journal.JobLost(2.0, "arm64", "last", "its files are gone")
    report = written(tmp_path, PLANNED, STARTED, *BOOTED, ENDED, lost)
    assert errors(report) == {"arm64/last": "it began, but it did not end"}


def test_job_that_is_done_again_for_a_missing_suite_has_to_end_again(tmp_path: Path) -> None:
    """The run was resumed because kunit had no case, and killed after the first of many."""
    planned = journal.JobPlanned(1.0, "arm64", "last", ("boot", "kunit"))
    resumed = journal.RunResumed(3.0)
    report = written(tmp_path, planned, STARTED, *BOOTED, ENDED, resumed, STARTED, case("kunit:first"))
    assert errors(report) == {"arm64/last": "it began, but it did not end"}
    assert not report.jobs["arm64", "last"].finished


def test_red_run_whose_journal_lost_its_red_cases_is_red_everywhere(tmp_path: Path) -> None:
    """Whoever reads only junit.xml saw no red case."""
    report = written(tmp_path, PLANNED, STARTED, *BOOTED, ENDED, code=1)
    why = "it ended with exit code 1, but its journal has no red case: some of it is missing"
    assert errors(report) == {"run": why}
    assert why in shown(report)
    assert why in page.render(report)


@pytest.mark.parametrize("code", [0, 1])
def test_run_whose_journal_is_whole_does_not_lack_red_cases(tmp_path: Path, code: int) -> None:
    reds = [case("boot:console", Outcome.CRASH)] * code
    assert errors(written(tmp_path, PLANNED, STARTED, *BOOTED, *reds, ENDED, code=code)) == {}


def test_green_run_whose_journal_lost_the_end_of_a_job_is_red_everywhere(tmp_path: Path) -> None:
    """`harness report` ended with 3, but its JSON had exit_code 0, and the page had the sign of a green run."""
    report = written(tmp_path, PLANNED, STARTED, *BOOTED)
    assert CliRunner().invoke(cli, ["report", str(tmp_path)], standalone_mode=False).return_value == 3
    assert json.loads(asjson.run_json(report))["exit_code"] == 3
    assert not view.page(report).green


@pytest.mark.parametrize("code", [0, 1, 2, 3, 130])
def test_exit_code_of_a_whole_run_is_its_own(tmp_path: Path, code: int) -> None:
    report = written(tmp_path, PLANNED, STARTED, *BOOTED, ENDED, code=code)
    assert report.exit_code == json.loads(asjson.run_json(report))["exit_code"] == code
    assert view.page(report).green is (code == 0)


def test_run_that_did_not_end_has_no_exit_code(tmp_path: Path) -> None:
    report = written(tmp_path, PLANNED, STARTED, *BOOTED, ENDED, end=False)
    assert (report.exit_code, view.page(report).green) == (None, False)
