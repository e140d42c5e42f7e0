/* SPDX-License-Identifier: MIT */
/*
 * The container of a saved machine: see snapshot_file.h. It knows nothing of what is
 * in the sections. Layout, all little-endian:
 *
 *   header   "VGIC-VMM", u32 version, u32 CRC-32 of the 12 bytes before
 *   section  tag of 8 bytes, u32 number, u32 CRC-32 of the other 20 bytes and the data, u64 length, data
 *   ...
 *   section  "end", number: how many there were before, length 0; the file ends behind it
 */
#include "snapshot_file.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "util.h"

#define MAGIC_SIZE    8u
#define VERSION       2u
#define VERSION_AT    8u
#define HEADER_CRC_AT 12u
#define HEADER_SIZE   16u

/* The head of a section. */
#define NUMBER_AT 8u
#define CRC_AT    12u
#define LENGTH_AT 16u
#define HEAD_SIZE 24u

#define END_TAG   "end"
#define CRC_CHUNK (1u << 30) /* zlib's lengths have 32 bits */

static uint32_t load_u32(const unsigned char *at)
{
	uint32_t value;

	memcpy(&value, at, sizeof(value));
	return le32toh(value);
}

static uint64_t load_u64(const unsigned char *at)
{
	uint64_t value;

	memcpy(&value, at, sizeof(value));
	return le64toh(value);
}

static void store_u32(unsigned char *at, uint32_t value)
{
	value = htole32(value);
	memcpy(at, &value, sizeof(value));
}

static void store_u64(unsigned char *at, uint64_t value)
{
	value = htole64(value);
	memcpy(at, &value, sizeof(value));
}

static uint32_t checksum(uint32_t crc, const unsigned char *data, size_t size)
{
	while (size > 0) {
		const uInt chunk = size < CRC_CHUNK ? (uInt)size : CRC_CHUNK;

		crc = (uint32_t)crc32(crc, data, chunk);
		data += chunk;
		size -= chunk;
	}
	return crc;
}

static uint32_t section_checksum(const unsigned char *head, const unsigned char *data, size_t size)
{
	uint32_t crc = checksum(0, head, CRC_AT);

	crc = checksum(crc, head + LENGTH_AT, HEAD_SIZE - LENGTH_AT);
	return checksum(crc, data, size);
}

static const uint8_t magic[MAGIC_SIZE] = { 'V', 'G', 'I', 'C', '-', 'V', 'M', 'M' };

/* ---- Writing ---------------------------------------------------------------------- */

static void write_bytes(struct snapshot_out *out, const void *bytes, size_t size)
{
	if (!out->err && size > 0 && fwrite(bytes, 1, size, out->file) != size)
		out->err = -(errno ? errno : EIO);
}

void snapshot_out_open(struct snapshot_out *out, const char *path)
{
	const size_t length = strlen(path) + sizeof(".new");
	unsigned char header[HEADER_SIZE];
	int fd;

	memset(out, 0, sizeof(*out));
	out->path = path;
	out->temporary = malloc(length);
	if (!out->temporary) {
		out->err = -ENOMEM;
		return;
	}
	snprintf(out->temporary, length, "%s.new", path);
	/* All of the guest's memory is in it: nobody else may read it. */
	fd = open(out->temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	out->file = fd < 0 ? NULL : fdopen(fd, "wb");
	if (!out->file) {
		out->err = -errno;
		if (fd >= 0)
			close(fd);
		return;
	}
	memcpy(header, magic, MAGIC_SIZE);
	store_u32(header + VERSION_AT, VERSION);
	store_u32(header + HEADER_CRC_AT, checksum(0, header, HEADER_CRC_AT));
	write_bytes(out, header, sizeof(header));
}

int snapshot_out_close(struct snapshot_out *out, bool keep)
{
	if (keep && !out->err) {
		const uint32_t count = out->num_sections;

		snapshot_out_begin(out, END_TAG, count);
		snapshot_out_end(out);
	}
	if (out->file && fclose(out->file) && !out->err)
		out->err = -errno;
	if (keep && !out->err && rename(out->temporary, out->path))
		out->err = -errno;
	if (out->temporary && out->file && (!keep || out->err))
		unlink(out->temporary);
	free(out->temporary);
	free(out->data);
	if (out->err)
		message("the machine cannot be saved in %s: %s", out->path, strerror(-out->err));
	return out->err;
}

void snapshot_out_begin(struct snapshot_out *out, const char *tag, uint32_t number)
{
	const size_t length = strlen(tag);

	memset(out->tag, 0, sizeof(out->tag));
	memcpy(out->tag, tag, length < sizeof(out->tag) ? length : sizeof(out->tag));
	out->number = number;
	out->size = 0;
}

void snapshot_out_end(struct snapshot_out *out)
{
	unsigned char head[HEAD_SIZE];

	memcpy(head, out->tag, SNAPSHOT_TAG_SIZE);
	store_u32(head + NUMBER_AT, out->number);
	store_u64(head + LENGTH_AT, out->size);
	store_u32(head + CRC_AT, section_checksum(head, out->data, out->size));
	write_bytes(out, head, sizeof(head));
	write_bytes(out, out->data, out->size);
	out->num_sections++;
}

static bool make_room(struct snapshot_out *out, size_t size)
{
	size_t room = out->room ? out->room : 4096;
	unsigned char *data;

	while (room - out->size < size)
		room *= 2;
	if (room == out->room)
		return true;
	data = realloc(out->data, room);
	if (!data) {
		out->err = out->err ? out->err : -ENOMEM;
		return false;
	}
	out->data = data;
	out->room = room;
	return true;
}

void put_data(struct snapshot_out *out, const void *bytes, size_t size)
{
	if (size == 0 || !make_room(out, size))
		return;
	memcpy(out->data + out->size, bytes, size);
	out->size += size;
}

void put_u8(struct snapshot_out *out, uint8_t value)
{
	put_data(out, &value, sizeof(value));
}

void put_u16(struct snapshot_out *out, uint16_t value)
{
	value = htole16(value);
	put_data(out, &value, sizeof(value));
}

void put_u32(struct snapshot_out *out, uint32_t value)
{
	value = htole32(value);
	put_data(out, &value, sizeof(value));
}

void put_u64(struct snapshot_out *out, uint64_t value)
{
	value = htole64(value);
	put_data(out, &value, sizeof(value));
}

/* ---- Reading ---------------------------------------------------------------------- */

int snapshot_file_refuse(const struct snapshot_file *file, const char *format, ...)
{
	char what[256];
	va_list args;

	va_start(args, format);
	vsnprintf(what, sizeof(what), format, args);
	va_end(args);
	message("%s cannot be loaded: %s", file->path, what);
	return -EBADMSG;
}

static int map_file(struct snapshot_file *file)
{
	const int fd = open(file->path, O_RDONLY | O_CLOEXEC);
	struct stat stat;
	void *data;

	if (fd < 0 || fstat(fd, &stat)) {
		const int err = errno;

		message("cannot open %s: %s", file->path, strerror(err));
		if (fd >= 0)
			close(fd);
		return -err;
	}
	if (!S_ISREG(stat.st_mode) || stat.st_size < (off_t)HEADER_SIZE) {
		close(fd);
		return snapshot_file_refuse(file, "it is no saved machine");
	}
	data = mmap(NULL, (size_t)stat.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	if (data == MAP_FAILED) {
		message("no memory for %s: %s", file->path, strerror(errno));
		return -ENOMEM;
	}
	file->data = data;
	file->size = (size_t)stat.st_size;
	return 0;
}

static int check_header(const struct snapshot_file *file)
{
	if (memcmp(file->data, magic, MAGIC_SIZE) != 0)
		return snapshot_file_refuse(file, "it is no saved machine");
	if (load_u32(file->data + HEADER_CRC_AT) != checksum(0, file->data, HEADER_CRC_AT))
		return snapshot_file_refuse(file, "it is damaged: the checksum of its header is wrong");
	if (load_u32(file->data + VERSION_AT) != VERSION)
		return snapshot_file_refuse(file, "it has version %u of the format, and this program knows %u",
					    load_u32(file->data + VERSION_AT), VERSION);
	return 0;
}

static struct snapshot_section *add_section(struct snapshot_file *file)
{
	struct snapshot_section *sections = file->sections;

	/* Room for a power of two of them. */
	if ((file->num_sections & (file->num_sections - 1)) == 0) {
		const size_t room = file->num_sections ? 2 * file->num_sections : 1;

		sections = realloc(sections, room * sizeof(*sections));
		if (!sections)
			return NULL;
		file->sections = sections;
	}
	return &sections[file->num_sections++];
}

static bool is_end(const struct snapshot_section *section)
{
	return strcmp(section->tag, END_TAG) == 0;
}

/* The section at @offset, which is moved behind it. */
static int read_section(struct snapshot_file *file, size_t *offset)
{
	const unsigned char *head = file->data + *offset;
	const size_t left = file->size - *offset;
	struct snapshot_section *section;
	uint64_t length;

	if (left < HEAD_SIZE)
		return snapshot_file_refuse(file, "it is truncated: it ends at byte %zu, with no end section",
					    file->size);
	length = load_u64(head + LENGTH_AT);
	if (length > left - HEAD_SIZE)
		return snapshot_file_refuse(
			file, "it is truncated or damaged: the section at byte %zu goes past its end", *offset);
	if (load_u32(head + CRC_AT) != section_checksum(head, head + HEAD_SIZE, (size_t)length))
		return snapshot_file_refuse(file, "it is damaged: the checksum of the section at byte %zu is wrong",
					    *offset);
	section = add_section(file);
	if (!section) {
		message("no memory for the sections of %s", file->path);
		return -ENOMEM;
	}
	memset(section, 0, sizeof(*section));
	memcpy(section->tag, head, SNAPSHOT_TAG_SIZE);
	section->number = load_u32(head + NUMBER_AT);
	section->data = head + HEAD_SIZE;
	section->size = (size_t)length;
	*offset += HEAD_SIZE + (size_t)length;
	return 0;
}

static int read_sections(struct snapshot_file *file)
{
	const struct snapshot_section *last;
	size_t offset = HEADER_SIZE;
	int ret;

	do {
		ret = read_section(file, &offset);
		if (ret)
			return ret;
		last = &file->sections[file->num_sections - 1];
	} while (!is_end(last));
	file->num_sections--;
	if (last->number != file->num_sections || last->size != 0)
		return snapshot_file_refuse(file, "it is damaged: it should have %u sections, and has %zu",
					    last->number, file->num_sections);
	if (offset != file->size)
		return snapshot_file_refuse(file, "it is damaged: there is something behind its end section");
	return 0;
}

int snapshot_file_open(struct snapshot_file *file, const char *path)
{
	int ret;

	memset(file, 0, sizeof(*file));
	file->path = path;
	ret = map_file(file);
	if (!ret)
		ret = check_header(file);
	if (!ret)
		ret = read_sections(file);
	if (ret)
		snapshot_file_close(file);
	return ret;
}

void snapshot_file_close(struct snapshot_file *file)
{
	if (file->data)
		munmap((void *)(uintptr_t)file->data, file->size);
	free(file->sections);
	memset(file, 0, sizeof(*file));
}

const struct snapshot_section *snapshot_file_unused(const struct snapshot_file *file)
{
	for (size_t i = 0; i < file->num_sections; i++)
		if (!file->sections[i].used)
			return &file->sections[i];
	return NULL;
}

static void begin_section(struct snapshot_in *in, const struct snapshot_file *file, struct snapshot_section *section)
{
	section->used = true;
	*in = (struct snapshot_in){ .file = file, .section = section, .at = section->data, .left = section->size };
}

bool snapshot_in_try(struct snapshot_in *in, const struct snapshot_file *file, const char *tag, uint32_t number)
{
	for (size_t i = 0; i < file->num_sections; i++) {
		struct snapshot_section *section = &file->sections[i];

		if (section->number != number || strcmp(section->tag, tag) != 0)
			continue;
		begin_section(in, file, section);
		return true;
	}
	return false;
}

int snapshot_in_begin(struct snapshot_in *in, const struct snapshot_file *file, const char *tag, uint32_t number)
{
	if (snapshot_in_try(in, file, tag, number))
		return 0;
	return snapshot_file_refuse(file, "it has no section \"%s\" %u, which this machine needs", tag, number);
}

bool snapshot_in_next(struct snapshot_in *in, const struct snapshot_file *file, const char *tag, size_t *position)
{
	for (size_t i = *position; i < file->num_sections; i++) {
		struct snapshot_section *section = &file->sections[i];

		if (strcmp(section->tag, tag) != 0)
			continue;
		begin_section(in, file, section);
		*position = i + 1;
		return true;
	}
	return false;
}

int snapshot_in_end(struct snapshot_in *in)
{
	if (!in->wrong && in->left > 0)
		in->wrong = "it is longer than it should be";
	if (!in->wrong)
		return 0;
	return snapshot_file_refuse(in->file, "section \"%s\" %u: %s", in->section->tag, in->section->number,
				    in->wrong);
}

void snapshot_in_wrong(struct snapshot_in *in, const char *what)
{
	if (!in->wrong)
		in->wrong = what;
}

void get_data(struct snapshot_in *in, void *bytes, size_t size)
{
	if (size > in->left) {
		snapshot_in_wrong(in, "it is shorter than it should be");
		in->left = 0;
		memset(bytes, 0, size);
		return;
	}
	memcpy(bytes, in->at, size);
	in->at += size;
	in->left -= size;
}

uint8_t get_u8(struct snapshot_in *in)
{
	uint8_t value;

	get_data(in, &value, sizeof(value));
	return value;
}

uint16_t get_u16(struct snapshot_in *in)
{
	uint16_t value;

	get_data(in, &value, sizeof(value));
	return le16toh(value);
}

uint32_t get_u32(struct snapshot_in *in)
{
	uint32_t value;

	get_data(in, &value, sizeof(value));
	return le32toh(value);
}

uint64_t get_u64(struct snapshot_in *in)
{
	uint64_t value;

	get_data(in, &value, sizeof(value));
	return le64toh(value);
}

bool get_bool(struct snapshot_in *in)
{
	const uint8_t value = get_u8(in);

	if (value > 1)
		snapshot_in_wrong(in, "a flag is neither 0 nor 1");
	return value;
}

void expect_u32(struct snapshot_in *in, uint32_t value, const char *what)
{
	if (get_u32(in) != value)
		snapshot_in_wrong(in, what);
}

void expect_u64(struct snapshot_in *in, uint64_t value, const char *what)
{
	if (get_u64(in) != value)
		snapshot_in_wrong(in, what);
}
