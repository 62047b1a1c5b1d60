"""Known failures: cases that fail on an unpatched kernel, as configs/known.toml lists them.

An entry excuses only what it names: the outcomes, the lines of the diagnostic, the versions of the kernel. Every condition is a
value that must be written down, so that an entry cannot come to cover more than the failure that it was written for."""

from __future__ import annotations

import fnmatch
import hashlib
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from msgspec import Struct
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion, Version

from harness import arch, datafile, paths, suites
from harness.datafile import Lines
from harness.logs import unrelated
from harness.model import WARNINGS, CasePattern, CaseResult, Outcome

_HINT = "docs/adding.md, `A known failure`, says what an entry needs"

_TOOLCHAINS = ("gcc", "llvm", "*", "?", "[")
"""The beginnings of toolchain names and of globs for them."""

_LITERAL = 4
"""Characters that a glob of a diagnostic must have at least, other than blanks and wildcards."""
_WILDCARD = re.compile(r"\s|\*|\?|\[!?\]?[^]]*\]")

_OF_THE_TEST = (Outcome.FAIL, Outcome.UNRESOLVED)
"""The red outcomes that a test reports itself."""
_NEVER = (Outcome.PASS, Outcome.SKIP, Outcome.XFAIL, Outcome.ERROR)
"""Outcomes that are no failure of the kernel: green ones, and errors, which are failures of the harness."""


class Known(CasePattern, frozen=True, rename="kebab"):
    """A failure that is expected on a kernel of one of `versions` (">=6.12,<6.14"), built by a `toolchain` (a glob)."""

    outcome: tuple[Outcome, ...] = ()
    """The red outcomes that the entry covers."""
    diagnostic: tuple[str, ...] = ()
    """Globs. Each line of the result's diagnostic must match one of them: of a crash, the titles of all its reports."""
    versions: str = ""
    any_version: str = ""
    """The reason why every kernel has the failure; written in place of `versions`."""
    link: str = ""
    """URL of the report or of the fix."""
    fixed_by: tuple[str, ...] = ()
    """Series, by name, that fix it: with one of them applied, the failure is red."""
    toolchain: str = "*"
    hangs: bool = False
    """The case hangs the machine forever, so it is not run. If it is run anyway, the entry does not cover its failure."""

    def __post_init__(self) -> None:
        if problem := next(self._problems(), ""):
            raise ValueError(f"'{self.case}': {problem}")

    @property
    def why(self) -> str:
        return f"{self.reason} ({self.link})" if self.link else self.reason

    @property
    def key(self) -> str:
        """Identifies the entry in the history of runs. It depends on what the entry covers, not on its reason or versions."""
        parts = (self.case, *sorted(self.arch), self.toolchain, *sorted(self.outcome), *sorted(self.diagnostic), self.hangs)
        return hashlib.sha256("\0".join(map(str, parts)).encode()).hexdigest()[:12]

    def meant_for(self, version: str) -> bool:
        """True if the entry applies to a kernel of that version or release. Without `versions` it applies to all kernels; with
        them, it does not apply to a kernel whose version is unknown."""
        number = _comparable(version)
        return not self.versions or (number is not None and SpecifierSet(self.versions).contains(number))

    def applies_to(self, case: str) -> bool:
        return fnmatch.fnmatchcase(case, self.case)

    def covers(self, result: CaseResult) -> bool:
        """True if the entry covers the result. If the case was tried again, the entry must cover every red try."""
        tries = [one for one in result.tries if not one.outcome.green] or [result]
        meant = {*self.outcome, *_OF_THE_TEST} if Outcome.FLAKY in self.outcome else {*self.outcome}
        return (
            result.outcome in self.outcome
            and self.applies_to(result.id)
            and {one.outcome for one in tries} <= meant
            and all(_matches(line, self.diagnostic) for one in tries for line in one.diagnostic.splitlines() or [""])
        )

    def _problems(self) -> Iterator[str]:
        if not self.reason.strip():
            yield "no reason: say why it fails on an unpatched kernel"
        if not self.toolchain.startswith(_TOOLCHAINS):
            yield f"the toolchain '{self.toolchain}' does not exist: write gcc, llvm, or a glob such as llvm*"
        yield from self._wrong_outcomes()
        yield from self._wrong_diagnostics()
        yield from self._wrong_versions()

    def _wrong_outcomes(self) -> Iterator[str]:
        if self.hangs:
            if self.outcome or self.diagnostic:
                yield "a case that hangs is not run, so it has no outcome and no diagnostic: leave them out"
            return
        if not self.outcome:
            yield 'no outcome: name the red outcomes that are meant, such as outcome = ["fail"]'
        for outcome in self.outcome:
            if outcome in _NEVER:
                yield f"the outcome '{outcome.value}' is no failure of a kernel: name a red one"

    def _wrong_diagnostics(self) -> Iterator[str]:
        if not self.hangs and not self.diagnostic:
            yield "no diagnostic: give globs for the lines of the failure's diagnostic, or every failure of the case is covered"
        for glob in self.diagnostic:
            if len(_WILDCARD.sub("", glob)) < _LITERAL:
                yield f"the diagnostic '{glob}' matches any failure: give the words of the one that is meant"
            elif Outcome.CRASH in self.outcome and (other := unrelated.matched(glob)):
                yield (
                    f"the diagnostic '{glob}' covers other crashes, too, such as '{other}': "
                    "name the report with its function or place"
                )

    def _wrong_versions(self) -> Iterator[str]:
        if bool(self.versions.strip()) == bool(self.any_version.strip()):
            yield (
                'one of versions and any-version: versions = ">=6.12,<6.14" names the kernels that have the failure, '
                'any-version = "..." says why every kernel has it'
            )
        elif self.versions:
            yield from _wrong_range(self.versions)


def _matches(line: str, globs: Iterable[str]) -> bool:
    return any(fnmatch.fnmatchcase(line, glob) for glob in globs)


def _comparable(version: str) -> Version | None:
    """The numbers of a kernel's version or release, such as 6.12.117, 6.18-rc3 or 6.1.0-56-amd64. A release candidate counts as
    the release, because features come before rc1."""
    found = re.match(r"\d+(\.\d+)*", version)
    return Version(found[0]) if found else None


def _wrong_range(versions: str) -> Iterator[str]:
    try:
        range_ = SpecifierSet(versions)
        bounds = [Version(one.version.removesuffix(".*")) for one in range_]
    except (InvalidSpecifier, InvalidVersion):
        yield f'versions are like ">=6.12,<6.14", not "{versions}"'
        return
    # If the range is not empty, it contains a bound, the version just above a bound, or the lowest version of all.
    candidates = [*bounds, *(Version(f"{bound}.1") for bound in bounds), Version("0")]
    if not any(map(range_.contains, candidates)):
        yield f'no version is in "{versions}": the lower bound comes first, as in ">=6.12,<6.14"'


class _KnownFile(Struct, frozen=True, forbid_unknown_fields=True):
    known: tuple[Known, ...] = ()


def read_known(path: Path | None = None) -> tuple[Known, ...]:
    """The known failures of `path`, by default those of configs/known.toml. Raises UserError, with the line, for an entry that
    names nothing or covers more than one failure."""
    return tuple(entry for entry, _ in read_with_lines(path))


def read_with_lines(path: Path | None = None) -> list[tuple[Known, int]]:
    """As `read_known`, with the line of each entry in the file."""
    path = path or paths.CONFIGS / "known.toml"
    file, lines = datafile.read(path, _KnownFile, _HINT)
    _check(path, file.known, lines)
    return [(entry, lines.of("known", number)) for number, entry in enumerate(file.known)]


def _check(path: Path, known: Iterable[Known], lines: Lines) -> None:
    """Check what concerns other entries and the harness's data. Raises UserError."""
    seen: dict[str, int] = {}
    for number, entry in enumerate(known):
        line = lines.of("known", number)
        for name in entry.arch:
            if name not in arch.names():
                where = lines.of("known", number, "arch")
                raise datafile.bad(path, where, f"unknown architecture '{name}'", f"one of {', '.join(arch.names())}")
        suite, _, glob = entry.case.partition(":")
        if entry.case != WARNINGS and (suite not in suites.ALL or not glob):
            where = lines.of("known", number, "case")
            hint = f"write SUITE:NAME; suites: {', '.join(suites.ALL)}"
            raise datafile.bad(path, where, f"'{entry.case}' names no case of a suite", hint)
        for name in entry.fixed_by:
            if not (paths.PATCHES / name).is_dir():
                where = lines.of("known", number, "fixed-by")
                raise datafile.bad(path, where, f"there is no bundled series '{name}'", "fixed-by names folders of patches/")
        if (first := seen.setdefault(entry.key, line)) != line:
            raise datafile.bad(path, line, f"the same entry as in line {first}", "remove one of the two")
