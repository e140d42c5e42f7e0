/* SPDX-License-Identifier: MIT */
/*
 * ITS tables in guest memory: KVM's layout to the bit, what is left of earlier
 * times, moves between controllers, and tables that were made by an enemy.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <vgic/state.h>

#include "its_guest.h"

#define DTE_VALID (1ull << 63)
#define CTE_VALID (1ull << 63)

/* ---- Allocations: the linker sends the library's through here -------------------------------- */

static unsigned long num_allocations, fail_at;
static long num_live;

void *__real_port_alloc_zeroed(size_t size, size_t align);
void __real_port_free(void *memory);
void *__wrap_port_alloc_zeroed(size_t size, size_t align);
void __wrap_port_free(void *memory);

void *__wrap_port_alloc_zeroed(size_t size, size_t align)
{
	void *memory = ++num_allocations == fail_at ? NULL : __real_port_alloc_zeroed(size, align);

	num_live += memory != NULL;
	return memory;
}

void __wrap_port_free(void *memory)
{
	num_live -= memory != NULL;
	__real_port_free(memory);
}

/* ---- Helpers --------------------------------------------------------------------------------------- */

static int try_save(struct machine *m)
{
	return vgic_its_attr_set(its_of(m, 0), VGIC_GRP_CTRL, VGIC_CTRL_ITS_SAVE_TABLES, 0);
}

static int try_restore(struct machine *m)
{
	return vgic_its_attr_set(its_of(m, 0), VGIC_GRP_CTRL, VGIC_CTRL_ITS_RESTORE_TABLES, 0);
}

static void save(struct machine *m)
{
	assert_int_equal(try_save(m), 0);
}

/* Off, restored, on again: as a VMM does it in the same machine. */
static int off_and_restore(struct machine *m)
{
	int err;

	its_write(m, 0, GITS_CTLR, 4, 0);
	finish_work(m);
	err = try_restore(m);
	its_write(m, 0, GITS_CTLR, 4, GITS_CTLR_ENABLED);
	return err;
}

static uint64_t dte(uint32_t device)
{
	return ram_u64(DEVICE_TABLE(0) + 8ull * device);
}

static uint64_t cte(uint32_t n)
{
	return ram_u64(COLLECTION_TABLE(0) + 8ull * n);
}

static uint64_t ite(uint32_t itt, uint32_t event)
{
	return ram_u64(ITT(itt) + 8ull * event);
}

static void set_dte(uint32_t device, uint64_t value)
{
	ram_set_u64(DEVICE_TABLE(0) + 8ull * device, value);
}

static void set_cte(uint32_t n, uint64_t value)
{
	ram_set_u64(COLLECTION_TABLE(0) + 8ull * n, value);
}

static void set_ite(uint32_t itt, uint32_t event, uint64_t value)
{
	ram_set_u64(ITT(itt) + 8ull * event, value);
}

static uint64_t make_dte(uint64_t next, uint32_t itt, uint32_t bits)
{
	return DTE_VALID | next << 49 | ITT(itt) >> 8 << 5 | (bits - 1);
}

static uint64_t make_ite(uint64_t next, uint64_t lpi, uint64_t icid)
{
	return next << 48 | lpi << 16 | icid;
}

static uint64_t make_cte(uint64_t rdbase, uint64_t icid)
{
	return CTE_VALID | rdbase << 16 | icid;
}

static uint32_t num_mapped(struct machine *m)
{
	return its_stats(m, 0).num_translations;
}

/* ---- Layout -------------------------------------------------------------------------------------------- */

/* The values that the vGIC of a Linux 6.1 kernel wrote for these commands. */
static void entries_are_those_of_kvm(void **state)
{
	struct machine *m = its_boot(2, 1);

	(void)state;
	its_run(m, 0, cmd_mapc(5, 1, true));
	its_run(m, 0, cmd_mapd(7, 4, 0x40500000, true));
	its_run(m, 0, cmd_mapti(7, 3, 8200, 5));
	save(m);
	assert_int_equal(dte(7), 0x80000000080a0004ull);
	assert_int_equal(cte(0), 0x8000000000010005ull);
	assert_int_equal(cte(1), 0);
	assert_int_equal(ram_u64(0x40500000 + 8 * 3), 0x20080005ull);
	assert_int_equal(ram.num_oversized, 0);
	machine_stop(m);
}

static void entries_are_chained_in_order_of_their_ids(void **state)
{
	static const uint32_t devices[] = { 300, 2, 8191, 17 };
	static const uint32_t events[] = { 30, 1, 0, 31, 2, 15 };
	struct machine *m = its_boot(1, 1);
	uint32_t lpi = 8192;

	(void)state;
	map_collection(m, 0, 0);
	for (uint32_t d = 0; d < 4; d++) {
		its_run(m, 0, cmd_mapd(devices[d], 4, ITT(d), true));
		for (uint32_t e = 0; e < 6; e++)
			map_event(m, devices[d], events[e], lpi++, 0);
	}
	save(m);
	assert_int_equal(dte(2), make_dte(15, 1, 5));
	assert_int_equal(dte(17), make_dte(283, 3, 5));
	assert_int_equal(dte(300), make_dte(7891, 0, 5));
	assert_int_equal(dte(8191), make_dte(0, 2, 5));
	for (uint32_t d = 0; d < 4; d++) {
		assert_int_equal(ite(d, 0), make_ite(1, 8194 + 6 * d, 0));
		assert_int_equal(ite(d, 1), make_ite(1, 8193 + 6 * d, 0));
		assert_int_equal(ite(d, 2), make_ite(13, 8196 + 6 * d, 0));
		assert_int_equal(ite(d, 15), make_ite(15, 8197 + 6 * d, 0));
		assert_int_equal(ite(d, 30), make_ite(1, 8192 + 6 * d, 0));
		assert_int_equal(ite(d, 31), make_ite(0, 8195 + 6 * d, 0));
	}
	assert_int_equal(off_and_restore(m), 0);
	assert_int_equal(num_mapped(m), 24);
	for (uint32_t d = 0; d < 4; d++) {
		for (uint32_t e = 0; e < 6; e++) {
			assert_int_equal(msi(m, devices[d], events[e]), 1);
			expect_only(m, 0, 8192 + 6 * d + e);
		}
	}
	machine_stop(m);
}

/* `next` has 14 bits in a device's entry: behind a longer way a reader goes one by one, over entries that must be clear. */
static void a_gap_too_long_for_next_is_cleared(void **state)
{
	struct machine *m = its_describe(1, 1);

	(void)state;
	machine_start(m);
	its_set_up(m);
	its_write(m, 0, GITS_CTLR, 4, 0);
	finish_work(m);
	its_write(m, 0, GITS_BASER0, 8, GITS_BASER_VALID | DEVICE_TABLE(0) | 7); /* eight pages: 2^16 DeviceIDs */
	its_write(m, 0, GITS_CTLR, 4, GITS_CTLR_ENABLED);
	map_collection(m, 0, 0);
	map_device(m, 5, 5);
	map_device(m, 60000, 5);
	set_dte(4, make_dte(0, 9, 5));          /* read one by one before the first */
	set_dte(6, make_dte(0, 9, 5));          /* jumped over */
	set_dte(5 + 0x3fff, make_dte(0, 9, 5)); /* where the jump ends */
	set_dte(40000, make_dte(0, 9, 5));      /* and behind it */
	set_dte(60001, make_dte(0, 9, 5));      /* behind the last */
	save(m);
	assert_int_equal(dte(5) >> 49 & 0x3fff, 0x3fff);
	assert_int_equal(dte(60000) >> 49 & 0x3fff, 0);
	assert_int_equal(dte(4), 0);
	assert_int_equal(dte(5 + 0x3fff), 0);
	assert_int_equal(dte(40000), 0);
	assert_int_equal(off_and_restore(m), 0);
	assert_int_equal(its_stats(m, 0).num_devices, 2);
	machine_stop(m);
}

/* ---- What is left of earlier times --------------------------------------------------------------------- */

static void what_was_unmapped_since_the_last_save_stays_so(void **state)
{
	struct machine *m = its_boot(1, 1);

	(void)state;
	map_collection(m, 0, 0);
	for (uint32_t d = 1; d <= 3; d++) {
		map_device(m, d, 5);
		for (uint32_t e = 0; e < 4; e++)
			map_event(m, d, e, 8192 + 10 * d + e, 0);
	}
	save(m);
	its_run(m, 0, cmd_event(ITS_CMD_DISCARD, 1, 0)); /* the first, one in the middle, all of a device */
	its_run(m, 0, cmd_event(ITS_CMD_DISCARD, 2, 2));
	for (uint32_t e = 0; e < 4; e++)
		its_run(m, 0, cmd_event(ITS_CMD_DISCARD, 3, e));
	save(m);
	assert_int_equal(off_and_restore(m), 0);
	assert_int_equal(its_stats(m, 0).num_devices, 3);
	assert_int_equal(num_mapped(m), 6);
	assert_int_equal(msi(m, 1, 0), 0);
	assert_int_equal(msi(m, 1, 1), 1);
	assert_int_equal(msi(m, 2, 2), 0);
	assert_int_equal(msi(m, 2, 3), 1);
	assert_int_equal(msi(m, 3, 0), 0);
	/* The first device, then all of them, and their collection. */
	its_run(m, 0, cmd_mapd(1, 0, 0, false));
	save(m);
	assert_int_equal(off_and_restore(m), 0);
	assert_int_equal(its_stats(m, 0).num_devices, 2);
	its_run(m, 0, cmd_mapd(2, 0, 0, false));
	its_run(m, 0, cmd_mapd(3, 0, 0, false));
	its_run(m, 0, cmd_mapc(0, 0, false));
	save(m);
	assert_int_equal(off_and_restore(m), 0);
	assert_int_equal(its_stats(m, 0).num_devices, 0);
	assert_int_equal(cte(0), 0);
	machine_stop(m);
}

/* A second save of the same writes the same; a restored ITS saves what it was given. */
static void a_save_of_a_restore_is_the_same(void **state)
{
	struct machine *m = its_boot(2, 1);
	uint8_t *before = malloc(RAM_SIZE);

	(void)state;
	map_collection(m, 0, 1);
	map_collection(m, 77, 0);
	for (uint32_t d = 0; d < 6; d++) {
		its_run(m, 0, cmd_mapd(100 * d, 6, ITT(d), true));
		for (uint32_t e = d; e < 128; e += d + 1)
			map_event(m, 100 * d, e, 8192 + 128 * d + e, e % 3 ? 77 : 0);
	}
	save(m);
	memcpy(before, ram.bytes, RAM_SIZE);
	save(m);
	assert_memory_equal(before, ram.bytes, RAM_SIZE);
	assert_int_equal(off_and_restore(m), 0);
	save(m);
	assert_memory_equal(before, ram.bytes, RAM_SIZE);
	free(before);
	machine_stop(m);
}

static void only_the_tables_are_written(void **state)
{
	struct machine *m = its_boot(1, 1);
	uint8_t *before = malloc(RAM_SIZE);

	(void)state;
	map_collection(m, 3, 0);
	map_device(m, 9, 5);
	map_event(m, 9, 4, 8300, 3);
	memcpy(before, ram.bytes, RAM_SIZE);
	save(m);
	for (uint64_t i = 0; i < RAM_SIZE; i += 8) {
		const uint64_t address = RAM_BASE + i;

		if (address == DEVICE_TABLE(0) + 72 || address == COLLECTION_TABLE(0) || address == ITT(9) + 32)
			continue;
		assert_memory_equal(before + i, ram.bytes + i, 8);
	}
	free(before);
	machine_stop(m);
}

/* ---- Collections ------------------------------------------------------------------------------------------ */

static void unmapped_collections_are_kept(void **state)
{
	struct machine *m = its_boot(2, 1);

	(void)state;
	map_device(m, 1, 5);
	map_event(m, 1, 0, 8192, 3); /* never mapped */
	map_collection(m, 4, 0);
	map_event(m, 1, 1, 8193, 4);
	its_run(m, 0, cmd_mapc(4, 0, false)); /* unmapped again */
	map_collection(m, 6, 1);              /* without events */
	save(m);
	assert_int_equal(cte(0), make_cte(0xffffffff, 3));
	assert_int_equal(cte(1), make_cte(0xffffffff, 4));
	assert_int_equal(cte(2), make_cte(1, 6));
	assert_int_equal(cte(3), 0);
	assert_int_equal(off_and_restore(m), 0);
	assert_int_equal(msi(m, 1, 0), 0);
	assert_int_equal(msi(m, 1, 1), 0);
	map_collection(m, 3, 1);
	map_collection(m, 4, 0);
	assert_int_equal(msi(m, 1, 0), 1);
	expect_only(m, 1, 8192);
	assert_int_equal(msi(m, 1, 1), 1);
	expect_only(m, 0, 8193);
	map_event(m, 1, 2, 8194, 6);
	assert_int_equal(msi(m, 1, 2), 1);
	expect_only(m, 1, 8194);
	machine_stop(m);
}

static void an_event_may_name_a_collection_that_is_not_in_the_table(void **state)
{
	struct machine *m = its_boot(1, 1);

	(void)state;
	set_dte(1, make_dte(0, 1, 5));
	set_ite(1, 0, make_ite(0, 8192, 9));
	assert_int_equal(off_and_restore(m), 0);
	assert_int_equal(msi(m, 1, 0), 0);
	map_collection(m, 9, 0);
	assert_int_equal(msi(m, 1, 0), 1);
	machine_stop(m);
}

/* A full table has no entry for the end; one more would be past it. */
static void a_full_collection_table_has_no_end_entry(void **state)
{
	struct machine *m = its_boot(1, 1);

	(void)state;
	for (uint32_t icid = 0; icid < 8192; icid++) {
		its_place(m, 0, cmd_mapc(icid, 0, true));
		if (icid % 100 == 99 || icid == 8191) {
			its_submit(m, 0);
			finish_work(m);
		}
	}
	ram_set_u64(COLLECTION_TABLE(0) + 65536, 0x1234);
	save(m);
	assert_int_equal(cte(8191), make_cte(0, 8191));
	assert_int_equal(ram_u64(COLLECTION_TABLE(0) + 65536), 0x1234);
	assert_int_equal(off_and_restore(m), 0);
	machine_stop(m);
}

/* RDbase is the vCPU's id, whatever order they were created in. */
static void redistributors_are_named_by_their_ids(void **state)
{
	static const uint32_t ids[] = { 2, 65535, 1 };
	struct machine *m = its_describe(3, 1);

	(void)state;
	for (uint32_t v = 0; v < 3; v++)
		m->vcpus[v].id = ids[v];
	machine_start(m);
	its_set_up(m);
	map_device(m, 1, 5);
	for (uint32_t v = 0; v < 3; v++) {
		its_run(m, 0, cmd_mapc(v, ids[v], true));
		map_event(m, 1, v, 8192 + v, v);
	}
	save(m);
	for (uint32_t v = 0; v < 3; v++)
		assert_int_equal(cte(v), make_cte(ids[v], v));
	assert_int_equal(off_and_restore(m), 0);
	for (uint32_t v = 0; v < 3; v++) {
		assert_int_equal(msi(m, 1, v), 1);
		expect_only(m, v, 8192 + v);
	}
	set_cte(0, make_cte(0, 0)); /* an index is no id */
	assert_int_equal(off_and_restore(m), -EINVAL);
	machine_stop(m);
}

/* ---- Indirect tables --------------------------------------------------------------------------------------- */

static struct machine *boot_indirect(void)
{
	struct machine *m = its_boot(1, 1);

	its_use_two_levels(m, 0, 1);
	for (uint32_t n = 0; n < 5; n++) { /* of the eight pages that 2^16 DeviceIDs have */
		if (n != 2)
			ram_set_u64(DEVICE_TABLE(0) + 8 * n, GITS_LEVEL1_VALID | LEVEL2_TABLE(n));
	}
	map_collection(m, 0, 0);
	return m;
}

static uint64_t level2(uint32_t device)
{
	return LEVEL2_TABLE(device / 8192) + 8ull * (device % 8192);
}

static void indirect_tables_are_followed(void **state)
{
	static const uint32_t devices[] = { 8191, 3 * 8192, 3 * 8192 + 8191, 4 * 8192 + 7 };
	struct machine *m = boot_indirect();

	(void)state;
	/* Left from earlier: in a page without a device, and in front of the first of a page. */
	ram_set_u64(level2(8192 + 100), make_dte(0, 9, 5));
	ram_set_u64(level2(4 * 8192 + 6), make_dte(0, 9, 5));
	for (uint32_t d = 0; d < 4; d++) {
		its_run(m, 0, cmd_mapd(devices[d], 4, ITT(d), true));
		map_event(m, devices[d], 0, 8192 + d, 0);
	}
	save(m);
	assert_int_equal(ram_u64(level2(8191)), make_dte(0x3fff, 0, 5));
	assert_int_equal(ram_u64(level2(3 * 8192)), make_dte(8191, 1, 5));
	assert_int_equal(ram_u64(level2(3 * 8192 + 8191)), make_dte(8, 2, 5));
	assert_int_equal(ram_u64(level2(4 * 8192 + 7)), make_dte(0, 3, 5));
	assert_int_equal(ram_u64(level2(8192 + 100)), 0);
	assert_int_equal(ram_u64(level2(4 * 8192 + 6)), 0);
	assert_int_equal(off_and_restore(m), 0);
	assert_int_equal(its_stats(m, 0).num_devices, 4);
	for (uint32_t d = 0; d < 4; d++)
		assert_int_equal(msi(m, devices[d], 0), 1);
	/* The guest has taken a page away: what is in it cannot be saved. */
	ram_set_u64(DEVICE_TABLE(0) + 8 * 3, 0);
	assert_int_equal(try_save(m), -EINVAL);
	machine_stop(m);
}

static void an_empty_indirect_table_is_cleared(void **state)
{
	struct machine *m = boot_indirect();

	(void)state;
	for (uint32_t n = 0; n < 5; n++)
		ram_set_u64(LEVEL2_TABLE(n) + 8 * n, make_dte(0, 1, 5));
	save(m);
	for (uint32_t n = 0; n < 5; n++)
		assert_int_equal(ram_u64(LEVEL2_TABLE(n) + 8 * n), n == 2 ? make_dte(0, 1, 5) : 0);
	machine_stop(m);
}

/* Level 1 names one page again and again: the work is bounded, and the ITS stays as it is. */
static void endless_tables_are_refused(void **state)
{
	struct machine *m = its_describe(1, 1);

	(void)state;
	its_configs[0].device_id_bits = 32;
	machine_start(m);
	its_set_up(m);
	its_use_two_levels(m, 0, 16);
	for (uint32_t n = 0; n < 16 * 8192; n++)
		ram_set_u64(DEVICE_TABLE(0) + 8 * n, GITS_LEVEL1_VALID | LEVEL2_TABLE(63));
	assert_int_equal(try_save(m), -E2BIG);
	assert_int_equal(off_and_restore(m), -E2BIG);
	machine_stop(m);
}

/* ---- Tables that are not there ------------------------------------------------------------------------------- */

static void tables_that_are_not_valid_are_left_alone(void **state)
{
	struct machine *m = machine_start(its_describe(1, 1));
	uint64_t reads = ram.num_reads;

	(void)state;
	save(m);
	assert_int_equal(try_restore(m), 0);
	assert_int_equal(ram.num_writes, 0);
	assert_int_equal(ram.num_reads, reads);
	machine_stop(m);
}

static void a_restore_while_the_its_is_on_is_busy(void **state)
{
	struct machine *m = its_boot(1, 1);

	(void)state;
	save(m);
	assert_int_equal(try_restore(m), -EBUSY);
	machine_stop(m);
}

/* ---- A machine worth attacking ---------------------------------------------------------------------------------- */

static struct machine *boot_victim(void)
{
	struct machine *m = its_boot(2, 1);

	map_collection(m, 1, 1);
	map_collection(m, 2, 0);
	for (uint32_t d = 1; d <= 3; d++) {
		map_device(m, d, 5);
		for (uint32_t e = 1; e < 5; e++)
			map_event(m, d, e, 8192 + 10 * d + e, 1 + e % 2);
	}
	return m;
}

/* Still exactly what boot_victim() made. */
static void expect_victim_unharmed(struct machine *m)
{
	assert_int_equal(its_stats(m, 0).num_devices, 3);
	assert_int_equal(num_mapped(m), 12);
	for (uint32_t d = 1; d <= 3; d++) {
		for (uint32_t e = 1; e < 5; e++) {
			assert_int_equal(msi(m, d, e), 1);
			expect_only(m, e % 2 ? 0 : 1, 8192 + 10 * d + e);
		}
	}
}

#define REFUSED(m, change)                                                                                             \
	do {                                                                                                           \
		memcpy(ram.bytes, saved, RAM_SIZE);                                                                    \
		change;                                                                                                \
		assert_int_equal(off_and_restore(m), -EINVAL);                                                         \
		expect_victim_unharmed(m);                                                                             \
	} while (0)

static void every_wrong_field_is_refused_and_nothing_is_changed(void **state)
{
	struct machine *m = boot_victim();
	uint8_t *saved = malloc(RAM_SIZE);

	(void)state;
	save(m);
	memcpy(saved, ram.bytes, RAM_SIZE);
	for (uint32_t bits = 17; bits <= 32; bits++) /* more EventID bits than the ITS has */
		REFUSED(m, set_dte(3, make_dte(0, 3, bits)));
	REFUSED(m, set_dte(3, make_dte(8192 - 3, 3, 5))); /* the next device is past the table */
	REFUSED(m, set_dte(1, make_dte(0x3fff, 1, 5)));
	REFUSED(m, set_ite(3, 4, make_ite(28, 8226, 1))); /* the next event is past the ITT */
	REFUSED(m, set_ite(3, 4, make_ite(0xffff, 8226, 1)));
	REFUSED(m, set_ite(3, 1, make_ite(1, 1, 1))); /* LPIs that are none */
	REFUSED(m, set_ite(3, 1, make_ite(1, 8191, 1)));
	REFUSED(m, set_ite(3, 1, make_ite(1, 65536, 1)));
	REFUSED(m, set_ite(3, 1, make_ite(1, 0xffffffff, 1)));
	REFUSED(m, set_ite(3, 1, make_ite(1, 8223, 8192))); /* an ICID past the table */
	REFUSED(m, set_cte(1, make_cte(0, 8192)));
	REFUSED(m, set_cte(1, make_cte(0, 1))); /* a collection twice */
	REFUSED(m, set_cte(0, make_cte(2, 1))); /* redistributors that do not exist */
	REFUSED(m, set_cte(0, make_cte(0xfffffffe, 1)));
	REFUSED(m, set_cte(0, make_cte(0xfffffffffull, 1)));
	REFUSED(m, set_cte(2, make_cte(0x10000, 3)));
	memcpy(ram.bytes, saved, RAM_SIZE);
	assert_int_equal(off_and_restore(m), 0);
	expect_victim_unharmed(m);
	free(saved);
	machine_stop(m);
}

static void an_itt_that_is_not_in_memory_is_efault(void **state)
{
	struct machine *m = boot_victim();

	(void)state;
	save(m);
	set_dte(3, DTE_VALID | 0xfffffffffffull << 5 | 4);
	assert_int_equal(off_and_restore(m), -EFAULT);
	expect_victim_unharmed(m);
	set_dte(3, make_dte(0, 3, 5));
	ram.hole = ITT(2);
	ram.hole_end = ITT(2) + 8;
	assert_int_equal(off_and_restore(m), -EFAULT);
	assert_int_equal(try_save(m), -EFAULT);
	ram.hole = ram.hole_end = 0;
	expect_victim_unharmed(m);
	machine_stop(m);
}

/* Each read of guest memory fails in turn. */
static void a_restore_survives_every_failed_read(void **state)
{
	struct machine *m = boot_victim();
	uint64_t reads;

	(void)state;
	save(m);
	its_write(m, 0, GITS_CTLR, 4, 0);
	finish_work(m);
	reads = ram.num_reads;
	assert_int_equal(try_restore(m), 0);
	reads = ram.num_reads - reads;
	assert_true(reads >= 6);
	for (uint64_t n = 1; n <= reads; n++) {
		ram.fail_read = ram.fail_reads_to = ram.num_reads + n;
		assert_int_equal(try_restore(m), -EFAULT);
		ram.fail_read = ram.fail_reads_to = 0;
		its_write(m, 0, GITS_CTLR, 4, GITS_CTLR_ENABLED);
		expect_victim_unharmed(m);
		its_write(m, 0, GITS_CTLR, 4, 0);
		finish_work(m);
	}
	machine_stop(m);
}

static void a_save_survives_failed_accesses(void **state)
{
	struct machine *m = boot_victim();
	uint64_t reads = ram.num_reads;

	(void)state;
	save(m);
	reads = ram.num_reads - reads;
	assert_true(reads >= 4);
	for (uint64_t n = 1; n <= reads; n++) {
		ram.fail_read = ram.fail_reads_to = ram.num_reads + n;
		assert_int_equal(try_save(m), -EFAULT);
		ram.fail_read = ram.fail_reads_to = 0;
	}
	ram.fail_writes = true;
	assert_int_equal(try_save(m), -EFAULT);
	ram.fail_writes = false;
	expect_victim_unharmed(m);
	save(m);
	assert_int_equal(off_and_restore(m), 0);
	expect_victim_unharmed(m);
	machine_stop(m);
}

/* Each allocation fails in turn; nothing is lost, neither memory nor a mapping. */
static void both_survive_every_failed_allocation(void **state)
{
	struct machine *m = boot_victim();
	unsigned long needed;
	long live;

	(void)state;
	live = num_live;
	num_allocations = 0;
	save(m);
	needed = num_allocations;
	assert_true(needed >= 4);
	for (unsigned long n = 1; n <= needed; n++) {
		num_allocations = 0;
		fail_at = n;
		assert_int_equal(try_save(m), -ENOMEM);
		assert_int_equal(num_live, live);
	}
	fail_at = 0;
	its_write(m, 0, GITS_CTLR, 4, 0);
	finish_work(m);
	num_allocations = 0;
	assert_int_equal(try_restore(m), 0);
	needed = num_allocations;
	assert_true(needed >= 4);
	for (unsigned long n = 1; n <= needed; n++) {
		num_allocations = 0;
		fail_at = n;
		assert_int_equal(try_restore(m), -ENOMEM);
		assert_int_equal(num_live, live);
	}
	fail_at = 0;
	its_write(m, 0, GITS_CTLR, 4, GITS_CTLR_ENABLED);
	expect_victim_unharmed(m);
	machine_stop(m);
}

/* The host's memory is bounded by the configuration, whatever the tables say. */
static void more_than_there_is_room_for_is_refused(void **state)
{
	struct machine *m = its_describe(1, 1);

	(void)state;
	its_configs[0].max_devices = 3;
	its_configs[0].max_translations = 10;
	machine_start(m);
	its_set_up(m);
	map_collection(m, 0, 0);
	for (uint32_t d = 0; d < 4; d++)
		set_dte(d, make_dte(d < 3, d, 5));
	assert_int_equal(off_and_restore(m), -E2BIG);
	set_dte(2, make_dte(0, 2, 5));
	assert_int_equal(off_and_restore(m), 0);
	for (uint32_t e = 0; e < 11; e++)
		set_ite(1, e, make_ite(e < 10, 8192 + e, 0));
	assert_int_equal(off_and_restore(m), -E2BIG);
	assert_int_equal(its_stats(m, 0).num_devices, 3);
	assert_int_equal(num_mapped(m), 0);
	set_ite(1, 9, make_ite(0, 8201, 0));
	assert_int_equal(off_and_restore(m), 0);
	assert_int_equal(num_mapped(m), 10);
	machine_stop(m);
}

/* Numbers that are the same in every run. */
static uint64_t random_state;

static uint32_t random_below(uint32_t n)
{
	random_state = random_state * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(random_state >> 33) % n;
}

/* Bits of the tables change at random: a restore takes them, or refuses them and changes nothing. */
static void random_tables_are_taken_whole_or_not_at_all(void **state)
{
	const uint64_t places[] = { DEVICE_TABLE(0) + 8,
				    DEVICE_TABLE(0) + 16,
				    DEVICE_TABLE(0) + 24,
				    COLLECTION_TABLE(0),
				    COLLECTION_TABLE(0) + 8,
				    ITT(1) + 8,
				    ITT(1) + 16,
				    ITT(2) + 24,
				    ITT(3) + 32 };
	const uint32_t num_places = sizeof(places) / sizeof(places[0]);
	struct machine *m = boot_victim();
	unsigned taken = 0, refused = 0;

	(void)state;
	save(m);
	for (unsigned run = 0; run < 4000; run++) {
		const uint32_t first = random_below(num_places), second = random_below(num_places);
		const uint64_t saved[2] = { ram_u64(places[first]), ram_u64(places[second]) };
		int err;

		ram_set_u64(places[first], saved[0] ^ 1ull << random_below(64));
		ram_set_u64(places[second], ram_u64(places[second]) ^ 1ull << random_below(64));
		err = off_and_restore(m);
		ram_set_u64(places[second], saved[1]);
		ram_set_u64(places[first], saved[0]);
		if (err) {
			refused++;
			expect_victim_unharmed(m);
			continue;
		}
		taken++;
		assert_int_equal(off_and_restore(m), 0);
		expect_victim_unharmed(m);
	}
	assert_true(taken > 100);
	assert_true(refused > 100);
	machine_stop(m);
}

/* ---- Configuration and pending state -------------------------------------------------------------------------------- */

static void lpis_are_configured_as_the_table_says(void **state)
{
	struct machine *m = boot_victim();

	(void)state;
	save(m);
	set_property(8192 + 11, 0);
	set_property(8192 + 12, 0x20 | LPI_ENABLED);
	assert_int_equal(off_and_restore(m), 0);
	assert_int_equal(msi(m, 1, 1), 1);
	expect_nothing(m);
	assert_int_equal(msi(m, 1, 2), 1);
	assert_int_equal(lines_of(m, 1), VGIC_LINE_IRQ);
	assert_int_equal(ack1(m, 1), 8204);
	assert_int_equal(icc_read(m, 1, VGIC_ICC_RPR_EL1), 0x20);
	eoi1(m, 1, 8204);
	machine_stop(m);
}

/* As in KVM: the pending table of the collection's redistributor decides, and no other. */
static void lpis_are_pending_as_the_table_of_their_redistributor_says(void **state)
{
	struct machine *m = boot_victim();

	(void)state;
	save(m);
	table_set_pending(0, 8192 + 11);   /* its own: event 1 is in collection 2, at vCPU 0 */
	table_set_pending(1, 8192 + 13);   /* event 3 as well: not its redistributor */
	assert_int_equal(msi(m, 1, 4), 1); /* pending now, but not in the table */
	assert_int_equal(off_and_restore(m), 0);
	expect_only(m, 0, 8192 + 11);
	machine_stop(m);
}

/* With EnableLPIs=0 it is the set of it that brings the pending state back. */
static void a_redistributor_that_is_off_reads_its_table_later(void **state)
{
	struct machine *m = boot_victim();

	(void)state;
	save(m);
	redist_write(m, 0, GICR_CTLR, 0);
	finish_work(m);
	table_set_pending(0, 8192 + 11);
	assert_int_equal(off_and_restore(m), 0);
	expect_nothing(m);
	redist_write(m, 0, GICR_CTLR, GICR_CTLR_ENABLE_LPIS);
	finish_work(m);
	expect_only(m, 0, 8192 + 11);
	machine_stop(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(entries_are_those_of_kvm),
		cmocka_unit_test(entries_are_chained_in_order_of_their_ids),
		cmocka_unit_test(a_gap_too_long_for_next_is_cleared),
		cmocka_unit_test(what_was_unmapped_since_the_last_save_stays_so),
		cmocka_unit_test(a_save_of_a_restore_is_the_same),
		cmocka_unit_test(only_the_tables_are_written),
		cmocka_unit_test(unmapped_collections_are_kept),
		cmocka_unit_test(an_event_may_name_a_collection_that_is_not_in_the_table),
		cmocka_unit_test(a_full_collection_table_has_no_end_entry),
		cmocka_unit_test(redistributors_are_named_by_their_ids),
		cmocka_unit_test(indirect_tables_are_followed),
		cmocka_unit_test(an_empty_indirect_table_is_cleared),
		cmocka_unit_test(endless_tables_are_refused),
		cmocka_unit_test(tables_that_are_not_valid_are_left_alone),
		cmocka_unit_test(a_restore_while_the_its_is_on_is_busy),
		cmocka_unit_test(every_wrong_field_is_refused_and_nothing_is_changed),
		cmocka_unit_test(an_itt_that_is_not_in_memory_is_efault),
		cmocka_unit_test(a_restore_survives_every_failed_read),
		cmocka_unit_test(a_save_survives_failed_accesses),
		cmocka_unit_test(both_survive_every_failed_allocation),
		cmocka_unit_test(more_than_there_is_room_for_is_refused),
		cmocka_unit_test(random_tables_are_taken_whole_or_not_at_all),
		cmocka_unit_test(lpis_are_configured_as_the_table_says),
		cmocka_unit_test(lpis_are_pending_as_the_table_of_their_redistributor_says),
		cmocka_unit_test(a_redistributor_that_is_off_reads_its_table_later),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("state_tables", tests, NULL, NULL);
}
