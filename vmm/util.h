/* SPDX-License-Identifier: MIT */
/* What every part of the VMM uses: messages for the user, and the exit statuses. */
#ifndef VMM_UTIL_H
#define VMM_UTIL_H

#include <signal.h>
#include <stdint.h>

/* What the program's exit status says. Documented in --help and in the manual page. */
enum exit_status {
	EXIT_DONE = 0,        /* the guest powered off, --exit-on saw its text, or the user left */
	EXIT_FAULT = 1,       /* the guest or the host cannot go on */
	EXIT_USAGE = 2,       /* the command line is wrong */
	EXIT_TIMEOUT = 3,     /* --timeout has run out */
	EXIT_GUEST_RESET = 4, /* the guest asked for a reset and --no-reboot was given */
};

/* Print one line "vgic-vmm: ..." on standard error, below what the guest has printed so far. */
void message(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The signal that asked the program to end, or 0. */
extern volatile sig_atomic_t signal_received;

/* Another has asked that the machine be saved: SIGUSR1. */
extern volatile sig_atomic_t save_signal;

/* Wall-clock time that never jumps, in nanoseconds. */
uint64_t monotonic_ns(void);

#endif /* VMM_UTIL_H */
