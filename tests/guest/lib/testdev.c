/* SPDX-License-Identifier: MIT */
/* The test device, with a note of the lines that are high. Only the boot CPU drives lines. */
#include "testdev.h"

#include "tap.h"

#define TESTDEV_SPI   0x0u /* INTID, level in bit 31 */
#define TESTDEV_PULSE 0x4u /* INTID */
#define TESTDEV_PPI   0x8u /* INTID, CPU as numbered by the device tree in bits 25:16, level in bit 31 */

#define TESTDEV_DEVID 0x10u /* the DeviceID of the MSIs that follow */
#define TESTDEV_MSI   0x14u /* EventID */

#define MAX_HIGH_LINES 8u

/* What to write to which register to lower a line again. */
struct high_line {
	uint32_t offset;
	uint32_t value;
};

static struct high_line high_lines[MAX_HIGH_LINES];
static unsigned num_high_lines;

bool testdev_is_present(void)
{
	return machine.has_test_device;
}

static void write_register(uint32_t offset, uint32_t value)
{
	mmio_write32(machine.test_device_base + offset, value);
	dsb();
}

static void drive_line(uint32_t offset, uint32_t value, bool level)
{
	if (level && num_high_lines == MAX_HIGH_LINES)
		tap_bail_out("too many high lines");
	if (level)
		high_lines[num_high_lines++] = (struct high_line){ offset, value };
	write_register(offset, value | (uint32_t)level << 31);
}

void testdev_set_line(uint32_t spi, bool level)
{
	drive_line(TESTDEV_SPI, spi, level);
}

void testdev_pulse(uint32_t spi)
{
	write_register(TESTDEV_PULSE, spi);
}

void testdev_set_ppi_line(unsigned cpu, uint32_t ppi, bool level)
{
	unsigned place = 0;

	while (machine.cpu_mpidr[place] != cpus[cpu].mpidr)
		place++;
	drive_line(TESTDEV_PPI, ppi | place << 16, level);
}

void testdev_send_msi(uint32_t device, uint32_t event)
{
	write_register(TESTDEV_DEVID, device);
	write_register(TESTDEV_MSI, event);
}

void testdev_lower_all(void)
{
	while (num_high_lines) {
		num_high_lines--;
		write_register(high_lines[num_high_lines].offset, high_lines[num_high_lines].value);
	}
}
