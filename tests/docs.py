"""The commands that the README and docs/ tell people to type."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
_BLOCK = re.compile(r"^(?P<indent> *)```sh\n(?P<text>.*?)^ *```$", re.MULTILINE | re.DOTALL)


def commands(page: Path) -> Iterator[str]:
    """Each line of the page's blocks of shell, without its comment."""
    for block in _BLOCK.finditer(page.read_text(encoding="utf-8")):
        for line in block["text"].splitlines():
            if command := re.sub(r"(^|\s)#.*", "", line).strip():
                yield command
