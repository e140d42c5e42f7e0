/* SPDX-License-Identifier: MIT */
/* What the files of the CPU layer share, and nobody else uses. */
#ifndef VMM_CPU_INTERNAL_H
#define VMM_CPU_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cpu;

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

/* Read one instruction from memory. Returns 0 or -EFAULT. */
int cpu_read_instruction(struct cpu *cpu, uint64_t va, uint32_t *insn);

/* A block of instructions that the translator runs as one. */
struct cpu_block {
	uint64_t pc;
	uint32_t size; /* bytes */
};

/*
 * The PC of the access to physical address @pa that is being made in @block. Returns 0, or -ENOENT if no instruction of
 * the block fits (cpu_locate.c).
 */
int cpu_locate_access(struct cpu *cpu, const struct cpu_block *block, uint64_t pa, unsigned width, bool is_write,
		      uint64_t *pc);

#endif /* VMM_CPU_INTERNAL_H */
