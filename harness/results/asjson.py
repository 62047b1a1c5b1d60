"""Reports for machines. Their shape is in docs/report.schema.json."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec
from msgspec import Struct

from harness.logs.splat import Splat
from harness.model import CaseResult, Outcome, to_json
from harness.results import effect
from harness.results.effect import Effect
from harness.results.journal import Bisected, Compared, KnownPassed, RunReport


class JobJson(Struct, frozen=True):
    """One architecture at one point of the series."""

    arch: str
    point: str
    """`base`, `last`, or how many patches are in it: NNNN."""
    properties: dict[str, str]
    """Of its kernel and guest: release, compiler, base, commit, patch..."""
    cases: list[CaseResult]
    known_passed: list[KnownPassed]
    """XPASS: known failures that passed."""
    finished: bool
    """False if the job did not end: then it has an error, either that of the failure or one of the suite `job`."""


class ChangeJson(Struct, frozen=True):
    """What became of a case from base to last."""

    arch: str
    case: str
    """`suite:name`"""
    effect: Effect
    patch: str
    """By which, if points between were tested."""


class ReportJson(Struct, frozen=True):
    """A run."""

    series: str
    tree: str
    exit_code: int | None
    """None if it was killed."""
    jobs: list[JobJson]
    changes: list[ChangeJson]
    """Empty unless both base and last were tested."""
    bisected: Bisected | None
    compared: Compared | None
    """With earlier runs that were asked for the same; None if there was none."""
    summary: dict[Outcome, int]
    xpass: int
    """Known failures that passed, each counted once."""
    unproved: str
    """The reason why the run proves nothing although no case is red; empty if it proves something."""


def run_json(report: RunReport) -> str:
    return to_json(
        ReportJson(
            series=report.series,
            tree=report.started.tree if report.started else "",
            exit_code=report.exit_code,
            jobs=[
                JobJson(*job.key, job.properties, job.results, list(job.outlived.values()), job.finished)
                for job in report.jobs.values()
            ],
            changes=[ChangeJson(one.arch, one.case, one.effect, one.patch) for one in effect.changes(report)],
            bisected=report.bisected,
            compared=report.compared,
            summary=report.count(),
            xpass=len(report.outlived),
            unproved=report.unproved,
        )
    ).decode()


def schema() -> dict[str, Any]:
    """Of what `run_json` gives, as JSON Schema."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **msgspec.json.schema(ReportJson)}


def splats_json(splats: Iterable[Splat], gaps: int) -> str:
    """`{"splats":[{"kind","title","function","line","fatal","sequels"}],"gaps"}`. `gaps` is how often the kernel dropped
    messages."""
    fields = ("kind", "title", "function", "line", "fatal", "sequels")
    return to_json({"splats": [{name: getattr(splat, name) for name in fields} for splat in splats], "gaps": gaps}).decode()
