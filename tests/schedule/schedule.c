/* SPDX-License-Identifier: MIT */
/*
 * schedule.c - the scheduler: see schedule.h.
 *
 * Two ways of drawing, one for each run. The first goes on with the same task for a while
 * and then takes any other. The second gives each task a priority, always runs the one
 * with the highest, and now and then puts the running one at the end: it finds what needs
 * a task to stay away for very long (S. Burckhardt et al., A randomized scheduler with
 * probabilistic guarantees of finding bugs, 2010). How long the whiles are is drawn too.
 */
#include "schedule.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include "hook.h"

#define STACK_SIZE       0x40000u
/* More than any run needs by a factor of ten. */
#define MAX_STEPS        200000u
/* A task that waits in a loop looks so often at most while nobody else can run. */
#define MAX_LONELY_TURNS 2000u

enum task_state {
	TASK_RUNNABLE,
	TASK_WAITING, /* at a gate */
	TASK_ENDED,
};

struct task {
	const char *name;
	void (*main)(void *context);
	void *context;
	bool servant;
	enum task_state state;
	struct gate *gate;
	uint32_t priority;
	ucontext_t registers;
};

/*
 * Accesses between two turns, on the average. A compare-and-swap is as good for one as four others: what it is prepared
 * for may go wrong just before it.
 */
static const uint32_t whiles[] = { 4, 24, 128, 2000 };

static struct {
	uint64_t random;
	bool by_priority;
	uint32_t turn_one_in;
	bool trace;
	struct task tasks[SCHEDULE_MAX_TASKS];
	unsigned num_tasks;
	struct task *current; /* NULL outside of schedule_run() */
	uint32_t lowest;      /* priority given away so far */
	uint32_t lonely_turns;
	uint64_t steps;
	enum schedule_end end;
	ucontext_t caller;
} s;

static _Alignas(64) unsigned char stacks[SCHEDULE_MAX_TASKS][STACK_SIZE];

/* ---- What is drawn ---- */

static uint64_t draw(void)
{
	s.random ^= s.random >> 12;
	s.random ^= s.random << 25;
	s.random ^= s.random >> 27;
	return s.random * UINT64_C(0x2545f4914f6cdd1d);
}

uint32_t schedule_draw(uint32_t limit)
{
	return (uint32_t)((draw() >> 32) * limit >> 32);
}

bool schedule_fails_spuriously(void)
{
	return s.current && schedule_draw(16) == 0;
}

/* ---- Who is next ---- */

static bool is_runnable(const struct task *task)
{
	return task->state == TASK_RUNNABLE;
}

/* Any runnable task but @except, or NULL. */
static struct task *draw_task(const struct task *except)
{
	struct task *found = NULL;
	uint32_t seen = 0;

	for (unsigned i = 0; i < s.num_tasks; i++) {
		struct task *task = &s.tasks[i];

		if (is_runnable(task) && task != except && schedule_draw(++seen) == 0)
			found = task;
	}
	return found;
}

static struct task *highest_task(void)
{
	struct task *found = NULL;

	for (unsigned i = 0; i < s.num_tasks; i++) {
		struct task *task = &s.tasks[i];

		if (is_runnable(task) && (!found || task->priority > found->priority))
			found = task;
	}
	return found;
}

static struct task *next_task(const struct task *except)
{
	return s.by_priority ? highest_task() : draw_task(except);
}

/* Priorities count down from far above. */
static void put_last(struct task *task)
{
	task->priority = --s.lowest;
}

/* ---- Going on with another ---- */

static void stop_run(enum schedule_end end)
{
	s.end = end;
	swapcontext(&s.current->registers, &s.caller);
}

static void go_on_with(struct task *next)
{
	struct task *before = s.current;

	if (next == before)
		return;
	s.current = next;
	if (s.trace)
		printf("# %-8s goes on\n", next->name);
	swapcontext(&before->registers, &next->registers);
}

/* The current task cannot go on. */
static void leave(void)
{
	struct task *next = next_task(s.current);

	if (!next)
		stop_run(SCHEDULE_AT_REST);
	else
		go_on_with(next);
}

void schedule_point(const char *file, int line, const char *access)
{
	const struct task *except = s.current;
	const char *slash = strrchr(file, '/');
	struct task *next;

	if (!s.current)
		return;
	if (++s.steps > MAX_STEPS)
		stop_run(SCHEDULE_ENDLESS);
	if (schedule_draw(strstr(access, "cas") ? s.turn_one_in / 4 : s.turn_one_in) == 0) {
		if (s.by_priority)
			put_last(s.current);
		next = next_task(except);
		if (next)
			go_on_with(next);
	}
	s.lonely_turns = 0;
	if (s.trace)
		printf("# %-8s %s:%d %s\n", s.current->name, slash ? slash + 1 : file, line, access);
}

void schedule_yield(void)
{
	struct task *next;

	if (!s.current)
		return;
	if (++s.steps > MAX_STEPS)
		stop_run(SCHEDULE_ENDLESS);
	put_last(s.current);
	next = next_task(s.current);
	if (next && next != s.current)
		go_on_with(next);
	else if (++s.lonely_turns > MAX_LONELY_TURNS)
		stop_run(SCHEDULE_STUCK);
}

void gate_wait(struct gate *gate)
{
	while (gate->tokens == 0) {
		s.current->state = TASK_WAITING;
		s.current->gate = gate;
		leave();
	}
	gate->tokens--;
}

void gate_post(struct gate *gate)
{
	gate->tokens++;
	for (unsigned i = 0; i < s.num_tasks; i++) {
		if (s.tasks[i].state == TASK_WAITING && s.tasks[i].gate == gate)
			s.tasks[i].state = TASK_RUNNABLE;
	}
}

/* ---- A run ---- */

static void run_task(void)
{
	s.current->main(s.current->context);
	s.current->state = TASK_ENDED;
	leave();
}

void schedule_begin(uint64_t seed, bool trace)
{
	memset(&s, 0, sizeof(s));
	s.random = (seed + 1) * UINT64_C(0x9e3779b97f4a7c15) | 1;
	s.by_priority = schedule_draw(2);
	s.turn_one_in = whiles[schedule_draw(s.by_priority ? 4 : 2)];
	s.trace = trace;
	s.lowest = UINT32_MAX / 2;
}

void schedule_task(const char *name, void (*main)(void *context), void *context, bool servant)
{
	struct task *task = &s.tasks[s.num_tasks];

	if (s.num_tasks == SCHEDULE_MAX_TASKS || getcontext(&task->registers) != 0)
		abort();
	task->name = name;
	task->main = main;
	task->context = context;
	task->servant = servant;
	task->priority = UINT32_MAX / 2 + schedule_draw(1000);
	task->registers.uc_stack.ss_sp = stacks[s.num_tasks];
	task->registers.uc_stack.ss_size = STACK_SIZE;
	makecontext(&task->registers, run_task, 0);
	s.num_tasks++;
}

enum schedule_end schedule_run(void)
{
	s.current = next_task(NULL);
	if (!s.current)
		return SCHEDULE_AT_REST;
	swapcontext(&s.caller, &s.current->registers);
	s.current = NULL;
	for (unsigned i = 0; i < s.num_tasks && s.end == SCHEDULE_AT_REST; i++) {
		if (s.tasks[i].state == TASK_WAITING && !s.tasks[i].servant)
			s.end = SCHEDULE_STUCK;
	}
	return s.end;
}

uint64_t schedule_steps(void)
{
	return s.steps;
}

void schedule_note(const char *format, ...)
{
	va_list args;

	if (!s.trace)
		return;
	printf("# %-8s -- ", s.current ? s.current->name : "");
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	putchar('\n');
}
