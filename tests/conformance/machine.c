/* SPDX-License-Identifier: MIT */
/*
 * The machine of the conformance tests: see machine.h.
 */
#include "machine.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- Callbacks ---- */

static void on_kick(void *opaque, struct vgic_vcpu *vcpu)
{
	struct machine *m = opaque;

	m->kicks[vgic_vcpu_index(vcpu)]++;
	m->num_kicks++;
}

static void on_line_changed(void *opaque, struct vgic_vcpu *vcpu, unsigned lines)
{
	struct machine *m = opaque;

	m->line_changes[vgic_vcpu_index(vcpu)]++;
	m->reported_lines[vgic_vcpu_index(vcpu)] = lines;
}

static void on_deactivated(void *opaque, struct vgic_vcpu *vcpu, uint32_t intid)
{
	struct machine *m = opaque;

	m->num_deactivated++;
	m->deactivated_vcpu = vcpu;
	m->deactivated_intid = intid;
	if (m->on_deactivated)
		m->on_deactivated(m, intid);
}

static void on_guest_error(void *opaque, const struct vgic_guest_error *error)
{
	struct machine *m = opaque;

	m->num_error_reports++;
	m->last_error = *error;
}

/* ---- Life ---- */

static void *allocate(size_t count, size_t size)
{
	void *memory = calloc(count, size);

	assert_non_null(memory);
	return memory;
}

/* LPIs need guest memory; these tests give them none. */
static int no_memory_to_read(void *opaque, uint64_t address, void *buffer, size_t size)
{
	(void)opaque;
	(void)address;
	(void)buffer;
	(void)size;
	return -EFAULT;
}

static int no_memory_to_write(void *opaque, uint64_t address, const void *buffer, size_t size)
{
	(void)opaque;
	(void)address;
	(void)buffer;
	(void)size;
	return -EFAULT;
}

struct machine *machine_describe(enum vgic_profile profile, uint32_t num_vcpus)
{
	struct machine *m = allocate(1, sizeof(*m));

	m->vcpus = allocate(num_vcpus, sizeof(m->vcpus[0]));
	m->kicks = allocate(num_vcpus, sizeof(m->kicks[0]));
	m->line_changes = allocate(num_vcpus, sizeof(m->line_changes[0]));
	m->reported_lines = allocate(num_vcpus, sizeof(m->reported_lines[0]));
	for (uint32_t i = 0; i < num_vcpus; i++) {
		m->vcpus[i].id = i;
		m->vcpus[i].affinity = (uint64_t)(i / 4096) << 16 | (uint64_t)(i / 16 % 256) << 8 | i % 16;
		m->vcpus[i].user = &m->kicks[i];
	}
	vgic_config_init(&m->config, profile);
	m->config.num_vcpus = num_vcpus;
	m->config.vcpus = m->vcpus;
	m->config.opaque = m;
	m->config.ops.kick = on_kick;
	m->config.ops.deactivated = on_deactivated;
	m->config.ops.guest_error = on_guest_error;
	m->config.ops.guest_read = no_memory_to_read;
	m->config.ops.guest_write = no_memory_to_write;
	return m;
}

int machine_try_start(struct machine *m)
{
	return vgic_create(&m->config, &m->vgic);
}

struct machine *machine_start(struct machine *m)
{
	assert_int_equal(machine_try_start(m), 0);
	return m;
}

void machine_stop(struct machine *m)
{
	vgic_destroy(m->vgic);
	free(m->reported_lines);
	free(m->line_changes);
	free(m->kicks);
	free(m->vcpus);
	free(m);
}

void machine_mirror_lines(struct machine *m)
{
	m->config.ops.line_changed = on_line_changed;
}

struct machine *machine_native(uint32_t num_vcpus)
{
	return machine_start(machine_describe(VGIC_PROFILE_NATIVE, num_vcpus));
}

void machine_open_switches(struct machine *m)
{
	dist_write(m, GICD_CTLR, GICD_CTLR_ENABLE_GRP0 | GICD_CTLR_ENABLE_GRP1);
	for (uint32_t v = 0; v < m->config.num_vcpus; v++) {
		redist_write(m, v, GICR_WAKER, 0);
		icc_write(m, v, VGIC_ICC_PMR_EL1, 0xff);
		icc_write(m, v, VGIC_ICC_IGRPEN0_EL1, 1);
		icc_write(m, v, VGIC_ICC_IGRPEN1_EL1, 1);
	}
}

struct machine *machine_open(uint32_t num_vcpus)
{
	struct machine *m = machine_native(num_vcpus);

	machine_open_switches(m);
	return m;
}

void machine_add_region(struct machine *m, uint64_t base, uint32_t num_frames)
{
	assert_true(m->config.num_redist_regions < MACHINE_MAX_REGIONS);
	m->regions[m->config.num_redist_regions++] =
		(struct vgic_redist_region){ .base = base, .num_frames = num_frames };
	m->config.redist_regions = m->regions;
}

struct vgic_vcpu *vcpu_of(struct machine *m, uint32_t index)
{
	struct vgic_vcpu *vcpu = vgic_vcpu_by_index(m->vgic, index);

	assert_non_null(vcpu);
	return vcpu;
}

/* ---- Registers ---- */

uint64_t dist_read_width(struct machine *m, uint32_t offset, unsigned width)
{
	uint64_t value = ~0ull;

	assert_int_equal(vgic_dist_read(m->vgic, offset, width, &value), 0);
	return value;
}

void dist_write_width(struct machine *m, uint32_t offset, unsigned width, uint64_t value)
{
	assert_int_equal(vgic_dist_write(m->vgic, offset, width, value), 0);
}

uint32_t dist_read(struct machine *m, uint32_t offset)
{
	return (uint32_t)dist_read_width(m, offset, 4);
}

void dist_write(struct machine *m, uint32_t offset, uint32_t value)
{
	dist_write_width(m, offset, 4, value);
}

uint64_t redist_read_width(struct machine *m, uint32_t vcpu, uint32_t offset, unsigned width)
{
	uint64_t value = ~0ull;

	assert_int_equal(vgic_redist_read(vcpu_of(m, vcpu), offset, width, &value), 0);
	return value;
}

void redist_write_width(struct machine *m, uint32_t vcpu, uint32_t offset, unsigned width, uint64_t value)
{
	assert_int_equal(vgic_redist_write(vcpu_of(m, vcpu), offset, width, value), 0);
}

uint32_t redist_read(struct machine *m, uint32_t vcpu, uint32_t offset)
{
	return (uint32_t)redist_read_width(m, vcpu, offset, 4);
}

void redist_write(struct machine *m, uint32_t vcpu, uint32_t offset, uint32_t value)
{
	redist_write_width(m, vcpu, offset, 4, value);
}

uint64_t icc_read(struct machine *m, uint32_t vcpu, uint32_t reg)
{
	uint64_t value = ~0ull;

	assert_int_equal(vgic_icc_read(vcpu_of(m, vcpu), reg, &value), 0);
	return value;
}

void icc_write(struct machine *m, uint32_t vcpu, uint32_t reg, uint64_t value)
{
	assert_int_equal(vgic_icc_write(vcpu_of(m, vcpu), reg, value), 0);
}

/* ---- One interrupt ---- */

static uint32_t read_word(struct machine *m, uint32_t vcpu, uint32_t intid, uint32_t dist_offset)
{
	return intid < GIC_FIRST_SPI ? redist_read(m, vcpu, GICR_SGI_BASE + dist_offset) : dist_read(m, dist_offset);
}

static void write_word(struct machine *m, uint32_t vcpu, uint32_t intid, uint32_t dist_offset, uint32_t value)
{
	if (intid < GIC_FIRST_SPI)
		redist_write(m, vcpu, GICR_SGI_BASE + dist_offset, value);
	else
		dist_write(m, dist_offset, value);
}

bool irq_read_bit(struct machine *m, uint32_t vcpu, uint32_t bank, uint32_t intid)
{
	return read_word(m, vcpu, intid, bank + intid / 32 * 4) >> (intid % 32) & 1;
}

void irq_write_bit(struct machine *m, uint32_t vcpu, uint32_t bank, uint32_t intid)
{
	write_word(m, vcpu, intid, bank + intid / 32 * 4, 1u << (intid % 32));
}

void irq_set_group(struct machine *m, uint32_t vcpu, uint32_t intid, unsigned group)
{
	const uint32_t offset = GICD_IGROUPR + intid / 32 * 4;
	const uint32_t bit = 1u << (intid % 32);
	const uint32_t old = read_word(m, vcpu, intid, offset);

	write_word(m, vcpu, intid, offset, group ? old | bit : old & ~bit);
}

void irq_set_priority(struct machine *m, uint32_t vcpu, uint32_t intid, uint8_t priority)
{
	if (intid < GIC_FIRST_SPI)
		redist_write_width(m, vcpu, GICR_IPRIORITYR + intid, 1, priority);
	else
		dist_write_width(m, GICD_IPRIORITYR + intid, 1, priority);
}

void irq_set_edge(struct machine *m, uint32_t vcpu, uint32_t intid, bool edge)
{
	const uint32_t offset = GICD_ICFGR + intid / 16 * 4;
	const uint32_t bit = 2u << (2 * (intid % 16));
	const uint32_t old = read_word(m, vcpu, intid, offset);

	write_word(m, vcpu, intid, offset, edge ? old | bit : old & ~bit);
}

bool irq_is_pending(struct machine *m, uint32_t vcpu, uint32_t intid)
{
	const bool pending = irq_read_bit(m, vcpu, GICD_ISPENDR, intid);

	assert_int_equal(irq_read_bit(m, vcpu, GICD_ICPENDR, intid), pending);
	return pending;
}

bool irq_is_active(struct machine *m, uint32_t vcpu, uint32_t intid)
{
	const bool active = irq_read_bit(m, vcpu, GICD_ISACTIVER, intid);

	assert_int_equal(irq_read_bit(m, vcpu, GICD_ICACTIVER, intid), active);
	return active;
}

void irq_set_up(struct machine *m, uint32_t vcpu, uint32_t intid, unsigned group, uint8_t priority)
{
	irq_set_group(m, vcpu, intid, group);
	irq_set_priority(m, vcpu, intid, priority);
	if (intid >= GIC_FIRST_SPI) {
		irq_set_edge(m, vcpu, intid, true);
		spi_route(m, intid, m->vcpus[vcpu].affinity);
	}
	irq_write_bit(m, vcpu, GICD_ISENABLER, intid);
}

void spi_route(struct machine *m, uint32_t intid, uint64_t route)
{
	dist_write_width(m, GICD_IROUTER + 8 * intid, 8, route);
}

/* ---- CPU interface ---- */

unsigned lines_of(struct machine *m, uint32_t vcpu)
{
	return vgic_poll_lines(vcpu_of(m, vcpu));
}

uint32_t ack0(struct machine *m, uint32_t vcpu)
{
	return (uint32_t)icc_read(m, vcpu, VGIC_ICC_IAR0_EL1);
}

uint32_t ack1(struct machine *m, uint32_t vcpu)
{
	return (uint32_t)icc_read(m, vcpu, VGIC_ICC_IAR1_EL1);
}

void eoi0(struct machine *m, uint32_t vcpu, uint32_t intid)
{
	icc_write(m, vcpu, VGIC_ICC_EOIR0_EL1, intid);
}

void eoi1(struct machine *m, uint32_t vcpu, uint32_t intid)
{
	icc_write(m, vcpu, VGIC_ICC_EOIR1_EL1, intid);
}

/* ---- Counters ---- */

struct vgic_stats stats_of(struct machine *m)
{
	struct vgic_stats stats = { .size = sizeof(stats) };

	assert_int_equal(vgic_get_stats(m->vgic, &stats), 0);
	return stats;
}

uint64_t errors_of(struct machine *m, enum vgic_guest_error_kind kind)
{
	return stats_of(m).guest_errors[kind];
}

uint64_t errors_of_all_kinds(struct machine *m)
{
	const struct vgic_stats stats = stats_of(m);
	uint64_t sum = 0;

	for (int kind = 0; kind < VGIC_NUM_GUEST_ERRORS; kind++)
		sum += stats.guest_errors[kind];
	return sum;
}
