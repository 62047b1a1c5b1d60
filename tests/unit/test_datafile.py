"""Files that people write: an error names file and line."""

from __future__ import annotations

from pathlib import Path

import pytest
import tomli_w
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct

from harness import datafile
from harness.errors import UserError


class Inner(Struct, forbid_unknown_fields=True):
    name: str
    numbers: tuple[int, ...] = ()


class Outer(Struct, forbid_unknown_fields=True, rename="kebab"):
    title: str = ""
    inner_part: tuple[Inner, ...] = ()
    table: Inner | None = None


GOOD = """\
title = '''
[[inner-part]]
name = "no table, but text"
'''

[[inner-part]]   # first
name = "a"
numbers = [
    1,
    2,
]

[[inner-part]]
name = "b"

[table]
name = "c"
"""


def write(directory: Path, text: str | bytes) -> Path:
    path = directory / "some.toml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_lines_of_keys_and_tables(tmp_path: Path) -> None:
    value, lines = datafile.read(write(tmp_path, GOOD), Outer, "")
    assert [one.name for one in value.inner_part] == ["a", "b"]
    assert lines.of() == 1
    assert lines.of("title") == 1
    assert lines.of("inner-part", 0) == 6
    assert lines.of("inner-part", 0, "name") == 7
    assert lines.of("inner-part", 0, "numbers", 1) == 8
    assert lines.of("inner-part", 1) == 13
    assert lines.of("inner-part", 1, "numbers") == 13, "a key that is not there: its table"
    assert lines.of("table", "name") == 17


@pytest.mark.parametrize(
    ("old", "new", "line", "why"),
    [
        ('name = "b"', 'nmae = "b"', 14, "nmae"),
        ('name = "b"', "name = 1", 14, "Expected `str`"),
        ('name = "b"', "", 13, "name"),
        ("    2,", '    "two",', 8, "Expected `int`"),
        ("[table]", "[tabel]", 16, "tabel"),
        ('name = "c"', 'name = "c', 17, "Illegal character"),
        ('name = "c"', 'name = """c', 17, "Unterminated"),
        ('name = "c"', "name", 17, "Expected"),
    ],
)
def test_error_names_the_line(tmp_path: Path, old: str, new: str, line: int, why: str) -> None:
    path = write(tmp_path, GOOD.replace(old, new))
    with pytest.raises(UserError, match=why) as caught:
        datafile.read(path, Outer, "what to do")
    assert caught.value.message.startswith(f"{path}:{line}: ")
    assert caught.value.hint == "what to do"
    assert "$" not in caught.value.message


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"some\.toml:3: this is not UTF-8"):
        datafile.read(write(tmp_path, b'title = "a"\n\n\xff\n'), Outer, "")


def test_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="No such file"):
        datafile.read(tmp_path / "some.toml", Outer, "")
    with pytest.raises(UserError, match="directory"):
        datafile.read(tmp_path, Outer, "")


@given(st.lists(st.tuples(st.text("ab#[]'\"\\ \n", max_size=12), st.booleans()), max_size=6))
def test_every_table_has_the_line_of_its_header(names: list[tuple[str, bool]]) -> None:
    text, expected = "", []
    for name, spread in names:
        expected.append(text.count("\n") + 1)
        text += f"[[inner-part]]\n{tomli_w.dumps({'name': name}, multiline_strings=spread)}\n"
    lines = datafile.Lines(text)
    assert [lines.of("inner-part", number) for number in range(len(names))] == expected
    assert [lines.of("inner-part", number, "name") for number in range(len(names))] == [one + 1 for one in expected]
