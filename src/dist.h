/* SPDX-License-Identifier: MIT */
/*
 * dist.h - the distributor (GICD frame), as the rest of the library uses it.
 */
#ifndef VGIC_DIST_H
#define VGIC_DIST_H

#include "frame.h"
#include "vgic_internal.h"

extern const struct frame dist_frame;

/* Put the distributor's registers and the SPIs to their reset values. Under config_lock. */
void dist_reset(struct vgic *vgic);

/* GICD_CTLR: the bits that can be written; write it, under config_lock. */
uint32_t dist_ctlr_writable(const struct vgic *vgic);
void dist_set_ctlr(struct vgic *vgic, uint32_t ctlr);

/* GICD_IROUTER: the bits that can be written; the vCPU index that it leads to, without 1-of-N, or IRQ_NO_TARGET. */
uint64_t dist_irouter_writable(const struct vgic *vgic);
uint32_t dist_route_target(const struct vgic *vgic, uint64_t irouter);

/* An SPI was disabled: GICD_CTLR.RWP reads 1 until the acknowledges under way now have returned. */
void dist_note_disable(struct vgic *vgic);

#endif /* VGIC_DIST_H */
