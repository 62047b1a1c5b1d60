"""What KernelCI gets, held against its own schema."""

from __future__ import annotations

import itertools
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from kcidb_io import schema

from harness import arch
from harness.cli import cli
from harness.errors import UserError
from harness.model import CaseResult, Outcome
from harness.results import Journal, RunReport, journal, kcidb

COMMIT = "0123456789abcdef0123456789abcdef01234567"
PROPERTIES = {"base": COMMIT, "number": "2", "tree": "a tree", "compiler": "gcc 12", "qemu": "QEMU 10", "accelerator": "tcg"}
CONFIG = CaseResult("config", "config", Outcome.PASS)
BUILD = CaseResult("build", "build", Outcome.PASS, 60.0, log="a.c: a warning")
ONE_OF_EACH = [CaseResult("suite", f"a/{outcome.value}.tc", outcome, 1.5, "why", "the log") for outcome in Outcome]
STARTED = journal.RunStarted(1000.0, "some-series", "debian:x", ("run", "--config", "configs/debug.config"), "digest", "/here")


def events(*results: CaseResult, point: str = "last", on: str = "arm64", **properties: str) -> list[journal.Event]:
    """Of a job."""
    return [
        journal.JobStarted(1001.0, on, point),
        journal.JobProperties(1002.0, on, point, {**PROPERTIES, **properties}),
        *(journal.CaseFinished(1100.0, on, point, result) for result in results),
        journal.JobFinished(1200.0, on, point),
    ]


def exported(*told: journal.Event, started: journal.RunStarted = STARTED) -> dict[str, Any]:
    report = RunReport(Path("runs/some"))
    for event in (started, *told, journal.RunFinished(1300.0, 1)):
        report.add(event)
    found: dict[str, Any] = json.loads(kcidb.render(report))
    assert schema.LATEST.validate(found) == schema.V5_3.validate_exactly(found) == found
    for ids in schema.V5_3.get_ids(found).values():
        assert len(ids) == len(set(ids))
    assert {test["build_id"] for test in found["tests"]} <= {build["id"] for build in found["builds"]}
    assert {build["checkout_id"] for build in found["builds"]} <= {checkout["id"] for checkout in found["checkouts"]}
    return found


def test_every_outcome_has_a_status() -> None:
    assert set(kcidb.STATUS) == set(Outcome)
    assert not {outcome for outcome in Outcome if not outcome.green and kcidb.STATUS[outcome] in ("PASS", "SKIP", "DONE")}


def test_a_run() -> None:
    found = exported(*events(CONFIG, BUILD, *ONE_OF_EACH))
    (checkout,), (build,) = found["checkouts"], found["builds"]
    assert checkout["valid"] and checkout["comment"] == "some-series, last, on a tree"
    assert checkout["start_time"] == "1970-01-01T00:16:41.000+00:00"
    assert checkout["origin_tests_finish_time"] == "1970-01-01T00:21:40.000+00:00"
    assert (build["status"], build["duration"], build["compiler"], build["architecture"]) == ("PASS", 60.0, "gcc 12", "arm64")
    assert build["config_name"] == "fgraph-harness+debug.config"
    status = {test["misc"]["outcome"]: test["status"] for test in found["tests"]}
    assert status == {outcome.value: kcidb.STATUS[outcome] for outcome in Outcome}
    crash = next(test for test in found["tests"] if test["misc"]["outcome"] == "crash")
    assert crash["path"] == "fgraph.suite.a.crash.tc"
    assert crash["start_time"] == "1970-01-01T00:18:18.500+00:00"
    assert (crash["duration"], crash["comment"], crash["log_excerpt"]) == (1.5, "why", "the log")
    assert crash["environment"]["misc"] == {"qemu": "QEMU 10", "accelerator": "tcg"}
    assert crash["misc"]["case"] == "suite:a/crash.tc"
    assert crash["misc"]["reproduce"] == (
        "harness run --config configs/debug.config --arch arm64 --points last --suite suite:a/crash.tc"
    )


def test_options_that_change_results() -> None:
    """The others are of no use to readers: paths of this machine, for example."""
    words = ("run", "--cache", "/c", "--accel=tcg", "--suite", "kunit:a*", "--jobs", "2")
    started = journal.RunStarted(1000.0, "some-series", "debian:x", words)
    (build,) = exported(*events(BUILD), started=started)["builds"]
    assert build["misc"]["options"] == "--accel tcg --suite 'kunit:a*'"
    none = journal.RunStarted(1000.0, "some-series", "debian:x", ("run",))
    (build,) = exported(*events(BUILD), started=none)["builds"]
    assert "options" not in build["misc"]


def test_a_run_that_was_killed_has_not_all_its_tests() -> None:
    report = RunReport(Path("runs/some"))
    for event in (STARTED, *events(CONFIG, BUILD)):
        report.add(event)
    (checkout,) = json.loads(kcidb.render(report))["checkouts"]
    assert "origin_tests_finish_time" not in checkout


def test_what_was_measured() -> None:
    found = exported(*events(BUILD, CaseResult("bench", "exit", Outcome.PASS, value=12.5, unit="instructions")))
    assert found["tests"][0]["number"] == {"value": 12.5, "unit": "instructions"}


def test_tries_of_a_flaky_case() -> None:
    tries = tuple(CaseResult("s", "a", outcome) for outcome in (Outcome.LOST, Outcome.PASS))
    found = exported(*events(BUILD, CaseResult("s", "a", Outcome.FLAKY, tries=tries)))
    assert found["tests"][0]["misc"]["tries"] == "lost, pass"


def test_known_reds_have_an_issue() -> None:
    known = CaseResult("s", "a", Outcome.XFAIL, diagnostic="known: no such thing there")
    own = CaseResult("s", "b", Outcome.XFAIL)
    found = exported(*events(BUILD, known, own), *events(BUILD, known, on="s390x"))
    assert [issue["comment"] for issue in found["issues"]] == ["known: no such thing there", "The test says so itself."]
    of = {incident["test_id"]: incident["issue_id"] for incident in found["incidents"]}
    tests = {test["id"]: test for test in found["tests"]}
    assert set(of) == set(tests)
    assert [of[test["id"]] for test in found["tests"] if test["misc"]["case"] == "s:a"] == [found["issues"][0]["id"]] * 2
    assert all(incident["present"] for incident in found["incidents"])


# Checkouts.


@pytest.mark.parametrize(
    ("spec", "commit", "name"),
    [
        ("git:/linux#v6.12.1", COMMIT, "v6.12.1"),
        ("git:/linux#main", COMMIT, None),
        ("kernel.org:6.12.117", None, "v6.12.117"),
        ("debian:linux-source-6.12", None, None),
    ],
)
def test_only_a_git_tree_has_a_commit_that_others_know(spec: str, commit: str | None, name: str | None) -> None:
    started = journal.RunStarted(1000.0, "s", spec, ("run",))
    (checkout,) = exported(*events(BUILD), started=started)["checkouts"]
    assert (checkout.get("git_commit_hash"), checkout.get("git_commit_name")) == (commit, name)


def test_patches_have_the_hash_that_kcidb_gives_them(tmp_path: Path) -> None:
    for number in (1, 2):
        (tmp_path / f"{number}.patch").write_text(f"{number}\n")
    files = sorted(tmp_path.glob("*.patch"))
    command = "sha256sum *.patch | cut -c-64 | sha256sum | cut -c-64"
    known = subprocess.run(command, shell=True, cwd=tmp_path, check=True, capture_output=True, text=True).stdout.strip()
    assert kcidb.patchset_hash(files) == known
    assert kcidb.patchset_hash([]) == ""
    jobs = [*events(BUILD, number="0", point="base"), *events(BUILD, point="0001"), *events(BUILD, patchset=known)]
    assert [checkout.get("patchset_hash") for checkout in exported(*jobs)["checkouts"]] == ["", None, known]


def test_a_series_that_does_not_apply() -> None:
    conflict = CaseResult("apply", "0001-a.patch", Outcome.FAIL, diagnostic="kernel/a.c: hunk 1")
    found = exported(*events(conflict), *events(conflict, on="s390x"))
    (checkout,) = found["checkouts"]
    assert not checkout["valid"] and checkout["log_excerpt"] == "0001-a.patch: kernel/a.c: hunk 1"
    assert not found["builds"] and not found["tests"]


# Builds.


@pytest.mark.parametrize(
    ("cases", "status"),
    [
        ([CaseResult("config", "config", Outcome.FAIL, diagnostic="CONFIG_FPROBE")], "FAIL"),
        ([CONFIG, CaseResult("build", "build", Outcome.FAIL, diagnostic="a.c:1")], "FAIL"),
        ([CaseResult("build", "build", Outcome.ERROR, diagnostic="no disk")], "MISS"),
    ],
)
def test_kernels_that_do_not_build(cases: list[CaseResult], status: str) -> None:
    (build,) = exported(*events(*cases))["builds"]
    assert build["status"] == status
    assert build["comment"] == build["log_excerpt"] == cases[-1].diagnostic


def test_new_warnings_are_a_test() -> None:
    found = exported(*events(CONFIG, BUILD, CaseResult("build", "warnings", Outcome.FAIL, diagnostic="1 new")))
    assert found["builds"][0]["status"] == "PASS"
    assert [(test["path"], test["status"]) for test in found["tests"]] == [("fgraph.build.warnings", "FAIL")]


def test_a_kernel_of_somebody_else_was_not_built_by_us() -> None:
    (build,) = exported(*events(CaseResult("boot", "console", Outcome.PASS)))["builds"]
    assert not {"status", "config_name", "duration"} & set(build)


def test_architectures_have_the_kernels_names() -> None:
    jobs = [event for name in arch.names() for event in events(BUILD, on=name)]
    found = exported(*jobs, *events(BUILD, on="vax"))
    assert {build["misc"]["arch"]: build["architecture"] for build in found["builds"]} == {
        **{name: arch.load(name).kernel.arch for name in arch.names()},
        "vax": "vax",
    }


# Identity.


def test_rendered_again_it_is_the_same_run(tmp_path: Path) -> None:
    told = [*events(CONFIG, BUILD, *ONE_OF_EACH), *events(CONFIG, BUILD, on="s390x"), *events(CONFIG, BUILD, point="base")]
    assert exported(*told) == exported(*told)
    again = exported(*told, journal.RunResumed(1250.0), *events(CaseResult("suite", "a/error.tc", Outcome.PASS)))
    before = exported(*told)
    for kind in ("checkouts", "builds", "tests"):
        assert {one["id"] for one in again[kind]} == {one["id"] for one in before[kind]}
    other = exported(*told, started=journal.RunStarted(1000.1, "some-series", "debian:x", STARTED.arguments))
    assert not {one["id"] for one in other["tests"]} & {one["id"] for one in before["tests"]}


@pytest.mark.parametrize(
    ("suite", "name", "path"),
    [
        ("kunit", "fprobe_test.test_fprobe", "fgraph.kunit.fprobe_test.test_fprobe"),
        ("ftracetest", "ftrace/func-filter.tc", "fgraph.ftracetest.ftrace.func-filter.tc"),
        ("ftracetest", "event/event-pid.tc@instance", "fgraph.ftracetest.event.event-pid.tc.instance"),
    ],
)
def test_paths_of_most_cases_are_their_names(suite: str, name: str, path: str) -> None:
    assert kcidb.path_of(suite, name) == path


@pytest.mark.parametrize(
    "name", ["", ".", "a/b", "a..b", "selftest/two words", "s.param[1]", "a.b.tc", "<script>", "\0", "ä" * 9000]
)
def test_paths_of_all_others_can_be_told_apart(name: str) -> None:
    path = kcidb.path_of("s", name)
    assert schema.V5_3.path_re.fullmatch(path) and len(path) < 150
    assert path != kcidb.path_of("s", name + "/")
    assert "--" in path


HOSTILE = st.one_of(st.text(), st.text(alphabet="ab./@-_ ", max_size=6), st.from_regex(r"a[./@ -]b\.tc(@instance|\.instance)?"))


@given(st.lists(HOSTILE, unique=True, max_size=20), st.text(), st.text())
def test_whatever_cases_are_called_kcidb_takes_them_and_no_two_are_one(names: list[str], diagnostic: str, log: str) -> None:
    outcomes = itertools.cycle(Outcome)
    found = exported(*events(*(CaseResult("s", name, next(outcomes), 0.0, diagnostic, log) for name in names)))
    assert len({test["path"] for test in found["tests"]}) == len(names)
    assert [test["misc"]["case"] for test in found["tests"]] == [f"s:{name}".replace("\0", "␀") for name in names]
    assert "\0" not in str(found)


def test_very_long(tmp_path: Path) -> None:
    found = exported(
        *events(CaseResult("s", "n" * 100_000, Outcome.FAIL, diagnostic="d" * 100_000, log="first\n" + "l" * 100_000))
    )
    excerpt = found["tests"][0]["log_excerpt"]
    assert excerpt.startswith("first") and "characters in all" in excerpt and excerpt.endswith("lll")


# The command.


def test_from_the_command_line(tmp_path: Path) -> None:
    with Journal(tmp_path) as written:
        for event in (STARTED, *events(CONFIG, BUILD, *ONE_OF_EACH)):
            written.write(event)
    done = CliRunner().invoke(cli, ["report", str(tmp_path), "--format", "kcidb", "--origin", "me"])
    assert {one["origin"] for one in schema.LATEST.validate(json.loads(done.stdout))["tests"]} == {"me"}
    refused = CliRunner().invoke(cli, ["report", str(tmp_path), "--format", "kcidb", "--origin", "Not Me"])
    assert isinstance(refused.exception, UserError)


def test_no_red_outcome_is_told_as_a_pass() -> None:
    """A known failure did fail: the issue beside it says why it is green here."""
    assert kcidb.STATUS == {
        Outcome.PASS: "PASS",
        Outcome.SKIP: "SKIP",
        Outcome.FAIL: "FAIL",
        Outcome.CRASH: "FAIL",
        Outcome.XFAIL: "FAIL",
        Outcome.FLAKY: "FAIL",
        Outcome.UNRESOLVED: "ERROR",
        Outcome.TIMEOUT: "ERROR",
        Outcome.LOST: "ERROR",
        Outcome.ERROR: "MISS",
    }
    assert set(kcidb.STATUS) == set(Outcome)
