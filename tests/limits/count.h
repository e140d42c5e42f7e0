/* SPDX-License-Identifier: MIT */
/*
 * What one call of the library costs, as numbers that no machine's speed is in:
 * basic blocks executed, the executions of the block that was executed most (the
 * longest loop), accesses to guest memory, kicks, locks, allocations.
 */
#ifndef TESTS_LIMITS_COUNT_H
#define TESTS_LIMITS_COUNT_H

#include <stdbool.h>
#include <stdint.h>

struct machine;

struct cost {
	uint64_t blocks;
	uint64_t hottest;
	uint64_t guest_accesses;
	uint64_t kicks;
	unsigned locks;      /* taken */
	unsigned lock_depth; /* at one time */
	unsigned allocations;
};

/* Accesses of @m to guest memory are counted from now on: before its start. */
void count_guest_memory(struct machine *m);

void count_begin(struct machine *m);
void count_end(struct machine *m, struct cost *cost);

#endif /* TESTS_LIMITS_COUNT_H */
