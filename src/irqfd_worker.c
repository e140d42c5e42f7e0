/* SPDX-License-Identifier: MIT */
/*
 * irqfd_worker.c - the deferred path: a thread that injects what others have seen.
 *
 * The queue holds GSIs, each at most once, so that it is never longer than the
 * table and nothing is allocated. An event of a GSI that is in it already is
 * coalesced with that one. Who defers pushes onto a stack; the worker takes the
 * whole stack at once and turns it round.
 *
 * R19. Sleep: who defers pushes, then looks whether the worker sleeps; the worker
 * says that it sleeps, then looks at the queue once more. All four accesses are
 * seq_cst: at least one of them sees what the other did.
 */
#include <errno.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "irqfd.h"
#include "probes.h"

static void wake(struct irqfd_worker *w)
{
	const uint64_t one = 1;

	if (load_seq_cst(&w->sleeping) && atomic_exchange_explicit(&w->sleeping, 0, memory_order_seq_cst)) {
		while (write(w->wakefd, &one, sizeof(one)) < 0 && errno == EINTR)
			;
	}
}

static void push(struct irqfd_worker *w, struct irqfd_item *item)
{
	struct irqfd_item *head = load_relaxed(&w->head);

	do {
		store_relaxed(&item->next, head);
	} while (!atomic_compare_exchange_weak_explicit(&w->head, &head, item, memory_order_seq_cst,
							memory_order_relaxed));
	wake(w);
}

void irqfd_defer(struct vgic_irqfds *irqfds, uint32_t gsi, uint32_t want)
{
	struct irqfd_item *item = &irqfds->worker.items[gsi];
	const uint32_t before = atomic_fetch_or_explicit(&item->wanted, want, memory_order_acq_rel);

	if (before & want)
		irqfd_count(&irqfd_counters_of(irqfds, gsi)->coalesced);
	else if (!before)
		push(&irqfds->worker, item);
}

void irqfd_worker_await_raise(struct vgic_irqfds *irqfds, uint32_t gsi)
{
	if (!irqfds->worker.exists)
		return;
	for (unsigned turn = 0; load_acquire(&irqfds->worker.items[gsi].wanted) & IRQFD_WANT_RAISE; turn++)
		port_pause(turn);
}

void irqfd_worker_flush(struct vgic_irqfds *irqfds)
{
	struct irqfd_item fence = { .wanted = IRQFD_WANT_FENCE };

	if (!irqfds->worker.exists)
		return;
	push(&irqfds->worker, &fence);
	for (unsigned turn = 0; load_acquire(&fence.wanted); turn++)
		port_pause(turn);
}

/* ---- The thread ------------------------------------------------------------------------ */

static void inject(struct vgic_irqfds *irqfds, uint32_t gsi)
{
	struct irqfd_counters *c = irqfd_counters_of(irqfds, gsi);
	int result;

	probe_irqfd(irqfds->routes, gsi, 1, PROBE_WORKER);
	result = irqfd_inject(irqfds, gsi, VGIC_IRQFD_DEFERRED);
	irqfd_count(result == 1 ? &c->deferred : &c->dropped);
}

static void raise_line(struct vgic_irqfds *irqfds, uint32_t gsi)
{
	struct irqfd_counters *c = irqfd_counters_of(irqfds, gsi);
	int result;

	probe_irqfd(irqfds->routes, gsi, 1, PROBE_WORKER);
	result = route_drive(irqfds->routes, gsi, true);
	if (result < 0)
		irqfd_count(vgic_signal_gsi(irqfds->routes, gsi) == 1 ? &c->deferred : &c->dropped);
	else
		irqfd_count(result ? &c->deferred : &c->coalesced);
}

/* Oldest first. An item may come back as soon as nothing is wanted of it: what follows it is looked at before. */
static struct irqfd_item *take_all(struct irqfd_worker *w)
{
	struct irqfd_item *item = atomic_exchange_explicit(&w->head, NULL, memory_order_seq_cst), *oldest = NULL;

	while (item) {
		struct irqfd_item *next = load_relaxed(&item->next);

		store_relaxed(&item->next, oldest);
		oldest = item;
		item = next;
	}
	return oldest;
}

static void do_item(struct vgic_irqfds *irqfds, struct irqfd_item *item)
{
	const uint32_t gsi = (uint32_t)(item - irqfds->worker.items);
	const uint32_t wanted = atomic_exchange_explicit(&item->wanted, 0, memory_order_acq_rel);

	if (wanted & IRQFD_WANT_EDGE)
		inject(irqfds, gsi);
	if (wanted & IRQFD_WANT_RAISE)
		raise_line(irqfds, gsi);
}

/* R19. */
static void sleep_until_woken(struct irqfd_worker *w)
{
	uint64_t count;

	store_seq_cst(&w->sleeping, 1);
	if (load_seq_cst(&w->head)) {
		store_relaxed(&w->sleeping, 0);
		return;
	}
	while (read(w->wakefd, &count, sizeof(count)) < 0 && errno == EINTR)
		;
}

static void *worker_main(void *arg)
{
	struct vgic_irqfds *irqfds = arg;
	struct irqfd_worker *w = &irqfds->worker;

	for (;;) {
		struct irqfd_item *item = take_all(w), *next;

		if (!item)
			sleep_until_woken(w);
		for (; item; item = next) {
			next = load_relaxed(&item->next);
			if (!(load_relaxed(&item->wanted) & IRQFD_WANT_FENCE)) {
				do_item(irqfds, item);
				continue;
			}
			if (w->stop)
				return NULL;
			store_release(&item->wanted, 0);
		}
	}
}

int irqfd_worker_start(struct vgic_irqfds *irqfds)
{
	struct irqfd_worker *w = &irqfds->worker;
	int err;

	w->items = port_alloc_zeroed(vgic_routes_num_gsis(irqfds->routes) * sizeof(*w->items), CACHE_LINE);
	if (!w->items)
		return -ENOMEM;
	w->wakefd = eventfd(0, EFD_CLOEXEC);
	err = w->wakefd < 0 ? -errno : irqfd_thread_start(&w->thread, worker_main, irqfds);
	if (err) {
		if (w->wakefd >= 0)
			close(w->wakefd);
		port_free(w->items);
		return err;
	}
	w->exists = true;
	return 0;
}

void irqfd_worker_stop(struct vgic_irqfds *irqfds)
{
	struct irqfd_worker *w = &irqfds->worker;
	struct irqfd_item fence = { .wanted = IRQFD_WANT_FENCE };

	if (!w->exists)
		return;
	/* Read by the worker behind the fence. */
	w->stop = true;
	push(w, &fence);
	pthread_join(w->thread, NULL);
	close(w->wakefd);
	port_free(w->items);
	w->exists = false;
}
