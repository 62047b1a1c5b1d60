/* SPDX-License-Identifier: GPL-2.0-only */
/* As much of the kernel as qemu/guest/modules/ needs to run as a program, with an fprobe that can be broken (see fprobe.c). */
#ifndef FAKE_H
#define FAKE_H

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define noinline		__attribute__((noinline))
#define notrace
#define __noclone
#define barrier()		__asm__ volatile("" ::: "memory")
#define ARRAY_SIZE(a)		(sizeof(a) / sizeof(*(a)))
#define container_of(p, type, member) ((type *)((char *)(p) - __builtin_offsetof(type, member)))
#define abs_diff(a, b)		((a) > (b) ? (a) - (b) : (b) - (a))
#define OPTIMIZER_HIDE_VAR(x)	__asm__("" : "=r"(x) : "0"(x))
#define IS_ENABLED(x)		1
#define PAGE_SIZE		4096UL
#define IS_ERR(p)		((long)(p) < 0 && (long)(p) > -4096)
#define PTR_ERR(p)		((long)(p))
#define ERR_PTR(e)		((void *)(long)(e))
#define guard(kind)		(void)
#define DEFINE_MUTEX(name)	int name
#define EXPORT_SYMBOL_GPL(x)
#define MODULE_LICENSE(x)
#define MODULE_DESCRIPTION(x)
#define MODULE_PARM_DESC(a, b)
#define module_param_cb(name, ops, arg, mode) const struct kernel_param_ops *fake_##name = ops

struct kernel_param { int unused; };
struct kernel_param_ops {
	int (*set)(const char *value, const struct kernel_param *param);
	int (*get)(char *buffer, const struct kernel_param *param);
};

struct seq_buf { char *buffer; size_t size, length; };
void seq_buf_init(struct seq_buf *seq, char *buffer, size_t size);
void seq_buf_printf(struct seq_buf *seq, const char *format, ...);
#define seq_buf_puts(seq, text)		seq_buf_printf(seq, "%s", text)
#define seq_buf_has_overflowed(seq)	((seq)->length >= (seq)->size)
#define sysfs_emit(buffer, ...)		sprintf(buffer, __VA_ARGS__)
bool sysfs_streq(const char *a, const char *b);

struct completion { sem_t done; };
#define init_completion(c)	sem_init(&(c)->done, 0, 0)
#define complete(c)		sem_post(&(c)->done)
#define wait_for_completion(c)	sem_wait(&(c)->done)
struct task_struct { pthread_t thread; int (*run)(void *data); void *data; };
struct task_struct *kthread_run(int (*run)(void *data), void *data, const char *name);
void kthread_stop(struct task_struct *task);
#define get_task_struct(task)	(void)(task)
#define put_task_struct(task)	(void)(task)

struct pt_regs { int unused; };
struct ftrace_regs { unsigned long arguments[4], returned; };
#define ftrace_regs_get_argument(regs, n)	((regs)->arguments[n])
#define ftrace_regs_get_return_value(regs)	((regs)->returned)

#define FPROBE_FL_DISABLED 1
struct fprobe {
	unsigned long nmissed;
	unsigned int flags;
	size_t entry_data_size;
	int (*entry_handler)(struct fprobe *fp, unsigned long ip, unsigned long ret_ip, struct ftrace_regs *regs, void *data);
	void (*exit_handler)(struct fprobe *fp, unsigned long ip, unsigned long ret_ip, struct ftrace_regs *regs, void *data);
};
int register_fprobe(struct fprobe *fp, const char *filter, const char *notfilter);
int register_fprobe_ips(struct fprobe *fp, unsigned long *ips, int count);
int unregister_fprobe(struct fprobe *fp);

struct kprobe { const char *symbol_name; int (*pre_handler)(struct kprobe *kp, struct pt_regs *regs); };
struct kretprobe_instance;
struct kretprobe { struct kprobe kp; int (*handler)(struct kretprobe_instance *instance, struct pt_regs *regs); int maxactive; };
int register_kprobe(struct kprobe *kp);
void unregister_kprobe(struct kprobe *kp);
int register_kretprobe(struct kretprobe *rp);
void unregister_kretprobe(struct kretprobe *rp);

unsigned long add(unsigned long a, unsigned long b, unsigned long c, unsigned long d);
unsigned long deep(unsigned long depth);
void go_to_sleep(struct completion *asleep, struct completion *wake);
#define claim_add add
#define claim_deep deep
#define claim_sleep go_to_sleep
#define HANDLERS_TAKE_FTRACE_REGS
#endif
