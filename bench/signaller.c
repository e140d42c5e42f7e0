/* SPDX-License-Identifier: MIT */
/*
 * signaller.c - a thread that signals vectors (signaller.h).
 */
#include "signaller.h"

#include <sched.h>

#include "measure.h"

#define SIGNAL_EVERY_NS 5000u

static void *run(void *argument)
{
	struct signaller *s = argument;
	uint64_t rounds = 0;

	measure_pin(s->cpu);
	for (uint32_t gsi = 0; !atomic_load(&s->stop);) {
		const uint32_t num_enabled = atomic_load(&s->num_enabled);
		const uint64_t next = measure_now_ns() + SIGNAL_EVERY_NS;

		atomic_store_explicit(&s->rounds, ++rounds, memory_order_relaxed);
		if (num_enabled) {
			gsi = gsi + 1 < num_enabled ? gsi + 1 : 0;
			s->right &= s->signal(s->opaque, gsi) == 1;
		}
		while (measure_now_ns() < next)
			;
	}
	return NULL;
}

bool signaller_start(struct signaller *s)
{
	s->right = true;
	atomic_store(&s->num_enabled, 0);
	atomic_store(&s->stop, false);
	atomic_store(&s->rounds, 0);
	if (pthread_create(&s->thread, NULL, run, s))
		return false;
	while (atomic_load(&s->rounds) == 0)
		sched_yield();
	return true;
}

bool signaller_stop(struct signaller *s)
{
	atomic_store(&s->stop, true);
	pthread_join(s->thread, NULL);
	return s->right;
}
