"""The guest's root: busybox, the agent and what busybox lacks (qemu/guest/), the kernel's modules, and the selftests of the
tree that it was built from. Programs are compiled without a C library, against the kernel's nolibc: no distribution has static
libraries for all architectures."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from harness import paths, process
from harness.arch import Arch
from harness.cache import Cache, file_digest, sizes
from harness.guest import cpio
from harness.guest.userland import Userland, userland
from harness.keys import key
from harness.model import Initramfs, Kernel
from harness.tree import Store

SELFTESTS = "tools/testing/selftests/ftrace"
"""In the tree, and below / in the guest."""

_KIND = "initramfs"
_MADE_FROM = "digest"
"""In the shared cache, the file beside it that holds its digest."""
_RECIPE = 4
_USUAL = 64
"""MiB."""

_FREESTANDING = ("-static", "-O2", "-Wall", "-Werror", "-ffreestanding", "-nostdlib", "-nostdinc", "-fno-stack-protector")

_FOLDERS = ("bin", "dev", "etc", "harness", "lib", "mnt", "proc", "root", "run", "sbin", "sys", "tmp", "usr", "var")


def build_initramfs(kernel: Kernel, commit: str, arch: Arch, compiler: Sequence[str], cache: Cache) -> tuple[Initramfs, bool]:
    """The initramfs for `kernel` with the selftests of `commit`, and whether it was there already. `compiler` is the one that
    built `kernel`."""
    store = Store(cache)
    programs = userland(arch, cache)
    ours = [path for path in sorted(paths.GUEST.rglob("*")) if path.is_file() and paths.MODULES not in path.parents]
    digest = key(
        "initramfs",
        _RECIPE,
        kernel=kernel.digest,
        selftests=store.rev_parse(f"{commit}:{SELFTESTS}"),
        busybox=file_digest(programs.busybox),
        shell=file_digest(programs.shell),
        files={str(path.relative_to(paths.GUEST)): file_digest(path) for path in ours},
    )
    cache.session.use(f"{_KIND}/{digest}")
    path = cache.directory(_KIND) / digest
    if not _whole(path, cache):
        with cache.making(f"{_KIND}/{digest}", f"making the initramfs of {arch.name}"):
            # Another process may have made it in the meantime.
            if not _whole(path, cache) and not _fetched(path, cache):
                with cache.scratch() as scratch:
                    draft = scratch / "initramfs"
                    store.archive(commit, SELFTESTS, scratch / "selftests")
                    _write(draft, scratch, kernel, compiler, programs, ours)
                    _keep(draft, path, cache)
                _share(path, cache)
                sizes.note(cache, arch.name, initramfs=path.stat().st_size)
                return Initramfs(path, digest), False
    _share(path, cache)
    return Initramfs(path, digest), True


def _write(
    draft: Path,
    scratch: Path,
    kernel: Kernel,
    compiler: Sequence[str],
    programs: Userland,
    ours: Sequence[Path],
) -> None:
    """Write the initramfs `draft`, with the selftests that are in `scratch`."""
    nolibc = kernel.headers / "nolibc" / "nolibc.h"
    include: list[str | Path] = ["-isystem", kernel.headers, "-include", nolibc]
    with draft.open("wb") as file:
        root = cpio.Writer(file)
        for folder in _FOLDERS:
            root.directory(folder)
        root.add("bin/busybox", programs.busybox.read_bytes(), executable=True)
        # A file of its own: /proc/<pid>/maps names the file, and a uprobe test looks for a shell
        # there.
        root.add("bin/sh", programs.shell.read_bytes(), executable=True)
        for source in ours:
            if source.suffix == ".c":
                program = scratch / source.stem
                process.run([*compiler, *_FREESTANDING, *include, "-o", program, source])
                root.add(f"bin/{source.stem}", program.read_bytes(), executable=True)
            elif source.suffix != ".h":
                executable = source.parent.name != "etc"
                root.add(_place(source), source.read_bytes(), executable=executable)
        root.tree(scratch / "selftests", SELFTESTS)
        if (modules := kernel.modules / "lib" / "modules").is_dir():
            root.tree(modules, "lib/modules")
        root.close()


def _keep(draft: Path, path: Path, cache: Cache) -> None:
    content = file_digest(draft)
    draft.rename(path)
    cache.write_record(_KIND, path.name, content)


def _whole(path: Path, cache: Cache) -> bool:
    """Whether it is there, and is what was made: after a power cut, parts of a file may be zeros, and a test of zeros passes."""
    return path.is_file() and cache.read_record(_KIND, path.name, str) == file_digest(path)


def _share(path: Path, cache: Cache) -> None:
    if cache.shared is not None:
        with cache.scratch() as alone:
            (alone / _KIND).hardlink_to(path)
            (alone / _MADE_FROM).write_text(path.name)
            cache.shared.store(_KIND, path.name, alone)


def _fetched(path: Path, cache: Cache) -> bool:
    with cache.scratch() as scratch:
        if cache.shared is None or not cache.shared.fetch(_KIND, path.name, scratch):
            return False
        made_from = scratch / _MADE_FROM
        if not made_from.is_file() or made_from.read_text() != path.name:
            cache.shared.reject(_KIND, path.name)
            return False
        _keep(scratch / _KIND, path, cache)
    return True


def room_for(initramfs: Path) -> int:
    """MiB that a guest needs for it beside its usual memory: while it is unpacked, it is there twice."""
    return 2 * max(0, (initramfs.stat().st_size >> 20) - _USUAL)


def _place(source: Path) -> str:
    """qemu/guest/init is /init; the rest keeps its folder, and what has none goes to /harness."""
    inside = source.relative_to(paths.GUEST)
    return str(inside) if inside.name == "init" or len(inside.parts) > 1 else f"harness/{inside}"
