/* SPDX-License-Identifier: MIT */
/*
 * pending.h - the candidate maps of a vCPU: where an acknowledge looks.
 *
 * A *hint* says that an interrupt may be deliverable at a vCPU at a level. Hints
 * may be stale; a missing one would be a lost interrupt. Any thread files hints,
 * only the owning vCPU clears them. pending.c has the rules.
 */
#ifndef VGIC_PENDING_H
#define VGIC_PENDING_H

#include "vgic_internal.h"

enum find_result {
	FIND_NONE,  /* no deliverable interrupt in these levels */
	FIND_FOUND, /* this one was deliverable a moment ago */
	FIND_TIRED, /* the budget is spent on stale hints: ask again, there may be more */
};

struct candidate {
	struct irq *irq;
	irq_word word; /* as it was when it was found */
	unsigned level;
	bool in_slot;
};

/* Which of two levels is better: the smaller rank. Group 0 before Group 1 at equal priority. */
static inline unsigned level_rank(unsigned level)
{
	return (level % NUM_PRIORITIES) << 1 | level / NUM_PRIORITIES;
}

/* The best of a set of levels, which is not empty. */
static inline unsigned best_level(uint64_t levels)
{
	const uint32_t group0 = (uint32_t)levels, group1 = (uint32_t)(levels >> NUM_PRIORITIES);
	const unsigned priority = (unsigned)__builtin_ctz(group0 | group1);

	return (group0 >> priority & 1) ? priority : priority + NUM_PRIORITIES;
}

/* Bytes that the maps of one vCPU need behind struct pending, for @num_numbers interrupts. */
size_t pending_map_size(uint32_t num_numbers);

/* Set the maps up in @memory, zeroed, of that size. */
void pending_init(struct pending *p, uint32_t index, uint32_t num_numbers, void *memory);

/*
 * File a hint for an interrupt whose word says that it is deliverable at @vcpu,
 * and return whether its level is worth a kick there now. Any thread.
 */
bool pending_file(struct vgic_vcpu *vcpu, uint32_t number, unsigned level);

/*
 * Find the best candidate among @levels and verify it; stale hints that are met
 * are dropped. Owner only. On FIND_TIRED out->level is the level that was being
 * searched.
 */
enum find_result pending_find(struct vgic_vcpu *vcpu, uint64_t levels, struct candidate *out);

/*
 * Acknowledge what pending_find() found. Owner only. Returns false if it is no
 * longer deliverable at that place: find again.
 */
bool pending_claim(struct vgic_vcpu *vcpu, struct candidate *c);

/* Could a hint lead from @vcpu to this interrupt? For the check of the invariant. */
bool pending_is_hinted(const struct pending *p, uint32_t number, unsigned level);

#endif /* VGIC_PENDING_H */
