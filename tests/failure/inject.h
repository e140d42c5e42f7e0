/* SPDX-License-Identifier: MIT */
/*
 * Calls that fail on command: see inject.c. A scenario is run again and again, each
 * time with another of its calls failing, until one run has had none that failed.
 */
#ifndef TESTS_FAILURE_INJECT_H
#define TESTS_FAILURE_INJECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct machine;

/* How much fails. */
enum inject_mode {
	INJECT_ONE,      /* the n-th call of this thread that can fail */
	INJECT_ALL_FROM, /* the n-th and all after it */
};

/* From here on calls of this thread are counted, and fail. @n is 1 for the first one, 0 for none. */
void inject_begin(enum inject_mode mode, unsigned n);
/* The end of it. Returns how many have failed. */
unsigned inject_end(void);

/* Calls that a signal may interrupt: while it is on, every second one of every thread is. */
void inject_interrupts(bool on);

/* A call of a callback that can fail: does this one? */
bool inject_call_fails(void);

/* Failures since inject_begin(). */
unsigned inject_failures(void);

/* What the library holds now: pieces of memory, and bytes; and descriptors of the whole process. */
unsigned inject_live(void);
size_t inject_live_bytes(void);
unsigned inject_open_fds(void);

/* Accesses of @m to guest memory can fail from now on: before its start. */
void inject_into_guest_memory(struct machine *m);

/* The call sites in the library, on standard output. Returns how many of them have never been made to fail. */
unsigned inject_report_sites(unsigned *num_sites);

#endif /* TESTS_FAILURE_INJECT_H */
