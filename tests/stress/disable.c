/* SPDX-License-Identifier: MIT */
/*
 * disable.c - a disable is a promise: once RWP reads 0, no acknowledge returns
 * what was disabled, not even one that had begun before.
 *
 * Everything that is signalled is disabled at once. From the moment that RWP has
 * read 0 until the enable the controller's count of acknowledges must stand still.
 * An acknowledge that took its interrupt before the disable and returns after
 * RWP=0 counts itself in between; to meet such ones, vCPUs are stopped by a signal
 * at arbitrary instructions while the disable is made.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "world.h"

#define NUM_VCPUS 2
#define NUM_IRQS  6u
#define FIRST_IRQ 40u
#define PPI       20u
#define SGI       3u

struct promise {
	const struct promise_kind *kind;
	_Atomic bool over;
	uint64_t periods;     /* disabled periods seen */
	uint64_t held_by_ack; /* of them: RWP read 1 at first */
};

struct promise_kind {
	void (*set_up)(struct world *w);
	void (*signal)(struct world *w, struct rng *rng);
	void (*disable)(struct worker *guest);
	bool (*rwp)(struct world *w);
	void (*enable)(struct world *w);
};

/* ---- SPIs, by ICENABLER ---------------------------------------------------------------------------- */

static void spis_set_up(struct world *w)
{
	for (uint32_t i = 0; i < NUM_IRQS; i++)
		spi_set_up(w, FIRST_IRQ + i, true, i % 2, 0x80, &w->cpus[i % NUM_VCPUS]);
}

static void spis_signal(struct world *w, struct rng *rng)
{
	spi_pulse(w, FIRST_IRQ + rng_below(rng, NUM_IRQS));
}

static uint32_t spis_mask(void)
{
	return ((1u << NUM_IRQS) - 1) << (FIRST_IRQ % 32);
}

static void spis_disable(struct worker *guest)
{
	dist_write(guest->world, GICD_ICENABLER + FIRST_IRQ / 32 * 4, spis_mask());
}

static bool dist_rwp(struct world *w)
{
	return dist_read(w, GICD_CTLR) & GICD_CTLR_RWP;
}

static void spis_enable(struct world *w)
{
	dist_write(w, GICD_ISENABLER + FIRST_IRQ / 32 * 4, spis_mask());
}

static const struct promise_kind by_icenabler = { spis_set_up, spis_signal, spis_disable, dist_rwp, spis_enable };

/* ---- SGIs and PPIs, by ICENABLER0 ------------------------------------------------------------------ */

static void privates_set_up(struct world *w)
{
	for (uint32_t i = 0; i < NUM_VCPUS; i++) {
		private_set_up(&w->cpus[i], PPI, true, 1, 0x80);
		private_set_up(&w->cpus[i], SGI, true, 0, 0x80);
	}
}

static void privates_signal(struct world *w, struct rng *rng)
{
	struct cpu *cpu = &w->cpus[rng_below(rng, NUM_VCPUS)];
	const unsigned source = rng_below(rng, VGIC_NUM_LINE_SOURCES);

	if (rng_one_in(rng, 2)) {
		redist_write(cpu, GICR_ISPENDR0, 1u << SGI);
		return;
	}
	ppi_set_line(cpu, PPI, source, true);
	ppi_set_line(cpu, PPI, source, false);
}

static void privates_disable(struct worker *guest)
{
	for (uint32_t i = 0; i < NUM_VCPUS; i++)
		redist_write(&guest->world->cpus[i], GICR_ICENABLER0, 1u << PPI | 1u << SGI);
}

static bool redist_rwp(struct world *w)
{
	bool rwp = false;

	for (uint32_t i = 0; i < NUM_VCPUS; i++)
		rwp |= (redist_read(&w->cpus[i], GICR_CTLR) & GICR_CTLR_RWP) != 0;
	return rwp;
}

static void privates_enable(struct world *w)
{
	for (uint32_t i = 0; i < NUM_VCPUS; i++)
		redist_write(&w->cpus[i], GICR_ISENABLER0, 1u << PPI | 1u << SGI);
}

static const struct promise_kind by_icenabler0 = {
	privates_set_up, privates_signal, privates_disable, redist_rwp, privates_enable,
};

/* ---- Group 1, by GICD_CTLR: the other group stays enabled, or both go ------------------------------- */

static void group_set_up(struct world *w)
{
	for (uint32_t i = 0; i < NUM_IRQS; i++)
		spi_set_up(w, FIRST_IRQ + i, true, 1, 0x80, &w->cpus[i % NUM_VCPUS]);
}

static void group_disable(struct worker *guest)
{
	dist_write(guest->world, GICD_CTLR, rng_one_in(&guest->rng, 2) ? GICD_CTLR_ENABLE_GRP0 : 0);
}

static void group_enable(struct world *w)
{
	dist_write(w, GICD_CTLR, GICD_CTLR_ENABLE_GRP0 | GICD_CTLR_ENABLE_GRP1);
}

static const struct promise_kind by_ctlr = { group_set_up, spis_signal, group_disable, dist_rwp, group_enable };

/* ---- The test ------------------------------------------------------------------------------------------ */

/* The vCPUs signal themselves: they are in an acknowledge for much of their time. */
static bool promise_idle(struct cpu *cpu)
{
	struct promise *s = cpu->world->context;

	if (load_relaxed(&s->over))
		return false;
	s->kind->signal(cpu->world, &cpu->rng);
	return true;
}

static void promise_device(struct worker *device)
{
	struct promise *s = device->world->context;

	while (!load_relaxed(&s->over)) {
		s->kind->signal(device->world, &device->rng);
		nap();
	}
}

/* Disable, wait for RWP=0, and let go of whom was held. Returns whether RWP read 1 at first. */
static bool disable_and_wait(struct worker *guest, bool *held)
{
	struct world *w = guest->world;
	const struct promise *s = w->context;
	bool waited;

	s->kind->disable(guest);
	waited = s->kind->rwp(w);
	if (!waited)
		return false;
	if (*held)
		release_thread();
	*held = false;
	for (unsigned n = 0; s->kind->rwp(w); n++)
		wait_step(n);
	return true;
}

static void promise_period(struct worker *guest)
{
	struct world *w = guest->world;
	struct promise *s = w->context;
	const uint32_t victim = rng_below(&guest->rng, w->num_runners);
	bool held = !rng_one_in(&guest->rng, 3) && hold_thread(w->runners[victim].thread);
	uint64_t before, after;

	s->periods++;
	s->held_by_ack += disable_and_wait(guest, &held);
	before = world_stats(w).acknowledges;
	if (held)
		release_thread();
	nap();
	pause_randomly(&guest->rng, 200);
	after = world_stats(w).acknowledges;
	if (before != after)
		run_fail(w->run, "period %" PRIu64 ": RWP had read 0, then %" PRIu64 " acknowledges returned",
			 s->periods, after - before);
	s->kind->enable(w);
	pause_randomly(&guest->rng, 1000);
	if (rng_one_in(&guest->rng, 4))
		nap();
}

static void promise_guest(struct worker *guest)
{
	struct promise *s = guest->world->context;

	for (uint64_t i = 0; i < guest->world->run->iterations && !run_has_failed(guest->world->run); i++)
		promise_period(guest);
	store_relaxed(&s->over, true);
}

static void run_promise(struct run *run, const struct promise_kind *kind)
{
	static const struct world_hooks hooks = { .idle = promise_idle };
	struct promise s = { .kind = kind };
	struct world *w = world_open(&(struct world_config){
		.run = run, .hooks = &hooks, .context = &s, .num_vcpus = NUM_VCPUS, .spin = 20000, .no_shaker = true });

	kind->set_up(w);
	world_nudge(w);
	world_spawn(w, promise_device, 0);
	world_spawn(w, promise_guest, 0);
	world_join(w);
	world_settle(w);
	printf("# %s: RWP was held by an acknowledge in %" PRIu64 " of %" PRIu64 " periods\n", run->name, s.held_by_ack,
	       s.periods);
	if (world_stats(w).acknowledges == 0)
		run_fail(run, "nothing was acknowledged between the disabled periods");
	world_close(w);
}

void run_disable_spi(struct run *run)
{
	run_promise(run, &by_icenabler);
}

void run_disable_private(struct run *run)
{
	run_promise(run, &by_icenabler0);
}

void run_disable_group(struct run *run)
{
	run_promise(run, &by_ctlr);
}
