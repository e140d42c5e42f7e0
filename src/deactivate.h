/* SPDX-License-Identifier: MIT */
/*
 * deactivate.h - the end of an interrupt's active state: by EOI, ICC_DIR or
 * ICACTIVER.
 *
 * The sources of a level-sensitive SPI that are *resampled* (irqfd.h) are lowered
 * by the same CAS that clears ACTIVE. There is no moment in which the interrupt is
 * inactive with their level still up, so it cannot come once more before the
 * device was asked; and as it is that CAS which decides who has lowered a source,
 * each rise of one is answered by one resample. No lock.
 */
#ifndef VGIC_DEACTIVATE_H
#define VGIC_DEACTIVATE_H

#include "irq_change.h"
#include "route.h"

/* @vcpu is NULL for an SPI. Returns false if the interrupt was not active. Any thread. */
static inline bool irq_deactivate_and_tell(struct vgic *vgic, struct vgic_vcpu *vcpu, struct irq *irq)
{
	const uint32_t resampled = load_acquire(&irq->resampled);
	const irq_word old = irq_change(vgic, irq, irq_deactivate, resampled);
	const uint32_t lowered = (uint32_t)(old >> IRQ_SOURCES_SHIFT) & resampled;

	if ((old & (IRQ_ACTIVE | IRQ_EDGE)) == IRQ_ACTIVE) {
		if (__builtin_expect(lowered != 0, 0))
			route_resample(vgic, irq->intid, lowered);
		if (vgic->ops.deactivated)
			vgic->ops.deactivated(vgic->opaque, vcpu, irq->intid);
	}
	return old & IRQ_ACTIVE;
}

#endif /* VGIC_DEACTIVATE_H */
