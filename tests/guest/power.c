/* SPDX-License-Identifier: MIT */
/* CPUs that are switched off and on by PSCI, or sleep in WFI: what is pending meanwhile is neither lost nor doubled. */
#include "test.h"

static void power_off(unsigned cpu)
{
	if (!smp_power_off(cpu))
		tap_bail_out("a CPU does not go off");
}

/* Before a test may fail, so that the next one finds all CPUs. */
static void power_on(unsigned cpu)
{
	if (!smp_power_on(cpu))
		tap_bail_out("a CPU does not come back");
}

static uint64_t unmask_here(uint64_t unused)
{
	(void)unused;
	unmask_all();
	return 0;
}

static uint64_t acknowledge_here(uint64_t group)
{
	return gic_acknowledge((unsigned)group);
}

static void psci_knows_which_cpus_are_on(void)
{
	EXPECT_EQ(psci_affinity_info(cpus[1].mpidr), PSCI_AFFINITY_ON);
	EXPECT_EQ(psci_cpu_on(cpus[1].mpidr, 0, 0), PSCI_ALREADY_ON);
	EXPECT_EQ(psci_cpu_on(0xabcdef, 0, 0), PSCI_INVALID_PARAMETERS);
	power_off(1);
	int info = psci_affinity_info(cpus[1].mpidr);

	power_on(1);
	EXPECT_EQ(info, PSCI_AFFINITY_OFF);
	EXPECT_EQ(psci_affinity_info(cpus[1].mpidr), PSCI_AFFINITY_ON);
}

static void sgi_sent_to_a_cpu_that_is_off_waits_for_it(void)
{
	gic_enable(1, 5);
	power_off(1);
	gic_send_sgi(1, 5);
	bool pending_while_off = gic_is_pending(1, 5);

	smp_settle_without(1);
	power_on(1);
	EXPECT(pending_while_off);
	EXPECT(gic_is_pending(1, 5));
	EXPECT_EQ(cpus[1].handled[5], 0);
	smp_call(1, unmask_here, 0);
	EXPECT(WAIT_FOR(cpus[1].handled[5] == 1));
	smp_settle();
	EXPECT_EQ(handled_by_all(5), 1);
}

/* It was pending before CPU_OFF; PSCI is invisible to the redistributor. */
static void sgi_pending_before_cpu_off_comes_after_cpu_on(void)
{
	gic_enable(1, 5);
	gic_send_sgi(1, 5);
	power_off(1);
	power_on(1);
	EXPECT(gic_is_pending(1, 5));
	EXPECT_EQ(smp_call(1, acknowledge_here, GROUP1), 5);
	EXPECT(gic_is_active(1, 5));
	gic_clear_active(1, 5);
}

static void broadcast_reaches_a_cpu_that_is_off(void)
{
	for (unsigned i = 0; i < num_cpus; i++)
		gic_enable(i, 5);
	power_off(1);
	gic_write_sgi1r(ICC_SGIR_IRM | 5ull << 24);
	power_on(1);
	smp_unmask_all();
	for (unsigned i = 1; i < num_cpus; i++)
		EXPECT(WAIT_FOR(cpus[i].handled[5] == 1));
	EXPECT_EQ(cpus[0].handled[5], 0);
}

static void spi_routed_to_a_cpu_that_is_off_waits_for_it(void)
{
	gic_setup(1, SPI_A, EDGE, DEFAULT_PRIORITY);
	power_off(1);
	unmask_all();
	gic_set_pending(0, SPI_A);
	smp_settle_without(1);
	bool pending_while_off = gic_is_pending(0, SPI_A);

	power_on(1);
	EXPECT(pending_while_off);
	EXPECT_EQ(handled_by_all(SPI_A), 0);
	smp_call(1, unmask_here, 0);
	EXPECT(WAIT_FOR(cpus[1].handled[SPI_A] == 1));
}

static void spi_can_be_routed_away_from_a_cpu_that_is_off(void)
{
	gic_setup(1, SPI_A, EDGE, DEFAULT_PRIORITY);
	power_off(1);
	unmask_all();
	gic_set_pending(0, SPI_A);
	gic_route(SPI_A, 0);
	bool came = WAIT_FOR(cpus[0].handled[SPI_A] == 1);

	power_on(1);
	EXPECT(came);
	smp_unmask_all();
	smp_settle();
	EXPECT_EQ(handled_by_all(SPI_A), 1);
}

static void one_of_n_avoids_cpus_that_are_off(void)
{
	bool all_came = true;

	SKIP_UNLESS(gic_has_one_of_n(), "no 1-of-N");
	gic_setup(0, SPI_A, EDGE, DEFAULT_PRIORITY);
	gic_write_irouter(SPI_A, GICD_IROUTER_IRM);
	smp_unmask_all();
	power_off(1);
	for (uint32_t i = 1; i <= 32 && all_came; i++) {
		gic_set_pending(0, SPI_A);
		all_came = WAIT_FOR(handled_by_all(SPI_A) == i);
	}
	power_on(1);
	EXPECT(all_came);
	EXPECT_EQ(cpus[1].handled[SPI_A], 0);
}

/* All CPUs are masked, so it waits somewhere; wherever that is, it must reach the last CPU that is left. */
static void one_of_n_moves_on_when_its_cpu_goes_off(void)
{
	SKIP_UNLESS(gic_has_one_of_n(), "no 1-of-N");
	gic_setup(0, SPI_A, EDGE, DEFAULT_PRIORITY);
	gic_write_irouter(SPI_A, GICD_IROUTER_IRM);
	gic_set_pending(0, SPI_A);
	for (unsigned i = 1; i < num_cpus; i++)
		power_off(i);
	uint32_t intid = gic_wait_acknowledge(GROUP1);

	for (unsigned i = 1; i < num_cpus; i++)
		power_on(i);
	EXPECT_EQ(intid, SPI_A);
	gic_end(GROUP1, SPI_A);
}

static uint64_t set_cpu_interface_here(uint64_t unused)
{
	(void)unused;
	gic_set_priority_mask(0x80);
	gic_set_split_eoi(true);
	return gic_wait_acknowledge(GROUP1);
}

/* The CPU interface is part of the CPU: CPU_ON finds it reset, priority and all. */
static void cpu_interface_is_reset_by_cpu_on(void)
{
	gic_setup(1, SPI_A, EDGE, 0x40);
	gic_set_pending(0, SPI_A);
	EXPECT_EQ(smp_call(1, set_cpu_interface_here, 0), SPI_A);
	power_off(1);
	power_on(1);
	EXPECT_EQ(cpus[1].reset_values.pmr, 0);
	EXPECT_EQ(cpus[1].reset_values.igrpen0, 0);
	EXPECT_EQ(cpus[1].reset_values.igrpen1, 0);
	EXPECT_EQ(cpus[1].reset_values.rpr, PRIORITY_IDLE);
	EXPECT_EQ(cpus[1].reset_values.ap0r0, 0);
	EXPECT_EQ(cpus[1].reset_values.ap1r0, 0);
	EXPECT(gic_is_active(0, SPI_A));
}

static void cpus_go_off_and_come_back_many_times(void)
{
	for (unsigned i = 1; i < num_cpus; i++)
		gic_enable(i, 5);
	for (uint32_t round = 1; round <= 10; round++) {
		for (unsigned i = 1; i < num_cpus; i++) {
			power_off(i);
			gic_send_sgi(i, 5);
			power_on(i);
			smp_call(i, unmask_here, 0);
			EXPECT(WAIT_FOR(cpus[i].handled[5] == round));
		}
	}
}

/* ---- WFI ---------------------------------------------------------------------------- */

static void stop_virtual_timer(uint32_t intid)
{
	(void)intid;
	timer_stop(VIRTUAL_TIMER);
}

static void timer_wakes_a_cpu(void)
{
	set_interrupt_handler(VIRTUAL_TIMER_INTID, stop_virtual_timer);
	gic_enable(0, VIRTUAL_TIMER_INTID);
	for (uint32_t i = 1; i <= 10; i++) {
		uint64_t start = timer_now();

		timer_set(VIRTUAL_TIMER, 1000);
		sleep_until_handled(VIRTUAL_TIMER_INTID, i);
		EXPECT(timer_now() - start >= read_sysreg(cntfrq_el0) / 1000);
	}
}

static void wfi_does_not_sleep_if_an_interrupt_is_pending(void)
{
	gic_enable(0, 1);
	gic_send_sgi(0, 1);
	EXPECT(WAIT_FOR(gic_is_pending(0, 1)));
	wfi();
	EXPECT_EQ(cpus[0].handled[1], 0);
	EXPECT_EQ(gic_wait_acknowledge(GROUP1), 1);
	gic_end(GROUP1, 1);
}

/* A CPU sleeps; this one raises what shall wake it. */
static void expect_wakes_for(uint32_t intid)
{
	put_to_sleep(intid);
	gic_set_pending(1, intid);
	await_wake_up();
	EXPECT_EQ(cpus[1].handled[intid], 1);
	EXPECT(cpus[1].result >= 1);
}

static void sgi_wakes_another_cpu(void)
{
	gic_enable(1, 5);
	EXPECT_PASS(expect_wakes_for(5));
}

static void ppi_wakes_another_cpu(void)
{
	gic_setup(1, 20, EDGE, DEFAULT_PRIORITY);
	EXPECT_PASS(expect_wakes_for(20));
}

static void spi_wakes_another_cpu(void)
{
	gic_setup(1, SPI_A, EDGE, DEFAULT_PRIORITY);
	EXPECT_PASS(expect_wakes_for(SPI_A));
}

static void fiq_wakes_another_cpu(void)
{
	gic_setup(1, SPI_A, EDGE, DEFAULT_PRIORITY);
	gic_set_group(1, SPI_A, GROUP0);
	EXPECT_PASS(expect_wakes_for(SPI_A));
}

/* Enabling, a route and a priority can make an interrupt deliverable that was pending before; each must wake. */
static void enable_wakes_another_cpu(void)
{
	gic_setup(1, SPI_A, EDGE, DEFAULT_PRIORITY);
	gic_disable(1, SPI_A);
	gic_set_pending(1, SPI_A);
	put_to_sleep(SPI_A);
	gic_enable(1, SPI_A);
	await_wake_up();
}

static void route_wakes_another_cpu(void)
{
	gic_setup(0, SPI_A, EDGE, DEFAULT_PRIORITY);
	gic_set_pending(0, SPI_A);
	put_to_sleep(SPI_A);
	gic_route(SPI_A, 1);
	await_wake_up();
}

static void priority_wakes_another_cpu(void)
{
	gic_setup(1, SPI_A, EDGE, 0xff);
	gic_set_pending(1, SPI_A);
	put_to_sleep(SPI_A);
	EXPECT_EQ(handled_by_all(SPI_A), 0);
	gic_set_priority(1, SPI_A, 0x20);
	await_wake_up();
}

static void distributor_enable_wakes_another_cpu(void)
{
	gic_setup(1, SPI_A, EDGE, DEFAULT_PRIORITY);
	gicd_write(GICD_CTLR, GICD_CTLR_ARE);
	gic_set_pending(1, SPI_A);
	put_to_sleep(SPI_A);
	gicd_write(GICD_CTLR, GICD_CTLR_ARE | GICD_CTLR_ENABLE_GRP1);
	await_wake_up();
}

/* Two CPUs that sleep and wake each other by turns: one lost wake-up and both sleep for ever. */

#define TURNS 200u

static uint64_t answer_turns(uint64_t intid)
{
	for (uint32_t i = 1; i <= TURNS; i++) {
		sleep_until_handled((uint32_t)intid, i);
		gic_send_sgi(0, (uint32_t)intid);
	}
	return 0;
}

static volatile bool turn_was_lost;

static void note_lost_turn(uint32_t intid)
{
	(void)intid;
	turn_was_lost = true;
	timer_stop(VIRTUAL_TIMER);
	cpus[0].handled[5] = TURNS; /* ends this CPU's sleep */
}

static void sleeping_cpus_wake_each_other(void)
{
	gic_enable(0, 5);
	gic_enable(1, 5);
	/* Wakes this CPU in the end, if nobody else does. */
	turn_was_lost = false;
	set_interrupt_handler(VIRTUAL_TIMER_INTID, note_lost_turn);
	gic_enable(0, VIRTUAL_TIMER_INTID);
	timer_set(VIRTUAL_TIMER, 60 * 1000000);
	smp_start(1, answer_turns, 5);
	for (uint32_t i = 1; i <= TURNS && !turn_was_lost; i++) {
		gic_send_sgi(1, 5);
		sleep_until_handled(5, i);
	}
	if (turn_was_lost)
		tap_bail_out("a wake-up was lost");
	EXPECT(smp_wait(1));
	EXPECT_EQ(cpus[0].handled[5], TURNS);
	EXPECT_EQ(cpus[1].handled[5], TURNS);
}

static uint64_t sleep_for_a_timer(uint64_t microseconds)
{
	timer_set(VIRTUAL_TIMER, microseconds);
	sleep_until_handled(VIRTUAL_TIMER_INTID, 1);
	return 0;
}

static void all_cpus_sleep_and_wake_by_their_timers(void)
{
	set_interrupt_handler(VIRTUAL_TIMER_INTID, stop_virtual_timer);
	for (unsigned i = 0; i < num_cpus; i++)
		gic_enable(i, VIRTUAL_TIMER_INTID);
	for (unsigned i = 1; i < num_cpus; i++)
		smp_start(i, sleep_for_a_timer, 1000 * i);
	sleep_for_a_timer(1000 * num_cpus);
	for (unsigned i = 1; i < num_cpus; i++)
		EXPECT(smp_wait(i));
	EXPECT_EQ(handled_by_all(VIRTUAL_TIMER_INTID), num_cpus);
}

const struct test tests[] = {
	TEST(psci_knows_which_cpus_are_on, 2),
	TEST(sgi_sent_to_a_cpu_that_is_off_waits_for_it, 2),
	TEST(sgi_pending_before_cpu_off_comes_after_cpu_on, 2),
	TEST(broadcast_reaches_a_cpu_that_is_off, 2),
	TEST(spi_routed_to_a_cpu_that_is_off_waits_for_it, 2),
	TEST(spi_can_be_routed_away_from_a_cpu_that_is_off, 2),
	TEST(one_of_n_avoids_cpus_that_are_off, 2),
	TEST(one_of_n_moves_on_when_its_cpu_goes_off, 2),
	TEST(cpu_interface_is_reset_by_cpu_on, 2),
	TEST(cpus_go_off_and_come_back_many_times, 2),
	TEST(timer_wakes_a_cpu, 1),
	TEST(wfi_does_not_sleep_if_an_interrupt_is_pending, 1),
	TEST(sgi_wakes_another_cpu, 2),
	TEST(ppi_wakes_another_cpu, 2),
	TEST(spi_wakes_another_cpu, 2),
	TEST(fiq_wakes_another_cpu, 2),
	TEST(enable_wakes_another_cpu, 2),
	TEST(route_wakes_another_cpu, 2),
	TEST(priority_wakes_another_cpu, 2),
	TEST(distributor_enable_wakes_another_cpu, 2),
	TEST(sleeping_cpus_wake_each_other, 2),
	TEST(all_cpus_sleep_and_wake_by_their_timers, 1),
};
const unsigned num_tests = ARRAY_SIZE(tests);
