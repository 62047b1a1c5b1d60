"""A fatal report behind a known one: through the console of a (fake) guest, the session and the policy."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from harness.logs.splat import Splat, scan
from harness.model import CaseResult, Outcome
from harness.suites.known import Known
from harness.suites.kunit import KunitSuite
from harness.suites.policy import Policy
from harness.suites.titles import titles
from tests.fake_guest import WARNING, Script, Step, agent_dies, dies, dropped, exits, hangs, prints
from tests.play import a_target, play
from tests.unit.test_outcomes import Plain
from tests.unit.test_policy import known

KNOWN = (
    "------------[ ftrace bug ]------------",
    "ftrace failed to modify",
    "[<ffffffff81001234>] made_up_entry+0x4/0x10",
    " actual:   cc:1f:44:00:00",
    "ftrace record flags: 10000001",
)
BUG = (
    "------------[ cut here ]------------",
    "kernel BUG at kernel/trace/fgraph.c:300!",
    "Oops: invalid opcode: 0000 [#1] PREEMPT SMP",
    "RIP: 0010:made_up_return+0x42/0x1b0",
    "Call Trace:",
    " made_up_caller+0x12/0x30",
    "---[ end trace 0000000000000000 ]---",
)
PANIC = ("Kernel panic - not syncing: Fatal exception",)
OOPS = (
    "BUG: kernel NULL pointer dereference, address: 0000000000000008",
    "#PF: supervisor read access in kernel mode",
    "Oops: Oops: 0000 [#1] PREEMPT SMP NOPTI",
    "RIP: 0010:made_up_entry+0x42/0x1b0",
    "Call Trace:",
    " made_up_caller+0x12/0x30",
    "---[ end trace 0000000000000000 ]---",
)
ENTRY = known("plain:two", Outcome.CRASH, diagnostic=("ftrace failed to modify*",))


def judged(directory: Path, entry: Known, lines: Sequence[str]) -> CaseResult:
    """The final result of a case during which the kernel prints these lines. With a panic, its guest is gone."""
    step = [prints(*lines), *([dies] if PANIC[0] in lines else [])]
    found = play(directory, [Plain()], Script(commands={"plain:two": tuple(step)}), last_words=0.3)
    return Policy("x86_64", "gcc", [entry], ()).judge(found["plain:two"])


@pytest.mark.parametrize(
    ("lines", "outcome"),
    [
        (KNOWN, Outcome.XFAIL),
        ((*KNOWN, *PANIC), Outcome.CRASH),
        ((*KNOWN, *BUG), Outcome.CRASH),
        ((*KNOWN, *BUG, *PANIC), Outcome.CRASH),
        ((*KNOWN, *OOPS), Outcome.CRASH),
        ((*KNOWN[:3], *BUG, *KNOWN[3:]), Outcome.CRASH),
        (BUG, Outcome.CRASH),
    ],
)
def test_only_the_report_that_is_named_is_excused(tmp_path: Path, lines: Sequence[str], outcome: Outcome) -> None:
    """findings/trust.md, 2: "ftrace failed to modify", a BUG in fgraph.c and a panic gave xfail."""
    result = judged(tmp_path, ENTRY, lines)
    assert result.outcome is outcome, result.diagnostic
    for line in lines:
        assert not line.startswith(("kernel BUG at", "Kernel panic")) or line in result.diagnostic


@pytest.mark.parametrize(
    ("function", "outcome"), [("made_up_entry", Outcome.XFAIL), ("made_up_return", Outcome.CRASH), ("", Outcome.CRASH)]
)
def test_oops_is_known_in_one_function_only(tmp_path: Path, function: str, outcome: Outcome) -> None:
    named = ("BUG: kernel NULL pointer dereference, address: * in made_up_entry", "Oops: Oops: * [[]#1] PREEMPT SMP NOPTI")
    entry = known("plain:two", Outcome.CRASH, diagnostic=named)
    lines = [line.replace("made_up_entry", function) for line in OOPS if function or "RIP" not in line]
    result = judged(tmp_path, entry, lines)
    assert result.outcome is outcome, result.diagnostic


def test_oops_with_a_panic_is_another_failure(tmp_path: Path) -> None:
    named = ("BUG: kernel NULL pointer dereference, address: * in made_up_entry", "Oops: Oops: * [[]#1] PREEMPT SMP NOPTI")
    entry = known("plain:two", Outcome.CRASH, diagnostic=named)
    assert judged(tmp_path, entry, (*OOPS, *PANIC)).outcome is Outcome.CRASH


@pytest.mark.parametrize(
    ("steps", "line"),
    [
        ((dies,), "the guest is gone"),
        ((hangs,), "no answer before the deadline"),
        ((agent_dies,), "the agent that ran the command died"),
        ((dropped(9), dies), "** 9 printk messages dropped **"),
    ],
)
@pytest.mark.parametrize("arch", ["x86_64", "arm"])
def test_loss_of_a_guest_is_no_part_of_a_known_warning(tmp_path: Path, arch: str, steps: tuple[Step, ...], line: str) -> None:
    entry = known("plain:two", Outcome.CRASH, diagnostic=("WARNING: * made_up_warning+*",))
    script = Script(commands={"plain:two": (prints(*WARNING), *steps)})
    result = play(tmp_path, [Plain()], script, Script(), arch=arch, last_words=0.3)["plain:two"]
    assert result.diagnostic.splitlines()[0] == WARNING[1]
    assert line in result.diagnostic.splitlines()
    assert Policy("x86_64", "gcc", [entry], ()).judge(result).outcome is Outcome.CRASH


def made(directory: Path) -> Path:
    directory.mkdir()
    return directory


def test_failure_of_a_test_is_no_part_of_a_known_warning(tmp_path: Path) -> None:
    entry = known("plain:two", Outcome.CRASH, diagnostic=("WARNING: * made_up_warning+*",))
    for status, outcome in ((0, Outcome.XFAIL), (1, Outcome.CRASH)):
        script = Script(commands={"plain:two": (prints(*WARNING), exits(status))})
        result = play(made(tmp_path / str(status)), [Plain()], script, Script())["plain:two"]
        assert Policy("x86_64", "gcc", [entry], ()).judge(result).outcome is outcome
    assert result.diagnostic == f"{WARNING[1]}\nthe test itself: fail"


def test_failure_of_a_test_is_part_of_a_known_oops(tmp_path: Path) -> None:
    named = ("BUG: kernel NULL pointer dereference, address: * in made_up_entry", "Oops: Oops: * [[]#1] PREEMPT SMP NOPTI")
    entry = known("plain:two", Outcome.CRASH, diagnostic=named)
    script = Script(commands={"plain:two": (prints(*OOPS), exits(139))})
    result = play(tmp_path, [Plain()], script, Script())["plain:two"]
    assert Policy("x86_64", "gcc", [entry], ()).judge(result).outcome is Outcome.XFAIL


@pytest.mark.parametrize("result", ["ok", "not ok"])
def test_failure_of_a_kunit_case_is_no_part_of_a_known_warning(tmp_path: Path, result: str) -> None:
    entry = known("kunit:made_up.one", Outcome.CRASH, diagnostic=("WARNING: * made_up_warning+*",))
    lines = ("KTAP version 1", "1..1", "    KTAP version 1", "    # Subtest: made_up", "    1..1", *WARNING)
    boot = (prints(*lines, f"    {result} 1 one", f"{result} 1 made_up"),)
    target = a_target(config={"KUNIT": "y"})
    found = play(tmp_path, [KunitSuite()], Script(boot=boot), Script(), target=target)["kunit:made_up.one"]
    judged = Policy("x86_64", "gcc", [entry], ()).judge(found)
    assert judged.outcome is (Outcome.XFAIL if result == "ok" else Outcome.CRASH)


@pytest.mark.parametrize("steps", [(dies,), (hangs,)])
def test_loss_of_a_guest_is_part_of_a_known_oops(tmp_path: Path, steps: tuple[Step, ...]) -> None:
    named = ("BUG: kernel NULL pointer dereference, address: * in made_up_entry", "Oops: Oops: * [[]#1] PREEMPT SMP NOPTI")
    entry = known("plain:two", Outcome.CRASH, diagnostic=named)
    script = Script(commands={"plain:two": (prints(*OOPS), *steps)})
    result = play(tmp_path, [Plain()], script, Script(), last_words=0.3)["plain:two"]
    assert Policy("x86_64", "gcc", [entry], ()).judge(result).outcome is Outcome.XFAIL


def test_lines_that_were_dropped_are_no_part_of_a_known_oops(tmp_path: Path) -> None:
    named = ("BUG: kernel NULL pointer dereference, address: * in made_up_entry", "Oops: Oops: * [[]#1] PREEMPT SMP NOPTI")
    entry = known("plain:two", Outcome.CRASH, diagnostic=named)
    script = Script(commands={"plain:two": (prints(*OOPS), dropped(9), dies)})
    result = play(tmp_path, [Plain()], script, Script(), last_words=0.3)["plain:two"]
    assert Policy("x86_64", "gcc", [entry], ()).judge(result).outcome is Outcome.CRASH


@pytest.mark.parametrize(
    ("steps", "outcome", "named"),
    [
        ((dropped(9), hangs), Outcome.TIMEOUT, "no answer before the deadline"),
        ((dropped(9), dies), Outcome.LOST, "the guest is gone"),
        ((dropped(9), exits(1)), Outcome.LOST, "[*][*] 9 printk messages dropped [*][*]"),
    ],
)
@pytest.mark.parametrize("arch", ["x86_64", "arm"])
def test_failure_with_dropped_lines_is_not_the_known_one(
    tmp_path: Path, arch: str, steps: tuple[Step, ...], outcome: Outcome, named: str
) -> None:
    """The lost lines may have held an oops. And who knows of lost lines does not know that the test fails as well."""
    script = Script(commands={"plain:two": steps})
    result = play(tmp_path, [Plain()], script, Script(), arch=arch, last_words=0.3)["plain:two"]
    assert result.outcome is outcome
    judged = Policy("x86_64", "gcc", [known("plain:two", outcome, diagnostic=(named,))], ()).judge(result)
    assert judged.outcome is outcome, result.diagnostic
    both = known("plain:two", outcome, diagnostic=(named, "[*][*] 9 printk messages dropped [*][*]", "the test itself: fail"))
    assert Policy("x86_64", "gcc", [both], ()).judge(result).outcome is Outcome.XFAIL


def test_lines_of_a_diagnostic() -> None:
    assert list(titles([Splat("bug", "kernel BUG at a.c:1!", "", 1)])) == ["kernel BUG at a.c:1!"]
    assert list(titles([Splat("bug", "kernel BUG at a.c:1!", "f", 1)])) == ["kernel BUG at a.c:1! in f"]
    warning = Splat("warning", "WARNING: at a.c:1 f+0x1/0x2", "f", 1, sequels=("Kernel panic - not syncing",))
    assert list(titles([warning, warning])) == ["WARNING: at a.c:1 f+0x1/0x2", "Kernel panic - not syncing"] * 2
    found = "\n".join(titles(scan(OOPS)))
    assert found == f"{OOPS[0]} in made_up_entry\n{OOPS[2]}"
