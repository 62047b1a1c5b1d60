from __future__ import annotations

import io
import json
import resource
import shlex
import signal
from pathlib import Path

import jsonschema
import pytest
from rich.console import Console

from harness.cli.root import cli
from harness.errors import UserError
from harness.model import CaseResult, Outcome
from harness.results import JobFacts, Journal, asjson, journal, read_run, rundir, text
from harness.results.journal import RunReport
from harness.results.reproduce import reproduce


def report(directory: Path, *results: CaseResult) -> RunReport:
    with Journal(directory) as events:
        events.write(
            journal.RunStarted(1.0, "some-series", "debian:x", ("run", "--arch=arm64", "--suite", "kunit", "--tree", "T"))
        )
        events.write(journal.JobStarted(1.0, "x86_64", "last"))
        events.write(journal.JobProperties(1.0, "x86_64", "last", {"release": "6.12.99"}))
        for result in results:
            events.write(journal.CaseFinished(2.0, "x86_64", "last", result))
        events.write(journal.JobFinished(2.0, "x86_64", "last"))
        events.write(journal.RunFinished(3.0, 1))
    return read_run(directory)


ONE_OF_EACH = [CaseResult("suite", f"a/{outcome.value}.tc", outcome, 1.5, "why", "the log") for outcome in Outcome]


def test_journal_of_a_killed_run(tmp_path: Path) -> None:
    report(tmp_path, *ONE_OF_EACH)
    path = tmp_path / "journal.jsonl"
    whole = path.read_bytes()
    for cut in range(len(whole.splitlines(keepends=True)[0]), len(whole) - 1, 7):
        path.write_bytes(whole[:cut])
        found = read_run(tmp_path)
        assert found.started is not None
        assert len(found.results) <= len(ONE_OF_EACH)
    assert found.finished is None


def test_damaged_journal(tmp_path: Path) -> None:
    report(tmp_path, *ONE_OF_EACH)
    path = tmp_path / "journal.jsonl"
    path.write_bytes(b"garbage\n" + path.read_bytes())
    with pytest.raises(UserError, match=r"journal\.jsonl:1"):
        read_run(tmp_path)


def test_no_run(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no run"):
        read_run(tmp_path)


def test_summary_names_every_red_case_and_how_to_repeat_it(tmp_path: Path) -> None:
    found = report(
        tmp_path, *ONE_OF_EACH, CaseResult("kunit", "s.param[1]", Outcome.FAIL), CaseResult("build", "build", Outcome.ERROR)
    )
    console = Console(no_color=True, width=300, record=True, file=io.StringIO())
    text.summary(found, console)
    shown = console.export_text()
    assert "$ harness run --tree T --arch x86_64 --points last --suite suite:a/fail.tc\n" in shown
    assert "--points last --suite 'kunit:s.param[[]1]'\n" in shown
    assert "$ harness build --tree T --arch x86_64 --points last\n" in shown
    assert shown.count("$ harness run --") - shown.count("--resume") == sum(not outcome.green for outcome in Outcome) + 1
    assert text.closing_line(found) == "1 passed, 8 failed, 1 skipped, 1 xfail, 1 flaky"


def test_json(tmp_path: Path) -> None:
    found = json.loads(asjson.run_json(report(tmp_path, *ONE_OF_EACH)))
    assert found["exit_code"] == 1
    assert found["summary"]["lost"] == 1
    assert found["jobs"][0]["cases"][0] == {
        "suite": "suite",
        "name": "a/pass.tc",
        "outcome": "pass",
        "seconds": 1.5,
        "diagnostic": "why",
        "log": "the log",
        "value": None,
        "unit": "",
        "ran": True,
        "tries": [],
        "known": "",
        "was": None,
        "covered": "",
    }


def test_json_has_the_shape_that_is_documented(tmp_path: Path) -> None:
    """json.dumps(asjson.schema(), indent=2) writes the file again."""
    documented = json.loads((Path(__file__).parents[2] / "docs" / "report.schema.json").read_text())
    assert documented == json.loads(json.dumps(asjson.schema()))
    validator = jsonschema.Draft202012Validator(documented)
    found = json.loads(asjson.run_json(report(tmp_path, *ONE_OF_EACH)))
    validator.validate(found)
    for wrong in ({**found, "exit_code": "0"}, {**found, "jobs": [{**found["jobs"][0], "cases": [{"suite": "kunit"}]}]}):
        assert not validator.is_valid(wrong)


def test_what_was_measured_is_compared_with_the_base(tmp_path: Path) -> None:
    with Journal(tmp_path) as events:
        for point, value in (("base", 400.0), ("last", 100.0)):
            events.write(journal.JobStarted(1.0, "x86_64", point))
            for name in ("exit", f"{point} only"):
                result = CaseResult("bench", name, Outcome.PASS, value=value, unit="instructions")
                events.write(journal.CaseFinished(2.0, "x86_64", point, result))
    console = Console(no_color=True, width=300, record=True, file=io.StringIO())
    text.summary(read_run(tmp_path), console)
    rows = [line.split() for line in console.export_text().splitlines()]
    assert ["exit,", "instructions", "400.00", "100.00", "0.25"] in rows
    assert ["base", "only,", "instructions", "400.00"] in rows
    assert ["last", "only,", "instructions", "100.00"] in rows


def test_run_directories_never_collide(tmp_path: Path) -> None:
    made = [rundir.create(tmp_path / "runs", "s") for _ in range(3)]
    assert len(set(made)) == 3
    assert (tmp_path / "runs" / "latest").resolve() == made[-1]


def test_red_stays_red_under_the_same_name(tmp_path: Path) -> None:
    with Journal(tmp_path) as events:
        events.write(journal.JobStarted(0, "x86_64", "last"))
        for outcome in (Outcome.PASS, Outcome.FAIL, Outcome.PASS):
            events.write(journal.CaseFinished(0, "x86_64", "last", CaseResult("command", "true", outcome)))
        events.write(journal.JobFinished(0, "x86_64", "last"))
    assert read_run(tmp_path).count() == {Outcome.FAIL: 1}


def test_full_disk_leaves_a_journal_that_can_be_read(tmp_path: Path) -> None:
    """A write that was cut short is taken back, and says so."""
    event = journal.CaseFinished(1.0, "x86_64", "last", CaseResult("s", "a", Outcome.PASS, log="x" * 5000))
    with Journal(tmp_path) as events:
        events.write(event)
        size = (tmp_path / "journal.jsonl").stat().st_size
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        try:
            resource.setrlimit(resource.RLIMIT_FSIZE, (size + 100, before[1]))
            for _ in range(2):
                with pytest.raises(OSError, match=r"No space|too large"):
                    events.write(event)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
            signal.signal(signal.SIGXFSZ, ignored)
        events.write(journal.RunFinished(2.0, 3, "error: the disk is full"))
    found = read_run(tmp_path)
    assert found.finished is not None
    assert [result.id for result in found.results] == ["s:a", "job:x86_64/last"]


def test_run_that_goes_on_tries_errors_again_and_nothing_else(tmp_path: Path) -> None:
    with Journal(tmp_path) as events:
        for point, outcomes in (("base", (Outcome.PASS, Outcome.LOST)), ("last", (Outcome.PASS, Outcome.ERROR))):
            for number, outcome in enumerate(outcomes):
                events.write(journal.CaseFinished(1.0, "x86_64", point, CaseResult("s", str(number), outcome)))
            events.write(journal.JobFinished(2.0, "x86_64", point))
        events.write(journal.RunFinished(3.0, 3, "error"))
        events.write(journal.RunResumed(4.0))
    found = read_run(tmp_path)
    assert found.finished is None
    assert found.jobs["x86_64", "base"].finished
    assert not found.jobs["x86_64", "last"].finished
    assert [list(job.cases) for job in found.jobs.values()] == [["s:0", "s:1"], ["s:0", "job:x86_64/last"]]


def test_only_one_writes(tmp_path: Path) -> None:
    with Journal(tmp_path) as events:
        events.write(journal.JobStarted(1.0, "x86_64", "last"))
        with pytest.raises(UserError, match="still going on"), Journal(tmp_path):
            pass
    with (tmp_path / "journal.jsonl").open("a") as file:
        file.write('{"event":"case-fin')
    with Journal(tmp_path) as events:
        events.write(journal.JobFinished(1.0, "x86_64", "last"))
    assert read_run(tmp_path).jobs["x86_64", "last"].finished


@pytest.mark.parametrize("given", [(), ("--kernel", "bzImage")])
@pytest.mark.parametrize("case", ["build:build", "config:config", "boot:console", "command:a b", "kunit:x[1]"])
def test_command_that_runs_it_again_can_be_typed(case: str, given: tuple[str, ...], tmp_path: Path) -> None:
    found = RunReport(tmp_path)
    more = ("--selftests", "git:x", "--retry-flaky", "2", "--hosts", "hosts.toml", "--history", "h", "--per-patch", *given)
    found.add(journal.RunStarted(1, "s", "t", ("run", *more)))
    suite, _, name = case.partition(":")
    result = CaseResult(suite, name, Outcome.FAIL)
    found.add(journal.CaseFinished(1, "arm64", "last", result))
    command, *words = shlex.split(reproduce(found, found.job("arm64", "last"), result))[1:]
    parameters = cli.commands[command].make_context(command, words).params
    assert parameters["archs"] == ("arm64",)
    assert bool(parameters.get("kernel_image")) == bool(given)
    assert not parameters.get("retries")


def test_what_was_written_before_stays(tmp_path: Path) -> None:
    """Only a last line that a kill cut short is taken back when the journal is opened again."""
    report(tmp_path, *ONE_OF_EACH)
    path = tmp_path / "journal.jsonl"
    whole = path.read_bytes()
    for rest in (b"", b'{"event":"case-fin'):
        path.write_bytes(whole + rest)
        with Journal(tmp_path):
            pass
        assert path.read_bytes() == whole


@pytest.mark.parametrize(
    ("point", "number", "expected"),
    [("0003", "3", 3), ("last", "25", 25), ("base", "0", 0), ("0003-2", "3", None), ("last", "", None)],
)
def test_number_of_a_job(point: str, number: str, expected: int | None) -> None:
    """Not of a point that is tried once more, nor of a kernel whose patches are not known."""
    job = journal.JobReport("arm64", point)
    if number:
        job.facts = JobFacts(number=int(number))
    assert job.number == expected


def test_jobs_that_were_whole_before_and_are_not_any_more(tmp_path: Path) -> None:
    found = RunReport(tmp_path)
    for point in ("base", "last"):
        found.add(journal.JobStarted(1.0, "arm64", point))
    found.add(journal.JobFinished(2.0, "arm64", "base"))
    assert found.uncompared == []
    found.add(journal.Compared(3.0, {"arm64/base": "runs/1", "arm64/last": "runs/1"}, ()))
    assert found.uncompared == ["arm64/last"]


def test_why_a_run_is_not_whole(tmp_path: Path) -> None:
    with Journal(tmp_path) as events:
        events.write(journal.RunStarted(1.0, "s", "t", ("run",)))
        assert read_run(tmp_path).cut_short == "it is still going on"
    assert read_run(tmp_path).cut_short == "it was killed before it ended"
    for error in ("error: no disk", ""):
        with Journal(tmp_path) as events:
            events.write(journal.RunFinished(2.0, 3, error))
        assert read_run(tmp_path).cut_short == error
