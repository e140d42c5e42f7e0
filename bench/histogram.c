/* SPDX-License-Identifier: MIT */
/*
 * histogram.c - buckets of equal relative width (histogram.h).
 */
#include "histogram.h"

#define STEP_BITS 6u
#define MAX_NS    ((UINT64_C(1) << 40) - 1)

_Static_assert(HISTOGRAM_STEPS == 1u << STEP_BITS, "STEP_BITS is that of HISTOGRAM_STEPS");

/* Above the first HISTOGRAM_STEPS a value's leading bits are its bucket: the highest one says which power of two. */
static unsigned bucket_of(uint64_t ns)
{
	if (ns < HISTOGRAM_STEPS)
		return (unsigned)ns;

	const unsigned shift = 63u - (unsigned)__builtin_clzll(ns) - STEP_BITS;

	return shift * HISTOGRAM_STEPS + (unsigned)(ns >> shift);
}

/* The highest value of a bucket. */
static uint64_t top_of(unsigned bucket)
{
	if (bucket < HISTOGRAM_STEPS)
		return bucket;

	const unsigned shift = bucket / HISTOGRAM_STEPS - 1;
	const uint64_t leading = bucket % HISTOGRAM_STEPS + HISTOGRAM_STEPS;

	return ((leading + 1) << shift) - 1;
}

void histogram_add(struct histogram *histogram, uint64_t ns)
{
	atomic_fetch_add_explicit(&histogram->buckets[bucket_of(ns < MAX_NS ? ns : MAX_NS)], 1, memory_order_relaxed);
}

uint64_t histogram_count(const struct histogram *histogram)
{
	uint64_t count = 0;

	for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++)
		count += atomic_load_explicit(&histogram->buckets[i], memory_order_relaxed);
	return count;
}

uint64_t histogram_percentile(const struct histogram *histogram, unsigned percent)
{
	const uint64_t count = histogram_count(histogram);
	const uint64_t rank = (count * percent + 99) / 100; /* so many are not above it */
	uint64_t seen = 0;

	for (unsigned i = 0; i < HISTOGRAM_BUCKETS && count; i++) {
		seen += atomic_load_explicit(&histogram->buckets[i], memory_order_relaxed);
		if (seen >= rank && seen)
			return top_of(i);
	}
	return 0;
}
