"""Build a kernel and keep it under the digest of everything that went into it."""

from __future__ import annotations

import contextlib
import functools
import shutil
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from harness import paths, tree
from harness.arch import Arch
from harness.cache import Cache, contents, file_digest, sessions, sizes
from harness.errors import CommandFailed, HarnessError
from harness.kernel import artefact, kconfig, make, opaque
from harness.kernel.compilation import Progress
from harness.kernel.jobserver import Jobserver
from harness.kernel.make import Job
from harness.kernel.toolchain import Toolchain
from harness.kernel.warnings import Standing
from harness.keys import key
from harness.model import Kernel, Point
from harness.tree import Store

_RECIPE = 8
"""Part of every digest: raise it when a change here makes kernels that are cached unlike those it would build, or when those that
are cached cannot be trusted (up to 5, an image could be made from another vmlinux than the one beside it; in 6, from objects that
were left over, see tests/unit/test_stale.py)."""

_ENDED = (1, 2)
"""The statuses of a command that failed and ended by itself: make removes the targets of recipes that fail."""


class _Wanted(Struct, frozen=True):
    """What `build` is asked for."""

    point: Point
    arch: Arch
    fragments: Sequence[Path]
    toolchain: Toolchain
    cache: Cache
    directory: Path
    required: Sequence[Path]
    unproved: Sequence[Path]

    @property
    def log(self) -> Path:
        return self.directory / "build.log"


def build(
    point: Point,
    arch: Arch,
    fragments: Sequence[Path],
    toolchain: Toolchain,
    cache: Cache,
    directory: Path,
    *,
    jobserver: Jobserver,
    required: Sequence[Path] = (),
    unproved: Sequence[Path] = (),
    progress: Progress = lambda objects, file: None,
) -> tuple[Kernel, bool]:
    """The kernel of `arch` at `point`, and whether it was there already, in which case nothing runs at all.

    `directory` gets `.config`, and `build.log` with make's output behind the line that repeats it. `required` and `unproved` are
    those of `kconfig.configure`; `progress` is called as objects are compiled. Raises ConfigNotProved, BuildFailed, and
    InfrastructureError for a full disk and for an image that is not made from its vmlinux even in a clean build."""
    wanted = _Wanted(point, arch, fragments, toolchain, cache, directory, required, unproved)
    home = cache.root / "kernels" / digest_for(point, arch, fragments, toolchain, cache)
    known, _ = artefact.find(home, cache)
    if found := known or artefact.fetch(home, cache):
        return _taken(found, wanted), True
    cache.start_building()
    with artefact.making(home.name, f"building the kernel {arch.name}/{point.name}", cache):
        # Another process may have built it in the meantime.
        known, distrust = artefact.find(home, cache)
        if known:
            return _taken(known, wanted), True
        kernel = _made(wanted, home.name, jobserver, progress, distrust)
        artefact.keep(kernel, cache)
        return kernel, False


def digest_for(
    point: Point,
    arch: Arch,
    fragments: Sequence[Path],
    toolchain: Toolchain,
    cache: Cache,
) -> str:
    """The digest of everything that the kernel is made from."""
    return key(
        "kernel",
        _RECIPE,
        tree=Store(cache).content(point.commit, arch.kernel.folders),
        build=arch.kernel,
        compiler=toolchain.version,
        variables=toolchain.variables,
        tools=toolchain.tools,
        fragments=[(path.name, file_digest(path)) for path in fragments],
        named=[(path, file_digest(path)) for path in kconfig.named_files(fragments)],
        modules={path.name: file_digest(path) for path in paths.MODULES.iterdir()},
    )


def _taken(known: Kernel, wanted: _Wanted) -> Kernel:
    """A kernel that is there. Its content is the same, but this point may ask more of it."""
    shutil.copy2(known.config, wanted.directory / ".config")
    proved = (wanted.fragments, wanted.required, wanted.unproved)
    sources = functools.partial(tree.sources, Store(wanted.cache), wanted.point.commit)
    kconfig.prove(known.config, wanted.arch, *proved, sources, wanted.toolchain)
    wanted.log.write_text(f"# nothing to build: kernel {known.digest} is in the cache\n")
    return known


def _made(
    wanted: _Wanted,
    digest: str,
    jobserver: Jobserver,
    progress: Progress,
    distrust: str,
) -> Kernel:
    """Build the kernel. `distrust` is the reason why the one in the cache is not taken."""
    arch, toolchain, cache = wanted.arch, wanted.toolchain, wanted.cache
    with tree.sources(Store(cache), wanted.point.commit) as source:
        output = source.parent / f"{arch.name}-{toolchain.kind}"
        name = str(output.relative_to(cache.root))
        where = f"building {arch.name}/{wanted.point.name} in {name}"
        with cache.making(name, where):
            start = time.monotonic()  # waiting for other builds does not count
            sessions.stamp(cache.root, name)
            job = Job(arch, toolchain, cache, source, output, wanted.log, jobserver, progress)
            unseen = opaque.find(source, arch.kernel.folders)
            _forget_if_stale(output, unseen)
            with _marked(output):
                kernel = _built(job, wanted, digest, unseen)
            folders = {"kernel": kernel.directory, "build": output}
            taken = {name: contents.disk_size(path) for name, path in folders.items()}
            sizes.note(cache, arch.name, **taken)
    if distrust:
        with wanted.log.open("a") as file:
            file.write(f"# made again: kernel {digest} was in the cache, but {distrust}\n")
    return msgspec.structs.replace(kernel, seconds=time.monotonic() - start)


@contextlib.contextmanager
def _marked(output: Path) -> Iterator[None]:
    """Mark the build directory while commands write to it. The mark stays if one of them was killed, by us or by the system: a
    target that its recipe had not finished is newer than its sources then, and make would take it for up to date."""
    mark = _mark(output)
    mark.touch()
    try:
        yield
    except HarnessError as error:
        if not isinstance(error.__cause__, CommandFailed) or error.__cause__.status in _ENDED:
            mark.unlink()
        raise
    mark.unlink()


def _mark(output: Path) -> Path:
    # Beside the directory: what is in it can be written by the tree's own makefiles.
    return output.with_name(f"{output.name}.unfinished")


def _built(job: Job, wanted: _Wanted, digest: str, unseen: opaque.Opaque) -> Kernel:
    store, source, output = Store(job.cache), job.source, job.output
    arch, toolchain = job.arch, job.toolchain
    proved = (wanted.required, wanted.unproved)
    commit = wanted.point.commit
    try:
        made_from = store.configuration(commit)
        words = (source, output, arch, wanted.fragments, toolchain, *proved)
        config = kconfig.configure(*words, made_from)
    except CommandFailed as error:
        make.blame_disk(error, output)
        message = f"the tree cannot be configured: {error.message}"
        raise kconfig.ConfigNotProved(message, hint=error.output) from error
    finally:
        if (output / ".config").exists():
            shutil.copy2(output / ".config", wanted.directory / ".config")
    return make.compiled(job, config, digest, store.tree(commit), unseen)


def _forget_if_stale(output: Path, unseen: opaque.Opaque) -> None:
    """Remove the build directory `output` if make could take what is in it for up to date though it is not, or if it is not
    known which warnings its objects caused."""
    # The stamp lies beside the directory, because the tree's own makefiles can write inside of it.
    stamp = output.with_name(f"{output.name}.opaque")
    killed = _mark(output).exists()
    if killed or not Standing(output, output).known or not stamp.exists() or stamp.read_text() != unseen.digest:
        shutil.rmtree(output, ignore_errors=True)
        output.parent.mkdir(parents=True, exist_ok=True)
        stamp.write_text(unseen.digest)
