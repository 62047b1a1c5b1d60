"""What a series holds, and whether it applies."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from rich.markup import escape
from rich.table import Table

from harness import sandbox, series, tree
from harness.cache import Cache
from harness.cli.options import option
from harness.cli.root import ERR, OUT, cli
from harness.logs.lines import clean_text
from harness.model import PatchState, to_json
from harness.sandbox import Sandbox


@cli.group("series")
def series_group() -> None:
    """What a series holds, and whether it applies."""


@series_group.command("list")
def series_list() -> None:
    """The bundled series."""
    for name in series.bundled():
        found = series.load(name)
        OUT.print(f"{name}: {len(found.patches)} patches, tested on {', '.join(found.tested_on) or 'nothing'}")
    for name in series.referred():
        OUT.print(f"{name}: fetched from lore.kernel.org, or given with --mbox FILE")


@series_group.command("show")
@click.argument("spec", default="fprobe-on-fgraph")
@option("mbox")
@option("cache")
def series_show(spec: str, mbox: Path | None, cache: Path) -> None:
    """The patches of a series, in order, and where they come from.

    \b
    harness series show lore:20231105160854.1c5f2b8@example.org
    harness series show thread.mbox
    """
    found = series.load(spec, Cache(cache), mbox)
    OUT.print(escape(clean_text(found.description.strip())))
    for patch in found.patches:
        OUT.print(escape(clean_text(f"  {patch.name}  {patch.subject}  ({len(patch.files)} files)")))
    for line in found.facts:
        OUT.print(escape(clean_text(line)))
    if found.written_after:
        OUT.print(escape(f"\nWritten after: {found.written_after.title}"))
        for original in found.written_after.patches:
            where = f"in {', '.join(original.patches)}" if original.patches else "upstream" if original.upstream else "not needed"
            OUT.print(escape(f"  {original.title}: {where}. {original.reason}".rstrip(". ")))


@series_group.command("export")
@click.argument("spec")
@click.argument("target", type=click.Path(path_type=Path))
@click.option("--format", "form", type=click.Choice(["quilt", "mbox"]), help="Default: by the target's name.")
@option("mbox")
@option("cache")
def series_export(spec: str, mbox: Path | None, cache: Path, target: Path, form: str | None) -> None:
    """Write a series to a new directory (quilt), or to a new file (mbox).

    \b
    harness series export lore:MESSAGE-ID patches/mine
    harness series export git:linux#v6.12..topic topic.mbox
    """
    found = series.load(spec, Cache(cache), mbox)
    as_mbox = form == "mbox" or (form is None and target.suffix == ".mbox")
    series.export(found, target, as_mbox)
    OUT.print(escape(f"{target}: {len(found.patches)} patches, digest {found.digest}"))


@series_group.command("check")
@click.argument("spec", default="fprobe-on-fgraph")
@option("mbox")
@option("cache")
@option("tree_spec")
@click.option("--json", "as_json", is_flag=True, help="For machines.")
def series_check(spec: str, mbox: Path | None, tree_spec: str | None, as_json: bool, cache: Path) -> int:
    """Does it apply to this tree, what does it touch, what does checkpatch say? Patch by patch.

    \b
    harness series check thread.mbox --tree git:linux#v6.12
    """
    where = Cache(cache)
    found = series.load(spec, where, mbox)
    sandbox.enter(Sandbox.AUTO, where)
    with where.opened():
        source = tree.resolve(tree.spec_for(tree_spec, found), where)
        verdict = series.check(found, source, where)
    if as_json:
        click.echo(to_json(verdict.patches).decode())
    else:
        OUT.print(_table(verdict.patches))
        for one in verdict.patches:
            if one.detail and one.state is not PatchState.NOT_TRIED:
                OUT.print(escape(clean_text(f"{one.patch}:\n    " + one.detail.replace("\n", "\n    "))))
        for line in [f"tree: {source.version}, {source.source}, {source.commit[:12]}", *found.facts]:
            OUT.print(escape(clean_text(line)))
    for line in (*verdict.remarks, *verdict.complaints):
        ERR.print(escape(clean_text(line)))
    return 0 if verdict.good else 1


def _table(patches: tuple[Any, ...]) -> Table:
    table = Table(box=None, pad_edge=False)
    for name in ("", "patch", "files", "for", "checkpatch"):
        table.add_column(name)
    for one in patches:
        colour = "red" if not one.state.good else "yellow" if one.state != "applied" else "green"
        remarks = "not there" if one.checkpatch is None else str(len(one.checkpatch) or "")
        words = (one.patch, str(len(one.files)), " ".join(one.archs), remarks)
        table.add_row(f"[{colour}]{one.state}[/{colour}]", *(escape(clean_text(word)) for word in words))
    return table
