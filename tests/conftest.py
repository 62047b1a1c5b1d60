"""Nothing here depends on how fast the machine is, nor on how the tests were started."""

from __future__ import annotations

import atexit
import contextlib
import os
import shutil
import signal
import sys
import tempfile
import time
import warnings
from collections.abc import Sequence
from pathlib import Path

import psutil
import pytest
from hypothesis import settings

from tests import skips, surroundings

if not __debug__:
    raise pytest.UsageError("Python was told to leave out assertions (PYTHONOPTIMIZE or -O): no test could fail")

# This must happen before any module of the harness is imported; children inherit it.
TEST_CACHE = os.environ.get(surroundings.CACHE, "")
_settings = surroundings.neutral(os.environ)
os.environ.clear()
os.environ.update(_settings)
time.tzset()
os.umask(0o022)
sys.warnoptions.clear()  # PYTHONWARNINGS, which would make errors of them; pytest's own -W is not touched
warnings.resetwarnings()
if TEST_CACHE:
    os.environ["HARNESS_CACHE"] = TEST_CACHE

# Whatever the tests run is not the user's night.
_scratch = tempfile.mkdtemp(prefix="harness-tests-")
atexit.register(shutil.rmtree, _scratch, ignore_errors=True)
os.environ["HARNESS_HISTORY"] = str(Path(_scratch, "history.sqlite"))


def pytest_configure(config: pytest.Config) -> None:
    skips.pytest_configure(config)


settings.register_profile("any machine", deadline=None)
settings.load_profile("any machine")


def default_signals() -> None:
    """For a child that must end when it gets a signal. A shell ignores SIGINT in what it starts in the background, nohup ignores
    SIGHUP, and children inherit both."""
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM, signal.SIGQUIT):
        signal.signal(number, signal.SIG_DFL)


def survivors(processes: Sequence[psutil.Process], seconds: float = 60) -> list[psutil.Process]:
    """Which of them are still there. One that was killed takes a moment to be gone."""

    def alive(one: psutil.Process) -> bool:
        with contextlib.suppress(psutil.NoSuchProcess):
            return one.is_running() and one.status() != psutil.STATUS_ZOMBIE
        return False

    deadline = time.monotonic() + seconds
    while (left := [one for one in processes if alive(one)]) and time.monotonic() < deadline:
        time.sleep(0.05)
    return left
