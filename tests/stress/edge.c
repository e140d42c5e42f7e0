/* SPDX-License-Identifier: MIT */
/*
 * edge.c - edge-triggered SPIs: none may be lost, none may come twice, each must
 * bring what its device wrote.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "ledger.h"
#include "reconfigure.h"
#include "world.h"

#define NUM_SPIS    960
#define NUM_IRQS    48
#define NUM_DEVICES 2
#define NUM_VCPUS   4

/* Spread over the words of the candidate maps. */
static uint32_t intid_of(uint32_t number)
{
	return STRESS_FIRST_SPI + number * 20;
}

static uint32_t number_of(uint32_t intid)
{
	return (intid - STRESS_FIRST_SPI) / 20;
}

static struct cpu *cpu_for(struct world *w, uint32_t number)
{
	return &w->cpus[number % w->num_cpus];
}

static void set_up_irqs(struct world *w, uint32_t num_irqs)
{
	for (uint32_t n = 0; n < num_irqs; n++)
		spi_set_up(w, intid_of(n), true, n / 2 % 2, 8 * (n % 4), cpu_for(w, n));
}

static void check_registers(struct world *w)
{
	for (uint32_t n = 1; n <= NUM_SPIS / 32; n++) {
		const uint32_t pending = (uint32_t)dist_read(w, GICD_ISPENDR + 4 * n);
		const uint32_t active = (uint32_t)dist_read(w, GICD_ISACTIVER + 4 * n);

		if (pending | active)
			run_fail(w->run, "at rest GICD_ISPENDR%u is 0x%x, GICD_ISACTIVER%u 0x%x", n, pending, n,
				 active);
	}
}

/*
 * The vCPU hides from interrupts for a moment: by PMR, by group enables. What is signalled meanwhile must be found by the
 * evaluation that follows.
 */
static bool mask_for_a_moment(struct cpu *cpu)
{
	const uint32_t igrpen = rng_one_in(&cpu->rng, 2) ? VGIC_ICC_IGRPEN0_EL1 : VGIC_ICC_IGRPEN1_EL1;

	switch (rng_below(&cpu->rng, 8)) {
	case 0:
		icc_write(cpu, VGIC_ICC_PMR_EL1, 8 * rng_below(&cpu->rng, 4));
		vgic_prepare_wait(cpu->vcpu);
		vgic_finish_wait(cpu->vcpu);
		icc_write(cpu, VGIC_ICC_PMR_EL1, 0xff);
		break;
	case 1:
		icc_write(cpu, igrpen, 0);
		vgic_prepare_wait(cpu->vcpu);
		vgic_finish_wait(cpu->vcpu);
		icc_write(cpu, igrpen, 1);
		break;
	case 2:
		icc_write(cpu, VGIC_ICC_BPR0_EL1, rng_below(&cpu->rng, 8));
		icc_write(cpu, VGIC_ICC_BPR1_EL1, rng_below(&cpu->rng, 8));
		break;
	default:
		break;
	}
	return false;
}

/* ---- Signals, from here and there ------------------------------------------------------------- */

/*
 * One edge, in one of the ways that make one. A rise of the line is one only if no other source holds the line high: each
 * line is driven by one device.
 */
static void signal_edge(struct worker *device, uint32_t number)
{
	struct world *w = device->world;
	const uint32_t intid = intid_of(number);

	switch (rng_below(&device->rng, 5)) {
	case 0:
		spi_write_bit(w, GICD_ISPENDR, intid);
		break;
	case 1:
		dist_write(w, GICD_SETSPI_NSR, intid);
		break;
	case 2:
		if (number % NUM_DEVICES == device->number) {
			spi_set_line(w, intid, device->number, true);
			spi_set_line(w, intid, device->number, false);
			break;
		}
		spi_pulse(w, intid);
		break;
	default:
		spi_pulse(w, intid);
		break;
	}
}

/* ---- edge_storm ---------------------------------------------------------------------------------- */

#define STORM_ROUND 250

struct storm {
	struct ledger ledgers[NUM_IRQS];
	uint32_t num_irqs; /* signalled in this round: few of them collide more */
	uint64_t per_round;
};

static void storm_acknowledged(struct cpu *cpu, uint32_t intid)
{
	struct storm *s = cpu->world->context;

	ledger_note_acknowledge(&s->ledgers[number_of(intid)], cpu->world->run, intid);
}

static void storm_ending(struct cpu *cpu, uint32_t intid)
{
	struct storm *s = cpu->world->context;

	ledger_note_end(&s->ledgers[number_of(intid)], cpu->world->run, intid);
}

static void storm_device(struct worker *device)
{
	struct storm *s = device->world->context;

	for (uint64_t i = 0; i < s->per_round; i++) {
		const uint32_t number = rng_below(&device->rng, s->num_irqs);

		ledger_note_signal(&s->ledgers[number], device->number);
		signal_edge(device, number);
		if (rng_one_in(&device->rng, 64))
			nap();
		else
			pause_randomly(&device->rng, 30);
	}
}

static void storm_change(struct worker *worker)
{
	struct storm *s = worker->world->context;

	for (uint64_t i = 0; i < s->per_round / 2; i++) {
		change_spi(worker, (enum change)worker->number, intid_of(rng_below(&worker->rng, s->num_irqs)));
		pause_randomly(&worker->rng, 100);
	}
}

static void storm_check(struct world *w)
{
	struct storm *s = w->context;

	world_settle(w);
	check_registers(w);
	for (uint32_t n = 0; n < NUM_IRQS; n++)
		ledger_check(&s->ledgers[n], w->run, intid_of(n));
}

void run_edge_storm(struct run *run)
{
	static const struct world_hooks hooks = {
		.acknowledged = storm_acknowledged,
		.ending = storm_ending,
		.idle = mask_for_a_moment,
	};
	static const uint32_t widths[] = { 1, 4, NUM_IRQS, NUM_IRQS };
	struct storm *s = calloc(1, sizeof(*s));
	struct world *w;

	if (!s)
		abort();
	w = world_open(&(struct world_config){ .run = run,
					       .hooks = &hooks,
					       .context = s,
					       .num_vcpus = NUM_VCPUS,
					       .num_spis = NUM_SPIS,
					       .nest_one_in = 4,
					       .spin = 2000,
					       .mixed_eoimode = true });
	set_up_irqs(w, NUM_IRQS);
	s->per_round = STORM_ROUND;
	for (uint64_t done = 0, round = 0; done < run->iterations && !run_has_failed(run);
	     done += STORM_ROUND, round++) {
		s->num_irqs = widths[round % 4];
		for (unsigned i = 0; i < NUM_DEVICES; i++)
			world_spawn(w, storm_device, i);
		/* Every eighth round has no changes: they bring back what was lost. */
		for (unsigned i = 0; i < NUM_CHANGES && round / 4 % 8; i++)
			world_spawn(w, storm_change, i);
		world_join(w);
		storm_check(w);
	}
	world_close(w);
	free(s);
}

/* ---- edge_lockstep: a device signals, waits for the acknowledge, and signals again ---------------- */

#define IRQS_PER_DEVICE 8

struct lockstep {
	struct lockstep_irq {
		_Alignas(64) uint64_t payload; /* plain: the interrupt must order it */
		_Atomic uint64_t acknowledges;
		_Atomic uint32_t in_service;
	} irqs[NUM_DEVICES * IRQS_PER_DEVICE];
	uint64_t count;
	uint64_t changes;
};

static void lockstep_acknowledged(struct cpu *cpu, uint32_t intid)
{
	struct lockstep *s = cpu->world->context;
	struct lockstep_irq *irq = &s->irqs[number_of(intid)];
	const uint64_t acknowledges = load_relaxed(&irq->acknowledges) + 1;

	if (atomic_exchange_explicit(&irq->in_service, 1, memory_order_relaxed))
		run_fail(cpu->world->run, "interrupt %u was acknowledged while it was active", intid);
	if (irq->payload != acknowledges)
		run_fail(cpu->world->run, "interrupt %u: acknowledge %" PRIu64 " sees payload %" PRIu64, intid,
			 acknowledges, irq->payload);
	store_release(&irq->acknowledges, acknowledges);
}

static void lockstep_ending(struct cpu *cpu, uint32_t intid)
{
	struct lockstep *s = cpu->world->context;

	store_relaxed(&s->irqs[number_of(intid)].in_service, 0);
}

static void lockstep_device(struct worker *device)
{
	struct world *w = device->world;
	struct lockstep *s = w->context;

	for (uint64_t i = 0; i < s->count; i++) {
		/* Its own: number % NUM_DEVICES is the device. */
		const uint32_t number = rng_below(&device->rng, IRQS_PER_DEVICE) * NUM_DEVICES + device->number;
		struct lockstep_irq *irq = &s->irqs[number];

		irq->payload++;
		signal_edge(device, number);
		if (!world_await(w, &irq->acknowledges, irq->payload)) {
			run_fail(w->run, "edge %" PRIu64 " of interrupt %u was never acknowledged", irq->payload,
				 intid_of(number));
			return;
		}
	}
}

static void lockstep_change(struct worker *worker)
{
	struct lockstep *s = worker->world->context;

	for (uint64_t i = 0; i < s->changes && !run_has_failed(worker->world->run); i++) {
		change_spi(worker, (enum change)worker->number,
			   intid_of(rng_below(&worker->rng, NUM_DEVICES * IRQS_PER_DEVICE)));
		pause_randomly(&worker->rng, 2000);
		if (rng_one_in(&worker->rng, 4))
			nap();
	}
}

void run_edge_lockstep(struct run *run)
{
	static const struct world_hooks hooks = {
		.acknowledged = lockstep_acknowledged,
		.ending = lockstep_ending,
		.idle = mask_for_a_moment,
	};
	struct lockstep *s = aligned_alloc(64, sizeof(*s));
	struct world *w;

	if (!s)
		abort();
	*s = (struct lockstep){ .count = run->iterations / NUM_DEVICES + 1, .changes = run->iterations / 2 + 1 };
	w = world_open(&(struct world_config){ .run = run,
					       .hooks = &hooks,
					       .context = s,
					       .num_vcpus = NUM_VCPUS,
					       .num_spis = NUM_SPIS,
					       .nest_one_in = 4,
					       .spin = 2000,
					       .mixed_eoimode = true });
	set_up_irqs(w, NUM_DEVICES * IRQS_PER_DEVICE);
	for (unsigned i = 0; i < NUM_DEVICES; i++)
		world_spawn(w, lockstep_device, i);
	for (unsigned i = 0; i < NUM_CHANGES; i++)
		world_spawn(w, lockstep_change, i);
	world_join(w);
	world_settle(w);
	check_registers(w);
	for (uint32_t n = 0; n < NUM_DEVICES * IRQS_PER_DEVICE; n++) {
		if (s->irqs[n].payload != load_relaxed(&s->irqs[n].acknowledges))
			run_fail(run, "interrupt %u: %" PRIu64 " edges, %" PRIu64 " acknowledges", intid_of(n),
				 s->irqs[n].payload, load_relaxed(&s->irqs[n].acknowledges));
	}
	world_close(w);
	free(s);
}

/*
 * ---- edge_merge ----
 *
 * Devices signal one SPI several times in a row and then wait until an acknowledge has seen their last number. With one
 * device nothing makes up for an edge that a pending interrupt swallowed without its data.
 */

#define MERGE_DEVICES 3u

struct merge {
	struct merge_device {
		_Alignas(64) _Atomic uint64_t data;
		_Alignas(64) _Atomic uint64_t seen;
	} devices[MERGE_DEVICES];
	uint64_t count;
};

static void merge_acknowledged(struct cpu *cpu, uint32_t intid)
{
	struct merge *s = cpu->world->context;

	(void)intid;
	for (unsigned i = 0; i < MERGE_DEVICES; i++)
		store_release(&s->devices[i].seen, load_relaxed(&s->devices[i].data));
}

static void merge_device(struct worker *device)
{
	struct merge *s = device->world->context;
	struct merge_device *d = &s->devices[device->number];
	uint64_t number = load_relaxed(&d->data);

	for (uint64_t i = 0; i < s->count; i++) {
		for (uint32_t n = 1 + rng_below(&device->rng, 3); n > 0; n--) {
			pause_randomly(&device->rng, 20);
			store_relaxed(&d->data, ++number);
			spi_pulse(device->world, intid_of(0));
		}
		if (!world_await(device->world, &d->seen, number)) {
			run_fail(device->world->run,
				 "device %u signalled %" PRIu64 " last, the acknowledges have seen %" PRIu64,
				 device->number, number, load_relaxed(&d->seen));
			return;
		}
	}
}

static void merge_phase(struct world *w, unsigned num_devices)
{
	struct merge *s = w->context;

	s->count = w->run->iterations / 2 / num_devices + 1;
	for (unsigned i = 0; i < num_devices; i++)
		world_spawn(w, merge_device, i);
	world_join(w);
	world_settle(w);
}

void run_edge_merge(struct run *run)
{
	static const struct world_hooks hooks = { .acknowledged = merge_acknowledged };
	struct merge *s = aligned_alloc(64, sizeof(*s));
	struct world *w;

	if (!s)
		abort();
	*s = (struct merge){ 0 };
	w = world_open(
		&(struct world_config){ .run = run, .hooks = &hooks, .context = s, .num_vcpus = 1, .spin = 20000 });
	spi_set_up(w, intid_of(0), true, 1, 0x80, &w->cpus[0]);
	merge_phase(w, 1);
	merge_phase(w, MERGE_DEVICES);
	world_close(w);
	free(s);
}

/*
 * ---- edge_handover ----
 *
 * Two devices signal one SPI while it is disabled, so that the second finds it pending and nobody is kicked. When it is
 * enabled, one acknowledge answers both and reads what both wrote, plainly. Nothing but the state word orders the devices
 * before it: under ThreadSanitizer the main loop learns by relaxed loads that they are done. Elsewhere it acquires,
 * because a weakly ordered machine might show that a device is done before its signal.
 */
#if STRESS_TSAN
#define DONE_ACQUIRE memory_order_relaxed
#define DONE_RELEASE memory_order_relaxed
#else
#define DONE_ACQUIRE memory_order_acquire
#define DONE_RELEASE memory_order_release
#endif

struct handover {
	uint64_t payload[NUM_DEVICES]; /* plain */
	_Atomic uint64_t go;
	_Atomic uint64_t done[NUM_DEVICES];
	_Atomic uint64_t acknowledges;
	uint64_t count;
};

static void handover_acknowledged(struct cpu *cpu, uint32_t intid)
{
	struct handover *s = cpu->world->context;
	const uint64_t round = load_relaxed(&s->acknowledges) + 1;

	for (unsigned i = 0; i < NUM_DEVICES; i++) {
		if (s->payload[i] != round)
			run_fail(cpu->world->run, "interrupt %u: acknowledge %" PRIu64 " sees %" PRIu64 " of device %u",
				 intid, round, s->payload[i], i);
	}
	store_release(&s->acknowledges, round);
}

/* Meanwhile the device does nothing by itself: the world may come to rest. */
static bool handover_wait_for_go(struct world *w, uint64_t round)
{
	struct handover *s = w->context;

	atomic_fetch_sub(&w->busy, 1);
	for (unsigned n = 0; load_acquire(&s->go) < round && !run_has_failed(w->run); n++)
		wait_step(n);
	atomic_fetch_add(&w->busy, 1);
	return !run_has_failed(w->run);
}

static void handover_device(struct worker *device)
{
	struct handover *s = device->world->context;

	for (uint64_t round = 1; round <= s->count; round++) {
		if (!handover_wait_for_go(device->world, round))
			return;
		s->payload[device->number] = round;
		spi_pulse(device->world, intid_of(0));
		atomic_store_explicit(&s->done[device->number], round, DONE_RELEASE);
	}
}

static void handover_guest(struct worker *guest)
{
	struct world *w = guest->world;
	struct handover *s = w->context;

	for (uint64_t round = 1; round <= s->count; round++) {
		spi_write_bit(w, GICD_ICENABLER, intid_of(0));
		store_release(&s->go, round);
		for (unsigned i = 0; i < NUM_DEVICES; i++) {
			for (unsigned n = 0; atomic_load_explicit(&s->done[i], DONE_ACQUIRE) < round; n++)
				wait_step(n);
		}
		spi_write_bit(w, GICD_ISENABLER, intid_of(0));
		if (!world_await(w, &s->acknowledges, round)) {
			run_fail(w->run, "round %" PRIu64 ": no acknowledge after ISENABLER", round);
			return;
		}
	}
}

void run_edge_handover(struct run *run)
{
	static const struct world_hooks hooks = { .acknowledged = handover_acknowledged };
	struct handover *s = calloc(1, sizeof(*s));
	struct world *w;

	if (!s)
		abort();
	s->count = run->iterations;
	w = world_open(
		&(struct world_config){ .run = run, .hooks = &hooks, .context = s, .num_vcpus = 1, .spin = 5000 });
	spi_set_up(w, intid_of(0), true, 1, 0x80, &w->cpus[0]);
	for (unsigned i = 0; i < NUM_DEVICES; i++)
		world_spawn(w, handover_device, i);
	world_spawn(w, handover_guest, 0);
	world_join(w);
	if (load_relaxed(&s->acknowledges) != s->count)
		run_fail(run, "%" PRIu64 " acknowledges of %" PRIu64 " rounds", load_relaxed(&s->acknowledges),
			 s->count);
	world_close(w);
	free(s);
}
