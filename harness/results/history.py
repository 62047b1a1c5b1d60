"""Every run, in one SQLite file: what each case did, on which kernel, and how long it took. It outlives the run directories."""

from __future__ import annotations

import contextlib
import json
import sqlite3
import statistics
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from harness.errors import InfrastructureError, UserError
from harness.model import CaseResult, Difference, Outcome
from harness.results.compare import compare
from harness.results.facts import JobFacts
from harness.results.journal import CaseFinished, Compared, JobReport, RunReport, now

_VERSION = 2
_SCHEMA = """
CREATE TABLE run (
    id INTEGER PRIMARY KEY,
    directory TEXT NOT NULL,
    started REAL NOT NULL,
    series TEXT NOT NULL,
    tree TEXT NOT NULL,
    arguments TEXT NOT NULL,
    exit_code INTEGER,
    UNIQUE (directory, started)
);
CREATE TABLE job (
    id INTEGER PRIMARY KEY,
    run INTEGER NOT NULL REFERENCES run ON DELETE CASCADE,
    scope TEXT NOT NULL,
    arch TEXT NOT NULL,
    point TEXT NOT NULL,
    finished INTEGER NOT NULL,
    tested TEXT NOT NULL,
    release TEXT NOT NULL,
    toolchain TEXT NOT NULL DEFAULT ''
);
CREATE INDEX job_by_scope ON job (scope, arch, point);
CREATE INDEX job_by_run ON job (run);
CREATE TABLE name (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
CREATE TABLE result (
    job INTEGER NOT NULL REFERENCES job ON DELETE CASCADE,
    name INTEGER NOT NULL REFERENCES name,
    outcome TEXT NOT NULL,
    seconds REAL NOT NULL,
    value REAL,
    unit TEXT NOT NULL,
    diagnostic TEXT NOT NULL,
    known TEXT NOT NULL DEFAULT '',
    covered TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (job, name)
) WITHOUT ROWID;
CREATE INDEX result_by_name ON result (name);
"""
_VIEW = """
CREATE VIEW seen AS
    SELECT
        run, job, started, directory, series, arch, point, release, toolchain, tested,
        name.name AS "case", outcome, seconds, value, unit, diagnostic, known, covered
    FROM result JOIN job ON job.id = result.job JOIN run ON run.id = job.run JOIN name ON name.id = result.name;
"""
_FROM_VERSION_1 = """
ALTER TABLE job ADD COLUMN toolchain TEXT NOT NULL DEFAULT '';
ALTER TABLE result ADD COLUMN known TEXT NOT NULL DEFAULT '';
ALTER TABLE result ADD COLUMN covered TEXT NOT NULL DEFAULT '';
DROP VIEW seen;
"""

_NEW = ("toolchain", "known", "covered")
"""The columns that a history of version 1 lacks."""
_OLD_SEEN = "SELECT seen.*, run.series FROM seen JOIN run ON run.id = seen.run"
_OF_A_RESULT = ("outcome", "seconds", "value", "unit", "diagnostic", "known", "covered")

_TYPICAL = 5
"""So many earlier runs tell how long a case takes."""
_BUSY_SECONDS = 60.0
"""Another run may be writing."""


class Recorded(Struct, frozen=True):
    """A run."""

    directory: str
    started: float
    """Seconds since the epoch."""
    series: str
    tree: str
    exit_code: int | None
    outcomes: dict[Outcome, int]


class Seen(Struct, frozen=True):
    """What a case did in a run."""

    started: float
    directory: str
    arch: str
    point: str
    release: str
    tested: str
    """Digest of the kernel, the guest and what was expected of it."""
    outcome: Outcome
    seconds: float
    value: float | None
    unit: str
    diagnostic: str


class Ran(Struct, frozen=True):
    """A case in a run, and the known failure that covered it."""

    started: float
    directory: str
    series: str
    arch: str
    point: str
    release: str
    toolchain: str
    case: str
    outcome: Outcome
    diagnostic: str
    known: str
    """The key of the known failure; empty if none covered it."""
    covered: str
    """The diagnostic that it covered."""


class Flaky(Struct, frozen=True):
    """A case that came out in several ways although nothing that it depends on had changed, or that passed when it was tried
    again."""

    arch: str
    point: str
    case: str
    outcomes: dict[Outcome, int]
    """On the same kernel."""
    last: float
    """When the newest of these runs began."""


class History:
    """Made when there is none. Raises UserError for a file that is none, and InfrastructureError for one that cannot be written,
    unless it is only `read`."""

    def __init__(self, path: Path, read: bool = False) -> None:
        self.path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UserError(f"the history in {path}: {error.strerror}", hint="--history PATH") from None
        if not path.exists() or path.stat().st_size == 0:
            self._make()
        if not read:
            self._upgrade()
        with self._opened(write=not read) as data:
            if (version := _version(data)) != _VERSION and not (read and version == 1):
                hint = "another program wrote it, or a newer harness: take another file with --history PATH"
                raise UserError(f"{path} is no history of version {_VERSION}, but {version}", hint=hint)
            self._old = version == 1
            if not read:
                # Only a real write tells.
                data.execute(f"PRAGMA user_version = {_VERSION}")

    def record(self, report: RunReport) -> None:
        """All that the run has reported; what was recorded of it before is replaced. Raises InfrastructureError."""
        if (started := report.started) is None:
            return
        directory = str(report.directory).encode(errors="replace").decode()
        key = (directory, started.time)
        with self._opened(write=True) as data:
            # It may have been moved since.
            data.execute(
                "DELETE FROM run WHERE started = ?1 AND substr(directory, -length(?2)) = ?2",
                (started.time, f"/{report.directory.name}"),
            )
            code = report.finished.exit_code if report.finished else None
            row = (*key, started.series, started.tree, json.dumps(started.arguments), code)
            run = data.execute(
                "INSERT INTO run (directory, started, series, tree, arguments, exit_code) VALUES (?, ?, ?, ?, ?, ?)", row
            ).lastrowid
            for job in report.jobs.values():
                known = (job.facts.tested, job.facts.release, job.facts.toolchain)
                facts = [fact or "" for fact in known]
                number = data.execute(
                    "INSERT INTO job (run, scope, arch, point, finished, tested, release, toolchain)"
                    " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                    (run, started.scope, job.arch, job.point, job.finished, *facts),
                ).lastrowid
                data.executemany("INSERT OR IGNORE INTO name (name) VALUES (?)", [(result.id,) for result in job.results])
                data.executemany(
                    "INSERT INTO result (job, name, outcome, seconds, value, unit, diagnostic, known, covered)"
                    " SELECT ?, id, ?, ?, ?, ?, ?, ?, ? FROM name WHERE name = ?",
                    [(number, *(getattr(one, name) for name in _OF_A_RESULT), one.id) for one in job.results],
                )

    def compared(self, report: RunReport) -> Compared | None:
        """What changed since each of its jobs was last run to its end, by a run that was asked for the same. None if none was."""
        if report.started is None or not report.started.scope:
            return None
        earlier, since = RunReport(Path()), {}
        with self._opened() as data:
            for arch, point in report.jobs:
                found = self._before(data, report.started.scope, report.started.time, arch, point)
                if found:
                    since[f"{arch}/{point}"], earlier.jobs[arch, point] = found
        return Compared(now(), since, tuple(map(_slim, compare(earlier, report)))) if since else None

    @staticmethod
    def _before(data: sqlite3.Connection, scope: str, started: float, arch: str, point: str) -> tuple[str, JobReport] | None:
        """The newest job before `started`, its passes as long as they typically are, and the directory of its run."""
        newest = data.execute(
            "SELECT job.id, job.tested, run.directory FROM job JOIN run ON run.id = job.run"
            " WHERE scope = ? AND arch = ? AND point = ? AND finished AND started < ? ORDER BY started DESC LIMIT ?",
            (scope, arch, point, started, _TYPICAL),
        ).fetchall()
        if not newest:
            return None
        job, seconds = JobReport(arch, point), dict[str, list[float]]()
        for number, _, _ in reversed(newest):
            results = list(_results(data, number))
            for result in results:
                if result.outcome is Outcome.PASS:
                    seconds.setdefault(result.id, []).append(result.seconds)
        for result in results:
            typical = statistics.median(seconds.get(result.id, [result.seconds]))
            job.cases[result.id] = CaseFinished(0, arch, point, msgspec.structs.replace(result, seconds=typical))
        job.facts = JobFacts(tested=newest[0][1])
        job.finished = True
        return newest[0][2], job

    def runs(self, limit: int) -> list[Recorded]:
        """The newest first."""
        with self._opened() as data:
            rows = data.execute("SELECT * FROM run ORDER BY started DESC LIMIT ?", (limit,)).fetchall()
            return [
                Recorded(directory, started, series, tree, code, _outcomes(data, number))
                for number, directory, started, series, tree, _, code in rows
            ]

    def of_case(self, case: str, archs: tuple[str, ...], limit: int) -> list[Seen]:
        """The newest first. Raises UserError if no run had it."""
        with self._opened() as data:
            if not data.execute("SELECT 1 FROM name WHERE name = ?", (case,)).fetchone():
                alike = data.execute("SELECT name FROM name WHERE name LIKE ? LIMIT 3", (f"%{case.partition(':')[2] or case}%",))
                names = ", ".join(name for (name,) in alike.fetchall())
                hint = f"do you mean {names}?" if names else "SUITE:NAME, as the summary of a run names it"
                raise UserError(f"no recorded run has a case '{case}'", hint=hint)
            rows = data.execute(
                f"SELECT {', '.join(Seen.__struct_fields__)} FROM seen"
                " WHERE \"case\" = ?1 AND (?2 = '[]' OR arch IN (SELECT value FROM json_each(?2)))"
                " ORDER BY started DESC, job DESC LIMIT ?3",
                (case, json.dumps(archs), limit),
            )
            return [msgspec.convert(dict(zip(Seen.__struct_fields__, row, strict=True)), Seen) for row in rows]

    def ran(self, wanted: Callable[[str], bool]) -> list[Ran]:
        """The results of the cases whose ids are wanted, the newest first."""
        fields = [f"'' AS {name}" if self._old and name in _NEW else f'"{name}"' for name in Ran.__struct_fields__]
        view = f"({_OLD_SEEN})" if self._old else "seen"
        with self._opened() as data:
            names = [name for (name,) in data.execute("SELECT name FROM name ORDER BY name") if wanted(name)]
            rows = data.execute(
                f"SELECT {', '.join(fields)} FROM {view}"
                ' WHERE "case" IN (SELECT value FROM json_each(?)) ORDER BY started DESC, job, "case"',
                (json.dumps(names),),
            )
            return [msgspec.convert(dict(zip(Ran.__struct_fields__, row, strict=True)), Ran) for row in rows]

    def flaky(self) -> list[Flaky]:
        """Those that were flaky last come first."""
        with self._opened() as data:
            rows = data.execute(
                # That a red is a known one, or is none any more, is not its doing.
                'SELECT arch, point, "case", json_group_array(outcome), MAX(started) FROM seen'
                " WHERE tested != '' AND outcome != 'error' GROUP BY arch, point, \"case\", tested"
                " HAVING COUNT(DISTINCT NULLIF(outcome, 'xfail')) > 1 OR MAX(outcome) = 'flaky'"
                " OR (MAX(outcome = 'xfail') AND MAX(outcome IN ('pass', 'skip')))"
                ' ORDER BY MAX(started) DESC, "case", arch'
            )
            return [Flaky(arch, point, case, _count(json.loads(each)), last) for arch, point, case, each, last in rows]

    @contextlib.contextmanager
    def _opened(self, write: bool = False) -> Iterator[sqlite3.Connection]:
        """One transaction."""
        try:
            with contextlib.closing(sqlite3.connect(self.path, timeout=_BUSY_SECONDS, isolation_level=None)) as data:
                data.execute("PRAGMA foreign_keys = ON")
                data.execute("BEGIN IMMEDIATE" if write else "BEGIN")
                yield data
                data.execute("COMMIT")
        except sqlite3.DatabaseError as error:
            if isinstance(error, sqlite3.OperationalError):
                raise InfrastructureError(f"the history in {self.path}: {error}", hint="--history PATH") from error
            raise UserError(f"{self.path} is no history: {error}", hint="--history PATH") from error

    def _make(self) -> None:
        with self._opened(write=True) as data:
            (tables,) = data.execute("SELECT COUNT(*) FROM sqlite_schema").fetchone()
            # Somebody else may just have made it.
            if _version(data) == 0 and tables == 0:
                for statement in (*_SCHEMA.split(";"), _VIEW, f"PRAGMA user_version = {_VERSION}"):
                    data.execute(statement)

    def _upgrade(self) -> None:
        """Add the columns that a history of version 1 lacks."""
        with self._opened(write=True) as data:
            if _version(data) == 1:
                for statement in (*_FROM_VERSION_1.split(";"), _VIEW, f"PRAGMA user_version = {_VERSION}"):
                    data.execute(statement)


def _version(data: sqlite3.Connection) -> int:
    (version,) = data.execute("PRAGMA user_version").fetchone()
    return int(version)


def _slim(difference: Difference) -> Difference:
    """Without the logs, which the runs have."""
    before, after = (one and msgspec.structs.replace(one, log="", tries=()) for one in (difference.before, difference.after))
    return msgspec.structs.replace(difference, before=before, after=after)


def _outcomes(data: sqlite3.Connection, run: int) -> dict[Outcome, int]:
    return _count([outcome for (outcome,) in data.execute("SELECT outcome FROM seen WHERE run = ?", (run,))])


def _count(outcomes: Sequence[str]) -> dict[Outcome, int]:
    return {outcome: outcomes.count(outcome) for outcome in Outcome if outcome in outcomes}


def _results(data: sqlite3.Connection, job: int) -> Iterator[CaseResult]:
    rows = data.execute('SELECT "case", outcome, seconds, value, unit, diagnostic FROM seen WHERE job = ?', (job,))
    for case, outcome, seconds, value, unit, diagnostic in rows:
        suite, _, name = case.partition(":")
        yield CaseResult(suite, name, Outcome(outcome), seconds, diagnostic, value=value, unit=unit)
