"""Imports run one way: cli -> pipeline -> stages -> logs, model, process, errors."""

from __future__ import annotations

import ast
from pathlib import Path

import harness
from harness.options import OPTIONS, Resume

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


def test_only_the_table_has_the_flags_of_options() -> None:
    """Whoever composes or reads a command line uses harness.options; a hint may name a flag. The
    options of one call have names that other programs have too."""
    recorded = [one for one in OPTIONS.values() if one.resume is not Resume.NOT_RECORDED]
    flags = {option.flag for option in recorded}
    wrong = [
        f"{path.relative_to(ROOT)}:{node.lineno}: {node.value}"
        for path in ROOT.rglob("*.py")
        if room_of(path) not in ("cli", "options")
        for node in _constants(ast.parse(path.read_text()))
        if isinstance(node.value, str) and node.value.partition("=")[0] in flags
    ]
    assert not wrong


def _constants(tree: ast.Module) -> list[ast.Constant]:
    """Those that are no hints."""
    keywords = [node for node in ast.walk(tree) if isinstance(node, ast.keyword)]
    hints = {id(keyword.value) for keyword in keywords if keyword.arg == "hint"}
    found = [node for node in ast.walk(tree) if isinstance(node, ast.Constant)]
    return [node for node in found if id(node) not in hints]


def test_facts_of_jobs_are_read_as_fields() -> None:
    wrong = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in ROOT.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if (isinstance(node, ast.Subscript) and _is_properties(node.value))
        or (isinstance(node, ast.Attribute) and node.attr == "get" and _is_properties(node.value))
    ]
    assert not wrong


def _is_properties(node: ast.expr) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == "properties"
