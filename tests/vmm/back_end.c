/* SPDX-License-Identifier: MIT */
/* back_end.c - the back end that behaves, up to the fault that it is told to make. */
#define _GNU_SOURCE /* POLLRDHUP */

#include "back_end.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "util.h"
#include "vhost_user.h"

/* ---- In place of the program's -------------------------------------------------------------- */

volatile sig_atomic_t signal_received;

uint64_t monotonic_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* ---- Messages ------------------------------------------------------------------------------- */

bool back_end_get_message(struct back_end *b, struct message *m)
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

void back_end_send(int fd, const void *data, size_t size, unsigned num_fds)
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
			back_end_send(b->fd, (char *)m + i, 1, 0);
		return true;
	}
	if (!at_fault) {
		back_end_send(b->fd, m, length, 0);
		return true;
	}
	b->faulted = true;
	switch (b->fault) {
	case FAULT_CLOSE:
		return false;
	case FAULT_HALF_HEADER:
		back_end_send(b->fd, m, HEADER_SIZE / 2, 0);
		return false;
	case FAULT_HALF_PAYLOAD:
		back_end_send(b->fd, m, HEADER_SIZE + size / 2, 0);
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
		back_end_send(b->fd, m, HEADER_SIZE + size / 2, 0);
		stay_silent(b);
		return false;
	case FAULT_SILENCE:
		stay_silent(b);
		return false;
	default: /* FAULT_REFUSAL */
		m->payload[4] ^= 1;
		break;
	}
	back_end_send(b->fd, m, length, num_fds);
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
		return 12 + BACK_END_CONFIG;
	case M_SET_CONFIG:
		return 12 + 1;
	default:
		return 8;
	}
}

bool back_end_is_question(uint32_t request)
{
	return request == M_GET_FEATURES || request == M_GET_PROTOCOL_FEATURES || request == M_GET_QUEUE_NUM ||
	       request == M_GET_VRING_BASE || request == M_GET_CONFIG;
}

static bool answer_question(struct back_end *b, struct message *m)
{
	uint64_t value = b->num_queues;
	unsigned char config[12 + BACK_END_CONFIG];

	switch (m->request) {
	case M_GET_FEATURES:
		value = b->features;
		break;
	case M_GET_PROTOCOL_FEATURES:
		value = b->protocol_features;
		break;
	case M_GET_VRING_BASE:
		memcpy(&value, m->payload, sizeof(value));
		break;
	case M_GET_CONFIG:
		memcpy(config, m->payload, 12);
		for (unsigned i = 0; i < BACK_END_CONFIG; i++)
			config[12 + i] = (unsigned char)(i * b->config_step);
		return send_reply(b, m, config, sizeof(config));
	default:
		break;
	}
	return send_reply(b, m, &value, sizeof(value));
}

static void replace_fd(int *place, int fd)
{
	if (*place >= 0)
		close(*place);
	*place = fd;
}

static void keep_fd(struct back_end *b, const struct message *m)
{
	const unsigned index = m->payload[0] % BACK_END_QUEUES;

	switch (m->request) {
	case M_SET_VRING_KICK:
		replace_fd(&b->kick_fd[index], m->fd);
		break;
	case M_SET_VRING_CALL:
		replace_fd(&b->call_fd[index], m->fd);
		break;
	case M_SET_VRING_ERR:
		replace_fd(&b->err_fd, m->fd);
		break;
	case M_SET_BACKEND_REQ_FD:
		replace_fd(&b->request_fd, m->fd);
		break;
	default:
		close(m->fd);
		break;
	}
}

static void *serve(void *argument)
{
	struct back_end *b = argument;
	struct message m = { 0 };
	bool go_on = true;

	if (b->listen_fd >= 0)
		b->fd = accept(b->listen_fd, NULL, NULL);
	while (go_on && back_end_get_message(b, &m)) {
		const bool need_reply = m.flags & 8;
		/* All but questions are acknowledged as soon as that was agreed on. */
		const bool agreed = b->last[M_SET_PROTOCOL_FEATURES].request &&
				    (b->last[M_SET_PROTOCOL_FEATURES].payload[0] & VHOST_USER_PROTOCOL_REPLY_ACK);

		if (b->num_messages < 64)
			b->order[b->num_messages] = m.request;
		b->num_messages++;
		if (m.request >= 32 || (m.flags & ~8u) != 1 ||
		    need_reply != (agreed && !back_end_is_question(m.request)) || (m.fd >= 0) != takes_fd(m.request) ||
		    m.size != payload_size(&m))
			b->wrong = true;
		if (m.request < 32)
			b->last[m.request] = m;
		if (m.fd >= 0)
			keep_fd(b, &m);
		if (back_end_is_question(m.request))
			go_on = answer_question(b, &m);
		else if (need_reply)
			go_on = send_reply(b, &m, &(uint64_t){ 0 }, 8);
	}
	atomic_store(&b->ended, true);
	shutdown(b->fd, SHUT_RDWR); /* closed when the test has stopped us: its number is in use till then */
	return NULL;
}

/* ---- Life ----------------------------------------------------------------------------------- */

void back_end_init(struct back_end *b)
{
	memset(b, 0, sizeof(*b));
	b->fd = -1;
	b->listen_fd = -1;
	b->features = BACK_END_FEATURES;
	b->protocol_features = ~0ull; /* more than anybody knows */
	b->num_queues = BACK_END_QUEUES;
	b->config_step = 3;
	b->request_fd = -1;
	b->err_fd = -1;
	for (unsigned i = 0; i < BACK_END_QUEUES; i++) {
		b->kick_fd[i] = -1;
		b->call_fd[i] = -1;
	}
}

static void start_thread(struct back_end *b)
{
	if (pthread_create(&b->thread, NULL, serve, b))
		abort();
}

void back_end_start(struct back_end *b, int fd)
{
	b->fd = fd;
	start_thread(b);
}

void back_end_listen(struct back_end *b, const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	unlink(path);
	b->listen_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (b->listen_fd < 0 || bind(b->listen_fd, (struct sockaddr *)&address, sizeof(address)) ||
	    listen(b->listen_fd, 1))
		abort();
	start_thread(b);
}

void back_end_kill(struct back_end *b)
{
	shutdown(b->fd, SHUT_RDWR);
}

void back_end_stop(struct back_end *b)
{
	/* If nobody has come, nobody will. */
	if (b->listen_fd >= 0)
		shutdown(b->listen_fd, SHUT_RDWR);
	pthread_join(b->thread, NULL);
	replace_fd(&b->listen_fd, -1);
	replace_fd(&b->fd, -1);
	replace_fd(&b->request_fd, -1);
	replace_fd(&b->err_fd, -1);
	for (unsigned i = 0; i < BACK_END_QUEUES; i++) {
		replace_fd(&b->kick_fd[i], -1);
		replace_fd(&b->call_fd[i], -1);
	}
}
