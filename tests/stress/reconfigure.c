/* SPDX-License-Identifier: MIT */
/*
 * reconfigure.c - changes that must not lose an interrupt.
 */
#include "reconfigure.h"

#include <stdlib.h>

#define PAUSE 200

static struct cpu *random_cpu(struct worker *worker)
{
	return &worker->world->cpus[rng_below(&worker->rng, worker->world->num_cpus)];
}

static void change_route(struct worker *worker, uint32_t intid)
{
	struct world *w = worker->world;

	switch (rng_below(&worker->rng, 8)) {
	case 0:
		spi_route_nowhere(w, intid);
		pause_randomly(&worker->rng, PAUSE);
		spi_route(w, intid, random_cpu(worker));
		break;
	case 1:
	case 2:
		spi_route_to_any(w, intid);
		break;
	default:
		spi_route(w, intid, random_cpu(worker));
		break;
	}
}

static void change_ctlr(struct worker *worker)
{
	dist_write(worker->world, GICD_CTLR, rng_below(&worker->rng, 3));
	pause_randomly(&worker->rng, PAUSE);
	dist_write(worker->world, GICD_CTLR, GICD_CTLR_ENABLE_GRP0 | GICD_CTLR_ENABLE_GRP1);
}

void change_spi(struct worker *worker, enum change change, uint32_t intid)
{
	struct world *w = worker->world;

	switch (change) {
	case CHANGE_ENABLE:
		spi_write_bit(w, GICD_ICENABLER, intid);
		pause_randomly(&worker->rng, PAUSE);
		spi_write_bit(w, GICD_ISENABLER, intid);
		break;
	case CHANGE_ROUTE:
		change_route(worker, intid);
		break;
	case CHANGE_PRIORITY:
		spi_set_priority(w, intid, random_priority(&worker->rng));
		break;
	case CHANGE_GROUP:
		spi_set_group(w, intid, rng_below(&worker->rng, 2));
		break;
	case CHANGE_CTLR:
		change_ctlr(worker);
		break;
	case NUM_CHANGES:
		abort();
	}
}
