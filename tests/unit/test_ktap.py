from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.logs import ktap
from harness.model import Outcome

DATA = Path(__file__).parent.parent / "data"

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
    assert outcomes("ok 1 before\nTAP version 13\n1..1\nok 1 a\n[   10.0] ok, later\nok then\n") == {"a": "pass"}


def test_log_without_header_or_plan() -> None:
    assert outcomes("ok 1 a\nnot ok 2 b\n") == {"a": "pass", "b": "fail", "plan": "lost"}
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


def test_indentation_takes_no_time() -> None:
    assert ktap.parse([" " * 5000 + "x", "\t" * 5000 + "ok", "# " * 5000]) == []


def test_red_never_hides_behind_wrong_numbers() -> None:
    assert "fail" in outcomes("TAP version 13\n1..2\nok 1 a\nok 1 a\nnot ok 2 b\n").values()
    assert outcomes("TAP version 13\n1..2\nok 1 a\nok 3 c\n") == {"a": "pass", "c": "pass", "#2": "lost"}
    assert outcomes("TAP version 13\n1..1\nok 1 a\nnot ok 2 b\n") == {"a": "pass", "b": "fail", "plan": "fail"}
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


def whole(*lines: str) -> dict[str, str]:
    return outcomes("\n".join(lines))


def test_nested_plan_of_nothing_is_not_green() -> None:
    nested = whole("KTAP version 1", "1..1", "  KTAP version 1", "  1..0", "ok 1 s")
    assert nested == {"s": "lost"}
    assert whole("KTAP version 1", "1..1", "  KTAP version 1", "  1..0 # SKIP no cpu", "ok 1 s") == {"s": "skip"}
    assert whole("KTAP version 1", "1..1", "  1..0", "ok 1 s # SKIP no cpu") == {"s": "skip"}
    assert whole("KTAP version 1", "1..1", "  1..0 # SKIP no cpu", "not ok 1 s") == {"s": "fail"}


def test_reason_of_a_skipped_subtest_is_kept() -> None:
    lines = ("TAP version 13", "1..1", "# 1..0 # SKIP no cpu", "ok 1 s # SKIP")
    (case,) = ktap.parse(lines)
    assert (case.name, case.outcome, case.diagnostic) == ("s", Outcome.SKIP, "no cpu")
    (case,) = ktap.parse([*lines[:3], "ok 1 s # SKIP as it says"])
    assert case.diagnostic == "as it says"


def test_nested_version_line_of_which_nothing_comes_is_not_green() -> None:
    assert whole("KTAP version 1", "1..1", "  KTAP version 1", "ok 1 s") == {"s": "lost"}
    two = whole("TAP version 13", "1..1", "# TAP version 13", "# 1..1", "# ok 1 a", "# TAP version 13", "ok 1 s")
    assert two == {"s.a": "pass", "s.nothing-to-run": "lost"}


def test_announced_subtest_of_which_nothing_comes_is_not_green() -> None:
    assert whole("TAP version 14", "1..1", "    # Subtest: s", "ok 1 - s") == {"s": "lost"}
    assert whole("1..1", "# Subtest: s", "ok 1 - s") == {"s": "lost"}
    assert whole("1..1", "# Subtest: another", "ok 1 - s") == {"s": "pass"}
    assert whole("1..1", "ok 1 - s", "# Subtest: t") == {"s": "pass", "t": "lost", "plan": "lost"}
    inner = whole("1..1", "    ok 1 a", "    # Subtest: b", "ok 1 - s")
    assert inner == {"s.a": "pass", "s.b": "lost"}


def test_not_and_ok_on_two_lines_is_a_failure() -> None:
    lines = ["TAP version 13", "1..3", "ok 1 a", "not", "ok 2 b", "ok 3 c"]
    assert whole(*lines) == {"a": "pass", "b": "fail", "c": "pass"}
    assert "two lines" in ktap.parse(lines)[1].diagnostic
    assert whole("1..1", "  not  ", "random: crng init done", "ok 1 b") == {"b": "fail"}
    assert whole("1..1", "not", "not ok 1 b") == {"b": "fail"}
    assert whole("not", "KTAP version 1", "1..1", "ok 1 b") == {"b": "pass"}


def test_not_ok_without_a_number_is_a_failure() -> None:
    for line in ("not ok a", "not ok # x", "not ok", "not ok, really", "not  ok 2 a", "not ok: a", "not ok\t2 a"):
        text = whole("TAP version 13", "1..2", "ok 1 b", line, "ok 2 c")
        assert "fail" in [text[name] for name in text if name != "plan"], line
        assert "fail" in whole("1..1", "ok 1 b", line).values(), line
    assert "fail" in whole("KTAP version 1", "1..1", "  KTAP version 1", "  1..1", "  not ok a", "  ok 1 b", "ok 1 s").values()
    assert "fail" in whole("TAP version 13", "1..1", "# TAP version 13", "# 1..1", "# not ok a", "ok 1 s").values()
    assert whole("TAP version 13", "1..1", "# not ok that it is so", "ok 1 s") == {"s": "pass"}


def test_ok_without_a_number() -> None:
    assert whole("TAP version 13", "1..3", "ok", "ok a", "ok - b") == {"#1": "pass", "a": "pass", "b": "pass"}
    assert whole("TAP version 13", "1..2", "ok", "ok # SKIP why") == {"#1": "pass", "#2": "skip"}
    assert whole("TAP version 13", "1..1", "# 1..2", "# ok", "# ok a", "ok s") == {"s.#1": "pass", "s.a": "pass"}


def test_prose_never_fills_a_plan() -> None:
    for prose in ("ok then", "ok", "okay 2 b", "ok, fine", "ok 2b", "# ok", "# ok - so"):
        assert whole("TAP version 13", "1..3", "ok 1 a", prose, "ok 3 c") == {"a": "pass", "c": "pass", "#2": "lost"}, prose
    assert ktap.parse(["ok then", "ok"]) == []


def test_a_result_without_a_number_takes_the_next_one() -> None:
    assert whole("1..4", "ok 1 a", "ok - b", "ok 2 c", "ok 4 d") == {
        "a": "pass",
        "b": "pass",
        "c": "pass",
        "d": "pass",
        "#3": "lost",
    }


def test_plan_of_nothing_is_a_skip_only_if_it_says_so() -> None:
    assert whole("1..0 # everything broke") == {"nothing-to-run": "lost"}
    assert whole("1..0") == {"nothing-to-run": "lost"}
    assert whole("TAP version 13", "1..0 # SKIP no such cpu") == {"nothing-to-run": "skip"}
    assert ktap.parse(["1..0 # SKIP no such cpu"])[0].diagnostic == "no such cpu"
    assert whole("1..0 # skipped: rope") == {"nothing-to-run": "skip"}
    assert whole("1..0 # SKIP why", "ok 1 a") == {"a": "pass", "plan": "fail"}
    assert whole("1..0 # SKIP why", "1..0") == {"nothing-to-run": "skip", "nothing-to-run#2": "lost"}


def test_more_results_than_planned_are_red() -> None:
    lines = ["TAP version 13", "1..3", *(f"ok {number} t{number}" for number in range(1, 8))]
    assert whole(*lines) == {**{f"t{number}": "pass" for number in range(1, 8)}, "plan": "fail"}
    assert ktap.parse(lines)[-1].diagnostic == "3 planned, 7 reported"
    nested = whole("KTAP version 1", "1..1", "  KTAP version 1", "  1..1", "  ok 1 a", "  ok 2 b", "ok 1 s")
    assert nested == {"s.a": "pass", "s.b": "pass", "s.plan": "fail"}
    assert whole("ok 1 a", "ok 2 b", "1..1")["plan"] == "fail"
    assert whole("1..1", "ok 1 a", "ok 1 again") == {"a": "pass", "again": "pass", "plan": "fail"}


def test_two_plans_for_the_same_results_are_red() -> None:
    assert whole("1..2", "ok 1 a", "1..2", "ok 2 b") == {"a": "pass", "b": "pass", "plan": "fail"}
    assert whole("1..3", "1..2", "ok 1 a", "ok 2 b") == {"a": "pass", "b": "pass", "#3": "lost", "plan": "fail"}
    nested = whole("KTAP version 1", "1..1", "  1..2", "  ok 1 a", "  1..2", "  ok 2 b", "ok 1 s")
    assert nested == {"s.a": "pass", "s.b": "pass", "s.plan": "fail"}


def test_numbers_may_be_out_of_order_but_each_comes_once() -> None:
    assert whole("1..3", "ok 3 c", "ok 1 a", "ok 2 b") == {"c": "pass", "a": "pass", "b": "pass"}
    assert whole("1..2", "ok 1 a", "ok 1 b") == {"a": "pass", "b": "pass", "#2": "lost"}
    assert whole("1..3", "ok 0 z", "ok 1 a", "ok 2 b")["#3"] == "lost"
    assert whole("1..2", "ok 1 a", "ok 2 b", "ok 2 b2")["plan"] == "fail"


def test_gap_in_a_subtest_without_a_plan_is_red() -> None:
    lines = ["KTAP version 1", "1..1", "  KTAP version 1", "  ok 1 a", "  ok 3 c", "ok 1 s"]
    assert whole(*lines) == {"s.a": "pass", "s.c": "pass", "s.#2": "lost"}
    assert whole("KTAP version 1", "1..1", "  KTAP version 1", "  ok 999999999 c", "ok 1 s")["s.missing"] == "lost"


def test_several_programs_in_one_kselftest() -> None:
    first, second = ("# TAP version 13", "# 1..2", "# ok 1 a", "# ok 2 b"), ("# TAP version 13", "# 1..1", "# ok 1 c")
    assert whole("TAP version 13", "1..1", *first, *second, "ok 1 s") == {"s.a": "pass", "s.b": "pass", "s.c": "pass"}
    cut = whole("TAP version 13", "1..1", *first[:3], *second, "ok 1 s")
    assert cut == {"s.a": "pass", "s.c": "pass", "s.#2": "lost"}
    assert whole("TAP version 13", "1..1", "# 1..1", "# ok 1 a", "# 1..1", "ok 1 s") == {"s.a": "pass", "s.#1": "lost"}


def test_parent_and_children_disagree() -> None:
    block = ("KTAP version 1", "1..1", "  KTAP version 1", "  1..2", "  ok 1 a")
    assert whole(*block, "  not ok 2 b", "ok 1 s") == {"s.a": "pass", "s.b": "fail"}
    assert whole(*block, "  ok 2 b", "not ok 1 s") == {"s.a": "pass", "s.b": "pass", "s": "fail"}
    assert whole(*block, "  ok 2 b", "ok 1 s # TIMEOUT") == {"s.a": "pass", "s.b": "pass", "s": "timeout"}
    # What a known failure may cover must not be all that is left of a parent's own failure.
    assert whole(*block, "  not ok 2 b", "not ok 1 s # TIMEOUT") == {"s.a": "pass", "s.b": "fail", "s": "timeout"}
    assert whole(*block, "not ok 1 s") == {"s.a": "pass", "s.#2": "lost", "s": "fail"}
    assert whole(*block, "  not ok 2 b") == {"unnamed.a": "pass", "unnamed.b": "fail", "unnamed": "lost"}


def test_perl_subtests() -> None:
    lines = ["# Subtest: s", "    ok 1 - a", "    ok 2 - b", "    1..2", "ok 1 - s", "1..1"]
    assert whole(*lines) == {"s.a": "pass", "s.b": "pass"}
    assert whole(*lines[1:]) == {"s.a": "pass", "s.b": "pass"}
    assert whole(*lines[:2], *lines[3:]) == {"s.a": "pass", "s.#2": "lost"}
    assert whole("# Subtest: s", "    1..0 # SKIP no db", "ok 1 # skip no db", "1..1") == {"#1": "skip"}
    assert whole("    # Subtest: s", *lines[1:]) == {"s.a": "pass", "s.b": "pass"}
    assert whole(*lines[:4], "ok 1 - Subtest: s", "1..1") == {"Subtest: s.a": "pass", "Subtest: s.b": "pass"}
    assert whole("# Subtest: a # b", "    ok 1", "    1..1", "ok 1 - a # b", "1..1") == {"a.#1": "pass"}
    assert whole("# Subtest: all", "TAP version 13", "1..1", "ok 1 a") == {"a": "pass"}


def test_result_of_another_subtest_is_not_the_parent() -> None:
    lines = ["TAP version 14", "1..2", "    # Subtest: a", "    1..1", "    ok 1 x", "ok 2 b"]
    assert whole(*lines) == {"a.x": "pass", "a": "lost", "b": "pass"}


def test_braces_around_subtests() -> None:
    lines = ["TAP version 13", "ok 1 - s {", "    ok 1 - a", "    not ok 2 - b", "    1..2", "}", "ok 2 - t", "1..2"]
    assert whole(*lines) == {"s.a": "pass", "s.b": "fail", "t": "pass"}
    assert whole(*lines[:4], *lines[5:]) == {"s.a": "pass", "s.b": "fail", "t": "pass"}
    assert whole(*lines[:3], *lines[4:]) == {"s.a": "pass", "s.#2": "lost", "t": "pass"}
    assert whole(*lines[:5], *lines[6:])["s.}"] == "lost"
    assert whole("1..1", "ok 1 - s {") == {"s.}": "lost"}
    assert whole("1..1", "ok 1 - s {", "}") == {"s": "lost"}
    assert whole("1..2", "ok 1 - s {", "ok 2 - t") == {"s {": "pass", "t": "pass"}
    assert whole("1..1", "ok 1 - s # SKIP why {", "    1..0 # SKIP", "}") == {"s": "skip"}
    assert whole("1..1", "ok 1 - s { # time=5ms", "    ok x", "    1..1", "}") == {"s.x": "pass"}
    assert whole("1..1", "ok 1 - s", "{", "    ok 1 x", "    1..1", "}") == {"s.x": "pass"}
    assert whole("1..1", "ok 1 - s", "}", "{") == {"s": "pass"}


def test_yaml_is_no_result() -> None:
    yaml = ["  ---", "  got: |", "    not ok 1 x", "    1..7", "  ..."]
    assert whole("TAP version 14", "1..2", "ok 1 a", *yaml, "ok 2 b") == {"a": "pass", "b": "pass"}
    cases = ktap.parse(["TAP version 14", "1..2", "not ok 1 a", *yaml, "ok 2 b"])
    assert cases[0].diagnostic == "  got: |\n    not ok 1 x\n    1..7"


def test_what_is_no_yaml_is_read() -> None:
    nested = ["    KTAP version 1", "    1..2", "    ok 1 x", "    not ok 2 y"]
    block = ["KTAP version 1", "1..2", "ok 1 a", "  ---", *nested]
    assert whole(*block, "not ok 2 b") == {"a": "pass", "b.x": "pass", "b.y": "fail"}
    assert whole(*block)["unnamed.y"] == "fail"
    assert whole("KTAP version 1", "1..2", "ok 1 a", "remark", "  ---", "    not ok 1 y", "  ...", "ok 2 b")["b.y"] == "fail"
    assert whole("1..2", "ok 1 a", "  ---", "    ok 1 y", "      ---", "    ...", "ok 2 b") == {"a": "pass", "b.y": "pass"}


def test_totals_of_kunit_are_compared() -> None:
    block = ["KTAP version 1", "1..1", "    KTAP version 1", "    # Subtest: s", "    1..2", "    ok 1 a", "    ok 2 b # SKIP"]
    right = ["# s: pass:1 fail:0 skip:1 total:2", "# Totals: pass:1 fail:0 skip:1 total:2"]
    assert whole(*block, *right, "ok 1 s") == {"s.a": "pass", "s.b": "skip"}
    for wrong in ("# s: pass:1 fail:1 skip:0 total:2", "# Totals: pass:5 fail:1 skip:0 total:6"):
        cases = ktap.parse([*block, wrong, "ok 1 s"])
        assert [(case.name, case.outcome.value) for case in cases[2:]] == [("s.totals", "lost")], wrong
        assert "pass:1 fail:0 skip:1 total:2" in cases[2].diagnostic
    alone = ("KTAP version 1", "1..1", "# s: pass:3 fail:1 skip:0 total:4")
    assert whole(*alone, "ok 1 s") == {"s.totals": "lost"}
    assert whole(*alone, "not ok 1 s") == {"s.totals": "lost", "s": "fail"}
    assert whole("KTAP version 1", "1..1", "# s: pass:1 fail:0 skip:0 total:1", "ok 1 s") == {"s": "pass"}
    assert whole("KTAP version 1", "1..1", "# s: pass:0 fail:1 skip:0 total:1", "ok 1 s") == {"s.totals": "lost"}
    assert whole("KTAP version 1", "1..1", "# s: pass:0 fail:0 skip:0 total:0", "ok 1 s # SKIP") == {"s": "skip"}


def test_totals_of_kselftest_are_compared() -> None:
    block = ["TAP version 13", "1..4", "ok 1 a", "not ok 2 b # error x", "ok 3 c # SKIP", "ok 4 d # XFAIL"]
    plain = {"a": "pass", "b": "fail", "c": "skip", "d": "xfail"}
    assert whole(*block, "# Totals: pass:1 fail:0 xfail:1 xpass:0 skip:1 error:1") == plain
    more = whole(*block, "# Totals: pass:2 fail:0 xfail:1 xpass:0 skip:1 error:1")
    assert more == {**plain, "totals": "lost"}
    assert whole(*block, "# Totals: pass:0 fail:2 xfail:1 xpass:0 skip:1 error:0")["totals"] == "lost"
    # A program that forks counts less than it prints.
    assert whole(*block, "# Totals: pass:0 fail:1 xfail:0 xpass:0 skip:0 error:0") == plain
    inner = ["# TAP version 13", "# 1..1", "# ok 1 a"]
    wrong = whole("TAP version 13", "1..1", *inner, "# # Totals: pass:0 fail:1 xfail:0 xpass:0 skip:0 error:0", "ok 1 s")
    assert wrong == {"s.a": "pass", "s.totals": "lost"}
    unseen = whole("TAP version 13", "1..1", "# # Totals: pass:0 fail:1 xfail:0 xpass:0 skip:0 error:0", "ok 1 s")
    assert unseen == {"s.totals": "lost"}
    assert whole("# Totals: pass:0 fail:1 xfail:0 xpass:0 skip:0 error:0") == {}


def test_kunit_without_a_version_line_cut_short() -> None:
    for indent in ("", "    ", "\t"):
        lines = [f"{indent}{line}" for line in ("# Subtest: kasan", "1..48", "ok 1 a", "ok 2 b")]
        found = whole(*lines)
        assert list(found.values()).count("lost") >= 46, indent
        assert "pass" in found.values()
    found = whole("    # Subtest: kasan", "    ok 1 a", "ok 1 - kasan")
    assert found == {"kasan.a": "pass", "plan": "lost"}


def test_directives_and_remarks() -> None:
    assert whole("1..1", "ok 1 a # SKIP see bug #12") == {"a": "skip"}
    assert ktap.parse(["1..1", "ok 1 a # SKIP see bug #12"])[0].diagnostic == "see bug #12"
    assert whole("1..1", "ok 1 a # Skipped: no root") == {"a": "skip"}
    assert whole("1..1", "not ok 1 a # Skipped: no root") == {"a": "fail"}
    assert whole("1..1", "not ok 1 a # SKIP no root") == {"a": "skip"}
    assert whole("1..1", "ok 1 a # TODO is done") == {"a": "pass"}
    assert whole("1..1", "ok 1 a # timeout of 5 s") == {"a": "pass"}
    assert whole("1..1", "ok 1 a # TIMEOUT 5 s") == {"a": "timeout"}
    assert whole("1..1", "ok 1 a # SKIP x # UNRESOLVED") == {"a # SKIP x": "unresolved"}
    assert whole("1..1", "not ok 1 a # TODOORNOT") == {"a": "fail"}
    assert whole("1..1", "ok 1 a#SKIP") == {"a#SKIP": "pass"}
    assert whole("1..1", "ok 1 # XFAIL: why") == {"#1": "xfail"}


def test_bail_out_in_any_form() -> None:
    for line in ("Bail out!", "  Bail out! x", "# Bail out!", "bail out!  x"):
        assert whole("TAP version 13", "1..1", "ok 1 a", line)["bail-out"] == "fail", line


def test_diagnostics_belong_to_the_next_result_and_are_bounded() -> None:
    lines = ["1..3", "one", "ok 1 a", "two", "", "not ok 2 b # x", *(f"line {number}" for number in range(300)), "not ok 3 c"]
    cases = ktap.parse(lines)
    assert [case.diagnostic for case in cases[:2]] == ["", "x\ntwo"]
    assert cases[2].diagnostic.splitlines() == [f"line {number}" for number in range(200)]
    late = ktap.parse(["noise", "KTAP version 1", "noise", "1..1", "not ok 1 a"])
    assert late[0].diagnostic == ""


def test_log_behind_a_space() -> None:
    lines = (" KTAP version 1", " 1..1", "   KTAP version 1", "   1..1", "   ok 1 a", " ok 1 s")
    assert whole(*lines) == {"s.a": "pass"}


def test_lost_parents_have_the_name_of_their_subtest() -> None:
    suites = [("    KTAP version 1", f"    # Subtest: {name}", "    1..1", "    ok 1 x") for name in "abc"]
    found = whole("KTAP version 1", "1..3", *suites[0], *suites[1], *suites[2], "ok 3 c")
    assert found == {
        "c.a.x": "pass",
        "c.a": "lost",
        "c.b.x": "pass",
        "c.b": "lost",
        "c.x": "pass",
        "#1": "lost",
        "#2": "lost",
    }


def test_version_line_twice_means_that_something_is_missing() -> None:
    assert whole("KTAP version 1", "KTAP version 1", "1..1", "ok 1 a") == {"plan": "lost", "a": "pass"}
    assert whole("KTAP version 1", "1..1", "ok 1 a", "KTAP version 1", "1..1", "ok 1 b") == {"a": "pass", "b": "pass"}


def test_summary_counts_each_outcome() -> None:
    assert ktap.summary(ktap.parse(["1..4", "ok 1", "ok 2", "not ok 3"])) == {"pass": 2, "fail": 1, "lost": 1}


DIFFERENCES = tomllib.loads((DATA / "tap-differences.toml").read_text())


@pytest.mark.parametrize("kind", DIFFERENCES)
def test_differences_from_other_parsers_are_those_with_a_reason(kind: str) -> None:
    entry = DIFFERENCES[kind]
    assert set(entry) == {"log", "tap-parser", "TAP-Parser", "ours", "reason"}
    cases = ktap.parse(entry["log"].splitlines())
    green = bool(cases) and all(case.outcome.green for case in cases)
    assert green is {"green": True, "red": False}[entry["ours"]]
    assert entry["ours"] in ("green", "red")
    assert not entry["ours"] == entry["tap-parser"] == entry["TAP-Parser"]
    assert entry["reason"]
