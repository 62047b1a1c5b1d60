"""Every patch of a series on a real kernel, the one that breaks something, and kernels and selftests from elsewhere."""

from __future__ import annotations

import shutil
import tarfile
from pathlib import Path

import pytest

from harness import tree
from harness.cache import Cache
from harness.guest.initramfs import SELFTESTS
from harness.model import Kernel, Outcome
from harness.results import JobReport, RunReport, read_run
from harness.results.effect import Effect, changes
from tests import fake, surroundings
from tests.integration.conftest import harness

# Kernels of a series of its own, at seven points, and of the tree without one.
slow = pytest.mark.slow

ARCH = "x86_64"
CASE = "grep ^Linux /proc/version"
VERSION = "fs/proc/version.c"


@pytest.fixture(scope="module")
def source() -> tree.Store:
    """The store, with the tree that is the default."""
    cache = Cache(surroundings.cache_folder())
    with cache.opened():
        tree.resolve(tree.default_spec(()), cache)
    return tree.Store(cache)


@pytest.fixture(scope="module")
def series(tmp_path_factory: pytest.TempPathFactory, source: tree.Store) -> Path:
    """Six patches: for the reader, for another architecture, without effect, one that breaks something, one that warns."""
    folder = tmp_path_factory.mktemp("points")
    commit = tree.resolve(tree.default_spec(()), source.cache).commit
    work = folder / "linux"
    texts = {
        name: source.read_file(commit, name) for name in (VERSION, "Documentation/trace/fprobe.rst", "arch/s390/kernel/ftrace.c")
    }
    for name, text in texts.items():
        (work / name).parent.mkdir(parents=True, exist_ok=True)
        (work / name).write_text(text)
    fake.git(work, "init", "--quiet", "--initial-branch=main")
    fake.git(work, "add", "--all")
    fake.git(work, "commit", "--quiet", "--message=base")
    header = "#include <linux/utsname.h>\n"
    warns = "static void nobody_calls_it(void)\n{\n}\n\n"
    version = [
        texts[VERSION].replace(header, f"{header.rstrip()} /* What uname tells. */\n"),  # where no line number changes
        texts[VERSION].replace(
            "seq_printf(m, linux_proc_banner", 'seq_puts(m, "Minix, not ");\n\tseq_printf(m, linux_proc_banner'
        ),
    ]
    version.append(version[-1].replace("static int version_proc_show", f"{warns}static int version_proc_show"))
    for name, text in (
        ("Documentation/trace/fprobe.rst", texts["Documentation/trace/fprobe.rst"] + "\nMore.\n"),
        ("arch/s390/kernel/ftrace.c", texts["arch/s390/kernel/ftrace.c"] + "\n/* The end. */\n"),
        *((VERSION, text) for text in version),
        ("Documentation/trace/fprobe.rst", texts["Documentation/trace/fprobe.rst"]),
    ):
        (work / name).write_text(text)
        fake.git(work, "commit", "--quiet", "--all", f"--message={name}: change it")
    fake.git(work, "format-patch", "--quiet", "--full-index", "-o", str(folder / "six"), "HEAD~6..HEAD")
    (folder / "six" / "series").write_text("".join(f"{path.name}\n" for path in sorted((folder / "six").glob("*.patch"))))
    return folder / "six"


@pytest.fixture(scope="module")
def every_patch(series: Path, tmp_path_factory: pytest.TempPathFactory) -> RunReport:
    folder = tmp_path_factory.mktemp("per-patch")
    done = harness("run", "--series", series, "--arch", ARCH, "--per-patch", "--suite", "none", "--cmd", CASE, cwd=folder)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "What the series did:" in done.stdout
    return read_run(folder / "runs" / "latest")


def red(job: JobReport) -> set[str]:
    return {result.id for result in job.results if not result.outcome.green}


@slow
def test_each_point_is_built_booted_and_judged(every_patch: RunReport) -> None:
    jobs = {point: job for (_, point), job in every_patch.jobs.items()}
    assert list(jobs) == ["base", "0001", "0002", "0003", "0004", "0005", "last"]
    # What the kernel is not built from makes no new kernel, and what changes nothing in it makes the same one, to the byte.
    assert [jobs[point].properties.get("results_of") for point in jobs] == [None, "base", "base", "base", None, "0004", "0004"]
    for point in ("base", "0001", "0002", "0003"):
        assert not red(jobs[point])
    for point in ("0004", "0005", "last"):
        assert red(jobs[point]) - {"build:warnings"} == {f"command:{CASE}"}
    assert [point for point in jobs if "build:warnings" in red(jobs[point])] == ["0005"]
    assert "nobody_calls_it" in jobs["0005"].cases["build:warnings"].result.diagnostic


@slow
def test_what_the_series_did_names_the_patch(every_patch: RunReport) -> None:
    (change,) = (one for one in changes(every_patch) if one.case == f"command:{CASE}")
    assert (change.effect, change.patch[:4]) == (Effect.BROKEN, "0004")


@slow
def test_bisection(series: Path, every_patch: RunReport, tmp_path: Path) -> None:
    """Its kernels are those of the run above."""
    done = harness("bisect", "--series", series, "--arch", ARCH, "--case", f"command:{CASE}", "--repeat", "2", cwd=tmp_path)
    assert done.returncode == 1, done.stdout + done.stderr
    found = read_run(tmp_path / "runs" / "latest").bisected
    assert found
    assert (found.good, found.bad, [name[:4] for name in found.suspects]) == ("0003-2", "0004", ["0004"])
    assert found.kernels <= 5
    assert f"turns command:{CASE} red" in done.stdout
    assert f"--points 0004 --cmd '{CASE}'" in done.stdout
    again = harness("report", "runs/latest", cwd=tmp_path)
    assert (again.returncode, f"turns command:{CASE} red" in again.stdout) == (1, True)


@pytest.fixture(scope="module")
def built(every_patch: RunReport) -> Kernel:
    found = Cache(surroundings.cache_folder()).read_record("kernels", every_patch.job(ARCH, "base").properties["kernel"], Kernel)
    assert found
    return found


@slow
def test_kernel_from_elsewhere(built: Kernel, tmp_path: Path) -> None:
    image = tmp_path / f"vmlinuz-{built.release}"
    shutil.copyfile(built.image, image)
    shutil.copyfile(built.config, tmp_path / f"config-{built.release}")
    given = ("--kernel", image, "--modules", built.modules)
    done = harness("run", *given, "--arch", ARCH, "--suite", "kunit", "--suite", "samples", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    (job,) = read_run(tmp_path / "runs" / "latest").jobs.values()
    outcomes = {result.id: result.outcome for result in job.results}
    assert outcomes["samples:fprobe_example/one symbol"] is Outcome.PASS
    assert not any(name.startswith(("apply:", "build:", "config:")) for name in outcomes)
    assert job.properties["release"] == built.release
    # Whoever says that a series is in it has it judged by that.
    done = harness("run", *given, "--arch", ARCH, "--series", "fprobe-on-fgraph", "--suite", "claims:04*", cwd=tmp_path)
    assert done.returncode == 1
    assert "with the series" in done.stdout
    assert "--points" not in done.stdout


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["--kernel", "nowhere"], "no kernel at nowhere"),
        (["--modules", "."], "--modules without --kernel"),
        (["--kernel", "vmlinuz", "--per-patch"], "one kernel"),
        (["--kernel", "vmlinuz"], "no configuration of"),
        (["--kernel", "vmlinuz", "--modules", "."], "holds no modules"),
        (["--kernel", "odd.deb"], "cannot be unpacked"),
    ],
)
def test_kernel_that_is_none(arguments: list[str], why: str, tmp_path: Path) -> None:
    for name in ("vmlinuz", "odd.deb"):
        (tmp_path / name).write_bytes(b"no kernel at all")
    done = harness("run", *arguments, "--arch", ARCH, "--suite", "none", cwd=tmp_path)
    assert done.returncode == 2, done.stdout + done.stderr
    assert why in done.stdout + done.stderr


@slow
def test_selftests_from_elsewhere(source: tree.Store, tmp_path: Path) -> None:
    """A newer tree has a test for what this kernel lacks, and one that does not even ask whether it is there."""
    commit = tree.resolve(tree.default_spec(()), source.cache).commit
    work = tmp_path / "linux-6.99.1"
    source.archive(commit, SELFTESTS, work / SELFTESTS)
    (work / "Makefile").write_text("VERSION = 6\nPATCHLEVEL = 99\nSUBLEVEL = 1\nEXTRAVERSION =\n")
    (work / "Kconfig").write_text("")
    tests = work / SELFTESTS / "test.d" / "00basic"
    head = "#!/bin/sh\n# description: newer\n"
    (tests / "asks.tc").write_text(f"{head}# requires: what_nobody_has\nexit_fail\n")
    (tests / "just_tries.tc").write_text(f"{head}cat what_nobody_has\n")
    with tarfile.open(tmp_path / "newer.tar.gz", "w:gz") as tar:
        tar.add(work, work.name)
    wanted = [word for name in ("asks", "just_tries", "basic1") for word in ("--suite", f"ftracetest:00basic/{name}.tc")]
    newer = f"tarball:{tmp_path}/newer.tar.gz"
    done = harness("run", "--series", "none", "--arch", ARCH, "--selftests", newer, *wanted, cwd=tmp_path)
    assert done.returncode == 1, done.stdout + done.stderr
    (job,) = read_run(tmp_path / "runs" / "latest").jobs.values()
    results = {result.name: result for result in job.results if result.suite == "ftracetest"}
    assert {name: result.outcome for name, result in results.items()} == {
        "00basic/asks.tc": Outcome.SKIP,
        "00basic/just_tries.tc": Outcome.FAIL,
        "00basic/basic1.tc": Outcome.PASS,
    }
    assert results["00basic/just_tries.tc"].diagnostic.endswith("the kernel's own tree has no such test")
