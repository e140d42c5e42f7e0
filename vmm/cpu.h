/* SPDX-License-Identifier: MIT */
/*
 * One AArch64 CPU at EL1 and EL0, made of one Unicorn 2.0.1 instance.
 *
 * Unicorn is a translator for user-level code, not a CPU of a machine: it knows
 * no interrupt lines and no exception entry. This layer adds both and hides
 * everything that is peculiar about Unicorn (cpu.c says what and why). It knows
 * nothing of the GIC: it has two lines, IRQ and FIQ, and asks its owner for
 * system registers that Unicorn lacks.
 *
 * All CPUs of a machine share their memory and must run on one thread, one after
 * the other: Unicorn's exclusive monitors are not safe across threads.
 */
#ifndef VMM_CPU_H
#define VMM_CPU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cpu;
struct snapshot_in;
struct snapshot_out;

/* Interrupt lines, ORed. */
#define CPU_LINE_IRQ (1u << 0)
#define CPU_LINE_FIQ (1u << 1)

/* What the owner does for its CPU. @owner is what cpu_create() was given. */
struct cpu_ops {
	/*
	 * A register that Unicorn has, but the machine wants to answer itself: return true if *value is the answer (or the
	 * write is done), false to let Unicorn do it, permission checks included. @el is the accessing exception level.
	 */
	bool (*is_overridden)(uint32_t reg);
	bool (*override_read)(void *owner, uint32_t reg, unsigned el, uint64_t *value);
	bool (*override_write)(void *owner, uint32_t reg, unsigned el, uint64_t value);

	/*
	 * A register that Unicorn lacks and the machine adds, accessed at EL1 (at EL0 it is UNDEFINED without asking). Return
	 * 0, -EACCES for an Undefined Instruction exception, or -ENOENT if it does not exist after all: that ends the run.
	 */
	bool (*is_extra)(uint32_t reg);
	int (*extra_read)(void *owner, uint32_t reg, uint64_t *value);
	int (*extra_write)(void *owner, uint32_t reg, uint64_t value);

	/* HVC or SMC at EL1: x0 to x3 in, x0 out. May call cpu_stop(). */
	void (*hypercall)(void *owner, uint64_t x[4]);

	/*
	 * A TLBI or IC that the other CPUs have to see: call cpu_invalidate_tlb(), cpu_invalidate_code() or
	 * cpu_invalidate_all_code() for each of them. The IC is about all code, or that at virtual address @va.
	 */
	void (*broadcast_tlbi)(void *owner, uint32_t op, uint64_t value);
	void (*broadcast_ic)(void *owner, bool all, uint64_t va);

	/* The lines now. Called after cpu_recheck_lines(), at the next place where an interrupt can be taken. */
	unsigned (*poll_lines)(void *owner);
};

/* Device registers at @base: @offset is relative to it, @width 1, 2 or 4 (Unicorn splits 8 bytes, low half first). */
typedef uint64_t (*cpu_mmio_read)(void *owner, uint64_t offset, unsigned width);
typedef void (*cpu_mmio_write)(void *owner, uint64_t offset, unsigned width, uint64_t value);

/* Why cpu_run() returned. */
enum cpu_exit {
	CPU_EXIT_SLICE, /* the time slice is used up, or cpu_stop() was called */
	CPU_EXIT_WAIT,  /* the guest executed WFI */
	CPU_EXIT_FAULT, /* the guest cannot go on: cpu_fault() says why */
};

/* Prove that the Unicorn that was found behaves as this layer needs. Returns 0, or prints what is wrong, -ENOTSUP. */
int cpu_layer_init(void);

/* A new CPU, in reset. Returns 0, -ENOMEM, or -ENOTSUP for anything else that Unicorn refuses. */
int cpu_create(unsigned index, const struct cpu_ops *ops, void *owner, struct cpu **cpu);
void cpu_destroy(struct cpu *cpu);

/* The physical address map. When all of it is there, cpu_map_done() closes the holes. Return 0 or -ENOMEM. */
int cpu_map_ram(struct cpu *cpu, uint64_t base, uint64_t size, void *ram);
int cpu_map_mmio(struct cpu *cpu, uint64_t base, uint64_t size, cpu_mmio_read read, cpu_mmio_write write, void *owner);
int cpu_map_done(struct cpu *cpu);

/* Reset, then start at @pc at EL1 with the MMU off, interrupts masked, and @x0 in x0. */
void cpu_start(struct cpu *cpu, uint64_t pc, uint64_t x0);

/* Run at most about @slice instructions (a block more at most). @lines are the interrupt lines at the start. */
enum cpu_exit cpu_run(struct cpu *cpu, uint64_t slice, unsigned lines);

/*
 * Its registers to and from a saved machine (cpu_state.c). Between runs. cpu_load() is for a CPU that has not run yet, and
 * uses the first bytes of memory, which are zero before and afterwards. It returns 0, or -EBADMSG: @in says what is wrong.
 */
void cpu_save(struct cpu *cpu, struct snapshot_out *out);
int cpu_load(struct cpu *cpu, struct snapshot_in *in);

/* The rest is also for the callbacks, that is, while the CPU runs. */

/* Instructions executed so far: exact between runs, and to a block while running. */
uint64_t cpu_instructions(const struct cpu *cpu);

/* Run at most @instructions more in this slice. */
void cpu_limit_slice(struct cpu *cpu, uint64_t instructions);

/* Leave cpu_run() before the next block; from hypercall(), before the next instruction. */
void cpu_stop(struct cpu *cpu);

/* Leave cpu_run() before the next block, this one or, if it is not running, the next. From any thread. */
void cpu_kick(struct cpu *cpu);

/* The lines may have changed: poll_lines() is to be called. */
void cpu_recheck_lines(struct cpu *cpu);

/* Do what another CPU's broadcast TLBI or IC says, before this CPU's next instruction. @pa is any address in the page. */
void cpu_invalidate_tlb(struct cpu *cpu, uint32_t op, uint64_t value);
void cpu_invalidate_code(struct cpu *cpu, uint64_t pa);
void cpu_invalidate_all_code(struct cpu *cpu);

uint64_t cpu_pc(struct cpu *cpu);
unsigned cpu_el(struct cpu *cpu);
uint64_t cpu_sysreg(struct cpu *cpu, uint32_t reg);
uint64_t cpu_x(struct cpu *cpu, unsigned number); /* 31 is xzr */
void cpu_set_x(struct cpu *cpu, unsigned number, uint64_t value);
uint64_t cpu_sp(struct cpu *cpu);

/* The physical address of a virtual one, for messages. Returns 0, or -EFAULT if it is not mapped. */
int cpu_translate(struct cpu *cpu, uint64_t va, uint64_t *pa);

/* Why the guest cannot go on, as one line without a newline; static until the next run. */
const char *cpu_fault(const struct cpu *cpu);

#endif /* VMM_CPU_H */
