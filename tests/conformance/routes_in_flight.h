/* SPDX-License-Identifier: MIT */
/*
 * Calls of the route table that are stopped half-way: routes_in_flight_stops.c. Apart
 * from the test itself, as the library's inner headers and the tests' each have the
 * architecture's constants under the same names.
 */
#ifndef TESTS_ROUTES_IN_FLIGHT_H
#define TESTS_ROUTES_IN_FLIGHT_H

#include <stdbool.h>

/* What happens while a thread is stopped in the middle of a call. */
struct routes_stop {
	unsigned before; /* the so-manieth access to shared memory that the call makes: 0 is the first */
	void (*action)(void *context);
	void *context;
	bool reached; /* or it had no such access */
};

/* @call, stopped @num times; the stops are in their order. One thread only. */
void routes_stopped(void (*call)(void *context), void *context, struct routes_stop *stops, unsigned num);

#endif /* TESTS_ROUTES_IN_FLIGHT_H */
