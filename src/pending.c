/* SPDX-License-Identifier: MIT */
/*
 * pending.c - the candidate maps: file a hint, find the best one, claim it.
 *
 * A vCPU has
 *
 *   summary   64 bits, one for each level (group x priority)
 *   l1        for each level, one bit for each word of the leaf
 *   leaf      one bit for each interrupt, shared by all levels
 *   slot      one hint outside the maps: makes a lone interrupt cheap
 *
 * A hint is reachable if it is in the slot, or if its leaf bit, the l1 bit over
 * it at its level, and that level's summary bit are set. Nothing here allocates,
 * locks or calls back.
 *
 * The rules, numbered as in docs/architecture.md:
 *
 * R3 A claim succeeds only by a CAS from a word that is deliverable at this place.
 * R4 Only the owner clears hints. It clears the hint, *then* reads the word, and
 *    files it again if the word is still deliverable here and was not taken. An
 *    old hint is never cleared by whoever moves an interrupt: of two that move it
 *    at once, the slower would clear the hint of the faster.
 * R6 Filing climbs all levels, whatever it finds set: a level that is set already
 *    may have been set by someone who has not climbed yet. It may test before it
 *    sets. The owner clears an upper bit first and looks below it afterwards; if
 *    there is something, it sets the bit again. All these accesses are seq_cst:
 *    of "set below, test above" and "clear above, look below" one must see the
 *    other.
 */
#include "pending.h"

#include <string.h>

/*
 * State words and map words looked at in one search. Far more than a sane guest
 * has stale hints; it bounds the time of one register access whatever the guest
 * did. Each search that ends by it has dropped what it met, so that the next one
 * gets further.
 */
#define SEARCH_BUDGET 4096

/*
 * Leaf words without a candidate of the level that a search passes before it
 * starts to clear the l1 bits that led there. A few are cheaper passed than
 * cleared: the next interrupt often falls into the same word.
 */
#define EMPTY_WORDS_TOLERATED 6

static inline uint64_t bit_in_word(uint32_t number)
{
	return UINT64_C(1) << (number % 64);
}

static inline _Atomic uint64_t *l1_word(const struct pending *p, unsigned level, uint32_t leaf_word)
{
	return &p->l1[level * p->num_l1 + leaf_word / 64];
}

static uint32_t words_for(uint32_t bits)
{
	return (bits + 63) / 64;
}

size_t pending_map_size(uint32_t num_numbers)
{
	const uint32_t leaves = words_for(num_numbers);

	return (leaves + (size_t)NUM_LEVELS * words_for(leaves)) * sizeof(uint64_t);
}

void pending_init(struct pending *p, uint32_t index, uint32_t num_numbers, void *memory)
{
	p->index = index;
	p->num_leaves = words_for(num_numbers);
	p->num_l1 = words_for(p->num_leaves);
	p->leaf = memory;
	p->l1 = p->leaf + p->num_leaves;
}

/* Set a bit that is mostly set already. seq_cst even if only tested: R6. */
static inline void set_bit_tested(_Atomic uint64_t *word, uint64_t bit)
{
	if (!(load_seq_cst(word) & bit))
		atomic_fetch_or_explicit(word, bit, memory_order_seq_cst);
}

static inline void file_in_maps(struct pending *p, uint32_t number, unsigned level)
{
	const uint32_t word = number / 64;

	atomic_fetch_or_explicit(&p->leaf[word], bit_in_word(number), memory_order_seq_cst);
	set_bit_tested(l1_word(p, level, word), bit_in_word(word));
	set_bit_tested(&p->summary, level_bit(level));
}

bool pending_file(struct vgic_vcpu *vcpu, uint32_t number, unsigned level)
{
	struct pending *p = &vcpu->pending;
	uint64_t empty = 0;

	/*
	 * The slot is for interrupts that come one by one. While the maps have hints of this level, so that the vCPU has to
	 * search them anyway, signallers share nothing there that changes but the leaf.
	 *
	 * "The slot holds this very hint already" must not be taken for filed: the owner may have emptied it in its mind,
	 * between reading it and storing zero.
	 */
	if ((load_relaxed(&p->summary) >> level & 1) || load_relaxed(&p->slot) ||
	    !atomic_compare_exchange_strong_explicit(&p->slot, &empty, slot_hint(number, level), memory_order_seq_cst,
						     memory_order_relaxed))
		file_in_maps(p, number, level);

	/*
	 * R2: the hint first, then the rest. If the vCPU has been kicked already and not looked since, it will find the hint
	 * when it does, and what it masks then is its own affair: its masks, which it writes for every interrupt, need not
	 * be fetched. Two words of masks, because each has one writer: the vCPU, and the distributor.
	 */
	if (load_seq_cst(&p->kicked))
		return false;
	return (load_seq_cst(&p->mask) & load_seq_cst(&vcpu->vgic->group_mask)) >> level & 1;
}

bool pending_refile(struct vgic_vcpu *vcpu, uint32_t number)
{
	const irq_word w = load_acquire(&irq_by_number(vcpu, number)->word);

	store_relaxed(&vcpu->stale_hints, load_relaxed(&vcpu->stale_hints) + 1);
	if (!irq_is_deliverable_at(w, vcpu->index))
		return false;
	file_in_maps(&vcpu->pending, number, irq_level(w));
	return true;
}

static inline void clear_leaf_bit(struct pending *p, uint32_t number)
{
	/* acq_rel: what is read of the state word afterwards is read after the bit was cleared (R4). */
	atomic_fetch_and_explicit(&p->leaf[number / 64], ~bit_in_word(number), memory_order_acq_rel);
}

/* ---- Search of one level ---------------------------------------------------- */

struct search {
	struct vgic_vcpu *vcpu;
	unsigned level;
	int budget;
	int empty_words;
	bool refiled; /* something was filed again: the level must be searched anew */
	struct candidate *out;
};

/* The first leaf word at or after @word and below @end under which the level may have a hint; @end if none. */
static uint32_t next_leaf_word(struct search *s, uint32_t word, uint32_t end)
{
	const _Atomic uint64_t *l1 = l1_word(&s->vcpu->pending, s->level, 0);
	uint64_t above = ~UINT64_C(0) << word % 64;

	for (; word < end; word = (word | 63) + 1, above = ~UINT64_C(0)) {
		const uint64_t bits = load_seq_cst(&l1[word / 64]) & above;

		if (bits) {
			word = word - word % 64 + (uint32_t)__builtin_ctzll(bits);
			return word < end ? word : end;
		}
		s->budget--;
	}
	return end;
}

/* Is there a candidate of the level in this leaf word? Clears nothing. */
static bool leaf_word_has_candidate(struct search *s, uint32_t word)
{
	uint64_t bits = load_seq_cst(&s->vcpu->pending.leaf[word]);

	for (; bits; bits &= bits - 1) {
		const uint32_t number = word * 64 + (uint32_t)__builtin_ctzll(bits);
		const irq_word w = load_acquire(&irq_by_number(s->vcpu, number)->word);

		s->budget--;
		if (irq_is_deliverable_at(w, s->vcpu->index) && irq_level(w) == s->level)
			return true;
	}
	return false;
}

/* R6: clear the l1 bit over a leaf word that has nothing of this level, then look again. */
static void tidy_leaf_word(struct search *s, uint32_t word)
{
	_Atomic uint64_t *l1 = l1_word(&s->vcpu->pending, s->level, word);

	atomic_fetch_and_explicit(l1, ~bit_in_word(word), memory_order_seq_cst);
	if (leaf_word_has_candidate(s, word)) {
		atomic_fetch_or_explicit(l1, bit_in_word(word), memory_order_seq_cst);
		s->refiled = true;
	}
}

/* Search one leaf word, those of its bits that are in @wanted. Returns true if a candidate was found. */
static bool search_leaf_word(struct search *s, uint32_t word, uint64_t wanted)
{
	struct pending *p = &s->vcpu->pending;
	bool refiled = false;

	for (uint64_t bits = load_seq_cst(&p->leaf[word]) & wanted; bits; bits &= bits - 1) {
		const uint32_t number = word * 64 + (uint32_t)__builtin_ctzll(bits);
		struct irq *irq = irq_by_number(s->vcpu, number);
		const irq_word w = load_acquire(&irq->word);

		s->budget--;
		if (irq_is_deliverable_at(w, p->index)) {
			if (irq_level(w) != s->level)
				continue; /* the leaf is shared: another level leads here too */
			*s->out = (struct candidate){ .irq = irq, .word = w, .level = s->level, .in_slot = false };
			return true;
		}
		clear_leaf_bit(p, number);
		refiled |= pending_refile(s->vcpu, number);
	}
	s->refiled |= refiled;
	if (!refiled && wanted == ~UINT64_C(0) && ++s->empty_words > EMPTY_WORDS_TOLERATED)
		tidy_leaf_word(s, word);
	return false;
}

/* Search leaf words @from to @end-1. */
static enum find_result search_range(struct search *s, uint32_t from, uint32_t end, uint64_t wanted_of_first)
{
	uint64_t wanted = wanted_of_first;

	for (uint32_t word = from; (word = next_leaf_word(s, word, end)) < end; word++) {
		if (word != from)
			wanted = ~UINT64_C(0);
		if (search_leaf_word(s, word, wanted))
			return FIND_FOUND;
		if (--s->budget < 0)
			return FIND_TIRED;
	}
	return FIND_NONE;
}

/* All of the level once around, from behind the interrupt last taken from the maps: a storm of low INTIDs starves none. */
static enum find_result search_around(struct search *s)
{
	const struct pending *p = &s->vcpu->pending;
	const uint32_t first = p->last_taken / 64;
	enum find_result r = search_range(s, first, p->num_leaves, ~UINT64_C(1) << (p->last_taken % 64));

	if (r == FIND_NONE)
		r = search_range(s, 0, first + 1, ~UINT64_C(0));
	return r;
}

/*
 * Search one level. That it is empty is believed only of a search that began after
 * its summary bit had been cleared (R6); in every other case the bit stays, or is
 * set again.
 */
static enum find_result search_level(struct vgic_vcpu *vcpu, unsigned level, int *budget, struct candidate *out)
{
	struct search s = { .vcpu = vcpu, .level = level, .budget = *budget, .out = out };
	struct pending *p = &vcpu->pending;
	bool cleared = false;
	enum find_result r;

	for (;;) {
		s.refiled = false;
		r = search_around(&s);
		if (r == FIND_NONE && !s.refiled && cleared)
			break;
		if (cleared)
			atomic_fetch_or_explicit(&p->summary, level_bit(level), memory_order_seq_cst);
		cleared = false;
		if (r != FIND_NONE)
			break;
		if (s.budget < 0) {
			r = FIND_TIRED;
			break;
		}
		if (!s.refiled) {
			atomic_fetch_and_explicit(&p->summary, ~level_bit(level), memory_order_seq_cst);
			cleared = true;
		}
	}
	*budget = s.budget;
	return r;
}

/* ---- Find ---------------------------------------------------------------------- */

/* The first hint of the next leaf word, around. As long as there is one within a few words, nobody has to search. */
uint32_t pending_peek_further(const struct pending *p, unsigned level)
{
	const _Atomic uint64_t *l1 = l1_word(p, level, 0);
	const uint32_t last_word = p->last_taken / 64;
	uint32_t i = last_word / 64, unseen = p->num_l1;
	uint64_t words = load_seq_cst(&l1[i]) & ~UINT64_C(1) << last_word % 64;

	for (int empty_words = 0; empty_words <= EMPTY_WORDS_TOLERATED; empty_words++, words &= words - 1) {
		uint32_t word;
		uint64_t bits;

		for (; !words; words = load_seq_cst(&l1[i])) {
			if (unseen-- == 0)
				return NO_NUMBER;
			i = i + 1 < p->num_l1 ? i + 1 : 0;
		}
		word = i * 64 + (uint32_t)__builtin_ctzll(words);
		bits = load_seq_cst(&p->leaf[word]);
		if (bits)
			return word * 64 + (uint32_t)__builtin_ctzll(bits);
	}
	return NO_NUMBER;
}

/* The hint in the slot. Returns false if it was stale, and has been dropped. */
static bool look_at_slot(struct vgic_vcpu *vcpu, uint64_t slot, struct candidate *out)
{
	struct pending *p = &vcpu->pending;
	struct irq *irq = irq_by_number(vcpu, slot_number(slot));

	*out = (struct candidate){
		.irq = irq, .word = load_acquire(&irq->word), .level = slot_level(slot), .in_slot = true
	};
	if (irq_is_candidate(out->word, irq_candidate(p->index, out->level)))
		return true;
	store_release(&p->slot, 0);
	pending_refile(vcpu, slot_number(slot));
	return false;
}

enum find_result pending_find(struct vgic_vcpu *vcpu, uint64_t levels, struct candidate *out)
{
	struct pending *p = &vcpu->pending;
	int budget = SEARCH_BUDGET;

	for (;;) {
		uint64_t in_maps, slot;
		enum find_result r;

		if (pending_find_at_once(vcpu, levels, out))
			return FIND_FOUND;
		in_maps = load_seq_cst(&p->summary) & levels;
		slot = load_seq_cst(&p->slot);
		if (slot_is_next(slot, levels, in_maps)) {
			if (look_at_slot(vcpu, slot, out))
				return FIND_FOUND;
			if (--budget < 0)
				return FIND_TIRED;
			continue;
		}
		if (!in_maps)
			return FIND_NONE;
		out->level = best_level(in_maps);
		r = search_level(vcpu, out->level, &budget, out);
		if (r != FIND_NONE)
			return r;
	}
}

bool pending_is_hinted(const struct pending *p, uint32_t number, unsigned level)
{
	const uint64_t slot = load_seq_cst(&p->slot);
	const uint32_t word = number / 64;

	if (slot && slot_number(slot) == number && slot_level(slot) == level)
		return true;
	return (load_seq_cst(&p->leaf[word]) & bit_in_word(number)) &&
	       (load_seq_cst(l1_word(p, level, word)) & bit_in_word(word)) &&
	       (load_seq_cst(&p->summary) & level_bit(level));
}
