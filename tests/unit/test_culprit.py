"""The function that a report is about. The logs are invented, in the forms that kernels print."""

from __future__ import annotations

import re

import pytest

from harness.logs import splat
from harness.logs.traces import lock_sites


def function(text: str) -> str:
    """The function that the only report in a text is about. Each line of the text begins with a bar."""
    lines = [line.strip()[1:] for line in text.strip().splitlines()]
    (found,) = splat.scan(lines)
    return found.function


def trace(*names: str) -> str:
    return "\n".join(["|Call Trace:", *(f"| {name}+0x1/0x2" for name in names)])


X86_OOPS = """
    |BUG: kernel NULL pointer dereference, address: 0000000000000000
    |Oops: 0000 [#1] PREEMPT SMP
    |RIP: 0010:{rip}+0x1/0x2
    |Call Trace:
    | <TASK>
    | {caller}+0x1/0x2
    | vfs_write+0x1/0x2
    | entry_SYSCALL_64_after_hwframe+0x1/0x2
    |RIP: 0033:0x7f0000000000
"""


@pytest.mark.parametrize(
    ("rip", "caller", "expected"),
    [
        ("broken", "caller", "broken"),
        ("memcpy_erms", "caller", "caller"),
        ("_raw_spin_lock_irqsave", "caller", "caller"),
        ("__list_del_entry_valid", "caller", "caller"),
        ("refcount_warn_saturate", "caller", "caller"),
        ("kobject_put", "caller", "caller"),
        ("strlen", "caller", "caller"),
        ("kasan_check_range", "caller", "caller"),
        ("queue_work_on", "caller", "caller"),
        ("mutex_lock", "pcpu_thing", "mutex_lock".replace("mutex_lock", "vfs_write")),
        ("pcie_walk", "caller", "pcie_walk"),
        ("pci_read_config", "caller", "pci_read_config"),
        ("broken.isra.0.cold", "caller", "broken"),
        ("memcpy.part.0", "caller.constprop.0", "caller"),
        ("function_graph_enter", "caller", "function_graph_enter"),
        ("ftrace_bug", "caller", "ftrace_bug"),
        ("trace_event_raw_event_sched_switch", "caller", "trace_event_raw_event_sched_switch"),
        ("kprobe_ftrace_handler", "caller", "kprobe_ftrace_handler"),
        ("return_to_handler", "caller", "return_to_handler"),
        ("prepare_ftrace_return", "caller", "prepare_ftrace_return"),
        ("run_timer_softirq", "caller", "run_timer_softirq"),
    ],
)
def test_helpers_are_passed_over_and_tracing_is_not(rip: str, caller: str, expected: str) -> None:
    assert function(X86_OOPS.format(rip=rip, caller=caller)) == expected


def test_first_is_named_if_there_are_only_helpers() -> None:
    assert function(f"|BUG: odd\n{trace('dump_stack', 'memcpy')}") == "dump_stack"


@pytest.mark.parametrize(
    "text",
    [
        "|BUG: unable to handle page fault for address: 1\n|RIP: 0010:f+0x1/0x2",
        "|BUG: unable to handle page fault for address: 1\n|RIP: 0010:[<ffffffff81000000>]  [<ffffffff81000000>] f+0x1/0x2",
        "|BUG: unable to handle kernel paging request at 1\n|IP: [<ffffffff81000000>] f+0x1/0x2",
        "|BUG: unable to handle kernel paging request at 1\n|IP: f+0x1/0x2",
        "|BUG: unable to handle kernel paging request at 1\n|EIP: f+0x1/0x2",
        "|BUG: unable to handle kernel paging request at 1\n|EIP: 0060:f+0x1/0x2",
        "|BUG: unable to handle kernel paging request at 1\n|EIP is at f+0x1/0x2",
        "|BUG: unable to handle page fault for address: 1\n|RIP: 0010:f (kernel/trace/fgraph.c:12 (discriminator 3))",
        "|BUG: unable to handle page fault for address: 1\n|RIP: 0010:f (kernel/trace/fgraph.c:12)",
        "|BUG: unable to handle page fault for address: 1\n|RIP: 0010:0x0\n|Call Trace:\n| f (kernel/trace/fgraph.c:12) module",
        "|Unable to handle kernel paging request at virtual address 1\n|pc : f+0x1/0x2\n|lr : g+0x1/0x2",
        "|Unable to handle kernel paging request at virtual address 1\n|PC is at f+0x1/0x2\n|LR is at g+0x1/0x2",
        "|Unable to handle kernel paging request at virtual address 1\n|PC is at 0x0\n|LR is at f+0x1/0x2",
        "|Unable to handle kernel paging request at virtual address 1\n|epc : f+0x1/0x2\n| ra : g+0x1/0x2",
        "|Unable to handle kernel paging request at virtual address 1\n|epc: ffffffe000000000 f+0x1/0x2",
        "|CPU 0 Unable to handle kernel paging request at virtual address 0, era == 9, ra == 9\n|era 9000000000000000 f+0x1/0x2",
        "|CPU 0 Unable to handle kernel paging request at virtual address 0\n|pc 9000000000000000 ra 9\n|era: 9 f+0x1/0x2",
        "|Unable to handle kernel pointer dereference\n|Krnl PSW : 0704c00180000000 0000000000000001 (f+0x1/0x2)",
        "|BUG: Kernel NULL pointer dereference on read at 0\n|NIP [c000000000000000] f+0x1/0x2\n|LR [c000000000000000] g+0x1/0x2",
        "|Oops: Kernel access of bad area, sig: 11 [#1]\n|NIP [c000000000000000] .f+0x1/0x2",
        "|Oops: Kernel access of bad area, sig: 11\n|Call Trace:\n|[c00000000fff3c50] [c000000000123456] .f+0x1/0x2 (unreliable)",
        "|Oops: 0000 [#1]\n|Call Trace:\n| ([<0000000000000001>] f+0x1/0x2)",
        "|Oops: 0000 [#1]\n|Call Trace:\n| <IRQ>  [<ffffffff81000000>] f+0x1/0x2",
        "|Oops: 0000 [#1]\n|Call Trace:\n| ? g+0x1/0x2\n| f+0x1/0x2 [module]",
        "|Oops: 0000 [#1]\n|Call Trace:\n| ? f+0x1/0x2",
        "|Internal error: Oops: 5 [#1] SMP ARM\n|Backtrace:\n|[<80010000>] (f) from [<80020000>] (g+0x1/0x2)",
        "|Internal error: Oops: 5 [#1] SMP ARM\n|Call trace:\n| f from g+0x1/0x2",
        "|Internal error: Oops: 5 [#1] SMP ARM\n|Backtrace: frame pointer underflow\n| f from g+0x1/0x2",
        "|WARNING: CPU: 0 PID: 1 at kernel/trace/fgraph.c:12 f+0x1/0x2",
        "|WARNING: at kernel/trace/fgraph.c:12 f+0x1/0x2()",
        "|WARNING: kernel/trace/fgraph.c:12 at f+0x1/0x2, CPU#0: sh/1",
        "|WARNING: CPU: 0 PID: 1 at kernel/trace/fgraph.c:12 f (kernel/trace/fgraph.c:12)",
        "|BUG: KASAN: slab-use-after-free in f+0x1/0x2",
        "|BUG: KASAN: slab-use-after-free in f (kernel/trace/fgraph.c:12)",
        "|BUG: KFENCE: use-after-free read in f+0x1/0x2",
        "|BUG: KMSAN: uninit-value in f+0x1/0x2",
        "|BUG: KCSAN: data-race in f / g",
        "|BUG: KCSAN: data-race in _find_next_bit / f",
        "|BUG: using smp_processor_id() in preemptible [00000000] code: sh/1\n|caller is f+0x1/0x2",
        "|BUG: workqueue leaked lock or atomic: kworker/0:1/0x00000001/1\n|     last function: f",
        "|Kernel panic - not syncing: stack-protector: Kernel stack is corrupted in: f+0x1/0x2",
    ],
)
def test_every_form(text: str) -> None:
    assert function(text) == "f"


@pytest.mark.parametrize("name", ["pci_read_config", "pcpu_alloc_area", "epcs_read", "erase_all", "nipple", "lr_sort"])
def test_function_whose_name_begins_like_a_register(name: str) -> None:
    text = ["[    1.0] BUG: odd", "[    1.0] Call Trace:", f"[    1.0]  {name}+0x1/0x2", "[    1.0]  caller+0x1/0x2"]
    (found,) = splat.scan(text)
    assert found.function == ("caller" if name == "pcpu_alloc_area" else name)


@pytest.mark.parametrize(
    ("kernel", "name"),
    [
        ("__x64_sys_openat2", "sys_openat2"),
        ("__ia32_sys_openat2", "sys_openat2"),
        ("__arm64_sys_openat2", "sys_openat2"),
        ("__s390x_sys_openat2", "sys_openat2"),
        ("__riscv_sys_openat2", "sys_openat2"),
        ("__loongarch_sys_openat2", "sys_openat2"),
        ("__se_sys_openat2", "sys_openat2"),
        ("__do_sys_openat2", "sys_openat2"),
        ("ksys_mount", "sys_mount"),
        ("SyS_mount", "sys_mount"),
        ("SYSC_mount", "sys_mount"),
        ("compat_SyS_mount", "sys_mount"),
        ("__ia32_compat_sys_mount", "sys_mount"),
        ("sys_mount", "sys_mount"),
        ("sysfs_remove_one", "sysfs_remove_one"),
        ("my_sys_thing", "my_sys_thing"),
        ("system_wide", "system_wide"),
    ],
)
def test_system_call_has_one_name_everywhere(kernel: str, name: str) -> None:
    assert function(f"|BUG: KASAN: use-after-free in {kernel}+0x1/0x2") == name


def test_access_of_kasan_is_named_and_not_who_freed_it() -> None:
    text = f"""
        |BUG: KASAN: slab-use-after-free in memcpy+0x1/0x2
        |Read of size 8 at addr ffff888100000000 by task sh/1
        {trace("dump_stack_lvl", "print_report", "kasan_report", "memcpy", "user_of_it", "vfs_read")}
        |Allocated by task 1:
        | kasan_save_stack+0x1/0x2
        | allocator+0x1/0x2
        |Freed by task 1:
        | freer+0x1/0x2
    """
    assert function(text) == "user_of_it"


def test_preemption_disabled_at_is_no_trace_of_the_report() -> None:
    text = f"""
        |BUG: scheduling while atomic: sh/1/0x00000002
        |Preemption disabled at:
        |[<ffffffff81000000>] somewhere_else+0x1/0x2
        |CPU: 0 PID: 1 Comm: sh
        {trace("dump_stack", "__schedule_bug", "__schedule", "schedule", "sleeper", "do_syscall_64")}
    """
    assert function(text) == "sleeper"


STALL = """
    |rcu: INFO: rcu_preempt self-detected stall on CPU
    |rcu: rcu_preempt kthread starved for 10492 jiffies! g1 f0x0 RCU_GP_WAIT_FQS(5) ->state=0x0 ->cpu=0
    |rcu: RCU grace-period kthread stack dump:
    |Call Trace:
    | __schedule+0x1/0x2
    | schedule+0x1/0x2
    | rcu_gp_kthread+0x1/0x2
    | kthread+0x1/0x2
    |NMI backtrace for cpu 1
    |Call Trace:
    | <IRQ>
    | dump_stack+0x1/0x2
    | rcu_dump_cpu_stacks+0x1/0x2
    | hrtimer_interrupt+0x1/0x2
    | {entry}+0x1/0x2
    | </IRQ>
    |RIP: 0010:by_chance+0x1/0x2
    | loop+0x1/0x2
    | asked_for+0x1/0x2
    | {dispatch}+0x1/0x2
    | outer+0x1/0x2
    | do_syscall_64+0x1/0x2
"""


@pytest.mark.parametrize("entry", ["asm_sysvec_apic_timer_interrupt", "apic_timer_interrupt", "el1h_64_irq", "no_known_entry"])
@pytest.mark.parametrize(
    "dispatch", ["vfs_write", "process_one_work", "call_timer_fn", "__netif_receive_skb_core", "task_work_run"]
)
def test_stall_is_named_after_what_the_cpu_was_asked_to_do(entry: str, dispatch: str) -> None:
    assert function(STALL.format(entry=entry, dispatch=dispatch)) == "asked_for"


def test_stall_in_an_interrupt_that_interrupted_another() -> None:
    """The softirq is what stalls, not the task below it."""
    text = """
        |rcu: INFO: rcu_preempt self-detected stall on CPU
        |Call Trace:
        | <IRQ>
        | dump_stack+0x1/0x2
        | smp_apic_timer_interrupt+0x1/0x2
        | apic_timer_interrupt+0x1/0x2
        |RIP: 0010:by_chance+0x1/0x2
        | of_the_timer+0x1/0x2
        | call_timer_fn+0x1/0x2
        | irq_exit+0x1/0x2
        | smp_apic_timer_interrupt+0x1/0x2
        | </IRQ>
        | of_the_task+0x1/0x2
        | do_syscall_64+0x1/0x2
    """
    assert function(text) == "of_the_timer"


def test_stall_on_arm() -> None:
    text = """
        |rcu: INFO: rcu_sched detected stalls on CPUs/tasks:
        |Backtrace:
        |[<80010000>] (unwind_backtrace) from [<80020000>] (show_stack+0x1/0x2)
        |[<80010000>] (show_stack) from [<80020000>] (gic_handle_irq+0x1/0x2)
        |[<80010000>] (gic_handle_irq) from [<80020000>] (__irq_svc+0x1/0x2)
        |Exception stack(0x96737cd8 to 0x96737d20)
        |[<80010000>] (__irq_svc) from [<80020000>] (loop+0x1/0x2)
        |[<80010000>] (loop) from [<80020000>] (ksys_mount+0x1/0x2)
        |[<80010000>] (ksys_mount) from [<80020000>] (ret_fast_syscall+0x1/0x2)
        |Exception stack(0x96737fa8 to 0x96737ff0)
        |[<80010000>] (schedule) from [<80020000>] (rcu_gp_kthread+0x1/0x2)
    """
    assert function(text) == "sys_mount"


def test_stalled_task_that_no_interrupt_shows() -> None:
    """RCU's own thread sleeps: it is not what stalls."""
    text = f"""
        |rcu: INFO: rcu_preempt detected stalls on CPUs/tasks:
        {trace("__schedule", "schedule", "rcu_gp_kthread", "kthread")}
        {trace("loop", "asked_for", "vfs_write")}
    """
    assert function(text) == "asked_for"


def test_backtraces_of_two_cpus_without_a_title() -> None:
    text = """
        |rcu: INFO: rcu_sched self-detected stall on CPU
        |Call Trace:
        | __schedule+0x1/0x2
        | rcu_gp_kthread+0x1/0x2
        | kthread+0x1/0x2
        |NMI backtrace for cpu 0
        | loop+0x1/0x2
        | asked_for+0x1/0x2
        | vfs_write+0x1/0x2
    """
    assert function(text) == "asked_for"


def test_soft_lockup_in_an_interrupt() -> None:
    frames = trace("of_the_interrupt", "asm_sysvec_apic_timer_interrupt", "of_the_task", "do_syscall_64")
    text = f"|watchdog: BUG: soft lockup - CPU#1 stuck for 26s! [sh:1]\n|RIP: 0010:by_chance+0x1/0x2\n{frames}"
    assert function(text) == "of_the_interrupt"


def test_soft_lockup_begins_with_the_registers() -> None:
    text = f"""
        |watchdog: BUG: soft lockup - CPU#1 stuck for 26s! [sh:123]
        |RIP: 0010:by_chance+0x1/0x2
        {trace("loop", "asked_for", "vfs_ioctl", "outer")}
        |Sending NMI from CPU 1 to CPUs 0:
        |NMI backtrace for cpu 0
        |RIP: 0010:another_cpu+0x1/0x2
    """
    assert function(text) == "asked_for"


@pytest.mark.parametrize("name", ["smp_call_function_many_cond", "smp_call_function_single", "on_each_cpu_cond_mask"])
def test_waits_for_other_cpus_have_one_name(name: str) -> None:
    text = f"|watchdog: BUG: soft lockup - CPU#1 stuck for 26s! [sh:1]\n|RIP: 0010:{name}+0x1/0x2"
    assert function(f"{text}\n{trace('flusher', 'do_syscall_64')}") == "smp_call_function"


@pytest.mark.parametrize("name", ["synchronize_rcu", "synchronize_rcu_expedited", "__synchronize_srcu", "synchronize_net"])
def test_waits_for_readers_have_one_name(name: str) -> None:
    frames = trace("context_switch", "__schedule", "schedule", "schedule_timeout", "wait_for_completion", name, "waiter")
    assert function(f"|INFO: task sh:1 blocked for more than 120 seconds.\n{frames}") == "synchronize_rcu"


@pytest.mark.parametrize(
    "sleep", ["mutex_lock", "wait_for_completion", "down_read", "io_schedule", "folio_wait_bit", "flush_work"]
)
def test_hung_task_is_named_after_the_waiter(sleep: str) -> None:
    frames = trace("__schedule", "schedule", "schedule_preempt_disabled", sleep, "hangs", "do_syscall_64")
    assert function(f"|INFO: task sh:1 blocked for more than 120 seconds.\n{frames}") == "hangs"


def test_stack_overflow_is_named_after_what_recursed() -> None:
    """An interrupt is at home on the stack that it overflows."""
    frames = trace("by_chance", "irq_exit", "asm_sysvec_apic_timer_interrupt", "recursion", "asked_for", "vfs_write", "outer")
    assert (
        function(f"|BUG: TASK stack guard page was hit at 1 (stack is 2..3)\n|RIP: 0010:by_chance+0x1/0x2\n{frames}")
        == "asked_for"
    )


LOCKDEP = """
    |WARNING: possible circular locking dependency detected
    |sh/1 is trying to acquire lock:
    |ffff888100000000 (&one){{+.+.}}-{{3:3}}, at: {site}+0x1/0x2
    |
    |but task is already holding lock:
    |ffff888100000001 (&two){{+.+.}}-{{3:3}}, at: holder+0x1/0x2
    |
    |-> #1 (&two){{+.+.}}-{{3:3}}:
    | lock_acquire+0x1/0x2
    | {site}+0x1/0x2
    | in_the_chain+0x1/0x2
    |stack backtrace:
    |CPU: 0 PID: 1 Comm: sh
    |Call Trace:
    | dump_stack+0x1/0x2
    | print_circular_bug+0x1/0x2
    | lock_acquire+0x1/0x2
    | _raw_spin_lock+0x1/0x2
    | {site}+0x1/0x2
    | taker+0x1/0x2
"""


@pytest.mark.parametrize(
    ("site", "expected"),
    [("taker_itself", "taker_itself"), ("down_write", "taker"), ("rtnl_lock", "rtnl_lock"), ("lock_sock_nested", "taker")],
)
def test_lockdep_is_named_after_the_taker_of_the_lock(site: str, expected: str) -> None:
    assert function(LOCKDEP.format(site=site)) == expected


def test_lock_that_is_released_wrongly() -> None:
    text = """
        |WARNING: bad unlock balance detected!
        |sh/1 is trying to release lock (a_lock) at:
        |[<ffffffff81000000>] releaser+0x1/0x2
        |but there are no more locks to release!
        |stack backtrace:
        |Call Trace:
        | dump_stack+0x1/0x2
        | another+0x1/0x2
    """
    assert function(text) == "releaser"


def test_sites_of_locks() -> None:
    assert list(lock_sites(["(a_lock) at:", "[<ffffffff81000000>] f.isra.0+0x1/0x2", "[<ffffffff81000000>] g+0x1/0x2"])) == ["f"]
    assert list(lock_sites(["a_lock, at: f+0x1/0x2", "b_lock, at: [<ffffffff81000000>] g+0x1/0x2"])) == ["f", "g"]


def test_lock_that_an_interrupt_takes_is_named_after_who_relies_on_it() -> None:
    text = """
        |WARNING: HARDIRQ-safe -> HARDIRQ-unsafe lock order detected
        |sh/1 [HC0[0]:SC0[0]:HE0:SE1] is trying to acquire:
        |ffff888100000000 (&one){.+.+}-{2:2}, at: taker+0x1/0x2
        |... which became HARDIRQ-irq-safe at:
        |  lock_acquire+0x1/0x2
        |  in_the_interrupt+0x1/0x2
        |to a HARDIRQ-irq-unsafe lock:
        |... which became HARDIRQ-irq-unsafe at:
        |...
        |  lock_acquire+0x1/0x2
        |  elsewhere+0x1/0x2
    """
    assert function(text) == "in_the_interrupt"


def test_lockdep_without_a_site() -> None:
    frames = trace("dump_stack", "register_lock_class", "__lock_acquire", "_raw_spin_lock", "user_of_it")
    assert function(f"|INFO: trying to register non-static key.\n{frames}") == "user_of_it"


def test_leak_is_named_after_who_wanted_the_memory() -> None:
    text = """
        |BUG: memory leak
        |unreferenced object 0xffff888100000000 (size 64):
        |  comm "sh", pid 1, jiffies 1
        |  hex dump (first 32 bytes):
        |  backtrace (crc 0):
        |    [<ffffffff81000000>] kmem_cache_alloc_noprof+0x1/0x2
        |    [<ffffffff81000000>] __alloc_skb+0x1/0x2
        |    [<ffffffff81000000>] kmemdup+0x1/0x2
        |    [<ffffffff81000000>] wants_it+0x1/0x2
    """
    assert function(text) == "wants_it"


def test_bad_page_is_named_after_who_had_it_last() -> None:
    text = f"""
        |BUG: Bad page state in process sh  pfn:1
        |page last allocated via order 0, migratetype Unmovable, gfp_mask 0x1, pid 1
        | get_page_from_freelist+0x1/0x2
        | page_pool_alloc_pages+0x1/0x2
        | had_it+0x1/0x2
        |page last free pid 1 tgid 1 stack trace:
        | free_unref_page+0x1/0x2
        {trace("dump_stack", "bad_page", "found_it")}
    """
    assert function(text) == "had_it"


def test_debugobjects_is_named_after_the_user_of_the_object() -> None:
    frames = trace("debug_print_object", "timer_delete", "call_rcu", "f")
    assert function(f"|ODEBUG: free active (active state 0) object type: timer_list\n{frames}") == "f"


def test_rcu_is_named_after_who_dereferenced() -> None:
    text = f"|WARNING: suspicious RCU usage\n{trace('dump_stack', 'lockdep_rcu_suspicious', 'my_rcu_dereference', 'f')}"
    assert function(text) == "f"


def test_panic_says_in_its_text_what_it_is_about() -> None:
    text = f"|Kernel panic - not syncing: Attempted to kill init! exitcode=0x00000100\n{trace('dump_stack', 'panic', 'do_exit')}"
    assert function(text) == ""


def test_caller_behind_a_call_that_does_not_return_is_not_believed() -> None:
    text = """
        |Internal error: Oops: 5 [#1] SMP ARM
        |Backtrace:
        |[<80010000>] (panic) from [<80020000>] (next_in_memory+0x0/0x2)
        |[<80010000>] (stops) from [<80020000>] (caller+0x1/0x2)
    """
    assert function(text) == "stops"


def test_decoded_code_does_not_end_a_report() -> None:
    """scripts/decode_stacktrace.sh puts the disassembly under the code, with a line of its own."""
    text = f"""
        |BUG: unable to handle page fault for address: 1
        |CPU: 0 PID: 1 Comm: sh
        |Code: 00 00
        |All code
        |========
        |   0:	00 00                	add    %al,(%rax)
        |Code starting with the faulting instruction
        |===========================================
        {trace("f")}
        |---[ end trace 0000000000000000 ]---
    """
    assert function(text) == "f"


@pytest.mark.parametrize("name", ["kmalloc_oob_right", "kasan_strings", "memcg_accounted", "list_del_test", "test_it"])
@pytest.mark.parametrize("runner", ["kunit_try_run_case", "do_one_initcall"])
def test_case_is_named_and_not_what_runs_it(name: str, runner: str) -> None:
    """Test cases are called like what they test."""
    frames = trace("dump_stack", "kasan_report", "memcpy", name, runner, "kthread")
    assert function(f"|BUG: KASAN: slab-out-of-bounds in memcpy+0x1/0x2\n{frames}") == name
    frames = trace("dump_stack", "kasan_report", name, runner, "kthread")
    assert function(f"|BUG: KASAN: slab-out-of-bounds in {name}+0x1/0x2\n{frames}") == name


def test_names_are_those_of_functions() -> None:
    """Whatever a guest prints, what is given as a function is a word."""
    for line in ("RIP: 0010:\x1b[1mf", "BUG: KASAN: x in ...", "WARNING: at a.c:1 1f+0x1", "BUG: KASAN: x in $"):
        assert all(re.fullmatch(r"[\w$]*", found.function) for found in splat.scan(["BUG: odd", line]))
