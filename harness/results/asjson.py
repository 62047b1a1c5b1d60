"""Reports for machines."""

from __future__ import annotations

from collections.abc import Iterable

from harness.logs.splat import Splat
from harness.model import to_json
from harness.results import effect
from harness.results.journal import RunReport


def run_json(report: RunReport) -> str:
    """`{"series","tree","exit_code","jobs":[{"arch","point","properties","cases":[...]}],"summary":{outcome: count}}`, with
    `changes` (what the series did, from base to last) and `bisected` where there are."""
    return to_json(
        {
            "series": report.series,
            "tree": report.started.tree if report.started else "",
            "exit_code": report.finished.exit_code if report.finished else None,
            "jobs": [
                {"arch": job.arch, "point": job.point, "properties": job.properties, "cases": job.results}
                for job in report.jobs.values()
            ],
            "changes": [
                {"arch": one.arch, "case": one.case, "effect": one.effect, "patch": one.patch} for one in effect.changes(report)
            ],
            "bisected": report.bisected,
            "summary": report.count(),
        }
    ).decode()


def splats_json(splats: Iterable[Splat]) -> str:
    """`{"splats":[{"kind","title","function","line"}]}`."""
    fields = ("kind", "title", "function", "line")
    return to_json({"splats": [{name: getattr(splat, name) for name in fields} for splat in splats]}).decode()
