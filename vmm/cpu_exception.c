/* SPDX-License-Identifier: MIT */
/*
 * Exceptions: entering EL1 for those that Unicorn finds and for interrupts, and
 * what is emulated in them: hypercalls, and the system registers that it lacks.
 */
#include <errno.h>
#include <string.h>

#include "arm64.h"
#include "cpu_internal.h"

/* Exception numbers that the exception hook gets. */
enum {
	UC_EXC_UNDEFINED = 1,
	UC_EXC_SVC = 2,
	UC_EXC_PREFETCH_ABORT = 3,
	UC_EXC_DATA_ABORT = 4,
	UC_EXC_BREAKPOINT = 7,
	UC_EXC_HVC = 11,
	UC_EXC_SMC = 13,
};

/* The instructions MRS and MSR (register). The encoding of the system register is the instruction's bits 20:5. */
#define INSN_IS_MRS_OR_MSR(insn) (((insn)&0xffd00000u) == 0xd5100000u)
#define INSN_MRS                 (1u << 21)
#define INSN_SYSREG(insn)        (((insn) >> 5) & 0xffffu)

static uint32_t context_u32(const struct cpu *cpu, size_t offset)
{
	uint32_t value;

	memcpy(&value, (const char *)cpu->context + offset, sizeof(value));
	return value;
}

static uint64_t context_u64(const struct cpu *cpu, size_t offset)
{
	uint64_t value;

	memcpy(&value, (const char *)cpu->context + offset, sizeof(value));
	return value;
}

static uint64_t context_reg(struct cpu *cpu, int reg)
{
	uint64_t value = 0;

	uc_context_reg_read(cpu->context, reg, &value);
	return value;
}

void cpu_set_context_reg(struct cpu *cpu, int reg, uint64_t value)
{
	uc_context_reg_write(cpu->context, reg, &value);
}

void cpu_set_context_pc(struct cpu *cpu, uint64_t pc)
{
	memcpy((char *)cpu->context + cpu_layout.pc, &pc, sizeof(pc));
}

void cpu_take_hflags(struct cpu *cpu)
{
	cpu->hflags_el1 = context_u32(cpu, cpu_layout.hflags);
	cpu->hflags_stale = false;
}

static void step_over_instruction(struct cpu *cpu)
{
	uc_context_save(cpu->uc, cpu->context);
	cpu_set_context_pc(cpu, context_u64(cpu, cpu_layout.pc) + 4);
	uc_context_restore(cpu->uc, cpu->context);
}

/* Enter EL1 through the vector at @offset of the right group; the context has been saved. */
static void enter_vector(struct cpu *cpu, unsigned offset, uint64_t return_address)
{
	const uint32_t pstate = cpu_pstate(cpu);
	const bool from_el0 = PSTATE_EL(pstate) == 0;
	const bool on_sp_elx = pstate & PSTATE_SP;
	const unsigned group = from_el0 ? VECTOR_LOWER : on_sp_elx ? VECTOR_CURRENT_SPX : VECTOR_CURRENT_SP0;

	cpu_set_context_reg(cpu, UC_ARM64_REG_ELR_EL1, return_address);
	if (from_el0)
		memcpy((char *)cpu->context + cpu_layout.hflags, &cpu->hflags_el1, sizeof(cpu->hflags_el1));
	else
		cpu_take_hflags(cpu);
	/* SP is a copy of the bank in use: swap the banks as the hardware does by selecting SP_EL1. */
	if (from_el0 || !on_sp_elx) {
		cpu_set_context_reg(cpu, UC_ARM64_REG_SP_EL0, context_reg(cpu, UC_ARM64_REG_SP));
		cpu_set_context_reg(cpu, UC_ARM64_REG_SP, context_reg(cpu, UC_ARM64_REG_SP_EL1));
	}
	cpu_set_context_reg(cpu, UC_ARM64_REG_PSTATE, (pstate & PSTATE_NZCV) | PSTATE_DAIF | PSTATE_EL1H);
	cpu_set_context_pc(cpu, context_reg(cpu, UC_ARM64_REG_VBAR_EL1) + group + offset);
	uc_context_restore(cpu->uc, cpu->context);
}

/* SPSR_EL1 has no number in the context interface: it is written to the CPU, before the context is taken from it. */
static void save_for_exception(struct cpu *cpu)
{
	cpu_set_sysreg(cpu, SYS_SPSR_EL1, cpu_pstate(cpu));
	uc_context_save(cpu->uc, cpu->context);
}

void cpu_enter_interrupt(struct cpu *cpu, unsigned lines)
{
	save_for_exception(cpu);
	enter_vector(cpu, lines & CPU_LINE_FIQ ? VECTOR_FIQ : VECTOR_IRQ, context_u64(cpu, cpu_layout.pc));
}

static void enter_undefined(struct cpu *cpu)
{
	save_for_exception(cpu);
	cpu_set_context_reg(cpu, UC_ARM64_REG_ESR_EL1, ESR_UNDEFINED);
	enter_vector(cpu, VECTOR_SYNC, context_u64(cpu, cpu_layout.pc));
}

/* An exception that Unicorn has found: it knows the syndrome and the fault address, but does not enter the vector. */
static void enter_synchronous(struct cpu *cpu, bool is_abort)
{
	save_for_exception(cpu);
	cpu_set_context_reg(cpu, UC_ARM64_REG_ESR_EL1, context_u32(cpu, cpu_layout.syndrome));
	if (is_abort)
		cpu_set_context_reg(cpu, UC_ARM64_REG_FAR_EL1, context_u64(cpu, cpu_layout.far));
	enter_vector(cpu, VECTOR_SYNC, context_u64(cpu, cpu_layout.pc));
}

static void report_undefined_sysreg(struct cpu *cpu, bool is_read, uint32_t reg)
{
	cpu_raise_fault(cpu,
			"vCPU %u: %s system register S%u_%u_C%u_C%u_%u, which is unknown or not accessible this way, "
			"PC 0x%016llx",
			cpu->index, is_read ? "read of" : "write to", SYSREG_OP0(reg), SYSREG_OP1(reg), SYSREG_CRN(reg),
			SYSREG_CRM(reg), SYSREG_OP2(reg), (unsigned long long)cpu_pc(cpu));
}

static void emulate_noted_access(struct cpu *cpu)
{
	const struct noted_access access = cpu->noted;
	uint64_t value = access.value;
	int ret;

	cpu->noted.valid = false;
	if (cpu_el(cpu) == 0) {
		enter_undefined(cpu);
		return;
	}
	ret = access.is_read ? cpu->ops->extra_read(cpu->owner, access.reg, &value) :
			       cpu->ops->extra_write(cpu->owner, access.reg, value);
	if (ret == -ENOENT) {
		report_undefined_sysreg(cpu, access.is_read, access.reg);
		return;
	}
	if (ret) {
		enter_undefined(cpu);
		return;
	}
	if (access.is_read && access.rt != UC_ARM64_REG_XZR)
		cpu_set_reg(cpu, access.rt, value);
	step_over_instruction(cpu);
}

/*
 * An undefined instruction. At EL1 an MRS or MSR among them is a register that the machine lacks: the run ends there, so
 * that its name is seen. All the rest is the guest's to handle.
 */
static void handle_undefined(struct cpu *cpu)
{
	uint32_t insn;

	if (cpu->noted.valid) {
		emulate_noted_access(cpu);
		return;
	}
	if (cpu_el(cpu) == 1 && cpu_read_instruction(cpu, cpu_pc(cpu), &insn) == 0 && INSN_IS_MRS_OR_MSR(insn)) {
		report_undefined_sysreg(cpu, insn & INSN_MRS, INSN_SYSREG(insn));
		return;
	}
	enter_synchronous(cpu, false);
}

static void handle_hypercall(struct cpu *cpu)
{
	uint64_t x[4];

	for (unsigned i = 0; i < 4; i++)
		x[i] = cpu_x(cpu, i);
	cpu->ops->hypercall(cpu->owner, x);
	cpu_set_reg(cpu, UC_ARM64_REG_X0, x[0]);
	if (cpu->stop_wanted) {
		cpu->stop_reason = STOP_SLICE;
		uc_emu_stop(cpu->uc);
	}
}

void cpu_on_exception(uc_engine *uc, uint32_t number, void *user)
{
	struct cpu *cpu = user;

	(void)uc;
	switch (number) {
	case UC_EXC_UNDEFINED:
		handle_undefined(cpu);
		break;
	case UC_EXC_HVC:
	case UC_EXC_SMC:
		handle_hypercall(cpu);
		break;
	case UC_EXC_SVC:
	case UC_EXC_BREAKPOINT:
		enter_synchronous(cpu, false);
		break;
	case UC_EXC_PREFETCH_ABORT:
	case UC_EXC_DATA_ABORT:
		enter_synchronous(cpu, true);
		break;
	default:
		cpu_raise_fault(cpu, "vCPU %u: exception %u, which this machine does not have, PC 0x%016llx",
				cpu->index, number, (unsigned long long)cpu_pc(cpu));
	}
	cpu->noted.valid = false;
}
