/* SPDX-License-Identifier: MIT */
/*
 * stress.h - devices that signal MSIs and vCPUs that take them, in threads of their
 * own, with every signal accounted for.
 *
 * Each event counts its signals before it makes them. Who acknowledges its LPI
 * reads that count, and knows how many signals this acknowledge stands for: one,
 * and those that merged. What an event has counted and no acknowledge has seen in
 * the end is lost. The count is ordinary memory of the device: it is seen only if
 * signal and acknowledge order memory as they promise.
 */
#ifndef BENCH_STRESS_H
#define BENCH_STRESS_H

#include <stdbool.h>
#include <stdint.h>

#include "policy.h"

#define STRESS_MAX_DEVICES    1024u
#define STRESS_MAX_ITERATIONS UINT64_C(1000000000000)

struct stress_options {
	const struct policy_ops *ops;
	uint32_t num_vcpus, num_devices, num_events;
	uint64_t iterations;
	uint32_t num_consumers; /* threads that are vCPUs; 0: as many as CPUs, but no more than vCPUs */
	uint32_t cache_entries; /* as in struct policy_config */
	bool pin;               /* threads to CPUs */
	bool lockstep;          /* the next signal when the last one has been acknowledged */
	bool progress;          /* on standard error, if it takes long */
};

struct stress_result {
	double rate;              /* signals a second, until the last device is through */
	double acknowledged_rate; /* acknowledges a second, until the last one */
	uint64_t injected, acknowledged, merged, lost;
	uint64_t refused;    /* signals that were not accepted: there should be none */
	uint64_t unexpected; /* acknowledges of what nobody signalled, or at the wrong vCPU */
	uint64_t unkicked;   /* vCPUs that slept on although something was pending for them */
	uint64_t kicks;      /* wake-ups asked for */
	struct policy_stats stats;
};

/* Returns 0, -ENOMEM, or another negative errno: threads, or the policy's. The result says whether it went well. */
int stress_run(const struct stress_options *options, struct stress_result *result);

/* Nothing lost, refused, unexpected or unkicked, and injected = acknowledged + merged. */
bool stress_is_right(const struct stress_result *result);

#endif /* BENCH_STRESS_H */
