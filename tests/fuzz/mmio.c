/* SPDX-License-Identifier: MIT */
/*
 * Fuzz target: what a guest does with the registers and system registers of a GIC
 * without LPIs, and its devices with their lines, in lockstep with the reference.
 * After every operation what it returned, the lines of all vCPUs and the counters
 * are compared, at the end the registers of all interrupts, too. Any difference
 * ends the program.
 *
 * mmio_format.h says what the bytes mean. The work that one input can ask for is
 * bounded: so many operations, fewer of the expensive ones.
 */
#include "mmio_format.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pair.h"

#define MAX_OPS       500u
#define MAX_EXPENSIVE 4u
#define MAX_NESTED    8u
#define NUM_PROBED    12u

/* What a vCPU's handler remembers. */
struct handler {
	uint32_t intid[MAX_NESTED];
	uint32_t eoir[MAX_NESTED];
	unsigned depth;
	uint32_t ended;
};

struct run {
	struct pair pair;
	struct input input;
	struct handler handlers[MMIO_MAX_VCPUS];
	unsigned reported[MMIO_MAX_VCPUS]; /* the lines of which line_changed() has told */
	unsigned num_expensive;
};

/* ---- What the bytes mean ---- */

static uint64_t read_number(struct run *run)
{
	static const uint32_t edges[] = {
		1019, 1020, 1021, 1022, 1023, 1024, 4095, 4096, 5119, 8191, 8192, 8255, 65535
	};
	const struct vgic_config *config = &run->pair.config;
	const uint8_t tag = input_u8(&run->input);

	if (tag < NUMBER_BIT)
		return tag;
	if (tag < NUMBER_BYTES)
		return 1ull << (tag - NUMBER_BIT);
	if (tag < NUMBER_AFFINITY)
		return input_uint(&run->input, tag - NUMBER_BYTES + 1u);
	if (tag < NUMBER_AFFINITY + MMIO_MAX_VCPUS)
		return config->vcpus[(tag - NUMBER_AFFINITY) % config->num_vcpus].affinity;
	if (tag == NUMBER_IRM)
		return GICD_IROUTER_IRM;
	if (tag == NUMBER_ONES64)
		return UINT64_MAX;
	if (tag < NUMBER_PRIORITY)
		return UINT32_MAX;
	if (tag < NUMBER_FOUR)
		return (uint8_t)(tag << 3);
	if (tag < NUMBER_EDGES)
		return (uint8_t)(tag << 3) * 0x01010101u;
	if (tag < NUMBER_EDGES + 3)
		return GIC_FIRST_SPI + config->num_spis - 2 + (tag - NUMBER_EDGES);
	return edges[tag % (sizeof(edges) / sizeof(edges[0]))];
}

static uint32_t read_u32_number(struct run *run)
{
	return (uint32_t)read_number(run);
}

/* 1, 2, 4 or 8, and sometimes none of these. */
static unsigned read_width(struct run *run)
{
	const uint8_t byte = input_u8(&run->input);

	return byte < 4 ? 1u << byte : byte % 10u;
}

static void read_bank(struct run *run, uint32_t *frame, uint32_t *offset, unsigned *width)
{
	const struct mmio_bank *bank = &mmio_banks[input_u8(&run->input) % MMIO_NUM_BANKS];
	const uint32_t intid = read_u32_number(run) % (GIC_END_SPI + 4);

	/* Where an interrupt has its registers; with the flag the redistributor's are those of the distributor. */
	if (*frame != PAIR_DIST && intid >= GIC_FIRST_SPI)
		*frame = PAIR_DIST;
	*offset = (bank->offset + intid * bank->bits / 8) & ~(bank->width - 1u);
	if (*frame != PAIR_DIST)
		*offset += GICR_SGI_BASE;
	*width = bank->width;
}

static uint64_t read_address(struct run *run)
{
	const struct vgic_config *config = &run->pair.config;
	const uint64_t offset = read_number(run);

	switch (input_u8(&run->input) % 4) {
	case 0:
		return config->dist_base + offset;
	case 1:
		return config->redist_regions[0].base + offset;
	case 2:
		return config->redist_regions[1].base + offset;
	default:
		return offset;
	}
}

/* ---- Operations ---- */

static void access_register(struct run *run, uint8_t op, uint32_t frame, bool in_bank)
{
	uint32_t offset;
	unsigned width;

	if (in_bank) {
		read_bank(run, &frame, &offset, &width);
	} else {
		width = read_width(run);
		offset = read_u32_number(run);
	}
	if (MMIO_KIND(op) == MMIO_READ || MMIO_KIND(op) == MMIO_READ_BANK)
		pair_read(&run->pair, frame, offset, width);
	else
		pair_write(&run->pair, frame, offset, width, read_number(run));
}

static void access_address(struct run *run, uint8_t op)
{
	const unsigned width = read_width(run);
	const uint64_t address = read_address(run);

	if (MMIO_KIND(op) == MMIO_READ_AT)
		pair_read_address(&run->pair, address, width);
	else
		pair_write_address(&run->pair, address, width, read_number(run));
}

static uint32_t read_icc_register(struct run *run)
{
	const uint8_t index = input_u8(&run->input);

	return index < MMIO_NUM_ICC_REGS ? mmio_icc_regs[index] : input_u16(&run->input);
}

static void acknowledge(struct run *run, uint32_t vcpu, bool other_group)
{
	struct handler *handler = &run->handlers[vcpu];
	const bool group1 = (pair_lines(&run->pair, vcpu) == VGIC_LINE_IRQ) != other_group;
	uint64_t intid;

	intid = pair_icc_read(&run->pair, vcpu, group1 ? VGIC_ICC_IAR1_EL1 : VGIC_ICC_IAR0_EL1);
	if (intid == GIC_SPURIOUS || handler->depth == MAX_NESTED)
		return;
	handler->intid[handler->depth] = (uint32_t)intid;
	handler->eoir[handler->depth++] = group1 ? VGIC_ICC_EOIR1_EL1 : VGIC_ICC_EOIR0_EL1;
}

static void end(struct run *run, uint32_t vcpu)
{
	struct handler *handler = &run->handlers[vcpu];

	if (handler->depth == 0)
		return;
	handler->depth--;
	handler->ended = handler->intid[handler->depth];
	pair_icc_write(&run->pair, vcpu, handler->eoir[handler->depth], handler->ended);
}

static void send_sgi(struct run *run, uint32_t vcpu)
{
	static const uint32_t regs[] = { VGIC_ICC_SGI1R_EL1, VGIC_ICC_SGI0R_EL1, VGIC_ICC_ASGI1R_EL1,
					 VGIC_ICC_SGI1R_EL1 };
	const uint8_t what = input_u8(&run->input);
	const uint8_t where = input_u8(&run->input);
	const uint64_t affinity = run->pair.vcpu_configs[where % run->pair.num_vcpus].affinity;
	uint64_t value = (uint64_t)(what & 15) << ICC_SGIR_INTID_SHIFT;

	value |= (affinity >> 8 & 0xff) << ICC_SGIR_AFF1_SHIFT | (affinity >> 16 & 0xff) << ICC_SGIR_AFF2_SHIFT |
		 (affinity >> 32 & 0xff) << ICC_SGIR_AFF3_SHIFT | (affinity >> 4 & 0xf) << ICC_SGIR_RS_SHIFT;
	value |= (1ull << (affinity & 15)) | (where >> 2 & 0xf);
	if (where & 0x80)
		value |= ICC_SGIR_IRM;
	pair_icc_write(&run->pair, vcpu, regs[what >> 4 & 3], value);
}

/* What a kernel does before it can have interrupts. */
static void open_vcpu(struct run *run, uint32_t vcpu)
{
	struct pair *pair = &run->pair;

	pair_write(pair, PAIR_DIST, GICD_CTLR, 4, GICD_CTLR_ENABLE_GRP0 | GICD_CTLR_ENABLE_GRP1);
	pair_write(pair, vcpu, GICR_WAKER, 4, 0);
	pair_icc_write(pair, vcpu, VGIC_ICC_PMR_EL1, 0xf8);
	pair_icc_write(pair, vcpu, VGIC_ICC_IGRPEN0_EL1, 1);
	pair_icc_write(pair, vcpu, VGIC_ICC_IGRPEN1_EL1, 1);
}

static void set_up(struct run *run, uint32_t vcpu, bool group1, bool one_of_n)
{
	struct pair *pair = &run->pair;
	const uint32_t intid = read_u32_number(run) % (GIC_FIRST_SPI + pair->num_spis);
	const uint8_t priority = (uint8_t)read_number(run);
	const uint32_t frame = intid < GIC_FIRST_SPI ? vcpu : PAIR_DIST;
	const uint32_t base = frame == PAIR_DIST ? 0 : GICR_SGI_BASE;
	const uint32_t word = base + intid / 32 * 4;
	const uint64_t groups = pair_read(pair, frame, GICD_IGROUPR + word, 4);
	const uint64_t bit = 1ull << intid % 32;

	pair_write(pair, frame, GICD_IGROUPR + word, 4, group1 ? groups | bit : groups & ~bit);
	pair_write(pair, frame, GICD_IPRIORITYR + base + intid, 1, priority);
	if (frame == PAIR_DIST)
		pair_write(pair, frame, GICD_IROUTER + 8 * intid, 8,
			   one_of_n ? GICD_IROUTER_IRM : pair->vcpu_configs[vcpu].affinity);
	pair_write(pair, frame, GICD_ISENABLER + word, 4, bit);
}

static void set_line(struct run *run, uint8_t op, uint32_t vcpu)
{
	const unsigned source = input_u8(&run->input);
	const uint32_t intid = read_u32_number(run);

	if (MMIO_KIND(op) == MMIO_SPI)
		pair_set_spi(&run->pair, intid, source, op & MMIO_FLAG);
	else
		pair_set_ppi(&run->pair, vcpu, intid, source, op & MMIO_FLAG);
}

static void run_expensive(struct run *run, uint8_t op)
{
	if (run->num_expensive++ >= MAX_EXPENSIVE)
		return;
	if (MMIO_KIND(op) == MMIO_RESET) {
		pair_reset(&run->pair);
		memset(run->handlers, 0, sizeof(run->handlers));
	} else if (MMIO_KIND(op) == MMIO_MOVE) {
		pair_move(&run->pair);
	}
	pair_compare_interrupts(&run->pair);
}

static void run_op(struct run *run)
{
	struct pair *pair = &run->pair;
	const uint8_t op = input_u8(&run->input);
	const uint32_t vcpu = MMIO_VCPU(op) % pair->num_vcpus;
	uint32_t reg;

	switch (MMIO_KIND(op) % MMIO_NUM_KINDS) {
	case MMIO_WRITE_BANK:
	case MMIO_READ_BANK:
		access_register(run, op, op & MMIO_DIST_FLAG ? PAIR_DIST : vcpu, true);
		break;
	case MMIO_WRITE:
	case MMIO_READ:
		access_register(run, op, op & MMIO_DIST_FLAG ? PAIR_DIST : vcpu, false);
		break;
	case MMIO_WRITE_AT:
	case MMIO_READ_AT:
		access_address(run, op);
		break;
	case MMIO_ICC_WRITE:
		reg = read_icc_register(run);
		pair_icc_write(pair, vcpu, reg, read_number(run));
		break;
	case MMIO_ICC_READ:
		pair_icc_read(pair, vcpu, read_icc_register(run));
		break;
	case MMIO_ACK:
		acknowledge(run, vcpu, op & MMIO_FLAG);
		break;
	case MMIO_END:
		end(run, vcpu);
		break;
	case MMIO_DEACTIVATE:
		pair_icc_write(pair, vcpu, VGIC_ICC_DIR_EL1, run->handlers[vcpu].ended);
		break;
	case MMIO_SPI:
	case MMIO_PPI:
		set_line(run, op, vcpu);
		break;
	case MMIO_PULSE:
		pair_pulse_spi(pair, read_u32_number(run));
		break;
	case MMIO_ONLINE:
		pair_set_online(pair, vcpu, op & MMIO_FLAG);
		break;
	case MMIO_VCPU_RESET:
		pair_vcpu_reset(pair, vcpu);
		break;
	case MMIO_SGI:
		send_sgi(run, vcpu);
		break;
	case MMIO_OPEN:
		open_vcpu(run, vcpu);
		break;
	case MMIO_SET_UP:
	case MMIO_SET_UP_ANY:
		set_up(run, vcpu, op & MMIO_FLAG, MMIO_KIND(op) == MMIO_SET_UP_ANY);
		break;
	case MMIO_SLEEP:
		pair_write(pair, vcpu, GICR_WAKER, 4, op & MMIO_FLAG ? GICR_WAKER_PROCESSOR_SLEEP : 0);
		break;
	case MMIO_DPG:
		pair_write(pair, vcpu, GICR_CTLR, 4, (uint64_t)(input_u8(&run->input) & 7) << 24);
		break;
	default:
		run_expensive(run, op);
		break;
	}
	pair_compare(pair);
}

/* ---- The machine ---- */

static void on_kick(void *opaque, struct vgic_vcpu *vcpu)
{
	(void)opaque;
	(void)vcpu;
}

static void on_line_changed(void *opaque, struct vgic_vcpu *vcpu, unsigned lines)
{
	/* The pair is the first that a run has. */
	struct run *run = opaque;

	run->reported[vgic_vcpu_index(vcpu)] = lines;
}

/* pair_compare() has asked for the lines of all vCPUs: where the VMM mirrors them, it has been told of every change. */
static void check_mirror(struct run *run)
{
	for (uint32_t v = 0; v < run->pair.num_vcpus; v++) {
		if (run->pair.config.ops.line_changed && run->reported[v] != pair_lines(&run->pair, v)) {
			printf("# vCPU %u was reported with the lines %u, it has %u\n", v, run->reported[v],
			       pair_lines(&run->pair, v));
			exit(1);
		}
	}
}

static void configure(struct run *run)
{
	struct pair *pair = &run->pair;
	const uint8_t how = input_u8(&run->input);
	const uint16_t more = input_u16(&run->input);
	uint32_t features = more & VGIC_FEATURES_ALL & ~VGIC_FEATURE_LPIS;

	pair_configure(pair, how & 1 ? VGIC_PROFILE_KVM : VGIC_PROFILE_NATIVE, (how >> 1 & 3u) + 1);
	if (!(features & VGIC_FEATURE_ONE_OF_N))
		features &= ~VGIC_FEATURE_DPGS;
	pair->name = "mmio";
	pair->config.ops.kick = on_kick;
	if (more & MMIO_MIRROR)
		pair->config.ops.line_changed = on_line_changed;
	pair->config.features = features;
	pair->config.num_spis = mmio_num_spis[how >> 3 & 3];
	pair->config.kvm_revision = 1 + (how >> 5) % 3u;
	/* As in the lockstep test: one vCPU with a range selector and, where that can be, an Aff3. */
	pair->vcpu_configs[pair->config.num_vcpus - 1].affinity |= 0x30;
	if (features & VGIC_FEATURE_A3V)
		pair->vcpu_configs[pair->config.num_vcpus - 1].affinity |= 0x200000000;
}

/*
 * What the input has left behind, made visible: every interrupt is made pending, and each vCPU takes what comes, in its
 * order. Who sleeps goes on sleeping: a 1-of-N interrupt must not be there.
 */
static void probe(struct run *run)
{
	struct pair *pair = &run->pair;

	for (uint32_t word = 1; word <= pair->num_spis / 32; word++)
		pair_write(pair, PAIR_DIST, GICD_ISPENDR + 4 * word, 4, UINT32_MAX);
	pair_write(pair, PAIR_DIST, GICD_CTLR, 4, GICD_CTLR_ENABLE_GRP0 | GICD_CTLR_ENABLE_GRP1);
	pair_compare(pair);
	for (uint32_t v = 0; v < pair->num_vcpus; v++) {
		pair_write(pair, v, GICR_ISPENDR0, 4, UINT32_MAX);
		pair_icc_write(pair, v, VGIC_ICC_PMR_EL1, 0xff);
		pair_icc_write(pair, v, VGIC_ICC_IGRPEN0_EL1, 1);
		pair_icc_write(pair, v, VGIC_ICC_IGRPEN1_EL1, 1);
		pair_compare(pair);
		pair_icc_write(pair, v, VGIC_ICC_AP0R0_EL1, 0);
		pair_icc_write(pair, v, VGIC_ICC_AP1R0_EL1, 0);
		run->handlers[v].depth = 0;
		for (unsigned i = 0; i < NUM_PROBED && pair_lines(pair, v) != 0; i++) {
			acknowledge(run, v, false);
			end(run, v);
			pair_compare(pair);
		}
	}
	pair_compare(pair);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct run run = { .input = { data, size } };

	configure(&run);
	pair_create(&run.pair);
	for (unsigned i = 0; i < MAX_OPS && !input_is_empty(&run.input); i++) {
		run_op(&run);
		check_mirror(&run);
	}
	probe(&run);
	pair_compare_interrupts(&run.pair);
	pair_destroy(&run.pair);
	return 0;
}
