"""Read a series, wherever it is: a directory, mails, a range of commits, a thread on lore.kernel.org."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

import msgspec

from harness import paths
from harness.cache import Cache, digest_of
from harness.errors import UserError
from harness.model import Series
from harness.series import commit, describe, fetch, mail, quilt, thread
from harness.series.describe import described
from harness.series.thread import Thread

NONE = Series(name="none", origin="", digest=digest_of("none"))
"""No patches: the tree as it is."""

_FORMS = "a directory, an mbox file, a Maildir, git:REPO#A..B, lore:MESSAGE-ID, none"
_NAME_LENGTH = 48


def bundled() -> list[str]:
    """The names of the series that come with the harness, patches and all."""
    return sorted(path.parent.name for path in paths.PATCHES.glob("*/series"))


def referred() -> list[str]:
    """The names of those that come as the place where their patches are."""
    return sorted({path.parent.name for path in paths.PATCHES.glob("*/series.toml")} - set(bundled()))


def load(spec: str, cache: Cache | None = None, mbox: Path | None = None) -> Series:
    """The series that `spec` names. What is no directory of patches is kept as one in `cache`, by default the user's. `mbox` has
    the mails of a series that only names its origin.

    Raises UserError if it is not whole, InfrastructureError if it cannot be fetched."""
    cache = cache or Cache(paths.default_cache())
    spec = spec.replace("\0", "?")
    kind, _, rest = spec.partition(":")
    path = paths.PATCHES / spec if spec in [*bundled(), *referred()] else Path(spec).resolve()
    refers = _is(path, "") and not _is(path, quilt.LIST) and _is(path, "series.toml")
    if mbox and not refers:
        raise UserError(f"--mbox with '{spec}'", hint=f"it is for a series that only names its origin: {', '.join(referred())}")
    if spec == "none":
        return NONE
    if kind == "git" and rest:
        return _committed(rest, cache)
    if kind == "lore" and rest:
        return _mailed(_on_lore(rest, cache), spec, cache)
    if refers:
        return _referred(path, mbox, cache)
    if _is(path, "") and path.is_dir() and not _is(path, "cur"):
        patches, commits = quilt.read(path)
        return described(path, Series(name=path.name, origin=str(path), digest=commit.digest(commits), patches=patches))
    wanted = ""
    if not _is(path, ""):
        file, _, wanted = spec.partition("#")
        path = Path(file).resolve()
    if not _is(path, ""):
        raise UserError(f"unknown series '{spec}'", hint=f"{_FORMS}, or one of {', '.join([*bundled(), *referred()])}")
    return _mailed(_in_box(path, wanted), str(path), cache)


def _is(path: Path, name: str) -> bool:
    try:
        return (path / name).exists()
    except OSError:  # no file can have that name
        return False


def trespasses(series: Series) -> list[str]:
    """The patches that touch what is not in the tree, with the path."""
    return [
        f"{patch.name} touches '{file}', outside the tree"
        for patch in series.patches
        for file in patch.files
        if PurePosixPath(file).is_absolute() or {"..", ".git"} & {part.lower() for part in PurePosixPath(file).parts}
    ]


def _in_box(path: Path, wanted: str = "") -> Thread:
    return thread.choose(_parsed(fetch.mails(path), path.name), path.name, wanted)


def _on_lore(message_id: str, cache: Cache) -> Thread:
    raw, attested = fetch.thread(message_id, cache)
    found = thread.choose(_parsed(raw, message_id), message_id, message_id)
    return msgspec.structs.replace(found, notes=(*found.notes, *(f"attestation: {one}" for one in attested)))


def _parsed(raw: Iterable[bytes], where: str) -> list[mail.Mail]:
    try:
        return [one for data in raw for one in mail.parse(data)]
    except RecursionError:
        raise UserError(f"{where} holds a mail in a mail in a mail, without end", hint="take it out") from None


def _mailed(found: Thread, origin: str, cache: Cache) -> Series:
    ours = all(one.ours for one in found.patches)
    commits = commit.read([(f"'{one.subject}'", one.plain) for one in found.patches], scissors=not ours)
    told = found.cover.text.partition("\n-- \n")[0].strip() if found.cover else ""
    return Series(
        name=_slug(found.title),
        origin=origin,
        digest=commit.digest(commits),
        patches=quilt.keep(commits, cache),
        description=f"{found.title}\n\n{told}".strip().encode("utf-8", "replace").decode(),
        base=found.base,
        notes=found.notes,
    )


def _slug(title: str) -> str:
    words = re.findall(r"[A-Za-z0-9.]+", title)
    return "-".join(words)[:_NAME_LENGTH].strip("-.").lower() or "series"


def _committed(rest: str, cache: Cache) -> Series:
    repository, _, span = rest.partition("#")
    path = Path(repository).resolve()
    raw, base = fetch.commits(path, span, cache)
    commits = commit.read(raw)
    return Series(
        name=_slug(f"{path.name} {span.partition('..')[2] or 'HEAD'}"),
        origin=f"git:{path}#{span}",
        digest=commit.digest(commits),
        patches=quilt.keep(commits, cache),
        base=base,
        repository=str(path),
    )


def _referred(directory: Path, mbox: Path | None, cache: Cache) -> Series:
    """A directory that holds no patches, just where they come from."""
    origin = describe.read(directory / describe.NAME)[0].origin
    if origin is None or not origin.message_id:
        hint = "a series file that lists them, or an origin with a message-id in series.toml"
        raise UserError(f"{directory} holds no patches and names none", hint=hint)
    found = _in_box(mbox, origin.message_id) if mbox else _on_lore(origin.message_id, cache)
    if not origin.title.endswith(found.title):
        raise UserError(f"{mbox or origin.message_id} is not '{origin.title}', but '{found.title}'", hint="another --mbox FILE")
    series = _mailed(found, str(mbox.resolve()) if mbox else f"lore:{origin.message_id}", cache)
    return described(directory, msgspec.structs.replace(series, name=directory.name, base=series.base or origin.base))
