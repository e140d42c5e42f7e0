/* SPDX-License-Identifier: MIT */
/*
 * The map from affinities to vCPUs: every one that is present is found, nothing
 * else is, whatever the affinities are. The cost of building it is counted in
 * multipliers drawn, not in time.
 */
#include "unit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "affinity.h"

#define MAX_COUNT 4096u

/* ---- The port layer, wrapped: random numbers that are known, and memory that is counted ---- */

static struct rng multipliers;
static unsigned num_drawn;
static unsigned num_bad;            /* so many of the next draws give a multiplier that hashes nothing */
static unsigned failing_allocation; /* 1 is the next one; 0: none fails */
static int num_live;

uint64_t __wrap_port_random(void);
void *__real_port_alloc_zeroed(size_t size, size_t align);
void *__wrap_port_alloc_zeroed(size_t size, size_t align);
void __real_port_free(void *memory);
void __wrap_port_free(void *memory);

uint64_t __wrap_port_random(void)
{
	num_drawn++;
	if (num_bad) {
		num_bad--;
		return 0;
	}
	return rng_next(&multipliers);
}

void *__wrap_port_alloc_zeroed(size_t size, size_t align)
{
	void *memory = failing_allocation == 1 ? NULL : __real_port_alloc_zeroed(size, align);

	failing_allocation -= failing_allocation != 0;
	num_live += memory != NULL;
	return memory;
}

void __wrap_port_free(void *memory)
{
	num_live -= memory != NULL;
	__real_port_free(memory);
}

/* ---- Sets of affinities ---- */

typedef uint32_t (*affinity_rule)(uint32_t i);

/* Aff0 counts to 255, then Aff1: sixteen vCPUs a cluster. */
static uint32_t consecutive(uint32_t i)
{
	return i;
}

static uint32_t one_for_each_cluster(uint32_t i)
{
	return i * CLUSTER_SIZE;
}

/* As QEMU and KVM lay them out: Aff0 0-15, then Aff1. */
static uint32_t sixteen_for_each_aff1(uint32_t i)
{
	return (i / 16) << 8 | i % 16;
}

static uint32_t only_aff1(uint32_t i)
{
	return i << 8;
}

/* Differing in Aff3 first: then its 256 values are used up, and Aff2 goes on. */
static uint32_t only_aff3(uint32_t i)
{
	return (i & 0xff) << 24 | (i >> 8) << 16;
}

/* Differing in the highest bits only. */
static uint32_t high_bits(uint32_t i)
{
	return i << 20;
}

static uint32_t bit_reversed(uint32_t i)
{
	uint32_t reversed = 0;

	for (unsigned bit = 0; bit < 32; bit++)
		reversed |= (i >> bit & 1) << (31 - bit);
	return reversed;
}

/* One bit, two bits, ... set: every hash by shifting has seen all of it before. */
static uint32_t gray_code(uint32_t i)
{
	return (i ^ i >> 1) << 4;
}

/* Both ends of the space, and of every field. */
static uint32_t both_ends(uint32_t i)
{
	return i % 2 ? 0xffffffffu - i / 2 * 17 : i / 2 * 17;
}

/* Multiples of a number that looks like a hash's multiplier. */
static uint32_t golden(uint32_t i)
{
	return i * 0x9e3779b1u;
}

/* Far apart clusters with the same low bits. */
static uint32_t wide_steps(uint32_t i)
{
	return i * 0x00100010u;
}

static const struct {
	const char *name;
	affinity_rule rule;
} rules[] = {
	{ "consecutive", consecutive },
	{ "one for each cluster", one_for_each_cluster },
	{ "sixteen for each Aff1", sixteen_for_each_aff1 },
	{ "only Aff1", only_aff1 },
	{ "only Aff3", only_aff3 },
	{ "high bits", high_bits },
	{ "bit reversed", bit_reversed },
	{ "Gray code", gray_code },
	{ "both ends", both_ends },
	{ "golden", golden },
	{ "wide steps", wide_steps },
};

static int compare(const void *a, const void *b)
{
	const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

static bool is_present(const uint32_t *sorted, uint32_t count, uint32_t packed)
{
	return bsearch(&packed, sorted, count, sizeof(*sorted), compare) != NULL;
}

/* Neighbours differ in one bit of any field: none of them may be taken for the present one. */
static void check_absent(const struct affinity_map *map, const uint32_t *packed, uint32_t count, struct rng *rng)
{
	uint32_t *sorted = calloc(MAX_COUNT, sizeof(*sorted));

	assert_non_null(sorted);
	memcpy(sorted, packed, count * sizeof(*sorted));
	qsort(sorted, count, sizeof(*sorted), compare);
	for (uint32_t i = 0; i < count; i++) {
		for (unsigned bit = 0; bit < 32; bit++) {
			const uint32_t neighbour = packed[i] ^ UINT32_C(1) << bit;

			if (affinity_find(map, neighbour) != CLUSTER_NO_VCPU && !is_present(sorted, count, neighbour))
				fail_msg("%08x is found and is not there", neighbour);
		}
	}
	for (int n = 0; n < 2000; n++) {
		const uint32_t other = (uint32_t)rng_next(rng);

		if (affinity_find(map, other) != CLUSTER_NO_VCPU && !is_present(sorted, count, other))
			fail_msg("%08x is found and is not there", other);
	}
	free(sorted);
}

/* Build, look every one up, look others up, free. Returns how many multipliers were drawn. */
static unsigned check_set(const uint32_t *packed, uint32_t count, struct rng *rng)
{
	struct affinity_map map = { .multiplier = 0 };

	num_drawn = 0;
	assert_int_equal(affinity_map_init(&map, packed, count), 0);
	assert_int_equal(num_live, 2);
	for (uint32_t i = 0; i < count; i++) {
		const struct cluster *cluster = affinity_find_cluster(&map, packed[i] / CLUSTER_SIZE);

		assert_non_null(cluster);
		assert_int_equal(cluster->vcpu[packed[i] % CLUSTER_SIZE], i);
		assert_int_equal(affinity_find(&map, packed[i]), i);
	}
	check_absent(&map, packed, count, rng);
	affinity_map_free(&map);
	assert_int_equal(num_live, 0);
	return num_drawn;
}

static void each_rule_at_each_size(void **state)
{
	static const uint32_t sizes[] = { 1, 2, 3, 4, 15, 16, 17, 64, 512, 4095, 4096 };
	uint32_t *packed = calloc(MAX_COUNT, sizeof(*packed));
	struct rng rng = { 60 };

	(void)state;
	assert_non_null(packed);
	for (size_t r = 0; r < sizeof(rules) / sizeof(rules[0]); r++) {
		for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
			unsigned drawn;

			for (uint32_t i = 0; i < sizes[s]; i++)
				packed[i] = rules[r].rule(i);
			multipliers.state = r * 100 + s;
			drawn = check_set(packed, sizes[s], &rng);
			if (drawn > 3)
				fail_msg("%s, %u vCPUs: %u multipliers", rules[r].name, sizes[s], drawn);
		}
	}
	free(packed);
}

/* The place in the configuration is the index, not the order of affinities. */
static void index_is_the_place_in_the_configuration(void **state)
{
	static const uint32_t packed[] = { 0x01000003, 0x00000000, 0xff00ff0f, 0x01000001, 0x00000010, 0x0100000f };
	struct affinity_map map;

	(void)state;
	assert_int_equal(affinity_map_init(&map, packed, 6), 0);
	for (uint32_t i = 0; i < 6; i++)
		assert_int_equal(affinity_find(&map, packed[i]), i);
	assert_int_equal(affinity_find(&map, 0x01000002), CLUSTER_NO_VCPU);
	assert_null(affinity_find_cluster(&map, 0x02000000 / 16));
	assert_non_null(affinity_find_cluster(&map, 0x01000000 / 16));
	affinity_map_free(&map);
}

static void pack_takes_the_four_fields_of_mpidr(void **state)
{
	(void)state;
	assert_int_equal(affinity_pack(UINT64_C(0x1200345678)), 0x12345678);
	assert_int_equal(affinity_pack(UINT64_C(0xff00000000)), 0xff000000);
	assert_int_equal(affinity_pack(UINT64_C(0x00000000ff)), 0x000000ff);
	/* The bits of MPIDR that are no affinity: MT, U, RES1 and what is above Aff3. */
	assert_int_equal(affinity_pack(UINT64_C(0xffffff00c1000000)), 0x00000000);
}

static void duplicates_are_refused(void **state)
{
	struct rng rng = { 61 };

	(void)state;
	for (int n = 0; n < 300; n++) {
		const uint32_t count = 2 + rng_below(&rng, 100);
		const affinity_rule rule = rules[rng_below(&rng, sizeof(rules) / sizeof(rules[0]))].rule;
		uint32_t first, second, packed[102] = { 0 };
		struct affinity_map map;

		for (uint32_t i = 0; i < count; i++)
			packed[i] = rule(i);
		first = rng_below(&rng, count);
		second = first > 0 ? rng_below(&rng, first) : 1 + rng_below(&rng, count - 1);
		packed[second] = packed[first];
		assert_int_equal(affinity_map_init(&map, packed, count), -EINVAL);
		assert_null(map.slots);
		assert_null(map.displacement);
		assert_int_equal(num_live, 0);
	}
}

static bool contains(const uint32_t *packed, uint32_t count, uint32_t value)
{
	for (uint32_t i = 0; i < count; i++) {
		if (packed[i] == value)
			return true;
	}
	return false;
}

/* Random sets: some spread over the whole space, some crowded into a few bits. */
static void thousand_random_sets(void **state)
{
	uint32_t packed[600];
	struct rng rng = { 62 };
	unsigned total = 0, worst = 0;

	(void)state;
	multipliers.state = 1;
	for (int n = 0; n < 1000; n++) {
		const uint32_t count = 1 + rng_below(&rng, n % 10 ? 100 : 600);
		/* At least ten bits are free, so that 600 different values fit. */
		const uint32_t free_bits = n % 2 ? 0xffffffffu :
						   (uint32_t)rng_next(&rng) | UINT32_C(0x3ff) << rng_below(&rng, 23);
		uint32_t filled = 0;
		unsigned drawn;

		while (filled < count) {
			const uint32_t value = (uint32_t)rng_next(&rng) & free_bits;

			if (!contains(packed, filled, value))
				packed[filled++] = value;
		}
		drawn = check_set(packed, count, &rng);
		total += drawn;
		worst = drawn > worst ? drawn : worst;
	}
	assert_true(worst <= 3);
	assert_true(total <= 1020);
}

/* A multiplier that hashes nothing is given up, and the next one is tried. */
static void bad_multiplier_is_replaced(void **state)
{
	uint32_t packed[64];
	struct rng rng = { 63 };

	(void)state;
	for (uint32_t i = 0; i < 64; i++)
		packed[i] = one_for_each_cluster(i);
	for (unsigned bad = 0; bad < 64; bad += 9) {
		num_bad = bad;
		assert_int_equal(check_set(packed, 64, &rng), bad + 1);
	}
}

/* A host without any randomness at all gets an error, not a loop. */
static void attempts_are_bounded(void **state)
{
	uint32_t packed[64];
	struct affinity_map map;

	(void)state;
	for (uint32_t i = 0; i < 64; i++)
		packed[i] = one_for_each_cluster(i);
	num_drawn = 0;
	num_bad = 1000;
	assert_int_equal(affinity_map_init(&map, packed, 64), -ENOMEM);
	assert_int_equal(num_drawn, 64);
	assert_int_equal(num_live, 0);
	num_bad = 0;
}

static void no_memory_is_an_error_that_leaks_nothing(void **state)
{
	static const uint32_t packed[] = { 1, 2, 300, 4000 };
	struct affinity_map map;

	(void)state;
	for (unsigned n = 1; n <= 3; n++) {
		failing_allocation = n;
		assert_int_equal(affinity_map_init(&map, packed, 4), -ENOMEM);
		assert_int_equal(num_live, 0);
	}
	failing_allocation = 4;
	assert_int_equal(affinity_map_init(&map, packed, 4), 0);
	failing_allocation = 0;
	affinity_map_free(&map);
	assert_int_equal(num_live, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_rule_at_each_size),
		cmocka_unit_test(index_is_the_place_in_the_configuration),
		cmocka_unit_test(pack_takes_the_four_fields_of_mpidr),
		cmocka_unit_test(duplicates_are_refused),
		cmocka_unit_test(thousand_random_sets),
		cmocka_unit_test(bad_multiplier_is_replaced),
		cmocka_unit_test(attempts_are_bounded),
		cmocka_unit_test(no_memory_is_an_error_that_leaks_nothing),
	};

	return RUN_TESTS("affinity", tests);
}
