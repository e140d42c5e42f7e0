/* SPDX-License-Identifier: MIT */
/*
 * redist.c - the redistributors: RD_base and SGI_base of each vCPU.
 *
 * Owns redist_ctlr, redist_statusr, redist_wait and asleep, all guarded by
 * config_lock. Any PE may access any redistributor. The LPI registers are in lpi.c;
 * without LPIs they are RAZ/WI.
 */
#include "redist.h"

#include "frame.h"
#include "gic_regs.h"
#include "id_regs.h"
#include "irq_change.h"
#include "irq_regs.h"
#include "lpi.h"
#include "one_of_n.h"
#include "work.h"

/* ---- GICR_CTLR -------------------------------------------------------------------- */

void redist_note_disable(struct vgic_vcpu *vcpu)
{
	config_lock(vcpu->vgic);
	ack_note(vcpu, &vcpu->redist_wait);
	config_unlock(vcpu->vgic);
}

/*
 * GICR_INVLPIR is there, and EnableLPIs can be cleared. KVM says so from revision
 * 3 on, LPIs or not.
 */
static uint32_t ctlr_features(const struct vgic *vgic)
{
	const bool shown = vgic->profile == VGIC_PROFILE_KVM ? load_relaxed(&vgic->kvm_revision) >= 3 :
							       vgic_has(vgic, VGIC_FEATURE_LPIS);

	return shown ? GICR_CTLR_IR | GICR_CTLR_CES : 0;
}

static uint64_t ctlr_read(const struct frame_access *a)
{
	struct vgic_vcpu *vcpu = a->vcpu;
	uint64_t value;

	work_do_some(a->vgic);
	config_lock(a->vgic);
	value = vcpu->redist_ctlr;
	if (vgic_has(a->vgic, VGIC_FEATURE_LPIS))
		value |= lpi_ctlr_read(vcpu);
	if (!ack_is_over(vcpu, &vcpu->redist_wait))
		value |= GICR_CTLR_RWP;
	config_unlock(a->vgic);
	value |= ctlr_features(a->vgic);
	return value;
}

/* Under config_lock. Returns true if the write has begun something that takes long. */
static bool change_ctlr(struct vgic_vcpu *vcpu, uint32_t value)
{
	struct vgic *vgic = vcpu->vgic;

	if (vgic_has(vgic, VGIC_FEATURE_DPGS)) {
		vcpu->redist_ctlr = value & (GICR_CTLR_DPG0 | GICR_CTLR_DPG1NS);
		one_of_n_update(vcpu);
	}
	return vgic_has(vgic, VGIC_FEATURE_LPIS) && lpi_ctlr_write(vcpu, value);
}

static void ctlr_write(const struct frame_access *a, uint64_t value, uint64_t mask)
{
	(void)mask;
	config_lock(a->vgic);
	if (change_ctlr(a->vcpu, (uint32_t)value))
		work_finish_write(a->vgic);
	else
		config_unlock(a->vgic);
}

/* The VMM finds done what it asks for. */
static int ctlr_user_write(const struct frame_access *a, uint64_t value, uint64_t mask)
{
	(void)mask;
	config_lock(a->vgic);
	redist_finish_work(a->vcpu);
	change_ctlr(a->vcpu, (uint32_t)value);
	redist_finish_work(a->vcpu);
	config_unlock(a->vgic);
	return 0;
}

/* ---- Features ------------------------------------------------------------------------- */

static uint64_t typer_read(const struct frame_access *a)
{
	const struct vgic_vcpu *vcpu = a->vcpu;
	uint64_t value = (uint64_t)affinity_pack(vcpu->affinity) << GICR_TYPER_AFFINITY_SHIFT |
			 (uint64_t)vcpu->id << GICR_TYPER_PROCESSOR_NUMBER_SHIFT;

	if (vcpu->frame_is_last)
		value |= GICR_TYPER_LAST;
	if (vgic_has(a->vgic, VGIC_FEATURE_DPGS))
		value |= GICR_TYPER_DPGS;
	if (vgic_has(a->vgic, VGIC_FEATURE_LPIS)) {
		value |= GICR_TYPER_PLPIS;
		if (lpi_is_direct(a->vgic))
			value |= GICR_TYPER_DIRECT_LPI;
	}
	return value;
}

/* ---- GICR_WAKER --------------------------------------------------------------------- */

/*
 * ChildrenAsleep follows ProcessorSleep at once. Sleep takes the vCPU out of
 * 1-of-N distribution and gates nothing else: guests exist that never wake it.
 */
static uint64_t waker_read(const struct frame_access *a)
{
	bool asleep;

	config_lock(a->vgic);
	asleep = a->vcpu->asleep;
	config_unlock(a->vgic);
	return asleep ? GICR_WAKER_PROCESSOR_SLEEP | GICR_WAKER_CHILDREN_ASLEEP : 0;
}

static void waker_write(const struct frame_access *a, uint64_t value, uint64_t mask)
{
	(void)mask;
	if (!vgic_has(a->vgic, VGIC_FEATURE_WAKER))
		return;
	config_lock(a->vgic);
	a->vcpu->asleep = value & GICR_WAKER_PROCESSOR_SLEEP;
	one_of_n_update(a->vcpu);
	config_unlock(a->vgic);
}

/* ---- The frame ----------------------------------------------------------------------- */

// clang-format off
static const struct frame_register redist_registers[] = {
	/*  offset             count  widths     name               read              write */
	REG_USER(GICR_CTLR,        1, W32,       "GICR_CTLR",       ctlr_read,        ctlr_write,
		 NULL, ctlr_user_write),
	REG(GICR_IIDR,             1, W32,       "GICR_IIDR",       iidr_read_of_part,    NULL),
	REG(GICR_TYPER,            1, W32 | W64, "GICR_TYPER",      typer_read,       NULL),
	REG_USER(GICR_STATUSR,     1, W32,       "GICR_STATUSR",    frame_read_statusr, frame_write_statusr,
		 NULL, frame_user_write_statusr),
	REG(GICR_WAKER,            1, W32,       "GICR_WAKER",      waker_read,       waker_write),
	REG(GICR_SETLPIR,          1, W32 | W64, "GICR_SETLPIR",    frame_read_zero,  setlpir_write),
	REG(GICR_CLRLPIR,          1, W32 | W64, "GICR_CLRLPIR",    frame_read_zero,  clrlpir_write),
	REG(GICR_PROPBASER,        1, W32 | W64, "GICR_PROPBASER",  propbaser_read,   propbaser_write),
	REG(GICR_PENDBASER,        1, W32 | W64, "GICR_PENDBASER",  pendbaser_read,   pendbaser_write),
	REG(GICR_INVLPIR,          1, W32 | W64, "GICR_INVLPIR",    frame_read_zero,  invlpir_write),
	REG(GICR_INVALLR,          1, W32 | W64, "GICR_INVALLR",    frame_read_zero,  invallr_write),
	REG(GICR_SYNCR,            1, W32,       "GICR_SYNCR",      syncr_read,       frame_write_ignored),
	REG(GICR_ID_REGISTERS,    12, W32,       "GICR_PIDR/CIDR",  id_register_read, NULL),
	REG(GICR_IGROUPR0,         1, W32,       "GICR_IGROUPR0",   igroupr_read,     igroupr_write),
	REG(GICR_ISENABLER0,       1, W32,       "GICR_ISENABLER0", enabler_read,     isenabler_write),
	REG(GICR_ICENABLER0,       1, W32,       "GICR_ICENABLER0", enabler_read,     icenabler_write),
	REG_USER(GICR_ISPENDR0,    1, W32,       "GICR_ISPENDR0",   pendr_read,       ispendr_write,
		 latch_user_read, latch_user_write),
	REG_USER(GICR_ICPENDR0,    1, W32,       "GICR_ICPENDR0",   pendr_read,       icpendr_write,
		 frame_read_zero, frame_user_write_ignored),
	REG(GICR_ISACTIVER0,       1, W32,       "GICR_ISACTIVER0", activer_read,     isactiver_write),
	REG_USER(GICR_ICACTIVER0,  1, W32,       "GICR_ICACTIVER0", activer_read,     icactiver_write,
		 NULL, icactiver_user_write),
	REG(GICR_IPRIORITYR,       8, W8 | W32,  "GICR_IPRIORITYR", ipriorityr_read,  ipriorityr_write),
	REG(GICR_ICFGR,            2, W32,       "GICR_ICFGR",      icfgr_read,       icfgr_write),
	REG(GICR_IGRPMODR0,        1, W32,       "GICR_IGRPMODR0",  frame_read_zero,  frame_write_ignored),
	REG(GICR_NSACR,            1, W32,       "GICR_NSACR",      frame_read_zero,  frame_write_ignored),
};
// clang-format on

const struct frame redist_frame = {
	.name = "redistributor",
	.size = VGIC_REDIST_FRAME_SIZE,
	.registers = redist_registers,
	.num_registers = sizeof(redist_registers) / sizeof(redist_registers[0]),
};

int vgic_redist_read(struct vgic_vcpu *vcpu, uint32_t offset, unsigned width, uint64_t *value)
{
	return frame_read(&redist_frame, &(struct frame_access){ .vgic = vcpu->vgic, .vcpu = vcpu }, offset, width,
			  value);
}

int vgic_redist_write(struct vgic_vcpu *vcpu, uint32_t offset, unsigned width, uint64_t value)
{
	return frame_write(&redist_frame, &(struct frame_access){ .vgic = vcpu->vgic, .vcpu = vcpu }, offset, width,
			   value);
}

/* The word of an SGI or PPI that nothing drives. */
static irq_word private_reset_word(const struct vgic_vcpu *vcpu, uint32_t intid)
{
	irq_word w = irq_set_target(0, vcpu->index);

	if (intid < NUM_SGIS)
		w |= IRQ_EDGE;
	if (vcpu->vgic->profile == VGIC_PROFILE_KVM)
		w |= IRQ_GROUP1 | (intid < NUM_SGIS ? IRQ_ENABLED : 0);
	return w;
}

void redist_reset(struct vgic_vcpu *vcpu)
{
	struct vgic *vgic = vcpu->vgic;

	vcpu->redist_ctlr = 0;
	vcpu->redist_statusr = 0;
	vcpu->asleep = vgic_has(vgic, VGIC_FEATURE_WAKER);
	for (uint32_t i = 0; i < NUM_PRIVATE; i++)
		irq_change(vgic, &vcpu->private_irqs[i], irq_reset, private_reset_word(vcpu, i));
}
