/* SPDX-License-Identifier: MIT */
/*
 * test_policies.c - all policies do the same.
 *
 * The same random sequence of commands, signals and drained vCPUs goes to each of
 * them; every answer and every set of acknowledged LPIs must be equal. The seed is
 * printed, and can be given as the only argument. Other tests look at the caches'
 * own promises: what they count, and when they forget.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "policy.h"

#define NUM_VCPUS   5u
#define NUM_DEVICES 6u
#define NUM_EVENTS  12u
#define EVENT_BITS  4u
#define NUM_ICIDS   7u
#define NUM_LPIS    40u
#define STEPS       20000
#define ROUNDS      3

static uint64_t seed;

/* ---- Random ---- */

static uint64_t random_state;

static uint64_t random_u64(void)
{
	/* xorshift64* */
	random_state ^= random_state >> 12;
	random_state ^= random_state << 25;
	random_state ^= random_state >> 27;
	return random_state * UINT64_C(0x2545f4914f6cdd1d);
}

static uint32_t random_below(uint32_t limit)
{
	return (uint32_t)(random_u64() >> 32) % limit;
}

/* ---- What is compared ---- */

/* Which LPIs each vCPU acknowledged when it was drained: sorted, as order within one priority is free. */
struct taken {
	uint32_t num;
	uint32_t lpis[NUM_LPIS];
};

static void drain(struct policy *policy, uint32_t vcpu, struct taken *taken)
{
	bool seen[NUM_LPIS] = { false };

	*taken = (struct taken){ 0 };
	for (uint32_t intid; (intid = policy->ops->acknowledge(policy, vcpu)) != POLICY_SPURIOUS;) {
		assert_in_range(intid, POLICY_FIRST_LPI, POLICY_FIRST_LPI + NUM_LPIS - 1);
		assert_false(seen[intid - POLICY_FIRST_LPI]); /* nothing was signalled meanwhile */
		seen[intid - POLICY_FIRST_LPI] = true;
		policy->ops->end(policy, vcpu, intid);
	}
	for (uint32_t i = 0; i < NUM_LPIS; i++) {
		if (seen[i])
			taken->lpis[taken->num++] = POLICY_FIRST_LPI + i;
	}
	assert_false(policy->ops->is_up(policy, vcpu));
}

struct all {
	struct policy *policies[POLICY_COUNT];
	/* Which LPI an event has, 0: none. Two events on one LPI are libvgic's choice, not the older designs'. */
	uint32_t lpi_of[NUM_DEVICES][NUM_EVENTS];
	bool enabled;
};

static void create_all(struct all *all)
{
	const struct policy_config config = { .num_vcpus = NUM_VCPUS };

	*all = (struct all){ .enabled = true };
	for (unsigned i = 0; i < POLICY_COUNT; i++) {
		all->policies[i] = policy_list[i]->create(&config);
		assert_non_null(all->policies[i]);
	}
}

static void destroy_all(struct all *all)
{
	for (unsigned i = 0; i < POLICY_COUNT; i++)
		policy_list[i]->destroy(all->policies[i]);
}

/* Returns what all of them answer. */
static int command_all(struct all *all, const struct policy_command *command)
{
	int first = 0;

	for (unsigned i = 0; i < POLICY_COUNT; i++) {
		const int result = policy_list[i]->command(all->policies[i], command);

		if (i == 0)
			first = result;
		if (result != first)
			fail_msg("seed %llu: command %d (device %u, event %u, LPI %u, ICID %u): %s answers %d, %s %d",
				 (unsigned long long)seed, command->opcode, command->devid, command->eventid,
				 command->intid, command->icid, policy_list[0]->name, first, policy_list[i]->name,
				 result);
	}
	return first;
}

static int inject_all(struct all *all, uint32_t devid, uint32_t eventid)
{
	int first = 0;

	for (unsigned i = 0; i < POLICY_COUNT; i++) {
		const int result = policy_list[i]->inject(all->policies[i], devid, eventid);

		if (i == 0)
			first = result;
		if (result != first)
			fail_msg("seed %llu: signal of device %u, event %u: %s answers %d, %s %d",
				 (unsigned long long)seed, devid, eventid, policy_list[0]->name, first,
				 policy_list[i]->name, result);
	}
	return first;
}

/* Returns how many all of them took. */
static uint32_t drain_all(struct all *all, uint32_t vcpu)
{
	struct taken first, other;

	drain(all->policies[0], vcpu, &first);
	for (unsigned i = 1; i < POLICY_COUNT; i++) {
		drain(all->policies[i], vcpu, &other);
		if (memcmp(&first, &other, sizeof(first)) != 0)
			fail_msg("seed %llu: vCPU %u: %s acknowledges %u LPIs from %u on, %s %u from %u on",
				 (unsigned long long)seed, vcpu, policy_list[0]->name, first.num, first.lpis[0],
				 policy_list[i]->name, other.num, other.lpis[0]);
	}
	return first.num;
}

/* ---- Random sequences ---- */

static bool lpi_is_used(const struct all *all, uint32_t intid)
{
	for (unsigned d = 0; d < NUM_DEVICES; d++) {
		for (unsigned e = 0; e < NUM_EVENTS; e++) {
			if (all->lpi_of[d][e] == intid)
				return true;
		}
	}
	return false;
}

static struct policy_command random_command(void)
{
	/* Mostly events: a device that is mapped anew has none left. */
	static const enum policy_opcode mix[] = {
		POLICY_MAPD,      POLICY_UNMAPD,    POLICY_MAPC,    POLICY_UNMAPC, POLICY_MAPC,   POLICY_MAPC,
		POLICY_MAPTI,     POLICY_MAPTI,     POLICY_MAPTI,   POLICY_MAPTI,  POLICY_MAPTI,  POLICY_MAPTI,
		POLICY_MAPTI,     POLICY_MAPTI,     POLICY_MAPTI,   POLICY_MAPTI,  POLICY_MAPTI,  POLICY_MAPTI,
		POLICY_DISCARD,   POLICY_MOVI,      POLICY_MOVI,    POLICY_MOVALL, POLICY_INT,    POLICY_INT,
		POLICY_CLEAR,     POLICY_INV,       POLICY_INV,     POLICY_INVALL, POLICY_INVALL, POLICY_CONFIGURE,
		POLICY_CONFIGURE, POLICY_CONFIGURE, POLICY_DISABLE,
	};

	return (struct policy_command){
		.opcode = mix[random_below(sizeof(mix) / sizeof(mix[0]))],
		.devid = random_below(NUM_DEVICES),
		.eventid = random_below(NUM_EVENTS),
		.intid = POLICY_FIRST_LPI + random_below(NUM_LPIS),
		.icid = random_below(NUM_ICIDS),
		.vcpu = random_below(NUM_VCPUS),
		.to_vcpu = random_below(NUM_VCPUS),
		.event_bits = EVENT_BITS - random_below(2), /* with the smaller size some EventIDs are out of range */
		.property = (uint8_t)(random_below(16) << 3 | (random_below(4) != 0)),
	};
}

static void do_command(struct all *all)
{
	struct policy_command c = random_command();
	int result;

	/* While the ITS is off its queue stands still. */
	if (!all->enabled && c.opcode != POLICY_CONFIGURE)
		c.opcode = POLICY_ENABLE;
	if (c.opcode == POLICY_MAPTI && all->lpi_of[c.devid][c.eventid] != c.intid && lpi_is_used(all, c.intid))
		return;
	result = command_all(all, &c);
	assert_true(result == 0 || result == -EINVAL);
	if (result)
		return;
	if (c.opcode == POLICY_MAPD || c.opcode == POLICY_UNMAPD)
		memset(all->lpi_of[c.devid], 0, sizeof(all->lpi_of[c.devid]));
	else if (c.opcode == POLICY_MAPTI)
		all->lpi_of[c.devid][c.eventid] = c.intid;
	else if (c.opcode == POLICY_DISCARD)
		all->lpi_of[c.devid][c.eventid] = 0;
	else if (c.opcode == POLICY_ENABLE || c.opcode == POLICY_DISABLE)
		all->enabled = c.opcode == POLICY_ENABLE;
}

static void random_sequences_do_the_same(void **state)
{
	uint32_t delivered = 0, blocked = 0, off = 0;
	struct all all;

	(void)state;
	for (int round = 0; round < ROUNDS; round++) {
		create_all(&all);
		for (int step = 0; step < STEPS; step++) {
			const uint32_t dice = random_below(10);

			if (dice < 3) {
				do_command(&all);
			} else if (dice < 9) {
				const int r = inject_all(&all, random_below(NUM_DEVICES), random_below(NUM_EVENTS));

				blocked += r == 0;
				off += r == -EBUSY;
			} else {
				delivered += drain_all(&all, random_below(NUM_VCPUS));
			}
		}
		for (uint32_t vcpu = 0; vcpu < NUM_VCPUS; vcpu++)
			delivered += drain_all(&all, vcpu);
		destroy_all(&all);
	}
	/* The sequence was worth it: all three answers came, and interrupts too. */
	assert_in_range(delivered, ROUNDS * STEPS / 100, UINT32_MAX);
	assert_in_range(blocked, 1, UINT32_MAX);
	assert_in_range(off, 1, UINT32_MAX);
}

/* ---- Caches ---- */

static struct policy *with_events(const struct policy_ops *ops, uint32_t num_devices, uint32_t num_events)
{
	const struct policy_config config = { .num_vcpus = 2 };
	struct policy *policy = ops->create(&config);

	assert_non_null(policy);
	assert_int_equal(policy_map_devices(policy, 2, num_devices, num_events, num_devices * num_events), 0);
	return policy;
}

static struct policy_stats stats_of(struct policy *policy)
{
	struct policy_stats stats;

	policy->ops->get_stats(policy, &stats);
	return stats;
}

static void inject_each(struct policy *policy, uint32_t num_events)
{
	for (uint32_t eventid = 0; eventid < num_events; eventid++)
		assert_int_equal(policy->ops->inject(policy, 0, eventid), 1);
}

/* Two vCPUs: eight entries. Eight events fit, and with a ninth each one evicts the one that comes next. */
static void lru_has_four_entries_for_each_vcpu(void **state)
{
	struct policy *policy = with_events(&policy_lru, 1, 9);

	(void)state;
	inject_each(policy, 8);
	assert_int_equal(stats_of(policy).misses, 8);
	inject_each(policy, 8);
	assert_int_equal(stats_of(policy).misses, 8);
	assert_int_equal(stats_of(policy).evictions, 0);
	inject_each(policy, 9);
	assert_int_equal(stats_of(policy).misses, 9);
	assert_int_equal(stats_of(policy).evictions, 1);
	inject_each(policy, 9);
	assert_int_equal(stats_of(policy).misses, 18);
	assert_int_equal(stats_of(policy).evictions, 10);
	policy->ops->destroy(policy);
}

static void lru_evicts_the_least_recently_used(void **state)
{
	struct policy *policy = with_events(&policy_lru, 1, 9);

	(void)state;
	inject_each(policy, 8);
	assert_int_equal(policy_lru.inject(policy, 0, 0), 1); /* now event 1 is the oldest */
	assert_int_equal(policy_lru.inject(policy, 0, 8), 1);
	assert_int_equal(stats_of(policy).misses, 9);
	assert_int_equal(policy_lru.inject(policy, 0, 0), 1);
	assert_int_equal(stats_of(policy).misses, 9);
	assert_int_equal(policy_lru.inject(policy, 0, 1), 1);
	assert_int_equal(stats_of(policy).misses, 10);
	policy->ops->destroy(policy);
}

static void tree_has_room_for_all(void **state)
{
	struct policy *policy = with_events(&policy_tree, 1, 200);

	(void)state;
	inject_each(policy, 200);
	inject_each(policy, 200);
	assert_int_equal(stats_of(policy).misses, 200);
	assert_int_equal(stats_of(policy).evictions, 0);
	policy->ops->destroy(policy);
}

static void locked_never_hits(void **state)
{
	struct policy *policy = with_events(&policy_locked, 1, 3);

	(void)state;
	inject_each(policy, 3);
	inject_each(policy, 3);
	assert_int_equal(stats_of(policy).misses, 6);
	policy->ops->destroy(policy);
}

static void direct_never_misses(void **state)
{
	struct policy *policy = with_events(&policy_direct, 1, 3);

	(void)state;
	inject_each(policy, 3);
	assert_int_equal(stats_of(policy).misses, 0);
	policy->ops->destroy(policy);
}

/* Each of these may make a cached translation wrong. */
static void commands_empty_the_caches(void **state)
{
	static const struct policy_command commands[] = {
		{ .opcode = POLICY_DISCARD, .devid = 1, .eventid = 0 },
		{ .opcode = POLICY_UNMAPD, .devid = 1 },
		{ .opcode = POLICY_MAPD, .devid = 1, .event_bits = 4 },
		{ .opcode = POLICY_UNMAPC, .icid = 1 },
		{ .opcode = POLICY_MOVI, .devid = 1, .eventid = 0, .icid = 1 },
		{ .opcode = POLICY_MOVALL, .vcpu = 0, .to_vcpu = 1 },
	};

	(void)state;
	for (unsigned i = 0; i < POLICY_COUNT; i++) {
		const struct policy_ops *ops = policy_list[i];

		for (unsigned j = 0; j < sizeof(commands) / sizeof(commands[0]); j++) {
			struct policy *policy = with_events(ops, 2, 2);

			assert_int_equal(ops->inject(policy, 0, 0), 1);
			assert_int_equal(ops->command(policy, &commands[j]), 0);
			assert_int_equal(stats_of(policy).invalidations, ops->warm != NULL);
			ops->destroy(policy);
		}
	}
}

static void warm_caches_hit(void **state)
{
	(void)state;
	for (unsigned i = 0; i < POLICY_COUNT; i++) {
		struct policy *policy = with_events(policy_list[i], 1, 8);

		if (policy->ops->warm) {
			policy->ops->warm(policy);
			inject_each(policy, 8);
			assert_int_equal(stats_of(policy).misses, 0);
		}
		policy->ops->destroy(policy);
	}
}

/* Only what has a cache has hits; what has none of its own to wait for never blocks. */
static void who_may_not_sleep_gets_hits_only(void **state)
{
	(void)state;
	for (unsigned i = 0; i < POLICY_COUNT; i++) {
		const struct policy_ops *ops = policy_list[i];
		struct policy *policy = with_events(ops, 1, 2);
		const bool is_direct = ops == &policy_direct;
		const int hit = is_direct || ops->warm ? 1 : -EWOULDBLOCK;

		assert_int_equal(ops->try_inject(policy, 0, 0), is_direct ? 1 : -EWOULDBLOCK);
		assert_int_equal(stats_of(policy).misses, 0);
		assert_int_equal(ops->is_up(policy, 0), is_direct);
		/* One that may sleep fills the cache, but for this event only. */
		assert_int_equal(ops->inject(policy, 0, 0), 1);
		assert_int_equal(ops->acknowledge(policy, 0), POLICY_FIRST_LPI);
		ops->end(policy, 0, POLICY_FIRST_LPI);
		assert_int_equal(ops->try_inject(policy, 0, 0), hit);
		assert_int_equal(ops->is_up(policy, 0), hit == 1);
		assert_int_equal(ops->try_inject(policy, 0, 1), is_direct ? 1 : -EWOULDBLOCK);
		/* A command empties it. */
		assert_int_equal(ops->command(policy, &(struct policy_command){ .opcode = POLICY_UNMAPD }), 0);
		assert_int_equal(ops->try_inject(policy, 0, 0), is_direct ? 0 : -EWOULDBLOCK);
		ops->destroy(policy);
	}
}

/* ---- Waiting ---- */

static unsigned kicks[2];

static void count_kick(void *opaque, uint32_t vcpu)
{
	(void)opaque;
	kicks[vcpu]++;
}

static void a_signal_kicks_who_waits(void **state)
{
	const struct policy_config config = { .num_vcpus = 2, .kick = count_kick };

	(void)state;
	for (unsigned i = 0; i < POLICY_COUNT; i++) {
		const struct policy_ops *ops = policy_list[i];
		struct policy *policy = ops->create(&config);

		assert_non_null(policy);
		assert_int_equal(policy_map_devices(policy, 2, 1, 2, 2), 0);
		memset(kicks, 0, sizeof(kicks));
		assert_false(ops->prepare_wait(policy, 1));
		assert_int_equal(ops->inject(policy, 0, 1), 1);
		assert_int_equal(kicks[1], 1);
		assert_int_equal(kicks[0], 0);
		assert_true(ops->is_up(policy, 1));
		ops->finish_wait(policy, 1);
		/* What is pending before keeps it from waiting. */
		assert_true(ops->prepare_wait(policy, 1));
		ops->finish_wait(policy, 1);
		assert_int_equal(ops->acknowledge(policy, 1), POLICY_FIRST_LPI + 1);
		/* Nothing of its priority is taken before its end. */
		assert_int_equal(ops->inject(policy, 0, 1), 1);
		assert_int_equal(ops->acknowledge(policy, 1), POLICY_SPURIOUS);
		ops->end(policy, 1, POLICY_FIRST_LPI + 1);
		assert_int_equal(ops->acknowledge(policy, 1), POLICY_FIRST_LPI + 1);
		ops->end(policy, 1, POLICY_FIRST_LPI + 1);
		assert_false(ops->is_up(policy, 1));
		ops->destroy(policy);
	}
}

static void unmapped_events_are_dropped(void **state)
{
	(void)state;
	for (unsigned i = 0; i < POLICY_COUNT; i++) {
		struct policy *policy = with_events(policy_list[i], 1, 2);

		assert_int_equal(policy->ops->inject(policy, 0, 2), 0);
		assert_int_equal(policy->ops->inject(policy, 7, 0), 0);
		assert_int_equal(policy->ops->command(policy, &(struct policy_command){ .opcode = POLICY_DISABLE }), 0);
		assert_int_equal(policy->ops->inject(policy, 0, 0), -EBUSY);
		assert_int_equal(policy->ops->acknowledge(policy, 0), POLICY_SPURIOUS);
		policy->ops->destroy(policy);
	}
}

/* More than there are list registers, with all priorities: the most urgent ones come first. */
static void lpis_come_by_priority(void **state)
{
	(void)state;
	for (unsigned i = 0; i < POLICY_COUNT; i++) {
		const struct policy_ops *ops = policy_list[i];
		struct policy *policy = with_events(ops, 1, 32);
		uint8_t last = 0;

		for (uint32_t e = 0; e < 32; e++) {
			const uint8_t property = (uint8_t)((e * 7 % 29) << 3 | 1);

			assert_int_equal(ops->command(policy, &(struct policy_command){ .opcode = POLICY_CONFIGURE,
											.intid = POLICY_FIRST_LPI + e,
											.property = property }),
					 0);
			assert_int_equal(ops->command(policy,
						      &(struct policy_command){ .opcode = POLICY_INV, .eventid = e }),
					 0);
		}
		inject_each(policy, 32);
		for (uint32_t n = 0; n < 16; n++) {
			const uint32_t intid = ops->acknowledge(policy, 0);
			const uint8_t priority = (uint8_t)((intid - POLICY_FIRST_LPI) * 7 % 29);

			assert_true(intid >= POLICY_FIRST_LPI && priority >= last);
			last = priority;
			ops->end(policy, 0, intid);
		}
		assert_int_equal(ops->acknowledge(policy, 0), POLICY_SPURIOUS);
		ops->destroy(policy);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_sequences_do_the_same),
		cmocka_unit_test(lru_has_four_entries_for_each_vcpu),
		cmocka_unit_test(lru_evicts_the_least_recently_used),
		cmocka_unit_test(tree_has_room_for_all),
		cmocka_unit_test(locked_never_hits),
		cmocka_unit_test(direct_never_misses),
		cmocka_unit_test(commands_empty_the_caches),
		cmocka_unit_test(warm_caches_hit),
		cmocka_unit_test(who_may_not_sleep_gets_hits_only),
		cmocka_unit_test(a_signal_kicks_who_waits),
		cmocka_unit_test(unmapped_events_are_dropped),
		cmocka_unit_test(lpis_come_by_priority),
	};

	seed = argc > 1 ? strtoull(argv[1], NULL, 0) : (uint64_t)time(NULL);
	random_state = seed * UINT64_C(0x9e3779b97f4a7c15) | 1;
	cmocka_set_message_output(CM_OUTPUT_TAP);
	printf("# seed %llu\n", (unsigned long long)seed);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
