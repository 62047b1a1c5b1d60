"""The lines of what is wrong in a TOML file."""

from __future__ import annotations

import string
import tomllib
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as some

from harness import toml
from harness.errors import UserError

TEXT = """\
# a comment with [[case]]
top = 1
list = [
    "a", # ]
    "b]",
]

[table]
plain = '''
[[case]]
no = "key"
'''
"quoted key" = 1
inline = { a = 1, b = { c = [1, 2] } }

[[case]]
name = "one"
under.dotted = 1
under.other = 2

[case.inner]
deep = \"\"\"
x = \\\"\"\" 1
\"\"\"
after = 2

[[case]]
name = 'two'

[[case.part]]
[[case.part]]
last = true
"""


@pytest.mark.parametrize(
    ("keys", "line"),
    [
        (("top",), 2),
        (("list",), 3),
        (("list", 1), 3),
        (("table",), 8),
        (("table", "plain"), 9),
        (("table", "no"), 8),
        (("table", "quoted key"), 13),
        (("table", "inline", "b", "c", 0), 14),
        (("case",), 16),
        (("case", 0), 16),
        (("case", 0, "under"), 18),
        (("case", 0, "under", "other"), 19),
        (("case", 0, "inner"), 21),
        (("case", 0, "inner", "deep"), 22),
        (("case", 0, "inner", "after"), 25),
        (("case", 1, "name"), 28),
        (("case", 1, "inner"), 27),
        (("case", 1, "part", 0), 30),
        (("case", 1, "part", 1), 31),
        (("case", 1, "part", 1, "last"), 32),
        (("nowhere",), 1),
        ((), 1),
    ],
)
def test_line_of_a_key(keys: tuple[toml.Key, ...], line: int) -> None:
    tomllib.loads(TEXT)
    document = toml.Document(Path("some.toml"), TEXT)
    assert document.line(*keys) == line
    assert document.where(*keys) == f"some.toml:{line}"


class Entry(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    sizes: dict[str, float] = {}

    def __post_init__(self) -> None:
        if self.name == "bad":
            raise ValueError("a bad name")


class File(msgspec.Struct, forbid_unknown_fields=True):
    case: tuple[Entry, ...] = ()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[[case]]\nname = 1\n", "2: `case[0].name`: Expected `str`, got `int`"),
        ("\n[[case]]\nnome = 'a'\n", "3: `case[0]`: Object contains unknown field `nome`"),
        ("case = 1\n", "1: `case`: Expected `array`, got `int`"),
        ("[[case]]\nname = 'a'\n[[case]]\n", "3: `case[1]`: Object missing required field `name`"),
        ("[[case]]\nname = 'bad'\n", "1: `case[0]`: a bad name"),
        ("[[case]]\nname = 'a'\nsizes.x = 'b'\n", "3: `case[0].sizes[...]`: Expected `float`, got `str`"),
        ("\n\nother = 1\n", "3: Object contains unknown field `other`"),
        ("[[case]]\nname = 'a'\nname = 'b'\n", "3: Cannot overwrite a value"),
        ("[[case]]\nname = 'a'\nname = 'b'\n\n# end\n", "3: Cannot overwrite a value"),
        ("\n\nname = \n", "3: Invalid value"),
        ("\n\nname = 'a", "3: "),
    ],
)
def test_error_with_its_line(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "some.toml"
    path.write_text(text)
    with pytest.raises(UserError) as raised:
        toml.read(path, File, hint="what to do")
    assert raised.value.message.startswith(f"{path}:{message}")
    assert raised.value.hint == "what to do"


def test_read(tmp_path: Path) -> None:
    path = tmp_path / "some.toml"
    path.write_text("[[case]]\nname = 'a'\n")
    value, document = toml.read(path, File, hint="")
    assert value == File((Entry("a"),))
    assert document.where("case", 0, "name") == f"{path}:2"
    with pytest.raises(FileNotFoundError):
        toml.read(tmp_path / "nowhere.toml", File, hint="")


values = some.one_of(
    some.integers(-9, 9).map(str),
    some.text(string.ascii_letters + "[]{}#=' ", max_size=9).map(lambda text: f'"{text}"'),
    some.text(string.ascii_letters + '[]{}#=" \n', max_size=9).map(lambda text: f"'''\n{text}'''"),
    some.lists(some.sampled_from(['"]"', "'['", "1", "[2]"]), max_size=3).map(lambda parts: "[\n" + ",\n".join(parts) + "]"),
)


@given(
    some.lists(some.lists(values, min_size=1, max_size=4), min_size=1, max_size=5), some.sampled_from(["", "# [[t]] ' [\n", "\n"])
)
def test_lines_of_whatever_is_written(tables: list[list[str]], between: str) -> None:
    """Each key of a file is on the line on which it was written."""
    text, lines = "", dict[tuple[Any, ...], int]()
    for index, table in enumerate(tables):
        text += f"{between}[[t]]\n"
        for number, value in enumerate(table):
            text += between
            lines["t", index, f"k{number}"] = text.count("\n") + 1
            text += f"k{number} = {value}  # ' comment\n"
    assert len(tomllib.loads(text)["t"]) == len(tables)
    document = toml.Document(Path("some.toml"), text)
    assert {keys: document.line(*keys) for keys in lines} == lines
