/* SPDX-License-Identifier: MIT */
/* What a fuzz target asserts, whatever the build: a finding says what did not hold, and where. */
#ifndef TESTS_FUZZ_CHECK_H
#define TESTS_FUZZ_CHECK_H

#include <stdio.h>
#include <stdlib.h>

#define check(condition) ((condition) ? (void)0 : check_failed(#condition, __FILE__, __LINE__))

static inline _Noreturn void check_failed(const char *condition, const char *file, int line)
{
	fprintf(stderr, "%s:%d: this does not hold: %s\n", file, line, condition);
	abort();
}

#endif /* TESTS_FUZZ_CHECK_H */
