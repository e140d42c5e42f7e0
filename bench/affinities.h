/* SPDX-License-Identifier: MIT */
/*
 * affinities.h - the two ways in which the benchmarks number their vCPUs.
 */
#ifndef BENCH_AFFINITIES_H
#define BENCH_AFFINITIES_H

#include <stdint.h>

/* Up to this many vCPUs, all affinities are different. */
#define AFFINITIES_MAX 4096u

/* What a VMM usually does: Aff0 0 to 15, then Aff1. */
static inline uint64_t affinity_linear(uint32_t index)
{
	return (uint64_t)(index >> 4) << 8 | (index & 15);
}

/*
 * What the architecture allows as well: each vCPU in a cluster of its own, with
 * bits all over the four fields. An odd factor makes the clusters different, and
 * the affinities of any four differ in so many bits that a table indexed by
 * those bits would need far more than a page.
 */
static inline uint64_t affinity_hostile(uint32_t index)
{
	const uint32_t cluster = (index + 1) * 0x9e3779u & 0xffffff;
	const uint32_t aff0 = (index + 1) * 0xb5u & 0xff;

	return (uint64_t)(cluster >> 16) << 32 | (uint64_t)(cluster & 0xffff) << 8 | aff0;
}

#endif /* BENCH_AFFINITIES_H */
