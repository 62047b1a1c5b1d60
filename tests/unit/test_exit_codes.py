"""The process ends with the exit code of the run."""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from harness import cli, doctor, pipeline
from harness.errors import CommandFailed, InfrastructureError, UserError
from harness.model import Outcome
from harness.results import RunReport, journal
from tests.unit.test_cli import harness
from tests.unit.test_completeness import BOOTED, ENDED, PLANNED, STARTED, case, written

COMMANDS = [
    ["run", "--series", "none", "--arch", "x86_64"],
    ["build", "--series", "none", "--arch", "x86_64"],
    ["bisect", "--arch", "x86_64", "--case", "kunit:a.b"],
    ["shell", "--series", "none", "--arch", "x86_64"],
]


def ended(monkeypatch: pytest.MonkeyPatch, arguments: list[str], work: Any) -> int | str | None:
    """The status of a harness whose pipeline is `work`."""
    monkeypatch.setattr(doctor, "check", lambda *words: None)
    monkeypatch.setattr(pipeline, "run", work)
    monkeypatch.setattr(signal, "signal", lambda *words: None)
    monkeypatch.setattr(sys, "argv", ["harness", *arguments, *(["--quiet"] if arguments[0] in ("run", "build") else [])])
    with pytest.raises(SystemExit) as caught:
        cli.main()
    return caught.value.code


@pytest.mark.parametrize("arguments", COMMANDS, ids=lambda words: words[0])
@pytest.mark.parametrize("code", [0, 1, 2, 3, 130])
def test_exit_code_of_a_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, arguments: list[str], code: int) -> None:
    if (arguments[0], code) == ("shell", 0):
        arguments = [*arguments, "--cmd", "true"]
        monkeypatch.setattr("harness.shell.Shell.__init__", lambda *words: None)
        monkeypatch.setattr("harness.shell.Shell.run", lambda self, command: 7)
    report = RunReport(tmp_path)
    report.add(journal.RunFinished(1.0, code))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path / "cache"))
    status = ended(monkeypatch, arguments, lambda *words, **more: report)
    assert status == (7 if arguments[-1] == "true" else code)


@pytest.mark.parametrize(
    ("failure", "code"),
    [
        (UserError("wrong"), 2),
        (InfrastructureError("broken"), 3),
        (CommandFailed("make failed", 1, ""), 3),
        (KeyboardInterrupt(), 130),
        (ValueError("surprise"), 3),
    ],
)
def test_exit_code_of_a_failure(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, failure: BaseException, code: int) -> None:
    def work(*words: object, **more: object) -> RunReport:
        raise failure

    monkeypatch.chdir(tmp_path)
    assert ended(monkeypatch, COMMANDS[0], work) == code


def test_report_ends_as_the_run_did(tmp_path: Path) -> None:
    """Unless an older harness called a run green that is not whole."""
    for name, events, code in (
        ("green", (PLANNED, STARTED, *BOOTED, ENDED), 0),
        ("cut", (PLANNED, STARTED, *BOOTED), 3),
        ("red", (STARTED, *BOOTED, case("kunit:a", Outcome.FAIL), ENDED), 1),
        ("skips", (STARTED, case("kunit:a", Outcome.SKIP), ENDED), 1),
    ):
        (tmp_path / name).mkdir()
        written(tmp_path / name, *events)
        for form in ("text", "junit", "json"):
            assert harness("report", name, "--format", form, cwd=tmp_path).returncode == code
    (tmp_path / "killed").mkdir()
    written(tmp_path / "killed", STARTED, *BOOTED, ENDED, end=False)
    assert harness("report", "killed", cwd=tmp_path).returncode == 1
