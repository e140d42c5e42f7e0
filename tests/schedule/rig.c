/* SPDX-License-Identifier: MIT */
/*
 * rig.c - the controller, its vCPUs, the guest's memory, and the accounts: see rig.h.
 */
#include "rig.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vgic_internal.h"

#define RAM_BASE         UINT64_C(0x40000000)
#define RAM_SIZE         0x60000u
#define DEVICE_TABLE     (RAM_BASE + 0x00000)
#define COLLECTION_TABLE (RAM_BASE + 0x10000)
#define PROPERTY_TABLE   (RAM_BASE + 0x20000)
#define PENDING_TABLE(v) (RAM_BASE + 0x30000 + 0x10000 * (uint64_t)(v))
/* Behind the pending table of vCPU 0, which is small. */
#define QUEUE            (RAM_BASE + 0x38000)
#define ITT              (RAM_BASE + 0x3a000)

#define QUEUE_SIZE       0x1000u
#define LPI_ID_BITS      14u
#define NUM_LPIS         64u
#define DEFAULT_PROPERTY 0xa1u
#define DEFAULT_PRIORITY 0xa0u
/* A line may be up for what has just gone, but not again and again. */
#define MAX_SPURIOUS     100u
#define VALID            (UINT64_C(1) << 63)

static unsigned char ram[RAM_SIZE];
static uint64_t num_steps;

void rig_fail(struct rig *rig, const char *format, ...)
{
	va_list args;

	if (!rig->failed)
		printf("# %s: failed; the same again: --scenario %s --seed %llu --iterations 1 --trace\n",
		       rig->scenario->name, rig->scenario->name, (unsigned long long)rig->seed);
	rig->failed = true;
	printf("# %s: ", rig->scenario->name);
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	putchar('\n');
}

/* ---- Accounts ---- */

struct account *account_of(struct rig *rig, uint32_t intid)
{
	const size_t num = sizeof(rig->accounts) / sizeof(rig->accounts[0]);

	for (size_t i = 0; i < num; i++) {
		struct account *a = &rig->accounts[i];

		if (!a->used) {
			a->used = true;
			a->intid = intid;
		}
		if (a->intid == intid)
			return a;
	}
	abort();
}

unsigned account_begin(struct account *a)
{
	return ++a->number;
}

void account_end(struct account *a, unsigned number, bool accepted)
{
	if (!accepted)
		return;
	a->accepted++;
	if (number > a->last_accepted)
		a->last_accepted = number;
}

static void note_acknowledge(struct rig *rig, uint32_t intid, const unsigned *epochs)
{
	struct account *a = account_of(rig, intid);
	const bool was_closed = (epochs[a - rig->accounts] & 1) && a->epoch == epochs[a - rig->accounts];

	if (was_closed || (a->has_rwp && (a->epoch & 1)))
		rig_fail(rig, "INTID %u was acknowledged after its path had been closed", intid);
	a->acknowledges++;
	if (a->number > a->seen)
		a->seen = a->number;
	schedule_note("acknowledged %u, number %u", intid, a->number);
}

/* ---- vCPUs ---- */

static void on_kick(void *opaque, struct vgic_vcpu *vcpu)
{
	struct rig_vcpu *v = vgic_vcpu_user(vcpu);

	(void)opaque;
	schedule_note("kicks vCPU %u", v->index);
	gate_post(&v->wake);
}

/* An interrupt of the group whose line is up. */
static bool take_one(struct rig_vcpu *v, unsigned lines)
{
	const bool group0 = lines & VGIC_LINE_FIQ;
	struct rig *rig = v->rig;
	unsigned epochs[sizeof(rig->accounts) / sizeof(rig->accounts[0])];
	uint64_t intid;

	for (size_t i = 0; i < sizeof(epochs) / sizeof(epochs[0]); i++)
		epochs[i] = rig->accounts[i].epoch;
	intid = rig_icc_read(v, group0 ? VGIC_ICC_IAR0_EL1 : VGIC_ICC_IAR1_EL1);
	if (intid == INTID_SPURIOUS)
		return false;
	note_acknowledge(rig, (uint32_t)intid, epochs);
	if (rig->scenario->taken)
		rig->scenario->taken(v, (uint32_t)intid);
	rig_icc_write(v, group0 ? VGIC_ICC_EOIR0_EL1 : VGIC_ICC_EOIR1_EL1, intid);
	return true;
}

/* The guest: it takes interrupts as long as there is a line, and then waits. */
static void run_vcpu(void *context)
{
	struct rig_vcpu *v = context;

	for (;;) {
		unsigned lines = vgic_enter_guest(v->vcpu), spurious = 0;

		while (lines && spurious < MAX_SPURIOUS) {
			spurious += !take_one(v, lines);
			lines = vgic_poll_lines(v->vcpu);
		}
		if (lines)
			rig_fail(v->rig, "vCPU %u has a line, and nothing to acknowledge", v->index);
		vgic_exit_guest(v->vcpu);
		/* One look only between a kick and the next wait. */
		while (!vgic_prepare_wait(v->vcpu)) {
			gate_wait(&v->wake);
			vgic_finish_wait(v->vcpu);
		}
		vgic_finish_wait(v->vcpu);
	}
}

/* What register writes have left. */
static void run_work(void *context)
{
	struct rig *rig = context;

	for (;;) {
		gate_wait(&rig->work);
		while (vgic_run_work(rig->vgic) > 0)
			schedule_yield();
	}
}

/* ---- Signals ---- */

void rig_pulse(struct rig *rig, uint32_t intid)
{
	struct account *a = account_of(rig, intid);
	const unsigned number = account_begin(a);

	schedule_note("pulses %u, number %u", intid, number);
	if (vgic_pulse_spi(rig->vgic, intid) != 1)
		rig_fail(rig, "vgic_pulse_spi() failed");
	account_end(a, number, true);
}

int rig_msi(struct rig *rig, uint32_t event)
{
	struct account *a = account_of(rig, RIG_FIRST_LPI + event);
	const unsigned number = account_begin(a);
	int result;

	schedule_note("signals event %u, number %u", event, number);
	result = vgic_its_signal(rig->its, RIG_DEVICE, event);
	schedule_note("...which gave %d", result);
	account_end(a, number, result == 1);
	return result;
}

void rig_sgi(struct rig_vcpu *from, uint32_t target_list)
{
	struct account *a = account_of(from->rig, RIG_SGI);
	const unsigned number = account_begin(a);

	rig_icc_write(from, VGIC_ICC_SGI1R_EL1, RIG_SGI << 24 | target_list);
	account_end(a, number, true);
}

void rig_await(struct rig *rig, uint32_t intid)
{
	struct account *a = account_of(rig, intid);

	while (a->seen < a->last_accepted)
		schedule_yield();
}

/* ---- Registers ---- */

uint32_t rig_dist_read(struct rig *rig, uint32_t offset)
{
	uint64_t value = 0;

	vgic_dist_read(rig->vgic, offset, 4, &value);
	return (uint32_t)value;
}

void rig_dist_write(struct rig *rig, uint32_t offset, uint32_t value)
{
	vgic_dist_write(rig->vgic, offset, 4, value);
}

uint32_t rig_redist_read(struct rig *rig, uint32_t vcpu, uint32_t offset)
{
	uint64_t value = 0;

	vgic_redist_read(rig->vcpus[vcpu].vcpu, offset, 4, &value);
	return (uint32_t)value;
}

void rig_redist_write(struct rig *rig, uint32_t vcpu, uint32_t offset, uint32_t value)
{
	vgic_redist_write(rig->vcpus[vcpu].vcpu, offset, 4, value);
}

void rig_spi_bit(struct rig *rig, uint32_t bank, uint32_t intid)
{
	rig_dist_write(rig, bank + intid / 32 * 4, 1u << intid % 32);
}

void rig_spi_route(struct rig *rig, uint32_t intid, uint64_t irouter)
{
	vgic_dist_write(rig->vgic, GICD_IROUTER + 8 * intid, 8, irouter);
}

void rig_spi_priority(struct rig *rig, uint32_t intid, uint8_t priority)
{
	vgic_dist_write(rig->vgic, GICD_IPRIORITYR + intid, 1, priority);
}

void rig_spi_level(struct rig *rig, uint32_t intid)
{
	const uint32_t offset = GICD_ICFGR + intid / 16 * 4;

	rig_spi_bit(rig, GICD_ICENABLER, intid);
	rig_dist_write(rig, offset, rig_dist_read(rig, offset) & ~(2u << intid % 16 * 2));
	rig_spi_bit(rig, GICD_ISENABLER, intid);
}

void rig_await_dist(struct rig *rig)
{
	while (rig_dist_read(rig, GICD_CTLR) & GICD_CTLR_RWP)
		schedule_yield();
}

void rig_await_redist(struct rig *rig, uint32_t vcpu)
{
	while (rig_redist_read(rig, vcpu, GICR_CTLR) & GICR_CTLR_RWP)
		schedule_yield();
}

uint64_t rig_icc_read(struct rig_vcpu *v, uint32_t reg)
{
	uint64_t value = 0;

	vgic_icc_read(v->vcpu, reg, &value);
	return value;
}

void rig_icc_write(struct rig_vcpu *v, uint32_t reg, uint64_t value)
{
	vgic_icc_write(v->vcpu, reg, value);
}

/* ---- The guest's memory and the ITS ---- */

static bool ram_has(uint64_t address, size_t size)
{
	return address >= RAM_BASE && address - RAM_BASE <= RAM_SIZE - size;
}

static int on_guest_read(void *opaque, uint64_t address, void *buffer, size_t size)
{
	(void)opaque;
	if (!ram_has(address, size))
		return -EFAULT;
	schedule_point("memory", 0, "guest_read");
	memcpy(buffer, &ram[address - RAM_BASE], size);
	return 0;
}

static int on_guest_write(void *opaque, uint64_t address, const void *buffer, size_t size)
{
	(void)opaque;
	if (!ram_has(address, size))
		return -EFAULT;
	schedule_point("memory", 0, "guest_write");
	memcpy(&ram[address - RAM_BASE], buffer, size);
	return 0;
}

static void on_guest_error(void *opaque, const struct vgic_guest_error *error)
{
	(void)opaque;
	schedule_note("guest's error: %s", error->what);
}

static void on_work_pending(void *opaque)
{
	struct rig *rig = opaque;

	gate_post(&rig->work);
}

static void its_write(struct rig *rig, uint32_t offset, uint64_t value)
{
	vgic_its_write(rig->its, offset, offset == GITS_CTLR ? 4 : 8, value);
}

static uint64_t its_read(struct rig *rig, uint32_t offset)
{
	uint64_t value = 0;

	vgic_its_read(rig->its, offset, offset == GITS_CTLR ? 4 : 8, &value);
	return value;
}

static void command(struct rig *rig, uint64_t dw0, uint64_t dw1, uint64_t dw2, uint64_t dw3)
{
	const uint64_t dw[4] = { dw0, dw1, dw2, dw3 };

	memcpy(&ram[QUEUE - RAM_BASE + rig->queue_at], dw, sizeof(dw));
	rig->queue_at = (rig->queue_at + sizeof(dw)) % QUEUE_SIZE;
	schedule_note("command 0x%02x", (unsigned)dw0 & 0xff);
	its_write(rig, GITS_CWRITER, rig->queue_at);
}

void rig_sync(struct rig *rig)
{
	while (its_read(rig, GITS_CREADR) != rig->queue_at)
		schedule_yield();
}

void rig_mapd(struct rig *rig, bool valid)
{
	command(rig, 0x08 | (uint64_t)RIG_DEVICE << 32, 1, ITT | (valid ? VALID : 0), 0);
}

void rig_mapc(struct rig *rig, uint32_t icid, uint32_t vcpu)
{
	command(rig, 0x09, 0, VALID | (uint64_t)vcpu << 16 | icid, 0);
}

void rig_mapti(struct rig *rig, uint32_t event, uint32_t lpi, uint32_t icid)
{
	command(rig, 0x0a | (uint64_t)RIG_DEVICE << 32, event | (uint64_t)lpi << 32, icid, 0);
}

void rig_movi(struct rig *rig, uint32_t event, uint32_t icid)
{
	command(rig, 0x01 | (uint64_t)RIG_DEVICE << 32, event, icid, 0);
}

void rig_movall(struct rig *rig, uint32_t from, uint32_t to)
{
	command(rig, 0x0e, 0, (uint64_t)from << 16, (uint64_t)to << 16);
}

void rig_event(struct rig *rig, unsigned opcode, uint32_t event)
{
	command(rig, opcode | (uint64_t)RIG_DEVICE << 32, event, 0, 0);
}

void rig_set_property(struct rig *rig, uint32_t lpi, uint8_t property)
{
	(void)rig;
	ram[PROPERTY_TABLE - RAM_BASE + lpi - RIG_FIRST_LPI] = property;
}

bool rig_lpi_pending(struct rig *rig, uint32_t lpi)
{
	return load_relaxed(&rig->vgic->lpis[lpi - RIG_FIRST_LPI].word) & IRQ_PENDING;
}

bool rig_table_pending(uint32_t vcpu, uint32_t lpi)
{
	return ram[PENDING_TABLE(vcpu) - RAM_BASE + lpi / 8] >> (lpi % 8) & 1;
}

void rig_its_enable(struct rig *rig, bool enabled)
{
	its_write(rig, GITS_CTLR, enabled ? GITS_CTLR_ENABLED : 0);
	while (!enabled && !(its_read(rig, GITS_CTLR) & GITS_CTLR_QUIESCENT))
		schedule_yield();
}

/* ---- Setting up ---- */

static void set_up_lpis(struct rig *rig)
{
	memset(&ram[PROPERTY_TABLE - RAM_BASE], DEFAULT_PROPERTY, 1u << LPI_ID_BITS);
	for (uint32_t v = 0; v < rig->num_vcpus; v++) {
		vgic_redist_write(rig->vcpus[v].vcpu, GICR_PROPBASER, 8, PROPERTY_TABLE | (LPI_ID_BITS - 1));
		vgic_redist_write(rig->vcpus[v].vcpu, GICR_PENDBASER, 8, PENDING_TABLE(v) | GICR_PENDBASER_PTZ);
		rig_redist_write(rig, v, GICR_CTLR, GICR_CTLR_ENABLE_LPIS);
	}
	its_write(rig, GITS_BASER, VALID | DEVICE_TABLE);
	its_write(rig, GITS_BASER + 8, VALID | COLLECTION_TABLE);
	its_write(rig, GITS_CBASER, VALID | QUEUE);
	its_write(rig, GITS_CTLR, GITS_CTLR_ENABLED);
	for (uint32_t v = 0; v < rig->num_vcpus; v++)
		rig_mapc(rig, v, v);
	rig_mapd(rig, true);
	for (uint32_t e = 0; e < RIG_NUM_EVENTS; e++)
		rig_mapti(rig, e, RIG_FIRST_LPI + e, 0);
	rig_sync(rig);
	while (vgic_run_work(rig->vgic) > 0)
		;
}

static void set_up_vcpu(struct rig *rig, struct rig_vcpu *v)
{
	rig_redist_write(rig, v->index, GICR_WAKER, 0);
	rig_icc_write(v, VGIC_ICC_PMR_EL1, 0xff);
	rig_icc_write(v, VGIC_ICC_IGRPEN1_EL1, 1);
	rig_redist_write(rig, v->index, GICR_IGROUPR0, 0xffffffff);
	rig_redist_write(rig, v->index, GICR_ISENABLER0, 1u << RIG_SGI | 1u << RIG_PPI);
}

static void set_up_guest(struct rig *rig)
{
	rig_dist_write(rig, GICD_CTLR, GICD_CTLR_ENABLE_GRP1);
	rig_dist_write(rig, GICD_IGROUPR + 4, 0xffffffff);
	for (uint32_t intid = RIG_FIRST_SPI; intid < RIG_FIRST_SPI + RIG_NUM_SPIS; intid++) {
		const uint32_t icfgr = GICD_ICFGR + intid / 16 * 4;

		rig_dist_write(rig, icfgr, rig_dist_read(rig, icfgr) | 2u << intid % 16 * 2);
		rig_spi_priority(rig, intid, DEFAULT_PRIORITY);
		rig_spi_route(rig, intid, 0);
		rig_spi_bit(rig, GICD_ISENABLER, intid);
	}
	for (uint32_t v = 0; v < rig->num_vcpus; v++)
		set_up_vcpu(rig, &rig->vcpus[v]);
	if (rig->its)
		set_up_lpis(rig);
}

static void create(struct rig *rig)
{
	static const char *const names[RIG_MAX_VCPUS] = { "vcpu0", "vcpu1", "vcpu2" };
	struct vgic_vcpu_config vcpus[RIG_MAX_VCPUS];
	struct vgic_its_config its = { .has_base = true, .base = RIG_ITS_BASE };
	const struct rig_config *wanted = &rig->scenario->config;
	const uint32_t num_vcpus = wanted->num_vcpus ? wanted->num_vcpus : 1;
	struct vgic_config config;

	if (num_vcpus > RIG_MAX_VCPUS)
		abort();
	rig->num_vcpus = num_vcpus;
	vgic_config_init(&config, VGIC_PROFILE_NATIVE);
	memset(vcpus, 0, sizeof(vcpus));
	for (uint32_t v = 0; v < num_vcpus; v++)
		vcpus[v] = (struct vgic_vcpu_config){ .id = v, .affinity = v, .user = &rig->vcpus[v] };
	its.device_id_bits = 4;
	its.event_id_bits = 4;
	its.max_devices = 4;
	its.max_translations = 16;
	config.features |= wanted->features | (wanted->its ? VGIC_FEATURE_LPIS : 0);
	config.num_spis = VGIC_MIN_SPIS;
	config.lpi_id_bits = LPI_ID_BITS;
	config.num_vcpus = num_vcpus;
	config.vcpus = vcpus;
	config.num_itses = wanted->its;
	config.itses = &its;
	config.ops.kick = on_kick;
	config.ops.guest_read = on_guest_read;
	config.ops.guest_write = on_guest_write;
	config.ops.work_pending = on_work_pending;
	config.ops.guest_error = on_guest_error;
	config.opaque = rig;
	if (vgic_create(&config, &rig->vgic) != 0 ||
	    (wanted->routes && vgic_routes_create(rig->vgic, 8, &rig->routes) != 0)) {
		fprintf(stderr, "vgic-schedule: cannot create a controller\n");
		exit(2);
	}
	/* No more LPIs than one group of a walk: otherwise most of a run is the walk, and no task stays away for so long. */
	if (wanted->its)
		rig->vgic->num_lpis = NUM_LPIS;
	rig->its = wanted->its ? vgic_its_by_index(rig->vgic, 0) : NULL;
	for (uint32_t v = 0; v < num_vcpus; v++) {
		rig->vcpus[v].rig = rig;
		rig->vcpus[v].index = v;
		rig->vcpus[v].vcpu = vgic_vcpu_by_index(rig->vgic, v);
		schedule_task(names[v], run_vcpu, &rig->vcpus[v], true);
	}
	schedule_task("work", run_work, rig, true);
}

/* ---- At rest ---- */

static void check_account(struct rig *rig, const struct account *a)
{
	if (a->acknowledges > a->number + rig->extra)
		rig_fail(rig, "INTID %u: %u signals, but %u acknowledges", a->intid, a->number, a->acknowledges);
	if (!a->not_lasting && !(a->epoch & 1) && a->seen < a->last_accepted)
		rig_fail(rig, "INTID %u: signal %u was accepted, the last one seen is %u", a->intid, a->last_accepted,
			 a->seen);
}

static void check_at_rest(struct rig *rig)
{
	uint32_t intid = 0;

	if (vgic_check_at_rest(rig->vgic, &intid))
		rig_fail(rig, "INTID %u is deliverable and cannot be found", intid);
	for (uint32_t v = 0; v < rig->num_vcpus; v++) {
		if (vgic_poll_lines(rig->vcpus[v].vcpu))
			rig_fail(rig, "vCPU %u sleeps with a line up", v);
	}
	for (const struct account *a = rig->accounts; a->used; a++)
		check_account(rig, a);
}

bool rig_run(const struct rig_scenario *scenario, uint64_t seed, bool trace)
{
	struct rig rig = { .scenario = scenario, .seed = seed };

	memset(ram, 0, sizeof(ram));
	schedule_begin(seed, trace);
	create(&rig);
	set_up_guest(&rig);
	if (scenario->set_up)
		scenario->set_up(&rig);
	for (unsigned i = 0; i < RIG_MAX_TASKS && scenario->tasks[i].name; i++)
		schedule_task(scenario->tasks[i].name, scenario->tasks[i].main, &rig, false);
	switch (schedule_run()) {
	case SCHEDULE_AT_REST:
		check_at_rest(&rig);
		if (scenario->check && !rig.failed)
			scenario->check(&rig);
		break;
	case SCHEDULE_STUCK:
		rig_fail(&rig, "a task waits for what will not happen");
		break;
	case SCHEDULE_ENDLESS:
		rig_fail(&rig, "the run does not end");
		break;
	}
	num_steps += schedule_steps();
	vgic_routes_destroy(rig.routes);
	vgic_destroy(rig.vgic);
	return !rig.failed;
}

uint64_t rig_steps(void)
{
	return num_steps;
}
