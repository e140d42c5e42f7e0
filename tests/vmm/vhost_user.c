/* SPDX-License-Identifier: MIT */
/*
 * Tests of the vhost-user protocol engine against back ends that are threads of this
 * program: one that behaves, and checks every message that it gets; and the same one
 * with a fault at each place where there can be one. Whatever it does, calls return
 * in time, the connection ends with a reason, and no file descriptor is left over.
 */
#define _GNU_SOURCE

#include "vhost_user.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "back_end.h"
#include "rig.h"

#define LONG_TIMEOUT_MS  20000u /* never reached by a back end that answers */
#define SHORT_TIMEOUT_MS 30u    /* for those that do not */

#define RAM_SIZE    0x10000u
#define RAM_BASE    0x40000000u
#define CONFIG_SIZE BACK_END_CONFIG

#define WANTED_PROTOCOL_FEATURES                                                                                       \
	(VHOST_USER_PROTOCOL_MQ | VHOST_USER_PROTOCOL_REPLY_ACK | VHOST_USER_PROTOCOL_BACKEND_REQ |                    \
	 VHOST_USER_PROTOCOL_CONFIG)

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

struct session {
	struct back_end back_end;
	struct vhost_user vu;
	int ram_fd;
	struct vhost_user_ring_fds fds;
	unsigned fds_before;
};

static void session_start(struct session *s, enum fault fault, unsigned fault_at, unsigned timeout_ms)
{
	int pair[2];

	memset(s, 0, sizeof(*s));
	s->fds_before = count_fds();
	s->ram_fd = memfd_create("ram", MFD_CLOEXEC);
	s->fds.kick = eventfd(0, EFD_CLOEXEC);
	s->fds.call = eventfd(0, EFD_CLOEXEC);
	s->fds.err = eventfd(0, EFD_CLOEXEC);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	back_end_init(&s->back_end);
	s->back_end.fault = fault;
	s->back_end.fault_at = fault_at;
	vhost_user_init(&s->vu, pair[0], timeout_ms);
	back_end_start(&s->back_end, pair[1]);
}

/* Nothing may be left. */
static void session_stop(struct session *s)
{
	vhost_user_destroy(&s->vu);
	back_end_stop(&s->back_end);
	close(s->ram_fd);
	close(s->fds.kick);
	close(s->fds.call);
	close(s->fds.err);
	assert_int_equal(count_fds(), s->fds_before);
	assert_false(s->back_end.wrong);
}

static const struct virtio_queue_setup setup = {
	.size = 64,
	.desc = RAM_BASE + 0x1000,
	.avail = RAM_BASE + 0x2000,
	.used = RAM_BASE + 0x3000,
};

/* All that a front end does in its life; returns the first error. */
static int run_session(struct session *s)
{
	const struct vhost_user_memory memory = { .base = RAM_BASE, .size = RAM_SIZE, .fd = s->ram_fd };
	unsigned char config[CONFIG_SIZE];
	int ret;

	ret = vhost_user_negotiate(&s->vu);
	if (!ret)
		ret = vhost_user_get_config(&s->vu, 0, config, sizeof(config));
	if (!ret)
		ret = vhost_user_set_memory(&s->vu, &memory);
	if (!ret)
		ret = vhost_user_set_features(&s->vu, (1ull << 32) | (1ull << 9));
	for (unsigned i = 0; i < 2 && !ret; i++)
		ret = vhost_user_start_ring(&s->vu, i, &setup, &s->fds);
	if (!ret)
		ret = vhost_user_set_config(&s->vu, 32, "\1", 1);
	for (unsigned i = 0; i < 2 && !ret; i++)
		ret = vhost_user_stop_ring(&s->vu, i);
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
	struct session s;

	(void)state;
	session_start(&s, FAULT_NONE, 0, LONG_TIMEOUT_MS);
	assert_int_equal(run_session(&s), 0);
	assert_string_equal(vhost_user_why(&s.vu), "");
	assert_int_equal(s.vu.features, BACK_END_FEATURES);
	assert_int_equal(s.vu.protocol_features, WANTED_PROTOCOL_FEATURES);
	assert_int_equal(s.vu.num_queues, 2);
	session_stop(&s);

	assert_int_equal(s.back_end.num_messages, sizeof(order) / sizeof(order[0]));
	assert_memory_equal(s.back_end.order, order, sizeof(order));
	last = s.back_end.last;
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
	struct session s;

	(void)state;
	session_start(&s, FAULT_NONE, 0, LONG_TIMEOUT_MS);
	s.back_end.protocol_features = VHOST_USER_PROTOCOL_CONFIG;
	assert_int_equal(run_session(&s), 0);
	assert_int_equal(s.vu.protocol_features, VHOST_USER_PROTOCOL_CONFIG);
	assert_int_equal(s.vu.num_queues, 1);
	assert_int_equal(s.vu.request_fd, -1);
	/* Behind an answer all messages before it have been seen. */
	assert_int_equal(s.back_end.last[M_SET_BACKEND_REQ_FD].request, 0);
	assert_int_equal(s.back_end.last[M_GET_QUEUE_NUM].request, 0);
	session_stop(&s);
}

static void config_is_what_the_back_end_says(void **state)
{
	unsigned char config[CONFIG_SIZE];
	struct session s;

	(void)state;
	session_start(&s, FAULT_NONE, 0, LONG_TIMEOUT_MS);
	assert_int_equal(vhost_user_negotiate(&s.vu), 0);
	assert_int_equal(vhost_user_get_config(&s.vu, 0, config, sizeof(config)), 0);
	for (unsigned i = 0; i < CONFIG_SIZE; i++)
		assert_int_equal(config[i], i * 3 % 256);
	assert_int_equal(vhost_user_get_config(&s.vu, 0, config, VHOST_USER_MAX_CONFIG + 1), -EINVAL);
	assert_int_equal(vhost_user_set_config(&s.vu, 0, config, VHOST_USER_MAX_CONFIG + 1), -EINVAL);
	session_stop(&s);
}

static void reply_in_single_bytes_is_taken(void **state)
{
	struct session s;

	(void)state;
	session_start(&s, FAULT_TRICKLE, 0, LONG_TIMEOUT_MS);
	assert_int_equal(run_session(&s), 0);
	session_stop(&s);
}

static bool is_silence(enum fault fault)
{
	return fault == FAULT_SILENCE || fault == FAULT_HALF_SILENCE;
}

/* A refusal of what tells something is an answer, and so are other values of what was asked for. */
static void check_outcome(struct session *s, enum fault fault, int ret)
{
	unsigned char config[CONFIG_SIZE];

	if (fault == FAULT_REFUSAL && !vhost_user_is_broken(&s->vu)) {
		assert_true(ret == 0 || ret == -EREMOTEIO);
		return;
	}
	assert_true(vhost_user_is_broken(&s->vu));
	/* The back end sees that at once. */
	while (!atomic_load(&s->back_end.ended))
		usleep(100);
	assert_int_not_equal(vhost_user_why(&s->vu)[0], '\0');
	/* Without REPLY_ACK the last calls might not notice; with it each does. */
	assert_true(ret == -ENOTCONN);
	assert_int_equal(vhost_user_get_config(&s->vu, 0, config, sizeof(config)), -ENOTCONN);
	assert_int_equal(vhost_user_stop_ring(&s->vu, 0), -ENOTCONN);
	assert_int_equal(run_session(s), -ENOTCONN);
}

static void every_fault_at_every_reply_ends_the_connection(void **state)
{
	struct session s;
	unsigned num_replies;
	unsigned refused = 0;
	unsigned answered = 0;

	(void)state;
	session_start(&s, FAULT_NONE, 0, LONG_TIMEOUT_MS);
	assert_int_equal(run_session(&s), 0);
	num_replies = s.back_end.num_replies;
	session_stop(&s);
	/* All messages but those up to SET_PROTOCOL_FEATURES that tell something. */
	assert_int_equal(num_replies, s.back_end.num_messages - 2);

	for (enum fault fault = FAULT_CLOSE; fault < NUM_FAULTS; fault++) {
		for (unsigned at = 0; at < num_replies; at++) {
			int ret;

			session_start(&s, fault, at, is_silence(fault) ? SHORT_TIMEOUT_MS : LONG_TIMEOUT_MS);
			ret = run_session(&s);
			check_outcome(&s, fault, ret);
			refused += ret == -EREMOTEIO;
			answered += fault == FAULT_REFUSAL && !vhost_user_is_broken(&s.vu);
			session_stop(&s);
			/* On a busy machine the connection may be given up before. */
			assert_true(s.back_end.faulted || is_silence(fault));
		}
	}
	/* SET_MEM_TABLE, SET_FEATURES, 2 * 7 for the rings, SET_CONFIG; the channel and SET_VRING_ENABLE=0 may be. */
	assert_int_equal(refused, 17);
	/* That GET_CONFIG is answered with another place's bytes is no refusal, but wrong. */
	assert_int_equal(answered, num_replies - 1);
}

/* Random replies of the right and of other sizes, a new one to each request, as long as the connection stands. */
static void *random_back_end(void *argument)
{
	struct back_end *b = argument;
	unsigned seed = b->fault_at;
	struct message m;

	while (back_end_get_message(b, &m)) {
		struct message reply;

		if (m.fd >= 0)
			close(m.fd);
		for (size_t i = 0; i < sizeof(reply.payload); i++)
			reply.payload[i] = (unsigned char)rand_r(&seed);
		reply.request = rand_r(&seed) % 8 ? m.request : (uint32_t)rand_r(&seed) % 32;
		reply.flags = rand_r(&seed) % 8 ? 5 : (uint32_t)rand_r(&seed);
		reply.size = back_end_is_question(m.request) && m.request == M_GET_CONFIG ? m.size : 8;
		if (rand_r(&seed) % 8 == 0)
			reply.size = (uint32_t)rand_r(&seed) % 300;
		if (rand_r(&seed) % 4)
			back_end_send(b->fd, &reply, HEADER_SIZE + reply.size, rand_r(&seed) % 8 ? 0 : 3);
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
		struct session s = { .back_end = { .fault_at = seed, .request_fd = -1 } };
		int pair[2];
		int ret;

		s.ram_fd = s.fds.kick = s.fds.call = s.fds.err = eventfd(0, EFD_CLOEXEC);
		assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
		s.back_end.fd = pair[1];
		vhost_user_init(&s.vu, pair[0], 2);
		pthread_create(&s.back_end.thread, NULL, random_back_end, &s.back_end);
		ret = run_session(&s);
		assert_true(ret == 0 || ret == -ENOTCONN || ret == -EREMOTEIO);
		assert_true(s.vu.num_queues <= VIRTIO_MAX_QUEUES);
		vhost_user_destroy(&s.vu);
		pthread_join(s.back_end.thread, NULL);
		close(s.ram_fd);
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

static void send_request(const struct session *s, uint32_t request, uint32_t flags, uint32_t size)
{
	const uint32_t header[] = { request, flags, size };

	assert_int_equal(send(s->back_end.request_fd, header, sizeof(header), MSG_NOSIGNAL), sizeof(header));
}

static void open_channel(struct session *s)
{
	session_start(s, FAULT_NONE, 0, LONG_TIMEOUT_MS);
	assert_int_equal(run_session(s), 0);
	assert_true(s->vu.request_fd >= 0);
}

static void config_change_is_taken_in_pieces_too(void **state)
{
	static const uint32_t header[] = { 2, 1, 0 };
	bool changed = false;
	struct session s;

	(void)state;
	open_channel(&s);
	assert_int_equal(vhost_user_take_requests(&s.vu, &changed), 0);
	assert_false(changed);
	send_request(&s, 2, 1, 0);
	assert_int_equal(vhost_user_take_requests(&s.vu, &changed), 0);
	assert_true(changed);
	for (size_t i = 0; i < sizeof(header); i++) {
		changed = false;
		send(s.back_end.request_fd, (const char *)header + i, 1, MSG_NOSIGNAL);
		assert_int_equal(vhost_user_take_requests(&s.vu, &changed), 0);
		assert_int_equal(changed, i == sizeof(header) - 1);
	}
	session_stop(&s);
}

static uint64_t receive_answer(const struct session *s, uint32_t request)
{
	struct message m = { 0 };

	assert_int_equal(recv(s->back_end.request_fd, &m, HEADER_SIZE + 8, MSG_DONTWAIT), HEADER_SIZE + 8);
	assert_int_equal(m.request, request);
	assert_int_equal(m.flags, 5);
	assert_int_equal(m.size, 8);
	return u64_at(&m, 0);
}

static void requests_are_answered_if_that_is_asked_for(void **state)
{
	bool changed = false;
	char byte;
	struct session s;

	(void)state;
	open_channel(&s);
	send_request(&s, 2, 1 | 8, 0);
	assert_int_equal(vhost_user_take_requests(&s.vu, &changed), 0);
	assert_int_equal(receive_answer(&s, 2), 0);
	assert_true(changed);

	/* One that is not known is refused, its payload dropped, and what follows it understood. */
	changed = false;
	send_request(&s, 3, 1 | 8, 1000);
	for (unsigned i = 0; i < 100; i++)
		assert_int_equal(send(s.back_end.request_fd, "0123456789", 10, MSG_NOSIGNAL), 10);
	send_request(&s, 9, 1, 0);
	send_request(&s, 2, 1, 0);
	assert_int_equal(vhost_user_take_requests(&s.vu, &changed), 0);
	assert_true(changed);
	assert_int_equal(receive_answer(&s, 3), 1);
	assert_int_equal(recv(s.back_end.request_fd, &byte, 1, MSG_DONTWAIT), -1);
	session_stop(&s);
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
		struct session s;

		(void)state;
		open_channel(&s);
		for (unsigned i = 0; i < (kind == 2 ? 5000u : 1u) && s.vu.request_fd >= 0; i++) {
			back_end_send(s.back_end.request_fd, &bad[kind], sizeof(bad[kind]), kind == 3 ? 10 : 0);
			assert_int_equal(vhost_user_take_requests(&s.vu, &changed), 0);
		}
		if (kind == 4) {
			close(s.back_end.request_fd);
			s.back_end.request_fd = -1;
			assert_int_equal(vhost_user_take_requests(&s.vu, &changed), 0);
		}
		assert_int_equal(s.vu.request_fd >= 0, kind == 3);
		assert_int_equal(vhost_user_take_requests(&s.vu, &changed), 0);
		assert_int_equal(vhost_user_get_config(&s.vu, 0, config, sizeof(config)), 0);
		session_stop(&s);
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
	struct session s;

	(void)state;
	session_start(&s, FAULT_NONE, 0, LONG_TIMEOUT_MS);
	assert_int_equal(vhost_user_negotiate(&s.vu), 0);
	vhost_user_lost(&s.vu);
	assert_string_equal(vhost_user_why(&s.vu), "has closed the connection");
	assert_int_equal(vhost_user_set_features(&s.vu, 0), -ENOTCONN);
	assert_string_equal(vhost_user_why(&s.vu), "has closed the connection");
	session_stop(&s);
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

	return RUN_TESTS("vhost_user", tests);
}
