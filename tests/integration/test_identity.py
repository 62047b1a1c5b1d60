"""The kernel that boots is the one that was built: kernels that differ in one byte of a constant, and in no size."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from harness import tree
from harness.cache import Cache
from harness.model import Kernel, Outcome
from harness.results import RunReport, read_run
from tests import fake, surroundings
from tests.daskd import Daskd
from tests.integration.conftest import harness

ARCHS = ("x86_64", "arm64", "riscv64", "s390x", "loongarch64", "ppc64le")
VERSION = "fs/proc/version.c"
SHOW = "cat /proc/version"
CASE = "grep -q 'answer [12]' /proc/version"
POINTS = {"0001": 1, "0002": 2, "last": 3}

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def series(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three patches: one that prints a constant, and two that change it."""
    cache = Cache(surroundings.cache_folder())
    with cache.opened():
        commit = tree.resolve(tree.default_spec(()), cache).commit
    text = tree.Store(cache).read_file(commit, VERSION)
    work = tmp_path_factory.mktemp("answers") / "linux"
    (work / VERSION).parent.mkdir(parents=True)
    (work / VERSION).write_text(text)
    fake.git(work, "init", "--quiet", "--initial-branch=main")
    fake.git(work, "add", "--all")
    fake.git(work, "commit", "--quiet", "--message=base")
    printed = "seq_printf(m, linux_proc_banner"
    for number in POINTS.values():
        changed = text.replace(printed, f'seq_printf(m, "answer %d, ", {number});\n\t{printed}')
        assert changed != text
        (work / VERSION).write_text(changed)
        fake.git(work, "commit", "--quiet", "--all", f"--message=proc: answer {number}")
    folder = work.parent / "answers"
    fake.git(work, "format-patch", "--quiet", "--full-index", "-o", str(folder), "HEAD~3..HEAD")
    (folder / "series").write_text("".join(f"{path.name}\n" for path in sorted(folder.glob("*.patch"))))
    return folder


def each_is_its_own(report: RunReport, arch: str) -> list[str]:
    """Every guest ran the kernel of its own point. Returns the digests of the kernels."""
    digests = []
    for point, answer in POINTS.items():
        results = {result.id: result for result in report.job(arch, point).results}
        assert results["boot:identity"].outcome is Outcome.PASS
        assert f"answer {answer}, " in results[f"command:{SHOW}"].log
        digest = report.job(arch, point).properties["kernel"]
        kernel = Cache(surroundings.cache_folder()).read_record("kernels", digest, Kernel)
        assert kernel
        assert kernel.build_ids == (results["boot:identity"].diagnostic,)
        digests.append(digest)
    assert len(set(digests)) == len(POINTS)
    return digests


@pytest.mark.parametrize("arch", ARCHS)
def test_points_that_differ_in_one_byte(series: Path, arch: str, tmp_path: Path) -> None:
    wanted = ("--points", ",".join(POINTS), "--suite", "boot:identity", "--cmd", SHOW)
    done = harness("run", "--series", series, "--arch", arch, *wanted, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    digests = each_is_its_own(read_run(tmp_path / "runs" / "latest"), arch)
    # All images have the same size, so that only their content differs.
    kernels = [Cache(surroundings.cache_folder()).read_record("kernels", digest, Kernel) for digest in digests]
    assert len({kernel.vmlinux.stat().st_size for kernel in kernels if kernel}) == 1
    # Once more, out of the cache.
    done = harness("run", "--series", series, "--arch", arch, *wanted, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert each_is_its_own(read_run(tmp_path / "runs" / "latest"), arch) == digests


def test_one_build_after_another_is_a_clean_build(series: Path, tmp_path: Path) -> None:
    """Each kernel is the same, to the byte of its build id, whatever was built in the folder before it."""
    ids = []
    for points in ("0001,0002,last", "last"):
        cache = without_kernels(tmp_path / points.replace(",", "-"))
        words = ("run", "--series", series, "--arch", "x86_64", "--points", points, "--suite", "boot:identity")
        done = harness(*words, cwd=tmp_path, env={"HARNESS_CACHE": str(cache)})
        assert done.returncode == 0, done.stdout + done.stderr
        job = read_run(tmp_path / "runs" / "latest").job("x86_64", "last")
        ids.append(job.cases["boot:identity"].result.diagnostic)
    assert ids[0] == ids[1]


def test_every_patch_and_the_one_that_changes_a_byte(series: Path, tmp_path: Path) -> None:
    words = ("--series", series, "--arch", "x86_64")
    done = harness("run", *words, "--per-patch", "--suite", "boot:identity", "--cmd", SHOW, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    each_is_its_own(read_run(tmp_path / "runs" / "latest"), "x86_64")
    done = harness("bisect", *words, "--good", "1", "--case", f"command:{CASE}", cwd=tmp_path)
    assert done.returncode == 1, done.stdout + done.stderr
    found = read_run(tmp_path / "runs" / "latest").bisected
    assert found
    assert [name[:4] for name in found.suspects] == ["0003"]


def without_kernels(cache: Path) -> Path:
    """A cache that has the sources of the default one, and nothing that is built."""
    cache.mkdir()
    for name in ("downloads", "series"):
        if (surroundings.cache_folder() / name).exists():
            (cache / name).symlink_to(surroundings.cache_folder() / name)
    # A store of its own: two build directories cannot share one work tree.
    fake.git(cache, "clone", "--quiet", "--bare", "--shared", str(surroundings.cache_folder() / "linux.git"), "linux.git")
    ignored = shutil.ignore_patterns("kernels", "initramfs")
    shutil.copytree(surroundings.cache_folder() / "records", cache / "records", ignore=ignored)
    return cache


def test_the_shared_cache_and_a_worker(series: Path, tmp_path: Path) -> None:
    wanted = ("--points", ",".join(POINTS), "--suite", "boot:identity", "--cmd", SHOW)
    words = ("run", "--series", series, "--arch", "x86_64", *wanted)
    (tmp_path / "shared").mkdir()
    shared = {"HARNESS_SHARED_CACHE": str(tmp_path / "shared")}
    done = harness(*words, cwd=tmp_path, env=shared)
    assert done.returncode == 0, done.stdout + done.stderr
    one = each_is_its_own(read_run(tmp_path / "runs" / "latest"), "x86_64")
    other = {**shared, "HARNESS_CACHE": str(without_kernels(tmp_path / "other"))}
    done = harness(*words, cwd=tmp_path, env=other)
    assert done.returncode == 0, done.stdout + done.stderr
    report = read_run(tmp_path / "runs" / "latest")
    assert each_is_its_own(report, "x86_64") == one
    assert all(job.stages["build"].cached for job in report.jobs.values())
    folder = tmp_path / "dask"
    folder.mkdir()
    cluster = Daskd(folder)
    try:
        cluster.worker("x86_64", HARNESS_CACHE=str(without_kernels(tmp_path / "worker")))
        done = harness(*words, "--executor", f"dask:{cluster.address}", cwd=tmp_path)
    finally:
        cluster.stop()
    assert done.returncode == 0, done.stdout + done.stderr
    assert each_is_its_own(read_run(tmp_path / "runs" / "latest"), "x86_64") == one
