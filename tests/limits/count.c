/* SPDX-License-Identifier: MIT */
/*
 * The counters of the limits: see count.h. The compiler calls __sanitizer_cov_trace_pc()
 * at each basic block of the library; where it was called from is counted in a hash.
 * One thread.
 */
#include "count.h"

#include <stdlib.h>
#include <string.h>

#include "its_guest.h"

struct port_lock;

void __sanitizer_cov_trace_pc(void);
void *__real_port_alloc_zeroed(size_t size, size_t align);
void *__wrap_port_alloc_zeroed(size_t size, size_t align);
void __real_port_lock_acquire(struct port_lock *lock);
void __wrap_port_lock_acquire(struct port_lock *lock);
void __real_port_lock_release(struct port_lock *lock);
void __wrap_port_lock_release(struct port_lock *lock);
uint64_t __wrap_port_random(void);

#define NUM_SLOTS 65536u

static bool counting;
static struct cost now;
static unsigned depth, kicks_before;
static struct {
	uintptr_t block;
	uint64_t count;
} slots[NUM_SLOTS];

void __sanitizer_cov_trace_pc(void)
{
	const uintptr_t block = (uintptr_t)__builtin_return_address(0);
	uint32_t i = (uint32_t)(block * UINT64_C(0x9e3779b97f4a7c15) >> 48);

	if (!counting)
		return;
	while (slots[i].block && slots[i].block != block)
		i = (i + 1) % NUM_SLOTS;
	slots[i].block = block;
	now.blocks++;
	if (++slots[i].count > now.hottest)
		now.hottest = slots[i].count;
}

void *__wrap_port_alloc_zeroed(size_t size, size_t align)
{
	now.allocations++;
	return __real_port_alloc_zeroed(size, align);
}

void __wrap_port_lock_acquire(struct port_lock *lock)
{
	now.locks++;
	depth++;
	if (depth > now.lock_depth)
		now.lock_depth = depth;
	__real_port_lock_acquire(lock);
}

void __wrap_port_lock_release(struct port_lock *lock)
{
	depth--;
	__real_port_lock_release(lock);
}

/* Chains of the hashes are the same in each run. */
uint64_t __wrap_port_random(void)
{
	return UINT64_C(0x5bd1e995c6a4a793);
}

static int (*real_guest_read)(void *opaque, uint64_t address, void *buffer, size_t size);
static int (*real_guest_write)(void *opaque, uint64_t address, const void *buffer, size_t size);

static int counted_guest_read(void *opaque, uint64_t address, void *buffer, size_t size)
{
	now.guest_accesses++;
	return real_guest_read(opaque, address, buffer, size);
}

static int counted_guest_write(void *opaque, uint64_t address, const void *buffer, size_t size)
{
	now.guest_accesses++;
	return real_guest_write(opaque, address, buffer, size);
}

void count_guest_memory(struct machine *m)
{
	real_guest_read = m->config.ops.guest_read;
	real_guest_write = m->config.ops.guest_write;
	m->config.ops.guest_read = counted_guest_read;
	m->config.ops.guest_write = counted_guest_write;
}

void count_begin(struct machine *m)
{
	memset(slots, 0, sizeof(slots));
	now = (struct cost){ 0 };
	kicks_before = m->num_kicks;
	counting = true;
}

void count_end(struct machine *m, struct cost *cost)
{
	counting = false;
	now.kicks = m->num_kicks - kicks_before;
	*cost = now;
}
