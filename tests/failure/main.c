/* SPDX-License-Identifier: MIT */
/*
 * Every call of the library that can fail is made to fail, in scenarios that reach all
 * of them; the last test says so, and which one was missed.
 */
#include <string.h>

#include "world.h"

static void every_call_site_has_failed(void **state)
{
	unsigned num, missed = inject_report_sites(&num);

	(void)state;
	print_message("# %u call sites in src/, %u of them have failed\n", num, num - missed);
	assert_true(num >= 60);
	assert_int_equal(missed, 0);
}

int main(void)
{
	struct CMUnitTest tests[32];
	size_t n = 0;

	memcpy(&tests[n], life_tests, num_life_tests * sizeof(tests[0]));
	n += num_life_tests;
	memcpy(&tests[n], state_tests, num_state_tests * sizeof(tests[0]));
	n += num_state_tests;
	memcpy(&tests[n], guest_tests, num_guest_tests * sizeof(tests[0]));
	n += num_guest_tests;
	tests[n++] = (struct CMUnitTest)cmocka_unit_test(every_call_site_has_failed);
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return _cmocka_run_group_tests("failure", tests, n, NULL, NULL);
}
