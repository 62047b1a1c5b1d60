"""Runs that remember, and cases that get a second chance, in real guests."""

from __future__ import annotations

from pathlib import Path

from harness.model import Kind, Outcome
from harness.results import History, read_run
from tests.integration.conftest import harness

# Whoever wants KUnit's results boots with it, and once more without: what looks for that is red at first only.
FLAKY = "grep -q kunit.enable=0 /proc/cmdline"
CRASH = "echo c > /proc/sysrq-trigger"


def test_second_chance(tmp_path: Path) -> None:
    arguments = ("run", "--arch", "x86_64", "--suite", "kunit", "--cmd", "true", "--cmd", FLAKY, "--cmd", CRASH)
    done = harness(*arguments, "--retry-flaky", "2", cwd=tmp_path)
    assert done.returncode == 1, done.stdout + done.stderr
    (job,) = read_run(tmp_path / "runs" / "latest").jobs.values()
    results = {result.name: result for result in job.results if result.suite == "command"}
    assert results["true"].outcome is Outcome.PASS
    assert results[FLAKY].outcome is Outcome.FLAKY
    # Commands build upon each other: those that passed run again with those that did not.
    assert [one.outcome for one in results[FLAKY].tries] == [Outcome.FAIL, Outcome.PASS, Outcome.PASS]
    assert results[CRASH].outcome is Outcome.CRASH
    assert [one.outcome for one in results[CRASH].tries] == [Outcome.CRASH] * 3
    assert "1 failed, 0 skipped, 1 flaky" in done.stdout


def test_night_after_night(tmp_path: Path) -> None:
    history = tmp_path / "data" / "history.sqlite"
    command = ("run", "--arch", "x86_64", "--suite", "kunit", "--cmd", FLAKY, "--history", history)
    first = harness(*command, cwd=tmp_path)
    assert "Since" not in first.stdout
    second = harness(*command, "--retry-flaky", "1", cwd=tmp_path)
    began, ended = read_run(tmp_path / "runs" / "latest"), second.stdout
    assert ended.startswith("\nSince ")
    assert f"flaky:\n  x86_64/last command:{FLAKY}: fail -> flaky" in ended
    assert began.compared
    assert [one.kind for one in began.compared.differences] == [Kind.FLAKY]
    (seen, earlier) = History(history).of_case(f"command:{FLAKY}", (), 9)
    assert (seen.outcome, earlier.outcome) == (Outcome.FLAKY, Outcome.FAIL)
    assert seen.tested == earlier.tested
    listed = harness("history", "--flaky", "--history", history, cwd=tmp_path)
    assert "1 fail, 1 flaky" in listed.stdout
    page = (tmp_path / "runs" / "latest" / "report.html").read_text()
    assert "New since" in page
