/* SPDX-License-Identifier: MIT */
/* PSCI 1.0: see psci.h. SMCCC_VERSION is there as well, for guests that look for it. */
#include "psci.h"

#include <stdbool.h>

#include "arm64.h"
#include "machine.h"

/* Function identifiers; those of the 64-bit calling convention have bit 30 set. */
#define PSCI_VERSION           0x84000000u
#define PSCI_CPU_SUSPEND       0x84000001u
#define PSCI_CPU_SUSPEND_64    0xc4000001u
#define PSCI_CPU_OFF           0x84000002u
#define PSCI_CPU_ON            0x84000003u
#define PSCI_CPU_ON_64         0xc4000003u
#define PSCI_AFFINITY_INFO     0x84000004u
#define PSCI_AFFINITY_INFO_64  0xc4000004u
#define PSCI_MIGRATE_INFO_TYPE 0x84000006u
#define PSCI_SYSTEM_OFF        0x84000008u
#define PSCI_SYSTEM_RESET      0x84000009u
#define PSCI_FEATURES          0x8400000au
#define SMCCC_VERSION          0x80000000u

#define PSCI_VERSION_1_0  0x10000
#define SMCCC_VERSION_1_1 0x10001

#define AFFINITY_ON  0
#define AFFINITY_OFF 1

#define MIGRATE_NOT_NEEDED 2 /* there is no Trusted OS that could be migrated */

#define PSCI_SUCCESS            0
#define PSCI_NOT_SUPPORTED      (-1)
#define PSCI_INVALID_PARAMETERS (-2)
#define PSCI_ALREADY_ON         (-4)
#define PSCI_INVALID_ADDRESS    (-9)

/* A 32-bit call has 32-bit arguments. */
static uint64_t argument(uint32_t function, uint64_t x)
{
	return function & (1u << 30) ? x : (uint32_t)x;
}

static bool is_supported(uint32_t function)
{
	switch (function) {
	case PSCI_VERSION:
	case PSCI_CPU_SUSPEND:
	case PSCI_CPU_SUSPEND_64:
	case PSCI_CPU_OFF:
	case PSCI_CPU_ON:
	case PSCI_CPU_ON_64:
	case PSCI_AFFINITY_INFO:
	case PSCI_AFFINITY_INFO_64:
	case PSCI_MIGRATE_INFO_TYPE:
	case PSCI_SYSTEM_OFF:
	case PSCI_SYSTEM_RESET:
	case PSCI_FEATURES:
	case SMCCC_VERSION:
		return true;
	default:
		return false;
	}
}

static struct vcpu *find_target(struct machine *machine, uint64_t target)
{
	return target & ~MPIDR_AFFINITY_MASK ? NULL : machine_vcpu_by_affinity(machine, target);
}

static int64_t cpu_on(struct machine *machine, uint64_t target, uint64_t entry, uint64_t context)
{
	struct vcpu *vcpu = find_target(machine, target);

	if (!vcpu)
		return PSCI_INVALID_PARAMETERS;
	if (vcpu->power != VCPU_OFF)
		return PSCI_ALREADY_ON;
	if ((entry & 3) || !machine_is_ram(machine, entry, 4))
		return PSCI_INVALID_ADDRESS;
	machine_power_on(vcpu, entry, context);
	return PSCI_SUCCESS;
}

static int64_t affinity_info(struct machine *machine, uint64_t target, uint64_t level)
{
	const struct vcpu *vcpu = find_target(machine, target);

	/* Levels above 0 are optional since PSCI 1.0. */
	if (!vcpu || level != 0)
		return PSCI_INVALID_PARAMETERS;
	return vcpu->power == VCPU_OFF ? AFFINITY_OFF : AFFINITY_ON;
}

void psci_call(struct vcpu *vcpu, uint64_t x[4])
{
	struct machine *machine = vcpu->machine;
	const uint32_t function = (uint32_t)x[0];
	const uint64_t a = argument(function, x[1]);
	const uint64_t b = argument(function, x[2]);
	const uint64_t c = argument(function, x[3]);
	int64_t result = PSCI_NOT_SUPPORTED;

	switch (function) {
	case PSCI_VERSION:
		result = PSCI_VERSION_1_0;
		break;
	case SMCCC_VERSION:
		result = SMCCC_VERSION_1_1;
		break;
	case PSCI_FEATURES:
		result = is_supported((uint32_t)a) ? 0 : PSCI_NOT_SUPPORTED;
		break;
	case PSCI_MIGRATE_INFO_TYPE:
		result = MIGRATE_NOT_NEEDED;
		break;
	case PSCI_CPU_ON:
	case PSCI_CPU_ON_64:
		result = cpu_on(machine, a, b, c);
		break;
	case PSCI_AFFINITY_INFO:
	case PSCI_AFFINITY_INFO_64:
		result = affinity_info(machine, a, b);
		break;
	case PSCI_CPU_SUSPEND:
	case PSCI_CPU_SUSPEND_64:
		/* Every state is a standby state here: it ends like WFI, and returns. */
		machine_suspend(vcpu);
		result = PSCI_SUCCESS;
		break;
	case PSCI_CPU_OFF:
		machine_power_off(vcpu);
		break;
	case PSCI_SYSTEM_OFF:
		machine_end(machine, END_POWER_OFF);
		break;
	case PSCI_SYSTEM_RESET:
		machine_end(machine, END_RESET);
		break;
	default:
		break;
	}
	x[0] = (uint64_t)result;
}
