/* SPDX-License-Identifier: MIT */
/*
 * A driver for the GICv3, as the tests want one: every operation by itself.
 *
 * An interrupt is named by its INTID and, for SGIs and PPIs, the CPU (an index in
 * cpus[]) whose redistributor holds its state. For SPIs the CPU is ignored.
 */
#ifndef GUEST_GIC_H
#define GUEST_GIC_H

#include "fdt.h"
#include "smp.h"

/* Distributor. The registers from IGROUPR to ICFGR are at the same offsets in a redistributor's SGI_base frame. */
#define GICD_CTLR       0x0000u
#define GICD_TYPER      0x0004u
#define GICD_IIDR       0x0008u
#define GICD_SETSPI_NSR 0x0040u
#define GICD_CLRSPI_NSR 0x0048u
#define GICD_IGROUPR    0x0080u
#define GICD_ISENABLER  0x0100u
#define GICD_ICENABLER  0x0180u
#define GICD_ISPENDR    0x0200u
#define GICD_ICPENDR    0x0280u
#define GICD_ISACTIVER  0x0300u
#define GICD_ICACTIVER  0x0380u
#define GICD_IPRIORITYR 0x0400u
#define GICD_ICFGR      0x0c00u
#define GICD_IROUTER    0x6000u

#define GICD_CTLR_ENABLE_GRP0 (1u << 0)
#define GICD_CTLR_ENABLE_GRP1 (1u << 1)
#define GICD_CTLR_ARE         (1u << 4)
#define GICD_CTLR_DS          (1u << 6)
#define GICD_CTLR_RWP         (1u << 31)

#define GICD_TYPER_NUM_INTIDS(typer) (32u * (((typer)&0x1f) + 1))
#define GICD_TYPER_MBIS              (1u << 16)
#define GICD_TYPER_LPIS              (1u << 17)
#define GICD_TYPER_NO1N              (1u << 25)
#define GICD_TYPER_RSS               (1u << 26)

#define GICD_IROUTER_IRM (1ull << 31)

/* Redistributor, RD_base frame; the SGI_base frame follows it. */
#define GICR_CTLR      0x0000u
#define GICR_TYPER     0x0008u
#define GICR_WAKER     0x0014u
#define GICR_PROPBASER 0x0070u
#define GICR_PENDBASER 0x0078u
#define GICR_SGI_BASE  0x10000u
#define GICR_STRIDE    0x20000u

#define GICR_CTLR_ENABLE_LPIS (1u << 0)
#define GICR_CTLR_CES         (1u << 1)
#define GICR_CTLR_RWP         (1u << 3)
#define GICR_CTLR_DPG0        (1u << 24)
#define GICR_CTLR_DPG1NS      (1u << 25)

#define GICR_TYPER_VLPIS           (1ull << 1)
#define GICR_TYPER_LAST            (1ull << 4)
#define GICR_TYPER_DPGS            (1ull << 5)
#define GICR_TYPER_PROCESSOR(t)    ((uint32_t)((t) >> 8) & 0xffff)
#define GICR_TYPER_AFFINITY(typer) ((uint32_t)((typer) >> 32))

#define GICR_WAKER_PROCESSOR_SLEEP (1u << 1)
#define GICR_WAKER_CHILDREN_ASLEEP (1u << 2)

/* CPU interface. */
#define ICC_PMR     S3_0_C4_C6_0
#define ICC_IAR0    S3_0_C12_C8_0
#define ICC_EOIR0   S3_0_C12_C8_1
#define ICC_HPPIR0  S3_0_C12_C8_2
#define ICC_BPR0    S3_0_C12_C8_3
#define ICC_AP0R0   S3_0_C12_C8_4
#define ICC_AP1R0   S3_0_C12_C9_0
#define ICC_DIR     S3_0_C12_C11_1
#define ICC_RPR     S3_0_C12_C11_3
#define ICC_SGI1R   S3_0_C12_C11_5
#define ICC_ASGI1R  S3_0_C12_C11_6
#define ICC_SGI0R   S3_0_C12_C11_7
#define ICC_IAR1    S3_0_C12_C12_0
#define ICC_EOIR1   S3_0_C12_C12_1
#define ICC_HPPIR1  S3_0_C12_C12_2
#define ICC_BPR1    S3_0_C12_C12_3
#define ICC_CTLR    S3_0_C12_C12_4
#define ICC_SRE     S3_0_C12_C12_5
#define ICC_IGRPEN0 S3_0_C12_C12_6
#define ICC_IGRPEN1 S3_0_C12_C12_7

#define ICC_CTLR_CBPR        (1u << 0)
#define ICC_CTLR_EOIMODE     (1u << 1)
#define ICC_CTLR_PRI_BITS(c) ((((unsigned)(c) >> 8) & 7) + 1)
#define ICC_CTLR_RSS         (1u << 18)

#define ICC_SGIR_IRM (1ull << 40)

#define INTID_SPURIOUS 1023u
#define PRIORITY_IDLE  0xffu

enum { GROUP0 = 0, GROUP1 = 1 };
enum trigger { LEVEL = 0, EDGE = 1 };

/* ---- The controller as a whole ------------------------------------------ */

/* All redistributors, also those of CPUs that are never powered on. */
struct redistributor {
	uintptr_t frame; /* address of its RD_base frame */
	uint64_t mpidr;
};

extern struct redistributor redistributors[MAX_MACHINE_CPUS];
extern unsigned num_redistributors;

/*
 * Find the redistributors, and fill cpus[] (this CPU first) and num_cpus from the first of them. Gives up with
 * "Bail out!" if that is impossible.
 */
void gic_discover(const struct machine_info *info);

/* This CPU's redistributor and CPU interface: awake, all priorities let through, both groups enabled. */
void gic_init_cpu(void);

/*
 * Everything but the CPU interfaces as each test finds it: all interrupts disabled, inactive, not pending (but for lines
 * that are high), level, in Group 1, at DEFAULT_PRIORITY, SPIs routed to the boot CPU; the distributor is off.
 */
void gic_reset(void);
void gic_enable_distributor(void); /* both groups */
#define DEFAULT_PRIORITY 0xa0u

bool gic_is_libvgic(void);
bool gic_has_message_spis(void);
bool gic_has_one_of_n(void);
uint32_t gic_num_intids(void); /* one past the last SPI */

uint32_t gicd_read(uint32_t offset);
void gicd_write(uint32_t offset, uint32_t value); /* waits until the write has taken effect (RWP) */
uint32_t gicr_read(unsigned cpu, uint32_t offset);
void gicr_write(unsigned cpu, uint32_t offset, uint32_t value);
uint64_t gicr_typer(unsigned cpu);

/* ---- One interrupt ---------------------------------------------------------- */

/* Address of the 32-bit register of a bank such as GICD_ISPENDR that holds the bit of @intid. */
uintptr_t gic_register_of(unsigned cpu, uint32_t intid, uint32_t bank);
/* The bit of @intid in a bank; and writing a one to that bit alone. */
bool gic_bit(unsigned cpu, uint32_t intid, uint32_t bank);
void gic_write_bit(unsigned cpu, uint32_t intid, uint32_t bank);

void gic_enable(unsigned cpu, uint32_t intid);
void gic_disable(unsigned cpu, uint32_t intid); /* afterwards no acknowledge returns it */
void gic_set_pending(unsigned cpu, uint32_t intid);
void gic_clear_pending(unsigned cpu, uint32_t intid);
bool gic_is_pending(unsigned cpu, uint32_t intid);
void gic_set_active(unsigned cpu, uint32_t intid);
void gic_clear_active(unsigned cpu, uint32_t intid);
bool gic_is_active(unsigned cpu, uint32_t intid);
void gic_set_group(unsigned cpu, uint32_t intid, unsigned group);
void gic_set_priority(unsigned cpu, uint32_t intid, unsigned priority);
unsigned gic_priority(unsigned cpu, uint32_t intid);
void gic_set_trigger(unsigned cpu, uint32_t intid, enum trigger trigger);
enum trigger gic_trigger(unsigned cpu, uint32_t intid);
void gic_route(uint32_t intid, unsigned cpu);
void gic_write_irouter(uint32_t intid, uint64_t value);
uint64_t gic_read_irouter(uint32_t intid);

/* Enabled, with this trigger and priority, in Group 1; an SPI is routed to @cpu. */
void gic_setup(unsigned cpu, uint32_t intid, enum trigger trigger, unsigned priority);

/* ---- This CPU's interface ----------------------------------------------------- */

void gic_record_reset_values(struct reset_values *values);

uint32_t gic_acknowledge(unsigned group);
void gic_end(unsigned group, uint32_t intid);
void gic_deactivate_by_dir(uint32_t intid);
uint32_t gic_highest_pending(unsigned group);
unsigned gic_running_priority(void);
void gic_set_priority_mask(unsigned priority);
void gic_set_split_eoi(bool split); /* ICC_CTLR.EOImode */
bool gic_has_split_eoi(void);
void gic_enable_group(unsigned group, bool enable);

/* Acknowledge with some patience: an interrupt may need time to arrive. */
uint32_t gic_wait_acknowledge(unsigned group);

/* The value for ICC_SGI1R and the others: @intid to one CPU. */
uint64_t gic_sgi_value(unsigned cpu, uint32_t intid);
uint64_t gic_sgi_value_for(uint64_t mpidr, uint32_t intid);
void gic_send_sgi(unsigned cpu, uint32_t intid);
void gic_write_sgi1r(uint64_t value);
void gic_write_sgi0r(uint64_t value);
void gic_write_asgi1r(uint64_t value);

#endif
