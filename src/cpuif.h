/* SPDX-License-Identifier: MIT */
/*
 * cpuif.h - the CPU interface of a vCPU, as the rest of the library uses it. All
 * of it is the owner's: the vCPU's own thread.
 */
#ifndef VGIC_CPUIF_H
#define VGIC_CPUIF_H

#include "pending.h"
#include "vgic_internal.h"

/* Owner only, under config_lock; what it means for 1-of-N is left to the caller. */
void cpuif_reset(struct vgic_vcpu *vcpu);

/*
 * The interrupt that the CPU interface signals: the highest-priority pending
 * one, if it has the priority to preempt. FIND_NONE if there is none, or the vCPU
 * is offline.
 */
enum find_result cpuif_find_signalled(struct vgic_vcpu *vcpu, struct candidate *out);

/*
 * The registers as the VMM gets and sets them (state.h), by any thread while the vCPU is stopped. -ENXIO for what is no
 * state, -EINVAL for a register that five priority bits do not have, or a value that this controller cannot take.
 */
int cpuif_user_has(uint32_t reg);
int cpuif_user_read(struct vgic_vcpu *vcpu, uint32_t reg, uint64_t *value);
int cpuif_user_write(struct vgic_vcpu *vcpu, uint32_t reg, uint64_t value);

/* All of the registers, for save and restore, while the vCPU is stopped. */
struct cpuif_registers {
	uint32_t ctlr; /* CBPR and EOImode */
	uint32_t apr[2];
	uint8_t pmr, bpr[2];
	bool igrpen[2];
};

void cpuif_get(const struct vgic_vcpu *vcpu, struct cpuif_registers *r);
bool cpuif_could_be(const struct cpuif_registers *r); /* are these values that the registers can have? */
void cpuif_set(struct vgic_vcpu *vcpu, const struct cpuif_registers *r); /* as cpuif_reset() */

#endif /* VGIC_CPUIF_H */
