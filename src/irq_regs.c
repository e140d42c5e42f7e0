/* SPDX-License-Identifier: MIT */
/*
 * irq_regs.c - register banks over INTIDs.
 *
 * Each INTID's part of a write is a transition of its state word: no lock, and
 * two writers of one register never undo each other's bits. Only the disables
 * take config_lock, to note what RWP has to wait for.
 */
#include "irq_regs.h"

#include "deactivate.h"
#include "dist.h"
#include "redist.h"

#define BITS_PER_REGISTER   32u
#define BYTES_PER_REGISTER  4u
#define FIELDS_PER_REGISTER 16u

static struct irq *accessed_irq(const struct frame_access *a, uint32_t intid)
{
	if (a->vcpu)
		return intid < NUM_PRIVATE ? &a->vcpu->private_irqs[intid] : NULL;
	return intid - FIRST_SPI < a->vgic->num_spis ? &a->vgic->spis[intid - FIRST_SPI] : NULL;
}

/* ---- One bit for each INTID ------------------------------------------------------ */

static uint64_t read_bits(const struct frame_access *a, irq_word bit)
{
	uint64_t value = 0;

	for (unsigned i = 0; i < BITS_PER_REGISTER; i++) {
		struct irq *irq = accessed_irq(a, a->index * BITS_PER_REGISTER + i);

		if (irq && (load_acquire(&irq->word) & bit))
			value |= UINT64_C(1) << i;
	}
	return value;
}

/* Apply a transition to each INTID whose bit is set; returns the OR of the words before. */
static inline __attribute__((always_inline)) irq_word change_selected(const struct frame_access *a, uint64_t selected,
								      irq_transition transition, uint64_t arg)
{
	irq_word before = 0;

	for (; selected; selected &= selected - 1) {
		struct irq *irq = accessed_irq(a, a->index * BITS_PER_REGISTER + (uint32_t)__builtin_ctzll(selected));

		if (irq)
			before |= irq_change(a->vgic, irq, transition, arg);
	}
	return before;
}

uint64_t igroupr_read(const struct frame_access *a)
{
	return read_bits(a, IRQ_GROUP1);
}

void igroupr_write(const struct frame_access *a, uint64_t value, uint64_t mask)
{
	change_selected(a, value & mask, irq_set_bits, IRQ_GROUP1);
	change_selected(a, ~value & mask, irq_clear_bits, IRQ_GROUP1);
}

uint64_t enabler_read(const struct frame_access *a)
{
	return read_bits(a, IRQ_ENABLED);
}

void isenabler_write(const struct frame_access *a, uint64_t value, uint64_t mask)
{
	change_selected(a, value & mask, irq_set_bits, IRQ_ENABLED);
}

/* After the CAS no acknowledge takes the interrupt; one that took it before holds RWP until it has returned. */
void icenabler_write(const struct frame_access *a, uint64_t value, uint64_t mask)
{
	if (!(change_selected(a, value & mask, irq_clear_bits, IRQ_ENABLED) & IRQ_ENABLED))
		return;
	if (a->vcpu)
		redist_note_disable(a->vcpu);
	else
		dist_note_disable(a->vgic);
}

uint64_t pendr_read(const struct frame_access *a)
{
	uint64_t value = 0;

	for (unsigned i = 0; i < BITS_PER_REGISTER; i++) {
		struct irq *irq = accessed_irq(a, a->index * BITS_PER_REGISTER + i);

		if (irq && irq_is_pending(load_acquire(&irq->word)))
			value |= UINT64_C(1) << i;
	}
	return value;
}

void ispendr_write(const struct frame_access *a, uint64_t value, uint64_t mask)
{
	change_selected(a, value & mask, irq_latch, 0);
}

/* Clears the latch: a level-sensitive interrupt whose line is high stays pending. */
void icpendr_write(const struct frame_access *a, uint64_t value, uint64_t mask)
{
	change_selected(a, value & mask, irq_unlatch, 0);
}

/* The latch alone, whatever the line does, and each bit as it is given: what save and restore need. */
uint64_t latch_user_read(const struct frame_access *a)
{
	return read_bits(a, IRQ_PENDING);
}

int latch_user_write(const struct frame_access *a, uint64_t value, uint64_t mask)
{
	change_selected(a, value & mask, irq_latch, 0);
	change_selected(a, ~value & mask, irq_unlatch, 0);
	return 0;
}

uint64_t activer_read(const struct frame_access *a)
{
	return read_bits(a, IRQ_ACTIVE);
}

void isactiver_write(const struct frame_access *a, uint64_t value, uint64_t mask)
{
	change_selected(a, value & mask, irq_set_bits, IRQ_ACTIVE);
}

void icactiver_write(const struct frame_access *a, uint64_t value, uint64_t mask)
{
	for (uint64_t selected = value & mask; selected; selected &= selected - 1) {
		struct irq *irq = accessed_irq(a, a->index * BITS_PER_REGISTER + (uint32_t)__builtin_ctzll(selected));

		if (irq)
			irq_deactivate_and_tell(a->vgic, a->vcpu, irq);
	}
}

/* Nothing was deactivated that a device would have to hear of. */
int icactiver_user_write(const struct frame_access *a, uint64_t value, uint64_t mask)
{
	change_selected(a, value & mask, irq_clear_bits, IRQ_ACTIVE);
	return 0;
}

/* ---- A byte for each INTID -------------------------------------------------------- */

uint64_t ipriorityr_read(const struct frame_access *a)
{
	uint64_t value = 0;

	for (unsigned i = 0; i < BYTES_PER_REGISTER; i++) {
		struct irq *irq = accessed_irq(a, a->index * BYTES_PER_REGISTER + i);

		if (irq)
			value |= (uint64_t)irq_priority(load_acquire(&irq->word)) << (8 * i);
	}
	return value;
}

void ipriorityr_write(const struct frame_access *a, uint64_t value, uint64_t mask)
{
	for (unsigned i = 0; i < BYTES_PER_REGISTER; i++) {
		struct irq *irq = accessed_irq(a, a->index * BYTES_PER_REGISTER + i);

		if (irq && (mask >> (8 * i) & 0xff))
			irq_change(a->vgic, irq, irq_set_priority, value >> (8 * i) & 0xff);
	}
}

/* ---- Two bits for each INTID: the upper one says edge-triggered -------------------- */

uint64_t icfgr_read(const struct frame_access *a)
{
	uint64_t value = 0;

	for (unsigned i = 0; i < FIELDS_PER_REGISTER; i++) {
		struct irq *irq = accessed_irq(a, a->index * FIELDS_PER_REGISTER + i);

		if (irq && (load_acquire(&irq->word) & IRQ_EDGE))
			value |= UINT64_C(2) << (2 * i);
	}
	return value;
}

/* SGIs are edge-triggered: their register is read-only. So is that of PPIs in KVM's vGIC: they are level-sensitive. */
void icfgr_write(const struct frame_access *a, uint64_t value, uint64_t mask)
{
	const uint32_t first_writable = a->vgic->profile == VGIC_PROFILE_KVM ? NUM_PRIVATE : NUM_SGIS;

	(void)mask;
	for (unsigned i = 0; i < FIELDS_PER_REGISTER; i++) {
		struct irq *irq = accessed_irq(a, a->index * FIELDS_PER_REGISTER + i);

		if (!irq || irq->intid < first_writable)
			continue;
		if (value >> (2 * i) & 2)
			irq_change(a->vgic, irq, irq_set_bits, IRQ_EDGE);
		else
			irq_change(a->vgic, irq, irq_clear_bits, IRQ_EDGE);
	}
}
