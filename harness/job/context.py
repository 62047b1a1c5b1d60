"""What the jobs of a run share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from msgspec import Struct

from harness.cache import Cache
from harness.hosts import Fleet
from harness.job.shared import Shared
from harness.kernel import Jobserver
from harness.model import AppliedSeries, Point, Tree
from harness.progress import Progress
from harness.request import Request
from harness.results import Journal, RunReport
from harness.tree import Store

if TYPE_CHECKING:
    from harness.cluster.dask import Cluster


class Built(Struct, frozen=True):
    point: Point
    warnings: tuple[str, ...]
    """Of the compiler."""


class Context(Struct, frozen=True):
    request: Request
    cache: Cache
    tree: Tree
    applied: AppliedSeries
    before: RunReport
    """What its journal holds already, if it is taken up again."""
    events: Journal
    progress: Progress
    jobserver: Jobserver
    selftests: Tree
    """Whose ftrace selftests run."""
    fleet: Fleet
    """Where guests run."""
    cluster: Cluster | None
    """Whose workers do the jobs, if not we."""
    news: Mapping[int, slice]
    """For each point, the patches that it has and the run's point before it has not."""
    built: dict[str, Built] = {}
    """The newest kernel of each architecture that we built."""
    tested: dict[str, Shared] = {}
    """What is told of kernels, by all that it depends on."""

    @property
    def store(self) -> Store:
        return Store(self.cache)

    def tests(self, point: Point) -> str:
        """The commit whose selftests run. Those of the tree that the kernel is from change with the series."""
        return self.selftests.commit if self.request.options.selftests else point.commit
