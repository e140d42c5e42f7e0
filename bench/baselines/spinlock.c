/* SPDX-License-Identifier: MIT */
/*
 * spinlock.c - waiting for a spin lock (spinlock.h).
 */
#include "spinlock.h"

#include <sched.h>

#define SPINS_BEFORE_YIELD 1000

static inline void relax(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

void spin_lock_slowly(struct spinlock *lock)
{
	uint32_t expected;

	do {
		for (unsigned spins = 0; atomic_load_explicit(&lock->taken, memory_order_relaxed); spins++) {
			if (spins < SPINS_BEFORE_YIELD)
				relax();
			else
				sched_yield();
		}
		expected = 0;
	} while (!atomic_compare_exchange_weak_explicit(&lock->taken, &expected, 1, memory_order_acquire,
							memory_order_relaxed));
	lock->contended++;
}
