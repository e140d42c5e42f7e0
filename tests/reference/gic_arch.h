/* SPDX-License-Identifier: MIT */
/*
 * The architecture's constants, as far as the tests need them: register offsets
 * and fields of the GICv3 distributor and redistributor.
 *
 * Written from the Arm GIC architecture specification (IHI 0069), on purpose not
 * shared with the library: a wrong constant there must not be wrong here too.
 */
#ifndef TESTS_GIC_ARCH_H
#define TESTS_GIC_ARCH_H

/* ---- INTIDs ---- */

#define GIC_FIRST_PPI   16u
#define GIC_FIRST_SPI   32u
#define GIC_END_SPI     1020u /* one past the last SPI that the architecture has */
#define GIC_SPURIOUS    1023u
#define GIC_FIRST_LPI   8192u
#define GIC_NUM_PRIVATE 32u /* SGIs and PPIs */

/* ---- Distributor ---- */

#define GICD_CTLR       0x0000u
#define GICD_TYPER      0x0004u
#define GICD_IIDR       0x0008u
#define GICD_TYPER2     0x000cu
#define GICD_STATUSR    0x0010u
#define GICD_SETSPI_NSR 0x0040u
#define GICD_CLRSPI_NSR 0x0048u
#define GICD_SETSPI_SR  0x0050u
#define GICD_CLRSPI_SR  0x0058u
#define GICD_IGROUPR    0x0080u
#define GICD_ISENABLER  0x0100u
#define GICD_ICENABLER  0x0180u
#define GICD_ISPENDR    0x0200u
#define GICD_ICPENDR    0x0280u
#define GICD_ISACTIVER  0x0300u
#define GICD_ICACTIVER  0x0380u
#define GICD_IPRIORITYR 0x0400u
#define GICD_ITARGETSR  0x0800u
#define GICD_ICFGR      0x0c00u
#define GICD_IGRPMODR   0x0d00u
#define GICD_NSACR      0x0e00u
#define GICD_SGIR       0x0f00u
#define GICD_CPENDSGIR  0x0f10u
#define GICD_SPENDSGIR  0x0f20u
#define GICD_IROUTER    0x6000u
#define GIC_ID_FIRST    0xffd0u /* PIDR4, in GICD and GICR alike */
#define GIC_PIDR2       0xffe8u

#define GICD_CTLR_ENABLE_GRP0 (1u << 0)
#define GICD_CTLR_ENABLE_GRP1 (1u << 1)
#define GICD_CTLR_ARE         (1u << 4)
#define GICD_CTLR_DS          (1u << 6)
#define GICD_CTLR_RWP         (1u << 31)

#define GICD_TYPER_MBIS         (1u << 16)
#define GICD_TYPER_LPIS         (1u << 17)
#define GICD_TYPER_IDBITS_SHIFT 19
#define GICD_TYPER_A3V          (1u << 24)
#define GICD_TYPER_NO1N         (1u << 25)
#define GICD_TYPER_RSS          (1u << 26)

#define GICD_IROUTER_AFF012 0x00ffffffull
#define GICD_IROUTER_IRM    (1ull << 31)
#define GICD_IROUTER_AFF3   (0xffull << 32)

/* GICD_STATUSR and GICR_STATUSR. */
#define GIC_STATUSR_RRD  (1u << 0)
#define GIC_STATUSR_WRD  (1u << 1)
#define GIC_STATUSR_RWOD (1u << 2)
#define GIC_STATUSR_WROD (1u << 3)

/* ---- Redistributor: RD_base, then SGI_base ---- */

#define GICR_CTLR      0x0000u
#define GICR_IIDR      0x0004u
#define GICR_TYPER     0x0008u
#define GICR_STATUSR   0x0010u
#define GICR_WAKER     0x0014u
#define GICR_SETLPIR   0x0040u
#define GICR_CLRLPIR   0x0048u
#define GICR_PROPBASER 0x0070u
#define GICR_PENDBASER 0x0078u
#define GICR_INVLPIR   0x00a0u
#define GICR_INVALLR   0x00b0u
#define GICR_SYNCR     0x00c0u

#define GICR_SGI_BASE   0x10000u
#define GICR_IGROUPR0   (GICR_SGI_BASE + 0x0080u)
#define GICR_ISENABLER0 (GICR_SGI_BASE + 0x0100u)
#define GICR_ICENABLER0 (GICR_SGI_BASE + 0x0180u)
#define GICR_ISPENDR0   (GICR_SGI_BASE + 0x0200u)
#define GICR_ICPENDR0   (GICR_SGI_BASE + 0x0280u)
#define GICR_ISACTIVER0 (GICR_SGI_BASE + 0x0300u)
#define GICR_ICACTIVER0 (GICR_SGI_BASE + 0x0380u)
#define GICR_IPRIORITYR (GICR_SGI_BASE + 0x0400u)
#define GICR_ICFGR0     (GICR_SGI_BASE + 0x0c00u)
#define GICR_ICFGR1     (GICR_SGI_BASE + 0x0c04u)
#define GICR_IGRPMODR0  (GICR_SGI_BASE + 0x0d00u)
#define GICR_NSACR      (GICR_SGI_BASE + 0x0e00u)

#define GICR_CTLR_CES    (1u << 1)
#define GICR_CTLR_IR     (1u << 2)
#define GICR_CTLR_RWP    (1u << 3)
#define GICR_CTLR_DPG0   (1u << 24)
#define GICR_CTLR_DPG1NS (1u << 25)
#define GICR_CTLR_DPG1S  (1u << 26)
#define GICR_CTLR_UWP    (1u << 31)

#define GICR_TYPER_PLPIS           (1ull << 0)
#define GICR_TYPER_LAST            (1ull << 4)
#define GICR_TYPER_DPGS            (1ull << 5)
#define GICR_TYPER_NUMBER_SHIFT    8
#define GICR_TYPER_AFFINITY_SHIFT  32
#define GICR_WAKER_PROCESSOR_SLEEP (1u << 1)
#define GICR_WAKER_CHILDREN_ASLEEP (1u << 2)

/* ---- CPU interface ---- */

#define ICC_CTLR_CBPR          (1u << 0)
#define ICC_CTLR_EOIMODE       (1u << 1)
#define ICC_CTLR_PRIBITS_SHIFT 8
#define ICC_CTLR_IDBITS_SHIFT  11
#define ICC_CTLR_A3V           (1u << 15)
#define ICC_CTLR_RSS           (1u << 18)
#define ICC_INTID_MASK         0xffffffu
#define ICC_SGIR_TARGETS       0xffffull
#define ICC_SGIR_AFF1_SHIFT    16
#define ICC_SGIR_INTID_SHIFT   24
#define ICC_SGIR_AFF2_SHIFT    32
#define ICC_SGIR_IRM           (1ull << 40)
#define ICC_SGIR_RS_SHIFT      44
#define ICC_SGIR_AFF3_SHIFT    48
#define ICC_RPR_IDLE           0xffu
#define GIC_PRIORITY_MASK      0xf8u /* five implemented bits */
#define GIC_MIN_BPR0           2u
#define GIC_MIN_BPR1           3u

#endif /* TESTS_GIC_ARCH_H */
