/* SPDX-License-Identifier: MIT */
/*
 * wake.c - a vCPU that blocks whenever it can, and one device. Every way in which
 * an interrupt can become deliverable has to wake the vCPU by itself: nothing else
 * goes on that could make up for a missing kick.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "world.h"

/* ---- block_and_wake -------------------------------------------------------------------------------- */

#define NUM_VCPUS 2u
#define PPI_EDGE  20u
#define PPI_LEVEL 21u
#define SGI       5u

#define SPI_EDGE   40u
#define SPI_LEVEL  41u
#define SPI_GLITCH 42u /* its line is high for a moment only: does not count */

struct waking {
	uint64_t payload; /* plain: the interrupt must order it */
	_Alignas(64) _Atomic uint64_t acknowledges;
};

/* Each ends with the call that makes one interrupt deliverable to the device's vCPU. */
typedef void (*way_to_wake)(struct worker *device, struct cpu *cpu);

static void wake_by_pulse(struct worker *device, struct cpu *cpu)
{
	(void)cpu;
	spi_pulse(device->world, SPI_EDGE);
}

static void wake_by_rise(struct worker *device, struct cpu *cpu)
{
	(void)cpu;
	spi_set_line(device->world, SPI_EDGE, 7, true);
	spi_set_line(device->world, SPI_EDGE, 7, false);
}

static void wake_by_level(struct worker *device, struct cpu *cpu)
{
	(void)cpu;
	spi_set_line(device->world, SPI_LEVEL, 3, true);
}

static void wake_by_message(struct worker *device, struct cpu *cpu)
{
	(void)cpu;
	dist_write(device->world, GICD_SETSPI_NSR, SPI_EDGE);
}

static void wake_by_ppi_edge(struct worker *device, struct cpu *cpu)
{
	(void)device;
	ppi_set_line(cpu, PPI_EDGE, 0, true);
	ppi_set_line(cpu, PPI_EDGE, 0, false);
}

static void wake_by_ppi_level(struct worker *device, struct cpu *cpu)
{
	(void)device;
	ppi_set_line(cpu, PPI_LEVEL, 0, true);
}

static void wake_by_ispendr(struct worker *device, struct cpu *cpu)
{
	(void)device;
	redist_write(cpu, GICR_ISPENDR0, 1u << SGI);
}

static void wake_by_enable(struct worker *device, struct cpu *cpu)
{
	(void)cpu;
	spi_write_bit(device->world, GICD_ICENABLER, SPI_EDGE);
	spi_pulse(device->world, SPI_EDGE);
	spi_write_bit(device->world, GICD_ISENABLER, SPI_EDGE);
}

static void wake_by_route(struct worker *device, struct cpu *cpu)
{
	spi_route_nowhere(device->world, SPI_EDGE);
	spi_pulse(device->world, SPI_EDGE);
	spi_route(device->world, SPI_EDGE, cpu);
}

/* The other vCPU may take it. */
static void wake_by_route_to_any(struct worker *device, struct cpu *cpu)
{
	spi_route_nowhere(device->world, SPI_EDGE);
	spi_pulse(device->world, SPI_EDGE);
	spi_route_to_any(device->world, SPI_EDGE);
	(void)cpu;
}

/* PMR=0xff does not let the lowest priority through. */
static void wake_by_priority(struct worker *device, struct cpu *cpu)
{
	(void)cpu;
	spi_set_priority(device->world, SPI_EDGE, 0xf8);
	spi_pulse(device->world, SPI_EDGE);
	spi_set_priority(device->world, SPI_EDGE, 0x80);
}

/* The vCPUs do not take Group 0. */
static void wake_by_group(struct worker *device, struct cpu *cpu)
{
	(void)cpu;
	spi_set_group(device->world, SPI_EDGE, 0);
	spi_pulse(device->world, SPI_EDGE);
	spi_set_group(device->world, SPI_EDGE, 1);
}

static void wake_by_group_enable(struct worker *device, struct cpu *cpu)
{
	(void)cpu;
	dist_write(device->world, GICD_CTLR, GICD_CTLR_ENABLE_GRP0);
	spi_pulse(device->world, SPI_EDGE);
	dist_write(device->world, GICD_CTLR, GICD_CTLR_ENABLE_GRP0 | GICD_CTLR_ENABLE_GRP1);
}

static void wake_by_deactivation(struct worker *device, struct cpu *cpu)
{
	(void)cpu;
	spi_write_bit(device->world, GICD_ISACTIVER, SPI_EDGE);
	spi_pulse(device->world, SPI_EDGE);
	spi_write_bit(device->world, GICD_ICACTIVER, SPI_EDGE);
}

static void wake_by_power(struct worker *device, struct cpu *cpu)
{
	vgic_vcpu_set_online(cpu->vcpu, false);
	spi_pulse(device->world, SPI_EDGE);
	vgic_vcpu_set_online(cpu->vcpu, true);
}

static void glitch(struct worker *device)
{
	spi_set_line(device->world, SPI_GLITCH, 0, true);
	spi_set_line(device->world, SPI_GLITCH, 0, false);
	pause_finely(&device->rng, 300);
}

/*
 * Kicks for nothing first: the vCPU evaluates, finds no interrupt, and answers that kick while the next interrupt comes,
 * for which nobody may have been kicked anew.
 */
static void wake_by_second_kick(struct worker *device, struct cpu *cpu)
{
	(void)cpu;
	for (uint32_t n = rng_below(&device->rng, 8); n > 0; n--)
		glitch(device);
	spi_pulse(device->world, SPI_EDGE);
}

/* The same, with the vCPU's thread stopped anywhere on its way to sleep. */
static void wake_a_stopped_thread(struct worker *device, struct cpu *cpu)
{
	const bool held = hold_request(cpu->runner->thread);

	while (held && !hold_is_entered())
		glitch(device);
	spi_pulse(device->world, SPI_EDGE);
	if (held)
		release_thread();
}

static const way_to_wake ways[] = {
	wake_by_pulse,       wake_by_rise,        wake_by_level,         wake_by_message,      wake_by_ppi_edge,
	wake_by_ppi_level,   wake_by_ispendr,     wake_by_enable,        wake_by_route,        wake_by_route_to_any,
	wake_by_priority,    wake_by_group,       wake_by_group_enable,  wake_by_deactivation, wake_by_power,
	wake_by_second_kick, wake_by_second_kick, wake_a_stopped_thread,
};

#define NUM_WAYS (sizeof(ways) / sizeof(ways[0]))

static void waking_acknowledged(struct cpu *cpu, uint32_t intid)
{
	struct world *w = cpu->world;
	struct waking *s = w->context;
	const uint64_t acknowledges = load_relaxed(&s->acknowledges) + 1;

	if (intid == SPI_GLITCH)
		return;
	if (s->payload != acknowledges)
		run_fail(w->run, "vCPU %u, INTID %u: acknowledge %" PRIu64 " sees payload %" PRIu64, cpu->index, intid,
			 acknowledges, s->payload);
	if (intid == SPI_LEVEL)
		spi_set_line(w, intid, 3, false);
	else if (intid == PPI_LEVEL)
		ppi_set_line(cpu, intid, 0, false);
}

/* Now the device may go on: not before, because it may make the interrupt active and inactive itself. */
static void waking_ended(struct cpu *cpu, uint32_t intid)
{
	struct waking *s = cpu->world->context;

	if (intid != SPI_GLITCH)
		store_release(&s->acknowledges, load_relaxed(&s->acknowledges) + 1);
}

static bool waking_idle(struct cpu *cpu)
{
	icc_write(cpu, VGIC_ICC_IGRPEN0_EL1, 0);
	if (rng_one_in(&cpu->rng, 4)) {
		icc_write(cpu, VGIC_ICC_PMR_EL1, 0);
		vgic_prepare_wait(cpu->vcpu);
		vgic_finish_wait(cpu->vcpu);
		icc_write(cpu, VGIC_ICC_PMR_EL1, 0xff);
	}
	return false;
}

static void waking_device(struct worker *worker)
{
	struct world *w = worker->world;
	struct waking *s = w->context;

	for (uint64_t i = 1; i <= w->run->iterations; i++) {
		const uint32_t way = rng_below(&worker->rng, NUM_WAYS);

		pause_randomly(&worker->rng, rng_one_in(&worker->rng, 4) ? 3000 : 100);
		s->payload = i;
		ways[way](worker, &w->cpus[0]);
		if (!world_await(w, &s->acknowledges, i)) {
			run_fail(w->run, "interrupt %" PRIu64 ", made deliverable in way %u, woke nobody", i, way);
			return;
		}
	}
}

void run_block_and_wake(struct run *run)
{
	static const struct world_hooks hooks = {
		.acknowledged = waking_acknowledged,
		.ended = waking_ended,
		.idle = waking_idle,
	};
	struct waking s = { 0 };
	struct world *w = world_open(&(struct world_config){
		.run = run, .hooks = &hooks, .context = &s, .num_vcpus = NUM_VCPUS, .spin = 400 });
	struct cpu *cpu = &w->cpus[0];

	spi_set_up(w, SPI_EDGE, true, 1, 0x80, cpu);
	spi_set_up(w, SPI_LEVEL, false, 1, 0x80, cpu);
	spi_set_up(w, SPI_GLITCH, false, 1, 0x80, cpu);
	private_set_up(cpu, PPI_EDGE, true, 1, 0x80);
	private_set_up(cpu, PPI_LEVEL, false, 1, 0x80);
	private_set_up(cpu, SGI, true, 1, 0x80);
	world_spawn(w, waking_device, 0);
	world_join(w);
	if (!run_has_failed(run) && load_relaxed(&s.acknowledges) != run->iterations)
		run_fail(run, "%" PRIu64 " interrupts, %" PRIu64 " acknowledges", run->iterations,
			 load_relaxed(&s.acknowledges));
	world_close(w);
}

/*
 * ---- hidden_comes_to_light ----
 *
 * A Group 0 interrupt is active at priority 0xa0. Another of Group 0 at 0xa8 cannot preempt it; one of Group 1 at 0xb0
 * could, because Group 1's binary point makes its group priority 0x80, but is hidden by the one at 0xa8, which is the
 * highest-priority pending interrupt. When that one goes away, the hidden one has to be signalled, though nothing has been
 * signalled anew. The vCPU meanwhile blocks in its handler.
 */

#define ACTIVE_IRQ 40u
#define HIDING_IRQ 41u
#define HIDDEN_IRQ 42u

#define ACTIVE_PRIORITY 0xa0u
#define HIDING_PRIORITY 0xa8u
#define HIDDEN_PRIORITY 0xb0u
#define LATER_PRIORITY  0xc0u

struct hidden {
	_Atomic uint64_t entered; /* acknowledges of ACTIVE_IRQ */
	_Atomic uint64_t seen;    /* acknowledges of HIDDEN_IRQ */
};

/* Each makes HIDING_IRQ go away, and puts it back where it was. */
enum way_to_go {
	GO_BY_ICENABLER,
	GO_BY_ICPENDR,
	GO_BY_ROUTE,
	GO_BY_PRIORITY,
	GO_BY_ACTIVE,
	GO_BY_GROUP_DISABLE,
	NUM_WAYS_TO_GO,
};

static void let_hiding_go(struct world *w, enum way_to_go way)
{
	switch (way) {
	case GO_BY_ICENABLER:
		spi_write_bit(w, GICD_ICENABLER, HIDING_IRQ);
		break;
	case GO_BY_ICPENDR:
		spi_write_bit(w, GICD_ICPENDR, HIDING_IRQ);
		break;
	case GO_BY_ROUTE:
		spi_route_nowhere(w, HIDING_IRQ);
		break;
	case GO_BY_PRIORITY:
		spi_set_priority(w, HIDING_IRQ, LATER_PRIORITY);
		break;
	case GO_BY_ACTIVE:
		spi_write_bit(w, GICD_ISACTIVER, HIDING_IRQ);
		break;
	case GO_BY_GROUP_DISABLE:
		dist_write(w, GICD_CTLR, GICD_CTLR_ENABLE_GRP1);
		break;
	case NUM_WAYS_TO_GO:
		abort();
	}
}

static void bring_hiding_back(struct world *w, enum way_to_go way)
{
	spi_write_bit(w, GICD_ICPENDR, HIDING_IRQ);
	if (way == GO_BY_ACTIVE)
		spi_write_bit(w, GICD_ICACTIVER, HIDING_IRQ);
	spi_set_priority(w, HIDING_IRQ, HIDING_PRIORITY);
	spi_route(w, HIDING_IRQ, &w->cpus[0]);
	spi_write_bit(w, GICD_ISENABLER, HIDING_IRQ);
	dist_write(w, GICD_CTLR, GICD_CTLR_ENABLE_GRP0 | GICD_CTLR_ENABLE_GRP1);
}

/* The handler of ACTIVE_IRQ waits for the hidden interrupt. */
static void wait_in_handler(struct cpu *cpu, uint64_t round)
{
	struct hidden *s = cpu->world->context;
	unsigned lines = 0;

	while (load_relaxed(&s->seen) < round && !load_acquire(&cpu->world->stop)) {
		if (!cpu_take_one(cpu, lines))
			lines = cpu_wait(cpu);
	}
}

static void hidden_acknowledged(struct cpu *cpu, uint32_t intid)
{
	struct hidden *s = cpu->world->context;

	if (intid == ACTIVE_IRQ) {
		const uint64_t round = load_relaxed(&s->entered) + 1;

		store_release(&s->entered, round);
		wait_in_handler(cpu, round);
	} else if (intid == HIDDEN_IRQ) {
		store_release(&s->seen, load_relaxed(&s->seen) + 1);
	}
}

static bool hidden_idle(struct cpu *cpu)
{
	icc_write(cpu, VGIC_ICC_BPR0_EL1, 2);
	icc_write(cpu, VGIC_ICC_BPR1_EL1, 6);
	return false;
}

static void hidden_device(struct worker *worker)
{
	struct world *w = worker->world;
	struct hidden *s = w->context;

	for (uint64_t round = 1; round <= w->run->iterations; round++) {
		const enum way_to_go way = (enum way_to_go)rng_below(&worker->rng, NUM_WAYS_TO_GO);

		spi_pulse(w, ACTIVE_IRQ);
		if (!world_await(w, &s->entered, round)) {
			run_fail(w->run, "round %" PRIu64 ": the vCPU did not wake", round);
			return;
		}
		spi_pulse(w, HIDING_IRQ);
		spi_pulse(w, HIDDEN_IRQ);
		pause_randomly(&worker->rng, 3000);
		if (load_relaxed(&s->seen) >= round)
			run_fail(w->run, "round %" PRIu64 ": the interrupt was not hidden", round);
		let_hiding_go(w, way);
		if (!world_await(w, &s->seen, round)) {
			run_fail(w->run, "round %" PRIu64 ": the hidden interrupt did not come to light in way %u",
				 round, (unsigned)way);
			return;
		}
		bring_hiding_back(w, way);
	}
}

void run_hidden_comes_to_light(struct run *run)
{
	static const struct world_hooks hooks = { .acknowledged = hidden_acknowledged, .idle = hidden_idle };
	struct hidden s = { 0 };
	struct world *w = world_open(
		&(struct world_config){ .run = run, .hooks = &hooks, .context = &s, .num_vcpus = 1, .spin = 1000 });

	world_settle(w); /* the binary points are set */
	spi_set_up(w, ACTIVE_IRQ, true, 0, ACTIVE_PRIORITY, &w->cpus[0]);
	spi_set_up(w, HIDING_IRQ, true, 0, HIDING_PRIORITY, &w->cpus[0]);
	spi_set_up(w, HIDDEN_IRQ, true, 1, HIDDEN_PRIORITY, &w->cpus[0]);
	world_spawn(w, hidden_device, 0);
	world_join(w);
	if (!run_has_failed(run) && load_relaxed(&s.seen) != run->iterations)
		run_fail(run, "%" PRIu64 " rounds, %" PRIu64 " acknowledges", run->iterations, load_relaxed(&s.seen));
	world_close(w);
}
