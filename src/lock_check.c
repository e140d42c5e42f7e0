/* SPDX-License-Identifier: MIT */
/*
 * lock_check.c - which locks a thread holds, and whether it may take one more: see
 * lock_check.h. Only in builds with checks.
 */
#include "lock_check.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#define BIT(class) (1u << (class))

static const struct {
	const char *name;
	unsigned may_be_held; /* classes of locks that the thread may hold already */
} classes[NUM_LOCK_CLASSES] = {
	[LOCK_CONFIG] = { "config_lock", 0 },
	[LOCK_ROUTES] = { "a route table's lock", BIT(LOCK_MSIX) | BIT(LOCK_ROUTE_LIST) },
	[LOCK_ROUTE_LIST] = { "routes_lock", 0 },
	[LOCK_IRQFDS] = { "the irqfds' lock", BIT(LOCK_MSIX) },
	[LOCK_MSIX] = { "an MSI-X device's lock", 0 },
};

static __thread struct lock_check_thread thread;

static const char *first_name(unsigned held)
{
	return classes[__builtin_ctz(held)].name;
}

static _Noreturn void stop(const char *does, const char *what, const char *while_it)
{
	fprintf(stderr, "libvgic: a thread %s %s while it %s\n", does, what, while_it);
	abort();
}

void lock_check_acquire(enum lock_class class)
{
	const unsigned wrong = thread.held & ~classes[class].may_be_held;

	if (thread.deliveries)
		stop("takes", classes[class].name, "delivers an interrupt");
	if (wrong) {
		char held[64];

		snprintf(held, sizeof(held), "holds %s", first_name(wrong));
		stop("takes", classes[class].name, held);
	}
	thread.held |= BIT(class);
}

void lock_check_release(enum lock_class class)
{
	if (!(thread.held & BIT(class)))
		stop("releases", classes[class].name, "does not hold it");
	thread.held &= ~BIT(class);
}

void lock_check_allocation(void)
{
	if (thread.deliveries)
		stop("allocates or frees", "memory", "delivers an interrupt");
}

int lock_check_begin_delivery(void)
{
	thread.deliveries++;
	return 0;
}

void lock_check_end_delivery(const int *unused)
{
	(void)unused;
	thread.deliveries--;
}

struct lock_check_thread lock_check_leave(void)
{
	const struct lock_check_thread left = thread;

	thread = (struct lock_check_thread){ 0 };
	return left;
}

void lock_check_return(struct lock_check_thread left)
{
	thread = left;
}
