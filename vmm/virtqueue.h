/* SPDX-License-Identifier: MIT */
/*
 * The device's end of a split virtqueue, for devices in this process.
 *
 * The rings are in guest memory, and all that is read there is hostile: every
 * index, address and length is checked when it is read, once. A queue that breaks
 * the rules is not served any further.
 *
 * Threads: virtqueue_publish() is for the thread that runs the vCPUs; the other
 * calls are for the one thread that serves the queue, which may be another.
 */
#ifndef VMM_VIRTQUEUE_H
#define VMM_VIRTQUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "virtio.h"

struct virtqueue {
	const struct guest_ram *ram;
	uint16_t size;
	bool indirect;    /* VIRTIO_F_INDIRECT_DESC was agreed on */
	bool same_thread; /* it is served by the thread that runs the vCPUs */

	/* The three parts, in the VMM's address space. */
	const unsigned char *desc;
	unsigned char *avail;
	unsigned char *used;

	_Atomic uint16_t published; /* the driver's index as it was at the last notification */
	uint16_t next_avail;        /* the first entry of the driver's ring that was not taken */
	uint16_t next_used;
};

/* A request: its buffers, those that the device reads first. Filled by virtqueue_pop(). */
struct virtqueue_chain {
	uint16_t head;
	unsigned num_readable;
	unsigned num_writable;
	/* As many as a chain may have: @num_readable, then @num_writable. */
	struct iovec buffers[VIRTIO_MAX_QUEUE_SIZE];
};

/*
 * Begin with a queue that the transport has checked. @same_thread: the caller serves it in the thread that runs the
 * vCPUs, so that nothing has to be ordered.
 */
void virtqueue_start(struct virtqueue *queue, const struct guest_ram *ram, const struct virtio_queue_setup *setup,
		     bool indirect, bool same_thread);

/* Where it stands, and to begin there. Nobody serves it. */
void virtqueue_get_position(const struct virtqueue *queue, struct virtio_queue_position *position);
void virtqueue_set_position(struct virtqueue *queue, const struct virtio_queue_position *position);

/* The driver has notified: what it has put into the queue up to now may be taken. */
void virtqueue_publish(struct virtqueue *queue);

/*
 * Take the next request. Returns 1; 0 if there is none; or -EINVAL for one that breaks the rules: *why says which, and
 * nothing is to be taken any more.
 */
int virtqueue_pop(struct virtqueue *queue, struct virtqueue_chain *chain, const char **why);

/* Give it back, with @written bytes in its writable buffers. */
void virtqueue_push(struct virtqueue *queue, const struct virtqueue_chain *chain, uint32_t written);

/* Does the driver want an interrupt for what was pushed? */
bool virtqueue_wants_interrupt(struct virtqueue *queue);

#endif /* VMM_VIRTQUEUE_H */
