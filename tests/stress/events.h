/* SPDX-License-Identifier: MIT */
/*
 * events.h - the account of a device that signals a GSI: its events are numbered, and an
 * acknowledge notes the number that it finds. For scenarios in which the GSI leads now
 * to one, now to another of the SPIs that are the device's own.
 */
#ifndef STRESS_EVENTS_H
#define STRESS_EVENTS_H

#include "world.h"

#define EVENTS_FIRST_IRQ   40u
#define EVENTS_NUM_TARGETS 2u /* SPIs of each device */

struct events {
	_Alignas(64) _Atomic uint64_t number; /* of the last event that was begun */
	_Atomic uint64_t seen;                /* the largest number that an acknowledge found */
	_Atomic uint64_t acknowledges;
};

static inline uint32_t events_intid(uint32_t device, uint32_t target)
{
	return EVENTS_FIRST_IRQ + device * EVENTS_NUM_TARGETS + target;
}

static inline uint32_t events_device(uint32_t intid)
{
	return (intid - EVENTS_FIRST_IRQ) / EVENTS_NUM_TARGETS;
}

/* One of the device's SPIs was acknowledged. */
static inline void events_note_acknowledge(struct events *events)
{
	const uint64_t number = load_relaxed(&events->number);
	uint64_t seen = load_relaxed(&events->seen);

	while (seen < number && !atomic_compare_exchange_weak(&events->seen, &seen, number))
		;
	atomic_fetch_add(&events->acknowledges, 1);
}

#endif /* STRESS_EVENTS_H */
