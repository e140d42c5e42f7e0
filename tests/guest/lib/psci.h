/* SPDX-License-Identifier: MIT */
/* PSCI 1.0 by HVC. */
#ifndef GUEST_PSCI_H
#define GUEST_PSCI_H

#include <stdint.h>

#define PSCI_SUCCESS            0
#define PSCI_INVALID_PARAMETERS (-2)
#define PSCI_ALREADY_ON         (-4)

#define PSCI_AFFINITY_ON  0
#define PSCI_AFFINITY_OFF 1

int psci_cpu_on(uint64_t mpidr, uintptr_t entry, uint64_t context);
int psci_cpu_off(void); /* returns only if it failed */
int psci_affinity_info(uint64_t mpidr);
void psci_system_off(void) __attribute__((noreturn));

#endif
