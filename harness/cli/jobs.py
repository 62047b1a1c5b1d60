"""What builds and boots: run, bisect, build, shell."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource
from rich.markup import escape

from harness import bisect, doctor, pipeline, request, shell
from harness.cache import Cache
from harness.cli.root import (
    ERR,
    OUT,
    cli,
    elsewhere_options,
    executor_option,
    history_option,
    hosts_option,
    job_options,
    points_options,
    resume_option,
    retry_option,
)
from harness.errors import UserError
from harness.pipeline import Plan
from harness.progress import Progress
from harness.request import Request
from harness.results import History, RunReport, read_run, text

_HOW = ("wait", "install", "quiet")
"""Options that change nothing in what comes of it."""
_MAY_DIFFER = ("cache", "history", "executor")
"""Options that a run that is taken up again may be told anew."""
_NOT_REPEATED = ("--wait", "--install", "-q", "--quiet")


@cli.command()
@job_options
@points_options
@click.option(
    "--suite",
    "suite_specs",
    multiple=True,
    metavar="S[:GLOB]",
    help="Suite, or some of its cases; repeatable. `none` just boots. Default: all.",
)
@click.option("--cmd", "commands", multiple=True, metavar="COMMAND", help="Shell command to run in the guest; repeatable.")
@retry_option
@history_option
@hosts_option
@executor_option
@elsewhere_options
@resume_option
@click.pass_context
def run(context: click.Context, /, unfinished: Path | None, **options: Any) -> int:
    """Build, boot and test.

    \b
    harness run --arch arm64 --suite 'ftracetest:dynevent/*fprobe*' --points base,last
    harness run --resume runs/latest
    """
    if unfinished is None:
        report, code = _start(_parse(options), options)
    else:
        report, code = _resume(context, unfinished.resolve())
    text.summary(report, OUT)
    page = report.directory / "report.html"
    OUT.print(f"\n{escape(str(page if page.exists() else report.directory))}\n{text.closing_line(report)}")
    return code


@cli.command("bisect")
@job_options
@click.option("--case", metavar="SUITE:NAME", help="As the summary of a run names it.")
@click.option(
    "--repeat", type=click.IntRange(min=1), default=1, show_default=True, metavar="N", help="Times to be green before it counts."
)
@click.option("--good", default="base", show_default=True, metavar="P", help="A point at which it is green.")
@hosts_option
@resume_option
@click.pass_context
def bisect_command(context: click.Context, /, unfinished: Path | None, **options: Any) -> int:
    """Find the patch of the series that turns a case red, on one architecture. Exit code 0 if it is green with all of them.

    \b
    harness bisect --arch x86_64 --case kunit:fprobe_test.test_fprobe
    harness bisect --arch arm64 --case kunit:fprobe_test.test_fprobe --good 22       which the base does not have
    harness bisect --arch x86_64 --case 'ftracetest:ftrace/fgraph-filter.tc' --repeat 5
    harness bisect --arch s390x --case build:build
    """
    if unfinished is None:
        wanted, plan = _bisection(options)
        report, code = _start(wanted, options, plan)
    else:
        report, code = _resume(context, unfinished.resolve())
    text.bisected(report, OUT)
    OUT.print(escape(str(report.directory)))
    return code


@cli.command()
@job_options
@points_options
def build(**options: Any) -> int:
    """Build the kernels, say where they are, and stop.

    \b
    harness build --arch x86_64 --series none
    """
    report, code = _start(_parse(options), options)
    text.summary(report, OUT)
    for built in report.jobs.values():
        if digest := built.properties.get("kernel"):
            OUT.print(f"{built.arch}/{built.point}: {escape(str(options['cache'] / 'kernels' / digest))}")
    return code


@cli.command("shell")
@job_options
@points_options
@click.option("--gdb", is_flag=True, help="Start it stopped, and say how gdb gets to it.")
@click.option("--cmd", "command", metavar="COMMAND", help="Run one shell command instead, and end with its exit status.")
def shell_command(gdb: bool, command: str | None, **options: Any) -> int:
    """A guest to work in by hand, of one architecture: kernel, modules and selftests as in a run.

    \b
    harness shell --arch arm64
    harness shell --arch s390x --cmd 'uname -a'
    """
    wanted = _parse(options)
    shell.check(wanted)
    if command is not None:
        request.check_command(command)
        if gdb:
            raise UserError("--gdb and --cmd together", hint="gdb wants a guest that waits for it: leave --cmd away")
    report, code = _start(wanted, options)
    if code:
        text.summary(report, OUT)
        return code
    found = shell.Shell(report, wanted, _cache(options))
    if command is not None:
        return found.run(command)
    found.interact(gdb, Progress(ERR))
    return 0


def _resume(context: click.Context, directory: Path) -> tuple[RunReport, int]:
    """Take the options from the run's own command line, and its words as they were meant where they were said."""
    words = {option.name: option.opts[0] for option in context.command.params}
    told = [name for name in context.params if context.get_parameter_source(name) is ParameterSource.COMMANDLINE]
    started = read_run(directory).started
    if other := sorted(words[name] for name in set(told) - {"unfinished", *_MAY_DIFFER, *_HOW}):
        raise UserError(
            f"--resume together with {', '.join(other)}",
            hint="a run goes on as it was started: only --cache, --history and --executor may differ",
        )
    if started is None:
        raise UserError(f"the run in {directory} was killed before it began", hint="start it again, without --resume")
    name = str(context.command.name)
    if started.arguments[:1] != (name,):
        maker = started.arguments[0]
        hint = f"harness {maker} --resume DIR" if maker in _PLANS else f"`harness {maker}` goes on if it is said again"
        raise UserError(f"{directory} was made by `harness {maker}`", hint=hint)
    now = {name: context.params[name] for name in _HOW}
    elsewhere: dict[str, Any] = {name: context.params[name] for name in _MAY_DIFFER if name in told}
    elsewhere.update({name: value.resolve() for name, value in elsewhere.items() if isinstance(value, Path)})
    try:
        os.chdir(started.directory)
    except OSError as error:
        hint = "the run's command line names files by where it was started"
        raise UserError(f"{started.directory}: {error.strerror}", hint=hint) from None
    options = context.command.make_context(name, list(started.arguments[1:])).params
    del options["unfinished"]
    options.update(now, **elsewhere)
    wanted, plan = _PLANS[name](options, started.arguments)
    cache, history = _cache(options), _history(options)
    return _perform(wanted, options, lambda progress: pipeline.resume(wanted, cache, directory, progress, plan, history))


def _parse(options: dict[str, Any], arguments: tuple[str, ...] = ()) -> Request:
    """What job_options and a command's own say, less what is no part of the request."""
    words = {name: value for name, value in options.items() if name not in ("out", "history", *_HOW)}
    return request.parse(arguments=arguments or _arguments(), **{**words, "cache": _cache(options)})


def _all(options: dict[str, Any], arguments: tuple[str, ...] = ()) -> tuple[Request, Plan]:
    return _parse(options, arguments), pipeline.everything


def _bisection(options: dict[str, Any], arguments: tuple[str, ...] = ()) -> tuple[Request, Plan]:
    case, repeat, good = (options.pop(name) for name in ("case", "repeat", "good"))
    if not case:
        raise UserError("bisect what?", hint="--case SUITE:NAME, as the summary of a run names it")
    suite_specs, commands = bisect.suite_specs(case)
    wanted = _parse({**options, "suite_specs": suite_specs, "commands": commands, "per_patch": True}, arguments)
    return wanted, bisect.Bisection(wanted, case, repeat, good)


_PLANS = {"run": _all, "bisect": _bisection}
"""What the commands do that can be resumed."""


def _start(wanted: Request, options: dict[str, Any], plan: Plan = pipeline.everything) -> tuple[RunReport, int]:
    cache, out, history = _cache(options), options["out"], _history(options)
    return _perform(wanted, options, lambda progress: pipeline.run(wanted, cache, out, progress, plan, history))


def _cache(options: dict[str, Any]) -> Cache:
    return Cache(options["cache"], options["wait"])


def _history(options: dict[str, Any]) -> History | None:
    """Only runs are remembered."""
    return History(options["history"]) if "history" in options else None


def _perform(wanted: Request, options: dict[str, Any], work: Callable[[Progress], RunReport]) -> tuple[RunReport, int]:
    # Workers have what builds and boots.
    doctor.check(
        () if wanted.scheduler else wanted.archs, wanted.toolchain, options["install"], lambda text: ERR.print(escape(text))
    )
    with Progress(ERR, options["quiet"]) as progress:
        report = work(progress)
    assert report.finished is not None
    return report, report.finished.exit_code


def _arguments() -> tuple[str, ...]:
    """The command's name and what follows it."""
    name = click.get_current_context().info_name or ""
    words = sys.argv[sys.argv.index(name) :]
    return tuple(word.encode(errors="replace").decode() for word in words if word not in _NOT_REPEATED)
