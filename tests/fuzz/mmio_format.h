/* SPDX-License-Identifier: MIT */
/*
 * The input of the target "mmio": what its bytes mean, for the target (mmio.c),
 * which reads it, and for the program that makes seeds (seeds.c), which writes it.
 *
 * A configuration of four bytes, then operations. An operation starts with a byte:
 * its kind in the low five bits, the vCPU above, and a flag in the highest bit.
 * What follows depends on the kind; a number is a tag, of which most are numbers
 * that matter by themselves, and some say how many bytes follow.
 */
#ifndef TESTS_FUZZ_MMIO_FORMAT_H
#define TESTS_FUZZ_MMIO_FORMAT_H

#include <gic_arch.h>
#include <stdint.h>
#include <vgic/vgic.h>

#include "fuzz.h"

#define MMIO_KINDS     32u
#define MMIO_KIND(op)  ((op) & (MMIO_KINDS - 1))
#define MMIO_VCPU(op)  ((op) >> 5 & 3u)
#define MMIO_FLAG      0x80u
#define MMIO_MAX_VCPUS 4u
#define MMIO_DIST_FLAG MMIO_FLAG /* of the register accesses: the distributor's frame */

enum mmio_kind {
	MMIO_WRITE_BANK, /* bank, INTID, number: the register of an interrupt */
	MMIO_READ_BANK,  /* bank, INTID */
	MMIO_WRITE,      /* width, offset, number */
	MMIO_READ,       /* width, offset */
	MMIO_WRITE_AT,   /* width, address, number */
	MMIO_READ_AT,    /* width, address */
	MMIO_ICC_WRITE,  /* register, number */
	MMIO_ICC_READ,   /* register */
	MMIO_ACK,        /* IAR of the group that is signalled; with the flag, of the other one */
	MMIO_END,        /* EOIR of what this vCPU has acknowledged last */
	MMIO_DEACTIVATE, /* DIR of what it has ended last */
	MMIO_SPI,        /* source, INTID; the flag is the level */
	MMIO_PPI,        /* source, INTID; the flag is the level */
	MMIO_PULSE,      /* INTID */
	MMIO_ONLINE,     /* the flag: online */
	MMIO_VCPU_RESET,
	MMIO_RESET,
	MMIO_MOVE,
	MMIO_COMPARE,
	MMIO_SGI,        /* group and INTID, targets */
	MMIO_OPEN,       /* all of what lets interrupts through to this vCPU */
	MMIO_SET_UP,     /* INTID, priority: enabled, and an SPI routed here; the flag is the group */
	MMIO_SET_UP_ANY, /* the same for a 1-of-N SPI */
	MMIO_SLEEP,      /* GICR_WAKER; the flag: ProcessorSleep */
	MMIO_DPG,        /* a byte: GICR_CTLR.DPG* */
	MMIO_NUM_KINDS,
};

/* Registers that every interrupt has: the distributor's offset, and how many bits each interrupt has. */
static const struct mmio_bank {
	uint16_t offset;
	uint8_t bits;
	uint8_t width; /* of an access */
} mmio_banks[] = {
	{ GICD_IGROUPR, 1, 4 },    { GICD_ISENABLER, 1, 4 },  { GICD_ICENABLER, 1, 4 }, { GICD_ISPENDR, 1, 4 },
	{ GICD_ICPENDR, 1, 4 },    { GICD_ISACTIVER, 1, 4 },  { GICD_ICACTIVER, 1, 4 }, { GICD_ICFGR, 2, 4 },
	{ GICD_IPRIORITYR, 8, 1 }, { GICD_IPRIORITYR, 8, 4 }, { GICD_IROUTER, 64, 8 },  { GICD_IROUTER, 64, 4 },
	{ GICD_IGRPMODR, 1, 4 },   { GICD_NSACR, 2, 4 },      { GICD_ITARGETSR, 8, 1 },
};

#define MMIO_NUM_BANKS (sizeof(mmio_banks) / sizeof(mmio_banks[0]))

static const uint32_t mmio_icc_regs[] = {
	VGIC_ICC_PMR_EL1,     VGIC_ICC_BPR0_EL1,  VGIC_ICC_BPR1_EL1,  VGIC_ICC_CTLR_EL1,   VGIC_ICC_IGRPEN0_EL1,
	VGIC_ICC_IGRPEN1_EL1, VGIC_ICC_AP0R0_EL1, VGIC_ICC_AP1R0_EL1, VGIC_ICC_RPR_EL1,    VGIC_ICC_HPPIR0_EL1,
	VGIC_ICC_HPPIR1_EL1,  VGIC_ICC_IAR0_EL1,  VGIC_ICC_IAR1_EL1,  VGIC_ICC_EOIR0_EL1,  VGIC_ICC_EOIR1_EL1,
	VGIC_ICC_DIR_EL1,     VGIC_ICC_SGI1R_EL1, VGIC_ICC_SGI0R_EL1, VGIC_ICC_ASGI1R_EL1, VGIC_ICC_SRE_EL1,
};

#define MMIO_NUM_ICC_REGS (sizeof(mmio_icc_regs) / sizeof(mmio_icc_regs[0]))

/* ---- The configuration ---- */

static const uint32_t mmio_num_spis[] = { 32, 64, 96, VGIC_MAX_SPIS };

#define MMIO_MIRROR 0x8000u /* the VMM keeps the lines of each vCPU by line_changed() */

/* Byte 0: profile, vCPUs, SPIs, KVM's revision. Byte 1 and 2: features, and MMIO_MIRROR. */
static inline uint8_t mmio_config_byte(bool kvm, uint32_t num_vcpus, uint32_t spis_index, uint32_t revision)
{
	return (uint8_t)(kvm | (num_vcpus - 1) << 1 | spis_index << 3 | (revision - 1) << 5);
}

/* ---- Numbers ---- */

/*
 * Tags: 0x00 to 0x3f are these numbers, 0x40 to 0x7f one bit, 0x80 to 0x87 a number of so many bytes plus one, 0x88 to
 * 0x8b the affinity of a vCPU, 0x8c IRM, 0x90 all ones of 32 bits, 0x91 of 64, 0xa0 to 0xbf a byte that is a priority,
 * 0xc0 to 0xdf the same in each of four bytes; the others are INTIDs at the end of what there is.
 */
#define NUMBER_BIT      0x40u
#define NUMBER_BYTES    0x80u
#define NUMBER_AFFINITY 0x88u
#define NUMBER_IRM      0x8cu
#define NUMBER_ONES32   0x90u
#define NUMBER_ONES64   0x91u
#define NUMBER_PRIORITY 0xa0u
#define NUMBER_FOUR     0xc0u
#define NUMBER_EDGES    0xe0u

#endif /* TESTS_FUZZ_MMIO_FORMAT_H */
