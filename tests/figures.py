"""Figures with limits: the values that a benchmark measured, and a check against their limits."""

from __future__ import annotations

import math
import statistics
import traceback
from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct

Pair = tuple[float, float]
"""The same work done by us and by something else, one right after the other; in seconds."""


class Figure(Struct, frozen=True):
    """One number with at least one limit; both limits are within the range."""

    what: str
    value: float
    unit: str = ""
    at_least: float | None = None
    at_most: float | None = None
    detail: str = ""
    """The figures that the value was made from."""

    def __post_init__(self) -> None:
        limits = [limit for limit in (self.at_least, self.at_most) if limit is not None]
        if not limits or not all(map(math.isfinite, limits)):
            raise ValueError(f"'{self.what}' has no limit, so it can never be wrong")

    @property
    def good(self) -> bool:
        if not (math.isfinite(self.value) and self.value > 0):
            return False  # zero, negative or infinite: nothing was measured
        low, high = self.at_least, self.at_most
        return (low is None or self.value >= low) and (high is None or self.value <= high)

    def __str__(self) -> str:
        limits = [f"at least {self.at_least:g}"] if self.at_least is not None else []
        limits += [f"at most {self.at_most:g}"] if self.at_most is not None else []
        unit = f" {self.unit}" if self.unit else ""
        detail = f"; {self.detail}" if self.detail else ""
        return f"{self.what}: {self.value:.4g}{unit} ({', '.join(limits)}){detail}"


def ratio(what: str, pairs: Sequence[Pair], at_most: float) -> Figure:
    """The median of ours over theirs, pair by pair: what disturbs the machine disturbs both sides of a pair."""
    ours, theirs = (statistics.median(side) for side in zip(*pairs, strict=True))
    ratios = [ours / theirs for ours, theirs in pairs]
    detail = f"median of {len(pairs)}; {ours:.3g} s over {theirs:.3g} s, from {min(ratios):.3f} to {max(ratios):.3f}"
    return Figure(what, statistics.median(ratios), at_most=at_most, detail=detail)


Benchmark = Callable[[], Sequence[Figure]]


def run(benchmarks: Mapping[str, Benchmark], names: Sequence[str] = (), say: Callable[[str], None] = print) -> int:
    """Run those named, or all. Prints a line for each figure. The exit status is 0 if every figure of every benchmark was within
    its limits, 1 if not (a benchmark that ends early or measures nothing counts as failed), 2 for an unknown name."""
    if unknown := [name for name in names if name not in benchmarks]:
        say(f"error: no benchmark '{unknown[0]}'; there are {', '.join(benchmarks)}")
        return 2
    passed = failed = 0
    for name in names or benchmarks:
        try:
            figures = benchmarks[name]()
        except Exception as error:
            say(traceback.format_exc().rstrip())
            say(f"FAILED {name}: it ended early: {type(error).__name__}: {error}")
            failed += 1
            continue
        if not figures:
            say(f"FAILED {name}: it measured nothing")
            failed += 1
        for figure in figures:
            say(f"{'ok    ' if figure.good else 'FAILED'} {name}: {figure}")
            passed += figure.good
            failed += not figure.good
    say(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0
