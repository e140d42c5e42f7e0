/* SPDX-License-Identifier: MIT */
/*
 * The hash of translations: whatever is added, removed and cleared, each event that is
 * mapped is found and nothing else, the pools hold as much as they were made for, and
 * every chain ends at its bucket's own marker.
 */
#include "unit.h"

#include "its_map.h"
#include "lpi.h"

#define DEVICES      4u
#define EVENTS       16u /* of each device: more than fit */
#define TRANSLATIONS 24u

/* What must be in the map. */
struct model {
	struct its_map map;
	bool has_device[DEVICES];
	bool has_event[DEVICES][EVENTS];
	uint32_t num_devices, num_events;
};

static uint32_t devid_of(uint32_t device)
{
	return device * 256;
}

static uint64_t value_of(uint32_t device, uint32_t event)
{
	return device * EVENTS + event;
}

static void model_init(struct model *m)
{
	*m = (struct model){ .num_devices = 0 };
	/* One device less than the model has. */
	assert_int_equal(its_map_init(&m->map, DEVICES - 1, TRANSLATIONS), 0);
}

/* Every chain, from its bucket to its marker: all that is mapped, and nothing that is free. */
static void check_chains(const struct its_map *map)
{
	const uint32_t num_buckets = UINT32_C(1) << (64 - map->bucket_shift);
	uint32_t num = 0;

	for (uint32_t bucket = 0; bucket < num_buckets; bucket++) {
		uint32_t i = load_relaxed(&map->buckets[bucket]);

		for (; !(i & TRANSLATION_END); i = load_relaxed(&map->nodes[i].next)) {
			assert_true(i < map->nodes_end);
			assert_int_equal(its_map_bucket(map, load_relaxed(&map->nodes[i].key)), bucket);
			assert_true(++num <= map->num_translations);
		}
		assert_int_equal(i, TRANSLATION_END | bucket);
	}
	assert_int_equal(num, map->num_translations);
}

static void check(const struct model *m)
{
	for (uint32_t device = 0; device < DEVICES; device++) {
		assert_int_equal(its_map_find_device((struct its_map *)&m->map, devid_of(device)) != NULL,
				 m->has_device[device]);
		for (uint32_t event = 0; event < EVENTS; event++) {
			const uint64_t key = translation_key(devid_of(device), event);
			uint64_t value = 0;

			assert_int_equal(its_map_find(&m->map, key, &value) != NULL, m->has_event[device][event]);
			if (m->has_event[device][event])
				assert_int_equal(value & TRANSLATION_LPI_MASK, value_of(device, event));
		}
	}
	assert_int_equal(m->map.num_devices, m->num_devices);
	assert_int_equal(m->map.num_translations, m->num_events);
	check_chains(&m->map);
}

static void add_event(struct model *m, uint32_t device, uint32_t event)
{
	struct its_device *d = its_map_find_device(&m->map, devid_of(device));
	const bool has_room = m->num_events < TRANSLATIONS;

	if (!d || m->has_event[device][event])
		return;
	assert_int_equal(its_map_add(&m->map, d, event, value_of(device, event), 0) != NULL, has_room);
	m->has_event[device][event] = has_room;
	m->num_events += has_room;
}

static void remove_event(struct model *m, uint32_t device, uint32_t event)
{
	const uint64_t key = translation_key(devid_of(device), event);
	uint64_t value;

	if (!m->has_event[device][event])
		return;
	its_map_remove(&m->map, (struct translation *)its_map_find(&m->map, key, &value));
	m->has_event[device][event] = false;
	m->num_events--;
}

static void add_device(struct model *m, uint32_t device)
{
	const bool has_room = m->num_devices < DEVICES - 1;

	if (m->has_device[device])
		return;
	assert_int_equal(its_map_add_device(&m->map, devid_of(device)) != NULL, has_room);
	m->has_device[device] = has_room;
	m->num_devices += has_room;
}

static void remove_device(struct model *m, uint32_t device)
{
	if (!m->has_device[device])
		return;
	for (uint32_t event = 0; event < EVENTS; event++)
		remove_event(m, device, event);
	its_map_remove_device(&m->map, its_map_find_device(&m->map, devid_of(device)));
	m->has_device[device] = false;
	m->num_devices--;
}

static void clear(struct model *m)
{
	its_map_clear(&m->map);
	for (uint32_t device = 0; device < DEVICES; device++) {
		m->has_device[device] = false;
		for (uint32_t event = 0; event < EVENTS; event++)
			m->has_event[device][event] = false;
	}
	m->num_devices = 0;
	m->num_events = 0;
}

static void fill(struct model *m)
{
	for (uint32_t device = 0; device < DEVICES; device++)
		add_device(m, device);
	for (uint32_t device = 0; device < DEVICES; device++) {
		for (uint32_t event = 0; event < EVENTS; event++)
			add_event(m, device, event);
	}
	assert_int_equal(m->num_devices, DEVICES - 1);
	assert_int_equal(m->num_events, TRANSLATIONS);
}

static void what_is_mapped_is_found_and_nothing_else(void **state)
{
	struct rng rng = { 20 };

	(void)state;
	for (unsigned round = 0; round < 50; round++) {
		struct model m;

		model_init(&m);
		for (unsigned i = 0; i < 400; i++) {
			const uint32_t device = rng_below(&rng, DEVICES);
			const uint32_t event = rng_below(&rng, EVENTS);
			const uint32_t what = rng_below(&rng, 100);

			if (what < 60)
				add_event(&m, device, event);
			else if (what < 85)
				remove_event(&m, device, event);
			else if (what < 94)
				add_device(&m, device);
			else if (what < 98)
				remove_device(&m, device);
			else
				clear(&m);
			check(&m);
		}
		its_map_free(&m.map);
	}
}

/* However the room was given back: one by one, in any order, or at once. */
static void all_of_it_can_be_used_again(void **state)
{
	struct model m;

	(void)state;
	model_init(&m);
	for (unsigned round = 0; round < 3; round++) {
		fill(&m);
		check(&m);
		clear(&m);
		check(&m);
		fill(&m);
		for (uint32_t device = DEVICES; device-- > 0;)
			remove_device(&m, device);
		check(&m);
		fill(&m);
		for (uint32_t event = 0; event < EVENTS; event += 2)
			remove_event(&m, 0, event);
		clear(&m);
		check(&m);
	}
	its_map_free(&m.map);
}

/* Who found a node before everything was cleared sees that it is not the one any more, at once and when it is used again. */
static void a_node_that_was_cleared_is_free(void **state)
{
	const uint64_t key = translation_key(devid_of(1), 3);
	const struct translation *node;
	struct model m;
	uint64_t value, again;

	(void)state;
	model_init(&m);
	add_device(&m, 1);
	add_event(&m, 1, 3);
	node = its_map_find(&m.map, key, &value);
	assert_non_null(node);
	its_map_clear(&m.map);
	assert_false(translation_matches(node, key, &again));
	assert_true(load_relaxed(&node->next) & TRANSLATION_END);

	/* The same event in the same node: another use of it. */
	assert_non_null(its_map_add(&m.map, its_map_add_device(&m.map, devid_of(1)), 3, value_of(1, 3), 0));
	assert_ptr_equal(its_map_find(&m.map, key, &again), node);
	assert_int_not_equal(again, value);
	its_map_free(&m.map);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_mapped_is_found_and_nothing_else),
		cmocka_unit_test(all_of_it_can_be_used_again),
		cmocka_unit_test(a_node_that_was_cleared_is_free),
	};

	return RUN_TESTS("its_map", tests);
}
