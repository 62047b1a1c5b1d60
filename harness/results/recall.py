"""What the history tells, for a terminal."""

from __future__ import annotations

import time
from collections.abc import Sequence

from rich.markup import escape
from rich.table import Table

from harness.logs.lines import clean
from harness.model import Outcome
from harness.results.history import Flaky, Recorded, Seen


def runs(rows: Sequence[Recorded]) -> Table:
    table = _table("began", "exit", "", "run")
    for row in rows:
        code = "killed" if row.exit_code is None else str(row.exit_code)
        table.add_row(_when(row.started), _coloured(code, row.exit_code == 0), _counts(row.outcomes), escape(row.directory))
    return table


def of_case(rows: Sequence[Seen]) -> Table:
    """The newest first. A kernel is told by the first digits of what its results depend on: it is the same if they are."""
    table = _table("began", "job", "", "took", "value", "kernel", "", "why")
    for row in rows:
        value = "" if row.value is None else f"{row.value:.2f} {row.unit}"
        kernel = f"{row.release} {row.tested[:8]}".strip()
        outcome = _coloured(row.outcome.value, row.outcome.green)
        why = clean(row.diagnostic.partition("\n")[0])
        where = (f"{row.arch}/{row.point}", outcome, f"{row.seconds:.1f} s", value)
        table.add_row(_when(row.started), *where, *map(escape, (kernel, row.directory, why)))
    return table


def flaky(rows: Sequence[Flaky]) -> Table:
    table = _table("last seen", "job", "case", "on one kernel")
    for row in rows:
        table.add_row(_when(row.last), f"{row.arch}/{row.point}", escape(clean(row.case)), _counts(row.outcomes))
    return table


def _table(*names: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    for name in names:
        table.add_column(name, no_wrap=name != "why")
    return table


def _when(seconds: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(seconds))


def _counts(outcomes: dict[Outcome, int]) -> str:
    return ", ".join(_coloured(f"{count} {outcome.value}", outcome.green) for outcome, count in outcomes.items())


def _coloured(text: str, good: bool) -> str:
    return f"[{'green' if good else 'red'}]{text}[/]"
