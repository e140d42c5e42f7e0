/* SPDX-License-Identifier: MIT */
/*
 * probes.c - the tracepoints themselves, out of the way of those who pass them.
 */
#include "probes.h"

#ifdef VGIC_HAVE_SDT

/* Tracers find it by the note of the probe, and write it from outside. */
__attribute__((section(".probes"), used)) volatile unsigned short libvgic_irqfd_semaphore;

void probe_irqfd_fire(struct vgic_routes *routes, uint32_t gsi, int level, enum probe_path path)
{
	const route_word w = route_read(routes, gsi);
	const bool line = route_kind(w) == ROUTE_TO_LINE;
	const int type = line ? VGIC_ROUTE_SPI : route_kind(w) == ROUTE_TO_NOTHING ? VGIC_ROUTE_NONE : VGIC_ROUTE_MSI;

	STAP_PROBE5(libvgic, irqfd, gsi, type, level, line ? route_unit(w) : 0, path);
}

#endif
