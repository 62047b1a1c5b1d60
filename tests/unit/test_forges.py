"""What forges are given: their own schemas must know it, and it must call what there is."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from harness import arch

ROOT = Path(__file__).parents[2]
FILES = {".github/workflows/nightly.yml": "vendor.github-workflows", "docs/gitlab-ci.yml": "vendor.gitlab-ci"}


@pytest.mark.parametrize("name", FILES)
def test_a_forge_knows_its_file(name: str) -> None:
    argv = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", FILES[name], str(ROOT / name)]
    done = subprocess.run(argv, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("name", FILES)
def test_no_architecture_is_forgotten(name: str) -> None:
    listed = re.search(r"(?:arch|ARCH): \[(.*)\]", (ROOT / name).read_text())
    assert listed
    assert sorted(listed[1].split(", ")) == sorted(target.name for target in arch.chosen(()))


@pytest.mark.parametrize("name", [*FILES, "docs/nightly.md"])
def test_sessions_that_are_called_are_there(name: str) -> None:
    sessions = set(re.findall(r"^def (\w+)\(session", (ROOT / "noxfile.py").read_text(), re.MULTILINE))
    called = set(re.findall(r"nox -s (\w+)", (ROOT / name).read_text()))
    assert called
    assert called <= sessions
