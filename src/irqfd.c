/* SPDX-License-Identifier: MIT */
/*
 * irqfd.c - eventfds whose signals are events on GSIs. See irqfd.h for the slots,
 * their tokens and R18.
 */
#include "irqfd.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "probes.h"

#define DEFAULT_MAX_IRQFDS 4096u

/* ---- Slots -------------------------------------------------------------------------- */

static uint64_t token_of(const struct vgic_irqfds *irqfds, const struct irqfd_slot *slot)
{
	const uint64_t state = load_relaxed(&slot->state);

	return (state >> IRQFD_GENERATION_SHIFT) << IRQFD_GENERATION_SHIFT | (uint64_t)(slot - irqfds->slots);
}

static void leave(struct irqfd_slot *slot)
{
	atomic_fetch_sub_explicit(&slot->state, 1, memory_order_release);
}

/*
 * R18: count, and look at the generation, in one step. Returns NULL if the irqfd of
 * that token is gone. The look before is for those that come late again and again:
 * whoever waits for the count to be 0 shall not have to wait for them.
 */
static struct irqfd_slot *enter(struct vgic_irqfds *irqfds, uint64_t token)
{
	const uint32_t index = (uint32_t)token, generation = (uint32_t)(token >> IRQFD_GENERATION_SHIFT);
	struct irqfd_slot *slot;
	uint64_t state;

	if (index >= irqfds->config.max_irqfds || !(generation & 1))
		return NULL;
	slot = &irqfds->slots[index];
	if (load_relaxed(&slot->state) >> IRQFD_GENERATION_SHIFT != generation)
		return NULL;
	state = atomic_fetch_add_explicit(&slot->state, 1, memory_order_acq_rel);
	if (state >> IRQFD_GENERATION_SHIFT == generation)
		return slot;
	leave(slot);
	return NULL;
}

static void next_generation(struct irqfd_slot *slot)
{
	atomic_fetch_add_explicit(&slot->state, UINT64_C(1) << IRQFD_GENERATION_SHIFT, memory_order_acq_rel);
}

static void wait_for_users(struct irqfd_slot *slot)
{
	for (unsigned turn = 0; atomic_fetch_add_explicit(&slot->state, 0, memory_order_acq_rel) & IRQFD_USERS_MASK;
	     turn++)
		port_pause(turn);
}

/* ---- Events: any thread, no lock ---------------------------------------------------------- */

/* What became of an injection. The guest did not get it if the result is not 1. */
static int count_result(struct irqfd_counters *c, int result)
{
	irqfd_count(result == 1 ? &c->direct : &c->dropped);
	return result;
}

static int defer_edge(struct vgic_irqfds *irqfds, uint32_t gsi)
{
	probe_irqfd(irqfds->routes, gsi, 1, PROBE_DEFERRED);
	irqfd_defer(irqfds, gsi, IRQFD_WANT_EDGE);
	return 1;
}

int irqfd_inject(struct vgic_irqfds *irqfds, uint32_t gsi, enum vgic_irqfd_path path)
{
	if (irqfds->config.ops.inject)
		return irqfds->config.ops.inject(irqfds->config.opaque, gsi, path);
	return vgic_signal_gsi(irqfds->routes, gsi);
}

static int event_is_edge(struct vgic_irqfds *irqfds, uint32_t gsi)
{
	int result;

	if (irqfds->config.path == VGIC_IRQFD_DEFERRED)
		return defer_edge(irqfds, gsi);
	probe_irqfd(irqfds->routes, gsi, 1, PROBE_DIRECT);
	result = irqfd_inject(irqfds, gsi, VGIC_IRQFD_DIRECT);
	if (result == -EWOULDBLOCK)
		return defer_edge(irqfds, gsi);
	return count_result(irqfd_counters_of(irqfds, gsi), result);
}

static int event_raises_line(struct vgic_irqfds *irqfds, uint32_t gsi)
{
	struct irqfd_counters *c = irqfd_counters_of(irqfds, gsi);
	int result;

	if (irqfds->config.path == VGIC_IRQFD_DEFERRED) {
		probe_irqfd(irqfds->routes, gsi, 1, PROBE_DEFERRED);
		irqfd_defer(irqfds, gsi, IRQFD_WANT_RAISE);
		return 1;
	}
	probe_irqfd(irqfds->routes, gsi, 1, PROBE_DIRECT);
	result = route_drive(irqfds->routes, gsi, true);
	if (result < 0)
		return count_result(c, vgic_signal_gsi(irqfds->routes, gsi));
	irqfd_count(result ? &c->direct : &c->coalesced);
	return 1;
}

int vgic_irqfd_ready(struct vgic_irqfds *irqfds, uint64_t token)
{
	struct irqfd_slot *slot = enter(irqfds, token);
	int result;

	if (!slot) {
		irqfd_count(&irqfd_counters_of(irqfds, (uint32_t)token)->stale);
		return -ENOENT;
	}
	result = slot->resamplefd == VGIC_NO_FD ? event_is_edge(irqfds, slot->gsi) :
						  event_raises_line(irqfds, slot->gsi);
	leave(slot);
	return result;
}

int vgic_irqfds_signal(struct vgic_irqfds *irqfds, uint32_t gsi)
{
	return gsi < vgic_routes_num_gsis(irqfds->routes) ? event_is_edge(irqfds, gsi) : -EINVAL;
}

/*
 * A deactivation has lowered the line: tell the device. The descriptor does not
 * block; if its counter is full, it has been told often enough.
 */
static void signal_resamplefd(void *opaque, uint64_t token)
{
	struct vgic_irqfds *irqfds = opaque;
	struct irqfd_slot *slot = enter(irqfds, token);
	const uint64_t one = 1;

	if (!slot)
		return;
	if (write(slot->resamplefd, &one, sizeof(one)) == (ssize_t)sizeof(one))
		irqfd_count(&irqfd_counters_of(irqfds, slot->gsi)->resamples);
	leave(slot);
}

/* ---- Which eventfds are taken, under the lock ------------------------------------------------ */

static uint32_t *bucket_of(struct vgic_irqfds *irqfds, int fd)
{
	return &irqfds->buckets[(uint32_t)fd & irqfds->bucket_mask];
}

static struct irqfd_slot *find_slot(struct vgic_irqfds *irqfds, int fd)
{
	for (uint32_t i = *bucket_of(irqfds, fd); i != NO_SLOT; i = irqfds->slots[i].next) {
		if (irqfds->slots[i].fd == fd)
			return &irqfds->slots[i];
	}
	return NULL;
}

/* Take a slot for an eventfd. Returns 0, -EBUSY or -ENOSPC. */
static int take_slot(struct vgic_irqfds *irqfds, int fd, struct irqfd_slot **slot)
{
	const uint32_t index = irqfds->free_slots;

	if (find_slot(irqfds, fd))
		return -EBUSY;
	if (index == NO_SLOT)
		return -ENOSPC;
	*slot = &irqfds->slots[index];
	irqfds->free_slots = (*slot)->next;
	(*slot)->next = *bucket_of(irqfds, fd);
	*bucket_of(irqfds, fd) = index;
	(*slot)->fd = fd;
	(*slot)->phase = IRQFD_BINDING;
	return 0;
}

static void give_slot_back(struct vgic_irqfds *irqfds, struct irqfd_slot *slot)
{
	const uint32_t index = (uint32_t)(slot - irqfds->slots);
	uint32_t *link = bucket_of(irqfds, slot->fd);

	while (*link != index)
		link = &irqfds->slots[*link].next;
	*link = slot->next;
	slot->next = irqfds->free_slots;
	irqfds->free_slots = index;
	slot->phase = IRQFD_FREE;
}

/* ---- Assign and deassign ------------------------------------------------------------------------ */

/* A descriptor of our own, or a negative errno. */
static int duplicate(int fd)
{
	const int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);

	return copy < 0 ? -errno : copy;
}

/*
 * The service watches a duplicate: epoll forgets a descriptor when the file is closed, not the number, and can be told
 * to forget it only by a number that is still open. Returns 0 or a negative errno.
 */
static int watch(struct vgic_irqfds *irqfds, struct irqfd_slot *slot, uint64_t token)
{
	int err;

	if (irqfds->config.door == VGIC_IRQFD_LOOP)
		return irqfds->config.ops.watch(irqfds->config.opaque, slot->fd, token);
	slot->watchedfd = duplicate(slot->fd);
	if (slot->watchedfd < 0)
		return slot->watchedfd;
	err = irqfd_service_watch(irqfds, slot->watchedfd, token);
	if (err)
		close(slot->watchedfd);
	return err;
}

static void unwatch(struct vgic_irqfds *irqfds, struct irqfd_slot *slot, uint64_t token)
{
	if (irqfds->config.door == VGIC_IRQFD_LOOP) {
		irqfds->config.ops.unwatch(irqfds->config.opaque, slot->fd, token);
		return;
	}
	irqfd_service_unwatch(irqfds, slot->watchedfd, token);
	close(slot->watchedfd);
}

/*
 * The slot is nobody's any more: turn away what is on its way, wait for what is
 * being delivered (R18), and for what it has handed to the worker. Only then the
 * line is lowered for good.
 */
static void retire(struct vgic_irqfds *irqfds, struct irqfd_slot *slot)
{
	next_generation(slot);
	wait_for_users(slot);
	if (slot->resamplefd != VGIC_NO_FD)
		irqfd_worker_await_raise(irqfds, slot->gsi);
	irqfd_worker_flush(irqfds);
	if (slot->resamplefd != VGIC_NO_FD)
		route_forget_gsi(irqfds->routes, slot->gsi);
}

/* Events may come as soon as it is watched: everything else is there before. */
static int bind_slot(struct vgic_irqfds *irqfds, struct irqfd_slot *slot, uint32_t gsi, int resamplefd)
{
	uint64_t token;
	int err = 0;

	slot->gsi = gsi;
	slot->resamplefd = resamplefd;
	next_generation(slot);
	token = token_of(irqfds, slot);
	if (resamplefd != VGIC_NO_FD)
		err = route_resample_gsi(irqfds->routes, gsi, token);
	if (err) {
		next_generation(slot);
		return err;
	}
	err = watch(irqfds, slot, token);
	if (err)
		retire(irqfds, slot);
	return err;
}

/*
 * Without /proc, which a sandbox may lack. An eventfd is an anonymous inode that refuses to read nothing, as only those
 * do that have a fixed size of message, and takes a write of 0, which changes nothing. In this order: the write must
 * not reach anything else.
 */
static bool is_eventfd(int fd)
{
	const uint64_t nothing = 0;
	struct stat what;
	uint64_t none;

	if (fstat(fd, &what) || (what.st_mode & S_IFMT) || read(fd, &none, 0) >= 0 || errno != EINVAL)
		return false;
	return write(fd, &nothing, sizeof(nothing)) == (ssize_t)sizeof(nothing);
}

/* A duplicate of a resamplefd that cannot block an EOI, or a negative errno. */
static int duplicate_resamplefd(int resamplefd)
{
	const int flags = fcntl(resamplefd, F_GETFL);

	if (flags < 0)
		return -errno;
	if (!(flags & O_NONBLOCK) || !is_eventfd(resamplefd))
		return -EINVAL;
	return duplicate(resamplefd);
}

/* Takes over @resamplefd if it succeeds. */
static int assign(struct vgic_irqfds *irqfds, uint32_t gsi, int eventfd, int resamplefd)
{
	struct irqfd_slot *slot = NULL;
	int err;

	port_lock_acquire(irqfds->lock);
	err = take_slot(irqfds, eventfd, &slot);
	port_lock_release(irqfds->lock);
	if (err)
		return err;
	err = bind_slot(irqfds, slot, gsi, resamplefd);
	port_lock_acquire(irqfds->lock);
	if (err) {
		give_slot_back(irqfds, slot);
	} else {
		slot->phase = IRQFD_BOUND;
		irqfds->num_assigned++;
	}
	port_lock_release(irqfds->lock);
	return err;
}

int vgic_irqfd_assign(struct vgic_irqfds *irqfds, uint32_t gsi, int eventfd, int resamplefd)
{
	int copy = VGIC_NO_FD, err;

	if (gsi >= vgic_routes_num_gsis(irqfds->routes))
		return -EINVAL;
	/* The service finds out by itself, without a system call more. */
	if (irqfds->config.door == VGIC_IRQFD_LOOP && fcntl(eventfd, F_GETFD) < 0)
		return -errno;
	if (resamplefd != VGIC_NO_FD) {
		copy = duplicate_resamplefd(resamplefd);
		if (copy < 0)
			return copy;
	}
	err = assign(irqfds, gsi, eventfd, copy);
	if (err && copy != VGIC_NO_FD)
		close(copy);
	return err;
}

static void deassign(struct vgic_irqfds *irqfds, struct irqfd_slot *slot)
{
	unwatch(irqfds, slot, token_of(irqfds, slot));
	retire(irqfds, slot);
	if (slot->resamplefd != VGIC_NO_FD)
		close(slot->resamplefd);
	port_lock_acquire(irqfds->lock);
	give_slot_back(irqfds, slot);
	irqfds->num_assigned--;
	port_lock_release(irqfds->lock);
}

int vgic_irqfd_deassign(struct vgic_irqfds *irqfds, uint32_t gsi, int eventfd)
{
	struct irqfd_slot *slot;

	if (gsi >= vgic_routes_num_gsis(irqfds->routes))
		return -EINVAL;
	port_lock_acquire(irqfds->lock);
	slot = find_slot(irqfds, eventfd);
	if (slot && (slot->phase != IRQFD_BOUND || slot->gsi != gsi))
		slot = NULL;
	if (slot)
		slot->phase = IRQFD_LEAVING;
	port_lock_release(irqfds->lock);
	if (!slot)
		return -ENOENT;
	deassign(irqfds, slot);
	return 0;
}

/* ---- Life cycle ------------------------------------------------------------------------------------- */

int irqfd_thread_start(pthread_t *thread, void *(*main)(void *), void *arg)
{
	sigset_t all, before;
	int err;

	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	err = pthread_create(thread, NULL, main, arg);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return -err;
}

void vgic_irqfds_config_init(struct vgic_irqfds_config *config)
{
	if (!config)
		return;
	*config = (struct vgic_irqfds_config){
		.size = sizeof(*config),
		.door = VGIC_IRQFD_SERVICE,
		.path = VGIC_IRQFD_DIRECT,
		.max_irqfds = DEFAULT_MAX_IRQFDS,
		.num_threads = 1,
	};
}

static bool config_is_sane(const struct vgic_irqfds_config *config)
{
	if (config->size != sizeof(*config) || config->door > VGIC_IRQFD_LOOP || config->path > VGIC_IRQFD_DEFERRED)
		return false;
	if (config->door == VGIC_IRQFD_LOOP && (!config->ops.watch || !config->ops.unwatch))
		return false;
	return config->max_irqfds > 0 && config->max_irqfds <= VGIC_MAX_IRQFDS && config->num_threads > 0 &&
	       config->num_threads <= VGIC_MAX_IRQFD_THREADS && config->spin_ns <= VGIC_MAX_IRQFD_SPIN_NS;
}

static uint32_t power_of_two_from(uint32_t n)
{
	uint32_t power = 1;

	while (power < n)
		power *= 2;
	return power;
}

static int make_slots(struct vgic_irqfds *irqfds)
{
	const uint32_t num_slots = irqfds->config.max_irqfds, num_buckets = power_of_two_from(num_slots);

	irqfds->slots = port_alloc_zeroed(num_slots * sizeof(*irqfds->slots), CACHE_LINE);
	irqfds->buckets = port_alloc_zeroed(num_buckets * sizeof(*irqfds->buckets), CACHE_LINE);
	irqfds->lock = port_lock_new(LOCK_IRQFDS);
	if (!irqfds->slots || !irqfds->buckets || !irqfds->lock)
		return -ENOMEM;
	irqfds->bucket_mask = num_buckets - 1;
	for (uint32_t i = 0; i < num_buckets; i++)
		irqfds->buckets[i] = NO_SLOT;
	for (uint32_t i = 0; i < num_slots; i++)
		irqfds->slots[i].next = i + 1 < num_slots ? i + 1 : NO_SLOT;
	return 0;
}

static void free_irqfds(struct vgic_irqfds *irqfds)
{
	port_lock_free(irqfds->lock);
	port_free(irqfds->buckets);
	port_free(irqfds->slots);
	port_free(irqfds);
}

static int start_threads(struct vgic_irqfds *irqfds)
{
	int err = 0;

	if (irqfds->config.path == VGIC_IRQFD_DEFERRED || irqfds->config.ops.inject)
		err = irqfd_worker_start(irqfds);
	if (!err && irqfds->config.door == VGIC_IRQFD_SERVICE)
		err = irqfd_service_start(irqfds);
	if (err)
		irqfd_worker_stop(irqfds);
	return err;
}

int vgic_irqfds_create(struct vgic_routes *routes, const struct vgic_irqfds_config *config, struct vgic_irqfds **out)
{
	struct vgic_irqfds *irqfds;
	int err;

	if (!routes || !config || !out || !config_is_sane(config))
		return -EINVAL;
	irqfds = port_alloc_zeroed(sizeof(*irqfds), CACHE_LINE);
	if (!irqfds)
		return -ENOMEM;
	irqfds->routes = routes;
	irqfds->config = *config;
	err = make_slots(irqfds);
	if (!err)
		err = route_resampler_register(routes, signal_resamplefd, irqfds);
	if (err) {
		free_irqfds(irqfds);
		return err;
	}
	err = start_threads(irqfds);
	if (err) {
		route_resampler_unregister(routes);
		free_irqfds(irqfds);
		return err;
	}
	*out = irqfds;
	return 0;
}

void vgic_irqfds_destroy(struct vgic_irqfds *irqfds)
{
	if (!irqfds)
		return;
	for (uint32_t i = 0; i < irqfds->config.max_irqfds; i++) {
		if (irqfds->slots[i].phase == IRQFD_BOUND)
			deassign(irqfds, &irqfds->slots[i]);
	}
	irqfd_service_stop(irqfds);
	irqfd_worker_stop(irqfds);
	route_resampler_unregister(irqfds->routes);
	free_irqfds(irqfds);
}

const struct vgic_routes *irqfd_routes(const struct vgic_irqfds *irqfds)
{
	return irqfds->routes;
}

/* ---- Statistics ------------------------------------------------------------------------------------- */

int vgic_irqfds_get_stats(struct vgic_irqfds *irqfds, struct vgic_irqfds_stats *stats)
{
	if (!stats || stats->size != sizeof(*stats))
		return -EINVAL;
	*stats = (struct vgic_irqfds_stats){ .size = sizeof(*stats) };
	for (unsigned i = 0; i < IRQFD_NUM_COUNTERS; i++) {
		const struct irqfd_counters *c = &irqfds->counters[i];

		stats->direct += load_relaxed(&c->direct);
		stats->deferred += load_relaxed(&c->deferred);
		stats->coalesced += load_relaxed(&c->coalesced);
		stats->dropped += load_relaxed(&c->dropped);
		stats->stale += load_relaxed(&c->stale);
		stats->resamples += load_relaxed(&c->resamples);
	}
	for (uint32_t i = 0; irqfds->threads && i < irqfds->config.num_threads; i++) {
		stats->waits += load_relaxed(&irqfds->threads[i].waits);
		stats->empty_waits += load_relaxed(&irqfds->threads[i].empty_waits);
	}
	port_lock_acquire(irqfds->lock);
	stats->num_assigned = irqfds->num_assigned;
	port_lock_release(irqfds->lock);
	return 0;
}
