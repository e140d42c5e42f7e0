/* SPDX-License-Identifier: MIT */
/* WFI and its wake-up; the boot CPU looks on. */
#include "sleep.h"

#include "exception.h"
#include "tap.h"
#include "timer.h"

/* WFI with interrupts masked wakes for a pending one, so that none can slip in between the look and the WFI. */
uint64_t sleep_until_handled(uint32_t intid, uint32_t times)
{
	uint64_t wakes = 0;

	mask_all();
	while (handled_by(this_cpu()->index, intid) < times) {
		wfi();
		wakes++;
		unmask_all();
		mask_all();
	}
	return wakes;
}

static volatile bool about_to_sleep;

static uint64_t sleep_until_handled_once(uint64_t intid)
{
	about_to_sleep = true;
	return sleep_until_handled((uint32_t)intid, 1);
}

void put_to_sleep(uint32_t intid)
{
	about_to_sleep = false;
	smp_start(1, sleep_until_handled_once, intid);
	if (!WAIT_FOR(about_to_sleep))
		tap_bail_out("a CPU does not answer");
	timer_delay(200);
}

void await_wake_up(void)
{
	if (!smp_wait(1))
		tap_bail_out("a CPU does not wake from WFI");
}
