/* SPDX-License-Identifier: MIT */
/*
 * signaller.h - a thread that signals the vectors that are enabled already, one after
 * the other, every few microseconds: a change of routes has readers.
 *
 * One that did nothing else would be in a read section whenever the host takes its CPU
 * away, and a grace period as long as that: the original's read sections are not
 * interrupted.
 */
#ifndef BENCH_SIGNALLER_H
#define BENCH_SIGNALLER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct signaller {
	/* Set by the user before it starts. */
	int (*signal)(void *opaque, uint32_t gsi); /* 1 if all is well */
	void *opaque;
	int cpu;

	_Atomic uint32_t num_enabled; /* GSIs from 0 on; 0 at first, the user raises it */

	/* Of signaller.c. */
	pthread_t thread;
	_Atomic bool stop;
	_Atomic uint64_t rounds;
	bool right;
};

/* Returns when it runs; false if there is no thread. */
bool signaller_start(struct signaller *s);

/* Returns whether all signals were right. */
bool signaller_stop(struct signaller *s);

#endif /* BENCH_SIGNALLER_H */
