"""The command line: parses, calls one function, prints. No logic."""

from __future__ import annotations

import logging
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import IO, Any, TypeVar

import click
import msgspec
from click.core import ParameterSource
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from harness import __version__, arch, doctor, paths, pipeline, request, sandbox, series, shell, tree
from harness.cache import Cache
from harness.errors import HarnessError, UserError
from harness.logs import ktap, splat
from harness.logs.lines import clean_text
from harness.model import CaseResult, to_json
from harness.progress import Progress
from harness.request import Request
from harness.results import RunReport, asjson, junit, read_run, text
from harness.sandbox import Sandbox

F = TypeVar("F", bound=Callable[..., Any])

_out = Console(highlight=False, soft_wrap=True)
_err = Console(stderr=True, highlight=False, soft_wrap=True)


def main() -> None:
    """Run a command and end with its exit code. SIGTERM and SIGHUP end it as Ctrl-C does: partial results are kept."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _interrupt)
    try:
        code = cli.main(standalone_mode=False)
    except click.exceptions.Abort:
        code = 130
    except KeyboardInterrupt:
        code = 130
    except click.ClickException as error:
        error.show()
        code = error.exit_code
    except HarnessError as error:
        _err.print(f"[red]error:[/red] {escape(clean_text(error.message))}")
        if error.hint:
            _err.print(f"[yellow]hint:[/yellow] {escape(clean_text(error.hint))}")
        code = error.exit_code
    except Exception:
        _err.print_exception()
        code = 3  # Python's own 1 would say that a case is red
    sys.exit(code or 0)


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="harness")
@click.option("-v", "--verbose", is_flag=True, help="Print every command that is run.")
def cli(verbose: bool) -> None:
    """Apply a kernel series, build, boot and test it, and tell the truth about it.

    \b
    harness run                                    the bundled series on every architecture
    harness run --series none --arch arm64         the tree as it is
    harness run --suite 'ftracetest:dynevent/*'    some cases of one suite
    """
    logging.basicConfig(level=logging.INFO if verbose else logging.WARNING, format="%(message)s", stream=sys.stderr)


def _cache(function: F) -> F:
    return click.option(
        "--cache",
        type=click.Path(file_okay=False, path_type=Path),
        envvar="HARNESS_CACHE",
        default=paths.default_cache(),
        help="Where trees, kernels and downloads are kept.",
    )(function)


def _job(function: F) -> F:
    """The options that say what is built."""
    options = (
        click.option(
            "--series",
            "series_spec",
            default="fprobe-on-fgraph",
            show_default=True,
            metavar="NAME|DIR|none",
            help="Patches to apply.",
        ),
        click.option(
            "--tree",
            "tree_spec",
            metavar="SPEC",
            help="debian:PACKAGE[=VERSION], kernel.org:VERSION, tarball:PATH|URL or git:PATH#REF.",
        ),
        click.option("--arch", "archs", multiple=True, metavar="A", help="Architecture; repeatable. Default: all."),
        click.option(
            "--config",
            "fragments",
            multiple=True,
            type=click.Path(path_type=Path),
            help="Another configuration fragment; repeatable.",
        ),
        click.option(
            "--points",
            default="last",
            show_default=True,
            metavar="P[,P]",
            help="base (before the series), last (all of it), or both.",
        ),
        click.option("--jobs", type=click.IntRange(min=1), metavar="N", help="Cores to fill. Default: all."),
        click.option(
            "--toolchain",
            default="auto",
            metavar="gcc|llvm[-N]",
            help="Compiler. Default: gcc for every architecture that the distribution has one for, else LLVM.",
        ),
        click.option(
            "--accel", type=click.Choice(["auto", "kvm", "tcg"]), default="auto", show_default=True, help="QEMU's accelerator."
        ),
        click.option(
            "--sandbox",
            type=click.Choice(list(Sandbox)),
            default=Sandbox.AUTO,
            show_default=True,
            help="Patch, configure and build with bubblewrap: no network, and only the build's own folders to write to.",
        ),
        click.option(
            "--out",
            type=click.Path(file_okay=False, path_type=Path),
            default=Path("runs"),
            show_default=True,
            help="Where run directories go.",
        ),
        click.option("--install", is_flag=True, help="Install missing tools with apt first."),
    )
    for option in reversed(options):
        function = option(function)
    return _cache(function)


@cli.command()
@_job
@click.option(
    "--suite",
    "suite_specs",
    multiple=True,
    metavar="S[:GLOB]",
    help="Suite, or some of its cases; repeatable. `none` just boots. Default: all.",
)
@click.option("--cmd", "commands", multiple=True, metavar="COMMAND", help="Shell command to run in the guest; repeatable.")
@click.option(
    "--resume",
    "unfinished",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Go on with a run that was cut short, as it was started.",
)
@click.pass_context
def run(context: click.Context, /, unfinished: Path | None, **options: Any) -> int:
    """Build, boot and test.

    \b
    harness run --arch arm64 --suite 'ftracetest:dynevent/*fprobe*' --points base,last
    harness run --resume runs/latest
    """
    if unfinished is None:
        cache, out, install = (options.pop(name) for name in ("cache", "out", "install"))
        report, code = _perform(request.parse(arguments=_arguments(), **options), cache, out, install)
    else:
        report, code = _resume(context, unfinished.resolve())
    text.summary(report, _out)
    _out.print(f"\n{escape(str(report.directory))}\n{text.closing_line(report)}")
    return code


@cli.command()
@_job
def build(cache: Path, out: Path, install: bool, **job: Any) -> int:
    """Build the kernels, say where they are, and stop.

    \b
    harness build --arch x86_64 --series none
    """
    report, code = _perform(request.parse(arguments=_arguments(), **job), cache, out, install)
    text.summary(report, _out)
    for built in report.jobs.values():
        if digest := built.properties.get("kernel"):
            _out.print(f"{built.arch}/{built.point}: {escape(str(cache / 'kernels' / digest))}")
    return code


@cli.command("shell")
@_job
@click.option("--gdb", is_flag=True, help="Start it stopped, and say how gdb gets to it.")
@click.option("--cmd", "command", metavar="COMMAND", help="Run one shell command instead, and end with its exit status.")
def shell_command(gdb: bool, command: str | None, cache: Path, out: Path, install: bool, **job: Any) -> int:
    """A guest to work in by hand, of one architecture: kernel, modules and selftests as in a run.

    \b
    harness shell --arch arm64
    harness shell --arch s390x --cmd 'uname -a'
    """
    wanted = request.parse(arguments=_arguments(), **job)
    shell.check(wanted)
    if command is not None:
        request.check_command(command)
        if gdb:
            raise UserError("--gdb and --cmd together", hint="gdb wants a guest that waits for it: leave --cmd away")
    report, code = _perform(wanted, cache, out, install)
    if code:
        text.summary(report, _out)
        return code
    found = shell.Shell(report, wanted, Cache(cache))
    if command is not None:
        return found.run(command)
    found.interact(gdb, Progress(_err))
    return 0


def _resume(context: click.Context, directory: Path) -> tuple[RunReport, int]:
    """Take the options from the run's own command line, and its words as they were meant where they were said."""
    told = [name for name in context.params if context.get_parameter_source(name) is ParameterSource.COMMANDLINE]
    started = read_run(directory).started
    if other := sorted(set(told) - {"unfinished", "cache", "install"}):
        raise UserError(
            f"--resume together with {', '.join(other)}", hint="a run goes on as it was started: only --cache may differ"
        )
    if started is None or started.arguments[:1] != ("run",):
        raise UserError(
            f"{directory} is not a run that can go on", hint="`harness build` goes on where it was if it is said again"
        )
    cache, install = context.params["cache"].resolve(), context.params["install"]
    try:
        os.chdir(started.directory)
    except OSError as error:
        hint = "the run's command line names files by where it was started"
        raise UserError(f"{started.directory}: {error.strerror}", hint=hint) from None
    options = run.make_context("run", list(started.arguments[1:])).params
    if "cache" not in told:
        cache = options["cache"]
    for name in ("unfinished", "cache", "out", "install"):
        del options[name]
    wanted = request.parse(arguments=started.arguments, **options)
    doctor.check(wanted.archs, wanted.toolchain, install, lambda text: _err.print(escape(text)))
    with Progress(_err) as progress:
        report = pipeline.resume(wanted, Cache(cache), directory, progress)
    return _ended(report)


def _perform(wanted: Request, cache: Path, out: Path, install: bool) -> tuple[RunReport, int]:
    doctor.check(wanted.archs, wanted.toolchain, install, lambda text: _err.print(escape(text)))
    with Progress(_err) as progress:
        report = pipeline.run(wanted, Cache(cache), out, progress)
    return _ended(report)


def _ended(report: RunReport) -> tuple[RunReport, int]:
    assert report.finished is not None
    return report, report.finished.exit_code


def _arguments() -> tuple[str, ...]:
    """The command's name and what follows it."""
    name = click.get_current_context().info_name or ""
    words = sys.argv[sys.argv.index(name) :]
    return tuple(word.encode(errors="replace").decode() for word in words if word != "--install")


@cli.command("doctor")
@click.option("--arch", "archs", multiple=True, metavar="A", help="Architecture; repeatable. Default: all.")
@click.option("--toolchain", default="auto", metavar="gcc|llvm[-N]", help="As for `harness run`.")
@click.option("--install", is_flag=True, help="Install with apt what is missing.")
@click.option("--json", "as_json", is_flag=True, help="For machines.")
def doctor_command(archs: tuple[str, ...], toolchain: str, install: bool, as_json: bool) -> int:
    """What is missing or too old on this machine, and the exact command that installs it."""
    wanted = arch.chosen(archs)
    if install:
        findings = doctor.install(wanted, toolchain, lambda text: _err.print(escape(text)))
    else:
        findings = doctor.examine(wanted, toolchain)
    command = doctor.plan(findings).text
    if as_json:
        fields = ("name", "purpose", "minimum", "optional")
        rows = [
            {"found": one.met, "problem": one.problem, **{field: getattr(one.need, field) for field in fields}}
            for one in findings
        ]
        click.echo(msgspec.json.format(to_json({"needs": rows, "install": command})).decode())
    else:
        for one in findings:
            colour = "green" if one.met else "yellow" if one.need.optional else "red"
            state = "found" if one.met else f"optional, {one.problem}" if one.need.optional else one.problem
            _out.print(f"[{colour}]{escape(state):<8}[/{colour}] {escape(one.need.name)} [dim]({escape(one.need.purpose)})[/dim]")
        if command:
            _out.print(f"\n{escape(command)}")
    return 3 if doctor.missing(findings) else 0


@cli.group("series")
def series_group() -> None:
    """What a series holds, and whether it applies."""


@series_group.command("list")
def series_list() -> None:
    """The bundled series."""
    for name in series.bundled():
        found = series.load(name)
        _out.print(f"{name}: {len(found.patches)} patches, tested on {', '.join(found.tested_on) or 'nothing'}")


@series_group.command("show")
@click.argument("spec")
def series_show(spec: str) -> None:
    """The patches of a series, in order."""
    found = series.load(spec)
    _out.print(escape(found.description.strip()))
    for patch in found.patches:
        _out.print(escape(clean_text(f"  {patch.name}  {patch.subject}  ({len(patch.files)} files)")))
    if found.written_after:
        _out.print(escape(f"\nWritten after: {found.written_after.title}"))
        for original in found.written_after.patches:
            where = f"in {', '.join(original.patches)}" if original.patches else "upstream" if original.upstream else "not needed"
            _out.print(escape(f"  {original.title}: {where}. {original.reason}".rstrip(". ")))


@series_group.command("check")
@click.argument("spec", default="fprobe-on-fgraph")
@click.option("--tree", "tree_spec", metavar="SPEC", help="As for `harness run`.")
@click.option("--json", "as_json", is_flag=True, help="For machines.")
@_cache
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
        _out.print(table)
    for title in unfounded:
        _err.print(escape(f"not upstream in this tree, as series.toml has it: {title}"))
    unargued = ["the tree has none"] if remarks is None else list(series.unargued(remarks, found.argued))
    for remark in unargued:
        _err.print(escape(clean_text(f"checkpatch: {remark}")))
    return 0 if applied.complete and not unfounded and not (found.argued and unargued) else 1


@cli.command()
@click.argument("directory", type=click.Path(path_type=Path), default=Path("runs/latest"))
@click.option("--format", "form", type=click.Choice(["text", "junit", "json"]), default="text", show_default=True)
def report(directory: Path, form: str) -> int:
    """Render a run again from its journal. Ends as the run did.

    \b
    harness report runs/latest --format junit > junit.xml
    """
    found = read_run(directory)
    if form == "text":
        text.summary(found, _out)
        _out.print(text.closing_line(found))
    else:
        click.echo(junit.render(found) if form == "junit" else asjson.run_json(found))
    return found.finished.exit_code if found.finished else 1


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
            _out.print(f"[{colour}]{one.outcome.value}[/{colour}] {escape(one.name)}{why}")
        _out.print(", ".join(f"{count} {outcome}" for outcome, count in ktap.summary(cases).items()) or "no KTAP found")
    return 0 if cases and all(one.outcome.green for one in cases) else 1


@cli.command()
@click.argument("file", type=click.File("rb"), default="-")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
def scan(file: IO[bytes], form: str) -> int:
    """Kernel splats in any log, from a file or stdin. Exit code 1 if there is one.

    \b
    harness scan --format json console.log
    """
    found = splat.scan_file(file)
    if form == "json":
        click.echo(asjson.splats_json(found))
    else:
        for one in found:
            _out.print(
                f"[red]{one.kind}[/red] line {one.line}: {escape(one.title)}"
                + (f" [dim]in {escape(one.function)}[/dim]" if one.function else "")
            )
    return 1 if found else 0
