/* SPDX-License-Identifier: MIT */
/*
 * What a virtio 1.x device and its transport are to each other.
 *
 * The transport (virtio_pci.c) knows the registers: negotiation, the set-up of the
 * queues, the device's status, interrupt vectors. The device (virtio_blk.c, or one
 * in another process) knows what is in the queues. Only split virtqueues exist, and
 * only VIRTIO_F_VERSION_1.
 *
 * The life of a device:
 *
 *   set_features()      the driver has chosen; the device may refuse
 *   start_queue()       for each queue that the driver enabled, when it sets DRIVER_OK
 *                       (or enables it, if that comes later)
 *   notify_queue()      there is something in a queue that was started
 *   reset()             back to the beginning, at any point
 *
 * Threads. All of these are called by the thread that runs the vCPUs. A device may
 * work in others: virtio_interrupt_queue(), virtio_interrupt_config() and
 * virtio_fail() may be called from any thread, up to the return of reset().
 */
#ifndef VMM_VIRTIO_H
#define VMM_VIRTIO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "guest_ram.h"

#define VIRTIO_ID_BLOCK 2u

#define VIRTIO_MAX_QUEUES     64u
#define VIRTIO_MAX_QUEUE_SIZE 1024u

/* Feature bits that belong to no kind of device. The transport offers VERSION_1 by itself. */
#define VIRTIO_F_INDIRECT_DESC (1ull << 28)
#define VIRTIO_F_EVENT_IDX     (1ull << 29) /* never offered: see virtqueue.c */
#define VIRTIO_F_VERSION_1     (1ull << 32)

struct virtio_device;

/* How far a device has come with a queue. All of it counts on modulo 2^16, so that any value is one. */
struct virtio_queue_position {
	uint16_t published;  /* the driver's index when it notified last */
	uint16_t next_avail; /* the next entry of its ring to be taken */
	uint16_t next_used;
	bool failed; /* the driver broke the rules: nothing more is taken */
};

/*
 * A queue as the driver has set it up. The transport has checked it: @size is a power of two and no more than
 * device->max_queue_size, the addresses are aligned as the specification says, and all three parts lie in memory. It
 * does not change until the device is reset. What is *in* that memory may be anything.
 */
struct virtio_queue_setup {
	uint16_t size;
	uint64_t desc;  /* guest-physical; 16 bytes for each descriptor */
	uint64_t avail; /* the driver's ring: 6 + 2 * size bytes */
	uint64_t used;  /* the device's ring: 6 + 8 * size bytes */
};

struct virtio_device_ops {
	/*
	 * The driver has accepted @features, a part of what was offered and VIRTIO_F_VERSION_1. Return 0, or -EINVAL to
	 * refuse: the driver sees that FEATURES_OK is not set.
	 */
	int (*set_features)(struct virtio_device *device, uint64_t features);

	/*
	 * The device's configuration: @offset + @size is within device->config_size. Little-endian. Writes to what is
	 * read-only are ignored; config_write may be NULL if all of it is.
	 */
	void (*config_read)(struct virtio_device *device, uint32_t offset, void *data, size_t size);
	void (*config_write)(struct virtio_device *device, uint32_t offset, const void *data, size_t size);

	/* Begin to serve queue @index. It may have requests in it already. Returns 0 or a negative errno: the device fails. */
	int (*start_queue)(struct virtio_device *device, unsigned index, const struct virtio_queue_setup *setup);

	/*
	 * The driver has put something into queue @index, which was started. What it wrote before is visible to a thread
	 * that is woken now: the transport has made a full fence, because the emulated CPU leaves out the guest's own.
	 */
	void (*notify_queue)(struct virtio_device *device, unsigned index);

	/*
	 * Stop. When this returns no queue is served, guest memory is touched no more, and no thread of the device calls the
	 * transport, until queues are started again. Requests that were not finished are forgotten. Also called before any
	 * queue was started.
	 */
	void (*reset)(struct virtio_device *device);

	/*
	 * For saved machines; all four are NULL in a device that cannot be saved. After pause() the device touches nothing, as
	 * after reset(), but remembers: requests that were taken are finished, others stay in their queues. resume() goes on,
	 * with those first. Between them positions are asked for; or queues are loaded, in the place of start_queue().
	 */
	void (*pause)(struct virtio_device *device);
	void (*resume)(struct virtio_device *device);
	void (*save_queue)(struct virtio_device *device, unsigned index, struct virtio_queue_position *position);
	void (*load_queue)(struct virtio_device *device, unsigned index, const struct virtio_queue_setup *setup,
			   const struct virtio_queue_position *position);

	/* Free the device. It has been reset. */
	void (*destroy)(struct virtio_device *device);
};

/* What the device asks of its transport; set by it. Use the functions below. */
struct virtio_transport_ops {
	void (*interrupt_queue)(void *transport, unsigned index);
	void (*interrupt_config)(void *transport);
	void (*report_failure)(void *transport, const char *why);
	int (*bind_call_fd)(void *transport, unsigned index, int eventfd);
};

/* What every device has, first in its own structure. The device fills in the first part before it is given a transport. */
struct virtio_device {
	const struct virtio_device_ops *ops;
	const char *name; /* for messages: "disk FILE" */
	const struct guest_ram *ram;
	uint16_t id;             /* VIRTIO_ID_* */
	uint16_t num_queues;     /* 1 to VIRTIO_MAX_QUEUES */
	uint16_t num_vectors;    /* of MSI-X; 0: one for each queue, and one for the configuration */
	uint16_t max_queue_size; /* a power of two, up to VIRTIO_MAX_QUEUE_SIZE */
	uint32_t config_size;
	uint64_t features; /* what is offered, beside VIRTIO_F_VERSION_1 */

	const struct virtio_transport_ops *transport_ops;
	void *transport;
};

/* ---- For the device ------------------------------------------------------------- */

/*
 * Send the interrupt of queue @index. Whether the driver wants one (VIRTQ_AVAIL_F_NO_INTERRUPT) is the device's to ask.
 * What the device wrote to guest memory before is visible to the driver's handler. Any thread.
 */
static inline void virtio_interrupt_queue(struct virtio_device *device, unsigned index)
{
	device->transport_ops->interrupt_queue(device->transport, index);
}

/* The device's configuration has changed. Any thread. */
static inline void virtio_interrupt_config(struct virtio_device *device)
{
	device->transport_ops->interrupt_config(device->transport);
}

/*
 * The driver has done something that cannot be served, or the device can serve no more: DEVICE_NEEDS_RESET is set, the
 * driver is told by the configuration interrupt, and notifications come no more until reset(). The user is told @why,
 * the first time. The device stops by itself. Any thread.
 */
static inline void virtio_fail(struct virtio_device *device, const char *why)
{
	device->transport_ops->report_failure(device->transport, why);
}

/*
 * From now on a signal of @eventfd is the interrupt of queue @index, from whatever process; -1 undoes it: no interrupt
 * comes by it after that has returned. Undone by itself when the device is reset. Returns 0 or a negative errno. Only the
 * thread that runs the vCPUs.
 */
static inline int virtio_bind_call_fd(struct virtio_device *device, unsigned index, int eventfd)
{
	return device->transport_ops->bind_call_fd(device->transport, index, eventfd);
}

#endif /* VMM_VIRTIO_H */
