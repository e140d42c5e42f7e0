/* SPDX-License-Identifier: MIT */
/* Where an SPI goes: GICD_IROUTER by affinity, changed while it is pending or active, and 1-of-N. */
#include "test.h"

static uint64_t acknowledge_here(uint64_t group)
{
	return gic_wait_acknowledge((unsigned)group);
}

static uint64_t acknowledge_nothing_here(uint64_t group)
{
	return gic_acknowledge((unsigned)group);
}

static uint64_t end_here(uint64_t intid)
{
	gic_end(GROUP1, (uint32_t)intid);
	return 0;
}

static uint64_t enable_group_1_here(uint64_t enable)
{
	gic_enable_group(GROUP1, enable);
	return 0;
}

static void router_reads_back_the_affinity(void)
{
	for (unsigned i = 0; i < num_cpus; i++) {
		gic_route(SPI_A, i);
		EXPECT_EQ(gic_read_irouter(SPI_A), cpus[i].mpidr);
	}
}

static void spi_reaches_the_cpu_that_it_is_routed_to(void)
{
	smp_unmask_all();
	for (unsigned i = 0; i < num_cpus; i++) {
		gic_setup(i, SPI_A, EDGE, DEFAULT_PRIORITY);
		gic_set_pending(0, SPI_A);
		EXPECT(WAIT_FOR(cpus[i].handled[SPI_A] == 1));
		smp_settle();
		EXPECT_EQ(handled_by_all(SPI_A), i + 1);
	}
}

static void device_reaches_the_cpu_that_it_is_routed_to(void)
{
	SKIP_UNLESS(testdev_is_present(), "no test device");
	smp_unmask_all();
	for (unsigned i = 0; i < num_cpus; i++) {
		gic_setup(i, SPI_A, EDGE, DEFAULT_PRIORITY);
		testdev_pulse(SPI_A);
		EXPECT(WAIT_FOR(cpus[i].handled[SPI_A] == 1));
		smp_settle();
		EXPECT_EQ(handled_by_all(SPI_A), i + 1);
	}
}

static void pending_spi_moves_with_its_route(void)
{
	gic_setup(0, SPI_A, EDGE, DEFAULT_PRIORITY);
	gic_set_pending(0, SPI_A);
	EXPECT_EQ(gic_highest_pending(GROUP1), SPI_A);
	for (unsigned i = 1; i < num_cpus; i++) {
		gic_route(SPI_A, i);
		EXPECT_EQ(gic_acknowledge(GROUP1), INTID_SPURIOUS);
		EXPECT(gic_is_pending(0, SPI_A));
	}
	for (unsigned i = 0; i < num_cpus; i++)
		EXPECT_EQ(smp_call(i, acknowledge_nothing_here, GROUP1), i == num_cpus - 1 ? SPI_A : INTID_SPURIOUS);
	smp_call(num_cpus - 1, end_here, SPI_A);
	EXPECT(!gic_is_active(0, SPI_A));
}

static void pending_spi_moves_to_a_cpu_that_takes_it(void)
{
	gic_setup(0, SPI_A, EDGE, DEFAULT_PRIORITY);
	smp_unmask_all();
	mask_all();
	gic_set_pending(0, SPI_A);
	smp_settle();
	EXPECT_EQ(handled_by_all(SPI_A), 0);
	gic_route(SPI_A, 1);
	EXPECT(WAIT_FOR(cpus[1].handled[SPI_A] == 1));
	unmask_all();
	smp_settle();
	EXPECT_EQ(handled_by_all(SPI_A), 1);
}

/* The CPU that it was taken from is not even interrupted: its line has fallen. */
static void spi_routed_away_is_not_taken_any_more(void)
{
	gic_setup(0, SPI_A, EDGE, DEFAULT_PRIORITY);
	gic_set_pending(0, SPI_A);
	gic_route(SPI_A, 1);
	unmask_all();
	smp_settle();
	EXPECT_EQ(cpus[0].num_records, 0);
	EXPECT_EQ(cpus[0].spurious, 0);
	gic_route(SPI_A, 0);
	EXPECT(WAIT_FOR(cpus[0].handled[SPI_A] == 1));
}

/* Re-routed there and back while pending: the hint that is left behind must not deliver it twice. */
static void spi_routed_away_and_back_comes_once(void)
{
	gic_setup(0, SPI_A, EDGE, DEFAULT_PRIORITY);
	gic_set_pending(0, SPI_A);
	for (unsigned i = 0; i < 10; i++) {
		gic_route(SPI_A, 1);
		gic_route(SPI_A, 0);
	}
	smp_unmask_all();
	EXPECT(WAIT_FOR(cpus[0].handled[SPI_A] == 1));
	smp_settle();
	EXPECT_EQ(handled_by_all(SPI_A), 1);
}

static void active_spi_is_ended_where_it_was_acknowledged(void)
{
	gic_setup(0, SPI_A, EDGE, DEFAULT_PRIORITY);
	gic_set_pending(0, SPI_A);
	EXPECT_EQ(gic_wait_acknowledge(GROUP1), SPI_A);
	gic_route(SPI_A, 1);
	EXPECT(gic_is_active(0, SPI_A));
	gic_end(GROUP1, SPI_A);
	EXPECT(!gic_is_active(0, SPI_A));
	EXPECT_EQ(gic_running_priority(), PRIORITY_IDLE);
	gic_set_pending(0, SPI_A);
	EXPECT_EQ(gic_acknowledge(GROUP1), INTID_SPURIOUS);
	EXPECT_EQ(smp_call(1, acknowledge_here, GROUP1), SPI_A);
	smp_call(1, end_here, SPI_A);
}

static void high_line_moves_with_its_route(void)
{
	SKIP_UNLESS(testdev_is_present(), "no test device");
	gic_setup(0, SPI_A, LEVEL, DEFAULT_PRIORITY);
	testdev_set_line(SPI_A, true);
	for (unsigned i = 0; i < num_cpus; i++) {
		gic_route(SPI_A, i);
		EXPECT_EQ(smp_call(i, acknowledge_here, GROUP1), SPI_A);
		smp_call(i, end_here, SPI_A);
	}
	testdev_set_line(SPI_A, false);
	EXPECT(!gic_is_pending(0, SPI_A));
}

static void spi_routed_nowhere_stays_pending(void)
{
	gic_setup(0, SPI_A, EDGE, DEFAULT_PRIORITY);
	gic_write_irouter(SPI_A, 0xab << 16 | 0xcd << 8 | 0xef);
	smp_unmask_all();
	gic_set_pending(0, SPI_A);
	smp_settle();
	EXPECT_EQ(handled_by_all(SPI_A), 0);
	EXPECT(gic_is_pending(0, SPI_A));
	gic_route(SPI_A, num_cpus - 1);
	EXPECT(WAIT_FOR(cpus[num_cpus - 1].handled[SPI_A] == 1));
	smp_settle();
	EXPECT_EQ(handled_by_all(SPI_A), 1);
}

/* CPU 1 takes all it gets while this CPU moves the route about: exact counts at the end. */

#define MOVES 64u

static void moving_route_loses_and_doubles_nothing(void)
{
	gic_setup(0, SPI_A, EDGE, DEFAULT_PRIORITY);
	smp_unmask_all();
	for (uint32_t i = 1; i <= MOVES; i++) {
		gic_route(SPI_A, i % num_cpus);
		gic_set_pending(0, SPI_A);
		gic_route(SPI_A, (i + 1) % num_cpus);
		EXPECT(WAIT_FOR(handled_by_all(SPI_A) == i));
	}
	smp_settle();
	EXPECT_EQ(handled_by_all(SPI_A), MOVES);
}

/* ---- 1-of-N --------------------------------------------------------------------- */

#define ROUNDS 16u

static void set_up_one_of_n(void)
{
	gic_setup(0, SPI_A, EDGE, DEFAULT_PRIORITY);
	gic_write_irouter(SPI_A, GICD_IROUTER_IRM);
}

/* Raise it ROUNDS times; each must be taken by one CPU of @mask. */
static void expect_taken_by_one_of(uint32_t mask)
{
	uint32_t before = handled_by_all(SPI_A), outside = 0;
	uint32_t before_cpu[MAX_CPUS];

	for (unsigned i = 0; i < num_cpus; i++)
		before_cpu[i] = cpus[i].handled[SPI_A];
	for (uint32_t i = 1; i <= ROUNDS; i++) {
		gic_set_pending(0, SPI_A);
		EXPECT(WAIT_FOR(handled_by_all(SPI_A) == before + i));
	}
	smp_settle();
	EXPECT_EQ(handled_by_all(SPI_A), before + ROUNDS);
	for (unsigned i = 0; i < num_cpus; i++)
		if (!(mask & 1u << i))
			outside += cpus[i].handled[SPI_A] - before_cpu[i];
	EXPECT_EQ(outside, 0);
}

static uint32_t all_cpus(void)
{
	return (1u << num_cpus) - 1;
}

static void one_of_n_is_taken_exactly_once(void)
{
	SKIP_UNLESS(gic_has_one_of_n(), "no 1-of-N");
	set_up_one_of_n();
	EXPECT(gic_read_irouter(SPI_A) & GICD_IROUTER_IRM);
	smp_unmask_all();
	EXPECT_PASS(expect_taken_by_one_of(all_cpus()));
}

static void one_of_n_is_spread(void)
{
	SKIP_UNLESS(gic_has_one_of_n(), "no 1-of-N");
	SKIP_UNLESS(gic_is_libvgic(), "a choice of libvgic");
	set_up_one_of_n();
	smp_unmask_all();
	EXPECT_PASS(expect_taken_by_one_of(all_cpus()));
	for (unsigned i = 0; i < num_cpus; i++)
		EXPECT(cpus[i].handled[SPI_A] > 0);
}

static void one_of_n_avoids_cpus_with_the_group_disabled(void)
{
	SKIP_UNLESS(gic_has_one_of_n(), "no 1-of-N");
	set_up_one_of_n();
	smp_unmask_all();
	for (unsigned i = 0; i < num_cpus; i++) {
		smp_call(i, enable_group_1_here, false);
		EXPECT_PASS(expect_taken_by_one_of(all_cpus() & ~(1u << i)));
		smp_call(i, enable_group_1_here, true);
	}
}

static void one_of_n_avoids_cpus_that_decline_it(void)
{
	SKIP_UNLESS(gic_has_one_of_n(), "no 1-of-N");
	SKIP_UNLESS(gicr_typer(0) & GICR_TYPER_DPGS, "no GICR_CTLR.DPG1NS");
	set_up_one_of_n();
	smp_unmask_all();
	for (unsigned i = 0; i < num_cpus; i++) {
		gicr_write(i, GICR_CTLR, GICR_CTLR_DPG1NS);
		EXPECT_PASS(expect_taken_by_one_of(all_cpus() & ~(1u << i)));
		gicr_write(i, GICR_CTLR, 0);
	}
}

static void one_of_n_avoids_cpus_that_sleep(void)
{
	SKIP_UNLESS(gic_has_one_of_n(), "no 1-of-N");
	set_up_one_of_n();
	smp_unmask_all();
	for (unsigned i = 0; i < num_cpus; i++) {
		gicr_write(i, GICR_WAKER, GICR_WAKER_PROCESSOR_SLEEP);
		EXPECT(WAIT_FOR(gicr_read(i, GICR_WAKER) & GICR_WAKER_CHILDREN_ASLEEP));
		EXPECT_PASS(expect_taken_by_one_of(all_cpus() & ~(1u << i)));
		gicr_write(i, GICR_WAKER, 0);
		EXPECT(WAIT_FOR(!(gicr_read(i, GICR_WAKER) & GICR_WAKER_CHILDREN_ASLEEP)));
	}
}

static uint64_t end_and_report_active_here(uint64_t intid)
{
	gic_end(GROUP1, (uint32_t)intid);
	return gic_is_active(0, (uint32_t)intid);
}

/*
 * All CPUs are masked, so the interrupt waits somewhere. All but @keep stop taking part; then @keep must have it.
 */
static void expect_moved_to(unsigned keep, void (*stop_taking_part)(unsigned cpu))
{
	gic_set_pending(0, SPI_A);
	for (unsigned i = 0; i < num_cpus; i++)
		if (i != keep)
			stop_taking_part(i);
	for (unsigned i = 0; i < num_cpus; i++)
		if (i != keep)
			EXPECT_EQ(smp_call(i, acknowledge_nothing_here, GROUP1), INTID_SPURIOUS);
	EXPECT_EQ(smp_call(keep, acknowledge_here, GROUP1), SPI_A);
	EXPECT(!smp_call(keep, end_and_report_active_here, SPI_A));
}

static void decline(unsigned cpu)
{
	gicr_write(cpu, GICR_CTLR, GICR_CTLR_DPG1NS);
}

static void disable_group_1(unsigned cpu)
{
	smp_call(cpu, enable_group_1_here, false);
}

static void sleep_at_redistributor(unsigned cpu)
{
	gicr_write(cpu, GICR_WAKER, GICR_WAKER_PROCESSOR_SLEEP);
}

static void one_of_n_moves_on_when_its_cpu_declines(void)
{
	SKIP_UNLESS(gic_has_one_of_n(), "no 1-of-N");
	SKIP_UNLESS(gicr_typer(0) & GICR_TYPER_DPGS, "no GICR_CTLR.DPG1NS");
	set_up_one_of_n();
	for (unsigned keep = 0; keep < num_cpus; keep++) {
		EXPECT_PASS(expect_moved_to(keep, decline));
		for (unsigned i = 0; i < num_cpus; i++)
			gicr_write(i, GICR_CTLR, 0);
	}
}

static void one_of_n_moves_on_when_its_cpu_disables_the_group(void)
{
	SKIP_UNLESS(gic_has_one_of_n(), "no 1-of-N");
	set_up_one_of_n();
	for (unsigned keep = 0; keep < num_cpus; keep++) {
		EXPECT_PASS(expect_moved_to(keep, disable_group_1));
		smp_call_all(enable_group_1_here, true);
	}
}

static void one_of_n_moves_on_when_its_cpu_goes_to_sleep(void)
{
	SKIP_UNLESS(gic_has_one_of_n(), "no 1-of-N");
	set_up_one_of_n();
	for (unsigned keep = 0; keep < num_cpus; keep++) {
		EXPECT_PASS(expect_moved_to(keep, sleep_at_redistributor));
		for (unsigned i = 0; i < num_cpus; i++)
			gicr_write(i, GICR_WAKER, 0);
	}
}

/* Nobody takes part: it waits for the first that does. */
static void one_of_n_waits_for_somebody_to_take_part(void)
{
	SKIP_UNLESS(gic_has_one_of_n(), "no 1-of-N");
	set_up_one_of_n();
	smp_call_all(enable_group_1_here, false);
	gic_set_pending(0, SPI_A);
	EXPECT(gic_is_pending(0, SPI_A));
	smp_call(num_cpus - 1, enable_group_1_here, true);
	EXPECT_EQ(smp_call(num_cpus - 1, acknowledge_here, GROUP1), SPI_A);
	smp_call(num_cpus - 1, end_here, SPI_A);
}

static void one_of_n_and_back_to_one_cpu(void)
{
	SKIP_UNLESS(gic_has_one_of_n(), "no 1-of-N");
	set_up_one_of_n();
	gic_set_pending(0, SPI_A);
	gic_route(SPI_A, num_cpus - 1);
	EXPECT_EQ(gic_read_irouter(SPI_A), cpus[num_cpus - 1].mpidr);
	EXPECT_EQ(smp_call(num_cpus - 1, acknowledge_here, GROUP1), SPI_A);
	smp_call(num_cpus - 1, end_here, SPI_A);
	smp_unmask_all();
	EXPECT_PASS(expect_taken_by_one_of(1u << (num_cpus - 1)));
}

const struct test tests[] = {
	TEST(router_reads_back_the_affinity, 1),
	TEST(spi_reaches_the_cpu_that_it_is_routed_to, 1),
	TEST(device_reaches_the_cpu_that_it_is_routed_to, 1),
	TEST(pending_spi_moves_with_its_route, 2),
	TEST(pending_spi_moves_to_a_cpu_that_takes_it, 2),
	TEST(spi_routed_away_is_not_taken_any_more, 2),
	TEST(spi_routed_away_and_back_comes_once, 2),
	TEST(active_spi_is_ended_where_it_was_acknowledged, 2),
	TEST(high_line_moves_with_its_route, 1),
	TEST(spi_routed_nowhere_stays_pending, 1),
	TEST(moving_route_loses_and_doubles_nothing, 2),
	TEST(one_of_n_is_taken_exactly_once, 1),
	TEST(one_of_n_is_spread, 1),
	TEST(one_of_n_avoids_cpus_with_the_group_disabled, 2),
	TEST(one_of_n_avoids_cpus_that_decline_it, 2),
	TEST(one_of_n_avoids_cpus_that_sleep, 2),
	TEST(one_of_n_moves_on_when_its_cpu_declines, 2),
	TEST(one_of_n_moves_on_when_its_cpu_disables_the_group, 2),
	TEST(one_of_n_moves_on_when_its_cpu_goes_to_sleep, 2),
	TEST(one_of_n_waits_for_somebody_to_take_part, 1),
	TEST(one_of_n_and_back_to_one_cpu, 1),
};
const unsigned num_tests = ARRAY_SIZE(tests);
