/* SPDX-License-Identifier: MIT */
/*
 * redist.h - the redistributors (GICR frames), as the rest of the library uses
 * them.
 */
#ifndef VGIC_REDIST_H
#define VGIC_REDIST_H

#include "frame.h"
#include "vgic_internal.h"

extern const struct frame redist_frame;

/* Put the redistributor's registers, SGIs and PPIs to their reset values. Under config_lock, as cpuif_reset(). */
void redist_reset(struct vgic_vcpu *vcpu);

/* An SGI or PPI was disabled: GICR_CTLR.RWP reads 1 until an acknowledge under way now has returned. */
void redist_note_disable(struct vgic_vcpu *vcpu);

#endif /* VGIC_REDIST_H */
