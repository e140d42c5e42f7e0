/* SPDX-License-Identifier: MIT */
/*
 * Signals that are stopped half-way, and the marks of threads that are in the middle
 * of something. Apart from the test itself, as the library's inner headers and the
 * tests' each have the architecture's constants under the same names.
 */
#ifndef TESTS_ITS_IN_FLIGHT_H
#define TESTS_ITS_IN_FLIGHT_H

#include <stdbool.h>
#include <stdint.h>

#include <vgic/vgic.h>

enum in_flight_result {
	IN_FLIGHT_DELIVERED,
	IN_FLIGHT_STALE,
	IN_FLIGHT_NOWHERE,
	IN_FLIGHT_HELD,
};

/* What a signal finds first... */
bool in_flight_look_up(struct vgic_its *its, uint32_t devid, uint32_t eventid, uint64_t *value);
/* The number of the use of its node that is in @value. */
uint64_t in_flight_use(uint64_t value);
/* ...and what it does with it then. */
enum in_flight_result in_flight_act(struct vgic *vgic, uint64_t value);

/* Is it, whether it can be delivered or not? */
bool in_flight_is_pending(struct vgic *vgic, uint32_t intid);

/* What happens while a device thread is stopped in the middle of its signal. */
struct in_flight_stop {
	unsigned before_load; /* of the loads of shared memory that the signal makes: 0 is the first */
	void (*action)(void *context);
	void *context;
	bool reached; /* or it had no such load */
};

/* vgic_its_signal(), stopped @num_stops times; the stops are in their order. */
int in_flight_signal(struct vgic_its *its, uint32_t devid, uint32_t eventid, struct in_flight_stop *stops,
		     unsigned num_stops);

void in_flight_begin_acknowledge(struct vgic_vcpu *vcpu);
void in_flight_end_acknowledge(struct vgic_vcpu *vcpu);
/* A signal of an LPI that the walk of a set of EnableLPIs has not reached. */
void in_flight_begin_early_signal(struct vgic_vcpu *vcpu);
void in_flight_end_early_signal(struct vgic_vcpu *vcpu);

#endif /* TESTS_ITS_IN_FLIGHT_H */
