"""Titles of reports that no list of expected reports may cover. A glob that matches one of them is too general: it would also
cover reports that were never examined."""

from __future__ import annotations

import fnmatch

REPORTS = (
    "kernel BUG at kernel/other/file.c:300!",
    "kernel BUG at kernel/other/file.c:300! in other_function",
    "BUG: kernel NULL pointer dereference, address: 0000000000000010",
    "BUG: kernel NULL pointer dereference, address: 0000000000000010 in other_function",
    "BUG: unable to handle page fault for address: ffffc90000a3f000 in other_function",
    "BUG: Unable to handle kernel data access at 0xc0000000deadbeef in other_function",
    "BUG: KASAN: slab-use-after-free in other_function+0x1c/0x2a0",
    "BUG: KFENCE: use-after-free read in other_function+0x1c/0x2a0",
    "BUG: sleeping function called from invalid context at kernel/other/file.c:77",
    "BUG: scheduling while atomic: init/1/0x00000002",
    "UBSAN: array-index-out-of-bounds in kernel/other/file.c:300:7",
    "Unable to handle kernel paging request at virtual address ffff800081234567 in other_function",
    "Unable to handle kernel NULL pointer dereference at virtual address 0000000000000010 in other_function",
    "CPU 1 Unable to handle kernel paging request at virtual address 0000000000000010, era == 9000000000223344 in other_function",
    "Unable to handle kernel pointer dereference in virtual kernel address space in other_function",
    "Internal error: Oops: 0000000096000004 [#1] PREEMPT SMP in other_function",
    "Oops: 0002 [#1] PREEMPT SMP NOPTI in other_function",
    "Oops: general protection fault, probably for non-canonical address 0xdead000000000100: 0000 [#1] SMP in other_function",
    "Oops: Kernel access of bad area, sig: 11 [#1] in other_function",
    "Oops: Exception in kernel mode, sig: 5 [#1] in other_function",
    "Oops - BUG [#1] in other_function",
    "Oops[#1]: in other_function",
    "Kernel BUG [#1] in other_function",
    "illegal operation: 0001 ilc:1 [#1] PREEMPT SMP in other_function",
    "stack-protector: Kernel stack is corrupted in: other_function+0x1c/0x2a0",
    "Kernel panic - not syncing: stack-protector: Kernel stack is corrupted in: other_function+0x1c/0x2a0",
    "Kernel panic - not syncing: corrupted stack end detected inside scheduler",
    "WARNING: CPU: 0 PID: 77 at kernel/other/file.c:300 other_function+0x1c/0x2a0",
    "WARNING: kernel/other/file.c:300 at other_function+0x1c/0x2a0, CPU#0: init/1",
    "WARNING: possible circular locking dependency detected",
    "WARNING: suspicious RCU usage",
    "watchdog: BUG: soft lockup - CPU#1 stuck for 26s! [other:77]",
    "rcu: INFO: rcu_preempt detected stalls on CPUs/tasks:",
    "INFO: task other:77 blocked for more than 120 seconds.",
    "refcount_t: underflow; use-after-free.",
    "list_del corruption. prev->next should be ffff888003b1d010, but was 0000000000000000.",
    "WARNING: CPU: 0 PID: 77 at kernel/trace/other.c:300 other_function+0x1c/0x2a0",
)


def matched(glob: str) -> str:
    """The first of these titles that `glob` matches; empty if it matches none."""
    return next((title for title in REPORTS if fnmatch.fnmatchcase(title, glob)), "")
