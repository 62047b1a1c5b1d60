"""What a job needs on this machine, what of it is missing or too old, and what installs it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from msgspec import Struct

from harness import kernel, packages, process
from harness.arch import Arch
from harness.errors import CommandFailed, InfrastructureError

_ROUNDS = 3
"""A newer version of one package may drop what another one needed from it."""

Say = Callable[[str], None]


class Need(Struct, frozen=True):
    """A program or a file, what it is for, and the packages that bring it."""

    name: str
    purpose: str
    debian: str
    fedora: str
    files: tuple[str, ...] = ()
    """Below /usr; any of these meets the need, instead of a program of that name."""
    optional: bool = False
    minimum: str = ""
    """The oldest version of the program that serves."""
    family: str = ""
    """Programs that are installed from one suite, because they are built from one source."""


class Finding(Struct, frozen=True):
    """`problem` is empty where the need is met."""

    need: Need
    problem: str = ""

    @property
    def met(self) -> bool:
        return not self.problem


_ALWAYS = (Need("git", "trees and series", "git", "git-core"), Need("tar", "selftests of the tree", "tar", "tar"))
_BUILDS = (
    Need("make", "kbuild", "make", "make"),
    Need("gcc", "the kernel's host tools", "gcc", "gcc"),
    Need("libc headers", "the kernel's host tools", "libc6-dev", "glibc-devel", files=("include/stdio.h",)),
    Need("flex", "Kconfig", "flex", "flex"),
    Need("bison", "Kconfig", "bison", "bison"),
    Need("bc", "kbuild", "bc", "bc"),
    Need("perl", "kbuild", "perl", "perl-interpreter"),
    Need("python3", "kbuild", "python3", "python3"),
    Need("libelf headers", "objtool, resolve_btfids", "libelf-dev", "elfutils-libelf-devel", files=("include/gelf.h",)),
    Need("pahole", "BTF", "dwarves", "dwarves"),
    Need("depmod", "modules of the guest", "kmod", "kmod"),
    Need("nice", "builds give way to guests", "coreutils", "coreutils"),
    Need("bwrap", "builds that can write nowhere else", "bubblewrap", "bubblewrap", optional=True),
    Need("ccache", "builds of what was built before", "ccache", "ccache", optional=True),
)

_TESTS = (Need("chromedriver", "tests of the report's page", "chromium-driver", "chromedriver"),)


def needs(archs: Iterable[Arch], toolchain: str = kernel.AUTO, tests: bool = False) -> list[Need]:
    """Everything that jobs for these architectures need, and the harness's own `tests`, each once. Of two needs for one program
    the newer version counts. Without architectures nothing is built."""
    found: dict[str, Need] = {}
    special = [need for arch in archs for need in _needs_of(arch, toolchain)]
    for need in (*_ALWAYS, *(_BUILDS if special else ()), *(_TESTS if tests else ()), *special):
        other = found.get(need.name)
        if other is None or packages.number(need.minimum) > packages.number(other.minimum):
            found[need.name] = need
    return list(found.values())


def _needs_of(arch: Arch, toolchain: str) -> Iterable[Need]:
    kernels = f"kernels of {arch.name}"
    for tool in arch.kernel.tools:
        # Compressors, whose packages are called what they are.
        yield Need(tool, kernels, tool, tool)
    for program, package in kernel.programs(arch, kernel.choose(arch, toolchain)).items():
        yield Need(program, kernels, package, arch.fedora.gcc if program.endswith("gcc") else package.partition("-")[0])
    if arch.kernel.pahole:
        yield Need("pahole", f"BTF of {arch.name}", "dwarves", "dwarves", minimum=arch.kernel.pahole)
    program, guests = arch.guest.program, f"guests of {arch.name}"
    yield Need(program, guests, arch.debian.qemu, arch.fedora.qemu, minimum=arch.guest.qemu, family="qemu")


def examine(archs: Iterable[Arch], toolchain: str = kernel.AUTO, tests: bool = False, root: Path = Path("/")) -> list[Finding]:
    return [Finding(need, _problem(need, root)) for need in needs(archs, toolchain, tests)]


def missing(findings: Iterable[Finding]) -> list[Finding]:
    """Those that a job cannot do without."""
    return [finding for finding in findings if not finding.met and not finding.need.optional]


def plan(findings: Iterable[Finding]) -> packages.Plan:
    """How to install all that is missing, optional things included."""
    lacking = [finding.need for finding in findings if not finding.met]
    return packages.plan(packages.Wish(need.debian, need.fedora, need.minimum, need.family) for need in lacking)


def install(archs: Iterable[Arch], toolchain: str, say: Say, tests: bool = False) -> list[Finding]:
    """Install with apt what is missing, after saying so, and look again. Raises InfrastructureError where that cannot be done."""
    archs = list(archs)
    findings = examine(archs, toolchain, tests)
    if not all(finding.met for finding in findings):
        packages.refresh()
        findings = examine(archs, toolchain, tests)  # with what apt knows now, the compiler may be another one
    for _ in range(_ROUNDS):
        planned = plan(findings)
        if not planned.commands:
            break
        say(f"installing:\n{planned.text}")
        try:
            packages.install(planned)
        except CommandFailed as error:
            if missing(findings):
                advice = f"{error.hint}\nrun this yourself: {planned.text}"
                raise InfrastructureError("apt-get could not install what is missing", hint=advice) from error
            break
        findings = examine(archs, toolchain, tests)
    return findings


def check(archs: Iterable[Arch], toolchain: str, install_missing: bool, say: Say) -> None:
    """Raises InfrastructureError, with the command that helps, if something is missing or too old."""
    archs = list(archs)
    findings = install(archs, toolchain, say) if install_missing else examine(archs, toolchain)
    lacking = missing(findings)
    if lacking:
        problems = "; ".join(f"{finding.need.name} ({finding.need.purpose}): {finding.problem}" for finding in lacking)
        raise InfrastructureError(problems, hint=f"{plan(findings).text}\nor let the harness do it: --install")


def _problem(need: Need, root: Path) -> str:
    if need.files:
        return "" if any((root / "usr" / file).exists() for file in need.files) else "missing"
    if process.which(need.name) is None:
        return "missing"
    if need.minimum:
        version = process.run([need.name, "--version"]).stdout.splitlines()[0]
        found = packages.number(version)
        if found < packages.number(need.minimum):
            return f"too old: {'.'.join(map(str, found))}, at least {need.minimum} is needed"
    return ""
