/* SPDX-License-Identifier: MIT */
/*
 * guestmem.h - guest memory, as tables and queues in it are read and written.
 *
 * Whatever is read is hostile, at every read. An access that fails is counted and
 * reported; the caller goes on as if there were zeros, or skips what it was about
 * to do.
 */
#ifndef VGIC_GUESTMEM_H
#define VGIC_GUESTMEM_H

#include "vgic_internal.h"

/* Read @size bytes, which may cross pages. Returns false, with @buffer zeroed, if any of them is not there. */
bool guest_read(struct vgic *vgic, uint64_t address, void *buffer, size_t size);

/* Write @size bytes, which may cross pages. Returns false if some of them are not there; others may have been written. */
bool guest_write(struct vgic *vgic, uint64_t address, const void *buffer, size_t size);

/* Is there memory at both ends of a range? Counts and reports nothing. */
bool guest_range_exists(struct vgic *vgic, uint64_t address, uint64_t size);

/* A little-endian 64-bit word. */
bool guest_read_u64(struct vgic *vgic, uint64_t address, uint64_t *value);

#endif /* VGIC_GUESTMEM_H */
