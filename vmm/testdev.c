/* SPDX-License-Identifier: MIT */
/* The test device: see testdev.h for what its registers do. */
#include "testdev.h"

#include "gic.h"
#include "machine.h"

#define SPI_MASK   0x3ffu
#define PPI_MASK   0x1fu
#define VCPU_SHIFT 16
#define VCPU_MASK  0x3ffu

uint64_t testdev_read(void *machine, uint64_t offset, unsigned width)
{
	(void)machine;
	(void)width;
	return offset == TESTDEV_ID ? TESTDEV_MAGIC : 0;
}

void testdev_write(void *owner, uint64_t offset, unsigned width, uint64_t value)
{
	struct machine *machine = owner;
	const uint32_t v = (uint32_t)value;
	const bool level = v & TESTDEV_LEVEL;
	const unsigned vcpu = (v >> VCPU_SHIFT) & VCPU_MASK;

	(void)width;
	switch (offset) {
	case TESTDEV_SPI:
		gic_set_spi(machine, v & SPI_MASK, TESTDEV_SOURCE, level);
		break;
	case TESTDEV_PULSE:
		gic_pulse_spi(machine, v & SPI_MASK);
		break;
	case TESTDEV_PPI:
		if (vcpu < machine->num_vcpus)
			gic_set_ppi(&machine->vcpus[vcpu], v & PPI_MASK, TESTDEV_SOURCE, level);
		break;
	case TESTDEV_DEVID:
		machine->testdev_devid = v;
		break;
	case TESTDEV_MSI:
		gic_signal_msi(machine, machine->testdev_devid, v);
		break;
	default:
		break;
	}
}
