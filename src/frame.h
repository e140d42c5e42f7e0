/* SPDX-License-Identifier: MIT */
/*
 * frame.h - a register frame as a table: offset, count, size, widths, name, read,
 * write. One table serves a frame for every access to it.
 */
#ifndef VGIC_FRAME_H
#define VGIC_FRAME_H

#include "vgic_internal.h"

/* The widths at which a register answers, in bytes: they are their own bits. */
#define W8  1u
#define W16 2u
#define W32 4u
#define W64 8u

struct frame_access {
	struct vgic *vgic;
	struct vgic_vcpu *vcpu; /* whose redistributor it is, or NULL */
	struct vgic_its *its;   /* whose frame it is, or NULL; both NULL: the distributor */
	uint32_t index;         /* which register of an array */
};

struct frame_register {
	uint32_t offset;
	uint32_t count;
	uint8_t size; /* of one register, in bytes */
	uint8_t widths;
	uint8_t feature; /* VGIC_FEATURE_* without which no register is here, or 0 */
	const char *name;
	/* The whole register's value. NULL: write-only. */
	uint64_t (*read)(const struct frame_access *a);
	/* @value in its place, @mask the bits that are written. NULL: read-only. */
	void (*write)(const struct frame_access *a, uint64_t value, uint64_t mask);
};

#define REG(offset, count, widths, name, read, write)                                                                  \
	{                                                                                                              \
		(offset), (count), ((widths)&W64) ? 8 : 4, (widths), 0, (name), (read), (write)                        \
	}
#define REG_IF(feature, offset, count, widths, name, read, write)                                                      \
	{                                                                                                              \
		(offset), (count), ((widths)&W64) ? 8 : 4, (widths), (feature), (name), (read), (write)                \
	}

struct frame {
	const char *name;
	uint32_t size;
	const struct frame_register *registers; /* sorted by offset */
	size_t num_registers;
};

int frame_read(const struct frame *f, struct frame_access *a, uint32_t offset, unsigned width, uint64_t *value);
int frame_write(const struct frame *f, struct frame_access *a, uint32_t offset, unsigned width, uint64_t value);

/* RAZ/WI, for registers that the architecture defines as such with one security state and affinity routing. */
uint64_t frame_read_zero(const struct frame_access *a);
void frame_write_ignored(const struct frame_access *a, uint64_t value, uint64_t mask);

/* GICD_STATUSR and GICR_STATUSR: the errors of the frame, each cleared by writing 1. RAZ/WI without the feature. */
uint64_t frame_read_statusr(const struct frame_access *a);
void frame_write_statusr(const struct frame_access *a, uint64_t value, uint64_t mask);

/* A read-modify-write of part of a register. */
static inline uint64_t frame_merge(uint64_t old, uint64_t value, uint64_t mask)
{
	return (old & ~mask) | (value & mask);
}

#endif /* VGIC_FRAME_H */
