/* SPDX-License-Identifier: MIT */
/*
 * Creation and its errors, look-ups, reset and destruction, and what the calls of
 * the public API refuse.
 *
 * The allocator of the port layer is wrapped (linker option --wrap) so that any
 * allocation can be made to fail.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "machine.h"

/* ---- Allocations that fail ---- */

static unsigned num_allocations;
static unsigned failing_allocation; /* 1 is the first, 0 none */
static int num_live;                /* allocated and not freed */

void *__real_port_alloc_zeroed(size_t size, size_t align);
void *__wrap_port_alloc_zeroed(size_t size, size_t align);
void __real_port_free(void *memory);
void __wrap_port_free(void *memory);
struct port_lock;
struct port_lock *__real_port_lock_new(int class);
struct port_lock *__wrap_port_lock_new(int class);
void __real_port_lock_free(struct port_lock *lock);
void __wrap_port_lock_free(struct port_lock *lock);

static bool allocation_fails(void)
{
	return ++num_allocations == failing_allocation;
}

void *__wrap_port_alloc_zeroed(size_t size, size_t align)
{
	void *memory = allocation_fails() ? NULL : __real_port_alloc_zeroed(size, align);

	num_live += memory != NULL;
	return memory;
}

void __wrap_port_free(void *memory)
{
	num_live -= memory != NULL;
	__real_port_free(memory);
}

struct port_lock *__wrap_port_lock_new(int class)
{
	struct port_lock *lock = allocation_fails() ? NULL : __real_port_lock_new(class);

	num_live += lock != NULL;
	return lock;
}

void __wrap_port_lock_free(struct port_lock *lock)
{
	num_live -= lock != NULL;
	__real_port_lock_free(lock);
}

static void fail_each_allocation(struct machine *m)
{
	unsigned n = 0;
	int error;

	do {
		num_allocations = 0;
		num_live = 0;
		failing_allocation = ++n;
		error = machine_try_start(m);
		failing_allocation = 0;
		if (error) {
			assert_int_equal(error, -ENOMEM);
			assert_null(m->vgic);
			assert_int_equal(num_live, 0);
		}
	} while (error);

	/* All of them were made to fail: the last try had one fewer than it would have failed at. */
	assert_int_equal(num_allocations, n - 1);
	assert_true(n > 4);
	vgic_destroy(m->vgic);
	m->vgic = NULL;
	assert_int_equal(num_live, 0);
}

static void create_without_memory_leaks_nothing(void **state)
{
	struct machine *m = machine_describe(VGIC_PROFILE_NATIVE, 3);

	(void)state;
	m->config.has_dist_base = true;
	m->config.dist_base = MACHINE_DIST_BASE;
	machine_add_region(m, 0x080a0000, 1);
	machine_add_region(m, 0x090a0000, 2);
	fail_each_allocation(m);
	m->config.features |= VGIC_FEATURE_LPIS;
	fail_each_allocation(m);
	machine_stop(m);
}

static void nothing_is_allocated_after_creation(void **state)
{
	struct machine *m = machine_open(2);

	(void)state;
	num_allocations = 0;
	irq_set_up(m, 1, 40, 1, 0x80);
	assert_int_equal(vgic_pulse_spi(m->vgic, 40), 1);
	assert_int_equal(ack1(m, 1), 40);
	eoi1(m, 1, 40);
	assert_int_equal(vgic_reset(m->vgic), 0);
	assert_int_equal(num_allocations, 0);
	machine_stop(m);
}

/* ---- Configurations ---- */

static void config_init_writes_every_field(void **state)
{
	struct vgic_config config;
	struct vgic_config again;

	(void)state;
	memset(&config, 0x00, sizeof(config));
	memset(&again, 0xff, sizeof(again));
	vgic_config_init(&config, VGIC_PROFILE_NATIVE);
	vgic_config_init(&again, VGIC_PROFILE_NATIVE);
	assert_int_equal(config.size, sizeof(config));
	assert_int_equal(config.ops.size, sizeof(config.ops));
	assert_int_equal(config.profile, VGIC_PROFILE_NATIVE);
	assert_int_equal(config.features, VGIC_FEATURE_RSS | VGIC_FEATURE_MBIS | VGIC_FEATURE_ONE_OF_N |
						  VGIC_FEATURE_A3V | VGIC_FEATURE_DPGS | VGIC_FEATURE_STATUSR |
						  VGIC_FEATURE_WAKER);
	assert_int_equal(config.num_spis, 256);
	assert_int_equal(config.priority_bits, 5);
	assert_int_equal(config.lpi_id_bits, 16);
	assert_int_equal(config.kvm_revision, 3);
	assert_int_equal(config.num_vcpus, 0);
	assert_null(config.vcpus);
	assert_false(config.has_dist_base);
	assert_int_equal(config.num_redist_regions, 0);
	assert_null(config.redist_regions);
	assert_null(config.ops.kick);
	assert_null(config.ops.line_changed);
	assert_null(config.ops.deactivated);
	assert_null(config.ops.guest_error);
	assert_null(config.opaque);
	assert_int_equal(again.features, config.features);
	assert_int_equal(again.num_spis, config.num_spis);
	assert_int_equal(again.num_vcpus, 0);
	assert_null(again.vcpus);
	assert_false(again.has_dist_base);
	assert_int_equal(again.dist_base, config.dist_base);
	assert_int_equal(again.num_redist_regions, 0);
	assert_null(again.redist_regions);
	assert_null(again.ops.kick);
	assert_null(again.ops.guest_error);
	assert_null(again.opaque);

	vgic_config_init(&config, VGIC_PROFILE_KVM);
	assert_int_equal(config.profile, VGIC_PROFILE_KVM);
	assert_int_equal(config.features, 0);
	vgic_config_init(&config, (enum vgic_profile)2);
	assert_int_equal((int)config.profile, 2);
}

static void config_may_be_freed_after_creation(void **state)
{
	struct machine *m = machine_describe(VGIC_PROFILE_NATIVE, 2);
	struct vgic_config *config = malloc(sizeof(*config));
	struct vgic_vcpu_config *vcpus = malloc(2 * sizeof(*vcpus));
	struct vgic_redist_region *region = malloc(sizeof(*region));
	uint64_t typer;

	(void)state;
	machine_add_region(m, 0x1000000, 2);
	*config = m->config;
	memcpy(vcpus, m->vcpus, 2 * sizeof(*vcpus));
	*region = m->regions[0];
	config->vcpus = vcpus;
	config->redist_regions = region;
	assert_int_equal(vgic_create(config, &m->vgic), 0);
	memset(vcpus, 0xff, 2 * sizeof(*vcpus));
	memset(region, 0xff, sizeof(*region));
	memset(config, 0xff, sizeof(*config));
	free(vcpus);
	free(region);
	free(config);

	assert_int_equal(vgic_mmio_read(m->vgic, 0x1000000 + VGIC_REDIST_FRAME_SIZE + GICR_TYPER, 8, &typer), 0);
	assert_int_equal(typer >> GICR_TYPER_AFFINITY_SHIFT, 1);
	machine_stop(m);
}

/* Describe a machine of three vCPUs that is right, let @spoil make it wrong, and see it refused. */
static void expect_refused(void (*spoil)(struct machine *m))
{
	struct machine *m = machine_describe(VGIC_PROFILE_NATIVE, 3);
	struct vgic *const untouched = (struct vgic *)(uintptr_t)0x10;

	m->config.has_dist_base = true;
	m->config.dist_base = MACHINE_DIST_BASE;
	machine_add_region(m, 0x080a0000, 2);
	machine_add_region(m, 0x090a0000, 2);
	machine_start(m);
	vgic_destroy(m->vgic);
	m->vgic = untouched;
	spoil(m);
	assert_int_equal(machine_try_start(m), -EINVAL);
	assert_ptr_equal(m->vgic, untouched);
	m->vgic = NULL;
	machine_stop(m);
}

#define SPOIL(name, statement)                                                                                         \
	static void spoil_##name(struct machine *m)                                                                    \
	{                                                                                                              \
		statement;                                                                                             \
	}

SPOIL(size_0, m->config.size = 0)
SPOIL(size_small, m->config.size--)
SPOIL(size_large, m->config.size = 4096)
SPOIL(ops_size_0, m->config.ops.size = 0)
SPOIL(ops_size_small, m->config.ops.size--)
SPOIL(ops_size_large, m->config.ops.size = 4096)
SPOIL(profile, m->config.profile = (enum vgic_profile)2)
SPOIL(profile_negative, m->config.profile = (enum vgic_profile) - 1)
SPOIL(features, m->config.features |= VGIC_FEATURES_ALL + 1)
SPOIL(features_high, m->config.features |= 1u << 31)
SPOIL(dpgs_alone, m->config.features &= ~VGIC_FEATURE_ONE_OF_N)
SPOIL(spis_0, m->config.num_spis = 0)
SPOIL(spis_31, m->config.num_spis = 31)
SPOIL(spis_33, m->config.num_spis = 33)
SPOIL(spis_961, m->config.num_spis = 961)
SPOIL(spis_987, m->config.num_spis = 987)
SPOIL(spis_989, m->config.num_spis = 989)
SPOIL(spis_992, m->config.num_spis = 992)
SPOIL(spis_huge, m->config.num_spis = UINT32_MAX & ~31u)
SPOIL(priority_bits_0, m->config.priority_bits = 0)
SPOIL(priority_bits_4, m->config.priority_bits = 4)
SPOIL(priority_bits_6, m->config.priority_bits = 6)
SPOIL(lpi_bits_13, m->config.features |= VGIC_FEATURE_LPIS; m->config.lpi_id_bits = 13)
SPOIL(lpi_bits_21, m->config.features |= VGIC_FEATURE_LPIS; m->config.lpi_id_bits = 21)
SPOIL(revision_0, m->config.profile = VGIC_PROFILE_KVM; m->config.kvm_revision = 0)
SPOIL(revision_4, m->config.profile = VGIC_PROFILE_KVM; m->config.kvm_revision = 4)
SPOIL(no_vcpus, m->config.num_vcpus = 0)
SPOIL(too_many_vcpus, m->config.num_vcpus = VGIC_MAX_VCPUS + 1)
SPOIL(all_vcpus, m->config.num_vcpus = UINT32_MAX)
SPOIL(null_vcpus, m->config.vcpus = NULL)
SPOIL(same_id, m->vcpus[2].id = m->vcpus[0].id)
SPOIL(large_id, m->vcpus[1].id = VGIC_MAX_VCPU_ID + 1)
SPOIL(huge_id, m->vcpus[1].id = UINT32_MAX)
SPOIL(same_affinity, m->vcpus[2].affinity = m->vcpus[1].affinity)
SPOIL(affinity_bit_24, m->vcpus[1].affinity |= 1u << 24)
SPOIL(affinity_bit_31, m->vcpus[1].affinity |= 1u << 31)
SPOIL(affinity_bit_40, m->vcpus[1].affinity |= 1ull << 40)
SPOIL(affinity_bit_63, m->vcpus[1].affinity |= 1ull << 63)
SPOIL(aff3, m->config.features &= ~VGIC_FEATURE_A3V; m->vcpus[1].affinity |= 1ull << 32)
SPOIL(dist_unaligned, m->config.dist_base += 0x1000)
SPOIL(dist_at_the_end, m->config.dist_base = UINT64_MAX)
SPOIL(region_unaligned, m->regions[1].base += 0x8000)
SPOIL(region_wraps, m->regions[1].base = 0xfffffffffffe0000)
SPOIL(region_huge, m->regions[1].num_frames = UINT32_MAX; m->regions[1].base = 0xfffffffff0000000)
SPOIL(region_over_dist, m->regions[1].base = MACHINE_DIST_BASE)
SPOIL(region_into_dist, m->regions[1].base = MACHINE_DIST_BASE - 3 * 0x10000)
SPOIL(dist_in_region, m->config.dist_base = 0x080a0000 + 0x30000)
SPOIL(regions_overlap, m->regions[1].base = 0x080a0000 + 0x30000)
SPOIL(regions_overlap_below, m->regions[1].base = 0x080a0000 - 0x30000)
SPOIL(regions_equal, m->regions[1].base = m->regions[0].base)
SPOIL(too_few_frames, m->regions[1].num_frames = 0; m->config.num_redist_regions = 1)
SPOIL(region_reserved, m->regions[0].reserved = 1)
SPOIL(null_regions, m->config.redist_regions = NULL)

static void create_refuses_what_is_wrong(void **state)
{
	static void (*const spoilers[])(struct machine * m) = {
		spoil_size_0,
		spoil_size_small,
		spoil_size_large,
		spoil_ops_size_0,
		spoil_ops_size_small,
		spoil_ops_size_large,
		spoil_profile,
		spoil_profile_negative,
		spoil_features,
		spoil_features_high,
		spoil_dpgs_alone,
		spoil_spis_0,
		spoil_spis_31,
		spoil_spis_33,
		spoil_spis_961,
		spoil_spis_987,
		spoil_spis_989,
		spoil_spis_992,
		spoil_spis_huge,
		spoil_priority_bits_0,
		spoil_priority_bits_4,
		spoil_priority_bits_6,
		spoil_lpi_bits_13,
		spoil_lpi_bits_21,
		spoil_revision_0,
		spoil_revision_4,
		spoil_no_vcpus,
		spoil_too_many_vcpus,
		spoil_all_vcpus,
		spoil_null_vcpus,
		spoil_same_id,
		spoil_large_id,
		spoil_huge_id,
		spoil_same_affinity,
		spoil_affinity_bit_24,
		spoil_affinity_bit_31,
		spoil_affinity_bit_40,
		spoil_affinity_bit_63,
		spoil_aff3,
		spoil_dist_unaligned,
		spoil_dist_at_the_end,
		spoil_region_unaligned,
		spoil_region_wraps,
		spoil_region_huge,
		spoil_region_over_dist,
		spoil_region_into_dist,
		spoil_dist_in_region,
		spoil_regions_overlap,
		spoil_regions_overlap_below,
		spoil_regions_equal,
		spoil_too_few_frames,
		spoil_region_reserved,
		spoil_null_regions,
	};

	(void)state;
	for (size_t i = 0; i < sizeof(spoilers) / sizeof(spoilers[0]); i++)
		expect_refused(spoilers[i]);
}

static void create_refuses_null_pointers(void **state)
{
	struct machine *m = machine_describe(VGIC_PROFILE_NATIVE, 1);
	struct vgic *vgic = NULL;

	(void)state;
	assert_int_equal(vgic_create(NULL, &vgic), -EINVAL);
	assert_int_equal(vgic_create(&m->config, NULL), -EINVAL);
	assert_null(vgic);
	machine_stop(m);
}

/* There may be more vCPUs than frames only if there are no addresses at all. */
static void regions_must_hold_every_redistributor(void **state)
{
	struct machine *m = machine_describe(VGIC_PROFILE_NATIVE, 17);

	(void)state;
	machine_add_region(m, 0x080a0000, 16);
	assert_int_equal(machine_try_start(m), -EINVAL);
	assert_null(m->vgic);
	machine_add_region(m, 0x090a0000, 1);
	machine_start(m);
	machine_stop(m);
}

static void create_with_every_number_of_spis(void **state)
{
	(void)state;
	for (uint32_t num_spis = 0; num_spis <= 1024; num_spis++) {
		struct machine *m = machine_describe(VGIC_PROFILE_NATIVE, 1);
		const bool is_valid = (num_spis >= 32 && num_spis <= 960 && num_spis % 32 == 0) || num_spis == 988;

		m->config.num_spis = num_spis;
		assert_int_equal(machine_try_start(m), is_valid ? 0 : -EINVAL);
		if (is_valid) {
			assert_int_equal(dist_read(m, GICD_TYPER) & 31, (32 + num_spis + 31) / 32 - 1);
			assert_int_equal(vgic_set_spi(m->vgic, 31 + num_spis, 0, true), 0);
			assert_int_equal(vgic_set_spi(m->vgic, 32 + num_spis, 0, true), -EINVAL);
		}
		machine_stop(m);
	}
}

static void create_with_every_subset_of_features(void **state)
{
	(void)state;
	for (int profile = VGIC_PROFILE_NATIVE; profile <= VGIC_PROFILE_KVM; profile++) {
		for (uint32_t features = 0; features <= VGIC_FEATURES_ALL; features++) {
			struct machine *m = machine_describe((enum vgic_profile)profile, 2);
			const bool is_valid = !(features & VGIC_FEATURE_DPGS) || (features & VGIC_FEATURE_ONE_OF_N);
			uint32_t typer;

			m->config.features = features;
			m->config.num_spis = 32;
			m->config.lpi_id_bits = 14;
			assert_int_equal(machine_try_start(m), is_valid ? 0 : -EINVAL);
			if (is_valid) {
				typer = dist_read(m, GICD_TYPER);
				assert_int_equal(!!(typer & GICD_TYPER_RSS), !!(features & VGIC_FEATURE_RSS));
				assert_int_equal(!!(typer & GICD_TYPER_MBIS), !!(features & VGIC_FEATURE_MBIS));
				assert_int_equal(!!(typer & GICD_TYPER_A3V), !!(features & VGIC_FEATURE_A3V));
				assert_int_equal(!!(typer & GICD_TYPER_LPIS), !!(features & VGIC_FEATURE_LPIS));
				assert_int_equal(!!(typer & GICD_TYPER_NO1N),
						 profile == VGIC_PROFILE_NATIVE && !(features & VGIC_FEATURE_ONE_OF_N));
			}
			machine_stop(m);
		}
	}
}

/* ---- Look-ups ---- */

static void vcpus_are_found_by_index_id_and_affinity(void **state)
{
	static const uint32_t ids[] = { 5, 0, 9 };
	static const uint64_t affinities[] = { 0x7f00020003, 0x10203, 0 };
	struct machine *m = machine_describe(VGIC_PROFILE_NATIVE, 3);
	int marks[3];

	(void)state;
	for (uint32_t i = 0; i < 3; i++)
		m->vcpus[i] = (struct vgic_vcpu_config){ .id = ids[i], .affinity = affinities[i], .user = &marks[i] };
	machine_start(m);

	assert_int_equal(vgic_num_vcpus(m->vgic), 3);
	for (uint32_t i = 0; i < 3; i++) {
		struct vgic_vcpu *vcpu = vgic_vcpu_by_index(m->vgic, i);

		assert_non_null(vcpu);
		assert_ptr_equal(vgic_vcpu_by_id(m->vgic, ids[i]), vcpu);
		assert_ptr_equal(vgic_vcpu_by_affinity(m->vgic, affinities[i]), vcpu);
		assert_int_equal(vgic_vcpu_index(vcpu), i);
		assert_int_equal(vgic_vcpu_id(vcpu), ids[i]);
		assert_int_equal(vgic_vcpu_affinity(vcpu), affinities[i]);
		assert_ptr_equal(vgic_vcpu_user(vcpu), &marks[i]);
		assert_int_equal(redist_read_width(m, i, GICR_TYPER, 8) >> GICR_TYPER_NUMBER_SHIFT & 0xffff, ids[i]);
	}
	assert_null(vgic_vcpu_by_index(m->vgic, 3));
	assert_null(vgic_vcpu_by_index(m->vgic, UINT32_MAX));
	assert_null(vgic_vcpu_by_id(m->vgic, 1));
	assert_null(vgic_vcpu_by_id(m->vgic, 10));
	assert_null(vgic_vcpu_by_id(m->vgic, 65536 + 5));
	assert_null(vgic_vcpu_by_id(m->vgic, UINT32_MAX));
	assert_null(vgic_vcpu_by_affinity(m->vgic, 1));
	assert_null(vgic_vcpu_by_affinity(m->vgic, 0x20003));
	assert_null(vgic_vcpu_by_affinity(m->vgic, 1ull << 24));
	assert_null(vgic_vcpu_by_affinity(m->vgic, 1ull << 31));
	assert_null(vgic_vcpu_by_affinity(m->vgic, 1ull << 40));
	assert_null(vgic_vcpu_by_affinity(m->vgic, UINT64_MAX));
	machine_stop(m);
}

static void use_last_of_many_vcpus(uint32_t num_vcpus, bool one_vcpu_per_cluster)
{
	struct machine *m = machine_describe(VGIC_PROFILE_NATIVE, num_vcpus);
	const uint32_t last = num_vcpus - 1;

	for (uint32_t i = 0; i < num_vcpus; i++) {
		m->vcpus[i].id = (i * 7919u + 13u) % 65536u;
		if (one_vcpu_per_cluster)
			m->vcpus[i].affinity = (uint64_t)(i % 7) << 32 | (uint64_t)(i % 251) << 16 |
					       (uint64_t)(i / 16) << 8 | (i % 16);
	}
	machine_start(m);
	for (uint32_t i = 0; i < num_vcpus; i++) {
		struct vgic_vcpu *vcpu = vgic_vcpu_by_index(m->vgic, i);

		assert_ptr_equal(vgic_vcpu_by_id(m->vgic, m->vcpus[i].id), vcpu);
		assert_ptr_equal(vgic_vcpu_by_affinity(m->vgic, m->vcpus[i].affinity), vcpu);
		assert_int_equal(vgic_vcpu_index(vcpu), i);
		assert_int_equal(redist_read_width(m, i, GICR_TYPER, 8) & GICR_TYPER_LAST ? 1 : 0, i == last);
	}
	machine_open_switches(m);
	irq_set_up(m, last, 40, 1, 0x80);
	assert_int_equal(vgic_pulse_spi(m->vgic, 40), 1);
	assert_int_equal(lines_of(m, 0), 0);
	assert_int_equal(lines_of(m, last), VGIC_LINE_IRQ);
	assert_int_equal(ack1(m, last), 40);
	assert_int_equal(m->kicks[last], 1);
	assert_int_equal(m->num_kicks, 1);
	machine_stop(m);
}

static void create_with_512_vcpus(void **state)
{
	(void)state;
	use_last_of_many_vcpus(512, false);
	use_last_of_many_vcpus(512, true);
}

static void create_with_4096_vcpus(void **state)
{
	(void)state;
	use_last_of_many_vcpus(VGIC_MAX_VCPUS, false);
	use_last_of_many_vcpus(VGIC_MAX_VCPUS, true);
}

/* ---- Two at once, reset, destruction ---- */

static void controllers_do_not_share_anything(void **state)
{
	struct machine *a = machine_open(1);
	struct machine *b = machine_open(1);

	(void)state;
	irq_set_up(a, 0, 40, 1, 0x80);
	irq_set_up(b, 0, 40, 1, 0x80);
	assert_int_equal(vgic_pulse_spi(a->vgic, 40), 1);
	assert_int_equal(lines_of(b, 0), 0);
	assert_false(irq_is_pending(b, 0, 40));
	assert_int_equal(ack1(a, 0), 40);
	machine_stop(a);
	assert_int_equal(vgic_pulse_spi(b->vgic, 40), 1);
	assert_int_equal(ack1(b, 0), 40);
	machine_stop(b);
}

static void destroy_in_any_state(void **state)
{
	struct machine *m = machine_open(2);

	(void)state;
	vgic_destroy(NULL);
	irq_set_up(m, 0, 40, 1, 0x80);
	irq_set_up(m, 1, 41, 0, 0x80);
	assert_int_equal(vgic_set_spi(m->vgic, 40, 0, true), 0);
	assert_int_equal(ack1(m, 0), 40);
	assert_int_equal(vgic_set_spi(m->vgic, 41, 0, true), 0);
	vgic_enter_guest(vcpu_of(m, 0));
	vgic_vcpu_set_online(vcpu_of(m, 1), false);
	machine_stop(m);
}

static void reset_gives_reset_values(void **state)
{
	struct machine *m = machine_open(2);

	(void)state;
	for (uint32_t v = 0; v < 2; v++) {
		irq_set_up(m, v, 3, 1, 0x40);
		irq_set_up(m, v, 27, 1, 0x48);
		irq_set_edge(m, v, 27, true);
		redist_write(m, v, GICR_CTLR, GICR_CTLR_DPG0 | GICR_CTLR_DPG1NS);
		icc_write(m, v, VGIC_ICC_BPR0_EL1, 5);
		icc_write(m, v, VGIC_ICC_BPR1_EL1, 6);
		icc_write(m, v, VGIC_ICC_CTLR_EL1, ICC_CTLR_CBPR | ICC_CTLR_EOIMODE);
		irq_write_bit(m, v, GICD_ISPENDR, 3);
		assert_int_equal(ack1(m, v), 3);
		irq_write_bit(m, v, GICD_ISPENDR, 3);
		dist_read(m, 0x20);
	}
	irq_set_up(m, 1, 40, 1, 0x80);
	irq_write_bit(m, 1, GICD_ISPENDR, 40);
	irq_write_bit(m, 1, GICD_ISACTIVER, 40);
	assert_int_equal(dist_read(m, GICD_STATUSR), GIC_STATUSR_RRD);

	assert_int_equal(vgic_reset(m->vgic), 0);

	assert_int_equal(dist_read(m, GICD_CTLR), GICD_CTLR_ARE | GICD_CTLR_DS);
	assert_int_equal(dist_read(m, GICD_STATUSR), 0);
	assert_int_equal(dist_read(m, GICD_IGROUPR + 4), 0);
	assert_int_equal(dist_read(m, GICD_ISENABLER + 4), 0);
	assert_int_equal(dist_read(m, GICD_ISPENDR + 4), 0);
	assert_int_equal(dist_read(m, GICD_ISACTIVER + 4), 0);
	assert_int_equal(dist_read(m, GICD_IPRIORITYR + 40), 0);
	assert_int_equal(dist_read(m, GICD_ICFGR + 8), 0);
	assert_int_equal(dist_read_width(m, GICD_IROUTER + 8 * 40, 8), 0);
	for (uint32_t v = 0; v < 2; v++) {
		assert_int_equal(redist_read(m, v, GICR_CTLR), 0);
		assert_int_equal(redist_read(m, v, GICR_WAKER),
				 GICR_WAKER_PROCESSOR_SLEEP | GICR_WAKER_CHILDREN_ASLEEP);
		assert_int_equal(redist_read(m, v, GICR_IGROUPR0), 0);
		assert_int_equal(redist_read(m, v, GICR_ISENABLER0), 0);
		assert_int_equal(redist_read(m, v, GICR_ISPENDR0), 0);
		assert_int_equal(redist_read(m, v, GICR_ISACTIVER0), 0);
		assert_int_equal(redist_read(m, v, GICR_IPRIORITYR), 0);
		assert_int_equal(redist_read(m, v, GICR_ICFGR1), 0);
		assert_int_equal(icc_read(m, v, VGIC_ICC_PMR_EL1), 0);
		assert_int_equal(icc_read(m, v, VGIC_ICC_BPR0_EL1), 2);
		assert_int_equal(icc_read(m, v, VGIC_ICC_BPR1_EL1), 3);
		assert_int_equal(icc_read(m, v, VGIC_ICC_CTLR_EL1) & (ICC_CTLR_CBPR | ICC_CTLR_EOIMODE), 0);
		assert_int_equal(icc_read(m, v, VGIC_ICC_IGRPEN0_EL1), 0);
		assert_int_equal(icc_read(m, v, VGIC_ICC_IGRPEN1_EL1), 0);
		assert_int_equal(icc_read(m, v, VGIC_ICC_AP0R0_EL1), 0);
		assert_int_equal(icc_read(m, v, VGIC_ICC_AP1R0_EL1), 0);
		assert_int_equal(icc_read(m, v, VGIC_ICC_RPR_EL1), 0xff);
		assert_int_equal(lines_of(m, v), 0);
	}
	machine_stop(m);
}

static void reset_is_refused_while_a_vcpu_is_in_the_guest(void **state)
{
	struct machine *m = machine_open(2);

	(void)state;
	vgic_enter_guest(vcpu_of(m, 1));
	assert_int_equal(vgic_reset(m->vgic), -EBUSY);
	assert_int_equal(dist_read(m, GICD_CTLR) & 3, 3);
	assert_int_equal(icc_read(m, 1, VGIC_ICC_PMR_EL1), 0xf8);
	vgic_exit_guest(vcpu_of(m, 1));
	assert_int_equal(vgic_reset(m->vgic), 0);
	assert_int_equal(dist_read(m, GICD_CTLR) & 3, 0);
	machine_stop(m);
}

static void reset_keeps_lines_and_power(void **state)
{
	struct machine *m = machine_open(2);

	(void)state;
	assert_int_equal(vgic_set_spi(m->vgic, 40, 3, true), 0);
	assert_int_equal(vgic_set_ppi(vcpu_of(m, 1), 27, 0, true), 0);
	vgic_vcpu_set_online(vcpu_of(m, 0), false);
	assert_int_equal(vgic_reset(m->vgic), 0);
	assert_true(irq_is_pending(m, 0, 40));
	assert_true(irq_is_pending(m, 1, 27));
	assert_false(irq_is_pending(m, 0, 27));

	/* vCPU 0, to which SPI 40 is routed by reset, is still off. */
	machine_open_switches(m);
	irq_write_bit(m, 0, GICD_ISENABLER, 40);
	assert_int_equal(lines_of(m, 0), 0);
	vgic_vcpu_set_online(vcpu_of(m, 0), true);
	assert_int_equal(lines_of(m, 0), VGIC_LINE_FIQ);
	assert_int_equal(vgic_set_spi(m->vgic, 40, 3, false), 0);
	assert_int_equal(lines_of(m, 0), 0);
	machine_stop(m);
}

/* A line that the guest itself had raised is state of the controller: reset lowers it. */
static void reset_lowers_message_based_lines(void **state)
{
	struct machine *m = machine_open(1);

	(void)state;
	dist_write(m, GICD_SETSPI_NSR, 40);
	assert_true(irq_is_pending(m, 0, 40));
	assert_int_equal(vgic_reset(m->vgic), 0);
	assert_false(irq_is_pending(m, 0, 40));
	machine_stop(m);
}

/* ---- Errors of the other calls ---- */

static void line_calls_check_their_ranges(void **state)
{
	struct machine *m = machine_open(1);
	static const uint32_t no_spis[] = { 0, 15, 16, 31, 288, 1019, 1020, 1023, 1024, 8192, UINT32_MAX };
	static const uint32_t no_ppis[] = { 0, 15, 32, 1023, UINT32_MAX };

	(void)state;
	for (size_t i = 0; i < sizeof(no_spis) / sizeof(no_spis[0]); i++) {
		assert_int_equal(vgic_set_spi(m->vgic, no_spis[i], 0, true), -EINVAL);
		assert_int_equal(vgic_pulse_spi(m->vgic, no_spis[i]), -EINVAL);
	}
	for (size_t i = 0; i < sizeof(no_ppis) / sizeof(no_ppis[0]); i++)
		assert_int_equal(vgic_set_ppi(vcpu_of(m, 0), no_ppis[i], 0, true), -EINVAL);
	assert_int_equal(vgic_set_spi(m->vgic, 40, VGIC_NUM_LINE_SOURCES, true), -EINVAL);
	assert_int_equal(vgic_set_spi(m->vgic, 40, UINT32_MAX, true), -EINVAL);
	assert_int_equal(vgic_set_ppi(vcpu_of(m, 0), 27, VGIC_NUM_LINE_SOURCES, true), -EINVAL);
	assert_int_equal(vgic_set_ppi(vcpu_of(m, 0), 27, UINT32_MAX, true), -EINVAL);
	for (uint32_t word = 1; word <= 8; word++)
		assert_int_equal(dist_read(m, GICD_ISPENDR + 4 * word), 0);
	assert_int_equal(redist_read(m, 0, GICR_ISPENDR0), 0);
	machine_stop(m);
}

/* Whoever hands over an access must learn that it is not the controller's, whatever is wrong with it beside that. */
static void address_of_no_frame_is_told_before_a_bad_width(void **state)
{
	static const unsigned widths[] = { 0, 3, 5, 6, 16, UINT32_MAX };
	struct machine *m = machine_describe(VGIC_PROFILE_NATIVE, 1);
	uint64_t value = 0x1234;

	(void)state;
	m->config.has_dist_base = true;
	m->config.dist_base = MACHINE_DIST_BASE;
	machine_add_region(m, MACHINE_DIST_BASE + 0xa0000, 2);
	machine_start(m);
	for (size_t i = 0; i < sizeof(widths) / sizeof(widths[0]); i++) {
		const unsigned width = widths[i];

		assert_int_equal(vgic_mmio_read(m->vgic, MACHINE_DIST_BASE - 8, width, &value), -ENXIO);
		assert_int_equal(vgic_mmio_write(m->vgic, MACHINE_DIST_BASE - 8, width, 0), -ENXIO);
		assert_int_equal(vgic_mmio_read(m->vgic, MACHINE_DIST_BASE, width, &value), -EINVAL);
		assert_int_equal(vgic_mmio_write(m->vgic, MACHINE_DIST_BASE + 0xa0000, width, 0), -EINVAL);
		/* The second frame, which no vCPU fills. */
		assert_int_equal(vgic_mmio_read(m->vgic, MACHINE_DIST_BASE + 0xc0000, width, &value), -EINVAL);
	}
	assert_int_equal(value, 0x1234);
	machine_stop(m);
}

static void register_calls_leave_the_value_alone_on_error(void **state)
{
	struct machine *m = machine_open(1);
	uint64_t value = 0x1234;

	(void)state;
	assert_int_equal(vgic_dist_read(m->vgic, 0, 3, &value), -EINVAL);
	assert_int_equal(vgic_dist_read(m->vgic, VGIC_DIST_FRAME_SIZE, 4, &value), -ENXIO);
	assert_int_equal(vgic_dist_read(m->vgic, VGIC_DIST_FRAME_SIZE - 4, 8, &value), -ENXIO);
	assert_int_equal(vgic_redist_read(vcpu_of(m, 0), 0, 0, &value), -EINVAL);
	assert_int_equal(vgic_redist_read(vcpu_of(m, 0), VGIC_REDIST_FRAME_SIZE, 1, &value), -ENXIO);
	assert_int_equal(vgic_redist_read(vcpu_of(m, 0), UINT32_MAX, 8, &value), -ENXIO);
	assert_int_equal(vgic_mmio_read(m->vgic, 0, 4, &value), -ENXIO);
	assert_int_equal(vgic_mmio_read(m->vgic, MACHINE_DIST_BASE, 4, &value), -ENXIO);
	assert_int_equal(vgic_mmio_write(m->vgic, MACHINE_DIST_BASE, 4, 0), -ENXIO);
	assert_int_equal(vgic_icc_read(vcpu_of(m, 0), VGIC_ICC_EOIR1_EL1, &value), -EACCES);
	assert_int_equal(vgic_icc_read(vcpu_of(m, 0), VGIC_SYSREG(3, 3, 14, 3, 1), &value), -ENOENT);
	assert_int_equal(value, 0x1234);
	assert_int_equal(dist_read(m, GICD_CTLR) & 3, 3);
	machine_stop(m);
}

static void stats_need_a_known_size(void **state)
{
	struct machine *m = machine_native(1);
	struct vgic_stats stats = { .size = 0 };

	(void)state;
	assert_int_equal(vgic_get_stats(m->vgic, &stats), -EINVAL);
	stats.size = sizeof(stats) - 1;
	assert_int_equal(vgic_get_stats(m->vgic, &stats), -EINVAL);
	stats.size = sizeof(stats) + 4096;
	assert_int_equal(vgic_get_stats(m->vgic, &stats), -EINVAL);
	stats.size = sizeof(stats);
	assert_int_equal(vgic_get_stats(m->vgic, &stats), 0);
	assert_int_equal(stats.size, sizeof(stats));
	machine_stop(m);
}

static void every_guest_error_has_a_name_of_its_own(void **state)
{
	(void)state;
	for (int a = 0; a < VGIC_NUM_GUEST_ERRORS; a++) {
		assert_non_null(vgic_guest_error_name((enum vgic_guest_error_kind)a));
		assert_true(strlen(vgic_guest_error_name((enum vgic_guest_error_kind)a)) > 3);
		for (int b = 0; b < a; b++)
			assert_string_not_equal(vgic_guest_error_name((enum vgic_guest_error_kind)a),
						vgic_guest_error_name((enum vgic_guest_error_kind)b));
	}
	assert_string_equal(vgic_guest_error_name(VGIC_GUEST_MMIO_WRITE_ONLY), "read of a write-only register");
	assert_non_null(vgic_guest_error_name(VGIC_NUM_GUEST_ERRORS));
	assert_non_null(vgic_guest_error_name((enum vgic_guest_error_kind) - 1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(create_without_memory_leaks_nothing),
		cmocka_unit_test(nothing_is_allocated_after_creation),
		cmocka_unit_test(config_init_writes_every_field),
		cmocka_unit_test(config_may_be_freed_after_creation),
		cmocka_unit_test(create_refuses_what_is_wrong),
		cmocka_unit_test(create_refuses_null_pointers),
		cmocka_unit_test(regions_must_hold_every_redistributor),
		cmocka_unit_test(create_with_every_number_of_spis),
		cmocka_unit_test(create_with_every_subset_of_features),
		cmocka_unit_test(vcpus_are_found_by_index_id_and_affinity),
		cmocka_unit_test(create_with_512_vcpus),
		cmocka_unit_test(create_with_4096_vcpus),
		cmocka_unit_test(controllers_do_not_share_anything),
		cmocka_unit_test(destroy_in_any_state),
		cmocka_unit_test(reset_gives_reset_values),
		cmocka_unit_test(reset_is_refused_while_a_vcpu_is_in_the_guest),
		cmocka_unit_test(reset_keeps_lines_and_power),
		cmocka_unit_test(reset_lowers_message_based_lines),
		cmocka_unit_test(line_calls_check_their_ranges),
		cmocka_unit_test(address_of_no_frame_is_told_before_a_bad_width),
		cmocka_unit_test(register_calls_leave_the_value_alone_on_error),
		cmocka_unit_test(stats_need_a_known_size),
		cmocka_unit_test(every_guest_error_has_a_name_of_its_own),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("creation", tests, NULL, NULL);
}
