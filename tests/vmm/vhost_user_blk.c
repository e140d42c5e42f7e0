/* SPDX-License-Identifier: MIT */
/*
 * vhost_user_blk.c - the vhost-user-blk device, with a transport and a back end that
 * are the test's: what is passed on, what happens when the back end goes away at each
 * point of the device's life, and that the device leaves the transport alone when it must.
 */
#define _GNU_SOURCE /* memfd_create() */

#include "vhost_user_blk.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "back_end.h"
#include "rig.h"
#include "vhost_user.h"

#define QUEUES 2u
#define SIZE   16u

#define F_SIZE_MAX (1ull << 1)
#define F_FLUSH    (1ull << 9)
#define CONFIG_WCE 32u
#define CONFIG_NUM 34u

struct fixture {
	struct rig rig;
	char path[64];
	struct back_end back_end;
	struct virtio_device *device;
	int ram_fd;
	unsigned fds_before;
	struct ring rings[QUEUES];

	/* What the transport was asked for. */
	atomic_uint num_interrupts[QUEUES];
	atomic_uint num_config_interrupts;
	atomic_uint num_failures;
	char failure[200]; /* written before @num_failures is */
	int bound[QUEUES];
	int bind_result;
};

/* ---- The transport -------------------------------------------------------------------------- */

static void interrupt_queue(void *transport, unsigned index)
{
	struct fixture *f = transport;

	atomic_fetch_add(&f->num_interrupts[index], 1);
}

static void interrupt_config(void *transport)
{
	struct fixture *f = transport;

	atomic_fetch_add(&f->num_config_interrupts, 1);
}

static void report_failure(void *transport, const char *why)
{
	struct fixture *f = transport;

	snprintf(f->failure, sizeof(f->failure), "%s", why);
	atomic_fetch_add(&f->num_failures, 1);
}

static int bind_call_fd(void *transport, unsigned index, int eventfd)
{
	struct fixture *f = transport;

	if (eventfd >= 0 && f->bind_result)
		return f->bind_result;
	f->bound[index] = eventfd;
	return 0;
}

static const struct virtio_transport_ops transport_ops = {
	.interrupt_queue = interrupt_queue,
	.interrupt_config = interrupt_config,
	.report_failure = report_failure,
	.bind_call_fd = bind_call_fd,
};

/* ---- The fixture ------------------------------------------------------------------------------ */

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

static void fixture_init(struct fixture *f)
{
	memset(f, 0, sizeof(*f));
	rig_start(&f->rig);
	f->fds_before = count_fds();
	f->ram_fd = memfd_create("ram", MFD_CLOEXEC);
	snprintf(f->path, sizeof(f->path), "/tmp/vhost-user-blk.%d", (int)getpid());
	back_end_init(&f->back_end);
	for (unsigned i = 0; i < QUEUES; i++)
		f->bound[i] = -1;
}

/* The back end is as the test has made it up to here. */
static int create(struct fixture *f, unsigned queues)
{
	const struct vhost_user_blk_config config = {
		.socket = f->path,
		.queues = queues,
		.default_queues = 1,
		.ram_fd = f->ram_fd,
	};
	int ret;

	back_end_listen(&f->back_end, f->path);
	ret = vhost_user_blk_create(&config, &f->rig.ram, &f->device);
	if (ret == 0) {
		f->device->transport_ops = &transport_ops;
		f->device->transport = f;
		f->device->ops->reset(f->device);
	}
	return ret;
}

static void fixture_start(struct fixture *f)
{
	fixture_init(f);
	assert_int_equal(create(f, QUEUES), 0);
}

/* Nothing may be left, and all that the back end got was right. */
static void fixture_stop(struct fixture *f)
{
	if (f->device) {
		f->device->ops->reset(f->device);
		f->device->ops->destroy(f->device);
	}
	back_end_stop(&f->back_end);
	unlink(f->path);
	close(f->ram_fd);
	assert_int_equal(count_fds(), f->fds_before);
	assert_false(f->back_end.wrong);
	for (unsigned i = 0; i < QUEUES; i++)
		assert_int_equal(f->bound[i], -1);
	rig_stop(&f->rig);
}

/* What a driver does up to DRIVER_OK; returns the first error. */
static int start_driver(struct fixture *f)
{
	uint64_t at = RIG_RAM_BASE;
	int ret;

	ret = f->device->ops->set_features(f->device, VIRTIO_F_VERSION_1 | F_FLUSH);
	for (unsigned i = 0; i < QUEUES && !ret; i++) {
		struct virtio_queue_setup setup;

		at = ring_init(&f->rings[i], &f->rig.ram, (at + 15) & ~15ull, SIZE);
		setup = ring_setup(&f->rings[i]);
		ret = f->device->ops->start_queue(f->device, i, &setup);
	}
	return ret;
}

/* Only a device that does not do what it must runs into the end of this. */
#define WAIT_UNTIL(condition)                                                                                          \
	do {                                                                                                           \
		for (unsigned tries = 0; tries < 20000 && !(condition); tries++)                                       \
			usleep(1000);                                                                                  \
		assert_true(condition);                                                                                \
	} while (0)

static bool is_signalled(int fd)
{
	struct pollfd pollfd = { .fd = fd, .events = POLLIN };

	return poll(&pollfd, 1, 0) == 1;
}

static void take_signal(int fd)
{
	uint64_t count;

	assert_true(is_signalled(fd));
	assert_int_equal(read(fd, &count, sizeof(count)), sizeof(count));
}

static void put_signal(int fd)
{
	const uint64_t one = 1;

	assert_int_equal(write(fd, &one, sizeof(one)), sizeof(one));
}

/* The back end has done a request, in the ring only. */
static void set_used_index(struct fixture *f, unsigned queue, uint16_t index)
{
	uint16_t *at = rig_at(&f->rig.ram, f->rings[queue].used + 2);

	__atomic_store_n(at, index, __ATOMIC_RELEASE);
}

static void set_avail_index(struct fixture *f, unsigned queue, uint16_t index)
{
	uint16_t *at = rig_at(&f->rig.ram, f->rings[queue].avail + 2);

	__atomic_store_n(at, index, __ATOMIC_RELEASE);
}

/* ---- What is passed on -------------------------------------------------------------------------- */

static void features_are_those_that_can_be_kept(void **state)
{
	struct fixture f;
	uint64_t agreed;

	(void)state;
	fixture_start(&f);
	/* Of the back end's: not EVENT_IDX, and VERSION_1 is the transport's to offer. */
	assert_int_equal(f.device->features, BACK_END_FEATURES & ~((1ull << 32) | (1ull << 30) | (1ull << 29)));
	assert_int_equal(f.device->num_queues, QUEUES);
	assert_int_equal(start_driver(&f), 0);
	fixture_stop(&f);
	memcpy(&agreed, f.back_end.last[M_SET_FEATURES].payload, sizeof(agreed));
	assert_int_equal(agreed, VIRTIO_F_VERSION_1 | F_FLUSH | (1ull << 30));
}

static void configuration_is_the_back_ends_but_for_the_queues(void **state)
{
	unsigned char config[BACK_END_CONFIG];
	struct fixture f;

	(void)state;
	fixture_init(&f);
	assert_int_equal(create(&f, 0), 0); /* the default: one */
	f.device->ops->config_read(f.device, 0, config, sizeof(config));
	for (unsigned i = 0; i < BACK_END_CONFIG; i++) {
		if (i == CONFIG_NUM)
			assert_int_equal(config[i], 1);
		else if (i == CONFIG_NUM + 1)
			assert_int_equal(config[i], 0);
		else
			assert_int_equal(config[i], i * 3);
	}
	f.device->ops->config_read(f.device, 7, config, 2);
	assert_int_equal(config[0], 21);
	assert_int_equal(config[1], 24);
	fixture_stop(&f);
}

static void empty_size_max_is_not_offered(void **state)
{
	struct fixture f;

	(void)state;
	fixture_init(&f);
	f.back_end.config_step = 0;
	assert_int_equal(create(&f, 0), 0);
	assert_int_equal(f.device->features & F_SIZE_MAX, 0);
	fixture_stop(&f);
}

static void only_the_write_cache_can_be_configured(void **state)
{
	unsigned char byte = 1;
	struct fixture f;

	(void)state;
	fixture_start(&f);
	f.device->ops->config_write(f.device, 0, &byte, 1);
	f.device->ops->config_write(f.device, CONFIG_WCE, "\1\0", 2);
	assert_int_equal(f.back_end.last[M_SET_CONFIG].request, 0);
	f.device->ops->config_write(f.device, CONFIG_WCE, &byte, 1);
	byte = 0;
	f.device->ops->config_read(f.device, CONFIG_WCE, &byte, 1);
	assert_int_equal(byte, 1);
	fixture_stop(&f);
	assert_int_equal(f.back_end.last[M_SET_CONFIG].request, M_SET_CONFIG);
}

static void notifications_and_interrupts_are_eventfds(void **state)
{
	struct fixture f;

	(void)state;
	fixture_start(&f);
	assert_int_equal(start_driver(&f), 0);
	for (unsigned i = 0; i < QUEUES; i++) {
		/* The first kick starts the ring. */
		WAIT_UNTIL(is_signalled(f.back_end.kick_fd[i]));
		take_signal(f.back_end.kick_fd[i]);
		f.device->ops->notify_queue(f.device, i);
		take_signal(f.back_end.kick_fd[i]);
		assert_false(is_signalled(f.bound[i]));
		put_signal(f.back_end.call_fd[i]);
		take_signal(f.bound[i]);
		assert_false(is_signalled(f.back_end.kick_fd[1 - i]) && i == 1);
	}
	fixture_stop(&f);
	assert_int_equal(f.back_end.last[M_GET_VRING_BASE].request, M_GET_VRING_BASE);
}

/* ---- What the other side missed ------------------------------------------------------------------ */

static void forgotten_interrupt_is_made_up_for(void **state)
{
	struct fixture f;

	(void)state;
	fixture_start(&f);
	assert_int_equal(start_driver(&f), 0);
	set_avail_index(&f, 1, 1);
	f.device->ops->notify_queue(f.device, 1);
	set_used_index(&f, 1, 1);
	WAIT_UNTIL(atomic_load(&f.num_interrupts[1]) >= 1);
	assert_int_equal(atomic_load(&f.num_interrupts[0]), 0);
	fixture_stop(&f);
}

/* With no notification at all: by a look now and then. */
static void forgotten_notification_is_made_up_for(void **state)
{
	struct fixture f;

	(void)state;
	fixture_start(&f);
	assert_int_equal(start_driver(&f), 0);
	WAIT_UNTIL(is_signalled(f.back_end.kick_fd[0]));
	take_signal(f.back_end.kick_fd[0]);
	usleep(50000); /* until nobody looks at the rings for another reason */
	set_avail_index(&f, 0, 1);
	WAIT_UNTIL(is_signalled(f.back_end.kick_fd[0]));
	fixture_stop(&f);
}

static void ring_at_rest_is_left_at_rest(void **state)
{
	unsigned before;
	struct fixture f;

	(void)state;
	fixture_start(&f);
	assert_int_equal(start_driver(&f), 0);
	set_avail_index(&f, 0, 1);
	set_used_index(&f, 0, 1);
	f.device->ops->notify_queue(f.device, 0);
	WAIT_UNTIL(atomic_load(&f.num_interrupts[0]) >= 1);
	before = atomic_load(&f.num_interrupts[0]);
	for (unsigned i = 0; i < 5; i++) {
		f.device->ops->notify_queue(f.device, 0);
		usleep(25000); /* longer than it takes to see that a ring has settled */
	}
	assert_int_equal(atomic_load(&f.num_interrupts[0]), before);
	fixture_stop(&f);
}

/* ---- The back end's channel ------------------------------------------------------------------------ */

static void send_config_change(struct fixture *f)
{
	static const uint32_t header[] = { 2, 1, 0 };

	assert_int_equal(send(f->back_end.request_fd, header, sizeof(header), MSG_NOSIGNAL), sizeof(header));
}

static void change_of_configuration_reaches_the_driver(void **state)
{
	unsigned char byte;
	struct fixture f;

	(void)state;
	fixture_start(&f);
	assert_int_equal(start_driver(&f), 0);
	f.back_end.config_step = 5;
	send_config_change(&f);
	WAIT_UNTIL(atomic_load(&f.num_config_interrupts) == 1);
	f.device->ops->config_read(f.device, 1, &byte, 1);
	assert_int_equal(byte, 5);
	fixture_stop(&f);
}

/* It may have come when the driver had read the configuration, but had not started yet. */
static void change_of_configuration_waits_for_the_driver(void **state)
{
	unsigned char byte = 0;
	struct fixture f;

	(void)state;
	fixture_start(&f);
	f.back_end.config_step = 5;
	send_config_change(&f);
	WAIT_UNTIL((f.device->ops->config_read(f.device, 1, &byte, 1), byte == 5));
	assert_int_equal(atomic_load(&f.num_config_interrupts), 0);
	assert_int_equal(start_driver(&f), 0);
	WAIT_UNTIL(atomic_load(&f.num_config_interrupts) == 1);
	f.device->ops->reset(f.device);
	assert_int_equal(start_driver(&f), 0);
	assert_int_equal(atomic_load(&f.num_config_interrupts), 1);
	fixture_stop(&f);
}

static void error_of_a_ring_fails_the_device(void **state)
{
	struct fixture f;

	(void)state;
	fixture_start(&f);
	assert_int_equal(start_driver(&f), 0);
	put_signal(f.back_end.err_fd);
	WAIT_UNTIL(atomic_load(&f.num_failures) == 1);
	assert_string_equal(f.failure, "the back end cannot serve a queue");
	f.device->ops->reset(f.device);
	assert_int_equal(start_driver(&f), 0);
	assert_int_equal(atomic_load(&f.num_failures), 1);
	fixture_stop(&f);
}

/* ---- The back end goes away ------------------------------------------------------------------------- */

static void end_while_running_fails_the_device_once(void **state)
{
	struct fixture f;

	(void)state;
	fixture_start(&f);
	assert_int_equal(start_driver(&f), 0);
	back_end_kill(&f.back_end);
	WAIT_UNTIL(atomic_load(&f.num_failures) == 1);
	assert_string_equal(f.failure, "the back end has closed the connection");
	f.device->ops->notify_queue(f.device, 0);
	f.device->ops->config_write(f.device, CONFIG_WCE, "\1", 1);
	f.device->ops->reset(f.device);
	/* A new driver is refused: FEATURES_OK stays clear. */
	assert_int_equal(start_driver(&f), -EINVAL);
	assert_int_equal(atomic_load(&f.num_failures), 1);
	assert_int_equal(rig_num_reports(), 0); /* the transport has told the user */
	fixture_stop(&f);
	assert_int_equal(rig_num_reports(), 0);
}

static void end_before_the_driver_is_reported_once(void **state)
{
	struct fixture f;

	(void)state;
	fixture_start(&f);
	back_end_kill(&f.back_end);
	WAIT_UNTIL(rig_num_reports() == 1);
	assert_non_null(strstr(rig_last_report(), "the back end has closed the connection"));
	assert_int_equal(start_driver(&f), -EINVAL);
	assert_int_equal(atomic_load(&f.num_failures), 0);
	assert_int_equal(rig_num_reports(), 1);
	fixture_stop(&f);
	assert_int_equal(rig_num_reports(), 1);
}

/* At every reply from the connection to the reset, and the user hears of it exactly once. */
static void end_at_every_step_is_survived(void **state)
{
	unsigned num_replies;
	struct fixture f;

	(void)state;
	fixture_start(&f);
	assert_int_equal(start_driver(&f), 0);
	fixture_stop(&f);
	num_replies = f.back_end.num_replies;
	for (unsigned at = 0; at < num_replies; at++) {
		int ret;

		fixture_init(&f);
		f.back_end.fault = FAULT_CLOSE;
		f.back_end.fault_at = at;
		ret = create(&f, QUEUES);
		if (!ret) {
			ret = start_driver(&f);
			/* Only the last ones are for the reset. */
			assert_true(ret || at >= num_replies - 2 * QUEUES);
			f.device->ops->reset(f.device);
		}
		fixture_stop(&f);
		assert_true(f.back_end.faulted);
		assert_int_equal(rig_num_reports() + atomic_load(&f.num_failures), 1);
	}
}

static void queue_that_cannot_be_bound_is_an_error(void **state)
{
	struct fixture f;

	(void)state;
	fixture_start(&f);
	f.bind_result = -ENOSPC;
	assert_int_equal(start_driver(&f), -ENOSPC);
	f.device->ops->reset(f.device);
	f.bind_result = 0;
	assert_int_equal(start_driver(&f), 0);
	fixture_stop(&f);
}

/* After a reset no thread of the device's calls the transport, whatever the back end does. */
static void transport_is_left_alone_after_a_reset(void **state)
{
	struct fixture f;

	(void)state;
	fixture_start(&f);
	for (unsigned round = 0; round < 20; round++) {
		unsigned interrupts;
		unsigned changes;

		assert_int_equal(start_driver(&f), 0);
		set_used_index(&f, 0, (uint16_t)(round + 1));
		f.device->ops->notify_queue(f.device, 0);
		send_config_change(&f);
		if (round % 2)
			usleep(round * 1000);
		f.device->ops->reset(f.device);
		interrupts = atomic_load(&f.num_interrupts[0]);
		changes = atomic_load(&f.num_config_interrupts);
		put_signal(f.back_end.err_fd);
		send_config_change(&f);
		usleep(2000);
		assert_int_equal(atomic_load(&f.num_interrupts[0]), interrupts);
		assert_int_equal(atomic_load(&f.num_config_interrupts), changes);
		assert_int_equal(atomic_load(&f.num_failures), 0);
	}
	fixture_stop(&f);
}

/* ---- Creation ---------------------------------------------------------------------------------------- */

static void back_end_that_is_no_disk_is_refused(void **state)
{
	static const struct {
		uint64_t features, protocol_features;
		unsigned num_queues, queues;
		const char *message;
	} cases[] = {
		{ BACK_END_FEATURES & ~VIRTIO_F_VERSION_1, ~0ull, 2, 1, "no block device of virtio 1.0" },
		{ BACK_END_FEATURES, ~VHOST_USER_PROTOCOL_CONFIG, 2, 1, "no block device of virtio 1.0" },
		{ BACK_END_FEATURES & ~(1ull << 30), ~0ull, 2, 1, "no block device of virtio 1.0" },
		{ BACK_END_FEATURES, ~0ull, 2, 3, "has 2 queues, not 3" },
		{ BACK_END_FEATURES, ~VHOST_USER_PROTOCOL_MQ, 2, 2, "has 1 queues, not 2" },
		{ BACK_END_FEATURES, ~0ull, 0, 0, "has 0 queues" },
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct fixture f;

		fixture_init(&f);
		f.back_end.features = cases[i].features;
		f.back_end.protocol_features = cases[i].protocol_features;
		f.back_end.num_queues = cases[i].num_queues;
		assert_int_equal(create(&f, cases[i].queues), -ENOTSUP);
		assert_non_null(strstr(rig_last_report(), cases[i].message));
		assert_int_equal(rig_num_reports(), 1);
		fixture_stop(&f);
	}
}

static void nobody_at_the_socket_is_an_error(void **state)
{
	const struct vhost_user_blk_config config = { .socket = "/nowhere/at/all", .default_queues = 1, .ram_fd = -1 };
	struct virtio_device *device;
	struct rig rig;

	(void)state;
	rig_start(&rig);
	assert_int_equal(vhost_user_blk_create(&config, &rig.ram, &device), -ENOENT);
	assert_non_null(strstr(rig_last_report(), "nobody listens at the socket /nowhere/at/all"));
	rig_stop(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(features_are_those_that_can_be_kept),
		cmocka_unit_test(configuration_is_the_back_ends_but_for_the_queues),
		cmocka_unit_test(empty_size_max_is_not_offered),
		cmocka_unit_test(only_the_write_cache_can_be_configured),
		cmocka_unit_test(notifications_and_interrupts_are_eventfds),
		cmocka_unit_test(forgotten_interrupt_is_made_up_for),
		cmocka_unit_test(forgotten_notification_is_made_up_for),
		cmocka_unit_test(ring_at_rest_is_left_at_rest),
		cmocka_unit_test(change_of_configuration_reaches_the_driver),
		cmocka_unit_test(change_of_configuration_waits_for_the_driver),
		cmocka_unit_test(error_of_a_ring_fails_the_device),
		cmocka_unit_test(end_while_running_fails_the_device_once),
		cmocka_unit_test(end_before_the_driver_is_reported_once),
		cmocka_unit_test(end_at_every_step_is_survived),
		cmocka_unit_test(queue_that_cannot_be_bound_is_an_error),
		cmocka_unit_test(transport_is_left_alone_after_a_reset),
		cmocka_unit_test(back_end_that_is_no_disk_is_refused),
		cmocka_unit_test(nobody_at_the_socket_is_an_error),
	};

	return RUN_TESTS("vhost_user_blk", tests);
}
