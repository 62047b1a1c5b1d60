"""The git store that all trees are imported into."""

from __future__ import annotations

import bz2
import gzip
import lzma
import re
import stat
import subprocess
import tarfile
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path, PurePosixPath
from typing import IO, cast

from harness import process
from harness.cache import STORE, Cache, digest_of
from harness.errors import CommandFailed, InfrastructureError, UserError

NOT_BUILT = ("Documentation", "MAINTAINERS", "CREDITS", "LICENSES", "tools/testing")
"""Files and folders that no build reads, except `_READ_ALL_THE_SAME`."""
_READ_ALL_THE_SAME = ("Documentation/Kconfig",)
"""The top Kconfig file sources it."""
_SPLIT = ("tools", "arch")
"""Folders of which only some subfolders are part of the digest."""

_CONFIGURES = re.compile(r"(?:\t|/)(?:Kconfig[^/]*|configs/.*)$|\t(?:scripts/|init/|Makefile$|arch/[^/]+/(?:Makefile$|tools/))")
"""Paths of what has a say in a configuration: Kconfig files, and what tries the compiler for them."""

_BLOCK = 4096

IDENTITY = {
    "GIT_AUTHOR_NAME": "fgraph-harness",
    "GIT_AUTHOR_EMAIL": "fgraph-harness@localhost",
    "GIT_COMMITTER_NAME": "fgraph-harness",
    "GIT_COMMITTER_EMAIL": "fgraph-harness@localhost",
    "GIT_COMMITTER_DATE": "2000-01-01T00:00:00Z",
    # The user's own configuration (hooks, signing, line endings) has no say in what gets imported or applied.
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_SYSTEM": "/dev/null",
}
"""Everything that could make two machines give the same content different commit ids."""


class Store:
    """A bare repository. Objects only ever get added, so trees that are alike share what they have in common."""

    def __init__(self, cache: Cache) -> None:
        self.cache = cache
        self.path = cache.root / STORE

    def create(self) -> None:
        self.cache.session.use(STORE)
        if (self.path / "HEAD").exists():
            return
        with self.cache.making(STORE, "making the git store"):
            if (self.path / "HEAD").exists():
                return
            with self.cache.publish(self.path) as draft:
                process.run(["git", "init", "--quiet", "--bare", draft])
                for name, value in {"gc.auto": "0", "core.compression": "1", "index.version": "4"}.items():
                    process.run(["git", "-C", draft, "config", name, value])

    def git(self, *arguments: str | Path, check: bool = True) -> subprocess.CompletedProcess[str]:
        return process.run(["git", "-C", self.path, *arguments], env=IDENTITY, check=check)

    def rev_parse(self, revision: str) -> str:
        return self.git("rev-parse", "--verify", "--quiet", revision).stdout.strip()

    def content(self, commit: str, folders: Sequence[str]) -> str:
        """A digest of all that a kernel is built from whose architecture has the `folders` of arch/: commits that differ in
        documentation, in tests or in other architectures only, share it."""
        top = self.git("ls-tree", commit)
        below = self.git("ls-tree", commit, *(f"{folder}/" for folder in _SPLIT), *_READ_ALL_THE_SAME)
        entries = [line.partition("\t") for line in [*top.stdout.splitlines(), *below.stdout.splitlines()]]
        built = [
            f"{entry} {path}"
            for entry, _, path in entries
            if path not in _SPLIT and is_built(f"{path}/" if " tree " in entry else path, folders)
        ]
        return digest_of(*built)

    def configuration(self, commit: str) -> str:
        """A digest of all that a configuration is made from."""
        listing = self.git("ls-tree", "-r", commit).stdout.splitlines()
        return digest_of(*(line for line in listing if _CONFIGURES.search(line)))

    def has(self, commit: str) -> bool:
        return self.git("cat-file", "-e", f"{commit}^{{tree}}", check=False).returncode == 0

    def has_folder(self, commit: str, path: str) -> bool:
        return self.git("rev-parse", "--verify", "--quiet", f"{commit}:{path}", check=False).returncode == 0

    def read_file(self, commit: str, path: str) -> str:
        """Raises CommandFailed if the commit has no such file."""
        return self.git("show", f"{commit}:{path}").stdout

    def archive(self, commit: str, path: str, destination: Path) -> None:
        """Write the folder `path` of a commit below `destination`. Raises CommandFailed if it has none."""
        destination.mkdir(parents=True, exist_ok=True)
        file = destination / ".archive.tar"
        self.git("archive", "--format=tar", f"--output={file}", f"{commit}:{path}")
        process.run(["tar", "-C", destination, "-xf", file])
        file.unlink()

    def import_tarball(self, path: Path, ref: str) -> str:
        """Make a commit of a tarball's content, without its top folder, and return the commit's id.

        Members go straight into git, nothing is unpacked. Raises UserError for a damaged tarball and for one with a
        member that has no business in a source tree."""
        self.create()
        try:
            with process.start(
                ["git", "-C", self.path, "fast-import", "--quiet", "--force"],
                env=IDENTITY,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
            ) as importer:
                assert importer.stdin is not None
                with _decompressed(path) as stream:
                    with tarfile.open(fileobj=stream, mode="r|") as tar:
                        _fast_import(tar, importer.stdin, f"refs/harness/{ref}", path.name)
                        # tarfile takes a damaged header for the end of the archive, which is marked by two blocks of zeros.
                        mark = cast(IO[bytes], tar.fileobj).read(tarfile.BLOCKSIZE)
                        if len(mark) != tarfile.BLOCKSIZE or any(mark):
                            raise tarfile.ReadError("it does not end where it should")
                    # The sum that tells a damaged file stands at its very end.
                    while stream.read(1 << 20):
                        pass
                importer.stdin.write(b"done\n")
                output, _ = importer.communicate()
        except (tarfile.TarError, EOFError, gzip.BadGzipFile, lzma.LZMAError, zlib.error) as error:
            raise UserError(f"{path.name} is damaged or no tarball: {error}", hint="fetch it again") from error
        except BrokenPipeError as error:
            raise InfrastructureError("git fast-import ended early", hint="is the disk full?") from error
        except OSError as error:
            if error.errno is None:  # bz2's way of saying it
                raise UserError(f"{path.name} is damaged: {error}", hint="fetch it again") from error
            raise
        if importer.returncode != 0:
            raise InfrastructureError("git fast-import failed", hint=output.decode(errors="replace"))
        return self.rev_parse(f"refs/harness/{ref}")

    def fetch(self, repository: str, reference: str, ref: str) -> str:
        """Copy one commit of another repository, without its history. That repository is only read."""
        self.create()
        source = Path(repository).resolve()
        if not source.is_dir():
            raise UserError(f"no repository at {repository}", hint="git:PATH#REF")
        url, target = f"file://{source}", f"refs/harness/{ref}"
        command = ("fetch", "--quiet", "--depth=1", "--no-tags", url)
        with self.cache.making(f"{STORE}/fetch", f"fetching from {source}"):
            # What a git that was killed left behind: no other one fetches now.
            for name in ("shallow", target):
                (self.path / f"{name}.lock").unlink(missing_ok=True)
            try:
                self.git(*command, f"+{reference}:{target}")
            except CommandFailed as error:
                # A bare commit id can be fetched only where it is advertised. A local repository
                # can be asked for its name.
                asked = ("rev-parse", "--verify", "--quiet", reference + "^{commit}")
                known = process.run(["git", "-C", source, *asked], check=False)
                if known.returncode != 0:
                    hint = "a branch, a tag or a commit"
                    raise UserError(f"{repository} has no '{reference}'", hint=hint) from error
                commit = known.stdout.strip()
                self.git("-c", "protocol.version=2", *command, f"+{commit}:{target}")
            # An annotated tag is an object of its own.
            return self.rev_parse(f"{target}^{{commit}}")

    def size(self, commit: str) -> int:
        """The bytes that a work tree of `commit` takes on a disk with blocks of 4 KiB."""
        lines = self.git("ls-tree", "-r", "-l", commit).stdout.splitlines()
        fields = [line.partition("\t")[0].split() for line in lines]
        sizes = [int(size) for *_, size in fields if size.isdecimal()]
        return sum(-(-size // _BLOCK) * _BLOCK for size in sizes)

    def tree(self, commit: str) -> str:
        """The id of the tree object: it covers the whole content of the commit."""
        return self.rev_parse(f"{commit}^{{tree}}")


def is_built(path: str, folders: Sequence[str]) -> bool:
    """True if the build of a kernel may read `path`, a file of the tree or a folder with a slash at its end. `folders` are the
    architecture's folders of arch/."""
    if path in _READ_ALL_THE_SAME:
        return True
    if any(path.startswith(f"{name}/") or path == name for name in NOT_BUILT):
        return False
    top, *inside = path.split("/")
    return top != "arch" or len(inside) < 2 or inside[0] in folders


def _decompressed(path: Path) -> IO[bytes]:
    """tarfile's own streams do not look at the checksums."""
    with path.open("rb") as file:
        magic = file.read(6)
    opened = next((opener for start, opener in _DECOMPRESSORS.items() if magic.startswith(start)), None)
    return opened(path) if opened else path.open("rb")


_DECOMPRESSORS: dict[bytes, Callable[[Path], IO[bytes]]] = {
    b"\x1f\x8b": lambda path: cast(IO[bytes], gzip.open(path)),
    b"\xfd7zXZ": lambda path: cast(IO[bytes], lzma.open(path)),
    b"BZh": lambda path: cast(IO[bytes], bz2.open(path)),
}


def quoted(path: bytes) -> bytes:
    """As git fast-import takes it."""
    return b'"%s"' % path.replace(b"\\", b"\\\\").replace(b'"', b'\\"').replace(b"\n", b"\\n")


def _fast_import(tar: tarfile.TarFile, out: IO[bytes], ref: str, name: str) -> None:
    message = f"Import {name}\n".encode()
    date = b"946684800 +0000"
    out.write(b"feature done\ncommit %s\n" % ref.encode())
    out.write(b"committer fgraph-harness <fgraph-harness@localhost> %s\n" % date)
    out.write(b"data %d\n%s" % (len(message), message))
    for member in tar:
        path = PurePosixPath(member.name)
        if path.is_absolute() or ".." in path.parts:
            raise UserError(f"{name} holds the path '{member.name}'", hint="a source tarball stays inside its own folder")
        inside = "/".join(path.parts[1:])
        if member.isdir() or not inside:
            continue
        if member.issym():
            mode, data = b"120000", member.linkname.encode()
        elif member.isfile():
            mode = b"100755" if member.mode & stat.S_IXUSR else b"100644"
            file = tar.extractfile(member)
            assert file is not None
            data = file.read()
            if len(data) != member.size:
                raise EOFError(f"{member.name} is cut short")
        else:
            raise UserError(f"{name} holds '{member.name}', which is no file", hint="is this a kernel source tarball?")
        out.write(b"M %s inline %s\ndata %d\n" % (mode, quoted(inside.encode()), len(data)))
        out.write(data)
        out.write(b"\n")
