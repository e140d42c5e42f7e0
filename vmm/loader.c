/* SPDX-License-Identifier: MIT */
/*
 * The loader.
 *
 * A kernel is an arm64 Linux "Image", raw or compressed with gzip, put where its
 * header wants it; or, with --load-address, any flat binary, put there and entered
 * at its first byte. The device tree lies at the end of memory (of its first GiB,
 * if there is more, because Linux wants it and the initial RAM disk near the
 * kernel), the initial RAM disk below it.
 */
#include "loader.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "device_tree.h"
#include "machine.h"
#include "util.h"

#define MIB         (1ull << 20)
#define LOW_END     (1ull << 30) /* device tree and initial RAM disk lie below this offset in memory */
#define DTB_ALIGN   (2 * MIB)
#define PAGE        0x1000ull
#define IMAGE_ALIGN (2 * MIB)

/* The header of an arm64 kernel Image, little-endian (Linux: Documentation/arm64/booting.rst). */
struct image_header {
	uint32_t code[2];
	uint64_t text_offset;
	uint64_t image_size; /* 0 in kernels before 3.17 */
	uint64_t flags;
	uint64_t reserved[3];
	uint32_t magic;
	uint32_t pe_offset;
};

#define IMAGE_MAGIC           0x644d5241u /* "ARM\x64" */
#define IMAGE_FLAG_BIG_ENDIAN 1u
#define OLD_TEXT_OFFSET       0x80000u
#define ZIMG_MAGIC_OFFSET     4u

/* A file, or part of it decompressed, in the host's memory. */
struct blob {
	unsigned char *data;
	size_t size;
};

/* ---- Files ------------------------------------------------------------------------ */

/* Returns an error; which one, is in the message. */
static int report_file(const char *path, int err)
{
	message("cannot read %s: %s", path, strerror(err));
	return -EIO;
}

/* Returns 0 or an errno. A file that became shorter meanwhile is as long as it is. */
static int read_all(int fd, struct blob *blob)
{
	size_t done = 0;

	while (done < blob->size) {
		const ssize_t n = read(fd, blob->data + done, blob->size - done);

		if (n < 0)
			return errno;
		if (n == 0)
			break;
		done += (size_t)n;
	}
	blob->size = done;
	return 0;
}

static int read_regular_file(const char *path, int fd, struct blob *blob)
{
	struct stat st;
	int err;

	if (fstat(fd, &st))
		return report_file(path, errno);
	if (!S_ISREG(st.st_mode)) {
		message("cannot read %s: it is no regular file", path);
		return -EINVAL;
	}
	blob->size = (size_t)st.st_size;
	blob->data = malloc(blob->size ? blob->size : 1);
	if (!blob->data)
		return report_file(path, ENOMEM);
	err = read_all(fd, blob);
	if (!err)
		return 0;
	free(blob->data);
	blob->data = NULL;
	return report_file(path, err);
}

static int read_file(const char *path, struct blob *blob)
{
	const int fd = open(path, O_RDONLY | O_CLOEXEC);
	int ret;

	if (fd < 0)
		return report_file(path, errno);
	ret = read_regular_file(path, fd, blob);
	close(fd);
	return ret;
}

/* Decompress gzip data into a blob of at most @limit bytes. Returns a zlib status, Z_BUF_ERROR for too much. */
static int inflate_all(const struct blob *packed, size_t limit, struct blob *unpacked)
{
	const int gzip_only = 16 + MAX_WBITS;
	z_stream stream = { .next_in = packed->data, .avail_in = (uInt)packed->size };
	int ret = inflateInit2(&stream, gzip_only);

	if (ret != Z_OK)
		return ret;
	stream.next_out = unpacked->data;
	stream.avail_out = (uInt)limit;
	ret = inflate(&stream, Z_FINISH);
	unpacked->size = stream.total_out;
	inflateEnd(&stream);
	return ret;
}

/* Replace a blob that is compressed with gzip by what is in it. */
static int decompress(const char *path, uint64_t ram_size, struct blob *blob)
{
	const size_t limit = ram_size < UINT32_MAX ? (size_t)ram_size : UINT32_MAX;
	struct blob unpacked = { .data = malloc(limit) };
	int ret;

	if (!unpacked.data)
		return report_file(path, ENOMEM);
	ret = blob->size <= UINT32_MAX ? inflate_all(blob, limit, &unpacked) : Z_DATA_ERROR;
	if (ret != Z_STREAM_END) {
		message("%s: %s", path,
			ret == Z_BUF_ERROR && unpacked.size == limit ?
				"too large for the guest's memory when decompressed" :
				"the gzip data is damaged or cut short");
		free(unpacked.data);
		return -EINVAL;
	}
	free(blob->data);
	*blob = unpacked;
	return 0;
}

/* ---- The kernel --------------------------------------------------------------------- */

static int place(const struct machine *machine, const char *path, const struct blob *blob, uint64_t address,
		 uint64_t needs)
{
	if (!machine_is_ram(machine, address, needs)) {
		message("%s: %llu bytes at 0x%llx do not fit into memory, 0x%llx to 0x%llx%s", path,
			(unsigned long long)needs, (unsigned long long)address, (unsigned long long)RAM_BASE,
			(unsigned long long)(RAM_BASE + machine->ram_size - 1),
			address >= RAM_BASE ? "; try --memory with more" : "");
		return -ENOSPC;
	}
	memcpy(machine_ram(machine, address), blob->data, blob->size);
	return 0;
}

/* Returns 0, or what is wrong with the image, in words. */
static const char *check_image(const struct blob *blob, struct image_header *header)
{
	if (blob->size < sizeof(*header))
		return "it is too short for an arm64 kernel Image";
	memcpy(header, blob->data, sizeof(*header));
	if (le32toh(header->magic) != IMAGE_MAGIC) {
		if (memcmp(blob->data, "MZ", 2) == 0 && memcmp(blob->data + ZIMG_MAGIC_OFFSET, "zimg", 4) == 0)
			return "it is an EFI zboot image, which decompresses itself with the help of EFI: use the "
			       "Image inside it";
		if (memcmp(blob->data, "\177ELF", 4) == 0)
			return "it is an ELF file: make a flat binary of it with objcopy -O binary, and use "
			       "--load-address";
		return "it is no arm64 kernel Image (the magic number is missing); for another kind of program use "
		       "--load-address";
	}
	if (le64toh(header->flags) & IMAGE_FLAG_BIG_ENDIAN)
		return "it is a big-endian kernel, and the machine is little-endian";
	if (le64toh(header->image_size) > RAM_MAX_SIZE || le64toh(header->text_offset) > RAM_MAX_SIZE)
		return "its header gives an impossible size or offset";
	return NULL;
}

static int place_image(const struct machine *machine, const struct blob *blob, uint64_t *entry, uint64_t *end)
{
	const char *path = machine->options->kernel;
	struct image_header header;
	const char *wrong = check_image(blob, &header);
	uint64_t needs;

	if (wrong) {
		message("%s: %s", path, wrong);
		return -EINVAL;
	}
	needs = le64toh(header.image_size);
	/* The first 2 MiB are left free, as boot loaders do that keep their own things there. */
	*entry = RAM_BASE + IMAGE_ALIGN + (needs ? le64toh(header.text_offset) : OLD_TEXT_OFFSET);
	if (needs < blob->size)
		needs = blob->size;
	*end = *entry + needs;
	return place(machine, path, blob, *entry, needs);
}

static int place_flat(const struct machine *machine, const struct blob *blob, uint64_t *entry, uint64_t *end)
{
	const struct options *options = machine->options;

	if (options->load_address & 3) {
		message("--load-address 0x%llx is not a multiple of 4", (unsigned long long)options->load_address);
		return -EINVAL;
	}
	*entry = options->load_address;
	*end = *entry + blob->size;
	return place(machine, options->kernel, blob, *entry, blob->size);
}

static int load_kernel(const struct machine *machine, uint64_t *entry, uint64_t *end)
{
	const char *path = machine->options->kernel;
	struct blob blob = { 0 };
	int ret = read_file(path, &blob);

	if (ret)
		return ret;
	if (blob.size == 0) {
		message("%s: the file is empty", path);
		ret = -EINVAL;
	}
	if (!ret && blob.size >= 2 && blob.data[0] == 0x1f && blob.data[1] == 0x8b)
		ret = decompress(path, machine->ram_size, &blob);
	if (!ret)
		ret = machine->options->has_load_address ? place_flat(machine, &blob, entry, end) :
							   place_image(machine, &blob, entry, end);
	free(blob.data);
	return ret;
}

/* ---- What lies above it ----------------------------------------------------------------- */

/* Take @size bytes, aligned to @align, below *top. Returns -ENOSPC if they would reach below @bottom. */
static int take_below(uint64_t *top, uint64_t size, uint64_t align, uint64_t bottom)
{
	if (size > *top || ((*top - size) & ~(align - 1)) < bottom)
		return -ENOSPC;
	*top = (*top - size) & ~(align - 1);
	return 0;
}

static int load_initrd(const struct machine *machine, uint64_t *top, uint64_t bottom, uint64_t *end)
{
	const char *path = machine->options->initrd;
	struct blob blob = { 0 };
	int ret = read_file(path, &blob);

	if (ret)
		return ret;
	ret = take_below(top, blob.size, PAGE, bottom);
	if (ret) {
		message("%s: %zu bytes do not fit into memory beside the kernel; try --memory with more", path,
			blob.size);
	} else {
		memcpy(machine_ram(machine, *top), blob.data, blob.size);
		*end = *top + blob.size;
	}
	free(blob.data);
	return ret;
}

int loader_load(struct machine *machine, struct loaded *loaded)
{
	const uint64_t low_size = machine->ram_size < LOW_END ? machine->ram_size : LOW_END;
	const size_t fdt_space = device_tree_space(machine);
	uint64_t top = RAM_BASE + low_size;
	uint64_t kernel_end;
	uint64_t initrd_start = 0;
	uint64_t initrd_end = 0;
	int ret = load_kernel(machine, &loaded->entry, &kernel_end);

	if (ret)
		return ret;
	/* A program may be loaded behind all of this: it does not limit it then. */
	if (loaded->entry >= top)
		kernel_end = RAM_BASE;
	ret = take_below(&top, fdt_space, DTB_ALIGN, kernel_end);
	if (ret) {
		message("the device tree does not fit into memory beside the kernel; try --memory with more");
		return ret;
	}
	loaded->dtb = top;
	if (machine->options->initrd) {
		ret = load_initrd(machine, &top, kernel_end, &initrd_end);
		if (ret)
			return ret;
		initrd_start = top;
	}
	return device_tree_build(machine, machine_ram(machine, loaded->dtb), fdt_space, initrd_start, initrd_end);
}
