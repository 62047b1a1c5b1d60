"""What builds and boots: run, build, shell."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource
from rich.markup import escape

from harness import doctor, pipeline, request, shell
from harness.cache import Cache
from harness.cli.root import ERR, OUT, cli, job_options
from harness.errors import UserError
from harness.progress import Progress
from harness.request import Request
from harness.results import RunReport, read_run, text


@cli.command()
@job_options
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
        report, code = _start(request.parse(arguments=_arguments(), **options), cache, out, install)
    else:
        report, code = _resume(context, unfinished.resolve())
    text.summary(report, OUT)
    OUT.print(f"\n{escape(str(report.directory))}\n{text.closing_line(report)}")
    return code


@cli.command()
@job_options
def build(cache: Path, out: Path, install: bool, **job: Any) -> int:
    """Build the kernels, say where they are, and stop.

    \b
    harness build --arch x86_64 --series none
    """
    report, code = _start(request.parse(arguments=_arguments(), **job), cache, out, install)
    text.summary(report, OUT)
    for built in report.jobs.values():
        if digest := built.properties.get("kernel"):
            OUT.print(f"{built.arch}/{built.point}: {escape(str(cache / 'kernels' / digest))}")
    return code


@cli.command("shell")
@job_options
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
    report, code = _start(wanted, cache, out, install)
    if code:
        text.summary(report, OUT)
        return code
    found = shell.Shell(report, wanted, Cache(cache))
    if command is not None:
        return found.run(command)
    found.interact(gdb, Progress(ERR))
    return 0


def _resume(context: click.Context, directory: Path) -> tuple[RunReport, int]:
    """Take the options from the run's own command line, and its words as they were meant where they were said."""
    words = {option.name: option.opts[0] for option in context.command.params}
    told = [name for name in context.params if context.get_parameter_source(name) is ParameterSource.COMMANDLINE]
    started = read_run(directory).started
    if other := sorted(words[name] for name in set(told) - {"unfinished", "cache", "install"}):
        raise UserError(
            f"--resume together with {', '.join(other)}", hint="a run goes on as it was started: only --cache may differ"
        )
    if started is None:
        raise UserError(f"the run in {directory} was killed before it began", hint="start it again, without --resume")
    if started.arguments[:1] != ("run",):
        raise UserError(f"{directory} is not a run that can go on", hint="`harness build` goes on if it is said again")
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
    return _perform(wanted, install, lambda progress: pipeline.resume(wanted, Cache(cache), directory, progress))


def _start(wanted: Request, cache: Path, out: Path, install: bool) -> tuple[RunReport, int]:
    return _perform(wanted, install, lambda progress: pipeline.run(wanted, Cache(cache), out, progress))


def _perform(wanted: Request, install: bool, work: Callable[[Progress], RunReport]) -> tuple[RunReport, int]:
    doctor.check(wanted.archs, wanted.toolchain, install, lambda text: ERR.print(escape(text)))
    with Progress(ERR) as progress:
        report = work(progress)
    assert report.finished is not None
    return report, report.finished.exit_code


def _arguments() -> tuple[str, ...]:
    """The command's name and what follows it."""
    name = click.get_current_context().info_name or ""
    words = sys.argv[sys.argv.index(name) :]
    return tuple(word.encode(errors="replace").decode() for word in words if word != "--install")
