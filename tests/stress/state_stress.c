/* SPDX-License-Identifier: MIT */
/*
 * state_stress.c - saves while devices signal, with exact accounting.
 *
 *   state-stress [--scenario NAME] [--iterations N] [--seed N]
 *
 * vCPUs are stopped, devices are not. Whatever was accepted of an MSI (1) must be
 * pending in the image; nothing may be pending in it that was not accepted. A device
 * that is told to come again (-EAGAIN) comes again after the save. What a route keeps is
 * not in the image but pending at its GSI, and goes along from there. Each round the
 * interrupts of the image are taken, in the controller itself or in another one that
 * was restored from it, and the next begins with nothing pending.
 */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <vgic/route.h>
#include <vgic/state.h>

#include "gic_regs.h"
#include "scenario.h"

#define NUM_DEVICES 3u
#define NUM_EVENTS  16u /* of each device, each with an LPI of its own; two of one device share one */
#define NUM_LPIS    (NUM_DEVICES * NUM_EVENTS)
#define FIRST_LPI   8192u
#define FIRST_SPI   64u /* message-based: one for each device */
#define NUM_VCPUS   2u

#define RAM_BASE   UINT64_C(0x40000000)
#define RAM_SIZE   0x100000u
#define PROPERTIES RAM_BASE
#define PENDING(v) (RAM_BASE + 0x20000 + 0x10000 * (uint64_t)(v))
#define QUEUE      (RAM_BASE + 0x40000)
#define DEVICES    (RAM_BASE + 0x50000)
#define COLLECTION (RAM_BASE + 0x60000)
#define ITT(d)     (RAM_BASE + 0x70000 + 0x1000 * (uint64_t)(d))
#define DIST_BASE  UINT64_C(0x08000000)
#define ITS_BASE   UINT64_C(0x08080000)

struct stress;

struct device {
	struct stress *stress;
	uint32_t number;
	pthread_t thread;
	uint64_t random;
	_Atomic uint64_t turns;                /* signals that have returned and were noted */
	_Atomic uint64_t accepted[NUM_EVENTS]; /* since the beginning */
	_Atomic uint64_t accepted_message;     /* the same of its message-based SPI */
	uint64_t kept[NUM_EVENTS];             /* by its route; read while it is parked */
	_Atomic bool parked;
	uint64_t refused;
	bool waits; /* a message was refused: the next one comes when the pause is over */
};

struct stress {
	struct run *run;
	bool may_be_off; /* the guest switches the ITS off and on */
	struct vgic *vgic, *other;
	struct vgic_its *its;
	struct vgic_routes *routes, *other_routes; /* NULL: devices signal the ITS */
	uint8_t *ram;
	uint32_t queue_at;
	struct device devices[NUM_DEVICES];
	_Atomic bool over;
	_Atomic bool stopped;                   /* devices are to park */
	uint64_t seen[NUM_DEVICES][NUM_EVENTS]; /* accepted at the last save */
	uint64_t seen_message[NUM_DEVICES];
	uint64_t seen_kept[NUM_DEVICES][NUM_EVENTS];
	uint64_t random;
	uint64_t num_pending, num_clear; /* what the images had, so that they cannot all have been alike */
};

static uint64_t random_next(uint64_t *state)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return *state * UINT64_C(0x2545f4914f6cdd1d);
}

static uint32_t random_below(uint64_t *state, uint32_t n)
{
	return (uint32_t)((random_next(state) >> 32) * n >> 32);
}

/* ---- The machine ----------------------------------------------------------------------------------- */

/* Guest memory is set up before any thread starts, and only read afterwards. */
static int on_read(void *opaque, uint64_t address, void *buffer, size_t size)
{
	const struct stress *s = opaque;

	if (address < RAM_BASE || address - RAM_BASE + size > RAM_SIZE)
		return -EFAULT;
	memcpy(buffer, s->ram + (address - RAM_BASE), size);
	return 0;
}

static int on_write(void *opaque, uint64_t address, const void *buffer, size_t size)
{
	struct stress *s = opaque;

	if (address < RAM_BASE || address - RAM_BASE + size > RAM_SIZE)
		return -EFAULT;
	memcpy(s->ram + (address - RAM_BASE), buffer, size);
	return 0;
}

static struct vgic *create(struct stress *s)
{
	static const struct vgic_its_config its = {
		.max_devices = 8, .max_translations = 256, .has_base = true, .base = ITS_BASE
	};
	struct vgic_vcpu_config vcpus[NUM_VCPUS] = { { .id = 5, .affinity = 0 }, { .id = 2, .affinity = 1 } };
	struct vgic_config config;
	struct vgic *vgic;

	vgic_config_init(&config, VGIC_PROFILE_NATIVE);
	config.features |= VGIC_FEATURE_LPIS;
	config.lpi_id_bits = 14;
	config.num_vcpus = NUM_VCPUS;
	config.vcpus = vcpus;
	config.num_itses = 1;
	config.itses = &its;
	config.has_dist_base = true;
	config.dist_base = DIST_BASE;
	config.ops.guest_read = on_read;
	config.ops.guest_write = on_write;
	config.opaque = s;
	if (vgic_create(&config, &vgic))
		abort();
	return vgic;
}

static void put_u64(struct stress *s, uint64_t address, uint64_t value)
{
	for (unsigned i = 0; i < 8; i++)
		s->ram[address - RAM_BASE + i] = (uint8_t)(value >> (8 * i));
}

static void command(struct stress *s, uint64_t dw0, uint64_t dw1, uint64_t dw2)
{
	put_u64(s, QUEUE + s->queue_at, dw0);
	put_u64(s, QUEUE + s->queue_at + 8, dw1);
	put_u64(s, QUEUE + s->queue_at + 16, dw2);
	put_u64(s, QUEUE + s->queue_at + 24, 0);
	s->queue_at += 32;
}

static uint32_t lpi_of(uint32_t device, uint32_t event)
{
	/* The last two events of a device share one. */
	return device * NUM_EVENTS + (event == NUM_EVENTS - 1 ? event - 1 : event);
}

static void set_up_vcpu(struct stress *s, uint32_t v)
{
	struct vgic_vcpu *vcpu = vgic_vcpu_by_index(s->vgic, v);

	vgic_redist_write(vcpu, GICR_PROPBASER, 8, PROPERTIES | 13);
	vgic_redist_write(vcpu, GICR_PENDBASER, 8, PENDING(v) | GICR_PENDBASER_PTZ);
	vgic_redist_write(vcpu, GICR_CTLR, 4, GICR_CTLR_ENABLE_LPIS);
	vgic_redist_write(vcpu, GICR_WAKER, 4, 0);
	vgic_icc_write(vcpu, VGIC_ICC_PMR_EL1, 0xff);
	vgic_icc_write(vcpu, VGIC_ICC_IGRPEN1_EL1, 1);
}

static void set_up_spi(struct stress *s, uint32_t intid)
{
	uint64_t value;

	vgic_dist_write(s->vgic, GICD_IGROUPR + intid / 32 * 4, 4, UINT32_MAX);
	vgic_dist_read(s->vgic, GICD_ICFGR + intid / 16 * 4, 4, &value);
	vgic_dist_write(s->vgic, GICD_ICFGR + intid / 16 * 4, 4, value | 2u << (intid % 16 * 2));
	vgic_dist_write(s->vgic, GICD_ISENABLER + intid / 32 * 4, 4, 1u << (intid % 32));
	vgic_dist_write(s->vgic, GICD_IROUTER + 8 * intid, 8, intid % NUM_VCPUS);
}

static void set_up(struct stress *s)
{
	s->ram = calloc(1, RAM_SIZE);
	if (!s->ram)
		abort();
	memset(s->ram, 0xa1, 0x10000);
	s->vgic = create(s);
	s->other = create(s);
	s->its = vgic_its_by_index(s->vgic, 0);
	vgic_dist_write(s->vgic, GICD_CTLR, 4, GICD_CTLR_ENABLE_GRP1);
	for (uint32_t v = 0; v < NUM_VCPUS; v++)
		set_up_vcpu(s, v);
	vgic_its_write(s->its, GITS_CBASER, 8, GITS_CBASER_VALID | QUEUE | 15);
	vgic_its_write(s->its, GITS_BASER, 8, GITS_BASER_VALID | DEVICES);
	vgic_its_write(s->its, GITS_BASER + 8, 8, GITS_BASER_VALID | COLLECTION);
	vgic_its_write(s->its, GITS_CTLR, 4, GITS_CTLR_ENABLED);
	command(s, 0x09, 0, UINT64_C(1) << 63 | 5 << 16 | 0); /* MAPC: collections 0 and 1 at the ids 5 and 2 */
	command(s, 0x09, 0, UINT64_C(1) << 63 | 2 << 16 | 1);
	for (uint32_t d = 0; d < NUM_DEVICES; d++) {
		set_up_spi(s, FIRST_SPI + d);
		command(s, 0x08 | (uint64_t)d << 32, 4, UINT64_C(1) << 63 | ITT(d));
		for (uint32_t e = 0; e < NUM_EVENTS; e++)
			command(s, 0x0a | (uint64_t)d << 32, e | (uint64_t)(FIRST_LPI + lpi_of(d, e)) << 32,
				e % NUM_VCPUS);
	}
	vgic_its_write(s->its, GITS_CWRITER, 8, s->queue_at);
	while (vgic_run_work(s->vgic))
		;
}

static uint32_t gsi_of(uint32_t device, uint32_t event)
{
	return device * NUM_EVENTS + event;
}

/* A GSI for each event. */
static struct vgic_routes *create_routes(struct vgic *vgic)
{
	struct vgic_routes *routes;

	if (vgic_routes_create(vgic, NUM_DEVICES * NUM_EVENTS, &routes))
		abort();
	for (uint32_t d = 0; d < NUM_DEVICES; d++) {
		for (uint32_t e = 0; e < NUM_EVENTS; e++) {
			struct vgic_route route = { .type = VGIC_ROUTE_MSI };

			route.to.msi.address = ITS_BASE + VGIC_ITS_DOORBELL;
			route.to.msi.devid = d;
			route.to.msi.data = e;
			route.to.msi.msi_flags = VGIC_MSI_VALID_DEVID;
			if (vgic_route_set(routes, gsi_of(d, e), &route))
				abort();
		}
	}
	return routes;
}

/* ---- Devices ---------------------------------------------------------------------------------------- */

static void note(struct device *d, _Atomic uint64_t *accepted, int r)
{
	if (r == 1)
		store_release(accepted, load_relaxed(accepted) + 1);
	else if (r != -EAGAIN && !(r == -EBUSY && d->stress->may_be_off))
		run_fail(d->stress->run, "a signal returned %d", r);
	else if (d->refused++ % 8 == 0)
		sched_yield();
	store_release(&d->turns, load_relaxed(&d->turns) + 1);
}

static void signal_event(struct device *d, uint32_t event)
{
	const int r = vgic_its_signal(d->stress->its, d->number, event);

	d->waits &= r != 1;
	note(d, &d->accepted[event], r);
}

static void signal_message(struct device *d)
{
	const int r = vgic_signal_msi(d->stress->vgic, DIST_BASE + GICD_SETSPI_NSR, FIRST_SPI + d->number, 0, 0);

	d->waits = r != 1;
	note(d, &d->accepted_message, r);
}

/* 0: the route has kept it. */
static void signal_route(struct device *d, uint32_t event)
{
	const int r = vgic_signal_gsi(d->stress->routes, gsi_of(d->number, event));

	d->kept[event] += r == 0;
	note(d, &d->accepted[event], r == 0 ? -EAGAIN : r);
}

static void park(struct device *d)
{
	struct stress *s = d->stress;

	store_release(&d->parked, true);
	while (load_acquire(&s->stopped))
		sched_yield();
	store_release(&d->parked, false);
}

static void *run_device(void *arg)
{
	struct device *d = arg;
	struct stress *s = d->stress;

	while (!load_acquire(&s->over)) {
		const uint32_t event = random_below(&d->random, NUM_EVENTS + 1);

		if (load_acquire(&s->stopped))
			park(d);
		if (s->routes)
			signal_route(d, event % NUM_EVENTS);
		else if (event < NUM_EVENTS)
			signal_event(d, event);
		else if (!d->waits)
			signal_message(d);
		for (uint32_t n = random_below(&d->random, 200); n; n--)
			atomic_signal_fence(memory_order_seq_cst);
	}
	return NULL;
}

/* Each device signals and notes so many times more. */
static void await_turns(struct stress *s, uint64_t turns)
{
	for (uint32_t i = 0; i < NUM_DEVICES; i++) {
		const uint64_t turn = load_acquire(&s->devices[i].turns);

		while (load_acquire(&s->devices[i].turns) < turn + turns)
			sched_yield();
	}
}

/* Everything that was accepted before now has been noted. */
static void await_notes(struct stress *s)
{
	await_turns(s, 2);
}

/* All of them have parked, or none is. */
static void set_stopped(struct stress *s, bool stopped)
{
	store_release(&s->stopped, stopped);
	for (uint32_t i = 0; i < NUM_DEVICES; i++) {
		while (load_acquire(&s->devices[i].parked) != stopped)
			sched_yield();
	}
}

/* ---- What an image says ------------------------------------------------------------------------------- */

static uint64_t get(const uint8_t *p, unsigned n)
{
	uint64_t value = 0;

	for (unsigned i = 0; i < n; i++)
		value |= (uint64_t)p[i] << (8 * i);
	return value;
}

/* The records of an array, and how many there are. */
static const uint8_t *section(const uint8_t *image, size_t size, const char *type, uint64_t *count)
{
	for (size_t at = 32; at < size; at += 16 + (get(image + at + 8, 8) + 7) / 8 * 8) {
		if (memcmp(image + at, type, 4) == 0) {
			*count = get(image + at + 16, 4);
			return image + at + 24;
		}
	}
	abort();
}

static bool lpi_is_pending(const uint8_t *image, size_t size, uint32_t lpi)
{
	uint64_t count;
	const uint8_t *r = section(image, size, "LPIS", &count);

	for (; count; count--, r += 8) {
		if (get(r, 4) == FIRST_LPI + lpi)
			return r[7] & 1;
	}
	return false;
}

static bool spi_is_pending(const uint8_t *image, size_t size, uint32_t intid)
{
	uint64_t count;
	const uint8_t *r = section(image, size, "SPIS", &count) + 24 * (intid - 32);

	return intid - 32 < count && (r[0] & 1);
}

/* Was something accepted since the last save? */
static bool was_accepted(struct stress *s, uint32_t device, uint32_t event)
{
	const uint64_t now = load_acquire(&s->devices[device].accepted[event]);
	const bool accepted = now != s->seen[device][event];

	s->seen[device][event] = now;
	return accepted;
}

static void check_lpis(struct stress *s, const uint8_t *image, size_t size)
{
	bool accepted[NUM_LPIS] = { false };

	for (uint32_t d = 0; d < NUM_DEVICES; d++) {
		for (uint32_t e = 0; e < NUM_EVENTS; e++)
			accepted[lpi_of(d, e)] |= was_accepted(s, d, e);
	}
	for (uint32_t i = 0; i < NUM_LPIS; i++) {
		const bool pending = lpi_is_pending(image, size, i);

		if (pending != accepted[i])
			run_fail(s->run, "LPI %u: %saccepted, but %spending in the image", FIRST_LPI + i,
				 accepted[i] ? "" : "not ", pending ? "" : "not ");
		s->num_pending += pending;
		s->num_clear += !pending;
	}
}

/* A message that is refused may be there all the same, but none that was accepted is missing. */
static void check_messages(struct stress *s, const uint8_t *image, size_t size)
{
	for (uint32_t d = 0; d < NUM_DEVICES; d++) {
		const uint64_t now = load_acquire(&s->devices[d].accepted_message);

		if (now != s->seen_message[d] && !spi_is_pending(image, size, FIRST_SPI + d))
			run_fail(s->run, "SPI %u: accepted, but not pending in the image", FIRST_SPI + d);
		s->seen_message[d] = now;
	}
}

/* ---- Rounds ----------------------------------------------------------------------------------------------- */

/* Take all that is pending, or as much as there can be if devices go on. */
static uint64_t drain(struct vgic *vgic)
{
	uint64_t taken = 0;

	for (uint32_t v = 0; v < NUM_VCPUS; v++) {
		struct vgic_vcpu *vcpu = vgic_vcpu_by_index(vgic, v);
		uint64_t intid;

		for (uint32_t n = 0; n <= NUM_LPIS + NUM_DEVICES &&
				     vgic_icc_read(vcpu, VGIC_ICC_IAR1_EL1, &intid) == 0 && intid != 1023;
		     n++) {
			vgic_icc_write(vcpu, VGIC_ICC_EOIR1_EL1, intid);
			taken++;
		}
	}
	return taken;
}

static uint8_t *save(struct stress *s, size_t *size)
{
	uint8_t *image;

	if (vgic_save_size(s->vgic, size))
		abort();
	image = malloc(*size);
	if (!image || vgic_save(s->vgic, image, *size, size))
		abort();
	return image;
}

/* Another controller takes the image, and delivers exactly what is pending in it. */
static void check_restored(struct stress *s, const uint8_t *image, size_t size)
{
	uint64_t pending = 0, taken;
	int err = vgic_restore(s->other, image, size, NULL);

	if (err) {
		run_fail(s->run, "the image was refused: %d", err);
		return;
	}
	for (uint32_t i = 0; i < NUM_LPIS; i++)
		pending += lpi_is_pending(image, size, i);
	for (uint32_t d = 0; d < NUM_DEVICES; d++)
		pending += spi_is_pending(image, size, FIRST_SPI + d);
	taken = drain(s->other);
	if (taken != pending)
		run_fail(s->run, "%" PRIu64 " are pending in the image, %" PRIu64 " were delivered", pending, taken);
}

/* The guest goes on elsewhere: paused before the save, and until all is taken. */
static void round_of_pause(struct stress *s)
{
	uint8_t *image;
	size_t size;

	await_turns(s, random_below(&s->random, 10));
	vgic_pause(s->vgic);
	await_notes(s);
	image = save(s, &size);
	check_lpis(s, image, size);
	check_messages(s, image, size);
	check_restored(s, image, size);
	drain(s->vgic);
	/* A message that was refused may have come behind the image. */
	await_notes(s);
	drain(s->vgic);
	vgic_resume(s->vgic);
	free(image);
}

/*
 * What was kept since the last time, and nothing else, is pending at the GSIs: it goes to the other controller. Returns
 * how many LPIs that are, of those that are not pending in the image, or of all if there is none.
 */
static uint64_t check_kept(struct stress *s, const uint8_t *image, size_t size, bool move)
{
	bool counted[NUM_LPIS] = { false };
	uint64_t num = 0;

	for (uint32_t d = 0; d < NUM_DEVICES; d++) {
		for (uint32_t e = 0; e < NUM_EVENTS; e++) {
			const bool kept = s->devices[d].kept[e] != s->seen_kept[d][e];
			const bool pending = vgic_gsi_is_pending(s->routes, gsi_of(d, e));
			const uint32_t lpi = lpi_of(d, e);

			if (kept != pending)
				run_fail(s->run, "device %u event %u: %skept, but %spending", d, e, kept ? "" : "not ",
					 pending ? "" : "not ");
			if (pending && move && vgic_signal_gsi(s->other_routes, gsi_of(d, e)) != 1)
				run_fail(s->run, "device %u event %u is not accepted over there", d, e);
			if (pending && !counted[lpi] && !(move && lpi_is_pending(image, size, lpi)))
				num++;
			counted[lpi] |= pending;
		}
	}
	return num;
}

static void forget_kept(struct stress *s)
{
	for (uint32_t d = 0; d < NUM_DEVICES; d++)
		memcpy(s->seen_kept[d], s->devices[d].kept, sizeof(s->seen_kept[d]));
}

static uint64_t num_pending(const uint8_t *image, size_t size)
{
	uint64_t num = 0;

	for (uint32_t i = 0; i < NUM_LPIS; i++)
		num += lpi_is_pending(image, size, i);
	return num;
}

/*
 * As a VMM does it: pause, stop the devices, save, and take along what their GSIs keep. Then the guest goes on over
 * there, and, as if that had failed, here too: in both places everything comes, once.
 */
static void round_of_routes(struct stress *s)
{
	uint64_t kept, taken, expected;
	uint8_t *image;
	size_t size;

	await_turns(s, random_below(&s->random, 10));
	vgic_pause(s->vgic);
	await_turns(s, random_below(&s->random, 10));
	set_stopped(s, true);
	image = save(s, &size);
	check_lpis(s, image, size);
	if (vgic_restore(s->other, image, size, NULL))
		run_fail(s->run, "the image was refused");
	expected = num_pending(image, size) + check_kept(s, image, size, true);
	taken = drain(s->other);
	if (taken != expected)
		run_fail(s->run, "%" PRIu64 " are pending, in the image or at GSIs, %" PRIu64 " were delivered",
			 expected, taken);
	taken = drain(s->vgic);
	if (taken != num_pending(image, size))
		run_fail(s->run, "%" PRIu64 " were delivered in the pause", taken);
	kept = check_kept(s, image, size, false);
	vgic_resume(s->vgic);
	taken = drain(s->vgic);
	if (taken != kept)
		run_fail(s->run, "GSIs had kept %" PRIu64 " LPIs, %" PRIu64 " were delivered behind the pause", kept,
			 taken);
	forget_kept(s);
	set_stopped(s, false);
	free(image);
}

/* Saves without a pause of their own, and pauses without a save, while signals flow: any image can be restored. */
static void round_of_storm(struct stress *s)
{
	uint8_t *image;
	size_t size;

	switch (random_below(&s->random, 4)) {
	case 0:
		vgic_pause(s->vgic);
		vgic_resume(s->vgic);
		break;
	case 1:
		vgic_its_write(s->its, GITS_CTLR, 4, 0);
		vgic_its_write(s->its, GITS_CTLR, 4, GITS_CTLR_ENABLED);
		break;
	default:
		image = save(s, &size);
		check_restored(s, image, size);
		free(image);
	}
	drain(s->vgic);
}

/* ---- The program --------------------------------------------------------------------------------------------- */

static void run_rounds(struct run *run, void (*round)(struct stress *s))
{
	struct stress *s = calloc(1, sizeof(*s));

	if (!s)
		abort();
	s->run = run;
	s->random = run->seed * 2 + 1;
	s->may_be_off = round == round_of_storm;
	set_up(s);
	if (round == round_of_routes) {
		s->routes = create_routes(s->vgic);
		s->other_routes = create_routes(s->other);
	}
	for (uint32_t i = 0; i < NUM_DEVICES; i++) {
		s->devices[i] = (struct device){ .stress = s, .number = i, .random = (run->seed << 8 | i) * 2 + 1 };
		if (pthread_create(&s->devices[i].thread, NULL, run_device, &s->devices[i]))
			abort();
	}
	for (uint64_t i = 0; i < run->iterations && !run_has_failed(run); i++)
		round(s);
	store_release(&s->over, true);
	for (uint32_t i = 0; i < NUM_DEVICES; i++) {
		pthread_join(s->devices[i].thread, NULL);
		if (!s->devices[i].refused && !run_has_failed(run))
			run_fail(run, "device %u was never told to come again", i);
	}
	if (round != round_of_storm && (!s->num_pending || !s->num_clear))
		run_fail(run, "%" PRIu64 " LPIs were pending, %" PRIu64 " not: nothing was checked", s->num_pending,
			 s->num_clear);
	vgic_routes_destroy(s->routes);
	vgic_routes_destroy(s->other_routes);
	vgic_destroy(s->vgic);
	vgic_destroy(s->other);
	free(s->ram);
	free(s);
}

static void run_pause(struct run *run)
{
	run_rounds(run, round_of_pause);
}

static void run_routes(struct run *run)
{
	run_rounds(run, round_of_routes);
}

static void run_storm(struct run *run)
{
	run_rounds(run, round_of_storm);
}

// clang-format off
static const struct scenario scenarios[] = {
	{ "state_pause", "what is accepted is in the image, nothing else is",    150, 25, run_pause },
	{ "state_routes", "the same by routes: what they keep is taken along",   100, 17, run_routes },
	{ "state_storm", "saves and pauses at any moment, images that restore",  400, 66, run_storm },
};
// clang-format on

int main(int argc, char **argv)
{
	static const struct scenario_list list = {
		.program = "state-stress",
		.what = "Saves a controller while threads signal, and compares what is in the image",
		.scenarios = scenarios,
		.num = sizeof(scenarios) / sizeof(scenarios[0]),
	};

	return scenario_main(&list, argc, argv);
}
