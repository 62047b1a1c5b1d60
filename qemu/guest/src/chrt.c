// SPDX-License-Identifier: GPL-2.0-only
/*
 * chrt -f PRIORITY COMMAND...: run a command with the SCHED_FIFO policy.
 *
 * Debian's static busybox has no chrt, and the wakeup tracer's tests need one. Built against the kernel's own nolibc.
 */
#include <linux/sched.h>

int main(int argc, char **argv, char **envp)
{
	struct { int priority; } param = { 0 };
	char path[256];

	if (argc < 4 || strcmp(argv[1], "-f")) {
		fprintf(stderr, "usage: chrt -f PRIORITY COMMAND...\n");
		return 2;
	}
	param.priority = atoi(argv[2]);
	if (syscall(__NR_sched_setscheduler, 0, SCHED_FIFO, &param)) {
		perror("sched_setscheduler");
		return 1;
	}
	/* All of the guest's commands are in /bin. */
	strlcpy(path, strchr(argv[3], '/') ? "" : "/bin/", sizeof(path));
	strlcat(path, argv[3], sizeof(path));
	execve(path, argv + 3, envp);
	perror(argv[3]);
	return 127;
}
