"""Damaged and hostile KTAP: what is cut, repeated, misplaced or made to cost time."""

from __future__ import annotations

import time

import pytest

from harness.logs import ktap
from harness.model import Outcome
from tests.unit.test_ktap import whole

HOSTILE = {
    "one name": ["1..9", *["ok 1 a"] * 8_000],
    "copies of copies": ["1..9", *[f"ok 1 a#{number}" for number in range(2, 4_000)], *["ok 1 a"] * 4_000],
    "yaml in yaml": [line for deep in range(1000) for line in (f"{' ' * deep}ok 1", f"{' ' * deep}  ---")],
    "yaml without an end": ["ok 1", "  ---", *["    ok 1", "      ---"] * 4_000],
    "totals": ["1..1", *["# s: pass:1 fail:0 skip:0 total:1"] * 4_000, *["    ok 1 a"] * 4_000],
    "totals of all": ["1..1", *["    ok 1 a", "# Totals: pass:1 fail:0 skip:0 total:1"] * 4_000],
    "announcements": [f"{' ' * (4 * (number % 30))}# Subtest: s{number}" for number in range(8_000)],
    "version lines": ["  " * (number % 60) + "KTAP version 1" for number in range(8_000)],
    "plans": ["  " * (number % 60) + "1..3" for number in range(8_000)],
    "depths": ["  " * (number % 60) + f"ok {number} a" for number in range(8_000)],
    "braces": ["  " * (number % 60) + "ok 1 a {" for number in range(8_000)],
    "closing braces": ["1..1", "ok 1 a {", *["}"] * 8_000],
    "lost parents": ["    KTAP version 1", "    # Subtest: a", "    ok 1 x", "    # Subtest: b", "    1..1"] * 1_600,
    "numbers": ["1..999999999", *[f"ok {number * 7919 % 999999999} a{number}" for number in range(8_000)]],
    "ok": ["TAP version 13", *["ok"] * 8_000],
    "not": ["not"] * 8_000,
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_time_grows_with_the_number_of_lines_and_no_faster(kind: str) -> None:
    lines = HOSTILE[kind]

    def seconds(part: list[str]) -> float:
        taken = []
        for _ in range(2):
            start = time.process_time()
            ktap.parse(part)
            taken.append(time.process_time() - start)
        return min(taken)

    sixteenth = lines[: len(lines) // 16]
    # As many lines in all: what grows with the square of their number would take 16 times as long.
    assert seconds(lines) < 6 * 16 * max(seconds(sixteenth), 0.002)


def test_names_of_deep_subtests_do_not_fill_the_memory() -> None:
    deep = ["  " * level + f"1..1\n{'  ' * level}" for level in range(60)]
    lines = [line.strip("\n ") and line for line in deep]
    lines += ["  " * 60 + f"ok {number} leaf{number}" for number in range(100)]
    lines += ["  " * level + f"ok 1 {'n' * 3000}" for level in reversed(range(60))]
    names = [case.name for case in ktap.parse(lines)]
    assert any(name.endswith("leaf99") for name in names)
    assert max(map(len, names)) < 1100


def test_lines_are_read_up_to_a_limit() -> None:
    (case,) = ktap.parse(["1..1", f"ok 1 {'n' * 10_000}"])
    assert len(case.name) < 1100
    assert ktap.parse(["1..1", f"not ok 1 a # {'n' * 10_000}"])[0].diagnostic.startswith("nnn")


def test_nesting_deeper_than_any_test_is_survived() -> None:
    found = ktap.parse(["KTAP version 1", "1..1", *(f"{' ' * deep}ok 1 d{deep}" for deep in range(400)), "ok 1 s"])
    assert any(not case.outcome.green for case in found)


def test_second_subtest_without_a_version_line() -> None:
    suites = [(f"    # Subtest: {name}", "    1..1", f"    ok 1 {name}1") for name in "ab"]
    found = whole(*suites[0], *suites[1], "ok 2 - b")
    assert found == {"b.a.a1": "pass", "b.a": "lost", "b.b1": "pass", "plan": "lost"}
    assert whole("    # Subtest: kasan", "    ok 1 a") == {"kasan.a": "pass", "kasan": "lost", "plan": "lost"}


def test_results_two_levels_below_are_not_lost() -> None:
    deep = ("KTAP version 1", "1..1", "  KTAP version 1", "    KTAP version 1", "    1..1", "    not ok 1 x")
    assert whole(*deep, "ok 1 s")["s.unnamed.x"] == "fail"
    assert whole(*deep, "KTAP version 1", "1..0 # SKIP")["unnamed.unnamed.x"] == "fail"
    assert whole(*deep, "  KTAP version 1", "  1..1", "  ok 1 y", "ok 1 s")["s.unnamed.x"] == "fail"
    assert whole(*deep, "  # Subtest: t", "  1..1", "  ok 1 y", "ok 1 t")["t.unnamed.x"] == "fail"
    assert whole("    not ok 1 x", "TAP version 13", "1..1", "ok 1 a")["unnamed.x"] == "fail"


def test_lost_parents_are_no_results_of_the_plan() -> None:
    lines = ("KTAP version 1", "1..1", "  # Subtest: a", "  1..1", "  ok 1 x", "ok 1 b")
    assert whole(*lines) == {"a.x": "pass", "a": "lost", "b": "pass"}


def test_braces_stand_at_the_depth_of_their_result() -> None:
    assert whole("1..1", "ok 1 - s", "  {", "    ok 1 x", "    1..1", "  }", "1..1")["unnamed.x"] == "pass"
    nested = ("1..1", "    ok 1 x", "ok 1 - s", "{", "}")
    assert whole(*nested) == {"s.x": "pass"}
    twice = whole("1..2", "ok 1 - s {", "    ok 1 x", "    1..1", "}", "ok 2 - t {", "    not ok 1 y", "    1..1", "}")
    assert twice == {"s.x": "pass", "t.y": "fail"}
    open_in_subtest = whole("1..1", "    ok 1 - s {", "        ok 1 x", "ok 1 t")
    assert open_in_subtest == {"t.s.x": "pass", "t.s.}": "lost"}
    restarted = whole("1..1", "# 1..1", "# ok 1 s {", "# 1..1", "# ok 1 t", "ok 1 u")
    assert restarted["u.s.}"] == "lost"


def test_yaml_of_a_passed_result_is_no_diagnostic() -> None:
    cases = ktap.parse(["1..1", "ok 1 a", "  ---", "  took: 5", "  ..."])
    assert [(case.outcome, case.diagnostic) for case in cases] == [(Outcome.PASS, "")]


def test_totals_belong_to_their_block_and_depth() -> None:
    first = ("KTAP version 1", "1..1", "ok 1 a", "# s: pass:1 fail:0 skip:0 total:1")
    assert whole(*first, "KTAP version 1", "1..1", "not ok 1 b") == {"a": "pass", "b": "fail"}
    inner = ("KTAP version 1", "1..1", "    KTAP version 1", "    1..2", "        ok 1 p", "        not ok 2 q")
    claims = ("    # c: pass:1 fail:1 skip:0 total:2", "    not ok 1 c", "    ok 2 d")
    right = "# Totals: pass:2 fail:1 skip:0 total:3", "# s: pass:1 fail:1 skip:0 total:2"
    assert "s.totals" not in whole(*inner, *claims, *right, "not ok 1 s")
    for wrong in ("# Totals: pass:1 fail:1 skip:0 total:2", "# s: pass:2 fail:1 skip:0 total:3"):
        assert whole(*inner, *claims, wrong, "not ok 1 s")["s.totals"] == "lost", wrong


def test_block_after_a_skipped_one() -> None:
    assert whole("1..0 # SKIP why", "1..1", "not ok 1 a") == {"nothing-to-run": "skip", "a": "fail"}
    assert whole("TAP version 13", "1..1", "ok 1 a", "    # Subtest: s", "    1..1", "    not ok 1 b", "ok 1 - s") == {
        "a": "pass",
        "s.b": "fail",
        "plan": "lost",
    }


def test_absurd_numbers_do_not_fill_a_plan() -> None:
    assert whole("1..2", "ok 0 a", "ok 5 b") == {"a": "pass", "b": "pass", "#1": "lost", "#2": "lost"}


def test_program_that_dies_after_its_plan() -> None:
    found = whole("TAP version 13", "1..1", "# 1..2", "# TAP version 13", "# 1..1", "# ok 1 c", "ok 1 s")
    assert found == {"s.#1": "lost", "s.#2": "lost", "s.c": "pass"}


def test_brace_that_is_not_closed_before_the_next_result() -> None:
    found = whole("1..2", "ok 1 s {", "    ok 1 x", "ok 2 t")
    assert found == {"s.x": "pass", "s.}": "lost", "t": "pass"}


def test_results_before_the_name_are_not_those_of_the_subtest() -> None:
    found = whole("1..1", "    ok 1 x", "# Subtest: s", "ok 1 - s")
    assert found == {"unnamed.x": "pass", "unnamed": "lost", "s": "lost"}


def test_headless_log_of_which_only_subtests_are_left() -> None:
    assert whole("ok 1 a", "    1..2") == {"a": "pass", "unnamed.#1": "lost", "unnamed.#2": "lost", "plan": "lost"}
    assert whole("    ok 1 a") == {"unnamed.a": "pass", "unnamed": "lost", "plan": "lost"}


def test_claims_do_not_reach_the_next_block() -> None:
    claims = ("KTAP version 1", "1..1", "ok 1 a", "    # s: pass:1 fail:0 skip:0 total:1")
    assert whole(*claims, "KTAP version 1", "1..1", "    ok 1 x # SKIP", "ok 1 b") == {"a": "pass", "b.x": "skip"}


@pytest.mark.parametrize("totals", ["# Totals: pass:1 fail:1 skip:0 total:2", "# a: pass:0 fail:1 skip:0 total:1"])
def test_totals_behind_the_last_result_contradict_nothing_in_silence(totals: str) -> None:
    cases = ktap.parse(["TAP version 13", "1..1", "ok 1 a", totals])
    assert [case.name for case in cases if not case.outcome.green] == ["totals"]
