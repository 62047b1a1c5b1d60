from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.logs import splat

DATA = Path(__file__).parent.parent / "data"

LOGS = {
    "splat-x86_64-int3.log": [("oops", "sched_balance_trigger", True), ("oops", "raw_spin_rq_lock_nested", False)],
    "splat-x86_64-warning.log": [("warning", "__unregister_ftrace_function", False)],
    "boot-x86_64.log": [],
}


@pytest.mark.parametrize("name", LOGS)
def test_real_logs(name: str) -> None:
    with (DATA / name).open("rb") as file:
        found = splat.scan(file)
    assert [(one.kind, one.function, one.fatal) for one in found] == LOGS[name]


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("Kernel panic - not syncing: Attempted to kill init! exitcode=0x00000100", "panic"),
        ("BUG: KASAN: slab-out-of-bounds in kfoo+0x1/0x2", "kasan"),
        ("BUG: kernel NULL pointer dereference, address: 0000000000000008", "page-fault"),
        ("Unable to handle kernel paging request at virtual address dead000000000122", "page-fault"),
        ("Internal error: Oops: 0000000096000004 [#1] PREEMPT SMP", "oops"),
        ("illegal operation: 0001 ilc:1 [#1] PREEMPT SMP ", "oops"),
        ("watchdog: BUG: soft lockup - CPU#1 stuck for 26s! [sh:123]", "soft-lockup"),
        ("rcu: INFO: rcu_preempt self-detected stall on CPU", "rcu-stall"),
        ("rcu: INFO: rcu_preempt detected stalls on CPUs/tasks:", "rcu-stall"),
        ("INFO: task sh:123 blocked for more than 120 seconds.", "hung-task"),
        ("WARNING: possible circular locking dependency detected", "lockdep"),
        ("WARNING: suspicious RCU usage", "rcu"),
        ("WARNING: CPU: 0 PID: 1 at kernel/trace/fgraph.c:12 foo+0x1/0x2", "warning"),
        ("UBSAN: array-index-out-of-bounds in kernel/foo.c:1:2", "ubsan"),
        ("refcount_t: underflow; use-after-free.", "refcount"),
        ("list_del corruption. prev->next should be ffff, but was 0000.", "list"),
        ("sh invoked oom-killer: gfp_mask=0xcc0", "out-of-memory"),
        ("BUG kmalloc-64 (Not tainted): Poison overwritten", "bug"),
        ("divide error: 0000 [#1] SMP", "oops"),
        ("Kernel panic - not syncing: stack-protector: Kernel stack is corrupted in: f+0x1/0x2", "stack-protector"),
        ("general protection fault, probably for non-canonical address 0xdead: 0000 [#1] SMP", "general-protection"),
    ],
)
@pytest.mark.parametrize(
    "prefix",
    [
        "",
        "[   12.345678] ",
        "[123456.345678][ T1234] ",
        "[    1.000000][    C0] ",
        "<4>[    1.0] ",
        "[    T1] ",
        "[Fri Nov 20 20:41:32 2026] ",
        "Nov 20 20:41:32 host kernel: ",
    ],
)
def test_first_lines(line: str, kind: str, prefix: str) -> None:
    assert [one.kind for one in splat.scan(["before", prefix + line, "after"])] == [kind]


@pytest.mark.parametrize(
    "line",
    [
        "[    1.0] my_test: checking that no WARNING: appears",
        "ok 1 - grep for BUG: in dmesg",
        "[    1.0] rcu: RCU restricting CPUs from NR_CPUS=4 to nr_cpu_ids=2.",
        "[    1.0] Kernel command line: panic=-1 oops=panic",
        "+ grep -q 'Kernel panic' log",
        "[    1.0] WARNING: nvram corruption detected: 0-length partition",
        "[    1.0] NMI watchdog: Enabled. Permanently consumes one hw-PMU counter.",
    ],
)
def test_text_that_only_mentions_one(line: str) -> None:
    assert splat.scan([line]) == []


def test_oops_and_its_panic_are_one_report() -> None:
    log = [
        "[    1.0][    T1] BUG: kernel NULL pointer dereference, address: 0000000000000000",
        "[    1.0][    T1] Oops: 0000 [#1] PREEMPT SMP",
        "[    1.0][    T1] RIP: 0010:broken_function+0x10/0x20",
        "[    1.0][    T1] Call Trace:",
        "[    1.0][    T1]  caller+0x1/0x2",
        "[    1.0][    T1] ---[ end trace 0000000000000000 ]---",
        "[    1.0][    T1] Kernel panic - not syncing: Fatal exception",
    ]
    (found,) = splat.scan(log)
    assert (found.kind, found.function, found.line, found.fatal) == ("page-fault", "broken_function", 1, True)
    assert found.text == "\n".join(log)


def test_two_warnings_are_two() -> None:
    one = ["[    1.0] WARNING: CPU: 0 PID: 1 at a.c:1 f+0x1/0x2", *["[    1.0]  x"] * 5, "[    1.0] ---[ end trace 0 ]---"]
    assert [found.function for found in splat.scan([*one, *one])] == ["f", "f"]


def test_report_cut_short_by_the_end_of_the_log() -> None:
    assert [found.kind for found in splat.scan(["[ 1.0] BUG: KASAN: use-after-free in f+0x1/0x2"])] == ["kasan"]


@given(st.lists(st.text(), max_size=50))
def test_any_text_is_survived(lines: list[str]) -> None:
    splat.scan(lines)


@given(st.lists(st.sampled_from(["noise", "[ 1.0] ---[ end trace 0 ]---", "====", ""]), max_size=30))
def test_a_panic_is_never_lost(noise: list[str]) -> None:
    found = splat.scan([*noise, "[ 1.0] Kernel panic - not syncing: x", *noise])
    assert any(one.fatal for one in found)


def test_warning_swallows_no_other_report() -> None:
    lines = ["WARNING: odd", "something", "BUG: Bad page state in process x", "more"]
    assert [one.kind for one in splat.scan(lines)] == ["warning", "bug"]
