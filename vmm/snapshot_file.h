/* SPDX-License-Identifier: MIT */
/*
 * The file of a saved machine, as a container: sections that carry a name, a number,
 * their length and a checksum (docs/vmm-snapshot.md). What is in them is up to
 * the parts of the machine that save and load themselves.
 *
 * A writer collects one section in memory at a time and appends it to FILE.new,
 * which becomes FILE when all has been written. A reader has checked the whole file
 * before it hands out the first section; each field that is read past the end of its
 * section is 0 and marks the section as bad, so that a load is checked once, at its
 * end (snapshot_in_end()). No locks: one thread each.
 */
#ifndef VMM_SNAPSHOT_FILE_H
#define VMM_SNAPSHOT_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define SNAPSHOT_TAG_SIZE 8u

/* ---- Writing ---------------------------------------------------------------------- */

struct snapshot_out {
	const char *path;
	char *temporary; /* FILE.new */
	FILE *file;
	int err; /* the first error; nothing is written after it */
	uint32_t num_sections;

	/* The open section. */
	char tag[SNAPSHOT_TAG_SIZE];
	uint32_t number;
	unsigned char *data;
	size_t size;
	size_t room;
};

/* Begin. Errors are kept, and reported by snapshot_out_close(). */
void snapshot_out_open(struct snapshot_out *out, const char *path);

/*
 * Complete the file, or remove it if @keep is false. Returns 0, or prints what went wrong, negative errno: then there is no
 * new file, and one of that name is as it was.
 */
int snapshot_out_close(struct snapshot_out *out, bool keep);

/* One section; its fields between the two. */
void snapshot_out_begin(struct snapshot_out *out, const char *tag, uint32_t number);
void snapshot_out_end(struct snapshot_out *out);

/* Fields, little-endian. */
void put_data(struct snapshot_out *out, const void *bytes, size_t size);
void put_u8(struct snapshot_out *out, uint8_t value);
void put_u16(struct snapshot_out *out, uint16_t value);
void put_u32(struct snapshot_out *out, uint32_t value);
void put_u64(struct snapshot_out *out, uint64_t value);

/* ---- Reading ---------------------------------------------------------------------- */

struct snapshot_section {
	char tag[SNAPSHOT_TAG_SIZE + 1];
	uint32_t number;
	const unsigned char *data;
	size_t size;
	bool used;
};

struct snapshot_file {
	const char *path;
	const unsigned char *data;
	size_t size;
	struct snapshot_section *sections;
	size_t num_sections;
};

/* Open and check: structure and checksums. Returns 0, or prints what is wrong, negative errno. */
int snapshot_file_open(struct snapshot_file *file, const char *path);
void snapshot_file_close(struct snapshot_file *file);

/* Print "FILE cannot be loaded: ...". Returns -EBADMSG. */
int snapshot_file_refuse(const struct snapshot_file *file, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* A section that nobody has asked for, or NULL: it belongs to something that this machine does not have. */
const struct snapshot_section *snapshot_file_unused(const struct snapshot_file *file);

/* The fields of one section. */
struct snapshot_in {
	const struct snapshot_file *file;
	const struct snapshot_section *section;
	const unsigned char *at;
	size_t left;
	const char *wrong; /* the first thing that was found wrong, or NULL */
};

/* Begin to read. Returns false if there is no such section. */
bool snapshot_in_try(struct snapshot_in *in, const struct snapshot_file *file, const char *tag, uint32_t number);

/* The same, and prints a line: -EBADMSG. */
int snapshot_in_begin(struct snapshot_in *in, const struct snapshot_file *file, const char *tag, uint32_t number);

/* The next section of this name, from *position on; true if there is one. */
bool snapshot_in_next(struct snapshot_in *in, const struct snapshot_file *file, const char *tag, size_t *position);

/* All has been read: was it right, and all there was? Returns 0, or prints what is wrong, -EBADMSG. */
int snapshot_in_end(struct snapshot_in *in);

/* Say what is wrong with a value. The first word counts. */
void snapshot_in_wrong(struct snapshot_in *in, const char *what);

/* @what is said if the value is another. */
void expect_u32(struct snapshot_in *in, uint32_t value, const char *what);
void expect_u64(struct snapshot_in *in, uint64_t value, const char *what);

void get_data(struct snapshot_in *in, void *bytes, size_t size);
uint8_t get_u8(struct snapshot_in *in);
uint16_t get_u16(struct snapshot_in *in);
uint32_t get_u32(struct snapshot_in *in);
uint64_t get_u64(struct snapshot_in *in);
bool get_bool(struct snapshot_in *in); /* anything but 0 and 1 is wrong */

#endif /* VMM_SNAPSHOT_FILE_H */
