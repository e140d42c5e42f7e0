/* SPDX-License-Identifier: MIT */
/*
 * The state of a controller register by register: the groups, encodings, meanings
 * and errors of KVM's device attributes.
 */
#include <errno.h>
#include <stdlib.h>
#include <vgic/state.h>

#include "its_guest.h"

#define AFFINITY(v) (m->vcpus[v].affinity)

static uint64_t get(struct machine *m, uint32_t group, uint64_t attr)
{
	uint64_t value = ~0ull;

	assert_int_equal(vgic_attr_get(m->vgic, group, attr, &value), 0);
	return value;
}

static void set(struct machine *m, uint32_t group, uint64_t attr, uint64_t value)
{
	assert_int_equal(vgic_attr_set(m->vgic, group, attr, value), 0);
}

static uint64_t dist_get(struct machine *m, uint32_t offset)
{
	return get(m, VGIC_GRP_DIST_REGS, VGIC_ATTR_DIST(offset));
}

static void dist_set(struct machine *m, uint32_t offset, uint32_t value)
{
	set(m, VGIC_GRP_DIST_REGS, VGIC_ATTR_DIST(offset), value);
}

static uint64_t redist_get(struct machine *m, uint32_t v, uint32_t offset)
{
	return get(m, VGIC_GRP_REDIST_REGS, VGIC_ATTR_REDIST(AFFINITY(v), offset));
}

static void redist_set(struct machine *m, uint32_t v, uint32_t offset, uint32_t value)
{
	set(m, VGIC_GRP_REDIST_REGS, VGIC_ATTR_REDIST(AFFINITY(v), offset), value);
}

/* An access of any group fails, both ways, with the same error, and changes nothing. */
static void expect_error(struct machine *m, uint32_t group, uint64_t attr, int err)
{
	uint64_t value = 0x1234567890abcdefull;

	assert_int_equal(vgic_attr_get(m->vgic, group, attr, &value), err);
	assert_int_equal(value, 0x1234567890abcdefull);
	assert_int_equal(vgic_attr_set(m->vgic, group, attr, 0), err);
}

/* ---- Registers ---------------------------------------------------------------------------- */

static void numbers_are_those_of_kvm(void **state)
{
	(void)state;
	assert_int_equal(VGIC_GRP_ADDR, 0);
	assert_int_equal(VGIC_GRP_DIST_REGS, 1);
	assert_int_equal(VGIC_GRP_NR_IRQS, 3);
	assert_int_equal(VGIC_GRP_CTRL, 4);
	assert_int_equal(VGIC_GRP_REDIST_REGS, 5);
	assert_int_equal(VGIC_GRP_CPU_SYSREGS, 6);
	assert_int_equal(VGIC_GRP_LEVEL_INFO, 7);
	assert_int_equal(VGIC_GRP_ITS_REGS, 8);
	assert_int_equal(VGIC_ATTR_REDIST(0x0400030201ull, 0x10080), 0x0403020100010080ull);
	assert_int_equal(VGIC_ATTR_SYSREG(0, VGIC_ICC_PMR_EL1), 0xc230);
	assert_int_equal(VGIC_REDIST_REGION(4095, 0x8080000, 7), 0xfff0000008080007ull);
}

static void the_latch_is_seen_without_the_line(void **state)
{
	struct machine *m = machine_open(2);

	(void)state;
	assert_int_equal(vgic_set_spi(m->vgic, 40, 3, true), 0);
	assert_int_equal(vgic_set_ppi(vcpu_of(m, 1), 20, 3, true), 0);
	assert_true(irq_is_pending(m, 0, 40));
	assert_int_equal(dist_get(m, GICD_ISPENDR + 4), 0);
	assert_int_equal(redist_get(m, 1, GICR_ISPENDR0), 0);
	irq_write_bit(m, 0, GICD_ISPENDR, 40);
	irq_write_bit(m, 1, GICD_ISPENDR, 20);
	assert_int_equal(dist_get(m, GICD_ISPENDR + 4), 1u << (40 - 32));
	assert_int_equal(redist_get(m, 1, GICR_ISPENDR0), 1u << 20);
	machine_stop(m);
}

/* Every bit counts, set and clear, for level-sensitive interrupts too, and before they are configured. */
static void ispendr_sets_the_latch_to_what_is_written(void **state)
{
	struct machine *m = machine_open(2);

	(void)state;
	dist_set(m, GICD_ISPENDR + 4, 0xf0f00000);
	redist_set(m, 0, GICR_ISPENDR0, 0x00ff00ff);
	dist_set(m, GICD_ISPENDR + 4, 0x00f00001);
	redist_set(m, 0, GICR_ISPENDR0, 0x10000001);
	assert_int_equal(dist_get(m, GICD_ISPENDR + 4), 0x00f00001);
	assert_int_equal(redist_get(m, 0, GICR_ISPENDR0), 0x10000001);
	assert_int_equal(redist_get(m, 1, GICR_ISPENDR0), 0);
	irq_set_up(m, 0, 32, 1, 0x80);
	assert_int_equal(lines_of(m, 0), VGIC_LINE_IRQ);
	assert_int_equal(ack1(m, 0), 32);
	machine_stop(m);
}

static void icpendr_reads_as_zero_and_ignores_writes(void **state)
{
	struct machine *m = machine_open(1);

	(void)state;
	dist_set(m, GICD_ISPENDR + 4, 0xffffffff);
	redist_set(m, 0, GICR_ISPENDR0, 0xffffffff);
	assert_int_equal(dist_get(m, GICD_ICPENDR + 4), 0);
	assert_int_equal(redist_get(m, 0, GICR_ICPENDR0), 0);
	dist_set(m, GICD_ICPENDR + 4, 0xffffffff);
	redist_set(m, 0, GICR_ICPENDR0, 0xffffffff);
	assert_int_equal(dist_get(m, GICD_ISPENDR + 4), 0xffffffff);
	assert_int_equal(redist_get(m, 0, GICR_ISPENDR0), 0xffffffff);
	machine_stop(m);
}

static void icactiver_makes_no_device_call_back(void **state)
{
	struct machine *m = machine_open(1);

	(void)state;
	dist_set(m, GICD_ISACTIVER + 4, 0xff);
	redist_set(m, 0, GICR_ISACTIVER0, 0xff0000);
	dist_set(m, GICD_ICACTIVER + 4, 0x0f);
	redist_set(m, 0, GICR_ICACTIVER0, 0x0f0000);
	assert_int_equal(dist_get(m, GICD_ISACTIVER + 4), 0xf0);
	assert_int_equal(dist_get(m, GICD_ICACTIVER + 4), 0xf0);
	assert_int_equal(redist_get(m, 0, GICR_ISACTIVER0), 0xf00000);
	assert_int_equal(m->num_deactivated, 0);
	irq_write_bit(m, 0, GICD_ICACTIVER, 36);
	assert_int_equal(m->num_deactivated, 1);
	machine_stop(m);
}

static void statusr_takes_the_value(void **state)
{
	struct machine *m = machine_native(2);

	(void)state;
	dist_set(m, GICD_STATUSR, 0xffffffff);
	redist_set(m, 1, GICR_STATUSR, 5);
	assert_int_equal(dist_get(m, GICD_STATUSR), 0xf);
	assert_int_equal(dist_read(m, GICD_STATUSR), 0xf);
	assert_int_equal(redist_read(m, 0, GICR_STATUSR), 0);
	assert_int_equal(redist_read(m, 1, GICR_STATUSR), 5);
	dist_set(m, GICD_STATUSR, 2);
	assert_int_equal(dist_read(m, GICD_STATUSR), 2);
	machine_stop(m);
	m = machine_start(machine_describe(VGIC_PROFILE_KVM, 1));
	dist_set(m, GICD_STATUSR, 0xf);
	assert_int_equal(dist_read(m, GICD_STATUSR), 0);
	machine_stop(m);
}

static void iidr_selects_the_revision(void **state)
{
	struct machine *m = machine_start(machine_describe(VGIC_PROFILE_KVM, 1));
	const uint32_t iidr = (uint32_t)dist_get(m, GICD_IIDR);

	(void)state;
	assert_int_equal(iidr, 0x4b00343b);
	assert_int_equal(redist_read(m, 0, GICR_CTLR), GICR_CTLR_IR | GICR_CTLR_CES);
	for (uint32_t revision = 1; revision <= 3; revision++) {
		dist_set(m, GICD_IIDR, 0x4b00043b | revision << 12);
		assert_int_equal(dist_read(m, GICD_IIDR), 0x4b00043b | revision << 12);
		assert_int_equal(redist_read(m, 0, GICR_CTLR), revision == 3 ? GICR_CTLR_IR | GICR_CTLR_CES : 0);
	}
	dist_set(m, GICD_IIDR, 0x4b00243b);
	for (uint32_t revision = 0; revision < 16; revision = revision == 0 ? 4 : revision + 1)
		assert_int_equal(vgic_attr_set(m->vgic, VGIC_GRP_DIST_REGS, GICD_IIDR, 0x4b00043b | revision << 12),
				 -EINVAL);
	for (unsigned bit = 0; bit < 32; bit++) {
		if (bit < 12 || bit > 15)
			assert_int_equal(vgic_attr_set(m->vgic, VGIC_GRP_DIST_REGS, GICD_IIDR, iidr ^ 1u << bit),
					 -EINVAL);
	}
	assert_int_equal(dist_read(m, GICD_IIDR), 0x4b00243b);
	machine_stop(m);
}

static void native_iidr_can_only_be_confirmed(void **state)
{
	struct machine *m = machine_native(1);
	const uint32_t iidr = (uint32_t)dist_get(m, GICD_IIDR);

	(void)state;
	dist_set(m, GICD_IIDR, iidr);
	for (unsigned bit = 0; bit < 32; bit++)
		assert_int_equal(vgic_attr_set(m->vgic, VGIC_GRP_DIST_REGS, GICD_IIDR, iidr ^ 1u << bit), -EINVAL);
	machine_stop(m);
}

/* Registers that say what there is ignore writes, and TYPER2 tells a VMM that there is less than it wants. */
static void read_only_registers_ignore_writes(void **state)
{
	struct machine *m = machine_native(1);
	const uint64_t typer = dist_get(m, GICD_TYPER), last = redist_get(m, 0, GICR_TYPER);

	(void)state;
	dist_set(m, GICD_TYPER, 0);
	dist_set(m, GIC_PIDR2, 0);
	redist_set(m, 0, GICR_TYPER, 0);
	redist_set(m, 0, GICR_IIDR, 0);
	assert_int_equal(dist_get(m, GICD_TYPER), typer);
	assert_int_equal(redist_get(m, 0, GICR_TYPER), last);
	dist_set(m, GICD_TYPER2, 0);
	assert_int_equal(vgic_attr_set(m->vgic, VGIC_GRP_DIST_REGS, GICD_TYPER2, 1u << 8), -EINVAL);
	assert_int_equal(errors_of_all_kinds(m), 0);
	machine_stop(m);
}

static void wide_registers_come_in_halves(void **state)
{
	struct machine *m = machine_native(2);

	(void)state;
	dist_set(m, GICD_IROUTER + 8 * 40, 0x80000001);
	dist_set(m, GICD_IROUTER + 8 * 40 + 4, 0x55);
	assert_int_equal(dist_read_width(m, GICD_IROUTER + 8 * 40, 8), 0x5580000001ull);
	assert_int_equal(dist_get(m, GICD_IROUTER + 8 * 40), 0x80000001);
	assert_int_equal(dist_get(m, GICD_IROUTER + 8 * 40 + 4), 0x55);
	assert_int_equal(redist_get(m, 1, GICR_TYPER + 4), AFFINITY(1));
	/* A route to nowhere is no error of the guest's when the VMM restores it. */
	dist_set(m, GICD_IROUTER + 8 * 40, 0x00abcdef);
	assert_int_equal(errors_of_all_kinds(m), 0);
	machine_stop(m);
}

/* What the VMM sets of the rest is what the guest then reads, and the other way round. */
static void registers_hold_what_is_set(void **state)
{
	struct machine *m = machine_native(2);

	(void)state;
	dist_set(m, GICD_CTLR, GICD_CTLR_ENABLE_GRP1 | GICD_CTLR_ENABLE_GRP0);
	dist_set(m, GICD_IGROUPR + 8, 0x12345678);
	dist_set(m, GICD_ISENABLER + 8, 0x0000ffff);
	dist_set(m, GICD_ICENABLER + 8, 0x000000ff);
	dist_set(m, GICD_IPRIORITYR + 64, 0x80604020);
	dist_set(m, GICD_ICFGR + 16, 0xaaaa0000);
	redist_set(m, 1, GICR_IGROUPR0, 0xabcdef01);
	redist_set(m, 1, GICR_ISENABLER0, 0xff);
	redist_set(m, 1, GICR_IPRIORITYR + 16, 0x08101820);
	redist_set(m, 1, GICR_ICFGR1, 0x0000aaaa);
	redist_set(m, 1, GICR_WAKER, 0);
	redist_set(m, 1, GICR_CTLR, GICR_CTLR_DPG0);
	assert_int_equal(dist_read(m, GICD_CTLR), GICD_CTLR_ARE | GICD_CTLR_DS | 3);
	assert_int_equal(dist_read(m, GICD_IGROUPR + 8), 0x12345678);
	assert_int_equal(dist_read(m, GICD_ISENABLER + 8), 0xff00);
	assert_int_equal(dist_read(m, GICD_IPRIORITYR + 64), 0x80604020);
	assert_int_equal(dist_read(m, GICD_ICFGR + 16), 0xaaaa0000);
	assert_int_equal(redist_read(m, 1, GICR_IGROUPR0), 0xabcdef01);
	assert_int_equal(redist_read(m, 1, GICR_ISENABLER0), 0xff);
	assert_int_equal(redist_read(m, 1, GICR_IPRIORITYR + 16), 0x08101820);
	assert_int_equal(redist_read(m, 1, GICR_ICFGR1), 0x0000aaaa);
	assert_int_equal(redist_read(m, 1, GICR_WAKER), 0);
	assert_int_equal(redist_read(m, 1, GICR_CTLR), GICR_CTLR_DPG0);
	assert_int_equal(redist_read(m, 0, GICR_IGROUPR0), 0);
	assert_int_equal(dist_get(m, GICD_IPRIORITYR + 64), 0x80604020);
	assert_int_equal(redist_get(m, 1, GICR_IGROUPR0), 0xabcdef01);
	machine_stop(m);
}

/* Each offset of both frames: there, or -ENXIO, the same for has, get and set; nothing is counted. */
static void sweep_frame(struct machine *m, uint32_t group, uint64_t vcpu, uint32_t size)
{
	unsigned num_there = 0;

	for (uint32_t offset = 0; offset < size; offset++) {
		const int there = vgic_attr_has(m->vgic, group, vcpu | offset);
		uint64_t value;

		assert_true(there == 0 || there == -ENXIO);
		if (offset % 4 != 0)
			assert_int_equal(there, -ENXIO);
		num_there += there == 0;
		assert_int_equal(vgic_attr_get(m->vgic, group, vcpu | offset, &value), there);
		if (there == 0)
			assert_true(value <= UINT32_MAX);
		/* What was read can be written. */
		assert_int_equal(vgic_attr_set(m->vgic, group, vcpu | offset, there ? 0 : value), there);
	}
	assert_true(num_there > 30);
	assert_int_equal(vgic_attr_has(m->vgic, group, vcpu | size), -ENXIO);
	assert_int_equal(vgic_attr_has(m->vgic, group, vcpu | 0xfffffffc), -ENXIO);
	assert_int_equal(errors_of_all_kinds(m), 0);
}

static void every_offset_is_there_or_enxio(void **state)
{
	(void)state;
	for (int profile = VGIC_PROFILE_NATIVE; profile <= VGIC_PROFILE_KVM; profile++) {
		struct machine *m = machine_start(machine_describe(profile, 2));

		sweep_frame(m, VGIC_GRP_DIST_REGS, 0, VGIC_DIST_FRAME_SIZE);
		sweep_frame(m, VGIC_GRP_REDIST_REGS, VGIC_ATTR_VCPU(AFFINITY(1)), VGIC_REDIST_FRAME_SIZE);
		/* A VMM that restores more interrupts than there are is told. 256 SPIs: up to INTID 287. */
		assert_int_equal(vgic_attr_has(m->vgic, VGIC_GRP_DIST_REGS, GICD_ISENABLER + 4 * 8), 0);
		expect_error(m, VGIC_GRP_DIST_REGS, GICD_ISENABLER + 4 * 9, -ENXIO);
		assert_int_equal(vgic_attr_has(m->vgic, VGIC_GRP_DIST_REGS, GICD_IPRIORITYR + 284), 0);
		expect_error(m, VGIC_GRP_DIST_REGS, GICD_IPRIORITYR + 288, -ENXIO);
		assert_int_equal(vgic_attr_has(m->vgic, VGIC_GRP_DIST_REGS, GICD_ICFGR + 68), 0);
		expect_error(m, VGIC_GRP_DIST_REGS, GICD_ICFGR + 72, -ENXIO);
		assert_int_equal(vgic_attr_has(m->vgic, VGIC_GRP_DIST_REGS, GICD_IROUTER + 8 * 287 + 4), 0);
		expect_error(m, VGIC_GRP_DIST_REGS, GICD_IROUTER + 8 * 288, -ENXIO);
		/* The registers of SPIs in SETSPI's place are actions, not state. */
		expect_error(m, VGIC_GRP_DIST_REGS, GICD_SETSPI_NSR, -ENXIO);
		machine_stop(m);
	}
}

/* ---- CPU interface -------------------------------------------------------------------------- */

static uint64_t icc_get(struct machine *m, uint32_t v, uint32_t reg)
{
	return get(m, VGIC_GRP_CPU_SYSREGS, VGIC_ATTR_SYSREG(AFFINITY(v), reg));
}

static int icc_try_set(struct machine *m, uint32_t v, uint32_t reg, uint64_t value)
{
	return vgic_attr_set(m->vgic, VGIC_GRP_CPU_SYSREGS, VGIC_ATTR_SYSREG(AFFINITY(v), reg), value);
}

static void icc_set(struct machine *m, uint32_t v, uint32_t reg, uint64_t value)
{
	assert_int_equal(icc_try_set(m, v, reg, value), 0);
}

static void icc_registers_hold_what_is_set(void **state)
{
	struct machine *m = machine_native(3);

	(void)state;
	icc_set(m, 1, VGIC_ICC_SRE_EL1, 7);
	icc_set(m, 1, VGIC_ICC_PMR_EL1, 0xff);
	icc_set(m, 1, VGIC_ICC_BPR0_EL1, 4);
	icc_set(m, 1, VGIC_ICC_BPR1_EL1, 5);
	icc_set(m, 1, VGIC_ICC_AP0R0_EL1, 0x10);
	icc_set(m, 1, VGIC_ICC_AP1R0_EL1, 0x80000000);
	icc_set(m, 1, VGIC_ICC_IGRPEN0_EL1, 1);
	icc_set(m, 1, VGIC_ICC_IGRPEN1_EL1, 1);
	icc_set(m, 1, VGIC_ICC_CTLR_EL1, icc_get(m, 1, VGIC_ICC_CTLR_EL1) | ICC_CTLR_CBPR | ICC_CTLR_EOIMODE);
	assert_int_equal(icc_read(m, 1, VGIC_ICC_PMR_EL1), 0xf8);
	assert_int_equal(icc_read(m, 1, VGIC_ICC_BPR0_EL1), 4);
	assert_int_equal(icc_read(m, 1, VGIC_ICC_BPR1_EL1), 5);
	assert_int_equal(icc_read(m, 1, VGIC_ICC_AP0R0_EL1), 0x10);
	assert_int_equal(icc_read(m, 1, VGIC_ICC_RPR_EL1), 4 << 3);
	assert_int_equal(icc_read(m, 1, VGIC_ICC_AP1R0_EL1), 0x80000000);
	assert_int_equal(icc_read(m, 1, VGIC_ICC_IGRPEN0_EL1), 1);
	assert_int_equal(icc_read(m, 1, VGIC_ICC_IGRPEN1_EL1), 1);
	assert_int_equal(icc_read(m, 1, VGIC_ICC_CTLR_EL1) & 3, 3);
	assert_int_equal(icc_get(m, 1, VGIC_ICC_PMR_EL1), 0xf8);
	assert_int_equal(icc_get(m, 1, VGIC_ICC_AP1R0_EL1), 0x80000000);
	assert_int_equal(icc_get(m, 2, VGIC_ICC_PMR_EL1), 0);
	machine_stop(m);
}

static void icc_ctlr_of_another_machine_is_refused(void **state)
{
	struct machine *m = machine_native(1);
	const uint64_t ctlr = icc_get(m, 0, VGIC_ICC_CTLR_EL1);

	(void)state;
	assert_int_equal(ctlr >> ICC_CTLR_PRIBITS_SHIFT & 7, 4);
	for (uint64_t bits = 0; bits < 8; bits++) {
		const uint64_t other = (ctlr & ~(7ull << ICC_CTLR_PRIBITS_SHIFT)) | bits << ICC_CTLR_PRIBITS_SHIFT;

		assert_int_equal(icc_try_set(m, 0, VGIC_ICC_CTLR_EL1, other), bits == 4 ? 0 : -EINVAL);
	}
	for (uint64_t bits = 1; bits < 8; bits++)
		assert_int_equal(icc_try_set(m, 0, VGIC_ICC_CTLR_EL1, ctlr | bits << ICC_CTLR_IDBITS_SHIFT), -EINVAL);
	assert_int_equal(icc_try_set(m, 0, VGIC_ICC_CTLR_EL1, ctlr ^ 1u << 14), -EINVAL);
	assert_int_equal(icc_try_set(m, 0, VGIC_ICC_CTLR_EL1, ctlr ^ ICC_CTLR_A3V), -EINVAL);
	assert_int_equal(icc_try_set(m, 0, VGIC_ICC_CTLR_EL1, ctlr | ICC_CTLR_CBPR), 0);
	assert_int_equal(icc_try_set(m, 0, VGIC_ICC_SRE_EL1, 6), -EINVAL);
	assert_int_equal(icc_try_set(m, 0, VGIC_ICC_SRE_EL1, 1), 0);
	assert_int_equal(icc_read(m, 0, VGIC_ICC_CTLR_EL1), ctlr | ICC_CTLR_CBPR);
	machine_stop(m);
}

/* 24-bit INTIDs show where LPIs need them; a guest that was shown 16 bits is taken. */
static void fewer_id_bits_are_accepted(void **state)
{
	struct machine *m = its_describe(1, 1);
	uint64_t ctlr;

	(void)state;
	m->config.lpi_id_bits = 17;
	machine_start(m);
	ctlr = icc_get(m, 0, VGIC_ICC_CTLR_EL1);
	assert_int_equal(ctlr >> ICC_CTLR_IDBITS_SHIFT & 7, 1);
	icc_set(m, 0, VGIC_ICC_CTLR_EL1, ctlr ^ 1u << ICC_CTLR_IDBITS_SHIFT);
	assert_int_equal(icc_try_set(m, 0, VGIC_ICC_CTLR_EL1, ctlr + (1u << ICC_CTLR_IDBITS_SHIFT)), -EINVAL);
	machine_stop(m);
}

/* All encodings: what is no state is -ENXIO; registers for more priority bits are known and refused. */
static void other_system_registers_are_enxio(void **state)
{
	static const uint32_t known[] = { VGIC_ICC_PMR_EL1,   VGIC_ICC_BPR0_EL1,    VGIC_ICC_BPR1_EL1,
					  VGIC_ICC_AP0R0_EL1, VGIC_ICC_AP1R0_EL1,   VGIC_ICC_CTLR_EL1,
					  VGIC_ICC_SRE_EL1,   VGIC_ICC_IGRPEN0_EL1, VGIC_ICC_IGRPEN1_EL1 };
	struct machine *m = machine_native(1);

	(void)state;
	for (uint32_t reg = 0; reg < 0x10000; reg++) {
		const bool is_ap = (reg & ~3u) == VGIC_ICC_AP0R0_EL1 || (reg & ~3u) == VGIC_ICC_AP1R0_EL1;
		uint64_t value = 0;
		bool is_known = false;

		for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
			is_known |= reg == known[i];
		assert_int_equal(vgic_attr_has(m->vgic, VGIC_GRP_CPU_SYSREGS, reg), is_known || is_ap ? 0 : -ENXIO);
		assert_int_equal(vgic_attr_get(m->vgic, VGIC_GRP_CPU_SYSREGS, reg, &value), is_known ? 0 :
											    is_ap    ? -EINVAL :
												       -ENXIO);
		assert_int_equal(vgic_attr_set(m->vgic, VGIC_GRP_CPU_SYSREGS, reg, value), is_known ? 0 :
											   is_ap    ? -EINVAL :
												      -ENXIO);
	}
	assert_int_equal(stats_of(m).acknowledges + stats_of(m).spurious, 0);
	machine_stop(m);
}

static void a_waiting_vcpu_is_told_of_its_lines(void **state)
{
	struct machine *m = machine_open(1);
	unsigned kicks;

	(void)state;
	icc_write(m, 0, VGIC_ICC_PMR_EL1, 0);
	irq_set_up(m, 0, 40, 1, 0x80);
	vgic_pulse_spi(m->vgic, 40);
	assert_int_equal(vgic_prepare_wait(vcpu_of(m, 0)), 0);
	kicks = m->num_kicks;
	icc_set(m, 0, VGIC_ICC_PMR_EL1, 0xff);
	assert_int_equal(m->num_kicks, kicks + 1);
	vgic_finish_wait(vcpu_of(m, 0));
	assert_int_equal(lines_of(m, 0), VGIC_LINE_IRQ);
	machine_stop(m);
}

/* ---- Line levels ------------------------------------------------------------------------------ */

static uint64_t levels_get(struct machine *m, uint32_t v, uint32_t intid)
{
	return get(m, VGIC_GRP_LEVEL_INFO, VGIC_ATTR_LEVEL(AFFINITY(v), intid));
}

static void levels_set(struct machine *m, uint32_t v, uint32_t intid, uint32_t levels)
{
	set(m, VGIC_GRP_LEVEL_INFO, VGIC_ATTR_LEVEL(AFFINITY(v), intid), levels);
}

static void levels_are_those_of_the_lines(void **state)
{
	struct machine *m = machine_native(2);

	(void)state;
	vgic_set_spi(m->vgic, 33, 7, true);
	vgic_set_spi(m->vgic, 287, 0, true);
	vgic_set_ppi(vcpu_of(m, 1), 31, 2, true);
	irq_write_bit(m, 0, GICD_ISPENDR, 34); /* the latch is no level */
	assert_int_equal(levels_get(m, 0, 0), 0);
	assert_int_equal(levels_get(m, 1, 0), 0x80000000);
	assert_int_equal(levels_get(m, 0, 32), 2);
	assert_int_equal(levels_get(m, 1, 32), 2);
	assert_int_equal(levels_get(m, 0, 256), 0x80000000);
	assert_int_equal(levels_get(m, 0, 288), 0);
	assert_int_equal(levels_get(m, 0, 992), 0);
	machine_stop(m);
}

static void setting_a_level_makes_no_edge(void **state)
{
	struct machine *m = machine_open(1);

	(void)state;
	irq_set_up(m, 0, 40, 1, 0x80); /* edge-triggered */
	irq_set_up(m, 0, 41, 1, 0x80);
	irq_set_edge(m, 0, 41, false);
	levels_set(m, 0, 32, 1u << 8 | 1u << 9);
	assert_int_equal(dist_get(m, GICD_ISPENDR + 4), 0);
	assert_int_equal(ack1(m, 0), 41);
	eoi1(m, 0, 41);
	/* The line is high already: raising it again by the source that drives it makes none either. */
	vgic_set_spi(m->vgic, 40, 0, true);
	assert_int_equal(dist_get(m, GICD_ISPENDR + 4), 0);
	vgic_set_spi(m->vgic, 41, 0, false);
	assert_int_equal(lines_of(m, 0), 0);
	machine_stop(m);
}

static void a_level_set_to_zero_lowers_all_sources(void **state)
{
	struct machine *m = machine_native(2);

	(void)state;
	vgic_set_spi(m->vgic, 33, 7, true);
	vgic_set_spi(m->vgic, 33, 9, true);
	vgic_set_ppi(vcpu_of(m, 1), 31, 2, true);
	levels_set(m, 0, 32, 2); /* stays high, and source 0 does not drive it */
	vgic_set_spi(m->vgic, 33, 0, true);
	vgic_set_spi(m->vgic, 33, 0, false);
	assert_int_equal(levels_get(m, 0, 32), 2);
	levels_set(m, 0, 32, 0);
	levels_set(m, 0, 0, 0);
	assert_int_equal(levels_get(m, 0, 32), 0);
	assert_int_equal(levels_get(m, 1, 0), 0x80000000);
	levels_set(m, 1, 0, 0xffffffff);
	assert_int_equal(levels_get(m, 1, 0), 0xffff0000);
	assert_int_equal(vgic_attr_set(m->vgic, VGIC_GRP_LEVEL_INFO, VGIC_ATTR_LEVEL(AFFINITY(0), 288), ~0u), 0);
	machine_stop(m);
}

/* KVM's vGIC keeps no level of edge-triggered interrupts. */
static void kvm_shows_levels_of_level_sensitive_lines_only(void **state)
{
	struct machine *m = machine_start(machine_describe(VGIC_PROFILE_KVM, 1));

	(void)state;
	irq_set_edge(m, 0, 40, true);
	irq_set_edge(m, 0, 41, false);
	vgic_set_spi(m->vgic, 40, 0, true);
	vgic_set_spi(m->vgic, 41, 0, true);
	assert_int_equal(levels_get(m, 0, 32), 1u << 9);
	machine_stop(m);
}

static void level_attributes_are_checked(void **state)
{
	struct machine *m = machine_native(1);

	(void)state;
	for (uint32_t intid = 0; intid < 1024; intid++) {
		if (intid % 32 != 0)
			expect_error(m, VGIC_GRP_LEVEL_INFO, intid, -EINVAL);
	}
	for (unsigned bit = 10; bit < 32; bit++) {
		expect_error(m, VGIC_GRP_LEVEL_INFO, 32 | 1u << bit, -EINVAL);
		assert_int_equal(vgic_attr_has(m->vgic, VGIC_GRP_LEVEL_INFO, 32 | 1u << bit), -ENXIO);
	}
	assert_int_equal(vgic_attr_has(m->vgic, VGIC_GRP_LEVEL_INFO, 32), 0);
	machine_stop(m);
}

/* ---- Ids, groups, errors ---------------------------------------------------------------------- */

/* No vCPU there: an error, whatever the affinity. The distributor does not look. */
static void vcpus_that_do_not_exist_are_refused(void **state)
{
	static const uint64_t nobody[] = { 2, 0xff, 0x100, 0xffffff, 0xff00000000ull, 0xffffffffull << 8 };
	struct machine *m = machine_native(2);

	(void)state;
	for (size_t i = 0; i < sizeof(nobody) / sizeof(nobody[0]); i++) {
		const uint64_t attr = VGIC_ATTR_VCPU(nobody[i]);

		expect_error(m, VGIC_GRP_REDIST_REGS, attr | GICR_CTLR, -EINVAL);
		expect_error(m, VGIC_GRP_CPU_SYSREGS, attr | VGIC_ICC_PMR_EL1, -EINVAL);
		expect_error(m, VGIC_GRP_LEVEL_INFO, attr, -EINVAL);
		assert_int_equal(vgic_attr_has(m->vgic, VGIC_GRP_REDIST_REGS, attr | GICR_CTLR), -EINVAL);
		assert_int_equal(vgic_attr_has(m->vgic, VGIC_GRP_CPU_SYSREGS, attr | VGIC_ICC_PMR_EL1), -EINVAL);
		assert_int_equal(get(m, VGIC_GRP_DIST_REGS, attr | GICD_TYPER), dist_get(m, GICD_TYPER));
	}
	machine_stop(m);
}

/* Each vCPU by its affinity, whatever the order of creation. */
static void every_vcpu_has_a_state_of_its_own(void **state)
{
	static const uint64_t affinities[] = { 0x0100000203ull, 5, 0xff00, 0x0000ff0001ull };
	struct machine *m = machine_describe(VGIC_PROFILE_NATIVE, 4);

	(void)state;
	for (uint32_t v = 0; v < 4; v++) {
		m->vcpus[v].id = 40 - 10 * v;
		m->vcpus[v].affinity = affinities[v];
	}
	machine_start(m);
	for (uint32_t v = 0; v < 4; v++) {
		redist_set(m, v, GICR_ISENABLER0, 0x1000 + v);
		icc_set(m, v, VGIC_ICC_PMR_EL1, 8 * (v + 1));
		levels_set(m, v, 0, 0x10000u << v);
	}
	for (uint32_t v = 0; v < 4; v++) {
		assert_int_equal(redist_read(m, v, GICR_ISENABLER0), 0x1000 + v);
		assert_int_equal(icc_read(m, v, VGIC_ICC_PMR_EL1), 8 * (v + 1));
		assert_int_equal(levels_get(m, v, 0), 0x10000u << v);
		assert_int_equal(redist_get(m, v, GICR_TYPER) >> 8 & 0xffff, 40 - 10 * v);
	}
	machine_stop(m);
}

static void unknown_groups_are_enxio(void **state)
{
	static const uint32_t unknown[] = { VGIC_GRP_CPU_REGS, VGIC_GRP_ITS_REGS, 9, 10, 255, UINT32_MAX };
	struct machine *m = machine_native(1);
	uint64_t value;

	(void)state;
	for (size_t i = 0; i < sizeof(unknown) / sizeof(unknown[0]); i++) {
		expect_error(m, unknown[i], 0, -ENXIO);
		assert_int_equal(vgic_attr_has(m->vgic, unknown[i], 0), -ENXIO);
	}
	for (uint64_t attr = 0; attr < 10; attr++) {
		const bool there = attr == VGIC_CTRL_INIT || attr == VGIC_CTRL_SAVE_PENDING_TABLES;

		assert_int_equal(vgic_attr_get(m->vgic, VGIC_GRP_CTRL, attr, &value), -ENXIO);
		assert_int_equal(vgic_attr_set(m->vgic, VGIC_GRP_CTRL, attr, 0), there ? 0 : -ENXIO);
		assert_int_equal(vgic_attr_has(m->vgic, VGIC_GRP_CTRL, attr), there ? 0 : -ENXIO);
	}
	assert_int_equal(vgic_attr_get(NULL, VGIC_GRP_NR_IRQS, 0, &value), -EINVAL);
	assert_int_equal(vgic_attr_get(m->vgic, VGIC_GRP_NR_IRQS, 0, NULL), -EINVAL);
	assert_int_equal(vgic_attr_set(NULL, VGIC_GRP_NR_IRQS, 0, 0), -EINVAL);
	assert_int_equal(vgic_attr_has(NULL, VGIC_GRP_NR_IRQS, 0), -EINVAL);
	machine_stop(m);
}

static void expect_its_busy(struct machine *m, uint32_t group, uint64_t attr)
{
	const struct vgic_attr one = { .group = group, .attr = attr };
	struct vgic_its *its = its_of(m, 0);
	struct vgic_attr read = one;
	uint64_t value = 7;
	size_t done = 7;

	assert_int_equal(vgic_its_attr_get(its, group, attr, &value), -EBUSY);
	assert_int_equal(value, 7);
	assert_int_equal(vgic_its_attr_set(its, group, attr, 0), -EBUSY);
	assert_int_equal(vgic_its_attr_get_many(its, &read, 1, &done), -EBUSY);
	assert_int_equal(vgic_its_attr_set_many(its, &one, 1, &done), -EBUSY);
	assert_int_equal(done, 0);
}

/* Each group, each control, whichever vCPU it is. */
static void a_running_vcpu_makes_all_of_them_busy(void **state)
{
	static const uint64_t controls[] = { VGIC_CTRL_INIT, VGIC_CTRL_ITS_SAVE_TABLES, VGIC_CTRL_ITS_RESTORE_TABLES,
					     VGIC_CTRL_SAVE_PENDING_TABLES, VGIC_CTRL_ITS_RESET };
	static const uint64_t addresses[] = { VGIC_ADDR_DIST, VGIC_ADDR_REDIST, VGIC_ADDR_ITS,
					      VGIC_ADDR_REDIST_REGION };
	struct machine *m = its_boot(2, 1);
	struct vgic_attr one = { .group = VGIC_GRP_NR_IRQS };

	(void)state;
	for (uint32_t running = 0; running < 2; running++) {
		vgic_enter_guest(vcpu_of(m, running));
		for (uint32_t group = 0; group < 12; group++)
			expect_error(m, group, 0, -EBUSY);
		for (size_t i = 0; i < sizeof(controls) / sizeof(controls[0]); i++) {
			expect_error(m, VGIC_GRP_CTRL, controls[i], -EBUSY);
			expect_its_busy(m, VGIC_GRP_CTRL, controls[i]);
		}
		for (size_t i = 0; i < sizeof(addresses) / sizeof(addresses[0]); i++) {
			expect_error(m, VGIC_GRP_ADDR, addresses[i], -EBUSY);
			expect_its_busy(m, VGIC_GRP_ADDR, addresses[i]);
		}
		for (uint32_t v = 0; v < 2; v++) {
			expect_error(m, VGIC_GRP_REDIST_REGS, VGIC_ATTR_REDIST(v, GICR_CTLR), -EBUSY);
			expect_error(m, VGIC_GRP_CPU_SYSREGS, VGIC_ATTR_SYSREG(v, VGIC_ICC_PMR_EL1), -EBUSY);
			expect_error(m, VGIC_GRP_LEVEL_INFO, VGIC_ATTR_LEVEL(v, 32), -EBUSY);
		}
		expect_its_busy(m, VGIC_GRP_ITS_REGS, GITS_CTLR);
		expect_its_busy(m, VGIC_GRP_ITS_REGS, GITS_CREADR);
		assert_int_equal(vgic_attr_get_many(m->vgic, &one, 1, NULL), -EBUSY);
		assert_int_equal(vgic_attr_set_many(m->vgic, &one, 1, NULL), -EBUSY);
		/* What changes nothing is answered. */
		assert_int_equal(vgic_attr_has(m->vgic, VGIC_GRP_NR_IRQS, 0), 0);
		assert_int_equal(vgic_its_attr_has(its_of(m, 0), VGIC_GRP_ITS_REGS, GITS_CTLR), 0);
		vgic_exit_guest(vcpu_of(m, running));
		vgic_prepare_wait(vcpu_of(m, running));
		assert_int_equal(get(m, VGIC_GRP_NR_IRQS, 0), 288);
		vgic_finish_wait(vcpu_of(m, running));
	}
	assert_int_equal(its_read(m, 0, GITS_CTLR, 4), GITS_CTLR_ENABLED);
	machine_stop(m);
}

static void the_number_of_interrupts_can_be_confirmed(void **state)
{
	struct machine *m = machine_native(1);

	(void)state;
	assert_int_equal(get(m, VGIC_GRP_NR_IRQS, 0), 288);
	set(m, VGIC_GRP_NR_IRQS, 0, 288);
	assert_int_equal(vgic_attr_set(m->vgic, VGIC_GRP_NR_IRQS, 0, 320), -EBUSY);
	assert_int_equal(vgic_attr_set(m->vgic, VGIC_GRP_NR_IRQS, 0, 64), -EBUSY);
	assert_int_equal(vgic_attr_set(m->vgic, VGIC_GRP_NR_IRQS, 0, 32), -EINVAL);
	assert_int_equal(vgic_attr_set(m->vgic, VGIC_GRP_NR_IRQS, 0, 1056), -EINVAL);
	assert_int_equal(vgic_attr_set(m->vgic, VGIC_GRP_NR_IRQS, 0, 289), -EINVAL);
	machine_stop(m);
}

static void addresses_can_be_confirmed(void **state)
{
	struct machine *m = its_describe(3, 1);
	uint64_t value;

	(void)state;
	m->config.has_dist_base = true;
	m->config.dist_base = MACHINE_DIST_BASE;
	machine_add_region(m, 0x080a0000, 2);
	machine_add_region(m, 0x0f000000, 5);
	machine_start(m);
	assert_int_equal(get(m, VGIC_GRP_ADDR, VGIC_ADDR_DIST), MACHINE_DIST_BASE);
	set(m, VGIC_GRP_ADDR, VGIC_ADDR_DIST, MACHINE_DIST_BASE);
	assert_int_equal(vgic_attr_set(m->vgic, VGIC_GRP_ADDR, VGIC_ADDR_DIST, MACHINE_DIST_BASE + 0x10000), -EEXIST);
	expect_error(m, VGIC_GRP_ADDR, VGIC_ADDR_REDIST, -EINVAL); /* there are two */
	value = 1;
	assert_int_equal(vgic_attr_get(m->vgic, VGIC_GRP_ADDR, VGIC_ADDR_REDIST_REGION, &value), 0);
	assert_int_equal(value, VGIC_REDIST_REGION(5, 0x0f000000, 1));
	set(m, VGIC_GRP_ADDR, VGIC_ADDR_REDIST_REGION, VGIC_REDIST_REGION(2, 0x080a0000, 0));
	assert_int_equal(vgic_attr_set(m->vgic, VGIC_GRP_ADDR, VGIC_ADDR_REDIST_REGION,
				       VGIC_REDIST_REGION(3, 0x080a0000, 0)),
			 -EEXIST);
	value = 2;
	assert_int_equal(vgic_attr_get(m->vgic, VGIC_GRP_ADDR, VGIC_ADDR_REDIST_REGION, &value), -ENOENT);
	assert_int_equal(value, 2);
	for (uint64_t type = 0; type < 8; type++) {
		const bool there = type == VGIC_ADDR_DIST || type == VGIC_ADDR_REDIST ||
				   type == VGIC_ADDR_REDIST_REGION;

		assert_int_equal(vgic_attr_has(m->vgic, VGIC_GRP_ADDR, type), there ? 0 : -ENXIO);
		if (!there)
			expect_error(m, VGIC_GRP_ADDR, type, -ENXIO);
	}
	assert_int_equal(vgic_its_attr_get(its_of(m, 0), VGIC_GRP_ADDR, VGIC_ADDR_ITS, &value), 0);
	assert_int_equal(value, ITS_BASE(0));
	assert_int_equal(vgic_its_attr_set(its_of(m, 0), VGIC_GRP_ADDR, VGIC_ADDR_ITS, ITS_BASE(0)), 0);
	assert_int_equal(vgic_its_attr_set(its_of(m, 0), VGIC_GRP_ADDR, VGIC_ADDR_ITS, ITS_BASE(1)), -EEXIST);
	assert_int_equal(vgic_its_attr_get(its_of(m, 0), VGIC_GRP_ADDR, VGIC_ADDR_DIST, &value), -ENODEV);
	machine_stop(m);
	m = machine_native(1);
	assert_int_equal(get(m, VGIC_GRP_ADDR, VGIC_ADDR_DIST), VGIC_ADDR_UNDEFINED);
	assert_int_equal(get(m, VGIC_GRP_ADDR, VGIC_ADDR_REDIST), VGIC_ADDR_UNDEFINED);
	machine_stop(m);
}

static void many_at_once_stop_at_the_first_error(void **state)
{
	struct machine *m = machine_native(2);
	struct vgic_attr attrs[] = {
		{ .group = VGIC_GRP_DIST_REGS, .attr = GICD_ISENABLER + 4, .value = 0x11 },
		{ .group = VGIC_GRP_REDIST_REGS, .attr = VGIC_ATTR_REDIST(1, GICR_ISENABLER0), .value = 0x22 },
		{ .group = VGIC_GRP_DIST_REGS, .attr = GICD_ISENABLER + 5, .value = 0x33 },
		{ .group = VGIC_GRP_CPU_SYSREGS, .attr = VGIC_ICC_PMR_EL1, .value = 0x80 },
	};
	size_t done = 99;

	(void)state;
	assert_int_equal(vgic_attr_set_many(m->vgic, attrs, 4, &done), -ENXIO);
	assert_int_equal(done, 2);
	assert_int_equal(dist_read(m, GICD_ISENABLER + 4), 0x11);
	assert_int_equal(redist_read(m, 1, GICR_ISENABLER0), 0x22);
	assert_int_equal(icc_read(m, 0, VGIC_ICC_PMR_EL1), 0);
	attrs[2].attr = GICD_ISENABLER + 8;
	assert_int_equal(vgic_attr_set_many(m->vgic, attrs, 4, &done), 0);
	assert_int_equal(done, 4);
	for (unsigned i = 0; i < 4; i++)
		attrs[i].value = 0;
	assert_int_equal(vgic_attr_get_many(m->vgic, attrs, 4, NULL), 0);
	assert_int_equal(attrs[0].value, 0x11);
	assert_int_equal(attrs[1].value, 0x22);
	assert_int_equal(attrs[2].value, 0x33);
	assert_int_equal(attrs[3].value, 0x80);
	assert_int_equal(vgic_attr_get_many(m->vgic, NULL, 0, &done), 0);
	assert_int_equal(done, 0);
	assert_int_equal(vgic_attr_get_many(m->vgic, NULL, 1, &done), -EINVAL);
	assert_int_equal(vgic_attr_set_many(m->vgic, NULL, 1, &done), -EINVAL);
	machine_stop(m);
}

/* ---- LPIs and pending tables --------------------------------------------------------------------- */

static int save_pending(struct machine *m)
{
	return vgic_attr_set(m->vgic, VGIC_GRP_CTRL, VGIC_CTRL_SAVE_PENDING_TABLES, 0);
}

/* Three devices' worth of LPIs on the vCPUs, with the CPU interfaces shut so that they stay pending. */
static struct machine *boot_with_lpis(uint32_t num_vcpus)
{
	struct machine *m = its_boot(num_vcpus, 1);

	map_device(m, 1, 10);
	for (uint32_t v = 0; v < num_vcpus; v++) {
		map_collection(m, v, v);
		icc_write(m, v, VGIC_ICC_PMR_EL1, 0);
	}
	for (uint32_t event = 0; event < 1000; event++)
		map_event(m, 1, event, GIC_FIRST_LPI + 7 * event, event % num_vcpus);
	return m;
}

static void pending_lpis_go_into_the_tables(void **state)
{
	struct machine *m = boot_with_lpis(3);
	uint64_t writes;

	(void)state;
	/* What earlier times have left: a bit of an LPI that is not pending now, one that is elsewhere, one of no LPI. */
	table_set_pending(0, GIC_FIRST_LPI + 7 * 3);
	table_set_pending(0, GIC_FIRST_LPI + 7 * 4);
	table_set_pending(1, GIC_FIRST_LPI + 1);
	ram_fill(PENDING_TABLE(0), 0xa5, 1024);
	for (uint32_t event = 0; event < 1000; event++) {
		if (event % 5 == 2 || event == 4)
			assert_int_equal(msi(m, 1, event), 1);
	}
	assert_int_equal(save_pending(m), 0);
	for (uint32_t event = 0; event < 1000; event++) {
		const bool pending = event % 5 == 2 || event == 4;

		for (uint32_t v = 0; v < 3; v++)
			assert_int_equal(table_pending(v, GIC_FIRST_LPI + 7 * event), pending && event % 3 == v);
	}
	assert_false(table_pending(1, GIC_FIRST_LPI + 1));
	for (unsigned i = 0; i < 1024; i++)
		assert_int_equal(ram_byte(PENDING_TABLE(0) + i), 0xa5);
	/* A second time there is nothing to write. */
	writes = ram.num_writes;
	assert_int_equal(save_pending(m), 0);
	assert_int_equal(ram.num_writes, writes);
	assert_int_equal(ram.num_oversized, 0);
	/* It was a look: all are still there. */
	for (uint32_t v = 0; v < 3; v++)
		icc_write(m, v, VGIC_ICC_PMR_EL1, 0xff);
	assert_int_equal(take(m, 0), GIC_FIRST_LPI + 7 * 12);
	machine_stop(m);
}

/* With EnableLPIs=0 the table has the pending state already, and keeps it. */
static void the_table_of_a_disabled_redistributor_is_kept(void **state)
{
	struct machine *m = boot_with_lpis(2);

	(void)state;
	assert_int_equal(msi(m, 1, 0), 1);
	assert_int_equal(msi(m, 1, 2), 1);
	assert_int_equal(msi(m, 1, 1), 1);
	redist_write(m, 0, GICR_CTLR, 0);
	finish_work(m);
	assert_true(table_pending(0, GIC_FIRST_LPI));
	/* One more comes there pending. */
	its_run(m, 0, cmd_movi(1, 1, 0));
	assert_int_equal(save_pending(m), 0);
	assert_true(table_pending(0, GIC_FIRST_LPI));
	assert_true(table_pending(0, GIC_FIRST_LPI + 14));
	assert_true(table_pending(0, GIC_FIRST_LPI + 7));
	assert_false(table_pending(1, GIC_FIRST_LPI + 7));
	machine_stop(m);
}

/* What the guest said of the table's content when it set it up (PTZ) does not hold for what a save has written. */
static void a_saved_table_is_read_when_lpis_are_enabled_again(void **state)
{
	struct machine *m = boot_with_lpis(2);

	(void)state;
	redist_write(m, 0, GICR_CTLR, 0);
	finish_work(m);
	redist_write_width(m, 0, GICR_PENDBASER, 8, PENDING_TABLE(0) | GICR_PENDBASER_PTZ);
	table_set_pending(0, GIC_FIRST_LPI + 14); /* it was no promise that a host can believe */
	assert_int_equal(msi(m, 1, 1), 1);
	its_run(m, 0, cmd_movi(1, 1, 0));
	assert_int_equal(save_pending(m), 0);
	assert_false(table_pending(0, GIC_FIRST_LPI + 14));
	its_run(m, 0, cmd_event(ITS_CMD_CLEAR, 1, 1));
	redist_write(m, 0, GICR_CTLR, GICR_CTLR_ENABLE_LPIS);
	finish_work(m);
	icc_write(m, 0, VGIC_ICC_PMR_EL1, 0xff);
	expect_only(m, 0, GIC_FIRST_LPI + 7);
	machine_stop(m);
}

static void a_pending_table_that_is_not_in_memory_is_efault(void **state)
{
	struct machine *m = boot_with_lpis(2);

	(void)state;
	assert_int_equal(msi(m, 1, 1), 1);
	ram.fail_writes = true;
	assert_int_equal(save_pending(m), -EFAULT);
	ram.fail_writes = false;
	ram.hole = PENDING_TABLE(1) + 0x1000;
	ram.hole_end = ram.hole + 1;
	assert_int_equal(save_pending(m), -EFAULT);
	ram.hole = ram.hole_end = 0;
	assert_int_equal(save_pending(m), 0);
	assert_true(table_pending(1, GIC_FIRST_LPI + 7));
	machine_stop(m);
}

/* The VMM finds the walk of EnableLPIs done, however much there is to do. */
static void enable_lpis_is_complete_when_it_is_set(void **state)
{
	struct machine *m = boot_with_lpis(1);
	uint64_t writes;

	(void)state;
	for (uint32_t event = 0; event < 1000; event++)
		assert_int_equal(msi(m, 1, event), 1);
	writes = ram.num_writes;
	redist_set(m, 0, GICR_CTLR, 0);
	assert_true(ram.num_writes > writes);
	assert_int_equal(redist_get(m, 0, GICR_CTLR) & GICR_CTLR_RWP, 0);
	assert_true(table_pending(0, GIC_FIRST_LPI + 7 * 999));
	assert_int_equal(vgic_run_work(m->vgic), 0);
	icc_write(m, 0, VGIC_ICC_PMR_EL1, 0xff);
	expect_nothing(m);
	redist_set(m, 0, GICR_CTLR, GICR_CTLR_ENABLE_LPIS);
	for (uint32_t event = 0; event < 1000; event++)
		assert_int_equal(take(m, 0), GIC_FIRST_LPI + 7 * event);
	machine_stop(m);
}

/* ---- ITS registers --------------------------------------------------------------------------------- */

static uint64_t its_get(struct machine *m, uint32_t offset)
{
	uint64_t value = ~0ull;

	assert_int_equal(vgic_its_attr_get(its_of(m, 0), VGIC_GRP_ITS_REGS, offset, &value), 0);
	return value;
}

static int its_try_set(struct machine *m, uint32_t offset, uint64_t value)
{
	return vgic_its_attr_set(its_of(m, 0), VGIC_GRP_ITS_REGS, offset, value);
}

static void its_offsets_are_checked(void **state)
{
	struct machine *m = its_boot(1, 1);
	unsigned there = 0;

	(void)state;
	for (uint32_t offset = 0; offset < VGIC_ITS_FRAME_SIZE + 64; offset++) {
		const bool narrow = offset < 8 || offset >= 0xffd0;
		const int err = vgic_its_attr_has(its_of(m, 0), VGIC_GRP_ITS_REGS, offset);
		uint64_t value = 1;

		if (offset % (narrow ? 4 : 8) != 0)
			assert_int_equal(err, -EINVAL);
		else
			assert_true(err == 0 || err == -ENXIO);
		there += err == 0;
		assert_int_equal(vgic_its_attr_get(its_of(m, 0), VGIC_GRP_ITS_REGS, offset, &value), err);
		if (err)
			assert_int_equal(its_try_set(m, offset, 0), err);
	}
	/* CTLR, IIDR, TYPER, CBASER, CWRITER, CREADR, eight BASERs, twelve ID registers. The doorbell is none of them. */
	assert_int_equal(there, 26);
	assert_int_equal(vgic_its_attr_has(its_of(m, 0), VGIC_GRP_ITS_REGS, 1ull << 32), -ENXIO);
	machine_stop(m);
}

static void creadr_is_restored_behind_cbaser(void **state)
{
	struct machine *m = its_boot(1, 1);
	const uint64_t cbaser = its_get(m, GITS_CBASER);

	(void)state;
	map_device(m, 1, 4);
	map_device(m, 2, 4);
	assert_int_equal(its_get(m, GITS_CREADR), 0x40);
	assert_int_equal(its_get(m, GITS_CWRITER), 0x40);
	assert_int_equal(its_try_set(m, GITS_CREADR, 0x20), -EBUSY); /* on */
	assert_int_equal(its_try_set(m, GITS_CTLR, 0), 0);
	assert_int_equal(its_get(m, GITS_CTLR), GITS_CTLR_QUIESCENT);
	assert_int_equal(its_try_set(m, GITS_CBASER, cbaser), 0);
	assert_int_equal(its_get(m, GITS_CREADR), 0);
	assert_int_equal(its_try_set(m, GITS_CREADR, 0x1000), -EINVAL);
	/* An ITS that the guest does not use has no queue. */
	assert_int_equal(its_try_set(m, GITS_CBASER, 0), 0);
	assert_int_equal(its_try_set(m, GITS_CREADR, 0), 0);
	assert_int_equal(its_try_set(m, GITS_CREADR, 0x20), -EINVAL);
	assert_int_equal(its_try_set(m, GITS_CBASER, cbaser), 0);
	assert_int_equal(its_try_set(m, GITS_CREADR, 0x40), 0);
	assert_int_equal(its_try_set(m, GITS_CWRITER, 0x40), 0);
	assert_int_equal(its_read(m, 0, GITS_CREADR, 8), 0x40);
	/* Nothing is executed a second time. */
	assert_int_equal(its_try_set(m, GITS_CTLR, GITS_CTLR_ENABLED), 0);
	assert_int_equal(its_get(m, GITS_CTLR), GITS_CTLR_ENABLED);
	finish_work(m);
	assert_int_equal(its_stats(m, 0).commands, 2);
	assert_int_equal(its_try_set(m, GITS_CBASER, 0), 0);
	assert_int_equal(its_get(m, GITS_CBASER), cbaser); /* as for the guest: not while it is on */
	machine_stop(m);
}

static void its_iidr_takes_the_revision_of_the_tables(void **state)
{
	struct machine *m = its_describe(1, 1);
	uint64_t iidr;

	(void)state;
	m->config.profile = VGIC_PROFILE_KVM;
	machine_start(m);
	iidr = its_get(m, GITS_IIDR);
	assert_int_equal(its_try_set(m, GITS_IIDR, iidr), 0);
	for (uint64_t revision = 1; revision < 16; revision++)
		assert_int_equal(its_try_set(m, GITS_IIDR, (iidr & ~0xf000ull) | revision << 12), -EINVAL);
	machine_stop(m);
}

/* A command that takes long is finished before the VMM reads anything, and no other is begun. */
static void its_reads_see_whole_commands(void **state)
{
	struct machine *m = boot_with_lpis(2);
	uint64_t before;

	(void)state;
	before = its_read(m, 0, GITS_CREADR, 8);
	its_place(m, 0, cmd_movall(0, 1));
	its_place(m, 0, cmd_movall(1, 0));
	its_place(m, 0, cmd_movall(0, 1));
	its_submit(m, 0);
	assert_int_equal(its_get(m, GITS_CREADR), before + 0x20);
	assert_int_equal(its_get(m, GITS_CREADR), before + 0x20);
	assert_int_equal(its_get(m, GITS_CWRITER), before + 0x60);
	finish_work(m);
	assert_int_equal(its_get(m, GITS_CREADR), before + 0x60);
	machine_stop(m);
}

static void its_reset_leaves_nothing(void **state)
{
	struct machine *m = boot_with_lpis(1);
	const uint64_t baser0 = 0x1907000000000600ull;

	(void)state;
	assert_int_equal(vgic_its_attr_set(its_of(m, 0), VGIC_GRP_CTRL, VGIC_CTRL_ITS_RESET, 0), 0);
	assert_int_equal(its_get(m, GITS_CTLR), GITS_CTLR_QUIESCENT);
	assert_int_equal(its_get(m, GITS_CBASER), 0);
	assert_int_equal(its_get(m, GITS_CWRITER), 0);
	assert_int_equal(its_get(m, GITS_BASER0), baser0);
	assert_int_equal(its_stats(m, 0).num_devices, 0);
	assert_int_equal(its_stats(m, 0).num_translations, 0);
	assert_int_equal(msi(m, 1, 0), -EBUSY);
	machine_stop(m);
}

static void its_groups_are_checked(void **state)
{
	struct machine *m = its_boot(1, 1);
	struct vgic_its *its = its_of(m, 0);
	struct vgic_attr attrs[] = { { .group = VGIC_GRP_ITS_REGS, .attr = GITS_TYPER },
				     { .group = VGIC_GRP_ITS_REGS, .attr = GITS_BASER1 } };
	uint64_t value = 3;
	size_t done;

	(void)state;
	for (uint32_t group = 0; group < 12; group++) {
		if (group == VGIC_GRP_ADDR || group == VGIC_GRP_ITS_REGS)
			continue;
		assert_int_equal(vgic_its_attr_get(its, group, 0, &value), -ENXIO);
		if (group == VGIC_GRP_CTRL)
			continue;
		assert_int_equal(vgic_its_attr_set(its, group, 0, 0), -ENXIO);
		assert_int_equal(vgic_its_attr_has(its, group, 0), -ENXIO);
	}
	for (uint64_t attr = 0; attr < 8; attr++) {
		const bool there = attr <= 2 || attr == 4;

		assert_int_equal(vgic_its_attr_has(its, VGIC_GRP_CTRL, attr), there ? 0 : -ENXIO);
		if (!there)
			assert_int_equal(vgic_its_attr_set(its, VGIC_GRP_CTRL, attr, 0), -ENXIO);
	}
	assert_int_equal(vgic_its_attr_set(its, VGIC_GRP_CTRL, VGIC_CTRL_INIT, 0), 0);
	assert_int_equal(value, 3);
	assert_int_equal(vgic_its_attr_get(NULL, VGIC_GRP_ADDR, VGIC_ADDR_ITS, &value), -EINVAL);
	assert_int_equal(vgic_its_attr_has(NULL, VGIC_GRP_ADDR, VGIC_ADDR_ITS), -EINVAL);
	assert_int_equal(vgic_its_attr_get_many(its, attrs, 2, &done), 0);
	assert_int_equal(done, 2);
	assert_int_equal(attrs[0].value, its_read(m, 0, GITS_TYPER, 8));
	assert_int_equal(attrs[1].value, its_read(m, 0, GITS_BASER1, 8));
	attrs[0].attr = 1;
	assert_int_equal(vgic_its_attr_set_many(its, attrs, 2, &done), -EINVAL);
	assert_int_equal(done, 0);
	machine_stop(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_are_those_of_kvm),
		cmocka_unit_test(the_latch_is_seen_without_the_line),
		cmocka_unit_test(ispendr_sets_the_latch_to_what_is_written),
		cmocka_unit_test(icpendr_reads_as_zero_and_ignores_writes),
		cmocka_unit_test(icactiver_makes_no_device_call_back),
		cmocka_unit_test(statusr_takes_the_value),
		cmocka_unit_test(iidr_selects_the_revision),
		cmocka_unit_test(native_iidr_can_only_be_confirmed),
		cmocka_unit_test(read_only_registers_ignore_writes),
		cmocka_unit_test(wide_registers_come_in_halves),
		cmocka_unit_test(registers_hold_what_is_set),
		cmocka_unit_test(every_offset_is_there_or_enxio),
		cmocka_unit_test(icc_registers_hold_what_is_set),
		cmocka_unit_test(icc_ctlr_of_another_machine_is_refused),
		cmocka_unit_test(fewer_id_bits_are_accepted),
		cmocka_unit_test(other_system_registers_are_enxio),
		cmocka_unit_test(a_waiting_vcpu_is_told_of_its_lines),
		cmocka_unit_test(levels_are_those_of_the_lines),
		cmocka_unit_test(setting_a_level_makes_no_edge),
		cmocka_unit_test(a_level_set_to_zero_lowers_all_sources),
		cmocka_unit_test(kvm_shows_levels_of_level_sensitive_lines_only),
		cmocka_unit_test(level_attributes_are_checked),
		cmocka_unit_test(vcpus_that_do_not_exist_are_refused),
		cmocka_unit_test(every_vcpu_has_a_state_of_its_own),
		cmocka_unit_test(unknown_groups_are_enxio),
		cmocka_unit_test(a_running_vcpu_makes_all_of_them_busy),
		cmocka_unit_test(the_number_of_interrupts_can_be_confirmed),
		cmocka_unit_test(addresses_can_be_confirmed),
		cmocka_unit_test(many_at_once_stop_at_the_first_error),
		cmocka_unit_test(pending_lpis_go_into_the_tables),
		cmocka_unit_test(the_table_of_a_disabled_redistributor_is_kept),
		cmocka_unit_test(a_saved_table_is_read_when_lpis_are_enabled_again),
		cmocka_unit_test(a_pending_table_that_is_not_in_memory_is_efault),
		cmocka_unit_test(enable_lpis_is_complete_when_it_is_set),
		cmocka_unit_test(its_offsets_are_checked),
		cmocka_unit_test(creadr_is_restored_behind_cbaser),
		cmocka_unit_test(its_iidr_takes_the_revision_of_the_tables),
		cmocka_unit_test(its_reads_see_whole_commands),
		cmocka_unit_test(its_reset_leaves_nothing),
		cmocka_unit_test(its_groups_are_checked),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("state_attr", tests, NULL, NULL);
}
