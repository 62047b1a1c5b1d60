"""A patch as the commit that it becomes: what `git am` would make of a mail, whatever way it came."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from msgspec import Struct
from unidiff.errors import UnidiffParseError
from unidiff.patch import PatchSet

from harness import process
from harness.cache import digest_of
from harness.errors import CommandFailed, UserError
from harness.tree.store import IDENTITY

_FIELD = re.compile(r"^(Author|Email|Subject|Date): (.*)$", re.MULTILINE)
_SECTIONS = re.compile(
    r"""(?:diff\ --git\ .*\n
        (?:(?:index|old\ mode|new\ mode|new\ file|deleted\ file|similarity|dissimilarity|rename|copy|Binary\ files)\ .*\n)*
        (?:GIT\ binary\ patch\n(?:(?:literal|delta)\ \d+\n(?:\S+\n)+\n)+)?)+""",
    re.VERBOSE,
)
"""Files of a diff that have no hunks of text."""
_INDEX = re.compile(r"^index [0-9a-f]+\.\.[0-9a-f]+", re.MULTILINE)
_NAME_LENGTH = 57
"""Of a file name without .patch, as git format-patch has it."""


class Commit(Struct, frozen=True):
    """Text; bytes that are no UTF-8 are kept as surrogates."""

    author: str
    email: str
    date: str
    subject: str
    message: str
    diff: str
    """From its first header to its last line: what a mail has behind it is gone."""

    @property
    def files(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(file.path for file in PatchSet(self.diff)))

    @property
    def names(self) -> tuple[str, ...]:
        """Of the files, before and after."""
        sources = [file.source_file.removeprefix("a/") for file in PatchSet(self.diff)]
        return tuple(dict.fromkeys([*self.files, *sources]))

    def mail(self, number: int, total: int, base: str = "") -> bytes:
        """In `git am` form; the first one names the commit `base`."""
        count = f" {number}/{total}" if total > 1 else ""
        text = (
            "From 0000000000000000000000000000000000000000 Mon Sep 17 00:00:00 2001\n"
            f"From: {self.author} <{self.email}>\nDate: {self.date}\nSubject: [PATCH{count}] {self.subject}\n"
            "MIME-Version: 1.0\nContent-Type: text/plain; charset=UTF-8\nContent-Transfer-Encoding: 8bit\n"
            f"\n{self.message}---\n{self.diff}"
        )
        if base and number == 1:
            text += f"\nbase-commit: {base}\n"
        return text.encode("utf-8", "surrogateescape")

    def file_name(self, number: int) -> str:
        """As git format-patch would call it."""
        words = re.sub(r"\.+", ".", "-".join(re.findall(r"[A-Za-z0-9._]+", self.subject))).rstrip(".")
        return f"{number:04d}-{words}"[:_NAME_LENGTH] + ".patch"


def digest(commits: Sequence[Commit]) -> str:
    """Of their content and order, and of nothing else."""
    return digest_of(*(part.encode("utf-8", "surrogateescape") for commit in commits for part in _parts(commit)))


def _parts(commit: Commit) -> tuple[str, ...]:
    # How many digits of the blobs' names it shows is a matter of the repository that it comes from.
    diff = _INDEX.sub("index", commit.diff)
    return (commit.author, commit.email, commit.date, commit.subject, commit.message, diff)


def read(mails: Sequence[tuple[str, bytes]], *, scissors: bool = False) -> list[Commit]:
    """What each of the mails, that have names, becomes. With `scissors` what stands above a `-- >8 --` is left out. Raises
    UserError for one that is no patch."""
    with ThreadPoolExecutor() as pool:
        return list(pool.map(lambda mail: _read(mail[0], mail[1], scissors), mails))


def _read(name: str, mail: bytes, scissors: bool) -> Commit:
    with tempfile.TemporaryDirectory(prefix="harness-") as folder:
        source, message, patch = (Path(folder) / file for file in ("mail", "message", "patch"))
        source.write_bytes(mail)
        argv: list[str | Path] = ["sh", "-c", 'exec git mailinfo "$1" "$2" "$3" <"$0"', source]
        try:
            said = process.run([*argv, "--scissors" if scissors else "--no-scissors", message, patch], env=IDENTITY).stdout
        except CommandFailed:
            said = ""
        fields: dict[str, str] = dict(_FIELD.findall(said))
        diff = patch.read_bytes().decode("utf-8", "surrogateescape") if patch.exists() else ""
        start = re.search(r"^(?:diff --git |--- \S)", diff, re.MULTILINE)
        if not start or not fields.get("Subject"):
            raise UserError(
                f"{name} is no patch in git am form", hint="a mail with a Subject and a diff, as git format-patch writes it"
            )
        return Commit(
            author=fields.get("Author", ""),
            email=fields.get("Email", ""),
            date=fields.get("Date", ""),
            subject=fields["Subject"],
            message=message.read_bytes().decode("utf-8", "surrogateescape"),
            diff=_cut(name, diff[start.start() :]),
        )


def _cut(name: str, diff: str) -> str:
    """Without what follows its last hunk: a signature, a mailing list's footer."""
    try:
        last = max((line.diff_line_no or 0 for file in PatchSet(diff) for hunk in file for line in hunk), default=0)
    except UnidiffParseError as error:
        raise UserError(f"{name} is damaged: {error}", hint="write it again with git format-patch") from None
    end = sum(len(line) + 1 for line in diff.split("\n")[:last])
    if diff.startswith("\\ ", end):  # No newline at end of file
        end = diff.index("\n", end) + 1
    rest = _SECTIONS.match(diff, end)
    found = diff[:end] + (rest[0] if rest else "")
    if not found:
        raise UserError(f"{name} is no patch in git am form", hint="its diff changes nothing")
    return found
