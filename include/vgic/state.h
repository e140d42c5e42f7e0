/* SPDX-License-Identifier: MIT */
/*
 * libvgic - save, restore and migrate the state of a controller.
 *
 * There are two ways, and both hold everything that a guest can notice:
 *
 *   - Register by register, with the groups, encodings, meanings and errors of the device attributes of Linux's KVM
 *     (KVM_DEV_ARM_VGIC_*): vgic_attr_get() and its relatives. What KVM saves, libvgic restores, and the other way round.
 *     ITS tables and pending LPIs travel in guest memory.
 *   - All at once: vgic_save() and vgic_restore() make and take an image in a format of their own (docs/state-format.md),
 *     which is faster, needs no guest memory, and also holds what KVM's attributes do not: each source of a line, and
 *     which vCPUs are online.
 *
 * What the guest sees is unchanged by a save. A restore takes place in a controller that was created for it: see
 * vgic_restore(), and "Restoring register by register" below.
 *
 * Threads. The vCPUs must be stopped: between the calls of this file (except vgic_pause(), vgic_resume() and
 * vgic_attr_has()) and the last vgic_exit_guest() of each vCPU there must be an order, for instance by a mutex, and no
 * per-vCPU call (vgic.h) may run beside them. A vCPU that is between vgic_enter_guest() and vgic_exit_guest() is found
 * out: -EBUSY. One that waits (vgic_prepare_wait()) is stopped enough.
 *
 *   call                                    thread  beside
 *   --------------------------------------  ------  ------------------------------------------------------
 *   vgic_attr_has, vgic_its_attr_has,       any     everything
 *   vgic_pause, vgic_resume
 *   vgic_attr_get*, vgic_its_attr_get*      any     everything but the per-vCPU calls
 *   vgic_attr_set*, vgic_its_attr_set*      any     everything but the per-vCPU calls
 *   vgic_save, vgic_save_size               any     everything but the per-vCPU calls
 *   vgic_restore                            any     MSIs and lines (refused, kept or lost), vgic_mmio_* and the like
 *
 * Callbacks are made as by register accesses of the guest: guest_read and guest_write, kick, work_pending, guest_error.
 * Each guest_write() is a write to guest memory that the VMM has to migrate: its dirty tracking learns it there.
 */
#ifndef VGIC_STATE_H
#define VGIC_STATE_H

#include <vgic/vgic.h>

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

/* ---- Groups and attributes, with KVM's numbers -------------------------------- */

enum vgic_attr_group {
	VGIC_GRP_ADDR = 0,        /* KVM_DEV_ARM_VGIC_GRP_ADDR: VGIC_ADDR_* */
	VGIC_GRP_DIST_REGS = 1,   /* ..._DIST_REGS: VGIC_ATTR_DIST() */
	VGIC_GRP_CPU_REGS = 2,    /* ..._CPU_REGS: GICv2, always -ENXIO */
	VGIC_GRP_NR_IRQS = 3,     /* ..._NR_IRQS: attr 0 */
	VGIC_GRP_CTRL = 4,        /* ..._CTRL: VGIC_CTRL_* */
	VGIC_GRP_REDIST_REGS = 5, /* ..._REDIST_REGS: VGIC_ATTR_REDIST() */
	VGIC_GRP_CPU_SYSREGS = 6, /* ..._CPU_SYSREGS: VGIC_ATTR_SYSREG() */
	VGIC_GRP_LEVEL_INFO = 7,  /* ..._LEVEL_INFO: VGIC_ATTR_LEVEL() */
	VGIC_GRP_ITS_REGS = 8,    /* ..._ITS_REGS: the offset; of an ITS only */
};

/* VGIC_GRP_ADDR */
#define VGIC_ADDR_DIST          2u /* KVM_VGIC_V3_ADDR_TYPE_DIST */
#define VGIC_ADDR_REDIST        3u /* KVM_VGIC_V3_ADDR_TYPE_REDIST: the base of the only region */
#define VGIC_ADDR_ITS           4u /* KVM_VGIC_ITS_ADDR_TYPE; of an ITS */
#define VGIC_ADDR_REDIST_REGION 5u /* KVM_VGIC_V3_ADDR_TYPE_REDIST_REGION */

/* The value of a frame that has no address. */
#define VGIC_ADDR_UNDEFINED UINT64_MAX

/*
 * The value of VGIC_ADDR_REDIST_REGION: count in bits 63:52, base in 51:16, flags (0) in 15:12, index in 11:0. A get
 * takes the index from the value that it replaces.
 */
#define VGIC_REDIST_REGION(count, base, index)                                                                         \
	((uint64_t)(count) << 52 | ((uint64_t)(base)&UINT64_C(0x000fffffffff0000)) | ((uint64_t)(index)&0xfff))

/* VGIC_GRP_CTRL */
#define VGIC_CTRL_INIT                0u /* KVM_DEV_ARM_VGIC_CTRL_INIT */
#define VGIC_CTRL_ITS_SAVE_TABLES     1u /* KVM_DEV_ARM_ITS_SAVE_TABLES; of an ITS */
#define VGIC_CTRL_ITS_RESTORE_TABLES  2u /* KVM_DEV_ARM_ITS_RESTORE_TABLES; of an ITS */
#define VGIC_CTRL_SAVE_PENDING_TABLES 3u /* KVM_DEV_ARM_VGIC_SAVE_PENDING_TABLES */
#define VGIC_CTRL_ITS_RESET           4u /* KVM_DEV_ARM_ITS_CTRL_RESET; of an ITS */

/*
 * The upper half of an attribute names a vCPU by its affinity: Aff3 in bits 63:56, Aff2 55:48, Aff1 47:40, Aff0 39:32.
 * @affinity is as in struct vgic_vcpu_config, that is MPIDR_EL1.
 */
#define VGIC_ATTR_VCPU(affinity)                                                                                       \
	(((uint64_t)(affinity)&UINT64_C(0xff00000000)) << 24 | ((uint64_t)(affinity)&UINT64_C(0xffffff)) << 32)

#define VGIC_ATTR_DIST(offset)             ((uint64_t)(uint32_t)(offset))
#define VGIC_ATTR_REDIST(affinity, offset) (VGIC_ATTR_VCPU(affinity) | (uint32_t)(offset))
/* @sysreg is VGIC_SYSREG() or VGIC_ICC_*. */
#define VGIC_ATTR_SYSREG(affinity, sysreg) (VGIC_ATTR_VCPU(affinity) | (uint32_t)(sysreg))
/* The levels of 32 lines from @intid on, a multiple of 32. Bits 31:10 say what: 0, the level, is all there is. */
#define VGIC_ATTR_LEVEL(affinity, intid)   (VGIC_ATTR_VCPU(affinity) | ((uint32_t)(intid)&0x3ff))

/* ---- Attributes of a controller ----------------------------------------------- */

/*
 * VGIC_GRP_ADDR. The addresses are given at creation. A set of the address that a frame has succeeds, so that a VMM may
 * be written as for KVM; any other is -EEXIST.
 *
 * VGIC_GRP_NR_IRQS. The number of INTIDs of SGIs, PPIs and SPIs: 32 + num_spis. A set of that number succeeds, any other is
 * -EBUSY (-EINVAL if it is none that a controller could have).
 *
 * VGIC_GRP_CTRL, set only, the value is ignored. VGIC_CTRL_INIT succeeds and does nothing: a controller is complete when
 * vgic_create() returns. VGIC_CTRL_SAVE_PENDING_TABLES writes the pending state of every LPI into the pending table of its
 * redistributor, for those that have EnableLPIs set (the others' has been there since it was cleared). A table's first
 * KiB is never touched; words that hold the right bits already are not written.
 *
 * VGIC_GRP_DIST_REGS, VGIC_GRP_REDIST_REGS: 32 bits at a 32-bit aligned offset; the halves of 64-bit registers one by one.
 * As the guest's accesses (vgic_dist_write() and so on), but
 *   - GICD_IIDR: writing what was read selects that revision (VGIC_PROFILE_KVM: 1 to 3), and with it what else the guest
 *     finds. -EINVAL for any other value. It goes before all other registers.
 *   - ISPENDR reads and writes the pending latch, without the line. 0 bits of a write clear it.
 *   - ICPENDR reads as zero and ignores writes.
 *   - ISACTIVER, ICACTIVER: no deactivated() callback is made.
 *   - STATUSR takes the value that is written.
 *   - GICR_CTLR.EnableLPIs takes effect at once: when the call returns, pending table and configuration table have been
 *     read (or the pending table written).
 *   - Writes to read-only registers are ignored, and no access is counted or reported as the guest's error.
 *
 * VGIC_GRP_CPU_SYSREGS: 64 bits. ICC_PMR, BPR0, BPR1, AP0R0-3, AP1R0-3, CTLR, SRE, IGRPEN0 and IGRPEN1. A set returns
 * -EINVAL for an ICC_CTLR whose PRIbits, IDbits, SEIS or A3V this controller does not have, for ICC_SRE.SRE=0, and for
 * AP0R1-3 and AP1R1-3, which five priority bits do not have; so does a get of those. ICC_BPR1 is to be set while
 * ICC_CTLR.CBPR is 0, that is before ICC_CTLR: with CBPR=1 it shows BPR0, and a set is ignored.
 *
 * VGIC_GRP_LEVEL_INFO: 32 line levels. A level that is set makes no edge: what an edge has left is in the latch. Set to
 * 1, a line that is low is driven high by source 0; set to 0, all sources go low. A level that came by GICD_SETSPI_NSR is
 * source 0's too from then on: that is what lowers it. SGIs and INTIDs that the controller
 * lacks are RAZ/WI.
 *
 * Errors of all of them:
 *   -ENXIO   no such group, attribute or register; an offset of DIST_REGS or REDIST_REGS that is not 32-bit aligned; a get
 *            of VGIC_GRP_CTRL
 *   -EINVAL  a NULL pointer; the upper half of the attribute names no vCPU (not looked at for DIST_REGS); a value that
 *            is refused; LEVEL_INFO with bits 31:10 other than 0 or an INTID that is no multiple of 32
 *   -EBUSY   a vCPU is between vgic_enter_guest() and vgic_exit_guest()
 *   -EFAULT  guest memory could not be accessed (VGIC_CTRL_SAVE_PENDING_TABLES). Words before may have been written;
 *            what GICR_PENDBASER.PTZ said of a table that is complete is forgotten
 *   -ENOMEM  no memory (VGIC_CTRL_SAVE_PENDING_TABLES)
 *   -EEXIST  VGIC_GRP_ADDR: a set of another address than the frame has
 *   -ENOENT  VGIC_ADDR_REDIST_REGION: there is no region of that index
 *   -E2BIG   VGIC_ADDR_REDIST_REGION: the region's count or base does not fit into the value
 *
 * Restoring register by register. Into a controller that was just created or reset, in this order (GICR_ICENABLER0 with all
 * bits before GICR_ISENABLER0: in KVM's profile SGIs begin enabled):
 *
 *   1. GICD_IIDR, then the other registers of the distributor: GICD_CTLR first or last, ISPENDR after everything else
 *   2. each redistributor: PROPBASER and PENDBASER before GICR_CTLR; ICC registers; LEVEL_INFO
 *   3. each ITS: GITS_CBASER, then GITS_CREADR, GITS_CWRITER, GITS_BASER<n>, GITS_IIDR, then
 *      VGIC_CTRL_ITS_RESTORE_TABLES, then GITS_CTLR
 *
 * Saving has no order but this: VGIC_CTRL_ITS_SAVE_TABLES and VGIC_CTRL_SAVE_PENDING_TABLES come when nothing injects any
 * more (vgic_pause()), and guest memory is saved after them.
 */

/**
 * vgic_attr_get() - read an attribute: KVM_GET_DEVICE_ATTR.
 * @vgic:   the controller
 * @group:  enum vgic_attr_group
 * @attr:   which one, see above
 * @value:  the result; 32-bit ones are zero-extended. Untouched on error. VGIC_ADDR_REDIST_REGION reads the index from it
 *
 * Returns 0 or an error of the list above.
 */
int vgic_attr_get(struct vgic *vgic, uint32_t group, uint64_t attr, uint64_t *value);

/* vgic_attr_set() - write an attribute: KVM_SET_DEVICE_ATTR. Of 32-bit values the upper half is ignored. */
int vgic_attr_set(struct vgic *vgic, uint32_t group, uint64_t attr, uint64_t value);

/* vgic_attr_has() - is there such an attribute? KVM_HAS_DEVICE_ATTR. Returns 0, -ENXIO or -EINVAL. */
int vgic_attr_has(struct vgic *vgic, uint32_t group, uint64_t attr);

/* One of many. */
struct vgic_attr {
	uint32_t group;
	uint32_t reserved; /* 0 */
	uint64_t attr;
	uint64_t value;
};

/**
 * vgic_attr_get_many() - read many attributes.
 * @vgic:   the controller
 * @attrs:  which ones; their values are filled in
 * @num:    how many
 * @done:   how many were read before the first error, or NULL
 *
 * As so many calls of vgic_attr_get(), in order, up to the first that fails; its error is returned, or 0.
 */
int vgic_attr_get_many(struct vgic *vgic, struct vgic_attr *attrs, size_t num, size_t *done);

/* The same of vgic_attr_set(). What was set before an error stays set. */
int vgic_attr_set_many(struct vgic *vgic, const struct vgic_attr *attrs, size_t num, size_t *done);

/* ---- Attributes of an ITS ------------------------------------------------------- */

/*
 * VGIC_GRP_ADDR: VGIC_ADDR_ITS, as above (-ENODEV for any other type).
 *
 * VGIC_GRP_ITS_REGS: the attribute is the offset, the value has 64 bits whatever the register's width; 64-bit registers
 * in one piece. As the guest's accesses, but GITS_CREADR can be written (while the ITS is off, after GITS_CBASER, which
 * clears it), and GITS_IIDR takes the revision that it shows, which is that of the tables' layout.
 *
 * VGIC_GRP_CTRL, set only, the value is ignored.
 *   VGIC_CTRL_INIT                does nothing
 *   VGIC_CTRL_ITS_SAVE_TABLES     writes what is mapped into the guest's tables: device table, ITTs, collection table, in
 *                                 the layout of KVM's ABI revision 0. Entries of earlier times that a restore would find
 *                                 are cleared. A table that is not valid is left alone
 *   VGIC_CTRL_ITS_RESTORE_TABLES  replaces what is mapped by what the tables hold. All of it is checked first; on an error
 *                                 the ITS is as it was. Reads each LPI's configuration, and takes its pending state from
 *                                 the pending table of its redistributor if that has EnableLPIs set
 *   VGIC_CTRL_ITS_RESET           as after creation: off, nothing mapped, no queue, no tables
 *
 * Errors of all of them:
 *   -ENXIO   no such group, attribute or register; a get of VGIC_GRP_CTRL
 *   -EINVAL  a NULL pointer; an offset that is not aligned to the register; GITS_IIDR of another revision; GITS_CREADR past
 *            the end of the queue; tables that are inconsistent: ids or LPIs out of range, `next` that leads out of the
 *            table, a collection twice, a redistributor that does not exist; a device whose entry is not in the tables
 *            (level 1 was changed meanwhile)
 *   -EBUSY   a vCPU is between vgic_enter_guest() and vgic_exit_guest(); GITS_CREADR while the ITS is on;
 *            VGIC_CTRL_ITS_RESTORE_TABLES while the ITS is on or busy switching off
 *   -EFAULT  guest memory could not be accessed. A save may have written a part
 *   -ENOMEM  no memory
 *   -E2BIG   the tables map more than struct vgic_its_config says, or make more than 2^26 entries to be looked at
 */
int vgic_its_attr_get(struct vgic_its *its, uint32_t group, uint64_t attr, uint64_t *value);
int vgic_its_attr_set(struct vgic_its *its, uint32_t group, uint64_t attr, uint64_t value);
int vgic_its_attr_has(struct vgic_its *its, uint32_t group, uint64_t attr);
int vgic_its_attr_get_many(struct vgic_its *its, struct vgic_attr *attrs, size_t num, size_t *done);
int vgic_its_attr_set_many(struct vgic_its *its, const struct vgic_attr *attrs, size_t num, size_t *done);

/* ---- Pausing MSIs ----------------------------------------------------------------- */

/**
 * vgic_pause() - accept no more MSIs.
 * @vgic:  the controller
 *
 * When it returns, every MSI that was accepted (a return value of 1) is in the state that a save sees. What becomes of later
 * ones depends on how they are signalled, and none is lost:
 *
 *   vgic_signal_msi(), vgic_its_signal()      -EAGAIN: the device keeps it, and signals it again after vgic_resume(), or at
 *                                             the place where the guest was moved to
 *   a GSI: vgic_signal_gsi(), irqfds, MSI-X   0: the route keeps it (route.h), vgic_gsi_is_pending() and the vector's pending
 *                                             bit say so, and vgic_resume() delivers it. For a guest that moves, the VMM saves
 *                                             these bits when its devices have stopped, and signals them over there when the
 *                                             controller has been restored
 *
 * An MSI that was under way counts as one or the other. (One to GICD_SETSPI_NSR that was not accepted may be there all the
 * same: a guest may see it twice, but never lose it.)
 *
 * Nothing of this is visible to the guest. ITS commands wait as well. Lines are not paused: stop the devices that drive
 * them, or drive them again after a restore. Pauses nest; each needs its vgic_resume(). Takes about as long as one MSI for
 * each translation. Returns 0, or -EINVAL for NULL.
 */
int vgic_pause(struct vgic *vgic);

/*
 * vgic_resume() - end of one vgic_pause(). After the last one, this thread delivers what the controller's route tables have
 * kept, in time that goes with their sizes. What is masked stays until the mask goes. Returns 0, or -EINVAL if there is no
 * pause, or for NULL.
 */
int vgic_resume(struct vgic *vgic);

/* ---- All at once --------------------------------------------------------------------- */

/**
 * vgic_save_size() - how many bytes vgic_save() needs now.
 * @vgic:  the controller
 * @size:  the result
 *
 * Stays right while nothing but MSIs and lines comes in. Returns 0, -EINVAL for a NULL pointer, or -EBUSY.
 */
int vgic_save_size(struct vgic *vgic, size_t *size);

/**
 * vgic_save() - make an image of the whole controller.
 * @vgic:   the controller
 * @image:  where it is put
 * @size:   room there, in bytes
 * @used:   the size of the image
 *
 * MSIs are paused (vgic_pause()) for as long as it takes: none is lost and none is in doubt. Call vgic_pause() before if the
 * guest shall go on elsewhere: then each MSI is in the image, or was delivered before, or was reported as not accepted
 * (-EAGAIN, or pending at its GSI). The image has the same bytes on every host and for every order of vCPUs at creation. Guest
 * memory is neither read nor written.
 *
 * Returns 0, or
 *   -EINVAL  a NULL pointer
 *   -EBUSY   a vCPU is between vgic_enter_guest() and vgic_exit_guest()
 *   -ENOSPC  @size is too small; *used has what is needed, nothing is written
 *   -ENOMEM  no memory
 */
int vgic_save(struct vgic *vgic, void *image, size_t size, size_t *used);

/* Why an image was refused. */
struct vgic_restore_error {
	size_t size;           /* sizeof(struct vgic_restore_error), set by the caller */
	const char *what;      /* static: "number of SPIs" */
	uint64_t in_image;     /* what the image has... */
	uint64_t here;         /* ...and what this controller has or can hold; 0 where there is nothing to compare */
	uint64_t image_offset; /* where in the image, in bytes */
};

/**
 * vgic_restore() - give a controller the state of an image.
 * @vgic:   the controller: everything that it has been is replaced
 * @image:  what vgic_save() has made. It may come from anywhere: every field is checked
 * @size:   its size in bytes
 * @why:    filled in if the image is refused; may be NULL
 *
 * All is checked before anything is changed. The controller must have the profile of the image, and at least its features,
 * SPIs, LPI bits, vCPU ids and ITSes; vCPUs are matched by their ids, whatever their order, and must have the same
 * affinities. vCPUs, SPIs and ITSes that the image does not have get their reset state. Addresses are not part of the
 * image. Lines are as the image has them: the VMM drives those again that have changed since.
 *
 * Returns 0, or
 *   -EINVAL      a NULL pointer, or an unknown size of @why
 *   -EBUSY       a vCPU is between vgic_enter_guest() and vgic_exit_guest()
 *   -EBADMSG     no image, or a damaged one: magic number, length, checksum, or a value that vgic_save() never writes
 *   -EPROTONOSUPPORT  a later version of the format, or a part of the image that must be understood and is not
 *   -ENODEV      a vCPU id of the image does not exist here, or has another affinity; an ITS that does not exist here
 *   -E2BIG       more vCPUs, SPIs, LPIs, device or event ids, devices or translations than there is room for here
 *   -EOPNOTSUPP  another profile, a feature that this controller does not have
 *   -ENOMEM      no memory
 */
int vgic_restore(struct vgic *vgic, const void *image, size_t size, struct vgic_restore_error *why);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif /* VGIC_STATE_H */
