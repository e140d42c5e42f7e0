/* SPDX-License-Identifier: MIT */
/*
 * idle_vcpus.h - a thread for each vCPU that sleeps: a grace period of the historic way
 * to change routes has to look at all of them.
 */
#ifndef BENCH_IDLE_VCPUS_H
#define BENCH_IDLE_VCPUS_H

#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdint.h>

struct idle_vcpus {
	pthread_t *threads;
	uint32_t num_threads;
	sem_t registered, leave;
};

/* Returns when all sleep; false if there is no memory for them, or no threads. idle_vcpus_stop() in any case. */
bool idle_vcpus_start(struct idle_vcpus *v, uint32_t num);
void idle_vcpus_stop(struct idle_vcpus *v);

#endif /* BENCH_IDLE_VCPUS_H */
