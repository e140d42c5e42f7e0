/* SPDX-License-Identifier: MIT */
/*
 * The states of an interrupt (inactive, pending, active, active and pending), as
 * the set and clear registers of distributor and redistributor show and change
 * them: for an SGI, a PPI that no device drives, and an SPI.
 */
#include "test.h"

#define PPI_FREE 20u

static const uint32_t kinds[] = { 6, PPI_FREE, SPI_A };

/* Both of each pair of registers show the same state. */
static void expect_state(unsigned cpu, uint32_t intid, bool pending, bool active)
{
	EXPECT_EQ(gic_bit(cpu, intid, GICD_ISPENDR), pending);
	EXPECT_EQ(gic_bit(cpu, intid, GICD_ICPENDR), pending);
	EXPECT_EQ(gic_bit(cpu, intid, GICD_ISACTIVER), active);
	EXPECT_EQ(gic_bit(cpu, intid, GICD_ICACTIVER), active);
}

static void prepare(uint32_t intid)
{
	gic_setup(0, intid, EDGE, DEFAULT_PRIORITY);
}

static void walk_through_all_states(uint32_t intid)
{
	prepare(intid);
	EXPECT_PASS(expect_state(0, intid, false, false));
	gic_set_pending(0, intid);
	EXPECT_PASS(expect_state(0, intid, true, false));
	EXPECT_EQ(gic_wait_acknowledge(GROUP1), intid);
	EXPECT_PASS(expect_state(0, intid, false, true));
	gic_set_pending(0, intid);
	EXPECT_PASS(expect_state(0, intid, true, true));
	gic_end(GROUP1, intid);
	EXPECT_PASS(expect_state(0, intid, true, false));
	EXPECT_EQ(gic_wait_acknowledge(GROUP1), intid);
	EXPECT_PASS(expect_state(0, intid, false, true));
	gic_end(GROUP1, intid);
	EXPECT_PASS(expect_state(0, intid, false, false));
}

static void acknowledge_and_end_go_through_all_states(void)
{
	for (unsigned i = 0; i < ARRAY_SIZE(kinds); i++)
		EXPECT_PASS(walk_through_all_states(kinds[i]));
}

static void set_active_holds_a_pending_interrupt_back(void)
{
	for (unsigned i = 0; i < ARRAY_SIZE(kinds); i++) {
		prepare(kinds[i]);
		gic_set_active(0, kinds[i]);
		EXPECT_PASS(expect_state(0, kinds[i], false, true));
		EXPECT_EQ(gic_running_priority(), PRIORITY_IDLE);
		gic_set_pending(0, kinds[i]);
		EXPECT_PASS(expect_state(0, kinds[i], true, true));
		EXPECT_EQ(gic_acknowledge(GROUP1), INTID_SPURIOUS);
		gic_clear_active(0, kinds[i]);
		EXPECT_PASS(expect_state(0, kinds[i], true, false));
		EXPECT_EQ(gic_wait_acknowledge(GROUP1), kinds[i]);
		gic_end(GROUP1, kinds[i]);
		EXPECT_PASS(expect_state(0, kinds[i], false, false));
	}
}

static void clear_pending_leaves_the_active_state(void)
{
	for (unsigned i = 0; i < ARRAY_SIZE(kinds); i++) {
		prepare(kinds[i]);
		gic_set_pending(0, kinds[i]);
		EXPECT_EQ(gic_wait_acknowledge(GROUP1), kinds[i]);
		gic_set_pending(0, kinds[i]);
		gic_clear_pending(0, kinds[i]);
		EXPECT_PASS(expect_state(0, kinds[i], false, true));
		gic_end(GROUP1, kinds[i]);
		EXPECT_PASS(expect_state(0, kinds[i], false, false));
	}
}

/* Clearing the active state is no priority drop: the CPU interface has its own record. */
static void clear_active_leaves_the_running_priority(void)
{
	prepare(SPI_A);
	gic_set_pending(0, SPI_A);
	EXPECT_EQ(gic_wait_acknowledge(GROUP1), SPI_A);
	gic_clear_active(0, SPI_A);
	EXPECT_PASS(expect_state(0, SPI_A, false, false));
	EXPECT_EQ(gic_running_priority(), DEFAULT_PRIORITY);
	gic_set_pending(0, SPI_A);
	EXPECT_EQ(gic_acknowledge(GROUP1), INTID_SPURIOUS);
	gic_end(GROUP1, SPI_A);
	EXPECT_EQ(gic_running_priority(), PRIORITY_IDLE);
	EXPECT_EQ(gic_wait_acknowledge(GROUP1), SPI_A);
	gic_end(GROUP1, SPI_A);
}

static void state_does_not_depend_on_the_enable(void)
{
	for (unsigned i = 0; i < ARRAY_SIZE(kinds); i++) {
		gic_set_pending(0, kinds[i]);
		gic_set_active(0, kinds[i]);
		EXPECT_PASS(expect_state(0, kinds[i], true, true));
		gic_clear_active(0, kinds[i]);
		gic_clear_pending(0, kinds[i]);
		EXPECT_PASS(expect_state(0, kinds[i], false, false));
	}
}

/* In every set and clear register a zero changes nothing. */
static void writes_change_only_the_bits_that_are_one(void)
{
	static const uint32_t set[] = { GICD_ISENABLER, GICD_ISPENDR, GICD_ISACTIVER };
	static const uint32_t clear[] = { GICD_ICENABLER, GICD_ICPENDR, GICD_ICACTIVER };

	for (unsigned i = 0; i < ARRAY_SIZE(set); i++) {
		uintptr_t set_reg = gic_register_of(0, SPI_A, set[i]), clear_reg = gic_register_of(0, SPI_A, clear[i]);

		mmio_write32(set_reg, 0xf0f00001);
		mmio_write32(set_reg, 0x00000006);
		dsb();
		EXPECT_EQ(mmio_read32(set_reg), 0xf0f00007);
		EXPECT_EQ(mmio_read32(clear_reg), 0xf0f00007);
		mmio_write32(clear_reg, 0xf0000001);
		dsb();
		EXPECT_EQ(mmio_read32(set_reg), 0x00f00006);
		mmio_write32(clear_reg, 0xffffffff);
		dsb();
		EXPECT_EQ(mmio_read32(clear_reg), 0);
	}
}

static void redistributors_do_not_share_private_state(void)
{
	for (unsigned i = 0; i < num_cpus; i++) {
		gic_set_pending(i, PPI_FREE);
		gic_set_priority(i, PPI_FREE, 0x20 + 8 * i);
		for (unsigned k = 0; k < num_cpus; k++)
			EXPECT_EQ(gic_is_pending(k, PPI_FREE), k <= i);
	}
	for (unsigned i = 0; i < num_cpus; i++)
		EXPECT_EQ(gic_priority(i, PPI_FREE), 0x20 + 8 * i);
}

/* An SPI has one state for all: active at one CPU, it is not delivered to another. */

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

static void active_spi_is_not_delivered_elsewhere(void)
{
	prepare(SPI_A);
	gic_set_pending(0, SPI_A);
	EXPECT_EQ(gic_wait_acknowledge(GROUP1), SPI_A);
	gic_route(SPI_A, 1);
	gic_set_pending(0, SPI_A);
	EXPECT_EQ(smp_call(1, acknowledge_nothing_here, GROUP1), INTID_SPURIOUS);
	gic_end(GROUP1, SPI_A);
	EXPECT_EQ(gic_acknowledge(GROUP1), INTID_SPURIOUS);
	EXPECT_EQ(smp_call(1, acknowledge_here, GROUP1), SPI_A);
	EXPECT_PASS(expect_state(0, SPI_A, false, true));
	smp_call(1, end_here, SPI_A);
	EXPECT_PASS(expect_state(0, SPI_A, false, false));
}

static void pending_interrupt_moves_between_groups_and_keeps_its_state(void)
{
	prepare(SPI_A);
	gic_set_pending(0, SPI_A);
	gic_set_group(0, SPI_A, GROUP0);
	EXPECT_PASS(expect_state(0, SPI_A, true, false));
	EXPECT_EQ(gic_acknowledge(GROUP1), INTID_SPURIOUS);
	gic_set_group(0, SPI_A, GROUP1);
	EXPECT_EQ(gic_wait_acknowledge(GROUP1), SPI_A);
	gic_end(GROUP1, SPI_A);
}

const struct test tests[] = {
	TEST(acknowledge_and_end_go_through_all_states, 1),
	TEST(set_active_holds_a_pending_interrupt_back, 1),
	TEST(clear_pending_leaves_the_active_state, 1),
	TEST(clear_active_leaves_the_running_priority, 1),
	TEST(state_does_not_depend_on_the_enable, 1),
	TEST(writes_change_only_the_bits_that_are_one, 1),
	TEST(redistributors_do_not_share_private_state, 1),
	TEST(active_spi_is_not_delivered_elsewhere, 2),
	TEST(pending_interrupt_moves_between_groups_and_keeps_its_state, 1),
};
const unsigned num_tests = ARRAY_SIZE(tests);
