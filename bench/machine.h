/* SPDX-License-Identifier: MIT */
/*
 * machine.h - a controller as a guest's operating system leaves it after boot,
 * through the public API only: distributor and CPU interfaces enabled, all SGIs
 * and SPIs enabled in Group 1 at one priority, SPIs edge-triggered and routed to
 * vCPU 0.
 */
#ifndef BENCH_MACHINE_H
#define BENCH_MACHINE_H

#include <stdint.h>
#include <vgic/vgic.h>

#define MACHINE_SPURIOUS 1023u

struct machine {
	struct vgic *vgic;
	struct vgic_vcpu *first, *last;
	uint64_t kicks; /* calls of the kick callback; the benchmarks have one thread */
};

/* Returns 0 or a negative errno of vgic_create() or of a register access. */
int machine_init(struct machine *machine, const uint64_t *affinities, uint32_t num_vcpus);
void machine_destroy(struct machine *machine);

/* What the guest does in its interrupt handler: ICC_IAR1_EL1 and ICC_EOIR1_EL1. */
static inline uint32_t machine_acknowledge(struct vgic_vcpu *vcpu)
{
	uint64_t intid = 0;

	return vgic_icc_read(vcpu, VGIC_ICC_IAR1_EL1, &intid) ? UINT32_MAX : (uint32_t)intid;
}

static inline void machine_end(struct vgic_vcpu *vcpu, uint32_t intid)
{
	vgic_icc_write(vcpu, VGIC_ICC_EOIR1_EL1, intid);
}

/* Takes everything that is pending at @vcpu. Returns how many there were; *last is the INTID of the last one. */
unsigned machine_drain(struct vgic_vcpu *vcpu, uint32_t *last);

#endif /* BENCH_MACHINE_H */
