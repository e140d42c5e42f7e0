/* SPDX-License-Identifier: MIT */
/* The machine's use of libvgic: creation, register accesses, lines, and the callbacks. */
#include "gic.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <vgic/msix.h>
#include <vgic/vgic.h>

#include "cpu.h"
#include "machine.h"
#include "trace.h"
#include "util.h"

#define NUM_GSIS 4096u /* more than enough for the vectors of as many disks as there can be */

/* ---- Callbacks -------------------------------------------------------------------- */

/*
 * A kick by a device's thread. @running is read after @kicked is set, and the vCPUs' thread sets @running before it
 * clears @kicked and enters the guest: either it is seen here, or that entry sees the interrupt. In the same way
 * @sleeping is set before the last look at @kicked: see idle_in_real_time().
 */
static void kick_from_outside(struct machine *machine, struct vcpu *vcpu)
{
	static const uint64_t one = 1;
	struct vcpu *running;

	vcpu->kicked = true;
	running = machine->running;
	if (running)
		cpu_kick(running->cpu);
	if (machine->sleeping && write(machine->wake_fd, &one, sizeof(one)) < 0)
		return; /* its counter is full: the thread is being woken */
}

/*
 * A kick by the thread that runs the vCPUs comes from a call that it made, perhaps in the middle of a run. The running
 * vCPU looks at its lines before its next block; another is given its turn soon, because the running one may wait for it.
 */
static void on_kick(void *opaque, struct vgic_vcpu *gic)
{
	struct machine *machine = opaque;
	struct vcpu *vcpu = vgic_vcpu_user(gic);

	if (!pthread_equal(pthread_self(), machine->thread)) {
		kick_from_outside(machine, vcpu);
		return;
	}
	if (vcpu->power == VCPU_OFF)
		return;
	vcpu->kicked = true;
	if (vcpu == machine->running)
		cpu_recheck_lines(vcpu->cpu);
	else if (machine->running && vcpu->power == VCPU_WAITING)
		cpu_stop(machine->running->cpu);
}

/*
 * The guest's tables. Calls that read or write them come from the thread that runs the vCPUs, and a device that writes
 * there meanwhile is the guest's own mistake: an aligned memcpy() of 8 bytes is as good as one access.
 */
static int on_guest_read(void *opaque, uint64_t address, void *buffer, size_t size)
{
	const struct machine *machine = opaque;

	if (!machine_is_ram(machine, address, size))
		return -EFAULT;
	memcpy(buffer, machine_ram(machine, address), size);
	return 0;
}

static int on_guest_write(void *opaque, uint64_t address, const void *buffer, size_t size)
{
	const struct machine *machine = opaque;

	if (!machine_is_ram(machine, address, size))
		return -EFAULT;
	memcpy(machine_ram(machine, address), buffer, size);
	return 0;
}

/* The run loop goes on with it between two runs: see gic_run_work(). */
static void on_work_pending(void *opaque)
{
	struct machine *machine = opaque;

	machine->gic_has_work = true;
	if (machine->running)
		cpu_stop(machine->running->cpu);
}

static void on_guest_error(void *opaque, const struct vgic_guest_error *error)
{
	struct machine *machine = opaque;

	trace_event(machine->trace, machine, machine->running,
		    "guest error: %s: %s, 0x%llx value 0x%llx, %llu unreported", vgic_guest_error_name(error->kind),
		    error->what, (unsigned long long)error->address, (unsigned long long)error->value,
		    (unsigned long long)error->unreported);
}

/* ---- Creation --------------------------------------------------------------------- */

int gic_create(struct machine *machine)
{
	const uint32_t first = machine->num_vcpus < GICR_MAX_FRAMES ? machine->num_vcpus : GICR_MAX_FRAMES;
	const struct vgic_redist_region regions[] = {
		{ .base = GICR_BASE, .num_frames = first },
		{ .base = GICR_HIGH_BASE, .num_frames = machine->num_vcpus - first },
	};
	const struct vgic_its_config its = { .has_base = true, .base = ITS_BASE };
	struct vgic_vcpu_config *vcpus = calloc(machine->num_vcpus, sizeof(*vcpus));
	struct vgic_config config;
	int ret = -ENOMEM;

	vgic_config_init(&config, VGIC_PROFILE_NATIVE);
	config.num_vcpus = machine->num_vcpus;
	config.vcpus = vcpus;
	config.has_dist_base = true;
	config.dist_base = GICD_BASE;
	config.num_redist_regions = machine->num_vcpus > first ? 2 : 1;
	config.redist_regions = regions;
	config.features |= VGIC_FEATURE_LPIS;
	config.num_itses = 1;
	config.itses = &its;
	config.ops.kick = on_kick;
	config.ops.guest_read = on_guest_read;
	config.ops.guest_write = on_guest_write;
	config.ops.work_pending = on_work_pending;
	config.ops.guest_error = on_guest_error;
	config.opaque = machine;
	if (vcpus) {
		for (unsigned i = 0; i < machine->num_vcpus; i++) {
			vcpus[i].id = machine->options->vcpu_ids[i];
			vcpus[i].affinity = machine->vcpus[i].affinity;
			vcpus[i].user = &machine->vcpus[i];
		}
		ret = vgic_create(&config, &machine->vgic);
		free(vcpus);
	}
	if (ret) {
		message("cannot create the interrupt controller: %s", strerror(-ret));
		return ret;
	}
	for (unsigned i = 0; i < machine->num_vcpus; i++)
		machine->vcpus[i].gic = vgic_vcpu_by_index(machine->vgic, i);
	return 0;
}

/* Signals are for the thread that runs the vCPUs: they end its wait for input. */
static int create_irqfds(struct machine *machine)
{
	struct vgic_irqfds_config config;
	sigset_t all;
	sigset_t before;
	int ret;

	vgic_irqfds_config_init(&config);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	ret = vgic_irqfds_create(machine->routes, &config, &machine->irqfds);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return ret;
}

int gic_create_routes(struct machine *machine)
{
	int ret = vgic_routes_create(machine->vgic, NUM_GSIS, &machine->routes);

	if (!ret && !machine->virtual_time)
		ret = create_irqfds(machine);
	if (ret)
		message("cannot create the routes of interrupts: %s", strerror(-ret));
	return ret;
}

void gic_destroy_routes(struct machine *machine)
{
	vgic_irqfds_destroy(machine->irqfds);
	vgic_routes_destroy(machine->routes);
	machine->irqfds = NULL;
	machine->routes = NULL;
}

/* ---- Register accesses ---------------------------------------------------------------- */

/* Unicorn makes no access that the controller refuses, so the results below are not looked at. */

static uint64_t dist_read(void *owner, uint64_t offset, unsigned width)
{
	struct vcpu *vcpu = owner;
	uint64_t value = 0;

	vgic_mmio_read(vcpu->machine->vgic, GICD_BASE + offset, width, &value);
	trace_dist(vcpu->machine->trace, vcpu, false, (uint32_t)offset, width, value);
	return value;
}

static void dist_write(void *owner, uint64_t offset, unsigned width, uint64_t value)
{
	struct vcpu *vcpu = owner;

	trace_dist(vcpu->machine->trace, vcpu, true, (uint32_t)offset, width, value);
	vgic_mmio_write(vcpu->machine->vgic, GICD_BASE + offset, width, value);
}

/* @offset is relative to the start of the region whose first frame belongs to vCPU @first. */
static uint64_t redist_read(struct vcpu *vcpu, uint64_t base, unsigned first, uint64_t offset, unsigned width)
{
	uint64_t value = 0;

	vgic_mmio_read(vcpu->machine->vgic, base + offset, width, &value);
	trace_redist(vcpu->machine->trace, vcpu, first + (unsigned)(offset / VGIC_REDIST_FRAME_SIZE), false,
		     (uint32_t)(offset % VGIC_REDIST_FRAME_SIZE), width, value);
	return value;
}

static void redist_write(struct vcpu *vcpu, uint64_t base, unsigned first, uint64_t offset, unsigned width,
			 uint64_t value)
{
	trace_redist(vcpu->machine->trace, vcpu, first + (unsigned)(offset / VGIC_REDIST_FRAME_SIZE), true,
		     (uint32_t)(offset % VGIC_REDIST_FRAME_SIZE), width, value);
	vgic_mmio_write(vcpu->machine->vgic, base + offset, width, value);
}

static uint64_t redist_low_read(void *owner, uint64_t offset, unsigned width)
{
	return redist_read(owner, GICR_BASE, 0, offset, width);
}

static void redist_low_write(void *owner, uint64_t offset, unsigned width, uint64_t value)
{
	redist_write(owner, GICR_BASE, 0, offset, width, value);
}

static uint64_t redist_high_read(void *owner, uint64_t offset, unsigned width)
{
	return redist_read(owner, GICR_HIGH_BASE, GICR_MAX_FRAMES, offset, width);
}

static void redist_high_write(void *owner, uint64_t offset, unsigned width, uint64_t value)
{
	redist_write(owner, GICR_HIGH_BASE, GICR_MAX_FRAMES, offset, width, value);
}

static uint64_t its_read(void *owner, uint64_t offset, unsigned width)
{
	struct vcpu *vcpu = owner;
	uint64_t value = 0;

	vgic_mmio_read(vcpu->machine->vgic, ITS_BASE + offset, width, &value);
	trace_its(vcpu->machine->trace, vcpu, false, (uint32_t)offset, width, value);
	return value;
}

static void its_write(void *owner, uint64_t offset, unsigned width, uint64_t value)
{
	struct vcpu *vcpu = owner;

	trace_its(vcpu->machine->trace, vcpu, true, (uint32_t)offset, width, value);
	vgic_mmio_write(vcpu->machine->vgic, ITS_BASE + offset, width, value);
}

int gic_map(struct vcpu *vcpu)
{
	const uint64_t num = vcpu->machine->num_vcpus;
	const uint64_t first = num < GICR_MAX_FRAMES ? num : GICR_MAX_FRAMES;
	int ret;

	ret = cpu_map_mmio(vcpu->cpu, GICD_BASE, VGIC_DIST_FRAME_SIZE, dist_read, dist_write, vcpu);
	if (ret)
		return ret;
	ret = cpu_map_mmio(vcpu->cpu, ITS_BASE, VGIC_ITS_FRAME_SIZE, its_read, its_write, vcpu);
	if (ret)
		return ret;
	ret = cpu_map_mmio(vcpu->cpu, GICR_BASE, first * VGIC_REDIST_FRAME_SIZE, redist_low_read, redist_low_write,
			   vcpu);
	if (ret || num == first)
		return ret;
	return cpu_map_mmio(vcpu->cpu, GICR_HIGH_BASE, (num - first) * VGIC_REDIST_FRAME_SIZE, redist_high_read,
			    redist_high_write, vcpu);
}

/* All of the GIC's system registers at EL1, known to libvgic or not: it says which there are. */
bool gic_has_register(uint32_t reg)
{
	const uint32_t crn_crm = reg & VGIC_SYSREG(3, 7, 15, 15, 0);

	return reg == VGIC_ICC_PMR_EL1 ||
	       (crn_crm >= VGIC_SYSREG(3, 0, 12, 8, 0) && crn_crm <= VGIC_SYSREG(3, 0, 12, 12, 0));
}

/* An access changes what this vCPU may be signalled, and its own lines without a kick. */
int gic_icc_read(struct vcpu *vcpu, uint32_t reg, uint64_t *value)
{
	const int ret = vgic_icc_read(vcpu->gic, reg, value);

	cpu_recheck_lines(vcpu->cpu);
	trace_icc(vcpu->machine->trace, vcpu, false, reg, *value, ret);
	return ret;
}

int gic_icc_write(struct vcpu *vcpu, uint32_t reg, uint64_t value)
{
	const int ret = vgic_icc_write(vcpu->gic, reg, value);

	cpu_recheck_lines(vcpu->cpu);
	trace_icc(vcpu->machine->trace, vcpu, true, reg, value, ret);
	return ret;
}

bool gic_run_work(struct machine *machine)
{
	const bool had_work = machine->gic_has_work;

	if (had_work)
		machine->gic_has_work = vgic_run_work(machine->vgic) > 0;
	return had_work;
}

/* ---- Lines and messages ------------------------------------------------------------------------------ */

void gic_set_spi(struct machine *machine, uint32_t intid, unsigned source, bool level)
{
	trace_event(machine->trace, machine, NULL, "spi %u source %u level %d", intid, source, level);
	vgic_set_spi(machine->vgic, intid, source, level);
}

void gic_pulse_spi(struct machine *machine, uint32_t intid)
{
	trace_event(machine->trace, machine, NULL, "spi %u pulse", intid);
	vgic_pulse_spi(machine->vgic, intid);
}

void gic_set_ppi(struct vcpu *vcpu, uint32_t intid, unsigned source, bool level)
{
	trace_event(vcpu->machine->trace, vcpu->machine, vcpu, "ppi %u source %u level %d", intid, source, level);
	vgic_set_ppi(vcpu->gic, intid, source, level);
}

void gic_signal_msi(struct machine *machine, uint32_t devid, uint32_t eventid)
{
	trace_event(machine->trace, machine, NULL, "msi device 0x%x event %u", devid, eventid);
	vgic_its_signal(vgic_its_by_index(machine->vgic, 0), devid, eventid);
}

int gic_signal_msix(struct machine *machine, struct vgic_msix *msix, uint32_t devid, unsigned vector)
{
	trace_event(machine->trace, machine, NULL, "msi-x device 0x%x vector %u", devid, vector);
	return vgic_msix_signal(msix, vector);
}
