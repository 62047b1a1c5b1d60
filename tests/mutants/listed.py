"""tests/mutants.toml: which modules are changed, and which mutants no test can notice, each with its reason."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from harness import datafile
from harness.errors import UserError

Key = tuple[str, str, str, str, int]


class Equivalent(Struct, frozen=True, forbid_unknown_fields=True):
    file: str
    function: str
    before: str
    after: str
    reason: str
    nth: int = 1

    def __post_init__(self) -> None:
        if not self.reason.strip():
            raise ValueError(f"'{self.before}' in {self.file} is listed without a reason: say why no test can notice the change")

    @property
    def key(self) -> Key:
        return (self.file, self.function, self.before, self.after, self.nth)


class Listed(Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    modules: tuple[str, ...]
    at_least: float
    """The share of the mutants that the tests have to notice."""
    equivalent: tuple[Equivalent, ...] = ()


class Wrong(Exception):
    """The file cannot be used: it says where and why."""


def read(path: Path) -> Listed:
    try:
        listed, lines = datafile.read(path, Listed, "the comments of tests/mutants.toml describe each key")
    except UserError as error:
        raise Wrong(f"{error.message}: {error.hint}") from None
    keys = [one.key for one in listed.equivalent]
    for number, key in enumerate(keys):
        if key in keys[:number]:
            raise Wrong(f"{path}:{lines.of('equivalent', number)}: listed twice: {key}")
    return listed


def modules(listed: Listed, root: Path, only: Sequence[str] = ()) -> list[str]:
    """The files that are changed, relative to the project. Raises Wrong for an entry that names none: it would test nothing."""
    found: dict[str, None] = {}
    for glob in listed.modules:
        matched = sorted(str(path.relative_to(root)) for path in root.glob(glob) if path.is_file())
        if not matched:
            raise Wrong(f"tests/mutants.toml: '{glob}' names no file: correct it, or remove it")
        found.update(dict.fromkeys(matched))
    for glob in only:
        if not any(Path(file).match(glob) for file in found):
            raise Wrong(f"--module {glob}: no module of tests/mutants.toml is called that")
    return [file for file in found if not only or any(Path(file).match(glob) for glob in only)]


def as_toml(key: Key) -> str:
    """An entry to fill in."""
    file, function, before, after, nth = key
    lines = ["[[equivalent]]", *(f"{name} = {_quoted(text)}" for name, text in _named(file, function, before, after))]
    if nth > 1:
        lines.append(f"nth = {nth}")
    return "\n".join([*lines, 'reason = ""'])


def _named(*texts: str) -> Iterable[tuple[str, str]]:
    return zip(("file", "function", "before", "after"), texts, strict=True)


def _quoted(text: str) -> str:
    if "'" not in text:
        return f"'{text}'"
    return msgspec.json.encode(text).decode()
