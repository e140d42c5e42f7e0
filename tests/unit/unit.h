/* SPDX-License-Identifier: MIT */
/*
 * unit.h - what the unit tests of the library's inner parts share: a controller
 * that counts its callbacks, and random numbers that are the same in every run.
 */
#ifndef TESTS_UNIT_H
#define TESTS_UNIT_H

/* cmocka wants these before its own header. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdbool.h>

#include "vgic_internal.h"

#define GROUP0_LEVELS UINT64_C(0x00000000ffffffff)
#define GROUP1_LEVELS UINT64_C(0xffffffff00000000)
#define ALL_LEVELS    (GROUP0_LEVELS | GROUP1_LEVELS)

struct unit {
	struct vgic *vgic;
	unsigned *kicks; /* by vCPU index */
	unsigned num_kicks;
	unsigned num_reports;
	struct vgic_guest_error last_report;
};

/* A native controller with Aff0 0-15 in Aff1 0, 1, ...; @extra are features beside the profile's own. */
struct unit *unit_start(uint32_t num_vcpus, uint32_t extra, uint32_t lpi_id_bits);
void unit_stop(struct unit *u);

struct vgic_vcpu *unit_vcpu(const struct unit *u, uint32_t index);

/* Every switch of the CPU interface and of the distributor on: all levels may be signalled but the lowest of each group. */
void unit_open_cpuif(struct vgic_vcpu *vcpu);
void unit_open_dist(struct unit *u);
void unit_open(struct unit *u);

/* Levels as a set: the candidate of @priority (0-31) in @group. */
static inline unsigned level_of(unsigned group, unsigned priority)
{
	return group * NUM_PRIORITIES + priority;
}

static inline uint64_t only_level(unsigned level)
{
	return UINT64_C(1) << level;
}

/* splitmix64: any seed will do. */
struct rng {
	uint64_t state;
};

uint64_t rng_next(struct rng *r);
/* 0 to @n-1. */
uint32_t rng_below(struct rng *r, uint32_t n);

/* Run the tests of an array as one group, reported as TAP. */
#define RUN_TESTS(name, tests)                                                                                         \
	(cmocka_set_message_output(CM_OUTPUT_TAP), cmocka_run_group_tests_name((name), (tests), NULL, NULL))

#endif /* TESTS_UNIT_H */
