/* SPDX-License-Identifier: MIT */
/*
 * measure.h - how the benchmarks measure.
 *
 * What is timed is a *series*: a function that does one thing N times and says
 * whether every result was right. All series of a program take turns, batch by
 * batch, so that a busy moment of the machine hits them alike; of the batches'
 * times the median counts. Atomic read-modify-writes are one more series, to
 * which the others are compared.
 */
#ifndef BENCH_MEASURE_H
#define BENCH_MEASURE_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

/* A function of its own in the program, so that callgrind can count what happens inside it. */
#if defined(__clang__)
#define BENCH_LOOP __attribute__((noinline))
#else
#define BENCH_LOOP __attribute__((noipa))
#endif

struct series {
	const char *name;
	bool (*run)(void *context, uint64_t iterations); /* false: a result was wrong */
	void *context;

	uint64_t iterations; /* of one batch */
	double *batch_ns;    /* per iteration, one for each batch that ran; sorted once summarized */
	unsigned num_batches;
};

struct measure_options {
	unsigned batches;    /* of each series */
	uint64_t iterations; /* of each batch; 0: so many that it takes about MEASURE_BATCH_NS */
	int cpu;             /* run there; -1: anywhere */
	bool own_time;       /* the thread's processor time: for iterations so long that other programs get into each */
	bool json;
};

#define MEASURE_BATCH_NS        200000u
#define MEASURE_DEFAULT_BATCHES 301u
#define MEASURE_MAX_BATCHES     100000u
#define MEASURE_MAX_ITERATIONS  UINT64_C(1000000000)

struct summary {
	double min, median, p90; /* nanoseconds of one iteration */
};

/* The uncontended atomic fetch_or that everything is compared with. */
void measure_init_rmw(struct series *series);

/* Pin the thread to a CPU. Returns 0 or a negative errno. */
int measure_pin(int cpu);

/* The CPU for the @index-th thread: those that the program may use, in turn. -1 if that cannot be told. */
int measure_cpu(unsigned index);

/* Of a clock that only goes forward. */
static inline uint64_t measure_now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/*
 * Run every series in @turns, in that order, options->batches times; one that is
 * there more than once gets so many more batches. Says on a terminal how far it
 * is if that takes long. Returns 0, -ENOMEM, or -EIO with @failed set to the
 * series whose results were wrong.
 */
int measure_run(struct series *const *turns, unsigned num_turns, const struct measure_options *options,
		const struct series **failed);

/* Of @n values, 1 or more, which it sorts. */
double measure_median(double *values, unsigned n);

struct summary measure_summarize(struct series *series);
void measure_free(struct series *series);

#endif /* BENCH_MEASURE_H */
