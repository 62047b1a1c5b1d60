"""The files that decide what is tested and what is excused: each of these could be cut down without any test noticing."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from harness import arch, kernel, paths, series
from harness.arch import Arch
from harness.kernel import kconfig
from harness.model import ABSENT, CaseResult, Outcome, SymbolRequest
from harness.suites import boot, kunit, samples
from harness.suites.known import Known, read_known

SIX = arch.chosen(())
OURS = series.load("fprobe-on-fgraph")


def asked(target: Arch, *extra: Path) -> dict[str, SymbolRequest]:
    """What the fragments of an architecture ask for, the last one of each symbol."""
    found = kernel.fragments_for(target, extra)
    return {request.symbol: request for path in found for request in kconfig.read_fragment(path, target.name)}


def demanded(target: Arch, symbol: str, *extra: Path) -> bool:
    """A kernel that lacks it is red."""
    request = asked(target, *extra).get(symbol)
    return request is not None and request.value in ("y", "m") and not request.optional


OPTIONAL_ON = {
    "KUNIT": (),
    "FTRACE_STARTUP_TEST": (),
    "FPROBE": ("arm64", "riscv64"),
    "FPROBE_EVENTS": ("arm64", "riscv64"),
    "FPROBE_SANITY_TEST": ("arm64", "riscv64"),
    "SAMPLE_FPROBE": ("arm64", "riscv64"),
    "SAMPLE_FTRACE_DIRECT": ("ppc64le",),
    "SAMPLE_FTRACE_DIRECT_MULTI": ("ppc64le",),
    "IRQSOFF_TRACER": ("ppc64le", "riscv64"),
    "PREEMPT_TRACER": ("ppc64le", "riscv64"),
}
"""Architectures of the six whose 6.12 has no such thing. What is not listed is optional nowhere."""


def test_no_suite_skips_because_its_symbol_was_not_asked_for() -> None:
    """Without its symbol, a startup test, a KUnit suite or a sample is not expected, or skips, which is green."""
    needed = {*OPTIONAL_ON, *boot.EXPECTED, *kunit.EXPECTED, *(sample.symbol for sample in samples._SAMPLES)}
    for target in SIX:
        for symbol in needed:
            lacks = target.name in OPTIONAL_ON.get(symbol, ())
            assert demanded(target, symbol) != lacks, (target.name, symbol)


def test_an_fprobe_is_optional_only_where_claims_know_that_there_is_none() -> None:
    claim = next(claim for claim in OURS.claims if claim.needs == ("FPROBE",))
    for target in SIX:
        assert demanded(target, "FPROBE") == (claim.on_base(target.name) != ABSENT), target.name


def test_with_the_series_nothing_that_it_brings_is_optional() -> None:
    """What its claims, measures and must-run cases need is asked for on every architecture: `required` makes it a must."""
    assert OURS.fragment
    own = {request.symbol for request in kconfig.read_fragment(OURS.fragment, "arm64")}
    needed = {symbol for claim in OURS.claims for symbol in claim.needs}
    needed |= {symbol for measure in OURS.measures for symbol in measure.needs}
    needed |= {"FPROBE_SANITY_TEST", "SAMPLE_FPROBE"}
    for target in SIX:
        for symbol in needed - own:
            assert demanded(target, symbol, OURS.fragment), (target.name, symbol)
    assert {"FPROBE", "FPROBE_EVENTS", "FPROBE_SANITY_TEST", "SAMPLE_FPROBE"} <= own


@pytest.mark.parametrize(
    ("symbol", "optional"),
    [
        ("PANIC_ON_OOPS", ()),  # what runs on after an oops proves nothing
        ("BUG", ()),
        ("KALLSYMS", ()),
        ("DEBUG_LIST", ()),
        ("BUG_ON_DATA_CORRUPTION", ()),
        ("DETECT_HUNG_TASK", ()),
        ("SOFTLOCKUP_DETECTOR", ("s390x",)),
    ],
)
def test_kernel_says_what_goes_wrong(symbol: str, optional: tuple[str, ...]) -> None:
    for target in SIX:
        assert demanded(target, symbol) != (target.name in optional), target.name


def test_debugging_kernel_has_its_checkers() -> None:
    """Those that the deadlines allow for, too."""
    for target in SIX:
        for symbol in ("PROVE_LOCKING", "PROVE_RCU", "DEBUG_ATOMIC_SLEEP", "DEBUG_LIST"):
            assert demanded(target, symbol, paths.CONFIGS / "debug.config"), (target.name, symbol)
        lacks = target.name == "ppc64le"
        assert demanded(target, "KASAN", paths.CONFIGS / "debug.config") != lacks, target.name


OTHER_FAILURES = (
    "cat: read error: Input/output error",
    "sh: write error: No such device",
    "sh: write error: Cannot allocate memory",
    "sh: error: no such function",
    "++ exit_fail",
    "+ grep -q fprobe trace",
    "FAIL: the event was not hit",
    "",
)
"""Of the tests' own kind: what a broken fprobe might show."""


@pytest.mark.parametrize("entry", [one for one in read_known() if not one.hangs], ids=lambda one: f"{one.case} {one.arch}")
def test_bundled_known_failure_covers_no_other_failure(entry: Known) -> None:
    suite, _, name = entry.case.partition(":")
    name = re.sub(r"\[(.)[^\]]*\]", r"\1", name).replace("*", "x")
    for diagnostic in OTHER_FAILURES:
        for outcome in entry.outcome:
            result = CaseResult(suite, name, outcome, diagnostic=diagnostic)
            assert entry.applies_to(result.id)
            assert not entry.covers(result), diagnostic


def test_known_failures_of_all_architectures_are_few() -> None:
    """An entry that loses its `arch` covers the same failure where the kernel must not have it."""
    assert sorted(entry.case for entry in read_known() if not entry.arch) == [
        "ftracetest:dynevent/add_remove_tprobe_module.tc",
        "ftracetest:kprobe/kprobe_eventname.tc",
        "ftracetest:preemptirq/irqsoff_tracer.tc",
        "ftracetest:selftest/bashisms.tc",
        "ftracetest:trigger/inter-event/trigger-synthetic-event-dynstring.tc",
    ]


def test_what_the_bundled_series_fixes_is_red_with_it() -> None:
    fixed = {entry.case for entry in read_known() if "fprobe-on-fgraph" in entry.fixed_by}
    assert fixed == {"ftracetest:dynevent/add_remove_tprobe_module.tc", "bench:function_graph and exit"}


def test_flaky_and_lost_cases_are_not_excused() -> None:
    excused = {outcome for entry in read_known() for outcome in entry.outcome}
    assert excused <= {Outcome.FAIL, Outcome.UNRESOLVED, Outcome.CRASH}


@pytest.mark.parametrize("there", [True, False])
def test_hung_tasks_are_reported_without_end(tmp_path: Path, there: bool) -> None:
    """Of the guest's init, the lines about it, in this machine's shell."""
    file = tmp_path / "hung_task_warnings"
    if there:
        file.write_text("10\n")
    init = (paths.GUEST / "init").read_text()
    assert "/proc/sys/kernel/hung_task_warnings" in init
    lines = [line for line in init.splitlines() if line.startswith("hung=") or "$hung" in line]
    text = "\n".join(lines).replace("/proc/sys/kernel/hung_task_warnings", str(file))
    subprocess.run(["sh", "-c", text], check=True)
    assert (file.read_text() == "-1\n") if there else not file.exists()
