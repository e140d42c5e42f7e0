/* SPDX-License-Identifier: MIT */
/*
 * frame.c - decodes an access to a register frame by its table.
 *
 * Every offset answers at every width: what is not in the table, or not at that
 * width, reads as zero and ignores writes, and is counted as the guest's error.
 * Owns the STATUSR registers, guarded by config_lock.
 */
#include "frame.h"

#include <errno.h>

#include "gic_regs.h"

static uint64_t width_mask(unsigned width)
{
	return ~UINT64_C(0) >> (64 - 8 * width);
}

static const struct frame_register *find_register(const struct frame *f, const struct vgic *vgic, uint32_t offset)
{
	size_t low = 0, high = f->num_registers;

	while (low < high) {
		const size_t middle = (low + high) / 2;
		const struct frame_register *r = &f->registers[middle];

		if (offset < r->offset)
			high = middle;
		else if (offset - r->offset >= r->count * r->size)
			low = middle + 1;
		else
			return !r->feature || vgic_has(vgic, r->feature) ? r : NULL;
	}
	return NULL;
}

static int check_access(const struct frame *f, uint32_t offset, unsigned width)
{
	if (width != 1 && width != 2 && width != 4 && width != 8)
		return -EINVAL;
	if (offset >= f->size || f->size - offset < width)
		return -ENXIO;
	return 0;
}

static uint32_t *statusr(const struct frame_access *a)
{
	return a->vcpu ? &a->vcpu->redist_statusr : &a->vgic->dist_statusr;
}

static void note_error(const struct frame_access *a, enum vgic_guest_error_kind kind, uint32_t status, const char *name,
		       uint32_t offset, uint64_t value)
{
	if (vgic_has(a->vgic, VGIC_FEATURE_STATUSR) && !a->its) {
		config_lock(a->vgic);
		*statusr(a) |= status;
		config_unlock(a->vgic);
	}
	guest_error(a->vgic, kind, name, offset, value);
}

/* The register of an access, or NULL if there is none that answers it at this width. */
static const struct frame_register *decode(const struct frame *f, struct frame_access *a, uint32_t offset,
					   unsigned width, uint32_t status, uint64_t value)
{
	const struct frame_register *r = find_register(f, a->vgic, offset);

	if (!r) {
		note_error(a, VGIC_GUEST_MMIO_RESERVED, status, f->name, offset, value);
		return NULL;
	}
	/* The architecture gives halfwords to the low half of a register only. */
	if (!(r->widths & width) || offset % width != 0 || (width == 2 && offset % r->size != 0)) {
		note_error(a, VGIC_GUEST_MMIO_WIDTH, status, r->name, offset, value);
		return NULL;
	}
	a->index = (offset - r->offset) / r->size;
	return r;
}

int frame_read(const struct frame *f, struct frame_access *a, uint32_t offset, unsigned width, uint64_t *value)
{
	const int err = check_access(f, offset, width);
	const struct frame_register *r;

	if (err)
		return err;
	*value = 0;
	r = decode(f, a, offset, width, STATUSR_RRD, 0);
	if (!r)
		return 0;
	if (!r->read) {
		note_error(a, VGIC_GUEST_MMIO_WRITE_ONLY, STATUSR_RWOD, r->name, offset, 0);
		return 0;
	}
	*value = r->read(a) >> (8 * ((offset - r->offset) % r->size)) & width_mask(width);
	return 0;
}

int frame_write(const struct frame *f, struct frame_access *a, uint32_t offset, unsigned width, uint64_t value)
{
	const int err = check_access(f, offset, width);
	const struct frame_register *r;
	unsigned shift;

	if (err)
		return err;
	value &= width_mask(width);
	r = decode(f, a, offset, width, STATUSR_WRD, value);
	if (!r)
		return 0;
	if (!r->write) {
		note_error(a, VGIC_GUEST_MMIO_READ_ONLY, STATUSR_WROD, r->name, offset, value);
		return 0;
	}
	shift = 8 * ((offset - r->offset) % r->size);
	r->write(a, value << shift, width_mask(width) << shift);
	return 0;
}

/* ---- The VMM's accesses ---------------------------------------------------------------- */

/* A register of a bank that has none of the controller's INTIDs is no register here. */
static bool bank_is_empty(const struct frame_register *r, const struct vgic *vgic, uint32_t index)
{
	return r->intids && r->first_intid + index * r->intids >= FIRST_SPI + vgic->num_spis;
}

static const struct frame_register *find_user_register(const struct frame *f, const struct frame_access *a,
						       uint32_t offset, unsigned width)
{
	const struct frame_register *r = find_register(f, a->vgic, offset);

	if (!r || offset % width != 0 || width > r->size || (!r->read && !r->user_read))
		return NULL;
	return bank_is_empty(r, a->vgic, (offset - r->offset) / r->size) ? NULL : r;
}

int frame_user_has(const struct frame *f, const struct frame_access *a, uint32_t offset, unsigned width)
{
	return find_user_register(f, a, offset, width) ? 0 : -ENXIO;
}

int frame_user_read(const struct frame *f, struct frame_access *a, uint32_t offset, unsigned width, uint64_t *value)
{
	const struct frame_register *r = find_user_register(f, a, offset, width);

	if (!r)
		return -ENXIO;
	a->index = (offset - r->offset) / r->size;
	*value = (r->user_read ? r->user_read(a) : r->read(a)) >> (8 * ((offset - r->offset) % r->size)) &
		 width_mask(width);
	return 0;
}

int frame_user_write(const struct frame *f, struct frame_access *a, uint32_t offset, unsigned width, uint64_t value)
{
	const struct frame_register *r = find_user_register(f, a, offset, width);
	unsigned shift;

	if (!r)
		return -ENXIO;
	a->index = (offset - r->offset) / r->size;
	shift = 8 * ((offset - r->offset) % r->size);
	value = (value & width_mask(width)) << shift;
	if (r->user_write)
		return r->user_write(a, value, width_mask(width) << shift);
	if (r->write)
		r->write(a, value, width_mask(width) << shift);
	return 0;
}

int frame_user_write_ignored(const struct frame_access *a, uint64_t value, uint64_t mask)
{
	(void)a;
	(void)value;
	(void)mask;
	return 0;
}

/* ---- Registers of several frames ------------------------------------------------------------ */

uint64_t frame_read_zero(const struct frame_access *a)
{
	(void)a;
	return 0;
}

void frame_write_ignored(const struct frame_access *a, uint64_t value, uint64_t mask)
{
	(void)a;
	(void)value;
	(void)mask;
}

uint64_t frame_read_statusr(const struct frame_access *a)
{
	uint64_t value;

	config_lock(a->vgic);
	value = *statusr(a);
	config_unlock(a->vgic);
	return value;
}

void frame_write_statusr(const struct frame_access *a, uint64_t value, uint64_t mask)
{
	config_lock(a->vgic);
	*statusr(a) &= ~(uint32_t)(value & mask);
	config_unlock(a->vgic);
}

int frame_user_write_statusr(const struct frame_access *a, uint64_t value, uint64_t mask)
{
	(void)mask;
	if (!vgic_has(a->vgic, VGIC_FEATURE_STATUSR))
		return 0;
	config_lock(a->vgic);
	*statusr(a) = (uint32_t)value & STATUSR_ALL;
	config_unlock(a->vgic);
	return 0;
}
