/* SPDX-License-Identifier: MIT */
/*
 * vcpu.c - a vCPU's life and its lines.
 *
 * R2, the vCPU's half. A signaller files its hint, then reads the masks, then
 * `kicked`, and kicks last of all. The vCPU stores its masks, sets kicked=0, makes
 * one full fence, and then evaluates: before every guest entry and before every
 * wait, not for every interrupt. Of "hint, then mask and kicked" and "mask and
 * kicked, then hints" one must see the other, so no wake-up is lost.
 *
 * R5. A line is reported high only for a candidate whose state word was verified,
 * and a vCPU blocks only if none is left: stale hints make no phantoms, and cost
 * no wake-ups.
 */
#include "cpuif.h"
#include "one_of_n.h"
#include "pending.h"
#include "vgic_internal.h"

void vcpu_kick(struct vgic_vcpu *vcpu)
{
	struct vgic *vgic = vcpu->vgic;

	if (load_seq_cst(&vcpu->pending.kicked) ||
	    atomic_exchange_explicit(&vcpu->pending.kicked, 1, memory_order_seq_cst))
		return;
	atomic_fetch_add_explicit(&vgic->kicks, 1, memory_order_relaxed);
	if (vgic->ops.kick)
		vgic->ops.kick(vgic->opaque, vcpu);
}

unsigned vcpu_evaluate_lines(struct vgic_vcpu *vcpu)
{
	struct candidate c;
	DELIVERS_WITHOUT_LOCKS;

	/* R2: the masks were stored before; this fence also orders `watch` before the words that are read below. */
	store_relaxed(&vcpu->pending.kicked, 0);
	full_fence();
	if (cpuif_find_signalled(vcpu, &c) == FIND_NONE)
		return 0;
	return c.level < NUM_PRIORITIES ? VGIC_LINE_FIQ : VGIC_LINE_IRQ;
}

unsigned vcpu_evaluate_and_report(struct vgic_vcpu *vcpu)
{
	struct vgic *vgic = vcpu->vgic;
	const unsigned lines = vcpu_evaluate_lines(vcpu);

	if (vgic->ops.line_changed && lines != vcpu->cpuif.reported_lines) {
		vcpu->cpuif.reported_lines = lines;
		vgic->ops.line_changed(vgic->opaque, vcpu, lines);
	}
	return lines;
}

unsigned vgic_enter_guest(struct vgic_vcpu *vcpu)
{
	store_seq_cst(&vcpu->run, RUN_GUEST);
	return vcpu_evaluate_and_report(vcpu);
}

void vgic_exit_guest(struct vgic_vcpu *vcpu)
{
	store_release(&vcpu->run, RUN_OUTSIDE);
}

unsigned vgic_prepare_wait(struct vgic_vcpu *vcpu)
{
	store_release(&vcpu->run, RUN_WAITING);
	return vcpu_evaluate_and_report(vcpu);
}

void vgic_finish_wait(struct vgic_vcpu *vcpu)
{
	store_release(&vcpu->run, RUN_OUTSIDE);
}

unsigned vgic_poll_lines(struct vgic_vcpu *vcpu)
{
	return vcpu_evaluate_and_report(vcpu);
}

void vgic_vcpu_set_online(struct vgic_vcpu *vcpu, bool online)
{
	config_lock(vcpu->vgic);
	if (load_relaxed(&vcpu->online) != online) {
		store_seq_cst(&vcpu->online, online);
		one_of_n_update(vcpu);
		/* Its lines have changed at one blow: it has to look, or it may never be told. */
		vcpu_kick(vcpu);
	}
	config_unlock(vcpu->vgic);
}

void vgic_vcpu_reset(struct vgic_vcpu *vcpu)
{
	config_lock(vcpu->vgic);
	cpuif_reset(vcpu);
	one_of_n_update(vcpu);
	config_unlock(vcpu->vgic);
	vcpu_report_lines(vcpu);
}

void ack_note(const struct vgic_vcpu *vcpu, uint64_t *wait)
{
	const uint64_t sequence = load_seq_cst(&vcpu->ack_sequence);

	*wait = (sequence & 1) ? sequence : 0;
}

bool ack_is_over(const struct vgic_vcpu *vcpu, uint64_t *wait)
{
	if (*wait && load_acquire(&vcpu->ack_sequence) != *wait)
		*wait = 0;
	return *wait == 0;
}

/* ---- Look-ups ---- */

struct vgic_vcpu *vgic_vcpu_by_index(struct vgic *vgic, uint32_t index)
{
	return index < vgic->num_vcpus ? vgic->vcpus[index] : NULL;
}

struct vgic_vcpu *vgic_vcpu_by_id(struct vgic *vgic, uint32_t id)
{
	return id <= vgic->max_id ? vgic_vcpu_by_index(vgic, vgic->index_by_id[id]) : NULL;
}

struct vgic_vcpu *vgic_vcpu_by_affinity(struct vgic *vgic, uint64_t affinity)
{
	if (affinity & ~AFFINITY_MASK)
		return NULL;
	return vgic_vcpu_by_index(vgic, affinity_find(&vgic->affinity, affinity_pack(affinity)));
}

uint32_t vgic_vcpu_index(const struct vgic_vcpu *vcpu)
{
	return vcpu->index;
}

uint32_t vgic_vcpu_id(const struct vgic_vcpu *vcpu)
{
	return vcpu->id;
}

uint64_t vgic_vcpu_affinity(const struct vgic_vcpu *vcpu)
{
	return vcpu->affinity;
}

void *vgic_vcpu_user(const struct vgic_vcpu *vcpu)
{
	return vcpu->user;
}

uint32_t vgic_num_vcpus(const struct vgic *vgic)
{
	return vgic->num_vcpus;
}
