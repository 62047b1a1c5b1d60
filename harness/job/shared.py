"""What guests tell of one kernel, for all jobs whose kernel and guest are the same."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable

from harness.model import CaseResult


class Shared:
    """The job that starts the guests reports; others may join at any time, and hear of everything from the first result on."""

    def __init__(self, point: str, told: Iterable[CaseResult], ended: bool) -> None:
        """`told` and `ended` are from before a run was taken up again."""
        self.point = point
        self._lock = threading.Lock()
        self._told = list(told)
        self._ended = ended
        self._others: list[tuple[Callable[[CaseResult], None], Callable[[], None]]] = []

    def report(self, result: CaseResult) -> None:
        with self._lock:
            self._told.append(result)
            for take, _ in self._others:
                take(result)

    def end(self) -> None:
        with self._lock:
            self._ended = True
            for _, end in self._others:
                end()

    def join(self, take: Callable[[CaseResult], None], end: Callable[[], None]) -> None:
        """Call `take` with each result, and `end` when there will be no more."""
        with self._lock:
            self._others.append((take, end))
            for result in self._told:
                take(result)
            if self._ended:
                end()
