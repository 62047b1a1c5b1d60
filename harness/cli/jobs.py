"""What builds and boots: run, bisect, build, shell."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
from msgspec import Struct
from rich.markup import escape

from harness import bisect, doctor, pipeline, request, shell
from harness.cache import Cache
from harness.cli.options import command, recorded
from harness.cli.resume import interrupted
from harness.cli.root import ERR, OUT
from harness.errors import UserError
from harness.options import BISECT, BUILD, RUN, SHELL, RunOptions
from harness.pipeline import Plan
from harness.progress import Progress
from harness.request import Request
from harness.results import History, RunReport, text


@command(RUN)
def run(options: RunOptions) -> int:
    """Build, boot and test.

    \b
    harness run --arch arm64 --suite 'ftracetest:dynevent/*fprobe*' --points base,last
    harness run --resume runs/latest
    """
    report, code = _start_or_resume(_run, options)
    text.summary(report, OUT)
    page = report.directory / "report.html"
    OUT.print(f"\n{escape(str(page if page.exists() else report.directory))}")
    OUT.print(text.closing_line(report))
    return code


@command(BISECT)
def bisect_command(options: RunOptions) -> int:
    """Find the patch of the series that turns a case red, on one architecture. Exit code 0 if it is green with all of them.

    \b
    harness bisect --arch x86_64 --case kunit:fprobe_test.test_fprobe
    harness bisect --arch arm64 --case kunit:fprobe_test.test_fprobe --good 22       which the base does not have
    harness bisect --arch x86_64 --case 'ftracetest:ftrace/fgraph-filter.tc' --repeat 5
    harness bisect --arch s390x --case build:build
    """
    report, code = _start_or_resume(_bisection, options)
    text.bisected(report, OUT)
    OUT.print(escape(str(report.directory)))
    return code


@command(BUILD)
def build(options: RunOptions) -> int:
    """Build the kernels, say where they are, and stop.

    \b
    harness build --arch x86_64 --series none
    """
    report, code = _start(_build(options, recorded()))
    text.summary(report, OUT)
    for built in report.jobs.values():
        if digest := built.facts.kernel:
            path = options.cache / "kernels" / digest
            OUT.print(f"{built.arch}/{built.point}: {escape(str(path))}")
    return code


@command(SHELL)
def shell_command(options: RunOptions) -> int:
    """A guest to work in by hand, of one architecture: kernel, modules and selftests as in a run.

    \b
    harness shell --arch arm64
    harness shell --arch s390x --cmd 'uname -a'
    """
    work = _build(options, recorded())
    shell.check(work.request)
    if options.command is not None:
        request.check_command(options.command)
        if options.gdb:
            hint = "gdb wants a guest that waits for it: leave --cmd away"
            raise UserError("--gdb and --cmd together", hint=hint)
    report, code = _start(work)
    if code:
        text.summary(report, OUT)
        return code
    found = shell.Shell(report, work.request, work.cache)
    if options.command is not None:
        return found.run(options.command)
    found.interact(options.gdb, Progress(ERR))
    return 0


class _Work(Struct, frozen=True):
    """What a command does."""

    request: Request
    cache: Cache
    plan: Plan = pipeline.everything
    history: History | None = None
    """Where it is remembered. Only runs are."""


_Make = Callable[[RunOptions, tuple[str, ...]], _Work]
"""Checks the options. The words are those that a journal keeps to repeat the command."""


def _build(options: RunOptions, words: tuple[str, ...]) -> _Work:
    cache = Cache(options.cache, options.wait)
    return _Work(request.parse(options, cache, words), cache)


def _run(options: RunOptions, words: tuple[str, ...]) -> _Work:
    work = _build(options, words)
    return msgspec.structs.replace(work, history=History(options.history))


def _bisection(options: RunOptions, words: tuple[str, ...]) -> _Work:
    case = options.case
    if not case:
        hint = "--case SUITE:NAME, as the summary of a run names it"
        raise UserError("name the case to bisect", hint=hint)
    suites, commands = bisect.suite_specs(case)
    narrowed = {"suite_specs": suites, "commands": commands, "per_patch": True}
    work = _build(msgspec.structs.replace(options, **narrowed), words)
    plan = bisect.Bisection(work.request, case, options.repeat, options.good)
    return msgspec.structs.replace(work, plan=plan)


def _start_or_resume(make: _Make, options: RunOptions) -> tuple[RunReport, int]:
    if options.unfinished is None:
        return _start(make(options, recorded()))
    directory = options.unfinished.resolve()
    work = make(*interrupted(directory, options))

    def resume(progress: Progress) -> RunReport:
        rest = (directory, progress, work.plan, work.history)
        return pipeline.resume(work.request, work.cache, *rest)

    return _perform(work, resume)


def _start(work: _Work) -> tuple[RunReport, int]:
    def start(progress: Progress) -> RunReport:
        rest = (work.request.options.out, progress, work.plan, work.history)
        return pipeline.run(work.request, work.cache, *rest)

    return _perform(work, start)


def _perform(work: _Work, perform: Callable[[Progress], RunReport]) -> tuple[RunReport, int]:
    # With a cluster, its workers need the tools that build and boot.
    archs = () if work.request.scheduler else work.request.archs
    options = work.request.options
    doctor.check(archs, options.toolchain, options.install, lambda text: ERR.print(escape(text)))
    with Progress(ERR, options.quiet) as progress:
        report = perform(progress)
    assert report.finished is not None
    return report, report.finished.exit_code
