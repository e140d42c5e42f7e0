/* SPDX-License-Identifier: MIT */
/*
 * spinlock.h - a spin lock that counts how often it was found taken.
 *
 * One atomic operation takes it, a plain store releases it. A kernel switches
 * interrupts off, so that the holder is not preempted; a program cannot. Whoever
 * waits for long gives up the processor, so that the holder gets on.
 */
#ifndef BENCH_BASELINES_SPINLOCK_H
#define BENCH_BASELINES_SPINLOCK_H

#include <stdatomic.h>
#include <stdint.h>

struct spinlock {
	_Atomic uint32_t taken;
	uint32_t contended; /* guarded by the lock itself */
};

void spin_lock_slowly(struct spinlock *lock);

static inline void spin_lock(struct spinlock *lock)
{
	uint32_t expected = 0;

	if (__builtin_expect(!atomic_compare_exchange_strong_explicit(&lock->taken, &expected, 1, memory_order_acquire,
								      memory_order_relaxed),
			     0))
		spin_lock_slowly(lock);
}

static inline void spin_unlock(struct spinlock *lock)
{
	atomic_store_explicit(&lock->taken, 0, memory_order_release);
}

#endif /* BENCH_BASELINES_SPINLOCK_H */
