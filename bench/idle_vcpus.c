/* SPDX-License-Identifier: MIT */
/*
 * idle_vcpus.c - threads that sleep (idle_vcpus.h).
 */
#include "idle_vcpus.h"

#include <stdlib.h>

#include "baselines/route_table.h"

static void wait_for(sem_t *semaphore)
{
	while (sem_wait(semaphore))
		; /* a signal came */
}

static void *run(void *argument)
{
	struct idle_vcpus *v = argument;

	base_routes_register_reader();
	sem_post(&v->registered);
	wait_for(&v->leave);
	return NULL;
}

bool idle_vcpus_start(struct idle_vcpus *v, uint32_t num)
{
	*v = (struct idle_vcpus){ .threads = calloc(num, sizeof(*v->threads)) };
	sem_init(&v->registered, 0, 0);
	sem_init(&v->leave, 0, 0);
	while (v->threads && v->num_threads < num && !pthread_create(&v->threads[v->num_threads], NULL, run, v))
		v->num_threads++;
	for (uint32_t i = 0; i < v->num_threads; i++)
		wait_for(&v->registered);
	return v->num_threads == num;
}

void idle_vcpus_stop(struct idle_vcpus *v)
{
	for (uint32_t i = 0; i < v->num_threads; i++)
		sem_post(&v->leave);
	for (uint32_t i = 0; i < v->num_threads; i++)
		pthread_join(v->threads[i], NULL);
	sem_destroy(&v->registered);
	sem_destroy(&v->leave);
	free(v->threads);
	*v = (struct idle_vcpus){ .num_threads = 0 };
}
