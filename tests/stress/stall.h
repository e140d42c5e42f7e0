/* SPDX-License-Identifier: MIT */
/*
 * stall.h - stop threads between any two instructions, by signals.
 *
 * Races that need a thread to be preempted inside a window of a few instructions
 * are rare by themselves. A *shaker* signals random threads, whose handler sleeps
 * for a while; a *hold* stops one thread until it is released. Both are bounded:
 * a thread that holds a lock that the others need goes on by itself.
 *
 * ThreadSanitizer keeps signals back until the next system call: there is no
 * point in it then, and both do nothing.
 */
#ifndef STRESS_STALL_H
#define STRESS_STALL_H

#include <pthread.h>

#include "stress.h"

#define SHAKER_MAX_THREADS 32

struct shaker {
	bool running;
	pthread_t thread;
	_Atomic bool stop;
	struct rng rng;
	pthread_mutex_t lock; /* guards what follows: no thread ends while it is being signalled */
	struct {
		pthread_t thread;
		bool alive;
	} threads[SHAKER_MAX_THREADS];
	unsigned num_threads;
};

void shaker_start(struct shaker *shaker, uint64_t seed, bool enabled);
void shaker_stop(struct shaker *shaker);

/* A thread that may be stalled begins and ends. Returns its number, for shaker_leave(). */
unsigned shaker_enter(struct shaker *shaker);
void shaker_leave(struct shaker *shaker, unsigned number);

/*
 * Stop @thread wherever it is: ask for it, and it has stopped once hold_is_entered() says so; hold_thread() waits for that.
 * Both return false if threads cannot be stopped. release_thread() lets it go on. One hold at a time in the process.
 */
bool hold_request(pthread_t thread);
bool hold_is_entered(void);
bool hold_thread(pthread_t thread);
void release_thread(void);

#endif /* STRESS_STALL_H */
