/* SPDX-License-Identifier: MIT */
/*
 * cmd_deliver.c - `vgic-bench deliver`: an MSI from the device's signal to the
 * guest's end of interrupt, with every policy.
 *
 * Every event of every device is signalled once; then each vCPU acknowledges and
 * ends what is pending there; and again. Caches have their usual size.
 */
#include <stdio.h>
#include <stdlib.h>

#include "its_bench.h"

struct row {
	struct its_bench bench;
	struct series series;
};

/* An iteration is one round: every event once, then every vCPU. */
BENCH_LOOP static bool loop_deliver(void *context, uint64_t iterations)
{
	const struct its_bench *b = context;
	struct policy *policy = b->policy;
	const struct policy_ops *ops = policy->ops;
	const struct its_event *const events_end = &b->events[b->num_lpis];
	const uint32_t *const takers_end = &b->takers[b->num_lpis];
	int (*const inject)(struct policy *, uint32_t, uint32_t) = ops->inject;
	int wrong = 0;

	for (; iterations > 0; iterations--) {
		const struct its_event *event = b->events;
		const uint32_t *vcpu = b->takers;

		do {
			wrong |= inject(policy, event->devid, event->eventid) ^ 1;
		} while (++event < events_end);
		do {
			const uint32_t intid = ops->acknowledge(policy, *vcpu);

			wrong |= intid < POLICY_FIRST_LPI;
			ops->end(policy, *vcpu, intid);
		} while (++vcpu < takers_end);
	}
	/* Nothing is left over. */
	for (uint32_t vcpu = 0; vcpu < b->num_vcpus; vcpu++)
		wrong |= ops->acknowledge(policy, vcpu) != POLICY_SPURIOUS;
	return wrong == 0;
}

/* Of one LPI. */
static struct summary summarize(struct row *row)
{
	struct summary s = measure_summarize(&row->series);

	s.min /= row->bench.num_lpis;
	s.median /= row->bench.num_lpis;
	s.p90 /= row->bench.num_lpis;
	return s;
}

static void print_json(struct row *rows, unsigned num_rows, struct series *rmw)
{
	printf("{\"rmw_ns\":%.2f,\"rows\":[", measure_summarize(rmw).median);
	for (unsigned i = 0; i < num_rows; i++) {
		const struct its_bench *b = &rows[i].bench;

		printf("%s\n{\"vcpus\":%u,\"devices\":%u,\"events\":%u,\"policy\":\"%s\",\"ns\":%.2f}", i ? "," : "",
		       b->num_vcpus, b->num_devices, b->num_events, b->policy->ops->name, summarize(&rows[i]).median);
	}
	printf("]}\n");
}

static void print_table(struct row *rows, unsigned num_rows, struct series *rmw)
{
	const struct summary rmw_summary = measure_summarize(rmw);

	bench_print_header("an MSI, signal, acknowledge, EOI");
	bench_print_path("atomic fetch_or", rmw_summary, rmw_summary.median);
	printf("\n%u vCPUs, %u devices with %u events\n", rows->bench.num_vcpus, rows->bench.num_devices,
	       rows->bench.num_events);
	for (unsigned i = 0; i < num_rows; i++)
		bench_print_path(rows[i].series.name, summarize(&rows[i]), rmw_summary.median);
}

static bool init_rows(struct row *rows, const struct bench_options *options)
{
	for (unsigned i = 0; i < options->num_policies; i++) {
		struct row *row = &rows[i];

		row->series = (struct series){ .name = options->policies[i]->name,
					       .run = loop_deliver,
					       .context = &row->bench };
		if (!its_bench_init(&row->bench, options->policies[i], options->vcpus[0], options->num_devices,
				    options->num_events, options->num_devices * options->num_events, 0))
			return false;
	}
	return true;
}

static bool measure_rows(struct row *rows, unsigned num_rows, struct series *rmw, const struct bench_options *options)
{
	struct series *turns[2 * POLICY_COUNT];

	for (unsigned i = 0; i < num_rows; i++) {
		turns[2 * i] = rmw;
		turns[2 * i + 1] = &rows[i].series;
	}
	return bench_measure(turns, num_rows * 2, options);
}

int bench_deliver(const struct bench_options *options)
{
	struct row rows[POLICY_COUNT] = { 0 };
	struct series rmw;
	bool well;

	measure_init_rmw(&rmw);
	well = init_rows(rows, options) && measure_rows(rows, options->num_policies, &rmw, options);
	if (well && options->measure.json)
		print_json(rows, options->num_policies, &rmw);
	else if (well)
		print_table(rows, options->num_policies, &rmw);
	for (unsigned i = 0; i < options->num_policies; i++) {
		measure_free(&rows[i].series);
		its_bench_destroy(&rows[i].bench);
	}
	measure_free(&rmw);
	return well ? 0 : 1;
}
