/* SPDX-License-Identifier: MIT */
/*
 * probes.h - static tracepoints (USDT), where sys/sdt.h was there when the library
 * was built; nothing otherwise.
 *
 *   libvgic:irqfd   gsi, type, level, source, path
 *
 * at each decision about an event of an irqfd. type is enum vgic_route_type; level is
 * 1; source is that of the line (0 of an MSI); path says what is done now: 0 inject
 * in the thread that has seen it, 1 hand it to the worker, 2 inject in the worker.
 *
 *   bpftrace -e 'usdt:./libvgic.so:libvgic:irqfd { printf("%d %d\n", arg0, arg4); }'
 *
 * A probe costs a test of its semaphore, which tracers set; its arguments are
 * computed only for them.
 */
#ifndef VGIC_PROBES_H
#define VGIC_PROBES_H

#include "route.h"

enum probe_path {
	PROBE_DIRECT = 0,
	PROBE_DEFERRED = 1,
	PROBE_WORKER = 2,
};

#ifdef VGIC_HAVE_SDT

#define _SDT_HAS_SEMAPHORES 1
#include <sys/sdt.h>

extern volatile unsigned short libvgic_irqfd_semaphore;

void probe_irqfd_fire(struct vgic_routes *routes, uint32_t gsi, int level, enum probe_path path);

static inline void probe_irqfd(struct vgic_routes *routes, uint32_t gsi, int level, enum probe_path path)
{
	if (__builtin_expect(libvgic_irqfd_semaphore, 0))
		probe_irqfd_fire(routes, gsi, level, path);
}

#else

static inline void probe_irqfd(struct vgic_routes *routes, uint32_t gsi, int level, enum probe_path path)
{
	(void)routes;
	(void)gsi;
	(void)level;
	(void)path;
}

#endif

#endif /* VGIC_PROBES_H */
