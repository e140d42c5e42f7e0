/* SPDX-License-Identifier: MIT */
/* The generic timer: see timer.h. */
#include "timer.h"

#include "arm64.h"
#include "cpu.h"
#include "gic.h"
#include "machine.h"
#include "snapshot_file.h"

#define CTL_ENABLE  (1u << 0)
#define CTL_IMASK   (1u << 1)
#define CTL_ISTATUS (1u << 2)

/* CNTKCTL_EL1: what EL0 may touch. */
#define CNTKCTL_EL0PCTEN (1u << 0)
#define CNTKCTL_EL0VCTEN (1u << 1)
#define CNTKCTL_EL0VTEN  (1u << 8)
#define CNTKCTL_EL0PTEN  (1u << 9)

static const unsigned timer_ppi[NUM_TIMERS] = {
	[TIMER_VIRTUAL] = TIMER_PPI_VIRTUAL,
	[TIMER_PHYSICAL] = TIMER_PPI_PHYSICAL,
};

static uint64_t counter(const struct vcpu *vcpu)
{
	return machine_now(vcpu->machine) / TIMER_NS_PER_TICK;
}

static bool condition_is_met(const struct timer *timer, uint64_t now)
{
	return timer->enabled && now >= timer->cval;
}

static void update_timer(struct vcpu *vcpu, enum timer_kind kind, uint64_t now)
{
	struct timer *timer = &vcpu->timers[kind];
	const bool level = condition_is_met(timer, now) && !timer->masked;

	if (level == timer->line)
		return;
	timer->line = level;
	gic_set_ppi(vcpu, timer_ppi[kind], 0, level);
}

void timer_update(struct vcpu *vcpu)
{
	const uint64_t now = counter(vcpu);

	for (unsigned i = 0; i < NUM_TIMERS; i++)
		update_timer(vcpu, i, now);
}

void timer_reset(struct vcpu *vcpu)
{
	for (unsigned i = 0; i < NUM_TIMERS; i++) {
		struct timer *timer = &vcpu->timers[i];

		timer->cval = 0;
		timer->enabled = false;
		timer->masked = false;
	}
	timer_update(vcpu);
}

uint64_t timer_deadline(const struct vcpu *vcpu)
{
	const uint64_t now = counter(vcpu);
	uint64_t deadline = UINT64_MAX;

	for (unsigned i = 0; i < NUM_TIMERS; i++) {
		const struct timer *timer = &vcpu->timers[i];

		if (!timer->enabled || timer->masked || now >= timer->cval)
			continue;
		if (timer->cval <= UINT64_MAX / TIMER_NS_PER_TICK && timer->cval * TIMER_NS_PER_TICK < deadline)
			deadline = timer->cval * TIMER_NS_PER_TICK;
	}
	return deadline;
}

/* ---- Saving and loading ------------------------------------------------------------- */

/* The counter is the machine's time: what is compared with it goes on by itself. */
void timer_save(const struct vcpu *vcpu, struct snapshot_out *out)
{
	for (unsigned i = 0; i < NUM_TIMERS; i++) {
		const struct timer *timer = &vcpu->timers[i];

		put_u64(out, timer->cval);
		put_u8(out, timer->enabled);
		put_u8(out, timer->masked);
		put_u8(out, timer->line);
	}
}

void timer_load(struct vcpu *vcpu, struct snapshot_in *in)
{
	for (unsigned i = 0; i < NUM_TIMERS; i++) {
		struct timer *timer = &vcpu->timers[i];

		timer->cval = get_u64(in);
		timer->enabled = get_bool(in);
		timer->masked = get_bool(in);
		timer->line = get_bool(in);
	}
}

/* ---- System registers -------------------------------------------------------------- */

bool timer_has_register(uint32_t reg)
{
	switch (reg) {
	case SYS_CNTFRQ_EL0:
	case SYS_CNTPCT_EL0:
	case SYS_CNTVCT_EL0:
	case SYS_CNTP_TVAL_EL0:
	case SYS_CNTP_CTL_EL0:
	case SYS_CNTP_CVAL_EL0:
	case SYS_CNTV_TVAL_EL0:
	case SYS_CNTV_CTL_EL0:
	case SYS_CNTV_CVAL_EL0:
		return true;
	default:
		return false;
	}
}

/* EL0 needs leave in CNTKCTL_EL1. Without it the access is left to the CPU, which traps it. */
static bool is_allowed(struct vcpu *vcpu, uint32_t reg, unsigned el)
{
	uint64_t leave;

	if (el != 0)
		return true;
	leave = cpu_sysreg(vcpu->cpu, SYS_CNTKCTL_EL1);
	switch (reg) {
	case SYS_CNTFRQ_EL0:
		return leave & (CNTKCTL_EL0PCTEN | CNTKCTL_EL0VCTEN);
	case SYS_CNTPCT_EL0:
		return leave & CNTKCTL_EL0PCTEN;
	case SYS_CNTVCT_EL0:
		return leave & CNTKCTL_EL0VCTEN;
	case SYS_CNTP_TVAL_EL0:
	case SYS_CNTP_CTL_EL0:
	case SYS_CNTP_CVAL_EL0:
		return leave & CNTKCTL_EL0PTEN;
	default:
		return leave & CNTKCTL_EL0VTEN;
	}
}

static enum timer_kind timer_of_register(uint32_t reg)
{
	return SYSREG_CRM(reg) == SYSREG_CRM(SYS_CNTP_CTL_EL0) ? TIMER_PHYSICAL : TIMER_VIRTUAL;
}

static uint64_t read_control(const struct timer *timer, uint64_t now)
{
	uint64_t ctl = 0;

	if (timer->enabled)
		ctl |= CTL_ENABLE;
	if (timer->masked)
		ctl |= CTL_IMASK;
	if (condition_is_met(timer, now))
		ctl |= CTL_ISTATUS;
	return ctl;
}

bool timer_read(struct vcpu *vcpu, uint32_t reg, unsigned el, uint64_t *value)
{
	const struct timer *timer = &vcpu->timers[timer_of_register(reg)];
	const uint64_t now = counter(vcpu);

	if (!is_allowed(vcpu, reg, el))
		return false;
	switch (reg) {
	case SYS_CNTFRQ_EL0:
		*value = TIMER_FREQUENCY;
		return true;
	case SYS_CNTPCT_EL0:
	case SYS_CNTVCT_EL0:
		*value = now;
		return true;
	case SYS_CNTP_TVAL_EL0:
	case SYS_CNTV_TVAL_EL0:
		*value = (uint32_t)(timer->cval - now);
		return true;
	case SYS_CNTP_CTL_EL0:
	case SYS_CNTV_CTL_EL0:
		*value = read_control(timer, now);
		return true;
	case SYS_CNTP_CVAL_EL0:
	case SYS_CNTV_CVAL_EL0:
		*value = timer->cval;
		return true;
	default:
		return false;
	}
}

bool timer_write(struct vcpu *vcpu, uint32_t reg, unsigned el, uint64_t value)
{
	struct timer *timer = &vcpu->timers[timer_of_register(reg)];

	if (!is_allowed(vcpu, reg, el))
		return false;
	switch (reg) {
	case SYS_CNTP_TVAL_EL0:
	case SYS_CNTV_TVAL_EL0:
		timer->cval = counter(vcpu) + (uint64_t)(int64_t)(int32_t)(uint32_t)value;
		break;
	case SYS_CNTP_CTL_EL0:
	case SYS_CNTV_CTL_EL0:
		timer->enabled = value & CTL_ENABLE;
		timer->masked = value & CTL_IMASK;
		break;
	case SYS_CNTP_CVAL_EL0:
	case SYS_CNTV_CVAL_EL0:
		timer->cval = value;
		break;
	default: /* CNTFRQ and the counters are read-only at EL1: the CPU makes the write UNDEFINED */
		return false;
	}
	timer_update(vcpu);
	machine_timer_changed(vcpu);
	return true;
}
