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

#define atomic_load_explicit(p, order)         SCHEDULED("load", __atomic_load_n(p, order))
#define atomic_store_explicit(p, v, order)     SCHEDULED("store", __atomic_store_n(p, v, order))
#define atomic_exchange_explicit(p, v, order)  SCHEDULED("exchange", __atomic_exchange_n(p, v, order))
#define atomic_fetch_add_explicit(p, v, order) SCHEDULED("add", __atomic_fetch_add(p, v, order))
#define atomic_fetch_sub_explicit(p, v, order) SCHEDULED("sub", __atomic_fetch_sub(p, v, order))
#define atomic_fetch_and_explicit(p, v, order) SCHEDULED("and", __atomic_fetch_and(p, v, order))
#define atomic_fetch_or_explicit(p, v, order)  SCHEDULED("or", __atomic_fetch_or(p, v, order))
#define atomic_thread_fence(order)             SCHEDULED("fence", __atomic_thread_fence(order))

#define atomic_compare_exchange_strong_explicit(p, expected, desired, success, failure)                                \
	SCHEDULED("cas", __atomic_compare_exchange_n(p, expected, desired, false, success, failure))

#define atomic_compare_exchange_weak_explicit(p, expected, desired, success, failure)                                  \
	SCHEDULED("weak cas", schedule_fails_spuriously() ?                                                            \
				      (*(expected) = __atomic_load_n(p, failure), false) :                             \
				      __atomic_compare_exchange_n(p, expected, desired, false, success, failure))

#endif /* SCHEDULE_HOOK_H */
