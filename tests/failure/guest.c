/* SPDX-License-Identifier: MIT */
/*
 * Failures of guest memory under what a guest does: tables, queue, every command, and
 * EnableLPIs set and cleared. No access of a guest fails; what could not be read or
 * written is counted, reported, and taken for zeros or skipped. A guest that does all
 * of it again after a reset gets what it would have got at once.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "world.h"

#define NUM(array) (sizeof(array) / sizeof((array)[0]))

/* ---- What the guest does --------------------------------------------------------------- */

static unsigned steps_left;

/* The end of a step: is the guest to stop here? */
static bool stops(void)
{
	return steps_left-- == 0;
}

static void switch_off(struct machine *m)
{
	for (uint32_t i = 0; i < 2; i++) {
		its_write(m, i, GITS_CTLR, 4, 0);
		finish_work(m);
		its_write(m, i, GITS_BASER0, 8, 0);
		its_write(m, i, GITS_BASER1, 8, 0);
		finish_work(m);
	}
	for (uint32_t v = 0; v < 2; v++) {
		redist_write(m, v, GICR_CTLR, 0);
		finish_work(m);
	}
}

/* Some LPIs are pending from earlier times: mapped ones later, and one that never is. */
static void lpis_on(struct machine *m)
{
	for (uint32_t v = 0; v < 2; v++) {
		ram_fill(PENDING_TABLE(v) + 1024, 0, 1024);
		table_set_pending(v, 8192 + v);
		table_set_pending(v, 8260 + v);
		redist_write_width(m, v, GICR_PROPBASER, 8, PROPERTY_TABLE | (m->config.lpi_id_bits - 1));
		redist_write_width(m, v, GICR_PENDBASER, 8, PENDING_TABLE(v));
		lpis_enable(m, v);
	}
}

static void its_on(struct machine *m, uint32_t its)
{
	its_tables_set_up(m, its);
	if (its == 1) {
		ram_set_u64(DEVICE_TABLE(1), LEVEL2_TABLE(0) | GITS_LEVEL1_VALID);
		its_write(m, 1, GITS_BASER0, 8, GITS_BASER_VALID | GITS_BASER_INDIRECT | DEVICE_TABLE(1));
	}
	its_write(m, its, GITS_CTLR, 4, GITS_CTLR_ENABLED);
	finish_work(m);
}

static const struct its_cmd *commands(size_t *num)
{
	static struct its_cmd list[32];
	size_t n = 0;

	list[n++] = cmd_mapc(0, 0, true);
	list[n++] = cmd_mapc(1, 1, true);
	list[n++] = cmd_mapd(1, 3, ITT(0), true);
	list[n++] = cmd_mapd(2, 13, ITT(1), true);
	list[n++] = cmd_mapti(1, 0, 8200, 0);
	list[n++] = cmd_mapti(1, 1, 8201, 0);
	list[n++] = cmd_mapti(1, 1, 8201, 1); /* the same again */
	list[n++] = cmd_mapti(1, 2, 8203, 1);
	list[n++] = cmd_mapti(1, 2, 8204, 1); /* another LPI */
	list[n++] = cmd_mapi(2, 8400, 0);
	list[n++] = cmd_movi(1, 0, 1);
	list[n++] = cmd_event(ITS_CMD_INT, 1, 0);
	list[n++] = cmd_event(ITS_CMD_INT, 1, 1);
	list[n++] = cmd_event(ITS_CMD_CLEAR, 1, 1);
	list[n++] = cmd_event(ITS_CMD_INV, 1, 2);
	list[n++] = cmd_invall(1);
	list[n++] = cmd_event(ITS_CMD_INT, 2, 8400);
	list[n++] = cmd_movall(0, 1);
	list[n++] = cmd_event(ITS_CMD_DISCARD, 1, 2);
	list[n++] = cmd_mapti(1, 3, 8205, 0);
	list[n++] = cmd_mapd(2, 0, 0, false);
	list[n++] = cmd_mapd(3, 3, ITT(2), true);
	list[n++] = cmd_mapti(3, 0, 8300, 0);
	list[n++] = cmd_mapd(3, 2, ITT(2), true); /* its events go, unless it is refused */
	list[n++] = cmd_sync(0);
	assert_true(n <= NUM(list));
	*num = n;
	return list;
}

/* All of it, from wherever it is; or as far as it gets. */
static void run_guest(struct machine *m)
{
	size_t num;
	const struct its_cmd *list = commands(&num);

	switch_off(m);
	if (stops())
		return;
	lpis_on(m);
	if (stops())
		return;
	for (uint32_t its = 0; its < 2; its++) {
		its_on(m, its);
		if (stops())
			return;
		for (size_t i = 0; i < num; i++) {
			its_run(m, its, list[i]);
			if (stops())
				return;
		}
	}
	redist_write_width(m, 1, GICR_INVLPIR, 8, 8200);
	redist_write_width(m, 1, GICR_INVALLR, 8, 0);
	finish_work(m);
	if (stops())
		return;
	msi(m, 1, 3);
	redist_write(m, 1, GICR_CTLR, 0);
	finish_work(m);
	if (stops())
		return;
	redist_write_width(m, 1, GICR_PENDBASER, 8, PENDING_TABLE(1));
	lpis_enable(m, 1);
}

/* The machine is reset, and the guest begins again. */
static void begin_again(struct machine *m)
{
	assert_int_equal(vgic_reset(m->vgic), 0);
	machine_open_switches(m);
	run_guest(m);
}

static struct machine *start(void)
{
	struct machine *m = machine_start(world_describe(2, 2));

	machine_open_switches(m);
	ram_fill(PROPERTY_TABLE, 0xa0 | LPI_ENABLED, 8192);
	steps_left = UINT32_MAX;
	return m;
}

/* ---- Each access fails -------------------------------------------------------------------- */

/* Its image is one that a controller takes: nothing in it contradicts anything else. */
static void expect_consistent(struct machine *m)
{
	struct picture before = world_picture(false), after;

	assert_int_equal(vgic_restore(m->vgic, before.bytes, before.size, NULL), 0);
	after = world_picture(false);
	assert_true(pictures_are_equal(&before, &after));
	free(before.bytes);
	free(after.bytes);
}

static unsigned fail_guest(enum inject_mode mode, unsigned n, bool restores, const struct picture *expected)
{
	struct machine *m = start();
	const size_t bytes = inject_live_bytes();
	struct picture picture;
	unsigned failures;

	inject_begin(mode, n);
	run_guest(m);
	failures = inject_end();
	if (failures) {
		assert_true(errors_of_all_kinds(m) > 0);
		assert_true(m->num_error_reports > 0);
		assert_int_equal(ram.num_oversized, 0);
	} else {
		assert_int_equal(errors_of_all_kinds(m), 0);
	}
	assert_int_equal(inject_live_bytes(), bytes);
	if (restores)
		expect_consistent(m);
	begin_again(m);
	picture = world_picture(true);
	if (!pictures_are_equal(&picture, expected))
		fail_msg("with failure %u a guest that tries again gets something else", n);
	free(picture.bytes);
	world_end();
	return failures;
}

static struct picture picture_without_failures(void)
{
	struct machine *m = start();
	struct picture picture;

	run_guest(m);
	begin_again(m);
	picture = world_picture(true);
	assert_int_equal(errors_of_all_kinds(m), 0);
	world_end();
	return picture;
}

static void a_guest_survives_every_failed_access(void **state)
{
	struct picture expected = picture_without_failures();
	unsigned num = 0;

	(void)state;
	for (unsigned n = 1; fail_guest(INJECT_ONE, n, n % 8 == 0, &expected); n++)
		num++;
	print_message("# a guest: %u accesses, each of which has failed alone\n", num);
	/* Many alike come one after the other. */
	for (unsigned n = 1; n <= num; n += 1 + n / 16)
		fail_guest(INJECT_ALL_FROM, n, true, &expected);
	free(expected.bytes);
}

/* ---- One command --------------------------------------------------------------------------- */

/* Where the queue stands is not part of what a command may leave alone: begin a new one. */
static struct picture picture_at_rest(struct machine *m)
{
	its_write(m, 0, GITS_CTLR, 4, 0);
	finish_work(m);
	its_tables_set_up(m, 0);
	its_write(m, 0, GITS_CTLR, 4, GITS_CTLR_ENABLED);
	return world_picture(false);
}

static void run_first(struct machine *m, const struct its_cmd *list, size_t num)
{
	switch_off(m);
	lpis_on(m);
	its_on(m, 0);
	its_on(m, 1);
	for (size_t i = 0; i < num; i++)
		its_run(m, 0, list[i]);
}

/* Command @i of the list with its @n-th access failing. Returns how many have. */
static unsigned fail_command(size_t i, unsigned n)
{
	struct machine *m = start();
	struct picture before, after;
	unsigned failures;
	uint64_t reported;
	size_t num;
	const struct its_cmd *list = commands(&num);

	run_first(m, list, i);
	before = picture_at_rest(m);
	inject_begin(INJECT_ONE, n);
	its_run(m, 0, list[i]);
	failures = inject_end();
	reported = its_all_errors(m, 0);
	after = picture_at_rest(m);
	/* A command that is refused does nothing. One that could not read a configuration takes the LPI for disabled. */
	if (reported && !pictures_are_equal(&before, &after))
		fail_msg("command %zu was refused, and has changed something", i);
	if (failures)
		assert_int_equal(reported + errors_of(m, VGIC_GUEST_MEMORY) > 0, 1);
	else
		assert_int_equal(reported, 0);
	free(before.bytes);
	free(after.bytes);
	world_end();
	return failures;
}

static void a_refused_command_has_done_nothing(void **state)
{
	unsigned runs = 0;
	size_t num;

	(void)state;
	commands(&num);
	for (size_t i = 0; i < num; i++) {
		/* A walk reads many alike. */
		for (unsigned n = 1; fail_command(i, n) && n < 40; n++)
			runs++;
	}
	print_message("# commands: %u runs with a failed access\n", runs);
}

/* ---- Direct LPIs, and the end ------------------------------------------------------------------ */

static void a_direct_lpi_whose_configuration_cannot_be_read_is_disabled(void **state)
{
	struct machine *m = machine_start(world_describe(1, 0));

	(void)state;
	ram_fill(PROPERTY_TABLE, 0xa0 | LPI_ENABLED, 8192);
	lpis_set_up(m);
	inject_begin(INJECT_ONE, 1);
	redist_write_width(m, 0, GICR_SETLPIR, 8, 8192);
	assert_int_equal(inject_end(), 1);
	assert_int_equal(errors_of(m, VGIC_GUEST_MEMORY), 1);
	expect_nothing(m);
	redist_write_width(m, 0, GICR_INVLPIR, 8, 8192);
	expect_only(m, 0, 8192);
	world_end();
}

static void a_controller_may_be_destroyed_at_any_step_of_its_guest(void **state)
{
	bool goes_on = true;

	(void)state;
	for (unsigned step = 0; goes_on; step++) {
		struct machine *m = start();

		steps_left = step;
		run_guest(m);
		goes_on = steps_left == UINT32_MAX;
		world_end();
	}
}

const struct CMUnitTest guest_tests[] = {
	cmocka_unit_test(a_guest_survives_every_failed_access),
	cmocka_unit_test(a_refused_command_has_done_nothing),
	cmocka_unit_test(a_direct_lpi_whose_configuration_cannot_be_read_is_disabled),
	cmocka_unit_test(a_controller_may_be_destroyed_at_any_step_of_its_guest),
};
const size_t num_guest_tests = NUM(guest_tests);
