/* SPDX-License-Identifier: MIT */
/*
 * Tests that report in the Test Anything Protocol.
 *
 * A program defines tests[]. Each test is a function that starts with the
 * controller as gic_reset() leaves it and with interrupts masked on all CPUs,
 * and ends at its first EXPECT that does not hold: that is "not ok", with what was
 * found. Nothing waits without a bound, so a lost interrupt is a failed test.
 */
#ifndef GUEST_TAP_H
#define GUEST_TAP_H

#include "fdt.h"
#include "smp.h"

struct test {
	const char *name;
	void (*run)(void);
	unsigned min_cpus; /* skipped on a machine with fewer */
};

#define TEST(function, cpus_needed)                                                                                    \
	{                                                                                                              \
		.name = #function, .run = function, .min_cpus = cpus_needed                                            \
	}

extern const struct test tests[];
extern const unsigned num_tests;

extern struct machine_info machine;

void tap_fail(const char *file, int line, const char *what);
void tap_fail_values(const char *file, int line, const char *what, uint64_t actual, uint64_t expected);
void tap_skip(const char *reason);
bool tap_has_failed(void); /* the test that is running */
void tap_bail_out(const char *reason) __attribute__((noreturn));

/* These leave the function that they are in, which returns void. */
#define EXPECT(condition)                                                                                              \
	do {                                                                                                           \
		if (!(condition)) {                                                                                    \
			tap_fail(__FILE__, __LINE__, #condition);                                                      \
			return;                                                                                        \
		}                                                                                                      \
	} while (0)

#define EXPECT_EQ(actual, expected)                                                                                    \
	do {                                                                                                           \
		uint64_t actual_ = (uint64_t)(actual), expected_ = (uint64_t)(expected);                               \
		if (actual_ != expected_) {                                                                            \
			tap_fail_values(__FILE__, __LINE__, #actual, actual_, expected_);                              \
			return;                                                                                        \
		}                                                                                                      \
	} while (0)

/* Call a function that has EXPECTs of its own. */
#define EXPECT_PASS(call)                                                                                              \
	do {                                                                                                           \
		call;                                                                                                  \
		if (tap_has_failed())                                                                                  \
			return;                                                                                        \
	} while (0)

#define SKIP_UNLESS(condition, reason)                                                                                 \
	do {                                                                                                           \
		if (!(condition)) {                                                                                    \
			tap_skip(reason);                                                                              \
			return;                                                                                        \
		}                                                                                                      \
	} while (0)

/* ---- Waiting ------------------------------------------------------------------ */

/*
 * A wait ends without success when it has looked this often *and* this long: machines with virtual time may let the
 * counter run fast or slow, and on others a CPU may be stopped for some time by the host.
 */
struct deadline {
	uint64_t counter;
	uint32_t looks_left;
};

struct deadline deadline_start(void);
bool deadline_passed(struct deadline *deadline);

#define WAIT_FOR(condition)                                                                                            \
	({                                                                                                             \
		struct deadline deadline_ = deadline_start();                                                          \
		bool met_;                                                                                             \
		while (!(met_ = (condition)) && !deadline_passed(&deadline_))                                          \
			cpu_relax();                                                                                   \
		met_;                                                                                                  \
	})

#endif
