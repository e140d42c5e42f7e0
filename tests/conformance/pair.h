/* SPDX-License-Identifier: MIT */
/*
 * A pair of controllers with one configuration: libvgic and the reference.
 *
 * Every call drives both, and compares what they return. On a difference the
 * last operations are printed with the seed that makes them again, and the
 * program ends with status 1: what comes after a first difference means nothing.
 */
#ifndef TESTS_PAIR_H
#define TESTS_PAIR_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <ref_gic.h>
#include <vgic/vgic.h>

#define PAIR_MAX_VCPUS 8u
#define PAIR_MAX_EXTRA 2u         /* vCPUs that only libvgic's controller has, after a move */
#define PAIR_DIST      UINT32_MAX /* in place of a vCPU index: the distributor's frame */

struct pair {
	const char *name;
	uint64_t seed; /* printed on a difference */
	uint64_t num_ops;
	uint32_t num_vcpus;
	uint32_t num_spis;
	struct vgic_config config;
	struct vgic_vcpu_config vcpu_configs[PAIR_MAX_VCPUS];
	struct vgic_redist_region regions[3];
	struct vgic *vgic;
	struct vgic_vcpu *vcpus[PAIR_MAX_VCPUS];
	struct ref_gic *ref;

	/* After a move to another controller: its vCPUs in their order, and what the ones before have counted. */
	struct vgic_vcpu_config order[PAIR_MAX_VCPUS + PAIR_MAX_EXTRA];
	uint32_t num_extra;
	struct vgic_stats before;
	bool offline[PAIR_MAX_VCPUS];

	FILE *record; /* every operation goes there as a line, if it is set: the fuzzers' seeds are made of these */
	unsigned how_lines; /* which of the calls that return the lines is used next */
	uint64_t num_deactivations;
	uint64_t num_blocked;    /* times that a vCPU's best interrupt kept another from being signalled */
	uint64_t num_one_of_n;   /* times that a 1-of-N interrupt was seen to be somewhere */
	uint64_t num_reselected; /* times that it had moved */
};

/* A configuration with everything on; change it before pair_create(). */
void pair_configure(struct pair *pair, enum vgic_profile profile, uint32_t num_vcpus);
void pair_create(struct pair *pair);
void pair_destroy(struct pair *pair);

/*
 * Start a record, before pair_create(): the configuration, then a line "KIND VCPU WHERE HOW VALUE" for each operation.
 */
void pair_record(struct pair *pair, const char *path);

/* The registers. @vcpu is an index, or PAIR_DIST. Return what both have read. */
uint64_t pair_read(struct pair *pair, uint32_t vcpu, uint32_t offset, unsigned width);
void pair_write(struct pair *pair, uint32_t vcpu, uint32_t offset, unsigned width, uint64_t value);
/* By guest-physical address; the error, if any, is compared too. */
void pair_read_address(struct pair *pair, uint64_t address, unsigned width);
void pair_write_address(struct pair *pair, uint64_t address, unsigned width, uint64_t value);
uint64_t pair_icc_read(struct pair *pair, uint32_t vcpu, uint32_t reg);
void pair_icc_write(struct pair *pair, uint32_t vcpu, uint32_t reg, uint64_t value);

void pair_set_spi(struct pair *pair, uint32_t intid, unsigned source, bool level);
void pair_set_ppi(struct pair *pair, uint32_t vcpu, uint32_t intid, unsigned source, bool level);
void pair_pulse_spi(struct pair *pair, uint32_t intid);
void pair_set_online(struct pair *pair, uint32_t vcpu, bool online);
void pair_vcpu_reset(struct pair *pair, uint32_t vcpu);
void pair_reset(struct pair *pair);
/* Save libvgic's controller, and restore it: its registers are reset in between. */
void pair_move(struct pair *pair);

/* pair_move.c: the guest goes on in another controller, and pair->vgic and its relatives are that one's from then on. */
enum pair_way {
	PAIR_BY_IMAGE,      /* vgic_save() and vgic_restore() */
	PAIR_BY_ATTRIBUTES, /* KVM's attributes, and tables in guest memory */
};

/*
 * It has the vCPUs in another order, its redistributors in other regions, and may have more vCPUs than the guest knows of.
 * @random chooses. One that has too little is shown the image first, and has to refuse it. What KVM's format does not hold
 * (a hidden ICC_BPR1, a level of an edge-triggered line in KVM's profile) is taken from the reference as well.
 */
void pair_move_on(struct pair *pair, enum pair_way way, uint64_t random);

/* Let the tables of the ITSes and the pending tables be written, as a move by attributes does. */
void pair_save_tables(const struct pair *pair);

/* Prints the last operations and this, and ends the program. */
void pair_differ(const struct pair *pair, const char *format, ...) __attribute__((format(printf, 2, 3), noreturn));
void pair_log_move(struct pair *pair, uint64_t size);

/* What the guest did wrong, acknowledges and deactivations, as both have counted them. */
void pair_compare_counters(struct pair *pair);
/*
 * After each operation: 1-of-N choices, lines of every vCPU and counters. Only at a point where libvgic's 1-of-N
 * interrupts are somewhere legal does the reference follow it.
 */
void pair_compare(struct pair *pair);
/* All registers of both, and pair_compare(). */
void pair_compare_all(struct pair *pair);
/* Those of the interrupts that there are: a hundredth of the work. */
void pair_compare_interrupts(struct pair *pair);

unsigned pair_lines(const struct pair *pair, uint32_t vcpu);

#endif /* TESTS_PAIR_H */
