/* SPDX-License-Identifier: MIT */
/*
 * The inner side of its_in_flight.c: see its_in_flight.h.
 */
#include "its_in_flight.h"

#include "its.h"
#include "lpi_signal.h"

bool in_flight_look_up(struct vgic_its *its, uint32_t devid, uint32_t eventid, uint64_t *value)
{
	return its_map_find(&its->map, translation_key(devid, eventid), value);
}

uint64_t in_flight_use(uint64_t value)
{
	return value & TRANSLATION_USE_MASK;
}

enum in_flight_result in_flight_act(struct vgic *vgic, uint64_t value)
{
	switch (lpi_signal(vgic, value)) {
	case LPI_PENDING:
		return IN_FLIGHT_DELIVERED;
	case LPI_NOWHERE:
		return IN_FLIGHT_NOWHERE;
	case LPI_HELD:
		return IN_FLIGHT_HELD;
	default:
		return IN_FLIGHT_STALE;
	}
}

bool in_flight_is_pending(struct vgic *vgic, uint32_t intid)
{
	return load_relaxed(&vgic->lpis[intid - FIRST_LPI].word) & IRQ_PENDING;
}

void in_flight_begin_acknowledge(struct vgic_vcpu *vcpu)
{
	ack_begin(vcpu);
}

void in_flight_end_acknowledge(struct vgic_vcpu *vcpu)
{
	ack_end(vcpu);
}

void in_flight_begin_early_signal(struct vgic_vcpu *vcpu)
{
	atomic_fetch_add(&vcpu->early_signals, 1);
}

void in_flight_end_early_signal(struct vgic_vcpu *vcpu)
{
	atomic_fetch_sub(&vcpu->early_signals, 1);
}
