"""`harness known`: the known failures, and which of them still apply."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import click
from rich.markup import escape
from rich.table import Table

from harness.cli.options import option
from harness.cli.root import OUT, cli
from harness.logs.lines import clean
from harness.model import to_json
from harness.results import History
from harness.suites.known import read_with_lines
from harness.suites.usage import Usage, usage


@cli.command("known")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.option(
    "--stale",
    type=click.IntRange(min=1),
    default=10,
    show_default=True,
    metavar="N",
    help="Point out entries that were not seen in the last N runs of their cases.",
)
@option("history")
def known_command(form: str, stale: int, history: Path) -> int:
    """List the known failures of configs/known.toml: where each applied last, which were not seen for a long time, and
    which cover more than one diagnostic.

    \b
    harness known
    harness known --stale 30 --format json
    """
    past_runs = History(history, read=True) if history.exists() else None
    usages = [
        usage(entry, line, past_runs.ran(entry.applies_to) if past_runs else (), stale) for entry, line in read_with_lines()
    ]
    if form == "json":
        click.echo(to_json({"history": past_runs is not None, "known": [_as_json(row) for row in usages]}).decode())
        return 0
    OUT.print(_table(usages))
    for row in usages:
        for remark in row.remarks:
            OUT.print(f"line {row.line}, {escape(row.entry.case)}: {remark}")
            shown = row.diagnostics if len(row.diagnostics) > 1 else ()
            for text in shown:
                OUT.print(f"    {escape(clean(text.partition(chr(10))[0]))}")
    if past_runs is None:
        OUT.print(f"no history in {escape(str(history))}: `harness run` writes one; give its path with --history PATH")
    return 0


def _table(usages: list[Usage]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    for name in ("line", "case", "where", "last seen", "job", "kernel", "runs since"):
        table.add_column(name, no_wrap=True, justify="right" if name in ("line", "runs since") else "left")
    for row in usages:
        entry, last = row.entry, row.last
        where = " ".join([*entry.arch, *([] if entry.toolchain == "*" else [entry.toolchain]), entry.versions])
        when = time.strftime("%Y-%m-%d %H:%M", time.localtime(last.started)) if last else "never"
        job, kernel = (f"{last.arch}/{last.point}", last.release) if last else ("", "")
        cells = (entry.case, where.strip(), when, job, kernel)
        table.add_row(str(row.line), *map(escape, cells), str(row.runs_since), style="yellow" if row.remarks else "")
    return table


def _as_json(row: Usage) -> dict[str, Any]:
    fields = {name: getattr(row.entry, name) for name in row.entry.__struct_fields__}
    return {**fields, **{name: getattr(row, name) for name in row.__struct_fields__ if name != "entry"}}
