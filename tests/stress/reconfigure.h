/* SPDX-License-Identifier: MIT */
/*
 * reconfigure.h - what a guest may change about an SPI while it is signalled. Each
 * step ends with the interrupt deliverable again: none of them may lose it.
 */
#ifndef STRESS_RECONFIGURE_H
#define STRESS_RECONFIGURE_H

#include "world.h"

/* Kinds of change; each is to be made by one thread only. */
enum change {
	CHANGE_ENABLE,   /* ICENABLER, ISENABLER */
	CHANGE_ROUTE,    /* GICD_IROUTER: another vCPU, any, none */
	CHANGE_PRIORITY, /* GICD_IPRIORITYR */
	CHANGE_GROUP,    /* GICD_IGROUPR */
	CHANGE_CTLR,     /* GICD_CTLR: groups off and on */
	NUM_CHANGES,
};

/* Priorities that PMR=0xff lets through. */
static inline unsigned random_priority(struct rng *rng)
{
	return rng_below(rng, 31) * 8;
}

/* Make one change of this kind to @intid. */
void change_spi(struct worker *worker, enum change change, uint32_t intid);

#endif /* STRESS_RECONFIGURE_H */
