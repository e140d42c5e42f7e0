/* SPDX-License-Identifier: MIT */
/*
 * port_schedule.c - the port layer for tasks that take turns in one thread: see
 * schedule.h. A lock is a flag; there is no randomness and no clock but the run's own.
 */
#include "port.h"

#include <stdlib.h>
#include <string.h>

#include "schedule.h"

struct port_lock {
	bool held;
};

void *port_alloc_zeroed(size_t size, size_t align)
{
	void *memory = NULL;

	if (posix_memalign(&memory, align < sizeof(void *) ? sizeof(void *) : align, size) != 0)
		return NULL;
	memset(memory, 0, size);
	return memory;
}

void port_free(void *memory)
{
	free(memory);
}

struct port_lock *port_lock_new(enum lock_class class)
{
	(void)class;
	return calloc(1, sizeof(struct port_lock));
}

void port_lock_free(struct port_lock *lock)
{
	free(lock);
}

void port_lock_acquire(struct port_lock *lock)
{
	schedule_point("lock", 0, "acquire");
	while (lock->held)
		schedule_yield();
	lock->held = true;
}

void port_lock_release(struct port_lock *lock)
{
	lock->held = false;
	schedule_point("lock", 0, "released");
}

void port_pause(unsigned turn)
{
	(void)turn;
	schedule_yield();
}

uint64_t port_random(void)
{
	return UINT64_C(0x243f6a8885a308d3);
}

uint64_t port_now_ns(void)
{
	return schedule_steps();
}
