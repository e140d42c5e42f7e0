/* SPDX-License-Identifier: MIT */
/*
 * What the VMM is told: kicks, line changes, guest errors and counters, and the
 * calls around guest entry and waiting.
 */
#include <string.h>

#include "machine.h"

static void pulse(struct machine *m, uint32_t intid)
{
	assert_int_equal(vgic_pulse_spi(m->vgic, intid), 1);
}

/* A machine whose vCPUs have all looked at their lines, and whose kicks are counted from zero. */
static struct machine *machine_at_rest(uint32_t num_vcpus)
{
	struct machine *m = machine_open(num_vcpus);

	for (uint32_t intid = 40; intid < 48; intid++)
		irq_set_up(m, num_vcpus - 1, intid, 1, 0x80);
	for (uint32_t v = 0; v < num_vcpus; v++)
		assert_int_equal(lines_of(m, v), 0);
	memset(m->kicks, 0, num_vcpus * sizeof(m->kicks[0]));
	m->num_kicks = 0;
	return m;
}

/* ---- Kicks ---- */

static void kick_is_made_once_until_it_is_answered(void **state)
{
	static unsigned (*const answers[])(struct vgic_vcpu * vcpu) = { vgic_poll_lines, vgic_enter_guest,
									vgic_prepare_wait };

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		struct machine *m = machine_at_rest(2);

		pulse(m, 40);
		assert_int_equal(m->kicks[1], 1);
		pulse(m, 40);
		pulse(m, 41);
		pulse(m, 42);
		assert_int_equal(m->num_kicks, 1);
		assert_int_equal(answers[i](vcpu_of(m, 1)), VGIC_LINE_IRQ);
		pulse(m, 43);
		pulse(m, 44);
		assert_int_equal(m->kicks[1], 2);
		assert_int_equal(m->num_kicks, 2);
		assert_int_equal(stats_of(m).kicks >= 2, 1);
		machine_stop(m);
	}
}

static void leaving_the_guest_answers_no_kick(void **state)
{
	struct machine *m = machine_at_rest(1);

	(void)state;
	vgic_enter_guest(vcpu_of(m, 0));
	pulse(m, 40);
	assert_int_equal(m->num_kicks, 1);
	vgic_exit_guest(vcpu_of(m, 0));
	pulse(m, 41);
	assert_int_equal(m->num_kicks, 1);
	assert_int_equal(vgic_prepare_wait(vcpu_of(m, 0)), VGIC_LINE_IRQ);
	vgic_finish_wait(vcpu_of(m, 0));
	pulse(m, 42);
	assert_int_equal(m->num_kicks, 2);
	machine_stop(m);
}

static void what_cannot_be_signalled_makes_no_kick(void **state)
{
	struct machine *m = machine_at_rest(1);

	(void)state;
	/* Disabled; */
	irq_write_bit(m, 0, GICD_ICENABLER, 40);
	pulse(m, 40);
	/* masked by PMR; */
	icc_write(m, 0, VGIC_ICC_PMR_EL1, 0x80);
	pulse(m, 41);
	icc_write(m, 0, VGIC_ICC_PMR_EL1, 0xf8);
	assert_int_equal(ack1(m, 0), 41);
	/* without the priority to preempt; */
	pulse(m, 42);
	/* active already; */
	pulse(m, 41);
	assert_int_equal(m->num_kicks, 0);
	eoi1(m, 0, 41);
	assert_int_equal(lines_of(m, 0), VGIC_LINE_IRQ);
	m->num_kicks = 0;
	/* group disabled at the CPU interface, and at the distributor. */
	icc_write(m, 0, VGIC_ICC_IGRPEN1_EL1, 0);
	pulse(m, 43);
	icc_write(m, 0, VGIC_ICC_IGRPEN1_EL1, 1);
	dist_write(m, GICD_CTLR, GICD_CTLR_ENABLE_GRP0);
	pulse(m, 44);
	assert_int_equal(m->num_kicks, 0);
	machine_stop(m);
}

static void signal_that_is_pending_already_makes_no_second_kick(void **state)
{
	struct machine *m = machine_at_rest(1);

	(void)state;
	pulse(m, 40);
	assert_int_equal(lines_of(m, 0), VGIC_LINE_IRQ);
	assert_int_equal(m->num_kicks, 1);
	/* The vCPU knows of it: the same signal again is no news. */
	pulse(m, 40);
	assert_int_equal(m->num_kicks, 1);
	machine_stop(m);
}

/* Every way in which something becomes deliverable has to wake a vCPU that waits. */
static void each_way_to_become_deliverable_kicks_a_waiting_vcpu(void **state)
{
	struct machine *m = machine_at_rest(2);
	struct vgic_vcpu *waiting = vcpu_of(m, 1);

	(void)state;
	irq_set_up(m, 1, 27, 1, 0x80);
	irq_set_up(m, 1, 3, 1, 0x80);
	irq_set_up(m, 0, 50, 1, 0x80);

	for (unsigned way = 0; way < 13; way++) {
		uint32_t expected = 40;

		/* What keeps it from being delivered, before the vCPU waits. */
		switch (way) {
		case 0:
		case 1:
		case 2:
		case 3:
		case 4:
		case 5:
			break;
		case 6:
			irq_write_bit(m, 1, GICD_ICENABLER, 40);
			irq_write_bit(m, 1, GICD_ISPENDR, 40);
			break;
		case 7:
			irq_set_priority(m, 1, 40, 0xf8);
			irq_write_bit(m, 1, GICD_ISPENDR, 40);
			break;
		case 8:
			spi_route(m, 40, 0x77);
			irq_write_bit(m, 1, GICD_ISPENDR, 40);
			break;
		case 9:
			dist_write(m, GICD_CTLR, 0);
			irq_write_bit(m, 1, GICD_ISPENDR, 40);
			break;
		case 10:
			irq_write_bit(m, 1, GICD_ISACTIVER, 40);
			irq_write_bit(m, 1, GICD_ISPENDR, 40);
			break;
		case 11:
			vgic_vcpu_set_online(waiting, false);
			irq_write_bit(m, 1, GICD_ISPENDR, 40);
			break;
		case 12:
			icc_write(m, 1, VGIC_ICC_IGRPEN1_EL1, 0);
			irq_set_group(m, 1, 40, 1);
			irq_write_bit(m, 1, GICD_ISPENDR, 40);
			break;
		}
		assert_int_equal(vgic_prepare_wait(waiting), 0);
		m->kicks[1] = 0;

		switch (way) {
		case 0:
			pulse(m, 40);
			break;
		case 1:
			assert_int_equal(vgic_set_spi(m->vgic, 40, 0, true), 0);
			assert_int_equal(vgic_set_spi(m->vgic, 40, 0, false), 0);
			break;
		case 2:
			assert_int_equal(vgic_set_ppi(waiting, 27, 0, true), 0);
			expected = 27;
			break;
		case 3:
			icc_write(m, 0, VGIC_ICC_SGI1R_EL1, 3ull << ICC_SGIR_INTID_SHIFT | 2);
			expected = 3;
			break;
		case 4:
			irq_write_bit(m, 1, GICD_ISPENDR, 40);
			break;
		case 5:
			dist_write(m, GICD_SETSPI_NSR, 40);
			break;
		case 6:
			irq_write_bit(m, 1, GICD_ISENABLER, 40);
			break;
		case 7:
			irq_set_priority(m, 1, 40, 0x80);
			break;
		case 8:
			spi_route(m, 40, m->vcpus[1].affinity);
			break;
		case 9:
			dist_write(m, GICD_CTLR, 3);
			break;
		case 10:
			irq_write_bit(m, 1, GICD_ICACTIVER, 40);
			break;
		case 11:
			vgic_vcpu_set_online(waiting, true);
			break;
		case 12:
			irq_set_group(m, 1, 40, 0);
			break;
		}
		assert_int_equal(m->kicks[1], 1);
		vgic_finish_wait(waiting);
		assert_int_equal(lines_of(m, 1), way == 12 ? VGIC_LINE_FIQ : VGIC_LINE_IRQ);
		if (way == 12) {
			assert_int_equal(ack0(m, 1), 40);
			eoi0(m, 1, 40);
		} else {
			assert_int_equal(ack1(m, 1), expected);
			if (expected == 27)
				assert_int_equal(vgic_set_ppi(waiting, 27, 0, false), 0);
			eoi1(m, 1, expected);
		}
	}
	machine_stop(m);
}

/* Ways in which an interrupt that hides another one gets out of its way. */
static void clear_pending(struct machine *m)
{
	irq_write_bit(m, 0, GICD_ICPENDR, 41);
}

static void disable(struct machine *m)
{
	irq_write_bit(m, 0, GICD_ICENABLER, 41);
}

static void make_active(struct machine *m)
{
	irq_write_bit(m, 0, GICD_ISACTIVER, 41);
}

static void lower_priority(struct machine *m)
{
	irq_set_priority(m, 0, 41, 0xa0);
}

static void route_away(struct machine *m)
{
	spi_route(m, 41, 0x55);
}

static void disable_group1(struct machine *m)
{
	dist_write(m, GICD_CTLR, GICD_CTLR_ENABLE_GRP0);
}

/*
 * SPI 41 has the highest priority but cannot preempt, and so hides SPI 42 of the other group, which could: nothing is
 * signalled, and the vCPU waits. When 41 goes away no new interrupt arrives, but the vCPU has to wake up.
 */
static void hidden_interrupt_kicks_when_it_comes_to_light(void **state)
{
	static void (*const ways[])(struct machine * m) = { clear_pending,  disable,    make_active,
							    lower_priority, route_away, disable_group1 };

	(void)state;
	for (size_t way = 0; way < sizeof(ways) / sizeof(ways[0]); way++) {
		struct machine *m = machine_at_rest(1);

		irq_set_up(m, 0, 41, 1, 0x48);
		irq_set_up(m, 0, 42, 0, 0x50);
		icc_write(m, 0, VGIC_ICC_BPR1_EL1, 6);
		icc_write(m, 0, VGIC_ICC_BPR0_EL1, 7);
		icc_write(m, 0, VGIC_ICC_AP1R0_EL1, 1u << 8);
		pulse(m, 41);
		pulse(m, 42);
		assert_int_equal(vgic_prepare_wait(vcpu_of(m, 0)), 0);
		m->num_kicks = 0;
		ways[way](m);
		assert_int_equal(m->num_kicks, 1);
		vgic_finish_wait(vcpu_of(m, 0));
		assert_int_equal(lines_of(m, 0), VGIC_LINE_FIQ);
		assert_int_equal(ack0(m, 0), 42);
		machine_stop(m);
	}
}

static void controller_works_without_any_callback(void **state)
{
	struct machine *m = machine_describe(VGIC_PROFILE_NATIVE, 2);

	(void)state;
	memset(&m->config.ops, 0, sizeof(m->config.ops));
	m->config.ops.size = sizeof(m->config.ops);
	machine_start(m);
	machine_open_switches(m);
	irq_set_up(m, 1, 40, 1, 0x80);
	irq_set_edge(m, 1, 40, false);
	assert_int_equal(vgic_set_spi(m->vgic, 40, 0, true), 0);
	assert_int_equal(ack1(m, 1), 40);
	eoi1(m, 1, 40);
	assert_int_equal(dist_read(m, 0x20), 0);
	assert_int_equal(lines_of(m, 1), VGIC_LINE_IRQ);
	assert_int_equal(errors_of(m, VGIC_GUEST_MMIO_RESERVED), 1);
	machine_stop(m);
}

/* ---- Entry, exit, waiting ---- */

static void all_calls_return_the_same_lines(void **state)
{
	struct machine *m = machine_at_rest(1);
	struct vgic_vcpu *vcpu = vcpu_of(m, 0);

	(void)state;
	assert_int_equal(vgic_enter_guest(vcpu), 0);
	vgic_exit_guest(vcpu);
	assert_int_equal(vgic_prepare_wait(vcpu), 0);
	vgic_finish_wait(vcpu);
	pulse(m, 40);
	assert_int_equal(vgic_prepare_wait(vcpu), VGIC_LINE_IRQ);
	vgic_finish_wait(vcpu);
	assert_int_equal(vgic_enter_guest(vcpu), VGIC_LINE_IRQ);
	irq_set_group(m, 0, 40, 0);
	assert_int_equal(vgic_poll_lines(vcpu), VGIC_LINE_FIQ);
	vgic_exit_guest(vcpu);
	assert_int_equal(vgic_enter_guest(vcpu), VGIC_LINE_FIQ);
	vgic_exit_guest(vcpu);
	machine_stop(m);
}

/* ---- Line changes ---- */

static struct machine *machine_with_mirrored_lines(void)
{
	struct machine *m = machine_describe(VGIC_PROFILE_NATIVE, 2);

	machine_mirror_lines(m);
	machine_start(m);
	machine_open_switches(m);
	irq_set_up(m, 1, 40, 1, 0x80);
	irq_set_up(m, 1, 41, 0, 0x40);
	irq_set_edge(m, 1, 40, false);
	lines_of(m, 0);
	lines_of(m, 1);
	m->line_changes[0] = 0;
	m->line_changes[1] = 0;
	m->kicks[1] = 0;
	return m;
}

static void line_changes_are_told_by_the_vcpus_own_calls(void **state)
{
	struct machine *m = machine_with_mirrored_lines();

	(void)state;
	assert_int_equal(vgic_set_spi(m->vgic, 40, 0, true), 0);
	assert_int_equal(m->kicks[1], 1);
	assert_int_equal(m->line_changes[1], 0);
	assert_int_equal(lines_of(m, 1), VGIC_LINE_IRQ);
	assert_int_equal(m->line_changes[1], 1);
	assert_int_equal(m->reported_lines[1], VGIC_LINE_IRQ);
	/* Only changes are told. */
	assert_int_equal(lines_of(m, 1), VGIC_LINE_IRQ);
	assert_int_equal(m->line_changes[1], 1);
	/* A Group 0 interrupt of higher priority: the IRQ line falls and the FIQ line rises, at once. */
	pulse(m, 41);
	assert_int_equal(lines_of(m, 1), VGIC_LINE_FIQ);
	assert_int_equal(m->line_changes[1], 2);
	assert_int_equal(m->reported_lines[1], VGIC_LINE_FIQ);
	assert_int_equal(m->line_changes[0], 0);
	machine_stop(m);
}

static void falling_line_kicks_and_is_told(void **state)
{
	struct machine *m = machine_with_mirrored_lines();

	(void)state;
	assert_int_equal(vgic_set_spi(m->vgic, 40, 0, true), 0);
	assert_int_equal(lines_of(m, 1), VGIC_LINE_IRQ);
	m->kicks[1] = 0;
	assert_int_equal(vgic_set_spi(m->vgic, 40, 0, false), 0);
	assert_int_equal(m->kicks[1], 1);
	assert_int_equal(lines_of(m, 1), 0);
	assert_int_equal(m->reported_lines[1], 0);
	assert_int_equal(m->line_changes[1], 2);
	machine_stop(m);
}

static void each_way_to_be_withdrawn_kicks_a_mirroring_host(void **state)
{
	struct machine *m = machine_with_mirrored_lines();

	(void)state;
	assert_int_equal(vgic_set_spi(m->vgic, 40, 0, true), 0);
	for (unsigned way = 0; way < 7; way++) {
		assert_int_equal(lines_of(m, 1), VGIC_LINE_IRQ);
		assert_int_equal(m->reported_lines[1], VGIC_LINE_IRQ);
		m->kicks[1] = 0;
		switch (way) {
		case 0:
			irq_write_bit(m, 1, GICD_ICENABLER, 40);
			break;
		case 1:
			dist_write(m, GICD_CTLR, GICD_CTLR_ENABLE_GRP0);
			break;
		case 2:
			spi_route(m, 40, m->vcpus[0].affinity);
			break;
		case 3:
			irq_set_priority(m, 1, 40, 0xf8);
			break;
		case 4:
			irq_write_bit(m, 1, GICD_ISACTIVER, 40);
			break;
		case 5:
			vgic_vcpu_set_online(vcpu_of(m, 1), false);
			break;
		case 6:
			irq_set_edge(m, 1, 40, true);
			break;
		}
		assert_int_equal(m->kicks[1], 1);
		assert_int_equal(lines_of(m, 1), 0);
		assert_int_equal(m->reported_lines[1], 0);
		irq_write_bit(m, 1, GICD_ISENABLER, 40);
		dist_write(m, GICD_CTLR, 3);
		spi_route(m, 40, m->vcpus[1].affinity);
		irq_set_priority(m, 1, 40, 0x80);
		irq_write_bit(m, 1, GICD_ICACTIVER, 40);
		vgic_vcpu_set_online(vcpu_of(m, 1), true);
		irq_set_edge(m, 1, 40, false);
	}
	machine_stop(m);
}

/* Acknowledge, EOI and masks are the vCPU's own: their effect on the lines is told before the call returns. */
static void icc_accesses_tell_line_changes_at_once(void **state)
{
	struct machine *m = machine_with_mirrored_lines();

	(void)state;
	assert_int_equal(vgic_set_spi(m->vgic, 40, 0, true), 0);
	assert_int_equal(lines_of(m, 1), VGIC_LINE_IRQ);
	assert_int_equal(ack1(m, 1), 40);
	assert_int_equal(m->reported_lines[1], 0);
	assert_int_equal(m->line_changes[1], 2);
	eoi1(m, 1, 40);
	assert_int_equal(m->reported_lines[1], VGIC_LINE_IRQ);
	assert_int_equal(m->line_changes[1], 3);
	icc_write(m, 1, VGIC_ICC_PMR_EL1, 0x10);
	assert_int_equal(m->reported_lines[1], 0);
	icc_write(m, 1, VGIC_ICC_PMR_EL1, 0xf8);
	assert_int_equal(m->reported_lines[1], VGIC_LINE_IRQ);
	icc_write(m, 1, VGIC_ICC_IGRPEN1_EL1, 0);
	assert_int_equal(m->reported_lines[1], 0);
	icc_write(m, 1, VGIC_ICC_IGRPEN1_EL1, 1);
	assert_int_equal(m->reported_lines[1], VGIC_LINE_IRQ);
	vgic_vcpu_reset(vcpu_of(m, 1));
	assert_int_equal(m->reported_lines[1], 0);
	assert_int_equal(m->line_changes[1], 8);
	machine_stop(m);
}

/* ---- Guest errors ---- */

static void guest_error_is_described(void **state)
{
	struct machine *m = machine_native(1);

	(void)state;
	dist_write(m, GICD_TYPER, 0x1234);
	assert_int_equal(m->num_error_reports, 1);
	assert_int_equal(m->last_error.kind, VGIC_GUEST_MMIO_READ_ONLY);
	assert_int_equal(m->last_error.address, GICD_TYPER);
	assert_int_equal(m->last_error.value, 0x1234);
	assert_non_null(strstr(m->last_error.what, "GICD_TYPER"));
	assert_int_equal(m->last_error.unreported, 0);
	machine_stop(m);
}

static void expect_error(struct machine *m, enum vgic_guest_error_kind kind, uint64_t address, uint64_t value)
{
	assert_int_equal(m->last_error.kind, kind);
	assert_int_equal(m->last_error.address, address);
	assert_int_equal(m->last_error.value, value);
	assert_non_null(m->last_error.what);
	m->last_error.kind = VGIC_NUM_GUEST_ERRORS;
}

/* What the address is depends on the kind: offset in the frame, ICC encoding, or INTID. */
static void guest_error_of_each_kind_says_where(void **state)
{
	struct machine *m = machine_open(1);
	uint64_t value;

	(void)state;
	dist_write(m, 0x9000, 7);
	expect_error(m, VGIC_GUEST_MMIO_RESERVED, 0x9000, 7);
	redist_read_width(m, 0, GICR_IGROUPR0, 8);
	expect_error(m, VGIC_GUEST_MMIO_WIDTH, GICR_IGROUPR0, 0);
	dist_read(m, GICD_SETSPI_NSR);
	expect_error(m, VGIC_GUEST_MMIO_WRITE_ONLY, GICD_SETSPI_NSR, 0);
	vgic_icc_read(vcpu_of(m, 0), VGIC_ICC_DIR_EL1, &value);
	expect_error(m, VGIC_GUEST_ICC_UNDEFINED, VGIC_ICC_DIR_EL1, 0);
	eoi1(m, 0, 40);
	assert_int_equal(m->last_error.address, 40);
	assert_int_equal(m->last_error.kind, VGIC_GUEST_EOI_UNEXPECTED);
	icc_write(m, 0, VGIC_ICC_DIR_EL1, 41);
	assert_int_equal(m->last_error.address, 41);
	assert_int_equal(m->last_error.kind, VGIC_GUEST_DIR_UNEXPECTED);
	icc_write(m, 0, VGIC_ICC_SGI1R_EL1, 7u << ICC_SGIR_INTID_SHIFT | 8);
	expect_error(m, VGIC_GUEST_SGI_NO_TARGET, 7, 7u << ICC_SGIR_INTID_SHIFT | 8);
	spi_route(m, 45, 0x1234);
	expect_error(m, VGIC_GUEST_ROUTE_NO_TARGET, 45, 0x1234);
	assert_int_equal(m->num_error_reports, 8);
	machine_stop(m);
}

/* A guest in a loop cannot flood the VMM's log; every error is counted all the same. */
static void guest_error_reports_are_limited(void **state)
{
	struct machine *m = machine_native(1);
	unsigned reported;

	(void)state;
	for (unsigned i = 0; i < 5000; i++)
		dist_read(m, 0x20);
	assert_int_equal(errors_of(m, VGIC_GUEST_MMIO_RESERVED), 5000);
	reported = m->num_error_reports;
	/* The loop may pass from one second into the next. */
	assert_in_range(reported, 10, 20);
	machine_stop(m);
}

static void counters_survive_reset(void **state)
{
	struct machine *m = machine_at_rest(1);

	(void)state;
	pulse(m, 40);
	assert_int_equal(ack1(m, 0), 40);
	assert_int_equal(ack1(m, 0), NO_INTERRUPT);
	assert_int_equal(ack0(m, 0), NO_INTERRUPT);
	dist_read(m, 0x20);
	assert_int_equal(vgic_reset(m->vgic), 0);
	assert_int_equal(stats_of(m).acknowledges, 1);
	assert_int_equal(stats_of(m).spurious, 2);
	assert_int_equal(errors_of(m, VGIC_GUEST_MMIO_RESERVED), 1);
	machine_stop(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(kick_is_made_once_until_it_is_answered),
		cmocka_unit_test(leaving_the_guest_answers_no_kick),
		cmocka_unit_test(what_cannot_be_signalled_makes_no_kick),
		cmocka_unit_test(signal_that_is_pending_already_makes_no_second_kick),
		cmocka_unit_test(each_way_to_become_deliverable_kicks_a_waiting_vcpu),
		cmocka_unit_test(hidden_interrupt_kicks_when_it_comes_to_light),
		cmocka_unit_test(controller_works_without_any_callback),
		cmocka_unit_test(all_calls_return_the_same_lines),
		cmocka_unit_test(line_changes_are_told_by_the_vcpus_own_calls),
		cmocka_unit_test(falling_line_kicks_and_is_told),
		cmocka_unit_test(each_way_to_be_withdrawn_kicks_a_mirroring_host),
		cmocka_unit_test(icc_accesses_tell_line_changes_at_once),
		cmocka_unit_test(guest_error_is_described),
		cmocka_unit_test(guest_error_of_each_kind_says_where),
		cmocka_unit_test(guest_error_reports_are_limited),
		cmocka_unit_test(counters_survive_reset),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("host", tests, NULL, NULL);
}
