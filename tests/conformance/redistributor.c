/* SPDX-License-Identifier: MIT */
/*
 * The redistributors: who is who (TYPER and Last over the regions), frames by
 * guest-physical address, WAKER, and the SGI frame.
 */
#include <errno.h>

#include "machine.h"

static bool is_last(struct machine *m, uint32_t vcpu)
{
	return redist_read_width(m, vcpu, GICR_TYPER, 8) & GICR_TYPER_LAST;
}

static void expect_last(struct machine *m, const char *pattern)
{
	for (uint32_t v = 0; v < m->config.num_vcpus; v++)
		assert_int_equal(is_last(m, v), pattern[v] == '1');
}

static void typer_tells_number_and_affinity(void **state)
{
	struct machine *m = machine_describe(VGIC_PROFILE_NATIVE, 3);

	(void)state;
	m->vcpus[0] = (struct vgic_vcpu_config){ .id = 5, .affinity = 0x1200345678 };
	m->vcpus[1] = (struct vgic_vcpu_config){ .id = 0, .affinity = 0x10000 };
	m->vcpus[2] = (struct vgic_vcpu_config){ .id = 65535, .affinity = 0x3 };
	machine_start(m);
	assert_int_equal(redist_read_width(m, 0, GICR_TYPER, 8), 0x1234567800000520);
	assert_int_equal(redist_read_width(m, 1, GICR_TYPER, 8), 0x0001000000000020);
	assert_int_equal(redist_read_width(m, 2, GICR_TYPER, 8), 0x0000000300ffff30);
	/* Both halves by themselves. */
	assert_int_equal(redist_read(m, 0, GICR_TYPER), 0x520);
	assert_int_equal(redist_read(m, 0, GICR_TYPER + 4), 0x12345678);
	redist_write_width(m, 0, GICR_TYPER, 8, 0);
	redist_write(m, 0, GICR_TYPER + 4, 0);
	assert_int_equal(redist_read_width(m, 0, GICR_TYPER, 8), 0x1234567800000520);
	assert_int_equal(errors_of(m, VGIC_GUEST_MMIO_READ_ONLY), 2);
	machine_stop(m);
}

static void last_without_regions_is_the_last_vcpu(void **state)
{
	struct machine *m = machine_native(3);

	(void)state;
	expect_last(m, "001");
	machine_stop(m);
}

static void last_ends_each_region(void **state)
{
	struct machine *m = machine_describe(VGIC_PROFILE_NATIVE, 4);

	(void)state;
	machine_add_region(m, 0x080a0000, 2);
	machine_add_region(m, 0x090a0000, 2);
	machine_start(m);
	expect_last(m, "0101");
	machine_stop(m);
}

static void last_is_on_the_last_vcpu_of_a_half_filled_region(void **state)
{
	struct machine *m = machine_describe(VGIC_PROFILE_NATIVE, 3);

	(void)state;
	machine_add_region(m, 0x080a0000, 2);
	machine_add_region(m, 0x090a0000, 16);
	machine_start(m);
	expect_last(m, "011");
	machine_stop(m);
}

static void last_passes_over_regions_that_touch(void **state)
{
	struct machine *m = machine_describe(VGIC_PROFILE_NATIVE, 5);

	(void)state;
	machine_add_region(m, 0x080a0000, 2);
	machine_add_region(m, 0x080a0000 + 2 * VGIC_REDIST_FRAME_SIZE, 1);
	machine_add_region(m, 0x100000000, 8);
	machine_start(m);
	expect_last(m, "00101");
	machine_stop(m);
}

/* A machine's memory map does not depend on how many vCPUs it was started with. */
static void regions_may_be_more_than_vcpus_fill(void **state)
{
	struct machine *m = machine_describe(VGIC_PROFILE_NATIVE, 1);
	uint64_t value = 1;

	(void)state;
	machine_add_region(m, 0x080a0000, 123);
	machine_add_region(m, 0x4000000000, 512);
	machine_start(m);
	expect_last(m, "1");
	assert_int_equal(vgic_mmio_read(m->vgic, 0x4000000000 + GICR_TYPER, 8, &value), 0);
	assert_int_equal(value, 0);
	machine_stop(m);
}

static void frames_are_found_by_address(void **state)
{
	struct machine *m = machine_describe(VGIC_PROFILE_NATIVE, 3);
	static const uint64_t frames[] = { 0x080a0000, 0x080a0000 + VGIC_REDIST_FRAME_SIZE, 0x100000000 };
	uint64_t value;

	(void)state;
	m->config.has_dist_base = true;
	m->config.dist_base = MACHINE_DIST_BASE;
	for (uint32_t v = 0; v < 3; v++)
		m->vcpus[v].id = 10 - v;
	machine_add_region(m, 0x080a0000, 2);
	machine_add_region(m, 0x100000000, 2);
	machine_start(m);

	for (uint32_t v = 0; v < 3; v++) {
		assert_int_equal(vgic_mmio_read(m->vgic, frames[v] + GICR_TYPER, 4, &value), 0);
		assert_int_equal(value >> GICR_TYPER_NUMBER_SHIFT & 0xffff, 10 - v);
		assert_int_equal(vgic_mmio_write(m->vgic, frames[v] + GICR_ISENABLER0, 4, 1u << v), 0);
		assert_int_equal(redist_read(m, v, GICR_ISENABLER0), 1u << v);
	}
	assert_int_equal(vgic_mmio_write(m->vgic, MACHINE_DIST_BASE + GICD_CTLR, 4, 3), 0);
	assert_int_equal(dist_read(m, GICD_CTLR), 0x53);

	/* A frame of a region that no vCPU fills: zero, ignored, and no fault. */
	assert_int_equal(errors_of_all_kinds(m), 0);
	value = 1;
	assert_int_equal(vgic_mmio_read(m->vgic, 0x100000000 + VGIC_REDIST_FRAME_SIZE + GICR_TYPER, 8, &value), 0);
	assert_int_equal(value, 0);
	assert_int_equal(vgic_mmio_write(m->vgic, 0x100000000 + VGIC_REDIST_FRAME_SIZE, 4, 1), 0);
	assert_int_equal(errors_of(m, VGIC_GUEST_MMIO_RESERVED), 2);

	/* Around the frames there is nothing. */
	assert_int_equal(vgic_mmio_read(m->vgic, MACHINE_DIST_BASE - 4, 4, &value), -ENXIO);
	assert_int_equal(vgic_mmio_read(m->vgic, MACHINE_DIST_BASE + VGIC_DIST_FRAME_SIZE, 4, &value), -ENXIO);
	assert_int_equal(vgic_mmio_read(m->vgic, 0x080a0000 - 1, 1, &value), -ENXIO);
	assert_int_equal(vgic_mmio_read(m->vgic, 0x080a0000 + 2 * VGIC_REDIST_FRAME_SIZE, 4, &value), -ENXIO);
	assert_int_equal(vgic_mmio_write(m->vgic, 0x100000000 + 2 * VGIC_REDIST_FRAME_SIZE, 4, 0), -ENXIO);
	assert_int_equal(vgic_mmio_write(m->vgic, MACHINE_DIST_BASE + VGIC_DIST_FRAME_SIZE - 4, 8, 0), -ENXIO);
	assert_int_equal(vgic_mmio_read(m->vgic, MACHINE_DIST_BASE, 3, &value), -EINVAL);
	assert_int_equal(vgic_mmio_write(m->vgic, 0x080a0000, 16, 0), -EINVAL);
	machine_stop(m);
}

static void frames_at_the_end_of_the_address_space(void **state)
{
	struct machine *m = machine_describe(VGIC_PROFILE_NATIVE, 1);
	uint64_t value = 1;

	(void)state;
	m->config.has_dist_base = true;
	m->config.dist_base = 0;
	machine_add_region(m, 0xfffffffffff00000, 7);
	machine_start(m);
	assert_int_equal(vgic_mmio_read(m->vgic, 0, 4, &value), 0);
	assert_int_equal(value, 0x50);
	assert_int_equal(vgic_mmio_read(m->vgic, UINT64_MAX, 8, &value), -ENXIO);
	assert_int_equal(vgic_mmio_read(m->vgic, 0xfffffffffff00000 + GICR_TYPER, 8, &value), 0);
	assert_int_equal(value, 0x30);
	machine_stop(m);
}

/* Not banked: whoever accesses it, a frame is that of its own vCPU. */
static void any_frame_can_be_written_for_any_vcpu(void **state)
{
	struct machine *m = machine_open(2);

	(void)state;
	redist_write(m, 1, GICR_ISENABLER0, 0xf);
	assert_int_equal(redist_read(m, 0, GICR_ISENABLER0), 0);
	assert_int_equal(redist_read(m, 1, GICR_ISENABLER0), 0xf);
	redist_write(m, 1, GICR_ISPENDR0, 2);
	assert_int_equal(lines_of(m, 0), 0);
	assert_int_equal(lines_of(m, 1), VGIC_LINE_FIQ);
	assert_int_equal(ack0(m, 1), 1);
	machine_stop(m);
}

static void waker_children_follow_the_processor(void **state)
{
	struct machine *m = machine_native(1);

	(void)state;
	redist_write(m, 0, GICR_WAKER, 0);
	assert_int_equal(redist_read(m, 0, GICR_WAKER), 0);
	redist_write(m, 0, GICR_WAKER, GICR_WAKER_CHILDREN_ASLEEP);
	assert_int_equal(redist_read(m, 0, GICR_WAKER), 0);
	redist_write(m, 0, GICR_WAKER, GICR_WAKER_PROCESSOR_SLEEP);
	assert_int_equal(redist_read(m, 0, GICR_WAKER), 6);
	machine_stop(m);
}

/* There are guests that never wake their redistributors: what is routed here arrives all the same. */
static void waker_does_not_gate_routed_interrupts(void **state)
{
	struct machine *m = machine_open(1);

	(void)state;
	redist_write(m, 0, GICR_WAKER, GICR_WAKER_PROCESSOR_SLEEP);
	irq_set_up(m, 0, 40, 1, 0x80);
	irq_set_up(m, 0, 3, 1, 0x90);
	irq_set_up(m, 0, 27, 1, 0xa0);
	assert_int_equal(vgic_pulse_spi(m->vgic, 40), 1);
	assert_int_equal(vgic_set_ppi(vcpu_of(m, 0), 27, 0, true), 0);
	icc_write(m, 0, VGIC_ICC_SGI1R_EL1, 3u << ICC_SGIR_INTID_SHIFT | 1);
	assert_int_equal(ack1(m, 0), 40);
	eoi1(m, 0, 40);
	assert_int_equal(ack1(m, 0), 3);
	eoi1(m, 0, 3);
	assert_int_equal(ack1(m, 0), 27);
	machine_stop(m);
}

static void sgis_are_always_edge_triggered(void **state)
{
	struct machine *m = machine_open(1);

	(void)state;
	redist_write(m, 0, GICR_ICFGR0, 0);
	assert_int_equal(redist_read(m, 0, GICR_ICFGR0), 0xaaaaaaaa);
	redist_write(m, 0, GICR_ICFGR1, 0xffffffff);
	assert_int_equal(redist_read(m, 0, GICR_ICFGR1), 0xaaaaaaaa);
	redist_write(m, 0, GICR_ICFGR1, 0x5555d555);
	assert_int_equal(redist_read(m, 0, GICR_ICFGR1), 0x00008000);
	assert_int_equal(errors_of(m, VGIC_GUEST_MMIO_WIDTH), 0);
	machine_stop(m);
}

static void sgi_frame_ends_with_ppi_31(void **state)
{
	static const uint32_t banks[] = { GICR_IGROUPR0, GICR_ISENABLER0, GICR_ISPENDR0, GICR_ISACTIVER0 };
	struct machine *m = machine_native(2);

	(void)state;
	for (size_t i = 0; i < sizeof(banks) / sizeof(banks[0]); i++) {
		redist_write(m, 1, banks[i], 0xffffffff);
		assert_int_equal(redist_read(m, 1, banks[i]), 0xffffffff);
		assert_int_equal(redist_read(m, 0, banks[i]), 0);
		assert_int_equal(errors_of_all_kinds(m), 2 * i);
		redist_write(m, 1, banks[i] + 4, 0xffffffff);
		assert_int_equal(redist_read(m, 1, banks[i] + 4), 0);
	}
	redist_write(m, 1, GICR_IPRIORITYR + 28, 0xffffffff);
	assert_int_equal(redist_read(m, 1, GICR_IPRIORITYR + 28), 0xf8f8f8f8);
	redist_write(m, 1, GICR_IPRIORITYR + 32, 0xffffffff);
	assert_int_equal(redist_read(m, 1, GICR_IPRIORITYR + 32), 0);
	assert_int_equal(errors_of(m, VGIC_GUEST_MMIO_RESERVED), 10);
	/* RRD and WRD of this redistributor and of no other frame. */
	assert_int_equal(redist_read(m, 1, GICR_STATUSR), 3);
	assert_int_equal(redist_read(m, 0, GICR_STATUSR), 0);
	assert_int_equal(dist_read(m, GICD_STATUSR), 0);
	machine_stop(m);
}

static void lpi_registers_are_zero_and_no_error(void **state)
{
	static const uint32_t offsets[] = { GICR_SETLPIR,   GICR_CLRLPIR, GICR_PROPBASER,
					    GICR_PENDBASER, GICR_INVLPIR, GICR_INVALLR };
	struct machine *m = machine_open(1);

	(void)state;
	for (size_t i = 0; i < sizeof(offsets) / sizeof(offsets[0]); i++) {
		redist_write_width(m, 0, offsets[i], 8, ~0ull);
		assert_int_equal(redist_read_width(m, 0, offsets[i], 8), 0);
		redist_write(m, 0, offsets[i], 5);
		assert_int_equal(redist_read(m, 0, offsets[i]), 0);
	}
	assert_int_equal(redist_read(m, 0, GICR_SYNCR), 0);
	/* EnableLPIs does not stick. */
	redist_write(m, 0, GICR_CTLR, 1);
	assert_int_equal(redist_read(m, 0, GICR_CTLR), 0);
	assert_int_equal(errors_of_all_kinds(m), 0);
	assert_int_equal(lines_of(m, 0), 0);
	machine_stop(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(typer_tells_number_and_affinity),
		cmocka_unit_test(last_without_regions_is_the_last_vcpu),
		cmocka_unit_test(last_ends_each_region),
		cmocka_unit_test(last_is_on_the_last_vcpu_of_a_half_filled_region),
		cmocka_unit_test(last_passes_over_regions_that_touch),
		cmocka_unit_test(regions_may_be_more_than_vcpus_fill),
		cmocka_unit_test(frames_are_found_by_address),
		cmocka_unit_test(frames_at_the_end_of_the_address_space),
		cmocka_unit_test(any_frame_can_be_written_for_any_vcpu),
		cmocka_unit_test(waker_children_follow_the_processor),
		cmocka_unit_test(waker_does_not_gate_routed_interrupts),
		cmocka_unit_test(sgis_are_always_edge_triggered),
		cmocka_unit_test(sgi_frame_ends_with_ppi_31),
		cmocka_unit_test(lpi_registers_are_zero_and_no_error),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("redistributor", tests, NULL, NULL);
}
