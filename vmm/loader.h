/* SPDX-License-Identifier: MIT */
/* Puts kernel, initial RAM disk and device tree into the guest's memory. */
#ifndef VMM_LOADER_H
#define VMM_LOADER_H

#include <stdint.h>

struct machine;

struct loaded {
	uint64_t entry; /* where vCPU 0 starts */
	uint64_t dtb;   /* its x0 */
};

/* Load what the machine's options name. Returns 0, or prints a line, negative errno. */
int loader_load(struct machine *machine, struct loaded *loaded);

#endif /* VMM_LOADER_H */
