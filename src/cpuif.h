/* SPDX-License-Identifier: MIT */
/*
 * cpuif.h - the CPU interface of a vCPU, as the rest of the library uses it. All
 * of it is the owner's: the vCPU's own thread.
 */
#ifndef VGIC_CPUIF_H
#define VGIC_CPUIF_H

#include "pending.h"
#include "vgic_internal.h"

void cpuif_reset(struct vgic_vcpu *vcpu);

/*
 * The interrupt that the CPU interface signals: the highest-priority pending
 * one, if it has the priority to preempt. FIND_NONE if there is none, or the vCPU
 * is offline.
 */
enum find_result cpuif_find_signalled(struct vgic_vcpu *vcpu, struct candidate *out);

#endif /* VGIC_CPUIF_H */
