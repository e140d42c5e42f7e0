/* SPDX-License-Identifier: MIT */
/*
 * Starting and stopping CPUs by PSCI, and calls from the boot CPU to the others
 * through a mailbox in struct cpu. Nothing here uses an interrupt: interrupts
 * are what is tested.
 */
#include "smp.h"

#include "gic.h"
#include "psci.h"
#include "tap.h"

#define STACK_SIZE 0x8000u

struct cpu cpus[MAX_CPUS];
unsigned num_cpus;

static uint8_t stacks[MAX_CPUS][STACK_SIZE] __attribute__((aligned(16)));

extern void secondary_start(void); /* start.S */

static void run_call(struct cpu *cpu)
{
	dsb();
	cpu->result = cpu->function(cpu->argument);
	dsb();
	cpu->calls_completed = cpu->calls_requested;
}

/* A CPU's life after PSCI CPU_ON. */
void secondary_main(void)
{
	struct cpu *cpu = this_cpu();

	gic_record_reset_values(&cpu->reset_values);
	gic_init_cpu();
	dsb();
	cpu->online = true;
	for (;;) {
		if (cpu->calls_completed != cpu->calls_requested)
			run_call(cpu);
		cpu_relax();
	}
}

void smp_start(unsigned cpu, cpu_function *function, uint64_t argument)
{
	struct cpu *target = &cpus[cpu];

	target->function = function;
	target->argument = argument;
	dsb();
	target->calls_requested++;
}

bool smp_wait(unsigned cpu)
{
	struct cpu *target = &cpus[cpu];
	bool answered = false;

	/* Longer than any one wait of the function that was called: it is to report its own failure. */
	for (unsigned i = 0; i < 4 && !answered; i++)
		answered = WAIT_FOR(target->calls_completed == target->calls_requested);
	dsb();
	return answered;
}

uint64_t smp_call(unsigned cpu, cpu_function *function, uint64_t argument)
{
	if (&cpus[cpu] == this_cpu())
		return function(argument);
	smp_start(cpu, function, argument);
	if (!smp_wait(cpu))
		tap_bail_out("a CPU does not answer");
	return cpus[cpu].result;
}

void smp_call_all_but(unsigned absent, cpu_function *function, uint64_t argument)
{
	for (unsigned i = 1; i < num_cpus; i++)
		if (i != absent)
			smp_start(i, function, argument);
	if (absent != 0)
		function(argument);
	for (unsigned i = 1; i < num_cpus; i++)
		if (i != absent && !smp_wait(i))
			tap_bail_out("a CPU does not answer");
}

void smp_call_all(cpu_function *function, uint64_t argument)
{
	smp_call_all_but(MAX_CPUS, function, argument);
}

static uint64_t do_nothing(uint64_t unused)
{
	(void)unused;
	isb();
	return 0;
}

void smp_settle_without(unsigned absent)
{
	/* Twice: the interrupts of the first round may have raised others. */
	smp_call_all_but(absent, do_nothing, 0);
	smp_call_all_but(absent, do_nothing, 0);
}

void smp_settle(void)
{
	smp_settle_without(MAX_CPUS);
}

static uint64_t unmask_here(uint64_t unused)
{
	(void)unused;
	unmask_all();
	return 0;
}

void smp_unmask_all(void)
{
	smp_call_all(unmask_here, 0);
}

static uint64_t power_off_here(uint64_t unused)
{
	(void)unused;
	this_cpu()->online = false;
	dsb();
	psci_cpu_off();
	tap_bail_out("PSCI CPU_OFF returned");
}

bool smp_power_off(unsigned cpu)
{
	smp_start(cpu, power_off_here, 0);
	return WAIT_FOR(psci_affinity_info(cpus[cpu].mpidr) == PSCI_AFFINITY_OFF);
}

bool smp_power_on(unsigned cpu)
{
	struct cpu *target = &cpus[cpu];

	target->calls_requested = target->calls_completed; /* it is off: the call that switched it off never ended */
	if (psci_cpu_on(target->mpidr, (uintptr_t)secondary_start, (uintptr_t)target) != PSCI_SUCCESS)
		return false;
	return WAIT_FOR(target->online);
}

void smp_start_all(void)
{
	for (unsigned i = 1; i < num_cpus; i++) {
		cpus[i].stack_top = (uintptr_t)stacks[i] + STACK_SIZE;
		if (!smp_power_on(i))
			tap_bail_out("a CPU does not start");
	}
}
