"""The lines that name the kernel's reports in a diagnostic. Known failures are matched against them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from harness.logs.splat import Splat
from harness.model import CaseResult


def titles(splats: Iterable[Splat]) -> Iterator[str]:
    """A line for each report, with its function, and one for each report that followed as part of it: a BUG or a panic after a
    known report is another failure, and the title of an oops alone does not identify it."""
    for splat in splats:
        yield splat.title if splat.function in splat.title else f"{splat.title} in {splat.function}"
        yield from splat.sequels


def own_failure(splats: Sequence[Splat], result: CaseResult) -> Iterator[str]:
    """A line if the test reported a failure of its own, which a known failure then has to name as well. An oops or a panic is
    the reason for whatever the test that ran into it reports."""
    if not result.outcome.green and not any(splat.stopped for splat in splats):
        yield f"the test itself: {result.outcome}"
