/* SPDX-License-Identifier: MIT */
/*
 * lock_inversion.c - takes two locks in one order and then in the other, one thread
 * after the other: what helgrind has to complain of, so that its silence about the
 * library means something.
 */
#include <pthread.h>

#include "port.h"

static struct port_lock *first, *second;

static void *take_second_first(void *unused)
{
	port_lock_acquire(second);
	port_lock_acquire(first);
	port_lock_release(first);
	port_lock_release(second);
	return unused;
}

int main(void)
{
	pthread_t thread;

	/* Their classes may be taken in one order: the checks of the library's own are not meant here. */
	first = port_lock_new(LOCK_CONFIG);
	second = port_lock_new(LOCK_CONFIG);
	if (!first || !second)
		return 0;
	port_lock_acquire(first);
	port_lock_acquire(second);
	port_lock_release(second);
	port_lock_release(first);
	if (pthread_create(&thread, NULL, take_second_first, NULL) != 0)
		return 0;
	pthread_join(thread, NULL);
	port_lock_free(first);
	port_lock_free(second);
	return 0;
}
