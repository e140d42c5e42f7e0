/* SPDX-License-Identifier: MIT */
/*
 * libvgic - an Arm GICv3 interrupt controller in software.
 *
 * This header is the whole of the controller: its life cycle, its vCPUs, the
 * memory-mapped registers, the ICC system registers and the interrupt lines.
 *
 * Words. An INTID is an interrupt's number as the guest sees it: SGIs are 0-15,
 * PPIs 16-31, SPIs 32-1019, LPIs 8192 and up. A vCPU has an *index*, its place
 * in struct vgic_config.vcpus (0 to num_vcpus-1), and an *id*, a number that
 * the VMM chooses freely and that the guest sees as GICR_TYPER.Processor_Number.
 * The two are never interchangeable; functions take a struct vgic_vcpu pointer,
 * so that they cannot be confused.
 *
 * Threads. Which call may be made from which thread, and beside which others:
 *
 *   call                                   thread           beside
 *   -------------------------------------  ---------------  ---------------------
 *   vgic_config_init, vgic_create          any              anything
 *   vgic_destroy                           any              nothing of this vgic
 *   vgic_reset                             any              everything but the
 *                                                           per-vCPU calls
 *   vgic_vcpu_* look-ups, *_stats          any              everything
 *   vgic_enter_guest, vgic_exit_guest,     the vCPU's, that everything
 *   vgic_prepare_wait, vgic_finish_wait,   is: one thread
 *   vgic_poll_lines, vgic_vcpu_reset,      at a time for
 *   vgic_icc_read, vgic_icc_write          each vCPU
 *   vgic_vcpu_set_online                   any              everything
 *   vgic_mmio_*, vgic_dist_*,              any              everything
 *   vgic_redist_*, vgic_its_read,
 *   vgic_its_write, vgic_run_work
 *   vgic_its_signal, vgic_signal_msi       any              everything
 *   vgic_set_spi, vgic_pulse_spi,          any              everything
 *   vgic_set_ppi
 *
 * Callbacks (struct vgic_ops) are made by the thread that made the call, as the
 * last thing that the call does for that interrupt. They must not call into the
 * same controller, with one exception: deactivated() may call vgic_set_spi(),
 * vgic_set_ppi() and vgic_pulse_spi().
 *
 *   callback       may be made from
 *   -------------  -------------------------------------------------------------
 *   kick           every call that takes "any" thread, except look-ups, config,
 *                  create and destroy; and vgic_icc_write (SGIs, deactivation)
 *   line_changed   the per-vCPU calls, for that vCPU only
 *   deactivated    vgic_icc_write, vgic_mmio_write, vgic_dist_write,
 *                  vgic_redist_write
 *   guest_error    the register calls (MMIO and ICC), vgic_run_work
 *   guest_read,    the register calls (MMIO), vgic_run_work
 *   guest_write
 *   work_pending   the register calls (MMIO)
 *
 * Errors. Functions return 0 (or a documented positive value) or a negative
 * errno. A call that returns an error has changed nothing. What a *guest* does
 * wrong is never an error of the call: it is answered as the architecture says,
 * counted (vgic_get_stats) and reported through guest_error().
 */
#ifndef VGIC_VGIC_H
#define VGIC_VGIC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The library hides every other symbol. */
#pragma GCC visibility push(default)

#define VGIC_VERSION_MAJOR 0
#define VGIC_VERSION_MINOR 1

struct vgic;      /* one interrupt controller */
struct vgic_vcpu; /* one vCPU's part of it: redistributor and CPU interface */
struct vgic_its;  /* one Interrupt Translation Service of it */

/* ---- Limits ------------------------------------------------------------- */

#define VGIC_MAX_VCPUS    4096u  /* vCPUs of one controller */
#define VGIC_MAX_VCPU_ID  65535u /* GICR_TYPER.Processor_Number has 16 bits */
#define VGIC_MIN_SPIS     32u
#define VGIC_MAX_SPIS     988u /* INTIDs 32 to 1019 */
#define VGIC_MIN_LPI_BITS 14u
#define VGIC_MAX_LPI_BITS 20u
#define VGIC_MAX_ITSES    64u

/*
 * Sources of one interrupt line, 0 to VGIC_NUM_LINE_SOURCES-1. A line is high
 * while any of its sources is: devices that share an SPI use one source each.
 */
#define VGIC_NUM_LINE_SOURCES 24u

/* ---- Sizes of the register frames, in bytes ------------------------------ */

#define VGIC_DIST_FRAME_SIZE   0x10000u
#define VGIC_REDIST_FRAME_SIZE 0x20000u /* of one vCPU: RD_base, then SGI_base */
#define VGIC_ITS_FRAME_SIZE    0x20000u /* control registers, then the doorbell's page */
#define VGIC_ITS_DOORBELL      0x10040u /* GITS_TRANSLATER: where devices write their EventIDs */

/* ---- Configuration ------------------------------------------------------- */

/*
 * Which controller the guest finds.
 *
 * NATIVE shows everything that libvgic can do. KVM shows the identity registers,
 * feature bits and reset values of the vGIC in Linux's KVM, so that a guest can
 * be moved between the two without seeing a change.
 */
enum vgic_profile {
	VGIC_PROFILE_NATIVE = 0,
	VGIC_PROFILE_KVM = 1,
};

/* Optional features, ORed into struct vgic_config.features. */
#define VGIC_FEATURE_RSS      (1u << 0) /* SGI range selector: Aff0 above 15 (GICD_TYPER.RSS, ICC_CTLR.RSS) */
#define VGIC_FEATURE_MBIS     (1u << 1) /* message-based SPIs: GICD_SETSPI_NSR, GICD_CLRSPI_NSR */
#define VGIC_FEATURE_ONE_OF_N (1u << 2) /* GICD_IROUTER.Interrupt_Routing_Mode */
#define VGIC_FEATURE_A3V      (1u << 3) /* non-zero Aff3 (GICD_TYPER.A3V, ICC_CTLR.A3V) */
#define VGIC_FEATURE_LPIS     (1u << 4) /* LPI INTID space, GICD_TYPER.LPIS, GICR_TYPER.PLPIS */
#define VGIC_FEATURE_DPGS     (1u << 5) /* GICR_CTLR.DPG0 and DPG1NS; needs ONE_OF_N */
#define VGIC_FEATURE_STATUSR  (1u << 6) /* GICD_STATUSR, GICR_STATUSR */
#define VGIC_FEATURE_WAKER    (1u << 7) /* GICR_WAKER; without it the register is RAZ/WI and a vCPU is awake */
/*
 * ICC_CTLR as KVM shows it, which takes these fields from the host's processor whatever the distributor says: set them in
 * VGIC_PROFILE_KVM to what that KVM shows, or neither takes the other's ICC_CTLR.
 */
#define VGIC_FEATURE_ICC_A3V  (1u << 8) /* A3V is 1, also without VGIC_FEATURE_A3V */
#define VGIC_FEATURE_ICC_ID24 (1u << 9) /* IDbits says 24 bits, whatever lpi_id_bits is */
#define VGIC_FEATURES_ALL     0x3ffu

/* One vCPU. */
struct vgic_vcpu_config {
	/* GICR_TYPER.Processor_Number: 0 to VGIC_MAX_VCPU_ID, unique, any order, gaps allowed. */
	uint32_t id;
	/*
	 * Affinity as in MPIDR_EL1: Aff3 in bits 39:32, Aff2 23:16, Aff1 15:8, Aff0 7:0;
	 * all other bits 0; unique. Aff3 must be 0 without VGIC_FEATURE_A3V. Without
	 * VGIC_FEATURE_RSS no SGI can name a vCPU whose Aff0 is above 15.
	 */
	uint64_t affinity;
	/* Handed back by vgic_vcpu_user(). May be NULL. */
	void *user;
};

/* A contiguous range of redistributor frames in guest-physical space. */
struct vgic_redist_region {
	uint64_t base;       /* a multiple of 64 KiB */
	uint32_t num_frames; /* vCPUs that fit: the region has num_frames * VGIC_REDIST_FRAME_SIZE bytes */
	uint32_t reserved;   /* 0 */
};

/*
 * An ITS. The numbers of devices and translations bound the host's memory, whatever the guest maps: commands past them
 * are refused as the guest's errors.
 */
struct vgic_its_config {
	bool has_base;
	uint64_t base;             /* guest-physical, a multiple of 64 KiB; for vgic_mmio_* and vgic_signal_msi() */
	uint32_t device_id_bits;   /* 1 to 32; 0: 16 */
	uint32_t event_id_bits;    /* 1 to 16; 0: 16 */
	uint32_t max_devices;      /* devices mapped at one time, up to 2^20; 0: 1024. Up to 48 bytes each */
	uint32_t max_translations; /* events mapped at one time, up to 2^22; 0: 65536. Up to 56 bytes each */
};

/* Lines of a vCPU, ORed: what vgic_poll_lines() and others return. Never both at once. */
#define VGIC_LINE_IRQ (1u << 0) /* a Group 1 interrupt is signalled */
#define VGIC_LINE_FIQ (1u << 1) /* a Group 0 interrupt is signalled */

/* What a guest did wrong. Each kind is counted by itself in struct vgic_stats. */
enum vgic_guest_error_kind {
	VGIC_GUEST_MMIO_RESERVED = 0, /* access to an offset where no register is */
	VGIC_GUEST_MMIO_WIDTH,        /* width or alignment that the register does not have */
	VGIC_GUEST_MMIO_READ_ONLY,    /* write to a read-only register */
	VGIC_GUEST_MMIO_WRITE_ONLY,   /* read of a write-only register */
	VGIC_GUEST_ICC_UNDEFINED,     /* ICC access that is UNDEFINED */
	VGIC_GUEST_EOI_UNEXPECTED,    /* EOI with no active priority of that group, or of an INTID that is not active */
	VGIC_GUEST_DIR_UNEXPECTED,    /* ICC_DIR with EOImode=0, or of an INTID that is not active */
	VGIC_GUEST_SGI_NO_TARGET,     /* an SGI that named a PE that does not exist */
	VGIC_GUEST_ROUTE_NO_TARGET,   /* GICD_IROUTER names a PE that does not exist */
	VGIC_GUEST_ITS_COMMAND,       /* an ITS command was wrong and skipped: see enum vgic_its_error */
	VGIC_GUEST_MEMORY,            /* a table or queue in guest memory could not be accessed */
	VGIC_NUM_GUEST_ERRORS,
};

/* One report of a guest's error. */
struct vgic_guest_error {
	enum vgic_guest_error_kind kind;
	const char *what;    /* the register's name or a short text; static */
	uint64_t address;    /* offset in the frame, ICC encoding, or INTID, as the kind has it */
	uint64_t value;      /* what was written, or 0 */
	uint64_t unreported; /* errors counted but not reported since the last report (rate limit) */
};

/*
 * Callbacks into the VMM. Only kick is needed by a VMM whose vCPUs run in
 * threads of their own; a single-threaded one may leave all of them NULL and
 * poll. Any thread may be the caller. None of them may call into the controller
 * (see the top of this file for the one exception).
 */
struct vgic_ops {
	size_t size; /* sizeof(struct vgic_ops), set by vgic_config_init() */

	/*
	 * Make @vcpu look at its lines: leave the guest, or wake from its wait, and call vgic_enter_guest(),
	 * vgic_prepare_wait() or vgic_poll_lines(). Made at most once until it has done so. May be made for a vCPU that is
	 * offline: ignore it then.
	 */
	void (*kick)(void *opaque, struct vgic_vcpu *vcpu);

	/*
	 * The lines of @vcpu are now @lines (VGIC_LINE_*): for a host that mirrors wires. Made by the vCPU's own thread from
	 * the per-vCPU calls, rises and falls alike, only on change. With this callback set, kick() is also made when a line
	 * that was reported high may have to fall.
	 */
	void (*line_changed)(void *opaque, struct vgic_vcpu *vcpu, unsigned lines);

	/*
	 * A level-sensitive interrupt was deactivated (EOI with EOImode=0, ICC_DIR, or ICACTIVER): a device that still needs
	 * service keeps its line high, another lowers it. @vcpu is NULL for an SPI.
	 */
	void (*deactivated)(void *opaque, struct vgic_vcpu *vcpu, uint32_t intid);

	/*
	 * Read or write @size bytes of guest memory at guest-physical @address. Needed with LPIs: the guest's tables are
	 * there. An access lies within one naturally aligned 4 KiB page; one of 8 bytes that is aligned must be done as one.
	 * Return 0, or a negative errno if there is no memory: then nothing was accessed. guest_write() is also where a VMM
	 * learns that the library has changed guest memory (dirty tracking).
	 */
	int (*guest_read)(void *opaque, uint64_t address, void *buffer, size_t size);
	int (*guest_write)(void *opaque, uint64_t address, const void *buffer, size_t size);

	/*
	 * A register write has begun more work than one access may do (an ITS command that touches 2^16 interrupts): call
	 * vgic_run_work(), from any thread, soon, until it returns 0. Without this callback the work goes on whenever the
	 * guest reads a register that shows its progress (GITS_CREADR, GITS_CTLR, GICR_CTLR).
	 */
	void (*work_pending)(void *opaque);

	/* A guest did something wrong. At most ten reports a second; the rest are counted only. */
	void (*guest_error)(void *opaque, const struct vgic_guest_error *error);
};

/*
 * A controller to be created. Fill it with vgic_config_init(), then change what
 * differs. The structure and everything it points to may be freed after
 * vgic_create() has returned.
 */
struct vgic_config {
	size_t size; /* sizeof(struct vgic_config), set by vgic_config_init() */

	enum vgic_profile profile;
	uint32_t features;      /* VGIC_FEATURE_*; the profile's own by default */
	uint32_t num_spis;      /* VGIC_MIN_SPIS to 960 in steps of 32, or VGIC_MAX_SPIS; default 256 */
	uint32_t priority_bits; /* implemented bits of a priority: 5 */
	uint32_t lpi_id_bits;   /* with LPIs: INTID bits, VGIC_MIN_LPI_BITS to VGIC_MAX_LPI_BITS; default 16 */
	uint32_t kvm_revision;  /* VGIC_PROFILE_KVM: the revision that the IIDRs show, 1 to 3; default 3 */

	uint32_t num_vcpus; /* 1 to VGIC_MAX_VCPUS */
	const struct vgic_vcpu_config *vcpus;

	/*
	 * Where the frames are in guest-physical space, for vgic_mmio_read() and vgic_mmio_write(). Optional: without
	 * has_dist_base and regions, use the calls by frame. Redistributors fill the regions in order of their index; the
	 * regions must hold all of them; no two frames may overlap.
	 */
	bool has_dist_base;
	uint64_t dist_base;          /* a multiple of 64 KiB */
	uint32_t num_redist_regions; /* at most VGIC_MAX_VCPUS; the last ones may stay empty */
	const struct vgic_redist_region *redist_regions;

	/* Each needs VGIC_FEATURE_LPIS and ops.guest_read and guest_write. 0 to VGIC_MAX_ITSES. */
	uint32_t num_itses;
	const struct vgic_its_config *itses;

	struct vgic_ops ops;
	void *opaque; /* handed to every callback */
};

/**
 * vgic_config_init() - fill a configuration with the defaults of a profile.
 * @config:   the structure to fill; every field is written
 * @profile:  VGIC_PROFILE_NATIVE or VGIC_PROFILE_KVM
 *
 * Afterwards at least num_vcpus and vcpus are to be set. An unknown profile is kept as it is: vgic_create() refuses it.
 */
void vgic_config_init(struct vgic_config *config, enum vgic_profile profile);

/**
 * vgic_create() - make a controller.
 * @config:  what it shall be
 * @vgic:    where the new controller is stored; untouched on error
 *
 * All memory that the controller ever uses is allocated here: about 4 KiB; 64 bytes for each SPI and LPI INTID; for each
 * vCPU 4 KiB (18 KiB with 2^16 INTIDs), up to 264 bytes to find it by its affinity, and 2 bytes for each id up to the
 * highest; 128 KiB for each ITS, and what struct vgic_its_config says (SECURITY.md has the formula). All vCPUs are online and
 * out of the guest, all registers have their reset values.
 *
 * Returns 0, or
 *   -EINVAL   a NULL pointer, a size field that is no known one, or a value out of its range; vCPU ids or affinities that
 *             are not unique; frames that overlap or are not aligned; regions that do not hold every redistributor;
 *             LPIs without guest_read() and guest_write(); an ITS without LPIs
 *   -ENOMEM   no memory
 */
int vgic_create(const struct vgic_config *config, struct vgic **vgic);

/**
 * vgic_destroy() - free a controller, in whatever state it is.
 * @vgic:  the controller, or NULL
 *
 * No other call may be running or come later.
 */
void vgic_destroy(struct vgic *vgic);

/**
 * vgic_reset() - put every register back to its reset value.
 * @vgic:  the controller
 *
 * Nothing stays pending or active. Lines stay as their sources drive them, vCPUs as they are online or offline.
 *
 * Returns 0, or -EBUSY if a vCPU is between vgic_enter_guest() and vgic_exit_guest().
 */
int vgic_reset(struct vgic *vgic);

/* ---- vCPUs --------------------------------------------------------------- */

/* Look-ups in constant time. Each returns NULL if there is no such vCPU. */
struct vgic_vcpu *vgic_vcpu_by_index(struct vgic *vgic, uint32_t index);
struct vgic_vcpu *vgic_vcpu_by_id(struct vgic *vgic, uint32_t id);
struct vgic_vcpu *vgic_vcpu_by_affinity(struct vgic *vgic, uint64_t affinity);

uint32_t vgic_vcpu_index(const struct vgic_vcpu *vcpu);
uint32_t vgic_vcpu_id(const struct vgic_vcpu *vcpu);
uint64_t vgic_vcpu_affinity(const struct vgic_vcpu *vcpu);
void *vgic_vcpu_user(const struct vgic_vcpu *vcpu);
uint32_t vgic_num_vcpus(const struct vgic *vgic);

/**
 * vgic_vcpu_set_online() - the vCPU was powered on or off.
 * @vcpu:    the vCPU
 * @online:  false after PSCI CPU_OFF, true before PSCI CPU_ON
 *
 * A guest cannot see this in the GIC's registers. An offline vCPU has no line high and takes no part in 1-of-N
 * distribution: what was parked there is given to another. Interrupts routed to it stay pending.
 */
void vgic_vcpu_set_online(struct vgic_vcpu *vcpu, bool online);

/**
 * vgic_vcpu_reset() - a warm reset of the PE: its CPU interface gets its reset values.
 * @vcpu:  the vCPU
 *
 * The redistributor, with SGIs and PPIs that are pending or active, is not part of the PE and stays.
 */
void vgic_vcpu_reset(struct vgic_vcpu *vcpu);

/**
 * vgic_enter_guest() - the vCPU is about to run guest code.
 * @vcpu:  the vCPU
 *
 * Returns its lines (VGIC_LINE_IRQ, VGIC_LINE_FIQ or 0), to be driven into the vCPU. A kick() after this call has begun
 * means that they have to be looked at again.
 */
unsigned vgic_enter_guest(struct vgic_vcpu *vcpu);

/**
 * vgic_exit_guest() - the vCPU has stopped running guest code.
 * @vcpu:  the vCPU
 */
void vgic_exit_guest(struct vgic_vcpu *vcpu);

/**
 * vgic_prepare_wait() - the vCPU is about to block (WFI).
 * @vcpu:  the vCPU
 *
 * Returns its lines. Only if they are 0 may the thread block; a kick() that comes after this call has begun must end that
 * wait, even if it comes before the thread has really blocked (use a semaphore, an eventfd, or a condition with a flag).
 * Call vgic_finish_wait() afterwards in any case.
 */
unsigned vgic_prepare_wait(struct vgic_vcpu *vcpu);

/**
 * vgic_finish_wait() - the wait is over, or was not entered.
 * @vcpu:  the vCPU
 */
void vgic_finish_wait(struct vgic_vcpu *vcpu);

/**
 * vgic_poll_lines() - the vCPU's lines now.
 * @vcpu:  the vCPU
 *
 * For hosts that look at the lines without entering or leaving the guest (an emulator's loop). Answers a kick() like
 * vgic_enter_guest(). Returns VGIC_LINE_IRQ, VGIC_LINE_FIQ or 0.
 */
unsigned vgic_poll_lines(struct vgic_vcpu *vcpu);

/* ---- Memory-mapped registers ---------------------------------------------- */

/*
 * Widths are 1, 2, 4 or 8 bytes, values little-endian in the low bits. Every
 * offset of a frame answers at every width: what the architecture does not
 * define reads as zero and ignores writes, and is counted as a guest error.
 * An access may be made on behalf of any vCPU: with affinity routing nothing is
 * banked by the accessing PE.
 *
 * Errors of all of them:
 *   -EINVAL   a width that is not 1, 2, 4 or 8 (an address outside of every frame is told first)
 *   -ENXIO    the address belongs to no frame, or offset + width goes past the frame's end
 */

/**
 * vgic_mmio_read() - read a register by guest-physical address.
 * @vgic:     the controller
 * @address:  guest-physical address
 * @width:    1, 2, 4 or 8 bytes
 * @value:    the result; untouched on error
 *
 * Returns 0, -EINVAL or -ENXIO. A frame of a redistributor region that no vCPU fills reads as zero.
 */
int vgic_mmio_read(struct vgic *vgic, uint64_t address, unsigned width, uint64_t *value);

/* vgic_mmio_write() - write a register by guest-physical address. Returns 0, -EINVAL or -ENXIO. */
int vgic_mmio_write(struct vgic *vgic, uint64_t address, unsigned width, uint64_t value);

/* The distributor by offset, 0 to VGIC_DIST_FRAME_SIZE-1. */
int vgic_dist_read(struct vgic *vgic, uint32_t offset, unsigned width, uint64_t *value);
int vgic_dist_write(struct vgic *vgic, uint32_t offset, unsigned width, uint64_t value);

/* The redistributor of @vcpu by offset, 0 to VGIC_REDIST_FRAME_SIZE-1 (SGI_base is at 0x10000). */
int vgic_redist_read(struct vgic_vcpu *vcpu, uint32_t offset, unsigned width, uint64_t *value);
int vgic_redist_write(struct vgic_vcpu *vcpu, uint32_t offset, unsigned width, uint64_t value);

/* ---- CPU interface: the ICC system registers ------------------------------- */

/*
 * A system register's encoding, as in KVM's device attributes (KVM_DEV_ARM_VGIC_SYSREG)
 * and in the MRS and MSR instructions.
 */
#define VGIC_SYSREG(op0, op1, crn, crm, op2)                                                                           \
	((uint32_t)(((op0) << 14) | ((op1) << 11) | ((crn) << 7) | ((crm) << 3) | (op2)))

/* The same from the ISS field of a trapped MSR or MRS (ESR_ELx.EC 0x18). */
#define VGIC_SYSREG_FROM_ISS(iss)                                                                                      \
	VGIC_SYSREG(((iss) >> 20) & 3, ((iss) >> 14) & 7, ((iss) >> 10) & 15, ((iss) >> 1) & 15, ((iss) >> 17) & 7)

#define VGIC_ICC_PMR_EL1     VGIC_SYSREG(3, 0, 4, 6, 0)
#define VGIC_ICC_IAR0_EL1    VGIC_SYSREG(3, 0, 12, 8, 0)
#define VGIC_ICC_EOIR0_EL1   VGIC_SYSREG(3, 0, 12, 8, 1)
#define VGIC_ICC_HPPIR0_EL1  VGIC_SYSREG(3, 0, 12, 8, 2)
#define VGIC_ICC_BPR0_EL1    VGIC_SYSREG(3, 0, 12, 8, 3)
#define VGIC_ICC_AP0R0_EL1   VGIC_SYSREG(3, 0, 12, 8, 4)
#define VGIC_ICC_AP1R0_EL1   VGIC_SYSREG(3, 0, 12, 9, 0)
#define VGIC_ICC_DIR_EL1     VGIC_SYSREG(3, 0, 12, 11, 1)
#define VGIC_ICC_RPR_EL1     VGIC_SYSREG(3, 0, 12, 11, 3)
#define VGIC_ICC_SGI1R_EL1   VGIC_SYSREG(3, 0, 12, 11, 5)
#define VGIC_ICC_ASGI1R_EL1  VGIC_SYSREG(3, 0, 12, 11, 6)
#define VGIC_ICC_SGI0R_EL1   VGIC_SYSREG(3, 0, 12, 11, 7)
#define VGIC_ICC_IAR1_EL1    VGIC_SYSREG(3, 0, 12, 12, 0)
#define VGIC_ICC_EOIR1_EL1   VGIC_SYSREG(3, 0, 12, 12, 1)
#define VGIC_ICC_HPPIR1_EL1  VGIC_SYSREG(3, 0, 12, 12, 2)
#define VGIC_ICC_BPR1_EL1    VGIC_SYSREG(3, 0, 12, 12, 3)
#define VGIC_ICC_CTLR_EL1    VGIC_SYSREG(3, 0, 12, 12, 4)
#define VGIC_ICC_SRE_EL1     VGIC_SYSREG(3, 0, 12, 12, 5)
#define VGIC_ICC_IGRPEN0_EL1 VGIC_SYSREG(3, 0, 12, 12, 6)
#define VGIC_ICC_IGRPEN1_EL1 VGIC_SYSREG(3, 0, 12, 12, 7)

/**
 * vgic_icc_read() - the guest reads an ICC_*_EL1 register.
 * @vcpu:   the vCPU that executes the MRS
 * @reg:    its encoding: VGIC_SYSREG(op0, op1, CRn, CRm, op2) or VGIC_ICC_*
 * @value:  the result; untouched on error
 *
 * Reading ICC_IAR0 or ICC_IAR1 acknowledges. The vCPU's lines may be others after an access, to be looked at before it
 * goes on: by vgic_enter_guest() on the way back into the guest, or by vgic_poll_lines(). Returns 0, or
 *   -ENOENT   no register of the GIC: the VMM decides
 *   -EACCES   a register of the GIC, but this access is UNDEFINED (write-only, or not implemented): inject an Undefined
 *             Instruction exception
 */
int vgic_icc_read(struct vgic_vcpu *vcpu, uint32_t reg, uint64_t *value);

/**
 * vgic_icc_write() - the guest writes an ICC_*_EL1 register.
 * @vcpu:   the vCPU that executes the MSR
 * @reg:    its encoding
 * @value:  the value; for the SGI registers the target list as the architecture has it
 *
 * Returns 0, -ENOENT or -EACCES as vgic_icc_read() does.
 */
int vgic_icc_write(struct vgic_vcpu *vcpu, uint32_t reg, uint64_t value);

/* ---- Interrupt lines -------------------------------------------------------- */

/**
 * vgic_set_spi() - a source drives the line of an SPI.
 * @vgic:    the controller
 * @intid:   32 to 31 + num_spis
 * @source:  who drives it, 0 to VGIC_NUM_LINE_SOURCES-1; the line is the OR of all sources
 * @level:   true: high
 *
 * Configured edge-triggered (GICD_ICFGR), a rise of the line makes the SPI pending; level-sensitive, it is pending while
 * the line is high. Takes no lock, allocates nothing, makes no system call; may call kick() once before it returns. What
 * the caller wrote to memory before is visible to the guest after the acknowledge.
 *
 * Returns 0, or -EINVAL for an intid or source out of range.
 */
int vgic_set_spi(struct vgic *vgic, uint32_t intid, unsigned source, bool level);

/**
 * vgic_set_ppi() - a source drives the line of a vCPU's PPI.
 * @vcpu:    the vCPU
 * @intid:   16 to 31
 * @source:  0 to VGIC_NUM_LINE_SOURCES-1
 * @level:   true: high
 *
 * As vgic_set_spi(). Any thread may call it. Returns 0 or -EINVAL.
 */
int vgic_set_ppi(struct vgic_vcpu *vcpu, uint32_t intid, unsigned source, bool level);

/**
 * vgic_pulse_spi() - one edge on an SPI: signal an edge-triggered interrupt.
 * @vgic:   the controller
 * @intid:  32 to 31 + num_spis
 *
 * The same as raising and lowering a source of its own, in one step. An SPI that is configured level-sensitive takes no
 * notice of it: nothing keeps its line high.
 *
 * Returns 1 if the interrupt was made pending or was pending already, 0 if it is level-sensitive, or -EINVAL for an intid
 * out of range.
 */
int vgic_pulse_spi(struct vgic *vgic, uint32_t intid);

/* ---- MSIs through an ITS ---------------------------------------------------- */

struct vgic_its *vgic_its_by_index(struct vgic *vgic, uint32_t index); /* NULL if there is none */

/* The frame of an ITS by offset, 0 to VGIC_ITS_FRAME_SIZE-1. As vgic_dist_read() and vgic_dist_write(). */
int vgic_its_read(struct vgic_its *its, uint32_t offset, unsigned width, uint64_t *value);
int vgic_its_write(struct vgic_its *its, uint32_t offset, unsigned width, uint64_t value);

/**
 * vgic_its_signal() - a device's MSI: translate and deliver.
 * @its:      the ITS that the device's doorbell belongs to
 * @devid:    DeviceID, as the bus gives it (PCI: requester id)
 * @eventid:  EventID, the MSI's data
 *
 * Takes no lock, allocates nothing, makes no system call; may call kick() once before it returns. What the caller wrote to
 * memory before is visible to the guest after the acknowledge. DeviceID and EventID may have any value.
 *
 * Returns 1 if the LPI was made pending or was pending already, 0 if the guest blocks it (no such mapping, collection or
 * enabled redistributor: counted by reason, see vgic_its_get_stats()), -EBUSY if the ITS is off, or -EAGAIN between
 * vgic_pause() and vgic_resume() (state.h): nothing was done, signal it again afterwards.
 */
int vgic_its_signal(struct vgic_its *its, uint32_t devid, uint32_t eventid);

/* The DeviceID of vgic_signal_msi() is valid; KVM_MSI_VALID_DEVID. */
#define VGIC_MSI_VALID_DEVID (1u << 0)

/**
 * vgic_signal_msi() - a write to a doorbell, with the meaning of KVM_SIGNAL_MSI.
 * @vgic:     the controller
 * @address:  the doorbell: an ITS's base + VGIC_ITS_DOORBELL, or with VGIC_FEATURE_MBIS GICD_SETSPI_NSR
 * @data:     EventID, or for GICD_SETSPI_NSR the INTID
 * @devid:    DeviceID
 * @flags:    VGIC_MSI_VALID_DEVID or 0; needed for an ITS
 *
 * As vgic_its_signal(); any thread. Returns 1, 0, -EBUSY or -EAGAIN as that does, or
 *   -EINVAL  unknown flags, or no DeviceID for an ITS
 *   -ENODEV  no doorbell at that address
 */
int vgic_signal_msi(struct vgic *vgic, uint64_t address, uint32_t data, uint32_t devid, uint32_t flags);

/**
 * vgic_run_work() - do a bounded part of the work that register writes have left.
 * @vgic:  the controller
 *
 * Any thread, at any time. Returns 1 if there is more to do, 0 if not.
 */
int vgic_run_work(struct vgic *vgic);

/* What can be wrong with an ITS command, with the architecture's names; see vgic_its_error_name() and _code(). */
enum vgic_its_error {
	VGIC_ITS_MOVI_DEVICE_OOR,
	VGIC_ITS_MOVI_COLLECTION_OOR,
	VGIC_ITS_MOVI_UNMAPPED_DEVICE,
	VGIC_ITS_MOVI_ID_OOR,
	VGIC_ITS_MOVI_UNMAPPED_INTERRUPT,
	VGIC_ITS_MOVI_UNMAPPED_COLLECTION,
	VGIC_ITS_INT_DEVICE_OOR,
	VGIC_ITS_INT_UNMAPPED_DEVICE,
	VGIC_ITS_INT_ID_OOR,
	VGIC_ITS_INT_UNMAPPED_INTERRUPT,
	VGIC_ITS_CLEAR_DEVICE_OOR,
	VGIC_ITS_CLEAR_UNMAPPED_DEVICE,
	VGIC_ITS_CLEAR_ID_OOR,
	VGIC_ITS_CLEAR_UNMAPPED_INTERRUPT,
	VGIC_ITS_SYNC_PROCNUM_OOR,
	VGIC_ITS_MAPD_DEVICE_OOR,
	VGIC_ITS_MAPD_ITTSIZE_OOR,
	VGIC_ITS_MAPC_PROCNUM_OOR,
	VGIC_ITS_MAPC_COLLECTION_OOR,
	VGIC_ITS_MAPTI_DEVICE_OOR,
	VGIC_ITS_MAPTI_COLLECTION_OOR,
	VGIC_ITS_MAPTI_UNMAPPED_DEVICE,
	VGIC_ITS_MAPTI_ID_OOR,
	VGIC_ITS_MAPTI_PHYSICALID_OOR,
	VGIC_ITS_MAPI_DEVICE_OOR,
	VGIC_ITS_MAPI_COLLECTION_OOR,
	VGIC_ITS_MAPI_UNMAPPED_DEVICE,
	VGIC_ITS_MAPI_ID_OOR,
	VGIC_ITS_MAPI_PHYSICALID_OOR,
	VGIC_ITS_INV_DEVICE_OOR,
	VGIC_ITS_INV_UNMAPPED_DEVICE,
	VGIC_ITS_INV_ID_OOR,
	VGIC_ITS_INV_UNMAPPED_INTERRUPT,
	VGIC_ITS_INVALL_COLLECTION_OOR,
	VGIC_ITS_INVALL_UNMAPPED_COLLECTION,
	VGIC_ITS_MOVALL_PROCNUM_OOR,
	VGIC_ITS_DISCARD_DEVICE_OOR,
	VGIC_ITS_DISCARD_UNMAPPED_DEVICE,
	VGIC_ITS_DISCARD_ID_OOR,
	VGIC_ITS_DISCARD_UNMAPPED_INTERRUPT,
	/* Not the architecture's: */
	VGIC_ITS_UNKNOWN_COMMAND,       /* no command has this number */
	VGIC_ITS_VIRTUAL_COMMAND,       /* a GICv4 command */
	VGIC_ITS_TOO_MANY_DEVICES,      /* vgic_its_config.max_devices are mapped */
	VGIC_ITS_TOO_MANY_TRANSLATIONS, /* vgic_its_config.max_translations are mapped */
	VGIC_ITS_ITT_NOT_IN_MEMORY,     /* the ITT of a MAPD is not in guest memory */
	VGIC_ITS_QUEUE_NOT_IN_MEMORY,   /* the command could not be read */
	VGIC_NUM_ITS_ERRORS,
};

/* "MAPD_DEVICE_OOR", static, never NULL; and the architecture's error code (0 for the library's own). */
const char *vgic_its_error_name(enum vgic_its_error error);
uint32_t vgic_its_error_code(enum vgic_its_error error);

struct vgic_its_stats {
	size_t size;       /* sizeof(struct vgic_its_stats), set by the caller */
	uint64_t commands; /* executed, wrong ones included */
	uint64_t errors[VGIC_NUM_ITS_ERRORS];
	uint64_t dropped_its_off; /* MSIs by the reason why the guest did not get them */
	uint64_t dropped_unmapped_event;
	uint64_t dropped_unmapped_collection;
	uint64_t dropped_lpis_disabled;
	uint32_t num_devices; /* mapped now */
	uint32_t num_translations;
};

/* Counters of one ITS since creation. Returns 0, or -EINVAL for a size that is no known one. Any thread. */
int vgic_its_get_stats(struct vgic_its *its, struct vgic_its_stats *stats);

/* ---- Statistics ------------------------------------------------------------- */

struct vgic_stats {
	size_t size; /* sizeof(struct vgic_stats), set by the caller */
	uint64_t guest_errors[VGIC_NUM_GUEST_ERRORS];
	uint64_t acknowledges; /* INTIDs that IAR0 and IAR1 returned, special ones not counted */
	uint64_t spurious;     /* reads of IAR0 and IAR1 that returned 1023 */
	uint64_t kicks;        /* calls of kick() */
	uint64_t stale_hints;  /* candidates that turned out to be none: the cost of not clearing hints elsewhere */
};

/**
 * vgic_get_stats() - counters since creation, summed over all vCPUs.
 * @vgic:   the controller
 * @stats:  the result; size must be set
 *
 * Each counter is exact once the calls that count it have returned. Returns 0, or -EINVAL for a size that is no known one.
 */
int vgic_get_stats(struct vgic *vgic, struct vgic_stats *stats);

/* The name of a guest error, static: "read of a write-only register". Never NULL. */
const char *vgic_guest_error_name(enum vgic_guest_error_kind kind);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif /* VGIC_VGIC_H */
