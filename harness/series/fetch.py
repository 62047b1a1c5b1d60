"""Where mails and commits of a series are kept: mbox files, Maildirs, git repositories, lore.kernel.org."""

from __future__ import annotations

import os
import re
import sys
import tempfile
from pathlib import Path

from harness import process
from harness.cache import Cache
from harness.errors import CommandFailed, InfrastructureError, UserError
from harness.tree.store import IDENTITY

LORE_VARIABLE = "HARNESS_LORE"
"""Names another public-inbox to use instead of lore.kernel.org/all."""

_SECONDS = 300.0

_FORMAT = ("--no-signature", "--zero-commit", "--binary", "--full-index", "--numbered")

_ATTESTED = re.compile(r"^\s*[vx] ((?:Signed|BADSIG|No key): .*?)\s*$", re.MULTILINE)


def mails(path: Path) -> list[bytes]:
    """Of an mbox file or a Maildir, in their order; a file that is neither is taken for one mail. Raises UserError if there is
    nothing."""
    if path.is_dir():
        files = sorted(file for folder in ("cur", "new") for file in (path / folder).glob("*") if file.is_file())
        found = [file.read_bytes() for file in files]
    else:
        with tempfile.TemporaryDirectory(prefix="harness-") as folder:
            try:
                # git knows a line that begins a mail from one that just begins with From.
                process.run(["git", "mailsplit", "-b", "--keep-cr", "--mboxrd", "-d8", f"-o{folder}", path], env=IDENTITY)
            except CommandFailed as error:
                why = error.hint.strip().splitlines()
                raise UserError(why[0] if why else f"{path} holds no mail", hint="an mbox file, or a Maildir") from None
            found = [file.read_bytes() for file in sorted(Path(folder).iterdir())]
    if not found:
        raise UserError(f"{path} holds no mail", hint="an mbox file, or a Maildir")
    return found


def commits(repository: Path, span: str, cache: Cache) -> tuple[list[tuple[str, bytes]], str]:
    """The commits of A..B as git format-patch writes them, by name, and the commit that they are based on. Those that change
    nothing are left out. The repository is only read. Raises UserError."""
    start, separator, end = span.partition("..")
    if not separator or not start or end.startswith("."):
        raise UserError(f"'{span}' is no range of commits", hint="git:REPO#A..B, with all after A up to B")
    theirs: list[str | Path] = ["git", "-C", repository]
    try:
        objects = process.run(
            [*theirs, "rev-parse", "--path-format=absolute", "--git-path", "objects"], env=IDENTITY
        ).stdout.strip()
    except CommandFailed:
        raise UserError(f"no git repository at {repository}", hint="git:REPO#A..B") from None
    ids = []
    for name in (start, end or "HEAD"):
        found = process.run([*theirs, "rev-parse", "--verify", "--quiet", f"{name}^{{commit}}"], env=IDENTITY, check=False)
        if found.returncode:
            raise UserError(f"{repository} has no '{name}'", hint="git:REPO#A..B, with all after A up to B")
        ids.append(found.stdout.strip())
    with cache.scratch() as scratch:
        # From a repository of our own, which only borrows theirs: so that nothing that is configured there has a say.
        git: list[str | Path] = ["git", "-C", scratch]
        process.run([*git, "init", "--quiet", "--bare"], env=IDENTITY)
        (scratch / "objects" / "info" / "alternates").write_text(f"{objects}\n")
        between = f"{ids[0]}..{ids[1]}"
        listed = process.run([*git, "rev-list", "--parents", between], env=IDENTITY).stdout.splitlines()
        if merges := [line.split()[0] for line in listed if len(line.split()) > 2]:
            raise UserError(f"{span} holds a merge: {merges[0][:12]}", hint="rebase it: a merge cannot be sent as a patch")
        if not listed:
            raise UserError(f"{span} is empty", hint="git:REPO#A..B, with all after A up to B")
        process.run([*git, "format-patch", "--quiet", *_FORMAT, "-o", scratch / "out", between], env=IDENTITY)
        written = [(path.name, path.read_bytes()) for path in sorted((scratch / "out").iterdir())]
        based = process.run([*git, "merge-base", *ids], env=IDENTITY, check=False).stdout.strip()
    changing = [(name, data) for name, data in written if b"\ndiff --git " in data]
    if not changing:
        raise UserError(f"{span} changes nothing", hint="git:REPO#A..B, with all after A up to B")
    return changing, based


def thread(message_id: str, cache: Cache) -> tuple[list[bytes], list[str]]:
    """The mails of a thread on lore.kernel.org, and what b4 says of their signatures. Raises InfrastructureError if b4 cannot
    have it."""
    if not re.fullmatch(r"[^\s<>-][^\s<>]*@[^\s<>]+", message_id):
        raise UserError(f"'{message_id}' is no message id", hint="lore:MESSAGE-ID, as the mail's header has it, without < and >")
    home = cache.directory("b4")
    env = {name: str(home) for name in ("XDG_CACHE_HOME", "XDG_DATA_HOME", "HOME")} | IDENTITY
    b4 = [sys.executable, "-m", "b4.command", "--no-interactive", "-c", "b4.attestation-checkmarks=simple"]
    if mirror := os.environ.get(LORE_VARIABLE):
        b4 += ["-c", f"b4.midmask={mirror.rstrip('/')}/%s"]
    with cache.scratch() as scratch:
        try:
            process.run(
                [*b4, "mbox", "-o", str(scratch), "-n", "thread", "--", message_id], env=env, cwd=scratch, timeout=_SECONDS
            )
        except CommandFailed as error:
            said = error.output.strip().splitlines()
            raise InfrastructureError(
                f"b4 cannot get {message_id}: {said[-1] if said else 'it said nothing'}",
                hint="without network: save the thread somewhere else and use --series FILE, or --mbox FILE for a series that "
                "names its origin",
            ) from None
        saved = next(iter(scratch.glob("thread*")))
        am = ["am", "-T", "-m", str(saved), "-o", str(scratch / "am"), "--", message_id]
        checked = process.run([*b4, *am], env=env, cwd=scratch, check=False, timeout=_SECONDS)
        attested = list(dict.fromkeys(_ATTESTED.findall(checked.stdout))) or ["no signature that b4 could check"]
        return mails(saved), attested
