/* SPDX-License-Identifier: MIT */
/*
 * irq_change.h - the one way in which a state word changes, beside the acknowledge
 * (pending.c), reset and restore of LPIs (lpi.c), and restored words (state_restore.c).
 *
 * R1. A change ends in a successful compare-and-swap even if the word stays the
 * same: what a device wrote before its signal is visible to the vCPU whose
 * acknowledge consumes it only because signal and acknowledge are
 * read-modify-writes of one word. A signal that merely loaded the word, saw
 * PENDING and went away would order nothing.
 *
 * Afterwards the change is settled by what the CAS itself saw: a hint is filed if
 * the interrupt became deliverable, or moved while it was; a vCPU that watches is
 * kicked if it stopped being deliverable there.
 */
#ifndef VGIC_IRQ_CHANGE_H
#define VGIC_IRQ_CHANGE_H

#include "one_of_n.h"
#include "pending.h"
#include "vgic_internal.h"

/* It was deliverable at @w's place and is no longer. The other half of the order is in vcpu_evaluate_lines(). */
static inline void irq_withdrawn(struct vgic *vgic, irq_word w)
{
	struct vgic_vcpu *vcpu;

	if (irq_target(w) == IRQ_NO_TARGET)
		return;
	vcpu = vgic->vcpus[irq_target(w)];
	full_fence();
	if (load_relaxed(&vcpu->pending.watch))
		vcpu_kick(vcpu);
}

/* Act on a change from @old to @new. */
static inline void irq_settle(struct vgic *vgic, struct irq *irq, irq_word old, irq_word new)
{
	const bool moved = (old ^ new) & IRQ_PLACE_MASK;
	const bool was = irq_is_deliverable(old), is = irq_is_deliverable(new);

	if (is && (!was || moved) && irq_target(new) != IRQ_NO_TARGET) {
		struct vgic_vcpu *vcpu = vgic->vcpus[irq_target(new)];

		if (pending_file(vcpu, irq->number, irq_level(new)))
			vcpu_kick(vcpu);
	}
	if (was && (!is || moved))
		irq_withdrawn(vgic, old);
}

/*
 * Apply @transition with @arg; returns the word before. Any thread. Always inlined, so that each call is the one CAS
 * loop of its transition.
 */
static inline __attribute__((always_inline)) irq_word irq_change(struct vgic *vgic, struct irq *irq,
								 irq_transition transition, uint64_t arg)
{
	irq_word old, new;

	prefetch_for_write(&irq->word);
	old = load_relaxed(&irq->word);
	do {
		new = transition(old, arg);
		if (__builtin_expect((new &IRQ_ONE_OF_N) != 0, 0) && irq_is_deliverable(new) &&
		    !irq_is_deliverable(old))
			new = irq_set_target(new, one_of_n_select(vgic, irq, new));
	} while (!atomic_compare_exchange_weak_explicit(&irq->word, &old, new, memory_order_acq_rel,
							memory_order_relaxed));
	irq_settle(vgic, irq, old, new);
	if (__builtin_expect((new &IRQ_ONE_OF_N) != 0, 0) && irq_is_deliverable(new))
		one_of_n_recheck(vgic, irq);
	return old;
}

#endif /* VGIC_IRQ_CHANGE_H */
