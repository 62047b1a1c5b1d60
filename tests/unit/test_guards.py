"""Checks that must stop a run or make it red, tested through the pipeline. Each of them could once be removed from the code
without a red test."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from harness import paths, pipeline, series
from harness.errors import UserError
from harness.job.reporter import Reporter
from harness.model import CaseResult, Outcome
from harness.pipeline import Plan, Prepared
from harness.results import History, Journal, RunReport, journal
from tests import fake
from tests.unit.test_completeness import finished
from tests.unit.test_pipeline import ARCH, Bench, bench, main

__all__ = ["bench"]


def reporting(*results: CaseResult) -> Plan:
    """A plan in which guests report these results, at every point."""

    def plan(prepared: Prepared) -> None:
        context = prepared.context
        for number in context.request.points:
            point = series.points.make(number, context.request.series, context.applied)
            reporter = Reporter(context, context.request.archs[0], point)
            reporter.begin()
            for result in (CaseResult("build", "build", Outcome.PASS), *results):
                reporter.emit(result)
            reporter.end()

    return plan


def seen(report: RunReport, point: str, case: str = "kunit:a") -> Outcome:
    return report.jobs[ARCH, point].cases[case].result.outcome


# Must-run and fixed-by.

A = CaseResult("kunit", "a", Outcome.PASS)
B = CaseResult("kunit", "b", Outcome.PASS)


@pytest.mark.parametrize("outcome", [Outcome.SKIP, Outcome.XFAIL])
def test_must_run_list_of_the_series_counts_at_its_last_point(bench: Bench, outcome: Outcome) -> None:
    directory = bench.series(main("int one;"))
    (directory / "series.toml").write_text('[[must-run]]\ncase = "kunit:a"\nreason = "it proves the series"\n')
    wanted = bench.parse(directory, points="base,last", suite_specs=["kunit"])
    report = bench.run(wanted, reporting(msgspec.structs.replace(A, outcome=outcome), B))
    assert (seen(report, "base"), seen(report, "last")) == (outcome, Outcome.FAIL)
    assert finished(report).exit_code == 1


KNOWN = """\
[[known]]
case = "kunit:a"
outcome = ["fail"]
diagnostic = ["it fails"]
reason = "it is a test"
"""


def listed(bench: Bench, text: str) -> None:
    (bench.path / "configs" / "known.toml").write_text(KNOWN + text)


FAILS = CaseResult("kunit", "a", Outcome.FAIL, diagnostic="it fails")


def test_what_the_series_fixes_is_red_at_its_last_point(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    (bench.path / "patches" / "s").mkdir(parents=True)
    monkeypatch.setattr(paths, "PATCHES", bench.path / "patches")
    listed(bench, 'any-version = "it is a test"\nfixed-by = ["s"]\n')
    wanted = bench.parse(bench.series(main("int one;"), main("int two;")), per_patch=True, suite_specs=["kunit"])
    report = bench.run(wanted, reporting(FAILS, B))
    assert [seen(report, point) for point in ("base", "0001", "last")] == [Outcome.XFAIL, Outcome.XFAIL, Outcome.FAIL]
    assert finished(report).exit_code == 1


@pytest.mark.parametrize(("versions", "code"), [(">=6.12,<6.13", 0), ("==6.12.99", 0), (">=6.13", 1), ("<6.12.99", 1)])
def test_known_failure_of_other_versions_is_red(bench: Bench, versions: str, code: int) -> None:
    """The fake tree is 6.12.99."""
    listed(bench, f'versions = "{versions}"\n')
    wanted = bench.parse(bench.series(main("int one;")), suite_specs=["kunit"])
    assert finished(bench.run(wanted, reporting(FAILS, B))).exit_code == code


@pytest.mark.parametrize(("toolchain", "code"), [("gcc*", 0), ("llvm*", 1)])
def test_known_failure_of_another_toolchain_is_red(bench: Bench, toolchain: str, code: int) -> None:
    listed(bench, f'any-version = "it is a test"\ntoolchain = "{toolchain}"\n')
    wanted = bench.parse(bench.series(main("int one;")), suite_specs=["kunit"])
    assert finished(bench.run(wanted, reporting(FAILS, B))).exit_code == code


def test_red_once_is_red_for_good_within_a_job(bench: Bench) -> None:
    wanted = bench.parse(bench.series(main("int one;")), suite_specs=["kunit"])
    report = bench.run(wanted, reporting(FAILS, A))
    assert (seen(report, "last"), finished(report).exit_code) == (Outcome.FAIL, 1)


# The guards of --resume.


def resumable(bench: Bench) -> Callable[..., RunReport]:
    """A run that was cut short after its first job, and the function that resumes it."""
    directory = bench.series(main("int one;"))
    wanted = bench.parse(directory, points="base,last")

    def cut(prepared: Prepared) -> None:
        pipeline.everything(prepared)
        raise KeyboardInterrupt

    report = bench.run(wanted, cut)
    assert finished(report).exit_code == 130
    return lambda **more: bench.run(bench.parse(directory, points="base,last", **more), again=report.directory)


def test_run_goes_on_as_it_was(bench: Bench) -> None:
    assert finished(resumable(bench)()).exit_code == 0


def test_run_does_not_go_on_with_another_series(bench: Bench) -> None:
    again = resumable(bench)
    patch = next((bench.path / "s").glob("*.patch"))
    patch.write_text(patch.read_text().replace("+int one;", "+int other;"))
    with pytest.raises(UserError, match=r"s is not what it was when .* began") as caught:
        again()
    assert caught.value.hint == "start a new run"


def commit(linux: Path, name: str) -> None:
    (linux / name).parent.mkdir(parents=True, exist_ok=True)
    (linux / name).write_text("changed\n")
    fake.git(linux, "add", "--all")
    fake.git(linux, "commit", "--quiet", "--message=changed")


CLAIM = '[[claim]]\ncase = "01 colour"\nsays = "It is."\nbase = "red"\npatched = "{}"\nscript = "value red"\n'
MUST_RUN = '[[must-run]]\ncase = "kunit:{}*"\nreason = "it proves the series"\n'
MEASURE = '[[measure]]\ncase = "exit"\nsays = "It exits."\nscript = "value 1"\nat-least.x86_64 = 1\nat-most.x86_64 = {}\n'


@pytest.mark.parametrize(
    ("file", "text", "old", "new"),
    [
        ("s/claims.toml", CLAIM, "red", "blue"),
        ("s/bench.toml", MEASURE, "99", "9"),
        ("s/series.toml", MUST_RUN, "a", "b"),
        ("s/own.config", "CONFIG_{}=y\n", "ONE", "TWO"),
        ("more.config", "CONFIG_{}=y\n", "ONE", "TWO"),
        ("configs/known.toml", KNOWN + 'any-version = "{}"\n', "it is a test", "it is another test"),
    ],
)
def test_run_does_not_go_on_with_other_expectations(bench: Bench, file: str, text: str, old: str, new: str) -> None:
    """What was finished before is green by the old ones, and would stay so by the new ones."""
    (bench.path / "more.config").write_text("")
    directory = bench.series(main("int one;"))
    if "series.toml" not in file:
        (directory / "own.config").write_text("")
        (directory / "series.toml").write_text('fragment = "own.config"\n')
    (bench.path / file).write_text(text.format(old))
    more: dict[str, Any] = {"points": "base,last", "fragments": [bench.path / "more.config"]}

    def cut(prepared: Prepared) -> None:
        raise KeyboardInterrupt

    report = bench.run(bench.parse(directory, **more), cut)
    assert finished(report).exit_code == 130
    (bench.path / file).write_text(text.format(new))
    with pytest.raises(UserError, match="expected"):
        bench.run(bench.parse(directory, **more), again=report.directory)
    (bench.path / file).write_text(text.format(old))
    assert bench.run(bench.parse(directory, **more), cut, again=report.directory)


def test_run_of_an_older_harness_goes_on(bench: Bench) -> None:
    """Its journal does not have what was expected."""
    goes_on = resumable(bench)
    (file,) = (bench.path / "runs").glob("2*/journal.jsonl")
    events = [json.loads(line) for line in file.read_text().splitlines()]
    assert events[0].pop("expected")
    file.write_text("".join(f"{json.dumps(event)}\n" for event in events))
    assert finished(goes_on()).exit_code == 0


def test_run_does_not_go_on_with_another_tree(bench: Bench) -> None:
    again = resumable(bench)
    commit(bench.path / "linux", "added")
    report = again()
    assert finished(report).exit_code == 2
    assert "is another tree than when the run began" in finished(report).error
    assert "start a new run" in finished(report).error


def test_run_does_not_go_on_with_other_selftests(bench: Bench) -> None:
    fake.repository(bench.path / "tests")
    directory = bench.series(main("int one;"))
    spec = f"git:{bench.path}/tests#main"
    wanted = bench.parse(directory, selftests=spec)
    report = bench.run(wanted)
    assert finished(report).exit_code == 0
    assert finished(bench.run(wanted, again=report.directory)).exit_code == 0
    commit(bench.path / "tests", "added")
    again = bench.run(wanted, again=report.directory)
    assert finished(again).exit_code == 2
    assert f"{spec} is another tree than when the run began" in finished(again).error


def test_run_does_not_go_on_with_another_kernel(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """The finished cases ran on the kernel that was built then, so a resumed run must not use another one."""
    directory = bench.series(main("int one;"))
    wanted = bench.parse(directory)
    with monkeypatch.context() as patch:
        patch.setattr("harness.job.reporter.Reporter.end", lambda self: None)
        report = bench.run(wanted)
    # As a newer compiler would.
    (bench.path / "configs" / "base.config").write_text("CONFIG_FTRACE=y\nCONFIG_TINY=y\n")
    again = bench.run(wanted, again=report.directory)
    assert finished(again).exit_code == 2
    assert "the kernel is not the one that the finished cases ran on" in finished(again).error


def test_run_does_not_go_on_with_another_build_of_its_kernel(bench: Bench) -> None:
    """Its digest is the same: something has a say that the digest leaves out."""
    outside = bench.path / "outside"
    outside.write_text("one\n")
    (bench.path / "linux" / "compile").write_text(f'{fake.COMPILE}cat {outside} >>"$2"\n')
    fake.git(bench.path / "linux", "commit", "--quiet", "--all", "--message=changed")
    wanted = bench.parse(bench.series(main("int one;")))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("harness.job.reporter.Reporter.end", lambda self: None)
        report = bench.run(wanted)
    shutil.rmtree(bench.cache.root / "kernels")
    shutil.rmtree(bench.cache.root / "work" / "build" / "x86_64-gcc")
    outside.write_text("two\n")
    again = bench.run(wanted, again=report.directory)
    assert finished(again).exit_code == 2
    assert "the kernel is not the one that the finished cases ran on" in finished(again).error


def test_run_that_never_began_does_not_go_on(bench: Bench) -> None:
    empty = bench.path / "empty"
    empty.mkdir()
    (empty / "journal.jsonl").write_bytes(b"")
    with pytest.raises(UserError, match="is not what it was"):
        bench.run(bench.parse(bench.series(main("int one;"))), again=empty)


# Reports that cannot be written.


def broken(name: str, code: int = 0) -> Plan:
    """A plan that ends with this exit code, and leaves no way to write the file."""

    def plan(prepared: Prepared) -> None:
        reporting(A if not code else FAILS)(prepared)
        path = prepared.context.before.directory / name
        path.mkdir()
        (path / "in the way").touch()

    return plan


@pytest.mark.parametrize("name", ["junit.xml", "report.html"])
def test_report_that_cannot_be_written_is_an_error(bench: Bench, name: str) -> None:
    wanted = bench.parse(bench.series(main("int one;")), suite_specs=["kunit"])
    report = bench.run(wanted, broken(name))
    assert finished(report).exit_code == 3
    assert f"error: {name}: " in finished(report).error
    assert journal.read_run(report.directory).finished == finished(report)


@pytest.mark.parametrize("name", ["junit.xml", "report.html"])
def test_red_run_stays_red_if_a_report_cannot_be_written(bench: Bench, name: str) -> None:
    wanted = bench.parse(bench.series(main("int one;")), suite_specs=["kunit"])
    assert finished(bench.run(wanted, broken(name, 1))).exit_code == 1


def failing(report: RunReport, *names: str) -> Sequence[str]:
    return [name for name in names if f"error: {name}: " in finished(report).error]


def test_history_and_journal_that_cannot_be_written_are_errors(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = bench.parse(bench.series(main("int one;")), suite_specs=["kunit"])
    history = History(bench.path / "history.sqlite")

    def plan(prepared: Prepared) -> None:
        reporting(A)(prepared)
        with sqlite3.connect(history.path) as data:
            data.execute("DROP VIEW seen")
            data.execute("DROP TABLE result")
        write = Journal.write

        def full(self: Journal, event: journal.Event) -> None:
            if isinstance(event, journal.RunFinished):
                raise OSError(28, "No space left on device")
            write(self, event)

        monkeypatch.setattr(Journal, "write", full)

    report = bench.run(wanted, plan, history=history)
    assert finished(report).exit_code == 3
    assert failing(report, "the history", "junit.xml", "report.html", "journal.jsonl") == ["the history", "journal.jsonl"]


@pytest.mark.parametrize(
    ("failure", "code", "why"),
    [
        (KeyboardInterrupt(), 130, "interrupted"),
        (UserError("wrong", hint="do it right"), 2, "error: wrong\nhint: do it right"),
        (OSError(28, "No space left on device"), 3, "the disk is full"),
        (OSError(122, "Quota exceeded"), 3, "the disk is full"),
        (ValueError("surprise"), 3, "unexpected ValueError: surprise"),
    ],
)
def test_what_ends_a_run_is_its_exit_code(bench: Bench, failure: BaseException, code: int, why: str) -> None:
    def plan(prepared: Prepared) -> None:
        reporting(A)(prepared)
        raise failure

    report = bench.run(bench.parse(bench.series(main("int one;")), suite_specs=["kunit"]), plan)
    assert finished(report).exit_code == code
    assert why in finished(report).error
    assert why.partition("\n")[0].removeprefix("error: ") in (report.directory / "junit.xml").read_text()


def test_interrupt_while_reports_are_written_is_130(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(report: RunReport, path: Path) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("harness.results.junit.write", interrupted)
    report = bench.run(bench.parse(bench.series(main("int one;")), suite_specs=["kunit"]), reporting(A))
    assert finished(report).exit_code == 130
    assert "junit.xml: KeyboardInterrupt" in finished(report).error
    assert (report.directory / "report.html").exists()
