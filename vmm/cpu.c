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
#include <string.h>
#include <unicorn/unicorn.h>

#include "arm64.h"
#include "cpu_internal.h"
#include "util.h"

#define MAX_REGIONS     16  /* of memory and devices */
#define MAX_PENDING_TLB 256 /* broadcast TLBIs that are kept one by one; more are answered by dropping everything */
#define MAX_STALE_PAGES 64  /* the same for pages with stale translated code */
#define PAGE_SIZE       0x1000ull

/* Offsets of the exception vectors from VBAR_EL1. */
#define VECTOR_CURRENT_SP0 0x000
#define VECTOR_CURRENT_SPX 0x200
#define VECTOR_LOWER       0x400
#define VECTOR_SYNC        0x000
#define VECTOR_IRQ         0x080
#define VECTOR_FIQ         0x100
#define VECTORS_SIZE       0x800

/* The instructions MRS and MSR (register). The encoding of the system register is the instruction's bits 20:5. */
#define INSN_IS_MRS_OR_MSR(insn) (((insn)&0xffd00000u) == 0xd5100000u)
#define INSN_MRS                 (1u << 21)
#define INSN_SYSREG(insn)        (((insn) >> 5) & 0xffffu)

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

/* A part of the physical address space that is not memory. */
struct region {
	struct cpu *cpu;
	uint64_t base;
	uint64_t size;
	cpu_mmio_read read;
	cpu_mmio_write write;
	void *owner;
	bool is_ram;
};

/* An MRS or MSR of a register that Unicorn lacks, between the MRS/MSR hook and the exception that follows it. */
struct noted_access {
	bool valid;
	bool is_read;
	uint32_t reg;
	int rt; /* Unicorn's number of the general register */
	uint64_t value;
};

struct tlb_request {
	uint32_t op;
	uint64_t value;
};

/* Why the run is being left; tells WFI, which stops by itself, from the rest. */
enum stop_reason {
	STOP_NONE = 0,
	STOP_SLICE,
	STOP_LINES,
	STOP_FAULT,
};

struct cpu {
	uc_engine *uc;
	uc_context *context;       /* scratch, for everything that changes PC or the exception level */
	uc_context *reset_context; /* the CPU as it was made */
	const struct cpu_ops *ops;
	void *owner;
	unsigned index;

	/*
	 * The block hook's state. @check_at is what it compares with: the instruction count at which something is to be
	 * looked at, 0 for "before the next block".
	 */
	uint64_t instructions;
	uint64_t check_at;
	uint64_t slice_end;
	unsigned lines;
	bool recheck_lines;
	bool stop_wanted;
	enum stop_reason stop_reason;
	struct cpu_block block; /* the one that is run */

	struct noted_access noted;

	uint32_t hflags_el1; /* the translator's view of EL1 */
	bool hflags_stale;   /* a system register was written since they were taken */

	struct tlb_request tlb_requests[MAX_PENDING_TLB];
	unsigned num_tlb_requests;
	bool tlb_flush_wanted;
	uint64_t stale_pages[MAX_STALE_PAGES]; /* physical */
	unsigned num_stale_pages;
	bool all_code_stale;

	struct region *regions[MAX_REGIONS];
	unsigned num_regions;
	struct region holes[MAX_REGIONS + 2];

	char fault[256];
};

/* ---- Registers --------------------------------------------------------------- */

static uint64_t get_reg(struct cpu *cpu, int reg)
{
	uint64_t value = 0;

	uc_reg_read(cpu->uc, reg, &value);
	return value;
}

static void set_reg(struct cpu *cpu, int reg, uint64_t value)
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

static uc_err set_sysreg(struct cpu *cpu, uint32_t reg, uint64_t value)
{
	uc_arm64_cp_reg r = decode_sysreg(reg);

	r.val = value;
	return uc_reg_write(cpu->uc, UC_ARM64_REG_CP_REG, &r);
}

static uint32_t get_pstate(struct cpu *cpu)
{
	return (uint32_t)get_reg(cpu, UC_ARM64_REG_PSTATE);
}

uint64_t cpu_pc(struct cpu *cpu)
{
	return get_reg(cpu, UC_ARM64_REG_PC);
}

unsigned cpu_el(struct cpu *cpu)
{
	return PSTATE_EL(get_pstate(cpu));
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
	return number == 31 ? 0 : get_reg(cpu, x_register(number));
}

void cpu_set_x(struct cpu *cpu, unsigned number, uint64_t value)
{
	if (number != 31)
		set_reg(cpu, x_register(number), value);
}

uint64_t cpu_sp(struct cpu *cpu)
{
	return get_reg(cpu, UC_ARM64_REG_SP);
}

uint64_t cpu_instructions(const struct cpu *cpu)
{
	return cpu->instructions;
}

int cpu_translate(struct cpu *cpu, uint64_t va, uint64_t *pa)
{
	const uint64_t saved = cpu_sysreg(cpu, SYS_PAR_EL1);
	uint64_t par;

	set_sysreg(cpu, SYS_AT_S1E1R, va);
	par = cpu_sysreg(cpu, SYS_PAR_EL1);
	set_sysreg(cpu, SYS_PAR_EL1, saved);
	if (par & 1)
		return -EFAULT;
	*pa = (par & 0x000ffffffffff000ull) | (va & 0xfff);
	return 0;
}

/* ---- Leaving the run ---------------------------------------------------------- */

const char *cpu_fault(const struct cpu *cpu)
{
	return cpu->fault;
}

/* The guest cannot go on. Only the first reason counts: what comes after it is a consequence. */
static void raise_fault(struct cpu *cpu, const char *format, ...)
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
	const uint32_t pstate = cpu->lines ? get_pstate(cpu) : 0;
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
	if (cpu->recheck_lines) {
		cpu->recheck_lines = false;
		cpu->lines = cpu->ops->poll_lines(cpu->owner);
	}
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
	if (__builtin_expect(cpu->instructions >= cpu->check_at, 0)) {
		check_between_blocks(cpu);
		if (cpu->stop_reason != STOP_NONE)
			return;
	}
	cpu->instructions += size / 4;
	cpu->block.pc = address;
	cpu->block.size = size;
}

/* ---- Exceptions ---------------------------------------------------------------- */

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

static void set_context_reg(struct cpu *cpu, int reg, uint64_t value)
{
	uc_context_reg_write(cpu->context, reg, &value);
}

static void set_context_pc(struct cpu *cpu, uint64_t pc)
{
	memcpy((char *)cpu->context + cpu_layout.pc, &pc, sizeof(pc));
}

static void take_hflags(struct cpu *cpu)
{
	cpu->hflags_el1 = context_u32(cpu, cpu_layout.hflags);
	cpu->hflags_stale = false;
}

static void step_over_instruction(struct cpu *cpu)
{
	uc_context_save(cpu->uc, cpu->context);
	set_context_pc(cpu, context_u64(cpu, cpu_layout.pc) + 4);
	uc_context_restore(cpu->uc, cpu->context);
}

/* Enter EL1 through the vector at @offset of the right group; the context has been saved. */
static void enter_vector(struct cpu *cpu, unsigned offset, uint64_t return_address)
{
	const uint32_t pstate = get_pstate(cpu);
	const bool from_el0 = PSTATE_EL(pstate) == 0;
	const bool on_sp_elx = pstate & PSTATE_SP;
	const unsigned group = from_el0 ? VECTOR_LOWER : on_sp_elx ? VECTOR_CURRENT_SPX : VECTOR_CURRENT_SP0;

	set_context_reg(cpu, UC_ARM64_REG_ELR_EL1, return_address);
	if (from_el0)
		memcpy((char *)cpu->context + cpu_layout.hflags, &cpu->hflags_el1, sizeof(cpu->hflags_el1));
	else
		take_hflags(cpu);
	/* SP is a copy of the bank in use: swap the banks as the hardware does by selecting SP_EL1. */
	if (from_el0 || !on_sp_elx) {
		set_context_reg(cpu, UC_ARM64_REG_SP_EL0, context_reg(cpu, UC_ARM64_REG_SP));
		set_context_reg(cpu, UC_ARM64_REG_SP, context_reg(cpu, UC_ARM64_REG_SP_EL1));
	}
	set_context_reg(cpu, UC_ARM64_REG_PSTATE, (pstate & PSTATE_NZCV) | PSTATE_DAIF | PSTATE_EL1H);
	set_context_pc(cpu, context_reg(cpu, UC_ARM64_REG_VBAR_EL1) + group + offset);
	uc_context_restore(cpu->uc, cpu->context);
}

/* SPSR_EL1 has no number in the context interface: it is written to the CPU, before the context is taken from it. */
static void save_for_exception(struct cpu *cpu)
{
	set_sysreg(cpu, SYS_SPSR_EL1, get_pstate(cpu));
	uc_context_save(cpu->uc, cpu->context);
}

static void enter_interrupt(struct cpu *cpu, unsigned lines)
{
	save_for_exception(cpu);
	enter_vector(cpu, lines & CPU_LINE_FIQ ? VECTOR_FIQ : VECTOR_IRQ, context_u64(cpu, cpu_layout.pc));
}

static void enter_undefined(struct cpu *cpu)
{
	save_for_exception(cpu);
	set_context_reg(cpu, UC_ARM64_REG_ESR_EL1, ESR_UNDEFINED);
	enter_vector(cpu, VECTOR_SYNC, context_u64(cpu, cpu_layout.pc));
}

/* An exception that Unicorn has found: it knows the syndrome and the fault address, but does not enter the vector. */
static void enter_synchronous(struct cpu *cpu, bool is_abort)
{
	save_for_exception(cpu);
	set_context_reg(cpu, UC_ARM64_REG_ESR_EL1, context_u32(cpu, cpu_layout.syndrome));
	if (is_abort)
		set_context_reg(cpu, UC_ARM64_REG_FAR_EL1, context_u64(cpu, cpu_layout.far));
	enter_vector(cpu, VECTOR_SYNC, context_u64(cpu, cpu_layout.pc));
}

static void report_undefined_sysreg(struct cpu *cpu, bool is_read, uint32_t reg)
{
	raise_fault(cpu,
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
		set_reg(cpu, access.rt, value);
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
	set_reg(cpu, UC_ARM64_REG_X0, x[0]);
	if (cpu->stop_wanted) {
		cpu->stop_reason = STOP_SLICE;
		uc_emu_stop(cpu->uc);
	}
}

static void on_exception(uc_engine *uc, uint32_t number, void *user)
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
		raise_fault(cpu, "vCPU %u: exception %u, which this machine does not have, PC 0x%016llx", cpu->index,
			    number, (unsigned long long)cpu_pc(cpu));
	}
	cpu->noted.valid = false;
}

/* ---- System registers ------------------------------------------------------------ */

static uint32_t encode_sysreg(const uc_arm64_cp_reg *r)
{
	return SYSREG(r->op0, r->op1, r->crn, r->crm, r->op2);
}

/* Called before Unicorn's own permission checks. Returning 1 means that the instruction is done. */
static uint32_t on_mrs(uc_engine *uc, uc_arm64_reg rt, const uc_arm64_cp_reg *r, void *user)
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
		set_reg(cpu, (int)rt, value);
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

static uint32_t on_msr(uc_engine *uc, uc_arm64_reg rt, const uc_arm64_cp_reg *r, void *user)
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
		take_hflags(cpu);
	}
	if (affects_hflags(reg))
		cpu->hflags_stale = true;
	return 0;
}

/* TLBI and IC work on this CPU by themselves; what goes to the Inner Shareable domain has to be told to the others. */
static uint32_t on_sys(uc_engine *uc, uc_arm64_reg rt, const uc_arm64_cp_reg *r, void *user)
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

	set_sysreg(cpu, SYS_SCTLR_EL1, sctlr & ~1ull);
	if (cpu->all_code_stale) {
		for (unsigned i = 0; i < cpu->num_regions; i++)
			if (cpu->regions[i]->is_ram)
				uc_ctl_remove_cache(cpu->uc, cpu->regions[i]->base,
						    cpu->regions[i]->base + cpu->regions[i]->size);
	} else {
		for (unsigned i = 0; i < cpu->num_stale_pages; i++)
			uc_ctl_remove_cache(cpu->uc, cpu->stale_pages[i], cpu->stale_pages[i] + PAGE_SIZE);
	}
	set_sysreg(cpu, SYS_SCTLR_EL1, sctlr);
	cpu->num_stale_pages = 0;
	cpu->all_code_stale = false;
}

static void apply_invalidations(struct cpu *cpu)
{
	if (cpu->tlb_flush_wanted)
		set_sysreg(cpu, SYS_TLBI_VMALLE1, 0);
	else
		for (unsigned i = 0; i < cpu->num_tlb_requests; i++)
			set_sysreg(cpu, cpu->tlb_requests[i].op, cpu->tlb_requests[i].value);
	cpu->num_tlb_requests = 0;
	cpu->tlb_flush_wanted = false;
	/* A CPU that has not run yet has translated nothing. */
	if (cpu->instructions == 0)
		cpu->num_stale_pages = 0;
	else if (cpu->all_code_stale || cpu->num_stale_pages)
		drop_stale_code(cpu);
	cpu->all_code_stale = false;
}

/* ---- The address map ---------------------------------------------------------------- */

static uint64_t on_mmio_read(uc_engine *uc, uint64_t offset, unsigned size, void *user)
{
	const struct region *region = user;

	(void)uc;
	return region->read(region->owner, offset, size);
}

static void on_mmio_write(uc_engine *uc, uint64_t offset, unsigned size, uint64_t value, void *user)
{
	const struct region *region = user;

	(void)uc;
	region->write(region->owner, offset, size, value);
}

static void report_data_fault(struct cpu *cpu, uint64_t pc, uint64_t pa, unsigned size, const uint64_t *written)
{
	if (written)
		raise_fault(
			cpu,
			"vCPU %u: write of 0x%llx, %u byte(s), to physical address 0x%llx, where nothing is, PC 0x%016llx",
			cpu->index, (unsigned long long)*written, size, (unsigned long long)pa, (unsigned long long)pc);
	else
		raise_fault(cpu,
			    "vCPU %u: read of %u byte(s) at physical address 0x%llx, where nothing is, PC 0x%016llx",
			    cpu->index, size, (unsigned long long)pa, (unsigned long long)pc);
}

/* The translator has read an instruction. Most often that is a vector, because a guest has no handlers yet. */
static void report_fetch_fault(struct cpu *cpu, uint64_t pc)
{
	const uint64_t vbar = cpu_sysreg(cpu, SYS_VBAR_EL1);

	if (pc - vbar < VECTORS_SIZE && pc % VECTOR_IRQ == 0)
		raise_fault(
			cpu,
			"vCPU %u: exception with no memory at its vector, PC 0x%016llx, ELR_EL1 0x%016llx, ESR_EL1 0x%llx",
			cpu->index, (unsigned long long)pc, (unsigned long long)cpu_sysreg(cpu, SYS_ELR_EL1),
			(unsigned long long)cpu_sysreg(cpu, SYS_ESR_EL1));
	else
		raise_fault(cpu, "vCPU %u: branch to where no memory is, PC 0x%016llx, from the block at 0x%016llx",
			    cpu->index, (unsigned long long)pc, (unsigned long long)cpu->block.pc);
}

static uint64_t on_hole_read(uc_engine *uc, uint64_t offset, unsigned size, void *user)
{
	const struct region *hole = user;
	struct cpu *cpu = hole->cpu;
	const uint64_t pa = hole->base + offset;
	const uint64_t next_pc = cpu_pc(cpu);
	uint64_t pc = cpu->block.pc;

	(void)uc;
	if (cpu_locate_access(cpu, &cpu->block, pa, size, false, &pc) && size == 4 && ((pa ^ next_pc) & 0xfff) == 0)
		report_fetch_fault(cpu, next_pc);
	else
		report_data_fault(cpu, pc, pa, size, NULL);
	return 0;
}

static void on_hole_write(uc_engine *uc, uint64_t offset, unsigned size, uint64_t value, void *user)
{
	const struct region *hole = user;
	struct cpu *cpu = hole->cpu;
	const uint64_t pa = hole->base + offset;
	uint64_t pc = cpu->block.pc;

	(void)uc;
	cpu_locate_access(cpu, &cpu->block, pa, size, true, &pc);
	report_data_fault(cpu, pc, pa, size, &value);
}

static int add_region(struct cpu *cpu, const struct region *template)
{
	struct region *region;
	unsigned at = cpu->num_regions;

	if (at == MAX_REGIONS)
		return -ENOMEM;
	region = malloc(sizeof(*region));
	if (!region)
		return -ENOMEM;
	*region = *template;
	/* Sorted by address, so that the holes are what lies between neighbours. */
	for (; at > 0 && cpu->regions[at - 1]->base > region->base; at--)
		cpu->regions[at] = cpu->regions[at - 1];
	cpu->regions[at] = region;
	cpu->num_regions++;
	if (!region->is_ram &&
	    uc_mmio_map(cpu->uc, region->base, region->size, on_mmio_read, region, on_mmio_write, region))
		return -ENOMEM;
	return 0;
}

int cpu_map_ram(struct cpu *cpu, uint64_t base, uint64_t size, void *ram)
{
	const struct region region = { .cpu = cpu, .base = base, .size = size, .is_ram = true };

	if (uc_mem_map_ptr(cpu->uc, base, size, UC_PROT_ALL, ram))
		return -ENOMEM;
	return add_region(cpu, &region);
}

int cpu_map_mmio(struct cpu *cpu, uint64_t base, uint64_t size, cpu_mmio_read read, cpu_mmio_write write, void *owner)
{
	const struct region region = {
		.cpu = cpu,
		.base = base,
		.size = size,
		.read = read,
		.write = write,
		.owner = owner,
	};

	return add_region(cpu, &region);
}

static int map_hole(struct cpu *cpu, struct region *hole, uint64_t base, uint64_t end)
{
	*hole = (struct region){ .cpu = cpu, .base = base, .size = end - base };
	return uc_mmio_map(cpu->uc, base, end - base, on_hole_read, hole, on_hole_write, hole) ? -ENOMEM : 0;
}

int cpu_map_done(struct cpu *cpu)
{
	/* Unicorn takes no region that is larger than half the space, and none that contains the last page. */
	const uint64_t half = 1ull << 63;
	struct region *hole = cpu->holes;
	uint64_t at = 0;
	int ret;

	for (unsigned i = 0; i <= cpu->num_regions; i++) {
		const uint64_t end = i < cpu->num_regions ? cpu->regions[i]->base : half;

		if (end > at) {
			ret = map_hole(cpu, hole++, at, end);
			if (ret)
				return ret;
		}
		if (i < cpu->num_regions)
			at = cpu->regions[i]->base + cpu->regions[i]->size;
	}
	return map_hole(cpu, hole, half, UINT64_MAX - 0xfff);
}

int cpu_read_instruction(struct cpu *cpu, uint64_t va, uint32_t *insn)
{
	uint64_t pa;

	if (cpu_translate(cpu, va, &pa))
		return -EFAULT;
	for (unsigned i = 0; i < cpu->num_regions; i++) {
		const struct region *region = cpu->regions[i];

		/* Only memory: reading a device would have an effect. */
		if (region->is_ram && pa >= region->base && pa - region->base <= region->size - sizeof(*insn))
			return uc_mem_read(cpu->uc, pa, insn, sizeof(*insn)) ? -EFAULT : 0;
	}
	return -EFAULT;
}

/*
 * The rest of rule 1: code whose virtual address falls into a hole is refused, because a hole is not executable. Allow it:
 * a fetch whose *physical* address is in a hole reads there, and is found out.
 */
static bool on_fetch_refused(uc_engine *uc, uc_mem_type type, uint64_t address, int size, int64_t value, void *user)
{
	(void)uc;
	(void)type;
	(void)address;
	(void)size;
	(void)value;
	(void)user;
	return true;
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
	err = uc_hook_add(uc, &hook, UC_HOOK_INTR, (void *)on_exception, cpu, 1, 0);
	err = err ? err : uc_hook_add(uc, &hook, UC_HOOK_INSN, (void *)on_mrs, cpu, 1, 0, UC_ARM64_INS_MRS);
	err = err ? err : uc_hook_add(uc, &hook, UC_HOOK_INSN, (void *)on_msr, cpu, 1, 0, UC_ARM64_INS_MSR);
	err = err ? err : uc_hook_add(uc, &hook, UC_HOOK_INSN, (void *)on_sys, cpu, 1, 0, UC_ARM64_INS_SYS);
	err = err ? err : uc_hook_add(uc, &hook, UC_HOOK_MEM_FETCH_PROT, (void *)on_fetch_refused, cpu, 1, 0);
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
	err = err ? err : set_sysreg(cpu, SYS_SCR_EL3, 0x501);
	err = err ? err : set_sysreg(cpu, SYS_HCR_EL2, 1ull << 31);
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
	take_hflags(cpu);
	set_context_reg(cpu, UC_ARM64_REG_X0, x0);
	set_context_reg(cpu, UC_ARM64_REG_PSTATE, PSTATE_DAIF | PSTATE_EL1H);
	set_context_pc(cpu, pc);
	uc_context_restore(cpu->uc, cpu->context);
	cpu->noted.valid = false;
	cpu->tlb_flush_wanted = true;
	cpu->all_code_stale = true;
}

enum cpu_exit cpu_run(struct cpu *cpu, uint64_t slice, unsigned lines)
{
	uc_err err;

	apply_invalidations(cpu);
	cpu->slice_end = cpu->instructions + slice;
	cpu->lines = lines;
	cpu->recheck_lines = false;
	cpu->stop_wanted = false;
	do {
		const unsigned interrupts = interrupts_to_take(cpu);

		if (interrupts)
			enter_interrupt(cpu, interrupts);
		cpu->check_at = cpu->lines ? 0 : cpu->slice_end;
		cpu->stop_reason = STOP_NONE;
		err = uc_emu_start(cpu->uc, cpu_pc(cpu), UINT64_MAX, 0, 0);
		if (err)
			raise_fault(cpu, "vCPU %u: the emulator gives up: %s, PC 0x%016llx", cpu->index,
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
