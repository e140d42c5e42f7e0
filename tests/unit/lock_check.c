/* SPDX-License-Identifier: MIT */
/*
 * The checks of the locks' order and of R7: what they let pass, and what they stop. Each
 * fault is committed by a process of its own, which has to end by abort() and to say why.
 */
#include "unit.h"

#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vgic/vgic.h>

#include "port.h"

static struct port_lock *locks[NUM_LOCK_CLASSES];

static int make_locks(void **state)
{
	(void)state;
	for (unsigned c = 0; c < NUM_LOCK_CLASSES; c++) {
		locks[c] = port_lock_new((enum lock_class)c);
		if (!locks[c])
			return -1;
	}
	return 0;
}

static int free_locks(void **state)
{
	(void)state;
	for (unsigned c = 0; c < NUM_LOCK_CLASSES; c++)
		port_lock_free(locks[c]);
	return 0;
}

static void take(enum lock_class class)
{
	port_lock_acquire(locks[class]);
}

static void give(enum lock_class class)
{
	port_lock_release(locks[class]);
}

/* @fault is stopped, and @words are in the message. */
static void expect_stop(void (*fault)(void), const char *words)
{
	char message[200] = "";
	int status, ends[2];
	pid_t child;

	assert_int_equal(pipe(ends), 0);
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		signal(SIGABRT, SIG_DFL);
		dup2(ends[1], STDERR_FILENO);
		fault();
		_exit(0);
	}
	close(ends[1]);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(read(ends[0], message, sizeof(message) - 1) >= 0);
	close(ends[0]);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
	if (!strstr(message, words))
		fail_msg("the message is '%s', without '%s'", message, words);
}

static void documented_orders_pass(void **state)
{
	static const enum lock_class orders[][2] = { { LOCK_MSIX, LOCK_IRQFDS },
						     { LOCK_MSIX, LOCK_ROUTES },
						     { LOCK_ROUTE_LIST, LOCK_ROUTES } };

	(void)state;
	for (unsigned i = 0; i < sizeof(orders) / sizeof(orders[0]); i++) {
		take(orders[i][0]);
		take(orders[i][1]);
		give(orders[i][1]);
		give(orders[i][0]);
	}
	for (unsigned c = 0; c < NUM_LOCK_CLASSES; c++) {
		take((enum lock_class)c);
		give((enum lock_class)c);
	}
}

static void take_config_under_routes(void)
{
	take(LOCK_ROUTES);
	take(LOCK_CONFIG);
}

static void take_routes_under_config(void)
{
	take(LOCK_CONFIG);
	take(LOCK_ROUTES);
}

static void take_msix_under_irqfds(void)
{
	take(LOCK_IRQFDS);
	take(LOCK_MSIX);
}

static void take_config_twice(void)
{
	take(LOCK_CONFIG);
	take(LOCK_CONFIG);
}

static void give_what_is_not_held(void)
{
	give(LOCK_MSIX);
}

static void other_orders_are_stopped(void **state)
{
	(void)state;
	expect_stop(take_config_under_routes, "takes config_lock while it holds a route table's lock");
	expect_stop(take_routes_under_config, "takes a route table's lock while it holds config_lock");
	expect_stop(take_msix_under_irqfds, "takes an MSI-X device's lock while it holds the irqfds' lock");
	expect_stop(take_config_twice, "takes config_lock while it holds config_lock");
	expect_stop(give_what_is_not_held, "releases an MSI-X device's lock while it does not hold it");
}

static void take_while_delivering(void)
{
	DELIVERS_WITHOUT_LOCKS;

	take(LOCK_CONFIG);
}

static void allocate_while_delivering(void)
{
	DELIVERS_WITHOUT_LOCKS;

	port_free(port_alloc_zeroed(8, 8));
}

static void deliver_and_end(void)
{
	DELIVERS_WITHOUT_LOCKS;
}

static void deliver_twice(void)
{
	DELIVERS_WITHOUT_LOCKS;

	deliver_and_end();
	take(LOCK_CONFIG);
}

static void deliveries_take_no_lock_and_allocate_nothing(void **state)
{
	(void)state;
	expect_stop(take_while_delivering, "takes config_lock while it delivers");
	expect_stop(allocate_while_delivering, "allocates or frees memory while it delivers");
	expect_stop(deliver_twice, "takes config_lock while it delivers");
	deliver_and_end();
	take(LOCK_CONFIG);
	give(LOCK_CONFIG);
}

/* A VMM whose kick() calls back, which would wait for itself for ever. */
static struct vgic *vgic;

static void kick_that_calls_back(void *opaque, struct vgic_vcpu *vcpu)
{
	(void)opaque;
	(void)vcpu;
	vgic_run_work(vgic);
}

static void call_back_from_kick(void)
{
	const struct vgic_vcpu_config vcpu = { .id = 0 };
	struct vgic_config config;

	vgic_config_init(&config, VGIC_PROFILE_NATIVE);
	config.num_vcpus = 1;
	config.vcpus = &vcpu;
	config.ops.kick = kick_that_calls_back;
	if (vgic_create(&config, &vgic) == 0)
		vgic_vcpu_set_online(vgic_vcpu_by_index(vgic, 0), false);
}

static void callbacks_that_call_back_are_stopped(void **state)
{
	(void)state;
	expect_stop(call_back_from_kick, "takes config_lock while it holds config_lock");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(documented_orders_pass),
		cmocka_unit_test(other_orders_are_stopped),
		cmocka_unit_test(deliveries_take_no_lock_and_allocate_nothing),
		cmocka_unit_test(callbacks_that_call_back_are_stopped),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, make_locks, free_locks);
}
