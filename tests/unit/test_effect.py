"""What a series did: base and last, case by case."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.model import WARNINGS, CaseResult, Outcome
from harness.results import Journal, RunReport, effect, journal, read_run
from harness.results.effect import Effect

PASS, FAIL, SKIP, XFAIL, CRASH = Outcome.PASS, Outcome.FAIL, Outcome.SKIP, Outcome.XFAIL, Outcome.CRASH


def run(directory: Path, points: dict[str, dict[str, Outcome]], cut_short: tuple[str, ...] = ()) -> RunReport:
    """Points in their order, by name: `base`, numbers and `last`, which is patch 9; each with its cases."""
    with Journal(directory) as events:
        for point, cases in points.items():
            number = {"base": "0", "last": "9"}.get(point, str(int(point) if point.isdecimal() else 0))
            events.write(journal.JobStarted(1.0, "arm64", point))
            properties = {"number": number, "patch": f"{int(number):04d}-x.patch"}
            events.write(journal.JobProperties(1.0, "arm64", point, properties))
            for name, outcome in cases.items():
                suite, _, case = name.partition(":")
                events.write(journal.CaseFinished(2.0, "arm64", point, CaseResult(suite, case, outcome)))
            if point not in cut_short:
                events.write(journal.JobFinished(3.0, "arm64", point))
    return read_run(directory)


@pytest.mark.parametrize(
    ("before", "after", "wanted"),
    [
        (PASS, PASS, Effect.KEPT),
        (FAIL, FAIL, Effect.KEPT),
        (SKIP, SKIP, Effect.KEPT),
        (None, SKIP, Effect.KEPT),
        (FAIL, PASS, Effect.FIXED),
        (XFAIL, PASS, Effect.FIXED),
        (PASS, FAIL, Effect.BROKEN),
        (PASS, XFAIL, Effect.BROKEN),
        (XFAIL, CRASH, Effect.BROKEN),
        (None, CRASH, Effect.BROKEN),
        (SKIP, FAIL, Effect.BROKEN),
        (None, PASS, Effect.NEW),
        (SKIP, PASS, Effect.NEW),
        (PASS, None, Effect.GONE),
        (PASS, SKIP, Effect.GONE),
        (FAIL, SKIP, Effect.GONE),
    ],
)
def test_each_case_is_one_of_five(before: Outcome | None, after: Outcome | None, wanted: Effect, tmp_path: Path) -> None:
    points = {name: {"a:b": one} if one else {} for name, one in (("base", before), ("last", after))}
    (change,) = effect.changes(run(tmp_path, points))
    assert change.effect is wanted


def test_patches_and_warnings_are_no_cases_of_the_kernel(tmp_path: Path) -> None:
    assert not effect.changes(run(tmp_path, {"base": {}, "last": {"apply:0001": PASS, WARNINGS: FAIL}}))


@pytest.mark.parametrize(
    ("between", "wanted"),
    [
        ({"0001": PASS, "0004": PASS, "0005": FAIL, "0006": FAIL}, "0005-x.patch"),
        ({"0001": FAIL}, "0001-x.patch"),
        ({"0001": PASS}, "one of patches 2 to 9"),
        ({"0003": FAIL, "0008": PASS}, "0009-x.patch"),
        ({}, ""),
    ],
)
def test_the_patch_is_named_as_far_as_it_is_known(between: dict[str, Outcome], wanted: str, tmp_path: Path) -> None:
    points = {"base": {"a:b": PASS}, **{point: {"a:b": one} for point, one in between.items()}, "last": {"a:b": FAIL}}
    (change,) = effect.changes(run(tmp_path, points))
    assert change.patch == wanted


def test_a_point_that_was_not_tested_says_nothing(tmp_path: Path) -> None:
    points = {"base": {"a:b": PASS}, "0001": {"a:b": FAIL}, "0002": {"build:build": FAIL}, "last": {"a:b": FAIL}}
    (change,) = effect.changes(run(tmp_path, points))
    assert change.patch == "0001-x.patch"


@pytest.mark.parametrize(
    ("last", "cut_short"), [({"build:build": FAIL}, ()), ({"a:b": PASS}, ("last",)), ({"a:b": PASS}, ("base",))]
)
def test_what_was_not_tested_to_its_end_is_not_compared(
    last: dict[str, Outcome], cut_short: tuple[str, ...], tmp_path: Path
) -> None:
    found = run(tmp_path, {"base": {"a:b": PASS, "a:c": PASS}, "last": last}, cut_short)
    assert not effect.changes(found)
    assert effect.table(found).startswith("arm64: ")


def test_table(tmp_path: Path) -> None:
    found = run(tmp_path, {"base": {"a:b": PASS, "a:c": PASS}, "last": {"a:b": FAIL, "a:c": PASS, "a:d": PASS}})
    lines = effect.table(found).splitlines()
    assert lines[0].split() == [one.value for one in Effect]
    assert lines[1].split() == ["arm64", "1", "0", "1", "1", "0"]
    assert "  a:b (arm64): pass -> fail" in lines
    assert lines.index("broken:") < lines.index("new:")
