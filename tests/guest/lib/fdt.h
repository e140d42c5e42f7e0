/* SPDX-License-Identifier: MIT */
/* What the guests want to know from the device tree. */
#ifndef GUEST_FDT_H
#define GUEST_FDT_H

#include "arch.h"

#define MAX_MACHINE_CPUS   64u
#define MAX_REDIST_REGIONS 4u

struct machine_info {
	unsigned num_cpus; /* nodes with device_type "cpu" */
	uint64_t cpu_mpidr[MAX_MACHINE_CPUS];
	uint64_t dist_base;
	unsigned num_redist_regions;
	uint64_t redist_base[MAX_REDIST_REGIONS];
	uint64_t redist_size[MAX_REDIST_REGIONS];
	bool has_its;
	uint64_t its_base;
	bool has_test_device;
	uint64_t test_device_base;
};

/* Returns false if @fdt is no device tree, or has no GICv3. */
bool fdt_scan(const void *fdt, struct machine_info *info);

#endif
