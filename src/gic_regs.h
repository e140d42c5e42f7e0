/* SPDX-License-Identifier: MIT */
/*
 * gic_regs.h - the architecture's constants: register offsets and fields of the
 * GICv3 frames and system registers, with the names of Arm IHI 0069.
 */
#ifndef VGIC_GIC_REGS_H
#define VGIC_GIC_REGS_H

/* ---- Distributor ---- */
#define GICD_CTLR         0x0000
#define GICD_TYPER        0x0004
#define GICD_IIDR         0x0008
#define GICD_TYPER2       0x000c
#define GICD_STATUSR      0x0010
#define GICD_SETSPI_NSR   0x0040
#define GICD_CLRSPI_NSR   0x0048
#define GICD_SETSPI_SR    0x0050
#define GICD_CLRSPI_SR    0x0058
#define GICD_IGROUPR      0x0080
#define GICD_ISENABLER    0x0100
#define GICD_ICENABLER    0x0180
#define GICD_ISPENDR      0x0200
#define GICD_ICPENDR      0x0280
#define GICD_ISACTIVER    0x0300
#define GICD_ICACTIVER    0x0380
#define GICD_IPRIORITYR   0x0400
#define GICD_ITARGETSR    0x0800
#define GICD_ICFGR        0x0c00
#define GICD_IGRPMODR     0x0d00
#define GICD_NSACR        0x0e00
#define GICD_SGIR         0x0f00
#define GICD_CPENDSGIR    0x0f10
#define GICD_SPENDSGIR    0x0f20
#define GICD_IROUTER      0x6000
#define GICD_ID_REGISTERS 0xffd0

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

#define GICD_IROUTER_IRM      (UINT64_C(1) << 31)
#define GICD_IROUTER_AFF3     (UINT64_C(0xff) << 32)
#define GICD_IROUTER_AFFINITY (GICD_IROUTER_AFF3 | UINT64_C(0xffffff))

/* GICD_STATUSR and GICR_STATUSR */
#define STATUSR_RRD  (1u << 0)
#define STATUSR_WRD  (1u << 1)
#define STATUSR_RWOD (1u << 2)
#define STATUSR_WROD (1u << 3)
#define STATUSR_ALL  (STATUSR_RRD | STATUSR_WRD | STATUSR_RWOD | STATUSR_WROD)

/* ---- Redistributor: RD_base, then SGI_base 64 KiB above ---- */
#define GICR_CTLR         0x0000
#define GICR_IIDR         0x0004
#define GICR_TYPER        0x0008
#define GICR_STATUSR      0x0010
#define GICR_WAKER        0x0014
#define GICR_SETLPIR      0x0040
#define GICR_CLRLPIR      0x0048
#define GICR_PROPBASER    0x0070
#define GICR_PENDBASER    0x0078
#define GICR_INVLPIR      0x00a0
#define GICR_INVALLR      0x00b0
#define GICR_SYNCR        0x00c0
#define GICR_ID_REGISTERS 0xffd0

#define GICR_SGI_BASE   0x10000
#define GICR_IGROUPR0   (GICR_SGI_BASE + 0x0080)
#define GICR_ISENABLER0 (GICR_SGI_BASE + 0x0100)
#define GICR_ICENABLER0 (GICR_SGI_BASE + 0x0180)
#define GICR_ISPENDR0   (GICR_SGI_BASE + 0x0200)
#define GICR_ICPENDR0   (GICR_SGI_BASE + 0x0280)
#define GICR_ISACTIVER0 (GICR_SGI_BASE + 0x0300)
#define GICR_ICACTIVER0 (GICR_SGI_BASE + 0x0380)
#define GICR_IPRIORITYR (GICR_SGI_BASE + 0x0400)
#define GICR_ICFGR      (GICR_SGI_BASE + 0x0c00)
#define GICR_IGRPMODR0  (GICR_SGI_BASE + 0x0d00)
#define GICR_NSACR      (GICR_SGI_BASE + 0x0e00)

#define GICR_CTLR_CES    (1u << 1)
#define GICR_CTLR_IR     (1u << 2)
#define GICR_CTLR_RWP    (1u << 3)
#define GICR_CTLR_DPG0   (1u << 24)
#define GICR_CTLR_DPG1NS (1u << 25)

#define GICR_TYPER_PLPIS                  (UINT64_C(1) << 0)
#define GICR_TYPER_LAST                   (UINT64_C(1) << 4)
#define GICR_TYPER_DPGS                   (UINT64_C(1) << 5)
#define GICR_TYPER_PROCESSOR_NUMBER_SHIFT 8
#define GICR_TYPER_AFFINITY_SHIFT         32

#define GICR_WAKER_PROCESSOR_SLEEP (1u << 1)
#define GICR_WAKER_CHILDREN_ASLEEP (1u << 2)

/* What KVM's vGIC shows out of reset: inner shareable, read-allocate, write-back. */
#define GICR_TABLES_RESET_KVM UINT64_C(0x580)

#define GICR_CTLR_ENABLE_LPIS (1u << 0)
#define GICR_TYPER_DIRECT_LPI (UINT64_C(1) << 3)
#define GICR_SYNCR_BUSY       1u

#define GICR_PROPBASER_IDBITS   UINT64_C(0x1f)
#define GICR_PROPBASER_ADDRESS  UINT64_C(0x000ffffffffff000)
#define GICR_PROPBASER_WRITABLE (UINT64_C(0x0700000000000f9f) | GICR_PROPBASER_ADDRESS)
#define GICR_PENDBASER_PTZ      (UINT64_C(1) << 62)
#define GICR_PENDBASER_ADDRESS  UINT64_C(0x000fffffffff0000)
#define GICR_PENDBASER_WRITABLE (UINT64_C(0x0700000000000f80) | GICR_PENDBASER_ADDRESS)

/* ---- ITS: control registers, then the doorbell's page 64 KiB above ---- */
#define GITS_CTLR         0x0000
#define GITS_IIDR         0x0004
#define GITS_TYPER        0x0008
#define GITS_CBASER       0x0080
#define GITS_CWRITER      0x0088
#define GITS_CREADR       0x0090
#define GITS_BASER        0x0100
#define GITS_ID_REGISTERS 0xffd0
#define GITS_TRANSLATER   0x10040

#define GITS_CTLR_ENABLED   (1u << 0)
#define GITS_CTLR_QUIESCENT (1u << 31)

#define GITS_TYPER_PHYSICAL             (UINT64_C(1) << 0)
#define GITS_TYPER_ITT_ENTRY_SIZE_SHIFT 4
#define GITS_TYPER_ID_BITS_SHIFT        8
#define GITS_TYPER_DEVBITS_SHIFT        13

#define GITS_CBASER_VALID       (UINT64_C(1) << 63)
#define GITS_CBASER_SIZE        UINT64_C(0xff)
#define GITS_CBASER_ADDRESS     UINT64_C(0x000ffffffffff000)
#define GITS_CBASER_WRITABLE    (UINT64_C(0xb8e0000000000cff) | GITS_CBASER_ADDRESS)
#define GITS_CBASER_PART_OF_64K UINT64_C(0xf000)
#define GITS_CWRITER_OFFSET     UINT64_C(0xfffe0)

#define GITS_BASER_VALID            (UINT64_C(1) << 63)
#define GITS_BASER_INDIRECT         (UINT64_C(1) << 62)
#define GITS_BASER_SIZE             UINT64_C(0xff)
#define GITS_BASER_ADDRESS_47_16    UINT64_C(0x0000ffffffff0000)
#define GITS_BASER_ADDRESS_51_48    UINT64_C(0xf000)
#define GITS_BASER_ATTRIBUTES       UINT64_C(0x38e0000000000c00) /* cacheability and shareability */
#define GITS_BASER_ATTRIBUTES_RESET UINT64_C(0x1800000000000400) /* inner cacheable and shareable, as KVM shows */
#define GITS_BASER_TYPE_SHIFT       56
#define GITS_BASER_TYPE_DEVICES     UINT64_C(1)
#define GITS_BASER_TYPE_COLLECTIONS UINT64_C(4)
#define GITS_BASER_ENTRY_SIZE_SHIFT 48
#define GITS_BASER_PAGES_OF_64K     UINT64_C(0x200)
#define GITS_LEVEL1_VALID           (UINT64_C(1) << 63)
#define GITS_LEVEL1_ADDRESS         UINT64_C(0x000fffffffff0000)

/* ---- Cacheability and shareability of the guest's tables: see baser.h ---- */
#define BASER_CACHEABILITY_MASK        UINT64_C(7)
#define BASER_OUTER_SAME_AS_INNER      UINT64_C(0)
#define BASER_NON_CACHEABLE            UINT64_C(1)
#define BASER_READ_ALLOCATE_WRITE_BACK UINT64_C(3)
#define BASER_SHAREABILITY_SHIFT       10
#define BASER_SHAREABILITY_MASK        UINT64_C(3)
#define BASER_INNER_SHAREABLE          UINT64_C(1)
#define BASER_OUTER_SHAREABLE          UINT64_C(2)

/* ---- Identification ---- */
#define IIDR_NATIVE         0x76001000u /* ProductID 'v', Revision 1 */
#define IIDR_KVM            0x4b00043bu /* ProductID 'K', Implementer Arm */
#define IIDR_REVISION       (0xfu << IIDR_REVISION_SHIFT)
#define IIDR_REVISION_SHIFT 12
#define KVM_REVISION_MIN    1u
#define KVM_REVISION_MAX    3u
#define PIDR2_GICV3         0x3bu

/* ---- CPU interface ---- */
#define ICC_CTLR_CBPR          (1u << 0)
#define ICC_CTLR_EOIMODE       (1u << 1)
#define ICC_CTLR_PRIBITS       (7u << ICC_CTLR_PRIBITS_SHIFT)
#define ICC_CTLR_PRIBITS_SHIFT 8
#define ICC_CTLR_IDBITS        (7u << ICC_CTLR_IDBITS_SHIFT)
#define ICC_CTLR_IDBITS_SHIFT  11
#define ICC_CTLR_SEIS          (1u << 14)
#define ICC_CTLR_A3V           (1u << 15)
#define ICC_CTLR_RSS           (1u << 18)
#define ICC_SRE_SRE            (1u << 0)
#define ICC_SRE_DFB            (1u << 1)
#define ICC_SRE_DIB            (1u << 2)
#define ICC_RPR_IDLE           0xffu

#define ICC_SGIR_AFF3_SHIFT  48
#define ICC_SGIR_RS_SHIFT    44
#define ICC_SGIR_IRM         (UINT64_C(1) << 40)
#define ICC_SGIR_AFF2_SHIFT  32
#define ICC_SGIR_INTID_SHIFT 24
#define ICC_SGIR_AFF1_SHIFT  16

#endif /* VGIC_GIC_REGS_H */
