/* SPDX-License-Identifier: MIT */
/*
 * Tests of how the benchmarks measure: turns, counts, medians, wrong results. No
 * test depends on how long anything takes.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "measure.h"

/* What a fake loop was asked for, in order: its letter, once for each batch. */
static char calls[64];

struct fake {
	char letter;
	uint64_t iterations;
	unsigned fail_at; /* the batch whose result is wrong, from 1; 0: none */
	unsigned batches;
};

static bool run_fake(void *context, uint64_t iterations)
{
	struct fake *fake = context;

	calls[strlen(calls) % (sizeof(calls) - 1)] = fake->letter;
	fake->iterations = iterations;
	return ++fake->batches != fake->fail_at;
}

static struct series fake_series(struct fake *fake)
{
	return (struct series){ .name = "fake", .run = run_fake, .context = fake };
}

static int reset(void **state)
{
	(void)state;
	memset(calls, 0, sizeof(calls));
	return 0;
}

static void series_take_turns(void **state)
{
	struct fake a = { .letter = 'a' }, b = { .letter = 'b' };
	struct series series_a = fake_series(&a), series_b = fake_series(&b);
	struct series *const turns[] = { &series_a, &series_b, &series_a };
	const struct measure_options options = { .batches = 3, .iterations = 7 };
	const struct series *failed = NULL;

	(void)state;
	assert_int_equal(measure_run(turns, 3, &options, &failed), 0);
	assert_string_equal(calls, "abaabaaba");
	assert_int_equal(series_a.num_batches, 6);
	assert_int_equal(series_b.num_batches, 3);
	assert_int_equal(a.iterations, 7);
	assert_int_equal(b.iterations, 7);
	assert_null(failed);
	measure_free(&series_a);
	measure_free(&series_b);
}

static void wrong_result_ends_the_run(void **state)
{
	struct fake a = { .letter = 'a' }, b = { .letter = 'b', .fail_at = 2 };
	struct series series_a = fake_series(&a), series_b = fake_series(&b);
	struct series *const turns[] = { &series_a, &series_b };
	const struct measure_options options = { .batches = 5, .iterations = 1 };
	const struct series *failed = NULL;

	(void)state;
	assert_int_equal(measure_run(turns, 2, &options, &failed), -EIO);
	assert_string_equal(calls, "abab");
	assert_ptr_equal(failed, &series_b);
	measure_free(&series_a);
	measure_free(&series_b);
}

static void wrong_result_while_calibrating_ends_the_run(void **state)
{
	struct fake a = { .letter = 'a', .fail_at = 1 };
	struct series series_a = fake_series(&a);
	struct series *const turns[] = { &series_a };
	const struct measure_options options = { .batches = 5 };
	const struct series *failed = NULL;

	(void)state;
	assert_int_equal(measure_run(turns, 1, &options, &failed), -EIO);
	assert_ptr_equal(failed, &series_a);
	measure_free(&series_a);
}

static struct summary summary_of(const double *ns, unsigned num)
{
	struct series series = { .batch_ns = calloc(num, sizeof(double)), .num_batches = num };

	assert_non_null(series.batch_ns);
	memcpy(series.batch_ns, ns, num * sizeof(double));

	const struct summary summary = measure_summarize(&series);

	measure_free(&series);
	return summary;
}

/* The figures are small integers: exact in a double. */
static void assert_summary(struct summary summary, double min, double median, double p90)
{
	assert_true(summary.min == min);
	assert_true(summary.median == median);
	assert_true(summary.p90 == p90);
}

static void median_is_that_of_the_batches(void **state)
{
	(void)state;
	assert_summary(summary_of((double[]){ 4 }, 1), 4, 4, 4);
	assert_summary(summary_of((double[]){ 9, 1, 5 }, 3), 1, 5, 5);
	/* Of an even number of batches, the mean of the two in the middle; one slow batch does not count. */
	assert_summary(summary_of((double[]){ 1000, 2, 4, 1 }, 4), 1, 3, 4);
	assert_summary(summary_of((double[]){ 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1 }, 11), 1, 6, 10);
}

static void atomic_operation_is_done_and_seen(void **state)
{
	struct series rmw;

	(void)state;
	measure_init_rmw(&rmw);
	assert_true(rmw.run(rmw.context, 100));
}

static void cpu_out_of_range_is_an_error(void **state)
{
	(void)state;
	assert_int_equal(measure_pin(-1), -EINVAL);
	assert_int_equal(measure_pin(1 << 20), -EINVAL);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(series_take_turns, reset),
		cmocka_unit_test_setup(wrong_result_ends_the_run, reset),
		cmocka_unit_test_setup(wrong_result_while_calibrating_ends_the_run, reset),
		cmocka_unit_test(median_is_that_of_the_batches),
		cmocka_unit_test(atomic_operation_is_done_and_seen),
		cmocka_unit_test(cpu_out_of_range_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
