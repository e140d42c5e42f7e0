/* SPDX-License-Identifier: MIT */
/*
 * A full fence between threads. ThreadSanitizer understands no stand-alone fence;
 * what this one orders are atomic accesses, so there it may be a read-modify-write
 * of a word of its own.
 */
#ifndef VMM_FENCE_H
#define VMM_FENCE_H

#include <stdatomic.h>

static inline void full_fence(void)
{
#ifdef __SANITIZE_THREAD__
	static atomic_uint word;

	atomic_fetch_add(&word, 1);
#else
	atomic_thread_fence(memory_order_seq_cst);
#endif
}

#endif /* VMM_FENCE_H */
