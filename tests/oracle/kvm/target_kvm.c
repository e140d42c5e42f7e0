/* SPDX-License-Identifier: MIT */
/*
 * target_kvm.c - the vGICv3 and ITS in Linux's KVM as a target.
 *
 * Each vCPU runs payload.S: it finds a request in its mailbox in guest memory,
 * executes it, and leaves by a store to an address where no device is. KVM does
 * the rest in the kernel. Only one vCPU runs at a time.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/kvm.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../target.h"

const char target_name[] = "kvm";

/* The payload is in the part of memory that scripts do not use. */
#define PAYLOAD_ADDRESS    RAM_BASE
#define MAILBOX_ADDRESS(i) (RAM_BASE + 0x10000 + UINT64_C(0x1000) * (i))
#define SWEEP_ADDRESS      (RAM_BASE + 0x20000)
#define HOLE_ADDRESS       UINT64_C(0x0a000000)

/* A vCPU that does not come back within this time hangs. */
#define RUN_SECONDS 10
#define MAX_EXITS   16

#define ESR_CLASS_SHIFT   26
#define ESR_CLASS_UNKNOWN 0u

#define ISR_IRQ (1u << 7)
#define ISR_FIQ (1u << 6)

extern const char payload_begin[], payload_end[], payload_entry[];

/* As payload.S has it. */
struct mailbox {
	uint64_t op;
	uint64_t address;
	uint64_t value;
	uint64_t result;
	uint64_t esr;
	uint64_t count;
};

struct vcpu {
	int fd;
	struct kvm_run *run;
	volatile struct mailbox *mailbox;
	bool is_behind; /* something has changed since it ran */
	bool runs;      /* in a thread of its own */
	pthread_t thread;
};

struct target {
	int kvm, vm, vgic;
	int its[MAX_ITSES];
	struct vcpu vcpus[MAX_VCPUS];
	int run_size;
	uint8_t *ram;
	struct machine_description description;
};

/* ---- Life --------------------------------------------------------------------------------------- */

/* Says which call failed. */
static bool check(long result, const char *what, char why[RESULT_TEXT])
{
	if (result >= 0)
		return true;
	snprintf(why, RESULT_TEXT, "%s: %s", what, strerror(errno));
	return false;
}

#define CHECK(call, why) check((call), #call, (why))

static int set_attr(int device, uint32_t group, uint64_t attr, const void *value)
{
	struct kvm_device_attr a = { .group = group, .attr = attr, .addr = (uintptr_t)value };

	return ioctl(device, KVM_SET_DEVICE_ATTR, &a);
}

static int set_register(int vcpu, uint64_t offset, uint64_t value)
{
	struct kvm_one_reg reg = {
		.id = KVM_REG_ARM64 | KVM_REG_SIZE_U64 | KVM_REG_ARM_CORE | offset / sizeof(uint32_t),
		.addr = (uintptr_t)&value,
	};

	return ioctl(vcpu, KVM_SET_ONE_REG, &reg);
}

#define ENTRY         (PAYLOAD_ADDRESS + (uint64_t)(payload_entry - payload_begin))
#define X_REGISTER(n) offsetof(struct kvm_regs, regs.regs[n])

static bool make_vcpu(struct target *t, uint32_t index, char why[RESULT_TEXT])
{
	struct vcpu *vcpu = &t->vcpus[index];
	struct kvm_vcpu_init init;

	vcpu->fd = ioctl(t->vm, KVM_CREATE_VCPU, t->description.ids[index]);
	if (!check(vcpu->fd, "KVM_CREATE_VCPU", why))
		return false;
	vcpu->run = mmap(NULL, (size_t)t->run_size, PROT_READ | PROT_WRITE, MAP_SHARED, vcpu->fd, 0);
	if (vcpu->run == MAP_FAILED) {
		vcpu->run = NULL;
		return check(-1, "mmap of a vCPU", why);
	}
	vcpu->mailbox = (volatile struct mailbox *)(t->ram + (MAILBOX_ADDRESS(index) - RAM_BASE));
	return CHECK(ioctl(t->vm, KVM_ARM_PREFERRED_TARGET, &init), why) &&
	       CHECK(ioctl(vcpu->fd, KVM_ARM_VCPU_INIT, &init), why) &&
	       CHECK(set_register(vcpu->fd, offsetof(struct kvm_regs, regs.pc), ENTRY), why) &&
	       CHECK(set_register(vcpu->fd, X_REGISTER(19), MAILBOX_ADDRESS(index)), why) &&
	       CHECK(set_register(vcpu->fd, X_REGISTER(20), HOLE_ADDRESS), why) &&
	       CHECK(set_register(vcpu->fd, X_REGISTER(21), SWEEP_ADDRESS), why);
}

static bool make_memory(struct target *t, char why[RESULT_TEXT])
{
	struct kvm_userspace_memory_region region = { .guest_phys_addr = RAM_BASE, .memory_size = RAM_SIZE };

	t->ram = mmap(NULL, RAM_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (t->ram == MAP_FAILED) {
		t->ram = NULL;
		return check(-1, "mmap of the memory", why);
	}
	region.userspace_addr = (uintptr_t)t->ram;
	memcpy(t->ram + (PAYLOAD_ADDRESS - RAM_BASE), payload_begin, (size_t)(payload_end - payload_begin));
	return CHECK(ioctl(t->vm, KVM_SET_USER_MEMORY_REGION, &region), why);
}

/* The revision is what the VMM writes into GICD_IIDR, and has to be chosen before anything else. */
static bool set_revision(struct target *t, char why[RESULT_TEXT])
{
	struct kvm_device_attr a = { .group = KVM_DEV_ARM_VGIC_GRP_DIST_REGS, .attr = 0x8 };
	uint32_t iidr;

	a.addr = (uintptr_t)&iidr;
	if (!CHECK(ioctl(t->vgic, KVM_GET_DEVICE_ATTR, &a), why))
		return false;
	iidr = (iidr & ~0xf000u) | t->description.revision << 12;
	return CHECK(ioctl(t->vgic, KVM_SET_DEVICE_ATTR, &a), why);
}

static bool make_vgic(struct target *t, char why[RESULT_TEXT])
{
	struct kvm_create_device create = { .type = KVM_DEV_TYPE_ARM_VGIC_V3 };
	const uint32_t num_irqs = NUM_IRQ_FIRST + t->description.num_spis;
	const uint64_t dist = GICD_BASE, redist = GICR_BASE;

	if (!CHECK(ioctl(t->vm, KVM_CREATE_DEVICE, &create), why))
		return false;
	t->vgic = (int)create.fd;
	return CHECK(set_attr(t->vgic, KVM_DEV_ARM_VGIC_GRP_NR_IRQS, 0, &num_irqs), why) &&
	       CHECK(set_attr(t->vgic, KVM_DEV_ARM_VGIC_GRP_ADDR, KVM_VGIC_V3_ADDR_TYPE_DIST, &dist), why) &&
	       CHECK(set_attr(t->vgic, KVM_DEV_ARM_VGIC_GRP_ADDR, KVM_VGIC_V3_ADDR_TYPE_REDIST, &redist), why) &&
	       CHECK(set_attr(t->vgic, KVM_DEV_ARM_VGIC_GRP_CTRL, KVM_DEV_ARM_VGIC_CTRL_INIT, NULL), why) &&
	       (t->description.revision == KVM_REVISION || set_revision(t, why));
}

static bool make_its(struct target *t, uint32_t index, char why[RESULT_TEXT])
{
	struct kvm_create_device create = { .type = KVM_DEV_TYPE_ARM_VGIC_ITS };
	const uint64_t base = GITS_BASE(index);

	if (!CHECK(ioctl(t->vm, KVM_CREATE_DEVICE, &create), why))
		return false;
	t->its[index] = (int)create.fd;
	return CHECK(set_attr(t->its[index], KVM_DEV_ARM_VGIC_GRP_ADDR, KVM_VGIC_ITS_ADDR_TYPE, &base), why) &&
	       CHECK(set_attr(t->its[index], KVM_DEV_ARM_VGIC_GRP_CTRL, KVM_DEV_ARM_VGIC_CTRL_INIT, NULL), why);
}

static bool make_machine(struct target *t, char why[RESULT_TEXT])
{
	t->kvm = open("/dev/kvm", O_RDWR | O_CLOEXEC);
	if (!check(t->kvm, "/dev/kvm", why))
		return false;
	t->run_size = ioctl(t->kvm, KVM_GET_VCPU_MMAP_SIZE, 0);
	t->vm = ioctl(t->kvm, KVM_CREATE_VM, 0);
	if (!check(t->run_size, "KVM_GET_VCPU_MMAP_SIZE", why) || !check(t->vm, "KVM_CREATE_VM", why))
		return false;
	if (!make_memory(t, why))
		return false;
	for (uint32_t i = 0; i < t->description.num_vcpus; i++) {
		if (!make_vcpu(t, i, why))
			return false;
	}
	if (!make_vgic(t, why))
		return false;
	for (uint32_t i = 0; i < t->description.num_itses; i++) {
		if (!make_its(t, i, why))
			return false;
	}
	return true;
}

struct target *target_new(const struct machine_description *description, char why[RESULT_TEXT])
{
	struct target *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->description = *description;
	t->kvm = t->vm = t->vgic = -1;
	for (uint32_t i = 0; i < MAX_ITSES; i++)
		t->its[i] = -1;
	for (uint32_t i = 0; i < MAX_VCPUS; i++)
		t->vcpus[i].fd = -1;
	if (make_machine(t, why))
		return t;
	target_free(t);
	return NULL;
}

static void close_fd(int fd)
{
	if (fd >= 0)
		close(fd);
}

void target_free(struct target *t)
{
	for (uint32_t i = 0; i < MAX_ITSES; i++)
		close_fd(t->its[i]);
	close_fd(t->vgic);
	for (uint32_t i = 0; i < MAX_VCPUS; i++) {
		if (t->vcpus[i].runs)
			target_stop(t, i);
		if (t->vcpus[i].run)
			munmap(t->vcpus[i].run, (size_t)t->run_size);
		close_fd(t->vcpus[i].fd);
	}
	close_fd(t->vm);
	close_fd(t->kvm);
	if (t->ram)
		munmap(t->ram, RAM_SIZE);
	free(t);
}

uint8_t *target_ram(struct target *t)
{
	return t->ram;
}

/* ---- vCPUs ---------------------------------------------------------------------------------------------- */

/* The number of a handler in payload_ops. */
static uint64_t handler_of(const struct guest_request *q)
{
	const uint64_t width = (uint64_t)__builtin_ctz(q->width ? q->width : 1);

	switch (q->op) {
	case GUEST_READ:
		return width;
	case GUEST_WRITE:
		return 4 + width;
	case GUEST_LINES:
		return 8;
	case GUEST_MRS:
		return 9 + 2 * q->address;
	case GUEST_MSR:
		return 10 + 2 * q->address;
	case GUEST_SWEEP:
		return 9 + 2 * NUM_SYSREGS;
	case GUEST_FLOOD:
		return 10 + 2 * NUM_SYSREGS;
	}
	return 0;
}

static struct guest_answer fault(const char *what, uint64_t value)
{
	struct guest_answer a = { .outcome = GUEST_FAULT };

	snprintf(a.text, sizeof(a.text), "%s 0x%llx", what, (unsigned long long)value);
	return a;
}

static void on_alarm(int signal)
{
	(void)signal;
}

/* Run until the payload's store to the hole. An access to where nothing is reads as zero. */
static struct guest_answer run_to_hole(struct vcpu *vcpu)
{
	struct guest_answer a = { .outcome = GUEST_OK };

	for (int exits = 0; exits < MAX_EXITS; exits++) {
		struct kvm_run *run = vcpu->run;

		if (ioctl(vcpu->fd, KVM_RUN, 0) < 0)
			return fault(errno == EINTR ? "the vCPU hangs:" : "KVM_RUN:", (uint64_t)errno);
		if (run->exit_reason != KVM_EXIT_MMIO)
			return fault("exit", run->exit_reason);
		if (run->mmio.phys_addr == HOLE_ADDRESS)
			return a;
		a.outcome = GUEST_NO_DEVICE;
		memset(run->mmio.data, 0, sizeof(run->mmio.data));
	}
	return fault("more than so many exits:", MAX_EXITS);
}

static void take_answer(struct guest_answer *a, const struct guest_request *q, const volatile struct mailbox *m)
{
	if (m->esr && m->esr >> ESR_CLASS_SHIFT == ESR_CLASS_UNKNOWN)
		a->outcome = GUEST_UNDEFINED;
	else if (m->esr)
		*a = fault("exception", m->esr);
	a->value = m->result;
	if (q->op == GUEST_LINES)
		a->value = (m->result & ISR_IRQ ? LINES_IRQ : 0) | (m->result & ISR_FIQ ? LINES_FIQ : 0);
}

static void everyone_is_behind(struct target *t)
{
	for (uint32_t i = 0; i < t->description.num_vcpus; i++)
		t->vcpus[i].is_behind = true;
}

/* May a request change which interrupts other vCPUs have? */
static bool is_change(const struct guest_request *q)
{
	if (q->op == GUEST_MSR)
		return q->address == SYSREG_SGI1R || q->address == SYSREG_ASGI1R || q->address == SYSREG_SGI0R ||
		       q->address == SYSREG_DIR;
	return q->op == GUEST_WRITE || q->op == GUEST_FLOOD;
}

struct guest_answer target_guest(struct target *t, uint32_t vcpu_index, const struct guest_request *q)
{
	struct vcpu *vcpu = &t->vcpus[vcpu_index];
	volatile struct mailbox *m = vcpu->mailbox;
	struct sigaction action = { .sa_handler = on_alarm };
	struct guest_answer a;

	if (is_change(q))
		everyone_is_behind(t);
	vcpu->is_behind = false;
	m->op = 8 * handler_of(q);
	m->address = q->address;
	m->value = q->value;
	m->count = q->count;
	sigaction(SIGALRM, &action, NULL);
	alarm(RUN_SECONDS);
	a = run_to_hole(vcpu);
	alarm(0);
	if (a.outcome == GUEST_OK)
		take_answer(&a, q, m);
	if (q->op == GUEST_SWEEP)
		memcpy(q->words, t->ram + (SWEEP_ADDRESS - RAM_BASE), q->count * sizeof(*q->words));
	return a;
}

/* ---- A vCPU that stays in the guest -------------------------------------------------------------------------- */

#define HANDLER_SPIN (11 + 2 * NUM_SYSREGS)

/* Until a signal comes. */
static void *run_vcpu(void *opaque)
{
	const struct vcpu *vcpu = opaque;

	while (ioctl(vcpu->fd, KVM_RUN, 0) >= 0)
		;
	return NULL;
}

int target_run(struct target *t, uint32_t vcpu_index)
{
	struct vcpu *vcpu = &t->vcpus[vcpu_index];
	struct sigaction action = { .sa_handler = on_alarm };
	int err;

	sigaction(SIGALRM, &action, NULL);
	vcpu->mailbox->op = 8 * HANDLER_SPIN;
	vcpu->mailbox->result = 0;
	err = pthread_create(&vcpu->thread, NULL, run_vcpu, vcpu);
	if (err)
		return -err;
	vcpu->runs = true;
	/* From then on it is in KVM_RUN, and holds what KVM has to wait for. */
	for (int naps = 0; vcpu->mailbox->result == 0; naps++) {
		if (naps == RUN_SECONDS * 1000)
			return -ETIMEDOUT;
		usleep(1000);
	}
	return 0;
}

int target_stop(struct target *t, uint32_t vcpu_index)
{
	struct vcpu *vcpu = &t->vcpus[vcpu_index];

	if (!vcpu->runs)
		return -EINVAL;
	pthread_kill(vcpu->thread, SIGALRM);
	pthread_join(vcpu->thread, NULL);
	vcpu->runs = false;
	return set_register(vcpu->fd, offsetof(struct kvm_regs, regs.pc), ENTRY) < 0 ? -errno : 0;
}

static bool any_runs(const struct target *t)
{
	for (uint32_t i = 0; i < t->description.num_vcpus; i++) {
		if (t->vcpus[i].runs)
			return true;
	}
	return false;
}

void target_settle(struct target *t)
{
	const struct guest_request nothing = { .op = GUEST_LINES };

	for (uint32_t i = 0; i < t->description.num_vcpus && !any_runs(t); i++) {
		if (t->vcpus[i].is_behind)
			target_guest(t, i, &nothing);
	}
}

/* ---- The host's side -------------------------------------------------------------------------------------- */

static int result_of(int returned)
{
	return returned < 0 ? -errno : returned;
}

int target_attr(struct target *t, struct attr_request *request)
{
	struct kvm_device_attr a = {
		.group = request->group,
		.attr = request->attr,
		.addr = (uintptr_t)&request->value,
	};
	const int device = request->device == ATTR_ITS ? t->its[request->its] : t->vgic;

	everyone_is_behind(t);
	return result_of(ioctl(device, request->set ? KVM_SET_DEVICE_ATTR : KVM_GET_DEVICE_ATTR, &a));
}

int target_signal_msi(struct target *t, uint64_t address, uint32_t data, uint32_t devid, uint32_t flags)
{
	struct kvm_msi msi = {
		.address_lo = (uint32_t)address,
		.address_hi = (uint32_t)(address >> 32),
		.data = data,
		.devid = devid,
		.flags = flags,
	};

	everyone_is_behind(t);
	return result_of(ioctl(t->vm, KVM_SIGNAL_MSI, &msi));
}

static int set_line(struct target *t, uint32_t type, uint32_t vcpu_index, uint32_t intid, bool level)
{
	struct kvm_irq_level line = {
		.irq = type << KVM_ARM_IRQ_TYPE_SHIFT | vcpu_index << KVM_ARM_IRQ_VCPU_SHIFT |
		       (intid & KVM_ARM_IRQ_NUM_MASK),
		.level = level,
	};

	everyone_is_behind(t);
	return result_of(ioctl(t->vm, KVM_IRQ_LINE, &line));
}

int target_set_spi(struct target *t, uint32_t intid, bool level)
{
	return set_line(t, KVM_ARM_IRQ_TYPE_SPI, 0, intid, level);
}

int target_set_ppi(struct target *t, uint32_t vcpu_index, uint32_t intid, bool level)
{
	return set_line(t, KVM_ARM_IRQ_TYPE_PPI, vcpu_index, intid, level);
}
