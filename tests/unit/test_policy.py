from __future__ import annotations

from pathlib import Path

import pytest

from harness.errors import UserError
from harness.model import CasePattern, CaseResult, Outcome
from harness.paths import PATCHES
from harness.suites import Selection
from harness.suites.policy import Known, Policy, read_known


def result(outcome: Outcome, name: str = "dynevent/fprobe.tc") -> CaseResult:
    return CaseResult("ftracetest", name, outcome)


MUST = CasePattern("ftracetest:dynevent/*fprobe*", "it proves the series", ("arm64",))
KNOWN = Known("ftracetest:dynevent/*", "told so")


def test_must_run_case_that_skips_is_red() -> None:
    judged = Policy("arm64", "gcc", (), (MUST,)).judge(result(Outcome.SKIP))
    assert judged.outcome is Outcome.FAIL
    assert "must run" in judged.diagnostic


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
    crash = Known("ftracetest:*", "a bug of the base", outcome=(Outcome.CRASH,))
    assert Policy("x86_64", "gcc", (crash,), ()).judge(result(Outcome.CRASH)).outcome is Outcome.XFAIL
    assert Policy("x86_64", "gcc", (crash,), ()).judge(result(Outcome.FAIL)).outcome is Outcome.FAIL


def test_known_of_one_toolchain() -> None:
    known = Known("ftracetest:*", "clang does not do that", toolchain="llvm*")
    for toolchain, outcome in (("llvm-22", Outcome.XFAIL), ("gcc", Outcome.FAIL)):
        assert Policy("x86_64", toolchain, (known,), ()).judge(result(Outcome.FAIL)).outcome is outcome


def test_known_by_its_diagnostic_and_by_nothing_else() -> None:
    """Two splats on the console are known only if both are."""
    known = Known("boot:console", "a bug", outcome=(Outcome.CRASH,), diagnostic=("WARNING: * bug_here+*", "Oops*there*"))
    policy = Policy("riscv64", "gcc", (known,), ())
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


@pytest.mark.parametrize("text", ["[[known]]\ncase = 'x'\n", "[[known]]\ncase = 'x'\nreason = ' '\n", "nonsense"])
def test_entry_without_a_reason(tmp_path: Path, text: str) -> None:
    path = tmp_path / "known.toml"
    path.write_text(text)
    with pytest.raises(UserError):
        read_known(path)


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
        ("loongarch64", "dynevent/add_remove_tprobe_module.tc", Outcome.CRASH, "BUG: KASAN: use-after-free in x", False),
        (
            "loongarch64",
            "kprobe/kprobe_insn_boundary.tc",
            Outcome.CRASH,
            "WARNING: CPU: 1 at kernel/trace/fgraph.c:1 x+0x1",
            False,
        ),
        ("s390x", "kprobe/kprobe_insn_boundary.tc", Outcome.CRASH, "illegal operation: 0001 ilc:1 [#1] PREEMPT SMP", True),
        ("x86_64", "kprobe/kprobe_insn_boundary.tc", Outcome.CRASH, "illegal operation: 0001 ilc:1 [#1] PREEMPT SMP", False),
    ],
)
def test_bundled_list_covers_what_was_seen_and_no_more(
    arch: str, case: str, outcome: Outcome, diagnostic: str, known: bool
) -> None:
    policy = Policy(arch, "llvm-22" if arch == "loongarch64" else "gcc", read_known(), ())
    judged = policy.judge(CaseResult("ftracetest", case, outcome, diagnostic=diagnostic))
    assert judged.outcome is (Outcome.XFAIL if known else outcome)


def test_case_that_hangs_is_not_run() -> None:
    known = Known("ftracetest:hang*", "it never returns", ("arm64",), hangs=True)
    assert Policy("arm64", "gcc", (known, KNOWN), ()).hangs("ftracetest:hang.tc") == "it never returns"
    assert not Policy("arm64", "gcc", (known, KNOWN), ()).hangs("ftracetest:dynevent/x.tc")
    assert not Policy("x86_64", "gcc", (known,), ()).hangs("ftracetest:hang.tc")
    assert Policy("arm64", "gcc", (known,), ()).judge(result(Outcome.FAIL, "hang.tc")).outcome is Outcome.FAIL


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
    ],
)
def test_known_of_some_versions(kernel: str, outcome: Outcome) -> None:
    entry = Known("ftracetest:dynevent/fprobe.tc", "reported", versions=">=6.12,<6.14", link="https://lore.kernel.org/r/1")
    judged = version(entry, kernel)
    assert judged.outcome is outcome
    assert (judged.diagnostic.startswith("known: reported (https://lore.kernel.org/r/1)")) == outcome.green


def test_versions_that_are_none(tmp_path: Path) -> None:
    listed = tmp_path / "known.toml"
    listed.write_text('[[known]]\ncase = "boot:console"\nreason = "so it is"\nversions = "6.12 or so"\n')
    with pytest.raises(UserError, match=r"boot:console.*versions are like"):
        read_known(listed)


def outlived(glob: str, selection: Selection, *outcomes: Outcome) -> list[str]:
    policy = Policy("arm64", "gcc", [Known(f"ftracetest:{glob}", "so it is")], ())
    for number, outcome in enumerate(outcomes):
        policy.judge(result(outcome, f"{number}.tc"))
    return [case for _, passed in policy.outlived([selection]) for case in passed]


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
    mended = Known("ftracetest:*", "so it is", fixed_by=("fprobe",))
    for series, outcome in (("", Outcome.XFAIL), ("another", Outcome.XFAIL), ("fprobe", Outcome.FAIL)):
        assert Policy("arm64", "gcc", [mended], (), series=series).judge(result(Outcome.FAIL)).outcome is outcome


def test_bundled_list_names_series_that_are_there() -> None:
    assert {name for entry in read_known() for name in entry.fixed_by} <= {path.name for path in PATCHES.iterdir()}


def tried(*outcomes: Outcome) -> CaseResult:
    tries = tuple(CaseResult("command", "x", one, diagnostic=f"why {one}") for one in outcomes)
    return CaseResult("command", "x", Outcome.FLAKY, diagnostic="2 tries\nwhy", tries=tries)


def test_flaky_test_may_be_known_but_not_a_crash() -> None:
    policy = Policy("arm64", "gcc", [Known("command:x", "so it is", outcome=(Outcome.FLAKY,), diagnostic=("why *",))], ())
    assert policy.judge(tried(Outcome.FAIL, Outcome.PASS)).outcome is Outcome.XFAIL
    assert policy.judge(tried(Outcome.CRASH, Outcome.PASS)).outcome is Outcome.FLAKY
    assert policy.judge(tried(Outcome.FAIL, Outcome.CRASH, Outcome.PASS)).outcome is Outcome.FLAKY
    # Most nights it passes, and that is no news.
    policy.judge(CaseResult("command", "x", Outcome.PASS))
    assert not list(policy.outlived([Selection("command")]))


@pytest.mark.parametrize("case", ["build:build", "apply:0001.patch", "config:config"])
def test_without_a_kernel_no_reason_makes_it_green(case: str) -> None:
    suite, _, name = case.partition(":")
    policy = Policy("arm64", "gcc", [Known("*", "so it is", outcome=tuple(Outcome))], ())
    assert policy.judge(CaseResult(suite, name, Outcome.FAIL)).outcome is Outcome.FAIL


def test_unknown_architecture_is_refused(tmp_path: Path) -> None:
    listed = tmp_path / "known.toml"
    listed.write_text('[[known]]\ncase = "boot:console"\nreason = "so it is"\narch = ["arm46"]\n')
    with pytest.raises(UserError, match="arm46"):
        read_known(listed)
