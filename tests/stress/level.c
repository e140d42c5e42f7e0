/* SPDX-License-Identifier: MIT */
/*
 * level.c - level-sensitive lines, raised and lowered by devices and handlers.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "reconfigure.h"
#include "world.h"

#define NUM_VCPUS 4u
#define FIRST_IRQ 40u
#define PPI       23u

static void check_idle(struct world *w, uint32_t num_irqs)
{
	for (uint32_t intid = FIRST_IRQ; intid < FIRST_IRQ + num_irqs; intid++) {
		if (spi_read_bit(w, GICD_ISPENDR, intid) || spi_read_bit(w, GICD_ISACTIVER, intid))
			run_fail(w->run, "at rest SPI %u is pending or active", intid);
	}
	for (uint32_t i = 0; i < w->num_cpus; i++) {
		if (redist_read(&w->cpus[i], GICR_ISPENDR0) || redist_read(&w->cpus[i], GICR_ISACTIVER0))
			run_fail(w->run, "at rest vCPU %u has pending or active PPIs", i);
	}
}

/* Changes that no level-sensitive interrupt minds. */
static void change_levels(struct worker *worker, uint32_t num_irqs, uint64_t count)
{
	for (uint64_t i = 0; i < count && !run_has_failed(worker->world->run); i++) {
		const uint32_t intid = FIRST_IRQ + rng_below(&worker->rng, num_irqs);

		if (worker->number == NUM_CHANGES)
			spi_write_bit(worker->world, GICD_ICPENDR, intid);
		else
			change_spi(worker, (enum change)worker->number, intid);
		pause_randomly(&worker->rng, 2000);
		if (rng_one_in(&worker->rng, 4))
			nap();
	}
}

/*
 * ---- level_exact ----
 *
 * A device raises its line; the handler lowers it, as a guest does that clears the cause. One acknowledge for each rise.
 * One more line is raised and lowered without waiting: it may be acknowledged or not, and must not stay.
 */

#define EXACT_DEVICES 2u
#define EXACT_IRQS    6u
#define GLITCH_IRQ    EXACT_IRQS
#define EXACT_LINES   (EXACT_IRQS + NUM_VCPUS) /* SPIs, then a PPI of each vCPU */

struct exact {
	struct {
		_Alignas(64) uint64_t rises; /* plain: the interrupt must order it */
		_Atomic uint64_t acknowledges;
	} lines[EXACT_LINES];
	uint64_t count;
};

static void exact_set_line(struct world *w, uint32_t number, bool level)
{
	if (number < EXACT_IRQS)
		spi_set_line(w, FIRST_IRQ + number, number, level);
	else
		ppi_set_line(&w->cpus[number - EXACT_IRQS], PPI, number, level);
}

static void exact_acknowledged(struct cpu *cpu, uint32_t intid)
{
	struct exact *s = cpu->world->context;
	const uint32_t number = intid == PPI ? EXACT_IRQS + cpu->number : intid - FIRST_IRQ;
	uint64_t acknowledges;

	if (intid == FIRST_IRQ + GLITCH_IRQ)
		return;
	acknowledges = load_relaxed(&s->lines[number].acknowledges) + 1;
	if (s->lines[number].rises != acknowledges)
		run_fail(cpu->world->run, "interrupt %u: acknowledge %" PRIu64 " after %" PRIu64 " rises", intid,
			 acknowledges, s->lines[number].rises);
	exact_set_line(cpu->world, number, false);
	store_release(&s->lines[number].acknowledges, acknowledges);
}

static void exact_device(struct worker *device)
{
	struct world *w = device->world;
	struct exact *s = w->context;

	for (uint64_t i = 0; i < s->count; i++) {
		const uint32_t number =
			rng_below(&device->rng, EXACT_LINES / EXACT_DEVICES) * EXACT_DEVICES + device->number;

		s->lines[number].rises++;
		exact_set_line(w, number, true);
		if (!world_await(w, &s->lines[number].acknowledges, s->lines[number].rises)) {
			run_fail(w->run, "line %u: rise %" PRIu64 " was never acknowledged", number,
				 s->lines[number].rises);
			return;
		}
	}
}

static void exact_glitches(struct worker *device)
{
	struct exact *s = device->world->context;

	for (uint64_t i = 0; i < s->count; i++) {
		spi_set_line(device->world, FIRST_IRQ + GLITCH_IRQ, 0, true);
		pause_randomly(&device->rng, 200);
		spi_set_line(device->world, FIRST_IRQ + GLITCH_IRQ, 0, false);
		pause_randomly(&device->rng, 1000);
	}
}

static void exact_change(struct worker *worker)
{
	struct exact *s = worker->world->context;

	change_levels(worker, EXACT_IRQS + 1, s->count);
}

void run_level_exact(struct run *run)
{
	static const struct world_hooks hooks = { .acknowledged = exact_acknowledged };
	struct exact *s = aligned_alloc(64, sizeof(*s));
	struct world *w;

	if (!s)
		abort();
	*s = (struct exact){ .count = run->iterations / EXACT_DEVICES + 1 };
	w = world_open(&(struct world_config){ .run = run,
					       .hooks = &hooks,
					       .context = s,
					       .num_vcpus = NUM_VCPUS,
					       .nest_one_in = 4,
					       .spin = 2000,
					       .mixed_eoimode = true });
	for (uint32_t i = 0; i <= GLITCH_IRQ; i++)
		spi_set_up(w, FIRST_IRQ + i, false, i % 2, 8 * (i % 4), &w->cpus[i % NUM_VCPUS]);
	for (uint32_t i = 0; i < NUM_VCPUS; i++)
		private_set_up(&w->cpus[i], PPI, false, i % 2, 8 * i);
	for (unsigned i = 0; i < EXACT_DEVICES; i++)
		world_spawn(w, exact_device, i);
	world_spawn(w, exact_glitches, 0);
	for (unsigned i = 0; i <= NUM_CHANGES; i++)
		world_spawn(w, exact_change, i);
	world_join(w);
	world_settle(w);
	check_idle(w, EXACT_IRQS + 1);
	for (uint32_t i = 0; i < EXACT_LINES; i++) {
		if (s->lines[i].rises != load_relaxed(&s->lines[i].acknowledges))
			run_fail(run, "line %u: %" PRIu64 " rises, %" PRIu64 " acknowledges", i, s->lines[i].rises,
				 load_relaxed(&s->lines[i].acknowledges));
	}
	world_close(w);
	free(s);
}

/*
 * ---- level_shared ----
 *
 * Devices share a line, each with a source of its own. A device has a request, raises its source, and lowers it once the
 * handler has served the request; the handler serves every request that it sees. The interrupt comes again until all
 * sources are low.
 */

#define SHARED_DEVICES 3u
#define SHARED_IRQS    2u

struct shared {
	struct {
		_Alignas(64) _Atomic uint64_t requests;
		_Alignas(64) _Atomic uint64_t served;
	} sources[SHARED_IRQS][SHARED_DEVICES];
	_Atomic uint64_t acknowledges, deactivations;
	uint64_t count;
};

static void shared_acknowledged(struct cpu *cpu, uint32_t intid)
{
	struct shared *s = cpu->world->context;
	const uint32_t irq = intid - FIRST_IRQ;

	atomic_fetch_add_explicit(&s->acknowledges, 1, memory_order_relaxed);
	for (unsigned d = 0; d < SHARED_DEVICES; d++)
		store_release(&s->sources[irq][d].served, load_relaxed(&s->sources[irq][d].requests));
}

static void shared_deactivated(struct world *w, struct cpu *cpu, uint32_t intid)
{
	struct shared *s = w->context;

	atomic_fetch_add_explicit(&s->deactivations, 1, memory_order_relaxed);
	if (cpu || intid - FIRST_IRQ >= SHARED_IRQS)
		run_fail(w->run, "deactivated() with INTID %u", intid);
}

static void shared_device(struct worker *device)
{
	struct world *w = device->world;
	struct shared *s = w->context;

	for (uint64_t i = 0; i < s->count; i++) {
		const uint32_t irq = rng_below(&device->rng, SHARED_IRQS);
		const uint64_t request = load_relaxed(&s->sources[irq][device->number].requests) + 1;

		store_relaxed(&s->sources[irq][device->number].requests, request);
		spi_set_line(w, FIRST_IRQ + irq, device->number, true);
		if (!world_await(w, &s->sources[irq][device->number].served, request)) {
			run_fail(w->run, "SPI %u: request %" PRIu64 " of device %u was never served", FIRST_IRQ + irq,
				 request, device->number);
			return;
		}
		spi_set_line(w, FIRST_IRQ + irq, device->number, false);
		pause_randomly(&device->rng, 500);
	}
}

static void shared_change(struct worker *worker)
{
	struct shared *s = worker->world->context;

	change_levels(worker, SHARED_IRQS, s->count / 2 + 1);
}

void run_level_shared(struct run *run)
{
	static const struct world_hooks hooks = {
		.acknowledged = shared_acknowledged,
		.deactivated = shared_deactivated,
	};
	struct shared *s = aligned_alloc(64, sizeof(*s));
	struct world *w;

	if (!s)
		abort();
	*s = (struct shared){ .count = run->iterations / SHARED_DEVICES + 1 };
	w = world_open(&(struct world_config){ .run = run,
					       .hooks = &hooks,
					       .context = s,
					       .num_vcpus = NUM_VCPUS,
					       .spin = 2000,
					       .mixed_eoimode = true });
	for (uint32_t i = 0; i < SHARED_IRQS; i++)
		spi_set_up(w, FIRST_IRQ + i, false, i % 2, 8, &w->cpus[i]);
	for (unsigned i = 0; i < SHARED_DEVICES; i++)
		world_spawn(w, shared_device, i);
	for (unsigned i = 0; i <= NUM_CHANGES; i++)
		world_spawn(w, shared_change, i);
	world_join(w);
	world_settle(w);
	check_idle(w, SHARED_IRQS);
	if (load_relaxed(&s->acknowledges) != load_relaxed(&s->deactivations))
		run_fail(run, "%" PRIu64 " acknowledges, %" PRIu64 " calls of deactivated()",
			 load_relaxed(&s->acknowledges), load_relaxed(&s->deactivations));
	world_close(w);
	free(s);
}

/*
 * ---- level_resample ----
 *
 * A device has units of work, and its line is raised for the first. Each acknowledge takes one unit; on deactivation the
 * line is lowered and, if there is work left, raised again. As many units are taken as were given.
 */

#define RESAMPLE_DEVICES 2u
#define RESAMPLE_IRQS    4u
#define RESAMPLE_LINES   (RESAMPLE_IRQS + NUM_VCPUS)

struct resample {
	struct {
		_Alignas(64) _Atomic uint64_t given;
		_Alignas(64) _Atomic uint64_t taken;
	} lines[RESAMPLE_LINES];
	_Atomic uint64_t acknowledges, deactivations;
	uint64_t count;
};

static void resample_set_line(struct world *w, uint32_t number, bool level)
{
	if (number < RESAMPLE_IRQS)
		spi_set_line(w, FIRST_IRQ + number, 0, level);
	else
		ppi_set_line(&w->cpus[number - RESAMPLE_IRQS], PPI, 0, level);
}

/* Does a line's device have work? Between acknowledge and deactivation only the handler takes. */
static bool resample_has_work(struct resample *s, uint32_t number)
{
	return load_relaxed(&s->lines[number].given) > load_relaxed(&s->lines[number].taken);
}

static void resample_acknowledged(struct cpu *cpu, uint32_t intid)
{
	struct resample *s = cpu->world->context;
	const uint32_t number = intid == PPI ? RESAMPLE_IRQS + cpu->number : intid - FIRST_IRQ;

	atomic_fetch_add_explicit(&s->acknowledges, 1, memory_order_relaxed);
	if (resample_has_work(s, number))
		store_release(&s->lines[number].taken, load_relaxed(&s->lines[number].taken) + 1);
}

static void resample_deactivated(struct world *w, struct cpu *cpu, uint32_t intid)
{
	struct resample *s = w->context;
	const uint32_t number = cpu ? RESAMPLE_IRQS + cpu->number : intid - FIRST_IRQ;

	atomic_fetch_add_explicit(&s->deactivations, 1, memory_order_relaxed);
	resample_set_line(w, number, false);
	if (resample_has_work(s, number))
		resample_set_line(w, number, true);
}

static void resample_device(struct worker *device)
{
	struct world *w = device->world;
	struct resample *s = w->context;

	for (uint64_t i = 0; i < s->count; i++) {
		const uint32_t number =
			rng_below(&device->rng, RESAMPLE_LINES / RESAMPLE_DEVICES) * RESAMPLE_DEVICES + device->number;
		const uint64_t given = load_relaxed(&s->lines[number].given) + 1 + rng_below(&device->rng, 3);

		store_relaxed(&s->lines[number].given, given);
		resample_set_line(w, number, true);
		if (!rng_one_in(&device->rng, 3))
			continue;
		if (!world_await(w, &s->lines[number].taken, given)) {
			run_fail(w->run, "line %u: %" PRIu64 " of %" PRIu64 " units of work were taken", number,
				 load_relaxed(&s->lines[number].taken), given);
			return;
		}
	}
}

static void resample_change(struct worker *worker)
{
	struct resample *s = worker->world->context;

	change_levels(worker, RESAMPLE_IRQS, s->count / 4 + 1);
}

void run_level_resample(struct run *run)
{
	static const struct world_hooks hooks = {
		.acknowledged = resample_acknowledged,
		.deactivated = resample_deactivated,
	};
	struct resample *s = aligned_alloc(64, sizeof(*s));
	struct world *w;

	if (!s)
		abort();
	*s = (struct resample){ .count = run->iterations / RESAMPLE_DEVICES + 1 };
	w = world_open(&(struct world_config){ .run = run,
					       .hooks = &hooks,
					       .context = s,
					       .num_vcpus = NUM_VCPUS,
					       .nest_one_in = 4,
					       .spin = 2000,
					       .mixed_eoimode = true });
	for (uint32_t i = 0; i < RESAMPLE_IRQS; i++)
		spi_set_up(w, FIRST_IRQ + i, false, i % 2, 8 * i, &w->cpus[i % NUM_VCPUS]);
	for (uint32_t i = 0; i < NUM_VCPUS; i++)
		private_set_up(&w->cpus[i], PPI, false, i % 2, 8 * i);
	for (unsigned i = 0; i < RESAMPLE_DEVICES; i++)
		world_spawn(w, resample_device, i);
	for (unsigned i = 0; i <= NUM_CHANGES; i++)
		world_spawn(w, resample_change, i);
	world_join(w);
	world_settle(w);
	check_idle(w, RESAMPLE_IRQS);
	for (uint32_t i = 0; i < RESAMPLE_LINES; i++) {
		if (load_relaxed(&s->lines[i].given) != load_relaxed(&s->lines[i].taken))
			run_fail(run, "line %u: %" PRIu64 " units of work, %" PRIu64 " taken", i,
				 load_relaxed(&s->lines[i].given), load_relaxed(&s->lines[i].taken));
	}
	if (load_relaxed(&s->acknowledges) != load_relaxed(&s->deactivations))
		run_fail(run, "%" PRIu64 " acknowledges, %" PRIu64 " calls of deactivated()",
			 load_relaxed(&s->acknowledges), load_relaxed(&s->deactivations));
	world_close(w);
	free(s);
}
