/* SPDX-License-Identifier: MIT */
/*
 * One interrupt of the reference GIC, whatever its kind.
 */
#ifndef TESTS_REF_IRQ_H
#define TESTS_REF_IRQ_H

#include <stdbool.h>
#include <stdint.h>

struct irq {
	bool exists;
	bool latch; /* the pending latch */
	bool edge;
	bool active;
	bool enabled;
	unsigned group;
	uint8_t priority;
	uint32_t sources; /* a bit for each source that drives the line high */
};

#endif /* TESTS_REF_IRQ_H */
