/* SPDX-License-Identifier: MIT */
/* The generic timer: the virtual and the physical timer of each CPU and their PPIs. */
#ifndef GUEST_TIMER_H
#define GUEST_TIMER_H

#include "arch.h"

enum timer { VIRTUAL_TIMER, PHYSICAL_TIMER };

#define VIRTUAL_TIMER_INTID  27u
#define PHYSICAL_TIMER_INTID 30u

uint64_t timer_now(void);
void timer_delay(uint64_t microseconds); /* by looking at the counter */

/* This CPU's timers. The output is high while the timer is enabled, not masked, and its time has come. */
void timer_set(enum timer timer, uint64_t microseconds_from_now);
void timer_mask(enum timer timer); /* CTL.IMASK: lowers the output, but the timer goes on */
void timer_unmask(enum timer timer);
void timer_stop(enum timer timer);
bool timer_has_expired(enum timer timer);

#endif
