"""Known failures beside the history: where each applied last, and which nobody needs any more."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
from pathlib import Path
from typing import Any

import pytest

from harness.model import CaseResult, Outcome
from harness.results import History, RunReport, journal
from harness.results.history import Ran
from harness.suites.known import Known, read_known
from harness.suites.policy import Policy
from harness.suites.usage import Usage, usage
from tests.unit.test_cli import harness
from tests.unit.test_policy import known

FAIL, PASS, SKIP, CRASH, ERROR = Outcome.FAIL, Outcome.PASS, Outcome.SKIP, Outcome.CRASH, Outcome.ERROR


class Nights:
    """Runs, one a night, whose results are judged with `entries`."""

    def __init__(self, path: Path, *entries: Known) -> None:
        self.history = History(path / "history.sqlite")
        self.path = path
        self.entries = entries
        self.clock = 1_700_000_000.0

    def run(
        self,
        *results: CaseResult,
        arch: str = "arm64",
        point: str = "base",
        toolchain: str = "gcc",
        release: str = "6.12.117",
        series: str = "fprobe",
    ) -> None:
        self.clock += 86400
        report = RunReport(self.path / f"{self.clock:.0f}")
        report.add(journal.RunStarted(self.clock, series, "debian:x", ("run",)))
        report.add(journal.JobProperties(self.clock, arch, point, {"toolchain": toolchain, "release": release}))
        policy = Policy(arch, toolchain, self.entries, (), release, series if point == "last" else "")
        for result in results:
            report.add(journal.CaseFinished(self.clock, arch, point, policy.judge(result)))
        self.history.record(report)

    def usage(self, entry: Known | None = None, stale: int = 2) -> Usage:
        entry = entry or self.entries[0]
        return usage(entry, 1, self.history.ran(entry.applies_to), stale)


def case(outcome: Outcome, why: str = "error 12", name: str = "a") -> CaseResult:
    return CaseResult("kunit", name, outcome, diagnostic=why)


ENTRY = known("kunit:a*", FAIL, diagnostic=("error *",))


def test_entry_that_never_applied(tmp_path: Path) -> None:
    found = Nights(tmp_path, ENTRY).usage()
    assert (found.last, found.runs_since, found.stale, found.diagnostics, found.remarks) == (None, 0, False, (), [])


def test_where_it_applied_last(tmp_path: Path) -> None:
    nights = Nights(tmp_path, ENTRY)
    nights.run(case(FAIL))
    nights.run(case(FAIL), arch="s390x", release="6.12.118")
    nights.run(case(PASS))
    found = nights.usage()
    assert found.last
    assert (found.last.arch, found.last.point, found.last.release, found.last.case) == ("s390x", "base", "6.12.118", "kunit:a")
    assert found.last.known == ENTRY.key
    assert (found.runs_since, found.stale) == (1, False)
    nights.run(case(PASS))
    found = nights.usage()
    assert (found.runs_since, found.stale) == (2, True)
    assert found.remarks == ["not seen for 2 runs: remove it if the failure is fixed"]
    nights.run(case(FAIL))
    assert (nights.usage().runs_since, nights.usage().remarks) == (0, [])


def test_entry_that_nothing_needs_is_stale(tmp_path: Path) -> None:
    nights = Nights(tmp_path, ENTRY)
    for _ in range(2):
        nights.run(case(PASS), case(FAIL, "something else", "ab"))
    found = nights.usage()
    assert (found.last, found.runs_since, found.stale) == (None, 2, True)


@pytest.mark.parametrize(
    ("more", "result"),
    [
        ({"arch": "s390x"}, case(PASS)),
        ({"toolchain": "llvm-19"}, case(PASS)),
        ({"toolchain": ""}, case(PASS)),
        ({"release": "6.18.0"}, case(PASS)),
        ({"release": ""}, case(PASS)),
        ({"point": "last"}, case(PASS)),
        ({}, case(SKIP)),
        ({}, case(ERROR)),
        ({}, case(PASS, name="b")),
    ],
)
def test_run_that_says_nothing_of_it(tmp_path: Path, more: dict[str, Any], result: CaseResult) -> None:
    """Neither where the entry is not meant, nor where its case did not run."""
    entry = known("kunit:a*", FAIL, arch=("arm64",), toolchain="gcc*", versions="<6.13", any_version="", fixed_by=("fprobe",))
    nights = Nights(tmp_path, entry)
    nights.run(case(PASS))
    assert nights.usage().runs_since == 1
    nights.run(result, **more)
    assert nights.usage().runs_since == 1
    nights.run(case(PASS), point="last", series="another")
    assert nights.usage().runs_since == 2


def test_diagnostics_that_differ_in_numbers_only_are_one(tmp_path: Path) -> None:
    nights = Nights(tmp_path, ENTRY)
    nights.run(case(FAIL, "error 12 at 0xffff800012345678 of task abcdef0123456789"))
    nights.run(case(FAIL, "error 13 at 0x10 of task 0123456789abcdef"))
    assert nights.usage().diagnostics == ("error 13 at 0x10 of task 0123456789abcdef",)
    assert nights.usage().remarks == []
    nights.run(case(FAIL, "error 13: no such event"), case(FAIL, "error 14: no such event", "ab"))
    found = nights.usage()
    assert len(found.diagnostics) == 2
    assert found.diagnostics[0].endswith(": no such event")
    assert found.remarks == ["covers 2 diagnostics: are they one failure?"]


def test_other_entry_of_the_same_case_is_another(tmp_path: Path) -> None:
    other = known("kunit:a", FAIL, diagnostic=("fault *",))
    nights = Nights(tmp_path, ENTRY, other)
    nights.run(case(FAIL, "fault 7"))
    assert nights.usage(ENTRY).last is None
    assert nights.usage(ENTRY).runs_since == 1
    assert nights.usage(other).last
    assert nights.usage(other).diagnostics == ("fault 7",)


def test_entry_whose_reason_changed_is_the_same(tmp_path: Path) -> None:
    nights = Nights(tmp_path, ENTRY)
    nights.run(case(FAIL))
    assert nights.usage(known("kunit:a*", FAIL, diagnostic=("error *",), reason="another", any_version="so")).last


def test_case_that_hangs_applies_where_it_is_skipped(tmp_path: Path) -> None:
    entry = known("kunit:a", reason="for ever", hangs=True, outcome=(), diagnostic=())
    nights = Nights(tmp_path, entry)
    nights.run(case(SKIP, "not run, it hangs: for ever"))
    assert nights.usage().last
    nights.run(case(SKIP, "CONFIG_A is not set"))
    nights.run(case(PASS, ""))
    assert nights.usage().runs_since == 1


# A history that an older harness wrote.

VERSION_1 = """
CREATE TABLE run (
    id INTEGER PRIMARY KEY, directory TEXT NOT NULL, started REAL NOT NULL, series TEXT NOT NULL, tree TEXT NOT NULL,
    arguments TEXT NOT NULL, exit_code INTEGER, UNIQUE (directory, started)
);
CREATE TABLE job (
    id INTEGER PRIMARY KEY, run INTEGER NOT NULL REFERENCES run ON DELETE CASCADE, scope TEXT NOT NULL, arch TEXT NOT NULL,
    point TEXT NOT NULL, finished INTEGER NOT NULL, tested TEXT NOT NULL, release TEXT NOT NULL
);
CREATE TABLE name (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
CREATE TABLE result (
    job INTEGER NOT NULL REFERENCES job ON DELETE CASCADE, name INTEGER NOT NULL REFERENCES name, outcome TEXT NOT NULL,
    seconds REAL NOT NULL, value REAL, unit TEXT NOT NULL, diagnostic TEXT NOT NULL, PRIMARY KEY (job, name)
) WITHOUT ROWID;
CREATE VIEW seen AS
    SELECT run, job, started, directory, arch, point, release, tested, name.name AS "case", outcome, seconds, value,
        unit, diagnostic
    FROM result JOIN job ON job.id = result.job JOIN run ON run.id = job.run JOIN name ON name.id = result.name;
INSERT INTO run VALUES (1, '/runs/old', 1600000000.0, 'fprobe', 'debian:x', '[]', 0);
INSERT INTO job VALUES (1, 1, 'all', 'arm64', 'base', 1, 'digest', '6.12.117');
INSERT INTO name VALUES (1, 'kunit:a');
INSERT INTO result VALUES (1, 1, 'xfail', 1.5, NULL, '', 'known: reported; error 11');
PRAGMA user_version = 1;
"""


@pytest.fixture
def old(tmp_path: Path) -> Path:
    path = tmp_path / "history.sqlite"
    with sqlite3.connect(path) as data:
        data.executescript(VERSION_1)
    data.close()
    return path


def test_old_history_is_read_as_it_is(old: Path) -> None:
    before = old.read_bytes()
    (ran,) = History(old, read=True).ran(ENTRY.applies_to)
    assert ran == Ran(
        1600000000.0, "/runs/old", "fprobe", "arm64", "base", "6.12.117", "", "kunit:a", Outcome.XFAIL,
        "known: reported; error 11", "", "",
    )  # fmt: skip
    assert old.read_bytes() == before
    found = usage(ENTRY, 1, [ran], 2)
    assert (found.last, found.diagnostics) == (ran, ("error 11",))


def test_old_history_goes_on(old: Path, tmp_path: Path) -> None:
    nights = Nights(tmp_path, ENTRY)
    nights.run(case(FAIL))
    assert len(nights.history.runs(9)) == 2
    found = nights.usage()
    assert found.last and found.last.known == ENTRY.key
    assert found.diagnostics == ("error 12",)
    assert [one.outcome for one in History(old, read=True).of_case("kunit:a", (), 9)] == [Outcome.XFAIL, Outcome.XFAIL]
    assert History(old).ran(ENTRY.applies_to) == nights.history.ran(ENTRY.applies_to)


# The command.


def known_command(cwd: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return harness("known", "--history", cwd / "h.sqlite", *arguments, cwd=cwd)


def test_command_lists_every_entry(tmp_path: Path) -> None:
    done = known_command(tmp_path, "--format", "json")
    assert done.returncode == 0
    found = json.loads(done.stdout)
    assert [one["case"] for one in found["known"]] == [entry.case for entry in read_known()]
    assert found["history"] is False
    assert all((one["last"], one["runs_since"], one["stale"]) == (None, 0, False) for one in found["known"])
    done = known_command(tmp_path)
    assert done.returncode == 0
    assert all(entry.case in done.stdout for entry in read_known())
    assert "no history in" in done.stdout


def test_command_shows_what_to_look_at(tmp_path: Path) -> None:
    entry = next(one for one in read_known() if one.case == "ftracetest:selftest/bashisms.tc")
    nights = Nights(tmp_path, entry)
    nights.history.path.rename(tmp_path / "h.sqlite")
    nights.history = History(tmp_path / "h.sqlite")
    told = "No checkbashisms found. skipped."
    nights.run(CaseResult("ftracetest", "selftest/bashisms.tc", Outcome.UNRESOLVED, diagnostic=told), arch="riscv64")
    nights.run(CaseResult("ftracetest", "selftest/bashisms.tc", PASS))
    done = known_command(tmp_path, "--stale", "1")
    (row,) = [line for line in done.stdout.splitlines() if "bashisms.tc" in line and "line" not in line]
    assert "riscv64/base  6.12.117" in row
    assert row.split()[-1] == "1"
    assert "ftracetest:selftest/bashisms.tc: not seen for 1 runs: remove it if the failure is fixed" in done.stdout
    (one,) = [one for one in json.loads(known_command(tmp_path, "--format", "json").stdout)["known"] if one["last"]]
    assert (one["case"], one["runs_since"], one["stale"], one["diagnostics"]) == (entry.case, 1, False, [told])
    assert one["last"]["arch"] == "riscv64"


def test_command_with_a_history_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "h.sqlite").write_text("no database" * 100)
    done = known_command(tmp_path)
    assert (done.returncode, "no history" in done.stderr) == (2, True)
    assert known_command(tmp_path, "--stale", "0").returncode == 2
    assert os.listdir(tmp_path) == ["h.sqlite"]  # noqa: PTH208
