/* SPDX-License-Identifier: MIT */
/*
 * route_table.h - the historic way to change where a GSI leads: the whole table at
 * once, for each vector.
 *
 * A re-implementation, as a program, of what QEMU and Linux's KVM did with each
 * vector of a device until 2022. The VMM adds an entry to its own table and hands
 * all of it over; that is copied, and a new table is built of it, with memory of
 * its own for each entry; the new table is published by its pointer; every irqfd
 * copies its entry; a grace period passes; the old table is freed.
 *
 * The grace period is liburcu's, waited for as the kernel's SRCU does: by a worker, a
 * thread with the affinity of who creates the table, which wakes the caller. A system call
 * that does nothing stands for the one that takes the table.
 *
 * Left out, which makes this faster than the original: what system calls do beside,
 * and looking at each CPU's counters of readers in a machine of many CPUs.
 *
 * Threads: base_routes_find() any, beside everything else; the others one at a
 * time.
 */
#ifndef BENCH_BASELINES_ROUTE_TABLE_H
#define BENCH_BASELINES_ROUTE_TABLE_H

#include "its_model.h"

struct base_routes;

/* What has gone by in the parts of a change, in nanoseconds; each call adds to it. */
struct base_routes_times {
	uint64_t copy;    /* the system call, the table's copies, and freeing the old one */
	uint64_t publish; /* the pointer, and the irqfds' entries */
	uint64_t wait;    /* the grace period */
};

/* NULL: no memory, or no thread. Entries have GSIs 0 to @num_gsis-1. */
struct base_routes *base_routes_create(uint32_t num_gsis);
void base_routes_destroy(struct base_routes *routes);

/* An entry more, and an irqfd bound to it afterwards (whose time is not counted). Returns 0 or -ENOMEM. */
int base_routes_add(struct base_routes *routes, uint32_t gsi, const struct base_msi *msi,
		    struct base_routes_times *times);

/*
 * What the irqfd of a GSI does before it injects: the read section begins, and its entry is copied. False: there is
 * none. base_routes_end_find() in any case.
 */
bool base_routes_find(struct base_routes *routes, uint32_t gsi, struct base_msi *msi);
void base_routes_end_find(void);

/* A thread that will read, as a vCPU's does: the grace periods look at it from now on. */
void base_routes_register_reader(void);

#endif /* BENCH_BASELINES_ROUTE_TABLE_H */
