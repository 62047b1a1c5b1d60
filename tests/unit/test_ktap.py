from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from harness.logs import ktap
from harness.model import Outcome

KUNIT = """\
[    1.658782][    T1] KTAP version 1
[    1.658782][    T1] 1..2
[    1.658782][    T1]     KTAP version 1
[    1.658782][    T1]     # Subtest: first
[    1.658782][    T1]     # module: test_first
[    1.658782][    T1]     1..2
[    1.678974][    T1]     ok 1 a
[    1.694915][  T123]     # b: EXPECTATION FAILED at lib/b.c:12
[    1.694915][  T123]     Expected 1 == 2
[    1.694916][    T1]     not ok 2 b
[    1.859749][    T1] # Totals: pass:1 fail:1 skip:0 total:2
[    1.862984][    T1] not ok 1 first
[    1.863607][    T1]     KTAP version 1
[    1.863672][    T1]     # Subtest: second
[    1.863763][    T1]     1..1
[  123.170853][    T1]     ok 1 c # SKIP no such thing
[  123.270868][    T1] ok 2 second # SKIP
"""


def outcomes(text: str) -> dict[str, str]:
    return {case.name: case.outcome.value for case in ktap.parse(text.splitlines())}


def test_kunit_nested_with_printk_prefixes() -> None:
    assert outcomes(KUNIT) == {"first.a": "pass", "first.b": "fail", "second.c": "skip"}
    cases = ktap.parse(KUNIT.splitlines())
    assert "EXPECTATION FAILED at lib/b.c:12" in cases[1].diagnostic
    assert "Expected 1 == 2" in cases[1].diagnostic
    assert cases[2].diagnostic == "no such thing"


def test_directives() -> None:
    text = "TAP version 13\n1..7\nok 1 a # SKIP why\nnot ok 2 b # UNRESOLVED\nok 3 c # XFAIL\nnot ok 4 d # TODO later\n"
    text += "not ok 5 e # TIMEOUT 45 seconds\nok 6 f # just a remark\nnot ok 7 g # error\n"
    assert outcomes(text) == {
        "a": "skip",
        "b": "unresolved",
        "c": "xfail",
        "d": "xfail",
        "e": "timeout",
        "f": "pass",
        "g": "fail",
    }


def test_short_plan_is_red() -> None:
    assert outcomes("TAP version 13\n1..3\nok 1 a\n") == {"a": "pass", "#2": "lost", "#3": "lost"}


def test_parent_that_fails_by_itself_is_red() -> None:
    text = "KTAP version 1\n1..1\n    KTAP version 1\n    # Subtest: s\n    1..1\n    ok 1 a\nnot ok 1 s\n"
    assert outcomes(text) == {"s.a": "pass", "s": "fail"}


def test_truncated_log_loses_what_was_planned() -> None:
    lines = KUNIT.splitlines()
    for cut in range(2, len(lines)):
        cases = ktap.parse(lines[:cut])
        assert any(case.outcome is Outcome.LOST for case in cases), cut


def test_ok_lines_outside_of_a_block_count_for_nothing() -> None:
    text = "ok 1 before\nTAP version 13\n1..1\nok 1 a\nok 2 after\n[   10.0] ok 1 later\n"
    assert outcomes(text) == {"a": "pass"}


def test_log_without_header_or_plan() -> None:
    assert outcomes("ok 1 a\nnot ok 2 b\n") == {"a": "pass", "b": "fail"}
    assert outcomes("1..2\nok 1 a\n") == {"a": "pass", "#2": "lost"}
    assert outcomes("ok 1 a\nok 2 b\n1..3\n") == {"a": "pass", "b": "pass", "#3": "lost"}


def test_kselftest_nesting() -> None:
    inner = "# TAP version 13\n# 1..2\n# ok 1 a\n# not ok 2 b\n"
    text = f"TAP version 13\n1..1\n# selftests: net: x\n{inner}not ok 1 selftests: net: x\n"
    assert outcomes(text) == {"selftests: net: x.a": "pass", "selftests: net: x.b": "fail"}


def test_two_cases_may_share_a_name() -> None:
    assert outcomes("TAP version 13\n1..2\nok 1 same\nnot ok 2 same\n") == {"same": "pass", "same#2": "fail"}


def test_bail_out_is_red() -> None:
    assert "fail" in outcomes("TAP version 13\n1..2\nok 1 a\nBail out! no more\n").values()


def test_nothing_is_nothing() -> None:
    assert ktap.parse([]) == []
    assert ktap.parse(["[    0.1] Booting Linux", "this is ok 1 with me"]) == []


@given(st.text())
def test_any_text_is_survived(text: str) -> None:
    names = [case.name for case in ktap.parse(text.splitlines())]
    assert len(names) == len(set(names))


_line = st.one_of(
    st.sampled_from(
        ["KTAP version 1", "TAP version 13", "1..2", "    1..3", "ok 1 a", "not ok 2 b", "    ok 1 c", "        not ok 1 d"]
    ),
    st.sampled_from(["    # Subtest: s", "# note", "[ 1.0] printk", "", "ok", "not ok", "Bail out!", "1..0 # SKIP"]),
)


@given(st.lists(_line, max_size=30))
def test_a_red_line_inside_a_block_never_vanishes(lines: list[str]) -> None:
    cases = ktap.parse(["TAP version 13", "1..1000", *lines])
    assert not all(case.outcome.green for case in cases)


@given(st.lists(_line, max_size=40), st.data())
def test_cutting_a_log_never_makes_it_green(lines: list[str], data: st.DataObject) -> None:
    whole = ["KTAP version 1", "1..2", "    KTAP version 1", "    1..1", "    ok 1 a", "ok 1 s", "ok 2 t"]
    cut = data.draw(st.integers(min_value=2, max_value=len(whole) - 1))
    assert not all(case.outcome.green for case in ktap.parse(whole[:cut]))


def test_indentation_takes_no_time() -> None:
    assert ktap.parse([" " * 5000 + "x", "\t" * 5000 + "ok", "# " * 5000]) == []


def test_red_never_hides_behind_wrong_numbers() -> None:
    assert "fail" in outcomes("TAP version 13\n1..2\nok 1 a\nok 1 a\nnot ok 2 b\n").values()
    assert outcomes("TAP version 13\n1..2\nok 1 a\nok 3 c\n") == {"a": "pass", "c": "pass", "#2": "lost"}
    assert outcomes("TAP version 13\n1..1\nok 1 a\nnot ok 2 b\n") == {"a": "pass", "b": "fail"}
    assert outcomes("not ok 1 x\nTAP version 13\n1..1\nok 1 a\n") == {"a": "pass", "x": "fail"}
    assert "fail" in outcomes("TAP version 13\n1..1\nok 1 a\n  Bail out! here\n").values()
    assert "fail" in outcomes("TAP version 13\n1..1\nok 1 a\nnot ok - b\n1..2\nok 1 c\nnot ok 2 d\n").values()


def test_stream_after_stream() -> None:
    assert outcomes("1..1\nok 1 a\n1..2\nok 1 b\nnot ok 2 c\n") == {"a": "pass", "b": "pass", "c": "fail"}


def test_block_without_a_plan_is_not_known_to_be_whole() -> None:
    assert outcomes("TAP version 13\nok 1 a\n") == {"a": "pass", "plan": "lost"}


def test_only_the_last_remark_is_a_directive() -> None:
    text = "TAP version 13\n1..3\nok 1 use # char # SKIP why\nok 2 a # error paths covered\nnot ok 3 b # exit=1\n"
    assert outcomes(text) == {"use # char": "skip", "a": "pass", "b": "fail"}


def test_absurd_plan() -> None:
    assert outcomes("TAP version 13\n1..999999999\nok 1 a\n") == {"a": "pass", "missing": "lost"}
    assert outcomes(f"TAP version 13\n1..{'9' * 5000}\nok 1 a\n") == {"a": "pass", "plan": "lost"}


def test_copies_of_copies() -> None:
    names = [case.name for case in ktap.parse(["TAP version 13", "1..3", "ok 1 a", "ok 2 a", "ok 3 a#2"])]
    assert len(set(names)) == 3
