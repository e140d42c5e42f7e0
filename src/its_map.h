/* SPDX-License-Identifier: MIT */
/*
 * its_map.h - the translations of an ITS: (DeviceID, EventID) -> LPI.
 *
 * This is the translation itself, not a cache of it: there is no second copy,
 * nothing to invalidate, and no miss. Any thread looks up without a lock;
 * its_map.c says how. Everything else is done under config_lock.
 */
#ifndef VGIC_ITS_MAP_H
#define VGIC_ITS_MAP_H

#include "vgic_internal.h"

#define NO_NODE UINT32_MAX

/*
 * One translation. Nodes come from a pool made at creation and never leave it: a
 * reader that holds a stale one reads valid memory (type stability).
 */
struct translation {
	_Atomic uint64_t key;   /* DeviceID and EventID, or TRANSLATION_FREE */
	_Atomic uint64_t value; /* the LPI, its generation, and the number of this use of the node: lpi.h */
	_Atomic uint32_t next;  /* next node of the chain, or the chain's end marker */

	/* Under config_lock. */
	uint32_t icid;
	uint32_t device;      /* the device's place in the pool */
	uint32_t device_next; /* the device's other translations; also links the free nodes */
	uint32_t device_previous;
};

struct its_device {
	uint32_t devid;
	uint32_t num_events; /* EventIDs below this are valid; at most 2^16 */
	uint64_t itt;        /* guest-physical, for save and restore */
	uint32_t first;      /* its translations */
	uint32_t num_mapped; /* how many they are */
	uint32_t hash_next;  /* devices in one bucket; also links the free ones */
};

#define TRANSLATION_FREE UINT64_MAX

struct its_map {
	/* Read by any thread; constant. */
	uint64_t multiplier;
	unsigned bucket_shift;
	_Atomic uint32_t *buckets; /* first node of the chain, or its end marker */
	struct translation *nodes;

	/* Under config_lock. */
	uint32_t max_translations, num_translations;
	uint32_t free_nodes; /* a list of those below... */
	uint32_t nodes_end;  /* ...here; from here on all are free */
	struct its_device *devices;
	uint32_t max_devices, num_devices, free_devices, devices_end; /* as with nodes */
	uint32_t *device_buckets;
	unsigned device_bucket_shift;
};

static inline uint64_t translation_key(uint32_t devid, uint32_t eventid)
{
	return (uint64_t)devid << 32 | eventid;
}

int its_map_init(struct its_map *map, uint32_t max_devices, uint32_t max_translations);
void its_map_free(struct its_map *map);

static inline uint32_t its_map_bucket(const struct its_map *map, uint64_t key)
{
	/* DeviceIDs and EventIDs are both small and regular: fold them before the multiplication spreads them. */
	return (uint32_t)((key ^ key >> 32) * map->multiplier >> map->bucket_shift);
}

#define TRANSLATION_END (UINT32_C(1) << 31) /* end of a chain; the bucket is in the low bits */

/* Is it this one? Then *value is its value. See its_map.c for the order of the loads. */
static inline bool translation_matches(const struct translation *node, uint64_t key, uint64_t *value)
{
	*value = load_acquire(&node->value);
	return load_acquire(&node->key) == key && load_relaxed(&node->value) == *value;
}

/* The rest of its_map_find(), when the first node of the chain is not the one. */
const struct translation *its_map_search(const struct its_map *map, uint64_t key, uint64_t *value);

/* The first node of its chain, as which most are found; NULL if it is another. */
static inline const struct translation *its_map_find_first(const struct its_map *map, uint64_t key, uint64_t *value)
{
	const uint32_t first = load_acquire(&map->buckets[its_map_bucket(map, key)]);
	const bool matches = __builtin_expect(!(first & TRANSLATION_END), 1) &&
			     translation_matches(&map->nodes[first], key, value);

	return matches ? &map->nodes[first] : NULL;
}

/*
 * The node of (DeviceID, EventID) and its value. Any thread, no lock. Returns NULL
 * if there is none.
 */
static inline const struct translation *its_map_find(const struct its_map *map, uint64_t key, uint64_t *value)
{
	const struct translation *first = its_map_find_first(map, key, value);

	return first ? first : its_map_search(map, key, value);
}

/* ---- Under config_lock ---- */

/* Remove everything at once, in the time of what there is. The LPIs are left to the caller. */
void its_map_clear(struct its_map *map);

struct its_device *its_map_find_device(struct its_map *map, uint32_t devid);

/* A new device without translations, or NULL if max_devices are mapped. */
struct its_device *its_map_add_device(struct its_map *map, uint32_t devid);

/* Remove a device; it must have no translations left. */
void its_map_remove_device(struct its_map *map, struct its_device *device);

/* A new translation, seen by readers when this returns; NULL if max_translations are mapped. */
struct translation *its_map_add(struct its_map *map, struct its_device *device, uint32_t eventid, uint64_t value,
				uint32_t icid);
void its_map_remove(struct its_map *map, struct translation *node);

/* The translation leads elsewhere, or its LPI has a new generation. */
void its_map_set_value(struct translation *node, uint64_t value);

#endif /* VGIC_ITS_MAP_H */
