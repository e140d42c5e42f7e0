/* SPDX-License-Identifier: MIT */
/*
 * stress.c - the threads of vgic-lpi-stress (stress.h).
 *
 * A device thread signals its events in turn. A consumer thread is one or more
 * vCPUs; each of its vCPUs either waits, which a kick ends, or is being looked at.
 * Kicks set a bit of the consumer's; a consumer without bits sleeps.
 */
#define _GNU_SOURCE
#include "stress.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define CACHE_LINE         64
#define NS_PER_S           UINT64_C(1000000000)
#define WORDS              (POLICY_MAX_VCPUS / 64)
#define SPINS_BEFORE_SLEEP 200 /* a consumer's looks for a kick */
#define SPINS_BEFORE_YIELD 100 /* a device's looks for its acknowledge */
#define LOCKSTEP_TIMEOUT   (10 * NS_PER_S)
#define PROGRESS_FROM_NS   (2 * NS_PER_S)
#define PROGRESS_STEP_US   200000

/* The device's side of an event, and the vCPU's. Each is written by one thread. */
struct event {
	_Alignas(CACHE_LINE) _Atomic uint64_t signalled;
	_Alignas(CACHE_LINE) _Atomic uint64_t seen; /* of signalled, by the last acknowledge */
	uint64_t acknowledged;
};

struct stress;

struct device {
	_Alignas(CACHE_LINE) struct stress *stress;
	uint32_t devid;
	pthread_t thread;
	uint64_t start_ns, end_ns;
	uint64_t injected, refused;
	_Atomic uint64_t iterations_done;
};

struct consumer {
	_Alignas(CACHE_LINE) _Atomic uint64_t kicked[WORDS]; /* by the vCPU's number divided by that of consumers */
	_Atomic uint32_t sleeping;
	_Atomic uint64_t kicks;

	_Alignas(CACHE_LINE) struct stress *stress;
	uint32_t index;
	pthread_t thread;
	uint64_t acknowledged, unexpected, unkicked;
	int64_t merged; /* an acknowledge may come for a signal that an earlier one has seen: -1 */
	uint64_t last_ns;
};

struct stress {
	const struct stress_options *options;
	const struct policy_ops *ops;
	struct policy *policy;
	uint32_t num_consumers, num_lpis, num_cpus;
	struct event *events; /* by LPI */
	struct device *devices;
	struct consumer *consumers;
	uint32_t num_devices_started, num_consumers_started;
	_Atomic uint32_t num_ready;
	_Atomic bool go, abandon, stop;
};

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

static void pin(const struct stress *stress, uint32_t cpu)
{
	cpu_set_t set;

	if (!stress->options->pin)
		return;
	CPU_ZERO(&set);
	CPU_SET(cpu % stress->num_cpus, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

/* Says that the thread is ready, and waits for all others. Returns false if there is nothing to do. */
static bool wait_for_start(struct stress *stress)
{
	atomic_fetch_add(&stress->num_ready, 1);
	while (!atomic_load(&stress->go) && !atomic_load(&stress->abandon))
		sched_yield();
	return !atomic_load(&stress->abandon);
}

/* ---- Kicks ---- */

static void futex_wait(_Atomic uint32_t *word, uint32_t value)
{
	syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
}

static void futex_wake(_Atomic uint32_t *word)
{
	syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static void wake(struct consumer *consumer)
{
	if (atomic_load(&consumer->sleeping) && atomic_exchange(&consumer->sleeping, 0))
		futex_wake(&consumer->sleeping);
}

static void kick(void *opaque, uint32_t vcpu)
{
	struct stress *stress = opaque;
	struct consumer *consumer = &stress->consumers[vcpu % stress->num_consumers];
	const uint32_t n = vcpu / stress->num_consumers;
	const uint64_t bit = UINT64_C(1) << (n % 64);

	/* Who has set the bit wakes the consumer. */
	if (atomic_load(&consumer->kicked[n / 64]) & bit)
		return;
	if (atomic_fetch_or(&consumer->kicked[n / 64], bit) & bit)
		return;
	atomic_fetch_add_explicit(&consumer->kicks, 1, memory_order_relaxed);
	wake(consumer);
}

static bool was_kicked(const struct consumer *consumer)
{
	for (unsigned i = 0; i < WORDS; i++) {
		if (atomic_load(&consumer->kicked[i]))
			return true;
	}
	return false;
}

static void sleep_until_kicked(struct consumer *consumer)
{
	/* "I sleep" before the last look, as a kick is before the look whether someone sleeps. */
	atomic_store(&consumer->sleeping, 1);
	if (!was_kicked(consumer) && !atomic_load(&consumer->stress->stop))
		futex_wait(&consumer->sleeping, 1);
	atomic_store(&consumer->sleeping, 0);
}

/* ---- Consumers ---- */

static void account(struct consumer *consumer, uint32_t vcpu, uint32_t intid)
{
	struct stress *stress = consumer->stress;
	const uint32_t lpi = intid - POLICY_FIRST_LPI;
	struct event *event;
	uint64_t signalled;

	if (lpi >= stress->num_lpis || lpi % stress->options->num_vcpus != vcpu) {
		consumer->unexpected++;
		return;
	}
	event = &stress->events[lpi];
	/* Ordered by the acknowledge, or not at all. */
	signalled = atomic_load_explicit(&event->signalled, memory_order_relaxed);
	consumer->acknowledged++;
	consumer->merged += (int64_t)(signalled - atomic_load_explicit(&event->seen, memory_order_relaxed)) - 1;
	event->acknowledged++;
	atomic_store_explicit(&event->seen, signalled, memory_order_release);
}

static void take_all(struct consumer *consumer, uint32_t vcpu)
{
	struct stress *stress = consumer->stress;

	for (;;) {
		const uint32_t intid = stress->ops->acknowledge(stress->policy, vcpu);

		if (intid == POLICY_SPURIOUS)
			return;
		account(consumer, vcpu, intid);
		stress->ops->end(stress->policy, vcpu, intid);
	}
}

/* The vCPU runs until nothing is left for it, and waits again. */
static void run_vcpu(struct consumer *consumer, uint32_t vcpu)
{
	struct stress *stress = consumer->stress;

	do {
		stress->ops->finish_wait(stress->policy, vcpu);
		take_all(consumer, vcpu);
	} while (stress->ops->prepare_wait(stress->policy, vcpu));
}

/* Returns whether there was a kick. */
static bool run_kicked(struct consumer *consumer)
{
	bool any = false;

	for (unsigned i = 0; i < WORDS; i++) {
		uint64_t bits = atomic_load_explicit(&consumer->kicked[i], memory_order_relaxed);

		if (!bits)
			continue;
		any = true;
		for (bits = atomic_exchange(&consumer->kicked[i], 0); bits; bits &= bits - 1) {
			const uint32_t n = i * 64 + (uint32_t)__builtin_ctzll(bits);

			run_vcpu(consumer, n * consumer->stress->num_consumers + consumer->index);
		}
	}
	return any;
}

/* All devices are through, and so are their kicks. Who is up now, and waits, was forgotten. */
static void finish(struct consumer *consumer)
{
	struct stress *stress = consumer->stress;

	while (run_kicked(consumer))
		;
	for (uint32_t vcpu = consumer->index; vcpu < stress->options->num_vcpus; vcpu += stress->num_consumers) {
		if (stress->ops->is_up(stress->policy, vcpu)) {
			consumer->unkicked++;
			run_vcpu(consumer, vcpu);
		}
		stress->ops->finish_wait(stress->policy, vcpu);
	}
}

static void *run_consumer(void *argument)
{
	struct consumer *consumer = argument;
	struct stress *stress = consumer->stress;
	unsigned spins = 0;

	pin(stress, stress->num_cpus - 1 - consumer->index % stress->num_cpus);
	for (uint32_t vcpu = consumer->index; vcpu < stress->options->num_vcpus; vcpu += stress->num_consumers)
		run_vcpu(consumer, vcpu);
	if (!wait_for_start(stress))
		return NULL;
	while (!atomic_load(&stress->stop)) {
		if (run_kicked(consumer)) {
			consumer->last_ns = now_ns();
			spins = 0;
		} else if (++spins < SPINS_BEFORE_SLEEP) {
			sched_yield();
		} else {
			sleep_until_kicked(consumer);
			spins = 0;
		}
	}
	const uint64_t before = consumer->acknowledged;

	finish(consumer);
	if (consumer->acknowledged != before)
		consumer->last_ns = now_ns();
	return NULL;
}

/* ---- Devices ---- */

/* False: it never came. */
static bool wait_for_acknowledge(const struct event *event, uint64_t signalled)
{
	const uint64_t start = now_ns();

	for (unsigned spins = 0; atomic_load_explicit(&event->seen, memory_order_acquire) < signalled; spins++) {
		if (spins % SPINS_BEFORE_YIELD != SPINS_BEFORE_YIELD - 1)
			continue;
		if (now_ns() - start > LOCKSTEP_TIMEOUT)
			return false;
		sched_yield();
	}
	return true;
}

static bool signal_event(struct device *device, uint32_t eventid)
{
	struct stress *stress = device->stress;
	struct event *event = &stress->events[device->devid * stress->options->num_events + eventid];
	const uint64_t signalled = atomic_load_explicit(&event->signalled, memory_order_relaxed) + 1;

	atomic_store_explicit(&event->signalled, signalled, memory_order_relaxed);
	device->injected++;
	if (stress->ops->inject(stress->policy, device->devid, eventid) != 1)
		device->refused++;
	return !stress->options->lockstep || wait_for_acknowledge(event, signalled);
}

static void run_iterations(struct device *device)
{
	const struct stress_options *options = device->stress->options;

	for (uint64_t i = 0; i < options->iterations; i++) {
		for (uint32_t eventid = 0; eventid < options->num_events; eventid++) {
			if (!signal_event(device, eventid))
				return;
		}
		atomic_store_explicit(&device->iterations_done, i + 1, memory_order_relaxed);
	}
}

static void *run_device(void *argument)
{
	struct device *device = argument;

	pin(device->stress, device->devid);
	if (!wait_for_start(device->stress))
		return NULL;
	device->start_ns = now_ns();
	run_iterations(device);
	device->end_ns = now_ns();
	return NULL;
}

/* ---- The run ---- */

static int init(struct stress *stress, const struct stress_options *options)
{
	const struct policy_config config = {
		.num_vcpus = options->num_vcpus, .cache_entries = options->cache_entries, .kick = kick, .opaque = stress
	};
	const long cpus = sysconf(_SC_NPROCESSORS_ONLN);

	stress->num_cpus = cpus > 0 ? (uint32_t)cpus : 1;
	stress->num_consumers = options->num_consumers ? options->num_consumers : stress->num_cpus;
	if (stress->num_consumers > options->num_vcpus)
		stress->num_consumers = options->num_vcpus;
	stress->num_lpis = options->num_devices * options->num_events;
	stress->events = aligned_alloc(CACHE_LINE, stress->num_lpis * sizeof(struct event));
	stress->devices = aligned_alloc(CACHE_LINE, options->num_devices * sizeof(struct device));
	stress->consumers = aligned_alloc(CACHE_LINE, stress->num_consumers * sizeof(struct consumer));
	if (!stress->events || !stress->devices || !stress->consumers)
		return -ENOMEM;
	memset(stress->events, 0, stress->num_lpis * sizeof(struct event));
	memset(stress->devices, 0, options->num_devices * sizeof(struct device));
	memset(stress->consumers, 0, stress->num_consumers * sizeof(struct consumer));
	stress->policy = options->ops->create(&config);
	if (!stress->policy)
		return -ENOMEM;
	return policy_map_devices(stress->policy, options->num_vcpus, options->num_devices, options->num_events,
				  stress->num_lpis);
}

static void destroy(struct stress *stress)
{
	if (stress->policy)
		stress->ops->destroy(stress->policy);
	free(stress->events);
	free(stress->devices);
	free(stress->consumers);
}

static int start_threads(struct stress *stress)
{
	int error = 0;

	for (uint32_t i = 0; i < stress->num_consumers && !error; i++) {
		stress->consumers[i].stress = stress;
		stress->consumers[i].index = i;
		error = pthread_create(&stress->consumers[i].thread, NULL, run_consumer, &stress->consumers[i]);
		stress->num_consumers_started += !error;
	}
	for (uint32_t i = 0; i < stress->options->num_devices && !error; i++) {
		stress->devices[i].stress = stress;
		stress->devices[i].devid = i;
		error = pthread_create(&stress->devices[i].thread, NULL, run_device, &stress->devices[i]);
		stress->num_devices_started += !error;
	}
	if (error) {
		atomic_store(&stress->abandon, true);
		return -error;
	}
	while (atomic_load(&stress->num_ready) < stress->num_consumers + stress->options->num_devices)
		sched_yield();
	atomic_store(&stress->go, true);
	return 0;
}

/* How far all devices are, for a person who waits. Returns when they are through. */
static void show_progress(struct stress *stress)
{
	const uint64_t total = stress->options->num_devices * stress->options->iterations;
	const uint64_t start = now_ns();
	uint64_t done = 0, last_done = 0, last_moved = start;
	bool shown = false;

	while (done < total && now_ns() - last_moved < 2 * LOCKSTEP_TIMEOUT) {
		usleep(PROGRESS_STEP_US / 10);
		done = 0;
		for (uint32_t i = 0; i < stress->options->num_devices; i++)
			done += atomic_load_explicit(&stress->devices[i].iterations_done, memory_order_relaxed);
		if (done != last_done)
			last_moved = now_ns();
		last_done = done;
		if (now_ns() - start < PROGRESS_FROM_NS)
			continue;
		shown = true;
		fprintf(stderr, "\r%-8s %3u %%", stress->ops->name, (unsigned)(done * 100 / total));
		fflush(stderr);
		usleep(PROGRESS_STEP_US);
	}
	if (shown)
		fprintf(stderr, "\r%16s\r", "");
}

static void stop_threads(struct stress *stress)
{
	for (uint32_t i = 0; i < stress->num_devices_started; i++)
		pthread_join(stress->devices[i].thread, NULL);
	atomic_store(&stress->stop, true);
	for (uint32_t i = 0; i < stress->num_consumers_started; i++) {
		wake(&stress->consumers[i]);
		pthread_join(stress->consumers[i].thread, NULL);
	}
}

static double per_second(uint64_t num, uint64_t start_ns, uint64_t end_ns)
{
	return end_ns > start_ns ? (double)num * 1e9 / (double)(end_ns - start_ns) : 0;
}

static void sum_up(struct stress *stress, struct stress_result *result)
{
	uint64_t start = UINT64_MAX, end = 0, last = 0;
	int64_t merged = 0;

	for (uint32_t i = 0; i < stress->options->num_devices; i++) {
		const struct device *device = &stress->devices[i];

		start = device->start_ns < start ? device->start_ns : start;
		end = device->end_ns > end ? device->end_ns : end;
		result->injected += device->injected;
		result->refused += device->refused;
	}
	for (uint32_t i = 0; i < stress->num_consumers; i++) {
		const struct consumer *consumer = &stress->consumers[i];

		last = consumer->last_ns > last ? consumer->last_ns : last;
		result->acknowledged += consumer->acknowledged;
		result->unexpected += consumer->unexpected;
		result->unkicked += consumer->unkicked;
		result->kicks += atomic_load(&consumer->kicks);
		merged += consumer->merged;
	}
	for (uint32_t i = 0; i < stress->num_lpis; i++) {
		const struct event *event = &stress->events[i];

		result->lost += atomic_load(&event->signalled) - atomic_load(&event->seen);
		/* No more acknowledges than signals. */
		if (event->acknowledged > atomic_load(&event->signalled))
			result->unexpected += event->acknowledged - atomic_load(&event->signalled);
	}
	result->merged = (uint64_t)merged;
	result->rate = per_second(result->injected, start, end);
	result->acknowledged_rate = per_second(result->acknowledged, start, last);
	stress->ops->get_stats(stress->policy, &result->stats);
}

int stress_run(const struct stress_options *options, struct stress_result *result)
{
	struct stress stress = { .options = options, .ops = options->ops };
	int error;

	*result = (struct stress_result){ 0 };
	error = init(&stress, options);
	if (!error)
		error = start_threads(&stress);
	if (!error && options->progress && isatty(STDERR_FILENO))
		show_progress(&stress);
	stop_threads(&stress);
	if (!error)
		sum_up(&stress, result);
	destroy(&stress);
	return error;
}

bool stress_is_right(const struct stress_result *result)
{
	return !result->lost && !result->refused && !result->unexpected && !result->unkicked &&
	       result->injected == result->acknowledged + result->merged;
}
