/* SPDX-License-Identifier: MIT */
/*
 * Runs a small guest program that needs everything which the CPU layer builds on
 * top of Unicorn. It takes a few milliseconds and is run at every start: another
 * Unicorn, or one built differently, must be refused with a word about what it
 * does wrong, instead of running guests that fail mysteriously.
 *
 * The program reports with HVC; step_checks below says what is to be seen at
 * each report, and what the program does next.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "arm64.h"
#include "cpu.h"
#include "cpu_internal.h"
#include "util.h"

#define RAM_BASE     0x40000000ull
#define RAM_SIZE     0x10000ull
#define VECTORS      0x800u /* offsets in RAM */
#define TABLE        0x4000u
#define SCRATCH      0x8000u
#define ALIAS        0x80000000ull /* RAM once more, for EL0 */
#define DEVICE       0x09000000ull
#define DEVICE_ALIAS 0xc9000000ull
#define UNMAPPED     0x100000000ull

#define REG_READ  SYSREG(3, 0, 12, 12, 0)
#define REG_WRITE SYSREG(3, 0, 12, 12, 1)

#define LOOPS       1000u
#define SLICE       7u
#define PATTERN     0x0123456789abcdefull
#define EXTRA       0x5eedull
#define DEVICE_WORD 0x77u
#define MAX_RUNS    10000u /* of SLICE instructions: the program needs less than a tenth */

/* Offsets in the program. */
#define AT_HANDLER 0x60u
#define AT_SVC     0x78u
#define AT_LOAD    0x7cu
#define AT_MRS     0x80u
#define AT_SPIN    0x84u

static const uint32_t program[] = {
	0xd2800000, /*         mov  x0, #0                      a loop that is cut into slices */
	0xd2807d01, /*         mov  x1, #1000 */
	0x91000400, /* 1:      add  x0, x0, #1 */
	0xeb01001f, /*         cmp  x0, x1 */
	0x54ffffc1, /*         b.ne 1b */
	0xd4000002, /*         hvc  #0 */
	0xd538cc00, /*         mrs  x0, S3_0_C12_C12_0          registers that Unicorn lacks */
	0x91000400, /*         add  x0, x0, #1 */
	0xd518cc20, /*         msr  S3_0_C12_C12_1, x0 */
	0xd4000002, /*         hvc  #0 */
	0xd5182004, /*         msr  ttbr0_el1, x4               the MMU, with addresses that are not physical */
	0xd5182045, /*         msr  tcr_el1, x5 */
	0xd518a206, /*         msr  mair_el1, x6 */
	0xd518c007, /*         msr  vbar_el1, x7 */
	0xd5033fdf, /*         isb */
	0xd5181008, /*         msr  sctlr_el1, x8 */
	0xd5033fdf, /*         isb */
	0xf9000149, /*         str  x9, [x10] */
	0xf9400160, /*         ldr  x0, [x11] */
	0xb9400581, /*         ldr  w1, [x12, #4] */
	0xd5384102, /*         mrs  x2, sp_el0 */
	0xd4000002, /*         hvc  #0 */
	0xd2800003, /*         mov  x3, #0 */
	0x14000004, /*         b    enter */
	0xd5385202, /* handler: mrs x2, esr_el1                 each vector: mov x1, #its offset; b handler */
	0xd5384023, /*         mrs  x3, elr_el1 */
	0xd4000002, /*         hvc  #0 */
	0xd5184020, /* enter:  msr  elr_el1, x0                 EL0, with nothing masked, where the report said */
	0xd518401f, /*         msr  spsr_el1, xzr */
	0xd69f03e0, /*         eret */
	0xd40000e1, /*         svc  #7                          what EL0 does */
	0xf94001a0, /*         ldr  x0, [x13] */
	0xd538cc00, /*         mrs  x0, S3_0_C12_C12_0 */
	0x14000000, /*         b    . */
};

struct selftest {
	struct cpu *cpu;
	unsigned char *ram;
	unsigned step;
	unsigned lines;
	uint64_t extra_written;
	uint64_t device_offset;
	const char *failure;
	bool done;
};

/* ---- What is to be seen at each report, and the answer (x0) ----------------------- */

static bool check_loop(struct selftest *t, const uint64_t x[4], uint64_t *next)
{
	(void)next;
	return x[0] == LOOPS && cpu_instructions(t->cpu) == 2 + 3 * LOOPS + 1;
}

static bool check_extra(struct selftest *t, const uint64_t x[4], uint64_t *next)
{
	(void)next;
	return x[0] == EXTRA + 1 && t->extra_written == EXTRA + 1;
}

static bool check_mmu(struct selftest *t, const uint64_t x[4], uint64_t *next)
{
	*next = ALIAS + AT_SVC;
	return x[0] == PATTERN && x[1] == DEVICE_WORD && t->device_offset == 4;
}

static bool came_from_el0(struct selftest *t, const uint64_t x[4], uint64_t vector, uint64_t elr)
{
	return x[1] == vector && x[3] == ALIAS + elr && cpu_sysreg(t->cpu, SYS_SPSR_EL1) == 0 && cpu_el(t->cpu) == 1;
}

static bool check_svc(struct selftest *t, const uint64_t x[4], uint64_t *next)
{
	*next = ALIAS + AT_LOAD;
	return came_from_el0(t, x, 0x400, AT_SVC + 4) && x[2] == ((ESR_EC_SVC64 << ESR_EC_SHIFT) | ESR_IL | 7);
}

static bool check_abort(struct selftest *t, const uint64_t x[4], uint64_t *next)
{
	*next = ALIAS + AT_MRS;
	return came_from_el0(t, x, 0x400, AT_LOAD) && ESR_EC((uint32_t)x[2]) == 0x24 &&
	       cpu_sysreg(t->cpu, SYSREG(3, 0, 6, 0, 0)) == UNMAPPED;
}

static void raise_line(struct selftest *t, unsigned line)
{
	t->lines = line;
	cpu_recheck_lines(t->cpu);
}

static bool check_undefined(struct selftest *t, const uint64_t x[4], uint64_t *next)
{
	*next = ALIAS + AT_SPIN;
	raise_line(t, CPU_LINE_IRQ);
	return came_from_el0(t, x, 0x400, AT_MRS) && x[2] == ESR_UNDEFINED;
}

static bool check_irq(struct selftest *t, const uint64_t x[4], uint64_t *next)
{
	*next = ALIAS + AT_SPIN;
	raise_line(t, CPU_LINE_FIQ);
	return came_from_el0(t, x, 0x480, AT_SPIN);
}

/* Change an instruction behind the CPU's back, as another CPU's store would. */
static bool check_fiq(struct selftest *t, const uint64_t x[4], uint64_t *next)
{
	const uint32_t svc_8 = 0xd4000101;

	memcpy(t->ram + AT_SVC, &svc_8, sizeof(svc_8));
	cpu_invalidate_code(t->cpu, RAM_BASE + AT_SVC);
	cpu_stop(t->cpu); /* invalidations take effect when the CPU is run */
	*next = ALIAS + AT_SVC;
	return came_from_el0(t, x, 0x500, AT_SPIN);
}

static bool check_changed_code(struct selftest *t, const uint64_t x[4], uint64_t *next)
{
	(void)next;
	t->done = true;
	return came_from_el0(t, x, 0x400, AT_SVC + 4) && x[2] == ((ESR_EC_SVC64 << ESR_EC_SHIFT) | ESR_IL | 8);
}

static const struct {
	const char *what;
	bool (*check)(struct selftest *t, const uint64_t x[4], uint64_t *next);
} step_checks[] = {
	{ "stopping between blocks loses or repeats instructions", check_loop },
	{ "system registers that it lacks cannot be added", check_extra },
	{ "address translation to memory or to a device fails", check_mmu },
	{ "SVC from EL0 does not arrive at EL1", check_svc },
	{ "a data abort from EL0 does not arrive at EL1", check_abort },
	{ "an undefined instruction at EL0 does not arrive at EL1", check_undefined },
	{ "an IRQ is not taken", check_irq },
	{ "an FIQ is not taken", check_fiq },
	{ "stale translations of code are not dropped", check_changed_code },
};

/* ---- The owner of the CPU ----------------------------------------------------------- */

static bool is_overridden(uint32_t reg)
{
	(void)reg;
	return false;
}

static bool is_extra(uint32_t reg)
{
	return reg == REG_READ || reg == REG_WRITE;
}

static int extra_read(void *owner, uint32_t reg, uint64_t *value)
{
	(void)owner;
	(void)reg;
	*value = EXTRA;
	return 0;
}

static int extra_write(void *owner, uint32_t reg, uint64_t value)
{
	struct selftest *t = owner;

	(void)reg;
	t->extra_written = value;
	return 0;
}

static void report(void *owner, uint64_t x[4])
{
	struct selftest *t = owner;
	uint64_t next = 0;

	t->lines = 0;
	cpu_recheck_lines(t->cpu);
	if (!step_checks[t->step].check(t, x, &next))
		t->failure = step_checks[t->step].what;
	else
		t->step++;
	x[0] = next;
	if (t->failure || t->done)
		cpu_stop(t->cpu);
}

static void ignore_tlbi(void *owner, uint32_t op, uint64_t value)
{
	(void)owner;
	(void)op;
	(void)value;
}

static void ignore_ic(void *owner, bool all, uint64_t va)
{
	(void)owner;
	(void)all;
	(void)va;
}

static unsigned poll_lines(void *owner)
{
	struct selftest *t = owner;

	return t->lines;
}

static uint64_t device_read(void *owner, uint64_t offset, unsigned width)
{
	struct selftest *t = owner;

	(void)width;
	t->device_offset = offset;
	return DEVICE_WORD;
}

static void device_write(void *owner, uint64_t offset, unsigned width, uint64_t value)
{
	(void)owner;
	(void)offset;
	(void)width;
	(void)value;
}

static const struct cpu_ops ops = {
	.is_overridden = is_overridden,
	.is_extra = is_extra,
	.extra_read = extra_read,
	.extra_write = extra_write,
	.hypercall = report,
	.broadcast_tlbi = ignore_tlbi,
	.broadcast_ic = ignore_ic,
	.poll_lines = poll_lines,
};

/* ---- The program's surroundings ------------------------------------------------------- */

static void put_u64(struct selftest *t, uint64_t offset, uint64_t value)
{
	memcpy(t->ram + offset, &value, sizeof(value));
}

static void write_vectors(struct selftest *t)
{
	for (unsigned i = 0; i < 16; i++) {
		const uint32_t at = VECTORS + i * 0x80;
		const uint32_t code[] = {
			0xd2800001u | (i * 0x80) << 5,                              /* mov x1, #offset */
			0x14000000u | (((AT_HANDLER - (at + 4)) >> 2) & 0x3ffffff), /* b handler */
		};

		memcpy(t->ram + at, code, sizeof(code));
	}
}

/* Four blocks of 1 GiB: devices, RAM, RAM for EL0, devices once more. */
static void write_tables(struct selftest *t)
{
	const uint64_t device = (1u << 10) | 1u;
	const uint64_t normal = (1u << 10) | (3u << 8) | (1u << 2) | 1u;
	const uint64_t el0 = 1u << 6;

	put_u64(t, TABLE, device);
	put_u64(t, TABLE + 8, RAM_BASE | normal);
	put_u64(t, TABLE + 16, RAM_BASE | normal | el0);
	put_u64(t, TABLE + 24, device);
}

static void set_registers(struct cpu *cpu)
{
	cpu_set_x(cpu, 4, RAM_BASE + TABLE);
	cpu_set_x(cpu, 5, 2ull << 32 | 1u << 23 | 32u); /* TCR: 40 bits out, no TTBR1, 32 bits in */
	cpu_set_x(cpu, 6, 0xff00);                      /* MAIR: 0 device, 1 normal */
	cpu_set_x(cpu, 7, RAM_BASE + VECTORS);
	cpu_set_x(cpu, 8, 0x30d01805); /* SCTLR: MMU and caches on */
	cpu_set_x(cpu, 9, PATTERN);
	cpu_set_x(cpu, 10, ALIAS + SCRATCH);
	cpu_set_x(cpu, 11, RAM_BASE + SCRATCH);
	cpu_set_x(cpu, 12, DEVICE_ALIAS);
	cpu_set_x(cpu, 13, UNMAPPED);
}

static const char *run_program(struct selftest *t)
{
	memcpy(t->ram, program, sizeof(program));
	write_vectors(t);
	write_tables(t);
	if (cpu_create(0, &ops, t, &t->cpu))
		return "it cannot make a Cortex-A72";
	if (cpu_map_ram(t->cpu, RAM_BASE, RAM_SIZE, t->ram) ||
	    cpu_map_mmio(t->cpu, DEVICE, 0x1000, device_read, device_write, t) || cpu_map_done(t->cpu))
		return "it cannot map the whole address space";
	cpu_start(t->cpu, RAM_BASE, 0);
	set_registers(t->cpu);
	for (unsigned runs = 0; !t->done && !t->failure; runs++) {
		if (cpu_run(t->cpu, SLICE, t->lines) == CPU_EXIT_FAULT)
			return cpu_fault(t->cpu);
		if (runs == MAX_RUNS)
			return step_checks[t->step].what;
	}
	return t->failure;
}

int cpu_run_selftest(void)
{
	struct selftest t = { 0 };
	char failure[256] = "";
	const char *what;

	t.ram = mmap(NULL, RAM_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (t.ram == MAP_FAILED) {
		message("no memory for the CPU's self-test");
		return -ENOMEM;
	}
	what = run_program(&t);
	if (what)
		strncpy(failure, what, sizeof(failure) - 1); /* it may belong to the CPU */
	cpu_destroy(t.cpu);
	munmap(t.ram, RAM_SIZE);
	if (!what)
		return 0;
	message("this Unicorn is not the one that the CPU layer is made for: %s", failure);
	return -ENOTSUP;
}
