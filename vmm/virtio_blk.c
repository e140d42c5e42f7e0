/* SPDX-License-Identifier: MIT */
/*
 * The block device: requests, the disk's file, and the threads that serve queues.
 *
 * A queue's thread takes one request after another, does it with blocking calls, and
 * signals the queue's interrupt by itself. It sleeps on the queue's condition; the
 * lock of a queue guards only @notified and @stop and is never held over I/O.
 *
 * A request that the disk cannot do (past its end, a failed read) is answered with
 * an error. One that is no request (no room for the status) fails the device.
 */
#include "virtio_blk.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util.h"
#include "virtqueue.h"

#define SECTOR_SIZE 512u
#define QUEUE_SIZE  256u
#define ID_SIZE     20u /* of GET_ID's answer */

/* A chain as long as the queue, less header and status. */
#define MAX_SEGMENTS (QUEUE_SIZE - 2u)

#define F_SEG_MAX  (1ull << 2)
#define F_RO       (1ull << 5)
#define F_BLK_SIZE (1ull << 6)
#define F_FLUSH    (1ull << 9)
#define F_MQ       (1ull << 12)

enum request_type {
	REQUEST_IN = 0,
	REQUEST_OUT = 1,
	REQUEST_FLUSH = 4,
	REQUEST_GET_ID = 8,
};

enum request_status {
	STATUS_OK = 0,
	STATUS_IOERR = 1,
	STATUS_UNSUPP = 2,
};

struct request_header {
	uint32_t type; /* all little-endian */
	uint32_t reserved;
	uint64_t sector;
};

_Static_assert(sizeof(struct request_header) == 16, "laid out as in the specification");

/* struct virtio_blk_config of the specification, as far as it goes here. Little-endian. */
struct config_space {
	uint64_t capacity; /* in sectors */
	uint32_t size_max;
	uint32_t seg_max;
	uint8_t geometry[4];
	uint32_t blk_size;
	uint8_t topology[8];
	uint8_t writeback;
	uint8_t unused;
	uint16_t num_queues;
	uint8_t rest[4]; /* the size is a multiple of 8 */
};

_Static_assert(offsetof(struct config_space, num_queues) == 34, "laid out as in the specification");

struct blk_queue {
	struct virtio_blk *blk;
	unsigned index;
	bool started;
	struct virtqueue ring;
	struct virtqueue_chain chain; /* the request that is being done */

	/* With threads. */
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t wake;
	bool notified;
	bool stop;
};

struct virtio_blk {
	struct virtio_device device;
	char name[256]; /* for messages: cut off if it is longer */
	const char *path;
	int fd;
	bool read_only;
	bool threads;
	bool paused;        /* no thread runs: see pause_device() */
	atomic_bool failed; /* the driver broke the rules: nothing more is taken from any queue */
	bool flush;         /* the driver flushes by itself; otherwise each write is made to last */
	uint64_t features;
	uint64_t capacity; /* in bytes */
	struct config_space config;
	struct blk_queue queues[]; /* device.num_queues of them */
};

static struct virtio_blk *to_blk(struct virtio_device *device)
{
	return (struct virtio_blk *)(void *)device;
}

/* ---- Buffers --------------------------------------------------------------------------- */

/* The buffers of one direction, without what was taken from their ends. */
struct buffers {
	struct iovec *first;
	unsigned count;
};

static uint64_t total_length(const struct buffers *b)
{
	uint64_t total = 0;

	for (unsigned i = 0; i < b->count; i++)
		total += b->first[i].iov_len;
	return total;
}

/* Drop @size bytes at the front; there are as many. */
static void skip_front(struct buffers *b, size_t size)
{
	while (size > 0 && size >= b->first->iov_len) {
		size -= b->first->iov_len;
		b->first++;
		b->count--;
	}
	if (size > 0) {
		b->first->iov_base = (char *)b->first->iov_base + size;
		b->first->iov_len -= size;
	}
}

/* The header may be spread over buffers, or share one with data: drivers lay requests out as they like. */
static bool take_header(struct buffers *readable, struct request_header *header)
{
	size_t got = 0;

	if (total_length(readable) < sizeof(*header))
		return false;
	while (got < sizeof(*header)) {
		const size_t left = sizeof(*header) - got;
		const size_t size = readable->first->iov_len < left ? readable->first->iov_len : left;

		memcpy((char *)header + got, readable->first->iov_base, size);
		got += size;
		skip_front(readable, size);
	}
	header->type = le32toh(header->type);
	header->sector = le64toh(header->sector);
	return true;
}

/* The status is the last writable byte. */
static uint8_t *take_status(struct buffers *writable)
{
	struct iovec *last;

	if (writable->count == 0)
		return NULL;
	last = &writable->first[writable->count - 1];
	if (--last->iov_len == 0)
		writable->count--;
	return (uint8_t *)last->iov_base + last->iov_len;
}

/* ---- Requests --------------------------------------------------------------------------- */

/* Read or write all of the buffers. What is read in part counts as not read. */
static enum request_status transfer(const struct virtio_blk *blk, struct buffers *b, uint64_t offset, bool is_write)
{
	uint64_t left = total_length(b);

	while (left > 0) {
		const ssize_t done = is_write ? pwritev(blk->fd, b->first, (int)b->count, (off_t)offset) :
						preadv(blk->fd, b->first, (int)b->count, (off_t)offset);

		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0) /* 0: the file has become shorter */
			return STATUS_IOERR;
		skip_front(b, (size_t)done);
		offset += (uint64_t)done;
		left -= (uint64_t)done;
	}
	return STATUS_OK;
}

static bool is_on_disk(const struct virtio_blk *blk, uint64_t sector, uint64_t length)
{
	const uint64_t sectors = blk->capacity / SECTOR_SIZE;

	return length % SECTOR_SIZE == 0 && sector <= sectors && length / SECTOR_SIZE <= sectors - sector;
}

static enum request_status flush(const struct virtio_blk *blk)
{
	return fdatasync(blk->fd) ? STATUS_IOERR : STATUS_OK;
}

static enum request_status do_read(const struct virtio_blk *blk, uint64_t sector, struct buffers *data,
				   uint32_t *written)
{
	const uint64_t length = total_length(data);
	enum request_status status;

	if (!is_on_disk(blk, sector, length))
		return STATUS_IOERR;
	status = transfer(blk, data, sector * SECTOR_SIZE, false);
	if (status == STATUS_OK)
		*written = (uint32_t)length;
	return status;
}

static enum request_status do_write(const struct virtio_blk *blk, uint64_t sector, struct buffers *data)
{
	enum request_status status;

	if (blk->read_only || !is_on_disk(blk, sector, total_length(data)))
		return STATUS_IOERR;
	status = transfer(blk, data, sector * SECTOR_SIZE, true);
	return status == STATUS_OK && !blk->flush ? flush(blk) : status;
}

/* The disk's name: the end of its path, which tells disks apart better than the beginning. */
static enum request_status get_id(const struct virtio_blk *blk, struct buffers *data, uint32_t *written)
{
	const size_t length = strlen(blk->path);
	char id[ID_SIZE] = { 0 };
	size_t done = 0;

	if (total_length(data) < ID_SIZE)
		return STATUS_IOERR;
	memcpy(id, length > ID_SIZE ? blk->path + length - ID_SIZE : blk->path, length > ID_SIZE ? ID_SIZE : length);
	while (done < ID_SIZE) {
		const size_t left = ID_SIZE - done;
		const size_t size = data->first->iov_len < left ? data->first->iov_len : left;

		memcpy(data->first->iov_base, id + done, size);
		done += size;
		skip_front(data, size);
	}
	*written = ID_SIZE;
	return STATUS_OK;
}

/* Returns the number of bytes written to the writable buffers, or 0 with *why: this is no request. */
static uint32_t do_request(const struct virtio_blk *blk, struct virtqueue_chain *chain, const char **why)
{
	struct buffers readable = { chain->buffers, chain->num_readable };
	struct buffers writable = { chain->buffers + chain->num_readable, chain->num_writable };
	uint8_t *const status = take_status(&writable);
	struct request_header header;
	uint32_t written = 0;

	if (!status) {
		*why = "a request has no room for its status";
		return 0;
	}
	if (!take_header(&readable, &header)) {
		*why = "a request is shorter than its header";
		return 0;
	}
	switch (header.type) {
	case REQUEST_IN:
		*status = (uint8_t)do_read(blk, header.sector, &writable, &written);
		break;
	case REQUEST_OUT:
		*status = (uint8_t)do_write(blk, header.sector, &readable);
		break;
	case REQUEST_FLUSH:
		*status = (uint8_t)flush(blk);
		break;
	case REQUEST_GET_ID:
		*status = (uint8_t)get_id(blk, &writable, &written);
		break;
	default:
		*status = STATUS_UNSUPP;
		break;
	}
	return written + 1;
}

/* Do all that is in the queue. */
static void serve(struct blk_queue *queue)
{
	struct virtio_blk *blk = queue->blk;
	const char *why = NULL;

	while (!atomic_load(&blk->failed) && virtqueue_pop(&queue->ring, &queue->chain, &why) > 0) {
		const uint32_t written = do_request(blk, &queue->chain, &why);

		if (why)
			break;
		virtqueue_push(&queue->ring, &queue->chain, written);
		if (virtqueue_wants_interrupt(&queue->ring))
			virtio_interrupt_queue(&blk->device, queue->index);
	}
	if (!why)
		return;
	atomic_store(&blk->failed, true);
	virtio_fail(&blk->device, why);
}

/* ---- Threads ------------------------------------------------------------------------------ */

/* Returns false if the thread is to end. */
static bool wait_for_notification(struct blk_queue *queue)
{
	bool go_on;

	pthread_mutex_lock(&queue->lock);
	while (!queue->notified && !queue->stop)
		pthread_cond_wait(&queue->wake, &queue->lock);
	queue->notified = false;
	go_on = !queue->stop;
	pthread_mutex_unlock(&queue->lock);
	return go_on;
}

static void *serve_thread(void *argument)
{
	struct blk_queue *queue = argument;

	while (wait_for_notification(queue))
		serve(queue);
	return NULL;
}

/* Signals are for the thread that runs the vCPUs: they end its wait for input. */
static int start_thread(struct blk_queue *queue)
{
	sigset_t all;
	sigset_t before;
	int err;

	queue->notified = false;
	queue->stop = false;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	err = pthread_create(&queue->thread, NULL, serve_thread, queue);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return -err;
}

static void stop_thread(struct blk_queue *queue)
{
	pthread_mutex_lock(&queue->lock);
	queue->stop = true;
	pthread_cond_signal(&queue->wake);
	pthread_mutex_unlock(&queue->lock);
	pthread_join(queue->thread, NULL);
}

static void wake_thread(struct blk_queue *queue)
{
	pthread_mutex_lock(&queue->lock);
	queue->notified = true;
	pthread_cond_signal(&queue->wake);
	pthread_mutex_unlock(&queue->lock);
}

/* ---- The device ----------------------------------------------------------------------------- */

static int set_features(struct virtio_device *device, uint64_t features)
{
	struct virtio_blk *blk = to_blk(device);

	blk->features = features;
	blk->flush = features & F_FLUSH;
	return 0;
}

static void config_read(struct virtio_device *device, uint32_t offset, void *data, size_t size)
{
	memcpy(data, (const char *)&to_blk(device)->config + offset, size);
}

static int start_queue(struct virtio_device *device, unsigned index, const struct virtio_queue_setup *setup)
{
	struct virtio_blk *blk = to_blk(device);
	struct blk_queue *queue = &blk->queues[index];
	int ret;

	virtqueue_start(&queue->ring, device->ram, setup, blk->features & VIRTIO_F_INDIRECT_DESC, !blk->threads);
	if (blk->threads) {
		ret = start_thread(queue);
		if (ret)
			return ret;
	}
	queue->started = true;
	return 0;
}

static void notify_queue(struct virtio_device *device, unsigned index)
{
	struct virtio_blk *blk = to_blk(device);
	struct blk_queue *queue = &blk->queues[index];

	virtqueue_publish(&queue->ring);
	if (blk->threads)
		wake_thread(queue);
	else
		serve(queue);
}

static void reset(struct virtio_device *device)
{
	struct virtio_blk *blk = to_blk(device);

	for (unsigned i = 0; i < device->num_queues; i++) {
		if (blk->queues[i].started && blk->threads && !blk->paused)
			stop_thread(&blk->queues[i]);
		blk->queues[i].started = false;
	}
	blk->paused = false;
	blk->features = 0;
	blk->flush = false;
	atomic_store(&blk->failed, false);
}

/*
 * A thread that is asked to stop does what is published first if it is at it, and leaves the rest: what was taken is always
 * finished, and what was not is found by the one that goes on.
 */
static void pause_device(struct virtio_device *device)
{
	struct virtio_blk *blk = to_blk(device);

	for (unsigned i = 0; i < device->num_queues; i++)
		if (blk->queues[i].started && blk->threads && !blk->paused)
			stop_thread(&blk->queues[i]);
	blk->paused = true;
}

static void resume_device(struct virtio_device *device)
{
	struct virtio_blk *blk = to_blk(device);

	blk->paused = false;
	for (unsigned i = 0; i < device->num_queues; i++) {
		struct blk_queue *queue = &blk->queues[i];

		if (!queue->started)
			continue;
		if (!blk->threads) {
			serve(queue);
		} else if (start_thread(queue)) {
			queue->started = false;
			virtio_fail(device, "the thread of a queue cannot be started again");
		} else {
			wake_thread(queue);
		}
	}
}

static void save_queue(struct virtio_device *device, unsigned index, struct virtio_queue_position *position)
{
	const struct blk_queue *queue = &to_blk(device)->queues[index];

	virtqueue_get_position(&queue->ring, position);
	position->failed = atomic_load(&to_blk(device)->failed);
}

static void load_queue(struct virtio_device *device, unsigned index, const struct virtio_queue_setup *setup,
		       const struct virtio_queue_position *position)
{
	struct virtio_blk *blk = to_blk(device);
	struct blk_queue *queue = &blk->queues[index];

	virtqueue_start(&queue->ring, device->ram, setup, blk->features & VIRTIO_F_INDIRECT_DESC, !blk->threads);
	virtqueue_set_position(&queue->ring, position);
	if (position->failed)
		atomic_store(&blk->failed, true);
	queue->started = true;
	blk->paused = true;
}

static void destroy(struct virtio_device *device)
{
	struct virtio_blk *blk = to_blk(device);

	for (unsigned i = 0; i < device->num_queues; i++) {
		pthread_mutex_destroy(&blk->queues[i].lock);
		pthread_cond_destroy(&blk->queues[i].wake);
	}
	if (blk->fd >= 0)
		close(blk->fd);
	free(blk);
}

static const struct virtio_device_ops device_ops = {
	.set_features = set_features,
	.config_read = config_read,
	.start_queue = start_queue,
	.notify_queue = notify_queue,
	.reset = reset,
	.pause = pause_device,
	.resume = resume_device,
	.save_queue = save_queue,
	.load_queue = load_queue,
	.destroy = destroy,
};

/* ---- Creation -------------------------------------------------------------------------------- */

static int open_disk(struct virtio_blk *blk)
{
	struct stat stat;
	off_t size;

	blk->fd = open(blk->path, (blk->read_only ? O_RDONLY : O_RDWR) | O_CLOEXEC);
	if (blk->fd < 0) {
		const int err = errno;

		message("cannot open the disk %s: %s%s", blk->path, strerror(err),
			(err == EACCES || err == EROFS) && !blk->read_only ?
				"; \",readonly\" behind its name may help" :
				"");
		return -err;
	}
	if (fstat(blk->fd, &stat) || (!S_ISREG(stat.st_mode) && !S_ISBLK(stat.st_mode))) {
		message("the disk %s is neither a file nor a block device", blk->path);
		return -EINVAL;
	}
	size = lseek(blk->fd, 0, SEEK_END);
	if (size <= 0 || size % SECTOR_SIZE) {
		message("the disk %s has %lld bytes, but needs a multiple of 512: \"truncate --size %%512\" pads a file",
			blk->path, (long long)size);
		return -EINVAL;
	}
	blk->capacity = (uint64_t)size;
	return 0;
}

static void fill_config(struct virtio_blk *blk)
{
	blk->config.capacity = htole64(blk->capacity / SECTOR_SIZE);
	blk->config.seg_max = htole32(MAX_SEGMENTS);
	blk->config.blk_size = htole32(SECTOR_SIZE);
	blk->config.num_queues = htole16(blk->device.num_queues);
}

static void init_queues(struct virtio_blk *blk)
{
	for (unsigned i = 0; i < blk->device.num_queues; i++) {
		struct blk_queue *queue = &blk->queues[i];

		queue->blk = blk;
		queue->index = i;
		pthread_mutex_init(&queue->lock, NULL);
		pthread_cond_init(&queue->wake, NULL);
	}
}

int virtio_blk_create(const struct virtio_blk_config *config, const struct guest_ram *ram,
		      struct virtio_device **result)
{
	struct virtio_blk *blk = calloc(1, sizeof(*blk) + config->queues * sizeof(blk->queues[0]));
	struct virtio_device *device;
	int ret;

	if (!blk) {
		message("no memory for the disk %s", config->path);
		return -ENOMEM;
	}
	snprintf(blk->name, sizeof(blk->name), "disk %s", config->path);
	device = &blk->device;
	device->ops = &device_ops;
	device->name = blk->name;
	device->ram = ram;
	device->id = VIRTIO_ID_BLOCK;
	device->num_queues = (uint16_t)config->queues;
	device->max_queue_size = QUEUE_SIZE;
	device->config_size = sizeof(blk->config);
	device->features = F_SEG_MAX | F_BLK_SIZE | F_FLUSH | F_MQ | VIRTIO_F_INDIRECT_DESC;
	if (config->read_only)
		device->features |= F_RO;
	blk->path = config->path;
	blk->read_only = config->read_only;
	blk->threads = config->threads;
	init_queues(blk);
	ret = open_disk(blk);
	if (ret) {
		destroy(device);
		return ret;
	}
	fill_config(blk);
	*result = device;
	return 0;
}
