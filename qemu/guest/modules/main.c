// SPDX-License-Identifier: GPL-2.0-only
/*
 * Tests that show what fprobe does, each as one value:
 *
 *	cd /sys/module/fprobe_claims/parameters; echo NAME >test && cat test
 *
 * They judge nothing: which value is right depends on the kernel, and the claims of the series say so.
 */
#include <linux/module.h>
#include <linux/mutex.h>

#include "claims.h"

static DEFINE_MUTEX(running);
static char line[256];

void claim_probe_init(struct claim_probe *probe, unsigned int words)
{
	*probe = (struct claim_probe) {
		.fp = {
			.entry_handler = claim_entry,
			.exit_handler = claim_exit,
			.entry_data_size = words * sizeof(long),
		},
	};
}

void claim_register(struct seq_buf *value, struct claim_probe *probe, const char *symbol)
{
	int ret = register_fprobe(&probe->fp, symbol, NULL);

	if (ret)
		seq_buf_printf(value, "%s cannot be probed: %d; ", symbol, ret);
}

notrace int claim_entry(struct fprobe *fp, unsigned long ip, unsigned long ret_ip, claim_regs *regs, void *data)
{
	struct claim_probe *probe = container_of(fp, struct claim_probe, fp);
	unsigned long *words = data;
	unsigned int i;

	probe->entries++;
	for (i = 0; words && i < fp->entry_data_size / sizeof(*words); i++)
		words[i] = (unsigned long)probe + i;
	return probe->entries == probe->cancel;
}

notrace void claim_exit(struct fprobe *fp, unsigned long ip, unsigned long ret_ip, claim_regs *regs, void *data)
{
	struct claim_probe *probe = container_of(fp, struct claim_probe, fp);
	unsigned long *words = data;
	unsigned int i;

	probe->exits++;
	for (i = 0; i < fp->entry_data_size / sizeof(*words); i++)
		probe->wrong += !words || words[i] != (unsigned long)probe + i;
}

static const struct claim_test *find(const struct claim_test *test, const char *name)
{
	while (test->name && !sysfs_streq(test->name, name))
		test++;
	return test->name ? test : NULL;
}

static int run(const char *name, const struct kernel_param *param)
{
	const struct claim_test *test = find(limit_tests, name) ?: find(lifetime_tests, name);
	struct seq_buf value;

	if (!test)
		return -EINVAL;

	guard(mutex)(&running);
	seq_buf_init(&value, line, sizeof(line));
	test->run(&value);
	return seq_buf_has_overflowed(&value) ? -E2BIG : 0;
}

static int show(char *buffer, const struct kernel_param *param)
{
	guard(mutex)(&running);
	return sysfs_emit(buffer, "%s\n", line);
}

static const struct kernel_param_ops test_ops = { .set = run, .get = show };

module_param_cb(test, &test_ops, NULL, 0600);
MODULE_PARM_DESC(test, "the test to run; reads as its value");

MODULE_DESCRIPTION("What fprobe does, as values");
MODULE_LICENSE("GPL");
