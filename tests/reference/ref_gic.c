/* SPDX-License-Identifier: MIT */
/*
 * The naive reference GICv3: see ref_gic.h for what it is for.
 *
 * Order of the file: the interrupts and what decides their delivery, the CPU
 * interface, SGIs, lines, then the two register frames and how they are decoded.
 * Nothing is cached, except where a 1-of-N interrupt has been sent.
 */
#include "ref_gic.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "gic_arch.h"
#include "its_arch.h"
#include "ref_irq.h"
#include "ref_its.h"

#define GROUP0 0u
#define GROUP1 1u

/* The source of a level-sensitive SPI's line that GICD_SETSPI_NSR raises: beyond those that the VMM has. */
#define SOURCE_MESSAGE 31u

struct vcpu {
	uint32_t id;
	uint64_t affinity;
	bool online;
	bool last;

	/* Redistributor */
	struct irq irqs[GIC_NUM_PRIVATE];
	uint32_t dpg; /* GICR_CTLR.DPG*, in place */
	uint32_t statusr;
	bool asleep;

	/* CPU interface; arrays are by group */
	uint8_t pmr;
	unsigned bpr[2];
	uint32_t apr[2];
	bool igrpen[2];
	bool cbpr;
	bool eoimode;
};

struct ref_gic {
	struct vgic_config config;
	struct vgic_redist_region *regions;
	uint32_t *order; /* whose each frame is: a vCPU index or REF_NO_VCPU */
	uint32_t num_frames;
	uint32_t num_vcpus;
	struct vcpu *vcpus;

	bool enable_grp0; /* GICD_CTLR */
	bool enable_grp1;
	uint32_t statusr;
	struct irq spis[GIC_END_SPI]; /* by INTID */
	uint64_t irouter[GIC_END_SPI];
	uint32_t choice[GIC_END_SPI]; /* 1-of-N: the vCPU that it was sent to */

	struct ref_lpis *lpis; /* NULL without LPIs */
	struct ref_stats stats;
};

static bool has_feature(const struct ref_gic *ref, uint32_t feature)
{
	return (ref->config.features & feature) != 0;
}

static bool is_kvm(const struct ref_gic *ref)
{
	return ref->config.profile == VGIC_PROFILE_KVM;
}

/* One past the last SPI that this GIC has. */
static uint32_t end_of_spis(const struct ref_gic *ref)
{
	return GIC_FIRST_SPI + ref->config.num_spis;
}

static void count_error(struct ref_gic *ref, enum vgic_guest_error_kind kind)
{
	ref->stats.guest_errors[kind]++;
}

static uint32_t find_affinity(const struct ref_gic *ref, uint64_t affinity)
{
	for (uint32_t i = 0; i < ref->num_vcpus; i++) {
		if (ref->vcpus[i].affinity == affinity)
			return i;
	}
	return REF_NO_VCPU;
}

/* ---- Interrupts ---- */

/* The interrupt that @vcpu knows as @intid; NULL if there is none. With REF_NO_VCPU only SPIs are found. */
static struct irq *find_irq(struct ref_gic *ref, uint32_t vcpu, uint32_t intid)
{
	if (intid < GIC_NUM_PRIVATE)
		return vcpu == REF_NO_VCPU ? NULL : &ref->vcpus[vcpu].irqs[intid];
	if (intid < GIC_END_SPI && ref->spis[intid].exists)
		return &ref->spis[intid];
	if (intid >= GIC_FIRST_LPI && ref->lpis != NULL && vcpu != REF_NO_VCPU)
		return ref_lpi(ref->lpis, intid);
	return NULL;
}

static const struct irq *find_irq_const(const struct ref_gic *ref, uint32_t vcpu, uint32_t intid)
{
	return find_irq((struct ref_gic *)ref, vcpu, intid);
}

static bool irq_is_pending(const struct irq *irq)
{
	return irq->latch || (!irq->edge && irq->sources != 0);
}

static void irq_reset(const struct ref_gic *ref, struct irq *irq, uint32_t intid)
{
	const bool is_sgi = intid < GIC_FIRST_PPI;

	irq->exists = true;
	irq->latch = false;
	irq->active = false;
	/* SPIs begin edge-triggered in KVM. */
	irq->edge = is_sgi || (is_kvm(ref) && intid >= GIC_FIRST_SPI);
	irq->enabled = is_sgi && is_kvm(ref);
	irq->group = is_kvm(ref) ? GROUP1 : GROUP0;
	irq->priority = 0;
	irq->sources &= ~(1u << SOURCE_MESSAGE);
}

static void irq_drive(struct irq *irq, unsigned source, bool level)
{
	const bool was_high = irq->sources != 0;

	if (level)
		irq->sources |= 1u << source;
	else
		irq->sources &= ~(1u << source);
	if (irq->edge && !was_high && irq->sources != 0)
		irq->latch = true;
}

static void irq_deactivate(struct ref_gic *ref, struct irq *irq)
{
	irq->active = false;
	if (!irq->edge)
		ref->stats.deactivations++;
}

/* ---- Delivery ---- */

static bool dist_enables(const struct ref_gic *ref, unsigned group)
{
	/* KVM has one switch for both groups. */
	if (is_kvm(ref))
		return ref->enable_grp1;
	return group == GROUP0 ? ref->enable_grp0 : ref->enable_grp1;
}

/* Everything that decides the delivery and does not depend on the vCPU. */
static bool irq_is_deliverable(const struct ref_gic *ref, const struct irq *irq)
{
	return irq_is_pending(irq) && irq->enabled && !irq->active && dist_enables(ref, irq->group);
}

static bool spi_is_one_of_n(const struct ref_gic *ref, uint32_t intid)
{
	return intid >= GIC_FIRST_SPI && (ref->irouter[intid] & GICD_IROUTER_IRM) != 0;
}

bool ref_is_one_of_n(const struct ref_gic *ref, uint32_t intid)
{
	const struct irq *irq = find_irq_const(ref, REF_NO_VCPU, intid);

	return irq != NULL && spi_is_one_of_n(ref, intid) && irq_is_deliverable(ref, irq);
}

bool ref_participates(const struct ref_gic *ref, uint32_t vcpu, uint32_t intid)
{
	const struct vcpu *v = &ref->vcpus[vcpu];
	const unsigned group = ref->spis[intid].group;

	return v->online && !v->asleep && v->igrpen[group] &&
	       !(v->dpg & (group == GROUP0 ? GICR_CTLR_DPG0 : GICR_CTLR_DPG1NS));
}

uint32_t ref_choice(const struct ref_gic *ref, uint32_t intid)
{
	const uint32_t chosen = ref->choice[intid];

	if (chosen != REF_NO_VCPU && ref_participates(ref, chosen, intid))
		return chosen;
	for (uint32_t i = 0; i < ref->num_vcpus; i++) {
		if (ref_participates(ref, i, intid))
			return i;
	}
	return REF_NO_VCPU;
}

bool ref_adopt_choice(struct ref_gic *ref, uint32_t intid, uint32_t vcpu)
{
	if (!ref_is_one_of_n(ref, intid) || !ref_participates(ref, vcpu, intid))
		return false;
	ref->choice[intid] = vcpu;
	return true;
}

static bool irq_is_routed_to(const struct ref_gic *ref, uint32_t intid, uint32_t vcpu)
{
	if (intid < GIC_FIRST_SPI)
		return true;
	if (intid >= GIC_FIRST_LPI)
		return ref_lpi_is_at(ref->lpis, intid, vcpu);
	if (spi_is_one_of_n(ref, intid))
		return ref_choice(ref, intid) == vcpu;
	return ref->vcpus[vcpu].affinity == (ref->irouter[intid] & (GICD_IROUTER_AFF012 | GICD_IROUTER_AFF3));
}

/* Could it be the highest-priority pending interrupt of @vcpu? */
static bool irq_is_eligible(const struct ref_gic *ref, uint32_t vcpu, uint32_t intid)
{
	const struct irq *irq = find_irq_const(ref, vcpu, intid);
	const struct vcpu *v = &ref->vcpus[vcpu];

	return irq != NULL && irq_is_deliverable(ref, irq) && v->online && v->igrpen[irq->group] &&
	       irq_is_routed_to(ref, intid, vcpu);
}

bool ref_ranks_at_least(const struct ref_gic *ref, uint32_t vcpu, uint32_t intid, uint32_t other)
{
	const struct irq *a = find_irq_const(ref, vcpu, intid);
	const struct irq *b = find_irq_const(ref, vcpu, other);

	if (a->priority != b->priority)
		return a->priority < b->priority;
	return a->group <= b->group;
}

/* The same of @best and all LPIs. */
static uint32_t find_hppi_with_lpis(const struct ref_gic *ref, uint32_t vcpu, uint64_t hint, uint32_t best)
{
	uint32_t intid = GIC_FIRST_LPI;

	for (; ref->lpis != NULL && (intid = ref_lpis_next_pending(ref->lpis, intid)) != 0; intid++) {
		if (!irq_is_eligible(ref, vcpu, intid))
			continue;
		if (best == GIC_SPURIOUS || !ref_ranks_at_least(ref, vcpu, best, intid) ||
		    (intid == hint && ref_ranks_at_least(ref, vcpu, intid, best)))
			best = intid;
	}
	return best;
}

/* The highest-priority pending interrupt; among equals @hint if it is one of them; GIC_SPURIOUS if there is none. */
static uint32_t find_hppi(const struct ref_gic *ref, uint32_t vcpu, uint64_t hint)
{
	uint32_t best = GIC_SPURIOUS;

	for (uint32_t intid = 0; intid < end_of_spis(ref); intid++) {
		if (!irq_is_eligible(ref, vcpu, intid))
			continue;
		if (best == GIC_SPURIOUS || !ref_ranks_at_least(ref, vcpu, best, intid) ||
		    (intid == hint && ref_ranks_at_least(ref, vcpu, intid, best)))
			best = intid;
	}
	return find_hppi_with_lpis(ref, vcpu, hint, best);
}

/* ---- CPU interface: priorities ---- */

static uint8_t group_mask(const struct vcpu *v, unsigned group)
{
	/* The highest bit of the subpriority is BPR0, or BPR1 - 1. */
	const unsigned subpriority_bits = group == GROUP0 || v->cbpr ? v->bpr[GROUP0] + 1 : v->bpr[GROUP1];

	return (uint8_t)(0xffu << subpriority_bits);
}

static bool has_active_priority(const struct vcpu *v)
{
	return v->apr[GROUP0] != 0 || v->apr[GROUP1] != 0;
}

/* The number of the lowest set bit is the highest priority; 32 if there is none. */
static unsigned highest_active(uint32_t apr)
{
	unsigned n = 0;

	while (n < 32 && !(apr & (1u << n)))
		n++;
	return n;
}

static unsigned running_priority(const struct vcpu *v)
{
	const unsigned n0 = highest_active(v->apr[GROUP0]);
	const unsigned n1 = highest_active(v->apr[GROUP1]);
	const unsigned n = n0 < n1 ? n0 : n1;

	return n == 32 ? ICC_RPR_IDLE : n << 3;
}

static bool irq_is_signalled(const struct ref_gic *ref, uint32_t vcpu, uint32_t intid)
{
	const struct vcpu *v = &ref->vcpus[vcpu];
	const struct irq *irq = find_irq_const(ref, vcpu, intid);

	if (irq == NULL)
		return false;
	return irq->priority < v->pmr && (irq->priority & group_mask(v, irq->group)) < running_priority(v);
}

unsigned ref_lines(const struct ref_gic *ref, uint32_t vcpu)
{
	const uint32_t intid = find_hppi(ref, vcpu, GIC_SPURIOUS);

	if (!irq_is_signalled(ref, vcpu, intid))
		return 0;
	return find_irq_const(ref, vcpu, intid)->group == GROUP0 ? VGIC_LINE_FIQ : VGIC_LINE_IRQ;
}

bool ref_is_blocked(const struct ref_gic *ref, uint32_t vcpu)
{
	const uint32_t hppi = find_hppi(ref, vcpu, GIC_SPURIOUS);

	if (hppi == GIC_SPURIOUS || irq_is_signalled(ref, vcpu, hppi))
		return false;
	for (uint32_t intid = 0; intid < end_of_spis(ref); intid++) {
		if (irq_is_eligible(ref, vcpu, intid) && irq_is_signalled(ref, vcpu, intid))
			return true;
	}
	return false;
}

static uint32_t acknowledge(struct ref_gic *ref, uint32_t vcpu, unsigned group, uint64_t hint)
{
	struct vcpu *v = &ref->vcpus[vcpu];
	const uint32_t intid = find_hppi(ref, vcpu, hint);
	struct irq *irq = find_irq(ref, vcpu, intid);

	if (irq == NULL || irq->group != group || !irq_is_signalled(ref, vcpu, intid)) {
		ref->stats.spurious++;
		if (irq != NULL && irq_is_signalled(ref, vcpu, intid))
			ref->stats.cross_group++;
		else if (irq != NULL && irq->group == group)
			ref->stats.outranked++;
		return GIC_SPURIOUS;
	}

	ref->stats.acknowledges++;
	if (has_active_priority(v))
		ref->stats.preemptions++;
	irq->latch = false;
	/* LPIs have no active state. */
	irq->active = intid < GIC_FIRST_LPI;
	v->apr[group] |= 1u << ((irq->priority & group_mask(v, group)) >> 3);
	return intid;
}

static uint32_t highest_pending(const struct ref_gic *ref, uint32_t vcpu, unsigned group, uint64_t hint)
{
	const uint32_t intid = find_hppi(ref, vcpu, hint);
	const struct irq *irq = find_irq_const(ref, vcpu, intid);

	return irq != NULL && irq->group == group ? intid : GIC_SPURIOUS;
}

/* Deactivate, on behalf of @vcpu; @unexpected is what to count if there is nothing to deactivate. */
static void deactivate(struct ref_gic *ref, uint32_t vcpu, uint32_t intid, enum vgic_guest_error_kind unexpected)
{
	struct irq *irq = find_irq(ref, vcpu, intid);

	if (irq == NULL || !irq->active)
		count_error(ref, unexpected);
	else
		irq_deactivate(ref, irq);
}

static void end_of_interrupt(struct ref_gic *ref, uint32_t vcpu, unsigned group, uint32_t intid)
{
	struct vcpu *v = &ref->vcpus[vcpu];
	const unsigned n0 = highest_active(v->apr[GROUP0]);
	const unsigned n1 = highest_active(v->apr[GROUP1]);
	const unsigned owner = n0 <= n1 ? GROUP0 : GROUP1;

	if (intid >= GIC_END_SPI && intid < GIC_FIRST_LPI)
		return;
	if (!has_active_priority(v) || owner != group) {
		count_error(ref, VGIC_GUEST_EOI_UNEXPECTED);
		return;
	}
	v->apr[group] &= v->apr[group] - 1;
	/* LPIs have no active state, and what does not exist has none either. */
	if (!v->eoimode && intid < GIC_FIRST_LPI && find_irq(ref, vcpu, intid) != NULL)
		deactivate(ref, vcpu, intid, VGIC_GUEST_EOI_UNEXPECTED);
}

static void write_dir(struct ref_gic *ref, uint32_t vcpu, uint32_t intid)
{
	if (!ref->vcpus[vcpu].eoimode)
		count_error(ref, VGIC_GUEST_DIR_UNEXPECTED);
	else
		deactivate(ref, vcpu, intid, VGIC_GUEST_DIR_UNEXPECTED);
}

void ref_vcpu_reset(struct ref_gic *ref, uint32_t vcpu)
{
	struct vcpu *v = &ref->vcpus[vcpu];

	v->pmr = 0;
	v->bpr[GROUP0] = GIC_MIN_BPR0;
	v->bpr[GROUP1] = GIC_MIN_BPR1;
	for (unsigned group = 0; group < 2; group++) {
		v->apr[group] = 0;
		v->igrpen[group] = false;
	}
	v->cbpr = false;
	v->eoimode = false;
}

/* ---- CPU interface: SGIs ---- */

static void make_sgi_pending(struct ref_gic *ref, uint32_t vcpu, uint32_t intid, bool only_group0)
{
	struct irq *irq = &ref->vcpus[vcpu].irqs[intid];

	if (!only_group0 || irq->group == GROUP0)
		irq->latch = true;
}

static void send_sgi(struct ref_gic *ref, uint32_t sender, uint64_t value, bool only_group0)
{
	const uint32_t intid = (value >> ICC_SGIR_INTID_SHIFT) & 15;
	const unsigned range = has_feature(ref, VGIC_FEATURE_RSS) ? (value >> ICC_SGIR_RS_SHIFT) & 15 : 0;
	const uint64_t aff1 = (value >> ICC_SGIR_AFF1_SHIFT) & 0xff;
	const uint64_t aff2 = (value >> ICC_SGIR_AFF2_SHIFT) & 0xff;
	const uint64_t aff3 = (value >> ICC_SGIR_AFF3_SHIFT) & 0xff;
	bool missed = false;

	if (value & ICC_SGIR_IRM) {
		for (uint32_t i = 0; i < ref->num_vcpus; i++) {
			if (i != sender)
				make_sgi_pending(ref, i, intid, only_group0);
		}
		return;
	}
	for (unsigned bit = 0; bit < 16; bit++) {
		const uint64_t affinity = aff3 << 32 | aff2 << 16 | aff1 << 8 | (range * 16 + bit);
		uint32_t target;

		if (!(value & (1ull << bit)))
			continue;
		target = find_affinity(ref, affinity);
		if (target == REF_NO_VCPU)
			missed = true;
		else
			make_sgi_pending(ref, target, intid, only_group0);
	}
	if (missed)
		count_error(ref, VGIC_GUEST_SGI_NO_TARGET);
}

/* ---- CPU interface: registers ---- */

static uint64_t read_icc_ctlr(const struct ref_gic *ref, const struct vcpu *v)
{
	uint64_t value = 4u << ICC_CTLR_PRIBITS_SHIFT;

	if (v->cbpr)
		value |= ICC_CTLR_CBPR;
	if (v->eoimode)
		value |= ICC_CTLR_EOIMODE;
	if (has_feature(ref, VGIC_FEATURE_ICC_ID24) ||
	    (has_feature(ref, VGIC_FEATURE_LPIS) && ref->config.lpi_id_bits > 16))
		value |= 1u << ICC_CTLR_IDBITS_SHIFT;
	if (has_feature(ref, VGIC_FEATURE_A3V) || has_feature(ref, VGIC_FEATURE_ICC_A3V))
		value |= ICC_CTLR_A3V;
	if (has_feature(ref, VGIC_FEATURE_RSS))
		value |= ICC_CTLR_RSS;
	return value;
}

static uint64_t read_bpr1(const struct vcpu *v)
{
	if (!v->cbpr)
		return v->bpr[GROUP1];
	return v->bpr[GROUP0] == 7 ? 7 : v->bpr[GROUP0] + 1;
}

static void write_bpr(struct vcpu *v, unsigned group, uint64_t value)
{
	const unsigned minimum = group == GROUP0 ? GIC_MIN_BPR0 : GIC_MIN_BPR1;
	const unsigned bpr = value & 7;

	if (group == GROUP1 && v->cbpr)
		return;
	v->bpr[group] = bpr < minimum ? minimum : bpr;
}

static int undefined(struct ref_gic *ref)
{
	count_error(ref, VGIC_GUEST_ICC_UNDEFINED);
	return -EACCES;
}

/* ICC_AP0R1-3 and ICC_AP1R1-3: there only with more than five bits of priority. */
static bool is_absent_apr(uint32_t reg)
{
	for (uint32_t n = 1; n <= 3; n++) {
		if (reg == VGIC_ICC_AP0R0_EL1 + n || reg == VGIC_ICC_AP1R0_EL1 + n)
			return true;
	}
	return false;
}

int ref_icc_read(struct ref_gic *ref, uint32_t vcpu, uint32_t reg, uint64_t hint, uint64_t *value)
{
	const struct vcpu *v = &ref->vcpus[vcpu];

	if (is_absent_apr(reg))
		return undefined(ref);

	switch (reg) {
	case VGIC_ICC_IAR0_EL1:
		*value = acknowledge(ref, vcpu, GROUP0, hint);
		return 0;
	case VGIC_ICC_IAR1_EL1:
		*value = acknowledge(ref, vcpu, GROUP1, hint);
		return 0;
	case VGIC_ICC_HPPIR0_EL1:
		*value = highest_pending(ref, vcpu, GROUP0, hint);
		return 0;
	case VGIC_ICC_HPPIR1_EL1:
		*value = highest_pending(ref, vcpu, GROUP1, hint);
		return 0;
	case VGIC_ICC_PMR_EL1:
		*value = v->pmr;
		return 0;
	case VGIC_ICC_RPR_EL1:
		*value = running_priority(v);
		return 0;
	case VGIC_ICC_BPR0_EL1:
		*value = v->bpr[GROUP0];
		return 0;
	case VGIC_ICC_BPR1_EL1:
		*value = read_bpr1(v);
		return 0;
	case VGIC_ICC_AP0R0_EL1:
		*value = v->apr[GROUP0];
		return 0;
	case VGIC_ICC_AP1R0_EL1:
		*value = v->apr[GROUP1];
		return 0;
	case VGIC_ICC_CTLR_EL1:
		*value = read_icc_ctlr(ref, v);
		return 0;
	case VGIC_ICC_SRE_EL1:
		*value = 7;
		return 0;
	case VGIC_ICC_IGRPEN0_EL1:
		*value = v->igrpen[GROUP0];
		return 0;
	case VGIC_ICC_IGRPEN1_EL1:
		*value = v->igrpen[GROUP1];
		return 0;
	case VGIC_ICC_EOIR0_EL1:
	case VGIC_ICC_EOIR1_EL1:
	case VGIC_ICC_DIR_EL1:
	case VGIC_ICC_SGI0R_EL1:
	case VGIC_ICC_SGI1R_EL1:
	case VGIC_ICC_ASGI1R_EL1:
		return undefined(ref);
	default:
		return -ENOENT;
	}
}

int ref_icc_write(struct ref_gic *ref, uint32_t vcpu, uint32_t reg, uint64_t value)
{
	struct vcpu *v = &ref->vcpus[vcpu];

	if (is_absent_apr(reg))
		return undefined(ref);

	switch (reg) {
	case VGIC_ICC_EOIR0_EL1:
		end_of_interrupt(ref, vcpu, GROUP0, value & ICC_INTID_MASK);
		return 0;
	case VGIC_ICC_EOIR1_EL1:
		end_of_interrupt(ref, vcpu, GROUP1, value & ICC_INTID_MASK);
		return 0;
	case VGIC_ICC_DIR_EL1:
		write_dir(ref, vcpu, value & ICC_INTID_MASK);
		return 0;
	case VGIC_ICC_SGI1R_EL1:
		send_sgi(ref, vcpu, value, false);
		return 0;
	case VGIC_ICC_SGI0R_EL1:
	case VGIC_ICC_ASGI1R_EL1:
		send_sgi(ref, vcpu, value, true);
		return 0;
	case VGIC_ICC_PMR_EL1:
		v->pmr = value & GIC_PRIORITY_MASK;
		return 0;
	case VGIC_ICC_BPR0_EL1:
		write_bpr(v, GROUP0, value);
		return 0;
	case VGIC_ICC_BPR1_EL1:
		write_bpr(v, GROUP1, value);
		return 0;
	case VGIC_ICC_AP0R0_EL1:
		v->apr[GROUP0] = (uint32_t)value;
		return 0;
	case VGIC_ICC_AP1R0_EL1:
		v->apr[GROUP1] = (uint32_t)value;
		return 0;
	case VGIC_ICC_CTLR_EL1:
		v->cbpr = (value & ICC_CTLR_CBPR) != 0;
		v->eoimode = (value & ICC_CTLR_EOIMODE) != 0;
		return 0;
	case VGIC_ICC_SRE_EL1:
		return 0;
	case VGIC_ICC_IGRPEN0_EL1:
		v->igrpen[GROUP0] = value & 1;
		return 0;
	case VGIC_ICC_IGRPEN1_EL1:
		v->igrpen[GROUP1] = value & 1;
		return 0;
	case VGIC_ICC_IAR0_EL1:
	case VGIC_ICC_IAR1_EL1:
	case VGIC_ICC_HPPIR0_EL1:
	case VGIC_ICC_HPPIR1_EL1:
	case VGIC_ICC_RPR_EL1:
		return undefined(ref);
	default:
		return -ENOENT;
	}
}

/* ---- Lines ---- */

int ref_set_spi(struct ref_gic *ref, uint32_t intid, unsigned source, bool level)
{
	struct irq *irq = find_irq(ref, REF_NO_VCPU, intid);

	if (irq == NULL || source >= VGIC_NUM_LINE_SOURCES)
		return -EINVAL;
	irq_drive(irq, source, level);
	return 0;
}

int ref_set_ppi(struct ref_gic *ref, uint32_t vcpu, uint32_t intid, unsigned source, bool level)
{
	if (intid < GIC_FIRST_PPI || intid >= GIC_FIRST_SPI || source >= VGIC_NUM_LINE_SOURCES)
		return -EINVAL;
	irq_drive(&ref->vcpus[vcpu].irqs[intid], source, level);
	return 0;
}

uint32_t ref_line_sources(const struct ref_gic *ref, uint32_t vcpu, uint32_t intid, bool *edge)
{
	const struct irq *irq = intid < GIC_FIRST_SPI ? &ref->vcpus[vcpu].irqs[intid] : &ref->spis[intid];

	*edge = irq->edge;
	return irq->sources;
}

void ref_forget_message(struct ref_gic *ref, uint32_t intid)
{
	ref->spis[intid].sources &= ~(1u << SOURCE_MESSAGE);
}

int ref_pulse_spi(struct ref_gic *ref, uint32_t intid)
{
	struct irq *irq = find_irq(ref, REF_NO_VCPU, intid);

	if (irq == NULL)
		return -EINVAL;
	if (!irq->edge)
		return 0;
	irq->latch = true;
	return 1;
}

void ref_set_online(struct ref_gic *ref, uint32_t vcpu, bool online)
{
	ref->vcpus[vcpu].online = online;
}

/* ---- Register frames ---- */

enum reg_name {
	REG_DIST_CTLR,
	REG_DIST_TYPER,
	REG_IIDR,
	REG_ZERO, /* reads as zero; a write is an error or not, as the access says */
	REG_STATUSR,
	REG_SETSPI,
	REG_CLRSPI,
	REG_IGROUPR,
	REG_ISENABLER,
	REG_ICENABLER,
	REG_ISPENDR,
	REG_ICPENDR,
	REG_ISACTIVER,
	REG_ICACTIVER,
	REG_IPRIORITYR,
	REG_ICFGR,
	REG_IROUTER,
	REG_ID,
	REG_REDIST_CTLR,
	REG_REDIST_TYPER,
	REG_WAKER,
	REG_LPI, /* RAZ/WI without LPIs */
};

enum reg_access { ACCESS_RW, ACCESS_RO, ACCESS_WO, ACCESS_NONE /* defined as RAZ/WI */ };

/* The registers of @name lie in [first, end) of the frame. Widths are the allowed ones, ORed. */
struct reg {
	uint32_t first;
	uint32_t end;
	unsigned widths;
	enum reg_access access;
	enum reg_name name;
	uint32_t needs; /* feature without which there is no register here */
};

#define W8  1u
#define W16 2u
#define W32 4u
#define W64 8u

static const struct reg dist_regs[] = {
	{ GICD_CTLR, 0x4, W32, ACCESS_RW, REG_DIST_CTLR, 0 },
	{ GICD_TYPER, 0x8, W32, ACCESS_RO, REG_DIST_TYPER, 0 },
	{ GICD_IIDR, 0xc, W32, ACCESS_RO, REG_IIDR, 0 },
	{ GICD_TYPER2, 0x10, W32, ACCESS_RO, REG_ZERO, 0 },
	{ GICD_STATUSR, 0x14, W32, ACCESS_RW, REG_STATUSR, 0 },
	/* The architecture: 16-bit accesses to the low half must be supported. */
	{ GICD_SETSPI_NSR, 0x44, W16 | W32, ACCESS_WO, REG_SETSPI, VGIC_FEATURE_MBIS },
	{ GICD_CLRSPI_NSR, 0x4c, W16 | W32, ACCESS_WO, REG_CLRSPI, VGIC_FEATURE_MBIS },
	{ GICD_SETSPI_SR, 0x54, W16 | W32, ACCESS_NONE, REG_ZERO, 0 },
	{ GICD_CLRSPI_SR, 0x5c, W16 | W32, ACCESS_NONE, REG_ZERO, 0 },
	{ GICD_IGROUPR, 0x100, W32, ACCESS_RW, REG_IGROUPR, 0 },
	{ GICD_ISENABLER, 0x180, W32, ACCESS_RW, REG_ISENABLER, 0 },
	{ GICD_ICENABLER, 0x200, W32, ACCESS_RW, REG_ICENABLER, 0 },
	{ GICD_ISPENDR, 0x280, W32, ACCESS_RW, REG_ISPENDR, 0 },
	{ GICD_ICPENDR, 0x300, W32, ACCESS_RW, REG_ICPENDR, 0 },
	{ GICD_ISACTIVER, 0x380, W32, ACCESS_RW, REG_ISACTIVER, 0 },
	{ GICD_ICACTIVER, 0x400, W32, ACCESS_RW, REG_ICACTIVER, 0 },
	{ GICD_IPRIORITYR, 0x7fc, W8 | W32, ACCESS_RW, REG_IPRIORITYR, 0 },
	{ GICD_ITARGETSR, 0xbfc, W8 | W32, ACCESS_NONE, REG_ZERO, 0 },
	{ GICD_ICFGR, 0xd00, W32, ACCESS_RW, REG_ICFGR, 0 },
	{ GICD_IGRPMODR, 0xd80, W32, ACCESS_NONE, REG_ZERO, 0 },
	{ GICD_NSACR, 0xf00, W32, ACCESS_NONE, REG_ZERO, 0 },
	{ GICD_SGIR, 0xf04, W32, ACCESS_NONE, REG_ZERO, 0 },
	{ GICD_CPENDSGIR, 0xf20, W8 | W32, ACCESS_NONE, REG_ZERO, 0 },
	{ GICD_SPENDSGIR, 0xf30, W8 | W32, ACCESS_NONE, REG_ZERO, 0 },
	/* IROUTER has no registers for INTIDs 0 to 31, and none above 1019. */
	{ GICD_IROUTER + 8 * GIC_FIRST_SPI, GICD_IROUTER + 8 * GIC_END_SPI, W32 | W64, ACCESS_RW, REG_IROUTER, 0 },
	{ GIC_ID_FIRST, 0x10000, W32, ACCESS_RO, REG_ID, 0 },
};

static const struct reg redist_regs[] = {
	{ GICR_CTLR, 0x4, W32, ACCESS_RW, REG_REDIST_CTLR, 0 },
	{ GICR_IIDR, 0x8, W32, ACCESS_RO, REG_IIDR, 0 },
	{ GICR_TYPER, 0x10, W32 | W64, ACCESS_RO, REG_REDIST_TYPER, 0 },
	{ GICR_STATUSR, 0x14, W32, ACCESS_RW, REG_STATUSR, 0 },
	{ GICR_WAKER, 0x18, W32, ACCESS_RW, REG_WAKER, 0 },
	{ GICR_SETLPIR, 0x48, W32 | W64, ACCESS_RW, REG_LPI, 0 },
	{ GICR_CLRLPIR, 0x50, W32 | W64, ACCESS_RW, REG_LPI, 0 },
	{ GICR_PROPBASER, 0x78, W32 | W64, ACCESS_RW, REG_LPI, 0 },
	{ GICR_PENDBASER, 0x80, W32 | W64, ACCESS_RW, REG_LPI, 0 },
	{ GICR_INVLPIR, 0xa8, W32 | W64, ACCESS_RW, REG_LPI, 0 },
	{ GICR_INVALLR, 0xb8, W32 | W64, ACCESS_RW, REG_LPI, 0 },
	{ GICR_SYNCR, 0xc4, W32, ACCESS_NONE, REG_ZERO, 0 },
	{ GIC_ID_FIRST, 0x10000, W32, ACCESS_RO, REG_ID, 0 },
	{ GICR_IGROUPR0, GICR_IGROUPR0 + 4, W32, ACCESS_RW, REG_IGROUPR, 0 },
	{ GICR_ISENABLER0, GICR_ISENABLER0 + 4, W32, ACCESS_RW, REG_ISENABLER, 0 },
	{ GICR_ICENABLER0, GICR_ICENABLER0 + 4, W32, ACCESS_RW, REG_ICENABLER, 0 },
	{ GICR_ISPENDR0, GICR_ISPENDR0 + 4, W32, ACCESS_RW, REG_ISPENDR, 0 },
	{ GICR_ICPENDR0, GICR_ICPENDR0 + 4, W32, ACCESS_RW, REG_ICPENDR, 0 },
	{ GICR_ISACTIVER0, GICR_ISACTIVER0 + 4, W32, ACCESS_RW, REG_ISACTIVER, 0 },
	{ GICR_ICACTIVER0, GICR_ICACTIVER0 + 4, W32, ACCESS_RW, REG_ICACTIVER, 0 },
	{ GICR_IPRIORITYR, GICR_IPRIORITYR + 32, W8 | W32, ACCESS_RW, REG_IPRIORITYR, 0 },
	{ GICR_ICFGR0, GICR_ICFGR0 + 4, W32, ACCESS_RW, REG_ICFGR, 0 },
	{ GICR_ICFGR1, GICR_ICFGR1 + 4, W32, ACCESS_RW, REG_ICFGR, 0 },
	{ GICR_IGRPMODR0, GICR_IGRPMODR0 + 4, W32, ACCESS_NONE, REG_ZERO, 0 },
	{ GICR_NSACR, GICR_NSACR + 4, W32, ACCESS_NONE, REG_ZERO, 0 },
};

/* An access that has been found to be a legal one of a register. */
struct access {
	uint32_t vcpu; /* whose redistributor; REF_NO_VCPU: the distributor */
	const struct reg *reg;
	uint32_t offset; /* in the frame */
	uint32_t delta;  /* from the first register of that name */
	unsigned width;
};

static const struct reg *find_reg(const struct ref_gic *ref, uint32_t vcpu, uint32_t offset)
{
	const struct reg *regs = vcpu == REF_NO_VCPU ? dist_regs : redist_regs;
	const size_t num_regs = vcpu == REF_NO_VCPU ? sizeof(dist_regs) / sizeof(dist_regs[0]) :
						      sizeof(redist_regs) / sizeof(redist_regs[0]);

	for (size_t i = 0; i < num_regs; i++) {
		if (offset >= regs[i].first && offset < regs[i].end)
			return regs[i].needs == 0 || has_feature(ref, regs[i].needs) ? &regs[i] : NULL;
	}
	return NULL;
}

static void report(struct ref_gic *ref, uint32_t vcpu, enum vgic_guest_error_kind kind, uint32_t status_bit)
{
	uint32_t *statusr = vcpu == REF_NO_VCPU ? &ref->statusr : &ref->vcpus[vcpu].statusr;

	count_error(ref, kind);
	if (has_feature(ref, VGIC_FEATURE_STATUSR))
		*statusr |= status_bit;
}

/* Find the register and count what is wrong with the access. False: it reads as zero, and a write is ignored. */
static bool decode(struct ref_gic *ref, struct access *a, bool is_write)
{
	const uint32_t reserved_bit = is_write ? GIC_STATUSR_WRD : GIC_STATUSR_RRD;

	a->reg = find_reg(ref, a->vcpu, a->offset);
	if (a->reg == NULL) {
		report(ref, a->vcpu, VGIC_GUEST_MMIO_RESERVED, reserved_bit);
		return false;
	}
	a->delta = a->offset - a->reg->first;
	if (!(a->reg->widths & a->width) || a->offset % a->width != 0 || (a->width == 2 && a->offset % 4 != 0)) {
		report(ref, a->vcpu, VGIC_GUEST_MMIO_WIDTH, reserved_bit);
		return false;
	}
	if (is_write && a->reg->access == ACCESS_RO) {
		report(ref, a->vcpu, VGIC_GUEST_MMIO_READ_ONLY, GIC_STATUSR_WROD);
		return false;
	}
	if (!is_write && a->reg->access == ACCESS_WO) {
		report(ref, a->vcpu, VGIC_GUEST_MMIO_WRITE_ONLY, GIC_STATUSR_RWOD);
		return false;
	}
	return true;
}

/* The INTID of bit 0 of a register with @per_byte interrupts in each byte. */
static uint32_t first_intid(const struct access *a, uint32_t per_byte)
{
	/* In the redistributor ICFGR1 is an entry of its own in the table. */
	if (a->vcpu != REF_NO_VCPU && a->reg->first == GICR_ICFGR1)
		return GIC_FIRST_PPI;
	return a->delta * per_byte;
}

static bool read_irq_bit(const struct irq *irq, enum reg_name name)
{
	switch (name) {
	case REG_IGROUPR:
		return irq->group == GROUP1;
	case REG_ISENABLER:
	case REG_ICENABLER:
		return irq->enabled;
	case REG_ISPENDR:
	case REG_ICPENDR:
		return irq_is_pending(irq);
	default:
		return irq->active;
	}
}

static void write_irq_bit(struct ref_gic *ref, struct irq *irq, enum reg_name name, bool bit)
{
	if (name == REG_IGROUPR)
		irq->group = bit ? GROUP1 : GROUP0;
	if (!bit)
		return;
	switch (name) {
	case REG_ISENABLER:
		irq->enabled = true;
		break;
	case REG_ICENABLER:
		irq->enabled = false;
		break;
	case REG_ISPENDR:
		irq->latch = true;
		break;
	case REG_ICPENDR:
		irq->latch = false;
		break;
	case REG_ISACTIVER:
		irq->active = true;
		break;
	case REG_ICACTIVER:
		if (irq->active)
			irq_deactivate(ref, irq);
		break;
	default:
		break;
	}
}

static uint64_t read_irq_bits(struct ref_gic *ref, const struct access *a)
{
	const uint32_t first = first_intid(a, 8);
	uint64_t value = 0;

	for (uint32_t i = 0; i < 32; i++) {
		const struct irq *irq = find_irq(ref, a->vcpu, first + i);

		if (irq != NULL && read_irq_bit(irq, a->reg->name))
			value |= 1u << i;
	}
	return value;
}

static void write_irq_bits(struct ref_gic *ref, const struct access *a, uint64_t value)
{
	const uint32_t first = first_intid(a, 8);

	for (uint32_t i = 0; i < 32; i++) {
		struct irq *irq = find_irq(ref, a->vcpu, first + i);

		if (irq != NULL)
			write_irq_bit(ref, irq, a->reg->name, (value >> i) & 1);
	}
}

static uint64_t read_priorities(struct ref_gic *ref, const struct access *a)
{
	const uint32_t first = first_intid(a, 1);
	uint64_t value = 0;

	for (uint32_t i = 0; i < a->width; i++) {
		const struct irq *irq = find_irq(ref, a->vcpu, first + i);

		if (irq != NULL)
			value |= (uint64_t)irq->priority << (8 * i);
	}
	return value;
}

static void write_priorities(struct ref_gic *ref, const struct access *a, uint64_t value)
{
	const uint32_t first = first_intid(a, 1);

	for (uint32_t i = 0; i < a->width; i++) {
		struct irq *irq = find_irq(ref, a->vcpu, first + i);

		if (irq != NULL)
			irq->priority = (value >> (8 * i)) & GIC_PRIORITY_MASK;
	}
}

static uint64_t read_icfgr(struct ref_gic *ref, const struct access *a)
{
	const uint32_t first = first_intid(a, 4);
	uint64_t value = 0;

	for (uint32_t i = 0; i < 16; i++) {
		const struct irq *irq = find_irq(ref, a->vcpu, first + i);

		if (irq != NULL && irq->edge)
			value |= 2u << (2 * i);
	}
	return value;
}

static void write_icfgr(struct ref_gic *ref, const struct access *a, uint64_t value)
{
	const uint32_t first = first_intid(a, 4);

	for (uint32_t i = 0; i < 16; i++) {
		struct irq *irq = find_irq(ref, a->vcpu, first + i);

		/* SGIs are edge-triggered: their fields are read-only. So are those of PPIs in KVM. */
		if (irq != NULL && (a->vcpu == REF_NO_VCPU || (first + i >= GIC_FIRST_PPI && !is_kvm(ref))))
			irq->edge = (value >> (2 * i + 1)) & 1;
	}
}

/* A 64-bit register, or the half of it that the access is for. */
static uint64_t read_half(const struct access *a, uint64_t whole)
{
	if (a->width == 8)
		return whole;
	return (uint32_t)(a->offset % 8 == 0 ? whole : whole >> 32);
}

static void write_irouter(struct ref_gic *ref, const struct access *a, uint64_t value)
{
	const uint32_t intid = GIC_FIRST_SPI + a->delta / 8;
	const uint64_t old = ref->irouter[intid];
	uint64_t mask = GICD_IROUTER_AFF012;
	uint64_t route;

	if (!ref->spis[intid].exists)
		return;
	if (has_feature(ref, VGIC_FEATURE_A3V))
		mask |= GICD_IROUTER_AFF3;
	if (has_feature(ref, VGIC_FEATURE_ONE_OF_N))
		mask |= GICD_IROUTER_IRM;

	if (a->width == 8)
		route = value;
	else if (a->offset % 8 == 0)
		route = (old & ~0xffffffffull) | (uint32_t)value;
	else
		route = (old & 0xffffffffull) | value << 32;
	route &= mask;

	ref->irouter[intid] = route;
	if (!(route & GICD_IROUTER_IRM) && find_affinity(ref, route) == REF_NO_VCPU)
		count_error(ref, VGIC_GUEST_ROUTE_NO_TARGET);
}

static uint64_t read_dist_ctlr(const struct ref_gic *ref)
{
	uint64_t value = GICD_CTLR_ARE | GICD_CTLR_DS;

	if (ref->enable_grp0)
		value |= GICD_CTLR_ENABLE_GRP0;
	if (ref->enable_grp1)
		value |= GICD_CTLR_ENABLE_GRP1;
	return value;
}

static uint64_t read_dist_typer(const struct ref_gic *ref)
{
	const uint32_t num_intids = GIC_FIRST_SPI + ref->config.num_spis;
	const uint32_t id_bits = has_feature(ref, VGIC_FEATURE_LPIS) ? ref->config.lpi_id_bits : 10;
	uint64_t value = (num_intids + 31) / 32 - 1;

	value |= (id_bits - 1) << GICD_TYPER_IDBITS_SHIFT;
	if (has_feature(ref, VGIC_FEATURE_MBIS))
		value |= GICD_TYPER_MBIS;
	if (has_feature(ref, VGIC_FEATURE_LPIS))
		value |= GICD_TYPER_LPIS;
	if (has_feature(ref, VGIC_FEATURE_A3V))
		value |= GICD_TYPER_A3V;
	if (has_feature(ref, VGIC_FEATURE_RSS))
		value |= GICD_TYPER_RSS;
	if (!has_feature(ref, VGIC_FEATURE_ONE_OF_N) && !is_kvm(ref))
		value |= GICD_TYPER_NO1N;
	return value;
}

/* KVM shows its revision in the distributor only. */
static uint64_t read_iidr(const struct ref_gic *ref, const struct access *a)
{
	const uint32_t revision = a->vcpu == REF_NO_VCPU ? ref->config.kvm_revision : 0;

	return is_kvm(ref) ? 0x4b00043bu | revision << 12 : 0x76001000u;
}

static uint64_t read_id(const struct ref_gic *ref, const struct access *a)
{
	/* PIDR4 to PIDR7, PIDR0 to PIDR3, CIDR0 to CIDR3 */
	static const uint8_t ids[12] = { 0x44, 0, 0, 0, 0x92, 0xb4, 0x3b, 0, 0x0d, 0xf0, 0x05, 0xb1 };

	if (is_kvm(ref) && a->offset != GIC_PIDR2)
		return 0;
	return ids[a->delta / 4];
}

static uint64_t read_redist_ctlr(const struct ref_gic *ref, const struct vcpu *v)
{
	uint64_t value = v->dpg;

	if (is_kvm(ref) ? ref->config.kvm_revision >= 3 : ref->lpis != NULL)
		value |= GICR_CTLR_CES | GICR_CTLR_IR;
	if (ref->lpis != NULL && ref_lpis_enabled(ref->lpis, (uint32_t)(v - ref->vcpus)))
		value |= GICR_CTLR_ENABLE_LPIS;
	return value;
}

static uint64_t affinity_to_typer(uint64_t affinity)
{
	return (affinity >> 32) << 24 | (affinity & 0xffffff);
}

static uint64_t read_redist_typer(const struct ref_gic *ref, const struct vcpu *v)
{
	uint64_t value = affinity_to_typer(v->affinity) << GICR_TYPER_AFFINITY_SHIFT;

	value |= (uint64_t)v->id << GICR_TYPER_NUMBER_SHIFT;
	if (has_feature(ref, VGIC_FEATURE_LPIS))
		value |= ref_lpis_are_direct(ref->lpis) ? GICR_TYPER_PLPIS | GICR_TYPER_DIRECT_LPI : GICR_TYPER_PLPIS;
	if (has_feature(ref, VGIC_FEATURE_DPGS))
		value |= GICR_TYPER_DPGS;
	if (v->last)
		value |= GICR_TYPER_LAST;
	return value;
}

static void write_redist_ctlr(const struct ref_gic *ref, struct vcpu *v, uint64_t value)
{
	if (has_feature(ref, VGIC_FEATURE_DPGS))
		v->dpg = value & (GICR_CTLR_DPG0 | GICR_CTLR_DPG1NS);
	if (ref->lpis != NULL)
		ref_lpis_enable(ref->lpis, (uint32_t)(v - ref->vcpus), value & GICR_CTLR_ENABLE_LPIS);
}

static uint64_t read_waker(const struct vcpu *v)
{
	return v->asleep ? GICR_WAKER_PROCESSOR_SLEEP | GICR_WAKER_CHILDREN_ASLEEP : 0;
}

static void write_spi_message(struct ref_gic *ref, uint64_t value, bool set)
{
	struct irq *irq = find_irq(ref, REF_NO_VCPU, value & 0x1fff);

	if (irq == NULL)
		return;
	/* Clearing also ends what was begun while the SPI was configured as level-sensitive. */
	if (!irq->edge || !set)
		irq_drive(irq, SOURCE_MESSAGE, set);
	if (irq->edge)
		irq->latch = set;
}

static void write_lpi_register(struct ref_gic *ref, const struct access *a, uint64_t value)
{
	const unsigned shift = a->offset % 8 * 8;
	const uint64_t mask = a->width == 8 ? ~0ull : 0xffffffffull << shift;

	if (ref->lpis != NULL)
		ref_lpis_write(ref->lpis, a->vcpu, a->offset & ~7u, value << shift, mask);
}

/* The registers that only a redistributor has. */
static uint64_t read_redist_reg(const struct ref_gic *ref, const struct vcpu *v, const struct access *a)
{
	switch (a->reg->name) {
	case REG_REDIST_CTLR:
		return read_redist_ctlr(ref, v);
	case REG_REDIST_TYPER:
		return read_half(a, read_redist_typer(ref, v));
	case REG_WAKER:
		return read_waker(v);
	case REG_LPI:
		return ref->lpis == NULL ? 0 : read_half(a, ref_lpis_read(ref->lpis, a->vcpu, a->offset & ~7u));
	default:
		return 0;
	}
}

static void write_redist_reg(struct ref_gic *ref, struct vcpu *v, const struct access *a, uint64_t value)
{
	if (a->reg->name == REG_REDIST_CTLR)
		write_redist_ctlr(ref, v, value);
	else if (a->reg->name == REG_WAKER)
		v->asleep = has_feature(ref, VGIC_FEATURE_WAKER) && (value & GICR_WAKER_PROCESSOR_SLEEP);
	else if (a->reg->name == REG_LPI)
		write_lpi_register(ref, a, value);
}

static uint64_t read_reg(struct ref_gic *ref, const struct access *a)
{
	const struct vcpu *v = a->vcpu == REF_NO_VCPU ? NULL : &ref->vcpus[a->vcpu];

	switch (a->reg->name) {
	case REG_DIST_CTLR:
		return read_dist_ctlr(ref);
	case REG_DIST_TYPER:
		return read_dist_typer(ref);
	case REG_IIDR:
		return read_iidr(ref, a);
	case REG_STATUSR:
		return v == NULL ? ref->statusr : v->statusr;
	case REG_IGROUPR:
	case REG_ISENABLER:
	case REG_ICENABLER:
	case REG_ISPENDR:
	case REG_ICPENDR:
	case REG_ISACTIVER:
	case REG_ICACTIVER:
		return read_irq_bits(ref, a);
	case REG_IPRIORITYR:
		return read_priorities(ref, a);
	case REG_ICFGR:
		return read_icfgr(ref, a);
	case REG_IROUTER:
		return read_half(a, ref->irouter[GIC_FIRST_SPI + a->delta / 8]);
	case REG_ID:
		return read_id(ref, a);
	default:
		return v == NULL ? 0 : read_redist_reg(ref, v, a);
	}
}

static void write_reg(struct ref_gic *ref, const struct access *a, uint64_t value)
{
	struct vcpu *v = a->vcpu == REF_NO_VCPU ? NULL : &ref->vcpus[a->vcpu];

	switch (a->reg->name) {
	case REG_DIST_CTLR:
		ref->enable_grp0 = !is_kvm(ref) && (value & GICD_CTLR_ENABLE_GRP0);
		ref->enable_grp1 = (value & GICD_CTLR_ENABLE_GRP1) != 0;
		break;
	case REG_STATUSR:
		*(v == NULL ? &ref->statusr : &v->statusr) &= ~(uint32_t)value;
		break;
	case REG_SETSPI:
		write_spi_message(ref, value, true);
		break;
	case REG_CLRSPI:
		write_spi_message(ref, value, false);
		break;
	case REG_IGROUPR:
	case REG_ISENABLER:
	case REG_ICENABLER:
	case REG_ISPENDR:
	case REG_ICPENDR:
	case REG_ISACTIVER:
	case REG_ICACTIVER:
		write_irq_bits(ref, a, value);
		break;
	case REG_IPRIORITYR:
		write_priorities(ref, a, value);
		break;
	case REG_ICFGR:
		write_icfgr(ref, a, value);
		break;
	case REG_IROUTER:
		write_irouter(ref, a, value);
		break;
	default:
		if (v != NULL)
			write_redist_reg(ref, v, a, value);
		break;
	}
}

static int check_access(uint32_t offset, unsigned width, uint32_t frame_size)
{
	if (width != 1 && width != 2 && width != 4 && width != 8)
		return -EINVAL;
	return (uint64_t)offset + width > frame_size ? -ENXIO : 0;
}

static int frame_read(struct ref_gic *ref, uint32_t vcpu, uint32_t offset, unsigned width, uint64_t *value)
{
	struct access a = { .vcpu = vcpu, .offset = offset, .width = width };
	const int error =
		check_access(offset, width, vcpu == REF_NO_VCPU ? VGIC_DIST_FRAME_SIZE : VGIC_REDIST_FRAME_SIZE);

	if (error)
		return error;
	*value = decode(ref, &a, false) ? read_reg(ref, &a) : 0;
	return 0;
}

static int frame_write(struct ref_gic *ref, uint32_t vcpu, uint32_t offset, unsigned width, uint64_t value)
{
	struct access a = { .vcpu = vcpu, .offset = offset, .width = width };
	const int error =
		check_access(offset, width, vcpu == REF_NO_VCPU ? VGIC_DIST_FRAME_SIZE : VGIC_REDIST_FRAME_SIZE);

	if (error)
		return error;
	if (width < 8)
		value &= (1ull << (8 * width)) - 1;
	if (decode(ref, &a, true))
		write_reg(ref, &a, value);
	return 0;
}

int ref_dist_read(struct ref_gic *ref, uint32_t offset, unsigned width, uint64_t *value)
{
	return frame_read(ref, REF_NO_VCPU, offset, width, value);
}

int ref_dist_write(struct ref_gic *ref, uint32_t offset, unsigned width, uint64_t value)
{
	return frame_write(ref, REF_NO_VCPU, offset, width, value);
}

int ref_redist_read(struct ref_gic *ref, uint32_t vcpu, uint32_t offset, unsigned width, uint64_t *value)
{
	return frame_read(ref, vcpu, offset, width, value);
}

int ref_redist_write(struct ref_gic *ref, uint32_t vcpu, uint32_t offset, unsigned width, uint64_t value)
{
	return frame_write(ref, vcpu, offset, width, value);
}

/* ---- Physical addresses ---- */

enum place { PLACE_NOWHERE, PLACE_DIST, PLACE_REDIST, PLACE_EMPTY_FRAME };

static enum place find_place(const struct ref_gic *ref, uint64_t address, uint32_t *vcpu, uint32_t *offset)
{
	uint32_t first = 0;
	uint32_t frame;

	if (ref->config.has_dist_base && address >= ref->config.dist_base &&
	    address - ref->config.dist_base < VGIC_DIST_FRAME_SIZE) {
		*offset = (uint32_t)(address - ref->config.dist_base);
		return PLACE_DIST;
	}
	for (uint32_t i = 0; i < ref->config.num_redist_regions; i++) {
		const struct vgic_redist_region *region = &ref->regions[i];
		const uint64_t size = (uint64_t)region->num_frames * VGIC_REDIST_FRAME_SIZE;

		if (address >= region->base && address - region->base < size) {
			frame = first + (uint32_t)((address - region->base) / VGIC_REDIST_FRAME_SIZE);
			*vcpu = frame < ref->num_frames ? ref->order[frame] : REF_NO_VCPU;
			*offset = (uint32_t)((address - region->base) % VGIC_REDIST_FRAME_SIZE);
			return *vcpu != REF_NO_VCPU ? PLACE_REDIST : PLACE_EMPTY_FRAME;
		}
		first += region->num_frames;
	}
	return PLACE_NOWHERE;
}

int ref_mmio_read(struct ref_gic *ref, uint64_t address, unsigned width, uint64_t *value)
{
	uint32_t vcpu = REF_NO_VCPU;
	uint32_t offset = 0;
	int error;

	switch (find_place(ref, address, &vcpu, &offset)) {
	case PLACE_DIST:
		return ref_dist_read(ref, offset, width, value);
	case PLACE_REDIST:
		return ref_redist_read(ref, vcpu, offset, width, value);
	case PLACE_EMPTY_FRAME:
		error = check_access(offset, width, VGIC_REDIST_FRAME_SIZE);
		if (error)
			return error;
		count_error(ref, VGIC_GUEST_MMIO_RESERVED);
		*value = 0;
		return 0;
	default:
		return -ENXIO; /* whatever the width */
	}
}

int ref_mmio_write(struct ref_gic *ref, uint64_t address, unsigned width, uint64_t value)
{
	uint32_t vcpu = REF_NO_VCPU;
	uint32_t offset = 0;
	int error;

	switch (find_place(ref, address, &vcpu, &offset)) {
	case PLACE_DIST:
		return ref_dist_write(ref, offset, width, value);
	case PLACE_REDIST:
		return ref_redist_write(ref, vcpu, offset, width, value);
	case PLACE_EMPTY_FRAME:
		error = check_access(offset, width, VGIC_REDIST_FRAME_SIZE);
		if (!error)
			count_error(ref, VGIC_GUEST_MMIO_RESERVED);
		return error;
	default:
		return -ENXIO; /* whatever the width */
	}
}

/* ---- Life cycle ---- */

/* The guest-physical address of a frame; false without regions. */
static bool find_frame_address(const struct ref_gic *ref, uint32_t frame, uint64_t *address)
{
	uint32_t first = 0;

	for (uint32_t i = 0; i < ref->config.num_redist_regions; i++) {
		if (frame < first + ref->regions[i].num_frames) {
			*address = ref->regions[i].base + (uint64_t)(frame - first) * VGIC_REDIST_FRAME_SIZE;
			return true;
		}
		first += ref->regions[i].num_frames;
	}
	return false;
}

/* Last is set where no other vCPU's frame follows at the next address. */
static bool is_last_frame(const struct ref_gic *ref, uint32_t frame)
{
	uint64_t address;
	uint64_t other;

	if (!find_frame_address(ref, frame, &address))
		return frame == ref->num_frames - 1;
	for (uint32_t i = 0; i < ref->num_frames; i++) {
		if (find_frame_address(ref, i, &other) && other == address + VGIC_REDIST_FRAME_SIZE)
			return false;
	}
	return true;
}

static void *allocate(size_t count, size_t size)
{
	void *memory = calloc(count ? count : 1, size);

	if (memory == NULL)
		abort();
	return memory;
}

void ref_move_frames(struct ref_gic *ref, const struct vgic_redist_region *regions, uint32_t num_regions,
		     const uint32_t *order, uint32_t num_frames)
{
	free(ref->regions);
	free(ref->order);
	ref->config.num_redist_regions = num_regions;
	ref->regions = allocate(num_regions, sizeof(ref->regions[0]));
	if (num_regions != 0)
		memcpy(ref->regions, regions, num_regions * sizeof(ref->regions[0]));
	ref->num_frames = num_frames;
	ref->order = allocate(num_frames, sizeof(ref->order[0]));
	memcpy(ref->order, order, num_frames * sizeof(ref->order[0]));
	for (uint32_t i = 0; i < num_frames; i++) {
		if (order[i] != REF_NO_VCPU)
			ref->vcpus[order[i]].last = is_last_frame(ref, i);
	}
}

void ref_reset(struct ref_gic *ref)
{
	ref->enable_grp0 = false;
	ref->enable_grp1 = false;
	ref->statusr = 0;
	for (uint32_t intid = GIC_FIRST_SPI; intid < end_of_spis(ref); intid++) {
		irq_reset(ref, &ref->spis[intid], intid);
		ref->irouter[intid] = 0;
		ref->choice[intid] = REF_NO_VCPU;
	}
	for (uint32_t i = 0; i < ref->num_vcpus; i++) {
		struct vcpu *v = &ref->vcpus[i];

		for (uint32_t intid = 0; intid < GIC_NUM_PRIVATE; intid++)
			irq_reset(ref, &v->irqs[intid], intid);
		v->dpg = 0;
		v->statusr = 0;
		v->asleep = has_feature(ref, VGIC_FEATURE_WAKER);
		ref_vcpu_reset(ref, i);
	}
	if (ref->lpis != NULL)
		ref_lpis_reset(ref->lpis);
}

struct ref_gic *ref_create(const struct vgic_config *config)
{
	struct ref_gic *ref = allocate(1, sizeof(*ref));
	uint32_t *order;

	ref->config = *config;
	ref->num_vcpus = config->num_vcpus;
	ref->vcpus = allocate(config->num_vcpus, sizeof(ref->vcpus[0]));
	order = allocate(config->num_vcpus, sizeof(order[0]));
	for (uint32_t i = 0; i < config->num_vcpus; i++) {
		ref->vcpus[i].id = config->vcpus[i].id;
		ref->vcpus[i].affinity = config->vcpus[i].affinity;
		ref->vcpus[i].online = true;
		order[i] = i;
	}
	ref_move_frames(ref, config->redist_regions, config->num_redist_regions, order, config->num_vcpus);
	free(order);
	if (has_feature(ref, VGIC_FEATURE_LPIS))
		ref->lpis = ref_lpis_create(config, ref->stats.guest_errors);
	/* What the configuration pointed to belongs to the caller. */
	ref->config.itses = NULL;
	ref->config.vcpus = NULL;
	ref->config.redist_regions = NULL;
	ref_reset(ref);
	return ref;
}

void ref_destroy(struct ref_gic *ref)
{
	if (ref == NULL)
		return;
	ref_lpis_destroy(ref->lpis);
	free(ref->regions);
	free(ref->order);
	free(ref->vcpus);
	free(ref);
}

const struct ref_stats *ref_get_stats(const struct ref_gic *ref)
{
	return &ref->stats;
}

struct ref_lpis *ref_lpis(struct ref_gic *ref)
{
	return ref->lpis;
}
