/* SPDX-License-Identifier: MIT */
/*
 * A virtio block device whose disk is a file or block device of the host.
 *
 * Each queue is served by a thread of its own; or, where nothing may depend on the
 * host's scheduler (virtual time), by the thread that runs the vCPUs, inside of the
 * notification.
 */
#ifndef VMM_VIRTIO_BLK_H
#define VMM_VIRTIO_BLK_H

#include <stdbool.h>

#include "virtio.h"

struct virtio_blk_config {
	const char *path; /* must stay */
	unsigned queues;  /* 1 to VIRTIO_MAX_QUEUES */
	bool read_only;
	bool threads; /* false: serve inside of the notification */
};

/* Open the disk and make the device, with no transport yet. Returns 0, or prints a line, negative errno. */
int virtio_blk_create(const struct virtio_blk_config *config, const struct guest_ram *ram,
		      struct virtio_device **device);

#endif /* VMM_VIRTIO_BLK_H */
