/* SPDX-License-Identifier: MIT */
/*
 * Interrupt lines: edges and levels, the pending latch beside the line, sources
 * that share a line, and the callback on deactivation.
 */
#include "machine.h"

static void set_spi(struct machine *m, uint32_t intid, unsigned source, bool level)
{
	assert_int_equal(vgic_set_spi(m->vgic, intid, source, level), 0);
}

static void set_ppi(struct machine *m, uint32_t vcpu, uint32_t intid, unsigned source, bool level)
{
	assert_int_equal(vgic_set_ppi(vcpu_of(m, vcpu), intid, source, level), 0);
}

static struct machine *machine_with_level_spi_40(void)
{
	struct machine *m = machine_open(1);

	irq_set_up(m, 0, 40, 1, 0x80);
	irq_set_edge(m, 0, 40, false);
	return m;
}

static struct machine *machine_with_edge_spi_40(void)
{
	struct machine *m = machine_open(1);

	irq_set_up(m, 0, 40, 1, 0x80);
	return m;
}

static void level_is_pending_while_the_line_is_high(void **state)
{
	struct machine *m = machine_with_level_spi_40();

	(void)state;
	set_spi(m, 40, 0, true);
	assert_true(irq_is_pending(m, 0, 40));
	assert_int_equal(lines_of(m, 0), VGIC_LINE_IRQ);
	/* The line falls before the acknowledge: the interrupt is retracted. */
	set_spi(m, 40, 0, false);
	assert_false(irq_is_pending(m, 0, 40));
	assert_int_equal(lines_of(m, 0), 0);
	assert_int_equal(ack1(m, 0), NO_INTERRUPT);
	machine_stop(m);
}

static void level_comes_again_after_eoi_while_the_line_is_high(void **state)
{
	struct machine *m = machine_with_level_spi_40();

	(void)state;
	set_spi(m, 40, 0, true);
	assert_int_equal(ack1(m, 0), 40);
	/* Active and, as the line is still high, pending. */
	assert_true(irq_is_pending(m, 0, 40));
	assert_true(irq_is_active(m, 0, 40));
	assert_int_equal(lines_of(m, 0), 0);
	eoi1(m, 0, 40);
	assert_int_equal(lines_of(m, 0), VGIC_LINE_IRQ);
	assert_int_equal(ack1(m, 0), 40);
	set_spi(m, 40, 0, false);
	eoi1(m, 0, 40);
	assert_int_equal(lines_of(m, 0), 0);
	machine_stop(m);
}

static void clear_pending_does_not_lower_a_line(void **state)
{
	struct machine *m = machine_with_level_spi_40();

	(void)state;
	set_spi(m, 40, 0, true);
	irq_write_bit(m, 0, GICD_ICPENDR, 40);
	assert_true(irq_is_pending(m, 0, 40));
	assert_int_equal(lines_of(m, 0), VGIC_LINE_IRQ);
	set_spi(m, 40, 0, false);
	assert_false(irq_is_pending(m, 0, 40));
	machine_stop(m);
}

static void set_pending_is_a_latch_beside_the_line(void **state)
{
	struct machine *m = machine_with_level_spi_40();

	(void)state;
	irq_write_bit(m, 0, GICD_ISPENDR, 40);
	set_spi(m, 40, 0, true);
	set_spi(m, 40, 0, false);
	assert_true(irq_is_pending(m, 0, 40));
	assert_int_equal(ack1(m, 0), 40);
	assert_false(irq_is_pending(m, 0, 40));
	eoi1(m, 0, 40);
	assert_int_equal(lines_of(m, 0), 0);
	/* The acknowledge takes the latch; the line by itself brings it again. */
	irq_write_bit(m, 0, GICD_ISPENDR, 40);
	set_spi(m, 40, 0, true);
	assert_int_equal(ack1(m, 0), 40);
	set_spi(m, 40, 0, false);
	assert_false(irq_is_pending(m, 0, 40));
	machine_stop(m);
}

static void edge_is_latched_by_the_rise(void **state)
{
	struct machine *m = machine_with_edge_spi_40();

	(void)state;
	set_spi(m, 40, 0, true);
	set_spi(m, 40, 0, false);
	assert_true(irq_is_pending(m, 0, 40));
	assert_int_equal(ack1(m, 0), 40);
	eoi1(m, 0, 40);
	assert_int_equal(lines_of(m, 0), 0);
	set_spi(m, 40, 0, true);
	assert_int_equal(ack1(m, 0), 40);
	assert_false(irq_is_pending(m, 0, 40));
	/* Raised again without having fallen: no edge. */
	set_spi(m, 40, 0, true);
	assert_false(irq_is_pending(m, 0, 40));
	eoi1(m, 0, 40);
	assert_int_equal(lines_of(m, 0), 0);
	/* An edge while active is kept. */
	set_spi(m, 40, 0, false);
	set_spi(m, 40, 0, true);
	assert_int_equal(ack1(m, 0), 40);
	set_spi(m, 40, 0, false);
	set_spi(m, 40, 0, true);
	eoi1(m, 0, 40);
	assert_int_equal(ack1(m, 0), 40);
	machine_stop(m);
}

static void clear_pending_drops_an_edge(void **state)
{
	struct machine *m = machine_with_edge_spi_40();

	(void)state;
	set_spi(m, 40, 0, true);
	irq_write_bit(m, 0, GICD_ICPENDR, 40);
	assert_false(irq_is_pending(m, 0, 40));
	assert_int_equal(lines_of(m, 0), 0);
	machine_stop(m);
}

static void configuration_keeps_latch_and_line(void **state)
{
	struct machine *m = machine_with_edge_spi_40();

	(void)state;
	/* Edge with the line high, and no latch: to level, it is pending by its line. */
	set_spi(m, 40, 0, true);
	irq_write_bit(m, 0, GICD_ICPENDR, 40);
	assert_false(irq_is_pending(m, 0, 40));
	irq_set_edge(m, 0, 40, false);
	assert_int_equal(lines_of(m, 0), VGIC_LINE_IRQ);
	/* And back: no edge has happened. */
	irq_set_edge(m, 0, 40, true);
	assert_int_equal(lines_of(m, 0), 0);
	irq_write_bit(m, 0, GICD_ISPENDR, 40);
	irq_set_edge(m, 0, 40, false);
	set_spi(m, 40, 0, false);
	assert_true(irq_is_pending(m, 0, 40));
	machine_stop(m);
}

static void line_is_the_or_of_its_sources(void **state)
{
	struct machine *m = machine_with_level_spi_40();

	(void)state;
	for (unsigned source = 0; source < VGIC_NUM_LINE_SOURCES; source++)
		set_spi(m, 40, source, true);
	for (unsigned source = 0; source < VGIC_NUM_LINE_SOURCES; source++) {
		assert_true(irq_is_pending(m, 0, 40));
		set_spi(m, 40, source, false);
		/* Lowering what is low changes nothing. */
		set_spi(m, 40, source, false);
	}
	assert_false(irq_is_pending(m, 0, 40));
	machine_stop(m);
}

static void second_source_makes_no_second_edge(void **state)
{
	struct machine *m = machine_with_edge_spi_40();

	(void)state;
	set_spi(m, 40, 3, true);
	assert_int_equal(ack1(m, 0), 40);
	set_spi(m, 40, 7, true);
	set_spi(m, 40, 3, false);
	set_spi(m, 40, 3, true);
	assert_false(irq_is_pending(m, 0, 40));
	set_spi(m, 40, 7, false);
	set_spi(m, 40, 3, false);
	set_spi(m, 40, 23, true);
	assert_true(irq_is_pending(m, 0, 40));
	machine_stop(m);
}

static void ppi_lines_are_each_vcpus_own(void **state)
{
	struct machine *m = machine_open(2);

	(void)state;
	irq_set_up(m, 0, 27, 1, 0x80);
	irq_set_up(m, 1, 27, 1, 0x80);
	set_ppi(m, 1, 27, 0, true);
	assert_false(irq_is_pending(m, 0, 27));
	assert_int_equal(lines_of(m, 0), 0);
	assert_int_equal(ack1(m, 1), 27);
	set_ppi(m, 1, 27, 0, false);
	eoi1(m, 1, 27);
	assert_int_equal(lines_of(m, 1), 0);
	/* PPIs reset to level-sensitive, and can be edge-triggered. */
	irq_set_edge(m, 0, 27, true);
	set_ppi(m, 0, 27, 0, true);
	set_ppi(m, 0, 27, 0, false);
	assert_int_equal(ack1(m, 0), 27);
	machine_stop(m);
}

static void every_ppi_and_spi_can_be_driven(void **state)
{
	struct machine *m = machine_describe(VGIC_PROFILE_NATIVE, 1);

	(void)state;
	m->config.num_spis = 988;
	machine_start(m);
	for (uint32_t intid = 16; intid < 32; intid++) {
		set_ppi(m, 0, intid, 0, true);
		assert_int_equal(redist_read(m, 0, GICR_ISPENDR0), 1u << intid);
		set_ppi(m, 0, intid, 0, false);
	}
	for (uint32_t intid = 32; intid < GIC_END_SPI; intid++) {
		set_spi(m, intid, 0, true);
		assert_int_equal(dist_read(m, GICD_ISPENDR + intid / 32 * 4), 1u << (intid % 32));
		set_spi(m, intid, 0, false);
		assert_int_equal(dist_read(m, GICD_ISPENDR + intid / 32 * 4), 0);
	}
	machine_stop(m);
}

static void pulse_is_for_edge_triggered_spis(void **state)
{
	struct machine *m = machine_with_edge_spi_40();

	(void)state;
	assert_int_equal(vgic_pulse_spi(m->vgic, 40), 1);
	assert_int_equal(vgic_pulse_spi(m->vgic, 40), 1);
	assert_int_equal(ack1(m, 0), 40);
	eoi1(m, 0, 40);
	assert_int_equal(ack1(m, 0), NO_INTERRUPT);
	irq_set_edge(m, 0, 40, false);
	assert_int_equal(vgic_pulse_spi(m->vgic, 40), 0);
	assert_false(irq_is_pending(m, 0, 40));
	machine_stop(m);
}

/* ---- Deactivation ---- */

static void deactivation_of_a_level_interrupt_is_told_once(void **state)
{
	struct machine *m = machine_with_level_spi_40();

	(void)state;
	/* The source stays high: each EOI gives one call and one new interrupt. */
	set_spi(m, 40, 0, true);
	for (unsigned i = 1; i <= 3; i++) {
		assert_int_equal(ack1(m, 0), 40);
		assert_int_equal(m->num_deactivated, i - 1);
		eoi1(m, 0, 40);
		assert_int_equal(m->num_deactivated, i);
		assert_int_equal(m->deactivated_intid, 40);
		assert_null(m->deactivated_vcpu);
	}
	/* The source falls in the handler: one more call, no more interrupts. */
	assert_int_equal(ack1(m, 0), 40);
	set_spi(m, 40, 0, false);
	eoi1(m, 0, 40);
	assert_int_equal(m->num_deactivated, 4);
	assert_int_equal(ack1(m, 0), NO_INTERRUPT);
	machine_stop(m);
}

static void deactivation_of_a_ppi_names_its_vcpu(void **state)
{
	struct machine *m = machine_open(2);

	(void)state;
	irq_set_up(m, 1, 27, 1, 0x80);
	set_ppi(m, 1, 27, 0, true);
	assert_int_equal(ack1(m, 1), 27);
	eoi1(m, 1, 27);
	assert_int_equal(m->num_deactivated, 1);
	assert_int_equal(m->deactivated_intid, 27);
	assert_ptr_equal(m->deactivated_vcpu, vcpu_of(m, 1));
	machine_stop(m);
}

static void deactivation_by_dir_and_icactiver_is_told_too(void **state)
{
	struct machine *m = machine_with_level_spi_40();

	(void)state;
	irq_set_up(m, 0, 27, 1, 0x90);
	icc_write(m, 0, VGIC_ICC_CTLR_EL1, ICC_CTLR_EOIMODE);
	set_spi(m, 40, 0, true);
	set_ppi(m, 0, 27, 0, true);
	assert_int_equal(ack1(m, 0), 40);
	eoi1(m, 0, 40);
	assert_int_equal(m->num_deactivated, 0);
	icc_write(m, 0, VGIC_ICC_DIR_EL1, 40);
	assert_int_equal(m->num_deactivated, 1);
	icc_write(m, 0, VGIC_ICC_DIR_EL1, 40);
	assert_int_equal(m->num_deactivated, 1);
	assert_int_equal(ack1(m, 0), 40);
	irq_write_bit(m, 0, GICD_ICACTIVER, 40);
	assert_int_equal(m->num_deactivated, 2);
	assert_int_equal(m->deactivated_intid, 40);
	assert_null(m->deactivated_vcpu);
	irq_write_bit(m, 0, GICD_ICACTIVER, 40);
	assert_int_equal(m->num_deactivated, 2);
	irq_write_bit(m, 0, GICD_ISACTIVER, 27);
	irq_write_bit(m, 0, GICD_ICACTIVER, 27);
	assert_int_equal(m->num_deactivated, 3);
	assert_int_equal(m->deactivated_intid, 27);
	assert_ptr_equal(m->deactivated_vcpu, vcpu_of(m, 0));
	machine_stop(m);
}

static void deactivation_of_edges_is_not_told(void **state)
{
	struct machine *m = machine_with_edge_spi_40();

	(void)state;
	irq_set_up(m, 0, 3, 1, 0x90);
	irq_write_bit(m, 0, GICD_ISPENDR, 3);
	assert_int_equal(vgic_pulse_spi(m->vgic, 40), 1);
	assert_int_equal(ack1(m, 0), 40);
	eoi1(m, 0, 40);
	assert_int_equal(ack1(m, 0), 3);
	eoi1(m, 0, 3);
	irq_write_bit(m, 0, GICD_ISACTIVER, 40);
	irq_write_bit(m, 0, GICD_ICACTIVER, 40);
	assert_int_equal(m->num_deactivated, 0);
	machine_stop(m);
}

static void lower_line_40(struct machine *m, uint32_t intid)
{
	assert_int_equal(vgic_set_spi(m->vgic, intid, 0, false), 0);
}

static void lower_and_raise_line_40(struct machine *m, uint32_t intid)
{
	assert_int_equal(vgic_set_spi(m->vgic, intid, 0, false), 0);
	assert_int_equal(vgic_set_spi(m->vgic, intid, 0, true), 0);
}

static void pulse_line_41(struct machine *m, uint32_t intid)
{
	(void)intid;
	assert_int_equal(vgic_pulse_spi(m->vgic, 41), 1);
}

/* The one callback that may call back: a device that resamples its line. */
static void device_may_drive_lines_from_deactivated(void **state)
{
	struct machine *m = machine_with_level_spi_40();

	(void)state;
	irq_set_up(m, 0, 41, 1, 0x70);
	set_spi(m, 40, 0, true);
	m->on_deactivated = lower_and_raise_line_40;
	assert_int_equal(ack1(m, 0), 40);
	eoi1(m, 0, 40);
	assert_int_equal(lines_of(m, 0), VGIC_LINE_IRQ);
	m->on_deactivated = pulse_line_41;
	assert_int_equal(ack1(m, 0), 40);
	eoi1(m, 0, 40);
	assert_int_equal(ack1(m, 0), 41);
	eoi1(m, 0, 41);
	m->on_deactivated = lower_line_40;
	assert_int_equal(ack1(m, 0), 40);
	irq_write_bit(m, 0, GICD_ICACTIVER, 40);
	assert_int_equal(m->num_deactivated, 3);
	assert_int_equal(lines_of(m, 0), 0);
	machine_stop(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(level_is_pending_while_the_line_is_high),
		cmocka_unit_test(level_comes_again_after_eoi_while_the_line_is_high),
		cmocka_unit_test(clear_pending_does_not_lower_a_line),
		cmocka_unit_test(set_pending_is_a_latch_beside_the_line),
		cmocka_unit_test(edge_is_latched_by_the_rise),
		cmocka_unit_test(clear_pending_drops_an_edge),
		cmocka_unit_test(configuration_keeps_latch_and_line),
		cmocka_unit_test(line_is_the_or_of_its_sources),
		cmocka_unit_test(second_source_makes_no_second_edge),
		cmocka_unit_test(ppi_lines_are_each_vcpus_own),
		cmocka_unit_test(every_ppi_and_spi_can_be_driven),
		cmocka_unit_test(pulse_is_for_edge_triggered_spis),
		cmocka_unit_test(deactivation_of_a_level_interrupt_is_told_once),
		cmocka_unit_test(deactivation_of_a_ppi_names_its_vcpu),
		cmocka_unit_test(deactivation_by_dir_and_icactiver_is_told_too),
		cmocka_unit_test(deactivation_of_edges_is_not_told),
		cmocka_unit_test(device_may_drive_lines_from_deactivated),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("lines", tests, NULL, NULL);
}
