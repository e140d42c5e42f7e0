/* SPDX-License-Identifier: MIT */
/*
 * The commands of an ITS: what each does, and every error that it can have. A
 * wrong command is counted under its own name, changes nothing, and the queue goes
 * on behind it.
 */
#include <errno.h>
#include <string.h>

#include "its_guest.h"

#define NUM_LPIS_16 (65536u - GIC_FIRST_LPI)

/* ---- MAPD ----------------------------------------------------------------------------------------- */

static void mapd_device_must_be_in_range(void **state)
{
	struct machine *m = its_describe(1, 1);

	(void)state;
	its_configs[0].device_id_bits = 10;
	machine_start(m);
	its_set_up(m);
	its_run_wrong(m, 0, cmd_mapd(1024, 0, ITT(0), true), VGIC_ITS_MAPD_DEVICE_OOR);
	its_run_wrong(m, 0, cmd_mapd(UINT32_MAX, 0, ITT(0), true), VGIC_ITS_MAPD_DEVICE_OOR);
	its_run_wrong(m, 0, cmd_mapd(1024, 0, ITT(0), false), VGIC_ITS_MAPD_DEVICE_OOR);
	assert_int_equal(its_stats(m, 0).num_devices, 0);
	map_device(m, 1023, 1);
	assert_int_equal(its_stats(m, 0).num_devices, 1);
	machine_stop(m);
}

static void mapd_device_must_be_in_the_flat_table(void **state)
{
	struct machine *m = its_boot(1, 1);

	(void)state;
	its_run_wrong(m, 0, cmd_mapd(8192, 0, ITT(0), true), VGIC_ITS_MAPD_DEVICE_OOR);
	map_device(m, 8191, 1);
	its_write(m, 0, GITS_CTLR, 4, 0);
	its_write(m, 0, GITS_BASER0, 8, GITS_BASER_VALID | DEVICE_TABLE(0) | 1);
	its_write(m, 0, GITS_CTLR, 4, GITS_CTLR_ENABLED);
	map_device(m, 8192, 1);
	map_device(m, 16383, 1);
	its_run_wrong(m, 0, cmd_mapd(16384, 0, ITT(0), true), VGIC_ITS_MAPD_DEVICE_OOR);
	assert_int_equal(its_stats(m, 0).num_devices, 3);
	machine_stop(m);
}

static void mapd_follows_the_indirect_table(void **state)
{
	struct machine *m = its_describe(1, 1);

	(void)state;
	its_configs[0].device_id_bits = 32;
	machine_start(m);
	its_set_up(m);
	its_use_two_levels(m, 0, 1);
	map_collection(m, 0, 0);
	/* A page of level 2 has 8192 entries: DeviceID 8191 is in the first, 8192 in the second. */
	ram_set_u64(DEVICE_TABLE(0), GITS_LEVEL1_VALID | LEVEL2_TABLE(0));
	map_device(m, 8191, 2);
	its_run_wrong(m, 0, cmd_mapd(8192, 1, ITT(1), true), VGIC_ITS_MAPD_DEVICE_OOR);
	ram_set_u64(DEVICE_TABLE(0) + 8, LEVEL2_TABLE(1));
	its_run_wrong(m, 0, cmd_mapd(8192, 1, ITT(1), true), VGIC_ITS_MAPD_DEVICE_OOR);
	ram_set_u64(DEVICE_TABLE(0) + 8, GITS_LEVEL1_VALID | LEVEL2_TABLE(1));
	map_device(m, 8192, 2);
	map_event(m, 8191, 0, 8192, 0);
	map_event(m, 8192, 0, 8193, 0);
	assert_int_equal(msi(m, 8191, 0), 1);
	expect_only(m, 0, 8192);
	assert_int_equal(msi(m, 8192, 0), 1);
	expect_only(m, 0, 8193);
	/* The last entry of level 1, and what would be behind it. */
	ram_set_u64(DEVICE_TABLE(0) + 0xfff8, GITS_LEVEL1_VALID | LEVEL2_TABLE(2));
	map_device(m, 8192u * 8192u - 1, 2);
	ram_set_u64(DEVICE_TABLE(0) + 0x10000, GITS_LEVEL1_VALID | LEVEL2_TABLE(3));
	its_run_wrong(m, 0, cmd_mapd(8192u * 8192u, 1, ITT(1), true), VGIC_ITS_MAPD_DEVICE_OOR);
	its_run_wrong(m, 0, cmd_mapd(UINT32_MAX, 1, ITT(1), true), VGIC_ITS_MAPD_DEVICE_OOR);
	/* A valid entry that leads to no memory is none. */
	ram_set_u64(DEVICE_TABLE(0) + 16, GITS_LEVEL1_VALID | 0xffffffff0000ull);
	its_run_wrong(m, 0, cmd_mapd(16384, 1, ITT(1), true), VGIC_ITS_MAPD_DEVICE_OOR);
	/* Commands keep their state in the host: nothing of the tables was written. */
	assert_int_equal(ram.num_writes, 0);
	machine_stop(m);
}

static void mapd_size_must_fit_the_event_bits(void **state)
{
	struct machine *m = its_describe(1, 1);

	(void)state;
	its_configs[0].event_id_bits = 8;
	machine_start(m);
	its_set_up(m);
	map_collection(m, 0, 0);
	its_run_wrong(m, 0, cmd_mapd(1, 8, ITT(1), true), VGIC_ITS_MAPD_ITTSIZE_OOR);
	its_run_wrong(m, 0, cmd_mapd(1, 31, ITT(1), true), VGIC_ITS_MAPD_ITTSIZE_OOR);
	its_run_wrong(m, 0, cmd_mapti(1, 0, 8192, 0), VGIC_ITS_MAPTI_UNMAPPED_DEVICE);
	map_device(m, 1, 8);
	map_event(m, 1, 255, 8192, 0);
	its_run_wrong(m, 0, cmd_mapti(1, 256, 8193, 0), VGIC_ITS_MAPTI_ID_OOR);
	/* With V=0 the size is not looked at. */
	its_run(m, 0, cmd_mapd(1, 31, 0, false));
	assert_int_equal(its_all_errors(m, 0), 4);
	assert_int_equal(its_stats(m, 0).num_devices, 0);
	machine_stop(m);
}

static void mapd_itt_must_be_in_memory(void **state)
{
	struct machine *m = its_boot(1, 1);

	(void)state;
	its_run_wrong(m, 0, cmd_mapd(1, 4, 0x1000, true), VGIC_ITS_ITT_NOT_IN_MEMORY);
	its_run_wrong(m, 0, cmd_mapd(1, 4, RAM_BASE + RAM_SIZE, true), VGIC_ITS_ITT_NOT_IN_MEMORY);
	/* 32 entries of 8 bytes just fit, 64 do not. */
	its_run_wrong(m, 0, cmd_mapd(1, 5, RAM_BASE + RAM_SIZE - 256, true), VGIC_ITS_ITT_NOT_IN_MEMORY);
	its_run(m, 0, cmd_mapd(1, 4, RAM_BASE + RAM_SIZE - 256, true));
	assert_int_equal(its_stats(m, 0).num_devices, 1);
	machine_stop(m);
}

static void mapd_again_drops_the_events(void **state)
{
	struct machine *m = its_boot_device();

	(void)state;
	map_event(m, 1, 0, 8192, 0);
	map_event(m, 1, 1, 8193, 0);
	assert_int_equal(msi(m, 1, 0), 1);
	map_device(m, 1, 5);
	assert_int_equal(its_stats(m, 0).num_devices, 1);
	assert_int_equal(its_stats(m, 0).num_translations, 0);
	expect_nothing(m);
	assert_int_equal(msi(m, 1, 1), 0);
	assert_int_equal(its_stats(m, 0).dropped_unmapped_event, 1);
	machine_stop(m);
}

static void mapd_v0_drops_the_device(void **state)
{
	struct machine *m = its_boot_device();

	(void)state;
	map_event(m, 1, 0, 8192, 0);
	assert_int_equal(msi(m, 1, 0), 1);
	its_run(m, 0, cmd_mapd(1, 0, 0, false));
	assert_int_equal(its_stats(m, 0).num_devices, 0);
	assert_int_equal(its_stats(m, 0).num_translations, 0);
	expect_nothing(m);
	assert_int_equal(msi(m, 1, 0), 0);
	its_run_wrong(m, 0, cmd_event(ITS_CMD_INT, 1, 0), VGIC_ITS_INT_UNMAPPED_DEVICE);
	/* One that is not mapped may be unmapped. */
	its_run(m, 0, cmd_mapd(1, 0, 0, false));
	assert_int_equal(its_all_errors(m, 0), 1);
	machine_stop(m);
}

static void devices_are_bounded_by_max_devices(void **state)
{
	struct machine *m = its_describe(1, 1);

	(void)state;
	its_configs[0].max_devices = 3;
	machine_start(m);
	its_set_up(m);
	for (uint32_t device = 0; device < 3; device++)
		map_device(m, device * 1000, 4);
	its_run_wrong(m, 0, cmd_mapd(5, 3, ITT(3), true), VGIC_ITS_TOO_MANY_DEVICES);
	/* To map a mapped one again needs no more room. */
	map_device(m, 1000, 4);
	its_run(m, 0, cmd_mapd(2000, 0, 0, false));
	map_device(m, 5, 4);
	its_run_wrong(m, 0, cmd_mapd(6, 3, ITT(3), true), VGIC_ITS_TOO_MANY_DEVICES);
	assert_int_equal(its_stats(m, 0).num_devices, 3);
	machine_stop(m);
}

/* ---- MAPC ------------------------------------------------------------------------------------------- */

static void mapc_collection_must_be_in_the_table(void **state)
{
	struct machine *m = its_boot(1, 1);

	(void)state;
	its_run_wrong(m, 0, cmd_mapc(8192, 0, true), VGIC_ITS_MAPC_COLLECTION_OOR);
	its_run_wrong(m, 0, cmd_mapc(0xffff, 0, true), VGIC_ITS_MAPC_COLLECTION_OOR);
	its_run_wrong(m, 0, cmd_mapc(8192, 0, false), VGIC_ITS_MAPC_COLLECTION_OOR);
	map_collection(m, 8191, 0);
	/* Eight pages hold all that 16 bits can name. */
	its_write(m, 0, GITS_CTLR, 4, 0);
	its_write(m, 0, GITS_BASER1, 8, GITS_BASER_VALID | COLLECTION_TABLE(0) | 255);
	its_write(m, 0, GITS_CTLR, 4, GITS_CTLR_ENABLED);
	map_collection(m, 0xffff, 0);
	machine_stop(m);
}

static void mapc_rdbase_is_a_processor_number(void **state)
{
	struct machine *m = its_boot(2, 1);

	(void)state;
	map_device(m, 1, 5);
	its_run_wrong(m, 0, cmd_mapc(0, 2, true), VGIC_ITS_MAPC_PROCNUM_OOR);
	its_run_wrong(m, 0, cmd_mapc(0, 0x10000, true), VGIC_ITS_MAPC_PROCNUM_OOR);
	its_run_wrong(m, 0, cmd_mapc(0, (1ull << 35) - 1, true), VGIC_ITS_MAPC_PROCNUM_OOR);
	map_event(m, 1, 0, 8192, 0);
	assert_int_equal(msi(m, 1, 0), 0);
	assert_int_equal(its_stats(m, 0).dropped_unmapped_collection, 1);
	map_collection(m, 0, 1);
	assert_int_equal(msi(m, 1, 0), 1);
	expect_only(m, 1, 8192);
	machine_stop(m);
}

static void mapc_v0_ignores_rdbase(void **state)
{
	struct machine *m = its_boot_device();

	(void)state;
	map_event(m, 1, 0, 8192, 0);
	its_run(m, 0, cmd_mapc(0, 0xffff, false));
	assert_int_equal(its_all_errors(m, 0), 0);
	assert_int_equal(msi(m, 1, 0), 0);
	assert_int_equal(its_stats(m, 0).dropped_unmapped_collection, 1);
	expect_nothing(m);
	its_run(m, 0, cmd_mapc(0, 0xffff, false));
	assert_int_equal(its_all_errors(m, 0), 0);
	machine_stop(m);
}

static void mapc_takes_pending_lpis_along(void **state)
{
	struct machine *m = its_boot_device();

	(void)state;
	map_event(m, 1, 0, 8192, 0);
	map_event(m, 1, 1, 8193, 1);
	assert_int_equal(msi(m, 1, 0), 1);
	map_collection(m, 0, 1);
	expect_only(m, 1, 8192);
	assert_int_equal(msi(m, 1, 0), 1);
	expect_only(m, 1, 8192);
	machine_stop(m);
}

/* LPIs of a collection follow it, wherever MOVALL has brought them in between. */
static void mapc_brings_lpis_back(void **state)
{
	struct machine *m = its_boot_device();

	(void)state;
	map_event(m, 1, 0, 8192, 0);
	its_run(m, 0, cmd_movall(0, 1));
	assert_int_equal(msi(m, 1, 0), 1);
	expect_only(m, 1, 8192);
	map_collection(m, 0, 0);
	assert_int_equal(msi(m, 1, 0), 1);
	expect_only(m, 0, 8192);
	machine_stop(m);
}

/* A pending LPI whose collection is unmapped waits until it is mapped again. */
static void mapc_v0_keeps_lpis_pending(void **state)
{
	struct machine *m = its_boot_device();

	(void)state;
	map_event(m, 1, 0, 8192, 0);
	assert_int_equal(msi(m, 1, 0), 1);
	its_run(m, 0, cmd_mapc(0, 0, false));
	expect_nothing(m);
	map_collection(m, 0, 1);
	expect_only(m, 1, 8192);
	machine_stop(m);
}

/* ---- MAPTI and MAPI ------------------------------------------------------------------------------------ */

static void mapti_checks_all_it_names(void **state)
{
	struct machine *m = its_boot_device();

	(void)state;
	its_run_wrong(m, 0, cmd_mapti(65536, 0, 8192, 0), VGIC_ITS_MAPTI_DEVICE_OOR);
	its_run_wrong(m, 0, cmd_mapti(2, 0, 8192, 0), VGIC_ITS_MAPTI_UNMAPPED_DEVICE);
	its_run_wrong(m, 0, cmd_mapti(1, 32, 8192, 0), VGIC_ITS_MAPTI_ID_OOR);
	its_run_wrong(m, 0, cmd_mapti(1, UINT32_MAX, 8192, 0), VGIC_ITS_MAPTI_ID_OOR);
	its_run_wrong(m, 0, cmd_mapti(1, 0, 8192, 8192), VGIC_ITS_MAPTI_COLLECTION_OOR);
	its_run_wrong(m, 0, cmd_mapti(1, 0, 8192, 0xffff), VGIC_ITS_MAPTI_COLLECTION_OOR);
	its_run_wrong(m, 0, cmd_mapti(1, 0, 8191, 0), VGIC_ITS_MAPTI_PHYSICALID_OOR);
	its_run_wrong(m, 0, cmd_mapti(1, 0, 0, 0), VGIC_ITS_MAPTI_PHYSICALID_OOR);
	its_run_wrong(m, 0, cmd_mapti(1, 0, 65536, 0), VGIC_ITS_MAPTI_PHYSICALID_OOR);
	its_run_wrong(m, 0, cmd_mapti(1, 0, UINT32_MAX, 0), VGIC_ITS_MAPTI_PHYSICALID_OOR);
	assert_int_equal(its_stats(m, 0).num_translations, 0);
	map_event(m, 1, 31, 65535, 0);
	assert_int_equal(msi(m, 1, 31), 1);
	expect_only(m, 0, 65535);
	machine_stop(m);
}

static void mapi_is_mapti_of_its_own_number(void **state)
{
	struct machine *m = its_boot(2, 1);

	(void)state;
	map_collection(m, 0, 1);
	map_device(m, 1, 16);
	map_device(m, 2, 5);
	its_run_wrong(m, 0, cmd_mapi(65536, 8192, 0), VGIC_ITS_MAPI_DEVICE_OOR);
	its_run_wrong(m, 0, cmd_mapi(3, 8192, 0), VGIC_ITS_MAPI_UNMAPPED_DEVICE);
	its_run_wrong(m, 0, cmd_mapi(2, 8192, 0), VGIC_ITS_MAPI_ID_OOR);
	its_run_wrong(m, 0, cmd_mapi(1, 8192, 8192), VGIC_ITS_MAPI_COLLECTION_OOR);
	its_run_wrong(m, 0, cmd_mapi(1, 5, 0), VGIC_ITS_MAPI_PHYSICALID_OOR);
	its_run_wrong(m, 0, cmd_mapi(1, 8191, 0), VGIC_ITS_MAPI_PHYSICALID_OOR);
	its_run(m, 0, cmd_mapi(1, 8192, 0));
	its_run(m, 0, cmd_mapi(1, 65535, 0));
	assert_int_equal(its_all_errors(m, 0), 6);
	assert_int_equal(msi(m, 1, 8192), 1);
	expect_only(m, 1, 8192);
	assert_int_equal(msi(m, 1, 65535), 1);
	expect_only(m, 1, 65535);
	machine_stop(m);
}

static void mapti_to_an_unmapped_collection_waits_for_it(void **state)
{
	struct machine *m = its_boot_device();

	(void)state;
	map_event(m, 1, 0, 8192, 3);
	assert_int_equal(its_stats(m, 0).num_translations, 1);
	assert_int_equal(msi(m, 1, 0), 0);
	assert_int_equal(its_stats(m, 0).dropped_unmapped_collection, 1);
	map_collection(m, 3, 1);
	expect_nothing(m);
	assert_int_equal(msi(m, 1, 0), 1);
	expect_only(m, 1, 8192);
	machine_stop(m);
}

static void mapti_replaces_a_live_event(void **state)
{
	struct machine *m = its_boot_device();

	(void)state;
	map_event(m, 1, 0, 8192, 0);
	assert_int_equal(msi(m, 1, 0), 1);
	map_event(m, 1, 0, 8193, 1);
	assert_int_equal(its_stats(m, 0).num_translations, 1);
	/* What was pending belonged to the old mapping. */
	expect_nothing(m);
	assert_int_equal(msi(m, 1, 0), 1);
	expect_only(m, 1, 8193);
	machine_stop(m);
}

static void mapti_of_the_same_lpi_moves_it(void **state)
{
	struct machine *m = its_boot_device();

	(void)state;
	map_event(m, 1, 0, 8192, 0);
	assert_int_equal(msi(m, 1, 0), 1);
	map_event(m, 1, 0, 8192, 1);
	assert_int_equal(its_stats(m, 0).num_translations, 1);
	expect_only(m, 1, 8192);
	machine_stop(m);
}

static void last_of_two_mappings_decides_the_target(void **state)
{
	struct machine *m = its_boot_device();

	(void)state;
	map_event(m, 1, 0, 8192, 0);
	map_event(m, 1, 1, 8192, 1);
	assert_int_equal(its_stats(m, 0).num_translations, 2);
	assert_int_equal(msi(m, 1, 0), 1);
	expect_only(m, 1, 8192);
	assert_int_equal(msi(m, 1, 1), 1);
	expect_only(m, 1, 8192);
	/* The other one stays when one is discarded; what was pending goes. */
	assert_int_equal(msi(m, 1, 0), 1);
	its_run(m, 0, cmd_event(ITS_CMD_DISCARD, 1, 1));
	expect_nothing(m);
	assert_int_equal(msi(m, 1, 1), 0);
	assert_int_equal(msi(m, 1, 0), 1);
	expect_only(m, 1, 8192);
	its_run(m, 0, cmd_event(ITS_CMD_DISCARD, 1, 0));
	assert_int_equal(msi(m, 1, 0), 0);
	expect_nothing(m);
	machine_stop(m);
}

static void translations_are_bounded_by_max_translations(void **state)
{
	struct machine *m = its_describe(1, 1);

	(void)state;
	its_configs[0].max_translations = 5;
	machine_start(m);
	its_set_up(m);
	map_collection(m, 0, 0);
	map_device(m, 1, 16);
	map_device(m, 2, 16);
	for (uint32_t event = 0; event < 4; event++)
		map_event(m, 1, event, 8192 + event, 0);
	map_event(m, 2, 9999, 8196, 0);
	its_run_wrong(m, 0, cmd_mapti(1, 4, 8197, 0), VGIC_ITS_TOO_MANY_TRANSLATIONS);
	its_run_wrong(m, 0, cmd_mapi(2, 8200, 0), VGIC_ITS_TOO_MANY_TRANSLATIONS);
	/* To replace one needs no more room; to discard one makes some. */
	map_event(m, 1, 3, 8197, 0);
	its_run(m, 0, cmd_event(ITS_CMD_DISCARD, 1, 0));
	map_event(m, 2, 0, 8198, 0);
	assert_int_equal(its_stats(m, 0).num_translations, 5);
	its_run(m, 0, cmd_mapd(1, 0, 0, false));
	assert_int_equal(its_stats(m, 0).num_translations, 2);
	for (uint32_t event = 10; event < 13; event++)
		map_event(m, 2, event, 8300 + event, 0);
	its_run_wrong(m, 0, cmd_mapti(2, 13, 8400, 0), VGIC_ITS_TOO_MANY_TRANSLATIONS);
	assert_int_equal(msi(m, 2, 12), 1);
	expect_only(m, 0, 8312);
	machine_stop(m);
}

/* ---- MOVI and MOVALL ----------------------------------------------------------------------------------- */

static void movi_checks_all_it_names(void **state)
{
	struct machine *m = its_boot_device();

	(void)state;
	map_event(m, 1, 0, 8192, 0);
	its_run_wrong(m, 0, cmd_movi(65536, 0, 1), VGIC_ITS_MOVI_DEVICE_OOR);
	its_run_wrong(m, 0, cmd_movi(2, 0, 1), VGIC_ITS_MOVI_UNMAPPED_DEVICE);
	its_run_wrong(m, 0, cmd_movi(1, 32, 1), VGIC_ITS_MOVI_ID_OOR);
	its_run_wrong(m, 0, cmd_movi(1, 1, 1), VGIC_ITS_MOVI_UNMAPPED_INTERRUPT);
	its_run_wrong(m, 0, cmd_movi(1, 0, 8192), VGIC_ITS_MOVI_COLLECTION_OOR);
	its_run_wrong(m, 0, cmd_movi(1, 0, 0xffff), VGIC_ITS_MOVI_COLLECTION_OOR);
	its_run_wrong(m, 0, cmd_movi(1, 0, 2), VGIC_ITS_MOVI_UNMAPPED_COLLECTION);
	assert_int_equal(msi(m, 1, 0), 1);
	expect_only(m, 0, 8192);
	machine_stop(m);
}

/* There is nothing to move an interrupt away from. */
static void movi_out_of_an_unmapped_collection_is_wrong(void **state)
{
	struct machine *m = its_boot_device();

	(void)state;
	map_event(m, 1, 0, 8192, 2);
	its_run_wrong(m, 0, cmd_movi(1, 0, 1), VGIC_ITS_MOVI_UNMAPPED_COLLECTION);
	assert_int_equal(msi(m, 1, 0), 0);
	map_collection(m, 2, 0);
	assert_int_equal(msi(m, 1, 0), 1);
	expect_only(m, 0, 8192);
	its_run(m, 0, cmd_movi(1, 0, 1));
	assert_int_equal(msi(m, 1, 0), 1);
	expect_only(m, 1, 8192);
	machine_stop(m);
}

static void movi_takes_the_pending_lpi_along(void **state)
{
	struct machine *m = its_boot_device();

	(void)state;
	map_event(m, 1, 0, 8192, 0);
	assert_int_equal(msi(m, 1, 0), 1);
	its_run(m, 0, cmd_movi(1, 0, 1));
	expect_only(m, 1, 8192);
	assert_int_equal(msi(m, 1, 0), 1);
	expect_only(m, 1, 8192);
	/* The event belongs to the new collection now. */
	map_collection(m, 0, 0);
	assert_int_equal(msi(m, 1, 0), 1);
	expect_only(m, 1, 8192);
	map_collection(m, 1, 0);
	assert_int_equal(msi(m, 1, 0), 1);
	expect_only(m, 0, 8192);
	machine_stop(m);
}

static void movall_names_existing_redistributors(void **state)
{
	struct machine *m = its_boot_device();

	(void)state;
	its_run_wrong(m, 0, cmd_movall(2, 0), VGIC_ITS_MOVALL_PROCNUM_OOR);
	its_run_wrong(m, 0, cmd_movall(0, 2), VGIC_ITS_MOVALL_PROCNUM_OOR);
	its_run_wrong(m, 0, cmd_movall(0x7ffffffffull, 0), VGIC_ITS_MOVALL_PROCNUM_OOR);
	its_run(m, 0, cmd_movall(1, 1));
	assert_int_equal(its_all_errors(m, 0), 3);
	machine_stop(m);
}

static void movall_takes_every_lpi_along(void **state)
{
	struct machine *m = its_boot_device();

	(void)state;
	for (uint32_t i = 0; i < 32; i++)
		map_event(m, 1, i, 8192 + 100 * i, i % 2);
	for (uint32_t i = 0; i < 32; i += 2)
		assert_int_equal(msi(m, 1, i), 1);
	its_run(m, 0, cmd_movall(0, 1));
	assert_int_equal(lines_of(m, 0), 0);
	for (uint32_t i = 0; i < 32; i += 2)
		assert_int_equal((take(m, 1) - 8192) % 200, 0);
	expect_nothing(m);
	for (uint32_t i = 0; i < 32; i++) {
		assert_int_equal(msi(m, 1, i), 1);
		expect_only(m, 1, 8192 + 100 * i);
	}
	/* Collections are mapped as before. */
	map_device(m, 2, 4);
	map_event(m, 2, 0, 9000, 0);
	assert_int_equal(msi(m, 2, 0), 1);
	expect_only(m, 0, 9000);
	machine_stop(m);
}

/* ---- Commands that name an event ------------------------------------------------------------------------- */

static void event_commands_check_all_they_name(void **state)
{
	static const struct {
		unsigned opcode;
		enum vgic_its_error device_oor, unmapped_device, id_oor, unmapped_interrupt;
	} commands[] = {
		{ ITS_CMD_INT, VGIC_ITS_INT_DEVICE_OOR, VGIC_ITS_INT_UNMAPPED_DEVICE, VGIC_ITS_INT_ID_OOR,
		  VGIC_ITS_INT_UNMAPPED_INTERRUPT },
		{ ITS_CMD_CLEAR, VGIC_ITS_CLEAR_DEVICE_OOR, VGIC_ITS_CLEAR_UNMAPPED_DEVICE, VGIC_ITS_CLEAR_ID_OOR,
		  VGIC_ITS_CLEAR_UNMAPPED_INTERRUPT },
		{ ITS_CMD_INV, VGIC_ITS_INV_DEVICE_OOR, VGIC_ITS_INV_UNMAPPED_DEVICE, VGIC_ITS_INV_ID_OOR,
		  VGIC_ITS_INV_UNMAPPED_INTERRUPT },
		{ ITS_CMD_DISCARD, VGIC_ITS_DISCARD_DEVICE_OOR, VGIC_ITS_DISCARD_UNMAPPED_DEVICE,
		  VGIC_ITS_DISCARD_ID_OOR, VGIC_ITS_DISCARD_UNMAPPED_INTERRUPT },
	};
	struct machine *m = its_boot_device();

	(void)state;
	map_event(m, 1, 0, 8192, 0);
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		const unsigned opcode = commands[i].opcode;

		its_run_wrong(m, 0, cmd_event(opcode, 65536, 0), commands[i].device_oor);
		its_run_wrong(m, 0, cmd_event(opcode, UINT32_MAX, 0), commands[i].device_oor);
		its_run_wrong(m, 0, cmd_event(opcode, 0, 0), commands[i].unmapped_device);
		its_run_wrong(m, 0, cmd_event(opcode, 8192, 0), commands[i].unmapped_device);
		its_run_wrong(m, 0, cmd_event(opcode, 1, 32), commands[i].id_oor);
		its_run_wrong(m, 0, cmd_event(opcode, 1, UINT32_MAX), commands[i].id_oor);
		its_run_wrong(m, 0, cmd_event(opcode, 1, 1), commands[i].unmapped_interrupt);
	}
	assert_int_equal(msi(m, 1, 0), 1);
	expect_only(m, 0, 8192);
	machine_stop(m);
}

static void discard_removes_mapping_and_pending_state(void **state)
{
	struct machine *m = its_boot_device();

	(void)state;
	map_event(m, 1, 0, 8192, 0);
	map_event(m, 1, 1, 8193, 0);
	assert_int_equal(msi(m, 1, 0), 1);
	its_run(m, 0, cmd_event(ITS_CMD_DISCARD, 1, 0));
	expect_nothing(m);
	assert_int_equal(its_stats(m, 0).num_translations, 1);
	assert_int_equal(msi(m, 1, 0), 0);
	assert_int_equal(its_stats(m, 0).dropped_unmapped_event, 1);
	its_run_wrong(m, 0, cmd_event(ITS_CMD_DISCARD, 1, 0), VGIC_ITS_DISCARD_UNMAPPED_INTERRUPT);
	assert_int_equal(msi(m, 1, 1), 1);
	expect_only(m, 0, 8193);
	/* Mapped again it is as new. */
	map_event(m, 1, 0, 8192, 1);
	expect_nothing(m);
	assert_int_equal(msi(m, 1, 0), 1);
	expect_only(m, 1, 8192);
	machine_stop(m);
}

static void int_makes_pending_and_clear_undoes_it(void **state)
{
	struct machine *m = its_boot_device();

	(void)state;
	map_event(m, 1, 0, 8192, 1);
	its_run(m, 0, cmd_event(ITS_CMD_INT, 1, 0));
	expect_only(m, 1, 8192);
	its_run(m, 0, cmd_event(ITS_CMD_INT, 1, 0));
	its_run(m, 0, cmd_event(ITS_CMD_CLEAR, 1, 0));
	expect_nothing(m);
	assert_int_equal(msi(m, 1, 0), 1);
	its_run(m, 0, cmd_event(ITS_CMD_CLEAR, 1, 0));
	expect_nothing(m);
	/* The mapping stays. */
	assert_int_equal(msi(m, 1, 0), 1);
	expect_only(m, 1, 8192);
	assert_int_equal(its_all_errors(m, 0), 0);
	machine_stop(m);
}

static void inv_reads_one_lpis_configuration(void **state)
{
	struct machine *m = its_boot_device();

	(void)state;
	set_property(8192, 0xa0);
	map_event(m, 1, 0, 8192, 0);
	map_event(m, 1, 1, 8193, 0);
	assert_int_equal(msi(m, 1, 0), 1);
	expect_nothing(m);
	/* A change of the table alone need not act, and does not here; after INV and SYNC it must. */
	set_property(8192, 0xa0 | LPI_ENABLED);
	set_property(8193, 0xa0);
	expect_nothing(m);
	its_run(m, 0, cmd_event(ITS_CMD_INV, 1, 0));
	its_run(m, 0, cmd_sync(0));
	expect_only(m, 0, 8192);
	assert_int_equal(msi(m, 1, 1), 1);
	expect_only(m, 0, 8193);
	assert_int_equal(msi(m, 1, 1), 1);
	its_run(m, 0, cmd_event(ITS_CMD_INV, 1, 1));
	expect_nothing(m);
	set_property(8193, 0xa0 | LPI_ENABLED);
	its_run(m, 0, cmd_event(ITS_CMD_INV, 1, 1));
	expect_only(m, 0, 8193);
	machine_stop(m);
}

static void invall_reads_all_of_a_redistributor(void **state)
{
	struct machine *m = its_boot_device();

	(void)state;
	map_collection(m, 2, 0);
	ram_fill(PROPERTY_TABLE, 0xa0, NUM_LPIS_16);
	for (uint32_t i = 0; i < 32; i++)
		map_event(m, 1, i, 8192 + 1777 * i, i % 3);
	for (uint32_t i = 0; i < 32; i++)
		assert_int_equal(msi(m, 1, i), 1);
	expect_nothing(m);
	ram_fill(PROPERTY_TABLE, 0xa0 | LPI_ENABLED, NUM_LPIS_16);
	expect_nothing(m);
	/* Collections 0 and 2 are at one redistributor: INVALL of either concerns the LPIs of both. */
	its_run(m, 0, cmd_invall(0));
	assert_int_equal(lines_of(m, 1), 0);
	for (uint32_t i = 0; i < 21; i++)
		assert_int_not_equal(take(m, 0), NO_INTERRUPT);
	expect_nothing(m);
	its_run(m, 0, cmd_invall(1));
	for (uint32_t i = 0; i < 11; i++)
		assert_int_not_equal(take(m, 1), NO_INTERRUPT);
	expect_nothing(m);
	assert_int_equal(its_all_errors(m, 0), 0);
	machine_stop(m);
}

static void invall_needs_a_mapped_collection(void **state)
{
	struct machine *m = its_boot_device();

	(void)state;
	its_run_wrong(m, 0, cmd_invall(8192), VGIC_ITS_INVALL_COLLECTION_OOR);
	its_run_wrong(m, 0, cmd_invall(0xffff), VGIC_ITS_INVALL_COLLECTION_OOR);
	its_run_wrong(m, 0, cmd_invall(2), VGIC_ITS_INVALL_UNMAPPED_COLLECTION);
	machine_stop(m);
}

/* The black-box scenario by which hypervisors' test suites look at INV and INVALL. */
static void trigger_scenario(void **state)
{
	struct machine *m = its_boot(4, 1);

	(void)state;
	map_device(m, 2, 8);
	map_device(m, 7, 8);
	map_collection(m, 3, 3);
	map_collection(m, 2, 2);
	its_run(m, 0, cmd_invall(2));
	its_run(m, 0, cmd_invall(3));
	map_event(m, 2, 20, 8195, 3);
	map_event(m, 7, 255, 8196, 2);
	its_run(m, 0, cmd_event(ITS_CMD_INT, 2, 20));
	expect_only(m, 3, 8195);
	its_run(m, 0, cmd_event(ITS_CMD_INT, 7, 255));
	expect_only(m, 2, 8196);
	set_property(8195, 0xa0);
	its_run(m, 0, cmd_event(ITS_CMD_INV, 2, 20));
	its_run(m, 0, cmd_event(ITS_CMD_INT, 2, 20));
	expect_nothing(m);
	set_property(8195, 0xa0 | LPI_ENABLED);
	its_run(m, 0, cmd_event(ITS_CMD_INT, 2, 20));
	its_run(m, 0, cmd_invall(3));
	expect_only(m, 3, 8195);
	its_run(m, 0, cmd_mapd(2, 7, ITT(2), false));
	its_run_wrong(m, 0, cmd_event(ITS_CMD_INT, 2, 20), VGIC_ITS_INT_UNMAPPED_DEVICE);
	expect_nothing(m);
	machine_stop(m);
}

/* ---- The others ---------------------------------------------------------------------------------------------- */

static void sync_names_an_existing_redistributor(void **state)
{
	struct machine *m = its_boot_device();

	(void)state;
	its_run(m, 0, cmd_sync(1));
	assert_int_equal(its_all_errors(m, 0), 0);
	its_run_wrong(m, 0, cmd_sync(2), VGIC_ITS_SYNC_PROCNUM_OOR);
	machine_stop(m);
}

static void other_opcodes_are_unknown_or_virtual(void **state)
{
	static const unsigned known = 1u << ITS_CMD_MOVI | 1u << ITS_CMD_INT | 1u << ITS_CMD_CLEAR |
				      1u << ITS_CMD_SYNC | 1u << ITS_CMD_MAPD | 1u << ITS_CMD_MAPC |
				      1u << ITS_CMD_MAPTI | 1u << ITS_CMD_MAPI | 1u << ITS_CMD_INV |
				      1u << ITS_CMD_INVALL | 1u << ITS_CMD_MOVALL | 1u << ITS_CMD_DISCARD;
	struct machine *m = its_boot_device();

	(void)state;
	for (unsigned opcode = 0; opcode < 256; opcode++) {
		if (opcode < 32 && (known >> opcode & 1))
			continue;
		/* VMOVI, VSYNC, VMAPP, VMAPTI, VINVALL, VMOVP and their like are at 0x20 to 0x2f. */
		its_run_wrong(m, 0, (struct its_cmd){ { opcode, ~0ull, ~0ull, ~0ull } },
			      opcode >> 4 == 2 ? VGIC_ITS_VIRTUAL_COMMAND : VGIC_ITS_UNKNOWN_COMMAND);
	}
	assert_int_equal(its_errors(m, 0, VGIC_ITS_VIRTUAL_COMMAND), 16);
	machine_stop(m);
}

static void wrong_command_does_not_stop_the_queue(void **state)
{
	struct machine *m = its_boot_device();

	(void)state;
	its_place(m, 0, cmd_mapd(65536, 4, ITT(2), true));
	its_place(m, 0, cmd_mapd(2, 4, ITT(2), true));
	its_place(m, 0, cmd_mapti(2, 99, 8200, 0));
	its_place(m, 0, cmd_mapti(2, 9, 8200, 0));
	its_place(m, 0, cmd_event(ITS_CMD_INT, 2, 9));
	its_submit(m, 0);
	expect_only(m, 0, 8200);
	assert_int_equal(its_all_errors(m, 0), 2);
	assert_int_equal(its_errors(m, 0, VGIC_ITS_MAPD_DEVICE_OOR), 1);
	assert_int_equal(its_errors(m, 0, VGIC_ITS_MAPTI_ID_OOR), 1);
	machine_stop(m);
}

/* Bits that the architecture reserves in a command do not matter. */
static void reserved_bits_of_commands_are_ignored(void **state)
{
	struct machine *m = its_boot(2, 1);
	struct its_cmd cmd;

	(void)state;
	cmd = cmd_mapc(1, 1, true);
	cmd.dw[0] |= 0xffffffffffffff00ull;
	cmd.dw[1] = ~0ull;
	cmd.dw[2] |= 0x7ff8000000000000ull;
	cmd.dw[3] = ~0ull;
	its_run(m, 0, cmd);
	cmd = cmd_mapd(1, 4, ITT(1), true);
	cmd.dw[0] |= 0xffffff00;
	cmd.dw[1] |= ~0x1full;
	cmd.dw[2] |= 0x7ff00000000000ffull;
	cmd.dw[3] = ~0ull;
	its_run(m, 0, cmd);
	cmd = cmd_mapti(1, 3, 8192, 1);
	cmd.dw[0] |= 0xffffff00;
	cmd.dw[2] |= ~0xffffull;
	cmd.dw[3] = ~0ull;
	its_run(m, 0, cmd);
	assert_int_equal(its_all_errors(m, 0), 0);
	assert_int_equal(msi(m, 1, 3), 1);
	expect_only(m, 1, 8192);
	machine_stop(m);
}

/* ---- Names and reports ------------------------------------------------------------------------------------------ */

static void every_error_has_a_name_and_a_code(void **state)
{
	(void)state;
	for (int a = 0; a < VGIC_NUM_ITS_ERRORS; a++) {
		const char *name = vgic_its_error_name((enum vgic_its_error)a);
		const uint32_t code = vgic_its_error_code((enum vgic_its_error)a);

		for (int b = 0; b < a; b++) {
			assert_string_not_equal(name, vgic_its_error_name((enum vgic_its_error)b));
			if (code)
				assert_int_not_equal(code, vgic_its_error_code((enum vgic_its_error)b));
		}
	}
	assert_string_equal(vgic_its_error_name(VGIC_ITS_MAPD_DEVICE_OOR), "MAPD_DEVICE_OOR");
	assert_int_equal(vgic_its_error_code(VGIC_ITS_MOVI_UNMAPPED_INTERRUPT), 0x010107);
	assert_int_equal(vgic_its_error_code(VGIC_ITS_MOVI_UNMAPPED_COLLECTION), 0x010109);
	assert_int_equal(vgic_its_error_code(VGIC_ITS_INT_UNMAPPED_INTERRUPT), 0x010307);
	assert_int_equal(vgic_its_error_code(VGIC_ITS_CLEAR_UNMAPPED_INTERRUPT), 0x010507);
	assert_int_equal(vgic_its_error_code(VGIC_ITS_MAPD_DEVICE_OOR), 0x010801);
	assert_int_equal(vgic_its_error_code(VGIC_ITS_MAPD_ITTSIZE_OOR), 0x010802);
	assert_int_equal(vgic_its_error_code(VGIC_ITS_MAPC_PROCNUM_OOR), 0x010902);
	assert_int_equal(vgic_its_error_code(VGIC_ITS_MAPC_COLLECTION_OOR), 0x010903);
	assert_int_equal(vgic_its_error_code(VGIC_ITS_MAPTI_UNMAPPED_DEVICE), 0x010a04);
	assert_int_equal(vgic_its_error_code(VGIC_ITS_MAPTI_ID_OOR), 0x010a05);
	assert_int_equal(vgic_its_error_code(VGIC_ITS_MAPTI_PHYSICALID_OOR), 0x010a06);
	assert_int_equal(vgic_its_error_code(VGIC_ITS_INV_UNMAPPED_INTERRUPT), 0x010c07);
	assert_int_equal(vgic_its_error_code(VGIC_ITS_INVALL_UNMAPPED_COLLECTION), 0x010d09);
	assert_int_equal(vgic_its_error_code(VGIC_ITS_MOVALL_PROCNUM_OOR), 0x010e01);
	assert_int_equal(vgic_its_error_code(VGIC_ITS_DISCARD_UNMAPPED_INTERRUPT), 0x010f07);
	assert_int_equal(vgic_its_error_code(VGIC_ITS_UNKNOWN_COMMAND), 0);
	assert_non_null(vgic_its_error_name(VGIC_NUM_ITS_ERRORS));
	assert_int_equal(vgic_its_error_code(VGIC_NUM_ITS_ERRORS), 0);
}

static void errors_are_reported_with_their_name(void **state)
{
	struct machine *m = its_boot_device();

	(void)state;
	its_run(m, 0, cmd_invall(2));
	assert_int_equal(m->num_error_reports, 1);
	assert_int_equal(m->last_error.kind, VGIC_GUEST_ITS_COMMAND);
	assert_string_equal(m->last_error.what, "INVALL_UNMAPPED_COLLECTION");
	assert_int_equal(m->last_error.address, 0x010d09);
	assert_int_equal(m->last_error.value, ITS_CMD_INVALL);
	/* A guest that errs as fast as it can floods nobody's log. */
	for (int i = 0; i < 100; i++)
		its_run(m, 0, cmd_invall(2));
	assert_in_range(m->num_error_reports, 10, 30);
	assert_int_equal(its_errors(m, 0, VGIC_ITS_INVALL_UNMAPPED_COLLECTION), 101);
	assert_int_equal(errors_of(m, VGIC_GUEST_ITS_COMMAND), 101);
	machine_stop(m);
}

static void stats_need_a_known_size(void **state)
{
	struct machine *m = its_boot(1, 1);
	struct vgic_its_stats stats = { .size = 0 };

	(void)state;
	assert_int_equal(vgic_its_get_stats(its_of(m, 0), &stats), -EINVAL);
	stats.size = sizeof(stats) + 8;
	assert_int_equal(vgic_its_get_stats(its_of(m, 0), &stats), -EINVAL);
	assert_int_equal(vgic_its_get_stats(its_of(m, 0), NULL), -EINVAL);
	machine_stop(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(mapd_device_must_be_in_range),
		cmocka_unit_test(mapd_device_must_be_in_the_flat_table),
		cmocka_unit_test(mapd_follows_the_indirect_table),
		cmocka_unit_test(mapd_size_must_fit_the_event_bits),
		cmocka_unit_test(mapd_itt_must_be_in_memory),
		cmocka_unit_test(mapd_again_drops_the_events),
		cmocka_unit_test(mapd_v0_drops_the_device),
		cmocka_unit_test(devices_are_bounded_by_max_devices),
		cmocka_unit_test(mapc_collection_must_be_in_the_table),
		cmocka_unit_test(mapc_rdbase_is_a_processor_number),
		cmocka_unit_test(mapc_v0_ignores_rdbase),
		cmocka_unit_test(mapc_takes_pending_lpis_along),
		cmocka_unit_test(mapc_brings_lpis_back),
		cmocka_unit_test(mapc_v0_keeps_lpis_pending),
		cmocka_unit_test(mapti_checks_all_it_names),
		cmocka_unit_test(mapi_is_mapti_of_its_own_number),
		cmocka_unit_test(mapti_to_an_unmapped_collection_waits_for_it),
		cmocka_unit_test(mapti_replaces_a_live_event),
		cmocka_unit_test(mapti_of_the_same_lpi_moves_it),
		cmocka_unit_test(last_of_two_mappings_decides_the_target),
		cmocka_unit_test(translations_are_bounded_by_max_translations),
		cmocka_unit_test(movi_checks_all_it_names),
		cmocka_unit_test(movi_out_of_an_unmapped_collection_is_wrong),
		cmocka_unit_test(movi_takes_the_pending_lpi_along),
		cmocka_unit_test(movall_names_existing_redistributors),
		cmocka_unit_test(movall_takes_every_lpi_along),
		cmocka_unit_test(event_commands_check_all_they_name),
		cmocka_unit_test(discard_removes_mapping_and_pending_state),
		cmocka_unit_test(int_makes_pending_and_clear_undoes_it),
		cmocka_unit_test(inv_reads_one_lpis_configuration),
		cmocka_unit_test(invall_reads_all_of_a_redistributor),
		cmocka_unit_test(invall_needs_a_mapped_collection),
		cmocka_unit_test(trigger_scenario),
		cmocka_unit_test(sync_names_an_existing_redistributor),
		cmocka_unit_test(other_opcodes_are_unknown_or_virtual),
		cmocka_unit_test(wrong_command_does_not_stop_the_queue),
		cmocka_unit_test(reserved_bits_of_commands_are_ignored),
		cmocka_unit_test(every_error_has_a_name_and_a_code),
		cmocka_unit_test(errors_are_reported_with_their_name),
		cmocka_unit_test(stats_need_a_known_size),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("its_commands", tests, NULL, NULL);
}
