/* SPDX-License-Identifier: GPL-2.0-only */
/* BPF programs by hand, and raw bpf(2) calls that attach them to functions by name (kprobe.multi). */
#include <linux/bpf.h>

#define SIZE(array) (sizeof(array) / sizeof(*(array)))

#define INSN(op, to, from, offset, value) \
	((struct bpf_insn){ .code = op, .dst_reg = to, .src_reg = from, .off = offset, .imm = value })
#define MOVE(to, from)		INSN(BPF_ALU64 | BPF_MOV | BPF_X, to, from, 0, 0)
#define SET(to, value)		INSN(BPF_ALU64 | BPF_MOV | BPF_K, to, 0, 0, value)
#define ADD(to, value)		INSN(BPF_ALU64 | BPF_ADD | BPF_K, to, 0, 0, value)
#define SHIFT_RIGHT(to, value)	INSN(BPF_ALU64 | BPF_RSH | BPF_K, to, 0, 0, value)
#define WORD			(sizeof(long) == 8 ? BPF_DW : BPF_W)
#define LOAD_WORD(to, from, offset) INSN(BPF_LDX | WORD | BPF_MEM, to, from, offset, 0)
#define LOAD(to, from, offset)	INSN(BPF_LDX | BPF_DW | BPF_MEM, to, from, offset, 0)
#define STORE(to, offset, from)	INSN(BPF_STX | BPF_DW | BPF_MEM, to, from, offset, 0)
#define STORE_32(to, offset, from) INSN(BPF_STX | BPF_W | BPF_MEM, to, from, offset, 0)
#define CALL(function)		INSN(BPF_JMP | BPF_CALL, 0, 0, 0, function)
#define SKIP_IF(register, op, value, count) INSN(BPF_JMP | op | BPF_K, register, 0, count, value)
#define END			INSN(BPF_JMP | BPF_EXIT, 0, 0, 0, 0)

static long bpf(int command, union bpf_attr *attr)
{
	return syscall(__NR_bpf, command, attr, sizeof(*attr));
}

static long load(const struct bpf_insn *program, unsigned int count)
{
	union bpf_attr attr = {
		.prog_type = BPF_PROG_TYPE_KPROBE,
		.expected_attach_type = BPF_TRACE_KPROBE_MULTI,
		.insns = (unsigned long)program,
		.insn_cnt = count,
		.license = (unsigned long)"GPL",
	};

	return bpf(BPF_PROG_LOAD, &attr);
}

/* @cookies may be NULL; @flags may have BPF_F_KPROBE_MULTI_RETURN. */
static long attach(long program, unsigned int flags, const char *const *names, unsigned int count, const void *cookies)
{
	union bpf_attr attr = {
		.link_create = {
			.prog_fd = program,
			.attach_type = BPF_TRACE_KPROBE_MULTI,
			.kprobe_multi = {
				.flags = flags,
				.cnt = count,
				.syms = (unsigned long)names,
				.cookies = (unsigned long)cookies,
			},
		},
	};

	return bpf(BPF_LINK_CREATE, &attr);
}

static int failed(const char *what)
{
	printf("%s: error %d\n", what, errno);
	/* EOPNOTSUPP is an answer: this kernel has none. */
	return errno != EOPNOTSUPP;
}
