"""A series as a directory: a quilt `series` file, and patches in `git am` form."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from harness.cache import Cache
from harness.errors import UserError
from harness.model import Patch
from harness.series import commit
from harness.series.commit import Commit

LIST = "series"
_MAIL = re.compile(rb"^From [0-9a-f]{40} Mon Sep 17 00:00:00 2001$", re.MULTILINE)
"""How git format-patch begins one."""


def read(directory: Path) -> tuple[tuple[Patch, ...], list[Commit]]:
    """The patches that the list names, in order. Raises UserError if they are not all there, or no patches."""
    names = _listed(directory)
    for name in names:
        if not (directory / name).is_file():
            hint = "add the file or take its line out"
            raise UserError(f"{directory.name}: the series lists {name}, which is not there", hint=hint)
    raw = [(f"{directory.name}/{name}", _plain((directory / name).read_bytes())) for name in names]
    for name, data in raw:
        if len(_MAIL.findall(data)) > 1:
            raise UserError(
                f"{name} holds more than one patch", hint="each in a file of its own, or all as an mbox: --series FILE"
            )
    made = commit.read(raw)
    return tuple(_patch(name, directory / name, one) for name, one in zip(names, made, strict=True)), made


def _plain(data: bytes) -> bytes:
    """Without line ends that were not the source's, if all of them are such."""
    return data.replace(b"\r\n", b"\n") if data.count(b"\n") == data.count(b"\r\n") else data


def _patch(name: str, path: Path, one: Commit) -> Patch:
    shown = tuple(file.encode("utf-8", "surrogateescape").decode("utf-8", "replace") for file in one.files)
    return Patch(name=name, path=path, subject=one.subject.encode("utf-8", "replace").decode(), files=shown)


def commits(patches: Sequence[Patch]) -> list[Commit]:
    """What they become."""
    return commit.read([(patch.name, _plain(patch.path.read_bytes())) for patch in patches])


def keep(made: Sequence[Commit], cache: Cache) -> tuple[Patch, ...]:
    """The commits `made` as patches, in a directory of the cache."""
    name = f"series/{commit.digest(made)}"
    directory = cache.root / name
    if not directory.exists():
        with cache.making(name, "writing the patches of a series"):
            if not directory.exists():
                with cache.publish(directory) as draft:
                    write(made, draft)
    names = [one.file_name(number) for number, one in enumerate(made, 1)]
    return tuple(_patch(name, directory / name, one) for name, one in zip(names, made, strict=True))


def write(made: Sequence[Commit], directory: Path) -> None:
    names = [one.file_name(number) for number, one in enumerate(made, 1)]
    for number, (name, one) in enumerate(zip(names, made, strict=True), 1):
        (directory / name).write_bytes(one.mail(number, len(made)))
    (directory / LIST).write_text("".join(f"{name}\n" for name in names))


def _listed(directory: Path) -> list[str]:
    """The names in a quilt series file, in order."""
    path = directory / LIST
    if not path.is_file():
        raise UserError(f"{directory} holds no series file", hint="one patch name a line, in the order to apply them")
    names: list[str] = []
    for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
        words = line.split("#", 1)[0].split()
        if not words:
            continue
        if len(words[0]) > 255 or "\0" in words[0]:
            raise UserError(f"{path}:{number}: no name of a file", hint="one patch name a line")
        if words[1:] not in ([], ["-p1"]):
            raise UserError(f"{path}:{number}: '{' '.join(words[1:])}'", hint="only -p1 patches can be applied with git am")
        if words[0] in names:
            raise UserError(f"{path}:{number}: {words[0]} is listed twice", hint="a patch can be applied once only")
        names.append(words[0])
    if not names:
        raise UserError(f"{path} lists no patch", hint="use --series none to test the tree as it is")
    return names
