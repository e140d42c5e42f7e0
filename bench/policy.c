/* SPDX-License-Identifier: MIT */
/*
 * policy.c - the list of policies, and the mapping that the benchmarks use (policy.h).
 */
#include "policy.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

const struct policy_ops *const policy_list[POLICY_COUNT] = {
	&policy_direct, &policy_locked, &policy_lru, &policy_lru8, &policy_tree,
};

const struct policy_ops *policy_by_name(const char *name)
{
	for (unsigned i = 0; i < POLICY_COUNT; i++) {
		if (!strcmp(policy_list[i]->name, name))
			return policy_list[i];
	}
	return NULL;
}

static uint32_t bits_for(uint32_t num_events)
{
	uint32_t bits = 1;

	while (UINT32_C(1) << bits < num_events)
		bits++;
	return bits;
}

int policy_map_devices(struct policy *policy, uint32_t num_vcpus, uint32_t num_devices, uint32_t num_events,
		       uint32_t num_lpis)
{
	uint32_t lpi = 0;
	int error = num_vcpus ? 0 : -EINVAL;

	for (uint32_t vcpu = 0; vcpu < num_vcpus && !error; vcpu++) {
		const struct policy_command mapc = { .opcode = POLICY_MAPC, .icid = vcpu, .vcpu = vcpu };

		error = policy->ops->command(policy, &mapc);
	}
	for (uint32_t devid = 0; devid < num_devices && !error; devid++) {
		const struct policy_command mapd = { .opcode = POLICY_MAPD,
						     .devid = devid,
						     .event_bits = bits_for(num_events) };

		error = policy->ops->command(policy, &mapd);
		for (uint32_t eventid = 0; eventid < num_events && lpi < num_lpis && !error; eventid++, lpi++) {
			const struct policy_command mapti = {
				.opcode = POLICY_MAPTI,
				.devid = devid,
				.eventid = eventid,
				.intid = POLICY_FIRST_LPI + lpi,
				.icid = lpi % num_vcpus,
			};

			error = policy->ops->command(policy, &mapti);
		}
	}
	return error;
}
