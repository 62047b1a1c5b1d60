"""`nox -s run` does the main job, `nox -s tests` tests the harness."""

from __future__ import annotations

import re
import sys

import nox
import nox.command

nox.options.sessions = ["lint", "types", "tests"]
nox.options.default_venv_backend = "virtualenv"
nox.options.reuse_existing_virtualenvs = True


_SECONDS_TO_END = 15.0
"""After Ctrl-C, the harness still ends its guests and writes its reports."""


def _harness(session: nox.Session, *words: str) -> None:
    """End with the harness's own exit code: nox itself would end with 1 after any failure."""
    session.install("--editable", ".")
    try:
        session.run(
            "harness",
            *words,
            *session.posargs,
            interrupt_timeout=_SECONDS_TO_END,
            terminate_timeout=_SECONDS_TO_END,
        )
    except nox.command.CommandFailed as failed:
        status = re.search(r"\d+$", failed.reason or "")
        sys.exit(int(status[0]) if status else 3)


@nox.session
def run(session: nox.Session) -> None:
    """Set up the machine, then apply, build, boot and test: harness run --install."""
    _harness(session, "run", "--install")


@nox.session
def nightly(session: nox.Session) -> None:
    """Test all architectures before and after the series, all suites; repeat red cases once."""
    _harness(session, "run", "--install", "--points", "base,last", "--retry-flaky", "1")


def _tests(session: nox.Session, tier: str, extra: str = "test") -> None:
    session.install("--editable", f".[{extra}]")
    session.run("harness", "doctor", "--install", "--tests", "--arch", "x86_64", "--arch", "arm64")
    session.run("pytest", "-m", tier, *(session.posargs or ["--durations=15", "tests"]))


@nox.session
def tests(session: nox.Session) -> None:
    """Run the unit tests, then the integration tests that boot real guests, as CI does."""
    _tests(session, "not slow")


@nox.session
def tests_slow(session: nox.Session) -> None:
    """Run the tests that build kernels of their own, need a cluster, or test the tests: nightly."""
    _tests(session, "slow", "mutants")


@nox.session
def mutants(session: nox.Session) -> None:
    """Make small changes to the code that decides about red and green; each must fail a test."""
    session.install("--editable", ".[mutants]")
    session.run("python", "-m", "tests.mutants", *session.posargs)


@nox.session
def bench(session: nox.Session) -> None:
    """Measure the harness against raw make and raw QEMU in one run."""
    session.install("--editable", ".[test]")
    session.run("harness", "doctor", "--install", "--tests", "--arch", "x86_64")
    session.run("python", "-m", "tests.bench", *session.posargs)


@nox.session
def lint(session: nox.Session) -> None:
    session.install("ruff>=0.6")
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")


@nox.session
def types(session: nox.Session) -> None:
    session.install("mypy>=1.11", "nox", "types-paramiko", "types-psutil", "--editable", ".[test]")
    session.run("mypy", "harness", "tests", "noxfile.py")
