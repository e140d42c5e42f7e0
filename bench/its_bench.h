/* SPDX-License-Identifier: MIT */
/*
 * its_bench.h - what the benchmarks of MSIs share: a policy with devices mapped,
 * and loops over their events.
 */
#ifndef BENCH_ITS_BENCH_H
#define BENCH_ITS_BENCH_H

#include "bench.h"
#include "policy.h"

struct its_event {
	uint32_t devid, eventid;
};

/* A policy with all its devices mapped. */
struct its_bench {
	struct policy *policy;
	uint32_t num_vcpus, num_devices, num_events, num_lpis;
	struct its_event *events; /* all, in order of their LPIs */
	uint32_t *takers;         /* the vCPUs of these LPIs, in order of the vCPUs */
	uint32_t next;            /* event */
};

/* Returns whether all is well; says on standard error if not. @cache_entries as in struct policy_config. */
bool its_bench_init(struct its_bench *b, const struct policy_ops *ops, uint32_t num_vcpus, uint32_t num_devices,
		    uint32_t num_events, uint32_t num_lpis, uint32_t cache_entries);
void its_bench_destroy(struct its_bench *b);

/* Takes everything that is pending, whatever it is. */
void its_bench_take_all(struct its_bench *b);

/* Takes everything that is pending. Returns whether each LPI was pending exactly @times, and at its vCPU. */
bool its_bench_drain(struct its_bench *b, unsigned times);

#endif /* BENCH_ITS_BENCH_H */
