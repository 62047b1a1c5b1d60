"""Whole runs, from series to junit.xml, as a user starts them."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from junitparser import JUnitXml

from harness.arch import load
from harness.cache import Cache
from harness.kernel import fragments_for
from harness.kernel.kconfig import read_fragment
from harness.model import CaseResult, Outcome
from harness.paths import PATCHES
from harness.results import read_run
from tests import fake, surroundings
from tests.conftest import default_signals, survivors
from tests.integration.conftest import ARCHS, harness

SUITES = ("--suite", "kunit", "--suite", "samples")


@pytest.mark.parametrize("arch", ARCHS)
def test_bundled_series(arch: str, tmp_path: Path) -> None:
    done = harness("run", "--arch", arch, *SUITES, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    directory = tmp_path / "runs" / "latest"
    for name in ("run.toml", "journal.jsonl", "junit.xml", "report.html"):
        assert (directory / name).stat().st_size
    for name in ("build.log", ".config", "console.log", "qemu.cmd"):
        assert (directory / arch / "last" / name).stat().st_size
    suites = {suite.name: suite for suite in JUnitXml.fromfile(str(directory / "junit.xml"))}
    # A guest whose machine went wrong is started again, and `boot` says so.
    assert {name.rsplit(".", 1)[1] for name in suites} - {"boot"} == {"apply", "config", "build", "kunit", "samples"}
    assert all(suite.failures == suite.errors == 0 for suite in suites.values())
    assert f"fprobe-on-fgraph.last.{arch}.kunit" in suites
    assert "passed, 0 failed" in done.stdout
    assert harness("report", "runs/latest", cwd=tmp_path).returncode == 0


def test_bundled_series_has_an_answer_to_checkpatch(tmp_path: Path) -> None:
    done = harness("series", "check", "fprobe-on-fgraph", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow  # a kernel without the series
def test_claims_and_costs_with_and_without_the_series(tmp_path: Path) -> None:
    suites = ("--suite", "claims", "--suite", "bench")
    done = harness("run", "--arch", "x86_64", "--points", "base,last", *suites, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    base, last = ({one.id: one for one in job.results} for job in read_run(tmp_path / "runs" / "latest").jobs.values())

    def measured(cases: dict[str, CaseResult]) -> set[str]:
        return {name for name, one in cases.items() if one.suite in ("claims", "bench")}

    assert measured(base) == measured(last)
    for cases, which in ((base, "without"), (last, "with")):
        passed = [one for one in cases.values() if one.suite == "claims" and one.outcome is Outcome.PASS]
        assert passed
        assert all(f" {which} the series; base: " in one.diagnostic for one in passed)
    # Counted instructions: what takes several handlers costs more than one, and one more than none.
    costs = {name: last[f"bench:{name}"].value or 0 for name in ("no probe", "entry", "exit", "8 entries and exits")}
    assert sorted(costs, key=lambda name: costs[name]) == list(costs)
    assert "bench" in done.stdout
    assert "of base" in done.stdout


def test_symbol_that_vanishes_ends_the_job_red(tmp_path: Path) -> None:
    fragment = tmp_path / "impossible.config"
    fragment.write_text("CONFIG_FPROBE=y\n")
    done = harness("run", "--series", "none", "--arch", "arm64", "--config", fragment, *SUITES, cwd=tmp_path)
    assert done.returncode == 1
    assert "CONFIG_FPROBE=y did not stick (impossible.config:1)" in done.stdout
    assert "DYNAMIC_FTRACE_WITH_REGS" in done.stdout
    assert [result.id for result in read_run(tmp_path / "runs" / "latest").results] == ["config:config"]


def test_patch_that_does_not_apply_is_a_red_case(tmp_path: Path) -> None:
    series = fake.series(tmp_path / "elsewhere", {"main.c": "int first;\n"})
    done = harness("run", "--series", series, "--arch", "x86_64", *SUITES, cwd=tmp_path)
    assert done.returncode == 1
    (case,) = read_run(tmp_path / "runs" / "latest").results
    assert (case.suite, case.outcome) == ("apply", Outcome.FAIL)
    assert "main.c" in case.diagnostic


def test_case_that_takes_the_guest_along_costs_only_itself(tmp_path: Path) -> None:
    """The bundled series and a patch with selftests that misbehave."""
    patch = tmp_path / "s"
    shutil.copytree(PATCHES / "fprobe-on-fgraph", patch)
    with (patch / "series").open("a") as listed:
        listed.write("9999-panic.patch\n")
    folder = "tools/testing/selftests/ftrace/test.d/00basic"
    files = {
        "harness-a-panics.tc": "echo c > /proc/sysrq-trigger; sleep 100",
        "harness-b-warns.tc": "echo 'WARNING: CPU: 0 PID: 1 at made/up.c:1 made_up+0x1/0x2' > /dev/kmsg",
        "harness-c-loses-its-status.tc": "kill -9 $PPID; kill -9 $$",
        "harness-d-passes.tc": "true",
    }
    mail = ["From 0000000000000000000000000000000000000000 Mon Sep 17 00:00:00 2001", "From: T <t@localhost>"]
    mail += ["Date: Sat, 1 Jan 2000 00:00:00 +0000", "Subject: [PATCH] tests that misbehave", "", "On purpose.", "---"]
    for name, body in files.items():
        content = ["#!/bin/sh", f"# description: {name}", body]
        mail += [f"diff --git a/{folder}/{name} b/{folder}/{name}", "new file mode 100644", "index 000000000000..111111111111"]
        mail += ["--- /dev/null", f"+++ b/{folder}/{name}", f"@@ -0,0 +1,{len(content)} @@", *(f"+{line}" for line in content)]
    (patch / "9999-panic.patch").write_text("\n".join(mail) + "\n--\n2.0\n")
    done = harness("run", "--series", patch, "--arch", "x86_64", "--suite", "ftracetest:00basic/harness-*", cwd=tmp_path)
    assert done.returncode == 1, done.stdout + done.stderr
    report = read_run(tmp_path / "runs" / "latest")
    outcomes = {result.name.split("-")[1]: result.outcome for result in report.results if result.suite == "ftracetest"}
    assert outcomes == {"a": Outcome.CRASH, "b": Outcome.CRASH, "c": Outcome.LOST, "d": Outcome.PASS}
    consoles = (tmp_path / "runs" / "latest" / "x86_64" / "last").glob("console*.log")
    boots = sum(console.read_text(errors="replace").count("] Linux version ") for console in consoles)
    assert boots >= 3, "what panicked and what warned each cost their guest"
    # Tests do not change the kernel: none was built.
    assert "in the cache" in done.stderr


def test_run_beside_one_that_builds_does_not_wait_for_a_cached_kernel(tmp_path: Path) -> None:
    cache = Cache(surroundings.cache_folder())
    with cache.opened():
        cache.start_building()
        words = ("run", "--arch", "x86_64", "--suite", "kunit", "--wait")
        done = harness(*words, cwd=tmp_path)
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    "number", [signal.SIGINT, *(pytest.param(number, marks=pytest.mark.slow) for number in (signal.SIGTERM, signal.SIGHUP))]
)
def test_run_that_is_ended_keeps_what_it_knows(number: signal.Signals, tmp_path: Path) -> None:
    words = [sys.executable, "-m", "harness", "run", "--suite", "ftracetest", *(f"--arch={arch}" for arch in ARCHS)]
    with subprocess.Popen(
        words, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, preexec_fn=default_signals
    ) as run:
        assert run.stdout is not None
        journal = tmp_path / "runs" / "latest" / "journal.jsonl"
        # A case of it: the arguments of the run, in its first line, name the suite as well.
        while not journal.exists() or b'"suite":"ftracetest"' not in journal.read_bytes():
            assert run.poll() is None
            time.sleep(0.1)
        guests = psutil.Process(run.pid).children(recursive=True)
        assert [one for one in guests if one.name().startswith("qemu-system")]
        start = time.monotonic()
        run.send_signal(number)
        said, _ = run.communicate()
    assert run.returncode == 130, said
    print(f"{time.monotonic() - start:.1f} s from the signal to the end")
    assert "interrupted" in said
    report = read_run(tmp_path / "runs" / "latest")
    assert report.finished is not None
    assert report.finished.exit_code == 130
    assert "ftracetest" in {result.suite for result in report.results}
    # Guests that were ended here are no failure of the kernel; that their jobs did not end is an error of the run.
    assert all(result.outcome.green for result in report.results if result.suite != "job")
    assert {result.outcome for result in report.results if result.suite == "job"} == {Outcome.ERROR}
    assert (tmp_path / "runs" / "latest" / "junit.xml").exists()
    assert not survivors(guests)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a small disk")
@pytest.mark.parametrize("kilobytes", [64, 512, 2048])
def test_full_disk_is_the_machines_fault(kilobytes: int, tmp_path: Path) -> None:
    """Whatever stage fills it: exit code 3, no traceback, and a run directory that can be read."""
    content = "".join(f"{number} {'x' * 80}\n" for number in range(12000))
    repository = fake.repository(tmp_path / "linux")
    (repository / "main.c").write_text(content)
    # With every symbol that is asked for, the fake kernel gets as far as its compiler.
    asked = {request.symbol for path in fragments_for(load("x86_64"), []) for request in read_fragment(path, "x86_64")}
    (repository / "Kconfig").write_text("".join(f"config {symbol}\n" for symbol in sorted(asked)))
    fake.git(repository, "commit", "--quiet", "--all", "--message=large")
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={kilobytes}k", "tmpfs", disk], check=True)
    try:
        arguments = ("--series", "none", "--tree", f"git:{repository}#main", "--arch", "x86_64", "--cache", disk / "cache")
        done = harness("run", *arguments, cwd=tmp_path)
    finally:
        subprocess.run(["umount", disk], check=True)
    assert done.returncode == 3, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    assert harness("report", cwd=tmp_path).returncode == 3
