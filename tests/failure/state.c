/* SPDX-License-Identifier: MIT */
/*
 * Failures of what saves and restores: images, ITS tables, pending tables, and the
 * attributes that read guest memory.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "world.h"

#define NUM(array) (sizeof(array) / sizeof((array)[0]))

static uint8_t *image;
static size_t image_size;

/* ---- Images --------------------------------------------------------------------------- */

/* It is kept from one run to the next: each makes the same. */
static void boot_with_image(void)
{
	world_boot();
	assert_int_equal(vgic_save_size(world.m->vgic, &image_size), 0);
	free(image);
	image = malloc(image_size);
	assert_non_null(image);
}

static int save(void)
{
	size_t used;

	return vgic_save(world.m->vgic, image, image_size, &used);
}

/* A controller with another state than that of the image. */
static void boot_and_change(void)
{
	boot_with_image();
	assert_int_equal(save(), 0);
	irq_set_priority(world.m, 0, 33, 0xc0);
	its_run(world.m, 0, cmd_mapd(2, 0, 0, false));
	its_run(world.m, 0, cmd_mapti(1, 9, 8300, 1));
	msi(world.m, 1, 0);
}

static int restore(void)
{
	return vgic_restore(world.m->vgic, image, image_size, NULL);
}

/* ---- Tables ------------------------------------------------------------------------------ */

static int control(uint32_t its, uint64_t what)
{
	return vgic_its_attr_set(its_of(world.m, its), VGIC_GRP_CTRL, what, 0);
}

/* ITS 1 has an indirect table with a device behind each of two pages. */
static void map_in_indirect_table(void)
{
	its_write(world.m, 1, GITS_CTLR, 4, 0);
	finish_work(world.m);
	ram_set_u64(DEVICE_TABLE(1), LEVEL2_TABLE(0) | GITS_LEVEL1_VALID);
	ram_set_u64(DEVICE_TABLE(1) + 8, LEVEL2_TABLE(1) | GITS_LEVEL1_VALID);
	its_write(world.m, 1, GITS_BASER0, 8, GITS_BASER_VALID | GITS_BASER_INDIRECT | DEVICE_TABLE(1));
	its_write(world.m, 1, GITS_CTLR, 4, GITS_CTLR_ENABLED);
	its_run(world.m, 1, cmd_mapc(2, 2, true));
	its_run(world.m, 1, cmd_mapd(5, 3, ITT(1), true));
	its_run(world.m, 1, cmd_mapd(8195, 3, ITT(2), true));
	its_run(world.m, 1, cmd_mapti(5, 1, 8900, 2));
	its_run(world.m, 1, cmd_mapti(8195, 3, 8901, 2));
	assert_int_equal(its_all_errors(world.m, 1), 0);
}

/*
 * A table that was written is no longer all zeros, whatever the guest has said of it: that is noted with each table, also
 * of a save that fails at a later one. Here nothing is said of them.
 */
static void forget_that_tables_are_zero(void)
{
	for (uint32_t v = 0; v < 3; v++) {
		redist_write(world.m, v, GICR_CTLR, 0);
		finish_work(world.m);
		redist_write_width(world.m, v, GICR_PENDBASER, 8, PENDING_TABLE(v));
		lpis_enable(world.m, v);
	}
}

/* Entries of earlier times lie where a save has to clear them. */
static void boot_with_old_tables(void)
{
	world_boot();
	map_in_indirect_table();
	forget_that_tables_are_zero();
	ram_fill(DEVICE_TABLE(0) + 64, 0x11, 64);
	ram_fill(LEVEL2_TABLE(0), 0x22, 32);
	ram_fill(ITT(1), 0x33, 8);
	for (uint32_t v = 0; v < 3; v++)
		ram_fill(PENDING_TABLE(v) + 1024, 0x44, 16);
}

static int save_both_tables(void)
{
	const int err = control(0, VGIC_CTRL_ITS_SAVE_TABLES);

	return err ? err : control(1, VGIC_CTRL_ITS_SAVE_TABLES);
}

static int save_pending_tables(void)
{
	return vgic_attr_set(world.m->vgic, VGIC_GRP_CTRL, VGIC_CTRL_SAVE_PENDING_TABLES, 0);
}

/* vCPU 0 is off: its table is kept, and what came after that is added. */
static void boot_with_one_off(void)
{
	boot_with_old_tables();
	redist_write(world.m, 0, GICR_CTLR, 0);
	finish_work(world.m);
	redist_write_width(world.m, 0, GICR_PENDBASER, 8, PENDING_TABLE(0));
	its_run(world.m, 0, cmd_movi(2, 0, 1));
	msi(world.m, 2, 0);
	its_run(world.m, 0, cmd_movi(2, 0, 0));
}

/* Tables have been saved, the ITS is off and has something else mapped. */
static void boot_with_saved(uint32_t its)
{
	world_boot();
	map_in_indirect_table();
	assert_int_equal(save_pending_tables(), 0);
	assert_int_equal(control(its, VGIC_CTRL_ITS_SAVE_TABLES), 0);
	its_run(world.m, its, cmd_mapc(0, 2, true));
	its_run(world.m, its, cmd_mapd(9, 2, ITT(3), true));
	its_run(world.m, its, cmd_mapti(9, 2, 8200, 0));
	its_write(world.m, its, GITS_CTLR, 4, 0);
	finish_work(world.m);
}

static void boot_with_saved_flat(void)
{
	boot_with_saved(0);
}

static void boot_with_saved_indirect(void)
{
	boot_with_saved(1);
}

static int restore_flat(void)
{
	return control(0, VGIC_CTRL_ITS_RESTORE_TABLES);
}

static int restore_indirect(void)
{
	return control(1, VGIC_CTRL_ITS_RESTORE_TABLES);
}

/* ---- Tests ---------------------------------------------------------------------------------- */

static void images_survive_every_failure(void **state)
{
	static const struct scenario scenarios[] = {
		{ "vgic_save", boot_with_image, save, { -ENOMEM } },
		{ "vgic_restore", boot_and_change, restore, { -ENOMEM } },
	};

	(void)state;
	fail_all(scenarios, NUM(scenarios));
	free(image);
	image = NULL;
}

static void tables_survive_every_failure(void **state)
{
	static const struct scenario scenarios[] = {
		{ "VGIC_CTRL_ITS_SAVE_TABLES", boot_with_old_tables, save_both_tables, { -ENOMEM, -EFAULT } },
		{ "VGIC_CTRL_ITS_RESTORE_TABLES", boot_with_saved_flat, restore_flat, { -ENOMEM, -EFAULT } },
		{ "VGIC_CTRL_ITS_RESTORE_TABLES, indirect",
		  boot_with_saved_indirect,
		  restore_indirect,
		  { -ENOMEM, -EFAULT } },
		{ "VGIC_CTRL_SAVE_PENDING_TABLES", boot_with_old_tables, save_pending_tables, { -ENOMEM, -EFAULT } },
		{ "VGIC_CTRL_SAVE_PENDING_TABLES, one is off",
		  boot_with_one_off,
		  save_pending_tables,
		  { -ENOMEM, -EFAULT } },
	};

	(void)state;
	fail_all(scenarios, NUM(scenarios));
}

const struct CMUnitTest state_tests[] = {
	cmocka_unit_test(images_survive_every_failure),
	cmocka_unit_test(tables_survive_every_failure),
};
const size_t num_state_tests = NUM(state_tests);
