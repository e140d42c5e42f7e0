/* SPDX-License-Identifier: MIT */
/*
 * System registers and system instructions that the guest executes: what the
 * machine answers, what is noted for the exception that follows, and the
 * invalidations of TLB and translated code that one CPU asks of the others.
 */
#include "arm64.h"
#include "cpu_internal.h"

#define PAGE_SIZE 0x1000ull

static uint32_t encode_sysreg(const uc_arm64_cp_reg *r)
{
	return SYSREG(r->op0, r->op1, r->crn, r->crm, r->op2);
}

/* Called before Unicorn's own permission checks. Returning 1 means that the instruction is done. */
uint32_t cpu_on_mrs(uc_engine *uc, uc_arm64_reg rt, const uc_arm64_cp_reg *r, void *user)
{
	struct cpu *cpu = user;
	const uint32_t reg = encode_sysreg(r);
	uint64_t value;

	(void)uc;
	if (cpu->ops->is_extra(reg)) {
		cpu->noted = (struct noted_access){ .valid = true, .is_read = true, .reg = reg, .rt = (int)rt };
		return 0;
	}
	if (!cpu->ops->is_overridden(reg) || !cpu->ops->override_read(cpu->owner, reg, cpu_el(cpu), &value))
		return 0;
	if (rt != UC_ARM64_REG_XZR)
		cpu_set_reg(cpu, (int)rt, value);
	return 1;
}

/* Can a write to @reg change how the translator sees EL1? Those that every exception and task switch makes cannot. */
static bool affects_hflags(uint32_t reg)
{
	switch (reg) {
	case SYS_SPSR_EL1:
	case SYS_ELR_EL1:
	case SYS_SP_EL0:
	case SYS_TPIDR_EL1:
	case SYS_TPIDR_EL0:
	case SYS_TPIDRRO_EL0:
		return false;
	default:
		return true;
	}
}

uint32_t cpu_on_msr(uc_engine *uc, uc_arm64_reg rt, const uc_arm64_cp_reg *r, void *user)
{
	struct cpu *cpu = user;
	const uint32_t reg = encode_sysreg(r);

	(void)rt;
	if (cpu->ops->is_extra(reg)) {
		cpu->noted = (struct noted_access){ .valid = true, .reg = reg, .value = r->val };
		return 0;
	}
	if (cpu->ops->is_overridden(reg))
		return cpu->ops->override_write(cpu->owner, reg, cpu_el(cpu), r->val);
	/*
	 * ERET cannot be hooked, but each ERET to EL0 is preceded by a write to one of these: the last place where EL1's
	 * hflags can be seen.
	 */
	if ((reg == SYS_ELR_EL1 || reg == SYS_SPSR_EL1) && cpu->hflags_stale) {
		uc_context_save(uc, cpu->context);
		cpu_take_hflags(cpu);
	}
	if (affects_hflags(reg))
		cpu->hflags_stale = true;
	return 0;
}

/* TLBI and IC work on this CPU by themselves; what goes to the Inner Shareable domain has to be told to the others. */
uint32_t cpu_on_sys(uc_engine *uc, uc_arm64_reg rt, const uc_arm64_cp_reg *r, void *user)
{
	struct cpu *cpu = user;
	const uint32_t op = encode_sysreg(r);

	(void)uc;
	(void)rt;
	if (r->crn == 8 && r->crm == 3 && r->op1 == 0)
		cpu->ops->broadcast_tlbi(cpu->owner, SYSREG(1, 0, 8, 7, r->op2), r->val);
	else if (op == SYS_IC_IALLUIS || op == SYS_IC_IVAU)
		cpu->ops->broadcast_ic(cpu->owner, op == SYS_IC_IALLUIS, r->val);
	return 0;
}

void cpu_invalidate_tlb(struct cpu *cpu, uint32_t op, uint64_t value)
{
	if (cpu->num_tlb_requests < MAX_PENDING_TLB)
		cpu->tlb_requests[cpu->num_tlb_requests++] = (struct tlb_request){ .op = op, .value = value };
	else
		cpu->tlb_flush_wanted = true;
}

void cpu_invalidate_code(struct cpu *cpu, uint64_t pa)
{
	const uint64_t page = pa & ~(PAGE_SIZE - 1);

	for (unsigned i = cpu->num_stale_pages; i > 0; i--)
		if (cpu->stale_pages[i - 1] == page)
			return;
	if (cpu->num_stale_pages < MAX_STALE_PAGES)
		cpu->stale_pages[cpu->num_stale_pages++] = page;
	else
		cpu->all_code_stale = true;
}

void cpu_invalidate_all_code(struct cpu *cpu)
{
	cpu->all_code_stale = true;
}

/*
 * Drop translated blocks by physical address. Unicorn takes a virtual one: the MMU is switched off meanwhile. (Its own
 * way to drop everything, uc_ctl_flush_tlb(), clears a buffer of 1 GiB.)
 */
static void drop_stale_code(struct cpu *cpu)
{
	const uint64_t sctlr = cpu_sysreg(cpu, SYS_SCTLR_EL1);

	cpu_set_sysreg(cpu, SYS_SCTLR_EL1, sctlr & ~1ull);
	if (cpu->all_code_stale) {
		for (unsigned i = 0; i < cpu->num_regions; i++)
			if (cpu->regions[i]->is_ram)
				uc_ctl_remove_cache(cpu->uc, cpu->regions[i]->base,
						    cpu->regions[i]->base + cpu->regions[i]->size);
	} else {
		for (unsigned i = 0; i < cpu->num_stale_pages; i++)
			uc_ctl_remove_cache(cpu->uc, cpu->stale_pages[i], cpu->stale_pages[i] + PAGE_SIZE);
	}
	cpu_set_sysreg(cpu, SYS_SCTLR_EL1, sctlr);
	cpu->num_stale_pages = 0;
	cpu->all_code_stale = false;
}

void cpu_apply_invalidations(struct cpu *cpu)
{
	if (cpu->tlb_flush_wanted)
		cpu_set_sysreg(cpu, SYS_TLBI_VMALLE1, 0);
	else
		for (unsigned i = 0; i < cpu->num_tlb_requests; i++)
			cpu_set_sysreg(cpu, cpu->tlb_requests[i].op, cpu->tlb_requests[i].value);
	cpu->num_tlb_requests = 0;
	cpu->tlb_flush_wanted = false;
	/* A CPU that has not run yet has translated nothing. */
	if (cpu->instructions == 0)
		cpu->num_stale_pages = 0;
	else if (cpu->all_code_stale || cpu->num_stale_pages)
		drop_stale_code(cpu);
	cpu->all_code_stale = false;
}
