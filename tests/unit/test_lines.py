"""Prefixes of kernel logs, as the programs that people read them with write them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.logs import ktap, splat
from harness.logs.lines import clean, kernel_messages, without_printk_prefix
from harness.model import Outcome

# Each is followed at once by the message.
PRINTK = {
    "time": "[   12.345678] ",
    "wide time": "[12345678.345678] ",
    "time and task": "[123456.345678][ T1234] ",
    "time and CPU": "[    1.000000][    C0] ",
    "wide task": "[    1.000000][T1234567] ",
    "time with a space behind": "[    0.048509 ][    T0 ] ",
    "level": "<4>[    1.000000] ",
    "level alone": "<4>",
    "caller alone": "[    T1] ",
    "three digits": "[    3.070] ",
    "tab": "[\t68764.975944] ",
    "task of a phone": "[    0.629928] I[7:      swapper/0:    1] ",
    "task of an older phone": "[    2.586016]  [2:      swapper/0:    1] ",
}
DMESG = {
    "--decode": "kern  :warn  : [    3.070000] ",
    "--decode, caller": "kern  :warn  : [    3.070000] [      T0] ",
    "--decode, long names": "daemon:notice: [    3.070000] ",
    "--decode, a local facility": "local7:err   : [    3.070000] ",
    "--show-delta": "[    1.000000 <    0.100000>] ",
    "--show-delta --notime": "[<    0.100000>] ",
    "--ctime": "[Fri Nov 20 20:41:32 2026] ",
    "--ctime, one digit": "[Sun Nov  1 20:41:32 2026] ",
    "--ctime, German": "[Fr Nov 20 20:41:32 2026] ",
    "--ctime --show-delta": "[Fri Nov 20 20:41:32 2026 <    0.100000>] ",
    "--human, first": "[Apr19 16:16] ",
    "--human": "[  +0.000123] ",
    "--human, caller": "[  +0.000123] [   T123] ",
    "--time-format iso": "2026-11-20T20:41:32,123456+01:00 ",
    "--time-format iso --decode": "kern  :warn  : 2026-11-20T20:41:32,123456+01:00 ",
}
KMSG = {
    "/dev/kmsg": "6,1234,5678,-;",
    "/dev/kmsg, before 3.6": "6,1234,5678;",
    "/dev/kmsg, caller": "6,1234,5678,-,caller=T123;",
    "netconsole": "6.18.0-rc1,6,1234,5678,-;",
}
JOURNAL = {
    "short": "Nov 20 20:41:32 host kernel: ",
    "short, one digit": "Nov  1 20:41:32 host kernel: ",
    "short, French": "nov. 20 20:41:32 host kernel: ",
    "short-precise": "Nov 20 20:41:32.123456 host kernel: ",
    "short-full": "Fri 2026-11-20 20:41:32 UTC host kernel: ",
    "short-full, zone": "Fri 2026-11-20 20:41:32 +03 host kernel: ",
    "short-iso": "2026-11-20T20:41:32+0100 host kernel: ",
    "short-iso-precise": "2026-11-20T20:41:32.123456+01:00 host kernel: ",
    "short-monotonic": "[    3.070000] host kernel: ",
    "short-delta": "[    3.070000 <    0.100000 >] host kernel: ",
    "short-unix": "1700510492.123456 host kernel: ",
    "--no-hostname": "Nov 20 20:41:32 kernel: ",
    "with-unit": "Fri 2026-11-20 20:41:32 UTC host kernel[n/a]: ",
    "and the time again": "Nov 20 20:41:32 host kernel: [    1.000000] ",
    "and level, time, caller": "Nov 20 20:41:32 host kernel: <4>[    1.000000][    T1] ",
}
SYSLOG = {
    "date": "2026-11-20 20:41:32 host kernel: ",
    "RFC 3164": "<4>Nov 20 20:41:32 host kernel: ",
    "RFC 5424": "<4>1 2026-11-20T20:41:32.123456Z host kernel - - - ",
    "RFC 5424, data": '<4>1 2026-11-20T20:41:32Z host kernel - - [meta sequenceId="1"] ',
    "Solaris's name": "Nov 20 20:41:32 host vmunix: ",
}
CI = {
    "GitHub": "2026-01-01T00:00:00.0000000Z ",
    "GitHub, first line": "\ufeff2026-01-01T00:00:00.0000000Z ",
    "GitHub, printk": "2026-01-01T00:00:00.0000000Z [    1.000000] ",
    "gh run view": "build (x86_64)\tRun the tests\t2026-01-01T00:00:00.0000000Z ",
    "GitLab": "2026-01-01T00:00:00.000000Z 00O ",
    "GitLab, stderr": "2026-01-01T00:00:00.000000Z 01E [    1.000000] ",
    "GitLab, joined": "2026-01-01T00:00:00.000000Z 00O+",
    "GitLab, a section": "\x1b[0Ksection_start:1767225600:boot[collapsed=true]\r\x1b[0K",
    "GitLab, end of a section": "section_end:1767225600:boot\r\x1b[0K",
    "LAVA": "2026-01-01T00:00:00.123456 [    1.000000] ",
    "LAVA, wide": "2026-01-01T00:00:00.123456  <4>[    1.000000] ",
    "tuxrun": "2026-01-01T00:00:00 [    1.000000][    T1] ",
    "Jenkins": "[2026-01-01T00:00:00.000Z] ",
    "Jenkins, printk": "[2026-01-01T00:00:00.000Z] [    1.000000] ",
    "Jenkins, clock": "00:00:01 ",
    "minicom": "[2026-01-01 00:00:00] ",
    "tio": "[00:00:01.123] [    1.000000] ",
    "ts": "Jan 01 00:00:00 ",
    "grabserial": "[1.000000 0.000123] [    1.000000] ",
    "console": "console: ",
    "named console": "main-console: [    1.000000] ",
    "compose": "guest-1  | [    1.000000] ",
    "everything": "2026-01-01T00:00:00.0000000Z console: <4>[    1.000000][    T1] ",
}
MAIL = {
    "no-break spaces": "[\xa0\xa0\xa012.345678]\xa0",
    "indented": "    [   12.345678] ",
    "indented, level": "  <4>[   12.345678] ",
}
PREFIXES = [
    pytest.param(prefix, id=f"{source} {name}")
    for source, prefixes in {
        "printk": PRINTK,
        "dmesg": DMESG,
        "kmsg": KMSG,
        "journal": JOURNAL,
        "syslog": SYSLOG,
        "CI": CI,
        "mail": MAIL,
    }.items()
    for name, prefix in prefixes.items()
]


@pytest.mark.parametrize("prefix", PREFIXES)
@pytest.mark.parametrize("message", ["hello", "  indented", "ok 1 - a", "BUG: odd", "12 apples", ""])
def test_prefix_is_taken_off_and_no_more(prefix: str, message: str) -> None:
    assert without_printk_prefix(clean(prefix + message)) == message


@pytest.mark.parametrize("prefix", PREFIXES)
def test_scan_sees_through(prefix: str) -> None:
    (found,) = splat.scan([f"{prefix}before", f"{prefix}WARNING: CPU: 0 PID: 1 at a.c:1 f+0x1/0x2", f"{prefix}after"])
    assert (found.kind, found.title, found.function) == ("warning", "WARNING: CPU: 0 PID: 1 at a.c:1 f+0x1/0x2", "f")


@pytest.mark.parametrize("prefix", PREFIXES)
def test_ktap_sees_through(prefix: str) -> None:
    lines = ["KTAP version 1", "1..2", "    KTAP version 1", "    1..1", "    not ok 1 b", "not ok 1 a", "ok 2 c"]
    cases = [(case.name, case.outcome) for case in ktap.parse([prefix + line for line in lines])]
    assert cases == [("a.b", Outcome.FAIL), ("c", Outcome.PASS)]


@pytest.mark.parametrize(
    ("line", "caller"),
    [
        ("[    1.000000][    T1] x", "T1"),
        ("[    1.000000][T1234567] x", "T1234567"),
        ("[    1.000000] [     C12] x", "C12"),
        ("[    1.000000] x", ""),
        ("[    T1] x", "T1"),
        ("6,1,2,-,caller=C3;x", "C3"),
        ("[    0.629928] I[7:      swapper/0:   12] x", "T12"),
        ("[    0.629928] I[7:  kworker/u16:3:   12] x", "T12"),
        ("2026-01-01T00:00:00.0000000Z [    1.000000][    T1] x", "T1"),
    ],
)
def test_caller(line: str, caller: str) -> None:
    assert list(kernel_messages(line)) == [(caller, "x")]


@pytest.mark.parametrize(
    "line",
    [
        "[PASS] hello",
        "[ OK ] started",
        "[  OK  ] Reached target",
        "[1] 123 done",
        "[12:34] hello",
        "[<ffffffff81000000>] f+0x1/0x2",
        "[T] x",
        "<not a level>",
        "<4",
        "# [    1.000000] relayed",
        "test: info: hello",
        "a kernel: x",
        "host kernel: x",
        "1.5 kernel: x",
        "console [ttyS0] enabled",
        "1,2,3 go",
        "12:30 lunch",
        "May be",
        "sh | grep",
        "a\tb\tc",
        "    indented",
        "    ok 1 - a",
    ],
)
def test_text_that_is_no_prefix_stays(line: str) -> None:
    assert without_printk_prefix(line) == line


@pytest.mark.parametrize("prefix", ["[    1.000000] ", "[  +0.000123] ", "[Fri Nov 20 20:41:32 2026] "])
@pytest.mark.parametrize(
    "message",
    [
        "12:00:00 is noon",
        "console: enabled",
        "Nov 20 20:41:32 it was",
        "1,2,3;4",
        "2026-11-20 12:00:00 UTC",
        "[12:00:00] x",
        "kern  :warn  : x",
    ],
)
def test_message_behind_a_time_is_left_alone(prefix: str, message: str) -> None:
    """The kernel printed everything after the time, even if it looks like another prefix."""
    assert without_printk_prefix(prefix + message) == message


@pytest.mark.parametrize("message", ["    12:00:00 x", "    console: x", "    1,2,3;x", "    Nov 20 20:41:32 host kernel: x"])
def test_indented_text_is_left_alone(message: str) -> None:
    assert list(kernel_messages(message)) == [("", message)]
    assert without_printk_prefix(f"2026-01-01T00:00:00Z {message}") == message


@pytest.mark.parametrize("message", ["[1:2] x", "[a: b: 1] x", "[1: 2: 3] x", "I[1] x", "[7: swapper] x", "A B"])
def test_message_in_brackets_is_no_task(message: str) -> None:
    assert without_printk_prefix(f"[    1.000000] {message}") == message


def test_message_right_behind_the_time() -> None:
    assert without_printk_prefix("[    1.000000]hello") == "hello"


def test_message_in_the_middle_of_a_line() -> None:
    line = "half a wor[    1.000000][    T7] BUG: odd"
    assert list(kernel_messages(line)) == [("", line), ("T7", "BUG: odd")]
    assert list(kernel_messages("$ [    0.048509 ] [   T7] BUG: odd"))[1] == ("T7", "BUG: odd")


def test_message_may_begin_with_one_space_more() -> None:
    assert list(kernel_messages("[    1.000000]  x")) == [("", "x")]
    assert list(kernel_messages(" x")) == [("", " x")]


def test_message_is_given_once() -> None:
    assert list(kernel_messages("Nov 20 20:41:32 host kernel: [    1.000000] x")) == [("", "x")]


@given(st.text())
def test_message_is_an_end_of_its_line(line: str) -> None:
    line = clean(line)
    assert line.endswith(without_printk_prefix(line))


@given(st.sampled_from([prefix.values[0] for prefix in PREFIXES]), st.text("abc [].:<>,0"))
def test_any_message_behind_any_prefix(prefix: object, message: str) -> None:
    line = clean(f"{prefix}{message}")
    assert line.endswith(without_printk_prefix(line))


def test_no_prefix_is_longer_than_its_pieces() -> None:
    """A row of times without an end is no prefix: the work for a line is bounded."""
    line = "[    1.000000] " * 1000
    assert len(line) - len(without_printk_prefix(line)) == 8 * 15


def test_no_break_space_is_a_space() -> None:
    assert clean("a\xa0b\u202fc") == "a b c"


def test_gitlab_section_leaves_the_text_behind_it() -> None:
    assert clean(b"\x1b[0Ksection_start:1767225600:step_script\r\x1b[0KBUG: odd\r\n") == "BUG: odd"
    assert clean("section_start: a word") == "section_start: a word"
