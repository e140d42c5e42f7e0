/* SPDX-License-Identifier: MIT */
/*
 * dist.h - the distributor (GICD frame), as the rest of the library uses it.
 */
#ifndef VGIC_DIST_H
#define VGIC_DIST_H

#include "frame.h"
#include "vgic_internal.h"

extern const struct frame dist_frame;

/* Put the distributor's registers and the SPIs to their reset values. */
void dist_reset(struct vgic *vgic);

/* An SPI was disabled: GICD_CTLR.RWP reads 1 until the acknowledges under way now have returned. */
void dist_note_disable(struct vgic *vgic);

#endif /* VGIC_DIST_H */
