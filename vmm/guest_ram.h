/* SPDX-License-Identifier: MIT */
/*
 * Guest memory as devices see it: one range of guest-physical addresses, and where
 * it is in the VMM. Every address that comes from the guest goes through
 * guest_ram_at(), which is the only place that checks one.
 *
 * The guest's CPUs change this memory at any time: what is read twice may be two
 * different things. Read once into a local variable, then check, then use.
 */
#ifndef VMM_GUEST_RAM_H
#define VMM_GUEST_RAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct guest_ram {
	unsigned char *host; /* where @base is in the VMM */
	uint64_t base;
	uint64_t size;
};

/* Is the whole range memory? An empty range is, at an address that is memory or just behind it. */
static inline bool guest_ram_contains(const struct guest_ram *ram, uint64_t address, uint64_t size)
{
	return address >= ram->base && address - ram->base <= ram->size && size <= ram->size - (address - ram->base);
}

/* Host address of the range [address, address + size), or NULL if not all of it is memory. Any thread. */
static inline void *guest_ram_at(const struct guest_ram *ram, uint64_t address, uint64_t size)
{
	return guest_ram_contains(ram, address, size) ? ram->host + (address - ram->base) : NULL;
}

#endif /* VMM_GUEST_RAM_H */
