"""KTAP behind whatever dmesg, journalctl, syslog and CI systems put before a line."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.logs import ktap
from harness.model import Outcome
from tests.unit import ktap_trees as trees

NBSP = "\N{NO-BREAK SPACE}"
PREFIXES = {
    "printk": "[    1.658782] ",
    "printk, wide": "[123456.658782] ",
    "caller": "[    1.658782][    T1] ",
    "caller is a cpu": "[    1.658782][    C0] ",
    "wide caller": "[    1.658782][T123456] ",
    "space before the bracket": "[    0.048509 ][    T0 ] ",
    "raw": "<6>[    1.658782] ",
    "raw with a caller": "<14>[    1.658782][  T123] ",
    "dmesg -x": "kern  :info  : [    3.070000] ",
    "dmesg -x with a caller": "kern  :warn  : [    3.070000] [      T0] ",
    "dmesg -T": "[Sun Nov 22 12:00:01 2026] ",
    "dmesg -H": "[Apr19 16:16] ",
    "dmesg -H, later lines": "[  +0.000012] ",
    "dmesg -d": "[    1.658782 <    0.000012>] ",
    "dmesg --time-format iso": "2026-11-22T12:00:01,658782+00:00 ",
    "no-break spaces": f"[{NBSP}{NBSP}452.600000] ",
    "syslog": "Nov 22 12:00:01 host kernel: [    1.658782] ",
    "syslog without a time": "Nov 22 12:00:01 host kernel: ",
    "journalctl -o short-monotonic": "[    1.658782] host kernel: ",
    "journalctl -o short-full": "Sun 2026-11-22 12:00:01 UTC host kernel: ",
    "journalctl -o short-iso": "2026-11-22T12:00:01+0000 host kernel: ",
    "journalctl -o short-precise": "Nov 22 12:00:01.658782 host kernel: ",
    "journalctl -o short-unix": "1795348801.658782 host kernel: ",
    "/dev/kmsg": "6,1234,1658782,-;",
    "GitHub": "2026-11-22T12:00:01.1234567Z [    1.658782] ",
    "GitHub, output of a program": "2026-11-22T12:00:01.1234567Z ",
}


@pytest.mark.parametrize("name", PREFIXES)
def test_kunit_behind_a_prefix(name: str) -> None:
    prefix = PREFIXES[name]
    cases = (trees.Item("a", "pass"), trees.Item("b", "fail"), trees.Item("c", "skip", (trees.Item("p", "pass"),)))
    lines = [prefix + line for line in trees.kunit((trees.Item("first", "pass", cases),))]
    found = [(case.name, case.outcome.value) for case in ktap.parse(lines)]
    assert found == [("first.a", "pass"), ("first.b", "fail"), ("first.c.p", "pass")]


@pytest.mark.parametrize("name", PREFIXES)
def test_kselftest_behind_a_prefix(name: str) -> None:
    prefix = PREFIXES[name]
    tree = (trees.Item("selftests: net: x", "pass", (trees.Item("a", "pass"), trees.Item("b", "fail"))),)
    found = [(case.name, case.outcome.value) for case in ktap.parse([prefix + line for line in trees.kselftest(tree)])]
    assert found == [("selftests: net: x.a", "pass"), ("selftests: net: x.b", "fail")]


@given(trees.logs(), st.data())
def test_each_line_may_have_another_prefix(log: trees.Log, data: st.DataObject) -> None:
    tree, lines = log
    prefixes = data.draw(st.lists(st.sampled_from(sorted(PREFIXES.values())), min_size=1, max_size=4))
    printed = [prefixes[number % len(prefixes)] + line for number, line in enumerate(lines)]
    assert [(case.name, case.outcome) for case in ktap.parse(printed)] == trees.leaves(tree)


def test_prefix_that_is_not_known_is_no_success() -> None:
    lines = [f"?? {line}" for line in trees.ktap((trees.Item("a", "pass"),))]
    assert all(case.outcome is Outcome.LOST for case in ktap.parse(lines))
