/* SPDX-License-Identifier: MIT */
/*
 * Random sequences of what a guest does with ITSes and LPIs, sane and hostile, on
 * libvgic and on the reference at the same time. Each has guest memory of its own.
 * After every step the lines of every vCPU, all counters and statistics are
 * compared; now and then all registers, and all of guest memory.
 *
 *   its_lockstep [--seed N] [--steps N] [--config N] [--trace] [--record FILE]
 *
 * At the end the program fails if something of interest did not happen.
 */
#include <errno.h>
#include <getopt.h>
#include <gic_arch.h>
#include <inttypes.h>
#include <its_arch.h>
#include <ref_its.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "its_layout.h"
#include "pair.h"

#define DEFAULT_STEPS   5000u
#define MIN_FOR_EVENTS  2500u
#define STEPS_PER_CHECK 250u
#define MAX_ITSES       2u
#define LOG_LENGTH      64u

struct variant {
	const char *name;
	enum vgic_profile profile;
	uint32_t num_vcpus;
	uint32_t num_itses;
	uint32_t lpi_id_bits;
	struct vgic_its_config its[MAX_ITSES];
};

static const struct variant variants[] = {
	{ "1 vCPU, 1 ITS", VGIC_PROFILE_NATIVE, 1, 1, 14, { { .max_devices = 3, .max_translations = 9 } } },
	{ "3 vCPUs, 1 ITS of small ids",
	  VGIC_PROFILE_NATIVE,
	  3,
	  1,
	  14,
	  { { .device_id_bits = 3, .event_id_bits = 4, .max_devices = 16, .max_translations = 64 } } },
	{ "3 vCPUs, 2 ITSes that share LPIs",
	  VGIC_PROFILE_NATIVE,
	  3,
	  2,
	  14,
	  { { .max_devices = 3, .max_translations = 20 },
	    { .device_id_bits = 32, .event_id_bits = 8, .max_devices = 5, .max_translations = 20 } } },
	{ "5 vCPUs, 16 bits of LPIs", VGIC_PROFILE_NATIVE, 5, 1, 16, { { .max_devices = 6, .max_translations = 30 } } },
	{ "KVM's profile", VGIC_PROFILE_KVM, 2, 1, 14, { { .max_devices = 6, .max_translations = 30 } } },
	{ "direct LPIs", VGIC_PROFILE_NATIVE, 2, 0, 14, { { .max_devices = 0 } } },
};

#define NUM_VARIANTS (sizeof(variants) / sizeof(variants[0]))

enum event {
	EVENT_DELIVERED, /* LPIs acknowledged */
	EVENT_MERGED,
	EVENT_SHARED,
	EVENT_ITS_OFF,
	EVENT_UNMAPPED,
	EVENT_NOWHERE,
	EVENT_HELD,
	EVENT_FROM_TABLE, /* a non-zero word of a pending table was there to be read at an enable */
	EVENT_TO_TABLE,   /* and written at a disable */
	EVENT_MEMORY_ERROR,
	EVENT_MOVED_BY_IMAGE,
	EVENT_MOVED_BY_ATTRIBUTES,
	EVENT_FIRST_ERROR,
	NUM_EVENTS = EVENT_FIRST_ERROR + VGIC_NUM_ITS_ERRORS,
};

static const char *const event_names[EVENT_FIRST_ERROR] = {
	[EVENT_DELIVERED] = "LPIs acknowledged",
	[EVENT_MERGED] = "signals that met a pending LPI",
	[EVENT_SHARED] = "LPIs mapped by two events",
	[EVENT_ITS_OFF] = "signals to an ITS that is off",
	[EVENT_UNMAPPED] = "signals of events that are not mapped",
	[EVENT_NOWHERE] = "signals to collections that are not mapped",
	[EVENT_HELD] = "signals to redistributors with EnableLPIs=0",
	[EVENT_FROM_TABLE] = "pending tables read that were not empty",
	[EVENT_TO_TABLE] = "pending tables written",
	[EVENT_MEMORY_ERROR] = "accesses where there is no memory",
	[EVENT_MOVED_BY_IMAGE] = "moves to another controller by an image",
	[EVENT_MOVED_BY_ATTRIBUTES] = "moves to another controller by KVM's attributes and tables",
};

struct run {
	struct pair pair; /* the first: what the controller hands to callbacks */
	const struct variant *variant;
	struct vgic_its_config its_configs[MAX_ITSES];
	struct vgic_its *its[MAX_ITSES];
	struct vgic_its_stats before[MAX_ITSES]; /* what the ITSes of the controllers before this one have counted */
	struct ref_lpis *ref;
	uint8_t *ram, *ref_ram;
	uint64_t hole, hole_end;
	uint64_t queue_at[MAX_ITSES];
	uint64_t random_state;
	uint64_t writes;
	uint64_t events[NUM_EVENTS];
	char log[LOG_LENGTH][120];
	uint64_t num_logged;
};

static bool trace;
static const char *record_path;
static struct run *the_run;

/* ---- What has been done, and differences ------------------------------------------------------------------ */

__attribute__((format(printf, 2, 3))) static void note(struct run *run, const char *format, ...)
{
	char *line = run->log[run->num_logged++ % LOG_LENGTH];
	va_list args;

	va_start(args, format);
	vsnprintf(line, sizeof(run->log[0]), format, args);
	va_end(args);
	if (trace)
		printf("#   %" PRIu64 " %s\n", run->num_logged - 1, line);
}

/* A line among those of the pair, of the same form: see pair_record(). */
static void record(const struct run *run, const char *kind, uint32_t its, uint64_t where, unsigned how, uint64_t value)
{
	if (run->pair.record)
		fprintf(run->pair.record, "%s %" PRIu32 " %" PRIu64 " %u %" PRIu64 "\n", kind, its, where, how, value);
}

static void print_log(const struct run *run)
{
	const uint64_t first = run->num_logged > LOG_LENGTH ? run->num_logged - LOG_LENGTH : 0;

	printf("# %s: the last of %" PRIu64 " operations on ITSes, seed %" PRIu64 "\n", run->variant->name,
	       run->num_logged, run->pair.seed);
	for (uint64_t i = first; i < run->num_logged; i++)
		printf("#   %" PRIu64 " %s\n", i, run->log[i % LOG_LENGTH]);
}

/* The pair ends the program at a difference that it finds; what the ITSes had been told belongs to it. */
static void print_log_at_exit(void)
{
	if (the_run)
		print_log(the_run);
	fflush(stdout);
}

__attribute__((format(printf, 2, 3), noreturn)) static void differ(struct run *run, const char *format, ...)
{
	va_list args;

	printf("# ");
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	printf("\nBail out! libvgic and the reference differ (%s, --seed %" PRIu64 ")\n", run->variant->name,
	       run->pair.seed);
	exit(1);
}

/* ---- Random numbers ------------------------------------------------------------------------------------------ */

static uint64_t random_next(struct run *run)
{
	uint64_t z = run->random_state += 0x9e3779b97f4a7c15ull;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return z ^ (z >> 31);
}

static uint32_t random_below(struct run *run, uint32_t bound)
{
	return (uint32_t)(random_next(run) % bound);
}

static bool random_chance(struct run *run, uint32_t percent)
{
	return random_below(run, 100) < percent;
}

static uint32_t random_vcpu(struct run *run)
{
	return random_below(run, run->pair.num_vcpus);
}

static uint32_t random_its(struct run *run)
{
	return random_below(run, run->variant->num_itses);
}

/* Few, at both ends of what there is, and some that are none. */
static uint32_t random_lpi(struct run *run)
{
	const uint32_t end = 1u << run->variant->lpi_id_bits;
	const uint32_t edges[] = { 8191, 8255, 8256, end - 1, end, 0, 32, 1023, UINT32_MAX };

	if (random_chance(run, 12))
		return edges[random_below(run, sizeof(edges) / sizeof(edges[0]))];
	return GIC_FIRST_LPI + random_below(run, 14);
}

static uint32_t random_device(struct run *run)
{
	static const uint32_t odd[] = { 7, 8, 8191, 8192, 16384, 65535, 65536, UINT32_MAX };

	return random_chance(run, 6) ? odd[random_below(run, 8)] : random_below(run, random_chance(run, 80) ? 3 : 6);
}

static uint32_t random_event(struct run *run)
{
	static const uint32_t odd[] = { 1, 2, 15, 16, 255, 256, 8192, 65535, 65536, UINT32_MAX };

	return random_chance(run, 14) ? odd[random_below(run, 10)] : random_below(run, 6);
}

static uint32_t random_icid(struct run *run)
{
	static const uint32_t odd[] = { 8191, 8192, 16384, 65535 };

	return random_chance(run, 6) ? odd[random_below(run, 4)] : random_below(run, 4);
}

static uint64_t random_rdbase(struct run *run)
{
	if (random_chance(run, 6))
		return random_next(run) & 0x7ffffffff;
	return random_chance(run, 4) ? 6 : run->pair.vcpu_configs[random_vcpu(run)].id;
}

/* ---- Guest memory ---------------------------------------------------------------------------------------------- */

static bool ram_has(const struct run *run, uint64_t address, size_t size)
{
	if (address < RAM_BASE || address - RAM_BASE > RAM_SIZE - size)
		return false;
	return address + size <= run->hole || address >= run->hole_end;
}

static uint8_t *ram_of(const struct run *run, const void *opaque)
{
	return opaque == run ? run->ram : run->ref_ram;
}

static int on_guest_read(void *opaque, uint64_t address, void *buffer, size_t size)
{
	if (!ram_has(the_run, address, size))
		return -EFAULT;
	memcpy(buffer, ram_of(the_run, opaque) + (address - RAM_BASE), size);
	return 0;
}

static int on_guest_write(void *opaque, uint64_t address, const void *buffer, size_t size)
{
	if (!ram_has(the_run, address, size))
		return -EFAULT;
	the_run->writes++;
	memcpy(ram_of(the_run, opaque) + (address - RAM_BASE), buffer, size);
	return 0;
}

/* The guest writes: both see it. */
static void poke(struct run *run, uint64_t address, unsigned size, uint64_t value)
{
	for (unsigned i = 0; i < size; i++)
		run->ram[address + i - RAM_BASE] = run->ref_ram[address + i - RAM_BASE] = (uint8_t)(value >> (8 * i));
}

static void poke_byte(struct run *run, uint64_t address, uint8_t value)
{
	record(run, "poke", 0, address, 1, value);
	poke(run, address, 1, value);
}

static void poke_u64(struct run *run, uint64_t address, uint64_t value)
{
	record(run, "poke", 0, address, 8, value);
	poke(run, address, 8, value);
}

/* ---- Both ITSes ---------------------------------------------------------------------------------------------------- */

static void finish_work(struct run *run)
{
	for (int parts = 0; vgic_run_work(run->pair.vgic); parts++) {
		if (parts > 100000)
			differ(run, "work without end");
	}
}

static void its_write(struct run *run, uint32_t its, uint32_t offset, unsigned width, uint64_t value)
{
	int error;

	note(run, "GITS%" PRIu32 "+0x%" PRIx32 " width %u := 0x%" PRIx64, its, offset, width, value);
	record(run, "its-write", its, offset, width, value);
	error = vgic_its_write(run->its[its], offset, width, value);
	finish_work(run);
	if (error != ref_its_write(run->ref, its, offset, width, value))
		differ(run, "the write returned %d", error);
}

static uint64_t its_read(struct run *run, uint32_t its, uint32_t offset, unsigned width)
{
	uint64_t value = 0, ref_value = 0;
	const int error = vgic_its_read(run->its[its], offset, width, &value);

	if (error != ref_its_read(run->ref, its, offset, width, &ref_value))
		differ(run, "GITS%" PRIu32 "+0x%" PRIx32 " width %u returned %d", its, offset, width, error);
	if (value != ref_value)
		differ(run, "GITS%" PRIu32 "+0x%" PRIx32 " width %u reads 0x%" PRIx64 ", the reference 0x%" PRIx64, its,
		       offset, width, value, ref_value);
	return value;
}

/* The statistics of ITSes begin anew there, and are no part of the state: those of the reference go on. */
static void add_stats(struct vgic_its_stats *to, const struct vgic_its_stats *more)
{
	for (int i = 0; i < VGIC_NUM_ITS_ERRORS; i++)
		to->errors[i] += more->errors[i];
	to->commands += more->commands;
	to->dropped_its_off += more->dropped_its_off;
	to->dropped_unmapped_event += more->dropped_unmapped_event;
	to->dropped_unmapped_collection += more->dropped_unmapped_collection;
	to->dropped_lpis_disabled += more->dropped_lpis_disabled;
}

static void compare_stats(struct run *run, uint32_t its)
{
	const struct vgic_its_stats expected = ref_its_stats(run->ref, its);
	struct vgic_its_stats stats = { .size = sizeof(stats) };

	if (vgic_its_get_stats(run->its[its], &stats))
		differ(run, "no statistics");
	add_stats(&stats, &run->before[its]);
	for (int i = 0; i < VGIC_NUM_ITS_ERRORS; i++) {
		if (stats.errors[i] != expected.errors[i])
			differ(run, "ITS %" PRIu32 ": %" PRIu64 " errors %s, the reference %" PRIu64, its,
			       stats.errors[i], vgic_its_error_name((enum vgic_its_error)i), expected.errors[i]);
	}
	if (stats.commands != expected.commands)
		differ(run, "ITS %" PRIu32 ": %" PRIu64 " commands, the reference %" PRIu64, its, stats.commands,
		       expected.commands);
	if (stats.num_devices != expected.num_devices || stats.num_translations != expected.num_translations)
		differ(run, "ITS %" PRIu32 ": %u devices and %u events, the reference %u and %u", its,
		       stats.num_devices, stats.num_translations, expected.num_devices, expected.num_translations);
	if (stats.dropped_its_off != expected.dropped_its_off ||
	    stats.dropped_unmapped_event != expected.dropped_unmapped_event ||
	    stats.dropped_unmapped_collection != expected.dropped_unmapped_collection ||
	    stats.dropped_lpis_disabled != expected.dropped_lpis_disabled)
		differ(run, "ITS %" PRIu32 ": signals were dropped for other reasons", its);
}

static void compare(struct run *run)
{
	pair_compare(&run->pair);
	for (uint32_t i = 0; i < run->variant->num_itses; i++)
		compare_stats(run, i);
}

static void compare_all(struct run *run)
{
	for (uint32_t i = 0; i < run->variant->num_itses; i++) {
		for (uint32_t offset = 0; offset < 0x200; offset += 4)
			its_read(run, i, offset, 4);
		for (uint32_t offset = GIC_ID_FIRST; offset < 0x10100; offset += 4)
			its_read(run, i, offset, 4);
		pair_compare_counters(&run->pair);
	}
	for (uint32_t i = 0; memcmp(run->ram, run->ref_ram, RAM_SIZE) != 0 && i < RAM_SIZE; i++) {
		if (run->ram[i] != run->ref_ram[i])
			differ(run, "guest memory 0x%" PRIx64 " has 0x%02x, the reference 0x%02x", RAM_BASE + i,
			       run->ram[i], run->ref_ram[i]);
	}
	pair_compare_all(&run->pair);
	compare(run);
}

/* ---- A sane guest's set-up --------------------------------------------------------------------------------------------- */

static void set_up_tables(struct run *run, uint32_t its)
{
	const uint64_t indirect = random_chance(run, 30) ? GITS_BASER_INDIRECT : 0;

	its_write(run, its, GITS_CBASER, 8, GITS_CBASER_VALID | QUEUE(its));
	its_write(run, its, GITS_BASER0, 8, GITS_BASER_VALID | indirect | DEVICE_TABLE(its) | random_below(run, 2));
	its_write(run, its, GITS_BASER1, 8, GITS_BASER_VALID | COLLECTION_TABLE(its) | random_below(run, 2));
	poke_u64(run, DEVICE_TABLE(its), GITS_LEVEL1_VALID | LEVEL2_TABLE(2 * its));
	poke_u64(run, DEVICE_TABLE(its) + 8, LEVEL2_TABLE(2 * its + 1));
	its_write(run, its, GITS_CTLR, 4, GITS_CTLR_ENABLED);
	run->queue_at[its] = its_read(run, its, GITS_CWRITER, 8);
}

static void redist_write(struct run *run, uint32_t vcpu, uint32_t offset, unsigned width, uint64_t value)
{
	note(run, "GICR%" PRIu32 "+0x%" PRIx32 " width %u := 0x%" PRIx64, vcpu, offset, width, value);
	pair_write(&run->pair, vcpu, offset, width, value);
	finish_work(run);
}

static void set_up_vcpu(struct run *run, uint32_t vcpu)
{
	struct pair *pair = &run->pair;

	pair_icc_write(pair, vcpu, VGIC_ICC_PMR_EL1, 0xf8);
	pair_icc_write(pair, vcpu, VGIC_ICC_IGRPEN1_EL1, 1);
	pair_icc_write(pair, vcpu, VGIC_ICC_AP1R0_EL1, 0);
	redist_write(run, vcpu, GICR_PROPBASER, 8, PROPERTY_TABLE | (run->variant->lpi_id_bits - 1));
	redist_write(run, vcpu, GICR_PENDBASER, 8,
		     PENDING_TABLE(vcpu) | (random_chance(run, 50) ? GICR_PENDBASER_PTZ : 0));
	redist_write(run, vcpu, GICR_CTLR, 4, GICR_CTLR_ENABLE_LPIS);
}

static void set_up(struct run *run)
{
	pair_write(&run->pair, PAIR_DIST, GICD_CTLR, 4, GICD_CTLR_ENABLE_GRP0 | GICD_CTLR_ENABLE_GRP1);
	for (uint32_t i = 0; i < 64; i++)
		poke_byte(run, PROPERTY_TABLE + i, (uint8_t)(random_next(run) & 0xf8) | LPI_ENABLED);
	for (uint32_t v = 0; v < run->pair.num_vcpus; v++)
		set_up_vcpu(run, v);
	for (uint32_t i = 0; i < run->variant->num_itses; i++)
		set_up_tables(run, i);
}

/* ---- Commands ---------------------------------------------------------------------------------------------------------------- */

static void place(struct run *run, uint32_t its, uint64_t dw0, uint64_t dw1, uint64_t dw2, uint64_t dw3)
{
	const uint64_t size = ((its_read(run, its, GITS_CBASER, 8) & 0xff) + 1) * GITS_QUEUE_PAGE;
	const uint64_t address = QUEUE(its) + run->queue_at[its] % 0x10000;

	note(run, "ITS %" PRIu32 " at 0x%" PRIx64 ": %" PRIx64 " %" PRIx64 " %" PRIx64 " %" PRIx64, its,
	     run->queue_at[its], dw0, dw1, dw2, dw3);
	record(run, "command", its, 0, 0, dw0);
	record(run, "command", its, 1, 0, dw1);
	record(run, "command", its, 2, 0, dw2);
	record(run, "command", its, 3, 0, dw3);
	poke(run, address, 8, dw0);
	poke(run, address + 8, 8, dw1);
	poke(run, address + 16, 8, dw2);
	poke(run, address + 24, 8, dw3);
	run->queue_at[its] = (run->queue_at[its] + ITS_CMD_SIZE) % size;
}

static void place_random(struct run *run, uint32_t its)
{
	static const uint8_t opcodes[] = {
		ITS_CMD_MAPD,  ITS_CMD_MAPC,   ITS_CMD_MAPC,    ITS_CMD_MAPI,  ITS_CMD_MAPTI, ITS_CMD_MAPTI,
		ITS_CMD_MAPTI, ITS_CMD_MAPTI,  ITS_CMD_MAPTI,   ITS_CMD_MAPTI, ITS_CMD_MOVI,  ITS_CMD_MOVI,
		ITS_CMD_INT,   ITS_CMD_INT,    ITS_CMD_CLEAR,   ITS_CMD_INV,   ITS_CMD_INV,   ITS_CMD_INVALL,
		ITS_CMD_SYNC,  ITS_CMD_MOVALL, ITS_CMD_DISCARD,
	};
	const uint64_t opcode = random_chance(run, 96) ? opcodes[random_below(run, sizeof(opcodes))] :
							 random_next(run) & 0xff;
	uint32_t device = random_device(run), event = random_event(run);
	const uint64_t valid = random_chance(run, 80) ? ITS_CMD_VALID : 0;
	uint64_t dw1, dw2 = random_icid(run), dw3 = 0;

	if (random_chance(run, 2)) {
		place(run, its, random_next(run), random_next(run), random_next(run), random_next(run));
		return;
	}
	/* Mostly of an event that is mapped; what maps one must not have it so easy. */
	if (opcode != ITS_CMD_MAPTI && opcode != ITS_CMD_MAPD && random_chance(run, 60))
		ref_its_some_event(run->ref, its, random_below(run, 64), &device, &event);
	dw1 = event;
	switch (opcode) {
	case ITS_CMD_MAPD:
		dw1 = random_chance(run, 90) ? 2 + random_below(run, 2) : random_below(run, 32);
		dw2 = (random_chance(run, 95) ? ITT + 0x100ull * random_below(run, 256) :
						random_next(run) & 0xfffffffffff00) |
		      valid;
		break;
	case ITS_CMD_MAPC:
		dw2 |= random_rdbase(run) << 16 | valid;
		break;
	case ITS_CMD_MAPTI:
		dw1 |= (uint64_t)random_lpi(run) << 32;
		break;
	case ITS_CMD_MAPI:
		dw1 = random_chance(run, 70) ? random_lpi(run) : random_event(run);
		break;
	case ITS_CMD_MOVALL:
		dw2 = random_rdbase(run) << 16;
		dw3 = random_rdbase(run) << 16;
		break;
	case ITS_CMD_SYNC:
		dw2 = random_rdbase(run) << 16;
		break;
	default:
		break;
	}
	place(run, its, opcode | (uint64_t)device << 32, dw1, dw2, dw3);
}

static void op_commands(struct run *run)
{
	const uint32_t its = random_its(run);

	for (uint32_t n = random_below(run, 4) + 1; n > 0; n--)
		place_random(run, its);
	its_write(run, its, GITS_CWRITER, 8, run->queue_at[its]);
}

/* ---- Signals and handlers ------------------------------------------------------------------------------------------------------ */

static void signal_both(struct run *run, uint32_t its, uint32_t device, uint32_t event)
{
	int result;

	note(run, "signal of ITS %" PRIu32 " device %" PRIu32 " event %" PRIu32, its, device, event);
	record(run, "signal", its, device, 0, event);
	result = vgic_its_signal(run->its[its], device, event);
	if (result != ref_its_signal(run->ref, its, device, event))
		differ(run, "the signal returned %d", result);
}

static void op_msi(struct run *run)
{
	const uint32_t its = random_its(run), device = random_device(run);

	signal_both(run, its, device, random_event(run));
}

/* One that is mapped, if there is one. */
static void op_mapped_msi(struct run *run)
{
	const uint32_t its = random_its(run);
	uint32_t device, event;

	if (ref_its_some_event(run->ref, its, random_below(run, 64), &device, &event))
		signal_both(run, its, device, event);
}

static void op_direct(struct run *run)
{
	if (run->variant->num_itses == 0 || random_chance(run, 5))
		redist_write(run, random_vcpu(run), random_chance(run, 75) ? GICR_SETLPIR : GICR_CLRLPIR,
			     random_chance(run, 50) ? 8 : 4, random_lpi(run));
}

static void op_acknowledge(struct run *run)
{
	const uint32_t start = random_vcpu(run);

	for (uint32_t i = 0; i < run->pair.num_vcpus; i++) {
		const uint32_t vcpu = (start + i) % run->pair.num_vcpus;
		uint64_t intid;

		if (!pair_lines(&run->pair, vcpu) && random_chance(run, 90))
			continue;
		intid = pair_icc_read(&run->pair, vcpu, VGIC_ICC_IAR1_EL1);
		if (intid == GIC_SPURIOUS)
			continue;
		note(run, "vCPU %" PRIu32 " acknowledges %" PRIu64, vcpu, intid);
		run->events[EVENT_DELIVERED] += intid >= GIC_FIRST_LPI;
		pair_compare(&run->pair);
		if (random_chance(run, 95))
			pair_icc_write(&run->pair, vcpu, VGIC_ICC_EOIR1_EL1, intid);
		return;
	}
}

/* ---- Redistributors --------------------------------------------------------------------------------------------------------------- */

static bool table_is_empty(const struct run *run, uint32_t vcpu)
{
	for (uint32_t i = 1024; i < 1024 + 16; i++) {
		if (run->ram[PENDING_TABLE(vcpu) - RAM_BASE + i])
			return false;
	}
	return true;
}

static void op_enable_lpis(struct run *run)
{
	const uint32_t vcpu = random_vcpu(run);
	const bool was_enabled = ref_lpis_enabled(run->ref, vcpu);
	const bool enable = random_chance(run, 65);
	const uint64_t writes = run->writes;
	const bool empty = table_is_empty(run, vcpu);

	redist_write(run, vcpu, GICR_CTLR, 4, enable);
	if (enable && !was_enabled)
		run->events[EVENT_FROM_TABLE] += !empty;
	else if (!enable && was_enabled)
		run->events[EVENT_TO_TABLE] += run->writes != writes;
}

static void op_invalidate(struct run *run)
{
	const uint32_t vcpu = random_vcpu(run);

	if (random_chance(run, 60))
		redist_write(run, vcpu, GICR_INVLPIR + (random_chance(run, 5) ? 4 : 0), 4, random_lpi(run));
	else
		redist_write(run, vcpu, GICR_INVALLR, random_chance(run, 50) ? 8 : 4, random_next(run));
	pair_read(&run->pair, vcpu, GICR_SYNCR, 4);
}

static void op_table_registers(struct run *run)
{
	const uint32_t vcpu = random_vcpu(run);
	const uint64_t bits = random_chance(run, 70) ? run->variant->lpi_id_bits - 1 : random_below(run, 32);

	if (random_chance(run, 40))
		redist_write(run, vcpu, GICR_PROPBASER, 8,
			     (random_chance(run, 90) ? PROPERTY_TABLE : random_next(run) & 0xffffffffff000) | bits);
	else if (random_chance(run, 80))
		redist_write(run, vcpu, GICR_PENDBASER, 8,
			     (random_chance(run, 90) ? PENDING_TABLE(vcpu) : random_next(run)) |
				     (random_chance(run, 30) ? GICR_PENDBASER_PTZ : 0));
	else
		redist_write(run, vcpu, GICR_PENDBASER + 4 * random_below(run, 2), 4, random_next(run));
	pair_read(&run->pair, vcpu, GICR_PROPBASER, 8);
	pair_read(&run->pair, vcpu, GICR_PENDBASER, 8);
}

/* ---- Tables in guest memory --------------------------------------------------------------------------------------------------------- */

static void op_property(struct run *run)
{
	const uint32_t lpi = random_below(run, 16);
	const uint8_t property = (uint8_t)random_next(run);

	note(run, "property of %" PRIu32 " := 0x%02x", GIC_FIRST_LPI + lpi, property);
	poke_byte(run, PROPERTY_TABLE + lpi, random_chance(run, 75) ? property | LPI_ENABLED : property);
}

static void op_pending_bits(struct run *run)
{
	const uint32_t vcpu = random_vcpu(run);
	const uint64_t address = PENDING_TABLE(vcpu) + 1024 + random_below(run, 3);
	const uint8_t bits = (uint8_t)random_next(run);

	note(run, "pending table of vCPU %" PRIu32 ", byte 0x%" PRIx64 " := 0x%02x", vcpu, address & 0xffff, bits);
	poke_byte(run, address, bits);
}

static void op_level1(struct run *run)
{
	const uint32_t its = random_its(run), entry = random_below(run, 3);
	const uint64_t value = random_chance(run, 90) ? LEVEL2_TABLE(random_below(run, 4)) :
							random_next(run) & 0xfffffffff0000;

	note(run, "level 1 of ITS %" PRIu32 ", entry %" PRIu32, its, entry);
	poke_u64(run, DEVICE_TABLE(its) + 8ull * entry, random_chance(run, 80) ? value | GITS_LEVEL1_VALID : value);
}

static void op_hole(struct run *run)
{
	const uint64_t places[] = { PROPERTY_TABLE, PENDING_TABLE(0), DEVICE_TABLE(0), LEVEL2_TABLE(0), ITT };

	run->hole = run->hole_end = 0;
	record(run, "hole", 0, 0, 0, 0);
	if (!random_chance(run, 40))
		return;
	run->hole = places[random_below(run, 5)];
	run->hole_end = run->hole + 0x1000;
	record(run, "hole", 0, run->hole, 0, 0);
	note(run, "no memory from 0x%" PRIx64, run->hole);
}

/* The queue where there is no memory: nothing is executed. */
static void op_queue_hole(struct run *run)
{
	const uint32_t its = random_its(run);

	place_random(run, its);
	run->hole = QUEUE(its) + random_below(run, 0x1000);
	run->hole_end = QUEUE(its) + 0x1000;
	note(run, "no memory from 0x%" PRIx64, run->hole);
	its_write(run, its, GITS_CWRITER, 8, run->queue_at[its]);
	run->hole = run->hole_end = 0;
}

/* ---- Registers of the ITS -------------------------------------------------------------------------------------------------------------- */

static void op_its_enable(struct run *run)
{
	const uint32_t its = random_its(run);

	its_write(run, its, GITS_CTLR, 4, random_chance(run, 70) ? GITS_CTLR_ENABLED : random_next(run) & ~1ull);
	its_read(run, its, GITS_CTLR, 4);
}

static void op_its_tables(struct run *run)
{
	const uint32_t its = random_its(run);

	if (random_chance(run, 60))
		its_write(run, its, GITS_CTLR, 4, 0);
	if (random_chance(run, 60))
		its_write(run, its, GITS_BASER0 + 8 * random_below(run, 2), 8,
			  random_chance(run, 50) ? 0 : random_next(run));
	if (random_chance(run, 15))
		its_write(run, its, GITS_CBASER, 8, QUEUE(its));
	if (random_chance(run, 95))
		set_up_tables(run, its);
}

static void op_any_register(struct run *run)
{
	const uint32_t its = random_its(run);
	const uint32_t offset = random_chance(run, 50) ? random_below(run, 0x140) :
							 random_below(run, VGIC_ITS_FRAME_SIZE);
	const unsigned width = 1u << random_below(run, 4);
	const uint32_t aligned = random_chance(run, 80) ? offset & ~(width - 1) : offset;

	if (random_chance(run, 50)) {
		its_read(run, its, aligned, width);
		return;
	}
	/* Of the queue's registers only the test's own places are of use. */
	if (aligned >= GITS_CBASER - 8 && aligned < GITS_CREADR)
		return;
	its_write(run, its, aligned, width, random_next(run));
}

static void op_cwriter(struct run *run)
{
	const uint32_t its = random_its(run);

	/* Somewhere past the end, or where it is. */
	its_write(run, its, GITS_CWRITER, 8,
		  random_chance(run, 50) ? 0x1000 + 0x20ull * random_below(run, 100) : run->queue_at[its]);
	its_read(run, its, GITS_CREADR, 8);
}

/* ---- The rest -------------------------------------------------------------------------------------------------------------------------------- */

static void op_masks(struct run *run)
{
	const uint32_t vcpu = random_vcpu(run);

	switch (random_below(run, 5)) {
	case 0:
		pair_write(&run->pair, PAIR_DIST, GICD_CTLR, 4, random_chance(run, 70) ? 3 : random_below(run, 4));
		break;
	case 1:
		pair_icc_write(&run->pair, vcpu, VGIC_ICC_IGRPEN1_EL1, random_chance(run, 80));
		break;
	case 2:
		pair_icc_write(&run->pair, vcpu, VGIC_ICC_AP1R0_EL1, 0);
		break;
	case 3:
		pair_icc_write(&run->pair, vcpu, random_chance(run, 80) ? VGIC_ICC_EOIR1_EL1 : VGIC_ICC_CTLR_EL1,
			       random_chance(run, 50) ? random_lpi(run) : random_below(run, 4));
		break;
	default:
		pair_icc_write(&run->pair, vcpu, VGIC_ICC_PMR_EL1,
			       random_chance(run, 70) ? 0xf8 : random_next(run) & 0xff);
		break;
	}
}

static void op_repair(struct run *run)
{
	run->hole = run->hole_end = 0;
	set_up_vcpu(run, random_vcpu(run));
	pair_write(&run->pair, PAIR_DIST, GICD_CTLR, 4, GICD_CTLR_ENABLE_GRP0 | GICD_CTLR_ENABLE_GRP1);
}

static void op_repair_its(struct run *run)
{
	const uint32_t its = random_its(run);

	run->hole = run->hole_end = 0;
	if (!(its_read(run, its, GITS_CTLR, 4) & GITS_CTLR_ENABLED))
		set_up_tables(run, its);
}

static void op_move(struct run *run)
{
	note(run, "saved and restored");
	pair_move(&run->pair);
	compare_all(run);
}

/* ---- Into another controller ------------------------------------------------------------------------------------------ */

static void move_on(struct run *run, enum pair_way way)
{
	note(run, "goes on in another controller, by %s", way == PAIR_BY_IMAGE ? "an image" : "attributes");
	for (uint32_t i = 0; i < run->variant->num_itses; i++) {
		struct vgic_its_stats stats = { .size = sizeof(stats) };

		vgic_its_get_stats(run->its[i], &stats);
		add_stats(&run->before[i], &stats);
	}
	pair_move_on(&run->pair, way, random_next(run));
	for (uint32_t i = 0; i < run->variant->num_itses; i++)
		run->its[i] = vgic_its_by_index(run->pair.vgic, i);
	/* The tables that were saved are in the guest's memory, wherever it goes on. */
	if (way == PAIR_BY_ATTRIBUTES) {
		memcpy(run->ref_ram, run->ram, RAM_SIZE);
		pair_save_tables(&run->pair); /* these are compared with what the first one has written */
	}
	run->events[way == PAIR_BY_IMAGE ? EVENT_MOVED_BY_IMAGE : EVENT_MOVED_BY_ATTRIBUTES]++;
	compare(run);
	compare_all(run);
}

static void op_move_on(struct run *run)
{
	move_on(run, PAIR_BY_IMAGE);
}

/*
 * By attributes only what the guest's tables can hold is moved: what is mapped by a guest that keeps its devices' memory
 * apart, maps each LPI once, gives the ITS the tables for it, and does not let MOVALL alone part an LPI from its collection,
 * which is where a table says that it is. Such a guest is made here, and moved several times.
 */
#define SANE_DEVICES 3u
#define SANE_EVENTS  3u
#define SANE_ICIDS   3u

static void run_sane(struct run *run, uint32_t its)
{
	its_write(run, its, GITS_CWRITER, 8, run->queue_at[its]);
}

static uint32_t sane_lpi(uint32_t its, uint32_t device, uint32_t event)
{
	return GIC_FIRST_LPI + (its * SANE_DEVICES + device) * SANE_EVENTS + event;
}

static void place_sane(struct run *run, uint32_t its, uint64_t opcode)
{
	const uint64_t device = random_below(run, SANE_DEVICES);
	const uint32_t event = random_below(run, SANE_EVENTS);
	const uint64_t icid = random_below(run, SANE_ICIDS);
	const uint64_t rdbase = (uint64_t)run->pair.vcpu_configs[random_vcpu(run)].id << 16;

	switch (opcode) {
	case ITS_CMD_MAPC:
		place(run, its, opcode, 0, icid | rdbase | ITS_CMD_VALID, 0);
		break;
	case ITS_CMD_MAPTI:
		place(run, its, opcode | device << 32, event | (uint64_t)sane_lpi(its, (uint32_t)device, event) << 32,
		      icid, 0);
		break;
	case ITS_CMD_INVALL:
		place(run, its, opcode, 0, icid, 0);
		break;
	default:
		place(run, its, opcode | device << 32, event, icid, 0);
		break;
	}
}

static void set_up_sane(struct run *run)
{
	run->hole = run->hole_end = 0;
	pair_reset(&run->pair);
	set_up(run);
	for (uint32_t its = 0; its < run->variant->num_itses; its++) {
		poke_u64(run, DEVICE_TABLE(its) + 16, 0); /* an entry of level 1 that the hostile guest may have left */
		for (uint64_t icid = 0; icid < SANE_ICIDS; icid++)
			place(run, its, ITS_CMD_MAPC, 0,
			      icid | (uint64_t)run->pair.vcpu_configs[random_vcpu(run)].id << 16 | ITS_CMD_VALID, 0);
		for (uint64_t device = 0; device < SANE_DEVICES; device++)
			place(run, its, ITS_CMD_MAPD | device << 32, 3,
			      (ITT + 0x1000 * (its * SANE_DEVICES + device)) | ITS_CMD_VALID, 0);
		for (unsigned i = 0; i < 2 * SANE_DEVICES * SANE_EVENTS; i++)
			place_sane(run, its, ITS_CMD_MAPTI);
		run_sane(run, its);
	}
}

static void step_sane(struct run *run)
{
	static const uint8_t opcodes[] = {
		ITS_CMD_MAPTI, ITS_CMD_MAPTI, ITS_CMD_MAPTI,  ITS_CMD_MOVI, ITS_CMD_MAPC,    ITS_CMD_INT,
		ITS_CMD_INT,   ITS_CMD_CLEAR, ITS_CMD_INVALL, ITS_CMD_INV,  ITS_CMD_DISCARD, ITS_CMD_SYNC,
	};
	const uint32_t its = run->variant->num_itses ? random_its(run) : 0;

	switch (random_below(run, 8)) {
	case 0:
	case 1:
		op_acknowledge(run);
		break;
	case 2:
		op_property(run);
		break;
	case 3:
		if (random_chance(run, 20))
			op_enable_lpis(run);
		break;
	case 4:
	case 5:
		if (run->variant->num_itses) {
			place_sane(run, its, opcodes[random_below(run, sizeof(opcodes))]);
			run_sane(run, its);
		} else {
			op_direct(run);
		}
		break;
	default:
		if (run->variant->num_itses)
			signal_both(run, its, random_below(run, SANE_DEVICES), random_below(run, SANE_EVENTS));
		else
			op_direct(run);
	}
	compare(run);
}

static void op_move_by_attributes(struct run *run)
{
	set_up_sane(run);
	for (unsigned move = 0; move < 4; move++) {
		for (unsigned step = 10 + random_below(run, 30); step > 0; step--)
			step_sane(run);
		move_on(run, PAIR_BY_ATTRIBUTES);
	}
}

static void op_reset(struct run *run)
{
	note(run, "reset of all");
	pair_reset(&run->pair);
	compare_all(run);
	set_up(run);
}

static const struct {
	unsigned weight;
	void (*run)(struct run *run);
	bool needs_its;
} operations[] = {
	{ 300, op_commands, true },
	{ 60, op_msi, true },
	{ 220, op_mapped_msi, true },
	{ 250, op_acknowledge, false },
	{ 60, op_enable_lpis, false },
	{ 30, op_invalidate, false },
	{ 12, op_table_registers, false },
	{ 40, op_property, false },
	{ 25, op_pending_bits, false },
	{ 12, op_level1, true },
	{ 12, op_hole, false },
	{ 5, op_queue_hole, true },
	{ 15, op_its_enable, true },
	{ 10, op_its_tables, true },
	{ 20, op_any_register, true },
	{ 5, op_cwriter, true },
	{ 15, op_masks, false },
	{ 40, op_repair, false },
	{ 40, op_repair_its, true },
	{ 60, op_direct, false },
	{ 1, op_reset, false },
	{ 3, op_move, false },
	{ 6, op_move_on, false },
	{ 3, op_move_by_attributes, false },
};

static void run_operation(struct run *run)
{
	unsigned total = 0, pick;

	for (size_t i = 0; i < sizeof(operations) / sizeof(operations[0]); i++)
		total += operations[i].weight;
	pick = random_below(run, total);
	for (size_t i = 0; i < sizeof(operations) / sizeof(operations[0]); i++) {
		if (pick >= operations[i].weight) {
			pick -= operations[i].weight;
			continue;
		}
		if (!operations[i].needs_its || run->variant->num_itses)
			operations[i].run(run);
		return;
	}
}

/* ---- Runs, and what has happened in them ----------------------------------------------------------------------------------------------------------- */

static void add_events(const struct run *run, uint64_t *events)
{
	for (int i = 0; i < NUM_EVENTS; i++)
		events[i] += run->events[i];
	events[EVENT_MERGED] += ref_lpis_merged(run->ref);
	events[EVENT_SHARED] += ref_lpis_shared(run->ref);
	events[EVENT_MEMORY_ERROR] += ref_get_stats(run->pair.ref)->guest_errors[VGIC_GUEST_MEMORY];
	for (uint32_t i = 0; i < run->variant->num_itses; i++) {
		const struct vgic_its_stats stats = ref_its_stats(run->ref, i);

		events[EVENT_ITS_OFF] += stats.dropped_its_off;
		events[EVENT_UNMAPPED] += stats.dropped_unmapped_event;
		events[EVENT_NOWHERE] += stats.dropped_unmapped_collection;
		events[EVENT_HELD] += stats.dropped_lpis_disabled;
		for (int e = 0; e < VGIC_NUM_ITS_ERRORS; e++)
			events[EVENT_FIRST_ERROR + e] += stats.errors[e];
	}
}

static void run_variant(const struct variant *variant, uint64_t seed, unsigned steps, uint64_t *events)
{
	struct run *run = calloc(1, sizeof(*run));

	if (!run)
		abort();
	run->ram = calloc(1, RAM_SIZE);
	run->ref_ram = calloc(1, RAM_SIZE);
	if (!run->ram || !run->ref_ram)
		abort();
	the_run = run;
	run->variant = variant;
	run->random_state = seed;
	pair_configure(&run->pair, variant->profile, variant->num_vcpus);
	run->pair.name = variant->name;
	run->pair.seed = seed;
	run->pair.config.num_redist_regions = 0;
	run->pair.config.features |= VGIC_FEATURE_LPIS;
	run->pair.config.num_spis = 32;
	run->pair.config.lpi_id_bits = variant->lpi_id_bits;
	memcpy(run->its_configs, variant->its, sizeof(variant->its));
	run->pair.config.num_itses = variant->num_itses;
	run->pair.config.itses = run->its_configs;
	run->pair.config.ops.guest_read = on_guest_read;
	run->pair.config.ops.guest_write = on_guest_write;
	if (record_path)
		pair_record(&run->pair, record_path);
	pair_create(&run->pair);
	run->ref = ref_lpis(run->pair.ref);
	ref_lpis_use_memory(run->ref, NULL);
	for (uint32_t i = 0; i < variant->num_itses; i++)
		run->its[i] = vgic_its_by_index(run->pair.vgic, i);

	compare_all(run);
	set_up(run);
	for (unsigned step = 0; step < steps; step++) {
		run_operation(run);
		compare(run);
		if (step % STEPS_PER_CHECK == STEPS_PER_CHECK - 1)
			compare_all(run);
	}
	compare_all(run);
	add_events(run, events);
	the_run = NULL;
	pair_destroy(&run->pair);
	free(run->ram);
	free(run->ref_ram);
	free(run);
}

static bool all_events_happened(const uint64_t *events)
{
	bool all = true;

	for (int i = 0; i < NUM_EVENTS; i++) {
		printf("# %10" PRIu64 " %s\n", events[i],
		       i < EVENT_FIRST_ERROR ? event_names[i] :
					       vgic_its_error_name((enum vgic_its_error)(i - EVENT_FIRST_ERROR)));
		all &= events[i] != 0;
	}
	return all;
}

static void print_result(bool ok, unsigned long number, const char *name)
{
	printf("%s %lu - %s\n", ok ? "ok" : "not ok", number, name);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "seed", required_argument, NULL, 's' },   { "steps", required_argument, NULL, 'n' },
		{ "config", required_argument, NULL, 'c' }, { "trace", no_argument, NULL, 't' },
		{ "record", required_argument, NULL, 'r' }, { NULL, 0, NULL, 0 },
	};
	uint64_t events[NUM_EVENTS] = { 0 };
	uint64_t seed = 0x1069;
	unsigned long steps = DEFAULT_STEPS, first = 0, last = NUM_VARIANTS - 1;
	bool ok;
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (option) {
		case 's':
			seed = strtoull(optarg, NULL, 0);
			break;
		case 'n':
			steps = strtoul(optarg, NULL, 0);
			break;
		case 'c':
			first = last = strtoul(optarg, NULL, 0);
			break;
		case 't':
			trace = true;
			break;
		case 'r':
			record_path = optarg;
			break;
		default:
			return 2;
		}
	}
	if (last >= NUM_VARIANTS) {
		fprintf(stderr, "--config is 0 to %zu\n", NUM_VARIANTS - 1);
		return 2;
	}
	atexit(print_log_at_exit);
	printf("1..%lu\n# seed %" PRIu64 ", %lu steps\n", last - first + 2, seed, steps);
	for (unsigned long i = first; i <= last; i++) {
		run_variant(&variants[i], seed, (unsigned)steps, events);
		print_result(true, i - first + 1, variants[i].name);
	}
	ok = all_events_happened(events);
	/* One configuration or few steps cannot show everything. */
	if (steps < MIN_FOR_EVENTS || first == last)
		ok = true;
	print_result(ok, last - first + 2, "everything of interest has happened");
	return ok ? 0 : 1;
}
