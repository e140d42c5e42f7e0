/* SPDX-License-Identifier: MIT */
/*
 * state_world.h - small machines for the fuzz target of saved states: a controller of
 * two vCPUs with an ITS, its guest memory, and steps that a guest, a device or a VMM
 * makes with it. A step is read from the input once and may be made on two machines.
 *
 * A machine lives as long as the program; world_set() gives it a state of old.
 */
#ifndef TESTS_FUZZ_STATE_WORLD_H
#define TESTS_FUZZ_STATE_WORLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <vgic/state.h>

#include "fuzz.h"

#define WORLD_RAM_BASE 0x40000000ull
#define WORLD_RAM_SIZE 0x70000ull
#define WORLD_VCPUS    2u
#define WORLD_ID_BITS  14u
#define WORLD_MAX_SIZE 0x10000u /* of an image of such a machine */

/* Where a guest would have its tables. */
#define WORLD_PROPERTIES  (WORLD_RAM_BASE + 0x00000)
#define WORLD_PENDING(v)  (WORLD_RAM_BASE + 0x10000 * (1ull + (v)))
#define WORLD_QUEUE       (WORLD_RAM_BASE + 0x30000)
#define WORLD_DEVICES     (WORLD_RAM_BASE + 0x40000)
#define WORLD_COLLECTIONS (WORLD_RAM_BASE + 0x50000)
#define WORLD_ITT(n)      (WORLD_RAM_BASE + 0x60000 + 0x100ull * (n))

struct image {
	uint8_t bytes[WORLD_MAX_SIZE];
	size_t size;
};

struct world {
	struct vgic *vgic;
	struct vgic_its *its;
	struct vgic_vcpu *vcpus[WORLD_VCPUS]; /* in order of their ids */
	uint8_t *ram;
	uint8_t dirty[WORLD_RAM_SIZE / 4096];
	bool in_guest[WORLD_VCPUS];
	unsigned pauses;
	uint64_t queue_at;         /* where the next command goes */
	const struct image *is_at; /* it is known to be in this state still, with its memory all zeros; or NULL */
};

/* vCPUs are created in order of their ids, or in the other order. */
void world_create(struct world *w, enum vgic_profile profile, bool reversed);

/* The state of @image, with memory that is all zeros. Whoever changes it clears is_at. */
void world_set(struct world *w, const struct image *image);

/* Save; a vCPU that runs is stopped before. */
void world_save(struct world *w, struct image *image);
void world_stop_vcpus(struct world *w);
bool world_same(struct world *w, const struct image *image);

/* ---- Steps ---- */

enum step_kind {
	STEP_TAKE,  /* acknowledge and end all Group 1 interrupts */
	STEP_TAKE0, /* the same of Group 0 */
	STEP_MSI,   /* a device signals */
	STEP_LINE,  /* a source of an SPI or PPI */
	STEP_DIST,  /* the guest writes registers... */
	STEP_REDIST,
	STEP_ITS,
	STEP_ICC,
	STEP_COMMAND, /* ...and ITS commands */
	STEP_MEMORY,  /* ...and memory */
	STEP_RUN,     /* a vCPU enters or leaves the guest, or goes on- or offline */
	STEP_READ,    /* reads of all frames */
	STEP_PAUSE,
	STEP_ATTR,     /* the VMM sets an attribute... */
	STEP_ITS_ATTR, /* ...of an ITS */
	STEP_TABLES,   /* ...saves or restores tables */
	NUM_STEPS,
};

/* The first ones are for guests and devices only, and may be made on two machines at once. */
#define NUM_GUEST_STEPS STEP_PAUSE

struct step {
	enum step_kind kind;
	unsigned vcpu;
	uint32_t where;
	uint64_t attr;
	uint64_t value;
	uint8_t bytes[32];
	unsigned num_bytes;
};

void step_read(struct input *input, struct step *step, unsigned num_kinds);
/* What can be seen of it; STEP_ENDLESS: what comes next depends on the order in which interrupts were taken. */
#define STEP_ENDLESS UINT64_MAX
uint64_t step_make(struct world *w, const struct step *step);
/* The error of a step that the VMM makes. */
int step_set(struct world *w, const struct step *step);

/* Something of everything, made as a guest makes it. */
void world_fill(struct world *w);
void world_command(struct world *w, const uint64_t command[4]);

#endif /* TESTS_FUZZ_STATE_WORLD_H */
