/* SPDX-License-Identifier: MIT */
/*
 * irqfd.h - irqfds, as their own files see them.
 *
 *   irqfd.c          irqfds, events, resampling
 *   irqfd_service.c  threads that wait for eventfds
 *   irqfd_worker.c   the deferred path
 *   irqfd_none.c     in place of all of these where there is no Linux
 *
 * An irqfd is a slot of a pool that is made at creation. Slots are type-stable, and
 * what an event brings along is a *token*, the slot's index and generation: one
 * that was on its way while its irqfd was deassigned finds another generation, and
 * is nothing.
 *
 * R18. Who handles an event enters the slot: adds one to its count of users and
 * looks at the generation, which is in the same word. Who deassigns changes the
 * generation and then waits for the count to be 0. Both are read-modify-writes of
 * one word: who enters later finds the new generation. So when it is 0, no event of
 * that irqfd is being delivered, and none will be.
 *
 * What meets a mask or a pause is kept by the route (R16, R20), and nothing of it here.
 *
 * `lock` guards which slots are taken, by which eventfd. It is not held while
 * anything is waited for, nor while callbacks are made; the route table's lock is
 * never taken under it.
 */
#ifndef VGIC_SRC_IRQFD_H
#define VGIC_SRC_IRQFD_H

#include <pthread.h>
#include <vgic/irqfd.h>

#include "route.h"

enum irqfd_phase {
	IRQFD_FREE,
	IRQFD_BINDING,
	IRQFD_BOUND,
	IRQFD_LEAVING,
};

/* The word that tokens are checked against. A generation is odd while the slot is in use. */
#define IRQFD_USERS_MASK       UINT64_C(0x7fffffff)
#define IRQFD_GENERATION_SHIFT 32

struct irqfd_slot {
	_Alignas(CACHE_LINE) _Atomic uint64_t state; /* generation, users */

	/* Constant while the generation is odd; read by those who have entered. */
	uint32_t gsi;
	int resamplefd; /* a duplicate, or VGIC_NO_FD: events are edges */

	/* Under the lock. */
	enum irqfd_phase phase;
	int fd;        /* the VMM's number */
	int watchedfd; /* the service's duplicate of it */
	uint32_t next; /* in the bucket of its eventfd, or of the free ones */
};

#define NO_SLOT UINT32_MAX

/* A GSI in the worker's queue. */
struct irqfd_item {
	_Atomic(struct irqfd_item *) next;
	_Atomic uint32_t wanted; /* IRQFD_WANT_*; it is in the queue, or is being taken from it, while this is not 0 */
};

#define IRQFD_WANT_EDGE  (1u << 0) /* inject an event */
#define IRQFD_WANT_RAISE (1u << 1) /* raise the line */
#define IRQFD_WANT_FENCE (1u << 2) /* nothing: tells that everything before it is done */

struct irqfd_worker {
	bool exists;
	bool stop; /* written before the last fence */
	pthread_t thread;
	int wakefd;
	struct irqfd_item *items;                               /* by GSI */
	_Alignas(CACHE_LINE) _Atomic(struct irqfd_item *) head; /* last in, first out */
	_Atomic uint32_t sleeping;
};

struct irqfd_thread {
	_Alignas(CACHE_LINE) struct vgic_irqfds *irqfds;
	pthread_t thread;
	bool running;
	int epollfd;
	_Atomic uint64_t waits, empty_waits;
};

#define IRQFD_NUM_COUNTERS 16u

/* Threads that inject at a time count in different ones, mostly. */
struct irqfd_counters {
	_Alignas(CACHE_LINE) _Atomic uint64_t direct;
	_Atomic uint64_t deferred, coalesced, dropped, stale, resamples;
};

struct vgic_irqfds {
	/* Constant. */
	struct vgic_routes *routes;
	struct vgic_irqfds_config config;
	struct irqfd_slot *slots;
	uint32_t *buckets; /* by eventfd: first slot, or NO_SLOT */
	uint32_t bucket_mask;
	struct port_lock *lock;

	struct irqfd_worker worker;
	struct irqfd_thread *threads;
	int stopfd; /* of the service */

	/* Under the lock. */
	uint32_t free_slots;
	uint32_t num_assigned;

	struct irqfd_counters counters[IRQFD_NUM_COUNTERS];
};

static inline void irqfd_count(_Atomic uint64_t *counter)
{
	atomic_fetch_add_explicit(counter, 1, memory_order_relaxed);
}

static inline struct irqfd_counters *irqfd_counters_of(struct vgic_irqfds *irqfds, uint32_t gsi)
{
	return &irqfds->counters[gsi % IRQFD_NUM_COUNTERS];
}

/* ---- irqfd.c ---- */

/* Inject an event of a GSI. -EWOULDBLOCK, by ops.inject() only: the worker has to. */
int irqfd_inject(struct vgic_irqfds *irqfds, uint32_t gsi, enum vgic_irqfd_path path);

/* A thread of the library's, with all signals blocked. Returns 0 or a negative errno. */
int irqfd_thread_start(pthread_t *thread, void *(*main)(void *), void *arg);

/* ---- irqfd_service.c: returns of 0 or a negative errno ---- */

int irqfd_service_start(struct vgic_irqfds *irqfds);
void irqfd_service_stop(struct vgic_irqfds *irqfds);
int irqfd_service_watch(struct vgic_irqfds *irqfds, int fd, uint64_t token);
void irqfd_service_unwatch(struct vgic_irqfds *irqfds, int fd, uint64_t token);

/* ---- irqfd_worker.c ---- */

int irqfd_worker_start(struct vgic_irqfds *irqfds);
void irqfd_worker_stop(struct vgic_irqfds *irqfds);

/* Have the worker do IRQFD_WANT_EDGE or _RAISE for a GSI. Any thread, no lock. */
void irqfd_defer(struct vgic_irqfds *irqfds, uint32_t gsi, uint32_t want);

/*
 * Wait until the worker has begun to raise the line of a GSI, if it was to; nobody defers that meanwhile. A flush alone
 * does not do: an item is pushed by who wanted something of it first, which may be an event of another irqfd, and may
 * not have been pushed yet.
 */
void irqfd_worker_await_raise(struct vgic_irqfds *irqfds, uint32_t gsi);

/* Wait until the worker has done everything that was deferred before. Nothing happens without a worker. */
void irqfd_worker_flush(struct vgic_irqfds *irqfds);

#endif /* VGIC_SRC_IRQFD_H */
