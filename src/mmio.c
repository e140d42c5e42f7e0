/* SPDX-License-Identifier: MIT */
/*
 * mmio.c - from a guest-physical address to a frame.
 */
#include <errno.h>

#include "its.h"
#include "vgic_internal.h"

/* Where an address leads. */
struct location {
	bool in_dist;
	struct vgic_its *its;   /* or NULL */
	struct vgic_vcpu *vcpu; /* NULL in a redistributor region: a frame that no vCPU fills */
	uint32_t offset;
};

static bool locate_redist(const struct vgic *vgic, uint64_t address, struct location *l)
{
	for (uint32_t i = 0; i < vgic->num_redist_ranges; i++) {
		const struct redist_range *r = &vgic->redist_ranges[i];
		const uint64_t offset = address - r->base;

		if (offset >= (uint64_t)r->num_frames * VGIC_REDIST_FRAME_SIZE)
			continue;
		l->vcpu = vgic_vcpu_by_index((struct vgic *)vgic,
					     r->first_index + (uint32_t)(offset / VGIC_REDIST_FRAME_SIZE));
		l->offset = offset % VGIC_REDIST_FRAME_SIZE;
		return true;
	}
	return false;
}

static bool locate_its(const struct vgic *vgic, uint64_t address, struct location *l)
{
	for (uint32_t i = 0; i < vgic->num_itses; i++) {
		struct vgic_its *its = vgic->itses[i];

		if (!its->has_base || address - its->base >= VGIC_ITS_FRAME_SIZE)
			continue;
		l->its = its;
		l->offset = (uint32_t)(address - its->base);
		return true;
	}
	return false;
}

static bool locate(const struct vgic *vgic, uint64_t address, struct location *l)
{
	*l = (struct location){ .in_dist = false };
	if (vgic->has_dist_base && address - vgic->dist_base < VGIC_DIST_FRAME_SIZE) {
		l->in_dist = true;
		l->offset = (uint32_t)(address - vgic->dist_base);
		return true;
	}
	return locate_its(vgic, address, l) || locate_redist(vgic, address, l);
}

/* In a frame that no vCPU fills every offset reads as zero, but the rules for widths are the same. */
static int check_empty_frame(uint32_t offset, unsigned width)
{
	if (width != 1 && width != 2 && width != 4 && width != 8)
		return -EINVAL;
	return VGIC_REDIST_FRAME_SIZE - offset < width ? -ENXIO : 0;
}

int vgic_mmio_read(struct vgic *vgic, uint64_t address, unsigned width, uint64_t *value)
{
	struct location l;
	int err;

	if (!locate(vgic, address, &l))
		return -ENXIO;
	if (l.in_dist)
		return vgic_dist_read(vgic, l.offset, width, value);
	if (l.its)
		return vgic_its_read(l.its, l.offset, width, value);
	if (l.vcpu)
		return vgic_redist_read(l.vcpu, l.offset, width, value);
	err = check_empty_frame(l.offset, width);
	if (err)
		return err;
	*value = 0;
	guest_error(vgic, VGIC_GUEST_MMIO_RESERVED, "redistributor without a vCPU", address, 0);
	return 0;
}

int vgic_mmio_write(struct vgic *vgic, uint64_t address, unsigned width, uint64_t value)
{
	struct location l;
	int err;

	if (!locate(vgic, address, &l))
		return -ENXIO;
	if (l.in_dist)
		return vgic_dist_write(vgic, l.offset, width, value);
	if (l.its)
		return vgic_its_write(l.its, l.offset, width, value);
	if (l.vcpu)
		return vgic_redist_write(l.vcpu, l.offset, width, value);
	err = check_empty_frame(l.offset, width);
	if (err)
		return err;
	guest_error(vgic, VGIC_GUEST_MMIO_RESERVED, "redistributor without a vCPU", address, value);
	return 0;
}
