"""A log that is printed from a tree of results gives exactly these results; a damaged one is never green."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.logs import ktap
from harness.model import Outcome
from tests.unit import ktap_trees as trees

RESULT = re.compile(r"(?:# |\s)*(?:not )?ok ")
STRUCTURE = re.compile(r"(?:# |\s)*(?:(?:not )?ok \d|1\.\.\d|\})")


def found(lines: list[str]) -> list[tuple[str, Outcome]]:
    return [(case.name, case.outcome) for case in ktap.parse(lines)]


def green(lines: list[str]) -> bool:
    """True if `harness ktap` ends with 0 for this log."""
    cases = ktap.parse(lines)
    return bool(cases) and all(case.outcome.green for case in cases)


def places(lines: list[str], pattern: str) -> list[int]:
    return [number for number, line in enumerate(lines) if re.match(pattern, line)]


@given(trees.logs(), st.data())
def test_a_log_gives_exactly_the_results_it_was_printed_from(log: trees.Log, data: st.DataObject) -> None:
    tree, lines = log
    prefix = data.draw(st.sampled_from(trees.PREFIXES))
    for noise in data.draw(st.lists(st.sampled_from(trees.NOISE), max_size=6)):
        lines.insert(data.draw(st.integers(0, len(lines))), noise)
    printed = [prefix(number) + line for number, line in enumerate(lines)]
    assert found(printed) == trees.leaves(tree)


@given(trees.logs(trees.GREEN))
def test_a_green_log_is_green(log: trees.Log) -> None:
    tree, lines = log
    assert green(lines) is all(outcome.green for _, outcome in trees.leaves(tree))


@given(trees.logs())
@settings(max_examples=60)
def test_a_log_that_ends_too_early_is_never_green(log: trees.Log) -> None:
    _, lines = log
    last = max(number for number, line in enumerate(lines) if STRUCTURE.match(line))
    for cut in range(last + 1):
        assert not green(lines[:cut]), lines[:cut]


@given(trees.logs(trees.GREEN, trees.PLAN_FIRST))
@settings(max_examples=60)
def test_a_log_that_begins_too_late_is_never_green(log: trees.Log) -> None:
    _, lines = log
    first = next(number for number, line in enumerate(lines) if RESULT.match(line))
    for cut in range(first + 1, len(lines)):
        assert not green(lines[cut:]), lines[cut:]


@given(trees.logs())
@settings(max_examples=60)
def test_no_failure_turns_green_when_its_line_is_lost(log: trees.Log) -> None:
    _, lines = log
    for number in places(lines, r"(?:# |\s)*not ok "):
        assert not green(lines[:number] + lines[number + 1 :]), lines[number]


@given(trees.logs(trees.GREEN))
@settings(max_examples=60)
def test_any_result_that_turns_not_ok_is_red(log: trees.Log) -> None:
    _, lines = log
    for number in places(lines, r"(?:# |\s)*ok [^#]*$"):
        changed = re.sub(r"^((?:# |\s)*)ok ", r"\1not ok ", lines[number])
        assert not green([*lines[:number], changed, *lines[number + 1 :]]), changed


@given(trees.logs(trees.GREEN))
@settings(max_examples=60)
def test_a_result_that_is_lost_or_comes_twice_is_red(log: trees.Log) -> None:
    _, lines = log
    for number in places(lines, RESULT.pattern):
        assert not green(lines[:number] + lines[number + 1 :]), lines[number]
        if not lines[number].endswith("{"):
            assert not green([*lines[: number + 1], *lines[number:]]), lines[number]


@given(trees.kunit_suites(("pass", "skip")), st.data())
def test_any_stretch_that_the_console_drops_from_kunit_is_noticed(tree: tuple[trees.Item, ...], data: st.DataObject) -> None:
    lines = trees.kunit(tree)
    assert green(lines)
    first = data.draw(st.integers(0, len(lines) - 1))
    end = data.draw(st.integers(first + 1, len(lines)))
    if any(RESULT.match(line) for line in lines[first:end]):
        cases = ktap.parse(lines[:first] + lines[end:])
        # A suite that passed without a case is what the suite kunit finds.
        empty = any(case.outcome is Outcome.PASS and "." not in case.name for case in cases)
        assert empty or not cases or not all(case.outcome.green for case in cases), lines[first:end]


@given(trees.kunit_suites(), st.data())
def test_totals_that_differ_by_one_are_red(tree: tuple[trees.Item, ...], data: st.DataObject) -> None:
    lines = trees.kunit(tree)
    for number in places(lines, r"\s*# [\w ]+: pass:"):
        for key in ("pass", "fail", "skip", "total"):
            more = re.sub(rf"\b{key}:(\d+)", lambda match: f"{match[0].split(':')[0]}:{int(match[1]) + 1}", lines[number])
            cases = ktap.parse([*lines[:number], more, *lines[number + 1 :]])
            wrong = [case for case in cases if case.name.endswith(".totals")]
            assert [case.outcome for case in wrong] == [Outcome.LOST], more
            assert "the test counted" in wrong[0].diagnostic


@pytest.mark.parametrize("render", [*trees.FLAVOURS, trees.kunit])
def test_the_logs_are_what_their_programs_print(render: trees.Render) -> None:
    """The generator is no good if it does not nest."""
    tree = (trees.Item("s", "pass", (trees.Item("a", "pass"), trees.Item("b", "fail"))),)
    lines = render(tree)
    assert any(line.lstrip("# ").startswith("not ok 2") and line.startswith((" ", "#")) for line in lines)
    assert found(lines) == [("s.a", Outcome.PASS), ("s.b", Outcome.FAIL)]
