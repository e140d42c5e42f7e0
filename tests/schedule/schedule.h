/* SPDX-License-Identifier: MIT */
/*
 * schedule.h - tasks that take turns by the draw of a seed.
 *
 * A run has some tasks in one thread. Before each atomic access of the library, and
 * wherever a task waits, the scheduler may go on with another one. Which one is drawn
 * from the run's seed, and nothing else decides: a seed gives the same run each time.
 */
#ifndef SCHEDULE_SCHEDULE_H
#define SCHEDULE_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>

#define SCHEDULE_MAX_TASKS 8u

/* A counting semaphore. */
struct gate {
	unsigned tokens;
};

enum schedule_end {
	SCHEDULE_AT_REST, /* every task has ended, or is a servant that waits at a gate */
	SCHEDULE_STUCK,   /* a task that should end waits for what nobody will do */
	SCHEDULE_ENDLESS, /* so many steps that it may never end */
};

/* Forget all tasks and begin a run. */
void schedule_begin(uint64_t seed, bool trace);
/* @name is static. A servant need not end. */
void schedule_task(const char *name, void (*main)(void *context), void *context, bool servant);
/* Let them run. Tasks that have not ended are given up. */
enum schedule_end schedule_run(void);
/* Accesses made in this run. */
uint64_t schedule_steps(void);

/* ---- By tasks ---- */

/* Take a token; wait for one. */
void gate_wait(struct gate *gate);
/* By anyone. */
void gate_post(struct gate *gate);
/* Let others run: in a loop that waits for something. Call it in each turn. */
void schedule_yield(void);
/* A number drawn from the seed, 0 to @limit-1. Also before the run. */
uint32_t schedule_draw(uint32_t limit);
/* A line in the trace, if there is one: what the task is about to do. */
void schedule_note(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif /* SCHEDULE_SCHEDULE_H */
