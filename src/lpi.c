/* SPDX-License-Identifier: MIT */
/*
 * lpi.c - LPIs and the redistributors' LPI registers.
 *
 * An LPI's word has everything that a signal needs to know: is it mapped, with
 * which generation, to which vCPU, and has that one EnableLPIs set (HELD if not).
 * A signal is one CAS on one snapshot. What turns signals away therefore has to
 * reach the word of each LPI: clearing EnableLPIs walks all of them, in parts of
 * bounded length, and holds RWP until it has; after that nothing that was on its
 * way is delivered any more.
 *
 * The configuration table is read at mapping, INV and INVALL, GICR_INVLPIR and
 * GICR_INVALLR, and when EnableLPIs is set; in between the word is what counts.
 * There is one GICR_PROPBASER for all redistributors (CommonLPIAff=0).
 */
#include "lpi.h"

#include "baser.h"
#include "bytes.h"
#include "gic_regs.h"
#include "guestmem.h"
#include "irq_change.h"
#include "lpi_signal.h"
#include "work.h"

/* A walk goes through the LPIs in groups: one word of the pending table, and one line of the configuration table. */
#define GROUP_SIZE     64u
#define STEPS_OF_GROUP 16

/* ---- Signals of LPIs that are held ---------------------------------------------------------- */

/*
 * HELD is set by a walk that follows a clear of EnableLPIs, and cleared by one that
 * follows a set. Between a set and that walk a signal is kept, though not yet
 * deliverable: the guest has enabled LPIs and may lose none.
 *
 * The word of a held LPI is the same before a set and after the next clear: the
 * CAS alone does not show that EnableLPIs went through both meanwhile. So the
 * signaller counts itself before it looks at EnableLPIs again, and the walk of a
 * clear begins when none is counted that may have seen it set.
 */
enum lpi_result lpi_signal_held(struct vgic *vgic, struct irq *irq, irq_word word)
{
	struct vgic_vcpu *vcpu = vgic->vcpus[irq_target(word)];
	enum lpi_result result = LPI_HELD;
	irq_word old = word;

	/* Not counted if it is off: a storm of signals must not hold RWP. */
	if (!load_acquire(&vcpu->lpis_enabled))
		return LPI_HELD;
	atomic_fetch_add_explicit(&vcpu->early_signals, 1, memory_order_seq_cst);
	if (load_seq_cst(&vcpu->lpis_enabled)) {
		result = LPI_STALE;
		while (result == LPI_STALE && !((old ^ word) & ~IRQ_PENDING)) {
			if (atomic_compare_exchange_weak_explicit(&irq->word, &old, old | IRQ_PENDING,
								  memory_order_acq_rel, memory_order_relaxed))
				result = LPI_PENDING;
		}
	}
	atomic_fetch_sub_explicit(&vcpu->early_signals, 1, memory_order_seq_cst);
	return result;
}

/* ---- Target and mapping ------------------------------------------------------------------ */

uint32_t lpi_intid_end(const struct vgic *vgic)
{
	const uint32_t guest_bits = (vgic->propbaser & GICR_PROPBASER_IDBITS) + 1;
	const uint32_t bits = guest_bits < vgic->lpi_id_bits ? guest_bits : vgic->lpi_id_bits;

	return bits < VGIC_MIN_LPI_BITS ? FIRST_LPI : UINT32_C(1) << bits;
}

/* TARGET and HELD for a vCPU, as irq_lpi_place() takes them. */
static uint64_t place_at(const struct vgic *vgic, uint32_t target)
{
	const bool held = target != IRQ_NO_TARGET && !load_relaxed(&vgic->vcpus[target]->lpis_enabled);

	return target | (held ? IRQ_PLACE_HELD : 0);
}

static void count_target(struct vgic *vgic, irq_word old, uint32_t target)
{
	if (irq_target(old) != IRQ_NO_TARGET)
		vgic->vcpus[irq_target(old)]->num_lpis--;
	if (target != IRQ_NO_TARGET)
		vgic->vcpus[target]->num_lpis++;
}

void lpi_set_target(struct vgic *vgic, struct irq *irq, uint32_t target)
{
	count_target(vgic, irq_change(vgic, irq, irq_lpi_place, place_at(vgic, target)), target);
}

/* A translation to the LPI appears, by a transition that says so: irq_lpi_map or irq_lpi_restore. */
static inline uint64_t map_by(struct vgic *vgic, struct irq *irq, uint32_t target, irq_transition transition,
			      uint64_t arg)
{
	irq->mappings++;
	count_target(vgic, irq_change(vgic, irq, transition, arg), target);
	return lpi_value(vgic, irq);
}

uint64_t lpi_map(struct vgic *vgic, struct irq *irq, uint32_t target)
{
	lpi_read_config(vgic, irq);
	return map_by(vgic, irq, target, irq_lpi_map, place_at(vgic, target));
}

uint64_t lpi_map_restored(struct vgic *vgic, struct irq *irq, uint32_t target, uint8_t property, bool pending)
{
	const irq_word bits = IRQ_MAPPED | (property & 1 ? IRQ_ENABLED : 0) | (pending ? IRQ_PENDING : 0);

	return map_by(vgic, irq, target, irq_lpi_restore, irq_lpi_state(place_at(vgic, target), property, bits));
}

void lpi_unmap(struct vgic *vgic, struct irq *irq)
{
	if (--irq->mappings > 0) {
		/*
		 * Another event leads here. The pending state goes with this one; a signal of this one that is on its way
		 * cannot be told from one of the other, and counts as such.
		 */
		lpi_clear_pending(vgic, irq);
		return;
	}
	count_target(vgic, irq_change(vgic, irq, irq_lpi_unmap, 0), IRQ_NO_TARGET);
}

void lpi_clear_pending(struct vgic *vgic, struct irq *irq)
{
	irq_change(vgic, irq, irq_unlatch, 0);
}

/* ---- Configuration table ------------------------------------------------------------------ */

uint64_t lpi_property_address(const struct vgic *vgic, uint32_t lpi)
{
	return (vgic->propbaser & GICR_PROPBASER_ADDRESS) + lpi;
}

void lpi_read_config(struct vgic *vgic, struct irq *irq)
{
	const uint32_t lpi = (uint32_t)(irq - vgic->lpis);
	uint8_t property = 0;

	if (irq->intid >= lpi_intid_end(vgic))
		return;
	guest_read(vgic, lpi_property_address(vgic, lpi), &property, 1);
	irq_change(vgic, irq, irq_lpi_configure, property);
}

/* ---- Walks ---------------------------------------------------------------------------------- */

/* The LPIs of one group that are at the walk's vCPU, as bits. */
static uint64_t group_members(struct vgic *vgic, const struct lpi_walk *walk, uint32_t n)
{
	uint64_t members = 0;

	for (uint32_t i = 0; i < n; i++) {
		if (irq_target(load_relaxed(&vgic->lpis[walk->at + i].word)) == walk->vcpu)
			members |= UINT64_C(1) << i;
	}
	return members;
}

uint64_t lpi_pending_address(const struct vgic_vcpu *vcpu, uint32_t lpi)
{
	return (vcpu->pendbaser & GICR_PENDBASER_ADDRESS) + (FIRST_LPI + lpi) / 8;
}

static void configure_group(struct vgic *vgic, uint32_t first, uint32_t n, uint64_t members)
{
	uint8_t properties[GROUP_SIZE];

	if (!members)
		return;
	guest_read(vgic, lpi_property_address(vgic, first), properties, n);
	for (; members; members &= members - 1) {
		const uint32_t i = (uint32_t)__builtin_ctzll(members);

		irq_change(vgic, &vgic->lpis[first + i], irq_lpi_configure, properties[i]);
	}
}

/*
 * Has the group entries in the guest's tables? GICR_PROPBASER.IDbits is one for all:
 * a redistributor that is off can narrow it under the mapped LPIs of the others.
 * Such LPIs are enabled and held with the rest.
 */
static bool group_is_in_tables(const struct vgic *vgic, const struct lpi_walk *walk)
{
	return walk->at < lpi_intid_end(vgic) - FIRST_LPI;
}

/* The LPIs of one group that are mapped nowhere, as bits. */
static uint64_t group_strays(struct vgic *vgic, const struct lpi_walk *walk, uint32_t n)
{
	uint64_t strays = 0;

	for (uint32_t i = 0; i < n; i++) {
		const irq_word w = load_relaxed(&vgic->lpis[walk->at + i].word);

		if (!(w & IRQ_MAPPED) && irq_target(w) == IRQ_NO_TARGET)
			strays |= UINT64_C(1) << i;
	}
	return strays;
}

/*
 * EnableLPIs was set. A bit of the pending table counts for an LPI that is at this
 * vCPU, and for one that is mapped nowhere: a pending LPI needs no mapping.
 */
static void enable_group(struct vgic *vgic, const struct lpi_walk *walk, uint32_t n)
{
	struct vgic_vcpu *vcpu = vgic->vcpus[walk->vcpu];
	struct irq *group = &vgic->lpis[walk->at];
	const bool in_tables = group_is_in_tables(vgic, walk);
	uint64_t members = group_members(vgic, walk, n), pending = 0, strays = 0;

	if (in_tables && !vcpu->pending_table_is_zero)
		guest_read_u64(vgic, lpi_pending_address(vcpu, walk->at), &pending);
	if (pending)
		strays = pending & group_strays(vgic, walk, n);
	for (uint64_t bits = strays; bits; bits &= bits - 1)
		lpi_set_target(vgic, &group[__builtin_ctzll(bits)], walk->vcpu);
	members |= strays;
	for (uint64_t bits = pending & members; bits; bits &= bits - 1)
		irq_change(vgic, &group[__builtin_ctzll(bits)], irq_latch, 0);
	if (in_tables)
		configure_group(vgic, walk->at, n, members);
	for (; members; members &= members - 1)
		irq_change(vgic, &group[__builtin_ctzll(members)], irq_clear_bits, IRQ_HELD);
}

static void write_pending(struct vgic *vgic, uint64_t address, uint64_t pending)
{
	uint8_t bytes[8];

	bytes_put_u64(bytes, pending);
	guest_write(vgic, address, bytes, sizeof(bytes));
}

/* EnableLPIs was cleared. What the set before it had not come to read stays in the table. */
static void disable_group(struct vgic *vgic, const struct lpi_walk *walk, uint32_t n)
{
	struct vgic_vcpu *vcpu = vgic->vcpus[walk->vcpu];
	const bool in_tables = group_is_in_tables(vgic, walk);
	const uint64_t members = group_members(vgic, walk, n);
	uint64_t table = 0, pending = 0;

	if (in_tables)
		guest_read_u64(vgic, lpi_pending_address(vcpu, walk->at), &table);
	if (table && walk->at >= walk->unread)
		pending = table & (members | group_strays(vgic, walk, n));
	for (uint64_t bits = members; bits; bits &= bits - 1) {
		struct irq *irq = &vgic->lpis[walk->at + (uint32_t)__builtin_ctzll(bits)];

		if (irq_change(vgic, irq, irq_lpi_hold, 0) & IRQ_PENDING)
			pending |= bits & -bits;
	}
	if (in_tables && pending != table)
		write_pending(vgic, lpi_pending_address(vcpu, walk->at), pending);
}

static void move_group(struct vgic *vgic, const struct lpi_walk *walk, uint32_t n)
{
	for (uint64_t members = group_members(vgic, walk, n); members; members &= members - 1)
		lpi_set_target(vgic, &vgic->lpis[walk->at + (uint32_t)__builtin_ctzll(members)], walk->new_vcpu);
}

void lpi_walk_begin(struct lpi_walk *walk, enum lpi_walk_kind kind, uint32_t vcpu, uint32_t new_vcpu)
{
	*walk = (struct lpi_walk){ .kind = kind, .vcpu = vcpu, .new_vcpu = new_vcpu, .unread = UINT32_MAX };
}

/* Is there anything in this walk for which LPIs have to be looked at? */
static bool walk_is_needed(const struct vgic *vgic, const struct lpi_walk *walk)
{
	const struct vgic_vcpu *vcpu = vgic->vcpus[walk->vcpu];

	if (walk->kind == LPI_WALK_ENABLE && !vcpu->pending_table_is_zero)
		return true;
	return walk->kind == LPI_WALK_DISABLE || vcpu->num_lpis > 0;
}

/* Only what reads nothing but the configuration table may end where that does. */
static uint32_t walk_end(const struct vgic *vgic, const struct lpi_walk *walk)
{
	return walk->kind == LPI_WALK_INVALIDATE ? lpi_intid_end(vgic) - FIRST_LPI : vgic->num_lpis;
}

/*
 * The pending state is in the table now, whatever was said of it before. RWP waits
 * also for an acknowledge that has taken an LPI before the walk came by.
 */
static void finish_disable(struct vgic_vcpu *vcpu)
{
	vcpu->pending_table_is_zero = false;
	ack_note(vcpu, &vcpu->redist_wait);
}

bool lpi_walk(struct vgic *vgic, struct lpi_walk *walk, int *steps)
{
	const uint32_t end = walk_end(vgic, walk);

	if (walk->kind == LPI_WALK_NONE)
		return true;
	if (walk->at == 0 && walk->kind == LPI_WALK_DISABLE && load_seq_cst(&vgic->vcpus[walk->vcpu]->early_signals))
		return false;
	if (walk->at == 0 && !walk_is_needed(vgic, walk))
		walk->at = end;
	for (; *steps > 0 && walk->at < end; walk->at += GROUP_SIZE, *steps -= STEPS_OF_GROUP) {
		const uint32_t n = end - walk->at < GROUP_SIZE ? end - walk->at : GROUP_SIZE;

		if (walk->kind == LPI_WALK_ENABLE)
			enable_group(vgic, walk, n);
		else if (walk->kind == LPI_WALK_DISABLE)
			disable_group(vgic, walk, n);
		else if (walk->kind == LPI_WALK_INVALIDATE)
			configure_group(vgic, walk->at, n, group_members(vgic, walk, n));
		else
			move_group(vgic, walk, n);
	}
	if (walk->at < end)
		return false;
	if (walk->kind == LPI_WALK_DISABLE)
		finish_disable(vgic->vcpus[walk->vcpu]);
	walk->kind = LPI_WALK_NONE;
	return true;
}

bool redist_run_work(struct vgic_vcpu *vcpu, int *steps)
{
	return lpi_walk(vcpu->vgic, &vcpu->enable_walk, steps) && lpi_walk(vcpu->vgic, &vcpu->invalidate_walk, steps);
}

void redist_finish_work(struct vgic_vcpu *vcpu)
{
	int steps;

	do {
		steps = WORK_STEPS;
	} while (!redist_run_work(vcpu, &steps));
}

uint64_t lpi_restore_mapping(struct vgic *vgic, struct irq *irq)
{
	irq->mappings++;
	return lpi_value(vgic, irq);
}

/*
 * A store does: nobody else writes the word between the reset and the end of a restore. A signal that was on its way has a
 * generation of before, one that comes is turned away by the pause, and the vCPUs are stopped.
 */
void lpi_restore(struct vgic *vgic, struct irq *irq, uint32_t target, uint8_t priority, irq_word bits)
{
	const uint64_t state = irq_lpi_state(place_at(vgic, target), priority, bits | (irq->mappings ? IRQ_MAPPED : 0));
	const irq_word old = load_relaxed(&irq->word), new = irq_lpi_restore(old, state);

	store_release(&irq->word, new);
	irq_settle(vgic, irq, old, new);
	count_target(vgic, old, target);
}

/*
 * A store here, too: what a signal does to the word meanwhile came before the reset, and is gone with it; its hint is a
 * stale one. No vCPU is told of what is withdrawn (R8): a restore kicks all, a reset those whose lines are mirrored, and
 * behind a reset nothing is left that had been hidden.
 */
static void reset_lpi(struct irq *irq)
{
	irq->mappings = 0;
	store_release(&irq->word, irq_lpi_reset(load_relaxed(&irq->word), 0));
}

void lpi_reset(struct vgic *vgic)
{
	const bool shows_attributes = vgic->profile == VGIC_PROFILE_KVM && vgic_has(vgic, VGIC_FEATURE_LPIS);
	const uint64_t baser = shows_attributes ? GICR_TABLES_RESET_KVM : 0;

	for (uint32_t i = 0; i < vgic->num_lpis; i++)
		reset_lpi(&vgic->lpis[i]);
	for (uint32_t i = 0; i < vgic->num_vcpus; i++) {
		struct vgic_vcpu *vcpu = vgic->vcpus[i];

		store_release(&vcpu->lpis_enabled, false);
		vcpu->num_lpis = 0;
		vcpu->pendbaser = baser;
		vcpu->pending_table_is_zero = false;
		lpi_walk_begin(&vcpu->enable_walk, LPI_WALK_NONE, i, 0);
		lpi_walk_begin(&vcpu->invalidate_walk, LPI_WALK_NONE, i, 0);
	}
	vgic->propbaser = baser;
}

/* ---- Registers --------------------------------------------------------------------------------- */

uint64_t lpi_ctlr_read(struct vgic_vcpu *vcpu)
{
	uint64_t value = 0;

	if (load_relaxed(&vcpu->lpis_enabled))
		value |= GICR_CTLR_ENABLE_LPIS;
	if (vcpu->enable_walk.kind == LPI_WALK_DISABLE)
		value |= GICR_CTLR_RWP;
	return value;
}

/* Returns true if the write has left work to do. While RWP is 1 for the bit, writes to it are ignored. */
bool lpi_ctlr_write(struct vgic_vcpu *vcpu, uint32_t value)
{
	const bool enable = value & GICR_CTLR_ENABLE_LPIS;
	uint32_t unread = UINT32_MAX;

	if (enable == load_relaxed(&vcpu->lpis_enabled) || vcpu->enable_walk.kind == LPI_WALK_DISABLE)
		return false;
	store_seq_cst(&vcpu->lpis_enabled, enable);
	if (vcpu->enable_walk.kind == LPI_WALK_ENABLE && !vcpu->pending_table_is_zero)
		unread = vcpu->enable_walk.at;
	lpi_walk_begin(&vcpu->enable_walk, enable ? LPI_WALK_ENABLE : LPI_WALK_DISABLE, vcpu->index, 0);
	vcpu->enable_walk.unread = unread;
	return true;
}

uint64_t propbaser_read(const struct frame_access *a)
{
	uint64_t value;

	config_lock(a->vgic);
	value = a->vgic->propbaser;
	config_unlock(a->vgic);
	return value;
}

static uint64_t accept_baser(const struct vgic *vgic, uint64_t old, uint64_t value, uint64_t mask, uint64_t writable)
{
	return baser_accept(vgic, BASER_LAYOUT_GICR, frame_merge(old, value, mask) & writable);
}

void propbaser_write(const struct frame_access *a, uint64_t value, uint64_t mask)
{
	struct vgic *vgic = a->vgic;

	if (!vgic_has(vgic, VGIC_FEATURE_LPIS))
		return;
	config_lock(vgic);
	if (!load_relaxed(&a->vcpu->lpis_enabled))
		vgic->propbaser = accept_baser(vgic, vgic->propbaser, value, mask, GICR_PROPBASER_WRITABLE);
	config_unlock(vgic);
}

/* PTZ is write-only: it says that the table is all zeros, and reads as zero. */
uint64_t pendbaser_read(const struct frame_access *a)
{
	uint64_t value;

	config_lock(a->vgic);
	value = a->vcpu->pendbaser;
	config_unlock(a->vgic);
	return value;
}

void pendbaser_write(const struct frame_access *a, uint64_t value, uint64_t mask)
{
	struct vgic_vcpu *vcpu = a->vcpu;

	if (!vgic_has(a->vgic, VGIC_FEATURE_LPIS))
		return;
	config_lock(a->vgic);
	if (!load_relaxed(&vcpu->lpis_enabled) && vcpu->enable_walk.kind == LPI_WALK_NONE) {
		vcpu->pendbaser = accept_baser(a->vgic, vcpu->pendbaser, value, mask, GICR_PENDBASER_WRITABLE);
		if (mask & GICR_PENDBASER_PTZ)
			vcpu->pending_table_is_zero = value & GICR_PENDBASER_PTZ;
	}
	config_unlock(a->vgic);
}

/* The LPI that a write of INVLPIR, SETLPIR or CLRLPIR names, or NULL. */
static struct irq *named_lpi(struct vgic *vgic, uint64_t value)
{
	const uint32_t intid = (uint32_t)value;

	return intid >= FIRST_LPI && intid < lpi_intid_end(vgic) ? &vgic->lpis[intid - FIRST_LPI] : NULL;
}

void invlpir_write(const struct frame_access *a, uint64_t value, uint64_t mask)
{
	struct irq *irq;

	(void)mask;
	config_lock(a->vgic);
	irq = named_lpi(a->vgic, value);
	if (irq && load_relaxed(&a->vcpu->lpis_enabled))
		lpi_read_config(a->vgic, irq);
	config_unlock(a->vgic);
}

void invallr_write(const struct frame_access *a, uint64_t value, uint64_t mask)
{
	struct vgic_vcpu *vcpu = a->vcpu;

	(void)value;
	(void)mask;
	config_lock(a->vgic);
	if (load_relaxed(&vcpu->lpis_enabled))
		lpi_walk_begin(&vcpu->invalidate_walk, LPI_WALK_INVALIDATE, vcpu->index, 0);
	work_finish_write(a->vgic);
}

/* Busy while an invalidation is under way. */
uint64_t syncr_read(const struct frame_access *a)
{
	bool busy;

	work_do_some(a->vgic);
	config_lock(a->vgic);
	busy = a->vcpu->invalidate_walk.kind != LPI_WALK_NONE;
	config_unlock(a->vgic);
	return busy ? GICR_SYNCR_BUSY : 0;
}

/* Direct LPIs: a system without an ITS. The redistributor that is written to has the LPI from then on. */
void setlpir_write(const struct frame_access *a, uint64_t value, uint64_t mask)
{
	struct vgic *vgic = a->vgic;
	struct irq *irq;

	(void)mask;
	config_lock(vgic);
	irq = lpi_is_direct(vgic) ? named_lpi(vgic, value) : NULL;
	if (irq && load_relaxed(&a->vcpu->lpis_enabled)) {
		if (irq_target(load_relaxed(&irq->word)) != a->vcpu->index) {
			lpi_read_config(vgic, irq);
			lpi_set_target(vgic, irq, a->vcpu->index);
		}
		irq_change(vgic, irq, irq_latch, 0);
	}
	config_unlock(vgic);
}

void clrlpir_write(const struct frame_access *a, uint64_t value, uint64_t mask)
{
	struct vgic *vgic = a->vgic;
	struct irq *irq;

	(void)mask;
	config_lock(vgic);
	irq = lpi_is_direct(vgic) ? named_lpi(vgic, value) : NULL;
	if (irq && irq_target(load_relaxed(&irq->word)) == a->vcpu->index)
		lpi_clear_pending(vgic, irq);
	config_unlock(vgic);
}
