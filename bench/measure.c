/* SPDX-License-Identifier: MIT */
/*
 * measure.c - calibrates, times and summarizes series (measure.h).
 */
#define _GNU_SOURCE
#include "measure.h"

#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define NS_PER_S         1000000000ull
#define PROGRESS_FROM_NS (2 * NS_PER_S) /* a run that is expected to take longer says how far it is */
#define PROGRESS_STEP_NS (NS_PER_S / 5)
#define CALIBRATION_RUNS 5

/* A cache line of its own: nothing but this loop touches it. */
static struct {
	_Alignas(128) _Atomic uint64_t word;
} rmw_line;

BENCH_LOOP static bool loop_rmw(void *unused, uint64_t iterations)
{
	(void)unused;
	for (uint64_t i = 0; i < iterations; i++)
		atomic_fetch_or(&rmw_line.word, UINT64_C(1) << (i & 63));
	return atomic_load(&rmw_line.word) != 0;
}

void measure_init_rmw(struct series *series)
{
	*series = (struct series){ .name = "atomic fetch_or", .run = loop_rmw };
}

int measure_pin(int cpu)
{
	cpu_set_t set;

	if (cpu < 0 || cpu >= CPU_SETSIZE)
		return -EINVAL;
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	return sched_setaffinity(0, sizeof(set), &set) ? -errno : 0;
}

int measure_cpu(unsigned index)
{
	cpu_set_t set;
	unsigned count;

	if (sched_getaffinity(0, sizeof(set), &set))
		return -1;
	count = (unsigned)CPU_COUNT(&set);
	index %= count ? count : 1;
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (CPU_ISSET(cpu, &set) && index-- == 0)
			return cpu;
	}
	return -1;
}

static uint64_t now_ns(const struct measure_options *options)
{
	struct timespec t;

	if (!options->own_time)
		return measure_now_ns();
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

/* The fastest of a few runs: one alone may have been interrupted by something else. UINT64_MAX on a wrong result. */
static uint64_t fastest_run(const struct series *series, uint64_t iterations)
{
	uint64_t fastest = UINT64_MAX;

	for (unsigned i = 0; i < CALIBRATION_RUNS; i++) {
		const uint64_t start = measure_now_ns();

		if (!series->run(series->context, iterations))
			return UINT64_MAX;

		const uint64_t took = measure_now_ns() - start;

		if (took < fastest)
			fastest = took;
	}
	return fastest;
}

/* Warms the caches, and finds the number of iterations that makes a batch. Returns false on a wrong result. */
static bool calibrate(struct series *series, uint64_t fixed_iterations)
{
	uint64_t n = 1, took;

	if (fixed_iterations) {
		series->iterations = fixed_iterations;
		return true;
	}
	while ((took = fastest_run(series, n)) < MEASURE_BATCH_NS / 2 && n < MEASURE_MAX_ITERATIONS)
		n *= 2;
	if (took == UINT64_MAX)
		return false;
	series->iterations = took ? n * MEASURE_BATCH_NS / took : n;
	if (series->iterations == 0)
		series->iterations = 1;
	return true;
}

/* ---- How far it is, for a person who waits ---- */

struct progress {
	bool shown;
	uint64_t started, next;
	unsigned total;
};

static void progress_start(struct progress *progress, uint64_t expected_ns, unsigned total)
{
	progress->shown = expected_ns > PROGRESS_FROM_NS && isatty(STDERR_FILENO);
	progress->started = measure_now_ns();
	progress->next = progress->started;
	progress->total = total;
}

static void progress_update(struct progress *progress, unsigned done)
{
	if (!progress->shown || measure_now_ns() < progress->next)
		return;
	progress->next = measure_now_ns() + PROGRESS_STEP_NS;
	fprintf(stderr, "\rmeasuring: %3u %%", done * 100 / progress->total);
	fflush(stderr);
}

static void progress_end(const struct progress *progress)
{
	if (progress->shown)
		fprintf(stderr, "\r                \r");
}

/* ---- Running ---- */

static int prepare_series(struct series *series, struct series *const *turns, unsigned num_turns,
			  const struct measure_options *options)
{
	size_t times = 0;

	if (series->batch_ns)
		return 0;
	for (unsigned i = 0; i < num_turns; i++)
		times += turns[i] == series;
	series->batch_ns = calloc(options->batches * times, sizeof(double));
	if (!series->batch_ns)
		return -ENOMEM;
	return calibrate(series, options->iterations) ? 0 : -EIO;
}

static bool run_batch(struct series *series, const struct measure_options *options)
{
	const uint64_t start = now_ns(options);
	const bool right = series->run(series->context, series->iterations);
	const uint64_t took = now_ns(options) - start;

	series->batch_ns[series->num_batches++] = (double)took / (double)series->iterations;
	return right;
}

int measure_run(struct series *const *turns, unsigned num_turns, const struct measure_options *options,
		const struct series **failed)
{
	struct progress progress;

	for (unsigned i = 0; i < num_turns; i++) {
		const int error = prepare_series(turns[i], turns, num_turns, options);

		if (error) {
			*failed = turns[i];
			return error;
		}
	}
	progress_start(&progress, (uint64_t)options->batches * num_turns * MEASURE_BATCH_NS, options->batches);
	for (unsigned batch = 0; batch < options->batches; batch++) {
		progress_update(&progress, batch);
		for (unsigned i = 0; i < num_turns; i++) {
			if (!run_batch(turns[i], options)) {
				progress_end(&progress);
				*failed = turns[i];
				return -EIO;
			}
		}
	}
	progress_end(&progress);
	return 0;
}

static int compare_doubles(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

double measure_median(double *values, unsigned n)
{
	qsort(values, n, sizeof(double), compare_doubles);
	return (values[(n - 1) / 2] + values[n / 2]) / 2;
}

struct summary measure_summarize(struct series *series)
{
	const unsigned n = series->num_batches;
	const double median = measure_median(series->batch_ns, n);

	return (struct summary){
		.min = series->batch_ns[0],
		.median = median,
		.p90 = series->batch_ns[(n - 1) * 9 / 10],
	};
}

void measure_free(struct series *series)
{
	free(series->batch_ns);
	series->batch_ns = NULL;
	series->num_batches = 0;
}
