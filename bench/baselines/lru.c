/* SPDX-License-Identifier: MIT */
/*
 * lru.c - the policies `lru` and `lru8`: translations cached in lists, the least
 * recently used one at the end.
 *
 * lru   one cache under one spin lock, which is also that of the list of LPIs:
 *       Linux's KVM for arm64, 5.3 to 6.8
 * lru8  eight caches, chosen by the injecting CPU, with a lock each: a proposal
 *       of 2019 that was not taken
 *
 * Both have four entries for each vCPU unless they are told otherwise. A hit goes
 * to the head of its list. A miss is translated under the mutex and takes the last
 * entry. A command that may make an entry wrong empties all caches. Each entry
 * holds a reference to its LPI; a hit takes none. (That was a bug: nothing kept
 * the LPI alive. Here LPIs are freed at the end only.)
 *
 * Lock order: as in delivery.h; the lock of a cache of lru8 before that of the
 * LPIs' list.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <stdlib.h>

#include "its_model.h"

#define NUM_CACHES_MAX  8u
#define ENTRIES_OF_VCPU 4u
#define CPU_HASH        0x9e3779b1u
#define CPU_HASH_SHIFT  29 /* 32 bits down to three */

struct entry {
	struct list node;
	uint64_t doorbell;
	uint32_t devid, eventid;
	struct base_irq *irq; /* NULL: the entry and all behind it are empty */
};

struct cache {
	_Alignas(BASE_LINE) struct spinlock own_lock;
	struct spinlock *lock; /* own_lock, or that of the list of LPIs */
	struct list entries;
	struct entry *memory;
};

struct lru {
	struct base_its its;
	unsigned num_caches;
	struct cache caches[NUM_CACHES_MAX];
};

/* ---- The caches ---- */

static struct cache *cache_of_cpu(struct lru *lru)
{
	return &lru->caches[(uint32_t)sched_getcpu() * CPU_HASH >> CPU_HASH_SHIFT];
}

static void to_head(struct cache *cache, struct entry *entry)
{
	if (cache->entries.next == &entry->node)
		return;
	list_remove(&entry->node);
	list_add_first(&cache->entries, &entry->node);
}

/* Under the cache's lock. */
static struct base_irq *find_entry(struct cache *cache, uint64_t doorbell, uint32_t devid, uint32_t eventid)
{
	LIST_EACH(node, &cache->entries)
	{
		struct entry *entry = LIST_ENTRY(node, struct entry, node);

		if (!entry->irq)
			break;
		if (entry->doorbell != doorbell || entry->devid != devid || entry->eventid != eventid)
			continue;
		to_head(cache, entry);
		return entry->irq;
	}
	return NULL;
}

static __attribute__((noinline)) struct base_irq *look_up(struct cache *cache, const struct base_msi *msi)
{
	struct base_irq *irq;

	spin_lock(cache->lock);
	irq = find_entry(cache, base_msi_address(msi), msi->devid, msi->data);
	spin_unlock(cache->lock);
	return irq;
}

/* Under the cache's lock. Who holds that of the list of LPIs must not take it again to give up a reference. */
static void release_entry(struct lru *lru, const struct cache *cache, struct entry *entry)
{
	if (cache->lock == &lru->its.gic.lpi_lock)
		base_irq_release_locked(&lru->its.gic, entry->irq);
	else
		base_irq_release(&lru->its.gic, entry->irq);
	entry->irq = NULL;
}

/* Under the cache's lock: the last entry goes, this one comes first. */
static void store_entry(struct lru *lru, struct cache *cache, uint32_t devid, uint32_t eventid, struct base_irq *irq)
{
	struct entry *entry = LIST_ENTRY(cache->entries.previous, struct entry, node);

	if (entry->irq) {
		lru->its.stats.evictions++;
		release_entry(lru, cache, entry);
	}
	base_irq_hold(irq);
	entry->doorbell = lru->its.doorbell;
	entry->devid = devid;
	entry->eventid = eventid;
	entry->irq = irq;
	to_head(cache, entry);
}

static void fill(struct base_its *its, uint32_t devid, uint32_t eventid, struct base_irq *irq)
{
	struct lru *lru = (struct lru *)its;
	struct cache *cache = lru->num_caches > 1 ? cache_of_cpu(lru) : &lru->caches[0];

	spin_lock(cache->lock);
	/* Another thread may have missed it at the same time and been first. */
	if (!find_entry(cache, its->doorbell, devid, eventid))
		store_entry(lru, cache, devid, eventid, irq);
	spin_unlock(cache->lock);
}

static void invalidate(struct base_its *its)
{
	struct lru *lru = (struct lru *)its;

	for (unsigned i = 0; i < lru->num_caches; i++) {
		struct cache *cache = &lru->caches[i];

		spin_lock(cache->lock);
		LIST_EACH(node, &cache->entries)
		{
			struct entry *entry = LIST_ENTRY(node, struct entry, node);

			if (!entry->irq)
				break;
			its->stats.invalidations++;
			release_entry(lru, cache, entry);
		}
		spin_unlock(cache->lock);
	}
}

static const struct base_cache_ops lru_cache = { .fill = fill, .invalidate = invalidate };

/* ---- Life cycle ---- */

static void lru_destroy(struct policy *policy)
{
	struct lru *lru = (struct lru *)policy;

	if (lru->num_caches)
		invalidate(&lru->its);
	base_its_destroy(&lru->its);
	for (unsigned i = 0; i < NUM_CACHES_MAX; i++)
		free(lru->caches[i].memory);
	free(lru);
}

static bool init_cache(struct lru *lru, struct cache *cache, uint32_t num_entries, bool own_lock)
{
	cache->memory = calloc(num_entries, sizeof(*cache->memory));
	if (!cache->memory)
		return false;
	cache->lock = own_lock ? &cache->own_lock : &lru->its.gic.lpi_lock;
	list_init(&cache->entries);
	for (uint32_t i = 0; i < num_entries; i++)
		list_add_last(&cache->entries, &cache->memory[i].node);
	return true;
}

static struct policy *create(const struct policy_config *config, const struct policy_ops *ops, unsigned num_caches)
{
	const uint32_t entries = config->cache_entries ? config->cache_entries : ENTRIES_OF_VCPU * config->num_vcpus;
	struct lru *lru;

	if (config->num_vcpus == 0 || config->num_vcpus > POLICY_MAX_VCPUS)
		return NULL;
	lru = aligned_alloc(BASE_LINE, sizeof(*lru));
	if (!lru)
		return NULL;
	*lru = (struct lru){ .num_caches = 0 };
	if (base_its_init(&lru->its, ops, config, REGISTRY_LIST, &lru_cache))
		goto fail;
	for (unsigned i = 0; i < num_caches; i++) {
		if (!init_cache(lru, &lru->caches[i], entries, num_caches > 1))
			goto fail;
		lru->num_caches = i + 1;
	}
	return &lru->its.policy;

fail:
	lru_destroy(&lru->its.policy);
	return NULL;
}

static struct policy *lru_create(const struct policy_config *config)
{
	return create(config, &policy_lru, 1);
}

static struct policy *lru8_create(const struct policy_config *config)
{
	return create(config, &policy_lru8, NUM_CACHES_MAX);
}

/* ---- Signals ---- */

static int try_inject(struct lru *lru, struct cache *cache, const struct base_msi *msi)
{
	struct base_irq *irq = look_up(cache, msi);

	if (!irq)
		return -EWOULDBLOCK;
	base_signal(&lru->its.gic, irq);
	return 1;
}

static int inject(struct lru *lru, struct cache *cache, uint32_t devid, uint32_t eventid)
{
	const struct base_msi msi = base_its_message(&lru->its, devid, eventid);
	const int result = try_inject(lru, cache, &msi);

	return result == -EWOULDBLOCK ? base_its_inject(&lru->its, &msi) : result;
}

static int lru_inject(struct policy *policy, uint32_t devid, uint32_t eventid)
{
	struct lru *lru = (struct lru *)policy;

	return inject(lru, &lru->caches[0], devid, eventid);
}

static int lru8_inject(struct policy *policy, uint32_t devid, uint32_t eventid)
{
	struct lru *lru = (struct lru *)policy;

	return inject(lru, cache_of_cpu(lru), devid, eventid);
}

static int lru_try_inject(struct policy *policy, uint32_t devid, uint32_t eventid)
{
	struct lru *lru = (struct lru *)policy;
	const struct base_msi msi = base_its_message(&lru->its, devid, eventid);

	return try_inject(lru, &lru->caches[0], &msi);
}

static int lru8_try_inject(struct policy *policy, uint32_t devid, uint32_t eventid)
{
	struct lru *lru = (struct lru *)policy;
	const struct base_msi msi = base_its_message(&lru->its, devid, eventid);

	return try_inject(lru, cache_of_cpu(lru), &msi);
}

/* Without the search for an entry that is there already, which takes quadratic time. Caches are empty before. */
static void warm_event(struct base_its *its, uint32_t devid, uint32_t eventid, struct base_irq *irq)
{
	struct lru *lru = (struct lru *)its;

	for (unsigned i = 0; i < lru->num_caches; i++) {
		spin_lock(lru->caches[i].lock);
		store_entry(lru, &lru->caches[i], devid, eventid, irq);
		spin_unlock(lru->caches[i].lock);
	}
}

static void lru_warm(struct policy *policy)
{
	base_its_each_event((struct base_its *)policy, warm_event);
}

static void lru_get_stats(struct policy *policy, struct policy_stats *stats)
{
	struct lru *lru = (struct lru *)policy;

	base_policy_get_stats(policy, stats);
	for (unsigned i = 0; i < lru->num_caches; i++)
		stats->contended += lru->caches[i].own_lock.contended;
}

const struct policy_ops policy_lru = {
	.name = "lru",
	.what = "one cache, a list in order of use under a spin lock",
	.create = lru_create,
	.destroy = lru_destroy,
	.warm = lru_warm,
	.inject = lru_inject,
	.try_inject = lru_try_inject,
	.get_stats = lru_get_stats,
	BASE_POLICY_OPS,
};

const struct policy_ops policy_lru8 = {
	.name = "lru8",
	.what = "eight such caches, chosen by the injecting CPU",
	.create = lru8_create,
	.destroy = lru_destroy,
	.warm = lru_warm,
	.inject = lru8_inject,
	.try_inject = lru8_try_inject,
	.get_stats = lru_get_stats,
	BASE_POLICY_OPS,
};
