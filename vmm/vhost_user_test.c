/* SPDX-License-Identifier: MIT */
/*
 * Tests of the vhost-user protocol engine against back ends that are threads of this
 * program: one that behaves, and checks every message that it gets; and the same one
 * with a fault at each place where there can be one. Whatever it does, calls return
 * in time, the connection ends with a reason, and no file descriptor is left over.
 */
#define _GNU_SOURCE

/* Before cmocka's header, which makes a macro of fail(). */
#include "vhost_user.h"

/* cmocka wants these before its own header. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#define LONG_TIMEOUT_MS  20000u /* never reached by a back end that answers */
#define SHORT_TIMEOUT_MS 30u    /* for those that do not */

#define RAM_SIZE    0x10000u
#define RAM_BASE    0x40000000u
#define CONFIG_SIZE 60u

#define FEATURES          ((1ull << 32) | (1ull << 30) | (1ull << 9) | (1ull << 12))
#define PROTOCOL_FEATURES (~0ull) /* more than the front end knows */
#define WANTED_PROTOCOL_FEATURES                                                                                       \
	(VHOST_USER_PROTOCOL_MQ | VHOST_USER_PROTOCOL_REPLY_ACK | VHOST_USER_PROTOCOL_BACKEND_REQ |                    \
	 VHOST_USER_PROTOCOL_CONFIG)

/* As the protocol numbers them: written down anew, so that a slip of the front end's shows. */
enum {
	M_GET_FEATURES = 1,
	M_SET_FEATURES = 2,
	M_SET_OWNER = 3,
	M_SET_MEM_TABLE = 5,
	M_SET_VRING_NUM = 8,
	M_SET_VRING_ADDR = 9,
	M_SET_VRING_BASE = 10,
	M_GET_VRING_BASE = 11,
	M_SET_VRING_KICK = 12,
	M_SET_VRING_CALL = 13,
	M_SET_VRING_ERR = 14,
	M_GET_PROTOCOL_FEATURES = 15,
	M_SET_PROTOCOL_FEATURES = 16,
	M_GET_QUEUE_NUM = 17,
	M_SET_VRING_ENABLE = 18,
	M_SET_BACKEND_REQ_FD = 21,
	M_GET_CONFIG = 24,
	M_SET_CONFIG = 25,
};

struct message {
	uint32_t request;
	uint32_t flags;
	uint32_t size;
	unsigned char payload[300];
	int fd;
};

#define HEADER_SIZE offsetof(struct message, payload)

/* ---- The back end ---------------------------------------------------------------------- */

enum fault {
	FAULT_NONE,
	FAULT_CLOSE,         /* instead of a reply */
	FAULT_HALF_HEADER,   /* then it closes */
	FAULT_HALF_PAYLOAD,  /* the same */
	FAULT_WRONG_REQUEST, /* the reply to another message */
	FAULT_NO_REPLY_FLAG,
	FAULT_WRONG_VERSION,
	FAULT_TOO_LARGE, /* a payload of 4 GiB - 1 */
	FAULT_TOO_SMALL, /* one byte less */
	FAULT_ONE_FD,    /* beside the reply */
	FAULT_MANY_FDS,
	FAULT_SILENCE,
	FAULT_HALF_SILENCE, /* half of a reply */
	FAULT_REFUSAL,      /* an acknowledgement that is none, or a configuration of another size */
	NUM_FAULTS,
	FAULT_TRICKLE, /* no fault: single bytes */
};

struct back_end {
	int fd;
	pthread_t thread;
	uint64_t protocol_features;
	enum fault fault;
	unsigned fault_at; /* the reply, counted from 0 */
	int quiet_fd;      /* readable when the front end has left: silence ends then */

	/* What it saw. */
	unsigned num_messages;
	unsigned num_replies;
	unsigned order[64];
	struct message last[32]; /* of each request, its last message */
	int request_fd;          /* its own channel */
	bool faulted;
	bool wrong; /* a message that is not as it must be */
};

static bool get_message(struct back_end *b, struct message *m)
{
	union {
		char bytes[CMSG_SPACE(8 * sizeof(int))];
		struct cmsghdr align;
	} control;
	struct iovec iov = { .iov_base = m, .iov_len = HEADER_SIZE };
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	struct cmsghdr *cmsg;

	if (recvmsg(b->fd, &msg, MSG_WAITALL | MSG_CMSG_CLOEXEC) != (ssize_t)HEADER_SIZE)
		return false;
	m->fd = -1;
	cmsg = CMSG_FIRSTHDR(&msg);
	if (cmsg) {
		if (cmsg->cmsg_len != CMSG_LEN(sizeof(int)))
			b->wrong = true;
		memcpy(&m->fd, CMSG_DATA(cmsg), sizeof(int));
	}
	if (m->size > sizeof(m->payload)) {
		b->wrong = true;
		return false;
	}
	return m->size == 0 || recv(b->fd, m->payload, m->size, MSG_WAITALL) == (ssize_t)m->size;
}

static void send_bytes(int fd, const void *data, size_t size, unsigned num_fds)
{
	union {
		char bytes[CMSG_SPACE(100 * sizeof(int))];
		struct cmsghdr align;
	} control = { 0 };
	struct iovec iov = { .iov_base = (void *)(uintptr_t)data, .iov_len = size };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (num_fds) {
		struct cmsghdr *cmsg;

		msg.msg_control = &control;
		msg.msg_controllen = CMSG_SPACE(num_fds * sizeof(int));
		cmsg = CMSG_FIRSTHDR(&msg);
		cmsg->cmsg_level = SOL_SOCKET;
		cmsg->cmsg_type = SCM_RIGHTS;
		cmsg->cmsg_len = CMSG_LEN(num_fds * sizeof(int));
		for (unsigned i = 0; i < num_fds; i++)
			memcpy(CMSG_DATA(cmsg) + i * sizeof(int), &fd, sizeof(int));
	}
	if (size && sendmsg(fd, &msg, MSG_NOSIGNAL) != (ssize_t)size)
		return;
}

/* Say nothing until the front end has given up. */
static void stay_silent(struct back_end *b)
{
	struct pollfd pollfd = { .fd = b->fd, .events = POLLRDHUP };

	poll(&pollfd, 1, -1);
}

/* Returns false if the back end has done its worst. */
static bool send_reply(struct back_end *b, struct message *m, const void *payload, uint32_t size)
{
	const bool at_fault = b->num_replies++ == b->fault_at && b->fault != FAULT_NONE;
	size_t length = HEADER_SIZE + size;
	unsigned num_fds = 0;

	m->flags = 1 | 4;
	m->size = size;
	memcpy(m->payload, payload, size);
	if (b->fault == FAULT_TRICKLE) {
		for (size_t i = 0; i < length; i++)
			send_bytes(b->fd, (char *)m + i, 1, 0);
		return true;
	}
	if (!at_fault) {
		send_bytes(b->fd, m, length, 0);
		return true;
	}
	b->faulted = true;
	switch (b->fault) {
	case FAULT_CLOSE:
		return false;
	case FAULT_HALF_HEADER:
		send_bytes(b->fd, m, HEADER_SIZE / 2, 0);
		return false;
	case FAULT_HALF_PAYLOAD:
		send_bytes(b->fd, m, HEADER_SIZE + size / 2, 0);
		return false;
	case FAULT_WRONG_REQUEST:
		m->request++;
		break;
	case FAULT_NO_REPLY_FLAG:
		m->flags = 1;
		break;
	case FAULT_WRONG_VERSION:
		m->flags = 2 | 4;
		break;
	case FAULT_TOO_LARGE:
		m->size = UINT32_MAX;
		break;
	case FAULT_TOO_SMALL:
		m->size--;
		length--;
		break;
	case FAULT_ONE_FD:
		num_fds = 1;
		break;
	case FAULT_MANY_FDS:
		num_fds = 100;
		break;
	case FAULT_HALF_SILENCE:
		send_bytes(b->fd, m, HEADER_SIZE + size / 2, 0);
		stay_silent(b);
		return false;
	case FAULT_SILENCE:
		stay_silent(b);
		return false;
	default: /* FAULT_REFUSAL */
		m->payload[4] ^= 1;
		break;
	}
	send_bytes(b->fd, m, length, num_fds);
	return true;
}

static bool takes_fd(uint32_t request)
{
	return request == M_SET_MEM_TABLE || request == M_SET_VRING_KICK || request == M_SET_VRING_CALL ||
	       request == M_SET_VRING_ERR || request == M_SET_BACKEND_REQ_FD;
}

static uint32_t payload_size(const struct message *m)
{
	switch (m->request) {
	case M_GET_FEATURES:
	case M_SET_OWNER:
	case M_GET_PROTOCOL_FEATURES:
	case M_GET_QUEUE_NUM:
	case M_SET_BACKEND_REQ_FD:
		return 0;
	case M_SET_MEM_TABLE:
	case M_SET_VRING_ADDR:
		return 40;
	case M_GET_CONFIG:
		return 12 + CONFIG_SIZE;
	case M_SET_CONFIG:
		return 12 + 1;
	default:
		return 8;
	}
}

static bool is_question(uint32_t request)
{
	return request == M_GET_FEATURES || request == M_GET_PROTOCOL_FEATURES || request == M_GET_QUEUE_NUM ||
	       request == M_GET_VRING_BASE || request == M_GET_CONFIG;
}

static bool answer_question(struct back_end *b, struct message *m)
{
	uint64_t value = 2; /* queues */
	unsigned char config[12 + CONFIG_SIZE];

	switch (m->request) {
	case M_GET_FEATURES:
		value = FEATURES;
		break;
	case M_GET_PROTOCOL_FEATURES:
		value = b->protocol_features;
		break;
	case M_GET_VRING_BASE:
		memcpy(&value, m->payload, sizeof(value));
		break;
	case M_GET_CONFIG:
		memcpy(config, m->payload, 12);
		for (unsigned i = 0; i < CONFIG_SIZE; i++)
			config[12 + i] = (unsigned char)(i * 3);
		return send_reply(b, m, config, sizeof(config));
	default:
		break;
	}
	return send_reply(b, m, &value, sizeof(value));
}

static void *back_end_thread(void *argument)
{
	struct back_end *b = argument;
	struct message m = { 0 };
	bool go_on = true;

	while (go_on && get_message(b, &m)) {
		const bool need_reply = m.flags & 8;
		/* All but questions are acknowledged as soon as that was agreed on. */
		const bool agreed = b->last[M_SET_PROTOCOL_FEATURES].request &&
				    (b->last[M_SET_PROTOCOL_FEATURES].payload[0] & VHOST_USER_PROTOCOL_REPLY_ACK);

		if (b->num_messages < 64)
			b->order[b->num_messages] = m.request;
		b->num_messages++;
		if (m.request >= 32 || (m.flags & ~8u) != 1 || need_reply != (agreed && !is_question(m.request)) ||
		    (m.fd >= 0) != takes_fd(m.request) || m.size != payload_size(&m))
			b->wrong = true;
		if (m.request < 32)
			b->last[m.request] = m;
		if (m.request == M_SET_BACKEND_REQ_FD && b->request_fd < 0)
			b->request_fd = m.fd;
		else if (m.fd >= 0)
			close(m.fd);
		if (is_question(m.request))
			go_on = answer_question(b, &m);
		else if (need_reply)
			go_on = send_reply(b, &m, &(uint64_t){ 0 }, 8);
	}
	close(b->fd);
	return NULL;
}

/* ---- The front end's side ------------------------------------------------------------------ */

static unsigned count_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned count = 0;

	assert_non_null(dir);
	while (readdir(dir))
		count++;
	closedir(dir);
	return count;
}

struct rig {
	struct back_end back_end;
	struct vhost_user vu;
	int ram_fd;
	struct vhost_user_ring_fds fds;
	unsigned fds_before;
};

static void rig_start(struct rig *rig, enum fault fault, unsigned fault_at, unsigned timeout_ms)
{
	int pair[2];

	memset(rig, 0, sizeof(*rig));
	rig->fds_before = count_fds();
	rig->ram_fd = memfd_create("ram", MFD_CLOEXEC);
	rig->fds.kick = eventfd(0, EFD_CLOEXEC);
	rig->fds.call = eventfd(0, EFD_CLOEXEC);
	rig->fds.err = eventfd(0, EFD_CLOEXEC);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	rig->back_end.fd = pair[1];
	rig->back_end.request_fd = -1;
	rig->back_end.protocol_features = PROTOCOL_FEATURES;
	rig->back_end.fault = fault;
	rig->back_end.fault_at = fault_at;
	vhost_user_init(&rig->vu, pair[0], timeout_ms);
	assert_int_equal(pthread_create(&rig->back_end.thread, NULL, back_end_thread, &rig->back_end), 0);
}

/* Nothing may be left. */
static void rig_stop(struct rig *rig)
{
	vhost_user_destroy(&rig->vu);
	pthread_join(rig->back_end.thread, NULL);
	if (rig->back_end.request_fd >= 0)
		close(rig->back_end.request_fd);
	close(rig->ram_fd);
	close(rig->fds.kick);
	close(rig->fds.call);
	close(rig->fds.err);
	assert_int_equal(count_fds(), rig->fds_before);
	assert_false(rig->back_end.wrong);
}

static const struct virtio_queue_setup setup = {
	.size = 64,
	.desc = RAM_BASE + 0x1000,
	.avail = RAM_BASE + 0x2000,
	.used = RAM_BASE + 0x3000,
};

/* All that a front end does in its life; returns the first error. */
static int run_session(struct rig *rig)
{
	const struct vhost_user_memory memory = { .base = RAM_BASE, .size = RAM_SIZE, .fd = rig->ram_fd };
	unsigned char config[CONFIG_SIZE];
	int ret;

	ret = vhost_user_negotiate(&rig->vu);
	if (!ret)
		ret = vhost_user_get_config(&rig->vu, 0, config, sizeof(config));
	if (!ret)
		ret = vhost_user_set_memory(&rig->vu, &memory);
	if (!ret)
		ret = vhost_user_set_features(&rig->vu, (1ull << 32) | (1ull << 9));
	for (unsigned i = 0; i < 2 && !ret; i++)
		ret = vhost_user_start_ring(&rig->vu, i, &setup, &rig->fds);
	if (!ret)
		ret = vhost_user_set_config(&rig->vu, 32, "\1", 1);
	for (unsigned i = 0; i < 2 && !ret; i++)
		ret = vhost_user_stop_ring(&rig->vu, i);
	return ret;
}

/* ---- Tests --------------------------------------------------------------------------------- */

static uint32_t u32_at(const struct message *m, unsigned offset)
{
	uint32_t value;

	memcpy(&value, m->payload + offset, sizeof(value));
	return value;
}

static uint64_t u64_at(const struct message *m, unsigned offset)
{
	uint64_t value;

	memcpy(&value, m->payload + offset, sizeof(value));
	return value;
}

static void session_sends_what_the_protocol_says(void **state)
{
	static const unsigned order[] = {
		M_SET_OWNER,
		M_GET_FEATURES,
		M_GET_PROTOCOL_FEATURES,
		M_SET_PROTOCOL_FEATURES,
		M_GET_QUEUE_NUM,
		M_SET_BACKEND_REQ_FD,
		M_GET_CONFIG,
		M_SET_MEM_TABLE,
		M_SET_FEATURES,
		M_SET_VRING_NUM,
		M_SET_VRING_BASE,
		M_SET_VRING_ADDR,
		M_SET_VRING_CALL,
		M_SET_VRING_ERR,
		M_SET_VRING_KICK,
		M_SET_VRING_ENABLE,
		M_SET_VRING_NUM,
		M_SET_VRING_BASE,
		M_SET_VRING_ADDR,
		M_SET_VRING_CALL,
		M_SET_VRING_ERR,
		M_SET_VRING_KICK,
		M_SET_VRING_ENABLE,
		M_SET_CONFIG,
		M_SET_VRING_ENABLE,
		M_GET_VRING_BASE,
		M_SET_VRING_ENABLE,
		M_GET_VRING_BASE,
	};
	const struct message *last;
	struct rig rig;

	(void)state;
	rig_start(&rig, FAULT_NONE, 0, LONG_TIMEOUT_MS);
	assert_int_equal(run_session(&rig), 0);
	assert_string_equal(vhost_user_why(&rig.vu), "");
	assert_int_equal(rig.vu.features, FEATURES);
	assert_int_equal(rig.vu.protocol_features, WANTED_PROTOCOL_FEATURES);
	assert_int_equal(rig.vu.num_queues, 2);
	rig_stop(&rig);

	assert_int_equal(rig.back_end.num_messages, sizeof(order) / sizeof(order[0]));
	assert_memory_equal(rig.back_end.order, order, sizeof(order));
	last = rig.back_end.last;
	assert_int_equal(u64_at(&last[M_SET_PROTOCOL_FEATURES], 0), WANTED_PROTOCOL_FEATURES);
	assert_int_equal(u64_at(&last[M_SET_FEATURES], 0), (1ull << 32) | (1ull << 30) | (1ull << 9));
	assert_int_equal(u32_at(&last[M_SET_MEM_TABLE], 0), 1);
	assert_int_equal(u64_at(&last[M_SET_MEM_TABLE], 8), RAM_BASE);
	assert_int_equal(u64_at(&last[M_SET_MEM_TABLE], 16), RAM_SIZE);
	assert_int_equal(u64_at(&last[M_SET_MEM_TABLE], 24), RAM_BASE);
	assert_int_equal(u64_at(&last[M_SET_MEM_TABLE], 32), 0);
	assert_int_equal(u32_at(&last[M_SET_VRING_NUM], 0), 1);
	assert_int_equal(u32_at(&last[M_SET_VRING_NUM], 4), 64);
	assert_int_equal(u32_at(&last[M_SET_VRING_BASE], 4), 0);
	assert_int_equal(u32_at(&last[M_SET_VRING_ADDR], 0), 1);
	assert_int_equal(u32_at(&last[M_SET_VRING_ADDR], 4), 0);
	assert_int_equal(u64_at(&last[M_SET_VRING_ADDR], 8), setup.desc);
	assert_int_equal(u64_at(&last[M_SET_VRING_ADDR], 16), setup.used);
	assert_int_equal(u64_at(&last[M_SET_VRING_ADDR], 24), setup.avail);
	assert_int_equal(u64_at(&last[M_SET_VRING_KICK], 0), 1);
	assert_int_equal(u64_at(&last[M_SET_VRING_CALL], 0), 1);
	assert_int_equal(u64_at(&last[M_SET_VRING_ERR], 0), 1);
	assert_int_equal(u32_at(&last[M_SET_VRING_ENABLE], 0), 1);
	assert_int_equal(u32_at(&last[M_SET_VRING_ENABLE], 4), 0);
	assert_int_equal(u32_at(&last[M_GET_VRING_BASE], 0), 1);
	assert_int_equal(u32_at(&last[M_SET_CONFIG], 0), 32);
	assert_int_equal(u32_at(&last[M_SET_CONFIG], 4), 1);
	assert_int_equal(last[M_SET_CONFIG].payload[12], 1);
}

/* A back end without REPLY_ACK gets no flag that asks for one, and without MQ has one queue. */
static void session_does_without_what_is_not_offered(void **state)
{
	struct rig rig;

	(void)state;
	rig_start(&rig, FAULT_NONE, 0, LONG_TIMEOUT_MS);
	rig.back_end.protocol_features = VHOST_USER_PROTOCOL_CONFIG;
	assert_int_equal(run_session(&rig), 0);
	assert_int_equal(rig.vu.protocol_features, VHOST_USER_PROTOCOL_CONFIG);
	assert_int_equal(rig.vu.num_queues, 1);
	assert_int_equal(rig.vu.request_fd, -1);
	/* Behind an answer all messages before it have been seen. */
	assert_int_equal(rig.back_end.last[M_SET_BACKEND_REQ_FD].request, 0);
	assert_int_equal(rig.back_end.last[M_GET_QUEUE_NUM].request, 0);
	rig_stop(&rig);
}

static void config_is_what_the_back_end_says(void **state)
{
	unsigned char config[CONFIG_SIZE];
	struct rig rig;

	(void)state;
	rig_start(&rig, FAULT_NONE, 0, LONG_TIMEOUT_MS);
	assert_int_equal(vhost_user_negotiate(&rig.vu), 0);
	assert_int_equal(vhost_user_get_config(&rig.vu, 0, config, sizeof(config)), 0);
	for (unsigned i = 0; i < CONFIG_SIZE; i++)
		assert_int_equal(config[i], i * 3 % 256);
	assert_int_equal(vhost_user_get_config(&rig.vu, 0, config, VHOST_USER_MAX_CONFIG + 1), -EINVAL);
	assert_int_equal(vhost_user_set_config(&rig.vu, 0, config, VHOST_USER_MAX_CONFIG + 1), -EINVAL);
	rig_stop(&rig);
}

static void reply_in_single_bytes_is_taken(void **state)
{
	struct rig rig;

	(void)state;
	rig_start(&rig, FAULT_TRICKLE, 0, LONG_TIMEOUT_MS);
	assert_int_equal(run_session(&rig), 0);
	rig_stop(&rig);
}

static bool is_silence(enum fault fault)
{
	return fault == FAULT_SILENCE || fault == FAULT_HALF_SILENCE;
}

/* A refusal of what tells something is an answer, and so are other values of what was asked for. */
static void check_outcome(struct rig *rig, enum fault fault, int ret)
{
	unsigned char config[CONFIG_SIZE];

	if (fault == FAULT_REFUSAL && !vhost_user_is_broken(&rig->vu)) {
		assert_true(ret == 0 || ret == -EREMOTEIO);
		return;
	}
	assert_true(vhost_user_is_broken(&rig->vu));
	assert_int_not_equal(vhost_user_why(&rig->vu)[0], '\0');
	/* Without REPLY_ACK the last calls might not notice; with it each does. */
	assert_true(ret == -ENOTCONN);
	assert_int_equal(vhost_user_get_config(&rig->vu, 0, config, sizeof(config)), -ENOTCONN);
	assert_int_equal(vhost_user_stop_ring(&rig->vu, 0), -ENOTCONN);
	assert_int_equal(run_session(rig), -ENOTCONN);
}

static void every_fault_at_every_reply_ends_the_connection(void **state)
{
	struct rig rig;
	unsigned num_replies;
	unsigned refused = 0;

	(void)state;
	rig_start(&rig, FAULT_NONE, 0, LONG_TIMEOUT_MS);
	assert_int_equal(run_session(&rig), 0);
	num_replies = rig.back_end.num_replies;
	rig_stop(&rig);
	/* All messages but those up to SET_PROTOCOL_FEATURES that tell something. */
	assert_int_equal(num_replies, rig.back_end.num_messages - 2);

	for (enum fault fault = FAULT_CLOSE; fault < NUM_FAULTS; fault++) {
		for (unsigned at = 0; at < num_replies; at++) {
			int ret;

			rig_start(&rig, fault, at, is_silence(fault) ? SHORT_TIMEOUT_MS : LONG_TIMEOUT_MS);
			ret = run_session(&rig);
			check_outcome(&rig, fault, ret);
			refused += ret == -EREMOTEIO;
			rig_stop(&rig);
			/* On a busy machine the connection may be given up before. */
			assert_true(rig.back_end.faulted || is_silence(fault));
		}
	}
	/* SET_MEM_TABLE, SET_FEATURES, 2 * 7 for the rings, SET_CONFIG; the channel and SET_VRING_ENABLE=0 may be. */
	assert_int_equal(refused, 17);
}

/* Random replies of the right and of other sizes, a new one to each request, as long as the connection stands. */
static void *random_back_end(void *argument)
{
	struct back_end *b = argument;
	unsigned seed = b->fault_at;
	struct message m;

	while (get_message(b, &m)) {
		struct message reply;

		if (m.fd >= 0)
			close(m.fd);
		for (size_t i = 0; i < sizeof(reply.payload); i++)
			reply.payload[i] = (unsigned char)rand_r(&seed);
		reply.request = rand_r(&seed) % 8 ? m.request : (uint32_t)rand_r(&seed) % 32;
		reply.flags = rand_r(&seed) % 8 ? 5 : (uint32_t)rand_r(&seed);
		reply.size = is_question(m.request) && m.request == M_GET_CONFIG ? m.size : 8;
		if (rand_r(&seed) % 8 == 0)
			reply.size = (uint32_t)rand_r(&seed) % 300;
		if (rand_r(&seed) % 4)
			send_bytes(b->fd, &reply, HEADER_SIZE + reply.size, rand_r(&seed) % 8 ? 0 : 3);
		else if (rand_r(&seed) % 4 == 0)
			break;
	}
	close(b->fd);
	return NULL;
}

static void random_replies_do_no_harm(void **state)
{
	(void)state;
	for (unsigned seed = 1; seed <= 300; seed++) {
		const unsigned before = count_fds();
		struct rig rig = { .back_end = { .fault_at = seed, .request_fd = -1 } };
		int pair[2];
		int ret;

		rig.ram_fd = rig.fds.kick = rig.fds.call = rig.fds.err = eventfd(0, EFD_CLOEXEC);
		assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
		rig.back_end.fd = pair[1];
		vhost_user_init(&rig.vu, pair[0], 2);
		pthread_create(&rig.back_end.thread, NULL, random_back_end, &rig.back_end);
		ret = run_session(&rig);
		assert_true(ret == 0 || ret == -ENOTCONN || ret == -EREMOTEIO);
		assert_true(rig.vu.num_queues <= VIRTIO_MAX_QUEUES);
		vhost_user_destroy(&rig.vu);
		pthread_join(rig.back_end.thread, NULL);
		close(rig.ram_fd);
		assert_int_equal(count_fds(), before);
	}
}

/* A back end that reads nothing: the socket's buffer fills up, and the call gives up. */
static void back_end_that_reads_nothing_is_given_up(void **state)
{
	const unsigned before = count_fds();
	unsigned char config[CONFIG_SIZE] = { 0 };
	struct vhost_user vu;
	int pair[2];
	int ret = 0;

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	vhost_user_init(&vu, pair[0], SHORT_TIMEOUT_MS);
	for (unsigned i = 0; i < 100000 && !ret; i++)
		ret = vhost_user_set_config(&vu, 0, config, sizeof(config));
	assert_int_equal(ret, -ENOTCONN);
	assert_non_null(strstr(vhost_user_why(&vu), "does not answer"));
	vhost_user_destroy(&vu);
	close(pair[1]);
	assert_int_equal(count_fds(), before);
}

/* ---- The back end's own channel -------------------------------------------------------------- */

static void send_request(const struct rig *rig, uint32_t request, uint32_t flags, uint32_t size)
{
	const uint32_t header[] = { request, flags, size };

	assert_int_equal(send(rig->back_end.request_fd, header, sizeof(header), MSG_NOSIGNAL), sizeof(header));
}

static void rig_with_channel(struct rig *rig)
{
	rig_start(rig, FAULT_NONE, 0, LONG_TIMEOUT_MS);
	assert_int_equal(run_session(rig), 0);
	assert_true(rig->vu.request_fd >= 0);
}

static void config_change_is_taken_in_pieces_too(void **state)
{
	static const uint32_t header[] = { 2, 1, 0 };
	bool changed = false;
	struct rig rig;

	(void)state;
	rig_with_channel(&rig);
	assert_int_equal(vhost_user_take_requests(&rig.vu, &changed), 0);
	assert_false(changed);
	send_request(&rig, 2, 1, 0);
	assert_int_equal(vhost_user_take_requests(&rig.vu, &changed), 0);
	assert_true(changed);
	for (size_t i = 0; i < sizeof(header); i++) {
		changed = false;
		send(rig.back_end.request_fd, (const char *)header + i, 1, MSG_NOSIGNAL);
		assert_int_equal(vhost_user_take_requests(&rig.vu, &changed), 0);
		assert_int_equal(changed, i == sizeof(header) - 1);
	}
	rig_stop(&rig);
}

static uint64_t receive_answer(const struct rig *rig, uint32_t request)
{
	struct message m = { 0 };

	assert_int_equal(recv(rig->back_end.request_fd, &m, HEADER_SIZE + 8, MSG_DONTWAIT), HEADER_SIZE + 8);
	assert_int_equal(m.request, request);
	assert_int_equal(m.flags, 5);
	assert_int_equal(m.size, 8);
	return u64_at(&m, 0);
}

static void requests_are_answered_if_that_is_asked_for(void **state)
{
	bool changed = false;
	char byte;
	struct rig rig;

	(void)state;
	rig_with_channel(&rig);
	send_request(&rig, 2, 1 | 8, 0);
	assert_int_equal(vhost_user_take_requests(&rig.vu, &changed), 0);
	assert_int_equal(receive_answer(&rig, 2), 0);
	assert_true(changed);

	/* One that is not known is refused, its payload dropped, and what follows it understood. */
	changed = false;
	send_request(&rig, 3, 1 | 8, 1000);
	for (unsigned i = 0; i < 100; i++)
		assert_int_equal(send(rig.back_end.request_fd, "0123456789", 10, MSG_NOSIGNAL), 10);
	send_request(&rig, 9, 1, 0);
	send_request(&rig, 2, 1, 0);
	assert_int_equal(vhost_user_take_requests(&rig.vu, &changed), 0);
	assert_true(changed);
	assert_int_equal(receive_answer(&rig, 3), 1);
	assert_int_equal(recv(rig.back_end.request_fd, &byte, 1, MSG_DONTWAIT), -1);
	rig_stop(&rig);
}

/* Floods, oversized messages, file descriptors, a close: the channel may end, the connection stays. */
static void channel_cannot_harm_the_connection(void **state)
{
	for (unsigned kind = 0; kind < 5; kind++) {
		const struct {
			uint32_t request, flags, size;
		} bad[] = {
			{ 2, 2, 0 },          /* the version */
			{ 2, 1, UINT32_MAX }, /* too large */
			{ 2, 1 | 8, 0 },      /* a flood, whose answers nobody reads */
			{ 3, 1, 0 },          /* with file descriptors */
			{ 2, 1, 100 },        /* then it closes */
		};
		unsigned char config[CONFIG_SIZE];
		bool changed = false;
		struct rig rig;

		(void)state;
		rig_with_channel(&rig);
		for (unsigned i = 0; i < (kind == 2 ? 5000u : 1u) && rig.vu.request_fd >= 0; i++) {
			send_bytes(rig.back_end.request_fd, &bad[kind], sizeof(bad[kind]), kind == 3 ? 10 : 0);
			assert_int_equal(vhost_user_take_requests(&rig.vu, &changed), 0);
		}
		if (kind == 4) {
			close(rig.back_end.request_fd);
			rig.back_end.request_fd = -1;
			assert_int_equal(vhost_user_take_requests(&rig.vu, &changed), 0);
		}
		assert_int_equal(rig.vu.request_fd >= 0, kind == 3);
		assert_int_equal(vhost_user_take_requests(&rig.vu, &changed), 0);
		assert_int_equal(vhost_user_get_config(&rig.vu, 0, config, sizeof(config)), 0);
		rig_stop(&rig);
	}
}

/* ---- Connecting ------------------------------------------------------------------------------- */

static void nobody_who_listens_is_an_error(void **state)
{
	char name[200];

	(void)state;
	assert_int_equal(vhost_user_connect("/nowhere/at/all"), -ENOENT);
	assert_int_equal(vhost_user_connect("/dev/null"), -ECONNREFUSED);
	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	assert_int_equal(vhost_user_connect(name), -ENAMETOOLONG);
}

/* The other side is closed while nothing is asked. */
static void loss_is_told_once(void **state)
{
	struct rig rig;

	(void)state;
	rig_start(&rig, FAULT_NONE, 0, LONG_TIMEOUT_MS);
	assert_int_equal(vhost_user_negotiate(&rig.vu), 0);
	vhost_user_lost(&rig.vu);
	assert_string_equal(vhost_user_why(&rig.vu), "has closed the connection");
	assert_int_equal(vhost_user_set_features(&rig.vu, 0), -ENOTCONN);
	assert_string_equal(vhost_user_why(&rig.vu), "has closed the connection");
	rig_stop(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(session_sends_what_the_protocol_says),
		cmocka_unit_test(session_does_without_what_is_not_offered),
		cmocka_unit_test(config_is_what_the_back_end_says),
		cmocka_unit_test(reply_in_single_bytes_is_taken),
		cmocka_unit_test(every_fault_at_every_reply_ends_the_connection),
		cmocka_unit_test(random_replies_do_no_harm),
		cmocka_unit_test(back_end_that_reads_nothing_is_given_up),
		cmocka_unit_test(config_change_is_taken_in_pieces_too),
		cmocka_unit_test(requests_are_answered_if_that_is_asked_for),
		cmocka_unit_test(channel_cannot_harm_the_connection),
		cmocka_unit_test(nobody_who_listens_is_an_error),
		cmocka_unit_test(loss_is_told_once),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
