/* SPDX-License-Identifier: MIT */
/*
 * Bounded work: one access does a bounded part of what the guest has asked for; the
 * rest is announced and done by vgic_run_work(), or bit by bit while the guest
 * polls. Long commands are continued where they were.
 */
#include <errno.h>
#include <pthread.h>

#include "its_guest.h"

/* What one access may do: so many commands, or translations, or a quarter of so many words of LPIs. */
#define STEPS    4096u
#define NUM_LPIS (65536u - GIC_FIRST_LPI)
#define MANY     57344u

static unsigned num_announced;

static void on_work_pending(void *opaque)
{
	(void)opaque;
	num_announced++;
}

/* Two vCPUs, queues of the largest size, collections 0 and 1. */
static struct machine *boot_large(uint32_t num_itses, bool with_callback)
{
	struct machine *m = its_describe(2, num_itses);

	if (with_callback)
		m->config.ops.work_pending = on_work_pending;
	machine_start(m);
	lpis_set_up(m);
	for (uint32_t i = 0; i < num_itses; i++) {
		its_tables_set_up(m, i);
		its_write(m, i, GITS_CBASER, 8, GITS_CBASER_VALID | QUEUE(i) | 0xff);
		its_write(m, i, GITS_CTLR, 4, GITS_CTLR_ENABLED);
		its_run(m, i, cmd_mapc(0, 0, true));
		its_run(m, i, cmd_mapc(1, 1, true));
	}
	num_announced = 0;
	return m;
}

/* Device 1 with @count events, in collection 0. Events past the number of LPIs share them. */
static void map_many(struct machine *m, uint32_t count)
{
	its_run(m, 0, cmd_mapd(1, 15, ITT(0), true));
	for (uint32_t event = 0; event < count; event++) {
		its_place(m, 0, cmd_mapti(1, event, GIC_FIRST_LPI + event % NUM_LPIS, 0));
		if (event % 16384 == 16383 || event == count - 1) {
			its_submit(m, 0);
			finish_work(m);
		}
	}
	assert_int_equal(its_stats(m, 0).num_translations, count);
	assert_int_equal(its_all_errors(m, 0), 0);
	num_announced = 0;
}

/* Some parts, and how many there were. Each makes the VMM's call return 1 while there is more. */
static unsigned work_to_the_end(struct machine *m)
{
	unsigned parts = 1;

	while (vgic_run_work(m->vgic) == 1)
		parts++;
	assert_int_equal(vgic_run_work(m->vgic), 0);
	return parts;
}

static void *work_elsewhere(void *m)
{
	work_to_the_end(m);
	return NULL;
}

/* Submit one long command, and one behind it. Neither is done when the access returns, nor before the last part. */
static void run_long(struct machine *m, struct its_cmd cmd)
{
	const uint64_t commands = its_stats(m, 0).commands;
	const unsigned announced = num_announced;
	unsigned parts = 0;
	int left = 1;

	its_place(m, 0, cmd);
	its_place(m, 0, cmd_sync(0));
	its_submit(m, 0);
	assert_int_equal(num_announced, announced + 1);
	while (left) {
		assert_int_equal(its_stats(m, 0).commands, commands);
		left = vgic_run_work(m->vgic);
		assert_in_range(left, 0, 1);
		parts++;
	}
	assert_int_equal(its_stats(m, 0).commands, commands + 2);
	assert_in_range(parts, 2, 40);
	assert_int_equal(its_all_errors(m, 0), 0);
}

/* ---- The queue ------------------------------------------------------------------------------------- */

static void small_work_is_not_announced(void **state)
{
	struct machine *m = boot_large(1, true);

	(void)state;
	its_run(m, 0, cmd_mapd(1, 4, ITT(0), true));
	its_run(m, 0, cmd_sync(0));
	for (uint32_t i = 0; i < STEPS - 1; i++)
		its_place(m, 0, cmd_sync(0));
	its_submit(m, 0);
	assert_int_equal(num_announced, 0);
	assert_int_equal(vgic_run_work(m->vgic), 0);
	assert_int_equal(its_stats(m, 0).commands, STEPS + 3);
	machine_stop(m);
}

static void one_write_does_a_bounded_part_of_the_queue(void **state)
{
	struct machine *m = boot_large(1, true);
	uint64_t before;

	(void)state;
	for (uint32_t i = 0; i < 32000; i++)
		its_place(m, 0, cmd_sync(0));
	before = its_stats(m, 0).commands;
	its_submit(m, 0);
	assert_int_equal(num_announced, 1);
	assert_int_equal(its_stats(m, 0).commands, before + STEPS);
	assert_int_equal(vgic_run_work(m->vgic), 1);
	assert_int_equal(its_stats(m, 0).commands, before + 2 * STEPS);
	/* Each write that leaves work says so, for whoever missed it. */
	its_submit(m, 0);
	assert_int_equal(num_announced, 2);
	assert_int_equal(its_stats(m, 0).commands, before + 3 * STEPS);
	assert_int_equal(work_to_the_end(m), 5);
	assert_int_equal(its_stats(m, 0).commands, before + 32000);
	its_submit(m, 0);
	assert_int_equal(num_announced, 2);
	machine_stop(m);
}

static void polling_makes_progress_without_a_callback(void **state)
{
	struct machine *m = boot_large(1, false);
	uint64_t last = 0, creadr;
	unsigned polls = 0;

	(void)state;
	for (uint32_t i = 0; i < 32000; i++)
		its_place(m, 0, cmd_sync(0));
	its_submit(m, 0);
	do {
		creadr = its_read(m, 0, GITS_CREADR, 8);
		assert_true(creadr > last);
		last = creadr;
		polls++;
	} while (creadr != 32002 * ITS_CMD_SIZE);
	assert_in_range(polls, 6, 8);
	assert_int_equal(its_stats(m, 0).commands, 32002);
	machine_stop(m);
}

/* The registers that a guest may poll while it waits for other work: each does a part. */
static void every_progress_register_makes_progress(void **state)
{
	struct machine *m = boot_large(1, false);
	uint64_t commands;

	(void)state;
	for (uint32_t i = 0; i < 32000; i++)
		its_place(m, 0, cmd_sync(0));
	its_submit(m, 0);
	commands = its_stats(m, 0).commands;
	its_read(m, 0, GITS_CTLR, 4);
	assert_int_equal(its_stats(m, 0).commands, commands + STEPS);
	redist_read(m, 1, GICR_CTLR);
	assert_int_equal(its_stats(m, 0).commands, commands + 2 * STEPS);
	redist_read(m, 0, GICR_SYNCR);
	assert_int_equal(its_stats(m, 0).commands, commands + 3 * STEPS);
	/* Others do not. */
	its_read(m, 0, GITS_CWRITER, 8);
	its_read(m, 0, GITS_TYPER, 8);
	assert_int_equal(its_stats(m, 0).commands, commands + 3 * STEPS);
	machine_stop(m);
}

/* A guest that queues an INT behind much else and then sleeps gets it. */
static void work_by_another_thread_wakes_the_guest(void **state)
{
	struct machine *m = boot_large(1, true);
	pthread_t thread;
	unsigned kicks;

	(void)state;
	its_run(m, 0, cmd_mapd(1, 4, ITT(0), true));
	its_run(m, 0, cmd_mapti(1, 0, 8192, 1));
	for (uint32_t i = 0; i < 20000; i++)
		its_place(m, 0, cmd_sync(0));
	its_place(m, 0, cmd_event(ITS_CMD_INT, 1, 0));
	its_submit(m, 0);
	assert_int_equal(num_announced, 1);
	assert_int_equal(vgic_prepare_wait(vcpu_of(m, 1)), 0);
	kicks = m->kicks[1];
	assert_int_equal(pthread_create(&thread, NULL, work_elsewhere, m), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(m->kicks[1], kicks + 1);
	vgic_finish_wait(vcpu_of(m, 1));
	expect_only(m, 1, 8192);
	machine_stop(m);
}

struct writers {
	struct machine *m;
	uint64_t cwriter;
	_Atomic bool stop;
	_Atomic unsigned moved_back;
};

static void *write_cwriter(void *arg)
{
	struct writers *w = arg;
	uint64_t last = 0, creadr = 0;

	while (creadr != w->cwriter) {
		vgic_its_write(vgic_its_by_index(w->m->vgic, 0), GITS_CWRITER, 8, w->cwriter);
		vgic_its_read(vgic_its_by_index(w->m->vgic, 0), GITS_CREADR, 8, &creadr);
		if (creadr < last)
			w->moved_back++;
		last = creadr;
	}
	return NULL;
}

static void *do_work(void *arg)
{
	struct writers *w = arg;

	while (!w->stop)
		vgic_run_work(w->m->vgic);
	return NULL;
}

static void two_writers_of_cwriter_run_each_command_once(void **state)
{
	struct machine *m = boot_large(1, false);
	struct writers w = { .m = m, .cwriter = 32002 * ITS_CMD_SIZE };
	pthread_t threads[3];

	(void)state;
	for (uint32_t i = 0; i < 32000; i++)
		its_place(m, 0, cmd_sync(0));
	assert_int_equal(pthread_create(&threads[0], NULL, write_cwriter, &w), 0);
	assert_int_equal(pthread_create(&threads[1], NULL, write_cwriter, &w), 0);
	assert_int_equal(pthread_create(&threads[2], NULL, do_work, &w), 0);
	pthread_join(threads[0], NULL);
	pthread_join(threads[1], NULL);
	w.stop = true;
	pthread_join(threads[2], NULL);
	assert_int_equal(its_stats(m, 0).commands, 32002);
	assert_int_equal(w.moved_back, 0);
	machine_stop(m);
}

static void itses_take_turns(void **state)
{
	struct machine *m = boot_large(2, true);

	(void)state;
	for (uint32_t i = 0; i < 32000; i++) {
		its_place(m, 0, cmd_sync(0));
		if (i < 5000)
			its_place(m, 1, cmd_sync(0));
	}
	its_submit(m, 0);
	its_submit(m, 1);
	for (int i = 0; i < 5; i++)
		assert_int_equal(vgic_run_work(m->vgic), 1);
	assert_int_equal(its_stats(m, 1).commands, 5002);
	assert_true(its_stats(m, 0).commands < 32002);
	work_to_the_end(m);
	assert_int_equal(its_stats(m, 0).commands, 32002);
	machine_stop(m);
}

/* ---- Commands that are continued ------------------------------------------------------------------------- */

static void mapd_drops_65536_events_in_parts(void **state)
{
	struct machine *m = boot_large(1, true);
	uint32_t last = 65536;

	(void)state;
	map_many(m, 65536);
	assert_int_equal(msi(m, 1, 65535), 1);
	its_place(m, 0, cmd_mapd(1, 0, 0, false));
	its_place(m, 0, cmd_mapd(2, 4, ITT(1), true));
	its_submit(m, 0);
	assert_int_equal(num_announced, 1);
	do {
		const struct vgic_its_stats stats = its_stats(m, 0);

		/* The device and some of its events are there until the end; CREADR stays before the command. */
		assert_in_range(last - stats.num_translations, STEPS / 2, STEPS);
		assert_int_equal(stats.num_devices, 1);
		last = stats.num_translations;
	} while (vgic_run_work(m->vgic) == 1);
	assert_int_equal(its_stats(m, 0).num_translations, 0);
	assert_int_equal(its_stats(m, 0).num_devices, 1);
	expect_nothing(m);
	its_run_wrong(m, 0, cmd_event(ITS_CMD_INT, 1, 0), VGIC_ITS_INT_UNMAPPED_DEVICE);
	its_run(m, 0, cmd_mapti(2, 0, 8192, 0));
	assert_int_equal(msi(m, 2, 0), 1);
	expect_only(m, 0, 8192);
	machine_stop(m);
}

static void creadr_stays_while_a_command_is_under_way(void **state)
{
	struct machine *m = boot_large(1, true);
	uint64_t before;

	(void)state;
	map_many(m, MANY);
	before = its_read(m, 0, GITS_CREADR, 8);
	its_place(m, 0, cmd_mapd(1, 0, 0, false));
	its_submit(m, 0);
	assert_int_equal(its_read(m, 0, GITS_CREADR, 8), before);
	finish_work(m);
	assert_int_equal(its_read(m, 0, GITS_CREADR, 8), before + ITS_CMD_SIZE);
	machine_stop(m);
}

/*
 * Nothing is signalled. 57344 interrupts that have moved away leave as many stale hints: a search that has met a few
 * thousand of them gives up for once, with the line still up.
 */
static void expect_nothing_at_last(struct machine *m)
{
	for (uint32_t v = 0; v < 2; v++) {
		for (int looks = 0; lines_of(m, v); looks++) {
			assert_true(looks < 50);
			assert_int_equal(take(m, v), NO_INTERRUPT);
		}
		assert_int_equal(take(m, v), NO_INTERRUPT);
	}
}

/* Every LPI is pending; after the command each is taken once, at @vcpu. */
static void expect_all_at(struct machine *m, uint32_t vcpu, uint32_t count)
{
	static bool taken[MANY];

	for (uint32_t i = 0; i < count; i++)
		taken[i] = false;
	for (uint32_t i = 0; i < count; i++) {
		uint32_t intid = take(m, vcpu);

		while (intid == NO_INTERRUPT && lines_of(m, vcpu))
			intid = take(m, vcpu);
		assert_in_range(intid, GIC_FIRST_LPI, GIC_FIRST_LPI + count - 1);
		assert_false(taken[intid - GIC_FIRST_LPI]);
		taken[intid - GIC_FIRST_LPI] = true;
	}
	expect_nothing_at_last(m);
}

static void make_all_pending(struct machine *m, uint32_t count)
{
	for (uint32_t event = 0; event < count; event++)
		assert_int_equal(msi(m, 1, event), 1);
}

static void mapc_moves_57344_lpis_in_parts(void **state)
{
	struct machine *m = boot_large(1, true);

	(void)state;
	map_many(m, MANY);
	make_all_pending(m, MANY);
	run_long(m, cmd_mapc(0, 1, true));
	expect_all_at(m, 1, MANY);
	make_all_pending(m, 100);
	expect_all_at(m, 1, 100);
	machine_stop(m);
}

static void movall_moves_57344_lpis_in_parts(void **state)
{
	struct machine *m = boot_large(1, true);

	(void)state;
	map_many(m, MANY);
	make_all_pending(m, MANY);
	run_long(m, cmd_movall(0, 1));
	expect_all_at(m, 1, MANY);
	machine_stop(m);
}

static void invall_reads_57344_properties_in_parts(void **state)
{
	struct machine *m = boot_large(1, true);

	(void)state;
	ram_fill(PROPERTY_TABLE, 0xa0, NUM_LPIS);
	map_many(m, MANY);
	make_all_pending(m, MANY);
	expect_nothing(m);
	ram_fill(PROPERTY_TABLE, 0xa1, NUM_LPIS);
	run_long(m, cmd_invall(0));
	expect_all_at(m, 0, MANY);
	machine_stop(m);
}

/* ---- EnableLPIs ---------------------------------------------------------------------------------------------- */

static void disabling_holds_rwp_until_the_table_is_written(void **state)
{
	struct machine *m = boot_large(1, true);
	unsigned parts = 0;

	(void)state;
	map_many(m, MANY);
	make_all_pending(m, MANY);
	redist_write(m, 0, GICR_CTLR, 0);
	assert_int_equal(num_announced, 1);
	while (redist_read(m, 0, GICR_CTLR) & GICR_CTLR_RWP) {
		/* While RWP is 1 the bit cannot be set again. */
		redist_write(m, 0, GICR_CTLR, GICR_CTLR_ENABLE_LPIS);
		assert_int_equal(redist_read(m, 0, GICR_CTLR) & GICR_CTLR_ENABLE_LPIS, 0);
		assert_in_range(++parts, 1, 20);
	}
	assert_in_range(parts, 1, 20);
	expect_nothing_at_last(m);
	for (uint32_t lpi = GIC_FIRST_LPI; lpi < GIC_FIRST_LPI + MANY; lpi++)
		assert_true(table_pending(0, lpi));
	redist_write_width(m, 0, GICR_PENDBASER, 8, PENDING_TABLE(0));
	lpis_enable(m, 0);
	expect_all_at(m, 0, MANY);
	machine_stop(m);
}

/* Signals that come while the enabling walk is under way are kept. */
static void enabling_in_parts_loses_no_signal(void **state)
{
	struct machine *m = boot_large(1, true);

	(void)state;
	map_many(m, MANY);
	redist_write(m, 0, GICR_CTLR, 0);
	finish_work(m);
	redist_write_width(m, 0, GICR_PENDBASER, 8, PENDING_TABLE(0));
	num_announced = 0;
	redist_write(m, 0, GICR_CTLR, GICR_CTLR_ENABLE_LPIS);
	assert_int_equal(num_announced, 1);
	make_all_pending(m, MANY);
	/* The last one is not there yet, and comes with a kick. */
	assert_int_equal(vgic_run_work(m->vgic), 1);
	finish_work(m);
	expect_all_at(m, 0, MANY);
	machine_stop(m);
}

static void invallr_is_busy_until_it_is_through(void **state)
{
	struct machine *m = boot_large(1, true);
	unsigned polls = 0;

	(void)state;
	map_many(m, MANY);
	ram_fill(PROPERTY_TABLE, 0xa0, NUM_LPIS);
	redist_write_width(m, 0, GICR_INVALLR, 8, 0);
	assert_int_equal(num_announced, 1);
	while (redist_read(m, 0, GICR_SYNCR) & 1)
		assert_in_range(++polls, 1, 20);
	assert_in_range(polls, 1, 20);
	make_all_pending(m, MANY);
	expect_nothing(m);
	machine_stop(m);
}

/* ---- The ITS off and on ---------------------------------------------------------------------------------------- */

static void quiescent_waits_for_a_command_under_way(void **state)
{
	struct machine *m = boot_large(1, true);
	const uint64_t cbaser = its_read(m, 0, GITS_CBASER, 8);
	uint64_t commands;

	(void)state;
	map_many(m, MANY);
	its_place(m, 0, cmd_mapc(0, 1, true));
	its_place(m, 0, cmd_mapd(2, 4, ITT(1), true));
	commands = its_stats(m, 0).commands;
	its_submit(m, 0);
	its_write(m, 0, GITS_CTLR, 4, 0);
	assert_int_equal(msi(m, 1, 0), -EBUSY);
	assert_int_equal(its_read(m, 0, GITS_CTLR, 4), 0);
	/* Not off yet: the queue stays where it is. */
	its_write(m, 0, GITS_CBASER, 8, 0);
	assert_int_equal(its_read(m, 0, GITS_CBASER, 8), cbaser);
	finish_work(m);
	assert_int_equal(its_read(m, 0, GITS_CTLR, 4), GITS_CTLR_QUIESCENT);
	/* The command was finished, the one behind it not begun. */
	assert_int_equal(its_stats(m, 0).commands, commands + 1);
	assert_int_equal(its_stats(m, 0).num_devices, 1);
	its_write(m, 0, GITS_CTLR, 4, GITS_CTLR_ENABLED);
	assert_int_equal(its_stats(m, 0).commands, commands + 2);
	assert_int_equal(its_stats(m, 0).num_devices, 2);
	assert_int_equal(msi(m, 1, 0), 1);
	expect_only(m, 1, 8192);
	machine_stop(m);
}

static void quiescing_is_done_in_parts(void **state)
{
	struct machine *m = boot_large(1, true);
	unsigned polls = 0;

	(void)state;
	map_many(m, 65536);
	its_write(m, 0, GITS_CTLR, 4, 0);
	assert_int_equal(num_announced, 1);
	while (!(its_read(m, 0, GITS_CTLR, 4) & GITS_CTLR_QUIESCENT))
		assert_in_range(++polls, 1, 40);
	assert_in_range(polls, 10, 40);
	its_write(m, 0, GITS_CTLR, 4, GITS_CTLR_ENABLED);
	assert_int_equal(its_stats(m, 0).num_translations, 65536);
	make_all_pending(m, MANY);
	expect_all_at(m, 0, MANY);
	machine_stop(m);
}

/* Who enables at once, without waiting for Quiescent, has an ITS that works. */
static void enabling_before_quiescent_is_allowed(void **state)
{
	struct machine *m = boot_large(1, true);

	(void)state;
	map_many(m, MANY);
	its_write(m, 0, GITS_CTLR, 4, 0);
	its_write(m, 0, GITS_CTLR, 4, GITS_CTLR_ENABLED);
	assert_int_equal(its_read(m, 0, GITS_CTLR, 4), GITS_CTLR_ENABLED);
	make_all_pending(m, MANY);
	finish_work(m);
	expect_all_at(m, 0, MANY);
	machine_stop(m);
}

/* A table that is taken away takes along what was in it, before the ITS is on again. */
static void table_is_emptied_before_the_its_is_on_again(void **state)
{
	static const uint32_t offsets[] = { GITS_BASER0, GITS_BASER1 };

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct machine *m = boot_large(1, true);
		const uint64_t value = its_read(m, 0, offsets[i], 8);

		map_many(m, MANY);
		its_write(m, 0, GITS_CTLR, 4, 0);
		finish_work(m);
		num_announced = 0;
		its_write(m, 0, offsets[i], 8, value & ~GITS_BASER_VALID);
		assert_int_equal(num_announced, 1);
		its_write(m, 0, offsets[i], 8, value);
		its_write(m, 0, GITS_CTLR, 4, GITS_CTLR_ENABLED);
		assert_int_equal(msi(m, 1, MANY - 1), -EBUSY);
		assert_int_equal(its_read(m, 0, GITS_CTLR, 4), GITS_CTLR_ENABLED);
		finish_work(m);
		assert_int_equal(msi(m, 1, 0), 0);
		assert_int_equal(msi(m, 1, MANY - 1), 0);
		assert_int_equal(its_stats(m, 0).num_devices, i);
		assert_int_equal(its_stats(m, 0).num_translations, i * MANY);
		machine_stop(m);
	}
}

static void reset_ends_work_that_is_under_way(void **state)
{
	struct machine *m = boot_large(1, true);

	(void)state;
	map_many(m, MANY);
	its_place(m, 0, cmd_mapd(1, 0, 0, false));
	its_submit(m, 0);
	redist_write(m, 0, GICR_CTLR, 0);
	assert_int_equal(vgic_reset(m->vgic), 0);
	assert_int_equal(vgic_run_work(m->vgic), 0);
	assert_int_equal(its_read(m, 0, GITS_CTLR, 4), GITS_CTLR_QUIESCENT);
	assert_int_equal(redist_read(m, 0, GICR_CTLR) & GICR_CTLR_RWP, 0);
	assert_int_equal(its_stats(m, 0).num_devices, 0);
	its_set_up(m);
	map_collection(m, 0, 0);
	map_device(m, 1, 4);
	map_event(m, 1, 0, 8192, 0);
	assert_int_equal(msi(m, 1, 0), 1);
	expect_only(m, 0, 8192);
	machine_stop(m);
}

static void destroy_in_the_middle_of_work(void **state)
{
	struct machine *m = boot_large(1, true);

	(void)state;
	map_many(m, MANY);
	its_place(m, 0, cmd_mapd(1, 0, 0, false));
	its_submit(m, 0);
	assert_int_equal(num_announced, 1);
	machine_stop(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(small_work_is_not_announced),
		cmocka_unit_test(one_write_does_a_bounded_part_of_the_queue),
		cmocka_unit_test(polling_makes_progress_without_a_callback),
		cmocka_unit_test(every_progress_register_makes_progress),
		cmocka_unit_test(work_by_another_thread_wakes_the_guest),
		cmocka_unit_test(two_writers_of_cwriter_run_each_command_once),
		cmocka_unit_test(itses_take_turns),
		cmocka_unit_test(mapd_drops_65536_events_in_parts),
		cmocka_unit_test(creadr_stays_while_a_command_is_under_way),
		cmocka_unit_test(mapc_moves_57344_lpis_in_parts),
		cmocka_unit_test(movall_moves_57344_lpis_in_parts),
		cmocka_unit_test(invall_reads_57344_properties_in_parts),
		cmocka_unit_test(disabling_holds_rwp_until_the_table_is_written),
		cmocka_unit_test(enabling_in_parts_loses_no_signal),
		cmocka_unit_test(invallr_is_busy_until_it_is_through),
		cmocka_unit_test(quiescent_waits_for_a_command_under_way),
		cmocka_unit_test(quiescing_is_done_in_parts),
		cmocka_unit_test(enabling_before_quiescent_is_allowed),
		cmocka_unit_test(table_is_emptied_before_the_its_is_on_again),
		cmocka_unit_test(reset_ends_work_that_is_under_way),
		cmocka_unit_test(destroy_in_the_middle_of_work),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("its_work", tests, NULL, NULL);
}
