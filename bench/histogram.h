/* SPDX-License-Identifier: MIT */
/*
 * histogram.h - how long things took, from nanoseconds to minutes.
 *
 * Up to HISTOGRAM_STEPS nanoseconds each value has a bucket of its own; above that
 * each power of two has HISTOGRAM_STEPS of them: what is read out is at most one
 * in HISTOGRAM_STEPS too high, never too low. Any number of threads may add.
 */
#ifndef BENCH_HISTOGRAM_H
#define BENCH_HISTOGRAM_H

#include <stdatomic.h>
#include <stdint.h>

#define HISTOGRAM_STEPS   64u
#define HISTOGRAM_BUCKETS ((40u - 6u + 1u) * HISTOGRAM_STEPS) /* up to 2^40 ns, which is 18 minutes */

struct histogram {
	_Atomic uint64_t buckets[HISTOGRAM_BUCKETS];
};

void histogram_add(struct histogram *histogram, uint64_t ns);

uint64_t histogram_count(const struct histogram *histogram);

/* A value that @percent of all are not above, in nanoseconds: the upper end of its bucket. 0 if there are none. */
uint64_t histogram_percentile(const struct histogram *histogram, unsigned percent);

#endif /* BENCH_HISTOGRAM_H */
