/* SPDX-License-Identifier: MIT */
/*
 * Unit tests of irqfds: states that their API leads to only by chance.
 */
#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "irqfd.h"
#include "unit.h"

#define GSI 3u
#define SPI 40u

static struct vgic_irqfds *irqfds;
static uint64_t token;
static atomic_bool deassigned;

static int watch(void *opaque, int fd, uint64_t t)
{
	(void)opaque;
	(void)fd;
	token = t;
	return 0;
}

static void unwatch(void *opaque, int fd, uint64_t t)
{
	(void)opaque;
	(void)fd;
	(void)t;
}

static void kick(void *opaque, struct vgic_vcpu *vcpu)
{
	(void)opaque;
	(void)vcpu;
}

/* A thread that has an event of the GSI goes on, after it was preempted before it could put it into the queue. */
static void *push_late(void *unused)
{
	struct irqfd_item *item = &irqfds->worker.items[GSI], *head = NULL;

	(void)unused;
	for (unsigned turn = 0; !atomic_load(&deassigned) && turn < 2000; turn++)
		port_pause(turn);
	do {
		atomic_store(&item->next, head);
	} while (!atomic_compare_exchange_weak(&irqfds->worker.head, &head, item));
	irqfd_defer(irqfds, GSI + 1, IRQFD_WANT_EDGE); /* wakes the worker */
	return NULL;
}

static void deassign_waits_for_a_raise_that_is_not_in_the_queue_yet(void **state)
{
	const struct vgic_route route = { .type = VGIC_ROUTE_SPI, .to.spi = { .intid = SPI } };
	const struct vgic_vcpu_config vcpu = { 0 };
	const int fd = eventfd(0, 0), resample = eventfd(0, EFD_NONBLOCK);
	struct vgic_irqfds_config how;
	struct vgic_config config;
	struct vgic_routes *routes;
	struct vgic *vgic;
	pthread_t thread;

	(void)state;
	vgic_config_init(&config, VGIC_PROFILE_NATIVE);
	config.num_vcpus = 1;
	config.vcpus = &vcpu;
	config.ops.kick = kick;
	assert_int_equal(vgic_create(&config, &vgic), 0);
	assert_int_equal(vgic_routes_create(vgic, 8, &routes), 0);
	assert_int_equal(vgic_route_set(routes, GSI, &route), 0);
	vgic_irqfds_config_init(&how);
	how.door = VGIC_IRQFD_LOOP;
	how.path = VGIC_IRQFD_DEFERRED;
	how.ops.watch = watch;
	how.ops.unwatch = unwatch;
	assert_int_equal(vgic_irqfds_create(routes, &how, &irqfds), 0);
	assert_int_equal(vgic_irqfd_assign(irqfds, GSI, fd, resample), 0);

	atomic_fetch_or(&irqfds->worker.items[GSI].wanted, IRQFD_WANT_EDGE);
	assert_int_equal(vgic_irqfd_ready(irqfds, token), 1);
	assert_int_equal(pthread_create(&thread, NULL, push_late, NULL), 0);
	assert_int_equal(vgic_irqfd_deassign(irqfds, GSI, fd), 0);
	atomic_store(&deassigned, true);
	assert_int_equal(pthread_join(thread, NULL), 0);
	irqfd_worker_flush(irqfds);
	/* The line is low: to lower it changes nothing. */
	assert_int_equal(vgic_set_gsi(routes, GSI, false), 0);

	vgic_irqfds_destroy(irqfds);
	vgic_routes_destroy(routes);
	vgic_destroy(vgic);
	close(fd);
	close(resample);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(deassign_waits_for_a_raise_that_is_not_in_the_queue_yet),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("irqfd", tests, NULL, NULL);
}
