/* SPDX-License-Identifier: GPL-2.0-only */
/* Functions to be probed: fprobe_targets.ko. */
#ifndef FPROBE_TARGETS_H
#define FPROBE_TARGETS_H

#include <linux/completion.h>

unsigned long claim_add(unsigned long a, unsigned long b, unsigned long c, unsigned long d);
unsigned long claim_deep(unsigned long depth);
void claim_sleep(struct completion *asleep, struct completion *wake);
void *claim_return(void);

#endif
