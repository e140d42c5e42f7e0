/* SPDX-License-Identifier: MIT */
/*
 * Signals in flight: a device thread has looked its event up, and is overtaken by a
 * command before it acts. The two halves of vgic_its_signal() are called here with
 * the command in between, so that every such race happens every time. The library's
 * inner parts are used for this, and for nothing else.
 */
#include <errno.h>

#include "its_guest.h"

#include "its_in_flight.h"

/* Two vCPUs; collections 0 and 1 at them; device 1, event 0 to LPI 8192 at collection 0. */
static struct machine *boot_mapped(void)
{
	struct machine *m = its_boot(2, 2);

	map_collection(m, 0, 0);
	map_collection(m, 1, 1);
	map_device(m, 1, 5);
	map_event(m, 1, 0, 8192, 0);
	return m;
}

/* What the device thread found. */
static uint64_t look_up(struct machine *m)
{
	uint64_t value = 0;

	assert_true(in_flight_look_up(its_of(m, 0), 1, 0, &value));
	return value;
}

static void expect_stale(struct machine *m, uint64_t value)
{
	assert_int_equal(in_flight_act(m->vgic, value), IN_FLIGHT_STALE);
	expect_nothing(m);
}

static void overtaken_by_nothing_it_is_delivered(void **state)
{
	struct machine *m = boot_mapped();

	(void)state;
	assert_int_equal(in_flight_act(m->vgic, look_up(m)), IN_FLIGHT_DELIVERED);
	expect_only(m, 0, 8192);
	machine_stop(m);
}

static void overtaken_by_discard_it_is_stale(void **state)
{
	struct machine *m = boot_mapped();
	const uint64_t value = look_up(m);

	(void)state;
	its_run(m, 0, cmd_event(ITS_CMD_DISCARD, 1, 0));
	expect_stale(m, value);
	/* Even if the same event leads to the same LPI again. */
	map_event(m, 1, 0, 8192, 0);
	expect_stale(m, value);
	assert_int_equal(msi(m, 1, 0), 1);
	expect_only(m, 0, 8192);
	machine_stop(m);
}

static void overtaken_by_mapd_it_is_stale(void **state)
{
	(void)state;
	for (int valid = 0; valid < 2; valid++) {
		struct machine *m = boot_mapped();
		const uint64_t value = look_up(m);

		its_run(m, 0, cmd_mapd(1, 4, ITT(1), valid));
		expect_stale(m, value);
		map_device(m, 1, 5);
		map_event(m, 1, 0, 8192, 0);
		expect_stale(m, value);
		machine_stop(m);
	}
}

static void overtaken_by_mapti_it_is_stale(void **state)
{
	struct machine *m = boot_mapped();
	const uint64_t value = look_up(m);

	(void)state;
	map_event(m, 1, 0, 9000, 0);
	expect_stale(m, value);
	map_event(m, 1, 0, 8192, 0);
	expect_stale(m, value);
	machine_stop(m);
}

static void overtaken_by_a_move_it_goes_to_the_new_place(void **state)
{
	struct machine *m = boot_mapped();
	uint64_t value = look_up(m);

	(void)state;
	its_run(m, 0, cmd_movi(1, 0, 1));
	assert_int_equal(in_flight_act(m->vgic, value), IN_FLIGHT_DELIVERED);
	expect_only(m, 1, 8192);
	value = look_up(m);
	its_run(m, 0, cmd_movall(1, 0));
	assert_int_equal(in_flight_act(m->vgic, value), IN_FLIGHT_DELIVERED);
	expect_only(m, 0, 8192);
	map_collection(m, 1, 1);
	assert_int_equal(in_flight_act(m->vgic, value), IN_FLIGHT_DELIVERED);
	expect_only(m, 1, 8192);
	machine_stop(m);
}

static void overtaken_by_mapc_v0_it_is_nowhere(void **state)
{
	struct machine *m = boot_mapped();
	const uint64_t value = look_up(m);

	(void)state;
	its_run(m, 0, cmd_mapc(0, 0, false));
	assert_int_equal(in_flight_act(m->vgic, value), IN_FLIGHT_NOWHERE);
	expect_nothing(m);
	machine_stop(m);
}

/* After Quiescent=1 it must not come through, even when the ITS is on again. */
static void overtaken_by_quiescent_it_is_stale(void **state)
{
	struct machine *m = boot_mapped();
	const uint64_t value = look_up(m);

	(void)state;
	its_write(m, 0, GITS_CTLR, 4, 0);
	assert_int_equal(its_read(m, 0, GITS_CTLR, 4), GITS_CTLR_QUIESCENT);
	expect_stale(m, value);
	its_write(m, 0, GITS_CTLR, 4, GITS_CTLR_ENABLED);
	expect_stale(m, value);
	assert_int_equal(msi(m, 1, 0), 1);
	expect_only(m, 0, 8192);
	machine_stop(m);
}

static void overtaken_by_the_end_of_its_table_it_is_stale(void **state)
{
	struct machine *m = boot_mapped();
	const uint64_t value = look_up(m);

	(void)state;
	its_write(m, 0, GITS_CTLR, 4, 0);
	its_write(m, 0, GITS_BASER0, 8, 0);
	finish_work(m);
	expect_stale(m, value);
	machine_stop(m);
}

static void overtaken_by_enable_lpis_0_it_is_held(void **state)
{
	struct machine *m = boot_mapped();
	const uint64_t value = look_up(m);

	(void)state;
	redist_write(m, 0, GICR_CTLR, 0);
	finish_work(m);
	assert_int_equal(in_flight_act(m->vgic, value), IN_FLIGHT_HELD);
	assert_int_equal(redist_read(m, 0, GICR_CTLR) & GICR_CTLR_RWP, 0);
	lpis_enable(m, 0);
	expect_nothing(m);
	machine_stop(m);
}

static void overtaken_by_reset_it_is_stale(void **state)
{
	struct machine *m = boot_mapped();
	const uint64_t value = look_up(m);

	(void)state;
	assert_int_equal(vgic_reset(m->vgic), 0);
	its_set_up(m);
	map_collection(m, 0, 0);
	map_device(m, 1, 5);
	map_event(m, 1, 0, 8192, 0);
	expect_stale(m, value);
	machine_stop(m);
}

/* What is in flight of another ITS is not concerned by this one's commands. */
static void other_itses_are_not_overtaken(void **state)
{
	struct machine *m = boot_mapped();
	const uint64_t value = look_up(m);

	(void)state;
	its_run(m, 1, cmd_mapc(0, 1, true));
	its_run(m, 1, cmd_mapd(1, 4, ITT(5), true));
	its_run(m, 1, cmd_mapti(1, 0, 8192 + 64, 0));
	its_run(m, 1, cmd_event(ITS_CMD_DISCARD, 1, 0));
	its_write(m, 1, GITS_CTLR, 4, 0);
	finish_work(m);
	assert_int_equal(in_flight_act(m->vgic, value), IN_FLIGHT_DELIVERED);
	expect_only(m, 0, 8192);
	machine_stop(m);
}

/* ---- Who waits for whom ----------------------------------------------------------------------------------- */

/* An acknowledge that has taken its LPI but not yet returned: RWP waits for it. */
static void rwp_waits_for_an_acknowledge(void **state)
{
	struct machine *m = boot_mapped();

	(void)state;
	in_flight_begin_acknowledge(vcpu_of(m, 0));
	redist_write(m, 0, GICR_CTLR, 0);
	finish_work(m);
	for (int i = 0; i < 3; i++)
		assert_int_equal(redist_read(m, 0, GICR_CTLR) & GICR_CTLR_RWP, GICR_CTLR_RWP);
	in_flight_end_acknowledge(vcpu_of(m, 0));
	assert_int_equal(redist_read(m, 0, GICR_CTLR) & GICR_CTLR_RWP, 0);
	/* One that begins later is not waited for. */
	in_flight_begin_acknowledge(vcpu_of(m, 0));
	assert_int_equal(redist_read(m, 0, GICR_CTLR) & GICR_CTLR_RWP, 0);
	in_flight_end_acknowledge(vcpu_of(m, 0));
	machine_stop(m);
}

/* A signal that has seen EnableLPIs=1 while the walk of that set was under way: the next clear waits for it. */
static void rwp_waits_for_an_early_signal(void **state)
{
	struct machine *m = boot_mapped();

	(void)state;
	redist_write(m, 0, GICR_CTLR, 0);
	finish_work(m);
	redist_write(m, 0, GICR_CTLR, GICR_CTLR_ENABLE_LPIS);
	in_flight_begin_early_signal(vcpu_of(m, 0));
	redist_write(m, 0, GICR_CTLR, 0);
	for (int i = 0; i < 10; i++) {
		assert_int_equal(vgic_run_work(m->vgic), 1);
		assert_int_equal(redist_read(m, 0, GICR_CTLR) & GICR_CTLR_RWP, GICR_CTLR_RWP);
	}
	in_flight_end_early_signal(vcpu_of(m, 0));
	finish_work(m);
	assert_int_equal(redist_read(m, 0, GICR_CTLR) & GICR_CTLR_RWP, 0);
	machine_stop(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(overtaken_by_nothing_it_is_delivered),
		cmocka_unit_test(overtaken_by_discard_it_is_stale),
		cmocka_unit_test(overtaken_by_mapd_it_is_stale),
		cmocka_unit_test(overtaken_by_mapti_it_is_stale),
		cmocka_unit_test(overtaken_by_a_move_it_goes_to_the_new_place),
		cmocka_unit_test(overtaken_by_mapc_v0_it_is_nowhere),
		cmocka_unit_test(overtaken_by_quiescent_it_is_stale),
		cmocka_unit_test(overtaken_by_the_end_of_its_table_it_is_stale),
		cmocka_unit_test(overtaken_by_enable_lpis_0_it_is_held),
		cmocka_unit_test(overtaken_by_reset_it_is_stale),
		cmocka_unit_test(other_itses_are_not_overtaken),
		cmocka_unit_test(rwp_waits_for_an_acknowledge),
		cmocka_unit_test(rwp_waits_for_an_early_signal),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("its_in_flight", tests, NULL, NULL);
}
