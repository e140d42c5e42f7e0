/* SPDX-License-Identifier: MIT */
/*
 * locked.c - the policy `locked`: no cache.
 *
 * Every signal takes the ITS's mutex and walks the list of devices and the
 * device's list of events. That is Linux's KVM for arm64 before 5.3, and what its
 * caches fall back to since. LPIs are found as in Linux 6.12, in a tree.
 */
#include <errno.h>
#include <stdlib.h>

#include "its_model.h"

static void locked_destroy(struct policy *policy)
{
	base_its_destroy((struct base_its *)policy);
	free(policy);
}

static struct policy *locked_create(const struct policy_config *config)
{
	struct base_its *its;

	if (config->num_vcpus == 0 || config->num_vcpus > POLICY_MAX_VCPUS)
		return NULL;
	its = aligned_alloc(BASE_LINE, sizeof(*its));
	if (!its)
		return NULL;
	*its = (struct base_its){ .enabled = false };
	if (base_its_init(its, &policy_locked, config, REGISTRY_TREE, NULL)) {
		locked_destroy(&its->policy);
		return NULL;
	}
	return &its->policy;
}

static int locked_inject(struct policy *policy, uint32_t devid, uint32_t eventid)
{
	struct base_its *its = (struct base_its *)policy;
	const struct base_msi msi = base_its_message(its, devid, eventid);

	return base_its_inject(its, &msi);
}

static int locked_try_inject(struct policy *policy, uint32_t devid, uint32_t eventid)
{
	(void)policy;
	(void)devid;
	(void)eventid;
	return -EWOULDBLOCK;
}

const struct policy_ops policy_locked = {
	.name = "locked",
	.what = "a mutex and walks over lists",
	.create = locked_create,
	.destroy = locked_destroy,
	.inject = locked_inject,
	.try_inject = locked_try_inject,
	.get_stats = base_policy_get_stats,
	BASE_POLICY_OPS,
};
