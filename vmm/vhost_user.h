/* SPDX-License-Identifier: MIT */
/*
 * The front end's side of the vhost-user protocol: one connection to a back end,
 * which serves a virtio device from another process. It maps the guest's memory,
 * takes requests from the rings by itself, and signals eventfds; the messages here
 * only set that up and take it down.
 *
 * What the back end sends is untrusted. A reply that is late, cut off, of the wrong
 * kind or size, or that brings file descriptors, ends the connection, and from then
 * on every call returns -ENOTCONN. vhost_user_why() says what the first reason was.
 *
 * Threads. Every call but init and destroy may be made by any thread. A connection
 * has one lock, held from a request to its reply: a call takes up to @timeout_ms.
 */
#ifndef VMM_VHOST_USER_H
#define VMM_VHOST_USER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "virtio.h"

#define VHOST_USER_MAX_CONFIG 256u /* bytes of a device's configuration in one message */
#define VHOST_USER_WHY_SIZE   160u

/* Protocol features; those that are agreed on are in vhost_user.protocol_features. */
#define VHOST_USER_PROTOCOL_MQ          (1ull << 0)
#define VHOST_USER_PROTOCOL_REPLY_ACK   (1ull << 3)
#define VHOST_USER_PROTOCOL_BACKEND_REQ (1ull << 5)
#define VHOST_USER_PROTOCOL_CONFIG      (1ull << 9)

/* A message that comes in, in pieces, on the back end's own channel. */
struct vhost_user_incoming {
	unsigned char header[12];
	size_t got;  /* of the header */
	size_t skip; /* of the payload, which no message that is known has */
};

struct vhost_user {
	pthread_mutex_t lock;
	int fd;
	int request_fd; /* the back end's own channel; -1: there is none, or it was closed */
	struct vhost_user_incoming incoming;
	unsigned timeout_ms;

	/* Constant once they are agreed on. */
	uint64_t features; /* what the back end offers: virtio's, and others that are not the driver's business */
	uint64_t protocol_features;
	unsigned num_queues; /* as many as it has; 1 if it does not say */

	atomic_bool broken;
	char why[VHOST_USER_WHY_SIZE]; /* written before @broken is set */
};

/* The guest's memory as the back end will see it: one file. Addresses in it are guest-physical. */
struct vhost_user_memory {
	uint64_t base;
	uint64_t size;
	int fd;
};

/* What a ring needs beside its place in memory; the file descriptors stay the caller's. */
struct vhost_user_ring_fds {
	int kick; /* eventfds: the driver has put something into the ring */
	int call; /* the back end has given something back */
	int err;  /* the back end cannot go on */
};

/*
 * Connect to the socket at @path. Returns a file descriptor, or a negative errno: -ENOENT and -ECONNREFUSED mean that
 * nobody listens, -EAGAIN that who listens is busy with others.
 */
int vhost_user_connect(const char *path);

/* Take over @fd, a connected stream socket. Nothing is sent yet. */
void vhost_user_init(struct vhost_user *vu, int fd, unsigned timeout_ms);

/* Close the connection. The back end sees that, and forgets the device. */
void vhost_user_destroy(struct vhost_user *vu);

/* What ended the connection, as the rest of a sentence that begins with "the back end"; "" if nothing has. */
const char *vhost_user_why(const struct vhost_user *vu);

static inline bool vhost_user_is_broken(const struct vhost_user *vu)
{
	return atomic_load(&vu->broken);
}

/* The connection was found to be closed. */
void vhost_user_lost(struct vhost_user *vu);

/*
 * Each of the following returns 0, or a negative errno:
 *   -ENOTCONN   the connection has ended, now or before
 *   -EREMOTEIO  the back end has refused
 */

/* Agree on protocol features and fill in what the back end has. The first call. */
int vhost_user_negotiate(struct vhost_user *vu);

int vhost_user_set_memory(struct vhost_user *vu, const struct vhost_user_memory *memory);

/* What the driver has chosen. */
int vhost_user_set_features(struct vhost_user *vu, uint64_t features);

/* Begin to serve the ring, from its beginning. */
int vhost_user_start_ring(struct vhost_user *vu, unsigned index, const struct virtio_queue_setup *setup,
			  const struct vhost_user_ring_fds *fds);

/* When this returns the back end does not touch the ring any more. */
int vhost_user_stop_ring(struct vhost_user *vu, unsigned index);

/* The device's configuration, up to VHOST_USER_MAX_CONFIG bytes of it. Needs VHOST_USER_PROTOCOL_CONFIG. */
int vhost_user_get_config(struct vhost_user *vu, uint32_t offset, void *data, uint32_t size);
int vhost_user_set_config(struct vhost_user *vu, uint32_t offset, const void *data, uint32_t size);

/*
 * Take what is in the back end's own channel, without waiting. @config_changed is set if the device's configuration is
 * to be read again, and otherwise left alone. For one thread at a time.
 */
int vhost_user_take_requests(struct vhost_user *vu, bool *config_changed);

#endif /* VMM_VHOST_USER_H */
