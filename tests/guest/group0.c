/* SPDX-License-Identifier: MIT */
/* Group 0 beside Group 1: FIQ and IRQ, one highest-priority pending interrupt for both, and the group enables. */
#include "test.h"

static void setup_in_group(uint32_t intid, unsigned group, unsigned priority)
{
	gic_setup(0, intid, EDGE, priority);
	gic_set_group(0, intid, group);
}

static void expect_fiq_once(uint32_t intid)
{
	EXPECT(WAIT_FOR(cpus[0].handled[intid] == 1));
	for (uint32_t i = 0; i < cpus[0].num_records; i++)
		if (cpus[0].records[i].intid == intid)
			EXPECT_EQ(cpus[0].records[i].group, GROUP0);
}

static void spi_of_group_0_is_an_fiq(void)
{
	setup_in_group(SPI_A, GROUP0, 0xa0);
	unmask_all();
	gic_set_pending(0, SPI_A);
	EXPECT_PASS(expect_fiq_once(SPI_A));
}

static void sgi_of_group_0_is_an_fiq(void)
{
	setup_in_group(3, GROUP0, 0xa0);
	unmask_all();
	gic_set_pending(0, 3);
	EXPECT_PASS(expect_fiq_once(3));
}

static void stop_virtual_timer(uint32_t intid)
{
	(void)intid;
	timer_stop(VIRTUAL_TIMER);
}

static void timer_of_group_0_is_an_fiq(void)
{
	gic_set_group(0, VIRTUAL_TIMER_INTID, GROUP0);
	gic_enable(0, VIRTUAL_TIMER_INTID);
	set_interrupt_handler(VIRTUAL_TIMER_INTID, stop_virtual_timer);
	unmask_all();
	timer_set(VIRTUAL_TIMER, 100);
	EXPECT_PASS(expect_fiq_once(VIRTUAL_TIMER_INTID));
}

static void fiq_reaches_the_cpu_that_it_is_routed_to(void)
{
	smp_unmask_all();
	for (unsigned i = 0; i < num_cpus; i++) {
		setup_in_group(SPI_A + i, GROUP0, 0xa0);
		gic_route(SPI_A + i, i);
		gic_set_pending(0, SPI_A + i);
		EXPECT(WAIT_FOR(cpus[i].handled[SPI_A + i] == 1));
		EXPECT_EQ(cpus[i].records[0].group, GROUP0);
		EXPECT_EQ(handled_by_all(SPI_A + i), 1);
	}
}

/* PSTATE.F and PSTATE.I mask one each. */
static void masks_of_fiq_and_irq_are_apart(void)
{
	setup_in_group(SPI_A, GROUP0, 0xa0);
	unmask_irq();
	gic_set_pending(0, SPI_A);
	smp_settle();
	EXPECT_EQ(cpus[0].num_records, 0);
	unmask_fiq();
	EXPECT_PASS(expect_fiq_once(SPI_A));

	mask_irq();
	setup_in_group(SPI_B, GROUP1, 0xa0);
	gic_set_pending(0, SPI_B);
	smp_settle();
	EXPECT_EQ(cpus[0].num_records, 1);
	unmask_irq();
	EXPECT(WAIT_FOR(cpus[0].handled[SPI_B] == 1));
}

static void acknowledge_of_the_other_group_returns_nothing(void)
{
	setup_in_group(SPI_A, GROUP0, 0xa0);
	gic_set_pending(0, SPI_A);
	EXPECT_EQ(gic_acknowledge(GROUP1), INTID_SPURIOUS);
	EXPECT_EQ(gic_highest_pending(GROUP1), INTID_SPURIOUS);
	EXPECT_EQ(gic_highest_pending(GROUP0), SPI_A);
	EXPECT(gic_is_pending(0, SPI_A));
	EXPECT_EQ(gic_wait_acknowledge(GROUP0), SPI_A);
	gic_end(GROUP0, SPI_A);

	setup_in_group(SPI_B, GROUP1, 0xa0);
	gic_set_pending(0, SPI_B);
	EXPECT_EQ(gic_acknowledge(GROUP0), INTID_SPURIOUS);
	EXPECT_EQ(gic_highest_pending(GROUP0), INTID_SPURIOUS);
	EXPECT_EQ(gic_wait_acknowledge(GROUP1), SPI_B);
	gic_end(GROUP1, SPI_B);
}

/* A lower priority is not to be had by asking for its group: only the highest of both groups is there. */
static void one_highest_pending_interrupt_for_both_groups(void)
{
	setup_in_group(SPI_A, GROUP0, 0x80);
	setup_in_group(SPI_B, GROUP1, 0x40);
	setup_in_group(SPI_C, GROUP0, 0x20);
	gic_set_pending(0, SPI_A);
	gic_set_pending(0, SPI_B);
	gic_set_pending(0, SPI_C);
	EXPECT_EQ(gic_acknowledge(GROUP1), INTID_SPURIOUS);
	EXPECT_EQ(gic_wait_acknowledge(GROUP0), SPI_C);
	gic_end(GROUP0, SPI_C);
	EXPECT_EQ(gic_acknowledge(GROUP0), INTID_SPURIOUS);
	EXPECT_EQ(gic_wait_acknowledge(GROUP1), SPI_B);
	gic_end(GROUP1, SPI_B);
	EXPECT_EQ(gic_acknowledge(GROUP1), INTID_SPURIOUS);
	EXPECT_EQ(gic_wait_acknowledge(GROUP0), SPI_A);
	gic_end(GROUP0, SPI_A);
}

static volatile uint32_t raised_inside;
static volatile bool came_inside;

static void raise_inside(uint32_t intid)
{
	(void)intid;
	gic_set_pending(0, raised_inside);
	unmask_all();
	smp_settle();
	came_inside = cpus[0].handled[raised_inside] != 0;
	mask_all();
}

/* The handler of SPI_A, in @group, raises SPI_B in the other group at @priority. */
static void cross_group_preemption(unsigned group, unsigned priority, bool expected_inside)
{
	reset_interrupt_records();
	setup_in_group(SPI_A, group, 0xa0);
	setup_in_group(SPI_B, !group, priority);
	set_interrupt_handler(SPI_A, raise_inside);
	raised_inside = SPI_B;
	unmask_all();
	gic_set_pending(0, SPI_A);
	EXPECT(WAIT_FOR(cpus[0].handled[SPI_A] == 1 && cpus[0].handled[SPI_B] == 1));
	mask_all();
	EXPECT_EQ(came_inside, expected_inside);
	EXPECT_EQ(cpus[0].records[0].group, group);
	EXPECT_EQ(cpus[0].records[1].group, !group);
	EXPECT_EQ(cpus[0].records[1].depth, expected_inside ? 2 : 1);
}

static void groups_preempt_each_other_by_priority_alone(void)
{
	for (unsigned group = GROUP0; group <= GROUP1; group++) {
		EXPECT_PASS(cross_group_preemption(group, 0x60, true));
		EXPECT_PASS(cross_group_preemption(group, 0xa0, false));
		EXPECT_PASS(cross_group_preemption(group, 0xc0, false));
	}
}

static void active_priorities_are_of_each_group(void)
{
	setup_in_group(SPI_A, GROUP1, 0xa0);
	setup_in_group(SPI_B, GROUP0, 0x60);
	gic_set_pending(0, SPI_A);
	EXPECT_EQ(gic_wait_acknowledge(GROUP1), SPI_A);
	gic_set_pending(0, SPI_B);
	EXPECT_EQ(gic_wait_acknowledge(GROUP0), SPI_B);
	EXPECT_EQ(gic_running_priority(), 0x60);
	EXPECT(read_sysreg(ICC_AP0R0) != 0);
	EXPECT(read_sysreg(ICC_AP1R0) != 0);
	gic_end(GROUP0, SPI_B);
	EXPECT_EQ(gic_running_priority(), 0xa0);
	EXPECT_EQ(read_sysreg(ICC_AP0R0), 0);
	gic_end(GROUP1, SPI_A);
	EXPECT_EQ(gic_running_priority(), PRIORITY_IDLE);
	EXPECT_EQ(read_sysreg(ICC_AP1R0), 0);
}

static void split_end_works_for_group_0(void)
{
	setup_in_group(SPI_A, GROUP0, 0xa0);
	gic_set_split_eoi(true);
	gic_set_pending(0, SPI_A);
	EXPECT_EQ(gic_wait_acknowledge(GROUP0), SPI_A);
	gic_end(GROUP0, SPI_A);
	EXPECT_EQ(gic_running_priority(), PRIORITY_IDLE);
	EXPECT(gic_is_active(0, SPI_A));
	gic_deactivate_by_dir(SPI_A);
	EXPECT(!gic_is_active(0, SPI_A));
}

/* BPR0 = 4: bits 7 to 5 are the group priority of a Group 0 interrupt. */
static void binary_point_0_rules_group_0(void)
{
	write_sysreg(ICC_BPR0, 4);
	isb();
	setup_in_group(SPI_A, GROUP0, 0x98);
	setup_in_group(SPI_B, GROUP0, 0x80);
	gic_set_pending(0, SPI_A);
	EXPECT_EQ(gic_wait_acknowledge(GROUP0), SPI_A);
	EXPECT_EQ(gic_running_priority(), 0x80);
	gic_set_pending(0, SPI_B);
	EXPECT_EQ(gic_acknowledge(GROUP0), INTID_SPURIOUS);
	gic_set_priority(0, SPI_B, 0x78);
	EXPECT_EQ(gic_wait_acknowledge(GROUP0), SPI_B);
	gic_end(GROUP0, SPI_B);
	gic_end(GROUP0, SPI_A);
	EXPECT_EQ(gic_running_priority(), PRIORITY_IDLE);
}

/*
 * A coarse BPR0 beside a fine BPR1: what counts is the pending interrupt's group priority, 0x80, against the priority
 * that runs, 0x98. QEMU cuts both by the pending one's binary point.
 */
static void group_priority_is_compared_with_the_running_priority(void)
{
	SKIP_UNLESS(gic_is_libvgic(), "a choice of libvgic and KVM");
	write_sysreg(ICC_BPR0, 4);
	isb();
	setup_in_group(SPI_A, GROUP1, 0x98);
	setup_in_group(SPI_B, GROUP0, 0x98);
	gic_set_pending(0, SPI_A);
	EXPECT_EQ(gic_wait_acknowledge(GROUP1), SPI_A);
	EXPECT_EQ(gic_running_priority(), 0x98);
	gic_set_pending(0, SPI_B);
	EXPECT_EQ(gic_wait_acknowledge(GROUP0), SPI_B);
	EXPECT_EQ(gic_running_priority(), 0x80);
	gic_end(GROUP0, SPI_B);
	gic_end(GROUP1, SPI_A);
	EXPECT_EQ(gic_running_priority(), PRIORITY_IDLE);
}

/*
 * The same binary points. SPI_C alone would preempt, but the one highest-priority pending interrupt is SPI_B, which
 * does not: nothing is signalled.
 */
static void interrupt_that_cannot_preempt_hides_lower_ones(void)
{
	SKIP_UNLESS(gic_is_libvgic(), "a choice of libvgic and KVM");
	write_sysreg(ICC_BPR0, 4);
	isb();
	setup_in_group(SPI_A, GROUP1, 0x90);
	setup_in_group(SPI_B, GROUP1, 0x90);
	setup_in_group(SPI_C, GROUP0, 0x98);
	gic_set_pending(0, SPI_A);
	EXPECT_EQ(gic_wait_acknowledge(GROUP1), SPI_A);
	gic_set_pending(0, SPI_B);
	gic_set_pending(0, SPI_C);
	EXPECT_EQ(gic_acknowledge(GROUP0), INTID_SPURIOUS);
	EXPECT_EQ(gic_acknowledge(GROUP1), INTID_SPURIOUS);
	gic_clear_pending(0, SPI_B);
	EXPECT_EQ(gic_wait_acknowledge(GROUP0), SPI_C);
	gic_end(GROUP0, SPI_C);
	gic_end(GROUP1, SPI_A);
}

static void group_enable_of_the_cpu_holds_group_0_back(void)
{
	setup_in_group(SPI_A, GROUP0, 0xa0);
	gic_enable_group(GROUP0, false);
	unmask_all();
	gic_set_pending(0, SPI_A);
	smp_settle();
	EXPECT_EQ(cpus[0].num_records, 0);
	EXPECT(gic_is_pending(0, SPI_A));
	gic_enable_group(GROUP0, true);
	EXPECT_PASS(expect_fiq_once(SPI_A));
}

/* With one group disabled in the distributor, the other goes on: also below what is held back. */
static void group_enables_of_the_distributor_are_apart(void)
{
	setup_in_group(SPI_A, GROUP0, 0x40);
	setup_in_group(SPI_B, GROUP1, 0xa0);
	gicd_write(GICD_CTLR, GICD_CTLR_ARE | GICD_CTLR_ENABLE_GRP1);
	gic_set_pending(0, SPI_A);
	gic_set_pending(0, SPI_B);
	EXPECT_EQ(gic_acknowledge(GROUP0), INTID_SPURIOUS);
	EXPECT_EQ(gic_wait_acknowledge(GROUP1), SPI_B);
	gic_end(GROUP1, SPI_B);

	gicd_write(GICD_CTLR, GICD_CTLR_ARE | GICD_CTLR_ENABLE_GRP0);
	gic_set_pending(0, SPI_B);
	EXPECT_EQ(gic_acknowledge(GROUP1), INTID_SPURIOUS);
	EXPECT_EQ(gic_wait_acknowledge(GROUP0), SPI_A);
	gic_end(GROUP0, SPI_A);
	EXPECT(gic_is_pending(0, SPI_B));
}

static void pending_interrupt_changes_from_irq_to_fiq(void)
{
	setup_in_group(SPI_A, GROUP1, 0xa0);
	unmask_fiq();
	gic_set_pending(0, SPI_A);
	smp_settle();
	EXPECT_EQ(cpus[0].num_records, 0);
	gic_set_group(0, SPI_A, GROUP0);
	EXPECT_PASS(expect_fiq_once(SPI_A));
	mask_fiq();
	unmask_irq();
	gic_set_pending(0, SPI_A);
	smp_settle();
	EXPECT_EQ(cpus[0].num_records, 1);
	gic_set_group(0, SPI_A, GROUP1);
	EXPECT(WAIT_FOR(cpus[0].handled[SPI_A] == 2));
	EXPECT_EQ(cpus[0].records[1].group, GROUP1);
}

const struct test tests[] = {
	TEST(spi_of_group_0_is_an_fiq, 1),
	TEST(sgi_of_group_0_is_an_fiq, 1),
	TEST(timer_of_group_0_is_an_fiq, 1),
	TEST(fiq_reaches_the_cpu_that_it_is_routed_to, 1),
	TEST(masks_of_fiq_and_irq_are_apart, 1),
	TEST(acknowledge_of_the_other_group_returns_nothing, 1),
	TEST(one_highest_pending_interrupt_for_both_groups, 1),
	TEST(groups_preempt_each_other_by_priority_alone, 1),
	TEST(active_priorities_are_of_each_group, 1),
	TEST(split_end_works_for_group_0, 1),
	TEST(binary_point_0_rules_group_0, 1),
	TEST(group_priority_is_compared_with_the_running_priority, 1),
	TEST(interrupt_that_cannot_preempt_hides_lower_ones, 1),
	TEST(group_enable_of_the_cpu_holds_group_0_back, 1),
	TEST(group_enables_of_the_distributor_are_apart, 1),
	TEST(pending_interrupt_changes_from_irq_to_fiq, 1),
};
const unsigned num_tests = ARRAY_SIZE(tests);
