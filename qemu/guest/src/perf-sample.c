// SPDX-License-Identifier: GPL-2.0-only
/*
 * perf-sample ID: let perf sample the trace event ID while this program writes one byte to /dev/null. Prints the kernel's
 * part of the first sample, an address of 16 digits a line: the instruction pointer, then the call chain.
 */
#include <linux/mman.h>
#include <linux/perf_event.h>

#define PAGES 8
#define MOST_ADDRESSES 64

struct sample {
	struct perf_event_header header;
	unsigned long long ip, count, chain[MOST_ADDRESSES];
};

static void print(unsigned long long address)
{
	char digits[] = "0000000000000000";
	int i;

	for (i = 15; i >= 0; i--, address >>= 4)
		digits[i] = "0123456789abcdef"[address & 15];
	printf("%s\n", digits);
}

int main(int argc, char **argv)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_TRACEPOINT,
		.size = sizeof(attr),
		.config = argc > 1 ? atoi(argv[1]) : 0,
		.sample_period = 1,
		.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_CALLCHAIN,
		.exclude_callchain_user = 1,
	};
	int null = open("/dev/null", O_WRONLY), event = syscall(__NR_perf_event_open, &attr, 0, -1, -1, 0);
	struct perf_event_mmap_page *control;
	const struct sample *sample;
	unsigned long long i;

	if (null < 0 || event < 0) {
		perror("perf_event_open");
		return 1;
	}
	control = mmap(NULL, (1 + PAGES) * getpagesize(), PROT_READ | PROT_WRITE, MAP_SHARED, event, 0);
	if (control == MAP_FAILED) {
		perror("mmap");
		return 1;
	}
	write(null, "", 1);
	close(null);

	sample = (void *)((char *)control + control->data_offset);
	if (!control->data_head || sample->header.type != PERF_RECORD_SAMPLE) {
		fprintf(stderr, "no sample\n");
		return 1;
	}
	print(sample->ip);
	for (i = 0; i < sample->count; i++)
		if (sample->chain[i] < PERF_CONTEXT_MAX)
			print(sample->chain[i]);
	return 0;
}
