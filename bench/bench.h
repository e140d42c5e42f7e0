/* SPDX-License-Identifier: MIT */
/*
 * bench.h - the subcommands of vgic-bench, and what they share.
 */
#ifndef BENCH_BENCH_H
#define BENCH_BENCH_H

#include <stdint.h>

#include "irqfd_load.h"
#include "measure.h"
#include "policy.h"

#define BENCH_MAX_VCPU_COUNTS 16u
#define BENCH_MAX_LIST        16u
#define BENCH_MAX_THREADS     256u

enum bench_affinity { BENCH_LINEAR, BENCH_HOSTILE, BENCH_NUM_AFFINITIES };

/* The command line, parsed. */
struct bench_options {
	struct measure_options measure;

	/* sgi: a row for each of these with each of those */
	uint32_t vcpus[BENCH_MAX_VCPU_COUNTS];
	unsigned num_vcpus;
	enum bench_affinity affinities[BENCH_NUM_AFFINITIES];
	unsigned num_affinities;

	/* hit, deliver, scale */
	const struct policy_ops *policies[POLICY_COUNT];
	unsigned num_policies;
	uint32_t lpis[BENCH_MAX_LIST]; /* hit: a row for each of these with each policy */
	unsigned num_lpis;
	uint32_t num_devices, num_events; /* deliver, routes, resume (num_events: vectors); scale: num_events */
	bool quiet;                       /* resume: nothing is signalled meanwhile */
	uint32_t threads[BENCH_MAX_LIST]; /* scale */
	unsigned num_threads;

	/* irqfd */
	uint32_t nics[BENCH_MAX_LIST];
	unsigned num_nics;
	enum irqfd_load_door doors[IRQFD_LOAD_NUM_DOORS];
	unsigned num_doors;
	enum vgic_irqfd_path paths[IRQFD_LOAD_NUM_PATHS];
	unsigned num_paths;
	bool counters; /* with JSON: what was counted instead of times */
};

/* Each measures, prints, and returns the program's exit status: 0, or 1 after a message on standard error. */
int bench_sgi(const struct bench_options *options);
int bench_spi(const struct bench_options *options);
int bench_hit(const struct bench_options *options);
int bench_deliver(const struct bench_options *options);
int bench_scale(const struct bench_options *options);
int bench_irqfd(const struct bench_options *options);
int bench_routes(const struct bench_options *options);
int bench_resume(const struct bench_options *options);
int bench_state(const struct bench_options *options);

extern const char *const bench_door_names[IRQFD_LOAD_NUM_DOORS];
extern const char *const bench_path_names[IRQFD_LOAD_NUM_PATHS]; /* by enum vgic_irqfd_path */

const char *bench_affinity_name(enum bench_affinity affinity);

/* Runs the turns, and says on standard error what went wrong if something did. Returns whether all is well. */
bool bench_measure(struct series *const *turns, unsigned num_turns, const struct bench_options *options);

/* On a terminal: how far it is. For commands that do not use bench_measure(). */
void bench_progress(unsigned done, unsigned total);
void bench_progress_end(void);

/* A line of the table for people: @what, then nanoseconds (median, fastest, 90th percentile) and the ratio to @rmw_ns. */
void bench_print_path(const char *what, struct summary summary, double rmw_ns);
void bench_print_header(const char *what);

#endif /* BENCH_BENCH_H */
