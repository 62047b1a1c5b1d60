"""What a result counts as: known reds become xfail, skips of must-run cases become red."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import Version

from harness import arch, paths
from harness.errors import UserError
from harness.model import BUILT, WARNINGS, CasePattern, CaseResult, Outcome
from harness.suites.base import Selection

_KNOWN = paths.CONFIGS / "known.toml"

_SAID = (Outcome.FAIL, Outcome.UNRESOLVED)
"""What a test says itself."""


class Known(CasePattern, frozen=True, rename="kebab"):
    """A red that is expected of the tree as it is, if that is one of `versions` (">=6.12,<6.14"; all if it is empty), built by a
    `toolchain` (a glob). What a test said is covered; a crash only if `outcome` names it. Where `diagnostic` is given, each line
    of the result's diagnostic must match one of its globs. A case that `hangs` the whole machine is not even run, and nothing
    that it says if it is run all the same is covered."""

    versions: str = ""
    link: str = ""
    """Where it was reported, or mended."""
    fixed_by: tuple[str, ...] = ()
    """Series, by name, with which it is none any more."""
    toolchain: str = "*"
    outcome: tuple[Outcome, ...] = _SAID
    diagnostic: tuple[str, ...] = ("*",)
    hangs: bool = False

    def __post_init__(self) -> None:
        if not self.reason.strip():
            raise ValueError(f"'{self.case}' is listed without a reason: say why it is red on an unpatched kernel")
        try:
            SpecifierSet(self.versions)
        except InvalidSpecifier:
            raise ValueError(f'\'{self.case}\': versions are like ">=6.12,<6.14", not "{self.versions}"') from None

    @property
    def why(self) -> str:
        return f"{self.reason} ({self.link})" if self.link else self.reason

    def meant_for(self, version: str) -> bool:
        return not self.versions or SpecifierSet(self.versions).contains(_comparable(version))

    def covers(self, result: CaseResult) -> bool:
        """Of what was tried again, each red try is looked at: one that crashed is no flaky test."""
        reds = [one for one in result.tries if not one.outcome.green] or [result]
        meant = {*self.outcome, *_SAID} if Outcome.FLAKY in self.outcome else {*self.outcome}
        return (
            not self.hangs
            and result.outcome in self.outcome
            and fnmatch.fnmatchcase(result.id, self.case)
            and {one.outcome for one in reds} <= meant
            and all(_matches(line, self.diagnostic) for one in reds for line in one.diagnostic.splitlines() or [""])
        )


def _comparable(version: str) -> Version:
    """Of a kernel's version or release: 6.12.117, 6.18-rc3 (what 6.18 brings or mends came before its rc1), 6.1.0-56-amd64."""
    found = re.match(r"\d+(\.\d+)*", version)
    return Version(found[0] if found else "0")


def _matches(line: str, globs: Iterable[str]) -> bool:
    return any(fnmatch.fnmatchcase(line, glob) for glob in globs)


class _KnownFile(Struct, frozen=True, forbid_unknown_fields=True):
    known: tuple[Known, ...] = ()


def read_known(path: Path = _KNOWN) -> tuple[Known, ...]:
    """Known reds. Raises UserError for an entry without a reason."""
    try:
        known = msgspec.toml.decode(path.read_bytes(), type=_KnownFile).known
    except msgspec.DecodeError as error:
        raise UserError(f"{path}: {error}", hint="each [[known]] has case, reason, and arch if it is not all of them") from None
    for entry in known:
        if unknown := sorted({*entry.arch} - {*arch.names()}):
            raise UserError(
                f"{path}: '{entry.case}': unknown architecture '{unknown[0]}'", hint=f"one of {', '.join(arch.names())}"
            )
    return known


class Policy:
    """For one architecture and kind of toolchain, at a point that carries the whole of `series` or (without) does not. `version`
    is the kernel's; it may be set until the first guest reports."""

    def __init__(
        self,
        arch: str,
        toolchain: str,
        known: Iterable[Known],
        must_run: Iterable[CasePattern],
        version: str = "",
        series: str = "",
    ) -> None:
        self.version = version
        self._listed = [
            entry
            for entry in known
            if (not entry.arch or arch in entry.arch)
            and fnmatch.fnmatchcase(toolchain, entry.toolchain)
            and series not in entry.fixed_by
        ]
        self._must_run = [entry for entry in must_run if not entry.arch or arch in entry.arch]
        self._seen: dict[str, Outcome] = {}

    @property
    def _known(self) -> list[Known]:
        return [entry for entry in self._listed if entry.meant_for(self.version)]

    def hangs(self, case: str) -> str:
        """Why a case, by its id, is better not run; empty if it is to be run."""
        return next((entry.reason for entry in self._known if entry.hangs and fnmatch.fnmatchcase(case, entry.case)), "")

    def judge(self, result: CaseResult) -> CaseResult:
        """The result as it counts."""
        judged = self._judge(result)
        self._seen[judged.id] = judged.outcome
        return judged

    def _judge(self, result: CaseResult) -> CaseResult:
        if result.suite in BUILT and result.id != WARNINGS:
            return result  # without a kernel nothing else is run: no reason makes that green
        for entry in self._known:
            if entry.covers(result):
                return _changed(result, Outcome.XFAIL, f"known: {entry.why}")
        if result.outcome is Outcome.SKIP:
            for pattern in self._must_run:
                if fnmatch.fnmatchcase(result.id, pattern.case):
                    return _changed(result, Outcome.FAIL, f"must run, but skipped: {pattern.reason}")
        return result

    def outlived(self, selections: Sequence[Selection]) -> Iterator[tuple[Known, list[str]]]:
        """Known reds of which none was red, and the cases that passed instead. Of a glob, only if its whole suite ran."""
        whole = {selection.suite for selection in selections if not selection.globs}
        for entry in self._known:
            # What is flaky passes most of the time.
            if (
                entry.hangs
                or entry.outcome == (Outcome.FLAKY,)
                or not (entry.case in self._seen or entry.case.partition(":")[0] in whole)
            ):
                continue
            seen = {case: outcome for case, outcome in self._seen.items() if fnmatch.fnmatchcase(case, entry.case)}
            passed = [case for case, outcome in seen.items() if outcome is Outcome.PASS]
            if passed and set(seen.values()) <= {Outcome.PASS, Outcome.SKIP}:
                yield entry, passed

    def missing(self, selections: Sequence[Selection]) -> Iterator[CaseResult]:
        """A lost case for each suite or glob that was asked for and that no case answered to, and for each must-run pattern of
        a suite that ran whole, if no case matched it."""
        for selection in selections:
            for glob in selection.globs or ("*",):
                if not fnmatch.filter(self._seen, f"{selection.suite}:{glob}"):
                    why = "asked for, but no case reported"
                    yield CaseResult(selection.suite, glob, Outcome.LOST, diagnostic=why, ran=False)
        whole = {selection.suite for selection in selections if not selection.globs}
        for entry in self._must_run:
            suite, _, name = entry.case.partition(":")
            if suite in whole and not fnmatch.filter(self._seen, entry.case):
                yield CaseResult(suite, name, Outcome.LOST, diagnostic=f"must run, but there is no such case: {entry.reason}")


def _changed(result: CaseResult, outcome: Outcome, why: str) -> CaseResult:
    diagnostic = "; ".join(filter(None, [why, result.diagnostic]))
    return msgspec.structs.replace(result, outcome=outcome, diagnostic=diagnostic)
