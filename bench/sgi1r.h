/* SPDX-License-Identifier: MIT */
/*
 * sgi1r.h - the layout of ICC_SGI1R_EL1, for the benchmarks and the baselines.
 *
 * Affinities are in the layout of MPIDR_EL1: Aff3 in bits 39:32, Aff2 23:16,
 * Aff1 15:8, Aff0 7:0.
 */
#ifndef BENCH_SGI1R_H
#define BENCH_SGI1R_H

#include <stdint.h>

#define SGI1R_BROADCAST (UINT64_C(1) << 40) /* IRM */

static inline unsigned sgi1r_intid(uint64_t sgi1r)
{
	return sgi1r >> 24 & 15;
}

/* Bit n: the PE whose Aff0 is that of the cluster plus n. */
static inline uint32_t sgi1r_targets(uint64_t sgi1r)
{
	return sgi1r & 0xffff;
}

/* Aff3, Aff2, Aff1 and the upper half of Aff0, which is the range selector. */
static inline uint64_t sgi1r_cluster(uint64_t sgi1r)
{
	return (sgi1r >> 48 & 0xff) << 32 | (sgi1r >> 32 & 0xff) << 16 | (sgi1r >> 16 & 0xff) << 8 |
	       (sgi1r >> 44 & 0xf) << 4;
}

/* The value that sends SGI @intid to the one PE with @affinity. */
static inline uint64_t sgi1r_to(uint64_t affinity, unsigned intid)
{
	return (affinity >> 32 & 0xff) << 48 | (affinity >> 4 & 0xf) << 44 | (affinity >> 16 & 0xff) << 32 |
	       (uint64_t)(intid & 15) << 24 | (affinity >> 8 & 0xff) << 16 | UINT64_C(1) << (affinity & 15);
}

#endif /* BENCH_SGI1R_H */
