/* SPDX-License-Identifier: MIT */
/*
 * port_posix.c - the port layer on libc and pthreads.
 */
#include "port.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

struct port_lock {
	pthread_mutex_t mutex;
	enum lock_class class;
};

void *port_alloc_zeroed(size_t size, size_t align)
{
	void *memory = NULL;

	lock_check_allocation();
	if (size > SIZE_MAX - align)
		return NULL;
	if (posix_memalign(&memory, align < sizeof(void *) ? sizeof(void *) : align, size) != 0)
		return NULL;
	memset(memory, 0, size);
	return memory;
}

void port_free(void *memory)
{
	lock_check_allocation();
	free(memory);
}

struct port_lock *port_lock_new(enum lock_class class)
{
	struct port_lock *lock = port_alloc_zeroed(sizeof(*lock), _Alignof(struct port_lock));

	if (!lock)
		return NULL;
	lock->class = class;
	if (pthread_mutex_init(&lock->mutex, NULL) != 0) {
		port_free(lock);
		return NULL;
	}
	return lock;
}

void port_lock_free(struct port_lock *lock)
{
	if (!lock)
		return;
	pthread_mutex_destroy(&lock->mutex);
	port_free(lock);
}

void port_lock_acquire(struct port_lock *lock)
{
	lock_check_acquire(lock->class);
	pthread_mutex_lock(&lock->mutex);
}

void port_lock_release(struct port_lock *lock)
{
	pthread_mutex_unlock(&lock->mutex);
	lock_check_release(lock->class);
}

/* A thread that does not get on for that long has been preempted: leave it the processor. */
#define TURNS_BEFORE_SLEEP 100u
#define SLEEP_NS           50000

void port_pause(unsigned turn)
{
	const struct timespec moment = { .tv_nsec = SLEEP_NS };

	if (turn < TURNS_BEFORE_SLEEP)
		sched_yield();
	else
		nanosleep(&moment, NULL);
}

uint64_t port_random(void)
{
	uint64_t value;

	if (getrandom(&value, sizeof(value), 0) != (ssize_t)sizeof(value))
		value = port_now_ns() * 0x9e3779b97f4a7c15u;
	return value;
}

uint64_t port_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}
