/* SPDX-License-Identifier: MIT */
/*
 * sgi.c - software-generated interrupts: from the value of an ICC_SGI register to
 * the SGIs of its targets. Constant time for each target, no lock.
 */
#include "gic_regs.h"
#include "irq_change.h"
#include "vgic_internal.h"

static void send_to(struct vgic_vcpu *target, uint32_t intid, enum sgi_reach reach)
{
	struct irq *irq = &target->private_irqs[intid];

	if (reach == SGI_REACHES_GROUP0)
		irq_change(target->vgic, irq, irq_latch_group0, 0);
	else
		irq_change(target->vgic, irq, irq_latch, 0);
}

/* IRM=1: every PE but the sender; affinities and target list are ignored. */
static void send_to_others(struct vgic_vcpu *sender, uint32_t intid, enum sgi_reach reach)
{
	struct vgic *vgic = sender->vgic;

	for (uint32_t i = 0; i < vgic->num_vcpus; i++) {
		if (i != sender->index)
			send_to(vgic->vcpus[i], intid, reach);
	}
}

/* Aff3.Aff2.Aff1 and range selector, as the key of a cluster. Without its feature the range selector is RES0. */
static uint32_t cluster_key(const struct vgic *vgic, uint64_t value)
{
	const uint32_t aff3 = value >> ICC_SGIR_AFF3_SHIFT & 0xff;
	const uint32_t aff2 = value >> ICC_SGIR_AFF2_SHIFT & 0xff;
	const uint32_t aff1 = value >> ICC_SGIR_AFF1_SHIFT & 0xff;
	const uint32_t rs = vgic_has(vgic, VGIC_FEATURE_RSS) ? value >> ICC_SGIR_RS_SHIFT & 0xf : 0;

	return (aff3 << 24 | aff2 << 16 | aff1 << 8) / CLUSTER_SIZE | rs;
}

void sgi_send(struct vgic_vcpu *sender, uint64_t value, enum sgi_reach reach)
{
	struct vgic *vgic = sender->vgic;
	const uint32_t intid = value >> ICC_SGIR_INTID_SHIFT & 0xf;
	const struct cluster *cluster;
	bool missed = false;
	DELIVERS_WITHOUT_LOCKS;

	if (value & ICC_SGIR_IRM) {
		send_to_others(sender, intid, reach);
		return;
	}
	cluster = affinity_find_cluster(&vgic->affinity, cluster_key(vgic, value));
	for (uint32_t list = value & 0xffff; list; list &= list - 1) {
		const uint32_t index = cluster ? cluster->vcpu[__builtin_ctz(list)] : CLUSTER_NO_VCPU;

		if (index == CLUSTER_NO_VCPU)
			missed = true;
		else
			send_to(vgic->vcpus[index], intid, reach);
	}
	if (missed)
		guest_error(vgic, VGIC_GUEST_SGI_NO_TARGET, "SGI to a PE that does not exist", intid, value);
}
