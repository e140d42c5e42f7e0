/* SPDX-License-Identifier: MIT */
/*
 * tree.c - the policy `tree`: translations cached in a radix tree of each ITS,
 * read under RCU.
 *
 * Linux's KVM for arm64 since 6.10. A hit looks up the ITS by the doorbell's
 * address and the LPI by DeviceID and EventID, and takes a reference that it gives
 * up in the end. A miss is translated under the mutex, and stays in the tree until
 * a command empties it.
 */
#include <errno.h>
#include <stdlib.h>

#include "its_model.h"
#include "rcu.h"

#define EVENT_BITS 16

struct tree {
	struct base_its its;
	struct radix translations;
	struct radix_grave grave; /* guarded by its_lock, as is writing */
};

static uint64_t key_of(uint32_t devid, uint32_t eventid)
{
	return (uint64_t)devid << EVENT_BITS | eventid;
}

/* ---- The cache ---- */

static void fill(struct base_its *its, uint32_t devid, uint32_t eventid, struct base_irq *irq)
{
	struct tree *tree = (struct tree *)its;
	void *old = NULL;

	base_irq_hold(irq);
	if (radix_store(&tree->translations, key_of(devid, eventid), irq, &old))
		base_irq_release(&its->gic, irq); /* no memory: it stays a miss */
	else if (old)
		base_irq_release(&its->gic, old); /* another thread was first */
}

static void drop(void *its, void *irq)
{
	((struct base_its *)its)->stats.invalidations++;
	base_irq_release(&((struct base_its *)its)->gic, irq);
}

static void invalidate(struct base_its *its)
{
	struct tree *tree = (struct tree *)its;

	radix_clear(&tree->translations, &tree->grave, drop, its);
}

static const struct base_cache_ops tree_cache = { .fill = fill, .invalidate = invalidate };

/* ---- Life cycle ---- */

static void tree_destroy(struct policy *policy)
{
	struct tree *tree = (struct tree *)policy;

	invalidate(&tree->its);
	radix_grave_empty(&tree->grave);
	base_its_destroy(&tree->its);
	free(tree);
}

static struct policy *tree_create(const struct policy_config *config)
{
	struct tree *tree;

	if (config->num_vcpus == 0 || config->num_vcpus > POLICY_MAX_VCPUS)
		return NULL;
	tree = aligned_alloc(BASE_LINE, sizeof(*tree));
	if (!tree)
		return NULL;
	*tree = (struct tree){ .grave = { NULL, 0 } };
	if (base_its_init(&tree->its, &policy_tree, config, REGISTRY_TREE, &tree_cache)) {
		tree_destroy(&tree->its.policy);
		return NULL;
	}
	return &tree->its.policy;
}

/* ---- Signals ---- */

static __attribute__((noinline)) struct base_irq *look_up(struct base_its *its, const struct base_msi *msi)
{
	struct base_irq *irq = NULL;
	struct tree *addressed;

	rcu_read_begin();
	addressed = base_find_its(&its->gic, base_msi_address(msi));
	if (addressed)
		irq = radix_load(&addressed->translations, key_of(msi->devid, msi->data));
	if (irq && !base_irq_try_hold(irq))
		irq = NULL;
	rcu_read_end();
	return irq;
}

static int try_inject(struct base_its *its, const struct base_msi *msi)
{
	struct base_irq *irq = look_up(its, msi);

	if (!irq)
		return -EWOULDBLOCK;
	base_signal(&its->gic, irq);
	base_irq_release(&its->gic, irq);
	return 1;
}

static int tree_inject(struct policy *policy, uint32_t devid, uint32_t eventid)
{
	struct base_its *its = (struct base_its *)policy;
	const struct base_msi msi = base_its_message(its, devid, eventid);
	const int result = try_inject(its, &msi);

	return result == -EWOULDBLOCK ? base_its_inject(its, &msi) : result;
}

static int tree_try_inject(struct policy *policy, uint32_t devid, uint32_t eventid)
{
	struct base_its *its = (struct base_its *)policy;
	const struct base_msi msi = base_its_message(its, devid, eventid);

	return try_inject(its, &msi);
}

static void tree_warm(struct policy *policy)
{
	base_its_each_event((struct base_its *)policy, fill);
}

const struct policy_ops policy_tree = {
	.name = "tree",
	.what = "a radix tree read under RCU, and a tree of LPIs",
	.create = tree_create,
	.destroy = tree_destroy,
	.warm = tree_warm,
	.inject = tree_inject,
	.try_inject = tree_try_inject,
	.get_stats = base_policy_get_stats,
	BASE_POLICY_OPS,
};
