/* SPDX-License-Identifier: MIT */
/*
 * SGIs: which vCPUs the value of ICC_SGI0R, ICC_SGI1R and ICC_ASGI1R names, and
 * which of their SGIs each register reaches.
 */
#include "machine.h"

#define SGI(intid) ((uint64_t)(intid) << ICC_SGIR_INTID_SHIFT)

/* The selector of a cluster and range, without a target list. */
static uint64_t cluster_of(uint64_t affinity)
{
	return (affinity >> 8 & 0xff) << ICC_SGIR_AFF1_SHIFT | (affinity >> 16 & 0xff) << ICC_SGIR_AFF2_SHIFT |
	       (affinity >> 32 & 0xff) << ICC_SGIR_AFF3_SHIFT | (affinity >> 4 & 0xf) << ICC_SGIR_RS_SHIFT;
}

static struct machine *start_with_affinities(const uint64_t *affinities, uint32_t num, uint32_t features)
{
	struct machine *m = machine_describe(VGIC_PROFILE_NATIVE, num);

	m->config.features = features;
	for (uint32_t v = 0; v < num; v++) {
		m->vcpus[v].affinity = affinities[v];
		m->vcpus[v].id = 3 * num - v;
	}
	machine_start(m);
	machine_open_switches(m);
	for (uint32_t v = 0; v < num; v++) {
		redist_write(m, v, GICR_IGROUPR0, 0xffffffff);
		redist_write(m, v, GICR_ISENABLER0, 0xffff);
	}
	return m;
}

/* Exactly these vCPUs (bit v: index v) have exactly this SGI pending; afterwards none has. */
static void expect_sgi_at(struct machine *m, uint32_t intid, uint64_t vcpus)
{
	for (uint32_t v = 0; v < m->config.num_vcpus; v++) {
		assert_int_equal(redist_read(m, v, GICR_ISPENDR0), vcpus >> v & 1 ? 1u << intid : 0);
		redist_write(m, v, GICR_ICPENDR0, 0xffffffff);
	}
}

static void target_list_is_of_one_cluster(void **state)
{
	static const uint64_t affinities[] = { 0x0, 0x1, 0x2, 0x3, 0x100, 0x101, 0x102, 0x103, 0x10000, 0x100000000 };
	struct machine *m = start_with_affinities(affinities, 10, VGIC_FEATURE_A3V);

	(void)state;
	/* 0.0.1.{1,3} */
	icc_write(m, 0, VGIC_ICC_SGI1R_EL1, SGI(5) | cluster_of(0x100) | 0xa);
	expect_sgi_at(m, 5, 1u << 5 | 1u << 7);
	icc_write(m, 4, VGIC_ICC_SGI1R_EL1, SGI(0) | cluster_of(0) | 0xf);
	expect_sgi_at(m, 0, 0xf);
	icc_write(m, 4, VGIC_ICC_SGI1R_EL1, SGI(15) | cluster_of(0x10000) | 1);
	expect_sgi_at(m, 15, 1u << 8);
	icc_write(m, 4, VGIC_ICC_SGI1R_EL1, SGI(15) | cluster_of(0x100000000) | 1);
	expect_sgi_at(m, 15, 1u << 9);
	/* The sender itself is a target like any other. */
	icc_write(m, 4, VGIC_ICC_SGI1R_EL1, SGI(2) | cluster_of(0x100) | 1);
	expect_sgi_at(m, 2, 1u << 4);
	assert_int_equal(errors_of_all_kinds(m), 0);
	machine_stop(m);
}

static void delivered_sgi_can_be_acknowledged(void **state)
{
	struct machine *m = machine_open(2);

	(void)state;
	irq_set_up(m, 1, 7, 1, 0x40);
	icc_write(m, 0, VGIC_ICC_SGI1R_EL1, SGI(7) | 2);
	assert_int_equal(lines_of(m, 0), 0);
	assert_int_equal(lines_of(m, 1), VGIC_LINE_IRQ);
	assert_int_equal(ack1(m, 1), 7);
	assert_int_equal(icc_read(m, 1, VGIC_ICC_RPR_EL1), 0x40);
	/* Pending again while active: once, however often it was sent. */
	icc_write(m, 0, VGIC_ICC_SGI1R_EL1, SGI(7) | 2);
	icc_write(m, 0, VGIC_ICC_SGI1R_EL1, SGI(7) | 2);
	assert_int_equal(lines_of(m, 1), 0);
	eoi1(m, 1, 7);
	assert_int_equal(ack1(m, 1), 7);
	eoi1(m, 1, 7);
	assert_int_equal(ack1(m, 1), NO_INTERRUPT);
	machine_stop(m);
}

static void range_selector_reaches_aff0_above_15(void **state)
{
	struct machine *m = machine_describe(VGIC_PROFILE_NATIVE, 20);

	(void)state;
	for (uint32_t v = 0; v < 20; v++)
		m->vcpus[v].affinity = v;
	machine_start(m);
	icc_write(m, 0, VGIC_ICC_SGI1R_EL1, SGI(1) | 1ull << ICC_SGIR_RS_SHIFT | 1u << 2);
	expect_sgi_at(m, 1, 1u << 18);
	icc_write(m, 0, VGIC_ICC_SGI1R_EL1, SGI(1) | 1u << 2);
	expect_sgi_at(m, 1, 1u << 2);
	assert_int_equal(errors_of_all_kinds(m), 0);
	/* 16 to 19 exist; 20 to 31 do not, and that is one error of one write. */
	icc_write(m, 0, VGIC_ICC_SGI1R_EL1, SGI(1) | 1ull << ICC_SGIR_RS_SHIFT | 0xffff);
	expect_sgi_at(m, 1, 0xf0000);
	assert_int_equal(errors_of(m, VGIC_GUEST_SGI_NO_TARGET), 1);
	machine_stop(m);
}

static void range_selector_without_its_feature_is_ignored(void **state)
{
	struct machine *m = machine_describe(VGIC_PROFILE_NATIVE, 20);

	(void)state;
	m->config.features = 0;
	for (uint32_t v = 0; v < 20; v++)
		m->vcpus[v].affinity = v;
	machine_start(m);
	icc_write(m, 0, VGIC_ICC_SGI1R_EL1, SGI(1) | 1ull << ICC_SGIR_RS_SHIFT | 1u << 2);
	expect_sgi_at(m, 1, 1u << 2);
	assert_int_equal(errors_of(m, VGIC_GUEST_SGI_NO_TARGET), 0);
	machine_stop(m);
}

static void every_aff0_and_range_selects_its_own_vcpu(void **state)
{
	struct machine *m = machine_describe(VGIC_PROFILE_NATIVE, 256);

	(void)state;
	for (uint32_t v = 0; v < 256; v++)
		m->vcpus[v].affinity = 255 - v;
	machine_start(m);
	for (uint32_t v = 0; v < 256; v++) {
		icc_write(m, 0, VGIC_ICC_SGI1R_EL1, SGI(9) | cluster_of(255 - v) | 1ull << ((255 - v) & 15));
		for (uint32_t other = 0; other < 256; other++)
			assert_int_equal(redist_read(m, other, GICR_ISPENDR0), other == v ? 1u << 9 : 0);
		redist_write(m, v, GICR_ICPENDR0, 1u << 9);
	}
	machine_stop(m);
}

static void all_but_self_ignores_the_list(void **state)
{
	static const uint64_t affinities[] = { 0x0, 0x100, 0x23020 };
	struct machine *m = start_with_affinities(affinities, 3, VGIC_FEATURE_RSS);

	(void)state;
	icc_write(m, 1, VGIC_ICC_SGI1R_EL1, SGI(3) | ICC_SGIR_IRM);
	expect_sgi_at(m, 3, 1u << 0 | 1u << 2);
	icc_write(m, 0, VGIC_ICC_SGI1R_EL1, SGI(3) | ICC_SGIR_IRM | cluster_of(0x4050607080) | 0xffff);
	expect_sgi_at(m, 3, 1u << 1 | 1u << 2);
	assert_int_equal(errors_of_all_kinds(m), 0);
	machine_stop(m);

	m = machine_open(1);
	icc_write(m, 0, VGIC_ICC_SGI1R_EL1, SGI(3) | ICC_SGIR_IRM);
	expect_sgi_at(m, 3, 0);
	assert_int_equal(errors_of_all_kinds(m), 0);
	machine_stop(m);
}

static void offline_targets_keep_their_sgis(void **state)
{
	struct machine *m = machine_open(3);

	(void)state;
	irq_set_up(m, 1, 3, 1, 0x80);
	irq_set_up(m, 2, 3, 1, 0x80);
	vgic_vcpu_set_online(vcpu_of(m, 1), false);
	icc_write(m, 0, VGIC_ICC_SGI1R_EL1, SGI(3) | ICC_SGIR_IRM);
	assert_true(irq_is_pending(m, 1, 3));
	assert_int_equal(lines_of(m, 1), 0);
	assert_int_equal(lines_of(m, 2), VGIC_LINE_IRQ);
	vgic_vcpu_set_online(vcpu_of(m, 1), true);
	assert_int_equal(lines_of(m, 1), VGIC_LINE_IRQ);
	assert_int_equal(ack1(m, 1), 3);
	machine_stop(m);
}

static void bits_without_vcpu_are_counted_once_a_write(void **state)
{
	static const uint64_t affinities[] = { 0x0, 0x1, 0x100 };
	struct machine *m = start_with_affinities(affinities, 3, VGIC_FEATURE_RSS | VGIC_FEATURE_A3V);

	(void)state;
	icc_write(m, 0, VGIC_ICC_SGI1R_EL1, SGI(3) | 0xffff);
	expect_sgi_at(m, 3, 3);
	assert_int_equal(errors_of(m, VGIC_GUEST_SGI_NO_TARGET), 1);
	icc_write(m, 0, VGIC_ICC_SGI1R_EL1, SGI(3) | cluster_of(0x200) | 1);
	expect_sgi_at(m, 3, 0);
	assert_int_equal(errors_of(m, VGIC_GUEST_SGI_NO_TARGET), 2);
	/* The same Aff1 and Aff0 under another Aff2 or Aff3 is another vCPU. */
	icc_write(m, 0, VGIC_ICC_SGI1R_EL1, SGI(3) | cluster_of(0x10000) | 1);
	icc_write(m, 0, VGIC_ICC_SGI1R_EL1, SGI(3) | cluster_of(0x100000000) | 1);
	icc_write(m, 0, VGIC_ICC_SGI1R_EL1, SGI(3) | cluster_of(0x10) | 1);
	expect_sgi_at(m, 3, 0);
	assert_int_equal(errors_of(m, VGIC_GUEST_SGI_NO_TARGET), 5);
	/* An empty list names nobody, and that is no error. */
	icc_write(m, 0, VGIC_ICC_SGI1R_EL1, SGI(3));
	expect_sgi_at(m, 3, 0);
	assert_int_equal(errors_of(m, VGIC_GUEST_SGI_NO_TARGET), 5);
	machine_stop(m);
}

static void aff3_without_its_feature_names_nobody(void **state)
{
	static const uint64_t affinities[] = { 0x0, 0x1 };
	struct machine *m = start_with_affinities(affinities, 2, 0);

	(void)state;
	icc_write(m, 0, VGIC_ICC_SGI1R_EL1, SGI(3) | cluster_of(0x100000000) | 2);
	expect_sgi_at(m, 3, 0);
	assert_int_equal(errors_of(m, VGIC_GUEST_SGI_NO_TARGET), 1);
	machine_stop(m);
}

static void each_register_reaches_its_groups(void **state)
{
	static const struct {
		uint32_t reg;
		bool reaches[2]; /* by group */
	} cases[] = {
		{ VGIC_ICC_SGI1R_EL1, { true, true } },
		{ VGIC_ICC_SGI0R_EL1, { true, false } },
		{ VGIC_ICC_ASGI1R_EL1, { true, false } },
	};
	struct machine *m = machine_open(2);

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		for (unsigned group = 0; group < 2; group++) {
			for (unsigned broadcast = 0; broadcast < 2; broadcast++) {
				irq_set_group(m, 1, 4, group);
				icc_write(m, 0, cases[i].reg, SGI(4) | (broadcast ? ICC_SGIR_IRM : 2));
				expect_sgi_at(m, 4, cases[i].reaches[group] ? 2 : 0);
			}
		}
	}
	assert_int_equal(errors_of_all_kinds(m), 0);
	machine_stop(m);
}

/* It is the target's group that counts, for each target by itself. */
static void group_is_that_of_the_target(void **state)
{
	struct machine *m = machine_open(3);

	(void)state;
	irq_set_group(m, 0, 4, 0);
	irq_set_group(m, 1, 4, 1);
	irq_set_group(m, 2, 4, 0);
	icc_write(m, 1, VGIC_ICC_SGI0R_EL1, SGI(4) | 7);
	expect_sgi_at(m, 4, 5);
	machine_stop(m);
}

static void sgis_can_be_pended_through_the_redistributor(void **state)
{
	struct machine *m = machine_open(2);

	(void)state;
	irq_set_up(m, 1, 11, 1, 0x80);
	redist_write(m, 1, GICR_ISPENDR0, 1u << 11);
	assert_int_equal(lines_of(m, 1), VGIC_LINE_IRQ);
	redist_write(m, 1, GICR_ICPENDR0, 1u << 11);
	assert_int_equal(lines_of(m, 1), 0);
	redist_write(m, 1, GICR_ISPENDR0, 1u << 11);
	assert_int_equal(ack1(m, 1), 11);
	machine_stop(m);
}

/* One vCPU in a cluster of its own each, affinities spread over all levels. */
static void hostile_affinities_are_told_apart(void **state)
{
	uint64_t affinities[60];
	struct machine *m;

	(void)state;
	for (uint32_t v = 0; v < 60; v++)
		affinities[v] = (uint64_t)(v * 37 % 256) << 32 | (v * 91 % 256) << 16 | (v * 13 % 256) << 8 |
				(v * 7 % 256);
	m = start_with_affinities(affinities, 60, VGIC_FEATURE_RSS | VGIC_FEATURE_A3V);
	for (uint32_t v = 0; v < 60; v++) {
		icc_write(m, 59 - v, VGIC_ICC_SGI1R_EL1,
			  SGI(6) | cluster_of(affinities[v]) | 1ull << (affinities[v] & 15));
		expect_sgi_at(m, 6, 1ull << v);
	}
	assert_int_equal(errors_of_all_kinds(m), 0);
	machine_stop(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(target_list_is_of_one_cluster),
		cmocka_unit_test(delivered_sgi_can_be_acknowledged),
		cmocka_unit_test(range_selector_reaches_aff0_above_15),
		cmocka_unit_test(range_selector_without_its_feature_is_ignored),
		cmocka_unit_test(every_aff0_and_range_selects_its_own_vcpu),
		cmocka_unit_test(all_but_self_ignores_the_list),
		cmocka_unit_test(offline_targets_keep_their_sgis),
		cmocka_unit_test(bits_without_vcpu_are_counted_once_a_write),
		cmocka_unit_test(aff3_without_its_feature_names_nobody),
		cmocka_unit_test(each_register_reaches_its_groups),
		cmocka_unit_test(group_is_that_of_the_target),
		cmocka_unit_test(sgis_can_be_pended_through_the_redistributor),
		cmocka_unit_test(hostile_affinities_are_told_apart),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("sgi", tests, NULL, NULL);
}
