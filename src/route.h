/* SPDX-License-Identifier: MIT */
/*
 * route.h - the route table, as the rest of the library uses it: one word for each
 * GSI that says where its events go, and the resampling of lines.
 */
#ifndef VGIC_SRC_ROUTE_H
#define VGIC_SRC_ROUTE_H

#include <vgic/irqfd.h>
#include <vgic/route.h>

#include "vgic_internal.h"

/*
 * Where a GSI leads, resolved, in one word: what a signaller needs, and nothing
 * that could dangle.
 *
 *   bits   name        what
 *   0-1    kind        enum route_kind
 *   2      CHANGING    a transaction has another word for this entry: see route.c
 *   3      MASKED      events are kept
 *   4-9    UNIT        index of the ITS, or source of the line
 *   10-26  EVENT       EventID or INTID; all ones: above 16 bits, which nothing is mapped to
 *   27-58  DEVICE      DeviceID
 */
typedef uint64_t route_word;

enum route_kind {
	ROUTE_TO_NOTHING,
	ROUTE_TO_LINE,
	ROUTE_TO_ITS,
	ROUTE_TO_SETSPI, /* a write to GICD_SETSPI_NSR */
};

#define ROUTE_KIND_MASK    UINT64_C(3)
#define ROUTE_CHANGING     (UINT64_C(1) << 2)
#define ROUTE_MASKED       (UINT64_C(1) << 3)
#define ROUTE_UNIT_SHIFT   4
#define ROUTE_UNIT_MASK    UINT64_C(0x3f)
#define ROUTE_EVENT_SHIFT  10
#define ROUTE_EVENT_MASK   UINT64_C(0x1ffff)
#define ROUTE_DEVICE_SHIFT 27

_Static_assert(VGIC_MAX_ITSES <= ROUTE_UNIT_MASK + 1 && VGIC_NUM_LINE_SOURCES <= ROUTE_UNIT_MASK + 1,
	       "an ITS's index and a line's source fit into the word");

static inline enum route_kind route_kind(route_word w)
{
	return (enum route_kind)(w & ROUTE_KIND_MASK);
}

static inline uint32_t route_unit(route_word w)
{
	return (uint32_t)(w >> ROUTE_UNIT_SHIFT & ROUTE_UNIT_MASK);
}

static inline uint32_t route_event(route_word w)
{
	return (uint32_t)(w >> ROUTE_EVENT_SHIFT & ROUTE_EVENT_MASK);
}

static inline uint32_t route_device(route_word w)
{
	return (uint32_t)(w >> ROUTE_DEVICE_SHIFT);
}

/* ---- Resampling: irqfd.c has the resamplefds, the table knows the lines ---- */

/* Signals the resamplefd of @token, if it is still there. Any thread, no lock. */
typedef void (*route_resample_fn)(void *opaque, uint64_t token);

/* Make the lines of a table those that the controller resamples, by @resample. Returns 0, or -EBUSY if there are others. */
int route_resampler_register(struct vgic_routes *routes, route_resample_fn resample, void *opaque);

/* Undo it, and wait until no call of it is under way. No GSI may be resampled any more. */
void route_resampler_unregister(struct vgic_routes *routes);

/* The line of a GSI is resampled from now on, by @token, which is not 0. Returns 0, or -EBUSY if it is already. */
int route_resample_gsi(struct vgic_routes *routes, uint32_t gsi, uint64_t token);

/* No longer; its line is lowered. */
void route_forget_gsi(struct vgic_routes *routes, uint32_t gsi);

/*
 * Drive the line that a GSI leads to. Any thread, no lock. Returns 1 if that changed
 * the level of its source, 0 if it had that level, or -ENODEV if it leads to none.
 */
int route_drive(struct vgic_routes *routes, uint32_t gsi, bool level);

/* The table that irqfds are of. */
const struct vgic_routes *irqfd_routes(const struct vgic_irqfds *irqfds);

/* A deactivation has lowered these sources of an SPI. Any thread, no lock. */
void route_resample(struct vgic *vgic, uint32_t intid, uint32_t sources);

/* ---- Pauses ---- */

/* The end of a pause: every table of the controller delivers what it has kept. Without config_lock. */
void route_resume(struct vgic *vgic);

/* ---- Claims: entries that one owner changes, and no vgic_route_set() or vgic_route_txn_set() ---- */

/* Claim @num entries from @first on. Returns 0, or -EBUSY, with none of them claimed, if one is not free. */
int route_claim(struct vgic_routes *routes, uint32_t first, uint32_t num);
void route_release(struct vgic_routes *routes, uint32_t first, uint32_t num);

/* vgic_route_txn_set() of an entry that was claimed. Not -EBUSY for a route without a line. */
int route_txn_set_claimed(struct vgic_route_txn *txn, uint32_t gsi, const struct vgic_route *route);

/* ---- What tests look at ---- */

/* A thread reads an entry as a signaller does. */
route_word route_read(struct vgic_routes *routes, uint32_t gsi);

#endif /* VGIC_SRC_ROUTE_H */
