/* SPDX-License-Identifier: MIT */
/* The CPU's registers: general, special and system registers, from outside of the guest. */
#include <errno.h>

#include "arm64.h"
#include "cpu_internal.h"

uint64_t cpu_get_reg(struct cpu *cpu, int reg)
{
	uint64_t value = 0;

	uc_reg_read(cpu->uc, reg, &value);
	return value;
}

void cpu_set_reg(struct cpu *cpu, int reg, uint64_t value)
{
	uc_reg_write(cpu->uc, reg, &value);
}

static uc_arm64_cp_reg decode_sysreg(uint32_t reg)
{
	return (uc_arm64_cp_reg){
		.op0 = SYSREG_OP0(reg),
		.op1 = SYSREG_OP1(reg),
		.crn = SYSREG_CRN(reg),
		.crm = SYSREG_CRM(reg),
		.op2 = SYSREG_OP2(reg),
	};
}

uint64_t cpu_sysreg(struct cpu *cpu, uint32_t reg)
{
	uc_arm64_cp_reg r = decode_sysreg(reg);

	uc_reg_read(cpu->uc, UC_ARM64_REG_CP_REG, &r);
	return r.val;
}

uc_err cpu_set_sysreg(struct cpu *cpu, uint32_t reg, uint64_t value)
{
	uc_arm64_cp_reg r = decode_sysreg(reg);

	r.val = value;
	return uc_reg_write(cpu->uc, UC_ARM64_REG_CP_REG, &r);
}

uint32_t cpu_pstate(struct cpu *cpu)
{
	return (uint32_t)cpu_get_reg(cpu, UC_ARM64_REG_PSTATE);
}

uint64_t cpu_pc(struct cpu *cpu)
{
	return cpu_get_reg(cpu, UC_ARM64_REG_PC);
}

unsigned cpu_el(struct cpu *cpu)
{
	return PSTATE_EL(cpu_pstate(cpu));
}

/* Unicorn's numbers of x29 and x30 are not behind that of x28. */
static int x_register(unsigned number)
{
	switch (number) {
	case 29:
		return UC_ARM64_REG_X29;
	case 30:
		return UC_ARM64_REG_X30;
	default:
		return UC_ARM64_REG_X0 + (int)number;
	}
}

uint64_t cpu_x(struct cpu *cpu, unsigned number)
{
	return number == 31 ? 0 : cpu_get_reg(cpu, x_register(number));
}

void cpu_set_x(struct cpu *cpu, unsigned number, uint64_t value)
{
	if (number != 31)
		cpu_set_reg(cpu, x_register(number), value);
}

uint64_t cpu_sp(struct cpu *cpu)
{
	return cpu_get_reg(cpu, UC_ARM64_REG_SP);
}

uint64_t cpu_instructions(const struct cpu *cpu)
{
	return cpu->instructions;
}

int cpu_translate(struct cpu *cpu, uint64_t va, uint64_t *pa)
{
	const uint64_t saved = cpu_sysreg(cpu, SYS_PAR_EL1);
	uint64_t par;

	cpu_set_sysreg(cpu, SYS_AT_S1E1R, va);
	par = cpu_sysreg(cpu, SYS_PAR_EL1);
	cpu_set_sysreg(cpu, SYS_PAR_EL1, saved);
	if (par & 1)
		return -EFAULT;
	*pa = (par & 0x000ffffffffff000ull) | (va & 0xfff);
	return 0;
}
