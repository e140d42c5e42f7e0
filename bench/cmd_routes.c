/* SPDX-License-Identifier: MIT */
/*
 * cmd_routes.c - `vgic-bench routes`: what setting the routes of a device's vectors
 * takes as device after device is enabled, three ways.
 *
 * historic  the whole table for each vector: copied, published, and a grace period
 *           waited for (baselines/route_table.h)
 * entry     vgic_route_set() for each vector
 * batch     one transaction for each device
 *
 * Another thread signals the vectors that are enabled already (signaller.h). There is
 * a thread for each vCPU too, which a grace period has to look at; it sleeps. Binding
 * eventfds, which is the same for all of them, is not counted.
 *
 * A round is one enabling of all devices; the ways take turns. After each, every
 * vector is signalled, and its LPI must come, and nothing else.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <vgic/route.h>

#include "baselines/route_table.h"
#include "idle_vcpus.h"
#include "its_bench.h"
#include "signaller.h"

enum mode { HISTORIC, ENTRY, BATCH, NUM_MODES };

static const char *const mode_names[NUM_MODES] = { "historic", "entry", "batch" };

/* In microseconds: of each device, in each round. */
struct times {
	double *all, *copy, *publish, *wait; /* the parts of HISTORIC only */
};

struct routes_bench {
	const struct bench_options *options;
	uint32_t num_devices, num_vectors;
	struct its_bench its; /* event n of device d is GSI d * num_vectors + n */
	struct vgic *vgic;
	struct vgic_routes *routes;
	struct base_routes *historic; /* of one round */
	struct times times[NUM_MODES];
	unsigned num_rounds;

	struct idle_vcpus idle_vcpus;

	enum mode mode;
	struct signaller signaller;
};

/* ---- Signals ---- */

/* What an irqfd did. */
static int signal_historic(struct routes_bench *b, uint32_t gsi)
{
	struct base_msi msi;
	int result = -1;

	if (base_routes_find(b->historic, gsi, &msi))
		result = vgic_signal_msi(b->vgic, base_msi_address(&msi), msi.data, msi.devid, msi.flags);
	base_routes_end_find();
	return result;
}

static int signal_gsi(void *opaque, uint32_t gsi)
{
	struct routes_bench *b = opaque;

	return b->mode == HISTORIC ? signal_historic(b, gsi) : vgic_signal_gsi(b->routes, gsi);
}

/* ---- Enabling a device ---- */

static struct vgic_route route_of(const struct its_event *event)
{
	return (struct vgic_route){ .type = VGIC_ROUTE_MSI,
				    .to.msi = { .address = POLICY_DIRECT_DOORBELL,
						.data = event->eventid,
						.devid = event->devid,
						.msi_flags = VGIC_MSI_VALID_DEVID } };
}

static int enable_historic(struct routes_bench *b, uint32_t first, struct base_routes_times *times)
{
	int error = 0;

	for (uint32_t gsi = first; gsi < first + b->num_vectors; gsi++) {
		const struct base_msi msi = { .address_low = (uint32_t)POLICY_DIRECT_DOORBELL,
					      .data = b->its.events[gsi].eventid,
					      .flags = VGIC_MSI_VALID_DEVID,
					      .devid = b->its.events[gsi].devid };

		error |= base_routes_add(b->historic, gsi, &msi, times);
	}
	return error;
}

static int enable_by_entry(struct routes_bench *b, uint32_t first)
{
	int error = 0;

	for (uint32_t gsi = first; gsi < first + b->num_vectors; gsi++) {
		const struct vgic_route route = route_of(&b->its.events[gsi]);

		error |= vgic_route_set(b->routes, gsi, &route);
	}
	return error;
}

static int enable_by_batch(struct routes_bench *b, uint32_t first)
{
	struct vgic_route_txn txn;
	int error = vgic_route_txn_begin(b->routes, &txn);

	for (uint32_t gsi = first; gsi < first + b->num_vectors; gsi++) {
		const struct vgic_route route = route_of(&b->its.events[gsi]);

		error |= vgic_route_txn_set(&txn, gsi, &route);
	}
	vgic_route_txn_commit(&txn);
	return error;
}

static bool enable_device(struct routes_bench *b, unsigned round, uint32_t device)
{
	const uint32_t first = device * b->num_vectors;
	const unsigned at = round * b->num_devices + device;
	struct times *times = &b->times[b->mode];
	struct base_routes_times parts = { 0 };
	const uint64_t start = measure_now_ns();
	uint64_t took;
	int error;

	if (b->mode == HISTORIC)
		error = enable_historic(b, first, &parts);
	else
		error = b->mode == ENTRY ? enable_by_entry(b, first) : enable_by_batch(b, first);
	took = b->mode == HISTORIC ? parts.copy + parts.publish + parts.wait : measure_now_ns() - start;
	times->all[at] = (double)took / 1e3;
	times->copy[at] = (double)parts.copy / 1e3;
	times->publish[at] = (double)parts.publish / 1e3;
	times->wait[at] = (double)parts.wait / 1e3;
	atomic_store(&b->signaller.num_enabled, first + b->num_vectors);
	return error == 0;
}

/* ---- Rounds ---- */

/* Takes what the signaller has left; then each GSI must lead where it should. */
static bool routes_are_right(struct routes_bench *b)
{
	const struct policy_ops *ops = b->its.policy->ops;
	uint32_t vcpu = 0;

	its_bench_take_all(&b->its);
	for (uint32_t gsi = 0; gsi < b->its.num_lpis; gsi++) {
		const uint32_t lpi = POLICY_FIRST_LPI + gsi;

		if (signal_gsi(b, gsi) != 1 || ops->acknowledge(b->its.policy, vcpu) != lpi)
			return false;
		ops->end(b->its.policy, vcpu, lpi);
		vcpu = vcpu + 1 < b->its.num_vcpus ? vcpu + 1 : 0;
	}
	return its_bench_drain(&b->its, 0);
}

/* No GSI leads anywhere. The memory is the same each round: nothing is touched for the first time. */
static bool reset_routes(struct routes_bench *b)
{
	const struct vgic_route none = { .type = VGIC_ROUTE_NONE };
	int error = 0;

	if (b->mode == HISTORIC) {
		b->historic = base_routes_create(b->its.num_lpis);
		return b->historic;
	}
	for (uint32_t gsi = 0; gsi < b->its.num_lpis; gsi++)
		error |= vgic_route_set(b->routes, gsi, &none);
	return error == 0;
}

static bool run_round(struct routes_bench *b, unsigned round, enum mode mode)
{
	bool right = true;

	b->mode = mode;
	if (!reset_routes(b) || !signaller_start(&b->signaller))
		return false;
	for (uint32_t device = 0; device < b->num_devices && right; device++)
		right = enable_device(b, round, device);
	right &= signaller_stop(&b->signaller);
	right = right && routes_are_right(b);
	if (mode == HISTORIC) {
		base_routes_destroy(b->historic);
		b->historic = NULL;
	}
	return right;
}

static bool run_rounds(struct routes_bench *b)
{
	const unsigned rounds = b->options->measure.batches;

	for (unsigned round = 0; round < rounds; round++) {
		bench_progress(round, rounds);
		for (enum mode mode = HISTORIC; mode < NUM_MODES; mode++) {
			if (run_round(b, round, mode))
				continue;
			bench_progress_end();
			fprintf(stderr, "vgic-bench: routes: %s: a result was wrong\n", mode_names[mode]);
			return false;
		}
	}
	bench_progress_end();
	b->num_rounds = rounds;
	return true;
}

/* ---- Results ---- */

/* The median of a device's rounds. @values are of all devices, and all rounds. */
static double median_of(const struct routes_bench *b, const double *values, uint32_t device)
{
	const unsigned n = b->num_rounds;
	double *sorted = calloc(n, sizeof(*sorted)), result = 0;

	if (!sorted)
		return 0;
	for (unsigned round = 0; round < n; round++)
		sorted[round] = values[round * b->num_devices + device];
	result = measure_median(sorted, n);
	free(sorted);
	return result;
}

static void print_json(const struct routes_bench *b)
{
	printf("{\"rows\":[");
	for (enum mode mode = HISTORIC; mode < NUM_MODES; mode++) {
		double total = 0;

		printf("%s\n{\"mode\":\"%s\",\"per_device_us\":[", mode ? "," : "", mode_names[mode]);
		for (uint32_t device = 0; device < b->num_devices; device++) {
			const double median = median_of(b, b->times[mode].all, device);

			printf("%s%.2f", device ? "," : "", median);
			total += median;
		}
		printf("],\"total_us\":%.2f}", total);
	}
	printf("]}\n");
}

static void print_line(const struct routes_bench *b, const char *what, const double *values)
{
	double total = 0;

	printf("%-12s", what);
	for (uint32_t device = 0; device < b->num_devices; device++) {
		const double median = median_of(b, values, device);

		printf(" %9.1f", median);
		total += median;
	}
	printf(" %10.1f\n", total);
}

static void print_table(const struct routes_bench *b)
{
	const struct times *historic = &b->times[HISTORIC];

	printf("Setting the routes of %u vectors of each device, %u vCPUs: us, medians of %u rounds\n", b->num_vectors,
	       b->its.num_vcpus, b->num_rounds);
	printf("%-12s", "device");
	for (uint32_t device = 0; device < b->num_devices; device++)
		printf(" %9u", device + 1);
	printf(" %10s\n", "all");
	print_line(b, mode_names[HISTORIC], historic->all);
	print_line(b, "  copy", historic->copy);
	print_line(b, "  publish", historic->publish);
	print_line(b, "  wait", historic->wait);
	print_line(b, mode_names[ENTRY], b->times[ENTRY].all);
	print_line(b, mode_names[BATCH], b->times[BATCH].all);
}

/* ---- The command ---- */

static bool init_times(struct routes_bench *b, struct times *times)
{
	const size_t num = (size_t)b->options->measure.batches * b->num_devices;

	times->all = calloc(num, sizeof(double));
	times->copy = calloc(num, sizeof(double));
	times->publish = calloc(num, sizeof(double));
	times->wait = calloc(num, sizeof(double));
	return times->all && times->copy && times->publish && times->wait;
}

static void free_times(struct times *times)
{
	free(times->all);
	free(times->copy);
	free(times->publish);
	free(times->wait);
}

static bool init(struct routes_bench *b, const struct bench_options *options)
{
	*b = (struct routes_bench){ .options = options,
				    .num_devices = options->num_devices,
				    .num_vectors = options->num_events };
	for (enum mode mode = HISTORIC; mode < NUM_MODES; mode++) {
		if (!init_times(b, &b->times[mode]))
			return false;
	}
	if (!its_bench_init(&b->its, &policy_direct, options->vcpus[0], b->num_devices, b->num_vectors,
			    b->num_devices * b->num_vectors, 0))
		return false;
	b->vgic = policy_direct_vgic(b->its.policy);
	return vgic_routes_create(b->vgic, b->its.num_lpis, &b->routes) == 0;
}

static void destroy(struct routes_bench *b)
{
	vgic_routes_destroy(b->routes);
	its_bench_destroy(&b->its);
	for (enum mode mode = HISTORIC; mode < NUM_MODES; mode++)
		free_times(&b->times[mode]);
}

int bench_routes(const struct bench_options *options)
{
	const int signaller_cpu = measure_cpu(1);
	struct routes_bench b;
	bool well;

	/* The historic way's worker as well: it is the kernel's for this CPU. */
	measure_pin(measure_cpu(0));
	well = init(&b, options);
	b.signaller = (struct signaller){ .signal = signal_gsi, .opaque = &b, .cpu = signaller_cpu };
	well = idle_vcpus_start(&b.idle_vcpus, options->vcpus[0]) && well;
	if (!well)
		fprintf(stderr, "vgic-bench: routes: no memory, or no threads\n");
	well = well && run_rounds(&b);
	if (well && options->measure.json)
		print_json(&b);
	else if (well)
		print_table(&b);
	idle_vcpus_stop(&b.idle_vcpus);
	destroy(&b);
	return well ? 0 : 1;
}
