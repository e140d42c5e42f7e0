/* SPDX-License-Identifier: MIT */
/*
 * stress.h - what every scenario of vgic-stress uses: random numbers, pauses, and the
 * list of scenarios. What all programs of scenarios share is in scenario.h.
 *
 * Nothing in a scenario depends on time: a lost interrupt or a lost wake-up shows as a controller
 * that has come to rest with something left to do.
 */
#ifndef STRESS_STRESS_H
#define STRESS_STRESS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "scenario.h"

/* ---- Random numbers: one generator for each thread, all derived from the run's seed ---- */

struct rng {
	uint64_t state;
};

static inline void rng_init(struct rng *rng, uint64_t seed, uint64_t stream)
{
	rng->state = (seed + 1) * UINT64_C(0x9e3779b97f4a7c15) ^ (stream + 1) * UINT64_C(0xbf58476d1ce4e5b9);
	rng->state |= 1; /* never zero */
}

static inline uint64_t rng_next(struct rng *rng)
{
	rng->state ^= rng->state >> 12;
	rng->state ^= rng->state << 25;
	rng->state ^= rng->state >> 27;
	return rng->state * UINT64_C(0x2545f4914f6cdd1d);
}

/* 0 to @limit-1. */
static inline uint32_t rng_below(struct rng *rng, uint32_t limit)
{
	return (uint32_t)((rng_next(rng) >> 32) * limit >> 32);
}

/* True once in @n times. */
static inline bool rng_one_in(struct rng *rng, uint32_t n)
{
	return rng_below(rng, n) == 0;
}

/* A busy pause of up to @limit steps. */
void pause_randomly(struct rng *rng, uint32_t limit);

/* A shorter one, of up to @limit cycles or so. */
static inline void pause_finely(struct rng *rng, uint32_t limit)
{
	for (uint32_t n = rng_below(rng, limit); n > 0; n--)
		atomic_signal_fence(memory_order_seq_cst);
}

/* One step of pause_randomly(). */
static inline void pause_step(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("isb" ::: "memory");
#else
	atomic_signal_fence(memory_order_seq_cst);
#endif
}

/* Sleep as briefly as the system can. */
void nap(void);

/* The @n-th step of waiting for another thread: spin, then yield, then nap. */
void wait_step(unsigned n);

/* ---- The scenarios ---- */

/* edge.c */
void run_edge_storm(struct run *run);
void run_edge_lockstep(struct run *run);
void run_edge_merge(struct run *run);
void run_edge_handover(struct run *run);
/* disable.c */
void run_disable_spi(struct run *run);
void run_disable_private(struct run *run);
void run_disable_group(struct run *run);
/* sgi.c */
void run_sgi_storm(struct run *run);
void run_sgi_ring(struct run *run);
/* level.c */
void run_level_exact(struct run *run);
void run_level_shared(struct run *run);
void run_level_resample(struct run *run);
/* one_of_n.c */
void run_one_of_n_exact(struct run *run);
void run_one_of_n_spread(struct run *run);
void run_one_of_n_hand_over(struct run *run);
/* wake.c */
void run_block_and_wake(struct run *run);
void run_hidden_comes_to_light(struct run *run);
/* life.c */
void run_life_cycle(struct run *run);
void run_register_storm(struct run *run);
/* route.c */
void run_route_exact(struct run *run);
void run_route_storm(struct run *run);
void run_route_lines(struct run *run);
void run_route_txn(struct run *run);
void run_msix_mask_exact(struct run *run);
void run_msix_mask_storm(struct run *run);
/* irqfd.c, where there are irqfds */
void run_irqfd_direct(struct run *run);
void run_irqfd_deferred(struct run *run);
void run_irqfd_deassign(struct run *run);
void run_irqfd_deassign_loop(struct run *run);
void run_irqfd_deassign_deferred(struct run *run);
void run_irqfd_resample(struct run *run);
void run_irqfd_resample_deferred(struct run *run);
void run_irqfd_destroy(struct run *run);
/* crowd.c */
void run_crowd(struct run *run);

#endif /* STRESS_STRESS_H */
