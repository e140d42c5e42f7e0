/* SPDX-License-Identifier: MIT */
/*
 * The candidate maps of a vCPU: what pending_find() finds and pending_claim()
 * takes, against a model that knows no maps, only which interrupts are deliverable.
 *
 * There is no ITS in these tests: LPIs get their words by irq_change() like any
 * other interrupt.
 */
#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include "irq_change.h"
#include "pending.h"

/* As in pending.c: a search looks at this many words, and finishes the leaf word that it is in. */
#define SEARCH_BUDGET  4096u
#define BITS_PER_WORD  64u
#define BUDGET_OVERRUN (4 * BITS_PER_WORD)

static struct irq *lpi(const struct unit *u, uint32_t intid)
{
	return &u->vgic->lpis[intid - FIRST_LPI];
}

/* Change one field of a word as a register write does. */
#define CHANGE(u, irq, transition, arg) ((void)irq_change((u)->vgic, (irq), (transition), (arg)))

/* Enabled, at a priority (0-31) of a group, at a vCPU; not pending. */
static void prepare(struct unit *u, struct irq *irq, uint32_t vcpu, unsigned level)
{
	CHANGE(u, irq, irq_set_bits, IRQ_ENABLED | IRQ_EDGE);
	CHANGE(u, irq, level / 32 ? irq_set_bits : irq_clear_bits, IRQ_GROUP1);
	CHANGE(u, irq, irq_set_priority, level % 32 << 3);
	CHANGE(u, irq, irq_route_to, vcpu);
}

static void signal_irq(struct unit *u, struct irq *irq)
{
	CHANGE(u, irq, irq_latch, 0);
}

static void end_irq(struct unit *u, struct irq *irq)
{
	CHANGE(u, irq, irq_clear_bits, IRQ_ACTIVE);
}

/*
 * Occupy the slot with an interrupt that no search of these tests looks at, so
 * that every hint that follows is filed in the maps.
 */
#define PLUG_LEVEL 63u

static void plug_slot(struct unit *u, uint32_t vcpu)
{
	struct irq *irq = &unit_vcpu(u, vcpu)->private_irqs[31];

	assert_int_equal(load_relaxed(&unit_vcpu(u, vcpu)->pending.slot), 0);
	prepare(u, irq, vcpu, PLUG_LEVEL);
	signal_irq(u, irq);
	assert_int_not_equal(load_relaxed(&unit_vcpu(u, vcpu)->pending.slot), 0);
}

static const uint64_t searched = ALL_LEVELS & ~(UINT64_C(1) << PLUG_LEVEL);

static unsigned count_leaf_bits(const struct pending *p)
{
	unsigned n = 0;

	for (uint32_t i = 0; i < p->num_leaves; i++)
		n += (unsigned)__builtin_popcountll(load_relaxed(&p->leaf[i]));
	return n;
}

static unsigned count_l1_bits(const struct pending *p, unsigned level)
{
	unsigned n = 0;

	for (uint32_t i = 0; i < p->num_l1; i++)
		n += (unsigned)__builtin_popcountll(load_relaxed(&p->l1[level * p->num_l1 + i]));
	return n;
}

static uint64_t stale_hints(struct unit *u, uint32_t vcpu)
{
	return load_relaxed(&unit_vcpu(u, vcpu)->stale_hints);
}

/* Find and claim; @intid is what must come. */
static void expect_taken(struct unit *u, uint32_t vcpu, uint64_t levels, uint32_t intid)
{
	struct candidate c;

	assert_int_equal(pending_find(unit_vcpu(u, vcpu), levels, &c), FIND_FOUND);
	assert_int_equal(c.irq->intid, intid);
	assert_int_equal(c.level, irq_level(c.word));
	assert_true(pending_claim(unit_vcpu(u, vcpu), &c));
}

static void expect_none(struct unit *u, uint32_t vcpu, uint64_t levels)
{
	struct candidate c;

	assert_int_equal(pending_find(unit_vcpu(u, vcpu), levels, &c), FIND_NONE);
}

static void expect_at_rest(struct unit *u)
{
	uint32_t intid = 0;

	if (vgic_check_at_rest(u->vgic, &intid) != 0)
		fail_msg("interrupt %u cannot be found", intid);
}

/* ---- Size of the maps ---- */

static void map_sizes_are_exact(void **state)
{
	/* One bit for each interrupt, and for each of 64 levels one bit for each word of these. */
	static const struct {
		uint32_t numbers;
		size_t words;
	} sizes[] = {
		{ 1, 1 + 64 },
		{ 64, 1 + 64 },
		{ 65, 2 + 64 },
		{ 1020, 16 + 64 },
		{ 4096, 64 + 64 },
		{ 4097, 65 + 2 * 64 },
		{ 1024 + 8192, 144 + 3 * 64 },
		{ 1024 + 57344, 912 + 15 * 64 },
		{ 1024 + 1040384, 16272 + 255 * 64 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct pending p = { .num_leaves = 0 };
		uint64_t memory[2];

		assert_int_equal(pending_map_size(sizes[i].numbers), sizes[i].words * 8);
		pending_init(&p, 7, sizes[i].numbers, memory);
		assert_int_equal(p.index, 7);
		assert_int_equal(p.num_leaves + 64 * p.num_l1, sizes[i].words);
		assert_ptr_equal(p.leaf, memory);
		assert_ptr_equal(p.l1, p.leaf + p.num_leaves);
	}
}

/* ---- Each interrupt, each level ---- */

/* Every interrupt that there is, alone: by the slot, and by the maps. */
static void check_each_interrupt(uint32_t features, uint32_t lpi_id_bits, uint32_t stride)
{
	struct unit *u = unit_start(2, features, lpi_id_bits);
	struct vgic_vcpu *vcpu = unit_vcpu(u, 1);
	const uint32_t end = features ? FIRST_LPI_NUMBER + u->vgic->num_lpis : FIRST_SPI + u->vgic->num_spis;

	for (int plugged = 0; plugged < 2; plugged++) {
		if (plugged)
			plug_slot(u, 1);
		for (uint32_t number = 0; number < end;
		     number += number + stride < end || number == end - 1 ? stride : 1) {
			const unsigned level = number * 7 % 63;
			struct irq *irq;

			if (number == 31 || (number >= FIRST_SPI + u->vgic->num_spis && number < FIRST_LPI_NUMBER))
				continue;
			irq = irq_by_number(vcpu, number);
			assert_int_equal(irq->number, number);
			prepare(u, irq, 1, level);
			signal_irq(u, irq);
			assert_true(pending_is_hinted(&vcpu->pending, number, level));
			expect_none(u, 1, searched & ~only_level(level));
			expect_none(u, 0, ALL_LEVELS);
			expect_taken(u, 1, only_level(level), irq->intid);
			end_irq(u, irq);
			expect_none(u, 1, searched);
		}
		expect_at_rest(u);
	}
	unit_stop(u);
}

static void each_interrupt_is_found(void **state)
{
	(void)state;
	check_each_interrupt(0, 16, 1);
	check_each_interrupt(VGIC_FEATURE_LPIS, 14, 1);
	check_each_interrupt(VGIC_FEATURE_LPIS, 16, 61);
	check_each_interrupt(VGIC_FEATURE_LPIS, 20, 4093);
}

static void levels_are_taken_in_order_of_rank(void **state)
{
	struct unit *u = unit_start(1, 0, 16);

	(void)state;
	/* Two interrupts for each level; the worst are signalled first. */
	for (unsigned i = 0; i < 128; i++) {
		struct irq *irq = &u->vgic->spis[i];

		prepare(u, irq, 0, 63 - i % 64);
		signal_irq(u, irq);
	}
	for (unsigned i = 0; i < 128; i++) {
		const unsigned rank = i / 2, level = rank / 2 + rank % 2 * 32;
		struct candidate c;

		assert_int_equal(pending_find(unit_vcpu(u, 0), ALL_LEVELS, &c), FIND_FOUND);
		assert_int_equal(c.level, level);
		assert_int_equal((c.irq->intid - 32) % 64, 63 - level);
		assert_true(pending_claim(unit_vcpu(u, 0), &c));
		assert_int_equal(load_relaxed(&c.irq->word), (c.word & ~IRQ_PENDING) | IRQ_ACTIVE);
	}
	expect_none(u, 0, ALL_LEVELS);
	unit_stop(u);
}

static void only_the_asked_levels_are_searched(void **state)
{
	struct unit *u = unit_start(1, 0, 16);
	struct rng rng = { 20 };
	struct candidate c;

	(void)state;
	for (unsigned level = 0; level < 64; level++) {
		prepare(u, &u->vgic->spis[level], 0, level);
		signal_irq(u, &u->vgic->spis[level]);
	}
	for (int n = 0; n < 5000; n++) {
		const uint64_t levels = rng_next(&rng) & rng_next(&rng) & rng_next(&rng) & rng_next(&rng);
		const enum find_result r = pending_find(unit_vcpu(u, 0), levels, &c);

		assert_int_equal(r, levels ? FIND_FOUND : FIND_NONE);
		if (levels)
			assert_int_equal(c.irq->intid - 32, best_level(levels));
	}
	assert_int_equal(stale_hints(u, 0), 0);
	unit_stop(u);
}

/* ---- Against the model ---- */

/* One interrupt of the model: plain fields, by the words of the architecture. */
struct model_irq {
	struct irq *irq;
	bool latch, line, active, enabled, group1, edge, is_lpi;
	unsigned priority; /* 0-31 */
	uint32_t target;   /* vCPU, or IRQ_NO_TARGET */
};

struct model {
	struct unit *u;
	struct rng rng;
	struct model_irq *irqs;
	uint32_t num_irqs;
	bool may_tire; /* so many hints that a search may run out of budget */
	unsigned found, claimed, lost;
};

static bool model_is_deliverable(const struct model_irq *m)
{
	return m->enabled && !m->active && (m->latch || (m->line && !m->edge));
}

static unsigned model_level(const struct model_irq *m)
{
	return m->priority + (m->group1 ? 32 : 0);
}

static void model_add(struct model *m, struct irq *irq)
{
	const irq_word w = load_relaxed(&irq->word);

	m->irqs[m->num_irqs++] = (struct model_irq){
		.irq = irq,
		.edge = w & IRQ_EDGE,
		.group1 = w & IRQ_GROUP1,
		.is_lpi = w & IRQ_LPI,
		.target = irq_target(w),
	};
}

static void check_word(const struct model_irq *m)
{
	const irq_word w = load_relaxed(&m->irq->word);

	assert_int_equal((w & IRQ_PENDING) != 0, m->latch);
	assert_int_equal((w & IRQ_LINE) != 0, m->line);
	assert_int_equal((w & IRQ_ACTIVE) != 0, m->active);
	assert_int_equal((w & IRQ_ENABLED) != 0, m->enabled);
	assert_int_equal((w & IRQ_GROUP1) != 0, m->group1);
	assert_int_equal((w & IRQ_EDGE) != 0, m->edge);
	assert_int_equal(irq_priority(w), m->priority << 3);
	assert_int_equal(irq_target(w), m->target);
}

static void change_line(struct model *m, struct model_irq *i, bool high)
{
	if (i->is_lpi)
		return;
	i->latch |= high && !i->line && i->edge;
	i->line = high;
	CHANGE(m->u, i->irq, high ? irq_raise : irq_lower, 3);
}

static void change_target(struct model *m, struct model_irq *i)
{
	const uint32_t n = m->u->vgic->num_vcpus;
	const uint32_t target = rng_below(&m->rng, n + 1);

	if (i->irq->intid < NUM_PRIVATE)
		return;
	i->target = target < n ? target : IRQ_NO_TARGET;
	CHANGE(m->u, i->irq, irq_route_to, i->target);
}

static void change_bit(struct model *m, struct model_irq *i, bool *field, bool value, irq_word bit)
{
	*field = value;
	CHANGE(m->u, i->irq, value ? irq_set_bits : irq_clear_bits, bit);
}

/* One random change of one random interrupt. */
static void change_something(struct model *m)
{
	struct model_irq *i = &m->irqs[rng_below(&m->rng, m->num_irqs)];

	switch (rng_below(&m->rng, 14)) {
	case 0:
		change_line(m, i, true);
		break;
	case 1:
		change_line(m, i, false);
		break;
	case 2:
		change_target(m, i);
		break;
	case 3:
		i->priority = rng_below(&m->rng, 4) * 5;
		CHANGE(m->u, i->irq, irq_set_priority, i->priority << 3);
		break;
	case 4:
		change_bit(m, i, &i->group1, rng_below(&m->rng, 2), IRQ_GROUP1);
		break;
	case 5:
	case 6:
		change_bit(m, i, &i->enabled, rng_below(&m->rng, 4) != 0, IRQ_ENABLED);
		break;
	case 7:
	case 8:
		change_bit(m, i, &i->active, false, IRQ_ACTIVE);
		break;
	case 9:
		i->latch = false;
		CHANGE(m->u, i->irq, irq_unlatch, 0);
		break;
	case 10:
		if (!i->is_lpi)
			change_bit(m, i, &i->edge, rng_below(&m->rng, 2), IRQ_EDGE);
		break;
	default:
		i->latch = true;
		CHANGE(m->u, i->irq, irq_latch, 0);
		break;
	}
	check_word(i);
}

/* Which of two levels is better: the smaller rank. Group 0 before Group 1 at equal priority. */
static unsigned level_rank(unsigned level)
{
	return level % 32 * 2 + level / 32;
}

/* The best rank among the deliverable interrupts of a vCPU in @levels, or 64. */
static unsigned model_best_rank(const struct model *m, uint32_t vcpu, uint64_t levels)
{
	unsigned best = 64;

	for (uint32_t n = 0; n < m->num_irqs; n++) {
		const struct model_irq *i = &m->irqs[n];
		const unsigned level = model_level(i);

		if (model_is_deliverable(i) && i->target == vcpu && (levels >> level & 1) && level_rank(level) < best)
			best = level_rank(level);
	}
	return best;
}

static struct model_irq *model_find(const struct model *m, const struct irq *irq)
{
	for (uint32_t n = 0; n < m->num_irqs; n++) {
		if (m->irqs[n].irq == irq)
			return &m->irqs[n];
	}
	fail_msg("found an interrupt that is not in the model");
	return NULL;
}

/* The search, asked again while it is tired; the model says how it must end. */
static bool find_as_the_model(struct model *m, uint32_t vcpu, uint64_t levels, struct candidate *c)
{
	const unsigned best = model_best_rank(m, vcpu, levels);
	enum find_result r;
	unsigned calls = 0;

	do {
		r = pending_find(unit_vcpu(m->u, vcpu), levels, c);
		if (r == FIND_TIRED) {
			assert_true(m->may_tire);
			assert_true(levels >> c->level & 1);
			assert_true(++calls < 1000);
		}
	} while (r == FIND_TIRED);
	assert_int_equal(r, best == 64 ? FIND_NONE : FIND_FOUND);
	if (r == FIND_NONE)
		return false;
	assert_int_equal(level_rank(c->level), best);
	assert_true(model_is_deliverable(model_find(m, c->irq)));
	assert_int_equal(model_find(m, c->irq)->target, vcpu);
	assert_int_equal(c->word, load_relaxed(&c->irq->word));
	return true;
}

/* Claim it; sometimes the interrupt changes between the two: then the claim must fail if it is another place. */
static void claim_as_the_model(struct model *m, uint32_t vcpu, struct candidate *c)
{
	struct model_irq *i = model_find(m, c->irq);
	bool expected;

	if (rng_below(&m->rng, 3) == 0) {
		const struct model all = *m;

		m->irqs = i;
		m->num_irqs = 1;
		change_something(m);
		m->irqs = all.irqs;
		m->num_irqs = all.num_irqs;
	}
	expected = model_is_deliverable(i) && i->target == vcpu && model_level(i) == c->level;
	assert_int_equal(pending_claim(unit_vcpu(m->u, vcpu), c), expected);
	m->claimed += expected;
	m->lost += !expected;
	if (expected) {
		i->latch = false;
		i->active = !i->is_lpi;
	}
	check_word(i);
}

static void run_model(struct model *m, unsigned steps, unsigned changes_per_step)
{
	for (unsigned n = 0; n < steps; n++) {
		const uint32_t vcpu = rng_below(&m->rng, m->u->vgic->num_vcpus);
		const uint64_t levels = rng_below(&m->rng, 2) ? ALL_LEVELS : rng_next(&m->rng);
		struct candidate c;

		for (unsigned k = 0; k < changes_per_step; k++)
			change_something(m);
		if (find_as_the_model(m, vcpu, levels, &c)) {
			m->found++;
			if (rng_below(&m->rng, 4))
				claim_as_the_model(m, vcpu, &c);
		}
		if (n % 64 == 0)
			expect_at_rest(m->u);
	}
	expect_at_rest(m->u);
	/* It has really done something of each. */
	assert_true(m->found > steps / 16);
	assert_true(m->claimed > m->found / 3);
	assert_true(m->lost > m->found / 50);
}

static void model_free(struct model *m)
{
	unit_stop(m->u);
	free(m->irqs);
}

static void random_changes_of_private_interrupts_and_spis(void **state)
{
	struct model m = { .u = unit_start(3, 0, 16), .rng = { 21 }, .irqs = calloc(400, sizeof(*m.irqs)) };

	(void)state;
	for (uint32_t v = 0; v < 3; v++) {
		for (uint32_t i = 0; i < 32; i++)
			model_add(&m, &unit_vcpu(m.u, v)->private_irqs[i]);
	}
	for (uint32_t i = 0; i < m.u->vgic->num_spis; i++)
		model_add(&m, &m.u->vgic->spis[i]);
	run_model(&m, 40000, 4);
	model_free(&m);
}

/* Few interrupts, so that each goes through many states, in two words. */
static void random_changes_of_four_interrupts(void **state)
{
	struct model m = { .u = unit_start(2, VGIC_FEATURE_LPIS, 14),
			   .rng = { 22 },
			   .irqs = calloc(8, sizeof(*m.irqs)) };

	(void)state;
	model_add(&m, &m.u->vgic->spis[0]);
	model_add(&m, &m.u->vgic->spis[1]);
	model_add(&m, lpi(m.u, 8192));
	model_add(&m, lpi(m.u, 16383));
	run_model(&m, 150000, 2);
	model_free(&m);
}

static void random_changes_of_lpis(uint32_t id_bits, uint32_t num, unsigned steps)
{
	struct model m = { .u = unit_start(2, VGIC_FEATURE_LPIS, id_bits), .rng = { id_bits } };
	const uint32_t total = m.u->vgic->num_lpis;

	m.may_tire = true;
	m.irqs = calloc(num + 64, sizeof(*m.irqs));
	/* Half of them side by side, half of them spread over the whole space, the last one among them. */
	for (uint32_t i = 0; i < num / 2; i++)
		model_add(&m, &m.u->vgic->lpis[i]);
	for (uint32_t i = 0; i < num / 2; i++)
		model_add(&m, &m.u->vgic->lpis[total - 1 - i * ((total - num / 2) / (num / 2))]);
	for (uint32_t i = 0; i < 64; i++)
		model_add(&m, &m.u->vgic->spis[i]);
	run_model(&m, steps, 100);
	model_free(&m);
}

static void random_changes_of_lpis_14_bits(void **state)
{
	(void)state;
	random_changes_of_lpis(14, 4000, 2000);
}

static void random_changes_of_lpis_16_bits(void **state)
{
	(void)state;
	random_changes_of_lpis(16, 6000, 1500);
}

static void random_changes_of_lpis_20_bits(void **state)
{
	(void)state;
	random_changes_of_lpis(20, 6000, 300);
}

/* ---- Order within a level, and fairness ---- */

/* Within a level the maps are walked round, from behind the one taken last. The model: the next number, cyclic. */
static void equals_are_taken_round_robin(void **state)
{
	struct unit *u = unit_start(1, VGIC_FEATURE_LPIS, 14);
	const uint32_t total = u->vgic->num_lpis;
	bool *waiting = calloc(total, sizeof(*waiting));
	struct rng rng = { 24 };
	uint32_t next = 0, num_waiting = 0;

	(void)state;
	plug_slot(u, 0);
	for (uint32_t i = 0; i < total; i++)
		prepare(u, &u->vgic->lpis[i], 0, 10);
	for (int n = 0; n < 6000; n++) {
		/* Bursts, at times around where the search stands. */
		for (uint32_t k = rng_below(&rng, 4); k-- > 0;) {
			const uint32_t i = rng_below(&rng, 2) ? rng_below(&rng, total) :
								(next + rng_below(&rng, 130)) % total;

			num_waiting += !waiting[i];
			waiting[i] = true;
			signal_irq(u, &u->vgic->lpis[i]);
		}
		if (num_waiting == 0) {
			expect_none(u, 0, searched);
			continue;
		}
		while (!waiting[next])
			next = (next + 1) % total;
		expect_taken(u, 0, searched, FIRST_LPI + next);
		waiting[next] = false;
		num_waiting--;
		next = (next + 1) % total;
	}
	free(waiting);
	unit_stop(u);
}

/* The numbers wrap at the end of the maps, not before and not behind it. */
static void search_goes_on_at_zero_after_the_last_number(void **state)
{
	struct unit *u = unit_start(1, VGIC_FEATURE_LPIS, 14);
	struct irq *first = &unit_vcpu(u, 0)->private_irqs[0], *last = lpi(u, 16383);

	(void)state;
	plug_slot(u, 0);
	prepare(u, first, 0, 40);
	prepare(u, last, 0, 40);
	for (int n = 0; n < 3; n++) {
		signal_irq(u, last);
		expect_taken(u, 0, searched, 16383);
		assert_int_equal(unit_vcpu(u, 0)->pending.last_taken, last->number);
		signal_irq(u, first);
		signal_irq(u, last);
		expect_taken(u, 0, searched, 0);
		end_irq(u, first);
		assert_int_equal(unit_vcpu(u, 0)->pending.last_taken, 0);
		expect_taken(u, 0, searched, 16383);
		expect_none(u, 0, searched);
	}
	unit_stop(u);
}

/* Interrupts below the one taken last, in its own leaf word, are found too, after all the others. */
static void whole_first_word_is_searched_in_the_end(void **state)
{
	struct unit *u = unit_start(1, 0, 16);

	(void)state;
	plug_slot(u, 0);
	for (uint32_t i = 0; i < 256; i++)
		prepare(u, &u->vgic->spis[i], 0, 20);
	signal_irq(u, &u->vgic->spis[100]);
	expect_taken(u, 0, searched, 132);
	assert_int_equal(unit_vcpu(u, 0)->pending.last_taken, 132);
	signal_irq(u, &u->vgic->spis[99]);
	signal_irq(u, &u->vgic->spis[97]);
	signal_irq(u, &u->vgic->spis[101]);
	signal_irq(u, &u->vgic->spis[200]);
	expect_taken(u, 0, searched, 133);
	expect_taken(u, 0, searched, 232);
	expect_taken(u, 0, searched, 129);
	expect_taken(u, 0, searched, 131);
	expect_none(u, 0, searched);
	unit_stop(u);
}

/* Low INTIDs that are signalled again as soon as they are taken: each round everyone gets a turn. */
static void storm_of_low_intids_starves_nobody(void **state)
{
	struct unit *u = unit_start(1, VGIC_FEATURE_LPIS, 16);
	unsigned rounds = 0;

	(void)state;
	plug_slot(u, 0);
	for (uint32_t i = 0; i < 10; i++) {
		prepare(u, lpi(u, 8192 + i), 0, 33);
		signal_irq(u, lpi(u, 8192 + i));
	}
	prepare(u, lpi(u, 65535), 0, 33);
	for (rounds = 0; rounds < 50; rounds++) {
		signal_irq(u, lpi(u, 65535));
		for (uint32_t i = 0; i < 10; i++) {
			expect_taken(u, 0, searched, 8192 + i);
			signal_irq(u, lpi(u, 8192 + i));
		}
		expect_taken(u, 0, searched, 65535);
	}
	unit_stop(u);
}

/*
 * The slot is for interrupts that come one by one. While the maps have hints of its
 * level it is not filled again: otherwise one that storms through the slot, which goes
 * first at equal rank, would starve those in the maps.
 */
static void slot_is_not_refilled_while_its_level_is_in_the_maps(void **state)
{
	struct unit *u = unit_start(1, VGIC_FEATURE_LPIS, 14);
	struct pending *p = &unit_vcpu(u, 0)->pending;

	(void)state;
	for (uint32_t i = 0; i < 4; i++)
		prepare(u, lpi(u, 9000 + i), 0, 50);
	signal_irq(u, lpi(u, 9000)); /* into the slot */
	for (uint32_t i = 1; i < 4; i++)
		signal_irq(u, lpi(u, 9000 + i)); /* into the maps */
	expect_taken(u, 0, ALL_LEVELS, 9000);
	signal_irq(u, lpi(u, 9000)); /* the slot is empty, but into the maps */
	for (uint32_t n = 0; n < 30; n++) {
		assert_int_equal(load_relaxed(&p->slot), 0);
		expect_taken(u, 0, ALL_LEVELS, 9000 + n % 4);
		signal_irq(u, lpi(u, 9000 + n % 4));
	}
	/* Another level may have it, and so may this one when a search has found the maps empty. */
	prepare(u, &u->vgic->spis[0], 0, 51);
	signal_irq(u, &u->vgic->spis[0]);
	assert_true(load_relaxed(&p->slot));
	for (uint32_t n = 30; n < 34; n++)
		expect_taken(u, 0, ALL_LEVELS, 9000 + n % 4);
	expect_taken(u, 0, ALL_LEVELS, 32);
	expect_none(u, 0, ALL_LEVELS);
	signal_irq(u, lpi(u, 9000));
	assert_true(load_relaxed(&p->slot));
	unit_stop(u);
}

static void better_rank_goes_first_whether_slot_or_maps(void **state)
{
	static const struct {
		unsigned slot_level, map_level;
		bool slot_first;
	} pairs[] = {
		{ 10, 11, true }, { 11, 10, false }, { 10, 42, true }, { 42, 10, false },
		{ 42, 11, true }, { 11, 42, false }, { 10, 10, true }, { 42, 42, true },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
		struct unit *u = unit_start(1, 0, 16);

		prepare(u, &u->vgic->spis[0], 0, pairs[i].slot_level);
		prepare(u, &u->vgic->spis[1], 0, pairs[i].map_level);
		signal_irq(u, &u->vgic->spis[0]);
		signal_irq(u, &u->vgic->spis[1]);
		expect_taken(u, 0, ALL_LEVELS, pairs[i].slot_first ? 32 : 33);
		expect_taken(u, 0, ALL_LEVELS, pairs[i].slot_first ? 33 : 32);
		expect_none(u, 0, ALL_LEVELS);
		unit_stop(u);
	}
}

/* A level that is not asked for keeps its hint in the slot, even if the maps are empty. */
static void masked_slot_is_left_alone(void **state)
{
	struct unit *u = unit_start(1, 0, 16);
	uint64_t slot;

	(void)state;
	prepare(u, &u->vgic->spis[3], 0, 5);
	signal_irq(u, &u->vgic->spis[3]);
	slot = load_relaxed(&unit_vcpu(u, 0)->pending.slot);
	expect_none(u, 0, ALL_LEVELS & ~only_level(5));
	assert_int_equal(load_relaxed(&unit_vcpu(u, 0)->pending.slot), slot);
	assert_int_equal(stale_hints(u, 0), 0);
	expect_taken(u, 0, only_level(5), 35);
	assert_int_equal(load_relaxed(&unit_vcpu(u, 0)->pending.slot), 0);
	unit_stop(u);
}

/* ---- Stale hints ---- */

static void stale_hints_are_dropped_and_counted(void **state)
{
	struct unit *u = unit_start(1, VGIC_FEATURE_LPIS, 14);
	const struct pending *p = &unit_vcpu(u, 0)->pending;

	(void)state;
	for (uint32_t i = 0; i < 300; i++) {
		prepare(u, lpi(u, 8192 + i * 10), 0, i % 60);
		signal_irq(u, lpi(u, 8192 + i * 10));
	}
	assert_int_not_equal(load_relaxed(&p->slot), 0);
	assert_int_equal(count_leaf_bits(p), 299);
	for (uint32_t i = 0; i < 300; i++)
		CHANGE(u, lpi(u, 8192 + i * 10), irq_unlatch, 0);
	/* Whoever changes a word leaves the hint alone: R4. */
	assert_int_equal(count_leaf_bits(p), 299);
	expect_none(u, 0, ALL_LEVELS);
	assert_int_equal(load_relaxed(&p->slot), 0);
	assert_int_equal(load_relaxed(&p->summary), 0);
	assert_int_equal(count_leaf_bits(p), 0);
	assert_int_equal(stale_hints(u, 0), 300);
	expect_none(u, 0, ALL_LEVELS);
	assert_int_equal(stale_hints(u, 0), 300);
	unit_stop(u);
}

/* A hint at an old level leads to an interrupt that has moved to another: it must stay reachable there. */
static void moved_interrupt_is_found_at_its_new_level(void **state)
{
	struct unit *u = unit_start(2, VGIC_FEATURE_LPIS, 14);
	struct irq *irq = lpi(u, 10000);

	(void)state;
	for (int plugged = 0; plugged < 2; plugged++) {
		if (plugged) {
			plug_slot(u, 0);
			plug_slot(u, 1);
		}
		prepare(u, irq, 0, 4);
		signal_irq(u, irq);
		CHANGE(u, irq, irq_set_priority, 9 << 3);
		expect_none(u, 0, only_level(4));
		CHANGE(u, irq, irq_set_bits, IRQ_GROUP1);
		expect_none(u, 0, only_level(4) | only_level(9));
		assert_true(pending_is_hinted(&unit_vcpu(u, 0)->pending, irq->number, 41));
		CHANGE(u, irq, irq_route_to, 1);
		expect_none(u, 0, searched);
		assert_int_equal(load_relaxed(&unit_vcpu(u, 0)->pending.summary) & searched, 0);
		CHANGE(u, irq, irq_route_to, 0);
		CHANGE(u, irq, irq_clear_bits, IRQ_ENABLED);
		CHANGE(u, irq, irq_set_bits, IRQ_ENABLED);
		expect_none(u, 1, searched);
		expect_at_rest(u);
		expect_taken(u, 0, searched, 10000);
		expect_none(u, 0, searched);
	}
	unit_stop(u);
}

/* The slot holds an old level of an interrupt that is deliverable still: the hint moves into the maps. */
static void stale_slot_of_a_wanted_interrupt_is_filed_again(void **state)
{
	struct unit *u = unit_start(1, 0, 16);
	struct irq *irq = &u->vgic->spis[7];
	struct pending *p = &unit_vcpu(u, 0)->pending;

	(void)state;
	prepare(u, irq, 0, 6);
	signal_irq(u, irq);
	/* As if a change of priority were under way: the word is new, its hint not yet filed. */
	store_relaxed(&irq->word, irq_set_priority(load_relaxed(&irq->word), 12 << 3));
	assert_int_equal(vgic_check_at_rest(u->vgic, NULL), 1);
	expect_none(u, 0, only_level(6));
	assert_int_equal(load_relaxed(&p->slot), 0);
	assert_true(pending_is_hinted(p, irq->number, 12));
	expect_taken(u, 0, ALL_LEVELS, 39);
	assert_int_equal(stale_hints(u, 0), 1);
	unit_stop(u);
}

/* A claim that fails has cleared its hint: it must have filed it again, at the level that the word has now. */
static void failed_claim_files_again(void **state)
{
	struct unit *u = unit_start(1, 0, 16);
	struct irq *irq = &u->vgic->spis[7];
	struct pending *p = &unit_vcpu(u, 0)->pending;

	(void)state;
	for (int plugged = 0; plugged < 2; plugged++) {
		struct candidate c;

		if (plugged)
			plug_slot(u, 0);
		prepare(u, irq, 0, 6);
		signal_irq(u, irq);
		assert_int_equal(pending_find(unit_vcpu(u, 0), searched, &c), FIND_FOUND);
		assert_int_equal(c.in_slot, !plugged);
		store_relaxed(&irq->word, irq_set_priority(load_relaxed(&irq->word), 12 << 3));
		assert_false(pending_claim(unit_vcpu(u, 0), &c));
		assert_true(load_relaxed(&irq->word) & IRQ_PENDING);
		assert_true(pending_is_hinted(p, irq->number, 12));
		expect_taken(u, 0, searched, 39);
		end_irq(u, irq);
	}
	unit_stop(u);
}

/* Tidying clears the l1 bits over empty words, except the first six: they are cheaper passed than cleared. */
static void l1_bits_over_many_empty_words_are_cleared(void **state)
{
	static const struct {
		uint32_t words, left;
	} cases[] = { { 1, 1 }, { 3, 3 }, { 6, 0 }, { 7, 0 }, { 100, 0 } };

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct unit *u = unit_start(1, VGIC_FEATURE_LPIS, 14);
		const struct pending *p = &unit_vcpu(u, 0)->pending;

		plug_slot(u, 0);
		for (uint32_t w = 0; w < cases[i].words; w++) {
			prepare(u, lpi(u, 8192 + w * 64 + 5), 0, 7);
			signal_irq(u, lpi(u, 8192 + w * 64 + 5));
			CHANGE(u, lpi(u, 8192 + w * 64 + 5), irq_unlatch, 0);
		}
		assert_int_equal(count_l1_bits(p, 7), cases[i].words);
		expect_none(u, 0, searched);
		assert_int_equal(load_relaxed(&p->summary), 0);
		assert_int_equal(count_leaf_bits(p), 0);
		assert_int_equal(count_l1_bits(p, 7), cases[i].left);
		/* Whatever is left of the l1 bits, the interrupt is found the next time. */
		signal_irq(u, lpi(u, 8192 + 5));
		expect_taken(u, 0, searched, 8192 + 5);
		unit_stop(u);
	}
}

/* ---- The budget of a search ---- */

/*
 * Every LPI has a hint that is stale. Each call is bounded by the budget, drops
 * what it met, and the one real interrupt is found in the end.
 */
static void search_through_57344_stale_hints(void **state)
{
	struct unit *u = unit_start(1, VGIC_FEATURE_LPIS, 16);
	const uint32_t total = u->vgic->num_lpis;
	enum find_result r;
	struct candidate c;
	unsigned calls = 0;

	(void)state;
	assert_int_equal(total, 57344);
	plug_slot(u, 0);
	for (uint32_t i = 0; i < total; i++) {
		prepare(u, &u->vgic->lpis[i], 0, 35);
		signal_irq(u, &u->vgic->lpis[i]);
	}
	assert_int_equal(count_leaf_bits(&unit_vcpu(u, 0)->pending), total);
	for (uint32_t i = 0; i + 1 < total; i++)
		CHANGE(u, &u->vgic->lpis[i], i % 2 ? irq_unlatch : irq_clear_bits, i % 2 ? 0 : IRQ_ENABLED);
	do {
		const uint64_t before = stale_hints(u, 0);

		r = pending_find(unit_vcpu(u, 0), searched, &c);
		calls++;
		assert_true(stale_hints(u, 0) - before <= SEARCH_BUDGET + BUDGET_OVERRUN);
		if (r == FIND_TIRED) {
			assert_int_equal(c.level, 35);
			assert_true(stale_hints(u, 0) - before >= SEARCH_BUDGET / 2);
			expect_at_rest(u);
		}
		assert_true(calls < 2 * total / SEARCH_BUDGET + 2);
	} while (r == FIND_TIRED);
	assert_true(calls > total / (SEARCH_BUDGET + BUDGET_OVERRUN));
	assert_int_equal(r, FIND_FOUND);
	assert_int_equal(c.irq->intid, 65535);
	assert_int_equal(stale_hints(u, 0), total - 1);
	assert_true(pending_claim(unit_vcpu(u, 0), &c));
	expect_none(u, 0, searched);
	unit_stop(u);
}

/*
 * Every LPI is deliverable, but at a lower rank than its l1 bits say: the hints
 * are right and must stay. The search of the upper level tidies its l1 bits and
 * goes on to the right level in the end.
 */
static void search_through_57344_hints_of_another_level(void **state)
{
	struct unit *u = unit_start(1, VGIC_FEATURE_LPIS, 16);
	const struct pending *p = &unit_vcpu(u, 0)->pending;
	const uint32_t total = u->vgic->num_lpis;
	unsigned calls = 0, l1_bits;
	struct candidate c;

	(void)state;
	plug_slot(u, 0);
	for (uint32_t i = 0; i < total; i++) {
		prepare(u, &u->vgic->lpis[i], 0, 3);
		signal_irq(u, &u->vgic->lpis[i]);
		CHANGE(u, &u->vgic->lpis[i], irq_set_priority, 30 << 3);
	}
	l1_bits = count_l1_bits(p, 3);
	assert_int_equal(l1_bits, total / 64);
	while (pending_find(unit_vcpu(u, 0), searched, &c) == FIND_TIRED) {
		const unsigned left = count_l1_bits(p, 3);

		/* Bounded, and further than before. */
		assert_int_equal(c.level, 3);
		assert_true(l1_bits - left <= SEARCH_BUDGET / 64 + 4);
		assert_true(left < l1_bits);
		l1_bits = left;
		assert_true(++calls < 200);
	}
	assert_true(calls >= total / 64 / (SEARCH_BUDGET / 64 + 4));
	assert_int_equal(c.level, 30);
	assert_int_equal(c.irq->intid, 8192);
	assert_int_equal(count_leaf_bits(p), total);
	assert_int_equal(stale_hints(u, 0), 0);
	/* One at the upper level is found at once now. */
	CHANGE(u, lpi(u, 40000), irq_set_priority, 3 << 3);
	expect_taken(u, 0, searched, 40000);
	unit_stop(u);
}

/*
 * 30 words of such hints: one walk over them is within the budget, a second one is
 * not. The level is not given up before that one has come to its end.
 */
static void tired_search_does_not_give_its_level_up(void **state)
{
	struct unit *u = unit_start(1, VGIC_FEATURE_LPIS, 14);
	const struct pending *p = &unit_vcpu(u, 0)->pending;
	struct candidate c;

	(void)state;
	plug_slot(u, 0);
	for (uint32_t i = 0; i < 30 * BITS_PER_WORD; i++) {
		prepare(u, &u->vgic->lpis[i], 0, 3);
		signal_irq(u, &u->vgic->lpis[i]);
		CHANGE(u, &u->vgic->lpis[i], irq_set_priority, 30 << 3);
	}
	assert_int_equal(pending_find(unit_vcpu(u, 0), searched, &c), FIND_TIRED);
	assert_int_equal(c.level, 3);
	/* The first walk has tidied all but six of the words, the second some of these. */
	assert_in_range(count_l1_bits(p, 3), 1, 5);
	assert_true(load_relaxed(&p->summary) & only_level(3));
	expect_taken(u, 0, searched, 8192);
	assert_false(load_relaxed(&p->summary) & only_level(3));
	unit_stop(u);
}

/* With 2^20 INTIDs even the walk over empty l1 words is counted. */
static void search_of_many_empty_levels_is_bounded(void **state)
{
	struct unit *u = unit_start(1, VGIC_FEATURE_LPIS, 20);
	struct pending *p = &unit_vcpu(u, 0)->pending;
	unsigned calls = 0;
	struct candidate c;

	(void)state;
	plug_slot(u, 0);
	store_relaxed(&p->summary, ALL_LEVELS);
	prepare(u, lpi(u, 1000000), 0, 31);
	signal_irq(u, lpi(u, 1000000));
	while (pending_find(unit_vcpu(u, 0), only_level(31) | (searched & GROUP0_LEVELS), &c) == FIND_TIRED)
		assert_true(++calls < 64);
	/* 31 empty levels of 255 words, each searched twice before it is believed. */
	assert_true(calls >= 31u * 255 * 2 / (SEARCH_BUDGET + 600));
	assert_int_equal(c.irq->intid, 1000000);
	assert_int_equal(load_relaxed(&p->summary), (ALL_LEVELS & GROUP1_LEVELS) | only_level(31));
	unit_stop(u);
}

/* A level is given up only after its summary bit was cleared and the level searched once more. */
static void empty_level_loses_its_summary_bit(void **state)
{
	struct unit *u = unit_start(1, 0, 16);
	struct pending *p = &unit_vcpu(u, 0)->pending;

	(void)state;
	plug_slot(u, 0);
	prepare(u, &u->vgic->spis[0], 0, 8);
	prepare(u, &u->vgic->spis[1], 0, 9);
	signal_irq(u, &u->vgic->spis[0]);
	signal_irq(u, &u->vgic->spis[1]);
	assert_int_equal(load_relaxed(&p->summary), only_level(8) | only_level(9));
	expect_taken(u, 0, searched, 32);
	/* The claim leaves it: lazily cleared. */
	assert_int_equal(load_relaxed(&p->summary), only_level(8) | only_level(9));
	expect_taken(u, 0, searched, 33);
	assert_int_equal(load_relaxed(&p->summary), only_level(9));
	expect_none(u, 0, searched & ~only_level(9));
	assert_int_equal(load_relaxed(&p->summary), only_level(9));
	expect_none(u, 0, searched);
	assert_int_equal(load_relaxed(&p->summary), 0);
	unit_stop(u);
}

/* ---- The check of the invariant itself ---- */

static void invariant_check_sees_what_is_missing(void **state)
{
	struct unit *u = unit_start(2, VGIC_FEATURE_LPIS, 14);
	struct pending *p = &unit_vcpu(u, 1)->pending;
	struct irq *irq = lpi(u, 12345);
	const uint32_t word = irq->number / 64;
	uint32_t intid = 0;

	(void)state;
	plug_slot(u, 1);
	prepare(u, irq, 1, 17);
	signal_irq(u, irq);
	assert_int_equal(vgic_check_at_rest(u->vgic, &intid), 0);

	store_relaxed(&p->summary, 0);
	assert_int_equal(vgic_check_at_rest(u->vgic, &intid), 1);
	assert_int_equal(intid, 12345);
	store_relaxed(&p->summary, only_level(17));
	assert_int_equal(vgic_check_at_rest(u->vgic, NULL), 0);

	atomic_fetch_and(&p->leaf[word], ~(UINT64_C(1) << irq->number % 64));
	assert_int_equal(vgic_check_at_rest(u->vgic, NULL), 1);
	atomic_fetch_or(&p->leaf[word], UINT64_C(1) << irq->number % 64);

	atomic_fetch_and(&p->l1[17 * p->num_l1 + word / 64], ~(UINT64_C(1) << word % 64));
	assert_int_equal(vgic_check_at_rest(u->vgic, NULL), 1);
	atomic_fetch_or(&p->l1[17 * p->num_l1 + word / 64], UINT64_C(1) << word % 64);
	assert_int_equal(vgic_check_at_rest(u->vgic, NULL), 0);

	/* A line without a source, a source without a line, for an SPI and for a PPI. */
	CHANGE(u, &u->vgic->spis[5], irq_set_bits, IRQ_LINE);
	assert_int_equal(vgic_check_at_rest(u->vgic, &intid), 1);
	assert_int_equal(intid, 37);
	CHANGE(u, &unit_vcpu(u, 0)->private_irqs[20], irq_set_bits, UINT64_C(1) << IRQ_SOURCES_SHIFT);
	assert_int_equal(vgic_check_at_rest(u->vgic, &intid), 2);
	assert_int_equal(intid, 20);
	unit_stop(u);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(map_sizes_are_exact),
		cmocka_unit_test(each_interrupt_is_found),
		cmocka_unit_test(levels_are_taken_in_order_of_rank),
		cmocka_unit_test(only_the_asked_levels_are_searched),
		cmocka_unit_test(random_changes_of_private_interrupts_and_spis),
		cmocka_unit_test(random_changes_of_four_interrupts),
		cmocka_unit_test(random_changes_of_lpis_14_bits),
		cmocka_unit_test(random_changes_of_lpis_16_bits),
		cmocka_unit_test(random_changes_of_lpis_20_bits),
		cmocka_unit_test(equals_are_taken_round_robin),
		cmocka_unit_test(search_goes_on_at_zero_after_the_last_number),
		cmocka_unit_test(whole_first_word_is_searched_in_the_end),
		cmocka_unit_test(storm_of_low_intids_starves_nobody),
		cmocka_unit_test(slot_is_not_refilled_while_its_level_is_in_the_maps),
		cmocka_unit_test(better_rank_goes_first_whether_slot_or_maps),
		cmocka_unit_test(masked_slot_is_left_alone),
		cmocka_unit_test(stale_hints_are_dropped_and_counted),
		cmocka_unit_test(moved_interrupt_is_found_at_its_new_level),
		cmocka_unit_test(stale_slot_of_a_wanted_interrupt_is_filed_again),
		cmocka_unit_test(failed_claim_files_again),
		cmocka_unit_test(l1_bits_over_many_empty_words_are_cleared),
		cmocka_unit_test(search_through_57344_stale_hints),
		cmocka_unit_test(search_through_57344_hints_of_another_level),
		cmocka_unit_test(tired_search_does_not_give_its_level_up),
		cmocka_unit_test(search_of_many_empty_levels_is_bounded),
		cmocka_unit_test(empty_level_loses_its_summary_bit),
		cmocka_unit_test(invariant_check_sees_what_is_missing),
	};

	return RUN_TESTS("candidates", tests);
}
