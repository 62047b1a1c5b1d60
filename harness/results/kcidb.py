"""A run as KernelCI's database takes it: JSON in KCIDB's I/O schema, version 5.3 (kernelci/kcidb-io, kcidb_io/schema/v05_03.py).

A checkout for each point, a build for each job, a test for each case that is about neither; for a case that is red by a known
reason an issue, and an incident that says it is this one. Identifiers are made from what was run and when, so that a run that
is rendered again has the same ones."""

from __future__ import annotations

import datetime
import hashlib
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path, PurePath

import msgspec
from msgspec import Struct

from harness import arch
from harness.cache import digest_of, file_digest
from harness.errors import UserError
from harness.logs.lines import clean_text, shortened
from harness.model import JOB, CaseResult, Outcome
from harness.options import Use, read
from harness.results.facts import read_facts
from harness.results.journal import JobReport, RunReport
from harness.results.reproduce import reproduce

ORIGIN = "fgraph_harness"

STATUS = {
    Outcome.PASS: "PASS",
    Outcome.FAIL: "FAIL",
    Outcome.SKIP: "SKIP",
    Outcome.XFAIL: "FAIL",
    Outcome.UNRESOLVED: "ERROR",
    Outcome.CRASH: "FAIL",
    Outcome.TIMEOUT: "ERROR",
    Outcome.LOST: "ERROR",
    Outcome.ERROR: "MISS",
    Outcome.FLAKY: "FAIL",
}
"""FAIL: the fault is in the kernel; ERROR: a test began, but reached no verdict; MISS: the fault is in the harness. A known
failure is a FAIL with an issue."""

_ROOT = "fgraph"
"""Under which our tests are, in KernelCI's tree of them."""
_CONFIG, _BUILD = "config:config", "build:build"
_OF_A_CHECKOUT = ("base", "commit", "number", "patch", "tree")
_OF_A_GUEST = ("qemu", "accelerator")
"""Facts of a job that KCIDB gets elsewhere than in its build."""
_EXCERPT = 16384
"""Characters of a log that the schema takes."""

_WORD = r"[A-Za-z0-9_]+(?:-[A-Za-z0-9_]+)*"
_PATH = re.compile(rf"{_WORD}(?:\.{_WORD})*")
_TEST_FILE = re.compile(rf"{_WORD}(?:/{_WORD})*\.tc(?:@instance)?")
_LIKE_TEST_FILE = re.compile(r".*\.tc(?:\.instance)?")
_READABLE = 100
_TAG = re.compile(r"(?:kernel\.org:|git:.*#v)(?P<version>\d\S*)")
_COMMIT = re.compile(r"[0-9a-f]{40}")

Facts = dict[str, object]
"""What the schema has no name for."""


class Version(Struct, frozen=True):
    major: int = 5
    minor: int = 3


class Checkout(Struct, frozen=True, omit_defaults=True):
    """The tree at one point of the series."""

    id: str
    origin: str
    git_commit_hash: str | None = None
    git_commit_name: str | None = None
    patchset_hash: str | None = None
    comment: str | None = None
    start_time: str | None = None
    origin_tests_finish_time: str | None = None
    log_excerpt: str | None = None
    valid: bool | None = None
    misc: Facts = {}


class Build(Struct, frozen=True, omit_defaults=True):
    """The kernel of a job."""

    id: str
    origin: str
    checkout_id: str
    comment: str | None = None
    start_time: str | None = None
    duration: float | None = None
    architecture: str | None = None
    compiler: str | None = None
    config_name: str | None = None
    log_excerpt: str | None = None
    status: str | None = None
    misc: Facts = {}


class Environment(Struct, frozen=True, omit_defaults=True):
    comment: str | None = None
    misc: Facts = {}


class Number(Struct, frozen=True, omit_defaults=True):
    value: float
    unit: str | None = None


class Test(Struct, frozen=True, omit_defaults=True):
    """A case of a job."""

    id: str
    origin: str
    build_id: str
    path: str
    status: str
    duration: float
    start_time: str | None = None
    environment: Environment | None = None
    comment: str | None = None
    log_excerpt: str | None = None
    number: Number | None = None
    misc: Facts = {}


class Issue(Struct, frozen=True, omit_defaults=True):
    """The issue that explains why a case is a known failure."""

    id: str
    origin: str
    version: int
    comment: str | None = None
    misc: Facts = {}


class Incident(Struct, frozen=True):
    """The record that a known failure was seen in a test or build."""

    id: str
    origin: str
    issue_id: str
    issue_version: int
    test_id: str
    present: bool


class Report(Struct, frozen=True):
    version: Version
    checkouts: list[Checkout]
    builds: list[Build]
    tests: list[Test]
    issues: list[Issue]
    incidents: list[Incident]


def render(report: RunReport, origin: str = ORIGIN) -> str:
    """JSON, on one line. Raises UserError for an `origin` that KCIDB does not take: [a-z0-9_]+."""
    return msgspec.json.encode(convert(report, origin)).decode()


def convert(report: RunReport, origin: str = ORIGIN) -> Report:
    """As `render`, before it is text."""
    if not re.fullmatch(r"[a-z0-9_]+", origin):
        raise UserError(f"'{origin}' is no origin", hint="small letters, digits and underscores")
    return _Export(report, origin).report()


def patchset_hash(patches: Iterable[Path]) -> str:
    """KCIDB's name for patches in order: `sha256sum FILES | cut -c-64 | sha256sum | cut -c-64`; empty if there are none."""
    lines = "".join(f"{file_digest(path)}\n" for path in patches)
    return hashlib.sha256(lines.encode()).hexdigest() if lines else ""


def path_of(suite: str, name: str) -> str:
    """Where a case is in KernelCI's tree of tests: words of letters, digits, `_` and `-` with dots between. Names that are like
    that are taken as they are, the path of a test's file gets dots for slashes; of any other name there is what can be read, and
    a digest, so that no two cases are at the same place."""
    dotted = name.translate({ord("/"): ".", ord("@"): "."})
    is_file = bool(_TEST_FILE.fullmatch(name))
    if is_file or (_PATH.fullmatch(name) and not _LIKE_TEST_FILE.fullmatch(name)):
        return f"{_ROOT}.{suite}.{dotted}"
    readable = "_".join(re.findall(_WORD, name))[:_READABLE]
    return f"{_ROOT}.{suite}.{readable}--{digest_of(name)[:8]}"


class _Export:
    def __init__(self, report: RunReport, origin: str) -> None:
        self._report = report
        self._origin = origin
        started = report.started
        arguments = started.arguments if started else ()
        made_from = (started.time, started.directory, started.series, started.digest) if started else ()
        self._run = digest_of(*map(str, made_from), *arguments)[:16]
        line = read(arguments)
        self._fragments = [PurePath(path).name for path in line.values("fragments")]
        self._options = shlex.join(line.using(Use.RESULTS).options)
        """Those that change results, as a command line has them."""

    def report(self) -> Report:
        jobs = list(self._report.jobs.values())
        points = dict.fromkeys(job.point for job in jobs)
        known = [found for job in jobs for result in self._tested(job) for found in self._known(job, result)]
        return Report(
            version=Version(),
            checkouts=[self._checkout(point, [job for job in jobs if job.point == point]) for point in points],
            builds=[self._build(job) for job in jobs if _CONFIG in job.cases or _BUILD in job.cases or self._tested(job)],
            tests=[self._test(job, result) for job in jobs for result in self._tested(job)],
            issues=list({issue.id: issue for issue, _ in known}.values()),
            incidents=[incident for _, incident in known],
        )

    def _checkout(self, point: str, jobs: list[JobReport]) -> Checkout:
        facts = read_facts({name: text for job in jobs for name, text in job.properties.items()})
        patches = [result for job in jobs for result in job.results if result.suite == "apply"]
        red = list(dict.fromkeys(f"{one.name}: {one.diagnostic}" for one in patches if not one.outcome.green))
        # What comes after the patches is reported only if they apply.
        applied = any(result.suite not in ("apply", JOB) for job in jobs for result in job.results)
        spec = self._report.started.tree if self._report.started else ""
        base = facts.base or ""
        tag = _TAG.fullmatch(spec)
        finished = self._report.finished
        whole = finished and not finished.error and all(job.finished for job in jobs)
        return Checkout(
            id=self._id(point),
            origin=self._origin,
            # The commit of a tarball is one of our own, which nobody else has.
            git_commit_hash=base if spec.startswith("git:") and _COMMIT.fullmatch(base) else None,
            git_commit_name=f"v{tag['version']}" if tag else None,
            # Not known of a run older than the property, nor of a kernel that somebody else built.
            patchset_hash="" if facts.patchset is None and facts.number == 0 else facts.patchset,
            comment=_text(f"{self._report.series}, {point}, on {facts.tree or spec}"),
            start_time=_time(min((job.started for job in jobs if job.started), default=0.0)),
            origin_tests_finish_time=_time(finished.time) if finished and whole else None,
            log_excerpt=_excerpt("\n".join(red)),
            valid=True if applied else False if red else None,
            misc=_facts(
                {name: text for name, text in facts.properties.items() if name in _OF_A_CHECKOUT},
                series=self._report.series,
                series_digest=self._report.started.digest if self._report.started else "",
                tree_spec=spec,
            ),
        )

    def _build(self, job: JobReport) -> Build:
        cases = [job.cases[name].result for name in (_CONFIG, _BUILD) if name in job.cases]
        red = [case for case in cases if not case.outcome.green]
        built = job.cases[_BUILD].result if _BUILD in job.cases else None
        # Without a case, somebody else built it.
        said = (red or cases)[-1:]
        return Build(
            id=self._build_id(job),
            origin=self._origin,
            checkout_id=self._id(job.point),
            comment=_text("\n".join(case.diagnostic for case in red)),
            start_time=_time(job.started),
            duration=built.seconds if built else None,
            architecture=arch.load(job.arch).kernel.arch if job.arch in arch.names() else job.arch,
            compiler=_text(job.facts.compiler or ""),
            config_name=_text("+".join(["fgraph-harness", *self._fragments])) if cases else None,
            log_excerpt=_excerpt("\n".join(case.log or case.diagnostic for case in red)),
            status=STATUS[said[0].outcome] if said else None,
            misc=_facts(job.properties, arch=job.arch, point=job.point, options=self._options),
        )

    def _test(self, job: JobReport, result: CaseResult) -> Test:
        machine = {name: text for name, text in job.properties.items() if name in _OF_A_GUEST}
        again = reproduce(self._report, job, result) if not result.outcome.green else ""
        return Test(
            id=self._test_id(job, result),
            origin=self._origin,
            build_id=self._build_id(job),
            path=path_of(result.suite, result.name),
            status=STATUS[result.outcome],
            start_time=_time(job.cases[result.id].time - result.seconds),
            duration=result.seconds,
            environment=Environment(_text(", ".join(machine.values())), _facts(machine)) if machine else None,
            comment=_text(result.diagnostic),
            log_excerpt=_excerpt(result.log),
            number=None if result.value is None else Number(result.value, _text(result.unit)),
            misc={
                "case": _as_it_is(result.id),
                **_facts(
                    outcome=result.outcome.value, tries=", ".join(one.outcome.value for one in result.tries), reproduce=again
                ),
            },
        )

    def _known(self, job: JobReport, result: CaseResult) -> Iterator[tuple[Issue, Incident]]:
        """Nothing for a case that is no known failure."""
        if result.outcome is not Outcome.XFAIL:
            return
        why = _text(result.diagnostic) or "The test says so itself."
        issue = Issue(
            id=f"{self._origin}:{digest_of(result.id, why)[:32]}",
            origin=self._origin,
            version=1,
            comment=why,
            misc={"case": _as_it_is(result.id)},
        )
        test = self._test_id(job, result)
        yield issue, Incident(test, self._origin, issue.id, issue.version, test, present=True)

    def _tested(self, job: JobReport) -> list[CaseResult]:
        return [one for one in job.results if one.suite != "apply" and one.id not in (_CONFIG, _BUILD)]

    def _id(self, *parts: str) -> str:
        return f"{self._origin}:{'-'.join([self._run, *parts])}"

    def _build_id(self, job: JobReport) -> str:
        return self._id(job.arch, job.point)

    def _test_id(self, job: JobReport, result: CaseResult) -> str:
        return self._id(job.arch, job.point, digest_of(result.id)[:16])


def _facts(known: Mapping[str, str] = {}, **more: str) -> Facts:
    return {name: clean_text(value) for name, value in {**known, **more}.items() if value}


def _as_it_is(name: str) -> str:
    """But for NUL, which PostgreSQL has not, in JSON neither."""
    return name.replace("\0", "\N{SYMBOL FOR NULL}")


def _text(value: str) -> str | None:
    return clean_text(value) or None


def _excerpt(log: str) -> str | None:
    return shortened(clean_text(log), _EXCERPT) or None


def _time(seconds: float) -> str | None:
    """RFC 3339; None for 0, which is not known."""
    if not seconds:
        return None
    return datetime.datetime.fromtimestamp(seconds, datetime.UTC).isoformat(timespec="milliseconds")
