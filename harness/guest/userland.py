"""The guest's userland: a statically linked busybox of its architecture, taken from Debian's archive.

Foreign architectures are fetched with lists of their own below the cache, checked by apt against the archive's signature:
neither dpkg's architectures nor the machine's own lists change, and nobody needs to be root."""

from __future__ import annotations

import os
from pathlib import Path

from msgspec import Struct

from harness import packages, process
from harness.arch import Arch, Debian
from harness.cache import Cache
from harness.errors import CommandFailed, InfrastructureError

_KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"


class Userland(Struct, frozen=True):
    """Static programs that run on an architecture. `shell` is /bin/sh, often busybox itself."""

    busybox: Path
    shell: Path


def userland(arch: Arch, cache: Cache) -> Userland:
    """Raises InfrastructureError if it cannot be had."""
    busybox = _program("busybox", "busybox-static", arch, cache)
    return Userland(busybox, _program(arch.debian.shell, arch.debian.shell, arch, cache) if arch.debian.shell else busybox)


def _program(name: str, package: str, arch: Arch, cache: Cache) -> Path:
    """A program of a package, fetched once."""
    own = "-".join(filter(None, [name, arch.debian.suite, arch.debian.arch]))
    cache.session.use(f"downloads/{own}")
    folder = cache.directory("downloads") / own
    found = folder / "bin" / name
    if not found.exists():
        with cache.making(f"downloads/{own}", f"downloading {package} for {arch.debian.arch}"):
            if not found.exists():
                _fetch(name, package, arch, cache, folder)
    return found


def _fetch(name: str, package: str, arch: Arch, cache: Cache, folder: Path) -> None:
    """Fill `folder`."""
    if not packages.apt_is_here():
        hint = f"put one at {folder}/bin/{name}"
        raise InfrastructureError(f"no static {name} for {arch.name}", hint=hint)
    with cache.publish(folder) as draft, cache.scratch() as scratch:
        options = _private_apt(arch.debian, scratch)
        # One list of several may be out of step on a mirror; what counts is whether the package can be had.
        updated = process.run(["apt-get", *options, "update"], env={"LC_ALL": "C"}, check=False)
        try:
            process.run(["apt-get", *options, "download", package], cwd=draft)
        except CommandFailed as error:
            advice = f"{error.hint}\n{updated.stdout[-1000:]}"
            raise InfrastructureError(f"apt has no {package} for {arch.debian.arch}", hint=advice) from error
        archive = next(draft.glob("*.deb"))
        process.run(["dpkg-deb", "-x", archive, draft])
        archive.unlink()
        if not (draft / "bin" / name).exists():  # Debian 13 has merged /bin into /usr/bin
            (draft / "bin").mkdir(exist_ok=True)
            (draft / "usr" / "bin" / name).rename(draft / "bin" / name)


def _private_apt(debian: Debian, scratch: Path) -> list[str]:
    """Options that make apt see the machine's Debian mirror as a machine of another architecture would."""
    archives = [(packages.main_archive(), debian.suite)] if debian.suite else packages.debian_archives()
    sources = scratch / "sources.list"
    option = f"[arch={debian.arch} signed-by={_KEYRING}]"
    sources.write_text("".join(f"deb {option} {address} {suite} main\n" for address, suite in archives))
    for folder in ("lists/partial", "cache/archives/partial"):
        (scratch / folder).mkdir(parents=True)
    # apt drops its privileges to a user who cannot enter a private folder.
    user = ["-o", "APT::Sandbox::User=root"] if os.geteuid() == 0 else []
    return [
        *("-o", f"APT::Architecture={debian.arch}", "-o", f"APT::Architectures={debian.arch}"),
        *("-o", f"Dir::Etc::sourcelist={sources}", "-o", "Dir::Etc::sourceparts=/dev/null"),
        *("-o", f"Dir::State::lists={scratch}/lists", "-o", "Dir::State::status=/dev/null"),
        *("-o", f"Dir::Cache={scratch}/cache", *user),
    ]
