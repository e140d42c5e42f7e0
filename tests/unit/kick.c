/* SPDX-License-Identifier: MIT */
/*
 * Kicks and masks: which interrupts make the library call kick(), and that it is
 * called once until the vCPU has looked.
 */
#include "unit.h"

#include "gic_regs.h"
#include "irq_change.h"

#define SPI(u, n) (&(u)->vgic->spis[(n)])

/* An enabled, edge-triggered interrupt at a level (group * 32 + priority) of a vCPU. */
static struct irq *prepare(struct unit *u, struct irq *irq, uint32_t vcpu, unsigned level)
{
	irq_change(u->vgic, irq, irq_set_bits, IRQ_ENABLED | IRQ_EDGE | (level / 32 ? IRQ_GROUP1 : 0));
	irq_change(u->vgic, irq, irq_set_priority, level % 32 << 3);
	irq_change(u->vgic, irq, irq_route_to, vcpu);
	return irq;
}

static void signal_irq(struct unit *u, struct irq *irq)
{
	irq_change(u->vgic, irq, irq_latch, 0);
}

/* Everything that was kicked so far is forgotten, and every vCPU has looked. */
static void settle(struct unit *u)
{
	for (uint32_t i = 0; i < u->vgic->num_vcpus; i++) {
		vgic_poll_lines(unit_vcpu(u, i));
		u->kicks[i] = 0;
	}
	u->num_kicks = 0;
}

static bool is_kicked(const struct unit *u, uint32_t vcpu)
{
	return load_relaxed(&unit_vcpu(u, vcpu)->pending.kicked);
}

/* ---- Filing: may the level be signalled? ---- */

static void filing_asks_both_masks_about_its_own_level(void **state)
{
	struct unit *u = unit_start(2, 0, 16);
	struct vgic_vcpu *vcpu = unit_vcpu(u, 1);
	struct rng rng = { 40 };

	(void)state;
	for (unsigned level = 0; level < 64; level++) {
		const uint64_t bit = only_level(level);
		const uint64_t masks[] = { 0, bit, ~bit, ALL_LEVELS, rng_next(&rng) | bit, rng_next(&rng) & ~bit };

		for (unsigned i = 0; i < 36; i++) {
			const uint64_t own = masks[i % 6], dist = masks[i / 6];

			store_relaxed(&vcpu->pending.mask, own);
			store_relaxed(&u->vgic->group_mask, dist);
			store_relaxed(&unit_vcpu(u, 0)->pending.mask, ~own);
			/* The slot first, then the maps: the answer is the same. */
			store_relaxed(&vcpu->pending.slot, 0);
			assert_int_equal(pending_file(vcpu, 40, level), (own & bit) && (dist & bit));
			assert_int_equal(pending_file(vcpu, 41, level), (own & bit) && (dist & bit));
			assert_true(pending_is_hinted(&vcpu->pending, 40, level));
			assert_true(pending_is_hinted(&vcpu->pending, 41, level));
		}
	}
	assert_int_equal(u->num_kicks, 0);
	unit_stop(u);
}

static void first_hint_goes_into_the_slot_the_others_into_the_maps(void **state)
{
	struct unit *u = unit_start(1, 0, 16);
	struct pending *p = &unit_vcpu(u, 0)->pending;
	uint64_t slot;

	(void)state;
	pending_file(unit_vcpu(u, 0), 100, 7);
	slot = load_relaxed(&p->slot);
	assert_int_not_equal(slot, 0);
	assert_int_equal(load_relaxed(&p->summary), 0);
	assert_true(pending_is_hinted(p, 100, 7));
	assert_false(pending_is_hinted(p, 100, 8));
	assert_false(pending_is_hinted(p, 101, 7));

	pending_file(unit_vcpu(u, 0), 130, 9);
	assert_int_equal(load_relaxed(&p->slot), slot);
	assert_int_equal(load_relaxed(&p->summary), only_level(9));
	assert_int_equal(load_relaxed(&p->leaf[2]), UINT64_C(1) << 2);
	assert_int_equal(load_relaxed(&p->l1[9 * p->num_l1]), UINT64_C(1) << 2);

	/* The very hint that the slot holds is not taken for filed: the owner may be about to empty it. */
	pending_file(unit_vcpu(u, 0), 100, 7);
	assert_int_equal(load_relaxed(&p->slot), slot);
	assert_int_equal(load_relaxed(&p->summary), only_level(9) | only_level(7));
	assert_int_equal(load_relaxed(&p->leaf[1]), UINT64_C(1) << 36);
	unit_stop(u);
}

/* ---- Kicks ---- */

static void kicked_once_until_it_has_looked(void **state)
{
	struct unit *u = unit_start(2, 0, 16);

	(void)state;
	unit_open(u);
	settle(u);
	for (uint32_t i = 0; i < 8; i++)
		prepare(u, SPI(u, i), 1, 35);
	for (uint32_t i = 0; i < 8; i++) {
		signal_irq(u, SPI(u, i));
		assert_int_equal(u->kicks[1], 1);
		assert_true(is_kicked(u, 1));
	}
	assert_int_equal(u->kicks[0], 0);

	/* Each way to look answers the kick; the next signal kicks again. */
	for (int way = 0; way < 3; way++) {
		const unsigned lines = way == 0 ? vgic_enter_guest(unit_vcpu(u, 1)) :
				       way == 1 ? vgic_prepare_wait(unit_vcpu(u, 1)) :
						  vgic_poll_lines(unit_vcpu(u, 1));

		assert_int_equal(lines, VGIC_LINE_IRQ);
		assert_false(is_kicked(u, 1));
		vgic_finish_wait(unit_vcpu(u, 1));
		prepare(u, SPI(u, 10), 1, 36);
		irq_change(u->vgic, SPI(u, 10), irq_unlatch, 0);
		signal_irq(u, SPI(u, 10));
		assert_int_equal(u->kicks[1], 2 + way);
		signal_irq(u, prepare(u, SPI(u, 11 + way), 1, 36));
		assert_int_equal(u->kicks[1], 2 + way);
	}
	assert_int_equal(u->num_kicks, u->kicks[1]);
	unit_stop(u);
}

static void kicks_are_counted(void **state)
{
	struct unit *u = unit_start(3, 0, 16);
	struct vgic_stats stats = { .size = sizeof(stats) };

	(void)state;
	assert_int_equal(vgic_get_stats(u->vgic, &stats), 0);
	assert_int_equal(stats.kicks, 0);
	unit_open(u);
	settle(u);
	assert_int_equal(vgic_get_stats(u->vgic, &stats), 0);
	const uint64_t before = stats.kicks;
	for (uint32_t v = 0; v < 3; v++) {
		signal_irq(u, prepare(u, SPI(u, v), v, 1));
		signal_irq(u, prepare(u, SPI(u, 8 + v), v, 1));
	}
	assert_int_equal(u->num_kicks, 3);
	assert_int_equal(vgic_get_stats(u->vgic, &stats), 0);
	assert_int_equal(stats.kicks - before, 3);
	unit_stop(u);
}

static void signal_of_a_pending_interrupt_kicks_nobody(void **state)
{
	struct unit *u = unit_start(1, 0, 16);

	(void)state;
	unit_open(u);
	signal_irq(u, prepare(u, SPI(u, 0), 0, 4));
	settle(u);
	for (int i = 0; i < 3; i++)
		signal_irq(u, SPI(u, 0));
	assert_int_equal(u->num_kicks, 0);
	unit_stop(u);
}

/* ICC_PMR lets through the priorities above it, not its own. */
static void kick_obeys_the_priority_mask(void **state)
{
	struct unit *u = unit_start(1, 0, 16);

	(void)state;
	unit_open(u);
	for (unsigned pmr = 0; pmr < 32; pmr++) {
		for (unsigned level = 0; level < 64; level++) {
			const bool above = level % 32 < pmr;

			assert_int_equal(vgic_icc_write(unit_vcpu(u, 0), VGIC_ICC_PMR_EL1, pmr << 3), 0);
			prepare(u, SPI(u, level), 0, level);
			settle(u);
			signal_irq(u, SPI(u, level));
			assert_int_equal(u->num_kicks, above);
			irq_change(u->vgic, SPI(u, level), irq_unlatch, 0);
		}
	}
	unit_stop(u);
}

/* While one is active, only what can preempt it is worth a kick. */
static void kick_obeys_the_running_priority(void **state)
{
	struct unit *u = unit_start(1, 0, 16);
	uint64_t intid;

	(void)state;
	unit_open(u);
	signal_irq(u, prepare(u, SPI(u, 0), 0, 32 + 10));
	assert_int_equal(vgic_icc_read(unit_vcpu(u, 0), VGIC_ICC_IAR1_EL1, &intid), 0);
	assert_int_equal(intid, 32);
	settle(u);
	signal_irq(u, prepare(u, SPI(u, 1), 0, 32 + 10));
	signal_irq(u, prepare(u, SPI(u, 2), 0, 10));
	signal_irq(u, prepare(u, SPI(u, 3), 0, 32 + 20));
	assert_int_equal(u->num_kicks, 0);
	assert_int_equal(vgic_poll_lines(unit_vcpu(u, 0)), 0);
	signal_irq(u, prepare(u, SPI(u, 4), 0, 32 + 9));
	assert_int_equal(u->num_kicks, 1);
	assert_int_equal(vgic_poll_lines(unit_vcpu(u, 0)), VGIC_LINE_IRQ);
	signal_irq(u, prepare(u, SPI(u, 5), 0, 9));
	assert_int_equal(u->num_kicks, 2);
	assert_int_equal(vgic_poll_lines(unit_vcpu(u, 0)), VGIC_LINE_FIQ);
	unit_stop(u);
}

static void kick_obeys_the_group_enables(void **state)
{
	struct unit *u = unit_start(1, 0, 16);
	struct vgic_vcpu *vcpu = unit_vcpu(u, 0);

	(void)state;
	unit_open(u);
	for (unsigned closed = 0; closed < 2; closed++) {
		const uint32_t reg = closed ? VGIC_ICC_IGRPEN1_EL1 : VGIC_ICC_IGRPEN0_EL1;

		prepare(u, SPI(u, 20 + closed), 0, closed * 32 + 3);
		prepare(u, SPI(u, 30 + closed), 0, (1 - closed) * 32 + 3);
		/* At the CPU interface */
		assert_int_equal(vgic_icc_write(vcpu, reg, 0), 0);
		settle(u);
		signal_irq(u, SPI(u, 20 + closed));
		assert_int_equal(u->num_kicks, 0);
		signal_irq(u, SPI(u, 30 + closed));
		assert_int_equal(u->num_kicks, 1);
		irq_change(u->vgic, SPI(u, 20 + closed), irq_unlatch, 0);
		irq_change(u->vgic, SPI(u, 30 + closed), irq_unlatch, 0);
		assert_int_equal(vgic_icc_write(vcpu, reg, 1), 0);
		/* At the distributor */
		assert_int_equal(vgic_dist_write(u->vgic, GICD_CTLR, 4,
						 closed ? GICD_CTLR_ENABLE_GRP0 : GICD_CTLR_ENABLE_GRP1),
				 0);
		settle(u);
		signal_irq(u, SPI(u, 20 + closed));
		assert_int_equal(u->num_kicks, 0);
		signal_irq(u, SPI(u, 30 + closed));
		assert_int_equal(u->num_kicks, 1);
		irq_change(u->vgic, SPI(u, 20 + closed), irq_unlatch, 0);
		irq_change(u->vgic, SPI(u, 30 + closed), irq_unlatch, 0);
		unit_open_dist(u);
	}
	unit_stop(u);
}

/* Enabling a group at the distributor kicks exactly those vCPUs that have something to look at, wherever its hint is. */
static void enabling_a_group_kicks_who_has_hints(void **state)
{
	struct unit *u = unit_start(6, 0, 16);

	(void)state;
	for (uint32_t i = 0; i < 6; i++)
		unit_open_cpuif(unit_vcpu(u, i));
	assert_int_equal(vgic_icc_write(unit_vcpu(u, 4), VGIC_ICC_PMR_EL1, 5 << 3), 0);
	signal_irq(u, prepare(u, SPI(u, 0), 1, 6));  /* in the slot */
	signal_irq(u, prepare(u, SPI(u, 1), 2, 40)); /* in the slot, the other group */
	signal_irq(u, prepare(u, SPI(u, 2), 2, 8));  /* in the maps */
	signal_irq(u, prepare(u, SPI(u, 3), 3, 41)); /* the other group alone */
	signal_irq(u, prepare(u, SPI(u, 4), 4, 5));  /* masked by priority */
	signal_irq(u, prepare(u, SPI(u, 5), 5, 0));
	settle(u);
	assert_int_equal(vgic_dist_write(u->vgic, GICD_CTLR, 4, GICD_CTLR_ENABLE_GRP0), 0);
	for (uint32_t i = 0; i < 6; i++)
		assert_int_equal(u->kicks[i], i == 1 || i == 2 || i == 5);
	/* What was enabled before is no news. */
	settle(u);
	assert_int_equal(vgic_dist_write(u->vgic, GICD_CTLR, 4, GICD_CTLR_ENABLE_GRP0 | GICD_CTLR_ENABLE_GRP1), 0);
	for (uint32_t i = 0; i < 6; i++)
		assert_int_equal(u->kicks[i], i == 2 || i == 3);
	settle(u);
	assert_int_equal(vgic_dist_write(u->vgic, GICD_CTLR, 4, GICD_CTLR_ENABLE_GRP0 | GICD_CTLR_ENABLE_GRP1), 0);
	assert_int_equal(vgic_dist_write(u->vgic, GICD_CTLR, 4, 0), 0);
	assert_int_equal(u->num_kicks, 0);
	unit_stop(u);
}

/* ---- Moving and withdrawing ---- */

static void moving_an_interrupt_kicks_where_it_goes(void **state)
{
	struct unit *u = unit_start(3, 0, 16);
	struct irq *irq = SPI(u, 9);

	(void)state;
	unit_open(u);
	signal_irq(u, prepare(u, irq, 0, 12));
	settle(u);
	irq_change(u->vgic, irq, irq_route_to, 2);
	assert_int_equal(u->kicks[2], 1);
	assert_int_equal(u->num_kicks, 1);
	settle(u);
	/* To where it is already: no news. */
	irq_change(u->vgic, irq, irq_route_to, 2);
	irq_change(u->vgic, irq, irq_set_priority, 12 << 3);
	irq_change(u->vgic, irq, irq_set_bits, IRQ_ENABLED);
	assert_int_equal(u->num_kicks, 0);
	irq_change(u->vgic, irq, irq_set_priority, 2 << 3);
	assert_int_equal(u->kicks[2], 1);
	settle(u);
	irq_change(u->vgic, irq, irq_set_bits, IRQ_GROUP1);
	assert_int_equal(u->kicks[2], 1);
	settle(u);
	/* To nobody: nobody is kicked, and nothing is left to see. */
	irq_change(u->vgic, irq, irq_route_to, IRQ_NO_TARGET);
	assert_int_equal(u->num_kicks, 0);
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(vgic_poll_lines(unit_vcpu(u, i)), 0);
	irq_change(u->vgic, irq, irq_route_to, 1);
	assert_int_equal(u->kicks[1], 1);
	assert_int_equal(u->num_kicks, 1);
	assert_int_equal(vgic_poll_lines(unit_vcpu(u, 1)), VGIC_LINE_IRQ);
	unit_stop(u);
}

static void withdrawal_kicks_only_who_watches(void **state)
{
	struct unit *u = unit_start(2, 0, 16);
	struct irq *irq = SPI(u, 9);

	(void)state;
	unit_open(u);
	prepare(u, irq, 0, 12);
	for (uint32_t watch = 0; watch < 2; watch++) {
		store_relaxed(&unit_vcpu(u, 0)->pending.watch, watch);
		signal_irq(u, irq);
		settle(u);
		irq_change(u->vgic, irq, irq_clear_bits, IRQ_ENABLED);
		assert_int_equal(u->kicks[0], watch);
		settle(u);
		/* It was not deliverable: nothing to withdraw. */
		irq_change(u->vgic, irq, irq_unlatch, 0);
		irq_change(u->vgic, irq, irq_set_bits, IRQ_ENABLED);
		assert_int_equal(u->num_kicks, 0);

		signal_irq(u, irq);
		settle(u);
		irq_change(u->vgic, irq, irq_route_to, 1);
		assert_int_equal(u->kicks[0], watch);
		assert_int_equal(u->kicks[1], 1);
		irq_change(u->vgic, irq, irq_unlatch, 0);
		irq_change(u->vgic, irq, irq_route_to, 0);
		assert_int_equal(u->kicks[0], watch);
		assert_int_equal(u->kicks[1], 1);
	}
	unit_stop(u);
}

/* With different binary points one group can hide the other: then, and only then, the CPU interface watches. */
static void cpu_interface_watches_while_a_group_may_hide_the_other(void **state)
{
	struct unit *u = unit_start(1, 0, 16);
	struct vgic_vcpu *vcpu = unit_vcpu(u, 0);
	uint64_t intid;

	(void)state;
	unit_open(u);
	assert_false(load_relaxed(&vcpu->pending.watch));
	/* Group 0 has no subpriority, Group 1 one bit of it: in Group 1, 11 has the group priority 10. */
	assert_int_equal(vgic_icc_write(vcpu, VGIC_ICC_CTLR_EL1, 0), 0);
	assert_int_equal(vgic_icc_write(vcpu, VGIC_ICC_BPR0_EL1, 2), 0);
	assert_int_equal(vgic_icc_write(vcpu, VGIC_ICC_BPR1_EL1, 4), 0);
	assert_false(load_relaxed(&vcpu->pending.watch));
	signal_irq(u, prepare(u, SPI(u, 0), 0, 11));
	assert_int_equal(vgic_icc_read(vcpu, VGIC_ICC_IAR0_EL1, &intid), 0);
	assert_int_equal(intid, 32);
	assert_true(load_relaxed(&vcpu->pending.watch));
	/* With 11 active, 11 of Group 1 preempts and 11 of Group 0 does not, but has the higher rank and hides the other. */
	signal_irq(u, prepare(u, SPI(u, 1), 0, 11));
	signal_irq(u, prepare(u, SPI(u, 2), 0, 32 + 11));
	settle(u);
	assert_int_equal(vgic_poll_lines(vcpu), 0);
	irq_change(u->vgic, SPI(u, 1), irq_unlatch, 0);
	assert_int_equal(u->num_kicks, 1);
	assert_int_equal(vgic_poll_lines(vcpu), VGIC_LINE_IRQ);
	assert_int_equal(vgic_icc_write(vcpu, VGIC_ICC_IGRPEN1_EL1, 0), 0);
	assert_false(load_relaxed(&vcpu->pending.watch));
	unit_stop(u);
}

static unsigned mirrored_lines;

static void mirror_lines(void *opaque, struct vgic_vcpu *vcpu, unsigned lines)
{
	(void)opaque;
	(void)vcpu;
	mirrored_lines = lines;
}

/* The other way round, an interrupt that hides another makes its line fall: a mirrored wire has to follow. */
static void mirrored_line_falls_when_its_interrupt_is_hidden(void **state)
{
	(void)state;
	for (int mirrors = 0; mirrors < 2; mirrors++) {
		struct unit *u = unit_start(1, 0, 16);
		struct vgic_vcpu *vcpu = unit_vcpu(u, 0);
		uint64_t intid;

		u->vgic->ops.line_changed = mirrors ? mirror_lines : NULL;
		unit_open(u);
		assert_int_equal(vgic_icc_write(vcpu, VGIC_ICC_CTLR_EL1, 0), 0);
		assert_int_equal(vgic_icc_write(vcpu, VGIC_ICC_BPR1_EL1, 4), 0);
		signal_irq(u, prepare(u, SPI(u, 0), 0, 11));
		assert_int_equal(vgic_icc_read(vcpu, VGIC_ICC_IAR0_EL1, &intid), 0);
		assert_int_equal(intid, 32);
		signal_irq(u, prepare(u, SPI(u, 2), 0, 32 + 11));
		settle(u);
		assert_int_equal(vgic_poll_lines(vcpu), VGIC_LINE_IRQ);
		/* Group 0, 11: cannot preempt, but goes first. */
		signal_irq(u, prepare(u, SPI(u, 1), 0, 11));
		assert_int_equal(u->num_kicks, mirrors);
		assert_int_equal(vgic_poll_lines(vcpu), 0);
		assert_int_equal(mirrored_lines, 0);
		/* With one binary point for both nothing is hidden, and what cannot preempt is not worth a kick. */
		assert_int_equal(vgic_icc_write(vcpu, VGIC_ICC_BPR1_EL1, 0), 0);
		settle(u);
		signal_irq(u, prepare(u, SPI(u, 3), 0, 11));
		assert_int_equal(u->num_kicks, 0);
		unit_stop(u);
	}
}

/* Off and on again: each time the vCPU has to look, even if nobody signals anything. */
static void power_changes_kick(void **state)
{
	struct unit *u = unit_start(2, 0, 16);

	(void)state;
	unit_open(u);
	signal_irq(u, prepare(u, SPI(u, 0), 1, 3));
	settle(u);
	vgic_vcpu_set_online(unit_vcpu(u, 1), true);
	assert_int_equal(u->num_kicks, 0);
	vgic_vcpu_set_online(unit_vcpu(u, 1), false);
	assert_int_equal(u->kicks[1], 1);
	assert_int_equal(vgic_poll_lines(unit_vcpu(u, 1)), 0);
	vgic_vcpu_set_online(unit_vcpu(u, 1), true);
	assert_int_equal(u->kicks[1], 2);
	assert_int_equal(u->kicks[0], 0);
	assert_int_equal(vgic_poll_lines(unit_vcpu(u, 1)), VGIC_LINE_FIQ);
	unit_stop(u);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(filing_asks_both_masks_about_its_own_level),
		cmocka_unit_test(first_hint_goes_into_the_slot_the_others_into_the_maps),
		cmocka_unit_test(kicked_once_until_it_has_looked),
		cmocka_unit_test(kicks_are_counted),
		cmocka_unit_test(signal_of_a_pending_interrupt_kicks_nobody),
		cmocka_unit_test(kick_obeys_the_priority_mask),
		cmocka_unit_test(kick_obeys_the_running_priority),
		cmocka_unit_test(kick_obeys_the_group_enables),
		cmocka_unit_test(enabling_a_group_kicks_who_has_hints),
		cmocka_unit_test(moving_an_interrupt_kicks_where_it_goes),
		cmocka_unit_test(withdrawal_kicks_only_who_watches),
		cmocka_unit_test(cpu_interface_watches_while_a_group_may_hide_the_other),
		cmocka_unit_test(mirrored_line_falls_when_its_interrupt_is_hidden),
		cmocka_unit_test(power_changes_kick),
	};

	return RUN_TESTS("kick", tests);
}
