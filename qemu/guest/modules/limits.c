// SPDX-License-Identifier: GPL-2.0-only
/* What handlers are given, and what happens where space ends. */
#include <linux/kprobes.h>
#include <linux/module.h>

#include "claims.h"

static struct claim_probe probes[3], wide[2];

static unsigned long arguments[4], returned;

static notrace int see_arguments(struct fprobe *fp, unsigned long ip, unsigned long ret_ip, claim_regs *regs, void *data)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(arguments); i++)
		arguments[i] = claim_argument(regs, i);
	return 0;
}

static notrace void see_return(struct fprobe *fp, unsigned long ip, unsigned long ret_ip, claim_regs *regs, void *data)
{
	returned = claim_return_value(regs);
}

static void test_registers(struct seq_buf *value)
{
	static struct fprobe fp = { .entry_handler = see_arguments, .exit_handler = see_return };
	int ret;

	/* What an earlier run has left must not pass for a hit. */
	memset(arguments, 0, sizeof(arguments));
	returned = 0;
	ret = register_fprobe(&fp, "claim_add", NULL);
	if (ret) {
		seq_buf_printf(value, "%d", ret);
		return;
	}
	claim_add(11, 22, 33, 44);
	unregister_fprobe(&fp);
	seq_buf_printf(value, HANDLERS_TAKE ": %lu %lu %lu %lu -> %lu",
		       arguments[0], arguments[1], arguments[2], arguments[3], returned);
}

static unsigned long pools;

static int count_pool(struct kprobe *kp, struct pt_regs *regs)
{
	pools++;
	return 0;
}

static int ignore_return(struct kretprobe_instance *instance, struct pt_regs *regs)
{
	return 0;
}

/* A kprobe at the entry of a traced function needs CONFIG_KPROBES_ON_FTRACE, which riscv does not have. */
static noinline __noclone notrace unsigned long claim_untraced(unsigned long value)
{
	barrier();
	return value;
}

/*
 * The kprobe that counts proves itself on a kretprobe, which has a pool of its own where CONFIG_KRETPROBE_ON_RETHOOK is set. Without
 * that, a count of 0 would also be what a kprobe that never fires has counted.
 */
static bool pools_are_counted(void)
{
	static struct kretprobe control;

	control = (struct kretprobe) { .kp.symbol_name = "claim_untraced", .handler = ignore_return, .maxactive = 1 };
	pools = 0;
	if (!IS_ENABLED(CONFIG_KRETPROBE_ON_RETHOOK) || register_kretprobe(&control))
		return false;
	claim_untraced(1);
	unregister_kretprobe(&control);
	return pools > 0;
}

/* The tracefs refuses kprobes on functions that ftrace cannot trace, such as this one. */
static void test_rethooks(struct seq_buf *value)
{
	static struct kprobe alloc;
	bool counted;
	int ret;

	alloc = (struct kprobe) { .symbol_name = "rethook_alloc", .pre_handler = count_pool };
	ret = register_kprobe(&alloc);
	counted = !ret && pools_are_counted();
	pools = 0;
	claim_probe_init(&probes[0], 0);
	claim_register(value, &probes[0], "claim_add");
	claim_add(1, 2, 3, 4);
	unregister_fprobe(&probes[0].fp);
	if (!ret)
		unregister_kprobe(&alloc);
	/* What is not there was not called. */
	if (ret && ret != -ENOENT)
		seq_buf_printf(value, "no kprobe: %d", ret);
	else if (!ret && !counted && !pools)
		seq_buf_puts(value, "the kprobe on rethook_alloc does not fire");
	else if (probes[0].exits != 1)
		seq_buf_printf(value, "%lu exits of 1", probes[0].exits);
	else
		seq_buf_printf(value, "%lu rethook_alloc", pools);
}

static int register_words(unsigned int words)
{
	int ret;

	claim_probe_init(&probes[0], words);
	ret = register_fprobe(&probes[0].fp, "claim_add", NULL);
	if (ret)
		return ret;
	claim_add(1, 2, 3, 4);
	unregister_fprobe(&probes[0].fp);
	/* One that was accepted and has no use of its words was not really accepted. */
	return probes[0].exits == 1 && !probes[0].wrong ? 0 : 1;
}

static void test_data_limit(struct seq_buf *value)
{
	seq_buf_printf(value, "15 words: %d", register_words(15));
	seq_buf_printf(value, ", 16 words: %d", register_words(16));
}

/* Each probe wants nearly half of what a call has on a shadow stack. */
static void test_shared_space(struct seq_buf *value)
{
	unsigned long hit = 0, missed = 0, wrong = 0;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(probes); i++) {
		claim_probe_init(&probes[i], 15);
		claim_register(value, &probes[i], "claim_add");
	}
	claim_add(1, 2, 3, 4);
	for (i = 0; i < ARRAY_SIZE(probes); i++) {
		hit += probes[i].exits;
		missed += probes[i].fp.nmissed;
		wrong += probes[i].wrong;
		unregister_fprobe(&probes[i].fp);
	}
	seq_buf_printf(value, "%lu hit, %lu missed, %lu words wrong", hit, missed, wrong);
}

/*
 * More calls at once than anything has room for: a shadow stack is a page, and two probes with 15 words each take 34 words
 * and more of it. The kernel's own stack has room for no more than that where pages are large.
 */
static void test_deep(struct seq_buf *value)
{
	const unsigned long depth = PAGE_SIZE / sizeof(long) / 34 + 8;
	unsigned long missed = 0, wrong = 0;
	unsigned long lost = 0;
	unsigned int i, idle = 0;

	for (i = 0; i < 2; i++) {
		claim_probe_init(&probes[i], 15);
		claim_register(value, &probes[i], "claim_deep");
	}
	if (claim_deep(depth) != depth)
		wrong++;
	for (i = 0; i < 2; i++) {
		missed += probes[i].fp.nmissed;
		wrong += probes[i].wrong + (probes[i].entries != probes[i].exits);
		/* One that counts too many must not make up for one that counts too few. */
		lost += abs_diff(depth, probes[i].exits + probes[i].fp.nmissed);
		idle += !probes[i].exits;
		unregister_fprobe(&probes[i].fp);
	}
	seq_buf_printf(value, "%lu lost, %s missed, %lu wrong", lost, missed ? "some" : "none", wrong);
	if (idle)
		seq_buf_printf(value, ", %u probes without an exit", idle);
}

/*
 * A probe on some thousand functions, to be weighed by user space. It is there, but its handlers are not called. The value is the
 * result of the registration: a refused probe weighs nothing.
 */
static void test_wide(struct seq_buf *value, unsigned int i)
{
	claim_probe_init(&wide[i], 15);
	wide[i].fp.flags = FPROBE_FL_DISABLED;
	seq_buf_printf(value, "%d", register_fprobe(&wide[i].fp, "t*", NULL));
}

static void test_wide1(struct seq_buf *value)
{
	test_wide(value, 0);
}

static void test_wide2(struct seq_buf *value)
{
	test_wide(value, 1);
}

static void test_narrow(struct seq_buf *value)
{
	seq_buf_printf(value, "%d", unregister_fprobe(&wide[0].fp));
	seq_buf_printf(value, ", %d", unregister_fprobe(&wide[1].fp));
}

const struct claim_test limit_tests[] = {
	{ "registers", test_registers },
	{ "rethooks", test_rethooks },
	{ "data_limit", test_data_limit },
	{ "shared_space", test_shared_space },
	{ "deep", test_deep },
	{ "wide1", test_wide1 },
	{ "wide2", test_wide2 },
	{ "narrow", test_narrow },
	{}
};
