/* SPDX-License-Identifier: MIT */
/* Priorities: order, the priority mask, preemption, the binary points, and what the CPU interface shows of them. */
#include "test.h"

/* The bits of a priority that the CPU interface implements. */
static unsigned priority_bits(void)
{
	return ICC_CTLR_PRI_BITS(read_sysreg(ICC_CTLR));
}

static unsigned lowest_step(void)
{
	return 1u << (8 - priority_bits());
}

static unsigned round_priority(unsigned priority)
{
	return priority & ~(lowest_step() - 1);
}

static void write_bpr(unsigned group, unsigned value)
{
	if (group == GROUP1)
		write_sysreg(ICC_BPR1, value);
	else
		write_sysreg(ICC_BPR0, value);
	isb();
}

static void take(uint32_t intid)
{
	gic_set_pending(0, intid);
	EXPECT_EQ(gic_wait_acknowledge(GROUP1), intid);
}

/* A GIC may have more bits in the distributor than in the CPU interface; libvgic has the same. */
static void priority_registers_hold_the_implemented_bits(void)
{
	gic_set_priority(0, SPI_B, 0xff);
	unsigned distributor_bits = gic_priority(0, SPI_B);

	EXPECT(priority_bits() >= 4 && priority_bits() <= 8);
	EXPECT_EQ(distributor_bits & round_priority(0xff), round_priority(0xff));
	if (gic_is_libvgic())
		EXPECT_EQ(distributor_bits, round_priority(0xff));
	for (unsigned priority = 0; priority < 256; priority++) {
		gic_set_priority(0, SPI_B, priority);
		EXPECT_EQ(gic_priority(0, SPI_B), priority & distributor_bits);
		gic_set_priority_mask(priority);
		EXPECT_EQ(read_sysreg(ICC_PMR), round_priority(priority));
	}
	EXPECT_EQ(gic_priority(0, SPI_A), DEFAULT_PRIORITY);
	EXPECT_EQ(gic_priority(0, SPI_C), DEFAULT_PRIORITY);
}

static void pending_interrupts_come_by_priority(void)
{
	static const uint8_t priorities[] = { 0x80, 0x20, 0xc0, 0x00, 0xe0, 0x48, 0x40, 0x98 };
	static const uint32_t expected[] = { SPI_D, SPI_B, SPI_G, SPI_F, SPI_A, SPI_H, SPI_C, SPI_E };

	for (unsigned i = 0; i < ARRAY_SIZE(priorities); i++) {
		gic_setup(0, SPI_A + i, EDGE, priorities[i]);
		gic_set_pending(0, SPI_A + i);
	}
	for (unsigned i = 0; i < ARRAY_SIZE(expected); i++) {
		EXPECT_EQ(gic_highest_pending(GROUP1), expected[i]);
		EXPECT_EQ(gic_wait_acknowledge(GROUP1), expected[i]);
		gic_end(GROUP1, expected[i]);
	}
	EXPECT_EQ(gic_highest_pending(GROUP1), INTID_SPURIOUS);
	EXPECT_EQ(gic_acknowledge(GROUP1), INTID_SPURIOUS);
}

static void sgi_ppi_and_spi_are_ordered_together(void)
{
	gic_setup(0, SPI_A, EDGE, 0x40);
	gic_setup(0, 20, EDGE, 0x20);
	gic_setup(0, 5, EDGE, 0x60);
	gic_set_pending(0, SPI_A);
	gic_set_pending(0, 20);
	gic_set_pending(0, 5);
	EXPECT_EQ(gic_wait_acknowledge(GROUP1), 20);
	gic_end(GROUP1, 20);
	EXPECT_EQ(gic_wait_acknowledge(GROUP1), SPI_A);
	gic_end(GROUP1, SPI_A);
	EXPECT_EQ(gic_wait_acknowledge(GROUP1), 5);
	gic_end(GROUP1, 5);
}

static void change_of_a_pending_priority_changes_the_order(void)
{
	gic_setup(0, SPI_A, EDGE, 0x40);
	gic_setup(0, SPI_B, EDGE, 0x80);
	gic_set_pending(0, SPI_A);
	gic_set_pending(0, SPI_B);
	EXPECT_EQ(gic_highest_pending(GROUP1), SPI_A);
	gic_set_priority(0, SPI_B, 0x20);
	EXPECT_EQ(gic_highest_pending(GROUP1), SPI_B);
	gic_set_priority(0, SPI_A, 0x18);
	EXPECT_EQ(gic_wait_acknowledge(GROUP1), SPI_A);
	gic_end(GROUP1, SPI_A);
	EXPECT_EQ(gic_wait_acknowledge(GROUP1), SPI_B);
	gic_end(GROUP1, SPI_B);
}

/* Signalled only if strictly higher (lower in number) than the mask. */
static void priority_mask_lets_only_higher_priorities_through(void)
{
	gic_setup(0, SPI_A, EDGE, 0x80);
	gic_set_pending(0, SPI_A);
	gic_set_priority_mask(0x80);
	EXPECT_EQ(gic_acknowledge(GROUP1), INTID_SPURIOUS);
	gic_set_priority_mask(0);
	EXPECT_EQ(gic_acknowledge(GROUP1), INTID_SPURIOUS);
	EXPECT(gic_is_pending(0, SPI_A));
	gic_set_priority_mask(0x80 + lowest_step());
	EXPECT_EQ(gic_wait_acknowledge(GROUP1), SPI_A);
	gic_end(GROUP1, SPI_A);
}

/* No mask lets the lowest priority through. */
static void idle_priority_is_never_signalled(void)
{
	gic_setup(0, SPI_A, EDGE, 0xff);
	gic_set_pending(0, SPI_A);
	gic_set_priority_mask(0xff);
	EXPECT_EQ(gic_acknowledge(GROUP1), INTID_SPURIOUS);
	gic_set_priority(0, SPI_A, round_priority(0xff) - lowest_step());
	EXPECT_EQ(gic_wait_acknowledge(GROUP1), SPI_A);
	gic_end(GROUP1, SPI_A);
}

static void lowering_the_mask_signals_what_waited(void)
{
	gic_setup(0, SPI_A, EDGE, 0x80);
	gic_set_priority_mask(0x40);
	unmask_all();
	gic_set_pending(0, SPI_A);
	smp_settle();
	EXPECT_EQ(cpus[0].num_records, 0);
	gic_set_priority_mask(0xff);
	EXPECT(WAIT_FOR(cpus[0].handled[SPI_A] == 1));
}

/* The mask is not part of HPPIR's choice. */
static void highest_pending_is_shown_through_the_mask(void)
{
	gic_setup(0, SPI_A, EDGE, 0x80);
	gic_set_pending(0, SPI_A);
	gic_set_priority_mask(0x40);
	EXPECT_EQ(gic_highest_pending(GROUP1), SPI_A);
	EXPECT(gic_is_pending(0, SPI_A));
	EXPECT(!gic_is_active(0, SPI_A));
}

static void running_priority_follows_acknowledge_and_end(void)
{
	EXPECT_EQ(gic_running_priority(), PRIORITY_IDLE);
	gic_setup(0, SPI_A, EDGE, 0xa0);
	gic_setup(0, SPI_B, EDGE, 0x58);
	EXPECT_PASS(take(SPI_A));
	EXPECT_EQ(gic_running_priority(), 0xa0);
	EXPECT_PASS(take(SPI_B));
	EXPECT_EQ(gic_running_priority(), 0x58);
	gic_end(GROUP1, SPI_B);
	EXPECT_EQ(gic_running_priority(), 0xa0);
	gic_end(GROUP1, SPI_A);
	EXPECT_EQ(gic_running_priority(), PRIORITY_IDLE);
}

static void active_priorities_register_shows_what_runs(void)
{
	SKIP_UNLESS(priority_bits() == 5, "written for 5 bits");
	gic_setup(0, SPI_A, EDGE, 0xa0);
	gic_setup(0, SPI_B, EDGE, 0x58);
	EXPECT_EQ(read_sysreg(ICC_AP1R0), 0);
	EXPECT_PASS(take(SPI_A));
	EXPECT_PASS(take(SPI_B));
	EXPECT_EQ(read_sysreg(ICC_AP1R0), 1u << (0xa0 / 8) | 1u << (0x58 / 8));
	EXPECT_EQ(read_sysreg(ICC_AP0R0), 0);
	gic_end(GROUP1, SPI_B);
	EXPECT_EQ(read_sysreg(ICC_AP1R0), 1u << (0xa0 / 8));
	gic_end(GROUP1, SPI_A);
	EXPECT_EQ(read_sysreg(ICC_AP1R0), 0);
}

/* ---- Preemption, by handlers -------------------------------------------------- */

/* In the handler of SPI_A: raise another, let it in, and note whether it came. */
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

static void raise_in_handler_of_spi_a(uint32_t intid, unsigned priority, bool expected_inside)
{
	reset_interrupt_records();
	set_interrupt_handler(SPI_A, raise_inside);
	raised_inside = intid;
	gic_setup(0, intid, EDGE, priority);
	unmask_all();
	gic_set_pending(0, SPI_A);
	EXPECT(WAIT_FOR(cpus[0].handled[SPI_A] == 1 && cpus[0].handled[intid] == 1));
	mask_all();
	EXPECT_EQ(came_inside, expected_inside);
	EXPECT_EQ(cpus[0].num_records, 2);
	EXPECT_EQ(cpus[0].records[0].intid, SPI_A);
	EXPECT_EQ(cpus[0].records[0].depth, 1);
	EXPECT_EQ(cpus[0].records[1].intid, intid);
	EXPECT_EQ(cpus[0].records[1].depth, expected_inside ? 2 : 1);
}

static void higher_priority_preempts(void)
{
	gic_setup(0, SPI_A, EDGE, 0xa0);
	EXPECT_PASS(raise_in_handler_of_spi_a(SPI_B, 0xa0 - lowest_step(), true));
	EXPECT_EQ(cpus[0].records[1].running_priority, 0xa0 - lowest_step());
	EXPECT_PASS(raise_in_handler_of_spi_a(3, 0x10, true));
	EXPECT_PASS(raise_in_handler_of_spi_a(20, 0x00, true));
}

static void equal_priority_does_not_preempt(void)
{
	gic_setup(0, SPI_A, EDGE, 0xa0);
	EXPECT_PASS(raise_in_handler_of_spi_a(SPI_B, 0xa0, false));
	EXPECT_PASS(raise_in_handler_of_spi_a(3, 0xa0, false));
}

static void lower_priority_does_not_preempt(void)
{
	gic_setup(0, SPI_A, EDGE, 0xa0);
	EXPECT_PASS(raise_in_handler_of_spi_a(SPI_B, 0xb0, false));
}

static void interrupt_masked_by_priority_does_not_preempt(void)
{
	gic_setup(0, SPI_A, EDGE, 0xa0);
	gic_setup(0, SPI_B, EDGE, 0x80);
	EXPECT_PASS(take(SPI_A));
	gic_set_priority_mask(0x80);
	gic_set_pending(0, SPI_B);
	EXPECT_EQ(gic_acknowledge(GROUP1), INTID_SPURIOUS);
	gic_set_priority_mask(0xff);
	EXPECT_EQ(gic_wait_acknowledge(GROUP1), SPI_B);
	gic_end(GROUP1, SPI_B);
	gic_end(GROUP1, SPI_A);
}

#define NESTED_LEVELS 8u

static void raise_next_level(uint32_t intid)
{
	if (intid == SPI_A + NESTED_LEVELS - 1)
		return;
	gic_set_pending(0, intid + 1);
	unmask_all();
	(void)WAIT_FOR(cpus[0].handled[intid + 1] == 1);
	mask_all();
}

static void eight_levels_nest(void)
{
	for (uint32_t i = 0; i < NESTED_LEVELS; i++) {
		gic_setup(0, SPI_A + i, EDGE, 0xe0 - 0x20 * i);
		set_interrupt_handler(SPI_A + i, raise_next_level);
	}
	unmask_all();
	gic_set_pending(0, SPI_A);
	EXPECT(WAIT_FOR(cpus[0].handled[SPI_A] == 1));
	EXPECT_EQ(cpus[0].num_records, NESTED_LEVELS);
	for (uint32_t i = 0; i < NESTED_LEVELS; i++) {
		EXPECT_EQ(cpus[0].records[i].intid, SPI_A + i);
		EXPECT_EQ(cpus[0].records[i].depth, i + 1);
		EXPECT_EQ(cpus[0].records[i].running_priority, 0xe0 - 0x20 * i);
		EXPECT_EQ(cpus[0].handled[SPI_A + i], 1);
	}
	EXPECT_EQ(gic_running_priority(), PRIORITY_IDLE);
}

/* ---- Binary points --------------------------------------------------------------- */

static void binary_points_have_a_minimum(void)
{
	unsigned min_bpr0 = 7 - priority_bits(), min_bpr1 = min_bpr0 + 1;

	for (unsigned i = 0; i < 8; i++) {
		write_bpr(GROUP0, i);
		EXPECT_EQ(read_sysreg(ICC_BPR0), i < min_bpr0 ? min_bpr0 : i);
		write_bpr(GROUP1, i);
		EXPECT_EQ(read_sysreg(ICC_BPR1), i < min_bpr1 ? min_bpr1 : i);
	}
}

/* With BPR1 = 5, bits 7 to 5 are the group priority of a Group 1 interrupt. */
static void subpriority_does_not_preempt(void)
{
	gic_setup(0, SPI_A, EDGE, 0x98);
	write_bpr(GROUP1, 5);
	EXPECT_PASS(raise_in_handler_of_spi_a(SPI_B, 0x80, false));
	EXPECT_PASS(raise_in_handler_of_spi_a(SPI_B, 0x78, true));
	write_bpr(GROUP1, 4);
	EXPECT_PASS(raise_in_handler_of_spi_a(SPI_B, 0x90, false));
	EXPECT_PASS(raise_in_handler_of_spi_a(SPI_B, 0x88, true));
	write_bpr(GROUP1, 7);
	EXPECT_PASS(raise_in_handler_of_spi_a(SPI_B, 0x88, false));
	EXPECT_PASS(raise_in_handler_of_spi_a(SPI_B, 0x60, true));
}

static void subpriority_still_orders_what_is_pending(void)
{
	write_bpr(GROUP1, 7);
	gic_setup(0, SPI_A, EDGE, 0x98);
	gic_setup(0, SPI_B, EDGE, 0x88);
	gic_set_pending(0, SPI_A);
	gic_set_pending(0, SPI_B);
	EXPECT_EQ(gic_wait_acknowledge(GROUP1), SPI_B);
	gic_end(GROUP1, SPI_B);
	EXPECT_EQ(gic_wait_acknowledge(GROUP1), SPI_A);
	gic_end(GROUP1, SPI_A);
}

static void running_priority_is_the_group_priority(void)
{
	gic_setup(0, SPI_A, EDGE, 0x98);
	write_bpr(GROUP1, 5);
	EXPECT_PASS(take(SPI_A));
	EXPECT_EQ(gic_running_priority(), 0x80);
	gic_end(GROUP1, SPI_A);
	EXPECT_EQ(gic_running_priority(), PRIORITY_IDLE);
}

/* ICC_CTLR.CBPR: BPR0 rules both groups, BPR1 shows BPR0 + 1 and cannot be written. */
static void common_binary_point_rules_group_1(void)
{
	unsigned min_bpr1 = 8 - priority_bits();

	write_bpr(GROUP1, 0);
	write_sysreg(ICC_CTLR, read_sysreg(ICC_CTLR) | ICC_CTLR_CBPR);
	isb();
	EXPECT(read_sysreg(ICC_CTLR) & ICC_CTLR_CBPR);
	for (unsigned i = 7 - priority_bits(); i < 8; i++) {
		write_bpr(GROUP0, i);
		write_bpr(GROUP1, 3);
		EXPECT_EQ(read_sysreg(ICC_BPR0), i);
		EXPECT_EQ(read_sysreg(ICC_BPR1), i < 7 ? i + 1 : 7);
	}
	gic_setup(0, SPI_A, EDGE, 0x98);
	write_bpr(GROUP0, 4);
	EXPECT_PASS(raise_in_handler_of_spi_a(SPI_B, 0x80, false));
	EXPECT_PASS(raise_in_handler_of_spi_a(SPI_B, 0x78, true));
	write_bpr(GROUP1, 7);
	write_sysreg(ICC_CTLR, read_sysreg(ICC_CTLR) & ~(uint64_t)ICC_CTLR_CBPR);
	isb();
	EXPECT_EQ(read_sysreg(ICC_BPR1), min_bpr1);
	EXPECT_PASS(raise_in_handler_of_spi_a(SPI_B, 0x80, true));
}

const struct test tests[] = {
	TEST(priority_registers_hold_the_implemented_bits, 1),
	TEST(pending_interrupts_come_by_priority, 1),
	TEST(sgi_ppi_and_spi_are_ordered_together, 1),
	TEST(change_of_a_pending_priority_changes_the_order, 1),
	TEST(priority_mask_lets_only_higher_priorities_through, 1),
	TEST(idle_priority_is_never_signalled, 1),
	TEST(lowering_the_mask_signals_what_waited, 1),
	TEST(highest_pending_is_shown_through_the_mask, 1),
	TEST(running_priority_follows_acknowledge_and_end, 1),
	TEST(active_priorities_register_shows_what_runs, 1),
	TEST(higher_priority_preempts, 1),
	TEST(equal_priority_does_not_preempt, 1),
	TEST(lower_priority_does_not_preempt, 1),
	TEST(interrupt_masked_by_priority_does_not_preempt, 1),
	TEST(eight_levels_nest, 1),
	TEST(binary_points_have_a_minimum, 1),
	TEST(subpriority_does_not_preempt, 1),
	TEST(subpriority_still_orders_what_is_pending, 1),
	TEST(running_priority_is_the_group_priority, 1),
	TEST(common_binary_point_rules_group_1, 1),
};
const unsigned num_tests = ARRAY_SIZE(tests);
