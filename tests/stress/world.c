/* SPDX-License-Identifier: MIT */
/*
 * world.c - controller, runners, workers, and rest.
 */
#include "world.h"

#include <inttypes.h>
#include <stdlib.h>

#include "vgic_internal.h"

#define ALL_PRIORITIES 0xffu

/* A worker that waits asks now and then whether there is still hope. */
#define STEPS_BEFORE_CHECK 256

static void check_call(struct world *w, const char *what, int err)
{
	if (err < 0)
		run_fail(w->run, "%s returned %d", what, err);
}

/* ---- Sleep and kick -------------------------------------------------------------------- */

static void wake_init(struct wake *wake)
{
	pthread_mutex_init(&wake->lock, NULL);
	pthread_cond_init(&wake->cond, NULL);
}

static void wake_destroy(struct wake *wake)
{
	pthread_cond_destroy(&wake->cond);
	pthread_mutex_destroy(&wake->lock);
}

static void wake_post(struct wake *wake)
{
	atomic_store(&wake->token, 1);
	if (!atomic_load(&wake->sleeping))
		return;
	pthread_mutex_lock(&wake->lock);
	pthread_cond_signal(&wake->cond);
	pthread_mutex_unlock(&wake->lock);
}

/*
 * A kick that came before vgic_prepare_wait() is answered by it, and may be forgotten: a host that remembers it for too
 * long would not notice that the controller relies on that.
 */
static void wake_forget(struct wake *wake)
{
	atomic_exchange(&wake->token, 0);
}

/* Sleep until a token comes, after a spin of up to @spin steps. */
static void wake_wait(struct wake *wake, struct rng *rng, uint32_t spin)
{
	if (spin) {
		for (uint32_t n = rng_below(rng, spin); n > 0 && !load_relaxed(&wake->token); n--)
			pause_step();
	}
	pthread_mutex_lock(&wake->lock);
	atomic_store(&wake->sleeping, 1);
	while (!atomic_exchange(&wake->token, 0))
		pthread_cond_wait(&wake->cond, &wake->lock);
	atomic_store(&wake->sleeping, 0);
	pthread_mutex_unlock(&wake->lock);
}

static void on_kick(void *opaque, struct vgic_vcpu *vcpu)
{
	struct world *w = opaque;
	struct cpu *cpu = vgic_vcpu_user(vcpu);

	atomic_fetch_add_explicit(&w->kicks, 1, memory_order_relaxed);
	if (cpu)
		wake_post(&cpu->runner->wake);
}

static void on_deactivated(void *opaque, struct vgic_vcpu *vcpu, uint32_t intid)
{
	struct world *w = opaque;

	if (w->hooks->deactivated)
		w->hooks->deactivated(w, vcpu ? vgic_vcpu_user(vcpu) : NULL, intid);
}

/* ---- A vCPU in its guest ----------------------------------------------------------------- */

/* Acknowledge in the group that the lines name. Returns false for a special INTID. */
static bool acknowledge(struct cpu *cpu, unsigned lines)
{
	const unsigned group = (lines & VGIC_LINE_FIQ) ? 0 : 1;
	const uint32_t intid = (uint32_t)icc_read(cpu, group ? VGIC_ICC_IAR1_EL1 : VGIC_ICC_IAR0_EL1);

	if (intid >= STRESS_FIRST_SPECIAL) {
		cpu->spurious++;
		return false;
	}
	if (cpu->depth == CPU_MAX_ACTIVE) {
		run_fail(cpu->world->run, "vCPU %u: more active interrupts than priorities", cpu->index);
		return false;
	}
	cpu->acknowledges++;
	cpu->active[cpu->depth++] = (struct active_irq){ .intid = intid, .group = group };
	if (cpu->world->hooks->acknowledged)
		cpu->world->hooks->acknowledged(cpu, intid);
	return true;
}

static void before_deactivation(struct cpu *cpu, uint32_t intid)
{
	if (cpu->world->hooks->ending)
		cpu->world->hooks->ending(cpu, intid);
}

/*
 * EOImode=1: SPIs are deactivated by whoever finds them in the mailbox, often another vCPU. Everyone who blocks has
 * emptied it before, so that nothing stays in it at rest.
 */
static void deactivate_later(struct cpu *cpu, uint32_t intid)
{
	uint32_t found;

	before_deactivation(cpu, intid);
	if (intid < STRESS_FIRST_SPI) {
		icc_write(cpu, VGIC_ICC_DIR_EL1, intid);
		return;
	}
	found = atomic_exchange_explicit(&cpu->world->mailbox, intid, memory_order_acq_rel);
	if (found)
		icc_write(cpu, VGIC_ICC_DIR_EL1, found);
}

static void empty_mailbox(struct cpu *cpu)
{
	uint32_t found;

	if (!cpu->split)
		return;
	found = atomic_exchange_explicit(&cpu->world->mailbox, 0, memory_order_acq_rel);
	if (found)
		icc_write(cpu, VGIC_ICC_DIR_EL1, found);
}

static void end_last(struct cpu *cpu)
{
	const struct active_irq a = cpu->active[--cpu->depth];
	const uint32_t eoir = a.group ? VGIC_ICC_EOIR1_EL1 : VGIC_ICC_EOIR0_EL1;

	if (cpu->split) {
		icc_write(cpu, eoir, a.intid);
		deactivate_later(cpu, a.intid);
	} else {
		before_deactivation(cpu, a.intid);
		icc_write(cpu, eoir, a.intid);
	}
	if (cpu->world->hooks->ended)
		cpu->world->hooks->ended(cpu, a.intid);
}

static bool nests(struct cpu *cpu)
{
	const uint32_t one_in = cpu->world->config.nest_one_in;

	return one_in && cpu->depth < CPU_MAX_ACTIVE && rng_one_in(&cpu->rng, one_in);
}

/* Take interrupts until none is signalled and none is active. Returns whether there was any. */
static bool run_guest(struct cpu *cpu)
{
	unsigned lines = vgic_enter_guest(cpu->vcpu);
	const bool worked = lines != 0;

	while (lines || cpu->depth) {
		const bool taken = lines && acknowledge(cpu, lines);

		if (cpu->depth && !(taken && nests(cpu)))
			end_last(cpu);
		/* Guests read IAR again until it is spurious, without taking an exception. */
		if (!taken || rng_one_in(&cpu->rng, 2))
			lines = vgic_poll_lines(cpu->vcpu);
	}
	vgic_exit_guest(cpu->vcpu);
	return worked;
}

/* ---- Runners ------------------------------------------------------------------------------- */

static bool let_idle(struct runner *r)
{
	bool stay_awake = false;

	for (unsigned i = 0; i < r->num_cpus; i++) {
		empty_mailbox(r->cpus[i]);
		if (r->world->hooks->idle)
			stay_awake |= r->world->hooks->idle(r->cpus[i]);
	}
	return stay_awake;
}

/* Block if none of the cpus has a line. Returns false if the runner has to end. */
static bool block(struct runner *r)
{
	unsigned lines = 0;
	bool go_on = true;

	wake_forget(&r->wake);
	for (unsigned i = 0; i < r->num_cpus; i++)
		lines |= vgic_prepare_wait(r->cpus[i]->vcpu);
	if (!lines && !atomic_exchange(&r->nudged, 0)) {
		go_on = !load_acquire(&r->world->stop);
		if (go_on) {
			r->sleeps++;
			wake_wait(&r->wake, &r->rng, r->world->config.spin);
		}
	}
	for (unsigned i = 0; i < r->num_cpus; i++)
		vgic_finish_wait(r->cpus[i]->vcpu);
	return go_on;
}

static void *runner_main(void *arg)
{
	struct runner *r = arg;
	const unsigned number = shaker_enter(&r->world->shaker);
	bool go_on = true;

	while (go_on) {
		for (unsigned i = 0; i < r->num_cpus; i++)
			run_guest(r->cpus[i]);
		if (!let_idle(r))
			go_on = block(r);
	}
	shaker_leave(&r->world->shaker, number);
	return NULL;
}

bool cpu_take_one(struct cpu *cpu, unsigned lines)
{
	if (!lines || !acknowledge(cpu, lines))
		return false;
	end_last(cpu);
	return true;
}

unsigned cpu_wait(struct cpu *cpu)
{
	unsigned lines;

	wake_forget(&cpu->runner->wake);
	lines = vgic_prepare_wait(cpu->vcpu);
	if (!lines && !load_acquire(&cpu->world->stop))
		wake_wait(&cpu->runner->wake, &cpu->rng, cpu->world->config.spin);
	vgic_finish_wait(cpu->vcpu);
	return vgic_enter_guest(cpu->vcpu);
}

void world_start_runners(struct world *w)
{
	store_release(&w->stop, false);
	for (unsigned i = 0; i < w->num_runners; i++) {
		if (pthread_create(&w->runners[i].thread, NULL, runner_main, &w->runners[i]) != 0)
			abort();
	}
}

void world_stop_runners(struct world *w)
{
	store_release(&w->stop, true);
	world_nudge(w);
	for (unsigned i = 0; i < w->num_runners; i++)
		pthread_join(w->runners[i].thread, NULL);
}

void world_nudge(struct world *w)
{
	for (unsigned i = 0; i < w->num_runners; i++) {
		atomic_store(&w->runners[i].nudged, 1);
		wake_post(&w->runners[i].wake);
	}
}

/* ---- Rest ------------------------------------------------------------------------------------ */

/* All locks are held at once: what is seen is true of one moment. */
static bool world_is_at_rest(struct world *w)
{
	bool at_rest;

	if (atomic_load(&w->busy))
		return false;
	for (unsigned i = 0; i < w->num_runners; i++)
		pthread_mutex_lock(&w->runners[i].wake.lock);
	at_rest = !atomic_load(&w->busy);
	for (unsigned i = 0; i < w->num_runners; i++) {
		const struct wake *wake = &w->runners[i].wake;

		at_rest &= atomic_load(&wake->sleeping) && !atomic_load(&wake->token);
	}
	for (unsigned i = w->num_runners; i > 0; i--)
		pthread_mutex_unlock(&w->runners[i - 1].wake.lock);
	return at_rest;
}

bool world_await(struct world *w, const _Atomic uint64_t *counter, uint64_t value)
{
	bool reached = false;

	atomic_fetch_sub(&w->busy, 1);
	for (unsigned n = 0;; n++) {
		reached = load_acquire(counter) >= value;
		if (reached)
			break;
		wait_step(n);
		if (n % STEPS_BEFORE_CHECK == STEPS_BEFORE_CHECK - 1 &&
		    (run_has_failed(w->run) || (world_is_at_rest(w) && load_acquire(counter) < value)))
			break;
	}
	atomic_fetch_add(&w->busy, 1);
	return reached;
}

static void check_no_line(struct cpu *cpu)
{
	const unsigned lines = vgic_poll_lines(cpu->vcpu);

	if (lines)
		run_fail(cpu->world->run,
			 "lost wake-up: vCPU %u sleeps, no kick is on its way, lines %u, HPPIR0 %" PRIu64
			 ", HPPIR1 %" PRIu64,
			 cpu->index, lines, icc_read(cpu, VGIC_ICC_HPPIR0_EL1), icc_read(cpu, VGIC_ICC_HPPIR1_EL1));
}

static void check_counters(struct world *w)
{
	const struct vgic_stats stats = world_stats(w);
	const uint64_t refused =
		stats.guest_errors[VGIC_GUEST_EOI_UNEXPECTED] + stats.guest_errors[VGIC_GUEST_DIR_UNEXPECTED];
	uint64_t acknowledges = 0, spurious = 0;

	for (uint32_t i = 0; i < w->num_cpus; i++) {
		acknowledges += w->cpus[i].acknowledges;
		spurious += w->cpus[i].spurious;
	}
	if (stats.acknowledges != acknowledges || stats.spurious != spurious)
		run_fail(w->run,
			 "the controller counts %" PRIu64 " acknowledges and %" PRIu64
			 " spurious ones, the guest %" PRIu64 " and %" PRIu64,
			 stats.acknowledges, stats.spurious, acknowledges, spurious);
	if (stats.kicks != load_relaxed(&w->kicks))
		run_fail(w->run, "the controller counts %" PRIu64 " kicks, the host %" PRIu64, stats.kicks,
			 load_relaxed(&w->kicks));
	if (refused && !w->config.any_guest_error)
		run_fail(w->run, "%" PRIu64 " EOIs or deactivations were refused", refused);
}

void world_settle(struct world *w)
{
	uint32_t intid = 0;
	unsigned broken;

	while (!world_is_at_rest(w))
		nap();
	broken = vgic_check_at_rest(w->vgic, &intid);
	if (broken)
		run_fail(w->run, "at rest %u interrupts are deliverable and cannot be reached, the first is %u", broken,
			 intid);
	/* The owners sleep: their calls may be made here. */
	for (uint32_t i = 0; i < w->num_cpus; i++)
		check_no_line(&w->cpus[i]);
	check_counters(w);
}

/* ---- Workers ------------------------------------------------------------------------------------ */

static void *worker_main(void *arg)
{
	struct worker *worker = arg;
	const unsigned number = shaker_enter(&worker->world->shaker);

	worker->main(worker);
	atomic_fetch_sub(&worker->world->busy, 1);
	shaker_leave(&worker->world->shaker, number);
	return NULL;
}

void world_spawn(struct world *w, void (*main)(struct worker *worker), unsigned number)
{
	struct worker *worker = &w->workers[w->num_workers++];

	if (w->num_workers > WORLD_MAX_WORKERS)
		abort();
	*worker = (struct worker){ .world = w, .main = main, .number = number };
	rng_init(&worker->rng, w->run->seed, 1000 + w->num_spawned++);
	atomic_fetch_add(&w->busy, 1);
	if (pthread_create(&worker->thread, NULL, worker_main, worker) != 0)
		abort();
}

void world_join(struct world *w)
{
	while (w->num_workers > 0)
		pthread_join(w->workers[--w->num_workers].thread, NULL);
}

/* ---- Life ------------------------------------------------------------------------------------------ */

static void make_controller(struct world *w)
{
	const struct world_config *c = &w->config;
	struct vgic_vcpu_config *vcpus = calloc(c->num_vcpus, sizeof(*vcpus));
	const struct vgic_redist_region region = { .base = WORLD_REDIST_BASE, .num_frames = c->num_vcpus };
	struct vgic_config config;

	if (!vcpus)
		abort();
	for (uint32_t i = 0; i < c->num_vcpus; i++) {
		vcpus[i].id = i;
		vcpus[i].affinity = (uint64_t)(i / 16) << 8 | i % 16;
	}
	for (uint32_t i = 0; i < w->num_cpus; i++)
		vcpus[w->cpus[i].index].user = &w->cpus[i];
	vgic_config_init(&config, VGIC_PROFILE_NATIVE);
	config.features |= c->features;
	if (c->num_spis)
		config.num_spis = c->num_spis;
	config.num_vcpus = c->num_vcpus;
	config.vcpus = vcpus;
	config.has_dist_base = true;
	config.dist_base = WORLD_DIST_BASE;
	config.num_redist_regions = 1;
	config.redist_regions = &region;
	config.ops.kick = on_kick;
	config.ops.deactivated = on_deactivated;
	config.opaque = w;
	if (vgic_create(&config, &w->vgic) != 0)
		abort();
	free(vcpus);
}

static void make_cpu(struct world *w, uint32_t number)
{
	struct cpu *cpu = &w->cpus[number];

	cpu->world = w;
	cpu->number = number;
	cpu->index = number * (w->config.num_vcpus / w->num_cpus);
	cpu->runner = &w->runners[number % w->num_runners];
	cpu->split = w->config.mixed_eoimode && number % 2;
	rng_init(&cpu->rng, w->run->seed, number);
	cpu->runner->cpus[cpu->runner->num_cpus++] = cpu;
}

void world_open_switches(struct world *w)
{
	dist_write(w, GICD_CTLR, GICD_CTLR_ENABLE_GRP0 | GICD_CTLR_ENABLE_GRP1);
	for (uint32_t i = 0; i < w->num_cpus; i++) {
		struct cpu *cpu = &w->cpus[i];

		redist_write(cpu, GICR_WAKER, 0);
		icc_write(cpu, VGIC_ICC_CTLR_EL1, cpu->split ? ICC_CTLR_EOIMODE : 0);
		icc_write(cpu, VGIC_ICC_PMR_EL1, ALL_PRIORITIES);
		icc_write(cpu, VGIC_ICC_IGRPEN0_EL1, 1);
		icc_write(cpu, VGIC_ICC_IGRPEN1_EL1, 1);
	}
}

struct world *world_open(const struct world_config *config)
{
	struct world *w = calloc(1, sizeof(*w));

	if (!w)
		abort();
	w->run = config->run;
	w->hooks = config->hooks;
	w->context = config->context;
	w->config = *config;
	w->num_cpus = config->num_cpus ? config->num_cpus : config->num_vcpus;
	w->num_runners = config->num_runners ? config->num_runners : w->num_cpus;
	if (w->num_cpus > WORLD_MAX_CPUS || w->num_runners > WORLD_MAX_RUNNERS)
		abort();
	for (unsigned i = 0; i < w->num_runners; i++) {
		w->runners[i].world = w;
		w->runners[i].number = i;
		wake_init(&w->runners[i].wake);
		rng_init(&w->runners[i].rng, w->run->seed, 500 + i);
	}
	for (uint32_t i = 0; i < w->num_cpus; i++)
		make_cpu(w, i);
	make_controller(w);
	for (uint32_t i = 0; i < w->num_cpus; i++)
		w->cpus[i].vcpu = vgic_vcpu_by_index(w->vgic, w->cpus[i].index);
	world_open_switches(w);
	shaker_start(&w->shaker, w->run->seed, !config->no_shaker);
	world_start_runners(w);
	return w;
}

void world_close(struct world *w)
{
	world_settle(w);
	world_stop_runners(w);
	shaker_stop(&w->shaker);
	vgic_destroy(w->vgic);
	for (unsigned i = 0; i < w->num_runners; i++)
		wake_destroy(&w->runners[i].wake);
	free(w);
}

struct vgic_stats world_stats(struct world *w)
{
	struct vgic_stats stats = { .size = sizeof(stats) };

	check_call(w, "vgic_get_stats", vgic_get_stats(w->vgic, &stats));
	return stats;
}

/* ---- Registers and lines --------------------------------------------------------------------------- */

uint64_t dist_read(struct world *w, uint32_t offset)
{
	uint64_t value = 0;

	check_call(w, "vgic_dist_read", vgic_dist_read(w->vgic, offset, 4, &value));
	return value;
}

void dist_write(struct world *w, uint32_t offset, uint32_t value)
{
	check_call(w, "vgic_dist_write", vgic_dist_write(w->vgic, offset, 4, value));
}

uint64_t redist_read(struct cpu *cpu, uint32_t offset)
{
	uint64_t value = 0;

	check_call(cpu->world, "vgic_redist_read", vgic_redist_read(cpu->vcpu, offset, 4, &value));
	return value;
}

void redist_write(struct cpu *cpu, uint32_t offset, uint32_t value)
{
	check_call(cpu->world, "vgic_redist_write", vgic_redist_write(cpu->vcpu, offset, 4, value));
}

uint64_t icc_read(struct cpu *cpu, uint32_t reg)
{
	uint64_t value = 0;

	check_call(cpu->world, "vgic_icc_read", vgic_icc_read(cpu->vcpu, reg, &value));
	return value;
}

void icc_write(struct cpu *cpu, uint32_t reg, uint64_t value)
{
	check_call(cpu->world, "vgic_icc_write", vgic_icc_write(cpu->vcpu, reg, value));
}

void spi_write_bit(struct world *w, uint32_t bank, uint32_t intid)
{
	dist_write(w, bank + intid / 32 * 4, 1u << (intid % 32));
}

bool spi_read_bit(struct world *w, uint32_t bank, uint32_t intid)
{
	return dist_read(w, bank + intid / 32 * 4) >> (intid % 32) & 1;
}

void spi_set_priority(struct world *w, uint32_t intid, unsigned priority)
{
	check_call(w, "vgic_dist_write", vgic_dist_write(w->vgic, GICD_IPRIORITYR + intid, 1, priority));
}

void spi_set_group(struct world *w, uint32_t intid, unsigned group)
{
	const uint32_t offset = GICD_IGROUPR + intid / 32 * 4, bit = 1u << (intid % 32);
	const uint32_t old = (uint32_t)dist_read(w, offset);

	dist_write(w, offset, group ? old | bit : old & ~bit);
}

static void write_irouter(struct world *w, uint32_t intid, uint64_t value)
{
	check_call(w, "vgic_dist_write", vgic_dist_write(w->vgic, GICD_IROUTER + 8 * intid, 8, value));
}

void spi_route(struct world *w, uint32_t intid, const struct cpu *cpu)
{
	write_irouter(w, intid, vgic_vcpu_affinity(cpu->vcpu));
}

void spi_route_to_any(struct world *w, uint32_t intid)
{
	write_irouter(w, intid, GICD_IROUTER_IRM);
}

void spi_route_nowhere(struct world *w, uint32_t intid)
{
	write_irouter(w, intid, GICD_IROUTER_AFFINITY);
}

void spi_set_line(struct world *w, uint32_t intid, unsigned source, bool level)
{
	check_call(w, "vgic_set_spi", vgic_set_spi(w->vgic, intid, source, level));
}

void spi_pulse(struct world *w, uint32_t intid)
{
	check_call(w, "vgic_pulse_spi", vgic_pulse_spi(w->vgic, intid));
}

void ppi_set_line(struct cpu *cpu, uint32_t intid, unsigned source, bool level)
{
	check_call(cpu->world, "vgic_set_ppi", vgic_set_ppi(cpu->vcpu, intid, source, level));
}

void spi_set_up(struct world *w, uint32_t intid, bool edge, unsigned group, unsigned priority, const struct cpu *cpu)
{
	const uint32_t icfgr = GICD_ICFGR + intid / 16 * 4, bit = 2u << (2 * (intid % 16));
	const uint32_t old = (uint32_t)dist_read(w, icfgr);

	dist_write(w, icfgr, edge ? old | bit : old & ~bit);
	spi_set_group(w, intid, group);
	spi_set_priority(w, intid, priority);
	spi_route(w, intid, cpu);
	spi_write_bit(w, GICD_ISENABLER, intid);
}

void private_set_up(struct cpu *cpu, uint32_t intid, bool edge, unsigned group, unsigned priority)
{
	const uint32_t icfgr = GICR_ICFGR + intid / 16 * 4, bit = 2u << (2 * (intid % 16));
	const uint32_t old = (uint32_t)redist_read(cpu, icfgr);
	const uint32_t groups = (uint32_t)redist_read(cpu, GICR_IGROUPR0);

	redist_write(cpu, icfgr, edge ? old | bit : old & ~bit);
	redist_write(cpu, GICR_IGROUPR0, group ? groups | 1u << intid : groups & ~(1u << intid));
	check_call(cpu->world, "vgic_redist_write", vgic_redist_write(cpu->vcpu, GICR_IPRIORITYR + intid, 1, priority));
	redist_write(cpu, GICR_ISENABLER0, 1u << intid);
}
