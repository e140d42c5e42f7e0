/* SPDX-License-Identifier: MIT */
/*
 * The state word: every transition, every predicate, and what a change of the
 * word makes of hints and kicks.
 *
 * The layout is written down here a second time, as docs/architecture.md has it:
 * a field that moves breaks this test and that page alike.
 */
#include "unit.h"

#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "irq_change.h"

#define PENDING  (UINT64_C(1) << 0)
#define LINE     (UINT64_C(1) << 1)
#define ACTIVE   (UINT64_C(1) << 2)
#define ENABLED  (UINT64_C(1) << 3)
#define GROUP1   (UINT64_C(1) << 4)
#define EDGE     (UINT64_C(1) << 5)
#define LPI      (UINT64_C(1) << 6)
#define MAPPED   (UINT64_C(1) << 7)
#define RESIDENT (UINT64_C(1) << 8)
#define ONE_OF_N (UINT64_C(1) << 9)

#define HELD           (UINT64_C(1) << 10)
#define NUM_FLAG_WORDS 2048u

#define PRIORITY(n) ((uint64_t)(n) << 12)
#define TARGET(n)   ((uint64_t)(n) << 20)
#define SOURCE(n)   (UINT64_C(1) << (36 + (n)))
#define ALL_SOURCES (~UINT64_C(0) << 36)
#define MESSAGE     SOURCE(24)

/* ---- Transitions, by table ---- */

/* One line: the bits that the transition may read or change, as they are before and after. All others must not change. */
struct step {
	irq_transition transition;
	uint64_t arg;
	uint64_t scope;
	uint64_t before;
	uint64_t after;
};

// clang-format off
static const struct step steps[] = {
	/* ISPENDR, a signal */
	{ irq_latch, 0, PENDING, 0, PENDING },
	{ irq_latch, 0, PENDING, PENDING, PENDING },
	/* ICPENDR: the latch alone */
	{ irq_unlatch, 0, PENDING, PENDING, 0 },
	{ irq_unlatch, 0, PENDING, 0, 0 },
	{ irq_unlatch, 0, PENDING | LINE | EDGE | ALL_SOURCES, PENDING | LINE | SOURCE(0), LINE | SOURCE(0) },

	/* ICC_SGI0R reaches Group 0 alone */
	{ irq_latch_group0, 0, PENDING | GROUP1, 0, PENDING },
	{ irq_latch_group0, 0, PENDING | GROUP1, PENDING, PENDING },
	{ irq_latch_group0, 0, PENDING | GROUP1, GROUP1, GROUP1 },
	{ irq_latch_group0, 0, PENDING | GROUP1, PENDING | GROUP1, PENDING | GROUP1 },

	/* A pulse: for the edge-triggered */
	{ irq_pulse, 0, PENDING | EDGE, EDGE, EDGE | PENDING },
	{ irq_pulse, 0, PENDING | EDGE, EDGE | PENDING, EDGE | PENDING },
	{ irq_pulse, 0, PENDING | EDGE, 0, 0 },
	{ irq_pulse, 0, PENDING | EDGE, PENDING, PENDING },

	/* A source rises. Level-sensitive: no latch. Edge-triggered: the first source latches, no other does. */
	{ irq_raise, 0, PENDING | LINE | EDGE | ALL_SOURCES, 0, LINE | SOURCE(0) },
	{ irq_raise, 3, PENDING | LINE | EDGE | ALL_SOURCES, LINE | SOURCE(0), LINE | SOURCE(0) | SOURCE(3) },
	{ irq_raise, 3, PENDING | LINE | EDGE | ALL_SOURCES, LINE | SOURCE(3), LINE | SOURCE(3) },
	{ irq_raise, 23, PENDING | LINE | EDGE | ALL_SOURCES, PENDING, PENDING | LINE | SOURCE(23) },
	{ irq_raise, 0, PENDING | LINE | EDGE | ALL_SOURCES, EDGE, EDGE | PENDING | LINE | SOURCE(0) },
	{ irq_raise, 5, PENDING | LINE | EDGE | ALL_SOURCES, EDGE | PENDING, EDGE | PENDING | LINE | SOURCE(5) },
	{ irq_raise, 5, PENDING | LINE | EDGE | ALL_SOURCES,
	  EDGE | LINE | SOURCE(4), EDGE | LINE | SOURCE(4) | SOURCE(5) },
	{ irq_raise, 4, PENDING | LINE | EDGE | ALL_SOURCES, EDGE | LINE | SOURCE(4), EDGE | LINE | SOURCE(4) },
	{ irq_raise, 27, PENDING | LINE | EDGE | ALL_SOURCES, 0, LINE | SOURCE(27) },

	/* A deactivation: ACTIVE, and with it the levels of sources that are resampled */
	{ irq_deactivate, 0, ACTIVE | EDGE | LINE | ALL_SOURCES, ACTIVE | LINE | SOURCE(0), LINE | SOURCE(0) },
	{ irq_deactivate, 1 << 0, ACTIVE | EDGE | LINE | ALL_SOURCES, ACTIVE | LINE | SOURCE(0), 0 },
	{ irq_deactivate, 1 << 1, ACTIVE | EDGE | LINE | ALL_SOURCES, ACTIVE | LINE | SOURCE(0), LINE | SOURCE(0) },
	{ irq_deactivate, 3, ACTIVE | EDGE | LINE | ALL_SOURCES,
	  ACTIVE | LINE | SOURCE(0) | SOURCE(1) | SOURCE(23), LINE | SOURCE(23) },
	{ irq_deactivate, 1 << 23, ACTIVE | EDGE | LINE | ALL_SOURCES, ACTIVE | LINE | SOURCE(23), 0 },
	{ irq_deactivate, 1 << 0, ACTIVE | EDGE | LINE | ALL_SOURCES, ACTIVE | LINE | MESSAGE, LINE | MESSAGE },
	/* Not of an edge-triggered one, nor of one that is not active */
	{ irq_deactivate, 1 << 0, ACTIVE | EDGE | LINE | ALL_SOURCES, ACTIVE | EDGE | LINE | SOURCE(0),
	  EDGE | LINE | SOURCE(0) },
	{ irq_deactivate, 1 << 0, ACTIVE | EDGE | LINE | ALL_SOURCES, LINE | SOURCE(0), LINE | SOURCE(0) },
	{ irq_deactivate, 1 << 0, ACTIVE | EDGE | LINE | ALL_SOURCES, ACTIVE, 0 },

	/* A source falls. The line follows the last one; the latch stays. */
	{ irq_lower, 0, LINE | ALL_SOURCES, LINE | SOURCE(0), 0 },
	{ irq_lower, 0, LINE | ALL_SOURCES, LINE | SOURCE(0) | SOURCE(1), LINE | SOURCE(1) },
	{ irq_lower, 1, LINE | ALL_SOURCES, LINE | SOURCE(0), LINE | SOURCE(0) },
	{ irq_lower, 7, LINE | ALL_SOURCES, 0, 0 },
	{ irq_lower, 27, LINE | ALL_SOURCES, LINE | SOURCE(27) | SOURCE(0), LINE | SOURCE(0) },
	{ irq_lower, 0, PENDING | EDGE | LINE | ALL_SOURCES, PENDING | EDGE | LINE | SOURCE(0), PENDING | EDGE },
	{ irq_lower, 0, PENDING | EDGE | LINE | ALL_SOURCES, PENDING | LINE | SOURCE(0), PENDING },

	/* GICD_SETSPI: an edge, or a line of its own beside the devices' */
	{ irq_message_set, 0, PENDING | LINE | EDGE | ALL_SOURCES, EDGE, EDGE | PENDING },
	{ irq_message_set, 0, PENDING | LINE | EDGE | ALL_SOURCES, EDGE | PENDING, EDGE | PENDING },
	{ irq_message_set, 0, PENDING | LINE | EDGE | ALL_SOURCES, 0, LINE | MESSAGE },
	{ irq_message_set, 0, PENDING | LINE | EDGE | ALL_SOURCES, LINE | MESSAGE, LINE | MESSAGE },
	{ irq_message_set, 0, PENDING | LINE | EDGE | ALL_SOURCES, LINE | SOURCE(2), LINE | SOURCE(2) | MESSAGE },
	/* GICD_CLRSPI */
	{ irq_message_clear, 0, PENDING | LINE | EDGE | ALL_SOURCES, EDGE | PENDING, EDGE },
	{ irq_message_clear, 0, PENDING | LINE | EDGE | ALL_SOURCES, EDGE, EDGE },
	{ irq_message_clear, 0, PENDING | LINE | EDGE | ALL_SOURCES, LINE | MESSAGE, 0 },
	{ irq_message_clear, 0, PENDING | LINE | EDGE | ALL_SOURCES, PENDING | LINE | MESSAGE, PENDING },
	{ irq_message_clear, 0, PENDING | LINE | EDGE | ALL_SOURCES, LINE | SOURCE(2) | MESSAGE, LINE | SOURCE(2) },
	/* ... set while level-sensitive, configured edge-triggered since: the message's line goes too */
	{ irq_message_clear, 0, PENDING | LINE | EDGE | ALL_SOURCES, EDGE | PENDING | LINE | MESSAGE, EDGE },
	{ irq_message_clear, 0, PENDING | LINE | EDGE | ALL_SOURCES,
	  EDGE | PENDING | LINE | SOURCE(2), EDGE | LINE | SOURCE(2) },

	/* Single bits: ISENABLER, ICENABLER, ISACTIVER, EOI, IGROUPR, ICFGR */
	{ irq_set_bits, ENABLED, ENABLED, 0, ENABLED },
	{ irq_set_bits, ENABLED, ENABLED, ENABLED, ENABLED },
	{ irq_clear_bits, ENABLED, ENABLED, ENABLED, 0 },
	{ irq_clear_bits, ENABLED, ENABLED, 0, 0 },
	{ irq_set_bits, ACTIVE, ACTIVE, 0, ACTIVE },
	{ irq_clear_bits, ACTIVE, ACTIVE, ACTIVE, 0 },
	{ irq_set_bits, GROUP1, GROUP1, 0, GROUP1 },
	{ irq_clear_bits, GROUP1, GROUP1, GROUP1, 0 },
	/* To edge-triggered and back: neither latch nor line is touched */
	{ irq_set_bits, EDGE, EDGE | PENDING | LINE, LINE, EDGE | LINE },
	{ irq_clear_bits, EDGE, EDGE | PENDING | LINE, EDGE | PENDING, PENDING },

	/* IPRIORITYR: the upper five bits, and the whole old byte is replaced */
	{ irq_set_priority, 0xf8, PRIORITY(0xff), PRIORITY(0), PRIORITY(0xf8) },
	{ irq_set_priority, 0xff, PRIORITY(0xff), PRIORITY(0), PRIORITY(0xf8) },
	{ irq_set_priority, 0x07, PRIORITY(0xff), PRIORITY(0xf8), PRIORITY(0) },
	{ irq_set_priority, 0x08, PRIORITY(0xff), PRIORITY(0xff), PRIORITY(0x08) },
	{ irq_set_priority, 0x1a8, PRIORITY(0xff), PRIORITY(0x50), PRIORITY(0xa8) },

	/* IROUTER, and 1-of-N */
	{ irq_set_target, 0, TARGET(0xffff), TARGET(0xffff), TARGET(0) },
	{ irq_set_target, 0xffff, TARGET(0xffff), TARGET(0), TARGET(0xffff) },
	{ irq_set_target, 4095, TARGET(0xffff), TARGET(0x5555), TARGET(4095) },
	{ irq_set_target, 7, TARGET(0xffff) | ONE_OF_N, ONE_OF_N | TARGET(1), ONE_OF_N | TARGET(7) },
	{ irq_set_target, 0x1000a, TARGET(0xffff), TARGET(3), TARGET(0xa) },
	{ irq_route_to, 7, TARGET(0xffff) | ONE_OF_N, ONE_OF_N | TARGET(1), TARGET(7) },
	{ irq_route_to, 0xffff, TARGET(0xffff) | ONE_OF_N, TARGET(1), TARGET(0xffff) },
	{ irq_route_to_any, 0, TARGET(0xffff) | ONE_OF_N, TARGET(5), ONE_OF_N | TARGET(5) },
	{ irq_route_to_any, 0, TARGET(0xffff) | ONE_OF_N, ONE_OF_N | TARGET(0xffff), ONE_OF_N | TARGET(0xffff) },

	/* Taking an acknowledge back */
	{ irq_unacknowledge, PENDING, PENDING | ACTIVE | LPI, ACTIVE, PENDING },
	{ irq_unacknowledge, 0, PENDING | ACTIVE | LPI, ACTIVE, 0 },
	{ irq_unacknowledge, 0, PENDING | ACTIVE | LPI, ACTIVE | PENDING, PENDING },
	{ irq_unacknowledge, PENDING, PENDING | ACTIVE | LPI, ACTIVE | PENDING, PENDING },
	{ irq_unacknowledge, LPI | PENDING | SOURCE(3), PENDING | ACTIVE | LPI | ALL_SOURCES,
	  LPI | SOURCE(3), LPI | PENDING | SOURCE(3) },
	{ irq_unacknowledge, LPI | PENDING, PENDING | ACTIVE | LPI | ALL_SOURCES, LPI | PENDING, LPI | PENDING },
	/* ... not of an LPI that has been unmapped meanwhile */
	{ irq_unacknowledge, LPI | PENDING, PENDING | ACTIVE | LPI | ALL_SOURCES, LPI | SOURCE(0), LPI | SOURCE(0) },

	/* Reset: lines that a device drives stay high, nothing else stays */
	{ irq_reset, 0, ~UINT64_C(0), ~UINT64_C(0), LINE | (ALL_SOURCES & ~MESSAGE) },
	{ irq_reset, 0, ~UINT64_C(0), 0, 0 },
	{ irq_reset, TARGET(3) | EDGE, ~UINT64_C(0),
	  PENDING | ACTIVE | ENABLED | GROUP1 | RESIDENT | ONE_OF_N | PRIORITY(0x80) | TARGET(9), TARGET(3) | EDGE },
	{ irq_reset, TARGET(3) | EDGE | GROUP1 | ENABLED, ~UINT64_C(0), PENDING | TARGET(3), TARGET(3) | EDGE | GROUP1 | ENABLED },
	{ irq_reset, TARGET(1), ~UINT64_C(0), PENDING | LINE | MESSAGE, TARGET(1) },
	{ irq_reset, TARGET(1), ~UINT64_C(0), LINE | MESSAGE | SOURCE(6) | TARGET(2), TARGET(1) | LINE | SOURCE(6) },
	{ irq_reset, EDGE, ~UINT64_C(0), EDGE | PENDING | LINE | SOURCE(23), EDGE | LINE | SOURCE(23) },

	/* LPIs: where they are, and whether that redistributor has them enabled */
	{ irq_lpi_place, 5, TARGET(0xffff) | HELD, TARGET(0xffff), TARGET(5) },
	{ irq_lpi_place, 5 | IRQ_PLACE_HELD, TARGET(0xffff) | HELD, TARGET(2), TARGET(5) | HELD },
	{ irq_lpi_place, 1024, TARGET(0xffff) | HELD, TARGET(2) | HELD, TARGET(1024) },
	{ irq_lpi_place, 0xffff, TARGET(0xffff) | HELD, TARGET(2) | HELD, TARGET(0xffff) },
	{ irq_lpi_map, 7, TARGET(0xffff) | HELD | MAPPED, TARGET(0xffff), TARGET(7) | MAPPED },
	{ irq_lpi_map, 7, TARGET(0xffff) | HELD | MAPPED | PENDING, PENDING, TARGET(7) | MAPPED | PENDING },
	/* The last translation is gone: nothing is pending, and the generation is the next one, wrapping */
	{ irq_lpi_unmap, 0, TARGET(0xffff) | HELD | MAPPED | PENDING | ALL_SOURCES,
	  MAPPED | PENDING | TARGET(3) | SOURCE(0), TARGET(0xffff) | SOURCE(1) },
	{ irq_lpi_unmap, 0, TARGET(0xffff) | HELD | MAPPED | PENDING | ALL_SOURCES,
	  MAPPED | HELD | ALL_SOURCES, TARGET(0xffff) },
	{ irq_lpi_renew, 0, ALL_SOURCES, SOURCE(0) | SOURCE(1), SOURCE(2) },
	/* The configuration byte: bit 0 enables, bit 1 is ignored */
	{ irq_lpi_configure, 0xa3, ENABLED | PRIORITY(0xff), PRIORITY(0xf8), ENABLED | PRIORITY(0xa0) },
	{ irq_lpi_configure, 0xa2, ENABLED | PRIORITY(0xff), ENABLED | PRIORITY(0xf8), PRIORITY(0xa0) },
	/* EnableLPIs is cleared: the latch goes to the pending table */
	{ irq_lpi_hold, 0, HELD | PENDING, PENDING, HELD },
	{ irq_lpi_hold, 0, HELD | PENDING, HELD, HELD },
};
// clang-format on

static void transitions_change_what_they_own_and_nothing_else(void **state)
{
	struct rng rng = { 1 };

	(void)state;
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		const struct step *s = &steps[i];

		for (int n = 0; n < 200; n++) {
			const uint64_t others = (n == 0 ? 0 : n == 1 ? ~UINT64_C(0) : rng_next(&rng)) & ~s->scope;
			const uint64_t after = s->transition(s->before | others, s->arg);

			if (after != (s->after | others))
				fail_msg("step %zu: %016llx becomes %016llx, not %016llx", i,
					 (unsigned long long)(s->before | others), (unsigned long long)after,
					 (unsigned long long)(s->after | others));
		}
	}
}

/* irq_acknowledge() has no argument, so that it cannot be in the table. */
static void acknowledge_makes_pending_active_except_lpis(void **state)
{
	struct rng rng = { 2 };

	(void)state;
	for (int n = 0; n < 1000; n++) {
		const uint64_t others = rng_next(&rng) & ~(PENDING | ACTIVE | LPI);

		assert_int_equal(irq_acknowledge(others | PENDING), others | ACTIVE);
		assert_int_equal(irq_acknowledge(others), others | ACTIVE);
		assert_int_equal(irq_acknowledge(others | LPI | PENDING), others | LPI);
		assert_int_equal(irq_acknowledge(others | LPI), others | LPI);
	}
}

/* Any sequence of sources that rise and fall: the line is their OR, and an edge is latched for each rise of that OR. */
static void line_is_the_or_of_its_sources(void **state)
{
	struct rng rng = { 3 };

	(void)state;
	for (int edge = 0; edge < 2; edge++) {
		bool driven[28] = { false };
		uint64_t w = edge ? EDGE : 0;

		for (int n = 0; n < 20000; n++) {
			const unsigned source = rng_below(&rng, 28);
			bool was_high = false, is_high = false;

			for (unsigned s = 0; s < 28; s++)
				was_high |= driven[s];
			driven[source] = rng_below(&rng, 4) == 0;
			w = driven[source] ? irq_raise(w & ~PENDING, source) : irq_lower(w & ~PENDING, source);
			for (unsigned s = 0; s < 28; s++) {
				is_high |= driven[s];
				assert_int_equal((w & SOURCE(s)) != 0, driven[s]);
			}
			assert_int_equal((w & LINE) != 0, is_high);
			assert_int_equal((w & PENDING) != 0, edge && is_high && !was_high);
		}
	}
}

static void reset_keeps_each_source_of_the_vmm(void **state)
{
	(void)state;
	assert_int_equal(IRQ_SOURCE_MESSAGE, VGIC_NUM_LINE_SOURCES);
	for (unsigned s = 0; s < VGIC_NUM_LINE_SOURCES; s++)
		assert_int_equal(irq_reset(LINE | SOURCE(s) | MESSAGE | PENDING, TARGET(8)),
				 TARGET(8) | LINE | SOURCE(s));
}

/* ---- Fields ---- */

static void fields_are_where_the_documentation_says(void **state)
{
	(void)state;
	assert_int_equal(IRQ_PENDING, PENDING);
	assert_int_equal(IRQ_LINE, LINE);
	assert_int_equal(IRQ_ACTIVE, ACTIVE);
	assert_int_equal(IRQ_ENABLED, ENABLED);
	assert_int_equal(IRQ_GROUP1, GROUP1);
	assert_int_equal(IRQ_EDGE, EDGE);
	assert_int_equal(IRQ_LPI, LPI);
	assert_int_equal(IRQ_MAPPED, MAPPED);
	assert_int_equal(IRQ_RESIDENT, RESIDENT);
	assert_int_equal(IRQ_ONE_OF_N, ONE_OF_N);
	assert_int_equal(IRQ_PRIORITY_MASK, PRIORITY(0xff));
	assert_int_equal(IRQ_TARGET_MASK, TARGET(0xffff));
	assert_int_equal(IRQ_SOURCES_MASK, ALL_SOURCES);
	assert_int_equal(IRQ_PLACE_MASK, PRIORITY(0xff) | TARGET(0xffff) | GROUP1);
	assert_int_equal(IRQ_NUM_SOURCES, 28);
	assert_int_equal(sizeof(struct irq), 64);
}

static void priority_and_target_hold_every_value(void **state)
{
	struct rng rng = { 4 };

	(void)state;
	for (unsigned p = 0; p < 256; p++) {
		const uint64_t others = rng_next(&rng) & ~PRIORITY(0xff);
		const uint64_t w = irq_set_priority(others | PRIORITY(rng_below(&rng, 256)), p);

		assert_int_equal(irq_priority(w), p & 0xf8);
		assert_int_equal(w & ~PRIORITY(0xff), others);
	}
	for (unsigned t = 0; t < 65536; t++) {
		const uint64_t others = rng_next(&rng) & ~TARGET(0xffff);
		const uint64_t w = irq_set_target(others | TARGET(rng_below(&rng, 65536)), t);

		if (irq_target(w) != t || (w & ~TARGET(0xffff)) != others)
			fail_msg("target %u in word %016llx", t, (unsigned long long)w);
	}
}

static void level_is_priority_and_group(void **state)
{
	struct rng rng = { 5 };

	(void)state;
	for (unsigned p = 0; p < 256; p++) {
		for (unsigned group = 0; group < 2; group++) {
			const uint64_t others = rng_next(&rng) & ~(PRIORITY(0xff) | GROUP1);
			const uint64_t w = others | PRIORITY(p) | (group ? GROUP1 : 0);

			assert_int_equal(irq_level(w), group * 32 + p / 8);
			assert_int_equal(irq_group(w), group);
		}
	}
}

/* ---- Ranks ---- */

/* Lower priority values first; Group 0 first among equals. */
static bool goes_before(unsigned level, unsigned other)
{
	const unsigned priority = level & 31, other_priority = other & 31;

	return priority != other_priority ? priority < other_priority : level < other;
}

static void best_level_of_two(void **state)
{
	(void)state;
	for (unsigned a = 0; a < 64; a++) {
		for (unsigned b = 0; b < 64; b++)
			assert_int_equal(best_level(only_level(a) | only_level(b)), goes_before(a, b) ? a : b);
	}
}

static unsigned naive_best_level(uint64_t levels)
{
	unsigned best = 64;

	for (unsigned level = 0; level < 64; level++) {
		if ((levels >> level & 1) && (best == 64 || goes_before(level, best)))
			best = level;
	}
	return best;
}

static void best_level_of_any_set(void **state)
{
	struct rng rng = { 6 };

	(void)state;
	for (unsigned a = 0; a < 64; a++) {
		for (unsigned b = 0; b < 64; b++)
			assert_int_equal(best_level(only_level(a) | only_level(b)), goes_before(a, b) ? a : b);
	}
	for (int n = 0; n < 20000; n++) {
		uint64_t levels = rng_next(&rng);

		/* Thin it out, so that high levels get their turn. */
		for (unsigned k = rng_below(&rng, 6); k-- > 0;)
			levels &= rng_next(&rng);
		if (levels)
			assert_int_equal(best_level(levels), naive_best_level(levels));
	}
}

/* ---- Predicates, over every combination of the eleven flags ---- */

/* One flag word taken apart; the rules are the architecture's, with no word in sight. */
struct flags {
	bool latch, line, active, enabled, edge, held;
};

static struct flags flags_of(uint64_t w)
{
	return (struct flags){ .latch = w & PENDING,
			       .line = w & LINE,
			       .active = w & ACTIVE,
			       .enabled = w & ENABLED,
			       .edge = w & EDGE,
			       .held = w & HELD };
}

static bool naive_is_pending(uint64_t w)
{
	const struct flags f = flags_of(w);

	if (f.latch)
		return true;
	return f.line && !f.edge;
}

static bool naive_is_deliverable(uint64_t w)
{
	const struct flags f = flags_of(w);

	if (!f.enabled || f.active || f.held)
		return false;
	return naive_is_pending(w);
}

static void predicates_of_every_flag_word(void **state)
{
	struct rng rng = { 7 };

	(void)state;
	for (uint64_t flags = 0; flags < NUM_FLAG_WORDS; flags++) {
		for (int n = 0; n < 8; n++) {
			const uint64_t w = flags | rng_next(&rng) << 11;
			const uint32_t target = irq_target(w);

			assert_int_equal(irq_is_pending(w), naive_is_pending(flags));
			assert_int_equal(irq_is_deliverable(w), naive_is_deliverable(flags));
			assert_int_equal(irq_is_deliverable_at(w, target), naive_is_deliverable(flags));
			assert_false(irq_is_deliverable_at(w, target ^ 1u << (n * 2)));
		}
	}
}

/* ---- Settling: which changes file a hint, and which kick whom ---- */

static bool slot_is(const struct vgic_vcpu *vcpu, uint32_t number, unsigned level)
{
	return load_relaxed(&vcpu->pending.slot) && pending_is_hinted(&vcpu->pending, number, level);
}

/* What the VMM's kick, the slots and `kicked` look like before the next change. */
static void forget(struct unit *u)
{
	for (uint32_t i = 0; i < u->vgic->num_vcpus; i++) {
		struct vgic_vcpu *vcpu = unit_vcpu(u, i);

		store_relaxed(&vcpu->pending.slot, 0);
		store_relaxed(&vcpu->pending.kicked, 0);
		u->kicks[i] = 0;
	}
}

static void set_watch(struct unit *u, bool watch, uint64_t mask)
{
	for (uint32_t i = 0; i < u->vgic->num_vcpus; i++) {
		store_relaxed(&unit_vcpu(u, i)->pending.watch, watch);
		store_relaxed(&unit_vcpu(u, i)->pending.mask, mask);
	}
}

/* vCPUs 0 and 1 have the interrupt in turn, or nobody has. */
static void check_settle(struct unit *u, struct irq *irq, uint64_t old, uint64_t new, bool watch, uint64_t mask)
{
	const bool was = naive_is_deliverable(old), is = naive_is_deliverable(new);
	const bool moved = irq_target(old) != irq_target(new) || irq_priority(old) != irq_priority(new) ||
			   ((old ^ new) & GROUP1);

	forget(u);
	irq_settle(u->vgic, irq, old, new);
	for (uint32_t i = 0; i < 2; i++) {
		const bool filed = is && (!was || moved) && irq_target(new) == i;
		const bool withdrawn = was && (!is || moved) && irq_target(old) == i;
		const bool kicked = (filed && (mask >> irq_level(new) & 1)) || (withdrawn && watch);

		if (slot_is(unit_vcpu(u, i), irq->number, irq_level(new)) != filed ||
		    (load_relaxed(&unit_vcpu(u, i)->pending.slot) != 0) != filed)
			fail_msg("%016llx to %016llx: vCPU %u has a hint or has none", (unsigned long long)old,
				 (unsigned long long)new, i);
		if (u->kicks[i] != kicked)
			fail_msg("%016llx to %016llx: %u kicks of vCPU %u", (unsigned long long)old,
				 (unsigned long long)new, u->kicks[i], i);
	}
}

static void settling_every_pair_of_flag_words(void **state)
{
	struct unit *u = unit_start(2, 0, 16);
	struct irq *irq = &u->vgic->spis[8];
	const uint64_t place = TARGET(1) | PRIORITY(0x80);

	(void)state;
	unit_open_dist(u);
	set_watch(u, true, ALL_LEVELS);
	for (uint64_t old = 0; old < NUM_FLAG_WORDS; old++) {
		for (uint64_t new = 0; new < NUM_FLAG_WORDS; new ++)
			check_settle(u, irq, old | place, new | place, true, ALL_LEVELS);
	}
	unit_stop(u);
}

static void settling_every_move(void **state)
{
	static const uint64_t places[] = {
		TARGET(0) | PRIORITY(0x80), TARGET(1) | PRIORITY(0x80),      TARGET(0) | PRIORITY(0x88),
		TARGET(1) | PRIORITY(0x00), TARGET(0xffff) | PRIORITY(0x80),
	};
	static const uint64_t masks[] = { 0, ALL_LEVELS, GROUP0_LEVELS, UINT64_C(1) << 16 };
	const uint64_t deciding = PENDING | LINE | ACTIVE | ENABLED | GROUP1 | EDGE;
	const size_t num_places = sizeof(places) / sizeof(places[0]);
	struct unit *u = unit_start(2, 0, 16);
	struct irq *irq = &u->vgic->spis[8];

	(void)state;
	unit_open_dist(u);
	for (unsigned mode = 0; mode < 8; mode++) {
		set_watch(u, mode & 1, masks[mode / 2]);
		for (uint64_t old = 0; old <= deciding; old++) {
			for (uint64_t new = 0; new <= deciding; new ++) {
				for (size_t i = 0; i < num_places * num_places; i++)
					check_settle(u, irq, old | places[i % num_places], new | places[i / num_places],
						     mode & 1, masks[mode / 2]);
			}
		}
	}
	unit_stop(u);
}

/* ---- irq_change() ---- */

static void change_returns_the_word_before(void **state)
{
	struct unit *u = unit_start(1, 0, 16);
	struct irq *irq = &u->vgic->spis[0];
	const uint64_t before = load_relaxed(&irq->word);

	(void)state;
	assert_int_equal(before, TARGET(0));
	assert_int_equal(irq_change(u->vgic, irq, irq_set_bits, ENABLED | GROUP1), before);
	assert_int_equal(irq_change(u->vgic, irq, irq_latch, 0), before | ENABLED | GROUP1);
	assert_int_equal(load_relaxed(&irq->word), before | ENABLED | GROUP1 | PENDING);
	assert_true(slot_is(unit_vcpu(u, 0), 32, 32));
	unit_stop(u);
}

static sigjmp_buf after_fault;

static void on_fault(int signal)
{
	(void)signal;
	siglongjmp(after_fault, 1);
}

/*
 * R1: a signal of an interrupt that is pending already writes its word all the
 * same. On memory that cannot be written it faults; a mere load would not.
 */
static void a_signal_that_changes_nothing_still_writes(void **state)
{
	struct unit *u = unit_start(1, 0, 16);
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct irq *irq = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct sigaction action = { .sa_handler = on_fault }, old_action;
	bool faulted = true;

	(void)state;
	assert_ptr_not_equal(irq, MAP_FAILED);
	store_relaxed(&irq->word, PENDING | ENABLED | EDGE | TARGET(0));
	assert_int_equal(mprotect(irq, page, PROT_READ), 0);
	assert_int_equal(sigaction(SIGSEGV, &action, &old_action), 0);
	if (!sigsetjmp(after_fault, 1)) {
		irq_change(u->vgic, irq, irq_latch, 0);
		faulted = false;
	}
	assert_int_equal(sigaction(SIGSEGV, &old_action, NULL), 0);
	assert_int_equal(munmap(irq, page), 0);
	assert_true(faulted);
	unit_stop(u);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(transitions_change_what_they_own_and_nothing_else),
		cmocka_unit_test(acknowledge_makes_pending_active_except_lpis),
		cmocka_unit_test(line_is_the_or_of_its_sources),
		cmocka_unit_test(reset_keeps_each_source_of_the_vmm),
		cmocka_unit_test(fields_are_where_the_documentation_says),
		cmocka_unit_test(priority_and_target_hold_every_value),
		cmocka_unit_test(level_is_priority_and_group),
		cmocka_unit_test(best_level_of_two),
		cmocka_unit_test(best_level_of_any_set),
		cmocka_unit_test(predicates_of_every_flag_word),
		cmocka_unit_test(settling_every_pair_of_flag_words),
		cmocka_unit_test(settling_every_move),
		cmocka_unit_test(change_returns_the_word_before),
		cmocka_unit_test(a_signal_that_changes_nothing_still_writes),
	};

	return RUN_TESTS("state_word", tests);
}
