/* SPDX-License-Identifier: MIT */
/*
 * one_of_n.h - which vCPU gets an SPI that is routed to any one of them
 * (GICD_IROUTER.Interrupt_Routing_Mode=1).
 *
 * A vCPU takes part for a group while it is online, not asleep (GICR_WAKER), has
 * the group enabled (ICC_IGRPEN) and does not decline (GICR_CTLR.DPG).
 */
#ifndef VGIC_ONE_OF_N_H
#define VGIC_ONE_OF_N_H

#include "vgic_internal.h"

/*
 * The vCPU for an interrupt that becomes deliverable with word @w: the next that
 * takes part, after the one that had it last. IRQ_NO_TARGET if none does. Any
 * thread; loads only.
 */
uint32_t one_of_n_select(const struct vgic *vgic, const struct irq *irq, irq_word w);

/* Select anew if the vCPU that has the interrupt does not take part (any more). Any thread. */
void one_of_n_recheck(struct vgic *vgic, struct irq *irq);

/* Something that decides whether @vcpu takes part has changed. Under config_lock. */
void one_of_n_update(struct vgic_vcpu *vcpu);

/* The same without looking at the SPIs, for who sets all of them anew afterwards. Returns whether something changed. */
bool one_of_n_set(struct vgic_vcpu *vcpu);

#endif /* VGIC_ONE_OF_N_H */
