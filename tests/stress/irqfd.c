/* SPDX-License-Identifier: MIT */
/*
 * irqfd.c - eventfds under fire: every signal is delivered, by either path, while
 * routes change; none after deassign has returned; a line that is resampled asks
 * once for each rise, and no work of a device is forgotten.
 *
 * The service sees events by itself, whether or not the world is at rest. So devices
 * wait for what they have signalled themselves, for a long time at most.
 */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <vgic/irqfd.h>

#include "events.h"
#include "vgic_internal.h"
#include "world.h"

#define NUM_DEVICES 4u
#define NUM_VCPUS   2u
#define FIRST_IRQ   EVENTS_FIRST_IRQ
#define NUM_GSIS    64u
#define SETSPI      (WORLD_DIST_BASE + GICD_SETSPI_NSR)
#define LONG_TIME   2000000u /* steps of waiting, most of them naps: minutes */

struct source {
	struct events events;
	/* Resampling: units of work that the device has got, and that were taken. */
	_Atomic uint64_t given, taken;
	int fd, resamplefd;
};

struct fire {
	struct vgic_routes *routes;
	struct vgic_irqfds *irqfds;
	uint64_t count;
	struct source sources[NUM_DEVICES];
	_Atomic uint32_t done; /* devices */
	_Atomic bool over;
	_Atomic uint64_t changes;
	_Atomic uint64_t token; /* VGIC_IRQFD_LOOP: of the last irqfd */
	_Atomic uint64_t closed;
};

static int new_fd(void)
{
	const int fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);

	if (fd < 0)
		abort();
	return fd;
}

static void expect(struct world *w, int result, int expected, const char *what)
{
	if (result != expected)
		run_fail(w->run, "%s returned %d", what, result);
}

static struct vgic_irqfds_stats stats_of(struct fire *f)
{
	struct vgic_irqfds_stats stats = { .size = sizeof(stats) };

	vgic_irqfds_get_stats(f->irqfds, &stats);
	return stats;
}

static void route_by_message(struct world *w, uint32_t gsi, uint32_t intid)
{
	struct fire *f = w->context;
	struct vgic_route route = { .type = VGIC_ROUTE_MSI };

	route.to.msi.address = SETSPI;
	route.to.msi.data = intid;
	expect(w, vgic_route_set(f->routes, gsi, &route), 0, "vgic_route_set()");
}

static void route_by_pin(struct world *w, uint32_t gsi, uint32_t intid, uint32_t source)
{
	struct fire *f = w->context;
	struct vgic_route route = { .type = VGIC_ROUTE_SPI };

	route.to.spi.intid = intid;
	route.to.spi.source = source;
	expect(w, vgic_route_set(f->routes, gsi, &route), 0, "vgic_route_set()");
}

static struct fire *new_fire(struct run *run)
{
	struct fire *f = aligned_alloc(64, sizeof(*f));

	if (!f)
		abort();
	memset(f, 0, sizeof(*f));
	f->count = run->iterations;
	for (uint32_t d = 0; d < NUM_DEVICES; d++) {
		f->sources[d].fd = new_fd();
		f->sources[d].resamplefd = new_fd();
	}
	return f;
}

static struct world *open_fire(struct run *run, struct fire *f, const struct world_hooks *hooks)
{
	struct world *w = world_open(&(struct world_config){ .run = run,
							     .hooks = hooks,
							     .context = f,
							     .num_vcpus = NUM_VCPUS,
							     .features = VGIC_FEATURE_MBIS,
							     .spin = 2000 });

	if (vgic_routes_create(w->vgic, NUM_GSIS, &f->routes))
		abort();
	return w;
}

static void open_irqfds(struct fire *f, enum vgic_irqfd_door door, enum vgic_irqfd_path path,
			const struct vgic_irqfd_ops *ops)
{
	struct vgic_irqfds_config config;

	vgic_irqfds_config_init(&config);
	config.door = door;
	config.path = path;
	config.num_threads = 2;
	config.max_irqfds = 8;
	config.opaque = f;
	if (ops)
		config.ops = *ops;
	if (vgic_irqfds_create(f->routes, &config, &f->irqfds))
		abort();
}

static void close_fire(struct world *w, struct fire *f)
{
	vgic_routes_destroy(f->routes);
	world_close(w);
	for (uint32_t d = 0; d < NUM_DEVICES; d++) {
		close(f->sources[d].fd);
		close(f->sources[d].resamplefd);
	}
	free(f);
}

/* Has it come to @value, within a long time? */
static bool await_value(struct world *w, const _Atomic uint64_t *counter, uint64_t value)
{
	for (unsigned n = 0; load_acquire(counter) < value; n++) {
		if (n == LONG_TIME || run_has_failed(w->run))
			return false;
		wait_step(n);
	}
	return true;
}

/* ---- Storms: routes that change, either path ---------------------------------------------------- */

static void note_acknowledge(struct cpu *cpu, uint32_t intid)
{
	struct fire *f = cpu->world->context;

	events_note_acknowledge(&f->sources[events_device(intid)].events);
}

/* By the eventfd, or now and then without it. */
static void storm_device(struct worker *worker)
{
	struct world *w = worker->world;
	struct fire *f = w->context;
	struct source *s = &f->sources[worker->number];

	for (uint64_t i = 1; i <= f->count && !run_has_failed(w->run); i++) {
		/* The changes are in the midst of the events, however the threads are scheduled. */
		if (i == f->count / 2 && !await_value(w, &f->changes, 10))
			run_fail(w->run, "no changes were made");
		store_relaxed(&s->events.number, i);
		if (rng_one_in(&worker->rng, 4))
			expect(w, vgic_irqfds_signal(f->irqfds, worker->number), 1, "vgic_irqfds_signal()");
		else
			expect(w, eventfd_write(s->fd, 1), 0, "eventfd_write()");
		if (rng_one_in(&worker->rng, 8) && !await_value(w, &s->events.seen, i))
			run_fail(w->run, "device %u: event %" PRIu64 " was lost", worker->number, i);
		pause_finely(&worker->rng, 200);
	}
	if (!await_value(w, &s->events.seen, f->count))
		run_fail(w->run, "device %u: the last event was lost", worker->number);
	atomic_fetch_add(&f->done, 1);
}

static void storm_changes(struct worker *worker)
{
	struct world *w = worker->world;
	struct fire *f = w->context;

	while (load_acquire(&f->done) < NUM_DEVICES && !run_has_failed(w->run)) {
		const uint32_t device = rng_below(&worker->rng, NUM_DEVICES);
		const uint32_t intid = events_intid(device, rng_below(&worker->rng, EVENTS_NUM_TARGETS));

		if (rng_one_in(&worker->rng, 2))
			route_by_message(w, device, intid);
		else
			route_by_pin(w, device, intid, rng_below(&worker->rng, 4));
		atomic_fetch_add(&f->changes, 1);
		pause_randomly(&worker->rng, 100);
	}
}

static void run_storm(struct run *run, enum vgic_irqfd_path path)
{
	static const struct world_hooks hooks = { .acknowledged = note_acknowledge };
	struct fire *f = new_fire(run);
	struct world *w = open_fire(run, f, &hooks);
	struct vgic_irqfds_stats stats;

	open_irqfds(f, VGIC_IRQFD_SERVICE, path, NULL);
	for (uint32_t d = 0; d < NUM_DEVICES; d++) {
		for (uint32_t t = 0; t < EVENTS_NUM_TARGETS; t++)
			spi_set_up(w, events_intid(d, t), true, 1, 8 * d, &w->cpus[(d + t) % NUM_VCPUS]);
		route_by_message(w, d, events_intid(d, 0));
		expect(w, vgic_irqfd_assign(f->irqfds, d, f->sources[d].fd, VGIC_NO_FD), 0, "vgic_irqfd_assign()");
		world_spawn(w, storm_device, d);
	}
	world_spawn(w, storm_changes, 0);
	world_join(w);
	for (uint32_t d = 0; d < NUM_DEVICES; d++)
		expect(w, vgic_irqfd_deassign(f->irqfds, d, f->sources[d].fd), 0, "vgic_irqfd_deassign()");
	world_settle(w);
	stats = stats_of(f);
	for (uint32_t d = 0; d < NUM_DEVICES; d++) {
		if (load_relaxed(&f->sources[d].events.acknowledges) > f->count)
			run_fail(run, "device %u: more acknowledges than events", d);
	}
	if (stats.dropped || (path == VGIC_IRQFD_DIRECT ? stats.deferred != 0 : stats.direct != 0))
		run_fail(run, "%" PRIu64 " direct, %" PRIu64 " deferred, %" PRIu64 " dropped", stats.direct,
			 stats.deferred, stats.dropped);
	if (stats.waits > stats.direct + stats.deferred + stats.coalesced + stats.stale + 2)
		run_fail(run, "%" PRIu64 " system calls are more than one for each event", stats.waits);
	if (load_relaxed(&f->changes) < 10)
		run_fail(run, "only %" PRIu64 " changes", load_relaxed(&f->changes));
	vgic_irqfds_destroy(f->irqfds);
	close_fire(w, f);
}

void run_irqfd_direct(struct run *run)
{
	run_storm(run, VGIC_IRQFD_DIRECT);
}

void run_irqfd_deferred(struct run *run)
{
	run_storm(run, VGIC_IRQFD_DEFERRED);
}

/* ---- Deassign: nothing comes afterwards ------------------------------------------------------------ */

static int keep_token(void *opaque, int fd, uint64_t token)
{
	struct fire *f = opaque;

	(void)fd;
	store_release(&f->token, token);
	return 0;
}

static void forget_token(void *opaque, int fd, uint64_t token)
{
	(void)opaque;
	(void)fd;
	(void)token;
}

/* Signals without end, by the eventfd or as the VMM's loop, which may be late with its tokens. */
static void deassign_device(struct worker *worker)
{
	struct world *w = worker->world;
	struct fire *f = w->context;

	while (!load_acquire(&f->over)) {
		if (worker->number == 0)
			eventfd_write(f->sources[0].fd, 1);
		else
			vgic_irqfd_ready(f->irqfds, load_relaxed(&f->token));
		pause_finely(&worker->rng, 100);
	}
}

static bool is_latched(struct world *w)
{
	return load_acquire(&w->vgic->spis[FIRST_IRQ - FIRST_SPI].word) & IRQ_PENDING;
}

/* The SPI is disabled: what is delivered stays pending, and is seen here. */
static void deassign_again_and_again(struct worker *worker)
{
	struct world *w = worker->world;
	struct fire *f = w->context;

	for (uint64_t i = 0; i < f->count && !run_has_failed(w->run); i++) {
		const uint32_t gsi = (uint32_t)(i % 3);

		expect(w, vgic_irqfd_assign(f->irqfds, gsi, f->sources[0].fd, VGIC_NO_FD), 0, "vgic_irqfd_assign()");
		for (unsigned n = 0; !is_latched(w); n++) {
			if (n == LONG_TIME) {
				run_fail(w->run, "round %" PRIu64 ": no event came", i);
				break;
			}
			wait_step(n);
		}
		pause_finely(&worker->rng, 300);
		expect(w, vgic_irqfd_deassign(f->irqfds, gsi, f->sources[0].fd), 0, "vgic_irqfd_deassign()");
		if (load_relaxed(&f->token))
			expect(w, vgic_irqfd_ready(f->irqfds, load_relaxed(&f->token)), -ENOENT, "a late token");
		spi_write_bit(w, GICD_ICPENDR, FIRST_IRQ);
		pause_randomly(&worker->rng, 300);
		if (rng_one_in(&worker->rng, 4))
			sched_yield();
		if (is_latched(w))
			run_fail(w->run, "round %" PRIu64 ": an event came after deassign", i);
	}
	store_release(&f->over, true);
}

static void run_deassign(struct run *run, enum vgic_irqfd_door door, enum vgic_irqfd_path path)
{
	static const struct world_hooks none = { .acknowledged = NULL };
	static const struct vgic_irqfd_ops ops = { .watch = keep_token, .unwatch = forget_token };
	struct fire *f = new_fire(run);
	struct world *w = open_fire(run, f, &none);

	open_irqfds(f, door, path, &ops);
	spi_set_up(w, FIRST_IRQ, true, 1, 0, &w->cpus[0]);
	spi_write_bit(w, GICD_ICENABLER, FIRST_IRQ);
	for (uint32_t gsi = 0; gsi < 3; gsi++)
		route_by_message(w, gsi, FIRST_IRQ);
	world_spawn(w, deassign_device, door == VGIC_IRQFD_LOOP);
	if (door == VGIC_IRQFD_LOOP)
		world_spawn(w, deassign_device, 1);
	world_spawn(w, deassign_again_and_again, 0);
	world_join(w);
	if (door == VGIC_IRQFD_LOOP && stats_of(f).stale < f->count && !run_has_failed(run))
		run_fail(run, "no token was late");
	vgic_irqfds_destroy(f->irqfds);
	close_fire(w, f);
}

void run_irqfd_deassign(struct run *run)
{
	run_deassign(run, VGIC_IRQFD_SERVICE, VGIC_IRQFD_DIRECT);
}

void run_irqfd_deassign_loop(struct run *run)
{
	run_deassign(run, VGIC_IRQFD_LOOP, VGIC_IRQFD_DIRECT);
}

void run_irqfd_deassign_deferred(struct run *run)
{
	run_deassign(run, VGIC_IRQFD_LOOP, VGIC_IRQFD_DEFERRED);
}

/* ---- Resampling: two devices on each of two lines, a source each ------------------------------------ */

static uint32_t line_of(uint32_t device)
{
	return FIRST_IRQ + device / 2;
}

/* The handler looks at both devices of the line, and takes a unit of work of each that has one. */
static void resample_acknowledged(struct cpu *cpu, uint32_t intid)
{
	struct fire *f = cpu->world->context;

	for (uint32_t d = 0; d < NUM_DEVICES; d++) {
		struct source *s = &f->sources[d];

		if (line_of(d) == intid && load_acquire(&s->given) > load_relaxed(&s->taken))
			store_release(&s->taken, load_relaxed(&s->taken) + 1);
	}
}

static bool has_work(struct source *s)
{
	return load_acquire(&s->given) > load_acquire(&s->taken);
}

/* Signals of the shaker end the wait early. */
static bool wait_for_resample(struct source *s)
{
	struct pollfd asked = { .fd = s->resamplefd, .events = POLLIN };
	int n;

	do {
		n = poll(&asked, 1, 60000);
	} while (n < 0 && errno == EINTR);
	return n == 1;
}

/* One that is asked whether it still needs service, and answers by its eventfd. */
static void resample_device(struct worker *worker)
{
	struct world *w = worker->world;
	struct fire *f = w->context;
	struct source *s = &f->sources[worker->number];

	for (uint64_t i = 0; i < f->count && !run_has_failed(w->run); i++) {
		store_release(&s->given, load_relaxed(&s->given) + 1 + rng_below(&worker->rng, 3));
		eventfd_write(s->fd, 1);
		while (has_work(s)) {
			eventfd_t count;

			if (!wait_for_resample(s)) {
				run_fail(w->run, "device %u: %" PRIu64 " of %" PRIu64 " units were taken",
					 worker->number, load_relaxed(&s->taken), load_relaxed(&s->given));
				break;
			}
			eventfd_read(s->resamplefd, &count);
			if (has_work(s))
				eventfd_write(s->fd, 1);
		}
	}
}

static void run_resample(struct run *run, enum vgic_irqfd_path path)
{
	static const struct world_hooks hooks = { .acknowledged = resample_acknowledged };
	struct fire *f = new_fire(run);
	struct world *w = open_fire(run, f, &hooks);
	struct vgic_irqfds_stats stats;
	uint64_t rises;

	open_irqfds(f, VGIC_IRQFD_SERVICE, path, NULL);
	for (uint32_t d = 0; d < NUM_DEVICES; d++) {
		if (d % 2 == 0)
			spi_set_up(w, line_of(d), false, 1, 8 * d, &w->cpus[d / 2 % NUM_VCPUS]);
		route_by_pin(w, d, line_of(d), d % 2);
		expect(w, vgic_irqfd_assign(f->irqfds, d, f->sources[d].fd, f->sources[d].resamplefd), 0,
		       "vgic_irqfd_assign()");
	}
	for (uint32_t d = 0; d < NUM_DEVICES; d++)
		world_spawn(w, resample_device, d);
	world_join(w);
	/* A device goes when its work is done; its last signals may be on their way still. */
	for (uint32_t d = 0; d < NUM_DEVICES; d++)
		expect(w, vgic_irqfd_deassign(f->irqfds, d, f->sources[d].fd), 0, "vgic_irqfd_deassign()");
	world_settle(w);
	stats = stats_of(f);
	rises = stats.direct + stats.deferred;
	/* Each rise was answered by one resample; but deassign has lowered what was up then, of each device at most once. */
	if (stats.resamples > rises || stats.resamples + NUM_DEVICES < rises)
		run_fail(run, "%" PRIu64 " rises of lines, %" PRIu64 " resamples", rises, stats.resamples);
	if (stats.dropped || rises < NUM_DEVICES * f->count / 4)
		run_fail(run, "%" PRIu64 " rises, %" PRIu64 " dropped", rises, stats.dropped);
	for (uint32_t line = FIRST_IRQ; line <= line_of(NUM_DEVICES - 1); line++) {
		if (load_relaxed(&w->vgic->spis[line - FIRST_SPI].word) & (IRQ_LINE | IRQ_SOURCES_MASK))
			run_fail(run, "SPI %u is high still", line);
	}
	vgic_irqfds_destroy(f->irqfds);
	close_fire(w, f);
}

void run_irqfd_resample(struct run *run)
{
	run_resample(run, VGIC_IRQFD_DIRECT);
}

void run_irqfd_resample_deferred(struct run *run)
{
	run_resample(run, VGIC_IRQFD_DEFERRED);
}

/* ---- Destroy, with everything flying ------------------------------------------------------------------ */

static void destroy_device(struct worker *worker)
{
	struct world *w = worker->world;
	struct fire *f = w->context;
	struct source *s = &f->sources[worker->number];

	while (!load_acquire(&f->over)) {
		eventfd_t count;

		store_relaxed(&s->given, load_relaxed(&s->given) + 1);
		eventfd_write(s->fd, 1);
		eventfd_read(s->resamplefd, &count);
		pause_randomly(&worker->rng, 100);
	}
}

static void destroy_again_and_again(struct worker *worker)
{
	struct world *w = worker->world;
	struct fire *f = w->context;

	for (uint64_t i = 0; i < f->count && !run_has_failed(w->run); i++) {
		open_irqfds(f, VGIC_IRQFD_SERVICE, i % 2 ? VGIC_IRQFD_DIRECT : VGIC_IRQFD_DEFERRED, NULL);
		for (uint32_t d = 0; d < NUM_DEVICES; d++)
			expect(w, vgic_irqfd_assign(f->irqfds, d, f->sources[d].fd, f->sources[d].resamplefd), 0,
			       "vgic_irqfd_assign()");
		if (i % 4 < 2) {
			const uint64_t before = load_relaxed(&f->sources[0].taken);

			if (!await_value(w, &f->sources[0].taken, before + 1))
				run_fail(w->run, "round %" PRIu64 ": no interrupt came", i);
		}
		pause_randomly(&worker->rng, 2000);
		vgic_irqfds_destroy(f->irqfds);
	}
	store_release(&f->over, true);
}

void run_irqfd_destroy(struct run *run)
{
	static const struct world_hooks hooks = { .acknowledged = resample_acknowledged };
	struct fire *f = new_fire(run);
	struct world *w = open_fire(run, f, &hooks);

	for (uint32_t d = 0; d < NUM_DEVICES; d++) {
		if (d % 2 == 0)
			spi_set_up(w, line_of(d), false, 1, 8 * d, &w->cpus[d / 2 % NUM_VCPUS]);
		route_by_pin(w, d, line_of(d), d % 2);
	}
	for (uint32_t d = 0; d < NUM_DEVICES; d++)
		world_spawn(w, destroy_device, d);
	world_spawn(w, destroy_again_and_again, 0);
	world_join(w);
	world_settle(w);
	close_fire(w, f);
}
