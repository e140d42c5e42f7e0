/* SPDX-License-Identifier: MIT */
/*
 * The test device: a guest raises and lowers interrupt lines with it, as a device
 * would. One page at TESTDEV_BASE; 32-bit registers, to be written as words:
 *
 *   offset  name             access  what it does
 *   0x0     TESTDEV_SPI      W       drive the line of SPI bits[9:0] to the level in bit 31
 *   0x4     TESTDEV_PULSE    W       one edge on the line of SPI bits[9:0]
 *   0x8     TESTDEV_PPI      W       drive the line of PPI bits[4:0] of vCPU bits[25:16] to the level in bit 31
 *   0xc     TESTDEV_ID       R       TESTDEV_MAGIC
 *   0x10    TESTDEV_DEVID    W       the DeviceID of the MSIs that follow
 *   0x14    TESTDEV_MSI      W       an MSI of that DeviceID; the value is the EventID
 *
 * Lines are driven on source TESTDEV_SOURCE, beside the line's own device. An
 * INTID or vCPU that does not exist is ignored. bits[25:16] are the vCPU's place
 * in the order of the device tree. In the device tree: compatible "vgic,testdev".
 */
#ifndef VMM_TESTDEV_H
#define VMM_TESTDEV_H

#include <stdbool.h>
#include <stdint.h>

#define TESTDEV_BASE   0x0a000000ull
#define TESTDEV_SIZE   0x1000ull
#define TESTDEV_SOURCE 1u

#define TESTDEV_SPI   0x0u
#define TESTDEV_PULSE 0x4u
#define TESTDEV_PPI   0x8u
#define TESTDEV_ID    0xcu
#define TESTDEV_DEVID 0x10u
#define TESTDEV_MSI   0x14u

#define TESTDEV_LEVEL (1u << 31)
#define TESTDEV_MAGIC 0x43494756u /* "VGIC" */

struct snapshot_in;
struct snapshot_out;

#define TESTDEV_MAX_VCPUS 1024u
#define TESTDEV_SPI_WORDS 32u

/* What it has been told: the DeviceID, and the level of each line. Bits of @ppis are INTIDs. */
struct testdev {
	uint32_t devid;
	uint32_t spis[TESTDEV_SPI_WORDS];
	uint32_t ppis[TESTDEV_MAX_VCPUS];
};

/* To and from a saved machine. Loading drives no line: the controller has been saved too. */
void testdev_save(const struct testdev *testdev, unsigned num_vcpus, struct snapshot_out *out);
void testdev_load(struct testdev *testdev, unsigned num_vcpus, struct snapshot_in *in);

/* Register accesses, for cpu_map_mmio(); @machine is a struct machine. */
uint64_t testdev_read(void *machine, uint64_t offset, unsigned width);
void testdev_write(void *machine, uint64_t offset, unsigned width, uint64_t value);

#endif /* VMM_TESTDEV_H */
