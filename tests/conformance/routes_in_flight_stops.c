/* SPDX-License-Identifier: MIT */
/*
 * The library's route table once more, with a place to stop before each load and store of
 * shared memory and each read-modify-write of what is kept: this copy of route.c takes the
 * place of that in the library, and differs from it in that alone. So a test can let
 * something else come in anywhere, every time.
 */
#include "routes_in_flight.h"

#include "atomics.h"
#include "lock_check.h"

static void stop_here(void);

static inline uint32_t exchange(_Atomic uint32_t *p, uint32_t value, memory_order order)
{
	return atomic_exchange_explicit(p, value, order);
}

static inline uint32_t fetch_or(_Atomic uint32_t *p, uint32_t value, memory_order order)
{
	return atomic_fetch_or_explicit(p, value, order);
}

#undef load_relaxed
#undef load_acquire
#undef load_seq_cst
#undef store_release
#undef atomic_exchange_explicit
#undef atomic_fetch_or_explicit
#define load_relaxed(p)                       (stop_here(), atomic_load_explicit((p), memory_order_relaxed))
#define load_acquire(p)                       (stop_here(), atomic_load_explicit((p), memory_order_acquire))
#define load_seq_cst(p)                       (stop_here(), atomic_load_explicit((p), memory_order_seq_cst))
#define store_release(p, v)                   (stop_here(), atomic_store_explicit((p), (v), memory_order_release))
#define atomic_exchange_explicit(p, v, order) (stop_here(), exchange((p), (v), (order)))
#define atomic_fetch_or_explicit(p, v, order) (stop_here(), fetch_or((p), (v), (order)))

/* NOLINTNEXTLINE(bugprone-suspicious-include): its accesses are to be the ones above */
#include "route.c"

static struct routes_stop *next_stop;
static unsigned stops_left, num_accesses;
static bool is_stopped;

static void stop_here(void)
{
	if (is_stopped || !stops_left)
		return;
	is_stopped = true; /* the actions' own accesses are not counted */
	while (stops_left && next_stop->before == num_accesses) {
		const struct lock_check_thread stopped = lock_check_leave();

		next_stop->reached = true;
		next_stop->action(next_stop->context);
		lock_check_return(stopped);
		next_stop++;
		stops_left--;
	}
	num_accesses++;
	is_stopped = false;
}

void routes_stopped(void (*call)(void *context), void *context, struct routes_stop *stops, unsigned num)
{
	next_stop = stops;
	stops_left = num;
	num_accesses = 0;
	call(context);
	stops_left = 0;
}
