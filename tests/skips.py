"""A pytest plugin: in CI, a test that does not run is red, unless tests/skips.toml lists it with a reason."""

from __future__ import annotations

import fnmatch
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from msgspec import Struct

LISTED = Path(__file__).with_name("skips.toml")
FOLDERS = ("tests/unit", "tests/integration")
"""Folders in which at least one test must be collected."""


class Skip(Struct, frozen=True, forbid_unknown_fields=True):
    test: str
    """A glob of the tests' ids."""
    reason: str

    def __post_init__(self) -> None:
        if not self.reason.strip():
            raise ValueError(f"'{self.test}' is listed without a reason")


class Skips(Struct, frozen=True, forbid_unknown_fields=True):
    skip: tuple[Skip, ...] = ()


def in_ci() -> bool:
    return os.environ.get("CI", "").lower() not in ("", "0", "false", "no")


class NoSilence:
    """Turns skips and expected failures that are not listed into failures."""

    def __init__(self, skips: Sequence[Skip], folders: Sequence[str] = FOLDERS) -> None:
        self._skips = skips
        self._folders = folders
        self._found: list[str] = []

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(self, item: pytest.Item) -> Iterator[None]:
        report = yield
        self._judge(report)  # type: ignore[arg-type]
        return report

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_make_collect_report(self, collector: pytest.Collector) -> Iterator[None]:
        report = yield
        self._judge(report)  # type: ignore[arg-type]
        return report

    def _judge(self, report: pytest.TestReport | pytest.CollectReport) -> None:
        expected = hasattr(report, "wasxfail")
        if not (report.outcome == "skipped" or expected) or self._listed(report.nodeid):
            return
        what = "expected to fail" if expected else "skipped"
        why = report.wasxfail if expected else _reason(report)
        report.outcome = "failed"
        if expected:
            del report.wasxfail
        report.longrepr = f"{what} in CI: {why}\nMake it run, or list it with a reason in tests/skips.toml."

    def _listed(self, test: str) -> bool:
        return any(fnmatch.fnmatchcase(test, _literal(one.test)) for one in self._skips)

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Record the tests before any of them is deselected."""
        self._found = [item.nodeid for item in items]

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        if session.config.option.collectonly or session.testsfailed:
            return
        asked = [session.config.rootpath / argument.partition("::")[0] for argument in session.config.args]
        for folder in self._folders:
            place = session.config.rootpath / folder
            whole = place.is_dir() and any(place.is_relative_to(path) for path in asked)
            if whole and not any(test.startswith(f"{folder}/") for test in self._found):
                raise pytest.UsageError(f"no test was found in {folder}")
        for one in self._skips:
            file = one.test.partition("::")[0]
            if any(test.startswith(f"{file}::") for test in self._found) and not any(
                fnmatch.fnmatchcase(test, _literal(one.test)) for test in self._found
            ):
                raise pytest.UsageError(f"tests/skips.toml lists {one.test}, which is no test: remove it")


def _literal(glob: str) -> str:
    """Escape the brackets of a test's id, so that they are no character class of the glob."""
    return glob.replace("[", "[[]")


def _reason(report: pytest.TestReport | pytest.CollectReport) -> str:
    return str(report.longrepr[2]) if isinstance(report.longrepr, tuple) else str(report.longrepr)


def read(path: Path = LISTED) -> tuple[Skip, ...]:
    # tests/conftest.py imports this module before it prepares the environment that modules of the harness read.
    from harness import datafile
    from harness.errors import UserError

    try:
        return datafile.read(path, Skips, "each [[skip]] has a test and a reason")[0].skip
    except UserError as error:
        raise pytest.UsageError(f"{error.message}: {error.hint}") from None


def pytest_configure(config: pytest.Config) -> None:
    if in_ci():
        config.pluginmanager.register(NoSilence(read()), "no-silence")
