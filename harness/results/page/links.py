"""Where on the page, and on its consoles, a case is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from harness.model import CaseResult, label_of
from harness.results.journal import JobReport, RunReport
from harness.results.page.consoles import Log

Key = tuple[str, str]
"""Architecture and point."""


class Links:
    """Of a run, with the logs of its jobs."""

    def __init__(self, report: RunReport, logs: Mapping[Key, Iterable[Log]]) -> None:
        self._consoles: dict[tuple[Key, str], list[str]] = {}
        self._reds: dict[tuple[Key, str], str] = {}
        for (arch, point), job in report.jobs.items():
            # One that was not tested, because another one is the same, has its consoles there.
            leader = (arch, job.facts.results_of or point)
            for log in logs.get(leader, ()):
                for label, anchor in log.anchors():
                    self._consoles.setdefault(((arch, point), label), []).append(anchor)

    def consoles(self, job: JobReport, result: CaseResult) -> list[str]:
        """The anchors of its lines. What is judged by the boot is where the boot is."""
        if found := self._consoles.get((job.key, label_of(result.id))):
            return found
        return self._consoles.get((job.key, ""), [])[:1] if result.suite in ("boot", "kunit") else []

    def note_red(self, job: JobReport, case: str, anchor: str) -> None:
        self._reds[job.key, case] = anchor

    def red(self, key: Key, case: str) -> str:
        """The anchor of its evidence, if it is red; empty if it is not."""
        return self._reds.get((key, case), "")

    def best(self, job: JobReport, result: CaseResult) -> str:
        """What tells most of it; empty if there is nothing."""
        return self.red(job.key, result.id) or next(iter(self.consoles(job, result)), "")
