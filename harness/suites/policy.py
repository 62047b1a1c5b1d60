"""What a result counts as: known reds become xfail, skips of must-run cases become red."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from harness import paths
from harness.errors import UserError
from harness.model import CasePattern, CaseResult, Outcome
from harness.suites.base import Selection

_KNOWN = paths.CONFIGS / "known.toml"


class Known(CasePattern, frozen=True):
    """A red that is expected of the tree as it is, built by a `toolchain` (a glob). What a test said is covered; a crash only if
    `outcome` names it. Where `diagnostic` is given, each line of the result's diagnostic must match one of its globs. A case that
    `hangs` the whole machine is not even run, and nothing that it says if it is run all the same is covered."""

    toolchain: str = "*"
    outcome: tuple[Outcome, ...] = (Outcome.FAIL, Outcome.UNRESOLVED)
    diagnostic: tuple[str, ...] = ("*",)
    hangs: bool = False

    def covers(self, result: CaseResult) -> bool:
        return (
            not self.hangs
            and result.outcome in self.outcome
            and fnmatch.fnmatchcase(result.id, self.case)
            and all(_matches(line, self.diagnostic) for line in result.diagnostic.splitlines() or [""])
        )


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
        if not entry.reason.strip():
            raise UserError(f"{path}: '{entry.case}' is listed without a reason", hint="say why it is red on an unpatched kernel")
    return known


class Policy:
    """For one architecture and kind of toolchain, at a point that carries the series or (with no `must_run`) does not."""

    def __init__(self, arch: str, toolchain: str, known: Iterable[Known], must_run: Iterable[CasePattern]) -> None:
        self._known = [
            entry for entry in known if (not entry.arch or arch in entry.arch) and fnmatch.fnmatchcase(toolchain, entry.toolchain)
        ]
        self._must_run = [entry for entry in must_run if not entry.arch or arch in entry.arch]
        self._seen: list[str] = []

    def hangs(self, case: str) -> str:
        """Why a case, by its id, is better not run; empty if it is to be run."""
        return next((entry.reason for entry in self._known if entry.hangs and fnmatch.fnmatchcase(case, entry.case)), "")

    def judge(self, result: CaseResult) -> CaseResult:
        """The result as it counts."""
        self._seen.append(result.id)
        for entry in self._known:
            if entry.covers(result):
                return _changed(result, Outcome.XFAIL, f"known: {entry.reason}")
        if result.outcome is Outcome.SKIP:
            for pattern in self._must_run:
                if fnmatch.fnmatchcase(result.id, pattern.case):
                    return _changed(result, Outcome.FAIL, f"must run, but skipped: {pattern.reason}")
        return result

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
