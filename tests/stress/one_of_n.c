/* SPDX-License-Identifier: MIT */
/*
 * one_of_n.c - SPIs that any participating vCPU may take, while vCPUs stop and
 * begin to take part. Exactly one takes each.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "world.h"

#define NUM_VCPUS       4u
#define NUM_DEVICES     2u
#define IRQS_PER_DEVICE 4u
#define NUM_IRQS        (NUM_DEVICES * IRQS_PER_DEVICE)
#define FIRST_IRQ       40u

struct one_of_n {
	struct {
		_Alignas(64) uint64_t payload; /* plain: the interrupt must order it */
		_Atomic uint64_t acknowledges;
	} irqs[NUM_IRQS];
	uint64_t taken_by[NUM_VCPUS]; /* each its own */
	uint64_t count;
	uint64_t changes;
};

static void acknowledged(struct cpu *cpu, uint32_t intid)
{
	struct one_of_n *s = cpu->world->context;
	const uint32_t number = intid - FIRST_IRQ;
	const uint64_t acknowledges = load_relaxed(&s->irqs[number].acknowledges) + 1;

	if (s->irqs[number].payload != acknowledges)
		run_fail(cpu->world->run, "SPI %u: acknowledge %" PRIu64 " sees payload %" PRIu64, intid, acknowledges,
			 s->irqs[number].payload);
	s->taken_by[cpu->number]++;
	store_release(&s->irqs[number].acknowledges, acknowledges);
}

static void signal_and_wait(struct worker *device, uint32_t number)
{
	struct world *w = device->world;
	struct one_of_n *s = w->context;
	const uint64_t payload = ++s->irqs[number].payload;

	spi_pulse(w, FIRST_IRQ + number);
	if (!world_await(w, &s->irqs[number].acknowledges, payload))
		run_fail(w->run, "SPI %u: edge %" PRIu64 " was never acknowledged", FIRST_IRQ + number, payload);
}

static void device_main(struct worker *device)
{
	struct one_of_n *s = device->world->context;

	for (uint64_t i = 0; i < s->count && !run_has_failed(device->world->run); i++) {
		signal_and_wait(device, rng_below(&device->rng, IRQS_PER_DEVICE) * NUM_DEVICES + device->number);
		pause_randomly(&device->rng, 500);
	}
}

/* ---- one_of_n_exact ------------------------------------------------------------------------------- */

/* The ways in which another thread takes a vCPU out of the distribution. */
enum way_out {
	BY_WAKER,
	BY_POWER,
	BY_DPG,
	NUM_WAYS_OUT,
};

static void set_participation(struct cpu *cpu, enum way_out way, bool takes_part)
{
	switch (way) {
	case BY_WAKER:
		redist_write(cpu, GICR_WAKER, takes_part ? 0 : GICR_WAKER_PROCESSOR_SLEEP);
		break;
	case BY_POWER:
		vgic_vcpu_set_online(cpu->vcpu, takes_part);
		break;
	case BY_DPG:
		redist_write(cpu, GICR_CTLR, takes_part ? 0 : GICR_CTLR_DPG0 | GICR_CTLR_DPG1NS);
		break;
	case NUM_WAYS_OUT:
		abort();
	}
}

static void exact_change(struct worker *worker)
{
	struct one_of_n *s = worker->world->context;

	for (uint64_t i = 0; i < s->changes && !run_has_failed(worker->world->run); i++) {
		struct cpu *cpu = &worker->world->cpus[rng_below(&worker->rng, NUM_VCPUS)];

		set_participation(cpu, (enum way_out)worker->number, false);
		pause_randomly(&worker->rng, 2000);
		if (rng_one_in(&worker->rng, 8))
			nap();
		set_participation(cpu, (enum way_out)worker->number, true);
		pause_randomly(&worker->rng, 1000);
		if (rng_one_in(&worker->rng, 4))
			nap();
	}
}

/* The vCPU leaves by itself: its CPU interface does not take the group for a while. */
static bool exact_idle(struct cpu *cpu)
{
	if (!rng_one_in(&cpu->rng, 4))
		return false;
	icc_write(cpu, VGIC_ICC_IGRPEN1_EL1, 0);
	vgic_prepare_wait(cpu->vcpu);
	vgic_finish_wait(cpu->vcpu);
	icc_write(cpu, VGIC_ICC_IGRPEN1_EL1, 1);
	return false;
}

static void set_up(struct world *w, unsigned group_of_odd)
{
	for (uint32_t i = 0; i < NUM_IRQS; i++) {
		spi_set_up(w, FIRST_IRQ + i, true, i % 2 ? group_of_odd : 1, 8 * (i % 4), &w->cpus[0]);
		spi_route_to_any(w, FIRST_IRQ + i);
	}
}

void run_one_of_n_exact(struct run *run)
{
	static const struct world_hooks hooks = { .acknowledged = acknowledged, .idle = exact_idle };
	struct one_of_n *s = aligned_alloc(64, sizeof(*s));
	struct world *w;

	if (!s)
		abort();
	*s = (struct one_of_n){ .count = run->iterations / NUM_DEVICES + 1, .changes = run->iterations / 2 + 1 };
	w = world_open(&(struct world_config){
		.run = run, .hooks = &hooks, .context = s, .num_vcpus = NUM_VCPUS, .nest_one_in = 4, .spin = 2000 });
	set_up(w, 0);
	for (unsigned i = 0; i < NUM_DEVICES; i++)
		world_spawn(w, device_main, i);
	for (unsigned i = 0; i < NUM_WAYS_OUT; i++)
		world_spawn(w, exact_change, i);
	world_join(w);
	world_settle(w);
	for (uint32_t i = 0; i < NUM_IRQS; i++) {
		if (s->irqs[i].payload != load_relaxed(&s->irqs[i].acknowledges))
			run_fail(run, "SPI %u: %" PRIu64 " edges, %" PRIu64 " acknowledges", FIRST_IRQ + i,
				 s->irqs[i].payload, load_relaxed(&s->irqs[i].acknowledges));
	}
	world_close(w);
	free(s);
}

/* ---- one_of_n_spread -------------------------------------------------------------------------------- */

static void check_spread(struct world *w, uint64_t signals, const struct cpu *left_out, const char *how)
{
	struct one_of_n *s = w->context;
	uint64_t sum = 0;

	world_settle(w);
	for (uint32_t i = 0; i < NUM_VCPUS; i++) {
		const uint64_t taken = s->taken_by[i];

		sum += taken;
		if (&w->cpus[i] == left_out ? taken != 0 : taken < signals / (2 * NUM_VCPUS))
			run_fail(w->run, "%s: vCPU %u took %" PRIu64 " of %" PRIu64, how, i, taken, signals);
		s->taken_by[i] = 0;
	}
	if (sum != signals)
		run_fail(w->run, "%s: %" PRIu64 " edges, %" PRIu64 " acknowledges", how, signals, sum);
}

static void spread_phase(struct world *w, const struct cpu *left_out, const char *how)
{
	struct one_of_n *s = w->context;

	for (unsigned i = 0; i < NUM_DEVICES; i++)
		world_spawn(w, device_main, i);
	world_join(w);
	check_spread(w, NUM_DEVICES * s->count, left_out, how);
}

void run_one_of_n_spread(struct run *run)
{
	static const char *const names[NUM_WAYS_OUT] = { "asleep", "offline", "declining" };
	static const struct world_hooks hooks = { .acknowledged = acknowledged };
	struct one_of_n *s = aligned_alloc(64, sizeof(*s));
	struct world *w;

	if (!s)
		abort();
	*s = (struct one_of_n){ .count = run->iterations / NUM_DEVICES + 1 };
	w = world_open(&(struct world_config){
		.run = run, .hooks = &hooks, .context = s, .num_vcpus = NUM_VCPUS, .spin = 2000 });
	set_up(w, 1);
	spread_phase(w, NULL, "all take part");
	for (unsigned way = 0; way < NUM_WAYS_OUT && !run_has_failed(run); way++) {
		struct cpu *cpu = &w->cpus[way];

		set_participation(cpu, (enum way_out)way, false);
		spread_phase(w, cpu, names[way]);
		set_participation(cpu, (enum way_out)way, true);
	}
	world_close(w);
	free(s);
}

/*
 * ---- one_of_n_hand_over ----
 *
 * An interrupt waits at some vCPU, or at none, because the distributor's groups are off or because nobody takes part. Then
 * all but one vCPU stop taking part, or one begins to: that one has to get it.
 */

static void set_all_but(struct world *w, struct worker *device, const struct cpu *except, bool takes_part)
{
	for (uint32_t i = 0; i < NUM_VCPUS; i++) {
		if (&w->cpus[i] == except)
			continue;
		for (unsigned way = 0; way < NUM_WAYS_OUT; way++) {
			/* Coming back ends every way out; for going one is enough. */
			if (takes_part || way == (i + device->rng.state) % NUM_WAYS_OUT)
				set_participation(&w->cpus[i], (enum way_out)way, takes_part);
		}
	}
}

static void hand_over(struct worker *device, uint32_t number)
{
	struct world *w = device->world;
	struct one_of_n *s = w->context;
	struct cpu *chosen = &w->cpus[rng_below(&device->rng, NUM_VCPUS)];
	const uint64_t payload = s->irqs[number].payload + 1, taken = s->taken_by[chosen->number];

	s->irqs[number].payload = payload;
	if (rng_one_in(&device->rng, 2)) {
		set_all_but(w, device, NULL, false);
		spi_pulse(w, FIRST_IRQ + number);
		for (unsigned way = 0; way < NUM_WAYS_OUT; way++)
			set_participation(chosen, (enum way_out)way, true);
	} else {
		dist_write(w, GICD_CTLR, 0);
		spi_pulse(w, FIRST_IRQ + number);
		set_all_but(w, device, chosen, false);
		dist_write(w, GICD_CTLR, GICD_CTLR_ENABLE_GRP0 | GICD_CTLR_ENABLE_GRP1);
	}
	if (!world_await(w, &s->irqs[number].acknowledges, payload))
		run_fail(w->run, "SPI %u: edge %" PRIu64 " was never acknowledged", FIRST_IRQ + number, payload);
	else if (s->taken_by[chosen->number] != taken + 1)
		run_fail(w->run, "SPI %u was taken by a vCPU that does not take part", FIRST_IRQ + number);
	set_all_but(w, device, NULL, true);
}

static void hand_over_device(struct worker *device)
{
	for (uint64_t i = 0; i < device->world->run->iterations && !run_has_failed(device->world->run); i++)
		hand_over(device, rng_below(&device->rng, NUM_IRQS));
}

void run_one_of_n_hand_over(struct run *run)
{
	static const struct world_hooks hooks = { .acknowledged = acknowledged };
	struct one_of_n *s = aligned_alloc(64, sizeof(*s));
	struct world *w;

	if (!s)
		abort();
	*s = (struct one_of_n){ 0 };
	w = world_open(&(struct world_config){
		.run = run, .hooks = &hooks, .context = s, .num_vcpus = NUM_VCPUS, .spin = 2000 });
	set_up(w, 0);
	world_spawn(w, hand_over_device, 0);
	world_join(w);
	world_close(w);
	free(s);
}
