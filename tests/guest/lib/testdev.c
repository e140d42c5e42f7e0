/* SPDX-License-Identifier: MIT */
/* The test device, with a note of the lines that are high. Only the boot CPU drives lines. */
#include "testdev.h"

#include "tap.h"

#define TESTDEV_LINE  0x0u /* INTID, level in bit 31 */
#define TESTDEV_PULSE 0x4u /* INTID */

#define MAX_HIGH_LINES 8u

static uint32_t high_lines[MAX_HIGH_LINES];
static unsigned num_high_lines;

bool testdev_is_present(void)
{
	return machine.has_test_device;
}

static void write_line(uint32_t intid, bool level)
{
	mmio_write32(machine.test_device_base + TESTDEV_LINE, intid | (uint32_t)level << 31);
	dsb();
}

void testdev_set_line(uint32_t intid, bool level)
{
	if (level && num_high_lines == MAX_HIGH_LINES)
		tap_bail_out("too many high lines");
	if (level)
		high_lines[num_high_lines++] = intid;
	write_line(intid, level);
}

void testdev_pulse(uint32_t intid)
{
	mmio_write32(machine.test_device_base + TESTDEV_PULSE, intid);
	dsb();
}

void testdev_lower_all(void)
{
	while (num_high_lines)
		write_line(high_lines[--num_high_lines], false);
}
