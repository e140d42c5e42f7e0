/* SPDX-License-Identifier: MIT */
/*
 * Tests of the histogram: what goes in comes out, within the stated resolution.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "histogram.h"

static struct histogram h;

static int empty(void **state)
{
	(void)state;
	memset(&h, 0, sizeof(h));
	return 0;
}

static void nothing_is_zero(void **state)
{
	(void)state;
	assert_int_equal(histogram_count(&h), 0);
	assert_int_equal(histogram_percentile(&h, 50), 0);
}

/* Below the first power of two with steps, each value has its own bucket. */
static void small_values_are_exact(void **state)
{
	(void)state;
	for (uint64_t ns = 0; ns < 2 * HISTOGRAM_STEPS; ns++) {
		empty(state);
		histogram_add(&h, ns);
		assert_int_equal(histogram_percentile(&h, 50), ns);
	}
}

static void values_are_never_too_low_and_hardly_too_high(void **state)
{
	(void)state;
	for (unsigned bit = 1; bit < 40; bit++) {
		for (int64_t delta = -3; delta <= 3; delta++) {
			const uint64_t ns = (UINT64_C(3) << bit >> 1) + (uint64_t)delta;

			if (ns >= UINT64_C(1) << 40)
				continue;
			empty(state);
			histogram_add(&h, ns);
			assert_in_range(histogram_percentile(&h, 50), ns, ns + ns / HISTOGRAM_STEPS);
		}
	}
}

static void what_is_too_long_goes_to_the_last_bucket(void **state)
{
	(void)state;
	histogram_add(&h, UINT64_MAX);
	histogram_add(&h, UINT64_C(1) << 40);
	assert_int_equal(histogram_count(&h), 2);
	assert_int_equal(histogram_percentile(&h, 1), (UINT64_C(1) << 40) - 1);
}

static void percentiles_are_ranks(void **state)
{
	(void)state;
	for (uint64_t ns = 1; ns <= 50; ns++)
		histogram_add(&h, ns);
	assert_int_equal(histogram_count(&h), 50);
	assert_int_equal(histogram_percentile(&h, 2), 1);
	assert_int_equal(histogram_percentile(&h, 50), 25);
	assert_int_equal(histogram_percentile(&h, 98), 49);
	assert_int_equal(histogram_percentile(&h, 99), 50);
	assert_int_equal(histogram_percentile(&h, 100), 50);
	histogram_add(&h, 1000000);
	assert_int_equal(histogram_percentile(&h, 50), 26);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(nothing_is_zero, empty),
		cmocka_unit_test_setup(small_values_are_exact, empty),
		cmocka_unit_test_setup(values_are_never_too_low_and_hardly_too_high, empty),
		cmocka_unit_test_setup(what_is_too_long_goes_to_the_last_bucket, empty),
		cmocka_unit_test_setup(percentiles_are_ranks, empty),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
