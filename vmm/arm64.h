/* SPDX-License-Identifier: MIT */
/*
 * The few constants of the Arm architecture that the VMM needs beside the GIC:
 * system register encodings (the form that libvgic uses too), PSTATE, ESR_EL1.
 */
#ifndef VMM_ARM64_H
#define VMM_ARM64_H

#include <stdint.h>

/* A system register or system instruction, as in MRS, MSR and SYS. Equal to VGIC_SYSREG(). */
#define SYSREG(op0, op1, crn, crm, op2)                                                                                \
	((uint32_t)(((op0) << 14) | ((op1) << 11) | ((crn) << 7) | ((crm) << 3) | (op2)))

#define SYSREG_OP0(reg) (((reg) >> 14) & 3u)
#define SYSREG_OP1(reg) (((reg) >> 11) & 7u)
#define SYSREG_CRN(reg) (((reg) >> 7) & 15u)
#define SYSREG_CRM(reg) (((reg) >> 3) & 15u)
#define SYSREG_OP2(reg) ((reg)&7u)

#define SYS_MPIDR_EL1       SYSREG(3, 0, 0, 0, 5)
#define SYS_ID_AA64PFR0_EL1 SYSREG(3, 0, 0, 4, 0)
#define SYS_ID_AA64DFR0_EL1 SYSREG(3, 0, 0, 5, 0)
#define SYS_SCTLR_EL1       SYSREG(3, 0, 1, 0, 0)
#define SYS_SPSR_EL1        SYSREG(3, 0, 4, 0, 0)
#define SYS_ELR_EL1         SYSREG(3, 0, 4, 0, 1)
#define SYS_SP_EL0          SYSREG(3, 0, 4, 1, 0)
#define SYS_ESR_EL1         SYSREG(3, 0, 5, 2, 0)
#define SYS_PAR_EL1         SYSREG(3, 0, 7, 4, 0)
#define SYS_VBAR_EL1        SYSREG(3, 0, 12, 0, 0)
#define SYS_TPIDR_EL1       SYSREG(3, 0, 13, 0, 4)
#define SYS_CNTKCTL_EL1     SYSREG(3, 0, 14, 1, 0)
#define SYS_DCZID_EL0       SYSREG(3, 3, 0, 0, 7)
#define SYS_TPIDR_EL0       SYSREG(3, 3, 13, 0, 2)
#define SYS_TPIDRRO_EL0     SYSREG(3, 3, 13, 0, 3)
#define SYS_CNTFRQ_EL0      SYSREG(3, 3, 14, 0, 0)
#define SYS_CNTPCT_EL0      SYSREG(3, 3, 14, 0, 1)
#define SYS_CNTVCT_EL0      SYSREG(3, 3, 14, 0, 2)
#define SYS_CNTP_TVAL_EL0   SYSREG(3, 3, 14, 2, 0)
#define SYS_CNTP_CTL_EL0    SYSREG(3, 3, 14, 2, 1)
#define SYS_CNTP_CVAL_EL0   SYSREG(3, 3, 14, 2, 2)
#define SYS_CNTV_TVAL_EL0   SYSREG(3, 3, 14, 3, 0)
#define SYS_CNTV_CTL_EL0    SYSREG(3, 3, 14, 3, 1)
#define SYS_CNTV_CVAL_EL0   SYSREG(3, 3, 14, 3, 2)
#define SYS_HCR_EL2         SYSREG(3, 4, 1, 1, 0)
#define SYS_SCR_EL3         SYSREG(3, 6, 1, 1, 0)

/* System instructions. */
#define SYS_AT_S1E1R     SYSREG(1, 0, 7, 8, 0)
#define SYS_IC_IALLUIS   SYSREG(1, 0, 7, 1, 0)
#define SYS_IC_IVAU      SYSREG(1, 3, 7, 5, 1)
#define SYS_TLBI_VMALLE1 SYSREG(1, 0, 8, 7, 0)

/* Offsets of the exception vectors from VBAR_EL1. */
#define VECTOR_CURRENT_SP0 0x000
#define VECTOR_CURRENT_SPX 0x200
#define VECTOR_LOWER       0x400
#define VECTOR_SYNC        0x000
#define VECTOR_IRQ         0x080
#define VECTOR_FIQ         0x100
#define VECTORS_SIZE       0x800

#define PSTATE_F     (1u << 6)
#define PSTATE_I     (1u << 7)
#define PSTATE_SP    (1u << 0)
#define PSTATE_EL(p) (((p) >> 2) & 3u)
#define PSTATE_NZCV  0xf0000000u
#define PSTATE_EL1H  0x5u
#define PSTATE_DAIF  0x3c0u

#define ESR_EC_SHIFT  26
#define ESR_EC(esr)   (((esr) >> ESR_EC_SHIFT) & 0x3fu)
#define ESR_EC_SVC64  0x15u
#define ESR_EC_FP     0x07u
#define ESR_IL        (1u << 25)
#define ESR_UNDEFINED ESR_IL /* EC 0: an unknown reason, which is what an Undefined Instruction exception has */

/* MPIDR_EL1: bit 31 is RES1, the affinity fields are where struct vgic_vcpu_config has them. */
#define MPIDR_RES1          (1ull << 31)
#define MPIDR_AFFINITY_MASK 0xff00ffffffull

#endif /* VMM_ARM64_H */
