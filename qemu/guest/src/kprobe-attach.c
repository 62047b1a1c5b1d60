// SPDX-License-Identifier: GPL-2.0-only
/*
 * kprobe-attach entry|return COMMAND...: have a BPF program that does nothing on the functions whose names come in, one a line,
 * for as long as COMMAND runs. Then COMMAND runs once more while the kernel counts how often the program is called, which takes time
 * of its own. Prints `runs: NUMBER`.
 */
#include "bpf.h"

#define MOST 1000

static char text[64 * MOST];
static const char *names[MOST];

/* Cut what comes in at its line ends. Returns the number of names; 0 if there are none, too many, or half a one. */
static unsigned int read_names(void)
{
	unsigned int count = 0, length = 0;
	char *name = text, *end;
	long got;

	while ((got = read(0, text + length, sizeof(text) - 1 - length)) > 0)
		length += got;
	while (count < MOST && (end = strchr(name, '\n'))) {
		*end = 0;
		names[count++] = name;
		name = end + 1;
	}
	return *name ? 0 : count;
}

/* How often a program ran while statistics were enabled (BPF_ENABLE_STATS); -1 if the kernel does not answer. */
static long runs_of(long program)
{
	struct bpf_prog_info info = {};
	union bpf_attr attr = {
		.info = { .bpf_fd = program, .info_len = sizeof(info), .info = (unsigned long)&info },
	};

	return bpf(BPF_OBJ_GET_INFO_BY_FD, &attr) ? -1 : (long)info.run_cnt;
}

/* The exit status of a command; 127 if it cannot be run. */
static int run(char **command, char **environment)
{
	int status = 0, child = fork();

	if (!child) {
		execve(command[0], command, environment);
		exit(127);
	}
	if (child < 0 || waitpid(child, &status, 0) < 0)
		return 127;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

int main(int argc, char **argv, char **environment)
{
	static const struct bpf_insn nothing[] = { SET(BPF_REG_0, 0), END };
	unsigned int flags = argc > 1 && !strcmp(argv[1], "return") ? BPF_F_KPROBE_MULTI_RETURN : 0;
	unsigned int count = read_names();
	long program = load(nothing, SIZE(nothing));
	union bpf_attr enable = { .enable_stats = { .type = BPF_STATS_RUN_TIME } };
	int status;

	if (argc < 3 || !count)
		return 2;
	if (program < 0 || attach(program, flags, names, count, 0) < 0) {
		failed(program < 0 ? "program" : "kprobe.multi");
		return 1;
	}
	status = run(argv + 2, environment);
	if (status)
		return status;
	if (bpf(BPF_ENABLE_STATS, &enable) < 0) {
		failed("statistics");
		return 1;
	}
	status = run(argv + 2, environment);
	printf("runs: %ld\n", runs_of(program));
	return status;
}
