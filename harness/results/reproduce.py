"""The commands that show something again."""

from __future__ import annotations

import glob
import shlex

from harness.model import BUILT, JOB, WARNINGS, CaseResult, Outcome
from harness.options import BUILD, OPTIONS, RUN, RunOptions, compose, read
from harness.results.journal import JobReport, RunReport

STAGES = (*BUILT, "initramfs", "accelerator", "guest", "retry", "worker", JOB)
"""What is reported like a suite, but cannot be asked for."""


def reproduce(report: RunReport, job: JobReport, result: CaseResult, *others: JobReport) -> str:
    """One command that runs this case again: the run's own, narrowed to the case, of this job and of others of its
    architecture."""
    line = read(report.started.arguments if report.started else ())
    prebuilt = bool(line.values("kernel_image"))
    command = BUILD if result.suite in BUILT and not prebuilt else RUN
    points = None
    if not prebuilt:
        numbers = [one.point.partition("-")[0] for one in (job, *others)]
        points = ",".join(dict.fromkeys([*_compared(report, job, result), *numbers]))
    suites, commands = _selected(job, result)
    narrowed = RunOptions(archs=(job.arch,), points=points, suite_specs=suites, commands=commands)
    return shlex.join(["harness", *line.repeated(command, narrowed).words])


def _selected(job: JobReport, result: CaseResult) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What `--suite` and `--cmd` are for this case."""
    if result.suite == "boot":
        # KUnit runs during the boot, and what it prints is part of what the boot shows.
        kunit = any(one.suite == "kunit" for one in job.results)
        return ("boot", "kunit") if kunit else ("boot",), ()
    if result.suite == "command":
        return (), (result.name,)
    if result.suite in BUILT:
        return ("none",), ()
    if result.suite in STAGES:
        return (), ()
    return (f"{result.suite}:{glob.escape(result.name)}",), ()


def _compared(report: RunReport, job: JobReport, result: CaseResult) -> list[str]:
    """The point that the case is about as well: what is new is new since then."""
    points = [point for arch, point in report.jobs if arch == job.arch]
    return points[: points.index(job.point)][-1:] if result.id == WARNINGS else []


def resume(report: RunReport) -> str:
    """The command that resumes an interrupted run; empty for a run that was not interrupted."""
    command = read(report.started.arguments if report.started else ()).command
    resumable = command in OPTIONS["unfinished"].commands
    if not resumable or not (report.cut_short or Outcome.ERROR in report.count()):
        return ""
    options = RunOptions(unfinished=report.directory)
    return shlex.join(["harness", *compose(command, options).words])
