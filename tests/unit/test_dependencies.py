"""pyproject.toml lists the packages that the code imports. The tests' own environment has more of
them, so a missing entry would show only where the wheel is installed alone."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from typing import Any

from tests import docs

PROJECT: dict[str, Any] = tomllib.loads((docs.ROOT / "pyproject.toml").read_text())["project"]

NOT_IMPORTED = {
    "b4": "run as a program, by harness.series.fetch",
    "tomli-w": "imported by msgspec.toml.encode()",
}


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def names(requirements: list[str]) -> set[str]:
    return {canonical(re.split(r"[\s<>=!~;\[]", requirement)[0]) for requirement in requirements}


def imported_modules() -> Iterator[str]:
    for path in (docs.ROOT / "harness").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                yield from (alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                yield node.module


def test_imported_packages_are_those_that_are_listed() -> None:
    roots = {module.split(".")[0] for module in imported_modules()}
    foreign = roots - set(sys.stdlib_module_names) - {"harness"}
    provided = packages_distributions()
    imported = {canonical(name) for root in foreign for name in provided[root]}
    listed = names(PROJECT["dependencies"])
    optional = names(PROJECT["optional-dependencies"]["cluster"])
    assert imported == (listed | optional) - set(NOT_IMPORTED)
    assert set(NOT_IMPORTED) <= listed


def test_version_stands_once() -> None:
    assert "version" not in PROJECT
    assert "version" in PROJECT["dynamic"]
