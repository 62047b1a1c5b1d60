"""What is remembered of runs, and what changed since the last one."""

from __future__ import annotations

import io
import os
import sqlite3
import subprocess
import threading
from pathlib import Path

import pytest
from rich.console import Console

from harness.errors import InfrastructureError, UserError
from harness.model import CaseResult, Kind, Outcome
from harness.results import History, RunReport, journal, recall

PASS, FAIL, XFAIL, CRASH = Outcome.PASS, Outcome.FAIL, Outcome.XFAIL, Outcome.CRASH


class Nights:
    def __init__(self, path: Path) -> None:
        self.history = History(path / "data" / "history.sqlite")
        self.path = path
        self.clock = 1_700_000_000.0

    def run(
        self,
        cases: dict[str, Outcome],
        *,
        scope: str = "all",
        tested: str = "a kernel",
        arch: str = "arm64",
        whole: bool = True,
        seconds: float = 1.0,
        record: bool = True,
    ) -> RunReport:
        self.clock += 86400
        report = RunReport(self.path / f"{self.clock:.0f}")
        report.add(journal.RunStarted(self.clock, "fprobe", "debian:x", ("run", "-v"), scope=scope))
        report.add(journal.JobProperties(self.clock, arch, "last", {"tested": tested, "release": "6.12.117"}))
        for name, outcome in cases.items():
            result = CaseResult("a", name, outcome, seconds, f"why {outcome}", "a long log", 2.5, "ns")
            report.add(journal.CaseFinished(self.clock, arch, "last", result))
        if whole:
            report.add(journal.JobFinished(self.clock, arch, "last"))
        report.add(journal.RunFinished(self.clock, int(not whole)))
        if record:
            self.history.record(report)
        return report

    def changed(self, report: RunReport) -> dict[str, Kind]:
        found = self.history.compared(report)
        return {one.case: one.kind for one in found.differences} if found else {"": Kind.NEW}


@pytest.fixture
def nights(tmp_path: Path) -> Nights:
    return Nights(tmp_path)


def test_what_is_new_since_the_last_night(nights: Nights) -> None:
    nights.run({"broken": PASS, "fixed": FAIL, "gone": PASS, "kept": PASS}, tested="one")
    night = nights.run({"broken": FAIL, "fixed": PASS, "kept": PASS, "new": PASS}, tested="two")
    found = nights.history.compared(night)
    assert found is not None
    assert {one.case: one.kind for one in found.differences} == {
        "a:broken": Kind.NEWLY_RED,
        "a:gone": Kind.GONE,
        "a:fixed": Kind.NEWLY_GREEN,
        "a:new": Kind.NEW,
    }
    assert found.since == {"arm64/last": str(nights.path / f"{nights.clock - 86400:.0f}")}
    # The runs have the logs.
    assert all(not result.log for one in found.differences for result in (one.before, one.after) if result)
    # Red for two nights is not new.
    assert nights.changed(nights.run({"broken": FAIL, "fixed": PASS, "kept": PASS, "new": PASS}, tested="two")) == {}


def test_only_runs_that_were_asked_for_the_same_are_compared(nights: Nights) -> None:
    nights.run({"x": PASS})
    nights.run({"x": FAIL}, scope="other suites")
    nights.run({"x": FAIL}, whole=False)
    nights.run({"x": FAIL}, arch="s390x")
    assert nights.changed(nights.run({"x": PASS})) == {}
    assert nights.changed(nights.run({"x": PASS}, arch="riscv64")) == {"": Kind.NEW}
    assert nights.changed(nights.run({"x": PASS}, scope="")) == {"": Kind.NEW}


def test_run_that_is_recorded_again_replaces_itself(nights: Nights) -> None:
    report = nights.run({"x": FAIL})
    report.add(journal.CaseFinished(1, "arm64", "last", CaseResult("a", "y", PASS)))
    nights.history.record(report)
    (row,) = nights.history.runs(9)
    assert row.outcomes == {PASS: 1, FAIL: 1}
    assert row.exit_code == 0
    assert len(nights.history.of_case("a:x", (), 9)) == 1


def test_a_case_run_by_run(nights: Nights) -> None:
    nights.run({"x": PASS})
    nights.run({"x": FAIL}, arch="s390x")
    nights.run({"x": CRASH}, tested="another")
    assert [one.outcome for one in nights.history.of_case("a:x", (), 9)] == [CRASH, FAIL, PASS]
    assert [one.outcome for one in nights.history.of_case("a:x", ("arm64",), 9)] == [CRASH, PASS]
    assert [one.outcome for one in nights.history.of_case("a:x", (), 1)] == [CRASH]
    newest = nights.history.of_case("a:x", (), 1)[0]
    assert (newest.value, newest.unit, newest.tested, newest.release) == (2.5, "ns", "another", "6.12.117")


def test_case_that_no_run_had(nights: Nights) -> None:
    nights.run({"dynevent/fprobe.tc": PASS})
    with pytest.raises(UserError, match="no recorded run") as caught:
        nights.history.of_case("ftracetest:fprobe", (), 9)
    assert "a:dynevent/fprobe.tc" in caught.value.hint


def test_flaky_is_what_changes_while_nothing_else_does(nights: Nights) -> None:
    for outcome in (PASS, FAIL, PASS):
        nights.run({"flaky": outcome, "steady": PASS}, tested="same")
        nights.run({"flaky": PASS, "broken": FAIL}, tested=f"kernel of {nights.clock}")
    # That somebody wrote it down as known is not the case's doing.
    nights.run({"known": FAIL}, tested="same")
    nights.run({"known": XFAIL}, tested="same")
    nights.run({"crashed": CRASH}, tested="same")
    nights.run({"crashed": XFAIL}, tested="same")
    nights.run({"retried": Outcome.FLAKY}, tested="same")
    nights.run({"ours": Outcome.ERROR}, tested="same")
    nights.run({"ours": PASS}, tested="same")
    found = nights.history.flaky()
    assert [(one.case, one.outcomes) for one in found] == [("a:retried", {Outcome.FLAKY: 1}), ("a:flaky", {PASS: 2, FAIL: 1})]


def test_slower_than_it_typically_was(nights: Nights) -> None:
    for seconds in (1.0, 1.0, 100.0, 1.0):
        nights.run({"x": PASS}, seconds=seconds)
    assert nights.changed(nights.run({"x": PASS}, seconds=5.9, record=False)) == {}
    assert nights.changed(nights.run({"x": PASS}, seconds=6.1, record=False)) == {"a:x": Kind.SLOWER}
    assert nights.changed(nights.run({"x": FAIL}, seconds=60, tested="b", record=False)) == {"a:x": Kind.NEWLY_RED}


def test_what_is_no_history(tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_text("no database" * 100)
    with pytest.raises(UserError, match="no history"):
        History(text)
    other = tmp_path / "other.sqlite"
    with sqlite3.connect(other) as data:
        data.execute("CREATE TABLE theirs (x)")
    with pytest.raises(UserError, match="no history"):
        History(other)
    with pytest.raises(UserError, match="history"):
        History(text / "below" / "a.sqlite")


def test_history_that_cannot_be_written(nights: Nights) -> None:
    report = nights.run({"x": PASS})
    nights.history.path.unlink()
    nights.history.path.mkdir()
    with pytest.raises(InfrastructureError, match="unable to open"):
        nights.history.record(report)


def test_several_may_begin_it(tmp_path: Path) -> None:
    failures: list[Exception] = []

    def begin(number: int) -> None:
        try:
            report = RunReport(tmp_path / str(number))
            report.add(journal.RunStarted(1.0, "s", "t", ()))
            History(tmp_path / "history.sqlite").record(report)
        except Exception as failure:
            failures.append(failure)

    threads = [threading.Thread(target=begin, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert len(History(tmp_path / "history.sqlite").runs(99)) == 8


def test_tables(nights: Nights) -> None:
    nights.run({"[x]<script>": PASS}, tested="same")
    nights.run({"[x]<script>": FAIL}, tested="same")
    console = Console(width=200, file=io.StringIO(), record=True)
    console.print(recall.runs(nights.history.runs(9)))
    console.print(recall.of_case(nights.history.of_case("a:[x]<script>", (), 9)))
    console.print(recall.flaky(nights.history.flaky()))
    shown = console.export_text()
    assert "1 fail" in shown
    assert "why fail" in shown
    assert "arm64/last  a:[x]<script>  1 pass, 1 fail" in shown


def test_history_that_can_only_be_read(nights: Nights) -> None:
    """Known before the night, not after it."""
    nights.run({"x": PASS})
    nights.history.path.chmod(0o444)
    if os.geteuid() == 0:
        subprocess.run(["chattr", "+i", nights.history.path], check=False)
    try:
        assert History(nights.history.path, read=True).runs(1)
        if not os.access(nights.history.path, os.W_OK):
            with pytest.raises(InfrastructureError):
                History(nights.history.path)
    finally:
        if os.geteuid() == 0:
            subprocess.run(["chattr", "-i", nights.history.path], check=False)


def test_run_that_was_moved_is_the_same(nights: Nights) -> None:
    report = nights.run({"x": PASS})
    report.directory = nights.path / "elsewhere" / report.directory.name
    nights.history.record(report)
    (row,) = nights.history.runs(9)
    assert "elsewhere" in row.directory
