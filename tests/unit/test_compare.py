"""Two runs, side by side."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.model import CaseResult, Kind, Outcome
from harness.results import Journal, RunReport, compare, journal, read_run

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
    assert compare.lost(before, after)
    assert not compare.lost(before, before)
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
