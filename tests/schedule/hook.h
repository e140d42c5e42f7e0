/* SPDX-License-Identifier: MIT */
/*
 * hook.h - makes every atomic access of the library a point at which the scheduler
 * may go on with another task. Included by the compiler before each of the library's
 * sources (-include), so that these stay as they are.
 *
 * All tasks share one thread (schedule.c): an access needs no atomicity here, and no
 * order. What is explored are interleavings only.
 */
#ifndef SCHEDULE_HOOK_H
#define SCHEDULE_HOOK_H

#include <stdatomic.h>
#include <stdbool.h>

/* Another task may run before the access. */
void schedule_point(const char *file, int line, const char *access);
/* A weak compare-and-swap may fail without a reason, as on processors with load-linked and store-conditional. */
bool schedule_fails_spuriously(void);

#define SCHEDULED(access, operation) (schedule_point(__FILE__, __LINE__, access), (operation))

#undef atomic_load_explicit
#undef atomic_store_explicit
#undef atomic_exchange_explicit
#undef atomic_fetch_add_explicit
#undef atomic_fetch_sub_explicit
#undef atomic_fetch_and_explicit
#undef atomic_fetch_or_explicit
#undef atomic_compare_exchange_strong_explicit
#undef atomic_compare_exchange_weak_explicit
#undef atomic_thread_fence

/* The compiler's own operations, by the names that it has for atomic objects. */
#ifdef __clang__
#define REAL_LOAD(p, order)        __c11_atomic_load(p, order)
#define REAL_STORE(p, v, order)    __c11_atomic_store(p, v, order)
#define REAL_EXCHANGE(p, v, order) __c11_atomic_exchange(p, v, order)
#define REAL_FETCH(op)             __c11_atomic_fetch_##op
#define REAL_CAS(p, expected, desired, success, failure)                                                               \
	__c11_atomic_compare_exchange_strong(p, expected, desired, success, failure)
#else
#define REAL_LOAD(p, order)        __atomic_load_n(p, order)
#define REAL_STORE(p, v, order)    __atomic_store_n(p, v, order)
#define REAL_EXCHANGE(p, v, order) __atomic_exchange_n(p, v, order)
#define REAL_FETCH(op)             __atomic_fetch_##op
#define REAL_CAS(p, expected, desired, success, failure)                                                               \
	__atomic_compare_exchange_n(p, expected, desired, false, success, failure)
#endif

#define atomic_load_explicit(p, order)         SCHEDULED("load", REAL_LOAD(p, order))
#define atomic_store_explicit(p, v, order)     SCHEDULED("store", REAL_STORE(p, v, order))
#define atomic_exchange_explicit(p, v, order)  SCHEDULED("exchange", REAL_EXCHANGE(p, v, order))
#define atomic_fetch_add_explicit(p, v, order) SCHEDULED("add", REAL_FETCH(add)(p, v, order))
#define atomic_fetch_sub_explicit(p, v, order) SCHEDULED("sub", REAL_FETCH(sub)(p, v, order))
#define atomic_fetch_and_explicit(p, v, order) SCHEDULED("and", REAL_FETCH (and)(p, v, order))
#define atomic_fetch_or_explicit(p, v, order)  SCHEDULED("or", REAL_FETCH(or)(p, v, order))
#define atomic_thread_fence(order)             SCHEDULED("fence", __atomic_thread_fence(order))

#define atomic_compare_exchange_strong_explicit(p, expected, desired, success, failure)                                \
	SCHEDULED("cas", REAL_CAS(p, expected, desired, success, failure))

#define atomic_compare_exchange_weak_explicit(p, expected, desired, success, failure)                                  \
	SCHEDULED("weak cas", schedule_fails_spuriously() ? (*(expected) = REAL_LOAD(p, failure), false) :             \
							    REAL_CAS(p, expected, desired, success, failure))

#endif /* SCHEDULE_HOOK_H */
