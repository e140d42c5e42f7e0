/* SPDX-License-Identifier: MIT */
/*
 * The GICv3 driver. Memory-mapped accesses are followed by a DSB, accesses to the
 * CPU interface by an ISB: a test's next step sees their effect.
 */
#include "gic.h"

#include "tap.h"

#define LIBVGIC_PRODUCT 0x76u

struct redistributor redistributors[MAX_MACHINE_CPUS];
unsigned num_redistributors;

static uintptr_t dist;

/* ---- Registers --------------------------------------------------------------- */

uint32_t gicd_read(uint32_t offset)
{
	return mmio_read32(dist + offset);
}

void gicd_write(uint32_t offset, uint32_t value)
{
	mmio_write32(dist + offset, value);
	dsb();
	if (!WAIT_FOR(!(gicd_read(GICD_CTLR) & GICD_CTLR_RWP)))
		tap_bail_out("GICD_CTLR.RWP stays set");
}

uint32_t gicr_read(unsigned cpu, uint32_t offset)
{
	return mmio_read32(cpus[cpu].redist + offset);
}

void gicr_write(unsigned cpu, uint32_t offset, uint32_t value)
{
	mmio_write32(cpus[cpu].redist + offset, value);
	dsb();
	if (!WAIT_FOR(!(gicr_read(cpu, GICR_CTLR) & GICR_CTLR_RWP)))
		tap_bail_out("GICR_CTLR.RWP stays set");
}

uint64_t gicr_typer(unsigned cpu)
{
	return mmio_read64(cpus[cpu].redist + GICR_TYPER);
}

bool gic_is_libvgic(void)
{
	return gicd_read(GICD_IIDR) >> 24 == LIBVGIC_PRODUCT;
}

bool gic_has_message_spis(void)
{
	return gicd_read(GICD_TYPER) & GICD_TYPER_MBIS;
}

bool gic_has_one_of_n(void)
{
	return !(gicd_read(GICD_TYPER) & GICD_TYPER_NO1N);
}

uint32_t gic_num_intids(void)
{
	uint32_t n = GICD_TYPER_NUM_INTIDS(gicd_read(GICD_TYPER));

	return n < NUM_INTIDS ? n : NUM_INTIDS;
}

/* ---- One interrupt ------------------------------------------------------------- */

/* The frame that holds the state of an interrupt. */
static uintptr_t frame_of(unsigned cpu, uint32_t intid)
{
	return intid < 32 ? cpus[cpu].redist + GICR_SGI_BASE : dist;
}

uintptr_t gic_register_of(unsigned cpu, uint32_t intid, uint32_t bank)
{
	return frame_of(cpu, intid) + bank + intid / 32 * 4;
}

bool gic_bit(unsigned cpu, uint32_t intid, uint32_t bank)
{
	return mmio_read32(gic_register_of(cpu, intid, bank)) >> (intid % 32) & 1;
}

void gic_write_bit(unsigned cpu, uint32_t intid, uint32_t bank)
{
	mmio_write32(gic_register_of(cpu, intid, bank), 1u << (intid % 32));
	dsb();
}

void gic_enable(unsigned cpu, uint32_t intid)
{
	gic_write_bit(cpu, intid, GICD_ISENABLER);
}

static bool write_is_pending(unsigned cpu, uint32_t intid)
{
	return intid < 32 ? gicr_read(cpu, GICR_CTLR) & GICR_CTLR_RWP : gicd_read(GICD_CTLR) & GICD_CTLR_RWP;
}

void gic_disable(unsigned cpu, uint32_t intid)
{
	gic_write_bit(cpu, intid, GICD_ICENABLER);
	if (!WAIT_FOR(!write_is_pending(cpu, intid)))
		tap_bail_out("RWP stays set after a write to ICENABLER");
}

void gic_set_pending(unsigned cpu, uint32_t intid)
{
	gic_write_bit(cpu, intid, GICD_ISPENDR);
}

void gic_clear_pending(unsigned cpu, uint32_t intid)
{
	gic_write_bit(cpu, intid, GICD_ICPENDR);
}

bool gic_is_pending(unsigned cpu, uint32_t intid)
{
	return gic_bit(cpu, intid, GICD_ISPENDR);
}

void gic_set_active(unsigned cpu, uint32_t intid)
{
	gic_write_bit(cpu, intid, GICD_ISACTIVER);
}

void gic_clear_active(unsigned cpu, uint32_t intid)
{
	gic_write_bit(cpu, intid, GICD_ICACTIVER);
}

bool gic_is_active(unsigned cpu, uint32_t intid)
{
	return gic_bit(cpu, intid, GICD_ISACTIVER);
}

void gic_set_group(unsigned cpu, uint32_t intid, unsigned group)
{
	uintptr_t reg = gic_register_of(cpu, intid, GICD_IGROUPR);
	uint32_t bit = 1u << (intid % 32);
	uint32_t value = mmio_read32(reg);

	mmio_write32(reg, group == GROUP1 ? value | bit : value & ~bit);
	dsb();
}

void gic_set_priority(unsigned cpu, uint32_t intid, unsigned priority)
{
	mmio_write8(frame_of(cpu, intid) + GICD_IPRIORITYR + intid, (uint8_t)priority);
	dsb();
}

unsigned gic_priority(unsigned cpu, uint32_t intid)
{
	return mmio_read8(frame_of(cpu, intid) + GICD_IPRIORITYR + intid);
}

void gic_set_trigger(unsigned cpu, uint32_t intid, enum trigger trigger)
{
	uintptr_t reg = frame_of(cpu, intid) + GICD_ICFGR + intid / 16 * 4;
	uint32_t bit = 2u << (intid % 16 * 2);
	uint32_t value = mmio_read32(reg);

	mmio_write32(reg, trigger == EDGE ? value | bit : value & ~bit);
	dsb();
}

enum trigger gic_trigger(unsigned cpu, uint32_t intid)
{
	uintptr_t reg = frame_of(cpu, intid) + GICD_ICFGR + intid / 16 * 4;

	return mmio_read32(reg) >> (intid % 16 * 2 + 1) & 1 ? EDGE : LEVEL;
}

void gic_write_irouter(uint32_t intid, uint64_t value)
{
	mmio_write64(dist + GICD_IROUTER + 8ull * intid, value);
	dsb();
}

uint64_t gic_read_irouter(uint32_t intid)
{
	return mmio_read64(dist + GICD_IROUTER + 8ull * intid);
}

void gic_route(uint32_t intid, unsigned cpu)
{
	gic_write_irouter(intid, cpus[cpu].mpidr);
}

void gic_setup(unsigned cpu, uint32_t intid, enum trigger trigger, unsigned priority)
{
	gic_set_group(cpu, intid, GROUP1);
	gic_set_trigger(cpu, intid, trigger);
	gic_set_priority(cpu, intid, priority);
	if (intid >= 32)
		gic_route(intid, cpu);
	gic_enable(cpu, intid);
}

/* ---- This CPU's interface -------------------------------------------------------- */

void gic_record_reset_values(struct reset_values *values)
{
	values->pmr = read_sysreg(ICC_PMR);
	values->igrpen0 = read_sysreg(ICC_IGRPEN0);
	values->igrpen1 = read_sysreg(ICC_IGRPEN1);
	values->rpr = read_sysreg(ICC_RPR);
	values->ap0r0 = read_sysreg(ICC_AP0R0);
	values->ap1r0 = read_sysreg(ICC_AP1R0);
}

uint32_t gic_acknowledge(unsigned group)
{
	uint64_t intid = group == GROUP1 ? read_sysreg(ICC_IAR1) : read_sysreg(ICC_IAR0);

	dsb(); /* the acknowledge comes before everything that the handler does */
	return (uint32_t)intid & 0xffffff;
}

uint32_t gic_wait_acknowledge(unsigned group)
{
	uint32_t intid;

	(void)WAIT_FOR((intid = gic_acknowledge(group)) < NUM_INTIDS || intid >= LPI_FIRST);
	return intid;
}

void gic_end(unsigned group, uint32_t intid)
{
	dsb();
	if (group == GROUP1)
		write_sysreg(ICC_EOIR1, intid);
	else
		write_sysreg(ICC_EOIR0, intid);
	isb();
}

void gic_deactivate_by_dir(uint32_t intid)
{
	write_sysreg(ICC_DIR, intid);
	isb();
}

uint32_t gic_highest_pending(unsigned group)
{
	return (uint32_t)(group == GROUP1 ? read_sysreg(ICC_HPPIR1) : read_sysreg(ICC_HPPIR0));
}

unsigned gic_running_priority(void)
{
	return (unsigned)read_sysreg(ICC_RPR) & 0xff;
}

void gic_set_priority_mask(unsigned priority)
{
	write_sysreg(ICC_PMR, priority);
	isb();
	dsb();
}

void gic_set_split_eoi(bool split)
{
	uint64_t ctlr = read_sysreg(ICC_CTLR);

	write_sysreg(ICC_CTLR, split ? ctlr | ICC_CTLR_EOIMODE : ctlr & ~(uint64_t)ICC_CTLR_EOIMODE);
	isb();
}

bool gic_has_split_eoi(void)
{
	return read_sysreg(ICC_CTLR) & ICC_CTLR_EOIMODE;
}

void gic_enable_group(unsigned group, bool enable)
{
	if (group == GROUP1)
		write_sysreg(ICC_IGRPEN1, enable);
	else
		write_sysreg(ICC_IGRPEN0, enable);
	isb();
}

uint64_t gic_sgi_value(unsigned cpu, uint32_t intid)
{
	return gic_sgi_value_for(cpus[cpu].mpidr, intid);
}

uint64_t gic_sgi_value_for(uint64_t mpidr, uint32_t intid)
{
	uint64_t aff0 = mpidr & 0xff, aff1 = mpidr >> 8 & 0xff, aff2 = mpidr >> 16 & 0xff, aff3 = mpidr >> 32 & 0xff;

	return aff3 << 48 | (aff0 / 16) << 44 | aff2 << 32 | (uint64_t)intid << 24 | aff1 << 16 | 1ull << (aff0 % 16);
}

void gic_write_sgi1r(uint64_t value)
{
	dsb();
	write_sysreg(ICC_SGI1R, value);
	isb();
}

void gic_write_sgi0r(uint64_t value)
{
	dsb();
	write_sysreg(ICC_SGI0R, value);
	isb();
}

void gic_write_asgi1r(uint64_t value)
{
	dsb();
	write_sysreg(ICC_ASGI1R, value);
	isb();
}

void gic_send_sgi(unsigned cpu, uint32_t intid)
{
	gic_write_sgi1r(gic_sgi_value(cpu, intid));
}

/* ---- The controller as a whole ------------------------------------------------------ */

static uint64_t affinity_to_mpidr(uint32_t affinity)
{
	return (affinity & 0xffffff) | (uint64_t)(affinity >> 24) << 32;
}

static void add_redistributor(uintptr_t frame, uint64_t mpidr)
{
	if (num_redistributors == MAX_MACHINE_CPUS)
		tap_bail_out("more CPUs than these tests can tell apart");
	redistributors[num_redistributors++] = (struct redistributor){ .frame = frame, .mpidr = mpidr };
}

static void walk_redist_region(uintptr_t base, uint64_t size)
{
	for (uintptr_t frame = base; frame < base + size; frame += GICR_STRIDE) {
		uint64_t typer = mmio_read64(frame + GICR_TYPER);

		if (typer & GICR_TYPER_VLPIS)
			tap_bail_out("this is a GICv4");
		add_redistributor(frame, affinity_to_mpidr(GICR_TYPER_AFFINITY(typer)));
		if (typer & GICR_TYPER_LAST)
			return;
	}
}

static void add_cpu(const struct redistributor *redist)
{
	cpus[num_cpus] = (struct cpu){ .index = num_cpus, .mpidr = redist->mpidr, .redist = redist->frame };
	num_cpus++;
}

void gic_discover(const struct machine_info *info)
{
	const uint64_t own_mpidr = read_sysreg(mpidr_el1) & MPIDR_AFFINITY;

	dist = info->dist_base;
	for (unsigned i = 0; i < info->num_redist_regions; i++)
		walk_redist_region(info->redist_base[i], info->redist_size[i]);
	for (unsigned i = 0; i < num_redistributors; i++)
		if (redistributors[i].mpidr == own_mpidr)
			add_cpu(&redistributors[i]);
	if (num_cpus != 1)
		tap_bail_out("not exactly one redistributor has this CPU's affinity");
	for (unsigned i = 0; i < num_redistributors && num_cpus < MAX_CPUS; i++)
		if (redistributors[i].mpidr != own_mpidr)
			add_cpu(&redistributors[i]);
}

static void drop_active_priorities(void)
{
	write_sysreg(ICC_AP0R0, 0);
	write_sysreg(ICC_AP1R0, 0);
	isb();
}

void gic_init_cpu(void)
{
	unsigned cpu = this_cpu()->index;

	gicr_write(cpu, GICR_WAKER, gicr_read(cpu, GICR_WAKER) & ~GICR_WAKER_PROCESSOR_SLEEP);
	if (!WAIT_FOR(!(gicr_read(cpu, GICR_WAKER) & GICR_WAKER_CHILDREN_ASLEEP)))
		tap_bail_out("GICR_WAKER.ChildrenAsleep stays set");
	gicr_write(cpu, GICR_CTLR, 0);

	write_sysreg(ICC_SRE, 1);
	isb();
	if (!(read_sysreg(ICC_SRE) & 1))
		tap_bail_out("the CPU interface has no system registers");
	drop_active_priorities();
	write_sysreg(ICC_CTLR, 0);
	write_sysreg(ICC_BPR0, 0);
	write_sysreg(ICC_BPR1, 0);
	write_sysreg(ICC_PMR, 0xff);
	write_sysreg(ICC_IGRPEN0, 1);
	write_sysreg(ICC_IGRPEN1, 1);
	isb();
}

/* Reset the interrupts @first to @first + 31 of a frame: one word of each bank. */
static void reset_word(uintptr_t frame, uint32_t first)
{
	uintptr_t word = frame + first / 32 * 4;

	mmio_write32(word + GICD_ICENABLER, 0xffffffff);
	mmio_write32(word + GICD_ICPENDR, 0xffffffff);
	mmio_write32(word + GICD_ICACTIVER, 0xffffffff);
	mmio_write32(word + GICD_IGROUPR, 0xffffffff);
	for (uint32_t i = 0; i < 32; i += 4)
		mmio_write32(frame + GICD_IPRIORITYR + first + i, DEFAULT_PRIORITY * 0x01010101u);
	for (uint32_t i = 0; i < 32; i += 16)
		mmio_write32(frame + GICD_ICFGR + (first + i) / 16 * 4, 0);
}

void gic_reset(void)
{
	gicd_write(GICD_CTLR, GICD_CTLR_ARE);
	for (uint32_t first = 32; first < gic_num_intids(); first += 32)
		reset_word(dist, first);
	for (uint32_t intid = 32; intid < gic_num_intids(); intid++)
		gic_route(intid, 0);
	for (unsigned i = 0; i < num_redistributors; i++)
		reset_word(redistributors[i].frame + GICR_SGI_BASE, 0);
	dsb();
}

void gic_enable_distributor(void)
{
	gicd_write(GICD_CTLR, GICD_CTLR_ARE | GICD_CTLR_ENABLE_GRP0 | GICD_CTLR_ENABLE_GRP1);
}
