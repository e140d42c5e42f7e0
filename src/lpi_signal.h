/* SPDX-License-Identifier: MIT */
/*
 * lpi_signal.h - signal the LPI that a translation leads to: the path of every MSI.
 *
 * Any thread, no lock. One CAS that checks the translation, the collection and the
 * redistributor all at once, on one snapshot of the state word.
 */
#ifndef VGIC_LPI_SIGNAL_H
#define VGIC_LPI_SIGNAL_H

#include "irq_change.h"
#include "lpi.h"

enum lpi_result {
	LPI_PENDING = 1, /* made pending, or was pending already */
	LPI_STALE,       /* the translation has been removed meanwhile */
	LPI_NOWHERE,     /* its collection is not mapped */
	LPI_HELD,        /* its redistributor has EnableLPIs=0 */
};

/*
 * Signal an LPI whose word is HELD; @word is that word. LPI_STALE if it has changed:
 * look again. See lpi.c.
 */
enum lpi_result lpi_signal_held(struct vgic *vgic, struct irq *irq, irq_word word);

/* An LPI became pending. */
static inline void lpi_settle_signal(struct vgic *vgic, const struct irq *irq, irq_word new)
{
	struct vgic_vcpu *vcpu;

	if (!irq_is_deliverable(new))
		return;
	vcpu = vgic->vcpus[irq_target(new)];
	if (pending_file(vcpu, irq->number, irq_level(new)))
		vcpu_kick(vcpu);
}

static inline enum lpi_result lpi_signal(struct vgic *vgic, uint64_t value)
{
	struct irq *irq = &vgic->lpis[value & TRANSLATION_LPI_MASK];
	const irq_word mapped = IRQ_MAPPED | (value & IRQ_GENERATION_MASK);
	irq_word old = load_relaxed(&irq->word);

	do {
		if ((old & (IRQ_MAPPED | IRQ_GENERATION_MASK)) != mapped)
			return LPI_STALE;
		if (irq_target(old) == IRQ_NO_TARGET)
			return LPI_NOWHERE;
		if (__builtin_expect((old & IRQ_HELD) != 0, 0))
			return lpi_signal_held(vgic, irq, old);
		/* R1: also if it is pending already. */
	} while (!atomic_compare_exchange_weak_explicit(&irq->word, &old, old | IRQ_PENDING, memory_order_acq_rel,
							memory_order_relaxed));
	if (!(old & IRQ_PENDING))
		lpi_settle_signal(vgic, irq, old | IRQ_PENDING);
	return LPI_PENDING;
}

/* The same, once, for an LPI that can be delivered. False if nothing was done: ask lpi_signal() why. */
static inline bool lpi_signal_at_once(struct vgic *vgic, uint64_t value)
{
	struct irq *irq = &vgic->lpis[value & TRANSLATION_LPI_MASK];
	const irq_word mapped = IRQ_MAPPED | (value & IRQ_GENERATION_MASK);
	irq_word old;

	prefetch_for_write(&irq->word);
	old = load_relaxed(&irq->word);
	do {
		if ((old & (IRQ_MAPPED | IRQ_HELD | IRQ_GENERATION_MASK)) != mapped || irq_target(old) == IRQ_NO_TARGET)
			return false;
	} while (!atomic_compare_exchange_weak_explicit(&irq->word, &old, old | IRQ_PENDING, memory_order_acq_rel,
							memory_order_relaxed));
	if (!(old & IRQ_PENDING))
		lpi_settle_signal(vgic, irq, old | IRQ_PENDING);
	return true;
}

#endif /* VGIC_LPI_SIGNAL_H */
