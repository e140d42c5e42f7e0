/* SPDX-License-Identifier: MIT */
/* What the files of the CPU layer share, and nobody else uses. */
#ifndef VMM_CPU_INTERNAL_H
#define VMM_CPU_INTERNAL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <unicorn/unicorn.h>

#include "cpu.h"

#define MAX_REGIONS     16  /* of memory and devices */
#define MAX_PENDING_TLB 256 /* broadcast TLBIs that are kept one by one; more are answered by dropping everything */
#define MAX_STALE_PAGES 64  /* the same for pages with stale translated code */

/* ---- The state of a CPU ------------------------------------------------------------ */

/* A part of the physical address space: memory, a device, or a hole. */
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

/* A block of instructions that the translator runs as one. */
struct cpu_block {
	uint64_t pc;
	uint32_t size; /* bytes */
};

/* One CPU. Each part is written by the file that its comment names. */
struct cpu {
	/* cpu.c: made once */
	uc_engine *uc;
	uc_context *context;       /* scratch, for everything that changes PC or the exception level */
	uc_context *reset_context; /* the CPU as it was made */
	const struct cpu_ops *ops;
	void *owner;
	unsigned index;

	/*
	 * cpu.c: the block hook's state. @check_at is what it compares with: the instruction count at which something is to be
	 * looked at, 0 for "before the next block".
	 */
	uint64_t instructions;
	uint64_t check_at;
	uint64_t slice_end;
	unsigned lines;
	bool recheck_lines;
	bool stop_wanted;
	atomic_bool kicked; /* by another thread: as stop_wanted */
	enum stop_reason stop_reason;
	struct cpu_block block; /* the one that is run */

	struct noted_access noted; /* cpu_sysreg.c sets it, cpu_exception.c uses it up */

	/* cpu_exception.c, cpu_sysreg.c */
	uint32_t hflags_el1; /* the translator's view of EL1 */
	bool hflags_stale;   /* a system register was written since they were taken */

	/* cpu_sysreg.c: what is to be dropped before the next run */
	struct tlb_request tlb_requests[MAX_PENDING_TLB];
	unsigned num_tlb_requests;
	bool tlb_flush_wanted;
	uint64_t stale_pages[MAX_STALE_PAGES]; /* physical */
	unsigned num_stale_pages;
	bool all_code_stale;

	/* cpu_map.c: sorted by address */
	struct region *regions[MAX_REGIONS];
	unsigned num_regions;
	struct region holes[MAX_REGIONS + 2];

	char fault[256]; /* cpu.c */
};

/* ---- Start-up: layout and self-test ---------------------------------------------------- */

/* Where things lie in Unicorn's opaque saved context, in bytes. Found by cpu_find_layout() (cpu_layout.c). */
struct cpu_context_layout {
	size_t pc;
	size_t hflags;
	size_t syndrome;
	size_t far;
};

extern struct cpu_context_layout cpu_layout;

/* Find the layout by experiment. Returns 0, or prints what was not found, -ENOTSUP. */
int cpu_find_layout(void);

/* Run guest programs that need everything this layer does. Returns 0, or prints what failed, -ENOTSUP (cpu_selftest.c). */
int cpu_run_selftest(void);

/* ---- Registers (cpu_regs.c) ------------------------------------------------------------- */

uint64_t cpu_get_reg(struct cpu *cpu, int reg); /* by Unicorn's number */
void cpu_set_reg(struct cpu *cpu, int reg, uint64_t value);
uc_err cpu_set_sysreg(struct cpu *cpu, uint32_t reg, uint64_t value);
uint32_t cpu_pstate(struct cpu *cpu);

/* ---- The run (cpu.c) ---------------------------------------------------------------------- */

/* The guest cannot go on. Only the first reason counts: what comes after it is a consequence. */
void cpu_raise_fault(struct cpu *cpu, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* ---- Exceptions (cpu_exception.c) ----------------------------------------------------------- */

void cpu_on_exception(uc_engine *uc, uint32_t number, void *user);

/* Enter the vector for the one of @lines that goes first. Between runs. */
void cpu_enter_interrupt(struct cpu *cpu, unsigned lines);

/* Remember how the translator sees EL1, where the CPU is: the scratch context has been saved. */
void cpu_take_hflags(struct cpu *cpu);

/* Change the scratch context. */
void cpu_set_context_reg(struct cpu *cpu, int reg, uint64_t value);
void cpu_set_context_pc(struct cpu *cpu, uint64_t pc);

/* ---- System registers and instructions (cpu_sysreg.c) ------------------------------------------ */

uint32_t cpu_on_mrs(uc_engine *uc, uc_arm64_reg rt, const uc_arm64_cp_reg *r, void *user);
uint32_t cpu_on_msr(uc_engine *uc, uc_arm64_reg rt, const uc_arm64_cp_reg *r, void *user);
uint32_t cpu_on_sys(uc_engine *uc, uc_arm64_reg rt, const uc_arm64_cp_reg *r, void *user);

/* Do what other CPUs have asked for. Between runs. */
void cpu_apply_invalidations(struct cpu *cpu);

/* ---- The address map (cpu_map.c, cpu_locate.c) --------------------------------------------------- */

bool cpu_on_fetch_refused(uc_engine *uc, uc_mem_type type, uint64_t address, int size, int64_t value, void *user);

/* Read one instruction from memory. Returns 0 or -EFAULT. */
int cpu_read_instruction(struct cpu *cpu, uint64_t va, uint32_t *insn);

/*
 * The PC of the access to physical address @pa that is being made in @block. Returns 0, or -ENOENT if no instruction of
 * the block fits (cpu_locate.c).
 */
int cpu_locate_access(struct cpu *cpu, const struct cpu_block *block, uint64_t pa, unsigned width, bool is_write,
		      uint64_t *pc);

#endif /* VMM_CPU_INTERNAL_H */
