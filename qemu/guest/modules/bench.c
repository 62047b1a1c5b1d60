// SPDX-License-Identifier: GPL-2.0-only
/*
 * What a call of a probed function takes:
 *
 *	cd /sys/module/fprobe_bench/parameters; echo NAME >test && cat test
 *
 * in nanoseconds, which are instructions if QEMU counts those (-icount shift=0). `called` reads as the number of calls that the last
 * test has made: what user space has set up must have been hit as often. A pattern written to `hold` puts a probe on the functions
 * that match it, until there is an empty one.
 */
#include <linux/ktime.h>
#include <linux/math64.h>
#include <linux/module.h>
#include <linux/mutex.h>

#include "claims.h"

#define CALLS		20000
#define MOST_PROBES	8
#define CALLED		100

struct bench_test {
	const char	*name;
	unsigned int	probes;
	bool		entry, exit;
	unsigned int	words;
	bool		many, untimed;
};

/* `call` and `many` are for what user space has set up, `untimed` is `many` while something else counts. */
static const struct bench_test tests[] = {
	{ "call", 0 },
	{ "many", .many = true },
	{ "untimed", .many = true, .untimed = true },
	{ "entry", 1, true, false },
	{ "exit", 1, false, true },
	{ "both", 1, true, true },
	{ "data", 1, true, true, 15 },
	{ "8entry", 8, true, false },
	{ "8both", 8, true, true },
};

static DEFINE_MUTEX(running);
static struct fprobe probes[MOST_PROBES];
static unsigned long hits, called;
static char line[64];

int bench_target(int x);

noinline int bench_target(int x)
{
	OPTIMIZER_HIDE_VAR(x);
	return x;
}

/* By a pointer that the compiler cannot see through, or a call of a function that does nothing would be none. */
static int (*volatile target)(int) = bench_target;

/* bench_many_000 to bench_many_999, each another one, or the compiler would make one of them. */
#define TEN(each, n)		each(n##0) each(n##1) each(n##2) each(n##3) each(n##4) \
				each(n##5) each(n##6) each(n##7) each(n##8) each(n##9)
#define HUNDRED(each, n)	TEN(each, n##0) TEN(each, n##1) TEN(each, n##2) TEN(each, n##3) TEN(each, n##4) \
				TEN(each, n##5) TEN(each, n##6) TEN(each, n##7) TEN(each, n##8) TEN(each, n##9)
#define THOUSAND(each)		HUNDRED(each, 0) HUNDRED(each, 1) HUNDRED(each, 2) HUNDRED(each, 3) HUNDRED(each, 4) \
				HUNDRED(each, 5) HUNDRED(each, 6) HUNDRED(each, 7) HUNDRED(each, 8) HUNDRED(each, 9)
#define FUNCTION(n)		static noinline int bench_many_##n(int x) { OPTIMIZER_HIDE_VAR(x); return x ^ 0x1##n; }
#define ADDRESS(n)		bench_many_##n,

THOUSAND(FUNCTION)

static int (*volatile many[])(int) = { THOUSAND(ADDRESS) };

static notrace int count_entry(struct fprobe *fp, unsigned long ip, unsigned long ret_ip, claim_regs *regs, void *data)
{
	hits++;
	return 0;
}

static notrace void count_exit(struct fprobe *fp, unsigned long ip, unsigned long ret_ip, claim_regs *regs, void *data)
{
	hits++;
}

static u64 nanoseconds(const struct bench_test *test, unsigned int calls)
{
	unsigned long flags;
	unsigned int i, j;
	u64 start, end;

	local_irq_save(flags);
	start = ktime_get_ns();
	if (test->many) {
		for (i = 0; i < calls; i += CALLED)
			for (j = 0; j < CALLED; j++)
				many[j](i);
	} else {
		for (i = 0; i < calls; i++)
			target(i);
	}
	end = ktime_get_ns();
	local_irq_restore(flags);
	called += calls;
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

	called = 0;
	line[0] = 0;
	nanoseconds(test, 2 * CALLS);
	if (test->untimed)
		return 0;
	first = nanoseconds(test, CALLS);
	hits = 0;
	second = nanoseconds(test, CALLS);
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
	snprintf(line, sizeof(line), "a probe was refused");
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

module_param(called, ulong, 0400);
MODULE_PARM_DESC(called, "calls that the last test has made");

static struct fprobe held;
static bool holding;

static int hold(const char *pattern, const struct kernel_param *param)
{
	char name[32];
	int ret;

	guard(mutex)(&running);
	if (*pattern == '\n') {
		ret = holding ? unregister_fprobe(&held) : 0;
		holding = false;
		return ret;
	}
	if (holding)
		return -EBUSY;
	if (strscpy(name, pattern) < 0)
		return -EINVAL;
	held = (struct fprobe){ .entry_handler = count_entry, .exit_handler = count_exit };
	ret = register_fprobe(&held, strim(name), NULL);
	holding = !ret;
	return ret;
}

static const struct kernel_param_ops hold_ops = { .set = hold };

module_param_cb(hold, &hold_ops, NULL, 0200);
MODULE_PARM_DESC(hold, "the functions to hold a probe on; none to let go");

static void __exit let_go(void)
{
	if (holding)
		unregister_fprobe(&held);
}

module_exit(let_go);

MODULE_DESCRIPTION("What a call of a probed function takes");
MODULE_LICENSE("GPL");
