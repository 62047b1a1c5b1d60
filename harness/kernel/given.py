"""A kernel that somebody else built: an image, its configuration, its modules; or a distribution's package with all of them."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec import Struct

from harness import process, tree
from harness.arch import Arch
from harness.cache import Cache, digest_of, file_digest
from harness.errors import CommandFailed, UserError
from harness.kernel import artefact, identity
from harness.kernel.toolchain import Toolchain
from harness.keys import key
from harness.model import Kernel
from harness.tree import Store

_RECIPE = 3
_DEBIAN = re.compile(rb" Debian (\d+\.\d+\.\d+)-\d")
"""Whose releases, 6.1.0-56-amd64, do not tell one stable kernel from the next."""
_BANNER = re.compile(rb"(?:Linux version )?(\d+\.\d+\.\d+[\w.+~-]*) \([^)\n]+\) ")
"""As the kernel introduces itself; the setup code of x86 has it uncompressed, too."""
_NAMED = re.compile(r"(?:vmlinu[xz]|bzImage|Image)-(?P<release>\d+\.\d+.*)")
_IS_RELEASE = re.compile(r"\d+\.\d+")
_SOURCES = ("build", "source")
"""Links to what the modules were built from, or that itself."""
_MODULES = ("lib/modules", "usr/lib/modules", "")


class Given(Struct, frozen=True):
    """What `--kernel` and `--modules` name: an image or a Debian package, and a folder in which lib/modules/<release> is."""

    image: Path
    modules: Path | None = None


def adopt(given: Given, arch: Arch, toolchain: Toolchain, commit: str, cache: Cache) -> tuple[Kernel, bool]:
    """The kernel, in the cache, and whether it was there before. The guest's own programs are compiled against the user-space
    headers of `commit`. Raises UserError for what is no kernel, or has no configuration."""
    with _unpacked(given, cache) as (image, folder):
        release = _one_release(image, folder)
        config = _config(given, image, folder, release, commit, cache)
        digest = key(
            "prebuilt kernel",
            _RECIPE,
            image=file_digest(image),
            release=release,
            config=config,
            compiler=toolchain.version,
            tree=Store(cache).content(commit, arch.kernel.folders),
            files=dict(_listed(folder)),
        )
        home = cache.root / "kernels" / digest
        if known := _known(home, image, cache):
            return known, True
        with artefact.making(digest, f"copying the kernel {given.image}", cache):
            # Another process may have copied it in the meantime.
            if known := _known(home, image, cache):
                return known, True
            with cache.publish(home) as draft:
                _fill(draft, image, folder, release, config)
                _headers(draft / "include", arch, toolchain, commit, cache)
            kernel = _described(home, arch, release, config, cache)
            cache.write_record("kernels", digest, kernel)
            return kernel, False


def _fill(draft: Path, image: Path, folder: Path | None, release: str, config: str) -> None:
    shutil.copyfile(image, draft / "image")
    (draft / ".config").write_text(config)
    modules = draft / "modules"
    modules.mkdir()
    if folder:

        def sources(path: str, names: list[str]) -> Sequence[str]:
            return _SOURCES if Path(path) == folder else ()

        place = modules / "lib" / "modules" / release
        shutil.copytree(folder, place, symlinks=True, ignore=sources)
        # A package leaves that to its installation.
        process.run(["depmod", "-b", modules, release])


def _described(home: Path, arch: Arch, release: str, config: str, cache: Cache) -> Kernel:
    return Kernel(
        arch=arch.name,
        digest=home.name,
        directory=home,
        release=release,
        image=home / "image",
        vmlinux=home / "vmlinux",
        modules=home / "modules",
        headers=home / "include",
        config=home / ".config",
        config_digest=digest_of(config),
        compiler="not built here",
        objects=0,
        seconds=0.0,
        modules_error="the kernel was not built here",
        build_ids=identity.image_ids(home / "image", cache),
        module_ids=identity.module_ids(home / "modules"),
    )


def _known(home: Path, image: Path, cache: Cache) -> Kernel | None:
    """The kernel in the cache, if it still equals the prebuilt one."""
    cache.session.use(f"kernels/{home.name}")
    known = cache.read_record("kernels", home.name, Kernel)
    if known is not None and known.directory == home and _unchanged(known, image):
        return known
    return None


def _unchanged(known: Kernel, image: Path) -> bool:
    """True if the copy in the cache still equals the prebuilt kernel."""
    kept = known.image.is_file() and file_digest(known.image) == file_digest(image)
    return kept and identity.module_ids(known.modules) == known.module_ids


def version_of(given: Given, kernel: Kernel) -> str:
    """The upstream version that it was built from, as far as that is told."""
    if given.image.suffix == ".deb":
        return process.run(["dpkg-deb", "-f", given.image, "Version"]).stdout.strip()
    said = _DEBIAN.search(kernel.image.read_bytes())
    return said[1].decode() if said else kernel.release


@contextlib.contextmanager
def _unpacked(given: Given, cache: Cache) -> Iterator[tuple[Path, Path | None]]:
    """The image, and the folder of its modules, named after its release."""
    if not given.image.is_file() or not os.access(given.image, os.R_OK):
        raise UserError(f"no kernel at {given.image}", hint="--kernel takes an image or a linux-image .deb")
    if given.image.suffix != ".deb":
        yield given.image, _folder(given.modules) if given.modules else None
        return
    with cache.scratch() as scratch:
        try:
            process.run(["dpkg-deb", "-x", given.image, scratch])
        except CommandFailed as error:
            raise UserError(f"{given.image} cannot be unpacked: {error.hint}", hint="--kernel takes a linux-image .deb") from None
        images = [path for path in sorted(scratch.glob("boot/*")) if _NAMED.fullmatch(path.name)]
        if len(images) != 1:
            raise UserError(f"{given.image} holds {len(images)} kernels", hint="--kernel takes a linux-image .deb")
        yield images[0], _folder(given.modules or scratch)


def _folder(given: Path) -> Path:
    """Of one release, in what was named."""
    if (given / "kernel").is_dir():
        return given.resolve()
    for inside in _MODULES:
        found = [path for path in sorted((given / inside).glob("*")) if (path / "kernel").is_dir()]
        if len(found) == 1:
            return found[0].resolve()
        if found:
            names = ", ".join(path.name for path in found)
            raise UserError(f"{given} holds the modules of several kernels: {names}", hint=f"--modules {found[0]}")
    raise UserError(f"{given} holds no modules", hint="--modules takes what has lib/modules/<release> in it, or that folder")


def _listed(folder: Path | None) -> Iterator[tuple[str, str]]:
    """The name of each file, and the digest of its content or the target of its link."""
    for path in sorted(folder.rglob("*")) if folder else ():
        name = path.relative_to(folder) if folder else path
        if name.parts[0] not in _SOURCES and not path.is_dir():
            yield str(name), f"-> {path.readlink()}" if path.is_symlink() else file_digest(path)


def _release(image: Path) -> str:
    """As far as the image tells, else empty."""
    said = _BANNER.search(image.read_bytes())
    if said:
        return said[1].decode()
    named = _NAMED.fullmatch(image.name)
    return named["release"] if named else ""


def _one_release(image: Path, folder: Path | None) -> str:
    """Of both. Raises UserError if they do not fit together."""
    told = _release(image)
    named = folder.name if folder and _IS_RELEASE.match(folder.name) else ""
    if told and named and told != named:
        raise UserError(f"the kernel is {told}, the modules are those of {named}", hint="--modules takes its own")
    if folder and not (told or named):
        raise UserError(f"nobody knows which kernel {folder} is for", hint="a folder called lib/modules/<release>")
    return told or named or "unknown"


def _config(given: Given, image: Path, folder: Path | None, release: str, commit: str, cache: Cache) -> str:
    """The text of its .config: what the image has in itself, or a file beside the image, the package or the modules."""
    with cache.scratch() as scratch:
        script = scratch / "extract-ikconfig"
        script.write_text(Store(cache).read_file(commit, "scripts/extract-ikconfig"))
        found = process.run(["bash", script, image], cwd=scratch, check=False, confined=(scratch,))
    if found.returncode == 0 and "CONFIG_" in found.stdout:
        return found.stdout
    beside = [image.parent / f"config-{release}", given.image.parent / f"config-{release}", given.image.parent / ".config"]
    for path in [*beside, *([folder / "config"] if folder else [])]:
        if path.is_file():
            return path.read_text(errors="replace")
    raise UserError(f"no configuration of {given.image}", hint=f"put it beside that, as config-{release}")


def _headers(target: Path, arch: Arch, toolchain: Toolchain, commit: str, cache: Cache) -> None:
    with tree.sources(Store(cache), commit) as source, cache.scratch() as scratch:
        variables = [f"O={scratch}", *toolchain.variables]
        process.run(["make", "-C", source, *variables, "headers"], confined=(scratch,))
        made = scratch / "usr" / "include"
        shutil.copytree(made, target, ignore=shutil.ignore_patterns(".*"))
        shutil.copytree(source / "tools" / "include" / "nolibc", target / "nolibc")
