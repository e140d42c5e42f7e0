/* SPDX-License-Identifier: MIT */
/*
 * atomics.h - short names for the C11 atomic operations that the core uses, one
 * for each order, so that the order of every access can be read at the access.
 *
 * docs/architecture.md says which rule needs which order.
 */
#ifndef VGIC_ATOMICS_H
#define VGIC_ATOMICS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define load_relaxed(p)     atomic_load_explicit((p), memory_order_relaxed)
#define load_acquire(p)     atomic_load_explicit((p), memory_order_acquire)
#define load_seq_cst(p)     atomic_load_explicit((p), memory_order_seq_cst)
#define store_relaxed(p, v) atomic_store_explicit((p), (v), memory_order_relaxed)
#define store_release(p, v) atomic_store_explicit((p), (v), memory_order_release)
#define store_seq_cst(p, v) atomic_store_explicit((p), (v), memory_order_seq_cst)

#define CACHE_LINE 64

/*
 * The line of @p is about to be loaded and then written by a read-modify-write: fetch
 * it for writing at once. Otherwise, if another CPU has it, it is fetched twice: the
 * load shares it, and the write takes it away.
 */
static inline void prefetch_for_write(const void *p)
{
	__builtin_prefetch(p, 1);
}

/*
 * A full fence. ThreadSanitizer does not understand stand-alone fences; every
 * access that this one orders is atomic, so there it may be a read-modify-write
 * of a word of its own.
 */
#if defined(__SANITIZE_THREAD__)
#define VGIC_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define VGIC_TSAN 1
#endif
#endif

static inline void full_fence(void)
{
#ifdef VGIC_TSAN
	static _Atomic uint32_t word;

	atomic_fetch_add_explicit(&word, 1, memory_order_seq_cst);
#else
	atomic_thread_fence(memory_order_seq_cst);
#endif
}

#endif /* VGIC_ATOMICS_H */
