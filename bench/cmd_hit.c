/* SPDX-License-Identifier: MIT */
/*
 * cmd_hit.c - `vgic-bench hit`: an MSI whose LPI is pending already, by the number
 * of LPIs in use, with every policy.
 *
 * The events take turns. The caches of the policies that have one are large enough
 * for all of them and filled before: every lookup is a hit.
 */
#include <stdio.h>
#include <stdlib.h>

#include "its_bench.h"

#define MAX_HIT_VCPUS 16u

struct row {
	uint32_t num_lpis;
	struct its_bench bench;
	struct series series, rmw;
};

BENCH_LOOP static bool loop_hit(void *context, uint64_t iterations)
{
	struct its_bench *b = context;
	struct policy *policy = b->policy;
	int (*const inject)(struct policy *, uint32_t, uint32_t) = policy->ops->inject;
	const struct its_event *event = &b->events[b->next], *const end = &b->events[b->num_lpis];
	int wrong = 0;

	for (; iterations > 0; iterations--) {
		wrong |= inject(policy, event->devid, event->eventid) ^ 1;
		if (++event == end)
			event = b->events;
	}
	b->next = (uint32_t)(event - b->events);
	return wrong == 0;
}

/* As many devices as events of each, or nearly. */
static uint32_t events_for(uint32_t num_lpis)
{
	uint32_t num_events = 1;

	while (num_events * num_events < num_lpis)
		num_events *= 2;
	return num_events;
}

static bool init_row(struct row *row, const struct policy_ops *ops, uint32_t num_lpis)
{
	const uint32_t num_events = events_for(num_lpis);
	const uint32_t num_devices = (num_lpis + num_events - 1) / num_events;
	const uint32_t num_vcpus = num_devices < MAX_HIT_VCPUS ? num_devices : MAX_HIT_VCPUS;

	row->num_lpis = num_lpis;
	row->series = (struct series){ .name = ops->name, .run = loop_hit, .context = &row->bench };
	measure_init_rmw(&row->rmw);
	if (!its_bench_init(&row->bench, ops, num_vcpus, num_devices, num_events, num_lpis,
			    num_lpis > 4 * num_vcpus ? num_lpis : 0))
		return false;
	if (ops->warm)
		ops->warm(row->bench.policy);
	/* Pending once, all of them. */
	return loop_hit(&row->bench, num_lpis);
}

static int compare_doubles(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* The atomic operation of the whole run: the median of what was measured beside the rows. */
static double rmw_of_all(struct row *rows, unsigned num_rows)
{
	double *medians = calloc(num_rows, sizeof(*medians));
	double result;

	if (!medians)
		return measure_summarize(&rows[0].rmw).median;
	for (unsigned i = 0; i < num_rows; i++)
		medians[i] = measure_summarize(&rows[i].rmw).median;
	qsort(medians, num_rows, sizeof(*medians), compare_doubles);
	result = (medians[(num_rows - 1) / 2] + medians[num_rows / 2]) / 2;
	free(medians);
	return result;
}

static void print_json(struct row *rows, unsigned num_rows)
{
	printf("{\"rmw_ns\":%.2f,\"rows\":[", rmw_of_all(rows, num_rows));
	for (unsigned i = 0; i < num_rows; i++)
		printf("%s\n{\"lpis\":%u,\"policy\":\"%s\",\"ns\":%.2f}", i ? "," : "", rows[i].num_lpis,
		       rows[i].bench.policy->ops->name, measure_summarize(&rows[i].series).median);
	printf("]}\n");
}

static void print_table(struct row *rows, unsigned num_rows)
{
	bench_print_header("an MSI, pending already");
	printf("  %-34s %10.1f\n", "atomic fetch_or", rmw_of_all(rows, num_rows));
	for (unsigned i = 0; i < num_rows; i++) {
		if (i == 0 || rows[i].num_lpis != rows[i - 1].num_lpis)
			printf("\n%u LPIs in use\n", rows[i].num_lpis);
		bench_print_path(rows[i].series.name, measure_summarize(&rows[i].series),
				 measure_summarize(&rows[i].rmw).median);
	}
}

static bool init_rows(struct row *rows, const struct bench_options *options)
{
	for (unsigned i = 0; i < options->num_lpis; i++) {
		for (unsigned j = 0; j < options->num_policies; j++) {
			if (!init_row(rows++, options->policies[j], options->lpis[i]))
				return false;
		}
	}
	return true;
}

/* One row after the other: one that goes through megabytes would take the others' lines out of the caches. */
static bool measure_rows(struct row *rows, unsigned num_rows, const struct bench_options *options)
{
	for (unsigned i = 0; i < num_rows; i++) {
		struct series *const turns[] = { &rows[i].rmw, &rows[i].series };

		if (!bench_measure(turns, 2, options))
			return false;
		if (!its_bench_drain(&rows[i].bench, 1)) {
			fprintf(stderr, "vgic-bench: hit: %s: LPIs were lost or came twice\n", rows[i].series.name);
			return false;
		}
	}
	return true;
}

int bench_hit(const struct bench_options *options)
{
	const unsigned num_rows = options->num_lpis * options->num_policies;
	struct row *rows = calloc(num_rows, sizeof(*rows));
	bool well;

	if (!rows) {
		fprintf(stderr, "vgic-bench: no memory\n");
		return 1;
	}
	well = init_rows(rows, options) && measure_rows(rows, num_rows, options);
	if (well && options->measure.json)
		print_json(rows, num_rows);
	else if (well)
		print_table(rows, num_rows);
	for (unsigned i = 0; i < num_rows; i++) {
		measure_free(&rows[i].series);
		measure_free(&rows[i].rmw);
		its_bench_destroy(&rows[i].bench);
	}
	free(rows);
	return well ? 0 : 1;
}
