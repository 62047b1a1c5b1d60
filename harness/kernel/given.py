"""A kernel that somebody else built: an image, its configuration, its modules; or a distribution's package with all of them."""

from __future__ import annotations

import contextlib
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from harness import process
from harness.arch import Arch
from harness.cache import Cache, digest_of, file_digest
from harness.errors import CommandFailed, UserError
from harness.kernel.toolchain import Toolchain
from harness.model import Kernel
from harness.tree import Store

_RECIPE = "1"
_BANNER = re.compile(rb"(?:Linux version )?(\d+\.\d+\.\d+[\w.+~-]*) \([^)\n]+\) ")
"""As the kernel introduces itself; the setup code of x86 has it uncompressed, too."""
_NAMED = re.compile(r"(?:vmlinu[xz]|bzImage|Image)-(?P<release>\d+\.\d+.*)")
_MODULES = ("lib/modules", "usr/lib/modules", "")


class Given(Struct, frozen=True):
    """What `--kernel` and `--modules` name: an image or a Debian package, and a folder in which lib/modules/<release> is."""

    image: Path
    modules: Path | None = None


def adopt(given: Given, arch: Arch, toolchain: Toolchain, commit: str, cache: Cache) -> tuple[Kernel, bool]:
    """The kernel, in the cache, and whether it was there before. The guest's own programs are compiled against the user-space
    headers of `commit`. Raises UserError for what is no kernel, or has no configuration."""
    with _unpacked(given, cache) as (image, folder):
        config = _config(image, folder, commit, cache)
        files = sorted(path for path in folder.rglob("*") if path.is_file() and not path.is_symlink()) if folder else []
        digest = digest_of(
            *(_RECIPE, file_digest(image), config, toolchain.version, Store(cache).content(commit, arch.kernel.folders)),
            *(part for path in files for part in (str(path.relative_to(folder or path)), file_digest(path))),
        )
        home = cache.root / "kernels" / digest
        known = cache.read_record("kernels", digest, Kernel)
        if known is not None and known.image.exists() and known.directory == home:
            return known, True
        release = folder.name if folder else _release(image)
        with cache.publish(home) as draft:
            shutil.copyfile(image, draft / "image")
            (draft / ".config").write_text(config)
            modules = draft / "modules"
            modules.mkdir()
            if folder:
                shutil.copytree(folder, modules / "lib" / "modules" / release, symlinks=True)
                for link in ("build", "source"):
                    (modules / "lib" / "modules" / release / link).unlink(missing_ok=True)
                # A package leaves that to its installation.
                process.run(["depmod", "-b", modules, release])
            _headers(draft / "include", arch, toolchain, commit, cache)
    kernel = Kernel(
        arch=arch.name,
        digest=digest,
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
    )
    cache.write_record("kernels", digest, kernel)
    return kernel, False


@contextlib.contextmanager
def _unpacked(given: Given, cache: Cache) -> Iterator[tuple[Path, Path | None]]:
    """The image, and the folder of its modules, named after its release."""
    if not given.image.is_file():
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


def _release(image: Path) -> str:
    if named := _NAMED.fullmatch(image.name):
        return named["release"]
    said = _BANNER.search(image.read_bytes())
    return said[1].decode() if said else "unknown"


def _config(image: Path, folder: Path | None, commit: str, cache: Cache) -> str:
    """The text of its .config: a file beside the image or the modules, or what the image has in itself."""
    release = folder.name if folder else _release(image)
    beside = [image.parent / f"config-{release}", image.parent / ".config", *([folder / "config"] if folder else [])]
    for path in beside:
        if path.is_file():
            return path.read_text(errors="replace")
    with cache.scratch() as scratch:
        script = scratch / "extract-ikconfig"
        script.write_text(Store(cache).read_file(commit, "scripts/extract-ikconfig"))
        found = process.run(["bash", script, image], cwd=scratch, check=False, confined=(scratch,))
    if found.returncode == 0 and "CONFIG_" in found.stdout:
        return found.stdout
    raise UserError(f"no configuration of {image}", hint=f"put it beside the image, as config-{release}")


def _headers(target: Path, arch: Arch, toolchain: Toolchain, commit: str, cache: Cache) -> None:
    source = Store(cache).sources(commit)
    with cache.scratch() as scratch:
        process.run(["make", "-C", source, f"O={scratch}", *toolchain.variables, "headers"], confined=(scratch,))
        shutil.copytree(scratch / "usr" / "include", target, ignore=shutil.ignore_patterns(".*"))
    shutil.copytree(source / "tools" / "include" / "nolibc", target / "nolibc")
