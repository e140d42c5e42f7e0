/* SPDX-License-Identifier: MIT */
/*
 * bench.h - the subcommands of vgic-bench, and what they share.
 */
#ifndef BENCH_BENCH_H
#define BENCH_BENCH_H

#include <stdint.h>

#include "measure.h"

#define BENCH_MAX_VCPU_COUNTS 16u

enum bench_affinity { BENCH_LINEAR, BENCH_HOSTILE, BENCH_NUM_AFFINITIES };

/* The command line, parsed. */
struct bench_options {
	struct measure_options measure;

	/* sgi: a row for each of these with each of those */
	uint32_t vcpus[BENCH_MAX_VCPU_COUNTS];
	unsigned num_vcpus;
	enum bench_affinity affinities[BENCH_NUM_AFFINITIES];
	unsigned num_affinities;
};

/* Each measures, prints, and returns the program's exit status: 0, or 1 after a message on standard error. */
int bench_sgi(const struct bench_options *options);
int bench_spi(const struct bench_options *options);

const char *bench_affinity_name(enum bench_affinity affinity);

/* Runs the turns, and says on standard error what went wrong if something did. Returns whether all is well. */
bool bench_measure(struct series *const *turns, unsigned num_turns, const struct bench_options *options);

/* A line of the table for people: @what, then nanoseconds (median, fastest, 90th percentile) and the ratio to @rmw_ns. */
void bench_print_path(const char *what, struct summary summary, double rmw_ns);
void bench_print_header(const char *what);

#endif /* BENCH_BENCH_H */
