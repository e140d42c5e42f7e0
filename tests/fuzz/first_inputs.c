/* SPDX-License-Identifier: MIT */
/*
 * Writes first inputs of fuzz targets into a directory for each: what a machine saves, a
 * kernel's header, what a driver and a guest write. From there libFuzzer goes on. Called
 * by scripts/fuzz --seeds.
 */
#include <errno.h>
#include <its_arch.h>
#include <string.h>
#include <sys/stat.h>

#include "check.h"
#include "state_world.h"

struct output {
	uint8_t bytes[8192];
	size_t size;
};

static void put(struct output *out, uint64_t value, unsigned num)
{
	check(out->size + num <= sizeof(out->bytes));
	for (unsigned i = 0; i < num; i++)
		out->bytes[out->size++] = (uint8_t)(value >> (8 * i));
}

static void put_bytes(struct output *out, const void *bytes, size_t size)
{
	check(out->size + size <= sizeof(out->bytes));
	memcpy(out->bytes + out->size, bytes, size);
	out->size += size;
}

static const char *corpus;

static void write_seed(const char *target, unsigned number, const struct output *out)
{
	char path[4096];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", corpus, target);
	if (mkdir(path, 0777) && errno != EEXIST) {
		perror(path);
		exit(1);
	}
	snprintf(path, sizeof(path), "%s/%s/first-%u", corpus, target, number);
	file = fopen(path, "wb");
	if (!file || fwrite(out->bytes, 1, out->size, file) != out->size || fclose(file)) {
		perror(path);
		exit(1);
	}
}

/* ---- Saved states --------------------------------------------------------------------------- */

#define MODE_ATTRIBUTES 1u
#define MODE_KVM        2u
#define MODE_FROM_EMPTY 8u
#define MODE_CHANGED    8u

static void put_steps(struct output *out, uint64_t seed)
{
	for (unsigned i = 0; i < 32; i++) {
		seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
		put(out, seed >> 33, 4);
	}
}

/* The state of a machine after some steps. */
static void write_image(struct world *w, const struct image *empty, unsigned number, uint8_t mode)
{
	struct output script = { .size = 0 }, out = { .size = 0 };
	struct input input;
	struct image image;

	world_set(w, empty);
	w->is_at = NULL;
	if (number & 1)
		world_fill(w);
	put_steps(&script, number);
	input = (struct input){ script.bytes, script.size };
	for (unsigned i = 0; i < 8 * (number / 2); i++) {
		struct step step;

		step_read(&input, &step, NUM_GUEST_STEPS);
		step_make(w, &step);
	}
	world_save(w, &image);
	put(&out, mode, 1);
	put(&out, image.size, 2);
	put_bytes(&out, image.bytes, image.size);
	put_steps(&out, number + 100);
	write_seed("state", number + (mode & MODE_KVM ? 10 : 0), &out);
}

/* An image that was changed: each piece of 64 bytes of it is in reach. */
static void write_change(uint8_t mode)
{
	for (unsigned i = 0; i < 4; i++) {
		struct output out = { .size = 0 };

		put(&out, mode | MODE_CHANGED, 1);
		put(&out, 0, 1);
		put(&out, 0x200 * i + 0x40, 2);
		put(&out, i, 1);
		put(&out, 1, 8);
		put_steps(&out, i);
		write_seed("state", 30 + i + (mode & MODE_KVM ? 10 : 0), &out);
	}
}

/* Memory that is not zero, as steps that write it. */
static void put_memory(struct output *out, const struct world *w, bool indirect)
{
	static const uint8_t zeros[32];

	/* The configuration of LPIs is all the same: one piece is enough. */
	for (size_t at = 8192 - sizeof(zeros); at < WORLD_RAM_SIZE; at += sizeof(zeros)) {
		const bool is_queue = at - (WORLD_QUEUE - WORLD_RAM_BASE) < 4096;
		const bool is_devices = at - (WORLD_DEVICES - WORLD_RAM_BASE) < 4096;

		if (is_queue || memcmp(w->ram + at, zeros, sizeof(zeros)) == 0)
			continue;
		put(out, STEP_MEMORY, 1);
		put(out, 0xff, 1);
		put(out, indirect && is_devices ? at - (WORLD_DEVICES - WORLD_QUEUE) : at, 3);
		put(out, 0, 2);
		put(out, sizeof(zeros) - 1, 1);
		put_bytes(out, w->ram + at, sizeof(zeros));
	}
}

/*
 * The tables of that machine, and the registers that make another one take them: see step_read(). @indirect: the device
 * table has a level 1, and its only page is where the queue was.
 */
static void write_tables(struct world *w, const struct image *empty, unsigned number, uint8_t mode, bool indirect)
{
	struct output out = { .size = 0 };

	world_set(w, empty);
	w->is_at = NULL;
	world_fill(w);
	check(vgic_its_attr_set(w->its, VGIC_GRP_CTRL, VGIC_CTRL_ITS_SAVE_TABLES, 0) == 0);
	check(vgic_attr_set(w->vgic, VGIC_GRP_CTRL, VGIC_CTRL_SAVE_PENDING_TABLES, 0) == 0);
	put(&out, mode | MODE_ATTRIBUTES | MODE_FROM_EMPTY, 1);
	put_memory(&out, w, indirect);
	if (indirect) {
		put(&out, STEP_MEMORY, 4); /* at the beginning of the device table */
		put(&out, 7, 1);
		put(&out, GITS_LEVEL1_VALID | WORLD_QUEUE, 8);
	}
	for (unsigned v = 0; v < WORLD_VCPUS; v++) {
		put(&out, (STEP_REDIST | v << 5) | 3 << 8 | 0xf4u << 16, 3);       /* PROPBASER */
		put(&out, (STEP_REDIST | v << 5) | 5 << 8 | (0xf5u + v) << 16, 3); /* PENDBASER */
		put(&out, (STEP_REDIST | v << 5) | 0 << 8 | 1u << 16, 3);          /* EnableLPIs */
	}
	put(&out, STEP_ITS_ATTR | VGIC_GRP_ITS_REGS << 8 | 1 << 16 | 0xf0u << 24, 4);                      /* CBASER */
	put(&out, STEP_ITS_ATTR | VGIC_GRP_ITS_REGS << 8 | 4 << 16 | (indirect ? 0xf3u : 0xf1u) << 24, 4); /* BASER0 */
	put(&out, STEP_ITS_ATTR | VGIC_GRP_ITS_REGS << 8 | 5 << 16 | 0xf2u << 24, 4);                      /* BASER1 */
	put(&out, STEP_TABLES | 1 << 8, 2); /* RESTORE_TABLES */
	/* An event of the first device gets an INTID that is none, and the tables are refused. */
	put(&out, STEP_MEMORY | 2 << 8 | 4 << 16, 4);
	put(&out, 0 | 0xff << 8, 2);
	put(&out, STEP_TABLES | 1 << 8, 2);
	put(&out, STEP_ITS_ATTR | VGIC_GRP_ITS_REGS << 8 | 0 << 16 | 1u << 24, 4); /* CTLR */
	put_steps(&out, number);
	write_seed("state", number, &out);
}

static void write_states(enum vgic_profile profile, uint8_t mode)
{
	struct image empty;
	struct world w;

	world_create(&w, profile, false);
	world_save(&w, &empty);
	for (unsigned i = 0; i < 6; i++)
		write_image(&w, &empty, i, mode);
	write_change(mode);
	write_tables(&w, &empty, profile == VGIC_PROFILE_KVM ? 21 : 20, mode, false);
	write_tables(&w, &empty, profile == VGIC_PROFILE_KVM ? 23 : 22, mode, true);
	vgic_destroy(w.vgic);
	free(w.ram);
}

/* ---- Kernels ------------------------------------------------------------------------------------ */

/* The header of an arm64 Image, and a little behind it: raw and to be compressed, with and without a RAM disk. */
static void write_kernels(void)
{
	for (unsigned i = 0; i < 6; i++) {
		struct output out = { .size = 0 };

		put(&out, i == 2 ? 0x21 : 0, 1); /* as an Image, or at an address; with many CPUs */
		if (i == 2)
			put(&out, 0x10000, 4);
		if (i == 2)
			put(&out, 40, 2);
		put(&out, 12, 1);
		put_bytes(&out, "console=tty0", 12);
		put(&out, i, 1); /* bit 0: a RAM disk, bit 1: compressed, bit 2: it ends where memory does */
		if (i & 1) {
			put(&out, 8, 2);
			put_bytes(&out, "070701xx", 8);
		}
		if (i & 4)
			put(&out, 0, 1);
		put(&out, UINT64_C(0x1400000491005a4d), 8);
		put(&out, 0x80000 * i, 8);         /* text_offset */
		put(&out, i < 5 ? 0x1000 : 72, 8); /* image_size */
		put(&out, 10, 8);
		put(&out, 0, 8);
		put(&out, 0, 8);
		put(&out, 0, 8);
		put(&out, 0x644d5241, 4);
		put(&out, 64, 4);
		put(&out, UINT64_C(0xd503201fd503201f), 8);
		write_seed("loader", i, &out);
	}
}

/* ---- Drivers and guests ------------------------------------------------------------------------------ */

/* Set the device up, write and read a sector, flush, save and load, and reset it: see make_step() of virtqueue.c. */
static void write_drivers(void)
{
	for (unsigned i = 0; i < 3; i++) {
		struct output out = { .size = 0 };

		put(&out, i, 1);
		put(&out, 11 | (0x33 + 0x20 * i) << 8, 2);
		for (unsigned type = 0; type < 3; type++) {
			put(&out, 14 | (i << 6 & 0x40) << 8 | (type * 4 % 5) << 16 | 1u << 24, 4);
			put(&out, 512, 2);
			put(&out, 15, 1); /* the ISR */
		}
		put(&out, 13, 2);
		put(&out, 12, 1);
		write_seed("virtqueue", i, &out);
	}
}

/* An MSI-X vector by an eventfd: programmed, masked, signalled, unmasked, taken: see make_step() of route.c. */
static void write_routes(void)
{
	static const uint8_t vector[] = {
		5,    9,                /* create the device */
		5,    3,    1,    0,    /* bind an eventfd to vector 0 */
		5,    0,    0x00, 0,    /* its address is the doorbell */
		5,    0,    0x18, 0,    /* it is not masked */
		5,    0x82,             /* (another function of the device) */
		8,    0,    2,    2,    /* signal, take, end */
		0x8a, 8,    0,    0x0a, /* pause, signal, resume */
		2,    2,                /* take, end */
	};
	static const uint8_t line[] = {
		3, 0,    0x81, 18,   0,                /* GSI 0 leads to source 0 of SPI 48 */
		7, 0x40, 0,                            /* with an eventfd and a resamplefd */
		8, 0,    2,    2,                      /* signal, take, end */
		4, 0,    4,    0x30, 0, 0x00, 4, 0x00, /* a transaction that leads it nowhere */
		9, 0,    0,                            /* deassign */
	};
	struct output out = { .size = 0 };

	put_bytes(&out, vector, sizeof(vector));
	write_seed("route", 0, &out);
	out.size = 0;
	put_bytes(&out, line, sizeof(line));
	write_seed("route", 1, &out);
}

int main(int argc, char **argv)
{
	if (argc != 2 || argv[1][0] == '-') {
		fprintf(stderr, "Usage: %s DIRECTORY\n\nWrites first inputs of fuzz targets to DIRECTORY/TARGET.\n",
			argv[0]);
		return argc == 2 && !strcmp(argv[1], "--help") ? 0 : 2;
	}
	corpus = argv[1];
	write_states(VGIC_PROFILE_NATIVE, 0);
	write_states(VGIC_PROFILE_KVM, MODE_KVM);
	write_kernels();
	write_drivers();
	write_routes();
	return 0;
}
