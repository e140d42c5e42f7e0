/* SPDX-License-Identifier: MIT */
/*
 * machine.c - what a guest's GIC driver does at boot (machine.h).
 */
#include "machine.h"

#include <errno.h>
#include <stdlib.h>

/* Offsets in the distributor's and in the redistributor's frame. */
#define GICD_CTLR        0x0000u
#define GICD_IGROUPR     0x0080u
#define GICD_ISENABLER   0x0100u
#define GICD_IPRIORITYR  0x0400u
#define GICD_ICFGR       0x0c00u
#define GICD_IROUTER     0x6000u
#define GICR_WAKER       0x0014u
#define GICR_IGROUPR0    0x10080u
#define GICR_ISENABLER0  0x10100u
#define GICR_IPRIORITYR0 0x10400u

#define CTLR_ENABLE_GRP1 (1u << 1)
#define CTLR_ARE         (1u << 4)

#define NUM_SPIS       64u
#define FIRST_SPI      32u
#define PRIORITIES     0xa0a0a0a0u /* four at a time */
#define ICFGR_ALL_EDGE 0xaaaaaaaau
#define PMR_ALL        0xf8u

static void count_kick(void *opaque, struct vgic_vcpu *vcpu)
{
	(void)vcpu;
	((struct machine *)opaque)->kicks++;
}

/* The SPIs, and the distributor as a whole. Errors are collected: any of them spoils the machine. */
static int boot_distributor(struct vgic *vgic, uint64_t affinity)
{
	int error = 0;

	for (uint32_t i = FIRST_SPI; i < FIRST_SPI + NUM_SPIS; i += 32) {
		error |= vgic_dist_write(vgic, GICD_IGROUPR + i / 8, 4, 0xffffffff);
		error |= vgic_dist_write(vgic, GICD_ISENABLER + i / 8, 4, 0xffffffff);
	}
	for (uint32_t i = FIRST_SPI; i < FIRST_SPI + NUM_SPIS; i += 16)
		error |= vgic_dist_write(vgic, GICD_ICFGR + i / 4, 4, ICFGR_ALL_EDGE);
	for (uint32_t i = FIRST_SPI; i < FIRST_SPI + NUM_SPIS; i += 4)
		error |= vgic_dist_write(vgic, GICD_IPRIORITYR + i, 4, PRIORITIES);
	for (uint32_t i = FIRST_SPI; i < FIRST_SPI + NUM_SPIS; i++)
		error |= vgic_dist_write(vgic, GICD_IROUTER + 8 * i, 8, affinity);
	return error | vgic_dist_write(vgic, GICD_CTLR, 4, CTLR_ARE | CTLR_ENABLE_GRP1);
}

static int boot_vcpu(struct vgic_vcpu *vcpu)
{
	int error = vgic_redist_write(vcpu, GICR_WAKER, 4, 0);

	error |= vgic_redist_write(vcpu, GICR_IGROUPR0, 4, 0xffffffff);
	for (uint32_t i = 0; i < 16; i += 4)
		error |= vgic_redist_write(vcpu, GICR_IPRIORITYR0 + i, 4, PRIORITIES);
	error |= vgic_redist_write(vcpu, GICR_ISENABLER0, 4, 0xffff);
	error |= vgic_icc_write(vcpu, VGIC_ICC_PMR_EL1, PMR_ALL);
	error |= vgic_icc_write(vcpu, VGIC_ICC_IGRPEN1_EL1, 1);
	return error;
}

static int create(struct machine *machine, const uint64_t *affinities, uint32_t num_vcpus)
{
	struct vgic_vcpu_config *vcpus = calloc(num_vcpus, sizeof(*vcpus));
	struct vgic_config config;

	if (!vcpus)
		return -ENOMEM;
	for (uint32_t i = 0; i < num_vcpus; i++) {
		vcpus[i].id = i;
		vcpus[i].affinity = affinities[i];
	}
	vgic_config_init(&config, VGIC_PROFILE_NATIVE);
	config.features |= VGIC_FEATURE_RSS | VGIC_FEATURE_A3V;
	config.num_spis = NUM_SPIS;
	config.num_vcpus = num_vcpus;
	config.vcpus = vcpus;
	config.ops.kick = count_kick;
	config.opaque = machine;

	const int error = vgic_create(&config, &machine->vgic);

	free(vcpus);
	return error;
}

int machine_init(struct machine *machine, const uint64_t *affinities, uint32_t num_vcpus)
{
	*machine = (struct machine){ 0 };

	int error = create(machine, affinities, num_vcpus);

	if (error)
		return error;
	machine->first = vgic_vcpu_by_index(machine->vgic, 0);
	machine->last = vgic_vcpu_by_index(machine->vgic, num_vcpus - 1);
	error = boot_distributor(machine->vgic, affinities[0]);
	for (uint32_t i = 0; i < num_vcpus; i++)
		error |= boot_vcpu(vgic_vcpu_by_index(machine->vgic, i));
	if (error)
		machine_destroy(machine);
	return error ? -EIO : 0;
}

void machine_destroy(struct machine *machine)
{
	vgic_destroy(machine->vgic);
	machine->vgic = NULL;
}

unsigned machine_drain(struct vgic_vcpu *vcpu, uint32_t *last)
{
	unsigned num = 0;

	for (;;) {
		const uint32_t intid = machine_acknowledge(vcpu);

		if (intid >= MACHINE_SPURIOUS)
			return num;
		*last = intid;
		machine_end(vcpu, intid);
		num++;
	}
}
