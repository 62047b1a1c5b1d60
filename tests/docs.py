"""The commands that the README and docs/ tell people to type.

A block of ```sh is run by tests/integration/test_docs.py as it stands. A block of ```sh elsewhere
needs other machines or much time: only its words are checked, like those of commands in the text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
_BLOCK = re.compile(r"^(?P<indent> *)```sh(?P<elsewhere> elsewhere)?\n(?P<text>.*?)^ *```$", re.MULTILINE | re.DOTALL)
_ANY_BLOCK = re.compile(r"^ *```.*?^ *```$", re.MULTILINE | re.DOTALL)
_INLINE = re.compile(r"`(?P<command>(?:harness|nox) [^`]+)`")
_PLACEHOLDER = re.compile(r"…|\.\.\.|\[|(?<![\w/.])[A-Z]{1,8}(?![\w_=])")
"""What stands for something else: `harness shell --arch A`, `harness COMMAND --help`."""


def commands(page: Path) -> Iterator[str]:
    """Each line of the page's blocks of shell that are run, without its comment."""
    yield from (command for command, elsewhere in _in_blocks(page) if not elsewhere)


def typed(page: Path) -> Iterator[str]:
    """Each command of the page that has no placeholder: of all its blocks of shell, and of its text."""
    yield from (command for command, _ in _in_blocks(page))
    for match in _INLINE.finditer(prose(page)):
        command = " ".join(match["command"].split())
        if not _PLACEHOLDER.search(command):
            yield command


def prose(page: Path) -> str:
    """The page without its blocks."""
    return _ANY_BLOCK.sub("", page.read_text(encoding="utf-8"))


def _in_blocks(page: Path) -> Iterator[tuple[str, bool]]:
    for block in _BLOCK.finditer(page.read_text(encoding="utf-8")):
        for line in block["text"].splitlines():
            if command := re.sub(r"(^|\s)#.*", "", line).strip():
                yield command, bool(block["elsewhere"])
