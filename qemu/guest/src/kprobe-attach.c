// SPDX-License-Identifier: GPL-2.0-only
/*
 * kprobe-attach entry|return COMMAND...: have a BPF program that does nothing on the functions whose names come in, one a line,
 * for as long as COMMAND runs.
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

int main(int argc, char **argv, char **environment)
{
	static const struct bpf_insn nothing[] = { SET(BPF_REG_0, 0), END };
	unsigned int flags = argc > 1 && !strcmp(argv[1], "return") ? BPF_F_KPROBE_MULTI_RETURN : 0;
	unsigned int count = read_names();
	long program = load(nothing, SIZE(nothing));
	int status = 0, child;

	if (argc < 3 || !count)
		return 2;
	if (program < 0 || attach(program, flags, names, count, 0) < 0) {
		failed(program < 0 ? "program" : "kprobe.multi");
		return 1;
	}
	child = fork();
	if (!child) {
		execve(argv[2], argv + 2, environment);
		exit(127);
	}
	if (child < 0 || waitpid(child, &status, 0) < 0) {
		failed(argv[2]);
		return 1;
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
