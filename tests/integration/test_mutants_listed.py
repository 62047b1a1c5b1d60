"""tests/mutants.toml: an entry for code that has changed makes `nox -s mutants` red, which otherwise shows only at night.

This is no unit test, because it reads the source: it would fail for the mutants that it is about."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.mutants.listed import Equivalent, read

ROOT = Path(__file__).resolve().parents[2]


def entries() -> list[Equivalent]:
    return list(read(ROOT / "tests" / "mutants.toml").equivalent)


@pytest.mark.parametrize("entry", entries(), ids=lambda entry: f"{entry.file}:{entry.after}")
def test_listed_mutant_changes_a_line_that_exists(entry: Equivalent) -> None:
    source = " ".join((ROOT / entry.file).read_text().split())
    assert " ".join(entry.before.split()) in source
    assert entry.function.rpartition(".")[2] in source
