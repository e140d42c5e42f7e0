/* SPDX-License-Identifier: MIT */
/*
 * cmd_state.c - `vgic-bench state`: what vgic_save() and vgic_restore() take.
 *
 * Each row has three controllers: with all its LPIs and vCPUs, with one LPI and all
 * its vCPUs, and with one of each. What the first takes beyond the second is the
 * LPIs', what the second takes beyond the third is the vCPUs'; what is left belongs to
 * neither: a controller looks at every LPI that it could have, and at every SPI.
 *
 * Every LPI is mapped, by an event of its own, and pending. A restore puts the image
 * over the state that it was made of. At the end every LPI is pending exactly once.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <vgic/state.h>

#include "bench.h"
#include "its_bench.h"

#define EVENTS_OF_DEVICE 256u

/* One controller, and its image. */
struct subject {
	struct its_bench bench;
	struct vgic *vgic;
	void *image;
	size_t size;
	struct series save, restore;
};

enum { FULL, ONE_LPI, ONE_OF_EACH, NUM_SUBJECTS };

struct row {
	uint32_t num_lpis, num_vcpus;
	struct subject subjects[NUM_SUBJECTS];
	struct series rmw;
};

/* What a row says, in nanoseconds. */
struct cost {
	double all, per_lpi, per_vcpu, rest;
};

BENCH_LOOP static bool loop_save(void *context, uint64_t iterations)
{
	struct subject *s = context;
	bool right = true;
	size_t used;

	for (uint64_t i = 0; i < iterations; i++)
		right &= vgic_save(s->vgic, s->image, s->size, &used) == 0 && used == s->size;
	return right;
}

BENCH_LOOP static bool loop_restore(void *context, uint64_t iterations)
{
	struct subject *s = context;
	bool right = true;

	for (uint64_t i = 0; i < iterations; i++)
		right &= vgic_restore(s->vgic, s->image, s->size, NULL) == 0;
	return right;
}

static bool signal_all(struct its_bench *b)
{
	bool right = true;

	for (uint32_t i = 0; i < b->num_lpis; i++)
		right &= b->policy->ops->inject(b->policy, b->events[i].devid, b->events[i].eventid) == 1;
	return right;
}

static bool init_subject(struct subject *s, uint32_t num_lpis, uint32_t num_vcpus)
{
	const uint32_t num_devices = (num_lpis + EVENTS_OF_DEVICE - 1) / EVENTS_OF_DEVICE;

	if (!its_bench_init(&s->bench, &policy_direct, num_vcpus, num_devices, EVENTS_OF_DEVICE, num_lpis, 0))
		return false;
	s->vgic = policy_direct_vgic(s->bench.policy);
	s->save = (struct series){ .name = "save", .run = loop_save, .context = s };
	s->restore = (struct series){ .name = "restore", .run = loop_restore, .context = s };
	if (!signal_all(&s->bench) || vgic_save_size(s->vgic, &s->size) != 0)
		return false;
	s->image = malloc(s->size);
	return s->image && loop_save(s, 1);
}

static void destroy_subject(struct subject *s)
{
	measure_free(&s->save);
	measure_free(&s->restore);
	free(s->image);
	its_bench_destroy(&s->bench);
}

static bool init_row(struct row *row, uint32_t num_lpis, uint32_t num_vcpus)
{
	row->num_lpis = num_lpis;
	row->num_vcpus = num_vcpus;
	measure_init_rmw(&row->rmw);
	return init_subject(&row->subjects[FULL], num_lpis, num_vcpus) &&
	       init_subject(&row->subjects[ONE_LPI], 1, num_vcpus) && init_subject(&row->subjects[ONE_OF_EACH], 1, 1);
}

static bool measure_row(struct row *row, const struct bench_options *options)
{
	struct series *turns[2 * NUM_SUBJECTS + 1] = { &row->rmw };
	unsigned num_turns = 1;

	for (unsigned i = 0; i < NUM_SUBJECTS; i++) {
		turns[num_turns++] = &row->subjects[i].save;
		turns[num_turns++] = &row->subjects[i].restore;
	}
	if (!bench_measure(turns, num_turns, options))
		return false;
	for (unsigned i = 0; i < NUM_SUBJECTS; i++) {
		if (its_bench_drain(&row->subjects[i].bench, 1))
			continue;
		fprintf(stderr, "vgic-bench: state: LPIs were lost or came twice\n");
		return false;
	}
	return true;
}

static double difference(double more, double less, uint32_t n)
{
	return n > 1 ? (more - less) / (n - 1) : 0;
}

static struct cost cost_of(const struct row *row, double full, double one_lpi, double one_of_each)
{
	return (struct cost){
		.all = full,
		.per_lpi = difference(full, one_lpi, row->num_lpis),
		.per_vcpu = difference(one_lpi, one_of_each, row->num_vcpus),
		.rest = one_of_each,
	};
}

static struct cost cost_of_saves(struct row *row)
{
	struct subject *s = row->subjects;

	return cost_of(row, measure_summarize(&s[FULL].save).median, measure_summarize(&s[ONE_LPI].save).median,
		       measure_summarize(&s[ONE_OF_EACH].save).median);
}

static struct cost cost_of_restores(struct row *row)
{
	struct subject *s = row->subjects;

	return cost_of(row, measure_summarize(&s[FULL].restore).median, measure_summarize(&s[ONE_LPI].restore).median,
		       measure_summarize(&s[ONE_OF_EACH].restore).median);
}

static void print_json(struct row *rows, unsigned num_rows)
{
	printf("{\"rmw_ns\":%.2f,\"rows\":[", measure_summarize(&rows[0].rmw).median);
	for (unsigned i = 0; i < num_rows; i++) {
		const struct cost save = cost_of_saves(&rows[i]), restore = cost_of_restores(&rows[i]);

		printf("%s\n{\"lpis\":%u,\"vcpus\":%u,\"save_ns_per_lpi\":%.2f,\"restore_ns_per_lpi\":%.2f,"
		       "\"save_us_per_vcpu\":%.3f,\"restore_us_per_vcpu\":%.3f,\"save_us_rest\":%.1f,"
		       "\"restore_us_rest\":%.1f,\"save_us\":%.1f,\"restore_us\":%.1f,\"bytes\":%zu}",
		       i ? "," : "", rows[i].num_lpis, rows[i].num_vcpus, save.per_lpi, restore.per_lpi,
		       save.per_vcpu / 1e3, restore.per_vcpu / 1e3, save.rest / 1e3, restore.rest / 1e3, save.all / 1e3,
		       restore.all / 1e3, rows[i].subjects[FULL].size);
	}
	printf("]}\n");
}

static void print_line(const char *what, const struct cost *cost, double rmw)
{
	printf("  %-10s %10.1f us all %10.1f us rest %8.1f ns per LPI (%.1f x atomic) %8.2f us per vCPU (%.0f x)\n",
	       what, cost->all / 1e3, cost->rest / 1e3, cost->per_lpi, cost->per_lpi / rmw, cost->per_vcpu / 1e3,
	       cost->per_vcpu / rmw);
}

static void print_table(struct row *rows, unsigned num_rows)
{
	for (unsigned i = 0; i < num_rows; i++) {
		const struct cost save = cost_of_saves(&rows[i]), restore = cost_of_restores(&rows[i]);
		const double rmw = measure_summarize(&rows[i].rmw).median;

		printf("%u LPIs, %u vCPUs: %zu bytes; atomic fetch_or %.1f ns\n", rows[i].num_lpis, rows[i].num_vcpus,
		       rows[i].subjects[FULL].size, rmw);
		print_line("save", &save, rmw);
		print_line("restore", &restore, rmw);
	}
}

int bench_state(const struct bench_options *options)
{
	struct row *rows = calloc(options->num_lpis, sizeof(*rows));
	bool well = rows != NULL;

	if (!rows)
		fprintf(stderr, "vgic-bench: no memory\n");
	/* One row after the other: one that goes through megabytes would take the others' lines out of the caches. */
	for (unsigned i = 0; well && i < options->num_lpis; i++)
		well = init_row(&rows[i], options->lpis[i], options->vcpus[0]) && measure_row(&rows[i], options);
	if (well && options->measure.json)
		print_json(rows, options->num_lpis);
	else if (well)
		print_table(rows, options->num_lpis);
	for (unsigned i = 0; rows && i < options->num_lpis; i++) {
		measure_free(&rows[i].rmw);
		for (unsigned j = 0; j < NUM_SUBJECTS; j++)
			destroy_subject(&rows[i].subjects[j]);
	}
	free(rows);
	return well ? 0 : 1;
}
