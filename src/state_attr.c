/* SPDX-License-Identifier: MIT */
/*
 * state_attr.c - KVM's device attributes: the state of a controller, register by
 * register.
 *
 * The register tables of the frames decide what there is; this file takes the
 * attribute apart. It owns nothing. What it calls takes config_lock.
 */
#include <errno.h>

#include "cpuif.h"
#include "dist.h"
#include "gic_regs.h"
#include "irq_change.h"
#include "its.h"
#include "redist.h"
#include "state.h"

/* The fields of an attribute. */
#define ATTR_LOW(attr)         ((uint32_t)(attr))
#define ATTR_AFFINITY(attr)    ((uint32_t)((attr) >> 32)) /* packed as affinity_pack() does */
#define ATTR_SYSREG(attr)      ((uint32_t)(attr)&0xffff)
#define ATTR_LEVEL_INTID(attr) ((uint32_t)(attr)&0x3ff)
#define ATTR_LEVEL_INFO(attr)  ((uint32_t)(attr) >> 10)

#define REGION_INDEX(value) ((uint32_t)(value)&0xfff)
#define REGION_MAX_COUNT    0xfffu
#define REGION_BASE         UINT64_C(0x000fffffffff0000)

/* The source that a line of LEVEL_INFO is driven by. */
#define LEVEL_SOURCE 0u

int state_check_stopped(struct vgic *vgic)
{
	for (uint32_t i = 0; i < vgic->num_vcpus; i++) {
		if (load_seq_cst(&vgic->vcpus[i]->run) == RUN_GUEST)
			return -EBUSY;
	}
	return 0;
}

/* ---- Addresses, number of interrupts -------------------------------------------------- */

static uint64_t dist_address(const struct vgic *vgic)
{
	return vgic->has_dist_base ? vgic->dist_base : VGIC_ADDR_UNDEFINED;
}

/* The base of the only region: a VMM that has several uses VGIC_ADDR_REDIST_REGION. */
static int get_redist_address(const struct vgic *vgic, uint64_t *value)
{
	if (vgic->num_redist_ranges > 1)
		return -EINVAL;
	*value = vgic->num_redist_ranges ? vgic->redist_ranges[0].base : VGIC_ADDR_UNDEFINED;
	return 0;
}

static int get_redist_region(const struct vgic *vgic, uint64_t *value)
{
	const uint32_t index = REGION_INDEX(*value);
	const struct redist_range *r;

	if (index >= vgic->num_redist_ranges)
		return -ENOENT;
	r = &vgic->redist_ranges[index];
	if (r->num_frames > REGION_MAX_COUNT || (r->base & ~REGION_BASE))
		return -E2BIG;
	*value = VGIC_REDIST_REGION(r->num_frames, r->base, index);
	return 0;
}

static int get_address(const struct vgic *vgic, uint64_t type, uint64_t *value)
{
	switch (type) {
	case VGIC_ADDR_DIST:
		*value = dist_address(vgic);
		return 0;
	case VGIC_ADDR_REDIST:
		return get_redist_address(vgic, value);
	case VGIC_ADDR_REDIST_REGION:
		return get_redist_region(vgic, value);
	default:
		return -ENXIO;
	}
}

/* The addresses are given at creation: a set can only agree. */
static int set_address(const struct vgic *vgic, uint64_t type, uint64_t value)
{
	uint64_t here = value;
	const int err = get_address(vgic, type, &here);

	if (err)
		return err;
	return here == value ? 0 : -EEXIST;
}

static int set_nr_irqs(const struct vgic *vgic, uint32_t value)
{
	if (value == FIRST_SPI + vgic->num_spis)
		return 0;
	return value >= FIRST_SPI + VGIC_MIN_SPIS && value <= 1024 && value % 32 == 0 ? -EBUSY : -EINVAL;
}

/* ---- Line levels ------------------------------------------------------------------------ */

/* SGIs have no lines. */
static struct irq *irq_with_line(struct vgic_vcpu *vcpu, uint32_t intid)
{
	return intid < NUM_SGIS ? NULL : irq_by_intid(vcpu, intid);
}

/* KVM's vGIC has a line level only for interrupts that are level-sensitive. */
static bool line_is_shown(const struct vgic *vgic, irq_word w)
{
	return (w & IRQ_LINE) && (vgic->profile != VGIC_PROFILE_KVM || !(w & IRQ_EDGE));
}

static uint64_t get_levels(struct vgic_vcpu *vcpu, uint32_t first)
{
	uint64_t levels = 0;

	for (uint32_t i = 0; i < 32; i++) {
		const struct irq *irq = irq_with_line(vcpu, first + i);

		if (irq && line_is_shown(vcpu->vgic, load_acquire(&irq->word)))
			levels |= UINT64_C(1) << i;
	}
	return levels;
}

static void set_levels(struct vgic_vcpu *vcpu, uint32_t first, uint64_t levels)
{
	for (uint32_t i = 0; i < 32; i++) {
		struct irq *irq = irq_with_line(vcpu, first + i);

		if (!irq)
			continue;
		if (levels >> i & 1)
			irq_change(vcpu->vgic, irq, irq_line_high, LEVEL_SOURCE);
		else
			irq_change(vcpu->vgic, irq, irq_line_low, 0);
	}
}

static int check_level_attr(uint64_t attr)
{
	return ATTR_LEVEL_INFO(attr) == 0 && ATTR_LEVEL_INTID(attr) % 32 == 0 ? 0 : -EINVAL;
}

/* ---- Groups ------------------------------------------------------------------------------- */

/* The vCPU that an attribute names, or NULL. */
static struct vgic_vcpu *named_vcpu(struct vgic *vgic, uint64_t attr)
{
	return vgic_vcpu_by_index(vgic, affinity_find(&vgic->affinity, ATTR_AFFINITY(attr)));
}

static bool group_has_vcpu(uint32_t group)
{
	return group == VGIC_GRP_REDIST_REGS || group == VGIC_GRP_CPU_SYSREGS || group == VGIC_GRP_LEVEL_INFO;
}

static int get_attr(struct vgic *vgic, uint32_t group, uint64_t attr, uint64_t *value)
{
	struct frame_access a = { .vgic = vgic };
	struct vgic_vcpu *vcpu = NULL;
	int err;

	if (group_has_vcpu(group)) {
		vcpu = named_vcpu(vgic, attr);
		if (!vcpu)
			return -EINVAL;
	}
	switch (group) {
	case VGIC_GRP_ADDR:
		return get_address(vgic, attr, value);
	case VGIC_GRP_NR_IRQS:
		*value = FIRST_SPI + vgic->num_spis;
		return 0;
	case VGIC_GRP_DIST_REGS:
		return frame_user_read(&dist_frame, &a, ATTR_LOW(attr), 4, value);
	case VGIC_GRP_REDIST_REGS:
		a.vcpu = vcpu;
		return frame_user_read(&redist_frame, &a, ATTR_LOW(attr), 4, value);
	case VGIC_GRP_CPU_SYSREGS:
		return cpuif_user_read(vcpu, ATTR_SYSREG(attr), value);
	case VGIC_GRP_LEVEL_INFO:
		err = check_level_attr(attr);
		if (!err)
			*value = get_levels(vcpu, ATTR_LEVEL_INTID(attr));
		return err;
	default:
		return -ENXIO;
	}
}

static int control(struct vgic *vgic, uint64_t attr)
{
	int err;

	switch (attr) {
	case VGIC_CTRL_INIT:
		return 0;
	case VGIC_CTRL_SAVE_PENDING_TABLES:
		config_lock(vgic);
		err = lpi_save_pending_tables(vgic);
		config_unlock(vgic);
		return err;
	default:
		return -ENXIO;
	}
}

static int set_attr(struct vgic *vgic, uint32_t group, uint64_t attr, uint64_t value)
{
	struct frame_access a = { .vgic = vgic };
	struct vgic_vcpu *vcpu = NULL;
	int err;

	if (group_has_vcpu(group)) {
		vcpu = named_vcpu(vgic, attr);
		if (!vcpu)
			return -EINVAL;
	}
	switch (group) {
	case VGIC_GRP_ADDR:
		return set_address(vgic, attr, value);
	case VGIC_GRP_NR_IRQS:
		return set_nr_irqs(vgic, (uint32_t)value);
	case VGIC_GRP_CTRL:
		return control(vgic, attr);
	case VGIC_GRP_DIST_REGS:
		return frame_user_write(&dist_frame, &a, ATTR_LOW(attr), 4, value);
	case VGIC_GRP_REDIST_REGS:
		a.vcpu = vcpu;
		return frame_user_write(&redist_frame, &a, ATTR_LOW(attr), 4, value);
	case VGIC_GRP_CPU_SYSREGS:
		return cpuif_user_write(vcpu, ATTR_SYSREG(attr), value);
	case VGIC_GRP_LEVEL_INFO:
		err = check_level_attr(attr);
		if (!err)
			set_levels(vcpu, ATTR_LEVEL_INTID(attr), value);
		return err;
	default:
		return -ENXIO;
	}
}

static int has_ctrl(uint64_t attr)
{
	return attr == VGIC_CTRL_INIT || attr == VGIC_CTRL_SAVE_PENDING_TABLES ? 0 : -ENXIO;
}

static int has_address(uint64_t type)
{
	return type == VGIC_ADDR_DIST || type == VGIC_ADDR_REDIST || type == VGIC_ADDR_REDIST_REGION ? 0 : -ENXIO;
}

int vgic_attr_has(struct vgic *vgic, uint32_t group, uint64_t attr)
{
	struct frame_access a = { .vgic = vgic };

	if (!vgic)
		return -EINVAL;
	/* As in KVM, LEVEL_INFO is there whatever vCPU and INTID are. */
	if (group == VGIC_GRP_REDIST_REGS || group == VGIC_GRP_CPU_SYSREGS) {
		a.vcpu = named_vcpu(vgic, attr);
		if (!a.vcpu)
			return -EINVAL;
	}
	switch (group) {
	case VGIC_GRP_ADDR:
		return has_address(attr);
	case VGIC_GRP_NR_IRQS:
		return 0;
	case VGIC_GRP_CTRL:
		return has_ctrl(attr);
	case VGIC_GRP_DIST_REGS:
		return frame_user_has(&dist_frame, &a, ATTR_LOW(attr), 4);
	case VGIC_GRP_REDIST_REGS:
		return frame_user_has(&redist_frame, &a, ATTR_LOW(attr), 4);
	case VGIC_GRP_CPU_SYSREGS:
		return cpuif_user_has(ATTR_SYSREG(attr));
	case VGIC_GRP_LEVEL_INFO:
		return ATTR_LEVEL_INFO(attr) == 0 ? 0 : -ENXIO;
	default:
		return -ENXIO;
	}
}

/* ---- Attributes of an ITS --------------------------------------------------------------------- */

static uint64_t its_address(const struct vgic_its *its)
{
	return its->has_base ? its->base : VGIC_ADDR_UNDEFINED;
}

/* 64-bit registers are accessed in one piece; the attribute has the width of the register. */
static int its_register_width(const struct vgic_its *its, uint64_t offset, unsigned *width)
{
	const struct frame_access a = { .vgic = its->vgic };
	const bool is_32_bits = offset < GITS_TYPER || offset >= GITS_ID_REGISTERS;

	*width = is_32_bits ? 4 : 8;
	if (offset % *width != 0)
		return -EINVAL;
	/* The doorbell's page holds no state. */
	if (offset >= VGIC_ITS_FRAME_SIZE / 2)
		return -ENXIO;
	return frame_user_has(&its_frame, &a, (uint32_t)offset, *width);
}

static int its_access_register(struct vgic_its *its, uint64_t offset, bool is_set, uint64_t *value)
{
	struct frame_access a = { .vgic = its->vgic, .its = its };
	unsigned width;
	const int err = its_register_width(its, offset, &width);

	if (err)
		return err;
	config_lock(its->vgic);
	its_settle(its);
	config_unlock(its->vgic);
	return is_set ? frame_user_write(&its_frame, &a, (uint32_t)offset, width, *value) :
			frame_user_read(&its_frame, &a, (uint32_t)offset, width, value);
}

static int its_get_attr(struct vgic_its *its, uint32_t group, uint64_t attr, uint64_t *value)
{
	switch (group) {
	case VGIC_GRP_ADDR:
		if (attr != VGIC_ADDR_ITS)
			return -ENODEV;
		*value = its_address(its);
		return 0;
	case VGIC_GRP_ITS_REGS:
		return its_access_register(its, attr, false, value);
	default:
		return -ENXIO;
	}
}

static int its_control(struct vgic_its *its, uint64_t attr)
{
	int err = 0;

	config_lock(its->vgic);
	switch (attr) {
	case VGIC_CTRL_INIT:
		break;
	case VGIC_CTRL_ITS_SAVE_TABLES:
		err = its_save_tables(its);
		break;
	case VGIC_CTRL_ITS_RESTORE_TABLES:
		err = its_restore_tables(its);
		break;
	case VGIC_CTRL_ITS_RESET:
		its_reset(its);
		break;
	default:
		err = -ENXIO;
	}
	config_unlock(its->vgic);
	return err;
}

static int its_set_attr(struct vgic_its *its, uint32_t group, uint64_t attr, uint64_t value)
{
	switch (group) {
	case VGIC_GRP_ADDR:
		if (attr != VGIC_ADDR_ITS)
			return -ENODEV;
		return value == its_address(its) ? 0 : -EEXIST;
	case VGIC_GRP_CTRL:
		return its_control(its, attr);
	case VGIC_GRP_ITS_REGS:
		return its_access_register(its, attr, true, &value);
	default:
		return -ENXIO;
	}
}

static int its_has_ctrl(uint64_t attr)
{
	return attr <= VGIC_CTRL_ITS_RESTORE_TABLES || attr == VGIC_CTRL_ITS_RESET ? 0 : -ENXIO;
}

int vgic_its_attr_has(struct vgic_its *its, uint32_t group, uint64_t attr)
{
	unsigned width;

	if (!its)
		return -EINVAL;
	switch (group) {
	case VGIC_GRP_ADDR:
		return attr == VGIC_ADDR_ITS ? 0 : -ENXIO;
	case VGIC_GRP_CTRL:
		return its_has_ctrl(attr);
	case VGIC_GRP_ITS_REGS:
		return its_register_width(its, attr, &width);
	default:
		return -ENXIO;
	}
}

/* ---- One and many --------------------------------------------------------------------------- */

/* A controller or an ITS, as get_attr() and its relatives take them. */
struct device {
	struct vgic *vgic;
	struct vgic_its *its; /* or NULL */
};

static int get_one(const struct device *d, struct vgic_attr *attr)
{
	return d->its ? its_get_attr(d->its, attr->group, attr->attr, &attr->value) :
			get_attr(d->vgic, attr->group, attr->attr, &attr->value);
}

static int set_one(const struct device *d, struct vgic_attr *attr)
{
	return d->its ? its_set_attr(d->its, attr->group, attr->attr, attr->value) :
			set_attr(d->vgic, attr->group, attr->attr, attr->value);
}

static int access_many(const struct device *d, int (*access)(const struct device *d, struct vgic_attr *attr),
		       struct vgic_attr *attrs, size_t num, size_t *done)
{
	size_t i = 0;
	int err = -EINVAL;

	if (d->vgic && (attrs || !num))
		err = state_check_stopped(d->vgic);
	while (!err && i < num) {
		err = access(d, &attrs[i]);
		i += !err;
	}
	if (done)
		*done = i;
	return err;
}

static int get_single(const struct device *d, uint32_t group, uint64_t attr, uint64_t *value)
{
	struct vgic_attr one = { .group = group, .attr = attr };
	int err;

	if (!value)
		return -EINVAL;
	one.value = *value;
	err = access_many(d, get_one, &one, 1, NULL);
	if (!err)
		*value = one.value;
	return err;
}

static int set_single(const struct device *d, uint32_t group, uint64_t attr, uint64_t value)
{
	struct vgic_attr one = { .group = group, .attr = attr, .value = value };

	return access_many(d, set_one, &one, 1, NULL);
}

static struct device vgic_device(struct vgic *vgic)
{
	return (struct device){ .vgic = vgic };
}

static struct device its_device_of(struct vgic_its *its)
{
	return (struct device){ .vgic = its ? its->vgic : NULL, .its = its };
}

int vgic_attr_get(struct vgic *vgic, uint32_t group, uint64_t attr, uint64_t *value)
{
	const struct device d = vgic_device(vgic);

	return get_single(&d, group, attr, value);
}

int vgic_attr_set(struct vgic *vgic, uint32_t group, uint64_t attr, uint64_t value)
{
	const struct device d = vgic_device(vgic);

	return set_single(&d, group, attr, value);
}

int vgic_attr_get_many(struct vgic *vgic, struct vgic_attr *attrs, size_t num, size_t *done)
{
	const struct device d = vgic_device(vgic);

	return access_many(&d, get_one, attrs, num, done);
}

/* set_one() writes nothing into what it is given. */
int vgic_attr_set_many(struct vgic *vgic, const struct vgic_attr *attrs, size_t num, size_t *done)
{
	const struct device d = vgic_device(vgic);

	return access_many(&d, set_one, (struct vgic_attr *)attrs, num, done);
}

int vgic_its_attr_get(struct vgic_its *its, uint32_t group, uint64_t attr, uint64_t *value)
{
	const struct device d = its_device_of(its);

	return get_single(&d, group, attr, value);
}

int vgic_its_attr_set(struct vgic_its *its, uint32_t group, uint64_t attr, uint64_t value)
{
	const struct device d = its_device_of(its);

	return set_single(&d, group, attr, value);
}

int vgic_its_attr_get_many(struct vgic_its *its, struct vgic_attr *attrs, size_t num, size_t *done)
{
	const struct device d = its_device_of(its);

	return access_many(&d, get_one, attrs, num, done);
}

int vgic_its_attr_set_many(struct vgic_its *its, const struct vgic_attr *attrs, size_t num, size_t *done)
{
	const struct device d = its_device_of(its);

	return access_many(&d, set_one, (struct vgic_attr *)attrs, num, done);
}
