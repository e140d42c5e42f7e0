/* SPDX-License-Identifier: MIT */
/*
 * Tests of the SGI baselines: a benchmark against a contender that does the
 * wrong thing would say nothing.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "../affinities.h"
#include "../sgi1r.h"
#include "mpidr.h"

typedef uint64_t (*affinity_fn)(uint32_t index);
typedef void (*send_fn)(struct baseline *baseline, uint32_t sender, uint64_t sgi1r);

static struct baseline *make_baseline(affinity_fn affinity, uint32_t num)
{
	uint64_t *affinities = calloc(num, sizeof(*affinities));

	assert_non_null(affinities);
	for (uint32_t i = 0; i < num; i++)
		affinities[i] = affinity(i);

	struct baseline *baseline = baseline_new(affinities, num);

	assert_non_null(baseline);
	free(affinities);
	return baseline;
}

/* One SGI to each vCPU, twice: it has it once, and no other has got it. */
static void check_each_vcpu_is_reached(affinity_fn affinity, uint32_t num, send_fn send)
{
	struct baseline *baseline = make_baseline(affinity, num);

	for (uint32_t i = 0; i < num; i++) {
		const unsigned intid = i % 16;

		send(baseline, 0, sgi1r_to(affinity(i), intid));
		send(baseline, 0, sgi1r_to(affinity(i), intid));
		for (uint32_t j = 0; j < num; j++)
			assert_int_equal(baseline_pending_sgis(baseline, j), j <= i ? 1u << j % 16 : 0);
		assert_int_equal(baseline_num_queued(baseline, i), 1);
	}
	baseline_free(baseline);
}

static void walk_reaches_each_vcpu(void **state)
{
	(void)state;
	check_each_vcpu_is_reached(affinity_linear, 64, baseline_sgi_by_walk);
	check_each_vcpu_is_reached(affinity_hostile, 64, baseline_sgi_by_walk);
}

static void table_reaches_each_vcpu(void **state)
{
	(void)state;
	check_each_vcpu_is_reached(affinity_linear, 64, baseline_sgi_by_table);
	check_each_vcpu_is_reached(affinity_hostile, 64, baseline_sgi_by_table);
}

static void table_is_given_up_above_a_page(void **state)
{
	static const struct {
		affinity_fn affinity;
		uint32_t num;
		bool has_table;
	} cases[] = {
		{ affinity_linear, 1, true },   { affinity_linear, 4, true },    { affinity_linear, 64, true },
		{ affinity_linear, 512, true }, { affinity_linear, 1024, true }, { affinity_linear, 2048, false },
		{ affinity_hostile, 4, false }, { affinity_hostile, 64, false }, { affinity_hostile, 512, false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct baseline *baseline = make_baseline(cases[i].affinity, cases[i].num);

		assert_int_equal(baseline_has_table(baseline), cases[i].has_table);
		baseline_free(baseline);
	}
}

static void check_absent_target(affinity_fn affinity, send_fn send)
{
	struct baseline *baseline = make_baseline(affinity, 4);
	const uint64_t absent = affinity(2) ^ UINT64_C(0x100);

	send(baseline, 0, sgi1r_to(absent, 3));
	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(baseline_num_queued(baseline, i), 0);
	baseline_free(baseline);
}

static void absent_target_gets_nothing(void **state)
{
	(void)state;
	check_absent_target(affinity_linear, baseline_sgi_by_walk);
	check_absent_target(affinity_linear, baseline_sgi_by_table);
	check_absent_target(affinity_hostile, baseline_sgi_by_walk);
	check_absent_target(affinity_hostile, baseline_sgi_by_table);
}

/* A list of targets in one cluster, one of them absent. */
static void check_target_list(send_fn send)
{
	struct baseline *baseline = make_baseline(affinity_linear, 20);

	/* Aff1 = 1, Aff0 = 1, 3 and 9: vCPUs 17 and 19, and none. */
	send(baseline, 0, UINT64_C(1) << 16 | 5 << 24 | 1 << 1 | 1 << 3 | 1 << 9);
	for (uint32_t i = 0; i < 20; i++)
		assert_int_equal(baseline_pending_sgis(baseline, i), i == 17 || i == 19 ? 1u << 5 : 0);
	baseline_free(baseline);
}

static void target_list_reaches_all_that_are_there(void **state)
{
	(void)state;
	check_target_list(baseline_sgi_by_walk);
	check_target_list(baseline_sgi_by_table);
}

static void broadcast_leaves_the_sender_out(void **state)
{
	static const send_fn sends[] = { baseline_sgi_by_walk, baseline_sgi_by_table };

	(void)state;
	for (size_t k = 0; k < sizeof(sends) / sizeof(sends[0]); k++) {
		struct baseline *baseline = make_baseline(affinity_hostile, 8);

		sends[k](baseline, 5, SGI1R_BROADCAST | 2 << 24);
		for (uint32_t i = 0; i < 8; i++)
			assert_int_equal(baseline_pending_sgis(baseline, i), i == 5 ? 0 : 1u << 2);
		baseline_free(baseline);
	}
}

static void different_sgis_queue_in_order_of_arrival(void **state)
{
	struct baseline *baseline = make_baseline(affinity_linear, 4);

	(void)state;
	baseline_sgi_by_walk(baseline, 0, sgi1r_to(affinity_linear(3), 7));
	baseline_sgi_by_table(baseline, 1, sgi1r_to(affinity_linear(3), 2));
	baseline_sgi_by_walk(baseline, 2, sgi1r_to(affinity_linear(3), 7));
	assert_int_equal(baseline_num_queued(baseline, 3), 2);
	assert_int_equal(baseline_pending_sgis(baseline, 3), 1u << 7 | 1u << 2);
	baseline_free(baseline);
}

/* Both numberings have to be different for each vCPU, or the rows would not measure what they say. */
static void affinities_are_unique(void **state)
{
	static const affinity_fn numberings[] = { affinity_linear, affinity_hostile };
	static uint64_t seen[AFFINITIES_MAX];

	(void)state;
	for (size_t k = 0; k < sizeof(numberings) / sizeof(numberings[0]); k++) {
		for (uint32_t i = 0; i < AFFINITIES_MAX; i++) {
			seen[i] = numberings[k](i);
			assert_int_equal(seen[i] & ~UINT64_C(0xff00ffffff), 0);
			for (uint32_t j = 0; j < i; j++)
				assert_true(seen[i] != seen[j]);
		}
	}
	/* Hostile ones share no cluster either. */
	for (uint32_t i = 0; i < AFFINITIES_MAX; i++) {
		for (uint32_t j = 0; j < i; j++)
			assert_true((seen[i] ^ seen[j]) >> 4);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(walk_reaches_each_vcpu),
		cmocka_unit_test(table_reaches_each_vcpu),
		cmocka_unit_test(table_is_given_up_above_a_page),
		cmocka_unit_test(absent_target_gets_nothing),
		cmocka_unit_test(target_list_reaches_all_that_are_there),
		cmocka_unit_test(broadcast_leaves_the_sender_out),
		cmocka_unit_test(different_sgis_queue_in_order_of_arrival),
		cmocka_unit_test(affinities_are_unique),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
