/* SPDX-License-Identifier: MIT */
/*
 * vgic_internal.h - the controller and its vCPUs, as the library's own files see
 * them, and which file does what.
 *
 *   vgic.c       life cycle             irq.h, irq_change.h  state word
 *   dist.c       GICD frame             pending.[ch]         candidate maps
 *   redist.c     GICR frames            one_of_n.[ch]        1-of-N selection
 *   cpuif.[ch]   ICC registers          sgi.c                SGI dispatch
 *   frame.[ch]   register tables        affinity.[ch]        affinity -> vCPU
 *   id_regs.[ch] identification         guestmem.[ch]        guest memory
 *   lpi.[ch]     LPIs                   work.[ch]            bounded work
 *   its.[ch]     ITS frame, signals     its_cmd.c            ITS commands
 *   its_map.[ch] translations           its_tables.c         bounds of guest tables
 *   mmio.c       addresses to frames    line.c               SPI and PPI lines
 *   vcpu.c       vCPU life, lines       stats.c              counters, reports
 *   check.c      the invariant at rest  irq_regs.[ch]        register banks over INTIDs
 *   state.h      save and restore: see there
 *   route.[ch]   GSIs to interrupts     deactivate.h         deactivation, resampling
 *   irqfd.c      eventfds to GSIs       msix.c               MSI-X and MSI of a device
 *   baser.h      attributes of tables
 *
 * There is one lock, config_lock. It guards what the configuration path changes
 * beside state words: see each field below. No delivery takes it, and no lock is
 * taken under it. Beside it there is routes_lock, for the list of route tables.
 */
#ifndef VGIC_INTERNAL_H
#define VGIC_INTERNAL_H

#include <vgic/vgic.h>

#include "affinity.h"
#include "atomics.h"
#include "irq.h"
#include "port.h"

#define NUM_PRIVATE      32u /* SGIs and PPIs of a vCPU */
#define NUM_SGIS         16u
#define FIRST_SPI        32u
#define INTID_SPURIOUS   1023u
#define FIRST_SPECIAL    1020u
#define FIRST_LPI        8192u
#define FIRST_LPI_NUMBER 1024u /* LPI 8192 is bit 1024 of the candidate maps */

/*
 * Does the vCPU run? Also tells vgic_reset() whether it may.
 */
enum run_state {
	RUN_OUTSIDE = 0,
	RUN_GUEST,
	RUN_WAITING,
};

/*
 * A walk over all LPIs that is done in parts; see lpi.h.
 */
enum lpi_walk_kind {
	LPI_WALK_NONE,
	LPI_WALK_ENABLE,     /* EnableLPIs was set: read configuration and pending table */
	LPI_WALK_DISABLE,    /* EnableLPIs was cleared: write the pending table */
	LPI_WALK_INVALIDATE, /* GICR_INVALLR, INVALL: read the configuration again */
	LPI_WALK_MOVE,       /* MOVALL: to another vCPU */
};

struct lpi_walk {
	enum lpi_walk_kind kind;
	uint32_t at;       /* next LPI */
	uint32_t vcpu;     /* whose LPIs */
	uint32_t new_vcpu; /* LPI_WALK_MOVE */
	uint32_t unread;   /* LPI_WALK_DISABLE: from here on the set before it has not read the pending table */
};

/*
 * The candidates of one vCPU: which interrupts may be deliverable to it. See
 * pending.c for what the parts mean and who writes them.
 */
struct pending {
	/* Constant. */
	_Alignas(CACHE_LINE) uint32_t index; /* of the vCPU */
	uint32_t num_leaves;                 /* words of @leaf */
	uint32_t num_l1;                     /* words of one level in @l1 */
	_Atomic uint64_t *leaf;              /* one bit for each interrupt, shared by all levels */
	_Atomic uint64_t *l1;                /* for each level, one bit for each word of @leaf */

	/* Written by signallers. In a storm only read: all bits are set already, and the slot is passed by. */
	_Alignas(CACHE_LINE) _Atomic uint64_t summary; /* levels in which a hint may be */
	_Atomic uint64_t slot;                         /* one hint outside the maps, or 0 */
	_Atomic uint32_t kicked;                       /* a kick was made that the vCPU has not yet answered */

	/* Written by the owner for every interrupt. Signallers read it unless the vCPU is kicked already. */
	_Alignas(CACHE_LINE) _Atomic uint64_t mask; /* levels that are worth a kick now, by the CPU interface's state */
	_Atomic uint32_t watch;                     /* kick also when an interrupt stops being deliverable here */

	uint32_t last_taken; /* the owner's alone: number of the interrupt last taken from the maps */
};

/* The CPU interface's registers: read and written by the vCPU's own thread only. */
struct cpuif {
	uint32_t apr[2]; /* active priorities: one bit for each of the 32 priorities of a group */
	uint32_t ctlr;   /* CBPR and EOImode */
	uint8_t pmr;
	uint8_t bpr[2];
	bool igrpen[2];
	bool groups_differ;         /* both groups are eligible, and their binary points are not the same */
	bool groups_may_block;      /* an interrupt that cannot preempt may hide one of the other group that could */
	uint32_t group_priority[2]; /* mask of a group's priority bits above its binary point */
	uint64_t eligible;          /* levels of enabled groups above PMR */
	unsigned reported_lines;

	/* Levels that preempt, by the running priority; all of them if nothing is active. */
	uint64_t preempting[NUM_PRIORITIES + 1];
};

struct vgic_vcpu {
	/* Constant, or rarely written: signallers read it. */
	struct vgic *vgic;
	uint32_t index;
	uint32_t id;
	uint64_t affinity;
	void *user;
	_Atomic bool online;
	_Atomic bool lpis_enabled;      /* GICR_CTLR.EnableLPIs; written under config_lock */
	_Atomic uint32_t early_signals; /* signallers of LPIs that a set of EnableLPIs has not reached yet */

	/*
	 * Written by the owner for every interrupt.
	 *
	 * ack_sequence is odd while the owner is acknowledging. Whoever disables something waits, through RWP, until an
	 * acknowledge that was under way has returned.
	 */
	_Alignas(CACHE_LINE) _Atomic uint64_t ack_sequence;
	_Atomic uint64_t acknowledges, spurious, stale_hints; /* statistics */
	_Atomic uint32_t run;                                 /* enum run_state */
	struct cpuif cpuif;

	/* Guarded by config_lock. */
	uint64_t dist_wait;   /* ack_sequence that GICD_CTLR.RWP waits for, or 0 */
	uint64_t redist_wait; /* the same of GICR_CTLR.RWP */
	uint32_t redist_ctlr; /* GICR_CTLR.DPG* */
	uint32_t redist_statusr;
	bool asleep;           /* GICR_WAKER.ProcessorSleep */
	bool group_enabled[2]; /* copy of cpuif.igrpen for 1-of-N selection */
	bool frame_is_last;    /* GICR_TYPER.Last; constant */

	/* LPIs, guarded by config_lock. */
	uint64_t pendbaser;
	bool pending_table_is_zero; /* the last write of GICR_PENDBASER had PTZ set */
	uint32_t num_lpis;          /* LPIs whose TARGET this is */
	struct lpi_walk enable_walk, invalidate_walk;

	struct pending pending;
	struct irq private_irqs[NUM_PRIVATE];
	/* pending.leaf and pending.l1 follow here. */
};

/* vCPUs that take part in 1-of-N distribution of one group. Written under config_lock, read by signallers. */
struct participants {
	_Atomic uint64_t words[VGIC_MAX_VCPUS / 64];
	_Atomic uint64_t top; /* words that may not be empty: bits are set before those of the word, and never cleared */
};

struct redist_range {
	uint64_t base;
	uint32_t num_frames;
	uint32_t first_index;
};

struct vgic {
	/* Constant after creation. */
	uint32_t num_vcpus;
	uint32_t num_spis;
	uint32_t num_lpis;
	uint32_t features;
	enum vgic_profile profile;
	uint32_t lpi_id_bits;
	struct vgic_ops ops;
	void *opaque;
	struct vgic_vcpu **vcpus; /* by index */
	struct irq *spis;         /* by INTID - 32; as many as the last register word holds */
	struct irq *lpis;         /* by INTID - 8192 */
	uint16_t *index_by_id;
	uint32_t max_id;
	struct affinity_map affinity;
	bool has_dist_base;
	uint64_t dist_base;
	uint32_t num_redist_ranges;
	struct redist_range *redist_ranges;
	unsigned char *vcpu_memory;

	/* What KVM's IIDRs show. Written when the VMM sets GICD_IIDR, before the guest runs. */
	_Atomic uint32_t kvm_revision;

	/* Odd while no MSIs are accepted: see pause.c. Written under config_lock. */
	_Atomic uint32_t pause_sequence;

	/* GICD_CTLR's group enables as levels. Written under config_lock, read by everyone. */
	_Alignas(CACHE_LINE) _Atomic uint64_t group_mask;

	struct port_lock *config_lock;
	uint32_t num_itses; /* constant */
	struct vgic_its **itses;
	uint64_t propbaser;    /* guarded by config_lock: GICR_PROPBASER of all redistributors */
	bool work_left;        /* guarded by config_lock: see work.h */
	uint32_t work_turn;    /* guarded by config_lock: the ITS that comes first */
	uint32_t pauses;       /* guarded by config_lock: vgic_pause() that have not been resumed */
	uint32_t dist_ctlr;    /* guarded by config_lock */
	uint32_t dist_statusr; /* guarded by config_lock */
	bool dist_waiting;     /* guarded by config_lock: some vCPU's dist_wait may not be 0 */
	struct participants participants[2];

	/* Its route tables, a list: what they have kept is delivered at the end of a pause. See route.c. */
	struct port_lock *routes_lock;
	struct vgic_routes *routes; /* guarded by routes_lock */

	/* Who resamples lines that a deactivation has lowered, or NULL; and calls of it that are under way. See route.c. */
	_Atomic(struct vgic_routes *) resampler;
	_Atomic uint32_t resampling;

	/* Statistics. */
	_Atomic uint64_t guest_errors[VGIC_NUM_GUEST_ERRORS];
	_Atomic uint64_t kicks;
	_Atomic uint64_t report_window; /* start of the second in which reports are counted */
	_Atomic uint32_t reports;       /* reports in that second */
	_Atomic uint64_t unreported;
};

static inline bool vgic_has(const struct vgic *vgic, uint32_t feature)
{
	return vgic->features & feature;
}

static inline void config_lock(struct vgic *vgic)
{
	port_lock_acquire(vgic->config_lock);
}

static inline void config_unlock(struct vgic *vgic)
{
	port_lock_release(vgic->config_lock);
}

/* The interrupt of a bit in the candidate maps of @vcpu. */
static inline struct irq *irq_by_number(struct vgic_vcpu *vcpu, uint32_t number)
{
	if (number >= FIRST_LPI_NUMBER)
		return &vcpu->vgic->lpis[number - FIRST_LPI_NUMBER];
	if (number >= NUM_PRIVATE)
		return &vcpu->vgic->spis[number - NUM_PRIVATE];
	return &vcpu->private_irqs[number];
}

/* The SGI, PPI or SPI with an INTID as @vcpu sees it, or NULL. */
static inline struct irq *irq_by_intid(struct vgic_vcpu *vcpu, uint32_t intid)
{
	if (intid < NUM_PRIVATE)
		return &vcpu->private_irqs[intid];
	if (intid - FIRST_SPI < vcpu->vgic->num_spis)
		return &vcpu->vgic->spis[intid - FIRST_SPI];
	return NULL;
}

/* ---- vgic.c ---- */

/* Every register gets its reset value. Under config_lock, with the vCPUs stopped. */
void reset_registers(struct vgic *vgic);

/* ---- vcpu.c ---- */

/* Kick unless a kick is outstanding. The last thing that a call does for an interrupt. */
void vcpu_kick(struct vgic_vcpu *vcpu);

/* The lines of a vCPU, exact. Owner only. Answers a kick. */
unsigned vcpu_evaluate_lines(struct vgic_vcpu *vcpu);

/* Evaluate the lines, and tell a host that mirrors them if they have changed. Owner only. */
unsigned vcpu_evaluate_and_report(struct vgic_vcpu *vcpu);

/* The end of every per-vCPU call that may have changed the lines. Owner only. */
static inline void vcpu_report_lines(struct vgic_vcpu *vcpu)
{
	if (__builtin_expect(vcpu->vgic->ops.line_changed != NULL, 0))
		vcpu_evaluate_and_report(vcpu);
}

/*
 * Begin and end of an acknowledge, for RWP (R10). The odd store may become visible
 * late: what makes it seen in time is the CAS that follows it (see cpuif.c).
 */
static inline void ack_begin(struct vgic_vcpu *vcpu)
{
	store_relaxed(&vcpu->ack_sequence, load_relaxed(&vcpu->ack_sequence) + 1);
}

static inline void ack_end(struct vgic_vcpu *vcpu)
{
	store_release(&vcpu->ack_sequence, load_relaxed(&vcpu->ack_sequence) + 1);
}

/* Note what RWP has to wait for; is it over? Both under config_lock. */
void ack_note(const struct vgic_vcpu *vcpu, uint64_t *wait);
bool ack_is_over(const struct vgic_vcpu *vcpu, uint64_t *wait);

/* ---- sgi.c ---- */

enum sgi_reach {
	SGI_REACHES_BOTH_GROUPS, /* ICC_SGI1R */
	SGI_REACHES_GROUP0,      /* ICC_SGI0R, ICC_ASGI1R */
};

void sgi_send(struct vgic_vcpu *sender, uint64_t value, enum sgi_reach reach);

/* ---- stats.c ---- */

void guest_error(struct vgic *vgic, enum vgic_guest_error_kind kind, const char *what, uint64_t address,
		 uint64_t value);

/* ---- check.c, for tests ---- */

/*
 * The invariant at rest: every deliverable interrupt can be reached by a hint at
 * the vCPU that its word names. Nothing else may be going on. Returns the number
 * of interrupts that break it, and stores the INTID of the first.
 */
unsigned vgic_check_at_rest(struct vgic *vgic, uint32_t *intid);

#endif /* VGIC_INTERNAL_H */
