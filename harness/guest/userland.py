"""The guest's userland: one statically linked busybox of its architecture, taken from Debian's archive.

Foreign architectures are fetched with lists of their own below the cache, checked by apt against the archive's signature:
neither dpkg's architectures nor the machine's own lists change, and nobody needs to be root."""

from __future__ import annotations

import os
from pathlib import Path

from harness import packages, process
from harness.arch import Arch, Debian
from harness.cache import Cache
from harness.errors import CommandFailed, InfrastructureError

_KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"


def busybox(arch: Arch, cache: Cache) -> Path:
    """A static busybox that runs on `arch`. Raises InfrastructureError if none can be had."""
    folder = cache.directory("downloads") / f"busybox-{arch.debian.arch}"
    found = folder / "bin" / "busybox"
    if found.exists():
        return found
    if not packages.apt_is_here():
        raise InfrastructureError(
            f"no static busybox for {arch.name}", hint=f"put one at {found}: busybox built with CONFIG_STATIC=y for {arch.name}"
        )
    with cache.publish(folder) as draft, cache.scratch() as scratch:
        options = _private_apt(arch.debian, scratch)
        # One list of several may be out of step on a mirror; what counts is whether the package can be had.
        updated = process.run(["apt-get", *options, "update"], env={"LC_ALL": "C"}, check=False)
        try:
            process.run(["apt-get", *options, "download", "busybox-static"], cwd=draft)
        except CommandFailed as error:
            advice = f"{error.hint}\n{updated.stdout[-1000:]}"
            raise InfrastructureError(f"apt has no busybox-static for {arch.debian.arch}", hint=advice) from error
        package = next(draft.glob("*.deb"))
        process.run(["dpkg-deb", "-x", package, draft])
        package.unlink()
        if not (draft / "bin" / "busybox").exists():  # Debian 13 has merged /bin into /usr/bin
            (draft / "bin").mkdir(exist_ok=True)
            (draft / "usr" / "bin" / "busybox").rename(draft / "bin" / "busybox")
    return found


def _private_apt(debian: Debian, scratch: Path) -> list[str]:
    """Options that make apt see the machine's Debian mirror as a machine of another architecture would."""
    archives = [(packages.main_archive(), debian.busybox)] if debian.busybox else packages.debian_archives()
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
