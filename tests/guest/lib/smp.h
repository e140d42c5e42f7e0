/* SPDX-License-Identifier: MIT */
/*
 * The CPUs of the machine, and how the boot CPU makes the others do things.
 *
 * The boot CPU (cpus[0]) runs the tests. The others wait in a loop for calls from
 * it. Every field has one writer: the CPU itself, or the boot CPU where noted.
 */
#ifndef GUEST_SMP_H
#define GUEST_SMP_H

#include "arch.h"

#define NUM_INTIDS  1020u /* SGIs, PPIs and SPIs */
#define LPI_FIRST   8192u
#define MAX_RECORDS 64u

/* Interrupts that handlers are set for and that are counted: SGIs, PPIs, SPIs, and the first LPIs behind them. */
#define NUM_COUNTED_LPIS 32u
#define NUM_COUNTED      (NUM_INTIDS + NUM_COUNTED_LPIS)

/* One interrupt that a CPU acknowledged in its handler. */
struct interrupt_record {
	uint16_t intid;
	uint8_t group;            /* 0: the FIQ vector, 1: the IRQ vector */
	uint8_t depth;            /* 1: nothing was interrupted but the test, 2: a handler was, ... */
	uint8_t running_priority; /* ICC_RPR after the acknowledge */
};

/* What a CPU found in its CPU interface when it came out of reset. */
struct reset_values {
	uint64_t pmr, igrpen0, igrpen1, rpr, ap0r0, ap1r0;
};

typedef uint64_t cpu_function(uint64_t argument);

struct cpu {
	uintptr_t stack_top; /* must be first: start.S. 0: the boot CPU's */
	unsigned index;
	uint64_t mpidr;
	uintptr_t redist; /* address of the RD_base frame */

	/* Calls: the boot CPU writes these ... */
	cpu_function *volatile function;
	volatile uint64_t argument;
	volatile uint32_t calls_requested;
	/* ... and the CPU answers here. */
	volatile uint64_t result;
	volatile uint32_t calls_completed;
	volatile bool online;
	struct reset_values reset_values;

	/* Written by the interrupt handlers (exception.c), cleared between the tests. */
	unsigned depth;
	volatile uint32_t spurious; /* the handler was entered, but the acknowledge returned a special INTID */
	volatile uint32_t num_records;
	struct interrupt_record records[MAX_RECORDS];
	volatile uint32_t handled[NUM_COUNTED]; /* counted after the end of interrupt; of an LPI: handled_by() */

	/* An exception that a test expects: exception_arm() in exception.h. */
	volatile bool exception_expected;
	volatile uint64_t exception_esr;
	volatile uint64_t exception_elr;
};

extern struct cpu cpus[MAX_CPUS];
extern unsigned num_cpus;

static inline struct cpu *this_cpu(void)
{
	return (struct cpu *)read_sysreg(tpidr_el1);
}

/* Power on all CPUs but this one. Gives up with "Bail out!" if one does not come. */
void smp_start_all(void);

/* Run @function on a CPU. The first starts it only; smp_wait() gives up after a while and returns false. */
void smp_start(unsigned cpu, cpu_function *function, uint64_t argument);
bool smp_wait(unsigned cpu);
/* Start, wait, and return the result; for this CPU, a plain call. Gives up with "Bail out!" if the CPU does not answer. */
uint64_t smp_call(unsigned cpu, cpu_function *function, uint64_t argument);
/* Run it on all CPUs, this one included, at the same time. */
void smp_call_all(cpu_function *function, uint64_t argument);
void smp_call_all_but(unsigned absent, cpu_function *function, uint64_t argument);

/*
 * Lets every CPU execute instructions: afterwards each has taken the interrupts that were signalled to it before, if it
 * takes any. How a test makes sure that something does not happen.
 */
void smp_settle(void);
void smp_settle_without(unsigned absent); /* one CPU is off, or busy */

/* Let IRQ and FIQ through on all CPUs, this one included. */
void smp_unmask_all(void);

/* Switch one off, or on again, by PSCI. */
bool smp_power_off(unsigned cpu);
bool smp_power_on(unsigned cpu);

void secondary_main(void);

#endif
