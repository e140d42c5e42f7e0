/* SPDX-License-Identifier: MIT */
/*
 * one_of_n.c - 1-of-N selection.
 *
 * The selected vCPU is in the state word's TARGET, chosen by the very CAS that
 * makes the interrupt deliverable: there is no moment at which it is deliverable
 * nowhere. Each interrupt goes round the vCPUs by itself, so that signallers of
 * different interrupts share nothing.
 *
 * A vCPU that stops taking part races with a signaller that selects it. The first
 * clears its bit and then walks the SPIs, the second sets TARGET and then looks
 * at the bit: both seq_cst, so that one of them sees the other, and selects anew.
 * The same for a vCPU that begins to take part and an interrupt that found none.
 */
#include "one_of_n.h"

#include "gic_regs.h"
#include "irq_change.h"

static bool takes_part(const struct vgic *vgic, unsigned group, uint32_t index)
{
	return load_seq_cst(&vgic->participants[group].words[index / 64]) >> (index % 64) & 1;
}

/* The first participant in vCPUs @from to @end-1, or @end. */
static uint32_t first_participant(const struct vgic *vgic, unsigned group, uint32_t from, uint32_t end)
{
	const struct participants *p = &vgic->participants[group];
	const uint64_t top = load_seq_cst(&p->top);

	while (from < end) {
		const uint64_t bits = load_seq_cst(&p->words[from / 64]) & (~UINT64_C(0) << (from % 64));
		uint64_t later;

		if (bits) {
			from = from - from % 64 + (uint32_t)__builtin_ctzll(bits);
			return from < end ? from : end;
		}
		later = from / 64 == 63 ? 0 : top & (~UINT64_C(0) << (from / 64 + 1));
		if (!later)
			return end;
		from = (uint32_t)__builtin_ctzll(later) * 64;
	}
	return end;
}

uint32_t one_of_n_select(const struct vgic *vgic, const struct irq *irq, irq_word w)
{
	const unsigned group = irq_group(w);
	const uint32_t n = vgic->num_vcpus;
	const uint32_t last = irq_target(w);
	const uint32_t start = last == IRQ_NO_TARGET ? irq->intid % n : (last + 1) % n;
	uint32_t found = first_participant(vgic, group, start, n);

	if (found < n)
		return found;
	found = first_participant(vgic, group, 0, start);
	return found < start ? found : IRQ_NO_TARGET;
}

void one_of_n_recheck(struct vgic *vgic, struct irq *irq)
{
	irq_word old = load_seq_cst(&irq->word), new;

	full_fence();
	for (;;) {
		if (!(old & IRQ_ONE_OF_N) || !irq_is_deliverable(old))
			return;
		if (irq_target(old) != IRQ_NO_TARGET && takes_part(vgic, irq_group(old), irq_target(old)))
			return;
		new = irq_set_target(old, one_of_n_select(vgic, irq, old));
		if (new == old)
			return; /* nobody takes part: whoever begins to will walk the SPIs */
		if (atomic_compare_exchange_weak_explicit(&irq->word, &old, new, memory_order_seq_cst,
							  memory_order_seq_cst)) {
			irq_settle(vgic, irq, old, new);
			old = load_seq_cst(&irq->word);
		}
	}
}

static bool set_participation(struct vgic_vcpu *vcpu, unsigned group, bool takes_part_now)
{
	struct participants *p = &vcpu->vgic->participants[group];
	_Atomic uint64_t *word = &p->words[vcpu->index / 64];
	const uint64_t bit = UINT64_C(1) << (vcpu->index % 64);

	if (takes_part_now == ((load_relaxed(word) & bit) != 0))
		return false;
	if (takes_part_now) {
		atomic_fetch_or_explicit(&p->top, UINT64_C(1) << (vcpu->index / 64), memory_order_seq_cst);
		atomic_fetch_or_explicit(word, bit, memory_order_seq_cst);
	} else {
		atomic_fetch_and_explicit(word, ~bit, memory_order_seq_cst);
	}
	return true;
}

bool one_of_n_set(struct vgic_vcpu *vcpu)
{
	struct vgic *vgic = vcpu->vgic;
	const bool awake = load_relaxed(&vcpu->online) && !vcpu->asleep;
	const bool declines[2] = { vcpu->redist_ctlr & GICR_CTLR_DPG0, vcpu->redist_ctlr & GICR_CTLR_DPG1NS };
	bool changed = false;

	if (!vgic_has(vgic, VGIC_FEATURE_ONE_OF_N))
		return false;
	for (unsigned group = 0; group < 2; group++)
		changed |= set_participation(vcpu, group, awake && vcpu->group_enabled[group] && !declines[group]);
	return changed;
}

void one_of_n_update(struct vgic_vcpu *vcpu)
{
	struct vgic *vgic = vcpu->vgic;

	if (!one_of_n_set(vcpu))
		return;
	for (uint32_t i = 0; i < vgic->num_spis; i++)
		one_of_n_recheck(vgic, &vgic->spis[i]);
}
