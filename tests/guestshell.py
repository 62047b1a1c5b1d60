"""Run the scripts of claims and measures in a shell of this machine. The test's folders replace the guest's /sys, and stand-ins
replace commands that only a guest has. So a test can see how a script judges a kernel that misbehaves."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from harness import paths
from harness.guest import CommandResult
from harness.model import CaseResult, Claim, Measure, Position
from harness.suites.base import Suite, Target
from harness.suites.bench import BenchSuite
from harness.suites.claims import ClaimsSuite
from tests.play import a_target

SHELL = ("bash",)
"""As strict as busybox's shell in the guest: in its own mode, bash does not carry `set -e` into a command substitution either."""

GUEST_ONLY = ("modprobe", "rmmod", "kprobe-multi", "kprobe-attach", "perf-sample", "dd", "sleep", "usleep")

EVENTS = ("claims", "bench", "kmem", "kmem/kmalloc", "kmem/kmem_cache_alloc", "kmem/kfree", "kmem/kmem_cache_free")

TRACEFS = {
    "current_tracer": "nop\n",
    "tracing_on": "1\n",
    "trace": "# entries-in-buffer/entries-written: 0/0   #P:1\n",
    "per_cpu/cpu0/stats": "entries: 0\noverrun: 0\ncommit overrun: 0\n",
    **dict.fromkeys(("dynamic_events", "enabled_functions", "available_filter_functions", "error_log", "options/hash-ptr"), ""),
    **{f"events/{name}/{file}": "0\n" for name in EVENTS for file in ("enable", "filter")},
}


class GuestShell:
    """A guest, for a suite. `files` are those of tracefs beside the usual ones; `parameters` those of /sys/module, as NAME/FILE;
    `prelude` is shell text that runs between qemu/guest/claims and the script, where it may replace what that has."""

    def __init__(
        self,
        folder: Path,
        files: Mapping[str, str] | None = None,
        prelude: str = "",
        *,
        parameters: Mapping[str, str] | None = None,
        programs: Mapping[str, str] | None = None,
    ) -> None:
        self._folder = folder
        self._prelude = prelude
        content = {f"tracing/{name}": text for name, text in (TRACEFS | dict(files or {})).items()}
        content |= {f"module/{name.replace('/', '/parameters/')}": text for name, text in (parameters or {}).items()}
        content |= {
            f"bin/{name}": f"#!/bin/sh\n{text}\n" for name, text in (dict.fromkeys(GUEST_ONLY, "") | dict(programs or {})).items()
        }
        for name, text in content.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            path.chmod(0o755)
        (folder / "tracing/instances").mkdir()
        (folder / "module").mkdir(exist_ok=True)
        (folder / "meminfo").write_text("MemTotal: 100 kB\nVmallocUsed: 1000 kB\n")
        self._answers: dict[str, CommandResult] = {}
        self._write("claims", (paths.GUEST / "claims").read_text())

    def run(self, script: str, label: str, seconds: float) -> CommandResult:
        """Run a script. If it was run before, the first answer is returned again."""
        if script not in self._answers:
            self._answers[script] = self._run(script, seconds)
        return self._answers[script]

    def _run(self, script: str, seconds: float) -> CommandResult:
        before, source, after = script.partition(". /harness/claims\n")
        assert source
        text = f"{before}. {self._folder}/claims\n{self._prelude}\n{after}"
        path = self._write("script", text)
        environment = {**os.environ, "PATH": f"{self._folder}/bin:{os.environ['PATH']}"}
        done = subprocess.run(
            [*SHELL, path],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=seconds,
            check=False,
        )
        return CommandResult(done.returncode, done.stdout, 0.0, (0, 0))

    def _write(self, name: str, text: str) -> Path:
        """Write a script, with the paths of the test's folders in place of the guest's."""
        for there, here in (("/sys/kernel/tracing", "tracing"), ("/sys/module", "module"), ("/proc/meminfo", "meminfo")):
            text = text.replace(there, f"{self._folder}/{here}")
        path = self._folder / name
        path.write_text(text)
        return path


def judge(entry: Claim | Measure, shell: GuestShell, position: Position = Position.WHOLE, arch: str = "x86_64") -> CaseResult:
    """The result of one claim or measure, on a kernel that has all the symbols that it needs."""
    config = dict.fromkeys(entry.needs, "y")
    if isinstance(entry, Measure):
        target = a_target(arch, config=config | entry.limits_for, position=position, measures=(entry,))
        return _only_result(BenchSuite(), shell, target)
    return _only_result(ClaimsSuite(), shell, a_target(arch, config=config, position=position, claims=(entry,)))


def _only_result(suite: Suite, shell: GuestShell, target: Target) -> CaseResult:
    (case,) = suite.plan(target)
    (result,) = suite.run(case, cast(Any, shell), target)
    return result
