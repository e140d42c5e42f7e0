/* SPDX-License-Identifier: MIT */
/*
 * its_map.c - a hash of translations that is read without a lock.
 *
 * Readers walk a chain of type-stable nodes. Three things may go wrong under them,
 * and each shows:
 *
 *   The node that they stand on is freed, and used again in another chain. They
 *   wander along that one, and come to its end marker, which is not that of the
 *   bucket they began in: they begin again. Every restart means that a command
 *   was executed meanwhile.
 *
 *   The node that they found is freed and used again while they look at it. The
 *   value says which use of the node it belongs to. They read the value, the key,
 *   and the value once more; if that has not changed, the key is of the same use,
 *   as the writer takes the old key away before the new value, and brings the new
 *   key after it. (The key alone would not do: it may come back within these three
 *   loads. The number has 16 bits: 2^16 commands would have to fit in between.)
 *   A node that has changed goes on in another chain, or comes back in this one:
 *   both are the case above.
 *
 *   The translation that they found is removed before they act on it. The value
 *   carries the generation of the LPI; the compare-and-swap on the LPI's state
 *   word checks that it is the one there, and mapped. A removal of the last
 *   translation to an LPI increments the generation. It has 28 bits: a signaller
 *   would have to sleep between its lookup and its CAS through exactly a multiple
 *   of 2^28 unmappings of one LPI, each of which takes a command of the guest
 *   (at a microsecond each, 4.5 minutes, to the very command).
 *
 * The multiplier is secret: a guest cannot make long chains on purpose. Two keys
 * fall into one bucket with a probability near 1/buckets whatever they are.
 */
#include "its_map.h"

#include <errno.h>

#include "lpi.h"

/*
 * A reader that begins again this often has been overtaken by as many commands; it
 * then reports "not mapped". If they were about this event, that was true at some
 * moment of them; if not, the guest has lost an MSI by moving a thousand others under
 * it within one lookup. Without a bound it could hold a device thread.
 */
#define MAX_RESTARTS 1000

static unsigned log2_at_least(uint32_t n)
{
	unsigned bits = 1;

	while ((UINT64_C(1) << bits) < n)
		bits++;
	return bits;
}

int its_map_init(struct its_map *map, uint32_t max_devices, uint32_t max_translations)
{
	/* Twice as many buckets as nodes: a chain has half a node on average. */
	const unsigned bits = log2_at_least(2 * max_translations), device_bits = log2_at_least(2 * max_devices);
	const uint32_t num_buckets = UINT32_C(1) << bits, num_device_buckets = UINT32_C(1) << device_bits;

	map->multiplier = port_random() | 1;
	map->bucket_shift = 64 - bits;
	map->device_bucket_shift = 64 - device_bits;
	map->max_translations = max_translations;
	map->max_devices = max_devices;
	map->buckets = port_alloc_zeroed(num_buckets * sizeof(*map->buckets), CACHE_LINE);
	map->nodes = port_alloc_zeroed(max_translations * sizeof(*map->nodes), CACHE_LINE);
	map->devices = port_alloc_zeroed(max_devices * sizeof(*map->devices), CACHE_LINE);
	map->device_buckets = port_alloc_zeroed(num_device_buckets * sizeof(*map->device_buckets), CACHE_LINE);
	if (!map->buckets || !map->nodes || !map->devices || !map->device_buckets) {
		its_map_free(map);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < num_buckets; i++)
		store_relaxed(&map->buckets[i], TRANSLATION_END | i);
	for (uint32_t i = 0; i < num_device_buckets; i++)
		map->device_buckets[i] = NO_NODE;
	map->free_nodes = NO_NODE;
	map->free_devices = NO_NODE;
	return 0;
}

void its_map_free(struct its_map *map)
{
	port_free(map->buckets);
	port_free(map->nodes);
	port_free(map->devices);
	port_free(map->device_buckets);
	*map = (struct its_map){ 0 };
}

/* ---- Translations ------------------------------------------------------------------ */

const struct translation *its_map_search(const struct its_map *map, uint64_t key, uint64_t *value)
{
	const uint32_t bucket = its_map_bucket(map, key);

	for (int restarts = 0; restarts < MAX_RESTARTS; restarts++) {
		uint32_t i = load_acquire(&map->buckets[bucket]);
		uint32_t steps = 0;

		/* More steps than any chain can have: nodes move under the reader. */
		while (!(i & TRANSLATION_END) && steps++ < map->max_translations) {
			if (translation_matches(&map->nodes[i], key, value))
				return &map->nodes[i];
			/* It is the one, but its value changed meanwhile: begin again, or it would count as not mapped. */
			if (load_acquire(&map->nodes[i].key) == key)
				break;
			i = load_acquire(&map->nodes[i].next);
		}
		if (i == (TRANSLATION_END | bucket))
			return NULL;
	}
	return NULL;
}

static void link_to_device(struct its_map *map, struct its_device *device, struct translation *node, uint32_t number)
{
	node->device = (uint32_t)(device - map->devices);
	node->device_previous = NO_NODE;
	node->device_next = device->first;
	if (device->first != NO_NODE)
		map->nodes[device->first].device_previous = number;
	device->first = number;
	device->num_mapped++;
}

static void unlink_from_device(struct its_map *map, struct translation *node)
{
	map->devices[node->device].num_mapped--;
	if (node->device_previous != NO_NODE)
		map->nodes[node->device_previous].device_next = node->device_next;
	else
		map->devices[node->device].first = node->device_next;
	if (node->device_next != NO_NODE)
		map->nodes[node->device_next].device_previous = node->device_previous;
}

static uint64_t next_use(struct translation *node)
{
	return (load_relaxed(&node->value) + TRANSLATION_USE_ONE) & TRANSLATION_USE_MASK;
}

/* A node that is free, or NO_NODE. */
static uint32_t take_node(struct its_map *map)
{
	const uint32_t number = map->free_nodes;

	if (number == NO_NODE)
		return map->nodes_end < map->max_translations ? map->nodes_end++ : NO_NODE;
	map->free_nodes = map->nodes[number].device_next;
	return number;
}

struct translation *its_map_add(struct its_map *map, struct its_device *device, uint32_t eventid, uint64_t value,
				uint32_t icid)
{
	const uint64_t key = translation_key(device->devid, eventid);
	const uint32_t number = take_node(map);
	_Atomic uint32_t *bucket = &map->buckets[its_map_bucket(map, key)];
	struct translation *node;

	if (number == NO_NODE)
		return NULL;
	node = &map->nodes[number];
	map->num_translations++;
	node->icid = icid;
	link_to_device(map, device, node, number);
	/* The key last: who reads it reads a complete node. The chain's head after that: who follows it does too. */
	store_release(&node->value, value | next_use(node));
	store_release(&node->next, load_relaxed(bucket));
	store_release(&node->key, key);
	store_release(bucket, number);
	return node;
}

/* All nodes are free. */
static void forget_nodes(struct its_map *map)
{
	map->free_nodes = NO_NODE;
	map->nodes_end = 0;
}

void its_map_remove(struct its_map *map, struct translation *node)
{
	const uint32_t number = (uint32_t)(node - map->nodes);
	_Atomic uint32_t *link = &map->buckets[its_map_bucket(map, load_relaxed(&node->key))];

	while (load_relaxed(link) != number)
		link = &map->nodes[load_relaxed(link)].next;
	store_release(link, load_relaxed(&node->next));
	store_release(&node->key, TRANSLATION_FREE);
	unlink_from_device(map, node);
	node->device_next = map->free_nodes;
	map->free_nodes = number;
	map->num_translations--;
	if (map->num_translations == 0)
		forget_nodes(map);
}

void its_map_set_value(struct translation *node, uint64_t value)
{
	store_release(&node->value, value | (load_relaxed(&node->value) & TRANSLATION_USE_MASK));
}

/* ---- Devices: under config_lock only -------------------------------------------------- */

static uint32_t *device_bucket(struct its_map *map, uint32_t devid)
{
	return &map->device_buckets[(devid + UINT64_C(1)) * map->multiplier >> map->device_bucket_shift];
}

struct its_device *its_map_find_device(struct its_map *map, uint32_t devid)
{
	for (uint32_t i = *device_bucket(map, devid); i != NO_NODE; i = map->devices[i].hash_next) {
		if (map->devices[i].devid == devid)
			return &map->devices[i];
	}
	return NULL;
}

static uint32_t take_device(struct its_map *map)
{
	const uint32_t number = map->free_devices;

	if (number == NO_NODE)
		return map->devices_end < map->max_devices ? map->devices_end++ : NO_NODE;
	map->free_devices = map->devices[number].hash_next;
	return number;
}

struct its_device *its_map_add_device(struct its_map *map, uint32_t devid)
{
	const uint32_t number = take_device(map);
	uint32_t *bucket = device_bucket(map, devid);
	struct its_device *device;

	if (number == NO_NODE)
		return NULL;
	device = &map->devices[number];
	map->num_devices++;
	*device = (struct its_device){ .devid = devid, .first = NO_NODE, .hash_next = *bucket };
	*bucket = number;
	return device;
}

void its_map_remove_device(struct its_map *map, struct its_device *device)
{
	const uint32_t number = (uint32_t)(device - map->devices);
	uint32_t *link = device_bucket(map, device->devid);

	while (*link != number)
		link = &map->devices[*link].hash_next;
	*link = device->hash_next;
	device->hash_next = map->free_devices;
	map->free_devices = number;
	map->num_devices--;
}

/* ---- Everything --------------------------------------------------------------------------- */

/* As its_map_remove() does: a reader that is in a chain finds free nodes, and at the end of its way some marker. */
static void clear_translations(struct its_map *map)
{
	for (uint32_t i = 0; i < map->nodes_end; i++) {
		struct translation *node = &map->nodes[i];
		const uint64_t key = load_relaxed(&node->key);
		uint32_t bucket;

		if (key == TRANSLATION_FREE)
			continue;
		bucket = its_map_bucket(map, key);
		store_release(&map->buckets[bucket], TRANSLATION_END | bucket);
		store_release(&node->key, TRANSLATION_FREE);
		store_release(&node->next, TRANSLATION_END | bucket);
	}
	map->num_translations = 0;
	forget_nodes(map);
}

void its_map_clear(struct its_map *map)
{
	clear_translations(map);
	for (uint32_t i = 0; i < map->devices_end; i++) {
		*device_bucket(map, map->devices[i].devid) = NO_NODE;
		map->devices[i] = (struct its_device){ .first = NO_NODE };
	}
	map->num_devices = 0;
	map->free_devices = NO_NODE;
	map->devices_end = 0;
}
