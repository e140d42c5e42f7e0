/* SPDX-License-Identifier: MIT */
/*
 * scenario.h - a program of scenarios (tests/stress, tests/schedule): their list, their
 * parameters, their failures. Each scenario does a counted amount of work and then compares counts.
 */
#ifndef STRESS_SCENARIO_H
#define STRESS_SCENARIO_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define load_relaxed(p)     atomic_load_explicit((p), memory_order_relaxed)
#define load_acquire(p)     atomic_load_explicit((p), memory_order_acquire)
#define store_relaxed(p, v) atomic_store_explicit((p), (v), memory_order_relaxed)
#define store_release(p, v) atomic_store_explicit((p), (v), memory_order_release)

/* Sanitizers that make everything slower, or that keep signals back until the next system call. */
#if defined(__SANITIZE_THREAD__)
#define STRESS_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define STRESS_TSAN 1
#endif
#endif
#ifndef STRESS_TSAN
#define STRESS_TSAN 0
#endif

/* One run of one scenario. */
struct run {
	const char *name;
	uint64_t iterations;
	uint64_t seed;
	_Atomic unsigned failures;
};

struct scenario {
	const char *name;
	const char *what;
	uint64_t iterations;      /* by default */
	uint64_t tsan_iterations; /* the same under ThreadSanitizer */
	void (*run)(struct run *run);
};

/* Count a failure, and print the first ones. Any thread. */
void run_fail(struct run *run, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Has the run failed? Threads that see it stop early. */
static inline bool run_has_failed(struct run *run)
{
	return load_relaxed(&run->failures) != 0;
}

/* One program. */
struct scenario_list {
	const char *program;
	const char *what; /* it does, for --help: a sentence without its full stop */
	const struct scenario *scenarios;
	size_t num;
	bool *trace; /* set by --trace; NULL: there is no such option */
};

/* main() of such a program. */
int scenario_main(const struct scenario_list *list, int argc, char **argv);

#endif /* STRESS_SCENARIO_H */
