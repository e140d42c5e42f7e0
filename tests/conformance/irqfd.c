/* SPDX-License-Identifier: MIT */
/*
 * Irqfds: the three doors, both paths, level-triggered interrupts with resampling,
 * what assign and deassign refuse and promise, and failures half-way.
 *
 * Allocations, threads, eventfds and epoll are wrapped, so that any can fail.
 */
#define _GNU_SOURCE /* O_TMPFILE */

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>
#include <vgic/irqfd.h>
#include <vgic/state.h>

#include "its_guest.h"

#define NUM_GSIS 32u
#define DOORBELL (ITS_BASE(0) + VGIC_ITS_DOORBELL)

/* ---- Calls that fail ---- */

static unsigned failing_call; /* 1 is the next one that can fail, 0 none */
static int num_live;          /* allocations, and descriptors */

static bool call_fails(void)
{
	return failing_call && --failing_call == 0;
}

void *__real_port_alloc_zeroed(size_t size, size_t align);
void *__wrap_port_alloc_zeroed(size_t size, size_t align);
void __real_port_free(void *memory);
void __wrap_port_free(void *memory);
int __real_eventfd(unsigned count, int flags);
int __wrap_eventfd(unsigned count, int flags);
int __real_epoll_create1(int flags);
int __wrap_epoll_create1(int flags);
int __real_epoll_ctl(int epollfd, int op, int fd, struct epoll_event *event);
int __wrap_epoll_ctl(int epollfd, int op, int fd, struct epoll_event *event);
int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*main)(void *), void *arg);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*main)(void *), void *arg);

void *__wrap_port_alloc_zeroed(size_t size, size_t align)
{
	void *memory = call_fails() ? NULL : __real_port_alloc_zeroed(size, align);

	num_live += memory != NULL;
	return memory;
}

void __wrap_port_free(void *memory)
{
	num_live -= memory != NULL;
	__real_port_free(memory);
}

static int fails_with(int err)
{
	errno = err;
	return -1;
}

int __wrap_eventfd(unsigned count, int flags)
{
	return call_fails() ? fails_with(EMFILE) : __real_eventfd(count, flags);
}

int __wrap_epoll_create1(int flags)
{
	return call_fails() ? fails_with(EMFILE) : __real_epoll_create1(flags);
}

int __wrap_epoll_ctl(int epollfd, int op, int fd, struct epoll_event *event)
{
	return op == EPOLL_CTL_ADD && call_fails() ? fails_with(ENOSPC) : __real_epoll_ctl(epollfd, op, fd, event);
}

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*main)(void *), void *arg)
{
	return call_fails() ? EAGAIN : __real_pthread_create(thread, attr, main, arg);
}

static unsigned num_open_fds(void)
{
	unsigned n = 0;

	for (int fd = 0; fd < 256; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

/* ---- A machine with irqfds ---- */

static struct vgic_routes *routes;
static struct vgic_irqfds *irqfds;
static struct vgic_irqfds_config config;

static void describe(enum vgic_irqfd_door door, enum vgic_irqfd_path path);

/* The VMM's loop: what it was told to watch. */
static int watched_fd;
static uint64_t watched_token;
static unsigned num_watched;
static int watch_result;

static int on_watch(void *opaque, int fd, uint64_t token)
{
	assert_ptr_equal(opaque, &config);
	if (watch_result)
		return watch_result;
	watched_fd = fd;
	watched_token = token;
	num_watched++;
	return 0;
}

static void on_unwatch(void *opaque, int fd, uint64_t token)
{
	assert_ptr_equal(opaque, &config);
	(void)fd;
	(void)token;
	num_watched--;
}

static void describe(enum vgic_irqfd_door door, enum vgic_irqfd_path path)
{
	vgic_irqfds_config_init(&config);
	config.max_irqfds = 16;
	config.door = door;
	config.path = path;
	config.ops.watch = on_watch;
	config.ops.unwatch = on_unwatch;
	config.opaque = &config;
	num_watched = 0;
	watch_result = 0;
}

static void set_route(uint32_t gsi, const struct vgic_route *route)
{
	assert_int_equal(vgic_route_set(routes, gsi, route), 0);
}

static void route_to_event(uint32_t gsi, uint32_t event)
{
	struct vgic_route route = { .type = VGIC_ROUTE_MSI };

	route.to.msi.address = DOORBELL;
	route.to.msi.data = event;
	route.to.msi.devid = 1;
	route.to.msi.msi_flags = VGIC_MSI_VALID_DEVID;
	set_route(gsi, &route);
}

static void route_to_spi(uint32_t gsi, uint32_t intid, uint32_t source)
{
	struct vgic_route route = { .type = VGIC_ROUTE_SPI };

	route.to.spi.intid = intid;
	route.to.spi.source = source;
	set_route(gsi, &route);
}

/* GSI n leads to LPI 8192 + n, for n below 8; 8 and 9 to SPI 40, sources 0 and 1; 10 to SPI 41. SPIs are level-sensitive. */
static struct machine *start(void)
{
	struct machine *m = its_boot(1, 1);

	map_collection(m, 0, 0);
	map_device(m, 1, 5);
	assert_int_equal(vgic_routes_create(m->vgic, NUM_GSIS, &routes), 0);
	for (uint32_t event = 0; event < 8; event++) {
		map_event(m, 1, event, 8192 + event, 0);
		route_to_event(event, event);
	}
	for (uint32_t intid = 40; intid < 42; intid++) {
		irq_set_up(m, 0, intid, 1, 0x80);
		irq_set_edge(m, 0, intid, false);
	}
	route_to_spi(8, 40, 0);
	route_to_spi(9, 40, 1);
	route_to_spi(10, 41, 0);
	assert_int_equal(vgic_irqfds_create(routes, &config, &irqfds), 0);
	return m;
}

static void stop(struct machine *m)
{
	vgic_irqfds_destroy(irqfds);
	vgic_routes_destroy(routes);
	machine_stop(m);
}

static struct machine *start_loop(void)
{
	describe(VGIC_IRQFD_LOOP, VGIC_IRQFD_DIRECT);
	return start();
}

static struct vgic_irqfds_stats stats(void)
{
	struct vgic_irqfds_stats s = { .size = sizeof(s) };

	assert_int_equal(vgic_irqfds_get_stats(irqfds, &s), 0);
	return s;
}

static int make_fd(void)
{
	const int fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);

	assert_true(fd >= 0);
	return fd;
}

static void signal_fd(int fd)
{
	assert_int_equal(eventfd_write(fd, 1), 0);
}

/* Signals of an eventfd since the last look. */
static uint64_t count_of(int fd)
{
	eventfd_t count = 0;

	return eventfd_read(fd, &count) ? 0 : count;
}

static void await(bool (*condition)(void))
{
	for (unsigned i = 0; !condition(); i++) {
		assert_true(i < 100000);
		usleep(100);
	}
}

static uint64_t expected_events;

static bool events_are_seen(void)
{
	const struct vgic_irqfds_stats s = stats();

	return s.direct + s.deferred + s.coalesced + s.dropped >= expected_events;
}

static void await_events(uint64_t num)
{
	expected_events = num;
	await(events_are_seen);
}

/* ---- Creation ---- */

static void creation_refuses_what_is_wrong(void **state)
{
	struct machine *m;
	struct vgic_irqfds *other = NULL;
	struct vgic_irqfds_config good, c;
	struct vgic_routes *more;

	(void)state;
	m = start_loop();
	vgic_irqfds_config_init(&good);
	assert_int_equal(vgic_irqfds_create(NULL, &good, &other), -EINVAL);
	assert_int_equal(vgic_irqfds_create(routes, NULL, &other), -EINVAL);
	assert_int_equal(vgic_irqfds_create(routes, &good, NULL), -EINVAL);
	assert_int_equal(vgic_irqfds_create(routes, &good, &other), -EBUSY);
	assert_int_equal(vgic_routes_create(m->vgic, 1, &more), 0);
	assert_int_equal(vgic_irqfds_create(more, &good, &other), -EBUSY);
	vgic_irqfds_destroy(irqfds);
	c = good, c.size++;
	assert_int_equal(vgic_irqfds_create(routes, &c, &other), -EINVAL);
	c = good, c.door = 2;
	assert_int_equal(vgic_irqfds_create(routes, &c, &other), -EINVAL);
	c = good, c.path = 2;
	assert_int_equal(vgic_irqfds_create(routes, &c, &other), -EINVAL);
	c = good, c.max_irqfds = 0;
	assert_int_equal(vgic_irqfds_create(routes, &c, &other), -EINVAL);
	c = good, c.max_irqfds = VGIC_MAX_IRQFDS + 1;
	assert_int_equal(vgic_irqfds_create(routes, &c, &other), -EINVAL);
	c = good, c.num_threads = 0;
	assert_int_equal(vgic_irqfds_create(routes, &c, &other), -EINVAL);
	c = good, c.num_threads = VGIC_MAX_IRQFD_THREADS + 1;
	assert_int_equal(vgic_irqfds_create(routes, &c, &other), -EINVAL);
	c = good, c.spin_ns = VGIC_MAX_IRQFD_SPIN_NS + 1;
	assert_int_equal(vgic_irqfds_create(routes, &c, &other), -EINVAL);
	c = good, c.door = VGIC_IRQFD_LOOP;
	assert_int_equal(vgic_irqfds_create(routes, &c, &other), -EINVAL);
	c.ops.watch = on_watch;
	assert_int_equal(vgic_irqfds_create(routes, &c, &other), -EINVAL);
	assert_null(other);
	vgic_irqfds_config_init(NULL);
	assert_int_equal(vgic_irqfds_create(more, &good, &irqfds), 0);
	vgic_irqfds_destroy(irqfds);
	vgic_irqfds_destroy(NULL);
	irqfds = NULL;
	vgic_routes_destroy(more);
	stop(m);
}

/* Whatever fails on the way, nothing is left: no memory, no descriptor, no thread that would use them. */
static void creation_survives_every_failure(void **state)
{
	struct machine *m;
	unsigned fds;
	int live, err = -1;
	unsigned n;

	(void)state;
	m = start_loop();
	vgic_irqfds_destroy(irqfds);
	irqfds = NULL;
	describe(VGIC_IRQFD_SERVICE, VGIC_IRQFD_DEFERRED);
	config.num_threads = 3;
	live = num_live;
	fds = num_open_fds();
	for (n = 1; err; n++) {
		failing_call = n;
		err = vgic_irqfds_create(routes, &config, &irqfds);
		if (err) {
			assert_true(err == -ENOMEM || err == -EMFILE || err == -EAGAIN || err == -ENOSPC);
			assert_null(irqfds);
			assert_int_equal(num_live, live);
			assert_int_equal(num_open_fds(), fds);
		}
	}
	failing_call = 0;
	assert_true(n > 15);
	vgic_irqfds_destroy(irqfds);
	irqfds = NULL;
	assert_int_equal(num_live, live);
	assert_int_equal(num_open_fds(), fds);
	stop(m);
}

/* ---- Doors and paths ---- */

static void the_vmms_loop_injects_itself(void **state)
{
	struct machine *m = start_loop();
	const int fd = make_fd();

	(void)state;
	assert_int_equal(vgic_irqfd_assign(irqfds, 3, fd, VGIC_NO_FD), 0);
	assert_int_equal(num_watched, 1);
	assert_int_equal(watched_fd, fd);
	assert_int_equal(vgic_irqfd_ready(irqfds, watched_token), 1);
	expect_only(m, 0, 8195);
	assert_int_equal(stats().direct, 1);
	assert_int_equal(stats().num_assigned, 1);
	/* What the guest does not get is dropped. */
	its_run(m, 0, cmd_event(ITS_CMD_DISCARD, 1, 3));
	assert_int_equal(vgic_irqfd_ready(irqfds, watched_token), 0);
	assert_int_equal(stats().dropped, 1);
	/* A token that is old, or none, is nothing. */
	assert_int_equal(vgic_irqfd_deassign(irqfds, 3, fd), 0);
	assert_int_equal(num_watched, 0);
	assert_int_equal(vgic_irqfd_ready(irqfds, watched_token), -ENOENT);
	assert_int_equal(vgic_irqfd_ready(irqfds, 0), -ENOENT);
	assert_int_equal(vgic_irqfd_ready(irqfds, UINT64_MAX), -ENOENT);
	assert_int_equal(vgic_irqfd_ready(irqfds, 1ull << 32 | 16), -ENOENT);
	assert_int_equal(vgic_irqfd_ready(irqfds, 1ull << 32 | 5), -ENOENT);
	assert_int_equal(vgic_irqfd_ready(irqfds, 2ull << 32), -ENOENT);
	assert_int_equal(stats().stale, 6);
	stop(m);
	close(fd);
}

static void the_service_sees_every_signal_without_reading(void **state)
{
	struct machine *m;
	const int fd = make_fd();
	eventfd_t count;

	(void)state;
	describe(VGIC_IRQFD_SERVICE, VGIC_IRQFD_DIRECT);
	m = start();
	/* One that was signalled before it is assigned is an event. */
	signal_fd(fd);
	assert_int_equal(vgic_irqfd_assign(irqfds, 2, fd, VGIC_NO_FD), 0);
	for (unsigned i = 1; i <= 50; i++) {
		await_events(i);
		expect_only(m, 0, 8194);
		signal_fd(fd);
	}
	await_events(51);
	assert_int_equal(stats().direct, 51);
	assert_int_equal(eventfd_read(fd, &count), 0);
	assert_int_equal(count, 51);
	stop(m);
	close(fd);
}

static bool service_has_looked_in_vain(void)
{
	return stats().empty_waits > 0;
}

static void a_spinning_service_is_no_different(void **state)
{
	struct machine *m;
	const int fd = make_fd();

	(void)state;
	describe(VGIC_IRQFD_SERVICE, VGIC_IRQFD_DIRECT);
	config.spin_ns = 100000;
	config.num_threads = 2;
	m = start();
	assert_int_equal(vgic_irqfd_assign(irqfds, 2, fd, VGIC_NO_FD), 0);
	for (unsigned i = 1; i <= 50; i++) {
		signal_fd(fd);
		await_events(i);
		expect_only(m, 0, 8194);
	}
	await(service_has_looked_in_vain);
	stop(m);
	close(fd);
}

/* Not one system call more than there are events, and fewer when they come together. */
static void the_service_makes_one_call_for_an_event_at_most(void **state)
{
	struct machine *m;
	int fds[8];
	struct vgic_irqfds_stats s;

	(void)state;
	describe(VGIC_IRQFD_SERVICE, VGIC_IRQFD_DIRECT);
	m = start();
	for (unsigned i = 0; i < 8; i++) {
		fds[i] = make_fd();
		assert_int_equal(vgic_irqfd_assign(irqfds, i, fds[i], VGIC_NO_FD), 0);
	}
	for (unsigned i = 0; i < 20000; i++)
		signal_fd(fds[i % 8]);
	await_events(1);
	for (unsigned i = 0; i < 8; i++)
		assert_int_equal(vgic_irqfd_deassign(irqfds, i, fds[i]), 0);
	s = stats();
	/* The call that waits now has brought nothing yet. */
	assert_true(s.waits <= s.direct + s.stale + 1);
	assert_int_equal(s.empty_waits, 0);
	assert_int_equal(s.dropped + s.deferred + s.coalesced, 0);
	stop(m);
	for (unsigned i = 0; i < 8; i++)
		close(fds[i]);
}

static void no_eventfd_is_needed(void **state)
{
	struct machine *m = start_loop();

	(void)state;
	assert_int_equal(vgic_irqfds_signal(irqfds, 5), 1);
	expect_only(m, 0, 8197);
	assert_int_equal(vgic_irqfds_signal(irqfds, NUM_GSIS - 1), -ENOENT);
	assert_int_equal(vgic_irqfds_signal(irqfds, NUM_GSIS), -EINVAL);
	assert_int_equal(stats().direct, 1);
	assert_int_equal(stats().dropped, 1);
	stop(m);
}

static void the_deferred_path_delivers_the_same(void **state)
{
	struct machine *m;
	const int fd = make_fd();

	(void)state;
	describe(VGIC_IRQFD_SERVICE, VGIC_IRQFD_DEFERRED);
	m = start();
	assert_int_equal(vgic_irqfd_assign(irqfds, 1, fd, VGIC_NO_FD), 0);
	signal_fd(fd);
	await_events(1);
	expect_only(m, 0, 8193);
	assert_int_equal(vgic_irqfds_signal(irqfds, 2), 1);
	await_events(2);
	expect_only(m, 0, 8194);
	assert_int_equal(stats().deferred, 2);
	assert_int_equal(stats().direct, 0);
	assert_int_equal(vgic_irqfds_signal(irqfds, NUM_GSIS - 1), 1);
	await_events(3);
	assert_int_equal(stats().dropped, 1);
	stop(m);
	close(fd);
}

/* ---- An injection function of the VMM's own ---- */

static _Atomic unsigned direct_calls, worker_calls;
static _Atomic bool worker_waits, worker_is_in;
static pthread_t injecting_thread;

static int on_inject(void *opaque, uint32_t gsi, enum vgic_irqfd_path path)
{
	assert_ptr_equal(opaque, &config);
	if (path == VGIC_IRQFD_DIRECT) {
		direct_calls++;
		return gsi == 1 ? -EWOULDBLOCK : vgic_signal_gsi(routes, gsi);
	}
	worker_calls++;
	injecting_thread = pthread_self();
	worker_is_in = true;
	while (worker_waits)
		sched_yield();
	return vgic_signal_gsi(routes, gsi);
}

static bool worker_has_begun(void)
{
	return worker_is_in;
}

static struct machine *start_injecting(void)
{
	describe(VGIC_IRQFD_LOOP, VGIC_IRQFD_DIRECT);
	config.ops.inject = on_inject;
	direct_calls = worker_calls = 0;
	worker_waits = worker_is_in = false;
	return start();
}

static void what_would_block_goes_to_the_worker(void **state)
{
	struct machine *m = start_injecting();

	(void)state;
	assert_int_equal(vgic_irqfds_signal(irqfds, 0), 1);
	expect_only(m, 0, 8192);
	assert_int_equal(worker_calls, 0);
	assert_int_equal(vgic_irqfds_signal(irqfds, 1), 1);
	await_events(2);
	expect_only(m, 0, 8193);
	assert_int_equal(direct_calls, 2);
	assert_int_equal(worker_calls, 1);
	assert_false(pthread_equal(injecting_thread, pthread_self()));
	assert_int_equal(stats().direct, 1);
	assert_int_equal(stats().deferred, 1);
	stop(m);
}

/* Events that come while one waits for the worker are merged with it; one that comes while it is injected is not. */
static void what_waits_for_the_worker_is_merged(void **state)
{
	struct machine *m = start_injecting();

	(void)state;
	worker_waits = true;
	assert_int_equal(vgic_irqfds_signal(irqfds, 1), 1);
	await(worker_has_begun);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(vgic_irqfds_signal(irqfds, 1), 1);
	worker_waits = false;
	await_events(4);
	assert_int_equal(worker_calls, 2);
	assert_int_equal(stats().deferred, 2);
	assert_int_equal(stats().coalesced, 2);
	stop(m);
}

static void *deassign_main(void *arg)
{
	assert_int_equal(vgic_irqfd_deassign(irqfds, 1, *(int *)arg), 0);
	worker_is_in = false;
	return NULL;
}

/* The worker is in the middle of it: deassign waits. */
static void deassign_waits_for_the_worker(void **state)
{
	struct machine *m = start_injecting();
	int fd = make_fd();
	pthread_t thread;

	(void)state;
	assert_int_equal(vgic_irqfd_assign(irqfds, 1, fd, VGIC_NO_FD), 0);
	worker_waits = true;
	assert_int_equal(vgic_irqfd_ready(irqfds, watched_token), 1);
	await(worker_has_begun);
	assert_int_equal(vgic_irqfd_ready(irqfds, watched_token), 1);
	assert_int_equal(pthread_create(&thread, NULL, deassign_main, &fd), 0);
	for (unsigned i = 0; i < 1000; i++)
		sched_yield();
	assert_true(worker_is_in);
	worker_waits = false;
	pthread_join(thread, NULL);
	/* Both events were delivered before it returned. */
	assert_int_equal(worker_calls, 2);
	assert_int_equal(stats().deferred, 2);
	stop(m);
	close(fd);
}

/* ---- Pauses ---- */

/* Nobody can be told to signal an eventfd again: its route keeps the event, and it comes when the pause is over, once. */
static void expect_event_after_pause(struct machine *m, int result)
{
	const int fd = make_fd();
	const uint64_t seen = stats().dropped;

	assert_int_equal(vgic_irqfd_assign(irqfds, 1, fd, VGIC_NO_FD), 0);
	assert_int_equal(vgic_pause(m->vgic), 0);
	assert_int_equal(vgic_pause(m->vgic), 0);
	assert_int_equal(vgic_irqfd_ready(irqfds, watched_token), result);
	await_events(seen + 1);
	assert_int_equal(vgic_irqfd_ready(irqfds, watched_token), result);
	await_events(seen + 2);
	assert_int_equal(vgic_gsi_is_pending(routes, 1), 1);
	assert_int_equal(vgic_resume(m->vgic), 0);
	assert_int_equal(icc_read(m, 0, VGIC_ICC_IAR1_EL1), 1023);
	assert_int_equal(vgic_resume(m->vgic), 0);
	expect_only(m, 0, 8193);
	assert_int_equal(vgic_gsi_is_pending(routes, 1), 0);
	assert_int_equal(stats().dropped, seen + 2);
	assert_int_equal(vgic_irqfd_deassign(irqfds, 1, fd), 0);
	close(fd);
}

static void an_event_in_a_pause_comes_after_it(void **state)
{
	struct machine *m = start_loop();

	(void)state;
	expect_event_after_pause(m, 0);
	stop(m);
	describe(VGIC_IRQFD_LOOP, VGIC_IRQFD_DEFERRED);
	m = start();
	expect_event_after_pause(m, 1);
	stop(m);
}

/* It is the GSI's by then, as behind a mask; also without any irqfds. A route to nowhere drops it. */
static void what_a_pause_keeps_outlives_its_eventfd(void **state)
{
	struct machine *m = start_loop();
	const int fd = make_fd();

	(void)state;
	assert_int_equal(vgic_irqfd_assign(irqfds, 1, fd, VGIC_NO_FD), 0);
	assert_int_equal(vgic_pause(m->vgic), 0);
	assert_int_equal(vgic_irqfd_ready(irqfds, watched_token), 0);
	assert_int_equal(vgic_irqfd_deassign(irqfds, 1, fd), 0);
	assert_int_equal(vgic_irqfd_ready(irqfds, watched_token), -ENOENT);
	vgic_irqfds_destroy(irqfds);
	irqfds = NULL;
	assert_int_equal(vgic_resume(m->vgic), 0);
	expect_only(m, 0, 8193);
	stop(m);
	close(fd);
}

/* An event that was to raise a line whose GSI leads to an MSI meanwhile is one like any other, in a pause too. */
static void a_line_that_has_become_an_msi_keeps_its_event(void **state)
{
	struct machine *m = start_loop();
	const int fd = make_fd(), resample = make_fd();

	(void)state;
	assert_int_equal(vgic_irqfd_assign(irqfds, 10, fd, resample), 0);
	route_to_event(10, 4);
	assert_int_equal(vgic_pause(m->vgic), 0);
	assert_int_equal(vgic_irqfd_ready(irqfds, watched_token), 0);
	assert_int_equal(icc_read(m, 0, VGIC_ICC_IAR1_EL1), 1023);
	assert_int_equal(vgic_resume(m->vgic), 0);
	expect_only(m, 0, 8196);
	stop(m);
	close(fd);
	close(resample);
}

/* ---- Assign and deassign ---- */

static void assign_refuses_what_is_wrong(void **state)
{
	struct machine *m = start_loop();
	const int fd = make_fd(), other = make_fd(), resample = make_fd();
	const int blocking = eventfd(0, EFD_CLOEXEC);
	unsigned fds;

	(void)state;
	fds = num_open_fds();
	assert_int_equal(vgic_irqfd_assign(irqfds, NUM_GSIS, fd, VGIC_NO_FD), -EINVAL);
	assert_int_equal(vgic_irqfd_assign(irqfds, 8, 1 << 20, VGIC_NO_FD), -EBADF);
	assert_int_equal(vgic_irqfd_assign(irqfds, 8, -1, VGIC_NO_FD), -EBADF);
	assert_int_equal(vgic_irqfd_assign(irqfds, 8, fd, 1 << 20), -EBADF);
	assert_int_equal(vgic_irqfd_assign(irqfds, 8, fd, blocking), -EINVAL);
	watch_result = -EMFILE;
	assert_int_equal(vgic_irqfd_assign(irqfds, 8, fd, resample), -EMFILE);
	watch_result = 0;
	assert_int_equal(num_open_fds(), fds);
	assert_int_equal(vgic_irqfd_assign(irqfds, 8, fd, resample), 0);
	assert_int_equal(vgic_irqfd_assign(irqfds, 8, fd, VGIC_NO_FD), -EBUSY);
	assert_int_equal(vgic_irqfd_assign(irqfds, 9, fd, VGIC_NO_FD), -EBUSY);
	assert_int_equal(vgic_irqfd_assign(irqfds, 8, other, resample), -EBUSY);
	assert_int_equal(num_open_fds(), fds + 1);
	assert_int_equal(vgic_irqfd_deassign(irqfds, NUM_GSIS, fd), -EINVAL);
	assert_int_equal(vgic_irqfd_deassign(irqfds, 9, fd), -ENOENT);
	assert_int_equal(vgic_irqfd_deassign(irqfds, 8, other), -ENOENT);
	assert_int_equal(stats().num_assigned, 1);
	/* Without a resamplefd a GSI may have several. */
	assert_int_equal(vgic_irqfd_assign(irqfds, 8, other, VGIC_NO_FD), 0);
	assert_int_equal(vgic_irqfd_deassign(irqfds, 8, fd), 0);
	assert_int_equal(vgic_irqfd_deassign(irqfds, 8, fd), -ENOENT);
	assert_int_equal(num_open_fds(), fds);
	assert_int_equal(vgic_irqfds_get_stats(irqfds, NULL), -EINVAL);
	assert_int_equal(vgic_irqfds_get_stats(irqfds, &(struct vgic_irqfds_stats){ .size = 1 }), -EINVAL);
	stop(m);
	close(fd);
	close(other);
	close(resample);
	close(blocking);
}

/* An EOI writes to it: whatever is not an eventfd must not be written to, not even to find out. */
static void a_resamplefd_has_to_be_an_eventfd(void **state)
{
	struct machine *m = start_loop();
	const int fd = make_fd(), epollfd = epoll_create1(EPOLL_CLOEXEC), timer = timerfd_create(CLOCK_MONOTONIC, 0);
	const int file = open("/tmp", O_RDWR | O_TMPFILE | O_NONBLOCK | O_CLOEXEC, 0600);
	const int zero = open("/dev/zero", O_RDWR | O_NONBLOCK | O_CLOEXEC);
	int ends[2], sockets[2], others[8];
	unsigned n = 0, fds;
	char byte;

	(void)state;
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_DGRAM, 0, sockets), 0);
	others[n++] = ends[0];
	others[n++] = ends[1];
	others[n++] = sockets[0];
	others[n++] = sockets[1];
	others[n++] = epollfd;
	others[n++] = timer;
	others[n++] = file;
	others[n++] = zero;
	fds = num_open_fds();
	for (unsigned i = 0; i < n; i++) {
		assert_true(others[i] >= 0);
		assert_int_equal(fcntl(others[i], F_SETFL, O_NONBLOCK), 0);
		assert_int_equal(vgic_irqfd_assign(irqfds, 8, fd, others[i]), -EINVAL);
	}
	assert_int_equal(num_open_fds(), fds);
	assert_int_equal(stats().num_assigned, 0);
	for (unsigned i = 0; i < n; i++) {
		if (others[i] != zero)
			assert_true(read(others[i], &byte, 1) <= 0);
	}
	for (unsigned i = 0; i < n; i++)
		close(others[i]);
	/* One that has been signalled keeps its count. */
	others[0] = make_fd();
	assert_int_equal(eventfd_write(others[0], 5), 0);
	assert_int_equal(vgic_irqfd_assign(irqfds, 8, fd, others[0]), 0);
	assert_int_equal(count_of(others[0]), 5);
	stop(m);
	close(others[0]);
	close(fd);
}

static void slots_are_used_again_and_never_more_than_there_are(void **state)
{
	struct machine *m = start_loop();
	const int extra = make_fd();
	uint64_t tokens[16];
	int fds[16];

	(void)state;
	for (unsigned round = 0; round < 3; round++) {
		for (unsigned i = 0; i < 16; i++) {
			if (round == 0)
				fds[i] = make_fd();
			else
				assert_int_equal(vgic_irqfd_ready(irqfds, tokens[i]), -ENOENT);
			assert_int_equal(vgic_irqfd_assign(irqfds, i % 8, fds[i], VGIC_NO_FD), 0);
			tokens[i] = watched_token;
		}
		assert_int_equal(vgic_irqfd_assign(irqfds, 0, extra, VGIC_NO_FD), -ENOSPC);
		for (unsigned i = 0; i < 16; i++)
			assert_int_equal(vgic_irqfd_ready(irqfds, tokens[i]), 1);
		for (unsigned i = 0; i < 16; i++)
			assert_int_equal(vgic_irqfd_deassign(irqfds, i % 8, fds[i]), 0);
	}
	assert_int_equal(stats().direct, 48);
	stop(m);
	for (unsigned i = 0; i < 16; i++)
		close(fds[i]);
	close(extra);
}

/* The service refuses: nothing is assigned, and the same works the next time. */
static void assign_survives_a_failing_epoll(void **state)
{
	struct machine *m;
	const int fd = make_fd(), resample = make_fd();
	unsigned fds;

	(void)state;
	describe(VGIC_IRQFD_SERVICE, VGIC_IRQFD_DIRECT);
	m = start();
	fds = num_open_fds();
	failing_call = 1;
	assert_int_equal(vgic_irqfd_assign(irqfds, 8, fd, resample), -ENOSPC);
	assert_int_equal(num_open_fds(), fds);
	assert_int_equal(stats().num_assigned, 0);
	assert_int_equal(vgic_irqfd_assign(irqfds, 8, fd, resample), 0);
	stop(m);
	close(fd);
	close(resample);
}

/* Whoever has a duplicate goes on signalling: nothing of it arrives after deassign, and the service does not wake up. */
static void a_duplicate_of_a_closed_eventfd_is_not_watched_for_ever(void **state)
{
	struct machine *m;
	const int fd = make_fd(), copy = dup(fd), other = make_fd();
	struct vgic_irqfds_stats s;
	unsigned fds;

	(void)state;
	describe(VGIC_IRQFD_SERVICE, VGIC_IRQFD_DIRECT);
	m = start();
	fds = num_open_fds();
	assert_int_equal(vgic_irqfd_assign(irqfds, 1, fd, VGIC_NO_FD), 0);
	assert_int_equal(num_open_fds(), fds + 1);
	close(fd);
	signal_fd(copy);
	await_events(1);
	expect_only(m, 0, 8193);
	assert_int_equal(vgic_irqfd_deassign(irqfds, 1, fd), 0);
	assert_int_equal(num_open_fds(), fds - 1);
	for (unsigned i = 0; i < 10; i++)
		signal_fd(copy);
	/* The same thread has seen this one behind those. */
	assert_int_equal(vgic_irqfd_assign(irqfds, 2, other, VGIC_NO_FD), 0);
	signal_fd(other);
	await_events(2);
	expect_only(m, 0, 8194);
	s = stats();
	assert_int_equal(s.stale, 0);
	assert_int_equal(s.direct, 2);
	stop(m);
	close(copy);
	close(other);
}

static void a_closed_eventfd_does_no_harm(void **state)
{
	struct machine *m;
	int fd = make_fd();

	(void)state;
	describe(VGIC_IRQFD_SERVICE, VGIC_IRQFD_DIRECT);
	m = start();
	assert_int_equal(vgic_irqfd_assign(irqfds, 1, fd, VGIC_NO_FD), 0);
	close(fd);
	assert_int_equal(vgic_irqfd_deassign(irqfds, 1, fd), 0);
	fd = make_fd();
	assert_int_equal(vgic_irqfd_assign(irqfds, 2, fd, VGIC_NO_FD), 0);
	close(fd);
	stop(m);
}

/* ---- Level-triggered, with resampling ---- */

/* Through the VMM's loop, so that everything happens in this thread. */
static void each_eoi_lowers_the_line_and_asks_once(void **state)
{
	struct machine *m = start_loop();
	const int fd = make_fd(), resample = make_fd();

	(void)state;
	assert_int_equal(vgic_irqfd_assign(irqfds, 8, fd, resample), 0);
	for (unsigned i = 1; i <= 3; i++) {
		assert_int_equal(vgic_irqfd_ready(irqfds, watched_token), 1);
		/* Again while the line is high: one interrupt. */
		assert_int_equal(vgic_irqfd_ready(irqfds, watched_token), 1);
		assert_int_equal(stats().coalesced, i);
		assert_int_equal(ack1(m, 0), 40);
		assert_int_equal(count_of(resample), 0);
		eoi1(m, 0, 40);
		assert_int_equal(count_of(resample), 1);
		assert_int_equal(m->num_deactivated, i);
		assert_false(irq_is_pending(m, 0, 40));
		assert_int_equal(ack1(m, 0), NO_INTERRUPT);
	}
	assert_int_equal(stats().direct, 3);
	assert_int_equal(stats().resamples, 3);
	stop(m);
	close(fd);
	close(resample);
}

/* The device still needs service: the next interrupt comes, once. */
static void a_device_that_raises_again_is_not_lost(void **state)
{
	struct machine *m = start_loop();
	const int fd = make_fd(), resample = make_fd();

	(void)state;
	assert_int_equal(vgic_irqfd_assign(irqfds, 8, fd, resample), 0);
	assert_int_equal(vgic_irqfd_ready(irqfds, watched_token), 1);
	assert_int_equal(ack1(m, 0), 40);
	/* Raised between acknowledge and EOI: the EOI asks about it. */
	assert_int_equal(vgic_irqfd_ready(irqfds, watched_token), 1);
	eoi1(m, 0, 40);
	assert_int_equal(count_of(resample), 1);
	assert_int_equal(vgic_irqfd_ready(irqfds, watched_token), 1);
	assert_int_equal(ack1(m, 0), 40);
	eoi1(m, 0, 40);
	assert_int_equal(count_of(resample), 1);
	assert_int_equal(ack1(m, 0), NO_INTERRUPT);
	stop(m);
	close(fd);
	close(resample);
}

static void devices_that_share_a_line_are_asked_for_themselves(void **state)
{
	struct machine *m = start_loop();
	const int fd[2] = { make_fd(), make_fd() }, resample[2] = { make_fd(), make_fd() };
	uint64_t token[2];

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(vgic_irqfd_assign(irqfds, 8 + i, fd[i], resample[i]), 0);
		token[i] = watched_token;
	}
	assert_int_equal(vgic_irqfd_ready(irqfds, token[0]), 1);
	assert_int_equal(ack1(m, 0), 40);
	eoi1(m, 0, 40);
	assert_int_equal(count_of(resample[0]), 1);
	assert_int_equal(count_of(resample[1]), 0);
	assert_int_equal(vgic_irqfd_ready(irqfds, token[0]), 1);
	assert_int_equal(vgic_irqfd_ready(irqfds, token[1]), 1);
	assert_int_equal(ack1(m, 0), 40);
	eoi1(m, 0, 40);
	assert_int_equal(count_of(resample[0]), 1);
	assert_int_equal(count_of(resample[1]), 1);
	/* A source that is not resampled keeps the line up. */
	assert_int_equal(vgic_set_spi(m->vgic, 40, 5, true), 0);
	assert_int_equal(vgic_irqfd_ready(irqfds, token[1]), 1);
	assert_int_equal(ack1(m, 0), 40);
	eoi1(m, 0, 40);
	assert_int_equal(count_of(resample[1]), 1);
	assert_true(irq_is_pending(m, 0, 40));
	assert_int_equal(ack1(m, 0), 40);
	assert_int_equal(vgic_set_spi(m->vgic, 40, 5, false), 0);
	eoi1(m, 0, 40);
	assert_int_equal(count_of(resample[0]) + count_of(resample[1]), 0);
	stop(m);
	for (unsigned i = 0; i < 2; i++) {
		close(fd[i]);
		close(resample[i]);
	}
}

static void dir_and_icactiver_resample_too(void **state)
{
	struct machine *m = start_loop();
	const int fd = make_fd(), resample = make_fd();

	(void)state;
	assert_int_equal(vgic_irqfd_assign(irqfds, 8, fd, resample), 0);
	icc_write(m, 0, VGIC_ICC_CTLR_EL1, ICC_CTLR_EOIMODE);
	assert_int_equal(vgic_irqfd_ready(irqfds, watched_token), 1);
	assert_int_equal(ack1(m, 0), 40);
	eoi1(m, 0, 40);
	assert_int_equal(count_of(resample), 0);
	icc_write(m, 0, VGIC_ICC_DIR_EL1, 40);
	assert_int_equal(count_of(resample), 1);
	assert_int_equal(vgic_irqfd_ready(irqfds, watched_token), 1);
	assert_int_equal(ack1(m, 0), 40);
	eoi1(m, 0, 40);
	irq_write_bit(m, 0, GICD_ICACTIVER, 40);
	assert_int_equal(count_of(resample), 1);
	/* An end of what is not active lowers nothing. */
	assert_int_equal(vgic_irqfd_ready(irqfds, watched_token), 1);
	icc_write(m, 0, VGIC_ICC_DIR_EL1, 40);
	assert_int_equal(count_of(resample), 0);
	assert_true(irq_is_pending(m, 0, 40));
	stop(m);
	close(fd);
	close(resample);
}

static void deassign_lowers_the_line(void **state)
{
	struct machine *m = start_loop();
	const int fd = make_fd(), resample = make_fd();

	(void)state;
	assert_int_equal(vgic_irqfd_assign(irqfds, 8, fd, resample), 0);
	assert_int_equal(vgic_irqfd_ready(irqfds, watched_token), 1);
	assert_true(irq_is_pending(m, 0, 40));
	assert_int_equal(vgic_irqfd_deassign(irqfds, 8, fd), 0);
	assert_false(irq_is_pending(m, 0, 40));
	/* The line is the VMM's again: an EOI does not touch it. */
	assert_int_equal(vgic_set_gsi(routes, 8, true), 1);
	assert_int_equal(ack1(m, 0), 40);
	eoi1(m, 0, 40);
	assert_true(irq_is_pending(m, 0, 40));
	assert_int_equal(count_of(resample), 0);
	stop(m);
	close(fd);
	close(resample);
}

/* The resamplefd is the library's own duplicate: closing the VMM's does not send a signal to another file. */
static void a_resamplefd_may_be_closed(void **state)
{
	struct machine *m = start_loop();
	const int fd = make_fd(), resample = make_fd(), copy = dup(resample);
	int taken;

	(void)state;
	assert_int_equal(vgic_irqfd_assign(irqfds, 8, fd, resample), 0);
	close(resample);
	taken = make_fd();
	assert_int_equal(taken, resample);
	assert_int_equal(vgic_irqfd_ready(irqfds, watched_token), 1);
	assert_int_equal(ack1(m, 0), 40);
	eoi1(m, 0, 40);
	assert_int_equal(count_of(taken), 0);
	assert_int_equal(count_of(copy), 1);
	stop(m);
	close(fd);
	close(copy);
	close(taken);
}

static void a_route_that_moves_takes_the_resampling_along(void **state)
{
	struct machine *m = start_loop();
	const int fd = make_fd(), resample = make_fd();

	(void)state;
	assert_int_equal(vgic_irqfd_assign(irqfds, 10, fd, resample), 0);
	assert_int_equal(vgic_irqfd_ready(irqfds, watched_token), 1);
	route_to_spi(10, 40, 7);
	/* The level was taken off, and the device is asked for it. */
	assert_false(irq_is_pending(m, 0, 41));
	assert_int_equal(count_of(resample), 1);
	assert_int_equal(vgic_irqfd_ready(irqfds, watched_token), 1);
	assert_int_equal(ack1(m, 0), 40);
	eoi1(m, 0, 40);
	assert_int_equal(count_of(resample), 1);
	/* Without a pin an event is one like any other. */
	route_to_event(10, 4);
	assert_int_equal(count_of(resample), 1);
	assert_int_equal(vgic_irqfd_ready(irqfds, watched_token), 1);
	expect_only(m, 0, 8196);
	assert_int_equal(count_of(resample), 0);
	stop(m);
	close(fd);
	close(resample);
}

static void a_full_resamplefd_does_not_block_an_eoi(void **state)
{
	struct machine *m = start_loop();
	const int fd = make_fd(), resample = make_fd();

	(void)state;
	assert_int_equal(vgic_irqfd_assign(irqfds, 8, fd, resample), 0);
	assert_int_equal(eventfd_write(resample, UINT64_MAX - 1), 0);
	assert_int_equal(vgic_irqfd_ready(irqfds, watched_token), 1);
	assert_int_equal(ack1(m, 0), 40);
	eoi1(m, 0, 40);
	assert_int_equal(stats().resamples, 0);
	stop(m);
	close(fd);
	close(resample);
}

static void deferred_lines_resample_as_well(void **state)
{
	struct machine *m;
	const int fd = make_fd(), resample = make_fd();

	(void)state;
	describe(VGIC_IRQFD_SERVICE, VGIC_IRQFD_DEFERRED);
	m = start();
	assert_int_equal(vgic_irqfd_assign(irqfds, 8, fd, resample), 0);
	for (unsigned i = 1; i <= 3; i++) {
		signal_fd(fd);
		await_events(i);
		assert_int_equal(ack1(m, 0), 40);
		eoi1(m, 0, 40);
		assert_int_equal(count_of(resample), 1);
		assert_int_equal(ack1(m, 0), NO_INTERRUPT);
	}
	assert_int_equal(stats().deferred, 3);
	stop(m);
	close(fd);
	close(resample);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(creation_refuses_what_is_wrong),
		cmocka_unit_test(creation_survives_every_failure),
		cmocka_unit_test(the_vmms_loop_injects_itself),
		cmocka_unit_test(the_service_sees_every_signal_without_reading),
		cmocka_unit_test(a_spinning_service_is_no_different),
		cmocka_unit_test(the_service_makes_one_call_for_an_event_at_most),
		cmocka_unit_test(no_eventfd_is_needed),
		cmocka_unit_test(the_deferred_path_delivers_the_same),
		cmocka_unit_test(what_would_block_goes_to_the_worker),
		cmocka_unit_test(what_waits_for_the_worker_is_merged),
		cmocka_unit_test(deassign_waits_for_the_worker),
		cmocka_unit_test(an_event_in_a_pause_comes_after_it),
		cmocka_unit_test(what_a_pause_keeps_outlives_its_eventfd),
		cmocka_unit_test(a_line_that_has_become_an_msi_keeps_its_event),
		cmocka_unit_test(assign_refuses_what_is_wrong),
		cmocka_unit_test(a_resamplefd_has_to_be_an_eventfd),
		cmocka_unit_test(slots_are_used_again_and_never_more_than_there_are),
		cmocka_unit_test(assign_survives_a_failing_epoll),
		cmocka_unit_test(a_duplicate_of_a_closed_eventfd_is_not_watched_for_ever),
		cmocka_unit_test(a_closed_eventfd_does_no_harm),
		cmocka_unit_test(each_eoi_lowers_the_line_and_asks_once),
		cmocka_unit_test(a_device_that_raises_again_is_not_lost),
		cmocka_unit_test(devices_that_share_a_line_are_asked_for_themselves),
		cmocka_unit_test(dir_and_icactiver_resample_too),
		cmocka_unit_test(deassign_lowers_the_line),
		cmocka_unit_test(a_resamplefd_may_be_closed),
		cmocka_unit_test(a_route_that_moves_takes_the_resampling_along),
		cmocka_unit_test(a_full_resamplefd_does_not_block_an_eoi),
		cmocka_unit_test(deferred_lines_resample_as_well),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("irqfd", tests, NULL, NULL);
}
