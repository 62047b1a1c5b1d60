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
    assert found.sequels == ("Oops: 0000 [#1] PREEMPT SMP", "Kernel panic - not syncing: Fatal exception")
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


def titles(log: list[str]) -> list[tuple[str, tuple[str, ...]]]:
    return [(found.kind, found.sequels) for found in splat.scan(log)]


OOPS = "Oops: 0000 [#1] PREEMPT SMP"
PANIC = "Kernel panic - not syncing: Fatal exception"


@pytest.mark.parametrize(
    "first",
    [
        "BUG: kernel NULL pointer dereference, address: 0000000000000000",
        "Unable to handle kernel paging request at virtual address dead000000000122",
        "kernel BUG at kernel/trace/fgraph.c:300!",
        "Oops: 0000 [#1] PREEMPT SMP",
        "Kernel stack overflow.",
        "CFI failure at f+0x1/0x2 (target: g+0x0/0x1; expected type: 0x1)",
    ],
)
def test_oops_is_part_of_what_leads_to_it_and_is_named(first: str) -> None:
    (found,) = splat.scan([first, "some text", OOPS, "more", PANIC])
    assert found.title == first
    assert found.sequels == (OOPS, PANIC)
    assert found.fatal
    assert found.stopped


@pytest.mark.parametrize(
    "first",
    [
        "INFO: trying to register non-static key.",
        "BUG: sleeping function called from invalid context at a.c:1",
        "BUG: scheduling while atomic: sh/1/0x2",
        "WARNING: possible circular locking dependency detected",
        "WARNING: suspicious RCU usage",
        "WARNING: CPU: 0 PID: 1 at a.c:1 f+0x1/0x2",
        "BUG: KASAN: use-after-free in f+0x1/0x2",
        "BUG: KFENCE: use-after-free read in f+0x1/0x2",
        "BUG: KMSAN: uninit-value in f+0x1/0x2",
        "BUG: KCSAN: data-race in f / g",
        "UBSAN: array-index-out-of-bounds in a.c:1:2",
        "BUG: Bad page state in process sh  pfn:1",
        "BUG kmalloc-64 (Not tainted): Poison overwritten",
        "rcu: INFO: rcu_preempt self-detected stall on CPU",
        "watchdog: BUG: soft lockup - CPU#1 stuck for 26s! [sh:123]",
        "INFO: task sh:123 blocked for more than 120 seconds.",
        "refcount_t: underflow; use-after-free.",
        "ODEBUG: free active (active state 0) object type: timer_list",
        "ftrace failed to modify",
        "sh invoked oom-killer: gfp_mask=0xcc0",
        "unreferenced object 0xffff888100000000 (size 64):",
    ],
)
@pytest.mark.parametrize(
    ("second", "kind"),
    [
        ("BUG: kernel NULL pointer dereference, address: 0000000000000000", "page-fault"),
        ("kernel BUG at kernel/trace/fgraph.c:300!", "bug"),
        (OOPS, "oops"),
        ("general protection fault, probably for non-canonical address 0xdead: 0000 [#1] SMP", "general-protection"),
    ],
)
def test_oops_never_hides_in_another_report(first: str, second: str, kind: str) -> None:
    one, two = splat.scan([first, "some text", second, "more", PANIC])
    assert one.sequels == ()
    assert not one.stopped
    assert (two.kind, two.sequels, two.stopped) == (kind, (PANIC,), True)


@pytest.mark.parametrize("first", ["WARNING: CPU: 0 PID: 1 at a.c:1 f+0x1/0x2", "INFO: trying to register non-static key."])
def test_panic_is_a_sequel_of_any_report(first: str) -> None:
    (found,) = splat.scan([first, "text", PANIC])
    assert (found.title, found.sequels, found.fatal, found.stopped) == (first, (PANIC,), True, True)


def test_panic_of_its_own_is_no_sequel() -> None:
    (found,) = splat.scan([PANIC])
    assert (found.sequels, found.fatal, found.stopped) == ((), True, True)


def test_second_oops_is_a_report_of_its_own() -> None:
    log = [OOPS, "Call Trace:", " f+0x1/0x2", OOPS.replace("#1", "#2"), "Call Trace:", " g+0x1/0x2"]
    assert [(found.title, found.function) for found in splat.scan(log)] == [(log[0], "f"), (log[3], "g")]
    log = ["BUG: kernel NULL pointer dereference, address: 0", OOPS, "text", OOPS.replace("#1", "#2")]
    assert titles(log) == [("page-fault", (OOPS,)), ("oops", ())]


def test_known_failure_does_not_cover_what_follows() -> None:
    """A harmless text, then BUG() in other code, then the panic."""
    log = ["ftrace failed to modify", "text", "kernel BUG at kernel/trace/fgraph.c:300!", "invalid opcode: 0000 [#1] SMP", PANIC]
    assert titles(log) == [("ftrace", ()), ("bug", (log[3], PANIC))]


def test_oops_behind_the_end_of_a_report_is_another() -> None:
    log = ["BUG: kernel NULL pointer dereference, address: 0", *["text"] * 3, "---[ end trace 0000000000000000 ]---", OOPS]
    assert titles(log) == [("page-fault", ()), ("oops", ())]


def test_panic_long_after_the_end_of_a_report_is_another() -> None:
    end = ["WARNING: CPU: 0 PID: 1 at a.c:1 f+0x1/0x2", *["text"] * 3, "---[ end trace 0000000000000000 ]---"]
    assert titles([*end, *["text"] * 39, PANIC]) == [("warning", (PANIC,))]
    assert titles([*end, *["text"] * 40, PANIC]) == [("warning", ()), ("panic", ())]


def test_report_without_an_end_is_over_after_200_lines() -> None:
    first = "WARNING: CPU: 0 PID: 1 at a.c:1 f+0x1/0x2"
    assert titles([first, *["text"] * 198, PANIC]) == [("warning", (PANIC,))]
    assert titles([first, *["text"] * 199, PANIC]) == [("warning", ()), ("panic", ())]


@pytest.mark.parametrize(
    ("log", "kind"),
    [
        (
            [
                "sh invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0",
                "Call Trace:",
                " dump_header+0x1/0x2",
                "Mem-Info:",
                *["[    123]     0   123     1000      100    40000        0             0 sh"] * 1000,
                "Out of memory: Killed process 123 (sh) total-vm:1kB, anon-rss:1kB",
            ],
            "out-of-memory",
        ),
        (
            [
                "BUG kmalloc-64 (Not tainted): Poison overwritten",
                "-" * 77,
                "INFO: 0x0000000000000001-0x0000000000000001 @offset=1. First byte 0x6a instead of 0x6b",
                "INFO: Allocated in f+0x1/0x2 age=1 cpu=0 pid=1",
                *[" g+0x1/0x2"] * 16,
                "INFO: Freed in h+0x1/0x2 age=1 cpu=0 pid=1",
                *[" g+0x1/0x2"] * 16,
                "INFO: Slab 0x0000000000000001 objects=1 used=1 fp=0x0000000000000000 flags=0x1",
            ],
            "bug",
        ),
        (
            ["list_del corruption, ffff->next is LIST_POISON1 (dead)", "WARNING: CPU: 0 PID: 1 at lib/list_debug.c:1 f+0x1/0x2"],
            "list",
        ),
        (
            ["WARNING: CPU: 0 PID: 1 at lib/list_debug.c:1 f+0x1/0x2()", "list_del corruption, ffff->next is LIST_POISON1"],
            "warning",
        ),
        (["WARNING: at lib/refcount.c:1 f+0x1/0x2()", "refcount_t: underflow; use-after-free."], "warning"),
        (["refcount_t: underflow; use-after-free.", "WARNING: CPU: 0 PID: 1 at lib/refcount.c:1 f+0x1/0x2"], "refcount"),
        (["ODEBUG: free active (active state 0)", "WARNING: lib/debugobjects.c:1 at f+0x1/0x2, CPU#0: sh/1"], "odebug"),
        (
            ["ftrace failed to modify", "[<ffffffff81000000>] f+0x0/0x1", "WARNING: CPU: 0 PID: 1 at ftrace.c:1 g+0x1/0x2"],
            "ftrace",
        ),
    ],
    ids=["OOM", "SLUB", "list", "list, old", "refcount, old", "refcount", "ODEBUG", "ftrace"],
)
def test_one_trouble_is_one_report(log: list[str], kind: str) -> None:
    assert titles(log) == [(kind, ())]


def test_what_looks_like_a_part_but_comes_late_is_another() -> None:
    warning = "WARNING: CPU: 0 PID: 1 at a.c:1 f+0x1/0x2"
    assert [found.kind for found in splat.scan([warning, *["text"] * 4, "refcount_t: underflow; use-after-free."])] == [
        "warning",
        "refcount",
    ]
    assert [found.kind for found in splat.scan(["refcount_t: underflow.", *["text"] * 12, warning])] == ["refcount", "warning"]
    slub = ["BUG kmalloc-64 (Not tainted): Poison overwritten", *["text"] * 60, "INFO: Freed in h+0x1/0x2 age=1"]
    assert [found.kind for found in splat.scan(slub)] == ["bug", "slub"]


def test_two_of_a_kind_are_two() -> None:
    for first in (
        "sh invoked oom-killer: gfp_mask=0xcc0",
        "BUG kmalloc-64 (Not tainted): Poison overwritten",
        "list_del corruption. prev->next should be ffff, but was 0000.",
        "BUG: KASAN: use-after-free in f+0x1/0x2",
    ):
        assert [found.line for found in splat.scan([first, "text", first])] == [1, 3]


@pytest.mark.parametrize("indent", ["    ", "\t", " "])
def test_indented_report_without_time(indent: str) -> None:
    log = [
        f"{indent}{line}" for line in ("BUG: kernel NULL pointer dereference, address: 0", "RIP: 0010:f+0x1/0x2", "Call Trace:")
    ]
    (found,) = splat.scan(["Subject: a mail", "", *log])
    assert (found.kind, found.title, found.function, found.line) == ("page-fault", log[0].strip(), "f", 3)


@pytest.mark.parametrize(
    ("line", "kind", "function"),
    [
        ("WARNING: at foo+0x1/0x2, CPU#0: sh/1", "warning", "foo"),
        ("WARNING: CPU: 0 PID: 1 at foo+0x1/0x2", "warning", "foo"),
        ("WARNING: kernel/foo.c:12 at foo+0x1/0x2, CPU#3: sh/1", "warning", "foo"),
        ("WARNING: [reason] kernel/foo.c:12 at foo+0x1/0x2, CPU#3: sh/1", "warning", "foo"),
        ("WARNING: at kernel/foo.c:12 foo+0x1/0x2()", "warning", "foo"),
        ("WARNING: at arch/powerpc/kernel/eeh.c:390", "warning", ""),
        ("BUG UNIX (Not tainted): Poison overwritten", "bug", ""),
        ("BUG kmalloc-64 (Tainted: G    B  ): Redzone overwritten", "bug", ""),
        ("BUG sas_task: Objects remaining in sas_task on __kmem_cache_shutdown()", "bug", ""),
        ("Slab corruption (Not tainted): size-64 start=1, len=64", "slub", ""),
        ("Slab corruption: size-64 start=1, len=64", "slub", ""),
        ("double fault: 0000 [1] SMP", "double-fault", ""),
        ("invalid opcode: 0000 [1] SMP", "oops", ""),
        ("Badness at drivers/char/tty_ldisc.c:738", "warning", ""),
        ("RTNL: assertion failed at drivers/net/bonding/bond_main.c (3391)", "warning", ""),
        ("sysctl table check failed: net/ath1/%parent  Sysctl already exists", "warning", ""),
        ("kasan: GPF could be caused by user memory accessgeneral protection fault: 0000 [#1] SMP", "general-protection", ""),
        ("BUG: memory leak", "kmemleak", ""),
        ("BUG: TASK stack guard page was hit at 1 (stack is 2..3)", "stack-overflow", ""),
        ("Kernel panic - not syncing: corrupted stack end detected inside scheduler", "stack-overflow", ""),
        ("Insufficient stack space to handle exception!", "stack-overflow", ""),
        ("eth0: link upNMI watchdog: BUG: soft lockup - CPU#1 stuck for 22s! [sh:1]", "soft-lockup", ""),
    ],
)
def test_first_lines_of_old_new_and_rare_kernels(line: str, kind: str, function: str) -> None:
    assert [(found.kind, found.function) for found in splat.scan([line])] == [(kind, function)]


def test_old_report_of_kasan_is_named_by_its_first_line() -> None:
    assert splat.scan(["BUG UNIX (Not tainted): kasan: bad access detected"]) == []


def test_list_corruption_that_is_a_bug() -> None:
    log = [
        "list_del corruption, ffff->next is NULL",
        "kernel BUG at lib/list_debug.c:51!",
        "invalid opcode: 0000 [#1] SMP",
        PANIC,
    ]
    assert titles(log) == [("list", tuple(log[1:]))]


def test_list_corruption_swallows_no_other_bug() -> None:
    log = ["list_del corruption, ffff->next is NULL", "text", "BUG: Bad page state in process sh  pfn:1"]
    assert titles(log) == [("list", ()), ("bug", ())]


def test_overflow_that_is_a_panic_is_fatal() -> None:
    panic = "Kernel panic - not syncing: corrupted stack end detected inside scheduler"
    (found,) = splat.scan([panic])
    assert (found.fatal, found.stopped) == (True, True)
    (found,) = splat.scan(["BUG: odd", "text", panic])
    assert (found.fatal, found.sequels) == (True, (panic,))
    scanner = splat.Scanner()
    scanner.feed(panic)
    assert scanner.fatal


@pytest.mark.parametrize("width", [8, 43])
def test_underlined_code_does_not_end_a_report(width: int) -> None:
    log = ["Unable to handle kernel paging request at virtual address 1", *["text"] * 4, "=" * width, *["text"] * 60, PANIC]
    assert titles(log) == [("page-fault", (PANIC,))]


@pytest.mark.parametrize("width", [40, 53, 66, 77, 80])
def test_line_of_equal_signs_ends_a_report(width: int) -> None:
    log = ["BUG: KASAN: use-after-free in f+0x1/0x2", *["text"] * 4, "=" * width, *["text"] * 60, PANIC]
    assert titles(log) == [("kasan", ()), ("panic", ())]


def test_report_of_another_task_ends_none() -> None:
    warning = "WARNING: CPU: 0 PID: 1 at a.c:1 f+0x1/0x2"
    log = [f"[    1.0][   T10] {warning}", "[    1.0][   T20] BUG: odd", f"[    1.0][   T10] {PANIC}"]
    assert titles(log) == [("warning", (PANIC,)), ("bug", ())]


@pytest.mark.parametrize("cut", ["\x1b", "\x1b[", "\x1b[0;3", "\x1b[0;1;31", "\x1b[31mred\x1b[0"])
def test_report_that_cuts_into_the_colours_of_a_program(cut: str) -> None:
    """systemd and boot scripts write colours to the console; the kernel prints wherever the line has got to."""
    line = f"{cut}[   12.345678][   T50] BUG: KASAN: slab-use-after-free in made_up+0x1/0x2"
    assert [one.title for one in splat.scan([line])] == ["BUG: KASAN: slab-use-after-free in made_up+0x1/0x2"]
    assert len(splat.scan_file(io.BytesIO(line.encode()))) == 1


@pytest.mark.parametrize("text", ["ftrace failed to modify", "refcount_t: underflow; use-after-free.", "ODEBUG: free active"])
def test_text_of_a_warning_has_one_warning(text: str) -> None:
    """A second WARNING right behind it would hide behind a known failure that names the text."""
    own = "WARNING: CPU: 0 PID: 7 at kernel/made_up.c:28 made_up_warning+0x1/0x2"
    other = "WARNING: CPU: 0 PID: 7 at kernel/other.c:28 other_warning+0x1/0x2"
    prefix = "[    1.000000][    T7] "
    assert [one.title for one in splat.scan(prefix + line for line in (text, own, other))] == [text, other]


@pytest.mark.parametrize("name", ["KASAN", "KFENCE", "KMSAN", "KCSAN"])
def test_each_checker_has_a_kind_of_its_own(name: str) -> None:
    (found,) = splat.scan([f"BUG: {name}: uninit-value in made_up+0x12/0x30"])
    assert found.kind == name.lower()
