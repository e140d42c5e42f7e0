/* SPDX-License-Identifier: MIT */
/*
 * cmd_sgi.c - `vgic-bench sgi`: an SGI from the first vCPU to the last one, by the
 * number of vCPUs and by the way their affinities are given out, beside the two
 * baselines in baselines/.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "affinities.h"
#include "baselines/mpidr.h"
#include "bench.h"
#include "machine.h"
#include "sgi1r.h"

#define INTID 5u

/* What is measured for each row, in this order. */
enum path { PENDING, DELIVER, ROUND_TRIP, WALK, TABLE, KICK, NUM_PATHS };

struct row {
	uint32_t num_vcpus;
	enum bench_affinity affinity;
	uint64_t sgi1r; /* what vCPU 0 writes to ICC_SGI1R_EL1 */
	struct machine machine;
	struct baseline *baseline;
	struct series series[NUM_PATHS];
};

/* ---- The loops ---- */

/* Sent again and again, and never taken. */
BENCH_LOOP static bool loop_sgi_pending(void *context, uint64_t iterations)
{
	struct row *row = context;
	uint64_t next = 0;
	bool right = true;

	for (uint64_t i = 0; i < iterations; i++)
		right &= vgic_icc_write(row->machine.first, VGIC_ICC_SGI1R_EL1, row->sgi1r) == 0;
	return vgic_icc_read(row->machine.last, VGIC_ICC_HPPIR1_EL1, &next) == 0 && next == INTID && right;
}

/* Sent, acknowledged by the target, ended. */
BENCH_LOOP static bool loop_sgi_deliver(void *context, uint64_t iterations)
{
	struct row *row = context;
	bool right = true;

	for (uint64_t i = 0; i < iterations; i++) {
		vgic_icc_write(row->machine.first, VGIC_ICC_SGI1R_EL1, row->sgi1r);

		const uint32_t intid = machine_acknowledge(row->machine.last);

		right &= intid == INTID;
		machine_end(row->machine.last, intid);
	}
	return machine_acknowledge(row->machine.last) == MACHINE_SPURIOUS && right;
}

/* The same with what is around it: the target is kicked, leaves the guest, enters it again and finds its line high. */
BENCH_LOOP static bool loop_sgi_round_trip(void *context, uint64_t iterations)
{
	struct row *row = context;
	struct vgic_vcpu *target = row->machine.last;
	uint32_t last;
	bool right = true;

	machine_drain(target, &last);
	right &= vgic_enter_guest(target) == 0;

	const uint64_t kicks_before = row->machine.kicks;

	for (uint64_t i = 0; i < iterations; i++) {
		vgic_icc_write(row->machine.first, VGIC_ICC_SGI1R_EL1, row->sgi1r);
		vgic_exit_guest(target);
		right &= vgic_enter_guest(target) == VGIC_LINE_IRQ;

		const uint32_t intid = machine_acknowledge(target);

		right &= intid == INTID;
		machine_end(target, intid);
	}
	right &= row->machine.kicks - kicks_before == iterations;
	vgic_exit_guest(target);
	return machine_acknowledge(target) == MACHINE_SPURIOUS && right;
}

/* Only the last vCPU of the baseline has the SGI, and has it once. */
static bool baseline_is_right(struct row *row)
{
	return baseline_pending_sgis(row->baseline, row->num_vcpus - 1) == 1u << INTID &&
	       (row->num_vcpus == 1 || baseline_num_queued(row->baseline, 0) == 0);
}

BENCH_LOOP static bool loop_sgi_walk(void *context, uint64_t iterations)
{
	struct row *row = context;

	for (uint64_t i = 0; i < iterations; i++)
		baseline_sgi_by_walk(row->baseline, 0, row->sgi1r);
	return baseline_is_right(row);
}

BENCH_LOOP static bool loop_sgi_table(void *context, uint64_t iterations)
{
	struct row *row = context;

	for (uint64_t i = 0; i < iterations; i++)
		baseline_sgi_by_table(row->baseline, 0, row->sgi1r);
	return baseline_is_right(row);
}

BENCH_LOOP static bool loop_kick(void *context, uint64_t iterations)
{
	struct row *row = context;

	for (uint64_t i = 0; i < iterations; i++)
		baseline_kick(row->baseline, row->num_vcpus - 1);
	return true;
}

/* ---- Rows ---- */

const char *bench_affinity_name(enum bench_affinity affinity)
{
	return affinity == BENCH_LINEAR ? "linear" : "hostile";
}

static void init_series(struct row *row)
{
	row->series[PENDING] = (struct series){ .name = "sgi pending", .run = loop_sgi_pending };
	row->series[DELIVER] = (struct series){ .name = "sgi deliver", .run = loop_sgi_deliver };
	row->series[ROUND_TRIP] = (struct series){ .name = "sgi round trip", .run = loop_sgi_round_trip };
	row->series[WALK] = (struct series){ .name = "sgi by walk", .run = loop_sgi_walk };
	row->series[TABLE] = (struct series){ .name = "sgi by table", .run = loop_sgi_table };
	row->series[KICK] = (struct series){ .name = "baseline kick", .run = loop_kick };
	for (unsigned i = 0; i < NUM_PATHS; i++)
		row->series[i].context = row;
}

static int init_row(struct row *row, uint32_t num_vcpus, enum bench_affinity affinity)
{
	uint64_t *affinities = calloc(num_vcpus, sizeof(*affinities));

	if (!affinities)
		return -ENOMEM;
	for (uint32_t i = 0; i < num_vcpus; i++)
		affinities[i] = affinity == BENCH_LINEAR ? affinity_linear(i) : affinity_hostile(i);
	row->num_vcpus = num_vcpus;
	row->affinity = affinity;
	row->sgi1r = sgi1r_to(affinities[num_vcpus - 1], INTID);
	init_series(row);
	row->baseline = baseline_new(affinities, num_vcpus);

	const int error = row->baseline ? machine_init(&row->machine, affinities, num_vcpus) : -ENOMEM;

	free(affinities);
	return error;
}

static void destroy_row(struct row *row)
{
	for (unsigned i = 0; i < NUM_PATHS; i++)
		measure_free(&row->series[i]);
	machine_destroy(&row->machine);
	baseline_free(row->baseline);
}

/* ---- Results ---- */

static double median(struct series *series)
{
	return measure_summarize(series).median;
}

static void print_json(struct row *rows, unsigned num_rows, struct series *rmw)
{
	printf("{\"rmw_ns\":%.2f,\"rows\":[", median(rmw));
	for (unsigned i = 0; i < num_rows; i++) {
		struct row *row = &rows[i];

		printf("%s\n{\"vcpus\":%u,\"affinity\":\"%s\",\"pending_ns\":%.2f,\"deliver_ns\":%.2f,"
		       "\"walk_pending_ns\":%.2f,\"table_pending_ns\":%.2f,"
		       "\"round_trip_ns\":%.2f,\"kick_ns\":%.2f,\"has_table\":%s}",
		       i ? "," : "", row->num_vcpus, bench_affinity_name(row->affinity), median(&row->series[PENDING]),
		       median(&row->series[DELIVER]), median(&row->series[WALK]), median(&row->series[TABLE]),
		       median(&row->series[ROUND_TRIP]), median(&row->series[KICK]),
		       baseline_has_table(row->baseline) ? "true" : "false");
	}
	printf("]}\n");
}

static void print_tables(struct row *rows, unsigned num_rows, struct series *rmw)
{
	const struct summary rmw_summary = measure_summarize(rmw);

	bench_print_header("one SGI to the last vCPU");
	bench_print_path("atomic fetch_or", rmw_summary, rmw_summary.median);
	for (unsigned i = 0; i < num_rows; i++) {
		struct row *row = &rows[i];
		const char *const names[NUM_PATHS] = {
			[PENDING] = "send, pending already",
			[DELIVER] = "send, acknowledge, EOI",
			[ROUND_TRIP] = "the same with kick, exit and entry",
			[WALK] = "walk: send, pending already",
			[TABLE] = baseline_has_table(row->baseline) ? "table: send, pending already" :
								      "table (too large, walks): same",
			[KICK] = "of these two: request and kick",
		};

		printf("\n%u vCPUs, %s affinities\n", row->num_vcpus, bench_affinity_name(row->affinity));
		for (unsigned path = 0; path < NUM_PATHS; path++)
			bench_print_path(names[path], measure_summarize(&row->series[path]), rmw_summary.median);
	}
}

/* ---- The command ---- */

/* The atomic operation takes a turn before each row, so that it sees the same machine as the rows do. */
static bool measure_rows(struct row *rows, unsigned num_rows, struct series *rmw, const struct bench_options *options)
{
	struct series **turns = calloc((size_t)num_rows * (NUM_PATHS + 1), sizeof(struct series *));
	unsigned num_turns = 0;

	if (!turns) {
		fprintf(stderr, "vgic-bench: no memory\n");
		return false;
	}
	for (unsigned i = 0; i < num_rows; i++) {
		turns[num_turns++] = rmw;
		for (unsigned path = 0; path < NUM_PATHS; path++)
			turns[num_turns++] = &rows[i].series[path];
	}

	const bool well = bench_measure(turns, num_turns, options);

	free(turns);
	return well;
}

static bool init_rows(struct row *rows, const struct bench_options *options)
{
	for (unsigned i = 0; i < options->num_affinities; i++) {
		for (unsigned j = 0; j < options->num_vcpus; j++) {
			const int error = init_row(rows++, options->vcpus[j], options->affinities[i]);

			if (error) {
				fprintf(stderr, "vgic-bench: cannot create %u vCPUs with %s affinities: %s\n",
					options->vcpus[j], bench_affinity_name(options->affinities[i]),
					strerror(-error));
				return false;
			}
		}
	}
	return true;
}

int bench_sgi(const struct bench_options *options)
{
	const unsigned num_rows = options->num_vcpus * options->num_affinities;
	struct row *rows = calloc(num_rows, sizeof(*rows));
	struct series rmw;

	if (!rows) {
		fprintf(stderr, "vgic-bench: no memory\n");
		return 1;
	}
	measure_init_rmw(&rmw);

	const bool well = init_rows(rows, options) && measure_rows(rows, num_rows, &rmw, options);

	if (well && options->measure.json)
		print_json(rows, num_rows, &rmw);
	else if (well)
		print_tables(rows, num_rows, &rmw);
	for (unsigned i = 0; i < num_rows; i++)
		destroy_row(&rows[i]);
	measure_free(&rmw);
	free(rows);
	return well ? 0 : 1;
}
