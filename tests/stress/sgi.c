/* SPDX-License-Identifier: MIT */
/*
 * sgi.c - software-generated interrupts between vCPUs.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "ledger.h"
#include "world.h"

#define NUM_VCPUS 4u
#define NUM_SGIS  16u
#define EVERYONE  ((1u << NUM_VCPUS) - 1)

/* Devices of a ledger: the sending vCPUs, and a thread that writes GICR_ISPENDR0. */
#define ISPENDR_DEVICE NUM_VCPUS

/* ---- sgi_storm ---------------------------------------------------------------------------------- */

#define STORM_ROUND 400

struct storm {
	struct ledger ledgers[NUM_VCPUS][NUM_SGIS];
	uint64_t quota[NUM_VCPUS]; /* SGIs that each vCPU still has to send in this round; its own */
};

/* Half of the SGIs are in Group 0: what ICC_SGI0R and ICC_ASGI1R can reach. */
static unsigned group_of(uint32_t sgi)
{
	return sgi < NUM_SGIS / 2;
}

static void note_signals(struct storm *s, uint32_t targets, uint32_t sgi, unsigned device)
{
	for (uint32_t i = 0; i < NUM_VCPUS; i++) {
		if (targets >> i & 1)
			ledger_note_signal(&s->ledgers[i][sgi], device);
	}
}

static void send_random_sgi(struct cpu *cpu)
{
	static const uint32_t registers[] = { VGIC_ICC_SGI1R_EL1, VGIC_ICC_SGI1R_EL1, VGIC_ICC_SGI0R_EL1,
					      VGIC_ICC_ASGI1R_EL1 };
	struct storm *s = cpu->world->context;
	const uint32_t reg = registers[rng_below(&cpu->rng, 4)];
	uint32_t sgi = rng_below(&cpu->rng, NUM_SGIS);
	uint32_t targets = rng_one_in(&cpu->rng, 2) ? 1u << rng_below(&cpu->rng, NUM_VCPUS) :
						      rng_below(&cpu->rng, EVERYONE + 1);
	uint64_t value = targets;

	if (rng_one_in(&cpu->rng, 4)) {
		targets = EVERYONE & ~(1u << cpu->number);
		value = ICC_SGIR_IRM;
	}
	if (reg != VGIC_ICC_SGI1R_EL1)
		sgi |= NUM_SGIS / 2;
	note_signals(s, targets, sgi, cpu->number);
	icc_write(cpu, reg, value | (uint64_t)sgi << ICC_SGIR_INTID_SHIFT);
}

/* A vCPU sends from its handlers and between interrupts, and then blocks while others still send to it. */
static bool storm_send(struct cpu *cpu)
{
	struct storm *s = cpu->world->context;
	uint64_t *quota = &s->quota[cpu->number];

	if (*quota == 0)
		return false;
	--*quota;
	send_random_sgi(cpu);
	return true;
}

static void storm_acknowledged(struct cpu *cpu, uint32_t intid)
{
	struct storm *s = cpu->world->context;

	if (intid >= NUM_SGIS) {
		run_fail(cpu->world->run, "vCPU %u acknowledged %u", cpu->index, intid);
		return;
	}
	ledger_note_acknowledge(&s->ledgers[cpu->number][intid], cpu->world->run, intid);
	if (rng_one_in(&cpu->rng, 4))
		storm_send(cpu);
}

static void storm_ending(struct cpu *cpu, uint32_t intid)
{
	struct storm *s = cpu->world->context;

	if (intid < NUM_SGIS)
		ledger_note_end(&s->ledgers[cpu->number][intid], cpu->world->run, intid);
}

static void storm_ispendr(struct worker *worker)
{
	struct world *w = worker->world;

	for (unsigned i = 0; i < STORM_ROUND / 4; i++) {
		const uint32_t target = rng_below(&worker->rng, NUM_VCPUS), sgi = rng_below(&worker->rng, NUM_SGIS);

		note_signals(w->context, 1u << target, sgi, ISPENDR_DEVICE);
		redist_write(&w->cpus[target], GICR_ISPENDR0, 1u << sgi);
		pause_randomly(&worker->rng, 300);
	}
}

static void storm_change(struct worker *worker)
{
	for (unsigned i = 0; i < STORM_ROUND / 4; i++) {
		struct cpu *cpu = &worker->world->cpus[rng_below(&worker->rng, NUM_VCPUS)];
		const uint32_t sgi = rng_below(&worker->rng, NUM_SGIS);

		if (rng_one_in(&worker->rng, 2)) {
			redist_write(cpu, GICR_IPRIORITYR + sgi / 4 * 4, (uint32_t)rng_next(&worker->rng) & 0x78787878);
		} else {
			redist_write(cpu, GICR_ICENABLER0, 1u << sgi);
			pause_randomly(&worker->rng, 200);
			redist_write(cpu, GICR_ISENABLER0, 1u << sgi);
		}
		pause_randomly(&worker->rng, 300);
	}
}

static void storm_check(struct world *w)
{
	struct storm *s = w->context;

	world_settle(w);
	for (uint32_t i = 0; i < NUM_VCPUS; i++) {
		if (s->quota[i])
			run_fail(w->run, "vCPU %u blocked with %" PRIu64 " SGIs to send", i, s->quota[i]);
		for (uint32_t sgi = 0; sgi < NUM_SGIS; sgi++)
			ledger_check(&s->ledgers[i][sgi], w->run, sgi);
		if (redist_read(&w->cpus[i], GICR_ISPENDR0) || redist_read(&w->cpus[i], GICR_ISACTIVER0))
			run_fail(w->run, "at rest vCPU %u has pending or active SGIs", i);
	}
}

void run_sgi_storm(struct run *run)
{
	static const struct world_hooks hooks = {
		.acknowledged = storm_acknowledged,
		.ending = storm_ending,
		.idle = storm_send,
	};
	struct storm *s = calloc(1, sizeof(*s));
	struct world *w;

	if (!s)
		abort();
	w = world_open(&(struct world_config){ .run = run,
					       .hooks = &hooks,
					       .context = s,
					       .num_vcpus = NUM_VCPUS,
					       .nest_one_in = 4,
					       .spin = 2000,
					       .mixed_eoimode = true });
	for (uint32_t i = 0; i < NUM_VCPUS; i++) {
		for (uint32_t sgi = 0; sgi < NUM_SGIS; sgi++)
			private_set_up(&w->cpus[i], sgi, true, group_of(sgi), 8 * (sgi % 4));
	}
	world_settle(w);
	for (uint64_t done = 0; done < run->iterations && !run_has_failed(run); done += STORM_ROUND) {
		/* All sleep: their quotas may be written. The lock of the wake-up orders this before their reading it. */
		for (uint32_t i = 0; i < NUM_VCPUS; i++)
			s->quota[i] = STORM_ROUND / (i + 1);
		world_nudge(w);
		world_spawn(w, storm_ispendr, 0);
		if (done / STORM_ROUND % 4)
			world_spawn(w, storm_change, 0);
		world_join(w);
		storm_check(w);
	}
	world_close(w);
	free(s);
}

/* ---- sgi_ring: each SGI is a token that is handed on until it has made all its hops ------------- */

#define NUM_TOKENS 6u

struct ring {
	struct {
		_Alignas(64) uint64_t hops; /* plain: who has the token may touch it */
	} tokens[NUM_TOKENS];
	uint64_t wanted;
};

static void ring_acknowledged(struct cpu *cpu, uint32_t intid)
{
	struct ring *s = cpu->world->context;
	const uint32_t target = rng_below(&cpu->rng, NUM_VCPUS);

	if (intid >= NUM_TOKENS) {
		run_fail(cpu->world->run, "vCPU %u acknowledged %u", cpu->index, intid);
		return;
	}
	if (++s->tokens[intid].hops < s->wanted)
		icc_write(cpu, VGIC_ICC_SGI1R_EL1, UINT64_C(1) << target | (uint64_t)intid << ICC_SGIR_INTID_SHIFT);
}

void run_sgi_ring(struct run *run)
{
	static const struct world_hooks hooks = { .acknowledged = ring_acknowledged };
	struct ring *s = aligned_alloc(64, sizeof(*s));
	struct world *w;

	if (!s)
		abort();
	*s = (struct ring){ .wanted = run->iterations / NUM_TOKENS + 1 };
	w = world_open(&(struct world_config){
		.run = run, .hooks = &hooks, .context = s, .num_vcpus = NUM_VCPUS, .nest_one_in = 3, .spin = 2000 });
	for (uint32_t i = 0; i < NUM_VCPUS; i++) {
		for (uint32_t sgi = 0; sgi < NUM_TOKENS; sgi++)
			private_set_up(&w->cpus[i], sgi, true, sgi % 2, 8 * (sgi % 3));
	}
	for (uint32_t sgi = 0; sgi < NUM_TOKENS; sgi++)
		redist_write(&w->cpus[sgi % NUM_VCPUS], GICR_ISPENDR0, 1u << sgi);
	world_settle(w);
	for (uint32_t sgi = 0; sgi < NUM_TOKENS; sgi++) {
		if (s->tokens[sgi].hops != s->wanted)
			run_fail(run, "token %u made %" PRIu64 " of %" PRIu64 " hops", sgi, s->tokens[sgi].hops,
				 s->wanted);
	}
	world_close(w);
	free(s);
}
