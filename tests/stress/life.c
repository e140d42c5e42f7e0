/* SPDX-License-Identifier: MIT */
/*
 * life.c - everything that may be called at any time is called at the same time:
 * look-ups, statistics, power, registers, reset; and a guest that writes nonsense.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "reconfigure.h"
#include "world.h"

#include "vgic_internal.h"

#define NUM_VCPUS   4u
#define NUM_IRQS    64u /* SPIs in use */
#define NUM_SOURCES 2u

/* The handler clears the cause: whoever drives the line lets go of it. */
static void lower_all_sources(struct cpu *cpu, uint32_t intid)
{
	struct world *w = cpu->world;

	for (unsigned source = 0; source < NUM_SOURCES; source++) {
		if (intid >= STRESS_FIRST_SPI)
			spi_set_line(w, intid, source, false);
		else if (intid >= NUM_SGIS)
			ppi_set_line(cpu, intid, source, false);
	}
	if (intid >= STRESS_FIRST_SPI)
		dist_write(w, GICD_CLRSPI_NSR, intid);
}

static void signal_something(struct worker *worker)
{
	struct world *w = worker->world;
	struct cpu *cpu = &w->cpus[rng_below(&worker->rng, NUM_VCPUS)];
	const uint32_t spi = STRESS_FIRST_SPI + rng_below(&worker->rng, NUM_IRQS);

	switch (rng_below(&worker->rng, 8)) {
	case 0:
		redist_write(cpu, GICR_ISPENDR0, 1u << rng_below(&worker->rng, NUM_SGIS));
		break;
	case 1:
		ppi_set_line(cpu, NUM_SGIS + rng_below(&worker->rng, 16), rng_below(&worker->rng, NUM_SOURCES),
			     rng_below(&worker->rng, 2));
		break;
	case 2:
	case 3:
		spi_set_line(w, spi, rng_below(&worker->rng, NUM_SOURCES), rng_below(&worker->rng, 2));
		break;
	case 4:
		dist_write(w, rng_one_in(&worker->rng, 2) ? GICD_SETSPI_NSR : GICD_CLRSPI_NSR, spi);
		break;
	default:
		spi_pulse(w, spi);
		break;
	}
}

/* ---- life_cycle -------------------------------------------------------------------------------------- */

#define CALLS_PER_LIFE 2000

static void life_device(struct worker *worker)
{
	for (unsigned i = 0; i < CALLS_PER_LIFE; i++)
		signal_something(worker);
}

static void life_power(struct worker *worker)
{
	for (unsigned i = 0; i < CALLS_PER_LIFE / 10; i++) {
		struct cpu *cpu = &worker->world->cpus[rng_below(&worker->rng, NUM_VCPUS)];

		vgic_vcpu_set_online(cpu->vcpu, false);
		pause_randomly(&worker->rng, 1000);
		vgic_vcpu_set_online(cpu->vcpu, true);
	}
}

static void life_look_up(struct worker *worker)
{
	struct world *w = worker->world;

	for (unsigned i = 0; i < CALLS_PER_LIFE; i++) {
		struct cpu *cpu = &w->cpus[rng_below(&worker->rng, NUM_VCPUS)];
		const uint64_t affinity = vgic_vcpu_affinity(cpu->vcpu);

		if (vgic_vcpu_by_index(w->vgic, vgic_vcpu_index(cpu->vcpu)) != cpu->vcpu ||
		    vgic_vcpu_by_id(w->vgic, vgic_vcpu_id(cpu->vcpu)) != cpu->vcpu ||
		    vgic_vcpu_by_affinity(w->vgic, affinity) != cpu->vcpu || vgic_vcpu_user(cpu->vcpu) != cpu)
			run_fail(w->run, "a look-up of vCPU %u finds another one", cpu->index);
		if (vgic_vcpu_by_affinity(w->vgic, affinity | UINT64_C(0xff) << 32) != NULL)
			run_fail(w->run, "a look-up finds a vCPU that does not exist");
	}
}

/* Counters only grow. */
static void life_statistics(struct worker *worker)
{
	struct vgic_stats last = world_stats(worker->world);

	for (unsigned i = 0; i < CALLS_PER_LIFE; i++) {
		const struct vgic_stats now = world_stats(worker->world);

		if (now.acknowledges < last.acknowledges || now.spurious < last.spurious || now.kicks < last.kicks)
			run_fail(worker->world->run, "a counter went back");
		last = now;
	}
}

static void life_read(struct worker *worker)
{
	struct world *w = worker->world;

	for (unsigned i = 0; i < CALLS_PER_LIFE; i++) {
		uint64_t value;

		dist_read(w, rng_below(&worker->rng, 0xc00) & ~3u);
		redist_read(&w->cpus[rng_below(&worker->rng, NUM_VCPUS)],
			    0x10000 | (rng_below(&worker->rng, 0xd00) & ~3u));
		if (vgic_mmio_read(w->vgic, WORLD_REDIST_BASE + (rng_below(&worker->rng, 0x80000) & ~3u), 4, &value))
			run_fail(w->run, "a read of a redistributor by its address fails");
	}
}

static void life_set_up(struct world *w)
{
	world_open_switches(w);
	for (uint32_t n = 0; n < NUM_IRQS; n++)
		spi_set_up(w, STRESS_FIRST_SPI + n, n % 2, n / 2 % 2, 8 * (n % 4), &w->cpus[n % NUM_VCPUS]);
	for (uint32_t i = 0; i < NUM_VCPUS; i++) {
		for (uint32_t intid = 0; intid < NUM_PRIVATE; intid++)
			private_set_up(&w->cpus[i], intid, intid < NUM_SGIS || intid % 2, intid % 3 == 0,
				       8 * (intid % 4));
	}
}

static void check_reset(struct world *w)
{
	uint32_t intid;

	if (dist_read(w, GICD_CTLR) != (GICD_CTLR_ARE | GICD_CTLR_DS))
		run_fail(w->run, "after a reset GICD_CTLR is 0x%" PRIx64, dist_read(w, GICD_CTLR));
	for (uint32_t n = 1; n <= NUM_IRQS / 32; n++) {
		if (dist_read(w, GICD_ISENABLER + 4 * n) || dist_read(w, GICD_ISACTIVER + 4 * n))
			run_fail(w->run, "after a reset an SPI is enabled or active");
	}
	if (vgic_check_at_rest(w->vgic, &intid))
		run_fail(w->run, "after a reset %u breaks the invariant", intid);
}

/* While no vCPU runs, everything else may go on during a reset. */
static void reset_beside_everything(struct world *w)
{
	world_stop_runners(w);
	vgic_enter_guest(w->cpus[0].vcpu);
	if (vgic_reset(w->vgic) != -EBUSY)
		run_fail(w->run, "a reset was made while a vCPU is in its guest");
	vgic_exit_guest(w->cpus[0].vcpu);
	world_spawn(w, life_device, 0);
	world_spawn(w, life_power, 0);
	world_spawn(w, life_look_up, 0);
	world_spawn(w, life_statistics, 0);
	world_spawn(w, life_read, 0);
	for (int i = 0; i < 5; i++) {
		if (vgic_reset(w->vgic) != 0)
			run_fail(w->run, "a reset was refused while no vCPU is in its guest");
		nap();
	}
	world_join(w);
	check_reset(w);
	life_set_up(w);
	world_start_runners(w);
}

void run_life_cycle(struct run *run)
{
	static const struct world_hooks hooks = { .acknowledged = lower_all_sources };

	for (uint64_t i = 0; i < run->iterations && !run_has_failed(run); i++) {
		struct world *w = world_open(&(struct world_config){ .run = run,
								     .hooks = &hooks,
								     .num_vcpus = NUM_VCPUS,
								     .nest_one_in = 4,
								     .spin = 2000,
								     .mixed_eoimode = true });

		world_settle(w);
		world_stop_runners(w);
		life_set_up(w);
		world_start_runners(w);
		for (unsigned phase = 0; phase < 2; phase++) {
			world_spawn(w, life_device, 0);
			world_spawn(w, life_device, 1);
			world_spawn(w, life_power, 0);
			world_spawn(w, life_look_up, 0);
			world_spawn(w, life_statistics, 0);
			world_spawn(w, life_read, 0);
			world_join(w);
			world_settle(w);
			if (phase == 0)
				reset_beside_everything(w);
		}
		world_close(w);
	}
}

/* ---- register_storm ------------------------------------------------------------------------------------ */

#define STORM_ROUND 1000

/* Any register of the frames, by address, at any width; most of what is written keeps interrupts flowing. */
static void storm_write(struct worker *worker)
{
	static const uint32_t banks[] = { GICD_ISENABLER, GICD_ISENABLER, GICD_ICENABLER, GICD_ISPENDR, GICD_ICPENDR,
					  GICD_ISACTIVER, GICD_ICACTIVER, GICD_ICACTIVER, GICD_IGROUPR, GICD_ICFGR };
	struct world *w = worker->world;
	struct rng *rng = &worker->rng;
	struct cpu *cpu = &w->cpus[rng_below(rng, NUM_VCPUS)];
	const uint32_t bank = banks[rng_below(rng, sizeof(banks) / sizeof(banks[0]))];
	const uint32_t intid = STRESS_FIRST_SPI + rng_below(rng, NUM_IRQS);
	const uint32_t value = (uint32_t)rng_next(rng);
	const unsigned width = 1u << rng_below(rng, 4);
	uint64_t address;

	switch (rng_below(rng, 8)) {
	case 0:
	case 1:
		dist_write(w, bank + intid / 32 * 4, value);
		break;
	case 2:
	case 3:
		redist_write(cpu, GICR_SGI_BASE + bank, value);
		break;
	case 4:
		change_spi(worker, (enum change)rng_below(rng, NUM_CHANGES), intid);
		break;
	case 5:
		redist_write(cpu, rng_one_in(rng, 2) ? GICR_WAKER : GICR_CTLR, value);
		break;
	default:
		address = (rng_one_in(rng, 2) ? WORLD_DIST_BASE + rng_below(rng, VGIC_DIST_FRAME_SIZE) :
						WORLD_REDIST_BASE + rng_below(rng, NUM_VCPUS * VGIC_REDIST_FRAME_SIZE));
		vgic_mmio_write(w->vgic, address & ~(uint64_t)(width - 1), width, rng_next(rng));
		break;
	}
}

static void storm_register_writer(struct worker *worker)
{
	for (unsigned i = 0; i < STORM_ROUND / 2; i++) {
		storm_write(worker);
		if (rng_one_in(&worker->rng, 16))
			dist_write(worker->world, GICD_CTLR, GICD_CTLR_ENABLE_GRP0 | GICD_CTLR_ENABLE_GRP1);
	}
}

static void storm_device(struct worker *worker)
{
	for (unsigned i = 0; i < STORM_ROUND / 2; i++)
		signal_something(worker);
}

/* The guest is no better on its CPU interface. EOImode stays: it says how the driver ends interrupts. */
static bool storm_idle(struct cpu *cpu)
{
	static const uint32_t registers[] = { VGIC_ICC_PMR_EL1, VGIC_ICC_BPR0_EL1, VGIC_ICC_BPR1_EL1,
					      VGIC_ICC_IGRPEN0_EL1, VGIC_ICC_IGRPEN1_EL1 };

	if (rng_one_in(&cpu->rng, 2))
		icc_write(cpu, registers[rng_below(&cpu->rng, 5)], rng_next(&cpu->rng));
	if (rng_one_in(&cpu->rng, 4))
		icc_write(cpu, VGIC_ICC_CTLR_EL1,
			  rng_below(&cpu->rng, 2) * ICC_CTLR_CBPR | (cpu->split ? ICC_CTLR_EOIMODE : 0));
	if (rng_one_in(&cpu->rng, 2)) {
		icc_write(cpu, VGIC_ICC_PMR_EL1, 0xff);
		icc_write(cpu, VGIC_ICC_IGRPEN0_EL1, 1);
		icc_write(cpu, VGIC_ICC_IGRPEN1_EL1, 1);
	}
	if (rng_one_in(&cpu->rng, 4))
		icc_write(cpu, VGIC_ICC_SGI1R_EL1,
			  rng_below(&cpu->rng, 16) | (uint64_t)rng_below(&cpu->rng, 16) << ICC_SGIR_INTID_SHIFT);
	return false;
}

void run_register_storm(struct run *run)
{
	static const struct world_hooks hooks = { .acknowledged = lower_all_sources, .idle = storm_idle };
	struct world *w = world_open(&(struct world_config){ .run = run,
							     .hooks = &hooks,
							     .num_vcpus = NUM_VCPUS,
							     .nest_one_in = 4,
							     .spin = 2000,
							     .mixed_eoimode = true,
							     .any_guest_error = true });

	world_settle(w);
	world_stop_runners(w);
	for (uint64_t done = 0; done < run->iterations && !run_has_failed(run); done += STORM_ROUND) {
		if (done / STORM_ROUND % 8 == 0)
			life_set_up(w);
		world_start_runners(w);
		world_spawn(w, storm_register_writer, 0);
		world_spawn(w, storm_register_writer, 1);
		world_spawn(w, storm_device, 0);
		world_spawn(w, storm_device, 1);
		world_join(w);
		world_settle(w);
		world_stop_runners(w);
	}
	world_start_runners(w);
	world_close(w);
}
