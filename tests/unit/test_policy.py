from __future__ import annotations

import itertools
from typing import Any

import msgspec
import pytest

from harness.model import CasePattern, CaseResult, Outcome
from harness.paths import PATCHES
from harness.suites import Selection
from harness.suites.known import Known, read_known
from harness.suites.policy import Policy

WHY = "no such event"
FAILED = (Outcome.FAIL, Outcome.UNRESOLVED)


def result(outcome: Outcome, name: str = "dynevent/fprobe.tc", diagnostic: str = WHY) -> CaseResult:
    return CaseResult("ftracetest", name, outcome, diagnostic=diagnostic)


def known(case: str, *outcome: Outcome, **more: Any) -> Known:
    """An entry that is whole, but for what the test is about."""
    told: dict[str, Any] = {
        "reason": "reported",
        "outcome": outcome or FAILED,
        "diagnostic": (WHY,),
        "any_version": "it is a test",
    }
    return Known(case, **{**told, **more})


MUST = CasePattern("ftracetest:dynevent/*fprobe*", "it proves the series", ("arm64",))
KNOWN = known("ftracetest:dynevent/*")


def test_must_run_case_that_skips_is_red() -> None:
    judged = Policy("arm64", "gcc", (), (MUST,)).judge(result(Outcome.SKIP))
    assert judged.outcome is Outcome.FAIL
    assert judged.diagnostic == f"must run, but skipped: it proves the series; {WHY}"


def test_skip_elsewhere_is_green() -> None:
    assert Policy("x86_64", "gcc", (), (MUST,)).judge(result(Outcome.SKIP)).outcome is Outcome.SKIP
    assert Policy("arm64", "gcc", (), ()).judge(result(Outcome.SKIP)).outcome is Outcome.SKIP
    assert Policy("arm64", "gcc", (), (MUST,)).judge(result(Outcome.SKIP, "other.tc")).outcome is Outcome.SKIP


def test_must_run_case_that_is_not_there_is_red() -> None:
    policy = Policy("arm64", "gcc", (), (MUST,))
    policy.judge(result(Outcome.PASS, "other.tc"))
    (missing,) = policy.missing([Selection("ftracetest")])
    assert missing.outcome is Outcome.LOST
    # Whoever asked for some cases only knows that the others did not run.
    assert not list(policy.missing([Selection("ftracetest", ("other*",))]))
    policy.judge(result(Outcome.PASS))
    assert not list(policy.missing([Selection("ftracetest")]))


@pytest.mark.parametrize("outcome", list(Outcome))
def test_known_red(outcome: Outcome) -> None:
    judged = Policy("x86_64", "gcc", (KNOWN,), ()).judge(result(outcome))
    assert judged.outcome is (Outcome.XFAIL if outcome in (Outcome.FAIL, Outcome.UNRESOLVED) else outcome)


def test_known_crash_must_be_named() -> None:
    crash = known("ftracetest:*", Outcome.CRASH)
    assert Policy("x86_64", "gcc", (crash,), ()).judge(result(Outcome.CRASH)).outcome is Outcome.XFAIL
    assert Policy("x86_64", "gcc", (crash,), ()).judge(result(Outcome.FAIL)).outcome is Outcome.FAIL


def test_known_of_one_toolchain() -> None:
    entry = known("ftracetest:*", toolchain="llvm*")
    for toolchain, outcome in (("llvm-22", Outcome.XFAIL), ("gcc", Outcome.FAIL)):
        assert Policy("x86_64", toolchain, (entry,), ()).judge(result(Outcome.FAIL)).outcome is outcome


def test_known_by_its_diagnostic_and_by_nothing_else() -> None:
    """Two splats on the console are known only if both are."""
    entry = known("boot:console", Outcome.CRASH, diagnostic=("WARNING: * bug_here+*", "Oops*there*"))
    policy = Policy("riscv64", "gcc", (entry,), ())
    title = "WARNING: CPU: 0 PID: 1 at a.c:1 bug_here+0x1/0x2"
    for said, outcome in (
        (title, Outcome.XFAIL),
        (f"{title}\n{title}", Outcome.XFAIL),
        (f"{title}\nOops", Outcome.CRASH),
        (f"{title}\nOops: there", Outcome.XFAIL),
        ("", Outcome.CRASH),
    ):
        assert policy.judge(CaseResult("boot", "console", Outcome.CRASH, diagnostic=said)).outcome is outcome


def test_bundled_list_gives_reasons() -> None:
    assert all(entry.reason for entry in read_known())


def test_selection_that_nothing_answers_to_is_red() -> None:
    policy = Policy("arm64", "gcc", (), ())
    policy.judge(result(Outcome.PASS))
    assert [one.id for one in policy.missing([Selection("ftracetest"), Selection("kunit")])] == ["kunit:*"]
    globs = Selection("ftracetest", ("dynevent/*", "dynevnt/*"))
    assert [one.id for one in policy.missing([globs])] == ["ftracetest:dynevnt/*"]


@pytest.mark.parametrize(
    ("arch", "case", "outcome", "diagnostic", "known"),
    [
        ("riscv64", "kprobe/kprobe_args.tc", Outcome.FAIL, "sh: write error: Invalid argument", True),
        ("riscv64", "kprobe/kprobe_args.tc", Outcome.FAIL, "sh: write error: No such device", False),
        ("riscv64", "kprobe/multiple_kprobes.tc", Outcome.FAIL, "+ read i", True),
        ("riscv64", "kprobe/uprobe_syntax_errors.tc", Outcome.FAIL, "sh: write error: Invalid argument", False),
        ("loongarch64", "kprobe/kprobe_eventname.tc", Outcome.UNRESOLVED, "++ '[' x '!=' x ']'", True),
        ("x86_64", "kprobe/kprobe_eventname.tc", Outcome.UNRESOLVED, "++ '[' x '!=' x ']'", False),
        ("loongarch64", "preemptirq/irqsoff_tracer.tc", Outcome.FAIL, "++ true", True),
        ("loongarch64", "preemptirq/irqsoff_tracer.tc", Outcome.FAIL, "set_ftrace_filter: No such device", False),
        ("loongarch64", "dynevent/add_remove_tprobe_module.tc", Outcome.CRASH, "Oops[#1]:", True),
        ("loongarch64", "dynevent/add_remove_tprobe_module.tc", Outcome.CRASH, "Oops[#1]: in fprobe_return", False),
        ("loongarch64", "dynevent/add_remove_tprobe_module.tc", Outcome.CRASH, "BUG: KASAN: use-after-free in x", False),
        (
            "loongarch64",
            "kprobe/kprobe_insn_boundary.tc",
            Outcome.CRASH,
            "WARNING: CPU: 1 at kernel/trace/fgraph.c:1 x+0x1",
            False,
        ),
        (
            "s390x",
            "kprobe/kprobe_insn_boundary.tc",
            Outcome.CRASH,
            "illegal operation: 0001 ilc:1 [#1] PREEMPT SMP in kernel_clone",
            True,
        ),
        ("s390x", "kprobe/kprobe_insn_boundary.tc", Outcome.CRASH, "illegal operation: 0001 ilc:1 [#1] PREEMPT SMP", False),
        (
            "s390x",
            "kprobe/kprobe_insn_boundary.tc",
            Outcome.CRASH,
            "illegal operation: 0001 ilc:1 [#1] PREEMPT SMP in fprobe_return",
            False,
        ),
        ("x86_64", "kprobe/kprobe_insn_boundary.tc", Outcome.CRASH, "illegal operation: 0001 ilc:1 [#1] in kernel_clone", False),
        ("x86_64", "selftest/bashisms.tc", Outcome.UNRESOLVED, "No checkbashisms found. skipped.", True),
        ("x86_64", "selftest/bashisms.tc", Outcome.UNRESOLVED, "possible bashism in ftracetest line 3", False),
    ],
)
def test_bundled_list_covers_what_was_seen_and_no_more(
    arch: str, case: str, outcome: Outcome, diagnostic: str, known: bool
) -> None:
    policy = Policy(arch, "llvm-22" if arch == "loongarch64" else "gcc", read_known(), (), "6.12.117")
    judged = policy.judge(CaseResult("ftracetest", case, outcome, diagnostic=diagnostic))
    assert judged.outcome is (Outcome.XFAIL if known else outcome)


def test_case_that_hangs_is_not_run() -> None:
    entry = known("ftracetest:hang*", reason="it never returns", arch=("arm64",), hangs=True, outcome=(), diagnostic=())
    assert Policy("arm64", "gcc", (entry, KNOWN), ()).hangs("ftracetest:hang.tc") == "it never returns"
    assert not Policy("arm64", "gcc", (entry, KNOWN), ()).hangs("ftracetest:dynevent/x.tc")
    assert not Policy("x86_64", "gcc", (entry,), ()).hangs("ftracetest:hang.tc")
    assert Policy("arm64", "gcc", (entry,), ()).judge(result(Outcome.FAIL, "hang.tc")).outcome is Outcome.FAIL


def version(entry: Known, of: str) -> CaseResult:
    return Policy("arm64", "gcc", [entry], (), of).judge(result(Outcome.FAIL))


@pytest.mark.parametrize(
    ("kernel", "outcome"),
    [
        ("6.12.117", Outcome.XFAIL),
        ("6.12.0-56-amd64", Outcome.XFAIL),
        ("6.13-rc3", Outcome.XFAIL),
        # What mends it in 6.14 came before the first of these.
        ("6.14-rc1", Outcome.FAIL),
        ("6.12-rc7", Outcome.XFAIL),
        ("6.1.164-1", Outcome.FAIL),
        ("6.14", Outcome.FAIL),
        ("6.1.140", Outcome.FAIL),
        ("", Outcome.FAIL),
        ("next-20261122", Outcome.FAIL),
    ],
)
def test_known_of_some_versions(kernel: str, outcome: Outcome) -> None:
    link = "https://lore.kernel.org/r/1"
    entry = known("ftracetest:dynevent/fprobe.tc", versions=">=6.12,<6.14", any_version="", link=link)
    judged = version(entry, kernel)
    assert judged.outcome is outcome
    assert (judged.diagnostic.startswith("known: reported (https://lore.kernel.org/r/1)")) == outcome.green


def outlived(glob: str, selection: Selection, *outcomes: Outcome) -> list[str]:
    policy = Policy("arm64", "gcc", [known(f"ftracetest:{glob}")], ())
    for number, outcome in enumerate(outcomes):
        policy.judge(result(outcome, f"{number}.tc"))
    return [case for _, passed in policy.outlived([selection]) for case in passed]


def test_kernel_whose_version_is_not_known_has_no_known_failure_of_some_versions() -> None:
    entry = known("ftracetest:*", versions="<6.14", any_version="")
    assert not entry.meant_for("")
    assert entry.meant_for("5.10")


def test_known_red_that_passes_is_told() -> None:
    whole, some = Selection("ftracetest"), Selection("ftracetest", ("0.tc",))
    assert outlived("0.tc", some, Outcome.PASS) == ["ftracetest:0.tc"]
    assert outlived("*.tc", whole, Outcome.PASS, Outcome.SKIP) == ["ftracetest:0.tc"]
    # Others of the glob may be red still.
    assert outlived("*.tc", some, Outcome.PASS) == []
    assert outlived("*.tc", whole, Outcome.PASS, Outcome.FAIL) == []
    assert outlived("*.tc", whole, Outcome.SKIP) == []
    assert outlived("0.tc", whole, Outcome.CRASH) == []


def test_what_a_series_mends_is_red_with_it() -> None:
    mended = known("ftracetest:*", fixed_by=("fprobe",))
    for series, outcome in (("", Outcome.XFAIL), ("another", Outcome.XFAIL), ("fprobe", Outcome.FAIL)):
        assert Policy("arm64", "gcc", [mended], (), series=series).judge(result(Outcome.FAIL)).outcome is outcome


def test_bundled_list_names_series_that_are_there() -> None:
    assert {name for entry in read_known() for name in entry.fixed_by} <= {path.name for path in PATCHES.iterdir()}


def tried(*outcomes: Outcome) -> CaseResult:
    tries = tuple(CaseResult("command", "x", one, diagnostic=f"reason {one}") for one in outcomes)
    return CaseResult("command", "x", Outcome.FLAKY, diagnostic="2 tries\nwhy", tries=tries)


def test_flaky_test_may_be_known_but_not_a_crash() -> None:
    policy = Policy("arm64", "gcc", [known("command:x", Outcome.FLAKY, diagnostic=("reason *",))], ())
    assert policy.judge(tried(Outcome.FAIL, Outcome.PASS)).outcome is Outcome.XFAIL
    assert policy.judge(tried(Outcome.CRASH, Outcome.PASS)).outcome is Outcome.FLAKY
    assert policy.judge(tried(Outcome.FAIL, Outcome.CRASH, Outcome.PASS)).outcome is Outcome.FLAKY
    # Most nights it passes, and that is no news.
    policy.judge(CaseResult("command", "x", Outcome.PASS))
    assert not list(policy.outlived([Selection("command")]))


@pytest.mark.parametrize("case", ["build:build", "apply:0001.patch", "config:config", "boot:identity"])
def test_without_a_kernel_no_reason_makes_it_green(case: str) -> None:
    suite, _, name = case.partition(":")
    entry = known("*", Outcome.FAIL)
    assert Policy("arm64", "gcc", [entry], ()).judge(result(Outcome.FAIL)).outcome is Outcome.XFAIL
    policy = Policy("arm64", "gcc", [entry], ())
    assert policy.judge(CaseResult(suite, name, Outcome.FAIL, diagnostic=WHY)).outcome is Outcome.FAIL


# The whole table: what a case reports, whether it must run, whether a known failure covers it.

RUNS = {outcome: outcome for outcome in Outcome}
MUST_RUN = {**RUNS, Outcome.SKIP: Outcome.FAIL, Outcome.XFAIL: Outcome.FAIL}
EXCUSED = {one: one if one.green or one is Outcome.ERROR else Outcome.XFAIL for one in Outcome}


@pytest.mark.parametrize("outcome", list(Outcome))
@pytest.mark.parametrize(("must", "listed"), [*itertools.product([False, True], repeat=2)])
def test_what_counts(outcome: Outcome, must: bool, listed: bool) -> None:
    """The series stands on its must-run cases: only a pass is green, and no known failure excuses one."""
    entry = known("ftracetest:dynevent/*", *(one for one in Outcome if not one.green and one is not Outcome.ERROR))
    policy = Policy("arm64", "gcc", [entry] if listed else [], [MUST] if must else [])
    tries = (result(Outcome.FAIL), result(Outcome.PASS)) if outcome is Outcome.FLAKY else ()
    judged = policy.judge(msgspec.structs.replace(result(outcome), tries=tries))
    expected = (MUST_RUN if must else EXCUSED if listed else RUNS)[outcome]
    assert judged.outcome is expected
    if must:
        assert judged.outcome.green == (outcome is Outcome.PASS)
    if expected is outcome:
        assert judged.diagnostic == WHY
        assert (judged.was, judged.known) == (None, "")
    else:
        assert judged.diagnostic.endswith(f"; {WHY}")
        assert judged.was is outcome
        assert judged.known == (entry.key if expected is Outcome.XFAIL else "")
        assert judged.covered == (WHY if expected is Outcome.XFAIL else "")


def test_must_run_case_that_expects_its_own_failure_says_so() -> None:
    judged = Policy("arm64", "gcc", (), (MUST,)).judge(result(Outcome.XFAIL))
    assert judged.diagnostic == f"must run, but the test expects its own failure: it proves the series; {WHY}"


FATAL = "ftrace failed to modify\nkernel BUG at fgraph.c:300!\nKernel panic - not syncing: Fatal exception"


def test_fatal_report_behind_a_known_one_is_red() -> None:
    """findings/trust.md, 2: the titles of all reports are lines of the diagnostic, and each one must be named."""
    entry = known("ftracetest:*", Outcome.CRASH, diagnostic=("ftrace failed to modify*",))
    policy = Policy("arm64", "gcc", [entry], ())
    lines = FATAL.splitlines()
    assert policy.judge(result(Outcome.CRASH, diagnostic=lines[0])).outcome is Outcome.XFAIL
    for number in (2, 3):
        assert policy.judge(result(Outcome.CRASH, diagnostic="\n".join(lines[:number]))).outcome is Outcome.CRASH
    assert policy.judge(result(Outcome.CRASH, diagnostic="\n".join([lines[0], lines[2]]))).outcome is Outcome.CRASH
    named = known("ftracetest:*", Outcome.CRASH, diagnostic=("ftrace failed*", "kernel BUG at fgraph.c:300!"))
    assert Policy("arm64", "gcc", [named], ()).judge(result(Outcome.CRASH, diagnostic=FATAL)).outcome is Outcome.CRASH


def test_crash_that_says_nothing_is_red() -> None:
    entry = known("ftracetest:*", Outcome.CRASH, Outcome.FAIL)
    for outcome in (Outcome.CRASH, Outcome.FAIL):
        assert Policy("arm64", "gcc", [entry], ()).judge(result(outcome, diagnostic="")).outcome is outcome


def test_xpass_is_not_what_passed_after_it_was_red() -> None:
    policy = Policy("arm64", "gcc", [known("ftracetest:a.tc", Outcome.TIMEOUT)], ())
    policy.judge(result(Outcome.FAIL, "a.tc"))
    policy.judge(result(Outcome.PASS, "a.tc"))
    assert not list(policy.outlived([Selection("ftracetest")]))
    policy.judge(msgspec.structs.replace(result(Outcome.FLAKY, "a.tc"), tries=(result(Outcome.PASS, "a.tc"),)))
    assert not list(policy.outlived([Selection("ftracetest")]))


def test_xpass_on_other_versions_is_none() -> None:
    entry = known("ftracetest:a.tc", versions=">=6.12,<6.13", any_version="")
    for kernel, expected in (("6.12.117", [(entry, ["ftracetest:a.tc"])]), ("6.18", [])):
        policy = Policy("arm64", "gcc", [entry], (), kernel)
        policy.judge(result(Outcome.PASS, "a.tc"))
        assert list(policy.outlived([Selection("ftracetest")])) == expected


def test_case_that_hangs_is_no_xpass() -> None:
    hangs = known("ftracetest:a.tc", hangs=True, outcome=(), diagnostic=())
    policy = Policy("arm64", "gcc", [hangs], ())
    policy.judge(result(Outcome.PASS, "a.tc"))
    assert not list(policy.outlived([Selection("ftracetest")]))


def test_architecture_of_an_entry_and_of_a_must_run_case() -> None:
    entry = known("ftracetest:*", arch=("s390x",))
    assert Policy("s390x", "gcc", [entry], ()).judge(result(Outcome.FAIL)).outcome is Outcome.XFAIL
    assert Policy("arm64", "gcc", [entry], ()).judge(result(Outcome.FAIL)).outcome is Outcome.FAIL
    assert not list(Policy("s390x", "gcc", (), (MUST,)).missing([]))
    policy = Policy("s390x", "gcc", (), (MUST,))
    policy.judge(result(Outcome.PASS, "other.tc"))
    assert not list(policy.missing([Selection("ftracetest")]))


def test_what_is_missing_says_why() -> None:
    policy = Policy("arm64", "gcc", (), (MUST,))
    nothing, must = policy.missing([Selection("ftracetest")])
    assert (nothing.id, nothing.outcome, nothing.ran) == ("ftracetest:*", Outcome.LOST, False)
    assert nothing.diagnostic == "asked for, but no case reported"
    assert (must.id, must.outcome) == ("ftracetest:dynevent/*fprobe*", Outcome.LOST)
    assert must.diagnostic == "must run, but there is no such case: it proves the series"


def test_warnings_may_be_known() -> None:
    entry = known("build:warnings", Outcome.FAIL)
    judged = Policy("arm64", "gcc", [entry], ()).judge(CaseResult("build", "warnings", Outcome.FAIL, diagnostic=WHY))
    assert judged.outcome is Outcome.XFAIL


@pytest.mark.parametrize(
    ("outcomes", "passed"),
    [
        ([Outcome.PASS, Outcome.FAIL], False),
        ([Outcome.FAIL, Outcome.PASS], False),
        ([Outcome.PASS, Outcome.SKIP], True),
        ([Outcome.SKIP, Outcome.PASS], False),
        ([Outcome.PASS, Outcome.PASS], True),
    ],
)
def test_what_counts_of_a_case_that_reports_twice(outcomes: list[Outcome], passed: bool) -> None:
    """The policy keeps the same result as the journal: the first one, or the first red one."""
    entry = known("ftracetest:a.tc", Outcome.TIMEOUT)
    policy = Policy("arm64", "gcc", [entry], ())
    for outcome in outcomes:
        policy.judge(result(outcome, "a.tc"))
    assert bool(list(policy.outlived([Selection("ftracetest")]))) == passed


def test_every_xpass_is_told() -> None:
    """An XPASS is found even if entries before it cannot be judged."""
    hangs = known("ftracetest:a.tc", hangs=True, outcome=(), diagnostic=())
    entries = [hangs, known("ftracetest:a.tc", Outcome.FLAKY), known("kunit:*"), known("ftracetest:a.tc")]
    policy = Policy("arm64", "gcc", entries, ())
    policy.judge(result(Outcome.PASS, "a.tc"))
    assert list(policy.outlived([Selection("ftracetest")])) == [(entries[3], ["ftracetest:a.tc"])]


@pytest.mark.parametrize(
    ("globs", "missed"),
    [
        ((), True),
        (("*",), True),
        (("fprobe_test.*",), True),
        (("fprobe_test.test_e*",), True),
        (("list_test.*", "fprobe_test.*"), True),
        (("fprobe_test.test_entry",), False),
        (("list_test.*",), False),
    ],
)
def test_must_run_case_that_was_asked_for_is_missed(globs: tuple[str, ...], missed: bool) -> None:
    """`--suite 'kunit:*'` asks for the same as `--suite kunit`."""
    policy = Policy("x86_64", "gcc", (), [CasePattern("kunit:fprobe_test.test_exit", "the series is about it")])
    for name in ("fprobe_test.test_entry", "list_test.one"):
        policy.judge(CaseResult("kunit", name, Outcome.PASS))
    missing = [one.id for one in policy.missing([Selection("kunit", globs)])]
    assert missing == ["kunit:fprobe_test.test_exit"] * missed


@pytest.mark.parametrize("name", ["identity", "identity of boot 2", "identity of guest 2", "identity of boot 3 of guest retry-1"])
def test_another_kernel_is_no_known_failure_at_any_boot(name: str) -> None:
    entry = known("boot:identity*", Outcome.FAIL, diagnostic=("the guest runs the kernel *",))
    result = CaseResult("boot", name, Outcome.FAIL, diagnostic="the guest runs the kernel a, but b is the one to be tested")
    assert Policy("x86_64", "gcc", [entry], ()).judge(result).outcome is Outcome.FAIL
