// SPDX-License-Identifier: GPL-2.0-only
/* Probes that come and go, or are refused. */
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/sched/task.h>

#include "claims.h"

static struct claim_probe one, other;

static int sleeper(void *data)
{
	struct completion *steps = data;

	claim_sleep(&steps[0], &steps[1]);
	return 0;
}

/* The probe goes while a call of its function sleeps; then another takes its memory. */
static void test_sleep(struct seq_buf *value)
{
	struct completion steps[2];
	struct task_struct *task;
	unsigned long exits;
	unsigned int i;
	int ret;

	for (i = 0; i < ARRAY_SIZE(steps); i++)
		init_completion(&steps[i]);
	claim_probe_init(&one, 15);
	ret = register_fprobe(&one.fp, "claim_sleep", NULL);
	task = ret ? ERR_PTR(ret) : kthread_run(sleeper, steps, "claim_sleep");
	if (IS_ERR(task)) {
		seq_buf_printf(value, "no sleeper: %ld", PTR_ERR(task));
		return;
	}
	/* It may end before it is waited for, and must have left the module before that can be unloaded. */
	get_task_struct(task);
	wait_for_completion(&steps[0]);
	seq_buf_printf(value, "%lu entered", one.entries);
	ret = unregister_fprobe(&one.fp);
	claim_probe_init(&one, 1);
	ret = ret ?: register_fprobe(&one.fp, "claim_sleep", NULL);
	complete(&steps[1]);
	kthread_stop(task);
	put_task_struct(task);
	exits = one.exits;
	seq_buf_printf(value, ", %lu exits reported (%d)", exits, ret);
	/* The probe is one that sees exits: otherwise it would prove nothing that it saw none. */
	complete(&steps[1]);
	claim_sleep(&steps[0], &steps[1]);
	if (one.entries != 1 || one.exits != exits + 1)
		seq_buf_printf(value, ", then %lu entered, %lu exits", one.entries, one.exits - exits);
	unregister_fprobe(&one.fp);
}

static void test_twice(struct seq_buf *value)
{
	int first, second;

	claim_probe_init(&one, 1);
	first = register_fprobe(&one.fp, "claim_add", NULL);
	second = register_fprobe(&one.fp, "claim_deep", NULL);
	claim_add(1, 2, 3, 4);
	claim_deep(1);
	seq_buf_printf(value, "%d, %d, %lu hit", first, second, one.exits);
	seq_buf_printf(value, ", %d", unregister_fprobe(&one.fp));
	seq_buf_printf(value, ", %d", unregister_fprobe(&one.fp));
}

/* The second address is none of a function. */
static void test_rollback(struct seq_buf *value)
{
	unsigned long ips[] = { (unsigned long)claim_add, (unsigned long)&one };
	int ret;

	claim_probe_init(&one, 1);
	ret = register_fprobe_ips(&one.fp, ips, ARRAY_SIZE(ips));
	claim_add(1, 2, 3, 4);
	seq_buf_printf(value, "%d, %lu hit", ret, one.exits);
	claim_probe_init(&one, 1);
	ret = register_fprobe(&one.fp, "claim_deep", NULL);
	claim_add(1, 2, 3, 4);
	claim_deep(1);
	seq_buf_printf(value, "; %d, %lu hit", ret, one.exits);
	unregister_fprobe(&one.fp);
}

/* A probe of the entry only and one of the exit, on one function; either goes first. */
static void test_order(struct seq_buf *value)
{
	unsigned int order;

	for (order = 0; order < 2; order++) {
		claim_probe_init(&one, 0);
		one.fp.exit_handler = NULL;
		claim_probe_init(&other, 1);
		claim_register(value, &one, "claim_add");
		claim_register(value, &other, "claim_add");
		claim_add(1, 2, 3, 4);
		unregister_fprobe(order ? &other.fp : &one.fp);
		claim_add(1, 2, 3, 4);
		unregister_fprobe(order ? &one.fp : &other.fp);
		claim_add(1, 2, 3, 4);
		seq_buf_printf(value, "%s%lu entries, %lu exits", order ? "; " : "", one.entries, other.exits);
	}
}

/* One of two probes cancels its second call of three. */
static void test_cancel(struct seq_buf *value)
{
	unsigned int i;

	claim_probe_init(&one, 2);
	claim_probe_init(&other, 2);
	other.cancel = 2;
	claim_register(value, &one, "claim_add");
	claim_register(value, &other, "claim_add");
	for (i = 0; i < 3; i++)
		claim_add(1, 2, 3, 4);
	unregister_fprobe(&one.fp);
	unregister_fprobe(&other.fp);
	seq_buf_printf(value, "%lu exits and %lu, %lu missed, %lu words wrong", one.exits, other.exits,
		       one.fp.nmissed + other.fp.nmissed, one.wrong + other.wrong);
}

static notrace int calling_entry(struct fprobe *fp, unsigned long ip, unsigned long ret_ip, claim_regs *regs, void *data)
{
	claim_entry(fp, ip, ret_ip, regs, data);
	claim_add(1, 2, 3, 4);
	return 0;
}

static notrace void calling_exit(struct fprobe *fp, unsigned long ip, unsigned long ret_ip, claim_regs *regs, void *data)
{
	claim_exit(fp, ip, ret_ip, regs, data);
	claim_add(1, 2, 3, 4);
}

/* Handlers that call the function that they probe: each of these calls is either one's own or missed. */
static void test_recursion(struct seq_buf *value)
{
	unsigned long calls;

	claim_probe_init(&one, 1);
	one.fp.entry_handler = calling_entry;
	one.fp.exit_handler = calling_exit;
	claim_register(value, &one, "claim_add");
	claim_add(1, 2, 3, 4);
	unregister_fprobe(&one.fp);
	calls = 1 + one.entries + one.exits;
	seq_buf_printf(value, "%ld lost, %s missed, %lu words wrong", (long)(calls - one.entries - one.fp.nmissed),
		       one.fp.nmissed ? "some" : "none", one.wrong);
	/* Without an exit, a single missed call would make the sum right. */
	if (!one.exits || one.entries != one.exits)
		seq_buf_printf(value, ", %lu entries, %lu exits", one.entries, one.exits);
}

const struct claim_test lifetime_tests[] = {
	{ "sleep", test_sleep },
	{ "twice", test_twice },
	{ "rollback", test_rollback },
	{ "order", test_order },
	{ "cancel", test_cancel },
	{ "recursion", test_recursion },
	{}
};
