/* SPDX-License-Identifier: MIT */
/*
 * MSI-X and MSI of a device: the guest's accesses, masks and pending bits, messages
 * without a doorbell, and enabling with eventfds, all or nothing.
 */
#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <vgic/msix.h>
#include <vgic/state.h>

#include "its_guest.h"

#define NUM_GSIS    128u
#define FIRST_GSI   16u
#define NUM_VECTORS 70u /* more than 64: two words of pending bits */
#define DOORBELL    (ITS_BASE(0) + VGIC_ITS_DOORBELL)
#define DEVICE      7u

static struct vgic_routes *routes;
static struct vgic_irqfds *irqfds;
static struct vgic_msix *msix;

/* Device 7 has 128 events: event n is LPI 8192 + n, at vCPU 0. */
static struct machine *start(enum vgic_msix_kind kind, uint32_t num_vectors)
{
	struct machine *m = its_boot(1, 1);
	struct vgic_irqfds_config irqfds_config;
	struct vgic_msix_config config;

	map_collection(m, 0, 0);
	map_device(m, DEVICE, 7);
	for (uint32_t event = 0; event < 128; event++)
		map_event(m, DEVICE, event, 8192 + event, 0);
	assert_int_equal(vgic_routes_create(m->vgic, NUM_GSIS, &routes), 0);
	vgic_irqfds_config_init(&irqfds_config);
	irqfds_config.max_irqfds = NUM_VECTORS + 2;
	assert_int_equal(vgic_irqfds_create(routes, &irqfds_config, &irqfds), 0);
	vgic_msix_config_init(&config);
	config.kind = kind;
	config.num_vectors = num_vectors;
	config.routes = routes;
	config.first_gsi = FIRST_GSI;
	config.devid = DEVICE;
	config.irqfds = irqfds;
	assert_int_equal(vgic_msix_create(&config, &msix), 0);
	return m;
}

static void stop(struct machine *m)
{
	vgic_msix_destroy(msix);
	vgic_irqfds_destroy(irqfds);
	vgic_routes_destroy(routes);
	machine_stop(m);
}

static uint64_t table_read(uint32_t offset, unsigned width)
{
	uint64_t value = ~0ull;

	assert_int_equal(vgic_msix_table_read(msix, offset, width, &value), 0);
	return value;
}

static void table_write(uint32_t offset, unsigned width, uint64_t value)
{
	assert_int_equal(vgic_msix_table_write(msix, offset, width, value), 0);
}

static uint64_t pba_read(uint32_t offset, unsigned width)
{
	uint64_t value = ~0ull;

	assert_int_equal(vgic_msix_pba_read(msix, offset, width, &value), 0);
	return value;
}

/* As a driver does: address and data while masked, then the mask goes. */
static void program(uint32_t vector, uint64_t address, uint32_t data)
{
	table_write(16 * vector, 4, address & UINT32_MAX);
	table_write(16 * vector + 4, 4, address >> 32);
	table_write(16 * vector + 8, 4, data);
	table_write(16 * vector + 12, 4, 0);
}

static void mask(uint32_t vector, bool masked)
{
	table_write(16 * vector + 12, 4, masked);
}

static uint64_t num_unrouted(void)
{
	struct vgic_routes_stats stats = { .size = sizeof(stats) };

	assert_int_equal(vgic_routes_get_stats(routes, &stats), 0);
	return stats.unrouted;
}

static void enable_all(void)
{
	for (uint32_t i = 0; i < NUM_VECTORS; i++)
		program(i, DOORBELL, i);
	vgic_msix_write_control(msix, VGIC_MSIX_CONTROL_ENABLE);
}

/* ---- Creation ---- */

static void creation_refuses_what_is_wrong(void **state)
{
	struct machine *m = start(VGIC_MSIX, NUM_VECTORS);
	struct vgic_msix_config good, c;
	struct vgic_msix *other = NULL;
	const struct vgic_route masked = { .type = VGIC_ROUTE_NONE, .flags = VGIC_ROUTE_MASKED };
	struct vgic_route_txn txn;

	(void)state;
	vgic_msix_config_init(&good);
	good.routes = routes;
	assert_int_equal(vgic_msix_create(NULL, &other), -EINVAL);
	assert_int_equal(vgic_msix_create(&good, NULL), -EINVAL);
	c = good, c.size--;
	assert_int_equal(vgic_msix_create(&c, &other), -EINVAL);
	c = good, c.routes = NULL;
	assert_int_equal(vgic_msix_create(&c, &other), -EINVAL);
	c = good, c.kind = 2;
	assert_int_equal(vgic_msix_create(&c, &other), -EINVAL);
	c = good, c.num_vectors = 0;
	assert_int_equal(vgic_msix_create(&c, &other), -EINVAL);
	c = good, c.num_vectors = VGIC_MAX_MSIX_VECTORS + 1;
	assert_int_equal(vgic_msix_create(&c, &other), -EINVAL);
	c = good, c.kind = VGIC_MSI, c.num_vectors = 3;
	assert_int_equal(vgic_msix_create(&c, &other), -EINVAL);
	c = good, c.kind = VGIC_MSI, c.num_vectors = 64;
	assert_int_equal(vgic_msix_create(&c, &other), -EINVAL);
	c = good, c.first_gsi = NUM_GSIS;
	assert_int_equal(vgic_msix_create(&c, &other), -EINVAL);
	c = good, c.first_gsi = UINT32_MAX;
	assert_int_equal(vgic_msix_create(&c, &other), -EINVAL);
	c = good, c.num_vectors = NUM_GSIS + 1;
	assert_int_equal(vgic_msix_create(&c, &other), -EINVAL);
	assert_int_equal(vgic_route_set(routes, 0, &masked), 0);
	assert_int_equal(vgic_msix_create(&good, &other), -EBUSY);
	assert_int_equal(vgic_route_txn_begin(routes, &txn), 0);
	assert_int_equal(vgic_route_txn_set(&txn, 1, &masked), 0);
	c = good, c.first_gsi = 1;
	assert_int_equal(vgic_msix_create(&c, &other), -EBUSY);
	vgic_route_txn_abort(&txn);
	c.first_gsi = FIRST_GSI + NUM_VECTORS - 1; /* another device's last one */
	assert_int_equal(vgic_msix_create(&c, &other), -EBUSY);
	c.first_gsi = 1;
	vgic_msix_config_init(NULL);
	assert_null(other);
	assert_int_equal(vgic_msix_create(&c, &other), 0);
	vgic_msix_destroy(other);
	vgic_msix_destroy(NULL);
	stop(m);
}

/* ---- The table ---- */

static void the_table_reads_as_written(void **state)
{
	struct machine *m = start(VGIC_MSIX, NUM_VECTORS);
	uint64_t value = 0;

	(void)state;
	assert_int_equal(table_read(16 * 5 + 12, 4), VGIC_MSIX_VECTOR_MASKED);
	table_write(16 * 5, 8, 0x123456789abcdef3);
	table_write(16 * 5 + 8, 4, 0xfedcba98);
	table_write(16 * 5 + 12, 4, 0xfffffffe);
	assert_int_equal(table_read(16 * 5, 8), 0x123456789abcdef0);
	assert_int_equal(table_read(16 * 5, 4), 0x9abcdef0);
	assert_int_equal(table_read(16 * 5 + 4, 4), 0x12345678);
	assert_int_equal(table_read(16 * 5 + 8, 8), 0xfedcba98);
	table_write(16 * 5 + 8, 8, 0x100000007ull);
	assert_int_equal(table_read(16 * 5 + 8, 8), 0x100000007ull);
	assert_int_equal(table_read(16 * 4, 8), 0);
	assert_int_equal(table_read(16 * 6, 8), 0);
	/* What the specification does not define. */
	table_write(16 * 5, 1, 0xff);
	table_write(16 * 5 + 2, 2, 0xff);
	table_write(16 * 5 + 4, 8, ~0ull);
	table_write(16 * 5 + 1, 4, ~0ull);
	assert_int_equal(table_read(16 * 5, 8), 0x123456789abcdef0);
	assert_int_equal(table_read(16 * 5 + 1, 1), 0);
	assert_int_equal(vgic_msix_table_read(msix, 0, 3, &value), -EINVAL);
	assert_int_equal(vgic_msix_table_write(msix, 0, 0, 0), -EINVAL);
	for (unsigned width = 1; width <= 8; width *= 2) {
		assert_int_equal(vgic_msix_table_read(msix, 16 * NUM_VECTORS - width, width, &value), 0);
		assert_int_equal(vgic_msix_table_read(msix, 16 * NUM_VECTORS - width + 1, width, &value), -ENXIO);
		assert_int_equal(vgic_msix_table_write(msix, UINT32_MAX, width, 0), -ENXIO);
		assert_int_equal(vgic_msix_pba_read(msix, 16 - width, width, &value), 0);
		assert_int_equal(vgic_msix_pba_read(msix, 16, width, &value), -ENXIO);
	}
	assert_int_equal(vgic_msix_pba_read(msix, 0, 5, &value), -EINVAL);
	assert_int_equal(vgic_msix_table_read(msix, 0, 4, NULL), -EINVAL);
	assert_int_equal(vgic_msix_table_read(msix, 0, 1, NULL), -EINVAL);
	assert_int_equal(vgic_msix_pba_read(msix, 0, 8, NULL), -EINVAL);
	assert_int_equal(vgic_msix_get_vector(msix, 0, NULL), -EINVAL);
	stop(m);
}

static void vectors_go_where_the_guest_says(void **state)
{
	struct machine *m = start(VGIC_MSIX, NUM_VECTORS);

	(void)state;
	assert_int_equal(vgic_msix_read_control(msix), NUM_VECTORS - 1);
	program(3, DOORBELL, 33);
	assert_int_equal(vgic_msix_signal(msix, 3), -ENOENT);
	vgic_msix_write_control(msix, VGIC_MSIX_CONTROL_ENABLE);
	assert_int_equal(vgic_msix_read_control(msix), VGIC_MSIX_CONTROL_ENABLE | (NUM_VECTORS - 1));
	assert_int_equal(vgic_msix_signal(msix, 3), 1);
	expect_only(m, 0, 8192 + 33);
	/* Moved while it is unmasked. */
	table_write(16 * 3 + 8, 4, 34);
	assert_int_equal(vgic_msix_signal(msix, 3), 1);
	expect_only(m, 0, 8192 + 34);
	vgic_msix_write_control(msix, 0);
	assert_int_equal(vgic_msix_signal(msix, 3), -ENOENT);
	expect_nothing(m);
	assert_int_equal(vgic_msix_signal(msix, NUM_VECTORS), -EINVAL);
	assert_int_equal(vgic_msix_signal(msix, UINT32_MAX), -EINVAL);
	stop(m);
}

static void a_masked_vector_keeps_one_event_in_its_pending_bit(void **state)
{
	struct machine *m = start(VGIC_MSIX, NUM_VECTORS);

	(void)state;
	enable_all();
	mask(66, true);
	assert_int_equal(vgic_msix_signal(msix, 66), 0);
	assert_int_equal(vgic_msix_signal(msix, 66), 0);
	assert_int_equal(pba_read(0, 8), 0);
	assert_int_equal(pba_read(8, 8), 1 << 2);
	assert_int_equal(pba_read(8, 4), 1 << 2);
	assert_int_equal(pba_read(12, 4), 0);
	expect_nothing(m);
	/* It may be moved meanwhile. */
	table_write(16 * 66 + 8, 4, 100);
	expect_nothing(m);
	mask(66, false);
	expect_only(m, 0, 8192 + 100);
	assert_int_equal(pba_read(8, 8), 0);
	assert_int_equal(vgic_msix_mask(msix, 1), 0);
	assert_int_equal(table_read(16 * 1 + 12, 4), 1);
	assert_int_equal(vgic_msix_signal(msix, 1), 0);
	assert_int_equal(vgic_msix_unmask(msix, 1), 0);
	expect_only(m, 0, 8193);
	assert_int_equal(vgic_msix_mask(msix, NUM_VECTORS), -EINVAL);
	assert_int_equal(vgic_msix_unmask(msix, NUM_VECTORS), -EINVAL);
	stop(m);
}

static void the_function_mask_is_over_all_vectors(void **state)
{
	struct machine *m = start(VGIC_MSIX, NUM_VECTORS);

	(void)state;
	enable_all();
	mask(2, true);
	vgic_msix_write_control(msix, VGIC_MSIX_CONTROL_ENABLE | VGIC_MSIX_CONTROL_FUNCTION_MASK);
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(vgic_msix_signal(msix, i), 0);
	assert_int_equal(pba_read(0, 8), 7);
	/* A vector's own mask that goes does not count while the function's is there. */
	mask(0, false);
	expect_nothing(m);
	vgic_msix_write_control(msix, VGIC_MSIX_CONTROL_ENABLE);
	assert_int_equal(pba_read(0, 8), 4);
	assert_int_equal(take(m, 0) + take(m, 0), 8192 + 8193);
	expect_nothing(m);
	mask(2, false);
	expect_only(m, 0, 8194);
	stop(m);
}

static void an_address_without_a_doorbell_drops_and_counts(void **state)
{
	struct machine *m = start(VGIC_MSIX, NUM_VECTORS);
	const uint64_t unrouted = num_unrouted();

	(void)state;
	enable_all();
	program(1, 0xdeadbee0, 1);
	assert_int_equal(vgic_msix_num_unroutable(msix), 1);
	assert_int_equal(vgic_msix_signal(msix, 1), -ENOENT);
	assert_int_equal(num_unrouted(), unrouted + 1);
	/* What was kept goes the same way when the mask does. */
	mask(1, true);
	assert_int_equal(vgic_msix_num_unroutable(msix), 0);
	assert_int_equal(vgic_msix_signal(msix, 1), 0);
	mask(1, false);
	assert_int_equal(num_unrouted(), unrouted + 2);
	expect_nothing(m);
	program(1, DOORBELL, 1);
	assert_int_equal(vgic_msix_num_unroutable(msix), 0);
	assert_int_equal(vgic_msix_signal(msix, 1), 1);
	expect_only(m, 0, 8193);
	stop(m);
}

static void a_reset_forgets_entries_and_pending_bits(void **state)
{
	struct machine *m = start(VGIC_MSIX, NUM_VECTORS);

	(void)state;
	enable_all();
	mask(0, true);
	assert_int_equal(vgic_msix_signal(msix, 0), 0);
	vgic_msix_reset(msix);
	assert_int_equal(pba_read(0, 8), 0);
	assert_int_equal(vgic_msix_read_control(msix), NUM_VECTORS - 1);
	assert_int_equal(table_read(16, 8), 0);
	assert_int_equal(table_read(16 + 8, 8), 0x100000000ull);
	assert_int_equal(vgic_msix_signal(msix, 1), -ENOENT);
	enable_all();
	expect_nothing(m);
	stop(m);
}

/* The VMM cannot get into the way of what the guest writes: not by a route, nor by a transaction that it holds open. */
static void nobody_else_changes_its_routes(void **state)
{
	struct machine *m = start(VGIC_MSIX, NUM_VECTORS);
	const struct vgic_route nowhere = { .type = VGIC_ROUTE_NONE };
	struct vgic_route_txn txn;

	(void)state;
	enable_all();
	assert_int_equal(vgic_route_set(routes, FIRST_GSI, &nowhere), -EBUSY);
	assert_int_equal(vgic_route_set(routes, FIRST_GSI - 1, &nowhere), 0);
	assert_int_equal(vgic_route_set(routes, FIRST_GSI + NUM_VECTORS, &nowhere), 0);
	assert_int_equal(vgic_route_txn_begin(routes, &txn), 0);
	assert_int_equal(vgic_route_txn_set(&txn, FIRST_GSI - 1, &nowhere), 0);
	assert_int_equal(vgic_route_txn_set(&txn, FIRST_GSI + 1, &nowhere), -EBUSY);
	mask(1, true);
	assert_int_equal(vgic_msix_signal(msix, 1), 0);
	expect_nothing(m);
	mask(1, false);
	expect_only(m, 0, 8193);
	vgic_route_txn_commit(&txn);
	assert_int_equal(vgic_msix_signal(msix, 1), 1);
	expect_only(m, 0, 8193);
	/* Until it is gone. */
	vgic_msix_destroy(msix);
	msix = NULL;
	assert_int_equal(vgic_route_set(routes, FIRST_GSI, &nowhere), 0);
	assert_int_equal(vgic_route_txn_begin(routes, &txn), 0);
	assert_int_equal(vgic_route_txn_set(&txn, FIRST_GSI + NUM_VECTORS - 1, &nowhere), 0);
	vgic_route_txn_abort(&txn);
	stop(m);
}

/* ---- Pauses ---- */

static void an_event_in_a_pause_is_pending_until_it_ends(void **state)
{
	struct machine *m = start(VGIC_MSIX, NUM_VECTORS);

	(void)state;
	enable_all();
	mask(2, true);
	assert_int_equal(vgic_msix_signal(msix, 2), 0);
	assert_int_equal(vgic_pause(m->vgic), 0);
	assert_int_equal(vgic_msix_signal(msix, 1), 0);
	/* The guest unmasks what was kept, masks what the pause keeps. */
	mask(2, false);
	mask(1, true);
	assert_int_equal(pba_read(0, 8), 6);
	expect_nothing(m);
	assert_int_equal(vgic_resume(m->vgic), 0);
	expect_only(m, 0, 8194);
	assert_int_equal(pba_read(0, 8), 2);
	mask(1, false);
	expect_only(m, 0, 8193);
	/* A reset in the pause drops it. */
	assert_int_equal(vgic_pause(m->vgic), 0);
	assert_int_equal(vgic_msix_signal(msix, 1), 0);
	vgic_msix_reset(msix);
	assert_int_equal(pba_read(0, 8), 0);
	enable_all();
	assert_int_equal(vgic_resume(m->vgic), 0);
	expect_nothing(m);
	stop(m);
}

/* As msix.h says: to another place with registers and pending bits. */
static void pending_bits_are_taken_along(void **state)
{
	struct machine *m = start(VGIC_MSIX, NUM_VECTORS);
	uint64_t entries[2 * NUM_VECTORS], pending;

	(void)state;
	enable_all();
	mask(3, true);
	assert_int_equal(vgic_pause(m->vgic), 0);
	assert_int_equal(vgic_msix_signal(msix, 3), 0);
	assert_int_equal(vgic_msix_signal(msix, 4), 0);
	for (uint32_t i = 0; i < 2 * NUM_VECTORS; i++)
		entries[i] = table_read(8 * i, 8);
	pending = pba_read(0, 8);
	vgic_msix_reset(msix);
	assert_int_equal(vgic_resume(m->vgic), 0);
	expect_nothing(m);
	vgic_msix_write_control(msix, VGIC_MSIX_CONTROL_ENABLE | VGIC_MSIX_CONTROL_FUNCTION_MASK);
	for (uint32_t i = 0; i < 64; i++)
		if (pending >> i & 1)
			assert_int_equal(vgic_msix_signal(msix, i), 0);
	for (uint32_t i = 0; i < 2 * NUM_VECTORS; i++)
		table_write(8 * i, 8, entries[i]);
	expect_nothing(m);
	vgic_msix_write_control(msix, VGIC_MSIX_CONTROL_ENABLE);
	expect_only(m, 0, 8196);
	assert_int_equal(pba_read(0, 8), 1 << 3);
	mask(3, false);
	expect_only(m, 0, 8195);
	stop(m);
}

/* ---- Eventfds ---- */

/* The service injects in a thread of its own. */
static void await_lpi(struct machine *m, uint32_t lpi)
{
	for (unsigned i = 0; !(lines_of(m, 0) & VGIC_LINE_IRQ); i++) {
		assert_true(i < 100000);
		usleep(100);
	}
	expect_only(m, 0, lpi);
}

static void signal_fd(int fd)
{
	assert_int_equal(eventfd_write(fd, 1), 0);
}

static void make_eventfds(int *fds, uint32_t num)
{
	for (uint32_t i = 0; i < num; i++) {
		fds[i] = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
		assert_true(fds[i] >= 0);
	}
}

static void close_eventfds(int *fds, uint32_t num)
{
	for (uint32_t i = 0; i < num; i++)
		close(fds[i]);
}

static uint32_t num_assigned(void)
{
	struct vgic_irqfds_stats stats = { .size = sizeof(stats) };

	assert_int_equal(vgic_irqfds_get_stats(irqfds, &stats), 0);
	return stats.num_assigned;
}

static void eventfds_stay_bound_whatever_the_guest_does(void **state)
{
	struct machine *m = start(VGIC_MSIX, NUM_VECTORS);
	uint32_t failed = 0;
	int fds[4];

	(void)state;
	make_eventfds(fds, 4);
	assert_int_equal(vgic_msix_bind(msix, fds, 4, NULL), 0);
	assert_int_equal(num_assigned(), 4);
	assert_int_equal(vgic_msix_bind(msix, fds, 4, &failed), -EBUSY);
	assert_int_equal(failed, NUM_VECTORS);
	enable_all();
	signal_fd(fds[2]);
	await_lpi(m, 8194);
	vgic_msix_write_control(msix, 0);
	program(2, DOORBELL, 50);
	vgic_msix_write_control(msix, VGIC_MSIX_CONTROL_ENABLE);
	signal_fd(fds[2]);
	await_lpi(m, 8192 + 50);
	mask(2, true);
	signal_fd(fds[2]);
	for (unsigned i = 0; !pba_read(0, 8); i++) {
		assert_true(i < 100000);
		usleep(100);
	}
	expect_nothing(m);
	mask(2, false);
	expect_only(m, 0, 8192 + 50);
	vgic_msix_unbind(msix);
	assert_int_equal(num_assigned(), 0);
	vgic_msix_unbind(msix);
	assert_int_equal(vgic_msix_bind(msix, fds, 0, NULL), -EINVAL);
	assert_int_equal(vgic_msix_bind(msix, fds, NUM_VECTORS + 1, NULL), -EINVAL);
	assert_int_equal(vgic_msix_bind(msix, NULL, 1, NULL), -EINVAL);
	stop(m);
	close_eventfds(fds, 4);
}

/* Each vector in turn is the one that cannot be bound. */
static void binding_is_all_or_nothing(void **state)
{
	struct machine *m = start(VGIC_MSIX, NUM_VECTORS);
	int fds[8], wrong[8];
	uint32_t failed;

	(void)state;
	make_eventfds(fds, 8);
	for (uint32_t i = 0; i < 8; i++) {
		memcpy(wrong, fds, sizeof(fds));
		wrong[i] = 1 << 20; /* not open */
		failed = 99;
		assert_int_equal(vgic_msix_bind(msix, wrong, 8, &failed), -EBADF);
		assert_int_equal(failed, i);
		assert_int_equal(num_assigned(), 0);
		if (i == 0)
			continue;
		wrong[i] = wrong[0];
		assert_int_equal(vgic_msix_bind(msix, wrong, 8, &failed), -EBUSY);
		assert_int_equal(failed, i);
		assert_int_equal(num_assigned(), 0);
	}
	/* A vector may have none. */
	fds[3] = VGIC_NO_FD;
	assert_int_equal(vgic_msix_bind(msix, fds, 8, &failed), 0);
	assert_int_equal(num_assigned(), 7);
	stop(m);
	close_eventfds(fds, 8);
}

static void enabling_is_all_or_nothing(void **state)
{
	struct machine *m = start(VGIC_MSIX, NUM_VECTORS);
	struct vgic_msix_vector vectors[8], vector;
	uint32_t failed = 0;
	int fds[8];

	(void)state;
	make_eventfds(fds, 8);
	for (uint32_t i = 0; i < 8; i++)
		vectors[i] = (struct vgic_msix_vector){ .address = DOORBELL, .data = 20 + i, .eventfd = fds[i] };
	program(1, DOORBELL, 5);
	vectors[6].eventfd = 1 << 20;
	assert_int_equal(vgic_msix_enable(msix, vectors, 8, &failed), -EBADF);
	assert_int_equal(failed, 6);
	assert_int_equal(num_assigned(), 0);
	assert_int_equal(vgic_msix_read_control(msix), NUM_VECTORS - 1);
	assert_int_equal(table_read(16 * 1 + 8, 8), 5);
	assert_int_equal(table_read(16 * 0 + 8, 8), 0x100000000ull);
	for (uint32_t i = 0; i < 8; i++)
		assert_int_equal(vgic_msix_signal(msix, i), -ENOENT);
	vectors[6].eventfd = fds[6];
	vectors[5].control = VGIC_MSIX_VECTOR_MASKED;
	vectors[4].eventfd = VGIC_NO_FD;
	vectors[3].address = 0x1000; /* the guest's affair */
	assert_int_equal(vgic_msix_enable(msix, vectors, 8, &failed), 0);
	assert_int_equal(num_assigned(), 7);
	assert_int_equal(vgic_msix_num_unroutable(msix), 1);
	assert_int_equal(vgic_msix_enable(msix, vectors, 8, &failed), -EBUSY);
	assert_int_equal(vgic_msix_get_vector(msix, 5, &vector), 0);
	assert_int_equal(vector.address, DOORBELL);
	assert_int_equal(vector.data, 25);
	assert_int_equal(vector.control, VGIC_MSIX_VECTOR_MASKED);
	assert_int_equal(vector.eventfd, fds[5]);
	assert_int_equal(vgic_msix_get_vector(msix, NUM_VECTORS, &vector), -EINVAL);
	signal_fd(fds[7]);
	await_lpi(m, 8192 + 27);
	assert_int_equal(vgic_msix_signal(msix, 4), 1);
	expect_only(m, 0, 8192 + 24);
	vgic_msix_disable(msix);
	assert_int_equal(num_assigned(), 0);
	assert_int_equal(vgic_msix_signal(msix, 4), -ENOENT);
	vectors[0].control = 2;
	assert_int_equal(vgic_msix_enable(msix, vectors, 8, &failed), -EINVAL);
	vectors[0].control = 0;
	assert_int_equal(vgic_msix_enable(msix, vectors, 0, NULL), -EINVAL);
	assert_int_equal(vgic_msix_enable(msix, vectors, NUM_VECTORS + 1, NULL), -EINVAL);
	assert_int_equal(vgic_msix_enable(msix, NULL, 1, NULL), -EINVAL);
	stop(m);
	close_eventfds(fds, 8);
}

/* ---- MSI ---- */

static void msi_has_the_vector_in_the_data(void **state)
{
	struct machine *m = start(VGIC_MSI, 8);
	struct vgic_msi_state s = { .address = DOORBELL, .data = 0x43, .num_enabled = 4, .masked = 1 << 2 };
	uint64_t value;

	(void)state;
	assert_int_equal(vgic_msix_signal(msix, 0), -ENOENT);
	assert_int_equal(vgic_msi_configure(msix, &s), 0);
	assert_int_equal(vgic_msix_signal(msix, 1), 1);
	expect_only(m, 0, 8192 + 0x41);
	/* More than the guest has enabled are folded into it. */
	assert_int_equal(vgic_msix_signal(msix, 7), 1);
	expect_only(m, 0, 8192 + 0x43);
	assert_int_equal(vgic_msix_signal(msix, 6), 0);
	assert_int_equal(vgic_msi_pending(msix), 1 << 2);
	s.masked = 0;
	assert_int_equal(vgic_msi_configure(msix, &s), 0);
	expect_only(m, 0, 8192 + 0x42);
	assert_int_equal(vgic_msi_pending(msix), 0);
	assert_int_equal(vgic_msix_mask(msix, 0), 0);
	assert_int_equal(vgic_msix_signal(msix, 0), 0);
	assert_int_equal(vgic_msi_pending(msix), 1);
	assert_int_equal(vgic_msix_unmask(msix, 0), 0);
	expect_only(m, 0, 8192 + 0x40);
	s.num_enabled = 3;
	assert_int_equal(vgic_msi_configure(msix, &s), -EINVAL);
	s.num_enabled = 16;
	assert_int_equal(vgic_msi_configure(msix, &s), -EINVAL);
	assert_int_equal(vgic_msi_configure(msix, NULL), -EINVAL);
	s.num_enabled = 0;
	assert_int_equal(vgic_msi_configure(msix, &s), 0);
	assert_int_equal(vgic_msix_signal(msix, 0), -ENOENT);
	/* Of MSI-X there is nothing. */
	assert_int_equal(vgic_msix_table_read(msix, 0, 4, &value), -EINVAL);
	assert_int_equal(vgic_msix_read_control(msix), 0);
	vgic_msix_write_control(msix, VGIC_MSIX_CONTROL_ENABLE);
	assert_int_equal(vgic_msix_signal(msix, 0), -ENOENT);
	stop(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(creation_refuses_what_is_wrong),
		cmocka_unit_test(the_table_reads_as_written),
		cmocka_unit_test(vectors_go_where_the_guest_says),
		cmocka_unit_test(a_masked_vector_keeps_one_event_in_its_pending_bit),
		cmocka_unit_test(the_function_mask_is_over_all_vectors),
		cmocka_unit_test(an_address_without_a_doorbell_drops_and_counts),
		cmocka_unit_test(a_reset_forgets_entries_and_pending_bits),
		cmocka_unit_test(nobody_else_changes_its_routes),
		cmocka_unit_test(an_event_in_a_pause_is_pending_until_it_ends),
		cmocka_unit_test(pending_bits_are_taken_along),
		cmocka_unit_test(eventfds_stay_bound_whatever_the_guest_does),
		cmocka_unit_test(binding_is_all_or_nothing),
		cmocka_unit_test(enabling_is_all_or_nothing),
		cmocka_unit_test(msi_has_the_vector_in_the_data),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("msix", tests, NULL, NULL);
}
