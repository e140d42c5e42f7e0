/* SPDX-License-Identifier: MIT */
/*
 * its_world.c - the controller, its threads and the guest's memory: see its_world.h.
 */
#include "its_world.h"

#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "gic_regs.h"
#include "vgic_internal.h"

#define RAM_BASE UINT64_C(0x40000000)
#define RAM_SIZE UINT64_C(0x200000)

#define PROPERTY_TABLE      (RAM_BASE + 0x10000)
#define PENDING_TABLE(v)    (RAM_BASE + 0x20000 + 0x10000ull * (v))
#define QUEUE(i)            (RAM_BASE + 0x60000 + 0x10000ull * (i))
#define DEVICE_TABLE(i)     (RAM_BASE + 0x80000 + 0x10000ull * (i))
#define COLLECTION_TABLE(i) (RAM_BASE + 0xc0000 + 0x10000ull * (i))
#define ITT(n)              (RAM_BASE + 0x100000 + 0x1000ull * (n))

#define LPI_ID_BITS      14u
#define MAX_PRINTED      10u
#define VALID            (UINT64_C(1) << 63)
#define DEFAULT_PROPERTY 0xa1u

/* ---- Random numbers, failures --------------------------------------------------------------- */

uint64_t rng_next(struct rng *rng)
{
	rng->state ^= rng->state >> 12;
	rng->state ^= rng->state << 25;
	rng->state ^= rng->state >> 27;
	return rng->state * UINT64_C(0x2545f4914f6cdd1d);
}

uint32_t rng_below(struct rng *rng, uint32_t limit)
{
	return (uint32_t)((rng_next(rng) >> 32) * limit >> 32);
}

static void rng_init(struct rng *rng, uint64_t seed, uint64_t stream)
{
	rng->state = ((seed + 1) * UINT64_C(0x9e3779b97f4a7c15) ^ (stream + 1) * UINT64_C(0xbf58476d1ce4e5b9)) | 1;
}

void world_pause(struct rng *rng, uint32_t limit)
{
	for (uint32_t n = rng_below(rng, limit); n > 0; n--)
		atomic_signal_fence(memory_order_seq_cst);
}

/* ---- Guest memory: bytes that anyone may touch at any time -------------------------------------- */

static bool ram_has(uint64_t address, size_t size)
{
	return address >= RAM_BASE && address - RAM_BASE <= RAM_SIZE - size;
}

static int on_guest_read(void *opaque, uint64_t address, void *buffer, size_t size)
{
	struct world *w = opaque;

	if (!ram_has(address, size))
		return -EFAULT;
	for (size_t i = 0; i < size; i++)
		((uint8_t *)buffer)[i] = load_relaxed(&w->ram[address - RAM_BASE + i]);
	return 0;
}

static int on_guest_write(void *opaque, uint64_t address, const void *buffer, size_t size)
{
	struct world *w = opaque;

	if (!ram_has(address, size))
		return -EFAULT;
	for (size_t i = 0; i < size; i++)
		store_relaxed(&w->ram[address - RAM_BASE + i], ((const uint8_t *)buffer)[i]);
	return 0;
}

static void ram_write_u64(struct world *w, uint64_t address, uint64_t value)
{
	for (unsigned i = 0; i < 8; i++)
		store_relaxed(&w->ram[address - RAM_BASE + i], (uint8_t)(value >> (8 * i)));
}

void guest_set_property(struct world *w, uint32_t lpi, uint8_t property)
{
	store_relaxed(&w->ram[PROPERTY_TABLE - RAM_BASE + lpi], property);
}

bool guest_table_pending(struct world *w, uint32_t vcpu, uint32_t lpi)
{
	return load_relaxed(&w->ram[PENDING_TABLE(vcpu) - RAM_BASE + (FIRST_LPI + lpi) / 8]) >> (lpi % 8) & 1;
}

/* ---- vCPUs ----------------------------------------------------------------------------------------- */

static void wake(struct consumer *c)
{
	atomic_fetch_add(&c->tokens, 1);
	sem_post(&c->wake);
}

static void on_kick(void *opaque, struct vgic_vcpu *vcpu)
{
	(void)opaque;
	wake(vgic_vcpu_user(vcpu));
}

static void on_work_pending(void *opaque)
{
	struct world *w = opaque;

	sem_post(&w->work);
}

static void note_acknowledge(struct world *w, uint32_t intid, const uint64_t *epochs)
{
	struct account *a;
	uint64_t number;

	if (intid < FIRST_LPI || intid >= FIRST_LPI + ITS_LPIS) {
		run_fail(w->run, "INTID %u was acknowledged, which nobody signals", intid);
		return;
	}
	a = &w->accounts[intid - FIRST_LPI];
	if (epochs && (epochs[intid - FIRST_LPI] & 1) && load_acquire(&a->epoch) == epochs[intid - FIRST_LPI])
		run_fail(w->run, "LPI %u was acknowledged after its path had been closed", intid);
	number = load_acquire(&a->number);
	if (w->lockstep && a->data != number)
		run_fail(w->run, "LPI %u: the device wrote %" PRIu64 ", behind the acknowledge there is %" PRIu64,
			 intid, number, a->data);
	if (number > load_relaxed(&a->seen))
		store_relaxed(&a->seen, number);
	atomic_fetch_add_explicit(&a->acknowledges, 1, memory_order_release);
}

static void take_interrupts(struct consumer *c)
{
	struct world *w = c->world;

	while (vgic_poll_lines(c->vcpu)) {
		uint64_t epochs[ITS_LPIS], intid;

		world_pause(&c->rng, load_relaxed(&w->delay));
		for (uint32_t i = 0; i < ITS_LPIS; i++)
			epochs[i] = load_acquire(&w->accounts[i].epoch);
		vgic_icc_read(c->vcpu, VGIC_ICC_IAR1_EL1, &intid);
		if (intid == INTID_SPURIOUS)
			continue;
		note_acknowledge(w, (uint32_t)intid, epochs);
		vgic_icc_write(c->vcpu, VGIC_ICC_EOIR1_EL1, intid);
	}
}

static void *run_consumer(void *arg)
{
	struct consumer *c = arg;

	while (!load_acquire(&c->world->stop)) {
		if (!load_acquire(&c->world->gate))
			take_interrupts(c);
		if (load_acquire(&c->world->gate) || !vgic_prepare_wait(c->vcpu)) {
			atomic_store(&c->sleeping, true);
			while (sem_wait(&c->wake) != 0)
				;
			atomic_store(&c->sleeping, false);
			atomic_fetch_sub(&c->tokens, 1);
		}
		vgic_finish_wait(c->vcpu);
	}
	return NULL;
}

bool its_world_sleeps(struct world *w)
{
	bool sleeps = true;

	for (uint32_t v = 0; v < ITS_VCPUS; v++)
		sleeps &= atomic_load(&w->consumers[v].sleeping) && atomic_load(&w->consumers[v].tokens) == 0;
	/* Twice: a vCPU that was looked at early may have been woken by one that was looked at late. */
	for (uint32_t v = 0; v < ITS_VCPUS; v++)
		sleeps &= atomic_load(&w->consumers[v].sleeping) && atomic_load(&w->consumers[v].tokens) == 0;
	return sleeps;
}

/* ---- Devices ------------------------------------------------------------------------------------------ */

static bool is_closed(struct world *w, struct device *d)
{
	if (!load_acquire(&w->gate))
		return false;
	store_release(&d->parked, true);
	while (load_acquire(&w->gate))
		sched_yield();
	store_release(&d->parked, false);
	return true;
}

/* In lockstep: wait until the accepted signal is acknowledged. */
static void await_acknowledge(struct device *d, struct account *a)
{
	struct world *w = d->world;

	while (load_acquire(&a->acknowledges) < load_relaxed(&a->accepted) && !load_relaxed(&w->over)) {
		if (!is_closed(w, d))
			sched_yield();
	}
}

static void signal_once(struct device *d)
{
	struct world *w = d->world;
	const uint32_t event = rng_below(&d->rng, ITS_EVENTS);
	struct account *a = &w->accounts[d->number * ITS_EVENTS + event];
	const uint64_t epoch = load_acquire(&a->epoch);
	const uint64_t number = load_relaxed(&a->number) + 1;
	int result;

	if (w->lockstep) {
		/* Left over from the last time that the world was stopped: not acknowledged yet. */
		if (load_acquire(&a->acknowledges) < load_relaxed(&a->accepted))
			return;
		a->data = number;
	}
	store_release(&a->number, number);
	result = w->signal ? w->signal(w->signal_context, d, event) : vgic_its_signal(w->its[0], d->number, event);
	d->signals++;
	if (result == 1) {
		d->accepted++;
		atomic_fetch_add_explicit(&a->accepted, 1, memory_order_relaxed);
		store_release(&a->last_accepted, number);
		if ((epoch & 1) && load_acquire(&a->epoch) == epoch)
			run_fail(w->run, "device %u event %u: accepted after its path had been closed", d->number,
				 event);
	} else if (result == -EBUSY) {
		d->busy++;
	} else if (result == 0) {
		d->blocked++;
	} else {
		run_fail(w->run, "the signal returned %d", result);
	}
	if (w->lockstep && result == 1)
		await_acknowledge(d, a);
	else if (result != 1 || rng_below(&d->rng, 16) == 0)
		sched_yield();
}

static void *run_device(void *arg)
{
	struct device *d = arg;

	while (!load_acquire(&d->world->over)) {
		if (!is_closed(d->world, d))
			signal_once(d);
	}
	store_release(&d->parked, true);
	return NULL;
}

/* ---- The host's worker ----------------------------------------------------------------------------------- */

static void *run_worker(void *arg)
{
	struct world *w = arg;

	while (!load_acquire(&w->stop)) {
		while (sem_wait(&w->work) != 0)
			;
		while (vgic_run_work(w->vgic) && !load_acquire(&w->stop))
			sched_yield();
	}
	return NULL;
}

/* ---- The guest -------------------------------------------------------------------------------------------- */

uint64_t guest_its_read(struct world *w, uint32_t its, uint32_t offset)
{
	uint64_t value = 0;

	vgic_its_read(w->its[its], offset, offset == GITS_CTLR ? 4 : 8, &value);
	return value;
}

void guest_its_write(struct world *w, uint32_t its, uint32_t offset, uint64_t value)
{
	vgic_its_write(w->its[its], offset, offset == GITS_CTLR ? 4 : 8, value);
}

uint64_t guest_redist_read(struct world *w, uint32_t vcpu, uint32_t offset)
{
	uint64_t value = 0;

	vgic_redist_read(w->consumers[vcpu].vcpu, offset, 4, &value);
	return value;
}

void guest_redist_write(struct world *w, uint32_t vcpu, uint32_t offset, unsigned width, uint64_t value)
{
	vgic_redist_write(w->consumers[vcpu].vcpu, offset, width, value);
}

void guest_command(struct world *w, uint32_t its, uint64_t dw0, uint64_t dw1, uint64_t dw2, uint64_t dw3)
{
	const uint64_t address = QUEUE(its) + w->queue_at[its];
	const uint32_t next = (w->queue_at[its] + 32) % 0x10000;

	while (guest_its_read(w, its, GITS_CREADR) == next)
		sched_yield();
	ram_write_u64(w, address, dw0);
	ram_write_u64(w, address + 8, dw1);
	ram_write_u64(w, address + 16, dw2);
	ram_write_u64(w, address + 24, dw3);
	w->queue_at[its] = next;
	guest_its_write(w, its, GITS_CWRITER, next);
}

void guest_sync(struct world *w, uint32_t its)
{
	while (guest_its_read(w, its, GITS_CREADR) != w->queue_at[its])
		sched_yield();
}

void guest_mapd(struct world *w, uint32_t its, uint32_t device, bool valid)
{
	guest_command(w, its, 0x08 | (uint64_t)device << 32, 3, ITT(its * ITS_DEVICES + device) | (valid ? VALID : 0),
		      0);
}

void guest_mapc(struct world *w, uint32_t its, uint32_t icid, uint32_t vcpu)
{
	guest_command(w, its, 0x09, 0, VALID | (uint64_t)vgic_vcpu_id(w->consumers[vcpu].vcpu) << 16 | icid, 0);
}

void guest_mapti(struct world *w, uint32_t its, uint32_t device, uint32_t event, uint32_t lpi, uint32_t icid)
{
	guest_command(w, its, 0x0a | (uint64_t)device << 32, event | (uint64_t)(FIRST_LPI + lpi) << 32, icid, 0);
}

void guest_movi(struct world *w, uint32_t its, uint32_t device, uint32_t event, uint32_t icid)
{
	guest_command(w, its, 0x01 | (uint64_t)device << 32, event, icid, 0);
}

void guest_movall(struct world *w, uint32_t its, uint32_t from, uint32_t to)
{
	guest_command(w, its, 0x0e, 0, (uint64_t)vgic_vcpu_id(w->consumers[from].vcpu) << 16,
		      (uint64_t)vgic_vcpu_id(w->consumers[to].vcpu) << 16);
}

void guest_event(struct world *w, uint32_t its, unsigned opcode, uint32_t device, uint32_t event)
{
	guest_command(w, its, opcode | (uint64_t)device << 32, event, 0, 0);
}

void guest_invall(struct world *w, uint32_t its, uint32_t icid)
{
	guest_command(w, its, 0x0d, 0, icid, 0);
}

void guest_set_lpis_enabled(struct world *w, uint32_t vcpu, bool enabled)
{
	guest_redist_write(w, vcpu, GICR_CTLR, 4, enabled ? GICR_CTLR_ENABLE_LPIS : 0);
}

uint64_t world_acknowledges(struct world *w)
{
	struct vgic_stats stats = { .size = sizeof(stats) };

	vgic_get_stats(w->vgic, &stats);
	return stats.acknowledges;
}

/* No acknowledge is under way now; its number in @sequences. */
static bool note_sequences(struct world *w, uint64_t *sequences)
{
	bool even = true;

	for (uint32_t v = 0; v < ITS_VCPUS; v++) {
		sequences[v] = atomic_load(&w->vgic->vcpus[v]->ack_sequence);
		even &= sequences[v] % 2 == 0;
	}
	return even;
}

uint64_t its_world_count_pending(struct world *w, uint64_t *acknowledges)
{
	uint64_t before[ITS_VCPUS], after[ITS_VCPUS], pending;
	bool quiet;

	do {
		quiet = note_sequences(w, before);
		*acknowledges = world_acknowledges(w);
		pending = 0;
		for (uint32_t i = 0; i < ITS_LPIS; i++)
			pending += atomic_load(&w->vgic->lpis[i].word) & IRQ_PENDING;
		quiet &= note_sequences(w, after) && memcmp(before, after, sizeof(before)) == 0;
	} while (!quiet);
	return pending;
}

/* ---- The gate ------------------------------------------------------------------------------------------------ */

void its_world_close_gate(struct world *w)
{
	bool closed = false;

	store_release(&w->gate, true);
	while (!closed) {
		closed = true;
		for (uint32_t d = 0; d < ITS_DEVICES; d++)
			closed &= load_acquire(&w->devices[d].parked);
		for (uint32_t v = 0; v < ITS_VCPUS; v++)
			closed &= atomic_load(&w->consumers[v].sleeping);
		if (!closed)
			sched_yield();
	}
}

void its_world_open_gate(struct world *w)
{
	store_release(&w->gate, false);
	for (uint32_t v = 0; v < ITS_VCPUS; v++)
		wake(&w->consumers[v]);
}

/* ---- Life ------------------------------------------------------------------------------------------------------- */

static void make_controller(struct world *w)
{
	/* Ids that are no indices. */
	struct vgic_vcpu_config vcpus[ITS_VCPUS] = { { .id = 7, .affinity = 0 }, { .id = 0, .affinity = 1 } };
	const struct vgic_its_config itses[ITS_ITSES] = {
		{ .max_devices = 8, .max_translations = 64, .has_base = true, .base = ITS_WORLD_BASE },
		{ .max_devices = 8, .max_translations = 64 }
	};
	struct vgic_config config;

	vgic_config_init(&config, VGIC_PROFILE_NATIVE);
	config.features |= VGIC_FEATURE_LPIS;
	config.lpi_id_bits = LPI_ID_BITS;
	config.num_vcpus = ITS_VCPUS;
	config.vcpus = vcpus;
	config.num_itses = ITS_ITSES;
	config.itses = itses;
	config.opaque = w;
	config.ops.kick = on_kick;
	config.ops.guest_read = on_guest_read;
	config.ops.guest_write = on_guest_write;
	config.ops.work_pending = on_work_pending;
	for (uint32_t v = 0; v < ITS_VCPUS; v++)
		vcpus[v].user = &w->consumers[v];
	if (vgic_create(&config, &w->vgic) != 0)
		abort();
	for (uint32_t v = 0; v < ITS_VCPUS; v++)
		w->consumers[v].vcpu = vgic_vcpu_by_index(w->vgic, v);
	for (uint32_t i = 0; i < ITS_ITSES; i++)
		w->its[i] = vgic_its_by_index(w->vgic, i);
}

static void boot_guest(struct world *w)
{
	vgic_dist_write(w->vgic, GICD_CTLR, 4, GICD_CTLR_ENABLE_GRP0 | GICD_CTLR_ENABLE_GRP1);
	for (uint32_t lpi = 0; lpi < ITS_LPIS; lpi++)
		guest_set_property(w, lpi, DEFAULT_PROPERTY);
	for (uint32_t v = 0; v < ITS_VCPUS; v++) {
		vgic_icc_write(w->consumers[v].vcpu, VGIC_ICC_PMR_EL1, 0xff);
		vgic_icc_write(w->consumers[v].vcpu, VGIC_ICC_IGRPEN1_EL1, 1);
		guest_redist_write(w, v, GICR_PROPBASER, 8, PROPERTY_TABLE | (LPI_ID_BITS - 1));
		guest_redist_write(w, v, GICR_PENDBASER, 8, PENDING_TABLE(v) | GICR_PENDBASER_PTZ);
		guest_set_lpis_enabled(w, v, true);
	}
	for (uint32_t i = 0; i < ITS_ITSES; i++) {
		guest_its_write(w, i, GITS_CBASER, VALID | QUEUE(i) | 15);
		guest_its_write(w, i, GITS_BASER, VALID | DEVICE_TABLE(i));
		guest_its_write(w, i, GITS_BASER + 8, VALID | COLLECTION_TABLE(i));
		guest_its_write(w, i, GITS_CTLR, GITS_CTLR_ENABLED);
		for (uint32_t v = 0; v < ITS_VCPUS; v++)
			guest_mapc(w, i, v, v);
	}
	for (uint32_t d = 0; d < ITS_DEVICES; d++) {
		guest_mapd(w, 0, d, true);
		for (uint32_t e = 0; e < ITS_EVENTS; e++)
			guest_mapti(w, 0, d, e, d * ITS_EVENTS + e, d % ITS_VCPUS);
	}
	guest_sync(w, 0);
}

static void start_thread(pthread_t *thread, void *(*main)(void *), void *arg)
{
	if (pthread_create(thread, NULL, main, arg) != 0)
		abort();
}

struct world *its_world_open(struct run *run, bool lockstep)
{
	struct world *w = aligned_alloc(64, (sizeof(*w) + 63) / 64 * 64);

	if (!w)
		abort();
	memset(w, 0, sizeof(*w));
	w->ram = calloc(1, RAM_SIZE);
	if (!w->ram)
		abort();
	w->run = run;
	w->lockstep = lockstep;
	rng_init(&w->rng, run->seed, 0);
	sem_init(&w->work, 0, 0);
	for (uint32_t v = 0; v < ITS_VCPUS; v++) {
		w->consumers[v].world = w;
		w->consumers[v].index = v;
		rng_init(&w->consumers[v].rng, run->seed, 100 + v);
		sem_init(&w->consumers[v].wake, 0, 0);
	}
	make_controller(w);
	boot_guest(w);
	start_thread(&w->worker, run_worker, w);
	for (uint32_t v = 0; v < ITS_VCPUS; v++)
		start_thread(&w->consumers[v].thread, run_consumer, &w->consumers[v]);
	return w;
}

void its_world_start_devices(struct world *w)
{
	for (uint32_t d = 0; d < ITS_DEVICES; d++) {
		w->devices[d].world = w;
		w->devices[d].number = d;
		rng_init(&w->devices[d].rng, w->run->seed, 1 + d);
		start_thread(&w->devices[d].thread, run_device, &w->devices[d]);
	}
}

void its_world_join_devices(struct world *w)
{
	if (w->joined)
		return;
	store_release(&w->over, true);
	for (uint32_t d = 0; d < ITS_DEVICES; d++)
		pthread_join(w->devices[d].thread, NULL);
	w->joined = true;
}

void its_world_settle(struct world *w)
{
	const struct timespec a_moment = { .tv_nsec = 50000 };
	uint64_t signals = 0, accepted = 0;
	uint32_t intid = 0;
	unsigned broken;

	its_world_join_devices(w);
	for (uint32_t d = 0; d < ITS_DEVICES; d++) {
		signals += w->devices[d].signals;
		accepted += w->devices[d].accepted;
	}
	/* What register writes have left is done by the worker; help it, or a sleeping world may not be at rest. */
	while (vgic_run_work(w->vgic))
		;
	while (!its_world_sleeps(w))
		nanosleep(&a_moment, NULL);
	for (uint32_t v = 0; v < ITS_VCPUS; v++) {
		if (vgic_poll_lines(w->consumers[v].vcpu))
			run_fail(w->run, "lost wake-up: vCPU %u sleeps and has a line", v);
	}
	broken = vgic_check_at_rest(w->vgic, &intid);
	if (broken)
		run_fail(w->run, "at rest %u interrupts cannot be reached, the first is %u", broken, intid);
	if (signals == 0 || accepted == 0)
		run_fail(w->run, "%" PRIu64 " signals were made and %" PRIu64 " accepted", signals, accepted);
	printf("# %s: %" PRIu64 " signals, %" PRIu64 " accepted, %" PRIu64 " acknowledges\n", w->run->name, signals,
	       accepted, world_acknowledges(w));
}

void its_world_close(struct world *w)
{
	store_release(&w->stop, true);
	sem_post(&w->work);
	for (uint32_t v = 0; v < ITS_VCPUS; v++)
		wake(&w->consumers[v]);
	pthread_join(w->worker, NULL);
	for (uint32_t v = 0; v < ITS_VCPUS; v++)
		pthread_join(w->consumers[v].thread, NULL);
	vgic_destroy(w->vgic);
	free(w->ram);
	free(w);
}
