/* SPDX-License-Identifier: MIT */
/*
 * The machine: creation, time, and the loop that runs the vCPUs.
 *
 * The vCPUs run in turn, a slice of instructions each, on one thread. A slice
 * ends early when the next timer is due, when the vCPU waits, when it has
 * signalled another one that waits, and when a device's thread has signalled one.
 * In virtual time devices have no threads, and all of this depends on the guest's
 * instructions only: two runs are the same.
 */
#define _GNU_SOURCE /* memfd_create(), the seals, fallocate() */

#include "machine.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>
#include <vgic/vgic.h>

#include "arm64.h"
#include "cpu.h"
#include "devices.h"
#include "gic.h"
#include "loader.h"
#include "psci.h"
#include "snapshot.h"
#include "testdev.h"
#include "trace.h"
#include "util.h"

/*
 * One instruction takes 8 ns of virtual time: 125 MIPS, about what the translator makes of a present-day host. vCPUs that
 * run beside each other share the time, or a guest with many would do nothing but serve its timers.
 */
#define PS_PER_INSTRUCTION 8000u
#define PS_PER_NS          1000u
#define SLICE_INSTRUCTIONS 100000u
#define LONG_TIME_NS       1000000000u /* longer than any slice */

#define POLL_ROUNDS    16u /* the console is looked at after so many rounds of all vCPUs */
#define MAX_IDLE_MS    1000
#define NS_PER_MS      1000000u
#define VCPUS_PER_AFF1 16u /* as many as one SGI target list names */

_Static_assert(CPU_LINE_IRQ == VGIC_LINE_IRQ && CPU_LINE_FIQ == VGIC_LINE_FIQ,
	       "the CPU layer and the controller number the lines alike");

/* ---- Time --------------------------------------------------------------------------- */

uint64_t machine_now(const struct machine *machine)
{
	uint64_t ps = machine->time_ps;

	if (!machine->virtual_time)
		return monotonic_ns() - machine->real_start;
	if (machine->running)
		ps += (cpu_instructions(machine->running->cpu) - machine->run_start) * machine->ps_per_instruction;
	return ps / PS_PER_NS;
}

uint64_t machine_time_ps(const struct machine *machine)
{
	return machine->virtual_time ? machine->time_ps : machine_now(machine) * PS_PER_NS;
}

void machine_set_time_ps(struct machine *machine, uint64_t ps)
{
	machine->time_ps = ps;
	machine->real_start = monotonic_ns() - ps / PS_PER_NS;
}

static void restart_time(struct machine *machine)
{
	machine->real_start = monotonic_ns();
	machine->time_ps = 0;
}

static void share_time(struct machine *machine)
{
	unsigned sharing = 0;

	for (unsigned i = 0; i < machine->num_vcpus; i++)
		sharing += machine->vcpus[i].power == VCPU_ON;
	machine->ps_per_instruction = PS_PER_INSTRUCTION / (sharing ? sharing : 1);
}

/* When the first timer of any vCPU is due; UINT64_MAX: none is. */
static uint64_t next_deadline(const struct machine *machine)
{
	uint64_t deadline = UINT64_MAX;

	for (unsigned i = 0; i < machine->num_vcpus; i++) {
		const struct vcpu *vcpu = &machine->vcpus[i];
		uint64_t own;

		if (vcpu->power == VCPU_OFF)
			continue;
		own = timer_deadline(vcpu);
		if (own < deadline)
			deadline = own;
	}
	return deadline;
}

/* Instructions until @deadline, at least one; UINT64_MAX if it is far away. In real time this is an estimate. */
static uint64_t instructions_until(const struct machine *machine, uint64_t deadline)
{
	const uint64_t now = machine_now(machine);

	if (deadline <= now)
		return 1;
	if (deadline - now > LONG_TIME_NS)
		return UINT64_MAX;
	return (deadline - now) * PS_PER_NS / machine->ps_per_instruction + 1;
}

void machine_timer_changed(struct vcpu *vcpu)
{
	const uint64_t deadline = timer_deadline(vcpu);

	if (deadline != UINT64_MAX)
		cpu_limit_slice(vcpu->cpu, instructions_until(vcpu->machine, deadline));
}

/* ---- Memory ---------------------------------------------------------------------------- */

bool machine_is_ram(const struct machine *machine, uint64_t address, uint64_t size)
{
	return guest_ram_contains(&machine->guest_ram, address, size);
}

void *machine_ram(const struct machine *machine, uint64_t address)
{
	return machine->ram + (address - RAM_BASE);
}

/*
 * Another process may get the file: a back end of vhost-user. The seals keep it from taking pages away under our feet,
 * which would be a SIGBUS here.
 */
static int create_ram(struct machine *machine)
{
	void *ram = MAP_FAILED;

	machine->ram_fd = memfd_create("guest-ram", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (machine->ram_fd >= 0 && ftruncate(machine->ram_fd, (off_t)machine->ram_size) == 0 &&
	    fcntl(machine->ram_fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0)
		ram = mmap(NULL, machine->ram_size, PROT_READ | PROT_WRITE, MAP_SHARED, machine->ram_fd, 0);
	if (ram == MAP_FAILED) {
		message("no memory for a guest of %llu MiB: %s", (unsigned long long)(machine->ram_size >> 20),
			strerror(errno));
		return -ENOMEM;
	}
	machine->ram = ram;
	return 0;
}

/* A hole reads as zeros, here and wherever else the file is mapped. */
static void clear_ram(struct machine *machine)
{
	if (fallocate(machine->ram_fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, (off_t)machine->ram_size))
		memset(machine->ram, 0, machine->ram_size);
}

static void destroy_ram(struct machine *machine)
{
	if (machine->ram)
		munmap(machine->ram, machine->ram_size);
	if (machine->ram_fd >= 0)
		close(machine->ram_fd);
}

/* ---- Power ------------------------------------------------------------------------------- */

void machine_end(struct machine *machine, enum machine_end_reason reason)
{
	if (machine->end == END_NONE)
		machine->end = reason;
	if (machine->running)
		cpu_stop(machine->running->cpu);
}

struct vcpu *machine_vcpu_by_affinity(struct machine *machine, uint64_t affinity)
{
	struct vgic_vcpu *gic = vgic_vcpu_by_affinity(machine->vgic, affinity);

	return gic ? vgic_vcpu_user(gic) : NULL;
}

void machine_power_on(struct vcpu *vcpu, uint64_t entry, uint64_t context)
{
	trace_event(vcpu->machine->trace, vcpu->machine, vcpu, "power on, entry 0x%llx", (unsigned long long)entry);
	cpu_start(vcpu->cpu, entry, context);
	vgic_vcpu_reset(vcpu->gic);
	timer_reset(vcpu);
	vgic_vcpu_set_online(vcpu->gic, true);
	vcpu->power = VCPU_ON;
	vcpu->power_off_asked = false;
	vcpu->suspend_asked = false;
}

/* The vCPU is running: it is taken off, or waits, when it has left the guest. */
void machine_power_off(struct vcpu *vcpu)
{
	vcpu->power_off_asked = true;
	cpu_stop(vcpu->cpu);
}

void machine_suspend(struct vcpu *vcpu)
{
	vcpu->suspend_asked = true;
	cpu_stop(vcpu->cpu);
}

static void complete_power_off(struct vcpu *vcpu)
{
	trace_event(vcpu->machine->trace, vcpu->machine, vcpu, "power off");
	vcpu->power_off_asked = false;
	vcpu->kicked = false;
	vcpu->power = VCPU_OFF;
	vgic_vcpu_set_online(vcpu->gic, false);
	timer_reset(vcpu);
}

/* ---- What the CPUs ask for ------------------------------------------------------------------ */

/* ID_AA64PFR0_EL1: EL0 and EL1, AArch64 only; floating point; the GIC's system registers. */
#define PFR0_VALUE  0x01000011u
/* ID_AA64DFR0_EL1: Armv8 debug, one breakpoint and watchpoint, no PMU. */
#define DFR0_VALUE  0x6u
/*
 * DCZID_EL0: DC ZVA is prohibited (DZP). The translator makes 64 slow stores of a byte each of it; guests that look here
 * clear memory with ordinary stores then, which is eight times as fast.
 */
#define DCZID_VALUE 0x10u

static bool is_overridden(uint32_t reg)
{
	return reg == SYS_MPIDR_EL1 || reg == SYS_ID_AA64PFR0_EL1 || reg == SYS_ID_AA64DFR0_EL1 ||
	       reg == SYS_DCZID_EL0 || timer_has_register(reg);
}

static bool override_read(void *owner, uint32_t reg, unsigned el, uint64_t *value)
{
	const struct vcpu *vcpu = owner;

	if (timer_has_register(reg))
		return timer_read(owner, reg, el, value);
	if (reg == SYS_DCZID_EL0) {
		*value = DCZID_VALUE;
		return true;
	}
	if (el == 0) /* the rest is UNDEFINED there */
		return false;
	switch (reg) {
	case SYS_MPIDR_EL1:
		*value = MPIDR_RES1 | vcpu->affinity;
		return true;
	case SYS_ID_AA64PFR0_EL1:
		*value = PFR0_VALUE;
		return true;
	case SYS_ID_AA64DFR0_EL1:
		*value = DFR0_VALUE;
		return true;
	default:
		return false;
	}
}

static bool override_write(void *owner, uint32_t reg, unsigned el, uint64_t value)
{
	return timer_has_register(reg) && timer_write(owner, reg, el, value);
}

static int extra_read(void *owner, uint32_t reg, uint64_t *value)
{
	return gic_icc_read(owner, reg, value);
}

static int extra_write(void *owner, uint32_t reg, uint64_t value)
{
	return gic_icc_write(owner, reg, value);
}

static void hypercall(void *owner, uint64_t x[4])
{
	psci_call(owner, x);
}

static void broadcast_tlbi(void *owner, uint32_t op, uint64_t value)
{
	const struct vcpu *self = owner;
	const struct machine *machine = self->machine;

	for (unsigned i = 0; i < machine->num_vcpus; i++)
		if (i != self->index && machine->vcpus[i].power != VCPU_OFF)
			cpu_invalidate_tlb(machine->vcpus[i].cpu, op, value);
}

static void broadcast_ic(void *owner, bool all, uint64_t va)
{
	const struct vcpu *self = owner;
	const struct machine *machine = self->machine;
	uint64_t pa = 0;

	if (machine->num_vcpus == 1)
		return;
	if (!all && cpu_translate(self->cpu, va, &pa))
		all = true;
	for (unsigned i = 0; i < machine->num_vcpus; i++) {
		const struct vcpu *other = &machine->vcpus[i];

		/* One that is off keeps nothing: it starts with everything dropped. */
		if (other == self || other->power == VCPU_OFF)
			continue;
		if (all)
			cpu_invalidate_all_code(other->cpu);
		else
			cpu_invalidate_code(other->cpu, pa);
	}
}

/* The answer to a kick. */
static unsigned poll_lines(void *owner)
{
	struct vcpu *vcpu = owner;
	unsigned lines;

	vcpu->kicked = false;
	lines = vgic_poll_lines(vcpu->gic);
	trace_lines(vcpu->machine->trace, vcpu, lines);
	return lines;
}

static const struct cpu_ops cpu_ops = {
	.is_overridden = is_overridden,
	.override_read = override_read,
	.override_write = override_write,
	.is_extra = gic_has_register,
	.extra_read = extra_read,
	.extra_write = extra_write,
	.hypercall = hypercall,
	.broadcast_tlbi = broadcast_tlbi,
	.broadcast_ic = broadcast_ic,
	.poll_lines = poll_lines,
};

/* ---- What the UART asks for ---------------------------------------------------------------------- */

static void uart_transmit(void *owner, char c)
{
	struct machine *machine = owner;

	/* What a block does after its fault has no meaning. */
	if (machine->running && *cpu_fault(machine->running->cpu))
		return;
	console_put(machine->console, c);
	if (machine->console->exit_on.seen)
		machine_end(machine, END_EXIT_ON);
	if (machine->console->save_at.seen && machine->running)
		cpu_stop(machine->running->cpu);
}

static int uart_receive(void *owner)
{
	const struct machine *machine = owner;

	return console_get(machine->console);
}

static void uart_set_line(void *owner, bool level)
{
	gic_set_spi(owner, UART_INTID, 0, level);
}

static const struct pl011_ops uart_ops = {
	.transmit = uart_transmit,
	.receive = uart_receive,
	.set_line = uart_set_line,
};

/* ---- Running one vCPU -------------------------------------------------------------------------- */

/* A vCPU in WFI: returns true if it may go on. */
static bool leave_wait(struct vcpu *vcpu)
{
	unsigned lines;

	if (!vcpu->kicked)
		return false;
	/* The kick ends the wait; whether a line is up is asked by waiting again. */
	vgic_finish_wait(vcpu->gic);
	vcpu->kicked = false;
	lines = vgic_prepare_wait(vcpu->gic);
	trace_lines(vcpu->machine->trace, vcpu, lines);
	if (!lines)
		return false;
	vgic_finish_wait(vcpu->gic);
	vcpu->power = VCPU_ON;
	return true;
}

static void enter_wait(struct vcpu *vcpu)
{
	unsigned lines;

	vcpu->kicked = false;
	lines = vgic_prepare_wait(vcpu->gic);
	trace_lines(vcpu->machine->trace, vcpu, lines);
	if (lines)
		vgic_finish_wait(vcpu->gic);
	else
		vcpu->power = VCPU_WAITING;
}

static enum cpu_exit run_in_guest(struct vcpu *vcpu)
{
	struct machine *machine = vcpu->machine;
	uint64_t slice = SLICE_INSTRUCTIONS;
	uint64_t until_timer;
	enum cpu_exit exit;
	unsigned lines;

	share_time(machine);
	until_timer = instructions_until(machine, next_deadline(machine));
	if (until_timer < slice)
		slice = until_timer;
	if (machine->save_at - machine->executed < slice)
		slice = machine->save_at - machine->executed;
	machine->run_start = cpu_instructions(vcpu->cpu);
	machine->running = vcpu; /* before the lines are looked at: see kick_from_outside() */
	vcpu->kicked = false;
	lines = vgic_enter_guest(vcpu->gic);
	trace_lines(machine->trace, vcpu, lines);
	exit = cpu_run(vcpu->cpu, slice, lines);
	machine->time_ps += (cpu_instructions(vcpu->cpu) - machine->run_start) * machine->ps_per_instruction;
	machine->executed += cpu_instructions(vcpu->cpu) - machine->run_start;
	machine->running = NULL;
	vgic_exit_guest(vcpu->gic);
	return exit;
}

/* Give @vcpu its turn. Returns false if it had nothing to do. */
static bool run_vcpu(struct vcpu *vcpu)
{
	enum cpu_exit exit;

	if (vcpu->power == VCPU_OFF)
		return false;
	timer_update(vcpu);
	if (vcpu->power == VCPU_WAITING && !leave_wait(vcpu))
		return false;
	exit = run_in_guest(vcpu);
	if (exit == CPU_EXIT_FAULT) {
		console_end_line(vcpu->machine->console);
		message("%s", cpu_fault(vcpu->cpu));
		machine_end(vcpu->machine, END_FAULT);
	} else if (vcpu->power_off_asked) {
		complete_power_off(vcpu);
	} else if (exit == CPU_EXIT_WAIT || vcpu->suspend_asked) {
		vcpu->suspend_asked = false;
		enter_wait(vcpu);
	}
	return true;
}

/* ---- The loop ----------------------------------------------------------------------------------------- */

static void poll_console(struct machine *machine, int timeout_ms)
{
	if (console_poll(machine->console, machine->wake_fd, timeout_ms))
		pl011_fill(&machine->uart);
	if (machine->console->left)
		machine_end(machine, END_LEFT);
	if (machine->console->output_lost)
		machine_end(machine, END_OUTPUT_LOST);
}

static bool any_vcpu_is_on(const struct machine *machine)
{
	for (unsigned i = 0; i < machine->num_vcpus; i++)
		if (machine->vcpus[i].power != VCPU_OFF)
			return true;
	return false;
}

static void end_without_hope(struct machine *machine, const char *what)
{
	console_end_line(machine->console);
	message("%s: the guest cannot go on", what);
	machine_print_state(machine);
	machine_end(machine, END_FAULT);
}

static bool any_wait_is_over(const struct machine *machine)
{
	for (unsigned i = 0; i < machine->num_vcpus; i++)
		if (machine->vcpus[i].power == VCPU_WAITING && machine->vcpus[i].kicked)
			return true;
	return false;
}

static void idle_in_virtual_time(struct machine *machine, uint64_t deadline)
{
	poll_console(machine, 0);
	if (any_wait_is_over(machine))
		return;
	if (deadline <= UINT64_MAX / PS_PER_NS)
		machine->time_ps = deadline > machine_now(machine) ? deadline * PS_PER_NS : machine->time_ps;
	else if (console_may_bring_more(machine->console))
		poll_console(machine, MAX_IDLE_MS);
	else if (machine->end == END_NONE)
		end_without_hope(machine, "all vCPUs wait, and no timer is set");
}

static void idle_in_real_time(struct machine *machine, uint64_t deadline)
{
	const uint64_t now = machine_now(machine);
	int timeout_ms = MAX_IDLE_MS;

	if (deadline <= now)
		timeout_ms = 0;
	else if ((deadline - now) / NS_PER_MS < MAX_IDLE_MS)
		timeout_ms = (int)((deadline - now + NS_PER_MS - 1) / NS_PER_MS);
	/* A kick that comes before this look is seen by it, a later one sees @sleeping. */
	machine->sleeping = true;
	if (any_wait_is_over(machine))
		timeout_ms = 0;
	poll_console(machine, timeout_ms);
	machine->sleeping = false;
}

/* No vCPU has anything to do. */
static void idle(struct machine *machine)
{
	const uint64_t deadline = next_deadline(machine);

	if (!any_vcpu_is_on(machine))
		end_without_hope(machine, "all vCPUs are off");
	else if (machine->virtual_time)
		idle_in_virtual_time(machine, deadline);
	else
		idle_in_real_time(machine, deadline);
}

static bool is_save_due(const struct machine *machine)
{
	return save_signal || machine->console->save_at.seen || machine->executed >= machine->save_at;
}

/* One that fails has been reported: the guest goes on, and may be saved by another signal. */
static void save_if_due(struct machine *machine)
{
	if (!is_save_due(machine) || machine->end != END_NONE)
		return;
	save_signal = 0;
	machine->save_at = UINT64_MAX;
	machine->console->save_at.seen = false;
	machine->console->save_at.length = 0;
	console_flush(machine->console);
	if (snapshot_save(machine) == 0)
		machine_end(machine, END_SAVED);
}

static void check_ends(struct machine *machine)
{
	const uint64_t timeout = machine->options->timeout_ns;

	if (signal_received)
		machine_end(machine, END_SIGNAL);
	if (timeout && monotonic_ns() - machine->wall_start >= timeout)
		machine_end(machine, END_TIMEOUT);
}

static void run_until_end(struct machine *machine)
{
	unsigned rounds = 0;

	while (machine->end == END_NONE) {
		bool any = gic_run_work(machine);

		for (unsigned i = 0; i < machine->num_vcpus && machine->end == END_NONE && !is_save_due(machine); i++)
			any |= run_vcpu(&machine->vcpus[i]);
		save_if_due(machine);
		check_ends(machine);
		if (machine->end != END_NONE)
			break;
		if (!any)
			idle(machine);
		else if (++rounds % POLL_ROUNDS == 0)
			poll_console(machine, 0);
	}
	console_flush(machine->console);
}

/* ---- Start and reset --------------------------------------------------------------------------------------- */

static int make_cpu(struct vcpu *vcpu)
{
	struct machine *machine = vcpu->machine;
	int ret;

	ret = cpu_create(vcpu->index, &cpu_ops, vcpu, &vcpu->cpu);
	if (ret)
		return ret;
	ret = cpu_map_ram(vcpu->cpu, RAM_BASE, machine->ram_size, machine->ram);
	if (!ret)
		ret = gic_map(vcpu);
	if (!ret)
		ret = cpu_map_mmio(vcpu->cpu, UART_BASE, UART_SIZE, pl011_read, pl011_write, &machine->uart);
	if (!ret)
		ret = cpu_map_mmio(vcpu->cpu, TESTDEV_BASE, TESTDEV_SIZE, testdev_read, testdev_write, machine);
	if (!ret)
		ret = cpu_map_mmio(vcpu->cpu, PCI_WINDOW_BASE, PCI_WINDOW_SIZE, pci_window_read, pci_window_write,
				   &machine->pci);
	if (!ret)
		ret = cpu_map_mmio(vcpu->cpu, PCI_ECAM_BASE, PCI_ECAM_SIZE, pci_ecam_read, pci_ecam_write,
				   &machine->pci);
	if (!ret)
		ret = cpu_map_done(vcpu->cpu);
	return ret;
}

static int make_cpus(struct machine *machine)
{
	for (unsigned i = 0; i < machine->num_vcpus; i++) {
		const int ret = make_cpu(&machine->vcpus[i]);

		if (ret) {
			message("cannot make vCPU %u: %s", i, strerror(-ret));
			return ret;
		}
	}
	return 0;
}

static void destroy_cpus(struct machine *machine)
{
	for (unsigned i = 0; machine->vcpus && i < machine->num_vcpus; i++) {
		cpu_destroy(machine->vcpus[i].cpu);
		machine->vcpus[i].cpu = NULL;
	}
}

static void lower_testdev_lines(struct machine *machine)
{
	for (uint32_t intid = 32; vgic_set_spi(machine->vgic, intid, TESTDEV_SOURCE, false) == 0; intid++)
		;
	for (unsigned i = 0; i < machine->num_vcpus; i++)
		for (uint32_t intid = 16; intid < 32; intid++)
			vgic_set_ppi(machine->vcpus[i].gic, intid, TESTDEV_SOURCE, false);
}

/* Everything as after power-on, except the counters of the host. */
static int reset(struct machine *machine)
{
	devices_reset(machine); /* first: their threads touch memory and kick vCPUs */
	destroy_cpus(machine);
	for (unsigned i = 0; i < machine->num_vcpus; i++) {
		struct vcpu *vcpu = &machine->vcpus[i];

		if (vcpu->power == VCPU_WAITING)
			vgic_finish_wait(vcpu->gic);
		vcpu->kicked = false;
		vcpu->power = VCPU_OFF;
		vgic_vcpu_set_online(vcpu->gic, false);
		timer_reset(vcpu);
	}
	pl011_reset(&machine->uart);
	lower_testdev_lines(machine);
	memset(&machine->testdev, 0, sizeof(machine->testdev));
	vgic_reset(machine->vgic);
	machine->gic_has_work = false;
	clear_ram(machine);
	restart_time(machine);
	return make_cpus(machine);
}

/* What has been loaded goes on where it was: in WFI, if it waited. */
static int load(struct machine *machine)
{
	const int ret = snapshot_load(machine);

	if (ret)
		return ret;
	for (unsigned i = 0; i < machine->num_vcpus; i++) {
		struct vcpu *vcpu = &machine->vcpus[i];

		if (vcpu->power != VCPU_WAITING)
			continue;
		vcpu->power = VCPU_ON;
		enter_wait(vcpu);
	}
	return 0;
}

/* A saved machine goes on once: after a reset of its guest it begins anew, as any other. */
static int start(struct machine *machine, bool first)
{
	struct loaded loaded;

	if (first && machine->options->load)
		return load(machine);
	if (loader_load(machine, &loaded))
		return -ENOENT;
	machine_power_on(&machine->vcpus[0], loaded.entry, loaded.dtb);
	return 0;
}

static bool can_begin_anew(const struct options *options)
{
	return !options->no_reboot && options->kernel;
}

enum machine_end_reason machine_run(struct machine *machine)
{
	bool first = true;

	machine->thread = pthread_self();
	machine->wall_start = monotonic_ns();
	machine->save_at = machine->options->save_after ? machine->options->save_after : UINT64_MAX;
	do {
		machine->end = END_NONE;
		if (reset(machine) || start(machine, first))
			return END_FAULT;
		first = false;
		/* A guest may reset again before anybody else has looked. */
		check_ends(machine);
		run_until_end(machine);
	} while (machine->end == END_RESET && can_begin_anew(machine->options));
	return machine->end;
}

void machine_print_state(struct machine *machine)
{
	static const char *const states[] = {
		[VCPU_OFF] = "off",
		[VCPU_ON] = "running",
		[VCPU_WAITING] = "waiting for an interrupt",
	};

	for (unsigned i = 0; i < machine->num_vcpus; i++) {
		const struct vcpu *vcpu = &machine->vcpus[i];

		if (vcpu->power == VCPU_OFF)
			message("vCPU %u: off", i);
		else
			message("vCPU %u: %s, EL%u, PC 0x%016llx", i, states[vcpu->power], cpu_el(vcpu->cpu),
				(unsigned long long)cpu_pc(vcpu->cpu));
	}
}

/* ---- Creation --------------------------------------------------------------------------------------------------- */

int machine_create(struct machine *machine, const struct options *options, struct console *console, struct trace *trace)
{
	int ret;

	memset(machine, 0, sizeof(*machine));
	machine->options = options;
	machine->console = console;
	machine->trace = trace;
	machine->virtual_time = options->virtual_time;
	machine->num_vcpus = options->num_cpus;
	machine->thread = pthread_self();
	machine->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (machine->wake_fd < 0) {
		ret = -errno;
		message("cannot make an eventfd: %s", strerror(-ret));
		return ret;
	}
	machine->ram_size = options->memory;
	ret = create_ram(machine);
	if (ret) {
		machine_destroy(machine);
		return ret;
	}
	machine->guest_ram = (struct guest_ram){
		.host = machine->ram,
		.base = RAM_BASE,
		.size = machine->ram_size,
	};
	machine->vcpus = calloc(machine->num_vcpus, sizeof(*machine->vcpus));
	if (!machine->vcpus) {
		message("no memory for %u vCPUs", machine->num_vcpus);
		machine_destroy(machine);
		return -ENOMEM;
	}
	restart_time(machine);
	for (unsigned i = 0; i < machine->num_vcpus; i++) {
		machine->vcpus[i].machine = machine;
		machine->vcpus[i].index = i;
		machine->vcpus[i].affinity = i / VCPUS_PER_AFF1 << 8 | i % VCPUS_PER_AFF1;
	}
	ret = gic_create(machine);
	if (!ret)
		ret = devices_create(machine);
	if (ret)
		machine_destroy(machine);
	else
		pl011_init(&machine->uart, &uart_ops, machine);
	return ret;
}

void machine_destroy(struct machine *machine)
{
	devices_destroy(machine);
	destroy_cpus(machine);
	free(machine->vcpus);
	vgic_destroy(machine->vgic);
	destroy_ram(machine);
	if (machine->wake_fd >= 0)
		close(machine->wake_fd);
	memset(machine, 0, sizeof(*machine));
}
