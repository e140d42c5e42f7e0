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

static inline uint64_t level_bit(unsigned level)
{
	return UINT64_C(1) << level;
}

/* The best of a set of levels, which is not empty: the highest priority, Group 0 before Group 1. */
static inline unsigned best_level(uint64_t levels)
{
	const uint32_t group0 = (uint32_t)levels, group1 = (uint32_t)(levels >> NUM_PRIORITIES);
	const unsigned priority = (unsigned)__builtin_ctz(group0 | group1);

	return (group0 >> priority & 1) ? priority : priority + NUM_PRIORITIES;
}

/* ---- The slot: one hint outside the maps --------------------------------------- */

#define SLOT_FULL        (UINT64_C(1) << 63)
#define SLOT_LEVEL_SHIFT 32

static inline uint64_t slot_hint(uint32_t number, unsigned level)
{
	return SLOT_FULL | (uint64_t)level << SLOT_LEVEL_SHIFT | number;
}

static inline unsigned slot_level(uint64_t slot)
{
	return (unsigned)(slot >> SLOT_LEVEL_SHIFT) & (NUM_LEVELS - 1);
}

static inline uint32_t slot_number(uint64_t slot)
{
	return (uint32_t)slot;
}

/*
 * Is the hint in the slot to be looked at now? The maps have hints of the levels
 * @in_maps. At equal rank the slot goes first, and starves nobody: it was filled
 * before the maps had a hint of its level, and is not filled again while they have.
 */
static inline bool slot_is_next(uint64_t slot, uint64_t levels, uint64_t in_maps)
{
	if (!slot || !(levels >> slot_level(slot) & 1))
		return false;
	return !in_maps || best_level(in_maps | level_bit(slot_level(slot))) == slot_level(slot);
}

/* ---- Setting up, filing ---------------------------------------------------------- */

/* Bytes of the maps for interrupts numbered below @num_numbers. */
size_t pending_map_size(uint32_t num_numbers);

/* @memory is zeroed, of that size. */
void pending_init(struct pending *p, uint32_t index, uint32_t num_numbers, void *memory);

/*
 * File a hint for an interrupt whose word says that it is deliverable at @vcpu,
 * and return whether that is worth a kick now. Any thread.
 */
bool pending_file(struct vgic_vcpu *vcpu, uint32_t number, unsigned level);

/* A hint was cleared and the interrupt not taken. R4: file it again if it is still wanted here. Returns whether it was. */
bool pending_refile(struct vgic_vcpu *vcpu, uint32_t number);

/* ---- Find and claim ---------------------------------------------------------------- */

/*
 * Find the best candidate among @levels and verify it; stale hints that are met
 * are dropped. Owner only. On FIND_TIRED out->level is the level that was being
 * searched.
 */
enum find_result pending_find(struct vgic_vcpu *vcpu, uint64_t levels, struct candidate *out);

#define NO_NUMBER UINT32_MAX

/* The rest of pending_peek_at_maps(), when that word of the leaf has no more. */
uint32_t pending_peek_further(const struct pending *p, unsigned level);

/*
 * The next hint of a level in the maps, behind the interrupt last taken from them:
 * where a batch of interrupts goes on. It is not yet verified; NO_NUMBER if only a
 * search can tell.
 */
static inline uint32_t pending_peek_at_maps(const struct pending *p, unsigned level)
{
	const uint32_t last = p->last_taken;
	uint64_t bits;

	prefetch_for_write(&p->leaf[last / 64]);
	bits = load_seq_cst(&p->leaf[last / 64]) & ~UINT64_C(1) << last % 64;

	if (!bits)
		return pending_peek_further(p, level);
	return last - last % 64 + (uint32_t)__builtin_ctzll(bits);
}

/*
 * Find what pending_find() would, if the first hint leads to it. Clears nothing; if
 * it returns false nothing is said.
 */
static inline __attribute__((always_inline)) bool pending_find_at_once(struct vgic_vcpu *vcpu, uint64_t levels,
								       struct candidate *out)
{
	const struct pending *p = &vcpu->pending;
	const uint64_t in_maps = load_seq_cst(&p->summary) & levels;
	const uint64_t slot = load_seq_cst(&p->slot);
	uint32_t number;

	out->in_slot = slot_is_next(slot, levels, in_maps);
	if (out->in_slot) {
		out->level = slot_level(slot);
		number = slot_number(slot);
	} else if (in_maps) {
		out->level = best_level(in_maps);
		number = pending_peek_at_maps(p, out->level);
		if (number == NO_NUMBER)
			return false;
	} else {
		return false;
	}
	out->irq = irq_by_number(vcpu, number);
	out->word = load_acquire(&out->irq->word);
	return irq_is_candidate(out->word, irq_candidate(p->index, out->level));
}

/*
 * Acknowledge what was found. Owner only. Returns false if it is no longer
 * deliverable at that place: find again.
 */
static inline __attribute__((always_inline)) bool pending_claim(struct vgic_vcpu *vcpu, struct candidate *c)
{
	struct pending *p = &vcpu->pending;
	const uint32_t number = c->irq->number;
	irq_word w = c->word;

	/*
	 * R4: the hint goes first. Only the owner empties the slot, so that a plain store does. acq_rel: what is read of
	 * the state word afterwards is read after the bit was cleared.
	 */
	if (c->in_slot)
		store_release(&p->slot, 0);
	else
		atomic_fetch_and_explicit(&p->leaf[number / 64], ~(UINT64_C(1) << number % 64), memory_order_acq_rel);

	/*
	 * R3, R1: the CAS is the acknowledge. It acquires what the signaller wrote before its own. It is seq_cst for the
	 * re-check of the distributor's group enables that follows it (see cpuif.c).
	 */
	do {
		if (atomic_compare_exchange_weak_explicit(&c->irq->word, &w, irq_acknowledge(w), memory_order_seq_cst,
							  memory_order_acquire)) {
			c->word = w;
			/* Not from the slot: two interrupts that storm, one through it, would starve those behind the second. */
			if (!c->in_slot)
				p->last_taken = number;
			return true;
		}
	} while (irq_is_candidate(w, irq_candidate(p->index, c->level)));
	pending_refile(vcpu, number);
	return false;
}

/* Could a hint lead from @vcpu to this interrupt? For the check of the invariant. */
bool pending_is_hinted(const struct pending *p, uint32_t number, unsigned level);

#endif /* VGIC_PENDING_H */
