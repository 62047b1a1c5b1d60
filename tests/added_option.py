"""What follows from one more option in the table: tests/unit/test_options.py runs this in a copy of
the project whose table has the entry below, and nothing else that is new."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness import cli, doctor, pipeline
from harness.arch import Arch
from harness.cluster import Errand
from harness.errors import InfrastructureError
from harness.request import Request
from harness.results import RunReport, kcidb, read_run
from tests.unit.test_pipeline import Bench, main

ENTRY = """
    colour: Annotated[str, Option(
        "--colour", "The colour of the kernel.", metavar="NAME", commands=(RUN, BUILD),
    )] = "grey"

"""

Harness = Callable[..., int]


@pytest.fixture
def harness(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Harness:
    return command_line(tmp_path, monkeypatch)


def command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Harness:
    """The command line, on a fake kernel tree. The series `s` breaks the build. Returns a function
    that runs a command and returns its exit code."""
    bench = Bench(tmp_path, monkeypatch)
    bench.series(main("ERROR"))
    monkeypatch.setattr(doctor, "check", lambda *words: None)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("HARNESS_HISTORY", str(tmp_path / "history.sqlite"))

    def call(*words: str) -> int:
        monkeypatch.setattr(sys, "argv", ["harness", *words])
        with pytest.raises(SystemExit) as caught:
            cli.main()
        assert isinstance(caught.value.code, int)
        return caught.value.code

    return call


RUN = ("run", "--series", "s", "--tree", "git:linux#main", "--arch", "x86_64", "--suite", "none")
RED = ("--colour", "red")


def test_help(harness: Harness, capsys: pytest.CaptureFixture[str]) -> None:
    assert harness("run", "--help") == 0
    assert "--colour NAME" in capsys.readouterr().out
    assert harness("bisect", "--colour", "red") == 2


def test_reproduce_command(harness: Harness, capsys: pytest.CaptureFixture[str]) -> None:
    assert harness(*RUN, *RED) == 1
    command = "$ harness build --series s --tree 'git:linux#main' --colour red --arch x86_64"
    assert command in capsys.readouterr().out


def test_resume(
    harness: Harness,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert harness(*RUN, *RED) == 1
    assert harness("run", "--resume", "runs/latest", "--colour", "blue") == 2
    assert "--resume together with --colour" in capsys.readouterr().err
    resumed: list[Request] = []
    perform = pipeline.resume

    def resume(request: Request, *words: Any) -> RunReport:
        resumed.append(request)
        return perform(request, *words)

    monkeypatch.setattr(pipeline, "resume", resume)
    assert harness("run", "--resume", "runs/latest") == 1
    assert [getattr(request.options, "colour", "") for request in resumed] == ["red"]


class Cluster:
    """Keeps what it is sent, and does nothing."""

    def __init__(self) -> None:
        self.batches: list[Errand] = []

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def needs(self, arch: Arch, accelerator: str) -> dict[str, float]:
        return {}

    def slots(self, needs: dict[str, float]) -> int:
        return 1

    def run(self, batch: Errand, *_: object) -> None:
        self.batches.append(batch)
        raise InfrastructureError("no worker is left")


def test_batch_of_a_worker(harness: Harness, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster()
    monkeypatch.setattr(pipeline, "_cluster", lambda request: cluster)
    assert harness(*RUN, *RED, "--executor", "dask:tcp://nowhere:1") == 3
    (batch,) = cluster.batches
    assert " ".join(RED) in " ".join(batch.arguments)


def test_kcidb_and_scope(harness: Harness) -> None:
    scopes = set()
    for options in ((), RED, ("--colour", "blue")):
        harness(*RUN, *options)
        report = read_run(Path("runs/latest"))
        (build,) = kcidb.convert(report).builds
        assert " ".join(options) in str(build.misc["options"])
        assert report.started
        scopes.add(report.started.scope)
    assert len(scopes) == 3
