/* SPDX-License-Identifier: MIT */
/*
 * Signals in flight: a device thread is in the middle of its signal, and is overtaken
 * by a command. Either the two halves of vgic_its_signal() are called here with the
 * command in between, or it is stopped before each of its loads in turn; every such
 * race happens every time. The library's inner parts are used for this, and for
 * nothing else.
 */
#include <errno.h>
#include <stdlib.h>
#include <vgic/state.h>

#include "its_guest.h"

#include "its_in_flight.h"

/* Two vCPUs; collections 0 and 1 at them; device 1, event 0 to LPI 8192 at collection 0. */
static struct machine *boot_mapped(void)
{
	struct machine *m = its_describe(2, 2);

	/* Small, as there are hundreds of them. */
	m->config.lpi_id_bits = 14;
	for (unsigned i = 0; i < 2; i++) {
		its_configs[i].max_devices = 4;
		its_configs[i].max_translations = 16;
	}
	its_set_up(machine_start(m));
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

/* ---- Overtaken anywhere ------------------------------------------------------------------------------------- */

/* What a command finds, and what the signal that it overtook did. */
struct overtaken {
	struct machine *m;
	bool was_pending; /* when the command was done */
	int result;
};

typedef void command(struct machine *m);
typedef void judgement(struct overtaken *o);

struct overtaking {
	struct overtaken *o;
	command *run;
};

static void overtake(void *context)
{
	struct overtaking *overtaking = context;

	overtaking->run(overtaking->o->m);
	overtaking->o->was_pending = in_flight_is_pending(overtaking->o->m->vgic, 8192);
}

/* Event 0 is signalled, and @run comes in before its first load, its second, and so on up to its last. */
static void overtake_anywhere(command *run, judgement *judge)
{
	bool reached = true;

	for (unsigned load = 0; reached; load++) {
		struct overtaken o = { .m = boot_mapped() };
		struct overtaking overtaking = { .o = &o, .run = run };
		struct in_flight_stop stop = { .before_load = load, .action = overtake, .context = &overtaking };

		o.result = in_flight_signal(its_of(o.m, 0), 1, 0, &stop, 1);
		reached = stop.reached;
		if (reached) {
			/* It tells the device what it did. */
			judge(&o);
		} else {
			assert_true(load > 4);
			assert_int_equal(o.result, 1);
			expect_only(o.m, 0, 8192);
		}
		machine_stop(o.m);
	}
}

/* Two stops, before each pair of loads. The function returns whether it got as far as the second. */
static void stop_at_each_pair(bool (*signal_with_stops)(unsigned first, unsigned second))
{
	unsigned first = 0, second;

	do {
		second = first + 1;
		while (signal_with_stops(first, second))
			second++;
	} while (second > ++first);
	assert_true(first > 4);
}

/* Nothing came through any more. */
static void judge_promise(struct overtaken *o)
{
	assert_int_equal(in_flight_is_pending(o->m->vgic, 8192), o->was_pending);
	if (o->result != 1)
		assert_false(o->was_pending);
}

static void switch_its_off(struct machine *m)
{
	its_write(m, 0, GITS_CTLR, 4, 0);
	assert_int_equal(its_read(m, 0, GITS_CTLR, 4), GITS_CTLR_QUIESCENT);
}

/* The same event to the same LPI, but its translation is a new one. */
static void map_it_anew(struct machine *m)
{
	its_run(m, 0, cmd_event(ITS_CMD_DISCARD, 1, 0));
	map_event(m, 1, 0, 8192, 0);
}

/* Enabled is read after the lookup: a translation that was renewed behind Enabled=0 is not one of before. */
static void quiescent_holds_wherever_a_signal_is(void **state)
{
	(void)state;
	overtake_anywhere(switch_its_off, judge_promise);
}

/* It is stale at its first look: the second look is to be as careful. */
static bool quiescent_holds_behind_a_stale_look(unsigned first, unsigned second)
{
	struct overtaken o = { .m = boot_mapped() };
	struct overtaking overtakings[] = { { .o = &o, .run = map_it_anew }, { .o = &o, .run = switch_its_off } };
	struct in_flight_stop stops[] = {
		{ .before_load = first, .action = overtake, .context = &overtakings[0] },
		{ .before_load = second, .action = overtake, .context = &overtakings[1] },
	};

	o.result = in_flight_signal(its_of(o.m, 0), 1, 0, stops, 2);
	if (stops[1].reached)
		judge_promise(&o);
	machine_stop(o.m);
	return stops[1].reached;
}

static void quiescent_holds_at_the_second_look_too(void **state)
{
	(void)state;
	stop_at_each_pair(quiescent_holds_behind_a_stale_look);
}

static void discard_it(struct machine *m)
{
	its_run(m, 0, cmd_event(ITS_CMD_DISCARD, 1, 0));
}

static void unmap_its_device(struct machine *m)
{
	its_run(m, 0, cmd_mapd(1, 4, ITT(1), false));
}

static void unmap_its_collection(struct machine *m)
{
	its_run(m, 0, cmd_mapc(0, 0, false));
}

static void replace_it(struct machine *m)
{
	map_event(m, 1, 0, 9000, 0);
}

static void unmappings_hold_wherever_a_signal_is(void **state)
{
	(void)state;
	overtake_anywhere(discard_it, judge_promise);
	overtake_anywhere(unmap_its_device, judge_promise);
	overtake_anywhere(unmap_its_collection, judge_promise);
	overtake_anywhere(replace_it, judge_promise);
}

/* From a machine in which the event leads to another LPI, and another event to this one. Nothing is pending there. */
static void restore_another(struct machine *m)
{
	struct machine *other = boot_mapped();
	size_t size = 0;
	void *image;

	map_event(other, 1, 0, 9000, 0);
	map_event(other, 1, 1, 8192, 0);
	assert_int_equal(vgic_save_size(other->vgic, &size), 0);
	image = malloc(size);
	assert_int_equal(vgic_save(other->vgic, image, size, &size), 0);
	machine_stop(other);
	assert_int_equal(vgic_restore(m->vgic, image, size, NULL), 0);
	free(image);
}

/* It came before, and is gone; or it came after, to where the event leads now. */
static void judge_restore(struct overtaken *o)
{
	assert_false(in_flight_is_pending(o->m->vgic, 8192));
	if (in_flight_is_pending(o->m->vgic, 9000)) {
		assert_int_equal(o->result, 1);
		expect_only(o->m, 0, 9000);
	}
	expect_nothing(o->m);
	/* No hint and no mapping of before is in the way of what comes now. */
	assert_int_equal(msi(o->m, 1, 1), 1);
	expect_only(o->m, 0, 8192);
}

static void restores_hold_wherever_a_signal_is(void **state)
{
	(void)state;
	overtake_anywhere(restore_another, judge_restore);
}

static void reset_it(struct machine *m)
{
	assert_int_equal(vgic_reset(m->vgic), 0);
}

static void judge_reset(struct overtaken *o)
{
	assert_false(in_flight_is_pending(o->m->vgic, 8192));
	expect_nothing(o->m);
}

static void resets_hold_wherever_a_signal_is(void **state)
{
	(void)state;
	overtake_anywhere(reset_it, judge_reset);
}

static void move_it(struct machine *m)
{
	its_run(m, 0, cmd_movi(1, 0, 1));
}

static void move_all(struct machine *m)
{
	its_run(m, 0, cmd_movall(0, 1));
}

static void judge_move(struct overtaken *o)
{
	assert_int_equal(o->result, 1);
	expect_only(o->m, 1, 8192);
}

static void moves_hold_wherever_a_signal_is(void **state)
{
	(void)state;
	overtake_anywhere(move_it, judge_move);
	overtake_anywhere(move_all, judge_move);
}

static void disable_lpis(struct machine *m)
{
	redist_write(m, 0, GICR_CTLR, 0);
	finish_work(m);
	assert_int_equal(redist_read(m, 0, GICR_CTLR) & GICR_CTLR_RWP, 0);
}

/* What it made pending before is in the table. */
static void judge_lpis_off(struct overtaken *o)
{
	assert_false(in_flight_is_pending(o->m->vgic, 8192));
	assert_int_equal(table_pending(0, 8192), o->result == 1);
}

static void rwp_holds_wherever_a_signal_is(void **state)
{
	(void)state;
	overtake_anywhere(disable_lpis, judge_lpis_off);
}

/* ---- A node that is used again ----

 * Events 1 and 2 lead to LPIs 8193 and 8194. While a signal of event 2 is on its way its
 * node is taken for event 3, which shares LPI 8193 with event 1 (so that the LPI keeps its
 * generation), and then for event 2 again.
 */

static void use_node_for_event_3(void *context)
{
	its_run(context, 0, cmd_event(ITS_CMD_DISCARD, 1, 2));
	map_event(context, 1, 3, 8193, 0);
}

static void use_node_for_event_2(void *context)
{
	its_run(context, 0, cmd_event(ITS_CMD_DISCARD, 1, 3));
	map_event(context, 1, 2, 8194, 0);
}

/* Returns whether the signal got as far as the second stop. */
static bool signal_while_its_node_is_used_again(unsigned first, unsigned second)
{
	struct machine *m = boot_mapped();
	struct in_flight_stop stops[] = {
		{ .before_load = first, .action = use_node_for_event_3, .context = m },
		{ .before_load = second, .action = use_node_for_event_2, .context = m },
	};

	map_event(m, 1, 1, 8193, 0);
	map_event(m, 1, 2, 8194, 0);
	in_flight_signal(its_of(m, 0), 1, 2, stops, 2);
	assert_false(in_flight_is_pending(m->vgic, 8193));
	machine_stop(m);
	return stops[1].reached;
}

static void a_node_that_is_used_again_shows_one_translation(void **state)
{
	(void)state;
	stop_at_each_pair(signal_while_its_node_is_used_again);
}

/* ---- Who waits for whom ----------------------------------------------------------------------------------- */

/* Also of an LPI that has two translations: a save must not miss what is accepted behind it. */
static void overtaken_by_a_pause_it_is_stale(void **state)
{
	struct machine *m = boot_mapped();
	uint64_t value = look_up(m);

	(void)state;
	vgic_pause(m->vgic);
	expect_stale(m, value);
	vgic_resume(m->vgic);
	expect_stale(m, value);
	assert_int_equal(msi(m, 1, 0), 1);
	expect_only(m, 0, 8192);
	map_event(m, 1, 1, 8192, 0);
	value = look_up(m);
	vgic_pause(m->vgic);
	expect_stale(m, value);
	vgic_resume(m->vgic);
	assert_int_equal(msi(m, 1, 0), 1);
	expect_only(m, 0, 8192);
	assert_int_equal(msi(m, 1, 1), 1);
	expect_only(m, 0, 8192);
	machine_stop(m);
}

/* Whatever a restore makes of its LPI: a signal of before is not for it. */
static void overtaken_by_a_restore_it_is_stale(void **state)
{
	struct machine *m = boot_mapped();
	const uint64_t value = look_up(m);
	size_t size = 0;
	void *image;

	(void)state;
	assert_int_equal(vgic_save_size(m->vgic, &size), 0);
	image = malloc(size);
	assert_int_equal(vgic_save(m->vgic, image, size, &size), 0);
	assert_int_equal(vgic_restore(m->vgic, image, size, NULL), 0);
	free(image);
	expect_stale(m, value);
	assert_int_equal(msi(m, 1, 0), 1);
	expect_only(m, 0, 8192);
	machine_stop(m);
}

/* Only a new use of the node makes a new number, and never one that a reader may remember. */
static void a_pause_keeps_the_number_of_a_nodes_use(void **state)
{
	struct machine *m = boot_mapped();
	uint64_t use;

	(void)state;
	its_run(m, 0, cmd_event(ITS_CMD_DISCARD, 1, 0));
	map_event(m, 1, 0, 8192, 0);
	use = in_flight_use(look_up(m));
	assert_int_not_equal(use, 0);
	vgic_pause(m->vgic);
	vgic_resume(m->vgic);
	assert_int_equal(in_flight_use(look_up(m)), use);
	machine_stop(m);
}

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
		cmocka_unit_test(quiescent_holds_wherever_a_signal_is),
		cmocka_unit_test(quiescent_holds_at_the_second_look_too),
		cmocka_unit_test(unmappings_hold_wherever_a_signal_is),
		cmocka_unit_test(restores_hold_wherever_a_signal_is),
		cmocka_unit_test(resets_hold_wherever_a_signal_is),
		cmocka_unit_test(moves_hold_wherever_a_signal_is),
		cmocka_unit_test(rwp_holds_wherever_a_signal_is),
		cmocka_unit_test(a_node_that_is_used_again_shows_one_translation),
		cmocka_unit_test(overtaken_by_a_pause_it_is_stale),
		cmocka_unit_test(overtaken_by_a_restore_it_is_stale),
		cmocka_unit_test(a_pause_keeps_the_number_of_a_nodes_use),
		cmocka_unit_test(rwp_waits_for_an_acknowledge),
		cmocka_unit_test(rwp_waits_for_an_early_signal),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("its_in_flight", tests, NULL, NULL);
}
