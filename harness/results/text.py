"""The summary that ends a run on a terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from harness.errors import UserError
from harness.logs.lines import clean, clean_text
from harness.model import BASE, POINTED_OUT, CaseResult, Outcome
from harness.results import compare, effect
from harness.results.journal import JobReport, RunReport
from harness.results.reproduce import reproduce, resume

_FEW_POINTS = 2
_EVIDENCE = 30
"""Lines of a log that are shown where there is just one red case to look at."""
_COLOURS = {True: "green", False: "red"}


def summary(report: RunReport, console: Console) -> None:
    """What is new since the last such run, what came of every suite, then every red case with what reproduces it."""
    if found := report.compared:
        since = ", ".join(dict.fromkeys(found.since.values()))
        table = compare.table(found.differences, report.uncompared)
        console.print(f"\nSince {escape(clean(since))}:\n{escape(clean_text(table))}\n")
    points = Counter(job.arch for job in report.jobs.values())
    console.print(_points(report) if max(points.values(), default=0) > _FEW_POINTS else _suites(report))
    _values(report, console)
    if report.outlived:
        console.print("\nXPASS, known failures (configs/known.toml) that passed:")
    for known, jobs in report.outlived:
        where = " ".join(job.name for job in jobs)
        console.print(f"  {escape(clean(known.case))} ({where}): {escape(clean(known.reason))}", highlight=False, soft_wrap=True)
    if used := report.usage:
        console.print(
            f"\n{used.cpu:.0f} s of CPU in {used.wall:.0f} s on {used.cores} cores: {used.share:.0%} of them", highlight=False
        )
    if did := effect.table(report):
        console.print(f"\nWhat the series did:\n{escape(clean_text(did))}", highlight=False, soft_wrap=True)
    for result, jobs in report.reds:
        _red(report, result, jobs, console)
    _cut_short(report, console)


def _suites(report: RunReport) -> Table:
    """A row for each suite, a column for each outcome."""
    table = Table(box=None, pad_edge=False)
    table.add_column("")
    for outcome in report.count():
        table.add_column(outcome.value, justify="right", style=_COLOURS[outcome.green])
    for job in report.jobs.values():
        for suite in dict.fromkeys(result.suite for result in job.results):
            outcomes = [result.outcome for result in job.results if result.suite == suite]
            counts = [str(outcomes.count(outcome) or "") for outcome in report.count()]
            table.add_row(f"{job.name} {suite}", *counts)
    return table


def _points(report: RunReport) -> Table:
    """A row for each point, a column for each suite."""
    suites = dict.fromkeys(result.suite for result in report.results)
    table = Table(box=None, pad_edge=False)
    for name in ("", *suites, "", ""):
        table.add_column(name)
    for job in report.jobs.values():
        cells = []
        for suite in suites:
            outcomes = [result.outcome for result in job.results if result.suite == suite]
            red = sum(not outcome.green for outcome in outcomes)
            if red:
                cells.append(f"[red]{red} of {len(outcomes)} red[/red]")
            elif outcomes and set(outcomes) == {Outcome.SKIP}:
                cells.append(f"{len(outcomes)} skipped")
            else:
                cells.append(f"[green]{len(outcomes) or ''}[/green]")
        leader = job.facts.results_of
        patch = job.facts.patch or "none"
        told = [f"tested at {leader}" if leader else "", "" if patch == "none" else escape(clean(patch))]
        table.add_row(f"{job.name}", *cells, *told)
    return table


def _cut_short(report: RunReport, console: Console) -> None:
    """Print why the run was cut short, and the command that resumes it; or why the run proves nothing."""
    if why := report.cut_short or report.unproved:
        console.print(f"\n{escape(clean_text(why))}", style="red", highlight=False)
    if again := resume(report):
        console.print(f"To go on with it:\n    $ {escape(again)}", highlight=False, soft_wrap=True)


def bisected(report: RunReport, console: Console) -> None:
    """The patch that a bisection found, what it changes, what was seen before and after it, and what shows it again."""
    found = report.bisected
    if found is None:
        console.print("The bisection did not get to its end.", style="red")
        _cut_short(report, console)
        return
    colour = "red" if found.bad else "green"
    console.print(f"\n[{colour}]{escape(clean_text(found.answer))}[/{colour}]", highlight=False, soft_wrap=True)
    for patch in found.suspects if len(found.suspects) > 1 else ():
        console.print(f"    {escape(clean_text(patch))}", highlight=False, soft_wrap=True)
    if found.diffstat:
        console.print(escape(clean_text(found.diffstat)), highlight=False, soft_wrap=True)
    for point in filter(None, [found.good, found.bad]):
        job = report.job(found.arch, point)
        result = job.cases[found.case].result
        if result.outcome.green:
            told = f"{result.id}\n    {result.diagnostic}".rstrip()
            where = f"[green]{result.outcome.value}[/green] {job.name}"
            console.print(f"\n{where} {escape(clean_text(told))}", highlight=False, soft_wrap=True)
        else:
            _red(report, result, [job], console, _EVIDENCE)
    for point, why in found.skipped.items():
        console.print(f"could not be tested: {point}: {escape(clean(why))}", highlight=False, soft_wrap=True)
    console.print(f"\n{found.kernels} kernels")
    _cut_short(report, console)


def for_mail(report: RunReport) -> str:
    """What the series did, plain, with what it was tried on. Raises UserError if the run has not both base and last."""
    did = effect.table(report)
    if not did:
        raise UserError(f"{report.directory} does not compare base and last", hint="harness run --points base,last")
    compilers = dict.fromkeys(job.facts.compiler for job in report.jobs.values())
    trees = dict.fromkeys(job.facts.tree for job in report.jobs.values())
    on = "\n".join(f"  {name}" for name in filter(None, [*trees, *compilers]))
    return clean_text(f"{report.series}, before and after:\n\n{did}\n\nTested on\n{on}\n{closing_line(report)}")


def _values(report: RunReport, console: Console) -> None:
    """What was measured: a row for each case, a column for each job, and how base and patched compare."""
    measured = {name: {case.name: case for case in job.results if case.value is not None} for name, job in report.jobs.items()}
    measured = {name: cases for name, cases in measured.items() if cases}
    if not measured:
        return
    table = Table(box=None, pad_edge=False)
    table.add_column("")
    for arch, point in measured:
        table.add_column(f"{arch}/{point}", justify="right")
        if point != BASE and (arch, BASE) in measured:
            table.add_column("of base", justify="right")
    names = dict.fromkeys(case for cases in measured.values() for case in cases)
    for name in names:
        unit = next(cases[name].unit for cases in measured.values() if name in cases)
        row = [f"{name}, {unit}"]
        for (arch, point), cases in measured.items():
            value = cases[name].value if name in cases else None
            row.append("" if value is None else f"{value:.2f}")
            if point != BASE and (arch, BASE) in measured:
                base = measured[arch, BASE].get(name)
                row.append(f"{value / base.value:.2f}" if value is not None and base and base.value else "")
        table.add_row(*map(escape, row))
    console.print()
    console.print(table)


def _red(report: RunReport, result: CaseResult, jobs: Sequence[JobReport], console: Console, lines: int = 0) -> None:
    """With as many `lines` of the log, and where else it is the same."""
    job, *others = jobs
    pointed_out = [line for line in result.log.splitlines()[:1] if line.startswith(POINTED_OUT)]
    diagnostic = "\n    ".join(clean(line) for line in [*result.diagnostic.splitlines(), *pointed_out])
    console.print(
        f"\n[red]{result.outcome.value}[/red] {job.name} {escape(clean(result.id))}\n    {escape(diagnostic)}",
        highlight=False,
        soft_wrap=True,
    )
    if others:
        console.print(f"    and at {', '.join(other.point for other in others)}", highlight=False, soft_wrap=True)
    for line in result.log.splitlines()[:lines]:
        console.print(f"    | {escape(clean(line))}", highlight=False, soft_wrap=True)
    console.print(f"    $ {escape(clean(reproduce(report, job, result, *others)))}", highlight=False, soft_wrap=True)


def closing_line(report: RunReport) -> str:
    """`121 passed, 2 failed, 3 skipped, 4 xfail`, and the reason if the run is incomplete. xfail, flaky and XPASS are left out
    if they are 0."""
    counts = report.count()
    passed, skipped, xfail, flaky = (
        counts.get(outcome, 0) for outcome in (Outcome.PASS, Outcome.SKIP, Outcome.XFAIL, Outcome.FLAKY)
    )
    failed = sum(counts.values()) - passed - skipped - xfail - flaky
    more = {"xfail": xfail, "flaky": flaky, "XPASS": len(report.outlived)}
    words = [f"{passed} passed", f"{failed} failed", f"{skipped} skipped", *(f"{n} {name}" for name, n in more.items() if n)]
    ending = "; the run was cut short" if report.cut_short else "; nothing was tested" if report.unproved else ""
    return f"{', '.join(words)}{ending}"
