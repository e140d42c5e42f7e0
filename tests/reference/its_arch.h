/* SPDX-License-Identifier: MIT */
/*
 * The architecture's constants of the ITS and of LPIs, as far as the tests need
 * them: registers, table entries and commands.
 *
 * Written from the Arm GIC architecture specification (IHI 0069), on purpose not
 * shared with the library, as gic_arch.h is.
 */
#ifndef TESTS_ITS_ARCH_H
#define TESTS_ITS_ARCH_H

/* ---- ITS: control registers, then the page of the doorbell ---- */

#define GITS_CTLR       0x0000u
#define GITS_IIDR       0x0004u
#define GITS_TYPER      0x0008u
#define GITS_CBASER     0x0080u
#define GITS_CWRITER    0x0088u
#define GITS_CREADR     0x0090u
#define GITS_BASER0     0x0100u
#define GITS_BASER1     0x0108u
#define GITS_NUM_BASERS 8u
#define GITS_TRANSLATER 0x10040u

#define GITS_CTLR_ENABLED   (1u << 0)
#define GITS_CTLR_QUIESCENT (1u << 31)

#define GITS_TYPER_PHYSICAL     (1ull << 0)
#define GITS_TYPER_ITT_ENTRY(n) ((n) >> 4 & 15)
#define GITS_TYPER_ID_BITS(n)   ((n) >> 8 & 31)
#define GITS_TYPER_DEVBITS(n)   ((n) >> 13 & 31)
#define GITS_TYPER_PTA          (1ull << 19)

#define GITS_BASER_VALID      (1ull << 63)
#define GITS_BASER_INDIRECT   (1ull << 62)
#define GITS_BASER_TYPE(n)    ((n) >> 56 & 7)
#define GITS_BASER_ENTRY(n)   ((n) >> 48 & 31) /* minus one */
#define GITS_BASER_PAGE(n)    ((n) >> 8 & 3)
#define GITS_TYPE_DEVICES     1u
#define GITS_TYPE_COLLECTIONS 4u
#define GITS_TABLE_PAGE       0x10000ull
#define GITS_ENTRY_SIZE       8u
#define GITS_LEVEL1_VALID     (1ull << 63)
#define GITS_CBASER_VALID     (1ull << 63)
#define GITS_QUEUE_PAGE       4096u

/* ---- Commands ---- */

#define ITS_CMD_SIZE    32u
#define ITS_CMD_MOVI    0x01u
#define ITS_CMD_INT     0x03u
#define ITS_CMD_CLEAR   0x04u
#define ITS_CMD_SYNC    0x05u
#define ITS_CMD_MAPD    0x08u
#define ITS_CMD_MAPC    0x09u
#define ITS_CMD_MAPTI   0x0au
#define ITS_CMD_MAPI    0x0bu
#define ITS_CMD_INV     0x0cu
#define ITS_CMD_INVALL  0x0du
#define ITS_CMD_MOVALL  0x0eu
#define ITS_CMD_DISCARD 0x0fu
#define ITS_CMD_VALID   (1ull << 63)

/* ---- LPIs ---- */

#define GICR_CTLR_ENABLE_LPIS (1u << 0)
#define GICR_TYPER_DIRECT_LPI (1ull << 3)
#define GICR_PENDBASER_PTZ    (1ull << 62)
#define GICR_PROPBASER_IDBITS 0x1full
#define LPI_ENABLED           1u /* in a byte of the configuration table */
#define LPI_PRIORITY_MASK     0xfcu

#endif /* TESTS_ITS_ARCH_H */
