"""Kinds of tests that a guest can run, one module each. To add one: a module with a Suite, and its line in ALL."""

from __future__ import annotations

from harness.suites.base import Selection, Suite, Target
from harness.suites.boot import BootSuite
from harness.suites.ftracetest import FtracetestSuite
from harness.suites.kunit import KunitSuite
from harness.suites.runner import run_suites
from harness.suites.samples import SamplesSuite

ALL: dict[str, Suite] = {suite.name: suite for suite in (BootSuite(), KunitSuite(), SamplesSuite(), FtracetestSuite())}
"""In the order of running: the quick and telling ones first."""

__all__ = ["ALL", "Selection", "Suite", "Target", "run_suites"]
