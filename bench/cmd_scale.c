/* SPDX-License-Identifier: MIT */
/*
 * cmd_scale.c - `vgic-bench scale`: several threads that inject MSIs at once, with
 * every policy.
 *
 * own     each thread is a device and a vCPU: it signals its events, then takes them
 * shared  all devices' events go to one vCPU, which the first thread is
 *
 * Beside them, as the policy `rmw`, threads that do atomic operations on cache
 * lines of their own: what the machine gains from more threads. Thread n runs on
 * the n-th CPU that the program may use.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "its_bench.h"

#define BATCH_NS            2000000u /* long enough that the start of a thread does not count */
#define MAX_ITERATIONS      1000000u
#define CALIBRATION_BATCHES 5u
#define CACHE_LINE          128

/* A thread waits for the others: about half a millisecond, in case they have no CPU of their own. */
#define SPINS_BEFORE_YIELD 100000

enum target { OWN, SHARED };

struct row;

struct worker {
	_Alignas(CACHE_LINE) struct row *row;
	unsigned index;
	pthread_t thread;
	uint64_t start_ns, end_ns;
	uint64_t acknowledged;
	bool right;
	_Alignas(CACHE_LINE) _Atomic uint64_t private_word;
};

struct row {
	unsigned num_threads;
	enum target target;
	const struct policy_ops *ops; /* NULL: rmw */
	struct policy *policy;
	uint32_t num_vcpus, num_events;
	uint64_t iterations;
	double *rates;
	unsigned num_rates;
	struct worker *workers;
	_Atomic unsigned num_ready;
	_Atomic bool go;
};

/* ---- What a thread does ---- */

/* Takes what is pending at the vCPU, but no more than could have come. */
static uint64_t take_all(struct row *row, uint32_t vcpu)
{
	const uint64_t most = (uint64_t)row->num_events * (row->target == OWN ? 1 : row->num_threads);
	uint64_t num = 0;

	while (num < most) {
		const uint32_t intid = row->ops->acknowledge(row->policy, vcpu);

		if (intid == POLICY_SPURIOUS)
			break;
		row->ops->end(row->policy, vcpu, intid);
		num++;
	}
	return num;
}

static void inject_rounds(struct worker *worker)
{
	struct row *row = worker->row;
	const bool is_vcpu = row->target == OWN || worker->index == 0;

	for (uint64_t i = 0; i < row->iterations; i++) {
		for (uint32_t eventid = 0; eventid < row->num_events; eventid++)
			worker->right &= row->ops->inject(row->policy, worker->index, eventid) == 1;
		if (is_vcpu)
			worker->acknowledged += take_all(row, row->target == OWN ? worker->index : 0);
	}
}

static void rmw_rounds(struct worker *worker)
{
	const uint64_t num = worker->row->iterations * worker->row->num_events;

	for (uint64_t i = 0; i < num; i++)
		atomic_fetch_or(&worker->private_word, UINT64_C(1) << (i & 63));
}

/* Who comes last starts all. The others are awake then, and do not have to be scheduled first. */
static void start_together(struct row *row)
{
	if (atomic_fetch_add(&row->num_ready, 1) + 1 == row->num_threads)
		atomic_store(&row->go, true);
	for (unsigned spins = 1; !atomic_load(&row->go); spins++) {
		if (spins % SPINS_BEFORE_YIELD == 0)
			sched_yield();
	}
}

static void *run_worker(void *argument)
{
	struct worker *worker = argument;
	struct row *row = worker->row;

	measure_pin(measure_cpu(worker->index));
	start_together(row);
	worker->start_ns = measure_now_ns();
	if (row->ops)
		inject_rounds(worker);
	else
		rmw_rounds(worker);
	worker->end_ns = measure_now_ns();
	return NULL;
}

/* ---- Batches ---- */

/* Were all taken? With vCPUs of their own each signal is taken at once; on a shared one, signals merge. */
static bool batch_is_right(struct row *row)
{
	const uint64_t injected = row->num_threads * row->iterations * row->num_events;
	uint64_t acknowledged = 0, more = 0;
	bool right = true;

	if (!row->ops)
		return true;
	for (uint32_t vcpu = 0; vcpu < row->num_vcpus; vcpu++)
		more += take_all(row, vcpu) + take_all(row, vcpu);
	for (unsigned i = 0; i < row->num_threads; i++) {
		right &= row->workers[i].right;
		acknowledged += row->workers[i].acknowledged;
	}
	if (row->target == OWN)
		return right && more == 0 && acknowledged == injected;
	/* The vCPU's own device finds everything taken each time: none of its signals merges. */
	acknowledged += more;
	return right && acknowledged <= injected && acknowledged >= row->iterations;
}

/* Runs all threads once. Returns the time from the first one's start to the last one's end, 0 if something failed. */
static uint64_t run_batch(struct row *row)
{
	uint64_t start = UINT64_MAX, end = 0;
	unsigned num_started = 0;

	atomic_store(&row->num_ready, 0);
	atomic_store(&row->go, false);
	for (; num_started < row->num_threads; num_started++) {
		struct worker *worker = &row->workers[num_started];

		worker->row = row;
		worker->index = num_started;
		worker->acknowledged = 0;
		worker->right = true;
		if (pthread_create(&worker->thread, NULL, run_worker, worker))
			break;
	}
	if (num_started < row->num_threads)
		atomic_store(&row->go, true);
	for (unsigned i = 0; i < num_started; i++) {
		pthread_join(row->workers[i].thread, NULL);
		start = row->workers[i].start_ns < start ? row->workers[i].start_ns : start;
		end = row->workers[i].end_ns > end ? row->workers[i].end_ns : end;
	}
	if (num_started < row->num_threads || !batch_is_right(row))
		return 0;
	return end > start ? end - start : 1;
}

/* The shortest of a few batches: one that was interrupted would look long enough with far too few iterations. */
static uint64_t run_shortest_batch(struct row *row)
{
	uint64_t shortest = UINT64_MAX;

	for (unsigned i = 0; i < CALIBRATION_BATCHES; i++) {
		const uint64_t took = run_batch(row);

		shortest = took < shortest ? took : shortest;
	}
	return shortest;
}

static bool calibrate(struct row *row, uint64_t fixed_iterations)
{
	for (row->iterations = fixed_iterations ? fixed_iterations : 1;; row->iterations *= 2) {
		const uint64_t took = run_shortest_batch(row);

		if (took == 0)
			return false;
		if (fixed_iterations || took >= BATCH_NS / 2 || row->iterations >= MAX_ITERATIONS)
			return true;
	}
}

static bool measure_row(struct row *row)
{
	const uint64_t took = run_batch(row);
	const uint64_t num = row->num_threads * row->iterations * row->num_events;

	if (took == 0)
		return false;
	row->rates[row->num_rates++] = (double)num * 1e9 / (double)took;
	return true;
}

/* ---- Rows ---- */

static const char *row_name(const struct row *row)
{
	return row->ops ? row->ops->name : "rmw";
}

static const char *target_name(const struct row *row)
{
	return row->target == OWN ? "own" : "shared";
}

/* Device n's events on vCPU n, or all on vCPU 0. */
static bool map(struct row *row)
{
	const struct policy_ops *ops = row->ops;
	int error = 0;

	for (uint32_t vcpu = 0; vcpu < row->num_vcpus; vcpu++)
		error |= ops->command(row->policy,
				      &(struct policy_command){ .opcode = POLICY_MAPC, .icid = vcpu, .vcpu = vcpu });
	for (uint32_t devid = 0; devid < row->num_threads; devid++) {
		error |= ops->command(row->policy, &(struct policy_command){
							   .opcode = POLICY_MAPD, .devid = devid, .event_bits = 16 });
		for (uint32_t eventid = 0; eventid < row->num_events; eventid++)
			error |= ops->command(
				row->policy,
				&(struct policy_command){ .opcode = POLICY_MAPTI,
							  .devid = devid,
							  .eventid = eventid,
							  .intid = POLICY_FIRST_LPI + devid * row->num_events + eventid,
							  .icid = devid % row->num_vcpus });
	}
	return error == 0;
}

static bool init_row(struct row *row, const struct policy_ops *ops, unsigned num_threads, enum target target,
		     const struct bench_options *options)
{
	const struct policy_config config = { .num_vcpus = target == OWN ? num_threads : 1 };

	row->num_threads = num_threads;
	row->target = target;
	row->ops = ops;
	row->num_vcpus = config.num_vcpus;
	row->num_events = options->num_events;
	row->rates = calloc(options->measure.batches, sizeof(double));
	row->workers = aligned_alloc(CACHE_LINE, num_threads * sizeof(struct worker));
	if (!row->rates || !row->workers)
		return false;
	memset(row->workers, 0, num_threads * sizeof(struct worker));
	if (!ops)
		return true;
	row->policy = ops->create(&config);
	return row->policy && map(row);
}

static unsigned init_rows(struct row *rows, const struct bench_options *options)
{
	unsigned num = 0;

	for (unsigned i = 0; i < options->num_threads; i++) {
		if (!init_row(&rows[num++], NULL, options->threads[i], OWN, options))
			return 0;
		for (unsigned j = 0; j < 2 * options->num_policies; j++) {
			if (!init_row(&rows[num++], options->policies[j / 2], options->threads[i], j % 2 ? SHARED : OWN,
				      options))
				return 0;
		}
	}
	return num;
}

/* ---- Results ---- */

static int compare_doubles(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(struct row *row)
{
	qsort(row->rates, row->num_rates, sizeof(double), compare_doubles);
	return (row->rates[(row->num_rates - 1) / 2] + row->rates[row->num_rates / 2]) / 2;
}

static void print_json(struct row *rows, unsigned num_rows)
{
	printf("{\"rows\":[");
	for (unsigned i = 0; i < num_rows; i++)
		printf("%s\n{\"threads\":%u,\"target\":\"%s\",\"policy\":\"%s\",\"rate\":%.0f}", i ? "," : "",
		       rows[i].num_threads, target_name(&rows[i]), row_name(&rows[i]), median(&rows[i]));
	printf("]}\n");
}

static void print_table(struct row *rows, unsigned num_rows)
{
	printf("MSIs of several threads, %u events each: signal, acknowledge, EOI\n", rows->num_events);
	printf("%-10s %-8s %-8s %16s\n", "policy", "vCPUs", "threads", "per second");
	for (unsigned i = 0; i < num_rows; i++)
		printf("%-10s %-8s %-8u %16.0f\n", row_name(&rows[i]), target_name(&rows[i]), rows[i].num_threads,
		       median(&rows[i]));
}

static bool measure_rows(struct row *rows, unsigned num_rows, const struct bench_options *options)
{
	for (unsigned i = 0; i < num_rows; i++) {
		if (!calibrate(&rows[i], options->measure.iterations)) {
			fprintf(stderr, "vgic-bench: scale: %s: a result was wrong\n", row_name(&rows[i]));
			return false;
		}
	}
	for (unsigned batch = 0; batch < options->measure.batches; batch++) {
		bench_progress(batch, options->measure.batches);
		for (unsigned i = 0; i < num_rows; i++) {
			if (measure_row(&rows[i]))
				continue;
			bench_progress_end();
			fprintf(stderr, "vgic-bench: scale: %s: a result was wrong\n", row_name(&rows[i]));
			return false;
		}
	}
	bench_progress_end();
	return true;
}

int bench_scale(const struct bench_options *options)
{
	const unsigned max_rows = options->num_threads * (2 * options->num_policies + 1);
	struct row *rows = calloc(max_rows, sizeof(*rows));
	unsigned num_rows = rows ? init_rows(rows, options) : 0;
	bool well;

	if (!num_rows)
		fprintf(stderr, "vgic-bench: scale: no memory\n");
	well = num_rows && measure_rows(rows, num_rows, options);
	if (well && options->measure.json)
		print_json(rows, num_rows);
	else if (well)
		print_table(rows, num_rows);
	for (unsigned i = 0; rows && i < max_rows; i++) {
		if (rows[i].policy)
			rows[i].ops->destroy(rows[i].policy);
		free(rows[i].rates);
		free(rows[i].workers);
	}
	free(rows);
	return well ? 0 : 1;
}
