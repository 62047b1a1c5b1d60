"""The lines that name the kernel's reports in a diagnostic. Known failures are matched against them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from harness.logs.splat import Splat


def titles(splats: Iterable[Splat]) -> Iterator[str]:
    """A line for each report, with its function, and one for each report that followed as part of it: a BUG or a panic after a
    known report is another failure, and the title of an oops alone does not identify it."""
    for splat in splats:
        yield splat.title if splat.function in splat.title else f"{splat.title} in {splat.function}"
        yield from splat.sequels
