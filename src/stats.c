/* SPDX-License-Identifier: MIT */
/*
 * stats.c - counters, and the reports of guest errors to the VMM.
 */
#include <errno.h>
#include <string.h>

#include "vgic_internal.h"

#define REPORT_WINDOW_NS   UINT64_C(1000000000)
#define REPORTS_PER_WINDOW 10u

static const char *const error_names[VGIC_NUM_GUEST_ERRORS] = {
	[VGIC_GUEST_MMIO_RESERVED] = "access to an offset without a register",
	[VGIC_GUEST_MMIO_WIDTH] = "access of a width or alignment that the register does not have",
	[VGIC_GUEST_MMIO_READ_ONLY] = "write to a read-only register",
	[VGIC_GUEST_MMIO_WRITE_ONLY] = "read of a write-only register",
	[VGIC_GUEST_ICC_UNDEFINED] = "undefined access to an ICC register",
	[VGIC_GUEST_EOI_UNEXPECTED] = "end of an interrupt that is not active",
	[VGIC_GUEST_DIR_UNEXPECTED] = "deactivation of an interrupt that is not active, or with EOImode=0",
	[VGIC_GUEST_SGI_NO_TARGET] = "SGI to a PE that does not exist",
	[VGIC_GUEST_ROUTE_NO_TARGET] = "SPI routed to a PE that does not exist",
	[VGIC_GUEST_ITS_COMMAND] = "ITS command with an error",
	[VGIC_GUEST_MEMORY] = "table or queue that is not in guest memory",
};

const char *vgic_guest_error_name(enum vgic_guest_error_kind kind)
{
	return (unsigned)kind < VGIC_NUM_GUEST_ERRORS ? error_names[kind] : "unknown guest error";
}

/*
 * A guest can make errors as fast as it runs: the VMM's log must not become its
 * weapon. Two threads may both open a new window; then a few reports more come
 * through, which does no harm.
 */
static bool may_report(struct vgic *vgic)
{
	const uint64_t now = port_now_ns();
	uint64_t window = load_relaxed(&vgic->report_window);

	if (now - window >= REPORT_WINDOW_NS &&
	    atomic_compare_exchange_strong_explicit(&vgic->report_window, &window, now, memory_order_relaxed,
						    memory_order_relaxed))
		store_relaxed(&vgic->reports, 0);
	return load_relaxed(&vgic->reports) < REPORTS_PER_WINDOW &&
	       atomic_fetch_add_explicit(&vgic->reports, 1, memory_order_relaxed) < REPORTS_PER_WINDOW;
}

void guest_error(struct vgic *vgic, enum vgic_guest_error_kind kind, const char *what, uint64_t address, uint64_t value)
{
	struct vgic_guest_error error = { .kind = kind, .what = what, .address = address, .value = value };

	atomic_fetch_add_explicit(&vgic->guest_errors[kind], 1, memory_order_relaxed);
	if (!vgic->ops.guest_error)
		return;
	if (!may_report(vgic)) {
		atomic_fetch_add_explicit(&vgic->unreported, 1, memory_order_relaxed);
		return;
	}
	error.unreported = atomic_exchange_explicit(&vgic->unreported, 0, memory_order_relaxed);
	vgic->ops.guest_error(vgic->opaque, &error);
}

int vgic_get_stats(struct vgic *vgic, struct vgic_stats *stats)
{
	if (!stats || stats->size != sizeof(*stats))
		return -EINVAL;
	*stats = (struct vgic_stats){ .size = sizeof(*stats), .kicks = load_relaxed(&vgic->kicks) };
	for (unsigned i = 0; i < VGIC_NUM_GUEST_ERRORS; i++)
		stats->guest_errors[i] = load_relaxed(&vgic->guest_errors[i]);
	for (uint32_t i = 0; i < vgic->num_vcpus; i++) {
		const struct vgic_vcpu *vcpu = vgic->vcpus[i];

		stats->acknowledges += load_relaxed(&vcpu->acknowledges);
		stats->spurious += load_relaxed(&vcpu->spurious);
		stats->stale_hints += load_relaxed(&vcpu->stale_hints);
	}
	return 0;
}
