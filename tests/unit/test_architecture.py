"""Imports run one way: cli -> pipeline -> stages -> logs, model, process, errors."""

from __future__ import annotations

import ast
from pathlib import Path

import harness

ROOT = Path(harness.__file__).parent

# A room may import from itself and from rooms further down.
LAYERS = [
    ["__main__"],
    ["cli"],
    ["bisect", "shell"],
    ["pipeline"],
    ["job"],
    ["request"],
    ["suites"],
    ["results"],
    ["doctor"],
    ["shared", "cluster"],
    ["hosts"],
    ["options"],
    ["guest", "kernel", "series", "progress", "schedule"],
    ["tree", "durations", "sandbox"],
    ["ccache"],
    ["cache", "arch", "packages"],
    ["logs"],
    ["model", "process", "paths", "archive", "datafile", "keys"],
    ["errors"],
]
LEVEL = {room: level for level, rooms in enumerate(LAYERS) for room in rooms}


def room_of(path: Path) -> str:
    first = path.relative_to(ROOT).parts[0]
    return first.removesuffix(".py")


def imported_rooms(path: Path) -> set[str]:
    rooms = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module == "harness":
            rooms |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("harness."):
            rooms.add(node.module.split(".")[1])
    return {room for room in rooms if not room.startswith("__")}


def test_imports_run_one_way() -> None:
    wrong = [
        f"{path.relative_to(ROOT)} imports {room}"
        for path in ROOT.rglob("*.py")
        if path != ROOT / "__init__.py"
        for room in imported_rooms(path)
        if room != room_of(path) and LEVEL[room] <= LEVEL[room_of(path)]
    ]
    assert not wrong


def test_no_module_is_too_long() -> None:
    assert not [path for path in ROOT.rglob("*.py") if len(path.read_text().splitlines()) > 500]
