/* SPDX-License-Identifier: MIT */
/*
 * The CPU interface: acknowledge, priorities, preemption and binary points, both
 * groups, priority drop and deactivation, and accesses that are UNDEFINED.
 */
#include <errno.h>

#include "machine.h"

/* SPI @intid, set up for vCPU 0 and made pending. */
static void raise(struct machine *m, uint32_t intid, unsigned group, uint8_t priority)
{
	irq_set_up(m, 0, intid, group, priority);
	assert_int_equal(vgic_pulse_spi(m->vgic, intid), 1);
}

static void acknowledge_makes_active_and_raises_the_running_priority(void **state)
{
	struct machine *m = machine_open(1);

	(void)state;
	raise(m, 40, 1, 0x80);
	assert_int_equal(lines_of(m, 0), VGIC_LINE_IRQ);
	assert_int_equal(ack1(m, 0), 40);
	assert_false(irq_is_pending(m, 0, 40));
	assert_true(irq_is_active(m, 0, 40));
	assert_int_equal(lines_of(m, 0), 0);
	assert_int_equal(icc_read(m, 0, VGIC_ICC_RPR_EL1), 0x80);
	assert_int_equal(icc_read(m, 0, VGIC_ICC_AP1R0_EL1), 1u << 16);
	assert_int_equal(icc_read(m, 0, VGIC_ICC_AP0R0_EL1), 0);
	assert_int_equal(ack1(m, 0), NO_INTERRUPT);
	eoi1(m, 0, 40);
	assert_false(irq_is_active(m, 0, 40));
	assert_int_equal(icc_read(m, 0, VGIC_ICC_RPR_EL1), 0xff);
	assert_int_equal(icc_read(m, 0, VGIC_ICC_AP1R0_EL1), 0);
	assert_int_equal(stats_of(m).acknowledges, 1);
	assert_int_equal(stats_of(m).spurious, 1);
	assert_int_equal(errors_of_all_kinds(m), 0);
	machine_stop(m);
}

static void group0_is_fiq_and_group1_is_irq(void **state)
{
	struct machine *m = machine_open(1);

	(void)state;
	raise(m, 40, 0, 0x80);
	assert_int_equal(lines_of(m, 0), VGIC_LINE_FIQ);
	assert_int_equal(icc_read(m, 0, VGIC_ICC_HPPIR0_EL1), 40);
	assert_int_equal(icc_read(m, 0, VGIC_ICC_HPPIR1_EL1), GIC_SPURIOUS);
	assert_int_equal(ack1(m, 0), NO_INTERRUPT);
	assert_int_equal(lines_of(m, 0), VGIC_LINE_FIQ);
	assert_int_equal(ack0(m, 0), 40);
	assert_int_equal(icc_read(m, 0, VGIC_ICC_AP0R0_EL1), 1u << 16);
	eoi0(m, 0, 40);
	raise(m, 41, 1, 0x80);
	assert_int_equal(lines_of(m, 0), VGIC_LINE_IRQ);
	assert_int_equal(ack0(m, 0), NO_INTERRUPT);
	assert_int_equal(ack1(m, 0), 41);
	machine_stop(m);
}

/* There is one highest-priority pending interrupt, not one for each group. */
static void only_the_best_of_both_groups_is_signalled(void **state)
{
	struct machine *m = machine_open(1);

	(void)state;
	raise(m, 40, 0, 0x80);
	raise(m, 41, 1, 0x40);
	assert_int_equal(lines_of(m, 0), VGIC_LINE_IRQ);
	assert_int_equal(ack0(m, 0), NO_INTERRUPT);
	assert_int_equal(icc_read(m, 0, VGIC_ICC_HPPIR0_EL1), GIC_SPURIOUS);
	assert_int_equal(icc_read(m, 0, VGIC_ICC_HPPIR1_EL1), 41);
	irq_set_priority(m, 0, 41, 0x88);
	assert_int_equal(lines_of(m, 0), VGIC_LINE_FIQ);
	assert_int_equal(ack1(m, 0), NO_INTERRUPT);
	machine_stop(m);
}

static void equal_priority_favours_group0(void **state)
{
	struct machine *m = machine_open(1);

	(void)state;
	raise(m, 32, 1, 0x80);
	raise(m, 100, 0, 0x80);
	assert_int_equal(lines_of(m, 0), VGIC_LINE_FIQ);
	assert_int_equal(ack1(m, 0), NO_INTERRUPT);
	assert_int_equal(ack0(m, 0), 100);
	eoi0(m, 0, 100);
	assert_int_equal(ack1(m, 0), 32);
	machine_stop(m);
}

/*
 * Running at 0x40. Group 1 pending at 0x48: with BPR1=6 its group priority is 0x40, it cannot preempt. Group 0 pending
 * at 0x50: with BPR0=7 its group priority is 0, it could, but it is the lower of the two, and nothing is signalled.
 */
static void hppi_without_priority_hides_the_other_group(void **state)
{
	struct machine *m = machine_open(1);

	(void)state;
	icc_write(m, 0, VGIC_ICC_BPR1_EL1, 6);
	icc_write(m, 0, VGIC_ICC_BPR0_EL1, 7);
	icc_write(m, 0, VGIC_ICC_AP1R0_EL1, 1u << 8);
	assert_int_equal(icc_read(m, 0, VGIC_ICC_RPR_EL1), 0x40);
	raise(m, 42, 0, 0x50);
	assert_int_equal(lines_of(m, 0), VGIC_LINE_FIQ);
	raise(m, 41, 1, 0x48);
	assert_int_equal(lines_of(m, 0), 0);
	assert_int_equal(ack0(m, 0), NO_INTERRUPT);
	assert_int_equal(ack1(m, 0), NO_INTERRUPT);
	assert_int_equal(icc_read(m, 0, VGIC_ICC_HPPIR1_EL1), 41);
	assert_int_equal(icc_read(m, 0, VGIC_ICC_HPPIR0_EL1), GIC_SPURIOUS);

	/* It comes to light when the other one goes away, in whichever way. */
	irq_write_bit(m, 0, GICD_ICPENDR, 41);
	assert_int_equal(lines_of(m, 0), VGIC_LINE_FIQ);
	irq_write_bit(m, 0, GICD_ISPENDR, 41);
	assert_int_equal(lines_of(m, 0), 0);
	irq_write_bit(m, 0, GICD_ICENABLER, 41);
	assert_int_equal(lines_of(m, 0), VGIC_LINE_FIQ);
	irq_write_bit(m, 0, GICD_ISENABLER, 41);
	irq_set_priority(m, 0, 41, 0x58);
	assert_int_equal(ack0(m, 0), 42);
	assert_int_equal(icc_read(m, 0, VGIC_ICC_RPR_EL1), 0);
	machine_stop(m);
}

static void hppir_sees_past_mask_and_running_priority(void **state)
{
	struct machine *m = machine_open(1);

	(void)state;
	raise(m, 40, 1, 0x80);
	assert_int_equal(ack1(m, 0), 40);
	raise(m, 41, 1, 0xa0);
	icc_write(m, 0, VGIC_ICC_PMR_EL1, 0);
	assert_int_equal(icc_read(m, 0, VGIC_ICC_HPPIR1_EL1), 41);
	assert_int_equal(lines_of(m, 0), 0);
	assert_int_equal(ack1(m, 0), NO_INTERRUPT);
	machine_stop(m);
}

static void disabled_group_is_not_the_hppi(void **state)
{
	struct machine *m = machine_open(1);

	(void)state;
	raise(m, 40, 1, 0x80);
	raise(m, 41, 0, 0xa0);
	icc_write(m, 0, VGIC_ICC_IGRPEN1_EL1, 0);
	assert_int_equal(icc_read(m, 0, VGIC_ICC_HPPIR1_EL1), GIC_SPURIOUS);
	assert_int_equal(ack1(m, 0), NO_INTERRUPT);
	assert_int_equal(icc_read(m, 0, VGIC_ICC_HPPIR0_EL1), 41);
	assert_int_equal(lines_of(m, 0), VGIC_LINE_FIQ);
	icc_write(m, 0, VGIC_ICC_IGRPEN0_EL1, 0);
	assert_int_equal(lines_of(m, 0), 0);
	icc_write(m, 0, VGIC_ICC_IGRPEN1_EL1, 1);
	assert_int_equal(lines_of(m, 0), VGIC_LINE_IRQ);
	icc_write(m, 0, VGIC_ICC_IGRPEN0_EL1, ~0ull);
	assert_int_equal(icc_read(m, 0, VGIC_ICC_IGRPEN0_EL1), 1);
	assert_int_equal(ack1(m, 0), 40);
	machine_stop(m);
}

static void priority_mask_is_strict(void **state)
{
	struct machine *m = machine_open(1);

	(void)state;
	raise(m, 40, 1, 0xa0);
	icc_write(m, 0, VGIC_ICC_PMR_EL1, 0xa0);
	assert_int_equal(lines_of(m, 0), 0);
	assert_int_equal(ack1(m, 0), NO_INTERRUPT);
	icc_write(m, 0, VGIC_ICC_PMR_EL1, 0xa8);
	assert_int_equal(lines_of(m, 0), VGIC_LINE_IRQ);
	icc_write(m, 0, VGIC_ICC_PMR_EL1, 0xa7);
	assert_int_equal(icc_read(m, 0, VGIC_ICC_PMR_EL1), 0xa0);
	assert_int_equal(lines_of(m, 0), 0);
	icc_write(m, 0, VGIC_ICC_PMR_EL1, 0xffffff50);
	assert_int_equal(icc_read(m, 0, VGIC_ICC_PMR_EL1), 0x50);
	machine_stop(m);
}

/* PRIbits, PMR, IPRIORITYR and the active priorities all have the same five bits. */
static void number_of_priority_bits_agrees(void **state)
{
	struct machine *m = machine_open(1);
	const unsigned bits = (icc_read(m, 0, VGIC_ICC_CTLR_EL1) >> ICC_CTLR_PRIBITS_SHIFT & 7) + 1;
	const unsigned mask = 0xffu << (8 - bits) & 0xff;

	(void)state;
	assert_int_equal(bits, 5);
	icc_write(m, 0, VGIC_ICC_PMR_EL1, 0xff);
	assert_int_equal(icc_read(m, 0, VGIC_ICC_PMR_EL1), mask);
	irq_set_priority(m, 0, 40, 0xff);
	irq_set_priority(m, 0, 27, 0xff);
	assert_int_equal(dist_read_width(m, GICD_IPRIORITYR + 40, 1), mask);
	assert_int_equal(redist_read_width(m, 0, GICR_IPRIORITYR + 27, 1), mask);
	for (unsigned priority = 0; priority < mask; priority += 1u << (8 - bits)) {
		raise(m, 40, 1, (uint8_t)priority);
		assert_int_equal(ack1(m, 0), 40);
		assert_int_equal(icc_read(m, 0, VGIC_ICC_RPR_EL1), priority);
		assert_int_equal(icc_read(m, 0, VGIC_ICC_AP1R0_EL1), 1u << (priority >> (8 - bits)));
		eoi1(m, 0, 40);
	}
	machine_stop(m);
}

static void lowest_priority_is_never_signalled(void **state)
{
	struct machine *m = machine_open(1);

	(void)state;
	raise(m, 40, 1, 0xf8);
	icc_write(m, 0, VGIC_ICC_PMR_EL1, 0xff);
	assert_int_equal(icc_read(m, 0, VGIC_ICC_PMR_EL1), 0xf8);
	assert_int_equal(lines_of(m, 0), 0);
	irq_set_priority(m, 0, 40, 0xf7);
	assert_int_equal(lines_of(m, 0), VGIC_LINE_IRQ);
	machine_stop(m);
}

static void equal_priority_does_not_preempt(void **state)
{
	struct machine *m = machine_open(1);

	(void)state;
	raise(m, 40, 1, 0x80);
	assert_int_equal(ack1(m, 0), 40);
	raise(m, 41, 1, 0x80);
	assert_int_equal(lines_of(m, 0), 0);
	raise(m, 42, 0, 0x80);
	assert_int_equal(lines_of(m, 0), 0);
	irq_set_priority(m, 0, 42, 0x78);
	assert_int_equal(lines_of(m, 0), VGIC_LINE_FIQ);
	machine_stop(m);
}

static void preemption_nests_and_unwinds(void **state)
{
	static const uint8_t priorities[] = { 0xf0, 0xc0, 0x80, 0x40, 0x08, 0x00 };
	struct machine *m = machine_open(1);

	(void)state;
	for (uint32_t i = 0; i < 6; i++) {
		raise(m, 40 + i, i % 2, priorities[i]);
		assert_int_equal(lines_of(m, 0), i % 2 ? VGIC_LINE_IRQ : VGIC_LINE_FIQ);
		assert_int_equal(i % 2 ? ack1(m, 0) : ack0(m, 0), 40 + i);
		assert_int_equal(icc_read(m, 0, VGIC_ICC_RPR_EL1), priorities[i]);
	}
	assert_int_equal(icc_read(m, 0, VGIC_ICC_AP0R0_EL1), 1u << 30 | 1u << 16 | 1u << 1);
	assert_int_equal(icc_read(m, 0, VGIC_ICC_AP1R0_EL1), 1u << 24 | 1u << 8 | 1u << 0);
	for (uint32_t i = 6; i-- > 0;) {
		if (i % 2)
			eoi1(m, 0, 40 + i);
		else
			eoi0(m, 0, 40 + i);
		assert_int_equal(icc_read(m, 0, VGIC_ICC_RPR_EL1), i ? priorities[i - 1] : 0xff);
	}
	assert_int_equal(errors_of_all_kinds(m), 0);
	machine_stop(m);
}

/* Group 1: bits [7:BPR1] are the group priority. Priorities 0x40 running and 0x48, 0x38 and so on pending. */
static void binary_point_of_group1_decides_about_preemption(void **state)
{
	(void)state;
	for (unsigned bpr = 0; bpr <= 7; bpr++) {
		const unsigned effective = bpr < 3 ? 3 : bpr;
		const unsigned mask = 0xffu << effective & 0xff;

		for (unsigned priority = 0; priority < 0xf8; priority += 8) {
			struct machine *m = machine_open(1);

			icc_write(m, 0, VGIC_ICC_BPR1_EL1, bpr);
			assert_int_equal(icc_read(m, 0, VGIC_ICC_BPR1_EL1), effective);
			raise(m, 40, 1, 0xa8);
			assert_int_equal(ack1(m, 0), 40);
			assert_int_equal(icc_read(m, 0, VGIC_ICC_RPR_EL1), 0xa8 & mask);
			raise(m, 41, 1, (uint8_t)priority);
			assert_int_equal(lines_of(m, 0), (priority & mask) < (0xa8 & mask) ? VGIC_LINE_IRQ : 0);
			machine_stop(m);
		}
	}
}

/* Group 0: bits [7:BPR0+1]; with BPR0=7 there is no preemption at all. */
static void binary_point_of_group0_decides_about_preemption(void **state)
{
	(void)state;
	for (unsigned bpr = 0; bpr <= 7; bpr++) {
		const unsigned effective = bpr < 2 ? 2 : bpr;
		const unsigned mask = 0xffu << (effective + 1) & 0xff;

		for (unsigned priority = 0; priority < 0xf8; priority += 8) {
			struct machine *m = machine_open(1);

			icc_write(m, 0, VGIC_ICC_BPR0_EL1, bpr | 0xfffffff8);
			assert_int_equal(icc_read(m, 0, VGIC_ICC_BPR0_EL1), effective);
			raise(m, 40, 0, 0xa8);
			assert_int_equal(ack0(m, 0), 40);
			assert_int_equal(icc_read(m, 0, VGIC_ICC_RPR_EL1), 0xa8 & mask);
			raise(m, 41, 0, (uint8_t)priority);
			assert_int_equal(lines_of(m, 0), (priority & mask) < (0xa8 & mask) ? VGIC_LINE_FIQ : 0);
			machine_stop(m);
		}
	}
}

static void common_binary_point_rules_both_groups(void **state)
{
	struct machine *m = machine_open(1);

	(void)state;
	icc_write(m, 0, VGIC_ICC_BPR1_EL1, 4);
	icc_write(m, 0, VGIC_ICC_BPR0_EL1, 5);
	icc_write(m, 0, VGIC_ICC_CTLR_EL1, ICC_CTLR_CBPR);
	assert_int_equal(icc_read(m, 0, VGIC_ICC_BPR1_EL1), 6);
	icc_write(m, 0, VGIC_ICC_BPR1_EL1, 3);
	assert_int_equal(icc_read(m, 0, VGIC_ICC_BPR1_EL1), 6);
	icc_write(m, 0, VGIC_ICC_BPR0_EL1, 7);
	assert_int_equal(icc_read(m, 0, VGIC_ICC_BPR1_EL1), 7);
	icc_write(m, 0, VGIC_ICC_BPR0_EL1, 5);
	/* Group priorities in steps of 0x40, as Group 0's are. */
	raise(m, 40, 1, 0x78);
	assert_int_equal(ack1(m, 0), 40);
	assert_int_equal(icc_read(m, 0, VGIC_ICC_RPR_EL1), 0x40);
	raise(m, 41, 1, 0x40);
	assert_int_equal(lines_of(m, 0), 0);
	irq_set_priority(m, 0, 41, 0x38);
	assert_int_equal(lines_of(m, 0), VGIC_LINE_IRQ);
	irq_set_priority(m, 0, 41, 0x40);

	/* Without the bit, BPR1 is what was written to it before. */
	icc_write(m, 0, VGIC_ICC_CTLR_EL1, 0);
	assert_int_equal(icc_read(m, 0, VGIC_ICC_BPR1_EL1), 4);
	assert_int_equal(icc_read(m, 0, VGIC_ICC_BPR0_EL1), 5);
	machine_stop(m);
}

/* ---- Active and pending ---- */

static void active_and_pending_is_not_signalled_before_deactivation(void **state)
{
	struct machine *m = machine_open(1);

	(void)state;
	raise(m, 40, 1, 0x80);
	assert_int_equal(ack1(m, 0), 40);
	assert_int_equal(vgic_pulse_spi(m->vgic, 40), 1);
	assert_true(irq_is_pending(m, 0, 40));
	assert_true(irq_is_active(m, 0, 40));
	/* Not even with a priority that would preempt. */
	irq_set_priority(m, 0, 40, 0x10);
	assert_int_equal(lines_of(m, 0), 0);
	assert_int_equal(icc_read(m, 0, VGIC_ICC_HPPIR1_EL1), GIC_SPURIOUS);
	assert_int_equal(ack1(m, 0), NO_INTERRUPT);
	eoi1(m, 0, 40);
	assert_int_equal(ack1(m, 0), 40);
	assert_int_equal(icc_read(m, 0, VGIC_ICC_RPR_EL1), 0x10);
	machine_stop(m);
}

static void any_number_may_be_active(void **state)
{
	struct machine *m = machine_open(1);

	(void)state;
	icc_write(m, 0, VGIC_ICC_CTLR_EL1, ICC_CTLR_EOIMODE);
	for (uint32_t intid = 32; intid < 288; intid++) {
		raise(m, intid, 1, 0x80);
		assert_int_equal(ack1(m, 0), intid);
		eoi1(m, 0, intid);
	}
	for (uint32_t word = 1; word <= 8; word++)
		assert_int_equal(dist_read(m, GICD_ISACTIVER + 4 * word), 0xffffffff);
	for (uint32_t intid = 287; intid >= 32; intid--)
		icc_write(m, 0, VGIC_ICC_DIR_EL1, intid);
	for (uint32_t word = 1; word <= 8; word++)
		assert_int_equal(dist_read(m, GICD_ISACTIVER + 4 * word), 0);
	assert_int_equal(errors_of_all_kinds(m), 0);
	machine_stop(m);
}

static void all_pending_interrupts_are_delivered_once_each(void **state)
{
	struct machine *m = machine_describe(VGIC_PROFILE_NATIVE, 1);
	bool seen[GIC_END_SPI] = { false };

	(void)state;
	m->config.num_spis = 988;
	machine_start(m);
	machine_open_switches(m);
	for (uint32_t intid = 32; intid < GIC_END_SPI; intid++)
		raise(m, intid, 1, 0x80);
	for (uint32_t i = 32; i < GIC_END_SPI; i++) {
		const uint32_t intid = ack1(m, 0);

		assert_in_range(intid, 32, GIC_END_SPI - 1);
		assert_false(seen[intid]);
		seen[intid] = true;
		eoi1(m, 0, intid);
	}
	assert_int_equal(ack1(m, 0), NO_INTERRUPT);
	assert_int_equal(lines_of(m, 0), 0);
	machine_stop(m);
}

/* ---- End of interrupt ---- */

static void split_mode_drops_and_deactivates_apart(void **state)
{
	struct machine *m = machine_open(1);

	(void)state;
	icc_write(m, 0, VGIC_ICC_CTLR_EL1, ICC_CTLR_EOIMODE);
	raise(m, 40, 1, 0x80);
	assert_int_equal(ack1(m, 0), 40);
	eoi1(m, 0, 40);
	assert_int_equal(icc_read(m, 0, VGIC_ICC_RPR_EL1), 0xff);
	assert_true(irq_is_active(m, 0, 40));
	/* The priority is free for others, the interrupt itself is not. */
	raise(m, 41, 1, 0x90);
	assert_int_equal(vgic_pulse_spi(m->vgic, 40), 1);
	assert_int_equal(ack1(m, 0), 41);
	eoi1(m, 0, 41);
	assert_int_equal(ack1(m, 0), NO_INTERRUPT);
	icc_write(m, 0, VGIC_ICC_DIR_EL1, 40);
	assert_false(irq_is_active(m, 0, 40));
	assert_int_equal(ack1(m, 0), 40);
	assert_int_equal(errors_of_all_kinds(m), 0);
	machine_stop(m);
}

static void dir_works_from_another_vcpu(void **state)
{
	struct machine *m = machine_open(2);

	(void)state;
	icc_write(m, 0, VGIC_ICC_CTLR_EL1, ICC_CTLR_EOIMODE);
	icc_write(m, 1, VGIC_ICC_CTLR_EL1, ICC_CTLR_EOIMODE);
	raise(m, 40, 1, 0x80);
	irq_set_up(m, 0, 27, 1, 0x90);
	irq_write_bit(m, 0, GICD_ISPENDR, 27);
	assert_int_equal(ack1(m, 0), 40);
	eoi1(m, 0, 40);
	assert_int_equal(ack1(m, 0), 27);
	eoi1(m, 0, 27);
	icc_write(m, 1, VGIC_ICC_DIR_EL1, 40);
	assert_false(irq_is_active(m, 0, 40));
	assert_int_equal(errors_of(m, VGIC_GUEST_DIR_UNEXPECTED), 0);
	/* A PPI is another one on each vCPU. */
	icc_write(m, 1, VGIC_ICC_DIR_EL1, 27);
	assert_true(irq_is_active(m, 0, 27));
	assert_int_equal(errors_of(m, VGIC_GUEST_DIR_UNEXPECTED), 1);
	icc_write(m, 0, VGIC_ICC_DIR_EL1, 27);
	assert_false(irq_is_active(m, 0, 27));
	machine_stop(m);
}

static void dir_of_what_is_not_active_is_counted(void **state)
{
	static const uint32_t odd[] = { 41, 3, 287, 288, 1019, 1020, 1023, 8192 };
	struct machine *m = machine_open(1);

	(void)state;
	icc_write(m, 0, VGIC_ICC_CTLR_EL1, ICC_CTLR_EOIMODE);
	raise(m, 40, 1, 0x80);
	assert_int_equal(ack1(m, 0), 40);
	for (uint32_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
		icc_write(m, 0, VGIC_ICC_DIR_EL1, odd[i]);
		assert_int_equal(errors_of(m, VGIC_GUEST_DIR_UNEXPECTED), i + 1);
	}
	assert_true(irq_is_active(m, 0, 40));
	assert_int_equal(icc_read(m, 0, VGIC_ICC_RPR_EL1), 0x80);
	machine_stop(m);
}

static void dir_without_split_mode_is_ignored(void **state)
{
	struct machine *m = machine_open(1);

	(void)state;
	raise(m, 40, 1, 0x80);
	assert_int_equal(ack1(m, 0), 40);
	icc_write(m, 0, VGIC_ICC_DIR_EL1, 40);
	assert_true(irq_is_active(m, 0, 40));
	assert_int_equal(errors_of(m, VGIC_GUEST_DIR_UNEXPECTED), 1);
	machine_stop(m);
}

static void eoi_with_nothing_active_changes_nothing(void **state)
{
	struct machine *m = machine_open(1);

	(void)state;
	irq_set_up(m, 0, 40, 1, 0x80);
	irq_write_bit(m, 0, GICD_ISACTIVER, 40);
	eoi1(m, 0, 40);
	eoi0(m, 0, 40);
	eoi1(m, 0, 8192);
	assert_true(irq_is_active(m, 0, 40));
	assert_int_equal(icc_read(m, 0, VGIC_ICC_RPR_EL1), 0xff);
	assert_int_equal(errors_of(m, VGIC_GUEST_EOI_UNEXPECTED), 3);
	machine_stop(m);
}

static void eoi_of_special_intids_is_ignored(void **state)
{
	static const uint32_t special[] = { 1020, 1021, 1022, 1023, 1024, 4096, 8191 };
	struct machine *m = machine_open(1);

	(void)state;
	raise(m, 40, 1, 0x80);
	assert_int_equal(ack1(m, 0), 40);
	for (size_t i = 0; i < sizeof(special) / sizeof(special[0]); i++) {
		eoi1(m, 0, special[i]);
		eoi0(m, 0, special[i]);
	}
	assert_int_equal(icc_read(m, 0, VGIC_ICC_RPR_EL1), 0x80);
	assert_true(irq_is_active(m, 0, 40));
	assert_int_equal(errors_of_all_kinds(m), 0);
	machine_stop(m);
}

static void eoi_of_the_other_group_is_ignored(void **state)
{
	struct machine *m = machine_open(1);

	(void)state;
	raise(m, 40, 1, 0x80);
	assert_int_equal(ack1(m, 0), 40);
	eoi0(m, 0, 40);
	assert_true(irq_is_active(m, 0, 40));
	assert_int_equal(icc_read(m, 0, VGIC_ICC_RPR_EL1), 0x80);
	assert_int_equal(errors_of(m, VGIC_GUEST_EOI_UNEXPECTED), 1);
	/* Group 0 on top: now it is EOIR1 that has to wait. */
	raise(m, 41, 0, 0x40);
	assert_int_equal(ack0(m, 0), 41);
	eoi1(m, 0, 40);
	assert_true(irq_is_active(m, 0, 40));
	assert_int_equal(icc_read(m, 0, VGIC_ICC_RPR_EL1), 0x40);
	assert_int_equal(errors_of(m, VGIC_GUEST_EOI_UNEXPECTED), 2);
	eoi0(m, 0, 41);
	eoi1(m, 0, 40);
	assert_int_equal(icc_read(m, 0, VGIC_ICC_RPR_EL1), 0xff);
	machine_stop(m);
}

static void eoi_of_another_interrupt_drops_and_is_counted(void **state)
{
	struct machine *m = machine_open(1);

	(void)state;
	raise(m, 40, 1, 0x80);
	assert_int_equal(ack1(m, 0), 40);
	eoi1(m, 0, 41);
	assert_int_equal(icc_read(m, 0, VGIC_ICC_RPR_EL1), 0xff);
	assert_true(irq_is_active(m, 0, 40));
	assert_int_equal(errors_of(m, VGIC_GUEST_EOI_UNEXPECTED), 1);
	irq_write_bit(m, 0, GICD_ICACTIVER, 40);
	assert_false(irq_is_active(m, 0, 40));
	machine_stop(m);
}

static void eoi_takes_24_bits_of_intid(void **state)
{
	struct machine *m = machine_open(1);

	(void)state;
	raise(m, 40, 1, 0x80);
	assert_int_equal(ack1(m, 0), 40);
	icc_write(m, 0, VGIC_ICC_EOIR1_EL1, 0xffffffffff000000 | 40);
	assert_false(irq_is_active(m, 0, 40));
	assert_int_equal(icc_read(m, 0, VGIC_ICC_RPR_EL1), 0xff);
	machine_stop(m);
}

/* The same priority active in both groups: Group 0 counts as the higher one. */
static void tie_of_active_priorities_belongs_to_group0(void **state)
{
	struct machine *m = machine_open(1);

	(void)state;
	icc_write(m, 0, VGIC_ICC_AP0R0_EL1, 1u << 16);
	icc_write(m, 0, VGIC_ICC_AP1R0_EL1, 1u << 16);
	eoi1(m, 0, 40);
	assert_int_equal(icc_read(m, 0, VGIC_ICC_AP1R0_EL1), 1u << 16);
	assert_int_equal(errors_of(m, VGIC_GUEST_EOI_UNEXPECTED), 1);
	icc_write(m, 0, VGIC_ICC_CTLR_EL1, ICC_CTLR_EOIMODE);
	eoi0(m, 0, 40);
	assert_int_equal(icc_read(m, 0, VGIC_ICC_AP0R0_EL1), 0);
	assert_int_equal(icc_read(m, 0, VGIC_ICC_AP1R0_EL1), 1u << 16);
	eoi1(m, 0, 40);
	assert_int_equal(icc_read(m, 0, VGIC_ICC_AP1R0_EL1), 0);
	assert_int_equal(errors_of(m, VGIC_GUEST_EOI_UNEXPECTED), 1);
	machine_stop(m);
}

static void active_priorities_can_be_written(void **state)
{
	struct machine *m = machine_open(1);

	(void)state;
	icc_write(m, 0, VGIC_ICC_AP1R0_EL1, 0xffffffff00100000);
	assert_int_equal(icc_read(m, 0, VGIC_ICC_AP1R0_EL1), 0x00100000);
	assert_int_equal(icc_read(m, 0, VGIC_ICC_RPR_EL1), 0xa0);
	raise(m, 40, 1, 0xa0);
	assert_int_equal(lines_of(m, 0), 0);
	icc_write(m, 0, VGIC_ICC_AP0R0_EL1, 2);
	assert_int_equal(icc_read(m, 0, VGIC_ICC_RPR_EL1), 8);
	/* The lowest active priority is not the idle one. */
	icc_write(m, 0, VGIC_ICC_AP0R0_EL1, 0);
	icc_write(m, 0, VGIC_ICC_AP1R0_EL1, 1u << 31);
	assert_int_equal(icc_read(m, 0, VGIC_ICC_RPR_EL1), 0xf8);
	assert_int_equal(lines_of(m, 0), VGIC_LINE_IRQ);
	icc_write(m, 0, VGIC_ICC_AP0R0_EL1, 0);
	icc_write(m, 0, VGIC_ICC_AP1R0_EL1, 0);
	assert_int_equal(lines_of(m, 0), VGIC_LINE_IRQ);
	machine_stop(m);
}

/* ---- Accesses that are UNDEFINED ---- */

static void wrong_direction_is_undefined(void **state)
{
	static const uint32_t read_only[] = { VGIC_ICC_IAR0_EL1, VGIC_ICC_IAR1_EL1, VGIC_ICC_HPPIR0_EL1,
					      VGIC_ICC_HPPIR1_EL1, VGIC_ICC_RPR_EL1 };
	static const uint32_t write_only[] = { VGIC_ICC_EOIR0_EL1, VGIC_ICC_EOIR1_EL1, VGIC_ICC_DIR_EL1,
					       VGIC_ICC_SGI0R_EL1, VGIC_ICC_SGI1R_EL1, VGIC_ICC_ASGI1R_EL1 };
	struct machine *m = machine_open(1);
	uint64_t value = 0x1234;

	(void)state;
	raise(m, 40, 1, 0x80);
	for (size_t i = 0; i < sizeof(read_only) / sizeof(read_only[0]); i++)
		assert_int_equal(vgic_icc_write(vcpu_of(m, 0), read_only[i], 40), -EACCES);
	for (size_t i = 0; i < sizeof(write_only) / sizeof(write_only[0]); i++)
		assert_int_equal(vgic_icc_read(vcpu_of(m, 0), write_only[i], &value), -EACCES);
	assert_int_equal(value, 0x1234);
	assert_int_equal(errors_of(m, VGIC_GUEST_ICC_UNDEFINED), 11);
	assert_int_equal(ack1(m, 0), 40);
	machine_stop(m);
}

/* Five bits of priority are one word of active priorities: the others do not exist. */
static void further_active_priority_registers_are_undefined(void **state)
{
	struct machine *m = machine_open(1);
	uint64_t value = 0;

	(void)state;
	for (uint32_t n = 1; n <= 3; n++) {
		assert_int_equal(vgic_icc_read(vcpu_of(m, 0), VGIC_SYSREG(3, 0, 12, 8, 4 + n), &value), -EACCES);
		assert_int_equal(vgic_icc_write(vcpu_of(m, 0), VGIC_SYSREG(3, 0, 12, 8, 4 + n), 0), -EACCES);
		assert_int_equal(vgic_icc_read(vcpu_of(m, 0), VGIC_SYSREG(3, 0, 12, 9, n), &value), -EACCES);
		assert_int_equal(vgic_icc_write(vcpu_of(m, 0), VGIC_SYSREG(3, 0, 12, 9, n), 0), -EACCES);
	}
	assert_int_equal(errors_of(m, VGIC_GUEST_ICC_UNDEFINED), 12);
	machine_stop(m);
}

/* Every encoding: those of the GIC answer, and no other one does. */
static void only_the_gics_encodings_answer(void **state)
{
	static const uint32_t regs[] = {
		VGIC_ICC_PMR_EL1,
		VGIC_ICC_IAR0_EL1,
		VGIC_ICC_EOIR0_EL1,
		VGIC_ICC_HPPIR0_EL1,
		VGIC_ICC_BPR0_EL1,
		VGIC_ICC_AP0R0_EL1,
		VGIC_ICC_AP1R0_EL1,
		VGIC_ICC_DIR_EL1,
		VGIC_ICC_RPR_EL1,
		VGIC_ICC_SGI1R_EL1,
		VGIC_ICC_ASGI1R_EL1,
		VGIC_ICC_SGI0R_EL1,
		VGIC_ICC_IAR1_EL1,
		VGIC_ICC_EOIR1_EL1,
		VGIC_ICC_HPPIR1_EL1,
		VGIC_ICC_BPR1_EL1,
		VGIC_ICC_CTLR_EL1,
		VGIC_ICC_SRE_EL1,
		VGIC_ICC_IGRPEN0_EL1,
		VGIC_ICC_IGRPEN1_EL1,
		VGIC_SYSREG(3, 0, 12, 8, 5),
		VGIC_SYSREG(3, 0, 12, 8, 6),
		VGIC_SYSREG(3, 0, 12, 8, 7),
		VGIC_SYSREG(3, 0, 12, 9, 1),
		VGIC_SYSREG(3, 0, 12, 9, 2),
		VGIC_SYSREG(3, 0, 12, 9, 3),
	};
	struct machine *m = machine_native(1);
	uint64_t value;

	(void)state;
	for (uint32_t reg = 0; reg <= 0x1ffff; reg++) {
		bool is_ours = false;

		for (size_t i = 0; i < sizeof(regs) / sizeof(regs[0]); i++)
			is_ours |= regs[i] == reg;
		assert_int_equal(vgic_icc_read(vcpu_of(m, 0), reg, &value) != -ENOENT, is_ours);
		assert_int_equal(vgic_icc_write(vcpu_of(m, 0), reg, 0) != -ENOENT, is_ours);
	}
	assert_int_equal(vgic_icc_read(vcpu_of(m, 0), 0x80000000 | VGIC_ICC_PMR_EL1, &value), -ENOENT);
	assert_int_equal(vgic_icc_read(vcpu_of(m, 0), UINT32_MAX, &value), -ENOENT);
	machine_stop(m);
}

static void iss_of_a_trap_gives_the_encoding(void **state)
{
	/* MSR ICC_SGI1R_EL1, X5 trapped: op0 3, op2 5, op1 0, CRn 12, Rt 5, CRm 11, direction write. */
	const uint32_t iss = 3u << 20 | 5u << 17 | 0u << 14 | 12u << 10 | 5u << 5 | 11u << 1;

	(void)state;
	assert_int_equal(VGIC_SYSREG_FROM_ISS(iss), VGIC_ICC_SGI1R_EL1);
	assert_int_equal(VGIC_SYSREG_FROM_ISS(iss | 1), VGIC_ICC_SGI1R_EL1);
	assert_int_equal(VGIC_ICC_SGI1R_EL1, 0xc65d);
}

/* ---- Warm reset ---- */

static void vcpu_reset_is_of_the_cpu_interface_alone(void **state)
{
	struct machine *m = machine_open(2);

	(void)state;
	raise(m, 40, 1, 0x80);
	irq_set_up(m, 0, 3, 1, 0x90);
	irq_write_bit(m, 0, GICD_ISPENDR, 3);
	irq_set_up(m, 0, 27, 1, 0xa0);
	irq_write_bit(m, 0, GICD_ISACTIVER, 27);
	assert_int_equal(ack1(m, 0), 40);
	icc_write(m, 0, VGIC_ICC_BPR0_EL1, 4);
	icc_write(m, 0, VGIC_ICC_BPR1_EL1, 5);
	icc_write(m, 0, VGIC_ICC_CTLR_EL1, 3);
	vgic_vcpu_reset(vcpu_of(m, 0));
	assert_int_equal(icc_read(m, 0, VGIC_ICC_PMR_EL1), 0);
	assert_int_equal(icc_read(m, 0, VGIC_ICC_BPR0_EL1), 2);
	assert_int_equal(icc_read(m, 0, VGIC_ICC_BPR1_EL1), 3);
	assert_int_equal(icc_read(m, 0, VGIC_ICC_CTLR_EL1) & 3, 0);
	assert_int_equal(icc_read(m, 0, VGIC_ICC_IGRPEN0_EL1), 0);
	assert_int_equal(icc_read(m, 0, VGIC_ICC_IGRPEN1_EL1), 0);
	assert_int_equal(icc_read(m, 0, VGIC_ICC_RPR_EL1), 0xff);
	assert_int_equal(icc_read(m, 0, VGIC_ICC_AP1R0_EL1), 0);
	assert_int_equal(lines_of(m, 0), 0);
	/* Redistributor and distributor keep everything. */
	assert_true(irq_is_active(m, 0, 40));
	assert_true(irq_is_pending(m, 0, 3));
	assert_true(irq_is_active(m, 0, 27));
	assert_true(irq_read_bit(m, 0, GICD_ISENABLER, 3));
	assert_int_equal(dist_read(m, GICD_CTLR) & 3, 3);
	assert_int_equal(icc_read(m, 1, VGIC_ICC_PMR_EL1), 0xf8);
	icc_write(m, 0, VGIC_ICC_PMR_EL1, 0xf8);
	icc_write(m, 0, VGIC_ICC_IGRPEN1_EL1, 1);
	assert_int_equal(ack1(m, 0), 3);
	machine_stop(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(acknowledge_makes_active_and_raises_the_running_priority),
		cmocka_unit_test(group0_is_fiq_and_group1_is_irq),
		cmocka_unit_test(only_the_best_of_both_groups_is_signalled),
		cmocka_unit_test(equal_priority_favours_group0),
		cmocka_unit_test(hppi_without_priority_hides_the_other_group),
		cmocka_unit_test(hppir_sees_past_mask_and_running_priority),
		cmocka_unit_test(disabled_group_is_not_the_hppi),
		cmocka_unit_test(priority_mask_is_strict),
		cmocka_unit_test(number_of_priority_bits_agrees),
		cmocka_unit_test(lowest_priority_is_never_signalled),
		cmocka_unit_test(equal_priority_does_not_preempt),
		cmocka_unit_test(preemption_nests_and_unwinds),
		cmocka_unit_test(binary_point_of_group1_decides_about_preemption),
		cmocka_unit_test(binary_point_of_group0_decides_about_preemption),
		cmocka_unit_test(common_binary_point_rules_both_groups),
		cmocka_unit_test(active_and_pending_is_not_signalled_before_deactivation),
		cmocka_unit_test(any_number_may_be_active),
		cmocka_unit_test(all_pending_interrupts_are_delivered_once_each),
		cmocka_unit_test(split_mode_drops_and_deactivates_apart),
		cmocka_unit_test(dir_works_from_another_vcpu),
		cmocka_unit_test(dir_of_what_is_not_active_is_counted),
		cmocka_unit_test(dir_without_split_mode_is_ignored),
		cmocka_unit_test(eoi_with_nothing_active_changes_nothing),
		cmocka_unit_test(eoi_of_special_intids_is_ignored),
		cmocka_unit_test(eoi_of_the_other_group_is_ignored),
		cmocka_unit_test(eoi_of_another_interrupt_drops_and_is_counted),
		cmocka_unit_test(eoi_takes_24_bits_of_intid),
		cmocka_unit_test(tie_of_active_priorities_belongs_to_group0),
		cmocka_unit_test(active_priorities_can_be_written),
		cmocka_unit_test(wrong_direction_is_undefined),
		cmocka_unit_test(further_active_priority_registers_are_undefined),
		cmocka_unit_test(only_the_gics_encodings_answer),
		cmocka_unit_test(iss_of_a_trap_gives_the_encoding),
		cmocka_unit_test(vcpu_reset_is_of_the_cpu_interface_alone),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("cpu_interface", tests, NULL, NULL);
}
