/* SPDX-License-Identifier: MIT */
/* The PSCI functions that the guests use, called by HVC as the device tree of both machines says. */
#include "psci.h"

#include "arch.h"

#define PSCI_CPU_OFF       0x84000002u
#define PSCI_SYSTEM_OFF    0x84000008u
#define PSCI_CPU_ON        0xc4000003u
#define PSCI_AFFINITY_INFO 0xc4000004u

static int psci_call(uint32_t function, uint64_t arg1, uint64_t arg2, uint64_t arg3)
{
	register uint64_t x0 __asm__("x0") = function;
	register uint64_t x1 __asm__("x1") = arg1;
	register uint64_t x2 __asm__("x2") = arg2;
	register uint64_t x3 __asm__("x3") = arg3;

	/* The SMC calling convention lets the callee change x0 to x17. */
	__asm__ volatile("hvc #0"
			 : "+r"(x0), "+r"(x1), "+r"(x2), "+r"(x3)
			 :
			 : "x4", "x5", "x6", "x7", "x8", "x9", "x10", "x11", "x12", "x13", "x14", "x15", "x16", "x17",
			   "memory");
	return (int)x0;
}

int psci_cpu_on(uint64_t mpidr, uintptr_t entry, uint64_t context)
{
	dsb();
	return psci_call(PSCI_CPU_ON, mpidr & MPIDR_AFFINITY, entry, context);
}

int psci_cpu_off(void)
{
	return psci_call(PSCI_CPU_OFF, 0, 0, 0);
}

int psci_affinity_info(uint64_t mpidr)
{
	return psci_call(PSCI_AFFINITY_INFO, mpidr & MPIDR_AFFINITY, 0, 0);
}

void psci_system_off(void)
{
	psci_call(PSCI_SYSTEM_OFF, 0, 0, 0);
	for (;;)
		wfi();
}
