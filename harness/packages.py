"""What the machine's distribution offers, and installing it. apt is asked what it has; of dnf only the names are known."""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from msgspec import Struct

from harness import process
from harness.errors import InfrastructureError

_SOURCES = Path("/etc/apt/sources.list.d")
_BACKPORTS = "-backports"


class Offer(Struct, frozen=True):
    """A version of a package in a suite of the machine's archive."""

    package: str
    version: str
    suite: str


class Wish(Struct, frozen=True):
    """A package: `a | b` is the first of the two that there is. `minimum` is the oldest version that serves. Packages of one
    `family` come from one suite: they are built from one source, and break each other's other versions."""

    debian: str
    fedora: str
    minimum: str = ""
    family: str = ""


class Plan(Struct, frozen=True):
    """The commands that install what was wished for, and the suite that must be added first, if one must."""

    commands: tuple[tuple[str, ...], ...]
    suite: str = ""
    source: str = ""
    """The line for that suite in apt's sources."""

    @property
    def text(self) -> str:
        """What a user types."""
        become_root = _become_root("sudo")
        lines = [process.command_line([*become_root, *command]) for command in self.commands]
        if self.suite:
            file = _SOURCES / f"{self.suite}.list"
            lines[:0] = [
                f"echo '{self.source}' | {' '.join([*become_root, 'tee', str(file)])}",
                " ".join([*become_root, "apt-get", "update"]),
            ]
        return " && \\\n".join(lines)


def apt_is_here() -> bool:
    return process.which("apt-get") is not None


def number(version: str) -> tuple[int, ...]:
    """The numbers at the front of a version, to be compared: 1:10.0.2+ds-2 and v10.0.2 are (10, 0, 2)."""
    found = re.search(r"\d+(?:\.\d+)*", re.sub(r"^\d+:", "", version))
    return tuple(map(int, found[0].split("."))) if found else ()


@functools.cache
def known(pattern: str) -> list[str]:
    """Names of packages that apt knows and that match a regular expression as a whole."""
    if not apt_is_here():
        return []
    return [name for name in process.run(["apt-cache", "pkgnames"]).stdout.split() if re.fullmatch(pattern, name)]


def plan(wishes: Iterable[Wish]) -> Plan:
    """How to install `wishes`; without commands if there are none."""
    wishes = list(dict.fromkeys(wishes))
    if not wishes:
        return Plan(())
    if not apt_is_here():
        return Plan((("dnf", "install", *sorted({wish.fedora for wish in wishes})),))
    offers = _offers({name for wish in wishes for name in _alternatives(wish)})
    suites = {_family(wish): suite for wish in wishes if (suite := _needed_suite(wish, offers))}
    by_suite: dict[str, set[str]] = {}
    for wish in wishes:
        suite = suites.get(_family(wish), "")
        by_suite.setdefault(suite, set()).add(_name(wish, suite, offers))
    install = ("apt-get", "install", "--yes", "--no-install-recommends")
    # The release's own packages first: another suite would bring newer libraries, and then their headers do not fit.
    commands = tuple(
        (*install, *(("--target-release", suite) if suite else ()), *sorted(names)) for suite, names in sorted(by_suite.items())
    )
    here = {suite for _, suite in debian_archives()} if suites else set()
    added = next((suite for suite in suites.values() if suite not in here), "")
    return Plan(commands, added, f"deb {main_archive()} {added} main" if added else "")


def install(planned: Plan) -> None:
    """Carry a plan out. Raises InfrastructureError where that cannot be done without asking, CommandFailed if apt fails."""
    if not planned.commands:
        return
    if not apt_is_here():
        raise InfrastructureError("only apt can install for you", hint=planned.text)
    if planned.suite:
        file = _SOURCES / f"{planned.suite}.list"
        process.run([*_become_root(), "sh", "-c", f"echo '{planned.source}' >{file}"])
        refresh()
    for command in planned.commands:
        process.run([*_become_root(), *command], env={"DEBIAN_FRONTEND": "noninteractive"})


def refresh() -> None:
    """Let apt learn what there is: a fresh machine may know of nothing. What cannot be reached is no news."""
    if apt_is_here():
        process.run([*_become_root(), "apt-get", "update"], check=False)
        known.cache_clear()


def _become_root(*sudo: str) -> list[str]:
    """Ours must not ask for a password: it would wait for it in the background, for ever."""
    return [] if os.geteuid() == 0 else [*(sudo or ("sudo", "--non-interactive"))]


def _family(wish: Wish) -> str:
    return wish.family or wish.debian


def alternatives(names: str) -> list[str]:
    """`a | b`, as a list."""
    return [name.strip() for name in names.split("|")]


def _alternatives(wish: Wish) -> list[str]:
    return alternatives(wish.debian)


def _offers(names: Iterable[str]) -> list[Offer]:
    lines = process.run(["apt-cache", "madison", *sorted(names)], check=False).stdout.splitlines()
    fields = [[field.strip() for field in line.split("|")] for line in lines if line.count("|") == 2]
    return [
        Offer(package, version, words[1].partition("/")[0])
        for package, version, origin in fields
        if len(words := origin.split()) > 1
    ]


def _served(offer: Offer, wish: Wish) -> bool:
    return offer.package in _alternatives(wish) and number(offer.version) >= number(wish.minimum)


def _needed_suite(wish: Wish, offers: Sequence[Offer]) -> str:
    """The backports suite, if the release has what is wished for, but too old."""
    if not wish.minimum or not any(offer.package in _alternatives(wish) for offer in offers):
        return ""
    if any(_served(offer, wish) for offer in offers if not offer.suite.endswith(_BACKPORTS)):
        return ""
    return f"{_codename()}{_BACKPORTS}"


def _name(wish: Wish, suite: str, offers: Sequence[Offer]) -> str:
    """The first alternative that `suite` has, or any suite but backports if none is given."""
    there = {offer.package for offer in offers if (offer.suite == suite if suite else not offer.suite.endswith(_BACKPORTS))}
    names = _alternatives(wish)
    return next((name for name in names if name in there), names[-1] if suite else names[0])


def debian_archives() -> list[tuple[str, str]]:
    """(address, suite) of every Debian archive that apt takes packages from. Raises InfrastructureError if there is none."""
    form = "$(ORIGIN)|$(REPO_URI)|$(CODENAME)|$(COMPONENT)"
    lines = process.run(["apt-get", "indextargets", "--format", form, "Created-By: Packages"]).stdout.splitlines()
    fields = [line.split("|") for line in lines if line.startswith("Debian") and line.endswith("|main")]
    found = sorted({(archive, suite) for _, archive, suite, _ in fields})
    if not found:
        raise InfrastructureError("apt knows no Debian archive", hint="sudo apt-get update")
    return found


def main_archive() -> str:
    """Address of the archive that holds the machine's own release."""
    found = debian_archives()
    return next((archive for archive, suite in found if suite == _codename()), found[0][0])


def _codename() -> str:
    words = dict(line.partition("=")[::2] for line in Path("/etc/os-release").read_text().splitlines())
    return words.get("VERSION_CODENAME", "stable").strip('"')
