/* SPDX-License-Identifier: MIT */
/*
 * One event, against the beginning and the end of masks and pauses (R16, R20): whichever
 * is in the middle of its call is stopped before each of its accesses to shared memory
 * in turn, and overtaken by the others there. Every such race happens every time, and in
 * each the event is delivered, once.
 */
#include <errno.h>
#include <vgic/route.h>
#include <vgic/state.h>

#include "its_guest.h"

#include "routes_in_flight.h"

#define DOORBELL  (ITS_BASE(0) + VGIC_ITS_DOORBELL)
#define MAX_STOPS 64u

enum step { NO_STEP, MASK, UNMASK, PAUSE, RESUME, SIGNAL };

static struct machine *m;
static struct vgic_routes *routes;
static bool is_masked;
static unsigned num_pauses, num_signals, num_taken;

static void set_masked(bool masked)
{
	struct vgic_route route = { .type = VGIC_ROUTE_MSI, .flags = masked ? VGIC_ROUTE_MASKED : 0 };

	route.to.msi.address = DOORBELL;
	route.to.msi.devid = 1;
	route.to.msi.msi_flags = VGIC_MSI_VALID_DEVID;
	is_masked = masked;
	assert_int_equal(vgic_route_set(routes, 0, &route), 0);
}

static void do_step(void *context)
{
	int result;

	switch (*(const enum step *)context) {
	case NO_STEP:
		break;
	case MASK:
		set_masked(true);
		break;
	case UNMASK:
		set_masked(false);
		break;
	case PAUSE:
		num_pauses++;
		assert_int_equal(vgic_pause(m->vgic), 0);
		break;
	case RESUME:
		num_pauses--;
		assert_int_equal(vgic_resume(m->vgic), 0);
		break;
	case SIGNAL:
		num_signals++;
		result = vgic_signal_gsi(routes, 0);
		assert_true(result == 0 || result == 1);
		break;
	}
	/* At once, so that a second delivery is not merged with it. */
	while (lines_of(m, 0)) {
		assert_int_equal(ack1(m, 0), 8192);
		eoi1(m, 0, 8192);
		num_taken++;
	}
}

/* End what has not ended by itself; nothing else, as that might put right what went wrong. Two events may be merged. */
static void expect_every_event(void)
{
	enum step resume = RESUME, unmask = UNMASK;

	while (num_pauses)
		do_step(&resume);
	if (is_masked)
		do_step(&unmask);
	assert_int_equal(vgic_gsi_is_pending(routes, 0), 0);
	assert_in_range(num_taken, 1, num_signals);
	num_taken = num_signals = 0;
}

/* How many of the two were reached. */
static unsigned race_once(const enum step *first, enum step call, const enum step *others, unsigned at, unsigned then)
{
	enum step steps[2] = { others[0], others[1] };
	struct routes_stop stops[2] = { { .before = at, .action = do_step, .context = &steps[0] },
					{ .before = then, .action = do_step, .context = &steps[1] } };

	for (unsigned i = 0; i < 3; i++) {
		enum step step = first[i];

		do_step(&step);
	}
	routes_stopped(do_step, &call, stops, 2);
	for (unsigned i = 0; i < 2; i++) {
		if (!stops[i].reached)
			do_step(&steps[i]);
	}
	expect_every_event();
	return stops[0].reached + stops[1].reached;
}

struct race {
	enum step first[3];
	enum step call; /* that is stopped */
	enum step others[2];
};

static void race(const struct race *r)
{
	unsigned num_reached = 0, at = 0, reached;

	do {
		reached = 0;
		for (unsigned then = at; then < MAX_STOPS; then++) {
			const unsigned n = race_once(r->first, r->call, r->others, at, then);

			reached += n;
			if (n < 2)
				break;
		}
		num_reached += reached;
		at++;
		assert_true(at < MAX_STOPS);
	} while (reached);
	assert_true(num_reached > 3);
}

static void run_races(const struct race *races, size_t num)
{
	m = its_boot(1, 1);
	map_collection(m, 0, 0);
	map_device(m, 1, 5);
	map_event(m, 1, 0, 8192, 0);
	assert_int_equal(vgic_routes_create(m->vgic, 2, &routes), 0);
	set_masked(false);
	for (size_t i = 0; i < num; i++)
		race(&races[i]);
	vgic_routes_destroy(routes);
	machine_stop(m);
}

static void a_signal_is_overtaken(void **state)
{
	static const struct race races[] = {
		{ { MASK }, SIGNAL, { UNMASK } },
		{ { MASK }, SIGNAL, { UNMASK, MASK } },
		{ { MASK }, SIGNAL, { UNMASK, UNMASK } },
		{ { MASK }, SIGNAL, { UNMASK, PAUSE } },
		{ { MASK }, SIGNAL, { PAUSE, UNMASK } },
		{ { NO_STEP }, SIGNAL, { MASK, UNMASK } },
		{ { NO_STEP }, SIGNAL, { PAUSE, RESUME } },
		{ { NO_STEP }, SIGNAL, { PAUSE, MASK } },
		{ { PAUSE }, SIGNAL, { RESUME } },
		{ { PAUSE }, SIGNAL, { RESUME, PAUSE } },
		{ { PAUSE }, SIGNAL, { RESUME, MASK } },
		{ { PAUSE }, SIGNAL, { MASK, RESUME } },
		{ { PAUSE, PAUSE }, SIGNAL, { RESUME, RESUME } },
		{ { MASK, PAUSE }, SIGNAL, { UNMASK, RESUME } },
		{ { MASK, PAUSE }, SIGNAL, { RESUME, UNMASK } },
		{ { PAUSE, MASK, SIGNAL }, SIGNAL, { UNMASK, RESUME } },
	};

	(void)state;
	run_races(races, sizeof(races) / sizeof(races[0]));
}

/* A pause begins and ends without the table's lock; a mask does not, and cannot overtake another change. */
static void the_end_of_a_mask_is_overtaken(void **state)
{
	static const struct race races[] = {
		{ { MASK }, UNMASK, { SIGNAL } },
		{ { MASK }, UNMASK, { SIGNAL, PAUSE } },
		{ { MASK }, UNMASK, { PAUSE, SIGNAL } },
		{ { MASK, SIGNAL }, UNMASK, { PAUSE } },
		{ { MASK, SIGNAL }, UNMASK, { SIGNAL } },
		{ { MASK, PAUSE }, UNMASK, { SIGNAL } },
		{ { MASK, PAUSE, SIGNAL }, UNMASK, { SIGNAL } },
	};

	(void)state;
	run_races(races, sizeof(races) / sizeof(races[0]));
}

static void the_end_of_a_pause_is_overtaken(void **state)
{
	static const struct race races[] = {
		{ { PAUSE, SIGNAL }, RESUME, { PAUSE } },
		{ { PAUSE, SIGNAL }, RESUME, { SIGNAL } },
		{ { PAUSE }, RESUME, { SIGNAL } },
		{ { PAUSE }, RESUME, { SIGNAL, PAUSE } },
		{ { PAUSE }, RESUME, { PAUSE, SIGNAL } },
		{ { MASK, PAUSE }, RESUME, { SIGNAL } },
		{ { MASK, PAUSE, SIGNAL }, RESUME, { PAUSE } },
	};

	(void)state;
	run_races(races, sizeof(races) / sizeof(races[0]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_signal_is_overtaken),
		cmocka_unit_test(the_end_of_a_mask_is_overtaken),
		cmocka_unit_test(the_end_of_a_pause_is_overtaken),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("routes_in_flight", tests, NULL, NULL);
}
