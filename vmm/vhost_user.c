/* SPDX-License-Identifier: MIT */
/*
 * The vhost-user protocol, front end's side: messages, replies, and what they must
 * look like. See vhost_user.h.
 *
 * A message is a header, a payload of the size that it says, and file descriptors
 * beside the first byte. Numbers are in the host's byte order. No reply that is
 * asked for here brings file descriptors: recvmsg() has no room for any, so that
 * the kernel closes what comes, and MSG_CTRUNC tells.
 */
#define _GNU_SOURCE /* POLLRDHUP */

#include "vhost_user.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "util.h"

/* ---- Messages ---------------------------------------------------------------------- */

enum request {
	GET_FEATURES = 1,
	SET_FEATURES = 2,
	SET_OWNER = 3,
	SET_MEM_TABLE = 5,
	SET_VRING_NUM = 8,
	SET_VRING_ADDR = 9,
	SET_VRING_BASE = 10,
	GET_VRING_BASE = 11,
	SET_VRING_KICK = 12,
	SET_VRING_CALL = 13,
	SET_VRING_ERR = 14,
	GET_PROTOCOL_FEATURES = 15,
	SET_PROTOCOL_FEATURES = 16,
	GET_QUEUE_NUM = 17,
	SET_VRING_ENABLE = 18,
	SET_BACKEND_REQ_FD = 21,
	GET_CONFIG = 24,
	SET_CONFIG = 25,
};

/* From the back end, on its own channel. */
#define BACKEND_CONFIG_CHANGE 2u

#define FLAG_VERSION_MASK 3u
#define FLAG_VERSION      1u
#define FLAG_REPLY        4u
#define FLAG_NEED_REPLY   8u

/* Among the virtio features of the back end: there are protocol features. */
#define FEATURE_PROTOCOL_FEATURES (1ull << 30)

#define WANTED_PROTOCOL_FEATURES                                                                                       \
	(VHOST_USER_PROTOCOL_MQ | VHOST_USER_PROTOCOL_REPLY_ACK | VHOST_USER_PROTOCOL_BACKEND_REQ |                    \
	 VHOST_USER_PROTOCOL_CONFIG)

#define MAX_FDS             1u
#define MAX_REQUEST_PAYLOAD 4096u /* of one on the back end's channel */
#define MAX_REQUESTS        64u   /* taken at once: then others have their turn */

struct header {
	uint32_t request;
	uint32_t flags;
	uint32_t size;
};

struct ring_state {
	uint32_t index;
	uint32_t value;
};

struct ring_address {
	uint32_t index;
	uint32_t flags;
	uint64_t desc;
	uint64_t used;
	uint64_t avail;
	uint64_t log;
};

struct memory_table {
	uint32_t num_regions;
	uint32_t padding;
	struct {
		uint64_t guest_address;
		uint64_t size;
		uint64_t user_address; /* what the addresses of rings are taken from */
		uint64_t offset;       /* in the file */
	} region;
};

struct config_area {
	uint32_t offset;
	uint32_t size;
	uint32_t flags;
	unsigned char data[VHOST_USER_MAX_CONFIG];
};

#define CONFIG_AREA_HEADER offsetof(struct config_area, data)

_Static_assert(sizeof(struct header) == 12 && sizeof(((struct vhost_user_incoming *)0)->header) == 12,
	       "laid out as the protocol says");
_Static_assert(sizeof(struct ring_address) == 40 && sizeof(struct memory_table) == 40, "the same");
_Static_assert(CONFIG_AREA_HEADER == 12, "the same");

/* What is sent. */
struct outgoing {
	enum request request;
	const void *payload;
	size_t size;
	int fd; /* -1: none */
};

/* ---- The end --------------------------------------------------------------------------- */

/* The first reason is kept. Only with the lock held. */
__attribute__((format(printf, 2, 3))) static int end_connection(struct vhost_user *vu, const char *format, ...)
{
	va_list args;

	if (!vhost_user_is_broken(vu)) {
		va_start(args, format);
		vsnprintf(vu->why, sizeof(vu->why), format, args);
		va_end(args);
		atomic_store(&vu->broken, true);
		/* Who waits for the socket sees this; its number stays taken until destroy. */
		shutdown(vu->fd, SHUT_RDWR);
	}
	return -ENOTCONN;
}

const char *vhost_user_why(const struct vhost_user *vu)
{
	return vhost_user_is_broken(vu) ? vu->why : "";
}

void vhost_user_lost(struct vhost_user *vu)
{
	pthread_mutex_lock(&vu->lock);
	end_connection(vu, "has closed the connection");
	pthread_mutex_unlock(&vu->lock);
}

/* ---- Bytes ----------------------------------------------------------------------------- */

/* Wait until the socket is ready for @events. A signal that asks the program to end ends the wait too. */
static int wait_ready(struct vhost_user *vu, short events, uint64_t deadline)
{
	for (;;) {
		struct pollfd pollfd = { .fd = vu->fd, .events = events };
		const uint64_t now = monotonic_ns();
		const int timeout_ms = now >= deadline ? 0 : (int)((deadline - now + 999999u) / 1000000u);
		const int ready = poll(&pollfd, 1, timeout_ms);

		if (ready > 0)
			return 0;
		if (ready == 0 && timeout_ms == 0)
			return end_connection(vu, "does not answer (for %u ms)", vu->timeout_ms);
		if (ready < 0 && errno == EINTR && signal_received)
			return end_connection(vu, "has not answered yet");
		if (ready < 0 && errno != EINTR)
			return end_connection(vu, "cannot be waited for: %s", strerror(errno));
	}
}

static bool is_transient(int err)
{
	return err == EINTR || err == EAGAIN || err == EWOULDBLOCK;
}

/* File descriptors go with the first byte. */
static ssize_t send_part(struct vhost_user *vu, const void *data, size_t size, int fd)
{
	union {
		char bytes[CMSG_SPACE(MAX_FDS * sizeof(int))];
		struct cmsghdr align;
	} control = { 0 };
	struct iovec iov = { .iov_base = (void *)(uintptr_t)data, .iov_len = size };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (fd >= 0) {
		struct cmsghdr *cmsg;

		msg.msg_control = &control;
		msg.msg_controllen = CMSG_SPACE(sizeof(int));
		cmsg = CMSG_FIRSTHDR(&msg);
		cmsg->cmsg_level = SOL_SOCKET;
		cmsg->cmsg_type = SCM_RIGHTS;
		cmsg->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(cmsg), &fd, sizeof(fd));
	}
	return sendmsg(vu->fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static int send_all(struct vhost_user *vu, const void *data, size_t size, int fd, uint64_t deadline)
{
	const unsigned char *at = data;

	while (size > 0) {
		const ssize_t sent = send_part(vu, at, size, fd);

		if (sent > 0) {
			at += sent;
			size -= (size_t)sent;
			fd = -1;
		} else if (sent == 0 || is_transient(errno)) {
			if (wait_ready(vu, POLLOUT, deadline))
				return -ENOTCONN;
		} else if (errno == EPIPE || errno == ECONNRESET) {
			return end_connection(vu, "has closed the connection");
		} else {
			return end_connection(vu, "cannot be sent a message: %s", strerror(errno));
		}
	}
	return 0;
}

static int receive_all(struct vhost_user *vu, void *data, size_t size, uint64_t deadline)
{
	unsigned char *at = data;

	while (size > 0) {
		struct iovec iov = { .iov_base = at, .iov_len = size };
		struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
		const ssize_t got = recvmsg(vu->fd, &msg, MSG_DONTWAIT);

		if (got > 0) {
			if (msg.msg_flags & MSG_CTRUNC)
				return end_connection(vu, "has sent a file descriptor where none belongs");
			at += got;
			size -= (size_t)got;
		} else if (got == 0 || errno == ECONNRESET) {
			return end_connection(vu, "has closed the connection");
		} else if (!is_transient(errno)) {
			return end_connection(vu, "cannot be heard: %s", strerror(errno));
		} else if (wait_ready(vu, POLLIN, deadline)) {
			return -ENOTCONN;
		}
	}
	return 0;
}

/* ---- Requests and replies ------------------------------------------------------------------ */

static uint64_t deadline_from_now(const struct vhost_user *vu)
{
	return monotonic_ns() + (uint64_t)vu->timeout_ms * 1000000u;
}

static int send_request(struct vhost_user *vu, const struct outgoing *out, uint32_t flags, uint64_t deadline)
{
	unsigned char bytes[sizeof(struct header) + sizeof(struct config_area)];
	const struct header header = {
		.request = out->request,
		.flags = FLAG_VERSION | flags,
		.size = (uint32_t)out->size,
	};

	if (vhost_user_is_broken(vu))
		return -ENOTCONN;
	memcpy(bytes, &header, sizeof(header));
	if (out->size > 0)
		memcpy(bytes + sizeof(header), out->payload, out->size);
	return send_all(vu, bytes, sizeof(header) + out->size, out->fd, deadline);
}

/* The reply to @request: it must have exactly @size bytes. */
static int receive_reply(struct vhost_user *vu, enum request request, void *reply, size_t size, uint64_t deadline)
{
	struct header header;

	if (receive_all(vu, &header, sizeof(header), deadline))
		return -ENOTCONN;
	if (header.request != request ||
	    (header.flags & (FLAG_VERSION_MASK | FLAG_REPLY)) != (FLAG_VERSION | FLAG_REPLY))
		return end_connection(vu, "has sent message %u with flags 0x%x where the reply to %u belongs",
				      header.request, header.flags, request);
	if (header.size != size)
		return end_connection(vu, "has replied to message %u with %u bytes instead of %zu", request,
				      header.size, size);
	return receive_all(vu, reply, size, deadline);
}

/* A request that asks for something. */
static int ask(struct vhost_user *vu, const struct outgoing *out, void *reply, size_t size)
{
	uint64_t deadline;
	int ret;

	pthread_mutex_lock(&vu->lock);
	deadline = deadline_from_now(vu);
	ret = send_request(vu, out, 0, deadline);
	if (!ret)
		ret = receive_reply(vu, out->request, reply, size, deadline);
	pthread_mutex_unlock(&vu->lock);
	return ret;
}

/* A request that tells something. With REPLY_ACK the back end says whether it has understood. */
static int tell(struct vhost_user *vu, const struct outgoing *out)
{
	const bool acknowledged = vu->protocol_features & VHOST_USER_PROTOCOL_REPLY_ACK;
	uint64_t refusal = 0;
	uint64_t deadline;
	int ret;

	pthread_mutex_lock(&vu->lock);
	deadline = deadline_from_now(vu);
	ret = send_request(vu, out, acknowledged ? FLAG_NEED_REPLY : 0, deadline);
	if (!ret && acknowledged)
		ret = receive_reply(vu, out->request, &refusal, sizeof(refusal), deadline);
	pthread_mutex_unlock(&vu->lock);
	return ret ? ret : refusal ? -EREMOTEIO : 0;
}

static int ask_u64(struct vhost_user *vu, enum request request, uint64_t *value)
{
	const struct outgoing out = { .request = request, .fd = -1 };

	return ask(vu, &out, value, sizeof(*value));
}

static int tell_u64(struct vhost_user *vu, enum request request, uint64_t value, int fd)
{
	const struct outgoing out = { .request = request, .payload = &value, .size = sizeof(value), .fd = fd };

	return tell(vu, &out);
}

static int tell_ring(struct vhost_user *vu, enum request request, unsigned index, uint32_t value)
{
	const struct ring_state state = { .index = index, .value = value };
	const struct outgoing out = { .request = request, .payload = &state, .size = sizeof(state), .fd = -1 };

	return tell(vu, &out);
}

/* ---- The back end's own channel ---------------------------------------------------------------- */

/* It gets one end of it; -ENOTCONN if that was not to be. */
static int offer_request_channel(struct vhost_user *vu)
{
	struct outgoing out = { .request = SET_BACKEND_REQ_FD };
	int pair[2];
	int ret;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
		return 0; /* then there is none */
	out.fd = pair[1];
	ret = tell(vu, &out);
	close(pair[1]);
	if (ret)
		close(pair[0]);
	else
		vu->request_fd = pair[0];
	return ret == -EREMOTEIO ? 0 : ret;
}

static void close_request_channel(struct vhost_user *vu)
{
	if (vu->request_fd >= 0)
		close(vu->request_fd);
	vu->request_fd = -1;
}

/* What is not known is refused. A back end that does not take its replies gets none. */
static void answer_request(struct vhost_user *vu, const struct header *header, uint64_t refusal)
{
	struct {
		struct header header;
		uint32_t value[2];
	} reply = {
		.header = {
			.request = header->request,
			.flags = FLAG_VERSION | FLAG_REPLY,
			.size = sizeof(refusal),
		},
	};

	memcpy(reply.value, &refusal, sizeof(refusal));
	if ((header->flags & FLAG_NEED_REPLY) &&
	    send(vu->request_fd, &reply, sizeof(reply), MSG_NOSIGNAL | MSG_DONTWAIT) != sizeof(reply))
		close_request_channel(vu);
}

/* Returns false if the channel has nothing more, or was closed. */
static bool receive_request_bytes(struct vhost_user *vu, void *data, size_t size, size_t *got)
{
	/* As above, what comes in file descriptors is closed by the kernel. */
	const ssize_t n = recv(vu->request_fd, data, size, MSG_DONTWAIT);

	*got = n > 0 ? (size_t)n : 0;
	if (n == 0 || (n < 0 && !is_transient(errno)))
		close_request_channel(vu);
	return n > 0;
}

static void take_request(struct vhost_user *vu, bool *config_changed)
{
	struct header header;

	memcpy(&header, vu->incoming.header, sizeof(header));
	vu->incoming.got = 0;
	vu->incoming.skip = header.size;
	if ((header.flags & FLAG_VERSION_MASK) != FLAG_VERSION || header.size > MAX_REQUEST_PAYLOAD) {
		close_request_channel(vu);
		return;
	}
	if (header.request == BACKEND_CONFIG_CHANGE && header.size == 0)
		*config_changed = true;
	answer_request(vu, &header, header.request == BACKEND_CONFIG_CHANGE ? 0 : 1);
}

int vhost_user_take_requests(struct vhost_user *vu, bool *config_changed)
{
	struct vhost_user_incoming *in = &vu->incoming;
	unsigned char dropped[256];
	size_t got;

	for (unsigned i = 0; i < MAX_REQUESTS && vu->request_fd >= 0; i++) {
		if (in->skip > 0) {
			const size_t size = in->skip < sizeof(dropped) ? in->skip : sizeof(dropped);

			if (!receive_request_bytes(vu, dropped, size, &got))
				break;
			in->skip -= got;
		} else {
			if (!receive_request_bytes(vu, in->header + in->got, sizeof(in->header) - in->got, &got))
				break;
			in->got += got;
			if (in->got == sizeof(in->header))
				take_request(vu, config_changed);
		}
	}
	return vhost_user_is_broken(vu) ? -ENOTCONN : 0;
}

/* ---- Setting up ------------------------------------------------------------------------------------ */

int vhost_user_connect(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	const size_t length = strlen(path);
	int fd;
	int err;

	if (length >= sizeof(address.sun_path))
		return -ENAMETOOLONG;
	memcpy(address.sun_path, path, length);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0)
		return fd;
	err = errno;
	close(fd);
	return -err;
}

void vhost_user_init(struct vhost_user *vu, int fd, unsigned timeout_ms)
{
	memset(vu, 0, sizeof(*vu));
	pthread_mutex_init(&vu->lock, NULL);
	vu->fd = fd;
	vu->request_fd = -1;
	vu->timeout_ms = timeout_ms;
	vu->num_queues = 1;
	atomic_init(&vu->broken, false);
}

void vhost_user_destroy(struct vhost_user *vu)
{
	close_request_channel(vu);
	close(vu->fd);
	vu->fd = -1;
	pthread_mutex_destroy(&vu->lock);
}

static int negotiate_protocol_features(struct vhost_user *vu)
{
	uint64_t offered = 0;
	uint64_t wanted;
	uint64_t num = 1;
	int ret;

	ret = ask_u64(vu, GET_PROTOCOL_FEATURES, &offered);
	if (ret)
		return ret;
	wanted = offered & WANTED_PROTOCOL_FEATURES;
	/* Not acknowledged: that is just being agreed on. */
	ret = tell_u64(vu, SET_PROTOCOL_FEATURES, wanted, -1);
	if (ret)
		return ret;
	vu->protocol_features = wanted;
	if (wanted & VHOST_USER_PROTOCOL_MQ) {
		ret = ask_u64(vu, GET_QUEUE_NUM, &num);
		if (ret)
			return ret;
		vu->num_queues = num < VIRTIO_MAX_QUEUES ? (unsigned)num : VIRTIO_MAX_QUEUES;
	}
	return wanted & VHOST_USER_PROTOCOL_BACKEND_REQ ? offer_request_channel(vu) : 0;
}

int vhost_user_negotiate(struct vhost_user *vu)
{
	const struct outgoing set_owner = { .request = SET_OWNER, .fd = -1 };
	int ret;

	ret = tell(vu, &set_owner);
	if (!ret)
		ret = ask_u64(vu, GET_FEATURES, &vu->features);
	if (!ret && (vu->features & FEATURE_PROTOCOL_FEATURES))
		ret = negotiate_protocol_features(vu);
	return ret;
}

/* The user address of the region is the guest's: then no address of ours is told to anybody. */
int vhost_user_set_memory(struct vhost_user *vu, const struct vhost_user_memory *memory)
{
	const struct memory_table table = {
		.num_regions = 1,
		.region = { .guest_address = memory->base, .size = memory->size, .user_address = memory->base },
	};
	const struct outgoing out = {
		.request = SET_MEM_TABLE,
		.payload = &table,
		.size = sizeof(table),
		.fd = memory->fd,
	};

	return tell(vu, &out);
}

/* Without FEATURE_PROTOCOL_FEATURES among them rings would run as soon as they are kicked, enabled or not. */
int vhost_user_set_features(struct vhost_user *vu, uint64_t features)
{
	return tell_u64(vu, SET_FEATURES, features | (vu->features & FEATURE_PROTOCOL_FEATURES), -1);
}

/* ---- Rings --------------------------------------------------------------------------------------- */

static int tell_ring_address(struct vhost_user *vu, unsigned index, const struct virtio_queue_setup *setup)
{
	const struct ring_address address = {
		.index = index,
		.desc = setup->desc,
		.used = setup->used,
		.avail = setup->avail,
	};
	const struct outgoing out = {
		.request = SET_VRING_ADDR,
		.payload = &address,
		.size = sizeof(address),
		.fd = -1,
	};

	return tell(vu, &out);
}

static int enable_ring(struct vhost_user *vu, unsigned index, bool enable)
{
	return vu->features & FEATURE_PROTOCOL_FEATURES ? tell_ring(vu, SET_VRING_ENABLE, index, enable) : 0;
}

int vhost_user_start_ring(struct vhost_user *vu, unsigned index, const struct virtio_queue_setup *setup,
			  const struct vhost_user_ring_fds *fds)
{
	int ret;

	ret = tell_ring(vu, SET_VRING_NUM, index, setup->size);
	if (!ret)
		ret = tell_ring(vu, SET_VRING_BASE, index, 0);
	if (!ret)
		ret = tell_ring_address(vu, index, setup);
	if (!ret)
		ret = tell_u64(vu, SET_VRING_CALL, index, fds->call);
	if (!ret)
		ret = tell_u64(vu, SET_VRING_ERR, index, fds->err);
	if (!ret)
		ret = tell_u64(vu, SET_VRING_KICK, index, fds->kick);
	return ret ? ret : enable_ring(vu, index, true);
}

int vhost_user_stop_ring(struct vhost_user *vu, unsigned index)
{
	const struct ring_state ring = { .index = index };
	const struct outgoing out = { .request = GET_VRING_BASE, .payload = &ring, .size = sizeof(ring), .fd = -1 };
	struct ring_state reply;
	int ret;

	/* A refusal is no matter: what stops the ring is that its base is taken. */
	ret = enable_ring(vu, index, false);
	if (ret && ret != -EREMOTEIO)
		return ret;
	return ask(vu, &out, &reply, sizeof(reply));
}

/* ---- The device's configuration ---------------------------------------------------------------------- */

int vhost_user_get_config(struct vhost_user *vu, uint32_t offset, void *data, uint32_t size)
{
	const struct config_area wanted = { .offset = offset, .size = size };
	const size_t length = CONFIG_AREA_HEADER + size;
	const struct outgoing out = { .request = GET_CONFIG, .payload = &wanted, .size = length, .fd = -1 };
	struct config_area reply = { 0 };
	int ret;

	if (size > VHOST_USER_MAX_CONFIG)
		return -EINVAL;
	ret = ask(vu, &out, &reply, length);
	if (ret)
		return ret;
	if (reply.offset != offset || reply.size != size) {
		pthread_mutex_lock(&vu->lock);
		ret = end_connection(vu, "has replied with %u bytes of configuration from %u instead of %u from %u",
				     reply.size, reply.offset, size, offset);
		pthread_mutex_unlock(&vu->lock);
		return ret;
	}
	memcpy(data, reply.data, size);
	return 0;
}

int vhost_user_set_config(struct vhost_user *vu, uint32_t offset, const void *data, uint32_t size)
{
	struct config_area area = { .offset = offset, .size = size };
	const struct outgoing out = {
		.request = SET_CONFIG,
		.payload = &area,
		.size = CONFIG_AREA_HEADER + size,
		.fd = -1,
	};

	if (size > VHOST_USER_MAX_CONFIG)
		return -EINVAL;
	memcpy(area.data, data, size);
	return tell(vu, &out);
}
