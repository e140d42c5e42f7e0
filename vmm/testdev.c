/* SPDX-License-Identifier: MIT */
/* The test device: see testdev.h for what its registers do. */
#include "testdev.h"

#include "gic.h"
#include "machine.h"
#include "snapshot_file.h"

#define SPI_MASK   0x3ffu
#define PPI_MASK   0x1fu
#define VCPU_SHIFT 16
#define VCPU_MASK  0x3ffu

static void note_level(uint32_t *word, uint32_t bit, bool level)
{
	*word = level ? *word | 1u << bit : *word & ~(1u << bit);
}

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
		note_level(&machine->testdev.spis[(v & SPI_MASK) / 32], v % 32, level);
		gic_set_spi(machine, v & SPI_MASK, TESTDEV_SOURCE, level);
		break;
	case TESTDEV_PULSE:
		gic_pulse_spi(machine, v & SPI_MASK);
		break;
	case TESTDEV_PPI:
		if (vcpu >= machine->num_vcpus)
			break;
		note_level(&machine->testdev.ppis[vcpu], v & PPI_MASK, level);
		gic_set_ppi(&machine->vcpus[vcpu], v & PPI_MASK, TESTDEV_SOURCE, level);
		break;
	case TESTDEV_DEVID:
		machine->testdev.devid = v;
		break;
	case TESTDEV_MSI:
		gic_signal_msi(machine, machine->testdev.devid, v);
		break;
	default:
		break;
	}
}

void testdev_save(const struct testdev *testdev, unsigned num_vcpus, struct snapshot_out *out)
{
	put_u32(out, testdev->devid);
	for (unsigned i = 0; i < TESTDEV_SPI_WORDS; i++)
		put_u32(out, testdev->spis[i]);
	for (unsigned i = 0; i < num_vcpus; i++)
		put_u32(out, testdev->ppis[i]);
}

void testdev_load(struct testdev *testdev, unsigned num_vcpus, struct snapshot_in *in)
{
	testdev->devid = get_u32(in);
	for (unsigned i = 0; i < TESTDEV_SPI_WORDS; i++)
		testdev->spis[i] = get_u32(in);
	for (unsigned i = 0; i < num_vcpus; i++)
		testdev->ppis[i] = get_u32(in);
}
