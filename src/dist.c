/* SPDX-License-Identifier: MIT */
/*
 * dist.c - the distributor: the GICD frame, with one security state (DS=1) and
 * affinity routing always on (ARE=1).
 *
 * Owns group_mask, dist_ctlr, dist_statusr and GICD_IROUTER, all written under
 * config_lock. The banks over INTIDs are in irq_regs.c.
 */
#include "dist.h"

#include <errno.h>

#include "frame.h"
#include "gic_regs.h"
#include "id_regs.h"
#include "irq_change.h"
#include "irq_regs.h"

/* ---- GICD_CTLR, and the promise of RWP ----------------------------------------- */

/*
 * The levels of the groups that are enabled. KVM's vGIC has one enable for both
 * groups, EnableGrp1.
 */
static uint64_t enabled_levels(const struct vgic *vgic, uint32_t ctlr)
{
	const uint64_t group0 = UINT64_C(0xffffffff), group1 = group0 << NUM_PRIORITIES;

	if (vgic->profile == VGIC_PROFILE_KVM)
		return (ctlr & GICD_CTLR_ENABLE_GRP1) ? group0 | group1 : 0;
	return ((ctlr & GICD_CTLR_ENABLE_GRP0) ? group0 : 0) | ((ctlr & GICD_CTLR_ENABLE_GRP1) ? group1 : 0);
}

static void note_acknowledges(struct vgic *vgic)
{
	for (uint32_t i = 0; i < vgic->num_vcpus; i++) {
		ack_note(vgic->vcpus[i], &vgic->vcpus[i]->dist_wait);
		vgic->dist_waiting |= vgic->vcpus[i]->dist_wait != 0;
	}
}

void dist_note_disable(struct vgic *vgic)
{
	config_lock(vgic);
	note_acknowledges(vgic);
	config_unlock(vgic);
}

/* Under config_lock: is something that was disabled still being acknowledged? */
static bool write_is_pending(struct vgic *vgic)
{
	bool waiting = false;

	if (!vgic->dist_waiting)
		return false;
	for (uint32_t i = 0; i < vgic->num_vcpus; i++)
		waiting |= !ack_is_over(vgic->vcpus[i], &vgic->vcpus[i]->dist_wait);
	vgic->dist_waiting = waiting;
	return waiting;
}

static uint64_t ctlr_read(const struct frame_access *a)
{
	uint64_t value;

	config_lock(a->vgic);
	value = a->vgic->dist_ctlr | GICD_CTLR_ARE | GICD_CTLR_DS;
	if (write_is_pending(a->vgic))
		value |= GICD_CTLR_RWP;
	config_unlock(a->vgic);
	return value;
}

/* Levels in which a vCPU has hints. */
static uint64_t hinted_levels(const struct pending *p)
{
	const uint64_t slot = load_seq_cst(&p->slot);

	return load_seq_cst(&p->summary) | (slot ? UINT64_C(1) << (slot >> 32 & (NUM_LEVELS - 1)) : 0);
}

/*
 * R2, third party: the distributor is neither signaller nor vCPU. It stores its
 * mask, and then looks at every vCPU: whoever has something that the mask now
 * lets through, or shows a line that may have to fall, is kicked. A vCPU that
 * evaluates meanwhile sees either the new mask or the kick.
 */
static void set_enabled_levels(struct vgic *vgic, uint64_t levels)
{
	const uint64_t old = load_relaxed(&vgic->group_mask);

	if (levels == old)
		return;
	store_seq_cst(&vgic->group_mask, levels);
	full_fence();
	if (old & ~levels)
		note_acknowledges(vgic);
	for (uint32_t i = 0; i < vgic->num_vcpus; i++) {
		const struct pending *p = &vgic->vcpus[i]->pending;
		const uint64_t enabled_here = hinted_levels(p) & load_seq_cst(&p->mask) & levels & ~old;

		if (enabled_here || ((old & ~levels) && load_relaxed(&p->watch)))
			vcpu_kick(vgic->vcpus[i]);
	}
}

uint32_t dist_ctlr_writable(const struct vgic *vgic)
{
	return vgic->profile == VGIC_PROFILE_KVM ? GICD_CTLR_ENABLE_GRP1 :
						   GICD_CTLR_ENABLE_GRP0 | GICD_CTLR_ENABLE_GRP1;
}

void dist_set_ctlr(struct vgic *vgic, uint32_t ctlr)
{
	vgic->dist_ctlr = ctlr & dist_ctlr_writable(vgic);
	set_enabled_levels(vgic, enabled_levels(vgic, vgic->dist_ctlr));
}

static void ctlr_write(const struct frame_access *a, uint64_t value, uint64_t mask)
{
	(void)mask;
	config_lock(a->vgic);
	dist_set_ctlr(a->vgic, (uint32_t)value);
	config_unlock(a->vgic);
}

/* ---- Features --------------------------------------------------------------------- */

static uint64_t typer_read(const struct frame_access *a)
{
	const struct vgic *vgic = a->vgic;
	const uint32_t id_bits = vgic_has(vgic, VGIC_FEATURE_LPIS) ? vgic->lpi_id_bits : 10;
	uint64_t value = (FIRST_SPI + vgic->num_spis + 31) / 32 - 1;

	value |= (id_bits - 1) << GICD_TYPER_IDBITS_SHIFT;
	if (vgic_has(vgic, VGIC_FEATURE_MBIS))
		value |= GICD_TYPER_MBIS;
	if (vgic_has(vgic, VGIC_FEATURE_LPIS))
		value |= GICD_TYPER_LPIS;
	if (vgic_has(vgic, VGIC_FEATURE_A3V))
		value |= GICD_TYPER_A3V;
	if (vgic_has(vgic, VGIC_FEATURE_RSS))
		value |= GICD_TYPER_RSS;
	/* KVM's vGIC has no 1-of-N distribution, but does not say so. */
	if (!vgic_has(vgic, VGIC_FEATURE_ONE_OF_N) && vgic->profile != VGIC_PROFILE_KVM)
		value |= GICD_TYPER_NO1N;
	return value;
}

/* A VMM that restores what it does not find here is told. */
static int typer2_user_write(const struct frame_access *a, uint64_t value, uint64_t mask)
{
	return (value & mask) == frame_read_zero(a) ? 0 : -EINVAL;
}

/* ---- Message-based SPIs ----------------------------------------------------------- */

static struct irq *message_spi(const struct frame_access *a, uint64_t value)
{
	const uint32_t intid = value & 0x1fff;

	return intid - FIRST_SPI < a->vgic->num_spis ? &a->vgic->spis[intid - FIRST_SPI] : NULL;
}

static void setspi_write(const struct frame_access *a, uint64_t value, uint64_t mask)
{
	struct irq *irq = message_spi(a, value);

	(void)mask;
	if (irq)
		irq_change(a->vgic, irq, irq_message_set, 0);
}

static void clrspi_write(const struct frame_access *a, uint64_t value, uint64_t mask)
{
	struct irq *irq = message_spi(a, value);

	(void)mask;
	if (irq)
		irq_change(a->vgic, irq, irq_message_clear, 0);
}

/* ---- GICD_IROUTER ------------------------------------------------------------------ */

uint64_t dist_irouter_writable(const struct vgic *vgic)
{
	uint64_t bits = GICD_IROUTER_AFFINITY;

	if (!vgic_has(vgic, VGIC_FEATURE_A3V))
		bits &= ~GICD_IROUTER_AFF3;
	if (vgic_has(vgic, VGIC_FEATURE_ONE_OF_N))
		bits |= GICD_IROUTER_IRM;
	return bits;
}

uint32_t dist_route_target(const struct vgic *vgic, uint64_t irouter)
{
	const uint32_t index = affinity_find(&vgic->affinity, affinity_pack(irouter));

	return index == CLUSTER_NO_VCPU ? IRQ_NO_TARGET : index;
}

/* Under config_lock, so that the register and the state word tell the same. Returns false if no such PE exists. */
static bool route(struct vgic *vgic, struct irq *irq, uint64_t irouter)
{
	const bool was_any = load_relaxed(&irq->irouter) & GICD_IROUTER_IRM;
	uint32_t target;

	store_relaxed(&irq->irouter, irouter);
	if (irouter & GICD_IROUTER_IRM) {
		/*
		 * Without a target the selection begins at a vCPU that the INTID gives. SPIs that were all routed to one
		 * vCPU before would else all begin at the one after it.
		 */
		if (!was_any)
			irq_change(vgic, irq, irq_route_to, IRQ_NO_TARGET);
		irq_change(vgic, irq, irq_route_to_any, 0);
		return true;
	}
	target = dist_route_target(vgic, irouter);
	irq_change(vgic, irq, irq_route_to, target);
	return target != IRQ_NO_TARGET;
}

/* SGIs and PPIs have no such register: the first one is that of SPI 32. */
static struct irq *routed_spi(const struct frame_access *a)
{
	return a->index < a->vgic->num_spis ? &a->vgic->spis[a->index] : NULL;
}

static uint64_t irouter_read(const struct frame_access *a)
{
	struct irq *irq = routed_spi(a);

	return irq ? load_relaxed(&irq->irouter) : 0;
}

/* Write part of the register. Returns its new value, and whether it leads to a PE that exists. */
static uint64_t change_irouter(const struct frame_access *a, struct irq *irq, uint64_t value, uint64_t mask,
			       bool *routed)
{
	struct vgic *vgic = a->vgic;

	config_lock(vgic);
	value = frame_merge(load_relaxed(&irq->irouter), value & dist_irouter_writable(vgic), mask);
	*routed = route(vgic, irq, value);
	config_unlock(vgic);
	return value;
}

static void irouter_write(const struct frame_access *a, uint64_t value, uint64_t mask)
{
	struct irq *irq = routed_spi(a);
	bool routed;

	if (!irq)
		return;
	value = change_irouter(a, irq, value, mask, &routed);
	if (!routed)
		guest_error(a->vgic, VGIC_GUEST_ROUTE_NO_TARGET, "GICD_IROUTER names no PE", irq->intid, value);
}

static int irouter_user_write(const struct frame_access *a, uint64_t value, uint64_t mask)
{
	struct irq *irq = routed_spi(a);
	bool routed;

	if (irq)
		change_irouter(a, irq, value, mask, &routed);
	return 0;
}

/* ---- The frame ---------------------------------------------------------------------- */

/* Group-modifier, non-secure access and GICv2 registers: RAZ/WI with one security state and affinity routing. */
// clang-format off
static const struct frame_register dist_registers[] = {
	/*  offset             count  widths    name               read              write */
	REG(GICD_CTLR,             1, W32,      "GICD_CTLR",       ctlr_read,        ctlr_write),
	REG(GICD_TYPER,            1, W32,      "GICD_TYPER",      typer_read,       NULL),
	REG_USER(GICD_IIDR,        1, W32,      "GICD_IIDR",       iidr_read,        NULL,
		 NULL, iidr_user_write),
	REG_USER(GICD_TYPER2,      1, W32,      "GICD_TYPER2",     frame_read_zero,  NULL,
		 NULL, typer2_user_write),
	REG_USER(GICD_STATUSR,     1, W32,      "GICD_STATUSR",    frame_read_statusr, frame_write_statusr,
		 NULL, frame_user_write_statusr),
	REG_IF(VGIC_FEATURE_MBIS,
	    GICD_SETSPI_NSR,       1, W16 | W32, "GICD_SETSPI_NSR", NULL,             setspi_write),
	REG_IF(VGIC_FEATURE_MBIS,
	    GICD_CLRSPI_NSR,       1, W16 | W32, "GICD_CLRSPI_NSR", NULL,             clrspi_write),
	REG(GICD_SETSPI_SR,        1, W16 | W32, "GICD_SETSPI_SR",  frame_read_zero,  frame_write_ignored),
	REG(GICD_CLRSPI_SR,        1, W16 | W32, "GICD_CLRSPI_SR",  frame_read_zero,  frame_write_ignored),
	/*   offset           count  widths   INTIDs  name               read              write */
	BANK(GICD_IGROUPR,       32, W32,         32, "GICD_IGROUPR",    igroupr_read,     igroupr_write),
	BANK(GICD_ISENABLER,     32, W32,         32, "GICD_ISENABLER",  enabler_read,     isenabler_write),
	BANK(GICD_ICENABLER,     32, W32,         32, "GICD_ICENABLER",  enabler_read,     icenabler_write),
	BANK_USER(GICD_ISPENDR,  32, W32,         32, "GICD_ISPENDR",    pendr_read,       ispendr_write,
		  latch_user_read, latch_user_write),
	BANK_USER(GICD_ICPENDR,  32, W32,         32, "GICD_ICPENDR",    pendr_read,       icpendr_write,
		  frame_read_zero, frame_user_write_ignored),
	BANK(GICD_ISACTIVER,     32, W32,         32, "GICD_ISACTIVER",  activer_read,     isactiver_write),
	BANK_USER(GICD_ICACTIVER, 32, W32,        32, "GICD_ICACTIVER",  activer_read,     icactiver_write,
		  NULL, icactiver_user_write),
	BANK(GICD_IPRIORITYR,   255, W8 | W32,     4, "GICD_IPRIORITYR", ipriorityr_read,  ipriorityr_write),
	BANK(GICD_ITARGETSR,    255, W8 | W32,     4, "GICD_ITARGETSR",  frame_read_zero,  frame_write_ignored),
	BANK(GICD_ICFGR,         64, W32,         16, "GICD_ICFGR",      icfgr_read,       icfgr_write),
	BANK(GICD_IGRPMODR,      32, W32,         32, "GICD_IGRPMODR",   frame_read_zero,  frame_write_ignored),
	BANK(GICD_NSACR,         64, W32,         16, "GICD_NSACR",      frame_read_zero,  frame_write_ignored),
	REG(GICD_SGIR,             1, W32,      "GICD_SGIR",       frame_read_zero,  frame_write_ignored),
	REG(GICD_CPENDSGIR,        4, W8 | W32, "GICD_CPENDSGIR",  frame_read_zero,  frame_write_ignored),
	REG(GICD_SPENDSGIR,        4, W8 | W32, "GICD_SPENDSGIR",  frame_read_zero,  frame_write_ignored),
	REG_ANY(0, GICD_IROUTER + 8 * FIRST_SPI,
		 988, W32 | W64,                "GICD_IROUTER",    irouter_read,     irouter_write,
		FIRST_SPI, 1, NULL, irouter_user_write),
	REG(GICD_ID_REGISTERS,    12, W32,      "GICD_PIDR/CIDR",  id_register_read, NULL),
};
// clang-format on

const struct frame dist_frame = {
	.name = "distributor",
	.size = VGIC_DIST_FRAME_SIZE,
	.registers = dist_registers,
	.num_registers = sizeof(dist_registers) / sizeof(dist_registers[0]),
};

int vgic_dist_read(struct vgic *vgic, uint32_t offset, unsigned width, uint64_t *value)
{
	return frame_read(&dist_frame, &(struct frame_access){ .vgic = vgic }, offset, width, value);
}

int vgic_dist_write(struct vgic *vgic, uint32_t offset, unsigned width, uint64_t value)
{
	return frame_write(&dist_frame, &(struct frame_access){ .vgic = vgic }, offset, width, value);
}

void dist_reset(struct vgic *vgic)
{
	const irq_word reset = vgic->profile == VGIC_PROFILE_KVM ? IRQ_GROUP1 | IRQ_EDGE : 0;
	const uint32_t target = dist_route_target(vgic, 0);

	vgic->dist_statusr = 0;
	dist_set_ctlr(vgic, 0);
	for (uint32_t i = 0; i < vgic->num_spis; i++) {
		store_relaxed(&vgic->spis[i].irouter, 0);
		irq_change(vgic, &vgic->spis[i], irq_reset, irq_set_target(reset, target));
	}
}
