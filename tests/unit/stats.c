/* SPDX-License-Identifier: MIT */
/*
 * Counters, and the rate limit of reports, with a clock that the test sets.
 */
#include "unit.h"

#include <errno.h>
#include <string.h>

#define SECOND UINT64_C(1000000000)

static uint64_t now;

uint64_t __wrap_port_now_ns(void);

uint64_t __wrap_port_now_ns(void)
{
	return now;
}

static void make_errors(struct unit *u, unsigned n)
{
	while (n-- > 0)
		guest_error(u->vgic, VGIC_GUEST_SGI_NO_TARGET, "test", 1, 2);
}

static void ten_reports_a_second_and_the_rest_counted(void **state)
{
	struct unit *u = unit_start(1, 0, 16);

	(void)state;
	now = 5 * SECOND;
	make_errors(u, 10);
	assert_int_equal(u->num_reports, 10);
	assert_int_equal(u->last_report.unreported, 0);
	make_errors(u, 990);
	assert_int_equal(u->num_reports, 10);
	assert_int_equal(load_relaxed(&u->vgic->guest_errors[VGIC_GUEST_SGI_NO_TARGET]), 1000);

	/* The second is not over by a nanosecond. */
	now = 6 * SECOND - 1;
	make_errors(u, 7);
	assert_int_equal(u->num_reports, 10);

	/* Now it is: the first report says how many it missed, the next that it missed none. */
	now = 6 * SECOND;
	make_errors(u, 1);
	assert_int_equal(u->num_reports, 11);
	assert_int_equal(u->last_report.unreported, 997);
	make_errors(u, 1);
	assert_int_equal(u->num_reports, 12);
	assert_int_equal(u->last_report.unreported, 0);
	make_errors(u, 8);
	assert_int_equal(u->num_reports, 20);
	make_errors(u, 1);
	assert_int_equal(u->num_reports, 20);
	unit_stop(u);
}

/* A second begins with the first report of it, not at full seconds of the clock. */
static void seconds_begin_with_a_report(void **state)
{
	struct unit *u = unit_start(1, 0, 16);

	(void)state;
	now = 100 * SECOND + SECOND / 2;
	make_errors(u, 12);
	assert_int_equal(u->num_reports, 10);
	now = 101 * SECOND;
	make_errors(u, 1);
	assert_int_equal(u->num_reports, 10);
	now = 101 * SECOND + SECOND / 2;
	make_errors(u, 1);
	assert_int_equal(u->num_reports, 11);
	assert_int_equal(u->last_report.unreported, 3);
	/* Long silence does not save reports up. */
	now = 1000 * SECOND;
	make_errors(u, 50);
	assert_int_equal(u->num_reports, 21);
	unit_stop(u);
}

/* The first second of a clock that begins at zero is limited as well. */
static void clock_may_begin_at_zero(void **state)
{
	struct unit *u = unit_start(1, 0, 16);

	(void)state;
	now = 0;
	make_errors(u, 30);
	assert_int_equal(u->num_reports, 10);
	now = SECOND;
	make_errors(u, 1);
	assert_int_equal(u->num_reports, 11);
	assert_int_equal(u->last_report.unreported, 20);
	unit_stop(u);
}

/* In each of many seconds a different number of errors: reports and misses always add up to the errors. */
static void every_error_is_reported_or_unreported(void **state)
{
	struct unit *u = unit_start(1, 0, 16);
	struct rng rng = { 80 };
	uint64_t errors = 0, missed = 0;
	unsigned reports = 0;

	(void)state;
	for (unsigned second = 1; second <= 500; second++) {
		const unsigned n = 1 + rng_below(&rng, 30);

		now = second * 2 * SECOND + rng_below(&rng, 1000);
		make_errors(u, 1);
		missed += u->last_report.unreported;
		make_errors(u, n - 1);
		errors += n;
		reports += n < 10 ? n : 10;
		assert_int_equal(u->num_reports, reports);
	}
	assert_int_equal(u->num_reports + missed + load_relaxed(&u->vgic->unreported), errors);
	assert_int_equal(load_relaxed(&u->vgic->guest_errors[VGIC_GUEST_SGI_NO_TARGET]), errors);
	unit_stop(u);
}

static void report_carries_what_happened(void **state)
{
	static const char what[] = "ICC_DIR_EL1";
	struct unit *u = unit_start(1, 0, 16);

	(void)state;
	now = SECOND;
	guest_error(u->vgic, VGIC_GUEST_DIR_UNEXPECTED, what, 0x1234, UINT64_C(0xfedcba9876543210));
	assert_int_equal(u->num_reports, 1);
	assert_int_equal(u->last_report.kind, VGIC_GUEST_DIR_UNEXPECTED);
	assert_ptr_equal(u->last_report.what, what);
	assert_int_equal(u->last_report.address, 0x1234);
	assert_int_equal(u->last_report.value, UINT64_C(0xfedcba9876543210));
	unit_stop(u);
}

/* Each kind has a counter of its own; all kinds share the limit. */
static void kinds_are_counted_apart(void **state)
{
	struct unit *u = unit_start(1, 0, 16);
	struct vgic_stats stats = { .size = sizeof(stats) };

	(void)state;
	now = SECOND;
	for (unsigned kind = 0; kind < VGIC_NUM_GUEST_ERRORS; kind++) {
		for (unsigned n = 0; n <= kind; n++)
			guest_error(u->vgic, kind, "test", 0, 0);
	}
	assert_int_equal(u->num_reports, 10);
	assert_int_equal(vgic_get_stats(u->vgic, &stats), 0);
	for (unsigned kind = 0; kind < VGIC_NUM_GUEST_ERRORS; kind++)
		assert_int_equal(stats.guest_errors[kind], kind + 1);
	unit_stop(u);
}

/* Who does not listen misses nothing: the counters count, and "unreported" stays out of it. */
static void without_a_callback_errors_are_counted_only(void **state)
{
	struct unit *u = unit_start(1, 0, 16);
	struct vgic_stats stats = { .size = sizeof(stats) };

	(void)state;
	now = SECOND;
	u->vgic->ops.guest_error = NULL;
	make_errors(u, 25);
	assert_int_equal(u->num_reports, 0);
	assert_int_equal(load_relaxed(&u->vgic->unreported), 0);
	assert_int_equal(vgic_get_stats(u->vgic, &stats), 0);
	assert_int_equal(stats.guest_errors[VGIC_GUEST_SGI_NO_TARGET], 25);
	unit_stop(u);
}

static void stats_are_summed_over_all_vcpus(void **state)
{
	struct unit *u = unit_start(4, 0, 16);
	struct vgic_stats stats;

	(void)state;
	for (uint32_t i = 0; i < 4; i++) {
		store_relaxed(&unit_vcpu(u, i)->acknowledges, 1 + i);
		store_relaxed(&unit_vcpu(u, i)->spurious, 10 + i);
		store_relaxed(&unit_vcpu(u, i)->stale_hints, 100 + i);
	}
	store_relaxed(&u->vgic->kicks, 77);
	memset(&stats, 0xff, sizeof(stats));
	stats.size = sizeof(stats);
	assert_int_equal(vgic_get_stats(u->vgic, &stats), 0);
	assert_int_equal(stats.size, sizeof(stats));
	assert_int_equal(stats.acknowledges, 10);
	assert_int_equal(stats.spurious, 46);
	assert_int_equal(stats.stale_hints, 406);
	assert_int_equal(stats.kicks, 77);
	for (unsigned kind = 0; kind < VGIC_NUM_GUEST_ERRORS; kind++)
		assert_int_equal(stats.guest_errors[kind], 0);
	assert_int_equal(vgic_get_stats(u->vgic, NULL), -EINVAL);
	unit_stop(u);
}

/* What IAR and the search do is counted where it happens. */
static void acknowledges_are_counted_by_what_they_return(void **state)
{
	struct unit *u = unit_start(1, 0, 16);
	struct vgic_vcpu *vcpu = unit_vcpu(u, 0);
	struct vgic_stats stats = { .size = sizeof(stats) };
	uint64_t intid;

	(void)state;
	now = SECOND;
	unit_open(u);
	assert_int_equal(vgic_redist_write(vcpu, 0x10100, 4, 0xffffffff), 0); /* GICR_ISENABLER0 */
	assert_int_equal(vgic_redist_write(vcpu, 0x10200, 4, 0x00000007), 0); /* GICR_ISPENDR0: three in Group 0 */
	for (int i = 0; i < 5; i++) {
		assert_int_equal(vgic_icc_read(vcpu, VGIC_ICC_IAR0_EL1, &intid), 0);
		assert_int_equal(intid, i == 0 ? 0 : 1023); /* equal priorities do not preempt */
	}
	assert_int_equal(vgic_icc_read(vcpu, VGIC_ICC_IAR1_EL1, &intid), 0);
	assert_int_equal(vgic_icc_write(vcpu, VGIC_ICC_EOIR0_EL1, 0), 0);
	assert_int_equal(vgic_icc_read(vcpu, VGIC_ICC_IAR0_EL1, &intid), 0);
	assert_int_equal(vgic_get_stats(u->vgic, &stats), 0);
	assert_int_equal(stats.acknowledges, 2);
	assert_int_equal(stats.spurious, 5);
	unit_stop(u);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ten_reports_a_second_and_the_rest_counted),
		cmocka_unit_test(seconds_begin_with_a_report),
		cmocka_unit_test(clock_may_begin_at_zero),
		cmocka_unit_test(every_error_is_reported_or_unreported),
		cmocka_unit_test(report_carries_what_happened),
		cmocka_unit_test(kinds_are_counted_apart),
		cmocka_unit_test(without_a_callback_errors_are_counted_only),
		cmocka_unit_test(stats_are_summed_over_all_vcpus),
		cmocka_unit_test(acknowledges_are_counted_by_what_they_return),
	};

	return RUN_TESTS("stats", tests);
}
