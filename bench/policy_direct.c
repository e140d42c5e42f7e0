/* SPDX-License-Identifier: MIT */
/*
 * policy_direct.c - the policy `direct`: libvgic, through its public API only.
 *
 * Commands go the guest's way: into a queue in the guest's memory, announced by a
 * register. Whether one was wrong is told by the ITS's statistics.
 */
#include <errno.h>
#include <stdlib.h>

#include "guest_its.h"
#include "policy.h"

#define RAM_BASE       UINT64_C(0x40000000)
#define RAM_OF_VCPU    UINT64_C(0x10000)  /* its pending table */
#define RAM_OTHER      UINT64_C(0x400000) /* device table, collection table, queue, configuration table, ITTs */
#define DEVICE_ID_BITS 16u
#define MAX_DEVICES    65536u

struct direct {
	struct policy policy;
	struct vgic_its *its;
	struct vgic_vcpu **vcpus;
	struct vgic *vgic;
	struct guest_ram ram;
	struct guest_gic gic;
	struct guest_its guest_its;
	uint64_t itt; /* of all devices: libvgic has their entries in memory of its own, and saves them only when asked */
	void (*kick)(void *opaque, uint32_t vcpu);
	void *opaque;
};

static struct direct *direct_of(struct policy *policy)
{
	return (struct direct *)policy;
}

/* ---- Callbacks ---- */

static void direct_kick(void *opaque, struct vgic_vcpu *vcpu)
{
	const struct direct *d = opaque;

	if (d->kick)
		d->kick(d->opaque, vgic_vcpu_index(vcpu));
}

static int direct_guest_read(void *opaque, uint64_t address, void *buffer, size_t size)
{
	return guest_ram_read(&((struct direct *)opaque)->ram, address, buffer, size);
}

static int direct_guest_write(void *opaque, uint64_t address, const void *buffer, size_t size)
{
	return guest_ram_write(&((struct direct *)opaque)->ram, address, buffer, size);
}

/* ---- Life cycle ---- */

static void direct_destroy(struct policy *policy)
{
	struct direct *d = direct_of(policy);

	vgic_destroy(d->vgic);
	guest_gic_free(&d->gic);
	guest_ram_free(&d->ram);
	free(d->vcpus);
	free(d);
}

/* Processor_Numbers run backwards: nothing here may take one for an index. */
static int create_vgic(struct direct *d, uint32_t num_vcpus)
{
	const struct vgic_its_config its = { .has_base = true,
					     .base = POLICY_DIRECT_DOORBELL - VGIC_ITS_DOORBELL,
					     .max_devices = MAX_DEVICES,
					     .max_translations = POLICY_NUM_LPIS };
	struct vgic_vcpu_config *vcpus = calloc(num_vcpus, sizeof(*vcpus));
	struct vgic_config config;
	int error;

	if (!vcpus)
		return -ENOMEM;
	for (uint32_t i = 0; i < num_vcpus; i++) {
		vcpus[i].id = num_vcpus - 1 - i;
		vcpus[i].affinity = (uint64_t)(i >> 4) << 8 | (i & 15);
	}
	vgic_config_init(&config, VGIC_PROFILE_NATIVE);
	config.features |= VGIC_FEATURE_LPIS;
	config.num_vcpus = num_vcpus;
	config.vcpus = vcpus;
	config.num_itses = 1;
	config.itses = &its;
	config.ops.kick = direct_kick;
	config.ops.guest_read = direct_guest_read;
	config.ops.guest_write = direct_guest_write;
	config.opaque = d;
	error = vgic_create(&config, &d->vgic);
	free(vcpus);
	return error;
}

static int boot(struct direct *d, uint32_t num_vcpus)
{
	int error = create_vgic(d, num_vcpus);

	if (error)
		return error;
	d->its = vgic_its_by_index(d->vgic, 0);
	d->vcpus = calloc(num_vcpus, sizeof(struct vgic_vcpu *));
	if (!d->vcpus)
		return -ENOMEM;
	for (uint32_t i = 0; i < num_vcpus; i++)
		d->vcpus[i] = vgic_vcpu_by_index(d->vgic, i);
	error = guest_ram_init(&d->ram, RAM_BASE, RAM_OTHER + num_vcpus * RAM_OF_VCPU);
	if (!error)
		error = guest_gic_boot(&d->gic, d->vgic, &d->ram, POLICY_DEFAULT_PROPERTY);
	if (!error)
		error = guest_its_boot(&d->guest_its, d->its, &d->ram, DEVICE_ID_BITS);
	if (error)
		return error;
	d->itt = guest_its_alloc_itt(&d->guest_its, 16);
	return d->itt ? 0 : -ENOMEM;
}

static struct policy *direct_create(const struct policy_config *config)
{
	struct direct *d;

	if (config->num_vcpus == 0 || config->num_vcpus > POLICY_MAX_VCPUS)
		return NULL;
	d = calloc(1, sizeof(*d));
	if (!d)
		return NULL;
	d->policy.ops = &policy_direct;
	d->kick = config->kick;
	d->opaque = config->opaque;
	if (boot(d, config->num_vcpus)) {
		direct_destroy(&d->policy);
		return NULL;
	}
	return &d->policy;
}

/* ---- Commands ---- */

static uint32_t rdbase(const struct direct *d, uint32_t vcpu)
{
	return guest_gic_processor_number(d->vcpus[vcpu]);
}

static int send(struct direct *d, const struct policy_command *c)
{
	struct guest_its *g = &d->guest_its;

	switch (c->opcode) {
	case POLICY_MAPD:
		return guest_its_mapd(g, c->devid, c->event_bits, d->itt);
	case POLICY_UNMAPD:
		return guest_its_unmapd(g, c->devid);
	case POLICY_MAPC:
		return guest_its_mapc(g, c->icid, rdbase(d, c->vcpu));
	case POLICY_UNMAPC:
		return guest_its_unmapc(g, c->icid);
	case POLICY_MAPTI:
		return guest_its_mapti(g, c->devid, c->eventid, c->intid, c->icid);
	case POLICY_DISCARD:
		return guest_its_discard(g, c->devid, c->eventid);
	case POLICY_MOVI:
		return guest_its_movi(g, c->devid, c->eventid, c->icid);
	case POLICY_MOVALL:
		return guest_its_movall(g, rdbase(d, c->vcpu), rdbase(d, c->to_vcpu));
	case POLICY_INT:
		return guest_its_int(g, c->devid, c->eventid);
	case POLICY_CLEAR:
		return guest_its_clear(g, c->devid, c->eventid);
	case POLICY_INV:
		return guest_its_inv(g, c->devid, c->eventid);
	case POLICY_INVALL:
		return guest_its_invall(g, c->icid);
	case POLICY_CONFIGURE:
		return guest_gic_configure_lpi(&d->gic, c->intid, c->property);
	case POLICY_ENABLE:
	case POLICY_DISABLE:
		return guest_its_enable(g, c->opcode == POLICY_ENABLE);
	case POLICY_NUM_OPCODES:
		break;
	}
	return -EINVAL;
}

static uint64_t num_errors(const struct direct *d)
{
	struct vgic_its_stats stats = { .size = sizeof(stats) };
	uint64_t num = 0;

	vgic_its_get_stats(d->its, &stats);
	for (unsigned i = 0; i < VGIC_NUM_ITS_ERRORS; i++)
		num += stats.errors[i];
	return num;
}

static int direct_command(struct policy *policy, const struct policy_command *command)
{
	struct direct *d = direct_of(policy);
	const uint64_t errors = num_errors(d);
	const int error = send(d, command);

	if (error)
		return error;
	return num_errors(d) == errors ? 0 : -EINVAL;
}

struct vgic *policy_direct_vgic(struct policy *policy)
{
	return direct_of(policy)->vgic;
}

struct guest_its *policy_direct_guest_its(struct policy *policy)
{
	return &direct_of(policy)->guest_its;
}

/* ---- Interrupts ---- */

static int direct_inject(struct policy *policy, uint32_t devid, uint32_t eventid)
{
	return vgic_its_signal(direct_of(policy)->its, devid, eventid);
}

static uint32_t direct_acknowledge(struct policy *policy, uint32_t vcpu)
{
	uint64_t intid = 0;

	return vgic_icc_read(direct_of(policy)->vcpus[vcpu], VGIC_ICC_IAR1_EL1, &intid) ? UINT32_MAX : (uint32_t)intid;
}

static void direct_end(struct policy *policy, uint32_t vcpu, uint32_t intid)
{
	vgic_icc_write(direct_of(policy)->vcpus[vcpu], VGIC_ICC_EOIR1_EL1, intid);
}

static bool direct_is_up(struct policy *policy, uint32_t vcpu)
{
	return vgic_poll_lines(direct_of(policy)->vcpus[vcpu]) & VGIC_LINE_IRQ;
}

static bool direct_prepare_wait(struct policy *policy, uint32_t vcpu)
{
	return vgic_prepare_wait(direct_of(policy)->vcpus[vcpu]) & VGIC_LINE_IRQ;
}

static void direct_finish_wait(struct policy *policy, uint32_t vcpu)
{
	vgic_finish_wait(direct_of(policy)->vcpus[vcpu]);
}

/* There is no cache to miss, no entry to evict or to invalidate, and no lock on the way of an interrupt. */
static void direct_get_stats(struct policy *policy, struct policy_stats *stats)
{
	(void)policy;
	*stats = (struct policy_stats){ 0 };
}

const struct policy_ops policy_direct = {
	.name = "direct",
	.what = "libvgic: the translation itself is read without a lock",
	.create = direct_create,
	.destroy = direct_destroy,
	.command = direct_command,
	.inject = direct_inject,
	.try_inject = direct_inject,
	.acknowledge = direct_acknowledge,
	.end = direct_end,
	.is_up = direct_is_up,
	.prepare_wait = direct_prepare_wait,
	.finish_wait = direct_finish_wait,
	.get_stats = direct_get_stats,
};
