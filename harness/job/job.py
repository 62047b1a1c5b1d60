"""The two tasks of a job, one after the other: the kernel is built, then guests test it."""

from __future__ import annotations

from pathlib import Path

from harness import guest, kernel
from harness.arch import Arch
from harness.cache import file_digest
from harness.job import build
from harness.job.context import Built, Context
from harness.job.reporter import Failed, Reporter
from harness.job.testing import Testing
from harness.keys import key
from harness.model import Kernel, Point
from harness.schedule import Kind, Task

_BUILD_MEMORY = 2048
"""MiB: the link of vmlinux and the making of its BTF take the most."""


class Job:
    def __init__(self, context: Context, arch: Arch, point: Point) -> None:
        self._context = context
        self._request = context.request
        self._arch = arch
        self._point = point
        self._reporter = Reporter(context, arch, point)
        (context.before.directory / self._reporter.name).mkdir(parents=True, exist_ok=True)
        if self.finished:
            self._recall()

    @property
    def finished(self) -> bool:
        """Nothing is left to do: it was all done before."""
        return self._reporter.before.finished

    def task(self) -> Task:
        """The whole job: building it, with testing it to follow."""
        return Task(self._reporter.name, Kind.BUILD, _BUILD_MEMORY, self._reporter.expected, self._prepare)

    def _prepare(self) -> list[Task]:
        reporter = self._reporter
        reporter.begin()
        try:
            reporter.properties(**build.properties(self._context, self._point))
            build.report_patches(self._context, self._point, reporter)
            toolchain = kernel.detect(self._arch, self._request.toolchain)
            built = reporter.stage("build", lambda: build.make(self._context, self._arch, self._point, toolchain, reporter))
            if not self._request.selections:
                reporter.end()
                return []
            tests, cache = self._context.tests(self._point), self._context.cache
            initramfs = reporter.stage(
                "initramfs", lambda: guest.build_initramfs(built, tests, self._arch, toolchain.compiler, cache)
            )
            build.check_same(reporter, initramfs=initramfs.digest)
            reporter.properties(initramfs=initramfs.digest)
            return self._guest_tasks(built, initramfs.path)
        except Failed:
            if not reporter.broken:
                reporter.end()
            return []
        finally:
            reporter.idle()

    def _recall(self) -> None:
        """What later jobs need to know of one that is finished. The cache may no longer have its kernel, so the journal tells."""
        before = self._reporter.before
        if built := before.cases.get("build:build"):
            self._context.built[self._arch.name] = Built(self._point, tuple(built.result.log.splitlines()))
        if tested_key := before.properties.get("tested"):
            self._context.tested.setdefault(tested_key, self._reporter.shared)

    def _guest_tasks(self, built: Kernel, initramfs: Path) -> list[Task]:
        testing = Testing(self._context, self._arch, self._point, self._reporter, built, initramfs)
        way = self._reporter.stage("accelerator", lambda: (testing.way(), True))
        where = {"host": way.place.name} if way.place.name else {}
        self._reporter.properties(qemu=way.version, accelerator=way.accelerator.value, **where)
        if self._shares(built, initramfs, way.accelerator.value):
            return []
        return testing.tasks()

    def _shares(self, built: Kernel, initramfs: Path, accelerator: str) -> bool:
        """Whether another job tests the very same, and nothing else is expected of it: then its results are ours."""
        reporter = self._reporter
        said = self._request.series
        promised = {"claims", "bench"} & {one.suite for one in self._request.selections}
        tested_key = key(
            "tested",
            1,
            arch=self._arch.name,
            image=file_digest(built.image),
            initramfs=file_digest(initramfs),
            config=built.config_digest,
            accelerator=accelerator,
            must_run=reporter.must_run,
            expected=(self._point.position, said.claims, said.measures) if promised else (),
            fixed_by=reporter.mended_by,
            attempt=self._point.attempt,
        )
        reporter.properties(tested=tested_key)
        tested = self._context.tested.setdefault(tested_key, reporter.shared)
        if tested is reporter.shared:
            return False
        reporter.properties(results_of=tested.point)
        reporter.say(f"the kernel and the guest are those of {tested.point}: so are the results")
        tested.join(reporter.record, reporter.end)
        return True
