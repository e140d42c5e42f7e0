/* SPDX-License-Identifier: MIT */
/* The end of an interrupt: priority drop and deactivation, together (EOImode=0) and apart (EOImode=1). */
#include "test.h"

/* Acknowledge @intid, which was set up by gic_setup(), and look at what that did. */
static void take(uint32_t intid)
{
	gic_set_pending(0, intid);
	EXPECT_EQ(gic_wait_acknowledge(GROUP1), intid);
	EXPECT(gic_is_active(0, intid));
	EXPECT_EQ(gic_running_priority(), gic_priority(0, intid));
}

static void mode_0_drops_and_deactivates_at_once(void)
{
	gic_setup(0, SPI_A, EDGE, 0xa0);
	EXPECT(!gic_has_split_eoi());
	EXPECT_PASS(take(SPI_A));
	gic_end(GROUP1, SPI_A);
	EXPECT_EQ(gic_running_priority(), PRIORITY_IDLE);
	EXPECT(!gic_is_active(0, SPI_A));
}

static void mode_1_drops_the_priority_only(void)
{
	gic_setup(0, SPI_A, EDGE, 0xa0);
	gic_set_split_eoi(true);
	EXPECT(gic_has_split_eoi());
	EXPECT_PASS(take(SPI_A));
	gic_end(GROUP1, SPI_A);
	EXPECT_EQ(gic_running_priority(), PRIORITY_IDLE);
	EXPECT(gic_is_active(0, SPI_A));
	gic_deactivate_by_dir(SPI_A);
	EXPECT(!gic_is_active(0, SPI_A));
	EXPECT_EQ(gic_running_priority(), PRIORITY_IDLE);
}

static void mode_1_holds_the_interrupt_back_until_dir(void)
{
	static const uint32_t kinds[] = { 6, 20, SPI_A };

	gic_set_split_eoi(true);
	for (unsigned i = 0; i < ARRAY_SIZE(kinds); i++) {
		gic_setup(0, kinds[i], EDGE, 0xa0);
		EXPECT_PASS(take(kinds[i]));
		gic_end(GROUP1, kinds[i]);
		gic_set_pending(0, kinds[i]);
		EXPECT_EQ(gic_acknowledge(GROUP1), INTID_SPURIOUS);
		EXPECT_EQ(gic_highest_pending(GROUP1), INTID_SPURIOUS);
		gic_deactivate_by_dir(kinds[i]);
		EXPECT_EQ(gic_wait_acknowledge(GROUP1), kinds[i]);
		gic_end(GROUP1, kinds[i]);
		gic_deactivate_by_dir(kinds[i]);
		EXPECT(!gic_is_active(0, kinds[i]));
	}
}

static void mode_1_lets_others_of_the_same_priority_in_after_the_drop(void)
{
	gic_set_split_eoi(true);
	gic_setup(0, SPI_A, EDGE, 0xa0);
	gic_setup(0, SPI_B, EDGE, 0xa0);
	EXPECT_PASS(take(SPI_A));
	gic_set_pending(0, SPI_B);
	EXPECT_EQ(gic_acknowledge(GROUP1), INTID_SPURIOUS);
	gic_end(GROUP1, SPI_A);
	EXPECT_EQ(gic_wait_acknowledge(GROUP1), SPI_B);
	EXPECT(gic_is_active(0, SPI_A));
	EXPECT(gic_is_active(0, SPI_B));
	gic_end(GROUP1, SPI_B);
	gic_deactivate_by_dir(SPI_A);
	EXPECT(gic_is_active(0, SPI_B));
	gic_deactivate_by_dir(SPI_B);
	EXPECT(!gic_is_active(0, SPI_B));
}

static void mode_1_deactivates_in_any_order(void)
{
	static const uint32_t intids[] = { SPI_A, SPI_B, SPI_C, SPI_D };
	static const uint32_t order[] = { SPI_C, SPI_A, SPI_D, SPI_B };

	gic_set_split_eoi(true);
	for (unsigned i = 0; i < ARRAY_SIZE(intids); i++) {
		gic_setup(0, intids[i], EDGE, 0xa0);
		EXPECT_PASS(take(intids[i]));
		gic_end(GROUP1, intids[i]);
	}
	for (unsigned i = 0; i < ARRAY_SIZE(order); i++) {
		for (unsigned k = i; k < ARRAY_SIZE(order); k++)
			EXPECT(gic_is_active(0, order[k]));
		gic_deactivate_by_dir(order[i]);
		EXPECT(!gic_is_active(0, order[i]));
	}
}

/* All SPIs active at once: there is no small number of interrupts that may be between drop and deactivation. */
static void mode_1_has_no_limit_of_active_interrupts(void)
{
	gic_set_split_eoi(true);
	for (uint32_t intid = 32; intid < gic_num_intids(); intid++) {
		gic_setup(0, intid, EDGE, 0xa0);
		EXPECT_PASS(take(intid));
		gic_end(GROUP1, intid);
	}
	EXPECT_EQ(gic_running_priority(), PRIORITY_IDLE);
	for (uint32_t intid = 32; intid < gic_num_intids(); intid++) {
		EXPECT(gic_is_active(0, intid));
		gic_deactivate_by_dir(intid);
		EXPECT(!gic_is_active(0, intid));
	}
}

static void nested_drops_return_to_the_priority_below(void)
{
	for (unsigned split = 0; split <= 1; split++) {
		gic_set_split_eoi(split);
		gic_setup(0, SPI_A, EDGE, 0xa0);
		gic_setup(0, SPI_B, EDGE, 0x60);
		gic_setup(0, SPI_C, EDGE, 0x20);
		EXPECT_PASS(take(SPI_A));
		EXPECT_PASS(take(SPI_B));
		EXPECT_PASS(take(SPI_C));
		gic_end(GROUP1, SPI_C);
		EXPECT_EQ(gic_running_priority(), 0x60);
		gic_end(GROUP1, SPI_B);
		EXPECT_EQ(gic_running_priority(), 0xa0);
		gic_end(GROUP1, SPI_A);
		EXPECT_EQ(gic_running_priority(), PRIORITY_IDLE);
		for (uint32_t intid = SPI_A; intid <= SPI_C; intid++) {
			EXPECT_EQ(gic_is_active(0, intid), split);
			if (split)
				gic_deactivate_by_dir(intid);
			EXPECT(!gic_is_active(0, intid));
		}
	}
}

static void end_of_a_special_intid_does_nothing(void)
{
	gic_setup(0, SPI_A, EDGE, 0xa0);
	EXPECT_PASS(take(SPI_A));
	for (uint32_t intid = 1020; intid <= INTID_SPURIOUS; intid++) {
		gic_end(GROUP1, intid);
		EXPECT_EQ(gic_running_priority(), 0xa0);
		EXPECT(gic_is_active(0, SPI_A));
	}
	gic_end(GROUP1, SPI_A);
	EXPECT_EQ(gic_running_priority(), PRIORITY_IDLE);
}

static uint64_t dir_here(uint64_t intid)
{
	gic_set_split_eoi(true);
	gic_deactivate_by_dir((uint32_t)intid);
	return 0;
}

static void dir_from_another_cpu_deactivates_an_spi(void)
{
	gic_setup(0, SPI_A, EDGE, 0xa0);
	gic_set_split_eoi(true);
	for (unsigned i = 0; i < 3; i++) {
		EXPECT_PASS(take(SPI_A));
		gic_end(GROUP1, SPI_A);
		gic_set_pending(0, SPI_A); /* it must come again by the other CPU's DIR */
		EXPECT_EQ(gic_acknowledge(GROUP1), INTID_SPURIOUS);
		smp_call(1, dir_here, SPI_A);
		EXPECT_EQ(gic_wait_acknowledge(GROUP1), SPI_A);
		gic_end(GROUP1, SPI_A);
		gic_deactivate_by_dir(SPI_A);
		EXPECT(!gic_is_active(0, SPI_A));
	}
}

/* SGIs and PPIs are banked: DIR names the one of the CPU that writes it. */
static void dir_from_another_cpu_leaves_a_private_interrupt(void)
{
	gic_setup(0, 6, EDGE, 0xa0);
	gic_set_split_eoi(true);
	EXPECT_PASS(take(6));
	gic_end(GROUP1, 6);
	smp_call(1, dir_here, 6);
	EXPECT(gic_is_active(0, 6));
	gic_deactivate_by_dir(6);
	EXPECT(!gic_is_active(0, 6));
}

static uint64_t has_split_eoi_here(uint64_t unused)
{
	(void)unused;
	return gic_has_split_eoi();
}

static void mode_is_of_each_cpu_alone(void)
{
	gic_set_split_eoi(true);
	EXPECT(gic_has_split_eoi());
	for (unsigned i = 1; i < num_cpus; i++)
		EXPECT_EQ(smp_call(i, has_split_eoi_here, 0), 0);
}

/* A level that stays high through drop and deactivation comes again only after the latter. */
static void mode_1_with_a_high_level(void)
{
	gic_enable(0, VIRTUAL_TIMER_INTID);
	gic_set_split_eoi(true);
	timer_set(VIRTUAL_TIMER, 0);
	for (unsigned i = 0; i < 3; i++) {
		EXPECT_EQ(gic_wait_acknowledge(GROUP1), VIRTUAL_TIMER_INTID);
		gic_end(GROUP1, VIRTUAL_TIMER_INTID);
		EXPECT(gic_is_pending(0, VIRTUAL_TIMER_INTID));
		EXPECT_EQ(gic_acknowledge(GROUP1), INTID_SPURIOUS);
		gic_deactivate_by_dir(VIRTUAL_TIMER_INTID);
	}
	timer_stop(VIRTUAL_TIMER);
	EXPECT(WAIT_FOR(!gic_is_pending(0, VIRTUAL_TIMER_INTID)));
	EXPECT_EQ(gic_acknowledge(GROUP1), INTID_SPURIOUS);
}

/* The same by interrupt: the handler of exception.c drops, then deactivates. */
static void mode_1_in_a_handler(void)
{
	gic_setup(0, SPI_A, EDGE, 0xa0);
	gic_set_split_eoi(true);
	unmask_all();
	for (uint32_t i = 1; i <= 10; i++) {
		gic_set_pending(0, SPI_A);
		EXPECT(WAIT_FOR(cpus[0].handled[SPI_A] == i));
		EXPECT(!gic_is_active(0, SPI_A));
	}
}

const struct test tests[] = {
	TEST(mode_0_drops_and_deactivates_at_once, 1),
	TEST(mode_1_drops_the_priority_only, 1),
	TEST(mode_1_holds_the_interrupt_back_until_dir, 1),
	TEST(mode_1_lets_others_of_the_same_priority_in_after_the_drop, 1),
	TEST(mode_1_deactivates_in_any_order, 1),
	TEST(mode_1_has_no_limit_of_active_interrupts, 1),
	TEST(nested_drops_return_to_the_priority_below, 1),
	TEST(end_of_a_special_intid_does_nothing, 1),
	TEST(dir_from_another_cpu_deactivates_an_spi, 2),
	TEST(dir_from_another_cpu_leaves_a_private_interrupt, 2),
	TEST(mode_is_of_each_cpu_alone, 2),
	TEST(mode_1_with_a_high_level, 1),
	TEST(mode_1_in_a_handler, 1),
};
const unsigned num_tests = ARRAY_SIZE(tests);
