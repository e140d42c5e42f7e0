/* SPDX-License-Identifier: MIT */
/*
 * A naive reference GICv3, the judge of the conformance tests.
 *
 * Written from the architecture for being obviously right: plain arrays, and the
 * highest-priority pending interrupt is found by looking at all of them. It
 * shares no code with the library, is single-threaded and slow. Its calls mirror
 * the public API, with a vCPU named by its index, so that a test can drive both
 * side by side.
 *
 * Where the architecture leaves the implementation a choice that depends on its
 * inner workings, the test asks the library what it did and the reference only
 * judges whether that was legal:
 *   - among interrupts of equal priority and group, any may come first: see @hint
 *     of ref_icc_read();
 *   - a 1-of-N interrupt may go to any participating vCPU: ref_adopt_choice().
 */
#ifndef TESTS_REF_GIC_H
#define TESTS_REF_GIC_H

#include <stdbool.h>
#include <stdint.h>

#include <vgic/vgic.h>

struct ref_gic;
struct ref_lpis;

#define REF_NO_VCPU UINT32_MAX

/* The configuration must be one that vgic_create() accepts. Aborts without memory. */
struct ref_gic *ref_create(const struct vgic_config *config);
void ref_destroy(struct ref_gic *ref);
void ref_reset(struct ref_gic *ref);

void ref_vcpu_reset(struct ref_gic *ref, uint32_t vcpu);
void ref_set_online(struct ref_gic *ref, uint32_t vcpu, bool online);
unsigned ref_lines(const struct ref_gic *ref, uint32_t vcpu);

/* Does the highest-priority pending interrupt, unable to preempt, keep one of the other group from being signalled? */
bool ref_is_blocked(const struct ref_gic *ref, uint32_t vcpu);

int ref_mmio_read(struct ref_gic *ref, uint64_t address, unsigned width, uint64_t *value);
int ref_mmio_write(struct ref_gic *ref, uint64_t address, unsigned width, uint64_t value);
int ref_dist_read(struct ref_gic *ref, uint32_t offset, unsigned width, uint64_t *value);
int ref_dist_write(struct ref_gic *ref, uint32_t offset, unsigned width, uint64_t value);
int ref_redist_read(struct ref_gic *ref, uint32_t vcpu, uint32_t offset, unsigned width, uint64_t *value);
int ref_redist_write(struct ref_gic *ref, uint32_t vcpu, uint32_t offset, unsigned width, uint64_t value);

/*
 * @hint is an INTID: if it ties with the reference's own choice of the highest-priority pending interrupt, it is taken.
 * Any number may be given; an illegal one changes nothing.
 */
int ref_icc_read(struct ref_gic *ref, uint32_t vcpu, uint32_t reg, uint64_t hint, uint64_t *value);
int ref_icc_write(struct ref_gic *ref, uint32_t vcpu, uint32_t reg, uint64_t value);

int ref_set_spi(struct ref_gic *ref, uint32_t intid, unsigned source, bool level);
int ref_set_ppi(struct ref_gic *ref, uint32_t vcpu, uint32_t intid, unsigned source, bool level);
int ref_pulse_spi(struct ref_gic *ref, uint32_t intid);

/*
 * The guest goes on elsewhere, with its frames at other addresses: frame i, counted through all regions, is that of the
 * vCPU with index @order[i], or of one that this reference does not know (REF_NO_VCPU).
 */
void ref_move_frames(struct ref_gic *ref, const struct vgic_redist_region *regions, uint32_t num_regions,
		     const uint32_t *order, uint32_t num_frames);

/* The sources that drive a line high, a bit each, and whether the interrupt is edge-triggered. */
uint32_t ref_line_sources(const struct ref_gic *ref, uint32_t vcpu, uint32_t intid, bool *edge);
/* Let a level that GICD_SETSPI_NSR has set be forgotten. */
void ref_forget_message(struct ref_gic *ref, uint32_t intid);

/* LPIs and ITSes, see ref_its.h; NULL without LPIs. */
struct ref_lpis *ref_lpis(struct ref_gic *ref);

/* ---- 1-of-N ---- */

/* Is this SPI 1-of-N and deliverable, if only some vCPU participates? */
bool ref_is_one_of_n(const struct ref_gic *ref, uint32_t intid);
/* May this 1-of-N SPI be signalled to @vcpu? */
bool ref_participates(const struct ref_gic *ref, uint32_t vcpu, uint32_t intid);
/* Where the reference has it now: a vCPU index, or REF_NO_VCPU if nobody participates. */
uint32_t ref_choice(const struct ref_gic *ref, uint32_t intid);
/* Put it where the implementation has it. False, with nothing changed, if that is not legal. */
bool ref_adopt_choice(struct ref_gic *ref, uint32_t intid, uint32_t vcpu);
/* Does @intid come before or beside @other by priority and group, both as seen by @vcpu? */
bool ref_ranks_at_least(const struct ref_gic *ref, uint32_t vcpu, uint32_t intid, uint32_t other);

/* ---- What a test wants to know beside the registers ---- */

struct ref_stats {
	uint64_t guest_errors[VGIC_NUM_GUEST_ERRORS];
	uint64_t acknowledges;
	uint64_t spurious;
	uint64_t deactivations; /* of level-sensitive interrupts: calls of the deactivated() callback */
	uint64_t preemptions;   /* acknowledges while another priority was active */
	uint64_t cross_group;   /* IAR0 or IAR1 reads that found a signalled interrupt of the other group */
	uint64_t outranked; /* IAR reads that found an interrupt of that group without the priority to be signalled */
};

const struct ref_stats *ref_get_stats(const struct ref_gic *ref);

#endif /* TESTS_REF_GIC_H */
