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

/*
 * The PC of the access to physical address @pa that is being made in the block of @block_size bytes at @block_pc; the
 * block's own address if no instruction of it fits (cpu_locate.c).
 */
uint64_t cpu_locate_access(struct cpu *cpu, uint64_t block_pc, uint32_t block_size, uint64_t pa, unsigned width,
			   bool is_write);

#endif /* VMM_CPU_INTERNAL_H */
