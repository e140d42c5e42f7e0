/* SPDX-License-Identifier: MIT */
/*
 * unit.c - the controller of the unit tests, and their random numbers.
 */
#include "unit.h"

#include <errno.h>
#include <stdlib.h>

#include "gic_regs.h"

static void count_kick(void *opaque, struct vgic_vcpu *vcpu)
{
	struct unit *u = opaque;

	u->kicks[vcpu->index]++;
	u->num_kicks++;
}

static void count_report(void *opaque, const struct vgic_guest_error *error)
{
	struct unit *u = opaque;

	u->num_reports++;
	u->last_report = *error;
}

/* LPIs need guest memory; these tests give them none. */
static int no_memory_to_read(void *opaque, uint64_t address, void *buffer, size_t size)
{
	(void)opaque;
	(void)address;
	(void)buffer;
	(void)size;
	return -EFAULT;
}

static int no_memory_to_write(void *opaque, uint64_t address, const void *buffer, size_t size)
{
	(void)opaque;
	(void)address;
	(void)buffer;
	(void)size;
	return -EFAULT;
}

struct unit *unit_start(uint32_t num_vcpus, uint32_t extra, uint32_t lpi_id_bits)
{
	struct unit *u = calloc(1, sizeof(*u));
	struct vgic_vcpu_config *vcpus = calloc(num_vcpus, sizeof(*vcpus));
	struct vgic_config config;

	assert_non_null(u);
	assert_non_null(vcpus);
	u->kicks = calloc(num_vcpus, sizeof(*u->kicks));
	assert_non_null(u->kicks);
	for (uint32_t i = 0; i < num_vcpus; i++) {
		vcpus[i].id = i;
		vcpus[i].affinity = (i / 16 & 0xff) << 8 | (i / 4096) << 16 | i % 16;
	}
	vgic_config_init(&config, VGIC_PROFILE_NATIVE);
	config.features |= extra;
	config.lpi_id_bits = lpi_id_bits;
	config.num_vcpus = num_vcpus;
	config.vcpus = vcpus;
	config.ops.kick = count_kick;
	config.ops.guest_error = count_report;
	config.ops.guest_read = no_memory_to_read;
	config.ops.guest_write = no_memory_to_write;
	config.opaque = u;
	assert_int_equal(vgic_create(&config, &u->vgic), 0);
	free(vcpus);
	return u;
}

void unit_stop(struct unit *u)
{
	vgic_destroy(u->vgic);
	free(u->kicks);
	free(u);
}

struct vgic_vcpu *unit_vcpu(const struct unit *u, uint32_t index)
{
	return u->vgic->vcpus[index];
}

void unit_open_cpuif(struct vgic_vcpu *vcpu)
{
	assert_int_equal(vgic_icc_write(vcpu, VGIC_ICC_PMR_EL1, 0xff), 0);
	assert_int_equal(vgic_icc_write(vcpu, VGIC_ICC_IGRPEN0_EL1, 1), 0);
	assert_int_equal(vgic_icc_write(vcpu, VGIC_ICC_IGRPEN1_EL1, 1), 0);
	/* Equal binary points: no group hides the other. */
	assert_int_equal(vgic_icc_write(vcpu, VGIC_ICC_CTLR_EL1, ICC_CTLR_CBPR), 0);
}

void unit_open_dist(struct unit *u)
{
	assert_int_equal(vgic_dist_write(u->vgic, GICD_CTLR, 4, GICD_CTLR_ENABLE_GRP0 | GICD_CTLR_ENABLE_GRP1), 0);
}

void unit_open(struct unit *u)
{
	for (uint32_t i = 0; i < u->vgic->num_vcpus; i++)
		unit_open_cpuif(unit_vcpu(u, i));
	unit_open_dist(u);
}

uint64_t rng_next(struct rng *r)
{
	uint64_t z = r->state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

uint32_t rng_below(struct rng *r, uint32_t n)
{
	return (uint32_t)((rng_next(r) >> 32) * n >> 32);
}
