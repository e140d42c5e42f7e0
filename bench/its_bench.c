/* SPDX-License-Identifier: MIT */
/*
 * its_bench.c - what the benchmarks of MSIs share (its_bench.h).
 */
#include "its_bench.h"

#include <stdio.h>
#include <stdlib.h>

static bool init_order(struct its_bench *b)
{
	uint32_t *taker;

	b->events = calloc(b->num_lpis, sizeof(*b->events));
	b->takers = calloc(b->num_lpis, sizeof(*b->takers));
	if (!b->events || !b->takers)
		return false;
	for (uint32_t lpi = 0; lpi < b->num_lpis; lpi++)
		b->events[lpi] = (struct its_event){ lpi / b->num_events, lpi % b->num_events };
	taker = b->takers;
	for (uint32_t vcpu = 0; vcpu < b->num_vcpus; vcpu++) {
		for (uint32_t lpi = vcpu; lpi < b->num_lpis; lpi += b->num_vcpus)
			*taker++ = vcpu;
	}
	return true;
}

bool its_bench_init(struct its_bench *b, const struct policy_ops *ops, uint32_t num_vcpus, uint32_t num_devices,
		    uint32_t num_events, uint32_t num_lpis, uint32_t cache_entries)
{
	const struct policy_config config = { .num_vcpus = num_vcpus, .cache_entries = cache_entries };

	*b = (struct its_bench){
		.num_vcpus = num_vcpus, .num_devices = num_devices, .num_events = num_events, .num_lpis = num_lpis
	};
	b->policy = ops->create(&config);
	if (b->policy && init_order(b) && !policy_map_devices(b->policy, num_vcpus, num_devices, num_events, num_lpis))
		return true;
	fprintf(stderr, "vgic-bench: cannot set %s up with %u vCPUs, %u devices and %u events\n", ops->name, num_vcpus,
		num_devices, num_events);
	return false;
}

void its_bench_destroy(struct its_bench *b)
{
	if (b->policy)
		b->policy->ops->destroy(b->policy);
	free(b->events);
	free(b->takers);
	*b = (struct its_bench){ 0 };
}

void its_bench_take_all(struct its_bench *b)
{
	const struct policy_ops *ops = b->policy->ops;

	for (uint32_t vcpu = 0; vcpu < b->num_vcpus; vcpu++) {
		for (uint32_t intid; (intid = ops->acknowledge(b->policy, vcpu)) != POLICY_SPURIOUS;)
			ops->end(b->policy, vcpu, intid);
	}
}

bool its_bench_drain(struct its_bench *b, unsigned times)
{
	const struct policy_ops *ops = b->policy->ops;
	uint8_t *seen = calloc(b->num_lpis, 1);
	bool right = seen;

	for (uint32_t vcpu = 0; vcpu < b->num_vcpus && right; vcpu++) {
		for (uint32_t intid; (intid = ops->acknowledge(b->policy, vcpu)) != POLICY_SPURIOUS;) {
			const uint32_t lpi = intid - POLICY_FIRST_LPI;

			right &= lpi < b->num_lpis && lpi % b->num_vcpus == vcpu && seen[lpi] < times;
			if (!right)
				break;
			seen[lpi]++;
			ops->end(b->policy, vcpu, intid);
		}
	}
	for (uint32_t lpi = 0; lpi < b->num_lpis && right; lpi++)
		right = seen[lpi] == times;
	free(seen);
	return right;
}
