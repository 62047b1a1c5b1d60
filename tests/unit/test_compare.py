"""Two runs, side by side."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness.model import CaseResult, Kind, Outcome
from harness.results import Journal, RunReport, compare, journal, read_run
from tests.unit.test_cli import harness

PASS, FAIL, SKIP = Outcome.PASS, Outcome.FAIL, Outcome.SKIP


def run(directory: Path, cases: dict[str, Outcome], tested: str = "", arch: str = "arm64", whole: bool = True) -> RunReport:
    directory.mkdir()
    with Journal(directory) as events:
        events.write(journal.JobProperties(1.0, arch, "last", {"tested": tested}))
        for name, outcome in cases.items():
            events.write(journal.CaseFinished(2.0, arch, "last", CaseResult("a", name, outcome, diagnostic="why")))
        if whole:
            events.write(journal.JobFinished(3.0, arch, "last"))
    return read_run(directory)


def test_differences(tmp_path: Path) -> None:
    before = run(tmp_path / "1", {"broken": PASS, "fixed": FAIL, "kept": PASS, "gone": PASS, "red": FAIL}, "one")
    after = run(tmp_path / "2", {"broken": FAIL, "fixed": PASS, "kept": PASS, "new": PASS, "red": FAIL}, "two")
    found = compare.compare(before, after)
    wanted = {"broken": Kind.NEWLY_RED, "gone": Kind.GONE, "fixed": Kind.NEWLY_GREEN, "new": Kind.NEW}
    assert {one.case: one.kind for one in found} == {f"a:{name}": kind for name, kind in wanted.items()}
    assert found[0].kind is Kind.NEWLY_RED
    assert [one.case for one in found if one.red] == ["a:broken", "a:gone"]
    shown = compare.table(found, [])
    assert "  arm64/last a:broken: pass -> fail\n    why" in shown


def test_another_outcome_of_the_same_is_flaky(tmp_path: Path) -> None:
    before = run(tmp_path / "1", {"up": FAIL, "down": PASS, "kept": PASS}, "same")
    after = run(tmp_path / "2", {"up": PASS, "down": FAIL, "kept": PASS}, "same")
    found = compare.compare(before, after)
    assert {one.case: (one.kind, one.red) for one in found} == {"a:up": (Kind.FLAKY, False), "a:down": (Kind.FLAKY, True)}


@pytest.mark.parametrize(("arch", "whole"), [("s390x", True), ("arm64", False)])
def test_what_is_not_in_both_is_not_compared_and_said(arch: str, whole: bool, tmp_path: Path) -> None:
    before = run(tmp_path / "1", {"x": PASS})
    after = run(tmp_path / "2", {"y": PASS}, arch=arch, whole=whole)
    assert not compare.compare(before, after)
    left_out = compare.uncompared(before, after)
    assert "arm64/last" in left_out
    assert compare.worse(before, after)[0] == "arm64/last was complete in the first run, and is not in the second"
    assert not compare.worse(before, before)
    assert "not whole in both: arm64/last" in compare.table([], left_out)


def test_what_passes_at_another_try_is_flaky_once(tmp_path: Path) -> None:
    runs = [run(tmp_path / str(number), {"x": one}) for number, one in enumerate([PASS, FAIL, Outcome.FLAKY, Outcome.FLAKY])]
    for before in runs[:2]:
        assert [one.kind for one in compare.compare(before, runs[2])] == [Kind.FLAKY]
    assert compare.compare(runs[2], runs[3]) == []
    assert [one.kind for one in compare.compare(runs[3], runs[1])] == [Kind.NEWLY_RED]


def test_that_a_red_becomes_known_is_not_its_doing(tmp_path: Path) -> None:
    red, known = (run(tmp_path / one, {"x": one}, "same") for one in (Outcome.CRASH, Outcome.XFAIL))
    assert Kind.FLAKY not in [one.kind for one in compare.compare(red, known) + compare.compare(known, red)]


XFAIL = Outcome.XFAIL


@pytest.mark.parametrize("tested", ["same", "other"])
@pytest.mark.parametrize(
    ("was", "now", "worse"),
    [
        (PASS, SKIP, True),
        (PASS, XFAIL, True),
        (PASS, None, True),
        (FAIL, None, True),
        (XFAIL, FAIL, True),
        (XFAIL, Outcome.CRASH, True),
        (SKIP, FAIL, True),
        (PASS, Outcome.FLAKY, True),
        (None, FAIL, True),
        # What is new is good only if it passes.
        (None, XFAIL, True),
        (SKIP, PASS, False),
        (XFAIL, PASS, False),
        (FAIL, PASS, False),
        (FAIL, XFAIL, False),
        (FAIL, FAIL, False),
    ],
)
def test_what_is_worse(tmp_path: Path, was: Outcome | None, now: Outcome | None, worse: bool, tested: str) -> None:
    """A case that passed before and is skipped now is worse, with the same kernel or another one."""
    before, after = (
        run(tmp_path / name, {"kept": PASS, **({"x": outcome} if outcome else {})}, kernel)
        for name, outcome, kernel in (("1", was, "same"), ("2", now, tested))
    )
    found = [one.red for one in compare.compare(before, after)]
    assert any(found) == worse
    assert bool(compare.worse(before, after)) == worse


def test_runs_that_have_nothing_in_common_are_no_better(tmp_path: Path) -> None:
    """Before the first one was whole, nothing can be worse: that is no comparison."""
    cut, whole = run(tmp_path / "1", {"x": PASS}, whole=False), run(tmp_path / "2", {"x": PASS})
    assert compare.worse(cut, whole) == ["no job is complete in both runs: nothing was compared"]
    assert compare.worse(whole, whole) == []
    assert compare.worse(whole, cut)[0] == "arm64/last was complete in the first run, and is not in the second"


def both(directory: Path, extra: dict[str, Outcome], whole: bool = True) -> RunReport:
    """A run that has another architecture as well."""
    found = run(directory, {"x": PASS})
    for name, outcome in extra.items():
        found.add(journal.CaseFinished(2.0, "s390x", "last", CaseResult("a", name, outcome)))
    if whole:
        found.add(journal.JobFinished(3.0, "s390x", "last"))
    found.close()
    return found


def test_job_that_is_new_may_be_red(tmp_path: Path) -> None:
    before = run(tmp_path / "1", {"x": PASS})
    assert compare.worse(before, both(tmp_path / "2", {"y": PASS})) == []
    assert compare.worse(before, both(tmp_path / "3", {"y": FAIL})) == ["s390x/last is new, and 1 of its cases is red"]
    assert compare.worse(before, both(tmp_path / "4", {"y": PASS}, False)) == ["s390x/last is new, and 1 of its cases is red"]


def test_exit_code_of_the_command(tmp_path: Path) -> None:
    run(tmp_path / "green", {"x": PASS})
    run(tmp_path / "red", {"x": FAIL})
    run(tmp_path / "cut", {"x": PASS}, whole=False)
    codes = {
        words: harness("compare", *words.split(), cwd=tmp_path)
        for words in ("green green", "green red", "red green", "red red", "cut green", "green cut", "cut cut")
    }
    assert {words: done.returncode for words, done in codes.items()} == {
        "green green": 0,
        "green red": 1,
        "red green": 0,
        "red red": 0,
        "cut green": 1,
        "green cut": 1,
        "cut cut": 1,
    }
    assert "nothing was compared" in codes["cut cut"].stdout
    done = harness("compare", "--json", "green", "cut", cwd=tmp_path)
    assert json.loads(done.stdout)["worse"] == ["arm64/last was complete in the first run, and is not in the second", NOTHING]


NOTHING = "no job is complete in both runs: nothing was compared"


def test_reds_of_a_job_that_was_not_whole_before(tmp_path: Path) -> None:
    runs = []
    for number, (outcome, whole) in enumerate([(PASS, False), (FAIL, True)]):
        report = run(tmp_path / str(number), {"x": PASS})
        with Journal(report.directory) as events:
            events.write(journal.CaseFinished(2.0, "s390x", "last", CaseResult("a", "y", outcome)))
            if whole:
                events.write(journal.JobFinished(3.0, "s390x", "last"))
        runs.append(read_run(report.directory))
    before, after = runs
    assert compare.worse(before, after) == ["s390x/last was not complete in the first run, and 1 of its cases is red"]
    assert harness("compare", before.directory, after.directory, cwd=tmp_path).returncode == 1
