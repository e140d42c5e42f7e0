/* SPDX-License-Identifier: MIT */
/*
 * irq.h - the state of one interrupt, in one 64-bit word.
 *
 * Everything that decides whether, where and at which priority an interrupt is
 * delivered is in this word, so that every decision is made on one snapshot. It
 * changes only through irq_change() (irq_change.h) and through the acknowledge
 * (pending.c): compare-and-swap loops that always end in a successful CAS, and
 * then file a hint if the interrupt became deliverable, or moved while it was.
 *
 *   bit    name       set by                           cleared by
 *   0      PENDING    signal, ISPENDR, rise of LINE    acknowledge, ICPENDR, CLEAR, unmapping
 *   1      LINE       first source that goes high      last source that goes low
 *   2      ACTIVE     acknowledge, ISACTIVER           EOI, DIR, ICACTIVER
 *   3      ENABLED    ISENABLER                        ICENABLER
 *   4      GROUP1     IGROUPR                          IGROUPR
 *   5      EDGE       ICFGR; always for SGIs, LPIs     ICFGR
 *   6      LPI        creation                         never
 *   7      MAPPED     (LPIs) a translation leads here  removal of the last one
 *   8      RESIDENT   (list registers) handed to one   taken back
 *   9      ONE_OF_N   IROUTER.IRM=1                    IROUTER.IRM=0
 *   10     HELD       (LPIs) target's EnableLPIs=0     target's EnableLPIs=1
 *   12-19  PRIORITY   IPRIORITYR                       the whole byte; upper 5 bits implemented
 *   20-35  TARGET     IROUTER, 1-of-N selection        vCPU *index*, or IRQ_NO_TARGET
 *   36-63  SOURCES    (SGI, PPI, SPI) one bit for each source that drives the line high
 *          GENERATION (LPI) incremented with every MAPPED that is cleared
 *
 * PENDING is the latch. A level-sensitive interrupt is pending while its latch
 * or its line is; an edge-triggered one only while its latch is. LPIs have no
 * lines and the others no mapping: the two share the upper field.
 *
 * This file is pure: words in, words out. That is what makes each transition a
 * line in a test table.
 */
#ifndef VGIC_IRQ_H
#define VGIC_IRQ_H

#include <stdbool.h>
#include <stdint.h>

#include "atomics.h"

typedef uint64_t irq_word;

#define IRQ_PENDING  (UINT64_C(1) << 0)
#define IRQ_LINE     (UINT64_C(1) << 1)
#define IRQ_ACTIVE   (UINT64_C(1) << 2)
#define IRQ_ENABLED  (UINT64_C(1) << 3)
#define IRQ_GROUP1   (UINT64_C(1) << 4)
#define IRQ_EDGE     (UINT64_C(1) << 5)
#define IRQ_LPI      (UINT64_C(1) << 6)
#define IRQ_MAPPED   (UINT64_C(1) << 7)
#define IRQ_RESIDENT (UINT64_C(1) << 8)
#define IRQ_ONE_OF_N (UINT64_C(1) << 9)
#define IRQ_HELD     (UINT64_C(1) << 10)

#define IRQ_PRIORITY_SHIFT  12
#define IRQ_PRIORITY_MASK   (UINT64_C(0xff) << IRQ_PRIORITY_SHIFT)
#define IRQ_TARGET_SHIFT    20
#define IRQ_TARGET_MASK     (UINT64_C(0xffff) << IRQ_TARGET_SHIFT)
#define IRQ_SOURCES_SHIFT   36
#define IRQ_SOURCES_MASK    (~UINT64_C(0) << IRQ_SOURCES_SHIFT)
#define IRQ_GENERATION_ONE  (UINT64_C(1) << IRQ_SOURCES_SHIFT)
#define IRQ_GENERATION_MASK IRQ_SOURCES_MASK

/* Where the interrupt waits: it has to be found anew when one of these changes. */
#define IRQ_PLACE_MASK (IRQ_TARGET_MASK | IRQ_PRIORITY_MASK | IRQ_GROUP1)

/* Bits of which only ENABLED may be set in the word of a deliverable interrupt. */
#define IRQ_READY_MASK (IRQ_ENABLED | IRQ_ACTIVE | IRQ_HELD)

/* All that decides whether an interrupt whose latch is set is deliverable at one place. */
#define IRQ_CANDIDATE_MASK (IRQ_READY_MASK | IRQ_PENDING | IRQ_PLACE_MASK)

#define IRQ_NO_TARGET 0xffffu

/*
 * Sources above the VMM's own are the library's: a message-based SPI keeps its
 * line high by itself between SETSPI and CLRSPI.
 */
#define IRQ_SOURCE_MESSAGE 24u
#define IRQ_NUM_SOURCES    28u

/* Priorities have 5 implemented bits: 32 of them, in two groups, make 64 levels. */
#define PRIORITY_BITS  5u
#define PRIORITY_SHIFT (8u - PRIORITY_BITS)
#define PRIORITY_MASK  (0xffu & ~((1u << PRIORITY_SHIFT) - 1u))
#define NUM_PRIORITIES (1u << PRIORITY_BITS)
#define NUM_LEVELS     (2u * NUM_PRIORITIES)

static inline uint32_t irq_target(irq_word w)
{
	return (uint32_t)((w & IRQ_TARGET_MASK) >> IRQ_TARGET_SHIFT);
}

static inline uint8_t irq_priority(irq_word w)
{
	return (uint8_t)((w & IRQ_PRIORITY_MASK) >> IRQ_PRIORITY_SHIFT);
}

static inline unsigned irq_group(irq_word w)
{
	return (w & IRQ_GROUP1) ? 1 : 0;
}

/* The level of an interrupt: its priority, Group 0 in 0-31 and Group 1 in 32-63. */
static inline unsigned irq_level(irq_word w)
{
	return (unsigned)(w >> (IRQ_PRIORITY_SHIFT + PRIORITY_SHIFT) & (NUM_PRIORITIES - 1)) |
	       (unsigned)(w & IRQ_GROUP1) << 1;
}

/* Pending as the guest sees it in ISPENDR. */
static inline bool irq_is_pending(irq_word w)
{
	return (w & IRQ_PENDING) || (w & (IRQ_LINE | IRQ_EDGE)) == IRQ_LINE;
}

/*
 * May this interrupt be signalled to its target? MAPPED is not asked: it decides
 * whether a translation finds an LPI, never whether a pending one is taken.
 */
static inline bool irq_is_deliverable(irq_word w)
{
	return (w & IRQ_READY_MASK) == IRQ_ENABLED && irq_is_pending(w);
}

/* Is it deliverable to this vCPU? */
static inline bool irq_is_deliverable_at(irq_word w, uint32_t vcpu_index)
{
	return irq_is_deliverable(w) && irq_target(w) == vcpu_index;
}

/* What the word of an interrupt that is latched and deliverable at a level of a vCPU has in IRQ_CANDIDATE_MASK. */
static inline irq_word irq_candidate(uint32_t vcpu_index, unsigned level)
{
	return IRQ_ENABLED | IRQ_PENDING | (irq_word)vcpu_index << IRQ_TARGET_SHIFT |
	       (irq_word)(level & (NUM_PRIORITIES - 1)) << (IRQ_PRIORITY_SHIFT + PRIORITY_SHIFT) |
	       (level & NUM_PRIORITIES) >> 1;
}

/* Is it deliverable at the vCPU and the level that irq_candidate() was given? One comparison, of all at once. */
static inline bool irq_is_candidate(irq_word w, irq_word candidate)
{
	const irq_word difference = (w ^ candidate) & IRQ_CANDIDATE_MASK;

	/* Where nothing but the latch is missing, the line may do. */
	return difference == 0 || (difference == IRQ_PENDING && irq_is_pending(w));
}

/* ---- Transitions: the new word for an old one. @arg is what each says. ---- */

typedef irq_word (*irq_transition)(irq_word w, uint64_t arg);

static inline irq_word irq_latch(irq_word w, uint64_t unused)
{
	(void)unused;
	return w | IRQ_PENDING;
}

static inline irq_word irq_unlatch(irq_word w, uint64_t unused)
{
	(void)unused;
	return w & ~IRQ_PENDING;
}

/* Latch an SGI unless it is in Group 1: what ICC_SGI0R and ICC_ASGI1R can reach. */
static inline irq_word irq_latch_group0(irq_word w, uint64_t unused)
{
	(void)unused;
	return (w & IRQ_GROUP1) ? w : w | IRQ_PENDING;
}

/* A message or a pulse: latches an edge-triggered interrupt, passes a level-sensitive one by. */
static inline irq_word irq_pulse(irq_word w, uint64_t unused)
{
	(void)unused;
	return (w & IRQ_EDGE) ? w | IRQ_PENDING : w;
}

/* @source goes high. The line is the OR of all sources: only its first one makes an edge. */
static inline irq_word irq_raise(irq_word w, uint64_t source)
{
	const irq_word edge = (w & (IRQ_EDGE | IRQ_LINE)) == IRQ_EDGE ? IRQ_PENDING : 0;

	return w | IRQ_LINE | edge | UINT64_C(1) << (IRQ_SOURCES_SHIFT + source);
}

/* @source goes low. */
static inline irq_word irq_lower(irq_word w, uint64_t source)
{
	w &= ~(UINT64_C(1) << (IRQ_SOURCES_SHIFT + source));
	return (w & IRQ_SOURCES_MASK) ? w : w & ~IRQ_LINE;
}

/* GICD_SETSPI: an edge, or a line that stays high until GICD_CLRSPI. */
static inline irq_word irq_message_set(irq_word w, uint64_t unused)
{
	(void)unused;
	return (w & IRQ_EDGE) ? w | IRQ_PENDING : irq_raise(w, IRQ_SOURCE_MESSAGE);
}

static inline irq_word irq_message_clear(irq_word w, uint64_t unused)
{
	(void)unused;
	w = irq_lower(w, IRQ_SOURCE_MESSAGE);
	return (w & IRQ_EDGE) ? w & ~IRQ_PENDING : w;
}

/*
 * A line as the VMM restores it: no edge, that is in the latch. High through @source unless it is high already, low from
 * all of them.
 */
static inline irq_word irq_line_high(irq_word w, uint64_t source)
{
	return (w & IRQ_LINE) ? w : w | IRQ_LINE | UINT64_C(1) << (IRQ_SOURCES_SHIFT + source);
}

static inline irq_word irq_line_low(irq_word w, uint64_t unused)
{
	(void)unused;
	return w & ~(IRQ_LINE | IRQ_SOURCES_MASK);
}

static inline irq_word irq_set_bits(irq_word w, uint64_t bits)
{
	return w | bits;
}

static inline irq_word irq_clear_bits(irq_word w, uint64_t bits)
{
	return w & ~bits;
}

/*
 * A deactivation. It lowers those sources of a level-sensitive interrupt that are resampled, in the same step: their
 * devices are asked then whether they still need service, and the interrupt does not come once more before they answer.
 */
static inline irq_word irq_deactivate(irq_word w, uint64_t resampled)
{
	if ((w & (IRQ_ACTIVE | IRQ_EDGE)) != IRQ_ACTIVE)
		return w & ~IRQ_ACTIVE;
	w &= ~IRQ_ACTIVE & ~(resampled << IRQ_SOURCES_SHIFT);
	return (w & IRQ_SOURCES_MASK) ? w : w & ~IRQ_LINE;
}

static inline irq_word irq_set_priority(irq_word w, uint64_t priority)
{
	return (w & ~IRQ_PRIORITY_MASK) | (priority & PRIORITY_MASK) << IRQ_PRIORITY_SHIFT;
}

static inline irq_word irq_set_target(irq_word w, uint64_t vcpu_index)
{
	return (w & ~IRQ_TARGET_MASK) | (vcpu_index << IRQ_TARGET_SHIFT & IRQ_TARGET_MASK);
}

/* Routed to one vCPU. */
static inline irq_word irq_route_to(irq_word w, uint64_t vcpu_index)
{
	return irq_set_target(w & ~IRQ_ONE_OF_N, vcpu_index);
}

/* Routed to any one participating vCPU; the target that it has is kept until a better one is selected. */
static inline irq_word irq_route_to_any(irq_word w, uint64_t unused)
{
	(void)unused;
	return w | IRQ_ONE_OF_N;
}

/* Acknowledge: pending becomes active. LPIs have no active state. */
static inline irq_word irq_acknowledge(irq_word w)
{
	return (w & IRQ_LPI) ? w & ~IRQ_PENDING : (w & ~IRQ_PENDING) | IRQ_ACTIVE;
}

/*
 * Take an acknowledge back; @before is the word that it was made from. An LPI that
 * has been unmapped since then has lost its pending state anyway.
 */
static inline irq_word irq_unacknowledge(irq_word w, uint64_t before)
{
	if (!(w & IRQ_LPI))
		return (w & ~IRQ_ACTIVE) | (before & IRQ_PENDING);
	return ((w ^ before) & IRQ_GENERATION_MASK) ? w : w | IRQ_PENDING;
}

/* Reset: only what the VMM's own sources drive stays. @reset is the word of an interrupt that nothing drives. */
static inline irq_word irq_reset(irq_word w, uint64_t reset)
{
	w &= IRQ_SOURCES_MASK & ~(UINT64_C(1) << (IRQ_SOURCES_SHIFT + IRQ_SOURCE_MESSAGE));
	return w ? reset | w | IRQ_LINE : reset;
}

/* ---- Transitions of LPIs ------------------------------------------------------ */

/* In a place beside the vCPU: its EnableLPIs is 0. */
#define IRQ_PLACE_HELD (UINT64_C(1) << 16)

/* @place is a vCPU index or IRQ_NO_TARGET, with IRQ_PLACE_HELD or not. */
static inline irq_word irq_lpi_place(irq_word w, uint64_t place)
{
	return irq_set_target(w & ~IRQ_HELD, place & 0xffff) | (place & IRQ_PLACE_HELD ? IRQ_HELD : 0);
}

/* A translation leads here now. */
static inline irq_word irq_lpi_map(irq_word w, uint64_t place)
{
	return irq_lpi_place(w | IRQ_MAPPED, place);
}

/* No translation leads here any more: what is pending goes, and a signal that is on its way with the old generation fails. */
static inline irq_word irq_lpi_unmap(irq_word w, uint64_t unused)
{
	(void)unused;
	w = irq_lpi_place(w & ~(IRQ_MAPPED | IRQ_PENDING), IRQ_NO_TARGET);
	return w + IRQ_GENERATION_ONE; /* the uppermost field: it wraps by itself */
}

/* Turn signals away that are on their way, and keep the mapping. */
static inline irq_word irq_lpi_renew(irq_word w, uint64_t unused)
{
	(void)unused;
	return w + IRQ_GENERATION_ONE;
}

/* A byte of the LPI configuration table: priority in the upper bits, bit 0 enables. */
static inline irq_word irq_lpi_configure(irq_word w, uint64_t property)
{
	w = irq_set_priority(w, property);
	return (property & 1) ? w | IRQ_ENABLED : w & ~IRQ_ENABLED;
}

/* Reset: mapped nowhere, and not configured. */
static inline irq_word irq_lpi_reset(irq_word w, uint64_t unused)
{
	return irq_lpi_configure(irq_lpi_unmap(w, unused), 0);
}

/* What irq_lpi_restore() makes of an LPI: @bits are IRQ_PENDING, IRQ_ENABLED and IRQ_MAPPED. */
static inline uint64_t irq_lpi_state(uint64_t place, uint8_t priority, irq_word bits)
{
	return place | (uint64_t)priority << 24 | bits << 32;
}

/* As an image has it, which has no generation. */
static inline irq_word irq_lpi_restore(irq_word w, uint64_t state)
{
	const irq_word bits = IRQ_PENDING | IRQ_ENABLED | IRQ_MAPPED;

	w = (w & ~bits) | (state >> 32 & bits);
	return irq_lpi_place(irq_set_priority(w, state >> 24 & 0xff), state & (IRQ_PLACE_HELD | 0xffff));
}

/* EnableLPIs was cleared: the pending state has gone to the table in memory. */
static inline irq_word irq_lpi_hold(irq_word w, uint64_t unused)
{
	(void)unused;
	return (w | IRQ_HELD) & ~IRQ_PENDING;
}

/* ---- One interrupt ---------------------------------------------------------- */

/*
 * A cache line of its own: a signaller of one interrupt does not disturb its
 * neighbour's. Its memory lives as long as the controller.
 */
struct irq {
	_Alignas(CACHE_LINE) _Atomic irq_word word;
	uint32_t intid;
	uint32_t number;            /* its bit in the candidate maps: 0-1023 as the INTID, then the LPIs */
	_Atomic uint64_t irouter;   /* SPIs: GICD_IROUTER as the guest wrote it; written under the configuration lock */
	_Atomic uint32_t resampled; /* SPIs: sources that a deactivation lowers; see deactivate.h */
	uint32_t mappings;          /* LPIs: translations that lead here, under the configuration lock */
};

_Static_assert(sizeof(struct irq) == CACHE_LINE, "one interrupt, one cache line");

#endif /* VGIC_IRQ_H */
