"""Each outcome that a case can have, for every suite, in a fake guest."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from harness.cache import Cache
from harness.guest.initramfs import SELFTESTS
from harness.model import ABSENT, CaseResult, Claim, Measure, Position
from harness.suites import Suite, Target
from harness.suites.base import Case
from harness.suites.bench import BenchSuite
from harness.suites.claims import ClaimsSuite
from harness.suites.command import CommandSuite
from harness.suites.ftracetest import FtracetestSuite
from harness.suites.samples import _SAMPLES, SamplesSuite
from harness.tree import Store
from tests import fake
from tests.fake_guest import OOPS, WARNING, Script, Step, dies, dropped, exits, hangs, prints, says
from tests.play import Played, a_target, play

# Events that end a case of every suite in the same way, whatever its command printed before.
ENDS: tuple[tuple[tuple[Step, ...], str, str], ...] = (
    ((prints(*WARNING), exits()), "crash", WARNING[1]),
    ((prints(*OOPS), dies), "crash", OOPS[0]),
    ((hangs,), "timeout", "no answer before the deadline"),
    ((dies,), "lost", "the guest is gone"),
    ((dropped(1), exits()), "lost", "1 printk messages dropped"),
)


def one(directory: Path, suite: Suite, case: str, steps: tuple[Step, ...], target: Target, **options: Any) -> CaseResult:
    """The case's result. After a guest that was lost there is another one, in which all is well."""
    found = play(directory, [suite], Script(commands={f"{suite.name}:*": steps}), target=target, globs=(case,), **options)
    return found[f"{suite.name}:{case}"]


# Samples.

SAMPLES = dict.fromkeys((sample.symbol for sample in _SAMPLES), "y")
ENTER = "sample_entry_handler: Enter <kernel_clone+0x0>"
RETURN = "sample_exit_handler: Return from <kernel_clone+0x0>"


def hits(hit: int, missed: int = 0) -> str:
    return f"fprobe_exit: fprobe at kernel_clone unregistered. {hit} times hit, {missed} times missed"


COUNT, CALLS = "ftrace-ops/count", "ftrace_ops: Attempted 1000 calls to tracee in 99ns (9ns / call)"
EINVAL = says("modprobe: can't load module ftrace-ops: Invalid argument")
ONE, STACK, TRACE = "fprobe_example/one symbol", "fprobe_example/stack dump", "fprobe_example/trace buffer"
MULTI = "ftrace-direct-multi"


@pytest.mark.parametrize(
    ("case", "steps", "outcome", "why"),
    [
        (ONE, (prints(ENTER, RETURN, hits(2)),), "pass", ""),
        (ONE, (), "fail", "the module never said how often it was hit"),
        (ONE, (prints(ENTER, RETURN, hits(2)), exits(1)), "fail", "exit status 1"),
        (ONE, (says("modprobe: not found"), exits(127)), "fail", "exit status 127: modprobe: not found"),
        (ONE, (prints(hits(0)),), "fail", "0 times hit"),
        (ONE, (prints(hits(-2)),), "fail", "-2 times hit"),
        (ONE, (prints(ENTER, RETURN, hits(2, missed=1)),), "fail", "1 times missed"),
        (ONE, (prints(ENTER, hits(1)),), "fail", "1 entries and 0 returns for 1 hits"),
        (ONE, (prints(ENTER, ENTER, RETURN, RETURN, hits(2)),), "fail", "2 entries and 2 returns for 2 hits"),
        (ONE, (prints(ENTER, RETURN, RETURN, hits(3)),), "fail", "1 entries and 2 returns"),
        (STACK, (prints(ENTER, RETURN, hits(2), " made_up+0x12/0x30"),), "pass", ""),
        (STACK, (prints(ENTER, RETURN, hits(2)),), "fail", "no stack dump"),
        (STACK, (prints(ENTER, hits(1), " made_up+0x12/0x30"),), "fail", "1 entries and 0 returns"),
        (TRACE, (prints(hits(2)), says(f"sh-50 [000] ..... 1.0: {ENTER}\nsh-50 [000] ..... 1.1: {RETURN}\n")), "pass", ""),
        (TRACE, (prints(hits(2)),), "fail", "0 entries and 0 returns for 2 hits"),
        (COUNT, (prints(CALLS), EINVAL, exits(1)), "pass", ""),
        (COUNT, (prints(CALLS), exits(0)), "fail", "insmod was to fail with -EINVAL, but ended with 0"),
        (COUNT, (prints(CALLS), says("Out of memory"), exits(1)), "fail", "Out of memory"),
        (COUNT, (EINVAL, exits(1)), "fail", "it never said what a call takes"),
        (COUNT, (prints(CALLS, "Counter called 7 times (expected 1000)"), EINVAL, exits(1)), "fail", "Counter called 7 times"),
        ("kprobe_example", (prints("handler_pre: <kernel_clone> p->addr = 0x1, ip = 2, flags = 0x3"),), "pass", ""),
        ("kprobe_example", (prints("handler_pre: <other> p->addr = 0x1, ip = 2, flags = 0x3"),), "fail", "nothing like"),
        ("kprobe_example", (prints("<kernel_clone> p->addr = 0x1"), exits(1)), "fail", "exit status 1"),
        ("kretprobe_example", (prints("kernel_clone returned 5 and took 99 ns to execute"),), "pass", ""),
        ("kretprobe_example", (prints("kernel_clone returned"),), "fail", "nothing like"),
        ("ftrace-direct", (says("sh-50 [000] d.... 1.0: my_direct_func: waking up rcu_preempt-15\n"),), "pass", ""),
        ("ftrace-direct", (says("sh-50 [000] d.... 1.0: my_direct_func: waking up\n"),), "fail", "nothing like"),
        (MULTI, (says("sh-50 [000] ..... 1.0: my_direct_func: ip ffffffff81000042\n"),), "pass", ""),
        (MULTI, (says("# tracer: nop\n#  a tip for those who look\n"), prints("zip drive")), "fail", "nothing like"),
        *((ONE, *end) for end in ENDS),
    ],
)
def test_samples(tmp_path: Path, case: str, steps: tuple[Step, ...], outcome: str, why: str) -> None:
    result = one(tmp_path, SamplesSuite(), case, steps, a_target(config=SAMPLES))
    assert (result.outcome.value, why in result.diagnostic) == (outcome, True), result.diagnostic
    assert not why or outcome != "pass"


def test_sample_that_was_not_built(tmp_path: Path) -> None:
    found = play(tmp_path, [SamplesSuite()], Script(), target=a_target())
    assert set(found.outcomes("samples").values()) == {"skip"}
    assert found["samples:kprobe_example"].diagnostic == "CONFIG_SAMPLE_KPROBES is not set"
    assert not found.place.asked("samples:*")


def test_no_sample_passes_without_a_word(tmp_path: Path) -> None:
    """A command that prints nothing and ends with 0 proves nothing."""
    found = play(tmp_path, [SamplesSuite()], Script(), target=a_target(config=SAMPLES))
    assert found.outcomes("samples") == {sample.name: "fail" for sample in _SAMPLES}
    scripts = [question.script for question in found.place.asked("samples:*")]
    assert scripts == [sample.script for sample in _SAMPLES]


FPROBE = "modprobe fprobe_example "
SCRIPTS = {
    ONE: (f"{FPROBE}symbol=kernel_clone stackdump=0\n",),
    "fprobe_example/several symbols": (f"{FPROBE}symbol=kernel_clone,do_sys_openat2 stackdump=0\n",),
    "fprobe_example/pattern": (f"{FPROBE}symbol='kernel_clone*' stackdump=0\n",),
    "fprobe_example/pattern and exception": (f"{FPROBE}symbol='do_sys_open*' nosymbol=do_sys_open stackdump=0\n",),
    STACK: (f"{FPROBE}symbol=kernel_clone\n",),
    TRACE: ("echo >/sys/kernel/tracing/trace\n", " use_trace=1\n", "</sys/kernel/tracing/trace\n"),
    COUNT: ("modprobe ftrace-ops nr_function_calls=1000 check_count=1",),
    "ftrace-ops/irrelevant": ("modprobe ftrace-ops nr_function_calls=1000 nr_ops_irrelevant=2 check_count=1",),
    "kprobe_example": ("modprobe kprobe_example symbol=kernel_clone\n",),
    "kretprobe_example": ("modprobe kretprobe_example func=kernel_clone\n",),
    "ftrace-direct": ("echo >/sys/kernel/tracing/trace\n", "modprobe ftrace-direct ", "</sys/kernel/tracing/trace\n"),
    MULTI: ("echo >/sys/kernel/tracing/trace\n", "modprobe ftrace-direct-multi ", "</sys/kernel/tracing/trace\n"),
}


def test_samples_are_exercised() -> None:
    """Each loads its module as its name says, has something probed, and removes it; an error ends it."""
    assert {sample.name for sample in _SAMPLES} == {*SCRIPTS}
    for sample in _SAMPLES:
        assert all(part in sample.script for part in SCRIPTS[sample.name]), sample.name
        if "ftrace-ops" not in sample.name:
            module = sample.name.partition("/")[0]
            assert "set -e\nmodprobe" in sample.script
            assert "cat /proc/version | cat" in sample.script
            assert sample.script.endswith(f"\nexec rmmod {module}\n")


def test_failed_sample_shows_what_was_printed(tmp_path: Path) -> None:
    result = one(tmp_path, SamplesSuite(), ONE, (says("output"), prints("message"), exits(1)), a_target(config=SAMPLES))
    assert "output" in result.log
    assert "message" in result.log


# Commands.


@pytest.mark.parametrize(
    ("steps", "outcome", "why"),
    [
        ((exits(0),), "pass", ""),
        ((exits(1),), "fail", "exit status 1"),
        ((exits(255),), "fail", "exit status 255"),
        *ENDS,
    ],
)
def test_command(tmp_path: Path, steps: tuple[Step, ...], outcome: str, why: str) -> None:
    target = a_target(commands=("do something",))
    found = play(tmp_path, [CommandSuite()], Script(commands={"command:*": (says("output"), *steps)}), target=target)
    result = found["command:do something"]
    assert (result.outcome.value, why in result.diagnostic) == (outcome, True)
    assert outcome not in ("pass", "fail") or result.diagnostic == why
    assert [question.script for question in found.place.asked("command:*")] == ["do something"]
    assert outcome in ("timeout", "crash", "lost") or result.log == "\noutput"[1:]


def test_commands_share_a_guest(tmp_path: Path) -> None:
    target = a_target(commands=("first", "second"))
    script = Script(commands={"boot-end": (), "end": (), "*": (prints(*WARNING),)})
    found = play(tmp_path, [CommandSuite()], script, target=target)
    assert found.outcomes() == {"command:first": "crash", "command:second": "crash"}
    assert len(found.place.boots) == 1


# Claims and measures.


@pytest.mark.parametrize(
    ("position", "config", "steps", "outcome"),
    [
        (Position.WHOLE, "y", (says("value: red\n"),), "pass"),
        (Position.WHOLE, "y", (says("value: blue\n"),), "fail"),
        (Position.WHOLE, "y", (says("value: red\n"), exits(1)), "fail"),
        (Position.WHOLE, "y", (says("value: red\nvalue: red\n"),), "fail"),
        (Position.WHOLE, "y", (), "fail"),
        (Position.WHOLE, "n", (says("value: red\n"),), "fail"),
        (Position.BASE, "y", (says("value: blue\n"),), "pass"),
        (Position.BASE, "y", (says("value: red\n"),), "fail"),
        (Position.WITHIN, "y", (says("value: red\n"),), "pass"),
        (Position.WITHIN, "y", (says("value: green\n"),), "fail"),
        *((Position.WHOLE, "y", (says("value: red\n"), *steps), outcome) for steps, outcome, _ in ENDS),
    ],
)
def test_claims(tmp_path: Path, position: Position, config: str, steps: tuple[Step, ...], outcome: str) -> None:
    claim = Claim(case="colour", says="It turns red.", script="paint", patched="red", base="blue", needs=("PAINT",))
    target = a_target(config={"PAINT": config}, position=position, claims=(claim,))
    assert one(tmp_path, ClaimsSuite(), "colour", steps, target).outcome.value == outcome


def test_claim_that_is_not_tried_on_the_base(tmp_path: Path) -> None:
    claim = Claim(case="colour", says="It turns red.", script="paint", patched="red", not_on_base="it explodes")
    found = play(tmp_path, [ClaimsSuite()], Script(), target=a_target(position=Position.BASE, claims=(claim,)))
    assert found.outcomes("claims") == {"colour": "skip"}
    assert not found.place.asked("claims:*")


def test_claim_about_what_the_kernel_lacks(tmp_path: Path) -> None:
    claim = Claim(case="colour", says="None.", script="paint", patched=ABSENT, base=ABSENT, needs=("PAINT",))
    assert one(tmp_path, ClaimsSuite(), "colour", (), a_target(claims=(claim,), position=Position.WHOLE)).outcome == "pass"


@pytest.mark.parametrize(
    ("steps", "outcome"),
    [
        ((says("value: 40\n"),), "pass"),
        ((says("value: 41\n"),), "fail"),
        ((says("value: much\n"),), "fail"),
        ((says("value: nan\n"),), "fail"),
        ((says("value: 40\n"), exits(1)), "fail"),
        ((), "fail"),
        *(((says("value: 40\n"), *steps), outcome) for steps, outcome, _ in ENDS),
    ],
)
def test_bench(tmp_path: Path, steps: tuple[Step, ...], outcome: str) -> None:
    measure = Measure(case="exit", says="It exits.", script="value 40", at_most={"x86_64": 40.0})
    target = a_target(position=Position.WHOLE, measures=(measure,))
    assert one(tmp_path, BenchSuite(), "exit", steps, target).outcome.value == outcome


# ftracetest.


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> tuple[Store, str, str]:
    """A store with the fake tree's selftests, and another commit with other ones."""
    folder = tmp_path_factory.mktemp("tree")
    work = fake.repository(folder / "work")
    first = fake.git(work, "rev-parse", "HEAD")
    (work / SELFTESTS / "test.d" / "a.tc").write_text("#!/bin/sh\n# description: another\n")
    (work / SELFTESTS / "test.d" / "sub" / "b.tc").unlink()
    (work / SELFTESTS / "test.d" / "notes.txt").write_text("no test\n")
    (work / SELFTESTS / "test.d" / "direct").mkdir()
    (work / SELFTESTS / "test.d" / "direct" / "ftrace-direct.tc").write_text("#!/bin/sh\n")
    fake.git(work, "add", "--all")
    fake.git(work, "commit", "--quiet", "--message=other")
    second = fake.git(work, "rev-parse", "HEAD")
    store = Store(Cache(folder / "cache"))
    store.create()
    store.git("fetch", "--quiet", work, "+refs/heads/*:refs/heads/*")
    return store, first, second


def test_no_test_vanishes_because_of_its_name(tmp_path: Path) -> None:
    """git puts names with other characters than ASCII, quotes and tabs into quotes, unless it is told not to."""
    work = fake.repository(tmp_path / "work")
    names = ["größe.tc", 'a "quoted".tc', "tab\there.tc"]
    for name in names:
        (work / SELFTESTS / "test.d" / name).write_text("#!/bin/sh\n# description: odd\n# flags: instance\n")
    fake.git(work, "add", "--all")
    fake.git(work, "commit", "--quiet", "--message=odd")
    store = Store(Cache(tmp_path / "cache"))
    store.create()
    store.git("fetch", "--quiet", work, "+refs/heads/*:refs/heads/*")
    planned = FtracetestSuite().plan(a_target(store=store, tests=fake.git(work, "rev-parse", "HEAD")))
    assert {case.names for case in planned} >= {(name, f"{name}@instance") for name in names}


def target_of(tree: tuple[Store, str, str], kernels: int = 0) -> Target:
    """The first commit's tests on its own kernel, or on the second one's."""
    store, *commits = tree
    return a_target(store=store, tests=commits[0], commit=commits[kernels])


A, B = "a.tc", "sub/b.tc"


def tap(*results: str) -> Step:
    return says("TAP version 13\n1..{}\n{}\n".format(len(results), "\n".join(results)))


@pytest.mark.parametrize(
    ("steps", "outcome", "why"),
    [
        ((tap("ok 1 first"),), "pass", ""),
        ((tap("not ok 1 first"), exits(1)), "fail", "+ grep -q event trace"),
        ((tap("not ok 1 first"), exits(0)), "fail", ""),
        ((tap("ok 1 first # SKIP no such tracer"),), "skip", ""),
        ((tap("ok 1 first # XFAIL as ever"),), "xfail", ""),
        ((tap("not ok 1 first # UNRESOLVED"), exits(1)), "unresolved", ""),
        ((tap("ok 1 first"), exits(1)), "lost", "exit status 1, and its report is not the one that was planned"),
        ((tap("ok 1 first"), exits(137)), "lost", "exit status 137"),
        ((tap("ok 1 first", "ok 2 second"),), "lost", "its report is not the one that was planned"),
        ((says("sh: ./ftracetest: not found"), exits(127)), "lost", "exit status 127"),
        ((), "lost", "exit status 0, and its report"),
        ((says("TAP version 13\n1..2\nok 1 first\n"),), "lost", ""),
        *((((tap("ok 1 first"), *steps), outcome, why)) for steps, outcome, why in ENDS),
    ],
)
def test_ftracetest(tmp_path: Path, tree: tuple[Store, str, str], steps: tuple[Step, ...], outcome: str, why: str) -> None:
    script = Script(commands={"ftracetest:log": (says("+ grep -q event trace\n+ exit_fail\n"),), "ftracetest:*": steps})
    found = play(tmp_path, [FtracetestSuite()], script, target=target_of(tree), globs=(A,))
    result = found[f"ftracetest:{A}"]
    assert (result.outcome.value, why in result.diagnostic) == (outcome, True), result.diagnostic
    (question,) = found.place.asked(f"ftracetest:{A}")
    logs = "/tmp/ftracetest"
    run = f"cd /{SELFTESTS} && rm -rf {logs} && ./ftracetest --ktap --keep --logdir {logs}/ test.d/{A}\nstatus=$?; "
    assert question.script.startswith(run)
    assert question.script.endswith("; exit $status")
    assert outcome not in ("fail", "unresolved") or "+ grep -q event trace" in result.log


@pytest.mark.parametrize(
    ("results", "outcomes", "logs"),
    [
        (("ok 1 second", "ok 2 (instance) second"), ("pass", "pass"), []),
        (("not ok 1 second", "ok 2 (instance) second"), ("fail", "pass"), ["1"]),
        (("ok 1 second", "not ok 2 (instance) second"), ("pass", "fail"), ["2"]),
        (("ok 1 second",), ("lost", "lost"), []),
        (("ok 1 second", "ok 2 second", "ok 3 second"), ("lost", "lost"), []),
    ],
)
def test_pair(
    tmp_path: Path, tree: tuple[Store, str, str], results: tuple[str, ...], outcomes: tuple[str, str], logs: list[str]
) -> None:
    """A file that runs once more in an instance; each red result has its own log."""
    found = play(
        tmp_path, [FtracetestSuite()], Script(commands={f"*{B}": (tap(*results),)}), target=target_of(tree), globs=("sub*",)
    )
    assert found.outcomes("ftracetest") == dict(zip((B, f"{B}@instance"), outcomes, strict=True))
    scripts = [question.script for question in found.place.asked("ftracetest:log")]
    assert [script.rsplit("/", 1)[1][0] for script in scripts] == logs


def test_report_that_does_not_add_up_is_shown(tmp_path: Path, tree: tuple[Store, str, str]) -> None:
    why = "exit status 1, and its report is not the one that was planned"
    script = Script(commands={"ftracetest:*": (tap("ok 1 first"), exits(1))})
    result = play(tmp_path, [FtracetestSuite()], script, target=target_of(tree), globs=(A,))[f"ftracetest:{A}"]
    assert (result.diagnostic, result.log) == (why, "TAP version 13\n1..1\nok 1 first\n")


def test_only_one_of_a_pair_is_wanted(tmp_path: Path, tree: tuple[Store, str, str]) -> None:
    script = Script(commands={f"*{B}": (tap("not ok 1 second", "ok 2 (instance) second"), exits(1))})
    found = play(tmp_path, [FtracetestSuite()], script, target=target_of(tree), globs=("*@instance",))
    assert found.outcomes("ftracetest") == {f"{B}@instance": "pass"}


def test_failure_whose_log_is_cut_off_by_a_broken_connection(tmp_path: Path, tree: tuple[Store, str, str]) -> None:
    """It was reported before the connection to the guest's host broke: a pass in the next guest does not take it back."""
    first = Script(commands={"ftracetest:log": (dies,), "ftracetest:*": (tap("not ok 1 first # why"), exits(1))}, lost=True)
    second = Script(commands={"ftracetest:*": (tap("ok 1 first"),)})
    found = play(tmp_path, [FtracetestSuite()], first, second, target=target_of(tree), globs=(A,))
    result = found[f"ftracetest:{A}"]
    assert (result.outcome.value, result.diagnostic) == ("fail", "why")
    assert result.log.startswith("no log: ")
    assert len(found.place.machines) == 1


def test_pair_whose_log_is_cut_off_by_a_broken_connection(tmp_path: Path, tree: tuple[Store, str, str]) -> None:
    pair = (tap("not ok 1 second", "not ok 2 (instance) second"), exits(1))
    script = Script(commands={"ftracetest:log": (dies,), "ftracetest:*": pair}, lost=True)
    again = Script(commands={"ftracetest:*": (tap("ok 1 second", "ok 2 (instance) second"),)})
    found = play(tmp_path, [FtracetestSuite()], script, again, target=target_of(tree), globs=("sub*",))
    assert found.outcomes("ftracetest") == {B: "fail", f"{B}@instance": "fail"}


def test_log_that_takes_the_guest_along(tmp_path: Path, tree: tuple[Store, str, str]) -> None:
    script = Script(commands={"ftracetest:log": (dies,), "ftracetest:*": (tap("not ok 1 first"), exits(1))})
    assert one_of(play(tmp_path, [FtracetestSuite()], script, target=target_of(tree), globs=(A,))) == "lost"


def one_of(found: Played) -> str:
    (outcome,) = found.outcomes("ftracetest").values()
    return outcome


def test_plan_has_the_tests_and_nothing_else(tree: tuple[Store, str, str]) -> None:
    store, first, second = tree
    plans = [FtracetestSuite().plan(a_target(store=store, tests=commit)) for commit in (first, second)]
    assert plans[0] == [Case((A,), 60.0), Case((B, f"{B}@instance"), 60.0)]
    assert plans[1] == [Case((A,), 60.0), Case(("direct/ftrace-direct.tc",), 240.0)]


@pytest.mark.parametrize(
    ("case", "kernels", "why"),
    [
        (A, 0, ""),
        (A, 1, "the kernel's own tree has another version of this test"),
        (B, 1, "the kernel's own tree has no such test"),
    ],
)
def test_red_test_of_another_tree(tmp_path: Path, tree: tuple[Store, str, str], case: str, kernels: int, why: str) -> None:
    results = ("not ok 1 first", "not ok 2 second")[: 1 if case == A else 2]
    script = Script(commands={f"*{case}": (tap(*results), exits(1))})
    found = play(tmp_path, [FtracetestSuite()], script, target=target_of(tree, kernels), globs=(case,))
    result = found[f"ftracetest:{case}"]
    assert (result.outcome, result.diagnostic) == ("fail", why)


def test_red_test_of_another_tree_keeps_its_reason(tmp_path: Path, tree: tuple[Store, str, str]) -> None:
    script = Script(commands={"ftracetest:log": (says("+ grep x\n"),), "ftracetest:*": (tap("not ok 1 first"), exits(1))})
    result = play(tmp_path, [FtracetestSuite()], script, target=target_of(tree, 1), globs=(A,))[f"ftracetest:{A}"]
    assert result.diagnostic == "+ grep x; the kernel's own tree has another version of this test"


def test_suite_whose_guest_cannot_be_started(tmp_path: Path, tree: tuple[Store, str, str]) -> None:
    """Every suite's cases are in error: nothing is known of the kernel."""
    claim = Claim(case="colour", says="It turns red.", script="paint", patched="red", base="blue")
    measure = Measure(case="exit", says="It exits.", script="value 40")
    store, first, _ = tree
    target = a_target(
        store=store, tests=first, commit=first, config=SAMPLES, claims=(claim,), measures=(measure,), commands=("a",)
    )
    suites = [SamplesSuite(), ClaimsSuite(), FtracetestSuite(), CommandSuite(), BenchSuite()]
    found = play(tmp_path, suites, Script(qemu="no such machine"), target=target)
    assert set(found.outcomes().values()) == {"error"}
    assert {result.suite for result in found.reported} == {suite.name for suite in suites}
    assert not any(result.ran for result in found.reported)


@pytest.mark.parametrize("there", [True, False])
def test_ftracetest_keeps_its_exit_status(tmp_path: Path, tree: tuple[Store, str, str], there: bool) -> None:
    """What is done behind it, to switch the profiler off, neither hides a failure nor makes one. Run by this machine's shell."""
    script = Script(commands={f"ftracetest:{A}": (tap("ok 1 first"), exits(0))})
    found = play(tmp_path, [FtracetestSuite()], script, target=target_of(tree), globs=(A,))
    (asked,) = found.place.asked(f"ftracetest:{A}")
    profiler = tmp_path / "profiler"
    if there:
        profiler.write_text("1\n")
    head, newline, behind = asked.script.partition("\n")
    assert "./ftracetest --ktap" in head
    assert newline
    text = behind.replace("/sys/kernel/tracing/function_profile_enabled", str(profiler))
    for status in (0, 1, 127):
        assert subprocess.run(["sh", "-c", f"(exit {status})\n{text}"], check=False).returncode == status
    assert not there or profiler.read_text() == "0\n"
