"""The guest's userland: one statically linked busybox of its architecture, taken from Debian's archive.

Foreign architectures are fetched with lists of their own below the cache, checked by apt against the archive's signature:
neither dpkg's architectures nor the machine's own lists change, and nobody needs to be root."""

from __future__ import annotations

import os
from pathlib import Path

from harness import process
from harness.arch import Arch
from harness.cache import Cache
from harness.errors import CommandFailed, InfrastructureError

_KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"


def busybox(arch: Arch, cache: Cache) -> Path:
    """A static busybox that runs on `arch`. Raises InfrastructureError if none can be had."""
    folder = cache.directory("downloads") / f"busybox-{arch.debian.arch}"
    found = folder / "bin" / "busybox"
    if found.exists():
        return found
    if process.which("apt-get") is None:
        raise InfrastructureError(
            f"no static busybox for {arch.name}", hint=f"put one at {found}: busybox built with CONFIG_STATIC=y for {arch.name}"
        )
    with cache.publish(folder) as draft, cache.scratch() as scratch:
        try:
            options = _private_apt(arch.debian.arch, scratch)
            process.run(["apt-get", *options, "update"], env={"LC_ALL": "C"})
            process.run(["apt-get", *options, "download", "busybox-static"], cwd=draft)
        except CommandFailed as error:
            raise InfrastructureError(f"apt has no busybox-static for {arch.debian.arch}", hint=error.hint) from error
        package = next(draft.glob("*.deb"))
        process.run(["dpkg-deb", "-x", package, draft])
        package.unlink()
        if not (draft / "bin" / "busybox").exists():  # Debian 13 has merged /bin into /usr/bin
            (draft / "bin").mkdir(exist_ok=True)
            (draft / "usr" / "bin" / "busybox").rename(draft / "bin" / "busybox")
    return found


def _private_apt(architecture: str, scratch: Path) -> list[str]:
    """Options that make apt see the machine's Debian mirror as a machine of `architecture` would."""
    lines = process.run(
        ["apt-get", "indextargets", "--format", "$(ORIGIN)|$(REPO_URI)|$(CODENAME)|$(COMPONENT)", "Created-By: Packages"]
    ).stdout.splitlines()
    targets = sorted({tuple(line.split("|")) for line in lines if line.startswith("Debian|") and line.endswith("|main")})
    if not targets:
        raise InfrastructureError("apt knows no Debian archive", hint="sudo apt-get update")
    sources = scratch / "sources.list"
    sources.write_text(
        "".join(f"deb [arch={architecture} signed-by={_KEYRING}] {uri} {name} main\n" for _, uri, name, _ in targets)
    )
    for folder in ("lists/partial", "cache/archives/partial"):
        (scratch / folder).mkdir(parents=True)
    # apt drops its privileges to a user who cannot enter a private folder.
    user = ["-o", "APT::Sandbox::User=root"] if os.geteuid() == 0 else []
    return [
        *("-o", f"APT::Architecture={architecture}", "-o", f"APT::Architectures={architecture}"),
        *("-o", f"Dir::Etc::sourcelist={sources}", "-o", "Dir::Etc::sourceparts=/dev/null"),
        *("-o", f"Dir::State::lists={scratch}/lists", "-o", "Dir::State::status=/dev/null"),
        *("-o", f"Dir::Cache={scratch}/cache", *user),
    ]
