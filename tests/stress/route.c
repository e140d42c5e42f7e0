/* SPDX-License-Identifier: MIT */
/*
 * route.c - routes that change under fire: every event goes to the old target or to
 * the new one; a transaction is seen whole or not at all; what is kept behind a
 * mask is delivered when it goes.
 */
#include <inttypes.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include <vgic/msix.h>

#include "events.h"
#include "route.h"
#include "world.h"

#define NUM_DEVICES 3u
#define NUM_VCPUS   2u
#define FIRST_IRQ   EVENTS_FIRST_IRQ
#define NUM_GSIS    64u
#define SETSPI      (WORLD_DIST_BASE + GICD_SETSPI_NSR)

/* A device and the SPIs that are its own. */
struct source {
	struct events events;
	_Atomic bool done;
};

struct fire {
	struct vgic_routes *routes;
	struct vgic_msix *msix;
	uint64_t count; /* events of each device */
	bool lockstep;
	struct source sources[NUM_DEVICES];
	_Atomic uint64_t changes;
};

static void note_acknowledge(struct cpu *cpu, uint32_t intid)
{
	struct fire *f = cpu->world->context;

	events_note_acknowledge(&f->sources[events_device(intid)].events);
}

static const struct world_hooks hooks = { .acknowledged = note_acknowledge };

static struct vgic_route route_by_pin(uint32_t intid, uint32_t source)
{
	struct vgic_route route = { .type = VGIC_ROUTE_SPI };

	route.to.spi.intid = intid;
	route.to.spi.source = source;
	return route;
}

static struct vgic_route route_by_message(uint32_t intid, bool masked)
{
	struct vgic_route route = { .type = VGIC_ROUTE_MSI, .flags = masked ? VGIC_ROUTE_MASKED : 0 };

	route.to.msi.address = SETSPI;
	route.to.msi.data = intid;
	return route;
}

static void expect(struct world *w, int result, int expected, const char *what)
{
	if (result != expected)
		run_fail(w->run, "%s returned %d", what, result);
}

/* Half-way, so that the changes are in the midst of the events, however the threads are scheduled. */
static void await_changes(struct world *w, struct fire *f, uint64_t i)
{
	for (unsigned n = 0; i == f->count / 2 && load_acquire(&f->changes) < 10 && !run_has_failed(w->run); n++)
		wait_step(n);
}

/* An event of a device's GSI, which leads to one of its SPIs at every moment. */
static void fire_events(struct worker *worker)
{
	struct world *w = worker->world;
	struct fire *f = w->context;
	struct source *s = &f->sources[worker->number];

	for (uint64_t i = 0; i < f->count && !run_has_failed(w->run); i++) {
		const uint64_t acknowledges = load_relaxed(&s->events.acknowledges);

		await_changes(w, f, i);
		store_relaxed(&s->events.number, i + 1);
		expect(w, vgic_signal_gsi(f->routes, worker->number), 1, "vgic_signal_gsi()");
		if (f->lockstep && !world_await(w, &s->events.acknowledges, acknowledges + 1))
			run_fail(w->run, "device %u: event %" PRIu64 " went nowhere", worker->number, i + 1);
		pause_finely(&worker->rng, 200);
	}
	store_release(&s->done, true);
}

static bool all_done(struct fire *f)
{
	for (uint32_t d = 0; d < NUM_DEVICES; d++) {
		if (!load_acquire(&f->sources[d].done))
			return false;
	}
	return true;
}

static struct vgic_route some_route(struct rng *rng, uint32_t device)
{
	const uint32_t intid = events_intid(device, rng_below(rng, EVENTS_NUM_TARGETS));

	return rng_one_in(rng, 2) ? route_by_pin(intid, rng_below(rng, 4)) : route_by_message(intid, false);
}

/* One entry, or all of them at once, or all of them and then not. */
static void change_routes(struct worker *worker)
{
	struct world *w = worker->world;
	struct fire *f = w->context;

	while (!all_done(f) && !run_has_failed(w->run)) {
		struct vgic_route_txn txn;

		if (rng_one_in(&worker->rng, 2)) {
			const uint32_t device = rng_below(&worker->rng, NUM_DEVICES);
			const struct vgic_route route = some_route(&worker->rng, device);

			expect(w, vgic_route_set(f->routes, device, &route), 0, "vgic_route_set()");
		} else {
			vgic_route_txn_begin(f->routes, &txn);
			for (uint32_t d = 0; d < NUM_DEVICES; d++) {
				const struct vgic_route route = some_route(&worker->rng, d);

				expect(w, vgic_route_txn_set(&txn, d, &route), 0, "vgic_route_txn_set()");
			}
			if (rng_one_in(&worker->rng, 3))
				vgic_route_txn_abort(&txn);
			else
				vgic_route_txn_commit(&txn);
		}
		atomic_fetch_add_explicit(&f->changes, 1, memory_order_relaxed);
		pause_finely(&worker->rng, 300);
	}
}

static struct world *open_fire(struct run *run, struct fire *f)
{
	struct world *w = world_open(&(struct world_config){ .run = run,
							     .hooks = &hooks,
							     .context = f,
							     .num_vcpus = NUM_VCPUS,
							     .features = VGIC_FEATURE_MBIS,
							     .spin = 2000 });

	for (uint32_t d = 0; d < NUM_DEVICES; d++) {
		for (uint32_t t = 0; t < EVENTS_NUM_TARGETS; t++)
			spi_set_up(w, events_intid(d, t), true, 1, 8 * d, &w->cpus[(d + t) % NUM_VCPUS]);
	}
	if (vgic_routes_create(w->vgic, NUM_GSIS, &f->routes))
		abort();
	return w;
}

static void check_fire(struct world *w, struct fire *f)
{
	for (uint32_t d = 0; d < NUM_DEVICES; d++) {
		struct source *s = &f->sources[d];
		const uint64_t acknowledges = load_relaxed(&s->events.acknowledges);

		if (load_relaxed(&s->events.seen) != f->count)
			run_fail(w->run, "device %u: event %" PRIu64 " was the last, %" PRIu64 " was seen", d, f->count,
				 load_relaxed(&s->events.seen));
		if (acknowledges > f->count || (f->lockstep && acknowledges != f->count))
			run_fail(w->run, "device %u: %" PRIu64 " acknowledges of %" PRIu64 " events", d, acknowledges,
				 f->count);
	}
	if (load_relaxed(&f->changes) < 10)
		run_fail(w->run, "only %" PRIu64 " changes were made", load_relaxed(&f->changes));
}

static struct fire *new_fire(struct run *run, bool lockstep)
{
	struct fire *f = aligned_alloc(64, sizeof(*f));

	if (!f)
		abort();
	memset(f, 0, sizeof(*f));
	f->count = run->iterations;
	f->lockstep = lockstep;
	return f;
}

static void run_change(struct run *run, bool lockstep)
{
	struct fire *f = new_fire(run, lockstep);
	struct world *w = open_fire(run, f);

	for (uint32_t d = 0; d < NUM_DEVICES; d++) {
		const struct vgic_route route = route_by_message(events_intid(d, 0), false);

		expect(w, vgic_route_set(f->routes, d, &route), 0, "vgic_route_set()");
		world_spawn(w, fire_events, d);
	}
	world_spawn(w, change_routes, 0);
	world_join(w);
	world_settle(w);
	check_fire(w, f);
	vgic_routes_destroy(f->routes);
	world_close(w);
	free(f);
}

void run_route_exact(struct run *run)
{
	run_change(run, true);
}

void run_route_storm(struct run *run)
{
	run_change(run, false);
}

/*
 * ---- Duels: one step of one thread against one step of another, round by round ----
 *
 * What the next change would put right again is found only if there is none: after
 * each round both stand still, and everything is judged.
 */

struct duel {
	struct vgic_routes *routes;
	struct vgic_msix *msix;
	uint64_t rounds;
	/* Both have arrived at the beginning of a round when it is twice its number, and at its end in the other one. */
	_Alignas(64) _Atomic uint64_t begun;
	_Alignas(64) _Atomic uint64_t ended;
	_Atomic uint64_t raised, changed; /* the last round in which that was done */
};

/* Most rounds are a race; in some of them the one comes first for sure, in some the other. */
static void come_second(uint64_t round, uint64_t turn, const _Atomic uint64_t *first)
{
	for (unsigned n = 0; round % 8 == turn && load_acquire(first) < round; n++)
		wait_step(n);
}

/* Arrive, and wait for the other one: watchfully, so that both go on at once, unless it lacks a processor. */
static void meet(_Atomic uint64_t *arrivals, uint64_t round)
{
	atomic_fetch_add(arrivals, 1);
	for (unsigned n = 0; load_acquire(arrivals) < 2 * round; n++) {
		if (n > 2000)
			sched_yield();
	}
}

static struct duel *new_duel(struct run *run, struct world **world)
{
	static const struct world_hooks none = { .acknowledged = NULL };
	struct duel *d = aligned_alloc(64, sizeof(*d));

	if (!d)
		abort();
	memset(d, 0, sizeof(*d));
	d->rounds = run->iterations;
	*world = world_open(&(struct world_config){ .run = run,
						    .hooks = &none,
						    .context = d,
						    .num_vcpus = 1,
						    .features = VGIC_FEATURE_MBIS,
						    .no_shaker = true });
	if (vgic_routes_create((*world)->vgic, NUM_GSIS, &d->routes))
		abort();
	return d;
}

static void end_duel(struct world *w, struct duel *d)
{
	vgic_routes_destroy(d->routes);
	world_close(w);
	free(d);
}

static irq_word word_of(struct world *w, uint32_t intid)
{
	return load_acquire(&w->vgic->spis[intid - FIRST_SPI].word);
}

/* ---- Lines: a level never stays behind on the pin that it was raised on ---- */

static void duel_raises(struct worker *worker)
{
	struct duel *d = worker->world->context;

	for (uint64_t round = 1; round <= d->rounds; round++) {
		meet(&d->begun, round);
		pause_finely(&worker->rng, 400);
		come_second(round, 0, &d->changed);
		vgic_set_gsi(d->routes, 0, true);
		store_release(&d->raised, round);
		meet(&d->ended, round);
	}
}

static void duel_changes_pin(struct worker *worker)
{
	const struct vgic_route nowhere = { .type = VGIC_ROUTE_NONE };
	struct world *w = worker->world;
	struct duel *d = w->context;
	uint64_t stayed = 0;

	for (uint64_t round = 1; round <= d->rounds; round++) {
		const uint32_t from = FIRST_IRQ + round % 2, to = FIRST_IRQ + (round + 1) % 2;
		const struct vgic_route old = route_by_pin(from, 1), new = route_by_pin(to, 2);

		expect(w, vgic_route_set(d->routes, 0, &old), 0, "vgic_route_set()");
		meet(&d->begun, round);
		pause_finely(&worker->rng, 400);
		come_second(round, 1, &d->raised);
		expect(w, vgic_route_set(d->routes, 0, &new), 0, "vgic_route_set()");
		store_release(&d->changed, round);
		meet(&d->ended, round);
		if (word_of(w, from) & IRQ_SOURCES_MASK)
			run_fail(w->run, "round %" PRIu64 ": a level was left behind", round);
		stayed += (word_of(w, to) & IRQ_LINE) != 0;
		expect(w, vgic_route_set(d->routes, 0, &nowhere), 0, "vgic_route_set()");
	}
	if (stayed < d->rounds / 8 || stayed > d->rounds - d->rounds / 8)
		run_fail(w->run, "in %" PRIu64 " of %" PRIu64 " rounds the change came first", stayed, d->rounds);
}

void run_route_lines(struct run *run)
{
	struct world *w;
	struct duel *d = new_duel(run, &w);

	world_spawn(w, duel_raises, 0);
	world_spawn(w, duel_changes_pin, 0);
	world_join(w);
	end_duel(w, d);
}

/* ---- Masks: an event that meets the mask's going is delivered, once ---- */

static void duel_signals(struct worker *worker)
{
	struct duel *d = worker->world->context;

	for (uint64_t round = 1; round <= d->rounds; round++) {
		meet(&d->begun, round);
		pause_finely(&worker->rng, 400);
		if (vgic_msix_signal(d->msix, 0) < 0)
			run_fail(worker->world->run, "vgic_msix_signal() failed");
		meet(&d->ended, round);
	}
}

static void duel_unmasks(struct worker *worker)
{
	struct world *w = worker->world;
	struct duel *d = w->context;

	for (uint64_t round = 1; round <= d->rounds; round++) {
		const bool function = rng_one_in(&worker->rng, 2);

		if (function)
			vgic_msix_write_control(d->msix, VGIC_MSIX_CONTROL_ENABLE | VGIC_MSIX_CONTROL_FUNCTION_MASK);
		else
			vgic_msix_mask(d->msix, 0);
		meet(&d->begun, round);
		pause_finely(&worker->rng, 400);
		if (function)
			vgic_msix_write_control(d->msix, VGIC_MSIX_CONTROL_ENABLE);
		else
			vgic_msix_unmask(d->msix, 0);
		meet(&d->ended, round);
		if (!(word_of(w, FIRST_IRQ) & IRQ_PENDING))
			run_fail(w->run, "round %" PRIu64 ": the event was lost", round);
		if (vgic_gsi_is_pending(d->routes, 0))
			run_fail(w->run, "round %" PRIu64 ": the event is kept, without a mask", round);
		spi_write_bit(w, GICD_ICPENDR, FIRST_IRQ);
	}
}

void run_msix_mask_exact(struct run *run)
{
	struct world *w;
	struct duel *d = new_duel(run, &w);
	struct vgic_msix_config config;

	vgic_msix_config_init(&config);
	config.routes = d->routes;
	if (vgic_msix_create(&config, &d->msix))
		abort();
	/* Edge-triggered and disabled: what was delivered stays pending. */
	spi_set_up(w, FIRST_IRQ, true, 1, 0, &w->cpus[0]);
	spi_write_bit(w, GICD_ICENABLER, FIRST_IRQ);
	vgic_msix_table_write(d->msix, 0, 8, SETSPI);
	vgic_msix_table_write(d->msix, 8, 8, FIRST_IRQ);
	vgic_msix_write_control(d->msix, VGIC_MSIX_CONTROL_ENABLE);
	world_spawn(w, duel_signals, 0);
	world_spawn(w, duel_unmasks, 0);
	world_join(w);
	vgic_msix_destroy(d->msix);
	end_duel(w, d);
}

/* ---- Transactions ---- */

#define TXN_WRITERS 2u
#define TXN_ENTRIES 8u /* of each writer */
#define ABORTED     1u /* values that are committed are even */

struct views {
	struct vgic_routes *routes;
	uint64_t count;
	_Atomic bool over;
	_Atomic uint64_t views;
};

static void write_views(struct worker *worker)
{
	struct world *w = worker->world;
	struct views *v = w->context;
	uint32_t value = 0;

	for (uint64_t i = 0; i < v->count && !run_has_failed(w->run); i++) {
		const bool aborts = rng_one_in(&worker->rng, 3);
		const uint32_t staged = value + 2 + (aborts ? ABORTED : 0);
		const uint32_t rotation = rng_below(&worker->rng, TXN_ENTRIES);
		struct vgic_route_txn txn;

		for (unsigned n = 0; i == v->count / 2 && load_acquire(&v->views) < 100 && !run_has_failed(w->run); n++)
			wait_step(n);
		vgic_route_txn_begin(v->routes, &txn);
		for (uint32_t e = 0; e < TXN_ENTRIES; e++) {
			const uint32_t gsi = worker->number * TXN_ENTRIES + (e + rotation) % TXN_ENTRIES;
			struct vgic_route route = route_by_message(staged, false);

			expect(w, vgic_route_txn_set(&txn, gsi, &route), 0, "vgic_route_txn_set()");
		}
		if (aborts) {
			vgic_route_txn_abort(&txn);
		} else {
			vgic_route_txn_commit(&txn);
			value = staged;
		}
	}
}

/* What is read later is not older; and nobody ever sees what was aborted. */
static void read_views(struct worker *worker)
{
	struct world *w = worker->world;
	struct views *v = w->context;
	uint32_t newest[TXN_WRITERS] = { 0 };

	while (!load_acquire(&v->over) && !run_has_failed(w->run)) {
		const uint32_t gsi = rng_below(&worker->rng, TXN_WRITERS * TXN_ENTRIES);
		const uint32_t value = route_event(route_read(v->routes, gsi));

		if (value & ABORTED)
			run_fail(w->run, "GSI %u: %u was aborted, and seen", gsi, value);
		if (value < newest[gsi / TXN_ENTRIES])
			run_fail(w->run, "GSI %u: %u is older than %u, seen before", gsi, value,
				 newest[gsi / TXN_ENTRIES]);
		newest[gsi / TXN_ENTRIES] = value;
		atomic_fetch_add_explicit(&v->views, 1, memory_order_relaxed);
	}
}

static void end_views(struct worker *worker)
{
	struct views *v = worker->world->context;

	write_views(worker);
	if (worker->number == 0)
		store_release(&v->over, true);
}

void run_route_txn(struct run *run)
{
	static const struct world_hooks none = { .acknowledged = NULL };
	struct views v = { .count = run->iterations };
	struct world *w = world_open(&(struct world_config){
		.run = run, .hooks = &none, .context = &v, .num_vcpus = 1, .features = VGIC_FEATURE_MBIS });

	if (vgic_routes_create(w->vgic, TXN_WRITERS * TXN_ENTRIES, &v.routes))
		abort();
	for (uint32_t i = 0; i < TXN_WRITERS; i++)
		world_spawn(w, i == 0 ? end_views : write_views, i);
	for (uint32_t i = 0; i < 2; i++)
		world_spawn(w, read_views, i);
	world_join(w);
	if (load_relaxed(&v.views) < 100)
		run_fail(run, "only %" PRIu64 " views", load_relaxed(&v.views));
	vgic_routes_destroy(v.routes);
	world_close(w);
}

/* ---- Masks, many at once ---- */

static void fire_vectors(struct worker *worker)
{
	struct world *w = worker->world;
	struct fire *f = w->context;
	struct source *s = &f->sources[worker->number];

	for (uint64_t i = 0; i < f->count && !run_has_failed(w->run); i++) {
		int result;

		await_changes(w, f, i);
		store_relaxed(&s->events.number, i + 1);
		result = vgic_msix_signal(f->msix, worker->number);
		if (result != 0 && result != 1)
			run_fail(w->run, "vgic_msix_signal() returned %d", result);
		pause_finely(&worker->rng, 200);
	}
	store_release(&s->done, true);
}

/* Masks vectors one by one and all together, moves those that are masked; in the end all are open. */
static void mask_vectors(struct worker *worker)
{
	struct world *w = worker->world;
	struct fire *f = w->context;

	while (!all_done(f) && !run_has_failed(w->run)) {
		const uint32_t vector = rng_below(&worker->rng, NUM_DEVICES);

		if (rng_one_in(&worker->rng, 4)) {
			vgic_msix_write_control(f->msix, VGIC_MSIX_CONTROL_ENABLE | VGIC_MSIX_CONTROL_FUNCTION_MASK);
			pause_finely(&worker->rng, 300);
			vgic_msix_write_control(f->msix, VGIC_MSIX_CONTROL_ENABLE);
		} else {
			vgic_msix_mask(f->msix, vector);
			vgic_msix_table_write(f->msix, 16 * vector + 8, 4,
					      events_intid(vector, rng_below(&worker->rng, EVENTS_NUM_TARGETS)));
			pause_finely(&worker->rng, 300);
			vgic_msix_unmask(f->msix, vector);
		}
		atomic_fetch_add_explicit(&f->changes, 1, memory_order_relaxed);
	}
}

void run_msix_mask_storm(struct run *run)
{
	struct fire *f = new_fire(run, false);
	struct world *w = open_fire(run, f);
	struct vgic_msix_config config;
	uint64_t pending = 0;

	vgic_msix_config_init(&config);
	config.routes = f->routes;
	config.num_vectors = NUM_DEVICES;
	if (vgic_msix_create(&config, &f->msix))
		abort();
	for (uint32_t d = 0; d < NUM_DEVICES; d++) {
		vgic_msix_table_write(f->msix, 16 * d, 8, SETSPI);
		vgic_msix_table_write(f->msix, 16 * d + 8, 8, events_intid(d, 0));
	}
	vgic_msix_write_control(f->msix, VGIC_MSIX_CONTROL_ENABLE);
	for (uint32_t d = 0; d < NUM_DEVICES; d++)
		world_spawn(w, fire_vectors, d);
	world_spawn(w, mask_vectors, 0);
	world_join(w);
	world_settle(w);
	check_fire(w, f);
	vgic_msix_pba_read(f->msix, 0, 8, &pending);
	if (pending)
		run_fail(run, "pending bits are left: 0x%" PRIx64, pending);
	vgic_msix_destroy(f->msix);
	vgic_routes_destroy(f->routes);
	world_close(w);
	free(f);
}
