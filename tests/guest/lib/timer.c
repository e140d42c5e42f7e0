/* SPDX-License-Identifier: MIT */
/* The generic timer. */
#include "timer.h"

#define CTL_ENABLE  (1u << 0)
#define CTL_IMASK   (1u << 1)
#define CTL_ISTATUS (1u << 2)

uint64_t timer_now(void)
{
	isb();
	return read_sysreg(cntvct_el0);
}

void timer_delay(uint64_t microseconds)
{
	uint64_t end = timer_now() + read_sysreg(cntfrq_el0) * microseconds / 1000000;

	while (timer_now() < end)
		cpu_relax();
}

static void write_ctl(enum timer timer, uint64_t value)
{
	if (timer == VIRTUAL_TIMER)
		write_sysreg(cntv_ctl_el0, value);
	else
		write_sysreg(cntp_ctl_el0, value);
	isb();
}

void timer_set(enum timer timer, uint64_t microseconds_from_now)
{
	uint64_t ticks = read_sysreg(cntfrq_el0) * microseconds_from_now / 1000000;

	isb();
	if (timer == VIRTUAL_TIMER)
		write_sysreg(cntv_cval_el0, read_sysreg(cntvct_el0) + ticks);
	else
		write_sysreg(cntp_cval_el0, read_sysreg(cntpct_el0) + ticks);
	write_ctl(timer, CTL_ENABLE);
}

void timer_mask(enum timer timer)
{
	write_ctl(timer, CTL_ENABLE | CTL_IMASK);
}

void timer_unmask(enum timer timer)
{
	write_ctl(timer, CTL_ENABLE);
}

void timer_stop(enum timer timer)
{
	write_ctl(timer, 0);
}

bool timer_has_expired(enum timer timer)
{
	return (timer == VIRTUAL_TIMER ? read_sysreg(cntv_ctl_el0) : read_sysreg(cntp_ctl_el0)) & CTL_ISTATUS;
}
