"""The unit tests stand on their own, whatever the user has set and whoever else runs them."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests import surroundings

ROOT = Path(__file__).parents[2]
NAMES = {
    name for path in (ROOT / "harness").rglob("*.py") for name in re.findall(r"\bHARNESS_[A-Z]+(?:_[A-Z]+)*\b", path.read_text())
}


def test_variables_are_found() -> None:
    assert {"HARNESS_CACHE", "HARNESS_HISTORY", "HARNESS_HOSTS", "HARNESS_SHARED_CACHE", "HARNESS_LORE"} <= NAMES


def _ignore_signals() -> None:
    """As nohup and a shell do for what runs in the background."""
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
        signal.signal(number, signal.SIG_IGN)


@pytest.mark.slow
def test_two_runs_at_once_in_a_hostile_environment(tmp_path: Path) -> None:
    """Each in an environment of its own, with a working directory that only its owner may read."""
    runs = []
    for name in ("one", "two"):
        wrong = surroundings.hostile(NAMES, tmp_path / name / "home")
        words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(ROOT / "tests" / "unit")]
        log = (tmp_path / f"{name}.log").open("wb")
        environment = {**os.environ, **wrong, "PYTHONPATH": str(ROOT)}
        runs.append(
            subprocess.Popen(
                words,
                cwd=tmp_path / name,
                env=environment,
                stdout=log,
                stderr=subprocess.STDOUT,
                umask=0o077,
                preexec_fn=_ignore_signals,
            )
        )
    codes = [run.wait() for run in runs]
    assert codes == [0, 0], "\n".join((tmp_path / f"{name}.log").read_text()[-5000:] for name in ("one", "two"))
