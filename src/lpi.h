/* SPDX-License-Identifier: MIT */
/*
 * lpi.h - LPIs: where they are delivered, how they are configured, and the
 * redistributors' LPI registers.
 *
 * All of it is done under config_lock; signals, which are not, are in lpi_signal.h.
 */
#ifndef VGIC_LPI_H
#define VGIC_LPI_H

#include "frame.h"
#include "vgic_internal.h"

/*
 * What a translation leads to: the LPI in the low bits, its generation as in the state word. Between them is a number
 * that tells the uses of a node apart: see its_map.c.
 */
#define TRANSLATION_LPI_MASK ((UINT64_C(1) << VGIC_MAX_LPI_BITS) - 1)
#define TRANSLATION_USE_ONE  (UINT64_C(1) << VGIC_MAX_LPI_BITS)
#define TRANSLATION_USE_MASK (~(IRQ_GENERATION_MASK | TRANSLATION_LPI_MASK))

/* The first INTID that is no LPI as the guest has set it up (GICR_PROPBASER.IDbits): KVM's rule, one shared PROPBASER. */
uint32_t lpi_intid_end(const struct vgic *vgic);

/* What a translation that leads to an LPI has for its value, from now until the LPI's generation is another. */
static inline uint64_t lpi_value(const struct vgic *vgic, const struct irq *irq)
{
	return (load_relaxed(&irq->word) & IRQ_GENERATION_MASK) | (uint64_t)(irq - vgic->lpis);
}

/* A translation to an LPI appears; its target is that of the collection (IRQ_NO_TARGET: not mapped). Returns the value. */
uint64_t lpi_map(struct vgic *vgic, struct irq *irq, uint32_t target);

/* The same with the configuration and the pending state that were read from the guest's tables, whatever it had. */
uint64_t lpi_map_restored(struct vgic *vgic, struct irq *irq, uint32_t target, uint8_t property, bool pending);

/* A translation to an LPI is gone. */
void lpi_unmap(struct vgic *vgic, struct irq *irq);

void lpi_set_target(struct vgic *vgic, struct irq *irq, uint32_t target);
void lpi_clear_pending(struct vgic *vgic, struct irq *irq);

/* Read the LPI's byte of the configuration table again: at mapping, INV, INVALL, and when EnableLPIs is set. */
void lpi_read_config(struct vgic *vgic, struct irq *irq);

/*
 * A walk over all LPIs that is done in parts: lpi_walk() does up to *steps of it and
 * returns true when it is over.
 */
void lpi_walk_begin(struct lpi_walk *walk, enum lpi_walk_kind kind, uint32_t vcpu, uint32_t new_vcpu);
bool lpi_walk(struct vgic *vgic, struct lpi_walk *walk, int *steps);

/* The walk of a redistributor that its registers began. Returns true if there is nothing left to do. */
bool redist_run_work(struct vgic_vcpu *vcpu, int *steps);

/* All of it at once, for the VMM. */
void redist_finish_work(struct vgic_vcpu *vcpu);

/* A translation from an image appears. The LPI is mapped by lpi_restore(), which has to follow. Returns the value. */
uint64_t lpi_restore_mapping(struct vgic *vgic, struct irq *irq);

/*
 * The state of an LPI from an image, after a reset and with MSIs paused; mapped if a translation leads to it; @bits are
 * IRQ_ENABLED and IRQ_PENDING.
 */
void lpi_restore(struct vgic *vgic, struct irq *irq, uint32_t target, uint8_t priority, irq_word bits);

/* Reset: nothing is pending, all redistributors have LPIs disabled. Translations have been removed before. */
void lpi_reset(struct vgic *vgic);

/* Can LPIs be set by GICR_SETLPIR? In a system without an ITS; KVM's vGIC has no such thing. */
static inline bool lpi_is_direct(const struct vgic *vgic)
{
	return vgic_has(vgic, VGIC_FEATURE_LPIS) && vgic->num_itses == 0 && vgic->profile != VGIC_PROFILE_KVM;
}

/* Where the guest's tables have the byte of an LPI (INTID - 8192), and its bit of a redistributor. */
uint64_t lpi_property_address(const struct vgic *vgic, uint32_t lpi);
uint64_t lpi_pending_address(const struct vgic_vcpu *vcpu, uint32_t lpi);

/* Registers; see redist.c. */
uint64_t lpi_ctlr_read(struct vgic_vcpu *vcpu); /* the LPI bits of GICR_CTLR, under config_lock */
bool lpi_ctlr_write(struct vgic_vcpu *vcpu, uint32_t value);
uint64_t propbaser_read(const struct frame_access *a);
void propbaser_write(const struct frame_access *a, uint64_t value, uint64_t mask);
uint64_t pendbaser_read(const struct frame_access *a);
void pendbaser_write(const struct frame_access *a, uint64_t value, uint64_t mask);
void invlpir_write(const struct frame_access *a, uint64_t value, uint64_t mask);
void invallr_write(const struct frame_access *a, uint64_t value, uint64_t mask);
uint64_t syncr_read(const struct frame_access *a);
void setlpir_write(const struct frame_access *a, uint64_t value, uint64_t mask);
void clrlpir_write(const struct frame_access *a, uint64_t value, uint64_t mask);

#endif /* VGIC_LPI_H */
