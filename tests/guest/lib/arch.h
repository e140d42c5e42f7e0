/* SPDX-License-Identifier: MIT */
/*
 * What the guest programs need of the AArch64 architecture: system registers,
 * barriers, interrupt masks, and accesses to device registers.
 *
 * The guests run at EL1 with the MMU off: all memory is Device memory to them.
 * So they use aligned accesses only and no exclusives; every shared variable has
 * one writer.
 */
#ifndef GUEST_ARCH_H
#define GUEST_ARCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* CPUs that are powered on. A machine may have more: they stay off. */
#define MAX_CPUS 4u

#define STRINGIFY_(x) #x
#define STRINGIFY(x)  STRINGIFY_(x)
#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

/* System registers by name ("cntfrq_el0") or encoding (S3_0_C12_C12_0). */
#define read_sysreg(reg)                                                                                               \
	({                                                                                                             \
		uint64_t value_;                                                                                       \
		__asm__ volatile("mrs %0, " STRINGIFY(reg) : "=r"(value_) : : "memory");                               \
		value_;                                                                                                \
	})
#define write_sysreg(reg, value) __asm__ volatile("msr " STRINGIFY(reg) ", %0" : : "r"((uint64_t)(value)) : "memory")

#define MPIDR_AFFINITY 0xff00ffffffULL

static inline void isb(void)
{
	__asm__ volatile("isb" : : : "memory");
}

static inline void dsb(void)
{
	__asm__ volatile("dsb sy" : : : "memory");
}

/* In every loop that waits: lets an emulator that runs its CPUs in turn go on to the next one. */
static inline void cpu_relax(void)
{
	__asm__ volatile("yield" : : : "memory");
}

static inline void wfi(void)
{
	dsb();
	__asm__ volatile("wfi" : : : "memory");
	isb();
}

/* PSTATE.I and PSTATE.F of this CPU. The ISB makes a pending interrupt be taken here and not some time later. */
static inline void mask_irq(void)
{
	__asm__ volatile("msr daifset, #2" : : : "memory");
}

static inline void unmask_irq(void)
{
	__asm__ volatile("msr daifclr, #2\n\tisb" : : : "memory");
}

static inline void mask_fiq(void)
{
	__asm__ volatile("msr daifset, #1" : : : "memory");
}

static inline void unmask_fiq(void)
{
	__asm__ volatile("msr daifclr, #1\n\tisb" : : : "memory");
}

static inline void mask_all(void)
{
	__asm__ volatile("msr daifset, #3" : : : "memory");
}

static inline void unmask_all(void)
{
	__asm__ volatile("msr daifclr, #3\n\tisb" : : : "memory");
}

/* Device registers. Written in assembly so that the compiler cannot merge, split or move them. */
static inline uint8_t mmio_read8(uintptr_t address)
{
	uint32_t value;

	__asm__ volatile("ldrb %w0, [%1]" : "=r"(value) : "r"(address) : "memory");
	return (uint8_t)value;
}

static inline void mmio_write8(uintptr_t address, uint8_t value)
{
	__asm__ volatile("strb %w0, [%1]" : : "r"((uint32_t)value), "r"(address) : "memory");
}

static inline uint32_t mmio_read32(uintptr_t address)
{
	uint32_t value;

	__asm__ volatile("ldr %w0, [%1]" : "=r"(value) : "r"(address) : "memory");
	return value;
}

static inline void mmio_write32(uintptr_t address, uint32_t value)
{
	__asm__ volatile("str %w0, [%1]" : : "r"(value), "r"(address) : "memory");
}

static inline uint64_t mmio_read64(uintptr_t address)
{
	uint64_t value;

	__asm__ volatile("ldr %0, [%1]" : "=r"(value) : "r"(address) : "memory");
	return value;
}

static inline void mmio_write64(uintptr_t address, uint64_t value)
{
	__asm__ volatile("str %0, [%1]" : : "r"(value), "r"(address) : "memory");
}

#endif
