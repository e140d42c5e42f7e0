/* SPDX-License-Identifier: MIT */
/*
 * The CPU layer over Unicorn 2.0.1.
 *
 * What is peculiar about that version, and what is done here about each:
 *
 * 1. With the guest's MMU on it looks up the *virtual* address in the physical
 *    map, and refuses what it does not find there. So the whole 64-bit space is
 *    mapped: what is neither memory nor a device is a *hole*, a device region
 *    that reports the access (cpu_map_done()).
 * 2. uc_emu_stop() in the middle of a block makes instructions run twice. It is
 *    only called from the block hook and from the exception hook. A write to PC
 *    cancels it, so PC is changed through a saved context only.
 * 3. The translator's cached view of the CPU's mode ("hflags") is not rebuilt
 *    when PSTATE is written from outside. Entering EL1 from EL0 needs the hflags
 *    of EL1, which are taken from the CPU while it is there, and put into the
 *    saved context: cpu_layout.c finds where they are.
 * 4. Registers that it does not have raise an undefined exception *after* the
 *    hook for MRS and MSR has seen them. The hook notes the access; the exception
 *    hook carries it out and steps over the instruction.
 * 5. It has no interrupt lines. The block hook looks at them between blocks.
 */
#include "cpu.h"
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "arm64.h"
#include "cpu_internal.h"
#include "util.h"

/* ---- Leaving the run ---------------------------------------------------------- */

const char *cpu_fault(const struct cpu *cpu)
{
	return cpu->fault;
}

/* The guest cannot go on. Only the first reason counts: what comes after it is a consequence. */
void cpu_raise_fault(struct cpu *cpu, const char *format, ...)
{
	va_list args;

	if (cpu->stop_reason == STOP_FAULT)
		return;
	va_start(args, format);
	vsnprintf(cpu->fault, sizeof(cpu->fault), format, args);
	va_end(args);
	cpu->stop_reason = STOP_FAULT;
	cpu->check_at = 0;
	/* In a device's callback this breaks rule 2: the guest's state is lost, but nobody looks at it any more. */
	uc_emu_stop(cpu->uc);
}

void cpu_stop(struct cpu *cpu)
{
	cpu->stop_wanted = true;
	cpu->check_at = 0;
}

void cpu_kick(struct cpu *cpu)
{
	atomic_store(&cpu->kicked, true);
}

void cpu_recheck_lines(struct cpu *cpu)
{
	cpu->recheck_lines = true;
	cpu->check_at = 0;
}

void cpu_limit_slice(struct cpu *cpu, uint64_t instructions)
{
	const uint64_t end = cpu->instructions + instructions;

	if (instructions > UINT64_MAX - cpu->instructions || end >= cpu->slice_end)
		return;
	cpu->slice_end = end;
	if (cpu->check_at > end)
		cpu->check_at = end;
}

/* The lines that are up and not masked. */
static unsigned interrupts_to_take(struct cpu *cpu)
{
	const uint32_t pstate = cpu->lines ? cpu_pstate(cpu) : 0;
	unsigned lines = cpu->lines;

	if (pstate & PSTATE_I)
		lines &= ~CPU_LINE_IRQ;
	if (pstate & PSTATE_F)
		lines &= ~CPU_LINE_FIQ;
	return lines;
}

/* Called between two blocks when there is something to look at. */
static void check_between_blocks(struct cpu *cpu)
{
	if (cpu->stop_reason == STOP_FAULT)
		return; /* the run is being left */
	/* Only rises are kicked for: what is about to be taken may have been withdrawn meanwhile. */
	if (cpu->recheck_lines || interrupts_to_take(cpu)) {
		cpu->recheck_lines = false;
		cpu->lines = cpu->ops->poll_lines(cpu->owner);
	}
	if (atomic_load_explicit(&cpu->kicked, memory_order_relaxed) && atomic_exchange(&cpu->kicked, false))
		cpu->stop_wanted = true;
	if (cpu->stop_wanted || cpu->instructions >= cpu->slice_end)
		cpu->stop_reason = STOP_SLICE;
	else if (interrupts_to_take(cpu))
		cpu->stop_reason = STOP_LINES;
	if (cpu->stop_reason != STOP_NONE)
		uc_emu_stop(cpu->uc);
	/* A line that is up but masked has to be looked at again before each block. */
	cpu->check_at = cpu->lines ? 0 : cpu->slice_end;
}

/* A block that is not run because the run is being left is not counted: this hook will see it again. */
static void on_block(uc_engine *uc, uint64_t address, uint32_t size, void *user)
{
	struct cpu *cpu = user;

	(void)uc;
	if (__builtin_expect(cpu->instructions >= cpu->check_at, 0) ||
	    __builtin_expect(atomic_load_explicit(&cpu->kicked, memory_order_relaxed), 0)) {
		check_between_blocks(cpu);
		if (cpu->stop_reason != STOP_NONE)
			return;
	}
	cpu->instructions += size / 4;
	cpu->block.pc = address;
	cpu->block.size = size;
}

/* ---- Life --------------------------------------------------------------------------- */

int cpu_layer_init(void)
{
	unsigned major = 0;
	unsigned minor = 0;
	int ret;

	uc_version(&major, &minor);
	if (major != 2 || minor != 0) {
		message("Unicorn 2.0 is needed, this is %u.%u", major, minor);
		return -ENOTSUP;
	}
	ret = cpu_find_layout();
	return ret ? ret : cpu_run_selftest();
}

static uc_err add_hooks(struct cpu *cpu)
{
	uc_engine *uc = cpu->uc;
	uc_hook hook;
	uc_err err;

	/* uc_hook_add() is variadic and takes a void pointer for functions of different types. */
	err = uc_hook_add(uc, &hook, UC_HOOK_INTR, (void *)cpu_on_exception, cpu, 1, 0);
	err = err ? err : uc_hook_add(uc, &hook, UC_HOOK_INSN, (void *)cpu_on_mrs, cpu, 1, 0, UC_ARM64_INS_MRS);
	err = err ? err : uc_hook_add(uc, &hook, UC_HOOK_INSN, (void *)cpu_on_msr, cpu, 1, 0, UC_ARM64_INS_MSR);
	err = err ? err : uc_hook_add(uc, &hook, UC_HOOK_INSN, (void *)cpu_on_sys, cpu, 1, 0, UC_ARM64_INS_SYS);
	err = err ? err : uc_hook_add(uc, &hook, UC_HOOK_MEM_FETCH_PROT, (void *)cpu_on_fetch_refused, cpu, 1, 0);
	err = err ? err : uc_hook_add(uc, &hook, UC_HOOK_BLOCK, (void *)on_block, cpu, 1, 0);
	return err;
}

static uc_err open_engine(struct cpu *cpu)
{
	uc_err err;

	err = uc_open(UC_ARCH_ARM64, UC_MODE_ARM, &cpu->uc);
	if (err)
		return err;
	err = uc_ctl_set_cpu_model(cpu->uc, UC_CPU_ARM64_A72);
	/* Without an exit address no instruction of the guest is taken for the end of the run. */
	err = err ? err : uc_ctl_exits_enable(cpu->uc);
	err = err ? err : uc_context_alloc(cpu->uc, &cpu->context);
	err = err ? err : uc_context_alloc(cpu->uc, &cpu->reset_context);
	err = err ? err : add_hooks(cpu);
	/* Non-secure, AArch64 below, HVC enabled: what firmware leaves behind. */
	err = err ? err : cpu_set_sysreg(cpu, SYS_SCR_EL3, 0x501);
	err = err ? err : cpu_set_sysreg(cpu, SYS_HCR_EL2, 1ull << 31);
	err = err ? err : uc_context_save(cpu->uc, cpu->reset_context);
	return err;
}

int cpu_create(unsigned index, const struct cpu_ops *ops, void *owner, struct cpu **result)
{
	struct cpu *cpu = calloc(1, sizeof(*cpu));
	uc_err err;

	if (!cpu)
		return -ENOMEM;
	cpu->index = index;
	cpu->ops = ops;
	cpu->owner = owner;
	err = open_engine(cpu);
	if (err) {
		cpu_destroy(cpu);
		return err == UC_ERR_NOMEM ? -ENOMEM : -ENOTSUP;
	}
	*result = cpu;
	return 0;
}

void cpu_destroy(struct cpu *cpu)
{
	if (!cpu)
		return;
	if (cpu->context)
		uc_context_free(cpu->context);
	if (cpu->reset_context)
		uc_context_free(cpu->reset_context);
	if (cpu->uc)
		uc_close(cpu->uc);
	for (unsigned i = 0; i < cpu->num_regions; i++)
		free(cpu->regions[i]);
	free(cpu);
}

void cpu_start(struct cpu *cpu, uint64_t pc, uint64_t x0)
{
	uc_context_restore(cpu->uc, cpu->reset_context);
	uc_context_save(cpu->uc, cpu->context);
	cpu_take_hflags(cpu);
	cpu_set_context_reg(cpu, UC_ARM64_REG_X0, x0);
	cpu_set_context_reg(cpu, UC_ARM64_REG_PSTATE, PSTATE_DAIF | PSTATE_EL1H);
	cpu_set_context_pc(cpu, pc);
	uc_context_restore(cpu->uc, cpu->context);
	cpu->noted.valid = false;
	cpu->tlb_flush_wanted = true;
	cpu->all_code_stale = true;
}

enum cpu_exit cpu_run(struct cpu *cpu, uint64_t slice, unsigned lines)
{
	uc_err err;

	cpu_apply_invalidations(cpu);
	cpu->slice_end = cpu->instructions + slice;
	cpu->lines = lines;
	cpu->recheck_lines = false;
	cpu->stop_wanted = false;
	do {
		const unsigned interrupts = interrupts_to_take(cpu);

		if (interrupts)
			cpu_enter_interrupt(cpu, interrupts);
		cpu->check_at = cpu->lines ? 0 : cpu->slice_end;
		cpu->stop_reason = STOP_NONE;
		err = uc_emu_start(cpu->uc, cpu_pc(cpu), UINT64_MAX, 0, 0);
		if (err)
			cpu_raise_fault(cpu, "vCPU %u: the emulator gives up: %s, PC 0x%016llx", cpu->index,
					uc_strerror(err), (unsigned long long)cpu_pc(cpu));
	} while (cpu->stop_reason == STOP_LINES);

	switch (cpu->stop_reason) {
	case STOP_FAULT:
		return CPU_EXIT_FAULT;
	case STOP_NONE:
		return CPU_EXIT_WAIT;
	default:
		return CPU_EXIT_SLICE;
	}
}
