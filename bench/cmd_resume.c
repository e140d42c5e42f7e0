/* SPDX-License-Identifier: MIT */
/*
 * cmd_resume.c - `vgic-bench resume`: what a VMM does for a guest's devices when it
 * resumes the guest, two ways.
 *
 * historic     restore the ITS's tables; then for each vector the whole table of
 *              routes, with a grace period (baselines/route_table.h), and its irqfd
 * transaction  restore the ITS's tables, one transaction of all routes, all irqfds
 *
 * The guest has a thread for each vCPU, which sleeps. Its devices are resumed one after
 * the other, and one whose irqfds are there works: another thread signals its vectors
 * (signaller.h; not with --quiet). Both ways restore the same tables from the guest's
 * memory by libvgic, and both assign the same eventfds to libvgic's irqfds; those of the
 * historic way find their routes in its table. What QEMU did to VFIO beside (each vector
 * took the device's vectors down and up again) is left out.
 *
 * Before each round the ITS is reset, and has no routes and no irqfds. After it each
 * eventfd is signalled, and its LPI must come, and nothing else.
 */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <vgic/irqfd.h>
#include <vgic/state.h>

#include "baselines/route_table.h"
#include "guest_its.h"
#include "idle_vcpus.h"
#include "its_bench.h"
#include "signaller.h"

#define LOST_NS UINT64_C(10000000000)

enum mode { HISTORIC, TRANSACTION, NUM_MODES };

static const char *const mode_names[NUM_MODES] = { "historic", "transaction" };

/* What is timed, in microseconds; WAIT is a part of ROUTES. */
enum part { TABLES, ROUTES, WAIT, IRQFDS, ALL, NUM_PARTS };

static const char *const part_names[NUM_PARTS] = { "tables", "routes", "wait", "irqfds", "total" };

/* The registers of an ITS, in the order in which they are restored. */
enum { CBASER, CREADR, CWRITER, BASER0, BASER1, NUM_REGISTERS };

static const uint32_t registers[NUM_REGISTERS] = { 0x80, 0x90, 0x88, 0x100, 0x108 };

struct resume_bench {
	const struct bench_options *options;
	uint32_t num_devices, num_vectors;
	struct its_bench its; /* event n of device d is GSI d * num_vectors + n */
	struct vgic *vgic;
	struct vgic_its *vgic_its;
	struct vgic_attr saved[NUM_REGISTERS];
	int *eventfds; /* by GSI */
	uint32_t num_eventfds;
	struct idle_vcpus idle_vcpus;
	double *times[NUM_MODES][NUM_PARTS];
	unsigned num_rounds;

	/* Of a round. */
	enum mode mode;
	struct vgic_routes *routes;
	struct base_routes *historic;
	struct vgic_irqfds *irqfds;
	struct signaller signaller;
};

/* ---- Saving ---- */

/* Each device with an ITT of its own: the tables go through the guest's memory. */
static int map_again(struct resume_bench *b)
{
	struct guest_its *g = policy_direct_guest_its(b->its.policy);
	unsigned bits = 1;
	int error = 0;

	while (1u << bits < b->num_vectors)
		bits++;
	for (uint32_t devid = 0; devid < b->num_devices && !error; devid++) {
		const uint64_t itt = guest_its_alloc_itt(g, bits);

		error = itt ? guest_its_mapd(g, devid, bits, itt) : -ENOMEM;
		for (uint32_t n = 0; n < b->num_vectors && !error; n++) {
			const uint32_t lpi = devid * b->num_vectors + n;

			error = guest_its_mapti(g, devid, n, POLICY_FIRST_LPI + lpi, lpi % b->its.num_vcpus);
		}
	}
	return error;
}

static int save(struct resume_bench *b)
{
	for (unsigned i = 0; i < NUM_REGISTERS; i++)
		b->saved[i] = (struct vgic_attr){ .group = VGIC_GRP_ITS_REGS, .attr = registers[i] };
	return vgic_its_attr_set(b->vgic_its, VGIC_GRP_CTRL, VGIC_CTRL_ITS_SAVE_TABLES, 0) ||
	       vgic_its_attr_get_many(b->vgic_its, b->saved, NUM_REGISTERS, NULL);
}

/* ---- Resuming ---- */

static int restore_tables(struct resume_bench *b)
{
	int error = vgic_its_attr_set_many(b->vgic_its, b->saved, NUM_REGISTERS, NULL);

	error = error ? error : vgic_its_attr_set(b->vgic_its, VGIC_GRP_CTRL, VGIC_CTRL_ITS_RESTORE_TABLES, 0);
	return error ? error : vgic_its_attr_set(b->vgic_its, VGIC_GRP_ITS_REGS, 0, 1); /* GITS_CTLR.Enabled */
}

static int assign(struct resume_bench *b, uint32_t gsi)
{
	return vgic_irqfd_assign(b->irqfds, gsi, b->eventfds[gsi], VGIC_NO_FD);
}

static int resume_historic(struct resume_bench *b, uint64_t ns[NUM_PARTS])
{
	struct base_routes_times times = { 0 };
	int error = 0;

	for (uint32_t gsi = 0; gsi < b->its.num_lpis && !error; gsi++) {
		const struct base_msi msi = { .address_low = (uint32_t)POLICY_DIRECT_DOORBELL,
					      .data = b->its.events[gsi].eventid,
					      .flags = VGIC_MSI_VALID_DEVID,
					      .devid = b->its.events[gsi].devid };
		uint64_t start;

		error = base_routes_add(b->historic, gsi, &msi, &times);
		start = measure_now_ns();
		error = error ? error : assign(b, gsi);
		ns[IRQFDS] += measure_now_ns() - start;
		if (gsi % b->num_vectors == b->num_vectors - 1)
			atomic_store(&b->signaller.num_enabled, gsi + 1);
	}
	ns[WAIT] = times.wait;
	ns[ROUTES] = times.copy + times.publish + times.wait;
	return error;
}

static int set_all_routes(struct resume_bench *b)
{
	struct vgic_route_txn txn;
	int error = vgic_route_txn_begin(b->routes, &txn);

	for (uint32_t gsi = 0; gsi < b->its.num_lpis && !error; gsi++) {
		const struct vgic_route route = { .type = VGIC_ROUTE_MSI,
						  .to.msi = { .address = POLICY_DIRECT_DOORBELL,
							      .data = b->its.events[gsi].eventid,
							      .devid = b->its.events[gsi].devid,
							      .msi_flags = VGIC_MSI_VALID_DEVID } };

		error = vgic_route_txn_set(&txn, gsi, &route);
	}
	vgic_route_txn_commit(&txn);
	return error;
}

static int resume_by_transaction(struct resume_bench *b, uint64_t ns[NUM_PARTS])
{
	const uint64_t start = measure_now_ns();
	int error = set_all_routes(b);
	const uint64_t routed = measure_now_ns();

	for (uint32_t gsi = 0; gsi < b->its.num_lpis && !error; gsi++) {
		error = assign(b, gsi);
		if (gsi % b->num_vectors == b->num_vectors - 1)
			atomic_store(&b->signaller.num_enabled, gsi + 1);
	}
	ns[ROUTES] = routed - start;
	ns[IRQFDS] = measure_now_ns() - routed;
	return error;
}

static int resume(struct resume_bench *b, unsigned round)
{
	const uint64_t start = measure_now_ns();
	uint64_t ns[NUM_PARTS] = { 0 };
	int error = restore_tables(b);

	ns[TABLES] = measure_now_ns() - start;
	if (!error)
		error = b->mode == HISTORIC ? resume_historic(b, ns) : resume_by_transaction(b, ns);
	ns[ALL] = ns[TABLES] + ns[ROUTES] + ns[IRQFDS];
	for (enum part part = TABLES; part < NUM_PARTS; part++)
		b->times[b->mode][part][round] = (double)ns[part] / 1e3;
	return error;
}

/* ---- Before and after ---- */

/* As the original's irqfd: its copy of the route is read in a section of RCU that ends after the injection. */
static int inject_historic(void *opaque, uint32_t gsi, enum vgic_irqfd_path path)
{
	struct resume_bench *b = opaque;
	struct base_msi msi;
	int result = 0;

	(void)path;
	if (base_routes_find(b->historic, gsi, &msi))
		result = vgic_signal_msi(b->vgic, base_msi_address(&msi), msi.data, msi.devid, msi.flags);
	base_routes_end_find();
	return result;
}

static int signal_gsi(void *opaque, uint32_t gsi)
{
	struct resume_bench *b = opaque;

	return b->mode == HISTORIC ? inject_historic(b, gsi, VGIC_IRQFD_DIRECT) : vgic_signal_gsi(b->routes, gsi);
}

/* A controller as it is before it is resumed, but for its redistributors. */
static int begin(struct resume_bench *b)
{
	struct vgic_irqfds_config config;
	int error = vgic_its_attr_set(b->vgic_its, VGIC_GRP_CTRL, VGIC_CTRL_ITS_RESET, 0);

	error = error ? error : vgic_routes_create(b->vgic, b->its.num_lpis, &b->routes);
	b->historic = base_routes_create(b->its.num_lpis);
	if (error || !b->historic)
		return error ? error : -ENOMEM;
	vgic_irqfds_config_init(&config);
	config.ops.inject = b->mode == HISTORIC ? inject_historic : NULL;
	config.opaque = b;
	return vgic_irqfds_create(b->routes, &config, &b->irqfds);
}

static void end(struct resume_bench *b)
{
	vgic_irqfds_destroy(b->irqfds);
	vgic_routes_destroy(b->routes);
	if (b->historic)
		base_routes_destroy(b->historic);
	b->irqfds = NULL;
	b->routes = NULL;
	b->historic = NULL;
}

/* What the vCPU has to take next. The service's thread injects: that may be later. */
static uint32_t wait_for_interrupt(struct resume_bench *b, uint32_t vcpu)
{
	const uint64_t start = measure_now_ns();
	uint32_t intid;

	while ((intid = b->its.policy->ops->acknowledge(b->its.policy, vcpu)) == POLICY_SPURIOUS &&
	       measure_now_ns() - start < LOST_NS)
		sched_yield();
	return intid;
}

/* Each eventfd leads to its LPI, once, and is as it was afterwards. What was signalled before is taken. */
static bool eventfds_are_right(struct resume_bench *b)
{
	its_bench_take_all(&b->its);
	for (uint32_t gsi = 0; gsi < b->its.num_lpis; gsi++) {
		const uint32_t lpi = POLICY_FIRST_LPI + gsi, vcpu = gsi % b->its.num_vcpus;
		eventfd_t count;

		if (eventfd_write(b->eventfds[gsi], 1) || wait_for_interrupt(b, vcpu) != lpi)
			return false;
		b->its.policy->ops->end(b->its.policy, vcpu, lpi);
		if (eventfd_read(b->eventfds[gsi], &count) || count != 1)
			return false;
	}
	return its_bench_drain(&b->its, 0);
}

static bool resume_and_check(struct resume_bench *b, unsigned round)
{
	const char *name = mode_names[b->mode];
	const bool quiet = b->options->quiet;
	bool right = true;
	int error = begin(b);

	if (!error && !quiet && !signaller_start(&b->signaller))
		error = -EAGAIN;
	else if (!error) {
		error = resume(b, round);
		right = quiet || signaller_stop(&b->signaller);
	}
	if (error) {
		fprintf(stderr, "vgic-bench: resume: %s: %s\n", name, strerror(-error));
		return false;
	}
	if (!right || !eventfds_are_right(b)) {
		fprintf(stderr, "vgic-bench: resume: %s: an eventfd led to nothing, or to the wrong LPI\n", name);
		return false;
	}
	return true;
}

static bool run_round(struct resume_bench *b, unsigned round, enum mode mode)
{
	bool right;

	b->mode = mode;
	right = resume_and_check(b, round);
	end(b);
	return right;
}

static bool run_rounds(struct resume_bench *b)
{
	const unsigned rounds = b->options->measure.batches;
	bool right = true;

	for (unsigned round = 0; round < rounds && right; round++) {
		bench_progress(round, rounds);
		for (enum mode mode = HISTORIC; mode < NUM_MODES && right; mode++)
			right = run_round(b, round, mode);
	}
	bench_progress_end();
	return right;
}

/* ---- Results ---- */

static double median_of(struct resume_bench *b, enum mode mode, enum part part)
{
	return measure_median(b->times[mode][part], b->options->measure.batches);
}

static void print_json(struct resume_bench *b)
{
	printf("{\"rows\":[");
	for (enum mode mode = HISTORIC; mode < NUM_MODES; mode++) {
		printf("%s\n{\"mode\":\"%s\",\"devices\":%u,\"vectors\":%u,\"vcpus\":%u", mode ? "," : "",
		       mode_names[mode], b->num_devices, b->num_vectors, b->its.num_vcpus);
		for (enum part part = TABLES; part < NUM_PARTS; part++)
			printf(",\"%s_us\":%.2f", part_names[part], median_of(b, mode, part));
		printf("}");
	}
	printf("]}\n");
}

static void print_table(struct resume_bench *b)
{
	printf("Resuming %u devices of %u vectors, %u vCPUs%s: us, medians of %u rounds\n", b->num_devices,
	       b->num_vectors, b->its.num_vcpus, b->options->quiet ? ", nothing signalled" : "",
	       b->options->measure.batches);
	printf("%-12s", "");
	for (enum part part = TABLES; part < NUM_PARTS; part++)
		printf(" %10s", part == WAIT ? "(waiting)" : part_names[part]);
	for (enum mode mode = HISTORIC; mode < NUM_MODES; mode++) {
		printf("\n%-12s", mode_names[mode]);
		for (enum part part = TABLES; part < NUM_PARTS; part++)
			printf(" %10.1f", median_of(b, mode, part));
	}
	printf("\n%.1f times as fast\n", median_of(b, HISTORIC, ALL) / median_of(b, TRANSACTION, ALL));
}

/* ---- The command ---- */

static bool init_eventfds(struct resume_bench *b)
{
	b->eventfds = calloc(b->its.num_lpis, sizeof(*b->eventfds));
	for (; b->eventfds && b->num_eventfds < b->its.num_lpis; b->num_eventfds++) {
		const int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);

		if (fd < 0) {
			fprintf(stderr, "vgic-bench: resume: eventfd %u of %u: %s%s\n", b->num_eventfds + 1,
				b->its.num_lpis, strerror(errno), errno == EMFILE ? " (see ulimit -n)" : "");
			return false;
		}
		b->eventfds[b->num_eventfds] = fd;
	}
	return b->eventfds;
}

static bool init_times(struct resume_bench *b)
{
	bool well = true;

	for (enum mode mode = HISTORIC; mode < NUM_MODES; mode++) {
		for (enum part part = TABLES; part < NUM_PARTS; part++) {
			b->times[mode][part] = calloc(b->options->measure.batches, sizeof(double));
			well = well && b->times[mode][part];
		}
	}
	return well;
}

static bool init(struct resume_bench *b)
{
	if (!init_times(b) || !its_bench_init(&b->its, &policy_direct, b->options->vcpus[0], b->num_devices,
					      b->num_vectors, b->num_devices * b->num_vectors, 0))
		return false;
	b->vgic = policy_direct_vgic(b->its.policy);
	b->vgic_its = vgic_its_by_index(b->vgic, 0);
	if (map_again(b) || save(b)) {
		fprintf(stderr, "vgic-bench: resume: cannot save %u devices of %u vectors\n", b->num_devices,
			b->num_vectors);
		return false;
	}
	return init_eventfds(b);
}

static void destroy(struct resume_bench *b)
{
	idle_vcpus_stop(&b->idle_vcpus);
	for (uint32_t i = 0; i < b->num_eventfds; i++)
		close(b->eventfds[i]);
	free(b->eventfds);
	its_bench_destroy(&b->its);
	for (enum mode mode = HISTORIC; mode < NUM_MODES; mode++) {
		for (enum part part = TABLES; part < NUM_PARTS; part++)
			free(b->times[mode][part]);
	}
}

int bench_resume(const struct bench_options *options)
{
	struct resume_bench b = { .options = options,
				  .num_devices = options->num_devices,
				  .num_vectors = options->num_events };
	const int signaller_cpu = measure_cpu(1);
	bool well;

	b.signaller = (struct signaller){ .signal = signal_gsi, .opaque = &b, .cpu = signaller_cpu };
	/* The historic way's worker as well: it is the kernel's for this CPU. */
	measure_pin(measure_cpu(0));
	well = idle_vcpus_start(&b.idle_vcpus, options->vcpus[0]);
	if (!well)
		fprintf(stderr, "vgic-bench: resume: no memory, or no threads\n");
	well = well && init(&b) && run_rounds(&b);
	if (well && options->measure.json)
		print_json(&b);
	else if (well)
		print_table(&b);
	destroy(&b);
	return well ? 0 : 1;
}
