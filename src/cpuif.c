/* SPDX-License-Identifier: MIT */
/*
 * cpuif.c - the CPU interface: the ICC_*_EL1 system registers.
 *
 * Owned by the vCPU's own thread; other threads see of it only the published
 * masks in struct pending. Takes config_lock in one case: ICC_IGRPEN decides about
 * 1-of-N distribution.
 *
 * One highest-priority pending interrupt. A vCPU has one such interrupt across
 * both groups. It raises FIQ if it is in Group 0 and IRQ if in Group 1, and
 * nothing at all if it lacks the priority to preempt what is active, even if a
 * lower one of the other group had it (the groups' binary points differ).
 */
#include "cpuif.h"

#include <errno.h>

#include "deactivate.h"
#include "gic_regs.h"
#include "irq_change.h"

/* Claims that lost a race in one acknowledge: past this the guest reads 1023 with the line still up, and asks again. */
#define MAX_LOST_CLAIMS 64

#define BPR0_MIN (PRIORITY_SHIFT - 1)
#define BPR1_MIN PRIORITY_SHIFT
#define BPR_MAX  7u

/* INTIDs in the registers. */
#define INTID_MASK 0xffffffu

/* ---- Priorities --------------------------------------------------------------- */

/*
 * How many of the implemented priority bits are below the group's binary point:
 * BPR0=n splits after bit n, BPR1=n before it.
 */
static unsigned subpriority_bits(const struct cpuif *c, unsigned group)
{
	if (group == 0 || (c->ctlr & ICC_CTLR_CBPR))
		return c->bpr[0] - BPR0_MIN;
	return c->bpr[1] - BPR1_MIN;
}

/* The highest active priority, 0-31, or NUM_PRIORITIES if none is active. */
static inline unsigned running_priority(const struct cpuif *c)
{
	return (unsigned)__builtin_ctzll(c->apr[0] | c->apr[1] | UINT64_C(1) << NUM_PRIORITIES);
}

/* The 32-bit set of priorities below @priority, which may be NUM_PRIORITIES. */
static uint32_t priorities_below(unsigned priority)
{
	return (uint32_t)((UINT64_C(1) << priority) - 1);
}

/* What could be signalled: the eligible levels that preempt what is active. */
static inline uint64_t signalled_levels(const struct cpuif *c)
{
	return c->eligible & c->preempting[running_priority(c)];
}

/*
 * If the groups' binary points are not the same, and something is active that a
 * priority preempts in one group but not in the other, then an interrupt that cannot be
 * signalled may hide one that could. The hidden one comes to light when the other goes
 * away, which files no hint: the vCPU watches for that. A host that mirrors the lines is
 * kicked for whatever is eligible, because it may hide what holds a line up.
 */
static __attribute__((noinline)) void publish_mask_of_differing_groups(struct vgic_vcpu *vcpu)
{
	struct cpuif *c = &vcpu->cpuif;
	const uint64_t preempting = c->preempting[running_priority(c)];
	const bool mirrored = vcpu->vgic->ops.line_changed;

	c->groups_may_block = c->groups_differ && (uint32_t)preempting != preempting >> NUM_PRIORITIES;
	store_relaxed(&vcpu->pending.watch, c->groups_may_block || mirrored);
	store_release(&vcpu->pending.mask, c->groups_may_block && mirrored ? c->eligible : c->eligible & preempting);
}

/*
 * Publish what is worth a kick. Called for every acknowledge and every EOI. The store
 * needs no order of its own: the fence before the next evaluation gives it (R2).
 */
static inline void publish_mask(struct vgic_vcpu *vcpu)
{
	if (__builtin_expect(vcpu->cpuif.groups_differ, 0))
		publish_mask_of_differing_groups(vcpu);
	else
		store_release(&vcpu->pending.mask, signalled_levels(&vcpu->cpuif));
}

/* A register that decides about eligibility has changed: compute what depends on it, and publish. */
static void update_masks(struct vgic_vcpu *vcpu)
{
	struct cpuif *c = &vcpu->cpuif;
	const uint32_t unmasked = priorities_below(c->pmr >> PRIORITY_SHIFT);
	const uint32_t enabled[2] = { c->igrpen[0] ? unmasked : 0, c->igrpen[1] ? unmasked : 0 };

	c->eligible = (uint64_t)enabled[1] << NUM_PRIORITIES | enabled[0];
	c->groups_differ = enabled[0] && enabled[1] && c->group_priority[0] != c->group_priority[1];
	publish_mask_of_differing_groups(vcpu);
}

/*
 * A binary point has changed. A priority preempts if its group priority is below the
 * running one: that is, if it is below the running priority rounded up to the group's
 * granularity.
 */
static void update_binary_points(struct vgic_vcpu *vcpu)
{
	struct cpuif *c = &vcpu->cpuif;

	for (unsigned group = 0; group < 2; group++)
		c->group_priority[group] = ~0u << subpriority_bits(c, group);
	for (unsigned running = 0; running < NUM_PRIORITIES; running++) {
		const unsigned limit0 = (running + ~c->group_priority[0]) & c->group_priority[0];
		const unsigned limit1 = (running + ~c->group_priority[1]) & c->group_priority[1];

		c->preempting[running] = priorities_below(limit0) | (uint64_t)priorities_below(limit1)
									    << NUM_PRIORITIES;
	}
	c->preempting[NUM_PRIORITIES] = ~UINT64_C(0);
	update_masks(vcpu);
}

void cpuif_reset(struct vgic_vcpu *vcpu)
{
	struct cpuif *c = &vcpu->cpuif;

	c->ctlr = 0;
	c->pmr = 0;
	c->bpr[0] = BPR0_MIN;
	c->bpr[1] = BPR1_MIN;
	c->apr[0] = 0;
	c->apr[1] = 0;
	c->igrpen[0] = false;
	c->igrpen[1] = false;
	update_binary_points(vcpu);
	vcpu->group_enabled[0] = false;
	vcpu->group_enabled[1] = false;
}

/* ---- The highest-priority pending interrupt ------------------------------------ */

enum find_result cpuif_find_signalled(struct vgic_vcpu *vcpu, struct candidate *out)
{
	const struct cpuif *c = &vcpu->cpuif;
	const uint64_t groups = load_seq_cst(&vcpu->vgic->group_mask);
	const uint64_t signalled = signalled_levels(c);
	enum find_result r;

	if (!load_relaxed(&vcpu->online))
		return FIND_NONE;
	if (!c->groups_may_block)
		return pending_find(vcpu, signalled & groups, out);
	r = pending_find(vcpu, c->eligible & groups, out);
	return r == FIND_FOUND && !(signalled >> out->level & 1) ? FIND_NONE : r;
}

static unsigned candidate_group(const struct candidate *c)
{
	return c->level / NUM_PRIORITIES;
}

/* ICC_HPPIR: regardless of PMR and of what is active. */
static uint32_t highest_pending(struct vgic_vcpu *vcpu, unsigned group)
{
	const struct cpuif *c = &vcpu->cpuif;
	const uint64_t enabled = (c->igrpen[0] ? UINT64_C(0xffffffff) : 0) |
				 (c->igrpen[1] ? UINT64_C(0xffffffff) << NUM_PRIORITIES : 0);
	struct candidate found;

	if (!load_relaxed(&vcpu->online) ||
	    pending_find(vcpu, enabled & load_seq_cst(&vcpu->vgic->group_mask), &found) != FIND_FOUND ||
	    candidate_group(&found) != group)
		return INTID_SPURIOUS;
	return found.irq->intid;
}

/* ---- Acknowledge ----------------------------------------------------------------- */

/*
 * The claim's CAS loses against a disable, a re-route or a change of priority that
 * came first. A group disable at the distributor changes no state word, so it is
 * looked at again after the CAS: whoever disabled the group either sees this
 * acknowledge under way (ack_sequence is odd, stored before the CAS) and holds
 * RWP, or is seen here, and the acknowledge is taken back.
 *
 * The odd store, the CAS and this load against the disabler's store and load of
 * ack_sequence are a store-buffering pattern with a seq_cst RMW of another word
 * in the middle. The language alone does not promise it; every mapping of C11 to
 * a machine does: on x86 the CAS is a full barrier, on Arm it is a store-release
 * followed by a load-acquire, which are kept in order, on POWER and RISC-V the
 * seq_cst load has a full fence before it.
 */
static inline bool group_is_enabled(const struct vgic_vcpu *vcpu, const struct candidate *c)
{
	return load_seq_cst(&vcpu->vgic->group_mask) >> c->level & 1;
}

static __attribute__((noinline)) void take_back(struct vgic *vgic, struct irq *irq, irq_word word)
{
	irq_change(vgic, irq, irq_unacknowledge, word);
}

static bool acknowledge_signalled(struct vgic_vcpu *vcpu, unsigned group, struct candidate *c)
{
	for (int lost = 0; lost < MAX_LOST_CLAIMS; lost++) {
		if (cpuif_find_signalled(vcpu, c) != FIND_FOUND || candidate_group(c) != group)
			return false;
		if (!pending_claim(vcpu, c))
			continue;
		if (group_is_enabled(vcpu, c))
			return true;
		take_back(vcpu->vgic, c->irq, c->word);
		return false;
	}
	return false;
}

/* What was claimed is active now. */
static inline uint32_t activate(struct vgic_vcpu *vcpu, unsigned group, const struct candidate *c)
{
	struct cpuif *cpuif = &vcpu->cpuif;

	cpuif->apr[group] |= 1u << (c->level % NUM_PRIORITIES & cpuif->group_priority[group]);
	publish_mask(vcpu);
	store_relaxed(&vcpu->acknowledges, load_relaxed(&vcpu->acknowledges) + 1);
	return c->irq->intid;
}

/* Returns the INTID, or INTID_SPURIOUS. */
static __attribute__((noinline)) uint32_t acknowledge_by_search(struct vgic_vcpu *vcpu, unsigned group)
{
	struct candidate c;

	if (acknowledge_signalled(vcpu, group, &c))
		return activate(vcpu, group, &c);
	store_relaxed(&vcpu->spurious, load_relaxed(&vcpu->spurious) + 1);
	return INTID_SPURIOUS;
}

/*
 * The way of almost every interrupt, without a loop: the first hint leads to it. False
 * if it does not, and nothing was acknowledged.
 */
static inline __attribute__((always_inline)) bool acknowledge_at_once(struct vgic_vcpu *vcpu, unsigned group,
								      struct candidate *c)
{
	const uint64_t levels = load_relaxed(&vcpu->pending.mask) & load_seq_cst(&vcpu->vgic->group_mask);

	if (vcpu->cpuif.groups_may_block || !load_relaxed(&vcpu->online) || !pending_find_at_once(vcpu, levels, c) ||
	    candidate_group(c) != group || !pending_claim(vcpu, c))
		return false;
	if (__builtin_expect(group_is_enabled(vcpu, c), 1))
		return true;
	take_back(vcpu->vgic, c->irq, c->word);
	return false;
}

static inline __attribute__((always_inline)) uint32_t acknowledge(struct vgic_vcpu *vcpu, unsigned group)
{
	struct candidate c;
	uint32_t intid;
	DELIVERS_WITHOUT_LOCKS;

	ack_begin(vcpu);
	intid = acknowledge_at_once(vcpu, group, &c) ? activate(vcpu, group, &c) : acknowledge_by_search(vcpu, group);
	ack_end(vcpu);
	return intid;
}

/* ---- Priority drop and deactivation ------------------------------------------------ */

static void deactivate(struct vgic_vcpu *vcpu, uint32_t intid, enum vgic_guest_error_kind error, const char *what)
{
	struct vgic *vgic = vcpu->vgic;
	struct irq *irq = irq_by_intid(vcpu, intid);

	if (!irq)
		return;
	if (!irq_deactivate_and_tell(vgic, intid < NUM_PRIVATE ? vcpu : NULL, irq))
		guest_error(vgic, error, what, intid, 0);
}

/* INTIDs that an EOI ignores: the special ones, and those that no interrupt can have. */
static bool intid_is_special(uint32_t intid)
{
	return intid >= FIRST_SPECIAL && intid < FIRST_LPI;
}

static inline __attribute__((always_inline)) void end_of_interrupt(struct vgic_vcpu *vcpu, unsigned group,
								   uint32_t intid, const char *what)
{
	struct cpuif *c = &vcpu->cpuif;
	const uint32_t active = c->apr[0] | c->apr[1], running = active & -active;
	DELIVERS_WITHOUT_LOCKS;

	if (intid_is_special(intid))
		return;
	/* The highest active priority is dropped, if it is one of this group; in both it is Group 0's. */
	if (!(c->apr[group] & running) || (group == 1 && (c->apr[0] & running))) {
		guest_error(vcpu->vgic, VGIC_GUEST_EOI_UNEXPECTED, what, intid, 0);
		return;
	}
	c->apr[group] &= ~running;
	publish_mask(vcpu);
	if (intid < FIRST_LPI && !(c->ctlr & ICC_CTLR_EOIMODE))
		deactivate(vcpu, intid, VGIC_GUEST_EOI_UNEXPECTED, what);
}

/* ---- The registers --------------------------------------------------------------- */

static uint64_t read_iar0(struct vgic_vcpu *vcpu)
{
	return acknowledge(vcpu, 0);
}

static uint64_t read_hppir0(struct vgic_vcpu *vcpu)
{
	return highest_pending(vcpu, 0);
}

static uint64_t read_hppir1(struct vgic_vcpu *vcpu)
{
	return highest_pending(vcpu, 1);
}

static void write_eoir0(struct vgic_vcpu *vcpu, uint64_t value)
{
	end_of_interrupt(vcpu, 0, value & INTID_MASK, "ICC_EOIR0_EL1");
}

static void write_dir(struct vgic_vcpu *vcpu, uint64_t value)
{
	const uint32_t intid = value & INTID_MASK;
	DELIVERS_WITHOUT_LOCKS;

	if (!(vcpu->cpuif.ctlr & ICC_CTLR_EOIMODE))
		guest_error(vcpu->vgic, VGIC_GUEST_DIR_UNEXPECTED, "ICC_DIR_EL1 with EOImode=0", intid, value);
	else if (!irq_by_intid(vcpu, intid))
		guest_error(vcpu->vgic, VGIC_GUEST_DIR_UNEXPECTED, "ICC_DIR_EL1", intid, value);
	else
		deactivate(vcpu, intid, VGIC_GUEST_DIR_UNEXPECTED, "ICC_DIR_EL1");
}

static uint64_t read_pmr(struct vgic_vcpu *vcpu)
{
	return vcpu->cpuif.pmr;
}

static void write_pmr(struct vgic_vcpu *vcpu, uint64_t value)
{
	vcpu->cpuif.pmr = value & PRIORITY_MASK;
	update_masks(vcpu);
}

static uint64_t read_rpr(struct vgic_vcpu *vcpu)
{
	const unsigned running = running_priority(&vcpu->cpuif);

	return running < NUM_PRIORITIES ? running << PRIORITY_SHIFT : ICC_RPR_IDLE;
}

static uint64_t read_bpr0(struct vgic_vcpu *vcpu)
{
	return vcpu->cpuif.bpr[0];
}

/* With a common binary point ICC_BPR1 shows ICC_BPR0 in its own terms. */
static uint64_t read_bpr1(struct vgic_vcpu *vcpu)
{
	const struct cpuif *c = &vcpu->cpuif;

	if (!(c->ctlr & ICC_CTLR_CBPR))
		return c->bpr[1];
	return c->bpr[0] < BPR_MAX ? c->bpr[0] + 1u : BPR_MAX;
}

static void write_bpr(struct vgic_vcpu *vcpu, unsigned group, uint64_t value, unsigned min)
{
	const unsigned bpr = value & BPR_MAX;

	vcpu->cpuif.bpr[group] = (uint8_t)(bpr < min ? min : bpr);
	update_binary_points(vcpu);
}

static void write_bpr0(struct vgic_vcpu *vcpu, uint64_t value)
{
	write_bpr(vcpu, 0, value, BPR0_MIN);
}

static void write_bpr1(struct vgic_vcpu *vcpu, uint64_t value)
{
	if (!(vcpu->cpuif.ctlr & ICC_CTLR_CBPR))
		write_bpr(vcpu, 1, value, BPR1_MIN);
}

static uint64_t read_ap0r0(struct vgic_vcpu *vcpu)
{
	return vcpu->cpuif.apr[0];
}

static uint64_t read_ap1r0(struct vgic_vcpu *vcpu)
{
	return vcpu->cpuif.apr[1];
}

static void write_apr(struct vgic_vcpu *vcpu, unsigned group, uint64_t value)
{
	vcpu->cpuif.apr[group] = (uint32_t)value;
	publish_mask(vcpu);
}

static void write_ap0r0(struct vgic_vcpu *vcpu, uint64_t value)
{
	write_apr(vcpu, 0, value);
}

static void write_ap1r0(struct vgic_vcpu *vcpu, uint64_t value)
{
	write_apr(vcpu, 1, value);
}

static uint64_t read_ctlr(struct vgic_vcpu *vcpu)
{
	const struct vgic *vgic = vcpu->vgic;
	uint64_t value = vcpu->cpuif.ctlr | (PRIORITY_BITS - 1) << ICC_CTLR_PRIBITS_SHIFT;

	if (vgic_has(vgic, VGIC_FEATURE_ICC_ID24) || (vgic_has(vgic, VGIC_FEATURE_LPIS) && vgic->lpi_id_bits > 16))
		value |= 1u << ICC_CTLR_IDBITS_SHIFT; /* 24 bits of INTID: the only size beside 16 */
	if (vgic_has(vgic, VGIC_FEATURE_A3V) || vgic_has(vgic, VGIC_FEATURE_ICC_A3V))
		value |= ICC_CTLR_A3V;
	if (vgic_has(vgic, VGIC_FEATURE_RSS))
		value |= ICC_CTLR_RSS;
	return value;
}

static void write_ctlr(struct vgic_vcpu *vcpu, uint64_t value)
{
	vcpu->cpuif.ctlr = value & (ICC_CTLR_CBPR | ICC_CTLR_EOIMODE);
	update_binary_points(vcpu);
}

/* The system register interface is the only one, and it is never bypassed. */
static uint64_t read_sre(struct vgic_vcpu *vcpu)
{
	(void)vcpu;
	return ICC_SRE_SRE | ICC_SRE_DFB | ICC_SRE_DIB;
}

static void write_sre(struct vgic_vcpu *vcpu, uint64_t value)
{
	(void)vcpu;
	(void)value;
}

static uint64_t read_igrpen0(struct vgic_vcpu *vcpu)
{
	return vcpu->cpuif.igrpen[0];
}

static uint64_t read_igrpen1(struct vgic_vcpu *vcpu)
{
	return vcpu->cpuif.igrpen[1];
}

static void write_igrpen(struct vgic_vcpu *vcpu, unsigned group, uint64_t value)
{
	const bool enable = value & 1;

	if (vcpu->cpuif.igrpen[group] == enable)
		return;
	vcpu->cpuif.igrpen[group] = enable;
	update_masks(vcpu);
	if (!vgic_has(vcpu->vgic, VGIC_FEATURE_ONE_OF_N))
		return;
	config_lock(vcpu->vgic);
	vcpu->group_enabled[group] = enable;
	one_of_n_update(vcpu);
	config_unlock(vcpu->vgic);
}

static void write_igrpen0(struct vgic_vcpu *vcpu, uint64_t value)
{
	write_igrpen(vcpu, 0, value);
}

static void write_igrpen1(struct vgic_vcpu *vcpu, uint64_t value)
{
	write_igrpen(vcpu, 1, value);
}

static void write_sgi1r(struct vgic_vcpu *vcpu, uint64_t value)
{
	sgi_send(vcpu, value, SGI_REACHES_BOTH_GROUPS);
}

/* One security state: the "alternate" state of ICC_ASGI1R is the one that ICC_SGI0R is for. */
static void write_sgi0r(struct vgic_vcpu *vcpu, uint64_t value)
{
	sgi_send(vcpu, value, SGI_REACHES_GROUP0);
}

/* ---- Dispatch ---------------------------------------------------------------------- */

struct icc_register {
	const char *name; /* NULL: not a register of the GIC */
	uint64_t (*read)(struct vgic_vcpu *vcpu);
	void (*write)(struct vgic_vcpu *vcpu, uint64_t value);
};

/* All but ICC_PMR_EL1 are op0=3, op1=0, CRn=12: CRm and op2 tell them apart. */
#define ICC_FIRST                    VGIC_SYSREG(3, 0, 12, 0, 0)
#define ICC_NUM                      128u
#define ICC(reg)                     [VGIC_ICC_##reg##_EL1 - ICC_FIRST]
#define UNIMPLEMENTED(crm, op2, reg) [VGIC_SYSREG(3, 0, 12, crm, op2) - ICC_FIRST] = { reg, NULL, NULL }

// clang-format off
static const struct icc_register icc_registers[ICC_NUM] = {
	ICC(IAR0)    = { "ICC_IAR0_EL1",    read_iar0,    NULL },
	ICC(EOIR0)   = { "ICC_EOIR0_EL1",   NULL,         write_eoir0 },
	ICC(HPPIR0)  = { "ICC_HPPIR0_EL1",  read_hppir0,  NULL },
	ICC(BPR0)    = { "ICC_BPR0_EL1",    read_bpr0,    write_bpr0 },
	ICC(AP0R0)   = { "ICC_AP0R0_EL1",   read_ap0r0,   write_ap0r0 },
	ICC(AP1R0)   = { "ICC_AP1R0_EL1",   read_ap1r0,   write_ap1r0 },
	ICC(DIR)     = { "ICC_DIR_EL1",     NULL,         write_dir },
	ICC(RPR)     = { "ICC_RPR_EL1",     read_rpr,     NULL },
	ICC(SGI1R)   = { "ICC_SGI1R_EL1",   NULL,         write_sgi1r },
	ICC(ASGI1R)  = { "ICC_ASGI1R_EL1",  NULL,         write_sgi0r },
	ICC(SGI0R)   = { "ICC_SGI0R_EL1",   NULL,         write_sgi0r },
	ICC(IAR1)    = { "ICC_IAR1_EL1",    NULL,         NULL },
	ICC(EOIR1)   = { "ICC_EOIR1_EL1",   NULL,         NULL },
	ICC(HPPIR1)  = { "ICC_HPPIR1_EL1",  read_hppir1,  NULL },
	ICC(BPR1)    = { "ICC_BPR1_EL1",    read_bpr1,    write_bpr1 },
	ICC(CTLR)    = { "ICC_CTLR_EL1",    read_ctlr,    write_ctlr },
	ICC(SRE)     = { "ICC_SRE_EL1",     read_sre,     write_sre },
	ICC(IGRPEN0) = { "ICC_IGRPEN0_EL1", read_igrpen0, write_igrpen0 },
	ICC(IGRPEN1) = { "ICC_IGRPEN1_EL1", read_igrpen1, write_igrpen1 },
	/* For more than 5 bits of priority; UNDEFINED with 5. */
	UNIMPLEMENTED(8, 5, "ICC_AP0R1_EL1"),
	UNIMPLEMENTED(8, 6, "ICC_AP0R2_EL1"),
	UNIMPLEMENTED(8, 7, "ICC_AP0R3_EL1"),
	UNIMPLEMENTED(9, 1, "ICC_AP1R1_EL1"),
	UNIMPLEMENTED(9, 2, "ICC_AP1R2_EL1"),
	UNIMPLEMENTED(9, 3, "ICC_AP1R3_EL1"),
};
// clang-format on

static const struct icc_register icc_pmr = { "ICC_PMR_EL1", read_pmr, write_pmr };

static const struct icc_register *find_register(uint32_t reg)
{
	if (reg - ICC_FIRST < ICC_NUM)
		return &icc_registers[reg - ICC_FIRST];
	return reg == VGIC_ICC_PMR_EL1 ? &icc_pmr : NULL;
}

static int undefined(struct vgic_vcpu *vcpu, const struct icc_register *r, uint32_t reg, uint64_t value)
{
	if (!r || !r->name)
		return -ENOENT;
	guest_error(vcpu->vgic, VGIC_GUEST_ICC_UNDEFINED, r->name, reg, value);
	return -EACCES;
}

/* The two registers that every interrupt takes are not called through the table, but at once. */

int vgic_icc_read(struct vgic_vcpu *vcpu, uint32_t reg, uint64_t *value)
{
	const struct icc_register *r;

	if (__builtin_expect(reg == VGIC_ICC_IAR1_EL1, 1)) {
		*value = acknowledge(vcpu, 1);
		vcpu_report_lines(vcpu);
		return 0;
	}
	r = find_register(reg);
	if (!r || !r->read)
		return undefined(vcpu, r, reg, 0);
	*value = r->read(vcpu);
	vcpu_report_lines(vcpu);
	return 0;
}

int vgic_icc_write(struct vgic_vcpu *vcpu, uint32_t reg, uint64_t value)
{
	const struct icc_register *r;

	if (__builtin_expect(reg == VGIC_ICC_EOIR1_EL1, 1)) {
		end_of_interrupt(vcpu, 1, value & INTID_MASK, "ICC_EOIR1_EL1");
		vcpu_report_lines(vcpu);
		return 0;
	}
	r = find_register(reg);
	if (!r || !r->write)
		return undefined(vcpu, r, reg, value);
	r->write(vcpu, value);
	vcpu_report_lines(vcpu);
	return 0;
}

/* ---- The VMM's accesses ------------------------------------------------------------- */

/* ICC_AP0R1-3 and ICC_AP1R1-3: five priority bits do not have them. */
static bool is_higher_apr(uint32_t reg)
{
	return (reg & 3) && ((reg & ~3u) == VGIC_ICC_AP0R0_EL1 || (reg & ~3u) == VGIC_ICC_AP1R0_EL1);
}

/*
 * What can be both read and written is the state of the CPU interface. Registers that
 * five priority bits do not have are known, and refused.
 */
static const struct icc_register *find_state_register(uint32_t reg)
{
	const struct icc_register *r = find_register(reg);

	return r && ((r->read && r->write) || is_higher_apr(reg)) ? r : NULL;
}

int cpuif_user_has(uint32_t reg)
{
	return find_state_register(reg) ? 0 : -ENXIO;
}

int cpuif_user_read(struct vgic_vcpu *vcpu, uint32_t reg, uint64_t *value)
{
	const struct icc_register *r = find_state_register(reg);

	if (!r)
		return -ENXIO;
	if (!r->read)
		return -EINVAL;
	*value = r->read(vcpu);
	return 0;
}

/* Does this controller have what a guest was shown in ICC_CTLR elsewhere? */
static bool ctlr_is_compatible(struct vgic_vcpu *vcpu, uint64_t value)
{
	const uint64_t here = read_ctlr(vcpu), same = ICC_CTLR_PRIBITS | ICC_CTLR_SEIS | ICC_CTLR_A3V;

	return !((value ^ here) & same) && (value & ICC_CTLR_IDBITS) <= (here & ICC_CTLR_IDBITS);
}

static bool value_is_refused(struct vgic_vcpu *vcpu, uint32_t reg, uint64_t value)
{
	if (reg == VGIC_ICC_CTLR_EL1)
		return !ctlr_is_compatible(vcpu, value);
	return reg == VGIC_ICC_SRE_EL1 && !(value & ICC_SRE_SRE);
}

int cpuif_user_write(struct vgic_vcpu *vcpu, uint32_t reg, uint64_t value)
{
	const struct icc_register *r = find_state_register(reg);

	if (!r)
		return -ENXIO;
	if (!r->write || value_is_refused(vcpu, reg, value))
		return -EINVAL;
	r->write(vcpu, value);
	/* The vCPU is stopped, but may be waiting: its lines may be others now. */
	vcpu_kick(vcpu);
	return 0;
}

void cpuif_get(const struct vgic_vcpu *vcpu, struct cpuif_registers *r)
{
	const struct cpuif *c = &vcpu->cpuif;

	*r = (struct cpuif_registers){
		.ctlr = c->ctlr,
		.apr = { c->apr[0], c->apr[1] },
		.pmr = c->pmr,
		.bpr = { c->bpr[0], c->bpr[1] },
		.igrpen = { c->igrpen[0], c->igrpen[1] },
	};
}

bool cpuif_could_be(const struct cpuif_registers *r)
{
	return !(r->ctlr & ~(ICC_CTLR_CBPR | ICC_CTLR_EOIMODE)) && !(r->pmr & ~PRIORITY_MASK) &&
	       r->bpr[0] >= BPR0_MIN && r->bpr[0] <= BPR_MAX && r->bpr[1] >= BPR1_MIN && r->bpr[1] <= BPR_MAX;
}

void cpuif_set(struct vgic_vcpu *vcpu, const struct cpuif_registers *r)
{
	struct cpuif *c = &vcpu->cpuif;

	c->ctlr = r->ctlr;
	c->pmr = r->pmr;
	for (unsigned group = 0; group < 2; group++) {
		c->bpr[group] = r->bpr[group];
		c->apr[group] = r->apr[group];
		c->igrpen[group] = r->igrpen[group];
		vcpu->group_enabled[group] = r->igrpen[group] && vgic_has(vcpu->vgic, VGIC_FEATURE_ONE_OF_N);
	}
	update_binary_points(vcpu);
}
