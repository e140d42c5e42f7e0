/* SPDX-License-Identifier: MIT */
/*
 * crowd.c - many vCPUs: 512 exist, 64 of them are driven, by a few threads with
 * many vCPUs each, as a host does that multiplexes.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "ledger.h"
#include "reconfigure.h"
#include "world.h"

#define NUM_VCPUS     512u
#define NUM_CPUS      64u
#define NUM_RUNNERS   4u
#define NUM_DEVICES   2u
#define NUM_SPIS      960u
#define NUM_IRQS      120u
#define NUM_SGIS      16u
#define VCPUS_PER_CPU (NUM_VCPUS / NUM_CPUS)
#define ROUND         1000u

struct crowd {
	struct ledger spis[NUM_IRQS];
	struct ledger sgis[NUM_CPUS][NUM_SGIS]; /* their devices are the runners */
	struct {
		_Alignas(64) uint64_t quota; /* SGIs that a runner still has to send in this round; its own */
	} runners[NUM_RUNNERS];
};

static uint32_t intid_of(uint32_t number)
{
	return STRESS_FIRST_SPI + number * 8;
}

static struct ledger *ledger_of(struct cpu *cpu, uint32_t intid)
{
	struct crowd *s = cpu->world->context;

	return intid < NUM_SGIS ? &s->sgis[cpu->number][intid] : &s->spis[(intid - STRESS_FIRST_SPI) / 8];
}

static void acknowledged(struct cpu *cpu, uint32_t intid)
{
	ledger_note_acknowledge(ledger_of(cpu, intid), cpu->world->run, intid);
}

static void ending(struct cpu *cpu, uint32_t intid)
{
	ledger_note_end(ledger_of(cpu, intid), cpu->world->run, intid);
}

/* To a list in a random cluster of 16, seldom to everyone else. Nobody drives most of the targets: there they stay. */
static void send_sgi(struct cpu *cpu)
{
	struct crowd *s = cpu->world->context;
	const uint32_t sgi = rng_below(&cpu->rng, NUM_SGIS), cluster = rng_below(&cpu->rng, NUM_VCPUS / 16);
	const uint32_t list = (uint32_t)rng_next(&cpu->rng) & 0xffff;
	const bool all = rng_one_in(&cpu->rng, 128);
	uint64_t value = (uint64_t)sgi << ICC_SGIR_INTID_SHIFT;

	for (uint32_t i = 0; i < NUM_CPUS; i++) {
		const uint32_t index = i * VCPUS_PER_CPU;

		if (all ? i != cpu->number : index / 16 == cluster && (list >> (index % 16) & 1))
			ledger_note_signal(&s->sgis[i][sgi], cpu->runner->number);
	}
	if (all)
		value |= ICC_SGIR_IRM;
	else
		value |= (uint64_t)cluster << ICC_SGIR_AFF1_SHIFT | list;
	icc_write(cpu, VGIC_ICC_SGI1R_EL1, value);
}

static bool idle(struct cpu *cpu)
{
	struct crowd *s = cpu->world->context;
	uint64_t *quota = &s->runners[cpu->runner->number].quota;

	if (*quota == 0)
		return false;
	--*quota;
	send_sgi(cpu);
	return true;
}

static void device_main(struct worker *device)
{
	struct crowd *s = device->world->context;

	for (unsigned i = 0; i < ROUND / NUM_DEVICES; i++) {
		const uint32_t number = rng_below(&device->rng, NUM_IRQS);

		ledger_note_signal(&s->spis[number], device->number);
		spi_pulse(device->world, intid_of(number));
		pause_randomly(&device->rng, 50);
	}
}

static void change_main(struct worker *worker)
{
	for (unsigned i = 0; i < ROUND / 4; i++)
		change_spi(worker, (enum change)worker->number, intid_of(rng_below(&worker->rng, NUM_IRQS)));
}

static void check(struct world *w)
{
	struct crowd *s = w->context;

	world_settle(w);
	for (uint32_t n = 0; n < NUM_IRQS; n++)
		ledger_check(&s->spis[n], w->run, intid_of(n));
	for (uint32_t i = 0; i < NUM_CPUS; i++) {
		for (uint32_t sgi = 0; sgi < NUM_SGIS; sgi++)
			ledger_check(&s->sgis[i][sgi], w->run, sgi);
	}
}

void run_crowd(struct run *run)
{
	static const struct world_hooks hooks = { .acknowledged = acknowledged, .ending = ending, .idle = idle };
	struct crowd *s = aligned_alloc(64, sizeof(*s));
	struct world *w;

	if (!s)
		abort();
	*s = (struct crowd){ 0 };
	w = world_open(&(struct world_config){ .run = run,
					       .hooks = &hooks,
					       .context = s,
					       .num_vcpus = NUM_VCPUS,
					       .num_cpus = NUM_CPUS,
					       .num_runners = NUM_RUNNERS,
					       .num_spis = NUM_SPIS,
					       .nest_one_in = 8,
					       .spin = 2000,
					       .mixed_eoimode = true });
	for (uint32_t n = 0; n < NUM_IRQS; n++)
		spi_set_up(w, intid_of(n), true, n % 2, 8 * (n % 8), &w->cpus[n % NUM_CPUS]);
	for (uint32_t i = 0; i < NUM_CPUS; i++) {
		for (uint32_t sgi = 0; sgi < NUM_SGIS; sgi++)
			private_set_up(&w->cpus[i], sgi, true, sgi % 2, 8 * (sgi % 4));
	}
	world_settle(w);
	for (uint64_t done = 0; done < run->iterations && !run_has_failed(run); done += ROUND) {
		for (uint32_t i = 0; i < NUM_RUNNERS; i++)
			s->runners[i].quota = ROUND / (4 * (i + 1));
		world_nudge(w);
		for (unsigned i = 0; i < NUM_DEVICES; i++)
			world_spawn(w, device_main, i);
		for (unsigned i = 0; i < NUM_CHANGES; i++)
			world_spawn(w, change_main, i);
		world_join(w);
		check(w);
	}
	world_close(w);
	free(s);
}
