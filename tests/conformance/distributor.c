/* SPDX-License-Identifier: MIT */
/*
 * The distributor's registers: banks and their ends, widths, reserved offsets and
 * STATUSR, routing, message-based SPIs, re-evaluation on each write.
 */
#include "machine.h"

static void private_words_are_zero_and_no_error(void **state)
{
	static const uint32_t words[] = { GICD_IGROUPR,         GICD_ISENABLER, GICD_ICENABLER, GICD_ISPENDR,
					  GICD_ICPENDR,         GICD_ISACTIVER, GICD_ICACTIVER, GICD_IPRIORITYR,
					  GICD_IPRIORITYR + 28, GICD_ICFGR,     GICD_ICFGR + 4 };
	struct machine *m = machine_native(1);

	(void)state;
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		dist_write(m, words[i], 0xffffffff);
		assert_int_equal(dist_read(m, words[i]), 0);
	}
	assert_int_equal(redist_read(m, 0, GICR_ISENABLER0), 0);
	assert_int_equal(redist_read(m, 0, GICR_ISPENDR0), 0);
	assert_int_equal(redist_read(m, 0, GICR_ISACTIVER0), 0);
	assert_int_equal(redist_read(m, 0, GICR_IGROUPR0), 0);
	assert_int_equal(errors_of_all_kinds(m), 0);
	machine_stop(m);
}

/* 256 SPIs: INTIDs 32 to 287, words 1 to 8. */
static void banks_end_with_the_last_spi(void **state)
{
	static const uint32_t banks[] = { GICD_IGROUPR, GICD_ISENABLER, GICD_ISPENDR, GICD_ISACTIVER };
	struct machine *m = machine_native(1);

	(void)state;
	for (size_t i = 0; i < sizeof(banks) / sizeof(banks[0]); i++) {
		for (uint32_t word = 1; word < 32; word++) {
			dist_write(m, banks[i] + 4 * word, 0xffffffff);
			assert_int_equal(dist_read(m, banks[i] + 4 * word), word <= 8 ? 0xffffffff : 0);
		}
	}
	for (uint32_t intid = GIC_FIRST_SPI; intid < GIC_END_SPI; intid++) {
		dist_write_width(m, GICD_IPRIORITYR + intid, 1, 0xff);
		assert_int_equal(dist_read_width(m, GICD_IPRIORITYR + intid, 1), intid < 288 ? 0xf8 : 0);
		dist_write_width(m, GICD_IROUTER + 8 * intid, 8, 0);
	}
	for (uint32_t word = 2; word < 64; word++) {
		dist_write(m, GICD_ICFGR + 4 * word, 0xffffffff);
		assert_int_equal(dist_read(m, GICD_ICFGR + 4 * word), word < 18 ? 0xaaaaaaaa : 0);
	}
	assert_int_equal(errors_of_all_kinds(m), 0);
	machine_stop(m);
}

static void set_and_clear_registers_touch_only_written_bits(void **state)
{
	static const struct {
		uint32_t set;
		uint32_t clear;
	} banks[] = { { GICD_ISENABLER, GICD_ICENABLER },
		      { GICD_ISPENDR, GICD_ICPENDR },
		      { GICD_ISACTIVER, GICD_ICACTIVER } };
	struct machine *m = machine_native(1);

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		dist_write(m, banks[i].set + 8, 0x80000001);
		dist_write(m, banks[i].set + 8, 0x00010000);
		assert_int_equal(dist_read(m, banks[i].set + 8), 0x80010001);
		assert_int_equal(dist_read(m, banks[i].clear + 8), 0x80010001);
		dist_write(m, banks[i].set + 8, 0);
		dist_write(m, banks[i].clear + 8, 0);
		assert_int_equal(dist_read(m, banks[i].set + 8), 0x80010001);
		dist_write(m, banks[i].clear + 8, 0x00010002);
		assert_int_equal(dist_read(m, banks[i].set + 8), 0x80000001);
		assert_int_equal(dist_read(m, banks[i].set + 4), 0);
		assert_int_equal(dist_read(m, banks[i].set + 12), 0);
	}
	machine_stop(m);
}

/* Bit 0 of word 1 is SPI 32: neither an SGI nor the SPI after it. */
static void activer_word_1_begins_with_spi_32(void **state)
{
	struct machine *m = machine_open(1);

	(void)state;
	irq_set_up(m, 0, 32, 1, 0x80);
	dist_write(m, GICD_ISACTIVER + 4, 1);
	assert_int_equal(redist_read(m, 0, GICR_ISACTIVER0), 0);
	assert_int_equal(vgic_pulse_spi(m->vgic, 32), 1);
	assert_int_equal(lines_of(m, 0), 0);
	dist_write(m, GICD_ICACTIVER + 4, 1);
	assert_int_equal(lines_of(m, 0), VGIC_LINE_IRQ);
	assert_int_equal(ack1(m, 0), 32);
	assert_int_equal(dist_read(m, GICD_ISACTIVER + 4), 1);
	machine_stop(m);
}

static void priorities_keep_five_bits_and_answer_bytes(void **state)
{
	struct machine *m = machine_native(1);

	(void)state;
	dist_write(m, GICD_IPRIORITYR + 40, 0x04ff8107);
	assert_int_equal(dist_read(m, GICD_IPRIORITYR + 40), 0x00f88000);
	dist_write_width(m, GICD_IPRIORITYR + 41, 1, 0xabcd4f);
	assert_int_equal(dist_read(m, GICD_IPRIORITYR + 40), 0x00f84800);
	assert_int_equal(dist_read_width(m, GICD_IPRIORITYR + 42, 1), 0xf8);
	assert_int_equal(errors_of_all_kinds(m), 0);
	machine_stop(m);
}

static void icfgr_low_bits_are_reserved(void **state)
{
	struct machine *m = machine_native(1);

	(void)state;
	dist_write(m, GICD_ICFGR + 8, 0xffffffff);
	assert_int_equal(dist_read(m, GICD_ICFGR + 8), 0xaaaaaaaa);
	dist_write(m, GICD_ICFGR + 8, 0x55555555);
	assert_int_equal(dist_read(m, GICD_ICFGR + 8), 0);
	dist_write(m, GICD_ICFGR + 8, 0x00020000);
	assert_int_equal(dist_read(m, GICD_ICFGR + 8), 0x00020000);
	assert_int_equal(dist_read(m, GICD_ICFGR + 12), 0);
	machine_stop(m);
}

/* IGRPMODR, NSACR, ITARGETSR, SGIR and the GICv2 SGI registers, GICD_SETSPI_SR and CLRSPI_SR. */
static void registers_of_other_worlds_are_zero_and_no_error(void **state)
{
	static const uint32_t offsets[] = { GICD_IGRPMODR,  GICD_IGRPMODR + 4,   GICD_NSACR,
					    GICD_NSACR + 8, GICD_ITARGETSR,      GICD_ITARGETSR + 32,
					    GICD_SGIR,      GICD_CPENDSGIR,      GICD_CPENDSGIR + 12,
					    GICD_SPENDSGIR, GICD_SPENDSGIR + 12, GICD_SETSPI_SR,
					    GICD_CLRSPI_SR };
	struct machine *m = machine_native(1);

	(void)state;
	for (size_t i = 0; i < sizeof(offsets) / sizeof(offsets[0]); i++) {
		dist_write(m, offsets[i], 0xffffffff);
		assert_int_equal(dist_read(m, offsets[i]), 0);
	}
	dist_write(m, GICD_SGIR, 0x00ff0000);
	dist_write(m, GICD_SGIR, 0xff4affb0);
	assert_int_equal(redist_read(m, 0, GICR_ISPENDR0), 0);
	assert_int_equal(errors_of_all_kinds(m), 0);
	assert_int_equal(dist_read(m, GICD_STATUSR), 0);
	machine_stop(m);
}

static void statusr_collects_the_kinds_of_errors(void **state)
{
	struct machine *m = machine_native(2);

	(void)state;
	assert_int_equal(dist_read(m, 0x20), 0);
	assert_int_equal(dist_read(m, GICD_STATUSR), GIC_STATUSR_RRD);
	dist_write(m, 0x20, 1);
	assert_int_equal(dist_read(m, GICD_STATUSR), GIC_STATUSR_RRD | GIC_STATUSR_WRD);
	assert_int_equal(dist_read(m, GICD_SETSPI_NSR), 0);
	dist_write(m, GICD_TYPER, 0);
	assert_int_equal(dist_read(m, GICD_STATUSR), 0xf);
	assert_int_equal(errors_of(m, VGIC_GUEST_MMIO_RESERVED), 2);
	assert_int_equal(errors_of(m, VGIC_GUEST_MMIO_WRITE_ONLY), 1);
	assert_int_equal(errors_of(m, VGIC_GUEST_MMIO_READ_ONLY), 1);

	/* Write one to clear, and only what is written. */
	dist_write(m, GICD_STATUSR, 0);
	assert_int_equal(dist_read(m, GICD_STATUSR), 0xf);
	dist_write(m, GICD_STATUSR, 0xfffffff5);
	assert_int_equal(dist_read(m, GICD_STATUSR), 0xa);
	dist_write(m, GICD_STATUSR, 0xffffffff);
	assert_int_equal(dist_read(m, GICD_STATUSR), 0);

	/* A width that the register does not have is an access to a reserved location, too. */
	assert_int_equal(dist_read_width(m, GICD_CTLR, 8), 0);
	assert_int_equal(dist_read(m, GICD_STATUSR), GIC_STATUSR_RRD);
	dist_write_width(m, GICD_CTLR, 2, 3);
	assert_int_equal(dist_read(m, GICD_STATUSR), GIC_STATUSR_RRD | GIC_STATUSR_WRD);
	assert_int_equal(errors_of(m, VGIC_GUEST_MMIO_WIDTH), 2);
	assert_int_equal(redist_read(m, 0, GICR_STATUSR), 0);
	machine_stop(m);
}

static void other_widths_read_zero_and_write_nothing(void **state)
{
	struct machine *m = machine_native(1);
	static const unsigned widths[] = { 1, 2, 8 };

	(void)state;
	dist_write(m, GICD_ISENABLER + 8, 0xff);
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(dist_read_width(m, GICD_ISENABLER + 8, widths[i]), 0);
		dist_write_width(m, GICD_ICENABLER + 8, widths[i], ~0ull);
	}
	assert_int_equal(dist_read_width(m, GICD_ISENABLER + 6, 4), 0);
	dist_write_width(m, GICD_ICENABLER + 6, 4, ~0ull);
	assert_int_equal(dist_read(m, GICD_ISENABLER + 8), 0xff);
	assert_int_equal(errors_of(m, VGIC_GUEST_MMIO_WIDTH), 8);
	/* IPRIORITYR has bytes and words, no halfwords. */
	dist_write_width(m, GICD_IPRIORITYR + 40, 2, 0x8080);
	assert_int_equal(dist_read(m, GICD_IPRIORITYR + 40), 0);
	assert_int_equal(errors_of(m, VGIC_GUEST_MMIO_WIDTH), 9);
	machine_stop(m);
}

/* ---- Routing ---- */

static void irouter_is_indexed_by_intid(void **state)
{
	struct machine *m = machine_open(2);

	(void)state;
	irq_set_up(m, 0, 32, 1, 0x80);
	irq_set_up(m, 0, 38, 1, 0x80);
	spi_route(m, 38, m->vcpus[1].affinity);
	assert_int_equal(dist_read_width(m, 0x6100, 8), 0);
	assert_int_equal(dist_read_width(m, GICD_IROUTER + 8 * 38, 8), 1);
	assert_int_equal(vgic_pulse_spi(m->vgic, 38), 1);
	assert_int_equal(lines_of(m, 0), 0);
	assert_int_equal(ack1(m, 1), 38);
	assert_int_equal(vgic_pulse_spi(m->vgic, 32), 1);
	assert_int_equal(ack1(m, 0), 32);
	machine_stop(m);
}

static void irouter_begins_with_spi_32_and_ends_with_1019(void **state)
{
	struct machine *m = machine_describe(VGIC_PROFILE_NATIVE, 1);

	(void)state;
	m->config.num_spis = 988;
	machine_start(m);
	for (uint32_t intid = 0; intid < 32; intid++) {
		dist_write_width(m, GICD_IROUTER + 8 * intid, 8, 1);
		assert_int_equal(dist_read_width(m, GICD_IROUTER + 8 * intid, 8), 0);
	}
	assert_int_equal(errors_of(m, VGIC_GUEST_ROUTE_NO_TARGET), 0);
	dist_write_width(m, 0x6100, 8, 0x11);
	assert_int_equal(dist_read_width(m, 0x6100, 8), 0x11);
	dist_write_width(m, 0x7fd8, 8, 0x22);
	assert_int_equal(dist_read_width(m, 0x7fd8, 8), 0x22);
	dist_write_width(m, 0x7fe0, 8, 0x33);
	assert_int_equal(dist_read_width(m, 0x7fe0, 8), 0);
	machine_stop(m);
}

static void irouter_answers_halves(void **state)
{
	struct machine *m = machine_native(1);
	const uint32_t offset = GICD_IROUTER + 8 * 40;

	(void)state;
	dist_write_width(m, offset, 8, 0xffffffffffffffff);
	assert_int_equal(dist_read_width(m, offset, 8), 0xff80ffffff);
	assert_int_equal(dist_read(m, offset), 0x80ffffff);
	assert_int_equal(dist_read(m, offset + 4), 0xff);
	dist_write(m, offset + 4, 0x12345612);
	assert_int_equal(dist_read_width(m, offset, 8), 0x1280ffffff);
	dist_write(m, offset, 0x7f030201);
	assert_int_equal(dist_read_width(m, offset, 8), 0x1200030201);
	assert_int_equal(errors_of(m, VGIC_GUEST_MMIO_WIDTH), 0);
	assert_int_equal(dist_read_width(m, offset + 4, 8), 0);
	assert_int_equal(errors_of(m, VGIC_GUEST_MMIO_WIDTH), 1);
	machine_stop(m);
}

static void irouter_without_features_keeps_aff0_to_aff2(void **state)
{
	struct machine *m = machine_describe(VGIC_PROFILE_NATIVE, 1);

	(void)state;
	m->config.features = 0;
	machine_start(m);
	spi_route(m, 40, ~0ull);
	assert_int_equal(dist_read_width(m, GICD_IROUTER + 8 * 40, 8), 0xffffff);
	machine_stop(m);
}

static void spi_routed_to_nobody_stays_pending(void **state)
{
	struct machine *m = machine_open(2);

	(void)state;
	irq_set_up(m, 0, 40, 1, 0x80);
	assert_int_equal(errors_of(m, VGIC_GUEST_ROUTE_NO_TARGET), 0);
	spi_route(m, 40, 0x12345);
	assert_int_equal(errors_of(m, VGIC_GUEST_ROUTE_NO_TARGET), 1);
	assert_int_equal(dist_read_width(m, GICD_IROUTER + 8 * 40, 8), 0x12345);
	assert_int_equal(vgic_pulse_spi(m->vgic, 40), 1);
	assert_true(irq_is_pending(m, 0, 40));
	assert_int_equal(lines_of(m, 0) | lines_of(m, 1), 0);
	spi_route(m, 40, m->vcpus[1].affinity);
	assert_int_equal(errors_of(m, VGIC_GUEST_ROUTE_NO_TARGET), 1);
	assert_int_equal(ack1(m, 1), 40);
	machine_stop(m);
}

/* IROUTER resets to affinity 0: without such a vCPU the SPI goes nowhere. */
static void reset_route_without_vcpu_at_affinity_0(void **state)
{
	struct machine *m = machine_describe(VGIC_PROFILE_NATIVE, 1);

	(void)state;
	m->vcpus[0].affinity = 0x100;
	machine_start(m);
	machine_open_switches(m);
	irq_write_bit(m, 0, GICD_ISENABLER, 40);
	irq_write_bit(m, 0, GICD_ISPENDR, 40);
	assert_int_equal(lines_of(m, 0), 0);
	assert_int_equal(icc_read(m, 0, VGIC_ICC_HPPIR0_EL1), GIC_SPURIOUS);
	assert_true(irq_is_pending(m, 0, 40));
	spi_route(m, 40, 0x100);
	assert_int_equal(ack0(m, 0), 40);
	machine_stop(m);
}

static void pending_spi_follows_its_route(void **state)
{
	struct machine *m = machine_open(3);

	(void)state;
	irq_set_up(m, 0, 40, 1, 0x80);
	icc_write(m, 0, VGIC_ICC_PMR_EL1, 0);
	assert_int_equal(vgic_pulse_spi(m->vgic, 40), 1);
	assert_int_equal(lines_of(m, 0), 0);
	spi_route(m, 40, m->vcpus[1].affinity);
	assert_int_equal(lines_of(m, 1), VGIC_LINE_IRQ);
	spi_route(m, 40, m->vcpus[2].affinity);
	assert_int_equal(lines_of(m, 1), 0);
	assert_int_equal(lines_of(m, 2), VGIC_LINE_IRQ);
	icc_write(m, 0, VGIC_ICC_PMR_EL1, 0xf8);
	assert_int_equal(ack1(m, 0), NO_INTERRUPT);
	assert_int_equal(ack1(m, 1), NO_INTERRUPT);
	assert_int_equal(ack1(m, 2), 40);
	machine_stop(m);
}

/* The PE that acknowledged an SPI ends it, wherever it is routed meanwhile. */
static void active_spi_is_ended_where_it_was_acknowledged(void **state)
{
	struct machine *m = machine_open(2);

	(void)state;
	irq_set_up(m, 0, 40, 1, 0x80);
	assert_int_equal(vgic_pulse_spi(m->vgic, 40), 1);
	assert_int_equal(ack1(m, 0), 40);
	spi_route(m, 40, m->vcpus[1].affinity);
	assert_true(irq_is_active(m, 0, 40));
	assert_int_equal(vgic_pulse_spi(m->vgic, 40), 1);
	assert_int_equal(lines_of(m, 1), 0);
	assert_int_equal(icc_read(m, 0, VGIC_ICC_RPR_EL1), 0x80);
	assert_int_equal(icc_read(m, 1, VGIC_ICC_RPR_EL1), 0xff);
	eoi1(m, 0, 40);
	assert_false(irq_is_active(m, 0, 40));
	assert_int_equal(lines_of(m, 0), 0);
	assert_int_equal(lines_of(m, 1), VGIC_LINE_IRQ);
	assert_int_equal(ack1(m, 1), 40);
	machine_stop(m);
}

/* ISACTIVER and ICACTIVER tell of, and act on, vCPUs that are in the guest: nothing of the state is parked with them. */
static void active_state_of_a_running_vcpu_is_seen_and_changed(void **state)
{
	struct machine *m = machine_open(2);

	(void)state;
	irq_set_up(m, 0, 40, 1, 0x80);
	irq_set_up(m, 0, 27, 1, 0x40);
	assert_int_equal(vgic_pulse_spi(m->vgic, 40), 1);
	assert_int_equal(vgic_enter_guest(vcpu_of(m, 0)), VGIC_LINE_IRQ);
	assert_int_equal(ack1(m, 0), 40);
	assert_int_equal(dist_read(m, GICD_ISACTIVER + 4), 1u << (40 - 32));
	assert_int_equal(dist_read(m, GICD_ICACTIVER + 4), 1u << (40 - 32));
	/* What another vCPU makes active is not signalled here, though its priority would preempt. */
	redist_write(m, 0, GICR_ISACTIVER0, 1u << 27);
	redist_write(m, 0, GICR_ISPENDR0, 1u << 27);
	assert_int_equal(vgic_poll_lines(vcpu_of(m, 0)), 0);
	redist_write(m, 0, GICR_ICACTIVER0, 1u << 27);
	assert_int_equal(vgic_poll_lines(vcpu_of(m, 0)), VGIC_LINE_IRQ);
	assert_int_equal(ack1(m, 0), 27);
	assert_int_equal(redist_read(m, 0, GICR_ISACTIVER0), 1u << 27);
	eoi1(m, 0, 27);
	/* The interrupt is free at once; the running priority is dropped by the EOI only. */
	dist_write(m, GICD_ICACTIVER + 4, 1u << (40 - 32));
	assert_int_equal(dist_read(m, GICD_ISACTIVER + 4), 0);
	assert_int_equal(vgic_pulse_spi(m->vgic, 40), 1);
	assert_int_equal(vgic_poll_lines(vcpu_of(m, 0)), 0);
	eoi1(m, 0, 40);
	assert_int_equal(errors_of(m, VGIC_GUEST_EOI_UNEXPECTED), 1);
	assert_int_equal(vgic_poll_lines(vcpu_of(m, 0)), VGIC_LINE_IRQ);
	assert_int_equal(ack1(m, 0), 40);
	vgic_exit_guest(vcpu_of(m, 0));
	machine_stop(m);
}

/* ---- Re-evaluation ---- */

static void group_enable_lets_pending_interrupts_through(void **state)
{
	struct machine *m = machine_open(1);

	(void)state;
	irq_set_up(m, 0, 40, 1, 0x80);
	irq_set_up(m, 0, 41, 0, 0xa0);
	dist_write(m, GICD_CTLR, 0);
	assert_int_equal(vgic_pulse_spi(m->vgic, 40), 1);
	assert_int_equal(vgic_pulse_spi(m->vgic, 41), 1);
	assert_int_equal(lines_of(m, 0), 0);
	assert_int_equal(ack1(m, 0), NO_INTERRUPT);
	assert_int_equal(icc_read(m, 0, VGIC_ICC_HPPIR1_EL1), GIC_SPURIOUS);
	dist_write(m, GICD_CTLR, GICD_CTLR_ENABLE_GRP0);
	assert_int_equal(lines_of(m, 0), VGIC_LINE_FIQ);
	dist_write(m, GICD_CTLR, GICD_CTLR_ENABLE_GRP1);
	assert_int_equal(lines_of(m, 0), VGIC_LINE_IRQ);
	dist_write(m, GICD_CTLR, GICD_CTLR_ENABLE_GRP0 | GICD_CTLR_ENABLE_GRP1);
	assert_int_equal(lines_of(m, 0), VGIC_LINE_IRQ);
	assert_int_equal(ack1(m, 0), 40);
	machine_stop(m);
}

static void enable_delivers_what_was_latched(void **state)
{
	struct machine *m = machine_open(1);

	(void)state;
	irq_set_up(m, 0, 40, 1, 0x80);
	irq_write_bit(m, 0, GICD_ICENABLER, 40);
	assert_int_equal(vgic_pulse_spi(m->vgic, 40), 1);
	assert_true(irq_is_pending(m, 0, 40));
	assert_int_equal(lines_of(m, 0), 0);
	assert_int_equal(ack1(m, 0), NO_INTERRUPT);
	irq_write_bit(m, 0, GICD_ISENABLER, 40);
	assert_int_equal(lines_of(m, 0), VGIC_LINE_IRQ);
	assert_int_equal(ack1(m, 0), 40);
	assert_false(irq_is_pending(m, 0, 40));
	machine_stop(m);
}

/* Once ICENABLER is written and RWP reads 0, no acknowledge returns the interrupt. */
static void disable_takes_a_signalled_interrupt_back(void **state)
{
	struct machine *m = machine_open(1);

	(void)state;
	irq_set_up(m, 0, 40, 1, 0x80);
	irq_set_up(m, 0, 27, 1, 0x80);
	irq_write_bit(m, 0, GICD_ISPENDR, 27);
	assert_int_equal(vgic_pulse_spi(m->vgic, 40), 1);
	assert_int_equal(lines_of(m, 0), VGIC_LINE_IRQ);
	irq_write_bit(m, 0, GICD_ICENABLER, 40);
	irq_write_bit(m, 0, GICD_ICENABLER, 27);
	assert_int_equal(dist_read(m, GICD_CTLR) & GICD_CTLR_RWP, 0);
	assert_int_equal(redist_read(m, 0, GICR_CTLR) & (GICR_CTLR_RWP | GICR_CTLR_UWP), 0);
	assert_int_equal(lines_of(m, 0), 0);
	assert_int_equal(ack1(m, 0), NO_INTERRUPT);
	assert_true(irq_is_pending(m, 0, 40));
	assert_true(irq_is_pending(m, 0, 27));
	machine_stop(m);
}

static void group_change_moves_a_pending_interrupt(void **state)
{
	struct machine *m = machine_open(1);

	(void)state;
	irq_set_up(m, 0, 40, 0, 0x80);
	assert_int_equal(vgic_pulse_spi(m->vgic, 40), 1);
	assert_int_equal(lines_of(m, 0), VGIC_LINE_FIQ);
	irq_set_group(m, 0, 40, 1);
	assert_int_equal(lines_of(m, 0), VGIC_LINE_IRQ);
	assert_int_equal(ack0(m, 0), NO_INTERRUPT);
	assert_int_equal(ack1(m, 0), 40);
	machine_stop(m);
}

static void priority_change_reorders_pending_interrupts(void **state)
{
	struct machine *m = machine_open(1);

	(void)state;
	irq_set_up(m, 0, 40, 1, 0x80);
	irq_set_up(m, 0, 41, 1, 0x90);
	assert_int_equal(vgic_pulse_spi(m->vgic, 40), 1);
	assert_int_equal(vgic_pulse_spi(m->vgic, 41), 1);
	assert_int_equal(icc_read(m, 0, VGIC_ICC_HPPIR1_EL1), 40);
	irq_set_priority(m, 0, 41, 0x10);
	assert_int_equal(icc_read(m, 0, VGIC_ICC_HPPIR1_EL1), 41);
	irq_set_priority(m, 0, 41, 0xf8);
	assert_int_equal(ack1(m, 0), 40);
	eoi1(m, 0, 40);
	/* The lowest priority is below no PMR that is left: PMR keeps five bits as well. */
	assert_int_equal(lines_of(m, 0), 0);
	irq_set_priority(m, 0, 41, 0xf0);
	assert_int_equal(ack1(m, 0), 41);
	machine_stop(m);
}

/* ---- Message-based SPIs ---- */

static void message_makes_an_edge_spi_pending_once(void **state)
{
	struct machine *m = machine_open(1);

	(void)state;
	irq_set_up(m, 0, 40, 1, 0x80);
	dist_write(m, GICD_SETSPI_NSR, 40);
	assert_int_equal(ack1(m, 0), 40);
	eoi1(m, 0, 40);
	assert_int_equal(lines_of(m, 0), 0);
	dist_write(m, GICD_SETSPI_NSR, 40);
	dist_write(m, GICD_CLRSPI_NSR, 40);
	assert_false(irq_is_pending(m, 0, 40));
	assert_int_equal(lines_of(m, 0), 0);
	machine_stop(m);
}

static void message_holds_the_line_of_a_level_spi(void **state)
{
	struct machine *m = machine_open(1);

	(void)state;
	irq_set_up(m, 0, 40, 1, 0x80);
	irq_set_edge(m, 0, 40, false);
	dist_write(m, GICD_SETSPI_NSR, 40);
	assert_int_equal(ack1(m, 0), 40);
	eoi1(m, 0, 40);
	assert_int_equal(lines_of(m, 0), VGIC_LINE_IRQ);
	irq_write_bit(m, 0, GICD_ICPENDR, 40);
	assert_int_equal(lines_of(m, 0), VGIC_LINE_IRQ);
	dist_write(m, GICD_CLRSPI_NSR, 40);
	assert_int_equal(lines_of(m, 0), 0);
	assert_false(irq_is_pending(m, 0, 40));

	/* It is one source of many: a device on the same line keeps it up. */
	dist_write(m, GICD_SETSPI_NSR, 40);
	assert_int_equal(vgic_set_spi(m->vgic, 40, 0, true), 0);
	dist_write(m, GICD_CLRSPI_NSR, 40);
	assert_true(irq_is_pending(m, 0, 40));
	assert_int_equal(vgic_set_spi(m->vgic, 40, 0, false), 0);
	assert_false(irq_is_pending(m, 0, 40));
	machine_stop(m);
}

static void message_for_no_spi_is_ignored(void **state)
{
	static const uint32_t no_spis[] = { 0, 15, 16, 31, 288, 1019, 1020, 1023, 8191, 0x2000 };
	struct machine *m = machine_open(1);

	(void)state;
	for (size_t i = 0; i < sizeof(no_spis) / sizeof(no_spis[0]); i++) {
		dist_write(m, GICD_SETSPI_NSR, no_spis[i]);
		dist_write(m, GICD_CLRSPI_NSR, no_spis[i]);
		dist_write(m, GICD_SETSPI_NSR, no_spis[i]);
	}
	for (uint32_t word = 1; word < 32; word++)
		assert_int_equal(dist_read(m, GICD_ISPENDR + 4 * word), 0);
	assert_int_equal(redist_read(m, 0, GICR_ISPENDR0), 0);
	assert_int_equal(errors_of_all_kinds(m), 0);
	machine_stop(m);
}

/* A PCI device's message may be a halfword: the architecture wants the low half to be writable by itself. */
static void message_may_be_16_bits_wide(void **state)
{
	struct machine *m = machine_open(1);

	(void)state;
	irq_set_up(m, 0, 40, 1, 0x80);
	dist_write_width(m, GICD_SETSPI_NSR, 2, 40);
	assert_true(irq_is_pending(m, 0, 40));
	dist_write_width(m, GICD_CLRSPI_NSR, 2, 40);
	assert_false(irq_is_pending(m, 0, 40));
	assert_int_equal(errors_of_all_kinds(m), 0);
	dist_write_width(m, GICD_SETSPI_NSR + 2, 2, 40);
	assert_false(irq_is_pending(m, 0, 40));
	assert_int_equal(errors_of(m, VGIC_GUEST_MMIO_WIDTH), 1);
	machine_stop(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(private_words_are_zero_and_no_error),
		cmocka_unit_test(banks_end_with_the_last_spi),
		cmocka_unit_test(set_and_clear_registers_touch_only_written_bits),
		cmocka_unit_test(activer_word_1_begins_with_spi_32),
		cmocka_unit_test(priorities_keep_five_bits_and_answer_bytes),
		cmocka_unit_test(icfgr_low_bits_are_reserved),
		cmocka_unit_test(registers_of_other_worlds_are_zero_and_no_error),
		cmocka_unit_test(statusr_collects_the_kinds_of_errors),
		cmocka_unit_test(other_widths_read_zero_and_write_nothing),
		cmocka_unit_test(irouter_is_indexed_by_intid),
		cmocka_unit_test(irouter_begins_with_spi_32_and_ends_with_1019),
		cmocka_unit_test(irouter_answers_halves),
		cmocka_unit_test(irouter_without_features_keeps_aff0_to_aff2),
		cmocka_unit_test(spi_routed_to_nobody_stays_pending),
		cmocka_unit_test(reset_route_without_vcpu_at_affinity_0),
		cmocka_unit_test(pending_spi_follows_its_route),
		cmocka_unit_test(active_spi_is_ended_where_it_was_acknowledged),
		cmocka_unit_test(active_state_of_a_running_vcpu_is_seen_and_changed),
		cmocka_unit_test(group_enable_lets_pending_interrupts_through),
		cmocka_unit_test(enable_delivers_what_was_latched),
		cmocka_unit_test(disable_takes_a_signalled_interrupt_back),
		cmocka_unit_test(group_change_moves_a_pending_interrupt),
		cmocka_unit_test(priority_change_reorders_pending_interrupts),
		cmocka_unit_test(message_makes_an_edge_spi_pending_once),
		cmocka_unit_test(message_holds_the_line_of_a_level_spi),
		cmocka_unit_test(message_for_no_spi_is_ignored),
		cmocka_unit_test(message_may_be_16_bits_wide),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("distributor", tests, NULL, NULL);
}
