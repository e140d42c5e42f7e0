/* SPDX-License-Identifier: MIT */
/*
 * Private peripheral interrupts: by the one device that every CPU has, the generic
 * timer, a level-sensitive source; and by the test device, edges too.
 */
#include "test.h"

static const struct {
	enum timer timer;
	uint32_t intid;
} timers[] = {
	{ VIRTUAL_TIMER, VIRTUAL_TIMER_INTID },
	{ PHYSICAL_TIMER, PHYSICAL_TIMER_INTID },
};

static void stop_timer_of(uint32_t intid)
{
	timer_stop(intid == VIRTUAL_TIMER_INTID ? VIRTUAL_TIMER : PHYSICAL_TIMER);
}

static uint64_t start_timer_here(uint64_t timer)
{
	timer_set((enum timer)timer, 100);
	return 0;
}

/* Raise the line now; wait until the redistributor shows it. */
static void raise_line(enum timer timer, uint32_t intid)
{
	timer_set(timer, 0);
	EXPECT(WAIT_FOR(timer_has_expired(timer)));
	EXPECT(WAIT_FOR(gic_is_pending(0, intid)));
}

static void timer_interrupts_once_it_expires(void)
{
	for (unsigned i = 0; i < ARRAY_SIZE(timers); i++) {
		set_interrupt_handler(timers[i].intid, stop_timer_of);
		gic_enable(0, timers[i].intid);
		unmask_all();
		uint64_t start = timer_now();

		timer_set(timers[i].timer, 1000);
		EXPECT(WAIT_FOR(cpus[0].handled[timers[i].intid] == 1));
		EXPECT(timer_now() - start >= read_sysreg(cntfrq_el0) / 1000);
		smp_settle();
		EXPECT_EQ(cpus[0].handled[timers[i].intid], 1);
	}
}

static void timer_does_not_interrupt_early(void)
{
	gic_enable(0, VIRTUAL_TIMER_INTID);
	unmask_all();
	timer_set(VIRTUAL_TIMER, 3600ull * 1000000);
	smp_settle();
	EXPECT(!gic_is_pending(0, VIRTUAL_TIMER_INTID));
	EXPECT_EQ(cpus[0].handled[VIRTUAL_TIMER_INTID], 0);
}

static void line_stays_pending_until_the_timer_is_reprogrammed(void)
{
	for (unsigned i = 0; i < ARRAY_SIZE(timers); i++) {
		EXPECT_PASS(raise_line(timers[i].timer, timers[i].intid));
		smp_settle();
		EXPECT(gic_is_pending(0, timers[i].intid));
		timer_set(timers[i].timer, 3600ull * 1000000);
		EXPECT(WAIT_FOR(!gic_is_pending(0, timers[i].intid)));
	}
}

static void line_follows_the_timers_mask(void)
{
	EXPECT_PASS(raise_line(VIRTUAL_TIMER, VIRTUAL_TIMER_INTID));
	timer_mask(VIRTUAL_TIMER);
	EXPECT(WAIT_FOR(!gic_is_pending(0, VIRTUAL_TIMER_INTID)));
	timer_unmask(VIRTUAL_TIMER);
	EXPECT(WAIT_FOR(gic_is_pending(0, VIRTUAL_TIMER_INTID)));
}

static void clear_pending_does_not_lower_the_line(void)
{
	EXPECT_PASS(raise_line(VIRTUAL_TIMER, VIRTUAL_TIMER_INTID));
	gic_clear_pending(0, VIRTUAL_TIMER_INTID);
	EXPECT(gic_is_pending(0, VIRTUAL_TIMER_INTID));
	gic_enable(0, VIRTUAL_TIMER_INTID);
	EXPECT_EQ(gic_wait_acknowledge(GROUP1), VIRTUAL_TIMER_INTID);
	timer_stop(VIRTUAL_TIMER);
	gic_end(GROUP1, VIRTUAL_TIMER_INTID);
	EXPECT_EQ(gic_acknowledge(GROUP1), INTID_SPURIOUS);
}

/* A handler that leaves the line high is entered again after its end of interrupt, until it stops the timer. */

static void stop_timer_at_the_fifth_time(uint32_t intid)
{
	if (cpus[0].handled[intid] == 4)
		stop_timer_of(intid);
}

static void high_line_interrupts_again_after_each_end(void)
{
	set_interrupt_handler(VIRTUAL_TIMER_INTID, stop_timer_at_the_fifth_time);
	gic_enable(0, VIRTUAL_TIMER_INTID);
	unmask_all();
	timer_set(VIRTUAL_TIMER, 0);
	EXPECT(WAIT_FOR(cpus[0].handled[VIRTUAL_TIMER_INTID] == 5));
	smp_settle();
	EXPECT_EQ(cpus[0].handled[VIRTUAL_TIMER_INTID], 5);
}

static void high_line_is_active_and_pending_but_not_signalled_twice(void)
{
	EXPECT_PASS(raise_line(VIRTUAL_TIMER, VIRTUAL_TIMER_INTID));
	gic_enable(0, VIRTUAL_TIMER_INTID);
	EXPECT_EQ(gic_wait_acknowledge(GROUP1), VIRTUAL_TIMER_INTID);
	EXPECT(gic_is_active(0, VIRTUAL_TIMER_INTID));
	EXPECT(gic_is_pending(0, VIRTUAL_TIMER_INTID));
	EXPECT_EQ(gic_acknowledge(GROUP1), INTID_SPURIOUS);
	timer_stop(VIRTUAL_TIMER);
	EXPECT(WAIT_FOR(!gic_is_pending(0, VIRTUAL_TIMER_INTID)));
	EXPECT(gic_is_active(0, VIRTUAL_TIMER_INTID));
	gic_end(GROUP1, VIRTUAL_TIMER_INTID);
	EXPECT(!gic_is_active(0, VIRTUAL_TIMER_INTID));
	EXPECT_EQ(gic_acknowledge(GROUP1), INTID_SPURIOUS);
}

static void fallen_line_is_retracted(void)
{
	gic_enable(0, VIRTUAL_TIMER_INTID);
	EXPECT_PASS(raise_line(VIRTUAL_TIMER, VIRTUAL_TIMER_INTID));
	EXPECT_EQ(gic_highest_pending(GROUP1), VIRTUAL_TIMER_INTID);
	timer_stop(VIRTUAL_TIMER);
	EXPECT(WAIT_FOR(!gic_is_pending(0, VIRTUAL_TIMER_INTID)));
	EXPECT_EQ(gic_highest_pending(GROUP1), INTID_SPURIOUS);
	EXPECT_EQ(gic_acknowledge(GROUP1), INTID_SPURIOUS);
}

static void disabled_ppi_waits_until_it_is_enabled(void)
{
	set_interrupt_handler(VIRTUAL_TIMER_INTID, stop_timer_of);
	unmask_all();
	EXPECT_PASS(raise_line(VIRTUAL_TIMER, VIRTUAL_TIMER_INTID));
	smp_settle();
	EXPECT_EQ(cpus[0].handled[VIRTUAL_TIMER_INTID], 0);
	gic_enable(0, VIRTUAL_TIMER_INTID);
	EXPECT(WAIT_FOR(cpus[0].handled[VIRTUAL_TIMER_INTID] == 1));
}

static void both_timers_at_once_are_both_handled(void)
{
	for (unsigned i = 0; i < ARRAY_SIZE(timers); i++) {
		set_interrupt_handler(timers[i].intid, stop_timer_of);
		gic_enable(0, timers[i].intid);
		EXPECT_PASS(raise_line(timers[i].timer, timers[i].intid));
	}
	unmask_all();
	EXPECT(WAIT_FOR(cpus[0].handled[VIRTUAL_TIMER_INTID] == 1 && cpus[0].handled[PHYSICAL_TIMER_INTID] == 1));
}

static void timer_interrupts_its_own_cpu_only(void)
{
	set_interrupt_handler(VIRTUAL_TIMER_INTID, stop_timer_of);
	for (unsigned i = 0; i < num_cpus; i++)
		gic_enable(i, VIRTUAL_TIMER_INTID);
	smp_unmask_all();
	for (unsigned i = 0; i < num_cpus; i++) {
		smp_call(i, start_timer_here, VIRTUAL_TIMER);
		EXPECT(WAIT_FOR(cpus[i].handled[VIRTUAL_TIMER_INTID] == 1));
		smp_settle();
		EXPECT_EQ(handled_by_all(VIRTUAL_TIMER_INTID), i + 1);
	}
}

/* A tick on every CPU at once, as an operating system has it. */

#define TICKS 20u

static void next_tick(uint32_t intid)
{
	if (this_cpu()->handled[intid] + 1 == TICKS)
		timer_stop(VIRTUAL_TIMER);
	else
		timer_set(VIRTUAL_TIMER, 200);
}

static void periodic_ticks_arrive_on_every_cpu(void)
{
	set_interrupt_handler(VIRTUAL_TIMER_INTID, next_tick);
	for (unsigned i = 0; i < num_cpus; i++)
		gic_enable(i, VIRTUAL_TIMER_INTID);
	smp_unmask_all();
	for (unsigned i = 0; i < num_cpus; i++)
		smp_call(i, start_timer_here, VIRTUAL_TIMER);
	for (unsigned i = 0; i < num_cpus; i++)
		EXPECT(WAIT_FOR(cpus[i].handled[VIRTUAL_TIMER_INTID] == TICKS));
	smp_settle();
	for (unsigned i = 0; i < num_cpus; i++)
		EXPECT_EQ(cpus[i].handled[VIRTUAL_TIMER_INTID], TICKS);
}

/* ---- Raised by the test device --------------------------------------------------- */

#define PPI_FREE 20u

static void level_ppi_follows_its_line_at_one_cpu(void)
{
	SKIP_UNLESS(testdev_is_present(), "no test device");
	for (unsigned i = 0; i < num_cpus; i++) {
		testdev_set_ppi_line(i, PPI_FREE, true);
		for (unsigned k = 0; k < num_cpus; k++)
			EXPECT_EQ(gic_is_pending(k, PPI_FREE), k == i);
		testdev_set_ppi_line(i, PPI_FREE, false);
		EXPECT(!gic_is_pending(i, PPI_FREE));
	}
}

static void edge_ppi_is_latched_at_one_cpu(void)
{
	SKIP_UNLESS(testdev_is_present(), "no test device");
	for (unsigned i = 0; i < num_cpus; i++)
		gic_setup(i, PPI_FREE, EDGE, DEFAULT_PRIORITY);
	EXPECT_EQ(gic_trigger(0, PPI_FREE), EDGE);
	smp_unmask_all();
	for (unsigned i = 0; i < num_cpus; i++) {
		testdev_set_ppi_line(i, PPI_FREE, true);
		testdev_set_ppi_line(i, PPI_FREE, false);
		EXPECT(WAIT_FOR(cpus[i].handled[PPI_FREE] == 1));
		smp_settle();
		EXPECT_EQ(handled_by_all(PPI_FREE), i + 1);
	}
}

const struct test tests[] = {
	TEST(timer_interrupts_once_it_expires, 1),
	TEST(timer_does_not_interrupt_early, 1),
	TEST(line_stays_pending_until_the_timer_is_reprogrammed, 1),
	TEST(line_follows_the_timers_mask, 1),
	TEST(clear_pending_does_not_lower_the_line, 1),
	TEST(high_line_interrupts_again_after_each_end, 1),
	TEST(high_line_is_active_and_pending_but_not_signalled_twice, 1),
	TEST(fallen_line_is_retracted, 1),
	TEST(disabled_ppi_waits_until_it_is_enabled, 1),
	TEST(both_timers_at_once_are_both_handled, 1),
	TEST(timer_interrupts_its_own_cpu_only, 1),
	TEST(periodic_ticks_arrive_on_every_cpu, 1),
	TEST(level_ppi_follows_its_line_at_one_cpu, 1),
	TEST(edge_ppi_is_latched_at_one_cpu, 1),
};
const unsigned num_tests = ARRAY_SIZE(tests);
