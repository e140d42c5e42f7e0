/* SPDX-License-Identifier: MIT */
/*
 * target.h - an interrupt controller that scripts can be executed on.
 *
 * There are two: libvgic (target_vgic.c) and KVM's in-kernel vGIC (kvm/target_kvm.c).
 * Each program of this directory is linked with one of them. A target is a whole
 * machine: vCPUs that do accesses on request, guest memory, GIC and ITSes. One
 * thread uses it.
 */
#ifndef ORACLE_TARGET_H
#define ORACLE_TARGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- The machine's layout, the same on both ---- */

#define GICD_BASE     UINT64_C(0x08000000)
#define GITS_BASE(i)  (UINT64_C(0x08100000) + UINT64_C(0x20000) * (i))
#define GICR_BASE     UINT64_C(0x08200000)
#define GICR_SIZE     UINT64_C(0x20000)
#define RAM_BASE      UINT64_C(0x40000000)
#define RAM_SIZE      UINT64_C(0x04000000)
#define RAM_SCRIPTS   (RAM_BASE + 0x100000) /* what is below belongs to the target */
#define MAX_VCPUS     16u
#define MAX_ITSES     2u
#define NUM_IRQ_FIRST 32u /* SPIs begin here */
#define DEFAULT_SPIS  64u
#define KVM_REVISION  3u
#define RESULT_TEXT   256

/* What a script asks for by `machine`. */
struct machine_description {
	uint32_t num_vcpus;
	uint32_t ids[MAX_VCPUS]; /* in the order of creation */
	uint32_t num_spis;
	uint32_t num_itses;
	uint32_t revision; /* that the IIDRs show */
};

/* ---- What a vCPU can be asked to do ---- */

enum guest_op {
	GUEST_READ,  /* load from a device register, 1 to 8 bytes */
	GUEST_WRITE, /* store */
	GUEST_MRS,   /* read a system register of the CPU interface */
	GUEST_MSR,   /* write one */
	GUEST_LINES, /* which interrupt lines does the vCPU see? */
	GUEST_SWEEP, /* load words of 32 bits, from so many addresses in a row */
	GUEST_FLOOD, /* store the same word to so many addresses in a row */
};

#define MAX_SWEEP 0x4000u

#define LINES_IRQ 1u
#define LINES_FIQ 2u

struct guest_request {
	enum guest_op op;
	unsigned width;   /* of the access, in bytes */
	uint64_t address; /* guest-physical, or the system register (enum sysreg) */
	uint64_t value;
	uint32_t count;  /* of a sweep or flood */
	uint32_t *words; /* of a sweep: the result */
};

enum guest_outcome {
	GUEST_OK,
	GUEST_UNDEFINED, /* an Undefined Instruction exception */
	GUEST_NO_DEVICE, /* nothing answered at that address */
	GUEST_FAULT,     /* anything else: the text says what */
};

struct guest_answer {
	enum guest_outcome outcome;
	uint64_t value;
	char text[RESULT_TEXT];
};

/* System registers, in the order of sysregs[] in script.c and of the table in kvm/payload.S. */
enum sysreg {
	SYSREG_PMR,
	SYSREG_IAR0,
	SYSREG_EOIR0,
	SYSREG_HPPIR0,
	SYSREG_BPR0,
	SYSREG_AP0R0,
	SYSREG_AP0R1,
	SYSREG_AP1R0,
	SYSREG_AP1R1,
	SYSREG_DIR,
	SYSREG_RPR,
	SYSREG_SGI1R,
	SYSREG_ASGI1R,
	SYSREG_SGI0R,
	SYSREG_IAR1,
	SYSREG_EOIR1,
	SYSREG_HPPIR1,
	SYSREG_BPR1,
	SYSREG_CTLR,
	SYSREG_SRE,
	SYSREG_IGRPEN0,
	SYSREG_IGRPEN1,
	NUM_SYSREGS,
};

struct sysreg_name {
	const char *name;  /* without ICC_ and _EL1 */
	uint32_t encoding; /* op0 op1 CRn CRm op2, as KVM's device attributes have it */
};

extern const struct sysreg_name sysregs[NUM_SYSREGS];

/* ---- Device attributes, with KVM's groups and numbers ---- */

enum attr_device { ATTR_VGIC, ATTR_ITS };

enum attr_group {
	ATTR_DIST_REGS = 1,
	ATTR_CTRL = 4,
	ATTR_REDIST_REGS = 5,
	ATTR_CPU_SYSREGS = 6,
	ATTR_LEVEL_INFO = 7,
	ATTR_ITS_REGS = 8,
};

#define CTRL_SAVE_TABLES    1u
#define CTRL_RESTORE_TABLES 2u
#define CTRL_SAVE_PENDING   3u
#define CTRL_RESET          4u

struct attr_request {
	enum attr_device device;
	unsigned its;
	uint32_t group;
	uint64_t attr;
	bool set;
	uint64_t value; /* of a set; of a get the result */
};

/* ---- The machine ---- */

struct target;

extern const char target_name[]; /* "kvm" or "libvgic" */

/* NULL if it cannot be made: @why says why. */
struct target *target_new(const struct machine_description *description, char why[RESULT_TEXT]);
void target_free(struct target *t);

/* Guest memory, RAM_SIZE bytes from RAM_BASE. */
uint8_t *target_ram(struct target *t);

struct guest_answer target_guest(struct target *t, uint32_t vcpu_index, const struct guest_request *request);

/*
 * A vCPU is in the guest, and does nothing there, until it is stopped: by another thread in KVM. Meanwhile nothing else is
 * to be asked of any vCPU. Returns 0 or a negative errno.
 */
int target_run(struct target *t, uint32_t vcpu_index);
int target_stop(struct target *t, uint32_t vcpu_index);

/* Let all vCPUs run for a moment, as they would: KVM takes an interrupt away from a vCPU when that runs next. */
void target_settle(struct target *t);

/* The following return what the ioctl would: a negative errno, or 0 or more. */
int target_attr(struct target *t, struct attr_request *request);
int target_signal_msi(struct target *t, uint64_t address, uint32_t data, uint32_t devid, uint32_t flags);
int target_set_spi(struct target *t, uint32_t intid, bool level);
int target_set_ppi(struct target *t, uint32_t vcpu_index, uint32_t intid, bool level);

/* MPIDR_EL1 of a vCPU, as KVM makes it from the id: the affinity fields alone. */
uint64_t target_affinity(uint32_t id);

#endif /* ORACLE_TARGET_H */
