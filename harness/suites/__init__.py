"""Kinds of tests that a guest can run, one module each. To add one: a module with a Suite, and its line in ALL."""

from __future__ import annotations

from harness.suites.base import Selection, Suite, Target
from harness.suites.bench import BenchSuite
from harness.suites.boot import BootSuite
from harness.suites.claims import ClaimsSuite
from harness.suites.command import CommandSuite
from harness.suites.ftracetest import FtracetestSuite
from harness.suites.kunit import KunitSuite
from harness.suites.runner import NOTHING, Before, Session
from harness.suites.samples import SamplesSuite

_SUITES = (BootSuite(), KunitSuite(), SamplesSuite(), ClaimsSuite(), FtracetestSuite(), CommandSuite(), BenchSuite())
ALL: dict[str, Suite] = {suite.name: suite for suite in _SUITES}
"""In the order of running: the quick and telling ones first."""

QUIET = tuple(suite.quiet for suite in _SUITES if suite.quiet)
"""Kernel parameters for a boot that is not judged itself."""

__all__ = ["ALL", "NOTHING", "QUIET", "Before", "Selection", "Session", "Suite", "Target"]
