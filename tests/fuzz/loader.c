/* SPDX-License-Identifier: MIT */
/*
 * Fuzz target: the VMM's loader. The input is the machine's options, then the initial
 * RAM disk, then the kernel's file, raw or to be compressed first. The machine is its
 * memory only; machine_ram() and message() are this file's.
 *
 * What is refused has been told to the user. What is loaded: kernel, RAM disk and device
 * tree are in memory, whole, apart from each other, and all else is untouched; the device
 * tree is well-formed and names them.
 */
#define _GNU_SOURCE
#include "loader.h"

#include <libfdt.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>

#include "../../vmm/machine.h"
#include "check.h"
#include "device_tree.h"
#include "fuzz.h"
#include "util.h"

#define MAX_FILE 0x10000u

/* From the least that the VMM takes; each is allocated once, and all zeros between inputs. */
static const uint64_t ram_sizes[] = { 4ull << 20, (4ull << 20) + 4096, 6ull << 20 };
#define NUM_RAM_SIZES (sizeof(ram_sizes) / sizeof(ram_sizes[0]))

static unsigned char *rams[NUM_RAM_SIZES];
static struct vcpu vcpus[MAX_CPUS];
static unsigned num_messages;

/* ---- What the loader reaches for ----------------------------------------------------- */

bool machine_is_ram(const struct machine *machine, uint64_t address, uint64_t size)
{
	return guest_ram_contains(&machine->guest_ram, address, size);
}

void *machine_ram(const struct machine *machine, uint64_t address)
{
	check(guest_ram_contains(&machine->guest_ram, address, 0));
	return machine->ram + (address - RAM_BASE);
}

void message(const char *format, ...)
{
	static char text[8192];
	va_list args;

	va_start(args, format);
	check(vsnprintf(text, sizeof(text), format, args) > 0);
	va_end(args);
	num_messages++;
}

/* ---- Files ------------------------------------------------------------------------------ */

struct file {
	const uint8_t *bytes;
	size_t size;
	int fd;
	char path[32];
};

static void make_file(struct file *file)
{
	if (!file->path[0]) {
		file->fd = memfd_create("fuzz", 0);
		check(file->fd >= 0);
		snprintf(file->path, sizeof(file->path), "/proc/self/fd/%d", file->fd);
	}
	check(ftruncate(file->fd, 0) == 0);
	check(pwrite(file->fd, file->bytes, file->size, 0) == (ssize_t)file->size);
}

/* gzip, of the bytes as they are: what a header says is in the middle of it. */
static size_t compress_bytes(const uint8_t *bytes, size_t size, uint8_t *packed, size_t room)
{
	z_stream stream = {
		.next_in = (uint8_t *)bytes, .avail_in = (uInt)size, .next_out = packed, .avail_out = (uInt)room
	};

	check(deflateInit2(&stream, 1, Z_DEFLATED, 16 + 9, 1, Z_DEFAULT_STRATEGY) == Z_OK);
	check(deflate(&stream, Z_FINISH) == Z_STREAM_END);
	deflateEnd(&stream);
	return stream.total_out;
}

/* ---- What was loaded ---------------------------------------------------------------------- */

struct piece {
	uint64_t start, size;
};

static bool overlap(const struct piece *a, const struct piece *b)
{
	return a->start < b->start + b->size && b->start < a->start + a->size;
}

static uint64_t get_u64(const void *fdt, int node, const char *name)
{
	int length = 0;
	const void *property = fdt_getprop(fdt, node, name, &length);
	fdt64_t value;

	check(property && length == sizeof(value));
	memcpy(&value, property, sizeof(value));
	return fdt64_to_cpu(value);
}

static void check_device_tree(const struct machine *machine, const struct piece *tree, const struct piece *initrd)
{
	const void *fdt = machine_ram(machine, tree->start);
	int chosen, cpus, length = 0, node, num_cpus = 0;

	check(fdt_check_full(fdt, tree->size) == 0);
	chosen = fdt_path_offset(fdt, "/chosen");
	check(chosen > 0);
	check(strcmp(fdt_getprop(fdt, chosen, "bootargs", &length), machine->options->append) == 0);
	if (machine->options->initrd && initrd->size) {
		check(get_u64(fdt, chosen, "linux,initrd-start") == initrd->start);
		check(get_u64(fdt, chosen, "linux,initrd-end") == initrd->start + initrd->size);
	}
	cpus = fdt_path_offset(fdt, "/cpus");
	fdt_for_each_subnode(node, fdt, cpus) num_cpus++;
	check(num_cpus == (int)machine->num_vcpus);
}

static void check_zeros(const unsigned char *bytes, size_t size)
{
	check(size == 0 || (bytes[0] == 0 && memcmp(bytes, bytes + 1, size - 1) == 0));
}

static void check_piece(struct machine *machine, const struct piece *piece, const uint8_t *bytes, size_t size)
{
	check(machine_is_ram(machine, piece->start, size));
	if (!size)
		return;
	check(memcmp(machine_ram(machine, piece->start), bytes, size) == 0);
	memset(machine_ram(machine, piece->start), 0, size);
}

static void check_loaded(struct machine *machine, const struct loaded *loaded, const struct file *kernel,
			 const struct file *initrd)
{
	const struct piece image = { loaded->entry, kernel->size };
	struct piece tree = { loaded->dtb, device_tree_space(machine) };
	struct piece disk = { 0, initrd->size };
	const void *fdt = machine_ram(machine, loaded->dtb);

	check(machine_is_ram(machine, tree.start, tree.size) && tree.start % (2u << 20) == 0);
	if (machine->options->initrd && initrd->size)
		disk.start = get_u64(fdt, fdt_path_offset(fdt, "/chosen"), "linux,initrd-start");
	check_device_tree(machine, &tree, &disk);
	check(!overlap(&image, &tree));
	if (disk.start) {
		check(!overlap(&disk, &tree) && !overlap(&disk, &image) && disk.start % 4096 == 0);
		check_piece(machine, &disk, initrd->bytes, initrd->size);
	}
	check_piece(machine, &image, kernel->bytes, kernel->size);
	memset(machine_ram(machine, tree.start), 0, tree.size);
	check_zeros(machine->ram, machine->ram_size);
}

/* ---- Inputs ---------------------------------------------------------------------------------- */

static void read_options(struct input *input, struct options *options, char *append, unsigned *num_vcpus, size_t *ram)
{
	const uint8_t flags = input_u8(input);
	const uint8_t *bytes;
	size_t length;

	*options = (struct options){ .append = append, .has_load_address = flags & 1 };
	if (options->has_load_address)
		options->load_address = flags & 0x80 ? input_u64(input) : RAM_BASE + input_u32(input);
	*ram = (flags >> 3 & 3) % NUM_RAM_SIZES;
	*num_vcpus = 1 + (flags & 0x20 ? input_u16(input) % MAX_CPUS : 0);
	length = input_bytes(input, input_u8(input), &bytes);
	memcpy(append, bytes, length);
	append[length] = '\0';
}

static void make_machine(struct machine *machine, const struct options *options, unsigned num_vcpus, size_t ram)
{
	if (!rams[ram]) {
		rams[ram] = calloc(1, ram_sizes[ram]);
		check(rams[ram]);
	}
	for (unsigned i = 0; i < num_vcpus; i++)
		vcpus[i].affinity = i / 16 << 8 | i % 16;
	memset(machine, 0, sizeof(*machine));
	machine->options = options;
	machine->ram = rams[ram];
	machine->ram_size = ram_sizes[ram];
	machine->guest_ram = (struct guest_ram){ machine->ram, RAM_BASE, machine->ram_size };
	machine->num_vcpus = num_vcpus;
	machine->vcpus = vcpus;
}

/* An Image that ends where memory does, or about there. What is not that long has no header. */
static void move_to_end(struct file *kernel, uint8_t *copy, uint64_t ram_size, int8_t by)
{
	const uint64_t two_mib = 2u << 20;
	uint64_t image_size, offset;

	if (kernel->size < 64)
		return;
	memcpy(copy, kernel->bytes, kernel->size);
	memcpy(&image_size, copy + 16, sizeof(image_size));
	image_size %= 2 * kernel->size;
	offset = ram_size - two_mib - image_size + (uint64_t)by;
	memcpy(copy + 8, &offset, sizeof(offset));
	memcpy(copy + 16, &image_size, sizeof(image_size));
	kernel->bytes = copy;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct file kernel, initrd, packed;
	static uint8_t packed_bytes[MAX_FILE + 0x1000], moved_bytes[MAX_FILE];
	static struct machine machine;
	struct input input = { data, size };
	struct loaded loaded = { 0 };
	struct options options;
	unsigned num_vcpus;
	char append[256];
	size_t ram;
	uint8_t how;
	int8_t by;
	int ret;

	read_options(&input, &options, append, &num_vcpus, &ram);
	how = input_u8(&input);
	initrd.size = input_bytes(&input, how & 1 ? input_u16(&input) : 0, &initrd.bytes);
	by = how & 4 ? (int8_t)input_u8(&input) : 0;
	kernel.size = input_bytes(&input, MAX_FILE, &kernel.bytes);
	if (how & 4)
		move_to_end(&kernel, moved_bytes, ram_sizes[ram], by);
	make_file(&kernel);
	make_file(&initrd);
	options.kernel = kernel.path;
	if (how & 2) {
		packed.bytes = packed_bytes;
		packed.size = compress_bytes(kernel.bytes, kernel.size, packed_bytes, sizeof(packed_bytes));
		make_file(&packed);
		options.kernel = packed.path;
	}
	if (how & 1)
		options.initrd = initrd.path;
	make_machine(&machine, &options, num_vcpus, ram);
	num_messages = 0;
	ret = loader_load(&machine, &loaded);
	check(ret <= 0);
	if (ret) {
		check(num_messages > 0);
		memset(machine.ram, 0, machine.ram_size);
	} else if (kernel.size >= 2 && !(how & 2) && kernel.bytes[0] == 0x1f && kernel.bytes[1] == 0x8b) {
		/* It was compressed in the input: what is in it is not known here. */
		memset(machine.ram, 0, machine.ram_size);
	} else {
		check(num_messages == 0);
		check_loaded(&machine, &loaded, &kernel, &initrd);
	}
	return 0;
}
