/* SPDX-License-Identifier: MIT */
/*
 * its_model.h - the ITS of the baselines: devices, events and collections in
 * lists under a mutex.
 *
 * A re-implementation, as a program, of the one in Linux's KVM for arm64. Each
 * baseline puts its own way in front of it: a cache that is asked first, filled by
 * translations under the mutex, and emptied by commands.
 */
#ifndef BENCH_BASELINES_ITS_MODEL_H
#define BENCH_BASELINES_ITS_MODEL_H

#include <pthread.h>

#include "delivery.h"

struct base_its;

/* A message as it comes from a route or from KVM_SIGNAL_MSI. */
struct base_msi {
	uint32_t address_low, address_high;
	uint32_t data;
	uint32_t flags;
	uint32_t devid;
};

#define BASE_MSI_HAS_DEVID 1u

static inline uint64_t base_msi_address(const struct base_msi *msi)
{
	return (uint64_t)msi->address_high << 32 | msi->address_low;
}

/* What a cache is told. Under its_lock. */
struct base_cache_ops {
	/* A translation was found by the slow way. */
	void (*fill)(struct base_its *its, uint32_t devid, uint32_t eventid, struct base_irq *irq);
	/* Something that may be in the cache is no longer so. */
	void (*invalidate)(struct base_its *its);
};

/* The first member of each baseline's own structure. */
struct base_its {
	struct policy policy;
	uint64_t doorbell;
	const struct base_cache_ops *cache; /* NULL: there is none */
	struct base_gic gic;

	_Alignas(BASE_LINE) pthread_mutex_t its_lock; /* guards the following */
	bool enabled;
	struct list devices, collections;
	uint8_t *properties; /* the guest's configuration table */
	uint64_t contended;
	struct policy_stats stats;
};

/* Returns 0 or -ENOMEM; base_its_destroy() in any case. */
int base_its_init(struct base_its *its, const struct policy_ops *ops, const struct policy_config *config,
		  enum base_registry registry, const struct base_cache_ops *cache);
void base_its_destroy(struct base_its *its);

/* A signal that no cache has answered. */
int base_its_inject(struct base_its *its, const struct base_msi *msi);

/* What a device sends to the ITS. */
static inline struct base_msi base_its_message(const struct base_its *its, uint32_t devid, uint32_t eventid)
{
	return (struct base_msi){
		.address_low = (uint32_t)its->doorbell,
		.address_high = (uint32_t)(its->doorbell >> 32),
		.data = eventid,
		.flags = BASE_MSI_HAS_DEVID,
		.devid = devid,
	};
}

/* Calls @each for every event that is mapped. */
void base_its_each_event(struct base_its *its,
			 void (*each)(struct base_its *its, uint32_t devid, uint32_t eventid, struct base_irq *irq));

/* The parts of struct policy_ops that all baselines share. */
int base_command(struct policy *policy, const struct policy_command *command);
uint32_t base_policy_acknowledge(struct policy *policy, uint32_t vcpu);
void base_policy_end(struct policy *policy, uint32_t vcpu, uint32_t intid);
bool base_policy_is_up(struct policy *policy, uint32_t vcpu);
bool base_policy_prepare_wait(struct policy *policy, uint32_t vcpu);
void base_policy_finish_wait(struct policy *policy, uint32_t vcpu);
void base_policy_get_stats(struct policy *policy, struct policy_stats *stats);

#define BASE_POLICY_OPS                                                                                                \
	.command = base_command, .acknowledge = base_policy_acknowledge, .end = base_policy_end,                       \
	.is_up = base_policy_is_up, .prepare_wait = base_policy_prepare_wait, .finish_wait = base_policy_finish_wait

#endif /* BENCH_BASELINES_ITS_MODEL_H */
