/* SPDX-License-Identifier: MIT */
/* The model of the target `route`: see route_model.h. */
#include "route_model.h"

#include <errno.h>
#include <string.h>

#include "check.h"

#define DOORBELL_ITS    (MODEL_ITS_BASE + VGIC_ITS_DOORBELL)
#define DOORBELL_SETSPI (MODEL_DIST_BASE + 0x40)

static const struct vgic_route nowhere = { .type = VGIC_ROUTE_NONE };

/* ---- Interrupts ----------------------------------------------------------------------- */

static bool is_level(uint32_t spi)
{
	return spi >= MODEL_FIRST_LEVEL;
}

static bool spi_is_pending(const struct model *m, uint32_t spi)
{
	return m->spi_latch[spi] || (is_level(spi) && m->spi_sources[spi]);
}

uint32_t model_pending_spis(const struct model *m)
{
	uint32_t bits = 0;

	for (uint32_t i = 0; i < MODEL_SPIS; i++)
		bits |= (uint32_t)spi_is_pending(m, i) << i;
	return bits;
}

static bool something_is_pending(const struct model *m)
{
	for (uint32_t i = 0; i < MODEL_LPIS; i++) {
		if (m->lpis[i])
			return true;
	}
	return model_pending_spis(m) != 0;
}

bool model_take(struct model *m, uint32_t intid)
{
	if (intid == 1023) {
		m->at_rest = true;
		return !something_is_pending(m);
	}
	m->at_rest = false;
	m->running = intid;
	if (intid >= 8192) {
		if (intid - 8192 >= MODEL_LPIS || !m->lpis[intid - 8192])
			return false;
		m->lpis[intid - 8192] = false;
		return true;
	}
	if (intid - 32 >= MODEL_SPIS || !spi_is_pending(m, intid - 32))
		return false;
	m->spi_latch[intid - 32] = false;
	m->spi_active[intid - 32] = true;
	return true;
}

static bool is_pin(const struct vgic_route *route, uint32_t spi, uint32_t source)
{
	return route->type == VGIC_ROUTE_SPI && route->to.spi.intid == 32 + spi && route->to.spi.source == source;
}

static uint32_t owner_of(const struct model *m, uint32_t spi, uint32_t source)
{
	for (uint32_t gsi = 0; gsi < MODEL_GSIS; gsi++) {
		if (is_pin(&m->gsis[gsi].route, spi, source))
			return gsi;
	}
	return MODEL_NOBODY;
}

static void resample(struct model *m, uint32_t gsi)
{
	const uint32_t fd = m->gsis[gsi].resampler;

	if (fd)
		m->fds[fd - 1].num_resamples++;
}

/* The deactivation lowers what is resampled, and asks for it. */
void model_end(struct model *m)
{
	const uint32_t spi = m->running - 32;

	m->at_rest = false;
	if (m->running < 8192) {
		m->spi_active[spi] = false;
		for (uint32_t s = 0; s < VGIC_NUM_LINE_SOURCES && is_level(spi); s++) {
			const uint32_t owner = owner_of(m, spi, s);

			if (!(m->spi_sources[spi] >> s & 1) || owner == MODEL_NOBODY || !m->gsis[owner].resampler)
				continue;
			m->spi_sources[spi] &= ~(1u << s);
			resample(m, owner);
		}
	}
	m->running = 0;
}

void model_clear_message(struct model *m, uint32_t intid)
{
	if (is_level(intid - 32))
		m->spi_sources[intid - 32] &= ~MODEL_MESSAGE;
	else
		m->spi_latch[intid - 32] = false;
}

/* ---- Events ------------------------------------------------------------------------------ */

static int message_spi(struct model *m, uint32_t intid)
{
	if (intid - 32 >= MODEL_SPIS)
		return 0;
	if (is_level(intid - 32))
		m->spi_sources[intid - 32] |= MODEL_MESSAGE;
	else
		m->spi_latch[intid - 32] = true;
	return m->pauses ? -EAGAIN : 1;
}

int model_deliver(struct model *m, const struct vgic_route *route)
{
	const struct vgic_route_msi *msi = &route->to.msi;

	m->at_rest = false;
	if (route->type == VGIC_ROUTE_NONE) {
		m->num_unrouted++;
		return -ENOENT;
	}
	if (route->type == VGIC_ROUTE_SPI) {
		if (is_level(route->to.spi.intid - 32))
			return 0;
		m->spi_latch[route->to.spi.intid - 32] = true;
		return 1;
	}
	if (msi->address == DOORBELL_SETSPI)
		return message_spi(m, msi->data);
	if (m->pauses)
		return -EAGAIN;
	if (m->its_is_off)
		return -EBUSY;
	if (msi->devid >= MODEL_DEVICES || msi->data >= MODEL_EVENTS)
		return 0;
	m->lpis[msi->devid * MODEL_EVENTS + msi->data] = true;
	return 1;
}

static int keep(struct model *m, uint32_t gsi)
{
	m->gsis[gsi].kept = true;
	m->num_kept++;
	return 0;
}

int model_signal(struct model *m, uint32_t gsi)
{
	int result;

	if (m->gsis[gsi].route.flags & VGIC_ROUTE_MASKED)
		return keep(m, gsi);
	result = model_deliver(m, &m->gsis[gsi].route);
	return result == -EAGAIN ? keep(m, gsi) : result;
}

int model_edge(struct model *m, uint32_t gsi)
{
	const int result = model_signal(m, gsi);

	if (result == 1)
		m->num_direct++;
	else
		m->num_dropped++;
	return result;
}

static bool drive(struct model *m, uint32_t gsi, bool level)
{
	const struct vgic_route_spi *spi = &m->gsis[gsi].route.to.spi;
	uint32_t *sources = &m->spi_sources[spi->intid - 32];
	const bool changed = (*sources >> spi->source & 1) != level;

	m->at_rest = false;
	if (level && !*sources && !is_level(spi->intid - 32))
		m->spi_latch[spi->intid - 32] = true;
	*sources = level ? *sources | 1u << spi->source : *sources & ~(1u << spi->source);
	return changed;
}

int model_drive(struct model *m, uint32_t gsi, bool level)
{
	if (m->gsis[gsi].route.type == VGIC_ROUTE_SPI)
		return drive(m, gsi, level);
	return level ? model_signal(m, gsi) : 0;
}

int model_event(struct model *m, unsigned fd)
{
	const uint32_t gsi = m->fds[fd].gsi;

	if (!m->fds[fd].resamples || m->gsis[gsi].route.type != VGIC_ROUTE_SPI)
		return model_edge(m, gsi);
	if (drive(m, gsi, true))
		m->num_direct++;
	else
		m->num_coalesced++;
	return 1;
}

/* ---- Routes --------------------------------------------------------------------------------- */

static bool leads_to_msi(const struct vgic_route *route)
{
	return route->type == VGIC_ROUTE_MSI;
}

/* What was kept is delivered if nothing holds it up any more. */
static void settle(struct model *m, uint32_t gsi)
{
	struct model_gsi *g = &m->gsis[gsi];

	if (!g->kept || (g->route.flags & VGIC_ROUTE_MASKED) || (leads_to_msi(&g->route) && m->pauses))
		return;
	g->kept = false;
	model_deliver(m, &g->route);
}

void model_resume(struct model *m)
{
	if (!m->pauses || --m->pauses)
		return;
	for (uint32_t gsi = 0; gsi < MODEL_GSIS; gsi++)
		settle(m, gsi);
}

static int check_route(const struct vgic_route *route)
{
	const struct vgic_route_msi *msi = &route->to.msi;

	if (route->flags & ~VGIC_ROUTE_MASKED)
		return -EINVAL;
	switch (route->type) {
	case VGIC_ROUTE_NONE:
		return 0;
	case VGIC_ROUTE_SPI:
		return route->flags || route->to.spi.intid < 32 || route->to.spi.intid >= 32 + MODEL_SPIS ||
				       route->to.spi.source >= VGIC_NUM_LINE_SOURCES ?
			       -EINVAL :
			       0;
	case VGIC_ROUTE_MSI:
		if (msi->reserved || (msi->msi_flags & ~VGIC_MSI_VALID_DEVID))
			return -EINVAL;
		if (msi->address == DOORBELL_ITS)
			return msi->msi_flags ? 0 : -EINVAL;
		return msi->address == DOORBELL_SETSPI ? 0 : -ENODEV;
	}
	return -EINVAL;
}

/* A source of a line is for one GSI, by what it is and by what it will be. */
static bool pin_is_free(const struct model *m, uint32_t gsi, const struct vgic_route *route)
{
	for (uint32_t i = 0; i < MODEL_GSIS && route->type == VGIC_ROUTE_SPI; i++) {
		const struct model_gsi *other = &m->gsis[i];
		const struct vgic_route *wanted = other->txn ? &other->staged : &other->route;

		if (i == gsi)
			continue;
		if (is_pin(&other->route, route->to.spi.intid - 32, route->to.spi.source) ||
		    is_pin(wanted, route->to.spi.intid - 32, route->to.spi.source))
			return false;
	}
	return true;
}

/* The route as it is from now on; the level does not move along. */
static void change(struct model *m, uint32_t gsi, const struct vgic_route *route)
{
	struct model_gsi *g = &m->gsis[gsi];
	const struct vgic_route old = g->route;
	const struct vgic_route_spi *spi = &old.to.spi;

	g->route = *route;
	if (old.type == VGIC_ROUTE_SPI && !is_pin(route, spi->intid - 32, spi->source)) {
		m->spi_sources[spi->intid - 32] &= ~(1u << spi->source);
		resample(m, gsi);
	}
	settle(m, gsi);
}

int model_set(struct model *m, uint32_t gsi, const struct vgic_route *route)
{
	int err = gsi < MODEL_GSIS ? check_route(route) : -EINVAL;

	if (!err && (m->gsis[gsi].is_claimed || m->gsis[gsi].txn || !pin_is_free(m, gsi, route)))
		err = -EBUSY;
	if (!err)
		change(m, gsi, route);
	return err;
}

int model_stage(struct model *m, unsigned txn, uint32_t gsi, const struct vgic_route *route)
{
	int err = gsi < MODEL_GSIS ? check_route(route) : -EINVAL;

	if (!err && (m->gsis[gsi].is_claimed || (m->gsis[gsi].txn && m->gsis[gsi].txn != txn + 1) ||
		     !pin_is_free(m, gsi, route)))
		err = -EBUSY;
	if (!err) {
		m->gsis[gsi].txn = txn + 1;
		m->gsis[gsi].staged = *route;
	}
	return err;
}

void model_commit(struct model *m, unsigned txn)
{
	for (uint32_t gsi = 0; gsi < MODEL_GSIS; gsi++) {
		if (m->gsis[gsi].txn != txn + 1)
			continue;
		m->gsis[gsi].txn = 0;
		change(m, gsi, &m->gsis[gsi].staged);
	}
	m->txns[txn] = false;
}

void model_abort(struct model *m, unsigned txn)
{
	for (uint32_t gsi = 0; gsi < MODEL_GSIS; gsi++) {
		if (m->gsis[gsi].txn == txn + 1)
			m->gsis[gsi].txn = 0;
	}
	m->txns[txn] = false;
}

/* ---- Irqfds ------------------------------------------------------------------------------------- */

unsigned model_num_assigned(const struct model *m)
{
	unsigned num = 0;

	for (unsigned i = 0; i < MODEL_FDS; i++)
		num += m->fds[i].is_assigned;
	return num;
}

static void leave_line(struct model *m, uint32_t gsi)
{
	const struct vgic_route *route = &m->gsis[gsi].route;

	m->gsis[gsi].resampler = 0;
	if (route->type == VGIC_ROUTE_SPI)
		m->spi_sources[route->to.spi.intid - 32] &= ~(1u << route->to.spi.source);
}

int model_assign(struct model *m, unsigned fd, uint32_t gsi, bool resamples)
{
	if (gsi >= MODEL_GSIS)
		return -EINVAL;
	if (m->fds[fd].is_assigned)
		return -EBUSY;
	if (model_num_assigned(m) == MODEL_MAX_IRQFDS)
		return -ENOSPC;
	if (resamples && m->gsis[gsi].resampler)
		return -EBUSY;
	if (m->watch_fails) {
		if (resamples)
			leave_line(m, gsi);
		return -ENOMEM;
	}
	if (resamples)
		m->gsis[gsi].resampler = fd + 1;
	m->fds[fd].is_assigned = true;
	m->fds[fd].gsi = gsi;
	m->fds[fd].resamples = resamples;
	return 0;
}

int model_deassign(struct model *m, unsigned fd, uint32_t gsi)
{
	if (gsi >= MODEL_GSIS)
		return -EINVAL;
	if (!m->fds[fd].is_assigned || m->fds[fd].gsi != gsi)
		return -ENOENT;
	m->fds[fd].is_assigned = false;
	if (m->fds[fd].resamples)
		leave_line(m, gsi);
	return 0;
}

void model_drop_irqfds(struct model *m)
{
	for (unsigned i = 0; i < MODEL_FDS; i++) {
		if (m->fds[i].is_assigned)
			model_deassign(m, i, m->fds[i].gsi);
	}
}

void model_drop_routes(struct model *m)
{
	for (unsigned i = 0; i < MODEL_MAX_TXNS; i++)
		model_abort(m, i);
	for (uint32_t gsi = 0; gsi < MODEL_GSIS; gsi++)
		leave_line(m, gsi);
}

void model_new_tables(struct model *m)
{
	memset(m->gsis, 0, sizeof(m->gsis));
	m->num_unrouted = 0;
	m->num_kept = 0;
	m->num_direct = 0;
	m->num_coalesced = 0;
	m->num_dropped = 0;
}

/* ---- MSI-X ------------------------------------------------------------------------------------------ */

static bool is_masked(const struct model *m, uint32_t vector)
{
	return m->msix.function_masked || (m->msix.vectors[vector].control & 1);
}

static struct vgic_route vector_route(const struct model *m, uint32_t vector, bool *unroutable)
{
	const struct vgic_route masked = { .type = VGIC_ROUTE_NONE, .flags = VGIC_ROUTE_MASKED };
	const struct vgic_route route = { .type = VGIC_ROUTE_MSI,
					  .to.msi = { .address = m->msix.vectors[vector].address,
						      .data = m->msix.vectors[vector].data,
						      .devid = 1,
						      .msi_flags = VGIC_MSI_VALID_DEVID } };

	*unroutable = false;
	if (!m->msix.enabled)
		return nowhere;
	if (is_masked(m, vector))
		return masked;
	*unroutable = check_route(&route) != 0;
	return *unroutable ? nowhere : route;
}

/* Whatever has been written: the routes are those of the registers. */
static void update(struct model *m)
{
	m->msix.num_unroutable = 0;
	for (uint32_t i = 0; i < MODEL_VECTORS; i++) {
		bool unroutable;
		const struct vgic_route route = vector_route(m, i, &unroutable);

		m->msix.num_unroutable += unroutable;
		change(m, MODEL_FIRST_VECTOR + i, &route);
	}
}

static void reset_vectors(struct model *m, uint32_t first)
{
	for (uint32_t i = first; i < MODEL_VECTORS; i++) {
		m->msix.vectors[i].address = 0;
		m->msix.vectors[i].data = 0;
		m->msix.vectors[i].control = 1;
	}
}

int model_msix_create(struct model *m)
{
	for (uint32_t i = MODEL_FIRST_VECTOR; i < MODEL_FIRST_VECTOR + MODEL_VECTORS; i++) {
		const struct model_gsi *g = &m->gsis[i];

		if (g->txn || g->is_claimed || g->route.type != VGIC_ROUTE_NONE || g->route.flags)
			return -EBUSY;
	}
	memset(&m->msix, 0, sizeof(m->msix));
	m->msix.exists = true;
	reset_vectors(m, 0);
	for (uint32_t i = 0; i < MODEL_VECTORS; i++)
		m->gsis[MODEL_FIRST_VECTOR + i].is_claimed = true;
	return 0;
}

void model_msix_reset(struct model *m)
{
	m->msix.enabled = false;
	m->msix.function_masked = false;
	reset_vectors(m, 0);
	update(m);
}

void model_msix_destroy(struct model *m)
{
	model_msix_unbind(m);
	model_msix_reset(m);
	for (uint32_t i = 0; i < MODEL_VECTORS; i++)
		m->gsis[MODEL_FIRST_VECTOR + i].is_claimed = false;
	m->msix.exists = false;
}

void model_msix_control(struct model *m, bool enabled, bool function_masked)
{
	m->msix.enabled = enabled;
	m->msix.function_masked = function_masked;
	update(m);
}

uint16_t model_control(const struct model *m)
{
	return (uint16_t)((MODEL_VECTORS - 1) | (m->msix.enabled ? 0x8000u : 0) |
			  (m->msix.function_masked ? 0x4000u : 0));
}

static uint32_t *field(struct model_vector *v, uint32_t offset, uint32_t *halves)
{
	halves[0] = (uint32_t)v->address;
	halves[1] = (uint32_t)(v->address >> 32);
	return offset < 8 ? &halves[offset / 4] : offset == 8 ? &v->data : &v->control;
}

static void write_field(struct model *m, uint32_t offset, uint32_t value)
{
	struct model_vector *v = &m->msix.vectors[offset / 16];
	uint32_t halves[2];

	*field(v, offset % 16, halves) = offset % 16 == 12 ? value & 1 : value;
	v->address = (uint64_t)halves[1] << 32 | (halves[0] & ~3u);
}

int model_table_write(struct model *m, uint32_t offset, unsigned width, uint64_t value)
{
	if (width != 1 && width != 2 && width != 4 && width != 8)
		return -EINVAL;
	if (offset + width > 16 * MODEL_VECTORS)
		return -ENXIO;
	if (width < 4 || offset % width)
		return 0;
	write_field(m, offset, (uint32_t)value);
	if (width == 8)
		write_field(m, offset + 4, (uint32_t)(value >> 32));
	update(m);
	return 0;
}

uint64_t model_table_read(const struct model *m, uint32_t offset)
{
	const struct model_vector *v = &m->msix.vectors[offset / 16];

	return offset % 16 == 0 ? v->address : v->data | (uint64_t)v->control << 32;
}

void model_msix_unbind(struct model *m)
{
	for (uint32_t i = 0; i < MODEL_VECTORS; i++) {
		if (m->msix.vectors[i].fd)
			model_deassign(m, m->msix.vectors[i].fd - 1, MODEL_FIRST_VECTOR + i);
		m->msix.vectors[i].fd = 0;
	}
	m->msix.num_bound = 0;
}

static int bind_all(struct model *m, const unsigned *fds, uint32_t num, uint32_t *failed)
{
	for (uint32_t i = 0; i < num; i++) {
		const int err = fds[i] < MODEL_FDS ? model_assign(m, fds[i], MODEL_FIRST_VECTOR + i, false) : 0;

		if (err) {
			*failed = i;
			return err;
		}
		m->msix.vectors[i].fd = fds[i] < MODEL_FDS ? fds[i] + 1 : 0;
		m->msix.num_bound++;
	}
	return 0;
}

int model_msix_bind(struct model *m, const unsigned *fds, uint32_t num, uint32_t *failed)
{
	int err;

	*failed = MODEL_VECTORS;
	if (num == 0 || num > MODEL_VECTORS)
		return -EINVAL;
	if (m->msix.num_bound)
		return -EBUSY;
	err = bind_all(m, fds, num, failed);
	if (err)
		model_msix_unbind(m);
	return err;
}

int model_msix_enable(struct model *m, const struct vgic_msix_vector *vectors, const unsigned *fds, uint32_t num,
		      uint32_t *failed)
{
	const bool function_masked = m->msix.function_masked;
	struct model_vector before[MODEL_VECTORS];
	int err;

	*failed = MODEL_VECTORS;
	if (num == 0 || num > MODEL_VECTORS)
		return -EINVAL;
	for (uint32_t i = 0; i < num; i++) {
		if (vectors[i].control > 1)
			return -EINVAL;
	}
	if (m->msix.enabled || m->msix.num_bound)
		return -EBUSY;
	memcpy(before, m->msix.vectors, sizeof(before));
	for (uint32_t i = 0; i < num; i++) {
		m->msix.vectors[i].address = vectors[i].address & ~3ull;
		m->msix.vectors[i].data = vectors[i].data;
		m->msix.vectors[i].control = vectors[i].control;
	}
	reset_vectors(m, num);
	model_msix_control(m, true, false);
	err = bind_all(m, fds, num, failed);
	if (err) {
		model_msix_unbind(m);
		model_msix_control(m, false, function_masked);
		memcpy(m->msix.vectors, before, sizeof(before));
	}
	return err;
}
