"""Read a series, wherever it is: a directory, mails, a range of commits, a thread on lore.kernel.org."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path, PurePosixPath

import msgspec
from msgspec import Struct

from harness import paths, process
from harness.cache import Cache, digest_of
from harness.errors import UserError
from harness.model import Argued, CasePattern, Origin, Series
from harness.series import commit, fetch, mail, quilt, thread
from harness.series.claims import read_claims, read_measures
from harness.series.thread import Thread
from harness.tree.store import IDENTITY

NONE = Series(name="none", origin="", digest=digest_of("none"))
"""No patches: the tree as it is."""

_FORMS = "a directory, an mbox file, a Maildir, git:REPO#A..B, lore:MESSAGE-ID, none"
_NAME_LENGTH = 48


class _Description(Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """series.toml."""

    description: str = ""
    tested_on: tuple[str, ...] = ()
    fragment: str = ""
    must_run: tuple[CasePattern, ...] = ()
    origin: Origin | None = None
    checkpatch: tuple[Argued, ...] = ()


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
    known = [*bundled(), *referred()]
    path = paths.PATCHES / spec if spec in known else Path(spec).resolve()
    refers = path.is_dir() and not (path / quilt.LIST).exists() and (path / "series.toml").exists()
    if mbox and not refers:
        raise UserError(f"--mbox with '{spec}'", hint=f"it is for a series that only names its origin: {', '.join(referred())}")
    kind, _, rest = spec.partition(":")
    if spec == "none":
        return NONE
    if refers:
        return _referred(path, mbox, cache)
    if path.is_dir() and not (path / "cur").is_dir():
        patches, commits = quilt.read(path)
        return _described(path, Series(name=path.name, origin=str(path), digest=commit.digest(commits), patches=patches))
    if kind == "git" and rest:
        return _committed(rest, cache)
    if kind == "lore" and rest:
        return _mailed(_on_lore(rest, cache), spec, cache)
    wanted = ""
    if not path.exists():
        file, _, wanted = spec.partition("#")
        path = Path(file).resolve()
    if not path.exists():
        raise UserError(f"unknown series '{spec}'", hint=f"{_FORMS}, or one of {', '.join(known)}")
    return _mailed(_in_box(path, wanted), str(path), cache)


def trespasses(series: Series) -> list[str]:
    """The patches that touch what is not in the tree, with the path."""
    return [
        f"{patch.name} touches '{file}', outside the tree"
        for patch in series.patches
        for file in patch.files
        if PurePosixPath(file).is_absolute() or {"..", ".git"} & {part.lower() for part in PurePosixPath(file).parts}
    ]


def _in_box(path: Path, wanted: str = "") -> Thread:
    return thread.choose([one for raw in fetch.mails(path) for one in mail.parse(raw)], path.name, wanted)


def _on_lore(message_id: str, cache: Cache) -> Thread:
    raw, attested = fetch.thread(message_id, cache)
    found = thread.choose([one for each in raw for one in mail.parse(each)], message_id, message_id)
    return msgspec.structs.replace(found, notes=(*found.notes, *(f"attestation: {one}" for one in attested)))


def _mailed(found: Thread, origin: str, cache: Cache) -> Series:
    raw = [
        (
            f"'{one.subject}'",
            f"From: {one.author}\nDate: {one.date}\nSubject: {one.subject}\n"
            f"Content-Type: text/plain; charset=UTF-8\nContent-Transfer-Encoding: 8bit\n\n{one.text}".encode(
                "utf-8", "surrogateescape"
            ),
        )
        for one in found.patches
    ]
    commits = commit.read(raw, scissors=True)
    told = found.cover.text.partition("\n-- \n")[0].strip() if found.cover else ""
    return Series(
        name=_slug(found.title),
        origin=origin,
        digest=commit.digest(commits),
        patches=quilt.keep(commits, cache),
        description=f"{found.title}\n\n{told}".strip(),
        base=found.base,
        notes=found.notes,
    )


def _slug(title: str) -> str:
    words = re.findall(r"[A-Za-z0-9.]+", title)
    return "-".join(words)[:_NAME_LENGTH].strip("-.").lower() or "series"


def _committed(rest: str, cache: Cache) -> Series:
    repository, _, span = rest.partition("#")
    path = Path(repository).resolve()
    with tempfile.TemporaryDirectory(prefix="harness-") as folder:
        fetch.commits(path, span, Path(folder))
        commits = commit.read([(file.name, file.read_bytes()) for file in sorted(Path(folder).iterdir())])
    start, _, end = span.partition("..")
    base = process.run(["git", "-C", path, "merge-base", start, end or "HEAD"], env=IDENTITY).stdout.strip()
    return Series(
        name=_slug(f"{path.name} {end or 'HEAD'}"),
        origin=f"git:{path}#{span}",
        digest=commit.digest(commits),
        patches=quilt.keep(commits, cache),
        base=base,
        repository=str(path),
    )


def _referred(directory: Path, mbox: Path | None, cache: Cache) -> Series:
    """A directory that holds no patches, just where they come from."""
    origin = _describe(directory / "series.toml").origin
    if origin is None or not origin.message_id:
        hint = "a series file that lists them, or an origin with a message-id in series.toml"
        raise UserError(f"{directory} holds no patches and names none", hint=hint)
    found = _in_box(mbox, origin.message_id) if mbox else _on_lore(origin.message_id, cache)
    if not origin.title.endswith(found.title):
        raise UserError(f"{mbox or origin.message_id} is not '{origin.title}', but '{found.title}'", hint="another --mbox FILE")
    series = _mailed(found, str(mbox.resolve()) if mbox else f"lore:{origin.message_id}", cache)
    return _described(directory, msgspec.structs.replace(series, name=directory.name, base=series.base or origin.base))


def _described(directory: Path, series: Series) -> Series:
    """With what stands beside the patches."""
    description = _describe(directory / "series.toml")
    fragment = directory / description.fragment if description.fragment else None
    if fragment is not None and not fragment.is_file():
        raise UserError(
            f"{directory.name}/series.toml names the fragment {fragment.name}, which is not there",
            hint="its path is relative to the series",
        )
    for original in description.origin.patches if description.origin else ():
        for number in original.patches:
            if not any(patch.name.startswith(f"{number}-") for patch in series.patches):
                raise UserError(
                    f"{directory.name}/series.toml: '{original.title}' is said to be in {number}, which is not there",
                    hint="patches = the numbers of this series' patches: NNNN",
                )
    return msgspec.structs.replace(
        series,
        description=description.description or series.description,
        tested_on=description.tested_on,
        fragment=fragment,
        must_run=description.must_run,
        claims=read_claims(directory / "claims.toml"),
        measures=read_measures(directory / "bench.toml"),
        written_after=description.origin,
        argued=description.checkpatch,
    )


def _describe(path: Path) -> _Description:
    try:
        return msgspec.toml.decode(path.read_bytes(), type=_Description)
    except FileNotFoundError:
        return _Description()
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: {error}", hint="see patches/fprobe-on-fgraph/series.toml") from None
