/* SPDX-License-Identifier: MIT */
/*
 * Tests of the historic table of routes: each GSI leads where it was told to, and
 * a reader never sees half an entry.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "route_table.h"

#define NUM_GSIS 100u

/* All fields are the same number, so that a mixture of two entries is seen. */
static struct base_msi message(uint32_t n)
{
	return (struct base_msi){ n, n, n, n, n };
}

static void assert_leads_to(struct base_routes *routes, uint32_t gsi, uint32_t n)
{
	struct base_msi msi = { 0 };

	assert_true(base_routes_find(routes, gsi, &msi));
	base_routes_end_find();
	assert_int_equal(msi.address_low, n);
	assert_int_equal(msi.address_high, n);
	assert_int_equal(msi.data, n);
	assert_int_equal(msi.flags, n);
	assert_int_equal(msi.devid, n);
}

static void each_gsi_has_its_entry(void **state)
{
	struct base_routes *routes = base_routes_create(NUM_GSIS);
	struct base_routes_times times = { 0 };
	struct base_msi msi;

	(void)state;
	assert_non_null(routes);
	/* Backwards: the table's size comes from its highest GSI, not from the number of entries. */
	for (uint32_t gsi = NUM_GSIS; gsi-- > 0;) {
		assert_false(base_routes_find(routes, gsi, &msi));
		base_routes_end_find();
		msi = message(gsi + 1);
		assert_int_equal(base_routes_add(routes, gsi, &msi, &times), 0);
		for (uint32_t other = gsi; other < NUM_GSIS; other++)
			assert_leads_to(routes, other, other + 1);
	}
	assert_true(times.copy > 0 && times.publish > 0 && times.wait > 0);
	base_routes_destroy(routes);
}

struct reader {
	pthread_t thread;
	struct base_routes *routes;
	_Atomic bool stop;
	_Atomic uint64_t num_found, num_mixed;
};

static void *run_reader(void *argument)
{
	struct reader *reader = argument;
	struct base_msi msi;

	base_routes_register_reader();
	while (!atomic_load(&reader->stop)) {
		for (uint32_t gsi = 0; gsi < NUM_GSIS; gsi++) {
			if (base_routes_find(reader->routes, gsi, &msi)) {
				atomic_fetch_add(&reader->num_found, 1);
				if (msi.address_low != gsi + 1 || msi.address_high != gsi + 1 || msi.data != gsi + 1 ||
				    msi.flags != gsi + 1 || msi.devid != gsi + 1)
					atomic_fetch_add(&reader->num_mixed, 1);
			}
			base_routes_end_find();
		}
	}
	return NULL;
}

static void readers_see_whole_entries(void **state)
{
	struct base_routes *routes = base_routes_create(NUM_GSIS);
	struct reader reader = { .routes = routes };
	struct base_routes_times times = { 0 };

	(void)state;
	assert_non_null(routes);
	assert_int_equal(pthread_create(&reader.thread, NULL, run_reader, &reader), 0);
	for (uint32_t gsi = 0; gsi < NUM_GSIS; gsi++) {
		const struct base_msi msi = message(gsi + 1);

		assert_int_equal(base_routes_add(routes, gsi, &msi, &times), 0);
	}
	while (atomic_load(&reader.num_found) < NUM_GSIS)
		;
	atomic_store(&reader.stop, true);
	pthread_join(reader.thread, NULL);
	assert_int_equal(atomic_load(&reader.num_mixed), 0);
	base_routes_destroy(routes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_gsi_has_its_entry),
		cmocka_unit_test(readers_see_whole_entries),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
