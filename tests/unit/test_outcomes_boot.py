"""The results of suites boot and kunit from the boot log of a fake guest."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.suites.boot import BootSuite
from harness.suites.kunit import KunitSuite
from tests.fake_guest import OOPS, WARNING, Script, Step, dies, dropped, prints
from tests.play import a_target, play

STARTUP = {"FTRACE_STARTUP_TEST": "y", "FUNCTION_TRACER": "y"}
KUNIT = {"KUNIT": "y", "FPROBE_SANITY_TEST": "y"}
CLEAN = {"identity": "pass", "agent": "pass", "console": "pass"}
OK = ("    ok 1 test_one", "    ok 2 test_two", "ok 1 fprobe_test")


def ktap(*results: str) -> Step:
    return prints("KTAP version 1", "1..1", "    KTAP version 1", "    # Subtest: fprobe_test", "    1..2", *results)


@pytest.mark.parametrize(
    ("boot", "outcomes"),
    [
        (
            (prints("Testing tracer function: PASSED"),),
            {**CLEAN, "selftest/tracer function": "pass"},
        ),
        (
            (prints("Testing tracer function: FAILED!"),),
            {**CLEAN, "selftest/tracer function": "fail"},
        ),
        (
            (prints("Testing tracer function: "),),
            {**CLEAN, "selftest/tracer function": "lost"},
        ),
        ((), {**CLEAN, "selftest/tracer function": "lost"}),
        (
            (prints("Testing tracer function: PASSED", "Testing tracer function: FAILED!"),),
            {**CLEAN, "selftest/tracer function": "fail"},
        ),
        (
            (prints("Testing tracer function: FAILED!", "Testing tracer function: PASSED"),),
            {**CLEAN, "selftest/tracer function": "fail"},
        ),
        (
            (prints("Testing tracer function: PASSED", *WARNING),),
            {"identity": "pass", "agent": "pass", "console": "crash", "selftest/tracer function": "pass"},
        ),
        (
            (prints("Testing tracer function: PASSED"), dropped(2)),
            {"identity": "pass", "agent": "pass", "console": "lost", "selftest/tracer function": "pass"},
        ),
        ((prints("Testing tracer function: "), dies), {"agent": "lost"}),
        ((prints("Testing tracer function: ", *OOPS), dies), {"agent": "crash"}),
    ],
)
def test_boot(tmp_path: Path, boot: tuple[Step, ...], outcomes: dict[str, str]) -> None:
    assert play(tmp_path, [BootSuite()], Script(boot=boot), target=a_target(config=STARTUP)).outcomes("boot") == outcomes


@pytest.mark.parametrize(
    ("symbol", "names"),
    [
        ("FUNCTION_TRACER", ["tracer function"]),
        ("DYNAMIC_FTRACE", ["dynamic ftrace", "dynamic ftrace ops #1", "dynamic ftrace ops #2", "ftrace recursion"]),
        ("FUNCTION_GRAPH_TRACER", ["tracer function_graph"]),
        ("IRQSOFF_TRACER", ["tracer irqsoff"]),
        ("PREEMPT_TRACER", ["tracer preemptoff"]),
        ("SCHED_TRACER", ["tracer wakeup"]),
        ("KPROBE_EVENTS", ["kprobe tracing"]),
        ("OTHER", []),
    ],
)
def test_startup_tests_that_never_reported(tmp_path: Path, symbol: str, names: list[str]) -> None:
    target = a_target(config={"FTRACE_STARTUP_TEST": "y", symbol: "y"})
    found = play(tmp_path, [BootSuite()], Script(), target=target)
    assert found.red == {f"boot:selftest/{name}" for name in names}
    assert {result.outcome.value for result in found.reported if result.name in names} <= {"lost"}
    assert all(found[case].diagnostic == "the kernel never reported it" for case in found.red)


def test_failed_startup_test_shows_its_lines(tmp_path: Path) -> None:
    boot = prints("before", "Testing tracer function: ", "in between", ".. no entries found ..FAILED!", "behind")
    result = play(tmp_path, [BootSuite()], Script(boot=(boot,)), target=a_target(config=STARTUP))["boot:selftest/tracer function"]
    messages = [line.partition("] ")[2] for line in result.log.replace("][", "|").splitlines()]
    assert messages == ["Testing tracer function: ", "in between", ".. no entries found ..FAILED!"]
    assert result.diagnostic == messages[-1]


def test_kernel_without_startup_tests(tmp_path: Path) -> None:
    found = play(tmp_path, [BootSuite()], Script(), target=a_target(config={"FUNCTION_TRACER": "y"}))
    assert found.outcomes("boot") == CLEAN


@pytest.mark.parametrize(
    ("config", "boot", "outcomes"),
    [
        (KUNIT, (ktap(*OK),), {"fprobe_test.test_one": "pass", "fprobe_test.test_two": "pass"}),
        (
            KUNIT,
            (ktap("    ok 1 test_one", "    not ok 2 test_two", "not ok 1 fprobe_test"),),
            {"fprobe_test.test_one": "pass", "fprobe_test.test_two": "fail"},
        ),
        (
            KUNIT,
            (ktap("    ok 1 test_one # SKIP no such thing", *OK[1:]),),
            {"fprobe_test.test_one": "skip", "fprobe_test.test_two": "pass"},
        ),
        (KUNIT, (ktap("    ok 1 test_one"),), {"fprobe_test.test_one": "pass", "fprobe_test.#2": "lost"}),
        (KUNIT, (), {"kunit": "lost", "fprobe_test": "lost"}),
        (KUNIT, (prints("KTAP version 1", "1..1", "ok 1 other"),), {"other": "lost", "fprobe_test": "lost"}),
        ({"KUNIT": "y"}, (prints("KTAP version 1", "1..1", "ok 1 other"),), {"other": "lost"}),
        ({"KUNIT": "m"}, (), {"kunit": "skip"}),
        ({}, (), {"kunit": "skip"}),
    ],
)
def test_kunit(tmp_path: Path, config: dict[str, str], boot: tuple[Step, ...], outcomes: dict[str, str]) -> None:
    found = play(tmp_path, [KunitSuite()], Script(boot=boot), target=a_target(config=config))
    assert {name: outcome for name, outcome in found.outcomes("kunit").items() if not name.endswith("fprobe_test")} == {
        name: outcome for name, outcome in outcomes.items() if not name.endswith("fprobe_test")
    }
    wanted = {name for name, outcome in outcomes.items() if outcome not in ("pass", "skip")}
    assert bool(found.red) == bool(wanted)
    assert {f"kunit:{name}" for name in wanted} <= found.red


@pytest.mark.parametrize(
    ("glob", "results", "red"),
    [
        ("fprobe_test.*", (*OK[:2], "not ok 1 fprobe_test"), "fprobe_test"),
        ("fprobe_test.test_one", (*OK[:2], "not ok 1 fprobe_test"), "fprobe_test"),
        ("fprobe_test.test_one", (*OK[:2], "    not ok 3 test_more", OK[2]), "fprobe_test.plan"),
        ("fprobe_test.test_one", (*OK, "ok 2 more # SKIP"), "plan"),
        ("fprobe_test.test_one", (*OK, "Bail out! No memory"), "bail-out"),
    ],
)
def test_suite_that_fails_beside_the_cases_that_are_wanted(tmp_path: Path, glob: str, results: tuple[str, ...], red: str) -> None:
    """It fails as a whole although its cases pass: whatever was asked for of it is not proved."""
    found = play(tmp_path, [KunitSuite()], Script(boot=(ktap(*results),)), target=a_target(config=KUNIT), globs=(glob,))
    assert found.red == {f"kunit:{red}"}


def test_case_that_fails_beside_the_case_that_is_wanted(tmp_path: Path) -> None:
    steps = (ktap(OK[0], "    not ok 2 test_two", "not ok 1 fprobe_test"),)
    found = play(tmp_path, [KunitSuite()], Script(boot=steps), target=a_target(config=KUNIT), globs=("fprobe_test.test_one",))
    assert not found.red


@pytest.mark.parametrize("steps", [(prints(*WARNING),), (dropped(1),)])
def test_kunit_with_a_console_that_is_not_clean(tmp_path: Path, steps: tuple[Step, ...]) -> None:
    """Red also if nobody asked for suite boot."""
    found = play(tmp_path, [KunitSuite()], Script(boot=(ktap(*OK), *steps)), target=a_target(config=KUNIT))
    assert "boot:console" in found.red


@pytest.mark.parametrize(
    ("lines", "crashed"),
    [
        ((*WARNING, *OK), {"fprobe_test.test_one"}),
        ((OK[0], *WARNING, *OK[1:]), {"fprobe_test.test_two"}),
        ((OK[0], *WARNING, "    not ok 2 test_two", "not ok 1 fprobe_test"), {"fprobe_test.test_two"}),
        ((OK[0], *WARNING, "    ok 2 test_two # SKIP no such thing", OK[2]), {"fprobe_test.test_two"}),
        ((*OK[:2], *WARNING, OK[2]), {"fprobe_test"}),
        ((*OK, *WARNING), set()),
    ],
)
def test_kunit_case_in_flight(tmp_path: Path, lines: tuple[str, ...], crashed: set[str]) -> None:
    found = play(tmp_path, [KunitSuite()], Script(boot=(ktap(*lines),)), target=a_target(config=KUNIT))
    assert {name for name, outcome in found.outcomes("kunit").items() if outcome == "crash"} == crashed
    for name in crashed:
        failed = any(line.strip().startswith("not ok") and line.endswith(name.partition(".")[2]) for line in lines)
        assert found[f"kunit:{name}"].diagnostic == WARNING[1] + ("\nthe test itself: fail" if failed else "")
    assert "boot:console" in found.red


def test_report_before_kunit_is_no_case_of_it(tmp_path: Path) -> None:
    script = Script(boot=(prints(*WARNING), ktap(*OK)))
    assert set(play(tmp_path, [KunitSuite()], script, target=a_target(config=KUNIT)).outcomes("kunit").values()) == {"pass"}


def test_startup_test_in_flight(tmp_path: Path) -> None:
    boot = prints("Testing tracer function: ", *WARNING, "PASSED", "Testing tracer nop: PASSED")
    found = play(tmp_path, [BootSuite()], Script(boot=(boot,)), target=a_target(config=STARTUP))
    assert found.outcomes("boot") == {
        "identity": "pass",
        "agent": "pass",
        "console": "crash",
        "selftest/tracer function": "crash",
        "selftest/tracer nop": "pass",
    }


CLOCK = "tsc: Marking TSC unstable due to could not calculate TSC khz"


def test_failures_beside_a_failed_clock_are_not_excused(tmp_path: Path) -> None:
    """A clock of 4 ms makes latency tracers fail, and nothing else."""
    bad = prints(
        CLOCK,
        "Testing tracer irqsoff: .. no entries found ..FAILED!",
        "Testing tracer function: .. filter failed count=0 ..FAILED!",
    )
    failing = ktap("    ok 1 test_one", "    not ok 2 test_two", "not ok 1 fprobe_test")
    clean = prints("Testing tracer irqsoff: PASSED", "Testing tracer function: PASSED")
    config = {**STARTUP, **KUNIT, "IRQSOFF_TRACER": "y"}
    scripts = (Script(boot=(bad, failing)), Script(boot=(clean, ktap(*OK))))
    found = play(tmp_path, [BootSuite(), KunitSuite()], *scripts, target=a_target(config=config))
    assert found["boot:misboot 1"].outcome == "skip"
    reds = {one.id for one in found.reported if not one.outcome.green}
    assert {"kunit:fprobe_test.test_two", "boot:selftest/tracer function"} <= reds
    assert not any("irqsoff" in name for name in reds)
