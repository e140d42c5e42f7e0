/* SPDX-License-Identifier: MIT */
/*
 * affinity.h - from an affinity to a vCPU, in constant time for any set of affinities.
 *
 * A *cluster* is up to 16 PEs that differ only in the low four bits of Aff0: what
 * one write of an SGI register can name. Clusters are found by a perfect hash
 * that is built at creation: two loads and one comparison, whatever the affinities
 * are. Read-only after creation.
 */
#ifndef VGIC_AFFINITY_H
#define VGIC_AFFINITY_H

#include <stddef.h>
#include <stdint.h>

#include "atomics.h"

#define CLUSTER_SIZE    16u
#define CLUSTER_NO_VCPU 0xffffu
#define CLUSTER_NO_KEY  0xffffffffu
#define AFFINITY_MASK   UINT64_C(0xff00ffffff) /* as in MPIDR_EL1 */

struct cluster {
	_Alignas(CACHE_LINE) uint32_t key; /* Aff3.Aff2.Aff1.Aff0[7:4], or CLUSTER_NO_KEY */
	uint16_t vcpu[CLUSTER_SIZE];       /* vCPU index by Aff0[3:0], or CLUSTER_NO_VCPU */
};

struct affinity_map {
	uint64_t multiplier;
	unsigned bucket_shift, slot_shift;
	uint32_t *displacement; /* by bucket */
	struct cluster *slots;
};

/* Affinity in the layout of MPIDR_EL1 to 32 bits: Aff3.Aff2.Aff1.Aff0. */
static inline uint32_t affinity_pack(uint64_t mpidr)
{
	return (uint32_t)(mpidr >> 8 & 0xff000000u) | (uint32_t)(mpidr & 0xffffffu);
}

static inline uint32_t affinity_hash_bucket(const struct affinity_map *map, uint64_t hash)
{
	return (uint32_t)(hash >> map->bucket_shift);
}

static inline uint32_t affinity_hash_slot(const struct affinity_map *map, uint64_t hash, uint32_t displacement)
{
	return (((uint32_t)(hash >> 8) + displacement) * 0x9e3779b1u) >> map->slot_shift;
}

/* The cluster of Aff3.Aff2.Aff1.Aff0[7:4], or NULL. */
static inline const struct cluster *affinity_find_cluster(const struct affinity_map *map, uint32_t key)
{
	const uint64_t hash = (key + 1) * map->multiplier;
	const uint32_t displacement = map->displacement[affinity_hash_bucket(map, hash)];
	const struct cluster *cluster = &map->slots[affinity_hash_slot(map, hash, displacement)];

	return cluster->key == key ? cluster : NULL;
}

/* The index of the vCPU with a packed affinity, or CLUSTER_NO_VCPU. */
static inline uint32_t affinity_find(const struct affinity_map *map, uint32_t packed)
{
	const struct cluster *cluster = affinity_find_cluster(map, packed / CLUSTER_SIZE);

	return cluster ? cluster->vcpu[packed % CLUSTER_SIZE] : CLUSTER_NO_VCPU;
}

/*
 * Build the map for @count packed affinities; the position in @packed is the
 * vCPU's index. Returns 0, -EINVAL if two are the same, or -ENOMEM; on error the
 * map holds nothing to be freed.
 */
int affinity_map_init(struct affinity_map *map, const uint32_t *packed, uint32_t count);
void affinity_map_free(struct affinity_map *map);

#endif /* VGIC_AFFINITY_H */
