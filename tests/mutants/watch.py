"""pytest plugins: one records which test runs which line, the other runs chosen tests in a chosen order."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec
import pytest
from hypothesis import Phase, settings
from msgspec import Struct


class Passed(Struct, frozen=True):
    """The record of a test run without a mutant."""

    seconds: dict[str, float]
    """Duration of each test, by its id."""
    lines: dict[str, dict[int, list[str]]]
    """For each file and line, the tests that run it."""


def repeatable() -> None:
    """Generated examples are the same in every run, and one that fails is not made smaller: that it fails is enough."""
    phases = (Phase.explicit, Phase.generate)
    settings.register_profile("mutants", derandomize=True, database=None, deadline=None, phases=phases)
    settings.load_profile("mutants")


class Recorder:
    """Passes the current test's id to coverage.py, and records each test's duration."""

    def __init__(self, coverage: object) -> None:
        self.seconds: dict[str, float] = {}
        self.failed: list[str] = []
        self._coverage = coverage

    def pytest_collection(self) -> None:
        repeatable()

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self._coverage.switch_context(item.nodeid)  # type: ignore[attr-defined]
        begin = time.monotonic()
        result = yield
        self.seconds[item.nodeid] = time.monotonic() - begin
        self._coverage.switch_context("")  # type: ignore[attr-defined]
        return result

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failed.append(report.nodeid)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.failed.append(report.nodeid)


class Chosen:
    """Runs these tests in this order. `diary` gets the id of each test when it begins, then the verdict."""

    def __init__(self, tests: Sequence[str], diary: Path) -> None:
        self._tests = tests
        self._diary = diary.open("a", encoding="utf-8", buffering=1)
        self._failed = ""
        self._done = 0

    def _write(self, *words: str) -> None:
        self._diary.write(msgspec.json.encode(words).decode() + "\n")

    def pytest_collection(self) -> None:
        repeatable()

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        by_id: Mapping[str, pytest.Item] = {item.nodeid: item for item in items}
        items[:] = [by_id[one] for one in self._tests if one in by_id]

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self._write("begin", nodeid)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._failed = self._failed or report.nodeid
        if report.when == "teardown":
            self._done += 1

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self._failed = self._failed or report.nodeid or "import"

    def pytest_sessionfinish(self, exitstatus: int) -> None:
        self._write("end", str(int(exitstatus)), self._failed, str(self._done))


def main(arguments: Sequence[str], found: Path) -> int:
    """Run pytest as it is, recorded by coverage.py, and write a `Passed` to the file `found`."""
    import coverage

    os.environ["MUTANTS_RECORDED"] = str(found.parent)
    recording = coverage.Coverage(config_file="coverage.ini")
    recording.start()
    recorder = Recorder(recording)
    status = int(pytest.main([*arguments], plugins=[recorder]))
    recording.stop()
    recording.save()
    for name in recorder.failed:
        print(f"red without any mutant: {name}")
    if status:
        return status
    together = coverage.Coverage(config_file="coverage.ini")
    together.combine()
    data = together.get_data()
    lines: dict[str, dict[int, list[str]]] = {}
    for file in data.measured_files():
        contexts = data.contexts_by_lineno(file)
        lines[file] = {line: sorted({_test(name) for name in names if name}) for line, names in contexts.items()}
    found.write_bytes(msgspec.json.encode(Passed(recorder.seconds, lines)))
    return 0


def _test(context: str) -> str:
    """The test's id in a coverage context. A child's context is PYTEST_CURRENT_TEST, which also has the phase."""
    for phase in ("setup", "call", "teardown"):
        context = context.removesuffix(f" ({phase})")
    return context


if __name__ == "__main__":
    raise SystemExit(main(os.sys.argv[2:], Path(os.sys.argv[1])))  # type: ignore[attr-defined]
