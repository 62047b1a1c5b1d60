"""`harness cache`: how big the cache is, what is in it, and how it is kept small."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import click
from rich.markup import escape
from rich.table import Table

from harness import ccache
from harness.cache import Cache, contents
from harness.cache.contents import Entry, Kind, shown
from harness.cache.prune import Pruned, prune
from harness.cli.options import option
from harness.cli.root import ERR, OUT, cli
from harness.errors import UserError
from harness.logs.lines import clean_text
from harness.model import to_json

_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_DAY = 86400.0


def _bytes(text: str) -> int:
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([KMGT]?)", text.upper())
    if match is None:
        hint = "a number of bytes, or with K, M, G or T behind it: --max-size 20G"
        raise UserError(f"--max-size {text}: that is no size", hint=hint)
    return int(float(match[1]) * _UNITS[match[2]])


@cli.group("cache", invoke_without_command=True)
@option("cache")
@click.option("--json", "as_json", is_flag=True, help="JSON output, with every entry.")
@click.pass_context
def cache_group(context: click.Context, cache: Path, as_json: bool) -> None:
    """Show where the cache is, how much disk it takes and for what, and when that was used last.

    \b
    harness cache
    harness cache --json
    harness cache prune --keep-days 30
    """
    context.obj = cache
    if context.invoked_subcommand:
        return
    found = Cache(cache)
    entries, busy = contents.entries(found), contents.names_in_use(found)
    compiled = ccache.usage()
    if as_json:
        click.echo(to_json(_as_json(found, entries, busy, compiled)).decode())
        return
    total = sum(entry.size for entry in entries)
    OUT.print(f"{escape(str(found.root))}: {shown(total)}")
    OUT.print(_table(entries, busy, compiled))
    if compiled:
        where = escape(f"{compiled.limit} in {compiled.folder}")
        OUT.print(f"ccache keeps its own limit, {where}; prune does not touch it.")
    OUT.print("Remove what was not used for longest: harness cache prune --keep-days N")


@cache_group.command("prune")
@click.option(
    "--keep-days",
    type=click.FloatRange(min=0),
    metavar="N",
    help="Remove what was not used for N days.",
)
@click.option(
    "--max-size",
    metavar="N[K|M|G]",
    help="Remove what was not used for longest, until the cache is no bigger than that.",
)
@click.option("-n", "--dry-run", is_flag=True, help="Say what would be removed; remove nothing.")
@option("cache")
@click.pass_context
def cache_prune(
    context: click.Context,
    cache: Path,
    keep_days: float | None,
    max_size: str | None,
    dry_run: bool,
) -> None:
    """Remove what was not used for longest; never what a run uses or makes now. All of it can be
    made again.

    \b
    harness cache prune --keep-days 30
    harness cache prune --max-size 20G --dry-run
    """
    if context.get_parameter_source("cache") is not click.core.ParameterSource.COMMANDLINE:
        cache = context.obj
    if keep_days is None and max_size is None:
        hint = "--keep-days N, --max-size N[K|M|G], or both"
        raise UserError("it is not said what to remove", hint=hint)
    seconds = None if keep_days is None else keep_days * _DAY
    limit = None if max_size is None else _bytes(max_size)
    result = prune(Cache(cache), seconds, limit, dry_run)
    for entry in result.removed:
        OUT.print(escape(f"{shown(entry.size):>9}  {_name(entry)}, last used {_when(entry)}"))
    OUT.print(escape(_closing(result, dry_run)))
    if result.in_use:
        names = ", ".join(_name(entry) for entry in result.in_use)
        ERR.print(escape(f"kept, because it is in use: {names}"))


def _closing(result: Pruned, dry_run: bool) -> str:
    what = "would be freed" if dry_run else "freed"
    left = shown(result.size - result.freed)
    return f"{len(result.removed)} removed, {shown(result.freed)} {what}, {left} left"


def _name(entry: Entry) -> str:
    folder, _, name = entry.name.rpartition("/")
    short = name[:12] if entry.kind in (Kind.KERNEL, Kind.INITRAMFS) else name
    label = f" ({entry.label})" if entry.label else ""
    return clean_text("/".join(filter(None, [folder, short])) + label)


def _when(entry: Entry) -> str:
    return _time(entry.last_used)


def _time(seconds: float | None) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(seconds)) if seconds else ""


def _table(entries: Sequence[Entry], busy: set[str], compiled: ccache.Usage | None) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    for name in ("", "number", "size", "last used", "not used since", "in use"):
        justify: Literal["left", "right"] = "right" if name in ("number", "size") else "left"
        table.add_column(name, no_wrap=True, justify=justify)
    for kind in Kind:
        own = [entry for entry in entries if entry.kind is kind]
        used = [entry.last_used for entry in own if entry.last_used]
        if own:
            size = sum(entry.size for entry in own)
            times = (_time(max(used)), _time(min(used))) if used else ("", "")
            in_use = sum(entry.name in busy for entry in own)
            table.add_row(kind.value, str(len(own)), shown(size), *times, str(in_use or ""))
    if compiled:
        figures = (str(compiled.files), shown(compiled.size), _time(compiled.last_used))
        table.add_row("ccache", *figures, "", "")
    return table


def _as_json(
    cache: Cache,
    entries: Sequence[Entry],
    busy: set[str],
    compiled: ccache.Usage | None,
) -> dict[str, Any]:
    kinds = {kind.value: sum(e.size for e in entries if e.kind is kind) for kind in Kind}
    return {
        "path": str(cache.root),
        "size": sum(entry.size for entry in entries),
        "kinds": kinds,
        "ccache": compiled,
        "entries": [
            {
                "kind": entry.kind.value,
                "name": entry.name,
                "size": entry.size,
                "last_used": entry.last_used,
                "label": entry.label,
                "in_use": entry.name in busy,
            }
            for entry in entries
        ],
    }
