/* SPDX-License-Identifier: MIT */
/*
 * Memory, the guest's and the host's: tables and queues that are not there, or full
 * of what a hostile guest puts into them, and no allocation after creation.
 */
#include <errno.h>
#include <stdlib.h>

#include "its_guest.h"

/* ---- Allocations: the linker sends the library's through here --------------------------------------- */

static unsigned long num_allocations, fail_at;
static long num_live;
/* What is allocated: room for more pieces than any machine here has. */
static struct piece {
	void *memory; /* NULL: a free place */
	size_t size;
} pieces[512];

void *__real_port_alloc_zeroed(size_t size, size_t align);
void __real_port_free(void *memory);
void *__wrap_port_alloc_zeroed(size_t size, size_t align);
void __wrap_port_free(void *memory);

static struct piece *find_piece(const void *memory)
{
	for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++) {
		if (pieces[i].memory == memory)
			return &pieces[i];
	}
	abort();
}

void *__wrap_port_alloc_zeroed(size_t size, size_t align)
{
	void *memory = ++num_allocations == fail_at ? NULL : __real_port_alloc_zeroed(size, align);

	if (memory) {
		num_live++;
		*find_piece(NULL) = (struct piece){ .memory = memory, .size = size };
	}
	return memory;
}

void __wrap_port_free(void *memory)
{
	if (memory) {
		num_live--;
		find_piece(memory)->memory = NULL;
	}
	__real_port_free(memory);
}

static uint64_t live_bytes(void)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++)
		sum += pieces[i].memory ? pieces[i].size : 0;
	return sum;
}

static void create_without_memory_leaks_nothing(void **state)
{
	struct machine *m = its_describe(3, 3);
	unsigned long needed;

	(void)state;
	for (uint32_t i = 0; i < 3; i++) {
		its_configs[i].max_devices = 10;
		its_configs[i].max_translations = 100;
	}
	num_allocations = 0;
	fail_at = 0;
	machine_start(m);
	needed = num_allocations;
	assert_true(needed > 15);
	vgic_destroy(m->vgic);
	assert_int_equal(num_live, 0);
	for (unsigned long n = 1; n <= needed; n++) {
		struct vgic *untouched = (struct vgic *)m;

		num_allocations = 0;
		fail_at = n;
		m->vgic = untouched;
		assert_int_equal(machine_try_start(m), -ENOMEM);
		assert_ptr_equal(m->vgic, untouched);
		assert_int_equal(num_live, 0);
	}
	fail_at = 0;
	machine_start(m);
	machine_stop(m);
	assert_int_equal(num_live, 0);
}

static void nothing_is_allocated_after_creation(void **state)
{
	struct machine *m = its_describe(2, 2);
	unsigned long at_creation;
	long live;

	(void)state;
	its_configs[0].max_devices = 300;
	its_configs[0].max_translations = 3000;
	machine_start(m);
	at_creation = num_allocations;
	live = num_live;
	its_set_up(m);
	map_collection(m, 0, 0);
	map_collection(m, 1, 1);
	for (uint32_t device = 0; device < 310; device++) {
		its_run(m, 0, cmd_mapd(device, 4, ITT(device % 64), true));
		for (uint32_t event = 0; event < 11; event++)
			its_run(m, 0, cmd_mapti(device, event, 8192 + device * 16 + event, event % 3));
		msi(m, device, 3);
		msi(m, device, 77);
	}
	assert_int_equal(its_stats(m, 0).num_devices, 300);
	assert_int_equal(its_stats(m, 0).num_translations, 3000);
	its_run(m, 0, cmd_movall(0, 1));
	its_run(m, 0, cmd_movi(1, 2, 0));
	its_run(m, 0, cmd_invall(0));
	its_run(m, 0, cmd_mapd(1, 0, 0, false));
	its_run(m, 0, cmd_event(ITS_CMD_DISCARD, 2, 2));
	redist_write(m, 1, GICR_CTLR, 0);
	finish_work(m);
	redist_write_width(m, 1, GICR_PENDBASER, 8, PENDING_TABLE(1));
	lpis_enable(m, 1);
	redist_write_width(m, 1, GICR_INVALLR, 8, 0);
	its_write(m, 0, GITS_CTLR, 4, 0);
	its_write(m, 0, GITS_BASER0, 8, 0);
	finish_work(m);
	assert_int_equal(vgic_reset(m->vgic), 0);
	assert_int_equal(num_allocations, at_creation);
	assert_int_equal(num_live, live);
	machine_stop(m);
	assert_int_equal(num_live, 0);
}

/* ---- Configurations ------------------------------------------------------------------------------------ */

static void expect_create(int result, void (*change)(struct machine *m))
{
	struct machine *m = its_describe(1, 2);

	change(m);
	assert_int_equal(machine_try_start(m), result);
	machine_stop(m);
}

static void change_nothing(struct machine *m)
{
	(void)m;
}

static void change_no_lpis(struct machine *m)
{
	m->config.features &= ~VGIC_FEATURE_LPIS;
}

static void change_no_read(struct machine *m)
{
	m->config.ops.guest_read = NULL;
}

static void change_no_write(struct machine *m)
{
	m->config.ops.guest_write = NULL;
}

static void change_no_array(struct machine *m)
{
	m->config.itses = NULL;
}

static void change_too_many(struct machine *m)
{
	m->config.num_itses = VGIC_MAX_ITSES + 1;
}

static void change_device_bits(struct machine *m)
{
	(void)m;
	its_configs[1].device_id_bits = 33;
}

static void change_event_bits(struct machine *m)
{
	(void)m;
	its_configs[1].event_id_bits = 17;
}

static void change_devices(struct machine *m)
{
	(void)m;
	its_configs[1].max_devices = (1u << 20) + 1;
}

static void change_translations(struct machine *m)
{
	(void)m;
	its_configs[1].max_translations = (1u << 22) + 1;
}

static void change_alignment(struct machine *m)
{
	(void)m;
	its_configs[1].base += 0x1000;
}

static void change_overlap(struct machine *m)
{
	(void)m;
	its_configs[1].base = its_configs[0].base + 0x10000;
}

static void change_overlap_dist(struct machine *m)
{
	m->config.has_dist_base = true;
	m->config.dist_base = its_configs[1].base + 0x10000;
}

static void change_overlap_redist(struct machine *m)
{
	machine_add_region(m, its_configs[1].base + 0x10000, 1);
}

static void change_wrap(struct machine *m)
{
	(void)m;
	its_configs[1].base = UINT64_MAX - 0xffff;
}

static void change_lpi_bits_13(struct machine *m)
{
	m->config.lpi_id_bits = 13;
}

static void change_lpi_bits_21(struct machine *m)
{
	m->config.lpi_id_bits = 21;
}

static void change_overlap_without_base(struct machine *m)
{
	(void)m;
	its_configs[1].base = its_configs[0].base;
	its_configs[1].has_base = false;
}

static void change_smallest(struct machine *m)
{
	(void)m;
	its_configs[0] = (struct vgic_its_config){
		.device_id_bits = 1, .event_id_bits = 1, .max_devices = 1, .max_translations = 1
	};
}

static void create_refuses_what_is_wrong(void **state)
{
	static void (*const wrong[])(struct machine * m) = {
		change_no_lpis,      change_no_read,        change_no_write,    change_no_array,
		change_too_many,     change_device_bits,    change_event_bits,  change_devices,
		change_translations, change_alignment,      change_overlap,     change_overlap_dist,
		change_wrap,         change_overlap_redist, change_lpi_bits_13, change_lpi_bits_21,
	};

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		expect_create(-EINVAL, wrong[i]);
	expect_create(0, change_nothing);
	expect_create(0, change_overlap_without_base);
	expect_create(0, change_smallest);
}

static void smallest_its_works(void **state)
{
	struct machine *m = its_describe(1, 1);

	(void)state;
	its_configs[0].device_id_bits = 1;
	its_configs[0].event_id_bits = 1;
	its_configs[0].max_devices = 1;
	its_configs[0].max_translations = 1;
	machine_start(m);
	its_set_up(m);
	map_collection(m, 0, 0);
	for (int i = 0; i < 10; i++) {
		map_device(m, 1, 1);
		map_event(m, 1, 1, 8192, 0);
		its_run_wrong(m, 0, cmd_mapti(1, 0, 8193, 0), VGIC_ITS_TOO_MANY_TRANSLATIONS);
		its_run_wrong(m, 0, cmd_mapd(0, 0, ITT(0), true), VGIC_ITS_TOO_MANY_DEVICES);
		assert_int_equal(msi(m, 1, 1), 1);
		expect_only(m, 0, 8192);
		its_run(m, 0, cmd_mapd(1, 0, 0, false));
	}
	machine_stop(m);
}

/* ---- How much ------------------------------------------------------------------------------------------------ */

static uint64_t power_of_two_from(uint64_t n)
{
	uint64_t power = 2;

	while (power < n)
		power *= 2;
	return power;
}

/* The formulas of SECURITY.md. */
static uint64_t controller_bytes(uint64_t vcpus, uint64_t highest_id, uint64_t spis, uint64_t lpis)
{
	const uint64_t words = (32 + spis + lpis + 63) / 64, words_over = (words + 63) / 64;

	return 4096 + 64 * (spis + lpis) + vcpus * (3072 + 8 * (words + 64 * words_over)) +
	       64 * power_of_two_from(2 * vcpus) + 4 * power_of_two_from(vcpus) + 2 * (highest_id + 1);
}

static uint64_t its_bytes(uint64_t devices, uint64_t translations)
{
	return 129 * 1024 + 40 * translations + 4 * power_of_two_from(2 * translations) + 32 * devices +
	       4 * power_of_two_from(2 * devices);
}

static void memory_is_what_the_documents_say(void **state)
{
	static const struct {
		uint32_t vcpus, highest_id, spis, lpi_bits, itses, devices, translations;
	} cases[] = {
		{ 1, 0, 32, 14, 0, 0, 0 },           { 1, 65535, 988, 16, 1, 1, 1 },
		{ 3, 2, 256, 16, 3, 1000, 5000 },    { 16, 15, 960, 17, 1, 1024, 65536 },
		{ 33, 100, 64, 20, 2, 65, 1 << 17 }, { 20, 19, 256, 14, 1, 1 << 14, 1025 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct machine *m = its_describe(cases[i].vcpus, cases[i].itses);
		const uint64_t others = live_bytes();
		uint64_t limit, used;

		m->config.num_spis = cases[i].spis;
		m->config.lpi_id_bits = cases[i].lpi_bits;
		m->vcpus[cases[i].vcpus - 1].id = cases[i].highest_id;
		for (uint32_t n = 0; n < cases[i].itses; n++) {
			its_configs[n].max_devices = cases[i].devices;
			its_configs[n].max_translations = cases[i].translations;
		}
		machine_start(m);
		limit = controller_bytes(cases[i].vcpus, cases[i].highest_id, cases[i].spis,
					 (1u << cases[i].lpi_bits) - GIC_FIRST_LPI) +
			cases[i].itses * its_bytes(cases[i].devices, cases[i].translations);
		used = live_bytes() - others;
		assert_true(used <= limit);
		/* Nor is it much less: 4 KiB, and what 3 KiB for a vCPU and 1 KiB for an ITS are too many. */
		assert_true(limit - used <= 4096 + 512 * cases[i].vcpus + 1024 * cases[i].itses);
		machine_stop(m);
		assert_int_equal(live_bytes(), others);
	}
}

/* ---- Guest memory that is not there ------------------------------------------------------------------------ */

static void unread_command_is_not_executed(void **state)
{
	struct machine *m = its_boot(1, 1);
	struct vgic_its_stats stats;

	(void)state;
	its_place(m, 0, cmd_mapd(1, 4, ITT(0), true));
	its_place(m, 0, cmd_mapd(2, 4, ITT(0), true));
	ram.hole = QUEUE(0);
	ram.hole_end = QUEUE(0) + 0x1000;
	its_submit(m, 0);
	stats = its_stats(m, 0);
	assert_int_equal(stats.commands, 0);
	assert_int_equal(stats.num_devices, 0);
	assert_int_equal(stats.errors[VGIC_ITS_QUEUE_NOT_IN_MEMORY], 1);
	assert_int_equal(errors_of(m, VGIC_GUEST_MEMORY), 1);
	/* The rest of the queue is given up; a later one works. */
	assert_int_equal(its_read(m, 0, GITS_CREADR, 8), its_read(m, 0, GITS_CWRITER, 8));
	ram.hole_end = ram.hole;
	map_device(m, 1, 4);
	assert_int_equal(its_stats(m, 0).num_devices, 1);
	machine_stop(m);
}

/* A command of which only a part can be read, in turn each of its words. */
static void half_read_command_is_not_executed(void **state)
{
	(void)state;
	for (unsigned n = 1; n <= 4; n++) {
		struct machine *m = its_boot(1, 1);

		its_place(m, 0, cmd_mapd(1, 4, ITT(0), true));
		ram.fail_read = ram.num_reads + n;
		ram.fail_reads_to = ram.fail_read;
		its_submit(m, 0);
		assert_int_equal(its_stats(m, 0).commands, 0);
		assert_int_equal(its_stats(m, 0).num_devices, 0);
		assert_int_equal(its_errors(m, 0, VGIC_ITS_QUEUE_NOT_IN_MEMORY), 1);
		machine_stop(m);
	}
}

static void queue_may_end_where_memory_ends(void **state)
{
	struct machine *m = its_boot(1, 1);

	(void)state;
	ram.hole = QUEUE(0) + 0x40;
	ram.hole_end = QUEUE(0) + 0x1000;
	its_place(m, 0, cmd_mapd(1, 4, ITT(0), true));
	its_place(m, 0, cmd_mapd(2, 4, ITT(0), true));
	its_place(m, 0, cmd_mapd(3, 4, ITT(0), true));
	its_submit(m, 0);
	assert_int_equal(its_stats(m, 0).num_devices, 2);
	assert_int_equal(its_stats(m, 0).commands, 2);
	assert_int_equal(its_errors(m, 0, VGIC_ITS_QUEUE_NOT_IN_MEMORY), 1);
	machine_stop(m);
}

static void missing_property_table_disables_lpis(void **state)
{
	struct machine *m = its_boot(1, 1);

	(void)state;
	map_collection(m, 0, 0);
	map_device(m, 1, 4);
	ram.hole = PROPERTY_TABLE;
	ram.hole_end = PROPERTY_TABLE + 0x10000;
	map_event(m, 1, 0, 8192, 0);
	assert_int_equal(errors_of(m, VGIC_GUEST_MEMORY), 1);
	assert_int_equal(msi(m, 1, 0), 1);
	expect_nothing(m);
	ram.hole_end = ram.hole;
	its_run(m, 0, cmd_event(ITS_CMD_INV, 1, 0));
	expect_only(m, 0, 8192);
	machine_stop(m);
}

static void missing_pending_table_is_counted(void **state)
{
	struct machine *m = its_boot(1, 1);

	(void)state;
	map_collection(m, 0, 0);
	map_device(m, 1, 4);
	map_event(m, 1, 0, 8192, 0);
	assert_int_equal(msi(m, 1, 0), 1);
	ram.fail_writes = true;
	redist_write(m, 0, GICR_CTLR, 0);
	finish_work(m);
	assert_int_equal(redist_read(m, 0, GICR_CTLR) & (GICR_CTLR_RWP | GICR_CTLR_ENABLE_LPIS), 0);
	assert_int_equal(errors_of(m, VGIC_GUEST_MEMORY), 1);
	assert_false(table_pending(0, 8192));
	expect_nothing(m);
	ram.fail_writes = false;
	ram.hole = PENDING_TABLE(0);
	ram.hole_end = PENDING_TABLE(1);
	redist_write_width(m, 0, GICR_PENDBASER, 8, PENDING_TABLE(0));
	lpis_enable(m, 0);
	/* One word of 64 LPIs at a time. */
	assert_int_equal(errors_of(m, VGIC_GUEST_MEMORY), 1 + (65536 - 8192) / 64);
	expect_nothing(m);
	assert_int_equal(msi(m, 1, 0), 1);
	expect_only(m, 0, 8192);
	machine_stop(m);
}

/* Tables at the very end of the address space: nothing wraps around to its beginning. */
static void tables_at_the_end_of_the_address_space(void **state)
{
	struct machine *m = its_describe(1, 1);

	(void)state;
	machine_start(m);
	machine_open_switches(m);
	redist_write_width(m, 0, GICR_PROPBASER, 8, 0x000ffffffffff000ull | 15);
	redist_write_width(m, 0, GICR_PENDBASER, 8, 0x000fffffffff0000ull);
	lpis_enable(m, 0);
	its_write(m, 0, GITS_CBASER, 8, GITS_CBASER_VALID | QUEUE(0));
	its_write(m, 0, GITS_BASER0, 8, GITS_BASER_VALID | 0x0000fffffffff0ffull);
	its_write(m, 0, GITS_BASER1, 8, GITS_BASER_VALID | 0x0000fffffffff0ffull);
	its_write(m, 0, GITS_CTLR, 4, GITS_CTLR_ENABLED);
	its_run_wrong(m, 0, cmd_mapd(1, 4, ITT(0), true), VGIC_ITS_MAPD_DEVICE_OOR);
	its_write(m, 0, GITS_CTLR, 4, 0);
	its_write(m, 0, GITS_BASER0, 8, GITS_BASER_VALID | GITS_BASER_INDIRECT | 0x0000fffffffff0ffull);
	its_write(m, 0, GITS_CTLR, 4, GITS_CTLR_ENABLED);
	its_run_wrong(m, 0, cmd_mapd(1, 4, ITT(0), true), VGIC_ITS_MAPD_DEVICE_OOR);
	its_write(m, 0, GITS_CTLR, 4, 0);
	its_write(m, 0, GITS_BASER0, 8, GITS_BASER_VALID | DEVICE_TABLE(0));
	its_write(m, 0, GITS_CTLR, 4, GITS_CTLR_ENABLED);
	its_run_wrong(m, 0, cmd_mapd(1, 15, 0x000fffffffffff00ull, true), VGIC_ITS_ITT_NOT_IN_MEMORY);
	map_device(m, 1, 4);
	map_collection(m, 0, 0);
	map_event(m, 1, 0, 65535, 0);
	assert_int_equal(msi(m, 1, 0), 1);
	expect_nothing(m);
	machine_stop(m);
}

/* ---- Each access fails in turn ---------------------------------------------------------------------------------- */

/* Something of everything that reads or writes guest memory. */
static void run_everything(struct machine *m)
{
	static const struct its_cmd nothing;
	const struct its_cmd commands[] = {
		cmd_mapc(0, 0, true),
		cmd_mapc(1, 1, true),
		cmd_mapd(1, 4, ITT(0), true),
		cmd_mapti(1, 0, 8192, 0),
		cmd_mapti(1, 1, 8300, 1),
		cmd_event(ITS_CMD_INT, 1, 0),
		cmd_event(ITS_CMD_INV, 1, 1),
		cmd_invall(0),
		cmd_movi(1, 0, 1),
		cmd_movall(1, 0),
		cmd_event(ITS_CMD_DISCARD, 1, 1),
		nothing,
	};

	lpis_set_up(m);
	its_tables_set_up(m, 0);
	its_write(m, 0, GITS_BASER0, 8, GITS_BASER_VALID | GITS_BASER_INDIRECT | DEVICE_TABLE(0));
	ram_set_u64(DEVICE_TABLE(0), GITS_LEVEL1_VALID | LEVEL2_TABLE(0));
	its_write(m, 0, GITS_CTLR, 4, GITS_CTLR_ENABLED);
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		its_run(m, 0, commands[i]);
	msi(m, 1, 0);
	for (uint32_t v = 0; v < 2; v++) {
		redist_write(m, v, GICR_CTLR, 0);
		finish_work(m);
		table_set_pending(v, 8200 + v);
		redist_write_width(m, v, GICR_PENDBASER, 8, PENDING_TABLE(v));
		lpis_enable(m, v);
		redist_write(m, v, GICR_INVLPIR, 8200);
		redist_write(m, v, GICR_INVALLR, 0);
		finish_work(m);
	}
}

static struct machine *start_small(void)
{
	struct machine *m = its_describe(2, 1);

	m->config.lpi_id_bits = 14;
	its_configs[0].max_devices = 4;
	its_configs[0].max_translations = 16;
	return machine_start(m);
}

/* Whatever fails is counted, nothing breaks, and an ITS that is set up again works. */
static void check_after_failure(struct machine *m)
{
	ram.fail_read = ram.fail_reads_to = 0;
	assert_int_equal(ram.num_oversized, 0);
	assert_true(its_stats(m, 0).num_devices <= 4);
	assert_int_equal(vgic_reset(m->vgic), 0);
	its_set_up(m);
	map_collection(m, 0, 1);
	map_device(m, 1, 4);
	map_event(m, 1, 0, 8192, 0);
	assert_int_equal(msi(m, 1, 0), 1);
	expect_only(m, 1, 8192);
}

static void each_read_may_fail(void **state)
{
	struct machine *m = start_small();
	uint64_t reads;

	(void)state;
	run_everything(m);
	reads = ram.num_reads;
	assert_in_range(reads, 60, 5000);
	assert_int_equal(ram.num_oversized, 0);
	assert_int_equal(errors_of(m, VGIC_GUEST_MEMORY), 0);
	machine_stop(m);
	for (uint64_t n = 1; n <= reads; n++) {
		m = start_small();
		ram.fail_read = ram.fail_reads_to = n;
		run_everything(m);
		/* One failed read is one error: of the memory, or of the command that asked whether it is there. */
		assert_int_equal(errors_of(m, VGIC_GUEST_MEMORY) + its_errors(m, 0, VGIC_ITS_ITT_NOT_IN_MEMORY) +
						 its_errors(m, 0, VGIC_ITS_MAPD_DEVICE_OOR) >=
					 1,
				 1);
		check_after_failure(m);
		machine_stop(m);
	}
}

static void all_reads_may_fail(void **state)
{
	struct machine *m = start_small();

	(void)state;
	ram.fail_read = 1;
	ram.fail_reads_to = UINT64_MAX;
	ram.fail_writes = true;
	run_everything(m);
	assert_int_equal(its_stats(m, 0).commands, 0);
	ram.fail_writes = false;
	check_after_failure(m);
	machine_stop(m);
}

/* ---- Tables full of rubbish --------------------------------------------------------------------------------------- */

static void overwritten_tables_do_no_harm(void **state)
{
	struct machine *m = its_boot(2, 1);

	(void)state;
	map_collection(m, 0, 0);
	map_collection(m, 1, 1);
	map_device(m, 1, 5);
	map_event(m, 1, 0, 8192, 0);
	ram_fill(DEVICE_TABLE(0), 0xff, 0x10000);
	ram_fill(COLLECTION_TABLE(0), 0xff, 0x10000);
	ram_fill(ITT(0), 0xff, 0x80000);
	ram_fill(ITT(1), 0xff, 0x80000);
	assert_int_equal(msi(m, 1, 0), 1);
	expect_only(m, 0, 8192);
	its_run(m, 0, cmd_movi(1, 0, 1));
	assert_int_equal(msi(m, 1, 0), 1);
	expect_only(m, 1, 8192);
	its_run(m, 0, cmd_event(ITS_CMD_DISCARD, 1, 0));
	assert_int_equal(msi(m, 1, 0), 0);
	assert_int_equal(its_all_errors(m, 0), 0);
	machine_stop(m);
}

/* A queue of random bits, over and over: errors are counted and nothing else happens that should not. */
static void random_commands_do_no_harm(void **state)
{
	struct machine *m = its_boot(2, 1);
	uint64_t x = 88172645463325252ull;
	uint64_t placed = 0;

	(void)state;
	for (int round = 0; round < 300; round++) {
		for (int i = 0; i < 100; i++) {
			struct its_cmd cmd;

			for (unsigned d = 0; d < 4; d++) {
				x ^= x << 13;
				x ^= x >> 7;
				x ^= x << 17;
				cmd.dw[d] = x;
			}
			if (i % 2)
				cmd.dw[0] = (cmd.dw[0] & ~0xffull) | (1 + cmd.dw[0] % 15);
			its_place(m, 0, cmd);
			placed++;
		}
		its_submit(m, 0);
		finish_work(m);
	}
	assert_int_equal(its_stats(m, 0).commands, placed);
	assert_true(its_all_errors(m, 0) > placed / 2);
	assert_int_equal(vgic_reset(m->vgic), 0);
	its_set_up(m);
	map_collection(m, 0, 0);
	map_device(m, 1, 5);
	map_event(m, 1, 0, 8192, 0);
	assert_int_equal(msi(m, 1, 0), 1);
	expect_only(m, 0, 8192);
	machine_stop(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(create_without_memory_leaks_nothing),
		cmocka_unit_test(nothing_is_allocated_after_creation),
		cmocka_unit_test(create_refuses_what_is_wrong),
		cmocka_unit_test(smallest_its_works),
		cmocka_unit_test(memory_is_what_the_documents_say),
		cmocka_unit_test(unread_command_is_not_executed),
		cmocka_unit_test(half_read_command_is_not_executed),
		cmocka_unit_test(queue_may_end_where_memory_ends),
		cmocka_unit_test(missing_property_table_disables_lpis),
		cmocka_unit_test(missing_pending_table_is_counted),
		cmocka_unit_test(tables_at_the_end_of_the_address_space),
		cmocka_unit_test(each_read_may_fail),
		cmocka_unit_test(all_reads_may_fail),
		cmocka_unit_test(overwritten_tables_do_no_harm),
		cmocka_unit_test(random_commands_do_no_harm),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("its_memory", tests, NULL, NULL);
}
