/* SPDX-License-Identifier: MIT */
/*
 * affinity.c - builds the perfect hash of clusters ("hash and displace").
 *
 * Keys are hashed into buckets; bucket by bucket, the fullest first, a
 * displacement is searched that puts all keys of the bucket into free slots. With
 * half of the slots free this succeeds at once for nearly every multiplier, and
 * a multiplier that fails is replaced by another random one: affinities cannot
 * be chosen so that it takes long.
 */
#include "affinity.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "port.h"

#define MAX_ATTEMPTS 64
#define KEY_BITS     28 /* Aff3.Aff2.Aff1.Aff0[7:4] */
#define KEY_MASK     ((1u << KEY_BITS) - 1u)

struct builder {
	const uint32_t *packed;
	uint32_t count;
	uint32_t num_buckets, num_slots;
	uint64_t *keys;  /* the distinct keys */
	uint64_t *order; /* keys sorted by bucket, those of the fullest bucket first; the key in the low bits */
	uint32_t *fill;  /* keys in each bucket */
	uint32_t num_keys;
};

static unsigned log2_at_least(uint32_t n)
{
	unsigned bits = 1;

	while ((UINT32_C(1) << bits) < n)
		bits++;
	return bits;
}

static uint32_t key_bucket(const struct affinity_map *map, uint64_t key)
{
	return affinity_hash_bucket(map, (key + 1) * map->multiplier);
}

static struct cluster *key_slot(const struct affinity_map *map, uint64_t key, uint32_t displacement)
{
	return &map->slots[affinity_hash_slot(map, (key + 1) * map->multiplier, displacement)];
}

/* Heap sort: no recursion, no memory, O(n log n) for whatever the VMM chose. */
static void sift_down(uint64_t *a, uint32_t root, uint32_t end)
{
	for (uint32_t child; (child = 2 * root + 1) < end; root = child) {
		if (child + 1 < end && a[child] < a[child + 1])
			child++;
		if (a[root] >= a[child])
			return;
		const uint64_t t = a[root];

		a[root] = a[child];
		a[child] = t;
	}
}

static void sort_words(uint64_t *a, uint32_t n)
{
	for (uint32_t i = n / 2; i-- > 0;)
		sift_down(a, i, n);
	for (uint32_t end = n; end-- > 1;) {
		const uint64_t t = a[0];

		a[0] = a[end];
		a[end] = t;
		sift_down(a, 0, end);
	}
}

/* Put the keys @first .. @first+n-1 of the order, all of one bucket, into free slots. */
static bool place_bucket(struct affinity_map *map, const struct builder *b, uint32_t bucket, uint32_t first, uint32_t n)
{
	for (uint32_t displacement = 0; displacement < 4 * b->num_slots; displacement++) {
		uint32_t placed = 0;

		for (; placed < n; placed++) {
			const uint32_t key = b->order[first + placed] & KEY_MASK;
			struct cluster *slot = key_slot(map, key, displacement);

			if (slot->key != CLUSTER_NO_KEY)
				break;
			slot->key = key;
		}
		if (placed == n) {
			map->displacement[bucket] = displacement;
			return true;
		}
		while (placed-- > 0)
			key_slot(map, b->order[first + placed] & KEY_MASK, displacement)->key = CLUSTER_NO_KEY;
	}
	return false;
}

/*
 * Order the keys by bucket, the fullest bucket first: sorting words that have
 * (emptiness, bucket, key) from the top down does it in one go.
 */
static void order_keys(const struct affinity_map *map, struct builder *b)
{
	memset(b->fill, 0, b->num_buckets * sizeof(*b->fill));
	for (uint32_t i = 0; i < b->num_keys; i++)
		b->fill[key_bucket(map, b->keys[i])]++;
	for (uint32_t i = 0; i < b->num_keys; i++) {
		const uint64_t bucket = key_bucket(map, b->keys[i]);

		b->order[i] = (uint64_t)(0xffff - b->fill[bucket]) << 48 | bucket << KEY_BITS | b->keys[i];
	}
	sort_words(b->order, b->num_keys);
}

static bool try_multiplier(struct affinity_map *map, struct builder *b)
{
	map->multiplier = port_random() | 1;
	for (uint32_t i = 0; i < b->num_slots; i++)
		map->slots[i].key = CLUSTER_NO_KEY;
	order_keys(map, b);
	for (uint32_t first = 0; first < b->num_keys;) {
		const uint32_t bucket = key_bucket(map, b->order[first] & KEY_MASK);
		const uint32_t n = b->fill[bucket];

		if (!place_bucket(map, b, bucket, first, n))
			return false;
		first += n;
	}
	return true;
}

/* Collect the distinct cluster keys. */
static void collect_keys(struct builder *b)
{
	for (uint32_t i = 0; i < b->count; i++)
		b->keys[i] = b->packed[i] / CLUSTER_SIZE;
	sort_words(b->keys, b->count);
	b->num_keys = 0;
	for (uint32_t i = 0; i < b->count; i++) {
		if (b->num_keys == 0 || b->keys[b->num_keys - 1] != b->keys[i])
			b->keys[b->num_keys++] = b->keys[i];
	}
}

/* Enter each vCPU in its cluster; two with one affinity meet here. */
static int fill_clusters(struct affinity_map *map, const struct builder *b)
{
	for (uint32_t i = 0; i < b->num_slots; i++)
		memset(map->slots[i].vcpu, 0xff, sizeof(map->slots[i].vcpu));
	for (uint32_t i = 0; i < b->count; i++) {
		struct cluster *cluster = (struct cluster *)affinity_find_cluster(map, b->packed[i] / CLUSTER_SIZE);
		uint16_t *vcpu = &cluster->vcpu[b->packed[i] % CLUSTER_SIZE];

		if (*vcpu != CLUSTER_NO_VCPU)
			return -EINVAL;
		*vcpu = (uint16_t)i;
	}
	return 0;
}

static int build(struct affinity_map *map, struct builder *b)
{
	collect_keys(b);
	for (int attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
		if (try_multiplier(map, b))
			return fill_clusters(map, b);
	}
	/* Not reached by any set of keys that a test could find: the probability of one failure is below 1/1000. */
	return -ENOMEM;
}

int affinity_map_init(struct affinity_map *map, const uint32_t *packed, uint32_t count)
{
	const unsigned slot_bits = log2_at_least(2 * count), bucket_bits = log2_at_least(count);
	struct builder b = {
		.packed = packed,
		.count = count,
		.num_buckets = UINT32_C(1) << bucket_bits,
		.num_slots = UINT32_C(1) << slot_bits,
	};
	uint64_t *scratch = port_alloc_zeroed((2 * (size_t)count + b.num_buckets) * sizeof(*scratch), CACHE_LINE);
	int err = -ENOMEM;

	map->bucket_shift = 64 - bucket_bits;
	map->slot_shift = 32 - slot_bits;
	map->displacement = port_alloc_zeroed(b.num_buckets * sizeof(*map->displacement), CACHE_LINE);
	map->slots = port_alloc_zeroed(b.num_slots * sizeof(*map->slots), CACHE_LINE);
	if (scratch && map->displacement && map->slots) {
		b.keys = scratch;
		b.order = scratch + count;
		b.fill = (uint32_t *)(scratch + 2 * (size_t)count);
		err = build(map, &b);
	}
	port_free(scratch);
	if (err)
		affinity_map_free(map);
	return err;
}

void affinity_map_free(struct affinity_map *map)
{
	port_free(map->displacement);
	port_free(map->slots);
	map->displacement = NULL;
	map->slots = NULL;
}
