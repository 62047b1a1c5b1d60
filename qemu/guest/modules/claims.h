/* SPDX-License-Identifier: GPL-2.0-only */
/* What the tests of fprobe_claims.ko share. */
#ifndef CLAIMS_H
#define CLAIMS_H

#include <linux/fprobe.h>
#include <linux/seq_buf.h>

#include "fprobe_targets.h"

#ifdef HANDLERS_TAKE_FTRACE_REGS
typedef struct ftrace_regs claim_regs;
#define HANDLERS_TAKE			"ftrace_regs"
#define claim_argument(regs, n)		ftrace_regs_get_argument(regs, n)
#define claim_return_value(regs)	ftrace_regs_get_return_value(regs)
#else
typedef struct pt_regs claim_regs;
#define HANDLERS_TAKE			"pt_regs"
#define claim_argument(regs, n)		regs_get_kernel_argument(regs, n)
#define claim_return_value(regs)	regs_return_value(regs)
#endif

#ifdef CONFIG_S390
/* Both of the above end in regs_get_register() there, which 6.12 does not export to modules. */
#undef claim_argument
#ifdef HANDLERS_TAKE_FTRACE_REGS
#define claim_argument(fregs, n)	(arch_ftrace_regs(fregs)->regs.gprs[2 + (n)])
#else
#define claim_argument(regs, n)		((regs)->gprs[2 + (n)])
#endif
#endif

/**
 * struct claim_test - what `echo NAME > /sys/module/fprobe_claims/parameters/test` runs
 * @run: writes its value, one line
 */
struct claim_test {
	const char *name;
	void (*run)(struct seq_buf *value);
};

extern const struct claim_test limit_tests[], lifetime_tests[];

/**
 * struct claim_probe - a probe that counts, and that knows whether its entry data is its own
 * @words: of entry data, in longs
 * @entries: calls of its entry handler
 * @exits: calls of its exit handler
 * @wrong: words of entry data that somebody else has written to
 * @cancel: the number of the entry that is not to exit
 */
struct claim_probe {
	struct fprobe	fp;
	unsigned long	entries;
	unsigned long	exits;
	unsigned long	wrong;
	unsigned long	cancel;
};

void claim_probe_init(struct claim_probe *probe, unsigned int words);
/* A registration that must not fail: if it does, the value says so. */
void claim_register(struct seq_buf *value, struct claim_probe *probe, const char *symbol);
int claim_entry(struct fprobe *fp, unsigned long ip, unsigned long ret_ip, claim_regs *regs, void *data);
void claim_exit(struct fprobe *fp, unsigned long ip, unsigned long ret_ip, claim_regs *regs, void *data);

#endif
