/* SPDX-License-Identifier: MIT */
/* CPUs that wait in WFI for an interrupt. */
#ifndef GUEST_SLEEP_H
#define GUEST_SLEEP_H

#include "arch.h"

/* This CPU sleeps until it has handled @intid @times times. Returns how often it woke. */
uint64_t sleep_until_handled(uint32_t intid, uint32_t times);

/* CPU 1 does so, once, and has had the time to be in WFI when the first returns; the second waits for its wake-up. */
void put_to_sleep(uint32_t intid);
void await_wake_up(void);

#endif
