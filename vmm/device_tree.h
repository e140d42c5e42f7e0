/* SPDX-License-Identifier: MIT */
/* The device tree that describes the machine to the guest. */
#ifndef VMM_DEVICE_TREE_H
#define VMM_DEVICE_TREE_H

#include <stddef.h>
#include <stdint.h>

struct machine;

/* Bytes that are enough for the machine's device tree. */
size_t device_tree_space(const struct machine *machine);

/*
 * Write the device tree into @space bytes at @fdt. The initial RAM disk is there if @initrd_end is not 0. Returns 0, or
 * prints a line, -ENOSPC.
 */
int device_tree_build(const struct machine *machine, void *fdt, size_t space, uint64_t initrd_start,
		      uint64_t initrd_end);

#endif /* VMM_DEVICE_TREE_H */
