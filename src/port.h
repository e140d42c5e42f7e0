/* SPDX-License-Identifier: MIT */
/*
 * port.h - everything that the core takes from its host.
 *
 * port_posix.c implements it with libc and pthreads. A host without them
 * supplies another file with the same functions; nothing else in the core
 * includes a system header beyond the freestanding ones, <errno.h> and
 * <string.h>.
 */
#ifndef VGIC_PORT_H
#define VGIC_PORT_H

#include <stddef.h>
#include <stdint.h>

#include "lock_check.h"

/* A mutual exclusion lock, for the configuration path only. Never taken by a call that delivers an interrupt. */
struct port_lock;

/*
 * Zeroed memory of @size bytes, aligned to @align (a power of two). Called only
 * while a controller is being created, and by the calls that save and restore. NULL if there is none.
 */
void *port_alloc_zeroed(size_t size, size_t align);
void port_free(void *memory);

/* A new lock, or NULL if there is no memory. Its class is what the checks of lock_check.h are told of. */
struct port_lock *port_lock_new(enum lock_class class);
void port_lock_free(struct port_lock *lock);
void port_lock_acquire(struct port_lock *lock);
void port_lock_release(struct port_lock *lock);

/*
 * Let other threads run, @turn times before already: for the configuration path, to wait for a thread that is in the
 * middle of something short.
 */
void port_pause(unsigned turn);

/* A number that a guest cannot guess: it keys hash tables. Falls back on the clock if the host has no randomness. */
uint64_t port_random(void);

/* A clock that does not jump, in nanoseconds, for rate limits and statistics. */
uint64_t port_now_ns(void);

#endif /* VGIC_PORT_H */
