/* SPDX-License-Identifier: MIT */
/*
 * target_vgic.c - libvgic as a target, and the program oracle-vgic.
 *
 * The profile is the one of KVM. One thread; work that an access leaves is done at
 * once, because KVM does it within the access.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <vgic/state.h>

#include "run.h"
#include "target.h"

const char target_name[] = "libvgic";

struct target {
	uint8_t *ram;
	struct vgic *vgic;
	struct machine_description description;
};

/* ---- Guest memory --------------------------------------------------------------------------- */

static uint8_t *ram_at(struct target *t, uint64_t address, size_t size)
{
	if (address < RAM_BASE || address - RAM_BASE > RAM_SIZE - size)
		return NULL;
	return t->ram + (address - RAM_BASE);
}

static int on_guest_read(void *opaque, uint64_t address, void *buffer, size_t size)
{
	const uint8_t *bytes = ram_at(opaque, address, size);

	if (!bytes)
		return -EFAULT;
	memcpy(buffer, bytes, size);
	return 0;
}

static int on_guest_write(void *opaque, uint64_t address, const void *buffer, size_t size)
{
	uint8_t *bytes = ram_at(opaque, address, size);

	if (!bytes)
		return -EFAULT;
	memcpy(bytes, buffer, size);
	return 0;
}

uint8_t *target_ram(struct target *t)
{
	return t->ram;
}

/* ---- Life ------------------------------------------------------------------------------------- */

static int create_vgic(struct target *t, const struct machine_description *d)
{
	struct vgic_vcpu_config vcpus[MAX_VCPUS] = { 0 };
	struct vgic_its_config itses[MAX_ITSES] = { 0 };
	const struct vgic_redist_region region = { .base = GICR_BASE, .num_frames = d->num_vcpus };
	struct vgic_config config;

	vgic_config_init(&config, VGIC_PROFILE_KVM);
	for (uint32_t i = 0; i < d->num_vcpus; i++)
		vcpus[i] = (struct vgic_vcpu_config){ .id = d->ids[i], .affinity = target_affinity(d->ids[i]) };
	for (uint32_t i = 0; i < d->num_itses; i++)
		itses[i] = (struct vgic_its_config){ .has_base = true, .base = GITS_BASE(i) };
	config.num_vcpus = d->num_vcpus;
	config.vcpus = vcpus;
	config.num_spis = d->num_spis;
	config.kvm_revision = d->revision;
	/* As in KVM: LPIs come with an ITS. */
	config.features |= d->num_itses ? VGIC_FEATURE_LPIS : 0;
	/* As in the processor that KVM runs on there. */
	config.features |= VGIC_FEATURE_ICC_A3V | VGIC_FEATURE_ICC_ID24;
	config.num_itses = d->num_itses;
	config.itses = itses;
	config.has_dist_base = true;
	config.dist_base = GICD_BASE;
	config.num_redist_regions = 1;
	config.redist_regions = &region;
	config.ops.guest_read = on_guest_read;
	config.ops.guest_write = on_guest_write;
	config.opaque = t;
	return vgic_create(&config, &t->vgic);
}

struct target *target_new(const struct machine_description *description, char why[RESULT_TEXT])
{
	struct target *t = calloc(1, sizeof(*t));
	int err = -ENOMEM;

	if (!t)
		return NULL;
	t->description = *description;
	t->ram = mmap(NULL, RAM_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (t->ram == MAP_FAILED)
		t->ram = NULL;
	else
		err = create_vgic(t, description);
	if (err == 0)
		return t;
	snprintf(why, RESULT_TEXT, "vgic_create: %s", strerror(-err));
	target_free(t);
	return NULL;
}

void target_free(struct target *t)
{
	vgic_destroy(t->vgic);
	if (t->ram)
		munmap(t->ram, RAM_SIZE);
	free(t);
}

static void finish_work(struct target *t)
{
	while (vgic_run_work(t->vgic) > 0)
		;
}

/* ---- vCPUs ---------------------------------------------------------------------------------------- */

static int access_sysreg(struct vgic_vcpu *vcpu, const struct guest_request *q, uint64_t *value)
{
	const uint32_t reg = sysregs[q->address].encoding;

	return q->op == GUEST_MRS ? vgic_icc_read(vcpu, reg, value) : vgic_icc_write(vcpu, reg, q->value);
}

static int access_many(struct target *t, const struct guest_request *q)
{
	int err = 0;

	for (uint32_t i = 0; err == 0 && i < q->count; i++) {
		uint64_t value = 0;

		if (q->op == GUEST_FLOOD)
			err = vgic_mmio_write(t->vgic, q->address + 4 * i, 4, q->value);
		else
			err = vgic_mmio_read(t->vgic, q->address + 4 * i, 4, &value);
		if (q->op == GUEST_SWEEP)
			q->words[i] = (uint32_t)value;
		finish_work(t);
	}
	return err;
}

int target_run(struct target *t, uint32_t vcpu_index)
{
	vgic_enter_guest(vgic_vcpu_by_index(t->vgic, vcpu_index));
	return 0;
}

int target_stop(struct target *t, uint32_t vcpu_index)
{
	vgic_exit_guest(vgic_vcpu_by_index(t->vgic, vcpu_index));
	return 0;
}

struct guest_answer target_guest(struct target *t, uint32_t vcpu_index, const struct guest_request *q)
{
	struct vgic_vcpu *vcpu = vgic_vcpu_by_index(t->vgic, vcpu_index);
	struct guest_answer a = { .outcome = GUEST_OK };
	const unsigned lines = vgic_enter_guest(vcpu);
	int err = 0;

	switch (q->op) {
	case GUEST_READ:
		err = vgic_mmio_read(t->vgic, q->address, q->width, &a.value);
		break;
	case GUEST_WRITE:
		err = vgic_mmio_write(t->vgic, q->address, q->width, q->value);
		break;
	case GUEST_MRS:
	case GUEST_MSR:
		err = access_sysreg(vcpu, q, &a.value);
		break;
	case GUEST_SWEEP:
	case GUEST_FLOOD:
		err = access_many(t, q);
		break;
	case GUEST_LINES:
		a.value = (lines & VGIC_LINE_IRQ ? LINES_IRQ : 0) | (lines & VGIC_LINE_FIQ ? LINES_FIQ : 0);
		break;
	}
	vgic_exit_guest(vcpu);
	finish_work(t);
	if (err == -ENXIO)
		a.outcome = GUEST_NO_DEVICE;
	else if (err == -EACCES || err == -ENOENT)
		a.outcome = GUEST_UNDEFINED;
	else if (err != 0)
		a.outcome = GUEST_FAULT;
	if (a.outcome == GUEST_FAULT)
		snprintf(a.text, sizeof(a.text), "%s", strerror(-err));
	return a;
}

/* Interrupts move at once. */
void target_settle(struct target *t)
{
	(void)t;
}

/* ---- The host's side --------------------------------------------------------------------------------- */

int target_attr(struct target *t, struct attr_request *request)
{
	const uint32_t group = request->group;
	struct vgic_its *its = vgic_its_by_index(t->vgic, request->its);
	int err;

	if (request->device == ATTR_VGIC && request->set)
		err = vgic_attr_set(t->vgic, group, request->attr, request->value);
	else if (request->device == ATTR_VGIC)
		err = vgic_attr_get(t->vgic, group, request->attr, &request->value);
	else if (request->set)
		err = vgic_its_attr_set(its, group, request->attr, request->value);
	else
		err = vgic_its_attr_get(its, group, request->attr, &request->value);
	finish_work(t);
	return err;
}

int target_signal_msi(struct target *t, uint64_t address, uint32_t data, uint32_t devid, uint32_t flags)
{
	return vgic_signal_msi(t->vgic, address, data, devid, flags);
}

int target_set_spi(struct target *t, uint32_t intid, bool level)
{
	return vgic_set_spi(t->vgic, intid, 0, level);
}

int target_set_ppi(struct target *t, uint32_t vcpu_index, uint32_t intid, bool level)
{
	return vgic_set_ppi(vgic_vcpu_by_index(t->vgic, vcpu_index), intid, 0, level);
}

/* ---- The program ----------------------------------------------------------------------------------------- */

int main(int argc, char **argv)
{
	FILE *in = stdin;
	int status;

	if (argc > 2 || (argc == 2 && strcmp(argv[1], "--help") == 0)) {
		printf("Usage: %s [FILE]\n\nExecutes scripts on libvgic, from the file or the standard input, and prints the "
		       "result of each line.\n\"=== NAME\" begins a script. tests/oracle/README.md explains the language.\n",
		       argv[0]);
		return argc > 2 ? 2 : 0;
	}
	if (argc == 2) {
		in = fopen(argv[1], "r");
		if (!in) {
			fprintf(stderr, "%s: cannot open %s: %s\n", argv[0], argv[1], strerror(errno));
			return 2;
		}
	}
	status = run_scripts(in, stdout);
	fclose(in);
	return status == 0 ? 0 : 1;
}
