"""Tree specs: `debian:PACKAGE[=VERSION]`, `kernel.org:VERSION`, `tarball:PATH|URL`, `git:PATH#REF`."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

from msgspec import Struct

from harness import process
from harness.cache import STORE, Cache, digest_of, file_digest
from harness.errors import CommandFailed, InfrastructureError, UserError
from harness.model import Series, Tree
from harness.tree.download import download, read
from harness.tree.store import Store

KERNEL_ORG = "https://cdn.kernel.org/pub/linux/kernel"
KERNEL_ORG_VARIABLE = "HARNESS_KERNEL_ORG"
"""Names a mirror to use instead."""

_AUTOSIGNER = "632D3A06589DA6B1"
"""The key that kernel.org signs its lists of sums with, by its last 16 digits."""

_APT_LISTS = Path("/var/lib/apt/lists")


class _Tarball(Struct, frozen=True):
    path: Path
    source: str
    sha256: str


def spec_for(wanted: str | None, series: Series) -> str:
    """What `wanted` means for `series`: left out, its default; `git:PATH` alone, the commit that the series is based on."""
    if wanted is None:
        return default_spec(series.tested_on)
    if wanted.startswith("git:") and "#" not in wanted and series.base_commit:
        return f"{wanted}#{series.base_commit}"
    return wanted


def default_spec(tested_on: tuple[str, ...]) -> str:
    """The Debian package where apt is there, else the kernel.org tarball of the version the series was tested on."""
    version = tested_on[0] if tested_on else "6.12.117"
    series = ".".join(version.split(".")[:2])
    return f"debian:linux-source-{series}" if process.which("apt-get") else f"kernel.org:{version}"


def check_spec(spec: str) -> None:
    """Raises UserError for a spec that is none, before anything is fetched."""
    kind, _, rest = spec.partition(":")
    if kind not in _SOURCES:
        raise UserError(f"unknown tree '{spec}'", hint=f"one of {', '.join(_FORMS)}")
    if not rest:
        raise UserError(f"tree '{spec}' names nothing", hint=f"one of {', '.join(_FORMS)}")


def resolve(spec: str, cache: Cache) -> Tree:
    """Import the tree that `spec` names, unless the store has it. Raises UserError for a spec that names nothing and for a
    tree that is no kernel, InfrastructureError for a download that fails."""
    check_spec(spec)
    cache.session.use(STORE)
    kind, _, rest = spec.partition(":")
    return _SOURCES[kind](spec, rest, cache)


def pinned(spec: str, cache: Cache) -> str:
    """`spec` for another machine: with the very version that `resolve` takes here, and with whole paths."""
    kind, _, rest = spec.partition(":")
    if kind == "debian" and "=" not in rest:
        return f"{spec}={_candidate(rest, cache)}"
    if kind in ("git", "tarball") and "://" not in rest:
        return f"{kind}:{Path(rest).resolve()}"
    return spec


def _debian(spec: str, rest: str, cache: Cache) -> Tree:
    if process.which("apt-get") is None:
        raise UserError("debian: trees need apt", hint="use kernel.org:VERSION, tarball: or git:")
    package, _, version = rest.partition("=")
    if not version:
        version = _candidate(package, cache)

    def fetch() -> _Tarball:
        folder = _download(cache, digest_of(package, version)[:16])
        if not list(folder.glob("usr/src/*.tar.*")):
            with cache.publish(folder) as draft:
                try:
                    # apt checks the package against the archive's signed index.
                    process.run(["apt-get", "download", f"{package}={version}"], cwd=draft)
                except CommandFailed as error:
                    raise InfrastructureError(f"apt could not download {package}={version}", hint=error.hint) from error
                process.run(["dpkg-deb", "-x", next(draft.glob("*.deb")), draft])
                next(draft.glob("*.deb")).unlink()
        tarballs = list(folder.glob("usr/src/*.tar.*"))
        if not tarballs:
            raise UserError(f"the package {package} holds no source tarball", hint="debian:linux-source-6.12")
        return _Tarball(tarballs[0], f"Debian package {package} {version}", file_digest(tarballs[0]))

    return _imported(spec, digest_of("debian", package, version), fetch, cache)


def _candidate(package: str, cache: Cache) -> str:
    """The version that apt would install. Remembered until apt's lists change: asking apt takes most of a second."""
    state = f"{_APT_LISTS.stat().st_mtime_ns}" if _APT_LISTS.exists() else ""
    key = digest_of(package)[:16]
    if (known := cache.read_record("candidates", key, tuple[str, str])) and known[0] == state:
        return known[1]
    answer = process.run(["apt-cache", "policy", package], env={"LC_ALL": "C"}).stdout
    match = re.search(r"^  Candidate: (\S+)$", answer, re.MULTILINE)
    if match is None or match[1] == "(none)":
        raise UserError(f"apt knows no package '{package}'", hint="sudo apt-get update, or another --tree")
    cache.write_record("candidates", key, (state, match[1]))
    return match[1]


def _kernel_org(spec: str, rest: str, cache: Cache) -> Tree:
    if not re.fullmatch(r"\d+\.\d+(\.\d+)?", rest):
        raise UserError(f"'{rest}' is no kernel version", hint="kernel.org:6.12.117")

    def fetch() -> _Tarball:
        base = f"{os.environ.get(KERNEL_ORG_VARIABLE, KERNEL_ORG)}/v{rest.split('.')[0]}.x"
        name = f"linux-{rest}.tar.xz"
        sums = read(f"{base}/sha256sums.asc")
        signature = _signature(sums, cache)
        match = re.search(rf"^([0-9a-f]{{64}})  {re.escape(name)}$", sums.decode(errors="replace"), re.MULTILINE)
        if match is None:
            raise UserError(f"kernel.org has no {name}", hint="see which versions there are on www.kernel.org")
        path = _download(cache, name)
        if not path.exists() or file_digest(path) != match[1]:
            download(f"{base}/{name}", path, match[1])
        return _Tarball(path, f"{base}/{name} ({signature})", match[1])

    return _imported(spec, digest_of("kernel.org", rest), fetch, cache)


def _signature(sums: bytes, cache: Cache) -> str:
    """Check the OpenPGP signature of a list of sums. Raises InfrastructureError if it is bad; one that cannot be checked, for
    want of gpg or of kernel.org's key in the user's keyring, is said to be unchecked, in run.toml too: the sums then are as
    good as the HTTPS connection that they came over."""
    if process.which("gpg") is None:
        return "signature of the sums not checked: no gpg"
    with cache.scratch() as scratch:
        file = scratch / "sha256sums.asc"
        file.write_bytes(sums)
        answer = process.run(["gpg", "--batch", "--status-fd", "1", "--verify", file], check=False).stdout
    if "[GNUPG:] BADSIG" in answer:
        raise InfrastructureError("the signature of kernel.org's sums is bad", hint="do not trust this mirror")
    if re.search(rf"^\[GNUPG:\] VALIDSIG .*{_AUTOSIGNER}$", answer, re.MULTILINE):
        return "sums signed by kernel.org"
    return f"signature of the sums not checked: key {_AUTOSIGNER} is not in your keyring"


def _tarball(spec: str, rest: str, cache: Cache) -> Tree:
    if re.match(r"https?://", rest):
        path = _download(cache, f"{digest_of(rest)[:16]}-{rest.rsplit('/', 1)[-1]}")
        with cache.making(f"downloads/{path.name}", f"downloading {rest}"):
            if not path.exists():
                download(rest, path, None)
    else:
        path = Path(rest).resolve()
        if not path.is_file():
            raise UserError(f"no tarball at {rest}", hint="tarball:PATH or tarball:URL")
    sha256 = file_digest(path)
    return _imported(spec, digest_of("tarball", sha256), lambda: _Tarball(path, rest, sha256), cache)


def _git(spec: str, rest: str, cache: Cache) -> Tree:
    repository, separator, reference = rest.partition("#")
    if not separator or not reference:
        raise UserError(
            f"tree '{spec}' names no ref", hint="git:PATH#REF; without a REF only for a series that names its base-commit"
        )
    store = Store(cache)
    commit = store.fetch(repository, reference, f"trees/{digest_of(rest)[:16]}")
    version = _kernel_version(store, commit, spec)
    return Tree(store=store.path, commit=commit, spec=spec, version=version, source=rest)


def _download(cache: Cache, name: str) -> Path:
    """The path of a download, which is used from now on."""
    cache.session.use(f"downloads/{name}")
    return cache.directory("downloads") / name


def _imported(spec: str, key: str, fetch: Callable[[], _Tarball], cache: Cache) -> Tree:
    key = key[:16]
    if known := _known(key, cache):
        return known
    with cache.making(f"trees/{key}", f"importing {spec}"):
        return _known(key, cache) or _import(spec, key, fetch, cache)


def _known(key: str, cache: Cache) -> Tree | None:
    """The tree that is imported already."""
    known = cache.read_record("trees", key, Tree)
    return known if known and Store(cache).has(known.commit) else None


def _import(spec: str, key: str, fetch: Callable[[], _Tarball], cache: Cache) -> Tree:
    store = Store(cache)
    tarball = fetch()
    try:
        commit = store.import_tarball(tarball.path, f"trees/{key}")
    except UserError:
        if cache.root in tarball.path.parents:
            tarball.path.unlink()  # or the next run would not fetch it again
        raise
    version = _kernel_version(store, commit, spec)
    tree = Tree(
        store=store.path,
        commit=commit,
        spec=spec,
        version=version,
        source=tarball.source,
        sha256=tarball.sha256,
    )
    cache.write_record("trees", key, tree)
    return tree


def _kernel_version(store: Store, commit: str, spec: str) -> str:
    try:
        makefile = store.read_file(commit, "Makefile")
        store.read_file(commit, "Kconfig")
    except CommandFailed:
        makefile = ""
    fields: dict[str, str] = dict(re.findall(r"^(VERSION|PATCHLEVEL|SUBLEVEL|EXTRAVERSION) *= *(\S*)$", makefile, re.MULTILINE))
    if not {"VERSION", "PATCHLEVEL", "SUBLEVEL"} <= fields.keys():
        raise UserError(f"'{spec}' is no kernel tree", hint="its top folder must hold the kernel's Makefile and Kconfig")
    return f"{fields['VERSION']}.{fields['PATCHLEVEL']}.{fields['SUBLEVEL']}{fields.get('EXTRAVERSION', '')}"


_SOURCES: dict[str, Callable[[str, str, Cache], Tree]] = {
    "debian": _debian,
    "kernel.org": _kernel_org,
    "tarball": _tarball,
    "git": _git,
}
_FORMS = ("debian:PACKAGE[=VERSION]", "kernel.org:VERSION", "tarball:PATH|URL", "git:PATH#REF")
