"""The pipeline on a fake kernel tree, up to the kernels: points, warnings, bisections. Real git and make, a compiler of shell."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from harness import bisect, paths, pipeline, request
from harness.cache import Cache
from harness.errors import InfrastructureError, UserError
from harness.model import CaseResult, Outcome, Point
from harness.options import RunOptions
from harness.progress import Progress
from harness.request import Request
from harness.results import History, JobReport, RunReport, journal, kcidb, text
from harness.results.reproduce import reproduce
from tests import fake

ARCH = "x86_64"


class Bench:
    def __init__(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.path = tmp_path
        self.cache = Cache(tmp_path / "cache")
        for name in ("base", "tracing", "selftests", f"arch/{ARCH}"):
            fragment = tmp_path / "configs" / f"{name}.config"
            fragment.parent.mkdir(parents=True, exist_ok=True)
            fragment.write_text("CONFIG_FTRACE=y\n")
        (tmp_path / "configs" / "known.toml").write_text("")
        monkeypatch.setattr(paths, "CONFIGS", tmp_path / "configs")
        fake.repository(tmp_path / "linux")

    def series(self, *changes: dict[str, str]) -> Path:
        return fake.series(self.path / "s", *changes)

    def parse(
        self,
        series: Path | str,
        arguments: tuple[str, ...] = ("run",),
        **more: Any,
    ) -> Request:
        values: dict[str, Any] = {
            "series_spec": str(series),
            "tree_spec": f"git:{self.path}/linux#main",
            "jobs": 2,
            "toolchain": "gcc",
            "archs": (ARCH,),
        }
        return request.parse(RunOptions(**{**values, **more}), self.cache, arguments)

    def run(
        self,
        wanted: Request,
        plan: pipeline.Plan = pipeline.everything,
        again: Path | None = None,
        history: History | None = None,
    ) -> RunReport:
        with Progress(Console(file=io.StringIO())) as progress:
            if again:
                return pipeline.resume(wanted, self.cache, again, progress, plan, history)
            return pipeline.run(wanted, self.cache, self.path / "runs", progress, plan, history)


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    return Bench(tmp_path, monkeypatch)


def outcomes(report: RunReport, point: str) -> dict[str, Outcome]:
    return {result.id: result.outcome for result in report.job(ARCH, point).results}


def main(*lines: str) -> dict[str, str]:
    return {"main.c": "".join(f"{line}\n" for line in lines)}


def test_every_patch(bench: Bench) -> None:
    directory = bench.series(
        main("int one;"), {"Documentation/a.rst": "Read.\n"}, {"arch/s390/a.c": "int s390;\n"}, main("int two;")
    )
    report = bench.run(bench.parse(directory, per_patch=True))
    assert [point for _, point in report.jobs] == ["base", "0001", "0002", "0003", "last"]
    assert report.finished and report.finished.exit_code == 0
    assert set(outcomes(report, "base")) == {"config:config", "build:build"}
    # Each point answers for its own patch.
    assert [name for name in outcomes(report, "0002") if name.startswith("apply")] == ["apply:0002-change-2.patch"]
    patches = sorted(directory.glob("*.patch"))
    named = [job.properties["patchset"] for job in report.jobs.values()]
    assert named == ["", *(kcidb.patchset_hash(patches[:number]) for number in range(1, 5))]
    kernels = [job.properties["kernel"] for job in report.jobs.values()]
    # Neither documentation nor another architecture makes another kernel.
    assert kernels[1] == kernels[2] == kernels[3]
    assert len(set(kernels)) == 3


def test_new_warnings_are_the_patchs_that_brings_them(bench: Bench) -> None:
    directory = bench.series(
        main("WARN old"),
        main("int more;", "WARN old"),
        {"other.c": "no matter\n"},
        main("WARN old", "WARN new"),
        main("WARN new"),
    )
    report = bench.run(bench.parse(directory, per_patch=True))
    seen = {point: outcomes(report, point).get("build:warnings") for _, point in report.jobs}
    red, green = Outcome.FAIL, Outcome.PASS
    assert seen == {"base": None, "0001": red, "0002": green, "0003": green, "0004": red, "last": green}
    told = next(result for result in report.job(ARCH, "0004").results if result.id == "build:warnings")
    assert told.diagnostic.startswith("1 new since 0003: main.c:")
    assert reproduce(report, report.job(ARCH, "0004"), told) == f"harness build --arch {ARCH} --points 0003,0004"
    # What stands is known of a kernel that compiled nothing, too.
    assert report.job(ARCH, "0003").properties["warnings"] == "1"


def test_points_behind_a_conflict_are_not_built(bench: Bench) -> None:
    directory = bench.series(main("int one;"), main("int two;"), main("int three;"))
    second = directory / "0002-change-2.patch"
    second.write_text(second.read_text().replace("-int one;", "-int elsewhere;").replace("index ", "index 1"))
    report = bench.run(bench.parse(directory, per_patch=True))
    assert outcomes(report, "0001")["build:build"] is Outcome.PASS
    assert outcomes(report, "0002") == {"apply:0002-change-2.patch": Outcome.FAIL}
    assert outcomes(report, "last") == {"apply:0003-change-3.patch": Outcome.LOST}
    told = next(iter(report.job(ARCH, "last").results)).diagnostic
    assert told == "0002-change-2.patch does not apply"
    # All of it at once tells of each patch.
    assert len(outcomes(bench.run(bench.parse(directory)), "last")) == 3


def test_a_symbol_is_proved_on_a_kernel_from_the_cache(bench: Bench) -> None:
    """The last patch changes nothing that is built, but with it the series' own symbols must be there."""
    directory = bench.series(main("int one;"), {"Documentation/a.rst": "Read.\n"})
    (directory / "own.config").write_text("CONFIG_NEEDS_MORE=y\n")
    (directory / "series.toml").write_text('fragment = "own.config"\n')
    report = bench.run(bench.parse(directory, per_patch=True))
    assert outcomes(report, "0001")["build:build"] is Outcome.PASS
    assert outcomes(report, "last")["config:config"] is Outcome.FAIL


# Bisections.


def bisected(bench: Bench, directory: Path, case: str = "build:build", again: Path | None = None) -> RunReport:
    suites, commands = bisect.suite_specs(case)
    selected = {"suite_specs": suites, "commands": commands, "per_patch": True}
    wanted = bench.parse(directory, arguments=("bisect",), **selected)
    return bench.run(wanted, bisect.Bisection(wanted, case, 1), again)


def long_series(bench: Bench, bad: Callable[[int], bool], total: int = 16) -> Path:
    return bench.series(*(main(f"int patch{number};", *(["ERROR"] if bad(number) else [])) for number in range(1, total + 1)))


@pytest.mark.parametrize("culprit", [1, 7, 8, 9, 16])
def test_sixteen_patches_take_six_kernels(bench: Bench, culprit: int) -> None:
    report = bisected(bench, long_series(bench, lambda number: number >= culprit))
    found = report.bisected
    assert found
    assert found.suspects == (f"{culprit:04d}-change-{culprit}.patch",)
    assert found.kernels <= 6
    assert len(report.jobs) == found.kernels
    assert "main.c" in found.diffstat
    assert report.finished and report.finished.exit_code == 1
    expected = ["base", *(f"{number:04d}" for number in range(1, 16)), "last"]
    assert (found.good, found.bad) == (expected[culprit - 1], expected[culprit])
    console = Console(file=io.StringIO(), width=200)
    text.bisected(report, console)
    shown = console.file.getvalue()  # type: ignore[attr-defined]
    point = "last" if culprit == 16 else f"{culprit:04d}"
    assert f"{culprit:04d}-change-{culprit}.patch turns build:build red" in shown
    assert f"$ harness build --arch {ARCH} --points {point}" in shown
    assert f"pass {ARCH}/{found.good} build:build" in shown


def test_points_that_do_not_build_are_skipped(bench: Bench) -> None:
    """`config:config` stands for a case of a guest: where a kernel does not build, there is none."""
    directory = bench.series(*(main(f"int patch{number};", *(["ERROR"] if number in (2, 3) else [])) for number in range(1, 5)))
    wanted = bench.parse(directory, suite_specs=None, per_patch=True, arguments=("bisect",))
    report = bench.run(wanted, bisect.Bisection(wanted, "kunit:a.b", 1))
    assert report.bisected
    assert report.bisected.answer.startswith("base cannot be tested (no such case). last cannot be tested (no such case).")
    assert report.finished and report.finished.exit_code == 1


def test_nothing_to_bisect(bench: Bench) -> None:
    report = bisected(bench, bench.series(main("int one;"), main("int two;")))
    assert report.bisected and report.finished
    assert (report.bisected.suspects, report.finished.exit_code) == ((), 0)
    assert "last is not red, but pass." in report.bisected.answer
    assert len(report.jobs) == 2


def test_red_from_the_start(bench: Bench) -> None:
    (bench.path / "linux" / "main.c").write_text("ERROR\n\n\n\n\nint last;\n")
    fake.git(bench.path / "linux", "commit", "--quiet", "--all", "--message=broken")
    report = bisected(bench, bench.series({"other.c": "two\n"}))
    assert report.bisected and report.finished
    assert (report.bisected.suspects, report.finished.exit_code) == ((), 1)
    assert "base is not green, but fail." in report.bisected.answer


def test_bisection_goes_on_where_it_was(bench: Bench) -> None:
    directory = long_series(bench, lambda number: number >= 5)
    whole = bisected(bench, directory)
    journal = whole.directory / "journal.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    ends = [number for number, line in enumerate(lines) if b'"job-finished"' in line]
    journal.write_bytes(b"".join(lines[: ends[2] + 1]) + b'{"event":"case-fini')
    report = bisected(bench, directory, again=whole.directory)
    assert report.bisected and whole.bisected
    assert (report.bisected.suspects, report.bisected.kernels) == (whole.bisected.suspects, whole.bisected.kernels)
    started = [line for line in journal.read_bytes().splitlines() if b'"job-started"' in line]
    assert len(started) == len(whole.jobs)


def test_what_nobody_ran_is_neither_green_nor_red(bench: Bench) -> None:
    wanted = bench.parse(bench.series(main("int one;")), suite_specs=None, per_patch=True)
    found = bisect.Bisection(wanted, "a:b", 1)
    point = Point("0001", "")
    for result, seen, why in (
        (CaseResult("a", "b", Outcome.PASS), (True, False), ""),
        (CaseResult("a", "b", Outcome.FAIL), (False, True), ""),
        (CaseResult("a", "b", Outcome.LOST), (False, True), ""),  # it took the guest along
        (CaseResult("a", "b", Outcome.LOST, ran=False, diagnostic="no guest"), (False, False), "a:b: lost: no guest"),
        (CaseResult("a", "b", Outcome.SKIP, diagnostic="no probe"), (False, False), "a:b: skip: no probe"),
        (CaseResult("boot", "agent", Outcome.CRASH, diagnostic="Oops"), (False, False), "boot:agent: crash: Oops"),
        (CaseResult("a", "other", Outcome.PASS), (False, False), "no such case"),
    ):
        job = JobReport(ARCH, "0001")
        job.cases[result.id] = journal.CaseFinished(1.0, ARCH, "0001", result)
        looked = found._look(point, job)
        assert ((looked.green, looked.red), looked.why) == (seen, why)
    job.cases["guest:guest"] = journal.CaseFinished(1.0, ARCH, "0001", CaseResult("guest", "guest", Outcome.ERROR))
    with pytest.raises(InfrastructureError):
        found._look(point, job)


def test_a_later_good_point(bench: Bench) -> None:
    directory = bench.series(main("ERROR"), main("int two;"), main("int three;"), main("ERROR", "four"))
    wanted = bench.parse(directory, suite_specs=None, per_patch=True, arguments=("bisect",))
    report = bench.run(wanted, bisect.Bisection(wanted, "build:build", 1, "2"))
    assert report.bisected
    assert (report.bisected.good, report.bisected.suspects) == ("0003", ("0004-change-4.patch",))
    for point, why in (("last", "last point"), ("9", "unknown point")):
        with pytest.raises(UserError, match=why):
            bisect.Bisection(wanted, "build:build", 1, point)


@pytest.mark.parametrize("case", ["build", "guest:guest", "nonsense:x", "build:warnings", "apply:0001-change-1.patch"])
def test_cases_that_cannot_be_bisected(bench: Bench, case: str) -> None:
    with pytest.raises(UserError):
        bisected(bench, bench.series(main("int one;")), case)
