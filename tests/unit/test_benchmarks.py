"""`nox -s bench` fails if a figure is beyond its limit."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests import figures
from tests.figures import Figure

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("value", "limits", "good"),
    [
        (5, {"at_most": 5}, True),
        (5.001, {"at_most": 5}, False),
        (5, {"at_least": 5}, True),
        (4.999, {"at_least": 5}, False),
        (5, {"at_least": 4, "at_most": 6}, True),
        (3, {"at_least": 4, "at_most": 6}, False),
        (7, {"at_least": 4, "at_most": 6}, False),
        (0, {"at_most": 5}, False),
        (-1, {"at_most": 5}, False),
        (float("nan"), {"at_most": 5}, False),
        (float("inf"), {"at_least": 5}, False),
    ],
)
def test_limits(value: float, limits: dict[str, Any], good: bool) -> None:
    assert Figure("it", value, **limits).good is good


@pytest.mark.parametrize("limits", [{}, {"at_most": float("nan")}, {"at_least": 1, "at_most": float("inf")}])
def test_figure_that_could_never_be_wrong(limits: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="'it' has no limit"):
        Figure("it", 1, **limits)


def test_figure_as_text() -> None:
    assert str(Figure("boot", 0.96, "s", at_most=2, detail="median of 5")) == "boot: 0.96 s (at most 2); median of 5"
    assert str(Figure("objects", 896, at_least=300, at_most=900)) == "objects: 896 (at least 300, at most 900)"


def test_ratio_is_the_median_of_pairs() -> None:
    """A disturbance that slows both sides of a pair does not count, one that slows a single pair does not either."""
    figure = figures.ratio("it", [(10, 10), (30, 29), (10, 2)], at_most=1.05)
    assert figure.value == pytest.approx(30 / 29)
    assert figure.good
    assert not figures.ratio("it", [(11, 10), (11, 10), (1, 10)], at_most=1.05).good
    assert figure.detail == "median of 3; 10 s over 10 s, from 1.000 to 5.000"


def outcome(names: Sequence[str] = (), **benchmarks: Any) -> tuple[int, list[str]]:
    lines: list[str] = []
    return figures.run(benchmarks, names, lines.append), lines


GOOD, BAD = Figure("small", 1, "s", at_most=2), Figure("large", 3, "s", at_most=2)


def test_all_within_their_limits() -> None:
    assert outcome(one=lambda: [GOOD, GOOD], two=lambda: [GOOD]) == (
        0,
        ["ok     one: small: 1 s (at most 2)"] * 2 + ["ok     two: small: 1 s (at most 2)", "3 passed, 0 failed"],
    )


def test_a_miss_fails_and_the_rest_is_measured() -> None:
    assert outcome(one=lambda: [GOOD, BAD], two=lambda: [GOOD]) == (
        1,
        [
            "ok     one: small: 1 s (at most 2)",
            "FAILED one: large: 3 s (at most 2)",
            "ok     two: small: 1 s (at most 2)",
            "2 passed, 1 failed",
        ],
    )


def test_a_benchmark_that_ends_early_or_measures_nothing_fails() -> None:
    def broken() -> list[Figure]:
        raise AssertionError("make was called")

    status, lines = outcome(one=broken, two=list, three=lambda: [GOOD])
    assert (status, lines[-1]) == (1, "1 passed, 2 failed")
    assert "FAILED one: it ended early: AssertionError: make was called" in lines
    assert "FAILED two: it measured nothing" in lines


def test_some_of_them() -> None:
    assert outcome(["two"], one=lambda: [BAD], two=lambda: [GOOD])[0] == 0
    assert outcome(["two", "one"], one=lambda: [BAD], two=lambda: [GOOD])[0] == 1
    assert outcome(["three"], one=lambda: [GOOD]) == (2, ["error: no benchmark 'three'; there are one"])
    assert outcome() == (1, ["0 passed, 0 failed"])


def test_exit_status_is_that_of_the_command() -> None:
    command = [sys.executable, "-m", "tests.bench"]
    done = subprocess.run([*command, "nothing-like-it"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stdout.startswith("error: no benchmark 'nothing-like-it'; there are scan, results, ")
    script = "from tests import bench, figures; import sys\n"
    script += "bench.BENCHMARKS = {'one': lambda: [figures.Figure('it', 3, at_most=2)]}\nsys.exit(bench.main([]))"
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "FAILED one: it: 3 (at most 2)\n0 passed, 1 failed\n")
