/* SPDX-License-Identifier: MIT */
/*
 * What the guest finds: identification and feature registers of both profiles,
 * reset values, and what each optional feature adds or takes away.
 */
#include "machine.h"

#define NATIVE_IIDR 0x76001000u

static struct machine *start_with(enum vgic_profile profile, uint32_t features)
{
	struct machine *m = machine_describe(profile, 2);

	m->config.features = features;
	return machine_start(m);
}

/* PIDR4 to PIDR7, PIDR0 to PIDR3, CIDR0 to CIDR3: twelve words, and nothing before them. */
static void expect_ids(struct machine *m, const uint32_t ids[12])
{
	for (uint32_t i = 0; i < 12; i++) {
		assert_int_equal(dist_read(m, GIC_ID_FIRST + 4 * i), ids[i]);
		assert_int_equal(redist_read(m, 0, GIC_ID_FIRST + 4 * i), ids[i]);
		assert_int_equal(redist_read(m, 1, GIC_ID_FIRST + 4 * i), ids[i]);
	}
	assert_int_equal(errors_of_all_kinds(m), 0);
	assert_int_equal(dist_read(m, GIC_ID_FIRST - 4), 0);
	assert_int_equal(redist_read(m, 0, GIC_ID_FIRST - 4), 0);
	assert_int_equal(errors_of(m, VGIC_GUEST_MMIO_RESERVED), 2);
}

static void native_id_registers_name_a_gicv3(void **state)
{
	static const uint32_t ids[12] = { 0x44, 0, 0, 0, 0x92, 0xb4, 0x3b, 0, 0x0d, 0xf0, 0x05, 0xb1 };
	struct machine *m = machine_native(2);

	(void)state;
	expect_ids(m, ids);
	machine_stop(m);
}

static void kvm_id_registers_are_pidr2_alone(void **state)
{
	static const uint32_t ids[12] = { [6] = 0x3b };
	struct machine *m = machine_start(machine_describe(VGIC_PROFILE_KVM, 2));

	(void)state;
	expect_ids(m, ids);
	machine_stop(m);
}

static void id_registers_ignore_writes(void **state)
{
	struct machine *m = machine_native(1);

	(void)state;
	dist_write(m, GIC_PIDR2, 0);
	redist_write(m, 0, GIC_PIDR2, 0);
	assert_int_equal(dist_read(m, GIC_PIDR2), 0x3b);
	assert_int_equal(redist_read(m, 0, GIC_PIDR2), 0x3b);
	assert_int_equal(errors_of(m, VGIC_GUEST_MMIO_READ_ONLY), 2);
	machine_stop(m);
}

static void native_iidr(void **state)
{
	struct machine *m = machine_native(2);

	(void)state;
	assert_int_equal(dist_read(m, GICD_IIDR), NATIVE_IIDR);
	assert_int_equal(redist_read(m, 0, GICR_IIDR), NATIVE_IIDR);
	assert_int_equal(redist_read(m, 1, GICR_IIDR), NATIVE_IIDR);
	machine_stop(m);
}

static void kvm_iidr_shows_the_revision(void **state)
{
	static const uint32_t expected[] = { 0, 0x4b00143b, 0x4b00243b, 0x4b00343b };

	(void)state;
	for (uint32_t revision = 1; revision <= 3; revision++) {
		struct machine *m = machine_describe(VGIC_PROFILE_KVM, 1);

		m->config.kvm_revision = revision;
		machine_start(m);
		assert_int_equal(dist_read(m, GICD_IIDR), expected[revision]);
		assert_int_equal(redist_read(m, 0, GICR_IIDR), 0x4b00043b); /* not here */
		assert_int_equal(redist_read(m, 0, GICR_CTLR), revision == 3 ? GICR_CTLR_IR | GICR_CTLR_CES : 0);
		machine_stop(m);
	}
}

static void native_typer(void **state)
{
	struct machine *m = machine_native(2);

	(void)state;
	/* 256 SPIs: ITLinesNumber 8; IDbits 9; MBIS, A3V, RSS; 1-of-N is there. */
	assert_int_equal(dist_read(m, GICD_TYPER), 0x05490008);
	assert_int_equal(dist_read(m, GICD_TYPER2), 0);
	dist_write(m, GICD_TYPER, 0xffffffff);
	dist_write(m, GICD_TYPER2, 0xffffffff);
	assert_int_equal(dist_read(m, GICD_TYPER), 0x05490008);
	assert_int_equal(dist_read(m, GICD_TYPER2), 0);
	assert_int_equal(errors_of(m, VGIC_GUEST_MMIO_READ_ONLY), 2);
	machine_stop(m);
}

static void native_typer_without_features(void **state)
{
	struct machine *m = start_with(VGIC_PROFILE_NATIVE, 0);

	(void)state;
	assert_int_equal(dist_read(m, GICD_TYPER), 0x02480008);
	machine_stop(m);
}

/* KVM's vGIC has no 1-of-N, and its No1N bit reads as zero all the same. */
static void kvm_typer(void **state)
{
	struct machine *m = machine_start(machine_describe(VGIC_PROFILE_KVM, 2));

	(void)state;
	assert_int_equal(dist_read(m, GICD_TYPER), 0x00480008);
	assert_int_equal(dist_read(m, GICD_TYPER2), 0);
	machine_stop(m);
}

static void kvm_typer_with_lpis(void **state)
{
	struct machine *m = start_with(VGIC_PROFILE_KVM, VGIC_FEATURE_LPIS);

	(void)state;
	/* What KVM itself shows with an ITS and 96 SPIs is 0x7a0003; here there are 256. */
	assert_int_equal(dist_read(m, GICD_TYPER), 0x007a0008);
	assert_int_equal(redist_read_width(m, 0, GICR_TYPER, 8) & 0xff, GICR_TYPER_PLPIS);
	machine_stop(m);
}

static void typer_shows_the_lpi_id_bits(void **state)
{
	(void)state;
	for (uint32_t bits = VGIC_MIN_LPI_BITS; bits <= VGIC_MAX_LPI_BITS; bits++) {
		struct machine *m = machine_describe(VGIC_PROFILE_NATIVE, 1);

		m->config.features |= VGIC_FEATURE_LPIS;
		m->config.lpi_id_bits = bits;
		machine_start(m);
		assert_int_equal(dist_read(m, GICD_TYPER) >> GICD_TYPER_IDBITS_SHIFT & 31, bits - 1);
		assert_int_equal(icc_read(m, 0, VGIC_ICC_CTLR_EL1) >> ICC_CTLR_IDBITS_SHIFT & 7, bits > 16);
		machine_stop(m);
	}
}

/* ITLinesNumber is rounded up to words of 32: the last word of 988 SPIs is not full. */
static void typer_counts_interrupts_in_words(void **state)
{
	struct machine *m = machine_describe(VGIC_PROFILE_NATIVE, 1);

	(void)state;
	m->config.num_spis = 988;
	machine_start(m);
	assert_int_equal(dist_read(m, GICD_TYPER) & 31, 31);
	dist_write(m, GICD_ISENABLER + 4 * 31, 0xffffffff);
	assert_int_equal(dist_read(m, GICD_ISENABLER + 4 * 31), 0x0fffffff);
	dist_write(m, GICD_IPRIORITYR + 1016, 0xffffffff);
	assert_int_equal(dist_read(m, GICD_IPRIORITYR + 1016), 0xf8f8f8f8);
	dist_write(m, GICD_IPRIORITYR + 1020, 0xffffffff);
	assert_int_equal(dist_read(m, GICD_IPRIORITYR + 1020), 0);
	machine_stop(m);
}

static void icc_ctlr_shows_the_features(void **state)
{
	struct machine *m = machine_native(1);

	(void)state;
	/* RSS, A3V, 16 bits of INTID, 5 bits of priority */
	assert_int_equal(icc_read(m, 0, VGIC_ICC_CTLR_EL1), 0x48400);
	icc_write(m, 0, VGIC_ICC_CTLR_EL1, ~0ull);
	assert_int_equal(icc_read(m, 0, VGIC_ICC_CTLR_EL1), 0x48403);
	icc_write(m, 0, VGIC_ICC_CTLR_EL1, 0);
	assert_int_equal(icc_read(m, 0, VGIC_ICC_CTLR_EL1), 0x48400);
	machine_stop(m);
	m = start_with(VGIC_PROFILE_NATIVE, VGIC_FEATURE_RSS);
	assert_int_equal(icc_read(m, 0, VGIC_ICC_CTLR_EL1), 0x40400);
	machine_stop(m);
	m = start_with(VGIC_PROFILE_KVM, 0);
	assert_int_equal(icc_read(m, 0, VGIC_ICC_CTLR_EL1), 0x400);
	machine_stop(m);
	/* As of a KVM on a processor that has both; the distributor does not know of it. */
	m = start_with(VGIC_PROFILE_KVM, VGIC_FEATURE_ICC_A3V | VGIC_FEATURE_ICC_ID24);
	assert_int_equal(icc_read(m, 0, VGIC_ICC_CTLR_EL1), 0x8c00);
	assert_int_equal(dist_read(m, GICD_TYPER) & GICD_TYPER_A3V, 0);
	machine_stop(m);
}

static void sre_is_always_on(void **state)
{
	struct machine *m = machine_native(1);

	(void)state;
	assert_int_equal(icc_read(m, 0, VGIC_ICC_SRE_EL1), 7);
	icc_write(m, 0, VGIC_ICC_SRE_EL1, 0);
	assert_int_equal(icc_read(m, 0, VGIC_ICC_SRE_EL1), 7);
	machine_stop(m);
}

static void expect_reset_values(struct machine *m, uint32_t group_word, uint32_t enabled_sgis, uint32_t spi_config)
{
	assert_int_equal(dist_read(m, GICD_CTLR), GICD_CTLR_ARE | GICD_CTLR_DS);
	for (uint32_t word = 1; word <= 8; word++) {
		assert_int_equal(dist_read(m, GICD_IGROUPR + 4 * word), group_word);
		assert_int_equal(dist_read(m, GICD_ISENABLER + 4 * word), 0);
		assert_int_equal(dist_read(m, GICD_ICENABLER + 4 * word), 0);
		assert_int_equal(dist_read(m, GICD_ISPENDR + 4 * word), 0);
		assert_int_equal(dist_read(m, GICD_ISACTIVER + 4 * word), 0);
		assert_int_equal(dist_read(m, GICD_ICFGR + 8 * word), spi_config);
		assert_int_equal(dist_read(m, GICD_ICFGR + 8 * word + 4), spi_config);
	}
	for (uint32_t intid = GIC_FIRST_SPI; intid < 288; intid++) {
		assert_int_equal(dist_read_width(m, GICD_IPRIORITYR + intid, 1), 0);
		assert_int_equal(dist_read_width(m, GICD_IROUTER + 8 * intid, 8), 0);
	}
	for (uint32_t v = 0; v < m->config.num_vcpus; v++) {
		assert_int_equal(redist_read(m, v, GICR_IGROUPR0), group_word);
		assert_int_equal(redist_read(m, v, GICR_ISENABLER0), enabled_sgis);
		assert_int_equal(redist_read(m, v, GICR_ISPENDR0), 0);
		assert_int_equal(redist_read(m, v, GICR_ISACTIVER0), 0);
		assert_int_equal(redist_read(m, v, GICR_ICFGR0), 0xaaaaaaaa);
		assert_int_equal(redist_read(m, v, GICR_ICFGR1), 0);
		for (uint32_t i = 0; i < 8; i++)
			assert_int_equal(redist_read(m, v, GICR_IPRIORITYR + 4 * i), 0);
		assert_int_equal(icc_read(m, v, VGIC_ICC_PMR_EL1), 0);
		assert_int_equal(icc_read(m, v, VGIC_ICC_BPR0_EL1), 2);
		assert_int_equal(icc_read(m, v, VGIC_ICC_BPR1_EL1), 3);
		assert_int_equal(icc_read(m, v, VGIC_ICC_RPR_EL1), 0xff);
		assert_int_equal(icc_read(m, v, VGIC_ICC_IGRPEN0_EL1), 0);
		assert_int_equal(icc_read(m, v, VGIC_ICC_IGRPEN1_EL1), 0);
		assert_int_equal(icc_read(m, v, VGIC_ICC_AP0R0_EL1), 0);
		assert_int_equal(icc_read(m, v, VGIC_ICC_AP1R0_EL1), 0);
		assert_int_equal(icc_read(m, v, VGIC_ICC_HPPIR0_EL1), GIC_SPURIOUS);
		assert_int_equal(icc_read(m, v, VGIC_ICC_HPPIR1_EL1), GIC_SPURIOUS);
		assert_int_equal(lines_of(m, v), 0);
	}
	assert_int_equal(errors_of_all_kinds(m), 0);
}

static void native_reset_values(void **state)
{
	struct machine *m = machine_native(2);

	(void)state;
	expect_reset_values(m, 0, 0, 0);
	assert_int_equal(redist_read(m, 0, GICR_WAKER), 6);
	assert_int_equal(redist_read(m, 0, GICR_CTLR), 0);
	machine_stop(m);
}

static void kvm_reset_values(void **state)
{
	struct machine *m = machine_start(machine_describe(VGIC_PROFILE_KVM, 2));

	(void)state;
	expect_reset_values(m, 0xffffffff, 0xffff, 0xaaaaaaaa); /* SPIs are edge-triggered */
	assert_int_equal(redist_read(m, 0, GICR_WAKER), 0);
	machine_stop(m);
}

static void native_ctlr_has_two_group_enables(void **state)
{
	struct machine *m = machine_native(1);

	(void)state;
	dist_write(m, GICD_CTLR, 0xffffffff);
	assert_int_equal(dist_read(m, GICD_CTLR), 0x53);
	dist_write(m, GICD_CTLR, GICD_CTLR_ENABLE_GRP0);
	assert_int_equal(dist_read(m, GICD_CTLR), 0x51);
	dist_write(m, GICD_CTLR, 0);
	assert_int_equal(dist_read(m, GICD_CTLR), 0x50);
	machine_stop(m);
}

static void kvm_ppis_stay_level_sensitive(void **state)
{
	struct machine *m = machine_start(machine_describe(VGIC_PROFILE_KVM, 1));

	(void)state;
	redist_write(m, 0, GICR_ICFGR1, 0xffffffff);
	assert_int_equal(redist_read(m, 0, GICR_ICFGR1), 0);
	redist_write(m, 0, GICR_ISENABLER0, 1u << 20);
	assert_int_equal(vgic_set_ppi(vgic_vcpu_by_index(m->vgic, 0), 20, 0, true), 0);
	assert_int_equal(redist_read(m, 0, GICR_ISPENDR0), 1u << 20);
	assert_int_equal(vgic_set_ppi(vgic_vcpu_by_index(m->vgic, 0), 20, 0, false), 0);
	assert_int_equal(redist_read(m, 0, GICR_ISPENDR0), 0);
	machine_stop(m);
}

static void kvm_ctlr_has_one_enable_for_both_groups(void **state)
{
	struct machine *m = machine_start(machine_describe(VGIC_PROFILE_KVM, 1));

	(void)state;
	machine_open_switches(m);
	irq_set_up(m, 0, 40, 0, 0x40);
	irq_set_up(m, 0, 41, 1, 0x80);
	assert_int_equal(vgic_pulse_spi(m->vgic, 40), 1);
	assert_int_equal(vgic_pulse_spi(m->vgic, 41), 1);

	dist_write(m, GICD_CTLR, GICD_CTLR_ENABLE_GRP0);
	assert_int_equal(dist_read(m, GICD_CTLR), 0x50);
	assert_int_equal(lines_of(m, 0), 0);
	dist_write(m, GICD_CTLR, GICD_CTLR_ENABLE_GRP1);
	assert_int_equal(dist_read(m, GICD_CTLR), 0x52);
	assert_int_equal(lines_of(m, 0), VGIC_LINE_FIQ);
	assert_int_equal(ack0(m, 0), 40);
	eoi0(m, 0, 40);
	assert_int_equal(lines_of(m, 0), VGIC_LINE_IRQ);
	assert_int_equal(ack1(m, 0), 41);
	machine_stop(m);
}

static void kvm_irouter_has_neither_irm_nor_aff3(void **state)
{
	struct machine *m = machine_start(machine_describe(VGIC_PROFILE_KVM, 1));

	(void)state;
	spi_route(m, 40, ~0ull);
	assert_int_equal(dist_read_width(m, GICD_IROUTER + 8 * 40, 8), 0xffffff);
	machine_stop(m);
	m = start_with(VGIC_PROFILE_KVM, VGIC_FEATURE_ONE_OF_N | VGIC_FEATURE_A3V);
	spi_route(m, 40, ~0ull);
	assert_int_equal(dist_read_width(m, GICD_IROUTER + 8 * 40, 8), 0xff80ffffff);
	machine_stop(m);
}

static void statusr_needs_its_feature(void **state)
{
	struct machine *m = start_with(VGIC_PROFILE_NATIVE, 0);

	(void)state;
	dist_read(m, 0x20);
	redist_read(m, 0, 0x20);
	assert_int_equal(dist_read(m, GICD_STATUSR), 0);
	assert_int_equal(redist_read(m, 0, GICR_STATUSR), 0);
	assert_int_equal(errors_of(m, VGIC_GUEST_MMIO_RESERVED), 2);
	machine_stop(m);
}

static void waker_needs_its_feature(void **state)
{
	struct machine *m = start_with(VGIC_PROFILE_NATIVE, VGIC_FEATURE_ONE_OF_N);

	(void)state;
	assert_int_equal(redist_read(m, 0, GICR_WAKER), 0);
	redist_write(m, 0, GICR_WAKER, 0xffffffff);
	assert_int_equal(redist_read(m, 0, GICR_WAKER), 0);
	assert_int_equal(errors_of_all_kinds(m), 0);
	machine_stop(m);
}

static void dpg_bits_need_their_feature(void **state)
{
	struct machine *m = start_with(VGIC_PROFILE_NATIVE, VGIC_FEATURE_ONE_OF_N);

	(void)state;
	redist_write(m, 0, GICR_CTLR, 0xffffffff);
	assert_int_equal(redist_read(m, 0, GICR_CTLR), 0);
	assert_int_equal(redist_read_width(m, 0, GICR_TYPER, 8) & GICR_TYPER_DPGS, 0);
	machine_stop(m);
	m = machine_native(1);
	redist_write(m, 0, GICR_CTLR, 0xffffffff);
	assert_int_equal(redist_read(m, 0, GICR_CTLR), GICR_CTLR_DPG0 | GICR_CTLR_DPG1NS);
	assert_int_equal(redist_read_width(m, 0, GICR_TYPER, 8) & GICR_TYPER_DPGS, GICR_TYPER_DPGS);
	machine_stop(m);
}

static void message_registers_need_their_feature(void **state)
{
	struct machine *m = start_with(VGIC_PROFILE_NATIVE, 0);

	(void)state;
	dist_write(m, GICD_SETSPI_NSR, 40);
	assert_false(irq_is_pending(m, 0, 40));
	assert_int_equal(errors_of(m, VGIC_GUEST_MMIO_RESERVED), 1);
	machine_stop(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(native_id_registers_name_a_gicv3),
		cmocka_unit_test(kvm_id_registers_are_pidr2_alone),
		cmocka_unit_test(id_registers_ignore_writes),
		cmocka_unit_test(native_iidr),
		cmocka_unit_test(kvm_iidr_shows_the_revision),
		cmocka_unit_test(native_typer),
		cmocka_unit_test(native_typer_without_features),
		cmocka_unit_test(kvm_typer),
		cmocka_unit_test(kvm_typer_with_lpis),
		cmocka_unit_test(typer_shows_the_lpi_id_bits),
		cmocka_unit_test(typer_counts_interrupts_in_words),
		cmocka_unit_test(icc_ctlr_shows_the_features),
		cmocka_unit_test(sre_is_always_on),
		cmocka_unit_test(native_reset_values),
		cmocka_unit_test(kvm_reset_values),
		cmocka_unit_test(native_ctlr_has_two_group_enables),
		cmocka_unit_test(kvm_ppis_stay_level_sensitive),
		cmocka_unit_test(kvm_ctlr_has_one_enable_for_both_groups),
		cmocka_unit_test(kvm_irouter_has_neither_irm_nor_aff3),
		cmocka_unit_test(statusr_needs_its_feature),
		cmocka_unit_test(waker_needs_its_feature),
		cmocka_unit_test(dpg_bits_need_their_feature),
		cmocka_unit_test(message_registers_need_their_feature),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("identity", tests, NULL, NULL);
}
