/* SPDX-License-Identifier: MIT */
/*
 * LPIs and the ITS: set up from EL1 as a kernel does, with events made by the INT
 * command and, where there is a test device, by its MSIs.
 */
#include "test.h"

enum {
	LPI_A = LPI_FIRST + 5,
	LPI_B,
	DEVICE = 1,
	OTHER_DEVICE = 2,
	UNMAPPED_DEVICE = 3,
	EVENT = 3,
	OTHER_EVENT,
	UNMAPPED_EVENT,
};

#define LOW_PRIORITY  0xc0u
#define HIGH_PRIORITY 0x40u

/* ---- Helpers ------------------------------------------------------------------- */

/* Each LPI that is pending here, with patience for the first. An LPI has no active state: its end is a priority drop. */
static uint64_t take_here(uint64_t unused)
{
	uint32_t intid;

	(void)unused;
	if (!WAIT_FOR((intid = gic_acknowledge(GROUP1)) != INTID_SPURIOUS))
		return INTID_SPURIOUS;
	gic_end(GROUP1, intid);
	return intid;
}

static uint64_t acknowledge_nothing_here(uint64_t unused)
{
	(void)unused;
	return gic_acknowledge(GROUP1);
}

/* @cpu gets @lpi exactly once, and no CPU anything more. */
static void expect_taken_once(unsigned cpu, uint32_t lpi)
{
	EXPECT_EQ(smp_call(cpu, take_here, 0), lpi);
	for (unsigned i = 0; i < num_cpus; i++)
		EXPECT_EQ(smp_call(i, acknowledge_nothing_here, 0), INTID_SPURIOUS);
}

static void expect_nothing(void)
{
	for (unsigned i = 0; i < num_cpus; i++)
		EXPECT_EQ(smp_call(i, acknowledge_nothing_here, 0), INTID_SPURIOUS);
}

/* An event of DEVICE that is translated to @lpi in the collection of @cpu, and enabled. */
static void map_event(unsigned cpu, uint32_t event, uint32_t lpi)
{
	its_mapti(DEVICE, event, lpi, cpu);
	lpi_configure(lpi, DEFAULT_PRIORITY, true);
	its_inv(DEVICE, event);
	its_sync(cpu);
}

static void set_up_event(void)
{
	its_set_up();
	its_mapd(DEVICE, true);
	map_event(0, EVENT, LPI_A);
}

#define NEED_ITS() SKIP_UNLESS(its_is_present(), "no ITS")

/* ---- Delivery --------------------------------------------------------------------- */

static void int_command_delivers_the_lpi_each_time(void)
{
	NEED_ITS();
	set_up_event();
	EXPECT_PASS(expect_nothing());
	for (unsigned i = 0; i < 3; i++) {
		its_int(DEVICE, EVENT);
		EXPECT(WAIT_FOR(gic_highest_pending(GROUP1) == LPI_A));
		EXPECT_PASS(expect_taken_once(0, LPI_A));
	}
}

static void events_before_the_acknowledge_are_one_interrupt(void)
{
	NEED_ITS();
	set_up_event();
	for (unsigned i = 0; i < 5; i++)
		its_int(DEVICE, EVENT);
	EXPECT_PASS(expect_taken_once(0, LPI_A));
}

/* Pending again between the acknowledge and the end: the running priority alone holds it back. */
static void lpi_has_no_active_state(void)
{
	NEED_ITS();
	set_up_event();
	its_int(DEVICE, EVENT);
	EXPECT(WAIT_FOR(gic_acknowledge(GROUP1) == LPI_A));
	its_int(DEVICE, EVENT);
	EXPECT_EQ(gic_acknowledge(GROUP1), INTID_SPURIOUS);
	gic_end(GROUP1, LPI_A);
	EXPECT_PASS(expect_taken_once(0, LPI_A));
}

static void mapi_uses_the_intid_as_event(void)
{
	NEED_ITS();
	its_set_up();
	its_mapd(DEVICE, true);
	its_mapi(DEVICE, LPI_A, 0);
	lpi_configure(LPI_A, DEFAULT_PRIORITY, true);
	its_inv(DEVICE, LPI_A);
	its_int(DEVICE, LPI_A);
	EXPECT_PASS(expect_taken_once(0, LPI_A));
}

static void event_reaches_the_cpu_of_its_collection(void)
{
	NEED_ITS();
	its_set_up();
	its_mapd(DEVICE, true);
	for (unsigned i = 0; i < num_cpus; i++) {
		map_event(i, i, LPI_A + i);
		its_int(DEVICE, i);
		EXPECT_PASS(expect_taken_once(i, LPI_A + i));
	}
}

static void msi_is_translated_by_device_and_event(void)
{
	NEED_ITS();
	SKIP_UNLESS(testdev_is_present(), "no test device");
	set_up_event();
	testdev_send_msi(DEVICE, EVENT);
	EXPECT_PASS(expect_taken_once(0, LPI_A));
	testdev_send_msi(OTHER_DEVICE, EVENT);
	testdev_send_msi(DEVICE, OTHER_EVENT);
	EXPECT_PASS(expect_nothing());
}

static void many_events_are_all_delivered_once(void)
{
	const unsigned num_lpis = ITS_MAX_DEVICES * ITS_MAX_EVENTS;
	static bool seen[ITS_MAX_DEVICES * ITS_MAX_EVENTS];

	NEED_ITS();
	its_set_up();
	for (unsigned i = 0; i < num_lpis; i++) {
		if (i % ITS_MAX_EVENTS == 0)
			its_mapd(i / ITS_MAX_EVENTS, true);
		its_mapti(i / ITS_MAX_EVENTS, i % ITS_MAX_EVENTS, LPI_FIRST + i, i % num_cpus);
		lpi_configure(LPI_FIRST + i, DEFAULT_PRIORITY, true);
		seen[i] = false;
	}
	for (unsigned i = 0; i < num_cpus; i++)
		its_invall(i);
	for (unsigned device = 0; device < ITS_MAX_DEVICES; device++)
		its_int_batch(device, 0, ITS_MAX_EVENTS);
	for (unsigned i = 0; i < num_lpis; i++) {
		uint64_t lpi = smp_call(i % num_cpus, take_here, 0);

		EXPECT(lpi >= LPI_FIRST && lpi < LPI_FIRST + num_lpis);
		EXPECT_EQ((lpi - LPI_FIRST) % num_cpus, i % num_cpus);
		EXPECT(!seen[lpi - LPI_FIRST]);
		seen[lpi - LPI_FIRST] = true;
	}
	EXPECT_PASS(expect_nothing());
}

/* ---- Taken as interrupts ----------------------------------------------------------------- */

/* @cpu has handled @lpi so often, as an IRQ; nothing else has been handled anywhere, not even in vain. */
static void expect_handled(unsigned cpu, uint32_t lpi, uint32_t times)
{
	EXPECT(WAIT_FOR(handled_by(cpu, lpi) == times));
	smp_settle();
	EXPECT_EQ(handled_by_all(lpi), times);
	for (unsigned i = 0; i < num_cpus; i++)
		EXPECT_EQ(cpus[i].num_records, i == cpu ? times : 0);
	EXPECT_EQ(cpus[cpu].records[times - 1].intid, lpi);
	EXPECT_EQ(cpus[cpu].records[times - 1].group, GROUP1);
}

static void lpi_is_taken_as_an_irq(void)
{
	NEED_ITS();
	set_up_event();
	smp_unmask_all();
	for (uint32_t i = 1; i <= 3; i++) {
		its_int(DEVICE, EVENT);
		EXPECT_PASS(expect_handled(0, LPI_A, i));
		EXPECT_EQ(cpus[0].records[i - 1].running_priority, DEFAULT_PRIORITY);
	}
	EXPECT_EQ(gic_running_priority(), PRIORITY_IDLE);
}

static void interrupt_again(uint32_t lpi)
{
	(void)lpi;
	its_int(DEVICE, OTHER_EVENT);
	unmask_all();
}

/* An LPI of higher priority interrupts the handler of one of lower. */
static void lpi_preempts_the_handler_of_another(void)
{
	NEED_ITS();
	set_up_event();
	map_event(0, OTHER_EVENT, LPI_B);
	lpi_configure(LPI_B, HIGH_PRIORITY, true);
	its_inv(DEVICE, OTHER_EVENT);
	set_interrupt_handler(LPI_A, interrupt_again);
	unmask_all();
	its_int(DEVICE, EVENT);
	EXPECT(WAIT_FOR(handled_by(0, LPI_A) == 1 && handled_by(0, LPI_B) == 1));
	EXPECT_EQ(cpus[0].num_records, 2);
	EXPECT_EQ(cpus[0].records[1].intid, LPI_B);
	EXPECT_EQ(cpus[0].records[1].depth, 2);
}

/* CPU 1 sleeps in WFI and has the event. */
static void put_cpu_1_to_sleep(void)
{
	its_set_up();
	its_mapd(DEVICE, true);
	map_event(1, EVENT, LPI_A);
	put_to_sleep(LPI_A);
}

static void int_command_wakes_a_cpu_from_wfi(void)
{
	NEED_ITS();
	put_cpu_1_to_sleep();
	its_int(DEVICE, EVENT);
	await_wake_up();
	EXPECT_PASS(expect_handled(1, LPI_A, 1));
}

static void msi_wakes_a_cpu_from_wfi(void)
{
	NEED_ITS();
	SKIP_UNLESS(testdev_is_present(), "no test device");
	put_cpu_1_to_sleep();
	testdev_send_msi(DEVICE, EVENT);
	await_wake_up();
	EXPECT_PASS(expect_handled(1, LPI_A, 1));
}

static void movi_sends_the_irq_to_the_new_cpu(void)
{
	NEED_ITS();
	set_up_event();
	smp_unmask_all();
	for (unsigned i = 0; i < num_cpus; i++) {
		const unsigned cpu = (i + 1) % num_cpus;

		its_movi(DEVICE, EVENT, cpu);
		its_sync(cpu);
		its_int(DEVICE, EVENT);
		EXPECT(WAIT_FOR(handled_by(cpu, LPI_A) == 1));
		smp_settle();
		EXPECT_EQ(handled_by_all(LPI_A), i + 1);
	}
}

/* CPU 0 does not take it, as it is masked; it wakes the CPU to which it is moved. */
static void movi_of_a_pending_lpi_wakes_the_new_cpu(void)
{
	NEED_ITS();
	set_up_event();
	put_to_sleep(LPI_A);
	its_int(DEVICE, EVENT);
	EXPECT(WAIT_FOR(gic_highest_pending(GROUP1) == LPI_A));
	its_movi(DEVICE, EVENT, 1);
	its_sync(1);
	await_wake_up();
	EXPECT_PASS(expect_handled(1, LPI_A, 1));
	EXPECT_EQ(gic_acknowledge(GROUP1), INTID_SPURIOUS);
}

static void movall_of_a_pending_lpi_wakes_the_new_cpu(void)
{
	NEED_ITS();
	set_up_event();
	put_to_sleep(LPI_A);
	its_int(DEVICE, EVENT);
	EXPECT(WAIT_FOR(gic_highest_pending(GROUP1) == LPI_A));
	its_movall(0, 1);
	its_sync(1);
	await_wake_up();
	EXPECT_PASS(expect_handled(1, LPI_A, 1));
	EXPECT_EQ(gic_acknowledge(GROUP1), INTID_SPURIOUS);
}

/* Disabled in the configuration table, and enabled again: each counts from INVALL on. */
static void invall_lets_the_irq_through(void)
{
	NEED_ITS();
	set_up_event();
	smp_unmask_all();
	lpi_configure(LPI_A, DEFAULT_PRIORITY, false);
	its_invall(0);
	its_int(DEVICE, EVENT);
	smp_settle();
	EXPECT_EQ(handled_by_all(LPI_A), 0);
	lpi_configure(LPI_A, HIGH_PRIORITY, true);
	its_invall(0);
	its_sync(0);
	EXPECT_PASS(expect_handled(0, LPI_A, 1));
	EXPECT_EQ(cpus[0].records[0].running_priority, HIGH_PRIORITY);
}

/* What the guest itself writes into the pending table while EnableLPIs is 0 is taken when it is 1. */
static void pending_table_is_read_at_enable_lpis(void)
{
	const unsigned last = num_cpus - 1;

	NEED_ITS();
	set_up_event();
	its_movi(DEVICE, EVENT, last);
	smp_unmask_all();
	lpi_enable_at_cpu(last, false);
	SKIP_UNLESS(!(gicr_read(last, GICR_CTLR) & GICR_CTLR_ENABLE_LPIS), "EnableLPIs stays set");
	lpi_set_pending_in_table(last, LPI_A);
	smp_settle();
	EXPECT_EQ(handled_by_all(LPI_A), 0);
	lpi_enable_at_cpu(last, true);
	EXPECT_PASS(expect_handled(last, LPI_A, 1));
}

/* ---- The configuration table --------------------------------------------------------- */

static void disabled_lpi_waits_until_inv(void)
{
	NEED_ITS();
	set_up_event();
	lpi_configure(LPI_A, DEFAULT_PRIORITY, false);
	its_inv(DEVICE, EVENT);
	its_int(DEVICE, EVENT);
	EXPECT_PASS(expect_nothing());
	lpi_configure(LPI_A, DEFAULT_PRIORITY, true);
	its_inv(DEVICE, EVENT);
	its_sync(0);
	EXPECT_PASS(expect_taken_once(0, LPI_A));
}

static void disabled_lpi_waits_until_invall(void)
{
	NEED_ITS();
	set_up_event();
	lpi_configure(LPI_A, DEFAULT_PRIORITY, false);
	its_invall(0);
	its_int(DEVICE, EVENT);
	EXPECT_PASS(expect_nothing());
	lpi_configure(LPI_A, DEFAULT_PRIORITY, true);
	its_invall(0);
	its_sync(0);
	EXPECT_PASS(expect_taken_once(0, LPI_A));
}

static void priority_mask_holds_an_lpi_back(void)
{
	NEED_ITS();
	set_up_event();
	gic_set_priority_mask(DEFAULT_PRIORITY);
	its_int(DEVICE, EVENT);
	EXPECT_EQ(gic_acknowledge(GROUP1), INTID_SPURIOUS);
	gic_set_priority_mask(0xff);
	EXPECT_PASS(expect_taken_once(0, LPI_A));
}

static void lpi_of_higher_priority_comes_first(void)
{
	NEED_ITS();
	set_up_event();
	map_event(0, OTHER_EVENT, LPI_B);
	lpi_configure(LPI_A, LOW_PRIORITY, true);
	lpi_configure(LPI_B, HIGH_PRIORITY, true);
	its_invall(0);
	its_int(DEVICE, EVENT);
	its_int(DEVICE, OTHER_EVENT);
	EXPECT_EQ(take_here(0), LPI_B);
	EXPECT_PASS(expect_taken_once(0, LPI_A));
}

/* ---- Moves and mappings -------------------------------------------------------------- */

static void movi_moves_the_event(void)
{
	NEED_ITS();
	set_up_event();
	its_movi(DEVICE, EVENT, 1);
	its_int(DEVICE, EVENT);
	EXPECT_PASS(expect_taken_once(1, LPI_A));
}

static void movi_takes_the_pending_lpi_along(void)
{
	NEED_ITS();
	set_up_event();
	its_int(DEVICE, EVENT);
	its_movi(DEVICE, EVENT, 1);
	EXPECT_PASS(expect_taken_once(1, LPI_A));
}

static void movall_moves_what_is_pending(void)
{
	NEED_ITS();
	set_up_event();
	map_event(0, OTHER_EVENT, LPI_B);
	lpi_configure(LPI_B, HIGH_PRIORITY, true); /* which of two equals comes first is open */
	its_inv(DEVICE, OTHER_EVENT);
	its_int(DEVICE, EVENT);
	its_int(DEVICE, OTHER_EVENT);
	its_movall(0, 1);
	EXPECT_EQ(gic_acknowledge(GROUP1), INTID_SPURIOUS);
	EXPECT_EQ(smp_call(1, take_here, 0), LPI_B);
	EXPECT_PASS(expect_taken_once(1, LPI_A));
}

static void mapc_again_moves_the_collection(void)
{
	NEED_ITS();
	set_up_event();
	its_mapc(0, 1, true);
	its_int(DEVICE, EVENT);
	EXPECT_PASS(expect_taken_once(1, LPI_A));
}

static void events_of_an_unmapped_collection_are_dropped(void)
{
	NEED_ITS();
	set_up_event();
	its_mapc(0, 0, false);
	its_int(DEVICE, EVENT);
	EXPECT_PASS(expect_nothing());
	its_mapc(0, 0, true);
	EXPECT_PASS(expect_nothing());
	its_int(DEVICE, EVENT);
	EXPECT_PASS(expect_taken_once(0, LPI_A));
}

static void discard_drops_the_pending_lpi_and_the_mapping(void)
{
	NEED_ITS();
	set_up_event();
	its_int(DEVICE, EVENT);
	its_discard(DEVICE, EVENT);
	EXPECT_PASS(expect_nothing());
	its_int(DEVICE, EVENT);
	if (testdev_is_present())
		testdev_send_msi(DEVICE, EVENT);
	EXPECT_PASS(expect_nothing());
}

static void events_of_an_unmapped_device_are_dropped(void)
{
	NEED_ITS();
	set_up_event();
	its_mapd(DEVICE, false);
	its_int(DEVICE, EVENT);
	EXPECT_PASS(expect_nothing());
	its_mapd(DEVICE, true);
	map_event(0, EVENT, LPI_A);
	its_int(DEVICE, EVENT);
	EXPECT_PASS(expect_taken_once(0, LPI_A));
}

static void clear_takes_the_event_back(void)
{
	NEED_ITS();
	set_up_event();
	its_int(DEVICE, EVENT);
	its_clear(DEVICE, EVENT);
	EXPECT_PASS(expect_nothing());
	its_int(DEVICE, EVENT);
	EXPECT_PASS(expect_taken_once(0, LPI_A));
}

/* ---- The queue -------------------------------------------------------------------------- */

static void queue_goes_on_behind_commands_in_error(void)
{
	NEED_ITS();
	set_up_event();
	its_int(DEVICE, UNMAPPED_EVENT);
	its_int(UNMAPPED_DEVICE, EVENT);
	its_discard(UNMAPPED_DEVICE, EVENT);
	its_movi(DEVICE, UNMAPPED_EVENT, 0);
	EXPECT_PASS(expect_nothing());
	its_int(DEVICE, EVENT);
	EXPECT_PASS(expect_taken_once(0, LPI_A));
}

static void queue_wraps(void)
{
	NEED_ITS();
	set_up_event();
	for (unsigned i = 0; i < 2 * ITS_QUEUE_SLOTS + 1; i++) {
		its_int(DEVICE, EVENT);
		EXPECT_EQ(take_here(0), LPI_A);
	}
	for (unsigned round = 0; round < 3; round++) {
		its_int_batch(DEVICE, 0, ITS_QUEUE_SLOTS - 1);
		EXPECT_PASS(expect_taken_once(0, LPI_A));
	}
}

/* ---- Switched off and on ------------------------------------------------------------------ */

static void msis_are_dropped_while_the_its_is_off(void)
{
	NEED_ITS();
	SKIP_UNLESS(testdev_is_present(), "no test device");
	set_up_event();
	its_enable(false);
	testdev_send_msi(DEVICE, EVENT);
	EXPECT_PASS(expect_nothing());
	its_enable(true);
	EXPECT_PASS(expect_nothing());
	testdev_send_msi(DEVICE, EVENT);
	EXPECT_PASS(expect_taken_once(0, LPI_A));
}

/* EnableLPIs can be cleared where GICR_CTLR.CES says so: what is pending is then in the table, and comes from there. */
static void pending_table_keeps_lpis_while_they_are_off(void)
{
	NEED_ITS();
	SKIP_UNLESS(gicr_read(0, GICR_CTLR) & GICR_CTLR_CES, "no GICR_CTLR.CES");
	set_up_event();
	for (unsigned i = 0; i < num_cpus; i++) {
		its_movi(DEVICE, EVENT, i);
		its_int(DEVICE, EVENT);
		lpi_enable_at_cpu(i, false);
		EXPECT_PASS(expect_nothing());
		EXPECT_EQ(lpi_pending_byte(i, LPI_A), 1u << (LPI_A % 8));
		lpi_enable_at_cpu(i, true);
		EXPECT_PASS(expect_taken_once(i, LPI_A));
		lpi_enable_at_cpu(i, false);
		EXPECT_EQ(lpi_pending_byte(i, LPI_A), 0);
		lpi_enable_at_cpu(i, true);
		EXPECT_PASS(expect_nothing());
	}
}

const struct test tests[] = {
	TEST(int_command_delivers_the_lpi_each_time, 1),
	TEST(events_before_the_acknowledge_are_one_interrupt, 1),
	TEST(lpi_has_no_active_state, 1),
	TEST(mapi_uses_the_intid_as_event, 1),
	TEST(event_reaches_the_cpu_of_its_collection, 1),
	TEST(msi_is_translated_by_device_and_event, 1),
	TEST(many_events_are_all_delivered_once, 1),
	TEST(lpi_is_taken_as_an_irq, 1),
	TEST(lpi_preempts_the_handler_of_another, 1),
	TEST(int_command_wakes_a_cpu_from_wfi, 2),
	TEST(msi_wakes_a_cpu_from_wfi, 2),
	TEST(movi_sends_the_irq_to_the_new_cpu, 2),
	TEST(movi_of_a_pending_lpi_wakes_the_new_cpu, 2),
	TEST(movall_of_a_pending_lpi_wakes_the_new_cpu, 2),
	TEST(invall_lets_the_irq_through, 1),
	TEST(pending_table_is_read_at_enable_lpis, 1),
	TEST(disabled_lpi_waits_until_inv, 1),
	TEST(disabled_lpi_waits_until_invall, 1),
	TEST(priority_mask_holds_an_lpi_back, 1),
	TEST(lpi_of_higher_priority_comes_first, 1),
	TEST(movi_moves_the_event, 2),
	TEST(movi_takes_the_pending_lpi_along, 2),
	TEST(movall_moves_what_is_pending, 2),
	TEST(mapc_again_moves_the_collection, 2),
	TEST(events_of_an_unmapped_collection_are_dropped, 1),
	TEST(discard_drops_the_pending_lpi_and_the_mapping, 1),
	TEST(events_of_an_unmapped_device_are_dropped, 1),
	TEST(clear_takes_the_event_back, 1),
	TEST(queue_goes_on_behind_commands_in_error, 1),
	TEST(queue_wraps, 1),
	TEST(msis_are_dropped_while_the_its_is_off, 1),
	TEST(pending_table_keeps_lpis_while_they_are_off, 1),
};
const unsigned num_tests = ARRAY_SIZE(tests);
