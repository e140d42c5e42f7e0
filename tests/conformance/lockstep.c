/* SPDX-License-Identifier: MIT */
/*
 * Random sequences of everything that a guest and a VMM can do, on libvgic and on
 * the reference at the same time. After every single step the lines of every
 * vCPU, the counters and what the step returned are compared; now and then all
 * registers.
 *
 *   lockstep [--seed N] [--steps N] [--config N] [--record FILE]
 *
 * The operations are weighted so that what matters is common: interrupts that
 * are pending, several active at once, preemption, both groups. At the end the
 * program fails if one of these did not happen: a generator that has lost its
 * way must not pass.
 */
#include <getopt.h>
#include <gic_arch.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pair.h"

#define DEFAULT_STEPS   50000u
#define MIN_FOR_EVENTS  5000u /* with fewer steps nothing is said about what must have happened */
#define STEPS_PER_CHECK 1000u /* between two comparisons of all registers */
#define MAX_NESTED      64u

struct variant {
	const char *name;
	enum vgic_profile profile;
	uint32_t num_vcpus;
	uint32_t num_spis;
	uint32_t features; /* instead of the profile's own, unless it is KEEP_FEATURES */
	uint32_t kvm_revision;
};

#define KEEP_FEATURES UINT32_MAX

static const struct variant variants[] = {
	{ "native, 1 vCPU", VGIC_PROFILE_NATIVE, 1, 64, KEEP_FEATURES, 3 },
	{ "native, 2 vCPUs", VGIC_PROFILE_NATIVE, 2, 64, KEEP_FEATURES, 3 },
	{ "native, 5 vCPUs", VGIC_PROFILE_NATIVE, 5, 96, KEEP_FEATURES, 3 },
	{ "native, 5 vCPUs, no feature", VGIC_PROFILE_NATIVE, 5, 32, 0, 3 },
	{ "native, 2 vCPUs, 1-of-N only", VGIC_PROFILE_NATIVE, 2, 32, VGIC_FEATURE_ONE_OF_N, 3 },
	{ "native, 5 vCPUs, 1-of-N, WAKER and DPGS", VGIC_PROFILE_NATIVE, 5, 32,
	  VGIC_FEATURE_ONE_OF_N | VGIC_FEATURE_WAKER | VGIC_FEATURE_DPGS, 3 },
	{ "native, 2 vCPUs, RSS and MBIS, 988 SPIs", VGIC_PROFILE_NATIVE, 2, 988, VGIC_FEATURE_RSS | VGIC_FEATURE_MBIS,
	  3 },
	{ "native, 2 vCPUs, A3V and STATUSR", VGIC_PROFILE_NATIVE, 2, 64, VGIC_FEATURE_A3V | VGIC_FEATURE_STATUSR, 3 },
	{ "kvm, 1 vCPU", VGIC_PROFILE_KVM, 1, 64, KEEP_FEATURES, 3 },
	{ "kvm, 2 vCPUs, revision 1", VGIC_PROFILE_KVM, 2, 64, KEEP_FEATURES, 1 },
	{ "kvm, 5 vCPUs", VGIC_PROFILE_KVM, 5, 64, KEEP_FEATURES, 3 },
	{ "kvm, 2 vCPUs, 1-of-N and A3V added", VGIC_PROFILE_KVM, 2, 64, VGIC_FEATURE_ONE_OF_N | VGIC_FEATURE_A3V, 3 },
};

#define NUM_VARIANTS (sizeof(variants) / sizeof(variants[0]))

/* What one vCPU of a well-behaved guest remembers: which INTIDs it has acknowledged, and by which group. */
struct handler {
	uint32_t intid[MAX_NESTED];
	unsigned group[MAX_NESTED];
	unsigned depth;
	uint32_t to_deactivate[MAX_NESTED];
	unsigned num_to_deactivate;
};

struct run {
	struct pair pair;
	uint64_t random_state;
	struct handler handlers[PAIR_MAX_VCPUS];
	uint64_t moves[2]; /* by enum pair_way */
};

/* ---- Random numbers ---- */

static uint64_t random_next(struct run *run)
{
	uint64_t z = run->random_state += 0x9e3779b97f4a7c15ull;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return z ^ (z >> 31);
}

static uint32_t random_below(struct run *run, uint32_t bound)
{
	return (uint32_t)(random_next(run) % bound);
}

static bool random_chance(struct run *run, uint32_t percent)
{
	return random_below(run, 100) < percent;
}

static uint32_t random_vcpu(struct run *run)
{
	return random_below(run, run->pair.num_vcpus);
}

static uint8_t random_priority(struct run *run)
{
	static const uint8_t usual[] = { 0x00, 0x08, 0x40, 0x48, 0x50, 0x80, 0xa0, 0xa8, 0xd0, 0xf0, 0xf8 };

	return random_chance(run, 10) ? (uint8_t)random_next(run) : usual[random_below(run, sizeof(usual))];
}

static uint32_t random_spi(struct run *run)
{
	const uint32_t last = GIC_FIRST_SPI + run->pair.num_spis - 1;
	/* Few, so that the same one is met again in another state; at both ends of register words. */
	const uint32_t usual[] = { 32, 33, 34, 35, 47, 48, 63, last - 1, last };

	if (random_chance(run, 5))
		return GIC_FIRST_SPI + random_below(run, run->pair.num_spis);
	return usual[random_below(run, sizeof(usual) / sizeof(usual[0]))];
}

static uint32_t random_ppi(struct run *run)
{
	static const uint8_t usual[] = { 16, 20, 27, 31 };

	return usual[random_below(run, sizeof(usual))];
}

static uint32_t random_sgi(struct run *run)
{
	static const uint8_t usual[] = { 0, 1, 7, 15 };

	return usual[random_below(run, sizeof(usual))];
}

static uint32_t random_intid(struct run *run)
{
	switch (random_below(run, 4)) {
	case 0:
		return random_sgi(run);
	case 1:
		return random_ppi(run);
	default:
		return random_spi(run);
	}
}

/* ---- Registers of one interrupt ---- */

/* The frame in which an interrupt has its registers. */
static uint32_t frame_of(uint32_t vcpu, uint32_t intid)
{
	return intid < GIC_FIRST_SPI ? vcpu : PAIR_DIST;
}

static void write_bit(struct run *run, uint32_t vcpu, uint32_t bank, uint32_t intid)
{
	const uint32_t frame = frame_of(vcpu, intid);
	const uint32_t base = frame == PAIR_DIST ? bank : GICR_SGI_BASE + bank;

	pair_write(&run->pair, frame, base + intid / 32 * 4, 4, 1ull << (intid % 32));
}

static void write_priority(struct run *run, uint32_t vcpu, uint32_t intid, uint8_t priority)
{
	const uint32_t frame = frame_of(vcpu, intid);

	pair_write(&run->pair, frame, (frame == PAIR_DIST ? GICD_IPRIORITYR : GICR_IPRIORITYR) + intid, 1, priority);
}

static uint64_t random_route(struct run *run)
{
	if (random_chance(run, 30))
		return GICD_IROUTER_IRM | (random_next(run) & GICD_IROUTER_AFF012);
	if (random_chance(run, 5))
		return random_next(run);
	return run->pair.vcpu_configs[random_vcpu(run)].affinity;
}

static void write_route(struct run *run, uint32_t intid)
{
	const uint32_t offset = GICD_IROUTER + 8 * intid;

	if (random_chance(run, 20))
		pair_write(&run->pair, PAIR_DIST, offset + 4 * random_below(run, 2), 4, random_route(run));
	else
		pair_write(&run->pair, PAIR_DIST, offset, 8, random_route(run));
}

/* ---- A sane guest's set-up, so that there is something to be wrong about ---- */

static void set_up_interrupt(struct run *run, uint32_t vcpu, uint32_t intid)
{
	write_priority(run, vcpu, intid, random_priority(run));
	write_bit(run, vcpu, GICD_ISENABLER, intid);
	if (intid >= GIC_FIRST_SPI)
		write_route(run, intid);
}

static void set_up_vcpu(struct run *run, uint32_t vcpu)
{
	struct pair *pair = &run->pair;

	pair_write(pair, vcpu, GICR_WAKER, 4, random_chance(run, 80) ? 0 : GICR_WAKER_PROCESSOR_SLEEP);
	pair_write(pair, vcpu, GICR_IGROUPR0, 4, random_next(run) & 0xffffffff);
	for (uint32_t intid = 0; intid < GIC_NUM_PRIVATE; intid++)
		set_up_interrupt(run, vcpu, intid);
	pair_icc_write(pair, vcpu, VGIC_ICC_PMR_EL1, 0xf8);
	pair_icc_write(pair, vcpu, VGIC_ICC_IGRPEN0_EL1, random_chance(run, 90));
	pair_icc_write(pair, vcpu, VGIC_ICC_IGRPEN1_EL1, random_chance(run, 90));
	pair_icc_write(pair, vcpu, VGIC_ICC_CTLR_EL1, random_chance(run, 50) ? ICC_CTLR_EOIMODE : 0);
	run->handlers[vcpu].depth = 0;
}

static void set_up(struct run *run)
{
	struct pair *pair = &run->pair;

	for (uint32_t word = 1; word <= pair->num_spis / 32; word++) {
		pair_write(pair, PAIR_DIST, GICD_IGROUPR + 4 * word, 4, random_next(run) & 0xffffffff);
		pair_write(pair, PAIR_DIST, GICD_ICFGR + 8 * word, 4, random_next(run) & 0xaaaaaaaa);
	}
	for (uint32_t i = 0; i < 12; i++)
		set_up_interrupt(run, 0, random_spi(run));
	for (uint32_t vcpu = 0; vcpu < pair->num_vcpus; vcpu++)
		set_up_vcpu(run, vcpu);
	pair_write(pair, PAIR_DIST, GICD_CTLR, 4, GICD_CTLR_ENABLE_GRP0 | GICD_CTLR_ENABLE_GRP1);
}

/* ---- Operations ---- */

static void op_line(struct run *run)
{
	const unsigned source = random_chance(run, 80) ? 0 : random_below(run, VGIC_NUM_LINE_SOURCES);
	const bool level = random_chance(run, 50);

	if (random_chance(run, 2))
		pair_set_spi(&run->pair, random_below(run, 1100), random_below(run, 40), level);
	else if (random_chance(run, 60))
		pair_set_spi(&run->pair, random_spi(run), source, level);
	else
		pair_set_ppi(&run->pair, random_vcpu(run),
			     random_chance(run, 95) ? random_ppi(run) : random_below(run, 64), source, level);
}

static void op_pulse(struct run *run)
{
	pair_pulse_spi(&run->pair, random_chance(run, 98) ? random_spi(run) : random_below(run, 1100));
}

/* Mostly one that has something to do. */
static uint32_t random_signalled_vcpu(struct run *run)
{
	const uint32_t start = random_vcpu(run);

	for (uint32_t i = 0; i < run->pair.num_vcpus && random_chance(run, 90); i++) {
		const uint32_t vcpu = (start + i) % run->pair.num_vcpus;

		if (pair_lines(&run->pair, vcpu) != 0)
			return vcpu;
	}
	return start;
}

static void op_acknowledge(struct run *run)
{
	const uint32_t vcpu = random_signalled_vcpu(run);
	const unsigned lines = pair_lines(&run->pair, vcpu);
	struct handler *handler = &run->handlers[vcpu];
	unsigned group = random_below(run, 2);
	uint64_t intid;

	if (lines != 0 && random_chance(run, 85))
		group = lines == VGIC_LINE_IRQ;
	intid = pair_icc_read(&run->pair, vcpu, group ? VGIC_ICC_IAR1_EL1 : VGIC_ICC_IAR0_EL1);
	if (intid == GIC_SPURIOUS || handler->depth == MAX_NESTED)
		return;
	handler->intid[handler->depth] = (uint32_t)intid;
	handler->group[handler->depth] = group;
	handler->depth++;
}

static void remember_to_deactivate(struct handler *handler, uint32_t intid)
{
	if (handler->num_to_deactivate < MAX_NESTED)
		handler->to_deactivate[handler->num_to_deactivate++] = intid;
}

static void op_end(struct run *run)
{
	uint32_t vcpu = random_vcpu(run);
	struct handler *handler;

	for (uint32_t i = 0; i < run->pair.num_vcpus && run->handlers[vcpu].depth == 0; i++)
		vcpu = (vcpu + 1) % run->pair.num_vcpus;
	handler = &run->handlers[vcpu];

	if (handler->depth != 0) {
		const unsigned top = --handler->depth;

		pair_icc_write(&run->pair, vcpu, handler->group[top] ? VGIC_ICC_EOIR1_EL1 : VGIC_ICC_EOIR0_EL1,
			       handler->intid[top]);
		remember_to_deactivate(handler, handler->intid[top]);
	}
}

/* With EOImode=0 these are the guest's mistakes. SPIs are deactivated from other vCPUs, too. */
static void op_deactivate(struct run *run)
{
	const uint32_t vcpu = random_vcpu(run);
	struct handler *handler = &run->handlers[random_chance(run, 80) ? vcpu : random_vcpu(run)];
	uint32_t i;

	if (handler->num_to_deactivate == 0)
		return;
	i = random_below(run, handler->num_to_deactivate);
	pair_icc_write(&run->pair, vcpu, VGIC_ICC_DIR_EL1, handler->to_deactivate[i]);
	handler->to_deactivate[i] = handler->to_deactivate[--handler->num_to_deactivate];
}

static void op_wrong_end(struct run *run)
{
	static const uint32_t regs[] = { VGIC_ICC_EOIR0_EL1, VGIC_ICC_EOIR1_EL1, VGIC_ICC_DIR_EL1 };
	static const uint32_t odd[] = { 1019, 1020, 1021, 1022, 1023, 1024, 8191, 8192, 65535, 0xffffff };
	const uint64_t intid = random_chance(run, 60) ? random_intid(run) :
							odd[random_below(run, sizeof(odd) / sizeof(odd[0]))];

	pair_icc_write(&run->pair, random_vcpu(run), regs[random_below(run, 3)],
		       random_chance(run, 10) ? intid | 0xabcd000000000000ull : intid);
}

static void op_sgi(struct run *run)
{
	static const uint32_t regs[] = { VGIC_ICC_SGI1R_EL1, VGIC_ICC_SGI1R_EL1, VGIC_ICC_SGI0R_EL1,
					 VGIC_ICC_ASGI1R_EL1 };
	const uint64_t affinity = run->pair.vcpu_configs[random_vcpu(run)].affinity;
	uint64_t value = (uint64_t)random_sgi(run) << ICC_SGIR_INTID_SHIFT;

	value |= ((affinity >> 8) & 0xff) << ICC_SGIR_AFF1_SHIFT;
	value |= ((affinity >> 16) & 0xff) << ICC_SGIR_AFF2_SHIFT;
	value |= ((affinity >> 32) & 0xff) << ICC_SGIR_AFF3_SHIFT;
	value |= ((affinity >> 4) & 0xf) << ICC_SGIR_RS_SHIFT;
	value |= 1ull << (affinity & 15);
	if (random_chance(run, 20))
		value |= random_next(run) & ICC_SGIR_TARGETS;
	if (random_chance(run, 10))
		value |= ICC_SGIR_IRM;
	if (random_chance(run, 5))
		value = random_next(run);
	pair_icc_write(&run->pair, random_vcpu(run), regs[random_below(run, 4)], value);
}

static void op_bits(struct run *run)
{
	static const uint32_t banks[] = {
		GICD_ISENABLER, GICD_ISENABLER, GICD_ISENABLER, GICD_ICENABLER, GICD_ISPENDR,
		GICD_ISPENDR,   GICD_ICPENDR,   GICD_ISACTIVER, GICD_ICACTIVER, GICD_ICACTIVER
	};

	write_bit(run, random_vcpu(run), banks[random_below(run, sizeof(banks) / sizeof(banks[0]))], random_intid(run));
}

static void op_group(struct run *run)
{
	const uint32_t intid = random_intid(run);
	const uint32_t frame = frame_of(random_vcpu(run), intid);
	const uint32_t offset = (frame == PAIR_DIST ? GICD_IGROUPR : GICR_IGROUPR0) + intid / 32 * 4;
	const uint64_t old = pair_read(&run->pair, frame, offset, 4);

	pair_write(&run->pair, frame, offset, 4, old ^ 1ull << (intid % 32));
}

static void op_priority(struct run *run)
{
	const uint32_t vcpu = random_vcpu(run);
	const uint32_t intid = random_intid(run);
	const uint32_t frame = frame_of(vcpu, intid);

	if (random_chance(run, 70))
		write_priority(run, vcpu, intid, random_priority(run));
	else
		pair_write(&run->pair, frame, (frame == PAIR_DIST ? GICD_IPRIORITYR : GICR_IPRIORITYR) + (intid & ~3u),
			   4, random_next(run));
}

static void op_configure(struct run *run)
{
	const uint32_t intid = random_intid(run);

	if (intid >= GIC_FIRST_SPI)
		pair_write(&run->pair, PAIR_DIST, GICD_ICFGR + intid / 16 * 4, 4, random_next(run));
	else
		pair_write(&run->pair, random_vcpu(run), intid < 16 ? GICR_ICFGR0 : GICR_ICFGR1, 4, random_next(run));
}

static void op_route(struct run *run)
{
	write_route(run, random_spi(run));
}

static void op_message(struct run *run)
{
	const uint64_t intid = random_chance(run, 95) ? random_spi(run) : random_below(run, 9000);

	pair_write(&run->pair, PAIR_DIST, random_chance(run, 50) ? GICD_SETSPI_NSR : GICD_CLRSPI_NSR,
		   random_chance(run, 90) ? 4 : 2, intid);
}

static void op_cpu_interface(struct run *run)
{
	struct pair *pair = &run->pair;
	const uint32_t vcpu = random_vcpu(run);

	switch (random_below(run, 8)) {
	case 0:
	case 1:
		pair_icc_write(pair, vcpu, VGIC_ICC_PMR_EL1,
			       random_chance(run, 60) ? 0xf8 + random_below(run, 8) : random_priority(run));
		break;
	case 2:
		pair_icc_write(pair, vcpu, VGIC_ICC_BPR0_EL1, random_below(run, 8));
		break;
	case 3:
		pair_icc_write(pair, vcpu, VGIC_ICC_BPR1_EL1, random_below(run, 8));
		break;
	case 4:
		pair_icc_write(pair, vcpu, VGIC_ICC_CTLR_EL1,
			       random_chance(run, 20) ? random_next(run) : random_below(run, 4));
		break;
	case 5:
		pair_icc_write(pair, vcpu, VGIC_ICC_IGRPEN0_EL1, random_chance(run, 80));
		break;
	case 6:
		pair_icc_write(pair, vcpu, VGIC_ICC_IGRPEN1_EL1, random_chance(run, 80));
		break;
	default:
		/* A guest that changes its own active priorities; mostly back to none, or nothing could be signalled. */
		pair_icc_write(pair, vcpu, random_chance(run, 50) ? VGIC_ICC_AP0R0_EL1 : VGIC_ICC_AP1R0_EL1,
			       random_chance(run, 80) ? 0 : random_next(run));
		break;
	}
}

static void op_read_cpu_interface(struct run *run)
{
	static const uint32_t regs[] = { VGIC_ICC_HPPIR0_EL1, VGIC_ICC_HPPIR1_EL1, VGIC_ICC_RPR_EL1,
					 VGIC_ICC_AP0R0_EL1,  VGIC_ICC_AP1R0_EL1,  VGIC_ICC_BPR1_EL1 };

	pair_icc_read(&run->pair, random_vcpu(run), regs[random_below(run, sizeof(regs) / sizeof(regs[0]))]);
}

static void op_any_icc(struct run *run)
{
	/* The CRm and op2 of the GIC's own registers, and their neighbours. */
	const uint32_t reg = random_chance(run, 90) ?
				     VGIC_SYSREG(3u, 0u, 12u, 8u + random_below(run, 5), random_below(run, 8)) :
				     (uint32_t)random_next(run) & 0xffff;

	if (random_chance(run, 50))
		pair_icc_read(&run->pair, random_vcpu(run), reg);
	else
		pair_icc_write(&run->pair, random_vcpu(run), reg, random_next(run) & random_next(run));
}

static void op_dist_control(struct run *run)
{
	pair_write(&run->pair, PAIR_DIST, GICD_CTLR, 4,
		   random_chance(run, 60) ? GICD_CTLR_ENABLE_GRP0 | GICD_CTLR_ENABLE_GRP1 : random_next(run));
}

static void op_redist_control(struct run *run)
{
	const uint32_t vcpu = random_vcpu(run);

	if (random_chance(run, 50))
		pair_write(&run->pair, vcpu, GICR_CTLR, 4, random_chance(run, 60) ? 0 : random_next(run));
	else
		pair_write(&run->pair, vcpu, GICR_WAKER, 4, random_chance(run, 70) ? 0 : random_next(run));
}

static void op_online(struct run *run)
{
	pair_set_online(&run->pair, random_vcpu(run), random_chance(run, 70));
}

static uint64_t random_address(struct run *run)
{
	const struct vgic_config *config = &run->pair.config;
	const struct vgic_redist_region *region = &config->redist_regions[random_below(run, 2)];

	switch (random_below(run, 5)) {
	case 0:
		return config->dist_base - 8 + random_below(run, VGIC_DIST_FRAME_SIZE + 16);
	case 1:
		return region->base - 8 + random_below(run, region->num_frames * VGIC_REDIST_FRAME_SIZE + 16);
	case 2:
		/* The start of a frame, where most registers are. */
		return region->base + (random_next(run) % region->num_frames) * VGIC_REDIST_FRAME_SIZE +
		       random_below(run, 2) * GICR_SGI_BASE + random_below(run, 0x400) * 4;
	case 3:
		/* What a guest looks at first. */
		return (random_chance(run, 50) ? config->dist_base : region->base) + random_below(run, 8) * 4 +
		       (random_chance(run, 30) ? GIC_ID_FIRST : 0);
	default:
		return random_chance(run, 90) ? config->dist_base + random_below(run, 0x400) * 4 : random_next(run);
	}
}

static void op_any_address(struct run *run)
{
	const unsigned width = random_chance(run, 70) ? 4 : 1u << random_below(run, 4);

	/* Half of all reads and writes are not of random bits: those would enable or disable too much at once. */
	if (random_chance(run, 60))
		pair_read_address(&run->pair, random_address(run), width);
	else
		pair_write_address(&run->pair, random_address(run), width,
				   random_chance(run, 50) ? 1ull << random_below(run, 64) : random_next(run));
}

static void op_vcpu_reset(struct run *run)
{
	const uint32_t vcpu = random_vcpu(run);

	pair_vcpu_reset(&run->pair, vcpu);
	set_up_vcpu(run, vcpu);
}

static void op_reset(struct run *run)
{
	pair_reset(&run->pair);
	pair_compare_all(&run->pair);
	memset(run->handlers, 0, sizeof(run->handlers));
	set_up(run);
}

static void op_move(struct run *run)
{
	pair_move(&run->pair);
	pair_compare_all(&run->pair);
}

/* Into another controller, which is compared from then on. */
static void op_move_on(struct run *run)
{
	const enum pair_way way = random_chance(run, 50) ? PAIR_BY_IMAGE : PAIR_BY_ATTRIBUTES;

	pair_move_on(&run->pair, way, random_next(run));
	run->moves[way]++;
	pair_compare(&run->pair); /* first: 1-of-N interrupts may be chosen anew */
	pair_compare_all(&run->pair);
}

/* Undo what random writes have switched off, and what random EOIs have left active. */
static void op_repair(struct run *run)
{
	const uint32_t vcpu = random_vcpu(run);

	if (random_chance(run, 50)) {
		set_up_interrupt(run, vcpu, random_intid(run));
		return;
	}
	for (uint32_t word = 0; word <= run->pair.num_spis / 32 && word < 4; word++) {
		pair_write(&run->pair, word == 0 ? vcpu : PAIR_DIST,
			   word == 0 ? GICR_ICACTIVER0 : GICD_ICACTIVER + 4 * word, 4, 0xffffffff);
	}
	pair_icc_write(&run->pair, vcpu, VGIC_ICC_PMR_EL1, 0xf8);
	pair_icc_write(&run->pair, vcpu, VGIC_ICC_AP0R0_EL1, 0);
	pair_icc_write(&run->pair, vcpu, VGIC_ICC_AP1R0_EL1, 0);
	run->handlers[vcpu].depth = 0;
}

static const struct {
	unsigned weight;
	void (*run)(struct run *run);
} operations[] = {
	{ 120, op_line },    { 40, op_pulse },         { 160, op_acknowledge },
	{ 120, op_end },     { 60, op_deactivate },    { 15, op_wrong_end },
	{ 60, op_sgi },      { 120, op_bits },         { 20, op_group },
	{ 40, op_priority }, { 15, op_configure },     { 30, op_route },
	{ 20, op_message },  { 50, op_cpu_interface }, { 30, op_read_cpu_interface },
	{ 10, op_any_icc },  { 8, op_dist_control },   { 15, op_redist_control },
	{ 8, op_online },    { 25, op_any_address },   { 2, op_vcpu_reset },
	{ 1, op_reset },     { 40, op_repair },        { 2, op_move },
	{ 3, op_move_on },
};

static void run_operation(struct run *run)
{
	unsigned total = 0;
	unsigned pick;

	for (size_t i = 0; i < sizeof(operations) / sizeof(operations[0]); i++)
		total += operations[i].weight;
	pick = random_below(run, total);
	for (size_t i = 0; i < sizeof(operations) / sizeof(operations[0]); i++) {
		if (pick < operations[i].weight) {
			operations[i].run(run);
			return;
		}
		pick -= operations[i].weight;
	}
}

/* ---- Runs, and what has happened in them ---- */

enum event {
	EVENT_ACKNOWLEDGE,
	EVENT_SPURIOUS,
	EVENT_PREEMPTION,
	EVENT_CROSS_GROUP,
	EVENT_OUTRANKED,
	EVENT_BLOCKED,
	EVENT_DEACTIVATION,
	EVENT_ONE_OF_N,
	EVENT_RESELECTED,
	EVENT_MOVED_BY_IMAGE,
	EVENT_MOVED_BY_ATTRIBUTES,
	EVENT_FIRST_ERROR, /* and one for each kind of guest error */
	/* Without an ITS the errors after this one cannot happen. */
	NUM_EVENTS = EVENT_FIRST_ERROR + VGIC_GUEST_ROUTE_NO_TARGET + 1,
};

static const char *const event_names[EVENT_FIRST_ERROR] = {
	[EVENT_ACKNOWLEDGE] = "acknowledges",
	[EVENT_SPURIOUS] = "spurious acknowledges",
	[EVENT_PREEMPTION] = "preemptions",
	[EVENT_CROSS_GROUP] = "acknowledges of the wrong group",
	[EVENT_OUTRANKED] = "acknowledges without the priority to preempt",
	[EVENT_BLOCKED] = "interrupts hidden by one that cannot preempt",
	[EVENT_DEACTIVATION] = "deactivations of level-sensitive interrupts",
	[EVENT_ONE_OF_N] = "1-of-N interrupts seen at a vCPU",
	[EVENT_RESELECTED] = "1-of-N interrupts seen to have moved",
	[EVENT_MOVED_BY_IMAGE] = "moves to another controller by an image",
	[EVENT_MOVED_BY_ATTRIBUTES] = "moves to another controller by KVM's attributes",
};

static void add_events(const struct run *run, uint64_t *events)
{
	const struct ref_stats *stats = ref_get_stats(run->pair.ref);

	events[EVENT_ACKNOWLEDGE] += stats->acknowledges;
	events[EVENT_SPURIOUS] += stats->spurious;
	events[EVENT_PREEMPTION] += stats->preemptions;
	events[EVENT_CROSS_GROUP] += stats->cross_group;
	events[EVENT_OUTRANKED] += stats->outranked;
	events[EVENT_BLOCKED] += run->pair.num_blocked;
	events[EVENT_DEACTIVATION] += stats->deactivations;
	events[EVENT_ONE_OF_N] += run->pair.num_one_of_n;
	events[EVENT_RESELECTED] += run->pair.num_reselected;
	events[EVENT_MOVED_BY_IMAGE] += run->moves[PAIR_BY_IMAGE];
	events[EVENT_MOVED_BY_ATTRIBUTES] += run->moves[PAIR_BY_ATTRIBUTES];
	for (unsigned kind = 0; EVENT_FIRST_ERROR + kind < NUM_EVENTS; kind++)
		events[EVENT_FIRST_ERROR + kind] += stats->guest_errors[kind];
}

static void run_variant(const struct variant *variant, uint64_t seed, unsigned steps, const char *record,
			uint64_t *events)
{
	struct run *run = calloc(1, sizeof(*run));

	if (run == NULL)
		abort();
	pair_configure(&run->pair, variant->profile, variant->num_vcpus);
	run->pair.name = variant->name;
	run->pair.seed = seed;
	run->pair.config.num_spis = variant->num_spis;
	run->pair.config.kvm_revision = variant->kvm_revision;
	if (variant->features != KEEP_FEATURES)
		run->pair.config.features = variant->features;
	/* One vCPU with a range selector, even where that cannot be used, and where there can be one, with an Aff3. */
	run->pair.vcpu_configs[variant->num_vcpus - 1].affinity |= 0x30;
	if (run->pair.config.features & VGIC_FEATURE_A3V)
		run->pair.vcpu_configs[variant->num_vcpus - 1].affinity |= 0x200000000;
	run->random_state = seed;
	if (record)
		pair_record(&run->pair, record);

	pair_create(&run->pair);
	pair_compare_all(&run->pair);
	set_up(run);
	for (unsigned step = 0; step < steps; step++) {
		run_operation(run);
		pair_compare(&run->pair);
		if (step % STEPS_PER_CHECK == STEPS_PER_CHECK - 1)
			pair_compare_all(&run->pair);
	}
	pair_compare_all(&run->pair);
	add_events(run, events);
	pair_destroy(&run->pair);
	free(run);
}

static bool all_events_happened(const uint64_t *events)
{
	bool all = true;

	for (unsigned i = 0; i < NUM_EVENTS; i++) {
		const char *name = i < EVENT_FIRST_ERROR ?
					   event_names[i] :
					   vgic_guest_error_name((enum vgic_guest_error_kind)(i - EVENT_FIRST_ERROR));

		/* There are no LPIs here: see its_lockstep. */
		if (i == EVENT_FIRST_ERROR + VGIC_GUEST_ITS_COMMAND || i == EVENT_FIRST_ERROR + VGIC_GUEST_MEMORY)
			continue;
		printf("# %10" PRIu64 " %s\n", events[i], name);
		if (events[i] == 0)
			all = false;
	}
	return all;
}

static void print_result(bool ok, unsigned number, const char *name)
{
	printf("%s %u - %s\n", ok ? "ok" : "not ok", number, name);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "seed", required_argument, NULL, 's' },
		{ "steps", required_argument, NULL, 'n' },
		{ "config", required_argument, NULL, 'c' },
		{ "record", required_argument, NULL, 'r' },
		{ NULL, 0, NULL, 0 },
	};
	uint64_t events[NUM_EVENTS] = { 0 };
	uint64_t seed = 0x1069;
	unsigned long steps = DEFAULT_STEPS;
	unsigned long first = 0;
	unsigned long last = NUM_VARIANTS - 1;
	const char *record = NULL;
	bool ok = true;
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (option) {
		case 's':
			seed = strtoull(optarg, NULL, 0);
			break;
		case 'n':
			steps = strtoul(optarg, NULL, 0);
			break;
		case 'c':
			first = last = strtoul(optarg, NULL, 0);
			break;
		case 'r':
			record = optarg;
			break;
		default:
			return 2;
		}
	}
	if (last >= NUM_VARIANTS) {
		fprintf(stderr, "--config is 0 to %zu\n", NUM_VARIANTS - 1);
		return 2;
	}

	printf("1..%lu\n# seed %" PRIu64 ", %lu steps\n", last - first + 2, seed, steps);
	for (unsigned long i = first; i <= last; i++) {
		run_variant(&variants[i], seed, (unsigned)steps, record, events);
		print_result(true, (unsigned)(i - first + 1), variants[i].name);
	}
	ok = all_events_happened(events);
	/* One configuration or few steps cannot show everything. */
	if (steps < MIN_FOR_EVENTS || first == last)
		ok = true;
	print_result(ok, (unsigned)(last - first + 2), "everything of interest has happened");
	return ok ? 0 : 1;
}
