"""Whatever goes wrong in a guest, its case says so, and every other case has its own outcome."""

from __future__ import annotations

import difflib
import functools
import os
import shutil
import signal
import threading
import tomllib
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import cast

import msgspec
import psutil
import pytest
from junitparser import JUnitXml
from msgspec import Struct

from harness import series, tree
from harness.arch import load
from harness.cache import Cache
from harness.durations import Durations
from harness.guest import Boot, Guest, Host, build_initramfs, place, started
from harness.kernel import Symbols, detect
from harness.model import CaseResult, Kernel, Outcome
from harness.results import junit, read_run
from harness.suites import QUIET, Selection, Session, Suite, Target
from harness.suites.base import Case
from tests import surroundings
from tests.integration.conftest import harness

HERE = Path(__file__).parent

LKDTM = "lkdtm() { echo $1 >/sys/kernel/debug/provoke-crash/DIRECT; }\n"


class Fault(Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    script: str
    outcome: tuple[Outcome, ...]
    says: str = ""
    seconds: float = 60.0
    host: str = ""


class _File(Struct, frozen=True):
    fault: tuple[Fault, ...]


FAULTS = {fault.name: fault for fault in msgspec.toml.decode((HERE / "faults.toml").read_bytes(), type=_File).fault}


class Faults(Suite):
    """Each of them, and a case after it."""

    name = "faults"

    def plan(self, target: Target) -> list[Case]:
        return [Case((name,), FAULTS[fault].seconds) for fault in FAULTS for name in (fault, f"after {fault}")]

    def run(self, case: Case, guest: Guest, target: Target) -> list[CaseResult]:
        fault = FAULTS.get(case.label)
        if fault and fault.host:
            threading.Timer(0.5, _befall, [signal.Signals[fault.host]]).start()
        script = LKDTM + fault.script if fault else "echo alive | grep alive"
        answer = guest.run(script, case.label, case.seconds if fault else 60.0)
        outcome = Outcome.FAIL if answer.status else Outcome.PASS
        return [CaseResult(self.name, case.label, outcome, answer.seconds, f"status {answer.status}", answer.output)]


def _befall(number: signal.Signals) -> None:
    for child in psutil.Process().children(recursive=True):
        if child.name().startswith("qemu-system"):
            child.send_signal(number)


class Built(Struct, frozen=True):
    """The kernel with the faults, and what starts a guest of it."""

    kernel: Kernel
    boot: Boot
    start: Callable[[Boot, str], AbstractContextManager[Guest]]
    explain: Callable[[str], str]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("faults")


@pytest.fixture(scope="module")
def built(folder: Path) -> Built:
    done = harness("build", "--arch", "x86_64", "--config", HERE / "faults.config", "--out", folder, cwd=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    (job,) = read_run(folder / "latest").jobs.values()
    cache, arch = Cache(surroundings.cache_folder()), load("x86_64")
    kernel = cache.read_record("kernels", job.properties["kernel"], Kernel)
    assert kernel
    toolchain = detect(arch)
    initramfs, _ = build_initramfs(kernel, job.properties["commit"], arch, toolchain.compiler, cache)
    boot = Boot(kernel.image, initramfs.path, QUIET)
    start = functools.partial(
        started, arch, place.HERE.accelerator(arch, boot, cache, "auto"), folder, host=Host(arch, cache, place.HERE.key(arch))
    )
    return Built(kernel, boot, start, Symbols(kernel, toolchain.addr2line).locate)


@pytest.fixture(scope="module")
def results(built: Built, folder: Path) -> dict[str, CaseResult]:
    reported: list[CaseResult] = []
    session = Session(
        [(Faults(), Selection("faults"))],
        cast(Target, None),
        built.boot,
        (),
        built.start,
        Durations(Cache(folder), "none"),
        reported.append,
        explain=built.explain,
    )
    number = session.join()
    assert number == 1
    assert session.run(number)
    (folder / "junit.xml").write_text(junit.render_cases("faults", reported))
    assert len(list(next(iter(JUnitXml.fromfile(str(folder / "junit.xml")))))) == len(reported)
    names = [result.id for result in reported]
    assert len(set(names)) == len(names)
    return {result.id: result for result in reported}


@pytest.mark.slow  # the same kernel
def test_warning_that_a_second_command_trips(built: Built) -> None:
    """refcount_warn_saturate() uses WARN_ONCE(): a guest that is kept must show it again."""
    with built.start(built.boot, "twice") as guest:
        guest.wait_for_agent()
        for label in ("first", "second"):
            assert guest.run(f"{LKDTM}lkdtm REFCOUNT_INC_OVERFLOW", label, 60).status == 0
            assert any("refcount_t: " in splat.text for splat in guest.console.take_splats()), label


def test_enough_of_them() -> None:
    assert len(FAULTS) >= 30
    assert len(tomllib.loads((HERE / "faults.toml").read_text())["fault"]) == len(FAULTS)


@pytest.mark.slow  # a kernel with drivers that misbehave
@pytest.mark.parametrize("name", FAULTS)
def test_fault(name: str, results: dict[str, CaseResult]) -> None:
    fault, result = FAULTS[name], results[f"faults:{name}"]
    told = f"{result.diagnostic}\n{result.log}"
    assert result.outcome in fault.outcome, told
    assert fault.says in told
    after = results[f"faults:after {name}"]
    assert after.outcome is Outcome.PASS, f"{after.diagnostic}\n{after.log}"


@pytest.mark.slow
def test_nothing_else_is_red(results: dict[str, CaseResult]) -> None:
    assert not [one for one in results.values() if one.suite != "faults" and not one.outcome.green]


def test_qemu_that_never_starts(tmp_path: Path) -> None:
    """Not the series' fault: an error, and exit code 3."""
    fake = tmp_path / "bin" / load("x86_64").guest.program
    fake.parent.mkdir()
    fake.write_text(
        '#!/bin/sh\n[ "$1" = --version ] && echo QEMU emulator version 9.2.0 && exit\necho no such machine >&2\nexit 1\n'
    )
    fake.chmod(0o755)
    path = {"PATH": f"{fake.parent}:{os.environ['PATH']}"}
    done = harness("run", "--arch", "x86_64", "--accel", "tcg", "--suite", "samples", cwd=tmp_path, env=path)
    assert done.returncode == 3, done.stdout + done.stderr
    red = [one for one in read_run(tmp_path / "runs" / "latest").results if not one.outcome.green]
    assert {one.outcome for one in red if one.suite == "samples"} == {Outcome.ERROR}
    (error,) = (one for one in red if one.suite == "guest")
    assert (error.outcome, "no such machine" in error.diagnostic) == (Outcome.ERROR, True)


@pytest.mark.slow  # a kernel of its own
def test_patch_that_panics_at_boot(tmp_path: Path) -> None:
    """One red case says why, the rest is lost, and nobody waits for a deadline."""
    cache = Cache(surroundings.cache_folder())
    bundled = series.load("fprobe-on-fgraph")
    source = tree.resolve(tree.default_spec(bundled.tested_on), cache)
    applied = series.apply(bundled, source, cache)
    file = "kernel/trace/fgraph.c"
    before = tree.Store(cache).read_file(applied.tip, file)
    after = f'{before}\nstatic int __init on_purpose(void)\n{{\n\tpanic("on purpose");\n}}\nlate_initcall(on_purpose);\n'
    diff = "".join(difflib.unified_diff(before.splitlines(True), after.splitlines(True), f"a/{file}", f"b/{file}"))
    folder = tmp_path / "panics"
    shutil.copytree(bundled.patches[0].path.parent, folder)
    (folder / "9999-panic.patch").write_text(
        "From 0000000000000000000000000000000000000000 Mon Sep 17 00:00:00 2001\nFrom: T <t@localhost>\n"
        f"Date: Sat, 1 Jan 2000 00:00:00 +0000\nSubject: [PATCH] panic\n\nOn purpose.\n---\n{diff}--\n2.0\n"
    )
    with (folder / "series").open("a") as listed:
        listed.write("9999-panic.patch\n")
    done = harness("run", "--series", folder, "--arch", "x86_64", "--suite", "kunit", "--suite", "samples", cwd=tmp_path)
    assert done.returncode == 1, done.stdout + done.stderr
    red = [one for one in read_run(tmp_path / "runs" / "latest").results if not one.outcome.green]
    # One for each guest that was started before the first one was seen to die.
    boots = [one for one in red if one.suite == "boot"]
    assert "agent" in {boot.name for boot in boots}
    assert len(boots) <= (os.cpu_count() or 1)
    for boot in boots:
        assert (boot.outcome, boot.diagnostic) == (Outcome.CRASH, "Kernel panic - not syncing: on purpose")
        assert f"first in the series' own files: {file}:" in boot.log
    lost = [one for one in red if one.suite in ("kunit", "samples")]
    assert {one.outcome for one in lost} == {Outcome.LOST}
    assert len(lost) > 10
