"""Apply patches without the whole tree: in an index that holds nothing but the files that they touch; then the commits are put on
top of the tree. They are the very commits that come of it there, in a tenth of the time."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from harness import process
from harness.errors import CommandFailed
from harness.series.commit import Commit, date_of
from harness.tree import Store
from harness.tree.store import IDENTITY, quoted

_NOTHING = b"0" * 40


def apply(commits: Sequence[Commit], base: str, store: Store) -> list[str]:
    """The ids of those that apply as they are, up to the first that does not."""
    with store.cache.scratch() as scratch:
        git = ["git", "-C", str(scratch)]
        here = {**IDENTITY, "GIT_OBJECT_DIRECTORY": str(store.path / "objects")}
        process.run([*git, "init", "--quiet"], env=here)
        listed = _listed(base, {part for commit in commits for part in _touched(commit)}, store)
        blobs = {path: entry for path, entry in listed.items() if b" blob " in entry}
        (scratch / "listing").write_bytes(b"".join(entry + b"\t" + path + b"\0" for path, entry in blobs.items()))
        process.run(["sh", "-c", "git update-index -z --index-info <listing"], cwd=scratch, env=here)
        tip = start = write(scratch, here, "base", None, "")
        made: list[str] = []
        for one in commits:
            # What is a folder of the tree is not in this index.
            if any(b" blob " not in listed.get(name.encode("utf-8", "surrogateescape"), b" blob ") for name in one.names):
                break
            (scratch / "diff").write_bytes(one.diff.encode("utf-8", "surrogateescape"))
            how = ["apply", "--cached", "--whitespace=nowarn", "diff"]
            if process.run([*git, *how], env=here, check=False, confined=(scratch, store.path)).returncode:
                break
            tip = write(scratch, here, message_of(one), one, tip)
            made.append(tip)
        return _put_on_top(base, start, made, store) if made else []


def message_of(commit: Commit) -> str:
    return f"{commit.subject}\n\n{commit.message}".rstrip("\n") + "\n"


def write(folder: Path, env: dict[str, str], message: str, commit: Commit | None, parent: str) -> str:
    """Commit the index of the repository or work tree `folder`, and return the commit's id."""
    tree = process.run(["git", "-C", folder, "write-tree"], env=env).stdout.strip()
    who = {}
    if commit:
        date = date_of(commit)
        name = (commit.author or commit.email).encode("utf-8", "surrogateescape").decode("utf-8", "replace")
        mail = commit.email.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
        who = {"GIT_AUTHOR_NAME": name, "GIT_AUTHOR_EMAIL": mail, "GIT_AUTHOR_DATE": date, "GIT_COMMITTER_DATE": date}
    parents = ["-p", parent] if parent else []
    with process.start(
        ["git", "-C", folder, "commit-tree", tree, *parents],
        env={**env, **who},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as child:
        output, _ = child.communicate(message.encode("utf-8", "surrogateescape"))
    if child.returncode:
        raise CommandFailed("git commit-tree failed", child.returncode, output.decode("utf-8", "replace"))
    return bytes(output).decode().split()[-1]


def _touched(commit: Commit) -> set[str]:
    """Names before and after; and what they are below, which may be no folder."""
    paths = [PurePosixPath(name) for name in commit.names]
    inside = [path for path in paths if not path.is_absolute() and ".." not in path.parts]
    return {str(part) for path in inside for part in [path, *path.parents]} - {"."}


def _listed(base: str, paths: set[str], store: Store) -> dict[bytes, bytes]:
    """What `base` has of the paths: mode, kind and id."""
    wanted = {path.encode("utf-8", "surrogateescape") for path in paths}
    whole = _raw(store, "ls-tree", "-r", "-t", "-z", base)
    entries = (line.partition(b"\t") for line in whole.split(b"\0"))
    return {path: entry for entry, _, path in entries if path in wanted}


def _put_on_top(base: str, start: str, made: Sequence[str], store: Store) -> list[str]:
    """Raises CommandFailed."""
    argv: list[str | Path] = ["git", "-C", store.path, "fast-import", "--quiet", "--force", "--date-format=raw-permissive"]
    ref = f"refs/harness/quick/{base}"
    with process.start(argv, env=IDENTITY, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as importer:
        words = [f"feature done\nreset {ref}\nfrom {base}\n\n".encode()]
        for before, one in zip([start, *made], made, strict=False):
            head, _, message = _raw(store, "cat-file", "commit", one).partition(b"\n\n")
            people = b"\n".join(line for line in head.split(b"\n") if line.startswith((b"author ", b"committer ")))
            words.append(b"commit %s\n%s\ndata %d\n%s\n" % (ref.encode(), people, len(message), message))
            fields = _raw(store, "diff-tree", "-r", "-z", "--no-renames", "--no-commit-id", before, one).split(b"\0")
            for entry, path in zip(fields[0::2], fields[1::2], strict=False):
                _, mode, _, blob, _ = entry.split()
                name = quoted(path)
                words.append(b"D %s\n" % name if blob == _NOTHING else b"M %s %s %s\n" % (mode, blob, name))
        output, _ = importer.communicate(b"".join([*words, b"done\n"]))
    if importer.returncode:
        raise CommandFailed("git fast-import failed", importer.returncode, output.decode("utf-8", "replace"))
    return store.git("rev-list", "--reverse", f"{base}..{ref}").stdout.split()


def _raw(store: Store, *words: str) -> bytes:
    with process.start(["git", "-C", store.path, *words], env=IDENTITY, stdout=subprocess.PIPE) as child:
        output, _ = child.communicate()
    if child.returncode:
        raise CommandFailed(f"git {words[0]} failed", child.returncode, "")
    return bytes(output)
