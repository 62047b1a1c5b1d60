"""Every command of the pages, run as a reader would, in a checkout of its own and in the order of the page."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests import docs

PAGES = [page for page in docs.PAGES if any(docs.commands(page))]

SLOW = {"commands", "failure", "first-steps"}
"""Pages whose commands build kernels without the series, or at other points."""

# What would run for hours, or run this test, is run by .ci/run, and so are ruff and mypy; a test makes
# no environment inside its own.
ELSEWHERE = re.compile(r"nox|pip|python3 -m venv|ruff|mypy")
BUILDS = re.compile(r"harness (run|build|bisect)\b(?!.*--resume)")


def narrowed(command: str) -> str:
    """Less than a reader runs, where that would take long."""
    if BUILDS.match(command) and "--suite" not in command and "--case" not in command:
        command += " --suite kunit"
    return command


@pytest.mark.parametrize(
    "page",
    [pytest.param(page, marks=[pytest.mark.slow] if page.stem in SLOW else [], id=page.stem) for page in PAGES],
)
def test_commands_work(page: Path, tmp_path: Path) -> None:
    for name in subprocess.check_output(["git", "ls-files"], cwd=docs.ROOT, text=True).split():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(docs.ROOT / name, tmp_path / name)
    program = tmp_path / "bin" / "harness"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m harness "$@"\n')
    program.chmod(0o755)
    environment = {
        **os.environ,
        # pytest is where this Python is.
        "PATH": f"{program.parent}:{Path(sys.executable).parent}:{os.environ['PATH']}",
        "PYTHONPATH": str(tmp_path),
        "HARNESS_HISTORY": str(tmp_path / "history.sqlite"),
    }

    def run(command: str) -> None:
        done = subprocess.run(["sh", "-c", command], cwd=tmp_path, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, f"$ {command}\n{done.stdout}\n{done.stderr}"

    wanted = [command for command in docs.commands(page) if not ELSEWHERE.match(command)]
    if any("harness" in command for command in wanted):
        # A page may continue with the run of another page.
        run("harness run --arch x86_64 --suite kunit --quiet")
    for command in wanted:
        run(narrowed(command))
