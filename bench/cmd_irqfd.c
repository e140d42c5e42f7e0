/* SPDX-License-Identifier: MIT */
/*
 * cmd_irqfd.c - `vgic-bench irqfd`: from a NIC's signal to an interrupt that can be
 * acknowledged, through each door and by each path, with every policy.
 *
 * The rows take turns, batch by batch (irqfd_load.h); the times of a row's batches
 * are in one histogram. The rate is the median of the batches.
 *
 * The historic designs are among the rows: the worker (deferred), one cache, eight
 * caches and the tree (direct, with lru, lru8 and tree), and libvgic.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "irqfd_load.h"

const char *const bench_door_names[IRQFD_LOAD_NUM_DOORS] = { "signal", "service", "service-poll" };
const char *const bench_path_names[IRQFD_LOAD_NUM_PATHS] = { "direct", "deferred" };

struct row {
	struct irqfd_load_config load;
	struct histogram latencies;
	struct irqfd_load_result sums; /* all but the rate */
	double *rates;
	unsigned num_rates;
};

/* ---- Measuring ---- */

/* The @index-th combination of what was asked for; the policy changes fastest, then path, door, number of NICs. */
static struct irqfd_load_config combination(const struct bench_options *options, unsigned index)
{
	struct irqfd_load_config load = { .signals = options->measure.iterations };

	load.ops = options->policies[index % options->num_policies];
	index /= options->num_policies;
	load.path = options->paths[index % options->num_paths];
	index /= options->num_paths;
	load.door = options->doors[index % options->num_doors];
	load.num_nics = options->nics[index / options->num_doors];
	return load;
}

static bool init_rows(struct row *rows, unsigned num_rows, const struct bench_options *options)
{
	for (unsigned i = 0; i < num_rows; i++) {
		rows[i].load = combination(options, i);
		rows[i].rates = calloc(options->measure.batches, sizeof(double));
		if (!rows[i].rates)
			return false;
	}
	return true;
}

static const char *row_door(const struct row *row)
{
	return bench_door_names[row->load.door];
}

static const char *row_path(const struct row *row)
{
	return bench_path_names[row->load.path];
}

static bool run_batch(struct row *row)
{
	struct irqfd_load_result result = { 0 };
	const int error = irqfd_load_run(&row->load, &row->latencies, &result);

	if (error) {
		fprintf(stderr, "vgic-bench: irqfd: %u NICs, %s, %s, %s: %s\n", row->load.num_nics, row_door(row),
			row_path(row), row->load.ops->name,
			error == -EIO ? "a signal was lost or refused" : strerror(-error));
		return false;
	}
	row->rates[row->num_rates++] = result.rate;
	row->sums.signals += result.signals;
	row->sums.events += result.events;
	row->sums.deferred += result.deferred;
	row->sums.waits += result.waits;
	row->sums.empty_waits += result.empty_waits;
	return true;
}

static bool run_rows(struct row *rows, unsigned num_rows, const struct bench_options *options)
{
	const unsigned total = options->measure.batches * num_rows;

	for (unsigned i = 0; i < total; i++) {
		bench_progress(i, total);
		if (!run_batch(&rows[i % num_rows])) {
			bench_progress_end();
			return false;
		}
	}
	bench_progress_end();
	return true;
}

/* ---- Results ---- */

static int compare_doubles(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median_rate(struct row *row)
{
	qsort(row->rates, row->num_rates, sizeof(double), compare_doubles);
	return (row->rates[(row->num_rates - 1) / 2] + row->rates[row->num_rates / 2]) / 2;
}

static double percentile_us(const struct row *row, unsigned percent)
{
	return (double)histogram_percentile(&row->latencies, percent) / 1e3;
}

/* System calls of the service for each event that it saw, when the NICs signal as fast as they can. */
static double waits_per_event(const struct row *row)
{
	return (double)row->sums.waits / (double)row->sums.events;
}

static void print_json(struct row *rows, unsigned num_rows)
{
	printf("{\"rows\":[");
	for (unsigned i = 0; i < num_rows; i++)
		printf("%s\n{\"nics\":%u,\"door\":\"%s\",\"path\":\"%s\",\"policy\":\"%s\",\"p50_us\":%.3f,"
		       "\"p99_us\":%.3f,\"rate\":%.0f}",
		       i ? "," : "", rows[i].load.num_nics, row_door(&rows[i]), row_path(&rows[i]),
		       rows[i].load.ops->name, percentile_us(&rows[i], 50), percentile_us(&rows[i], 99),
		       median_rate(&rows[i]));
	printf("]}\n");
}

static void print_counters_json(struct row *rows, unsigned num_rows)
{
	printf("{\"rows\":[");
	for (unsigned i = 0; i < num_rows; i++) {
		const struct irqfd_load_result *sums = &rows[i].sums;

		printf("%s\n{\"nics\":%u,\"door\":\"%s\",\"path\":\"%s\",\"policy\":\"%s\",\"signals\":%llu,"
		       "\"events\":%llu,\"deferred\":%llu,\"syscalls\":%llu,\"empty_syscalls\":%llu,"
		       "\"syscalls_per_event\":%.4f}",
		       i ? "," : "", rows[i].load.num_nics, row_door(&rows[i]), row_path(&rows[i]),
		       rows[i].load.ops->name, (unsigned long long)sums->signals, (unsigned long long)sums->events,
		       (unsigned long long)sums->deferred, (unsigned long long)sums->waits,
		       (unsigned long long)sums->empty_waits, waits_per_event(&rows[i]));
	}
	printf("]}\n");
}

static void print_table(struct row *rows, unsigned num_rows)
{
	printf("From a NIC's signal to an interrupt that can be acknowledged: us at %u events/s of each NIC (at most\n"
	       "1/%u too high), then as fast as they go: events injected a second, system calls of the service for\n"
	       "each of them\n\n",
	       IRQFD_LOAD_RATE, HISTOGRAM_STEPS);
	printf("%-5s %-13s %-9s %-8s %10s %10s %12s %10s\n", "NICs", "door", "path", "policy", "p50", "p99", "rate",
	       "sys. calls");
	for (unsigned i = 0; i < num_rows; i++)
		printf("%-5u %-13s %-9s %-8s %10.3f %10.3f %12.0f %10.3f\n", rows[i].load.num_nics, row_door(&rows[i]),
		       row_path(&rows[i]), rows[i].load.ops->name, percentile_us(&rows[i], 50),
		       percentile_us(&rows[i], 99), median_rate(&rows[i]), waits_per_event(&rows[i]));
}

static void print(struct row *rows, unsigned num_rows, const struct bench_options *options)
{
	if (!options->measure.json)
		print_table(rows, num_rows);
	else if (options->counters)
		print_counters_json(rows, num_rows);
	else
		print_json(rows, num_rows);
}

int bench_irqfd(const struct bench_options *options)
{
	const unsigned num_rows = options->num_nics * options->num_doors * options->num_paths * options->num_policies;
	struct row *rows = calloc(num_rows, sizeof(*rows));
	bool well = rows && init_rows(rows, num_rows, options);

	if (!well)
		fprintf(stderr, "vgic-bench: irqfd: no memory\n");
	well = well && run_rows(rows, num_rows, options);
	if (well)
		print(rows, num_rows, options);
	for (unsigned i = 0; rows && i < num_rows; i++)
		free(rows[i].rates);
	free(rows);
	return well ? 0 : 1;
}
