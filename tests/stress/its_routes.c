/* SPDX-License-Identifier: MIT */
/*
 * its_routes.c - MSIs by way of routes, while the VMM masks them and pauses the
 * controller: what is kept is delivered, once, by whatever lets go of it last.
 */
#include "its_routes.h"

#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <vgic/irqfd.h>
#include <vgic/state.h>

#include "its_world.h"

/* One GSI for each LPI, of the number that the LPI has among those of the world. */
struct table {
	struct world *world;
	struct vgic_routes *routes;
	struct vgic_irqfds *irqfds; /* or NULL */
	int fds[ITS_LPIS];
	_Atomic uint64_t num_written; /* signals of eventfds */
};

static struct vgic_route route_of(uint32_t lpi, bool masked)
{
	struct vgic_route route = { .type = VGIC_ROUTE_MSI, .flags = masked ? VGIC_ROUTE_MASKED : 0 };

	route.to.msi.address = ITS_WORLD_BASE + VGIC_ITS_DOORBELL;
	route.to.msi.devid = lpi / ITS_EVENTS;
	route.to.msi.data = lpi % ITS_EVENTS;
	route.to.msi.msi_flags = VGIC_MSI_VALID_DEVID;
	return route;
}

static void set_masked(struct table *t, uint32_t lpi, bool masked)
{
	const struct vgic_route route = route_of(lpi, masked);
	const int err = vgic_route_set(t->routes, lpi, &route);

	if (err)
		run_fail(t->world->run, "vgic_route_set() returned %d", err);
}

static void set_all_masked(struct table *t, bool masked)
{
	struct vgic_route_txn txn;

	vgic_route_txn_begin(t->routes, &txn);
	for (uint32_t lpi = 0; lpi < ITS_LPIS; lpi++) {
		const struct vgic_route route = route_of(lpi, masked);

		if (vgic_route_txn_set(&txn, lpi, &route))
			run_fail(t->world->run, "vgic_route_txn_set() failed");
	}
	vgic_route_txn_commit(&txn);
}

static void open_table(struct table *t, struct world *w)
{
	*t = (struct table){ .world = w };
	if (vgic_routes_create(w->vgic, ITS_LPIS, &t->routes))
		abort();
	set_all_masked(t, false);
}

static void expect_nothing_kept(struct table *t)
{
	for (uint32_t lpi = 0; lpi < ITS_LPIS; lpi++) {
		if (vgic_gsi_is_pending(t->routes, lpi))
			run_fail(t->world->run, "GSI %u keeps an event, without mask or pause", lpi);
	}
}

/* ---- Everything at once: each event is acknowledged, once ----------------------------------------------- */

/* By an eventfd, if there is one and it is its turn. What is kept counts as accepted: it is to be acknowledged. */
static int signal_route(void *context, struct device *d, uint32_t event)
{
	struct table *t = context;
	const uint32_t lpi = d->number * ITS_EVENTS + event;
	int result;

	if (t->irqfds && event % 2 == 0) {
		atomic_fetch_add(&t->num_written, 1);
		return eventfd_write(t->fds[lpi], 1) ? -EIO : 1;
	}
	result = vgic_signal_gsi(t->routes, lpi);
	return result == 0 ? 1 : result;
}

static void open_irqfds(struct table *t)
{
	struct vgic_irqfds_config config;
	int err;

	vgic_irqfds_config_init(&config);
	config.max_irqfds = ITS_LPIS;
	err = vgic_irqfds_create(t->routes, &config, &t->irqfds);
	if (err == -ENOSYS)
		return;
	if (err)
		abort();
	for (uint32_t lpi = 0; lpi < ITS_LPIS; lpi++) {
		t->fds[lpi] = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
		if (t->fds[lpi] < 0 || vgic_irqfd_assign(t->irqfds, lpi, t->fds[lpi], VGIC_NO_FD))
			abort();
	}
}

/* The service has handled every signal: in lockstep none is merged with another. */
static void await_service(struct table *t)
{
	struct vgic_irqfds_stats stats = { .size = sizeof(stats) };

	while (t->irqfds) {
		vgic_irqfds_get_stats(t->irqfds, &stats);
		if (stats.direct + stats.dropped == load_relaxed(&t->num_written))
			break;
		sched_yield();
	}
}

static void close_irqfds(struct table *t)
{
	if (!t->irqfds)
		return;
	vgic_irqfds_destroy(t->irqfds);
	for (uint32_t lpi = 0; lpi < ITS_LPIS; lpi++)
		close(t->fds[lpi]);
}

static void save_something(struct world *w)
{
	static uint8_t image[1 << 16];
	size_t used;
	int err;

	/* vCPUs stop for that; devices need not, but the gate is for both. */
	its_world_close_gate(w);
	err = vgic_save(w->vgic, image, sizeof(image), &used);
	its_world_open_gate(w);
	if (err)
		run_fail(w->run, "vgic_save() returned %d", err);
}

/* Another table of the controller comes and goes, with events of its own. */
static void use_another_table(struct table *t)
{
	struct vgic_routes *other;

	if (vgic_routes_create(t->world->vgic, 4, &other))
		abort();
	vgic_signal_gsi(other, 0);
	vgic_routes_destroy(other);
}

static void interfere(struct table *t, unsigned *pauses)
{
	struct world *w = t->world;

	switch (rng_below(&w->rng, 8)) {
	case 0:
		if (*pauses < 2 && ++*pauses)
			vgic_pause(w->vgic);
		break;
	case 1:
	case 2:
		if (*pauses && (*pauses)--)
			vgic_resume(w->vgic);
		break;
	case 3:
		save_something(w);
		break;
	case 4:
		set_all_masked(t, rng_below(&w->rng, 4) == 0);
		break;
	case 5:
		use_another_table(t);
		break;
	default:
		set_masked(t, rng_below(&w->rng, ITS_LPIS), rng_below(&w->rng, 4) == 0);
	}
}

void run_its_pause_exact(struct run *run)
{
	struct world *w = its_world_open(run, true);
	struct table t;
	unsigned pauses = 0;

	open_table(&t, w);
	open_irqfds(&t);
	w->signal = signal_route;
	w->signal_context = &t;
	its_world_start_devices(w);
	for (uint64_t i = 0; i < run->iterations && !load_relaxed(&run->failures); i++) {
		interfere(&t, &pauses);
		world_pause(&w->rng, 2000);
		if (i % 4 == 0)
			sched_yield();
		w->num_checked++;
	}
	for (; pauses; pauses--)
		vgic_resume(w->vgic);
	set_all_masked(&t, false);
	its_world_join_devices(w);
	await_service(&t);
	its_stress_check(w);
	expect_nothing_kept(&t);
	close_irqfds(&t);
	vgic_routes_destroy(t.routes);
	its_world_close(w);
}

/*
 * ---- Duels: one signal, one end of a mask, one end of a pause, round by round ----
 *
 * What the next end would put right again is found only if there is none.
 */

struct duel {
	struct table table;
	uint64_t rounds;
	_Alignas(64) _Atomic uint64_t begun;
	_Alignas(64) _Atomic uint64_t ended;
	_Atomic bool masks; /* in this round there is a mask to end */
	_Atomic uint64_t kept, delivered;
};

#define DUELLISTS 3u

static void meet(_Atomic uint64_t *arrivals, uint64_t round)
{
	atomic_fetch_add(arrivals, 1);
	for (unsigned n = 0; load_acquire(arrivals) < DUELLISTS * round; n++) {
		if (n > 500)
			sched_yield();
	}
}

static void *duel_signals(void *arg)
{
	struct duel *d = arg;
	struct world *w = d->table.world;
	struct rng rng = { 0x5eed };

	for (uint64_t round = 1; round <= d->rounds; round++) {
		int result;

		meet(&d->begun, round);
		world_pause(&rng, 400);
		store_release(&w->accounts[0].number, round);
		result = vgic_signal_gsi(d->table.routes, 0);
		if (result != 0 && result != 1)
			run_fail(w->run, "vgic_signal_gsi() returned %d", result);
		atomic_fetch_add(result ? &d->delivered : &d->kept, 1);
		meet(&d->ended, round);
	}
	return NULL;
}

static void *duel_unmasks(void *arg)
{
	struct duel *d = arg;
	struct rng rng = { 0xace };

	for (uint64_t round = 1; round <= d->rounds; round++) {
		meet(&d->begun, round);
		world_pause(&rng, 400);
		if (load_acquire(&d->masks))
			set_masked(&d->table, 0, false);
		meet(&d->ended, round);
	}
	return NULL;
}

/* The event has been acknowledged once, or is about to be. */
static void judge(struct duel *d, uint64_t round)
{
	struct world *w = d->table.world;

	if (vgic_gsi_is_pending(d->table.routes, 0))
		run_fail(w->run, "round %" PRIu64 ": the event is kept, without mask or pause", round);
	while (load_acquire(&w->accounts[0].acknowledges) < round && !its_world_sleeps(w))
		sched_yield();
	if (load_acquire(&w->accounts[0].acknowledges) != round)
		run_fail(w->run, "round %" PRIu64 ": %" PRIu64 " acknowledges", round,
			 load_acquire(&w->accounts[0].acknowledges));
}

void run_its_pause_duel(struct run *run)
{
	struct duel *d = aligned_alloc(64, (sizeof(*d) + 63) / 64 * 64);
	struct world *w = its_world_open(run, false);
	pthread_t threads[2];

	if (!d)
		abort();
	*d = (struct duel){ .rounds = run->iterations };
	open_table(&d->table, w);
	if (pthread_create(&threads[0], NULL, duel_signals, d) || pthread_create(&threads[1], NULL, duel_unmasks, d))
		abort();
	for (uint64_t round = 1; round <= d->rounds; round++) {
		const uint32_t kind = rng_below(&w->rng, 4);

		/* A pause to end, a mask, or both. */
		store_release(&d->masks, kind != 0);
		set_masked(&d->table, 0, kind != 0);
		if (kind != 1)
			vgic_pause(w->vgic);
		meet(&d->begun, round);
		world_pause(&w->rng, 400);
		if (kind != 1)
			vgic_resume(w->vgic);
		meet(&d->ended, round);
		judge(d, round);
	}
	for (unsigned i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	printf("# %s: %" PRIu64 " events were kept, %" PRIu64 " delivered at once\n", run->name, load_relaxed(&d->kept),
	       load_relaxed(&d->delivered));
	if (load_relaxed(&d->kept) < d->rounds / 100 || load_relaxed(&d->delivered) < d->rounds / 100)
		run_fail(run, "one side came first nearly always");
	vgic_routes_destroy(d->table.routes);
	its_world_close(w);
	free(d);
}
