// SPDX-License-Identifier: GPL-2.0-only
/*
 * chrt -f PRIORITY COMMAND...: run a command with the SCHED_FIFO policy.
 *
 * Debian's static busybox has no chrt, and the wakeup tracer's tests need one.
 */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	struct sched_param param = { 0 };

	if (argc < 4 || strcmp(argv[1], "-f")) {
		fprintf(stderr, "usage: chrt -f PRIORITY COMMAND...\n");
		return 2;
	}
	param.sched_priority = atoi(argv[2]);
	if (sched_setscheduler(0, SCHED_FIFO, &param)) {
		perror("sched_setscheduler");
		return 1;
	}
	execvp(argv[3], argv + 3);
	perror(argv[3]);
	return 127;
}
