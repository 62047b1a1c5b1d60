"""What reads what came of runs, and logs, ours and any others: report, compare, history, ktap, scan."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import IO

import click
from rich.markup import escape
from rich.table import Table

from harness import arch
from harness.cli.root import OUT, cli, history_option
from harness.errors import UserError
from harness.logs import ktap, splat
from harness.logs.lines import clean_text
from harness.logs.packed import packed
from harness.model import CaseResult, to_json
from harness.results import History, RunReport, asjson, compare, junit, kcidb, page, read_run, recall, text

_DROPPED = re.compile(rb"\*\* \d+ printk messages? dropped \*\*")
"""console_prepend_dropped() in kernel/printk/printk.c"""

_RENDERED: dict[str, Callable[[RunReport, str], str]] = {
    "junit": lambda report, _: junit.render(report),
    "html": lambda report, _: page.render(report),
    "json": lambda report, _: asjson.run_json(report),
    "kcidb": kcidb.render,
}


@cli.command()
@click.argument("directory", type=click.Path(path_type=Path), default=Path("runs/latest"))
@click.option("--format", "form", type=click.Choice(["text", "mail", *_RENDERED]), default="text", show_default=True)
@click.option("--origin", default=kcidb.ORIGIN, show_default=True, metavar="NAME", help="With kcidb: who KernelCI knows you as.")
def report(directory: Path, form: str, origin: str) -> int:
    """Render a run again from its journal. Ends as the run did.

    \b
    harness report runs/latest --format junit > junit.xml
    harness report runs/latest --format mail            what the series did, to be pasted into a reply
    harness report runs/latest --format kcidb --origin my_ci | kcidb-validate       for KernelCI
    """
    found = read_run(directory)
    if form == "text" and found.bisected:
        text.bisected(found, OUT)
    elif form == "text":
        text.summary(found, OUT)
        OUT.print(text.closing_line(found))
    elif form == "mail":
        click.echo(text.for_mail(found))
    else:
        click.echo(_RENDERED[form](found, origin))
    return 1 if found.exit_code is None else found.exit_code


@cli.command("compare")
@click.argument("before", type=click.Path(path_type=Path))
@click.argument("after", type=click.Path(path_type=Path), default=Path("runs/latest"))
@click.option("--json", "as_json", is_flag=True, help="For machines.")
def compare_command(before: Path, after: Path, as_json: bool) -> int:
    """What is newly red, flaky, gone, newly green or new in the run AFTER. Exit code 1 if anything is worse, or was not run.

    \b
    harness compare runs/20261121-011700-fprobe-on-fgraph runs/latest
    """
    old, new = read_run(before), read_run(after)
    found, left_out = compare.compare(old, new), compare.uncompared(old, new)
    worse = compare.worse(old, new)
    if as_json:
        click.echo(to_json({"differences": found, "not_compared": left_out, "worse": worse}).decode())
    else:
        OUT.print(escape(clean_text(compare.table(found, left_out))))
        for why in worse:
            if why not in {one.case for one in found}:
                OUT.print(escape(clean_text(why)), style="red")
    return 1 if worse else 0


@cli.command("history")
@click.option("--case", metavar="SUITE:NAME", help="What this case did, run by run.")
@click.option("--arch", "archs", multiple=True, metavar="A", help="With --case: on this architecture; repeatable.")
@click.option("--flaky", is_flag=True, help="Cases that came out in several ways on the same kernel.")
@click.option("--last", type=click.IntRange(min=1), default=30, show_default=True, metavar="N", help="So many rows.")
@click.option("--json", "as_json", is_flag=True, help="For machines.")
@history_option
def history_command(case: str | None, archs: tuple[str, ...], flaky: bool, last: int, as_json: bool, history: Path) -> int:
    """What is remembered of earlier runs: the runs themselves, what one case did in them, or the cases that are flaky.

    \b
    harness history
    harness history --case 'ftracetest:dynevent/add_remove_fprobe.tc' --arch arm64
    harness history --flaky
    """
    if case and flaky:
        raise UserError("--case and --flaky together", hint="--case shows every run of that one case")
    if archs and not case:
        raise UserError("--arch without --case", hint="--case SUITE:NAME")
    arch.chosen(archs)
    if not history.exists():
        raise UserError(f"no history in {history}", hint="`harness run` writes one; --history PATH says where")
    remembered = History(history, read=True)
    if case:
        seen = remembered.of_case(case, archs, last)
        _show(seen, recall.of_case(seen), as_json)
    elif flaky:
        found = remembered.flaky()[:last]
        _show(found, recall.flaky(found), as_json)
    else:
        runs = remembered.runs(last)
        _show(runs, recall.runs(runs), as_json)
    return 0


def _show(rows: object, table: Table, as_json: bool) -> None:
    if as_json:
        click.echo(to_json(rows).decode())
    else:
        OUT.print(table)


@cli.command("ktap")
@click.argument("file", type=click.File("rb"), default="-")
@click.option("--format", "form", type=click.Choice(["text", "json", "junit"]), default="text", show_default=True)
def ktap_command(file: IO[bytes], form: str) -> int:
    """Any KTAP or TAP log, from a file or stdin. Exit code 1 if a case is red, or if there is none.

    \b
    dmesg | harness ktap --format json
    """
    cases = ktap.parse(file)
    if form == "json":
        click.echo(to_json({"cases": cases, "summary": ktap.summary(cases)}).decode())
    elif form == "junit":
        click.echo(
            junit.render_cases("ktap", [CaseResult("ktap", one.name, one.outcome, diagnostic=one.diagnostic) for one in cases])
        )
    else:
        for one in cases:
            colour = "green" if one.outcome.green else "red"
            why = f"  [dim]{escape(one.diagnostic.splitlines()[0])}[/dim]" if one.diagnostic else ""
            OUT.print(f"[{colour}]{one.outcome.value}[/{colour}] {escape(one.name)}{why}")
        OUT.print(", ".join(f"{count} {outcome}" for outcome, count in ktap.summary(cases).items()) or "no KTAP found")
    return 0 if cases and all(one.outcome.green for one in cases) else 1


@cli.command()
@click.argument("file", type=click.File("rb"), default="-")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
def scan(file: IO[bytes], form: str) -> int:
    """Kernel splats in any log, from a file or stdin. Exit code 1 if there is one, or if the kernel dropped messages.

    \b
    harness scan --format json console.log
    """
    sizes: list[int] = []
    gaps: list[bytes] = []

    def look(block: bytes) -> None:
        name, command = packed(block) if not sizes else ("", "")
        if name:
            raise UserError(f"the log is {name}: nothing was scanned", hint=f"{command} FILE | harness scan")
        sizes.append(len(block))
        gaps.extend(_DROPPED.findall(block))

    found = splat.scan_file(file, look)
    if not sizes:
        raise UserError("the log is empty: nothing was scanned", hint="did the command that writes it fail?")
    if form == "json":
        click.echo(asjson.splats_json(found, len(gaps)))
    else:
        for one in found:
            OUT.print(
                f"[red]{one.kind}[/red] line {one.line}: {escape(one.title)}"
                + (f" [dim]in {escape(one.function)}[/dim]" if one.function else "")
            )
            for sequel in one.sequels:
                OUT.print(f"  [red]then[/red] {escape(sequel)}")
        if gaps:
            OUT.print(f"[red]the kernel dropped messages {len(gaps)} times[/red]: splats may be missing")
    return 1 if found or gaps else 0
