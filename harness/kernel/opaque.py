"""Find headers whose effect on a build neither make nor ccache can see.

- A new header may be found earlier in the include path than an existing one of the same name. The
  files that were included before are still there and unchanged, so make and ccache rebuild nothing
  (ccache's manual, "The direct mode").
- A header may make the assembler read a file: `.include` in an asm() statement, as in
  arch/s390/include/asm/fpu-insn.h, or `.incbin`. A dependency file does not list that file.

build.py passes such files to ccache and keeps their digest beside the build directory.
bin/harness-ccache handles sources that use the same directives."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path, PurePosixPath

from msgspec import Struct

from harness import process
from harness.cache import digest_of, file_digest
from harness.tree.store import is_built

_INCLUDABLE = (".h", ".inc", ".def", ".dtsi")
_DIRECTIVE = r"\.inc(bin|lude)[[:space:]\"\\]|#[[:space:]]*embed"
_INCLUDED = re.compile(r"\.include\s+\\?[\"<](?P<path>[^\"\\>]+)")
_COMMENT = re.compile(r"^\s*(?:/?\*(?!.*\*/\s*\S)|//)")
"""A line that is nothing else."""


class Opaque(Struct, frozen=True):
    """`files` are the files that headers include by name. `unknown` lists the headers, with line, whose files cannot be
    determined."""

    files: tuple[Path, ...] = ()
    unknown: tuple[str, ...] = ()
    names: str = ""
    """A digest of the paths of all headers that share their name with another one."""

    @property
    def digest(self) -> str:
        """Digest of `names`, and of the names and the content of `files`."""
        return digest_of(self.names, *(part for path in self.files for part in (str(path), file_digest(path))))


def find(source: Path, folders: tuple[str, ...]) -> Opaque:
    """Search the headers of the git work tree `source`, and of `folders` of its arch/."""
    others = ":(exclude)arch"
    scopes = [["*.h", others], [f"arch/{folder}/*.h" for folder in folders]]
    lines = [line for scope in scopes if scope for line in _grep(source, scope)]
    files: set[Path] = set()
    unknown = []
    for line in lines:
        where, _, text = line.partition(":")
        number, _, code = text.partition(":")
        if _COMMENT.match(code) or where.startswith(("tools/", "scripts/", "Documentation/")):
            continue
        match = _INCLUDED.search(code)
        found = _named(source, match["path"]) if match else []
        files.update(found)
        if not found:
            unknown.append(f"{where}:{number}: {code.strip()}")
    return Opaque(tuple(sorted(files)), tuple(unknown), _shared_names(source, folders))


def _shared_names(source: Path, folders: tuple[str, ...]) -> str:
    listed = process.run(["git", "-C", source, "ls-files", "--", *(f"*{suffix}" for suffix in _INCLUDABLE)]).stdout.splitlines()
    built = [path for path in listed if is_built(path, folders)]
    count = Counter(PurePosixPath(path).name for path in built)
    return digest_of(*(path for path in built if count[PurePosixPath(path).name] > 1))


def _grep(source: Path, scope: list[str]) -> list[str]:
    words: list[str | Path] = ["git", "-C", source, "grep", "--no-color", "-niE", _DIRECTIVE, "--", *scope]
    # In another locale the search takes several times as long.
    return process.run(words, env={"LC_ALL": "C"}, check=False).stdout.splitlines()


def _named(source: Path, name: str) -> list[Path]:
    """The files of the tree that an include path may lead to."""
    words: list[str | Path] = ["git", "-C", source, "ls-files", "--", name, f"*/{name}"]
    return [source / line for line in process.run(words).stdout.splitlines()]
