"""Jobs that others do: the report is that of a run that nobody helped. The worker here is a second pipeline with a cache of its
own, on the fake kernel tree; how errands travel is seen in tests/integration/test_cluster.py."""

from __future__ import annotations

import contextlib
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from harness import cluster, paths, pipeline
from harness.arch import Arch
from harness.cache import Cache
from harness.cluster import Done, Errand, Heard
from harness.errors import InfrastructureError
from harness.model import CaseResult, Outcome
from harness.results import RunReport, read_run
from tests import fake
from tests.unit.test_pipeline import ARCH, Bench, main, outcomes

Send = Callable[[Errand, Callable[[Heard], None], list[str]], str]
"""Says what it will of a journal, and returns the name of the attempt that did it."""


class Helper:
    """Does an errand in this process."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.workers = 1
        self.sent: list[tuple[str, ...]] = []
        self.send: Send = whole
        self._one_at_a_time = threading.Lock()

    def needs(self, arch: Arch, accelerator: str) -> dict[str, float]:
        return {f"arch:{arch.name}": 1}

    def slots(self, needs: dict[str, float]) -> int:
        return self.workers

    def run(self, errand: Errand, needs: dict[str, float], seconds: float, hear: Callable[[Heard], None]) -> Done:
        self.sent.append(errand.arguments)
        said = dict(word.removeprefix("--").split("=", 1) for word in errand.arguments)
        with self._one_at_a_time, tempfile.TemporaryDirectory(dir=self.bench.path) as name, _local():
            folder = Path(name)
            cluster.unpack(errand.files, folder)
            away = Bench.__new__(Bench)
            away.path, away.cache = folder, Cache(self.bench.path / "worker")
            report = away.run(self.bench.parse(folder / said["series"], points=said["points"]))
            lines = (report.directory / "journal.jsonl").read_text().splitlines()
            files = cluster.pack(report.directory)
        attempt = self.send(errand, hear, lines)
        assert report.finished
        return Done(Heard(attempt, "elsewhere", 0, tuple(lines), files), report.finished.exit_code, "")


@contextlib.contextmanager
def _local() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pipeline, "_cluster", lambda request: contextlib.nullcontext())
        yield


def whole(errand: Errand, hear: Callable[[Heard], None], lines: list[str]) -> str:
    for number, line in enumerate(lines):
        hear(Heard("only", "elsewhere", number, (line,)))
    return "only"


def silent(errand: Errand, hear: Callable[[Heard], None], lines: list[str]) -> str:
    return "only"


def gappy(errand: Errand, hear: Callable[[Heard], None], lines: list[str]) -> str:
    hear(Heard("only", "elsewhere", 0, tuple(lines[:3])))
    hear(Heard("only", "elsewhere", 5, tuple(lines[5:7])))
    return "only"


@pytest.fixture
def helper(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Helper:
    found = Helper(Bench(tmp_path, monkeypatch))
    monkeypatch.setattr(pipeline, "_cluster", lambda request: contextlib.nullcontext(found))
    return found


def told(report: RunReport) -> dict[str, tuple[list[CaseResult], dict[str, str]]]:
    """All but times, hosts, and what the way there adds."""
    return {
        job.name: (
            sorted(
                # What else make does while a compiler fails depends on which was first.
                (
                    msgspec.structs.replace(result, seconds=0.0, log=result.log if result.outcome.green else "")
                    for result in job.results
                ),
                key=lambda result: result.id,
            ),
            {name: value for name, value in job.properties.items() if name != "host"},
        )
        for job in report.jobs.values()
    }


SERIES = (
    main("int one;"),
    {"Documentation/a.rst": "Read.\n"},
    main("int WARN;"),
    main("int WARN;", "int two; // WARN"),
    main("int ERROR;"),
)


@pytest.mark.parametrize(("workers", "send", "errands"), [(1, gappy, 2), (2, silent, 3), (100, whole, 5)])
def test_report_is_that_of_a_local_run(workers: int, send: Send, errands: int, helper: Helper) -> None:
    wanted = helper.bench.parse(helper.bench.series(*SERIES), per_patch=True)
    helper.workers, helper.send = workers, send
    there = helper.bench.run(wanted)
    with _local():
        here = helper.bench.run(wanted)
    assert told(there) == told(here)
    assert there.finished and here.finished and there.finished.exit_code == here.finished.exit_code == 1
    assert {job.name: job.finished for job in there.jobs.values()} == {job.name: job.finished for job in here.jobs.values()}
    assert outcomes(there, "0003")["build:warnings"] is Outcome.FAIL
    # The second patch makes no other kernel: whoever has the first point has that, too.
    assert len(helper.sent) == errands
    assert (there.directory / ARCH / "base" / "build.log").exists()
    assert told(read_run(there.directory)) == told(there)


def test_warnings_are_new_since_the_point_before_whichever_is_built_first(helper: Helper) -> None:
    others = threading.Semaphore(0)

    def base_last(errand: Errand, hear: Callable[[Heard], None], lines: list[str]) -> str:
        if "--points=base" in errand.arguments:
            for _ in range(3):
                others.acquire()
        whole(errand, hear, lines)
        others.release()
        return "only"

    helper.workers, helper.send = 100, base_last
    directory = helper.bench.series(main("WARN"), main("two"), main("WARN", "WARN"))
    report = helper.bench.run(helper.bench.parse(directory, per_patch=True))
    assert all(job.finished for job in report.jobs.values())
    found = [outcomes(report, point).get("build:warnings") for point in ("base", "0001", "0002", "last")]
    assert found == [None, Outcome.FAIL, Outcome.PASS, Outcome.FAIL]


def lost_with(outcome: Outcome, suite: str = "boot") -> Send:
    """A worker that reports a case, and is gone."""
    result = CaseResult(suite, "splats", outcome)

    def lost(errand: Errand, hear: Callable[[Heard], None], lines: list[str]) -> str:
        half = [line for line in lines if "job-finished" not in line]
        whole_line = next(line for line in half if "case-finished" in line)
        event = msgspec.json.decode(whole_line)
        event["result"] = msgspec.to_builtins(result)
        hear(Heard("first", "one", 0, (*half[:3], msgspec.json.encode(event).decode())))
        hear(Heard("second", "two", 0, tuple(lines[:4])))
        hear(Heard("first", "one", 4, tuple(lines[4:])))  # of one that only seemed to be dead
        return "second"

    return lost


@pytest.mark.parametrize(
    ("suite", "outcome"),
    [
        *(("boot", outcome) for outcome in (Outcome.PASS, Outcome.SKIP, Outcome.XFAIL, Outcome.LOST, Outcome.TIMEOUT)),
        ("boot", Outcome.ERROR),
        ("build", Outcome.FAIL),
    ],
)
def test_attempt_that_was_lost_does_not_count(helper: Helper, suite: str, outcome: Outcome) -> None:
    """A guest, or a compiler, may have died with its worker."""
    helper.send = lost_with(outcome, suite)
    report = helper.bench.run(helper.bench.parse(helper.bench.series(main("one"))))
    assert report.finished and report.finished.exit_code == 0
    assert f"{suite}:splats" not in outcomes(report, "last")
    assert report.job(ARCH, "last").properties["host"] == "two"
    events = (report.directory / "journal.jsonl").read_text()
    assert events.count("job-lost") == 1
    assert "splats" in events


@pytest.mark.parametrize("outcome", [Outcome.FAIL, Outcome.UNRESOLVED, Outcome.CRASH, Outcome.FLAKY])
def test_failure_that_a_lost_worker_saw_is_red(helper: Helper, outcome: Outcome) -> None:
    """What the next worker sees does not take it back."""
    helper.send = lost_with(outcome)
    report = helper.bench.run(helper.bench.parse(helper.bench.series(main("one"))))
    assert report.finished and report.finished.exit_code == 1
    assert outcomes(report, "last")["boot:splats"] is outcome
    assert report.job(ARCH, "last").finished
    assert told(read_run(report.directory)) == told(report)


def test_failure_before_a_run_was_cut_short_is_red(helper: Helper) -> None:
    wanted = helper.bench.parse(helper.bench.series(main("one")))

    def cut(errand: Errand, hear: Callable[[Heard], None], lines: list[str]) -> str:
        events = [msgspec.json.decode(next(line for line in lines if "case-finished" in line)) for _ in range(2)]
        for event, outcome in zip(events, (Outcome.FAIL, Outcome.PASS), strict=True):
            event["result"] = msgspec.to_builtins(CaseResult("boot", outcome.value, outcome))
        hear(Heard("only", "one", 0, (*lines[:3], *(msgspec.json.encode(event).decode() for event in events))))
        raise InfrastructureError("the Dask scheduler is gone")

    helper.send = cut
    broken = helper.bench.run(wanted)
    assert broken.finished and broken.finished.exit_code == 3
    helper.send = whole
    report = helper.bench.run(wanted, again=broken.directory)
    assert report.finished and report.finished.exit_code == 1
    assert outcomes(report, "last")["boot:fail"] is Outcome.FAIL
    assert "boot:pass" not in outcomes(report, "last")


def test_what_a_worker_had_done_before_it_died_is_not_done_again(helper: Helper) -> None:
    def dies(errand: Errand, hear: Callable[[Heard], None], lines: list[str]) -> str:
        if "--points=base,0001" in errand.arguments:
            ended = next(number for number, line in enumerate(lines) if "job-finished" in line)
            (helper.bench.path / "run" / ARCH / "base").mkdir(parents=True)
            (helper.bench.path / "run" / ARCH / "base" / "build.log").write_text("the first attempt's")
            files = cluster.pack(helper.bench.path / "run")
            hear(Heard("first", "one", 0, tuple(lines[: ended + 1]), files))
            hear(Heard("second", "two", 0, tuple(lines[:1])))
        return whole(errand, hear, lines)

    helper.send = dies
    report = helper.bench.run(helper.bench.parse(helper.bench.series(main("one"), main("two")), per_patch=True))
    assert report.finished and report.finished.exit_code == 0
    assert ["--points=0001" in sent for sent in helper.sent].count(True) == 1
    assert report.job(ARCH, "base").properties["host"] == "one"
    assert (report.directory / ARCH / "base" / "build.log").read_text() == "the first attempt's"
    with _local():
        assert told(report) == told(helper.bench.run(helper.bench.parse(helper.bench.path / "s", per_patch=True)))


def test_series_that_only_names_its_origin_is_sent_whole(helper: Helper, tmp_path: Path) -> None:
    """With what it expects, and where that is not beside the patches."""
    patches = helper.bench.series(main("one"))
    mbox = tmp_path / "one.mbox"
    mbox.write_bytes(b"".join(b"From x Mon Sep 17 00:00:00 2001\n" + one.read_bytes() for one in sorted(patches.glob("*.patch"))))
    home = tmp_path / "named"
    home.mkdir()
    (home / "series.toml").write_text(
        '[origin]\ntitle = "change 1"\nmessage-id = "a@b"\nbase = "v6.12"\n'
        '[[must-run]]\ncase = "kunit:must_*"\nreason = "because"\n'
    )
    wanted = helper.bench.parse(home, mbox=mbox)
    assert wanted.series.must_run
    report = helper.bench.run(wanted)
    assert report.finished and report.finished.exit_code == 0, report.finished


def test_series_that_takes_a_3_way_merge_is_sent_with_what_it_was_made_from(helper: Helper) -> None:
    linux = helper.bench.path / "linux"
    text = "".join(f"int a{number};\n" for number in range(20))
    fake.git(linux, "checkout", "--quiet", "-b", "topic")
    for after in (text, text.replace("a10;", "ten;")):
        (linux / "main.c").write_text(after)
        fake.git(linux, "commit", "--quiet", "--all", "--message=lines")
    fake.git(linux, "checkout", "--quiet", "main")
    (linux / "main.c").write_text(text.replace("a8;", "eight;").replace("a13;", "thirteen;"))
    fake.git(linux, "commit", "--quiet", "--all", "--message=drift")
    report = helper.bench.run(helper.bench.parse(f"git:{linux}#topic~1..topic"))
    (patch,) = (result for result in report.results if result.suite == "apply")
    assert patch.diagnostic.startswith("fuzzy")
    assert report.finished and report.finished.exit_code == 0, report.finished


def test_run_that_was_cut_short_does_the_rest(helper: Helper) -> None:
    wanted = helper.bench.parse(helper.bench.series(main("one"), main("two")), per_patch=True)

    def cut(errand: Errand, hear: Callable[[Heard], None], lines: list[str]) -> str:
        first = next(number for number, line in enumerate(lines) if "job-finished" in line)
        hear(Heard("only", "elsewhere", 0, tuple(lines[: first + 3])))
        raise InfrastructureError("the Dask scheduler is gone")

    helper.send = cut
    broken = helper.bench.run(wanted)
    assert broken.finished and broken.finished.exit_code == 3
    assert {job.point for job in broken.jobs.values() if job.finished} == {"base", "last"}
    helper.send = whole
    report = helper.bench.run(wanted, again=broken.directory)
    assert report.finished and report.finished.exit_code == 0
    assert "--points=0001" in helper.sent[-1]  # what was done is not asked for again
    assert len(helper.sent) == 3
    with _local():
        assert told(report) == told(helper.bench.run(wanted))


def test_worker_that_tests_something_else_is_an_error(helper: Helper, monkeypatch: pytest.MonkeyPatch) -> None:
    def other(errand: Errand, hear: Callable[[Heard], None], lines: list[str]) -> str:
        return whole(errand, hear, [line.replace('"base":"', '"base":"f') for line in lines])

    helper.send = other
    report = helper.bench.run(helper.bench.parse(helper.bench.series(main("one"))))
    assert report.finished and report.finished.exit_code == 3
    (error,) = [result for result in report.results if result.outcome is Outcome.ERROR]
    assert "not the same base" in error.diagnostic


def test_worker_that_says_nothing_is_an_error(helper: Helper, monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(errand: Errand, *_: Any) -> Done:
        return Done(Heard("only", "elsewhere", 0, (), cluster.pack(Path("nowhere"))), 0, "as if all were well")

    monkeypatch.setattr(helper, "run", nothing)
    report = helper.bench.run(helper.bench.parse(helper.bench.series(main("one"))))
    assert report.finished and report.finished.exit_code == 3
    assert [result.log for result in report.results if result.outcome is Outcome.ERROR] == ["as if all were well"]


def test_lines_that_got_lost_on_their_way_are_read_at_the_end(helper: Helper) -> None:
    def gap(errand: Errand, hear: Callable[[Heard], None], lines: list[str]) -> str:
        first, last = (next(n for n, line in enumerate(lines) if what in line) for what in ("case-finished", "job-finished"))
        hear(Heard("only", "elsewhere", 0, tuple(lines[:first])))
        hear(Heard("only", "elsewhere", last, tuple(lines[last:])))
        return "only"

    helper.send = gap
    report = helper.bench.run(helper.bench.parse(helper.bench.series(main("one"))))
    assert outcomes(report, "last")["build:build"] is Outcome.PASS


def test_fingerprint_is_that_of_what_is_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for content in ("CONFIG_ONE=y\n", "CONFIG_ONE=y\n", "CONFIG_TWO=y\n"):
        (tmp_path / "base.config").write_text(content)
        monkeypatch.setattr(paths, "CONFIGS", tmp_path)
        found.append(cluster.fingerprint())
    assert found[0] == found[1] != found[2]
