/* SPDX-License-Identifier: MIT */
/*
 * Fuzz target: routes, irqfds and MSI-X, called in any order with any arguments, beside
 * a guest that programs vectors and takes interrupts, and a controller that is paused.
 *
 * Beside it goes a model (route_model.h) that is told of each call and knows what comes
 * of it: the result, each pending bit, each interrupt that the guest takes, each signal
 * of a resamplefd. Nothing may be lost, and nothing may come that is not due.
 *
 * Eventfds are watched by a loop of this program, so that everything has its place in
 * the input. The controller is the same for all inputs: each leaves it as it was.
 */
#include <errno.h>
#include <gic_arch.h>
#include <its_arch.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <vgic/msix.h>
#include <vgic/state.h>

#include "check.h"
#include "fuzz.h"
#include "route_model.h"

#define MAX_STEPS 128u
#define NUM_TXNS  3u
#define NUM_FDS   6u

#define RAM_BASE 0x40000000ull
#define RAM_SIZE 0x60000u

static struct vgic *vgic;
static struct vgic_its *its;
static struct vgic_vcpu *vcpu;
static uint8_t *ram;
static int fds[NUM_FDS], resamplefds[NUM_FDS];

static struct vgic_routes *routes;
static struct vgic_irqfds *irqfds;
static struct vgic_msix *msix;
static struct vgic_route_txn txns[NUM_TXNS];
static struct model model;

/* ---- The controller and its guest ------------------------------------------------------- */

static int on_read(void *opaque, uint64_t address, void *buffer, size_t size)
{
	(void)opaque;
	if (address < RAM_BASE || address - RAM_BASE > RAM_SIZE - size)
		return -EFAULT;
	memcpy(buffer, ram + (address - RAM_BASE), size);
	return 0;
}

static int on_write(void *opaque, uint64_t address, const void *buffer, size_t size)
{
	(void)opaque;
	if (address < RAM_BASE || address - RAM_BASE > RAM_SIZE - size)
		return -EFAULT;
	memcpy(ram + (address - RAM_BASE), buffer, size);
	return 0;
}

static void command(const uint64_t dw[4])
{
	static uint64_t at;

	memcpy(ram + 0x30000 + at, dw, ITS_CMD_SIZE);
	at = (at + ITS_CMD_SIZE) % GITS_QUEUE_PAGE;
	check(vgic_its_write(its, GITS_CWRITER, 8, at) == 0);
	while (vgic_run_work(vgic))
		;
}

static void program_its(void)
{
	const uint64_t valid = 1ull << 63;

	memset(ram, 0xa1, 8192);
	vgic_redist_write(vcpu, GICR_PROPBASER, 8, RAM_BASE | 13);
	vgic_redist_write(vcpu, GICR_PENDBASER, 8, (RAM_BASE + 0x10000) | GICR_PENDBASER_PTZ);
	vgic_redist_write(vcpu, GICR_CTLR, 4, GICR_CTLR_ENABLE_LPIS);
	vgic_its_write(its, GITS_CBASER, 8, valid | (RAM_BASE + 0x30000));
	vgic_its_write(its, GITS_BASER0, 8, valid | (RAM_BASE + 0x40000));
	vgic_its_write(its, GITS_BASER1, 8, valid | (RAM_BASE + 0x50000));
	vgic_its_write(its, GITS_CTLR, 4, GITS_CTLR_ENABLED);
	command((uint64_t[4]){ ITS_CMD_MAPC, 0, valid, 0 });
	for (uint64_t d = 0; d < MODEL_DEVICES; d++) {
		command((uint64_t[4]){ ITS_CMD_MAPD | d << 32, 2, (RAM_BASE + 0x20000 + 0x100 * d) | valid, 0 });
		for (uint64_t e = 0; e < MODEL_EVENTS; e++)
			command((uint64_t[4]){ ITS_CMD_MAPTI | d << 32, e | (8192 + d * MODEL_EVENTS + e) << 32, 0,
					       0 });
	}
}

static void create_controller(void)
{
	const struct vgic_vcpu_config vcpus = { .id = 0 };
	const struct vgic_its_config its_config = {
		.has_base = true, .base = MODEL_ITS_BASE, .device_id_bits = 4, .event_id_bits = 4
	};
	struct vgic_config config;

	ram = calloc(1, RAM_SIZE);
	vgic_config_init(&config, VGIC_PROFILE_NATIVE);
	config.features |= VGIC_FEATURE_LPIS | VGIC_FEATURE_MBIS;
	config.num_spis = MODEL_SPIS;
	config.lpi_id_bits = 14;
	config.num_vcpus = 1;
	config.vcpus = &vcpus;
	config.has_dist_base = true;
	config.dist_base = MODEL_DIST_BASE;
	config.num_itses = 1;
	config.itses = &its_config;
	config.ops.guest_read = on_read;
	config.ops.guest_write = on_write;
	check(vgic_create(&config, &vgic) == 0);
	its = vgic_its_by_index(vgic, 0);
	vcpu = vgic_vcpu_by_index(vgic, 0);
	/* All in Group 1 with priority 0xa0 and enabled; the first half edge-triggered, the second level-sensitive. */
	vgic_dist_write(vgic, GICD_CTLR, 4, GICD_CTLR_ENABLE_GRP1);
	vgic_dist_write(vgic, GICD_IGROUPR + 4, 4, UINT32_MAX);
	for (uint32_t i = 0; i < MODEL_SPIS; i += 4)
		vgic_dist_write(vgic, GICD_IPRIORITYR + 32 + i, 4, 0xa0a0a0a0);
	vgic_dist_write(vgic, GICD_ICFGR + 8, 4, 0xaaaaaaaa);
	vgic_dist_write(vgic, GICD_ISENABLER + 4, 4, UINT32_MAX);
	vgic_redist_write(vcpu, GICR_WAKER, 4, 0);
	vgic_icc_write(vcpu, VGIC_ICC_PMR_EL1, 0xf8);
	vgic_icc_write(vcpu, VGIC_ICC_IGRPEN1_EL1, 1);
	program_its();
	for (unsigned i = 0; i < NUM_FDS; i++) {
		fds[i] = eventfd(0, EFD_NONBLOCK);
		resamplefds[i] = eventfd(0, EFD_NONBLOCK);
		check(fds[i] >= 0 && resamplefds[i] >= 0);
	}
}

/* Acknowledge an interrupt, or end the one that is being handled. */
static void take_or_end(void)
{
	uint64_t intid = 0;

	if (model.running) {
		check(vgic_icc_write(vcpu, VGIC_ICC_EOIR1_EL1, model.running) == 0);
		model_end(&model);
		return;
	}
	check(vgic_icc_read(vcpu, VGIC_ICC_IAR1_EL1, &intid) == 0);
	check(model_take(&model, (uint32_t)intid));
}

/* ---- The loop that watches eventfds ------------------------------------------------------- */

static uint64_t tokens[NUM_FDS]; /* 0: not watched */
static struct {
	unsigned fd;
	uint64_t token;
} due[64];
static unsigned num_due;

static unsigned fd_number(int fd)
{
	unsigned i = 0;

	while (i < NUM_FDS && fds[i] != fd)
		i++;
	return i;
}

static int watch(void *opaque, int fd, uint64_t token)
{
	const unsigned n = fd_number(fd);

	(void)opaque;
	check(token && !tokens[n]);
	if (model.watch_fails)
		return -ENOMEM;
	tokens[n] = token;
	if (model.fds[n].is_signalled && num_due < 64) {
		due[num_due].fd = n;
		due[num_due++].token = token;
	}
	return 0;
}

static void unwatch(void *opaque, int fd, uint64_t token)
{
	const unsigned n = fd_number(fd);

	(void)opaque;
	check(tokens[n] == token);
	tokens[n] = 0;
}

static void ready(unsigned n, uint64_t token)
{
	const int expected = tokens[n] == token ? model_event(&model, n) : -ENOENT;

	check(vgic_irqfd_ready(irqfds, token) == expected);
}

/* What was signalled before it was watched. */
static void do_due(void)
{
	for (unsigned i = 0; i < num_due; i++)
		ready(due[i].fd, due[i].token);
	num_due = 0;
}

static void signal_fd(struct input *input)
{
	const unsigned n = input_u8(input) % NUM_FDS;
	const uint64_t one = 1;

	check(write(fds[n], &one, sizeof(one)) == (ssize_t)sizeof(one));
	model.fds[n].is_signalled = true;
	if (tokens[n])
		ready(n, tokens[n]);
}

/* A token of an irqfd that is gone, or of none. */
static void signal_stranger(struct input *input)
{
	const uint64_t token = input_u64(input);

	for (unsigned i = 0; i < NUM_FDS; i++) {
		if (tokens[i] == token)
			return;
	}
	check(vgic_irqfd_ready(irqfds, token) == -ENOENT);
}

static void assign(struct input *input)
{
	const uint8_t how = input_u8(input);
	const unsigned n = how % NUM_FDS;
	const uint32_t gsi = input_u8(input) % (MODEL_GSIS + 2);
	const int resamplefd = how & 0x40 ? resamplefds[n] : VGIC_NO_FD;

	model.watch_fails = how & 0x80;
	check(vgic_irqfd_assign(irqfds, gsi, fds[n], resamplefd) == model_assign(&model, n, gsi, resamplefd >= 0));
	model.watch_fails = false;
	do_due();
}

static void deassign(struct input *input)
{
	const unsigned n = input_u8(input) % NUM_FDS;
	const uint8_t gsi = input_u8(input);
	const uint32_t which = gsi & 0x80 && model.fds[n].is_assigned ? model.fds[n].gsi : gsi % (MODEL_GSIS + 2);

	check(vgic_irqfd_deassign(irqfds, which, fds[n]) == model_deassign(&model, n, which));
}

/* ---- Routes ------------------------------------------------------------------------------------ */

static uint64_t read_doorbell(struct input *input)
{
	const uint8_t how = input_u8(input);

	switch (how % 4) {
	case 0:
	case 1:
		return MODEL_ITS_BASE + VGIC_ITS_DOORBELL;
	case 2:
		return MODEL_DIST_BASE + GICD_SETSPI_NSR;
	default:
		return how & 0x80 ? MODEL_ITS_BASE + how : input_u32(input);
	}
}

static void read_route(struct input *input, struct vgic_route *route)
{
	const uint8_t how = input_u8(input);

	memset(route, 0, sizeof(*route));
	route->type = (how & 7) == 7 ? (enum vgic_route_type)input_u8(input) : (enum vgic_route_type)(how & 3) % 3;
	route->flags = (how >> 3 & 7) == 7 ? input_u8(input) : how >> 3 & 1;
	if (route->type == VGIC_ROUTE_SPI) {
		route->to.spi.intid = 30 + input_u8(input) % 40;
		route->to.spi.source = input_u8(input) % 26;
		if (how & 0x80)
			route->flags = 0;
	} else if (route->type == VGIC_ROUTE_MSI) {
		route->to.msi.address = read_doorbell(input);
		route->to.msi.data = how & 0x40 ? input_u32(input) : input_u8(input) % 64;
		route->to.msi.devid = input_u8(input) % 6;
		route->to.msi.msi_flags = input_u8(input) < 0xf0 ? VGIC_MSI_VALID_DEVID : 2;
		route->to.msi.reserved = how == 0xff;
	}
}

static bool same_route(const struct vgic_route *a, const struct vgic_route *b)
{
	if (a->type != b->type || a->flags != b->flags)
		return false;
	if (a->type == VGIC_ROUTE_SPI)
		return a->to.spi.intid == b->to.spi.intid && a->to.spi.source == b->to.spi.source;
	return a->type != VGIC_ROUTE_MSI ||
	       (a->to.msi.address == b->to.msi.address && a->to.msi.data == b->to.msi.data &&
		a->to.msi.devid == b->to.msi.devid && a->to.msi.msi_flags == b->to.msi.msi_flags);
}

static void set_route(struct input *input)
{
	const uint32_t gsi = input_u8(input) % (MODEL_GSIS + 1);
	struct vgic_route route;

	read_route(input, &route);
	check(vgic_route_set(routes, gsi, &route) == model_set(&model, gsi, &route));
}

static void use_txn(struct input *input)
{
	const uint8_t how = input_u8(input);
	const unsigned n = how % NUM_TXNS;
	struct vgic_route_txn copy;
	struct vgic_route route;
	uint32_t gsi;

	if (!model.txns[n]) {
		vgic_route_txn_commit(&txns[n]);
		vgic_route_txn_abort(&txns[n]);
		check(vgic_route_txn_begin(routes, &txns[n]) == 0);
		model.txns[n] = true;
		return;
	}
	switch (how >> 4) {
	case 0:
		vgic_route_txn_commit(&txns[n]);
		model_commit(&model, n);
		break;
	case 1:
		vgic_route_txn_abort(&txns[n]);
		model_abort(&model, n);
		break;
	case 2:
		/* A copy of it, and then itself: nothing is left to do. */
		copy = txns[n];
		vgic_route_txn_commit(&copy);
		vgic_route_txn_commit(&txns[n]);
		model_commit(&model, n);
		break;
	default:
		gsi = input_u8(input) % (MODEL_GSIS + 1);
		read_route(input, &route);
		check(vgic_route_txn_set(&txns[n], gsi, &route) == model_stage(&model, n, gsi, &route));
		break;
	}
}

/* ---- MSI-X ---------------------------------------------------------------------------------------- */

static void create_msix(void)
{
	struct vgic_msix_config config;

	if (msix) {
		vgic_msix_destroy(msix);
		msix = NULL;
		model_msix_destroy(&model);
		return;
	}
	vgic_msix_config_init(&config);
	config.num_vectors = MODEL_VECTORS;
	config.routes = routes;
	config.first_gsi = MODEL_FIRST_VECTOR;
	config.devid = 1;
	config.irqfds = irqfds;
	check(vgic_msix_create(&config, &msix) == model_msix_create(&model));
}

static void write_table(struct input *input)
{
	const uint8_t how = input_u8(input);
	const unsigned width = how & 0x40 ? 8 : how & 0x80 ? 1u << (how >> 4 & 3) : 4;
	const uint32_t offset = how & 0x80 ? input_u8(input) : (how & 7u) * 16 + (how >> 3 & 3u) * 4;
	uint64_t value = how & 0x20 ? input_u64(input) : input_u8(input);
	uint64_t seen = 0;

	if (offset % 16 == 0 && !(how & 0x20))
		value = read_doorbell(input);
	check(vgic_msix_table_write(msix, offset, width, value) == model_table_write(&model, offset, width, value));
	if (vgic_msix_table_read(msix, offset & ~7u, 8, &seen) == 0)
		check(seen == model_table_read(&model, offset & ~7u));
}

static void bind(struct input *input, bool enable)
{
	struct vgic_msix_vector vectors[MODEL_VECTORS + 1];
	const uint32_t num = input_u8(input) % (MODEL_VECTORS + 2);
	int eventfds[MODEL_VECTORS + 1];
	unsigned numbers[MODEL_VECTORS + 1];
	uint32_t failed = 0, model_failed = 0;

	memset(vectors, 0, sizeof(vectors));
	for (uint32_t i = 0; i < num; i++) {
		const uint8_t how = input_u8(input);

		numbers[i] = how % (NUM_FDS + 2);
		eventfds[i] = numbers[i] < NUM_FDS ? fds[numbers[i]] : VGIC_NO_FD;
		vectors[i].address = enable ? read_doorbell(input) : 0;
		vectors[i].data = how >> 4;
		vectors[i].control = how == 0xff ? 2 : how >> 3 & 1;
		vectors[i].eventfd = eventfds[i];
	}
	if (enable)
		check(vgic_msix_enable(msix, vectors, num, &failed) ==
		      model_msix_enable(&model, vectors, numbers, num, &model_failed));
	else
		check(vgic_msix_bind(msix, eventfds, num, &failed) ==
		      model_msix_bind(&model, numbers, num, &model_failed));
	check(failed == model_failed);
	do_due();
}

static void use_msix(struct input *input)
{
	const uint8_t how = input_u8(input);

	if (!msix || how == 0xff) {
		create_msix();
		return;
	}
	switch (how % 10) {
	case 0:
	case 1:
		write_table(input);
		break;
	case 2:
		vgic_msix_write_control(msix, (uint16_t)(how << 8));
		model_msix_control(&model, how & 0x80, how & 0x40);
		break;
	case 3:
		bind(input, false);
		break;
	case 4:
		bind(input, true);
		break;
	case 5:
		vgic_msix_unbind(msix);
		model_msix_unbind(&model);
		break;
	case 6:
		vgic_msix_disable(msix);
		model_msix_unbind(&model);
		model_msix_control(&model, false, model.msix.function_masked);
		break;
	case 7:
		vgic_msix_reset(msix);
		model_msix_reset(&model);
		break;
	case 8:
		check((how & 16 ? vgic_msix_mask : vgic_msix_unmask)(msix, how >> 5) == 0);
		check(model_table_write(&model, (how >> 5) * 16u + 12, 4, how & 16 ? 1 : 0) == 0);
		break;
	default:
		check(vgic_msix_signal(msix, how >> 4) ==
		      (how >> 4 < MODEL_VECTORS ? model_signal(&model, MODEL_FIRST_VECTOR + (how >> 4)) : -EINVAL));
		break;
	}
}

/* ---- Steps -------------------------------------------------------------------------------------------- */

static void signal_gsi(struct input *input)
{
	const uint8_t how = input_u8(input);
	const uint32_t gsi = how % (MODEL_GSIS + 1);

	switch (how >> 6) {
	case 0:
		check(vgic_signal_gsi(routes, gsi) == (gsi < MODEL_GSIS ? model_signal(&model, gsi) : -EINVAL));
		break;
	case 1:
		check(vgic_irqfds_signal(irqfds, gsi) == (gsi < MODEL_GSIS ? model_edge(&model, gsi) : -EINVAL));
		break;
	default:
		check(vgic_set_gsi(routes, gsi, how >> 6 & 1) ==
		      (gsi < MODEL_GSIS ? model_drive(&model, gsi, how >> 6 & 1) : -EINVAL));
		break;
	}
}

/* A device that does without a route. */
static void signal_msi(struct input *input)
{
	const uint32_t data = input_u8(input) % 12, devid = input_u8(input) % 6;
	const struct vgic_route route = { .type = VGIC_ROUTE_MSI,
					  .to.msi = { .address = MODEL_ITS_BASE + VGIC_ITS_DOORBELL,
						      .data = data,
						      .devid = devid,
						      .msi_flags = VGIC_MSI_VALID_DEVID } };

	check(vgic_signal_msi(vgic, route.to.msi.address, data, devid, VGIC_MSI_VALID_DEVID) ==
	      model_deliver(&model, &route));
}

static void pause_or_resume(bool pause)
{
	if (pause && model.pauses < 3) {
		check(vgic_pause(vgic) == 0);
		model.pauses++;
		return;
	}
	check(vgic_resume(vgic) == (model.pauses ? 0 : -EINVAL));
	model_resume(&model);
}

static void switch_its(bool on)
{
	check(vgic_its_write(its, GITS_CTLR, 4, on ? GITS_CTLR_ENABLED : 0) == 0);
	while (vgic_run_work(vgic))
		;
	model.its_is_off = !on;
}

static void clear_message(uint32_t intid)
{
	check(vgic_dist_write(vgic, GICD_CLRSPI_NSR, 4, intid) == 0);
	model_clear_message(&model, intid);
}

static void make_step(struct input *input)
{
	const uint8_t step = input_u8(input);

	switch (step % 12) {
	case 0:
	case 1:
		signal_gsi(input);
		break;
	case 2:
		take_or_end();
		break;
	case 3:
		set_route(input);
		break;
	case 4:
		use_txn(input);
		break;
	case 5:
	case 6:
		use_msix(input);
		break;
	case 7:
		assign(input);
		break;
	case 8:
		if (step & 0x80)
			signal_stranger(input);
		else
			signal_fd(input);
		break;
	case 9:
		deassign(input);
		break;
	case 10:
		pause_or_resume(step & 0x80);
		break;
	default:
		if (step & 0x80)
			switch_its(step & 0x40);
		else if (step & 0x40)
			signal_msi(input);
		else
			clear_message(32 + input_u8(input) % MODEL_SPIS);
		break;
	}
}

/* ---- What can be seen ------------------------------------------------------------------------------------- */

static void check_resamplefds(void)
{
	for (unsigned i = 0; i < NUM_FDS; i++) {
		uint64_t count = 0;

		if (model.fds[i].num_resamples == 0)
			continue;
		check(read(resamplefds[i], &count, sizeof(count)) == (ssize_t)sizeof(count));
		check(count == model.fds[i].num_resamples);
		model.fds[i].num_resamples = 0;
	}
}

static void check_routes(void)
{
	for (uint32_t gsi = 0; gsi < MODEL_GSIS; gsi++) {
		struct vgic_route route;

		check(vgic_gsi_is_pending(routes, gsi) == model.gsis[gsi].kept);
		check(vgic_route_get(routes, gsi, &route) == 0 && same_route(&route, &model.gsis[gsi].route));
	}
}

static void check_msix(void)
{
	uint64_t bits = 0, expected = 0;

	check(vgic_msix_num_unroutable(msix) == model.msix.num_unroutable);
	check(vgic_msix_read_control(msix) == model_control(&model));
	for (uint32_t i = 0; i < MODEL_VECTORS; i++) {
		const struct model_vector *v = &model.msix.vectors[i];
		struct vgic_msix_vector seen;

		check(vgic_msix_get_vector(msix, i, &seen) == 0);
		check(seen.address == v->address && seen.data == v->data && seen.control == v->control);
		check(seen.eventfd == (v->fd ? fds[v->fd - 1] : VGIC_NO_FD));
		expected |= (uint64_t)model.gsis[MODEL_FIRST_VECTOR + i].kept << i;
	}
	check(vgic_msix_pba_read(msix, 0, 8, &bits) == 0 && bits == expected);
}

static void check_all(void)
{
	uint64_t pending = 0;

	check(vgic_dist_read(vgic, GICD_ISPENDR + 4, 4, &pending) == 0);
	check(pending == model_pending_spis(&model));
	check_routes();
	check_resamplefds();
	if (msix)
		check_msix();
}

static void check_stats(void)
{
	struct vgic_routes_stats r = { .size = sizeof(r) };
	struct vgic_irqfds_stats i = { .size = sizeof(i) };
	uint64_t count = 0;

	check(vgic_routes_get_stats(routes, &r) == 0);
	check(r.unrouted == model.num_unrouted && r.kept == model.num_kept);
	check(vgic_irqfds_get_stats(irqfds, &i) == 0);
	check(i.direct == model.num_direct && i.coalesced == model.num_coalesced && i.dropped == model.num_dropped);
	check(i.num_assigned == model_num_assigned(&model) && i.deferred == 0);
	for (unsigned n = 0; n < NUM_FDS; n++)
		check(read(resamplefds[n], &count, sizeof(count)) < 0);
}

static void create_tables(void)
{
	struct vgic_irqfds_config config;

	check(vgic_routes_create(vgic, MODEL_GSIS, &routes) == 0);
	vgic_irqfds_config_init(&config);
	config.door = VGIC_IRQFD_LOOP;
	config.max_irqfds = MODEL_MAX_IRQFDS;
	config.ops.watch = watch;
	config.ops.unwatch = unwatch;
	check(vgic_irqfds_create(routes, &config, &irqfds) == 0);
	memset(txns, 0, sizeof(txns));
}

/* In whatever state they are: transactions open, events kept, lines high, in a pause. */
static void destroy_tables(void)
{
	check_stats();
	if (msix)
		model_msix_destroy(&model);
	vgic_msix_destroy(msix);
	msix = NULL;
	model_drop_irqfds(&model);
	vgic_irqfds_destroy(irqfds);
	model_drop_routes(&model);
	vgic_routes_destroy(routes);
	check_resamplefds();
}

/* Nothing may be left but what the model knows of. */
static void come_to_rest(void)
{
	uint64_t count;

	while (model.pauses)
		pause_or_resume(false);
	if (model.its_is_off)
		switch_its(true);
	for (uint32_t i = 0; i < MODEL_SPIS; i++)
		clear_message(32 + i);
	for (unsigned n = 0; model.running || !model.at_rest; n++) {
		check(n < 1000);
		take_or_end();
	}
	for (unsigned i = 0; i < NUM_FDS; i++) {
		while (read(fds[i], &count, sizeof(count)) > 0)
			;
	}
	check_resamplefds();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input input = { data, size };

	if (!vgic)
		create_controller();
	memset(&model, 0, sizeof(model));
	for (unsigned round = 0; round < 2 && !input_is_empty(&input); round++) {
		create_tables();
		for (unsigned i = 0; i < MAX_STEPS && !input_is_empty(&input); i++) {
			make_step(&input);
			check_all();
		}
		destroy_tables();
		model_new_tables(&model);
	}
	come_to_rest();
	return 0;
}
