// SPDX-License-Identifier: GPL-2.0-only
/*
 * An fprobe for programs: functions call its probes themselves. `program MODE TEST...` runs tests of fprobe_claims.ko, the last
 * one with it, and prints that one's value. MODE is what is wrong with it: `works`, `refused` (no registration), `idle` (no handler is called), `missed` (each call
 * is counted as missed, and no handler is called), `no-exit`, `uneven` (one probe counts
 * a missed call twice, the next one never), `no-kprobe` (a kprobe never fires).
 */
#include "fake.h"

#define MOST 8
#define ROOM 40		/* longs that the probes of all calls at once share */

static const char *mode;
static struct { struct fprobe *fp; const char *name; unsigned int registration; } probes[MOST];
static struct kprobe *kprobe;
static unsigned int registrations, room, nested, uneven;

static bool broken(const char *name) { return !strcmp(mode, name); }

void seq_buf_init(struct seq_buf *seq, char *buffer, size_t size)
{
	*seq = (struct seq_buf){ buffer, size };
	*buffer = 0;
}

void seq_buf_printf(struct seq_buf *seq, const char *format, ...)
{
	va_list list;

	va_start(list, format);
	seq->length += vsnprintf(seq->buffer + seq->length, seq->size - seq->length, format, list);
	va_end(list);
}

bool sysfs_streq(const char *a, const char *b) { return !strcmp(a, b); }

static void *thread(void *data)
{
	struct task_struct *task = data;

	task->run(task->data);
	return NULL;
}

struct task_struct *kthread_run(int (*run)(void *data), void *data, const char *name)
{
	static struct task_struct task;

	task.run = run;
	task.data = data;
	pthread_create(&task.thread, NULL, thread, &task);
	return &task;
}

void kthread_stop(struct task_struct *task) { pthread_join(task->thread, NULL); }

static int find(const struct fprobe *fp)
{
	int i;

	for (i = 0; i < MOST && probes[i].fp != fp; i++)
		;
	return i;
}

int register_fprobe(struct fprobe *fp, const char *filter, const char *notfilter)
{
	int slot = find(NULL);

	if (broken("refused"))
		return -EINVAL;
	if (find(fp) < MOST)
		return -EBUSY;
	if (fp->entry_data_size > 15 * sizeof(long))
		return -E2BIG;
	fp->nmissed = 0;
	probes[slot].fp = fp;
	probes[slot].name = filter;
	probes[slot].registration = ++registrations;
	return 0;
}

int register_fprobe_ips(struct fprobe *fp, unsigned long *ips, int count) { return -EINVAL; }

int unregister_fprobe(struct fprobe *fp)
{
	int slot = find(fp);

	if (slot == MOST)
		return -EINVAL;
	probes[slot].fp = NULL;
	return 0;
}

int register_kprobe(struct kprobe *kp) { kprobe = kp; return 0; }
void unregister_kprobe(struct kprobe *kp) { kprobe = NULL; }

int register_kretprobe(struct kretprobe *rp)
{
	if (kprobe && !broken("no-kprobe"))
		kprobe->pre_handler(kprobe, NULL);
	return 0;
}

void unregister_kretprobe(struct kretprobe *rp) { }

/* One call: the probes that want its exit, and what they keep until then. */
struct call {
	unsigned int registration[MOST], taken;
	unsigned long data[MOST][15];
	struct ftrace_regs regs;
};

static void miss(struct fprobe *fp)
{
	fp->nmissed += broken("uneven") ? (uneven++ & 1 ? 0 : 2) : 1;
}

static void enter(struct call *call, const char *name)
{
	unsigned int i, words;

	for (i = 0; i < MOST; i++) {
		struct fprobe *fp = probes[i].fp;

		if (!fp || strcmp(probes[i].name, name) || broken("idle"))
			continue;
		words = fp->exit_handler ? fp->entry_data_size / sizeof(long) + 1 : 0;
		if (nested || room + words > ROOM || broken("missed")) {
			miss(fp);
			continue;
		}
		room += words;
		call->taken += words;
		nested++;
		if (!fp->entry_handler || !fp->entry_handler(fp, 0, 0, &call->regs, call->data[i]))
			call->registration[i] = probes[i].registration;
		nested--;
	}
}

static void leave(struct call *call)
{
	unsigned int i;

	for (i = 0; i < MOST; i++) {
		struct fprobe *fp = probes[i].fp;

		if (!fp || probes[i].registration != call->registration[i] || !fp->exit_handler || broken("no-exit"))
			continue;
		nested++;
		fp->exit_handler(fp, 0, 0, &call->regs, call->data[i]);
		nested--;
	}
	room -= call->taken;
}

unsigned long add(unsigned long a, unsigned long b, unsigned long c, unsigned long d)
{
	struct call call = { .regs = { { a, b, c, d }, a + b + c + d } };

	enter(&call, "claim_add");
	leave(&call);
	return a + b + c + d;
}

unsigned long deep(unsigned long depth)
{
	struct call call = {};
	unsigned long below;

	enter(&call, "claim_deep");
	below = depth > 1 ? deep(depth - 1) : 0;
	leave(&call);
	return below + 1;
}

void go_to_sleep(struct completion *asleep, struct completion *wake)
{
	struct call call = {};

	enter(&call, "claim_sleep");
	complete(asleep);
	wait_for_completion(wake);
	leave(&call);
}

extern const struct kernel_param_ops *fake_test;

int main(int argc, char **argv)
{
	char value[512] = "";
	int i;

	for (i = 2; i < argc; i++) {
		/* What breaks, breaks before the last test: the ones before may leave a good value behind. */
		mode = i == argc - 1 ? argv[1] : "works";
		if (fake_test->set(argv[i], NULL))
			return 1;
	}
	fake_test->get(value, NULL);
	fputs(value, stdout);
	return 0;
}
