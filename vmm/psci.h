/* SPDX-License-Identifier: MIT */
/* PSCI 1.0, the guest's way to power vCPUs and the machine on and off, by HVC or SMC. */
#ifndef VMM_PSCI_H
#define VMM_PSCI_H

#include <stdint.h>

struct vcpu;

/* A call by @vcpu: the function and its arguments in x0 to x3, the result in x0. */
void psci_call(struct vcpu *vcpu, uint64_t x[4]);

#endif /* VMM_PSCI_H */
