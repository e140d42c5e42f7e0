/* SPDX-License-Identifier: MIT */
/*
 * The generic timer of one vCPU: the counter and the EL1 virtual and physical
 * timers. There is no offset between the two counters (CNTVOFF_EL2 is 0).
 */
#ifndef VMM_TIMER_H
#define VMM_TIMER_H

#include <stdbool.h>
#include <stdint.h>

#define TIMER_PPI_VIRTUAL  27u
#define TIMER_PPI_PHYSICAL 30u

#define TIMER_NS_PER_TICK 16u /* 62.5 MHz, as QEMU's virt machine has it */
#define TIMER_FREQUENCY   62500000u

struct snapshot_in;
struct snapshot_out;
struct vcpu;

enum timer_kind {
	TIMER_VIRTUAL,
	TIMER_PHYSICAL,
	NUM_TIMERS,
};

struct timer {
	uint64_t cval;
	bool enabled;
	bool masked;
	bool line; /* as the GIC was told last */
};

/* The timers are off. Their lines are lowered. */
void timer_reset(struct vcpu *vcpu);

/* Drive the lines as the counter now says. */
void timer_update(struct vcpu *vcpu);

/* When a line will rise by itself, in machine time (ns); UINT64_MAX: never. */
uint64_t timer_deadline(const struct vcpu *vcpu);

/* To and from a saved machine. Loading drives no line: the controller has been saved too. */
void timer_save(const struct vcpu *vcpu, struct snapshot_out *out);
void timer_load(struct vcpu *vcpu, struct snapshot_in *in);

/* System registers: those that belong here; and the accesses, as struct cpu_ops has them. */
bool timer_has_register(uint32_t reg);
bool timer_read(struct vcpu *vcpu, uint32_t reg, unsigned el, uint64_t *value);
bool timer_write(struct vcpu *vcpu, uint32_t reg, unsigned el, uint64_t value);

#endif /* VMM_TIMER_H */
