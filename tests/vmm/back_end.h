/* SPDX-License-Identifier: MIT */
/*
 * back_end.h - a back end of vhost-user: a thread of the test's that answers the front
 * end's messages and checks each. It serves no disk. It can be told to make one
 * fault, at any of its replies.
 *
 * What it saw is for the test to read once it has stopped, or behind an answer.
 */
#ifndef TESTS_VMM_BACK_END_H
#define TESTS_VMM_BACK_END_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BACK_END_QUEUES 2u
#define BACK_END_CONFIG 60u /* bytes: byte i is 3 * i */
#define BACK_END_FEATURES                                                                                              \
	((1ull << 32) | (1ull << 30) | (1ull << 29) | (1ull << 12) | (1ull << 11) | (1ull << 9) | (1ull << 1))

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
	int listen_fd; /* -1: the connection is there already */
	pthread_t thread;
	uint64_t features;
	uint64_t protocol_features;
	unsigned num_queues;
	atomic_uchar config_step; /* 3: see BACK_END_CONFIG */
	enum fault fault;
	unsigned fault_at; /* the reply, counted from 0 */

	/* What it saw. */
	unsigned num_messages;
	unsigned num_replies;
	unsigned order[64];
	struct message last[32]; /* of each request, its last message */
	int request_fd;          /* its own channel, or -1 */
	int kick_fd[BACK_END_QUEUES];
	int call_fd[BACK_END_QUEUES];
	int err_fd;
	bool faulted;
	atomic_bool ended; /* the connection has */
	bool wrong;        /* a message that is not as it must be */
};

/* All is offered, nothing goes wrong: to be changed before back_end_start(). */
void back_end_init(struct back_end *b);
/* Serve the connection @fd. */
void back_end_start(struct back_end *b, int fd);
/* The same at a socket of that name, for one front end; it listens when this returns. */
void back_end_listen(struct back_end *b, const char *path);
/* End the connection, as if the process had been killed. */
void back_end_kill(struct back_end *b);
/* Wait for the front end to go, and close everything. */
void back_end_stop(struct back_end *b);

/* Messages, for other back ends. */
bool back_end_get_message(struct back_end *b, struct message *m);
void back_end_send(int fd, const void *data, size_t size, unsigned num_fds);
bool back_end_is_question(uint32_t request);

#endif /* TESTS_VMM_BACK_END_H */
