// SPDX-License-Identifier: GPL-2.0-only
/*
 * What a call of a probed function takes:
 *
 *	cd /sys/module/fprobe_bench/parameters; echo NAME >test && cat test
 *
 * in nanoseconds, which are instructions if QEMU counts those (-icount shift=0).
 */
#include <linux/ktime.h>
#include <linux/math64.h>
#include <linux/module.h>
#include <linux/mutex.h>

#include "claims.h"

#define CALLS		20000
#define MOST_PROBES	8

struct bench_test {
	const char	*name;
	unsigned int	probes;
	bool		entry, exit;
	unsigned int	words;
};

/* `call` is for what user space has set up. */
static const struct bench_test tests[] = {
	{ "call", 0 },
	{ "entry", 1, true, false },
	{ "exit", 1, false, true },
	{ "both", 1, true, true },
	{ "data", 1, true, true, 15 },
	{ "8entry", 8, true, false },
	{ "8both", 8, true, true },
};

static DEFINE_MUTEX(running);
static struct fprobe probes[MOST_PROBES];
static unsigned long hits;
static char line[64];

int bench_target(int x);

noinline int bench_target(int x)
{
	OPTIMIZER_HIDE_VAR(x);
	return x;
}

/* By a pointer that the compiler cannot see through, or a call of a function that does nothing would be none. */
static int (*volatile target)(int) = bench_target;

static notrace int count_entry(struct fprobe *fp, unsigned long ip, unsigned long ret_ip, claim_regs *regs, void *data)
{
	hits++;
	return 0;
}

static notrace void count_exit(struct fprobe *fp, unsigned long ip, unsigned long ret_ip, claim_regs *regs, void *data)
{
	hits++;
}

static u64 nanoseconds(unsigned int calls)
{
	unsigned long flags;
	unsigned int i;
	u64 start, end;

	local_irq_save(flags);
	start = ktime_get_ns();
	for (i = 0; i < calls; i++)
		target(i);
	end = ktime_get_ns();
	local_irq_restore(flags);
	return end - start;
}

/*
 * In hundredths. Twice, because a figure that does not come again is none. Before that as often again, to have all there that is
 * lazy, and a trace buffer full that overwrites itself from then on.
 */
static int measure(const struct bench_test *test)
{
	unsigned long expected = (unsigned long)test->probes * (test->entry + test->exit) * CALLS;
	u64 first, second;

	nanoseconds(2 * CALLS);
	first = nanoseconds(CALLS);
	hits = 0;
	second = nanoseconds(CALLS);
	if (hits != expected) {
		snprintf(line, sizeof(line), "%lu hits of %lu", hits, expected);
		return -EIO;
	}
	if (abs_diff(first, second) * 1000 > second) {
		snprintf(line, sizeof(line), "%llu, and then %llu", first, second);
		return -EAGAIN;
	}
	second = div_u64(second * 100, CALLS);
	snprintf(line, sizeof(line), "%llu.%02llu", second / 100, second % 100);
	return 0;
}

static int run(const char *name, const struct kernel_param *param)
{
	const struct bench_test *test;
	unsigned int i;
	int ret = 0;

	for (test = tests; test < tests + ARRAY_SIZE(tests) && !sysfs_streq(test->name, name); test++)
		;
	if (test == tests + ARRAY_SIZE(tests))
		return -EINVAL;

	guard(mutex)(&running);
	for (i = 0; i < test->probes && !ret; i++) {
		probes[i] = (struct fprobe) {
			.entry_handler = test->entry ? count_entry : NULL,
			.exit_handler = test->exit ? count_exit : NULL,
			.entry_data_size = test->words * sizeof(long),
		};
		ret = register_fprobe(&probes[i], "bench_target", NULL);
	}
	if (ret)
		i--;
	else
		ret = measure(test);
	while (i--)
		unregister_fprobe(&probes[i]);
	return ret;
}

static int show(char *buffer, const struct kernel_param *param)
{
	guard(mutex)(&running);
	return sysfs_emit(buffer, "%s\n", line);
}

static const struct kernel_param_ops test_ops = { .set = run, .get = show };

module_param_cb(test, &test_ops, NULL, 0600);
MODULE_PARM_DESC(test, "what to measure; reads as nanoseconds per call, or as what went wrong");

MODULE_DESCRIPTION("What a call of a probed function takes");
MODULE_LICENSE("GPL");
