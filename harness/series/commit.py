"""A patch as the commit that it becomes: what `git am` would make of a mail, whatever way it came."""

from __future__ import annotations

import email.utils
import re
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from email.header import Header
from pathlib import Path

from msgspec import Struct

from harness import process
from harness.cache import digest_of
from harness.errors import CommandFailed, UserError
from harness.tree.store import IDENTITY

OWN = "X-Fgraph-Harness"
"""A header that marks what we wrote: scissors in that are part of a message."""
_FIELD = re.compile(r"^(Author|Email|Subject|Date): (.*)$", re.MULTILINE)
_SECTIONS = re.compile(
    r"""^diff\ --git\ .*\n
        (?:(?:index|old\ mode|new\ mode|new\ file|deleted\ file|similarity|dissimilarity|rename|copy|Binary\ files)\ .*\n)+
        (?:GIT\ binary\ patch\n(?:(?:literal|delta)\ \d+\n(?:\S+\n)+\n)+)?""",
    re.VERBOSE | re.MULTILINE,
)
"""A file of a diff that has no hunks of text."""
_HUNK = re.compile(r"@@ -\d+(?:,(?P<before>\d+))? \+\d+(?:,(?P<after>\d+))? @@")
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
    names: tuple[str, ...]
    """Of the files, before and after."""
    files: tuple[str, ...]
    """After."""

    def mail(self, number: int, total: int, base: str = "") -> bytes:
        """In `git am` form; the first one names the commit `base`."""
        count = f" {number}/{total}" if total > 1 else ""
        sender = f"From: {self.author} <{self.email}>\n"
        text = (
            "From 0000000000000000000000000000000000000000 Mon Sep 17 00:00:00 2001\n"
            f"From: {_encoded(self.author)} <{self.email}>\nDate: {self.date}\n"
            f"Subject: [PATCH{count}] {_encoded(self.subject)}\n"
            f"{OWN}: 1\nMIME-Version: 1.0\nContent-Type: text/plain; charset=UTF-8\nContent-Transfer-Encoding: 8bit\n"
            # So that no line of the message is taken for it.
            f"\n{sender}\n{self.message}---\n{self.diff}"
        )
        if base and number == 1:
            text += f"\nbase-commit: {base}\n"
        return text.encode("utf-8", "surrogateescape")

    def file_name(self, number: int) -> str:
        """As git format-patch would call it."""
        words = re.sub(r"\.+", ".", "-".join(re.findall(r"[A-Za-z0-9._]+", self.subject))).rstrip(".")
        return f"{number:04d}-{words}"[:_NAME_LENGTH] + ".patch"


def _encoded(text: str) -> str:
    """For a header."""
    plain = text.isascii() and "=?" not in text
    return text if plain else Header(text.encode("utf-8", "replace").decode(), "utf-8", maxlinelen=10_000).encode()


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
        argv = ["sh", "-c", 'exec git mailinfo "$@" message patch <mail', "sh", "--scissors" if scissors else "--no-scissors"]
        said = process.run(argv, env=IDENTITY, cwd=Path(folder), check=False).stdout
        fields = {key: value.strip() for key, value in _FIELD.findall(said)}
        diff = patch.read_bytes().decode("utf-8", "surrogateescape") if patch.exists() else ""
        start = re.search(r"^(?:diff --git |--- \S)", diff, re.MULTILINE)
        if not start or not fields.get("Subject"):
            raise UserError(
                f"{name} is no patch in git am form", hint="a mail with a Subject and a diff, as git format-patch writes it"
            )
        if not fields.get("Email"):
            raise UserError(f"{name} has no author", hint="From: NAME <ADDRESS>, as git format-patch writes it")
        diff = diff[start.start() :]
        diff = _cut(name, diff if diff.endswith("\n") else f"{diff}\n")
        patch.write_bytes(diff.encode("utf-8", "surrogateescape"))
        names, files = _names(name, patch)
        return Commit(
            author=fields.get("Author", ""),
            email=fields["Email"],
            date=fields.get("Date", ""),
            subject=fields["Subject"],
            message=message.read_bytes().decode("utf-8", "surrogateescape"),
            diff=diff,
            names=names,
            files=files,
        )


def _names(name: str, patch: Path) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """As git has them, which is who applies it: quoted or not, renamed or not."""
    try:
        said = process.run(["git", "apply", "--numstat", "-z", patch.name], env=IDENTITY, cwd=patch.parent).stdout
    except CommandFailed as error:
        why = error.hint.splitlines()
        raise UserError(f"{name} is damaged: {why[0] if why else 'git cannot read it'}", hint="write it again") from None
    names, files = [], []
    fields = iter(said.split("\0"))
    for field in fields:
        if field:
            path = field.split("\t", 2)[2]
            before, after = (path, path) if path else (next(fields), next(fields))
            names += [before, after]
            files.append(after)
    if not files:
        raise UserError(f"{name} is no patch in git am form", hint="its diff changes nothing")
    return tuple(dict.fromkeys(names)), tuple(dict.fromkeys(files))


def _cut(name: str, diff: str) -> str:
    """Without what follows its last hunk: a signature, a mailing list's footer. git does not mind that, but a digest would."""
    lines = diff.split("\n")
    end = at = 0
    while at < len(lines):
        hunk = _HUNK.match(lines[at])
        at += 1
        if hunk:
            left = [int(hunk["before"] or 1), int(hunk["after"] or 1)]
            while any(left) and at < len(lines):
                for side, marks in enumerate(("-", "+")):
                    left[side] -= lines[at][:1] in (marks, " ", "")
                at += 1
            at += lines[at : at + 1] != [] and lines[at].startswith("\\ ")  # No newline at end of file
            end = at
    position = sum(len(line) + 1 for line in lines[:end])
    found = diff[:position] + "".join(section[0] for section in _SECTIONS.finditer(diff, position))
    if not found:
        raise UserError(f"{name} is no patch in git am form", hint="its diff changes nothing")
    return found


def date_of(commit: Commit) -> str:
    """As git takes it; always the same if it says none that can be."""
    parsed = email.utils.parsedate_tz(commit.date)
    try:
        zone = parsed[9] or 0 if parsed else 0
        stamp = email.utils.mktime_tz(parsed) if parsed else -1
    except (ValueError, OverflowError):
        stamp = -1
    if not 0 <= stamp < 1 << 40:
        return "946684800 +0000"
    minutes = abs(zone) // 60
    return f"{int(stamp)} {'-' if zone < 0 else '+'}{minutes // 60:02d}{minutes % 60:02d}"
