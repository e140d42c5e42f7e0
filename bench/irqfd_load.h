/* SPDX-License-Identifier: MIT */
/*
 * irqfd_load.h - NICs that signal interrupts through libvgic's irqfds, and vCPUs
 * that take them, with every signal accounted for.
 *
 * One thread is all the NICs, in turn; another one is the vCPUs. In between is a
 * struct vgic_irqfds with its service and its worker, and behind that any policy:
 * libvgic, or an older design, whose misses the worker injects.
 *
 * The time of an event is that from before the signal until the injection has
 * returned, in whichever thread: the interrupt can be acknowledged then. Of several
 * signals that are merged on the way, it is that of the first. A signal that the
 * vCPU never learns of is lost, and the load has failed.
 */
#ifndef BENCH_IRQFD_LOAD_H
#define BENCH_IRQFD_LOAD_H

#include <vgic/irqfd.h>

#include "histogram.h"
#include "policy.h"

#define IRQFD_LOAD_MAX_NICS 64u
#define IRQFD_LOAD_RATE     50000u /* events of each NIC a second, in the first phase */

enum irqfd_load_door {
	IRQFD_LOAD_SIGNAL,       /* vgic_irqfds_signal(), by the NIC's thread */
	IRQFD_LOAD_SERVICE,      /* an eventfd, and a thread that sleeps */
	IRQFD_LOAD_SERVICE_POLL, /* the same, and it looks for a while before it sleeps */
	IRQFD_LOAD_NUM_DOORS,
};

#define IRQFD_LOAD_NUM_PATHS 2u /* enum vgic_irqfd_path */

struct irqfd_load_config {
	const struct policy_ops *ops;
	uint32_t num_nics;
	enum irqfd_load_door door;
	enum vgic_irqfd_path path;
	uint64_t signals; /* in each of the two phases, all NICs together; 0: as many as some milliseconds bring */
};

/* Of the second phase, in which the NICs signal as fast as they can. */
struct irqfd_load_result {
	double rate;                 /* events injected a second, while the NICs signal */
	uint64_t signals;            /* made by the NICs */
	uint64_t events;             /* seen by the irqfds: several signals of an eventfd may be one */
	uint64_t deferred;           /* of them, injected by the worker */
	uint64_t waits, empty_waits; /* system calls of the service */
};

/*
 * Runs both phases. Adds the times of the first one to @latencies. Returns 0; -EIO if a
 * signal was lost or refused; or another negative errno, if something could not be set up.
 */
int irqfd_load_run(const struct irqfd_load_config *config, struct histogram *latencies,
		   struct irqfd_load_result *result);

#endif /* BENCH_IRQFD_LOAD_H */
