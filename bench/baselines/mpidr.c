/* SPDX-License-Identifier: MIT */
/*
 * mpidr.c - the two baselines of mpidr.h.
 *
 * Lock order: a vCPU's list_lock, then an interrupt's lock.
 */
#include "mpidr.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>

#include "../sgi1r.h"

#define NUM_SGIS        16
#define CACHE_LINE      64
#define TABLE_BYTES_MAX 4096 /* a page: above it KVM does without the table */
#define REQUEST_IRQ     (UINT64_C(1) << 1)

/* ---- A spin lock: one atomic operation to take it, a plain store to release it. ---- */

struct spin_lock {
	_Atomic uint32_t taken;
};

static void spin_lock(struct spin_lock *lock)
{
	while (atomic_exchange_explicit(&lock->taken, 1, memory_order_acquire)) {
		while (atomic_load_explicit(&lock->taken, memory_order_relaxed))
			;
	}
}

static void spin_unlock(struct spin_lock *lock)
{
	atomic_store_explicit(&lock->taken, 0, memory_order_release);
}

/* ---- Interrupts and vCPUs ---- */

struct base_vcpu;

struct base_irq {
	struct spin_lock lock;
	uint32_t intid;
	struct base_irq *next; /* in the list of @queued_at */
	struct base_vcpu *target;
	struct base_vcpu *queued_at; /* NULL: in no list */
	bool pending_latch, active, enabled, group1;
};

enum vcpu_mode { OUTSIDE_GUEST, IN_GUEST, EXITING_GUEST };

struct base_vcpu {
	_Alignas(CACHE_LINE) uint64_t affinity;
	_Alignas(CACHE_LINE) _Atomic uint64_t requests;
	_Atomic(void *) waiter; /* the thread that sleeps in WFI */
	_Atomic int mode;
	_Alignas(CACHE_LINE) struct spin_lock list_lock;
	struct base_irq *queue, **queue_end;
	_Alignas(CACHE_LINE) struct base_irq sgis[NUM_SGIS];
};

/* The vCPU's position by the bits of @mask, put side by side, of its affinity. */
struct mpidr_table {
	uint64_t mask;
	uint16_t position[];
};

struct baseline {
	uint32_t num_vcpus;
	bool distributor_enabled;
	struct mpidr_table *table;
	struct base_vcpu **vcpus;
};

static void init_vcpu(struct base_vcpu *vcpu, uint64_t affinity)
{
	vcpu->affinity = affinity;
	vcpu->queue_end = &vcpu->queue;
	for (uint32_t i = 0; i < NUM_SGIS; i++) {
		vcpu->sgis[i].intid = i;
		vcpu->sgis[i].target = vcpu;
		vcpu->sgis[i].enabled = true;
		vcpu->sgis[i].group1 = true;
	}
}

/* ---- The table ---- */

/* The bits of @affinity that are in @mask, moved together to the low end. */
static uint32_t compress_affinity(uint64_t affinity, uint64_t mask)
{
	uint32_t result = 0;
	unsigned position = 0;

	for (; mask; mask &= mask - 1)
		result |= (uint32_t)(affinity >> __builtin_ctzll(mask) & 1) << position++;
	return result;
}

/* Leaves baseline->table NULL where the table would be too large. Returns false if there is no memory. */
static bool build_table(struct baseline *baseline)
{
	uint64_t set = 0, clear = 0;

	for (uint32_t i = 0; i < baseline->num_vcpus; i++) {
		set |= baseline->vcpus[i]->affinity;
		clear |= ~baseline->vcpus[i]->affinity;
	}

	const uint64_t mask = set & clear;
	const size_t entries = (size_t)1 << __builtin_popcountll(mask);
	const size_t bytes = sizeof(struct mpidr_table) + entries * sizeof(uint16_t);

	if (bytes > TABLE_BYTES_MAX)
		return true;

	struct mpidr_table *table = calloc(1, bytes);

	if (!table)
		return false;
	table->mask = mask;
	for (uint32_t i = 0; i < baseline->num_vcpus; i++)
		table->position[compress_affinity(baseline->vcpus[i]->affinity, mask)] = (uint16_t)i;
	baseline->table = table;
	return true;
}

/* ---- Life cycle ---- */

struct baseline *baseline_new(const uint64_t *affinities, uint32_t num)
{
	struct baseline *baseline = calloc(1, sizeof(*baseline));

	if (!baseline)
		return NULL;
	baseline->vcpus = calloc(num, sizeof(struct base_vcpu *));
	if (!baseline->vcpus)
		goto fail;
	baseline->distributor_enabled = true;
	for (uint32_t i = 0; i < num; i++) {
		struct base_vcpu *vcpu = aligned_alloc(CACHE_LINE, sizeof(*vcpu));

		if (!vcpu)
			goto fail;
		*vcpu = (struct base_vcpu){ 0 };
		init_vcpu(vcpu, affinities[i]);
		baseline->vcpus[i] = vcpu;
		baseline->num_vcpus = i + 1;
	}
	if (!build_table(baseline))
		goto fail;
	return baseline;

fail:
	baseline_free(baseline);
	return NULL;
}

void baseline_free(struct baseline *baseline)
{
	if (!baseline)
		return;
	for (uint32_t i = 0; i < baseline->num_vcpus; i++)
		free(baseline->vcpus[i]);
	free(baseline->vcpus);
	free(baseline->table);
	free(baseline);
}

/* ---- Delivery ---- */

/* Make the vCPU look: a request bit, a wake-up if it sleeps, and an exit if it runs guest code. */
static void kick_vcpu(struct base_vcpu *vcpu)
{
	int running = IN_GUEST;

	atomic_fetch_or_explicit(&vcpu->requests, REQUEST_IRQ, memory_order_release);
	/* The request before the sleeper, as the sleeper does it the other way around. */
	atomic_thread_fence(memory_order_seq_cst);
	if (atomic_load_explicit(&vcpu->waiter, memory_order_relaxed))
		abort(); /* nobody sleeps in this program */
	if (atomic_compare_exchange_strong(&vcpu->mode, &running, EXITING_GUEST))
		abort(); /* and nobody runs guest code */
}

/* Which vCPU has to see the interrupt now, if any. */
static struct base_vcpu *choose_vcpu(const struct baseline *baseline, const struct base_irq *irq)
{
	if (irq->active)
		return irq->queued_at ? irq->queued_at : irq->target;
	if (irq->enabled && irq->pending_latch && baseline->distributor_enabled)
		return irq->target;
	return NULL;
}

static void append_to_queue(struct base_vcpu *vcpu, struct base_irq *irq)
{
	irq->next = NULL;
	*vcpu->queue_end = irq;
	vcpu->queue_end = &irq->next;
	irq->queued_at = vcpu;
}

/* Called with the interrupt's lock, which it releases. */
static void queue_and_unlock(const struct baseline *baseline, struct base_irq *irq)
{
	struct base_vcpu *vcpu = choose_vcpu(baseline, irq);

	while (vcpu && !irq->queued_at) {
		/* The list's lock comes first: let go, take both, and see whether it is still so. */
		spin_unlock(&irq->lock);
		spin_lock(&vcpu->list_lock);
		spin_lock(&irq->lock);
		if (!irq->queued_at && vcpu == choose_vcpu(baseline, irq)) {
			append_to_queue(vcpu, irq);
			spin_unlock(&irq->lock);
			spin_unlock(&vcpu->list_lock);
			kick_vcpu(vcpu);
			return;
		}
		spin_unlock(&irq->lock);
		spin_unlock(&vcpu->list_lock);
		spin_lock(&irq->lock);
		vcpu = choose_vcpu(baseline, irq);
	}
	spin_unlock(&irq->lock);
	/* Queued already: it may have been consumed meanwhile, so the vCPU has to look again. */
	if (vcpu)
		kick_vcpu(vcpu);
}

/* ICC_SGI1R reaches SGIs of both groups: the group is looked at and changes nothing. */
static void queue_sgi(const struct baseline *baseline, struct base_vcpu *vcpu, unsigned intid, bool group1_too)
{
	struct base_irq *irq = &vcpu->sgis[intid];

	spin_lock(&irq->lock);
	if (irq->group1 && !group1_too) {
		spin_unlock(&irq->lock);
		return;
	}
	irq->pending_latch = true;
	queue_and_unlock(baseline, irq);
}

static void broadcast_sgi(const struct baseline *baseline, uint32_t sender, unsigned intid)
{
	for (uint32_t i = 0; i < baseline->num_vcpus; i++) {
		if (i != sender)
			queue_sgi(baseline, baseline->vcpus[i], intid, true);
	}
}

/* ---- Which vCPU: the walk ---- */

void baseline_sgi_by_walk(struct baseline *baseline, uint32_t sender, uint64_t sgi1r)
{
	const unsigned intid = sgi1r_intid(sgi1r);
	const uint64_t cluster = sgi1r_cluster(sgi1r);
	uint32_t left = sgi1r_targets(sgi1r);

	if (sgi1r & SGI1R_BROADCAST) {
		broadcast_sgi(baseline, sender, intid);
		return;
	}
	for (uint32_t i = 0; i < baseline->num_vcpus && left; i++) {
		struct base_vcpu *vcpu = baseline->vcpus[i];
		const uint32_t bit = UINT32_C(1) << (vcpu->affinity & 15);

		if ((vcpu->affinity & ~UINT64_C(15)) != cluster || !(left & bit))
			continue;
		left &= ~bit;
		queue_sgi(baseline, vcpu, intid, true);
	}
}

/* ---- Which vCPU: the table ---- */

static struct base_vcpu *find_vcpu(const struct baseline *baseline, uint64_t affinity)
{
	const struct mpidr_table *table = baseline->table;

	if (table) {
		struct base_vcpu *vcpu = baseline->vcpus[table->position[compress_affinity(affinity, table->mask)]];

		return vcpu->affinity == affinity ? vcpu : NULL;
	}
	for (uint32_t i = 0; i < baseline->num_vcpus; i++) {
		if (baseline->vcpus[i]->affinity == affinity)
			return baseline->vcpus[i];
	}
	return NULL;
}

void baseline_sgi_by_table(struct baseline *baseline, uint32_t sender, uint64_t sgi1r)
{
	const unsigned intid = sgi1r_intid(sgi1r);
	const uint64_t cluster = sgi1r_cluster(sgi1r);

	if (sgi1r & SGI1R_BROADCAST) {
		broadcast_sgi(baseline, sender, intid);
		return;
	}
	for (uint32_t left = sgi1r_targets(sgi1r); left; left &= left - 1) {
		struct base_vcpu *vcpu = find_vcpu(baseline, cluster | (unsigned)__builtin_ctz(left));

		if (vcpu)
			queue_sgi(baseline, vcpu, intid, true);
	}
}

/* ---- For the benchmark and the tests ---- */

void baseline_kick(struct baseline *baseline, uint32_t vcpu)
{
	kick_vcpu(baseline->vcpus[vcpu]);
}

bool baseline_has_table(const struct baseline *baseline)
{
	return baseline->table != NULL;
}

uint32_t baseline_num_queued(struct baseline *baseline, uint32_t vcpu)
{
	uint32_t num = 0;

	for (const struct base_irq *irq = baseline->vcpus[vcpu]->queue; irq; irq = irq->next)
		num++;
	return num;
}

uint32_t baseline_pending_sgis(struct baseline *baseline, uint32_t vcpu)
{
	uint32_t seen = 0, twice = 0, pending = 0;

	for (const struct base_irq *irq = baseline->vcpus[vcpu]->queue; irq; irq = irq->next) {
		const uint32_t bit = UINT32_C(1) << irq->intid;

		twice |= seen & bit;
		seen |= bit;
		if (irq->pending_latch && irq->queued_at == baseline->vcpus[vcpu])
			pending |= bit;
	}
	return pending & ~twice;
}
