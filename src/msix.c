/* SPDX-License-Identifier: MIT */
/*
 * msix.c - the message interrupts of a PCI device: what the guest's driver writes,
 * turned into routes.
 *
 * A vector's route is a function of the registers (vector_route()). Whatever
 * changes a register computes it anew for the vectors concerned: one entry, or all
 * of them in a transaction. Masks and pending bits are those of the route table, so
 * that an event finds them wherever it comes from. The entries are claimed: nobody
 * else can change them, or hold them in a transaction, so that a change of a register
 * cannot fail.
 *
 * `lock` guards registers and eventfds of this device. The route table's lock and
 * that of irqfds are taken under it.
 */
#include <vgic/msix.h>

#include <errno.h>
#include <string.h>

#include "route.h"

#define ENTRY_LOWER_ADDRESS  0u
#define ENTRY_UPPER_ADDRESS  4u
#define ENTRY_DATA           8u
#define ENTRY_VECTOR_CONTROL 12u

#define ADDRESS_WRITABLE UINT64_C(0xfffffffffffffffc)

struct msix_vector {
	uint64_t address;
	uint32_t data;
	uint32_t control;
	int fd; /* bound, or VGIC_NO_FD */
	bool unroutable;
};

struct vgic_msix {
	struct vgic_msix_config config; /* constant */
	struct port_lock *lock;

	/* Under the lock. */
	struct msix_vector *vectors;
	struct msix_vector *saved; /* of vgic_msix_enable(), to go back */
	uint32_t num_bound;        /* vectors 0 to num_bound-1 may have eventfds */
	uint32_t num_unroutable;
	bool enabled; /* MSI-X */
	bool function_masked;
	struct vgic_msi_state msi;
};

/* ---- From registers to routes, under the lock --------------------------------------------- */

static bool vector_is_masked(const struct vgic_msix *msix, uint32_t vector)
{
	if (msix->config.kind == VGIC_MSI)
		return msix->msi.masked >> (vector % msix->msi.num_enabled) & 1;
	return msix->function_masked || (msix->vectors[vector].control & VGIC_MSIX_VECTOR_MASKED);
}

static bool is_enabled(const struct vgic_msix *msix)
{
	return msix->config.kind == VGIC_MSI ? msix->msi.num_enabled != 0 : msix->enabled;
}

/* With MSI the vector is in the low bits of the data, as many as the guest has enabled. */
static void vector_message(const struct vgic_msix *msix, uint32_t vector, struct vgic_route_msi *message)
{
	*message = (struct vgic_route_msi){ .devid = msix->config.devid, .msi_flags = VGIC_MSI_VALID_DEVID };
	if (msix->config.kind == VGIC_MSI) {
		const uint32_t low = msix->msi.num_enabled - 1u;

		message->address = msix->msi.address;
		message->data = (msix->msi.data & ~low) | (vector & low);
	} else {
		message->address = msix->vectors[vector].address;
		message->data = msix->vectors[vector].data;
	}
}

/* Where a masked vector would lead is looked at when its mask goes. */
static struct vgic_route vector_route(const struct vgic_msix *msix, uint32_t vector)
{
	struct vgic_route route = { .type = VGIC_ROUTE_NONE };

	if (!is_enabled(msix))
		return route;
	if (vector_is_masked(msix, vector)) {
		route.flags = VGIC_ROUTE_MASKED;
		return route;
	}
	route.type = VGIC_ROUTE_MSI;
	vector_message(msix, vector, &route.to.msi);
	return route;
}

/* Stage a vector's route. One whose address is no doorbell leads nowhere. */
static void stage_vector(struct vgic_msix *msix, struct vgic_route_txn *txn, uint32_t vector)
{
	static const struct vgic_route nowhere = { .type = VGIC_ROUTE_NONE };
	const struct vgic_route route = vector_route(msix, vector);
	const uint32_t gsi = msix->config.first_gsi + vector;
	struct msix_vector *v = &msix->vectors[vector];

	msix->num_unroutable -= v->unroutable;
	v->unroutable = route_txn_set_claimed(txn, gsi, &route) == -ENODEV;
	msix->num_unroutable += v->unroutable;
	if (v->unroutable)
		route_txn_set_claimed(txn, gsi, &nowhere);
}

static void update_vectors(struct vgic_msix *msix, uint32_t first, uint32_t num)
{
	struct vgic_route_txn txn;

	vgic_route_txn_begin(msix->config.routes, &txn);
	for (uint32_t i = first; i < first + num; i++)
		stage_vector(msix, &txn, i);
	vgic_route_txn_commit(&txn);
}

static void update_all(struct vgic_msix *msix)
{
	update_vectors(msix, 0, msix->config.num_vectors);
}

/* ---- Events -------------------------------------------------------------------------------------- */

int vgic_msix_signal(struct vgic_msix *msix, uint32_t vector)
{
	if (vector >= msix->config.num_vectors)
		return -EINVAL;
	return vgic_signal_gsi(msix->config.routes, msix->config.first_gsi + vector);
}

/* ---- Eventfds, under the lock ---------------------------------------------------------------------- */

static void unbind_vector(struct vgic_msix *msix, uint32_t vector)
{
	struct msix_vector *v = &msix->vectors[vector];

	if (v->fd != VGIC_NO_FD)
		vgic_irqfd_deassign(msix->config.irqfds, msix->config.first_gsi + vector, v->fd);
	v->fd = VGIC_NO_FD;
}

static void unbind_all(struct vgic_msix *msix)
{
	while (msix->num_bound > 0)
		unbind_vector(msix, --msix->num_bound);
}

/* The next vector. Returns 0 or a negative errno. */
static int bind_next(struct vgic_msix *msix, int fd)
{
	const uint32_t vector = msix->num_bound;
	int err = 0;

	if (fd != VGIC_NO_FD)
		err = vgic_irqfd_assign(msix->config.irqfds, msix->config.first_gsi + vector, fd, VGIC_NO_FD);
	if (err)
		return err;
	msix->vectors[vector].fd = fd;
	msix->num_bound++;
	return 0;
}

static void tell(uint32_t *failed, uint32_t vector)
{
	if (failed)
		*failed = vector;
}

int vgic_msix_bind(struct vgic_msix *msix, const int *eventfds, uint32_t num, uint32_t *failed)
{
	int err = 0;

	tell(failed, msix->config.num_vectors);
	if (!msix->config.irqfds || !eventfds || num == 0 || num > msix->config.num_vectors)
		return -EINVAL;
	port_lock_acquire(msix->lock);
	if (msix->num_bound) {
		err = -EBUSY;
	} else {
		for (uint32_t i = 0; i < num && !err; i++)
			err = bind_next(msix, eventfds[i]);
		if (err) {
			tell(failed, msix->num_bound);
			unbind_all(msix);
		}
	}
	port_lock_release(msix->lock);
	return err;
}

void vgic_msix_unbind(struct vgic_msix *msix)
{
	port_lock_acquire(msix->lock);
	unbind_all(msix);
	port_lock_release(msix->lock);
}

/* ---- MSI-X: the table -------------------------------------------------------------------------------- */

/* Returns 0, -EINVAL or -ENXIO; *defined is false for an access that is ignored. */
static int check_access(const struct vgic_msix *msix, uint32_t offset, unsigned width, uint32_t size, bool *defined)
{
	if (msix->config.kind != VGIC_MSIX || (width != 1 && width != 2 && width != 4 && width != 8))
		return -EINVAL;
	if (offset > size || size - offset < width)
		return -ENXIO;
	*defined = width >= 4 && offset % width == 0;
	return 0;
}

static uint32_t table_size(const struct vgic_msix *msix)
{
	return msix->config.num_vectors * VGIC_MSIX_ENTRY_SIZE;
}

static uint32_t entry_read(const struct msix_vector *v, uint32_t field)
{
	switch (field) {
	case ENTRY_LOWER_ADDRESS:
		return (uint32_t)v->address;
	case ENTRY_UPPER_ADDRESS:
		return (uint32_t)(v->address >> 32);
	case ENTRY_DATA:
		return v->data;
	default:
		return v->control;
	}
}

static void entry_write(struct msix_vector *v, uint32_t field, uint32_t value)
{
	switch (field) {
	case ENTRY_LOWER_ADDRESS:
		v->address = ((v->address >> 32 << 32) | value) & ADDRESS_WRITABLE;
		break;
	case ENTRY_UPPER_ADDRESS:
		v->address = (uint32_t)v->address | (uint64_t)value << 32;
		break;
	case ENTRY_DATA:
		v->data = value;
		break;
	default:
		v->control = value & VGIC_MSIX_VECTOR_MASKED;
		break;
	}
}

int vgic_msix_table_read(struct vgic_msix *msix, uint32_t offset, unsigned width, uint64_t *value)
{
	const struct msix_vector *v;
	bool defined;
	int err = value ? check_access(msix, offset, width, table_size(msix), &defined) : -EINVAL;

	if (err)
		return err;
	*value = 0;
	if (!defined)
		return 0;
	v = &msix->vectors[offset / VGIC_MSIX_ENTRY_SIZE];
	port_lock_acquire(msix->lock);
	*value = entry_read(v, offset % VGIC_MSIX_ENTRY_SIZE);
	if (width == 8)
		*value |= (uint64_t)entry_read(v, offset % VGIC_MSIX_ENTRY_SIZE + 4) << 32;
	port_lock_release(msix->lock);
	return 0;
}

/* A vector that stays masked, or a device that is disabled, has no route to change. */
static void write_table(struct vgic_msix *msix, uint32_t offset, unsigned width, uint64_t value)
{
	const uint32_t vector = offset / VGIC_MSIX_ENTRY_SIZE, field = offset % VGIC_MSIX_ENTRY_SIZE;
	const bool was_masked = vector_is_masked(msix, vector);

	entry_write(&msix->vectors[vector], field, (uint32_t)value);
	if (width == 8)
		entry_write(&msix->vectors[vector], field + 4, (uint32_t)(value >> 32));
	if (msix->enabled && !(was_masked && vector_is_masked(msix, vector)))
		update_vectors(msix, vector, 1);
}

int vgic_msix_table_write(struct vgic_msix *msix, uint32_t offset, unsigned width, uint64_t value)
{
	bool defined;
	int err = check_access(msix, offset, width, table_size(msix), &defined);

	if (err || !defined)
		return err;
	port_lock_acquire(msix->lock);
	write_table(msix, offset, width, value);
	port_lock_release(msix->lock);
	return 0;
}

static uint64_t pending_bits(struct vgic_msix *msix, uint32_t first, uint32_t num)
{
	uint64_t bits = 0;

	for (uint32_t i = 0; i < num && first + i < msix->config.num_vectors; i++) {
		if (vgic_gsi_is_pending(msix->config.routes, msix->config.first_gsi + first + i) > 0)
			bits |= UINT64_C(1) << i;
	}
	return bits;
}

int vgic_msix_pba_read(struct vgic_msix *msix, uint32_t offset, unsigned width, uint64_t *value)
{
	const uint32_t size = (msix->config.num_vectors + 63) / 64 * 8;
	bool defined;
	int err = value ? check_access(msix, offset, width, size, &defined) : -EINVAL;

	if (!err)
		*value = defined ? pending_bits(msix, 8 * offset, 8 * width) : 0;
	return err;
}

/* ---- MSI-X: Message Control -------------------------------------------------------------------------- */

uint16_t vgic_msix_read_control(struct vgic_msix *msix)
{
	uint32_t control;

	if (msix->config.kind != VGIC_MSIX)
		return 0;
	port_lock_acquire(msix->lock);
	control = (msix->config.num_vectors - 1) | (msix->enabled ? VGIC_MSIX_CONTROL_ENABLE : 0) |
		  (msix->function_masked ? VGIC_MSIX_CONTROL_FUNCTION_MASK : 0);
	port_lock_release(msix->lock);
	return (uint16_t)control;
}

/* Under the lock. */
static void set_control(struct vgic_msix *msix, bool enabled, bool function_masked)
{
	const bool matters = enabled || msix->enabled;

	if (enabled == msix->enabled && function_masked == msix->function_masked)
		return;
	msix->enabled = enabled;
	msix->function_masked = function_masked;
	if (matters)
		update_all(msix);
}

void vgic_msix_write_control(struct vgic_msix *msix, uint16_t control)
{
	if (msix->config.kind != VGIC_MSIX)
		return;
	port_lock_acquire(msix->lock);
	set_control(msix, control & VGIC_MSIX_CONTROL_ENABLE, control & VGIC_MSIX_CONTROL_FUNCTION_MASK);
	port_lock_release(msix->lock);
}

/* ---- MSI ------------------------------------------------------------------------------------------------ */

static bool is_power_of_two(uint32_t n)
{
	return n && !(n & (n - 1));
}

int vgic_msi_configure(struct vgic_msix *msix, const struct vgic_msi_state *state)
{
	if (msix->config.kind != VGIC_MSI || !state || state->num_enabled > msix->config.num_vectors ||
	    (state->num_enabled && !is_power_of_two(state->num_enabled)))
		return -EINVAL;
	port_lock_acquire(msix->lock);
	msix->msi = *state;
	update_all(msix);
	port_lock_release(msix->lock);
	return 0;
}

/* A device may signal more vectors than the guest has enabled: what is kept of them counts for those they are folded into. */
uint32_t vgic_msi_pending(struct vgic_msix *msix)
{
	uint32_t pending = 0;

	if (msix->config.kind != VGIC_MSI)
		return 0;
	port_lock_acquire(msix->lock);
	for (uint32_t i = 0; i < msix->config.num_vectors && msix->msi.num_enabled; i++)
		pending |= (uint32_t)pending_bits(msix, i, 1) << (i % msix->msi.num_enabled);
	port_lock_release(msix->lock);
	return pending;
}

/* ---- All in one ----------------------------------------------------------------------------------------- */

static bool vectors_are_sane(const struct vgic_msix *msix, const struct vgic_msix_vector *vectors, uint32_t num)
{
	if (msix->config.kind != VGIC_MSIX || !vectors || num == 0 || num > msix->config.num_vectors)
		return false;
	for (uint32_t i = 0; i < num; i++) {
		if ((vectors[i].control & ~VGIC_MSIX_VECTOR_MASKED) || vectors[i].reserved ||
		    (vectors[i].eventfd != VGIC_NO_FD && !msix->config.irqfds))
			return false;
	}
	return true;
}

static void reset_entries(struct vgic_msix *msix, uint32_t first)
{
	for (uint32_t i = first; i < msix->config.num_vectors; i++) {
		msix->vectors[i].address = 0;
		msix->vectors[i].data = 0;
		msix->vectors[i].control = VGIC_MSIX_VECTOR_MASKED;
	}
}

/* Under the lock. On error *vector is the one that failed, and some are bound. */
static int enable_vectors(struct vgic_msix *msix, const struct vgic_msix_vector *vectors, uint32_t num)
{
	int err = 0;

	for (uint32_t i = 0; i < num; i++) {
		msix->vectors[i].address = vectors[i].address & ADDRESS_WRITABLE;
		msix->vectors[i].data = vectors[i].data;
		msix->vectors[i].control = vectors[i].control;
	}
	reset_entries(msix, num);
	set_control(msix, true, false);
	for (uint32_t i = 0; i < num && !err; i++)
		err = bind_next(msix, vectors[i].eventfd);
	return err;
}

int vgic_msix_enable(struct vgic_msix *msix, const struct vgic_msix_vector *vectors, uint32_t num, uint32_t *failed)
{
	const size_t size = msix->config.num_vectors * sizeof(*msix->vectors);
	bool function_masked;
	int err;

	tell(failed, msix->config.num_vectors);
	if (!vectors_are_sane(msix, vectors, num))
		return -EINVAL;
	port_lock_acquire(msix->lock);
	if (msix->enabled || msix->num_bound) {
		port_lock_release(msix->lock);
		return -EBUSY;
	}
	memcpy(msix->saved, msix->vectors, size);
	function_masked = msix->function_masked;
	err = enable_vectors(msix, vectors, num);
	if (err) {
		tell(failed, msix->num_bound);
		unbind_all(msix);
		set_control(msix, false, function_masked);
		memcpy(msix->vectors, msix->saved, size);
	}
	port_lock_release(msix->lock);
	return err;
}

void vgic_msix_disable(struct vgic_msix *msix)
{
	port_lock_acquire(msix->lock);
	unbind_all(msix);
	if (msix->config.kind == VGIC_MSIX) {
		set_control(msix, false, msix->function_masked);
	} else {
		msix->msi.num_enabled = 0;
		update_all(msix);
	}
	port_lock_release(msix->lock);
}

/* ---- One vector ------------------------------------------------------------------------------------------- */

static int set_mask(struct vgic_msix *msix, uint32_t vector, bool mask)
{
	if (vector >= msix->config.num_vectors)
		return -EINVAL;
	port_lock_acquire(msix->lock);
	if (msix->config.kind == VGIC_MSIX) {
		write_table(msix, vector * VGIC_MSIX_ENTRY_SIZE + ENTRY_VECTOR_CONTROL, 4,
			    mask ? VGIC_MSIX_VECTOR_MASKED : 0);
	} else {
		msix->msi.masked = mask ? msix->msi.masked | 1u << vector : msix->msi.masked & ~(1u << vector);
		update_all(msix);
	}
	port_lock_release(msix->lock);
	return 0;
}

int vgic_msix_mask(struct vgic_msix *msix, uint32_t vector)
{
	return set_mask(msix, vector, true);
}

int vgic_msix_unmask(struct vgic_msix *msix, uint32_t vector)
{
	return set_mask(msix, vector, false);
}

int vgic_msix_get_vector(struct vgic_msix *msix, uint32_t vector, struct vgic_msix_vector *state)
{
	struct vgic_route_msi message = { .address = 0 };

	if (vector >= msix->config.num_vectors || !state)
		return -EINVAL;
	port_lock_acquire(msix->lock);
	if (msix->config.kind == VGIC_MSIX || msix->msi.num_enabled)
		vector_message(msix, vector, &message);
	*state = (struct vgic_msix_vector){
		.address = message.address,
		.data = message.data,
		.control = msix->config.kind == VGIC_MSIX ? msix->vectors[vector].control :
							    msix->msi.num_enabled && vector_is_masked(msix, vector),
		.eventfd = msix->vectors[vector].fd,
	};
	port_lock_release(msix->lock);
	return 0;
}

uint32_t vgic_msix_num_unroutable(struct vgic_msix *msix)
{
	uint32_t num;

	port_lock_acquire(msix->lock);
	num = msix->num_unroutable;
	port_lock_release(msix->lock);
	return num;
}

/* ---- Life cycle ---------------------------------------------------------------------------------------------- */

void vgic_msix_config_init(struct vgic_msix_config *config)
{
	if (!config)
		return;
	*config = (struct vgic_msix_config){ .size = sizeof(*config), .kind = VGIC_MSIX, .num_vectors = 1 };
}

static bool config_is_sane(const struct vgic_msix_config *config)
{
	uint32_t num_gsis;

	if (config->size != sizeof(*config) || !config->routes || config->num_vectors == 0)
		return false;
	if (config->kind != VGIC_MSIX && config->kind != VGIC_MSI)
		return false;
	if (config->kind == VGIC_MSIX && config->num_vectors > VGIC_MAX_MSIX_VECTORS)
		return false;
	if (config->kind == VGIC_MSI &&
	    (config->num_vectors > VGIC_MAX_MSI_VECTORS || !is_power_of_two(config->num_vectors)))
		return false;
	if (config->irqfds && irqfd_routes(config->irqfds) != config->routes)
		return false;
	num_gsis = vgic_routes_num_gsis(config->routes);
	return config->num_vectors <= num_gsis && config->first_gsi <= num_gsis - config->num_vectors;
}

static void free_msix(struct vgic_msix *msix)
{
	port_lock_free(msix->lock);
	port_free(msix->saved);
	port_free(msix->vectors);
	port_free(msix);
}

int vgic_msix_create(const struct vgic_msix_config *config, struct vgic_msix **out)
{
	struct vgic_msix *msix;
	int err;

	if (!config || !out || !config_is_sane(config))
		return -EINVAL;
	msix = port_alloc_zeroed(sizeof(*msix), CACHE_LINE);
	if (!msix)
		return -ENOMEM;
	msix->config = *config;
	msix->vectors = port_alloc_zeroed(config->num_vectors * sizeof(*msix->vectors), CACHE_LINE);
	msix->saved = port_alloc_zeroed(config->num_vectors * sizeof(*msix->saved), CACHE_LINE);
	msix->lock = port_lock_new(LOCK_MSIX);
	err = -ENOMEM;
	if (msix->vectors && msix->saved && msix->lock)
		err = route_claim(config->routes, config->first_gsi, config->num_vectors);
	if (err) {
		free_msix(msix);
		return err;
	}
	for (uint32_t i = 0; i < config->num_vectors; i++)
		msix->vectors[i].fd = VGIC_NO_FD;
	reset_entries(msix, 0);
	*out = msix;
	return 0;
}

void vgic_msix_reset(struct vgic_msix *msix)
{
	port_lock_acquire(msix->lock);
	msix->enabled = false;
	msix->function_masked = false;
	msix->msi = (struct vgic_msi_state){ .address = 0 };
	reset_entries(msix, 0);
	update_all(msix);
	port_lock_release(msix->lock);
}

void vgic_msix_destroy(struct vgic_msix *msix)
{
	if (!msix)
		return;
	vgic_msix_unbind(msix);
	vgic_msix_reset(msix);
	route_release(msix->config.routes, msix->config.first_gsi, msix->config.num_vectors);
	free_msix(msix);
}
