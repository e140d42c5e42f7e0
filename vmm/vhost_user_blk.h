/* SPDX-License-Identifier: MIT */
/*
 * A virtio block device that is served by another process: the vhost-user-blk front
 * end. The back end takes requests from the rings in guest memory by itself. The
 * guest's notifications reach it by an eventfd for each queue, and another one
 * for each queue is its interrupt, which does not pass the thread that runs the
 * vCPUs.
 *
 * Trust. What the back end says is checked, but it shares the guest's memory, and the
 * files behind the eventfds: one that makes those blocking, and fills them, can hold
 * up the thread that runs the vCPUs. There is no other way to write to an eventfd.
 *
 * When the back end goes away the user is told, once, and the device says
 * DEVICE_NEEDS_RESET; VMM and guest go on.
 *
 * Ordering. The emulated CPU drops the guest's memory barriers, and the back end
 * looks at the rings when it likes. On hosts that keep stores in order (x86-64) only
 * a store and a later load can change places: each side may miss that the other has
 * just gone to sleep. The device therefore says everything again, to both, when a
 * ring has come to rest (vhost_user_blk.c). Other hosts would need the barriers.
 */
#ifndef VMM_VHOST_USER_BLK_H
#define VMM_VHOST_USER_BLK_H

#include "virtio.h"

struct vhost_user_blk_config {
	const char *socket; /* must stay */
	unsigned queues;    /* 0: as many as @default_queues, if the back end has them */
	unsigned default_queues;
	int ram_fd; /* a file with all of the guest's memory from its beginning */
};

/* Connect to the back end and make the device, with no transport yet. Returns 0, or prints a line, negative errno. */
int vhost_user_blk_create(const struct vhost_user_blk_config *config, const struct guest_ram *ram,
			  struct virtio_device **device);

#endif /* VMM_VHOST_USER_BLK_H */
