"""The commands that show something again."""

from __future__ import annotations

import glob
import shlex

from harness.model import BUILT, JOB, WARNINGS, CaseResult, Outcome
from harness.results.journal import JobReport, RunReport

STAGES = (*BUILT, "initramfs", "accelerator", "guest", "retry", "worker", JOB)
"""What is reported like a suite, but cannot be asked for."""

_OF_A_GUEST = ("--selftests", "--hosts")
"""Options that only a command takes that boots one."""
_NARROWED = ("--arch", "--points", "--suite", "--cmd", "--case", "--repeat", "--good", "--retry-flaky")
_ELSEWHERE = ("--out", "--history", "--executor")
"""What made sense where the run was."""
_RESUMABLE = ("run", "bisect")
_FLAGS = ("--per-patch",)


def reproduce(report: RunReport, job: JobReport, result: CaseResult, *others: JobReport) -> str:
    """One command that runs this case again: the run's own, narrowed to the case, of this job and of others of its
    architecture."""
    given = any(word.partition("=")[0] == "--kernel" for word in (report.started.arguments if report.started else ()))
    build = result.suite in BUILT and not given
    left_out = (*_NARROWED, *_ELSEWHERE, *(_OF_A_GUEST if build else ()))
    command = ["build" if build else "run"]
    words = iter(report.started.arguments[1:] if report.started else ())
    for word in words:
        name, has_value, _ = word.partition("=")
        if name in _FLAGS:
            continue
        if name not in left_out:
            command.append(word)
        elif not has_value:
            next(words, None)
    command += ["--arch", job.arch]
    if not given:
        points = [*_compared(report, job, result), *(one.point.partition("-")[0] for one in (job, *others))]
        command += ["--points", ",".join(dict.fromkeys(points))]
    if result.suite == "boot":
        command += ["--suite", "boot"]
        # It is part of what the boot shows.
        command += ["--suite", "kunit"] if any(one.suite == "kunit" for one in job.results) else []
    elif result.suite == "command":
        command += ["--cmd", result.name]
    elif result.suite in BUILT and not build:
        command += ["--suite", "none"]
    elif result.suite not in STAGES:
        command += ["--suite", f"{result.suite}:{glob.escape(result.name)}"]
    return shlex.join(["harness", *command])


def _compared(report: RunReport, job: JobReport, result: CaseResult) -> list[str]:
    """The point that the case is about as well: what is new is new since then."""
    points = [point for arch, point in report.jobs if arch == job.arch]
    return points[: points.index(job.point)][-1:] if result.id == WARNINGS else []


def resume(report: RunReport) -> str:
    """What goes on with a run that was cut short; empty for one that was not."""
    command = report.started.arguments[0] if report.started and report.started.arguments else ""
    broken = report.cut_short or Outcome.ERROR in report.count()
    return shlex.join(["harness", command, "--resume", str(report.directory)]) if broken and command in _RESUMABLE else ""
