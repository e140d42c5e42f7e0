/* SPDX-License-Identifier: MIT */
/*
 * vCPUs that come and go: 1-of-N distribution, who takes part in it, and what
 * happens to interrupts of vCPUs that are powered off.
 */
#include "machine.h"

#define ANY_VCPU GICD_IROUTER_IRM
#define NOBODY   UINT32_MAX

/* SPI @intid as 1-of-N, Group 1. */
static void set_up_one_of_n(struct machine *m, uint32_t intid)
{
	irq_set_up(m, 0, intid, 1, 0x80);
	spi_route(m, intid, ANY_VCPU);
}

/* The vCPU that signals @intid: exactly one, or NOBODY. */
static uint32_t signalled_at(struct machine *m, uint32_t intid)
{
	uint32_t found = NOBODY;

	for (uint32_t v = 0; v < m->config.num_vcpus; v++) {
		if (lines_of(m, v) == 0)
			continue;
		assert_int_equal(found, NOBODY);
		assert_int_equal(icc_read(m, v, VGIC_ICC_HPPIR1_EL1), intid);
		found = v;
	}
	return found;
}

static void pulse(struct machine *m, uint32_t intid)
{
	assert_int_equal(vgic_pulse_spi(m->vgic, intid), 1);
}

static void one_of_n_is_acknowledged_once(void **state)
{
	struct machine *m = machine_open(4);

	(void)state;
	set_up_one_of_n(m, 40);
	for (unsigned i = 0; i < 100; i++) {
		unsigned acknowledged = 0;

		pulse(m, 40);
		for (uint32_t v = 0; v < 4; v++) {
			if (ack1(m, v) == 40) {
				acknowledged++;
				eoi1(m, v, 40);
			}
		}
		assert_int_equal(acknowledged, 1);
	}
	assert_int_equal(stats_of(m).acknowledges, 100);
	machine_stop(m);
}

/* A hundred interrupts do not all go to one of four idle vCPUs. */
static void one_of_n_spreads(void **state)
{
	struct machine *m = machine_open(4);
	unsigned count[4] = { 0 };

	(void)state;
	set_up_one_of_n(m, 40);
	for (unsigned i = 0; i < 100; i++) {
		uint32_t v;

		pulse(m, 40);
		v = signalled_at(m, 40);
		assert_in_range(v, 0, 3);
		assert_int_equal(ack1(m, v), 40);
		eoi1(m, v, 40);
		count[v]++;
	}
	for (uint32_t v = 0; v < 4; v++)
		assert_in_range(count[v], 10, 50);
	machine_stop(m);
}

static void different_one_of_n_interrupts_spread(void **state)
{
	struct machine *m = machine_open(4);
	unsigned count[4] = { 0 };

	(void)state;
	for (uint32_t intid = 32; intid < 132; intid++) {
		set_up_one_of_n(m, intid);
		pulse(m, intid);
	}
	for (uint32_t v = 0; v < 4; v++) {
		uint32_t intid;

		while ((intid = ack1(m, v)) != NO_INTERRUPT) {
			eoi1(m, v, intid);
			count[v]++;
		}
	}
	assert_int_equal(count[0] + count[1] + count[2] + count[3], 100);
	for (uint32_t v = 0; v < 4; v++)
		assert_in_range(count[v], 10, 50);
	machine_stop(m);
}

/* Ways in which a vCPU stops taking part, and begins again. */
static void fall_asleep(struct machine *m, uint32_t v)
{
	redist_write(m, v, GICR_WAKER, GICR_WAKER_PROCESSOR_SLEEP);
}

static void wake(struct machine *m, uint32_t v)
{
	redist_write(m, v, GICR_WAKER, 0);
}

static void go_offline(struct machine *m, uint32_t v)
{
	vgic_vcpu_set_online(vcpu_of(m, v), false);
}

static void go_online(struct machine *m, uint32_t v)
{
	vgic_vcpu_set_online(vcpu_of(m, v), true);
}

static void disable_group1(struct machine *m, uint32_t v)
{
	icc_write(m, v, VGIC_ICC_IGRPEN1_EL1, 0);
}

static void enable_group1(struct machine *m, uint32_t v)
{
	icc_write(m, v, VGIC_ICC_IGRPEN1_EL1, 1);
}

static void decline(struct machine *m, uint32_t v)
{
	redist_write(m, v, GICR_CTLR, GICR_CTLR_DPG1NS);
}

static void accept(struct machine *m, uint32_t v)
{
	redist_write(m, v, GICR_CTLR, 0);
}

static void reset_cpu_interface(struct machine *m, uint32_t v)
{
	vgic_vcpu_reset(vcpu_of(m, v));
}

static void open_cpu_interface(struct machine *m, uint32_t v)
{
	icc_write(m, v, VGIC_ICC_PMR_EL1, 0xf8);
	icc_write(m, v, VGIC_ICC_IGRPEN1_EL1, 1);
}

static const struct {
	void (*leave)(struct machine *m, uint32_t vcpu);
	void (*join)(struct machine *m, uint32_t vcpu);
} ways[] = {
	{ fall_asleep, wake },
	{ go_offline, go_online },
	{ disable_group1, enable_group1 },
	{ decline, accept },
	{ reset_cpu_interface, open_cpu_interface },
};

#define NUM_WAYS (sizeof(ways) / sizeof(ways[0]))

/* A signalled 1-of-N interrupt is passed on from vCPU to vCPU until none is left, and comes back with the first. */
static void one_of_n_is_reselected_when_its_vcpu_leaves(void **state)
{
	(void)state;
	for (size_t way = 0; way < NUM_WAYS; way++) {
		struct machine *m = machine_open(4);
		bool left[4] = { false };

		set_up_one_of_n(m, 40);
		pulse(m, 40);
		for (unsigned i = 0; i < 4; i++) {
			const uint32_t v = signalled_at(m, 40);

			assert_in_range(v, 0, 3);
			assert_false(left[v]);
			left[v] = true;
			ways[way].leave(m, v);
		}
		assert_int_equal(signalled_at(m, 40), NOBODY);
		assert_true(irq_is_pending(m, 0, 40));
		for (uint32_t v = 0; v < 4; v++)
			assert_int_equal(ack1(m, v), NO_INTERRUPT);
		ways[way].join(m, 2);
		assert_int_equal(signalled_at(m, 40), 2);
		assert_int_equal(ack1(m, 2), 40);
		machine_stop(m);
	}
}

/* Whoever does not take part gets none, whatever the order in which that came about. */
static void one_of_n_avoids_those_that_do_not_take_part(void **state)
{
	(void)state;
	for (size_t way = 0; way < NUM_WAYS; way++) {
		struct machine *m = machine_open(3);

		set_up_one_of_n(m, 40);
		ways[way].leave(m, 0);
		ways[way].leave(m, 2);
		for (unsigned i = 0; i < 12; i++) {
			pulse(m, 40);
			assert_int_equal(signalled_at(m, 40), 1);
			assert_int_equal(ack1(m, 1), 40);
			eoi1(m, 1, 40);
		}
		machine_stop(m);
	}
}

/* DPG0 declines Group 0, DPG1NS Group 1; DPG1S is not there with one security state. */
static void each_dpg_bit_is_of_its_group(void **state)
{
	struct machine *m = machine_open(2);

	(void)state;
	irq_set_up(m, 0, 41, 0, 0x80);
	spi_route(m, 41, ANY_VCPU);
	set_up_one_of_n(m, 40);
	redist_write(m, 0, GICR_CTLR, GICR_CTLR_DPG0 | GICR_CTLR_DPG1S);
	redist_write(m, 1, GICR_CTLR, GICR_CTLR_DPG1NS);
	assert_int_equal(redist_read(m, 0, GICR_CTLR), GICR_CTLR_DPG0);
	for (unsigned i = 0; i < 6; i++) {
		pulse(m, 40);
		pulse(m, 41);
		assert_int_equal(ack0(m, 0), NO_INTERRUPT);
		assert_int_equal(ack1(m, 1), NO_INTERRUPT);
		assert_int_equal(ack1(m, 0), 40);
		assert_int_equal(ack0(m, 1), 41);
		eoi1(m, 0, 40);
		eoi0(m, 1, 41);
	}
	machine_stop(m);
}

/* A change of group asks anew who takes part. */
static void one_of_n_follows_its_group(void **state)
{
	struct machine *m = machine_open(2);

	(void)state;
	set_up_one_of_n(m, 40);
	icc_write(m, 0, VGIC_ICC_IGRPEN0_EL1, 0);
	icc_write(m, 1, VGIC_ICC_IGRPEN1_EL1, 0);
	pulse(m, 40);
	assert_int_equal(lines_of(m, 0), VGIC_LINE_IRQ);
	assert_int_equal(lines_of(m, 1), 0);
	irq_set_group(m, 0, 40, 0);
	assert_int_equal(lines_of(m, 0), 0);
	assert_int_equal(lines_of(m, 1), VGIC_LINE_FIQ);
	irq_set_group(m, 0, 40, 1);
	assert_int_equal(ack1(m, 0), 40);
	machine_stop(m);
}

/* IRM set on a pending interrupt whose target does not take part, and cleared again. */
static void pending_interrupt_becomes_one_of_n(void **state)
{
	struct machine *m = machine_open(3);

	(void)state;
	irq_set_up(m, 0, 40, 1, 0x80);
	fall_asleep(m, 0);
	fall_asleep(m, 2);
	pulse(m, 40);
	assert_int_equal(signalled_at(m, 40), 0);
	spi_route(m, 40, ANY_VCPU);
	assert_int_equal(signalled_at(m, 40), 1);
	spi_route(m, 40, m->vcpus[2].affinity);
	assert_int_equal(signalled_at(m, 40), 2);
	assert_int_equal(ack1(m, 2), 40);
	machine_stop(m);
}

/* Pending, but disabled or active: it is given to someone who takes part when it can be delivered, not before. */
static void one_of_n_is_selected_when_it_becomes_deliverable(void **state)
{
	struct machine *m = machine_open(2);

	(void)state;
	set_up_one_of_n(m, 40);
	irq_write_bit(m, 0, GICD_ICENABLER, 40);
	pulse(m, 40);
	fall_asleep(m, 0);
	irq_write_bit(m, 0, GICD_ISENABLER, 40);
	assert_int_equal(signalled_at(m, 40), 1);
	assert_int_equal(ack1(m, 1), 40);
	pulse(m, 40);
	wake(m, 0);
	fall_asleep(m, 1);
	assert_int_equal(signalled_at(m, 40), NOBODY);
	eoi1(m, 1, 40);
	assert_int_equal(signalled_at(m, 40), 0);
	assert_int_equal(ack1(m, 0), 40);
	machine_stop(m);
}

/* A masked vCPU takes part: PMR is no reason to be passed over, and none to lose an interrupt. */
static void one_of_n_at_a_masked_vcpu_is_kept(void **state)
{
	struct machine *m = machine_open(1);

	(void)state;
	set_up_one_of_n(m, 40);
	icc_write(m, 0, VGIC_ICC_PMR_EL1, 0);
	pulse(m, 40);
	assert_int_equal(lines_of(m, 0), 0);
	icc_write(m, 0, VGIC_ICC_PMR_EL1, 0xf8);
	assert_int_equal(ack1(m, 0), 40);
	machine_stop(m);
}

static void one_of_n_level_line_moves_and_falls(void **state)
{
	struct machine *m = machine_open(2);
	uint32_t v;

	(void)state;
	set_up_one_of_n(m, 40);
	irq_set_edge(m, 0, 40, false);
	assert_int_equal(vgic_set_spi(m->vgic, 40, 0, true), 0);
	v = signalled_at(m, 40);
	assert_in_range(v, 0, 1);
	go_offline(m, v);
	assert_int_equal(signalled_at(m, 40), 1 - v);
	assert_int_equal(vgic_set_spi(m->vgic, 40, 0, false), 0);
	assert_int_equal(signalled_at(m, 40), NOBODY);
	machine_stop(m);
}

/* The vCPU that gets a re-selected interrupt may be asleep in its wait: it has to be kicked. */
static void reselection_kicks_the_new_vcpu(void **state)
{
	struct machine *m = machine_open(2);
	uint32_t v;

	(void)state;
	set_up_one_of_n(m, 40);
	pulse(m, 40);
	v = signalled_at(m, 40);
	assert_in_range(v, 0, 1);
	assert_int_equal(vgic_prepare_wait(vcpu_of(m, 1 - v)), 0);
	m->kicks[1 - v] = 0;
	go_offline(m, v);
	assert_int_equal(m->kicks[1 - v], 1);
	vgic_finish_wait(vcpu_of(m, 1 - v));
	assert_int_equal(ack1(m, 1 - v), 40);
	machine_stop(m);
}

/* ---- Power ---- */

static void offline_vcpu_has_no_line_and_keeps_what_is_routed_to_it(void **state)
{
	struct machine *m = machine_open(2);

	(void)state;
	irq_set_up(m, 1, 40, 1, 0x80);
	irq_set_up(m, 1, 27, 1, 0x90);
	pulse(m, 40);
	assert_int_equal(lines_of(m, 1), VGIC_LINE_IRQ);
	go_offline(m, 1);
	assert_int_equal(lines_of(m, 1), 0);
	assert_int_equal(ack1(m, 1), NO_INTERRUPT);
	assert_int_equal(icc_read(m, 1, VGIC_ICC_HPPIR1_EL1), GIC_SPURIOUS);
	assert_int_equal(vgic_set_ppi(vcpu_of(m, 1), 27, 0, true), 0);
	assert_int_equal(lines_of(m, 1), 0);
	assert_int_equal(lines_of(m, 0), 0);
	assert_true(irq_is_pending(m, 1, 40));
	assert_true(irq_is_pending(m, 1, 27));
	/* Nothing of it can be seen in a register, and registers can be written. */
	assert_int_equal(redist_read(m, 1, GICR_WAKER), 0);
	assert_int_equal(redist_read_width(m, 1, GICR_TYPER, 8) >> GICR_TYPER_AFFINITY_SHIFT, 1);
	redist_write(m, 1, GICR_ISENABLER0, 1u << 5);
	assert_true(irq_read_bit(m, 1, GICD_ISENABLER, 5));
	go_online(m, 1);
	assert_int_equal(ack1(m, 1), 40);
	eoi1(m, 1, 40);
	assert_int_equal(ack1(m, 1), 27);
	machine_stop(m);
}

static void online_twice_is_online(void **state)
{
	struct machine *m = machine_open(1);

	(void)state;
	irq_set_up(m, 0, 40, 1, 0x80);
	pulse(m, 40);
	go_online(m, 0);
	assert_int_equal(lines_of(m, 0), VGIC_LINE_IRQ);
	go_offline(m, 0);
	go_offline(m, 0);
	assert_int_equal(lines_of(m, 0), 0);
	go_online(m, 0);
	assert_int_equal(lines_of(m, 0), VGIC_LINE_IRQ);
	machine_stop(m);
}

/* CPU_OFF and CPU_ON as a VMM does them: the interface is reset in between, the rest is not. */
static void vcpu_can_be_off_and_on_again(void **state)
{
	struct machine *m = machine_open(2);

	(void)state;
	irq_set_up(m, 1, 3, 1, 0x80);
	go_offline(m, 1);
	icc_write(m, 0, VGIC_ICC_SGI1R_EL1, 3ull << ICC_SGIR_INTID_SHIFT | 2);
	reset_cpu_interface(m, 1);
	go_online(m, 1);
	assert_int_equal(lines_of(m, 1), 0);
	open_cpu_interface(m, 1);
	assert_int_equal(lines_of(m, 1), VGIC_LINE_IRQ);
	assert_int_equal(ack1(m, 1), 3);
	machine_stop(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_of_n_is_acknowledged_once),
		cmocka_unit_test(one_of_n_spreads),
		cmocka_unit_test(different_one_of_n_interrupts_spread),
		cmocka_unit_test(one_of_n_is_reselected_when_its_vcpu_leaves),
		cmocka_unit_test(one_of_n_avoids_those_that_do_not_take_part),
		cmocka_unit_test(each_dpg_bit_is_of_its_group),
		cmocka_unit_test(one_of_n_follows_its_group),
		cmocka_unit_test(pending_interrupt_becomes_one_of_n),
		cmocka_unit_test(one_of_n_is_selected_when_it_becomes_deliverable),
		cmocka_unit_test(one_of_n_at_a_masked_vcpu_is_kept),
		cmocka_unit_test(one_of_n_level_line_moves_and_falls),
		cmocka_unit_test(reselection_kicks_the_new_vcpu),
		cmocka_unit_test(offline_vcpu_has_no_line_and_keeps_what_is_routed_to_it),
		cmocka_unit_test(online_twice_is_online),
		cmocka_unit_test(vcpu_can_be_off_and_on_again),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("routing", tests, NULL, NULL);
}
