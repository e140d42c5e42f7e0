/* SPDX-License-Identifier: MIT */
/*
 * rcu.h - liburcu's "bulletproof" flavour: any thread may read without having
 * been registered. Its read section is inlined.
 */
#ifndef BENCH_BASELINES_RCU_H
#define BENCH_BASELINES_RCU_H

/* The static analyzer does not see that registering a thread sets its pointer: it gets the functions. */
#if !defined(_LGPL_SOURCE) && !defined(__clang_analyzer__)
#define _LGPL_SOURCE
#endif
#include <urcu/urcu-bp.h>

static inline void rcu_read_begin(void)
{
	urcu_bp_read_lock();
}

static inline void rcu_read_end(void)
{
	urcu_bp_read_unlock();
}

/* Wait until every section that has begun before has ended. */
static inline void rcu_wait(void)
{
	urcu_bp_synchronize_rcu();
}

#endif /* BENCH_BASELINES_RCU_H */
