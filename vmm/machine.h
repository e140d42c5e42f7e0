/* SPDX-License-Identifier: MIT */
/*
 * The machine: memory, vCPUs, devices and time; and the loop that runs the vCPUs
 * in turn on one thread. Its address map is that of QEMU's virt machine.
 */
#ifndef VMM_MACHINE_H
#define VMM_MACHINE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "console.h"
#include "guest_ram.h"
#include "options.h"
#include "pci.h"
#include "pl011.h"
#include "testdev.h"
#include "timer.h"

/* ---- The address map ------------------------------------------------------------- */

#define GICD_BASE      0x08000000ull
#define ITS_BASE       0x08080000ull
#define GICR_BASE      0x080a0000ull
#define UART_BASE      0x09000000ull
#define UART_SIZE      0x1000ull
#define RAM_BASE       0x40000000ull
#define GICR_HIGH_BASE 0x4000000000ull /* the redistributors that do not fit below the UART */

#define GICR_MAX_FRAMES 123u /* (UART_BASE - GICR_BASE) / 128 KiB */
#define RAM_MAX_SIZE    (GICR_HIGH_BASE - RAM_BASE)

#define MAX_DEVICES 31u /* on the PCI bus */

#define UART_INTID 33u /* SPI 1 */

/* ---- The parts ----------------------------------------------------------------------- */

enum vcpu_power {
	VCPU_OFF,
	VCPU_ON,
	VCPU_WAITING, /* on, in WFI */
};

struct vcpu {
	struct machine *machine;
	unsigned index;
	uint64_t affinity; /* as in MPIDR_EL1 */
	struct cpu *cpu;
	struct vgic_vcpu *gic;
	enum vcpu_power power;
	atomic_bool kicked;   /* the controller wants its lines looked at; set by any thread */
	bool power_off_asked; /* by PSCI, in the run that is just going on */
	bool suspend_asked;   /* the same */
	unsigned traced_lines;
	struct timer timers[NUM_TIMERS];
};

/* Why the machine stops. The first reason counts. */
enum machine_end_reason {
	END_NONE = 0,
	END_POWER_OFF, /* PSCI SYSTEM_OFF */
	END_RESET,     /* PSCI SYSTEM_RESET */
	END_EXIT_ON,   /* the console printed the text of --exit-on */
	END_LEFT,      /* Ctrl-A x */
	END_SIGNAL,
	END_TIMEOUT,
	END_SAVED, /* --save-to: another process goes on */
	END_OUTPUT_LOST,
	END_FAULT, /* a message has been printed */
};

struct machine {
	const struct options *options;
	unsigned char *ram;
	uint64_t ram_size;
	int ram_fd; /* the same memory, for another process to map. A memfd, sealed: nobody can make it smaller */
	struct guest_ram guest_ram; /* the same, for devices */

	struct vgic *vgic;
	bool gic_has_work; /* vgic_run_work() has something to do */
	unsigned num_vcpus;
	struct vcpu *vcpus;
	struct vcpu *_Atomic running; /* NULL between runs */

	/* The thread that runs the vCPUs; and how others wake it when it waits: see gic.c. */
	pthread_t thread;
	atomic_bool sleeping;
	int wake_fd;

	/*
	 * Virtual time: each instruction of any vCPU takes some of it, and it jumps over what nobody uses. @time_ps is that
	 * up to the start of the present run, when the running vCPU had executed @run_start instructions. In picoseconds, so
	 * that an instruction's time can be divided; they last for half a year.
	 */
	bool virtual_time;
	uint64_t time_ps;
	uint64_t run_start;
	unsigned ps_per_instruction;
	uint64_t real_start; /* real time counts from here */

	uint64_t wall_start;

	uint64_t executed; /* instructions of all vCPUs, in this process */
	uint64_t save_at;  /* of @executed: --save-after; UINT64_MAX: never */

	struct testdev testdev;
	struct pl011 uart;
	struct vgic_routes *routes; /* these two for the PCI bus; NULL if it is empty */
	struct vgic_irqfds *irqfds;
	struct pci_host pci;
	struct virtio_pci *devices[MAX_DEVICES];
	unsigned num_devices;
	struct console *console;
	struct trace *trace;
	enum machine_end_reason end;
};

/* ---- Life ------------------------------------------------------------------------------ */

/* Make a machine with all its parts, nothing loaded. Returns 0, or prints a line, negative errno. */
int machine_create(struct machine *machine, const struct options *options, struct console *console,
		   struct trace *trace);
void machine_destroy(struct machine *machine);

/* Load the images, power on vCPU 0, and run until something ends it. Returns the reason. */
enum machine_end_reason machine_run(struct machine *machine);

/* Where each vCPU is, one line each, on standard error. */
void machine_print_state(struct machine *machine);

/* ---- For the parts ----------------------------------------------------------------------- */

uint64_t machine_now(const struct machine *machine);

/* The same in picoseconds, between two runs; and go on from there. */
uint64_t machine_time_ps(const struct machine *machine);
void machine_set_time_ps(struct machine *machine, uint64_t ps);

/* Is the whole range memory? */
bool machine_is_ram(const struct machine *machine, uint64_t address, uint64_t size);

/* Host address of guest memory; the range must be memory. */
void *machine_ram(const struct machine *machine, uint64_t address);

struct vcpu *machine_vcpu_by_affinity(struct machine *machine, uint64_t affinity);

/* From a hypercall. */
void machine_power_on(struct vcpu *vcpu, uint64_t entry, uint64_t context);
void machine_power_off(struct vcpu *vcpu);
void machine_suspend(struct vcpu *vcpu);

/* End the run of the machine as soon as the running vCPU can be left. */
void machine_end(struct machine *machine, enum machine_end_reason reason);

/* The deadline of the running vCPU's timers may be nearer than it was. */
void machine_timer_changed(struct vcpu *vcpu);

#endif /* VMM_MACHINE_H */
