// SPDX-License-Identifier: GPL-2.0-only
/*
 * kprobe-multi: attach BPF programs to the entry and the return of several functions at once, by name, with raw bpf(2)
 * calls, then read and write with counts that nobody else has, and say what the programs saw.
 *
 * One line: `vfs_read(4321) = 4321, ...`, or why it cannot be.
 */
#include <asm/ptrace.h>

#include "bpf.h"

/* Where the context of a program has a function's third argument and its return value. */
#if defined(__x86_64__)
#define THIRD		__builtin_offsetof(struct pt_regs, rdx)
#define RETURNED	__builtin_offsetof(struct pt_regs, rax)
#elif defined(__i386__)
#define THIRD		__builtin_offsetof(struct pt_regs, ecx)
#define RETURNED	__builtin_offsetof(struct pt_regs, eax)
#elif defined(__aarch64__)
#define THIRD		__builtin_offsetof(struct user_pt_regs, regs[2])
#define RETURNED	__builtin_offsetof(struct user_pt_regs, regs[0])
#elif defined(__arm__)
#define THIRD		__builtin_offsetof(struct pt_regs, uregs[2])
#define RETURNED	__builtin_offsetof(struct pt_regs, uregs[0])
#elif defined(__riscv)
#define THIRD		__builtin_offsetof(struct user_regs_struct, a2)
#define RETURNED	__builtin_offsetof(struct user_regs_struct, a0)
#elif defined(__s390x__)
#define THIRD		__builtin_offsetof(user_pt_regs, gprs[4])
#define RETURNED	__builtin_offsetof(user_pt_regs, gprs[2])
#elif defined(__loongarch__)
#define THIRD		__builtin_offsetof(struct user_pt_regs, regs[6])
#define RETURNED	__builtin_offsetof(struct user_pt_regs, regs[4])
#elif defined(__powerpc__)
#define THIRD		__builtin_offsetof(struct pt_regs, gpr[5])
#define RETURNED	__builtin_offsetof(struct pt_regs, gpr[3])
#endif

/* An element of the map for each function. */
struct seen {
	unsigned long long third, entries, returned, returns;
};

static const char *const names[] = { "vfs_read", "vfs_write" };

/* An index for each. */
static const unsigned long long cookies[SIZE(names)] = { 0, 1 };

/* A program that puts the word at @offset of its context into member @value of the map's element, and counts behind it. */
static long load_store(int map, int offset, int value)
{
	struct bpf_insn program[] = {
		MOVE(BPF_REG_6, BPF_REG_1),
		CALL(BPF_FUNC_get_current_pid_tgid),
		SHIFT_RIGHT(BPF_REG_0, 32),
		SKIP_IF(BPF_REG_0, BPF_JNE, getpid(), 14),
		MOVE(BPF_REG_1, BPF_REG_6),
		CALL(BPF_FUNC_get_attach_cookie),
		STORE_32(BPF_REG_10, -4, BPF_REG_0),
		INSN(BPF_LD | BPF_DW | BPF_IMM, BPF_REG_1, BPF_PSEUDO_MAP_FD, 0, map),
		INSN(0, 0, 0, 0, 0),
		MOVE(BPF_REG_2, BPF_REG_10),
		ADD(BPF_REG_2, -4),
		CALL(BPF_FUNC_map_lookup_elem),
		SKIP_IF(BPF_REG_0, BPF_JEQ, 0, 5),
		LOAD_WORD(BPF_REG_1, BPF_REG_6, offset),
		STORE(BPF_REG_0, value, BPF_REG_1),
		LOAD(BPF_REG_1, BPF_REG_0, value + 8),
		ADD(BPF_REG_1, 1),
		STORE(BPF_REG_0, value + 8, BPF_REG_1),
		SET(BPF_REG_0, 0),
		END,
	};

	return load(program, SIZE(program));
}

int main(void)
{
	static char buffer[8192];
	union bpf_attr create = {
		.map_type = BPF_MAP_TYPE_ARRAY,
		.key_size = sizeof(unsigned int),
		.value_size = sizeof(struct seen),
		.max_entries = SIZE(names),
	};
	long map = bpf(BPF_MAP_CREATE, &create), entry, exit, links[2];
	int zero = open("/dev/zero", O_RDONLY), null = open("/dev/null", O_WRONLY);
	unsigned int i;

	if (map < 0 || zero < 0 || null < 0)
		return failed("map");
	entry = load_store(map, THIRD, __builtin_offsetof(struct seen, third));
	exit = load_store(map, RETURNED, __builtin_offsetof(struct seen, returned));
	if (entry < 0 || exit < 0)
		return failed("program");
	links[0] = attach(entry, 0, names, SIZE(names), cookies);
	if (links[0] < 0)
		return failed("kprobe.multi");
	links[1] = attach(exit, BPF_F_KPROBE_MULTI_RETURN, names, SIZE(names), cookies);
	if (links[1] < 0)
		return failed("kretprobe.multi");

	read(zero, buffer, 4321);
	write(null, buffer, 1234);
	close(links[0]);
	close(links[1]);

	for (i = 0; i < SIZE(names); i++) {
		struct seen seen = {};
		union bpf_attr lookup = { .map_fd = map, .key = (unsigned long)&i, .value = (unsigned long)&seen };

		if (bpf(BPF_MAP_LOOKUP_ELEM, &lookup))
			return failed("lookup");
		printf("%s%lu * %s(%lu), %lu * = %lu", i ? "; " : "", (unsigned long)seen.entries, names[i],
		       (unsigned long)seen.third, (unsigned long)seen.returns, (unsigned long)seen.returned);
	}
	printf("\n");
	return 0;
}
