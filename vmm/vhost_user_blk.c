/* SPDX-License-Identifier: MIT */
/*
 * The vhost-user-blk device: see vhost_user_blk.h.
 *
 * One thread of the device's own, from its creation to its end, watches: the
 * connection, for the back end's death; the back end's own channel, for changes of the
 * configuration; and the rings, as described at watch_ring(). @lock guards what it
 * shares with the thread that runs the vCPUs. It may call the transport only while
 * @running is set, and with the lock held.
 */
#define _GNU_SOURCE /* POLLRDHUP */

#include "vhost_user_blk.h"

#include <endian.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "util.h"
#include "vhost_user.h"

#define QUEUE_SIZE      256u
#define TIMEOUT_MS      5000u /* for each answer of the back end */
#define SETTLE_MS       10    /* a ring that has not changed for so long has come to rest */
#define REST_MS         1000  /* how often rings at rest are looked at, in case that nobody has been notified */
#define RING_INDEX      2u    /* in the rings of driver and device: the offset of their index */
#define CONFIG_SIZE     60u   /* of the specification's struct virtio_blk_config, up to write zeroes */
#define CONFIG_SIZE_MAX 8u    /* its size_max, 32 bits */
#define CONFIG_WCE      32u   /* its writeback */
#define CONFIG_NUM      34u   /* its num_queues, 16 bits */

#define F_SIZE_MAX     (1ull << 1)
#define F_SEG_MAX      (1ull << 2)
#define F_GEOMETRY     (1ull << 4)
#define F_RO           (1ull << 5)
#define F_BLK_SIZE     (1ull << 6)
#define F_FLUSH        (1ull << 9)
#define F_TOPOLOGY     (1ull << 10)
#define F_CONFIG_WCE   (1ull << 11)
#define F_MQ           (1ull << 12)
#define F_DISCARD      (1ull << 13)
#define F_WRITE_ZEROES (1ull << 14)

/* What the driver may see of the back end's features. Not EVENT_IDX: it needs barriers even more. */
#define PASSED_FEATURES                                                                                                \
	(F_SIZE_MAX | F_SEG_MAX | F_GEOMETRY | F_RO | F_BLK_SIZE | F_FLUSH | F_TOPOLOGY | F_CONFIG_WCE | F_MQ |        \
	 F_DISCARD | F_WRITE_ZEROES | VIRTIO_F_INDIRECT_DESC)

struct ring {
	int kick_fd;
	int call_fd;

	/* For the watcher while @running is set, guarded by the lock. */
	bool started;
	const uint16_t *avail_index;
	const uint16_t *used_index;
	uint16_t seen_avail;
	uint16_t seen_used;
	bool settled;
};

struct vhost_user_blk {
	struct virtio_device device;
	char name[256]; /* for messages: cut off if it is longer */
	struct vhost_user connection;

	pthread_t watcher;
	bool has_watcher;
	atomic_bool stop;
	atomic_bool watching; /* the watcher looks at the rings every SETTLE_MS */
	int wake_fd;
	int err_fd; /* the back end's: a ring cannot be served */

	pthread_mutex_t lock;
	bool running;      /* from the first queue that is started to the reset */
	bool end_reported; /* the user knows that the back end is gone */
	bool config_news;  /* the configuration has changed, and nobody could be told */
	unsigned char config[CONFIG_SIZE];

	struct ring rings[]; /* device.num_queues of them */
};

static struct vhost_user_blk *to_blk(struct virtio_device *device)
{
	return (struct vhost_user_blk *)(void *)device;
}

/* An eventfd that is full has been signalled. */
static void signal_fd(int fd)
{
	static const uint64_t one = 1;

	if (write(fd, &one, sizeof(one)) < 0)
		return;
}

/* ---- The back end's end --------------------------------------------------------------------- */

/* Only with the lock held. */
static void report_end_locked(struct vhost_user_blk *blk)
{
	char text[VHOST_USER_WHY_SIZE + 16];

	if (!vhost_user_is_broken(&blk->connection) || blk->end_reported)
		return;
	blk->end_reported = true;
	snprintf(text, sizeof(text), "the back end %s", vhost_user_why(&blk->connection));
	if (blk->running)
		virtio_fail(&blk->device, text); /* which tells the user */
	else
		message("%s: %s", blk->name, text);
}

static void report_end(struct vhost_user_blk *blk)
{
	pthread_mutex_lock(&blk->lock);
	report_end_locked(blk);
	pthread_mutex_unlock(&blk->lock);
}

/* ---- The device's configuration ------------------------------------------------------------- */

static int fetch_config(struct vhost_user_blk *blk)
{
	const uint16_t num_queues = htole16(blk->device.num_queues);
	unsigned char config[CONFIG_SIZE];
	const int ret = vhost_user_get_config(&blk->connection, 0, config, sizeof(config));

	if (ret)
		return ret;
	/* The back end may have more queues than the user wants. */
	memcpy(config + CONFIG_NUM, &num_queues, sizeof(num_queues));
	pthread_mutex_lock(&blk->lock);
	memcpy(blk->config, config, sizeof(config));
	pthread_mutex_unlock(&blk->lock);
	return 0;
}

static void config_read(struct virtio_device *device, uint32_t offset, void *data, size_t size)
{
	struct vhost_user_blk *blk = to_blk(device);

	pthread_mutex_lock(&blk->lock);
	memcpy(data, blk->config + offset, size);
	pthread_mutex_unlock(&blk->lock);
}

/* Writable is one byte: whether the cache writes back. */
static void config_write(struct virtio_device *device, uint32_t offset, const void *data, size_t size)
{
	struct vhost_user_blk *blk = to_blk(device);

	if (offset != CONFIG_WCE || size != 1)
		return;
	if (vhost_user_set_config(&blk->connection, CONFIG_WCE, data, 1) == 0) {
		pthread_mutex_lock(&blk->lock);
		memcpy(blk->config + CONFIG_WCE, data, 1);
		pthread_mutex_unlock(&blk->lock);
	}
	report_end(blk);
}

/* ---- The watcher ------------------------------------------------------------------------------ */

/*
 * A side of a ring that goes to sleep says so in memory, and looks once more for work; the other one adds work, and looks
 * whether it has to wake somebody. The driver's half of that has no barrier here, so that it may be missed. But what it
 * stored gets to memory before long. A ring that has changed and then has not for SETTLE_MS is signalled once more to
 * both sides: nothing waits longer for the other one than that. One signal too many does no harm.
 *
 * Returns whether the ring must be looked at again soon.
 */
static bool watch_ring(struct vhost_user_blk *blk, unsigned index)
{
	struct ring *ring = &blk->rings[index];
	uint16_t avail;
	uint16_t used;

	if (!ring->started)
		return false;
	avail = __atomic_load_n(ring->avail_index, __ATOMIC_ACQUIRE);
	used = __atomic_load_n(ring->used_index, __ATOMIC_ACQUIRE);
	if (avail != ring->seen_avail || used != ring->seen_used) {
		ring->seen_avail = avail;
		ring->seen_used = used;
		ring->settled = false;
	} else if (!ring->settled) {
		ring->settled = true;
		if (avail != used)
			signal_fd(ring->kick_fd);
		virtio_interrupt_queue(&blk->device, index);
	}
	return !ring->settled || avail != used;
}

static bool watch_rings(struct vhost_user_blk *blk)
{
	bool again = false;

	pthread_mutex_lock(&blk->lock);
	for (unsigned i = 0; blk->running && i < blk->device.num_queues; i++)
		again |= watch_ring(blk, i);
	pthread_mutex_unlock(&blk->lock);
	return again;
}

/* The driver has notified, or a ring was started: the watcher looks soon, if it does not do so anyway. */
static void wake_watcher(struct vhost_user_blk *blk)
{
	if (!atomic_exchange(&blk->watching, true))
		signal_fd(blk->wake_fd);
}

/* Returns how long to sleep. */
static int look_at_rings(struct vhost_user_blk *blk)
{
	atomic_store(&blk->watching, true);
	if (watch_rings(blk))
		return SETTLE_MS;
	/* Who sees it false wakes this thread. Who has seen it true before has changed a ring that is looked at here. */
	atomic_store(&blk->watching, false);
	if (!watch_rings(blk))
		return REST_MS;
	atomic_store(&blk->watching, true);
	return SETTLE_MS;
}

static void take_requests(struct vhost_user_blk *blk)
{
	bool changed = false;

	if (vhost_user_take_requests(&blk->connection, &changed) || !changed || fetch_config(blk))
		return;
	pthread_mutex_lock(&blk->lock);
	if (blk->running)
		virtio_interrupt_config(&blk->device);
	else
		blk->config_news = true;
	pthread_mutex_unlock(&blk->lock);
}

static void take_ring_error(struct vhost_user_blk *blk)
{
	uint64_t count;

	if (read(blk->err_fd, &count, sizeof(count)) != sizeof(count))
		return;
	pthread_mutex_lock(&blk->lock);
	if (blk->running)
		virtio_fail(&blk->device, "the back end cannot serve a queue");
	pthread_mutex_unlock(&blk->lock);
}

static void *watch(void *argument)
{
	struct vhost_user_blk *blk = argument;
	uint64_t count;

	while (!atomic_load(&blk->stop) && !vhost_user_is_broken(&blk->connection)) {
		/* Replies on the connection are for who has asked. */
		struct pollfd fds[] = {
			{ .fd = blk->connection.fd, .events = POLLRDHUP },
			{ .fd = blk->connection.request_fd, .events = POLLIN },
			{ .fd = blk->wake_fd, .events = POLLIN },
			{ .fd = blk->err_fd, .events = POLLIN },
		};

		if (poll(fds, sizeof(fds) / sizeof(fds[0]), look_at_rings(blk)) <= 0)
			continue;
		if (fds[2].revents && read(blk->wake_fd, &count, sizeof(count)) < 0)
			continue;
		if (fds[0].revents)
			vhost_user_lost(&blk->connection);
		if (fds[1].revents)
			take_requests(blk);
		if (fds[3].revents)
			take_ring_error(blk);
	}
	report_end(blk);
	return NULL;
}

/* Signals are for the thread that runs the vCPUs. */
static int start_watcher(struct vhost_user_blk *blk)
{
	sigset_t all;
	sigset_t before;
	int err;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	err = pthread_create(&blk->watcher, NULL, watch, blk);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	blk->has_watcher = err == 0;
	return -err;
}

static void stop_watcher(struct vhost_user_blk *blk)
{
	if (!blk->has_watcher)
		return;
	atomic_store(&blk->stop, true);
	signal_fd(blk->wake_fd);
	pthread_join(blk->watcher, NULL);
}

/* ---- The device ------------------------------------------------------------------------------- */

static int set_features(struct virtio_device *device, uint64_t features)
{
	struct vhost_user_blk *blk = to_blk(device);

	if (vhost_user_set_features(&blk->connection, features) == 0)
		return 0;
	report_end(blk);
	return -EINVAL;
}

static int start_ring(struct vhost_user_blk *blk, unsigned index, const struct virtio_queue_setup *setup)
{
	struct ring *ring = &blk->rings[index];
	const struct vhost_user_ring_fds fds = { .kick = ring->kick_fd, .call = ring->call_fd, .err = blk->err_fd };
	const struct guest_ram *ram = blk->device.ram;
	int ret;

	ret = virtio_bind_call_fd(&blk->device, index, ring->call_fd);
	if (ret)
		return ret;
	ret = vhost_user_start_ring(&blk->connection, index, setup, &fds);
	if (ret) {
		virtio_bind_call_fd(&blk->device, index, -1);
		return ret;
	}
	pthread_mutex_lock(&blk->lock);
	ring->avail_index = guest_ram_at(ram, setup->avail + RING_INDEX, sizeof(*ring->avail_index));
	ring->used_index = guest_ram_at(ram, setup->used + RING_INDEX, sizeof(*ring->used_index));
	ring->seen_avail = 0;
	ring->seen_used = 0;
	ring->settled = true;
	ring->started = true;
	blk->running = true;
	if (blk->config_news)
		virtio_interrupt_config(&blk->device); /* the driver may have read it before */
	blk->config_news = false;
	pthread_mutex_unlock(&blk->lock);
	/* The ring begins to run when it is kicked, and there may be requests in it. */
	signal_fd(ring->kick_fd);
	return 0;
}

static int start_queue(struct virtio_device *device, unsigned index, const struct virtio_queue_setup *setup)
{
	struct vhost_user_blk *blk = to_blk(device);
	const int ret = start_ring(blk, index, setup);

	if (ret == -EREMOTEIO)
		virtio_fail(device, "the back end has refused a queue");
	else if (ret)
		report_end(blk);
	else
		wake_watcher(blk);
	return ret;
}

static void notify_queue(struct virtio_device *device, unsigned index)
{
	struct vhost_user_blk *blk = to_blk(device);

	signal_fd(blk->rings[index].kick_fd);
	wake_watcher(blk);
}

static void reset(struct virtio_device *device)
{
	struct vhost_user_blk *blk = to_blk(device);

	pthread_mutex_lock(&blk->lock);
	blk->running = false;
	pthread_mutex_unlock(&blk->lock);
	/* The watcher looks at no ring now. */
	for (unsigned i = 0; i < device->num_queues; i++) {
		if (!blk->rings[i].started)
			continue;
		blk->rings[i].started = false;
		vhost_user_stop_ring(&blk->connection, i);
		virtio_bind_call_fd(device, i, -1);
	}
	report_end(blk);
}

static void close_fd(int fd)
{
	if (fd >= 0)
		close(fd);
}

static void destroy(struct virtio_device *device)
{
	struct vhost_user_blk *blk = to_blk(device);

	stop_watcher(blk);
	vhost_user_destroy(&blk->connection);
	for (unsigned i = 0; i < device->num_queues; i++) {
		close_fd(blk->rings[i].kick_fd);
		close_fd(blk->rings[i].call_fd);
	}
	close_fd(blk->wake_fd);
	close_fd(blk->err_fd);
	pthread_mutex_destroy(&blk->lock);
	free(blk);
}

static const struct virtio_device_ops device_ops = {
	.set_features = set_features,
	.config_read = config_read,
	.config_write = config_write,
	.start_queue = start_queue,
	.notify_queue = notify_queue,
	.reset = reset,
	.destroy = destroy,
};

/* ---- Creation ------------------------------------------------------------------------------------ */

static int connect_to(const char *socket)
{
	const int fd = vhost_user_connect(socket);

	if (fd == -ENOENT || fd == -ECONNREFUSED)
		message("nobody listens at the socket %s: start the back end first; vgic-vmm(1) has an example",
			socket);
	else if (fd == -EAGAIN)
		message("the back end at the socket %s is busy with others", socket);
	else if (fd < 0)
		message("cannot connect to the socket %s: %s", socket, strerror(-fd));
	return fd;
}

/* What the back end has must do for the device. Prints what does not. */
static int check_back_end(const struct vhost_user_blk *blk, const struct vhost_user_blk_config *config)
{
	const struct vhost_user *vu = &blk->connection;

	if (!(vu->features & VIRTIO_F_VERSION_1) || !(vu->protocol_features & VHOST_USER_PROTOCOL_CONFIG)) {
		message("%s: the back end is no block device of virtio 1.0 (features 0x%llx, of the protocol 0x%llx)",
			blk->name, (unsigned long long)vu->features, (unsigned long long)vu->protocol_features);
		return -ENOTSUP;
	}
	if (vu->num_queues == 0 || config->queues > vu->num_queues) {
		message("%s: the back end has %u queues, not %u: give it more, or take \",queues=%u\"", blk->name,
			vu->num_queues, config->queues, vu->num_queues);
		return -ENOTSUP;
	}
	return 0;
}

/* qemu-storage-daemon offers to limit the size of segments, and the limit is 0: it means none. */
static void drop_empty_size_max(struct vhost_user_blk *blk)
{
	static const unsigned char none[4];

	if (memcmp(blk->config + CONFIG_SIZE_MAX, none, sizeof(none)) == 0)
		blk->device.features &= ~F_SIZE_MAX;
}

static int negotiate(struct vhost_user_blk *blk, const struct vhost_user_blk_config *config)
{
	const struct guest_ram *ram = blk->device.ram;
	const struct vhost_user_memory memory = { .base = ram->base, .size = ram->size, .fd = config->ram_fd };
	const unsigned wanted = config->queues ? config->queues : config->default_queues;
	int ret;

	ret = vhost_user_negotiate(&blk->connection);
	if (!ret) {
		ret = check_back_end(blk, config);
		if (ret)
			return ret;
		blk->device.num_queues =
			(uint16_t)(wanted < blk->connection.num_queues ? wanted : blk->connection.num_queues);
		blk->device.features = blk->connection.features & PASSED_FEATURES;
		ret = fetch_config(blk);
		drop_empty_size_max(blk);
	}
	if (!ret)
		ret = vhost_user_set_memory(&blk->connection, &memory);
	if (ret == -EREMOTEIO)
		message("%s: the back end cannot map the guest's memory", blk->name);
	else if (ret)
		report_end(blk);
	return ret;
}

static int make_eventfd(int *fd)
{
	*fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return *fd < 0 ? -errno : 0;
}

static int make_eventfds(struct vhost_user_blk *blk)
{
	int ret;

	ret = make_eventfd(&blk->wake_fd);
	if (!ret)
		ret = make_eventfd(&blk->err_fd);
	for (unsigned i = 0; !ret && i < blk->device.num_queues; i++) {
		ret = make_eventfd(&blk->rings[i].kick_fd);
		if (!ret)
			ret = make_eventfd(&blk->rings[i].call_fd);
	}
	return ret;
}

static struct vhost_user_blk *allocate(const struct vhost_user_blk_config *config, const struct guest_ram *ram)
{
	struct vhost_user_blk *blk = calloc(1, sizeof(*blk) + VIRTIO_MAX_QUEUES * sizeof(blk->rings[0]));

	if (!blk)
		return NULL;
	snprintf(blk->name, sizeof(blk->name), "vhost-user-blk %s", config->socket);
	blk->device.ops = &device_ops;
	blk->device.name = blk->name;
	blk->device.ram = ram;
	blk->device.id = VIRTIO_ID_BLOCK;
	blk->device.max_queue_size = QUEUE_SIZE;
	blk->device.config_size = CONFIG_SIZE;
	pthread_mutex_init(&blk->lock, NULL);
	blk->wake_fd = -1;
	blk->err_fd = -1;
	for (unsigned i = 0; i < VIRTIO_MAX_QUEUES; i++) {
		blk->rings[i].kick_fd = -1;
		blk->rings[i].call_fd = -1;
	}
	return blk;
}

int vhost_user_blk_create(const struct vhost_user_blk_config *config, const struct guest_ram *ram,
			  struct virtio_device **result)
{
	const int fd = connect_to(config->socket);
	struct vhost_user_blk *blk;
	int ret;

	if (fd < 0)
		return fd;
	blk = allocate(config, ram);
	if (!blk) {
		message("no memory for the device at the socket %s", config->socket);
		close(fd);
		return -ENOMEM;
	}
	vhost_user_init(&blk->connection, fd, TIMEOUT_MS);
	ret = negotiate(blk, config);
	if (!ret) {
		ret = make_eventfds(blk);
		if (!ret)
			ret = start_watcher(blk);
		if (ret)
			message("%s: cannot be started: %s", blk->name, strerror(-ret));
	}
	if (ret) {
		destroy(&blk->device);
		return ret;
	}
	*result = &blk->device;
	return 0;
}
