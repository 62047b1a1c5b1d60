// SPDX-License-Identifier: GPL-2.0-only
/*
 * build-id FILE...: print the GNU build id of each file, in hexadecimal, and its name. A file is anything that holds an ELF note
 * at a multiple of four bytes: /sys/kernel/notes, or a module. For one without a build id, `none` is printed, and the status is 1.
 */
#define SIZE_OF_ID 20
#define SIZE_OF_NOTE 16

static unsigned char data[1 << 16];

/* Read until `size` bytes are there or the file ends. Returns how many are there, less than 0 for an error. */
static long fill(int file, unsigned char *into, long size)
{
	long length = 0, got = 1;

	while (length < size && (got = read(file, into + length, size - length)) > 0)
		length += got;
	return got < 0 ? got : length;
}

/* The build id in the file, or NULL. */
static const unsigned char *find(int file)
{
	static const unsigned int head[] = { 4, SIZE_OF_ID, 3 /* NT_GNU_BUILD_ID */ };
	long left = 0, got, at;

	while ((got = fill(file, data + left, sizeof(data) - left)) > 0) {
		got += left;
		for (at = 0; at + SIZE_OF_NOTE + SIZE_OF_ID <= got; at += 4)
			if (!memcmp(data + at, head, sizeof(head)) && !memcmp(data + at + sizeof(head), "GNU", 4))
				return data + at + SIZE_OF_NOTE;
		/* A note may lie across two reads. */
		left = got - at;
		memmove(data, data + at, left);
	}
	return 0;
}

int main(int argc, char **argv)
{
	int number, byte, file, status = 0;

	for (number = 1; number < argc; number++) {
		const unsigned char *id;

		file = open(argv[number], O_RDONLY);
		id = file < 0 ? 0 : find(file);
		for (byte = 0; id && byte < SIZE_OF_ID; byte++)
			printf("%x%x", id[byte] >> 4, id[byte] & 15);
		printf("%s %s\n", id ? "" : "none", argv[number]);
		status |= !id;
		if (file >= 0)
			close(file);
	}
	return status;
}
