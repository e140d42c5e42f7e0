/* SPDX-License-Identifier: MIT */
/*
 * Routes: where events of a GSI go, what is refused, transactions, masks, pauses, and
 * what becomes of a line whose route changes.
 *
 * The allocator of the port layer is wrapped, so that any allocation can fail.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <vgic/route.h>
#include <vgic/state.h>

#include "its_guest.h"

#define NUM_GSIS 64u
#define DOORBELL (ITS_BASE(0) + VGIC_ITS_DOORBELL)

/* ---- Allocations that fail ---- */

static int failing_allocation; /* 1 is the next */
static int num_live;

void *__real_port_alloc_zeroed(size_t size, size_t align);
void *__wrap_port_alloc_zeroed(size_t size, size_t align);
void __real_port_free(void *memory);
void __wrap_port_free(void *memory);

void *__wrap_port_alloc_zeroed(size_t size, size_t align)
{
	void *memory = failing_allocation && --failing_allocation == 0 ? NULL : __real_port_alloc_zeroed(size, align);

	num_live += memory != NULL;
	return memory;
}

void __wrap_port_free(void *memory)
{
	num_live -= memory != NULL;
	__real_port_free(memory);
}

/* ---- A machine with a table ---- */

static struct vgic_routes *routes;

/*
 * Two vCPUs, ITS 0 with collections 0 and 1 at them; device 1 has events 0 to 7, LPIs 8192 to 8199, at collection 0. SPIs
 * 40 and 41 at vCPU 0, edge-triggered, Group 1.
 */
static struct machine *start(void)
{
	struct machine *m = its_describe(2, 1);

	m->config.has_dist_base = true;
	m->config.dist_base = MACHINE_DIST_BASE;
	m->config.features |= VGIC_FEATURE_MBIS;
	machine_start(m);
	its_set_up(m);
	map_collection(m, 0, 0);
	map_collection(m, 1, 1);
	map_device(m, 1, 5);
	for (uint32_t event = 0; event < 8; event++)
		map_event(m, 1, event, 8192 + event, 0);
	irq_set_up(m, 0, 40, 1, 0x80);
	irq_set_up(m, 0, 41, 1, 0x80);
	assert_int_equal(vgic_routes_create(m->vgic, NUM_GSIS, &routes), 0);
	return m;
}

static void stop(struct machine *m)
{
	vgic_routes_destroy(routes);
	machine_stop(m);
}

static const struct vgic_route nowhere = { .type = VGIC_ROUTE_NONE };
static const struct vgic_route nowhere_masked = { .type = VGIC_ROUTE_NONE, .flags = VGIC_ROUTE_MASKED };

static struct vgic_route to_spi(uint32_t intid, uint32_t source)
{
	struct vgic_route route = { .type = VGIC_ROUTE_SPI };

	route.to.spi.intid = intid;
	route.to.spi.source = source;
	return route;
}

static struct vgic_route to_msi(uint64_t address, uint32_t devid, uint32_t data)
{
	struct vgic_route route = { .type = VGIC_ROUTE_MSI };

	route.to.msi.address = address;
	route.to.msi.data = data;
	route.to.msi.devid = devid;
	route.to.msi.msi_flags = VGIC_MSI_VALID_DEVID;
	return route;
}

/* LPI 8192 + @event. */
static struct vgic_route to_event(uint32_t event)
{
	return to_msi(DOORBELL, 1, event);
}

static struct vgic_route masked(struct vgic_route route)
{
	route.flags |= VGIC_ROUTE_MASKED;
	return route;
}

static int set(uint32_t gsi, struct vgic_route route)
{
	return vgic_route_set(routes, gsi, &route);
}

static int stage(struct vgic_route_txn *txn, uint32_t gsi, struct vgic_route route)
{
	return vgic_route_txn_set(txn, gsi, &route);
}

static struct vgic_routes_stats stats(void)
{
	struct vgic_routes_stats s = { .size = sizeof(s) };

	assert_int_equal(vgic_routes_get_stats(routes, &s), 0);
	return s;
}

static bool line_is_high(struct machine *m, uint32_t intid)
{
	irq_set_edge(m, 0, intid, false);
	irq_write_bit(m, 0, GICD_ICPENDR, intid);
	return irq_is_pending(m, 0, intid);
}

/* ---- Creation ---- */

static void creation_refuses_what_is_wrong(void **state)
{
	struct machine *m = start();
	struct vgic_routes *other = NULL;

	(void)state;
	assert_int_equal(vgic_routes_create(NULL, 1, &other), -EINVAL);
	assert_int_equal(vgic_routes_create(m->vgic, 1, NULL), -EINVAL);
	assert_int_equal(vgic_routes_create(m->vgic, 0, &other), -EINVAL);
	assert_int_equal(vgic_routes_create(m->vgic, VGIC_MAX_GSIS + 1, &other), -EINVAL);
	assert_null(other);
	assert_int_equal(vgic_routes_create(m->vgic, VGIC_MAX_GSIS, &other), 0);
	assert_int_equal(vgic_routes_num_gsis(other), VGIC_MAX_GSIS);
	assert_int_equal(vgic_route_set(other, VGIC_MAX_GSIS - 1, &nowhere), 0);
	vgic_routes_destroy(other);
	vgic_routes_destroy(NULL);
	stop(m);
}

static void creation_survives_every_failing_allocation(void **state)
{
	struct machine *m = start();
	struct vgic_routes *other = NULL;
	const int live = num_live;
	int n, err = -ENOMEM;

	(void)state;
	for (n = 1; err; n++) {
		failing_allocation = n;
		err = vgic_routes_create(m->vgic, 8, &other);
		assert_true(err == 0 || err == -ENOMEM);
		if (err) {
			assert_null(other);
			assert_int_equal(num_live, live);
		}
	}
	failing_allocation = 0;
	assert_true(n > 4);
	vgic_routes_destroy(other);
	assert_int_equal(num_live, live);
	stop(m);
}

/* ---- Entries ---- */

static void every_gsi_leads_nowhere_at_first(void **state)
{
	struct machine *m = start();
	struct vgic_route route = to_spi(40, 0);

	(void)state;
	assert_int_equal(vgic_route_get(routes, 0, &route), 0);
	assert_int_equal(route.type, VGIC_ROUTE_NONE);
	assert_int_equal(vgic_signal_gsi(routes, 0), -ENOENT);
	assert_int_equal(vgic_set_gsi(routes, NUM_GSIS - 1, true), -ENOENT);
	assert_int_equal(vgic_set_gsi(routes, 0, false), 0);
	assert_int_equal(stats().unrouted, 2);
	expect_nothing(m);
	stop(m);
}

static void events_go_where_the_entry_leads(void **state)
{
	struct machine *m = start();

	(void)state;
	assert_int_equal(set(0, to_event(3)), 0);
	assert_int_equal(set(1, to_spi(40, 5)), 0);
	assert_int_equal(set(2, to_msi(MACHINE_DIST_BASE + GICD_SETSPI_NSR, 0, 41)), 0);
	assert_int_equal(stats().num_routed, 3);
	assert_int_equal(vgic_signal_gsi(routes, 0), 1);
	expect_only(m, 0, 8195);
	assert_int_equal(vgic_signal_gsi(routes, 1), 1);
	assert_int_equal(ack1(m, 0), 40);
	eoi1(m, 0, 40);
	assert_int_equal(vgic_signal_gsi(routes, 2), 1);
	assert_int_equal(ack1(m, 0), 41);
	eoi1(m, 0, 41);
	expect_nothing(m);
	/* A new entry takes the place of the old one. */
	assert_int_equal(set(0, to_event(4)), 0);
	assert_int_equal(vgic_signal_gsi(routes, 0), 1);
	expect_only(m, 0, 8196);
	assert_int_equal(set(0, nowhere), 0);
	assert_int_equal(vgic_signal_gsi(routes, 0), -ENOENT);
	assert_int_equal(stats().changes, 5);
	assert_int_equal(stats().num_routed, 2);
	stop(m);
}

static void an_entry_reads_as_it_was_set(void **state)
{
	struct machine *m = start();
	const struct vgic_route msi = masked(to_msi(DOORBELL, 0x12345678, 0xfedcba98)), spi = to_spi(41, 23);
	struct vgic_route route;

	(void)state;
	assert_int_equal(set(7, msi), 0);
	assert_int_equal(vgic_route_get(routes, 7, &route), 0);
	assert_memory_equal(&route, &msi, sizeof(route));
	assert_int_equal(set(7, spi), 0);
	assert_int_equal(vgic_route_get(routes, 7, &route), 0);
	assert_memory_equal(&route, &spi, sizeof(route));
	stop(m);
}

/* Data of more than 16 bits must not be taken for the EventID in its low bits. */
static void wide_data_is_no_event(void **state)
{
	struct machine *m = start();
	static const uint32_t data[] = { 0x10003, 0x20003, 0x80000003, 0xffffffff, 0x1ffff, 8 };
	uint64_t dropped = 0;

	(void)state;
	for (unsigned i = 0; i < sizeof(data) / sizeof(data[0]); i++) {
		assert_int_equal(set(0, to_event(data[i])), 0);
		assert_int_equal(vgic_signal_gsi(routes, 0), 0);
		assert_int_equal(its_stats(m, 0).dropped_unmapped_event, ++dropped);
	}
	assert_int_equal(set(0, to_msi(MACHINE_DIST_BASE + GICD_SETSPI_NSR, 0, 0x20000 + 41)), 0);
	assert_int_equal(vgic_signal_gsi(routes, 0), 0);
	/* Nor a DeviceID of more than 16. */
	assert_int_equal(set(0, to_msi(DOORBELL, 0x10001, 0)), 0);
	assert_int_equal(vgic_signal_gsi(routes, 0), 0);
	expect_nothing(m);
	stop(m);
}

static void all_32_bits_of_a_device_id_count(void **state)
{
	struct machine *m = its_describe(1, 1);

	(void)state;
	its_configs[0].device_id_bits = 32;
	machine_start(m);
	its_set_up(m);
	/* The device table of one page holds few: this one is signalled, and counted as unmapped. */
	assert_int_equal(vgic_routes_create(m->vgic, 1, &routes), 0);
	map_collection(m, 0, 0);
	map_device(m, 0x1001, 5);
	map_event(m, 0x1001, 0, 8192, 0);
	assert_int_equal(set(0, to_msi(DOORBELL, 0x80001001, 0)), 0);
	assert_int_equal(vgic_signal_gsi(routes, 0), 0);
	assert_int_equal(set(0, to_msi(DOORBELL, 0x1001, 0)), 0);
	assert_int_equal(vgic_signal_gsi(routes, 0), 1);
	stop(m);
}

static void an_its_that_is_off_is_told(void **state)
{
	struct machine *m = start();

	(void)state;
	assert_int_equal(set(0, to_event(0)), 0);
	its_write(m, 0, GITS_CTLR, 4, 0);
	assert_int_equal(vgic_signal_gsi(routes, 0), -EBUSY);
	stop(m);
}

/* Each is refused, and the entry stays what it was. */
static void what_is_wrong_is_refused(void **state)
{
	struct machine *m = start();
	struct vgic_route wrong[16], route;
	unsigned n = 0;

	(void)state;
	assert_int_equal(set(0, to_event(1)), 0);
	wrong[n] = to_spi(40, 0), wrong[n++].type = 3;
	wrong[n] = to_event(0), wrong[n++].flags = 2;
	wrong[n++] = to_spi(31, 0);
	wrong[n++] = to_spi(32 + m->config.num_spis, 0);
	wrong[n++] = to_spi(UINT32_MAX, 0);
	wrong[n++] = to_spi(40, VGIC_NUM_LINE_SOURCES);
	wrong[n++] = masked(to_spi(40, 0));
	wrong[n] = to_event(0), wrong[n++].to.msi.msi_flags = 0;
	wrong[n] = to_event(0), wrong[n++].to.msi.msi_flags = 2 | VGIC_MSI_VALID_DEVID;
	wrong[n] = to_event(0), wrong[n++].to.msi.reserved = 1;
	for (unsigned i = 0; i < n; i++)
		assert_int_equal(set(0, wrong[i]), -EINVAL);
	assert_int_equal(vgic_route_set(routes, 0, NULL), -EINVAL);
	assert_int_equal(set(NUM_GSIS, nowhere), -EINVAL);
	assert_int_equal(set(0, to_msi(DOORBELL + 4, 1, 0)), -ENODEV);
	assert_int_equal(set(0, to_msi(ITS_BASE(1) + VGIC_ITS_DOORBELL, 1, 0)), -ENODEV);
	assert_int_equal(set(0, to_msi(MACHINE_DIST_BASE + GICD_CLRSPI_NSR, 1, 0)), -ENODEV);
	assert_int_equal(set(0, to_msi(0, 1, 0)), -ENODEV);
	assert_int_equal(vgic_route_get(routes, NUM_GSIS, &route), -EINVAL);
	assert_int_equal(vgic_route_get(routes, 0, NULL), -EINVAL);
	assert_int_equal(vgic_signal_gsi(routes, NUM_GSIS), -EINVAL);
	assert_int_equal(vgic_set_gsi(routes, UINT32_MAX, true), -EINVAL);
	assert_int_equal(vgic_gsi_is_pending(routes, NUM_GSIS), -EINVAL);
	assert_int_equal(vgic_routes_get_stats(routes, NULL), -EINVAL);
	assert_int_equal(vgic_routes_get_stats(routes, &(struct vgic_routes_stats){ .size = 1 }), -EINVAL);
	assert_int_equal(vgic_signal_gsi(routes, 0), 1);
	expect_only(m, 0, 8193);
	assert_int_equal(stats().changes, 1);
	stop(m);
}

/* ---- Lines ---- */

static void a_gsi_drives_its_source(void **state)
{
	struct machine *m = start();

	(void)state;
	irq_set_edge(m, 0, 40, false);
	assert_int_equal(set(0, to_spi(40, 0)), 0);
	assert_int_equal(set(1, to_spi(40, 1)), 0);
	assert_int_equal(vgic_set_gsi(routes, 0, true), 1);
	assert_int_equal(vgic_set_gsi(routes, 0, true), 0);
	assert_int_equal(vgic_set_gsi(routes, 1, true), 1);
	assert_int_equal(vgic_set_gsi(routes, 0, false), 1);
	assert_true(irq_is_pending(m, 0, 40));
	assert_int_equal(vgic_set_gsi(routes, 1, false), 1);
	assert_int_equal(vgic_set_gsi(routes, 1, false), 0);
	assert_false(irq_is_pending(m, 0, 40));
	/* For an MSI high is an event. */
	assert_int_equal(set(2, to_event(0)), 0);
	assert_int_equal(vgic_set_gsi(routes, 2, false), 0);
	expect_nothing(m);
	assert_int_equal(vgic_set_gsi(routes, 2, true), 1);
	expect_only(m, 0, 8192);
	stop(m);
}

static void a_source_belongs_to_one_gsi(void **state)
{
	struct machine *m = start();

	(void)state;
	assert_int_equal(set(0, to_spi(40, 3)), 0);
	assert_int_equal(set(0, to_spi(40, 3)), 0);
	assert_int_equal(set(1, to_spi(40, 3)), -EBUSY);
	assert_int_equal(set(1, to_spi(40, 4)), 0);
	assert_int_equal(set(0, nowhere), 0);
	assert_int_equal(set(1, to_spi(40, 3)), 0);
	assert_int_equal(set(0, to_spi(40, 4)), 0);
	stop(m);
}

static void a_route_that_changes_takes_its_level_along_to_nowhere(void **state)
{
	struct machine *m = start();

	(void)state;
	assert_int_equal(set(0, to_spi(40, 3)), 0);
	assert_int_equal(vgic_set_gsi(routes, 0, true), 1);
	assert_int_equal(vgic_set_spi(m->vgic, 40, 4, true), 0);
	/* The same again is no change. */
	assert_int_equal(set(0, to_spi(40, 3)), 0);
	assert_int_equal(vgic_set_gsi(routes, 0, true), 0);
	assert_int_equal(set(0, to_spi(41, 3)), 0);
	assert_int_equal(vgic_set_spi(m->vgic, 40, 4, false), 0);
	assert_false(line_is_high(m, 40));
	assert_false(line_is_high(m, 41));
	assert_int_equal(vgic_set_gsi(routes, 0, true), 1);
	assert_true(line_is_high(m, 41));
	vgic_routes_destroy(routes);
	assert_false(line_is_high(m, 41));
	machine_stop(m);
}

/* ---- Transactions ---- */

static void nothing_is_seen_before_the_commit_and_all_after_it(void **state)
{
	struct machine *m = start();
	struct vgic_route_txn txn;
	struct vgic_route route;

	(void)state;
	assert_int_equal(set(1, to_event(7)), 0);
	assert_int_equal(vgic_route_txn_begin(routes, &txn), 0);
	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(stage(&txn, i, to_event(i)), 0);
	assert_int_equal(stage(&txn, 3, to_event(6)), 0);
	assert_int_equal(stats().num_changes, 4);
	assert_int_equal(vgic_route_get(routes, 0, &route), 0);
	assert_int_equal(route.type, VGIC_ROUTE_NONE);
	assert_int_equal(vgic_signal_gsi(routes, 0), -ENOENT);
	assert_int_equal(vgic_signal_gsi(routes, 1), 1);
	expect_only(m, 0, 8199);
	vgic_route_txn_commit(&txn);
	assert_int_equal(stats().num_changes, 0);
	assert_int_equal(stats().commits, 1);
	assert_int_equal(stats().changes, 5);
	assert_int_equal(stats().num_routed, 4);
	for (uint32_t i = 0; i < 4; i++) {
		assert_int_equal(vgic_signal_gsi(routes, i), 1);
		expect_only(m, 0, i == 3 ? 8198 : 8192 + i);
	}
	assert_int_equal(vgic_route_get(routes, 3, &route), 0);
	assert_int_equal(route.to.msi.data, 6);
	stop(m);
}

static void an_abort_leaves_nothing(void **state)
{
	struct machine *m = start();
	struct vgic_route_txn txn;

	(void)state;
	assert_int_equal(set(0, to_spi(40, 0)), 0);
	assert_int_equal(vgic_set_gsi(routes, 0, true), 1);
	assert_int_equal(vgic_route_txn_begin(routes, &txn), 0);
	assert_int_equal(stage(&txn, 0, nowhere), 0);
	assert_int_equal(stage(&txn, 1, to_event(1)), 0);
	assert_int_equal(stage(&txn, 2, to_spi(41, 0)), 0);
	vgic_route_txn_abort(&txn);
	assert_int_equal(stats().aborts, 1);
	assert_int_equal(stats().commits, 0);
	assert_int_equal(stats().num_changes, 0);
	assert_int_equal(vgic_set_gsi(routes, 0, true), 0);
	assert_int_equal(vgic_signal_gsi(routes, 1), -ENOENT);
	/* Sources are as free, or not, as before. */
	assert_int_equal(set(2, to_spi(40, 0)), -EBUSY);
	assert_int_equal(set(3, to_spi(41, 0)), 0);
	/* What was aborted does not come with the next commit. */
	assert_int_equal(vgic_route_txn_begin(routes, &txn), 0);
	assert_int_equal(stage(&txn, 5, to_event(5)), 0);
	vgic_route_txn_commit(&txn);
	assert_int_equal(vgic_signal_gsi(routes, 1), -ENOENT);
	assert_int_equal(vgic_signal_gsi(routes, 5), 1);
	stop(m);
}

static void transactions_keep_out_of_each_others_way(void **state)
{
	struct machine *m = start();
	struct vgic_route_txn a, b;

	(void)state;
	assert_int_equal(vgic_route_txn_begin(routes, &a), 0);
	assert_int_equal(vgic_route_txn_begin(routes, &b), 0);
	assert_int_equal(stage(&a, 0, to_event(0)), 0);
	assert_int_equal(stage(&b, 1, to_event(1)), 0);
	assert_int_equal(stage(&b, 0, to_event(2)), -EBUSY);
	assert_int_equal(set(0, to_event(2)), -EBUSY);
	assert_int_equal(stage(&a, 2, to_spi(40, 0)), 0);
	assert_int_equal(stage(&b, 3, to_spi(40, 0)), -EBUSY);
	assert_int_equal(set(3, to_spi(40, 0)), -EBUSY);
	/* The one that is committed does not take the other along. */
	vgic_route_txn_commit(&b);
	assert_int_equal(vgic_signal_gsi(routes, 0), -ENOENT);
	assert_int_equal(vgic_signal_gsi(routes, 1), 1);
	assert_int_equal(set(1, to_event(1)), 0);
	vgic_route_txn_commit(&a);
	assert_int_equal(vgic_signal_gsi(routes, 0), 1);
	stop(m);
}

static void a_source_cannot_be_handed_on_within_a_transaction(void **state)
{
	struct machine *m = start();
	struct vgic_route_txn txn;

	(void)state;
	assert_int_equal(set(0, to_spi(40, 0)), 0);
	assert_int_equal(vgic_route_txn_begin(routes, &txn), 0);
	assert_int_equal(stage(&txn, 0, nowhere), 0);
	assert_int_equal(stage(&txn, 1, to_spi(40, 0)), -EBUSY);
	/* But the entry may have it back, and may change its mind about another. */
	assert_int_equal(stage(&txn, 0, to_spi(40, 0)), 0);
	assert_int_equal(stage(&txn, 1, to_spi(41, 0)), 0);
	assert_int_equal(stage(&txn, 1, to_spi(41, 1)), 0);
	assert_int_equal(stage(&txn, 2, to_spi(41, 0)), 0);
	vgic_route_txn_commit(&txn);
	assert_int_equal(vgic_set_gsi(routes, 2, true), 1);
	assert_true(line_is_high(m, 41));
	stop(m);
}

static void what_is_closed_stays_closed(void **state)
{
	struct machine *m = start();
	struct vgic_route_txn txn, copy;

	(void)state;
	assert_int_equal(vgic_route_txn_begin(NULL, &txn), -EINVAL);
	assert_int_equal(vgic_route_txn_begin(routes, NULL), -EINVAL);
	assert_int_equal(vgic_route_txn_begin(routes, &txn), 0);
	assert_int_equal(stage(&txn, NUM_GSIS, nowhere), -EINVAL);
	assert_int_equal(stage(&txn, 0, to_msi(0, 0, 0)), -ENODEV);
	assert_int_equal(stage(&txn, 0, to_event(0)), 0);
	copy = txn;
	vgic_route_txn_commit(&txn);
	assert_int_equal(stage(&txn, 0, nowhere), -EINVAL);
	vgic_route_txn_commit(&txn);
	vgic_route_txn_abort(&txn);
	vgic_route_txn_abort(&copy);
	vgic_route_txn_abort(NULL);
	vgic_route_txn_commit(NULL);
	assert_int_equal(stats().commits, 1);
	assert_int_equal(stats().aborts, 0);
	assert_int_equal(vgic_signal_gsi(routes, 0), 1);
	/* An empty one changes and counts nothing. */
	assert_int_equal(vgic_route_txn_begin(routes, &txn), 0);
	vgic_route_txn_commit(&txn);
	assert_int_equal(stats().commits, 1);
	stop(m);
}

/* ---- Masks ---- */

static void an_event_behind_a_mask_is_delivered_once_when_it_goes(void **state)
{
	struct machine *m = start();

	(void)state;
	assert_int_equal(set(0, masked(to_event(0))), 0);
	assert_int_equal(vgic_gsi_is_pending(routes, 0), 0);
	assert_int_equal(vgic_signal_gsi(routes, 0), 0);
	assert_int_equal(vgic_signal_gsi(routes, 0), 0);
	assert_int_equal(vgic_gsi_is_pending(routes, 0), 1);
	assert_int_equal(stats().kept, 2);
	expect_nothing(m);
	/* A masked vector may be moved: what is kept goes to where it leads when the mask goes. */
	assert_int_equal(set(0, nowhere_masked), 0);
	assert_int_equal(set(0, masked(to_event(1))), 0);
	assert_int_equal(vgic_gsi_is_pending(routes, 0), 1);
	assert_int_equal(set(0, to_event(1)), 0);
	assert_int_equal(vgic_gsi_is_pending(routes, 0), 0);
	expect_only(m, 0, 8193);
	/* Nothing is kept now: no second delivery. */
	assert_int_equal(set(0, masked(to_event(1))), 0);
	assert_int_equal(set(0, to_event(1)), 0);
	expect_nothing(m);
	stop(m);
}

static void a_commit_delivers_what_was_kept(void **state)
{
	struct machine *m = start();
	struct vgic_route_txn txn;

	(void)state;
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(set(i, nowhere_masked), 0);
		assert_int_equal(vgic_signal_gsi(routes, i), 0);
	}
	assert_int_equal(vgic_route_txn_begin(routes, &txn), 0);
	assert_int_equal(stage(&txn, 0, to_event(0)), 0);
	assert_int_equal(stage(&txn, 1, masked(to_event(1))), 0);
	assert_int_equal(stage(&txn, 2, nowhere), 0);
	expect_nothing(m);
	vgic_route_txn_commit(&txn);
	expect_only(m, 0, 8192);
	assert_int_equal(vgic_gsi_is_pending(routes, 1), 1);
	/* To nowhere: dropped, and counted. */
	assert_int_equal(vgic_gsi_is_pending(routes, 2), 0);
	assert_int_equal(stats().unrouted, 1);
	stop(m);
}

/* ---- Pauses ---- */

static void begin_pause(struct machine *m)
{
	assert_int_equal(vgic_pause(m->vgic), 0);
}

static void end_pause(struct machine *m)
{
	assert_int_equal(vgic_resume(m->vgic), 0);
}

static void expect_kept(struct machine *m, uint32_t gsi)
{
	assert_int_equal(vgic_gsi_is_pending(routes, gsi), 1);
	expect_nothing(m);
}

static void an_event_in_a_pause_is_delivered_once_when_it_ends(void **state)
{
	struct machine *m = start();

	(void)state;
	assert_int_equal(set(0, to_event(0)), 0);
	assert_int_equal(set(1, to_msi(MACHINE_DIST_BASE + GICD_SETSPI_NSR, 0, 41)), 0);
	assert_int_equal(set(2, to_event(2)), 0);
	begin_pause(m);
	begin_pause(m);
	assert_int_equal(vgic_signal_gsi(routes, 0), 0);
	assert_int_equal(vgic_set_gsi(routes, 0, true), 0);
	expect_kept(m, 0);
	assert_int_equal(stats().kept, 2);
	end_pause(m);
	expect_kept(m, 0);
	end_pause(m);
	expect_only(m, 0, 8192);
	assert_int_equal(vgic_gsi_is_pending(routes, 0), 0);
	/* Nothing is left for another pause. */
	begin_pause(m);
	end_pause(m);
	expect_nothing(m);
	/* A message may be there twice, but not never. */
	begin_pause(m);
	assert_int_equal(vgic_signal_gsi(routes, 1), 0);
	irq_write_bit(m, 0, GICD_ICPENDR, 41);
	expect_kept(m, 1);
	end_pause(m);
	assert_int_equal(take(m, 0), 41);
	expect_nothing(m);
	assert_int_equal(vgic_gsi_is_pending(routes, 2), 0);
	assert_int_equal(vgic_pause(NULL), -EINVAL);
	assert_int_equal(vgic_resume(NULL), -EINVAL);
	stop(m);
}

/* Lines are not paused, nor is what leads nowhere. */
static void what_is_not_paused_goes_on(void **state)
{
	struct machine *m = start();

	(void)state;
	assert_int_equal(set(0, to_spi(40, 0)), 0);
	begin_pause(m);
	assert_int_equal(vgic_signal_gsi(routes, 0), 1);
	assert_int_equal(take(m, 0), 40);
	assert_int_equal(vgic_set_gsi(routes, 0, true), 1);
	assert_int_equal(take(m, 0), 40);
	assert_int_equal(vgic_signal_gsi(routes, 1), -ENOENT);
	end_pause(m);
	expect_nothing(m);
	stop(m);
}

/* Whichever ends last delivers. */
static void mask_and_pause_each_hold_an_event(void **state)
{
	struct machine *m = start();
	struct vgic_route_txn txn;

	(void)state;
	/* Masked before, unmasked in the pause. */
	assert_int_equal(set(0, masked(to_event(0))), 0);
	assert_int_equal(set(1, masked(to_event(1))), 0);
	assert_int_equal(vgic_signal_gsi(routes, 0), 0);
	assert_int_equal(vgic_signal_gsi(routes, 1), 0);
	begin_pause(m);
	assert_int_equal(set(0, to_event(0)), 0);
	assert_int_equal(vgic_route_txn_begin(routes, &txn), 0);
	assert_int_equal(stage(&txn, 1, to_event(1)), 0);
	vgic_route_txn_commit(&txn);
	expect_kept(m, 0);
	expect_kept(m, 1);
	end_pause(m);
	assert_int_equal(take(m, 0) + take(m, 0), 8192 + 8193);
	expect_nothing(m);
	/* Kept by the pause, masked in it, and moved. */
	begin_pause(m);
	assert_int_equal(vgic_signal_gsi(routes, 0), 0);
	assert_int_equal(set(0, nowhere_masked), 0);
	end_pause(m);
	expect_kept(m, 0);
	assert_int_equal(set(0, to_event(3)), 0);
	expect_only(m, 0, 8195);
	/* In a transaction when the pause ends: it is as it was before. */
	begin_pause(m);
	assert_int_equal(vgic_signal_gsi(routes, 1), 0);
	assert_int_equal(vgic_route_txn_begin(routes, &txn), 0);
	assert_int_equal(stage(&txn, 1, masked(to_event(5))), 0);
	end_pause(m);
	expect_only(m, 0, 8193);
	vgic_route_txn_commit(&txn);
	expect_nothing(m);
	assert_int_equal(vgic_gsi_is_pending(routes, 1), 0);
	stop(m);
}

static void what_a_pause_keeps_goes_where_the_entry_leads_then(void **state)
{
	struct machine *m = start();

	(void)state;
	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(set(i, to_event(i)), 0);
	begin_pause(m);
	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(vgic_signal_gsi(routes, i), 0);
	assert_int_equal(set(0, to_event(7)), 0);
	assert_int_equal(set(1, nowhere), 0);
	assert_int_equal(stats().unrouted, 1);
	assert_int_equal(vgic_gsi_is_pending(routes, 1), 0);
	/* The next who has that GSI does not inherit it. */
	assert_int_equal(set(1, to_event(1)), 0);
	/* A line takes it at once. */
	assert_int_equal(set(2, to_spi(40, 0)), 0);
	assert_int_equal(take(m, 0), 40);
	expect_kept(m, 0);
	expect_kept(m, 3);
	its_write(m, 0, GITS_CTLR, 4, 0);
	its_write(m, 0, GITS_CTLR, 4, GITS_CTLR_ENABLED);
	end_pause(m);
	assert_int_equal(take(m, 0) + take(m, 0), 8199 + 8195);
	expect_nothing(m);
	/* Off when the pause ends: as a signal would be then, it is dropped. */
	begin_pause(m);
	assert_int_equal(vgic_signal_gsi(routes, 0), 0);
	its_write(m, 0, GITS_CTLR, 4, 0);
	end_pause(m);
	assert_int_equal(vgic_gsi_is_pending(routes, 0), 0);
	its_write(m, 0, GITS_CTLR, 4, GITS_CTLR_ENABLED);
	expect_nothing(m);
	stop(m);
}

/* Every table of the controller, those of the pause too; and none that has gone. */
static void every_table_delivers_what_it_has_kept(void **state)
{
	struct machine *m = start();
	const struct vgic_route other = to_event(1);
	struct vgic_routes *first = routes, *second, *third;

	(void)state;
	assert_int_equal(vgic_routes_create(m->vgic, 1, &second), 0);
	assert_int_equal(set(0, to_event(0)), 0);
	assert_int_equal(vgic_route_set(second, 0, &other), 0);
	begin_pause(m);
	assert_int_equal(vgic_routes_create(m->vgic, VGIC_MAX_GSIS, &third), 0);
	routes = third;
	assert_int_equal(set(VGIC_MAX_GSIS - 1, to_event(2)), 0);
	assert_int_equal(vgic_signal_gsi(first, 0), 0);
	assert_int_equal(vgic_signal_gsi(second, 0), 0);
	assert_int_equal(vgic_signal_gsi(third, VGIC_MAX_GSIS - 1), 0);
	expect_nothing(m);
	vgic_routes_destroy(second);
	end_pause(m);
	assert_int_equal(take(m, 0) + take(m, 0), 8192 + 8194);
	expect_nothing(m);
	vgic_routes_destroy(third);
	routes = first;
	begin_pause(m);
	assert_int_equal(vgic_signal_gsi(first, 0), 0);
	vgic_routes_destroy(first);
	end_pause(m);
	expect_nothing(m);
	machine_stop(m);
}

/* A table is the VMM's: what it has kept comes to the guest that has been restored. */
static void a_restore_delivers_what_was_kept(void **state)
{
	struct machine *m = start();
	uint8_t *image;
	size_t size;

	(void)state;
	assert_int_equal(set(0, to_event(0)), 0);
	assert_int_equal(set(1, to_event(1)), 0);
	begin_pause(m);
	assert_int_equal(vgic_signal_gsi(routes, 0), 0);
	assert_int_equal(vgic_save_size(m->vgic, &size), 0);
	image = malloc(size);
	assert_non_null(image);
	assert_int_equal(vgic_save(m->vgic, image, size, &size), 0);
	expect_kept(m, 0);
	end_pause(m);
	expect_only(m, 0, 8192);
	/* It was not in the image; who takes it along signals it again, in a pause or behind it. */
	assert_int_equal(vgic_restore(m->vgic, image, size, NULL), 0);
	expect_nothing(m);
	begin_pause(m);
	assert_int_equal(vgic_signal_gsi(routes, 1), 0);
	assert_int_equal(vgic_restore(m->vgic, image, size, NULL), 0);
	expect_kept(m, 1);
	end_pause(m);
	expect_only(m, 0, 8193);
	free(image);
	stop(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(creation_refuses_what_is_wrong),
		cmocka_unit_test(creation_survives_every_failing_allocation),
		cmocka_unit_test(every_gsi_leads_nowhere_at_first),
		cmocka_unit_test(events_go_where_the_entry_leads),
		cmocka_unit_test(an_entry_reads_as_it_was_set),
		cmocka_unit_test(wide_data_is_no_event),
		cmocka_unit_test(all_32_bits_of_a_device_id_count),
		cmocka_unit_test(an_its_that_is_off_is_told),
		cmocka_unit_test(what_is_wrong_is_refused),
		cmocka_unit_test(a_gsi_drives_its_source),
		cmocka_unit_test(a_source_belongs_to_one_gsi),
		cmocka_unit_test(a_route_that_changes_takes_its_level_along_to_nowhere),
		cmocka_unit_test(nothing_is_seen_before_the_commit_and_all_after_it),
		cmocka_unit_test(an_abort_leaves_nothing),
		cmocka_unit_test(transactions_keep_out_of_each_others_way),
		cmocka_unit_test(a_source_cannot_be_handed_on_within_a_transaction),
		cmocka_unit_test(what_is_closed_stays_closed),
		cmocka_unit_test(an_event_behind_a_mask_is_delivered_once_when_it_goes),
		cmocka_unit_test(a_commit_delivers_what_was_kept),
		cmocka_unit_test(an_event_in_a_pause_is_delivered_once_when_it_ends),
		cmocka_unit_test(what_is_not_paused_goes_on),
		cmocka_unit_test(mask_and_pause_each_hold_an_event),
		cmocka_unit_test(what_a_pause_keeps_goes_where_the_entry_leads_then),
		cmocka_unit_test(every_table_delivers_what_it_has_kept),
		cmocka_unit_test(a_restore_delivers_what_was_kept),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("routes", tests, NULL, NULL);
}
