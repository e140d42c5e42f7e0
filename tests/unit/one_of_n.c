/* SPDX-License-Identifier: MIT */
/*
 * 1-of-N selection: who is selected, in which order, and what becomes of an
 * interrupt whose vCPU stops taking part.
 */
#include "unit.h"

#include <stdlib.h>

#include "gic_regs.h"
#include "irq_change.h"

#define SPI(u, n) (&(u)->vgic->spis[(n)])

/* A vCPU takes part in a group while it is awake and has that group enabled. */
static void set_awake(struct unit *u, uint32_t vcpu, bool awake)
{
	assert_int_equal(vgic_redist_write(unit_vcpu(u, vcpu), GICR_WAKER, 4, awake ? 0 : GICR_WAKER_PROCESSOR_SLEEP),
			 0);
}

static void enable_group(struct unit *u, uint32_t vcpu, unsigned group, bool enable)
{
	assert_int_equal(
		vgic_icc_write(unit_vcpu(u, vcpu), group ? VGIC_ICC_IGRPEN1_EL1 : VGIC_ICC_IGRPEN0_EL1, enable), 0);
}

static void join(struct unit *u, uint32_t vcpu, unsigned group)
{
	set_awake(u, vcpu, true);
	enable_group(u, vcpu, group, true);
}

/* The word of an interrupt that @last had the last time. */
static irq_word word_of(unsigned group, uint32_t last)
{
	return irq_set_target(IRQ_ONE_OF_N | IRQ_ENABLED | IRQ_EDGE | IRQ_PENDING | (group ? IRQ_GROUP1 : 0), last);
}

static uint32_t select_after(struct unit *u, uint32_t last, unsigned group)
{
	return one_of_n_select(u->vgic, SPI(u, 0), word_of(group, last));
}

/* An SPI that is enabled and routed to any vCPU. */
static struct irq *route_to_any(struct unit *u, uint32_t n, unsigned group)
{
	struct irq *irq = SPI(u, n);

	irq_change(u->vgic, irq, irq_set_bits, IRQ_ENABLED | IRQ_EDGE | (group ? IRQ_GROUP1 : 0));
	irq_change(u->vgic, irq, irq_route_to_any, 0);
	return irq;
}

static uint32_t target_of(const struct irq *irq)
{
	return irq_target(load_relaxed(&irq->word));
}

static void selection_goes_round(void **state)
{
	struct unit *u = unit_start(5, 0, 16);

	(void)state;
	for (uint32_t i = 0; i < 5; i++)
		join(u, i, 1);
	for (uint32_t last = 0; last < 5; last++)
		assert_int_equal(select_after(u, last, 1), (last + 1) % 5);
	/* Who does not take part is passed over. */
	set_awake(u, 3, false);
	set_awake(u, 0, false);
	assert_int_equal(select_after(u, 2, 1), 4);
	assert_int_equal(select_after(u, 3, 1), 4);
	assert_int_equal(select_after(u, 4, 1), 1);
	/* The same one again if there is no other. */
	set_awake(u, 1, false);
	set_awake(u, 4, false);
	for (uint32_t last = 0; last < 5; last++)
		assert_int_equal(select_after(u, last, 1), 2);
	unit_stop(u);
}

/* Each interrupt begins at a place of its own, so that they spread from the first on. */
static void first_selection_is_spread_by_intid(void **state)
{
	struct unit *u = unit_start(7, 0, 16);

	(void)state;
	for (uint32_t i = 0; i < 7; i++)
		join(u, i, 0);
	for (uint32_t n = 0; n < 64; n++)
		assert_int_equal(one_of_n_select(u->vgic, SPI(u, n), word_of(0, IRQ_NO_TARGET)), (32 + n) % 7);
	unit_stop(u);
}

static void nobody_takes_part(void **state)
{
	struct unit *u = unit_start(3, 0, 16);

	(void)state;
	for (uint32_t last = 0; last < 3; last++)
		assert_int_equal(select_after(u, last, 1), IRQ_NO_TARGET);
	assert_int_equal(select_after(u, IRQ_NO_TARGET, 1), IRQ_NO_TARGET);
	/* Groups are apart. */
	join(u, 1, 0);
	assert_int_equal(select_after(u, 1, 1), IRQ_NO_TARGET);
	assert_int_equal(select_after(u, 1, 0), 1);
	unit_stop(u);
}

/* The next participant behind @last, cyclic: by walking. */
static uint32_t naive_select(const bool *takes_part, uint32_t n, uint32_t start)
{
	for (uint32_t i = 0; i < n; i++) {
		if (takes_part[(start + i) % n])
			return (start + i) % n;
	}
	return IRQ_NO_TARGET;
}

/* Participation is written as one_of_n_update() does it, but without its walk over the SPIs. */
static void set_participants(struct unit *u, const bool *takes_part)
{
	struct participants *p = &u->vgic->participants[1];

	for (uint32_t w = 0; w < VGIC_MAX_VCPUS / 64; w++)
		store_relaxed(&p->words[w], 0);
	for (uint32_t i = 0; i < u->vgic->num_vcpus; i++) {
		if (takes_part[i]) {
			atomic_fetch_or(&p->words[i / 64], UINT64_C(1) << i % 64);
			atomic_fetch_or(&p->top, UINT64_C(1) << i / 64);
		}
	}
}

static void check_random_sets(uint32_t num_vcpus, unsigned rounds)
{
	struct unit *u = unit_start(num_vcpus, 0, 16);
	bool *takes_part = calloc(num_vcpus, sizeof(*takes_part));
	struct rng rng = { num_vcpus };

	assert_non_null(takes_part);
	for (unsigned n = 0; n < rounds; n++) {
		/* From all of them to next to none. */
		const uint32_t one_in = UINT32_C(1) << rng_below(&rng, 13);

		for (uint32_t i = 0; i < num_vcpus; i++)
			takes_part[i] = rng_below(&rng, one_in) == 0;
		set_participants(u, takes_part);
		for (int k = 0; k < 200; k++) {
			const uint32_t last = rng_below(&rng, num_vcpus);

			assert_int_equal(select_after(u, last, 1),
					 naive_select(takes_part, num_vcpus, (last + 1) % num_vcpus));
		}
		assert_int_equal(select_after(u, IRQ_NO_TARGET, 1),
				 naive_select(takes_part, num_vcpus, 32 % num_vcpus));
	}
	free(takes_part);
	unit_stop(u);
}

static void random_sets_of_participants(void **state)
{
	(void)state;
	check_random_sets(1, 20);
	check_random_sets(63, 100);
	check_random_sets(64, 100);
	check_random_sets(65, 100);
	check_random_sets(130, 100);
	check_random_sets(4096, 60);
}

static void one_participant_among_4096(void **state)
{
	static const uint32_t places[] = { 0, 1, 63, 64, 2047, 4032, 4094, 4095 };
	struct unit *u = unit_start(4096, 0, 16);

	(void)state;
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		join(u, places[i], 1);
		for (uint32_t last = 0; last < 4096; last += 31)
			assert_int_equal(select_after(u, last, 1), places[i]);
		assert_int_equal(select_after(u, 4095, 1), places[i]);
		assert_int_equal(select_after(u, IRQ_NO_TARGET, 1), places[i]);
		set_awake(u, places[i], false);
	}
	assert_int_equal(select_after(u, 0, 1), IRQ_NO_TARGET);
	unit_stop(u);
}

/* The target is chosen when the interrupt becomes deliverable, and only then. */
static void each_signal_selects_the_next(void **state)
{
	struct unit *u = unit_start(3, 0, 16);
	struct irq *irq;

	(void)state;
	for (uint32_t i = 0; i < 3; i++)
		join(u, i, 1);
	unit_open(u);
	irq = route_to_any(u, 0, 1);
	for (uint32_t n = 0; n < 9; n++) {
		irq_change(u->vgic, irq, irq_latch, 0);
		assert_int_equal(target_of(irq), (1 + n) % 3);
		irq_change(u->vgic, irq, irq_latch, 0);
		irq_change(u->vgic, irq, irq_set_priority, n << 3);
		assert_int_equal(target_of(irq), (1 + n) % 3);
		for (uint32_t i = 0; i < 3; i++)
			assert_int_equal(vgic_poll_lines(unit_vcpu(u, i)), i == (1 + n) % 3 ? VGIC_LINE_IRQ : 0);
		irq_change(u->vgic, irq, irq_unlatch, 0);
		assert_int_equal(target_of(irq), (1 + n) % 3);
	}
	unit_stop(u);
}

/* However a vCPU stops to take part, what is pending there goes to another. */
static void pending_interrupt_leaves_who_stops(void **state)
{
	(void)state;
	for (int how = 0; how < 4; how++) {
		struct unit *u = unit_start(2, 0, 16);
		struct irq *any, *fixed = SPI(u, 8);

		for (uint32_t i = 0; i < 2; i++)
			join(u, i, 1);
		unit_open(u);
		any = route_to_any(u, 0, 1);
		irq_change(u->vgic, any, irq_set_target, 0);
		irq_change(u->vgic, any, irq_latch, 0);
		assert_int_equal(target_of(any), 1);
		irq_change(u->vgic, fixed, irq_set_bits, IRQ_ENABLED | IRQ_EDGE | IRQ_GROUP1);
		irq_change(u->vgic, fixed, irq_route_to, 1);
		irq_change(u->vgic, fixed, irq_latch, 0);
		u->kicks[0] = 0;
		vgic_poll_lines(unit_vcpu(u, 0));
		if (how == 0)
			set_awake(u, 1, false);
		else if (how == 1)
			vgic_vcpu_set_online(unit_vcpu(u, 1), false);
		else if (how == 2)
			enable_group(u, 1, 1, false);
		else
			assert_int_equal(vgic_redist_write(unit_vcpu(u, 1), GICR_CTLR, 4, GICR_CTLR_DPG1NS), 0);
		assert_int_equal(target_of(any), 0);
		assert_int_equal(u->kicks[0], 1);
		assert_int_equal(vgic_poll_lines(unit_vcpu(u, 0)), VGIC_LINE_IRQ);
		/* What is routed to it stays. */
		assert_int_equal(target_of(fixed), 1);
		assert_int_equal(vgic_check_at_rest(u->vgic, NULL), 0);
		unit_stop(u);
	}
}

/* Only the group that it declines. */
static void declining_one_group_keeps_the_other(void **state)
{
	struct unit *u = unit_start(2, 0, 16);

	(void)state;
	for (uint32_t i = 0; i < 2; i++) {
		join(u, i, 0);
		join(u, i, 1);
	}
	assert_int_equal(vgic_redist_write(unit_vcpu(u, 0), GICR_CTLR, 4, GICR_CTLR_DPG0), 0);
	assert_int_equal(select_after(u, 1, 0), 1);
	assert_int_equal(select_after(u, 1, 1), 0);
	assert_int_equal(vgic_redist_write(unit_vcpu(u, 0), GICR_CTLR, 4, GICR_CTLR_DPG1NS), 0);
	assert_int_equal(select_after(u, 1, 0), 0);
	assert_int_equal(select_after(u, 1, 1), 1);
	unit_stop(u);
}

/* An interrupt that found nobody is given to the first who comes; one that is not pending is not. */
static void interrupt_that_found_nobody_waits(void **state)
{
	struct unit *u = unit_start(3, 0, 16);
	struct irq *waiting, *idle;

	(void)state;
	unit_open_dist(u);
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(vgic_icc_write(unit_vcpu(u, i), VGIC_ICC_PMR_EL1, 0xff), 0);
	waiting = route_to_any(u, 0, 1);
	idle = route_to_any(u, 1, 1);
	irq_change(u->vgic, idle, irq_set_target, 0);
	irq_change(u->vgic, waiting, irq_latch, 0);
	assert_int_equal(target_of(waiting), IRQ_NO_TARGET);
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(vgic_poll_lines(unit_vcpu(u, i)), 0);
	u->num_kicks = u->kicks[2] = 0;
	join(u, 2, 1);
	assert_int_equal(target_of(waiting), 2);
	assert_int_equal(u->kicks[2], 1);
	assert_int_equal(u->num_kicks, 1);
	assert_int_equal(vgic_poll_lines(unit_vcpu(u, 2)), VGIC_LINE_IRQ);
	assert_int_equal(target_of(idle), 0);
	/* The last one goes: it waits again. */
	set_awake(u, 2, false);
	assert_int_equal(target_of(waiting), IRQ_NO_TARGET);
	assert_int_equal(vgic_poll_lines(unit_vcpu(u, 2)), 0);
	join(u, 1, 1);
	assert_int_equal(target_of(waiting), 1);
	assert_int_equal(vgic_check_at_rest(u->vgic, NULL), 0);
	unit_stop(u);
}

/* A deliverable interrupt that is re-routed to any vCPU stays where it is if that one takes part. */
static void routing_a_pending_interrupt_to_any(void **state)
{
	struct unit *u = unit_start(3, 0, 16);
	struct irq *irq = SPI(u, 5);

	(void)state;
	join(u, 0, 1);
	join(u, 2, 1);
	irq_change(u->vgic, irq, irq_set_bits, IRQ_ENABLED | IRQ_EDGE | IRQ_GROUP1);
	irq_change(u->vgic, irq, irq_route_to, 2);
	irq_change(u->vgic, irq, irq_latch, 0);
	irq_change(u->vgic, irq, irq_route_to_any, 0);
	assert_int_equal(target_of(irq), 2);
	irq_change(u->vgic, irq, irq_route_to, 1);
	irq_change(u->vgic, irq, irq_route_to_any, 0);
	assert_int_equal(target_of(irq), 2);
	irq_change(u->vgic, irq, irq_route_to, IRQ_NO_TARGET);
	irq_change(u->vgic, irq, irq_route_to_any, 0);
	assert_int_equal(target_of(irq), 37 % 3 == 1 ? 2 : 0);
	/* To the other group, where nobody takes part, and where then somebody does. */
	irq_change(u->vgic, irq, irq_clear_bits, IRQ_GROUP1);
	assert_int_equal(target_of(irq), IRQ_NO_TARGET);
	join(u, 1, 0);
	assert_int_equal(target_of(irq), 1);
	unit_stop(u);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(selection_goes_round),
		cmocka_unit_test(first_selection_is_spread_by_intid),
		cmocka_unit_test(nobody_takes_part),
		cmocka_unit_test(random_sets_of_participants),
		cmocka_unit_test(one_participant_among_4096),
		cmocka_unit_test(each_signal_selects_the_next),
		cmocka_unit_test(pending_interrupt_leaves_who_stops),
		cmocka_unit_test(declining_one_group_keeps_the_other),
		cmocka_unit_test(interrupt_that_found_nobody_waits),
		cmocka_unit_test(routing_a_pending_interrupt_to_any),
	};

	return RUN_TESTS("one_of_n", tests);
}
