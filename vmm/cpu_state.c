/* SPDX-License-Identifier: MIT */
/*
 * Saving and loading a CPU, register by register: what an Arm CPU is known by, and
 * nothing of Unicorn's own, so that an image does not depend on its version.
 *
 * The translator's cached view of the mode ("hflags": see cpu.c, rule 3) follows from
 * the registers, but only an instruction makes it anew. So a loaded CPU executes two
 * short programs before it gets its PC, with the registers that count in place and the
 * MMU off: one writes SCTLR_EL1, which shows the view of EL1, and one goes to EL0.
 */
#include <errno.h>
#include <string.h>

#include "arm64.h"
#include "cpu_internal.h"
#include "snapshot_file.h"

#define SCTLR_M    1ull
#define SCTLR_NTWI (1ull << 16) /* WFI at EL0 does not trap */

#define PSTATE_IL    (1u << 20)
#define PSTATE_MODE  0x1fu
#define PSTATE_EL0T  0x0u
#define PSTATE_EL1T  0x4u
#define PSTATE_SAVED (PSTATE_NZCV | PSTATE_IL | PSTATE_DAIF | PSTATE_MODE)

#define OSLSR_LOCKED (1u << 1)
#define SYS_OSLAR    SYSREG(2, 0, 1, 0, 4)
#define SYS_OSLSR    SYSREG(2, 0, 1, 1, 4)

#define NUM_X 31u
#define NUM_V 32u

/* In the order in which they are loaded. Those of the timers are the machine's. */
static const uint32_t saved_sysregs[] = {
	SYS_SCTLR_EL1,
	SYSREG(3, 0, 1, 0, 2),  /* CPACR_EL1 */
	SYSREG(3, 0, 2, 0, 0),  /* TTBR0_EL1 */
	SYSREG(3, 0, 2, 0, 1),  /* TTBR1_EL1 */
	SYSREG(3, 0, 2, 0, 2),  /* TCR_EL1 */
	SYSREG(3, 0, 10, 2, 0), /* MAIR_EL1 */
	SYSREG(3, 0, 13, 0, 1), /* CONTEXTIDR_EL1 */
	SYSREG(3, 2, 0, 0, 0),  /* CSSELR_EL1 */
	SYSREG(3, 0, 6, 0, 0),  /* FAR_EL1 */
	SYS_ESR_EL1,
	SYS_PAR_EL1,
	SYS_VBAR_EL1,
	SYS_TPIDR_EL1,
	SYS_TPIDR_EL0,
	SYS_TPIDRRO_EL0,
	SYS_CNTKCTL_EL1,
	SYS_SPSR_EL1,
	SYS_ELR_EL1,
	SYSREG(2, 0, 0, 0, 4), /* DBGBVR0_EL1 */
	SYSREG(2, 0, 0, 0, 5), /* DBGBCR0_EL1 */
	SYSREG(2, 0, 0, 0, 6), /* DBGWVR0_EL1 */
	SYSREG(2, 0, 0, 0, 7), /* DBGWCR0_EL1 */
	SYSREG(2, 0, 0, 2, 2), /* MDSCR_EL1 */
};

#define NUM_SYSREGS (sizeof(saved_sysregs) / sizeof(saved_sysregs[0]))
#define IS_DEBUG(r) (SYSREG_OP0(r) == 2)

struct cpu_saved {
	uint64_t x[NUM_X];
	uint64_t sp; /* the bank in use */
	uint64_t sp_el0;
	uint64_t sp_el1;
	uint64_t pc;
	uint32_t pstate;
	uint32_t fpcr;
	uint32_t fpsr;
	uint64_t v[NUM_V][2];
	uint64_t sysregs[NUM_SYSREGS];
	bool os_locked;
};

/* ---- Saving ----------------------------------------------------------------------- */

void cpu_save(struct cpu *cpu, struct snapshot_out *out)
{
	for (unsigned i = 0; i < NUM_X; i++)
		put_u64(out, cpu_x(cpu, i));
	put_u64(out, cpu_sp(cpu));
	put_u64(out, cpu_get_reg(cpu, UC_ARM64_REG_SP_EL0));
	put_u64(out, cpu_get_reg(cpu, UC_ARM64_REG_SP_EL1));
	put_u64(out, cpu_pc(cpu));
	put_u32(out, cpu_pstate(cpu) & PSTATE_SAVED);
	put_u32(out, (uint32_t)cpu_get_reg(cpu, UC_ARM64_REG_FPCR));
	put_u32(out, (uint32_t)cpu_get_reg(cpu, UC_ARM64_REG_FPSR));
	for (unsigned i = 0; i < NUM_V; i++) {
		uint64_t v[2] = { 0 };

		uc_reg_read(cpu->uc, UC_ARM64_REG_Q0 + (int)i, v);
		put_u64(out, v[0]);
		put_u64(out, v[1]);
	}
	put_u8(out, (cpu_sysreg(cpu, SYS_OSLSR) & OSLSR_LOCKED) != 0);
	put_u32(out, NUM_SYSREGS);
	for (unsigned i = 0; i < NUM_SYSREGS; i++) {
		put_u32(out, saved_sysregs[i]);
		put_u64(out, cpu_sysreg(cpu, saved_sysregs[i]));
	}
}

/* ---- Loading ---------------------------------------------------------------------- */

static void read_saved(struct snapshot_in *in, struct cpu_saved *s)
{
	for (unsigned i = 0; i < NUM_X; i++)
		s->x[i] = get_u64(in);
	s->sp = get_u64(in);
	s->sp_el0 = get_u64(in);
	s->sp_el1 = get_u64(in);
	s->pc = get_u64(in);
	s->pstate = get_u32(in);
	s->fpcr = get_u32(in);
	s->fpsr = get_u32(in);
	for (unsigned i = 0; i < NUM_V; i++) {
		s->v[i][0] = get_u64(in);
		s->v[i][1] = get_u64(in);
	}
	s->os_locked = get_bool(in);
	expect_u32(in, NUM_SYSREGS, "it has another number of system registers than a CPU");
	for (unsigned i = 0; i < NUM_SYSREGS; i++) {
		expect_u32(in, saved_sysregs[i], "it has other system registers than a CPU");
		s->sysregs[i] = get_u64(in);
	}
	if ((s->pstate & ~PSTATE_SAVED) ||
	    ((s->pstate & PSTATE_MODE) != PSTATE_EL0T && (s->pstate & PSTATE_MODE) != PSTATE_EL1T &&
	     (s->pstate & PSTATE_MODE) != PSTATE_EL1H))
		snapshot_in_wrong(in, "PSTATE is that of no CPU at EL0 or EL1");
	if (s->pc & 3)
		snapshot_in_wrong(in, "the PC is not aligned");
}

/* Run @program, which ends with WFI, at the start of memory, at EL1 with all masked. Leaves the context saved. */
static int run_program(struct cpu *cpu, const uint32_t *program, size_t size, uint64_t x0)
{
	static const uint32_t nothing[4];
	uint64_t base = 0;
	uc_err err;

	for (unsigned i = 0; i < cpu->num_regions; i++)
		if (cpu->regions[i]->is_ram)
			base = cpu->regions[i]->base;
	uc_context_save(cpu->uc, cpu->context);
	cpu_set_context_reg(cpu, UC_ARM64_REG_X0, x0);
	cpu_set_context_reg(cpu, UC_ARM64_REG_PSTATE, PSTATE_DAIF | PSTATE_EL1H);
	cpu_set_context_reg(cpu, UC_ARM64_REG_ELR_EL1, base + 4);
	cpu_set_context_pc(cpu, base);
	uc_context_restore(cpu->uc, cpu->context);
	cpu->stop_reason = STOP_NONE;
	cpu->check_at = UINT64_MAX;
	err = uc_mem_write(cpu->uc, base, program, size);
	err = err ? err : uc_emu_start(cpu->uc, base, UINT64_MAX, 0, 0);
	/* The next program lies in the same place. */
	uc_ctl_remove_cache(cpu->uc, base, base + 0x1000);
	uc_mem_write(cpu->uc, base, nothing, sizeof(nothing));
	uc_context_save(cpu->uc, cpu->context);
	return err || cpu->stop_reason != STOP_NONE ? -ENOTSUP : 0;
}

/* @view is how the translator sees the mode that the CPU is to be in. */
static int find_view(struct cpu *cpu, const struct cpu_saved *s, uint32_t *view)
{
	static const uint32_t to_el1[] = { 0xd5181000, 0xd5033fdf, 0xd503207f }; /* msr sctlr_el1, x0; isb; wfi */
	static const uint32_t to_el0[] = { 0xd69f03e0, 0xd503207f };             /* eret; wfi */
	const uint64_t sctlr = (s->sysregs[0] & ~SCTLR_M) | SCTLR_NTWI;
	int ret;

	ret = run_program(cpu, to_el1, sizeof(to_el1), sctlr);
	if (ret)
		return ret;
	cpu_take_hflags(cpu);
	*view = cpu->hflags_el1;
	if (PSTATE_EL(s->pstate) != 0)
		return 0;
	cpu_set_sysreg(cpu, SYS_SPSR_EL1, 0);
	ret = run_program(cpu, to_el0, sizeof(to_el0), 0);
	if (ret || cpu_el(cpu) != 0)
		return -ENOTSUP;
	memcpy(view, (const char *)cpu->context + cpu_layout.hflags, sizeof(*view));
	return 0;
}

/* Returns 0, or -EBADMSG if a register does not take the value. */
static int set_sysregs(struct cpu *cpu, const struct cpu_saved *s)
{
	for (unsigned i = 0; i < NUM_SYSREGS; i++) {
		cpu_set_sysreg(cpu, saved_sysregs[i], s->sysregs[i]);
		if (cpu_sysreg(cpu, saved_sysregs[i]) != s->sysregs[i])
			return -EBADMSG;
	}
	cpu_set_sysreg(cpu, SYS_OSLAR, s->os_locked);
	return 0;
}

static void set_registers(struct cpu *cpu, const struct cpu_saved *s, uint32_t view)
{
	cpu_set_reg(cpu, UC_ARM64_REG_FPCR, s->fpcr);
	cpu_set_reg(cpu, UC_ARM64_REG_FPSR, s->fpsr);
	for (unsigned i = 0; i < NUM_V; i++)
		uc_reg_write(cpu->uc, UC_ARM64_REG_Q0 + (int)i, s->v[i]);
	for (unsigned i = 0; i < NUM_X; i++)
		cpu_set_x(cpu, i, s->x[i]);
	/* The rest together, because writing some of it has effects. */
	uc_context_save(cpu->uc, cpu->context);
	cpu_set_context_reg(cpu, UC_ARM64_REG_SP_EL0, s->sp_el0);
	cpu_set_context_reg(cpu, UC_ARM64_REG_SP_EL1, s->sp_el1);
	cpu_set_context_reg(cpu, UC_ARM64_REG_SP, s->sp);
	cpu_set_context_reg(cpu, UC_ARM64_REG_PSTATE, s->pstate);
	memcpy((char *)cpu->context + cpu_layout.hflags, &view, sizeof(view));
	cpu_set_context_pc(cpu, s->pc);
	uc_context_restore(cpu->uc, cpu->context);
}

int cpu_load(struct cpu *cpu, struct snapshot_in *in)
{
	struct cpu_saved saved;
	uint32_t view = 0;

	memset(&saved, 0, sizeof(saved));
	read_saved(in, &saved);
	if (in->wrong)
		return -EBADMSG;
	uc_context_restore(cpu->uc, cpu->reset_context);
	/* Debug exceptions and the MMU would disturb the programs. */
	for (unsigned i = 0; i < NUM_SYSREGS; i++)
		if (saved_sysregs[i] != SYS_SCTLR_EL1 && !IS_DEBUG(saved_sysregs[i]))
			cpu_set_sysreg(cpu, saved_sysregs[i], saved.sysregs[i]);
	if (find_view(cpu, &saved, &view)) {
		snapshot_in_wrong(in, "the emulator does not take these registers");
		return -EBADMSG;
	}
	if (set_sysregs(cpu, &saved)) {
		snapshot_in_wrong(in, "a system register does not take its value");
		return -EBADMSG;
	}
	set_registers(cpu, &saved, view);
	cpu->noted.valid = false;
	cpu->tlb_flush_wanted = true;
	cpu->all_code_stale = true;
	return 0;
}
