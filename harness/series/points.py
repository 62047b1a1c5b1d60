"""The points of a series at which kernels are built, counted in patches: 0 is the base, before the first one, and as many as
there are is last."""

from __future__ import annotations

from collections.abc import Iterable

from harness.errors import UserError
from harness.model import BASE, LAST, AppliedSeries, Point, Position, Series


def name_of(number: int, series: Series) -> str:
    """`base`, `last`, or NNNN."""
    if not number:
        return BASE
    return LAST if number == len(series.patches) else f"{number:04d}"


def number_of(name: str, series: Series) -> int:
    """Raises UserError for a name that the series has no point of."""
    last = len(series.patches)
    number = {BASE: 0, LAST: last}.get(name, int(name) if name.isascii() and name.isdecimal() else -1)
    if not 0 <= number <= last:
        raise UserError(
            f"unknown point '{name}'",
            hint=f"base, last, the number of a patch (1 to {last}), or several with commas" if last else "there is just base",
        )
    return number


def parse(text: str, series: Series) -> tuple[int, ...]:
    """What `text` names, with commas between, in the order of the series. Without patches, base and last are the same."""
    return tuple(sorted({number_of(name, series) for name in text.split(",")}))


def make(number: int, series: Series, applied: AppliedSeries, attempt: int = 1, promising: bool = True) -> Point:
    """The point after `number` patches. What the series promises as a whole is expected of the last one, if it is `promising`."""
    results = applied.results[:number]
    commits = [result.commit for result in results if result.commit]
    commit = commits[-1] if commits else applied.base
    whole = promising and number == len(series.patches)
    position = Position.BASE if not number else Position.WHOLE if whole else Position.WITHIN
    name = name_of(number, series) + (f"-{attempt}" if attempt > 1 else "")
    return Point(name, commit, results[-1].patch if results else "", position, number, attempt)


def news(numbers: Iterable[int]) -> dict[int, slice]:
    """For each of the points, which of the series' patches are new since the one before it."""
    ordered = sorted(numbers)
    return {number: slice(before, number) for before, number in zip([0, *ordered], ordered, strict=False)}
