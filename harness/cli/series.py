"""What a series holds, and whether it applies."""

from __future__ import annotations

from pathlib import Path

import click
import msgspec
from rich.markup import escape
from rich.table import Table

from harness import sandbox, series, tree
from harness.cache import Cache
from harness.cli.root import ERR, OUT, cache_option, cli
from harness.logs.lines import clean_text
from harness.model import to_json
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


@series_group.command("show")
@click.argument("spec")
def series_show(spec: str) -> None:
    """The patches of a series, in order."""
    found = series.load(spec)
    OUT.print(escape(found.description.strip()))
    for patch in found.patches:
        OUT.print(escape(clean_text(f"  {patch.name}  {patch.subject}  ({len(patch.files)} files)")))
    if found.written_after:
        OUT.print(escape(f"\nWritten after: {found.written_after.title}"))
        for original in found.written_after.patches:
            where = f"in {', '.join(original.patches)}" if original.patches else "upstream" if original.upstream else "not needed"
            OUT.print(escape(f"  {original.title}: {where}. {original.reason}".rstrip(". ")))


@series_group.command("check")
@click.argument("spec", default="fprobe-on-fgraph")
@click.option("--tree", "tree_spec", metavar="SPEC", help="As for `harness run`.")
@click.option("--json", "as_json", is_flag=True, help="For machines.")
@cache_option
def series_check(spec: str, tree_spec: str | None, as_json: bool, cache: Path) -> int:
    """Does it apply to this tree, and what does checkpatch say? Patch by patch."""
    found = series.load(spec)
    where = Cache(cache)
    sandbox.enter(Sandbox.AUTO, where)
    store = tree.Store(where)
    with where.lock():
        source = tree.resolve(tree_spec or tree.default_spec(found.tested_on), where)
        applied = series.apply(found, source, where)
        unfounded = series.unfounded(found.written_after, store, source.commit) if found.written_after else []
    remarks = series.remarks(found, store, source.commit, where)
    said = {patch.name: [one for one in remarks or () if one.patch == patch.name] for patch in found.patches}
    if as_json:
        # null where nobody looked
        rows = [
            {**msgspec.to_builtins(one), "checkpatch": None if remarks is None else said[one.patch]} for one in applied.results
        ]
        click.echo(to_json(rows).decode())
    else:
        table = Table(box=None, pad_edge=False)
        for patch in applied.results:
            count = len(said[patch.patch])
            table.add_row(
                patch.state.value, patch.patch, f"checkpatch: {count}" if count else "", escape(clean_text(patch.detail))
            )
        OUT.print(table)
    for title in unfounded:
        ERR.print(escape(f"not upstream in this tree, as series.toml has it: {title}"))
    unargued = ["the tree has none"] if remarks is None else list(series.unargued(remarks, found.argued))
    for remark in unargued:
        ERR.print(escape(clean_text(f"checkpatch: {remark}")))
    return 0 if applied.complete and not unfounded and not (found.argued and unargued) else 1
