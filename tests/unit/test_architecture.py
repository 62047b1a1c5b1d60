"""docs/architecture.md is the map of the code: its rooms are those of `harness/`, and imports lead
down its floors only."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import harness
from tests import docs

ROOT = Path(harness.__file__).parent
PAGE = docs.ROOT / "docs" / "architecture.md"

_SECTION = re.compile(r"^## Floors and rooms$(?P<text>.*?)^## ", re.MULTILINE | re.DOTALL)
_FLOOR = re.compile(r"^\d+\. \S.*$", re.MULTILINE)
_ROOM = re.compile(r"^ +- `(?P<name>\w+)`: (?P<purpose>.+?)(?=\n *-|\n\n|\Z)", re.MULTILINE | re.DOTALL)


def floors(page: str) -> list[dict[str, str]]:
    """For each floor, from the top down: the purpose of each of its rooms, by name."""
    section = _SECTION.search(page)
    assert section, f"{PAGE.name} has no section `Floors and rooms`"
    texts = _FLOOR.split(section["text"])[1:]
    return [{match["name"]: match["purpose"] for match in _ROOM.finditer(text.rstrip())} for text in texts]


FLOORS = floors(PAGE.read_text(encoding="utf-8"))


def room_of(path: Path) -> str:
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def modules() -> Iterator[Path]:
    yield from (path for path in sorted(ROOT.rglob("*.py")) if path != ROOT / "__init__.py")


def rooms_imported_by(path: Path) -> set[str]:
    names: list[str] = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{path}: a relative import is not on the map"
            names += [f"{node.module}.{alias.name}" for alias in node.names]
    split = [name.split(".") for name in names]
    rooms = {parts[1] for parts in split if parts[0] == "harness" and len(parts) > 1}
    return {room for room in rooms if not room.startswith("__")}


def imports() -> Iterator[tuple[Path, str]]:
    """Each import of a room by a module of another one."""
    for path in modules():
        for room in sorted(rooms_imported_by(path) - {room_of(path)}):
            yield path, room


def wrong_imports(order: Sequence[dict[str, str]]) -> list[str]:
    level = {room: number for number, rooms in enumerate(order) for room in rooms}
    return [f"{path.relative_to(ROOT)} imports {room}" for path, room in imports() if level[room] <= level[room_of(path)]]


def test_map_has_each_room_once() -> None:
    listed = sorted(room for rooms in FLOORS for room in rooms)
    present = sorted({room_of(path) for path in modules()})
    assert listed == present, f"correct the list of rooms in {PAGE}"


def test_each_floor_has_a_room_and_each_room_a_sentence() -> None:
    assert all(FLOORS)
    for rooms in FLOORS:
        for room, purpose in rooms.items():
            assert re.fullmatch(r"[a-z][^.]*(\.\w[^.]*)*\.", purpose), f"{room}: {purpose}"


def test_imports_lead_down() -> None:
    assert not wrong_imports(FLOORS)


def test_every_import_that_does_not_lead_down_is_found() -> None:
    every = len(list(imports()))
    assert every > 100
    assert len(wrong_imports(FLOORS[::-1])) == every
    one_floor = {room: purpose for rooms in FLOORS for room, purpose in rooms.items()}
    assert len(wrong_imports([one_floor])) == every


def test_no_module_is_too_long() -> None:
    assert not [path for path in modules() if len(path.read_text().splitlines()) > 500]
