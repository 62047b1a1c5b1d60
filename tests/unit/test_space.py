"""The run says that the disk will not do before it builds."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.cache import contents, sizes
from harness.results import RunReport
from harness.tree import Store
from tests import fake
from tests.unit import test_pipeline
from tests.unit.test_pipeline import ARCH, main, outcomes
from tests.unit.test_two_runs import Bench, bench

__all__ = ["bench"]

HUGE = 1 << 60
"""Bytes that no disk has."""


def test_disk_that_will_not_do_is_reported_before_anything_is_built(bench: Bench) -> None:
    sizes.note(bench.cache, "x86_64", kernel=HUGE, build=0, initramfs=0)
    run = bench.start()
    assert run.status == 3, run.text
    assert f"error: the disk of the cache {bench.cache.root} has " in run.text
    assert "takes 1048576 TB or more (kernels: 1, new build folders: 1)" in run.text
    assert "hint: `harness cache prune --keep-days N` makes room;" in run.text
    assert not bench.compiled
    assert not (bench.cache.root / "work").exists()


def test_kernel_in_the_cache_needs_no_room(bench: Bench) -> None:
    assert bench.start().status == 0
    sizes.note(bench.cache, "x86_64", kernel=HUGE, build=HUGE)
    again = bench.start()
    assert again.status == 0, again.text
    bench.commit("main.c", "int changed;\n")
    assert bench.start().status == 3


def test_build_folder_that_is_there_needs_no_room(bench: Bench) -> None:
    assert bench.start().status == 0
    sizes.note(bench.cache, "x86_64", build=HUGE)
    bench.commit("main.c", "int changed;\n")
    assert bench.start().status == 0


def test_another_architecture_says_nothing(bench: Bench) -> None:
    sizes.note(bench.cache, "x86_64", kernel=HUGE)
    assert bench.start(target="arm64").status == 0


def test_what_a_build_took_is_known(bench: Bench) -> None:
    assert sizes.expect(bench.cache, "x86_64") == sizes.Sizes()
    assert bench.start().status == 0
    known = sizes.expect(bench.cache, "x86_64")
    (kernel,) = (bench.cache.root / "kernels").iterdir()
    assert known.kernel == contents.disk_size(kernel) > 0
    assert known.build == contents.disk_size(bench.cache.root / "work" / "build" / "x86_64-gcc") > 0
    assert known.initramfs is None


def test_size_of_a_tree(bench: Bench) -> None:
    assert bench.start().status == 0
    source = bench.cache.root / "work" / "build" / "source"
    files = [path for path in source.rglob("*") if path.is_file() and path.name != ".git"]
    commit = fake.git(bench.repository, "rev-parse", "HEAD")
    assert Store(bench.cache).size(commit) == sum(contents.disk_size(path) for path in files)


@pytest.fixture
def points(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> test_pipeline.Bench:
    return test_pipeline.Bench(tmp_path, monkeypatch)


def run(bench: test_pipeline.Bench, *changes: dict[str, str]) -> RunReport:
    folder = bench.path / "s"
    directory = folder if folder.exists() else bench.series(*changes)
    return bench.run(bench.parse(directory, per_patch=True))


def test_each_kernel_counts_and_each_only_once(points: test_pipeline.Bench) -> None:
    changes = (main("int one;"), {"Documentation/a.rst": "Read.\n"}, main("int two;"))
    sizes.note(points.cache, ARCH, kernel=HUGE)
    report = run(points, *changes)
    assert report.finished and report.finished.exit_code == 3
    # The documentation changes no kernel.
    assert "(kernels: 3, new build folders: 1)" in report.finished.error
    assert {result.suite for job in report.jobs.values() for result in job.results} == {"job"}
    sizes.note(points.cache, ARCH, kernel=1)
    assert [point for _, point in run(points).jobs] == ["base", "0001", "0002", "last"]


def test_patch_that_does_not_apply_needs_no_room(points: test_pipeline.Bench) -> None:
    directory = points.series(main("int one;"))
    (patch,) = directory.glob("*.patch")
    patch.write_text(patch.read_text().replace("-int main;", "-int elsewhere;"))
    sizes.note(points.cache, ARCH, kernel=HUGE)
    report = points.run(points.parse(directory))
    assert report.finished and report.finished.exit_code == 1
    assert set(outcomes(report, "last")) == {"apply:0001-change-1.patch"}
