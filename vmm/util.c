/* SPDX-License-Identifier: MIT */
/* Messages for the user, and the clock. */
#include "util.h"

#include <stdarg.h>
#include <stdio.h>
#include <time.h>

volatile sig_atomic_t signal_received;
volatile sig_atomic_t save_signal;

void message(const char *format, ...)
{
	va_list args;

	fflush(stdout);
	flockfile(stderr); /* devices' threads have messages too */
	fputs("vgic-vmm: ", stderr);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	funlockfile(stderr);
}

uint64_t monotonic_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}
