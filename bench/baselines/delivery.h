/* SPDX-License-Identifier: MIT */
/*
 * delivery.h - how the baselines bring an interrupt to a vCPU.
 *
 * A re-implementation, as a program, of how Linux's KVM for arm64 does it: a lock
 * in each interrupt; in each vCPU a list of queued interrupts with a lock; a
 * reference count in each LPI; list registers, of which the vCPU takes interrupts
 * by itself, and which are filled from the list and read back into it. An
 * interrupt that is signalled makes a request to its vCPU and kicks it, even if it
 * was pending already.
 *
 * The registry finds an LPI by its INTID. Up to Linux 6.8 it is a list under one
 * lock, which is also taken to give up a reference; since then it is a tree that
 * is read under RCU.
 *
 * What costs time in KVM is here as well: atomic operations and fences are the same
 * ones (a request is an atomic operation and a fence, the bus is read in a section
 * of SRCU with two of them), comparisons in searches are calls, and the vCPU of a
 * translation is looked up. Left out, which makes the baselines faster than the
 * original: host interrupts are not masked, the registers behind the list registers
 * cost nothing, and a vCPU leaves the guest only when its list registers are empty.
 *
 * Lock order: its_lock (its_model.h), list_lock of a vCPU (two of them by
 * address), lock of an interrupt, lock of the registry.
 */
#ifndef BENCH_BASELINES_DELIVERY_H
#define BENCH_BASELINES_DELIVERY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "../policy.h"
#include "list.h"
#include "radix.h"
#include "spinlock.h"

#define BASE_LINE    64
#define BASE_NUM_LRS 4 /* what Cortex and Neoverse cores have */

struct base_vcpu;
struct base_gic;

struct base_irq {
	struct radix_buried buried;
	struct spinlock lock;
	_Atomic uint32_t references;
	uint32_t intid;
	uint8_t priority;
	bool pending_latch, line_level, active, enabled, edge, group1;
	bool hardware;          /* (never, for an LPI) backed by a physical interrupt */
	struct list queue_node; /* in the list of @queued_at */
	struct base_vcpu *target;
	struct base_vcpu *queued_at; /* NULL: in no list */
	struct list registry_node;
};

/* A list register, in the layout of ICH_LR<n>_EL2. */
typedef uint64_t base_lr;

struct base_vcpu {
	_Alignas(BASE_LINE) uint32_t index;
	struct base_gic *gic;
	_Atomic uint64_t requests;
	_Atomic bool waiting; /* it sleeps in WFI, or is about to */
	_Atomic int mode;
	bool lpis_enabled;

	_Alignas(BASE_LINE) struct spinlock list_lock;
	struct list queue;

	/* The vCPU's own. */
	_Alignas(BASE_LINE) base_lr lrs[BASE_NUM_LRS];
	unsigned num_lrs;
	uint32_t active_priorities;
};

/* What is at a guest-physical address: a bus, sorted by it, which a doorbell is looked up in. */
enum base_frame_kind { FRAME_DIST, FRAME_REDIST, FRAME_ITS };

struct base_frame {
	uint64_t base, size;
	enum base_frame_kind kind;
	void *owner; /* the ITS */
};

enum base_registry { REGISTRY_LIST, REGISTRY_TREE };

struct base_gic {
	bool enabled;
	uint32_t num_vcpus;
	struct base_vcpu **vcpus;
	struct radix vcpu_tree; /* the same by index, as the ITS finds them: vCPUs come while others run */
	struct base_frame *frames;
	unsigned num_frames;

	enum base_registry registry;
	_Alignas(BASE_LINE) struct spinlock lpi_lock; /* guards the following */
	struct list lpi_list;
	struct radix lpi_tree;
	struct radix_grave grave; /* in registry LIST nothing is freed before the end: hits take no reference */
	struct base_irq **lpis;   /* by number, for commands only: the same as the registry */
	uint64_t contended_of_freed;

	void (*kick)(void *opaque, uint32_t vcpu);
	void *opaque;
};

#define BASE_ITS_BASE     UINT64_C(0x08080000)
#define BASE_ITS_SIZE     UINT64_C(0x20000)
#define BASE_ITS_DOORBELL (BASE_ITS_BASE + 0x10040)

/* Returns 0 or -ENOMEM. @its becomes the owner of the ITS's frame. */
int base_gic_init(struct base_gic *gic, const struct policy_config *config, enum base_registry registry, void *its);
void base_gic_destroy(struct base_gic *gic);

/* ---- LPIs ---- */

/* The LPI with a reference, or NULL. */
struct base_irq *base_lpi_get(struct base_gic *gic, uint32_t intid);

/* The same, but makes it if it is not there; NULL if there is no memory. */
struct base_irq *base_lpi_add(struct base_gic *gic, uint32_t intid);

/*
 * Reference counts are of the kernel's kind: one that has overflowed stays where it
 * is, and the object with it.
 */
#define REFERENCES_SATURATED UINT32_C(0xc0000000)

/* A reference more, of someone who has one. */
static inline void base_irq_hold(struct base_irq *irq)
{
	const uint32_t old = atomic_fetch_add_explicit(&irq->references, 1, memory_order_relaxed);

	if (__builtin_expect(old == 0 || (int32_t)old < 0 || (int32_t)(old + 1) < 0, 0))
		atomic_store_explicit(&irq->references, REFERENCES_SATURATED, memory_order_relaxed);
}

/* A reference more, unless there is none left: false. */
static inline bool base_irq_try_hold(struct base_irq *irq)
{
	uint32_t old = atomic_load_explicit(&irq->references, memory_order_relaxed);

	do {
		if (old == 0)
			return false;
	} while (!atomic_compare_exchange_strong_explicit(&irq->references, &old, old + 1, memory_order_acquire,
							  memory_order_relaxed));
	if (__builtin_expect((int32_t)old < 0 || (int32_t)(old + 1) < 0, 0))
		atomic_store_explicit(&irq->references, REFERENCES_SATURATED, memory_order_relaxed);
	return true;
}

void base_irq_release(struct base_gic *gic, struct base_irq *irq);

/* The same for who holds lpi_lock. */
void base_irq_release_locked(struct base_gic *gic, struct base_irq *irq);

/* Calls @each for every LPI that there is, without a lock. Returns 0 or -ENOMEM. */
int base_lpi_each(struct base_gic *gic, void (*each)(void *context, struct base_irq *irq), void *context);

/* ---- Delivery ---- */

/* The device's signal, once it has been translated. */
void base_signal(struct base_gic *gic, struct base_irq *irq);

/* Called with the interrupt's lock, which it releases: queue it, if its vCPU has to see it, and kick that. */
void base_queue_and_unlock(struct base_gic *gic, struct base_irq *irq);

/* A command moves the interrupt to another vCPU, or nowhere (NULL). */
void base_retarget(struct base_gic *gic, struct base_irq *irq, struct base_vcpu *target);

/* ---- The vCPU's side ---- */

uint32_t base_acknowledge(struct base_vcpu *vcpu);
void base_end(struct base_vcpu *vcpu);
bool base_is_up(struct base_vcpu *vcpu);
bool base_prepare_wait(struct base_vcpu *vcpu);
void base_finish_wait(struct base_vcpu *vcpu);

/* The vCPU that a translation leads to, or NULL. */
struct base_vcpu *base_find_vcpu(struct base_gic *gic, uint32_t index);

/* The ITS that has its doorbell at this guest-physical address, or NULL. */
void *base_find_its(const struct base_gic *gic, uint64_t doorbell);

uint64_t base_contended(struct base_gic *gic);

#endif /* BENCH_BASELINES_DELIVERY_H */
