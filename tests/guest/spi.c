/* SPDX-License-Identifier: MIT */
/*
 * Shared peripheral interrupts, edge-triggered and level-sensitive, raised by
 * software, by messages, by the PL011 and by the test device.
 */
#include "test.h"

/* The boot CPU gets @intid exactly once, by polling, and then nothing more. */
static void expect_acknowledged_once(uint32_t intid)
{
	EXPECT_EQ(gic_wait_acknowledge(GROUP1), intid);
	EXPECT(gic_is_active(0, intid));
	gic_end(GROUP1, intid);
	EXPECT(!gic_is_active(0, intid));
	EXPECT_EQ(gic_acknowledge(GROUP1), INTID_SPURIOUS);
}

/* ---- Raised by GICD_ISPENDR ------------------------------------------------ */

static void set_pending_comes_once(enum trigger trigger)
{
	gic_setup(0, SPI_A, trigger, DEFAULT_PRIORITY);
	EXPECT_EQ(gic_trigger(0, SPI_A), trigger);
	EXPECT_EQ(gic_acknowledge(GROUP1), INTID_SPURIOUS);
	for (unsigned i = 0; i < 3; i++) {
		gic_set_pending(0, SPI_A);
		EXPECT(gic_is_pending(0, SPI_A));
		EXPECT_PASS(expect_acknowledged_once(SPI_A));
		EXPECT(!gic_is_pending(0, SPI_A));
	}
}

static void set_pending_edge_comes_once(void)
{
	set_pending_comes_once(EDGE);
}

static void set_pending_level_comes_once(void)
{
	set_pending_comes_once(LEVEL);
}

static void clear_pending_takes_the_interrupt_back(void)
{
	for (enum trigger trigger = LEVEL; trigger <= EDGE; trigger++) {
		gic_setup(0, SPI_A, trigger, DEFAULT_PRIORITY);
		gic_set_pending(0, SPI_A);
		gic_clear_pending(0, SPI_A);
		EXPECT(!gic_is_pending(0, SPI_A));
		EXPECT_EQ(gic_acknowledge(GROUP1), INTID_SPURIOUS);
	}
}

static void every_spi_can_be_delivered(void)
{
	for (uint32_t intid = 32; intid < gic_num_intids(); intid++) {
		gic_setup(0, intid, EDGE, DEFAULT_PRIORITY);
		gic_set_pending(0, intid);
		EXPECT_PASS(expect_acknowledged_once(intid));
		gic_disable(0, intid);
	}
}

static void all_spis_pending_at_once_are_all_delivered(void)
{
	uint32_t total = gic_num_intids() - 32;

	for (uint32_t intid = 32; intid < gic_num_intids(); intid++) {
		gic_setup(0, intid, EDGE, DEFAULT_PRIORITY);
		gic_set_pending(0, intid);
	}
	unmask_all();
	for (uint32_t intid = 32; intid < gic_num_intids(); intid++)
		EXPECT(WAIT_FOR(cpus[0].handled[intid] == 1));
	for (uint32_t intid = 32; intid < gic_num_intids(); intid++)
		total -= cpus[0].handled[intid];
	EXPECT_EQ(total, 0);
}

static void disabled_spi_waits_until_it_is_enabled(void)
{
	gic_set_trigger(0, SPI_A, EDGE);
	gic_set_pending(0, SPI_A);
	EXPECT(gic_is_pending(0, SPI_A));
	EXPECT_EQ(gic_highest_pending(GROUP1), INTID_SPURIOUS);
	EXPECT_EQ(gic_acknowledge(GROUP1), INTID_SPURIOUS);
	gic_enable(0, SPI_A);
	EXPECT_PASS(expect_acknowledged_once(SPI_A));
}

static void disable_keeps_the_interrupt_pending(void)
{
	gic_setup(0, SPI_A, EDGE, DEFAULT_PRIORITY);
	gic_set_pending(0, SPI_A);
	gic_disable(0, SPI_A);
	EXPECT_EQ(gic_acknowledge(GROUP1), INTID_SPURIOUS);
	EXPECT(gic_is_pending(0, SPI_A));
	gic_enable(0, SPI_A);
	EXPECT_PASS(expect_acknowledged_once(SPI_A));
}

/* ---- Disable is a promise --------------------------------------------------- */

#define DISABLE_ROUNDS 30u

static volatile bool storm_stop;

static uint64_t storm_until_stopped(uint64_t intid)
{
	while (!storm_stop) {
		gic_set_pending(0, (uint32_t)intid);
		cpu_relax();
	}
	return 0;
}

/* This CPU disables an interrupt that another raises all the time, and may not acknowledge it while it is disabled. */
static void disable_and_enable_in_a_storm(void)
{
	for (unsigned round = 0; round < DISABLE_ROUNDS; round++) {
		gic_enable(0, SPI_A);
		uint32_t intid = gic_wait_acknowledge(GROUP1);

		EXPECT_EQ(intid, SPI_A);
		gic_end(GROUP1, SPI_A);
		gic_disable(0, SPI_A);
		for (unsigned i = 0; i < 20; i++) {
			EXPECT_EQ(gic_acknowledge(GROUP1), INTID_SPURIOUS);
			cpu_relax();
		}
	}
}

static void disabled_interrupt_is_never_acknowledged(void)
{
	gic_setup(0, SPI_A, EDGE, DEFAULT_PRIORITY);
	storm_stop = false;
	smp_start(1, storm_until_stopped, SPI_A);
	disable_and_enable_in_a_storm();
	storm_stop = true;
	if (!smp_wait(1))
		tap_bail_out("a CPU does not answer");
}

/* ---- Raised by messages ------------------------------------------------------- */

static void set_spi_comes_once(void)
{
	SKIP_UNLESS(gic_has_message_spis(), "no message-based SPIs");
	gic_setup(0, SPI_A, EDGE, DEFAULT_PRIORITY);
	for (unsigned i = 0; i < 3; i++) {
		gicd_write(GICD_SETSPI_NSR, SPI_A);
		EXPECT(gic_is_pending(0, SPI_A));
		EXPECT_PASS(expect_acknowledged_once(SPI_A));
		EXPECT(!gic_is_pending(0, SPI_A));
	}
}

static void clear_spi_takes_the_message_back(void)
{
	SKIP_UNLESS(gic_has_message_spis(), "no message-based SPIs");
	for (enum trigger trigger = LEVEL; trigger <= EDGE; trigger++) {
		gic_setup(0, SPI_A, trigger, DEFAULT_PRIORITY);
		gicd_write(GICD_SETSPI_NSR, SPI_A);
		EXPECT(gic_is_pending(0, SPI_A));
		gicd_write(GICD_CLRSPI_NSR, SPI_A);
		EXPECT(!gic_is_pending(0, SPI_A));
		EXPECT_EQ(gic_acknowledge(GROUP1), INTID_SPURIOUS);
	}
}

/* To a level-sensitive SPI the two registers are a line: it stays high through the acknowledge. */
static void level_message_stays_until_it_is_cleared(void)
{
	SKIP_UNLESS(gic_has_message_spis(), "no message-based SPIs");
	gic_setup(0, SPI_A, LEVEL, DEFAULT_PRIORITY);
	gicd_write(GICD_SETSPI_NSR, SPI_A);
	for (unsigned i = 0; i < 2; i++) {
		EXPECT_EQ(gic_wait_acknowledge(GROUP1), SPI_A);
		EXPECT(gic_is_pending(0, SPI_A));
		EXPECT_EQ(gic_acknowledge(GROUP1), INTID_SPURIOUS);
		gic_end(GROUP1, SPI_A);
	}
	gicd_write(GICD_CLRSPI_NSR, SPI_A);
	EXPECT(!gic_is_pending(0, SPI_A));
	EXPECT_EQ(gic_acknowledge(GROUP1), INTID_SPURIOUS);
}

static void messages_for_other_intids_are_ignored(void)
{
	SKIP_UNLESS(gic_has_message_spis(), "no message-based SPIs");
	for (uint32_t intid = 0; intid < 32; intid++) {
		gicd_write(GICD_SETSPI_NSR, intid);
		EXPECT(!gic_is_pending(0, intid));
	}
	for (uint32_t intid = gic_num_intids(); intid <= INTID_SPURIOUS; intid++)
		gicd_write(GICD_SETSPI_NSR, intid);
	for (uint32_t intid = 32; intid < gic_num_intids(); intid += 32)
		EXPECT_EQ(mmio_read32(gic_register_of(0, intid, GICD_ISPENDR)), 0);
}

/* ---- Raised by the PL011: a level-sensitive line -------------------------------- */

/* Afterwards the transmit interrupt is raised in the device, but masked there. */
static void make_uart_interrupt(void)
{
	uart_put_string("# the PL011 transmits\n");
	EXPECT(WAIT_FOR(uart_tx_interrupt_is_raised()));
	EXPECT(!gic_is_pending(0, UART_INTID));
}

static void mask_uart(uint32_t intid)
{
	(void)intid;
	uart_mask_tx_interrupt(true);
}

static void uart_line_interrupts_until_the_device_is_quiet(void)
{
	EXPECT_PASS(make_uart_interrupt());
	gic_setup(0, UART_INTID, LEVEL, DEFAULT_PRIORITY);
	set_interrupt_handler(UART_INTID, mask_uart);
	unmask_all();
	uart_mask_tx_interrupt(false);
	EXPECT(WAIT_FOR(cpus[0].handled[UART_INTID] == 1));
	smp_settle();
	EXPECT_EQ(cpus[0].handled[UART_INTID], 1);
	EXPECT(!gic_is_pending(0, UART_INTID));
}

static void uart_line_stays_pending_through_end_of_interrupt(void)
{
	EXPECT_PASS(make_uart_interrupt());
	gic_setup(0, UART_INTID, LEVEL, DEFAULT_PRIORITY);
	uart_mask_tx_interrupt(false);
	for (unsigned i = 0; i < 3; i++) {
		EXPECT_EQ(gic_wait_acknowledge(GROUP1), UART_INTID);
		EXPECT(gic_is_pending(0, UART_INTID));
		EXPECT_EQ(gic_acknowledge(GROUP1), INTID_SPURIOUS);
		gic_end(GROUP1, UART_INTID);
	}
	uart_mask_tx_interrupt(true);
	EXPECT(WAIT_FOR(!gic_is_pending(0, UART_INTID)));
	EXPECT_EQ(gic_acknowledge(GROUP1), INTID_SPURIOUS);
}

static void uart_interrupts_the_cpu_that_it_is_routed_to(void)
{
	set_interrupt_handler(UART_INTID, mask_uart);
	smp_unmask_all();
	for (unsigned i = 0; i < num_cpus; i++) {
		uint32_t before = handled_by_all(UART_INTID);

		EXPECT_PASS(make_uart_interrupt());
		gic_setup(i, UART_INTID, LEVEL, DEFAULT_PRIORITY);
		uart_mask_tx_interrupt(false);
		EXPECT(WAIT_FOR(cpus[i].handled[UART_INTID] == 1));
		smp_settle();
		EXPECT_EQ(handled_by_all(UART_INTID), before + 1);
	}
}

/* ---- Raised by the test device ----------------------------------------------------- */

static void edge_is_latched_when_the_line_falls(void)
{
	SKIP_UNLESS(testdev_is_present(), "no test device");
	gic_setup(0, SPI_A, EDGE, DEFAULT_PRIORITY);
	testdev_set_line(SPI_A, true);
	testdev_set_line(SPI_A, false);
	EXPECT(gic_is_pending(0, SPI_A));
	EXPECT_PASS(expect_acknowledged_once(SPI_A));
}

static void high_edge_line_interrupts_once(void)
{
	SKIP_UNLESS(testdev_is_present(), "no test device");
	gic_setup(0, SPI_A, EDGE, DEFAULT_PRIORITY);
	testdev_set_line(SPI_A, true);
	EXPECT_PASS(expect_acknowledged_once(SPI_A));
	EXPECT(!gic_is_pending(0, SPI_A));
	testdev_set_line(SPI_A, false);
	EXPECT(!gic_is_pending(0, SPI_A));
}

static void edge_while_active_comes_after_the_end(void)
{
	SKIP_UNLESS(testdev_is_present(), "no test device");
	gic_setup(0, SPI_A, EDGE, DEFAULT_PRIORITY);
	testdev_pulse(SPI_A);
	EXPECT_EQ(gic_wait_acknowledge(GROUP1), SPI_A);
	testdev_pulse(SPI_A);
	testdev_pulse(SPI_A);
	EXPECT(gic_is_active(0, SPI_A));
	EXPECT(gic_is_pending(0, SPI_A));
	EXPECT_EQ(gic_acknowledge(GROUP1), INTID_SPURIOUS);
	gic_end(GROUP1, SPI_A);
	EXPECT_PASS(expect_acknowledged_once(SPI_A));
}

static void pulse_on_a_level_interrupt_is_not_latched(void)
{
	SKIP_UNLESS(testdev_is_present(), "no test device");
	gic_setup(0, SPI_A, LEVEL, DEFAULT_PRIORITY);
	testdev_pulse(SPI_A);
	EXPECT(!gic_is_pending(0, SPI_A));
	EXPECT_EQ(gic_acknowledge(GROUP1), INTID_SPURIOUS);
}

static void level_line_that_falls_is_retracted(void)
{
	SKIP_UNLESS(testdev_is_present(), "no test device");
	gic_setup(0, SPI_A, LEVEL, DEFAULT_PRIORITY);
	testdev_set_line(SPI_A, true);
	EXPECT(gic_is_pending(0, SPI_A));
	EXPECT_EQ(gic_highest_pending(GROUP1), SPI_A);
	testdev_set_line(SPI_A, false);
	EXPECT(!gic_is_pending(0, SPI_A));
	EXPECT_EQ(gic_acknowledge(GROUP1), INTID_SPURIOUS);
}

static void clear_pending_does_not_lower_a_high_level(void)
{
	SKIP_UNLESS(testdev_is_present(), "no test device");
	gic_setup(0, SPI_A, LEVEL, DEFAULT_PRIORITY);
	testdev_set_line(SPI_A, true);
	gic_clear_pending(0, SPI_A);
	EXPECT(gic_is_pending(0, SPI_A));
	EXPECT_EQ(gic_wait_acknowledge(GROUP1), SPI_A);
	testdev_set_line(SPI_A, false);
	gic_end(GROUP1, SPI_A);
	EXPECT_EQ(gic_acknowledge(GROUP1), INTID_SPURIOUS);
}

/* The latch of GICD_ISPENDR is beside the line: it survives the line, and the acknowledge clears it alone. */
static void latch_of_a_level_interrupt_is_beside_its_line(void)
{
	SKIP_UNLESS(testdev_is_present(), "no test device");
	gic_setup(0, SPI_A, LEVEL, DEFAULT_PRIORITY);
	testdev_set_line(SPI_A, true);
	gic_set_pending(0, SPI_A);
	testdev_set_line(SPI_A, false);
	EXPECT(gic_is_pending(0, SPI_A));
	EXPECT_PASS(expect_acknowledged_once(SPI_A));
	EXPECT(!gic_is_pending(0, SPI_A));

	testdev_set_line(SPI_A, true);
	gic_set_pending(0, SPI_A);
	EXPECT_EQ(gic_wait_acknowledge(GROUP1), SPI_A);
	EXPECT(gic_is_pending(0, SPI_A));
	testdev_set_line(SPI_A, false);
	EXPECT(!gic_is_pending(0, SPI_A));
	gic_end(GROUP1, SPI_A);
	EXPECT_EQ(gic_acknowledge(GROUP1), INTID_SPURIOUS);
}

static void line_that_was_high_before_the_enable_is_seen(void)
{
	SKIP_UNLESS(testdev_is_present(), "no test device");
	testdev_set_line(SPI_A, true);
	EXPECT_EQ(gic_acknowledge(GROUP1), INTID_SPURIOUS);
	gic_setup(0, SPI_A, LEVEL, DEFAULT_PRIORITY);
	EXPECT_EQ(gic_wait_acknowledge(GROUP1), SPI_A);
	testdev_set_line(SPI_A, false);
	gic_end(GROUP1, SPI_A);
	EXPECT_EQ(gic_acknowledge(GROUP1), INTID_SPURIOUS);
}

/* The PL011 and the test device on one line: it is high while either of them drives it. */
static void shared_line_is_high_while_any_source_is(void)
{
	SKIP_UNLESS(testdev_is_present(), "no test device");
	EXPECT_PASS(make_uart_interrupt());
	gic_setup(0, UART_INTID, LEVEL, DEFAULT_PRIORITY);
	uart_mask_tx_interrupt(false);
	testdev_set_line(UART_INTID, true);
	EXPECT(gic_is_pending(0, UART_INTID));
	uart_mask_tx_interrupt(true);
	EXPECT(gic_is_pending(0, UART_INTID));
	uart_mask_tx_interrupt(false);
	testdev_set_line(UART_INTID, false);
	EXPECT(gic_is_pending(0, UART_INTID));
	uart_mask_tx_interrupt(true);
	EXPECT(!gic_is_pending(0, UART_INTID));
	EXPECT_EQ(gic_acknowledge(GROUP1), INTID_SPURIOUS);
}

const struct test tests[] = {
	TEST(set_pending_edge_comes_once, 1),
	TEST(set_pending_level_comes_once, 1),
	TEST(clear_pending_takes_the_interrupt_back, 1),
	TEST(every_spi_can_be_delivered, 1),
	TEST(all_spis_pending_at_once_are_all_delivered, 1),
	TEST(disabled_spi_waits_until_it_is_enabled, 1),
	TEST(disable_keeps_the_interrupt_pending, 1),
	TEST(disabled_interrupt_is_never_acknowledged, 2),
	TEST(set_spi_comes_once, 1),
	TEST(clear_spi_takes_the_message_back, 1),
	TEST(level_message_stays_until_it_is_cleared, 1),
	TEST(messages_for_other_intids_are_ignored, 1),
	TEST(uart_line_interrupts_until_the_device_is_quiet, 1),
	TEST(uart_line_stays_pending_through_end_of_interrupt, 1),
	TEST(uart_interrupts_the_cpu_that_it_is_routed_to, 1),
	TEST(edge_is_latched_when_the_line_falls, 1),
	TEST(high_edge_line_interrupts_once, 1),
	TEST(edge_while_active_comes_after_the_end, 1),
	TEST(pulse_on_a_level_interrupt_is_not_latched, 1),
	TEST(level_line_that_falls_is_retracted, 1),
	TEST(clear_pending_does_not_lower_a_high_level, 1),
	TEST(latch_of_a_level_interrupt_is_beside_its_line, 1),
	TEST(line_that_was_high_before_the_enable_is_seen, 1),
	TEST(shared_line_is_high_while_any_source_is, 1),
};
const unsigned num_tests = ARRAY_SIZE(tests);
