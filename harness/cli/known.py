"""`harness known`: the known failures, and which of them still apply."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import click
from rich.markup import escape
from rich.table import Table

from harness.cli.root import OUT, cli, history_option
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
@history_option
def known_command(form: str, stale: int, history: Path) -> int:
    """List the known failures of configs/known.toml: where each applied last, which were not seen for a long time, and
    which cover more than one diagnostic.

    \b
    harness known
    harness known --stale 30 --format json
    """
    remembered = History(history, read=True) if history.exists() else None
    found = [
        usage(entry, line, remembered.ran(entry.applies_to) if remembered else (), stale) for entry, line in read_with_lines()
    ]
    if form == "json":
        click.echo(to_json({"history": remembered is not None, "known": [_as_json(one) for one in found]}).decode())
        return 0
    OUT.print(_table(found))
    for one in found:
        for remark in one.remarks:
            OUT.print(f"line {one.line}, {escape(one.entry.case)}: {remark}")
            shown = one.diagnostics if len(one.diagnostics) > 1 else ()
            for text in shown:
                OUT.print(f"    {escape(clean(text.partition(chr(10))[0]))}")
    if remembered is None:
        OUT.print(f"no history in {escape(str(history))}: `harness run` writes one; give its path with --history PATH")
    return 0


def _table(found: list[Usage]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    for name in ("line", "case", "where", "last seen", "job", "kernel", "runs since"):
        table.add_column(name, no_wrap=True, justify="right" if name in ("line", "runs since") else "left")
    for one in found:
        entry, last = one.entry, one.last
        where = " ".join([*entry.arch, *([] if entry.toolchain == "*" else [entry.toolchain]), entry.versions])
        when = time.strftime("%Y-%m-%d %H:%M", time.localtime(last.started)) if last else "never"
        job, kernel = (f"{last.arch}/{last.point}", last.release) if last else ("", "")
        cells = (entry.case, where.strip(), when, job, kernel)
        table.add_row(str(one.line), *map(escape, cells), str(one.runs_since), style="yellow" if one.remarks else "")
    return table


def _as_json(one: Usage) -> dict[str, Any]:
    fields = {name: getattr(one.entry, name) for name in one.entry.__struct_fields__}
    return {**fields, **{name: getattr(one, name) for name in one.__struct_fields__ if name != "entry"}}
