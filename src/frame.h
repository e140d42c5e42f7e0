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
	uint16_t first_intid; /* of the first register, in a bank over INTIDs */
	uint8_t intids;       /* in each register of such a bank; 0: another register */
	/*
	 * What the VMM gets and sets (state.h), where that is not what the guest does; NULL: the same. A write may be refused:
	 * 0 or a negative errno.
	 */
	uint64_t (*user_read)(const struct frame_access *a);
	int (*user_write)(const struct frame_access *a, uint64_t value, uint64_t mask);
};

#define REG_ANY(feature, offset, count, widths, name, read, write, first_intid, intids, user_read, user_write)         \
	{                                                                                                              \
		(offset), (count), ((widths)&W64) ? 8 : 4, (widths), (feature), (name), (read), (write),               \
			(first_intid), (intids), (user_read), (user_write)                                             \
	}
#define REG(offset, count, widths, name, read, write)                                                                  \
	REG_ANY(0, offset, count, widths, name, read, write, 0, 0, NULL, NULL)
#define REG_IF(feature, offset, count, widths, name, read, write)                                                      \
	REG_ANY(feature, offset, count, widths, name, read, write, 0, 0, NULL, NULL)
/* One that the VMM gets, or sets, in another way. */
#define REG_USER(offset, count, widths, name, read, write, user_read, user_write)                                      \
	REG_ANY(0, offset, count, widths, name, read, write, 0, 0, user_read, user_write)
/* A bank of @intids for each register, from INTID 0 on. */
#define BANK(offset, count, widths, intids, name, read, write)                                                         \
	REG_ANY(0, offset, count, widths, name, read, write, 0, intids, NULL, NULL)
#define BANK_USER(offset, count, widths, intids, name, read, write, user_read, user_write)                             \
	REG_ANY(0, offset, count, widths, name, read, write, 0, intids, user_read, user_write)

struct frame {
	const char *name;
	uint32_t size;
	const struct frame_register *registers; /* sorted by offset */
	size_t num_registers;
};

int frame_read(const struct frame *f, struct frame_access *a, uint32_t offset, unsigned width, uint64_t *value);
int frame_write(const struct frame *f, struct frame_access *a, uint32_t offset, unsigned width, uint64_t value);

/*
 * The VMM's accesses, of @width bytes (4, or 8 for all of a 64-bit register). Nothing is counted as the guest's error.
 * -ENXIO if no register is there, or one that holds no state; otherwise 0 or what user_write() says.
 */
int frame_user_has(const struct frame *f, const struct frame_access *a, uint32_t offset, unsigned width);
int frame_user_read(const struct frame *f, struct frame_access *a, uint32_t offset, unsigned width, uint64_t *value);
int frame_user_write(const struct frame *f, struct frame_access *a, uint32_t offset, unsigned width, uint64_t value);
int frame_user_write_ignored(const struct frame_access *a, uint64_t value, uint64_t mask);

/* RAZ/WI, for registers that the architecture defines as such with one security state and affinity routing. */
uint64_t frame_read_zero(const struct frame_access *a);
void frame_write_ignored(const struct frame_access *a, uint64_t value, uint64_t mask);

/* GICD_STATUSR and GICR_STATUSR: the errors of the frame, each cleared by writing 1. RAZ/WI without the feature. */
uint64_t frame_read_statusr(const struct frame_access *a);
void frame_write_statusr(const struct frame_access *a, uint64_t value, uint64_t mask);
int frame_user_write_statusr(const struct frame_access *a, uint64_t value, uint64_t mask);

/* A read-modify-write of part of a register. */
static inline uint64_t frame_merge(uint64_t old, uint64_t value, uint64_t mask)
{
	return (old & ~mask) | (value & mask);
}

#endif /* VGIC_FRAME_H */
