from __future__ import annotations

import io
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
        found = splat.scan_file(file)
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
        # LoongArch, RISC-V, s390, PowerPC
        ("CPU 0 Unable to handle kernel paging request at virtual address 0000000000000000, era == 9, ra == 9", "page-fault"),
        ("Reserved instruction in kernel code[#1]:", "oops"),
        ("Kernel BUG [#1]", "oops"),
        ("Oops - illegal instruction [#1]", "oops"),
        ("Unable to handle kernel pointer dereference in virtual kernel address space", "page-fault"),
        ("monitor event: 0040 ilc:2 [#1] PREEMPT SMP", "oops"),
        ("BUG: Kernel NULL pointer dereference on read at 0x00000000", "page-fault"),
        ("Oops: Kernel access of bad area, sig: 11 [#1]", "oops"),
        ("watchdog: CPU 1 self-detected hard LOCKUP @ 0xc000000000010000", "hard-lockup"),
        ("SError Interrupt on CPU0, code 0x00000000be000000 -- SError", "serror"),
        ("CFI failure at lkdtm_CFI+0x1/0x2 (target: f+0x0/0x1; expected type: 0x1)", "cfi"),
        ("sh: page allocation failure: order:4, mode:0xcc0(GFP_KERNEL), nodemask=(null)", "out-of-memory"),
        ('irq 9: nobody cared (try booting with the "irqpoll" option)', "irq"),
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
        "nov 20 20:41:32.123456 host kernel: ",
        "2026-11-20T20:41:32.123456+01:00 host kernel: ",
        "2026-11-20 20:41:32 host kernel: ",
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
    lines = ["WARNING: CPU: 0 PID: 1 at a.c:1 f+0x1/0x2", "something", "BUG: Bad page state in process x", "more"]
    assert [one.kind for one in splat.scan(lines)] == ["warning", "bug"]


REPORT = b"[    1.0][    T1] WARNING: CPU: 0 PID: 1 at a.c:1 f+0x1/0x2"


@given(
    st.lists(
        st.sampled_from([REPORT, b"BUG: odd", b"x" * 70_000, b"[    1.0][    C0] noise", b"\x1b[1mBU\x00G: odd", b""]),
        max_size=30,
    )
)
def test_in_blocks_as_line_by_line(lines: list[bytes]) -> None:
    log = b"\n".join(lines)
    assert splat.scan_file(io.BytesIO(log)) == splat.scan(io.BytesIO(log))


def test_two_at_once_are_told_apart() -> None:
    """Each by the function that its own CPU was in."""
    one = ["BUG: KASAN: use-after-free in a+0x1/0x2", "Call Trace:", " dump_stack+0x1/0x2", " a+0x1/0x2", "=" * 40]
    two = ["general protection fault: 0000 [#1] SMP", "RIP: 0010:b+0x1/0x2", "Call Trace:", " b+0x1/0x2", "---[ end trace 0 ]---"]
    log = [
        line
        for first, second in zip(one, two, strict=True)
        for line in (f"[    1.0][   T10] {first}", f"[    1.0][   T20] {second}")
    ]
    found = splat.scan(log)
    assert [(splat.kind, splat.function, splat.line) for splat in found] == [("kasan", "a", 1), ("general-protection", "b", 2)]
    assert all("T20" not in line for line in found[0].text.splitlines())


def test_backtraces_of_other_cpus_belong_to_the_report() -> None:
    log = [
        "[ 1.0][   C0] rcu: INFO: rcu_sched self-detected stall on CPU",
        "[ 1.0][   C1] NMI backtrace for cpu 1",
        "[ 1.0][   C0] x",
    ]
    assert splat.scan(log)[0].text.splitlines() == log


def test_text_of_a_warning_and_its_place_are_one_report() -> None:
    log = ["refcount_t: underflow; use-after-free.", REPORT.decode().partition("] ")[2]]
    assert [found.kind for found in splat.scan(log)] == ["refcount"]
