/* SPDX-License-Identifier: MIT */
/*
 * The library's lookup and signal once more, with a place to stop before each load
 * of shared memory: these copies of its.c and its_map.c take the place of those in
 * the library, and differ from them in that alone. So a test can let a command come
 * in anywhere, every time, whatever the order of the loads is.
 */
#include "its_in_flight.h"

#include "atomics.h"
#include "lock_check.h"

static void stop_here(void);

#undef load_relaxed
#undef load_acquire
#define load_relaxed(p) (stop_here(), atomic_load_explicit((p), memory_order_relaxed))
#define load_acquire(p) (stop_here(), atomic_load_explicit((p), memory_order_acquire))

/* NOLINTBEGIN(bugprone-suspicious-include): their loads are to be the ones above */
#include "its_map.c"

#include "its.c"
/* NOLINTEND(bugprone-suspicious-include) */

/* One thread only. */
static struct in_flight_stop *next_stop;
static unsigned stops_left, num_loads;
static bool is_stopped;

static void stop_here(void)
{
	const unsigned load = num_loads;
	struct lock_check_thread stopped;

	if (is_stopped || !stops_left)
		return;
	num_loads++;
	if (load < next_stop->before_load)
		return;
	is_stopped = true; /* the action's own loads are not counted */
	next_stop->reached = true;
	stopped = lock_check_leave();
	next_stop->action(next_stop->context);
	lock_check_return(stopped);
	next_stop++;
	stops_left--;
	is_stopped = false;
}

int in_flight_signal(struct vgic_its *its, uint32_t devid, uint32_t eventid, struct in_flight_stop *stops,
		     unsigned num_stops)
{
	int result;

	next_stop = stops;
	stops_left = num_stops;
	num_loads = 0;
	result = vgic_its_signal(its, devid, eventid);
	stops_left = 0;
	return result;
}
