/* SPDX-License-Identifier: MIT */
/* The machines and steps of the target `state`: see state_world.h. */
#include "state_world.h"

#include <errno.h>
#include <gic_arch.h>
#include <its_arch.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

#define MAX_WORK  20000u
#define MAX_TAKEN 64u

/* ---- Guest memory ------------------------------------------------------------------- */

static bool has_memory(uint64_t address, size_t size)
{
	return address >= WORLD_RAM_BASE && address - WORLD_RAM_BASE <= WORLD_RAM_SIZE - size;
}

static int on_read(void *opaque, uint64_t address, void *buffer, size_t size)
{
	struct world *w = opaque;

	check(size > 0 && address / 4096 == (address + size - 1) / 4096);
	if (!has_memory(address, size))
		return -EFAULT;
	memcpy(buffer, w->ram + (address - WORLD_RAM_BASE), size);
	return 0;
}

static int on_write(void *opaque, uint64_t address, const void *buffer, size_t size)
{
	struct world *w = opaque;

	check(size > 0 && address / 4096 == (address + size - 1) / 4096);
	if (!has_memory(address, size))
		return -EFAULT;
	memcpy(w->ram + (address - WORLD_RAM_BASE), buffer, size);
	w->dirty[(address - WORLD_RAM_BASE) / 4096] = 1;
	return 0;
}

static void clear_memory(struct world *w)
{
	for (size_t i = 0; i < sizeof(w->dirty); i++) {
		if (w->dirty[i])
			memset(w->ram + 4096 * i, 0, 4096);
		w->dirty[i] = 0;
	}
}

static void write_memory(struct world *w, uint32_t where, const uint8_t *bytes, unsigned num)
{
	for (unsigned i = 0; i < num; i++)
		on_write(w, WORLD_RAM_BASE + (where + i) % WORLD_RAM_SIZE, bytes + i, 1);
}

/* ---- Machines ------------------------------------------------------------------------ */

static const uint32_t vcpu_ids[WORLD_VCPUS] = { 2, 5 };

void world_create(struct world *w, enum vgic_profile profile, bool reversed)
{
	struct vgic_vcpu_config vcpus[WORLD_VCPUS] = { 0 };
	const struct vgic_its_config its = {
		.device_id_bits = 8, .event_id_bits = 5, .max_devices = 8, .max_translations = 64
	};
	struct vgic_config config;

	*w = (struct world){ .ram = calloc(1, WORLD_RAM_SIZE) };
	vgic_config_init(&config, profile);
	config.features |= VGIC_FEATURE_LPIS;
	config.num_spis = VGIC_MIN_SPIS;
	config.lpi_id_bits = WORLD_ID_BITS;
	config.num_vcpus = WORLD_VCPUS;
	config.vcpus = vcpus;
	config.num_itses = 1;
	config.itses = &its;
	config.ops.guest_read = on_read;
	config.ops.guest_write = on_write;
	config.opaque = w;
	for (uint32_t i = 0; i < WORLD_VCPUS; i++) {
		const uint32_t n = reversed ? WORLD_VCPUS - 1 - i : i;

		vcpus[i] = (struct vgic_vcpu_config){ .id = vcpu_ids[n], .affinity = n };
	}
	check(vgic_create(&config, &w->vgic) == 0);
	w->its = vgic_its_by_index(w->vgic, 0);
	for (uint32_t i = 0; i < WORLD_VCPUS; i++)
		w->vcpus[i] = vgic_vcpu_by_id(w->vgic, vcpu_ids[i]);
}

void world_stop_vcpus(struct world *w)
{
	for (unsigned v = 0; v < WORLD_VCPUS; v++) {
		if (w->in_guest[v])
			vgic_exit_guest(w->vcpus[v]);
		w->in_guest[v] = false;
	}
}

void world_save(struct world *w, struct image *image)
{
	world_stop_vcpus(w);
	check(vgic_save(w->vgic, image->bytes, sizeof(image->bytes), &image->size) == 0);
}

bool world_same(struct world *w, const struct image *image)
{
	static struct image now;

	world_save(w, &now);
	return now.size == image->size && memcmp(now.bytes, image->bytes, now.size) == 0;
}

void world_set(struct world *w, const struct image *image)
{
	if (w->is_at == image)
		return;
	w->is_at = image;
	world_stop_vcpus(w);
	for (; w->pauses; w->pauses--)
		vgic_resume(w->vgic);
	clear_memory(w);
	w->queue_at = 0;
	check(vgic_restore(w->vgic, image->bytes, image->size, NULL) == 0);
}

static void finish_work(struct world *w)
{
	for (unsigned parts = 0; vgic_run_work(w->vgic) != 0; parts++)
		check(parts < MAX_WORK);
}

/* ---- Reading steps -------------------------------------------------------------------- */

/* Offsets and values that are likely to be something. */
static const uint32_t dist_offsets[] = {
	GICD_CTLR,
	GICD_STATUSR,
	GICD_SETSPI_NSR,
	GICD_CLRSPI_NSR,
	GICD_IGROUPR + 4,
	GICD_ISENABLER + 4,
	GICD_ICENABLER + 4,
	GICD_ISPENDR + 4,
	GICD_ICPENDR + 4,
	GICD_ISACTIVER + 4,
	GICD_ICACTIVER + 4,
	GICD_IPRIORITYR + 32,
	GICD_IPRIORITYR + 60,
	GICD_ICFGR + 8,
	GICD_IROUTER + 8 * 32,
	GICD_IROUTER + 8 * 33 + 4,
};

static const uint32_t redist_offsets[] = {
	GICR_CTLR,          GICR_STATUSR,    GICR_WAKER,      GICR_PROPBASER,  GICR_PROPBASER + 4, GICR_PENDBASER,
	GICR_PENDBASER + 4, GICR_IGROUPR0,   GICR_ISENABLER0, GICR_ICENABLER0, GICR_ISPENDR0,      GICR_ICPENDR0,
	GICR_ISACTIVER0,    GICR_ICACTIVER0, GICR_IPRIORITYR, GICR_ICFGR1,
};

static const uint32_t its_offsets[] = {
	GITS_CTLR, GITS_CBASER, GITS_CWRITER, GITS_CREADR, GITS_BASER0, GITS_BASER1, GITS_IIDR, GITS_TRANSLATER,
};

static const uint32_t icc_registers[] = {
	VGIC_ICC_PMR_EL1,     VGIC_ICC_BPR0_EL1,  VGIC_ICC_BPR1_EL1, VGIC_ICC_AP0R0_EL1,
	VGIC_ICC_AP1R0_EL1,   VGIC_ICC_CTLR_EL1,  VGIC_ICC_SRE_EL1,  VGIC_ICC_IGRPEN0_EL1,
	VGIC_ICC_IGRPEN1_EL1, VGIC_ICC_SGI1R_EL1, VGIC_ICC_DIR_EL1,  VGIC_ICC_EOIR1_EL1,
};

#define PICK(array, n) ((array)[(n) % (sizeof(array) / sizeof((array)[0]))])

/* A register: one that there is, or any offset. */
static uint32_t read_offset(struct input *input, const uint32_t *offsets, size_t num)
{
	const uint8_t n = input_u8(input);

	return n == 0xff ? input_uint(input, 3) & 0x1ffff : offsets[n % num];
}

#define READ_OFFSET(input, array) read_offset(input, array, sizeof(array) / sizeof((array)[0]))

/* Addresses and flags of a table, mostly. */
static uint64_t read_value(struct input *input)
{
	static const uint64_t values[] = {
		GITS_CBASER_VALID | WORLD_QUEUE,
		GITS_BASER_VALID | WORLD_DEVICES,
		GITS_BASER_VALID | WORLD_COLLECTIONS,
		GITS_BASER_VALID | GITS_BASER_INDIRECT | WORLD_DEVICES,
		WORLD_PROPERTIES | (WORLD_ID_BITS - 1),
		WORLD_PENDING(0),
		WORLD_PENDING(1),
		WORLD_PENDING(1) | GICR_PENDBASER_PTZ,
		UINT64_MAX,
		0,
	};
	const uint8_t n = input_u8(input);

	if (n >= 0xf0)
		return PICK(values, n - 0xf0);
	return n >= 0xe0 ? input_u64(input) : n >= 0xc0 ? input_u32(input) : n;
}

static uint64_t read_attr(struct input *input, uint32_t group, unsigned vcpu)
{
	const uint64_t affinity = vcpu;

	switch (group) {
	case VGIC_GRP_DIST_REGS:
		return VGIC_ATTR_DIST(READ_OFFSET(input, dist_offsets));
	case VGIC_GRP_REDIST_REGS:
		return VGIC_ATTR_REDIST(affinity, READ_OFFSET(input, redist_offsets));
	case VGIC_GRP_CPU_SYSREGS:
		return VGIC_ATTR_SYSREG(affinity, PICK(icc_registers, input_u8(input)));
	case VGIC_GRP_LEVEL_INFO:
		return VGIC_ATTR_LEVEL(affinity, 32u * input_u8(input));
	case VGIC_GRP_ITS_REGS:
		return READ_OFFSET(input, its_offsets);
	default:
		return input_u8(input);
	}
}

static void read_command(struct input *input, struct step *step)
{
	const uint64_t opcode = input_u8(input), device = input_u8(input), event = input_u8(input);
	const uint64_t lpi = 8192 + (uint64_t)input_u8(input), icid = input_u8(input), flags = input_u8(input);
	const uint64_t rdbase = vcpu_ids[flags >> 1 & 1];
	const uint64_t valid = flags & 1 ? ITS_CMD_VALID : 0;
	uint64_t dw[4] = { (opcode & 0x1f) | device << 32, event | lpi << 32, icid | valid, 0 };

	if ((opcode & 0x1f) == ITS_CMD_MAPD)
		dw[2] = (event < 16 ? WORLD_ITT(event) : event << 16) | valid;
	if ((opcode & 0x1f) == ITS_CMD_MAPD)
		dw[1] = flags >> 2 & 0x1f;
	if ((opcode & 0x1f) == ITS_CMD_MAPC || (opcode & 0x1f) == ITS_CMD_MOVALL)
		dw[2] |= rdbase << 16;
	if ((opcode & 0x1f) == ITS_CMD_MOVALL)
		dw[3] = (uint64_t)vcpu_ids[flags >> 2 & 1] << 16;
	memcpy(step->bytes, dw, sizeof(dw));
}

static void read_memory_step(struct input *input, struct step *step)
{
	static const uint32_t places[] = { WORLD_DEVICES - WORLD_RAM_BASE,
					   WORLD_COLLECTIONS - WORLD_RAM_BASE,
					   WORLD_ITT(0) - WORLD_RAM_BASE,
					   WORLD_QUEUE - WORLD_RAM_BASE,
					   WORLD_PENDING(0) - WORLD_RAM_BASE + 1024,
					   WORLD_PENDING(1) - WORLD_RAM_BASE + 1024,
					   WORLD_PROPERTIES - WORLD_RAM_BASE };
	const uint8_t place = input_u8(input);
	const uint8_t *bytes;

	step->where = place == 0xff ? (uint32_t)input_uint(input, 3) : PICK(places, place);
	step->where += input_u16(input);
	step->num_bytes = 1 + input_u8(input) % sizeof(step->bytes);
	step->num_bytes = (unsigned)input_bytes(input, step->num_bytes, &bytes);
	memcpy(step->bytes, bytes, step->num_bytes);
}

void step_read(struct input *input, struct step *step, unsigned num_kinds)
{
	const uint8_t first = input_u8(input);

	*step = (struct step){ .kind = first % 32 % num_kinds, .vcpu = first >> 5 & 1 };
	switch (step->kind) {
	case STEP_TAKE:
	case STEP_TAKE0:
	case STEP_READ:
		break;
	case STEP_MSI:
	case STEP_LINE:
		step->where = input_u8(input);
		step->value = input_u8(input);
		break;
	case STEP_DIST:
		step->where = READ_OFFSET(input, dist_offsets);
		step->value = read_value(input);
		break;
	case STEP_REDIST:
		step->where = READ_OFFSET(input, redist_offsets);
		step->value = read_value(input);
		break;
	case STEP_ITS:
		step->where = READ_OFFSET(input, its_offsets);
		step->value = read_value(input);
		break;
	case STEP_ICC:
		step->where = PICK(icc_registers, input_u8(input));
		step->value = read_value(input);
		break;
	case STEP_COMMAND:
		read_command(input, step);
		break;
	case STEP_MEMORY:
		read_memory_step(input, step);
		break;
	case STEP_ATTR:
	case STEP_ITS_ATTR:
		step->where = input_u8(input);
		step->attr = step->where >= 0x80 ? input_u64(input) : read_attr(input, step->where & 0xf, step->vcpu);
		step->where &= 0xf;
		step->value = read_value(input);
		break;
	default:
		step->value = input_u8(input);
		break;
	}
}

/* ---- Making steps ------------------------------------------------------------------------ */

/*
 * Take all that is there, one after another. Which of several of the same priority comes first is left to the
 * controller: the result does not depend on that. UINT64_MAX: there is no end, since a line stays high.
 */
static uint64_t take_all(struct vgic_vcpu *vcpu, uint32_t ack, uint32_t end)
{
	uint64_t sum = 0;

	for (unsigned n = 0; n < MAX_TAKEN; n++) {
		uint64_t intid = 0;

		check(vgic_icc_read(vcpu, ack, &intid) == 0);
		if (intid == GIC_SPURIOUS)
			return sum;
		check(vgic_icc_write(vcpu, end, intid) == 0);
		sum += (intid + 1) * UINT64_C(0x9e3779b97f4a7c15);
	}
	return STEP_ENDLESS;
}

void world_command(struct world *w, const uint64_t command[4])
{
	write_memory(w, (uint32_t)(WORLD_QUEUE - WORLD_RAM_BASE + w->queue_at), (const uint8_t *)command, ITS_CMD_SIZE);
	w->queue_at = (w->queue_at + ITS_CMD_SIZE) % GITS_QUEUE_PAGE;
	vgic_its_write(w->its, GITS_CWRITER, 8, w->queue_at);
	finish_work(w);
}

static uint64_t drive_line(struct world *w, const struct step *s)
{
	const unsigned source = s->value >> 1 & 31;

	if (s->where < 32)
		return (uint64_t)vgic_set_ppi(w->vcpus[s->vcpu], s->where, source, s->value & 1);
	return (uint64_t)(s->value & 0x40 ? vgic_pulse_spi(w->vgic, s->where) :
					    vgic_set_spi(w->vgic, s->where, source, s->value & 1));
}

static uint64_t change_run(struct world *w, const struct step *s)
{
	struct vgic_vcpu *vcpu = w->vcpus[s->vcpu];

	if (s->value & 2) {
		vgic_vcpu_set_online(vcpu, s->value & 1);
	} else if (!w->in_guest[s->vcpu]) {
		w->in_guest[s->vcpu] = true;
		return vgic_enter_guest(vcpu);
	} else {
		w->in_guest[s->vcpu] = false;
		vgic_exit_guest(vcpu);
	}
	return 0;
}

/* All that a guest can read without changing it, in one number. */
static uint64_t read_registers(struct world *w)
{
	uint64_t sum = 0, value = 0;

	for (unsigned i = 0; i < sizeof(dist_offsets) / sizeof(dist_offsets[0]); i++) {
		check(vgic_dist_read(w->vgic, dist_offsets[i], 4, &value) == 0);
		sum = sum * 31 + value;
	}
	for (unsigned v = 0; v < WORLD_VCPUS; v++) {
		for (unsigned i = 0; i < sizeof(redist_offsets) / sizeof(redist_offsets[0]); i++) {
			check(vgic_redist_read(w->vcpus[v], redist_offsets[i], 4, &value) == 0);
			sum = sum * 31 + value;
		}
		sum = sum * 31 + vgic_poll_lines(w->vcpus[v]);
	}
	for (unsigned i = 0; i < 6; i++) {
		check(vgic_its_read(w->its, its_offsets[i], 8, &value) == 0);
		sum = sum * 31 + value;
	}
	return sum;
}

static unsigned width_of(uint32_t offset)
{
	return offset % 8 == 0 ? 8 : 4;
}

static uint64_t pause_or_resume(struct world *w, bool pause)
{
	if (pause && w->pauses < 3) {
		w->pauses++;
		return (uint64_t)vgic_pause(w->vgic);
	}
	if (!w->pauses) {
		check(vgic_resume(w->vgic) == -EINVAL);
		return 0;
	}
	w->pauses--;
	return (uint64_t)vgic_resume(w->vgic);
}

uint64_t step_make(struct world *w, const struct step *s)
{
	struct vgic_vcpu *vcpu = w->vcpus[s->vcpu];
	uint64_t command[4];
	uint64_t result = 0;

	switch (s->kind) {
	case STEP_TAKE:
		return take_all(vcpu, VGIC_ICC_IAR1_EL1, VGIC_ICC_EOIR1_EL1);
	case STEP_TAKE0:
		return take_all(vcpu, VGIC_ICC_IAR0_EL1, VGIC_ICC_EOIR0_EL1);
	case STEP_MSI:
		return (uint64_t)vgic_its_signal(w->its, s->where, (uint32_t)s->value);
	case STEP_LINE:
		return drive_line(w, s);
	case STEP_DIST:
		result = (uint64_t)vgic_dist_write(w->vgic, s->where & 0xffff, s->where & 3 ? 1 : 4, s->value);
		break;
	case STEP_REDIST:
		result = (uint64_t)vgic_redist_write(vcpu, s->where, width_of(s->where), s->value);
		break;
	case STEP_ITS:
		result = (uint64_t)vgic_its_write(w->its, s->where, width_of(s->where), s->value);
		break;
	case STEP_ICC:
		return (uint64_t)vgic_icc_write(vcpu, s->where, s->value);
	case STEP_COMMAND:
		memcpy(command, s->bytes, sizeof(command));
		world_command(w, command);
		break;
	case STEP_MEMORY:
		write_memory(w, s->where, s->bytes, s->num_bytes);
		break;
	case STEP_RUN:
		return change_run(w, s);
	case STEP_READ:
		return read_registers(w);
	case STEP_PAUSE:
		result = pause_or_resume(w, s->value & 1);
		break;
	default:
		return (uint64_t)step_set(w, s);
	}
	finish_work(w);
	return result;
}

int step_set(struct world *w, const struct step *s)
{
	switch (s->kind) {
	case STEP_ATTR:
		return vgic_attr_set(w->vgic, s->where, s->attr, s->value);
	case STEP_ITS_ATTR:
		return vgic_its_attr_set(w->its, s->where, s->attr, s->value);
	default:
		return vgic_its_attr_set(w->its, VGIC_GRP_CTRL,
					 s->value & 1 ? VGIC_CTRL_ITS_RESTORE_TABLES : VGIC_CTRL_ITS_SAVE_TABLES, 0);
	}
}

/* ---- A guest's boot ---------------------------------------------------------------------------- */

void world_fill(struct world *w)
{
	static const struct {
		uint32_t offset;
		uint64_t value;
	} its[] = {
		{ GITS_CBASER, GITS_CBASER_VALID | WORLD_QUEUE },
		{ GITS_BASER0, GITS_BASER_VALID | WORLD_DEVICES },
		{ GITS_BASER1, GITS_BASER_VALID | WORLD_COLLECTIONS },
		{ GITS_CTLR, GITS_CTLR_ENABLED },
	};

	memset(w->ram, 0xa1, 8192); /* the configuration of LPIs: all enabled */
	memset(w->dirty, 1, 2);
	vgic_dist_write(w->vgic, 0, 4, 3);
	vgic_dist_write(w->vgic, 0x84, 4, UINT32_MAX);
	vgic_dist_write(w->vgic, 0x104, 4, UINT32_MAX);
	vgic_dist_write(w->vgic, 0xc08, 4, 0xaaaa0000);
	for (unsigned v = 0; v < WORLD_VCPUS; v++) {
		vgic_redist_write(w->vcpus[v], 0x14, 4, 0);
		vgic_redist_write(w->vcpus[v], 0x70, 8, WORLD_PROPERTIES | (WORLD_ID_BITS - 1));
		vgic_redist_write(w->vcpus[v], 0x78, 8, WORLD_PENDING(v));
		vgic_redist_write(w->vcpus[v], 0, 4, 1);
		vgic_redist_write(w->vcpus[v], 0x10100, 4, UINT32_MAX);
		vgic_redist_write(w->vcpus[v], 0x10080, 4, UINT32_MAX);
		vgic_icc_write(w->vcpus[v], VGIC_ICC_PMR_EL1, 0xf8);
		vgic_icc_write(w->vcpus[v], VGIC_ICC_IGRPEN1_EL1, 1);
		vgic_icc_write(w->vcpus[v], VGIC_ICC_SGI1R_EL1, 3 | (uint64_t)v << 24);
	}
	for (unsigned i = 0; i < sizeof(its) / sizeof(its[0]); i++)
		vgic_its_write(w->its, its[i].offset, its[i].offset == GITS_CTLR ? 4 : 8, its[i].value);
	for (uint64_t d = 0; d < 3; d++) {
		world_command(w, (uint64_t[4]){ ITS_CMD_MAPD | d << 32, 4, WORLD_ITT(d) | ITS_CMD_VALID, 0 });
		world_command(w, (uint64_t[4]){ ITS_CMD_MAPC, 0, d | (d & 1 ? 5 : 2) << 16 | ITS_CMD_VALID, 0 });
		for (uint64_t e = 0; e < 4; e++)
			world_command(w, (uint64_t[4]){ ITS_CMD_MAPTI | d << 32, 3 * e | (8192 + 16 * d + e) << 32, e,
							0 });
		vgic_its_signal(w->its, (uint32_t)d, 3);
	}
	vgic_set_spi(w->vgic, 33, 3, true);
	vgic_pulse_spi(w->vgic, 45);
	vgic_set_ppi(w->vcpus[1], 27, 0, true);
}
