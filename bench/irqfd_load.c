/* SPDX-License-Identifier: MIT */
/*
 * irqfd_load.c - the threads of `vgic-bench irqfd` (irqfd_load.h).
 *
 * Each NIC has one event, on the next vCPU. It counts its signals before it makes
 * them; who acknowledges its LPI reads that count. A NIC writes the time of a
 * signal into its word only if that is empty; who injects empties it first.
 */
#define _GNU_SOURCE
#include "irqfd_load.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "baselines/route_table.h"
#include "machine.h"
#include "measure.h"

#define CACHE_LINE         128
#define NS_PER_S           UINT64_C(1000000000)
#define NUM_VCPUS          4u
#define SPIN_NS            30000u /* a service that polls: longer than a NIC takes from one event to the next */
#define PACED_NS           (NS_PER_S / 25)
#define FLAT_OUT_NS        (NS_PER_S / 50)
#define SPINS_BEFORE_YIELD 20000u /* some 10 us */
#define MAX_LAG            16u    /* intervals; a NIC that is further behind does not catch up */
#define YIELD_FROM_NS      1500u
#define LOST_TIMEOUT       (10 * NS_PER_S)
#define GENERATOR_CPU      0u
#define VCPUS_CPU          1u

struct nic {
	_Alignas(CACHE_LINE) _Atomic uint64_t signalled_at; /* 0: empty */
	_Alignas(CACHE_LINE) _Atomic uint64_t signalled;
	_Alignas(CACHE_LINE) _Atomic uint64_t seen; /* of signalled, by the last acknowledge */
	int fd;
};

struct load {
	const struct irqfd_load_config *config;
	struct histogram *latencies;
	struct irqfd_load_result *result;
	struct policy *policy;
	struct machine machine; /* the controller whose irqfds an older design borrows */
	struct base_routes *historic;
	struct vgic_routes *routes;
	struct vgic_irqfds *irqfds;
	struct nic *nics;
	uint32_t num_fds;
	_Atomic bool timing; /* the first phase; changed at rest */

	pthread_t generator, vcpus;
	_Alignas(CACHE_LINE) _Atomic uint64_t kicked; /* a bit for each vCPU */
	_Alignas(CACHE_LINE) _Atomic uint64_t refused;
	_Atomic uint64_t unexpected;
	_Atomic bool stop;
	bool lost;
};

/* ---- Injecting, in whichever thread the irqfds do so ---- */

/* As the original's irqfd, whose copy of its route is read in a section of RCU that ends after the injection. */
static int inject_historic(struct load *load, uint32_t gsi, enum vgic_irqfd_path path)
{
	const struct policy_ops *ops = load->config->ops;
	struct base_msi msi;
	int result = -ENOENT;

	if (base_routes_find(load->historic, gsi, &msi)) {
		if (path == VGIC_IRQFD_DIRECT)
			result = ops->try_inject(load->policy, msi.devid, msi.data);
		else
			result = ops->inject(load->policy, msi.devid, msi.data);
	}
	base_routes_end_find();
	return result;
}

static int inject_by_policy(struct load *load, uint32_t gsi, enum vgic_irqfd_path path)
{
	if (load->config->ops == &policy_direct)
		return vgic_signal_gsi(load->routes, gsi);
	return inject_historic(load, gsi, path);
}

static int inject(void *opaque, uint32_t gsi, enum vgic_irqfd_path path)
{
	struct load *load = opaque;
	struct nic *nic = &load->nics[gsi];
	const uint64_t since = load->timing ? atomic_exchange(&nic->signalled_at, 0) : 0;
	const int result = inject_by_policy(load, gsi, path);

	if (result == -EWOULDBLOCK) {
		/* The worker will come. A later signal's time, if there is one by now, goes: this one was first. */
		if (since)
			atomic_store(&nic->signalled_at, since);
		return result;
	}
	if (since)
		histogram_add(load->latencies, measure_now_ns() - since);
	if (result != 1)
		atomic_fetch_add(&load->refused, 1);
	return result;
}

/* ---- The vCPUs ---- */

static void kick(void *opaque, uint32_t vcpu)
{
	struct load *load = opaque;
	const uint64_t bit = UINT64_C(1) << vcpu;

	if (!(atomic_load(&load->kicked) & bit))
		atomic_fetch_or(&load->kicked, bit);
}

static void account(struct load *load, uint32_t vcpu, uint32_t intid)
{
	const uint32_t n = intid - POLICY_FIRST_LPI;

	if (n >= load->config->num_nics || n % NUM_VCPUS != vcpu) {
		atomic_fetch_add(&load->unexpected, 1);
		return;
	}
	/* Ordered by the acknowledge, or not at all. */
	atomic_store_explicit(&load->nics[n].seen, atomic_load_explicit(&load->nics[n].signalled, memory_order_relaxed),
			      memory_order_release);
}

/* The vCPU runs until nothing is left for it, and waits again. */
static void run_vcpu(struct load *load, uint32_t vcpu)
{
	const struct policy_ops *ops = load->config->ops;

	do {
		ops->finish_wait(load->policy, vcpu);
		for (uint32_t intid; (intid = ops->acknowledge(load->policy, vcpu)) != POLICY_SPURIOUS;) {
			account(load, vcpu, intid);
			ops->end(load->policy, vcpu, intid);
		}
	} while (ops->prepare_wait(load->policy, vcpu));
}

/*
 * NICs are hardware, and a vCPU that is waited for leaves the guest at once: who is
 * woken by an event does not queue up behind the threads that play them. (Not with a
 * number of signals given, as in tests: on a busy machine that may take for ever.)
 */
static void give_way(const struct load *load)
{
	const struct sched_param none = { .sched_priority = 0 };

	if (!load->config->signals)
		pthread_setschedparam(pthread_self(), SCHED_IDLE, &none);
}

/*
 * A vCPU of a busy guest does not sleep: it finds out about a kick soon, and the
 * kick costs no system call. But there may be more threads than CPUs: it gives its
 * own up when nothing is there for it, in the second phase after a while only.
 */
static void *run_vcpus(void *argument)
{
	struct load *load = argument;
	unsigned spins = 0;

	measure_pin(measure_cpu(VCPUS_CPU));
	give_way(load);
	for (uint32_t vcpu = 0; vcpu < NUM_VCPUS; vcpu++)
		run_vcpu(load, vcpu);
	while (!atomic_load(&load->stop)) {
		if (!atomic_load(&load->kicked)) {
			if (load->timing || ++spins % SPINS_BEFORE_YIELD == 0)
				sched_yield();
			continue;
		}
		for (uint64_t bits = atomic_exchange(&load->kicked, 0); bits; bits &= bits - 1)
			run_vcpu(load, (uint32_t)__builtin_ctzll(bits));
	}
	for (uint32_t vcpu = 0; vcpu < NUM_VCPUS; vcpu++)
		load->config->ops->finish_wait(load->policy, vcpu);
	return NULL;
}

/* ---- The NICs ---- */

static void signal_nic(struct load *load, uint32_t n)
{
	struct nic *nic = &load->nics[n];
	uint64_t empty = 0;
	int result;

	atomic_store_explicit(&nic->signalled, atomic_load_explicit(&nic->signalled, memory_order_relaxed) + 1,
			      memory_order_relaxed);
	if (load->timing)
		atomic_compare_exchange_strong(&nic->signalled_at, &empty, measure_now_ns());
	if (load->config->door == IRQFD_LOAD_SIGNAL)
		result = vgic_irqfds_signal(load->irqfds, n);
	else
		result = eventfd_write(nic->fd, 1) ? -errno : 1;
	if (result != 1)
		atomic_fetch_add(&load->refused, 1);
}

/* Until nothing is under way any more. False: something will never come. */
static bool wait_until_seen(struct load *load)
{
	const uint64_t start = measure_now_ns();

	for (uint32_t n = 0; n < load->config->num_nics;) {
		struct nic *nic = &load->nics[n];

		if (atomic_load_explicit(&nic->seen, memory_order_acquire) == atomic_load(&nic->signalled)) {
			n++;
			continue;
		}
		if (measure_now_ns() - start > LOST_TIMEOUT)
			return false;
		sched_yield();
	}
	return true;
}

/* One event every @interval: a NIC that falls behind does not make up for it by a burst. */
static void wait_for_turn(uint64_t *next, uint64_t interval)
{
	uint64_t now;

	while ((now = measure_now_ns()) < *next) {
		if (*next - now > YIELD_FROM_NS)
			sched_yield();
	}
	*next = now - *next > MAX_LAG * interval ? now : *next + interval;
}

/* The NICs in turn; @interval 0: as fast as they can. Returns the number of signals. */
static uint64_t signal_all(struct load *load, uint64_t interval, uint64_t duration)
{
	const uint64_t wanted = load->config->signals, start = measure_now_ns();
	uint64_t next = start, num = 0;
	uint32_t n = 0;

	while (wanted ? num < wanted : num % 16 || measure_now_ns() - start < duration) {
		if (interval)
			wait_for_turn(&next, interval);
		signal_nic(load, n);
		n = n + 1 < load->config->num_nics ? n + 1 : 0;
		num++;
	}
	return num;
}

static struct vgic_irqfds_stats irqfds_stats(const struct load *load)
{
	struct vgic_irqfds_stats stats = { .size = sizeof(stats) };

	vgic_irqfds_get_stats(load->irqfds, &stats);
	return stats;
}

static uint64_t num_events(const struct vgic_irqfds_stats *stats)
{
	return stats->direct + stats->deferred + stats->coalesced + stats->dropped;
}

/* Since @start. What is under way still does not count, unless nothing has arrived yet. */
static double rate_since(struct load *load, const struct vgic_irqfds_stats *before, uint64_t start)
{
	for (;;) {
		const struct vgic_irqfds_stats now = irqfds_stats(load);
		const uint64_t num = now.direct + now.deferred - before->direct - before->deferred;
		const uint64_t took = measure_now_ns() - start;

		if (num || took > LOST_TIMEOUT)
			return (double)num * 1e9 / (double)took;
		sched_yield();
	}
}

static bool run_flat_out(struct load *load)
{
	const struct vgic_irqfds_stats before = irqfds_stats(load);
	const uint64_t start = measure_now_ns();
	struct vgic_irqfds_stats after;
	bool seen;

	load->result->signals = signal_all(load, 0, FLAT_OUT_NS);
	load->result->rate = rate_since(load, &before, start);
	seen = wait_until_seen(load);
	after = irqfds_stats(load);
	load->result->events = num_events(&after) - num_events(&before);
	load->result->deferred = after.deferred - before.deferred;
	load->result->waits = after.waits - before.waits;
	load->result->empty_waits = after.empty_waits - before.empty_waits;
	return seen;
}

static void *run_generator(void *argument)
{
	struct load *load = argument;
	const uint64_t interval = NS_PER_S / IRQFD_LOAD_RATE / load->config->num_nics;

	measure_pin(measure_cpu(GENERATOR_CPU));
	give_way(load);
	load->timing = true;
	signal_all(load, interval, PACED_NS);
	load->lost = !wait_until_seen(load);
	load->timing = false;
	load->lost = load->lost || !run_flat_out(load);
	return NULL;
}

/* ---- Set-up ---- */

static int create_historic_routes(struct load *load)
{
	const uint32_t num_nics = load->config->num_nics;
	const uint64_t affinity = 0;
	struct base_routes_times unused = { 0 };
	int error = machine_init(&load->machine, &affinity, 1);

	if (!error)
		error = vgic_routes_create(load->machine.vgic, num_nics, &load->routes);
	load->historic = base_routes_create(num_nics);
	if (!load->historic)
		return -ENOMEM;
	for (uint32_t n = 0; n < num_nics && !error; n++) {
		const struct base_msi msi = { .flags = BASE_MSI_HAS_DEVID, .devid = n };

		error = base_routes_add(load->historic, n, &msi, &unused);
	}
	return error;
}

static int create_routes(struct load *load)
{
	const uint32_t num_nics = load->config->num_nics;
	int error;

	if (load->config->ops != &policy_direct)
		return create_historic_routes(load);
	error = vgic_routes_create(policy_direct_vgic(load->policy), num_nics, &load->routes);
	for (uint32_t n = 0; n < num_nics && !error; n++) {
		const struct vgic_route route = {
			.type = VGIC_ROUTE_MSI,
			.to.msi = { .address = POLICY_DIRECT_DOORBELL, .devid = n, .msi_flags = VGIC_MSI_VALID_DEVID }
		};

		error = vgic_route_set(load->routes, n, &route);
	}
	return error;
}

static int create_irqfds(struct load *load)
{
	struct vgic_irqfds_config config;
	int error;

	vgic_irqfds_config_init(&config);
	config.path = load->config->path;
	config.spin_ns = load->config->door == IRQFD_LOAD_SERVICE_POLL ? SPIN_NS : 0;
	config.ops.inject = inject;
	config.opaque = load;
	error = vgic_irqfds_create(load->routes, &config, &load->irqfds);
	for (uint32_t n = 0; n < load->config->num_nics && !error; n++) {
		load->nics[n].fd = eventfd(0, EFD_CLOEXEC);
		if (load->nics[n].fd < 0)
			return -errno;
		load->num_fds = n + 1;
		error = vgic_irqfd_assign(load->irqfds, n, load->nics[n].fd, VGIC_NO_FD);
	}
	return error;
}

static int init(struct load *load)
{
	const struct policy_config config = { .num_vcpus = NUM_VCPUS, .kick = kick, .opaque = load };
	const uint32_t num_nics = load->config->num_nics;
	int error;

	load->nics = aligned_alloc(CACHE_LINE, num_nics * sizeof(struct nic));
	if (!load->nics)
		return -ENOMEM;
	memset(load->nics, 0, num_nics * sizeof(struct nic));
	load->policy = load->config->ops->create(&config);
	if (!load->policy)
		return -ENOMEM;
	error = policy_map_devices(load->policy, NUM_VCPUS, num_nics, 1, num_nics);
	/* In the kernel the worker runs on the CPU that missed, and fills its cache; here it may be another one. */
	if (!error && load->config->ops->warm)
		load->config->ops->warm(load->policy);
	if (!error)
		error = create_routes(load);
	return error ? error : create_irqfds(load);
}

static void destroy(struct load *load)
{
	vgic_irqfds_destroy(load->irqfds);
	for (uint32_t n = 0; n < load->num_fds; n++)
		close(load->nics[n].fd);
	vgic_routes_destroy(load->routes);
	if (load->historic)
		base_routes_destroy(load->historic);
	machine_destroy(&load->machine);
	if (load->policy)
		load->config->ops->destroy(load->policy);
	free(load->nics);
}

static int run_threads(struct load *load)
{
	int error = pthread_create(&load->vcpus, NULL, run_vcpus, load);

	if (error)
		return -error;
	error = pthread_create(&load->generator, NULL, run_generator, load);
	if (!error)
		pthread_join(load->generator, NULL);
	atomic_store(&load->stop, true);
	pthread_join(load->vcpus, NULL);
	if (error)
		return -error;
	return load->lost || atomic_load(&load->refused) || atomic_load(&load->unexpected) ? -EIO : 0;
}

int irqfd_load_run(const struct irqfd_load_config *config, struct histogram *latencies,
		   struct irqfd_load_result *result)
{
	struct load load = { .config = config, .latencies = latencies, .result = result };
	int error = init(&load);

	if (!error)
		error = run_threads(&load);
	destroy(&load);
	return error;
}
