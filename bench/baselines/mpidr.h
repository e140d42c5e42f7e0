/* SPDX-License-Identifier: MIT */
/*
 * mpidr.h - two older ways to send an SGI, to compare libvgic with.
 *
 * Both are re-implementations of what Linux's KVM for arm64 does, as a program
 * in user space:
 *   walk   (up to Linux 6.6) looks at every vCPU and compares its affinity
 *   table  (from Linux 6.7) indexes a table by the affinity bits that differ
 *          between vCPUs; where that table would be larger than a page, it walks
 *
 * Delivery is KVM's too: a spin lock in each interrupt, a list of queued
 * interrupts with a spin lock in each vCPU, and a request bit and a kick at the
 * end, also for an interrupt that was pending already. What KVM does beyond that
 * and what is left out here makes the baselines faster than the original: it
 * masks host interrupts, finds vCPUs through an xarray, reads the distributor's
 * state through more pointers and takes an RCU read lock.
 *
 * One extension: the range selector (Aff0 above 15), which KVM lacks, so that
 * all contenders can name the same vCPUs.
 */
#ifndef BENCH_BASELINES_MPIDR_H
#define BENCH_BASELINES_MPIDR_H

#include <stdbool.h>
#include <stdint.h>

struct baseline;

/* All SGIs of all @num vCPUs are enabled and in Group 1. NULL if there is no memory. */
struct baseline *baseline_new(const uint64_t *affinities, uint32_t num);
void baseline_free(struct baseline *baseline);

/* Send the SGI that a write of @sgi1r to ICC_SGI1R_EL1 by vCPU @sender asks for. */
void baseline_sgi_by_walk(struct baseline *baseline, uint32_t sender, uint64_t sgi1r);
void baseline_sgi_by_table(struct baseline *baseline, uint32_t sender, uint64_t sgi1r);

/* The last part of both, alone: the request bit and the kick. */
void baseline_kick(struct baseline *baseline, uint32_t vcpu);

/* False if the table would have been larger than a page. */
bool baseline_has_table(const struct baseline *baseline);

/* Bit n: SGI n is pending at the vCPU and queued exactly once in its list. */
uint32_t baseline_pending_sgis(struct baseline *baseline, uint32_t vcpu);

/* Interrupts in the vCPU's list. */
uint32_t baseline_num_queued(struct baseline *baseline, uint32_t vcpu);

#endif /* BENCH_BASELINES_MPIDR_H */
