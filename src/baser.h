/* SPDX-License-Identifier: MIT */
/*
 * baser.h - cacheability and shareability in the registers that give the guest's
 * tables their places: GICR_PROPBASER, GICR_PENDBASER, GITS_CBASER, GITS_BASER<n>.
 *
 * The library accesses guest memory through the VMM, so that they mean nothing to
 * it. A guest reads them back to see what was accepted. The native profile accepts
 * all; KVM's vGIC shows what it would use: always cacheable, at most inner
 * shareable, the outer cacheability not chosen apart.
 */
#ifndef VGIC_BASER_H
#define VGIC_BASER_H

#include "gic_regs.h"
#include "vgic_internal.h"

/* Where a register has its three fields. Shareability is in bits 11:10 of all of them. */
struct baser_layout {
	unsigned inner_shift, outer_shift;
};

#define BASER_LAYOUT_GICR ((struct baser_layout){ .inner_shift = 7, .outer_shift = 56 })
#define BASER_LAYOUT_GITS ((struct baser_layout){ .inner_shift = 59, .outer_shift = 53 })

static inline uint64_t baser_field(uint64_t value, unsigned shift, uint64_t mask)
{
	return value >> shift & mask;
}

static inline uint64_t baser_accept(const struct vgic *vgic, struct baser_layout layout, uint64_t value)
{
	const uint64_t outer = baser_field(value, layout.outer_shift, BASER_CACHEABILITY_MASK);

	if (vgic->profile != VGIC_PROFILE_KVM)
		return value;
	if (baser_field(value, layout.inner_shift, BASER_CACHEABILITY_MASK) <= BASER_NON_CACHEABLE) {
		value &= ~(BASER_CACHEABILITY_MASK << layout.inner_shift);
		value |= BASER_READ_ALLOCATE_WRITE_BACK << layout.inner_shift;
	}
	if (outer != BASER_OUTER_SAME_AS_INNER && outer != BASER_NON_CACHEABLE)
		value &= ~(BASER_CACHEABILITY_MASK << layout.outer_shift);
	if (baser_field(value, BASER_SHAREABILITY_SHIFT, BASER_SHAREABILITY_MASK) == BASER_OUTER_SHAREABLE) {
		value &= ~(BASER_SHAREABILITY_MASK << BASER_SHAREABILITY_SHIFT);
		value |= BASER_INNER_SHAREABLE << BASER_SHAREABILITY_SHIFT;
	}
	return value;
}

#endif /* VGIC_BASER_H */
