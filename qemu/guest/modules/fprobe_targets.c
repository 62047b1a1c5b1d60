// SPDX-License-Identifier: GPL-2.0-only
/* Functions that nobody but the claims calls, so that every hit of a probe on them is accounted for. */
#include <linux/module.h>

#include "fprobe_targets.h"

noinline unsigned long claim_add(unsigned long a, unsigned long b, unsigned long c, unsigned long d)
{
	return a + b + c + d;
}
EXPORT_SYMBOL_GPL(claim_add);

/* Calls itself until it is @depth calls deep, and returns as often. */
noinline unsigned long claim_deep(unsigned long depth)
{
	unsigned long (*self)(unsigned long depth) = claim_deep;
	unsigned long below;

	/* Or the compiler makes a loop of it, or an alias, after which ftrace then calls it. */
	OPTIMIZER_HIDE_VAR(self);
	below = depth > 1 ? self(depth - 1) : 0;
	OPTIMIZER_HIDE_VAR(below);
	return below + 1;
}
EXPORT_SYMBOL_GPL(claim_deep);

noinline void claim_sleep(struct completion *asleep, struct completion *wake)
{
	complete(asleep);
	wait_for_completion(wake);
}
EXPORT_SYMBOL_GPL(claim_sleep);

/* Where this very call returns to: whoever has hooked its return has put its own address there. */
noinline void *claim_return(void)
{
	return __builtin_return_address(0);
}
EXPORT_SYMBOL_GPL(claim_return);

/* cat /sys/module/fprobe_targets/parameters/returns_to */
static int returns_to(char *buffer, const struct kernel_param *param)
{
	return sysfs_emit(buffer, "%ps\n", claim_return());
}

static const struct kernel_param_ops returns_to_ops = { .get = returns_to };

module_param_cb(returns_to, &returns_to_ops, NULL, 0400);
MODULE_PARM_DESC(returns_to, "the symbol to which claim_return() returns");

MODULE_DESCRIPTION("Functions to be probed");
MODULE_LICENSE("GPL");
